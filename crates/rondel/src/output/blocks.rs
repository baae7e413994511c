//! Verdicts and values over time as lines of blocks, one character for each stretch of time.

use rondel_report::{Change, Outcome};

/// The blocks of values, from the least to the greatest.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The stretch of time that a line shows, divided into columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The first time, in nanoseconds.
    pub begin: i64,
    /// The last time.
    pub end: i64,
    /// The number of columns, at least 1.
    pub width: usize,
}

impl Axis {
    /// The column of a time between the first and the last.
    fn column(&self, time: i64) -> usize {
        let span = (i128::from(self.end) - i128::from(self.begin)).max(1);
        let part = (i128::from(time) - i128::from(self.begin)).clamp(0, span);
        let column = part * self.width as i128 / span;
        usize::try_from(column).unwrap_or(0).min(self.width - 1)
    }

    /// The columns of the times from one on and before another, if they are in the stretch. `is_last` includes the other.
    fn columns(&self, from: i64, until: i64, is_last: bool) -> Option<std::ops::RangeInclusive<usize>> {
        // An interval of length 0 is still visible.
        let until = if is_last || until <= from { until.max(from) } else { until - 1 };
        if until < self.begin || from > self.end {
            return None;
        }
        Some(self.column(from)..=self.column(until))
    }
}

/// The verdict of each column: violated if it was at any time of the column, otherwise the last one; none before the
/// first verdict.
pub fn verdicts(changes: &[Change], axis: Axis) -> Vec<Option<Outcome>> {
    let mut cells = vec![None; axis.width];
    for (i, change) in changes.iter().enumerate() {
        let next = changes.get(i + 1).map(|next| next.time_ns);
        let until = next.unwrap_or(axis.end.max(change.time_ns));
        for column in axis.columns(change.time_ns, until, next.is_none()).into_iter().flatten() {
            if cells[column] != Some(Outcome::Violated) {
                cells[column] = Some(change.verdict);
            }
        }
    }
    cells
}

/// The block of a verdict, and the code of its colour.
pub fn block(outcome: Outcome) -> (char, &'static str) {
    match outcome {
        Outcome::Satisfied => ('█', "32"),
        Outcome::Vacuous => ('░', "90"),
        Outcome::Inconclusive => ('▒', "33"),
        Outcome::Violated => ('▁', "1;31"),
    }
}

/// Verdicts as a line; successive ones of one colour are one piece.
pub fn bar(cells: &[Option<Outcome>], colour: bool) -> String {
    let mut line = String::new();
    for same in cells.chunk_by(|a, b| a == b) {
        let Some(first) = same.first() else { continue };
        let (glyph, code) = first.map_or((' ', ""), block);
        let text: String = same.iter().map(|_| glyph).collect();
        line += &match colour && !code.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text,
        };
    }
    line
}

/// The least, the greatest and the last of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// The last.
    pub last: f64,
}

impl Range {
    /// With one more value.
    fn with(range: Option<Range>, value: f64) -> Range {
        let Range { least, greatest, .. } =
            range.unwrap_or(Range { least: value, greatest: value, last: value });
        Range { least: least.min(value), greatest: greatest.max(value), last: value }
    }
}

/// Values as a line, and their range; none without a finite value in the stretch. Each value holds until the next one;
/// a column shows the one that is farthest from the column before it, so that neither peaks nor dips are lost.
pub fn values(course: &[(i64, Option<f64>)], axis: Axis) -> Option<(String, Range)> {
    let mut columns: Vec<Option<Range>> = vec![None; axis.width];
    let mut whole: Option<Range> = None;
    for (i, (time, value)) in course.iter().enumerate() {
        let Some(value) = value.filter(|value| value.is_finite()) else { continue };
        let next = course.get(i + 1).map(|(next, _)| *next);
        let until = next.unwrap_or(axis.end.max(*time));
        let Some(held) = axis.columns(*time, until, next.is_none()) else { continue };
        whole = Some(Range::with(whole, value));
        for column in held {
            columns[column] = Some(Range::with(columns[column], value));
        }
    }
    let whole = whole?;
    let mut before = None;
    let mut line = String::new();
    for column in columns {
        let Some(Range { least, greatest, last }) = column else {
            line.push(' ');
            continue;
        };
        let far = before.map_or(last, |before: f64| {
            if (greatest - before).abs() >= (least - before).abs() { greatest } else { least }
        });
        line.push(level(far, whole));
        before = Some(far);
    }
    Some((line, whole))
}

/// The block of a value.
fn level(value: f64, Range { least, greatest, .. }: Range) -> char {
    // Halves first: the difference of the largest numbers has no value.
    let span = greatest / 2.0 - least / 2.0;
    if span <= 0.0 {
        return LEVELS[3];
    }
    let share = (value / 2.0 - least / 2.0) / span;
    let last = LEVELS.len() - 1;
    // A share is between 0 and 1.
    LEVELS[((share * last as f64).round() as usize).min(last)]
}

/// The first and the last time below a line, with a line between them.
pub fn axis(begin: &str, end: &str, width: usize) -> String {
    let taken = begin.chars().count() + end.chars().count() + 2;
    match width.checked_sub(taken).filter(|room| *room > 0) {
        Some(room) => format!("{begin} {} {end}", "─".repeat(room)),
        None => format!("{begin} ─ {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(all: &[(i64, Outcome)]) -> Vec<Change> {
        all.iter().map(|(time_ns, verdict)| Change { time_ns: *time_ns, verdict: *verdict }).collect()
    }

    fn line(all: &[(i64, Outcome)], begin: i64, end: i64, width: usize) -> String {
        bar(&verdicts(&changes(all), Axis { begin, end, width }), false)
    }

    #[test]
    fn no_violation_is_hidden() {
        use Outcome::{Inconclusive, Satisfied, Violated};
        for (all, expected) in [
            (&[(0, Satisfied)][..], "██████████"),
            (&[(0, Satisfied), (50, Violated)], "█████▁▁▁▁▁"),
            (&[(0, Inconclusive), (20, Satisfied), (99, Violated)], "▒▒███████▁"),
            // An instant, and a verdict that begins late.
            (&[(0, Satisfied), (34, Violated), (34, Satisfied)], "███▁██████"),
            (&[(70, Satisfied)], "       ███"),
            (&[(0, Inconclusive), (100, Satisfied)], "▒▒▒▒▒▒▒▒▒█"),
            // Verdicts before and after the stretch.
            (&[(-50, Violated), (-10, Satisfied), (200, Violated)], "██████████"),
            (&[(i64::MIN, Violated), (i64::MAX, Satisfied)], "▁▁▁▁▁▁▁▁▁▁"),
            (&[], "          "),
        ] {
            assert_eq!(line(all, 0, 100, 10), expected, "{all:?}");
        }
    }

    #[test]
    fn recording_of_one_time_point_has_a_line() {
        assert_eq!(line(&[(5, Outcome::Violated)], 5, 5, 4), "▁   ");
        assert_eq!(line(&[(i64::MIN, Outcome::Satisfied)], i64::MIN, i64::MAX, 4), "████");
    }

    #[test]
    fn colours_are_for_pieces() {
        use Outcome::{Satisfied, Violated};
        let cells = [Some(Satisfied), Some(Satisfied), None, Some(Violated)];
        assert_eq!(bar(&cells, true), "\u{1b}[32m██\u{1b}[0m \u{1b}[1;31m▁\u{1b}[0m");
    }

    #[test]
    fn peaks_and_dips_are_seen() {
        let axis = Axis { begin: 0, end: 100, width: 10 };
        let course = |all: &[(i64, f64)]| -> Vec<(i64, Option<f64>)> {
            all.iter().map(|(time, value)| (*time, Some(*value))).collect()
        };
        let line = |all: &[(i64, f64)]| values(&course(all), axis).map(|(line, _)| line);
        assert_eq!(line(&[(0, 0.0), (50, 7.0)]).as_deref(), Some("▁▁▁▁▁█████"));
        assert_eq!(
            line(&[(0, 3.0), (32, 7.0), (33, 3.0), (71, 0.0), (72, 3.0)]).as_deref(),
            Some("▄▄▄█▄▄▄▁▄▄")
        );
        assert_eq!(line(&[(0, 2.5)]).as_deref(), Some("▄▄▄▄▄▄▄▄▄▄"));
        assert_eq!(line(&[(0, f64::MIN), (50, f64::MAX)]).as_deref(), Some("▁▁▁▁▁█████"));
        assert_eq!(line(&[(0, f64::INFINITY)]), None);
        let gap = [(0, Some(1.0)), (30, None), (60, Some(2.0))];
        let range = Range { least: 1.0, greatest: 2.0, last: 2.0 };
        assert_eq!(values(&gap, axis), Some(("▁▁▁   ████".to_owned(), range)));
        assert_eq!(values(&[], axis), None);
    }

    #[test]
    fn the_axis_is_as_wide_as_the_line() {
        assert_eq!(axis("0 s", "10 s", 20), "0 s ─────────── 10 s");
        assert_eq!(axis("0 s", "10 s", 5), "0 s ─ 10 s");
    }
}
