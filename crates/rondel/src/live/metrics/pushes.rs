//! Account of pushes of metrics to a collector.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rondel_runtime::text::{counted, grouped};
use serde_json::json;

/// Account of pushes, which the pushing thread keeps and others read.
#[derive(Debug, Default)]
pub struct Pushes(Mutex<PushFigures>);

/// Numbers of pushes, and the last failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushFigures {
    /// Pushes that the collector has accepted.
    pub accepted: u64,
    /// Pushes that failed.
    pub failed: u64,
    /// Reason of the last failure.
    pub error: Option<String>,
    /// Whether the last push failed.
    pub is_failing: bool,
}

impl Pushes {
    fn lock(&self) -> MutexGuard<'_, PushFigures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a push that was accepted, or that failed for this reason.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    pub fn count(&self, pushed: Result<(), &str>) {
        let mut figures = self.lock();
        figures.is_failing = pushed.is_err();
        match pushed {
            Ok(()) => figures.accepted += 1,
            Err(why) => {
                figures.failed += 1;
                figures.error = Some(why.to_owned());
            }
        }
    }

    /// Copies the account.
    pub fn figures(&self) -> PushFigures {
        self.lock().clone()
    }
}

impl PushFigures {
    /// The account as JSON.
    pub fn json(&self) -> serde_json::Value {
        let PushFigures { accepted, failed, error, .. } = self;
        json!({"accepted": accepted, "failed": failed, "error": error})
    }

    /// The sentence about failed pushes; `None` if there are none.
    pub fn sentence(&self) -> Option<String> {
        let PushFigures { accepted, failed, error, is_failing } = self;
        let error = error.as_deref()?;
        let lost = if *is_failing { ", the last one among them" } else { "" };
        Some(format!(
            "metrics: {} accepted, {} failed{lost}; the last failure: {error}",
            counted(*accepted, "push", "pushes"),
            grouped(*failed)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_named_at_the_end() {
        let pushes = Pushes::default();
        pushes.count(Ok(()));
        assert_eq!(pushes.figures().sentence(), None);
        pushes.count(Err("cannot reach a"));
        pushes.count(Err("a answers 503"));
        let figures = pushes.figures();
        let expected =
            "metrics: 1 push accepted, 2 failed, the last one among them; the last failure: a answers 503";
        assert_eq!(figures.sentence().as_deref(), Some(expected));
        assert_eq!(figures.json(), json!({"accepted": 1, "failed": 2, "error": "a answers 503"}));
        pushes.count(Ok(()));
        let expected = "metrics: 2 pushes accepted, 2 failed; the last failure: a answers 503";
        assert_eq!(pushes.figures().sentence().as_deref(), Some(expected));
    }
}
