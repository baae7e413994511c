//! Texts of durations and figures, and lines of a width.

/// From this time on, the year 2000, a time in seconds is one of the calendar.
const CALENDAR: f64 = 946_684_800.0;

/// A duration in seconds with one unit: `12 s`, `3 min`, `5 h`, `2 d`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", (s / 60.0).floor()),
        s if s < 172_800.0 => format!("{:.0} h", (s / 3_600.0).floor()),
        s => format!("{:.0} d", (s / 86_400.0).floor()),
    }
}

/// Time since an event: the age of a time of the calendar, otherwise the time itself.
pub fn since(time: f64, now: f64) -> String {
    if time >= CALENDAR { duration(now - time) } else { format!("at {time:.1} s") }
}

/// A number of at most four characters and a unit: `950`, `12.3k`, `4.0M`.
pub fn figure(number: f64) -> String {
    match number.abs() {
        n if n.is_nan() => String::new(),
        n if n < 9.95 => format!("{number:.1}"),
        n if n < 999.5 => format!("{number:.0}"),
        n if n < 999_500.0 => format!("{:.1}k", number / 1e3),
        n if n < 999_500_000.0 => format!("{:.1}M", number / 1e6),
        _ => format!("{:.1}G", number / 1e9),
    }
}

/// Divides a text into pieces of at most `width` characters, at blanks where there are some.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let (mut lines, mut rest) = (Vec::new(), text);
    loop {
        let Some((end, _)) = rest.char_indices().nth(width) else {
            lines.push(rest.to_owned());
            return lines;
        };
        let piece = rest.get(..end).unwrap_or(rest);
        let indent = piece.len() - piece.trim_start().len();
        let cut = piece.rfind(' ').filter(|at| *at > indent).unwrap_or(end);
        let (line, after) = rest.split_at(cut);
        lines.push(line.to_owned());
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_figures_are_short() {
        for (seconds, expected) in [
            (-3.0, "0.0 s"),
            (0.04, "0.0 s"),
            (9.0, "9.0 s"),
            (119.0, "119 s"),
            (120.0, "2 min"),
            (7_199.0, "119 min"),
            (7_200.0, "2 h"),
            (172_800.0, "2 d"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
        for (number, expected) in
            [(0.5, "0.5"), (950.0, "950"), (12_345.0, "12.3k"), (4e6, "4.0M"), (2e10, "20.0G")]
        {
            assert_eq!(figure(number), expected);
        }
        assert_eq!(since(1_700_000_000.0, 1_700_000_060.0), "60 s");
        assert_eq!(since(3.5, 1_700_000_060.0), "at 3.5 s", "of a recording that begins at zero");
    }

    #[test]
    fn long_texts_are_wrapped_at_blanks() {
        assert_eq!(wrapped("short", 10), ["short"]);
        assert_eq!(wrapped("always speed < 10", 10), ["always", "speed < 10"]);
        assert_eq!(wrapped("  ääääääääääää", 10), ["  ääääääää", "ääää"]);
        assert_eq!(wrapped("", 10), [""]);
    }
}
