//! Future operators: `next`, `eventually[a,b]`, `always[a,b]`, `until[a,b]`.
//!
//! # Time of a verdict
//!
//! A verdict belongs to a time point (in dense time also to the open interval after one) and is emitted as
//! soon as it is certain, that is, the same for every continuation of the trace. An operand that itself
//! contains future operators counts as open until it is decided. Verdicts therefore leave out of trace order:
//! a violated request at 5 s does not wait for the outcome of one at 3 s. Verdicts are emitted in the order
//! in which they become certain, and in trace order where several become certain together.
//!
//! An event exactly at the end of an interval counts. The absence of such an event is certain only beyond the
//! end: in points at the first later event or [`advance`](crate::Monitor::advance); in dense time just after
//! the end, with that time, however late it is noticed; in steps at the last step of the interval.
//!
//! # Changes
//!
//! A verdict has *changed* if it differs from the verdict about the nearest earlier time point (or interval)
//! that has one by then; the first always has. The comparison is with the known past of the time point, not
//! with the verdict emitted last. A violation is therefore reported once, with its own time, whatever was
//! emitted meanwhile about later time points; violations at neighbouring time points are one, as they are for
//! past operators; and a satisfied verdict that was satisfied before is no change, even if the last report
//! was a violation at an earlier time. Comparing with the verdict *emitted* last would report every late
//! violation twice: once when it comes, and once when the next event turns out to be satisfied.
//!
//! # Algorithm
//!
//! A formula is cut ([`plan`]) into *boolean frames*: boolean combinations of *pasts*, truths known at the
//! time point itself, and of *obligations*, future operators whose operands are frames again. A frame is
//! evaluated with its obligations open, which gives a range of truths ([`Range`]); most often that is a
//! single truth, as in `on(request) -> eventually[0,2] on(answer)` where there is no request. Otherwise the
//! place waits in the [`queue`] of the frame. An obligation, such as [`until`], receives the decisions about
//! its operands in any order and reports which places they decide: by a few rules, whose result is always an
//! interval of [places](key). So each waiting place is touched once per obligation. As in the rest of the
//! engine, the lower and the upper truth (must and may) are evaluated separately, and each is two-valued.
//!
//! In dense time knowledge grows continuously. [`pending`] cuts it into chunks such that everything that
//! becomes certain within a chunk does so continuously from its beginning: cuts are at the places where a
//! waiting interval begins or ends, shifted by the bounds in between.
//!
//! Places still open at the end of the trace are inconclusive.
//!
//! A property with [robustness](robust) is evaluated differently: its verdicts wait until everything that the
//! formula refers to is known.
//!
//! Memory is bounded by the time points within the bounds and by a limit: beyond it the oldest place is
//! dropped, as inconclusive, and counted. All state is plain data.

mod key;
mod lookahead;
mod pending;
mod plan;
mod property;
mod queue;
mod robust;
mod runs;
#[cfg(test)]
mod tests;
mod until;

pub use lookahead::{Known, Lookahead};
pub(crate) use pending::{BoundDecision, Decision, EventRows, Pending, Scratch, Survey};
pub(crate) use plan::{Formula, Plan, Range};
pub(crate) use property::{Future, RobustFuture};
pub(crate) use robust::{Delayed, DelayedPlan, Levels, Room};
