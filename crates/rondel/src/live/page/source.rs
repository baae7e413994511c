//! Figures and messages of a run, copied for the page.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageType, MessageWriter};
use rondel_event::{Timestamp, TopicId};
use rondel_page::{Figures, Live, Message, NetworkFigures, SinkFigures, TopicFigures};
use rondel_runtime::{Reason, Summary};
use serde_json::Value;

use crate::deployment::{Binding, Deployment};
use crate::live::metrics::RunState;
use crate::live::pipeline::Pipeline;
use crate::live::running::Running;
use crate::live::tap::{LARGEST, Seen, Tap};

/// Time limit for the evaluating thread.
const LIMIT: Duration = Duration::from_millis(200);
/// Largest message as JSON, in bytes.
const LARGEST_JSON: usize = 8 * LARGEST;

/// A run, as the page reads it.
pub struct RunSource {
    pipeline: Weak<Pipeline>,
    state: Arc<RunState>,
    tap: Arc<Tap>,
    topics: Vec<SourceTopic>,
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
        RunSource { pipeline, state, tap, topics: topics.collect() }
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
            ..TopicFigures::default()
        }
    }

    /// The networks and sinks, from what metrics show as well.
    fn add_state(&self, figures: &mut Figures) {
        figures.reasons = self.state.unready();
        let Some(run) = self.state.snapshot().run else { return };
        figures.networks = (run.networks.iter())
            .map(|network| NetworkFigures {
                name: network.name.to_owned(),
                is_connected: network.is_connected,
                outages: network.outages,
            })
            .collect();
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
