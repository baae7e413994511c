//! Shapes of the lines of a trace, in which messages of many topics may alternate.

use std::sync::Arc;

use rondel_event::{Block, Rows, TimeUnit, Timestamp, TopicId};
use wide::u8x16;

use super::SHORT;
use super::plan::Node;
use super::shape::{Goal, Shape};
use super::words::Words;
use crate::Parameters;

/// Index of no shape.
const NONE: u8 = u8::MAX;
/// Maximum number of shapes: enough for a trace of many topics.
const MOST: usize = NONE as usize;
/// Maximum number of shapes with the same key. A line with none of them is compared with all.
const MOST_ALIKE: usize = 32;
/// Number of bits of a slot's index; most slots are empty.
const SLOT_BITS: u32 = 10;
/// Key of lines that do not name their topic where others do.
const UNNAMED: u64 = 0;
/// Number of successive lines of one shape after which more of them are expected.
const MANY: usize = 32;

/// Shapes recorded from the lines of a trace.
///
/// If a line is expected to have the shape of the previous one, a [run](Shape::run) is attempted. If topics alternate,
/// lines are first sorted: a cheap hash of the topic's name, which may be wrong, predicts the shape of a line, and then
/// each shape reads its lines into their rows.
#[derive(Clone, Debug)]
pub(crate) struct TraceShapes {
    shapes: Vec<Shape>,
    /// Next shape with the same key, for each shape.
    next: Vec<u8>,
    /// Key of each shape.
    keys: Vec<u64>,
    /// Number of the topic, for each shape on a topic that is not read.
    others: Vec<Option<u32>>,
    /// Fields from the topic's name, for each shape on a topic whose address has parameters.
    named: Vec<Option<Named>>,
    /// Number of lines on each topic that is not read.
    other_counts: Vec<u64>,
    /// Number of values on each topic of another type than the program reads.
    mistyped: Vec<u64>,
    /// Lines predicted to have each shape, while they are sorted.
    lines: Vec<Rows>,
    /// First shape of a key, in the slot of the key or, if that is occupied, in a later one.
    first: Box<[u8; 1 << SLOT_BITS]>,
    locator: Option<TopicLocator>,
    /// The shape of many recent lines.
    usual: Option<u8>,
    /// Number of lines to sort together: few after a line without a known shape, since later ones are then read again.
    reach: usize,
}

impl Default for TraceShapes {
    fn default() -> TraceShapes {
        TraceShapes {
            shapes: Vec::new(),
            next: Vec::new(),
            keys: Vec::new(),
            others: Vec::new(),
            named: Vec::new(),
            other_counts: Vec::new(),
            mistyped: Vec::new(),
            lines: Vec::new(),
            first: Box::new([NONE; 1 << SLOT_BITS]),
            locator: None,
            usual: None,
            reach: Block::CAPACITY,
        }
    }
}

/// Fields given by the name of a topic.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) parameters: Arc<Parameters>,
    /// Texts of the parameters.
    pub(crate) texts: Box<[Box<str>]>,
}

impl Named {
    fn write(&self, block: &mut Block, mut rows: Rows) {
        while rows != 0 {
            self.parameters.write(&self.texts, block, rows.trailing_zeros() as usize);
            rows &= rows - 1;
        }
    }
}

/// Result of [`TraceShapes::read`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read {
    /// Number of lines.
    pub(crate) lines: usize,
    /// Whether the next line has no known shape.
    pub(crate) refused: bool,
    /// Rows whose lines have no time.
    pub(crate) untimed: Rows,
}

/// Position of the topic's name in lines.
#[derive(Clone, Copy, Debug)]
struct TopicLocator {
    /// Last position at which the name began: nearly always the next one begins there too.
    open: usize,
    /// Number of quotes before the one that begins the name.
    quotes: u32,
    /// The eight bytes before it.
    before: u64,
}

impl TopicLocator {
    fn record(text: &[u8], topic_at: usize) -> Option<TopicLocator> {
        let (before, _) = text.split_at_checked(topic_at)?;
        let quotes = before.iter().filter(|b| **b == b'"').count() as u32;
        Some(TopicLocator { open: topic_at, quotes, before: u64::from_le_bytes(*before.last_chunk()?) })
    }

    /// Returns the key of the line `text[at..end]`: a hash of its topic's name, if that is near its beginning.
    #[inline(always)]
    fn key(self, words: Words<'_>, at: usize, end: usize) -> u64 {
        let open = if words.at(at + self.open - 8) == self.before {
            Some(self.open)
        } else {
            self.find(words, at, end)
        };
        match open {
            Some(open) => hash_name(words, at + open + 1),
            None => UNNAMED,
        }
    }

    /// Returns the position of the name in the line `text[at..end]`, if that is near its beginning.
    #[inline(never)]
    fn find(self, words: Words<'_>, at: usize, end: usize) -> Option<usize> {
        let mut quotes = match words.text[at..].first_chunk() {
            Some(chunk) => quotes(chunk),
            None => {
                let mut chunk = [0; 64];
                chunk[..words.text.len() - at].copy_from_slice(&words.text[at..]);
                quotes(&chunk)
            }
        };
        if end - at < 64 {
            quotes &= (1 << (end - at)) - 1;
        }
        for _ in 0..self.quotes {
            quotes &= quotes.wrapping_sub(1);
        }
        let open = quotes.trailing_zeros() as usize;
        ((8..64).contains(&open) && words.at(at + open - 8) == self.before).then_some(open)
    }
}

/// Returns the key of the name at a position: a hash of its bytes up to the next quote, or of the significant ones.
#[inline(always)]
fn hash_name(words: Words<'_>, mut at: usize) -> u64 {
    let mut hash = 0_u64;
    for _ in 0..8 {
        let word = words.at(at);
        let others = word ^ 0x2222_2222_2222_2222;
        let quotes = others.wrapping_sub(0x0101_0101_0101_0101) & !others & 0x8080_8080_8080_8080;
        // The bytes below the first quote.
        let name = (quotes & quotes.wrapping_neg()).wrapping_sub(1) >> 7;
        let name = if quotes == 0 { word } else { word & name };
        hash = (hash.rotate_left(5) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if quotes != 0 {
            break;
        }
        at += 8;
    }
    hash
}

/// Returns the positions of the quotes in a chunk: bit `i` for byte `i`.
#[inline(always)]
fn quotes(chunk: &[u8; 64]) -> u64 {
    let mut bits = 0;
    for (i, part) in chunk.as_chunks::<16>().0.iter().enumerate() {
        let quotes = u8x16::new(*part).simd_eq(u8x16::splat(b'"'));
        bits |= u64::from(quotes.to_bitmask()) << (16 * i);
    }
    bits
}

impl TraceShapes {
    /// Records the shape of a line that was decoded by the slow path: on a topic that is read, or on another one with
    /// this number.
    pub(crate) fn record(
        &mut self,
        line: &[u8],
        root: &Node,
        topic: Result<TopicId, u32>,
        named: Option<Named>,
        time_unit: TimeUnit,
    ) {
        if line.len() > SHORT || self.shapes.len() == MOST {
            return;
        }
        let Some(shape) = Shape::record(line, root, topic.ok(), time_unit) else { return };
        if self.locator.is_none()
            && let Some(topic_at) = shape.topic_at
        {
            // The keys of shapes recorded earlier no longer match their lines.
            let other_counts = std::mem::take(&mut self.other_counts);
            let mistyped = std::mem::take(&mut self.mistyped);
            let locator = TopicLocator::record(line, topic_at);
            *self = TraceShapes { locator, other_counts, mistyped, ..TraceShapes::default() };
        }
        let Some(words) = Words::new(line) else { return };
        let key = self.key(words, 0, line.len());
        let slot = self.slot(key);
        let alike =
            std::iter::successors(Some(self.first[slot]), |i| self.next.get(usize::from(*i)).copied());
        if alike.take_while(|i| *i != NONE).count() == MOST_ALIKE {
            return;
        }
        let index = self.shapes.len() as u8;
        if self.shapes.is_empty() {
            self.usual = Some(index);
        }
        self.shapes.push(shape);
        self.next.push(std::mem::replace(&mut self.first[slot], index));
        self.keys.push(key);
        self.others.push(topic.err());
        self.named.push(named);
        self.lines.push(0);
    }

    #[inline(always)]
    fn key(&self, words: Words<'_>, at: usize, end: usize) -> u64 {
        // With `map_or` the call was not inlined: 50 instructions for each line.
        match self.locator {
            Some(locator) => locator.key(words, at, end),
            None => UNNAMED,
        }
    }

    /// Returns the slot of the first shape of a key, or the free one for it. There always is one, since there are more
    /// slots than shapes.
    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        let mut slot = (key >> (64 - SLOT_BITS)) as usize;
        while self.keys.get(usize::from(self.first[slot])).is_some_and(|taken| *taken != key) {
            slot = (slot + 1) % (1 << SLOT_BITS);
        }
        slot
    }

    /// Reads lines into the block, line `i` being `text[starts[i]..starts[i + 1]]`: up to the first without a known
    /// shape, or fewer. The block must have room for them. An event whose line has no time gets that of the previous
    /// one, the first one `time`.
    #[inline]
    pub(crate) fn read(&mut self, text: &[u8], starts: &[usize], block: &mut Block, time: Timestamp) -> Read {
        let usual = self.usual.map(usize::from);
        if let Some((usual, shape)) = usual.and_then(|usual| Some((usual, self.shapes.get_mut(usual)?))) {
            let first = block.len();
            let run = shape.run(text, starts, block, time);
            if let Some(named) = &self.named[usual] {
                named.write(block, below(block.len()) & !below(first));
            }
            let untimed = if shape.is_timed() { 0 } else { below(block.len()) & !below(first) };
            if run.rows + 1 < starts.len() {
                self.usual = None;
            }
            if run.mistyped > 0 {
                let topic = shape.topic();
                self.add_mistyped(topic, run.mistyped);
            }
            if run.rows > 0 {
                return Read { lines: run.rows, untimed, ..Read::default() };
            }
        }
        match Words::new(text) {
            Some(words) if !self.shapes.is_empty() => self.read_sorted(words, starts, block, time),
            _ => Read { refused: true, ..Read::default() },
        }
    }

    fn read_sorted(
        &mut self,
        words: Words<'_>,
        starts: &[usize],
        block: &mut Block,
        time: Timestamp,
    ) -> Read {
        let (first, text_before) = (block.len(), block.text_len());
        let wanted = (starts.len() - 1).min(self.reach).min(Block::CAPACITY - first);
        // Predicted shapes of the lines, in the order of their first lines.
        let (mut heads, mut head_count) = ([NONE; Block::CAPACITY], 0);
        // Row of each line, or the next row for a line that is no event.
        let mut rows = [0_u8; Block::CAPACITY + 1];
        let (mut lines, mut events) = (0, first as u8);
        while lines < wanted {
            let shape = self.first[self.slot(self.key(words, starts[lines], starts[lines + 1]))];
            if shape == NONE {
                break;
            }
            let known = &mut self.lines[usize::from(shape)];
            heads[head_count] = shape;
            head_count += usize::from(*known == 0);
            *known |= 1 << lines;
            rows[lines] = events;
            events += u8::from(self.shapes[usize::from(shape)].is_event());
            lines += 1;
        }
        rows[lines] = events;
        let looked_at = lines;

        // Results of each shape: rows of events, lines of others.
        let (mut parts, mut part_count) = ([(NONE, 0); Block::CAPACITY], 0);
        let (mut places, mut goals) = ([0; Block::CAPACITY], [Goal::default(); Block::CAPACITY]);
        for head in &heads[..head_count] {
            let mut left = std::mem::take(&mut self.lines[usize::from(*head)]) & below(lines);
            let is_event = self.shapes[usize::from(*head)].is_event();
            let (mut index, mut idle) = (*head, false);
            while left != 0 {
                let Some(shape) =
                    self.shapes.get_mut(usize::from(index)).filter(|s| s.is_event() == is_event)
                else {
                    // Later lines cannot count.
                    lines = left.trailing_zeros() as usize;
                    break;
                };
                let (mut count, mut rest) = (0, left);
                while rest != 0 {
                    let line = rest.trailing_zeros() as u8 % Block::CAPACITY as u8;
                    places[count] = starts[usize::from(line)];
                    goals[count] = Goal { row: rows[usize::from(line)], line };
                    count += 1;
                    rest &= rest - 1;
                }
                let (places, goals) = (&mut places[..count], &mut goals[..count]);
                let passed = shape.gather(words, starts, places, goals, block);
                let (mut passed_lines, mut passed_rows): (Rows, Rows) = (0, 0);
                for goal in passed {
                    passed_lines |= 1 << goal.line;
                    // A line that is no event may come after the last row.
                    passed_rows |= Rows::from(is_event) << (goal.row % Block::CAPACITY as u8);
                }
                if passed_lines != 0 {
                    parts[part_count] = (index, if is_event { passed_rows } else { passed_lines });
                    part_count += 1;
                }
                left &= !passed_lines;
                let tried = index;
                index = self.next[usize::from(tried)];
                idle |= tried == *head && passed_lines == 0;
            }
            // Only now, since it changes the order used above.
            if idle {
                self.postpone(*head);
            }
        }

        let end = usize::from(rows[lines]);
        let untimed = self.settle(&parts[..part_count], lines, end, block);
        let mut timeless = untimed;
        while timeless != 0 {
            let row = timeless.trailing_zeros() as usize;
            block.set_time(row, if row == first { time } else { block.time(row - 1) });
            timeless &= timeless - 1;
        }
        if end == first {
            block.truncate_text(text_before);
        }
        self.reach = if lines < looked_at { lines.max(1) } else { (2 * self.reach).min(Block::CAPACITY) };
        if let [(index, _)] = parts[..part_count]
            && lines >= MANY
            && self.shapes[usize::from(index)].is_event()
        {
            self.usual = Some(index);
        }
        Read { lines, refused: lines < wanted, untimed }
    }

    /// Completes the first lines: makes the rows below `end` that a shape has read events of the block, and counts the
    /// lines on topics that are not read. `parts` are the shapes, each with its rows or, if its lines are no events, its
    /// lines. Returns the rows whose lines have no time.
    #[inline(always)]
    fn settle(&mut self, parts: &[(u8, Rows)], lines: usize, end: usize, block: &mut Block) -> Rows {
        let mut untimed: Rows = 0;
        for (index, bits) in parts {
            let shape = &self.shapes[usize::from(*index)];
            if shape.is_event() {
                let bits = bits & below(end);
                shape.settle(block, bits);
                if let Some(named) = &self.named[usize::from(*index)] {
                    named.write(block, bits);
                }
                let (topic, mistyped) = (shape.topic(), shape.mistyped_per_row());
                untimed |= if shape.is_timed() { 0 } else { bits };
                if mistyped > 0 {
                    self.add_mistyped(topic, mistyped * u64::from(bits.count_ones()));
                }
            } else {
                let passed = u64::from((bits & below(lines)).count_ones());
                self.count_other(self.others[usize::from(*index)], passed);
            }
        }
        untimed
    }

    /// Counts lines on a topic that is not read.
    pub(crate) fn count_other(&mut self, topic: Option<u32>, lines: u64) {
        let Some(topic) = topic.map(|topic| topic as usize) else { return };
        if self.other_counts.len() <= topic {
            self.other_counts.resize(topic + 1, 0);
        }
        self.other_counts[topic] += lines;
    }

    /// Adds values on a topic of another type than the program reads.
    #[cold]
    pub(crate) fn add_mistyped(&mut self, topic: Option<TopicId>, count: u64) {
        let Some(topic) = topic.filter(|_| count > 0).map(TopicId::index) else { return };
        if self.mistyped.len() <= topic {
            self.mistyped.resize(topic + 1, 0);
        }
        self.mistyped[topic] += count;
    }

    /// Returns the number of values on each topic of another type than the program reads; topics beyond the end have
    /// none.
    pub(crate) fn mistyped(&self) -> &[u64] {
        &self.mistyped
    }

    /// Returns the number of lines on each topic that is not read.
    pub(crate) fn other_counts(&self) -> &[u64] {
        &self.other_counts
    }

    /// Returns the same counts for changes.
    pub(crate) fn other_counts_mut(&mut self) -> &mut Vec<u64> {
        &mut self.other_counts
    }

    /// Moves the first shape of a key, which no recent line had, after the next one.
    fn postpone(&mut self, index: u8) {
        let next = self.next[usize::from(index)];
        let slot = self.slot(self.keys[usize::from(index)]);
        if self.first[slot] == index && next != NONE {
            self.first[slot] = next;
            self.next[usize::from(index)] = std::mem::replace(&mut self.next[usize::from(next)], index);
        }
    }
}

/// Returns the mask of the bits below `end`.
#[inline(always)]
fn below(end: usize) -> Rows {
    Rows::MAX.checked_shr((Block::CAPACITY - end) as u32).unwrap_or(0)
}
