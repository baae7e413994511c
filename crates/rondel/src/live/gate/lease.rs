//! The lease of a monitor with gates: its heartbeats, by which a guard knows that it decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rondel_runtime::{Clock, Ticks};
use serde_json::Value;

use crate::live::standby::election::Role;

/// The lease of a monitor, which its heartbeats extend.
pub struct Lease {
    clock: Arc<dyn Clock>,
    /// Time without a heartbeat after which the monitor counts as gone, in nanoseconds.
    after: Ticks,
    state: Mutex<State>,
}

struct State {
    /// Time of the last heartbeat, or of the start.
    last: Ticks,
    /// Whether the monitor has announced its end.
    has_ended: bool,
}

impl Lease {
    /// A lease that begins now, so that a monitor that starts at the same time is not taken for gone.
    pub fn new(clock: Arc<dyn Clock>, after: Ticks) -> Lease {
        let state = Mutex::new(State { last: clock.ticks(), has_ended: false });
        Lease { clock, after, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a heartbeat. One of a monitor that does not move extends nothing, and the last one ends the lease. Of a group,
    /// only those of the active member count, as the others pass nothing on; its last one ends nothing, since another member
    /// takes over.
    pub fn beat(&self, payload: &[u8]) {
        let Ok(beat) = serde_json::from_slice::<Value>(payload) else { return };
        let is = |member: &str| beat.get(member).and_then(Value::as_bool);
        let role = beat.get("standby").and_then(|standby| standby.get("state")).and_then(Value::as_str);
        if role.is_some_and(|role| role != Role::Active.as_str() || is("ends") == Some(true)) {
            return;
        }
        let now = self.clock.ticks();
        let mut state = self.state();
        match (is("responsive"), is("ends")) {
            (_, Some(true)) => state.has_ended = true,
            (Some(true), Some(false)) => *state = State { last: now, has_ended: false },
            _ => {}
        }
    }

    /// Whether the monitor is gone.
    pub fn is_gone(&self) -> bool {
        let now = self.clock.ticks();
        let state = self.state();
        state.has_ended || now.saturating_sub(state.last) >= self.after
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::Timestamp;
    use rondel_runtime::ManualClock;

    use super::*;

    #[test]
    fn heartbeats_extend_the_lease() {
        let clock = Arc::new(ManualClock::default());
        let lease = Lease::new(Arc::clone(&clock) as Arc<dyn Clock>, 100);
        let at = |nanos: i64| clock.set(Timestamp::from_nanos(nanos));
        at(99);
        assert!(!lease.is_gone());
        at(100);
        assert!(lease.is_gone(), "none has come");
        lease.beat(br#"{"heartbeat":0,"responsive":true,"ends":false}"#);
        at(199);
        assert!(!lease.is_gone());
        // Neither extends it: the monitor does not move, and this is no heartbeat.
        lease.beat(br#"{"heartbeat":1,"responsive":false,"ends":false}"#);
        lease.beat(b"1");
        lease.beat(b"no JSON");
        at(200);
        assert!(lease.is_gone());
        lease.beat(br#"{"heartbeat":2,"responsive":true,"ends":false}"#);
        assert!(!lease.is_gone());
        lease.beat(br#"{"heartbeat":3,"responsive":true,"ends":true}"#);
        assert!(lease.is_gone(), "it has ended");
        lease.beat(br#"{"heartbeat":0,"responsive":true,"ends":false}"#);
        assert!(!lease.is_gone(), "it is there again");
    }

    #[test]
    fn active_member_of_a_group_extends_the_lease() {
        let clock = Arc::new(ManualClock::default());
        let lease = Lease::new(Arc::clone(&clock) as Arc<dyn Clock>, 100);
        let beat = |at: i64, role: &str, ends: bool| {
            clock.set(Timestamp::from_nanos(at));
            let text = format!(r#"{{"responsive":true,"ends":{ends},"standby":{{"state":"{role}"}}}}"#);
            lease.beat(text.as_bytes());
            lease.is_gone()
        };
        assert!(!beat(50, "active", false));
        for (at, role, ends) in [(60, "standby", false), (70, "standby", true), (80, "active", true)] {
            assert!(!beat(at, role, ends), "a member of the group goes on");
        }
        assert!(beat(150, "standby", false), "none passes messages on");
        assert!(!beat(160, "active", false), "one has taken over");
    }
}
