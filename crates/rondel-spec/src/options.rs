//! Options of parsing.

use crate::spec::TimeModel;

/// Options for parsing a specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// The time model of properties without `@time`. By default, properties whose bounds have a unit of time use
    /// dense time, and the others count steps.
    pub time: Option<TimeModel>,
    /// Whether numbers are interpolated linearly, as with `@interpolate(linear)`, in properties without `@time` and
    /// `@interpolate`. Requires `time: Some(TimeModel::Dense)`.
    pub linear: bool,
}
