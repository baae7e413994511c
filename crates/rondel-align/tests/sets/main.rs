//! Sets of items as they are drawn in pictures, and as a naive implementation makes them.

#![allow(clippy::unwrap_used)]

mod bad;
mod naive;
mod pictures;
mod random;
mod snapshots;
