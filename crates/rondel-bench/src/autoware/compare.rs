//! Which planted faults the verdicts name, and which violations no fault explains.

use super::faults::{FAULTS, Fault};
use super::traffic::Plan;

/// A property that became violated.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The property.
    pub property: String,
    /// The time that the verdict is about, in seconds since the begin of the drive.
    pub time: f64,
}

impl Violation {
    /// Reads a verdict of a drive that began at `base_ns`; `None` if it is no violation.
    pub fn parse(line: &str, base_ns: u64) -> Option<Violation> {
        let verdict: serde_json::Value = serde_json::from_str(line).ok()?;
        if verdict["verdict"] != "violated" {
            return None;
        }
        let time = verdict.get("about").unwrap_or(&verdict["time"]).as_f64()?;
        let property = verdict["property"].as_str()?.to_owned();
        Some(Violation { property, time: time - base_ns as f64 / 1e9 })
    }
}

/// The planted faults beside the violations.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// For each planted fault, the properties that did not find it.
    pub missed: Vec<(Fault, Vec<&'static str>)>,
    /// Faults that all of their properties found.
    pub found: usize,
    /// Violations that no fault explains.
    pub unexplained: Vec<Violation>,
}

impl Comparison {
    /// Compares the violations with the faults of a plan. After the drive the vehicle is silent: violations that are about
    /// later times are not compared.
    pub fn new(plan: &Plan, violations: &[Violation]) -> Comparison {
        let planted: Vec<&Fault> =
            FAULTS.iter().filter(|f| plan.faults && f.until + f.echo <= plan.seconds).collect();
        let mut result = Comparison::default();
        for fault in planted {
            let is_found = |property: &&str| {
                violations.iter().any(|v| v.property == **property && fault.explains(property, v.time))
            };
            let missed: Vec<&'static str> =
                fault.found_by.iter().filter(|property| !is_found(property)).copied().collect();
            if missed.is_empty() {
                result.found += 1;
            } else {
                result.missed.push((*fault, missed));
            }
        }
        let explained =
            |v: &&Violation| plan.faults && FAULTS.iter().any(|fault| fault.explains(&v.property, v.time));
        let during = violations.iter().filter(|v| v.time <= plan.seconds);
        result.unexplained = during.filter(|v| !explained(v)).cloned().collect();
        result
    }

    /// Whether all planted faults were found, and nothing else.
    pub fn is_exact(&self) -> bool {
        self.missed.is_empty() && self.unexplained.is_empty()
    }

    /// Returns the lines that say so.
    pub fn lines(&self, of: &str) -> Vec<String> {
        let planted = self.found + self.missed.len();
        let mut lines = vec![format!(
            "{of}: {} of {planted} planted faults found, {} violations without a fault",
            self.found,
            self.unexplained.len()
        )];
        for (fault, missed) in &self.missed {
            lines.push(format!("  not found at {} s: {} ({})", fault.from, fault.what, missed.join(", ")));
        }
        for Violation { property, time } in &self.unexplained {
            lines.push(format!("  without a fault: {property} at {time:.3} s"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::traffic::messages;
    use super::*;

    const PLAN: Plan = Plan { seed: 1, faults: true, seconds: 60.0 };

    #[test]
    fn faults_are_found_by_all_of_their_properties_and_by_no_others() {
        let mut all: Vec<Violation> = FAULTS
            .iter()
            .flat_map(|f| f.found_by.iter().map(|p| Violation { property: (*p).to_owned(), time: f.from }))
            .collect();
        assert!(Comparison::new(&PLAN, &all).is_exact());
        let last = all.pop().unwrap();
        let comparison = Comparison::new(&PLAN, &all);
        assert_eq!((comparison.found, comparison.missed.len()), (FAULTS.len() - 1, 1));
        all.extend([last, Violation { property: "status_latency".to_owned(), time: 30.0 }]);
        let comparison = Comparison::new(&PLAN, &all);
        assert_eq!(comparison.lines("x").len(), 2, "{:?}", comparison.lines("x"));
        all.push(Violation { property: "status_rate".to_owned(), time: 60.5 });
        assert_eq!(Comparison::new(&PLAN, &all).unexplained.len(), 1, "the vehicle has gone");
        all.pop();
        let without = Plan { faults: false, ..PLAN };
        assert_eq!(Comparison::new(&without, &all).unexplained.len(), all.len());
    }

    #[test]
    fn the_time_of_a_verdict_is_the_one_that_it_is_about() {
        let line = r#"{"property":"p","time":104,"about":102.5,"verdict":"violated"}"#;
        let violation = Violation { property: "p".to_owned(), time: 2.5 };
        assert_eq!(Violation::parse(line, 100_000_000_000), Some(violation));
        assert_eq!(Violation::parse(&line.replace("violated", "satisfied"), 0), None);
    }

    #[test]
    fn a_seed_gives_the_same_messages() {
        let all = messages(&PLAN);
        assert_eq!(all, messages(&PLAN));
        assert_ne!(all, messages(&Plan { seed: 2, ..PLAN }));
    }

    #[test]
    fn messages_have_the_rates_of_the_case_study() {
        for topic in super::super::messages::TOPICS {
            let all = messages(&Plan { faults: false, ..PLAN });
            let count = all.iter().filter(|m| m.topic == topic).count() as f64;
            assert!((count / 60.0 - topic.rate()).abs() < 0.1, "{topic:?}: {count}");
        }
    }
}
