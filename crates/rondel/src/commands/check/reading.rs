//! Mapping of the topics of a recording to topics of the specification, with their types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rondel_decode::{Encoding, MessageType};
use rondel_event::{
    Condition, Countable, Field, Quantifier, Read as ReadAs, Test, TopicId, TypeIndex, ValueType,
};
use rondel_recording::{RecordedTopic, WantedField};
use rondel_runtime::{PublisherType, SessionPlan, TimeSource};

use super::Check;
use crate::commands::selecting::{is_named, no_such_topic};
use crate::deployment::time_source;
use crate::recorder::{EVENTS, VERDICTS};
use crate::schemas::Schemas;
use crate::schemas::recorded_types::{encoding, message_type, type_name};
use crate::specification::is_deployment;
use crate::warn;

/// Mapping of the topics of a recording to those of the specification.
pub(super) struct Reading {
    /// For each recorded topic the topic of the specification, if it is read.
    pub(super) topics: Vec<Option<TopicId>>,
    /// For each recorded topic its type among those of the topic of the specification.
    pub(super) of_types: Vec<TypeIndex>,
    /// The recorded topics that are read and cannot be decoded, with the reason.
    pub(super) undecodable: BTreeMap<usize, String>,
}

impl Reading {
    /// Maps the topics of a recording to those of the specification, and sets their encodings and types in the plan.
    ///
    /// # Errors
    /// A sentence if the topic of a formula is ambiguous.
    pub(super) fn new(
        check: &Check,
        plan: &mut SessionPlan,
        schemas: &Schemas,
        recorded: &[RecordedTopic],
    ) -> Result<Reading, String> {
        let is_chosen = |topic: &RecordedTopic| {
            check.topics.is_empty() || check.topics.iter().any(|name| is_named(name, &topic.name))
        };
        let is_formula = plan.specification().is_formula;
        let is_deployment = check.first.as_deref().is_some_and(is_deployment);
        let is_named_by_deployment =
            is_deployment && recorded.iter().any(|topic| plan.topic_in_recording(&topic.name).is_some());
        let target = |topic: &RecordedTopic| match is_formula {
            // A deployment names the topic of its formula.
            true if is_named_by_deployment => plan.topic_in_recording(&topic.name),
            // Verdicts of the flight recorder are no messages.
            true => (![VERDICTS, EVENTS].contains(&topic.name.as_str())).then_some(TopicId(0)),
            false => plan.topic_in_recording(&topic.name),
        };
        let topics: Vec<Option<TopicId>> =
            recorded.iter().map(|topic| target(topic).filter(|_| is_chosen(topic))).collect();
        if is_formula {
            let all = recorded.iter().zip(&topics).filter(|(_, target)| target.is_some());
            let mut names: Vec<&str> = all.map(|(topic, _)| topic.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            if names.len() > 1 {
                let names = names.join(", ");
                return Err(format!("the formula is about one topic: choose it with --topics from {names}"));
            }
        }
        let is_there = |name: &String| recorded.iter().any(|topic| is_named(name, &topic.name));
        let (there, missing): (Vec<&String>, Vec<&String>) =
            check.topics.iter().partition(|name| is_there(name));
        if let Some(name) = missing.first() {
            let sentence = no_such_topic(name, recorded);
            if there.is_empty() {
                return Err(sentence);
            }
            warn(&sentence);
        }
        let left_out =
            recorded.iter().filter(|topic| !is_formula && target(topic).is_some() && !is_chosen(topic));
        let left_out: BTreeSet<&str> = left_out.map(|topic| topic.name.as_str()).collect();
        if !left_out.is_empty() {
            let names = left_out.into_iter().collect::<Vec<_>>().join(", ");
            warn(&format!("--topics leaves out {names}, which the specification reads"));
        }
        let mut reading = Reading {
            of_types: vec![TypeIndex::default(); topics.len()],
            topics,
            undecodable: BTreeMap::new(),
        };
        let mut of_target: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
        for (i, target) in reading.topics.iter().enumerate() {
            if let Some(target) = target {
                of_target.entry(*target).or_default().push(i);
            }
        }
        for (target, channels) in of_target {
            reading.describe(plan, schemas, target, recorded, &channels);
            if let Some(field) = &check.time_field {
                let is_read = channels.iter().all(|channel| recorded[*channel].time_field.is_some());
                plan.set_time(target, if is_read { TimeSource::Source } else { time_source(field) });
            }
        }
        Ok(reading)
    }

    /// Sets the encodings and the types of the messages of a topic, which these channels of the recording have.
    fn describe(
        &mut self,
        plan: &mut SessionPlan,
        schemas: &Schemas,
        target: TopicId,
        recorded: &[RecordedTopic],
        channels: &[usize],
    ) {
        // Channels that have the same type are read alike.
        let mut types: Vec<(&RecordedTopic, Vec<usize>)> = Vec::new();
        for channel in channels {
            let topic = &recorded[*channel];
            let is_same = |(known, _): &&mut (&RecordedTopic, _)| {
                (&known.encoding, &known.schema) == (&topic.encoding, &topic.schema)
            };
            match types.iter_mut().find(is_same) {
                Some((_, channels)) => channels.push(*channel),
                None => types.push((topic, vec![*channel])),
            }
        }
        let declared = plan.specification().spec.topics.get(target.index());
        let declared = declared.and_then(|topic| topic.type_name.clone());
        let input = plan.input(target);
        let stated = input.map(|input| input.encoding).unwrap_or_default();
        let stated_type = input.and_then(|input| input.message_type.clone());
        let stated = (stated, stated_type.as_ref());
        let is_alone = types.len() == 1;
        let (mut found, mut of_found) = (Vec::new(), Vec::new());
        for (topic, channels) in types {
            match publisher_type(schemas, declared.as_deref(), topic, stated, is_alone) {
                Ok(of) => {
                    found.push(of);
                    of_found.push(channels);
                }
                Err(reason) => {
                    self.undecodable.extend(channels.into_iter().map(|channel| (channel, reason.clone())));
                }
            }
        }
        for (index, channels) in plan.set_types(target, found).into_iter().zip(of_found) {
            for channel in channels {
                match &index {
                    Ok(index) => self.of_types[channel] = *index,
                    Err(error) => _ = self.undecodable.insert(channel, error.to_string()),
                }
            }
        }
    }
}

/// Encoding and type of a recorded topic; a deployment may override the encoding, and states the type where the recording
/// has none, as with a schema registry. If several recorded topics feed one topic, the definition in the recording takes
/// precedence over that of a file.
fn publisher_type(
    schemas: &Schemas,
    declared: Option<&str>,
    topic: &RecordedTopic,
    (stated, stated_type): (Encoding, Option<&Arc<MessageType>>),
    is_alone: bool,
) -> Result<PublisherType, String> {
    let encoding = refined(encoding(topic), stated).ok_or_else(|| match topic.encoding.as_str() {
        "" => "the recording does not say how they are encoded".to_owned(),
        other => format!("the encoding '{other}' is not known"),
    })?;
    let encoding = if topic.is_rows { Encoding::Row } else { encoding };
    let publisher = topic.label.clone();
    if !encoding.needs_schema() {
        return Ok(PublisherType { encoding, message_type: None, publisher });
    }
    if topic.schema.is_none()
        && let Some(of) = stated_type.filter(|of| of.encoding() == encoding)
    {
        return Ok(PublisherType { encoding, message_type: Some(Arc::clone(of)), publisher });
    }
    if let (Some(schema), Some(declared)) = (&topic.schema, declared)
        && type_name(&schema.name) != type_name(declared)
    {
        return Err(format!("they are {}, and the specification declares {declared}", schema.name));
    }
    let found = match (&topic.schema, declared) {
        (Some(schema), _) if !is_alone && !schema.data.is_empty() => message_type(schema, encoding),
        (Some(schema), _) => schemas.recorded(schema, encoding),
        (None, Some(name)) => schemas.message_type(name, encoding),
        (None, None) => Err("the recording has no definition of their type".to_owned()),
    };
    Ok(PublisherType { encoding, message_type: Some(Arc::new(found?)), publisher })
}

/// The type of the elements of an array that are measured, or compared with numbers, themselves.
fn number(quantifier: Quantifier, conditions: &[Condition]) -> Option<ValueType> {
    let of_test = |condition: &Condition| match condition.test {
        Test::Number(..) if condition.path.0.is_empty() => Some(ValueType::Float),
        Test::Integer(..) if condition.path.0.is_empty() => Some(ValueType::Int),
        _ => None,
    };
    let measured = quantifier.is_measure().then_some(ValueType::Float);
    measured.or_else(|| conditions.iter().find_map(of_test))
}

/// The encoding of recorded messages, where a deployment states more than a recording does.
fn refined(recorded: Option<Encoding>, stated: Encoding) -> Option<Encoding> {
    match (recorded, stated) {
        (None | Some(Encoding::Json | Encoding::Cbor), Encoding::Senml) => Some(stated),
        (None | Some(Encoding::Protobuf), Encoding::SparkplugB) => Some(stated),
        (None, Encoding::Xml) => Some(stated),
        _ => recorded,
    }
}

/// The fields of a topic that are read, with their types.
pub(super) fn wanted(plan: &SessionPlan, topic: TopicId) -> Vec<WantedField> {
    let projections = plan.specification().program.projections();
    let fields = projections.get(topic.index()).into_iter().flat_map(|projection| &projection.fields);
    let field = |field: &Field| {
        let kind = match &field.read {
            ReadAs::Value(kind) | ReadAs::Number(kind) => Some(*kind),
            // The length of a text; an array cannot be a cell.
            ReadAs::Length | ReadAs::LengthOf(Countable::Text) => Some(ValueType::String),
            ReadAs::IsNan => Some(ValueType::Float),
            ReadAs::Elements(quantifier, conditions) | ReadAs::Witness(quantifier, conditions) => {
                number(*quantifier, conditions)
            }
            ReadAs::Presence | ReadAs::Table(_) | ReadAs::LengthOf(Countable::Array) => None,
        };
        let of_elements = matches!(field.read, ReadAs::Elements(..) | ReadAs::Witness(..));
        WantedField { path: field.path.clone(), kind, of_elements }
    };
    let time = plan.input(topic).and_then(|input| input.time.field());
    let time =
        time.map(|path| WantedField { path: path.clone(), kind: Some(ValueType::Time), of_elements: false });
    fields.map(field).chain(time).collect()
}
