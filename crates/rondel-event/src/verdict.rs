//! Verdicts.

use std::fmt;

/// Truth value of a property at one time point, in Kleene's strong three-valued logic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The property holds.
    Satisfied,
    /// The property does not hold.
    Violated,
    /// Unknown: a value that the verdict depends on was not received.
    Inconclusive,
}

impl Verdict {
    /// Returns the name in every output: `satisfied`, `violated` or `inconclusive`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Satisfied => "satisfied",
            Verdict::Violated => "violated",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
