//! Times from and to Python: seconds as `float`, `datetime` with a time zone, or nanoseconds as `int` by another name.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use rondel_columns::nanoseconds;
use rondel_event::Timestamp;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Reads the time of a message: at most one of `time` and `time_ns`.
///
/// # Errors
/// `TypeError` for an `int` as `time`, which could be seconds or nanoseconds; `ValueError` for a time out of range,
/// `OverflowError` for such nanoseconds.
pub(crate) fn read(time: Option<&Bound<'_, PyAny>>, time_ns: Option<i64>) -> PyResult<Option<Timestamp>> {
    match (time, time_ns) {
        (None, None) => Ok(None),
        // The runtime marks messages without a time by it.
        (None, Some(i64::MIN)) => Err(PyOverflowError::new_err(format!(
            "`time_ns` is {}, which is out of range: the least time is {}",
            i64::MIN,
            -i64::MAX
        ))),
        (None, Some(nanoseconds)) => Ok(Some(Timestamp::from_nanos(nanoseconds))),
        (Some(_), Some(_)) => Err(PyTypeError::new_err("give `time` or `time_ns`, not both")),
        (Some(time), None) => of(time).map(Some),
    }
}

/// Reads seconds, or a `datetime`.
fn of(time: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    if let Ok(seconds) = time.cast_exact::<PyFloat>() {
        return of_seconds(seconds.value());
    }
    // Integers of NumPy as well.
    if time.is_instance_of::<PyInt>() || time.hasattr("__index__")? {
        return Err(PyTypeError::new_err(
            "`time` is an integer, which may mean seconds or nanoseconds: write a float for seconds, such as 3.0, or use \
             `time_ns`",
        ));
    }
    if time.hasattr("timestamp")? && time.hasattr("tzinfo")? {
        return datetime(time);
    }
    match time.extract::<f64>() {
        Ok(seconds) => of_seconds(seconds),
        Err(_) => Err(PyTypeError::new_err(format!(
            "`time` is a {}: give seconds as a float, or a datetime with a time zone, or nanoseconds as `time_ns`",
            time.get_type().name()?
        ))),
    }
}

/// Reads seconds since the epoch of the messages.
fn of_seconds(seconds: f64) -> PyResult<Timestamp> {
    let time = nanoseconds(seconds).map(Timestamp::from_nanos);
    time.ok_or_else(|| PyValueError::new_err(format!("the time {seconds} s is out of range")))
}

/// Reads a `datetime` exactly, or a `Timestamp` of pandas with its nanoseconds.
fn datetime(time: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    if time.getattr("tzinfo")?.is_none() {
        return Err(PyValueError::new_err(
            "the datetime has no time zone: give one, such as datetime(..., tzinfo=timezone.utc)",
        ));
    }
    let module = time.py().import("datetime")?;
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = module.getattr("datetime")?.call_method1("fromtimestamp", (0, utc))?;
    let since = time.call_method1("__sub__", (epoch,))?;
    let part = |name: &str| since.getattr(name)?.extract::<i64>();
    let below = if since.hasattr("nanoseconds")? { part("nanoseconds")? } else { 0 };
    let seconds = part("days")? * 86_400 + part("seconds")?;
    let nanoseconds = seconds.checked_mul(1_000_000_000);
    let nanoseconds = nanoseconds.and_then(|all| all.checked_add(part("microseconds").ok()? * 1_000 + below));
    nanoseconds
        .map(Timestamp::from_nanos)
        .ok_or_else(|| PyValueError::new_err("the datetime is out of range"))
}

/// Returns a time in seconds.
pub(crate) fn seconds(time: Timestamp) -> f64 {
    time.as_nanos() as f64 / SECOND
}
