//! The tests of sessions.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod aligned;
mod altered;
mod blind;
mod costs;
mod criteria;
mod each_element;
mod edited;
mod edits;
mod element_reports;
mod exactly;
mod explained;
mod holes;
mod in_violation;
mod industrial;
mod joining;
mod laps;
mod latency;
mod limits;
mod muting;
mod parts;
mod pauses;
mod ros2;
mod session;
mod several_types;
mod sharing;
mod standing;
mod succession;
mod topic_events;
mod typed;
mod vacuous;
mod values;
