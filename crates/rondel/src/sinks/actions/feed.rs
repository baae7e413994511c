//! The part of the evaluating thread: from verdicts to records.

use std::sync::Arc;

use rondel_event::{Timestamp, Value};
use rondel_runtime::ros2::Part;
use rondel_runtime::{Clock, Emit, Notice, PropertyInfo, Report};

use super::limit::Allowance;
use super::open::OpenViolations;
use super::queue::{Counters, Kind, Queue, Record};
use super::state::{ActionHandle, Shown};
use super::{Act, ActionSettings, On};
use crate::sinks::silenced::Silenced;

/// Puts records of verdicts into the queue, from the evaluating thread.
pub struct ActionFeed {
    /// The actions that each property may cause, by position.
    selected: Vec<Box<[u32]>>,
    /// The properties.
    properties: Arc<ActingProperties>,
    paces: Vec<Pace>,
    /// The open violations of these properties; `None` if satisfied verdicts, which close them, are not emitted.
    open: Option<OpenViolations>,
    counters: Arc<[Counters]>,
    queue: Arc<Queue>,
    clock: Arc<dyn Clock>,
    silenced: Silenced,
    handle: ActionHandle,
    shown: Shown,
}

/// Condition and limits of an action.
struct Pace {
    on: On,
    kind: Kind,
    allowance: Allowance,
}

impl ActionFeed {
    pub(super) fn new(
        settings: &[ActionSettings],
        properties: &[PropertyInfo],
        emit: Emit,
        handle: ActionHandle,
        clock: Arc<dyn Clock>,
        silenced: Silenced,
    ) -> ActionFeed {
        let pace = |action: &ActionSettings| Pace {
            on: action.on,
            kind: match action.act {
                Act::Publish(_) => Kind::Publish,
                Act::Run(_) => Kind::Run,
                Act::Call(_) => Kind::Call,
            },
            allowance: Allowance::new(action.limit),
        };
        ActionFeed {
            selected: selected(settings, properties.len()),
            properties: Arc::new(ActingProperties::new(settings, properties)),
            paces: settings.iter().map(pace).collect(),
            open: shows_ends(emit).then(OpenViolations::default),
            counters: handle.counters(),
            queue: handle.queue(),
            clock,
            silenced,
            handle,
            shown: Shown::default(),
        }
    }

    /// Takes a verdict. Nothing is allocated unless an action begins.
    pub fn verdict(&mut self, report: &Report<'_>) {
        let ActionFeed { selected, properties, paces, open, counters, queue, clock, silenced, .. } = self;
        let position = report.property().position as usize;
        let Some(selected) = selected.get(position).filter(|selected| !selected.is_empty()) else { return };
        // A verdict may cause actions if it differs from the one before of its instance, and is not muted or silenced.
        if !report.changed() || report.because_of().is_some() {
            return;
        }
        // Also a silenced violation is open: if it continues after the silence, it is the same one.
        let continues = open.as_mut().is_some_and(|open| open.take(report));
        if continues || silenced.silences(report) {
            return;
        }
        for &action in selected.iter() {
            let (pace, own) = (&mut paces[action as usize], &counters[action as usize]);
            if !pace.on.is_met(report.verdict()) {
                continue;
            }
            Counters::add(&own.caused);
            if !pace.allowance.take(clock.ticks()) {
                Counters::add(&own.limited);
                continue;
            }
            let record = record(action, report, properties);
            if !queue.push(pace.kind, record) {
                Counters::add(&own.dropped);
            }
        }
    }

    /// Takes the properties of an exchanged specification. The actions are the same ones: `settings` has the properties that
    /// cause them. `kept` has for each property its position before, if it keeps its state: its open violations then stay.
    pub fn exchange(
        &mut self,
        settings: &[ActionSettings],
        properties: &[PropertyInfo],
        emit: Emit,
        kept: &[Option<u32>],
    ) {
        self.selected = selected(settings, properties.len());
        self.properties = Arc::new(ActingProperties::new(settings, properties));
        self.open = shows_ends(emit).then(|| {
            let mut open = self.open.take().unwrap_or_default();
            open.rearrange(kept);
            open
        });
    }

    /// Returns a notice if actions were dropped, limited, or failed since the last one; the last one when the run `ends`.
    pub fn look(&mut self, now: Timestamp, ends: bool) -> Option<Notice> {
        self.shown.look(&self.handle, now, ends)
    }

    /// The state of the actions in diagnostics.
    pub fn part(&self) -> Part {
        self.handle.part()
    }
}

/// Whether the verdicts that end violations are emitted.
fn shows_ends(emit: Emit) -> bool {
    emit != Emit::Violations
}

/// Returns the actions that each property may cause.
fn selected(settings: &[ActionSettings], properties: usize) -> Vec<Box<[u32]>> {
    let selects = |action: &ActionSettings, position: usize| action.properties.get(position) == Some(&true);
    let of = |position: usize| {
        let all = (0..).zip(settings).filter(|(_, action)| selects(action, position));
        all.map(|(number, _)| number).collect()
    };
    (0..properties).map(of).collect()
}

/// The properties of a specification, for the records of their verdicts: another specification may follow while these
/// wait.
#[derive(Debug)]
pub(super) struct ActingProperties {
    all: Vec<PropertyInfo>,
    /// Paths of the values that actions of each property use.
    paths: Vec<Vec<String>>,
}

impl ActingProperties {
    fn new(settings: &[ActionSettings], properties: &[PropertyInfo]) -> ActingProperties {
        ActingProperties { all: properties.to_vec(), paths: paths(settings, properties) }
    }

    /// The property at a position.
    pub(super) fn property(&self, position: u32) -> &PropertyInfo {
        &self.all[position as usize]
    }

    /// Paths of the values that its actions use.
    pub(super) fn paths(&self, position: u32) -> &[String] {
        self.paths.get(position as usize).map_or(&[][..], Vec::as_slice)
    }
}

/// Returns the paths of the values that actions of each property use.
fn paths(settings: &[ActionSettings], properties: &[PropertyInfo]) -> Vec<Vec<String>> {
    let of = |property: &PropertyInfo| {
        let position = property.position as usize;
        let own = settings.iter().filter(|action| action.properties.get(position) == Some(&true));
        let is_parameter = |name: &str| property.parameters.iter().any(|parameter| parameter == name);
        let mut all: Vec<String> = own.flat_map(|action| action.paths(is_parameter)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    properties.iter().map(of).collect()
}

fn record(action: u32, report: &Report<'_>, properties: &Arc<ActingProperties>) -> Record {
    let mut id = Vec::new();
    report.write_id(&mut id);
    let paths = properties.paths(report.property().position);
    Record {
        action,
        property: report.property().position,
        properties: Arc::clone(properties),
        verdict: report.verdict(),
        time: report.time(),
        robustness: report.robustness(),
        id,
        parameters: report.parameters().to_vec(),
        values: paths.iter().map(|path| value(report, path)).collect(),
    }
}

/// Returns the last known value of a path in the explanation, or that of a quantified variable of this name.
fn value(report: &Report<'_>, path: &str) -> Option<Value> {
    let explained = report.explanation().and_then(|explanation| {
        let place = explanation.names.iter().position(|name| name == path)?;
        explanation.points.iter().rev().find_map(|point| point.values.get(place)?.clone())
    });
    explained.or_else(|| report.values().find(|(name, _)| *name == path).map(|(_, value)| value.clone()))
}
