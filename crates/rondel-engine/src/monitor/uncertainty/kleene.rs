//! A second monitor of a property in dense time that treats missed messages as unknown.
//!
//! It evaluates the [rewritten](super::partial) formula from the state of the monitor. Its verdict holds for every
//! trace that differs from the received one only in the missing messages. Its input are the events and additional rows
//! where spans of missing messages begin and end.

use std::sync::Arc;

use rondel_event::{Block, Read, Slot, Timestamp, TopicId, Verdict};
use serde::{Deserialize, Serialize};

use super::fresh::copy;
use super::partial::{Counter, Partial, counter_path, held_path, lost_path, rewrite};
use super::state::End;
use crate::exec::report::Report;
use crate::exec::section::{Section, TimePoints};
use crate::exec::serial::{Serial, StateTransfer};
use crate::monitor::program::Program;
use crate::monitor::{FARTHEST, Monitor, Snapshot, at, before};

/// Maximum number of simultaneous spans; with more, the property is not evaluated this way.
const SPANS: usize = 64;
/// Time between the initial rows and the state that follows, in addition to all bounds, in nanoseconds.
const APART: i64 = 1_000_000_000;

/// Program of a [`Kleene`] monitor.
#[derive(Debug)]
pub(crate) struct KleenePlan {
    program: Arc<Program>,
    transfer: StateTransfer,
    /// Pairs of columns: of the monitored program, and of this one.
    columns: Vec<(Slot, Slot)>,
    topics: Vec<TopicFields>,
    counters: Vec<(Counter, Vec<Option<u32>>)>,
    /// First topic that the monitored program does not have.
    first: TopicId,
    back: i64,
}

/// Columns that describe the knowledge about a topic.
#[derive(Debug, Default)]
struct TopicFields {
    lost: Option<u32>,
    held: Option<u32>,
    /// Fields of its messages.
    own: Vec<Slot>,
}

impl KleenePlan {
    /// Plan for a property of a program, if it can be evaluated this way.
    pub(super) fn new(program: &Program, place: usize) -> Option<KleenePlan> {
        let property = program.spec.properties.get(place)?;
        let Partial { mut spec, first, counters, back } = rewrite(&program.spec, property)?;
        let own = Program::compile_assuming(&spec, first).ok()?;
        let other = section_of(program.simplified()?, place as u32)?;
        // The property that is true once nothing is unknown has no state there.
        spec.properties.truncate(1);
        let formula = Program::compile_assuming(&spec, first).ok()?;
        let required = StateTransfer::required(formula.sections.first()?);
        let transfer =
            StateTransfer::new(own.sections.first()?, other, |identity| required.contains(&identity))?;
        let mut columns = Vec::new();
        for (projection, all) in own.projections().iter().zip(program.projections()) {
            for field in &projection.fields {
                let same =
                    |other: &&rondel_event::Field| (&other.path, &other.read) == (&field.path, &field.read);
                columns.push((all.fields.iter().find(same)?.slot, field.slot));
            }
        }
        let column = |topic: TopicId, path: rondel_event::Path| {
            let projection = own.projections().get((first.0 + topic.0) as usize)?;
            match projection.fields.iter().find(|field| field.path == path)?.slot {
                Slot::Bool(column) => Some(column),
                _ => None,
            }
        };
        let topics = (0..first.0).map(TopicId).map(|topic| {
            let fields = own.projections().get(topic.index()).into_iter().flat_map(|all| &all.fields);
            TopicFields {
                lost: column(topic, lost_path()),
                held: column(topic, held_path()),
                own: fields.filter(|field| field.read != Read::Presence).map(|field| field.slot).collect(),
            }
        });
        let topics = topics.collect();
        let counters = counters.into_iter().enumerate().map(|(number, counter)| {
            let columns = counter.topics.iter().map(|topic| column(*topic, counter_path(number))).collect();
            (counter, columns)
        });
        let counters = counters.collect();
        Some(KleenePlan { transfer, columns, topics, counters, first, back, program: Arc::new(own) })
    }

    /// Topic that nothing reads.
    fn neutral(&self) -> TopicId {
        TopicId(self.first.0 * 2)
    }

    /// Topic with the knowledge fields of `topic`.
    fn beside(&self, topic: u32) -> TopicId {
        TopicId(self.first.0 + topic)
    }

    fn columns_of(&self, topic: u32) -> impl Iterator<Item = u32> + '_ {
        let fields = self.topics.get(topic as usize);
        let own = fields.into_iter().flat_map(|fields| [fields.lost, fields.held]);
        own.flatten().chain(self.counters_of(topic))
    }

    fn counters_of(&self, topic: u32) -> impl Iterator<Item = u32> + '_ {
        self.counters.iter().flat_map(move |(counter, columns)| {
            let its = counter.topics.iter().zip(columns).filter(move |(of, _)| of.0 == topic);
            its.filter_map(|(_, column)| *column)
        })
    }
}

/// Section of a dense-time property without instances, if it is evaluated at events.
fn section_of(program: &Program, property: u32) -> Option<&Section> {
    program.sections.get(place_of(program, property)?)
}

/// Position of the section of a property.
pub(super) fn place_of(program: &Program, property: u32) -> Option<usize> {
    let is_its = |section: &Section| {
        section.time_points == TimePoints::Dense
            && section.linear.is_none()
            && section.properties.contains(&property)
    };
    program.sections.iter().position(is_its)
}

/// End of a part of a span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Edge {
    /// Unknown yet.
    Open,
    /// With the next event.
    Next,
    /// At this time.
    At(i64),
    Passed,
}

impl Edge {
    fn time(self) -> Option<i64> {
        match self {
            Edge::At(time) => Some(time),
            _ => None,
        }
    }

    fn pass(&mut self, time: i64) -> bool {
        let passes = *self == Edge::At(time);
        if passes {
            *self = Edge::Passed;
        }
        passes
    }
}

/// Span in which messages of a topic may be missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Span {
    topic: u32,
    begins: Edge,
    /// End of the part in which no message counts.
    seen: Edge,
    /// End of the part in which messages may be missing.
    missed: Edge,
}

impl Span {
    fn end(&mut self, end: End) {
        let next = |time: i64| Edge::At(time.saturating_add(1));
        (self.seen, self.missed) = match end {
            End::Open => (Edge::Open, Edge::Open),
            End::Here(time) => (Edge::Next, next(time)),
            End::Before(time) => (Edge::At(time), Edge::At(time)),
            End::Through(time) => (next(time), next(time)),
            End::Between(seen, missed) => (Edge::At(seen), next(missed)),
        };
    }

    fn edge(&self) -> Option<i64> {
        if let Edge::At(time) = self.begins {
            return Some(time);
        }
        self.seen.time().into_iter().chain(self.missed.time()).min()
    }

    fn is_lost(&self, topic: u32) -> bool {
        self.topic == topic && self.begins == Edge::Passed && self.missed != Edge::Passed
    }

    fn is_blind(&self, topic: u32) -> bool {
        self.topic == topic && self.begins == Edge::Passed && self.seen != Edge::Passed
    }
}

/// Verdict of a [`Kleene`] monitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct KleeneVerdict {
    pub(super) verdict: Verdict,
    /// Row of its event.
    pub(super) row: Option<u8>,
    pub(super) time: Timestamp,
    pub(super) after: bool,
    /// Sort key among the reports of the call.
    pub(super) order: u32,
}

/// Monitor that treats missed messages as unknown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Kleene {
    /// Serialised monitor, set in snapshots.
    saved: Vec<u8>,
    #[serde(skip)]
    monitor: Option<Box<(Monitor, Block)>>,
    spans: Vec<Span>,
    /// For each counter: number of messages still needed.
    counts: Vec<u32>,
    /// Last verdict of the monitored program.
    #[serde(with = "crate::ops::saved::verdict")]
    pub(super) seen: Option<Verdict>,
    #[serde(with = "crate::ops::saved::verdict")]
    pub(super) shown: Option<Verdict>,
    /// Whether nothing is unknown any more, so that this monitor is no longer needed.
    pub(super) is_over: bool,
    /// For each row of the block: row of its event, or of the next event.
    #[serde(skip)]
    origins: Vec<(bool, u8)>,
    #[serde(skip)]
    entries: Vec<KleeneVerdict>,
}

/// Position within a call.
#[derive(Clone, Copy)]
struct InCall<'a> {
    times: &'a [i64],
    row: u8,
}

impl Kleene {
    /// Creates a monitor with the state of a section at a time.
    pub(super) fn new(plan: &KleenePlan, from: &Serial, time: i64, position: u64) -> Kleene {
        let mut monitor = Monitor::new(Arc::clone(&plan.program));
        let mut own = Block::new(plan.program.layout());
        let before = time.saturating_sub(plan.back).saturating_sub(APART).max(-FARTHEST);
        let row = own.push(plan.neutral(), Timestamp::from_nanos(before));
        for column in (0..plan.first.0).flat_map(|topic| plan.columns_of(topic)) {
            own.set_bool(column, row, false);
        }
        monitor.step(&own);
        if let Some(serial) = monitor.sections.first_mut() {
            serial.transfer(from, &plan.transfer);
        }
        (monitor.time, monitor.position) = (time, position);
        monitor.report_every(true);
        Kleene {
            monitor: Some(Box::new((monitor, own))),
            counts: vec![0; plan.counters.len()],
            ..Kleene::default()
        }
    }

    /// Adds a span in which messages of topics may be missing. Returns whether there was room for it.
    pub(super) fn miss(&mut self, plan: &KleenePlan, topics: &[TopicId], from: i64, end: End) -> bool {
        for topic in topics.iter().filter(|topic| topic.0 < plan.first.0) {
            let is_same = |span: &Span| span.topic == topic.0 && span.missed == Edge::Open;
            if end == End::Open && self.spans.iter().any(is_same) {
                continue;
            }
            let begins = Edge::At(from);
            let mut span = Span { topic: topic.0, begins, seen: Edge::Open, missed: Edge::Open };
            span.end(end);
            self.spans.push(span);
        }
        self.is_over = false;
        self.spans.len() <= SPANS
    }

    /// Ends the open spans of these topics.
    pub(super) fn see(&mut self, topics: &[TopicId], end: End) {
        let is_open = |span: &&mut Span| span.missed == Edge::Open && topics.contains(&TopicId(span.topic));
        self.spans.iter_mut().filter(is_open).for_each(|span| span.end(end));
    }

    /// Earliest time for which [`Kleene::advance`] does something.
    pub(super) fn next_deadline(&self) -> Option<i64> {
        let edge = self.spans.iter().filter_map(Span::edge).min().map(|time| time.saturating_add(1));
        let own = self.monitor.as_deref().and_then(|(monitor, _)| monitor.next_deadline());
        own.map(Timestamp::as_nanos).into_iter().chain(edge).min()
    }

    /// Evaluates the events of a block at these times.
    pub(super) fn step(&mut self, plan: &KleenePlan, block: &Block, times: &[i64]) -> Vec<KleeneVerdict> {
        for (row, &time) in times.iter().enumerate() {
            let place = InCall { times, row: row as u8 };
            self.pass(plan, time, place);
            self.see_next(plan, time, place);
            self.event(plan, block, place);
            self.end_now(plan, time, InCall { row: place.row + 1, ..place });
        }
        self.flush(times);
        std::mem::take(&mut self.entries)
    }

    /// Advances to just before a time.
    pub(super) fn advance(&mut self, plan: &KleenePlan, now: i64) -> Vec<KleeneVerdict> {
        let place = InCall { times: &[], row: 0 };
        self.pass(plan, now.saturating_sub(1), place);
        self.flush(&[]);
        if let Some((monitor, _)) = self.monitor.as_deref_mut() {
            monitor.advance(Timestamp::from_nanos(now));
        }
        self.collect(&[]);
        std::mem::take(&mut self.entries)
    }

    /// Makes the spans take effect that have begun by a time.
    pub(super) fn begin(&mut self, plan: &KleenePlan, time: i64) -> Vec<KleeneVerdict> {
        self.pass(plan, time, InCall { times: &[], row: 0 });
        self.flush(&[]);
        std::mem::take(&mut self.entries)
    }

    /// Adds the rows at which spans begin or end, up to a time.
    fn pass(&mut self, plan: &KleenePlan, until: i64, place: InCall<'_>) {
        while let Some(time) = self.spans.iter().filter_map(Span::edge).min().filter(|time| *time <= until) {
            let (mut begun, mut seen, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for span in &mut self.spans {
                if span.begins.pass(time) {
                    begun.push(span.topic);
                }
            }
            for span in self.spans.iter_mut().filter(|span| span.begins == Edge::Passed) {
                if span.seen.pass(time) {
                    seen.push(span.topic);
                }
                if span.missed.pass(time) {
                    found.push(span.topic);
                }
            }
            self.begin_rows(plan, &begun, time, place);
            self.end_rows(plan, &seen, &found, time, place);
        }
    }

    /// Ends the spans whose messages are received from the next event on, which is at this time.
    fn see_next(&mut self, plan: &KleenePlan, time: i64, place: InCall<'_>) {
        let mut seen = Vec::new();
        for span in &mut self.spans {
            if span.begins == Edge::Passed && span.seen == Edge::Next {
                span.seen = Edge::Passed;
                seen.push(span.topic);
            }
        }
        self.end_rows(plan, &seen, &[], time, place);
    }

    /// Ends the spans that end at the time of an event, right after it.
    fn end_now(&mut self, plan: &KleenePlan, time: i64, place: InCall<'_>) {
        let mut found = Vec::new();
        for span in self.spans.iter_mut().filter(|span| span.seen == Edge::Passed) {
            if span.missed.pass(time.saturating_add(1)) {
                found.push(span.topic);
            }
        }
        self.end_rows(plan, &[], &found, time, place);
    }

    fn begin_rows(&mut self, plan: &KleenePlan, topics: &[u32], time: i64, place: InCall<'_>) {
        if topics.is_empty() {
            return;
        }
        // Two rows, so that the operand of `prev` is unknown too.
        for _ in 0..2 {
            let row = self.row(plan, time, place);
            let Some((_, own)) = self.monitor.as_deref_mut() else { return };
            for &topic in topics {
                own.extend(plan.beside(topic), 1 << row);
                plan.columns_of(topic).for_each(|column| own.set_invalid(Slot::Bool(column), row));
                forget(plan, topic, own, row);
            }
        }
        for (counts, (counter, _)) in self.counts.iter_mut().zip(&plan.counters) {
            if counter.topics.iter().any(|topic| topics.contains(&topic.0)) {
                *counts = counter.count;
            }
        }
    }

    fn end_rows(&mut self, plan: &KleenePlan, seen: &[u32], found: &[u32], time: i64, place: InCall<'_>) {
        if !seen.is_empty() {
            let row = self.row(plan, time, place);
            let Some((_, own)) = self.monitor.as_deref_mut() else { return };
            seen.iter().for_each(|topic| forget(plan, *topic, own, row));
        }
        if seen.is_empty() && found.is_empty() {
            return;
        }
        let row = self.row(plan, time, place);
        let Some((_, own)) = self.monitor.as_deref_mut() else { return };
        let spans = &self.spans;
        for &topic in seen.iter().filter(|topic| !spans.iter().any(|span| span.is_blind(**topic))) {
            let held = plan.topics.get(topic as usize).and_then(|fields| fields.held);
            held.into_iter().for_each(|column| own.set_bool(column, row, false));
        }
        for &topic in found.iter().filter(|topic| !spans.iter().any(|span| span.is_lost(**topic))) {
            let lost = plan.topics.get(topic as usize).and_then(|fields| fields.lost);
            lost.into_iter().for_each(|column| own.set_bool(column, row, false));
        }
        self.spans.retain(|span| span.seen != Edge::Passed || span.missed != Edge::Passed);
    }

    /// Adds a row that is no event.
    fn row(&mut self, plan: &KleenePlan, time: i64, place: InCall<'_>) -> usize {
        self.make_room(place.times);
        self.origins.push((false, place.row));
        let own = self.monitor.as_deref_mut().map(|(_, own)| own);
        own.map_or(0, |own| own.push(plan.neutral(), Timestamp::from_nanos(time)))
    }

    /// Adds the event in a row.
    fn event(&mut self, plan: &KleenePlan, block: &Block, place: InCall<'_>) {
        self.make_room(place.times);
        self.origins.push((true, place.row));
        let Some((_, own)) = self.monitor.as_deref_mut() else { return };
        let row = usize::from(place.row);
        let time = place.times.get(row).copied().unwrap_or_default();
        let is_on = |topic: &TopicId| block.topic_rows(*topic) >> row & 1 == 1;
        let to = own.push(plan.neutral(), Timestamp::from_nanos(time));
        (0..plan.first.0).map(TopicId).filter(is_on).for_each(|topic| own.extend(topic, 1 << to));
        for &(from, slot) in &plan.columns {
            copy(block, from, row, own, slot, to);
        }
        if let Some(arrival) = block.arrival(row) {
            own.set_arrival(to, arrival);
        }
        for (left, (counter, columns)) in self.counts.iter_mut().zip(&plan.counters) {
            let is_blind = |topic: &TopicId| self.spans.iter().any(|span| span.is_blind(topic.0));
            if *left == 0 || !counter.topics.iter().any(is_on) || counter.topics.iter().any(is_blind) {
                continue;
            }
            *left -= 1;
            if *left == 0 {
                columns.iter().flatten().for_each(|column| own.set_bool(*column, to, false));
            }
        }
    }

    fn make_room(&mut self, times: &[i64]) {
        if self.monitor.as_deref().is_some_and(|(_, own)| own.is_full()) {
            self.flush(times);
        }
        if let Some((_, own)) = self.monitor.as_deref_mut()
            && self.origins.is_empty()
        {
            own.clear();
        }
    }

    fn flush(&mut self, times: &[i64]) {
        if self.origins.is_empty() {
            return;
        }
        if let Some((monitor, own)) = self.monitor.as_deref_mut() {
            monitor.step(own);
        }
        self.collect(times);
        self.origins.clear();
    }

    fn collect(&mut self, times: &[i64]) {
        let Some((monitor, _)) = self.monitor.as_deref() else { return };
        let is_known = self.spans.is_empty() && self.counts.iter().all(|left| *left == 0);
        for report in monitor.reports() {
            if report.property != 0 {
                // Final once reached: a field without a value later is unknown to the monitor as well.
                self.is_over |= is_known && report.verdict == Verdict::Satisfied;
                continue;
            }
            let origin = report.row.and_then(|row| self.origins.get(usize::from(row)).copied());
            let place = times.partition_point(|time| *time <= report.time.as_nanos());
            let (row, order) = match origin {
                Some((true, row)) => (Some(row), at(row.into())),
                Some((false, row)) => (None, before(row.into())),
                None => (None, before(place) + u32::from(report.after)),
            };
            let Report { verdict, time, after, .. } = *report;
            self.entries.push(KleeneVerdict { verdict, row, time, after, order });
        }
    }

    /// Transfers the monitor to another program; `topics` maps topics to those there.
    pub(super) fn moved(mut self, plan: &KleenePlan, topics: &[Option<TopicId>]) -> Option<Kleene> {
        let snapshot = Snapshot::read(&self.saved).ok()?;
        if !snapshot.lost(&plan.program).is_empty() || snapshot.is_new_to(&plan.program) {
            return None;
        }
        for span in &mut self.spans {
            span.topic = topics.get(span.topic as usize).copied().flatten()?.0;
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
    pub(super) fn restore(&mut self, plan: &KleenePlan) -> bool {
        let Ok(mut monitor) = Monitor::restore(Arc::clone(&plan.program), &self.saved) else { return false };
        monitor.report_every(true);
        self.monitor = Some(Box::new((monitor, Block::new(plan.program.layout()))));
        self.saved = Vec::new();
        self.counts.len() == plan.counters.len() && self.spans.iter().all(|span| span.topic < plan.first.0)
    }
}

/// Forgets the fields of a topic.
fn forget(plan: &KleenePlan, topic: u32, own: &mut Block, row: usize) {
    let fields = plan.topics.get(topic as usize).into_iter().flat_map(|fields| &fields.own);
    fields.for_each(|slot| own.set_invalid(*slot, row));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Every state that a formula needs exists in the monitor, whatever the other properties are.
    #[test]
    fn formulas_of_the_past_take_over_their_state() {
        let formulas = [
            "on(a)",
            "a.x < 3",
            "a.k",
            "a.x < b.x",
            "age(a) <= 200 ms",
            "age(a) > 200 ms",
            "once on(a) -> age(a) <= 200 ms",
            "once[1 s,] on(a) -> rate(a) over 1 s >= 20 and age(a) <= 200 ms",
            "once[0, 1 min] on(a)",
            "rate(a) over 1 s >= 40",
            "rate(a) over 1 s < 40",
            "count(a) over 1 s >= 40",
            "max(a.x) over 1 s < 40",
            "mean(a.x) over 1 s < 40",
            "once[1 s, 2 s] on(a)",
            "once[0, 2 s] a.k",
            "historically[0, 2 s] a.x < 3",
            "historically on(a)",
            "historically a.x < 3",
            "on(a) since[0, 2 s] on(b)",
            "a.k since[0, 2 s] on(b)",
            "a.k since[1 s, 2 s] b.k",
            "on(a) since on(b)",
            "a.k since b.k",
            "a.x < 3 since on(b)",
            "changed(a.x)",
            "rising(a.k)",
            "prev(a.x) < a.x",
            "(stable(a.k) for 1 s)",
            "(debounce(a.k) for 1 s)",
            "hysteresis(a.x, 1, 3)",
            "once[0, 1 s] (on(a) and age(b) < 1 s)",
        ];
        let mut missing = Vec::new();
        for formula in formulas {
            let text = format!(
                "topic a {{ x: int, k: bool }} topic b {{ x: int, k: bool }}
                 @time(dense) property p = {formula}
                 @time(dense) property q = not on(b) or once[0, 1 s] a.k"
            );
            let spec = rondel_spec::parse(&text).spec.unwrap();
            let program = Program::compile(&spec).unwrap();
            if KleenePlan::new(&program, 0).is_none() {
                missing.push(formula);
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
