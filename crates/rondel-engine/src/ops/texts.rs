//! Columns of text. Evaluation copies nothing: a column holds references into the block or to a kept text.
//! Texts that outlive the block are copied at its end.

use rondel_event::{Block, Rows, StringColumn};

use crate::ops::rows::RowView;

/// Location of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRef {
    /// In a buffer of the monitor.
    Kept { buffer: u32 },
    /// In a column and row of the block.
    Fresh { column: u32, row: u8 },
}

/// A text for every row.
pub(crate) type TextColumn = [TextRef; Block::CAPACITY];

/// Contents of a column before it is written.
pub(crate) const UNSET: TextColumn = [TextRef::Kept { buffer: 0 }; Block::CAPACITY];

impl TextRef {
    #[inline(always)]
    pub(crate) fn bytes<'a>(self, block: &'a Block, buffers: &'a [Vec<u8>]) -> &'a [u8] {
        match self {
            TextRef::Kept { buffer } => &buffers[buffer as usize],
            TextRef::Fresh { column, row } => block.text(column, row.into()),
        }
    }
}

/// Holds the last text of a field; `valid` are the rows with a text.
#[inline(always)]
pub(crate) fn hold(out: &mut TextColumn, column: u32, valid: Rows, buffer: u32, view: &RowView<'_>) {
    let mut text = TextRef::Kept { buffer };
    for (row, out) in out[..view.len as usize].iter_mut().enumerate() {
        if valid >> row & 1 == 1 {
            text = TextRef::Fresh { column, row: view.event_row(row) as u8 };
        }
        *out = text;
    }
}

/// In rows of the clock, the text of `x` one row before. `buffer` holds the current output, the buffer after
/// it the next one.
#[inline(always)]
pub(crate) fn latch(out: &mut TextColumn, x: &TextColumn, clock: Rows, buffer: u32, len: u32) {
    let (mut now, mut next) = (TextRef::Kept { buffer }, TextRef::Kept { buffer: buffer + 1 });
    for (i, (out, &x)) in out.iter_mut().zip(x).take(len as usize).enumerate() {
        if clock >> i & 1 == 1 {
            now = next;
        }
        *out = now;
        next = x;
    }
}

/// The rows in which a relation holds. Rows with the texts of the row before reuse its result.
#[inline(always)]
pub(crate) fn compare(
    [a, b]: [&TextColumn; 2],
    block: &Block,
    buffers: &[Vec<u8>],
    len: u32,
    relation: impl Fn(&[u8], &[u8]) -> bool,
) -> Rows {
    let mut out = 0;
    let mut before = (a[0], b[0]);
    let mut holds = relation(before.0.bytes(block, buffers), before.1.bytes(block, buffers));
    for i in 0..len as usize {
        if (a[i], b[i]) != before {
            before = (a[i], b[i]);
            holds = relation(before.0.bytes(block, buffers), before.1.bytes(block, buffers));
        }
        out |= u64::from(holds) << i;
    }
    out
}

/// Copies a text of this block into a buffer, for the next block.
///
/// A reference to a buffer means its contents during the block. Copy every text that refers to the old
/// contents of a buffer before that buffer is overwritten.
pub(crate) fn keep(text: TextRef, buffer: u32, block: &Block, buffers: &mut [Vec<u8>]) {
    if text == (TextRef::Kept { buffer }) {
        return;
    }
    let mut target = std::mem::take(&mut buffers[buffer as usize]);
    target.clear();
    target.extend_from_slice(text.bytes(block, buffers));
    buffers[buffer as usize] = target;
}

/// The rows whose message contains the field, and those in which it is text.
#[inline(always)]
pub(crate) fn masks(column: &StringColumn, view: &RowView<'_>) -> (Rows, Rows) {
    let present = view.of_events(column.present) & view.rows;
    (present, view.of_events(column.valid) & present)
}
