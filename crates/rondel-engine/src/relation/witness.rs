//! The values because of which a quantified formula turns false.
//!
//! `forall x. p` turns false at the tick at which `not p` comes to have a tuple: the first of that tick is the
//! witness. It costs something only at such ticks.
//!
//! If the formula looks ahead, the witness is the tuple of which what was asked at a moment turned out to be true first. The
//! verdict about that moment may come later, so the latest ones are [kept](Answers).

use std::collections::VecDeque;

use rondel_event::{Value, ValueType};
use rondel_spec::{TimeModel, VariableId};
use serde::{Deserialize, Serialize};

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

/// Latest tuples whose obligation was met, one for each moment. They belong to the state: the verdict about a moment may
/// come in a later call, also after a snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    /// Whether they are kept.
    is_kept: bool,
    /// The number of those of earlier calls.
    earlier: usize,
    answers: VecDeque<Answer>,
    /// Their values, all of the same number.
    words: VecDeque<u64>,
}

/// A moment at which a tuple met its obligation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The number of the event, if it is one.
    pub(super) event: Option<u64>,
    /// In steps the number of the event, otherwise the time.
    pub(super) place: i64,
    /// When that became certain.
    pub(super) found: AnsweredAt,
}

/// When something became certain.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct AnsweredAt {
    /// The coordinate: doubled in dense time; none at the moment itself.
    pub(super) axis: Option<i64>,
    /// The number of the last event by then.
    pub(super) event: u64,
    /// Whether time passed after it.
    pub(super) is_later: bool,
}

/// The verdict for which the tuple is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedAnswer {
    pub(crate) model: TimeModel,
    /// The place of the moment, as that of an [`Answer`].
    pub(crate) place: i64,
    /// Whether the verdict is about the event at which it was given.
    pub(crate) is_own: bool,
    /// Whether it was given at an event.
    pub(crate) at_event: bool,
    /// The number of the last event by then.
    pub(crate) step: u64,
    /// When it was given.
    pub(crate) time: i64,
}

impl WantedAnswer {
    /// Returns whether an answer is about the moment, and was known when the verdict was given. What became certain later
    /// must not matter: it depends on the number of events in a call.
    fn takes(&self, answer: &Answer) -> bool {
        let Answer { event, place, found } = *answer;
        if place != self.place || self.is_own && event != Some(self.step) {
            return false;
        }
        let is_in_time = match (self.model, found.axis) {
            (TimeModel::Steps, _) | (TimeModel::Points, None) => true,
            (TimeModel::Points, Some(axis)) => !found.is_later || axis <= self.time,
            (TimeModel::Dense, axis) => axis.map_or(place, |axis| axis >> 1) <= self.time,
        };
        let is_known = match self.at_event {
            true => (found.event, found.is_later) <= (self.step, false),
            false => self.model == TimeModel::Dense || found.event <= self.step,
        };
        is_in_time && is_known
    }
}

impl Answers {
    /// Ends a call: drops old ones of earlier calls. None of the call is dropped, as the number of events in a call must
    /// not matter.
    pub(crate) fn end_call(&mut self) {
        let (first, arity) = (self.earlier.saturating_sub(LIMIT), self.arity());
        self.answers.drain(..first);
        self.words.drain(..first * arity);
        self.earlier = self.answers.len();
    }

    /// Keeps the tuples of the moments to come.
    #[inline(always)]
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Adds the tuple of a moment.
    pub(super) fn add(&mut self, answer: Answer, tuple: &[u64]) {
        if self.is_kept {
            self.answers.push_back(answer);
            self.words.extend(tuple);
        }
    }

    /// Returns the first tuple for a verdict.
    pub(super) fn of(&self, wanted: &WantedAnswer) -> Option<Vec<u64>> {
        let at = self.answers.iter().position(|answer| wanted.takes(answer))?;
        let arity = self.arity();
        Some(self.words.range(at * arity..(at + 1) * arity).copied().collect())
    }

    /// The values, with their columns.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, u64)> {
        let arity = self.arity().max(1);
        self.words.iter().enumerate().map(move |(i, word)| (i % arity, *word))
    }

    /// Returns whether they can be of tuples with so many columns.
    pub(super) fn fits(&self, arity: usize) -> bool {
        self.words.len() == self.answers.len() * arity && self.earlier <= self.answers.len()
    }

    fn arity(&self) -> usize {
        self.words.len() / self.answers.len().max(1)
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
