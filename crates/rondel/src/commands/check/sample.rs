//! Messages of a recording in memory, for commands that evaluate them several times.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use rondel_decode::lines::{PublishedLine, published};
use rondel_event::{NameId, TimeUnit, Timestamp, TopicId, TypeIndex};
use rondel_recording::{OpenError, Opened, Recording, RecordingError, Selection, TraceReader};
use rondel_runtime::SessionPlan;
use rondel_runtime::text::counted;

use super::Check;
use super::reading::{Reading, wanted};
use crate::specification::Specification;
use crate::{exit, warn};

/// Maximum size of all messages together, in bytes.
const BYTES: usize = 256 << 20;
/// Maximum number of topics that a sentence names.
const NAMED: usize = 10;

/// Messages on topics of a specification, in the order of their times.
pub struct Sample {
    /// The plan, with the encodings and types of the messages.
    pub plan: SessionPlan,
    /// The messages.
    pub messages: Vec<SampledMessage>,
    /// Whether there are further messages, beyond the limit.
    pub is_part: bool,
    /// Number of messages that are older than one before them in the recording.
    pub misordered: u64,
}

/// A message with its topic.
#[derive(Clone, Debug)]
pub struct SampledMessage {
    /// The topic of the specification.
    pub topic: TopicId,
    /// The number of the name, if the address has parameters.
    pub name: Option<NameId>,
    /// The type among those of the topic.
    pub of_type: TypeIndex,
    /// The time.
    pub time: Timestamp,
    /// The payload.
    pub payload: Box<[u8]>,
}

impl Sample {
    fn new(plan: SessionPlan) -> Sample {
        Sample { plan, messages: Vec::new(), is_part: false, misordered: 0 }
    }

    /// Sorts messages of several clocks, and counts those out of order.
    fn sorted(mut self) -> Sample {
        let mut newest = Timestamp::from_nanos(i64::MIN);
        for message in &self.messages {
            self.misordered += u64::from(message.time < newest);
            newest = newest.max(message.time);
        }
        self.messages.sort_by_key(|message| message.time);
        self
    }
}

impl Check {
    /// A check of one recording.
    pub fn of_recording(specification: &Path, recording: &Path) -> Check {
        Check {
            first: Some(specification.to_owned()),
            traces: vec![recording.to_owned()],
            ..Check::default()
        }
    }

    /// Reads the messages on topics of the specification, at most `most`.
    ///
    /// # Errors
    /// A sentence with the exit status.
    pub fn sample(
        &self,
        specification: &Specification,
        plan: SessionPlan,
        most: usize,
    ) -> Result<Sample, (String, u8)> {
        let Some(path) = self.traces.first() else { return Ok(Sample::new(plan)) };
        let name = self.name(path);
        let opened = self.open(path, &plan).map_err(|error| {
            let is_misuse = matches!(error, OpenError::Messages(RecordingError::Choice { .. }));
            (error.to_string(), if is_misuse { exit::USAGE } else { exit::TRACE })
        })?;
        let (sample, others) = match opened {
            Opened::Lines(reader) => lines(reader, &name, plan, most)?,
            Opened::Messages(recording) => self.messages_of(recording, specification, plan, &name, most)?,
        };
        if sample.messages.is_empty() {
            let topics = specification.spec.declared().iter().map(|topic| topic.name.as_str());
            let sentence = format!(
                "{name}: no message is on a topic of the specification, which has {}; the recording has {}",
                listed(topics),
                listed(others.iter().map(String::as_str))
            );
            return Err((sentence, exit::USAGE));
        }
        Ok(sample.sorted())
    }

    /// The messages of a recording, and the names of its other topics.
    fn messages_of(
        &self,
        mut recording: Box<dyn Recording>,
        specification: &Specification,
        mut plan: SessionPlan,
        name: &str,
        most: usize,
    ) -> Result<(Sample, BTreeSet<String>), (String, u8)> {
        let reading = Reading::new(self, &mut plan, &specification.schemas, recording.topics())
            .map_err(|error| (format!("{name}: {error}"), exit::USAGE))?;
        for (topic, reason) in &reading.undecodable {
            let topic = &recording.topics()[*topic].name;
            warn(&format!("{name}: cannot decode the messages on {topic}: {reason}"));
        }
        let mut others = BTreeSet::new();
        let mut names = Vec::new();
        for (i, topic) in recording.topics().iter().enumerate() {
            let target = reading.topics[i].filter(|_| !reading.undecodable.contains_key(&i));
            let number = target.and_then(|target| plan.names(target)?.number(&topic.name));
            names.push(target.map(|target| (target, number)));
            if target.is_none() {
                others.insert(topic.name.clone());
            }
        }
        recording.select(Selection::of_topics(names.iter().map(Option::is_some).collect()));
        for (topic, target) in names.iter().enumerate() {
            if let Some((target, _)) = target {
                recording.want(topic, &wanted(&plan, *target));
            }
        }
        let (mut sample, mut bytes) = (Sample::new(plan), 0);
        loop {
            match recording.next() {
                Ok(Some(message)) => {
                    let Some(Some((topic, number))) = names.get(message.topic) else { continue };
                    bytes += message.payload.len();
                    if sample.messages.len() >= most || bytes > BYTES {
                        sample.is_part = true;
                        break;
                    }
                    sample.messages.push(SampledMessage {
                        topic: *topic,
                        name: *number,
                        of_type: reading.of_types[message.topic],
                        time: message.log_time,
                        payload: message.payload.into(),
                    });
                }
                Ok(None) => break,
                Err(error @ (RecordingError::Row { .. } | RecordingError::Damage { .. })) => {
                    warn(&error.to_string());
                }
                Err(error @ RecordingError::Cut { .. }) => {
                    warn(&format!("{error}; it is measured up to there"));
                    break;
                }
                Err(error) => return Err((error.to_string(), exit::TRACE)),
            }
        }
        Ok((sample, others))
    }
}

/// The messages in lines, and the names of other topics.
fn lines(
    mut reader: TraceReader,
    name: &str,
    plan: SessionPlan,
    most: usize,
) -> Result<(Sample, BTreeSet<String>), (String, u8)> {
    let is_alone = plan.specification().is_formula || plan.specification().spec.declared().len() == 1;
    let unnamed = is_alone.then_some((TopicId(0), None));
    let mut targets: HashMap<String, Option<(TopicId, Option<NameId>)>> = HashMap::new();
    let (mut sample, mut bytes, mut time) = (Sample::new(plan), 0, Timestamp::ZERO);
    let (mut unreadable, mut first) = (0_u64, String::new());
    'reading: loop {
        let piece = match reader.lines() {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) if error.is_cut() => {
                warn(&format!("{error}; it is measured up to there"));
                break;
            }
            Err(error) => return Err((error.to_string(), exit::TRACE)),
        };
        let end = piece.end;
        for line in piece.text[piece.start..end].split_inclusive(|byte| *byte == b'\n') {
            let read = match published(line, TimeUnit::default(), false) {
                Ok(PublishedLine::Message(message)) => Ok(message),
                Ok(PublishedLine::Event | PublishedLine::Empty) => continue,
                Ok(PublishedLine::WrongEvent(reason)) => Err(reason),
                Err((at, kind)) => Err(format!("byte {} of a line: {kind}", at + 1)),
            };
            let message = match read {
                Ok(message) => message,
                Err(reason) => {
                    if unreadable == 0 {
                        first = reason;
                    }
                    unreadable += 1;
                    continue;
                }
            };
            time = message.time.unwrap_or(time);
            let target = match &message.topic {
                None => unnamed,
                Some(topic) => *targets.entry(topic.clone()).or_insert_with(|| target(&sample.plan, topic)),
            };
            let (Some((topic, number)), Some(payload)) = (target, &message.payload) else { continue };
            bytes += payload.len();
            if sample.messages.len() >= most || bytes > BYTES {
                sample.is_part = true;
                break 'reading;
            }
            let (of_type, payload) = (TypeIndex::default(), Box::from(&payload[..]));
            sample.messages.push(SampledMessage { topic, name: number, of_type, time, payload });
        }
        reader.used(end);
    }
    if unreadable > 0 {
        let lines = counted(unreadable, "line is", "lines are");
        let sentence = format!("{name}: {lines} no message; the first: {first}");
        if sample.messages.is_empty() {
            return Err((sentence, exit::TRACE));
        }
        warn(&sentence);
    }
    let others = targets.into_iter().filter(|(_, target)| target.is_none());
    Ok((sample, others.map(|(topic, _)| topic).collect()))
}

/// The topic that a recording calls so, and the number of the name.
fn target(plan: &SessionPlan, recorded: &str) -> Option<(TopicId, Option<NameId>)> {
    if plan.specification().is_formula {
        return Some((TopicId(0), None));
    }
    let topic = plan.topic_in_recording(recorded)?;
    Some((topic, plan.names(topic).and_then(|names| names.number(recorded))))
}

/// Names in a sentence.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.len() {
        0 => "no other topic".to_owned(),
        count if count <= NAMED => names.join(", "),
        count => format!("{} and {} more", names[..NAMED].join(", "), count - NAMED),
    }
}
