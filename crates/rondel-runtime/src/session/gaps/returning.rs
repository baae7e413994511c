//! The first messages after a pause, where the times of messages are those of their arrival.
//!
//! A message that waited during the pause has too late a time, so nothing is certain about a topic before its last such
//! message. It does not show whether a message waited or was just sent; but if only few bytes came within [`SOON`], no
//! buffer on the way was full, and nothing is left at the sender: a topic without messages is silent. If more came, the
//! wait is [`GRACE`].

use rondel_engine::{Monitor, SeenAgain};
use rondel_event::{Block, Timestamp, TopicId};

use crate::time::GRACE;
use crate::time::clock::Ticks;

/// Time that waiting messages take to arrive if no buffer on the way was full, in nanoseconds.
const SOON: i64 = 100_000_000;

/// Bytes of payloads that the smallest buffers on the way hold: a half of those of a TCP connection.
const FEW: usize = 64 * 1024;

/// The longest pause, in nanoseconds, over which connections and their publishers are kept.
const SHORT: i64 = 5_000_000_000;

/// The messages since a pause.
#[derive(Debug)]
pub(in crate::session) struct Returning {
    /// The end of the pause.
    until: Timestamp,
    /// Ticks at which the end of the missed span is decided.
    pub(in crate::session) due: Ticks,
    /// Bytes of payloads since then.
    bytes: usize,
    /// The time of the last message of each topic since then, by topic.
    last: Vec<Option<Timestamp>>,
}

impl Returning {
    /// Begins after a pause of a length in nanoseconds that ended at a time and a reading of the ticks; `None` if it
    /// was too long.
    pub(in crate::session) fn after(
        lasted: i64,
        until: Timestamp,
        now: Ticks,
        topics: usize,
    ) -> Option<Returning> {
        let due = now.saturating_add(SOON);
        (lasted < SHORT).then(|| Returning { until, due, bytes: 0, last: vec![None; topics] })
    }

    /// Counts the bytes of a message.
    #[inline]
    pub(in crate::session) fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Records the messages of a block.
    pub(in crate::session) fn see(&mut self, block: &Block) {
        for row in 0..block.len() {
            let (time, topic) = (block.time(row), block.topic(row));
            if let Some(last) = topic.and_then(|topic| self.last.get_mut(topic.index()))
                && time >= self.until
            {
                *last = (*last).max(Some(time));
            }
        }
    }

    /// Returns the end of the missed span. `is_early`: waiting messages may still come.
    pub(in crate::session) fn end(self, monitor: &mut Monitor, is_early: bool) {
        let late = Timestamp::from_nanos(self.until.as_nanos().saturating_add(GRACE));
        for (topic, last) in (0..).map(TopicId).zip(self.last) {
            let again = match last {
                _ if is_early || self.bytes > FEW => SeenAgain::At(late),
                Some(last) => SeenAgain::After(last),
                None => SeenAgain::At(self.until),
            };
            monitor.see(&[topic], again);
        }
    }
}
