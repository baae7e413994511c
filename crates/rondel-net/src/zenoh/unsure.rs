//! Detects that a session has just lost its last connection, so that it is unknown yet whether messages are missing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time without any connection at which the loss is an outage, for which verdicts are withheld.
pub(super) const LONG: Duration = Duration::from_secs(1);
/// Maximum delay until an outage is noticed.
const NOTICED: Duration = Duration::from_millis(500);
/// Time in which the first messages after a short break arrive, whose numbers show the missing ones.
const FIRST: Duration = Duration::from_secs(1);

/// The last break of all connections of a session.
#[derive(Debug, Default)]
pub(super) struct LastBreak(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    connected: usize,
    /// Times at which the last connection was lost, and at which there was one again.
    last: Option<(Instant, Option<Instant>)>,
}

impl LastBreak {
    /// Records that a connection was opened or lost.
    pub(super) fn connection(&self, is_open: bool, now: Instant) {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut state.last, is_open) {
            (Some((_, until @ None)), true) => *until = Some(now),
            (last, false) if state.connected == 1 => *last = Some((now, None)),
            _ => {}
        }
        state.connected = if is_open { state.connected + 1 } else { state.connected.saturating_sub(1) };
    }

    /// Whether the missed messages are unknown yet, since the last connection was just lost, or just restored after a
    /// short break.
    pub(super) fn is_unsure(&self, now: Instant) -> bool {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).last {
            None => false,
            Some((from, None)) => now.saturating_duration_since(from) < LONG + NOTICED,
            Some((from, Some(until))) => {
                until.saturating_duration_since(from) < LONG + NOTICED
                    && now.saturating_duration_since(until) < FIRST
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_is_uncertain_until_it_is_an_outage_or_messages_arrive() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let last = LastBreak::default();
        assert!(!last.is_unsure(at(0)));
        last.connection(true, at(0));
        last.connection(true, at(1));
        last.connection(false, at(2_000));
        assert!(!last.is_unsure(at(2_000)), "there is another connection");
        last.connection(false, at(3_000));
        assert!(last.is_unsure(at(3_000)) && last.is_unsure(at(4_400)));
        assert!(!last.is_unsure(at(4_500)), "it is an outage, and known");
        last.connection(true, at(9_000));
        assert!(!last.is_unsure(at(9_000)));
        last.connection(false, at(10_000));
        last.connection(true, at(10_300));
        assert!(last.is_unsure(at(10_300)) && last.is_unsure(at(11_200)) && !last.is_unsure(at(11_300)));
    }
}
