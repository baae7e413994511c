//! Gather buffers: the records of a batch as columns.

use rondel_event::Rows;

use crate::keyed::keys::for_each;
use crate::keyed::record::{BITS, Layout};
use crate::keyed::table::Table;
use crate::ops::columns::Values;

/// One word of every record of a batch.
pub(crate) type Words = Values<u64>;

/// Most records have few words: a constant width takes a quarter of the instructions to turn rows into
/// columns.
macro_rules! by_width {
    ($width:expr, $f:ident $arguments:tt) => {
        match $width {
            3 => $f::<3>$arguments,
            4 => $f::<4>$arguments,
            5 => $f::<5>$arguments,
            6 => $f::<6>$arguments,
            7 => $f::<7>$arguments,
            8 => $f::<8>$arguments,
            9 => $f::<9>$arguments,
            10 => $f::<10>$arguments,
            _ => $f::<ANY>$arguments,
        }
    };
}
/// Gathered records of the instances of a batch, by row.
#[derive(Clone, Debug)]
pub(crate) struct GatherBuffers {
    /// Instance of every row.
    pub(crate) instances: Values<u32>,
    /// One column per word of a record.
    pub(crate) records: Vec<Words>,
    /// For every bit of a record, the rows where it is set.
    pub(crate) bits: Vec<Rows>,
}

impl GatherBuffers {
    pub(crate) fn new(layout: &Layout) -> GatherBuffers {
        GatherBuffers {
            instances: [0; _],
            records: vec![[0; _]; layout.words],
            bits: vec![0; layout.bit_words * 64],
        }
    }

    /// Reads the records of the instances of these rows.
    pub(crate) fn gather(&mut self, table: &Table, rows: Rows) {
        let GatherBuffers { instances, records, bits, .. } = self;
        by_width!(records.len(), gather_words(records, table, instances, rows));
        let planes = bits.chunks_exact_mut(64);
        for (i, (planes, column)) in planes.zip(&records[BITS..]).enumerate() {
            match table.layout.bits - i * 64 {
                few @ ..=FEW if rows.count_ones() <= FEW_ROWS => {
                    let planes = &mut planes[..few];
                    planes.fill(0);
                    for_each(rows, |row| {
                        for (bit, plane) in planes.iter_mut().enumerate() {
                            *plane |= (column[row] >> bit & 1) << row;
                        }
                    });
                }
                few @ ..=FEW => {
                    for (byte, planes) in planes[..few].chunks_mut(8).enumerate() {
                        to_planes(column, 8 * byte, planes);
                    }
                }
                _ => {
                    planes.copy_from_slice(column);
                    transpose(planes);
                }
            }
        }
    }

    /// Writes the records back.
    pub(crate) fn scatter(&mut self, table: &mut Table, rows: Rows) {
        let GatherBuffers { instances, records, bits, .. } = self;
        let planes = bits.chunks_exact_mut(64);
        for (i, (planes, column)) in planes.zip(&mut records[BITS..]).enumerate() {
            match table.layout.bits - i * 64 {
                few @ ..=FEW if rows.count_ones() <= FEW_ROWS => for_each(rows, |row| {
                    let bits = planes[..few].iter().enumerate();
                    column[row] = bits.fold(0, |word, (bit, plane)| word | (plane >> row & 1) << bit);
                }),
                few @ ..=FEW => {
                    column.fill(0);
                    for (byte, planes) in planes[..few].chunks(8).enumerate() {
                        add_planes(planes, 8 * byte, column);
                    }
                }
                _ => {
                    column.copy_from_slice(planes);
                    transpose(column);
                }
            }
        }
        by_width!(records.len(), scatter_words(records, table, instances, rows));
    }
}

/// Marker for a variable width.
const ANY: usize = 0;

fn gather_words<const WIDTH: usize>(
    records: &mut [Words],
    table: &Table,
    instances: &Values<u32>,
    rows: Rows,
) {
    if let Some(columns) = records.first_chunk_mut::<WIDTH>().filter(|_| WIDTH != ANY) {
        for_each(rows, |row| {
            if let Some(record) = table.record(instances[row]).first_chunk::<WIDTH>() {
                for (column, word) in columns.iter_mut().zip(record) {
                    column[row] = *word;
                }
            }
        });
    } else {
        for_each(rows, |row| {
            for (column, word) in records.iter_mut().zip(table.record(instances[row])) {
                column[row] = *word;
            }
        });
    }
}

fn scatter_words<const WIDTH: usize>(
    records: &[Words],
    table: &mut Table,
    instances: &Values<u32>,
    rows: Rows,
) {
    if let Some(columns) = records.first_chunk::<WIDTH>().filter(|_| WIDTH != ANY) {
        for_each(rows, |row| {
            if let Some(record) = table.record_mut(instances[row]).first_chunk_mut::<WIDTH>() {
                for (column, word) in columns.iter().zip(record) {
                    *word = column[row];
                }
            }
        });
    } else {
        for_each(rows, |row| {
            for (column, word) in records.iter().zip(table.record_mut(instances[row])) {
                *word = column[row];
            }
        });
    }
}

/// Maximum number of bits that are transposed bytewise.
const FEW: usize = 16;

/// Maximum number of rows that are transposed bit by bit: a second event of an instance in a block forms such
/// a small batch.
const FEW_ROWS: u32 = 4;

/// Transposes up to eight bits of every word, from `shift` on, to a word of rows each.
#[inline(always)]
fn to_planes(column: &Words, shift: usize, planes: &mut [u64]) {
    let mut bytes = [0; 64];
    for (byte, word) in bytes.iter_mut().zip(column) {
        *byte = (word >> shift) as u8;
    }
    planes.fill(0);
    for (i, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let turned = transpose_bytes(u64::from_le_bytes(*bytes));
        for (bit, plane) in planes.iter_mut().enumerate() {
            *plane |= (turned >> (8 * bit) & 0xff) << (8 * i);
        }
    }
}

/// Adds to every word the bits that [`to_planes`] took from it.
#[inline(always)]
fn add_planes(planes: &[u64], shift: usize, column: &mut Words) {
    for (i, words) in column.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut turned = 0;
        for (bit, plane) in planes.iter().enumerate() {
            turned |= (plane >> (8 * i) & 0xff) << (8 * bit);
        }
        for (word, byte) in words.iter_mut().zip(transpose_bytes(turned).to_le_bytes()) {
            *word |= u64::from(byte) << shift;
        }
    }
}

/// Transposes eight bytes of eight bits.
#[inline(always)]
fn transpose_bytes(mut x: u64) -> u64 {
    for (by, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swap = (x >> by ^ x) & mask;
        x ^= swap ^ swap << by;
    }
    x
}

/// Transposes 64 words of 64 bits, whose lowest bit is the first.
fn transpose(words: &mut [u64]) {
    let (mut width, mut mask) = (32, u64::MAX >> 32);
    while width != 0 {
        // In every square of twice the width, the upper right quarter swaps with the lower left.
        for start in (0..words.len()).step_by(2 * width) {
            let (low, high) = words[start..].split_at_mut(width);
            for (a, b) in low.iter_mut().zip(high) {
                let swap = (*a >> width ^ *b) & mask;
                *a ^= swap << width;
                *b ^= swap;
            }
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposition_swaps_rows_and_columns() {
        let words: Vec<u64> = (1..=64_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let mut swapped = words.clone();
        transpose(&mut swapped);
        for (i, swapped) in swapped.iter().enumerate() {
            for (j, word) in words.iter().enumerate() {
                assert_eq!(swapped >> j & 1, word >> i & 1, "{i} {j}");
            }
        }
        let mut column = [0; 64];
        column.copy_from_slice(&words);
        for (shift, count) in [(0, 8), (8, 3), (8, 1)] {
            let mut planes = [u64::MAX; 8];
            to_planes(&column, shift, &mut planes[..count]);
            assert_eq!(planes[..count], swapped[shift..shift + count]);
            let mut back = [0; 64];
            add_planes(&planes[..count], shift, &mut back);
            let mask = (1 << count) - 1;
            assert!(back.iter().zip(&words).all(|(back, word)| *back == (word >> shift & mask) << shift));
        }
    }
}
