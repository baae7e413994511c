//! Explanations of violations: the time points that cause a violation, with the values of the fields and of
//! the parts of the formula there.
//!
//! The parts are compiled as additional properties, which are not reported. They share all nodes with their property,
//! so they cost little. Future operators are not watched: their reports contain only changes, in the order in which
//! these become certain, and not up to where they are certain. Instead, the engine's kernel of these operators
//! ([`Lookahead`](rondel_engine::Lookahead)) recomputes their values at the places that an explanation needs.

mod courses;
mod elements;
mod history;
mod keys;
mod machines;
mod parts;
mod reason;
mod show;
mod terms;
mod watching;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rondel_engine::{Monitor, Program, Report, TermValue};
use rondel_event::{Block, Path, Quantifier, Read, Slot, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::TimeModel;

use crate::specification::Specification;
use crate::text::parameters_text;
pub use courses::Course;
use courses::{Courses, Drawn};
use elements::element_text;
use history::{History, Message, Messages, Place, last_until, message};
use keys::{Keeping, KeyOf, KeyPlaces};
use reason::{Explained, Past, Reason, Row, explain};
pub use show::ShownTime;
use terms::Course as TermCourse;
use watching::Watching;

/// Number of time points shown.
const SHOWN: usize = 6;
/// The number of values kept per row; fewer per instance, as there may be many instances.
const KEPT: usize = 1024;
const KEPT_OF_KEY: usize = 128;
/// The number of messages kept.
const MESSAGES: usize = 1 << 16;
/// The latest time of the engine, which doubles times and adds one.
const FARTHEST: i64 = i64::MAX / 2 - 1;
/// Number of last values of each field kept with an explanation.
const SIGNAL: usize = 256;

/// Records the parts of all properties of a specification and explains violations.
#[derive(Clone, Debug)]
pub(crate) struct Explainer {
    topics: Vec<String>,
    properties: Vec<Watched>,
    /// The fields that are read, with the properties that show them and in which row.
    fields: Vec<WatchedField>,
    /// The parts that are watched.
    parts: Vec<Part>,
    /// The last messages.
    messages: Messages,
    /// The latest time so far, in the range of the engine.
    time: i64,
    /// The earliest time of a message.
    begin: Option<Timestamp>,
    /// The histories of parts and fields.
    kept: Keeping,
    /// For each property, message and instance of the last call: position of the last element that names the instance.
    last_elements: HashMap<(usize, u64, String), u32>,
    /// For each property: number of further violations whose signals are shown.
    signals: Vec<u32>,
    /// The values of all fields from the beginning on, if they are wanted.
    courses: Option<Courses>,
}

/// The watched parts of a property.
#[derive(Clone, Debug)]
struct Watched {
    time: TimeModel,
    /// The name of each row, and how the row gets its values.
    names: Vec<String>,
    rows: Vec<Row>,
    /// For each row the constants that it is compared with.
    thresholds: Vec<Vec<f64>>,
    /// For each row whether its values are the same for all instances.
    shared: Vec<bool>,
    /// The formula, for the search for causes.
    reason: Reason,
    /// The positions of the parameters in messages.
    keys: KeyPlaces,
    /// Whether its instances end.
    ends: bool,
}

#[derive(Clone, Debug)]
struct WatchedField {
    topic: TopicId,
    path: Path,
    read: Read,
    value_type: ValueType,
    /// The slot of its values in a block.
    slot: Option<Slot>,
    name: String,
    /// The properties that show it, and in which row.
    shown: Vec<(usize, usize)>,
    /// For a field that is only drawn: the property whose messages carry it.
    drawn_for: Option<usize>,
    /// The constants that it is compared with.
    thresholds: Vec<f64>,
}

/// The histories of a property, or of one of its instances.
#[derive(Clone, Debug, Default)]
struct Kept {
    histories: Vec<History>,
    /// The messages that only this instance sees.
    messages: Messages,
    /// The places at which the instance ended. Earlier values do not matter to an instance that begins later.
    ended: Vec<Place>,
    /// The number of values kept per row.
    most: usize,
}

/// The values at a time point.
#[derive(Clone, Debug, PartialEq)]
pub struct TimePoint {
    /// Its time.
    pub time: Timestamp,
    /// Whether it stands for the open interval right after that time.
    pub after: bool,
    /// The step, where a message is at this time point.
    pub step: Option<u64>,
    /// The topic of the message.
    pub topic: Option<String>,
    /// The values of the names, as far as they are known.
    pub values: Vec<Option<Value>>,
}

/// Explanation of a violation: the time points that cause it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The fields and the parts of the formula that matter.
    pub names: Vec<String>,
    /// For each name whether it stands for the element of an array that decides a condition: its values are texts for
    /// people.
    pub elements: Vec<bool>,
    /// The time points, in order.
    pub points: Vec<TimePoint>,
    /// The time of the first message, from which offsets are counted.
    pub begin: Timestamp,
    /// Fields that the property reads, up to the violation, for the first violations of a property, as many as
    /// [`Options::signals`](crate::Options::signals).
    pub signals: Vec<Signal>,
}

/// A field over time, before a violation.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// The field or term.
    pub name: String,
    /// The constants that it is compared with.
    pub thresholds: Vec<f64>,
    /// Value from each time on, `None` while it is unknown; for an array its least element. Successive values may be
    /// equal.
    pub values: Vec<(Timestamp, Option<Value>)>,
    /// For an array: its greatest element from each time on.
    pub upper: Vec<(Timestamp, Option<Value>)>,
}

/// The histories of a property, or of an instance of it.
#[derive(Clone, Copy, Debug)]
struct Histories<'a> {
    own: &'a Kept,
    /// The histories that all instances share.
    all: &'a Kept,
    shared: &'a [bool],
    /// Where the previous instance ended.
    ended: Option<Place>,
}

impl<'a> Histories<'a> {
    /// The history of a row, if it reaches a place.
    fn at(&self, row: usize, place: Place) -> Option<&'a History> {
        let history = self.of(row);
        let is_its = self.shared[row] || self.ended.is_none_or(|ended| history.since(place) > Some(ended));
        is_its.then_some(history)
    }

    /// The places at which a row changed.
    fn changes(&self, row: usize) -> impl DoubleEndedIterator<Item = Place> + use<'a> {
        let ended = self.ended.filter(|_| !self.shared[row]);
        self.of(row).changes().filter(move |place| Some(*place) > ended)
    }

    /// The place at which the value of a row at a place is kept.
    fn place(&self, row: usize, at: Place) -> Place {
        if self.shared[row] { at.at_message() } else { at }
    }

    fn of(&self, row: usize) -> &'a History {
        let kept = if self.shared[row] { self.all } else { self.own };
        &kept.histories[row]
    }
}

/// A part of a formula that is watched.
#[derive(Clone, Debug, Default)]
struct Part {
    /// The properties that show it, and in which row.
    shown: Vec<(usize, usize)>,
    /// Properties that show the element with the name that the part is the value of, with the row.
    named: Vec<(usize, usize)>,
    /// Properties that show the machine state in which the part is true, with the row and the state.
    entered: Vec<(usize, usize, Value)>,
    /// Properties whose instance ends where the part is true.
    ends: Vec<usize>,
}

impl Explainer {
    /// An explainer of a specification, which is compiled again with the watched parts.
    ///
    /// The explanations of the first `signals` violations of each property have signals. With `courses`, it keeps the
    /// values of all fields.
    pub(crate) fn new(specification: &mut Specification, signals: u32, courses: bool) -> Explainer {
        let Watching { augmented, properties: mut watched, mut fields, mut parts, .. } =
            Watching::of(&specification.spec, courses);
        let is_read =
            |field: &&WatchedField| matches!(field.read, Read::Witness(..)) || field.drawn_for.is_some();
        let reads = fields.iter().filter(is_read).map(|f| (f.topic, f.path.clone(), f.read.clone()));
        match Program::compile_with_terms(&augmented, &reads.collect::<Vec<_>>()) {
            Ok(program) => specification.program = Arc::new(program),
            // Without the parts, explanations still show the fields.
            Err(_) => parts.clear(),
        }
        for field in &mut fields {
            let projection = specification.program.projections().get(field.topic.index());
            let mut places = projection.into_iter().flat_map(|projection| &projection.fields);
            field.slot = places.find(|f| f.path == field.path && f.read == field.read).map(|f| f.slot);
        }
        for (watched, property) in watched.iter_mut().zip(&specification.spec.properties) {
            watched.keys.find(specification, property);
        }
        let mut explainer = Explainer {
            topics: specification.spec.topics.iter().map(|topic| topic.name.clone()).collect(),
            properties: watched,
            fields,
            parts,
            messages: Messages::default(),
            time: i64::MIN,
            begin: None,
            kept: Keeping::default(),
            last_elements: HashMap::new(),
            signals: vec![signals; specification.spec.properties.len()],
            courses: courses.then(Courses::default),
        };
        explainer.restart();
        explainer
    }

    /// Begins a new trace.
    fn restart(&mut self) {
        self.messages = Messages::default();
        (self.time, self.begin) = (i64::MIN, None);
        self.kept = Keeping::new(self.properties.iter().map(|watched| watched.names.len()));
    }

    /// Returns the values of all fields from the beginning on, and the number of values beyond the limit; nothing
    /// unless they are wanted.
    pub(crate) fn courses(&self) -> (Vec<Signal>, u64) {
        let drawn = |number: usize| match self.fields.get(number) {
            // The least and the greatest elements of an array follow each other.
            Some(field) => {
                let has_upper = field.drawn_for.is_some();
                let is_upper = has_upper && matches!(field.read, Read::Elements(Quantifier::Max, _));
                let upper = has_upper.then_some(number + 1);
                (!is_upper).then_some(Drawn { name: &field.name, thresholds: &field.thresholds, upper })
            }
            None => {
                let (property, row) = *self.parts.get(number - self.fields.len())?.shown.first()?;
                let watched = self.properties.get(property)?;
                let thresholds = watched.thresholds.get(row)?;
                Some(Drawn { name: watched.names.get(row)?, thresholds, upper: None })
            }
        };
        self.courses.as_ref().map_or_else(Default::default, |courses| courses.signals(drawn))
    }

    /// Takes the reports of a monitor's last call: about a block, whose first event is the step with this number, or
    /// about the passing of time. Passes on the reports on properties, each violation with its explanation.
    pub(crate) fn take(
        &mut self,
        block: Option<(&Block, u64)>,
        monitor: &Monitor,
        mut emit: impl FnMut(&Report, Option<Explanation>),
    ) {
        if let Some((block, first)) = block {
            self.look(block, first);
        }
        self.time = self.time.max(monitor.time().as_nanos());
        let own = self.properties.len();
        self.note_elements(monitor);
        for report in monitor.reports().iter().filter(|r| r.changed && r.property as usize >= own) {
            self.part(report, &parameters_text(&monitor.key(report)));
        }
        for term in monitor.term_values() {
            self.term(term, &parameters_text(&monitor.key_of_term(term)));
        }
        for report in monitor.reports().iter().filter(|r| (r.property as usize) < own) {
            // Only at its beginning: the histories are reduced to what a change of verdict needs.
            let is_violation = report.changed && report.verdict == Verdict::Violated;
            // An assert is about the whole run.
            let is_violation = is_violation && !self.properties[report.property as usize].names.is_empty();
            let explained =
                is_violation.then(|| self.explain(report, &parameters_text(&monitor.key(report))));
            emit(report, explained.flatten());
        }
    }

    /// Records the events of a block and the values of their fields.
    fn look(&mut self, block: &Block, first: u64) {
        for row in 0..block.len() {
            let (given, topic) = (block.time(row), block.topic(row));
            self.begin = Some(self.begin.map_or(given, |begin| begin.min(given)));
            // In the range of the engine.
            self.time = self.time.max(given.as_nanos().clamp(-FARTHEST, FARTHEST));
            let step = first + row as u64;
            let number = block.number(row).unwrap_or(step);
            let message = Message { step, number, time: self.time, given, topic };
            self.messages.push(message, MESSAGES);
            for (property, watched) in self.properties.iter().enumerate() {
                let Some(topic) = topic.filter(|_| watched.keys.by_key()) else { continue };
                match watched.keys.key_of(block, row, topic) {
                    KeyOf::One(key) => {
                        let kept = self.kept.of(property, &key);
                        kept.into_iter().for_each(|kept| kept.messages.push(message, kept.most));
                    }
                    KeyOf::All if watched.keys.shared.contains(&topic) => {
                        self.kept.all(property).messages.push(message, KEPT);
                    }
                    KeyOf::All | KeyOf::None => {}
                }
            }
            // In a set, one event is of several topics.
            let is_read = |field: &WatchedField| block.topic_rows(field.topic) >> row & 1 == 1;
            for (number, field) in self.fields.iter().enumerate().filter(|(_, field)| is_read(field)) {
                let carried = field.slot.and_then(|slot| block.value(slot, field.value_type, row));
                let Some(value) = carried else { continue };
                let is_drawn = !matches!(field.read, Read::Witness(..));
                let of = field.drawn_for.or(field.shown.first().map(|(property, _)| *property));
                if let (Some(courses), Some(property)) = (self.courses.as_mut().filter(|_| is_drawn), of) {
                    let instance = match self.properties[property].keys.key_of(block, row, field.topic) {
                        KeyOf::One(key) => key,
                        KeyOf::All | KeyOf::None => String::new(),
                    };
                    courses.add(number, instance, given.as_nanos(), value.clone());
                }
                for &(property, at) in &field.shown {
                    let watched = &self.properties[property];
                    let kept = match watched.keys.key_of(block, row, field.topic) {
                        KeyOf::One(key) => self.kept.of(property, &key),
                        KeyOf::All => Some(self.kept.all(property)),
                        KeyOf::None => None,
                    };
                    let Some(kept) = kept else { continue };
                    // With linear interpolation, and where instances end, an equal value matters too.
                    let matters = watched.rows[at] == Row::Line || watched.ends;
                    if matters || kept.histories[at].last() != Some(&value) {
                        let place = place_of(watched.time, &message);
                        kept.set(at, place, value.clone(), &watched.rows);
                    }
                }
            }
        }
    }

    /// Records the new value of a part of a formula.
    fn part(&mut self, report: &Report, key: &str) {
        let value = match report.verdict {
            Verdict::Satisfied => Some(Value::Bool(true)),
            Verdict::Violated => Some(Value::Bool(false)),
            Verdict::Inconclusive => None,
        };
        let Some(part) = self.parts.get(report.property as usize - self.properties.len()) else { return };
        for &(property, row) in &part.shown {
            let watched = &self.properties[property];
            let place = place(watched.time, report, self.messages.all());
            let place = self.at_element(property, key, place, report.element);
            if let Some(kept) = self.kept.of(property, key) {
                kept.set(row, place, value.clone(), &watched.rows);
            }
        }
        for (property, row, state) in part.entered.iter().filter(|_| report.verdict == Verdict::Satisfied) {
            let watched = &self.properties[*property];
            let place = place(watched.time, report, self.messages.all());
            let place = self.at_element(*property, key, place, report.element);
            if let Some(kept) = self.kept.of(*property, key) {
                kept.set(*row, place, Some(state.clone()), &watched.rows);
            }
        }
        for &property in part.ends.iter().filter(|_| report.verdict == Verdict::Satisfied) {
            let place = place(self.properties[property].time, report, self.messages.all());
            let place = self.at_element(property, key, place, report.element);
            self.kept.of(property, key).into_iter().for_each(|kept| kept.end(place));
        }
    }

    /// Records the value of a term at a time point.
    fn term(&mut self, term: &TermValue, key: &str) {
        let number = term.property as usize - self.properties.len();
        let Some(part) = self.parts.get(number) else { return };
        let course = part.shown.first().map(|(property, row)| self.properties[*property].rows[*row]);
        if let (Some(courses), Some(Row::Term(TermCourse::Held))) = (&mut self.courses, course) {
            courses.add(self.fields.len() + number, key.to_owned(), term.time.as_nanos(), term.value.clone());
        }
        // Watched names are shown with the element that has the name.
        let named = part.named.iter().filter_map(|shown| Some((shown, element_text(term)?)));
        let values = part.shown.iter().map(|shown| (shown, term.value.clone()));
        for (&(property, row), value) in values.chain(named.map(|(shown, text)| (shown, Some(text)))) {
            let watched = &self.properties[property];
            let found = term.step.map(|step| (step, message(self.messages.all(), step)));
            let place = match found {
                Some((_, Some(found))) => place_of(watched.time, found),
                Some((step, None)) => Place::message(0, step),
                None => Place::between(term.time.as_nanos(), term.after),
            };
            let place = self.at_element(property, key, place, term.element);
            let Some(kept) = self.kept.of(property, key) else { continue };
            let is_held = matches!(watched.rows[row], Row::Term(TermCourse::Held) | Row::Element);
            if !is_held || watched.ends || kept.histories[row].at(place) != Some(&value) {
                kept.set(row, place, value, &watched.rows);
            }
        }
    }

    /// Explains a violation, if there is anything to show.
    fn explain(&mut self, report: &Report, key: &str) -> Option<Explanation> {
        let property = report.property as usize;
        let has_signals = self.signals[property] > 0;
        self.signals[property] -= u32::from(has_signals);
        let watched = &self.properties[property];
        let given = given(watched.time, report, self.messages.all());
        let given = self.at_element(property, key, given, report.element);
        // A message may end an instance and at the same time decide a verdict about an earlier time.
        let about = match watched.time {
            TimeModel::Steps => given,
            TimeModel::Points | TimeModel::Dense => {
                let about = place(watched.time, report, self.messages.all());
                self.at_element(property, key, about, report.element)
            }
        };
        let histories = self.kept.histories(property, key, &watched.shared, about)?;
        let messages = self.kept.messages(property, key, self.messages.all(), histories.ended);
        // Later messages of the block have been recorded already.
        let seen = &messages[..messages.partition_point(|message| message.step <= report.step)];
        let mut past = Past::new(&watched.reason, &watched.rows, histories, seen);
        past.know(report.at_event, given);
        let own = past.own(report, given);
        let Explained { rows, places } = explain(past, own);
        let about = report.about.unwrap_or(report.time);
        let point = |(place, values): (Place, Vec<Option<Value>>)| {
            let message = place.step().and_then(|step| message(&messages, step));
            let time = message.map_or(Timestamp::from_nanos(place.time), |message| message.given);
            let topic = message.and_then(|message| self.topics.get(message.topic?.index()));
            TimePoint {
                // If the message is no longer kept, the verdict has its time.
                time: if place == own { about } else { time },
                after: place.after,
                step: message.map(|message| message.number),
                topic: topic.cloned(),
                values,
            }
        };
        let signals = if has_signals { self.signals(watched, histories, &messages, own) } else { Vec::new() };
        let name = |&row: &usize| watched.names.get(row).cloned().unwrap_or_default();
        Some(Explanation {
            names: rows.iter().map(name).collect(),
            elements: rows.iter().map(|row| watched.rows[*row] == Row::Element).collect(),
            points: places.into_iter().map(point).collect(),
            begin: self.begin.unwrap_or(about),
            signals,
        })
    }

    /// The fields up to a place.
    fn signals(
        &self,
        watched: &Watched,
        histories: Histories<'_>,
        messages: &[Message],
        until: Place,
    ) -> Vec<Signal> {
        let time = |place: Place| match place.step().and_then(|step| message(messages, step)) {
            Some(message) => Some(message.given),
            None => (watched.time != TimeModel::Steps).then(|| Timestamp::from_nanos(place.time)),
        };
        let signal = |(row, name): (usize, &String)| {
            let changes = histories.changes(row).filter(|place| *place <= until);
            let mut values: Vec<_> = changes
                .rev()
                .take(SIGNAL)
                .filter_map(|place| Some((time(place)?, histories.of(row).at(place)?.clone())))
                .collect();
            values.reverse();
            let thresholds = watched.thresholds.get(row).cloned().unwrap_or_default();
            Signal { name: name.clone(), thresholds, values, upper: Vec::new() }
        };
        let fields = watched.names.iter().enumerate().filter(|(row, _)| {
            !matches!(
                watched.rows[*row],
                Row::Watched | Row::Element | Row::Term(TermCourse::Growing | TermCourse::Moving)
            )
        });
        fields.map(signal).filter(|signal| !signal.values.is_empty()).collect()
    }
}

impl Kept {
    /// Empty histories of `rows` rows, each with up to `most` values.
    fn new(rows: usize, most: usize) -> Kept {
        let histories = vec![History::default(); rows];
        Kept { histories, messages: Messages::default(), ended: Vec::new(), most }
    }

    /// Records the end of an instance.
    fn end(&mut self, at: Place) {
        let too_many = (self.ended.len() + 1).saturating_sub(Block::CAPACITY);
        self.ended.drain(..too_many);
        self.ended.push(at);
    }

    /// Records the value of a row from a place on.
    fn set(&mut self, row: usize, from: Place, value: Option<Value>, rows: &[Row]) {
        self.histories[row].set(from, value);
        if self.histories[row].len() <= 2 * self.most {
            return;
        }
        let mut keep: BTreeSet<Place> = BTreeSet::new();
        if rows[row] != Row::Watched {
            // The values of a field where a part changed matter most.
            let parts = self.histories.iter().zip(rows).filter(|(_, row)| **row == Row::Watched);
            parts.for_each(|(history, _)| keep.extend(history.changes()));
        }
        let keep: Vec<Place> = keep.into_iter().collect();
        self.histories[row].thin(self.most, &keep);
    }
}

/// The place of a message.
fn place_of(model: TimeModel, message: &Message) -> Place {
    Place::message(if model == TimeModel::Steps { 0 } else { message.time }, message.step)
}

/// The place at which a verdict became certain.
fn given(model: TimeModel, report: &Report, messages: &[Message]) -> Place {
    match message(messages, report.step).filter(|_| report.at_event) {
        Some(found) => place_of(model, found),
        None if model == TimeModel::Steps => Place::message(0, report.step),
        None => Place::between(report.time.as_nanos(), true),
    }
}

/// The place that a verdict is about. Of several messages with one time, it is the last.
fn place(model: TimeModel, report: &Report, messages: &[Message]) -> Place {
    if report.about.is_none() && report.at_event {
        let found = message(messages, report.step);
        return found.map_or(Place::message(0, report.step), |found| place_of(model, found));
    }
    let time = report.about.unwrap_or(report.time).as_nanos();
    let found = last_until(messages, time).filter(|found| found.time == time && !report.after);
    found.map_or(Place::between(time, report.after), |found| place_of(model, found))
}
