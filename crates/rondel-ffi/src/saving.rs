//! Snapshots, whole and by ranges of keys.

use std::ffi::c_char;

use rondel_event::Value;
use rondel_runtime::{KEY_HASHES, SessionPlan, StartError, key_hash};

use crate::arguments::{Out, reference, slice, text};
use crate::monitor::{Monitor, not_started};
use crate::options::Options;
use crate::specification::Specification;
use crate::status::{Failure, RONDEL_ERROR_SNAPSHOT, RONDEL_OK, Status, guard};

/// Number of hashes of keys: all are below it.
pub const RONDEL_KEY_HASHES: u64 = KEY_HASHES;

/// Snapshots are restored with the note that they were written with.
const NOTE: &str = "";

/// Bytes of this library, freed by [`rondel_bytes_free`], or bytes of the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first byte.
    pub data: *mut u8,
    /// Their number.
    pub length: usize,
}

impl Bytes {
    /// No bytes.
    pub const EMPTY: Bytes = Bytes { data: std::ptr::null_mut(), length: 0 };

    /// Gives bytes away.
    fn given(bytes: Vec<u8>) -> Bytes {
        let length = bytes.len();
        Bytes { data: Box::into_raw(bytes.into_boxed_slice()).cast(), length }
    }
}

/// Frees bytes from a function of this library. Bytes whose `data` is null are allowed.
///
/// # Safety
/// See [pointers](crate#pointers). The bytes are as they were returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_bytes_free(bytes: Bytes) {
    guard(|| {
        if !bytes.data.is_null() {
            let all = std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.length);
            // SAFETY: the contract of this function: they come from `Bytes::given`.
            drop(unsafe { Box::from_raw(all) });
        }
        Ok(RONDEL_OK)
    });
}

/// The error of a snapshot.
fn not_restored(error: &StartError) -> Failure {
    match error {
        StartError::Compile(_) => not_started(error),
        _ => Failure::new(RONDEL_ERROR_SNAPSHOT, error.to_string()),
    }
}

/// Returns the state of a monitor that is not finished, from which [`rondel_monitor_restore`] continues. Reports and
/// notices that were not taken are not part of it.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_snapshot(monitor: *const Monitor, out: *mut Bytes) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, out) = unsafe { (reference("monitor", monitor)?, Out::new("out", out)?) };
        out.set(Bytes::EMPTY);
        let snapshot = monitor.lock()?.running()?.session.snapshot(NOTE);
        out.set(Bytes::given(snapshot));
        Ok(RONDEL_OK)
    })
}

/// Returns a part of the state: the instances of `for each` whose parameters have a [hash](rondel_key_hash) from `from` to
/// below `until`, and all other state.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_snapshot_part(
    monitor: *const Monitor,
    from: u64,
    until: u64,
    out: *mut Bytes,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, out) = unsafe { (reference("monitor", monitor)?, Out::new("out", out)?) };
        out.set(Bytes::EMPTY);
        if from > until || until > RONDEL_KEY_HASHES {
            let text = format!("the range {from} to {until} is none of hashes below {RONDEL_KEY_HASHES}");
            return Err(Failure::argument(text));
        }
        let part = monitor.lock()?.running()?.session.snapshot_part(from..until, NOTE);
        out.set(Bytes::given(part.map_err(|error| not_restored(&error))?));
        Ok(RONDEL_OK)
    })
}

/// Returns several [parts](rondel_monitor_snapshot_part) in one pass over the instances: `count` of them, each of the hashes
/// from one of the `count + 1` values of `cuts` to below the next. `out` has space for all.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_snapshot_parts(
    monitor: *const Monitor,
    cuts: *const u64,
    count: usize,
    out: *mut Bytes,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let cuts = unsafe { slice("cuts", cuts, count.saturating_add(1))? };
        let places = (0..count).map(|at| {
            // SAFETY: the contract of this function. A null pointer stays null, and is refused.
            unsafe { Out::new("out", if out.is_null() { out } else { out.wrapping_add(at) }) }
        });
        let places: Vec<Out<Bytes>> = places.collect::<Result<_, _>>()?;
        places.iter().for_each(|place| place.set(Bytes::EMPTY));
        // SAFETY: the contract of this function.
        let monitor = unsafe { reference("monitor", monitor)? };
        if !cuts.is_sorted() || cuts.last().is_some_and(|last| *last > RONDEL_KEY_HASHES) {
            let text = format!("`cuts` are not in order, or exceed {RONDEL_KEY_HASHES}");
            return Err(Failure::argument(text));
        }
        let parts = monitor.lock()?.running()?.session.snapshot_parts(cuts, NOTE);
        let parts = parts.map_err(|error| not_restored(&error))?;
        places.iter().zip(parts).for_each(|(place, part)| place.set(Bytes::given(part)));
        Ok(RONDEL_OK)
    })
}

/// Opens a monitor that continues from a snapshot of one with the same options. If the specification was edited since,
/// unchanged properties continue.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_restore(
    specification: *const Specification,
    options: *const Options,
    snapshot: *const u8,
    length: usize,
    out: *mut *mut Monitor,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let out = unsafe { Out::new("out", out)? };
        out.set(std::ptr::null_mut());
        // SAFETY: the contract of this function.
        let snapshot = unsafe { slice("snapshot", snapshot, length)? };
        let start = |plan: &SessionPlan| plan.restore(snapshot, NOTE).map_err(|error| not_restored(&error));
        // SAFETY: the contract of this function.
        out.set(unsafe { Monitor::open(specification, options, start)? });
        Ok(RONDEL_OK)
    })
}

/// Opens a monitor that continues from parts of one monitor at one time, or of several that have advanced to the same time. An
/// instance in none of them begins with its next message.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_restore_parts(
    specification: *const Specification,
    options: *const Options,
    parts: *const Bytes,
    count: usize,
    out: *mut *mut Monitor,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let out = unsafe { Out::new("out", out)? };
        out.set(std::ptr::null_mut());
        // SAFETY: the contract of this function.
        let parts = unsafe { slice("parts", parts, count)? };
        let mut read = Vec::with_capacity(parts.len());
        for part in parts {
            // SAFETY: the contract of this function.
            read.push(unsafe { slice("data", part.data.cast_const(), part.length)? });
        }
        let start = |plan: &SessionPlan| {
            let restored = plan.restore_parts(&read, NOTE).map(|(session, _)| session);
            restored.map_err(|error| not_restored(&error))
        };
        // SAFETY: the contract of this function.
        out.set(unsafe { Monitor::open(specification, options, start)? });
        Ok(RONDEL_OK)
    })
}

/// Returns the hash of the parameters of an instance, written as a JSON array in the order of `for each`, such as
/// `[7, "r7"]`. Times and durations are nanoseconds; a number with a point or an exponent is a float.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_key_hash(parameters: *const c_char, length: usize, out: *mut u64) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (parameters, out) = unsafe { (text("parameters", parameters, length)?, Out::new("out", out)?) };
        let wrong = |text: String| Failure::argument(format!("`parameters` {text}"));
        let read: Vec<serde_json::Value> = serde_json::from_str(parameters)
            .map_err(|error| wrong(format!("is not a JSON array: {error}")))?;
        let values: Option<Vec<Value>> = read.iter().map(value).collect();
        let values = values
            .ok_or_else(|| wrong("has a value that is not a bool, a 64-bit number or a text".to_owned()))?;
        out.set(key_hash(&values));
        Ok(RONDEL_OK)
    })
}

fn value(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Bool(flag) => Some(Value::Bool(*flag)),
        serde_json::Value::String(text) => Some(Value::String(text.as_str().into())),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Some(Value::Int(number)),
            None if number.is_f64() => number.as_f64().map(Value::Float),
            None => None,
        },
        _ => None,
    }
}
