//! A second monitor that begins after a span of missed messages with everything before unknown: its verdicts hold
//! whatever was missed.

use std::collections::VecDeque;
use std::sync::Arc;

use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};
use rondel_spec::{Property, Spec};
use serde::{Deserialize, Serialize};

use super::unknown::{Rewritten, rewrite, unknown_path};
use crate::exec::report::Report;
use crate::monitor::program::Program;
use crate::monitor::{Monitor, Snapshot};

/// Program of a [`Fresh`] monitor.
#[derive(Debug)]
pub(crate) struct FreshPlan {
    program: Arc<Program>,
    /// Pairs of columns: of the monitored program, and of this one.
    columns: Vec<(Slot, Slot)>,
    /// Column of the field that is unknown before the first event.
    unknown: u32,
    topic: TopicId,
    rows: u64,
    back: i64,
}

impl FreshPlan {
    /// Plan for a property, if its formula can be evaluated this way.
    pub(super) fn new(program: &Program, spec: &Spec, property: &Property) -> Option<FreshPlan> {
        let Rewritten { spec, topic, rows, back } = rewrite(spec, property)?;
        let own = Program::compile(&spec).ok()?;
        let mut columns = Vec::new();
        for (projection, all) in own.projections().iter().zip(program.projections()) {
            for field in &projection.fields {
                let same =
                    |other: &&rondel_event::Field| (&other.path, &other.read) == (&field.path, &field.read);
                columns.push((all.fields.iter().find(same)?.slot, field.slot));
            }
        }
        let fields = &own.projections().get(topic.index())?.fields;
        let unknown = fields.iter().find(|field| field.path == unknown_path())?;
        let Slot::Bool(unknown) = unknown.slot else { return None };
        Some(FreshPlan { program: Arc::new(own), columns, unknown, topic, rows, back })
    }

    /// Creates a monitor before an event at this time with everything unknown, and a block for events.
    fn begin(&self, time: i64) -> Box<(Monitor, Block)> {
        let mut monitor = Monitor::new(Arc::clone(&self.program));
        let mut own = Block::new(self.program.layout());
        for i in 0..self.rows {
            let back = if i == 0 { self.back } else { 0 };
            let row = own.push(self.topic, Timestamp::from_nanos(time.saturating_sub(back)));
            own.set_invalid(Slot::Bool(self.unknown), row);
            if own.is_full() || i + 1 == self.rows {
                monitor.step(&own);
                own.clear();
            }
        }
        monitor.report_every(true);
        Box::new((monitor, own))
    }

    /// Adds an event of the monitored program to its own events. Returns whether it has a topic.
    fn copy(&self, block: &Block, row: usize, time: i64, own: &mut Block) -> bool {
        let mut topics =
            (0..self.topic.0).map(TopicId).filter(|topic| block.topic_rows(*topic) >> row & 1 == 1);
        let Some(first) = topics.next() else { return false };
        let to = own.push(first, Timestamp::from_nanos(time));
        topics.for_each(|topic| own.extend(topic, 1 << to));
        for &(from, slot) in &self.columns {
            copy(block, from, row, own, slot, to);
        }
        if let Some(arrival) = block.arrival(row) {
            own.set_arrival(to, arrival);
        }
        true
    }
}

/// Verdict of a fresh monitor: at an event in a row, or at a time or right after it.
type FreshVerdict = (Option<u8>, Timestamp, bool, Verdict);

/// Fresh monitor that has begun.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fresh {
    /// Serialised monitor, set in snapshots.
    saved: Vec<u8>,
    #[serde(skip)]
    monitor: Option<Box<(Monitor, Block)>>,
    /// Last verdict, if it is known.
    #[serde(with = "crate::ops::saved::verdict")]
    last: Option<Verdict>,
    /// Whether nothing depends on the time before the span any more.
    pub(super) is_over: bool,
    /// Verdicts to be compared.
    #[serde(skip)]
    ahead: VecDeque<FreshVerdict>,
    /// For each such event: whether the monitor is over.
    #[serde(skip)]
    over: VecDeque<bool>,
    /// Whether the events of the block were evaluated before.
    #[serde(skip)]
    is_ahead: bool,
}

impl Fresh {
    /// Evaluates the first event after the span, before which everything is unknown, or a later one that was not
    /// [looked ahead](Fresh::look_ahead) at.
    pub(super) fn event(&mut self, plan: &FreshPlan, block: &Block, row: usize, time: i64) {
        if self.is_ahead {
            return;
        }
        let is_first = self.monitor.is_none();
        let (_, own) = &mut **self.monitor.get_or_insert_with(|| plan.begin(time));
        own.clear();
        if !plan.copy(block, row, time, own) {
            return;
        }
        if is_first {
            own.set_bool(plan.unknown, 0, false);
        }
        self.step();
    }

    /// Advances to a time.
    pub(super) fn advance(&mut self, now: i64) {
        let Some((monitor, _)) = self.monitor.as_deref_mut() else { return };
        let reports = monitor.advance(Timestamp::from_nanos(now)).iter().filter(|own| own.property == 0);
        self.ahead.extend(reports.map(|own| (None, own.time, own.after, own.verdict)));
    }

    /// Advances past the time of a report. Verdicts after the last event may have been computed with it; time advances
    /// only if there are none.
    pub(super) fn reach(&mut self, time: Timestamp) {
        if self.ahead.is_empty() {
            self.advance(time.as_nanos().saturating_add(1));
        }
    }

    /// Earliest time for which [`Fresh::advance`] does something.
    pub(super) fn next_deadline(&self) -> Option<i64> {
        self.monitor.as_deref()?.0.next_deadline().map(Timestamp::as_nanos)
    }

    /// Takes the next verdict by time alone, before the next event and before `until`.
    pub(super) fn by_time(&mut self, until: Option<(Timestamp, bool)>) -> Option<(Timestamp, bool, Verdict)> {
        let (None, time, after, verdict) = self.ahead.front().copied()? else { return None };
        if until.is_some_and(|until| (time, after) >= until) {
            return None;
        }
        self.ahead.pop_front();
        self.last = Some(verdict);
        Some((time, after, verdict))
    }

    /// Takes the verdict at the event.
    pub(super) fn take(&mut self) {
        // Every event has a verdict.
        while let Some((of, _, _, verdict)) = self.ahead.pop_front() {
            self.last = Some(verdict);
            if of.is_some() {
                break;
            }
        }
        self.is_over = self.over.pop_front().unwrap_or(self.is_over);
    }

    /// Evaluates all events of a block at once, if the monitor has begun; [`Fresh::event`] reads the results.
    pub(super) fn look_ahead(&mut self, plan: &FreshPlan, block: &Block, times: impl Fn(usize) -> i64) {
        let Some((_, own)) = self.monitor.as_deref_mut() else { return };
        own.clear();
        self.is_ahead = (0..block.len()).all(|row| plan.copy(block, row, times(row), own));
        if self.is_ahead {
            self.step();
        }
    }

    /// Ends a call; all its verdicts were compared.
    pub(super) fn end_call(&mut self) {
        self.is_ahead = false;
        self.over.clear();
        if let Some((.., verdict)) = self.ahead.drain(..).next_back() {
            self.last = Some(verdict);
        }
    }

    fn step(&mut self) {
        let Some((monitor, own)) = self.monitor.as_deref_mut() else { return };
        for report in monitor.step(own) {
            match report.property {
                0 => self.ahead.push_back((report.row, report.time, report.after, report.verdict)),
                _ if report.row.is_some() => self.over.push_back(report.verdict == Verdict::Satisfied),
                _ => {}
            }
        }
    }

    /// Whether the monitor's verdict equals that of a report, which is at the last event or after it.
    pub(super) fn agrees(&mut self, report: &Report) -> bool {
        if self.monitor.is_none() {
            return false;
        }
        if report.row.is_none() {
            self.reach(report.time);
            Fresh::pass(&mut self.ahead, &mut self.last, (report.time, report.after));
        }
        report.verdict != Verdict::Inconclusive && self.last == Some(report.verdict)
    }

    /// Skips verdicts by time alone up to a time, or up to the interval after it.
    fn pass(ahead: &mut VecDeque<FreshVerdict>, last: &mut Option<Verdict>, wanted: (Timestamp, bool)) {
        while let Some((None, time, after, verdict)) = ahead.front().copied()
            && (time, after) <= wanted
        {
            *last = Some(verdict);
            ahead.pop_front();
        }
    }

    /// Transfers the monitor to another program.
    pub(super) fn moved(mut self, plan: &FreshPlan) -> Option<Fresh> {
        let snapshot = Snapshot::read(&self.saved).ok()?;
        if !snapshot.lost(&plan.program).is_empty() || snapshot.is_new_to(&plan.program) {
            return None;
        }
        self.saved = Monitor::adopt(Arc::clone(&plan.program), snapshot).ok()?.snapshot();
        Some(self)
    }

    /// Serialises the monitor.
    pub(super) fn save(&mut self) {
        if let Some(monitor) = self.monitor.take() {
            self.saved = monitor.0.snapshot();
        }
    }

    /// Restores the monitor. Returns whether there is one.
    pub(super) fn restore(&mut self, plan: &FreshPlan) -> bool {
        let Ok(mut monitor) = Monitor::restore(Arc::clone(&plan.program), &self.saved) else { return false };
        monitor.report_every(true);
        self.monitor = Some(Box::new((monitor, Block::new(plan.program.layout()))));
        self.saved = Vec::new();
        true
    }
}

/// Copies a field of a row to a row of another block.
pub(super) fn copy(from: &Block, slot: Slot, row: usize, to: &mut Block, own: Slot, at: usize) {
    if from.present(slot) >> row & 1 == 0 {
        return;
    }
    let is = |rows: u64| rows >> row & 1 == 1;
    match (slot, own) {
        (Slot::Bool(i), Slot::Bool(own)) if is(from.bools(i).valid) => {
            to.set_bool(own, at, is(from.bools(i).values));
        }
        (Slot::Int(i), Slot::Int(own)) if is(from.ints(i).valid) => {
            to.set_int(own, at, from.ints(i).values[row]);
        }
        (Slot::Float(i), Slot::Float(own)) if is(from.floats(i).valid) => {
            to.set_float(own, at, from.floats(i).values[row]);
        }
        (Slot::String(i), Slot::String(own)) if is(from.strings(i).valid) => {
            to.set_string(own, at, &String::from_utf8_lossy(from.text(i, row)));
        }
        _ => to.set_invalid(own, at),
    }
}
