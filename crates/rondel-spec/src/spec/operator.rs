//! The operators of arithmetic and of windows.

use rondel_event::ValueType;

/// An aggregate function over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// The number of samples: an `Int`.
    Count,
    /// The sum, of the type of the operand; 0 if there are no samples.
    Sum,
    /// The mean: a `Float`; unknown if there are no samples.
    Mean,
    /// The minimum, of the type of the operand; unknown if there are no samples.
    Min,
    /// The maximum, of the type of the operand; unknown if there are no samples.
    Max,
    /// The number of samples per second: a `Float`; not available in steps.
    Rate,
    /// The number of different values: an `Int`.
    Distinct,
    /// The quantile, in millionths of all samples: a `Float`; unknown if there are no samples.
    Percentile(u32),
    /// The quantile of a half: a `Float`; unknown if there are no samples.
    Median,
    /// The standard deviation of the population: a `Float`; unknown if there are no samples.
    Stddev,
    /// The value of the oldest sample, of the type of the operand; unknown if there are no samples.
    First,
    /// The value of the newest sample, of the type of the operand; unknown if there are no samples.
    Last,
    /// The difference between the newest and the oldest sample by the seconds between them: a `Float`; unknown if they
    /// are of one time. Not available in steps.
    Derivative,
    /// The area below the lines between the samples, in seconds: a `Float`; 0 if there are no samples. Not available in
    /// steps.
    Integral,
}

impl Aggregate {
    /// Returns the name in the language.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Count => "count",
            Aggregate::Sum => "sum",
            Aggregate::Mean => "mean",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Rate => "rate",
            Aggregate::Distinct => "distinct",
            Aggregate::Percentile(_) => "percentile",
            Aggregate::Median => "median",
            Aggregate::Stddev => "stddev",
            Aggregate::First => "first",
            Aggregate::Last => "last",
            Aggregate::Derivative => "derivative",
            Aggregate::Integral => "integral",
        }
    }

    /// Returns the percentage, as it is written after the operand.
    #[must_use]
    pub fn percentage(self) -> Option<f64> {
        match self {
            // Converts from a whole number of millionths, so that few digits stay few.
            Aggregate::Percentile(part) => Some(f64::from(part) / 10_000.0),
            _ => None,
        }
    }

    /// Whether samples that are NaN are left out. The value of every other aggregate depends on each sample.
    pub fn leaves_out_nan(self) -> bool {
        use Aggregate::{Max, Mean, Median, Min, Percentile, Stddev};
        matches!(self, Min | Max | Mean | Median | Percentile(_) | Stddev)
    }

    /// Returns whether it is computed from floats, whatever the type of its operand is.
    pub(crate) fn is_of_floats(self) -> bool {
        matches!(
            self,
            Aggregate::Mean
                | Aggregate::Percentile(_)
                | Aggregate::Median
                | Aggregate::Stddev
                | Aggregate::Derivative
                | Aggregate::Integral
        )
    }

    /// Returns whether it is per second or of seconds, so that it has no meaning in steps.
    pub(crate) fn needs_time(self) -> bool {
        matches!(self, Aggregate::Rate | Aggregate::Derivative | Aggregate::Integral)
    }
}

/// An arithmetic operator on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`
    Negate,
    /// `abs(x)`
    Abs,
}

/// An arithmetic operator on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`; integer division truncates towards zero
    Divide,
    /// `a % b`, with the sign of `a`
    Remainder,
    /// `min(a, b)`; NaN if an operand is NaN
    Min,
    /// `max(a, b)`; NaN if an operand is NaN
    Max,
}

/// Returns the type of arithmetic on two values, if it is defined: on two numbers of one type, and on times and
/// durations as their units allow. A duration is multiplied and divided by an `Int`; the quotient of two durations is a
/// `Float`.
pub fn binary_type(op: BinaryOp, left: ValueType, right: ValueType) -> Option<ValueType> {
    use BinaryOp::{Add, Divide, Max, Min, Multiply, Remainder, Subtract};
    use ValueType::{Duration, Float, Int, Time};
    Some(match (op, left, right) {
        (_, Int, Int) => Int,
        (_, Float, Float) => Float,
        (Subtract, Time, Time) => Duration,
        (Add | Subtract, Time, Duration) | (Add, Duration, Time) => Time,
        (Add | Subtract | Remainder | Min | Max, Duration, Duration) => Duration,
        (Min | Max, Time, Time) => Time,
        (Divide, Duration, Duration) => Float,
        (Multiply | Divide, Duration, Int) | (Multiply, Int, Duration) => Duration,
        _ => return None,
    })
}
