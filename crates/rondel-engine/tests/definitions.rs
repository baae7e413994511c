//! The operators against their definitions, for `make mutants`.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod agreement;
mod definition;
mod dense;
mod points;
mod robustness;
mod windows;
