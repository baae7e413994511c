//! Shared by the sinks that pass each verdict on as a message: identity of a verdict, series of its run, and the verdicts of
//! a failed write that need not be sent again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};

use crate::entry::{Begin, Entry, RunKey, VerdictEntry};
use crate::sink::{Failure, Progress};

/// Number of runs whose series are known. A queue contains entries of one run, a spool those of a few.
const RUNS: usize = 64;

/// Series of recent runs.
#[derive(Default)]
pub(crate) struct SeriesNames(VecDeque<(RunKey, String)>);

impl SeriesNames {
    /// Notes the series of runs that begin.
    pub(crate) fn note(&mut self, entries: &[Entry<'_>]) {
        for entry in entries {
            if let Entry::Begin(begin) = entry {
                self.add(begin);
            }
        }
    }

    fn add(&mut self, begin: &Begin<'_>) {
        if begin.series.is_empty() || self.0.iter().any(|(run, _)| *run == begin.run) {
            return;
        }
        if self.0.len() == RUNS {
            self.0.pop_front();
        }
        self.0.push_back((begin.run, begin.series.to_owned()));
    }

    /// Returns the series of a run. A run without one, or whose begin is unknown, is a series of its own.
    pub(crate) fn of(&self, run: RunKey) -> Cow<'_, str> {
        match self.0.iter().rev().find(|(known, _)| *known == run) {
            Some((_, series)) => Cow::Borrowed(series),
            None => Cow::Owned(run.to_string()),
        }
    }
}

/// Returns the verdicts among entries.
pub(crate) fn verdicts<'e, 'a>(entries: &'e [Entry<'a>]) -> impl Iterator<Item = &'e VerdictEntry<'a>> {
    entries.iter().filter_map(|entry| match entry {
        Entry::Verdict(verdict) => Some(verdict),
        _ => None,
    })
}

/// Returns the id of a verdict, or else a hash of its content, which stays within this process.
pub(crate) fn identity(verdict: &VerdictEntry<'_>) -> u128 {
    verdict.id.unwrap_or_else(|| {
        let hash = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(seed);
            hasher.write_u128(verdict.run.0);
            hasher.write(verdict.json.as_bytes());
            hasher.finish()
        };
        u128::from(hash(0)) << 64 | u128::from(hash(1))
    })
}

/// A verdict has no JSON: a sink of another kind has kept it.
pub(crate) fn without_text(verdict: &VerdictEntry<'_>) -> Failure {
    Failure::rejected(format!(
        "a verdict on `{}` was kept for a sink of another kind, and has no text for this one; give each sink a spool of its own",
        verdict.property
    ))
}

/// State of a verdict whose write has not succeeded as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The client has it, and has not reported about it.
    Sent,
    /// Acknowledged.
    Acknowledged {
        /// Whether the destination had it before.
        is_repeated: bool,
    },
    /// Never accepted.
    Rejected,
}

/// Reason why a write ended before all verdicts were acknowledged or rejected.
pub(crate) struct Stopped {
    pub(crate) failure: Failure,
    /// Whether it is only that the time was over.
    pub(crate) is_late: bool,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped { failure, is_late: false }
    }
}

/// Verdicts of unfinished writes, by identity. The driver passes them again until a write succeeds, so that this is no larger
/// than its queue.
#[derive(Default)]
pub(crate) struct Unfinished {
    deliveries: HashMap<u128, Delivery>,
    /// Number of those that are only sent.
    sent: usize,
}

impl Unfinished {
    pub(crate) fn get(&self, identity: u128) -> Option<Delivery> {
        self.deliveries.get(&identity).copied()
    }

    /// Returns the number of verdicts without an acknowledgement.
    #[cfg(feature = "kafka")]
    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    pub(crate) fn set(&mut self, identity: u128, delivery: Delivery) {
        let before = self.deliveries.insert(identity, delivery);
        self.sent += usize::from(delivery == Delivery::Sent);
        self.sent -= usize::from(before == Some(Delivery::Sent));
    }

    /// Removes a verdict, so that it is sent again.
    pub(crate) fn remove(&mut self, identity: u128) -> Option<Delivery> {
        let before = self.deliveries.remove(&identity);
        self.sent -= usize::from(before == Some(Delivery::Sent));
        before
    }

    /// Removes the verdicts without an acknowledgement, so that they are sent again.
    pub(crate) fn remove_sent(&mut self) {
        self.deliveries.retain(|_, delivery| *delivery != Delivery::Sent);
        self.sent = 0;
    }

    /// Removes the entries, from the first on, that need not be sent again, and counts them. The others stay, so that those
    /// among them that are acknowledged are not sent again.
    pub(crate) fn finish(&mut self, entries: &[Entry<'_>], result: Result<(), Stopped>) -> Progress {
        let is_done = |entry: &Entry<'_>| match entry {
            Entry::Verdict(verdict) => {
                self.get(identity(verdict)).is_some_and(|delivery| delivery != Delivery::Sent)
            }
            _ => true,
        };
        let done = entries.iter().position(|entry| !is_done(entry)).unwrap_or(entries.len());
        let mut progress = Progress { done, ..Progress::default() };
        let mut rejected = HashSet::new();
        for verdict in verdicts(&entries[..done]) {
            let identity = identity(verdict);
            match self.remove(identity) {
                Some(Delivery::Acknowledged { is_repeated: false }) => progress.written.stored += 1,
                Some(Delivery::Rejected) => {
                    rejected.insert(identity);
                    progress.rejected += 1;
                }
                // Those that the same write contains twice are no longer there.
                _ if rejected.contains(&identity) => progress.rejected += 1,
                _ => progress.written.repeated += 1,
            }
        }
        // A write that came some way is no failure.
        progress.failure = match result {
            Ok(()) => None,
            Err(Stopped { is_late: true, .. }) if done > 0 => None,
            Err(Stopped { failure, .. }) => Some(failure),
        };
        progress
    }
}

/// A verdict for unit tests.
#[cfg(test)]
pub(crate) fn sample<'a>(property: &'a str, id: Option<u128>, json: &'a str) -> VerdictEntry<'a> {
    VerdictEntry {
        run: RunKey(7),
        id,
        property,
        parameters: "",
        verdict: crate::Truth::Violated,
        time: 0,
        about: None,
        is_after: false,
        reported: 0,
        step: None,
        lap: 1,
        robustness: None,
        values: "",
        explanation: "",
        latency: None,
        missing: "",
        because_of: "",
        json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Written;

    fn begin(run: u128, series: &str) -> Entry<'_> {
        Entry::Begin(Box::new(Begin { run: RunKey(run), series, ..Begin::default() }))
    }

    #[test]
    fn series_of_recent_runs_are_known() {
        let mut names = SeriesNames::default();
        names.note(&[begin(1, "car"), begin(2, ""), begin(1, "car")]);
        assert_eq!(names.of(RunKey(1)), "car");
        assert_eq!(names.of(RunKey(2)), "00000000000000000000000000000002");
        for run in 10..10 + RUNS as u128 {
            names.note(&[begin(run, "other")]);
        }
        assert_eq!(names.0.len(), RUNS);
        assert_eq!(names.of(RunKey(1)), "00000000000000000000000000000001");
    }

    #[test]
    fn verdicts_without_ids_differ_by_content() {
        assert_eq!(identity(&sample("p", Some(5), "a")), 5);
        assert_eq!(identity(&sample("p", None, "a")), identity(&sample("p", None, "a")));
        assert_ne!(identity(&sample("p", None, "a")), identity(&sample("p", None, "b")));
    }

    #[test]
    fn finished_verdicts_are_counted_and_forgotten() {
        let mut unfinished = Unfinished::default();
        unfinished.set(1, Delivery::Acknowledged { is_repeated: false });
        unfinished.set(2, Delivery::Acknowledged { is_repeated: true });
        unfinished.set(3, Delivery::Rejected);
        unfinished.set(4, Delivery::Sent);
        unfinished.set(5, Delivery::Acknowledged { is_repeated: false });
        let mut entries = vec![begin(7, "car")];
        entries.extend([1, 2, 1, 3, 3, 4, 5].map(|id| Entry::Verdict(sample("p", Some(id), ""))));
        let late = || Err(Stopped { failure: Failure::unavailable("late"), is_late: true });
        let written = Written { stored: 1, repeated: 2 };
        let expected = Progress { written, done: 6, rejected: 2, failure: None };
        assert_eq!(unfinished.finish(&entries, late()), expected);
        assert_eq!((unfinished.get(1), unfinished.sent), (None, 1));
        let nothing = unfinished.finish(&entries[6..], late());
        assert_eq!((nothing.done, nothing.failure), (0, Some(Failure::unavailable("late"))));
        // It was sent once more, and the one after it is not.
        unfinished.remove_sent();
        assert_eq!((unfinished.get(4), unfinished.sent), (None, 0));
        unfinished.set(4, Delivery::Acknowledged { is_repeated: true });
        let failed = Stopped::from(Failure::rejected("too large"));
        let last = unfinished.finish(&entries[6..], Err(failed));
        assert_eq!((last.done, last.written), (2, Written { stored: 1, repeated: 1 }));
        assert_eq!(last.failure, Some(Failure::rejected("too large")));
        assert!(unfinished.deliveries.is_empty());
    }
}
