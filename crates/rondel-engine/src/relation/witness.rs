//! The values because of which a quantified formula turns false.
//!
//! `forall x. p` turns false at the tick at which `not p` comes to have a tuple: the first of that tick is the
//! witness. It costs something only at such ticks.

use rondel_event::{Value, ValueType};
use rondel_spec::VariableId;

use super::plan::Plan;
use super::text::Texts;

/// The limit of witnesses that wait to be taken.
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
        plan: &Plan,
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
            let value = |(variable, word): (&VariableId, &u64)| {
                let (_, value_type) = plan.named.iter().find(|(named, _)| named == variable)?;
                Some((*variable, value(*value_type, *word, texts)))
            };
            let values = variables.iter().zip(tuple).filter_map(value).collect();
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
