//! Figures and messages of a run, copied for the page.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageType, MessageWriter};
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::now;
use rondel_page::{Figures, Live, Message, NetworkFigures, SinkFigures, TopicFigures};
use rondel_runtime::{Reason, Summary};
use serde_json::Value;

use crate::deployment::{Binding, Deployment};
use crate::live::metrics::RunState;
use crate::live::pipeline::Pipeline;
use crate::live::running::Running;
use crate::live::tap::{LARGEST, Seen, Tap};
use crate::output::time_text::TimeText;
use crate::sinks::driven::{DestinationState, Role};
use crate::warn;

/// Time limit for the evaluating thread.
const LIMIT: Duration = Duration::from_millis(200);
/// Age of waiting verdicts from which on the page lags behind, in nanoseconds.
const LAGS: i64 = 1_000_000_000;
/// Largest message as JSON, in bytes.
const LARGEST_JSON: usize = 8 * LARGEST;

/// A run, as the page reads it.
pub struct RunSource {
    pipeline: Weak<Pipeline>,
    state: Arc<RunState>,
    tap: Arc<Tap>,
    topics: Vec<SourceTopic>,
    lag: Mutex<Lag>,
}

/// Lag of the store behind the run.
#[derive(Debug, Default)]
struct Lag {
    /// Time of day since which verdicts have been waiting for the store, in nanoseconds.
    since: Option<i64>,
    /// Whether the lag was reported on standard error.
    is_reported: bool,
}

impl Lag {
    /// Notes the state of the store. Returns since when the page has been lagging behind, and whether that is to be
    /// reported.
    fn note(&mut self, store: &DestinationState, now: i64) -> Option<(i64, bool)> {
        self.since = store.behind_since(now, self.since);
        let is_old = |since: &i64| store.is_down() || now.saturating_sub(*since) >= LAGS;
        let Some(since) = self.since.filter(is_old) else {
            // Verdicts wait briefly also in a store that works.
            self.is_reported &= self.since.is_some();
            return None;
        };
        Some((since, !std::mem::replace(&mut self.is_reported, true)))
    }
}

/// A topic of a run.
struct SourceTopic {
    name: String,
    address: String,
    slot: TopicId,
    encoding: Encoding,
    /// The type, once it is known.
    message_type: OnceLock<Arc<MessageType>>,
}

impl SourceTopic {
    fn new(name: &str, binding: &Binding, slot: TopicId) -> SourceTopic {
        let message_type = OnceLock::new();
        if let Some(known) = &binding.input.message_type {
            // It is empty.
            let _ = message_type.set(Arc::clone(known));
        }
        let (name, address) = (name.to_owned(), binding.address.to_string());
        SourceTopic { name, address, slot, encoding: binding.input.encoding, message_type }
    }

    /// The type of the messages. One that is resolved during the run is read once.
    fn message_type(&self, pipeline: &Pipeline) -> Option<Arc<MessageType>> {
        if self.message_type.get().is_none()
            && let Some(resolved) = pipeline.resolved_type(self.slot)
        {
            // Another thread may have set the same one.
            let _ = self.message_type.set(resolved);
        }
        self.message_type.get().cloned()
    }

    /// A message as a tree.
    fn tree(&self, seen: &Seen, pipeline: &Pipeline) -> Result<Value, String> {
        if seen.length > LARGEST {
            let most = LARGEST >> 10;
            return Err(format!(
                "the message has {} bytes; messages up to {most} KiB are shown",
                seen.length
            ));
        }
        let message_type = match self.encoding.needs_schema() {
            true => self.message_type(pipeline),
            false => self.message_type.get().cloned(),
        };
        let writer = MessageWriter::new(self.encoding, message_type, JsonForm::READABLE);
        let mut text = Vec::new();
        writer
            .map_err(|error| error.to_string())?
            .write(&seen.payload, LARGEST_JSON, &mut text)
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }
}

impl RunSource {
    /// Reads a run of this deployment.
    pub fn new(running: &Running, deployment: &Deployment, state: Arc<RunState>, tap: Arc<Tap>) -> RunSource {
        let (pipeline, slots) = running.observed();
        let declared = deployment.specification.spec.declared().iter();
        let topics = declared.zip(&deployment.sources).zip(slots);
        let topics = topics.map(|((topic, binding), slot)| SourceTopic::new(&topic.name, binding, slot));
        RunSource { pipeline, state, tap, topics: topics.collect(), lag: Mutex::default() }
    }

    fn topic(&self, at: usize, topic: &SourceTopic, summary: &Summary) -> TopicFigures {
        let account = summary.accounts.get(at).cloned().unwrap_or_default();
        let message_type = topic.message_type.get().map(|of| of.name().to_owned());
        TopicFigures {
            name: topic.name.clone(),
            address: topic.address.clone(),
            message_type: message_type.or_else(|| Some(topic.encoding.name().to_owned())),
            messages: account.received,
            lost: account.lost.saturating_sub(account.recovered),
            undecodable: account.undecodable,
            publishers: Some(account.publishers).filter(|count| *count > 0),
            ..TopicFigures::default()
        }
    }

    /// The networks and sinks, from what metrics show as well.
    fn add_state(&self, figures: &mut Figures) {
        figures.reasons = self.state.unready();
        let Some(run) = self.state.snapshot().run else { return };
        for (topic, publishers) in figures.topics.iter_mut().zip(&run.publishers) {
            topic.publishers = publishers.or(topic.publishers);
        }
        figures.networks = (run.networks.iter())
            .map(|network| NetworkFigures {
                name: network.name.to_owned(),
                is_connected: network.is_connected,
                outages: network.outages,
            })
            .collect();
        if let Some(store) = run.driven.iter().find(|state| state.role == Role::Store) {
            self.add_lag(store, figures);
        }
        let sinks = &mut figures.sinks;
        run.matched
            .into_iter()
            .for_each(|(name, is_matched)| sink(sinks, &name).is_connected = Some(is_matched));
        run.queues.iter().for_each(|queue| sink(sinks, &queue.sink).waiting += queue.waiting);
        run.spooled.into_iter().for_each(|(name, count)| sink(sinks, &name).waiting += count);
        run.undelivered.into_iter().for_each(|(name, count)| sink(sinks, &name).lost += count);
        for state in run.driven {
            let own = sink(sinks, &state.status.name);
            own.is_connected = Some(!state.is_down());
            own.waiting += state.waiting;
            own.lost += state.lost();
        }
    }

    /// The lag of the store: the page has no verdict that is not in it.
    fn add_lag(&self, store: &DestinationState, figures: &mut Figures) {
        let noted = self.lag.lock().unwrap_or_else(PoisonError::into_inner).note(store, now().as_nanos());
        let Some((since, is_first)) = noted else { return };
        // Without figures that change: viewers receive every other state.
        let mut reason = format!(
            "the store {} has not accepted verdicts since {}",
            store.status.name,
            TimeText::default().text(Timestamp::from_nanos(since))
        );
        if let Some(error) = store.status.last_error.as_ref().filter(|_| store.is_down()) {
            reason += &format!(": {error}");
        }
        if is_first {
            warn(&format!("the page lags behind and shows no later verdicts: {reason}"));
        }
        figures.behind_since = Some(since);
        figures.reasons.push(reason);
    }
}

/// The figures of a sink, which are added if there are none.
fn sink<'s>(sinks: &'s mut Vec<SinkFigures>, name: &str) -> &'s mut SinkFigures {
    let at = match sinks.iter().position(|sink| sink.name == name) {
        Some(at) => at,
        None => {
            sinks.push(SinkFigures { name: name.to_owned(), ..SinkFigures::default() });
            sinks.len() - 1
        }
    };
    &mut sinks[at]
}

impl Live for RunSource {
    fn figures(&self) -> Option<Figures> {
        let (summary, traffic) = self.pipeline.upgrade()?.summary_within(LIMIT)?;
        let all = self.topics.iter().enumerate();
        let mut topics: Vec<TopicFigures> = all.map(|(at, topic)| self.topic(at, topic, &summary)).collect();
        for omission in summary.omitted() {
            if let (Reason::Late, Some(topic)) = (omission.reason, omission.topic)
                && let Some(topic) = topics.get_mut(topic.index())
            {
                topic.late += omission.count;
            }
        }
        for (topic, (latest, bytes, measured)) in topics.iter_mut().zip(self.tap.counts()) {
            (topic.latest, topic.bytes, topic.measured) = (latest, bytes, measured);
        }
        let mut figures = Figures {
            topics,
            messages: traffic.received,
            reached: summary.reached.map(Timestamp::as_nanos),
            ..Figures::default()
        };
        self.add_state(&mut figures);
        Some(figures)
    }

    fn message(&self, topic: &str) -> Option<Message> {
        let at = self.topics.iter().position(|own| own.name == topic)?;
        let (own, pipeline) = (self.topics.get(at)?, self.pipeline.upgrade()?);
        let seen = self.tap.seen(TopicId(at as u32))?;
        let received = seen.received?;
        Some(Message { received, bytes: seen.length as u64, value: own.tree(&seen, &pipeline) })
    }

    fn watch(&self, is_watched: bool) {
        self.tap.watch(is_watched);
    }
}

#[cfg(test)]
mod tests {
    use rondel_sinks::{Condition, Status};

    use super::*;

    #[test]
    fn lag_is_reported_once_and_again_after_the_store_has_caught_up() {
        let mut lag = Lag::default();
        let mut note = |condition, queued_since, now| {
            let mut status = Status::default();
            (status.condition, status.queued_since) = (condition, queued_since);
            lag.note(&DestinationState::of(Role::Store, status), now)
        };
        assert_eq!(note(Condition::Connected, None, 0), None);
        assert_eq!(note(Condition::Connected, Some(5), 6), None, "it is being written");
        assert_eq!(note(Condition::Connected, Some(5), 5 + LAGS), Some((5, true)));
        assert_eq!(note(Condition::Connected, Some(5), 6 + LAGS), Some((5, false)));
        let failing = Condition::Failing { since: 9, attempts: 1 };
        assert_eq!(note(failing, Some(9), 9), Some((9, false)), "it has not caught up between");
        assert_eq!(note(Condition::Connected, None, 10), None);
        assert_eq!(note(failing, Some(11), 11), Some((9, true)));
    }
}
