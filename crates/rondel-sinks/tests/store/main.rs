//! The store in SQLite.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // tests

mod basic;
mod bench;
mod docs;
mod faults;
mod incidents;
mod killed;
mod latest;
mod migration;
mod operators;
mod random;
mod support;
