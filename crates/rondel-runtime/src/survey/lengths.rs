//! Lengths of time in drafts: as text in a comment, and rounded up as a bound.

/// A length of time in a comment, with two digits.
pub(super) fn duration(nanos: u64) -> String {
    let mut scale = 1;
    while nanos / scale >= 100 {
        scale *= 10;
    }
    let rounded = (nanos / scale + u64::from(nanos % scale * 2 >= scale)).saturating_mul(scale);
    match rounded {
        100_000..10_000_000 => format!("{} ms", rounded as f64 / 1e6),
        _ => crate::text::duration(rounded).replace(".0 ", " "),
    }
}

/// A bound of at least so many nanoseconds, with two digits.
pub(super) fn bound(nanos: u64) -> String {
    match rounded(nanos) {
        (count, 1) => format!("{count} ns"),
        (count, 1_000) => format!("{count} us"),
        (ms, 1_000_000) if ms >= 1_000 && ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        (count, 1_000_000) => format!("{count} ms"),
        (count, _) => format!("{count} s"),
    }
}

/// At least so many nanoseconds, with two digits: a number, and its unit in nanoseconds.
pub(super) fn rounded(nanos: u64) -> (u64, u64) {
    let unit = match nanos {
        0..1_000 => 1,
        1_000..1_000_000 => 1_000,
        1_000_000..10_000_000_000 => 1_000_000,
        _ => 1_000_000_000,
    };
    let mut count = nanos.div_ceil(unit);
    let mut scale = 1;
    while count >= 100 {
        count = count.div_ceil(10);
        scale *= 10;
    }
    (count * scale, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_up() {
        for (nanos, text) in [
            (1, "1 ns"),
            (1_234, "2 us"),
            (75_100_000, "76 ms"),
            (1_510_000_000, "1600 ms"),
            (2_950_000_001, "3 s"),
            (15_000_000_000, "15 s"),
            (123_000_000_000, "130 s"),
            (u64::MAX, "19000000000 s"),
        ] {
            assert_eq!(bound(nanos), text);
        }
    }
}
