//! Messages of the group that a member ignores, as they are forged or damaged.

use rondel_runtime::text::counted;

use super::Worker;
use crate::live::standby::election::{Nanos, Sign};
use crate::live::standby::state::{Ignored, Reason};
use crate::live::standby::surroundings::Surroundings;

/// The least time between two warnings, in nanoseconds.
const INTERVAL: Nanos = 60_000_000_000;

/// The ignored messages that a warning has named.
#[derive(Debug, Default)]
pub(super) struct Warned {
    ignored: Ignored,
    /// Time of the last warning.
    at: Option<Nanos>,
}

impl<S: Surroundings> Worker<S> {
    /// Counts a sign that is ignored, since its epoch is too far from all others, and warns of the first one.
    pub(super) fn ignore_sign(&mut self, sign: &Sign) {
        let Sign { from, epoch, .. } = sign;
        if self.shared.handle.ignored().of(Reason::Epoch) == 0 {
            let latest = self.election.latest_epoch();
            self.outside.warn(&format!(
                "ignores a sign of life of member {from} with epoch {epoch}, too far from epoch {latest}, the latest one: it is \
                 forged or damaged"
            ));
        }
        self.shared.handle.change(|state| state.ignored.count(Reason::Epoch));
    }

    /// Warns of messages that were ignored when they were received.
    pub(super) fn look_at_ignored(&mut self) {
        let ignored = self.shared.handle.ignored();
        if ignored == self.warned.ignored {
            return;
        }
        let now = self.now();
        if self.warned.at.is_some_and(|at| now - at < INTERVAL) {
            return;
        }
        let before = std::mem::replace(&mut self.warned.ignored, ignored);
        let further = |reason: Reason| ignored.of(reason) - before.of(reason);
        let mut is_said = false;
        if further(Reason::Lease) > 0 {
            let signs = counted(further(Reason::Lease), "sign of life", "signs of life");
            self.outside.warn(&format!(
                "ignores {signs} with a lease below 15 ms or above 60 s, which no member has: forged or damaged"
            ));
            is_said = true;
        }
        if further(Reason::Unreadable) > 0 {
            let messages = counted(further(Reason::Unreadable), "message", "messages");
            self.outside.warn(&format!(
                "ignores {messages} on the topic of the group that cannot be read: forged, damaged, or of another release"
            ));
            is_said = true;
        }
        if is_said {
            self.warned.at = Some(now);
        }
    }
}
