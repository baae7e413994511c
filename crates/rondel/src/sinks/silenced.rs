//! Silences of operators, for actions and for sinks that notify people.

#[cfg(feature = "sqlite")]
use std::sync::Arc;

use rondel_runtime::Report;
#[cfg(feature = "sqlite")]
use {rondel_event::Verdict, rondel_net::adapter::now, rondel_sinks::object, rondel_sinks::sqlite::Silences};

/// The silences in the store of a run; none without one.
#[derive(Clone, Debug, Default)]
pub struct Silenced {
    #[cfg(feature = "sqlite")]
    pub(super) silences: Option<Arc<Silences>>,
}

/// Span for which the silences of a look are known: they stay the same until the next one begins or ends.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
pub struct Looked {
    generation: u64,
    /// Time of day, in nanoseconds.
    at: i64,
    /// Time of day at which the next silence begins or ends.
    until: i64,
}

impl Silenced {
    /// Whether a violation sends no notification: an operator has silenced its instance. The verdict that ends it does.
    #[cfg(feature = "sqlite")]
    pub fn silences(&self, report: &Report<'_>) -> bool {
        let Some(silences) = self.silences.as_ref().filter(|silences| silences.is_any()) else {
            return false;
        };
        if report.verdict() != Verdict::Violated {
            return false;
        }
        let property = report.property();
        let parameters = object(property.parameters.iter().map(String::as_str).zip(report.parameters()));
        silences.is_silenced(&property.name, &parameters, now().as_nanos())
    }

    /// Whether an instance of a property is silenced at a time of day, in nanoseconds. `parameters` is a JSON object.
    #[cfg(feature = "sqlite")]
    pub fn is_silenced(&self, property: &str, parameters: &str, now: i64) -> bool {
        self.silences.as_ref().is_some_and(|silences| silences.is_silenced(property, parameters, now))
    }

    /// Whether an instance of a property is silenced: without stores there are no silences.
    #[cfg(not(feature = "sqlite"))]
    pub fn is_silenced(&self, _: &str, _: &str, _: i64) -> bool {
        false
    }

    /// Whether a silence may have begun, ended or changed since `looked`, which becomes `now`, a time of day in nanoseconds.
    #[cfg(feature = "sqlite")]
    pub fn may_have_changed(&self, looked: &mut Looked, now: i64) -> bool {
        let Some(silences) = &self.silences else { return false };
        // First: what changes from here on has another one.
        let generation = silences.generation();
        if looked.generation == generation && (looked.at..looked.until).contains(&now) {
            return false;
        }
        *looked = Looked { generation, at: now, until: silences.next_change(now) };
        true
    }

    /// Whether silences may have changed: without stores there are no silences.
    #[cfg(not(feature = "sqlite"))]
    pub fn may_have_changed(&self, _: &mut Looked, _: i64) -> bool {
        false
    }

    /// Whether a violation sends no notification: without stores there are no silences.
    #[cfg(not(feature = "sqlite"))]
    pub fn silences(&self, _: &Report<'_>) -> bool {
        false
    }
}
