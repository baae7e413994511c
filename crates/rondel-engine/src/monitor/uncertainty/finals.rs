//! Times at which verdicts became final. Messages missed later do not affect them.

use rondel_event::{Timestamp, Verdict};
use rondel_spec::{Finality, Spec};
use serde::{Deserialize, Serialize};

use crate::exec::inventory::Origins;
use crate::exec::report::Report;

/// Beginning of a span of missed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnseenFrom {
    /// Messages of this time and later.
    Time(Timestamp),
    /// Messages after the first N, as counted by [`Monitor::count`](crate::Monitor::count); their time is unknown.
    Count(u64),
}

/// Time and message count at which a verdict became final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FinalSince {
    time: i64,
    /// Number of messages by then, or greater.
    count: u64,
}

/// Final verdicts of a monitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finals {
    /// By property; empty if no property has final verdicts.
    since: Vec<Option<FinalSince>>,
    /// Number of properties that can still get a final verdict.
    open: usize,
    /// Number of messages so far, or greater.
    pub(crate) count: u64,
}

/// Finality of each property; empty if no property has final verdicts.
pub(crate) fn finality(spec: &Spec) -> Vec<Finality> {
    let all = spec.finality();
    if all.iter().any(|finality| finality.any()) { all } else { Vec::new() }
}

impl Finals {
    pub(crate) fn new(plans: &[Finality]) -> Finals {
        let open = plans.iter().filter(|finality| finality.any()).count();
        Finals { since: vec![None; plans.len()], open, count: 0 }
    }

    /// Transfers final verdicts from another program; `origins` maps properties to those there.
    pub(super) fn take(&mut self, plans: &[Finality], other: &Finals, origins: &Origins) {
        for (at, since) in (0..).zip(&mut self.since) {
            *since = origins.get(at).and_then(|from| *other.since.get(from as usize)?);
        }
        let open = |(finality, since): &(&Finality, &Option<FinalSince>)| finality.any() && since.is_none();
        self.open = plans.iter().zip(&self.since).filter(open).count();
        self.count = other.count;
    }

    pub(super) fn fits(&self, plans: &[Finality]) -> bool {
        let open = |(finality, since): &(&Finality, &Option<FinalSince>)| finality.any() && since.is_none();
        self.since.len() == plans.len() && self.open == plans.iter().zip(&self.since).filter(open).count()
    }

    /// Whether a verdict may still become final.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Records a certain verdict. Returns whether it is final.
    pub(super) fn note(&mut self, plans: &[Finality], report: &Report) -> bool {
        let place = report.property as usize;
        let (Some(finality), Some(since)) = (plans.get(place), self.since.get_mut(place)) else {
            return false;
        };
        let is_final = match report.verdict {
            Verdict::Satisfied => finality.satisfied,
            Verdict::Violated => finality.violated,
            Verdict::Inconclusive => false,
        };
        if is_final && since.is_none() {
            *since = Some(FinalSince { time: report.time.as_nanos(), count: self.count });
            self.open -= 1;
        }
        is_final
    }

    /// Whether a property's final verdict precedes a span. If not, the span may change it, and it is dropped.
    pub(super) fn outlives(&mut self, property: u32, from: UnseenFrom) -> bool {
        let Some(place) = self.since.get_mut(property as usize) else { return false };
        let Some(since) = *place else { return false };
        let outlives = match from {
            UnseenFrom::Time(from) => since.time < from.as_nanos(),
            UnseenFrom::Count(from) => since.count <= from,
        };
        if !outlives {
            *place = None;
            self.open += 1;
        }
        outlives
    }
}
