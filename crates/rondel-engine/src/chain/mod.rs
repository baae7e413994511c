//! Chains: stamps on their way from topic to topic, and what is measured of them.
//!
//! Chains are looked at before the sections are evaluated, event by event. What properties ask of
//! a chain is a column of times: where the last output stems from, and since when a message waits for one.

mod figures;

use std::collections::{HashMap, VecDeque};

use rondel_event::{Block, Rows, Slot, TopicId, Value, ValueType};
use serde::{Deserialize, Serialize};

use crate::ir::node::ChainColumn;

pub use figures::{ChainFigures, Distribution};

/// How many stamps of a chain are kept at most.
pub(crate) const LIMIT: usize = 1 << 16;

/// A chain, compiled.
#[derive(Clone, Debug)]
pub(crate) struct ChainPlan {
    pub(crate) name: String,
    /// The property that its stamps come out in time, if there is one.
    pub(crate) property: Option<u32>,
    /// The topics in their order, and the column of the stamp.
    pub(crate) links: Vec<(TopicId, Slot)>,
    pub(crate) value_type: ValueType,
    pub(crate) within: Option<u64>,
    pub(crate) wait: Option<u64>,
    pub(crate) limit: usize,
}

/// How a chain of a [`Monitor`](crate::Monitor) is at the moment.
#[derive(Clone, Debug)]
pub struct ChainStatus<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its topics, in their order.
    pub topics: Vec<TopicId>,
    /// What became of the stamps so far.
    pub figures: &'a ChainFigures,
    /// How many of them may still come out.
    pub under_way: u64,
}

/// The columns, after each row of a block.
#[derive(Clone, Debug)]
pub(crate) struct ChainRows {
    values: [[i64; Block::CAPACITY]; 3],
    known: [Rows; 3],
}

impl Default for ChainRows {
    fn default() -> ChainRows {
        ChainRows { values: [[0; Block::CAPACITY]; 3], known: [0; 3] }
    }
}

impl ChainRows {
    /// The value after a row, if it is known.
    pub(crate) fn get(&self, column: ChainColumn, row: usize) -> Option<i64> {
        (self.known[column as usize] >> row & 1 == 1).then(|| self.values[column as usize][row])
    }

    fn set(&mut self, row: usize, values: [Option<i64>; 3]) {
        for ((column, known), value) in self.values.iter_mut().zip(&mut self.known).zip(values) {
            *known = *known & !(1 << row) | Rows::from(value.is_some()) << row;
            column[row] = value.unwrap_or(0);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Stamp {
    Number(i64),
    Text(Box<[u8]>),
}

/// A stamp that has set out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Way {
    stamp: Stamp,
    time: i64,
    /// How many topics it has reached.
    reached: u32,
}

/// A stamp that did not come out in time.
#[derive(Clone, Debug)]
struct Missing {
    stamp: Stamp,
    /// When it set out.
    time: i64,
    /// The first topic that it had not reached then.
    topic: TopicId,
}

/// What is remembered of a chain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChainState {
    /// The stamps in the order in which they set out.
    ways: VecDeque<Way>,
    /// The number of the first of them.
    first: u64,
    /// Where each is, by its number.
    #[serde(skip)]
    numbers: HashMap<Stamp, u64>,
    /// Up to this number an output has come for each.
    answered: u64,
    /// Since when a message waits that has been forgotten itself.
    forgotten: Option<i64>,
    /// Up to this number it has been looked whether they came out in time.
    judged: u64,
    latency: Option<i64>,
    origin: Option<i64>,
    figures: ChainFigures,
    #[serde(skip)]
    missing: Vec<Missing>,
}

impl ChainState {
    pub(crate) fn new(plan: &ChainPlan) -> ChainState {
        let figures = ChainFigures { lost: vec![0; plan.links.len()], ..ChainFigures::default() };
        ChainState { figures, ..ChainState::default() }
    }

    /// Whether what was saved can be that of a chain like this one; if so, it is made whole.
    pub(crate) fn complete(&mut self, plan: &ChainPlan) -> bool {
        let numbers = self.ways.iter().zip(self.first..).map(|(way, number)| (way.stamp.clone(), number));
        self.numbers = numbers.collect();
        let end = self.first.saturating_add(self.ways.len() as u64);
        self.figures.lost.len() == plan.links.len()
            && self.numbers.len() == self.ways.len()
            && self.ways.len() <= plan.limit
            && self.ways.iter().all(|way| (1..=plan.links.len()).contains(&(way.reached as usize)))
            && self.first <= self.judged
            && self.judged <= end
            && self.first <= self.answered
            && self.answered <= end
    }

    pub(crate) fn figures(&self) -> &ChainFigures {
        &self.figures
    }

    /// How many stamps may still come out.
    pub(crate) fn under_way(&self, plan: &ChainPlan) -> u64 {
        self.ways.iter().filter(|way| (way.reached as usize) < plan.links.len()).count() as u64
    }

    /// Takes the events of a block, which have these times.
    pub(crate) fn step(&mut self, plan: &ChainPlan, block: &Block, times: &[i64], out: &mut ChainRows) {
        self.missing.clear();
        let on = |(topic, _): &(TopicId, Slot)| block.topic_rows(*topic);
        let rows = plan.links.iter().fold(0, |rows, link| rows | on(link));
        for (row, &time) in times.iter().enumerate() {
            if rows >> row & 1 == 1 {
                self.pass(plan, time);
                let link = plan.links.iter().position(|link| on(link) >> row & 1 == 1);
                let link = link.unwrap_or_default();
                match stamp(block, plan.links[link].1, row) {
                    Some(stamp) => self.message(plan, link, stamp, time),
                    None => self.figures.unstamped += 1,
                }
            }
            out.set(row, [self.latency, self.origin, self.oldest()]);
        }
        if let Some(&last) = times.last() {
            self.pass(plan, last);
        }
    }

    /// A new call of the monitor begins.
    pub(crate) fn clear_missing(&mut self) {
        self.missing.clear();
    }

    /// The topic that a stamp had not reached in time, of those about which that became certain last.
    pub(crate) fn missing(&self, plan: &ChainPlan, key: &Value, time: i64) -> Option<TopicId> {
        let stamp = match key {
            Value::Bool(x) if plan.value_type == ValueType::Bool => Stamp::Number((*x).into()),
            Value::Int(x) | Value::Time(x) | Value::Duration(x) => Stamp::Number(*x),
            Value::String(text) => Stamp::Text(text.as_bytes().into()),
            _ => return None,
        };
        let from = self.missing.partition_point(|missing| missing.time < time);
        let mut same = self.missing[from..].iter().take_while(|missing| missing.time == time);
        same.find(|missing| missing.stamp == stamp).map(|missing| missing.topic)
    }

    /// Judges and forgets what is old enough before `now`.
    pub(crate) fn pass(&mut self, plan: &ChainPlan, now: i64) {
        if let Some(within) = plan.within {
            while let Some(way) = self.ways.get((self.judged - self.first) as usize)
                && is_past(way.time, within, now)
            {
                self.judged += 1;
                if let Some(&(topic, _)) = plan.links.get(way.reached as usize) {
                    self.missing.push(Missing { stamp: way.stamp.clone(), time: way.time, topic });
                }
            }
        }
        if let Some(wait) = plan.wait {
            while self.ways.front().is_some_and(|way| is_past(way.time, wait, now)) {
                self.forget();
            }
        }
    }

    /// Forgets the oldest stamp.
    fn forget(&mut self) {
        let Some(Way { stamp, time, reached }) = self.ways.pop_front() else { return };
        self.numbers.remove(&stamp);
        if let Some(lost) = self.figures.lost.get_mut(reached as usize) {
            *lost += 1;
        }
        if self.answered <= self.first {
            self.forgotten.get_or_insert(time);
            self.answered = self.first + 1;
        }
        self.first += 1;
        self.judged = self.judged.max(self.first);
    }

    fn message(&mut self, plan: &ChainPlan, link: usize, stamp: Stamp, time: i64) {
        let last = plan.links.len() - 1;
        let known = self.numbers.get(&stamp).copied();
        if link == 0 {
            if known.is_none() {
                if self.ways.len() >= plan.limit {
                    let came_out = self.ways.front().is_some_and(|way| way.reached as usize > last);
                    self.figures.crowded_out += u64::from(!came_out);
                    self.forget();
                }
                self.numbers.insert(stamp.clone(), self.first + self.ways.len() as u64);
                self.ways.push_back(Way { stamp, time, reached: 1 });
                self.figures.started += 1;
            }
            return;
        }
        let Some((number, way)) =
            known.and_then(|number| Some((number, self.ways.get_mut((number - self.first) as usize)?)))
        else {
            self.figures.strays += 1;
            return;
        };
        let first = way.reached as usize == link;
        if first {
            way.reached += 1;
        }
        if (way.reached as usize) <= link {
            self.figures.strays += 1;
        } else if link == last {
            let set_out = way.time;
            if first {
                let latency = since(set_out, time);
                self.latency = Some(time.saturating_sub(set_out));
                self.figures.latency.add(latency);
                let in_time = plan.within.is_none_or(|within| latency <= within);
                *(if in_time { &mut self.figures.in_time } else { &mut self.figures.late }) += 1;
            }
            self.output(number, set_out, time);
        }
    }

    /// An output that stems from the stamp of this number, which set out at `set_out`.
    fn output(&mut self, number: u64, set_out: i64, time: i64) {
        if let Some(before) = self.origin.replace(set_out) {
            self.figures.age.add(since(before, time));
        }
        if number >= self.answered {
            for waiting in self.answered..=number {
                if let Some(way) = self.ways.get((waiting - self.first) as usize) {
                    self.figures.reaction.add(since(way.time, time));
                }
            }
            self.answered = number + 1;
            self.forgotten = None;
        }
    }

    /// Since when a message waits for an output that stems from it or a later one.
    fn oldest(&self) -> Option<i64> {
        let waiting = || self.ways.get(usize::try_from(self.answered.checked_sub(self.first)?).ok()?);
        self.forgotten.or_else(|| waiting().map(|way| way.time))
    }
}

/// How long it is from one time to a later one.
fn since(from: i64, to: i64) -> u64 {
    to.max(from).abs_diff(from)
}

/// Whether `now` is more than so long after a time.
fn is_past(time: i64, span: u64, now: i64) -> bool {
    now > time && since(time, now) > span
}

fn stamp(block: &Block, slot: Slot, row: usize) -> Option<Stamp> {
    let has = |valid: Rows| valid >> row & 1 == 1;
    match slot {
        Slot::Int(column) => {
            let column = block.ints(column);
            has(column.valid).then(|| Stamp::Number(column.values[row]))
        }
        Slot::Bool(column) => {
            let column = block.bools(column);
            has(column.valid).then(|| Stamp::Number((column.values >> row & 1) as i64))
        }
        Slot::String(column) => {
            has(block.strings(column).valid).then(|| Stamp::Text(block.text(column, row).into()))
        }
        Slot::Float(_) => None,
    }
}
