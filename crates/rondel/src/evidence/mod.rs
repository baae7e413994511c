//! Why a property was violated: what the fields that it reads and the parts of its formula were at the
//! last moments at which one of them changed.
//!
//! The parts are watched as properties of their own, which are not reported. They share everything with
//! the property that they are parts of, so that they cost little.

mod keys;
mod reason;
mod show;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Path, Read, Slot, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Expr, ExprId, Property, Spec, TimeModel};

use crate::formula::{self, word};
use crate::output::{Given, key_text};
use crate::specification::{Specification, looks_ahead};
use keys::{Keeping, KeyOf, KeyPlaces};
use reason::Reason;

/// How many moments are shown.
const SHOWN: usize = 6;
/// How many are kept for a property that looks at other moments than its own: among them what it finds there
/// is looked for.
const KEPT: usize = 32;
/// How many parts of a formula are watched, besides the fields.
const PARTS: usize = 12;

/// Watches the parts of all properties of a specification.
#[derive(Clone, Debug)]
pub struct Witness {
    topics: Vec<String>,
    /// For every property what is shown of it.
    columns: Vec<Vec<String>>,
    /// For every property what of that explains that it is violated.
    reasons: Vec<Reason>,
    /// The columns and the moments that explain the last violation.
    explaining: (Vec<usize>, Vec<usize>),
    /// The fields that are read, with the properties that show them and in which column.
    fields: Vec<WatchedField>,
    /// The parts that are watched.
    parts: Vec<Part>,
    /// For every property where a message has its keys.
    keys: Vec<KeyPlaces>,
    /// What they were.
    kept: Keeping,
    /// The rows of the present block that have been looked at.
    looked: usize,
}

#[derive(Clone, Debug)]
struct WatchedField {
    topic: TopicId,
    path: Path,
    value_type: ValueType,
    /// Where its values are in a block.
    slot: Option<Slot>,
    /// The properties that show it, and in which column.
    shown: Vec<(usize, usize)>,
}

/// A part of a formula.
#[derive(Clone, Debug)]
struct Part {
    /// Whether it says no more than that a message came.
    is_update: bool,
    /// Whether what it is at a moment can become certain later.
    is_ahead: bool,
    /// Whether it can be otherwise right after a message than at it.
    is_dense: bool,
    /// The properties that show it, and in which column; and whether an operator looks for it elsewhere.
    shown: Vec<(usize, usize, bool)>,
}

/// The last moments of a property.
#[derive(Clone, Debug, Default)]
struct Kept {
    moments: VecDeque<Moment>,
    /// How many there may be.
    most: usize,
    /// The values from the last moment on.
    now: Vec<Option<Value>>,
    /// For every column of a part that looks ahead what was said of it last, and from when on.
    turned: HashMap<usize, (Timestamp, Option<Value>)>,
}

/// What was at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When it was.
    pub time: Timestamp,
    /// The step, where a message made it.
    pub step: Option<u64>,
    /// The topic of the message.
    pub topic: Option<TopicId>,
    /// The values, as far as they are known.
    pub values: Vec<Option<Value>>,
    /// Whether nothing has changed but numbers, and which message came. Of such moments in a row only
    /// the last two are kept: what moves all the time would push out all else.
    is_minor: bool,
}

/// Why a property was violated.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    topics: &'a [String],
    columns: &'a [String],
    moments: &'a VecDeque<Moment>,
    /// The columns that explain it, and the moments at which they changed.
    explaining: (&'a [usize], &'a [usize]),
}

impl Witness {
    /// Watches the parts of the properties of a specification, which is compiled anew for that.
    pub fn new(specification: &mut Specification) -> Witness {
        let spec = &specification.spec;
        let mut augmented = spec.clone();
        let mut columns = Vec::new();
        let mut fields: Vec<WatchedField> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        let mut at = HashMap::new();
        let mut reasons = Vec::new();
        for (i, property) in spec.properties.iter().enumerate() {
            let mut names = Vec::new();
            let mut shown: HashMap<ExprId, Vec<usize>> = HashMap::new();
            let (read, watched) = parts_of(spec, property.formula);
            // A verdict about a moment before is about the messages that came then.
            let ahead = looks_ahead(spec, property.formula);
            let elsewhere = below_operators(spec, property.formula);
            for (id, (topic, path, value_type)) in read {
                let name = formula::field(spec, topic, &path);
                let is_known =
                    |f: &WatchedField| (f.topic, &f.path, f.value_type) == (topic, &path, value_type);
                let known = fields.iter().position(is_known).unwrap_or_else(|| {
                    fields.push(WatchedField { topic, path, value_type, slot: None, shown: Vec::new() });
                    fields.len() - 1
                });
                // A field is read by one node, and by the bindings of atoms.
                if let Some((_, column)) = fields[known].shown.iter().find(|(property, _)| *property == i) {
                    shown.entry(id).or_default().push(*column);
                    continue;
                }
                shown.entry(id).or_default().push(names.len());
                fields[known].shown.push((i, names.len()));
                names.push(name);
            }
            for id in watched.into_iter().take(PARTS) {
                let part =
                    *at.entry((id, property.time, property.linear, property.slice)).or_insert_with(|| {
                        let hidden = Property {
                            time: property.time,
                            linear: property.linear,
                            slice: property.slice,
                            ..Property::new(format!("{}#{}", property.name, parts.len()), id)
                        };
                        augmented.properties.push(hidden);
                        let is_update = matches!(spec.nodes[id.index()], Expr::On(_) | Expr::Carried { .. });
                        let is_ahead = looks_ahead(spec, id);
                        let is_dense = property.time == TimeModel::Dense;
                        parts.push(Part { is_update, is_ahead, is_dense, shown: Vec::new() });
                        parts.len() - 1
                    });
                shown.entry(id).or_default().push(names.len());
                parts[part].shown.push((i, names.len(), ahead || elsewhere.contains(&id)));
                names.push(formula::written(spec, id, property.time));
            }
            columns.push(names);
            reasons.push(Reason::new(spec, property, &shown));
        }
        match Program::compile(&augmented) {
            Ok(program) => specification.program = Arc::new(program),
            // Without them it can be said what the fields were.
            Err(_) => parts.clear(),
        }
        for field in &mut fields {
            let read = Read::Value(field.value_type);
            let projection = specification.program.projections().get(field.topic.index());
            let mut places = projection.into_iter().flat_map(|projection| &projection.fields);
            field.slot = places.find(|f| f.path == field.path && f.read == read).map(|f| f.slot);
        }
        let mut witness = Witness {
            topics: specification.spec.topics.iter().map(|topic| topic.name.clone()).collect(),
            keys: specification.spec.properties.iter().map(|p| KeyPlaces::new(specification, p)).collect(),
            kept: Keeping::default(),
            reasons,
            explaining: (Vec::new(), Vec::new()),
            columns,
            fields,
            parts,
            looked: 0,
        };
        witness.restart();
        witness
    }

    /// Begins a new trace.
    pub fn restart(&mut self) {
        let most = |reason: &Reason| if reason.looks_elsewhere() { KEPT } else { SHOWN };
        self.kept = Keeping::new(self.columns.iter().map(Vec::len).zip(self.reasons.iter().map(most)));
    }

    /// Takes what a monitor has just reported: on a block, whose first event is the step with this number,
    /// or on time passing. Gives the reports that are not its own, violations with the reason.
    pub fn take(
        &mut self,
        block: Option<(&Block, u64)>,
        monitor: &Monitor,
        mut give: impl FnMut(&Given<'_>),
    ) {
        self.looked = 0;
        let own = self.columns.len();
        let place = |r: &Report| (r.row, if r.row.is_some() { 0 } else { r.step }, r.time);
        let mut rest = monitor.reports();
        let mut keys = Vec::new();
        while let Some(report) = rest.first() {
            let together = rest.iter().take_while(|other| place(other) == place(report)).count();
            let (group, others) = rest.split_at(together);
            rest = others;
            let (mut step, mut topic) = (None, None);
            if let Some((block, first)) = block {
                // What time brings comes after the event before it.
                let before = || usize::try_from((report.step + 1).saturating_sub(first)).unwrap_or(0);
                let end = report.row.map_or_else(before, |row| usize::from(row) + 1);
                self.look(block, first, end.min(block.len()));
                step = report.row.map(|row| first + u64::from(row));
                topic = report.row.and_then(|row| block.topic(usize::from(row)));
            }
            for part in group.iter().filter(|r| r.changed && r.property as usize >= own) {
                self.part(part, &key_text(&monitor.key(part)), (step, topic));
            }
            for report in group.iter().filter(|r| (r.property as usize) < own) {
                let property = report.property as usize;
                let mut evidence = None;
                if report.changed
                    && let Some(kept) = self.kept.of(property, &key_text(&monitor.key(report)))
                {
                    if step.is_some() || kept.is_otherwise(report.time) {
                        kept.moment(report.time, step, topic);
                    }
                    if let Some(last) = kept.moments.back_mut() {
                        last.is_minor = false;
                    }
                    let (topics, columns) = (&self.topics[..], &self.columns[property][..]);
                    if report.verdict == Verdict::Violated {
                        let (of, at) = &mut self.explaining;
                        self.reasons[property].explain(&mut kept.moments, report.about, of, at);
                        let moments = &kept.moments;
                        evidence = Some(Evidence { topics, columns, moments, explaining: (of, at) });
                    }
                }
                give(&Given::new(report, monitor, evidence, &mut keys));
            }
        }
        if let Some((block, first)) = block {
            self.look(block, first, block.len());
        }
    }

    /// Notes what the events before this row carry, from where it has been looked before.
    fn look(&mut self, block: &Block, first: u64, end: usize) {
        for row in self.looked..end {
            let topic = block.topic(row);
            let (time, step) = (block.time(row), Some(first + row as u64));
            // In a set, one event is of several topics.
            for field in self.fields.iter().filter(|field| block.topic_rows(field.topic) >> row & 1 == 1) {
                let carried = field.slot.and_then(|slot| value(block, slot, field.value_type, row));
                let Some(value) = carried else { continue };
                let is_number = !matches!(field.value_type, ValueType::Bool | ValueType::String);
                for &(property, column) in &field.shown {
                    let note = |kept: &mut Kept| {
                        if kept.now[column] != value {
                            kept.moment(time, step, topic);
                            kept.set(column, value.clone(), is_number);
                        }
                    };
                    match self.keys[property].key_of(block, row, field.topic) {
                        KeyOf::One(key) => self.kept.of(property, &key).into_iter().for_each(note),
                        KeyOf::All => self.kept.all(property).for_each(note),
                        KeyOf::None => {}
                    }
                }
            }
        }
        self.looked = self.looked.max(end);
    }

    /// Notes what a part of a formula has become, at this step.
    fn part(&mut self, report: &Report, key: &str, (step, topic): (Option<u64>, Option<TopicId>)) {
        let value = match report.verdict {
            Verdict::Satisfied => Some(Value::Bool(true)),
            Verdict::Violated => Some(Value::Bool(false)),
            Verdict::Inconclusive => None,
        };
        let Some(part) = self.parts.get(report.property as usize - self.columns.len()) else { return };
        for &(property, column, is_looked_for) in &part.shown {
            let Some(kept) = self.kept.of(property, key) else { continue };
            if part.is_ahead {
                if report.about.is_none() && step.is_some() {
                    kept.moment(report.time, step, topic);
                    kept.moments.back_mut().into_iter().for_each(|last| last.is_minor = false);
                }
                let is_exact = !part.is_dense || report.about.is_none() && step.is_some();
                kept.turn(report.about.unwrap_or(report.time), column, &value, is_exact);
                continue;
            }
            match (report.about, step) {
                (Some(about), _) => kept.revise(about, column, &value),
                // What is otherwise right after a moment is seen at the next one.
                (None, None) if kept.moments.back().is_some_and(|last| last.time == report.time) => {
                    kept.now[column].clone_from(&value);
                }
                (None, step) => {
                    kept.moment(report.time, step, topic);
                    kept.set(column, value.clone(), part.is_update && !is_looked_for);
                }
            }
        }
    }
}

impl Kept {
    /// Whether something is otherwise at this time than at the last moment.
    fn is_otherwise(&self, time: Timestamp) -> bool {
        let differs = |last: &Moment| {
            let mut values = last.values.iter().zip(&self.now).enumerate();
            values.any(|(column, (then, now))| then != now && !self.turned.contains_key(&column))
        };
        self.moments.back().is_none_or(|last| last.time != time || differs(last))
    }

    /// Begins a moment, if it is not the last one already.
    fn moment(&mut self, time: Timestamp, step: Option<u64>, topic: Option<TopicId>) {
        if self.moments.back().is_some_and(|last| last.time == time && last.step == step && step.is_some()) {
            return;
        }
        let (len, is_minor) = (self.moments.len(), |moment: &Moment| moment.is_minor);
        if len > 1 && self.moments.range(len - 2..).all(is_minor) {
            self.moments.remove(len - 2);
        } else if len >= self.most {
            self.moments.pop_front();
        }
        self.moments.push_back(Moment { time, step, topic, values: self.now.clone(), is_minor: true });
    }

    /// Sets a value from the last moment on.
    fn set(&mut self, column: usize, value: Option<Value>, is_minor: bool) {
        if let Some(last) = self.moments.back_mut() {
            last.is_minor &= is_minor;
            last.values[column].clone_from(&value);
        }
        self.now[column] = value;
    }

    /// Sets a value from a moment in the past on, that has turned out only now.
    fn revise(&mut self, from: Timestamp, column: usize, value: &Option<Value>) {
        for moment in self.moments.iter_mut().filter(|moment| moment.time >= from) {
            moment.values[column].clone_from(value);
        }
        self.now[column].clone_from(value);
    }

    /// Notes what a part that looks ahead is from a moment on. What it was up to there is known with that,
    /// and what it is later is not. If this is not exact, it may be so only right after that moment.
    fn turn(&mut self, from: Timestamp, column: usize, value: &Option<Value>, is_exact: bool) {
        let before = self.turned.insert(column, (from, value.clone()));
        let is_one = self.moments.iter().filter(|moment| moment.time == from).count() == 1;
        for moment in &mut self.moments {
            let of = &mut moment.values[column];
            match (&before, moment.time.cmp(&from)) {
                (Some((since, was)), Ordering::Less) if moment.time > *since => of.clone_from(was),
                (_, Ordering::Less) => {}
                (Some((since, was)), Ordering::Equal) if *since == from && is_one => of.clone_from(was),
                (Some(_), Ordering::Equal) if !is_exact || !is_one => *of = None,
                (_, Ordering::Equal) => of.clone_from(value),
                (_, Ordering::Greater) => *of = None,
            }
        }
        self.now[column] = None;
    }
}

/// The value that an event carries, if it carries the field; nothing in it where it is of another type.
fn value(block: &Block, slot: Slot, value_type: ValueType, row: usize) -> Option<Option<Value>> {
    if block.present(slot) >> row & 1 == 0 {
        return None;
    }
    let valid = |rows: u64| rows >> row & 1 == 1;
    Some(match slot {
        Slot::Bool(at) => {
            let column = block.bools(at);
            valid(column.valid).then(|| Value::Bool(column.values >> row & 1 == 1))
        }
        Slot::Int(at) => {
            let column = block.ints(at);
            valid(column.valid).then(|| match value_type {
                ValueType::Time => Value::Time(column.values[row]),
                ValueType::Duration => Value::Duration(column.values[row]),
                _ => Value::Int(column.values[row]),
            })
        }
        Slot::Float(at) => {
            let column = block.floats(at);
            valid(column.valid).then(|| Value::Float(column.values[row]))
        }
        Slot::String(at) => valid(block.strings(at).valid)
            .then(|| Value::String(String::from_utf8_lossy(block.text(at, row)).into())),
    })
}

/// All nodes that stand below an operator which looks at other moments.
fn below_operators(spec: &Spec, formula: ExprId) -> HashSet<ExprId> {
    let mut seen = HashSet::from([(formula, false)]);
    let mut open = vec![(formula, false)];
    while let Some((id, below)) = open.pop() {
        let node = &spec.nodes[id.index()];
        let below = below || reason::looks_elsewhere(node);
        open.extend(node.operands().map(|operand| (operand, below)).filter(|next| seen.insert(*next)));
    }
    seen.into_iter().filter_map(|(id, below)| below.then_some(id)).collect()
}

/// A field that a formula reads.
type ReadField = (TopicId, Path, ValueType);

/// The fields that a formula reads, and the parts of it that are worth watching, from the outside in.
fn parts_of(spec: &Spec, formula: ExprId) -> (Vec<(ExprId, ReadField)>, Vec<ExprId>) {
    let (mut fields, mut parts) = (Vec::new(), Vec::new());
    let mut seen = HashSet::from([formula]);
    // With each node whether it may depend on a variable: then it is no property of its own.
    let mut open = vec![(formula, false)];
    while let Some((id, bound)) = open.pop() {
        let node = &spec.nodes[id.index()];
        let mut below: Vec<ExprId> = node.operands().collect();
        let mut is_part = match node {
            Expr::Field { topic, path, value_type } => {
                fields.push((id, (*topic, path.clone(), *value_type)));
                false
            }
            Expr::Bind { topic, fields: these } => {
                let field = |path: &Path, value_type: &ValueType| (id, (*topic, path.clone(), *value_type));
                fields.extend(these.iter().map(|(path, _, value_type)| field(path, value_type)));
                false
            }
            Expr::Not(_) | Expr::And(..) | Expr::Or(..) | Expr::Definitely(_) => false,
            Expr::Literal(_) | Expr::Key(..) | Expr::Variable(..) => false,
            _ => spec.value_type(id) == ValueType::Bool,
        };
        if let Some(word) = word(spec, id) {
            below = vec![word.operand];
            is_part = true;
        }
        if is_part && !bound && id != formula {
            parts.push(id);
        }
        let bound = bound || matches!(node, Expr::Exists(..) | Expr::ForAll(..));
        let below = below.into_iter().rev().filter(|operand| seen.insert(*operand));
        open.extend(below.map(|operand| (operand, bound)));
    }
    (fields, parts)
}
