//! The violations that are open: one incident causes an action once, although its verdict is inconclusive meanwhile.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use rondel_event::{Value, Verdict};
use rondel_runtime::Report;

/// Maximum number of violations that are remembered; further ones may cause their actions again.
const OPEN: usize = 100_000;

/// The open violations of the properties that cause actions.
#[derive(Debug, Default)]
pub(super) struct OpenViolations {
    /// The position of the property of each, and the hash of the parameters of its instance.
    open: HashSet<(u32, u64)>,
    hashes: RandomState,
}

impl OpenViolations {
    /// Takes a verdict that differs from the one before of its instance. Returns whether it continues an open violation.
    pub(super) fn take(&mut self, report: &Report<'_>) -> bool {
        self.take_verdict(report.property().position, report.parameters(), report.verdict())
    }

    fn take_verdict(&mut self, property: u32, parameters: &[Value], verdict: Verdict) -> bool {
        let instance = (property, self.hashes.hash_one(parameters));
        match verdict {
            Verdict::Violated if self.open.contains(&instance) => return true,
            Verdict::Violated if self.open.len() < OPEN => _ = self.open.insert(instance),
            Verdict::Satisfied => _ = self.open.remove(&instance),
            // Nothing is known meanwhile: it is not over.
            Verdict::Violated | Verdict::Inconclusive => {}
        }
        false
    }

    /// Keeps the violations of properties that stay. `kept` has for each property its position before, if it stays.
    pub(super) fn rearrange(&mut self, kept: &[Option<u32>]) {
        let here = |(at, before): (u32, &Option<u32>)| before.map(|before| (before, at));
        let moved: HashMap<u32, u32> = (0..).zip(kept).filter_map(here).collect();
        let stays = |(before, instance): (u32, u64)| moved.get(&before).map(|at| (*at, instance));
        self.open = std::mem::take(&mut self.open).into_iter().filter_map(stays).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violation_is_open_until_it_is_satisfied() {
        let mut open = OpenViolations::default();
        let (a, b) = ([Value::Int(1)], [Value::Int(2)]);
        assert!(!open.take_verdict(0, &a, Verdict::Violated));
        assert!(!open.take_verdict(0, &a, Verdict::Inconclusive));
        assert!(open.take_verdict(0, &a, Verdict::Violated));
        // Those of other instances and properties are others.
        assert!(!open.take_verdict(0, &b, Verdict::Violated));
        assert!(!open.take_verdict(1, &a, Verdict::Violated));
        assert!(!open.take_verdict(0, &a, Verdict::Satisfied));
        assert!(!open.take_verdict(0, &a, Verdict::Violated));
    }

    #[test]
    fn violations_of_kept_properties_stay() {
        let mut open = OpenViolations::default();
        for property in 0..3 {
            open.take_verdict(property, &[], Verdict::Violated);
        }
        // The first one restarts, the second one is removed, the third one stays in front of a new one.
        open.rearrange(&[Some(2), None, None]);
        assert!(open.take_verdict(0, &[], Verdict::Violated));
        assert!(!open.take_verdict(1, &[], Verdict::Violated));
        open.rearrange(&[]);
        assert!(open.open.is_empty());
    }

    #[test]
    fn number_of_violations_is_bounded() {
        let mut open = OpenViolations::default();
        for instance in 0..OPEN as i64 + 10 {
            open.take_verdict(0, &[Value::Int(instance)], Verdict::Violated);
        }
        assert_eq!(open.open.len(), OPEN);
        let last = [Value::Int(OPEN as i64 + 9)];
        assert!(!open.take_verdict(0, &last, Verdict::Violated), "acts as if it were a new one");
    }
}
