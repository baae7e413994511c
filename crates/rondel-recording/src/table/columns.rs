//! Roles of the columns of a table: times, topics and fields.

use std::collections::{BTreeMap, HashMap, HashSet};

use csv::ByteRecord;
use rondel_event::{Path, TimeUnit};

use super::TableOptions;
use super::layout::{Field, Form, Layout, path};
use super::times::Times;

/// Number of columns named in an error.
const NAMED: usize = 20;
/// Maximum number of columns.
const COLUMNS: usize = 1 << 16;

/// Assignment of rows to topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All rows belong to one topic.
    One,
    /// Each row belongs to the topic in this column.
    ByCell(usize),
    /// A row belongs to every topic with values in it; columns are named after topics.
    ByColumn,
}

/// Columns with the time of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeColumns {
    pub(super) time: usize,
    /// Column with the date, if it is a separate one.
    pub(super) date: Option<usize>,
}

impl TimeColumns {
    /// Returns the time of a row as written: a date and a time separated by a space; empty if one of them is missing.
    #[inline]
    pub(super) fn cell<'r>(&self, row: &'r ByteRecord, joined: &'r mut Vec<u8>) -> &'r [u8] {
        let cell = row.get(self.time).unwrap_or_default();
        let Some(date) = self.date else { return cell };
        let date = row.get(date).unwrap_or_default().trim_ascii();
        if cell.is_empty() || date.is_empty() {
            return b"";
        }
        joined.clear();
        joined.extend_from_slice(date);
        joined.push(b' ');
        joined.extend_from_slice(cell.trim_ascii());
        joined
    }

    /// Returns the column without a date or a time, and the other one, if a row has only one of both.
    pub(super) fn lacking(&self, row: &ByteRecord) -> Option<[usize; 2]> {
        let is_empty = |column| row.get(column).unwrap_or_default().trim_ascii().is_empty();
        let date = self.date?;
        match (is_empty(date), is_empty(self.time)) {
            (true, false) => Some([date, self.time]),
            (false, true) => Some([self.time, date]),
            _ => None,
        }
    }

    fn has(&self, column: usize) -> bool {
        self.time == column || self.date == Some(column)
    }
}

/// Reason why a table cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ColumnsError {
    /// Fault of the line with the names of the columns.
    Header(String),
    /// Fault of the options, which do not fit the table.
    Choice(String),
}

/// Columns of a table.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    /// Columns with the times.
    pub(super) time: Option<TimeColumns>,
    /// Unit in the name of the column.
    pub(super) unit: Option<TimeUnit>,
    pub(super) shape: Shape,
    /// Positions of the topics by name, set when reading begins.
    pub(super) by_name: HashMap<Vec<u8>, usize>,
    has_comma: bool,
    /// Whether the column with the times is also a field.
    is_field: bool,
    /// Whether the user chose the column with the times.
    pub(super) is_chosen: bool,
    /// Form of the cells of each column, as far as the table states it.
    pub(super) forms: Vec<Form>,
}

/// Returns the unit of a column with times, if its name is that of one: `time`, `time_s`, `time [s]` or `time (s)`.
pub(super) fn time_column(name: &str) -> Option<Option<TimeUnit>> {
    let (base, unit) = split(name);
    (TIMES.contains(&&*base) || base == "stamp" || base == "date").then_some(unit)
}

/// Names of columns with times, except `stamp` and `date`, which may be beside another one; includes those of
/// PlotJuggler, InfluxDB, Foxglove and `rostopic echo -p`.
const TIMES: [&str; 9] =
    ["time", "timestamp", "__time", "_time", "datetime", "date_time", "receive_time", "log_time", "%time"];

/// Returns the name of a column in lower case, and the unit at its end.
fn split(name: &str) -> (String, Option<TimeUnit>) {
    let name = name.to_ascii_lowercase();
    let units = [
        ("ns", TimeUnit::Nanoseconds),
        ("us", TimeUnit::Microseconds),
        ("ms", TimeUnit::Milliseconds),
        ("s", TimeUnit::Seconds),
    ];
    for (text, unit) in units {
        for (before, after) in [("_", ""), ("[", "]"), ("(", ")")] {
            let rest = name.strip_suffix(after).and_then(|name| name.strip_suffix(text));
            if let Some(base) = rest.and_then(|name| name.strip_suffix(before)) {
                return (base.trim_end().to_owned(), Some(unit));
            }
        }
    }
    (name, None)
}

impl Columns {
    /// Reads the header.
    ///
    /// # Errors
    /// The header is invalid, or lacks the chosen columns.
    pub(super) fn new(
        header: &ByteRecord,
        separator: u8,
        options: &TableOptions<'_>,
    ) -> Result<Columns, ColumnsError> {
        if header.len() > COLUMNS {
            return Err(ColumnsError::Header(format!("the table has more than {COLUMNS} columns")));
        }
        let name = |cell: &[u8]| std::str::from_utf8(cell).map(|name| name.trim().to_owned());
        let names = header.iter().map(name).collect::<Result<Vec<String>, _>>();
        let names = names
            .map_err(|_| ColumnsError::Header("the names of the columns are no UTF-8 text".to_owned()))?;
        let is_value = |name: &String| name.is_empty() || is_value(name, separator);
        if options.columns.is_empty() && names.iter().all(is_value) {
            let columns = counted(names.len(), "column");
            return Err(ColumnsError::Header(format!(
                "the first line of this table does not name the columns; name its {columns} with --columns, such as \
                 `--columns time,x`"
            )));
        }
        let mut sorted: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let twice = twice[0];
            return Err(ColumnsError::Header(format!(
                "two columns have the name `{twice}`: rename one of them"
            )));
        }
        let names = with_all_named(names);
        let at = |wanted: &str| names.iter().position(|name| name == wanted.trim());
        let chosen = options.time.and_then(|chosen| match at(chosen) {
            Some(time) => Some(TimeColumns { time, date: None }),
            // The date is in one column, the time in another.
            None => {
                let (date, time) = chosen.split_once(',')?;
                Some(TimeColumns { time: at(time)?, date: Some(at(date)?) })
            }
        });
        if let Some((date, time)) =
            options.time.filter(|_| chosen.is_none()).and_then(|text| text.split_once(','))
            && let Some(missing) = [date, time].into_iter().find(|part| at(part).is_none())
        {
            return Err(ColumnsError::Choice(no_column(missing.trim(), &names)));
        }
        let base = |name: &String| split(name).0;
        let first = |is: &dyn Fn(&String) -> bool| names.iter().position(is);
        let date = first(&|name| base(name) == "date");
        let own = first(&|name| TIMES.contains(&&*base(name)))
            .map(|time| TimeColumns { time, date })
            .or_else(|| {
                let time = first(&|name| base(name) == "stamp").or(date)?;
                Some(TimeColumns { time, date: None })
            });
        let time = chosen.or(own);
        let unit = time.and_then(|of| split(&names[of.time]).1);
        let topic = names.iter().position(|name| name.eq_ignore_ascii_case("topic"));
        let shape = match topic {
            _ if options.topic.is_some() => Shape::One,
            Some(column) => Shape::ByCell(column),
            None if names.iter().any(|name| name.starts_with('/')) => Shape::ByColumn,
            None => Shape::One,
        };
        let has_comma = separator == b';';
        // A stamp may also be a field of the message.
        let is_field = time.is_some_and(|of| chosen.is_some() || base(&names[of.time]) == "stamp");
        Ok(Columns {
            names,
            time,
            unit,
            shape,
            by_name: HashMap::new(),
            has_comma,
            is_field,
            is_chosen: chosen.is_some(),
            forms: Vec::new(),
        })
    }

    /// Returns the reason why rows have no times, if no column has them. A chosen path decides alone: a column must
    /// have it, as it is or in parts.
    pub(super) fn timeless(&self, chosen: Option<&str>) -> Option<ColumnsError> {
        let is_part = |chosen: &str, name: &str| {
            let rest = name.strip_prefix(chosen);
            rest.is_some_and(|rest| rest.starts_with(['.', '['])) || self.shape == Shape::ByColumn
        };
        match chosen {
            Some(chosen) if self.is_chosen || self.names.iter().any(|name| is_part(chosen, name)) => None,
            Some(chosen) => Some(ColumnsError::Choice(no_column(chosen, &self.names))),
            None if self.time.is_some() => None,
            None => Some(ColumnsError::Header(format!(
                "no column has the times of the rows: it would be `time`, `timestamp`, `stamp` or `date`, also with a \
                 unit as in `time_ms` or `time [ms]`, and there are {}; name the column so, or choose one with \
                 --time-field",
                listed(&self.names)
            ))),
        }
    }

    /// Returns the columns that are fields.
    fn data(&self) -> impl Iterator<Item = usize> {
        (0..self.names.len()).filter(|column| {
            let is_time = self.time.is_some_and(|time| time.has(*column)) && !self.is_field;
            !is_time && self.shape != Shape::ByCell(*column)
        })
    }

    /// Returns the fields of a message that has all columns.
    ///
    /// # Errors
    /// A name is no path.
    pub(super) fn layout(&self) -> Result<Layout, String> {
        let field = |column: usize| Ok((column, path(&self.names[column], false)?));
        Ok(self.of_fields(self.data().map(field).collect::<Result<_, String>>()?))
    }

    fn of_fields(&self, fields: Vec<(usize, Path)>) -> Layout {
        let form = |column: usize| self.forms.get(column).copied().unwrap_or(Form::Cell(None));
        let with_form = |(column, path)| Field { column, form: form(column), path };
        Layout::new(fields.into_iter().map(with_form).collect(), self.has_comma)
    }

    /// Returns the topics that the names of columns begin with, and the fields of each.
    ///
    /// # Errors
    /// A name is no path.
    pub(super) fn topics(
        &self,
        sample: &[ByteRecord],
        is_topic: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<Vec<(String, Layout)>, String> {
        let mut found: BTreeMap<String, Vec<(usize, Path)>> = BTreeMap::new();
        // Columns of unknown topics, by the set of rows in which they have values.
        let mut unknown: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
        for column in self.data() {
            let name = &self.names[column];
            let mut starts = name.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
            let known = is_topic.and_then(|is_topic| starts.rfind(|at| is_topic(&name[..*at])));
            if let Some(at) = known {
                let field = path(&name[at + 1..], true)?;
                found.entry(name[..at].to_owned()).or_default().push((column, field));
                continue;
            }
            let mut rows = vec![0_u64; sample.len().div_ceil(64)];
            for (i, row) in sample.iter().enumerate() {
                let is_there = row.get(column).is_some_and(|cell| !cell.is_empty());
                rows[i / 64] |= u64::from(is_there) << (i % 64);
            }
            unknown.entry(rows).or_default().push(column);
        }
        for columns in unknown.into_values() {
            let mut by_first: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for column in columns {
                let name = self.names[column].trim_start_matches('/');
                by_first.entry(name.split('/').next().unwrap_or(name)).or_default().push(column);
            }
            for columns in by_first.into_values() {
                let topic = common(&columns.iter().map(|column| &*self.names[*column]).collect::<Vec<_>>());
                for column in columns {
                    let rest = self.names[column][topic.len()..].trim_start_matches('/');
                    let field = path(if rest.is_empty() { "value" } else { rest }, true)?;
                    found.entry(topic.clone()).or_default().push((column, field));
                }
            }
        }
        Ok(found.into_iter().map(|(topic, fields)| (topic, self.of_fields(fields))).collect())
    }
}

/// Returns the error that the column chosen for the times is missing.
fn no_column(chosen: &str, names: &[String]) -> String {
    format!("no column has the name {chosen:?} that --time-field says; there are {}", listed(names))
}

/// Returns the names of columns, for errors.
fn listed(names: &[String]) -> String {
    let mut named: Vec<String> = names.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
    let more = names.len() - named.len();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// Names the unnamed columns: `column_3` is the third one.
fn with_all_named(mut names: Vec<String>) -> Vec<String> {
    let taken: HashSet<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
    for (column, own) in names.iter_mut().enumerate().filter(|(_, name)| name.is_empty()) {
        *own = format!("column_{}", column + 1);
        while taken.contains(own) {
            own.push('_');
        }
    }
    names
}

/// Whether a cell of the first line is a number or a time, and not the name of a column.
fn is_value(cell: &str, separator: u8) -> bool {
    let has_letters = cell.contains(|c: char| c.is_alphabetic() || c == '_');
    !has_letters
        || cell.parse::<f64>().is_ok()
        || Times::new(None, None, separator == b';').time(cell.as_bytes()).is_some()
}

/// Returns a number with a noun.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("{number} {what}") } else { format!("{number} {what}s") }
}

/// Returns the parts between slashes that all names begin with; the last part of a name counts only if it is its only
/// one.
fn common(names: &[&str]) -> String {
    let parts = |name: &str| -> Vec<String> { name.split('/').map(str::to_owned).collect() };
    let mut shared: Option<Vec<String>> = None;
    for name in names {
        let mut own = parts(name);
        if own.iter().filter(|part| !part.is_empty()).count() > 1 {
            own.pop();
        }
        shared = Some(match shared {
            None => own,
            Some(shared) => {
                shared.into_iter().zip(own).take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
            }
        });
    }
    shared.unwrap_or_default().join("/")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn columns(header: &[&str]) -> Columns {
        Columns::new(&ByteRecord::from(header), b',', &TableOptions::default()).unwrap()
    }

    fn time(columns: &Columns) -> Option<usize> {
        columns.time.map(|columns| columns.time)
    }

    fn message(layout: &Layout, row: &[&str]) -> String {
        let mut out = Vec::new();
        layout.write(&ByteRecord::from(row), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn topics_are_found_in_the_names_of_columns() {
        let table =
            columns(&["__time", "/a/odom/pose/x", "/a/odom/twist/y", "/a/gear/data", "/speed", "/b/c/0"]);
        let rows: [&[&str]; 3] =
            [&["0", "1", "2", "", "", ""], &["1", "", "", "3", "4", ""], &["2", "1", "2", "", "", "5"]];
        let rows: Vec<ByteRecord> = rows.iter().map(|row| ByteRecord::from(*row)).collect();
        let names = |found: Vec<(String, Layout)>| -> Vec<String> {
            found
                .into_iter()
                .map(|(name, layout)| format!("{name} {}", message(&layout, &["9"; 6])))
                .collect()
        };
        let guessed = names(table.topics(&rows, None).unwrap());
        let expected = [
            r#"/a/gear {"data":9}"#,
            r#"/a/odom {"pose":{"x":9},"twist":{"y":9}}"#,
            r#"/b/c {"0":9}"#,
            r#"/speed {"value":9}"#,
        ];
        assert_eq!(guessed, expected);
        let is_topic = |name: &str| name == "/a";
        let known = names(table.topics(&rows, Some(&is_topic)).unwrap());
        assert_eq!(known[0], r#"/a {"odom":{"pose":{"x":9},"twist":{"y":9}},"gear":{"data":9}}"#);
    }

    #[test]
    fn time_columns_are_found_by_name() {
        for (name, unit) in [
            ("Time", None),
            ("stamp", None),
            ("time_s", Some(TimeUnit::Seconds)),
            ("time [s]", Some(TimeUnit::Seconds)),
            ("Time(us)", Some(TimeUnit::Microseconds)),
            ("timestamp [ns]", Some(TimeUnit::Nanoseconds)),
            ("stamp_ms", Some(TimeUnit::Milliseconds)),
        ] {
            assert_eq!(time_column(name), Some(unit), "{name}");
        }
        for name in ["times", "uptime", "time [min]", "time [s", "[s]", "s", "_ns", ""] {
            assert_eq!(time_column(name), None, "{name}");
        }
        // A stamp beside a time is a field; alone it is both.
        assert_eq!(time(&columns(&["stamp", "time"])), Some(1));
        let alone = columns(&["stamp", "x"]);
        assert_eq!(time(&alone), Some(0));
        // A date is beside a time, or alone.
        let both = columns(&["Date", "Time", "x"]);
        assert_eq!(both.time, Some(TimeColumns { time: 1, date: Some(0) }));
        assert_eq!(message(&both.layout().unwrap(), &["1", "2", "3"]), r#"{"x":3}"#);
        assert_eq!(columns(&["x", "date"]).time, Some(TimeColumns { time: 1, date: None }));
        assert_eq!(message(&alone.layout().unwrap(), &["1", "2"]), r#"{"stamp":1,"x":2}"#);
        assert!(matches!(columns(&["a", "b"]).timeless(None), Some(ColumnsError::Header(_))));
        // A chosen column takes precedence over one found by name.
        for header in [["a", "b"], ["time", "b"]] {
            assert!(matches!(columns(&header).timeless(Some("c")), Some(ColumnsError::Choice(_))));
        }
        assert!(columns(&["header.stamp.sec", "b"]).timeless(Some("header.stamp")).is_none());
    }

    #[test]
    fn wrong_headers_are_refused() {
        let refused =
            |header: &[&str]| match Columns::new(&ByteRecord::from(header), b',', &TableOptions::default())
                .unwrap_err()
            {
                ColumnsError::Header(reason) | ColumnsError::Choice(reason) => reason,
            };
        for first in
            [["1", "2.5"], ["2026-11-22", ""], ["18:16:04", "nan"], ["1e3", "-inf"], ["22.11.2026", "1"]]
        {
            let reason =
                "the first line of this table does not name the columns; name its 2 columns with --columns";
            assert!(refused(&first).starts_with(reason), "{first:?}");
        }
        assert_eq!(refused(&["time", "a", "a"]), "two columns have the name `a`: rename one of them");
        let unnamed = columns(&["", "time", "", "column_3"]);
        assert_eq!(unnamed.names, ["column_1", "time", "column_3_", "column_3"]);
        let deep = ["a"; 200].join(".");
        let table = columns(&["time", &deep]);
        assert!(table.layout().is_err());
    }
}
