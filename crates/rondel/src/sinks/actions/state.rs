//! The account of actions: in summaries, heartbeats, diagnostics and notices.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rondel_event::Timestamp;
use rondel_runtime::Notice;
use rondel_runtime::ros2::Part;
use rondel_runtime::text::grouped;
use serde_json::{Value, json};

use super::queue::{Counters, Queue};

/// Minimum interval between two notices, in nanoseconds.
const AGAIN: i64 = 10_000_000_000;

/// The account of the actions of a run, while it lasts.
#[derive(Clone, Debug)]
pub struct ActionHandle {
    names: Arc<[String]>,
    counters: Arc<[Counters]>,
    queue: Arc<Queue>,
}

/// Numbers of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    caused: u64,
    limited: u64,
    dropped: u64,
    done: u64,
    failed: u64,
}

impl Counts {
    fn of(own: &Counters) -> Counts {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            caused: load(&own.caused),
            limited: load(&own.limited),
            dropped: load(&own.dropped),
            done: load(&own.done),
            failed: load(&own.failed),
        }
    }

    /// Number of actions that wait or last.
    fn pending(&self) -> u64 {
        self.caused.saturating_sub(self.limited + self.dropped + self.done + self.failed)
    }

    fn plus(self, other: Counts) -> Counts {
        Counts {
            caused: self.caused + other.caused,
            limited: self.limited + other.limited,
            dropped: self.dropped + other.dropped,
            done: self.done + other.done,
            failed: self.failed + other.failed,
        }
    }

    fn json(&self, name: &str) -> Value {
        let Counts { caused, limited, dropped, done, failed } = self;
        json!({
            "action": name,
            "caused": caused,
            "done": done,
            "failed": failed,
            "limited": limited,
            "dropped": dropped,
            "pending": self.pending(),
        })
    }

    fn figures(&self, name: &str) -> ActionFigures {
        let Counts { limited, dropped, done, failed, .. } = *self;
        let results = [("done", done), ("failed", failed), ("limited", limited), ("dropped", dropped)];
        ActionFigures { name: name.to_owned(), results, pending: self.pending() }
    }

    fn sentence(&self, name: &str) -> String {
        let mut text = format!("{name}: {} done", grouped(self.done));
        for (count, outcome) in [
            (self.failed, "failed"),
            (self.limited, "beyond the limit"),
            (self.dropped, "dropped"),
            (self.pending(), "not finished at the end"),
        ] {
            if count > 0 {
                text += &format!(", {} {outcome}", grouped(count));
            }
        }
        text
    }
}

/// The numbers of an action for metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionFigures {
    /// Its name.
    pub name: String,
    /// Numbers of verdicts that caused it, by result.
    pub results: [(&'static str, u64); 4],
    /// Number of those without a result yet.
    pub pending: u64,
}

impl ActionHandle {
    pub(super) fn new(names: Vec<String>, queue: Arc<Queue>) -> ActionHandle {
        let counters = names.iter().map(|_| Counters::default()).collect();
        ActionHandle { names: names.into(), counters, queue }
    }

    pub(super) fn counters(&self) -> Arc<[Counters]> {
        Arc::clone(&self.counters)
    }

    pub(super) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.queue)
    }

    fn counts(&self) -> impl Iterator<Item = (&str, Counts)> {
        self.names.iter().map(String::as_str).zip(self.counters.iter().map(Counts::of))
    }

    fn total(&self) -> Counts {
        self.counts().fold(Counts::default(), |total, (_, counts)| total.plus(counts))
    }

    /// Returns the account as a JSON array.
    pub fn json(&self) -> Value {
        self.counts().map(|(name, counts)| counts.json(name)).collect()
    }

    /// Returns the numbers of the actions by name: two that publish on one address share it.
    pub fn figures(&self) -> Vec<ActionFigures> {
        let mut all: Vec<(&str, Counts)> = Vec::new();
        for (name, counts) in self.counts() {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.plus(counts),
                None => all.push((name, counts)),
            }
        }
        all.into_iter().map(|(name, counts)| counts.figures(name)).collect()
    }

    /// Returns the state for diagnostics.
    pub(super) fn part(&self) -> Part {
        let Counts { limited, dropped, done, failed, .. } = self.total();
        let is_behind = self.queue.waiting() > super::queue::WAITING / 2;
        let message = match (is_behind, failed > 0) {
            (true, _) => "behind",
            (false, true) => "failures",
            (false, false) => "ready",
        };
        Part {
            name: "actions".to_owned(),
            is_failing: is_behind,
            has_lost: dropped + failed > 0,
            message: message.to_owned(),
            values: vec![
                ("done", done.to_string()),
                ("failed", failed.to_string()),
                ("limited", limited.to_string()),
                ("dropped", dropped.to_string()),
                ("waiting", self.queue.waiting().to_string()),
            ],
        }
    }

    /// Returns the account at the end.
    pub(super) fn summary(&self) -> ActionSummary {
        ActionSummary { counts: self.counts().map(|(name, counts)| (name.to_owned(), counts)).collect() }
    }
}

/// The account of actions at the end of a run.
#[derive(Clone, Debug)]
pub struct ActionSummary {
    counts: Vec<(String, Counts)>,
}

impl ActionSummary {
    /// Returns the account as a JSON array.
    pub fn json(&self) -> Value {
        self.counts.iter().map(|(name, counts)| counts.json(name)).collect()
    }

    /// Returns a sentence for each action.
    pub fn sentences(&self) -> Vec<String> {
        self.counts.iter().map(|(name, counts)| counts.sentence(name)).collect()
    }
}

/// The numbers that notices have reported.
#[derive(Debug, Default)]
pub(super) struct Shown {
    counts: Counts,
    at: Option<Timestamp>,
}

impl Shown {
    /// Returns a notice if further actions were not done, at most every ten seconds, and when the run `ends`.
    pub(super) fn look(&mut self, handle: &ActionHandle, now: Timestamp, ends: bool) -> Option<Notice> {
        let counts = handle.total();
        let further = |now: u64, before: u64| now.saturating_sub(before);
        let limited = further(counts.limited, self.counts.limited);
        let dropped = further(counts.dropped, self.counts.dropped);
        let failed = further(counts.failed, self.counts.failed);
        let is_early =
            self.at.is_some_and(|at| (0..AGAIN).contains(&now.as_nanos().saturating_sub(at.as_nanos())));
        if limited + dropped + failed == 0 || is_early && !ends {
            return None;
        }
        (self.counts, self.at) = (counts, Some(now));
        Some(Notice::actions(limited, dropped, failed))
    }
}
