//! A pause of a session violates no property: its own silence is not that of the topics.

#![allow(clippy::unwrap_used)]

mod clock;
mod pauses;
mod restart;
mod run;
mod silence;
