//! The short form of `rondel run`: a deployment of --topic and --publish.

use rondel_event::TimeUnit;
use rondel_runtime::Input;
use rondel_spec::Topic;

use super::Run;
use crate::deployment::{
    self, Address, Binding, Deployment, Typing, Unheard, check_time_field, spread, time_source, unheard,
};
use crate::output::Emit;
use crate::specification::Specification;
use crate::{complain, exit, warn};

impl Run {
    /// The deployment that the options describe.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub(super) fn short_form(&self) -> Result<Deployment, u8> {
        let wrong = |message: String| {
            complain(&message);
            exit::USAGE
        };
        let loaded =
            Specification::from_arguments(self.file.as_ref(), self.formula.as_deref(), &self.reading);
        let specification = loaded.map_err(|_| exit::USAGE)?;
        let topics = specification.spec.declared();
        let sources = self.sources(topics).map_err(wrong)?;
        let bindings = self.bindings(&specification, topics, sources).map_err(wrong)?;
        for Unheard { text, misleads, .. } in unheard(&specification.spec, &bindings) {
            if misleads {
                return Err(wrong(text));
            }
            warn(&text);
        }
        let mut places = Vec::new();
        for text in &self.publish {
            places.push(Address::parse_verdicts(text).map_err(|e| wrong(format!("--publish {text}: {e}")))?);
        }
        if places.is_empty() {
            places.push(Address::Stdout);
        }
        let sinks = spread(&places, &specification.spec.address_names())
            .map_err(|error| wrong(format!("--publish: {error}")))?;
        if let Some(error) = deployment::returns(bindings.iter().map(|b| &b.address), &sinks) {
            return Err(wrong(format!("--publish: {error}")));
        }
        let used = bindings.iter().map(|b| &b.address).chain(sinks.iter().flatten());
        let network = self.network.with_wait();
        let networks = network.settings(used).map_err(wrong)?;
        Ok(Deployment {
            emit: self.emit.unwrap_or(Emit::Change).into(),
            sinks,
            slow_consumer: network.slow_consumer.unwrap_or_default(),
            exit_on_unreachable: self.network.exit_on_unreachable,
            missing_after: Some(deployment::MISSING_AFTER),
            ..Deployment::of(specification, networks, bindings)
        })
    }

    /// The address of each topic, as far as --topic names it.
    fn sources(&self, topics: &[Topic]) -> Result<Vec<Option<Address>>, String> {
        let mut sources: Vec<Option<Address>> = vec![None; topics.len()];
        for text in &self.topic {
            let (index, address) = match text.split_once('=') {
                Some((name, address)) => match topics.iter().position(|t| t.name == name) {
                    Some(index) => (index, address),
                    None => {
                        return Err(format!("--topic {text}: the specification has no topic '{name}'"));
                    }
                },
                None if topics.len() == 1 => (0, text.as_str()),
                None => return Err(format!("--topic {text}: with several topics write NAME={text}")),
            };
            if sources[index].is_some() {
                return Err(format!("--topic {text}: topic '{}' has a source already", topics[index].name));
            }
            sources[index] =
                Some(Address::parse_source(address).map_err(|e| format!("--topic {text}: {e}"))?);
        }
        Ok(sources)
    }

    /// The source of each topic, with its type and the time of its messages.
    fn bindings(
        &self,
        specification: &Specification,
        topics: &[Topic],
        sources: Vec<Option<Address>>,
    ) -> Result<Vec<Binding>, String> {
        let mut bindings = Vec::new();
        for (topic, source) in topics.iter().zip(sources) {
            let Some(address) = source else {
                let name = if specification.is_formula { String::new() } else { format!("{}=", topic.name) };
                return Err(format!(
                    "topic '{}' has no source; add --topic {name}ADDRESS, where ADDRESS is zenoh:KEY, dds:TOPIC, \
                     ros2:/TOPIC or mqtt:TOPIC",
                    topic.name
                ));
            };
            if let Err(error) = check_time_field(topic, &self.time_from) {
                return Err(format!("--time-from {}: {error}", self.time_from));
            }
            let time_unit = deployment::time_unit(&self.time_unit).unwrap_or(TimeUnit::Seconds);
            let mut input = Input { time: time_source(&self.time_from), time_unit, ..Input::default() };
            let schemas = &*specification.schemas;
            let typing = Typing { topic: Some(topic), own: None, has_encoding: false, schemas };
            let completed = typing.complete(address, &mut input);
            let (address, warning) = completed.map_err(|why| format!("topic '{}': {why}", topic.name))?;
            warning.iter().for_each(|why| warn(&format!("topic '{}': {why}", topic.name)));
            bindings.push(Binding { address, input });
        }
        Ok(bindings)
    }
}
