//! Tables in long form: a row has the value of one field. Rows of one time and topic become one row with all fields.

use std::collections::HashMap;

use csv::ByteRecord;

use super::columns::time_column;
use super::input::Input;

/// Maximum number of fields of a table.
const FIELDS: usize = 1 << 16;

/// Columns of a table in long form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) time: usize,
    topic: Option<usize>,
    field: usize,
    value: usize,
}

impl Form {
    /// Returns the form of a table with these columns: a time, optionally a topic, `field` or `signal`, `value`, and
    /// nothing else.
    pub(super) fn of(header: &ByteRecord) -> Option<Form> {
        let names: Vec<String> =
            header.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_ascii_lowercase()).collect();
        let at = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
        let topic = at(&["topic"]);
        let time = names.iter().position(|name| time_column(name).is_some())?;
        let form = Form { time, topic, field: at(&["field", "signal"])?, value: at(&["value"])? };
        (names.len() == 3 + usize::from(topic.is_some())).then_some(form)
    }
}

/// Merged rows of a table in long form. The first one names the columns.
pub(super) struct LongRows {
    rows: csv::Reader<Input>,
    form: Form,
    header: Option<ByteRecord>,
    /// Columns of the fields, after time and topic.
    places: HashMap<Vec<u8>, usize>,
    /// The row already read that belongs to the next message.
    next: ByteRecord,
    has_next: bool,
    is_open: bool,
    cells: Vec<Option<Vec<u8>>>,
}

/// Line and reason of a row that cannot be used.
pub(super) struct InvalidRow(pub(super) u64, pub(super) String);

impl LongRows {
    /// Merges the rows of a table whose header was read; `all` are the same rows, to find the fields.
    ///
    /// # Errors
    /// The reason why the table cannot be read in long form.
    pub(super) fn new(
        header: &ByteRecord,
        form: Form,
        rows: csv::Reader<Input>,
        mut all: csv::Reader<Input>,
    ) -> Result<LongRows, String> {
        all.get_ref().begin_row();
        // Errors are reported when the messages are read.
        let _ = all.read_byte_record(&mut ByteRecord::new());
        LongRows::without_header(header, form, rows, all)
    }

    /// Merges the rows of a table without a header.
    ///
    /// # Errors
    /// Those of [`new`](LongRows::new).
    pub(super) fn without_header(
        header: &ByteRecord,
        form: Form,
        rows: csv::Reader<Input>,
        mut all: csv::Reader<Input>,
    ) -> Result<LongRows, String> {
        let before = 1 + usize::from(form.topic.is_some());
        let mut row = ByteRecord::new();
        let (mut wide, mut places) = (ByteRecord::new(), HashMap::new());
        wide.push_field(&header[form.time]);
        if form.topic.is_some() {
            wide.push_field(b"topic");
        }
        // Errors are reported when the messages are read.
        while let Ok(true) = {
            all.get_ref().begin_row();
            all.read_byte_record(&mut row)
        } {
            if row.len() != header.len() || all.get_ref().is_open() {
                continue;
            }
            let name = row[form.field].trim_ascii();
            if !name.is_empty() && !places.contains_key(name) {
                if places.len() >= FIELDS {
                    return Err(format!("its column of fields has more than {FIELDS} names"));
                }
                places.insert(name.to_vec(), before + places.len());
                wide.push_field(name);
            }
        }
        let cells = vec![None; wide.len()];
        Ok(LongRows {
            rows,
            form,
            header: Some(wide),
            places,
            next: ByteRecord::new(),
            has_next: false,
            is_open: false,
            cells,
        })
    }

    /// Returns the columns of the file.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Whether the last row continues where the file ends.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the number of the line after the last row.
    pub(super) fn line(&self) -> u64 {
        self.rows.position().line()
    }

    /// Reads the rows of the next message; returns whether there were any.
    ///
    /// # Errors
    /// An error of the file, or a row that cannot be used; the next call continues behind it.
    pub(super) fn read(&mut self, out: &mut ByteRecord) -> Result<Result<bool, InvalidRow>, csv::Error> {
        out.clear();
        if let Some(header) = self.header.take() {
            *out = header;
            return Ok(Ok(true));
        }
        let Form { time, topic, field, value } = self.form;
        let (mut begun, mut own_topic): (Option<Vec<u8>>, Vec<u8>) = (None, Vec::new());
        loop {
            if !self.has_next {
                self.rows.get_ref().begin_row();
                if !self.rows.read_byte_record(&mut self.next)? {
                    break;
                }
                self.has_next = true;
            }
            let row = &self.next;
            let is_open = self.rows.get_ref().is_open();
            let expected = 3 + usize::from(topic.is_some());
            let place = row.get(field).and_then(|name| self.places.get(name.trim_ascii())).copied();
            let (Some(place), true, false) = (place, row.len() == expected, is_open) else {
                if begun.is_some() {
                    break;
                }
                self.has_next = false;
                if is_open {
                    self.is_open = true;
                    *out = self.next.clone();
                    return Ok(Ok(true));
                }
                let line = row.position().map_or(0, csv::Position::line);
                let cells = if row.len() == 1 { "cell" } else { "cells" };
                let reason = match place {
                    None if row.len() == expected => "the row names no field".to_owned(),
                    _ => format!("the row has {} {cells}, and the header {expected}", row.len()),
                };
                return Ok(Err(InvalidRow(line, reason)));
            };
            let of_topic = topic.map_or(&b""[..], |topic| &row[topic]);
            match &begun {
                None => {
                    begun = Some(row[time].to_vec());
                    own_topic = of_topic.to_vec();
                    out.set_position(row.position().cloned());
                }
                // A row without a time has that of the previous row.
                Some(begun) => {
                    let is_same = row[time].is_empty() || row[time] == **begun;
                    if !is_same || own_topic != of_topic || self.cells[place].is_some() {
                        break;
                    }
                }
            }
            self.cells[place] = Some(row[value].to_vec());
            self.has_next = false;
        }
        let Some(begun) = begun else { return Ok(Ok(false)) };
        out.push_field(&begun);
        if topic.is_some() {
            out.push_field(&own_topic);
        }
        for cell in self.cells.iter_mut().skip(out.len()) {
            out.push_field(&cell.take().unwrap_or_default());
        }
        Ok(Ok(true))
    }
}
