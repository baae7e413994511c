//! Kafka: a real broker, read by an independent client. Each broker takes seconds to start and half a gigabyte, so that a
//! test has several parts.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests

#[path = "../messages/mod.rs"]
mod messages;

mod access;
mod basic;
mod bench;
mod faults;
mod server;
