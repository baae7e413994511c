//! Explanations in text and in JSON.

use std::fmt::Write as _;

use rondel_event::{Timestamp, Value};
use serde_json::json;

use super::{Explanation, TimePoint};
use crate::text::{value_text, write_seconds, write_value};

/// The columns before each line of a table, and between two cells.
const INDENT: usize = 4;
const GAP: usize = 2;
/// The least number of columns that names have before a table is divided.
const NAME: usize = 20;

/// A time as it is shown: on the axis of the table, and the local time of day if it is one of the calendar.
pub type ShownTime = (String, Option<String>);

impl Explanation {
    /// Appends a small table for people: a line for each value, over time. No line is longer than `width` if its cells
    /// allow: names that leave no room for values stand above them, and time points that do not fit side by side stand
    /// one below the other. `time` writes a time.
    pub fn text(&self, width: usize, time: &mut dyn FnMut(Timestamp) -> ShownTime, out: &mut Vec<u8>) {
        let rows = self.rows((width / 2).clamp(NAME, 120), time);
        let columns = |text: &str| text.chars().count();
        let cells: Vec<usize> = (0..self.points.len())
            .map(|i| GAP + rows.iter().map(|(_, cells)| columns(&cells[i])).max().unwrap_or(0))
            .collect();
        let longest = rows.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
        let all: usize = cells.iter().sum();
        let most = width.saturating_sub(INDENT);
        // Names may take what the values leave, and at least some of the width.
        let for_names = longest.min(most.saturating_sub(all).max(most * 2 / 5).max(NAME));
        let mut first = 0;
        while first < cells.len() {
            let mut room = most.saturating_sub(for_names);
            let fitting = cells[first..].iter().take_while(|cell| {
                let fits = **cell <= room;
                room = room.saturating_sub(**cell);
                fits
            });
            let end = first + fitting.count().max(1);
            let taken: usize = cells[first..end].iter().sum();
            let for_names = most.saturating_sub(taken).max(NAME);
            let shown = rows.iter().map(|(name, _)| columns(name)).filter(|name| *name <= for_names);
            let names = shown.max().unwrap_or(0);
            for (name, row) in &rows {
                write_row(name, &row[first..end], &cells[first..end], names, width, out);
            }
            first = end;
        }
    }

    /// The names with their values at the time points; no value has more than `most` characters.
    fn rows(&self, most: usize, time: &mut dyn FnMut(Timestamp) -> ShownTime) -> Vec<(String, Vec<String>)> {
        let points = || self.points.iter();
        let after = |point: &TimePoint| if point.after { "after " } else { "" };
        let times: Vec<ShownTime> = points().map(|point| time(point.time)).collect();
        let mut rows: Vec<(String, Vec<String>)> = Vec::with_capacity(self.names.len() + 4);
        let axis = times.iter().zip(points()).map(|((text, _), point)| format!("{}{text}", after(point)));
        rows.push(("time".into(), axis.collect()));
        if times.iter().any(|(_, local)| local.is_some()) {
            let local = times.iter().map(|(_, local)| local.clone().unwrap_or_default());
            rows.push(("local time".into(), local.collect()));
        }
        let step = |point: &TimePoint| point.step.map_or_else(String::new, |step| step.to_string());
        rows.push(("step".into(), points().map(step).collect()));
        rows.push((
            "message".into(),
            points().map(|point| point.topic.clone().unwrap_or_default()).collect(),
        ));
        for (i, name) in self.names.iter().enumerate() {
            let is_element = self.elements.get(i) == Some(&true);
            let cell = |point: &TimePoint| match point.values.get(i) {
                Some(Some(Value::String(text))) if is_element => shorten(text, most),
                Some(None) if is_element => "none".to_owned(),
                Some(Some(value)) => shorten(&value_text(value), most),
                _ => "?".to_owned(),
            };
            rows.push((name.clone(), points().map(cell).collect()));
        }
        rows
    }

    /// Appends a JSON array: an object for each point.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, point) in self.points.iter().enumerate() {
            out.extend_from_slice(if i > 0 { b",{\"time\":" } else { b"{\"time\":" });
            write_seconds(point.time, out);
            out.extend_from_slice(if point.after { b",\"after\":true" } else { b"" });
            if let Some(step) = point.step {
                out.extend_from_slice(format!(",\"step\":{step}").as_bytes());
            }
            if point.topic.is_some() {
                out.extend_from_slice(format!(",\"topic\":{}", json!(point.topic)).as_bytes());
            }
            out.extend_from_slice(b",\"values\":{");
            for (j, (name, value)) in self.names.iter().zip(&point.values).enumerate() {
                let comma = if j > 0 { "," } else { "" };
                out.extend_from_slice(format!("{comma}{}:", json!(name)).as_bytes());
                match value {
                    Some(value) => write_value(value, out),
                    None => out.extend_from_slice(b"null"),
                }
            }
            out.extend_from_slice(b"}}");
        }
        out.push(b']');
    }
}

/// The beginning of a long text.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Appends a row of a table of this width: its name, above the values if it has more than `names` columns, and the values
/// with the widths of their cells.
fn write_row(name: &str, row: &[String], cells: &[usize], names: usize, width: usize, out: &mut Vec<u8>) {
    let mut line = " ".repeat(INDENT);
    if name.chars().count() <= names {
        // Writing to a String does not fail.
        let _ = write!(line, "{name:<names$}");
    } else {
        for part in wrapped(name, width.saturating_sub(INDENT + GAP).max(NAME)) {
            out.extend_from_slice(format!("{line}{part}\n").as_bytes());
            line = " ".repeat(INDENT + GAP);
        }
        line = " ".repeat(INDENT + names);
    }
    for (cell, width) in row.iter().zip(cells) {
        let _ = write!(line, "{cell:>width$}");
    }
    out.extend_from_slice(line.trim_end().as_bytes());
    out.push(b'\n');
}

/// A text in lines of at most so many characters, divided at blanks where it has some.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let columns = word.chars().count();
        match lines.last_mut() {
            Some(line) if length == 0 || length + 1 + columns <= most => {
                line.push_str(if length > 0 { " " } else { "" });
                line.push_str(word);
                length += columns + usize::from(length > 0);
            }
            _ => {
                lines.push(word.to_owned());
                length = columns;
            }
        }
    }
    lines
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn explanation(names: &[&str], points: usize) -> Explanation {
        let point = |i: usize| TimePoint {
            time: Timestamp::from_nanos(i as i64 * 1_250_000_000),
            after: false,
            step: Some(i as u64),
            topic: Some("odom".to_owned()),
            values: names.iter().map(|_| Some(Value::Float(i as f64 / 3.0))).collect(),
        };
        Explanation {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            elements: vec![false; names.len()],
            points: (0..points).map(point).collect(),
            begin: Timestamp::ZERO,
            signals: Vec::new(),
        }
    }

    fn lines(explanation: &Explanation, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        explanation.text(width, &mut |time| (format!("{time} s"), None), &mut out);
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn no_name_is_cut_and_no_line_too_long() {
        let long =
            "historically[0, 2 s] (mean(odom.v) over 1 s <= limits.speed + 1 and rate(odom) over 1 s >= 45)";
        let explained = explanation(&["odom.v", long], 6);
        for width in [40, 60, 80, 100, 120, 200, 400] {
            let lines = lines(&explained, width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            let text = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
            assert!(text.contains(long), "{width}: {text}");
            assert_eq!(text.matches("1.6666666666666667").count(), 2, "{width}: {text}");
        }
        // Time points that fit are shown side by side.
        assert_eq!(lines(&explained, 400).len(), 5);
    }

    #[test]
    fn a_long_name_is_shown_above_its_values() {
        let found = lines(&explanation(&["a.x", "a.x + a.y + a.z + a.w + a.v + a.u > 3"], 2), 50);
        let expected = [
            "    time      0 s              1.25 s",
            "    step        0                   1",
            "    message  odom                odom",
            "    a.x         0  0.3333333333333333",
            "    a.x + a.y + a.z + a.w + a.v + a.u > 3",
            "                0  0.3333333333333333",
        ];
        assert_eq!(found, expected);
    }
}
