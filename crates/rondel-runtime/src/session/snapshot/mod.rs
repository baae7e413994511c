//! Snapshots of a session.

pub(super) mod edited;
mod joining;
mod parts;
pub(crate) mod saved;
pub(super) mod succession;

use rondel_event::{Origin, TopicId};

use super::{Edited, Route, Session, Shared};
use saved::Saved;

impl Session {
    /// Outcome of the edit for the properties, if the session resumed from the snapshot of an edited specification.
    pub fn edited(&self) -> Option<&Edited> {
        self.edited.as_ref()
    }

    /// The state of the session as bytes, from which [`SessionPlan::restore`](crate::SessionPlan::restore) continues.
    /// Reports and notices that were not taken are not included. Restoring requires the same `note`, unless it is empty.
    pub fn snapshot(&mut self, note: &str) -> Vec<u8> {
        self.saved(note, None).seal()
    }

    /// The state of the session; with `cuts` one of the monitor for each part, if messages are evaluated as they come.
    fn saved(&mut self, note: &str, cuts: Option<&[u64]>) -> Saved {
        self.flush();
        self.settle_laps_now();
        let mut saved = match &mut self.route {
            Route::Direct(direct) => {
                direct.settle(&mut self.shared);
                direct.return_now();
                direct.saved(cuts)
            }
            Route::Aligned(aligned) => aligned.saved(&*self.shared.clock),
            Route::Synchronized(synchronized) => synchronized.saved(&*self.shared.clock),
        };
        saved.known.muting = self.shared.emitter.reports.saved_muting();
        let Shared { emitter, missing, .. } = &self.shared;
        saved.known.explain = self.explains();
        saved.known.note = note.to_owned();
        saved.known.program = self.plan.fingerprint;
        saved.known.topics = self.shared.topics.iter().map(|topic| topic.name.clone()).collect();
        saved.known.properties = self.plan.properties.iter().map(|property| property.name.clone()).collect();
        saved.known.events = self.events();
        let mut statistics = emitter.statistics.clone();
        match &self.route {
            Route::Direct(direct) => direct.see_robustness(&mut statistics),
            Route::Aligned(aligned) => aligned.see_robustness(&mut statistics),
            Route::Synchronized(_) => {}
        }
        saved.known.statistics = statistics.iter().map(|statistics| statistics.saved()).collect();
        saved.known.lap = self.shared.lap;
        saved.known.latest = self.shared.laps.saved();
        // Those of earlier laps are kept with them.
        let mut omissions = self.before.as_ref().map(|laps| laps.not_evaluated.clone()).unwrap_or_default();
        omissions.merge(&self.omissions());
        saved.known.omissions = omissions.saved(&saved.known.topics);
        saved.known.missing = missing.saved();
        saved.known.numbers = self.shared.accounts.saved();
        saved.known.attachment = self.shared.resumption.attachment().to_vec();
        self.shared.save_end(&mut saved.known);
        saved.known.recorded = self.shared.recorded.clone();
        saved
    }

    /// Sets bytes of the caller that are part of snapshots from here on.
    pub fn attach(&mut self, bytes: Vec<u8>) {
        self.shared.resumption.attach(bytes);
    }

    /// The bytes that were [attached](Session::attach), also to the snapshot that the session continues from.
    pub fn attachment(&self) -> &[u8] {
        self.shared.resumption.attachment()
    }

    /// Sequence number expected next from each publisher of a topic, where publishers number their messages: a network
    /// that can recover messages requests them from there after a restart. With
    /// [`Options::exactly`](crate::Options::exactly) it is known from the snapshot.
    pub fn expected(&self, topic: TopicId) -> Vec<Origin> {
        self.shared.accounts.expected(topic)
    }
}
