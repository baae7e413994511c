//! The regular work on a subscription: its gaps, its silent publishers, and its end.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::publisher::{Gap, Numbered, Responsiveness, SILENCE};
use super::{Numbers, Receiver, Recoverer, beyond};
use crate::zenoh::recovery::{PendingRequest, RecoveredSubscription};
use crate::zenoh::resend;

impl<R: Receiver + ?Sized> RecoveredSubscription for Numbers<R> {
    fn attend(&self, recoverer: &Recoverer) -> bool {
        if !self.begun.load(Ordering::Acquire) {
            return false;
        }
        let has_heartbeats = self.compare_heartbeats(recoverer);
        let gaps = self.table().gaps.clone();
        for publisher in &gaps {
            let _delivering = self.delivering.lock().unwrap_or_else(PoisonError::into_inner);
            while !self.closed() && self.carry_on(recoverer, *publisher) {}
        }
        has_heartbeats || !self.table().gaps.is_empty()
    }

    fn look(&self, recoverer: &Recoverer, reconnected: bool) {
        if self.closed() {
            return;
        }
        let table = &mut *self.table();
        let silent: Vec<(u64, u32)> = table
            .publishers
            .iter()
            .filter(|(_, numbered)| numbered.gap.is_none() && numbered.answers != Responsiveness::No)
            .map(|(publisher, _)| (*publisher, self.next(table, *publisher)))
            .collect();
        if reconnected {
            // Publishers without an answer may have been cut off.
            for numbered in
                table.publishers.values_mut().filter(|numbered| numbered.answers == Responsiveness::No)
            {
                numbered.answers = Responsiveness::Unknown;
                numbered.keys.advanced = false;
            }
        }
        for (publisher, next) in silent {
            let Some(numbered) = table.publishers.get_mut(&publisher) else { continue };
            let silence = &mut numbered.silence;
            if silence.is_due(next, reconnected) {
                // Includes the last message: the answer shows whether the publisher keeps any. An advanced publisher
                // sends no answer if nothing is missing.
                silence.request =
                    Some(recoverer.request(&numbered.keys, &self.by, next, next.wrapping_sub(1)));
            }
            let Some(answer) = silence.request.as_ref().and_then(PendingRequest::answer) else { continue };
            silence.request = None;
            let is_unknown = numbered.answers == Responsiveness::Unknown;
            if is_unknown && answer.is_err() && !numbered.keys.advanced {
                // Retried at once by the other protocol.
                numbered.keys.advanced = true;
                continue;
            }
            // Queries become increasingly rare.
            silence.wait = (silence.wait * 2).min(SILENCE.1);
            match answer {
                // Its connection may return, so that even a publisher that has never answered may answer then.
                Err(()) => {
                    silence.since = Instant::now();
                    numbered.keys.advanced &= !is_unknown;
                }
                Ok(answer) => {
                    numbered.answers = Responsiveness::Yes;
                    let mut keeps = false;
                    let read = resend::read(&answer, |_, _, _| keeps = true);
                    let until = read.map_or(next, |until| until as u32);
                    numbered.keeps = keeps;
                    if beyond(until, next) <= 0 {
                        silence.known = true;
                        continue;
                    }
                    if !keeps {
                        // They are lost, even if no later message shows it by its number.
                        tracing::warn!(
                            topic = %self.name, count = beyond(until, next),
                            "messages of a silent publisher were missed, which does not keep them"
                        );
                        silence.known = true;
                        self.lose(numbered, until);
                        continue;
                    }
                    self.leave_slot(table, publisher);
                    let Some(numbered) = table.publishers.get_mut(&publisher) else { continue };
                    numbered.gap = Some(Gap::new(numbered.next));
                    table.gaps.push(publisher);
                }
            }
        }
    }

    fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while !self.table().gaps.is_empty() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn close(&self, limit: Duration) -> bool {
        self.closed.store(true, Ordering::Release);
        let deadline = Instant::now() + limit;
        let _delivering = loop {
            match self.delivering.try_lock() {
                Ok(guard) => break guard,
                Err(std::sync::TryLockError::Poisoned(guard)) => break guard.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) if Instant::now() >= deadline => return false,
                Err(std::sync::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let table = &mut *self.table();
        for publisher in std::mem::take(&mut table.gaps) {
            let until = table.publishers.get(&publisher).and_then(|one| one.gap.as_ref()?.until);
            self.give_up(table, publisher);
            if let Some(numbered) = table.publishers.get_mut(&publisher) {
                numbered.until = until.or(numbered.until);
            }
        }
        let missing = |(publisher, numbered): (&u64, &Numbered)| {
            let until = numbered.until?;
            u64::try_from(beyond(until, self.next(table, *publisher))).ok()
        };
        table.missing = table.publishers.iter().filter_map(missing).sum();
        true
    }

    fn missing(&self) -> u64 {
        self.table().missing
    }
}
