//! Verdicts of a monitor behind an alignment, and of one that evaluates a recording directly.

use std::collections::BTreeMap;
use std::sync::Arc;

use rondel_engine::{Monitor, Program, SeenAgain};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};
use rondel_spec::{Spec, TimeModel};

use crate::network::Message;

/// One verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Said {
    verdict: Verdict,
    changed: bool,
    time: Option<Timestamp>,
    about: Option<Timestamp>,
    robustness: Option<u64>,
}

/// All verdicts, by property and key.
pub(crate) type All = BTreeMap<(u32, String), Vec<Said>>;

/// Adds the reports of a monitor's last call.
///
/// In point-based time a delayed verdict is emitted at the next event or the next advance of time: when that is depends
/// on the driver, and is left out.
pub(crate) fn note(spec: &Spec, monitor: &Monitor, all: &mut All) {
    for report in monitor.reports() {
        let key = monitor.key(report);
        let key = if key.is_empty() { String::new() } else { format!("{key:?}") };
        let in_points = spec.properties[report.property as usize].time == TimeModel::Points;
        all.entry((report.property, key)).or_default().push(Said {
            verdict: report.verdict,
            changed: report.changed,
            time: (!in_points || report.about.is_none()).then_some(report.time),
            about: report.about,
            robustness: report.robustness.map(f64::to_bits),
        });
    }
}

/// One event of a recording: messages, of several topics if they are joined, and their time.
pub(crate) struct Row<'a> {
    pub(crate) time: i64,
    pub(crate) messages: Vec<&'a Message>,
    /// Nothing of it is to be relied on.
    pub(crate) forgotten: bool,
}

/// Messages of a topic missed from a time on. The last time is the one reached by then.
pub(crate) type Missed = (TopicId, Timestamp, SeenAgain, Timestamp);

/// Writes the fields of a message.
pub(crate) fn write(block: &mut Block, row: usize, program: &Program, message: &Message, forgotten: bool) {
    for field in &program.projections()[message.topic].fields {
        let path = field.path.to_string();
        let carried = [("x", true), ("ok", message.ok.is_some()), ("k", message.k.is_some())];
        match (path.as_str(), field.slot) {
            // A field that it does not carry keeps its value.
            (path, slot) if forgotten => {
                if carried.contains(&(path, true)) {
                    block.set_invalid(slot, row);
                }
            }
            ("x", slot @ Slot::Float(i)) => match message.x {
                Some(x) => block.set_float(i, row, x),
                None => block.set_invalid(slot, row),
            },
            // Whether it is NaN, for windows.
            ("x", slot @ Slot::Bool(i)) => match message.x {
                Some(x) => block.set_bool(i, row, x.is_nan()),
                None => block.set_invalid(slot, row),
            },
            ("ok", Slot::Bool(i)) => {
                message.ok.into_iter().for_each(|ok| block.set_bool(i, row, ok));
            }
            ("k", Slot::Int(i)) => message.k.into_iter().for_each(|k| block.set_int(i, row, k)),
            (path, slot) => panic!("{path} in {slot:?}"),
        }
    }
}

/// A recording that is evaluated directly.
struct Replay<'a> {
    spec: &'a Spec,
    monitor: Monitor,
    block: Block,
    all: All,
}

/// Missed messages, by the row before which they were missed.
type MissedRows<'m> = std::iter::Peekable<std::slice::Iter<'m, (usize, Missed)>>;

/// Evaluates a recording directly; after the rows up to `until`, time advances to just after it.
pub(crate) fn replay(
    spec: &Spec,
    program: &Arc<Program>,
    rows: &[Row<'_>],
    missed: &[(usize, Missed)],
    until: Option<i64>,
    every: bool,
) -> All {
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(every);
    let mut replay = Replay { spec, monitor, block: Block::new(program.layout()), all: All::new() };
    let mut missed = missed.iter().peekable();
    let known = rows.partition_point(|row| until.is_none_or(|until| row.time <= until));
    for (i, row) in rows.iter().enumerate() {
        if i == known {
            replay.miss(&mut missed, i, until);
            replay.pass(until);
        }
        replay.miss(&mut missed, i, None);
        let block = &mut replay.block;
        let at = block.push(TopicId(row.messages[0].topic as u32), Timestamp::from_nanos(row.time));
        for message in &row.messages {
            block.extend(TopicId(message.topic as u32), 1 << at);
            write(block, at, program, message, row.forgotten);
        }
        if replay.block.is_full() {
            replay.step();
        }
    }
    if known == rows.len() {
        replay.miss(&mut missed, known, until);
        replay.pass(until);
    }
    replay.miss(&mut missed, rows.len(), None);
    replay.step();
    replay.monitor.end();
    replay.note();
    replay.all
}

impl Replay<'_> {
    fn note(&mut self) {
        note(self.spec, &self.monitor, &mut self.all);
    }

    fn step(&mut self) {
        self.monitor.step(&self.block);
        self.note();
        self.block.clear();
    }

    /// Reports messages missed before a row to the monitor; if time passes to `until` first, no more than up to there.
    fn miss(&mut self, missed: &mut MissedRows<'_>, row: usize, until: Option<i64>) {
        let is_now = |(at, (.., reached)): &&(usize, Missed)| {
            *at <= row && until.is_none_or(|until| reached.as_nanos() <= until)
        };
        while let Some((_, (topic, from, until, reached))) = missed.next_if(is_now) {
            self.step();
            self.monitor.advance(*reached);
            self.note();
            self.monitor.miss(&[*topic], *from, *until);
            self.note();
        }
    }

    /// Advances time to just after `until`.
    fn pass(&mut self, until: Option<i64>) {
        if let Some(until) = until {
            self.step();
            self.monitor.advance(Timestamp::from_nanos(until + 1));
            self.note();
        }
    }
}

/// First difference between two outputs.
pub(crate) fn difference(program: &Program, found: &All, expected: &All) -> Option<String> {
    let nothing = Vec::new();
    found.keys().chain(expected.keys()).find_map(|of| {
        let (found, expected) = (found.get(of).unwrap_or(&nothing), expected.get(of).unwrap_or(&nothing));
        let i = (0..found.len().max(expected.len())).find(|&i| found.get(i) != expected.get(i))?;
        let (name, key) = (&program.properties()[of.0 as usize], &of.1);
        let (found, expected) = (found.get(i), expected.get(i));
        Some(format!("{name}{key}, verdict {i}:\n  found    {found:?}\n  expected {expected:?}"))
    })
}
