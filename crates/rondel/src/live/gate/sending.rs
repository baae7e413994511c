//! Publishing of a gate: messages that pass, and substitutes.

use std::time::Duration;

use rondel_net::adapter::PublishError;
use rondel_runtime::Clock;

use super::permission::{Permission, Scope};
use super::{Gate, Occasion};
use crate::deployment::Substitute;
use crate::sinks::queue::FIRST;
use crate::warn;

impl Gate {
    /// Publishes the substitute.
    #[cold]
    pub(super) fn replace(&mut self, occasion: Occasion, permission: &mut Permission, clock: &dyn Clock) {
        if permission.scope() == Scope::Nothing {
            self.owes = false;
            if occasion == Occasion::Message {
                self.withhold(permission);
            }
            return;
        }
        let mut substitute = std::mem::replace(&mut self.substitute, Substitute::Drop);
        let last = std::mem::take(&mut self.last);
        let payload = match &mut substitute {
            Substitute::Message(message) => Some(message.at(clock.now())),
            Substitute::Hold if occasion != Occasion::End && !last.is_empty() => Some(&last[..]),
            Substitute::Hold | Substitute::Drop => None,
        };
        match payload {
            Some(payload) if self.send(payload, occasion) => {
                self.counts.substituted += 1;
                self.settle();
            }
            Some(_) => {}
            None => {
                self.counts.dropped += u64::from(occasion == Occasion::Message);
                self.owes = false;
            }
        }
        (self.substitute, self.last) = (substitute, last);
    }

    /// Notes that a substitute was accepted. Without a subscriber, as on a network that is away, it reaches no consumer, and
    /// the gate still owes it.
    fn settle(&mut self) {
        if self.owes && !self.is_matched() {
            self.refusal.get_or_insert_with(|| "no subscriber is known".to_owned());
            return;
        }
        self.counts.late += u64::from(self.refusal.take().is_some());
        self.owes = false;
    }

    /// Publishes a message without waiting long for a consumer. Returns whether it was accepted.
    pub(super) fn send(&mut self, payload: &[u8], occasion: Occasion) -> bool {
        let is_again = occasion == Occasion::Again;
        let limit = if self.is_slow || is_again { Duration::ZERO } else { FIRST };
        let Some(publisher) = &self.publisher else { return false };
        match publisher.offer(payload, limit) {
            Ok(()) => {
                self.is_slow = false;
                true
            }
            Err(error) => {
                self.is_slow = matches!(error, PublishError::Slow);
                // One that is tried again was counted before.
                if !is_again {
                    self.refused(&error);
                }
                false
            }
        }
    }

    /// Counts a message that was not published, and warns of the first.
    #[cold]
    fn refused(&mut self, error: &PublishError) {
        self.counts.unpublished += 1;
        if self.owes && self.refusal.is_none() {
            self.refusal = Some(error.to_string());
        }
        if self.counts.unpublished == 1 {
            warn(&format!(
                "the gate to {} cannot publish a message: {error}; further ones are only counted",
                self.to
            ));
        }
    }
}
