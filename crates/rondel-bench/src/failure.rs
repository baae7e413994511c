//! Failures of a measurement.

use std::io;
use std::time::Duration;

/// The reason why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file or a process could not be used.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
    /// A network could not be used.
    #[error("network: {0}")]
    Network(String),
    /// Something did not happen in time.
    #[error("{what}: nothing after {} s", limit.as_secs())]
    Late {
        /// The event that was waited for.
        what: String,
        /// The time limit.
        limit: Duration,
    },
    /// A child process failed.
    #[error("{name} ended with {status}:\n{log}")]
    Child {
        /// Its name.
        name: String,
        /// Its exit status, or a signal.
        status: String,
        /// Its standard error.
        log: String,
    },
    /// Messages were lost or came twice.
    #[error("{what}: {got} instead of {expected}")]
    Count {
        /// The name of the count.
        what: String,
        /// The expected count.
        expected: u64,
        /// The actual count.
        got: u64,
    },
    /// A signal requested the end.
    #[error("interrupted")]
    Interrupted,
    /// An argument makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A specification does not compile.
    #[error(transparent)]
    Compile(#[from] rondel_engine::CompileError),
}

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Returns the exit status: 1 for lost messages, otherwise as `rondel` has it.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Count { .. } | Failure::Child { .. } | Failure::Compile(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Io(..) => 3,
            Failure::Network(_) | Failure::Late { .. } => 5,
            Failure::Interrupted => 130,
        }
    }
}

/// Returns a function that adds the file or process to an input or output error.
pub fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
    let what = what.into();
    move |error| Failure::Io(what, error)
}

/// Fails unless two counts are equal.
///
/// # Errors
/// [`Failure::Count`].
pub fn same(what: impl FnOnce() -> String, expected: u64, got: u64) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Failure::Count { what: what(), expected, got }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_messages_are_status_1() {
        assert!(same(|| "sent".to_owned(), 3, 3).is_ok());
        let failure = same(|| "sent".to_owned(), 3, 2).unwrap_err();
        assert_eq!((failure.status(), failure.to_string().as_str()), (1, "sent: 2 instead of 3"));
    }
}
