//! Answers to requests, and the errors among them.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Type of answers of the API.
const JSON: &str = "application/json";

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The content.
    pub body: Cow<'static, [u8]>,
    /// Whether the content is compressed by gzip.
    pub is_gzip: bool,
    /// Tag of an asset, which changes with its content.
    pub tag: Option<String>,
}

/// An error: the status of HTTP, and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into() }
    }

    /// A parameter or a body that cannot be used.
    pub(crate) fn wrong(message: impl Into<String>) -> Problem {
        Problem::new(400, message)
    }

    /// A thing that does not exist.
    pub(crate) fn unknown(message: impl Into<String>) -> Problem {
        Problem::new(404, message)
    }

    /// A source that does not answer.
    pub(crate) fn unavailable(message: impl Into<String>) -> Problem {
        Problem::new(503, message)
    }
}

impl Reply {
    /// An answer of the API.
    pub(crate) fn json(value: &Value) -> Reply {
        Reply::of(200, JSON, value.to_string().into_bytes())
    }

    pub(crate) fn of(status: u16, content_type: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Reply {
        Reply { status, content_type, body: body.into(), is_gzip: false, tag: None }
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Reply {
        let Problem { status, message } = problem;
        Reply::of(status, JSON, json!({"error": message}).to_string().into_bytes())
    }
}

/// Seconds of a time in nanoseconds.
pub(crate) fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

/// Nanoseconds of a time in seconds; the nearest one that can be represented.
pub(crate) fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Verdicts by their numbers in the store and in timelines; 3 is no verdict.
pub(crate) const SATISFIED: u8 = 0;
/// See [`SATISFIED`].
pub(crate) const VIOLATED: u8 = 1;
/// See [`SATISFIED`].
pub(crate) const INCONCLUSIVE: u8 = 2;
/// See [`SATISFIED`].
pub(crate) const NONE: u8 = 3;

/// The name of a verdict by its number; `None` without a verdict.
pub(crate) fn verdict_name(verdict: u8) -> Option<&'static str> {
    match verdict {
        SATISFIED => Some("satisfied"),
        VIOLATED => Some("violated"),
        INCONCLUSIVE => Some("inconclusive"),
        _ => None,
    }
}

/// The number of a verdict by its name.
pub(crate) fn verdict_number(name: &str) -> Option<u8> {
    (SATISFIED..NONE).find(|verdict| verdict_name(*verdict) == Some(name))
}

/// Order of verdicts in lists: the worst first.
pub(crate) fn rank(verdict: u8) -> u8 {
    match verdict {
        VIOLATED => 0,
        INCONCLUSIVE => 1,
        NONE => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_to_the_microsecond() {
        for time in [0, -5_000, 1_700_000_000_123_456_000, i64::MIN, i64::MAX] {
            let back = nanos(seconds(time));
            assert!(back.abs_diff(time) < 1_000, "{time} {back}");
        }
        assert_eq!(nanos(f64::NAN), 0);
        assert_eq!(nanos(f64::INFINITY), i64::MAX);
    }

    #[test]
    fn verdicts_have_names_and_numbers() {
        for verdict in [SATISFIED, VIOLATED, INCONCLUSIVE] {
            assert_eq!(verdict_name(verdict).and_then(verdict_number), Some(verdict));
        }
        assert_eq!((verdict_name(NONE), verdict_number("none")), (None, None));
    }
}
