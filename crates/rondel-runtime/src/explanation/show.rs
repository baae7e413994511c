//! Explanations in text and in JSON.

use std::fmt::Write as _;

use rondel_event::{Timestamp, Value};
use serde_json::json;

use super::{Explanation, TimePoint};
use crate::text::{value_text, write_seconds, write_value};

/// The number of characters of a name, and of a value, that are shown.
const NAME: usize = 48;
const VALUE: usize = 20;

impl Explanation {
    /// Appends a small table for people: a line for each value, over time. `time` writes a time.
    pub fn text(&self, time: &mut dyn FnMut(Timestamp) -> String, out: &mut Vec<u8>) {
        let points = || self.points.iter();
        let mut time =
            |point: &TimePoint| format!("{}{}", if point.after { "after " } else { "" }, time(point.time));
        let mut rows: Vec<(String, Vec<String>)> = vec![
            ("time".into(), points().map(&mut time).collect()),
            ("step".into(), points().map(|m| m.step.map_or_else(String::new, |s| s.to_string())).collect()),
            ("message".into(), points().map(|point| point.topic.clone().unwrap_or_default()).collect()),
        ];
        for (i, name) in self.shown_names().into_iter().enumerate() {
            let is_element = self.elements.get(i) == Some(&true);
            let cell = |point: &TimePoint| match point.values.get(i) {
                Some(Some(Value::String(text))) if is_element => shorten(text, VALUE),
                Some(None) if is_element => "none".to_owned(),
                Some(Some(value)) => shorten(&value_text(value), VALUE),
                _ => "?".to_owned(),
            };
            rows.push((name, points().map(cell).collect()));
        }
        let width = |text: &str| text.chars().count();
        let names = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        let cells: Vec<usize> = (0..points().count())
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

    /// The names, none longer than a line allows. Of those that begin alike the ends are shown, too.
    fn shown_names(&self) -> Vec<String> {
        let begin: Vec<String> = self.names.iter().map(|name| shorten(name, NAME)).collect();
        let is_double = |text: &String| begin.iter().filter(|other| *other == text).count() > 1;
        let shown = |(name, text): (&String, &String)| match is_double(text) {
            true => begin_and_end(name, NAME),
            false => text.clone(),
        };
        self.names.iter().zip(&begin).map(shown).collect()
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

/// The beginning and the end of a long text.
fn begin_and_end(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let end = most / 2;
    text.chars().take(most - end - 1).chain(['…']).chain(text.chars().skip(count - end)).collect()
}
