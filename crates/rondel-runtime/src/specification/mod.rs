//! A specification that is ready to run.

pub mod formula;
pub(crate) mod input;
pub(crate) mod mixtures;
pub(crate) mod names;
pub(crate) mod types;

use std::sync::Arc;

use rondel_decode::Encoding;
use rondel_decode::lines::{LineTime, TraceTopic};
use rondel_engine::{CompileError, Program};
use rondel_event::{Projection, TopicId};
use rondel_spec::{Class, ExprId, Spec, TimeModel};

use input::{Input, TimeSource};

/// A checked specification and its program.
#[derive(Clone, Debug)]
pub struct Specification {
    /// The checked specification, which all sessions share.
    pub spec: Arc<Spec>,
    /// Its program.
    pub program: Arc<Program>,
    /// Whether it is a bare formula: its one topic has no name, and stands for any.
    pub is_formula: bool,
}

impl Specification {
    /// Compiles a checked specification.
    ///
    /// # Errors
    /// [`CompileError`] when a property cannot be monitored.
    pub fn new(spec: Spec) -> Result<Specification, CompileError> {
        let program = Arc::new(Program::compile(&spec)?);
        Ok(Specification { spec: Arc::new(spec), program, is_formula: false })
    }

    /// The reasons why properties of a specification cannot be monitored; empty if all can.
    pub fn refusals(spec: &Spec) -> Vec<CompileError> {
        Program::refusals(spec)
    }

    /// The specification with its properties divided among workers.
    pub(crate) fn spread(&self, workers: usize) -> Result<Specification, CompileError> {
        let mut spec = Spec::clone(&self.spec);
        if !rondel_engine::spread(&mut spec, workers) {
            return Ok(self.clone());
        }
        Ok(Specification { is_formula: self.is_formula, ..Specification::new(spec)? })
    }

    /// A specification of these topics without properties: messages are put in order, and nothing is
    /// checked.
    ///
    /// # Errors
    /// [`CompileError`] never, unless the engine refuses a program without properties.
    pub fn of_topics(names: impl Iterator<Item = String>) -> Result<Specification, CompileError> {
        let topic =
            |name: String| rondel_spec::Topic { address: name.clone(), name, type_name: None, schema: None };
        Specification::new(Spec { topics: names.map(topic).collect(), ..Spec::default() })
    }

    /// Whether there is an acceptance criterion.
    pub fn has_asserts(&self) -> bool {
        self.spec.properties.iter().any(|property| property.criterion.is_some())
    }

    /// Whether time alone decides verdicts.
    pub fn is_timed(&self) -> bool {
        !self.spec.machines.is_empty() || self.spec.properties.iter().any(|p| p.time != TimeModel::Steps)
    }
}

/// The names that recordings may have for a topic.
pub(crate) fn recorded_names(topic: &rondel_spec::Topic, input: &Input) -> Vec<String> {
    [&topic.name, &topic.address].into_iter().chain(&input.address).cloned().collect()
}

/// Topics under their names in recordings, name and address, with the fields to read.
pub(crate) fn trace_topics(spec: &Spec, projections: &[Projection], inputs: &[Input]) -> Vec<TraceTopic> {
    let topics = spec.topics.iter().zip(projections).zip(inputs);
    let topic = |(id, ((topic, projection), input)): (u32, ((&rondel_spec::Topic, &Projection), &Input))| {
        TraceTopic {
            names: recorded_names(topic, input),
            events: spec.events_topic(TopicId(id)),
            has_event: match &topic.schema {
                Some(schema) => schema.fields.iter().any(|(name, _)| name == "event"),
                // A type whose fields are not known here may have one.
                None => topic.type_name.is_some(),
            },
            projection: match input.number_texts {
                true => projection.with_number_texts(),
                false => projection.clone(),
            },
            time: match &input.time {
                TimeSource::Arrival => LineTime::Arrival,
                TimeSource::Source => LineTime::Recorded,
                TimeSource::Field(path) => LineTime::Field(path.clone()),
            },
            time_unit: input.time_unit,
            plain: (input.encoding == Encoding::Plain).then(|| Arc::clone(&input.words)),
        }
    };
    (0..).zip(topics).map(topic).collect()
}

/// Whether any formula has future operators; a quick test before [`looks_ahead`].
pub(crate) fn may_look_ahead(spec: &Spec) -> bool {
    spec.nodes.iter().any(|node| node.class() == Class::Future)
}

/// Whether a formula has future operators, so that its verdicts are about earlier times.
pub fn looks_ahead(spec: &Spec, formula: ExprId) -> bool {
    spec.below(formula).any(|(_, node)| node.class() == Class::Future)
}
