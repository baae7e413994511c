//! The exchange of the sinks of a run when its specification is reloaded.

use std::sync::Arc;

use rondel_net::adapter::Publisher;
use rondel_runtime::{Emit, PropertyInfo, Session};

use super::actions::ActionSettings;
use super::driven::DestinationFeed;
use super::{Sink, SinkPublisher, Sinks, publishers};
use crate::output::VerdictWriter;

impl Sinks {
    /// Replaces the sinks of each property. `kept` has for each property its position before, if it keeps its state: its
    /// present verdict then stays. Returns the publishers that are not used any more.
    pub fn exchange(
        &mut self,
        sinks: Vec<Vec<Sink>>,
        writer: VerdictWriter,
        properties: &[PropertyInfo],
        kept: &[Option<u32>],
    ) -> Vec<Arc<dyn Publisher>> {
        let before = std::mem::replace(&mut self.sinks, sinks);
        self.writer = writer;
        let known = std::mem::take(&mut self.publishers);
        for publisher in self.sinks.iter().flatten().filter_map(Sink::publisher) {
            if self.publishers.iter().any(|entry| Arc::ptr_eq(&entry.publisher, publisher)) {
                continue;
            }
            let entry = known.iter().find(|entry| Arc::ptr_eq(&entry.publisher, publisher));
            let present = entry.and_then(|entry| entry.present.clone());
            if let Some(present) = &present {
                present.rearrange(&shown(&self.sinks, publisher, kept));
            }
            self.publishers.push(SinkPublisher { publisher: Arc::clone(publisher), present });
        }
        let states = std::mem::take(&mut self.diagnostics);
        self.diagnose(properties);
        for (publisher, state) in states {
            let next = self.diagnostics.iter_mut().find(|(own, _)| Arc::ptr_eq(own, &publisher));
            if let Some((_, next)) = next {
                next.continue_from(state, kept);
            }
        }
        let is_used = |publisher: &Arc<dyn Publisher>| {
            self.publishers.iter().any(|entry| Arc::ptr_eq(&entry.publisher, publisher))
        };
        let mut closed: Vec<Arc<dyn Publisher>> = Vec::new();
        for publisher in publishers(before.into_iter().flatten()) {
            if !is_used(&publisher) && !closed.iter().any(|known| Arc::ptr_eq(known, &publisher)) {
                closed.push(publisher);
            }
        }
        closed
    }

    /// Ends the run of the destinations beside networks, if there are any, and begins the next. `keeps` returns whether a
    /// property keeps its state.
    pub fn exchange_driven(
        &mut self,
        session: &Session,
        keeps: impl Fn(&str) -> bool,
        begin: impl FnOnce() -> Option<DestinationFeed>,
    ) {
        let Some(mut before) = self.driven.take() else { return };
        let summary = session.summary();
        before.account(|| &summary, true);
        let silenced = before.take_silenced();
        before.end("reloaded");
        self.driven = begin();
        if let Some(next) = &mut self.driven {
            next.continue_from(&summary);
            next.continue_silenced(silenced, keeps);
        }
    }

    /// Gives actions the properties that cause them from here on. `kept` has for each property its position before, if it
    /// keeps its state.
    pub fn exchange_actions(
        &mut self,
        settings: &[ActionSettings],
        properties: &[PropertyInfo],
        emit: Emit,
        kept: &[Option<u32>],
    ) {
        if let Some(actions) = &mut self.actions {
            actions.exchange(settings, properties, emit, kept);
        }
    }
}

/// The positions before of the properties that keep their states and are published here.
fn shown(sinks: &[Vec<Sink>], publisher: &Arc<dyn Publisher>, kept: &[Option<u32>]) -> Vec<Option<u32>> {
    let is_here = |sink: &Sink| sink.publisher().is_some_and(|own| Arc::ptr_eq(own, publisher));
    sinks.iter().zip(kept).map(|(sinks, kept)| kept.filter(|_| sinks.iter().any(is_here))).collect()
}
