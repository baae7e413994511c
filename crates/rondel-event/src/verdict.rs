use std::fmt;

/// What a property says at one moment.
///
/// The three are the truth values of Kleene's strong logic: `Inconclusive` is "unknown so far".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The formula holds here.
    Satisfied,
    /// The formula does not hold here.
    Violated,
    /// Something that the answer depends on was never received.
    Inconclusive,
}

impl Verdict {
    /// The word that is written in every output: `satisfied`, `violated` or `inconclusive`.
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
