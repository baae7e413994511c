//! Lengths of structures in the compact protocol of Thrift, as in the headers of Parquet.
//!
//! The library skips unknown fields and does not check counts: a list of billions of booleans, which take no bytes when
//! they are skipped, or of numbers behind the end of the input, keeps it busy for minutes.

/// Maximum nesting of structures and lists.
const DEPTH: u32 = 32;

/// Types of fields and elements.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const SHORT: u8 = 4;
    pub(super) const INT: u8 = 5;
    pub(super) const LONG: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCTURE: u8 = 12;
}

/// Returns the length of the structure at the beginning of the bytes; `whole` receives the id and the value of each
/// integer field. `None` if there is no structure, it ends behind the bytes, or it has lists and maps of booleans,
/// which headers of Parquet do not have.
pub(super) fn length(bytes: &[u8], mut whole: impl FnMut(i64, i64)) -> Option<usize> {
    let mut reader = Reader { rest: bytes };
    reader.structure(DEPTH, &mut whole)?;
    Some(bytes.len() - reader.rest.len())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn skip(&mut self, size: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(size).ok()?..)?;
        Some(())
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Zigzag encoding: even numbers are doubled, odd ones are negative.
    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn structure(&mut self, depth: u32, whole: &mut dyn FnMut(i64, i64)) -> Option<()> {
        let mut number: i64 = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let step = i64::from(head >> 4);
            number = if step == 0 { self.signed()? } else { number.checked_add(step)? };
            match head & 0x0f {
                kind::TRUE | kind::FALSE => {}
                kind::SHORT | kind::INT | kind::LONG => whole(number, self.signed()?),
                kind => self.value(kind, depth)?,
            }
        }
    }

    /// Skips a value of at least one byte.
    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        let below = depth.checked_sub(1)?;
        match kind {
            kind::BYTE => self.skip(1),
            kind::SHORT | kind::INT | kind::LONG => self.signed().map(drop),
            kind::DOUBLE => self.skip(8),
            kind::BINARY => {
                let size = self.unsigned()?;
                self.skip(size)
            }
            kind::LIST | kind::SET => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.value(head & 0x0f, below))
            }
            kind::MAP => {
                let count = self.unsigned()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.value(kinds >> 4, below)?;
                    self.value(kinds & 0x0f, below)
                })
            }
            kind::STRUCTURE => self.structure(below, &mut |_, _| {}),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<(usize, Vec<(i64, i64)>)> {
        let mut numbers = Vec::new();
        let size = length(bytes, |number, value| numbers.push((number, value)))?;
        Some((size, numbers))
    }

    #[test]
    fn the_end_of_structures_follows_the_protocol() {
        // The header of a page: a type, two sizes, and a structure with a number and a boolean.
        let header = [0x15, 4, 0x15, 0xa0, 6, 0x15, 0xf0, 4, 0x4c, 0x15, 100, 0x11, 0, 0, 9, 9];
        assert_eq!(read(&header), Some((14, vec![(1, 2), (2, 400), (3, 312)])));
        for size in 0..14 {
            assert_eq!(read(&header[..size]), None, "{size} bytes");
        }
        // Explicit field ids, negative numbers, a list of two texts, and a map.
        let bytes =
            [0x05, 40, 1, 0x19, 0x28, 1, b'a', 0, 0x1b, 1, 0x85, 1, b'k', 3, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        assert_eq!(read(&bytes), Some((bytes.len(), vec![(20, -1)])));
    }

    #[test]
    fn excessive_counts_are_rejected() {
        // Lists with 4,294,967,295 elements, of booleans, numbers and texts; and of undefined types.
        for kind in [1, 2, 5, 7, 8, 12, 14] {
            assert_eq!(read(&[0x19, 0xf0 | kind, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0]), None);
        }
        assert_eq!(read(&[0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0]), None);
        assert_eq!(read(&[0xff; 40]), None);
        // Nested too deep.
        assert_eq!(read(&[0x1c; 100_000]), None);
        assert_eq!(read(&[0x19; 100_000]), None);
    }
}
