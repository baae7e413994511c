//! Numbers, limits and names that are the same in the tables of all databases.

use crate::entry::{Begin, Truth, VerdictEntry};

/// Largest number of instances of a property in the table of present verdicts.
pub(crate) const LISTED: i64 = 10_000;
/// Number of ids of earlier runs that are compared with those of a resumed run.
pub(crate) const REPEATABLE: i64 = 1 << 18;

/// Returns the parameters of a verdict in the tables.
pub(crate) fn parameters<'v>(verdict: &VerdictEntry<'v>) -> &'v str {
    if verdict.parameters.is_empty() { "{}" } else { verdict.parameters }
}

/// Returns the number of a verdict in the tables.
pub(crate) fn number(verdict: Truth) -> i64 {
    match verdict {
        Truth::Satisfied => 0,
        Truth::Violated => 1,
        Truth::Inconclusive => 2,
    }
}

/// Returns the verdict with a number in the tables.
pub(crate) fn truth(number: i64) -> Truth {
    match number {
        0 => Truth::Satisfied,
        1 => Truth::Violated,
        _ => Truth::Inconclusive,
    }
}

/// Returns the name of the series of a run.
pub(crate) fn series(begin: &Begin<'_>) -> String {
    match begin.series {
        "" => format!("{} {}", begin.kind.as_str(), begin.run),
        name => name.to_owned(),
    }
}
