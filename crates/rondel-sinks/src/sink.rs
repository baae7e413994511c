//! The interface of a destination.

use std::time::Duration;

use crate::entry::Entry;

/// A destination of verdicts, driven by one thread of a [`Driver`](crate::Driver).
///
/// The driver calls one method at a time, in the order of the entries. Every method returns within about the given limit:
/// a sink sets the timeouts of its connection accordingly. A sink connects, and connects again, inside of
/// [`write`](Sink::write): it may not wait anywhere else.
pub trait Sink: Send {
    /// Writes entries, all or none. Returns once they are *acknowledged*: they survive a kill of this process. Entries
    /// are repeated after an error, and after a crash; a sink recognises verdicts by their ids, or passes the id on.
    ///
    /// # Errors
    /// [`Failure`]; its kind decides what the driver does with the entries.
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure>;

    /// Writes entries from the first on, and returns how many need not be written again. The driver calls this. A sink
    /// whose entries are requests of their own implements it, so that those before a failure are not sent twice, and a
    /// batch may last longer than the limit.
    fn write_some(&mut self, entries: &[Entry<'_>], limit: Duration) -> Progress {
        match self.write(entries, limit) {
            Ok(written) => Progress { written, done: entries.len(), ..Progress::default() },
            Err(failure) => Progress { failure: Some(failure), ..Progress::default() },
        }
    }

    /// Does work beside entries, such as removing old ones, in pieces of about `limit`. Called regularly, with the time of
    /// day in nanoseconds since the Unix epoch. Returns whether more work is due at once. A request to a server may take as
    /// long as one of [`write`](Sink::write).
    ///
    /// # Errors
    /// [`Failure`]; it is reported, and entries are not affected.
    fn maintain(&mut self, _now: i64, _limit: Duration) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Interval at which the driver calls [`look`](Sink::look); `None`: never.
    fn look_interval(&self) -> Option<Duration> {
        None
    }

    /// Reads what others have changed at the destination, within about `limit`, at this time of day in nanoseconds since
    /// the Unix epoch.
    ///
    /// # Errors
    /// [`Failure`]; it is reported, and entries are not affected.
    fn look(&mut self, _now: i64, _limit: Duration) -> Result<(), Failure> {
        Ok(())
    }

    /// Ends the connection. Called once, on the same thread, after the last entry.
    ///
    /// # Errors
    /// [`Failure`]; everything acknowledged stays so.
    fn close(&mut self, _limit: Duration) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether it reads [`VerdictEntry::json`](crate::VerdictEntry::json): message brokers pass it on, databases do not.
    fn wants_json(&self) -> bool {
        false
    }

    /// Whether it notifies people: it skips violations that are muted by another one, and is to be sent the verdict again
    /// once it no longer is ([`Session::unmuted`](rondel_runtime::Session::unmuted)).
    fn notifies(&self) -> bool {
        false
    }

    /// Returns a function that makes a running call of another method return early, from another thread. Called once.
    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        None
    }
}

/// Result of writing entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Verdicts that were new.
    pub stored: u64,
    /// Verdicts that were there before.
    pub repeated: u64,
}

/// Result of writing entries one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Verdicts that were written.
    pub written: Written,
    /// Entries, from the first on, that need not be written again: acknowledged or rejected.
    pub done: usize,
    /// Rejected ones among them.
    pub rejected: u64,
    /// Last rejection, or the failure that ended the writing. A rejection before any entry is done concerns one of all.
    pub failure: Option<Failure>,
}

impl Progress {
    /// Returns it as the result of writing all of `entries` or none.
    ///
    /// # Errors
    /// The last failure, also if some entries were written, or one that says that the time limit was too short.
    pub fn of_all(self, entries: usize) -> Result<Written, Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None if self.done < entries => {
                let message =
                    format!("{} of {entries} entries were written within the time limit", self.done);
                Err(Failure::unavailable(message))
            }
            None => Ok(self.written),
        }
    }
}

/// Error of a sink: what kind, and a sentence with the place and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Kind, which decides what happens to the entries.
    pub kind: FailureKind,
    /// Sentence with the place and the way out.
    pub message: String,
}

/// Kind of an error of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The sink may accept the same entries later: it is busy, full, or cannot be reached. They stay in the queue, and the
    /// driver tries again, with growing pauses.
    Unavailable,
    /// The sink never accepts at least one of these entries. The driver finds it, drops it and counts it.
    Rejected,
    /// The sink never accepts anything any more. All entries are dropped and counted.
    Broken,
}

impl Failure {
    /// A failure that may pass.
    pub fn unavailable(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Unavailable, message: message.into() }
    }

    /// A failure of an entry.
    pub fn rejected(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Rejected, message: message.into() }
    }

    /// A failure that does not pass.
    pub fn broken(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Broken, message: message.into() }
    }
}
