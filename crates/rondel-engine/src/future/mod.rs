//! Operators of the future: `next`, `eventually[a,b]`, `always[a,b]`, `until[a,b]`.
//!
//! # When there is a verdict
//!
//! A verdict is about a moment (in dense time also about the span after one), and it is given as soon as
//! it is certain: when the verdict is the same whatever comes. Where operators of the future stand inside each
//! other, an operand is taken as open until it is decided itself. So verdicts come
//! out of the order of what they are about: that a request at 5 s is violated does not wait for what becomes of one
//! at 3 s. They are given in the order in which they become certain, and those that become certain together in the
//! order of what they are about.
//!
//! An event exactly at the far end of an interval counts. That none came is certain only beyond it: in points at
//! the first event, or [`advance`](crate::Monitor::advance), that is later; in dense time just after it,
//! with that time, however late that is noticed; in steps at the last step of the interval.
//!
//! # What counts as a change
//!
//! A verdict has *changed* if it is another than the one about the nearest earlier moment (or span) about which
//! there is one by then; the first always has. In short: against what is known of the past of what it is
//! about. So a violation is told once, with the time that it is about, whatever was
//! said in the meantime of later moments; two violations about neighbouring moments are one, as they are in properties of the past;
//! and what is satisfied as ever is no news, even if a violation about something earlier was told last. That
//! the verdict is satisfied *again* after a violation is told only if the violation was known by then. To compare with
//! what was *given* last would tell of every late violation twice, once as it comes, and once
//! when the next event says that it, for its part, is satisfied.
//!
//! # How
//!
//! A formula is cut ([`plan`]) into *skeletons*, boolean combinations of truths known at the moment itself (*pasts*)
//! and of operators of the future (*leaves*), whose operands are skeletons again. A skeleton is evaluated with its leaves
//! open, which gives a range of truths ([`Range`]); most often that is one
//! truth, as in `on(request) -> eventually[0,2] on(answer)` where there is no request. Otherwise the place waits
//! in the [`queue`] of the skeleton. A [`leaf`] takes in what is decided of its operands, in whatever order, and says about
//! which places that decides it: by a few rules, whose outcome is always an interval on the axis of places ([`key`]).
//! Each place waiting is thus touched once for every leaf. As in the rest of the engine the two rails
//! of a truth are treated apart, and each is two-valued.
//!
//! In dense time what is seen grows continuously. [`pending`] cuts it into chunks, such that within a chunk all
//! that becomes certain does so as time goes on, from the beginning of the chunk: at the places where something
//! waiting begins or ends, moved by the bounds that lie between.
//!
//! What is still open at the end of the trace is then inconclusive.
//!
//! A property whose [robustness](robust) is asked for is evaluated otherwise: its verdicts wait until all is known that
//! the formula looks at.
//!
//! What waits is bounded by the moments within the bounds, and by a limit: beyond it the oldest is given up, as
//! inconclusive, and counted. Everything is plain data.

mod key;
mod leaf;
mod lookahead;
mod pending;
mod plan;
mod property;
mod queue;
mod robust;
mod runs;
#[cfg(test)]
mod tests;

pub use lookahead::{Known, Lookahead};
pub(crate) use pending::{Decision, EventRows, Pending, RailDecision, Scratch, Survey};
pub(crate) use plan::{Formula, Plan, Range};
pub(crate) use property::{Future, RobustFuture};
pub(crate) use robust::{Delayed, DelayedPlan, Levels, Room};
