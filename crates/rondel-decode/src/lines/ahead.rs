//! Lines that are decoded ahead of their turn, by decoders of their own, and taken over in their order.
//!
//! Whoever decodes ahead does not know what came before: the time of lines without one, the number of the line, which
//! other topics were named. [`Lines::take`] fills that in. Lines that are in any way unusual are left to it whole, so that
//! whatever is said about them is said in one place.

use rondel_event::{Block, Layout, Origin, Rows, Timestamp, TopicId};

use super::{Lines, Mistyped, OTHERS};

/// The most memory in bytes for the blocks of one piece; what is beyond stays undecoded.
const MEMORY: usize = 4 << 20;

/// A decoder that works ahead of another.
#[derive(Debug)]
pub struct Ahead {
    lines: Lines,
    layout: Layout,
    /// How many parts of a piece are decoded at most.
    most: usize,
    /// How many lines there were on each topic that is not read, before the last call.
    counts: Vec<u64>,
}

/// Up to 64 events of a piece, or some lines that were not decoded.
#[derive(Debug)]
pub struct Part {
    /// Where its lines end in the text.
    end: usize,
    is_decoded: bool,
    block: Block,
    untimed: Rows,
    origins: Vec<(usize, Origin)>,
    lines: u64,
    /// Messages without a payload.
    empty: u64,
    /// Values of another type than is read, by topic.
    mistyped: Vec<u64>,
    /// The first of them that the decoder has met, by topic: row and field.
    first_mistyped: Vec<Mistyped>,
    left_out: Vec<(TopicId, u64)>,
    /// Whether its first rows, if they have no time of their own, have that of a line before the piece.
    inherits: bool,
}

impl Part {
    /// Whether it was decoded, so that a session can [take](Lines::take) it.
    pub fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    /// Where its lines end in the text of the piece.
    pub fn end(&self) -> usize {
        self.end
    }
}

/// A piece of a trace, decoded. It is used again for others, so that decoding stops allocating.
#[derive(Debug, Default)]
pub struct Decoded {
    parts: Vec<Part>,
    used: usize,
    /// The topics that are not read, with the numbers of their lines in the decoded parts.
    others: Vec<(String, u64)>,
}

impl Decoded {
    /// The parts, in order. They are all lines of the piece.
    pub fn parts(&mut self) -> &mut [Part] {
        &mut self.parts[..self.used]
    }

    fn clear(&mut self) {
        self.used = 0;
        self.others.clear();
    }

    /// The next part, empty.
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

    /// Leaves lines undecoded, up to `end`.
    fn leave(&mut self, end: usize, layout: Layout) {
        self.next(layout).end = end;
    }
}

impl Ahead {
    /// A decoder for what `lines`, which has read nothing yet, decodes into blocks with this layout.
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
                // They are decoded and counted again, by the one who takes them.
                let counts = self.lines.shapes.other_counts_mut();
                counts.fill(0);
                counts[..self.counts.len()].copy_from_slice(&self.counts);
            }
            part.end = decoded.ok().filter(|next| *next > at).unwrap_or(end);
            at = part.end;
        }
        if self.lines.others.len() >= OTHERS {
            // Who names them all in the order of the trace knows which of them come first.
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
    /// Counts the topics of a piece that are not read, and returns whether its decoded parts can be taken over: not where
    /// there are more topics than are named, of which the first ones count. Otherwise nothing happens, and the text is to be
    /// decoded from its beginning.
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

    /// Takes over what was decoded ahead, in exchange for a block whose events were used.
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
