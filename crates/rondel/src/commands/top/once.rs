//! One table on standard output, for scripts.

use std::io::{self, Write as _};

use rondel_event::terminal::escaped;

use super::answers::{Overview, TopicRow};
use super::client::{Client, Failure};
use super::detail::{time_text, verdict_name};
use super::model::{Model, Tab};
use super::watch::{OverviewQuery, PART, topics};
use crate::output::time_text::TimeText;

/// Loads everything that matches, and returns the table.
///
/// # Errors
/// The server does not answer, or refuses.
pub fn table(client: &mut Client, model: &Model) -> Result<String, Failure> {
    match model.tab {
        Tab::Properties => {
            let mut query = OverviewQuery { offset: 0, ..model.wanted().overview };
            let mut rows = Vec::new();
            loop {
                let overview = Overview::of(&client.get(&query.target(PART))?);
                let is_last = overview.rows.len() < PART;
                rows.extend(overview.rows);
                if is_last {
                    break;
                }
                query.offset = rows.len();
            }
            let mut times = TimeText::default();
            let head = ["verdict", "property", "since", "severity", "violations", "instances", "note"];
            Ok(aligned(
                &head,
                rows.iter().map(|row| {
                    vec![
                        verdict_name(row.verdict).to_owned(),
                        row.name.clone(),
                        row.since.map_or(String::new(), |time| time_text(&mut times, time)),
                        row.severity.clone(),
                        row.violations.to_string(),
                        format!("{}/{}", row.violated, row.instances),
                        row.note(),
                    ]
                }),
            ))
        }
        Tab::Topics => {
            let mut rows = topics(client, model.search())?;
            model.topic_sort().order(&mut rows);
            let head =
                ["topic", "rate", "age", "messages", "late", "lost", "undecodable", "network", "address"];
            Ok(aligned(&head, rows.iter().map(topic_cells)))
        }
    }
}

fn topic_cells(row: &TopicRow) -> Vec<String> {
    let number = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.3}"));
    vec![
        row.name.clone(),
        number(row.rate),
        number(row.age),
        row.messages.to_string(),
        row.late.to_string(),
        row.lost.to_string(),
        row.undecodable.to_string(),
        row.network.clone(),
        row.address.clone(),
    ]
}

/// Rows in columns, at least two blanks apart. An empty cell is a dash, so that columns can be counted.
fn aligned(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let cell = |text: String| match text.as_str() {
        "" => "-".to_owned(),
        text => escaped(text).into_owned(),
    };
    let head = head.iter().map(|title| (*title).to_owned()).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(head).chain(rows.map(|row| row.into_iter().map(cell).collect())).collect();
    let mut widths = vec![0; rows.first().map_or(0, Vec::len)];
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for row in &rows {
        let line: String = row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}  ")).collect();
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Writes the table. A reader that has seen enough is no failure.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(table: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(table.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_counted() {
        let rows = [["violated", "a\x1b[2J", ""], ["satisfied", "b", "x"]];
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect());
        assert_eq!(
            aligned(&["verdict", "property", "note"], rows),
            "verdict    property    note\n\
             violated   a\\u{1b}[2J  -\n\
             satisfied  b           x\n"
        );
    }
}
