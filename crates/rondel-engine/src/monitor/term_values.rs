//! Values of terms at the time points of the last call.

use rondel_event::{Timestamp, Value};

use super::Monitor;
use crate::exec::report::ReportKey;

/// Value of a term at a time point, of a program compiled [with terms](crate::Program::compile_with_terms).
#[derive(Clone, Debug)]
pub struct TermValue {
    /// Position of the term among the properties.
    pub property: u32,
    /// Step of the event, if there is one at this time point.
    pub step: Option<u64>,
    /// Time of the event or time point.
    pub time: Timestamp,
    /// Whether the value is the one right after that time, in dense time.
    pub after: bool,
    /// Value; `None` while it is unknown.
    pub value: Option<Value>,
    /// Position in the array, if the event is an element of a message.
    pub element: Option<u32>,
    /// Parameters of its instance, with `for each`.
    pub(crate) key: Option<ReportKey>,
}

impl Monitor {
    /// Values of terms at the time points that the last call evaluated, including unchanged ones: events, and in dense
    /// time the times between events at which something changes.
    pub fn term_values(&self) -> &[TermValue] {
        &self.noted.terms
    }

    /// Parameters of a term's instance; empty without `for each`.
    pub fn key_of_term(&self, term: &TermValue) -> Vec<Value> {
        let instance = term.key.map(|key| (key.slice, self.keys.of(key)));
        instance.map_or_else(Vec::new, |(slice, key)| self.values_of(slice, key))
    }
}
