//! The fields that properties read, decoded from copied messages as the run decodes them.

use rondel_decode::Decoder;
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Segment, Slot, Timestamp, TopicId, TypeIndex, Value,
    ValueType,
};
use rondel_page::foxglove::Schema;
use rondel_runtime::text::beginning;
use rondel_runtime::{Input, TimeSource};
use rondel_spec::Expr;
use serde_json::{Map, Value as Json};

use super::channels::{insert, signal_schema, stamp};
use super::copies::CopiedMessage;
use crate::deployment::Deployment;
use crate::live::pipeline::Pipeline;

/// Maximum length of a text, in bytes.
const TEXT: usize = 256;

/// The fields of a topic.
pub(super) struct SignalTopic {
    name: String,
    /// The subscription.
    slot: TopicId,
    input: Input,
    fields: Vec<SignalField>,
    projection: Projection,
    decoder: Decoding,
    block: Block,
}

/// A field of a message.
struct SignalField {
    /// Its names, from the outermost one on.
    names: Vec<String>,
    value_type: ValueType,
    slot: Slot,
}

/// State of the decoder of a topic.
enum Decoding {
    /// The type is not known yet, or nothing was received.
    Awaiting,
    Ready(Box<Decoder>),
    /// The type has none of the fields.
    Impossible,
}

impl SignalTopic {
    /// The topics of a deployment; `None` where properties read no field. `slots` has the subscription to each.
    pub(super) fn all(deployment: &Deployment, slots: &[TopicId]) -> Vec<Option<SignalTopic>> {
        let spec = &deployment.specification.spec;
        let mut fields: Vec<Vec<(Path, ValueType)>> = vec![Vec::new(); deployment.sources.len()];
        for property in &spec.properties {
            for (_, node) in spec.below_with_machines([property.formula]) {
                if let Expr::Field { topic, path, value_type } = node
                    && is_of_one_element(path)
                    // Events of topics are no messages.
                    && let Some(own) = fields.get_mut(topic.index())
                    && own.iter().all(|(known, _)| known != path)
                {
                    own.push((path.clone(), *value_type));
                }
            }
        }
        let declared = spec.declared().iter().zip(&deployment.sources).zip(slots);
        let topics = declared.zip(fields).map(|(((topic, binding), slot), fields)| {
            (!fields.is_empty()).then(|| SignalTopic::new(&topic.name, *slot, &binding.input, fields))
        });
        topics.collect()
    }

    fn new(name: &str, slot: TopicId, input: &Input, fields: Vec<(Path, ValueType)>) -> SignalTopic {
        let mut layout = Layout { topics: 1, ..Layout::default() };
        let next = |count: &mut usize| {
            *count += 1;
            *count as u32 - 1
        };
        let (mut projection, mut own) = (Projection::default(), Vec::new());
        for (path, value_type) in fields {
            let slot = match value_type {
                ValueType::Bool => Slot::Bool(next(&mut layout.bools)),
                ValueType::Int | ValueType::Time | ValueType::Duration => Slot::Int(next(&mut layout.ints)),
                ValueType::Float => Slot::Float(next(&mut layout.floats)),
                ValueType::String => Slot::String(next(&mut layout.strings)),
            };
            own.push(SignalField { names: names(&path), value_type, slot });
            projection.fields.push(Field { path, read: Read::Value(value_type), slot, exact: false });
        }
        if input.number_texts {
            projection = projection.with_number_texts();
        }
        SignalTopic {
            name: name.to_owned(),
            slot,
            input: input.clone(),
            fields: own,
            projection,
            decoder: Decoding::Awaiting,
            block: Block::new(layout),
        }
    }

    /// The name of the topic.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The type of its signals.
    pub(super) fn schema(&self) -> Schema {
        signal_schema(&self.name, self.fields.iter().map(|field| (&field.names[..], field.value_type)))
    }

    /// Reads a message. Returns its time and its fields as JSON; `None` if it cannot be decoded or has none of them.
    pub(super) fn read(
        &mut self,
        message: &CopiedMessage,
        pipeline: &Pipeline,
    ) -> Option<(Timestamp, Vec<u8>)> {
        // The types of other publishers may lack the fields.
        if message.of_type != TypeIndex::default() {
            return None;
        }
        if matches!(self.decoder, Decoding::Awaiting) {
            self.prepare(pipeline);
        }
        let Decoding::Ready(decoder) = &mut self.decoder else { return None };
        let time = match &self.input.time {
            TimeSource::Source => message.source.unwrap_or(message.arrival),
            TimeSource::Arrival | TimeSource::Field(_) => message.arrival,
        };
        self.block.clear();
        decoder.decode(&message.payload, time, &mut self.block).ok()?;
        let row = self.block.len().checked_sub(1)?;
        let time = self.block.time(row);
        let mut values = Map::new();
        for SignalField { names, value_type, slot } in &self.fields {
            let value = self.block.value(*slot, *value_type, row).flatten();
            if let Some(value) = value.and_then(|value| json(&value)) {
                insert(&mut values, names, value);
            }
        }
        if values.is_empty() {
            return None;
        }
        values.entry("timestamp").or_insert_with(|| stamp(time));
        Some((time, Json::Object(values).to_string().into_bytes()))
    }

    /// Makes the decoder, once the type is known.
    fn prepare(&mut self, pipeline: &Pipeline) {
        if self.input.awaits_type() {
            self.input.message_type = pipeline.resolved_type(self.slot);
            if self.input.awaits_type() {
                return;
            }
        }
        // The block has one topic.
        let (input, topic) = (&self.input, TopicId(0));
        let known_fields = || {
            let message_type = input.message_type.as_deref();
            let (time, unit) = (input.time.field(), input.time_unit);
            Decoder::of_known_fields(input.encoding, message_type, topic, &self.projection, time, unit)
        };
        let decoder = input.decoder(topic, &self.projection);
        let decoder = decoder.or_else(|_| known_fields().map(|(decoder, _)| decoder));
        self.decoder = decoder.map_or(Decoding::Impossible, |decoder| Decoding::Ready(Box::new(decoder)));
    }
}

/// Whether a path names one element of each array. Instances read their own elements by tables.
fn is_of_one_element(path: &Path) -> bool {
    !path.0.iter().any(|segment| matches!(segment, Segment::Named(named) if named.parameter.is_some()))
}

/// The names of a path, as members of nested objects.
fn names(path: &Path) -> Vec<String> {
    let name = |segment: &Segment| match segment {
        Segment::Key(key) => key.to_string(),
        Segment::Index(index) => index.to_string(),
        Segment::FromEnd(index) => format!("-{index}"),
        Segment::Named(named) => named.to_string(),
    };
    match path.0.is_empty() {
        true => vec!["value".to_owned()],
        false => path.0.iter().map(name).collect(),
    }
}

/// A value for plots: times and durations in seconds. JSON has no number that is not finite.
fn json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Bool(truth) => Json::from(*truth),
        Value::Int(number) => Json::from(*number),
        Value::Float(number) => return number.is_finite().then(|| Json::from(*number)),
        Value::Time(nanos) | Value::Duration(nanos) => Json::from(*nanos as f64 / 1e9),
        Value::String(text) => Json::from(beginning(text, TEXT)),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_plots() {
        assert_eq!(json(&Value::Duration(1_500_000_000)), Some(Json::from(1.5)));
        assert_eq!(json(&Value::Float(f64::NAN)), None);
        let long = json(&Value::String("ä".repeat(1000).into())).unwrap();
        assert_eq!(long.as_str().unwrap().len(), TEXT);
        assert_eq!(names(&Path::keys(["pose", "x"])), ["pose", "x"]);
        assert_eq!(names(&Path::default()), ["value"]);
        assert_eq!(names(&Path(vec![Segment::Key("a".into()), Segment::FromEnd(1)])), ["a", "-1"]);
    }
}
