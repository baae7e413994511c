//! The columns that tables of take-overs have in common.

use crate::table::{deviation, mean, quantile};

/// The heads of the columns.
pub const HEADS: [&str; 7] = ["take-overs", "mean ms", "sd", "p50", "p99", "max", "gap, mean ms"];
/// The cells of the study: a shutdown of a publisher.
pub const PAPER: [&str; 7] = ["1000", "16.8", "10.4", "-", "-", "41.5", "-"];

/// Returns the cells of a series, from the milliseconds of its take-overs and of their gaps.
pub fn cells(times: &[f64], gaps: &[f64]) -> Vec<String> {
    let ms = |ms: f64| format!("{ms:.1}");
    let mut cells = vec![times.len().to_string()];
    cells.extend([mean(times), deviation(times)].map(ms));
    cells.extend([0.5, 0.99, 1.0].map(|part| ms(quantile(times, part))));
    cells.push(ms(mean(gaps)));
    cells
}
