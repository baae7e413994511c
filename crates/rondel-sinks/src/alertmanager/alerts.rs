//! Alerts of the open violations, and what is to be sent of them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::Serialize;

use super::labels::{Instance, Labels, cut, labels};
use super::restore::Found;
use crate::entry::{Begin, End, RunKey, Truth, VerdictEntry};
use crate::shared::ticks;
use crate::sink::Failure;
use crate::webhook::date::utc;

/// Largest number of open alerts.
pub(super) const LARGEST: usize = 10_000;
/// Bytes of an annotation.
const ANNOTATION: usize = 1024;
/// Bytes of parameters that are kept until a run begins.
const UNKNOWN: usize = 4096;
/// Time for which a violation fires that nothing can end: that of a stamp of a chain, which is judged once.
const ONCE: i64 = 300_000_000_000;

/// Alerts by their labels.
pub(super) struct Alerts {
    all: BTreeMap<Labels, Alert>,
    /// Number of alerts that have not ended.
    open: usize,
    configured: Labels,
    hold: i64,
    run: Run,
}

/// The present run; before the first one, without a series.
#[derive(Default)]
struct Run {
    key: RunKey,
    series: String,
    host: String,
    properties: HashMap<String, Property>,
    lap: u32,
}

struct Property {
    severity: String,
    requirement: String,
    text: String,
}

struct Alert {
    annotations: BTreeMap<String, String>,
    /// Begin, as a text.
    starts: String,
    state: State,
    /// Whether Alertmanager has another state.
    is_changed: bool,
    /// Ticks of the last sending; 0 before it.
    sent: i64,
    /// Property and parameters, if its run is not known: its labels are without severity and series until a run begins.
    unknown: Option<Box<Unknown>>,
}

struct Unknown {
    property: String,
    parameters: String,
}

enum State {
    /// Violated.
    Firing,
    /// Unknown, for this reason, while a run watches the property.
    Stale(String),
    /// Unknown, for this reason, and no run watches the property. It is not sent again.
    Left(String),
    /// Ended, at this time of day.
    Ended(i64),
}

/// Outcome of sending alerts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Posted {
    Accepted,
    Refused,
}

/// An alert in a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    labels: &'a Labels,
    annotations: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_at: Option<&'a str>,
    ends_at: String,
}

impl Alerts {
    pub(super) fn new(configured: Labels, hold: Duration) -> Alerts {
        Alerts { all: BTreeMap::new(), open: 0, configured, hold: ticks(hold), run: Run::default() }
    }

    /// Begins a run. Alerts of earlier ones wait for its verdicts.
    pub(super) fn begin(&mut self, begin: &Begin<'_>) {
        if self.run.key == begin.run && !self.run.properties.is_empty() {
            return;
        }
        let properties = begin.properties.iter().map(|property| {
            let entry = Property {
                severity: property.severity.to_owned(),
                requirement: cut(property.requirement, ANNOTATION).to_owned(),
                text: cut(property.text, ANNOTATION).to_owned(),
            };
            (property.name.to_owned(), entry)
        });
        self.run = Run {
            key: begin.run,
            series: begin.series.to_owned(),
            host: begin.host.to_owned(),
            properties: properties.collect(),
            lap: 0,
        };
        self.leave(&waits(begin));
        self.name_unknown(begin.begin);
    }

    /// Gives alerts that were entered before any run began the labels of the present run, at this time of day. They waited
    /// in a file since an earlier process.
    fn name_unknown(&mut self, time: i64) {
        let is_unknown = |alert: &Alert| alert.unknown.is_some() && alert.is_open();
        let old: Vec<Labels> = self
            .all
            .iter()
            .filter(|(_, alert)| is_unknown(alert))
            .map(|(labels, _)| labels.clone())
            .collect();
        for labels in old {
            let Some(mut alert) = self.all.remove(&labels) else { continue };
            let Some(unknown) = alert.unknown.take() else { continue };
            let named = self.labels(&unknown.property, &unknown.parameters);
            if alert.sent != 0 {
                let (annotations, starts) = (alert.annotations.clone(), alert.starts.clone());
                let state = State::Ended(time);
                self.all.insert(
                    labels,
                    Alert { annotations, starts, state, is_changed: true, sent: 0, unknown: None },
                );
            }
            self.all.insert(named, Alert { is_changed: true, sent: 0, ..alert });
        }
    }

    /// Returns the labels of an instance in the present run.
    fn labels(&self, property: &str, parameters: &str) -> Labels {
        let severity = self.run.properties.get(property).map_or("", |property| property.severity.as_str());
        labels(&self.configured, Instance { property, parameters, severity, series: &self.run.series })
    }

    /// Marks all open alerts as such that no run watches.
    fn leave(&mut self, reason: &str) {
        for alert in self.all.values_mut().filter(|alert| alert.is_open()) {
            (alert.state, alert.is_changed) = (State::Left(reason.to_owned()), true);
        }
    }

    /// Adds alerts that Alertmanager has.
    pub(super) fn restore(&mut self, begin: &Begin<'_>, found: Vec<Found>) -> Result<(), Failure> {
        let mut left_out = 0;
        for Found { labels, mut annotations, starts_at: starts } in found {
            let is_own = labels.get("series").is_some_and(|series| series == begin.series)
                && self.configured.iter().all(|(name, value)| labels.get(name) == Some(value));
            if !is_own || self.all.contains_key(&labels) {
                continue;
            }
            if self.open >= LARGEST {
                left_out += 1;
                continue;
            }
            annotations.remove("stale");
            let state = State::Left(waits(begin));
            let alert = Alert { annotations, starts, state, is_changed: true, sent: 0, unknown: None };
            self.all.insert(labels, alert);
            self.open += 1;
        }
        if left_out == 0 { Ok(()) } else { Err(too_many(left_out)) }
    }

    /// Ends a run. Its violations have not ended, and no run watches them.
    pub(super) fn end(&mut self, end: &End<'_>) {
        if end.run == self.run.key {
            self.leave(&format!("the run ended at {} ({})", utc(end.end), end.status));
        }
    }

    /// Enters a verdict that was reported before `now`.
    pub(super) fn enter(&mut self, verdict: &VerdictEntry<'_>, now: i64) -> Result<(), Failure> {
        let time = if verdict.reported > 0 { verdict.reported.min(now) } else { now };
        // Verdicts of an earlier run may have waited in a file.
        if verdict.run == self.run.key && verdict.lap != self.run.lap {
            if verdict.lap < self.run.lap {
                // It is entered again after a failure, and its lap has ended.
                return Ok(());
            }
            if self.run.lap > 0 {
                self.end_all(time);
            }
            self.run.lap = verdict.lap;
        }
        if verdict.verdict != Truth::Violated && self.all.is_empty() {
            return Ok(());
        }
        let labels = self.labels(verdict.property, verdict.parameters);
        match verdict.verdict {
            Truth::Violated => self.violate(labels, verdict, time),
            Truth::Satisfied => {
                if let Some(alert) = self.all.get_mut(&labels).filter(|alert| alert.is_open()) {
                    (alert.state, alert.is_changed) = (State::Ended(time), true);
                    self.open -= 1;
                }
                Ok(())
            }
            Truth::Inconclusive => {
                if let Some(alert) = self.all.get_mut(&labels)
                    && matches!(alert.state, State::Firing | State::Left(_))
                {
                    let reason = format!("inconclusive since {}", utc(verdict.at()));
                    (alert.state, alert.is_changed) = (State::Stale(reason), true);
                }
                Ok(())
            }
        }
    }

    fn violate(&mut self, labels: Labels, verdict: &VerdictEntry<'_>, time: i64) -> Result<(), Failure> {
        let is_present = verdict.run == self.run.key;
        let state = match verdict.missing {
            "" if is_present => State::Firing,
            "" => State::Left("reported by an earlier run".to_owned()),
            // A stamp of a chain is judged once.
            _ => State::Ended(time.saturating_add(ONCE)),
        };
        let will_be_open = !matches!(state, State::Ended(_));
        if let Some(alert) = self.all.get_mut(&labels) {
            let was_open = alert.is_open();
            let is_known = was_open && will_be_open && (!is_present || matches!(alert.state, State::Firing));
            if !is_known && (was_open || verdict.because_of.is_empty()) {
                (alert.state, alert.is_changed) = (state, true);
                self.open = self.open + usize::from(will_be_open) - usize::from(was_open);
            }
            return Ok(());
        }
        if !verdict.because_of.is_empty() {
            return Ok(());
        }
        if will_be_open {
            if self.open >= LARGEST {
                return Err(too_many(1));
            }
            self.open += 1;
        }
        let (annotations, starts) = (self.annotations(verdict), utc(time));
        let is_unknown = self.run.key == RunKey::default() && verdict.parameters.len() <= UNKNOWN;
        let unknown = is_unknown.then(|| {
            let (property, parameters) = (verdict.property.to_owned(), verdict.parameters.to_owned());
            Box::new(Unknown { property, parameters })
        });
        self.all.insert(labels, Alert { annotations, starts, state, is_changed: true, sent: 0, unknown });
        Ok(())
    }

    fn annotations(&self, verdict: &VerdictEntry<'_>) -> BTreeMap<String, String> {
        let mut annotations = BTreeMap::new();
        let mut insert = |name: &str, value: &str| {
            if !value.is_empty() {
                annotations.insert(name.to_owned(), cut(value, ANNOTATION).to_owned());
            }
        };
        insert("summary", &format!("{} is violated", verdict.property));
        insert("time", &utc(verdict.at()));
        insert("explanation", verdict.explanation);
        insert("parameters", verdict.parameters);
        insert("missing", verdict.missing);
        insert("run", &verdict.run.to_string());
        insert("host", &self.run.host);
        if let Some(property) = self.run.properties.get(verdict.property) {
            insert("text", &property.text);
            insert("requirement", &property.requirement);
        }
        annotations
    }

    /// Ends all alerts, as a lap does.
    fn end_all(&mut self, time: i64) {
        for alert in self.all.values_mut().filter(|alert| alert.is_open()) {
            (alert.state, alert.is_changed) = (State::Ended(time), true);
        }
        self.open = 0;
    }

    /// Returns the alerts of which Alertmanager has another state.
    pub(super) fn changed(&self) -> Vec<Labels> {
        self.all.iter().filter(|(_, alert)| alert.is_changed).map(|(labels, _)| labels.clone()).collect()
    }

    /// Returns the alerts that are to be sent at these ticks. Forgets those that have expired in Alertmanager.
    pub(super) fn due(&mut self, now: i64, interval: i64) -> Vec<Labels> {
        let (all, open) = (&mut self.all, &mut self.open);
        all.retain(|_, alert| {
            let is_expired = matches!(alert.state, State::Left(_))
                && !alert.is_changed
                && now >= alert.sent.saturating_add(self.hold);
            *open -= usize::from(is_expired);
            !is_expired
        });
        let is_due = |alert: &Alert| {
            let is_watched = matches!(alert.state, State::Firing | State::Stale(_));
            alert.is_changed || is_watched && now >= alert.sent.saturating_add(interval)
        };
        all.iter().filter(|(_, alert)| is_due(alert)).map(|(labels, _)| labels.clone()).collect()
    }

    /// Returns the body of a request with these alerts at this time of day.
    pub(super) fn json(&self, chunk: &[Labels], now: i64) -> Vec<u8> {
        let found: Vec<_> = chunk.iter().filter_map(|labels| self.all.get_key_value(labels)).collect();
        let staled: Vec<_> = found.iter().map(|(_, alert)| alert.with_reason()).collect();
        let wires = found.iter().zip(&staled).map(|((labels, alert), staled)| {
            let ends_at = match alert.state {
                State::Ended(end) => utc(end),
                _ => utc(now.saturating_add(self.hold)),
            };
            // An end before the begin, by clocks that differ, would be refused: without a begin the end is taken for it.
            let is_in_order = ends_at.trim_end_matches('Z') >= alert.starts.trim_end_matches('Z');
            let starts_at = is_in_order.then_some(alert.starts.as_str());
            let annotations = staled.as_ref().unwrap_or(&alert.annotations);
            Wire { labels, annotations, starts_at, ends_at }
        });
        let wires: Vec<Wire<'_>> = wires.collect();
        // Maps of texts have an encoding.
        serde_json::to_vec(&wires).unwrap_or_default()
    }

    /// Enters that alerts were sent at these ticks.
    pub(super) fn posted(&mut self, chunk: &[Labels], posted: Posted, now: i64) {
        for labels in chunk {
            let Some(alert) = self.all.get_mut(labels) else { continue };
            (alert.is_changed, alert.sent) = (false, now);
            let is_open = alert.is_open();
            if !is_open || posted == Posted::Refused {
                self.all.remove(labels);
                self.open -= usize::from(is_open);
            }
        }
    }
}

impl Alert {
    fn is_open(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }

    /// Returns the annotations of a stale alert.
    fn with_reason(&self) -> Option<BTreeMap<String, String>> {
        let (State::Stale(reason) | State::Left(reason)) = &self.state else { return None };
        let mut annotations = self.annotations.clone();
        annotations.insert("stale".to_owned(), reason.clone());
        Some(annotations)
    }
}

fn waits(begin: &Begin<'_>) -> String {
    format!("no verdict of the run that began at {} yet", utc(begin.begin))
}

fn too_many(count: usize) -> Failure {
    Failure::rejected(format!(
        "{count} violations are left out beside {LARGEST} open alerts; send fewer by `properties` or `severity`"
    ))
}
