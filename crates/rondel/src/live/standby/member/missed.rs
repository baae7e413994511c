//! Messages that a member may have missed since it began: it stood still, or a connection was lost. A standby is then late,
//! and takes the state of the active member as one that starts late does.

use rondel_event::Timestamp;
use rondel_net::adapter::now;

use super::Worker;
use crate::live::standby::election::{Nanos, Role};
use crate::live::standby::surroundings::Surroundings;
use crate::output::time_text::TimeText;

/// The least time for which a member claims nothing after an outage or a standstill: its network may have to connect again
/// before it delivers the signs of others.
const RETURNING: Nanos = 2_000_000_000;
/// The least pause after the beginning of a transfer. It doubles with each further one, up to the longest, until none was
/// needed for as long as the pause.
const LEAST: Nanos = 10_000_000_000;
/// The longest pause.
const LONGEST: Nanos = 600_000_000_000;
/// Time by which the first message of the active member may be later than that of this one, with the same messages.
const SAME: Nanos = 1_000_000_000;

/// Messages that a member may have missed since it began.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// The last cause, and the time of day until which it lasted; `None` if a state was taken since, or nothing was missed.
    last: Option<(&'static str, i64)>,
    /// Whether no transfer has begun since.
    is_new: bool,
    /// Number of outages so far.
    outages: u64,
    /// Time of the next transfer, at the earliest, and the pause before it.
    next: Nanos,
    pause: Nanos,
}

impl Missed {
    fn note(&mut self, why: &'static str) -> i64 {
        let until = now().as_nanos();
        (self.last, self.is_new) = (Some((why, until)), true);
        until
    }

    /// Whether messages may be missing.
    pub(super) fn is_any(&self) -> bool {
        self.last.is_some()
    }

    /// Time of day until which messages may be missing.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.last.map(|(_, until)| Timestamp::from_nanos(until))
    }

    /// Notes that a transfer begins: its state has everything missed so far.
    pub(super) fn begin_transfer(&mut self) {
        self.is_new = false;
    }

    /// Notes that the state was taken. Returns whether nothing is missing any more.
    pub(super) fn end_transfer(&mut self) -> bool {
        if !self.is_new {
            self.last = None;
        }
        self.last.is_none()
    }

    /// Sets the time of the next transfer.
    fn defer(&mut self, now: Nanos) {
        let is_quiet = now.saturating_sub(self.next) >= self.pause;
        self.pause = if is_quiet { LEAST } else { self.pause.saturating_mul(2).min(LONGEST) };
        self.next = now.saturating_add(self.pause);
    }
}

impl<S: Surroundings> Worker<S> {
    /// Notes that this process did not run for half a second or more.
    pub(in crate::live::standby) fn note_standstill(&mut self) {
        self.about.stood_still = Some(self.missed.note("this process stood still"));
        self.rest();
    }

    /// Claims nothing for a while: the signs of an active member may not arrive yet.
    pub(super) fn rest(&mut self) {
        self.election.rest_until(self.now() + RETURNING.max(self.lease));
    }

    /// Notes the outages that have ended.
    pub(super) fn note_outages(&mut self) {
        let outages = self.outside.outages();
        if std::mem::replace(&mut self.missed.outages, outages) != outages {
            self.missed.note("a connection was lost");
            self.rest();
        }
    }

    /// Lets a standby that may have missed messages take the state of the active member. An active member goes on with its
    /// own, and takes one once it stands by.
    pub(super) fn look_at_missed(&mut self) {
        let Some((why, until)) = self.missed.last else { return };
        let is_able = self.election.role() == Role::Standby && self.shared.takes_none.is_none();
        if !is_able || self.transfers.is_taking() {
            return;
        }
        let Some(id) = self.election.active() else { return };
        let Some(about) = self.others.get(id) else { return };
        let Some(first) = about.first else { return };
        if about.specification != self.about.specification {
            return;
        }
        if first >= until {
            // The active member has received none of them.
            self.missed.last = None;
            return self.election.set_late(false);
        }
        let began_later = self.about.first.is_some_and(|own| first.saturating_sub(own) >= SAME);
        if began_later && self.election.is_active_late() {
            // It lacks more than this member.
            return;
        }
        let now = self.now();
        let left = self.missed.next.saturating_sub(now);
        if !self.lacks_earlier() {
            self.election.set_late(true);
            self.shared.handle.change(|state| {
                state.is_late = true;
                state.missed += 1;
            });
            // Others rank this member by its next sign.
            self.next_sign = Nanos::MIN;
            let until = TimeText::default().text(Timestamp::from_nanos(until));
            let later = match left {
                1.. => {
                    format!(", which it requests in {} s", left.saturating_add(999_999_999) / 1_000_000_000)
                }
                _ => String::new(),
            };
            self.outside.warn(&format!(
                "{why} until {until}, so that messages may be missing: it is late until it has the state of member {id}{later}"
            ));
        }
        if left <= 0 && self.election.lives(now, id) {
            self.missed.defer(now);
            self.begin_attempts(id, about);
        }
    }
}
