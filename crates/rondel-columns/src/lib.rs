//! Columns of Arrow as messages: each row of a [`Batch`] is written as JSON of the encoding `Row`.
//!
//! The Python package and the C interface receive columns through an interface of Arrow between languages. Both check
//! them against the fields that a specification reads ([`Reads`]) and push the rows.

mod cells;
mod error;
pub mod json;
mod reads;
mod times;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use rondel_event::Timestamp;

use cells::Fields;
pub use error::{ColumnsError, ErrorKind};
pub use reads::Reads;
use times::Times;
pub use times::nanoseconds;

/// The column with the times of the rows.
#[derive(Clone, Debug)]
pub struct TimeColumn {
    /// Its name.
    pub name: String,
    /// Whether it contains nanoseconds as integers.
    pub is_nanoseconds: bool,
}

/// A batch of rows, each with a time.
pub struct Batch {
    times: Times,
    fields: Fields,
    /// The number of its first row.
    first: u64,
}

impl Batch {
    /// Prepares a batch whose first row has this number in its table.
    ///
    /// # Errors
    /// [`ColumnsError`] names a column that is missing or whose type does not fit, or a row without a time.
    pub fn new(
        batch: &RecordBatch,
        time: &TimeColumn,
        reads: &Reads<'_>,
        first: u64,
    ) -> Result<Batch, ColumnsError> {
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let index = check(&names, time, reads)?;
        let field = schema.field(index);
        let times = Times::new(batch.column(index), field.data_type(), time, first)?;
        for (name, field) in names.iter().zip(schema.fields()) {
            reads.check_type(name, field.data_type())?;
        }
        let columns = names.into_iter().zip(batch.columns());
        let fields = Fields::new(columns.filter(|(name, _)| reads.includes(name)))?;
        Ok(Batch { times, fields, first })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// The number in the table of the row at `i`, from 0.
    pub fn number(&self, i: usize) -> u64 {
        self.first + i as u64
    }

    /// The time of the row at `i`.
    #[inline]
    pub fn time(&self, i: usize) -> Timestamp {
        self.times.get(i)
    }

    /// Appends the row at `i` as a message.
    #[inline]
    pub fn write(&self, i: usize, out: &mut Vec<u8>) {
        self.fields.write(i, out);
    }
}

/// Checks that the columns that are read are there, and returns the position of the one with the times.
///
/// # Errors
/// [`ColumnsError`] names the first column that is missing.
pub fn check(columns: &[&str], time: &TimeColumn, reads: &Reads<'_>) -> Result<usize, ColumnsError> {
    let Some(index) = columns.iter().position(|column| *column == time.name) else {
        return Err(ColumnsError::new(
            ErrorKind::NoTimes,
            format!("the table has no column '{}' with the times; it has {}", time.name, listed(columns)),
        ));
    };
    reads.check(columns)?;
    Ok(index)
}

/// Names of columns in a sentence.
fn listed(columns: &[&str]) -> String {
    if columns.is_empty() { "none".to_owned() } else { columns.join(", ") }
}

/// The columns of a structure with their names.
fn members(array: &StructArray) -> impl Iterator<Item = (&str, &ArrayRef)> {
    array.fields().iter().map(|field| field.name().as_str()).zip(array.columns())
}
