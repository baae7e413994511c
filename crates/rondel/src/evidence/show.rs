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
        let moments = || self.moments.iter();
        let time = |moment: &Moment| format!("{}{} s", if moment.after { "after " } else { "" }, moment.time);
        let mut rows: Vec<(String, Vec<String>)> = vec![
            ("time".into(), moments().map(time).collect()),
            ("step".into(), moments().map(|m| m.step.map_or_else(String::new, |s| s.to_string())).collect()),
            ("message".into(), moments().map(|moment| self.topic(moment).to_owned()).collect()),
        ];
        for (i, name) in self.names().enumerate() {
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
        for (i, moment) in self.moments.iter().enumerate() {
            out.extend_from_slice(if i > 0 { b",{\"time\":" } else { b"{\"time\":" });
            write_seconds(moment.time, out);
            out.extend_from_slice(if moment.after { b",\"after\":true" } else { b"" });
            if let Some(step) = moment.step {
                out.extend_from_slice(format!(",\"step\":{step}").as_bytes());
            }
            if moment.topic.is_some() {
                out.extend_from_slice(format!(",\"topic\":{}", json!(self.topic(moment))).as_bytes());
            }
            out.extend_from_slice(b",\"values\":{");
            for (j, (name, value)) in self.names().zip(&moment.values).enumerate() {
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

    /// What is shown, in the order of the values of a moment.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|&row| self.names.get(row).map_or("?", String::as_str))
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
