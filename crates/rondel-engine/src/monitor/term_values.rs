//! The values of terms at the time points of the last call.

use rondel_event::{Timestamp, Value};

use super::Monitor;
use crate::exec::report::ReportKey;

/// The value of a term at a time point, of a program that was compiled
/// [with terms](crate::Program::compile_with_terms).
#[derive(Clone, Debug)]
pub struct TermValue {
    /// The term, by its position among the properties.
    pub property: u32,
    /// The number of the event, if there is one at this time point.
    pub step: Option<u64>,
    /// The time; of an event its own.
    pub time: Timestamp,
    /// In dense time, whether it is the value right after that time.
    pub after: bool,
    /// The value; none while it is unknown.
    pub value: Option<Value>,
    /// The key of its instance, where the term is divided by key.
    pub(crate) key: Option<ReportKey>,
}

impl Monitor {
    /// The values of terms at the time points that the last call evaluated, equal ones too: events, and in dense time
    /// the times at which something changes between events.
    pub fn term_values(&self) -> &[TermValue] {
        &self.noted.terms
    }

    /// The values of the key of a term's instance; empty where the term is not divided by key.
    pub fn key_of_term(&self, term: &TermValue) -> Vec<Value> {
        let instance = term.key.map(|key| (key.slice, self.keys.of(key)));
        instance.map_or_else(Vec::new, |(slice, key)| self.values_of(slice, key))
    }
}
