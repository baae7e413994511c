//! The times of rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, Int64Array};
use arrow_schema::{DataType, TimeUnit};
use rondel_event::Timestamp;

use crate::TimeColumn;
use crate::error::{ColumnsError, ErrorKind};

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// A column with a time in each row.
pub(crate) enum Times {
    /// Integers, each of so many nanoseconds.
    Counts(Int64Array, i64),
    /// Seconds.
    Seconds(Float64Array),
    /// Seconds of single precision.
    Singles(Float32Array),
}

impl Times {
    /// Checks the times of a batch whose first row has this number.
    ///
    /// # Errors
    /// [`ColumnsError`] for a column of another type, and for a row without a time or with one out of range.
    pub(crate) fn new(
        array: &ArrayRef,
        kind: &DataType,
        time: &TimeColumn,
        first: u64,
    ) -> Result<Times, ColumnsError> {
        let TimeColumn { name, is_nanoseconds } = time;
        let times = match (kind, is_nanoseconds) {
            (DataType::Float64, false) => Times::Seconds(array.as_primitive::<Float64Type>().clone()),
            (DataType::Float32, false) => Times::Singles(array.as_primitive::<Float32Type>().clone()),
            (DataType::Int64, true) => Times::Counts(array.as_primitive::<Int64Type>().clone(), 1),
            (DataType::Timestamp(unit, _), false) => {
                let (counts, factor) = timestamps(array, *unit);
                Times::Counts(counts, factor)
            }
            (DataType::Null, _) => Times::Counts(Int64Array::new_null(array.len()), 1),
            (kind, false) if kind.is_integer() => {
                let text = format!("the column '{name}' has integers, which may mean seconds or nanoseconds");
                return Err(ColumnsError::new(ErrorKind::IntegerTimes, text));
            }
            (kind, _) => {
                let text = format!("the column '{name}' has the type {kind}, which is no time");
                return Err(ColumnsError::new(ErrorKind::OtherTimes, text));
            }
        };
        let is_null = |i: usize| array.is_null(i) || *kind == DataType::Null;
        let is_wrong = |i: &usize| is_null(*i) || times.checked(*i).is_none();
        if let Some(i) = (0..array.len()).find(is_wrong) {
            let wrong = if is_null(i) { "has no time" } else { "has a time out of range" };
            let before =
                if first > 0 { format!("; the rows before {first} were evaluated") } else { String::new() };
            let text = format!("row {}: the column '{name}' {wrong}{before}", first + i as u64);
            return Err(ColumnsError::new(ErrorKind::Value, text));
        }
        Ok(times)
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Times::Counts(counts, _) => counts.len(),
            Times::Seconds(seconds) => seconds.len(),
            Times::Singles(seconds) => seconds.len(),
        }
    }

    #[inline]
    fn checked(&self, i: usize) -> Option<i64> {
        match self {
            // The least integer is no time: NumPy and pandas mark missing times by it, and the runtime does.
            Times::Counts(counts, factor) => {
                counts.value(i).checked_mul(*factor).filter(|nanoseconds| *nanoseconds != i64::MIN)
            }
            Times::Seconds(seconds) => nanoseconds(seconds.value(i)),
            Times::Singles(seconds) => nanoseconds(seconds.value(i).into()),
        }
    }

    /// The time of the row at `i`.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Timestamp {
        // All were checked.
        Timestamp::from_nanos(self.checked(i).unwrap_or_default())
    }
}

/// Returns seconds as nanoseconds, if they are in range.
#[inline]
pub fn nanoseconds(seconds: f64) -> Option<i64> {
    let nanoseconds = (seconds * SECOND).round();
    // Beyond, conversion would saturate.
    (nanoseconds.abs() < 9.2e18).then_some(nanoseconds as i64)
}

/// The counts in a column of timestamps, and the nanoseconds of each.
pub(crate) fn timestamps(array: &ArrayRef, unit: TimeUnit) -> (Int64Array, i64) {
    match unit {
        TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().reinterpret_cast(), 1_000_000_000),
        TimeUnit::Millisecond => {
            (array.as_primitive::<TimestampMillisecondType>().reinterpret_cast(), 1_000_000)
        }
        TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast(), 1_000),
        TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().reinterpret_cast(), 1),
    }
}
