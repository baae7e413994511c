//! Fetched messages of a publisher: they fill its gap, and the messages held behind the gap follow.

use std::time::{Duration, Instant};

use super::publisher::{Numbered, Responsiveness, Silence};
use super::{Numbers, Receiver, Recoverer, Table, beyond};
use crate::adapter::now;
use crate::zenoh::recovery::AGAIN;
use crate::zenoh::resend;

/// Timeout for a publisher that has never answered; other numbering publishers than Rondel's never do.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Timeout for a publisher that has answered before, and for fetching without progress.
const PATIENCE: Duration = Duration::from_secs(5);

impl<R: Receiver + ?Sized> Numbers<R> {
    /// Ends the gap of a publisher with the held messages.
    pub(super) fn give_up(&self, table: &mut Table, publisher: u64) {
        let Some(numbered) = table.publishers.get_mut(&publisher) else { return };
        let Some(mut gap) = numbered.gap.take() else { return };
        if gap.history && gap.fetched == 0 {
            // It has kept nothing: its first message shows where its numbers begin.
            let Some(first) = gap.held.front() else {
                table.publishers.remove(&publisher);
                table.gaps.retain(|one| *one != publisher);
                return;
            };
            numbered.next = first.number;
        }
        // Otherwise the same messages would be requested for ever.
        let known = gap.held.is_empty();
        if let Some(until) = gap.until.filter(|_| known) {
            self.lose(numbered, until);
        }
        while let Some(held) = gap.release() {
            if beyond(held.number, numbered.next) >= 0 {
                self.deliver(publisher, held.number, held.time, &held.payload);
                numbered.next = held.number.wrapping_add(1);
            }
        }
        if gap.fetched > 0 {
            numbered.fetched = Some((gap.first, numbered.next));
        }
        numbered.silence = Silence { known, ..Silence::new(numbered.next) };
        table.gaps.retain(|one| *one != publisher);
    }

    /// Records that the last messages of a publisher before this number will not arrive, although no later one shows
    /// it.
    pub(super) fn lose(&self, numbered: &mut Numbered, until: u32) {
        numbered.until = Some(until);
        if beyond(until, numbered.next) > 0 {
            self.receiver.missed(self.topic, numbered.silence.at, Some(now()));
        }
    }

    /// Continues with the gap of a publisher. Returns whether to call it again at once.
    pub(super) fn carry_on(&self, recoverer: &Recoverer, publisher: u64) -> bool {
        let answer = {
            let table = &mut *self.table();
            let Some(numbered) = table.publishers.get_mut(&publisher) else { return false };
            let Some(gap) = &mut numbered.gap else { return false };
            let Some(request) = &gap.request else {
                if Instant::now() >= gap.due {
                    gap.request =
                        Some(recoverer.request(&numbered.keys, &self.by, numbered.next, numbered.next));
                }
                return false;
            };
            let Some(answer) = request.answer() else { return false };
            gap.request = None;
            answer
        };
        match answer {
            Ok(answer) => self.take(publisher, &answer),
            Err(()) => {
                let table = &mut *self.table();
                let Some(numbered) = table.publishers.get_mut(&publisher) else { return false };
                let Some(gap) = &mut numbered.gap else { return false };
                if gap.history {
                    self.give_up(table, publisher);
                    return false;
                }
                // The first retry is immediate.
                let again = if numbered.keys.advanced { AGAIN } else { Duration::ZERO };
                gap.due = Instant::now() + again;
                numbered.keys.advanced ^= numbered.answers == Responsiveness::Unknown;
                let (patience, known) = match numbered.answers {
                    Responsiveness::Yes => (PATIENCE, true),
                    Responsiveness::Unknown | Responsiveness::No => (UNKNOWN, false),
                };
                if gap.since.elapsed().min(gap.distance.1.elapsed()) >= patience {
                    if !known {
                        numbered.answers = Responsiveness::No;
                    }
                    tracing::debug!(topic = %self.name, known, "the publisher does not send missed messages again");
                    self.give_up(table, publisher);
                }
            }
        }
        self.idle();
        true
    }

    fn idle(&self) {
        if self.wants_idle {
            self.receiver.idle();
        }
    }

    /// Delivers the messages of an answer, and ends the gap if they reach the held messages.
    fn take(&self, publisher: u64, answer: &[u8]) {
        let begun = self.table().publishers.get_mut(&publisher).and_then(|numbered| {
            numbered.answers = Responsiveness::Yes;
            numbered.gap.as_ref().map(|gap| (numbered.next, numbered.timed, gap.history && gap.fetched == 0))
        });
        let Some((mut position, timed, mut is_first)) = begun else { return };
        let start = position;
        let (mut count, mut keeps) = (0, false);
        let whole = resend::read(answer, |number, time, payload| {
            keeps = true;
            let number = number as u32;
            if std::mem::take(&mut is_first) {
                // Those before it are not kept, and not missing.
                position = number;
            }
            if beyond(number, position) > 0 {
                // The publisher has not kept those before. Some may have been received.
                position = self.deliver_held(publisher, position, number);
            }
            if number == position {
                self.deliver(publisher, number, timed.then_some(time), payload);
                position = number.wrapping_add(1);
                count += 1;
            }
        });
        let table = &mut *self.table();
        let Some(numbered) = table.publishers.get_mut(&publisher) else { return };
        // An empty answer proves little if nothing is missing.
        numbered.keeps = keeps || whole.is_none_or(|next| next as u32 == position);
        let Some(gap) = &mut numbered.gap else { return };
        numbered.next = position;
        gap.fetched += count;
        if count > 0 && !gap.history {
            self.recoverer.count(self.topic, count, gap.from);
        }
        let next = whole.map_or(position, |next| next as u32);
        gap.until = Some(next);
        let distance = u32::try_from(beyond(next, position)).unwrap_or(0);
        if distance < gap.distance.0 {
            gap.distance = (distance, Instant::now());
        }
        while gap.held.front().is_some_and(|held| beyond(held.number, position) < 0) {
            _ = gap.release();
        }
        let reached = match gap.held.front() {
            Some(held) => held.number == position,
            None => distance == 0,
        };
        let stuck = position == start || gap.distance.1.elapsed() >= PATIENCE;
        if !reached && !stuck {
            gap.due = Instant::now();
            return;
        }
        // The held messages may have a gap of their own, if the connection was lost again.
        let mut last = position;
        let gapless = gap.held.iter().take_while(|held| {
            let follows = held.number == last;
            last = held.number.wrapping_add(1);
            follows
        });
        if reached && gapless.count() < gap.held.len() && !self.closed() {
            while let Some(held) = gap.held.front().filter(|held| held.number == position) {
                position = held.number.wrapping_add(1);
                let Some(held) = gap.release() else { break };
                self.deliver(publisher, held.number, held.time, &held.payload);
            }
            numbered.next = position;
            gap.due = Instant::now();
            return;
        }
        if gap.history {
            tracing::debug!(topic = %self.name, count = gap.fetched, "received what a publisher has kept");
        } else {
            tracing::info!(topic = %self.name, count = gap.fetched, "received missed messages again");
        }
        // Under the lock, so that new messages of the publisher wait.
        self.give_up(table, publisher);
        self.take_slot(table, publisher);
    }

    /// Delivers held messages before a number. Returns the next number.
    fn deliver_held(&self, publisher: u64, mut position: u32, before: u32) -> u32 {
        loop {
            let held = {
                let table = &mut *self.table();
                let gap = table.publishers.get_mut(&publisher).and_then(|numbered| numbered.gap.as_mut());
                let Some(gap) = gap else { return before };
                if gap.held.front().is_none_or(|held| beyond(held.number, before) >= 0) {
                    return before;
                }
                gap.release()
            };
            if let Some(held) = held
                && beyond(held.number, position) >= 0
            {
                self.deliver(publisher, held.number, held.time, &held.payload);
                position = held.number.wrapping_add(1);
            }
        }
    }
}
