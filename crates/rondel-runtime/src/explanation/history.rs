//! Histories: messages, and the values of fields and of parts of formulas over time.

use std::cmp::Ordering;

use rondel_event::{Timestamp, TopicId, Value};

/// A place on the time line: at a message, at a time without a message, or right after a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// The time in nanoseconds, in the range of the engine; 0 where steps are counted.
    pub(super) time: i64,
    /// Whether the place is right after the time.
    pub(super) after: bool,
    /// The step of the message. Places without a message follow those with one at the same time.
    step: u64,
    /// The position of an element of the message that a later one with the same name follows; the last one with a name
    /// is at the place of the message.
    element: u32,
}

impl Place {
    /// At a message.
    pub(super) fn message(time: i64, step: u64) -> Place {
        Place { time, after: false, step, element: u32::MAX }
    }

    /// At an element of the message that a later one with the same name follows.
    pub(super) fn at_element(self, element: u32) -> Place {
        Place { element, ..self }
    }

    /// At the message as a whole.
    pub(super) fn at_message(self) -> Place {
        Place { element: u32::MAX, ..self }
    }

    /// At a time without a message, or right after a time.
    pub(super) fn between(time: i64, after: bool) -> Place {
        Place { time, after, step: u64::MAX, element: u32::MAX }
    }

    /// The number of its message, if it has one.
    pub(super) fn step(&self) -> Option<u64> {
        (self.step < u64::MAX).then_some(self.step)
    }
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Its step.
    pub(super) step: u64,
    /// Its number among all messages, of which the monitor may see only some.
    pub(super) number: u64,
    /// Its time in the range of the engine, never before that of the previous message.
    pub(super) time: i64,
    /// Its own time.
    pub(super) given: Timestamp,
    pub(super) topic: Option<TopicId>,
}

/// The last messages, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    all: Vec<Message>,
}

impl Messages {
    /// Adds a message and keeps at least the last `most`.
    pub(super) fn push(&mut self, message: Message, most: usize) {
        if self.all.len() >= 2 * most {
            self.all.drain(..most);
        }
        self.all.push(message);
    }

    pub(super) fn all(&self) -> &[Message] {
        &self.all
    }
}

/// The message with this step, if it is kept.
pub(super) fn message(messages: &[Message], step: u64) -> Option<&Message> {
    messages.get(messages.partition_point(|message| message.step < step)).filter(|found| found.step == step)
}

/// A value, from a place on.
#[derive(Clone, Debug)]
struct Segment {
    from: Place,
    /// Where the value ends, if the values that followed were removed.
    until: Option<Place>,
    /// The value; none while it is unknown.
    value: Option<Value>,
}

/// The values of a field, or of a part of a formula, over time.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    segments: Vec<Segment>,
}

impl History {
    /// Records a value from a place on.
    pub(super) fn set(&mut self, from: Place, value: Option<Value>) {
        let at = self.segments.partition_point(|segment| segment.from < from);
        let segment = Segment { from, until: None, value };
        match self.segments.get_mut(at) {
            Some(same) if same.from == from => same.value = segment.value,
            _ => self.segments.insert(at, segment),
        }
    }

    /// The last value, if there is one.
    pub(super) fn last(&self) -> Option<&Option<Value>> {
        self.segments.last().map(|segment| &segment.value)
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// The places at which a value began, also an equal one.
    pub(super) fn changes(&self) -> impl DoubleEndedIterator<Item = Place> {
        self.segments.iter().map(|segment| segment.from)
    }

    fn index(&self, at: Place) -> Option<usize> {
        let index = self.segments.partition_point(|segment| segment.from <= at).checked_sub(1)?;
        self.segments[index].until.is_none_or(|until| at < until).then_some(index)
    }

    /// The value at a place, if it is kept.
    pub(super) fn at(&self, at: Place) -> Option<&Option<Value>> {
        Some(&self.segments[self.index(at)?].value)
    }

    /// The place from which on the value at a place holds.
    pub(super) fn since(&self, at: Place) -> Option<Place> {
        Some(self.segments[self.index(at)?].from)
    }

    /// The value at a place of a number that is interpolated linearly.
    pub(super) fn line_at(&self, at: Place) -> Option<Option<Value>> {
        let index = self.index(at)?;
        let Segment { from, until, value } = &self.segments[index];
        if from.time == at.time && !at.after {
            return Some(value.clone());
        }
        let next = self.segments.get(index + 1).filter(|_| until.is_none());
        let (Some(start), Some(end)) = (number(value), next.and_then(|next| number(&next.value))) else {
            return Some(None);
        };
        let length = |from: i64, to: i64| to.saturating_sub(from) as f64;
        let to = next.map_or(at.time, |next| next.from.time);
        let part = (end - start) * length(from.time, at.time) / length(from.time, to);
        Some(if part == 0.0 { value.clone() } else { Some(Value::Float(start + part)) })
    }

    /// The last place up to which an interpolated number is known at a place, if the next value is still missing there.
    pub(super) fn open_end(&self, at: Place) -> Option<Place> {
        let seen = self.segments.partition_point(|segment| segment.from <= at);
        self.segments[..seen].last().filter(|last| number(&last.value).is_some()).map(|last| last.from)
    }

    /// Removes old values, except those at the places in `keep`.
    pub(super) fn thin(&mut self, most: usize, keep: &[Place]) {
        let old = self.segments.len().saturating_sub(most);
        let mut kept: Vec<Segment> = Vec::with_capacity(most + most / 2);
        let mut segments = std::mem::take(&mut self.segments).into_iter().enumerate().peekable();
        while let Some((i, segment)) = segments.next() {
            let next = segments.peek().map(|(_, next)| next.from);
            let here = |place: &&Place| **place >= segment.from && next.is_none_or(|next| **place < next);
            let is_kept = i >= old || {
                let first = keep.partition_point(|place| *place < segment.from);
                keep.get(first).as_ref().is_some_and(here)
            };
            if is_kept {
                kept.push(segment);
            } else if let Some(last) = kept.last_mut() {
                last.until.get_or_insert(segment.from);
            }
        }
        let too_many = kept.len().saturating_sub(most + most / 2);
        kept.drain(..too_many);
        self.segments = kept;
    }
}

/// A value as a number that can be interpolated.
fn number(value: &Option<Value>) -> Option<f64> {
    match value {
        Some(Value::Int(x)) => Some(*x as f64),
        Some(Value::Float(x)) => Some(*x).filter(|x| x.is_finite()),
        _ => None,
    }
}

/// The last message at or before a time.
pub(super) fn last_until(messages: &[Message], time: i64) -> Option<&Message> {
    let is_after = |message: &Message| message.time.cmp(&time) == Ordering::Greater;
    messages[..messages.partition_point(|message| !is_after(message))].last()
}
