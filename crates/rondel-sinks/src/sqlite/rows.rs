//! Rows of a query as a table, CSV or JSON.

use std::fmt::Write;

use rondel_event::terminal::{escaped, escaped_json};

/// Rows of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether there are more rows than were wanted.
    pub has_more: bool,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// An integer.
    Integer(i64),
    /// A double-precision number.
    Real(f64),
    /// Text; bytes are written in hexadecimal digits.
    Text(String),
}

/// Form of rows as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Table for people.
    #[default]
    Table,
    /// Comma-separated values (RFC 4180), with a header.
    Csv,
    /// An object per line. Texts that are JSON objects or arrays are nested. Characters that a terminal obeys are escaped.
    Json,
}

impl Rows {
    /// Returns the rows as text, which ends with a line break.
    pub fn text(&self, format: Format) -> String {
        match format {
            Format::Table => self.table(),
            Format::Csv => self.csv(),
            Format::Json => self.json(),
        }
    }

    /// Returns rows whose texts have those characters escaped that a terminal obeys, line breaks among them.
    #[must_use]
    pub fn escaped(&self) -> Rows {
        let shown = |text: &String| escaped(text).into_owned();
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => Cell::Text(shown(text)),
            other => other.clone(),
        };
        Rows {
            columns: self.columns.iter().map(shown).collect(),
            rows: self.rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
            has_more: self.has_more,
        }
    }

    fn table(&self) -> String {
        let shown = |cell: &Cell| escaped(&cell.shown()).into_owned();
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
        let width = |text: &str| text.chars().count();
        // Columns without a value say nothing.
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|&i| rows.is_empty() || rows.iter().any(|row| !row[i].is_empty()))
            .collect();
        let widths: Vec<usize> = (used.iter())
            .map(|&i| rows.iter().map(|row| width(&row[i])).fold(width(&self.columns[i]), usize::max))
            .collect();
        let is_number: Vec<bool> = (used.iter())
            .map(|&i| self.rows.iter().all(|row| !matches!(row[i], Cell::Text(_))) && !rows.is_empty())
            .collect();
        let mut out = String::new();
        for row in std::iter::once(&self.columns).chain(&rows) {
            let mut line = String::new();
            for ((&i, width), is_number) in used.iter().zip(&widths).zip(&is_number) {
                let gap = if line.is_empty() { "" } else { "  " };
                // Writing to a string does not fail.
                let _ = match is_number {
                    true => write!(line, "{gap}{:>width$}", row[i]),
                    false => write!(line, "{gap}{:<width$}", row[i]),
                };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }

    fn csv(&self) -> String {
        let mut out = String::new();
        let mut write_line = |cells: &mut dyn Iterator<Item = String>| {
            for (i, cell) in cells.enumerate() {
                out += if i > 0 { "," } else { "" };
                if cell.contains([',', '"', '\n', '\r']) {
                    out.push('"');
                    out += &cell.replace('"', "\"\"");
                    out.push('"');
                } else {
                    out += &cell;
                }
            }
            out += "\r\n";
        };
        write_line(&mut self.columns.iter().cloned());
        for row in &self.rows {
            write_line(&mut row.iter().map(Cell::shown));
        }
        out
    }

    fn json(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            for (i, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                out += if i == 0 { "{" } else { "," };
                out += &escaped_json(&serde_json::Value::from(column.as_str()).to_string());
                out.push(':');
                out += &cell.json();
            }
            out += if row.is_empty() { "{}\n" } else { "}\n" };
        }
        out
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Cell::Null => String::new(),
            Cell::Integer(i) => i.to_string(),
            Cell::Real(x) => x.to_string(),
            Cell::Text(text) => text.clone(),
        }
    }

    fn json(&self) -> String {
        match self {
            Cell::Null => "null".to_owned(),
            Cell::Integer(i) => i.to_string(),
            Cell::Real(x) => serde_json::Value::from(*x).to_string(),
            Cell::Text(text) => {
                let is_nested = text.starts_with(['{', '[']);
                if is_nested && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
                    return escaped_json(text).into_owned();
                }
                escaped_json(&serde_json::Value::from(text.as_str()).to_string()).into_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_in_every_format() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let rows = Rows {
            columns: ["property", "count", "none", "key"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![text("a,b"), Cell::Integer(5), Cell::Null, text(r#"{"id":7}"#)],
                vec![text("long \"name\""), Cell::Real(1234.5), Cell::Null, text("{no json\n")],
            ],
            has_more: false,
        };
        assert_eq!(
            rows.text(Format::Table),
            "property      count  key\n\
             a,b               5  {\"id\":7}\n\
             long \"name\"  1234.5  {no json\\n\n"
        );
        assert_eq!(
            rows.text(Format::Csv),
            "property,count,none,key\r\n\"a,b\",5,,\"{\"\"id\"\":7}\"\r\n\
             \"long \"\"name\"\"\",1234.5,,\"{no json\n\"\r\n"
        );
        assert_eq!(
            rows.text(Format::Json),
            "{\"property\":\"a,b\",\"count\":5,\"none\":null,\"key\":{\"id\":7}}\n\
             {\"property\":\"long \\\"name\\\"\",\"count\":1234.5,\"none\":null,\"key\":\"{no json\\n\"}\n"
        );
        let lines =
            Rows { columns: vec!["a".to_owned()], rows: vec![vec![text("[1,\n\t2]")]], has_more: false };
        assert_eq!(lines.text(Format::Json), "{\"a\":[1,  2]}\n", "an object is a line");
        let empty = Rows { columns: vec!["a".to_owned()], ..Rows::default() };
        assert_eq!(empty.text(Format::Table), "a\n");
    }

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let cells = vec![text("a\u{202e}b"), text("{\"id\":\"\u{e0041}\u{9b}\"}")];
        let columns = vec!["n\u{200f}".to_owned(), "key".to_owned()];
        let rows = Rows { columns, rows: vec![cells], has_more: false };
        let json = rows.text(Format::Json);
        assert_eq!(
            json, "{\"n\\u200f\":\"a\\u202eb\",\"key\":{\"id\":\"\\udb40\\udc41\\u009b\"}}\n",
            "JSON names them by their code"
        );
        let value: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!(
            (&value["n\u{200f}"], &value["key"]["id"]),
            (&"a\u{202e}b".into(), &"\u{e0041}\u{9b}".into())
        );
        // Programs that read CSV get the values as they are.
        assert!(rows.text(Format::Csv).contains("a\u{202e}b"));
        let shown = "n\\u{200f},key\r\na\\u{202e}b,\"{\"\"id\"\":\"\"\\u{e0041}\\u{9b}\"\"}\"\r\n";
        assert_eq!(rows.escaped().text(Format::Csv), shown);
    }
}
