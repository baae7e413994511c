//! Settings of the items of `sinks:`, and the choice of verdicts that a sink receives.

use std::time::Duration;

use rondel_runtime::{PropertyInfo, Severity};

use super::targets::{Kind, Target};
use crate::sinks::spool::SpoolSettings;

/// The largest number of items.
pub const MOST_SINKS: usize = 32;

/// Settings of an item of `sinks:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// Name in messages, states and metrics.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its destination.
    pub target: Target,
    /// Name of the series of runs; by default that of machine and deployment.
    pub series: Option<String>,
    /// Time without progress for which a full queue is waited for; `None` to drop at once.
    pub wait: Option<Duration>,
    /// File for entries that the sink does not accept in time; `None` where these are dropped.
    pub spool: Option<SpoolSettings>,
    /// The verdicts that it receives.
    pub filter: Filter,
}

/// Choice of the properties whose verdicts a sink receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their names; empty for all.
    pub properties: Vec<String>,
    /// Their least severity.
    pub severity: Option<Severity>,
}

impl Filter {
    /// Whether the verdicts of a property are chosen.
    pub fn takes(&self, property: &PropertyInfo) -> bool {
        let is_named = self.properties.is_empty() || self.properties.contains(&property.name);
        let is_severe = self.severity.is_none_or(|least| Severity::of(property.severity.as_deref()) >= least);
        is_named && is_severe
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_chosen_by_name_and_severity() {
        let text = "topic t { x: float }
            property plain = t.x < 1
            @severity(Critical) property severe = t.x < 1
            @severity(warn) property mild = t.x < 1
            property other = t.x < 1";
        let infos = PropertyInfo::all(&rondel_spec::parse(text).spec.unwrap(), None);
        let names = ["plain", "severe", "mild"].map(str::to_owned).to_vec();
        let filter = Filter { properties: names, severity: Some(Severity::Error) };
        let taken: Vec<bool> = infos.iter().map(|info| filter.takes(info)).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert!(infos.iter().all(|info| Filter::default().takes(info)));
    }
}
