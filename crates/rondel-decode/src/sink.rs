//! Writes the values of a message to the slots of a row.

use rondel_event::{
    Block, Countable, Quantifier, Slot, Test, TimeUnit, Timestamp, TopicId, Value, ValueType,
};

use crate::elements::{Measurand, Measured, Seen, Tested, Witness};
use crate::error::{MessageError, MessageErrorKind, Parsed};
use crate::fields::Alternatives;
use crate::fields::Want;
use crate::json::{Meaning, characters, text_time};
use crate::plain::decimal;

const NS_PER_S: i64 = 1_000_000_000;

/// Target of a value.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Columns.
    Bool(u32),
    Int(u32),
    Float(u32),
    /// A column of floats, for numbers that are exact there.
    Exact(u32),
    Text(u32),
    Time(u32),
    Duration(u32),
    /// A column of numbers, which may be written as texts.
    Decimal(Box<Target>),
    /// A column of booleans, for the presence of the field.
    Present(u32),
    /// A column of integers: the number of elements, characters or bytes of a value of this kind.
    Length(u32, Option<Countable>),
    /// A column of booleans, for whether the number is NaN.
    IsNan(u32),
    /// A column of text, for the name of a constant: values in ascending order.
    Label(u32, Box<[(i64, Box<str>)]>),
    /// The time of the event.
    EventTime,
    /// A condition on an element, by its number.
    Test(u8, Test),
    /// A condition on an element, met by these integers in ascending order: the other constants of an enumeration.
    OneOf(u8, Box<[i64]>),
    /// The measured element.
    Element,
}

/// A value without parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'m> {
    /// Present, without a value.
    Null,
    Bool(bool),
    Int(i64),
    /// An integer beyond the signed 64-bit range, as the nearest double.
    Large(f64),
    Float(f64),
    /// Text, which need not be UTF-8 yet.
    Text(&'m [u8]),
    /// A number of bytes.
    Bytes(u64),
    /// A point in time or a duration, in nanoseconds.
    Instant(i64),
    Span(i64),
    /// A point in time or a duration beyond 64 bits of nanoseconds.
    Beyond,
    /// A value of an unsupported type.
    Other,
}

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

/// Text of a message that is not a number although one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber {
    slot: Slot,
    /// Its first bytes.
    text: [u8; NoNumber::SHOWN],
    length: u8,
    is_cut: bool,
}

impl NoNumber {
    const SHOWN: usize = 24;

    pub(crate) fn new(slot: Slot, text: &[u8]) -> NoNumber {
        let length = text.len().min(NoNumber::SHOWN);
        let mut shown = [0; NoNumber::SHOWN];
        shown[..length].copy_from_slice(&text[..length]);
        NoNumber { slot, text: shown, length: length as u8, is_cut: length < text.len() }
    }

    /// Returns the slot of its field.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Returns the same text for the field of another slot.
    pub(crate) fn at(self, slot: Slot) -> NoNumber {
        NoNumber { slot, ..self }
    }

    /// Returns the text, or its first characters, as a JSON string.
    pub fn quoted(&self) -> String {
        let text = String::from_utf8_lossy(&self.text[..usize::from(self.length)]);
        let mut quoted = Vec::new();
        crate::json::write::quoted(&text, &mut quoted);
        let mut quoted = String::from_utf8(quoted).unwrap_or_default();
        if self.is_cut {
            quoted.insert(quoted.len() - 1, '…');
        }
        quoted
    }
}

/// Counts of values that could not be written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    /// Number of NaN values.
    pub(crate) not_numbers: u64,
    /// Number of array elements omitted because they were NaN.
    pub(crate) left_out: u64,
    /// Column of an integer beyond the signed 64-bit range, or of one that a double rounds, if there was one.
    pub(crate) large: Option<Slot>,
    /// First text that is not a number although one is read.
    pub(crate) no_number: Option<NoNumber>,
}

impl Refused {
    /// Adds the counts of another message.
    #[inline(always)]
    pub(crate) fn add(&mut self, other: Refused) {
        self.count += other.count;
        // Arrays may come in parts; a later one may subtract counts of an earlier one.
        self.not_numbers = self.not_numbers.wrapping_add(other.not_numbers);
        self.left_out += other.left_out;
        if other.large.is_some() {
            self.large = other.large;
        }
    }

    /// Adds a text of another message that is not a number although one is read.
    #[inline(always)]
    pub(crate) fn add_text(&mut self, no_number: Option<NoNumber>) {
        if no_number.is_some() {
            self.no_number = self.no_number.or(no_number);
        }
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, or of one that a double rounds, if there was one.
    pub(crate) fn too_large(&self) -> Option<Slot> {
        self.large
    }
}

impl Target {
    /// Returns the target of a read; `None` for conditions on elements.
    pub(crate) fn new(want: &Want<'_>) -> Option<Target> {
        Some(match want {
            Want::Value(ValueType::Bool, Slot::Bool(column)) => Target::Bool(*column),
            Want::Value(ValueType::Int, Slot::Int(column)) => Target::Int(*column),
            Want::Value(ValueType::Float, Slot::Float(column)) => Target::Float(*column),
            Want::Exact(Slot::Float(column)) => Target::Exact(*column),
            Want::Value(ValueType::String, Slot::String(column)) => Target::Text(*column),
            Want::Value(ValueType::Time, Slot::Int(column)) => Target::Time(*column),
            Want::Value(ValueType::Duration, Slot::Int(column)) => Target::Duration(*column),
            Want::Presence(Slot::Bool(column)) => Target::Present(*column),
            Want::Length(Slot::Int(column), of) => Target::Length(*column, *of),
            Want::IsNan(Slot::Bool(column)) => Target::IsNan(*column),
            Want::Number(..) => Target::Decimal(Box::new(Target::new(&want.of_number())?)),
            Want::EventTime => Target::EventTime,
            Want::Test(bit, test) => Target::Test(*bit, (*test).clone()),
            Want::Element => Target::Element,
            Want::Value(..) | Want::Exact(_) | Want::Presence(_) => return None,
            Want::Length(..) | Want::IsNan(_) | Want::Elements(..) => return None,
        })
    }

    /// Returns the slot of the target, if it has one.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Some(match self {
            Target::Bool(column) | Target::Present(column) | Target::IsNan(column) => Slot::Bool(*column),
            Target::Int(column) | Target::Length(column, _) => Slot::Int(*column),
            Target::Time(column) | Target::Duration(column) => Slot::Int(*column),
            Target::Float(column) | Target::Exact(column) => Slot::Float(*column),
            Target::Text(column) | Target::Label(column, _) => Slot::String(*column),
            Target::Decimal(number) => return number.slot(),
            Target::EventTime | Target::Test(..) | Target::OneOf(..) | Target::Element => return None,
        })
    }

    /// Whether a time is read.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Target::Time(_) | Target::Duration(_) | Target::EventTime)
    }
}

/// Returns the target that is cleared if there is no array to test.
pub(crate) fn elements_target(slot: Slot) -> Option<Target> {
    match slot {
        Slot::Bool(column) => Some(Target::Bool(column)),
        Slot::Int(column) => Some(Target::Int(column)),
        Slot::Float(column) => Some(Target::Float(column)),
        // The deciding element.
        Slot::String(column) => Some(Target::Text(column)),
    }
}

/// Returns a value of an element as text for users.
fn shown(value: Scalar<'_>) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) | Scalar::Large(value) => value.to_string(),
        Scalar::Text(text) => Witness::quoted(&String::from_utf8_lossy(text)),
        Scalar::Null => "null".to_owned(),
        _ => "…".to_owned(),
    }
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
        let Sink { mistyped: count, not_numbers, left_out, large, no_number, .. } = self;
        refused.add(Refused { count, not_numbers, left_out, large, no_number: None });
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
            (Target::Test(bit, test), value) => {
                let holds = holds(test, value);
                self.has_other |= is_of_number(test) && is_other(test, value);
                self.met = self.met & !(1 << bit) | u64::from(holds) << bit;
                if !holds && is_unknown(test, value) {
                    self.unknown |= 1 << bit;
                }
                if let Some(seen) = &mut self.seen {
                    seen.push((*bit, shown(value)));
                }
            }
            (Target::OneOf(bit, values), value) => {
                let holds = is_one_of(values, value);
                self.met = self.met & !(1 << bit) | u64::from(holds) << bit;
                if let Some(seen) = &mut self.seen {
                    seen.push((*bit, shown(value)));
                }
            }
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

    /// Writes the value of a measure or a quantifier. Returns the number of omitted elements.
    pub(crate) fn elements(
        &mut self,
        (slot, quantifier): (Slot, Quantifier),
        measured: &Measured,
        tested: &Tested,
    ) -> u64 {
        if quantifier.is_measure() {
            let lacking = measured.write(self.block, self.row, slot, quantifier);
            self.mistyped += lacking.mistyped;
            self.not_numbers += lacking.not_numbers;
            measured.left_out(quantifier)
        } else {
            self.not_numbers += tested.write(self.block, self.row, slot, quantifier);
            tested.left_out
        }
    }

    /// Begins the search for the deciding element, if the slot is one of texts.
    pub(crate) fn begin_witness(&mut self, slot: Slot, quantifier: Quantifier) -> Option<Witness> {
        let is_wanted = matches!(slot, Slot::String(_));
        if is_wanted {
            self.block.set_invalid(slot, self.row);
            self.seen = Some(Box::default());
        }
        is_wanted.then(|| Witness::new(quantifier))
    }

    /// Adds the current element, and writes it if it decides.
    pub(crate) fn witness(
        &mut self,
        witness: &mut Witness,
        (slot, quantifier): (Slot, Quantifier),
        (alternatives, names): (&Alternatives, &[Box<str>]),
    ) {
        let seen = self.seen.as_mut().map_or_else(Vec::new, |seen| std::mem::take(&mut **seen));
        let text = if quantifier.is_measure() {
            witness.measure(self.element)
        } else {
            let is_met = alternatives.hold(self.met);
            let may_meet = self.unknown != 0 && alternatives.hold(self.met | self.unknown);
            witness.test((is_met || !may_meet).then_some(is_met), names, &seen)
        };
        if let (Some(text), Slot::String(column)) = (text, slot) {
            self.block.set_string(column, self.row, &text);
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
        self.mistyped += u64::from(counts);
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

fn is_null(value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Null)
}

/// Whether a number compared by a condition is NaN or null.
fn is_unknown(test: &Test, value: Scalar<'_>) -> bool {
    match value {
        Scalar::Null => is_of_number(test),
        // If an integer is declared, NaN has another type.
        Scalar::Float(value) => value.is_nan() && is_of_number(test) && !matches!(test, Test::Integer(..)),
        _ => false,
    }
}

/// Whether a value has another type than the number compared by a condition.
fn is_other(test: &Test, value: Scalar<'_>) -> bool {
    match value {
        Scalar::Null => false,
        Scalar::Int(_) | Scalar::Float(_) | Scalar::Large(_) => {
            matches!(test, Test::Integer(..)) && !is_of_integer(value)
        }
        _ => true,
    }
}

/// Whether a condition compares a number.
pub(crate) fn is_of_number(test: &Test) -> bool {
    matches!(test, Test::Number(..) | Test::Integer(..) | Test::Equals(Value::Int(_) | Value::Float(_)))
}

/// Whether a value counts as an integer.
fn is_of_integer(value: Scalar<'_>) -> bool {
    match value {
        Scalar::Int(_) => true,
        Scalar::Float(value) => is_integer(value),
        _ => false,
    }
}

/// Whether a double is an integer, and an exact one.
pub(crate) fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0
}

/// Whether a double represents an integer exactly.
pub(crate) fn is_exact(value: i64) -> bool {
    i128::from(value) == value as f64 as i128
}

/// Returns a number of units of `unit_ns` nanoseconds, rounded to the nearest nanosecond.
pub(crate) fn float_nanos(value: f64, unit_ns: i64) -> Result<i64, MessageErrorKind> {
    let nanos = (value * unit_ns as f64).round();
    if nanos.is_nan() {
        Err(MessageErrorKind::NotATime)
    } else if (i64::MIN as f64..-(i64::MIN as f64)).contains(&nanos) {
        // The bounds are powers of two; the upper one is excluded.
        Ok(nanos as i64)
    } else {
        Err(MessageErrorKind::TimeOutOfRange)
    }
}

/// Returns a time of seconds and nanoseconds.
pub(crate) fn sum(seconds: i64, nanos: i64) -> Result<i64, MessageErrorKind> {
    if !(0..NS_PER_S).contains(&nanos) {
        return Err(MessageErrorKind::NotATime);
    }
    // Their sum may be in range although the seconds alone are not.
    i64::try_from(i128::from(seconds) * i128::from(NS_PER_S) + i128::from(nanos))
        .map_err(|_| MessageErrorKind::TimeOutOfRange)
}

#[inline(never)]
fn is_one_of(values: &[i64], value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Int(value) if values.binary_search(&value).is_ok())
}

/// Whether it is a text other than this one.
#[inline(never)]
fn is_other_text(other: &str, value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Text(text) if text != other.as_bytes() && std::str::from_utf8(text).is_ok())
}

fn holds(test: &Test, value: Scalar<'_>) -> bool {
    let number = match value {
        Scalar::Int(value) => Some(value as f64),
        Scalar::Large(value) | Scalar::Float(value) => Some(value),
        _ => None,
    };
    match test {
        Test::Present => true,
        Test::Number(comparison, bound) => number.is_some_and(|value| comparison.is_met(value, *bound)),
        Test::Integer(comparison, bound) => {
            is_of_integer(value) && number.is_some_and(|value| comparison.is_met(value, *bound))
        }
        Test::Equals(Value::Bool(wanted)) => matches!(value, Scalar::Bool(value) if value == *wanted),
        Test::Equals(Value::Float(wanted)) => number == Some(*wanted),
        Test::Equals(Value::Int(wanted)) => number == Some(*wanted as f64),
        Test::Equals(Value::String(wanted)) => {
            matches!(value, Scalar::Text(text) if text == wanted.as_bytes())
        }
        Test::OtherText(other) => is_other_text(other, value),
        Test::Equals(Value::Time(_) | Value::Duration(_)) => false,
    }
}
