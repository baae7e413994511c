//! Wire format of a message: numbers, lengths and skipped fields.

use crate::error::{Fault, MessageErrorKind, Parsed};

/// Maximum nesting of groups.
const MAX_GROUPS: u32 = 64;

// Wire types, in the lower three bits of the tag of a field.
pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const LENGTH: u8 = 2;
const GROUP: u8 = 3;
const GROUP_END: u8 = 4;
pub(crate) const FIXED32: u8 = 5;

/// A position in a message, or in a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'m> {
    /// All bytes up to the end of the part.
    pub(crate) bytes: &'m [u8],
    pub(crate) at: usize,
}

impl<'m> Reader<'m> {
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[cold]
    pub(crate) fn truncated(&self) -> Box<Fault> {
        Fault::new(self.bytes.len(), MessageErrorKind::Truncated)
    }

    /// Reads a varint of one to ten bytes, with seven bits each.
    #[inline(always)]
    pub(crate) fn varint(&mut self) -> Parsed<u64> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Parsed<u64> {
        let (mut value, start) = (0, self.at);
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else { return Err(self.truncated()) };
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::new(start, MessageErrorKind::Misplaced))
    }

    /// Passes a number.
    #[inline(always)]
    fn skip_varint(&mut self) -> Parsed<()> {
        if let Some(bytes) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            // The last byte of a number has no upper bit.
            let ends = !u64::from_le_bytes(*bytes) & 0x8080_8080_8080_8080;
            if ends != 0 {
                self.at += ends.trailing_zeros() as usize / 8 + 1;
                return Ok(());
            }
        }
        self.varint().map(|_| ())
    }

    #[inline(always)]
    pub(crate) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let Some(&bytes) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.truncated());
        };
        self.at += N;
        Ok(bytes)
    }

    /// Reads a length and the part of this length.
    #[inline(always)]
    pub(crate) fn part(&mut self) -> Parsed<Reader<'m>> {
        let start = self.at;
        let length = self.varint()?;
        if length > (self.bytes.len() - self.at) as u64 {
            return Err(Fault::new(start, MessageErrorKind::LengthBeyondEnd(length)));
        }
        let end = self.at + length as usize;
        let part = Reader { bytes: &self.bytes[..end], at: self.at };
        self.at = end;
        Ok(part)
    }

    /// Reads the tag of a field: its number and its wire type.
    #[inline(always)]
    pub(crate) fn tag(&mut self) -> Parsed<(u32, u8)> {
        if let Some(&tag @ 8..0x80) = self.bytes.get(self.at) {
            self.at += 1;
            return Ok((u32::from(tag >> 3), tag & 7));
        }
        let start = self.at;
        let tag = self.varint()?;
        match u32::try_from(tag) {
            Ok(tag) if tag >= 8 => Ok((tag >> 3, (tag & 7) as u8)),
            _ => Err(Fault::new(start, MessageErrorKind::Misplaced)),
        }
    }

    #[inline(always)]
    fn pass(&mut self, size: usize) -> Parsed<()> {
        if size > self.bytes.len() - self.at {
            return Err(self.truncated());
        }
        self.at += size;
        Ok(())
    }

    /// Skips the value of a field of this wire type. `start` is the position of the field.
    #[inline(always)]
    pub(crate) fn skip(&mut self, wire: u8, number: u32, start: usize) -> Parsed<()> {
        match wire {
            VARINT => self.skip_varint()?,
            FIXED64 => self.pass(8)?,
            FIXED32 => self.pass(4)?,
            LENGTH => _ = self.part()?,
            _ => self.skip_group(wire, number, start, 0)?,
        }
        Ok(())
    }

    fn skip_group(&mut self, wire: u8, number: u32, start: usize, depth: u32) -> Parsed<()> {
        if wire != GROUP {
            return Err(Fault::new(start, MessageErrorKind::Misplaced));
        }
        if depth >= MAX_GROUPS {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        loop {
            let at = self.at;
            let (inner, wire) = self.tag()?;
            match wire {
                GROUP_END if inner == number => return Ok(()),
                GROUP => self.skip_group(wire, inner, at, depth + 1)?,
                _ => self.skip(wire, inner, at)?,
            }
        }
    }
}
