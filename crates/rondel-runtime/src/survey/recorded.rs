//! Surveys of recordings.

use std::sync::Arc;

use rondel_decode::lines::{Lines, TraceTopic};
use rondel_event::{Block, Layout, Projection, TimeUnit, Timestamp};
use serde_json::{Map, Value};

use super::{Survey, guess};

/// First and last time to be surveyed in a recording that begins at a time.
pub type Choice<'c> = dyn Fn(Timestamp) -> Result<(Timestamp, Timestamp), String> + 'c;

/// A survey of the lines of a recording, in every form that `rondel check` reads.
pub struct RecordedSurvey<'c> {
    survey: Survey,
    lines: Lines,
    /// Number of the present line, from 1.
    number: u64,
    unreadable: Unreadable,
    choice: &'c Choice<'c>,
    /// Chosen times, once the recording has begun.
    chosen: Option<(Timestamp, Timestamp)>,
}

/// Lines of a recording that could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// Number of lines.
    pub count: u64,
    /// Number of the first line, from 1; 0 without any.
    pub first: u64,
}

/// Chooses all messages.
fn all(_: Timestamp) -> Result<(Timestamp, Timestamp), String> {
    Ok((Timestamp::from_nanos(i64::MIN), Timestamp::from_nanos(i64::MAX)))
}

impl RecordedSurvey<'_> {
    /// Creates a survey of at most `limit` topics.
    pub fn new(limit: usize) -> RecordedSurvey<'static> {
        RecordedSurvey::after(Survey::new(limit), &all)
    }

    /// Continues a survey with the chosen lines of a further recording.
    pub fn after<'c>(survey: Survey, choice: &'c Choice<'c>) -> RecordedSurvey<'c> {
        let mut all = TraceTopic::new(Vec::new(), Projection::default());
        // A payload may be any text: only the time of the line is read.
        all.plain = Some(Arc::default());
        // Times are read as a check reads them.
        let lines = Lines::new(&[all], true, TimeUnit::Seconds).skip_errors(true);
        RecordedSurvey { survey, lines, number: 0, unreadable: Unreadable::default(), choice, chosen: None }
    }

    /// Adds a line, with its line break.
    ///
    /// # Errors
    /// The error of the choice of times.
    pub fn line(&mut self, line: &[u8]) -> Result<(), String> {
        self.number += 1;
        let text = line.trim_ascii();
        if text.is_empty() || self.lines.is_event(line) {
            return Ok(());
        }
        let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
        let read = self.lines.decode(line, 0, line.len(), &mut block);
        let (Ok(_), 1, Ok(value)) = (read, block.len(), guess::json(text)) else {
            let Unreadable { count, first } = &mut self.unreadable;
            *first = if *count == 0 { self.number } else { *first };
            *count += 1;
            return Ok(());
        };
        let time = block.time(0);
        let (from, until) = match self.chosen {
            Some(chosen) => chosen,
            None => {
                self.survey.begin_at(time);
                *self.chosen.insert((self.choice)(time)?)
            }
        };
        if time >= from && time <= until {
            let is_of_broker = value.get("tst").is_some();
            let (topic, payload) = parts(value);
            // The output of `mosquitto_sub` is always of MQTT.
            let address = if is_of_broker { format!("mqtt:{topic}") } else { topic.clone() };
            let (kind, payload) = guess::of_value(payload);
            self.survey.value(&address, time, text.len(), kind, &payload);
            if let Some(seen) = self.survey.topic(&address).filter(|_| is_of_broker) {
                seen.name = Some(topic);
            }
        }
        Ok(())
    }

    /// Ends the survey. Returns it with the lines that could not be read.
    pub fn end(mut self) -> (Survey, Unreadable) {
        self.survey.end();
        (self.survey, self.unreadable)
    }
}

/// The name of a topic where lines do not name one.
const UNNAMED: &str = "trace";

/// Returns the topic and the payload of a line.
fn parts(line: Value) -> (String, Value) {
    let Value::Object(mut members) = line else { return (UNNAMED.to_owned(), line) };
    let topic = match members.remove("topic") {
        Some(Value::String(topic)) => topic,
        _ => UNNAMED.to_owned(),
    };
    let in_text = |payload: Value| match &payload {
        Value::String(text) => guess::json(text.as_bytes()).unwrap_or(payload),
        _ => payload,
    };
    let payload = match take(&mut members, &["data", "payload"]) {
        Some(("data", data @ Value::Object(_))) => data,
        Some((_, data)) if members.contains_key("arrival") || members.contains_key("tst") => in_text(data),
        other => {
            members.extend(other.map(|(name, value)| (name.to_owned(), value)));
            members.remove("time");
            Value::Object(members)
        }
    };
    (topic, payload)
}

/// Removes the first of these members.
fn take<'n>(members: &mut Map<String, Value>, names: &[&'n str]) -> Option<(&'n str, Value)> {
    names.iter().find_map(|name| Some((*name, members.remove(*name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_of_a_line_is_read() {
        for (line, topic, payload) in [
            (json!({"topic": "a", "time": 1, "v": 2}), "a", json!({"v": 2})),
            (json!({"topic": "a", "time": 1, "data": {"v": 2}}), "a", json!({"v": 2})),
            (json!({"topic": "a", "time": 1, "data": 2}), "a", json!({"data": 2})),
            (json!({"topic": "a", "time": null, "arrival": 3, "data": [2]}), "a", json!([2])),
            (json!({"topic": "a", "time": 1, "arrival": 3, "payload": "\\x00"}), "a", json!("\\x00")),
            (
                json!({"tst": "2026-01-01T00:00:00Z", "topic": "a", "payload": "{\"v\": 2}"}),
                "a",
                json!({"v": 2}),
            ),
            (json!([1, 2]), "trace", json!([1, 2])),
            (json!({"v": 2}), "trace", json!({"v": 2})),
        ] {
            assert_eq!(parts(line), (topic.to_owned(), payload));
        }
    }

    #[test]
    fn times_are_those_of_a_check() {
        let mut survey = RecordedSurvey::new(10);
        for line in [
            "{\"topic\":\"a\",\"time\":\"500 ms\"}\n",
            "{\"topic\":\"a\",\"time\":{\"sec\":2,\"nanosec\":0}}\n",
            "x\n",
            "\n",
            "[1,\n",
        ] {
            survey.line(line.as_bytes()).unwrap();
        }
        let (survey, unreadable) = survey.end();
        assert_eq!((survey.span(), unreadable), (1_500_000_000, Unreadable { count: 2, first: 3 }));
        assert_eq!(survey.topics().next().map(|(name, topic)| (name, topic.messages)), Some(("a", 2)));
    }
}
