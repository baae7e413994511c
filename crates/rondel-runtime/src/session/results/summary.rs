//! The session in numbers.

use std::sync::Arc;

use rondel_event::Timestamp;

use crate::explanation::Signal;
use crate::session::{Route, Session, Shared};
use crate::statistics::{Present, PropertyStatistics, Summary, WorkerStatistics};

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

    /// Evaluates the messages that [workers](crate::SessionPlan::set_workers) have or that wait for them, as the next
    /// [`flush`](Session::flush) would. Without workers, it does nothing.
    #[inline]
    pub fn collect(&mut self) {
        if let Route::Direct(direct) = &mut self.route {
            direct.drain(&mut self.shared);
        }
    }

    /// Whether messages may wait for [workers](crate::SessionPlan::set_workers) until the next [`flush`](Session::flush).
    #[inline]
    pub fn has_workers(&self) -> bool {
        matches!(&self.route, Route::Direct(direct) if direct.has_workers())
    }

    /// The statistics of the workers; `None` if the thread that pushes messages evaluates them.
    pub fn workers(&self) -> Option<WorkerStatistics> {
        match &self.route {
            Route::Direct(direct) => direct.workers(self.plan.workers, &self.shared),
            Route::Aligned(_) | Route::Synchronized(_) => None,
        }
    }

    /// The panic that has ended a worker of a live session. The state of the session is lost then: it evaluates nothing
    /// from there on, and a [snapshot](Session::snapshot) must not be kept.
    #[inline]
    pub fn failure(&self) -> Option<&str> {
        match &self.route {
            Route::Direct(direct) => direct.failure(),
            Route::Aligned(_) | Route::Synchronized(_) => None,
        }
    }

    /// Continues the statistics of the workers of another session.
    pub fn continue_workers(&mut self, before: &mut Session) {
        self.shared.workers = std::mem::take(&mut before.shared.workers);
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
        // One copy serves all parts of the summary.
        let whole = self.route.whole();
        let whole = whole.as_deref();
        match (&self.route, whole) {
            (Route::Direct(direct), Some(whole)) => direct.summarize(&mut summary, whole, &self.shared),
            (Route::Direct(_), None) => {}
            (Route::Aligned(aligned), _) => aligned.summarize(&mut summary),
            (Route::Synchronized(synchronized), _) => synchronized.summarize(&mut summary),
        }
        self.add_uncertain(&mut summary);
        summary.omissions.extend(self.remarks());
        summary.add_omissions(&self.omissions_of(whole), self.withholds());
        summary
    }
}
