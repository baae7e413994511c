//! Report of topics and fields still missing some time after the start.

use crate::session::Shared;
use crate::time::clock::Ticks;

/// Reports missing inputs once after some time.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Watch {
    /// The time after the start, in nanoseconds.
    after: i64,
    /// When that is, once the session has been polled for the first time.
    due: Option<Ticks>,
    /// Length of the pauses of the session, in nanoseconds.
    held: i64,
}

impl Watch {
    pub(in crate::session) fn new(after: i64) -> Watch {
        Watch { after, due: None, held: 0 }
    }

    /// The reading of the clock at which it reports.
    #[inline]
    pub(in crate::session) fn due(&self) -> Option<Ticks> {
        self.due
    }

    /// Reports what is missing if it is time to, and returns when it will be; none if it has nothing more to do.
    pub(in crate::session) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        let now = shared.clock.ticks();
        let held = shared.heartbeat.held;
        let due = self.due.get_or_insert(now.saturating_add(self.after));
        // Messages that waited during a pause come first.
        *due = due.saturating_add(held - std::mem::replace(&mut self.held, held));
        let due = *due;
        if shared.missing.has_come() {
            return None;
        }
        if now < due {
            return Some(due);
        }
        let notices = shared.missing.notices(&shared.needed, self.after);
        notices.into_iter().for_each(|notice| shared.notice(notice));
        None
    }
}
