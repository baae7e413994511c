//! For how long a property was violated.
//!
//! A violation begins at the time point that a `violated` verdict is about, and lasts until that of the next other
//! verdict of the same property and instance, or to the end. Only what was seen counts: a violation also ends, for
//! these figures, where messages that its property reads were not seen, and at the end of its instance.

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

/// The most instances that are measured at a time; the violations of further ones are not.
const INSTANCES: usize = 1 << 16;

/// The longest key of an instance that is measured, in words.
const LONGEST_KEY: usize = 64;

/// For how long a property was violated. Without times, or where messages have the same time, no time passes; steps
/// still do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InViolation {
    /// In all; of several instances the sum.
    pub total: Extent,
    /// The longest violation, the first of several.
    pub longest: Option<LongestViolation>,
    /// Whether it may have been longer: messages were not seen meanwhile, or too many instances were violated at once.
    pub is_at_least: bool,
}

/// How long something lasted.
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
    /// How long it lasted.
    pub extent: Extent,
}

impl InViolation {
    /// Adds a violation.
    fn add(&mut self, from: Violation, end: Timestamp, step: u64, parameters: impl FnOnce() -> String) {
        let nanos = end.as_nanos().saturating_sub(from.begin).max(0) as u64;
        let extent = Extent { nanos, steps: step.saturating_sub(from.number) };
        self.total.add(extent);
        if self.longest.as_ref().is_none_or(|longest| longest.extent < extent) {
            self.longest = Some(LongestViolation {
                parameters: parameters(),
                begin: Timestamp::from_nanos(from.begin),
                step: from.step,
                extent,
            });
        }
    }

    /// Adds that of a further recording.
    fn merge(&mut self, further: InViolation) {
        self.total.add(further.total);
        self.is_at_least |= further.is_at_least;
        let is_longer = |further: &LongestViolation| {
            self.longest.as_ref().is_none_or(|longest| longest.extent < further.extent)
        };
        if further.longest.as_ref().is_some_and(is_longer) {
            self.longest = further.longest;
        }
    }
}

impl Extent {
    fn add(&mut self, further: Extent) {
        self.nanos = self.nanos.saturating_add(further.nanos);
        self.steps = self.steps.saturating_add(further.steps);
    }
}

/// How the violations of a property are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Measure {
    /// They are not: verdicts about earlier times come later, and a chain has one for each stamp.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Violation {
    /// The time in nanoseconds.
    begin: i64,
    /// The number of the step.
    number: u64,
    /// The step to show.
    step: Option<u64>,
}

/// The violations of one property while a session lasts.
#[derive(Clone, Debug, Default)]
pub(super) struct Violations {
    measure: Measure,
    /// Whether the property has a verdict at every time, and not only at messages.
    is_dense: bool,
    /// Whether a violation lasts.
    lasts: bool,
    /// Apart: of thousands of properties that change, most need the rest only.
    known: Box<Known>,
}

/// What is known of the violations of a property.
#[derive(Clone, Debug, Default)]
struct Known {
    found: InViolation,
    open: Option<Violation>,
    /// Those of instances, by their keys, with the division by key.
    instances: HashMap<Key, (u32, Violation), RandomState>,
}

/// The key of an instance: most are short, and need no memory of their own.
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

// As of the words, by which it is looked up.
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

    /// What was found; `None` where it is not measured.
    pub(super) fn found(&self) -> Option<&InViolation> {
        (self.measure != Measure::None).then_some(&self.known.found)
    }

    /// Takes a verdict that differs from the one before it. The monitor is needed for instances.
    #[inline]
    pub(super) fn add(&mut self, report: &Report, monitor: Option<&Monitor>) {
        let is_violated = report.verdict == Verdict::Violated;
        // A property that is not violated costs no more than this.
        if self.measure != Measure::None && (is_violated || self.lasts) {
            self.change(report, is_violated, monitor);
        }
    }

    fn change(&mut self, report: &Report, is_violated: bool, monitor: Option<&Monitor>) {
        let behind = i64::from(report.withheld == Withheld::FromNow);
        let time = report.about.unwrap_or(report.time).as_nanos().saturating_sub(behind);
        let step = (report.at_event && report.about.is_none()).then_some(report.step);
        let violation = Violation { begin: time, number: report.step, step };
        if self.measure != Measure::Instances {
            if is_violated {
                self.known.open.get_or_insert(violation);
                self.lasts = true;
            } else {
                self.close(Timestamp::from_nanos(time), report.step);
            }
            return;
        }
        let Some((monitor, (slice, key))) =
            monitor.and_then(|monitor| Some((monitor, monitor.instance(report)?)))
        else {
            return;
        };
        if !is_violated {
            self.close_instance(key, Timestamp::from_nanos(time), monitor);
            return;
        }
        let Known { found, instances, .. } = &mut *self.known;
        let has_room = instances.len() < INSTANCES && key.len() <= LONGEST_KEY;
        match instances.entry(Key::from(key)) {
            // It began anew after it had expired.
            Entry::Occupied(_) => {}
            Entry::Vacant(place) if has_room => drop(place.insert((slice, violation))),
            Entry::Vacant(_) => found.is_at_least = true,
        }
        self.lasts = !instances.is_empty();
    }

    /// Ends the violation of an instance, if there is one.
    pub(super) fn close_instance(&mut self, key: &[u64], end: Timestamp, monitor: &Monitor) {
        let Known { found, instances, .. } = &mut *self.known;
        if let Some((slice, violation)) = instances.remove(key) {
            // Steps are those of all instances.
            let parameters = || parameters_text(&monitor.values_of(slice, key));
            found.add(violation, end, violation.number, parameters);
            self.lasts = !instances.is_empty();
        }
    }

    /// Ends the violation of the whole, if there is one.
    fn close(&mut self, end: Timestamp, step: u64) {
        if let Some(violation) = self.known.open.take() {
            let step = if self.measure == Measure::Steps { step } else { violation.number };
            self.known.found.add(violation, end, step, String::new);
            self.lasts = false;
        }
    }

    fn close_all(&mut self, end: Timestamp, steps: u64, monitor: &Monitor) {
        self.close(end, steps);
        let mut keys: Vec<Vec<u64>> =
            self.known.instances.keys().map(|key| Borrow::<[u64]>::borrow(key).to_vec()).collect();
        // Which of several is the longest does not depend on the order of the map.
        let begin = |key: &[u64]| self.known.instances.get(key).map(|(_, violation)| violation.begin);
        keys.sort_by(|a, b| begin(a).cmp(&begin(b)).then_with(|| a.cmp(b)));
        keys.iter().for_each(|key| self.close_instance(key, end, monitor));
    }

    /// Ends all violations where messages were not seen that the property reads: what it was from there on is not known,
    /// even if its next verdict is the same.
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
        self.known.found.is_at_least = true;
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
        self.known.found.merge(further.known.found);
    }
}

/// [`Violations`] in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedViolations {
    total: Extent,
    longest: Option<(String, i64, Option<u64>, Extent)>,
    is_at_least: bool,
    open: Option<Violation>,
    instances: Vec<(Vec<u64>, u32, Violation)>,
}

impl Violations {
    pub(super) fn saved(&self) -> SavedViolations {
        let Known { found: InViolation { total, longest, is_at_least }, open, instances } = &*self.known;
        let longest = longest.as_ref().map(|longest| {
            (longest.parameters.clone(), longest.begin.as_nanos(), longest.step, longest.extent)
        });
        let mut instances: Vec<_> = instances
            .iter()
            .map(|(key, (slice, violation))| (Borrow::<[u64]>::borrow(key).to_vec(), *slice, *violation))
            .collect();
        // Equal states have equal snapshots.
        instances.sort_by(|a, b| a.0.cmp(&b.0));
        SavedViolations { total: *total, longest, is_at_least: *is_at_least, open: *open, instances }
    }

    pub(super) fn restore(&mut self, saved: SavedViolations) {
        let SavedViolations { total, longest, is_at_least, open, instances } = saved;
        let longest = longest.map(|(parameters, begin, step, extent)| {
            let begin = Timestamp::from_nanos(begin);
            LongestViolation { parameters, begin, step, extent }
        });
        let instance =
            |(key, slice, violation): (Vec<u64>, u32, Violation)| (Key::from(&key[..]), (slice, violation));
        let instances: HashMap<_, _, _> = instances.into_iter().take(INSTANCES).map(instance).collect();
        self.lasts = open.is_some() || !instances.is_empty();
        *self.known = Known { found: InViolation { total, longest, is_at_least }, open, instances };
    }
}
