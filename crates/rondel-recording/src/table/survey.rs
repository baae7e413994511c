//! Topics, first rows and times of a table, found before it is read.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use csv::ByteRecord;

use super::TableOptions;
use super::columns::{Columns, Shape, TimeColumns};
use super::input::{Opened, Rows, Source, Unreadable};
use super::layout::Layout;
use super::times::is_time_of_day;
use crate::compressed;
use crate::reader::MAX_LINE;
use crate::recording::RecordingError;

/// Number of rows used to find columns with values in the same rows.
const SAMPLE: usize = 2048;
/// Number of bytes at the end of a file searched for the last time.
const END: u64 = 64 << 10;
/// Maximum number of topics of a table.
const TOPICS: usize = 1 << 16;

/// A topic with the number of its messages, if known.
type Named = (String, Option<u64>);

/// Returns the topics of a table, and the number of messages of each.
pub(super) fn named(
    source: Source<'_>,
    columns: &Columns,
    options: &TableOptions<'_>,
) -> Result<(Vec<Named>, Vec<Layout>), RecordingError> {
    let refused = |reason: String| RecordingError::Form { path: source.path.to_owned(), reason };
    let stem = compressed::stem(source.path);
    let (names, sample) = match columns.shape {
        Shape::One => {
            let name = options.topic.or(options.only_topic).unwrap_or(&stem);
            (vec![(name.to_owned(), None)], Vec::new())
        }
        Shape::ByCell(column) => (
            names(source, column).map_err(|error| match error {
                Unread::Failed(error) => error,
                Unread::TooMany(most) => refused(format!(
                    "its column `topic` has more than {most} names; choose a topic for all rows with --topic"
                )),
            })?,
            Vec::new(),
        ),
        Shape::ByColumn => (Vec::new(), sample(source)?),
    };
    let (names, layouts) = match columns.shape {
        Shape::ByColumn => {
            let found = columns.topics(&sample, options.is_topic).map_err(refused)?;
            found.into_iter().map(|(name, layout)| ((name, None), layout)).unzip()
        }
        _ => {
            let layout = columns.layout().map_err(refused)?;
            let layouts = vec![layout; names.len()];
            (names, layouts)
        }
    };
    Ok((names, layouts))
}

impl Columns {
    /// Finds the first and the last time, and determines the columns with times.
    pub(super) fn ends(
        &mut self,
        source: Source<'_>,
        options: &TableOptions<'_>,
    ) -> Result<Ends, RecordingError> {
        let is_chosen = self.is_chosen;
        let mut ends = self::ends(source, self.time)?;
        // A time with a date needs no separate one.
        if let Some(of) = self.time.as_mut().filter(|of| of.date.is_some() && !is_chosen) {
            let alone = TimeColumns { date: None, ..*of };
            let own = self::ends(source, Some(alone))?;
            let is_of_day = own.first.as_deref().is_none_or(is_time_of_day);
            if !is_of_day && options.time_format.is_none() {
                (*of, ends) = (alone, own);
            }
        }
        Ok(ends)
    }
}

/// Reason why the topics of a table cannot be found.
enum Unread {
    Failed(RecordingError),
    TooMany(usize),
}

/// Returns the names in a column, in the order of their first rows, with their numbers of rows.
fn names(source: Source<'_>, column: usize) -> Result<Vec<(String, Option<u64>)>, Unread> {
    let mut rows = source.open().map_err(Unread::Failed)?.rows;
    let mut row = ByteRecord::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut names: Vec<(String, Option<u64>)> = Vec::new();
    let mut width = None;
    let mut last = usize::MAX;
    rows.only(column);
    #[cfg(feature = "parquet")]
    if let Rows::Parquet(rows) = &mut rows {
        rows.take_names(column);
    }
    // Errors are reported when the messages are read.
    loop {
        match rows.read(&mut row) {
            Ok(true) => {}
            #[cfg(feature = "parquet")]
            Err(Unreadable::Part(_)) => continue,
            Err(Unreadable::Row(..)) => continue,
            Ok(false) | Err(Unreadable::Text(_)) => break,
        }
        if rows.is_open() {
            break;
        }
        if width.replace(width.unwrap_or(row.len())).is_none_or(|width| width != row.len()) {
            // The names of the columns, or an unusable row.
            continue;
        }
        // Some programs write a space behind each comma.
        let name = row.get(column).map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
        // A row without a name is reported when the messages are read.
        let Some(name) = name else { continue };
        if names.get(last).is_none_or(|(own, _)| own.as_bytes() != name) {
            last = match places.get(name) {
                Some(place) => *place,
                None if names.len() >= TOPICS => return Err(Unread::TooMany(TOPICS)),
                None => {
                    let Ok(text) = std::str::from_utf8(name) else { continue };
                    places.insert(name.to_vec(), names.len());
                    names.push((text.to_owned(), Some(0)));
                    names.len() - 1
                }
            };
        }
        if let Some((_, Some(count))) = names.get_mut(last) {
            *count += 1;
        }
    }
    Ok(names)
}

/// Returns the first rows.
fn sample(source: Source<'_>) -> Result<Vec<ByteRecord>, RecordingError> {
    let mut rows = source.open()?.rows;
    let (mut found, mut row, mut size) = (Vec::new(), ByteRecord::new(), 0);
    while found.len() <= SAMPLE && size < MAX_LINE && matches!(rows.read(&mut row), Ok(true)) {
        size += row.as_slice().len() + 8 * row.len();
        found.push(row.clone());
    }
    found.drain(..found.len().min(1));
    Ok(found)
}

/// Cells with times of the first and of the last row.
#[derive(Default)]
pub(super) struct Ends {
    pub(super) first: Option<Vec<u8>>,
    pub(super) last: Option<Vec<u8>>,
}

/// Finds the first and the last time of a table; the last one only if that needs no other rows.
fn ends(source: Source<'_>, columns: Option<TimeColumns>) -> Result<Ends, RecordingError> {
    let Some(columns) = columns else { return Ok(Ends::default()) };
    let Opened { mut rows, separator, size, .. } = source.open()?;
    let mut row = ByteRecord::new();
    let (mut first, mut joined) = (None, Vec::new());
    let mut is_header = true;
    if columns.date.is_none() {
        rows.only(columns.time);
    }
    #[cfg(feature = "parquet")]
    if let Rows::Parquet(rows) = &mut rows {
        rows.take_times(columns.time);
    }
    while first.is_none() && matches!(rows.read(&mut row), Ok(true)) {
        let cell = columns.cell(&row, &mut joined);
        first = (!is_header && !cell.is_empty()).then(|| cell.to_vec());
        is_header = false;
    }
    let is_packed = compressed::is_packed(source.path);
    let last = match &mut rows {
        #[cfg(feature = "parquet")]
        Rows::Parquet(rows) => rows.last(columns.time),
        Rows::Influx(rows) => rows.last().map(<[u8]>::to_vec),
        _ if is_packed => None,
        Rows::Long(rows) => {
            let columns = TimeColumns { time: rows.form().time, date: None };
            last(source.path, separator, columns, size)
        }
        Rows::Separated(..) => last(source.path, separator, columns, size),
    };
    Ok(Ends { first, last })
}

/// Returns the cell in the last row, if it can be found without reading all rows.
fn last(path: &Path, separator: u8, columns: TimeColumns, size: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(size.saturating_sub(END))).ok()?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end).ok()?;
    let line = end.trim_ascii_end().rsplit(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    let mut rows =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(line);
    let mut row = ByteRecord::new();
    rows.read_byte_record(&mut row).ok()?;
    row.get(columns.time)?;
    Some(columns.cell(&row, &mut Vec::new()).to_vec())
}
