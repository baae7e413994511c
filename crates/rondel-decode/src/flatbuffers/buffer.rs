//! Tables, vectors and offsets of a buffer. Every position is compared with the end before it is read.

use crate::error::{Fault, MessageErrorKind, Parsed};

/// The bytes of a message.
#[derive(Clone, Copy)]
pub(super) struct Buffer<'m>(pub(super) &'m [u8]);

/// Positions of a table and of its vtable, the list of positions of its fields.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) at: usize,
    vtable: usize,
    /// Size of the vtable, including its two own numbers.
    vtable_size: usize,
}

impl<'m> Buffer<'m> {
    #[inline(always)]
    pub(super) fn array<const N: usize>(self, at: usize) -> Parsed<[u8; N]> {
        match self.0.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => Ok(*bytes),
            None => Err(self.truncated()),
        }
    }

    #[inline(always)]
    pub(super) fn u16(self, at: usize) -> Parsed<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    #[inline(always)]
    pub(super) fn u32(self, at: usize) -> Parsed<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    #[cold]
    fn truncated(self) -> Box<Fault> {
        Fault::new(self.0.len(), MessageErrorKind::Truncated)
    }

    /// Checks that `size` bytes exist at a position.
    #[inline(always)]
    pub(super) fn need(self, at: usize, size: usize) -> Parsed<()> {
        if at.saturating_add(size) > self.0.len() { Err(self.truncated()) } else { Ok(()) }
    }

    /// Returns the position to which an offset leads.
    #[inline(always)]
    pub(super) fn follow(self, at: usize) -> Parsed<usize> {
        let offset = self.u32(at)?;
        let to = at.saturating_add(offset as usize);
        if offset == 0 || to >= self.0.len() {
            return Err(Fault::new(at, MessageErrorKind::OffsetBeyondEnd(offset.into())));
        }
        Ok(to)
    }

    /// Reads the table at a position.
    #[inline(always)]
    pub(super) fn table(self, at: usize) -> Parsed<Table> {
        let back = i64::from(i32::from_le_bytes(self.array(at)?));
        let no_table = || Fault::new(at, MessageErrorKind::NotATable);
        let vtable = usize::try_from(at as i64 - back).map_err(|_| no_table())?;
        let Ok(size) = self.u16(vtable) else { return Err(no_table()) };
        let vtable_size = usize::from(size);
        if vtable_size < 4 || vtable_size & 1 == 1 || vtable + vtable_size > self.0.len() {
            return Err(no_table());
        }
        Ok(Table { at, vtable, vtable_size })
    }

    /// Returns the position of a field; `entry` is the offset of its entry in the vtable.
    #[inline(always)]
    pub(super) fn field(self, table: Table, entry: u16) -> Parsed<Option<usize>> {
        if usize::from(entry) + 2 > table.vtable_size {
            return Ok(None);
        }
        let offset = self.u16(table.vtable + usize::from(entry))?;
        Ok((offset != 0).then(|| table.at + usize::from(offset)))
    }

    /// Returns the number of elements of the vector at a position, and where they begin; all of them exist.
    #[inline(always)]
    pub(super) fn vector(self, at: usize, size: usize) -> Parsed<(usize, usize)> {
        let count = self.u32(at)? as usize;
        let start = at + 4;
        if count.saturating_mul(size) > self.0.len() - start {
            return Err(Fault::new(at, MessageErrorKind::LengthBeyondEnd(count as u64)));
        }
        Ok((count, start))
    }

    /// Returns the text at a position, which need not be UTF-8 yet.
    #[inline(always)]
    pub(super) fn text(self, at: usize) -> Parsed<&'m [u8]> {
        let (length, start) = self.vector(at, 1)?;
        Ok(&self.0[start..start + length])
    }
}
