//! Columns in and reports out by the Arrow C data interface.

use std::ffi::c_char;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType};
use rondel_columns::{Batch, ColumnsError, ErrorKind, Reads, TimeColumn};
use rondel_runtime::Encoding;

use crate::arguments::{Out, reference, text};
use crate::arrow;
use crate::monitor::{Monitor, Refusals, State, Topic, stamp};
use crate::reports::{Kept, Reports};
use crate::status::{Failure, RONDEL_END, RONDEL_ERROR_COLUMNS, RONDEL_OK, Status, guard};

/// Evaluates the rows of a structure, each a message; `time` names the column with the times. The array is moved out of
/// its place and released, also after an error; the schema stays the caller's. Rows that cannot be read are counted in
/// `refused`, which may be null.
///
/// # Safety
/// See [pointers](crate#pointers). Array and schema are as the Arrow C data interface defines them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_push_columns(
    monitor: *const Monitor,
    topic: Topic,
    time: *const c_char,
    time_length: usize,
    array: *mut FFI_ArrowArray,
    schema: *const FFI_ArrowSchema,
    refused: *mut usize,
) -> Status {
    guard(|| {
        let place = array;
        // SAFETY: the contract of this function.
        let array = unsafe {
            reference("array", place.cast_const())?;
            FFI_ArrowArray::from_raw(place)
        };
        // SAFETY: the contract of this function.
        let mut refusals = unsafe { Refusals::new(refused)? };
        // SAFETY: the contract of this function.
        let (monitor, time, schema) = unsafe {
            (reference("monitor", monitor)?, text("time", time, time_length)?, reference("schema", schema)?)
        };
        let target = monitor.target(topic)?;
        let spec = monitor.plan.specification();
        let at = target.topic.index();
        if monitor.plan.input(target.topic).is_none_or(|input| input.encoding != Encoding::Row) {
            let text = format!(
                "topic '{}' has another encoding: columns need RONDEL_JSON, the default",
                spec.spec.topics[at].name
            );
            return Err(Failure::argument(text));
        }
        // SAFETY: the contract of this function.
        let rows = unsafe { arrow::read(array, schema)? };
        let is_integer = |column: &ArrayRef| *column.data_type() == DataType::Int64;
        let time = TimeColumn {
            is_nanoseconds: rows.column_by_name(time).is_some_and(is_integer),
            name: time.to_owned(),
        };
        let reads = Reads::new(&spec.spec.topics[at], &spec.program.projections()[at]);
        // Dropped after the lock: the array's release callback may call the monitor.
        let batch = Batch::new(&rows, &time, &reads, 0).map_err(refused_columns)?;
        let mut state = monitor.lock()?;
        let State { session, row, .. } = state.running()?;
        for i in 0..batch.rows() {
            row.clear();
            batch.write(i, row);
            let stamp = stamp(target, batch.time(i).as_nanos());
            if let Err(error) = session.push(target.topic, stamp, row) {
                refusals.add(|| format!("row {i}: {error}"));
            }
        }
        session.flush();
        refusals.status()
    })
}

/// The error of columns, with advice.
fn refused_columns(error: ColumnsError) -> Failure {
    let ColumnsError { kind, text } = error;
    let advice = match kind {
        ErrorKind::IntegerTimes | ErrorKind::OtherTimes => {
            ": use 64-bit integers of nanoseconds, float seconds, or timestamps"
        }
        ErrorKind::NoIntegers => ": convert it to integers",
        ErrorKind::Value | ErrorKind::Type | ErrorKind::NoTimes => "",
    };
    Failure::new(RONDEL_ERROR_COLUMNS, format!("{text}{advice}"))
}

/// Takes all reports as rows of a structure, which the caller releases. Without any, the status is [`RONDEL_END`], and both
/// are released already.
///
/// # Safety
/// See [pointers](crate#pointers). What was at both places is overwritten.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_take_reports(
    monitor: *const Monitor,
    array: *mut FFI_ArrowArray,
    schema: *mut FFI_ArrowSchema,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (array, schema) = unsafe { (Out::new("array", array)?, Out::new("schema", schema)?) };
        array.set(FFI_ArrowArray::empty());
        schema.set(FFI_ArrowSchema::empty());
        // SAFETY: the contract of this function.
        let monitor = unsafe { reference("monitor", monitor)? };
        let mut columns = Columns::default();
        let mut state = monitor.lock()?;
        let State { session, reports, .. } = &mut *state;
        while let Some(kept) = reports.next(session) {
            columns.add(monitor, reports, &kept);
        }
        drop(state);
        if columns.property.is_empty() {
            return Ok(RONDEL_END);
        }
        let exported = columns.batch().and_then(|rows| to_ffi(&StructArray::from(rows).to_data()));
        let (data, of) = exported.map_err(|error| {
            Failure::new(RONDEL_ERROR_COLUMNS, format!("the reports have no columns: {error}"))
        })?;
        array.set(data);
        schema.set(of);
        Ok(RONDEL_OK)
    })
}

/// Reports as columns.
#[derive(Default)]
struct Columns {
    property: Vec<String>,
    severity: Vec<Option<String>>,
    key: Vec<Option<String>>,
    verdict: Vec<&'static str>,
    time: Vec<i64>,
    about: Vec<i64>,
    is_after: Vec<bool>,
    step: Vec<Option<u64>>,
    robustness: Vec<Option<f64>>,
    explanation: Vec<Option<String>>,
}

/// The text before the NUL at the end of these bytes; `None` for an empty one.
fn text_of(bytes: &[u8]) -> Option<String> {
    let (_, text) = bytes.split_last()?;
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

impl Columns {
    fn add(&mut self, monitor: &Monitor, reports: &Reports, kept: &Kept) {
        let names = monitor.names.get(kept.property as usize);
        self.property.push(names.and_then(|(name, _)| text_of(name)).unwrap_or_default());
        self.severity.push(names.and_then(|(_, severity)| text_of(severity)));
        self.key.push(text_of(reports.bytes(kept.key)));
        self.verdict.push(kept.verdict.as_str());
        self.time.push(kept.time.as_nanos());
        self.about.push(kept.about.unwrap_or(kept.time).as_nanos());
        self.is_after.push(kept.is_after);
        self.step.push(kept.step);
        self.robustness.push(kept.robustness);
        self.explanation.push(text_of(reports.bytes(kept.explanation)));
    }

    fn batch(self) -> Result<RecordBatch, ArrowError> {
        let columns: [(&str, ArrayRef, bool); 10] = [
            ("property", Arc::new(StringArray::from(self.property)), false),
            ("severity", Arc::new(StringArray::from(self.severity)), true),
            ("key", Arc::new(StringArray::from(self.key)), true),
            ("verdict", Arc::new(StringArray::from(self.verdict)), false),
            ("time_ns", Arc::new(Int64Array::from(self.time)), false),
            ("about_ns", Arc::new(Int64Array::from(self.about)), false),
            ("is_after", Arc::new(BooleanArray::from(self.is_after)), false),
            ("step", Arc::new(UInt64Array::from(self.step)), true),
            ("robustness", Arc::new(Float64Array::from(self.robustness)), true),
            ("explanation", Arc::new(StringArray::from(self.explanation)), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
    }
}
