//! Conversion of values of Parquet columns to cells.

use std::io::Write as _;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int96};
use parquet::errors::{ParquetError, Result};

use super::columns::{Column, Meaning};
use crate::table::cells;

/// The mark before texts.
pub(in crate::table) const MARK: u8 = b'"';
/// Julian day 0, in days since 1970: [`Int96`] counts from it.
const JULIAN: i64 = -2_440_588;
/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// Cells of a column.
#[derive(Default)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

impl Cells {
    /// Returns the cell of a row; empty without a value.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<&[u8]> {
        let begin = if row == 0 { 0 } else { *self.ends.get(row - 1)? };
        self.text.get(begin..*self.ends.get(row)?)
    }

    /// Reads up to `most` rows; returns their number.
    ///
    /// # Errors
    /// An error of the library.
    pub(super) fn fill(&mut self, reader: &mut ColumnReader, of: &Column, most: usize) -> Result<usize> {
        let meaning = of.meaning;
        match reader {
            ColumnReader::BoolColumnReader(reader) => self.take(reader, of, most, |value, out| {
                out.extend_from_slice(if *value { b"true" } else { b"false" });
                Ok(())
            }),
            ColumnReader::Int32ColumnReader(reader) => self.take(reader, of, most, |value, out| {
                let value = match meaning {
                    Meaning::Unsigned => i128::from(value.cast_unsigned()),
                    _ => i128::from(*value),
                };
                whole(value, meaning, of.is_list, out)
            }),
            ColumnReader::Int64ColumnReader(reader) => self.take(reader, of, most, |value, out| {
                let value = match meaning {
                    Meaning::Unsigned => i128::from(value.cast_unsigned()),
                    _ => i128::from(*value),
                };
                whole(value, meaning, of.is_list, out)
            }),
            ColumnReader::Int96ColumnReader(reader) => self.take(reader, of, most, |value: &Int96, out| {
                let [low, high, day] = *value.data() else { return Err(no("a time of another size")) };
                let nanos = i128::from(low) + (i128::from(high) << 32);
                let day = i128::from(i64::from(day) + JULIAN);
                whole(day * i128::from(DAY) + nanos, meaning, of.is_list, out)
            }),
            ColumnReader::FloatColumnReader(reader) => {
                self.take(reader, of, most, |value, out| float(f64::from(*value), of.is_list, out))
            }
            ColumnReader::DoubleColumnReader(reader) => {
                self.take(reader, of, most, |value, out| float(*value, of.is_list, out))
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                self.take(reader, of, most, |value, out| bytes(value.data(), of, out))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                self.take(reader, of, most, |value, out| bytes(value.data(), of, out))
            }
        }
    }

    fn take<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        of: &Column,
        most: usize,
        write: impl Fn(&T::T, &mut Vec<u8>) -> Result<()>,
    ) -> Result<usize> {
        let Cells { text, ends, defined, repeated } = self;
        text.clear();
        ends.clear();
        defined.clear();
        repeated.clear();
        let mut values = Vec::new();
        let (rows, _, levels) = reader.read_records(most, Some(defined), Some(repeated), &mut values)?;
        let mut values = values.iter();
        let mut next = || values.next().ok_or_else(|| no("there are fewer values than rows"));
        if !of.is_list {
            for row in 0..rows {
                if of.defined == 0 || defined.get(row) == Some(&of.defined) {
                    write(next()?, text)?;
                }
                ends.push(text.len());
            }
            return Ok(rows);
        }
        let mut is_open = false;
        for at in 0..levels {
            let level = defined.get(at).copied().unwrap_or_default();
            if repeated.get(at).copied().unwrap_or_default() == 0 {
                if is_open {
                    text.push(b']');
                }
                if at > 0 {
                    ends.push(text.len());
                }
                // One level below that of an element, the list is present and empty.
                is_open = level + 1 >= of.element;
                if is_open {
                    text.push(b'[');
                }
            } else {
                text.push(b',');
            }
            if level >= of.element {
                if level == of.defined {
                    write(next()?, text)?;
                } else {
                    text.extend_from_slice(b"null");
                }
            }
        }
        if is_open {
            text.push(b']');
        }
        if levels > 0 {
            ends.push(text.len());
        }
        if ends.len() != rows { Err(no("its lists do not fit the rows")) } else { Ok(rows) }
    }
}

fn no(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

/// Writes an integer, a decimal number or a time.
fn whole(value: i128, meaning: Meaning, is_json: bool, out: &mut Vec<u8>) -> Result<()> {
    match meaning {
        Meaning::Decimal(0) | Meaning::Plain | Meaning::Unsigned | Meaning::Half => write!(out, "{value}")?,
        Meaning::Decimal(places) => {
            let places = places as usize;
            let digits = value.unsigned_abs().to_string();
            let digits = format!("{digits:0>width$}", width = places + 1);
            let (before, behind) = digits.split_at(digits.len() - places);
            write!(out, "{}{before}.{behind}", if value < 0 { "-" } else { "" })?;
        }
        Meaning::Nanos(unit) => write!(out, "{}", value * i128::from(unit))?,
        Meaning::Stamp(_) | Meaning::Day => {
            let unit = if let Meaning::Stamp(unit) = meaning { unit } else { DAY };
            let quote = if is_json { "\"" } else { "" };
            match jiff::Timestamp::from_nanosecond(value.saturating_mul(i128::from(unit))) {
                Ok(time) => write!(out, "{quote}{time}{quote}")?,
                // After the year 9999 it stays a number.
                Err(_) => write!(out, "{value}")?,
            }
        }
    }
    Ok(())
}

/// Writes a floating-point number.
fn float(value: f64, is_json: bool, out: &mut Vec<u8>) -> Result<()> {
    if !is_json || value.is_finite() {
        write!(out, "{value:?}")?;
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        out.extend_from_slice(if value > 0.0 { b"1e999" } else { b"-1e999" });
    }
    Ok(())
}

/// Writes a text, or a number stored as bytes.
fn bytes(value: &[u8], of: &Column, out: &mut Vec<u8>) -> Result<()> {
    match of.meaning {
        Meaning::Decimal(_) => {
            // The most significant byte is first.
            let negative = value.first().is_some_and(|byte| byte & 0x80 != 0);
            let mut own = [if negative { 0xff } else { 0 }; 16];
            let Some(begin) = own.len().checked_sub(value.len()) else {
                return Err(no("decimal numbers with more than 38 digits are not read"));
            };
            own[begin..].copy_from_slice(value);
            whole(i128::from_be_bytes(own), of.meaning, of.is_list, out)
        }
        Meaning::Half => {
            let [low, high] = *value else { return Err(no("a number of another size")) };
            float(half(u16::from_le_bytes([low, high])), of.is_list, out)
        }
        _ if of.is_list => cells::text(value, out).map_err(|()| no("a text in a list is no UTF-8")),
        _ => {
            if of.is_marked {
                out.push(MARK);
            }
            out.extend_from_slice(value);
            Ok(())
        }
    }
}

/// Returns the value of a floating-point number of 16 bits.
fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    }
}
