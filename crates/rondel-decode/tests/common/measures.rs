//! Measures of the elements of an array, by their definition.

use rondel_event::Quantifier;

/// The measures of elements.
pub(crate) const MEASURES: [Quantifier; 4] =
    [Quantifier::Min, Quantifier::Max, Quantifier::Sum, Quantifier::Mean];

/// Returns a measure of the numbers except NaN; `None` if there is no other number. A sum with NaN is unknown.
pub(crate) fn measured(quantifier: Quantifier, numbers: &[f64]) -> Option<f64> {
    let is_whole = !numbers.iter().any(|x| x.is_nan());
    let numbers: Vec<f64> = numbers.iter().copied().filter(|x| !x.is_nan()).collect();
    let sum = numbers.iter().fold(0.0, |sum, x| sum + x);
    let found = match quantifier {
        Quantifier::Min => numbers.iter().copied().reduce(f64::min),
        Quantifier::Max => numbers.iter().copied().reduce(f64::max),
        Quantifier::Sum => Some(sum).filter(|_| !numbers.is_empty()),
        _ => Some(sum / numbers.len() as f64),
    };
    found.filter(|found| (is_whole || quantifier != Quantifier::Sum) && !found.is_nan())
}
