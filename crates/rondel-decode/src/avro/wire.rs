//! Binary encoding of Avro: numbers, lengths, blocks and skipped values.

use super::schema::{Kind, Types};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::MAX_DEPTH;

/// A position in a datum.
#[derive(Clone, Copy)]
pub(super) struct Reader<'m> {
    pub(super) bytes: &'m [u8],
    pub(super) at: usize,
}

/// A block of an array or a map.
pub(super) struct Block {
    pub(super) count: u64,
    /// Its size in bytes, if the writer has stated it.
    pub(super) size: Option<usize>,
}

impl<'m> Reader<'m> {
    pub(super) fn new(bytes: &'m [u8]) -> Reader<'m> {
        Reader { bytes, at: 0 }
    }

    pub(super) fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    #[cold]
    fn truncated(&self) -> Box<Fault> {
        Fault::new(self.bytes.len(), MessageErrorKind::Truncated)
    }

    #[inline(always)]
    pub(super) fn byte(&mut self) -> Parsed<u8> {
        let Some(&byte) = self.bytes.get(self.at) else { return Err(self.truncated()) };
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    pub(super) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let Some(&bytes) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.truncated());
        };
        self.at += N;
        Ok(bytes)
    }

    /// Reads an `int` or a `long`: a zigzag number of one to ten bytes, with seven bits each.
    #[inline(always)]
    pub(super) fn long(&mut self) -> Parsed<i64> {
        let raw = match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                byte.into()
            }
            _ => self.long_varint()?,
        };
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn long_varint(&mut self) -> Parsed<u64> {
        let (mut value, start) = (0, self.at);
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::new(start, MessageErrorKind::Misplaced))
    }

    /// Reads this number of bytes; `start` is the position of the length.
    #[inline(always)]
    pub(super) fn take(&mut self, length: usize, start: usize) -> Parsed<&'m [u8]> {
        let end = self.at.checked_add(length);
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(Fault::new(start, MessageErrorKind::LengthBeyondEnd(length as u64)));
        };
        self.at += length;
        Ok(taken)
    }

    /// Reads a length and this number of bytes.
    #[inline(always)]
    pub(super) fn bytes(&mut self) -> Parsed<&'m [u8]> {
        let start = self.at;
        let length = self.long()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length, start),
            Err(_) => Err(beyond(start, length)),
        }
    }

    pub(super) fn boolean(&mut self) -> Parsed<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Fault::new(self.at - 1, MessageErrorKind::UnknownByte(other))),
        }
    }

    /// Reads the index of a branch or a symbol, of which there are `count`.
    #[inline(always)]
    pub(super) fn index(&mut self, count: usize) -> Parsed<usize> {
        let start = self.at;
        let index = self.long()?;
        match usize::try_from(index) {
            Ok(found) if found < count => Ok(found),
            _ => Err(Fault::new(start, MessageErrorKind::NoSuchBranch(index))),
        }
    }

    /// Reads the beginning of a block of elements; `None` at the end of the array or map. Elements that have at least a
    /// byte each fit in the rest of the message.
    pub(super) fn block(&mut self, is_empty: bool) -> Parsed<Option<Block>> {
        let start = self.at;
        let count = self.long()?;
        if count == 0 {
            return Ok(None);
        }
        let mut size = None;
        if count < 0 {
            let bytes = self.long()?;
            let fits = usize::try_from(bytes).ok().filter(|bytes| *bytes <= self.rest());
            size = Some(fits.ok_or_else(|| beyond(start, bytes))?);
        }
        let count = count.unsigned_abs();
        if !is_empty && count > self.rest() as u64 {
            return Err(Fault::new(start, MessageErrorKind::LengthBeyondEnd(count)));
        }
        Ok(Some(Block { count, size }))
    }

    /// Skips a value of this type.
    pub(super) fn skip(&mut self, types: &Types, of: usize, depth: u32) -> Parsed<()> {
        let start = self.at;
        if depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        let node = types.node(of);
        // Types without bytes may nest others in great numbers.
        if node.is_empty {
            return Ok(());
        }
        match &node.kind {
            Kind::Null => {}
            Kind::Boolean => _ = self.boolean()?,
            Kind::Int | Kind::Long => _ = self.long()?,
            Kind::Float => _ = self.array::<4>()?,
            Kind::Double => _ = self.array::<8>()?,
            Kind::Bytes | Kind::String => _ = self.bytes()?,
            Kind::Fixed(size) => _ = self.take(*size, start)?,
            Kind::Enum(symbols) => _ = self.index(symbols.len())?,
            Kind::Record(fields) => {
                for field in fields {
                    self.skip(types, field.of, depth + 1).map_err(|fault| fault.in_member(&field.name))?;
                }
            }
            Kind::Union(branches) => {
                let branch = self.index(branches.len())?;
                self.skip(types, branches[branch], depth + 1)?;
            }
            Kind::Array(of) => self.skip_blocks(types, *of, false, depth)?,
            Kind::Map(of) => self.skip_blocks(types, *of, true, depth)?,
        }
        Ok(())
    }

    fn skip_blocks(&mut self, types: &Types, of: usize, has_keys: bool, depth: u32) -> Parsed<()> {
        let is_empty = types.node(of).is_empty && !has_keys;
        while let Some(Block { count, size }) = self.block(is_empty)? {
            if let Some(size) = size {
                self.take(size, self.at)?;
                continue;
            }
            // Elements without bytes need no steps, whatever their number.
            let steps = if is_empty { 0 } else { count };
            for _ in 0..steps {
                if has_keys {
                    self.bytes()?;
                }
                self.skip(types, of, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// Returns the fault of a length that is negative or beyond the end.
#[cold]
pub(super) fn beyond(start: usize, length: i64) -> Box<Fault> {
    Fault::new(
        start,
        match u64::try_from(length) {
            Ok(length) => MessageErrorKind::LengthBeyondEnd(length),
            Err(_) => MessageErrorKind::NegativeLength(length),
        },
    )
}
