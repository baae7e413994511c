//! First pass over a file with tables of InfluxDB: finds its columns, tables and runs.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use csv::ByteRecord;
use rondel_event::ValueType;

use super::{Block, Cursor, InfluxRows, Role, Run, Section, reader};
use crate::table::input;
use crate::table::times::Times;
use crate::temporary::Temporary;

/// Maximum number of runs of a file.
const RUNS: usize = 1 << 14;
/// Maximum number of tables of a file.
const BLOCKS: usize = 1 << 14;
/// Maximum number of columns of the merged rows.
const COLUMNS: usize = 1 << 16;
/// Limit of the memory of the buffers of all runs, in bytes.
const BUFFERS: usize = 16 << 20;

/// Annotations before a header.
#[derive(Default)]
struct Annotations {
    kinds: Vec<Vec<u8>>,
    defaults: Vec<Vec<u8>>,
    measurement: Option<Vec<u8>>,
    is_any: bool,
}

impl Annotations {
    /// Adds an annotation.
    fn add(&mut self, row: &ByteRecord) {
        let cells = || row.iter().map(|cell| cell.trim_ascii().to_vec()).collect();
        match row.get(0).unwrap_or_default() {
            own if own.starts_with(b"#datatype") => self.kinds = cells(),
            b"#default" => self.defaults = cells(),
            // `#constant,measurement,cpu`, or `#constant measurement,cpu` as clients write it.
            b"#constant" if row.get(1) == Some(b"measurement") => {
                self.measurement = row.get(2).map(<[u8]>::to_vec);
            }
            b"#constant measurement" => self.measurement = row.get(1).map(<[u8]>::to_vec),
            _ => {}
        }
        self.is_any = true;
    }

    /// Returns the data type of a column, without its format.
    fn kind(&self, column: usize) -> &[u8] {
        let kind = self.kinds.get(column).map_or(&b""[..], |kind| kind);
        let kind = kind.strip_prefix(b"#datatype").map_or(kind, <[u8]>::trim_ascii);
        let end = kind.iter().position(|byte| matches!(byte, b':' | b'|')).unwrap_or(kind.len());
        &kind[..end]
    }
}

/// Columns of the merged rows.
struct Wide {
    header: ByteRecord,
    kinds: Vec<Option<Option<ValueType>>>,
    places: HashMap<Vec<u8>, usize>,
}

impl Wide {
    fn new() -> Wide {
        let header = ByteRecord::from(vec!["_time", "_measurement"]);
        Wide { header, kinds: vec![Some(None), Some(Some(ValueType::String))], places: HashMap::new() }
    }

    /// Returns the column with this name and type of cells, adding it if it is new; `None` if there are too many.
    fn place(&mut self, name: &[u8], kind: Option<ValueType>) -> Option<usize> {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None if self.header.len() >= COLUMNS => return None,
            None => {
                self.places.insert(name.to_vec(), self.header.len());
                self.header.push_field(name);
                self.kinds.push(None);
                self.header.len() - 1
            }
        };
        let own = self.kinds[place].get_or_insert(kind);
        // A field with different types in two tables may have any type.
        if *own != kind {
            *own = None;
        }
        Some(place)
    }
}

/// Returns the type of values of a data type; `None` for any type, and for types that the language does not have.
fn value_type(kind: &[u8]) -> Option<ValueType> {
    match kind {
        b"string" | b"tag" | b"base64Binary" => Some(ValueType::String),
        b"double" => Some(ValueType::Float),
        b"long" | b"unsignedLong" => Some(ValueType::Int),
        b"boolean" => Some(ValueType::Bool),
        _ => None,
    }
}

/// Reason why the tables of a file cannot be found.
pub(super) enum Stopped {
    Reading(io::Error),
    Refused(String),
}

/// The first pass over a file: its tables and runs.
pub(super) struct Scan {
    wide: Wide,
    blocks: Vec<Block>,
    runs: Vec<Run>,
    pub(super) faults: VecDeque<(u64, String)>,
    times: Option<Times>,
    /// Latest time of the current run.
    latest: i64,
    last: Option<(i64, Vec<u8>)>,
    /// Columns of the merged rows for fields that rows name, and all others.
    named: HashSet<usize>,
    own: HashSet<usize>,
    pub(super) at: u64,
    pub(super) line: u64,
}

impl Scan {
    pub(super) fn new() -> Scan {
        Scan {
            wide: Wide::new(),
            blocks: Vec::new(),
            runs: Vec::new(),
            faults: VecDeque::new(),
            times: None,
            latest: i64::MIN,
            last: None,
            named: HashSet::new(),
            own: HashSet::new(),
            at: 0,
            line: 0,
        }
    }

    pub(super) fn read(&mut self, file: &File, separator: u8) -> Result<(), Stopped> {
        let mut mark = [0; 3];
        let has_mark = file.read_at(&mut mark, 0).is_ok_and(|read| read == 3) && mark == *b"\xef\xbb\xbf";
        let begin = if has_mark { 3 } else { 0 };
        let text = From { file, at: begin };
        let mut rows = reader(separator, 256 << 10, input::Input::of(text));
        let mut row = ByteRecord::new();
        let mut annotations = Annotations::default();
        let mut is_open = false;
        loop {
            rows.get_ref().begin_row();
            match rows.read_byte_record(&mut row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    return Err(match error.into_kind() {
                        csv::ErrorKind::Io(error) => Stopped::Reading(error),
                        other => Stopped::Refused(format!("it cannot be read as a table: {other:?}")),
                    });
                }
            }
            let (at, line) = row.position().map_or((0, 0), |place| (place.byte() + begin, place.line()));
            (self.at, self.line) = (at, line);
            if rows.get_ref().is_open() {
                let reason = "a quotation mark in this row is not closed, and nothing from here on is read";
                self.faults.push_back((line, reason.to_owned()));
                is_open = true;
                break;
            }
            if row.get(0).is_some_and(|cell| cell.starts_with(b"#")) {
                self.close(at);
                if !annotations.is_any {
                    annotations = Annotations::default();
                }
                annotations.add(&row);
                continue;
            }
            if annotations.is_any || self.blocks.is_empty() || is_header(&row) {
                self.close(at);
                self.table(&row, &std::mem::take(&mut annotations), line)?;
                continue;
            }
            self.row(&row, at, line)?;
        }
        // The reader adds a line break behind the last byte, which may be missing in the file.
        let end = if is_open { self.at } else { rows.position().byte() + begin };
        self.close(end);
        Ok(())
    }

    /// Ends the current run.
    fn close(&mut self, at: u64) {
        if let Some(run) = self.runs.last_mut().filter(|run| run.end == u64::MAX) {
            run.end = at;
        }
        self.latest = i64::MAX;
    }

    /// Adds a table by its header.
    fn table(&mut self, header: &ByteRecord, annotations: &Annotations, line: u64) -> Result<(), Stopped> {
        if self.blocks.len() >= BLOCKS {
            return Err(Stopped::Refused(format!(
                "it has more than {BLOCKS} tables; write fewer into one file"
            )));
        }
        let names: Vec<&[u8]> = header.iter().map(<[u8]>::trim_ascii).collect();
        let at = |name: &[u8]| names.iter().position(|own| *own == name);
        let of_kind =
            |wanted: &[&[u8]]| (0..names.len()).find(|column| wanted.contains(&annotations.kind(*column)));
        let time = at(b"_time").or_else(|| of_kind(&[b"time", b"dateTime"])).or_else(|| at(b"time"));
        let measurement = at(b"_measurement").or_else(|| of_kind(&[b"measurement"]));
        let is_long = at(b"_field").is_some() && at(b"_value").is_some();
        if let Some((_, twice)) = names
            .iter()
            .enumerate()
            .find(|(column, name)| !name.is_empty() && names[..*column].contains(name))
        {
            let name = String::from_utf8_lossy(twice);
            return Err(Stopped::Refused(format!(
                "two columns of a table have the name `{name}`: rename one of them"
            )));
        }
        let mut roles = Vec::new();
        for (column, name) in names.iter().enumerate() {
            let kind = annotations.kind(column);
            roles.push(if Some(column) == time {
                Role::Time
            } else if Some(column) == measurement {
                Role::Measurement
            } else {
                match (*name, kind) {
                    (b"" | b"result" | b"table" | b"_start" | b"_stop", _) => Role::Ignored,
                    (_, b"ignore" | b"ignored") => Role::Ignored,
                    (b"_field", _) if is_long => Role::Field,
                    (b"_value", _) if is_long => Role::Value(value_type(kind)),
                    _ => Role::Own(self.place(name, value_type(kind), is_long)?),
                }
            });
        }
        if time.is_none() {
            let shown = names.iter().map(|name| format!("{:?}", String::from_utf8_lossy(name)));
            let shown = shown.take(20).collect::<Vec<_>>().join(", ");
            let reason =
                format!("the table from here on has no column `_time`, and its rows are not read: {shown}");
            self.faults.push_back((line, reason));
        }
        self.blocks.push(Block {
            roles,
            defaults: annotations.defaults.clone(),
            measurement: annotations.measurement.clone(),
            is_long,
        });
        Ok(())
    }

    /// Returns the column of the merged rows for a column of a table; `is_tag` if rows name their fields.
    fn place(&mut self, name: &[u8], kind: Option<ValueType>, is_tag: bool) -> Result<usize, Stopped> {
        let place = self.wide.place(name, kind).ok_or_else(too_wide)?;
        if is_tag {
            if self.named.contains(&place) {
                return Err(twice(name));
            }
            self.own.insert(place);
        }
        Ok(place)
    }

    /// Adds a row.
    fn row(&mut self, row: &ByteRecord, at: u64, line: u64) -> Result<(), Stopped> {
        let index = self.blocks.len() - 1;
        let block = &self.blocks[index];
        let Some(column) = block.roles.iter().position(|role| *role == Role::Time) else { return Ok(()) };
        let cell = block.cell(row, column);
        let times = self.times.get_or_insert_with(|| Times::new(None, Some(cell), false));
        // Unusable rows are reported when the messages are read.
        if row.len() == block.roles.len()
            && let Some(time) = times.time(cell)
        {
            if self.last.as_ref().is_none_or(|(last, _)| *last <= time) {
                self.last = Some((time, cell.to_vec()));
            }
            if block.is_long
                && let Some(field) = block.roles.iter().position(|role| *role == Role::Field)
                && let Some(kind) = block.roles.iter().find_map(|role| match role {
                    Role::Value(kind) => Some(*kind),
                    _ => None,
                })
            {
                let name = block.cell(row, field).to_vec();
                let place = self.wide.place(&name, kind).ok_or_else(too_wide)?;
                if self.own.contains(&place) {
                    return Err(twice(&name));
                }
                self.named.insert(place);
            }
            if time >= self.latest {
                self.latest = time;
                return Ok(());
            }
            self.close(at);
            self.latest = time;
        } else if self.runs.last().is_some_and(|run| run.end == u64::MAX) {
            return Ok(());
        }
        if self.runs.len() >= RUNS {
            return Err(Stopped::Refused(format!(
                "the times of its rows go back more than {RUNS} times; sort the rows by `_time` in the query: \
                 `|> group() |> sort(columns: [\"_time\"])`"
            )));
        }
        self.runs.push(Run { block: index, begin: at, end: u64::MAX, line });
        Ok(())
    }

    pub(super) fn into_rows(
        self,
        file: Arc<File>,
        separator: u8,
        consumed: &Arc<AtomicU64>,
        temporary: Option<Temporary>,
    ) -> InfluxRows {
        let capacity = (BUFFERS / self.runs.len().max(1)).clamp(1 << 10, 64 << 10);
        let cursor = |run: &Run| Cursor {
            rows: reader(
                separator,
                capacity,
                Section {
                    file: Arc::clone(&file),
                    at: run.begin,
                    end: run.end,
                    of_row: 0,
                    consumed: Arc::clone(consumed),
                },
            ),
            run: *run,
            row: ByteRecord::new(),
            time: i64::MIN,
        };
        let cursors: Vec<Cursor> = self.runs.iter().map(cursor).collect();
        let has_measurements = self
            .blocks
            .iter()
            .any(|block| block.measurement.is_some() || block.roles.contains(&Role::Measurement));
        InfluxRows {
            next: (0..cursors.len()).map(|cursor| Reverse((i64::MIN, cursor))).collect(),
            width: self.wide.header.len(),
            header: Some(self.wide.header),
            kinds: self.wide.kinds.into_iter().map(Option::flatten).collect(),
            has_measurements,
            blocks: self.blocks,
            places: self.wide.places,
            cursors,
            times: self.times.unwrap_or_else(|| Times::new(None, None, false)),
            last: self.last.map(|(_, cell)| cell),
            ready: VecDeque::new(),
            faults: self.faults,
            _temporary: temporary,
        }
    }
}

fn too_wide() -> Stopped {
    Stopped::Refused(format!("its tables have more than {COLUMNS} fields and tags"))
}

fn twice(name: &[u8]) -> Stopped {
    let name = String::from_utf8_lossy(name);
    Stopped::Refused(format!(
        "a tag and a field have the name `{name}`: rename the tag in the query, `|> rename(columns: {{{name}: \"{name}_tag\"}})`"
    ))
}

/// Whether a row is a header within a file.
fn is_header(row: &ByteRecord) -> bool {
    let has = |name: &[u8]| row.iter().any(|cell| cell == name);
    has(b"_time") || has(b"result") && has(b"table") || has(b"error") && has(b"reference")
}

/// A file from an offset on.
struct From<'f> {
    file: &'f File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
