//! Tests of tuples.

use std::cmp::Ordering;

use rondel_event::{Comparison, TopicId, ValueType};
use rondel_spec::Kernel;
use serde::{Deserialize, Serialize};

use super::plan::{Arithmetic, Condition, Term, TextTest};
use super::text::Texts;
use super::value::float;
use crate::ops::arithmetic;

/// Value without variables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    /// Number, time or boolean, as bits.
    Bits(u64),
    Text(&'a [u8]),
}

/// Inputs of a plan at a tick.
pub(crate) trait Source {
    /// Whether a message arrived on the topic.
    fn on(&self, topic: TopicId) -> bool;
    /// Returns the value of a field of the plan, if the message has one of the field's type.
    fn field(&self, field: u32) -> Option<Cell<'_>>;
    /// Whether a truth of the plan holds.
    fn truth(&self, truth: u32) -> bool;
    /// Returns a value of the plan, where it is known.
    fn value(&self, value: u32) -> Option<Cell<'_>>;
}

/// Inputs of a test besides the tuple.
pub(crate) struct Context<'a, S> {
    pub(crate) source: &'a S,
    pub(crate) texts: &'a Texts,
    pub(crate) constants: &'a [Box<str>],
    pub(crate) is_first: bool,
}

impl<S: Source> Context<'_, S> {
    pub(crate) fn holds(&self, condition: &Condition, tuple: &[u64]) -> bool {
        match condition {
            Condition::Truth(truth) => self.source.truth(*truth),
            Condition::NotFirst(wanted) => self.is_first != *wanted,
            Condition::Compare { comparison, value_type, left, right, wanted, unknown } => {
                let order = if *value_type == ValueType::String {
                    self.text(left, tuple).zip(self.text(right, tuple)).map(|(x, y)| Some(x.cmp(y)))
                } else {
                    let values = self.bits(left, tuple).zip(self.bits(right, tuple));
                    values.map(|(x, y)| compare(*value_type, x, y))
                };
                order.map_or(*unknown, |order| is(*comparison, order) == *wanted)
            }
            Condition::StartsWith { left, right, wanted, unknown } => {
                let texts = self.text(left, tuple).zip(self.text(right, tuple));
                texts.map_or(*unknown, |(x, y)| x.starts_with(y) == *wanted)
            }
            Condition::Text { test, left, wanted, unknown } => {
                let left = self.text(left, tuple);
                let holds = match test {
                    TextTest::Function(test, right) => {
                        left.zip(self.text(right, tuple)).map(|(x, y)| test(x, y))
                    }
                    TextTest::Pattern(pattern) => left.map(|x| pattern.is_match(x)),
                };
                holds.map_or(*unknown, |holds| holds == *wanted)
            }
        }
    }

    pub(crate) fn bits(&self, term: &Term, tuple: &[u64]) -> Option<u64> {
        Some(match term {
            Term::Slot(slot) => tuple[*slot as usize],
            Term::Constant(bits) => *bits,
            Term::Input(input) => match self.source.value(*input)? {
                Cell::Bits(bits) => bits,
                Cell::Text(_) => return None,
            },
            Term::ConstantText(_) => return None,
            Term::ToFloat(x) => (self.bits(x, tuple)? as i64 as f64).to_bits(),
            Term::Unary(op, ValueType::Float, x) => {
                arithmetic::float(*op, f64::from_bits(self.bits(x, tuple)?)).to_bits()
            }
            Term::Unary(op, _, x) => arithmetic::int(*op, self.bits(x, tuple)? as i64)? as u64,
            Term::Call(function, arguments) => {
                let [x, rest @ ..] = &**arguments else { return None };
                let number = |x: &Term| self.bits(x, tuple).map(f64::from_bits);
                match (function.kernel(), rest) {
                    (Kernel::Number(f), []) => finite(f(number(x)?))?,
                    (Kernel::Numbers(f), [y]) => finite(f(number(x)?, number(y)?))?,
                    (Kernel::Size(f), []) => f(self.text(x, tuple)?) as u64,
                    _ => return None,
                }
            }
            Term::Binary(op, Arithmetic::Float, both) => {
                let [x, y] = [&both[0], &both[1]].map(|x| self.bits(x, tuple).map(f64::from_bits));
                arithmetic::floats(*op, x?, y?).to_bits()
            }
            Term::Binary(op, Arithmetic::Ratio, both) => {
                let [x, y] = [&both[0], &both[1]].map(|x| self.bits(x, tuple).map(|x| x as i64 as f64));
                arithmetic::floats(*op, x?, y?).to_bits()
            }
            Term::Binary(op, Arithmetic::Whole, both) => {
                let (x, y) = (self.bits(&both[0], tuple)? as i64, self.bits(&both[1], tuple)? as i64);
                arithmetic::ints(*op, x, y)? as u64
            }
        })
    }

    fn text(&self, term: &Term, tuple: &[u64]) -> Option<&[u8]> {
        match term {
            Term::Slot(slot) => Some(self.texts.get(tuple[*slot as usize])),
            Term::ConstantText(text) => Some(self.constants.get(*text as usize)?.as_bytes()),
            Term::Input(input) => match self.source.value(*input)? {
                Cell::Text(text) => Some(text),
                Cell::Bits(_) => None,
            },
            _ => None,
        }
    }
}

/// Returns the bits of a number, if it is finite.
fn finite(x: f64) -> Option<u64> {
    x.is_finite().then(|| x.to_bits())
}

/// Compares two values; `None` if one is NaN.
fn compare(value_type: ValueType, x: u64, y: u64) -> Option<Ordering> {
    match value_type {
        ValueType::Float => f64::from_bits(x).partial_cmp(&f64::from_bits(y)),
        _ => Some((x as i64).cmp(&(y as i64))),
    }
}

fn is(comparison: Comparison, order: Option<Ordering>) -> bool {
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order.is_some_and(Ordering::is_lt),
        Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
        Comparison::Greater => order.is_some_and(Ordering::is_gt),
        Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    }
}

/// Values without variables at the previous tick.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Watch {
    inputs: Vec<u32>,
    truths: Vec<(u32, bool)>,
    bits: Vec<Option<u64>>,
    texts: Vec<Vec<u8>>,
    /// Whether there was an earlier tick.
    begun: bool,
}

impl Watch {
    pub(crate) fn new<'a>(conditions: impl Iterator<Item = &'a Condition>) -> Watch {
        let mut watch = Watch::default();
        for condition in conditions {
            condition.inputs(&mut watch.inputs);
            if let Condition::Truth(truth) = condition {
                watch.truths.push((*truth, false));
            }
        }
        watch.inputs.sort_unstable();
        watch.inputs.dedup();
        watch.bits = vec![None; watch.inputs.len()];
        watch.texts = vec![Vec::new(); watch.inputs.len()];
        watch
    }

    /// Whether it fits a state like `own`.
    pub(crate) fn fits(&self, own: &Watch) -> bool {
        let truths = |watch: &Watch| watch.truths.iter().map(|(truth, _)| *truth).collect::<Vec<_>>();
        let sizes = |watch: &Watch| (watch.bits.len(), watch.texts.len());
        self.inputs == own.inputs && truths(self) == truths(own) && sizes(self) == sizes(own)
    }

    /// Updates the values. Returns whether any has changed; always true at the first two ticks, at which
    /// `NotFirst` changes.
    pub(crate) fn has_changed<S: Source>(&mut self, source: &S, is_first: bool) -> bool {
        let mut changed = is_first || !self.begun;
        self.begun = !is_first;
        for (truth, before) in &mut self.truths {
            let now = source.truth(*truth);
            changed |= now != *before;
            *before = now;
        }
        for (i, input) in self.inputs.iter().enumerate() {
            match source.value(*input) {
                Some(Cell::Text(text)) => {
                    if self.bits[i] != Some(1) || self.texts[i] != text {
                        changed = true;
                        self.bits[i] = Some(1);
                        self.texts[i].clear();
                        self.texts[i].extend_from_slice(text);
                    }
                }
                cell => {
                    let bits = match cell {
                        Some(Cell::Bits(bits)) => Some(bits),
                        _ => None,
                    };
                    changed |= self.bits[i] != bits;
                    self.bits[i] = bits;
                }
            }
        }
        changed
    }
}

/// Returns a floating-point number as a cell of a relation; `None` for NaN, which equals nothing.
#[inline(always)]
pub(crate) fn float_cell(x: f64) -> Option<Cell<'static>> {
    float(x).map(Cell::Bits)
}
