//! What became of each property, for the closing summary and the exit status.

use rondel_engine::Outcome;
use rondel_event::{Block, Rows, Timestamp, Verdict};

use crate::exit;

/// The verdicts of one property, counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// At how many steps it was violated.
    pub violated: u64,
    /// At how many steps it was satisfied.
    pub satisfied: u64,
    /// How often it became violated.
    pub violations: u64,
    /// The step and the time of the first violation.
    pub first: Option<(u64, Timestamp)>,
    /// The last verdict.
    pub last: Option<Verdict>,
}

impl Tally {
    /// Adds the verdicts of a block, whose first row is step `first`.
    #[inline]
    pub fn add(&mut self, outcome: &Outcome, block: &Block, first: u64) {
        let rows = block.rows();
        let violated = outcome.violated & rows;
        self.violated += u64::from(violated.count_ones());
        self.satisfied += u64::from((outcome.satisfied & rows).count_ones());
        self.violations += u64::from((outcome.changed & violated).count_ones());
        if violated != 0 && self.first.is_none() {
            let row = violated.trailing_zeros() as usize;
            self.first = Some((first + row as u64, block.time(row)));
        }
        if let Some(row) = block.len().checked_sub(1) {
            self.last = Some(outcome.verdict(row));
        }
    }

    /// Whether it was neither satisfied nor violated at any step.
    pub fn undecided(&self) -> bool {
        self.violated == 0 && self.satisfied == 0
    }
}

/// The exit status that these tallies call for.
pub fn status(tallies: &[Tally]) -> u8 {
    if tallies.iter().any(|t| t.violated > 0) {
        exit::VIOLATED
    } else if tallies.iter().any(Tally::undecided) {
        exit::INCONCLUSIVE
    } else {
        exit::SATISFIED
    }
}

/// Events whose time is before that of the event before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backwards {
    last: Option<Timestamp>,
    /// How many there were.
    pub count: u64,
}

impl Backwards {
    /// Adds the events of a block; returns the row of the first one ever that goes back.
    #[inline]
    pub fn add(&mut self, block: &Block) -> Option<usize> {
        let mut back: Rows = 0;
        let mut last = self.last.unwrap_or(Timestamp::from_nanos(i64::MIN));
        for row in 0..block.len() {
            let time = block.time(row);
            back |= Rows::from(time < last) << row;
            last = time;
        }
        self.last = Some(last);
        let first_ever = (back != 0 && self.count == 0).then(|| back.trailing_zeros() as usize);
        self.count += u64::from(back.count_ones());
        first_ever
    }
}
