//! Lines of `mosquitto_sub` whose payloads are packs of SenML.

use rondel_decode::Encoding;
use rondel_decode::lines::{Published, PublishedLine, find_topic, published};
use rondel_decode::senml::{self, PackWriter};
use rondel_event::{TimeUnit, Timestamp, TopicId};

use crate::session::SessionPlan;
use crate::specification::recorded_names;

/// Writes lines whose payloads are packs of SenML as lines with the events that these hold.
#[derive(Clone, Debug)]
pub struct PackLines {
    /// For each topic the names by which a line can call it.
    names: Vec<Vec<String>>,
    /// For each topic whose payloads are packs what writes them.
    writers: Vec<Option<PackWriter>>,
    unit: TimeUnit,
    event: Vec<u8>,
}

impl PackLines {
    /// `unit` is the unit of times beside the payloads. `None` if no topic of the plan has packs.
    pub fn new(plan: &SessionPlan, unit: TimeUnit) -> Option<PackLines> {
        let projections = plan.specification().program.projections();
        let topics = (0..).map(TopicId).zip(plan.specification().spec.declared()).zip(projections);
        let (mut names, mut writers) = (Vec::new(), Vec::new());
        for ((id, topic), projection) in topics {
            let input = plan.input(id)?;
            names.push(recorded_names(topic, input));
            let is_packed = input.encoding == Encoding::Senml;
            writers.push(is_packed.then(|| PackWriter::new(projection, input.time.field())));
        }
        let is_any = writers.iter().any(Option::is_some);
        is_any.then(|| PackLines { names, writers, unit, event: Vec::new() })
    }

    /// Writes whole lines after what is in `out`: each event of a pack as one, others as they are.
    pub fn rewrite(&mut self, lines: &[u8], out: &mut Vec<u8>) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if self.events(line, out).is_none() {
                out.extend_from_slice(line);
            }
        }
    }

    /// Writes the events of the pack that a line holds; `None`, and nothing, if it holds none.
    fn events(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<()> {
        line.windows(5).find(|part| part == b"\"tst\"")?;
        let Ok(PublishedLine::Message(message)) = published(line, self.unit, true) else { return None };
        let Published { topic: Some(topic), time, payload: Some(payload) } = message else { return None };
        let at = find_topic(self.names.iter().map(|names| &**names), &topic)?;
        let writer = self.writers.get_mut(at)?.as_mut()?;
        let now = time.unwrap_or(Timestamp::ZERO);
        let events = senml::split(&payload, now).unwrap_or_else(|| vec![payload.into_owned()]);
        let start = out.len();
        for event in &events {
            self.event.clear();
            if writer.write(event, now, usize::MAX, &mut self.event).is_err() {
                out.truncate(start);
                return None;
            }
            let topic = serde_json::Value::from(topic.as_str());
            out.extend_from_slice(format!("{{\"topic\":{topic},").as_bytes());
            if let Some(time) = time.map(Timestamp::as_nanos) {
                out.extend_from_slice(
                    format!("\"time\":\"{time} ns\",\"arrival\":\"{time} ns\",").as_bytes(),
                );
            }
            out.extend_from_slice(b"\"data\":");
            out.extend_from_slice(&self.event);
            out.extend_from_slice(b"}\n");
        }
        Some(())
    }
}
