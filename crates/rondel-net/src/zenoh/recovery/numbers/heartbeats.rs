//! Heartbeats: a publisher tells the number of its last message, so that a subscription finds that messages are missing
//! after the last one that came, and confirms that none is.

use std::time::{Duration, Instant};

use ::zenoh::session::ZenohId;

use super::{Answers, Gap, Numbered, Numbers, PUBLISHERS, Receiver, Recoverer, Table, beyond};
use crate::zenoh::consumers::Heartbeat;
use crate::zenoh::envelope::publisher_of;
use crate::zenoh::recovery::Places;

/// Time in which messages that were sent before a heartbeat may come after it.
const SETTLED: Duration = Duration::from_millis(100);

/// The last heartbeat of a publisher.
#[derive(Debug)]
pub(super) struct Heard {
    places: Places,
    next: u32,
    confirm: bool,
    at: Instant,
}

/// Result of comparing a heartbeat with the messages that came.
enum Compared {
    /// Compare it again soon.
    Wait,
    /// Every message before this number came, or will not come any more.
    Complete(u32),
    /// Messages are missing and are being fetched.
    Fetching,
}

impl<R: Receiver + ?Sized> Numbers<R> {
    /// Returns the name of the subscription in its queries.
    pub(in crate::zenoh) fn by(&self) -> &str {
        &self.by
    }

    /// Notes the heartbeat of a publisher.
    pub(in crate::zenoh) fn hear(&self, key: &str, id: (&ZenohId, u32), heartbeat: Heartbeat) {
        let publisher = publisher_of(id.0, id.1);
        let table = &mut *self.table();
        let is_known = table.publishers.contains_key(&publisher);
        let is_ahead = is_known && beyond(heartbeat.next, self.next(table, publisher)) > 0;
        if self.closed() || !(heartbeat.confirm || is_ahead) || table.heard.len() >= PUBLISHERS {
            return;
        }
        let at = Instant::now();
        let heard = table.heard.entry(publisher).or_insert_with(|| {
            let places = Numbered::new(key, id, 0, false).places;
            Heard { places, next: heartbeat.next, confirm: false, at }
        });
        if heard.next != heartbeat.next {
            (heard.next, heard.at) = (heartbeat.next, at);
        }
        heard.confirm |= heartbeat.confirm;
        if let Some(numbered) = table.publishers.get_mut(&publisher).filter(|_| heartbeat.confirm) {
            // Whoever waits for a confirmation answers, also if it has been cut off until now.
            numbered.answers = Answers::Yes;
            numbered.places.advanced = false;
        }
        self.recoverer.wake();
    }

    /// Compares the heartbeats with the messages that came. Returns whether to do it again soon.
    pub(super) fn compare_heard(&self, recoverer: &Recoverer) -> bool {
        let mut complete = Vec::new();
        let again = {
            let table = &mut *self.table();
            let mut waiting = std::mem::take(&mut table.heard);
            waiting.retain(|publisher, heard| match self.compare(table, *publisher, heard) {
                Compared::Wait => true,
                Compared::Complete(next) if heard.confirm => {
                    complete.push((heard.places.clone(), next));
                    false
                }
                Compared::Complete(_) | Compared::Fetching => false,
            });
            table.heard = waiting;
            !table.heard.is_empty()
        };
        for (places, next) in complete {
            recoverer.confirm(&places, (&self.by, next));
        }
        again
    }

    fn compare(&self, table: &mut Table, publisher: u64, heard: &Heard) -> Compared {
        let next = self.next(table, publisher);
        // It gets nothing that was published before its first message.
        let Some(numbered) = table.publishers.get_mut(&publisher) else {
            return Compared::Complete(heard.next);
        };
        if let Some(gap) = &mut numbered.gap {
            if gap.until.is_none_or(|until| beyond(heard.next, until) > 0) {
                gap.until = Some(heard.next);
            }
            // The publisher repeats a heartbeat that is not confirmed.
            return Compared::Fetching;
        }
        if beyond(heard.next, next) <= 0 {
            return Compared::Complete(next);
        }
        if numbered.until == Some(heard.next) {
            return Compared::Complete(heard.next);
        }
        if heard.at.elapsed() < SETTLED {
            return Compared::Wait;
        }
        let may_answer = numbered.keeps && numbered.answers != Answers::No;
        self.leave_slot(table, publisher);
        let Some(numbered) = table.publishers.get_mut(&publisher) else { return Compared::Fetching };
        if !may_answer {
            self.lose(numbered, heard.next);
            return Compared::Complete(heard.next);
        }
        numbered.gap = Some(Gap { until: Some(heard.next), ..Gap::new(numbered.next) });
        table.gaps.push(publisher);
        Compared::Fetching
    }
}
