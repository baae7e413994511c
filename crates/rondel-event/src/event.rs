use crate::block::Cell;
use crate::{Block, Slot, Timestamp, TopicId};

/// One event by itself, taken out of a [`Block`] to wait, and put into another of the same layout later.
///
/// It holds the fields of its topic only. Used again, it keeps its room: a place for events that wait
/// allocates nothing once as many have waited as ever will.
#[derive(Clone, Debug, Default)]
pub struct Event {
    topic: Option<TopicId>,
    time: Timestamp,
    arrival: Option<Timestamp>,
    cells: Vec<Cell>,
    text: Vec<u8>,
}

impl Event {
    /// Becomes the event in `row` of a block; `slots` are where the fields of its topic are.
    pub fn copy(&mut self, block: &Block, row: usize, topic: TopicId, slots: &[Slot]) {
        self.topic = Some(topic);
        self.time = block.time(row);
        self.arrival = block.arrival(row);
        self.cells.clear();
        self.text.clear();
        self.cells.extend(slots.iter().map(|&slot| block.cell(slot, row, &mut self.text)));
    }

    /// Adds it to a block that is not full, as an event of this time, and returns its row.
    ///
    /// # Panics
    /// When the block is full, as [`Block::push`], or has another layout than that it was copied from.
    pub fn push(&self, block: &mut Block, time: Timestamp, slots: &[Slot]) -> usize {
        let row = block.push(self.topic.unwrap_or(TopicId(0)), time);
        if let Some(arrival) = self.arrival {
            block.set_arrival(row, arrival);
        }
        self.fill(block, row, slots);
        row
    }

    /// Adds it to the event in `row`, so that messages of several topics are one event.
    ///
    /// # Panics
    /// As [`Event::push`].
    pub fn join(&self, block: &mut Block, row: usize, slots: &[Slot]) {
        block.extend(self.topic.unwrap_or(TopicId(0)), 1 << row);
        self.fill(block, row, slots);
    }

    /// Makes the fields that it carries unknown: they are not to be relied on any more.
    pub fn forget_values(&mut self) {
        let carried = self.cells.iter_mut().filter(|cell| !matches!(cell, Cell::Absent));
        carried.for_each(|cell| *cell = Cell::Invalid);
    }

    /// The topic that it came on; none if nothing was copied yet.
    pub fn topic(&self) -> Option<TopicId> {
        self.topic
    }

    /// Its time.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    fn fill(&self, block: &mut Block, row: usize, slots: &[Slot]) {
        for (cell, &slot) in self.cells.iter().zip(slots) {
            block.set_cell(slot, row, *cell, &self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    const LAYOUT: Layout = Layout { topics: 2, bools: 1, ints: 1, floats: 1, strings: 2 };
    const SLOTS: [Slot; 5] = [Slot::Bool(0), Slot::Int(0), Slot::Float(0), Slot::String(0), Slot::String(1)];

    #[test]
    fn an_event_survives_waiting() {
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
    fn events_of_two_topics_are_one() {
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
