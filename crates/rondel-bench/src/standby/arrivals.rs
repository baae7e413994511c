//! Arrivals of verdicts of a group, and of requests to hand over.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Sample};
use serde::Deserialize;

use super::feeder::Stamps;
use crate::failure::{Failure, Result};

/// The subscription to verdicts.
pub const VERDICTS: TopicId = TopicId(0);
/// The subscription to the messages of the group.
pub const GROUP: TopicId = TopicId(1);
/// The time between two looks at the flag that a signal sets.
const LOOK: Duration = Duration::from_millis(50);

/// A verdict that arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The time.
    pub at: Instant,
    /// The number of its message; `None` if no message has its time.
    pub number: Option<u64>,
    /// Its id.
    pub id: String,
    /// The epoch of the member that published it.
    pub epoch: u64,
    /// Whether it is the expected one: a violation.
    pub is_violated: bool,
}

/// The members of a verdict in JSON that count.
#[derive(Deserialize)]
struct Verdict<'a> {
    time: f64,
    #[serde(borrow)]
    id: Cow<'a, str>,
    epoch: u64,
    #[serde(borrow)]
    verdict: Cow<'a, str>,
}

/// The arrivals since they were last taken.
#[derive(Debug, Default)]
pub struct Arrived {
    /// Verdicts, in the order of their arrival.
    pub verdicts: Vec<Arrival>,
    /// The last request to hand over.
    pub request: Option<Instant>,
    /// Number of messages on the topic of verdicts that are no verdict of a group.
    pub unreadable: u64,
}

/// Records arrivals, and lets a thread wait for them.
#[derive(Debug)]
pub struct Arrivals {
    stamps: Stamps,
    arrived: Mutex<Arrived>,
    changed: Condvar,
}

impl Arrivals {
    /// Returns an empty record of verdicts about messages with these stamps.
    pub fn new(stamps: Stamps) -> Arrivals {
        Arrivals { stamps, arrived: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes everything that has arrived.
    pub fn take(&self) -> Arrived {
        std::mem::take(&mut *self.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a request to hand over has arrived since the last one was forgotten.
    pub fn has_request(&self) -> bool {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).request.is_some()
    }

    /// Forgets the last request to hand over.
    pub fn forget_request(&self) {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).request = None;
    }

    /// Waits until `find` finds something among the arrivals.
    ///
    /// # Errors
    /// [`Failure::Late`] after `limit`, [`Failure::Interrupted`] once `interrupted` is set.
    pub fn wait<T>(
        &self,
        what: &str,
        limit: Duration,
        interrupted: &AtomicBool,
        find: impl Fn(&Arrived) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + limit;
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = find(&arrived) {
                return Ok(found);
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::Late { what: what.to_owned(), limit });
            }
            let waited = self.changed.wait_timeout(arrived, left.min(LOOK));
            arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads a verdict.
    fn read(&self, at: Instant, payload: &[u8]) -> Option<Arrival> {
        let verdict: Verdict<'_> = serde_json::from_slice(payload).ok()?;
        Some(Arrival {
            at,
            number: self.stamps.number(verdict.time),
            id: verdict.id.into_owned(),
            epoch: verdict.epoch,
            is_violated: verdict.verdict == "violated",
        })
    }
}

impl Receiver for Arrivals {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        let at = Instant::now();
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        for sample in samples {
            if topic == GROUP {
                if is_request(sample.payload) {
                    arrived.request = Some(at);
                }
            } else if let Some(verdict) = self.read(at, sample.payload) {
                arrived.verdicts.push(verdict);
            } else {
                arrived.unreadable += 1;
            }
        }
        self.changed.notify_all();
    }
}

/// Whether a message of the group is a request to hand over.
fn is_request(payload: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(payload).is_ok_and(|message| message.get("promote").is_some())
}

/// Returns the arrival of the first verdict of a later epoch, and that of the last verdict before it.
pub fn taken_over(arrived: &Arrived, epoch: u64) -> Option<(Instant, Instant)> {
    let verdicts = &arrived.verdicts;
    let first = verdicts.iter().position(|verdict| verdict.epoch > epoch)?;
    Some((verdicts[first].at, verdicts[..first].last()?.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals() -> Arrivals {
        Arrivals::new(Stamps { begin_us: 1_700_000_000_000_000, period_us: 10_000 })
    }

    fn receive(arrivals: &Arrivals, topic: TopicId, text: &str) {
        arrivals.receive(topic, &[Sample::new(text.as_bytes(), None, None)]);
    }

    #[test]
    fn verdicts_are_read() {
        let arrivals = arrivals();
        receive(
            &arrivals,
            VERDICTS,
            r#"{"property":"p","time":1700000000.03,"step":4,"verdict":"violated","id":"7f","epoch":2}"#,
        );
        receive(
            &arrivals,
            VERDICTS,
            r#"{"time":1700000000.035,"verdict":"inconclusive","id":"8","epoch":2}"#,
        );
        receive(&arrivals, VERDICTS, r#"{"time":1700000000.04,"verdict":"violated"}"#);
        let Arrived { verdicts, request, unreadable } = arrivals.take();
        assert_eq!(verdicts.len(), 2, "{verdicts:?}");
        let Arrival { number, id, epoch, is_violated, .. } = &verdicts[0];
        assert_eq!((*number, id.as_str(), *epoch, *is_violated), (Some(3), "7f", 2, true));
        assert_eq!((verdicts[1].number, verdicts[1].is_violated), (None, false));
        assert_eq!((request, unreadable), (None, 1), "a verdict without an epoch is none of a group");
    }

    #[test]
    fn signs_of_life_are_no_requests() {
        let arrivals = arrivals();
        receive(&arrivals, GROUP, r#"{"group":"bench","member":"00000000000000a1","state":"active"}"#);
        assert_eq!(arrivals.take().request, None);
        receive(&arrivals, GROUP, r#"{"group":"bench","promote":null,"epoch":3}"#);
        assert!(arrivals.take().request.is_some());
    }

    #[test]
    fn later_epoch_is_waited_for() {
        let (arrivals, interrupted) = (arrivals(), AtomicBool::new(false));
        let wait = |limit| arrivals.wait("take-over", limit, &interrupted, |all| taken_over(all, 1));
        let of = |epoch| format!(r#"{{"time":1700000000,"verdict":"violated","id":"1","epoch":{epoch}}}"#);
        receive(&arrivals, VERDICTS, &of(1));
        assert!(matches!(wait(Duration::ZERO), Err(Failure::Late { .. })));
        receive(&arrivals, VERDICTS, &of(2));
        receive(&arrivals, VERDICTS, &of(1));
        let (first, last) = wait(Duration::ZERO).unwrap();
        assert!(last <= first);
        arrivals.take();
        interrupted.store(true, Ordering::Relaxed);
        assert!(matches!(wait(Duration::from_secs(9)), Err(Failure::Interrupted)));
    }
}
