//! Statuses, the last error of a thread, and the guard around every function.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Outcome of a call: negative for an error.
pub type Status = i32;

/// The call did what it should.
pub const RONDEL_OK: Status = 0;
/// There is nothing more: no report, no notice, no deadline.
pub const RONDEL_END: Status = 1;
/// An argument is wrong. Nothing has happened.
pub const RONDEL_ERROR_ARGUMENT: Status = -1;
/// The specification has mistakes, or cannot be monitored with these options.
pub const RONDEL_ERROR_SPECIFICATION: Status = -2;
/// A message cannot be read. It is counted; verdicts that depend on it are inconclusive.
pub const RONDEL_ERROR_MESSAGE: Status = -3;
/// Columns cannot be read. Nothing has happened.
pub const RONDEL_ERROR_COLUMNS: Status = -4;
/// A snapshot is damaged, of another version, or of another specification.
pub const RONDEL_ERROR_SNAPSHOT: Status = -5;
/// The trace of the monitor has ended.
pub const RONDEL_ERROR_FINISHED: Status = -6;
/// A mistake in Rondel. The monitor cannot be used any more, except to free it.
pub const RONDEL_ERROR_PANIC: Status = -7;

thread_local! {
    /// The message of the last error, with a NUL at its end.
    static LAST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An error of a call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Failure {
        Failure::new(RONDEL_ERROR_ARGUMENT, text)
    }

    /// The error of a monitor in which an earlier call has panicked.
    pub(crate) fn poisoned() -> Failure {
        let text =
            "an earlier call has failed inside of Rondel: free the monitor, and restore one from a snapshot";
        Failure::new(RONDEL_ERROR_PANIC, text)
    }
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}

/// Runs the body of a function of the interface. An error or a panic becomes its status, and its message that of
/// [`rondel_last_error`].
pub(crate) fn guard(body: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = format!("a mistake in Rondel, please report it: {}", panic_text(&*panic));
            Failure::new(RONDEL_ERROR_PANIC, text)
        }
    };
    keep(&failure.text);
    failure.status
}

/// Keeps the message of an error for [`rondel_last_error`].
fn keep(text: &str) {
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last.clear();
            last.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
            last.push(0);
        }
    });
}

/// Returns the message of the last error on this thread, in UTF-8; empty if there was none. It is valid until another
/// call on this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn rondel_last_error() -> *const c_char {
    let last = LAST.try_with(|last| match last.try_borrow() {
        Ok(last) if !last.is_empty() => last.as_ptr().cast(),
        _ => c"".as_ptr(),
    });
    last.unwrap_or(c"".as_ptr())
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last() -> String {
        // SAFETY: no call fails meanwhile.
        unsafe { CStr::from_ptr(rondel_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn panics_and_errors_are_statuses_with_a_message() {
        assert_eq!(last(), "");
        assert_eq!(guard(|| Ok(RONDEL_END)), RONDEL_END);
        assert_eq!(guard(|| panic!("a test of {}", 7)), RONDEL_ERROR_PANIC);
        assert_eq!(last(), "a mistake in Rondel, please report it: a test of 7");
        assert_eq!(guard(|| Err(Failure::argument("one\0two"))), RONDEL_ERROR_ARGUMENT);
        assert_eq!(last(), "one two");
        assert_eq!(guard(|| Ok(RONDEL_OK)), RONDEL_OK);
        assert_eq!(last(), "one two");
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
    }
}
