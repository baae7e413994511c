//! Writing of the values of a message to a row of a block.

use rondel_event::{Block, Condition, Countable, Slot, Test, TimeUnit, Timestamp, ValueType};

use super::array::{Counted, TESTS, count_elements, is_of_integer, measured, number_tests, witness};
use super::plan::{Action, Node};
use super::scan::{JsonError, JsonErrorKind, Kind, Scanner, float, integer, is_rounded, unescape};
use super::time::{self, Meaning};
use super::walk::Visitor;
use crate::elements::{Measured, Tested};
use crate::plain::PlainPlan;
use crate::sink::{NoNumber, Scalar, Sink, Target, is_integer};

/// Writer of the values of a message to a row of a block.
pub(crate) struct Writer<'b> {
    pub(crate) block: &'b mut Block,
    pub(crate) row: usize,
    pub(crate) time_unit: TimeUnit,
    /// Time in the message, if there is one.
    pub(crate) time: Option<Timestamp>,
    /// Publisher and sequence number, as far as they were read.
    pub(crate) origin: (Option<u64>, Option<u64>),
    /// Number of values of another type than the program reads.
    pub(crate) mistyped: u64,
    /// Number of NaN values that are read.
    pub(crate) not_numbers: u64,
    /// Number of array elements omitted because they are null or NaN.
    pub(crate) left_out: u64,
    /// Field of the first mistyped value.
    pub(crate) first_mistyped: Option<Slot>,
    /// If that is a table, position of its field.
    pub(crate) first_member: Option<u16>,
    /// A text that is not a number although one is read.
    pub(crate) no_number: Option<NoNumber>,
    /// The column of an integer beyond the signed 64-bit range, or of one that a double rounds.
    pub(crate) large: Option<Slot>,
}

impl Visitor for Writer<'_> {
    const EVERYTHING: bool = false;

    /// Tests numbers in the first pass over the array.
    fn array(&mut self, node: &Node, scanner: &mut Scanner<'_>, depth: u32) -> Result<bool, JsonError> {
        if let Some(Action::Elements(quantifier, ..)) = node.reads.first()
            && quantifier.is_measure()
        {
            return self.measured(node, scanner, depth);
        }
        let Some((tests, count)) = number_tests(&node.reads) else { return Ok(false) };
        let tests = &tests[..count];
        let has_types = tests.iter().any(|(alternatives, ..)| alternatives.conditions().any(is_of_integer));
        let (mut met, mut total, mut left_out, mut has_nan) = ([0; TESTS], 0, 0, false);
        // Whether there is another value than numbers, or than integers.
        let (mut has_other, mut has_fraction) = (false, false);
        scanner.elements(depth, |scanner, _| {
            total += 1;
            let (start, kind) = (scanner.at, scanner.kind()?);
            if kind != Kind::Number {
                let is_left_out = matches!(kind, Kind::Null | Kind::Nan);
                has_other |= !is_left_out;
                has_nan |= kind == Kind::Nan;
                left_out += u64::from(is_left_out);
                return scanner.skip(depth + 1);
            }
            let value = scanner.number_value()?;
            let is_integer =
                has_types && (is_integer(value) || integer(&scanner.text[start..scanner.at]).is_some());
            has_fraction |= !is_integer;
            for ((alternatives, _, _), met) in tests.iter().zip(&mut met) {
                let holds = |c: &Condition| match c.test {
                    Test::Number(by, bound) => by.is_met(value, bound),
                    Test::Integer(by, bound) => is_integer && by.is_met(value, bound),
                    _ => false,
                };
                *met += u64::from(alternatives.are_met(holds));
            }
            Ok(())
        })?;
        for ((alternatives, quantifier, slot), met) in tests.iter().zip(met) {
            let lacking = Tested { met, total, left_out }.write(self.block, self.row, *slot, *quantifier);
            self.not_numbers += if has_nan { lacking } else { 0 };
            let is_other = has_other || has_fraction && alternatives.conditions().any(is_of_integer);
            self.count_mistyped(*slot, u64::from(is_other));
        }
        self.left_out += left_out;
        Ok(true)
    }

    fn value(
        &mut self,
        node: Option<&Node>,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
    ) -> Result<(), JsonError> {
        let text = &scanner.text[start..scanner.at];
        let mut left_out = 0;
        for action in node.map_or(&[][..], |n| &n.reads) {
            match action {
                Action::Value(value_type, slot) => {
                    if !self.write(*value_type, *slot, kind, text) {
                        self.refuse(*slot, kind);
                    }
                }
                Action::Exact(slot) if kind == Kind::Number && is_rounded(text) => {
                    self.large = Some(*slot);
                    self.block.set_invalid(*slot, self.row);
                    self.count_mistyped(*slot, 1);
                }
                Action::Exact(slot) => {
                    if !self.write(ValueType::Float, *slot, kind, text) {
                        self.refuse(*slot, kind);
                    }
                }
                Action::Decimal(target) => self.write_decimal(target, kind, text),
                Action::Presence(slot) => self.write_bool(*slot, true),
                Action::IsNan(slot) => match kind {
                    Kind::Number | Kind::Nan => self.write_bool(*slot, kind == Kind::Nan),
                    // The value itself is read too, and counted.
                    _ => self.block.set_invalid(*slot, self.row),
                },
                Action::Table(table) => table.write(text, self),
                Action::Elements(quantifier, conditions, slot) => {
                    if kind == Kind::Array && quantifier.is_measure() {
                        let measured = measured(&mut Scanner::with_nan(text), 0).unwrap_or(Measured::NOTHING);
                        let lacking = measured.write(self.block, self.row, *slot, *quantifier);
                        self.count_mistyped(*slot, lacking.mistyped);
                        self.not_numbers += lacking.not_numbers;
                        left_out = left_out.max(measured.left_out(*quantifier));
                    } else if kind == Kind::Array {
                        let Counted { tested, has_other, has_nan } = count_elements(conditions, text);
                        self.count_mistyped(*slot, u64::from(has_other));
                        left_out = left_out.max(tested.left_out);
                        let lacking = tested.write(self.block, self.row, *slot, *quantifier);
                        self.not_numbers += if has_nan { lacking } else { 0 };
                    } else {
                        self.refuse(*slot, kind);
                    }
                }
                Action::Witness(quantifier, conditions, slot) => {
                    let found = Some(text).filter(|_| kind == Kind::Array);
                    match (found.and_then(|array| witness(*quantifier, conditions, array)), slot) {
                        (Some(text), Slot::String(column)) => self.block.set_string(*column, self.row, &text),
                        _ => self.block.set_invalid(*slot, self.row),
                    }
                }
                Action::Length(slot, of) => match (slot, length(*of, kind, text)) {
                    (Slot::Int(column), Some(length)) => self.block.set_int(*column, self.row, length),
                    _ => self.refuse(*slot, kind),
                },
                Action::Plain(plan) => self.write_plain(plan, kind, text, start)?,
                Action::Recorded(_) | Action::Arrival(_) if kind == Kind::Null => {}
                Action::Time(unit) | Action::Recorded(unit) => {
                    self.time = Some(time_at(kind, text, start, *unit)?);
                }
                Action::Arrival(unit) => {
                    let arrival = time_at(kind, text, start, *unit)?;
                    self.block.set_arrival(self.row, arrival);
                }
                Action::Publisher => self.origin.0 = unsigned(kind, text),
                Action::Number => self.origin.1 = unsigned(kind, text),
                Action::Topic => {}
            }
        }
        self.left_out += left_out;
        Ok(())
    }

    fn unreachable(&mut self, action: &Action, kind: Kind, start: usize) -> Result<(), JsonError> {
        match action {
            Action::Value(_, slot)
            | Action::Exact(slot)
            | Action::Elements(_, _, slot)
            | Action::Length(slot, _) => self.refuse(*slot, kind),
            Action::Witness(_, _, slot) | Action::IsNan(slot) => self.block.set_invalid(*slot, self.row),
            Action::Decimal(target) => {
                let kind = if kind == Kind::Null { Kind::Null } else { Kind::Object };
                self.write_decimal(target, kind, b"");
            }
            // As if the time itself were null.
            Action::Time(unit) => self.time = Some(time_at(Kind::Null, b"null", start, *unit)?),
            Action::Presence(_) | Action::Topic | Action::Publisher | Action::Number => {}
            Action::Recorded(_) | Action::Arrival(_) | Action::Plain(_) | Action::Table(_) => {}
        }
        Ok(())
    }
}

impl<'b> Writer<'b> {
    /// Creates a writer of the fields of a message, none of which is read yet.
    pub(crate) fn new(block: &'b mut Block, row: usize, time_unit: TimeUnit) -> Writer<'b> {
        Writer {
            block,
            row,
            time_unit,
            time: None,
            origin: (None, None),
            mistyped: 0,
            not_numbers: 0,
            left_out: 0,
            first_mistyped: None,
            first_member: None,
            no_number: None,
            large: None,
        }
    }

    /// Measures the elements in the first pass over the array, if nothing else is read of it.
    fn measured(&mut self, node: &Node, scanner: &mut Scanner<'_>, depth: u32) -> Result<bool, JsonError> {
        let is_measure =
            |action: &Action| matches!(action, Action::Elements(quantifier, ..) if quantifier.is_measure());
        if !node.reads.iter().all(is_measure) {
            return Ok(false);
        }
        let measured = measured(scanner, depth)?;
        let mut left_out = 0;
        for action in &node.reads {
            if let Action::Elements(quantifier, _, slot) = action {
                let lacking = measured.write(self.block, self.row, *slot, *quantifier);
                self.count_mistyped(*slot, lacking.mistyped);
                self.not_numbers += lacking.not_numbers;
                left_out = left_out.max(measured.left_out(*quantifier));
            }
        }
        self.left_out += left_out;
        Ok(true)
    }

    /// Writes a plain value, which is JSON or a text with JSON.
    fn write_plain(
        &mut self,
        plan: &PlainPlan,
        kind: Kind,
        text: &[u8],
        offset: usize,
    ) -> Result<(), JsonError> {
        let unescaped =
            (kind == Kind::String).then(|| unescape(&text[1..text.len() - 1]).unwrap_or_default());
        let mut sink = Sink::at(self.block, self.row, self.time_unit);
        let written = plan.write(unescaped.as_deref().map_or(text, str::as_bytes), &mut sink);
        let (mistyped, large, time) = (sink.mistyped + sink.not_numbers, sink.large, sink.time);
        written.map_err(|_| JsonError { offset, kind: JsonErrorKind::Expected("a time") })?;
        self.mistyped += mistyped;
        self.large = large.or(self.large);
        self.time = time.or(self.time);
        if mistyped > 0 {
            self.first_mistyped = self.first_mistyped.or(plan.slot());
        }
        Ok(())
    }

    /// Writes a number, which may be a text.
    fn write_decimal(&mut self, target: &Target, kind: Kind, text: &[u8]) {
        let raw = text.get(1..text.len().saturating_sub(1)).filter(|_| kind == Kind::String);
        let unescaped = raw.filter(|raw| raw.contains(&b'\\')).and_then(unescape);
        let value = match (kind, &unescaped, raw) {
            (Kind::Null, ..) => Scalar::Null,
            (Kind::Nan, ..) => Scalar::Float(f64::NAN),
            (Kind::Number, ..) => number(target, text),
            (_, Some(unescaped), _) => Scalar::Text(unescaped.as_bytes()),
            (_, None, Some(raw)) if is_number(raw.trim_ascii()) => number(target, raw.trim_ascii()),
            (_, None, Some(raw)) => Scalar::Text(raw),
            _ => Scalar::Other,
        };
        let mut sink = Sink::at(self.block, self.row, self.time_unit);
        // Only texts and times can be refused.
        _ = sink.write(target, value);
        // A text cannot be NaN as a number.
        let of_nan = if kind == Kind::Nan { sink.not_numbers } else { 0 };
        let (mistyped, large) = (sink.mistyped + sink.not_numbers - of_nan, sink.large);
        self.not_numbers += of_nan;
        self.no_number = self.no_number.or(sink.no_number);
        self.large = large.or(self.large);
        if let Some(slot) = target.slot() {
            self.count_mistyped(slot, mistyped);
        }
    }

    /// Marks a field as invalid, and counts its value unless it is null.
    fn refuse(&mut self, slot: Slot, kind: Kind) {
        self.block.set_invalid(slot, self.row);
        match kind {
            Kind::Null => {}
            Kind::Nan => self.not_numbers += 1,
            _ => self.count_mistyped(slot, 1),
        }
    }

    /// Counts values of a field with another type than the program reads.
    pub(super) fn count_mistyped(&mut self, slot: Slot, count: u64) {
        self.mistyped += count;
        if count > 0 {
            self.first_mistyped.get_or_insert(slot);
        }
    }

    fn write_bool(&mut self, slot: Slot, value: bool) {
        if let Slot::Bool(column) = slot {
            self.block.set_bool(column, self.row, value);
        }
    }

    /// Writes a time or a duration if the value is one; returns whether it is.
    fn write_time(&mut self, column: u32, kind: Kind, text: &[u8], meaning: Meaning) -> bool {
        let value = time::read(kind, text, self.time_unit, meaning);
        if let Ok(value) = value {
            self.block.set_int(column, self.row, value.as_nanos());
        }
        value.is_ok()
    }

    /// Writes the value if it has the type; returns whether it has.
    fn write(&mut self, value_type: ValueType, slot: Slot, kind: Kind, text: &[u8]) -> bool {
        match (value_type, slot, kind) {
            (ValueType::Bool, Slot::Bool(column), Kind::True | Kind::False) => {
                self.block.set_bool(column, self.row, kind == Kind::True);
            }
            (ValueType::Float, Slot::Float(column), Kind::Number) => {
                self.block.set_float(column, self.row, float(text));
            }
            (ValueType::Int, Slot::Int(column), Kind::Number) => match integer(text) {
                Some(value) => self.block.set_int(column, self.row, value),
                None => {
                    // Only digits: an integer, and a large one.
                    if text.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9')) {
                        self.large = Some(slot);
                    }
                    return false;
                }
            },
            (ValueType::Time, Slot::Int(column), _) => {
                return self.write_time(column, kind, text, Meaning::Time);
            }
            (ValueType::Duration, Slot::Int(column), _) => {
                return self.write_time(column, kind, text, Meaning::Duration);
            }
            (ValueType::String, Slot::String(column), Kind::String) => {
                let raw = &text[1..text.len() - 1];
                match std::str::from_utf8(raw) {
                    Ok(plain) if !raw.contains(&b'\\') => self.block.set_string(column, self.row, plain),
                    _ => match unescape(raw) {
                        Some(value) => self.block.set_string(column, self.row, &value),
                        None => return false,
                    },
                }
            }
            _ => return false,
        }
        true
    }
}

/// Whether a text is exactly a number of JSON.
pub(super) fn is_number(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.kind() == Ok(Kind::Number) && scanner.number_value().is_ok() && scanner.at == text.len()
}

/// Returns a number of JSON as read for a target that accepts no text.
fn number(target: &Target, text: &[u8]) -> Scalar<'static> {
    let Target::Decimal(of) = target else { return Scalar::Float(float(text)) };
    let is_whole = || text.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    match (&**of, integer(text)) {
        (Target::Int(_), Some(value)) => Scalar::Int(value),
        (Target::Int(_), None) if is_whole() => Scalar::Large(float(text)),
        (Target::Int(_), None) => Scalar::Other,
        (Target::Exact(_), _) if is_rounded(text) => Scalar::Large(float(text)),
        _ => Scalar::Float(float(text)),
    }
}

/// Returns the number, if it has no sign, fraction and exponent and fits in 64 bits.
fn unsigned(kind: Kind, text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok().filter(|_| kind == Kind::Number)?.parse().ok()
}

/// Returns the number of elements of the well-formed array, or of characters of the string, if it has this kind.
fn length(of: Option<Countable>, kind: Kind, text: &[u8]) -> Option<i64> {
    let count = match kind {
        Kind::Array if of != Some(Countable::Text) => {
            let mut count = 0;
            let counted = Scanner::with_nan(text).elements(0, |scanner, _| {
                count += 1;
                scanner.skip(1)
            });
            debug_assert!(counted.is_ok(), "the array was scanned before");
            count
        }
        Kind::String if of != Some(Countable::Array) => {
            let raw = text.get(1..text.len() - 1)?;
            if raw.contains(&b'\\') { unescape(raw)?.chars().count() } else { characters(raw) }
        }
        _ => return None,
    };
    i64::try_from(count).ok()
}

/// Returns the number of characters of a text in UTF-8.
pub(crate) fn characters(text: &[u8]) -> usize {
    // Every byte begins a character except continuation bytes.
    text.iter().filter(|byte| (**byte as i8) >= -0x40).count()
}

/// Returns the time in a value that begins at this offset.
pub(crate) fn time_at(
    kind: Kind,
    text: &[u8],
    offset: usize,
    unit: TimeUnit,
) -> Result<Timestamp, JsonError> {
    time::read(kind, text, unit, Meaning::Time).map_err(|what| {
        let is_range = time::is_range(what);
        let kind = if is_range { JsonErrorKind::TimeOutOfRange } else { JsonErrorKind::NotATime };
        JsonError { offset, kind: kind(what) }
    })
}
