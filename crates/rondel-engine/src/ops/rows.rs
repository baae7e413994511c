//! The rows of a block that are evaluated: events, and in dense time the times between them.

use rondel_event::{Block, Rows};

use crate::ops::stamps::Stamps;
use crate::ops::timed::RowTimes;
use crate::ops::words;

/// The rows to evaluate.
#[derive(Clone, Copy)]
pub(crate) struct RowView<'a> {
    pub(crate) block: &'a Block,
    /// The first row of the block that is evaluated; what is computed of it stands in row 0.
    pub(crate) start: u32,
    /// The rows that are events.
    pub(crate) events: Rows,
    pub(crate) len: u32,
    pub(crate) rows: Rows,
    /// The number of the first row.
    pub(crate) position: u64,
    pub(crate) row_times: RowTimes<'a>,
}

impl<'a> RowView<'a> {
    /// What a word of the block says of these rows.
    #[inline(always)]
    pub(crate) fn of_events(&self, word: Rows) -> Rows {
        let word = word >> self.start;
        if self.events == self.rows { word } else { words::spread(word, self.events) }
    }

    /// The row of the block that an event of these rows is.
    #[inline(always)]
    pub(crate) fn event_row(&self, row: usize) -> usize {
        let before = (self.events & words::low(row as u64)).count_ones();
        (self.start + before) as usize
    }

    /// Where its rows are in time, or in steps.
    #[inline(always)]
    pub(crate) fn stamps(&self, timed: bool) -> Stamps<'a> {
        if timed { Stamps::Times(self.row_times.times) } else { Stamps::Positions(self.position) }
    }
}
