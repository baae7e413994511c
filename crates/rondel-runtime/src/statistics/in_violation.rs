//! Total and longest time that a property was violated.
//!
//! A violation begins at the time point that a `violated` verdict is about, and lasts until that of the next other
//! verdict of the same property and instance, or to the end. Only received messages count: in these figures a violation
//! also ends where messages that the property reads were missed, and at the end of its instance.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

use foldhash::fast::RandomState;
use rondel_engine::{Monitor, Report, UnseenFrom, Withheld};
use rondel_event::{Timestamp, Verdict};
use rondel_spec::{Property, Spec, TimeModel};
use serde::{Deserialize, Serialize};

use crate::text::parameters_text;

/// Maximum number of instances measured at a time; the violations of further ones are not measured.
const INSTANCES: usize = 1 << 16;

/// The longest key of an instance that is measured, in words.
const LONGEST_KEY: usize = 64;

/// Time that a property was violated. Without times, or between simultaneous messages, no time passes; steps still do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InViolation {
    /// Total; the sum over several instances.
    pub total: Extent,
    /// The longest violation, the first of several.
    pub longest: Option<LongestViolation>,
    /// Whether it may have been longer: messages were missed meanwhile, or too many instances were violated at once.
    pub is_at_least: bool,
}

/// Duration in time and steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Extent {
    /// In nanoseconds.
    pub nanos: u64,
    /// In steps; 0 where steps are not counted.
    pub steps: u64,
}

/// The longest violation of a property.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LongestViolation {
    /// The parameters of the instance in brackets, or empty.
    pub parameters: String,
    /// The time that its first verdict is about.
    pub begin: Timestamp,
    /// The step at which it began, if there is one.
    pub step: Option<u64>,
    /// Its duration.
    pub extent: Extent,
}

impl Extent {
    fn add(&mut self, further: Extent) {
        self.nanos = self.nanos.saturating_add(further.nanos);
        self.steps = self.steps.saturating_add(further.steps);
    }
}

/// Measurement of the violations of a property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Measure {
    /// Not measured: verdicts about earlier times come later, and a chain has one for each stamp.
    #[default]
    None,
    /// In time.
    Time,
    /// In time and steps.
    Steps,
    /// In time, for each instance.
    Instances,
}

/// A violation that lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Violation {
    /// The time in nanoseconds.
    begin: i64,
    /// The number of the step.
    number: u64,
    /// Whether it began at that step.
    is_at_step: bool,
}

/// The violations of one property while a session lasts.
#[derive(Clone, Debug, Default)]
pub(super) struct Violations {
    measure: Measure,
    /// Whether the property has a verdict at every time, and not only at messages.
    is_dense: bool,
    /// Whether a violation lasts.
    lasts: bool,
    /// Boxed: most of thousands of changing properties need only the other fields.
    known: Box<Known>,
}

/// Measured violations of a property.
// Fields that the end of a violation uses come first, within one cache line: each of thousands of properties has its
// own.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct Known {
    /// The violation that lasts, if one does and it is not that of an instance.
    open: Violation,
    total: Extent,
    /// The extent of the longest; none before the first has ended.
    longest: Option<Extent>,
    is_at_least: bool,
    /// The parameters of the longest, and where it began.
    of_longest: (String, Violation),
    /// Violations of instances by parameter, with their slice.
    instances: HashMap<Key, (u32, Violation), RandomState>,
}

const _: () = assert!(std::mem::offset_of!(Known, is_at_least) <= 64);

impl Known {
    /// Adds a violation.
    #[inline]
    fn add(&mut self, violation: Violation, end: i64, step: u64, parameters: impl FnOnce() -> String) {
        let nanos = end.saturating_sub(violation.begin).max(0) as u64;
        let extent = Extent { nanos, steps: step.saturating_sub(violation.number) };
        self.total.add(extent);
        if self.longest.is_none_or(|longest| longest < extent) {
            self.longest = Some(extent);
            self.of_longest = (parameters(), violation);
        }
    }

    fn found(&self) -> InViolation {
        let (parameters, Violation { begin, number, is_at_step }) = &self.of_longest;
        let longest = self.longest.map(|extent| LongestViolation {
            parameters: parameters.clone(),
            begin: Timestamp::from_nanos(*begin),
            step: is_at_step.then_some(*number),
            extent,
        });
        InViolation { total: self.total, longest, is_at_least: self.is_at_least }
    }

    /// Adds those of a further recording.
    fn merge(&mut self, further: Known) {
        self.total.add(further.total);
        self.is_at_least |= further.is_at_least;
        if self.longest < further.longest {
            (self.longest, self.of_longest) = (further.longest, further.of_longest);
        }
    }
}

/// Parameters of an instance as words: most are short, and need no allocation.
#[derive(Clone, Debug)]
enum Key {
    Short(u8, [u64; SHORT]),
    Long(Box<[u64]>),
}

const SHORT: usize = 3;

impl From<&[u64]> for Key {
    fn from(words: &[u64]) -> Key {
        let mut short = [0; SHORT];
        match short.get_mut(..words.len()) {
            Some(room) => {
                room.copy_from_slice(words);
                Key::Short(words.len() as u8, short)
            }
            None => Key::Long(words.into()),
        }
    }
}

impl Borrow<[u64]> for Key {
    fn borrow(&self) -> &[u64] {
        match self {
            Key::Short(len, words) => &words[..usize::from(*len)],
            Key::Long(words) => words,
        }
    }
}

// Equal to the hash of the words, by which keys are looked up.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<[u64]>::borrow(self).hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        Borrow::<[u64]>::borrow(self) == Borrow::<[u64]>::borrow(other)
    }
}

impl Eq for Key {}

/// The end of what a monitor has evaluated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndOf {
    /// The time of the last event.
    pub(crate) event: Timestamp,
    /// The time up to which time passed without events.
    pub(crate) time: Timestamp,
    /// The number of steps.
    pub(crate) steps: u64,
}

impl Violations {
    /// For a property; `by_steps` is whether its verdicts hold from step to step, `looks_ahead` whether it has future
    /// operators.
    pub(super) fn of(spec: &Spec, property: &Property, by_steps: bool, looks_ahead: bool) -> Violations {
        let is_chain = spec.chains.iter().any(|chain| chain.name == property.name);
        let measure = match property.slice {
            _ if looks_ahead || is_chain || property.criterion.is_some() => Measure::None,
            Some(_) => Measure::Instances,
            None if by_steps => Measure::Steps,
            None => Measure::Time,
        };
        Violations { measure, is_dense: property.time == TimeModel::Dense, ..Violations::default() }
    }

    /// Measured violations; `None` where they are not measured.
    pub(super) fn found(&self) -> Option<InViolation> {
        (self.measure != Measure::None).then(|| self.known.found())
    }

    /// Number of instances that are violated now, where instances are measured.
    pub(super) fn violated_instances(&self) -> Option<u64> {
        (self.measure == Measure::Instances).then_some(self.known.instances.len() as u64)
    }

    /// Parameters of the instances that are violated now, where instances are measured.
    pub(super) fn violated_keys(&self) -> impl Iterator<Item = &[u64]> {
        self.known.instances.keys().map(Borrow::<[u64]>::borrow)
    }

    /// Takes a verdict about this time that differs from the one before it. The monitor is needed for instances.
    #[inline]
    pub(super) fn add(&mut self, report: &Report, about: Timestamp, monitor: Option<&Monitor>) {
        let is_violated = report.verdict == Verdict::Violated;
        // A property without violations costs no more than this.
        if self.measure == Measure::None || !is_violated && !self.lasts {
            return;
        }
        let time = match report.withheld {
            Withheld::FromNow => about.as_nanos().saturating_sub(1),
            _ => about.as_nanos(),
        };
        if self.measure == Measure::Instances {
            self.change_instance(report, time, monitor);
        } else if !is_violated {
            self.close(time, report.step);
        } else if !self.lasts {
            (self.known.open, self.lasts) = (began(report, time), true);
        }
    }

    #[inline(never)]
    fn change_instance(&mut self, report: &Report, time: i64, monitor: Option<&Monitor>) {
        let instance = monitor.and_then(|monitor| Some((monitor, monitor.instance(report)?)));
        let Some((monitor, (slice, key))) = instance else { return };
        if report.verdict != Verdict::Violated {
            self.close_instance(key, time, monitor);
            return;
        }
        let Known { is_at_least, instances, .. } = &mut *self.known;
        let has_room = instances.len() < INSTANCES && key.len() <= LONGEST_KEY;
        match instances.entry(Key::from(key)) {
            // The instance was created again after it had expired.
            Entry::Occupied(_) => {}
            Entry::Vacant(place) if has_room => drop(place.insert((slice, began(report, time)))),
            Entry::Vacant(_) => *is_at_least = true,
        }
        self.lasts = !instances.is_empty();
    }

    /// Ends the violation of an instance, if there is one.
    pub(super) fn close_instance(&mut self, key: &[u64], end: i64, monitor: &Monitor) {
        if let Some((slice, violation)) = self.known.instances.remove(key) {
            // Steps are those of all instances.
            let parameters = || parameters_text(&monitor.values_of(slice, key));
            self.known.add(violation, end, violation.number, parameters);
            self.lasts = !self.known.instances.is_empty();
        }
    }

    /// Ends the violation of the whole, which lasts.
    #[inline]
    fn close(&mut self, end: i64, step: u64) {
        let open = self.known.open;
        let step = if self.measure == Measure::Steps { step } else { open.number };
        self.known.add(open, end, step, String::new);
        self.lasts = false;
    }

    /// Ends all violations.
    fn close_all(&mut self, end: Timestamp, steps: u64, monitor: &Monitor) {
        let end = end.as_nanos();
        if self.measure != Measure::Instances {
            if self.lasts {
                self.close(end, steps);
            }
            return;
        }
        let mut keys: Vec<Vec<u64>> =
            self.known.instances.keys().map(|key| Borrow::<[u64]>::borrow(key).to_vec()).collect();
        // Which of several is the longest does not depend on the order of the map.
        let begin = |key: &[u64]| self.known.instances.get(key).map(|(_, violation)| violation.begin);
        keys.sort_by(|a, b| begin(a).cmp(&begin(b)).then_with(|| a.cmp(b)));
        keys.iter().for_each(|key| self.close_instance(key, end, monitor));
    }

    /// Ends all violations where messages that the property reads were missed: its truth is unknown from there on, even
    /// if its next verdict is the same.
    #[cold]
    pub(super) fn miss(&mut self, from: UnseenFrom, end: EndOf, monitor: &Monitor) {
        if !self.lasts {
            return;
        }
        let last = self.last(end);
        let time = match from {
            UnseenFrom::Time(time) => time.min(last),
            UnseenFrom::Count(_) => last,
        };
        self.known.is_at_least = true;
        self.close_all(time, end.steps, monitor);
    }

    /// Ends the recording.
    pub(super) fn end(&mut self, end: EndOf, monitor: &Monitor) {
        self.close_all(self.last(end), end.steps, monitor);
    }

    /// The last time at which there was a verdict.
    fn last(&self, end: EndOf) -> Timestamp {
        if self.is_dense { end.event.max(end.time) } else { end.event }
    }

    /// Adds those of a further recording.
    pub(super) fn merge(&mut self, further: Violations) {
        self.known.merge(*further.known);
    }
}

/// A violation that begins with a report, at this time.
#[inline]
fn began(report: &Report, time: i64) -> Violation {
    let is_at_step = report.at_event && report.about.is_none();
    Violation { begin: time, number: report.step, is_at_step }
}

/// [`Violations`] in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedViolations {
    total: Extent,
    longest: Option<(String, Violation, Extent)>,
    is_at_least: bool,
    open: Option<Violation>,
    instances: Vec<(Vec<u64>, u32, Violation)>,
}

impl Violations {
    pub(super) fn saved(&self) -> SavedViolations {
        let Known { open, total, longest, is_at_least, of_longest, instances } = &*self.known;
        let longest = longest.map(|longest| (of_longest.0.clone(), of_longest.1, longest));
        let mut instances: Vec<_> = instances
            .iter()
            .map(|(key, (slice, violation))| (Borrow::<[u64]>::borrow(key).to_vec(), *slice, *violation))
            .collect();
        // Equal states have equal snapshots.
        instances.sort_by(|a, b| a.0.cmp(&b.0));
        let open = (self.lasts && self.measure != Measure::Instances).then_some(*open);
        SavedViolations { total: *total, longest, is_at_least: *is_at_least, open, instances }
    }

    pub(super) fn restore(&mut self, saved: SavedViolations) {
        let SavedViolations { total, longest, is_at_least, open, instances } = saved;
        let instance =
            |(key, slice, violation): (Vec<u64>, u32, Violation)| (Key::from(&key[..]), (slice, violation));
        let mut known = Known { total, is_at_least, ..Known::default() };
        if let Some((parameters, violation, extent)) = longest {
            (known.longest, known.of_longest) = (Some(extent), (parameters, violation));
        }
        match self.measure {
            Measure::Instances => {
                known.instances = instances.into_iter().take(INSTANCES).map(instance).collect();
                self.lasts = !known.instances.is_empty();
            }
            _ => {
                known.open = open.unwrap_or_default();
                self.lasts = open.is_some();
            }
        }
        *self.known = known;
    }
}
