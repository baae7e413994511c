//! Aggregates of windows by their definitions in the reference: order, spread and course of the samples.

use rondel_event::Value;
use rondel_spec::Aggregate;

/// An aggregate, if it is defined here.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Value(Option<Value>),
    /// Not defined here.
    Other,
}

/// The aggregate of values with times in nanoseconds.
pub fn of(aggregate: Aggregate, values: &[Value], times: &[i128]) -> Answer {
    let floats = || values.iter().map(float).collect::<Vec<f64>>();
    let number = |x: Option<f64>| x.map(Value::Float);
    Answer::Value(match aggregate {
        Aggregate::Distinct => {
            let same = |x: &Value, y: &Value| match (x, y) {
                (Value::Float(x), Value::Float(y)) => x == y || x.is_nan() && y.is_nan(),
                (x, y) => x == y,
            };
            let is_new = |i: &usize| !values[..*i].iter().any(|x| same(x, &values[*i]));
            Some(Value::Int((0..values.len()).filter(is_new).count() as i64))
        }
        Aggregate::First => values.first().cloned(),
        Aggregate::Last => values.last().cloned(),
        Aggregate::Median => number(quantile(floats(), 500_000)),
        Aggregate::Percentile(part) => number(quantile(floats(), part)),
        Aggregate::Stddev => number(deviation(&floats())),
        Aggregate::Derivative => number(derivative(&floats(), times)),
        Aggregate::Integral => number(Some(integral(&floats(), times))),
        _ => return Answer::Other,
    })
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(x) => *x,
        Value::Int(x) => *x as f64,
        other => panic!("{other:?} is no number"),
    }
}

fn quantile(mut values: Vec<f64>, part: u32) -> Option<f64> {
    if values.iter().any(|x| x.is_nan()) {
        return Some(f64::NAN);
    }
    values.sort_by(|x, y| x.partial_cmp(y).unwrap());
    let place = values.len().checked_sub(1)? as u64 * u64::from(part);
    let (low, rest) = ((place / 1_000_000) as usize, place % 1_000_000);
    let (a, b) = (values[low], values[(low + 1).min(values.len() - 1)]);
    let rest = rest as f64 / 1e6;
    Some(if rest == 0.0 || a == b { a } else { a * (1.0 - rest) + b * rest })
}

fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (!values.is_empty()).then(|| (squares / count).sqrt())
}

fn derivative(values: &[f64], times: &[i128]) -> Option<f64> {
    let nanos = times.last()? - times.first()?;
    (nanos > 0).then(|| (values[values.len() - 1] - values[0]) / (nanos as f64 / 1e9))
}

fn integral(values: &[f64], times: &[i128]) -> f64 {
    let pieces: Vec<(f64, f64, i128)> = (1..values.len())
        .map(|i| (values[i - 1], values[i], times[i] - times[i - 1]))
        .filter(|piece| piece.2 > 0)
        .collect();
    // Exact if the numbers are multiples of 1/8, as in most tests.
    let eighths = |x: f64| (x * 8.0).fract() == 0.0;
    if !pieces.iter().all(|(a, b, _)| eighths(*a) && eighths(*b)) {
        return pieces
            .iter()
            .map(|(a, b, nanos)| (a / 2.0 + b / 2.0) * *nanos as f64)
            .fold(0.0, |x, y| x + y)
            / 1e9;
    }
    let whole = |x: f64| (x * 8.0) as i128;
    let area: i128 = pieces.iter().map(|(a, b, nanos)| (whole(*a) + whole(*b)) * nanos).sum();
    area as f64 / 16.0 / 1e9
}
