//! State of a subscription's publishers: their numbers, gaps and silences.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rondel_event::Timestamp;

use crate::adapter::now;
use crate::zenoh::envelope::PublisherId;
use crate::zenoh::recovery::{PendingRequest, QueryKeys};
use crate::zenoh::{advanced, resend};

/// Silence of a publisher before it is queried, initially and at most.
pub(super) const SILENCE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// A publisher.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) keys: QueryKeys,
    /// Next number, unless a slot has it.
    pub(super) next: u32,
    /// Last fetched range of numbers, end exclusive. Its messages may be received again.
    pub(super) fetched: Option<(u32, u32)>,
    pub(super) answers: Responsiveness,
    pub(super) gap: Option<Gap>,
    pub(super) silence: Silence,
    /// Whether messages carry the time of their publication.
    pub(super) timed: bool,
    /// Whether it keeps messages, as far as known. A publisher that does not still answers with its next number.
    pub(super) keeps: bool,
    /// Its next number when it answered that it does not have the messages before it.
    pub(super) until: Option<u32>,
}

impl Numbered {
    /// Creates a publisher whose next message has this number.
    pub(super) fn new(key: &str, id: PublisherId<'_>, next: u32, timed: bool) -> Numbered {
        let (own, of_advanced) = (resend::place(key, id), advanced::place(key, id));
        let keys = QueryKeys { own, of_advanced, advanced: false };
        let (answers, fetched, gap, silence) = (Responsiveness::Unknown, None, None, Silence::new(next));
        Numbered { keys, next, fetched, answers, gap, silence, timed, keeps: true, until: None }
    }
}

/// Result of earlier queries to a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Responsiveness {
    Unknown,
    Yes,
    No,
}

/// Messages that are missing, or may be.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) since: Instant,
    pub(super) from: Timestamp,
    /// The first fetched number.
    pub(super) first: u32,
    pub(super) held: VecDeque<Held>,
    pub(super) bytes: usize,
    pub(super) request: Option<PendingRequest>,
    /// Time of the next request.
    pub(super) due: Instant,
    pub(super) fetched: u64,
    /// Next number of the publisher, as far as known.
    pub(super) until: Option<u32>,
    /// Smallest distance to the publisher so far, and the time since which it has not shrunk.
    pub(super) distance: (u32, Instant),
    /// Whether the messages were published before the publisher was discovered: all that it keeps are fetched, and none
    /// is missing.
    pub(super) history: bool,
}

impl Gap {
    pub(super) fn new(first: u32) -> Gap {
        let now_at = Instant::now();
        Gap {
            since: now_at,
            from: now(),
            first,
            held: VecDeque::new(),
            bytes: 0,
            until: None,
            request: None,
            due: now_at,
            fetched: 0,
            distance: (u32::MAX, now_at),
            history: false,
        }
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.bytes += held.payload.len() + size_of::<Held>();
        self.held.push_back(held);
    }

    pub(super) fn release(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.payload.len() + size_of::<Held>();
        Some(held)
    }
}

/// A message received after a gap.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) number: u32,
    pub(super) time: Option<Timestamp>,
    pub(super) payload: Box<[u8]>,
}

/// Silence of a publisher.
#[derive(Debug)]
pub(super) struct Silence {
    pub(super) number: u32,
    pub(super) since: Instant,
    /// `since` by the wall clock.
    pub(super) at: Timestamp,
    pub(super) wait: Duration,
    /// Whether it was queried, and nothing was missing.
    pub(super) known: bool,
    pub(super) request: Option<PendingRequest>,
}

impl Silence {
    pub(super) fn new(number: u32) -> Silence {
        Silence { number, since: Instant::now(), at: now(), wait: SILENCE.0, known: false, request: None }
    }

    /// Whether to query the publisher now. `next` is the number of its next message.
    pub(super) fn is_due(&mut self, next: u32, reconnected: bool) -> bool {
        if self.number != next {
            (self.number, self.known) = (next, false);
            (self.since, self.at) = (Instant::now(), now());
        }
        if reconnected {
            (self.known, self.wait) = (false, SILENCE.0);
        }
        !self.known && self.request.is_none() && self.since.elapsed() >= self.wait
    }
}
