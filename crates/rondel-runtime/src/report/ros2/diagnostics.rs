//! The state of properties as `diagnostic_msgs/msg/DiagnosticArray`.
//!
//! Consumers of `/diagnostics` expect the state of each part about once a second, and take silence of five seconds for
//! a failure. A verdict may change at every message: a level stays visible for one period, so that a violation between
//! two arrays is not missed, and only a level that becomes worse is published before the period ends.

use std::collections::HashMap;

use rondel_event::{Timestamp, Value, Verdict};

use super::cdr::CdrWriter;
use super::plain;
use crate::report::severity::Severity;
use crate::report::{PropertyInfo, Report};
use crate::statistics::omission::Omission;
use crate::text::{counted, parameters_text, write_parameters, write_seconds};

/// The time between two arrays, and how long a level is visible at least, in nanoseconds.
pub const PERIOD: i64 = 1_000_000_000;
/// The largest number of statuses, without that of Rondel itself.
pub const MOST_STATUSES: usize = 1000;
/// The hardware id of all statuses.
const HARDWARE: &str = "rondel";
/// Time for which the monitor's own status is a warning after an omitted message, in nanoseconds.
const RECENT: i64 = 10 * PERIOD;
/// Maximum number of listed reasons and topics of omitted messages.
const MOST_OMISSIONS: usize = 32;
/// Values of an explanation in a status.
const MOST_EVIDENCE: usize = 32;

/// A level, from good to bad. STALE is the largest number, but less urgent than a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    Stale,
    Warn,
    Error,
}

impl Level {
    fn of(verdict: Verdict, severity: Option<&str>) -> Level {
        match verdict {
            Verdict::Satisfied => Level::Ok,
            Verdict::Inconclusive => Level::Stale,
            Verdict::Violated if Severity::of(severity) < Severity::Error => Level::Warn,
            Verdict::Violated => Level::Error,
        }
    }

    fn number(self) -> u8 {
        match self {
            Level::Ok => 0,
            Level::Warn => 1,
            Level::Error => 2,
            Level::Stale => 3,
        }
    }
}

/// A verdict as a status shows it.
#[derive(Clone, Debug)]
struct Shown {
    level: Level,
    verdict: Verdict,
    time: Timestamp,
    about: Option<Timestamp>,
    step: Option<u64>,
    /// Values of quantified variables and of an explanation.
    values: Vec<(String, String)>,
}

/// The state of a property, or of an instance of it.
#[derive(Clone, Debug)]
struct Status {
    /// The position of the property.
    property: u32,
    parameters: Vec<Value>,
    last: Shown,
    /// Worse level that is still shown, and its end.
    held: Option<(Shown, Timestamp)>,
}

impl Status {
    fn shown(&self) -> &Shown {
        self.held.as_ref().map_or(&self.last, |(shown, _)| shown)
    }
}

/// State of a part of the monitor, such as a store of verdicts, in a status of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Name.
    pub name: String,
    /// Whether it does not work at present.
    pub is_failing: bool,
    /// Whether verdicts were lost in it.
    pub has_lost: bool,
    /// Message.
    pub message: String,
    /// Further facts: name and value.
    pub values: Vec<(&'static str, String)>,
}

/// The state of all properties, and when it was last written.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// All properties, and which of them are shown.
    properties: Vec<PropertyInfo>,
    shown: Vec<bool>,
    statuses: Vec<Status>,
    /// The position of the status by property and parameters.
    places: HashMap<Vec<u8>, usize>,
    /// The status of each property without parameters, or [`NONE`].
    plain: Vec<usize>,
    /// Numbers of new instances without a status, and of violated ones among them.
    hidden: (u64, u64),
    /// Omitted messages, their number, and the time of its last increase.
    omitted: Vec<Omission>,
    omissions: u64,
    /// Parts of the monitor with a status of their own.
    parts: Vec<Part>,
    grew: Option<Timestamp>,
    last: Option<Timestamp>,
    key: Vec<u8>,
}

const NONE: usize = usize::MAX;

impl Diagnostics {
    /// Creates the state without verdicts, for those of all properties that are `shown`.
    pub fn new(properties: &[PropertyInfo], shown: Vec<bool>) -> Diagnostics {
        let (statuses, places, key) = Default::default();
        let (hidden, omitted, omissions, parts, grew, last) = Default::default();
        let (plain, properties) = (vec![NONE; properties.len()], properties.to_vec());
        Diagnostics {
            properties,
            shown,
            statuses,
            places,
            plain,
            hidden,
            omitted,
            omissions,
            parts,
            grew,
            last,
            key,
        }
    }

    /// Takes over the states of properties from other diagnostics. `kept` has for each property its position there, if it
    /// keeps its state.
    pub fn continue_from(&mut self, before: Diagnostics, kept: &[Option<u32>]) {
        for mut status in before.statuses {
            let at = kept.iter().position(|origin| *origin == Some(status.property));
            let Some(at) = at.filter(|at| self.shown.get(*at) == Some(&true)) else { continue };
            status.property = at as u32;
            let place = self.statuses.len();
            if status.parameters.is_empty() {
                if let Some(plain) = self.plain.get_mut(at) {
                    *plain = place;
                }
            } else {
                let mut key = status.property.to_le_bytes().to_vec();
                write_parameters(&status.parameters, &mut key);
                self.places.insert(key, place);
            }
            self.statuses.push(status);
        }
        (self.hidden, self.omitted, self.omissions) = (before.hidden, before.omitted, before.omissions);
        (self.parts, self.grew, self.last) = (before.parts, before.grew, before.last);
    }

    /// Sets the state of parts of the monitor, which the next array shows.
    pub fn set_parts(&mut self, parts: Vec<Part>) {
        self.parts = parts;
    }

    /// Adds a verdict. If its level is worse than the shown one, replaces `out` by an array with this status, and
    /// returns `true`. `now` is the system's time.
    pub fn take(&mut self, report: &Report<'_>, now: Timestamp, out: &mut Vec<u8>) -> bool {
        let property = report.property();
        let level = Level::of(report.verdict(), property.severity.as_deref());
        let place = self.place(report, level);
        let Some(place) = place else { return false };
        let before = self.statuses.get(place).map(|status| (status.last.level, status.shown().level));
        let mut shown = Shown {
            level,
            verdict: report.verdict(),
            time: report.time(),
            about: report.about(),
            step: report.step(),
            values: Vec::new(),
        };
        if report.verdict() == Verdict::Violated {
            shown.values = values(report);
        }
        let Some((last, visible)) = before else {
            let (property, parameters) = (property.position, report.parameters().to_vec());
            self.statuses.push(Status { property, parameters, last: shown, held: None });
            self.write(now, &[place], out);
            return true;
        };
        let status = &mut self.statuses[place];
        let previous = std::mem::replace(&mut status.last, shown);
        if level >= visible {
            status.held = None;
        } else if last == visible && level < last && status.held.is_none() {
            // The worse level stays for a period.
            status.held = Some((previous, plus(now, PERIOD)));
        }
        if level > visible {
            self.write(now, &[place], out);
        }
        level > visible
    }

    /// Replaces `out` by an array of all statuses if a period has passed since the last one, or the run `ends`. Returns
    /// whether it did. `omitted` returns the omitted messages so far.
    pub fn tick(
        &mut self,
        now: Timestamp,
        ends: bool,
        omitted: impl FnOnce() -> Vec<Omission>,
        out: &mut Vec<u8>,
    ) -> bool {
        // A clock that was set back is no reason for silence.
        let is_due = |last: Timestamp| !(0..PERIOD).contains(&now.as_nanos().saturating_sub(last.as_nanos()));
        if !ends && !self.last.is_none_or(is_due) {
            return false;
        }
        self.omitted = omitted();
        let omissions = self.omitted.iter().fold(0u64, |all, own| all.saturating_add(own.count));
        if std::mem::replace(&mut self.omissions, omissions) < omissions {
            self.grew = Some(now);
        }
        self.last = Some(now);
        for status in &mut self.statuses {
            // The time must be near as well: the clock may be set.
            let is_over =
                |until: &Timestamp| !(1..=PERIOD).contains(&until.as_nanos().saturating_sub(now.as_nanos()));
            if status.held.as_ref().is_some_and(|(_, until)| ends || is_over(until)) {
                status.held = None;
            }
        }
        self.write_all(now, ends, out);
        true
    }

    /// The position of the status of this instance, maybe a new one; `None` where there are too many.
    fn place(&mut self, report: &Report<'_>, level: Level) -> Option<usize> {
        let position = report.property().position;
        if report.parameters().is_empty() {
            let place = self.plain.get_mut(position as usize)?;
            if *place == NONE {
                *place = self.statuses.len();
            }
            return Some(*place);
        }
        self.key.clear();
        self.key.extend_from_slice(&position.to_le_bytes());
        write_parameters(report.parameters(), &mut self.key);
        if let Some(place) = self.places.get(&self.key) {
            return Some(*place);
        }
        if self.statuses.len() < MOST_STATUSES {
            self.places.insert(self.key.clone(), self.statuses.len());
            return Some(self.statuses.len());
        }
        self.hidden.0 += 1;
        if level != Level::Ok {
            let is_good =
                |status: &Status| !status.parameters.is_empty() && status.shown().level == Level::Ok;
            if let Some(place) = self.statuses.iter().position(is_good) {
                let status = &mut self.statuses[place];
                let mut old = status.property.to_le_bytes().to_vec();
                write_parameters(&status.parameters, &mut old);
                self.places.remove(&old);
                status.property = position;
                status.parameters = report.parameters().to_vec();
                self.places.insert(self.key.clone(), place);
                return Some(place);
            }
            self.hidden.1 += u64::from(report.verdict() == Verdict::Violated);
        }
        None
    }

    /// Writes an array of these statuses.
    fn write(&self, now: Timestamp, places: &[usize], out: &mut Vec<u8>) {
        let mut message = begin(now, places.len(), out);
        for status in places.iter().filter_map(|place| self.statuses.get(*place)) {
            self.write_status(status, &mut message);
        }
    }

    fn write_all(&self, now: Timestamp, ends: bool, out: &mut Vec<u8>) {
        let shown = || self.properties.iter().zip(&self.plain).zip(&self.shown).filter(|(_, shown)| **shown);
        let waiting = || {
            let shown = shown().map(|(property, _)| property);
            shown.filter(|(property, place)| **place == NONE && property.parameters.is_empty())
        };
        let count = 1 + self.parts.len() + self.statuses.len() + waiting().count();
        let mut message = begin(now, count, out);
        self.write_own(now, ends, shown().count(), &mut message);
        for part in &self.parts {
            write_part(part, ends, &mut message);
        }
        for status in &self.statuses {
            self.write_status(status, &mut message);
        }
        for (property, _) in waiting() {
            message.u8(Level::Stale.number());
            let name = format!("rondel: {}", property.name);
            [&name, "no verdict yet", HARDWARE].iter().for_each(|text| message.string(text));
            message.u32(0);
        }
    }

    /// Writes the status of the monitor itself, which checks `properties`.
    fn write_own(&self, now: Timestamp, ends: bool, properties: usize, message: &mut CdrWriter<'_>) {
        let (hidden, violated) = self.hidden;
        let properties = counted(properties as u64, "property", "properties");
        let is_recent =
            |grew: Timestamp| (0..RECENT).contains(&now.as_nanos().saturating_sub(grew.as_nanos()));
        let (mut level, mut text) = match (ends, hidden, violated) {
            (true, ..) => (Level::Stale, format!("checking of {properties} has ended")),
            (_, 0, _) => (Level::Ok, format!("checking {properties}")),
            (_, _, 0) => {
                (Level::Warn, format!("checking {properties}; only {MOST_STATUSES} instances are shown"))
            }
            _ => (Level::Error, format!("checking {properties}; violated instances are not shown")),
        };
        if !self.omitted.is_empty() {
            text.push_str("; not everything was evaluated");
            if self.grew.is_some_and(is_recent) {
                level = level.max(if ends { Level::Stale } else { Level::Warn });
            }
        }
        message.u8(level.number());
        ["rondel", &text, HARDWARE].iter().for_each(|text| message.string(text));
        let omitted = &self.omitted[..self.omitted.len().min(MOST_OMISSIONS)];
        message.u32(2 + omitted.len() as u32);
        let mut value = |key: &str, value: &str| [key, value].iter().for_each(|text| message.string(text));
        value("statuses", &self.statuses.len().to_string());
        value("verdicts not shown", &hidden.to_string());
        for omission in omitted {
            let topic = omission.topic_name.as_deref().filter(|name| !name.is_empty());
            let topic = topic.map(|name| format!(" ({name})")).unwrap_or_default();
            let key = format!("not evaluated: {}{topic}", omission.reason.as_str());
            value(&key, &omission.sentence(&mut |time| format!("{} s", seconds(time))));
        }
    }

    fn write_status(&self, status: &Status, message: &mut CdrWriter<'_>) {
        let Some(property) = self.properties.get(status.property as usize) else { return };
        let shown = status.shown();
        message.u8(shown.level.number());
        message.string(&format!("rondel: {}{}", property.name, parameters_text(&status.parameters)));
        let deciding = if shown.step.is_some() { "" } else { ", by time alone" };
        message.string(&match (shown.verdict, status.held.is_some()) {
            (Verdict::Violated, false) => format!("violated{deciding}"),
            (Verdict::Violated, true) => "was violated within the last second".to_owned(),
            (Verdict::Inconclusive, false) => "inconclusive".to_owned(),
            (Verdict::Inconclusive, true) => "was inconclusive within the last second".to_owned(),
            (Verdict::Satisfied, _) => "satisfied".to_owned(),
        });
        message.string(HARDWARE);
        let mut values = vec![("verdict", shown.verdict.as_str().to_owned()), ("time", seconds(shown.time))];
        values.extend(shown.about.map(|about| ("about", seconds(about))));
        values.extend(shown.step.map(|step| ("step", step.to_string())));
        values
            .extend(property.parameters.iter().map(String::as_str).zip(status.parameters.iter().map(plain)));
        values.extend(property.severity.clone().map(|severity| ("severity", severity)));
        values.extend(property.requirement.clone().map(|requirement| ("requirement", requirement)));
        message.u32((values.len() + shown.values.len()) as u32);
        let own = shown.values.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        for (key, value) in values.iter().map(|(key, value)| (*key, value.as_str())).chain(own) {
            message.string(key);
            message.string(value);
        }
    }
}

/// Writes the status of a part of the monitor.
fn write_part(part: &Part, ends: bool, message: &mut CdrWriter<'_>) {
    let level = match (part.is_failing || part.has_lost, ends) {
        (true, _) if part.has_lost => Level::Error,
        (true, _) => Level::Warn,
        (false, true) => Level::Stale,
        (false, false) => Level::Ok,
    };
    message.u8(level.number());
    let name = format!("rondel: {}", part.name);
    [name.as_str(), part.message.as_str(), HARDWARE].iter().for_each(|text| message.string(text));
    message.u32(part.values.len() as u32);
    for (key, value) in &part.values {
        [*key, value.as_str()].iter().for_each(|text| message.string(text));
    }
}

/// Begins an array of `count` statuses.
fn begin(now: Timestamp, count: usize, out: &mut Vec<u8>) -> CdrWriter<'_> {
    let mut message = CdrWriter::new(out);
    message.time(now);
    message.string("");
    message.u32(count as u32);
    message
}

/// The values of quantified variables, and those of an explanation: the last ones, with their times.
fn values(report: &Report<'_>) -> Vec<(String, String)> {
    let mut values: Vec<_> = report.values().map(|(name, value)| (name.to_owned(), plain(value))).collect();
    values.extend(report.missing().map(|topic| ("missing".to_owned(), topic.to_owned())));
    let Some(explanation) = report.explanation() else { return values };
    // The most recent matter most.
    for point in explanation.points.iter().rev() {
        let time = seconds(point.time);
        for (name, value) in explanation.names.iter().zip(&point.values) {
            if values.len() >= MOST_EVIDENCE {
                return values;
            }
            let Some(value) = value else { continue };
            let after = if point.after { "after " } else { "" };
            values.push((format!("{name} ({after}{time} s)"), plain(value)));
        }
    }
    values
}

fn seconds(time: Timestamp) -> String {
    let mut text = Vec::new();
    write_seconds(time, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn plus(time: Timestamp, nanos: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rondel_decode::cdr::write_json;
    use rondel_decode::json::JsonForm;
    use rondel_decode::schema::Library;
    use rondel_event::TopicId;
    use serde_json::Value as Json;

    use super::*;
    use crate::report::ros2::DIAGNOSTICS;
    use crate::statistics::omission::{FirstOmission, Reason};

    /// The status of the monitor itself: level, message and values.
    fn own(message: &[u8]) -> (u64, String, Vec<(String, String)>) {
        let schema = Library::ros().unwrap().schema(DIAGNOSTICS).unwrap();
        let mut json = Vec::new();
        write_json(&schema, message, JsonForm::EXACT, 10_000, &mut json).unwrap();
        let json: Json = serde_json::from_slice(&json).unwrap();
        let statuses = json["status"].as_array().unwrap();
        let own = statuses.iter().find(|status| status["name"] == "rondel").unwrap();
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        let values = own["values"].as_array().unwrap();
        let values = values.iter().map(|value| (text(&value["key"]), text(&value["value"]))).collect();
        (own["level"].as_u64().unwrap(), text(&own["message"]), values)
    }

    #[test]
    fn parts_have_a_status_of_their_own() {
        let mut diagnostics = Diagnostics::new(&[], Vec::new());
        let part = Part {
            name: "store verdicts.db".to_owned(),
            message: "connected".to_owned(),
            values: vec![("stored", "12".to_owned())],
            ..Part::default()
        };
        let cases = [
            (false, false, false, 0),
            (true, false, false, 1),
            (true, true, true, 2),
            (false, false, true, 3),
        ];
        for (i, (is_failing, has_lost, ends, expected)) in cases.into_iter().enumerate() {
            diagnostics.set_parts(vec![Part { is_failing, has_lost, ..part.clone() }]);
            let mut message = Vec::new();
            let now = Timestamp::from_nanos((100 + i as i64) * 1_000_000_000);
            assert!(diagnostics.tick(now, ends, Vec::new, &mut message));
            let schema = Library::ros().unwrap().schema(DIAGNOSTICS).unwrap();
            let mut json = Vec::new();
            write_json(&schema, &message, JsonForm::EXACT, 10_000, &mut json).unwrap();
            let json: Json = serde_json::from_slice(&json).unwrap();
            let status = json["status"].as_array().unwrap();
            assert_eq!((status.len(), &status[1]["level"]), (2, &Json::from(expected)));
            assert_eq!(status[1]["name"], "rondel: store verdicts.db");
            assert_eq!(status[1]["values"][0]["value"], "12");
        }
    }

    #[test]
    fn diagnostics_show_every_reason() {
        for reason in Reason::ALL {
            let mut diagnostics = Diagnostics::new(&[], Vec::new());
            let omission = |count| Omission {
                reason,
                topic: Some(TopicId(0)),
                topic_name: Some("v".to_owned()),
                count,
                first: Some(FirstOmission {
                    time: Some(Timestamp::from_nanos(2_500_000_000)),
                    detail: "x".into(),
                }),
            };
            let mut tick = |seconds: i64, ends: bool, omitted: Vec<Omission>| {
                let mut message = Vec::new();
                let now = Timestamp::from_nanos(seconds * 1_000_000_000);
                assert!(diagnostics.tick(now, ends, || omitted, &mut message));
                own(&message)
            };
            assert_eq!(tick(100, false, Vec::new()).0, 0);
            // A warning for ten seconds after the latest.
            let (level, text, values) = tick(101, false, vec![omission(3)]);
            assert_eq!(
                (level, &*text),
                (1, "checking 0 properties; not everything was evaluated"),
                "{reason:?}"
            );
            let key = format!("not evaluated: {} (v)", reason.as_str());
            let sentence = omission(3).sentence(&mut |_| "2.5 s".to_owned());
            assert_eq!(values.last(), Some(&(key, sentence)), "{reason:?}");
            assert_eq!(tick(110, false, vec![omission(3)]).0, 1);
            let (level, text, values) = tick(111, false, vec![omission(3)]);
            assert_eq!((level, &*text), (0, "checking 0 properties; not everything was evaluated"));
            assert_eq!(values.len(), 3);
            assert_eq!(tick(112, false, vec![omission(4)]).0, 1);
            let (level, text, _) = tick(113, true, vec![omission(4)]);
            assert_eq!(level, 3);
            assert_eq!(text, "checking of 0 properties has ended; not everything was evaluated");
        }
    }
}
