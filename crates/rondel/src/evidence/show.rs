//! Evidence as it is written.

use std::fmt::Write as _;

use serde_json::json;

use super::{Evidence, Moment};
use crate::formula::value_text;
use crate::output::{write_seconds, write_value};

/// How many characters of a name, and of a value, are shown.
const NAME: usize = 48;
const VALUE: usize = 20;

impl Evidence<'_> {
    /// Appends a small table for people: a line for each value, over time.
    pub fn text(&self, out: &mut Vec<u8>) {
        let moments = || self.moments();
        let mut rows: Vec<(String, Vec<String>)> = vec![
            ("time".into(), moments().map(|moment| format!("{} s", moment.time)).collect()),
            ("step".into(), moments().map(|m| m.step.map_or_else(String::new, |s| s.to_string())).collect()),
            ("message".into(), moments().map(|moment| self.topic(moment).to_owned()).collect()),
        ];
        for (i, name) in self.columns() {
            let cell = |moment: &Moment| match moment.values.get(i) {
                Some(Some(value)) => shorten(&value_text(value), VALUE),
                _ => "?".to_owned(),
            };
            rows.push((shorten(name, NAME), moments().map(cell).collect()));
        }
        let width = |text: &str| text.chars().count();
        let names = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        let cells: Vec<usize> = (0..moments().count())
            .map(|i| rows.iter().map(|(_, cells)| width(&cells[i])).max().unwrap_or(0))
            .collect();
        for (name, row) in &rows {
            let mut line = format!("    {name:<names$}");
            for (cell, width) in row.iter().zip(&cells) {
                // Writing to a String does not fail.
                let _ = write!(line, "  {cell:>width$}");
            }
            out.extend_from_slice(line.trim_end().as_bytes());
            out.push(b'\n');
        }
    }

    /// Appends a JSON array: an object for each moment.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, moment) in self.moments().enumerate() {
            out.extend_from_slice(if i > 0 { b",{\"time\":" } else { b"{\"time\":" });
            write_seconds(moment.time, out);
            if let Some(step) = moment.step {
                out.extend_from_slice(format!(",\"step\":{step}").as_bytes());
            }
            if moment.topic.is_some() {
                out.extend_from_slice(format!(",\"topic\":{}", json!(self.topic(moment))).as_bytes());
            }
            out.extend_from_slice(b",\"values\":{");
            let values = self.columns().filter_map(|(at, name)| Some((name, moment.values.get(at)?)));
            for (j, (name, value)) in values.enumerate() {
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

    /// The columns that explain the violation.
    fn columns(&self) -> impl Iterator<Item = (usize, &str)> {
        self.explaining.0.iter().filter_map(|&at| Some((at, self.columns.get(at)?.as_str())))
    }

    /// The moments at which they changed.
    fn moments(&self) -> impl Iterator<Item = &Moment> {
        self.explaining.1.iter().filter_map(|&at| self.moments.get(at))
    }

    fn topic(&self, moment: &Moment) -> &str {
        let topic = moment.topic.and_then(|topic| self.topics.get(topic.index()));
        topic.map_or("", String::as_str)
    }
}

/// The beginning of a long text.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
