//! [`rondel_align::Sets`] against time lines and against naive implementations of the policies.

#![allow(clippy::unwrap_used)]

mod bad;
mod naive;
mod pictures;
mod random;
mod snapshots;
