//! State that a session takes over from the one before it, beside its snapshot.

use super::Direct;
use crate::time::clock::Ticks;

impl Direct {
    /// Continues the clock of another session that has received the same messages. It begins at the ticks `now`, if any, if
    /// that session has received none, or not the latest.
    pub(in crate::session) fn follow_clock(&mut self, before: &Direct, now: Option<Ticks>) {
        self.timing.is_by_arrival |= before.timing.is_by_arrival;
        let (Some(clock), Some(known)) = (&mut self.clock, before.clock) else { return };
        *clock = known;
        if let Some(now) = now
            && clock.at(now).is_none_or(|shown| shown < self.time)
        {
            clock.set(self.time, now);
        }
    }

    /// Takes over the clock, the limits of times and missed time of another session, and, if the programs are equal, the
    /// histories of explanations. `origins` has for each topic its position there.
    pub(in crate::session) fn inherit(
        &mut self,
        before: &mut Direct,
        origins: &[Option<usize>],
        is_same: bool,
    ) {
        if let (Some(clock), Some(known)) = (&mut self.clock, before.clock) {
            *clock = known;
        }
        self.timing.is_by_arrival |= before.timing.is_by_arrival;
        if self.timing.limits.are_active() && before.timing.limits.are_active() {
            self.timing.limits = before.timing.limits.clone();
        }
        if let Some(mut absence) = before.gaps.absence.take() {
            absence.move_to(origins);
            self.gaps.absence = Some(absence);
        }
        self.time = before.time;
        self.evaluated.latest = before.evaluated.latest;
        self.backwards = before.backwards;
        if is_same {
            self.evaluated.explainer = before.evaluated.explainer.take();
        }
    }
}
