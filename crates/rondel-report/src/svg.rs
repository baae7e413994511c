//! A picture of the verdicts over time, for documents and issues.

use crate::plot;
use crate::results::Results;

/// The picture, as SVG: for each recording a bar of each property.
pub fn write(results: &Results) -> String {
    plot::verdicts(results)
}
