//! Pages of a Parquet column, checked for the number of values that they claim.
//!
//! The library allocates memory for claimed counts before it reads the values: for dictionary entries, for the lengths
//! in delta encodings, and for all elements of a row. A few bytes can claim billions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// Maximum number of entries of a dictionary, and of texts of a page in a delta encoding. Writers make dictionaries of
/// one MiB.
const ENTRIES: usize = 8 << 20;
/// Maximum number of list elements in the pages read at a time. The rows read at a time usually have about an eighth of
/// it.
const ELEMENTS: u64 = 32 << 20;

/// The pages of a column.
pub(super) struct Pages {
    pages: Box<dyn PageReader>,
    physical: Physical,
    /// Highest repetition and definition levels.
    levels: [i16; 2],
    /// Number of list elements in the pages read.
    elements: Arc<AtomicU64>,
}

impl Pages {
    /// Returns the pages of a column. Their list elements are added to `elements`, which is reset when other rows are
    /// read.
    pub(super) fn new(
        pages: Box<dyn PageReader>,
        column: &ColumnDescriptor,
        elements: &Arc<AtomicU64>,
    ) -> Pages {
        let levels = [column.max_rep_level(), column.max_def_level()];
        Pages { pages, physical: column.physical_type(), levels, elements: Arc::clone(elements) }
    }

    /// Checks that a page has the values that it claims.
    ///
    /// # Errors
    /// A description of the missing values.
    fn check(&self, page: &Page) -> Result<()> {
        let refused = |reason: String| Err(ParquetError::General(reason));
        let claimed = page.num_values() as usize;
        if let Page::DictionaryPage { buf, .. } = page {
            // A value has at least one byte.
            if claimed > buf.len().min(ENTRIES) {
                let bytes = buf.len();
                return refused(format!(
                    "a dictionary of {bytes} bytes claims {claimed} entries; at most {ENTRIES} are read"
                ));
            }
            return Ok(());
        }
        if self.levels[0] > 0 {
            let before = self.elements.fetch_add(claimed as u64, Ordering::Relaxed);
            if before.saturating_add(claimed as u64) > ELEMENTS {
                return refused(format!(
                    "the lists of rows that are read at a time have more than {ELEMENTS} elements"
                ));
            }
        }
        let has_lengths = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => self.physical == Physical::BYTE_ARRAY,
            Encoding::DELTA_BYTE_ARRAY => true,
            _ => false,
        };
        if has_lengths {
            let most = claimed.min(ENTRIES);
            let values = self.values(page).ok_or_else(ended)?;
            let end = lengths_end(values, most)?;
            if page.encoding() == Encoding::DELTA_BYTE_ARRAY {
                lengths_end(values.get(end..).ok_or_else(ended)?, most)?;
            }
        }
        Ok(())
    }

    /// Returns the values of a data page, which follow the levels.
    fn values<'a>(&self, page: &'a Page) -> Option<&'a [u8]> {
        let (mut rest, encodings, values): (&[u8], _, usize) = match page {
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)?;
                return buf.get(levels..);
            }
            Page::DataPage { buf, num_values, rep_level_encoding, def_level_encoding, .. } => {
                (buf, [*rep_level_encoding, *def_level_encoding], *num_values as usize)
            }
            Page::DictionaryPage { buf, .. } => return Some(buf),
        };
        for (highest, encoding) in self.levels.into_iter().zip(encodings).filter(|(highest, _)| *highest > 0)
        {
            let size = if encoding == Encoding::RLE {
                let (size, after) = rest.split_first_chunk()?;
                rest = after;
                u32::from_le_bytes(*size) as usize
            } else {
                // Each level has as many bits as the highest one.
                let bits = (i16::BITS - highest.leading_zeros()) as usize;
                bits.checked_mul(values)?.div_ceil(8)
            };
            rest = rest.get(size..)?;
        }
        Some(rest)
    }
}

/// Returns the end of a list of numbers in the encoding `DELTA_BINARY_PACKED`.
///
/// # Errors
/// The list claims more than `most` numbers, or the bytes end before it.
fn lengths_end(bytes: &[u8], most: usize) -> Result<usize> {
    let mut at = 0;
    let mut number = || {
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = *bytes.get(at)?;
            at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).ok();
            }
        }
        None
    };
    let [Some(block), Some(parts), Some(count)] = [number(), number(), number()] else {
        return Err(ended());
    };
    if count > most {
        let reason = format!("a page of at most {most} texts claims the lengths of {count}");
        return Err(ParquetError::General(reason));
    }
    skip_number(bytes, &mut at)?;
    let of_part = block.checked_div(parts).filter(|size| *size > 0).ok_or_else(ended)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        skip_number(bytes, &mut at)?;
        let widths = at..at.checked_add(parts).filter(|end| *end <= bytes.len()).ok_or_else(ended)?;
        at = widths.end;
        for width in &bytes[widths] {
            if left == 0 {
                break;
            }
            let size = usize::from(*width).checked_mul(of_part).ok_or_else(ended)?.div_ceil(8);
            at = at.checked_add(size).ok_or_else(ended)?;
            left = left.saturating_sub(of_part);
        }
    }
    if at <= bytes.len() { Ok(at) } else { Err(ended()) }
}

/// Skips a number of variable length.
fn skip_number(bytes: &[u8], at: &mut usize) -> Result<()> {
    let size = bytes.get(*at..).and_then(|rest| rest.iter().position(|byte| byte & 0x80 == 0));
    *at += size.ok_or_else(ended)? + 1;
    Ok(())
}

fn ended() -> ParquetError {
    ParquetError::EOF("a page ends within the lengths of its texts".to_owned())
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_lengths_follows_the_format() {
        // Blocks of 128 in 4 parts, no number.
        assert_eq!(lengths_end(&[0x80, 1, 4, 0, 0, 9], 10).unwrap(), 5);
        // One number is before the blocks.
        assert_eq!(lengths_end(&[0x80, 1, 4, 1, 14, 9], 10).unwrap(), 5);
        // 34 more: two parts of a block have numbers, of 1 and of 2 bits.
        let mut bytes = vec![0x80, 1, 4, 35, 14, 0, 1, 2, 77, 77];
        bytes.extend([0; 4 + 8]);
        assert_eq!(lengths_end(&bytes, 35).unwrap(), bytes.len());
        for (size, most) in [(bytes.len() - 1, 35), (8, 35), (3, 35), (0, 35), (bytes.len(), 34)] {
            assert!(lengths_end(&bytes[..size], most).is_err(), "{size} bytes, at most {most}");
        }
        // 4,294,967,295 numbers, and parts of no numbers.
        let claim = [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f, 14];
        let reason = lengths_end(&claim, 100).unwrap_err().to_string();
        assert!(reason.contains("a page of at most 100 texts claims the lengths of 4294967295"), "{reason}");
        for empty in [[0, 4, 35, 14, 0, 0], [4, 8, 35, 14, 0, 0], [4, 0, 35, 14, 0, 0]] {
            assert!(lengths_end(&empty, 100).is_err());
        }
        assert!(lengths_end(&[0xff; 30], 100).is_err());
    }
}
