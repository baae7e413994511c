//! Measurements of a sample: messages through a session, its state at several rates, snapshots, recoveries.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use rondel_decode::{Decoder, Encoding};
use rondel_event::{Block, NameId, Path, Read, Slot, Timestamp, TopicId, Value, ValueType};
use rondel_runtime::text::parameters_text;
use rondel_runtime::{Session, SessionPlan, Stamp};
use rondel_spec::{Reach, ReachPart, Spec, TimeModel};

use super::plan::{Line, StateFigures, Timing};
use crate::commands::check::{Sample, SampledMessage};

/// Number of repetitions whose median is taken.
pub const REPETITIONS: usize = 5;
/// Messages of a repetition, at least: shorter ones are as long as the resolution of the clock and interrupts.
const SHORTEST: u64 = 5_000;
/// Rates at which the state is measured, as shares of the greatest one.
const RATES: [f64; 3] = [0.25, 0.5, 1.0];
/// State in a snapshot, in bytes, below which its time is almost that of an empty one.
pub const SMALLEST_STATE: f64 = 16_384.0;
/// The time of the first message.
const BEGIN_NS: i64 = 1_000_000_000;

/// A sample that can be pushed again and again, with its times stretched.
pub struct Workload<'s> {
    sample: &'s Sample,
    /// Time of each message after the first one, in nanoseconds.
    offsets: Vec<f64>,
    /// Time from the begin of the sample to that of its repetition, in nanoseconds.
    span_ns: f64,
    /// Whether the messages have times of their own.
    pub is_timed: bool,
}

/// Cost of a message, medians in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Decoding.
    pub decode_ns: f64,
    /// Everything else in the session.
    pub evaluate_ns: f64,
    /// Number of messages of each repetition.
    pub messages: u64,
    /// Messages that could not be decoded in one repetition.
    pub undecodable: u64,
}

/// The state at one rate.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Messages per second of a key.
    pub rate: f64,
    /// Number of messages.
    pub messages: u64,
    /// Whether the messages last as long as properties remember.
    pub is_full: bool,
    /// Number of instances at the end.
    pub instances: u64,
    /// Their memory in bytes; without `for each` the size of the snapshot.
    pub bytes: f64,
    /// Size of the snapshot, in bytes.
    pub snapshot_bytes: f64,
    /// Time to make it, in nanoseconds.
    pub snapshot_ns: f64,
    /// Time to restore it, in nanoseconds.
    pub recovery_ns: f64,
}

impl<'s> Workload<'s> {
    /// The workload of a sample, which has messages. Those without times are spread evenly.
    pub fn new(sample: &'s Sample) -> Workload<'s> {
        let time = |message: &SampledMessage| message.time.as_nanos();
        let count = sample.messages.len().max(1) as f64;
        let first = sample.messages.first().map_or(0, time);
        let span = sample.messages.last().map_or(0, time).saturating_sub(first) as f64;
        let is_timed = span > 0.0;
        let offsets = sample.messages.iter().enumerate().map(|(i, message)| match is_timed {
            true => time(message).saturating_sub(first) as f64,
            false => i as f64 * 1e6,
        });
        let span_ns = if is_timed { span * count / (count - 1.0).max(1.0) } else { count * 1e6 };
        Workload { sample, offsets: offsets.collect(), span_ns, is_timed }
    }

    /// Number of messages.
    pub fn count(&self) -> u64 {
        self.sample.messages.len() as u64
    }

    /// Messages per second of the sample.
    pub fn rate(&self) -> f64 {
        self.count() as f64 * 1e9 / self.span_ns
    }

    /// Pushes messages from the `from`th one on, with their times stretched; returns how many cannot be decoded.
    fn push(&self, session: &mut Session, from: u64, count: u64, stretch: f64) -> u64 {
        let mut undecodable = 0;
        for at in from..from + count {
            let (pass, i) = (at / self.count(), (at % self.count()) as usize);
            let after = (pass as f64 * self.span_ns + self.offsets[i]) * stretch;
            let time = Timestamp::from_nanos(BEGIN_NS.saturating_add(after as i64));
            let SampledMessage { topic, name, of_type, payload, .. } = &self.sample.messages[i];
            let (source, arrival) = (Some(time), Some(time));
            let stamp = Stamp { source, arrival, name: *name, of_type: *of_type, ..Stamp::default() };
            undecodable += u64::from(session.push(*topic, stamp, payload).is_err());
            if at % 64 == 63 {
                drain(session);
            }
        }
        session.flush();
        drain(session);
        undecodable
    }

    /// Factor of times at which `keys` keys have this rate each.
    fn stretch(&self, keys: u64, rate: f64) -> f64 {
        self.rate() / (rate * keys.max(1) as f64)
    }

    /// Measures the cost of a message, where `keys` keys have this rate each.
    ///
    /// # Errors
    /// A sentence if the session does not start.
    pub fn cost(&self, keys: u64, rate: f64) -> Result<Cost, String> {
        let (messages, stretch) = (self.count().max(SHORTEST), self.stretch(keys, rate));
        let mut session = self.sample.plan.start().map_err(|error| error.to_string())?;
        let mut decoding = Decoding::new(&self.sample.plan);
        // Decoders know the shapes of messages, and instances exist, after the first turn.
        let mut undecodable = self.push(&mut session, 0, messages, stretch);
        decoding.decode(self, messages);
        let (mut whole, mut decoded) = (Vec::new(), Vec::new());
        for turn in 1..=REPETITIONS as u64 {
            let started = Instant::now();
            undecodable = self.push(&mut session, turn * messages, messages, stretch);
            whole.push(started.elapsed().as_nanos() as f64 / messages as f64);
            let started = Instant::now();
            decoding.decode(self, messages);
            decoded.push(started.elapsed().as_nanos() as f64 / messages as f64);
        }
        let (whole, decode_ns) = (median(&mut whole), median(&mut decoded));
        // Decoding alone may take longer than beside an evaluation that waits for memory.
        let decode_ns = decode_ns.min(whole);
        Ok(Cost { decode_ns, evaluate_ns: whole - decode_ns, messages, undecodable })
    }

    /// Measures a session without messages: the size and the times of its snapshot.
    ///
    /// # Errors
    /// A sentence if a session does not start or restore.
    pub fn empty(&self) -> Result<Fill, String> {
        let mut session = self.sample.plan.start().map_err(|error| error.to_string())?;
        self.fill(&mut session, 0.0, 0, 0.0)
    }

    /// Measures the state of `keys` keys at some rates of a key up to `rate`, or up to the greatest one at which `most`
    /// messages last for `horizon`.
    ///
    /// # Errors
    /// A sentence if a session does not start or restore.
    pub fn fills(
        &self,
        keys: u64,
        rate: f64,
        horizon: Horizon,
        most: u64,
        empty: &Fill,
    ) -> Result<Vec<Fill>, String> {
        let (keys_f, seconds) = (keys.max(1) as f64, horizon.ns as f64 / 1e9);
        let possible = if seconds > 0.0 { most as f64 / (keys_f * seconds) } else { rate };
        let greatest = rate.min(possible);
        let shares: &[f64] = if seconds > 0.0 { &RATES } else { &[1.0] };
        let mut fills = Vec::new();
        for share in shares {
            let rate = greatest * share;
            let lasting = (rate * keys_f * seconds) as u64;
            let needed = lasting.max(horizon.steps.saturating_mul(keys));
            // Every key at least once.
            let messages = needed.clamp(self.count(), most.max(self.count()));
            let stretch = self.stretch(keys, rate);
            let mut session = self.sample.plan.start().map_err(|error| error.to_string())?;
            self.push(&mut session, 0, messages, stretch);
            let fill = self.fill(&mut session, rate, messages, empty.snapshot_bytes)?;
            fills.push(Fill { is_full: messages >= needed, ..fill });
        }
        Ok(fills)
    }

    /// Measures the state of a session; `empty_bytes` of its snapshot are there without messages.
    fn fill(
        &self,
        session: &mut Session,
        rate: f64,
        messages: u64,
        empty_bytes: f64,
    ) -> Result<Fill, String> {
        let present = session.present();
        let (mut made, mut restored, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let started = Instant::now();
            bytes = session.snapshot("");
            made.push(started.elapsed().as_nanos() as f64);
            let started = Instant::now();
            let again = self.sample.plan.restore(&bytes, "").map_err(|error| error.to_string())?;
            restored.push(started.elapsed().as_nanos() as f64);
            drop(black_box(again));
        }
        let snapshot_bytes = (bytes.len() as f64 - empty_bytes).max(1.0);
        let has_instances = present.instances > 0 || present.bytes > 0;
        Ok(Fill {
            rate,
            messages,
            is_full: true,
            instances: present.instances,
            bytes: if has_instances { present.bytes as f64 } else { snapshot_bytes },
            snapshot_bytes,
            snapshot_ns: median(&mut made),
            recovery_ns: median(&mut restored),
        })
    }

    /// Number of different keys in the messages: the most parameters of one `for each`.
    pub fn keys(&self) -> u64 {
        let plan = &self.sample.plan;
        let spec = &plan.specification().spec;
        let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); spec.slices.len()];
        let mut decoding = Decoding::new(plan);
        let places = Places::of(spec, plan);
        for message in &self.sample.messages {
            decoding.block.clear();
            if !decoding.one(message, Timestamp::from_nanos(BEGIN_NS)) {
                continue;
            }
            for (seen, place) in seen.iter_mut().zip(&places) {
                seen.extend(
                    place.parameters(message, &decoding.block).map(|values| parameters_text(&values)),
                );
            }
        }
        seen.iter().map(HashSet::len).max().unwrap_or(0) as u64
    }
}

/// Takes reports and notices, as any driver of a session does.
fn drain(session: &mut Session) {
    if session.has_reports() {
        black_box(session.reports().count());
    }
    if session.has_notices() {
        black_box(session.notices().count());
    }
}

/// Median of numbers; 0 of none.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Places of the parameters of one `for each`: for each parameter and topic a column, or the name of the message.
struct Places {
    keys: Vec<Vec<(TopicId, Place)>>,
}

#[derive(Clone, Copy)]
enum Place {
    Column(Slot, ValueType),
    Name,
}

impl Places {
    fn of(spec: &Spec, plan: &SessionPlan) -> Vec<Places> {
        let projections = plan.specification().program.projections();
        let place = |topic: TopicId, path: &Path, value_type: ValueType| {
            if is_named(spec, topic, path) && plan.names(topic).is_some() {
                return Some(Place::Name);
            }
            let fields = &projections.get(topic.index())?.fields;
            let field = fields.iter().find(|field| {
                field.path == *path && matches!(field.read, Read::Value(_) | Read::Number(_))
            })?;
            Some(Place::Column(field.slot, value_type))
        };
        let of_slice = |slice: &rondel_spec::Slice| {
            let of_key = |key: &rondel_spec::Key| {
                let places = key.fields.iter();
                places
                    .filter_map(|(topic, path)| Some((*topic, place(*topic, path, key.value_type)?)))
                    .collect()
            };
            Places { keys: slice.keys.iter().map(of_key).collect() }
        };
        spec.slices.iter().map(of_slice).collect()
    }

    /// The parameters of a message, which is in the first row of the block; `None` if it has none.
    fn parameters(&self, message: &SampledMessage, block: &Block) -> Option<Vec<Value>> {
        let value = |places: &Vec<(TopicId, Place)>| {
            let (_, place) = places.iter().find(|(topic, _)| *topic == message.topic)?;
            match place {
                Place::Column(slot, value_type) => block.value(*slot, *value_type, 0)?,
                Place::Name => message.name.map(|NameId(number)| Value::Int(number.into())),
            }
        };
        self.keys.iter().map(value).collect()
    }
}

/// Whether a field is a parameter of the address of its topic.
pub fn is_named(spec: &Spec, topic: TopicId, path: &Path) -> bool {
    let pattern = spec.topics.get(topic.index()).and_then(rondel_spec::Topic::pattern);
    pattern.is_some_and(|pattern| pattern.parameters().any(|name| Path::keys([name]) == *path))
}

/// Decoders of all topics, and the block that they fill.
struct Decoding {
    /// For each topic one for each type.
    decoders: Vec<Vec<Option<Decoder>>>,
    block: Block,
}

impl Decoding {
    fn new(plan: &SessionPlan) -> Decoding {
        let program = &plan.specification().program;
        let topics = program.projections().iter().zip((0..).map(TopicId));
        let of_topic = |(fields, topic): (&rondel_event::Projection, TopicId)| {
            let Some(input) = plan.input(topic) else { return Vec::new() };
            let (time, unit) = (input.time.field(), input.time_unit);
            let own = (input.encoding, input.message_type.as_deref());
            let further = input.further.iter().map(|of| (of.encoding, of.message_type.as_deref()));
            let decoder = |(encoding, message_type)| match encoding {
                Encoding::Plain => input.decoder(topic, fields).ok(),
                _ => {
                    let known = Decoder::of_known_fields(encoding, message_type, topic, fields, time, unit);
                    known.ok().map(|(decoder, _)| decoder)
                }
            };
            std::iter::once(own).chain(further).map(decoder).collect()
        };
        Decoding { decoders: topics.map(of_topic).collect(), block: Block::new(program.layout()) }
    }

    /// Decodes a message into the block, and returns whether it could be.
    fn one(&mut self, message: &SampledMessage, time: Timestamp) -> bool {
        let of_topic = self.decoders.get_mut(message.topic.index());
        let decoder =
            of_topic.and_then(|of_topic| of_topic.get_mut(usize::from(message.of_type.0))?.as_mut());
        decoder.is_some_and(|decoder| decoder.decode(&message.payload, time, &mut self.block).is_ok())
    }

    /// Decodes this number of messages of a workload, from the first one on.
    fn decode(&mut self, workload: &Workload<'_>, count: u64) {
        for at in 0..count {
            if self.block.is_full() {
                black_box(&self.block);
                self.block.clear();
            }
            let i = (at % workload.count()) as usize;
            let time = Timestamp::from_nanos(BEGIN_NS.saturating_add(workload.offsets[i] as i64));
            self.one(&workload.sample.messages[i], time);
        }
    }
}

/// The past and the future that properties remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// Longest time, in nanoseconds.
    pub ns: u64,
    /// Greatest number of steps.
    pub steps: u64,
    /// Whether an operator has no bound.
    pub is_unbounded: bool,
}

impl Horizon {
    /// The longest bounds of a specification.
    pub fn of(spec: &Spec) -> Horizon {
        let mut longest = Horizon::default();
        for property in &spec.properties {
            let reach = spec.reach(property);
            // An endless look-ahead saturates the sum, and fills no window.
            let ahead = Some(reach.ahead).filter(|ahead| *ahead < u64::MAX);
            let own = back(&reach).saturating_add(ahead.unwrap_or(0));
            longest.is_unbounded |= reach.is_unbounded() || ahead.is_none();
            match property.time {
                TimeModel::Steps => longest.steps = longest.steps.max(own),
                TimeModel::Points | TimeModel::Dense => longest.ns = longest.ns.max(own),
            }
        }
        longest
    }

    /// This horizon with another time: at most the longest bound, beyond which windows hold nothing, if all have one.
    pub fn with_time(self, ns: u64) -> Horizon {
        Horizon { ns: if self.is_unbounded { ns } else { ns.min(self.ns) }, ..self }
    }
}

/// Distance that a property looks back, without parts that look back for ever: their state does not grow.
fn back(reach: &Reach) -> u64 {
    let distance = |part: &ReachPart| match part {
        ReachPart::Later(_, by) => *by,
        _ => 0,
    };
    reach.back().unwrap_or_else(|| reach.parts.iter().map(distance).max().unwrap_or(0))
}

/// Figures of the state from fills with this number of keys, and from a session without messages.
pub fn state_figures(fills: &[Fill], empty: &Fill, keys: u64) -> StateFigures {
    let keys = keys.max(1) as f64;
    let line = |of: &dyn Fn(&Fill) -> f64| {
        let points: Vec<(f64, f64)> = fills.iter().map(|fill| (fill.rate, of(fill) / keys)).collect();
        Line::fit(&points)
    };
    // The largest fill: constant parts weigh least there.
    let largest = fills.last();
    let timing = |of: &dyn Fn(&Fill) -> f64| {
        let fixed_ns = of(empty);
        let byte_ns = largest.map_or(0.0, |fill| (of(fill) - fixed_ns).max(0.0) / fill.snapshot_bytes);
        Timing { fixed_ns, byte_ns }
    };
    StateFigures {
        memory: line(&|fill| fill.bytes),
        snapshot: line(&|fill| fill.snapshot_bytes),
        making: timing(&|fill| fill.snapshot_ns),
        recovery: timing(&|fill| fill.recovery_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizon_is_the_longest_bound() {
        let horizon = |text: &str| Horizon::of(&rondel_spec::parse(text).spec.unwrap());
        let timed = "topic a { x: float, y: float } property p = a.x > 1 -> once[0, 10 s] (a.y > 1)
                     property q = a.x > 1 -> eventually[0, 2 s] (a.y > 1)";
        let bounded = Horizon { ns: 10_000_000_000, steps: 0, is_unbounded: false };
        assert_eq!(horizon(timed), bounded);
        // No window holds more than its bound.
        assert_eq!(bounded.with_time(3_600_000_000_000), bounded);
        assert_eq!(bounded.with_time(1_000_000_000).ns, 1_000_000_000);
        let steps = horizon("topic a { x: float } property p = once[0, 7] (a.x > 1)");
        assert!(steps.steps >= 7 && steps.ns == 0, "{steps:?}");
        // It is one bit, however long ago.
        let once = horizon("topic a { x: float } property p = once (a.x > 1)");
        assert_eq!(once, Horizon { is_unbounded: true, ..Horizon::default() });
        assert_eq!(once.with_time(3_600_000_000_000).ns, 3_600_000_000_000);
    }

    #[test]
    fn median_ignores_outliers() {
        assert_eq!(median(&mut [9.0, 1.0, 2.0, 1e9, 3.0]), 3.0);
        assert_eq!(median(&mut []), 0.0);
    }

    #[test]
    fn figures_are_those_of_a_key() {
        let fill = |rate: f64, bytes: f64| Fill {
            rate,
            messages: 100,
            is_full: true,
            instances: 10,
            bytes,
            snapshot_bytes: bytes / 2.0,
            snapshot_ns: bytes,
            recovery_ns: 2.0 * bytes,
        };
        let fills = [fill(1.0, 1100.0), fill(2.0, 1200.0), fill(4.0, 1400.0)];
        let figures = state_figures(&fills, &fill(0.0, 0.0), 10);
        let is_near = |x: f64, y: f64| (x - y).abs() < 1e-6;
        assert!(is_near(figures.memory.at(1.0), 110.0) && is_near(figures.memory.at(8.0), 180.0));
        assert!(is_near(figures.snapshot.at(4.0), 70.0), "{figures:?}");
        assert!(is_near(figures.making.byte_ns, 2.0) && is_near(figures.recovery.byte_ns, 4.0));
        // Half of the time of the largest one passes without state, too.
        let Timing { fixed_ns, byte_ns } = state_figures(&fills, &fill(0.0, 700.0), 10).making;
        assert!(is_near(fixed_ns, 700.0) && is_near(byte_ns, 1.0));
    }
}
