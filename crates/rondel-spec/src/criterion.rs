//! Acceptance criteria: demands of `assert` declarations on a whole recording.

use rondel_event::Comparison;

/// Demand of an `assert` on the truth of its formula over a whole recording.
///
/// An assert is a property with a criterion: the formula is evaluated as that of any property, and the criterion
/// decides on all its verdicts together, once, at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// The measure and its limit.
    pub demand: Demand,
    /// First and last position of the part that counts, both inclusive: nanoseconds since the first message in
    /// dense time, numbers of events from 0 in steps. None for the whole recording.
    pub span: Option<(u64, u64)>,
    /// Whether only the time counts in which the formula is known: `while`.
    pub has_mode: bool,
    /// Index of the property whose verdicts are judged; none if the assert has a formula of its own.
    pub property: Option<u32>,
}

/// A measure of the truth of a formula, and its limit. Time points at which the formula is unknown do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// It is nowhere false.
    Always,
    /// It is true somewhere.
    Ever,
    /// The share of the time, or of the events, in which it is true, from 0 to 1.
    Share(Comparison, f64),
    /// The longest stretch without a break in which it is true: nanoseconds in dense time, events in steps.
    Longest(Comparison, u64),
    /// The number of stretches in which it is true.
    Count(Comparison, u64),
}
