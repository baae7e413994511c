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

    /// Whether an instance of a property is silenced now. `parameters` is a JSON object.
    #[cfg(feature = "sqlite")]
    pub fn is_silenced(&self, property: &str, parameters: &str) -> bool {
        let is_silenced =
            |silences: &Arc<Silences>| silences.is_silenced(property, parameters, now().as_nanos());
        self.silences.as_ref().is_some_and(is_silenced)
    }

    /// Whether an instance of a property is silenced now: without stores there are no silences.
    #[cfg(not(feature = "sqlite"))]
    pub fn is_silenced(&self, _: &str, _: &str) -> bool {
        false
    }

    /// Whether a violation sends no notification: without stores there are no silences.
    #[cfg(not(feature = "sqlite"))]
    pub fn silences(&self, _: &Report<'_>) -> bool {
        false
    }
}
