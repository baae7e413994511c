//! Messages by the values of their fields, which the caller has in memory: nothing is written and parsed between.

use std::convert::Infallible;

use rondel_decode::Encoding;
use rondel_event::{Block, Field, Read, Segment, Slot, Timestamp, TopicId, ValueType};

use super::{Route, Session, Stamp};
use crate::specification::input::TimeSource;

/// The integers up to here are exact as floats.
const EXACT: u64 = 1 << 53;

/// A value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A double-precision number.
    Float(f64),
}

/// A field that is read of the messages of a topic: see [`Session::value_fields`].
#[derive(Clone, Debug)]
pub struct ValueField {
    name: Box<str>,
    reads: Vec<ValueRead>,
}

/// The column that a field is written to, by the type of its values.
#[derive(Clone, Copy, Debug)]
enum ValueRead {
    Bool(u32),
    Int(u32),
    Float(u32),
    /// Presence of the field, which is written as true.
    Presence(u32),
}

/// The values of the fields of one message that are read.
#[derive(Clone, Debug, Default)]
pub struct MessageValues(Vec<Written>);

/// A value and its column.
#[derive(Clone, Copy, Debug)]
enum Written {
    Bool(u32, bool),
    Int(u32, i64),
    Float(u32, f64),
}

impl ValueField {
    /// The name of the field.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl ValueRead {
    /// The column, if values are written to it as they are.
    fn new(read: &Read, slot: Slot) -> Option<ValueRead> {
        match (read, slot) {
            (Read::Value(ValueType::Bool), Slot::Bool(column)) => Some(ValueRead::Bool(column)),
            (Read::Value(ValueType::Int), Slot::Int(column)) => Some(ValueRead::Int(column)),
            (Read::Value(ValueType::Float), Slot::Float(column)) => Some(ValueRead::Float(column)),
            (Read::Presence, Slot::Bool(column)) => Some(ValueRead::Presence(column)),
            _ => None,
        }
    }

    /// The value in the column; `None` if it has another type, or is one that decoders count.
    #[inline]
    fn written(self, value: FieldValue) -> Option<Written> {
        match (self, value) {
            (ValueRead::Float(column), FieldValue::Float(value)) if value.is_finite() => {
                Some(Written::Float(column, value))
            }
            (ValueRead::Float(column), FieldValue::Int(value)) if value.unsigned_abs() <= EXACT => {
                Some(Written::Float(column, value as f64))
            }
            (ValueRead::Int(column), FieldValue::Int(value)) => Some(Written::Int(column, value)),
            (ValueRead::Bool(column), FieldValue::Bool(value)) => Some(Written::Bool(column, value)),
            (ValueRead::Presence(column), _) => Some(Written::Bool(column, true)),
            _ => None,
        }
    }
}

impl MessageValues {
    /// Removes all values, for the next message.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds the value of a field, each at most once. Returns whether it can be written as it is; otherwise the message
    /// must be [pushed](Session::push) in its encoding, whose decoder counts values of another type, NaN and integers
    /// that are too large.
    #[inline]
    pub fn add(&mut self, field: &ValueField, value: FieldValue) -> bool {
        for read in &field.reads {
            let Some(written) = read.written(value) else { return false };
            self.0.push(written);
        }
        true
    }

    /// Writes the message to a new row of the block.
    #[inline]
    fn write(&self, topic: TopicId, time: Timestamp, block: &mut Block) {
        let row = block.push(topic, time);
        for written in &self.0 {
            match *written {
                Written::Bool(column, value) => block.set_bool(column, row, value),
                Written::Int(column, value) => block.set_int(column, row, value),
                Written::Float(column, value) => block.set_float(column, row, value),
            }
        }
    }
}

impl Session {
    /// The fields that are read of the messages of a topic, for [`Session::push_values`]. `None` if the text of a message is
    /// needed: where more is read than booleans and numbers of the message itself, where its time or a parameter of its
    /// address stands in the message, or where messages wait to be put in order. The encoding of the topic must be
    /// [`Encoding::Row`].
    pub fn value_fields(&self, topic: TopicId) -> Option<Vec<ValueField>> {
        let Route::Direct(direct) = &self.route else { return None };
        let input = self.plan.input(topic)?;
        let is_of_one_type = input.further.is_empty() && !input.is_partial;
        let is_as_written = !input.number_texts && !input.absent_is_default;
        let has_time_beside = input.time == TimeSource::Source && self.plan.names(topic).is_none();
        if input.encoding != Encoding::Row || !is_of_one_type || !is_as_written || !has_time_beside {
            return None;
        }
        let mut fields: Vec<ValueField> = Vec::new();
        for Field { path, read, slot, .. } in &direct.projections().get(topic.index())?.fields {
            let [Segment::Key(name)] = &path.0[..] else { return None };
            let read = ValueRead::new(read, *slot)?;
            match fields.iter_mut().find(|field| field.name == *name) {
                Some(field) => field.reads.push(read),
                None => fields.push(ValueField { name: name.clone(), reads: vec![read] }),
            }
        }
        Some(fields)
    }

    /// Takes a message as [`Session::push`] does, by the values of its [fields](Session::value_fields); a field without a
    /// value is not in the message. Returns whether it was taken: the first messages of a topic may have to be pushed as
    /// text, because all of their fields are inspected.
    #[inline]
    pub fn push_values(&mut self, topic: TopicId, stamp: Stamp, values: &MessageValues) -> bool {
        let Route::Direct(direct) = &mut self.route else { return false };
        let is_inspected = self.sharing.as_ref().is_some_and(|sharing| sharing.inspects(topic));
        if is_inspected || self.numbers.is_some() || stamp.origin.is_some() {
            return false;
        }
        let shared = &mut self.shared;
        let count = shared.counted() + 1;
        shared.accounts.receive_at(topic, None, count, &*shared.clock);
        shared.counts.received += 1;
        let size = size_of_val(values.0.as_slice());
        let Ok(()) = direct.push_by(topic, &stamp, size, shared, |_, time, block| {
            values.write(topic, time, block);
            Ok::<(), Infallible>(())
        });
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
        }
        true
    }
}
