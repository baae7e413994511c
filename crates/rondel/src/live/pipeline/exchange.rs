//! The exchange of the specification of a run under its lock: the session, and everything that has numbers of topics or
//! properties.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rondel_decode::MessageType;
use rondel_engine::RestartReason;
use rondel_event::TopicId;
use rondel_net::adapter::Publisher;
use rondel_runtime::{Emit, Notice, SessionPlan, Succession, Summary, TopicNames};

use super::Pipeline;
use crate::live::reload::past::LastViolations;
use crate::output::VerdictWriter;
use crate::recorder::{Channel, Origin};
use crate::sinks::actions::ActionSettings;
use crate::sinks::driven::DestinationFeed;
use crate::sinks::own::Own;
use crate::sinks::present::Present;
use crate::sinks::{Sink, release};

/// The parts of a run that a reload exchanges.
pub struct Exchange<'e> {
    /// The plan of the session.
    pub plan: &'e SessionPlan,
    /// The subscription of each topic; others are removed.
    pub slots: Vec<TopicId>,
    /// The name of each topic, with its address, for messages.
    pub topics: Vec<String>,
    /// For each topic the position of the topic with its name before.
    pub named_topics: Vec<Option<usize>>,
    /// For each property the position of the property with its name before.
    pub named_properties: Vec<Option<usize>>,
    /// The sinks of the verdicts of each property.
    pub sinks: Vec<Vec<Sink>>,
    /// The publishers among them whose present verdicts can be queried.
    pub queried: Vec<Arc<dyn Publisher>>,
    /// The writer of verdicts on standard output.
    pub writer: VerdictWriter,
    /// The actions on verdicts: the same ones, with the properties that cause them.
    pub actions: &'e [ActionSettings],
    /// The verdicts that are emitted.
    pub emit: Emit,
    /// Messages that the run publishes on a topic that it reads, if there is such a topic.
    pub own: Option<Arc<Own>>,
    /// The places where the properties are defined.
    pub origin: Origin,
    /// Whether a sink may hold verdicts back until they are released.
    pub batching: bool,
}

/// The outcome of an exchange.
pub struct Exchanged {
    /// For each property its position before, if it keeps its state.
    pub kept: Vec<Option<u32>>,
    /// The properties that restart, with the reason.
    pub restarted: Vec<(String, RestartReason)>,
    /// Violations of the properties that do not keep their states.
    pub violated: Vec<LastViolations>,
    /// Publishers that are not used any more, to be flushed.
    pub closed: Vec<Arc<dyn Publisher>>,
    /// Messages and events of new topics that came before the exchange and were dropped.
    pub dropped: u64,
    /// Duration for which messages had to wait.
    pub lasted: Duration,
}

impl Pipeline {
    /// Adds a subscription whose topic a later exchange assigns, and returns its number.
    pub fn add_slot(&self) -> TopicId {
        self.state().slots.add()
    }

    /// Removes the subscriptions whose topics no exchange has assigned.
    pub fn abandon_slots(&self) {
        self.state().slots.abandon();
    }

    /// Frees the numbers of abandoned subscriptions from `first` on, once they are closed.
    pub fn remove_slots(&self, first: TopicId) {
        let state = &mut *self.state();
        state.slots.truncate(first);
        if let Some(recorder) = &mut state.recorder {
            recorder.remove_topics(first);
        }
    }

    /// Exchanges the specification. Every message is evaluated before or after it. `begin` begins a run of the
    /// destinations beside networks, if there are any.
    ///
    /// # Errors
    /// The reason why the session cannot be exchanged; the run then goes on as before.
    pub fn exchange(
        &self,
        exchange: Exchange<'_>,
        begin: impl FnOnce() -> Option<DestinationFeed>,
    ) -> Result<Exchanged, String> {
        let state = &mut *self.state();
        if state.ended || self.is_ending() {
            return Err("the run is ending".to_owned());
        }
        let began = Instant::now();
        self.place.saving();
        let origins: Vec<Option<TopicId>> =
            exchange.slots.iter().map(|slot| state.slots.topic(*slot)).collect();
        // Before the statistics are passed on.
        state.session.flush();
        let (summary, violated) = (state.session.summary(), state.session.present().violated);
        let succeeded = exchange.plan.succeed(&mut state.session, &origins);
        // Also after a refusal: all messages were evaluated.
        state.emit();
        let Succession { session, kept, restarted } = succeeded.map_err(|error| error.to_string())?;
        let violated = last_violations(&summary, &violated, &kept);
        state.session = session;
        state.topics = exchange.topics;
        let here = |topic: TopicId| {
            let at = origins.iter().position(|origin| *origin == Some(topic))?;
            Some(TopicId(at as u32))
        };
        let resolved = std::mem::take(&mut state.resolved).into_iter();
        state.resolved = resolved.filter_map(|(topic, of)| Some((here(topic)?, of))).collect();
        let further = std::mem::take(&mut state.further).into_iter();
        state.further = further.filter_map(|(topic, of)| Some((here(topic)?, of))).collect();
        if let Some(own) = exchange.own {
            state.sinks.remember(own);
        }
        let properties = exchange.plan.properties();
        let closed = state.sinks.exchange(exchange.sinks, exchange.writer, properties, &kept);
        for publisher in &exchange.queried {
            state.sinks.keep_present(publisher);
        }
        let keeps = |name: &str| {
            let mut kept = properties.iter().zip(&kept).filter(|(_, before)| before.is_some());
            kept.any(|(property, _)| property.name == name)
        };
        state.sinks.exchange_driven(&state.session, keeps, begin);
        state.sinks.exchange_actions(exchange.actions, properties, exchange.emit, &kept);
        if let Some(meter) = &mut state.meter {
            meter.rearrange(&exchange.named_topics, &exchange.named_properties);
        }
        if let Some(tap) = &state.tap {
            tap.forget();
        }
        if let Some(copies) = &state.copies {
            copies.forget();
        }
        if let Some(recorder) = &mut state.recorder {
            recorder.exchange(exchange.origin, &kept);
        }
        self.batching.store(exchange.batching, Ordering::Relaxed);
        self.reads_owner.store(state.session.reads_owner(), Ordering::Relaxed);
        let dropped = state.slots.assign(&exchange.slots);
        let received = state.traffic.received;
        state.receive_early();
        state.omit_early(&dropped);
        self.flush(state);
        self.stop_at_count(received, state);
        if self.batches() {
            state.release();
        }
        // Deadlines are those of the new session.
        state.armed = None;
        self.sooner.notify_all();
        let dropped: u64 = dropped.iter().map(|of| of.count).sum();
        Ok(Exchanged { kept, restarted, violated, closed, dropped, lasted: began.elapsed() })
    }

    /// Adds a subscription to the recorder of messages around violations, if there is one. `slot` is its number.
    pub fn record_slot(&self, slot: TopicId, channel: Channel, names: Option<Arc<TopicNames>>) {
        if let Some(recorder) = &mut self.state().recorder {
            recorder.add_topic(slot, channel, names);
        }
    }

    /// Returns the type of the messages of a subscription that was resolved during the run.
    pub fn resolved_type(&self, slot: TopicId) -> Option<Arc<MessageType>> {
        let state = self.state();
        let topic = state.slots.topic(slot)?;
        let mut resolved = state.resolved.iter().rev();
        resolved.find(|(known, _)| *known == topic).map(|(_, of)| Arc::clone(of))
    }

    /// Starts to keep the present verdicts of a publisher, and returns them.
    pub fn keep_present(&self, publisher: &Arc<dyn Publisher>) -> Option<Arc<Present>> {
        self.state().sinks.keep_present(publisher)
    }

    /// Publishes a notice on the topics of reports, without showing it.
    pub fn publish_notice(&self, notice: &Notice) {
        let state = &mut *self.state();
        state.notices.publish(notice, &mut state.sinks.stdout);
        state.notices.sinks.iter().for_each(release);
    }
}

/// The violations of the properties that are not kept. `violated` has for each property its violated instances.
fn last_violations(summary: &Summary, violated: &[u64], kept: &[Option<u32>]) -> Vec<LastViolations> {
    let kept: HashSet<u32> = kept.iter().flatten().copied().collect();
    let lost = (0..).zip(&summary.properties).filter(|(at, own)| own.violations > 0 && !kept.contains(at));
    let last = lost.map(|(property, own)| LastViolations {
        property,
        violations: own.violations,
        is_asserted: own.is_asserted,
        lasts: violated.get(property as usize).is_some_and(|instances| *instances > 0),
    });
    last.collect()
}
