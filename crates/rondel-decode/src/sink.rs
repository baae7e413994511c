//! Writes the values of a message to the slots of a row.

mod condition;
mod elements;
mod refused;
mod scalar;
mod target;

use rondel_event::{Block, Countable, Slot, Test, TimeUnit, Timestamp, TopicId};

use crate::elements::{Measurand, Seen};
use crate::error::{MessageError, MessageErrorKind, Parsed};
use crate::json::{Meaning, characters, text_time};
use crate::plain::decimal;
pub(crate) use condition::is_of_number;
use condition::{holds, is_one_of, is_other, is_unknown};
pub(crate) use elements::ElementTest;
pub use refused::{FirstMistyped, NoNumber, Refused};
pub(crate) use scalar::{Scalar, float_nanos, instant, is_exact, is_integer, span, sum};
use scalar::{is_null, shown};
pub(crate) use target::{Target, elements_target};

/// The row of a message.
pub(crate) struct Sink<'w> {
    pub(crate) block: &'w mut Block,
    pub(crate) row: usize,
    /// Unit of times that are plain numbers.
    pub(crate) unit: TimeUnit,
    /// Time in the message, if there is one.
    pub(crate) time: Option<Timestamp>,
    /// Number of values of another type than is read, or out of its range.
    pub(crate) mistyped: u64,
    /// Column of the first of them, and its offset in the message.
    first_mistyped: Option<(Slot, usize)>,
    /// Offset of the value that is written, if the decoder sets it.
    pub(crate) at: usize,
    /// Number of NaN values that are read.
    pub(crate) not_numbers: u64,
    /// Column of an integer beyond the signed 64-bit range, or of one that a double rounds.
    pub(crate) large: Option<Slot>,
    /// Number of array elements omitted because they are NaN.
    pub(crate) left_out: u64,
    /// Conditions that the current element meets.
    pub(crate) met: u64,
    /// Conditions whose number is NaN or null in the current element.
    pub(crate) unknown: u64,
    /// The current element, if it is measured.
    pub(crate) element: Measurand,
    /// Whether a compared integer of an element has another type.
    pub(crate) has_other: bool,
    /// A text that is not a number although one is read.
    pub(crate) no_number: Option<NoNumber>,
    /// Tested values of the current element, if they are reported.
    pub(crate) seen: Option<Box<Seen>>,
}

impl<'w> Sink<'w> {
    /// Begins a row for a message on `topic`, with the time `time` unless the message contains one.
    #[inline(always)]
    pub(crate) fn begin(block: &'w mut Block, topic: TopicId, time: Timestamp, unit: TimeUnit) -> Sink<'w> {
        let row = block.push(topic, time);
        Sink::at(block, row, unit)
    }

    /// Writes to a row that was already begun.
    #[inline(always)]
    pub(crate) fn at(block: &'w mut Block, row: usize, unit: TimeUnit) -> Sink<'w> {
        Sink {
            block,
            row,
            unit,
            time: None,
            mistyped: 0,
            first_mistyped: None,
            at: 0,
            not_numbers: 0,
            left_out: 0,
            large: None,
            met: 0,
            unknown: 0,
            element: Measurand::Other,
            has_other: false,
            no_number: None,
            seen: None,
        }
    }

    /// Ends the row, or removes it if the message could not be read. Adds the counts of refused values.
    #[inline(always)]
    pub(crate) fn end(self, read: Parsed<()>, refused: &mut Refused) -> Result<(), MessageError> {
        if let Err(fault) = read {
            self.block.pop();
            return Err(fault.into_error());
        }
        if let Some(time) = self.time {
            self.block.set_time(self.row, time);
        }
        let Sink { mistyped, not_numbers, left_out, large, no_number, .. } = self;
        let first = self.first_mistyped.map(|(slot, at)| {
            let time = self.block.time(self.row);
            FirstMistyped { slot, time, offset: Some(at) }
        });
        refused.add(Refused { mistyped, first, not_numbers, left_out, large, no_number: None });
        refused.add_text(no_number);
        Ok(())
    }

    /// Writes a value, or marks it as invalid if it has another type.
    #[inline(always)]
    pub(crate) fn write(&mut self, to: &Target, value: Scalar<'_>) -> Result<(), MessageErrorKind> {
        match (to, value) {
            (Target::Float(column), Scalar::Float(value)) => self.float(*column, value),
            (Target::Int(column), Scalar::Int(value)) => self.block.set_int(*column, self.row, value),
            (Target::Bool(column), Scalar::Bool(value)) => self.block.set_bool(*column, self.row, value),
            _ => return self.write_seldom(to, value),
        }
        Ok(())
    }

    /// Writes a number; NaN is unknown, like null in JSON.
    #[inline(always)]
    fn float(&mut self, column: u32, value: f64) {
        if value.is_nan() {
            self.not_numbers += 1;
            self.block.set_invalid(Slot::Float(column), self.row);
        } else {
            self.block.set_float(column, self.row, value);
        }
    }

    fn write_seldom(&mut self, to: &Target, value: Scalar<'_>) -> Result<(), MessageErrorKind> {
        match (to, value) {
            (Target::Float(column), Scalar::Int(value)) => self.float(*column, value as f64),
            (Target::Float(column), Scalar::Large(value)) => self.float(*column, value),
            // Writers in JavaScript and Lua do not distinguish integers, and neither does JSON.
            (Target::Int(column), Scalar::Float(value)) if is_integer(value) => {
                self.block.set_int(*column, self.row, value as i64);
            }
            (Target::Exact(column), Scalar::Float(value)) => self.float(*column, value),
            (Target::Exact(column), Scalar::Int(value)) if is_exact(value) => {
                self.float(*column, value as f64);
            }
            (Target::Exact(column), Scalar::Int(_) | Scalar::Large(_)) => {
                self.large = Some(Slot::Float(*column));
                self.refuse(Slot::Float(*column), true);
            }
            (Target::IsNan(column), Scalar::Float(value)) => {
                self.block.set_bool(*column, self.row, value.is_nan());
            }
            (Target::IsNan(column), Scalar::Int(_) | Scalar::Large(_)) => {
                self.block.set_bool(*column, self.row, false);
            }
            (Target::Text(column), Scalar::Text(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| MessageErrorKind::NotText)?;
                self.block.set_string(*column, self.row, text);
            }
            (Target::Decimal(number), Scalar::Text(text)) => {
                let value = decimal(text);
                if let (Scalar::Text(text), Some(slot)) = (value, number.slot()) {
                    self.no_number = Some(NoNumber::new(slot, text));
                }
                return self.write(number, value);
            }
            (Target::Decimal(number), value) => return self.write(number, value),
            (Target::Present(column), _) => self.block.set_bool(*column, self.row, true),
            (Target::Length(_, None | Some(Countable::Text)), Scalar::Text(text)) => {
                self.length(to, characters(text) as u64);
            }
            (Target::Length(..), Scalar::Bytes(count)) => self.length(to, count),
            (Target::Label(column, labels), Scalar::Int(value)) => {
                match labels.binary_search_by_key(&value, |(value, _)| *value) {
                    Ok(at) => self.block.set_string(*column, self.row, &labels[at].1),
                    Err(_) => self.refuse(Slot::String(*column), true),
                }
            }
            (Target::Test(bit, test), value) => self.test(*bit, test, value),
            (Target::OneOf(bit, values), value) => self.meet(*bit, is_one_of(values, value), value),
            (Target::Element, value) => {
                self.element = match value {
                    Scalar::Int(value) => Measurand::Number(value as f64),
                    Scalar::Large(value) | Scalar::Float(value) => Measurand::Number(value),
                    Scalar::Null => Measurand::Null,
                    _ => Measurand::Other,
                };
            }
            (Target::EventTime, value) => {
                self.time = Some(Timestamp::from_nanos(self.nanos(value, Meaning::Time)?));
            }
            (Target::Time(column), value) => self.span(*column, value, Meaning::Time),
            (Target::Duration(column), value) => self.span(*column, value, Meaning::Duration),
            (Target::Bool(column), value) => self.refuse(Slot::Bool(*column), !is_null(value)),
            // The value itself is read too, and counted.
            (Target::IsNan(column), _) => self.refuse(Slot::Bool(*column), false),
            (Target::Int(column), Scalar::Large(_)) => {
                self.large = Some(Slot::Int(*column));
                self.refuse(Slot::Int(*column), true);
            }
            (Target::Int(column) | Target::Length(column, _), value) => {
                self.refuse(Slot::Int(*column), !is_null(value));
            }
            (Target::Float(column) | Target::Exact(column), value) => {
                self.refuse(Slot::Float(*column), !is_null(value));
            }
            (Target::Text(column) | Target::Label(column, _), value) => {
                self.refuse(Slot::String(*column), !is_null(value));
            }
        }
        Ok(())
    }

    /// Tests a value of the current element.
    #[inline(always)]
    fn test(&mut self, bit: u8, test: &Test, value: Scalar<'_>) {
        let holds = holds(test, value);
        self.has_other |= is_of_number(test) && is_other(test, value);
        if !holds && is_unknown(test, value) {
            self.unknown |= 1 << bit;
        }
        self.meet(bit, holds, value);
    }

    /// Notes whether a value of the current element meets a condition.
    #[inline(always)]
    fn meet(&mut self, bit: u8, holds: bool, value: Scalar<'_>) {
        self.met = self.met & !(1 << bit) | u64::from(holds) << bit;
        if let Some(seen) = &mut self.seen {
            seen.push((bit, shown(value)));
        }
    }

    /// Clears a written value.
    pub(crate) fn clear(&mut self, to: &Target) {
        match (to.slot(), to) {
            (Some(slot), _) => self.block.set_absent(slot, self.row),
            (None, Target::Test(bit, _) | Target::OneOf(bit, _)) => self.met &= !(1 << bit),
            (None, Target::Element) => self.element = Measurand::Other,
            (None, _) => self.time = None,
        }
    }

    /// Marks the slots that the message did not write as unknown.
    #[inline(always)]
    pub(crate) fn mark_missing(&mut self, optional: &[Slot]) {
        for slot in optional {
            // A written value stays valid.
            self.block.mark_present(*slot, 1 << self.row);
        }
    }

    /// Writes a number of elements.
    pub(crate) fn length(&mut self, to: &Target, count: u64) {
        if let (Target::Length(column, _), Ok(count)) = (to, i64::try_from(count)) {
            self.block.set_int(*column, self.row, count);
        }
    }

    /// Marks a value as having another type, and counts it unless it is null.
    pub(crate) fn refuse(&mut self, slot: Slot, counts: bool) {
        self.block.set_invalid(slot, self.row);
        self.count_mistyped(slot, u64::from(counts));
    }

    /// Counts values of a column with another type than the program reads.
    pub(crate) fn count_mistyped(&mut self, slot: Slot, count: u64) {
        self.mistyped += count;
        if count > 0 {
            self.first_mistyped.get_or_insert((slot, self.at));
        }
    }

    /// Marks a value as missing, because null or a value of another type is in place of its enclosing object.
    pub(crate) fn lack(&mut self, to: &Target, is_null: bool) -> Result<(), MessageErrorKind> {
        match to {
            // It is not present, and meets no condition.
            Target::Present(_) => Ok(()),
            Target::Test(bit, _) | Target::OneOf(bit, _) => {
                self.met &= !(1 << bit);
                Ok(())
            }
            _ => self.write_seldom(to, if is_null { Scalar::Null } else { Scalar::Other }),
        }
    }

    fn span(&mut self, column: u32, value: Scalar<'_>, meaning: Meaning) {
        match self.nanos(value, meaning) {
            Ok(nanos) => self.block.set_int(column, self.row, nanos),
            Err(_) => self.refuse(Slot::Int(column), !is_null(value)),
        }
    }

    /// Returns the nanoseconds of a time or a duration.
    fn nanos(&self, value: Scalar<'_>, meaning: Meaning) -> Result<i64, MessageErrorKind> {
        match value {
            Scalar::Int(value) => {
                let unit_ns = 10_i64.pow(self.unit.nanos_exponent().into());
                value.checked_mul(unit_ns).ok_or(MessageErrorKind::TimeOutOfRange)
            }
            Scalar::Float(value) => float_nanos(value, 10_i64.pow(self.unit.nanos_exponent().into())),
            Scalar::Text(text) => text_time(text, self.unit, meaning).map(Timestamp::as_nanos).map_err(
                |is_range| match is_range {
                    true => MessageErrorKind::TimeOutOfRange,
                    false => MessageErrorKind::NotATime,
                },
            ),
            Scalar::Instant(nanos) if meaning == Meaning::Time => Ok(nanos),
            Scalar::Span(nanos) => Ok(nanos),
            Scalar::Large(_) | Scalar::Beyond => Err(MessageErrorKind::TimeOutOfRange),
            _ => Err(MessageErrorKind::NotATime),
        }
    }
}
