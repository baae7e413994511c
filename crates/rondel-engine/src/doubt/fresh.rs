//! A second monitor that begins after a span in which messages were not seen, with everything before unknown: a
//! verdict that it gives holds whatever was missed.

use std::sync::Arc;

use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};
use rondel_spec::{Property, Spec};
use serde::{Deserialize, Serialize};

use super::unknown::{Rewritten, rewrite, unknown_path};
use crate::monitor::Monitor;
use crate::program::Program;
use crate::report::Report;

/// The program of such a monitor.
#[derive(Debug)]
pub(crate) struct FreshPlan {
    program: Arc<Program>,
    /// The columns of the monitored program, and its own.
    columns: Vec<(Slot, Slot)>,
    /// The column of what is unknown before the first event.
    unknown: u32,
    topic: TopicId,
    rows: u64,
    back: i64,
}

impl FreshPlan {
    /// The plan for a property of a program, if its formula can be evaluated so.
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
}

/// Such a monitor, once it has begun.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fresh {
    /// The monitor, in a snapshot.
    saved: Vec<u8>,
    #[serde(skip)]
    monitor: Option<Box<(Monitor, Block)>>,
    /// The last verdict, if it is known.
    #[serde(with = "crate::snapshot::verdict")]
    last: Option<Verdict>,
    /// Whether nothing depends any more on what was before.
    pub(super) is_over: bool,
}

impl Fresh {
    /// Takes an event, before the first of which everything is unknown.
    pub(super) fn event(&mut self, plan: &FreshPlan, block: &Block, row: usize, time: i64) {
        let is_first = self.monitor.is_none();
        let (monitor, own) = &mut **self.monitor.get_or_insert_with(|| {
            let mut monitor = Monitor::new(Arc::clone(&plan.program));
            let mut own = Block::new(plan.program.layout());
            for i in 0..plan.rows {
                let back = if i == 0 { plan.back } else { 0 };
                let row = own.push(plan.topic, Timestamp::from_nanos(time.saturating_sub(back)));
                own.set_invalid(Slot::Bool(plan.unknown), row);
                if own.is_full() || i + 1 == plan.rows {
                    monitor.step(&own);
                    own.clear();
                }
            }
            monitor.report_every(true);
            Box::new((monitor, own))
        });
        own.clear();
        let topics = (0..plan.topic.0).map(TopicId).filter(|topic| block.topic_rows(*topic) >> row & 1 == 1);
        for (i, topic) in topics.enumerate() {
            match i {
                0 => drop(own.push(topic, Timestamp::from_nanos(time))),
                _ => own.extend(topic, 1),
            }
        }
        if own.is_empty() {
            return;
        }
        for &(from, to) in &plan.columns {
            copy(block, from, row, own, to);
        }
        if let Some(arrival) = block.arrival(row) {
            own.set_arrival(0, arrival);
        }
        if is_first {
            own.set_bool(plan.unknown, 0, false);
        }
        monitor.step(own);
        for report in monitor.reports() {
            match report.property {
                0 => self.last = Some(report.verdict),
                _ => self.is_over = report.verdict == Verdict::Satisfied,
            }
        }
    }

    /// Whether it gives the verdict of a report, which comes after the last event or with it.
    pub(super) fn agrees(&mut self, report: &Report) -> bool {
        let Some((monitor, _)) = self.monitor.as_deref_mut() else { return false };
        let mut verdict = self.last;
        if report.row.is_none() {
            let place = |time: Timestamp, after: bool| (time, after);
            let wanted = place(report.time, report.after);
            let next = Timestamp::from_nanos(report.time.as_nanos().saturating_add(1));
            for own in monitor.advance(next).iter().filter(|own| own.property == 0) {
                if place(own.time, own.after) <= wanted {
                    verdict = Some(own.verdict);
                }
                self.last = Some(own.verdict);
            }
        }
        report.verdict != Verdict::Inconclusive && verdict == Some(report.verdict)
    }

    /// Writes the monitor down.
    pub(super) fn save(&mut self) {
        if let Some(monitor) = self.monitor.take() {
            self.saved = monitor.0.snapshot();
        }
    }

    /// Reads the monitor back. Returns whether there is one.
    pub(super) fn restore(&mut self, plan: &FreshPlan) -> bool {
        let Ok(mut monitor) = Monitor::restore(Arc::clone(&plan.program), &self.saved) else { return false };
        monitor.report_every(true);
        self.monitor = Some(Box::new((monitor, Block::new(plan.program.layout()))));
        self.saved = Vec::new();
        true
    }
}

/// Copies a field of a row to the first row of another block.
fn copy(from: &Block, slot: Slot, row: usize, to: &mut Block, own: Slot) {
    if from.present(slot) >> row & 1 == 0 {
        return;
    }
    let is = |rows: u64| rows >> row & 1 == 1;
    match (slot, own) {
        (Slot::Bool(i), Slot::Bool(own)) if is(from.bools(i).valid) => {
            to.set_bool(own, 0, is(from.bools(i).values));
        }
        (Slot::Int(i), Slot::Int(own)) if is(from.ints(i).valid) => {
            to.set_int(own, 0, from.ints(i).values[row]);
        }
        (Slot::Float(i), Slot::Float(own)) if is(from.floats(i).valid) => {
            to.set_float(own, 0, from.floats(i).values[row]);
        }
        (Slot::String(i), Slot::String(own)) if is(from.strings(i).valid) => {
            to.set_string(own, 0, &String::from_utf8_lossy(from.text(i, row)));
        }
        _ => to.set_invalid(own, 0),
    }
}
