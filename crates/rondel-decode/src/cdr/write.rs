//! Writes values to a row of a block.

use rondel_event::{Block, Slot, Test, Timestamp, Value};

use super::error::CdrErrorKind;
use super::plan::{Tables, Target, TimeTarget};
use crate::elements::{Seen, Witness};
use crate::plain::decimal;
use crate::sink::{NoNumber, Scalar as Number, is_exact, is_integer};

/// A number, boolean or character of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar {
    /// A byte that must be 0 or 1.
    Bool(u8),
    Int(i64),
    /// An unsigned integer beyond the signed range.
    Large(u64),
    Float(f64),
}

/// The row of a message.
pub(super) struct Writer<'w> {
    pub(super) block: &'w mut Block,
    pub(super) row: usize,
    pub(super) tables: &'w Tables,
    /// Time in the message, if there is one.
    pub(super) time: Option<Timestamp>,
    /// Number of values out of the range of their column.
    pub(super) mistyped: u64,
    /// Number of NaN values that are read.
    pub(super) not_numbers: u64,
    /// The column of an integer beyond the signed 64-bit range, or of one that a double rounds.
    pub(super) large: Option<Slot>,
    /// Number of array elements omitted because they are NaN.
    pub(super) left_out: u64,
    /// Conditions that the current element meets.
    pub(super) met: u64,
    /// Conditions whose number is NaN in the current element.
    pub(super) unknown: u64,
    /// Tested values of the current element, if they are reported.
    pub(super) seen: Option<Box<Seen>>,
    /// The current element, if it is measured.
    pub(super) element: f64,
    /// A part of a time, until the other one is read.
    pub(super) part: i64,
    /// A text that is not a number although one is read.
    pub(super) no_number: Option<NoNumber>,
    pub(super) scratch: String,
}

const NS_PER_S: i64 = 1_000_000_000;

impl Scalar {
    #[inline(always)]
    fn float(self) -> f64 {
        match self {
            Scalar::Bool(byte) => byte.into(),
            Scalar::Int(value) => value as f64,
            Scalar::Large(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }

    #[inline(always)]
    fn int(self) -> Option<i64> {
        match self {
            Scalar::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value as text for users.
    fn shown(self) -> String {
        match self {
            Scalar::Bool(byte) => (byte != 0).to_string(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Large(value) => value.to_string(),
            Scalar::Float(value) => value.to_string(),
        }
    }

    fn checked_bool(self) -> Result<bool, CdrErrorKind> {
        match self {
            Scalar::Bool(0) => Ok(false),
            Scalar::Bool(1) => Ok(true),
            Scalar::Bool(byte) => Err(CdrErrorKind::NotABoolean(byte)),
            _ => Ok(false),
        }
    }
}

impl Writer<'_> {
    #[inline(always)]
    pub(super) fn write(&mut self, to: Target, scalar: Scalar) -> Result<(), CdrErrorKind> {
        match to {
            Target::Float(column) => self.write_float(column, scalar.float()),
            Target::Int(column) => match scalar {
                Scalar::Int(value) => self.block.set_int(column, self.row, value),
                other => {
                    if let Scalar::Large(_) = other {
                        self.large = Some(Slot::Int(column));
                    }
                    self.refuse(Slot::Int(column));
                }
            },
            Target::Bool(column) => {
                let value = scalar.checked_bool()?;
                self.block.set_bool(column, self.row, value);
            }
            Target::Seconds | Target::Nanos => self.part = scalar.int().unwrap_or(i64::MAX),
            Target::NanosLast(to) => {
                let time = sum(Some(self.part), scalar.int());
                self.write_time(to, time)?;
            }
            other => self.write_seldom(other, scalar)?,
        }
        Ok(())
    }

    /// Writes a number; NaN is unknown, like null in JSON.
    #[inline(always)]
    fn write_float(&mut self, column: u32, value: f64) {
        if value.is_nan() {
            self.not_numbers += 1;
            self.block.set_invalid(Slot::Float(column), self.row);
        } else {
            self.block.set_float(column, self.row, value);
        }
    }

    fn refuse(&mut self, slot: Slot) {
        self.block.set_invalid(slot, self.row);
        self.mistyped += 1;
    }

    fn refuse_rounded(&mut self, column: u32) {
        self.large = Some(Slot::Float(column));
        self.refuse(Slot::Float(column));
    }

    fn write_seldom(&mut self, to: Target, scalar: Scalar) -> Result<(), CdrErrorKind> {
        let constant = scalar.int().unwrap_or(i64::MAX);
        match to {
            Target::Present(column) => self.block.set_bool(column, self.row, true),
            Target::Exact(column) => match scalar {
                Scalar::Int(value) if !is_exact(value) => self.refuse_rounded(column),
                Scalar::Large(_) => self.refuse_rounded(column),
                exact => self.write_float(column, exact.float()),
            },
            Target::IsNan(column) => self.block.set_bool(column, self.row, scalar.float().is_nan()),
            Target::Met(bit) => self.met |= 1 << bit,
            Target::Element => self.element = scalar.float(),
            Target::Letter(column) => {
                let letter =
                    u32::try_from(constant).ok().and_then(char::from_u32).ok_or(CdrErrorKind::NotText)?;
                self.block.set_string(column, self.row, letter.encode_utf8(&mut [0; 4]));
            }
            Target::Label(column, enumeration) => {
                if let Some(label) = self.tables.enumerations[enumeration as usize].label(constant) {
                    self.block.set_string(column, self.row, label);
                }
            }
            Target::CheckBool => _ = scalar.checked_bool()?,
            Target::CheckEnum(enumeration)
                if self.tables.enumerations[enumeration as usize].label(constant).is_none() =>
            {
                let value = i32::try_from(constant).unwrap_or(i32::MAX);
                return Err(CdrErrorKind::NotInEnumeration(value));
            }
            Target::Scaled(unit_ns, to) => self.write_time(to, scaled(scalar, unit_ns))?,
            Target::SecondsLast(to) => {
                let time = sum(scalar.int(), Some(self.part));
                self.write_time(to, time)?;
            }
            Target::Test(bit, test) => {
                let holds = match &self.tables.tests[test as usize] {
                    Test::Present => true,
                    Test::Integer(comparison, bound) => {
                        scalar.int().is_some_and(|value| comparison.is_met(value as f64, *bound))
                    }
                    Test::Number(comparison, bound) => comparison.is_met(scalar.float(), *bound),
                    Test::Equals(Value::Bool(wanted)) => scalar.checked_bool()? == *wanted,
                    Test::Equals(Value::Int(wanted)) => scalar.float() == *wanted as f64,
                    Test::Equals(Value::Float(wanted)) => scalar.float() == *wanted,
                    Test::Equals(_) | Test::OtherText(_) => false,
                };
                self.met |= u64::from(holds) << bit;
                if !holds && scalar.float().is_nan() {
                    self.unknown |= 1 << bit;
                }
                if let Some(seen) = &mut self.seen {
                    seen.push((bit, scalar.shown()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the number in a text.
    pub(super) fn decimal(&mut self, to: Target, text: &str) {
        let (Target::Int(column) | Target::Float(column) | Target::Exact(column)) = to else { return };
        let slot = if let Target::Int(_) = to { Slot::Int(column) } else { Slot::Float(column) };
        let scalar = match decimal(text.as_bytes()) {
            Number::Null => return self.block.set_invalid(slot, self.row),
            Number::Int(value) => Scalar::Int(value),
            Number::Float(value) if slot == Slot::Int(column) && is_integer(value) => {
                Scalar::Int(value as i64)
            }
            Number::Float(value) => Scalar::Float(value),
            Number::Large(value) if matches!(to, Target::Float(_)) => Scalar::Float(value),
            Number::Large(_) => {
                self.large = Some(slot);
                return self.refuse(slot);
            }
            _ => {
                self.no_number = Some(NoNumber::new(slot, text.as_bytes()));
                return self.refuse(slot);
            }
        };
        // Numbers out of range invalidate the column, not the message.
        _ = self.write(to, scalar);
    }

    pub(super) fn test_text(&mut self, bit: u8, test: u32, value: &str) {
        let holds = match &self.tables.tests[test as usize] {
            Test::Equals(Value::String(wanted)) => **wanted == *value,
            Test::OtherText(text) => **text != *value,
            _ => false,
        };
        self.met |= u64::from(holds) << bit;
        if let Some(seen) = &mut self.seen {
            seen.push((bit, Witness::quoted(value)));
        }
    }

    #[inline(always)]
    fn write_time(&mut self, to: TimeTarget, time: Result<i64, CdrErrorKind>) -> Result<(), CdrErrorKind> {
        match (to, time) {
            (TimeTarget::Event, time) => self.time = Some(Timestamp::from_nanos(time?)),
            (TimeTarget::Column(column), Ok(time)) => self.block.set_int(column, self.row, time),
            (TimeTarget::Column(column), Err(_)) => self.refuse(Slot::Int(column)),
        }
        Ok(())
    }
}

/// Returns a time of seconds and nanoseconds.
#[inline(always)]
fn sum(seconds: Option<i64>, nanos: Option<i64>) -> Result<i64, CdrErrorKind> {
    let (Some(seconds), Some(nanos @ 0..NS_PER_S)) = (seconds, nanos) else {
        return Err(CdrErrorKind::NotATime);
    };
    match seconds.checked_mul(NS_PER_S).and_then(|ns| ns.checked_add(nanos)) {
        Some(time) => Ok(time),
        // Their sum may be in range although the seconds alone are not.
        None => i64::try_from(i128::from(seconds) * i128::from(NS_PER_S) + i128::from(nanos))
            .map_err(|_| CdrErrorKind::TimeOutOfRange),
    }
}

/// Returns a time in a unit; fractions of a nanosecond are truncated.
fn scaled(scalar: Scalar, unit_ns: i64) -> Result<i64, CdrErrorKind> {
    match scalar {
        Scalar::Int(value) => value.checked_mul(unit_ns).ok_or(CdrErrorKind::TimeOutOfRange),
        Scalar::Large(_) => Err(CdrErrorKind::TimeOutOfRange),
        Scalar::Float(value) => {
            let ns = value * unit_ns as f64;
            // The bounds are powers of two, and the upper one is excluded.
            if ns.is_nan() {
                Err(CdrErrorKind::NotATime)
            } else if (i64::MIN as f64..-(i64::MIN as f64)).contains(&ns) {
                Ok(ns as i64)
            } else {
                Err(CdrErrorKind::TimeOutOfRange)
            }
        }
        Scalar::Bool(_) => Err(CdrErrorKind::NotATime),
    }
}
