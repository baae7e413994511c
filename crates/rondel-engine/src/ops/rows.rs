//! The rows of a block under evaluation: events, and in dense time the time points between them.

use rondel_event::{Block, Rows};

use crate::ops::stamps::Stamps;
use crate::ops::timed::RowTimes;
use crate::ops::words;

/// The rows to evaluate.
#[derive(Clone, Copy)]
pub(crate) struct RowView<'a> {
    pub(crate) block: &'a Block,
    /// First row of the block under evaluation; it is row 0 of the result.
    pub(crate) start: u32,
    /// The rows that are events.
    pub(crate) events: Rows,
    pub(crate) len: u32,
    pub(crate) rows: Rows,
    /// Number of the first row since the start.
    pub(crate) position: u64,
    pub(crate) row_times: RowTimes<'a>,
}

impl<'a> RowView<'a> {
    /// The bits of these rows, from a word over the rows of the block.
    #[inline(always)]
    pub(crate) fn of_events(&self, word: Rows) -> Rows {
        let word = word >> self.start;
        if self.events == self.rows { word } else { words::spread(word, self.events) }
    }

    /// Row of the block of an event.
    #[inline(always)]
    pub(crate) fn event_row(&self, row: usize) -> usize {
        let before = (self.events & words::low(row as u64)).count_ones();
        (self.start + before) as usize
    }

    /// The stamps of the rows: times, or positions.
    #[inline(always)]
    pub(crate) fn stamps(&self, timed: bool) -> Stamps<'a> {
        if timed { Stamps::Times(self.row_times.times) } else { Stamps::Positions(self.position) }
    }
}
