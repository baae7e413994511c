//! NATS JetStream: a real server, read by an independent client.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // tests

#[path = "../messages/mod.rs"]
mod messages;

mod access;
mod basic;
mod bench;
mod credentials;
mod faults;
mod server;
