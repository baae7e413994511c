//! Walk of a plan over a datum.
//!
//! Every length is compared with the remaining bytes before it is used, and the recursion has a limit. Values that are
//! read go to their slots; arrays, maps and records with elements are converted to CBOR, which one more walk reads.

use std::io::Write as _;

use super::plan::{Branch, Convert, Read};
use super::schema::{Field, Kind, Logical, Node, Types};
use super::wire::{Block, Reader};
use crate::binary::put;
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::MAX_DEPTH;
use crate::sink::{Scalar, Sink, Target};

const NS_PER_S: i64 = 1_000_000_000;

/// Maximum number of elements without bytes in a block that is read.
const MAX_EMPTY: u64 = 1 << 16;

/// Greatest integer up to which doubles have no gaps.
const EXACT: u128 = 1 << 53;
/// Greatest power of ten that is a double.
const EXACT_SCALE: u32 = 22;

/// State of a walk over a datum.
pub(super) struct Walk<'d, 'w> {
    pub(super) reader: Reader<'d>,
    pub(super) types: &'d Types,
    pub(super) sink: Sink<'w>,
    /// Converted values.
    pub(super) out: &'d mut Vec<u8>,
}

impl<'d> Walk<'d, '_> {
    /// Reads a datum, and checks that nothing follows.
    pub(super) fn message(&mut self, read: &Read, of: usize) -> Parsed<()> {
        self.read(read, of, 0)?;
        match self.reader.rest() {
            0 => Ok(()),
            _ => Err(Fault::new(self.reader.at, MessageErrorKind::TrailingBytes)),
        }
    }

    #[inline(always)]
    fn write(&mut self, target: &Target, value: Scalar<'_>, at: usize) -> Parsed<()> {
        self.sink.write(target, value).map_err(|kind| Fault::new(at, kind))
    }

    fn read(&mut self, read: &Read, of: usize, depth: u32) -> Parsed<()> {
        let (types, start) = (self.types, self.reader.at);
        let node = types.node(of);
        match (read, &node.kind) {
            (Read::Scalar(targets), _) => {
                let value = scalar(node, &mut self.reader)?;
                for target in targets {
                    let value = if target.is_time() { time(node.logical, value) } else { value };
                    self.write(target, value, start)?;
                }
                Ok(())
            }
            (Read::Record(present, reads), Kind::Record(fields)) => {
                for target in present {
                    self.write(target, Scalar::Other, start)?;
                }
                for (field, read) in fields.iter().zip(reads) {
                    let done = match read {
                        Read::Skip => self.reader.skip(types, field.of, depth + 1),
                        read => self.read(read, field.of, depth + 1),
                    };
                    done.map_err(|fault| fault.in_member(&field.name))?;
                }
                Ok(())
            }
            (Read::Union(reads), Kind::Union(branches)) => {
                let branch = self.reader.index(branches.len())?;
                let Some(Branch { read, lacking, is_null }) = reads.get(branch) else { return Ok(()) };
                for target in lacking {
                    self.sink.lack(target, *is_null).map_err(|kind| Fault::new(start, kind))?;
                }
                self.read(read, branches[branch], depth + 1)
            }
            (Read::Convert(name, convert), _) => {
                put::text(name.as_bytes(), self.out);
                self.convert(convert, of, depth)
            }
            _ => self.reader.skip(types, of, depth),
        }
    }

    /// Converts a value to CBOR.
    fn convert(&mut self, convert: &Convert, of: usize, depth: u32) -> Parsed<()> {
        let (types, start) = (self.types, self.reader.at);
        put::room(start, self.out)?;
        if depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        let node = types.node(of);
        match (convert, &node.kind) {
            (Convert::Skip, _) => {
                put::null(self.out);
                self.reader.skip(types, of, depth)?;
            }
            (Convert::Record(parts), Kind::Record(fields)) => {
                put::open_map(self.out);
                for (field, part) in fields.iter().zip(parts) {
                    match part {
                        Some(part) => self.member(field, part, depth)?,
                        None => {
                            let skipped = self.reader.skip(types, field.of, depth + 1);
                            skipped.map_err(|fault| fault.in_member(&field.name))?;
                        }
                    }
                }
                put::close(self.out);
            }
            (Convert::All, Kind::Record(fields)) => {
                put::open_map(self.out);
                fields.iter().try_for_each(|field| self.member(field, &Convert::All, depth))?;
                put::close(self.out);
            }
            (Convert::Array(element), Kind::Array(of)) => self.elements(element, *of, depth)?,
            (Convert::All, Kind::Array(of)) => self.elements(&Convert::All, *of, depth)?,
            (Convert::Map(entries), Kind::Map(of)) => self.entries(Some(entries), *of, depth)?,
            (Convert::All, Kind::Map(of)) => self.entries(None, *of, depth)?,
            (Convert::Union(parts), Kind::Union(branches)) => {
                let branch = self.reader.index(branches.len())?;
                let part = parts.get(branch).unwrap_or(&Convert::Skip);
                self.convert(part, branches[branch], depth + 1)?;
            }
            (Convert::All, Kind::Union(branches)) => {
                let branch = self.reader.index(branches.len())?;
                self.convert(&Convert::All, branches[branch], depth + 1)?;
            }
            (Convert::Value(is_time), _) => self.value(node, *is_time)?,
            (Convert::All, _) => self.value(node, true)?,
            _ => {
                put::null(self.out);
                self.reader.skip(types, of, depth)?;
            }
        }
        Ok(())
    }

    fn member(&mut self, field: &Field, part: &Convert, depth: u32) -> Parsed<()> {
        put::text(field.name.as_bytes(), self.out);
        self.convert(part, field.of, depth + 1).map_err(|fault| fault.in_member(&field.name))
    }

    fn elements(&mut self, element: &Convert, of: usize, depth: u32) -> Parsed<()> {
        put::open_array(self.out);
        let (is_empty, mut index) = (self.types.node(of).is_empty, 0);
        while let Some(block) = self.reader.block(is_empty)? {
            let begin = self.reader.at;
            if is_empty && block.count > MAX_EMPTY {
                return Err(Fault::new(begin, MessageErrorKind::LengthBeyondEnd(block.count)));
            }
            for _ in 0..block.count {
                self.convert(element, of, depth + 1).map_err(|fault| fault.in_element(index))?;
                index += 1;
            }
            self.end_block(&block, begin)?;
        }
        put::close(self.out);
        Ok(())
    }

    /// Converts the entries of a map that are read; all of them without a list.
    fn entries(&mut self, entries: Option<&[(Box<str>, Convert)]>, of: usize, depth: u32) -> Parsed<()> {
        put::open_map(self.out);
        while let Some(block) = self.reader.block(false)? {
            let begin = self.reader.at;
            for _ in 0..block.count {
                let key = self.reader.bytes()?;
                let part = match entries {
                    None => Some(&Convert::All),
                    Some(entries) => {
                        entries.iter().find(|(name, _)| name.as_bytes() == key).map(|(_, part)| part)
                    }
                };
                let done = match part {
                    Some(part) => {
                        put::text(key, self.out);
                        self.convert(part, of, depth + 1)
                    }
                    None => self.reader.skip(self.types, of, depth + 1),
                };
                done.map_err(|fault| fault.in_member(&String::from_utf8_lossy(key)))?;
            }
            self.end_block(&block, begin)?;
        }
        put::close(self.out);
        Ok(())
    }

    /// Checks that a block has the stated size.
    fn end_block(&self, block: &Block, begin: usize) -> Parsed<()> {
        match block.size {
            Some(size) if self.reader.at - begin != size => {
                Err(Fault::new(begin, MessageErrorKind::Misplaced))
            }
            _ => Ok(()),
        }
    }

    /// Converts a value without parts.
    fn value(&mut self, node: &'d Node, is_time: bool) -> Parsed<()> {
        let start = self.reader.at;
        let value = scalar(node, &mut self.reader)?;
        let value = if is_time { time(node.logical, value) } else { value };
        match value {
            Scalar::Null => put::null(self.out),
            Scalar::Bool(value) => put::boolean(value, self.out),
            Scalar::Int(value) => put::integer(value, self.out),
            Scalar::Float(value) | Scalar::Large(value) => put::double(value, self.out),
            Scalar::Text(text) => put::text(text, self.out),
            Scalar::Bytes(length) => {
                // They end the value.
                let end = self.reader.at;
                let begin = end.saturating_sub(length as usize).max(start);
                put::bytes(&self.reader.bytes[begin..end], self.out);
            }
            Scalar::Instant(nanos) | Scalar::Span(nanos) => {
                put::open_map(self.out);
                put::text(b"sec", self.out);
                put::integer(nanos.div_euclid(NS_PER_S), self.out);
                put::text(b"nanosec", self.out);
                put::integer(nanos.rem_euclid(NS_PER_S), self.out);
                put::close(self.out);
            }
            // Present, and of a type that is not read.
            Scalar::Beyond | Scalar::Other => {
                put::open_map(self.out);
                put::close(self.out);
            }
        }
        Ok(())
    }
}

/// Reads a value without parts.
#[inline(always)]
pub(super) fn scalar<'d>(node: &'d Node, reader: &mut Reader<'d>) -> Parsed<Scalar<'d>> {
    let start = reader.at;
    Ok(match &node.kind {
        Kind::Boolean => Scalar::Bool(reader.boolean()?),
        Kind::Int | Kind::Long => Scalar::Int(reader.long()?),
        Kind::Float => Scalar::Float(f32::from_le_bytes(reader.array()?).into()),
        Kind::Double => Scalar::Float(f64::from_le_bytes(reader.array()?)),
        Kind::String => Scalar::Text(reader.bytes()?),
        Kind::Enum(symbols) => Scalar::Text(symbols[reader.index(symbols.len())?].as_bytes()),
        Kind::Bytes => of_bytes(node.logical, reader.bytes()?),
        Kind::Fixed(size) => of_bytes(node.logical, reader.take(*size, start)?),
        Kind::Null | Kind::Record(_) | Kind::Array(_) | Kind::Map(_) | Kind::Union(_) => Scalar::Null,
    })
}

fn of_bytes(logical: Logical, bytes: &[u8]) -> Scalar<'static> {
    match logical {
        Logical::Decimal(scale) => decimal(bytes, scale),
        _ => Scalar::Bytes(bytes.len() as u64),
    }
}

/// Returns a number as the time or the duration that its type states.
pub(super) fn time(logical: Logical, value: Scalar<'_>) -> Scalar<'_> {
    match (logical, value) {
        (Logical::Time(unit), Scalar::Int(count)) => {
            count.checked_mul(unit).map_or(Scalar::Beyond, Scalar::Instant)
        }
        (Logical::TimeOfDay(unit), Scalar::Int(count)) => {
            count.checked_mul(unit).map_or(Scalar::Beyond, Scalar::Span)
        }
        (_, value) => value,
    }
}

/// Returns the number in the bytes of a decimal, as the nearest double if it has digits after the point. Numbers beyond 128
/// bits are not read.
fn decimal(bytes: &[u8], scale: u32) -> Scalar<'static> {
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let sign = if is_negative { 0xff } else { 0 };
    let (extension, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut all = [sign; 16];
    all[16 - digits.len()..].copy_from_slice(digits);
    let value = i128::from_be_bytes(all);
    if extension.iter().any(|byte| *byte != sign) || (value < 0) != is_negative {
        return Scalar::Other;
    }
    if scale == 0 {
        return i64::try_from(value).map_or(Scalar::Large(value as f64), Scalar::Int);
    }
    if value.unsigned_abs() <= EXACT && scale <= EXACT_SCALE {
        return Scalar::Float(value as f64 / 10_f64.powi(scale as i32));
    }
    // The sign, 39 digits, and the exponent.
    let mut text = [0_u8; 64];
    let mut rest = &mut text[..];
    let written = write!(rest, "{value}e-{scale}");
    let length = 64 - rest.len();
    let number = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.parse().ok());
    number.filter(|_| written.is_ok()).map_or(Scalar::Other, Scalar::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_the_nearest_doubles() {
        let read = |bytes: &[u8], scale| match decimal(bytes, scale) {
            Scalar::Float(value) => Some(value),
            Scalar::Int(value) => Some(value as f64),
            Scalar::Large(value) => Some(value),
            _ => None,
        };
        assert_eq!(read(&[], 2), Some(0.0));
        assert_eq!(read(&[0x30, 0x39], 2), Some(123.45));
        assert_eq!(read(&[0xff, 0xff], 1), Some(-0.1));
        assert_eq!(read(&[0x80], 0), Some(-128.0));
        assert_eq!(read(&i128::MAX.to_be_bytes(), 0), Some(i128::MAX as f64));
        assert_eq!(
            read(&i128::MIN.to_be_bytes(), 38),
            Some(-1.701_411_834_604_692_3),
            "more digits than a double has"
        );
        assert_eq!(read(&[1; 17], 0), None);
        let mut long = vec![0xff_u8; 20];
        long.push(0xfb);
        assert_eq!(read(&long, 0), Some(-5.0));
        let mut beyond = vec![0_u8; 4];
        beyond.extend([0xff; 16]);
        assert_eq!(read(&beyond, 0), None);
    }
}
