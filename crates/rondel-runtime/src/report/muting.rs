//! Muting: a violation of a property with `@because_of(other)` sends no notification while the other property is violated.
//!
//! Reports are noted as they are emitted, and examined together when they are taken: at one time point the last verdict
//! of the other property counts, in whatever order the two are reported. The other property is violated until it is
//! satisfied again: an inconclusive verdict resolves nothing. Where both properties have parameters of the same name, only
//! instances of the other one with equal values count.

use std::collections::{BTreeMap, HashMap, HashSet};

use rondel_engine::{EndedInstance, Monitor, Report as EngineReport};
use rondel_event::{Timestamp, Value, Verdict};
use rondel_spec::Spec;
use serde::{Deserialize, Serialize};

use super::pending::{Kept, NONE, Pending, Reports};
use crate::specification::looks_ahead;
use crate::text::write_value;

/// Maximum number of violated instances of causes. A further one mutes nothing.
const CAUSES: usize = 1 << 16;
/// Maximum number of muted violations that last. A further one is not muted.
const MUTED: usize = 1 << 14;

/// Values of parameters as JSON.
type Values = Box<[String]>;

/// Muting of the properties of a session.
#[derive(Debug)]
pub(crate) struct Muting {
    roles: Vec<Role>,
    emits_every: bool,
    /// Violated instances of the properties that are causes.
    violated: HashSet<(u32, Values)>,
    /// For each muted property and values of the parameters that it shares with its cause, the number of violated
    /// instances of the cause with these values.
    counts: HashMap<(u32, Values), u32>,
    /// Muted violations that last: by property, by the values of the shared parameters, and by all parameters.
    muted: BTreeMap<(u32, Values, Values), Kept>,
    /// Changes since reports were last examined.
    changes: Vec<Change>,
    /// Whether the changes are those of several alignment groups, which their `order` merges.
    is_ordered: bool,
    /// The lap of the state.
    lap: u32,
    /// Reports of violations that are muted no more.
    due: Reports,
}

/// Role of a property.
#[derive(Debug, Default)]
struct Role {
    name: String,
    /// The properties that it mutes.
    mutes: Vec<u32>,
    /// The property that mutes it.
    cause: Option<Cause>,
    /// Whether its violations last until it is satisfied: not those of a chain, whose verdicts are about one stamp each, nor
    /// those of a property that looks ahead, whose return to satisfied may be known before.
    lasts: bool,
    /// Slice of its instances in its monitor, once one was reported.
    slice: Option<u32>,
}

/// The property that mutes another one.
#[derive(Debug)]
struct Cause {
    /// Positions of the shared parameters among those of the muted property, and among those of this one.
    own: Vec<usize>,
    others: Vec<usize>,
}

/// A report of a property that is muted or mutes.
#[derive(Debug)]
struct Change {
    property: u32,
    lap: u32,
    time: i64,
    /// Time by which it is ordered among those of other alignment groups.
    order: i64,
    verdict: Verdict,
    is_changed: bool,
    values: Values,
}

impl Change {
    fn is_at(&self, other: &Change) -> bool {
        (self.lap, self.order, self.time) == (other.lap, other.order, other.time)
    }
}

/// State of muting in a snapshot, by the names of properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedMuting {
    violated: Vec<(String, Vec<String>)>,
    muted: Vec<SavedMuted>,
}

/// A muted violation in a snapshot: its report, without values and explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedMuted {
    property: String,
    parameters: Vec<SavedValue>,
    time: i64,
    about: Option<i64>,
    is_after: bool,
    step: u64,
    number: Option<u64>,
    at_event: bool,
    robustness: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum SavedValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Time(i64),
    Duration(i64),
    String(String),
}

impl Muting {
    /// Muting for a specification; `None` if no property has `@because_of`. `emits_every`: also verdicts without a change
    /// are emitted.
    pub(super) fn of(spec: &Spec, emits_every: bool) -> Option<Muting> {
        if spec.properties.iter().all(|property| property.because_of().is_none()) {
            return None;
        }
        let parameters = |property: &rondel_spec::Property| -> Vec<&str> {
            let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
            slice.into_iter().flat_map(|slice| &slice.keys).map(|key| key.name.as_str()).collect()
        };
        let mut roles: Vec<Role> = Vec::new();
        roles.resize_with(spec.properties.len(), Role::default);
        for (at, property) in spec.properties.iter().enumerate() {
            roles[at].name.clone_from(&property.name);
            let is_chain = spec.chains.iter().any(|chain| chain.name == property.name);
            roles[at].lasts = !is_chain && !looks_ahead(spec, property.formula);
            let Some(name) = property.because_of() else { continue };
            let Some(other) = spec.properties.iter().position(|other| other.name == name) else { continue };
            let (own, others) = (parameters(property), parameters(&spec.properties[other]));
            let shared = own.iter().enumerate().filter_map(|(i, name)| {
                let position = others.iter().position(|other| other == name)?;
                Some((i, position))
            });
            let (own, others) = shared.unzip();
            roles[at].cause = Some(Cause { own, others });
            roles[other].mutes.push(at as u32);
        }
        Some(Muting {
            roles,
            emits_every,
            violated: HashSet::new(),
            counts: HashMap::new(),
            muted: BTreeMap::new(),
            changes: Vec::new(),
            is_ordered: false,
            lap: 1,
            due: Reports::default(),
        })
    }

    /// Whether there is nothing to examine, and no report is due.
    pub(super) fn is_idle(&self) -> bool {
        self.changes.is_empty() && self.due.is_empty()
    }

    /// Reports that are due.
    pub(super) fn due(&mut self) -> &mut Reports {
        &mut self.due
    }

    /// Forgets the reports that were due.
    pub(super) fn forget_due(&mut self) {
        self.due = Reports::default();
    }

    /// Notes a report. Returns its number, or [`NONE`] if the property neither is muted nor mutes.
    pub(super) fn note(&mut self, property: u32, report: &EngineReport, monitor: &Monitor, lap: u32) -> u32 {
        let Some(role) = self.roles.get_mut(property as usize) else { return NONE };
        let is_concerned = role.cause.is_some() || !role.mutes.is_empty();
        if !is_concerned || !report.changed && !self.emits_every {
            return NONE;
        }
        if let Some((slice, _)) = monitor.instance(report) {
            role.slice = Some(slice);
        }
        let number = self.changes.len() as u32;
        self.changes.push(Change {
            property,
            lap,
            time: report.time.as_nanos(),
            order: 0,
            verdict: report.verdict,
            is_changed: report.changed,
            values: monitor.key(report).iter().map(json).collect(),
        });
        number
    }

    /// Notes the end of an instance: it is violated no more.
    pub(super) fn note_end(&mut self, property: u32, ended: &EndedInstance<'_>, monitor: &Monitor, lap: u32) {
        let Some(role) = self.roles.get(property as usize) else { return };
        let (Some(slice), true) = (role.slice, role.cause.is_some() || !role.mutes.is_empty()) else {
            return;
        };
        self.changes.push(Change {
            property,
            lap,
            time: ended.time.as_nanos(),
            order: 0,
            verdict: Verdict::Satisfied,
            is_changed: true,
            values: monitor.values_of(slice, ended.key).iter().map(json).collect(),
        });
    }

    /// Orders the changes of several alignment groups, as [`Reports::order`] does.
    pub(super) fn order(&mut self, groups: &[u32]) {
        let (mut latest, mut lap): (Vec<i64>, u32) = (Vec::new(), 0);
        for change in &mut self.changes {
            if std::mem::replace(&mut lap, change.lap) != change.lap {
                latest.clear();
            }
            let group = groups.get(change.property as usize).map_or(0, |group| *group as usize);
            if latest.len() <= group {
                latest.resize(group + 1, i64::MIN);
            }
            latest[group] = latest[group].max(change.time);
            change.order = latest[group];
        }
        self.is_ordered = true;
    }

    /// Decides which reports are muted, and which muted ones are due.
    pub(super) fn examine(&mut self, reports: &mut Reports) {
        if self.changes.is_empty() {
            return;
        }
        let mut changes = std::mem::take(&mut self.changes);
        let mut sequence: Vec<usize> = (0..changes.len()).collect();
        if std::mem::take(&mut self.is_ordered) {
            sequence.sort_by_key(|at| (changes[*at].lap, changes[*at].order));
        }
        // The report of each change, if it was emitted.
        let mut emitted: Vec<Option<usize>> = vec![None; changes.len()];
        for (position, pending) in reports.pending.iter().enumerate() {
            if let Some(of) = emitted.get_mut(pending.change as usize) {
                *of = Some(position);
            }
        }
        for point in sequence.chunk_by(|a, b| changes[*a].is_at(&changes[*b])) {
            let mut freed = Vec::new();
            for change in point.iter().map(|at| &changes[*at]) {
                self.begin_lap(change.lap);
                self.see_cause(change, &mut freed);
            }
            for at in point {
                let is_muted = self.see_effect(&changes[*at], emitted[*at], reports);
                if let Some(pending) = emitted[*at].and_then(|position| reports.pending.get_mut(position)) {
                    pending.is_muted = is_muted;
                    // It is examined once.
                    pending.change = NONE;
                }
            }
            for (property, shared) in freed {
                self.free(property, &shared);
            }
        }
        changes.clear();
        self.changes = changes;
    }

    /// Forgets the state of the lap before.
    fn begin_lap(&mut self, lap: u32) {
        if lap != self.lap {
            self.lap = lap;
            self.violated.clear();
            self.counts.clear();
            self.muted.clear();
        }
    }

    /// Applies a verdict of a property that mutes others. Adds those that may not be muted any more to `freed`, each
    /// with the values of its shared parameters.
    fn see_cause(&mut self, change: &Change, freed: &mut Vec<(u32, Values)>) {
        let Muting { roles, violated, counts, .. } = self;
        let mutes = roles.get(change.property as usize).map_or(&[][..], |role| role.mutes.as_slice());
        if mutes.is_empty() {
            return;
        }
        let instance = (change.property, change.values.clone());
        let begins = match change.verdict {
            Verdict::Violated if violated.len() < CAUSES => violated.insert(instance),
            Verdict::Violated | Verdict::Inconclusive => false,
            Verdict::Satisfied => {
                if !violated.remove(&instance) {
                    return;
                }
                false
            }
        };
        let ends = change.verdict == Verdict::Satisfied;
        for &muted in mutes {
            let Some(cause) = roles.get(muted as usize).and_then(|role| role.cause.as_ref()) else {
                continue;
            };
            let key = (muted, chosen(&change.values, &cause.others));
            if begins {
                *counts.entry(key).or_default() += 1;
            } else if ends && let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                    freed.push(key);
                }
            }
        }
    }

    /// Applies a verdict of a property that is muted by another one. Returns whether the verdict is muted.
    fn see_effect(&mut self, change: &Change, emitted: Option<usize>, reports: &Reports) -> bool {
        let Some(role) = self.roles.get(change.property as usize) else { return false };
        let Some(cause) = &role.cause else { return false };
        let shared = chosen(&change.values, &cause.own);
        let key = (change.property, shared.clone(), change.values.clone());
        if change.verdict != Verdict::Violated {
            self.muted.remove(&key);
            return false;
        }
        if !self.counts.contains_key(&(change.property, shared)) {
            return false;
        }
        if !change.is_changed || !role.lasts {
            return true;
        }
        if self.muted.len() >= MUTED && !self.muted.contains_key(&key) {
            return false;
        }
        if let Some(kept) = emitted.and_then(|position| reports.kept(position)) {
            self.muted.insert(key, kept);
        }
        true
    }

    /// Moves the muted violations of a property with these values to those that are due, if no instance of its cause is
    /// violated any more.
    fn free(&mut self, property: u32, shared: &Values) {
        if self.counts.contains_key(&(property, shared.clone())) {
            return;
        }
        let from = (property, shared.clone(), Values::default());
        let all = self.muted.range(from..).take_while(|((of, own, _), _)| *of == property && own == shared);
        let keys: Vec<_> = all.map(|(key, _)| key.clone()).collect();
        for key in keys {
            if let Some(kept) = self.muted.remove(&key) {
                self.due.add_kept(kept);
            }
        }
    }

    /// The state for a snapshot.
    pub(super) fn saved(&self) -> SavedMuting {
        let name = |property: u32| self.roles.get(property as usize).map(|role| role.name.clone());
        let violated =
            self.violated.iter().filter_map(|(property, values)| Some((name(*property)?, values.to_vec())));
        let mut violated: Vec<_> = violated.collect();
        violated.sort();
        let muted = self.muted.iter().filter_map(|((property, ..), kept)| {
            let Pending { report, number, .. } = kept.pending;
            Some(SavedMuted {
                property: name(*property)?,
                parameters: kept.parameters.iter().map(SavedValue::of).collect(),
                time: report.time.as_nanos(),
                about: report.about.map(Timestamp::as_nanos),
                is_after: report.after,
                step: report.step,
                number,
                at_event: report.at_event,
                robustness: report.robustness,
            })
        });
        SavedMuting { violated, muted: muted.collect() }
    }

    /// Restores the state, in this lap.
    pub(super) fn restore(&mut self, saved: &SavedMuting, lap: u32) {
        self.begin_lap(lap);
        let of_name: HashMap<String, u32> =
            (0..).zip(&self.roles).map(|(at, role)| (role.name.clone(), at)).collect();
        let mut freed = Vec::new();
        let change = |property: u32, values: Values| Change {
            property,
            lap,
            time: 0,
            order: 0,
            verdict: Verdict::Violated,
            is_changed: true,
            values,
        };
        for (name, values) in &saved.violated {
            if let Some(property) = of_name.get(name) {
                self.see_cause(&change(*property, values.iter().cloned().collect()), &mut freed);
            }
        }
        for muted in &saved.muted {
            let Some(&property) = of_name.get(&muted.property) else { continue };
            let Some(cause) = self.roles.get(property as usize).and_then(|role| role.cause.as_ref()) else {
                continue;
            };
            let kept = muted.kept(property, lap);
            let values: Values = kept.parameters.iter().map(json).collect();
            let shared = chosen(&values, &cause.own);
            if self.counts.contains_key(&(property, shared.clone())) {
                self.muted.insert((property, shared, values), kept);
            } else {
                // The other property begins again, as it was edited.
                self.due.add_kept(kept);
            }
        }
    }
}

impl SavedMuting {
    /// The state of these properties alone.
    pub(crate) fn of(&self, names: &HashSet<&str>) -> SavedMuting {
        let violated = self.violated.iter().filter(|(name, _)| names.contains(name.as_str()));
        let muted = self.muted.iter().filter(|muted| names.contains(muted.property.as_str()));
        SavedMuting { violated: violated.cloned().collect(), muted: muted.cloned().collect() }
    }
}

impl SavedMuted {
    fn kept(&self, property: u32, lap: u32) -> Kept {
        let time = Timestamp::from_nanos(self.time);
        let mut report = EngineReport::at_event(Verdict::Violated, self.step, time);
        report.about = self.about.map(Timestamp::from_nanos);
        (report.after, report.at_event, report.row) = (self.is_after, self.at_event, None);
        report.robustness = self.robustness;
        let [missing, explanation, values, change] = [NONE; 4];
        let pending = Pending {
            report,
            number: self.number,
            property,
            parameters: (0, 0),
            missing,
            explanation,
            values,
            order: 0,
            lap,
            change,
            is_muted: false,
        };
        let parameters = self.parameters.iter().map(SavedValue::value).collect();
        Kept { pending, parameters, values: None, explanation: None }
    }
}

impl SavedValue {
    fn of(value: &Value) -> SavedValue {
        match value {
            Value::Bool(b) => SavedValue::Bool(*b),
            Value::Int(i) => SavedValue::Int(*i),
            Value::Float(x) => SavedValue::Float(*x),
            Value::Time(nanos) => SavedValue::Time(*nanos),
            Value::Duration(nanos) => SavedValue::Duration(*nanos),
            Value::String(text) => SavedValue::String(text.to_string()),
        }
    }

    fn value(&self) -> Value {
        match self {
            SavedValue::Bool(b) => Value::Bool(*b),
            SavedValue::Int(i) => Value::Int(*i),
            SavedValue::Float(x) => Value::Float(*x),
            SavedValue::Time(nanos) => Value::Time(*nanos),
            SavedValue::Duration(nanos) => Value::Duration(*nanos),
            SavedValue::String(text) => Value::String(text.as_str().into()),
        }
    }
}

/// A value as JSON.
fn json(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The values at these positions.
fn chosen(values: &[String], positions: &[usize]) -> Values {
    positions.iter().filter_map(|at| values.get(*at).cloned()).collect()
}
