//! The values because of which a quantified formula turns false.
//!
//! `forall x. p` turns false at the tick at which `not p` comes to have a tuple: the first of that tick is the
//! witness. It costs something only at such ticks.
//!
//! If the formula looks ahead, the witness is the tuple of which what was asked at a moment turned out to be true first. The
//! verdict about that moment may come later, so the last ones are [kept](Answers).

use std::collections::VecDeque;

use rondel_event::{Value, ValueType};
use rondel_spec::VariableId;

use super::plan::RelationPlan;
use super::text::Texts;

/// The limit of witnesses that wait to be taken, and of answers that are kept.
const LIMIT: usize = 256;

/// The ticks at which a formula came to have a tuple, until they are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witnesses {
    held: bool,
    /// What it was before the span that is on trial.
    before: bool,
    /// The row of the block of the event that is evaluated.
    row: Option<u8>,
    found: Vec<Witness>,
}

/// The values of a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Witness {
    /// The place of the tick.
    pub(crate) place: i64,
    /// The row of the event in its block, at an event.
    pub(crate) row: Option<u8>,
    pub(crate) values: Vec<(VariableId, Value)>,
}

impl Witnesses {
    /// Notes what the roots of a plan say at a tick; `tuple` finds the columns and the values of one.
    #[inline(always)]
    pub(crate) fn note<'a>(
        &mut self,
        plan: &RelationPlan,
        (place, holds): (i64, bool),
        texts: &Texts,
        tuple: impl FnOnce() -> Option<(&'a [VariableId], &'a [u64])>,
    ) {
        if plan.named.is_empty() || holds == self.held {
            return;
        }
        self.held = holds;
        if holds
            && self.found.len() < LIMIT
            && let Some((variables, tuple)) = tuple()
        {
            let values = named_values(plan, variables, tuple, texts);
            self.found.push(Witness { place, row: self.row, values });
        }
    }

    /// What follows is about the event in this row of the block, or about a time without one.
    #[inline(always)]
    pub(crate) fn at(&mut self, row: Option<usize>) {
        self.row = row.map(|row| row as u8);
    }

    /// What follows is on trial.
    pub(crate) fn try_out(&mut self) {
        self.before = self.held;
    }

    /// What was on trial did not happen.
    pub(crate) fn take_back(&mut self) {
        self.held = self.before;
    }

    /// Takes what was found.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Witness> {
        self.found.drain(..)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// The values of a tuple, with their variables.
pub(super) fn named_values(
    plan: &RelationPlan,
    variables: &[VariableId],
    tuple: &[u64],
    texts: &Texts,
) -> Vec<(VariableId, Value)> {
    let value = |(variable, word): (&VariableId, &u64)| {
        let (_, value_type) = plan.named.iter().find(|(named, _)| named == variable)?;
        Some((*variable, value(*value_type, *word, texts)))
    };
    variables.iter().zip(tuple).filter_map(value).collect()
}

/// The last tuples of which what was asked turned out to be true.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// Whether they are kept.
    is_kept: bool,
    /// The row of the block of the event that is evaluated.
    row: Option<u8>,
    /// How many of them are about moments of this call.
    fresh: usize,
    answers: VecDeque<Answer>,
    /// Their values, all of the same number.
    words: VecDeque<u64>,
}

/// What a tuple made hold.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Of the moment: in steps its number, otherwise its time.
    place: i64,
    /// The row of the moment in its block, if it is an event and was certain at once.
    row: Option<u8>,
}

impl Answers {
    /// A call begins.
    pub(super) fn begin(&mut self) {
        self.fresh = 0;
    }

    #[inline(always)]
    pub(super) fn keep(&mut self, row: Option<usize>) {
        (self.is_kept, self.row) = (true, row.map(|row| row as u8));
    }

    /// Adds one about a moment, which may be the present one.
    pub(super) fn add(&mut self, place: i64, is_now: bool, tuple: &[u64]) {
        if !self.is_kept {
            return;
        }
        if self.answers.len() == LIMIT {
            self.answers.pop_front();
            self.words.drain(..tuple.len().min(self.words.len()));
        }
        self.answers.push_back(Answer { place, row: self.row.filter(|_| is_now) });
        self.words.extend(tuple);
        self.fresh = (self.fresh + 1).min(LIMIT);
    }

    /// The tuple about a moment: of this call and in a row of its block, or else the first at its place.
    pub(super) fn at(&self, place: i64, row: Option<u8>) -> Option<Vec<u64>> {
        let is_its = |(i, answer): &(usize, &Answer)| {
            let is_fresh = i + self.fresh >= self.answers.len();
            answer.place == place && (row.is_none() || is_fresh && answer.row == row)
        };
        let (at, _) = self.answers.iter().enumerate().find(is_its)?;
        let arity = self.words.len() / self.answers.len();
        Some(self.words.range(at * arity..(at + 1) * arity).copied().collect())
    }

    /// The values, with their columns.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, u64)> {
        let arity = (self.words.len() / self.answers.len().max(1)).max(1);
        self.words.iter().enumerate().map(move |(i, word)| (i % arity, *word))
    }
}

fn value(of: ValueType, word: u64, texts: &Texts) -> Value {
    match of {
        ValueType::Bool => Value::Bool(word != 0),
        ValueType::Int => Value::Int(word as i64),
        ValueType::Float => Value::Float(f64::from_bits(word)),
        ValueType::Time => Value::Time(word as i64),
        ValueType::Duration => Value::Duration(word as i64),
        ValueType::String => Value::String(String::from_utf8_lossy(texts.get(word)).into()),
    }
}
