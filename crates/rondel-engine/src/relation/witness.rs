//! Values that make a quantified formula false.
//!
//! `forall x. p` turns false at the tick at which `not p` gains a tuple: the first one of that tick is the
//! witness. There is a cost only at such ticks.
//!
//! With future operators, the witness is the tuple whose obligation was met first. The verdict about its time
//! point may come later, so the latest ones are [stored](Answers).

use std::collections::VecDeque;

use rondel_event::{Value, ValueType};
use rondel_spec::{TimeModel, VariableId};
use serde::{Deserialize, Serialize};

use super::plan::RelationPlan;
use super::text::Texts;

/// Limit of witnesses not yet taken, and of stored answers.
const LIMIT: usize = 256;

/// Ticks at which a formula gained a tuple, until they are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witnesses {
    held: bool,
    /// Truth before the speculative interval.
    before: bool,
    /// Row in the block of the current event.
    row: Option<u8>,
    found: Vec<Witness>,
}

/// Values of a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Witness {
    /// Tick.
    pub(crate) place: i64,
    /// Row in the block, at an event.
    pub(crate) row: Option<u8>,
    pub(crate) values: Vec<(VariableId, Value)>,
}

impl Witnesses {
    /// Records the truth of the roots at a tick; `tuple` finds the columns and values of one.
    #[inline(always)]
    pub(crate) fn note<'a>(
        &mut self,
        plan: &RelationPlan,
        place: i64,
        holds: bool,
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

    /// Announces the event in this row of the block, or a time without one.
    #[inline(always)]
    pub(crate) fn at(&mut self, row: Option<usize>) {
        self.row = row.map(|row| row as u8);
    }

    /// Starts a speculative step.
    pub(crate) fn begin_speculation(&mut self) {
        self.before = self.held;
    }

    /// Rolls the speculative step back.
    pub(crate) fn roll_back(&mut self) {
        self.held = self.before;
    }

    /// Takes the witnesses found.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Witness> {
        self.found.drain(..)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// Returns the values of a tuple, with their variables.
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

/// Latest tuples whose obligation was met, one for each time point. They belong to the state: the verdict
/// about a time point may come in a later call, also after a snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    /// Whether they are stored.
    is_kept: bool,
    /// Number of those of earlier calls.
    earlier: usize,
    answers: VecDeque<Answer>,
    /// Values of all tuples, each of the same arity.
    words: VecDeque<u64>,
}

/// Time point at which a tuple met its obligation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Number of the event, if it is one.
    pub(super) event: Option<u64>,
    /// Number of the step, or time in the other models.
    pub(super) place: i64,
    /// Point at which that became certain.
    pub(super) found: AnsweredAt,
}

/// Point at which a decision became certain.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct AnsweredAt {
    /// Coordinate, doubled in dense time; none at the time point itself.
    pub(super) axis: Option<i64>,
    /// Number of the last event by then.
    pub(super) event: u64,
    /// Whether time passed after it.
    pub(super) is_later: bool,
}

/// Verdict for which a tuple is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedAnswer {
    pub(crate) model: TimeModel,
    /// Time point, as in an [`Answer`].
    pub(crate) place: i64,
    /// Whether the verdict is about the event at which it was emitted.
    pub(crate) is_own: bool,
    /// Whether it was emitted at an event.
    pub(crate) at_event: bool,
    /// Number of the last event by then.
    pub(crate) step: u64,
    /// Time at which it was emitted.
    pub(crate) time: i64,
}

impl WantedAnswer {
    /// Whether an answer is about the time point, and was known when the verdict was emitted. Later decisions
    /// must not matter: they depend on the number of events per call.
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
    /// Ends a call: drops old answers of earlier calls. Those of the current call stay, as the number of
    /// events per call must not matter.
    pub(crate) fn end_call(&mut self) {
        let (first, arity) = (self.earlier.saturating_sub(LIMIT), self.arity());
        self.answers.drain(..first);
        self.words.drain(..first * arity);
        self.earlier = self.answers.len();
    }

    /// Stores the tuples of future time points.
    #[inline(always)]
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Adds the tuple of a time point.
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

    /// Returns the values with their columns.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, u64)> {
        let arity = self.arity().max(1);
        self.words.iter().enumerate().map(move |(i, word)| (i % arity, *word))
    }

    /// Whether they fit tuples of that arity.
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
