//! Acceptance criteria: what `assert` declarations demand of a whole recording.

use rondel_event::Comparison;

/// What an `assert` demands of the truth of its formula over a whole recording.
///
/// An assert is a property with a criterion: the formula is evaluated as that of any property, and the criterion
/// decides on all its verdicts together, once, at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// What is measured, and what it must be.
    pub demand: Demand,
    /// The beginning and the end of the part that counts, both inclusive: nanoseconds since the first message in
    /// dense time, numbers of events from 0 in steps. None for the whole recording.
    pub span: Option<(u64, u64)>,
    /// Whether only a part of the time counts, in which the formula is known: `while`.
    pub has_mode: bool,
    /// The property whose verdicts are judged, by its position; none if the assert has a formula of its own.
    pub property: Option<u32>,
}

/// What is measured of the truth of a formula, and the demand on it. Where the formula is unknown, it does not count.
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
