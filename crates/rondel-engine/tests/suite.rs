//! The tests of the engine.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod beside;
mod blind_simple;
mod chains;
mod definition;
mod edited;
mod far_apart;
mod future;
mod instants;
mod keyed;
mod linear;
mod machines;
mod malformed;
mod memory;
mod operators;
mod parts;
mod patterns;
mod pauses;
mod portions;
mod quantified;
mod random_machines;
mod refusals;
mod slices;
mod snapshots;
mod terms;
mod textbook;
mod written;
