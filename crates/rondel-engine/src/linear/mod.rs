//! Linear interpolation of numbers between messages.
//!
//! The value between two messages is known once the second one has arrived. A section with interpolated
//! fields therefore lags: events wait here until every compared field is known up to them and beyond. They
//! leave with *crossings* in between: time points at which a comparison changes. Events and crossings are the
//! rows of a separate block, accompanied by the signs of the [linear forms](Form) that are compared with
//! zero. The section evaluates this block like any other.

mod piece;
mod waiting;

use std::collections::VecDeque;

use rondel_event::{Block, Layout, Path, Rows, Slot, Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use crate::ir::found::take;
use piece::{KnownNumber, LinePiece};
use waiting::Waiting;

/// Limit of waiting events.
const LIMIT: usize = 100_000;

/// A linear form: fields times factors, plus a constant. A field with the factor zero still makes it unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) constant: f64,
    /// Field numbers and factors, in order of the numbers.
    pub(crate) terms: Vec<(u32, f64)>,
}

/// The inputs of a section with linear interpolation, and its linear forms.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinearPlan {
    /// The interpolated fields.
    pub(crate) fields: Vec<Slot>,
    /// Identities of the interpolated fields and of the linear forms.
    pub(crate) field_identities: Vec<u64>,
    pub(crate) line_identities: Vec<u64>,
    /// Topics and paths of the interpolated fields, in an order of their own.
    pub(crate) names: Vec<(TopicId, Path)>,
    pub(crate) lines: Vec<Form>,
    /// All other columns that instructions read.
    pub(crate) slots: Vec<Slot>,
    pub(crate) topics: Vec<TopicId>,
}

/// Signs of a linear form in the rows of a block, at them and after them: rows in which it is below zero,
/// zero, above, or has an unknown sign ([`piece::OPEN`]).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineRows {
    pub(crate) at: [Rows; 4],
    pub(crate) after: [Rows; 4],
}

/// A value of a field.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sample {
    time: i64,
    /// None if it is not a number.
    value: Option<f64>,
    /// True if the next sample was given up, so that the value is unknown after this one.
    lost: bool,
}

/// The samples of a field: the one at or before the last time point, and later ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Samples {
    now: Sample,
    next: VecDeque<Sample>,
}

impl Samples {
    fn latest(&mut self) -> &mut Sample {
        self.next.back_mut().unwrap_or(&mut self.now)
    }

    /// The value at a time between the last sample and the next one.
    fn at(&self, time: i64) -> KnownNumber<f64> {
        let Some(start) = self.now.value else { return KnownNumber::Nothing };
        if time == self.now.time {
            return KnownNumber::Is(start);
        }
        match self.next() {
            KnownNumber::Is((to, end)) if time == to => KnownNumber::Is(end),
            KnownNumber::Is((to, end)) => {
                let part = (end - start) * length(self.now.time, time) / length(self.now.time, to);
                KnownNumber::Is(start + part)
            }
            KnownNumber::Open => KnownNumber::Open,
            KnownNumber::Nothing => KnownNumber::Nothing,
        }
    }

    /// The next sample, if the value is interpolated up to it.
    fn next(&self) -> KnownNumber<(i64, f64)> {
        match (self.now.value, self.next.front()) {
            (None, _) => KnownNumber::Nothing,
            _ if self.now.lost => KnownNumber::Open,
            (_, None) => KnownNumber::Open,
            (_, Some(next)) => {
                next.value.map_or(KnownNumber::Nothing, |value| KnownNumber::Is((next.time, value)))
            }
        }
    }
}

/// The difference of two times, as a float.
fn length(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64
}

/// The time up to which all fields are known, after an event or the passing of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    /// All fields are known before this time.
    pub(crate) until: i64,
    /// Time of the event or passing.
    pub(crate) time: i64,
    /// Row of the event, if it was one.
    pub(crate) row: Option<u8>,
    /// Whether no field was waited for before: later values were then known at their own time.
    pub(crate) was_free: bool,
}

/// Waiting events and samples of a section, as plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinearState {
    waiting: VecDeque<Waiting>,
    fields: Vec<Samples>,
    pieces: Vec<LinePiece>,
    /// Time of the last time point.
    last: i64,
    /// Time of the earliest last sample; none while no field has a value to be continued.
    bound: Option<i64>,
    lost: u64,
}

/// A lagging section's events, with working memory.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub(crate) held: LinearState,
    /// Allocations of events that wait no longer.
    free: Vec<Waiting>,
    /// Time points for the section.
    pub(crate) block: Block,
    pub(crate) times: [i64; Block::CAPACITY],
    /// Numbers of the block's events.
    steps: [u64; Block::CAPACITY],
    pub(crate) lines: Vec<LineRows>,
    pub(crate) frontiers: Vec<Frontier>,
    limit: usize,
    /// Topics of the block: one for all events, one for crossings.
    event: TopicId,
    crossing: TopicId,
}

/// The state of a section with linear interpolation, by identity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinearOutline {
    pub(crate) fields: Vec<u64>,
    pub(crate) lines: Vec<u64>,
    /// Identity of each other column, and identity of its place in messages.
    pub(crate) slots: Vec<[u64; 2]>,
    pub(crate) topics: Vec<u64>,
}

impl LinearState {
    /// Copies the state of fields that both sections read.
    pub(crate) fn take(&mut self, own: &LinearOutline, other: &LinearState, others: &LinearOutline) {
        take(&mut self.fields, &own.fields, &other.fields, &others.fields);
        take(&mut self.pieces, &own.lines, &other.pieces, &others.lines);
        let place = |own: &[u64], others: &[u64]| {
            let at = |identity: &u64| own.iter().position(|own| own == identity).map(|at| at as u32);
            others.iter().map(at).collect::<Vec<_>>()
        };
        let slots = |slot: u32| {
            let [what, at] = *others.slots.get(slot as usize)?;
            let own = (0..).zip(&own.slots);
            let same = own.clone().find(|(_, own)| own[0] == what).map(|(place, _)| (place, true));
            // Presence follows from any column that was read at the same place.
            same.or_else(|| own.clone().find(|(_, own)| own[1] == at).map(|(place, _)| (place, false)))
        };
        let (topics, fields) = (place(&own.topics, &others.topics), place(&own.fields, &others.fields));
        self.waiting = other.waiting.iter().map(|waiting| waiting.moved(&topics, slots, &fields)).collect();
        (self.last, self.bound, self.lost) = (other.last, other.bound, other.lost);
    }
}

impl LinearPlan {
    /// Fixed memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.fields.len() * size_of::<Samples>() + self.lines.len() * size_of::<LinePiece>()
    }
}

impl Linear {
    pub(crate) fn new(plan: &LinearPlan, layout: Layout) -> Linear {
        let before = Sample { time: i64::MIN, value: None, lost: false };
        Linear {
            held: LinearState {
                waiting: VecDeque::new(),
                fields: vec![Samples { now: before, next: VecDeque::new() }; plan.fields.len()],
                pieces: vec![LinePiece::UNKNOWN; plan.lines.len()],
                last: i64::MIN,
                bound: None,
                lost: 0,
            },
            free: Vec::new(),
            block: Block::new(Layout { topics: layout.topics + 2, ..layout }),
            times: [0; Block::CAPACITY],
            steps: [0; Block::CAPACITY],
            lines: vec![LineRows::default(); plan.lines.len()],
            frontiers: Vec::new(),
            limit: LIMIT,
            event: TopicId(layout.topics as u32),
            crossing: TopicId(layout.topics as u32 + 1),
        }
    }

    /// Restores saved state; false if it does not fit the section.
    pub(crate) fn restore(&mut self, held: LinearState) -> bool {
        let fields = held.fields.len();
        let known = |waiting: &Waiting| waiting.samples.iter().all(|field| (*field as usize) < fields);
        let fits = (fields, held.pieces.len()) == (self.held.fields.len(), self.held.pieces.len())
            && held.waiting.iter().all(known);
        if fits {
            self.held = held;
        }
        fits
    }

    /// Whether no field is waited for.
    pub(crate) fn is_free(&self) -> bool {
        self.held.bound.is_none()
    }

    /// Time of the first waiting event.
    pub(crate) fn first(&self) -> Option<i64> {
        self.held.waiting.front().map(|waiting| waiting.time)
    }

    /// Number of waiting events.
    pub(crate) fn kept(&self) -> usize {
        self.held.waiting.len()
    }

    /// Number of events for which waiting was given up.
    pub(crate) fn lost(&self) -> u64 {
        self.held.lost
    }

    /// The rows of the block that are crossings.
    pub(crate) fn crossings(&self) -> Rows {
        self.block.topic_rows(self.crossing)
    }

    /// The time up to which all fields are known, at the time `now`.
    pub(crate) fn until(&self, now: i64) -> i64 {
        self.held.bound.unwrap_or(now)
    }

    /// Number of the event in a row of the block; none for a crossing.
    pub(crate) fn step(&self, row: u8) -> Option<u64> {
        let is_crossing = self.crossings() >> row & 1 == 1;
        self.steps.get(usize::from(row)).copied().filter(|_| !is_crossing)
    }

    /// Adds the event in `row` of a block.
    pub(crate) fn take(&mut self, plan: &LinearPlan, block: &Block, row: usize, time: i64, step: u64) {
        let was_free = self.is_free();
        let mut waiting = self.free.pop().unwrap_or_default();
        waiting.read(plan, block, row, time, step);
        for (i, (&slot, samples)) in (0..).zip(plan.fields.iter().zip(&mut self.held.fields)) {
            if block.present(slot) >> row & 1 == 0 {
                continue;
            }
            let valid = |rows: Rows| rows >> row & 1 == 1;
            let value = match slot {
                Slot::Int(i) if valid(block.ints(i).valid) => Some(block.ints(i).values[row] as f64),
                Slot::Float(i) if valid(block.floats(i).valid) => Some(block.floats(i).values[row]),
                _ => None,
            };
            samples.next.push_back(Sample { time, value: value.filter(|x| x.is_finite()), lost: false });
            waiting.samples.push(i);
        }
        if !waiting.samples.is_empty() {
            self.measure();
        }
        self.held.waiting.push_back(waiting);
        let row = Some(row as u8);
        self.frontiers.push(Frontier { until: self.until(time), time, row, was_free });
    }

    /// Updates the time up to which all fields are known.
    fn measure(&mut self) {
        let last = self.held.fields.iter_mut().map(|samples| *samples.latest());
        self.held.bound = last.filter(|last| last.value.is_some() && !last.lost).map(|last| last.time).min();
    }

    /// Whether the limit of waiting events is exceeded.
    pub(crate) fn is_full(&self) -> bool {
        self.held.waiting.len() > self.limit
    }

    /// Gives up waiting for fields until the limit is met: between their last samples and the next ones they
    /// are unknown.
    pub(crate) fn give_up(&mut self, now: i64) {
        while self.is_full()
            && let Some(bound) = self.held.bound
            && self.first().is_some_and(|first| first >= bound)
        {
            for samples in &mut self.held.fields {
                let last = samples.latest();
                last.lost |= last.value.is_some() && last.time <= bound;
            }
            self.measure();
        }
        let until = self.until(now);
        self.held.lost += self.held.waiting.partition_point(|waiting| waiting.time < until) as u64;
        if let Some(last) = self.frontiers.last_mut() {
            last.until = until;
        }
    }

    /// Marks the end of all fields: no sample follows.
    pub(crate) fn end(&mut self) {
        for samples in &mut self.held.fields {
            samples.latest().lost = true;
        }
        self.held.bound = None;
    }

    /// Fills the block with the next time points before `until`. Values after an event may be unknown if
    /// another event has the same time, or if waiting was given up.
    pub(crate) fn fill(&mut self, plan: &LinearPlan, until: i64) {
        self.block.clear();
        self.lines.fill(LineRows::default());
        while !self.block.is_full() {
            let last = self.held.last;
            let crossing = self.held.pieces.iter().filter_map(|piece| piece.crossing_after(last)).min();
            let second = self.held.waiting.get(1).map(|waiting| waiting.time);
            let goes_on = |time: i64| self.is_full() && time == until && second == Some(time);
            let event = self.first().filter(|&time| time < until || goes_on(time));
            match (crossing.filter(|&time| time < until), event) {
                (Some(time), event) if event.is_none_or(|event| time < event) => {
                    let row = self.block.push(self.crossing, Timestamp::from_nanos(time));
                    self.sign(row, time);
                }
                (_, Some(_)) => self.event(plan),
                _ => break,
            }
        }
    }

    /// Adds the first waiting event to the block.
    fn event(&mut self, plan: &LinearPlan) {
        let Some(waiting) = self.held.waiting.pop_front() else { return };
        let row = waiting.write(plan, &mut self.block, self.event);
        self.steps[row] = waiting.step;
        for &field in &waiting.samples {
            let samples = &mut self.held.fields[field as usize];
            if let Some(next) = samples.next.pop_front() {
                samples.now = next;
            }
        }
        let time = waiting.time;
        if !waiting.samples.is_empty() {
            let LinearState { fields, pieces, .. } = &mut self.held;
            for (form, piece) in plan.lines.iter().zip(pieces) {
                if form.terms.iter().any(|(field, _)| waiting.samples.contains(field)) {
                    *piece = form.piece(fields, time);
                }
            }
        }
        self.sign(row, time);
        if self.free.len() < 1024 {
            self.free.push(waiting);
        }
    }

    /// Writes the signs of the linear forms at a row and after it.
    fn sign(&mut self, row: usize, time: i64) {
        self.times[row] = time;
        self.held.last = time;
        for (rows, piece) in self.lines.iter_mut().zip(&self.held.pieces) {
            if let Some(sign) = piece.at(time) {
                rows.at[usize::from(sign)] |= 1 << row;
            }
            if let Some(sign) = piece.after(time) {
                rows.after[usize::from(sign)] |= 1 << row;
            }
        }
    }
}

impl Form {
    /// The piece that begins with a sample of one of its fields.
    fn piece(&self, fields: &[Samples], time: i64) -> LinePiece {
        let value = |time: i64| {
            let (mut sum, mut size, mut is_between) = (KnownNumber::Is(0.0), self.constant.abs(), false);
            for &(field, factor) in &self.terms {
                let samples = &fields[field as usize];
                sum = match sum.and(samples.at(time)) {
                    KnownNumber::Is((sum, value)) => {
                        size += (factor * value).abs();
                        KnownNumber::Is(sum + factor * value)
                    }
                    KnownNumber::Open => KnownNumber::Open,
                    KnownNumber::Nothing => KnownNumber::Nothing,
                };
                is_between |= time != samples.now.time
                    && !matches!(samples.next(), KnownNumber::Is((next, _)) if time == next);
            }
            let KnownNumber::Is(sum) = sum else { return sum };
            let sum = sum + self.constant;
            // Rounding may have missed a zero.
            KnownNumber::Is(if is_between && sum.abs() <= size * piece::CLOSE { 0.0 } else { sum })
        };
        let mut ends = KnownNumber::Is(i64::MAX);
        for &(field, _) in &self.terms {
            ends = match ends.and(fields[field as usize].next()) {
                KnownNumber::Is((ends, (next, _))) => KnownNumber::Is(ends.min(next)),
                KnownNumber::Open => KnownNumber::Open,
                KnownNumber::Nothing => KnownNumber::Nothing,
            };
        }
        let end = match ends {
            KnownNumber::Is(to) => KnownNumber::Is(to).and(value(to)),
            KnownNumber::Open => KnownNumber::Open,
            KnownNumber::Nothing => KnownNumber::Nothing,
        };
        LinePiece::new(time, value(time), end)
    }
}
