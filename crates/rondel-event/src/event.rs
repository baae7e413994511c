//! Single events outside of a block.

use crate::block::Cell;
use crate::{Block, Slot, TableOrigin, Timestamp, TopicId};

/// Place of a field of an event among the fields of an event that another program has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldOrigin {
    /// A field that is read in the same way.
    Same(usize),
    /// A [table](crate::Table) of the same elements with other fields.
    Table(usize, TableOrigin),
    /// A field that is read in another way: only whether the message carries it is known.
    Presence(usize),
}

/// A single event, copied from a [`Block`] to wait and added to another block of the same layout later.
///
/// It holds the fields of its topic only. A reused event keeps its buffers, so a pool of waiting events
/// stops allocating once it has reached its largest size.
#[derive(Clone, Debug, Default)]
pub struct Event {
    topic: Option<TopicId>,
    time: Timestamp,
    arrival: Option<Timestamp>,
    number: Option<u64>,
    cells: Vec<Cell>,
    text: Vec<u8>,
}

impl Event {
    /// Replaces this event by the one in `row` of a block; `slots` are the slots of its topic's fields.
    pub fn copy(&mut self, block: &Block, row: usize, topic: TopicId, slots: &[Slot]) {
        self.topic = Some(topic);
        self.time = block.time(row);
        self.arrival = block.arrival(row);
        self.number = block.number(row);
        self.cells.clear();
        self.text.clear();
        self.cells.extend(slots.iter().map(|&slot| block.cell(slot, row, &mut self.text)));
    }

    /// Adds the event to a block with the time `time` and returns its row.
    ///
    /// # Panics
    /// If the block is full, or has another layout than the one that the event was copied from.
    pub fn push(&self, block: &mut Block, time: Timestamp, slots: &[Slot]) -> usize {
        let row = block.push(self.topic.unwrap_or(TopicId(0)), time);
        if let Some(arrival) = self.arrival {
            block.set_arrival(row, arrival);
        }
        if let Some(number) = self.number {
            block.set_number(row, number);
        }
        self.fill(block, row, slots);
        row
    }

    /// Adds the fields to the event in `row`, which combines messages of several topics in one event.
    ///
    /// # Panics
    /// If the block has another layout than the one that the event was copied from.
    pub fn join(&self, block: &mut Block, row: usize, slots: &[Slot]) {
        block.extend(self.topic.unwrap_or(TopicId(0)), 1 << row);
        if let Some(number) = self.number.max(block.number(row)) {
            block.set_number(row, number);
        }
        self.fill(block, row, slots);
    }

    /// Marks all fields of the event as invalid, so that their values are unknown.
    pub fn forget_values(&mut self) {
        let carried = self.cells.iter_mut().filter(|cell| !matches!(cell, Cell::Absent));
        carried.for_each(|cell| *cell = Cell::Invalid);
    }

    /// Returns the topic; `None` if nothing was copied yet.
    pub fn topic(&self) -> Option<TopicId> {
        self.topic
    }

    /// Returns the bytes of its fields and texts.
    pub fn bytes(&self) -> usize {
        size_of::<Event>() + self.cells.len() * size_of::<Cell>() + self.text.len()
    }

    /// Returns the bytes that its texts take, also after they were replaced by shorter ones.
    pub fn text_capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Returns the time.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Appends the event as bytes, which [`Event::read`] decodes.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.topic.map_or(u32::MAX, |topic| topic.0).to_le_bytes());
        to.extend_from_slice(&self.time.as_nanos().to_le_bytes());
        to.push(u8::from(self.arrival.is_some()));
        to.extend_from_slice(&self.arrival.map_or(0, Timestamp::as_nanos).to_le_bytes());
        to.extend_from_slice(&self.number.unwrap_or(u64::MAX).to_le_bytes());
        // A block, from which the event was copied, has fewer than 2^32 columns.
        to.extend_from_slice(&(self.cells.len() as u32).to_le_bytes());
        for cell in &self.cells {
            let (kind, value) = match *cell {
                Cell::Absent => (0, 0),
                Cell::Invalid => (1, 0),
                Cell::Bool(value) => (2, u64::from(value)),
                Cell::Int(value) => (3, value as u64),
                Cell::Float(value) => (4, value.to_bits()),
                Cell::Text(start, end) => (5, u64::from(start) | u64::from(end) << 32),
            };
            to.push(kind);
            if kind > 1 {
                to.extend_from_slice(&value.to_le_bytes());
            }
        }
        to.extend_from_slice(&self.text);
    }

    /// Decodes the bytes of [`Event::write`]; `None` if they are not an event.
    pub fn read(bytes: &[u8]) -> Option<Event> {
        let mut rest = bytes;
        let topic = u32::from_le_bytes(take(&mut rest)?);
        let time = Timestamp::from_nanos(i64::from_le_bytes(take(&mut rest)?));
        let [has_arrival] = take(&mut rest)?;
        let arrival = Timestamp::from_nanos(i64::from_le_bytes(take(&mut rest)?));
        let number = u64::from_le_bytes(take(&mut rest)?);
        let count = u32::from_le_bytes(take(&mut rest)?);
        let mut cells = Vec::new();
        for _ in 0..count {
            let [kind] = take(&mut rest)?;
            let value = if kind > 1 { u64::from_le_bytes(take(&mut rest)?) } else { 0 };
            cells.push(match kind {
                0 => Cell::Absent,
                1 => Cell::Invalid,
                2 => Cell::Bool(value != 0),
                3 => Cell::Int(value as i64),
                4 => Cell::Float(f64::from_bits(value)),
                5 => Cell::Text(value as u32, (value >> 32) as u32),
                _ => return None,
            });
        }
        let is_text = |cell: &Cell| match *cell {
            Cell::Text(start, end) => {
                rest.get(start as usize..end as usize).is_some_and(|text| std::str::from_utf8(text).is_ok())
            }
            _ => true,
        };
        if !cells.iter().all(is_text) {
            return None;
        }
        Some(Event {
            topic: (topic != u32::MAX).then_some(TopicId(topic)),
            time,
            arrival: (has_arrival != 0).then_some(arrival),
            number: (number != u64::MAX).then_some(number),
            cells,
            text: rest.to_vec(),
        })
    }

    /// Returns the event on another topic, whose fields are found among its own.
    #[must_use]
    pub fn rearranged(&self, topic: TopicId, places: &[Option<FieldOrigin>]) -> Event {
        let mut event = Event { topic: Some(topic), cells: Vec::with_capacity(places.len()), ..self.clone() };
        for place in places {
            let own = |at: &usize| self.cells.get(*at).copied().unwrap_or(Cell::Absent);
            let cell = match place {
                None => Cell::Absent,
                Some(FieldOrigin::Same(at)) => own(at),
                Some(FieldOrigin::Table(at, origin)) => match own(at) {
                    Cell::Text(start, end) => {
                        let text = self.text.get(start as usize..end as usize).unwrap_or_default();
                        event.add_text(origin.repack(text))
                    }
                    cell => cell,
                },
                Some(FieldOrigin::Presence(at)) => match own(at) {
                    Cell::Absent => Cell::Absent,
                    _ => Cell::Invalid,
                },
            };
            event.cells.push(cell);
        }
        event
    }

    /// Adds a text for a cell; none makes an invalid one.
    fn add_text(&mut self, text: Option<String>) -> Cell {
        let start = self.text.len();
        self.text.extend(text.as_deref().unwrap_or_default().as_bytes());
        match (text, u32::try_from(start), u32::try_from(self.text.len())) {
            (Some(_), Ok(start), Ok(end)) => Cell::Text(start, end),
            _ => Cell::Invalid,
        }
    }

    /// Whether the fields fit these slots in number and type; invalid fields fit any slot.
    pub fn fits(&self, slots: &[Slot]) -> bool {
        let is_of = |(cell, slot): (&Cell, &Slot)| {
            matches!(
                (cell, slot),
                (Cell::Absent | Cell::Invalid, _)
                    | (Cell::Bool(_), Slot::Bool(_))
                    | (Cell::Int(_), Slot::Int(_))
                    | (Cell::Float(_), Slot::Float(_))
                    | (Cell::Text(..), Slot::String(_))
            )
        };
        self.cells.len() == slots.len() && self.cells.iter().zip(slots).all(is_of)
    }

    fn fill(&self, block: &mut Block, row: usize, slots: &[Slot]) {
        for (cell, &slot) in self.cells.iter().zip(slots) {
            block.set_cell(slot, row, *cell, &self.text);
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    const LAYOUT: Layout = Layout { topics: 2, bools: 1, ints: 1, floats: 1, strings: 2 };
    const SLOTS: [Slot; 5] = [Slot::Bool(0), Slot::Int(0), Slot::Float(0), Slot::String(0), Slot::String(1)];

    #[test]
    fn a_copied_event_equals_the_original() {
        let mut block = Block::new(LAYOUT);
        block.push(TopicId(0), Timestamp::ZERO);
        let row = block.push(TopicId(1), Timestamp::from_nanos(5));
        block.set_arrival(row, Timestamp::from_nanos(6));
        block.set_bool(0, row, true);
        block.set_invalid(Slot::Int(0), row);
        block.set_string(0, row, "abc");
        block.set_string(1, row, "de");
        let mut event = Event::default();
        event.copy(&block, row, TopicId(1), &SLOTS);
        let mut other = Block::new(LAYOUT);
        assert_eq!(event.push(&mut other, event.time(), &SLOTS), 0);
        assert_eq!((other.time(0), other.arrival(0)), (Timestamp::from_nanos(5), block.arrival(row)));
        assert_eq!(
            (other.topic(0), other.bools(0).values, other.floats(0).present),
            (Some(TopicId(1)), 1, 0)
        );
        assert_eq!((other.ints(0).present, other.ints(0).valid), (1, 0));
        assert_eq!((other.text(0, 0), other.text(1, 0)), (&b"abc"[..], &b"de"[..]));
    }

    #[test]
    fn a_decoded_event_equals_the_written_one() {
        let mut block = Block::new(LAYOUT);
        let row = block.push(TopicId(1), Timestamp::from_nanos(-5));
        block.set_arrival(row, Timestamp::from_nanos(6));
        block.set_bool(0, row, true);
        block.set_invalid(Slot::Int(0), row);
        block.set_float(0, row, f64::NAN);
        block.set_string(1, row, "dé");
        let mut event = Event::default();
        event.copy(&block, row, TopicId(1), &SLOTS);
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        let again = Event::read(&bytes).unwrap_or_default();
        assert_eq!(format!("{again:?}"), format!("{event:?}"));
        assert!(again.fits(&SLOTS) && !again.fits(&SLOTS[1..]));
        let mut other = SLOTS;
        other.swap(0, 2);
        assert!(!again.fits(&other));
        // Altered bytes are either refused or decode to an event that can be used.
        for (at, value) in (0..bytes.len()).flat_map(|at| [0, 1, 5, 0x7F, 0xFF].map(|value| (at, value))) {
            let mut altered = bytes.clone();
            altered[at] = value;
            for bytes in [&altered[..], &bytes[..at]] {
                if let Some(event) = Event::read(bytes).filter(|event| event.fits(&SLOTS)) {
                    let topic = event.topic().filter(|topic| topic.index() < LAYOUT.topics);
                    block.clear();
                    Event { topic, ..event }.push(&mut block, Timestamp::ZERO, &SLOTS);
                }
            }
        }
    }

    #[test]
    fn messages_of_two_topics_join_in_one_event() {
        let mut block = Block::new(LAYOUT);
        let mut events = [Event::default(), Event::default()];
        for (i, event) in events.iter_mut().enumerate() {
            let row = block.push(TopicId(i as u32), Timestamp::from_nanos(i as i64));
            match i {
                0 => block.set_int(0, row, 7),
                _ => block.set_float(0, row, 0.5),
            }
            event.copy(&block, row, TopicId(i as u32), &SLOTS[i + 1..i + 2]);
        }
        block.clear();
        let row = events[0].push(&mut block, Timestamp::ZERO, &SLOTS[1..2]);
        events[1].forget_values();
        events[1].join(&mut block, row, &SLOTS[2..3]);
        assert_eq!((block.len(), block.topic_rows(TopicId(0)), block.topic_rows(TopicId(1))), (1, 1, 1));
        assert_eq!((block.ints(0).values[0], block.floats(0).present, block.floats(0).valid), (7, 1, 0));
    }
}
