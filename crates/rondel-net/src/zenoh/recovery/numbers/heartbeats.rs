//! Heartbeats: a publisher sends the number of its last message, so that a subscription detects missing messages after
//! the last one received, and confirms that it has all.

use std::time::{Duration, Instant};

use super::publisher::{Gap, Numbered, Responsiveness};
use super::{Numbers, PUBLISHERS, Receiver, Recoverer, Table, beyond};
use crate::zenoh::consumers::Heartbeat;
use crate::zenoh::envelope::{PublisherId, publisher_of};
use crate::zenoh::recovery::QueryKeys;

/// Time in which messages sent before a heartbeat may arrive after it.
const SETTLED: Duration = Duration::from_millis(100);

/// The last heartbeat of a publisher.
#[derive(Debug)]
pub(super) struct LastHeartbeat {
    keys: QueryKeys,
    next: u32,
    confirm: bool,
    at: Instant,
}

/// Result of comparing a heartbeat with the received messages.
enum Compared {
    /// The heartbeat must be compared again soon.
    Wait,
    /// Every message before this number was received, or will not arrive any more.
    Complete(u32),
    /// Messages are missing and are being fetched.
    Fetching,
}

impl<R: Receiver + ?Sized> Numbers<R> {
    /// Returns the name of the subscription in its queries.
    pub(in crate::zenoh) fn by(&self) -> &str {
        &self.by
    }

    /// Records the heartbeat of a publisher.
    pub(in crate::zenoh) fn receive_heartbeat(&self, key: &str, id: PublisherId<'_>, heartbeat: Heartbeat) {
        let publisher = publisher_of(id.session, id.entity);
        let table = &mut *self.table();
        let is_known = table.publishers.contains_key(&publisher);
        let is_ahead = is_known && beyond(heartbeat.next, self.next(table, publisher)) > 0;
        if self.closed() || !(heartbeat.confirm || is_ahead) || table.heartbeats.len() >= PUBLISHERS {
            return;
        }
        let at = Instant::now();
        let last = table.heartbeats.entry(publisher).or_insert_with(|| {
            let keys = Numbered::new(key, id, 0, false).keys;
            LastHeartbeat { keys, next: heartbeat.next, confirm: false, at }
        });
        if last.next != heartbeat.next {
            (last.next, last.at) = (heartbeat.next, at);
        }
        last.confirm |= heartbeat.confirm;
        if let Some(numbered) = table.publishers.get_mut(&publisher).filter(|_| heartbeat.confirm) {
            // A publisher that waits for a confirmation answers, even if it has been cut off until now.
            numbered.answers = Responsiveness::Yes;
            numbered.keys.advanced = false;
        }
        self.recoverer.wake();
    }

    /// Compares the heartbeats with the received messages. Returns whether to do it again soon.
    pub(super) fn compare_heartbeats(&self, recoverer: &Recoverer) -> bool {
        let mut complete = Vec::new();
        let again = {
            let table = &mut *self.table();
            let mut waiting = std::mem::take(&mut table.heartbeats);
            waiting.retain(|publisher, last| match self.compare(table, *publisher, last) {
                Compared::Wait => true,
                Compared::Complete(next) if last.confirm => {
                    complete.push((last.keys.clone(), next));
                    false
                }
                Compared::Complete(_) | Compared::Fetching => false,
            });
            table.heartbeats = waiting;
            !table.heartbeats.is_empty()
        };
        for (keys, next) in complete {
            recoverer.confirm(&keys, &self.by, next);
        }
        again
    }

    fn compare(&self, table: &mut Table, publisher: u64, last: &LastHeartbeat) -> Compared {
        let next = self.next(table, publisher);
        // The subscription gets no messages from before the first one received.
        let Some(numbered) = table.publishers.get_mut(&publisher) else {
            return Compared::Complete(last.next);
        };
        if let Some(gap) = &mut numbered.gap {
            if gap.until.is_none_or(|until| beyond(last.next, until) > 0) {
                gap.until = Some(last.next);
            }
            // The publisher repeats an unconfirmed heartbeat.
            return Compared::Fetching;
        }
        if beyond(last.next, next) <= 0 {
            return Compared::Complete(next);
        }
        if numbered.until == Some(last.next) {
            return Compared::Complete(last.next);
        }
        if last.at.elapsed() < SETTLED {
            return Compared::Wait;
        }
        let may_answer = numbered.keeps && numbered.answers != Responsiveness::No;
        self.leave_slot(table, publisher);
        let Some(numbered) = table.publishers.get_mut(&publisher) else { return Compared::Fetching };
        if !may_answer {
            self.lose(numbered, last.next);
            return Compared::Complete(last.next);
        }
        numbered.gap = Some(Gap { until: Some(last.next), ..Gap::new(numbered.next) });
        table.gaps.push(publisher);
        Compared::Fetching
    }
}
