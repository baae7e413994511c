//! Messages that are put in order, or into sets, and handed back; nothing is checked.

use std::sync::Arc;

use rondel_align::{Order, Released, Sets, SnapshotError};
use rondel_decode::json::JsonForm;
use rondel_decode::lines::{LineError, Lines, Source};
use rondel_decode::{DecodeError, DecoderError, Encoding, MessageType, TopicWriter};
use rondel_event::{Layout, Origin, Projection, TimeUnit, Timestamp, TopicId};

use super::aligned::of_specification;
use crate::ordering::alignment::Alignment;
use crate::ordering::progress::Waiting;
use crate::report::notice::{Notice, of_order, of_sets};
use crate::session::gaps::pause::Missed;
use crate::session::reading::decoders::TopicDecoder;
use crate::session::reading::intake::{Intake, Taken};
use crate::session::snapshot::saved::{Known, Saved, StartError};
use crate::session::{SessionPlan, Shared, Stamp};
use crate::specification::input::{Input, PublisherType};
use crate::specification::names::TopicNames;
use crate::statistics::Summary;
use crate::statistics::alignment::AlignmentStatistics;
use crate::text::write_seconds;
use crate::time::clock::{Clock, NO_TIME, Ticks};

/// Aligns messages and hands back each set, or each message, as one JSON object:
/// `{"time":12.5,"gear":{…},"velocity":{…}}`, with the time of the set and, under the names of the topics, the messages
/// as received; those in other encodings as JSON.
pub(in crate::session) struct Synchronized {
    rule: Rule,
    intake: Intake,
    /// Writers of the messages of each topic as JSON, where they are not JSON.
    writers: Vec<Option<TopicWriter>>,
    /// Writers for messages of further types.
    further: Vec<Vec<Option<TopicWriter>>>,
    topics: Vec<String>,
    /// The names of the messages of each topic, where they are read.
    names: Vec<Option<Arc<TopicNames>>>,
    /// The names of the topics in JSON.
    quoted: Vec<Vec<u8>>,
    set: Vec<(Timestamp, Arc<[u8]>)>,
    text: Vec<u8>,
}

enum Rule {
    Order(Order<Arc<[u8]>>),
    Sets(Sets<Arc<[u8]>>),
}

impl Rule {
    fn new(topics: usize, alignment: &Alignment) -> Rule {
        let all: Vec<TopicId> = (0..topics as u32).map(TopicId).collect();
        match alignment.set_settings(&all) {
            Some(settings) => {
                Rule::Sets(Sets::new(settings).with_bytes(alignment.waiting, |item: &Arc<[u8]>| item.len()))
            }
            None => {
                let order = Order::new(alignment.order_settings(&all));
                Rule::Order(order.with_bytes(alignment.waiting, |item: &Arc<[u8]>| item.len()))
            }
        }
    }

    /// Restores a saved rule. `names` must be those of the saved topics.
    fn restored(self, names: &[u8], state: &[u8]) -> Result<Rule, StartError> {
        let (length, state) = state.split_first_chunk().ok_or(SnapshotError::Altered)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (found, state) = state.split_at_checked(length).ok_or(SnapshotError::Altered)?;
        if names != found {
            return Err("it belongs to other topics".into());
        }
        let read = |bytes: &[u8]| Some(Arc::from(bytes));
        Ok(match self {
            Rule::Order(order) => Rule::Order(order.restored(state, read)?),
            Rule::Sets(sets) => Rule::Sets(sets.restored(state, read)?),
        })
    }

    fn saved(&self, names: &[u8]) -> Vec<u8> {
        let write = |item: &Arc<[u8]>, to: &mut Vec<u8>| to.extend_from_slice(item);
        let state = match self {
            Rule::Order(order) => order.snapshot(write),
            Rule::Sets(sets) => sets.snapshot(write),
        };
        [&(names.len() as u64).to_le_bytes()[..], names, &state].concat()
    }

    fn unheard_until(&mut self, now: Timestamp) {
        match self {
            Rule::Order(order) => order.advance_after_gap(now),
            Rule::Sets(sets) => sets.advance_after_gap(now),
        }
    }
}

impl Synchronized {
    pub(in crate::session) fn new(
        plan: &SessionPlan,
        saved: Option<&Saved>,
    ) -> Result<Synchronized, StartError> {
        let topics: Vec<String> = plan.specification.spec.topics.iter().map(|t| t.name.clone()).collect();
        let writer = |(name, input): (&String, &Input)| {
            let Input { encoding, message_type, .. } = input;
            let is_read = *encoding != Encoding::Json && !(plan.options.types_later && input.awaits_type());
            let writer = is_read
                .then(|| TopicWriter::new(*encoding, message_type.clone(), JsonForm::READABLE))
                .transpose();
            writer.map_err(|error| StartError::Mismatch(format!("topic '{name}': {error}")))
        };
        let writers = topics.iter().zip(&plan.options.inputs).map(writer).collect::<Result<_, _>>()?;
        let further = |input: &Input| input.further.iter().map(writer_of).collect::<Result<_, _>>();
        let further = plan.options.inputs.iter().map(further).collect::<Result<_, DecoderError>>();
        let further = further.map_err(|error| StartError::Mismatch(error.to_string()))?;
        let rule = Rule::new(topics.len(), &plan.options.alignment);
        let first = Waiting::default();
        let (rule, waiting) = match saved {
            None => (rule, &first),
            Some(saved) => {
                let waiting = saved.waiting(1, 0)?;
                (rule.restored(&names(&topics), &saved.states[0])?, waiting)
            }
        };
        let projections = vec![Projection::default(); topics.len()];
        let layout = Layout { topics: topics.len(), ..Layout::default() };
        Ok(Synchronized {
            rule,
            intake: Intake::new(plan, &projections, layout, waiting, saved.is_some())?,
            // A name always has a JSON form.
            quoted: topics.iter().map(|name| serde_json::to_vec(name).unwrap_or_default()).collect(),
            names: (0..topics.len() as u32).map(|topic| plan.names(TopicId(topic)).cloned()).collect(),
            topics,
            writers,
            further,
            set: Vec::new(),
            text: Vec::new(),
        })
    }

    /// Sets the type of the messages of a topic: see [`Session::resolve_type`](crate::session::Session::resolve_type).
    pub(in crate::session) fn resolve_type(
        &mut self,
        topic: TopicId,
        message_type: &Arc<MessageType>,
    ) -> Result<(), DecoderError> {
        let places =
            self.writers.get_mut(topic.index()).zip(self.intake.decoders_mut().get_mut(topic.index()));
        let Some((writer, decoder)) = places else { return Ok(()) };
        let (encoding, of) = (message_type.encoding(), Some(Arc::clone(message_type)));
        decoder.resolve_type(message_type)?;
        *writer = Some(TopicWriter::new(encoding, of, JsonForm::READABLE)?);
        Ok(())
    }

    /// Adds the writer for a further type of a topic.
    pub(in crate::session) fn add_writer(
        &mut self,
        topic: TopicId,
        of: &PublisherType,
    ) -> Result<(), DecoderError> {
        if let Some(writers) = self.further.get_mut(topic.index()) {
            writers.push(writer_of(of)?);
        }
        Ok(())
    }

    /// The decoder of each topic.
    pub(in crate::session) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        self.intake.decoders_mut()
    }

    pub(in crate::session) fn push(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        shared: &mut Shared,
    ) -> Result<(), DecodeError> {
        self.intake.block.clear();
        let passed = self.passed(topic, stamp, payload, shared)?;
        let Some(taken) = self.intake.take(topic, stamp, payload, false, shared)? else { return Ok(()) };
        // Nothing is judged here.
        self.intake.missed = None;
        shared.see(&self.intake.block);
        let Taken { time, now, then, refused, .. } = taken;
        self.resume(now);
        if refused.is_some() {
            self.unread(topic, stamp.origin);
            match &mut self.rule {
                _ if now == NO_TIME => {}
                Rule::Order(order) => order.refuse(topic, time, now),
                Rule::Sets(sets) => sets.refuse(topic, now),
            }
            return Ok(());
        }
        shared.counts.checked += 1;
        match &mut self.rule {
            Rule::Order(order) => order.push_until(topic, time, stamp.origin, now, then, passed),
            Rule::Sets(sets) => sets.push_until(topic, time, now, then, passed),
        }
        Ok(())
    }

    /// The message as it is passed on.
    fn passed(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        shared: &Shared,
    ) -> Result<Arc<[u8]>, DecodeError> {
        let Synchronized { writers, further, names, text, .. } = self;
        let writer = match usize::from(stamp.of_type.0).checked_sub(1) {
            None => writers.get_mut(topic.index()),
            Some(at) => further.get_mut(topic.index()).and_then(|writers| writers.get_mut(at)),
        };
        let Some(Some(writer)) = writer else { return Ok(Arc::from(payload)) };
        if let Some(Some(names)) = names.get(topic.index()) {
            writer.set_name(stamp.name, |id| names.name(id));
        }
        text.clear();
        writer.write(payload, stamp.arrival(&*shared.clock), shared.largest_message, text)?;
        Ok(Arc::from(&self.text[..]))
    }

    /// Records the number of a message that was refused or could not be read.
    #[cold]
    pub(in crate::session) fn unread(&mut self, topic: TopicId, origin: Option<Origin>) {
        if let (Rule::Order(order), Some(origin)) = (&mut self.rule, origin) {
            order.unread(topic, origin);
        }
    }

    pub(in crate::session) fn lines(&self, unit: TimeUnit) -> Lines {
        // A synchronizer returns payloads and reads no fields of lines.
        Lines::new(&[], false, unit)
    }

    /// The columns of the blocks that are filled with lines.
    pub(in crate::session) fn layout(&self) -> Layout {
        self.intake.block.layout()
    }

    pub(in crate::session) fn push_lines(
        &mut self,
        lines: &mut Lines,
        source: Source<'_>,
    ) -> Result<usize, LineError> {
        self.intake.take_lines(lines, source)
    }

    pub(in crate::session) fn progress(&mut self, payload: &[u8], shared: &mut Shared) {
        let Some((topic, marker)) = self.intake.progress.read(payload) else {
            return shared.notice(Notice::unread(payload));
        };
        let shown = self.intake.shown(shared);
        self.resume(shown);
        if let Rule::Order(order) = &mut self.rule {
            order.mark(topic, &marker, self.intake.clock.shown_or(shown, NO_TIME));
        }
    }

    fn resume(&mut self, now: Timestamp) {
        if self.intake.resumes(now) {
            self.rule.unheard_until(now);
        }
    }

    /// Records a pause of the session or a step of the day's clock: messages that waited come first.
    pub(in crate::session) fn pause(&mut self, missed: &Missed, shared: &Shared) {
        self.intake.pause(missed, &*shared.clock);
    }

    /// Collects notices. Released messages are taken one by one.
    pub(in crate::session) fn step(&mut self, shared: &mut Shared) {
        self.intake.renew();
        match &mut self.rule {
            Rule::Order(order) => order.notices().for_each(|notice| shared.notice(of_order(&notice))),
            Rule::Sets(sets) => {
                sets.notices().for_each(|notice| shared.notice(of_sets(&of_specification(notice, &[]))));
            }
        }
    }

    pub(in crate::session) fn deadline(&self) -> Option<Timestamp> {
        match &self.rule {
            Rule::Order(order) => order.deadline(),
            Rule::Sets(sets) => sets.deadline(),
        }
    }

    pub(in crate::session) fn due(&self, clock: &dyn Clock) -> Option<Ticks> {
        self.intake.clock.ticks(self.deadline()?, clock)
    }

    pub(in crate::session) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        let now = self.intake.shown(shared);
        if now != NO_TIME {
            self.advance(now, shared);
        }
        self.due(&*shared.clock)
    }

    pub(in crate::session) fn advance(&mut self, now: Timestamp, shared: &mut Shared) {
        self.resume(now);
        match &mut self.rule {
            Rule::Order(order) => order.advance(now),
            Rule::Sets(sets) => sets.advance(now),
        }
        self.step(shared);
    }

    pub(in crate::session) fn finish(&mut self, shared: &mut Shared) {
        match &mut self.rule {
            Rule::Order(order) => order.flush(),
            Rule::Sets(sets) => sets.flush(),
        }
        self.step(shared);
    }

    /// The state for a snapshot, with the waiting messages.
    pub(in crate::session) fn saved(&self, clock: &dyn Clock) -> Saved {
        let known = Known { waiting: Some(self.intake.saved(clock)), ..Known::default() };
        Saved { known, states: vec![self.rule.saved(&names(&self.topics))] }
    }

    pub(in crate::session) fn summarize(&self, summary: &mut Summary) {
        let unstamped = summary.topics.iter().map(|topic| topic.unstamped).sum();
        let mut alignment = AlignmentStatistics::new(&self.topics, unstamped, self.intake.progress.unread);
        let all: Vec<TopicId> = (0..self.topics.len() as u32).map(TopicId).collect();
        match &self.rule {
            Rule::Order(order) => alignment.order(&order.statistics(), &all),
            Rule::Sets(sets) => alignment.sets(sets.statistics(), &all),
        }
        alignment.refused(&summary.topics);
        summary.alignment = Some(alignment);
    }

    /// The next message or set that was released, as a JSON object.
    pub(in crate::session) fn released(&mut self) -> Option<&[u8]> {
        let Synchronized { rule, set, text, quoted, .. } = self;
        let mut write =
            |time: Timestamp, is_late: bool, messages: &mut dyn Iterator<Item = (usize, &[u8])>| {
                text.clear();
                text.extend_from_slice(b"{\"time\":");
                write_seconds(time, text);
                text.extend_from_slice(if is_late { b",\"late\":true" } else { b"" });
                for (topic, message) in messages {
                    text.push(b',');
                    text.extend_from_slice(&quoted[topic]);
                    text.push(b':');
                    text.extend_from_slice(message.trim_ascii());
                }
                text.push(b'}');
            };
        match rule {
            Rule::Order(order) => {
                let Released { topic, time, item, lateness } = order.pop()?;
                write(time, lateness.is_some(), &mut std::iter::once((topic.index(), &item[..])));
            }
            Rule::Sets(sets) => {
                let of = sets.pop(set)?;
                let messages = set.iter().enumerate().map(|(topic, (_, message))| (topic, &message[..]));
                write(of.time, false, &mut { messages });
            }
        }
        Some(text)
    }
}

/// Writer of messages of a type as JSON, where they are not JSON.
fn writer_of(of: &PublisherType) -> Result<Option<TopicWriter>, DecoderError> {
    let PublisherType { encoding, message_type, .. } = of;
    (*encoding != Encoding::Json)
        .then(|| TopicWriter::new(*encoding, message_type.clone(), JsonForm::READABLE))
        .transpose()
}

/// The names of the topics in a snapshot.
fn names(topics: &[String]) -> Vec<u8> {
    // Names always have a JSON form.
    serde_json::to_vec(topics).unwrap_or_default()
}
