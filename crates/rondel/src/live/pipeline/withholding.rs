//! A pipeline of a member of a group, whose verdicts and gates are withheld while it is a standby.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};

use super::{Pipeline, State, Unresponsive};

impl Pipeline {
    /// Evaluates all messages, publishes their verdicts if the member may, and publishes nothing more. Returns whether the
    /// evaluating thread let that happen within `limit`.
    pub fn stop_publishing(&self, limit: Duration) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        self.flush(&mut state);
        state.sinks.stop_publishing();
        state.stop_gates();
        if self.batches() {
            state.release();
        }
        true
    }

    /// Begins to publish in an epoch: gates, and first the withheld verdicts, by calls of [`Pipeline::publish_withheld`].
    /// Returns their number; `None` if the evaluating thread holds the lock for longer than `limit`.
    pub fn begin_publishing(&self, epoch: u64, limit: Duration) -> Option<usize> {
        let mut state = self.state_within(limit)?;
        if state.gates.is_some() {
            // Gates take over in the state after all messages so far.
            self.flush(&mut state);
            state.take_over_gates(epoch);
        }
        Some(state.sinks.begin_publishing(epoch))
    }

    /// Publishes up to `most` withheld verdicts. Returns whether there may be more; `None` if the evaluating thread holds the
    /// lock for longer than `limit`.
    pub fn publish_withheld(&self, most: usize, limit: Duration) -> Option<bool> {
        let mut state = self.state_within(limit)?;
        let State { sinks, copies, .. } = &mut *state;
        let copies = copies.as_deref().filter(|copies| copies.wants_verdicts());
        // Recordings and metrics have seen them already.
        let has_more = sinks.publish_withheld(most, |report| {
            if let Some(copies) = copies {
                copies.verdict(report);
            }
        });
        if self.batches() {
            state.release();
        }
        Some(has_more)
    }

    /// Returns the time of day of the first message.
    ///
    /// # Errors
    /// The evaluating thread holds the lock for longer than `limit`.
    pub fn first_received(&self, limit: Duration) -> Result<Option<Timestamp>, Unresponsive> {
        self.state_within(limit).map(|state| state.traffic.first).ok_or(Unresponsive)
    }

    /// Notes that a network of its topics is connected again after an outage.
    pub fn note_outage(&self) {
        self.outages.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of outages of the networks of its topics that have ended.
    pub fn outages(&self) -> u64 {
        self.outages.load(Ordering::Relaxed)
    }

    /// Marks messages of these subscriptions between two times of day as not received, since this member began later than
    /// the active one: verdicts that depend on them are inconclusive. Those withheld so far may depend on them, so that they
    /// are inconclusive, too.
    /// Nothing happens once the state of another member [was joined](Pipeline::join_state). Returns false if the evaluating
    /// thread holds the lock for longer than `limit`.
    pub fn began_late(&self, slots: &[TopicId], from: Timestamp, until: Timestamp, limit: Duration) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        let state = &mut *state;
        let topics: Vec<TopicId> = slots.iter().filter_map(|slot| state.slots.topic(*slot)).collect();
        if state.has_joined || topics.is_empty() {
            return true;
        }
        self.flush(state);
        state.sinks.set_withheld_inconclusive();
        state.session.not_received(&topics, (from, Some(until)), "before the start of this standby");
        state.emit();
        true
    }

    /// Lets the last verdicts of a member that ends without earlier messages be inconclusive where they depend on them.
    /// `unmarked` are the times of day between which these came, unless they [were marked](Pipeline::began_late).
    pub fn end_late(&self, slots: &[TopicId], unmarked: Option<(Timestamp, Timestamp)>, limit: Duration) {
        if let Some((from, until)) = unmarked
            && !self.began_late(slots, from, until, limit)
        {
            return;
        }
        let Some(mut state) = self.state_within(limit) else { return };
        let state = &mut *state;
        if !state.has_joined {
            self.flush(state);
            state.session.withhold_earlier();
            state.emit();
        }
    }
}

impl State {
    /// Withholds the reports of the session. Recordings and metrics are those of each member.
    #[cold]
    pub(super) fn withhold(&mut self) {
        for kept in self.session.kept_reports() {
            if let Some(recorder) = &mut self.recorder {
                recorder.take(&kept.report());
            }
            if let Some(meter) = &mut self.meter {
                meter.see(&kept.report());
            }
            self.sinks.withhold(kept, false);
        }
        for kept in self.session.kept_unmuted() {
            self.sinks.withhold(kept, true);
        }
        self.send_others();
    }
}
