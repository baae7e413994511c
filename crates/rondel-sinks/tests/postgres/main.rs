//! The store in PostgreSQL, on servers that the tests start.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // tests

#[allow(dead_code)]
#[path = "../store/support.rs"]
mod support;

mod basic;
mod bench;
mod faults;
mod killed;
mod operate;
mod outage;
mod random;
mod server;
mod tls;
