//! Conversion of rows of tables to messages.

use std::collections::BTreeMap;

use csv::ByteRecord;
use rondel_event::{Path, Segment, ValueType};

use super::cells::{self, Numbers};
use crate::recording::WantedField;

/// Maximum index of an array element in the name of a column.
const LARGEST_INDEX: u32 = 65_535;
/// Maximum number of parts of the name of a column.
const DEPTH: usize = 100;

/// Form of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Texts that may be values of this type; of any type if unknown.
    Cell(Option<ValueType>),
    /// Texts, each after a mark.
    #[cfg(feature = "parquet")]
    Marked,
    /// JSON with NaN.
    #[cfg(feature = "parquet")]
    Json,
}

/// Parses the name of a column as a path: `pose.x`, `ranges[3]`; with slashes as separators also `pose/x` and
/// `ranges.3`.
pub(super) fn path(name: &str, has_slashes: bool) -> Result<Path, String> {
    let mut segments = Vec::new();
    let index = |text: &str| text.parse::<u32>().ok().filter(|index| *index <= LARGEST_INDEX);
    for part in name.split(|c| c == '.' || has_slashes && c == '/') {
        let mut key = part;
        let mut indexes = Vec::new();
        while let Some((before, text)) = key.strip_suffix(']').and_then(|rest| rest.rsplit_once('['))
            && let Some(index) = index(text)
        {
            indexes.push(Segment::Index(index));
            key = before;
        }
        match index(key) {
            Some(index) if has_slashes && !segments.is_empty() => segments.push(Segment::Index(index)),
            _ if key.is_empty() && !indexes.is_empty() => {}
            _ => segments.push(Segment::Key(key.into())),
        }
        segments.extend(indexes.into_iter().rev());
    }
    if segments.len() > DEPTH {
        return Err(format!("the name of column `{name}` has more than {DEPTH} parts"));
    }
    Ok(Path(segments))
}

/// Whether one of two paths contains the other.
fn touches(own: &Path, wanted: &Path) -> bool {
    own.0.iter().zip(&wanted.0).all(|(a, b)| a == b)
}

/// Columns of a wanted field.
struct MatchingColumns {
    /// Whether it is a column.
    is_column: bool,
    /// Whether it is a column or contains some.
    has_columns: bool,
}

impl MatchingColumns {
    fn of(fields: &[Field], wanted: &Path) -> MatchingColumns {
        MatchingColumns {
            is_column: fields.iter().any(|field| field.path == *wanted),
            has_columns: fields.iter().any(|field| field.path.0.starts_with(&wanted.0)),
        }
    }

    /// Whether a column is read for the field: the field itself, otherwise its members, otherwise the columns that
    /// contain it.
    fn takes(&self, column: &Path, wanted: &Path) -> bool {
        let is_within = column.0.len() > wanted.0.len();
        let is_around = column.0.len() < wanted.0.len();
        touches(column, wanted) && !(is_within && self.is_column) && !(is_around && self.has_columns)
    }
}

/// Whether a wanted type is that of the column with this path.
fn is_of(wanted: &WantedField, path: &Path) -> bool {
    match path.0.split_last() {
        Some((Segment::Index(_), array)) if wanted.of_elements => wanted.path.0 == *array,
        _ => !wanted.of_elements && wanted.path == *path,
    }
}

/// Whether a field contains the column with this name, or is contained in it.
#[cfg(feature = "parquet")]
pub(super) fn begins_alike(field: &Path, name: &str) -> bool {
    path(name, false).is_ok_and(|own| touches(&own, field))
}

/// Conversion of rows to the messages of a topic.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    fields: Vec<Field>,
    root: Node,
    numbers: Numbers,
}

/// A column that is a field.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) column: usize,
    pub(super) form: Form,
    pub(super) path: Path,
}

/// A field or a structure of fields.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Column and form of its own value.
    cell: Option<(usize, Form)>,
    /// Members with the text `"key":` before each, and elements by index.
    members: Vec<(Vec<u8>, Node)>,
    elements: BTreeMap<u32, Node>,
}

impl Layout {
    pub(super) fn new(fields: Vec<Field>, has_comma: bool) -> Layout {
        let numbers = Numbers { has_comma, takes_nan: false };
        let mut layout = Layout { fields, root: Node::default(), numbers };
        layout.plan(|_| Some(None));
        layout
    }

    /// Restricts the message to these fields, with their types. Fields that contain them or are contained in them are
    /// kept.
    pub(super) fn want(&mut self, wanted: &[WantedField]) {
        self.numbers.takes_nan = true;
        // If there are columns such as `p` and `p.x`, the wanted ones count.
        let own: Vec<MatchingColumns> =
            wanted.iter().map(|field| MatchingColumns::of(&self.fields, &field.path)).collect();
        self.plan(|path| {
            let kind = wanted.iter().filter(|field| is_of(field, path)).find_map(|field| field.kind);
            wanted.iter().zip(&own).any(|(field, own)| own.takes(path, &field.path)).then_some(kind)
        });
    }

    /// Builds the message from the fields for which `kind` returns `Some`: their type, or `None` if it is unknown.
    fn plan(&mut self, kind: impl Fn(&Path) -> Option<Option<ValueType>>) {
        self.root = Node::default();
        for field in &self.fields {
            // Columns do not give the length of an array in a row, and elements have fixed positions.
            let is_searched = |segment: &Segment| matches!(segment, Segment::FromEnd(_) | Segment::Named(_));
            if field.path.0.iter().any(is_searched) {
                continue;
            }
            let Some(kind) = kind(&field.path) else { continue };
            let mut node = &mut self.root;
            for segment in &field.path.0 {
                node = match segment {
                    Segment::Index(index) | Segment::FromEnd(index) => {
                        node.elements.entry(*index).or_default()
                    }
                    Segment::Key(key) => node.member(key),
                    Segment::Named(_) => continue,
                };
            }
            let form = match field.form {
                Form::Cell(own) => Form::Cell(kind.or(own)),
                #[cfg(feature = "parquet")]
                other => other,
            };
            node.cell = Some((field.column, form));
        }
    }

    /// Returns the columns whose cells are read: with `with_all` those of all fields of the topic, which decide whether
    /// a row has a message.
    #[cfg(feature = "parquet")]
    pub(super) fn columns(&self, with_all: bool) -> Vec<usize> {
        let mut found = Vec::new();
        if with_all {
            found.extend(self.fields.iter().map(|field| field.column));
        }
        self.root.columns(&mut found);
        found
    }

    /// Whether a row has a value in any column of the topic.
    pub(super) fn is_in(&self, row: &ByteRecord) -> bool {
        self.fields.iter().any(|field| row.get(field.column).is_some_and(|cell| !cell.is_empty()))
    }

    /// Writes the message of a row.
    ///
    /// # Errors
    /// The column whose cell is not UTF-8.
    #[inline]
    pub(super) fn write(&self, row: &ByteRecord, out: &mut Vec<u8>) -> Result<(), usize> {
        if !self.root.write(row, self.numbers, out)? {
            out.extend_from_slice(b"{}");
        }
        Ok(())
    }
}

impl Node {
    #[cfg(feature = "parquet")]
    fn columns(&self, found: &mut Vec<usize>) {
        found.extend(self.cell.map(|(column, _)| column));
        let members = self.members.iter().map(|(_, node)| node);
        members.chain(self.elements.values()).for_each(|node| node.columns(found));
    }

    fn member(&mut self, key: &str) -> &mut Node {
        let mut name = Vec::new();
        // A `str` is always valid.
        let _ = cells::text(key.as_bytes(), &mut name);
        name.push(b':');
        let place = self.members.iter().position(|(own, _)| *own == name).unwrap_or_else(|| {
            self.members.push((name, Node::default()));
            self.members.len() - 1
        });
        &mut self.members[place].1
    }

    /// Writes the value, if there is one; returns whether there is.
    fn write(&self, row: &ByteRecord, numbers: Numbers, out: &mut Vec<u8>) -> Result<bool, usize> {
        if let Some((column, form)) = self.cell {
            let cell = row.get(column).unwrap_or_default();
            if !cell.is_empty() {
                match form {
                    Form::Cell(kind) => cells::write(cell, kind, numbers, out).map_err(|()| column)?,
                    #[cfg(feature = "parquet")]
                    Form::Marked => cells::text(&cell[1..], out).map_err(|()| column)?,
                    #[cfg(feature = "parquet")]
                    Form::Json if numbers.takes_nan => out.extend_from_slice(cell),
                    #[cfg(feature = "parquet")]
                    Form::Json => cells::without_nan(cell, out),
                }
                return Ok(true);
            }
        }
        let begin = out.len();
        if !self.members.is_empty() {
            out.push(b'{');
            let mut end = out.len();
            for (name, node) in &self.members {
                if end > begin + 1 {
                    out.push(b',');
                }
                out.extend_from_slice(name);
                if node.write(row, numbers, out)? {
                    end = out.len();
                } else {
                    out.truncate(end);
                }
            }
            if end > begin + 1 {
                out.push(b'}');
                return Ok(true);
            }
            out.truncate(begin);
        }
        if !self.elements.is_empty() {
            out.push(b'[');
            let (mut next, mut end) = (0, out.len());
            for (index, node) in &self.elements {
                for i in next..*index {
                    out.extend_from_slice(if i == 0 { b"null" } else { b",null" });
                }
                if *index > 0 {
                    out.push(b',');
                }
                next = index + 1;
                if node.write(row, numbers, out)? {
                    end = out.len();
                } else {
                    out.extend_from_slice(b"null");
                }
            }
            out.truncate(end);
            if end > begin + 1 {
                out.push(b']');
                return Ok(true);
            }
            out.truncate(begin);
        }
        Ok(false)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rondel_event::TimeUnit;

    use super::super::TableOptions;
    use super::super::columns::{Columns, Shape};
    use super::*;

    fn columns(header: &[&str]) -> Columns {
        Columns::new(&ByteRecord::from(header), b',', &TableOptions::default()).unwrap()
    }

    fn message(layout: &Layout, row: &[&str]) -> String {
        let mut out = Vec::new();
        layout.write(&ByteRecord::from(row), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_become_nested_messages() {
        let table = columns(&["time_ns", "pose.x", "pose.q.w", "ranges[0]", "ranges[2]", "name"]);
        let time = table.time.map(|columns| columns.time);
        assert_eq!((time, table.unit), (Some(0), Some(TimeUnit::Nanoseconds)));
        assert_eq!(table.shape, Shape::One);
        let mut layout = table.layout().unwrap();
        let full = message(&layout, &["1", "2", "3", "4", "5", "a"]);
        assert_eq!(full, r#"{"pose":{"x":2,"q":{"w":3}},"ranges":[4,null,5],"name":"a"}"#);
        assert_eq!(message(&layout, &["1", "", "3", "4", "", ""]), r#"{"pose":{"q":{"w":3}},"ranges":[4]}"#);
        assert_eq!(message(&layout, &["1", "", "", "", "5", ""]), r#"{"ranges":[null,null,5]}"#);
        assert_eq!(message(&layout, &["1", "", "", "", "", ""]), "{}");
        layout.want(&[WantedField {
            path: Path::keys(["name"]),
            kind: Some(ValueType::String),
            of_elements: false,
        }]);
        assert_eq!(message(&layout, &["1", "2", "3", "4", "5", "6"]), r#"{"name":"6"}"#);
        let clash = columns(&["time", "p", "p.x"]).layout().unwrap();
        for (path, expected) in [(vec!["p"], r#"{"p":1}"#), (vec!["p", "x"], r#"{"p":{"x":2}}"#)] {
            let mut clash = clash.clone();
            clash.want(&[WantedField { path: Path::keys(path), kind: None, of_elements: false }]);
            assert_eq!(message(&clash, &["0", "1", "2"]), expected);
        }
        layout.want(&[WantedField {
            path: Path::keys(["ranges"]),
            kind: Some(ValueType::Float),
            of_elements: true,
        }]);
        assert_eq!(message(&layout, &["1", "2", "3", "inf", "nan", "6"]), r#"{"ranges":[1e999,null,NaN]}"#);
    }
}
