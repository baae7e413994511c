//! A picture of the verdicts over time, for documents and issues.

use crate::plot;
use crate::results::Results;

/// Returns the picture as SVG: a bar for each property of each recording.
pub fn write(results: &Results) -> String {
    plot::verdicts(results)
}
