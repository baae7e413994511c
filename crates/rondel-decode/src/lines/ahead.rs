//! Lines decoded ahead of their turn, by separate decoders, and adopted in order.
//!
//! A decoder that works ahead does not know the earlier lines: the time of lines without one, the number of the line,
//! and the other topics named before. [`Lines::take`] fills these in. All unusual lines are left to it undecoded, so
//! that there is one place for everything reported about them.

use rondel_event::{Block, Layout, Origin, Rows, Timestamp, TopicId};

use super::{Lines, Mistyped, OTHERS};

/// Maximum memory for the blocks of a piece, in bytes; further lines stay undecoded.
const MEMORY: usize = 4 << 20;

/// A decoder that works ahead of another one.
#[derive(Debug)]
pub struct Ahead {
    lines: Lines,
    layout: Layout,
    /// Maximum number of parts of a piece that are decoded.
    most: usize,
    /// Number of lines on each topic that is not read, before the last call.
    counts: Vec<u64>,
}

/// Up to 64 events of a piece, or some undecoded lines.
#[derive(Debug)]
pub struct Part {
    /// Offset of the end of its lines in the text.
    end: usize,
    is_decoded: bool,
    block: Block,
    untimed: Rows,
    origins: Vec<(usize, Origin)>,
    lines: u64,
    /// Number of messages without a payload.
    empty: u64,
    /// Number of values of another type than is read, by topic.
    mistyped: Vec<u64>,
    /// The first of them, by topic: row and field.
    first_mistyped: Vec<Mistyped>,
    left_out: Vec<(TopicId, u64)>,
    /// Whether its first rows, if their lines have no time, get that of a line before the piece.
    inherits: bool,
}

impl Part {
    /// Whether it was decoded, so that a session can [take](Lines::take) it.
    pub fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    /// Returns the offset of the end of its lines in the text of the piece.
    pub fn end(&self) -> usize {
        self.end
    }
}

/// A decoded piece of a trace. It is reused, so that decoding stops allocating.
#[derive(Debug, Default)]
pub struct Decoded {
    parts: Vec<Part>,
    used: usize,
    /// Topics that are not read, with the numbers of their lines in the decoded parts.
    others: Vec<(String, u64)>,
}

impl Decoded {
    /// Returns the parts in order, which contain all lines of the piece.
    pub fn parts(&mut self) -> &mut [Part] {
        &mut self.parts[..self.used]
    }

    fn clear(&mut self) {
        self.used = 0;
        self.others.clear();
    }

    /// Returns the next part, empty.
    fn next(&mut self, layout: Layout) -> &mut Part {
        if self.used == self.parts.len() {
            self.parts.push(Part {
                end: 0,
                is_decoded: false,
                block: Block::new(layout),
                untimed: 0,
                origins: Vec::new(),
                lines: 0,
                empty: 0,
                mistyped: Vec::new(),
                first_mistyped: Vec::new(),
                left_out: Vec::new(),
                inherits: false,
            });
        }
        self.used += 1;
        let part = &mut self.parts[self.used - 1];
        part.is_decoded = false;
        part.block.clear();
        part
    }

    /// Adds undecoded lines up to `end`.
    fn leave(&mut self, end: usize, layout: Layout) {
        self.next(layout).end = end;
    }
}

impl Ahead {
    /// Creates a decoder that works ahead of `lines`, which has read nothing yet, with blocks of this layout.
    pub fn new(lines: Lines, layout: Layout) -> Ahead {
        let columns = layout.ints + layout.floats + layout.strings;
        let bytes = size_of::<Part>() + 8 * Block::CAPACITY * columns + 8 * layout.topics + 24 * layout.bools;
        Ahead { lines, layout, most: (MEMORY / bytes).max(1), counts: Vec::new() }
    }

    /// Decodes the lines `text[at..end]`.
    pub fn decode(&mut self, text: &[u8], mut at: usize, end: usize, into: &mut Decoded) {
        let layout = self.layout;
        into.clear();
        self.lines.time = Timestamp::ZERO;
        self.lines.shapes.other_counts_mut().fill(0);
        let (first, mut inherits) = (at, true);
        while at < end {
            if into.used == self.most {
                into.leave(end, layout);
                break;
            }
            self.counts.clone_from(self.lines.shapes.other_counts_mut());
            let (lines, empty) = (self.lines.lines, self.lines.empty);
            let mistyped = self.lines.mistyped().to_vec();
            let part = into.next(layout);
            let decoded = self.lines.decode(text, at, end, &mut part.block);
            part.untimed = self.lines.untimed;
            std::mem::swap(&mut part.origins, &mut self.lines.origins);
            std::mem::swap(&mut part.first_mistyped, &mut self.lines.first_mistyped);
            std::mem::swap(&mut part.left_out, &mut self.lines.left_out);
            part.lines = self.lines.lines - lines;
            part.empty = self.lines.empty - empty;
            part.mistyped.clear();
            let before = mistyped.iter().copied().chain(std::iter::repeat(0));
            part.mistyped.extend(self.lines.mistyped().iter().zip(before).map(|(now, before)| now - before));
            part.inherits = inherits;
            inherits &= part.block.rows() & !part.untimed == 0;
            part.is_decoded = decoded.is_ok() && self.lines.unseen.is_empty();
            if !part.is_decoded {
                // The adopting decoder decodes and counts them again.
                let counts = self.lines.shapes.other_counts_mut();
                counts.fill(0);
                counts[..self.counts.len()].copy_from_slice(&self.counts);
            }
            part.end = decoded.ok().filter(|next| *next > at).unwrap_or(end);
            at = part.end;
        }
        if self.lines.others.len() >= OTHERS {
            // Only the adopting decoder knows which of the topics are named first in the trace.
            into.clear();
            into.leave(end, layout);
            return;
        }
        debug_assert!(first == end || into.used > 0, "no line is lost");
        let counts = self.lines.shapes.other_counts().iter();
        let others = self.lines.others.iter().zip(counts).filter(|(_, count)| **count > 0);
        into.others.extend(others.map(|(name, count)| (name.clone(), *count)));
    }
}

impl Lines {
    /// Counts the topics of a piece that are not read. Returns whether its decoded parts can be adopted: not if there
    /// are more topics than are named, of which the first ones count. In that case nothing is changed, and the text
    /// must be decoded from its beginning.
    pub fn admit(&mut self, piece: &mut Decoded) -> bool {
        let is_new = |(name, _): &&(String, u64)| !self.others.contains(name);
        if self.others.len() + piece.others.iter().filter(is_new).count() >= OTHERS {
            return false;
        }
        for (name, count) in piece.others.drain(..) {
            let other = self.other(name);
            self.shapes.count_other(Some(other), count);
        }
        true
    }

    /// Adopts a part decoded ahead, in exchange for a block whose events were used.
    pub(super) fn adopt(&mut self, part: &mut Part, block: &mut Block) -> usize {
        self.unseen.clear();
        std::mem::swap(block, &mut part.block);
        std::mem::swap(&mut self.origins, &mut part.origins);
        self.untimed = part.untimed;
        self.lines += part.lines;
        self.empty += part.empty;
        std::mem::swap(&mut self.first_mistyped, &mut part.first_mistyped);
        std::mem::swap(&mut self.left_out, &mut part.left_out);
        let before = self.shapes.mistyped();
        self.first_mistyped.retain(|first| before.get(first.topic.index()).is_none_or(|count| *count == 0));
        for (topic, count) in (0..).map(TopicId).zip(&part.mistyped) {
            self.shapes.add_mistyped(Some(topic), *count);
        }
        if part.inherits {
            let first = (0..block.len()).take_while(|row| self.untimed >> row & 1 == 1);
            first.for_each(|row| block.set_time(row, self.time));
            for first in &mut self.first_mistyped {
                first.time = block.time(first.row);
            }
        }
        if let Some(last) = block.len().checked_sub(1) {
            self.time = block.time(last);
        }
        part.end
    }
}
