//! Reads numbers and strings from a text eight bytes at a time, in the common cases.

use rondel_event::{Block, TimeUnit, Timestamp};

use super::scan::{Kind, Scanner, float, integer, is_rounded};
use super::time::whole;

/// A text that is read eight bytes at a time, at any position.
#[derive(Clone, Copy)]
pub(crate) struct Words<'t> {
    pub(crate) text: &'t [u8],
    /// Last position of eight bytes.
    last: usize,
}

impl<'t> Words<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Option<Words<'t>> {
        Some(Words { text, last: text.len().checked_sub(8)? })
    }

    /// Returns eight bytes at a position; zeros beyond the end.
    #[inline(always)]
    pub(crate) fn at(self, at: usize) -> u64 {
        if at > self.last {
            return self.near_end(at);
        }
        self.read(at)
    }

    #[cold]
    fn near_end(self, at: usize) -> u64 {
        self.read(self.last).checked_shr((8 * (at - self.last)) as u32).unwrap_or(0)
    }

    #[inline(always)]
    fn read(self, at: usize) -> u64 {
        debug_assert!(at <= self.last, "callers have compared");
        // SAFETY: `at <= self.last`, which is `text.len() - 8`. The checks of a slice do the same with
        // four times the instructions (they also look for an overflow of `at + 8`), and with them a line
        // took a fifth longer.
        u64::from_le(unsafe { self.text.as_ptr().add(at).cast::<u64>().read_unaligned() })
    }
}

/// Returns the value of up to eight ASCII digits at the beginning of `word`, and their number.
#[inline(always)]
fn digits(word: u64) -> (u64, usize) {
    let values = word ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets its high bit set by the addition, or has it already.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // Moves the digits to the end, with zeros before them, then adds neighbours: pairs, fours, eight.
    let v = values << (64 - 8 * count);
    let v = (v & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let v = (v & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    let v = (v & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32;
    (v, count)
}

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A number in a text, parsed as far as the fast path supports.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    /// Digits without the point, and the number of decimal places; `None` on the slow path.
    short: Option<(u64, usize)>,
    /// Bounds of the number.
    start: usize,
    pub(crate) end: usize,
}

/// Finds the number at `start`. The fast path supports integers up to fifteen digits, and others with up to seven
/// digits and seven decimal places.
#[inline(always)]
pub(crate) fn decimal(words: Words<'_>, start: usize) -> Option<Decimal> {
    let first = words.at(start);
    let (whole, count) = digits(first);
    let (mut mantissa, mut decimals, mut end) = (whole, 0, start + count);
    // The byte after the digits is in the same word, if there are fewer than eight.
    let mut next = (first >> ((8 * count) & 63)) as u8;
    let leading_zero = count > 1 && first as u8 == b'0';
    let mut short = count > 0 && count < 8 && !leading_zero;
    if count == 8 && !leading_zero {
        // Up to fifteen digits, if no point follows.
        let second = words.at(start + 8);
        let (more, count) = digits(second);
        mantissa = whole * POWERS[count] + more;
        end += count;
        next = (second >> ((8 * count) & 63)) as u8;
        short = count < 8 && next != b'.';
    } else if short && next == b'.' {
        let second = words.at(end + 1);
        let (fraction, count) = digits(second);
        short = count > 0 && count < 8;
        mantissa = whole * POWERS[count] + fraction;
        decimals = count;
        end += 1 + count;
        next = (second >> ((8 * count) & 63)) as u8;
    }
    if short && next | 0x20 != b'e' {
        return Some(Decimal { short: Some((mantissa, decimals)), start, end });
    }
    long_number(words.text, start)
}

#[cold]
fn long_number(text: &[u8], start: usize) -> Option<Decimal> {
    let mut scanner = Scanner::new(text);
    scanner.at = start;
    if scanner.kind().ok()? != Kind::Number {
        return None;
    }
    scanner.scalar(Kind::Number).ok()?;
    Some(Decimal { short: None, start, end: scanner.at })
}

impl Decimal {
    /// Returns the number as a double.
    #[inline(always)]
    pub(crate) fn float(self, text: &[u8]) -> f64 {
        match self.short {
            Some((mantissa, 0)) => mantissa as f64,
            // Fourteen digits are below 2^53, so both sides are exact and the quotient is the nearest.
            Some((mantissa, decimals)) => mantissa as f64 / POWERS[decimals] as f64,
            None => float(&text[self.start..self.end]),
        }
    }

    /// Returns the number as a double, unless it is an integer that would be rounded.
    #[inline(always)]
    pub(crate) fn exact(self, text: &[u8]) -> Option<f64> {
        match self.short {
            None if is_rounded(&text[self.start..self.end]) => None,
            _ => Some(self.float(text)),
        }
    }

    /// Returns the number, if it is an integer.
    #[inline(always)]
    pub(crate) fn integer(self, text: &[u8]) -> Option<i64> {
        match self.short {
            Some((mantissa, 0)) => Some(mantissa as i64),
            _ => integer(&text[self.start..self.end]),
        }
    }

    /// Returns the number, if it has no point and exponent.
    #[inline(always)]
    pub(crate) fn whole(self, text: &[u8]) -> Option<i64> {
        match self.short {
            Some((mantissa, 0)) => Some(mantissa as i64),
            _ => whole(&text[self.start..self.end]),
        }
    }

    /// Returns the number as a time in this unit, in nanoseconds; `scale` is the unit's length.
    #[inline(always)]
    pub(crate) fn nanos(self, text: &[u8], scale: i64, unit: TimeUnit) -> Option<i64> {
        match self.short {
            Some((mantissa, 0)) => (mantissa as i64).checked_mul(scale),
            // An integer number of nanoseconds, with at most seven digits before the point: below 2^63.
            Some((mantissa, decimals)) if decimals <= usize::from(unit.nanos_exponent()) => {
                Some((mantissa * POWERS[usize::from(unit.nanos_exponent()) - decimals]) as i64)
            }
            _ => Timestamp::parse(&text[self.start..self.end], unit).ok().map(Timestamp::as_nanos),
        }
    }
}

/// Marks the bytes that end a string, or that are not ASCII without escapes, by their highest bits. Above the first of
/// them, other bits may be set.
#[inline(always)]
fn ends_plain(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (quote, escape) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    (zero(quote) | zero(escape) | word.wrapping_sub(ONES * 0x20) & !word | word) & HIGH
}

/// Reads a string without escapes.
#[inline(always)]
pub(crate) fn string(
    words: Words<'_>,
    start: usize,
    target: Option<u32>,
    row: usize,
    block: &mut Block,
) -> Option<usize> {
    if words.at(start) as u8 != b'"' {
        return None;
    }
    let mut end = start + 1;
    // Beyond the text there are zeros, which no string contains.
    let stop = loop {
        let word = words.at(end);
        let ends = ends_plain(word);
        if ends != 0 {
            let at = ends.trailing_zeros() / 8;
            end += at as usize;
            break (word >> (8 * at)) as u8;
        }
        end += 8;
    };
    if stop != b'"' {
        return longer_string(words.text, start, target, row, block);
    }
    let from = start + 1;
    if let Some(column) = target
        && !block.write_ascii(column, row, end - from, |at| words.at(from + at))
    {
        return None;
    }
    Some(end + 1)
}

/// Reads a string that may contain other characters than ASCII.
#[cold]
fn longer_string(
    text: &[u8],
    start: usize,
    target: Option<u32>,
    row: usize,
    block: &mut Block,
) -> Option<usize> {
    let body = text.get(start + 1..)?;
    let len = body.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20)?;
    if body[len] != b'"' {
        return None;
    }
    let value = std::str::from_utf8(&body[..len]).ok()?;
    if let Some(column) = target
        && !block.write_string(column, row, value)
    {
        return None;
    }
    Some(start + len + 2)
}
