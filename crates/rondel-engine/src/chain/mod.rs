//! Chains: tracks stamps from topic to topic, and measures their progress.
//!
//! Chains process each event before sections are evaluated. Properties read columns of times: the origin of
//! the last output, and the oldest message without an output.

mod figures;

use std::collections::{HashMap, VecDeque};

use rondel_event::{Block, Rows, Slot, TopicId, Value, ValueType};
use serde::{Deserialize, Serialize};

use crate::ir::node::ChainColumn;

pub use figures::{ChainFigures, Distribution};

/// Limit of stamps kept per chain.
pub(crate) const LIMIT: usize = 1 << 16;

/// A compiled chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainPlan {
    pub(crate) name: String,
    /// Index of the property that stamps reach the end in time, if there is one.
    pub(crate) property: Option<u32>,
    /// The topics in order, each with the column of its stamp.
    pub(crate) links: Vec<(TopicId, Slot)>,
    pub(crate) value_type: ValueType,
    pub(crate) within: Option<u64>,
    pub(crate) wait: Option<u64>,
    pub(crate) limit: usize,
}

/// Current status of a chain of a [`Monitor`](crate::Monitor).
#[derive(Clone, Debug)]
pub struct ChainStatus<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its topics, in their order.
    pub topics: Vec<TopicId>,
    /// Statistics so far.
    pub figures: &'a ChainFigures,
    /// Number of stamps that can still reach the end.
    pub under_way: u64,
}

/// Columns of a chain after each row of a block.
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

/// A stamp in transit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Transit {
    stamp: Stamp,
    time: i64,
    /// Number of topics that it has reached.
    reached: u32,
}

/// A stamp that did not reach the end in time.
#[derive(Clone, Debug)]
struct Missing {
    stamp: Stamp,
    /// Time of its first message.
    time: i64,
    /// The first topic that it had not reached by then.
    topic: TopicId,
}

/// State of a chain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChainState {
    /// Stamps in order of their first messages.
    transits: VecDeque<Transit>,
    /// Number of the first of them.
    first: u64,
    /// Number of each stamp.
    #[serde(skip)]
    numbers: HashMap<Stamp, u64>,
    /// All stamps before this number have had an output, of themselves or of later ones.
    answered: u64,
    /// Time of the oldest message without an output whose stamp has been dropped.
    forgotten: Option<i64>,
    /// All stamps before this number have been counted as in time or late.
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

    /// Whether restored state fits the chain. Rebuilds what is not saved.
    pub(crate) fn complete(&mut self, plan: &ChainPlan) -> bool {
        let numbers =
            self.transits.iter().zip(self.first..).map(|(transit, number)| (transit.stamp.clone(), number));
        self.numbers = numbers.collect();
        let end = self.first.saturating_add(self.transits.len() as u64);
        self.figures.lost.len() == plan.links.len()
            && self.numbers.len() == self.transits.len()
            && self.transits.len() <= plan.limit
            && self
                .transits
                .iter()
                .all(|transit| (1..=plan.links.len()).contains(&(transit.reached as usize)))
            && self.first <= self.judged
            && self.judged <= end
            && self.first <= self.answered
            && self.answered <= end
    }

    pub(crate) fn figures(&self) -> &ChainFigures {
        &self.figures
    }

    /// Number of stamps that can still reach the end.
    pub(crate) fn under_way(&self, plan: &ChainPlan) -> u64 {
        self.transits.iter().filter(|transit| (transit.reached as usize) < plan.links.len()).count() as u64
    }

    /// Processes the events of a block, which have these times.
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

    /// Starts a new call of the monitor.
    pub(crate) fn clear_missing(&mut self) {
        self.missing.clear();
    }

    /// The topic that a stamp had not reached in time, if this became certain in the current call.
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

    /// Judges and drops the stamps that are old enough before `now`.
    pub(crate) fn pass(&mut self, plan: &ChainPlan, now: i64) {
        if let Some(within) = plan.within {
            while let Some(transit) = self.transits.get((self.judged - self.first) as usize)
                && is_past(transit.time, within, now)
            {
                self.judged += 1;
                if let Some(&(topic, _)) = plan.links.get(transit.reached as usize) {
                    self.missing.push(Missing { stamp: transit.stamp.clone(), time: transit.time, topic });
                }
            }
        }
        if let Some(wait) = plan.wait {
            while self.transits.front().is_some_and(|transit| is_past(transit.time, wait, now)) {
                self.forget();
            }
        }
    }

    /// Drops the oldest stamp.
    fn forget(&mut self) {
        let Some(Transit { stamp, time, reached }) = self.transits.pop_front() else { return };
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
                if self.transits.len() >= plan.limit {
                    let came_out =
                        self.transits.front().is_some_and(|transit| transit.reached as usize > last);
                    self.figures.crowded_out += u64::from(!came_out);
                    self.forget();
                }
                self.numbers.insert(stamp.clone(), self.first + self.transits.len() as u64);
                self.transits.push_back(Transit { stamp, time, reached: 1 });
                self.figures.started += 1;
            }
            return;
        }
        let Some((number, transit)) =
            known.and_then(|number| Some((number, self.transits.get_mut((number - self.first) as usize)?)))
        else {
            self.figures.strays += 1;
            return;
        };
        let first = transit.reached as usize == link;
        if first {
            transit.reached += 1;
        }
        if (transit.reached as usize) <= link {
            self.figures.strays += 1;
        } else if link == last {
            let set_out = transit.time;
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

    /// Records an output of the stamp with this number, whose first message came at `set_out`.
    fn output(&mut self, number: u64, set_out: i64, time: i64) {
        if let Some(before) = self.origin.replace(set_out) {
            self.figures.age.add(since(before, time));
        }
        if number >= self.answered {
            for waiting in self.answered..=number {
                if let Some(transit) = self.transits.get((waiting - self.first) as usize) {
                    self.figures.reaction.add(since(transit.time, time));
                }
            }
            self.answered = number + 1;
            self.forgotten = None;
        }
    }

    /// Time of the oldest message without an output, of itself or of a later one.
    fn oldest(&self) -> Option<i64> {
        let waiting = || self.transits.get(usize::try_from(self.answered.checked_sub(self.first)?).ok()?);
        self.forgotten.or_else(|| waiting().map(|transit| transit.time))
    }
}

/// Time from `from` to a later time; zero for an earlier one.
fn since(from: i64, to: i64) -> u64 {
    to.max(from).abs_diff(from)
}

/// Whether `now` is more than `span` after a time.
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
