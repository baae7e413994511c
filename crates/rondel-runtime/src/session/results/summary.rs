//! The session in numbers.

use std::sync::Arc;

use rondel_event::Timestamp;

use crate::explanation::Signal;
use crate::session::{Route, Session, Shared};
use crate::statistics::{Present, PropertyStatistics, Summary};

impl Session {
    /// Returns the values of all fields that properties read, from the beginning on and at a coarser resolution where
    /// they are many, and the number of values of further fields and instances; nothing without
    /// [`Options::courses`](crate::Options::courses).
    pub fn courses(&self) -> (Vec<Signal>, u64) {
        match &self.route {
            Route::Direct(direct) => direct.courses(),
            Route::Aligned(aligned) => aligned.courses(),
            Route::Synchronized(_) => Default::default(),
        }
    }

    /// The earliest time of a message that was evaluated, if there was one.
    pub fn begin(&self) -> Option<Timestamp> {
        self.shared.span.map(|(begin, _)| begin)
    }

    /// The number of checked events, with those before a snapshot.
    pub fn events(&self) -> u64 {
        self.shared.earlier.checked + self.shared.counts.checked
    }

    /// The session in numbers, from its beginning: of all laps.
    pub fn summary(&self) -> Summary {
        let current = self.lap_summary();
        let Some(before) = &self.before else { return current };
        let mut all = Summary::clone(before);
        all.continue_with(current);
        all
    }

    /// The state that properties hold at present.
    pub fn present(&self) -> Present {
        let violated = self.shared.emitter.statistics.iter().map(PropertyStatistics::violated_now).collect();
        let mut present = Present { violated, ..Present::default() };
        match &self.route {
            Route::Direct(direct) => direct.add_present(&mut present),
            Route::Aligned(aligned) => aligned.add_present(&mut present),
            Route::Synchronized(_) => {}
        }
        present
    }

    /// The current lap in numbers.
    pub(in crate::session) fn lap_summary(&self) -> Summary {
        let Shared { emitter, counts, topics, accounts, missing, needed, .. } = &self.shared;
        let mut topics = topics.clone();
        let events = topics.split_off(self.events.declared());
        for (of, events) in self.events.of().iter().zip(&events) {
            topics[of.index()].add(events);
        }
        let mut accounts = accounts.all();
        accounts.truncate(self.events.declared());
        let mut summary = Summary {
            counts: *counts,
            accounts,
            properties: emitter.statistics.clone(),
            topics,
            missing: missing.clone(),
            needed: Arc::clone(needed),
            span: self.shared.span,
            reached: self.shared.span.map(|(_, last)| last),
            pauses: self.shared.heartbeat.pauses.clone(),
            seam: self.shared.resumption.seam(),
            ..Summary::default()
        };
        match &self.route {
            Route::Direct(direct) => direct.summarize(&mut summary, &self.shared),
            Route::Aligned(aligned) => aligned.summarize(&mut summary),
            Route::Synchronized(synchronized) => synchronized.summarize(&mut summary),
        }
        self.add_uncertain(&mut summary);
        summary.omissions.extend(self.remarks());
        summary.add_omissions(&self.omissions(), self.withholds());
        summary
    }
}
