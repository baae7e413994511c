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
    nameless: Nameless,
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

impl Unreadable {
    /// Adds lines, of which this is the first one.
    fn add(&mut self, count: u64, first: u64) {
        if count > 0 {
            self.first = if self.count == 0 { first } else { self.first.min(first) };
            self.count += count;
        }
    }
}

/// Lines without a topic. A check reads them as messages of the only topic, and cannot read them where there are several.
#[derive(Debug, Default)]
struct Nameless {
    lines: Unreadable,
    /// Address of the first topic that a line names.
    only: Option<String>,
    /// Whether lines name further topics.
    are_several: bool,
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
        let (unreadable, nameless) = Default::default();
        RecordedSurvey { survey, lines, number: 0, unreadable, nameless, choice, chosen: None }
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
            self.unreadable.add(1, self.number);
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
            let named = topic.as_ref().map(|topic| match is_of_broker {
                true => format!("mqtt:{topic}"),
                false => topic.clone(),
            });
            let Some(address) = self.address(named) else { return Ok(()) };
            let (kind, payload) = guess::of_value(payload);
            self.survey.value(&address, time, text.len(), kind, &payload);
            if let Some(topic) = topic.filter(|_| is_of_broker)
                && let Some(seen) = self.survey.topic(&address)
            {
                seen.name = Some(topic);
            }
        }
        Ok(())
    }

    /// The address of the topic of the present line, which names this one; `None` if it is unreadable.
    fn address(&mut self, named: Option<String>) -> Option<String> {
        let Nameless { lines, only, are_several } = &mut self.nameless;
        let Some(address) = named else {
            if *are_several {
                self.unreadable.add(1, self.number);
                return None;
            }
            lines.add(1, self.number);
            return Some(only.clone().unwrap_or_else(|| UNNAMED.to_owned()));
        };
        match only {
            None => {
                if lines.count > 0 {
                    self.survey.rename(UNNAMED, &address);
                }
                *only = Some(address.clone());
            }
            Some(only) if *only != address && !*are_several => {
                *are_several = true;
                self.unreadable.add(lines.count, lines.first);
            }
            Some(_) => {}
        }
        Some(address)
    }

    /// Ends the survey. Returns it with the lines that could not be read.
    pub fn end(mut self) -> (Survey, Unreadable) {
        self.survey.end();
        (self.survey, self.unreadable)
    }
}

/// The name of a topic where lines do not name one.
const UNNAMED: &str = "trace";

/// Returns the topic, if there is one, and the payload of a line.
fn parts(line: Value) -> (Option<String>, Value) {
    let Value::Object(mut members) = line else { return (None, line) };
    let topic = match members.remove("topic") {
        Some(Value::String(topic)) => Some(topic),
        _ => None,
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
            (json!([1, 2]), "", json!([1, 2])),
            (json!({"v": 2}), "", json!({"v": 2})),
        ] {
            let topic = (!topic.is_empty()).then(|| topic.to_owned());
            assert_eq!(parts(line), (topic, payload));
        }
    }

    #[test]
    fn lines_without_a_topic_are_those_of_a_check() {
        let seen = |lines: &[&str]| {
            let mut survey = RecordedSurvey::new(10);
            lines.iter().for_each(|line| survey.line(format!("{line}\n").as_bytes()).unwrap());
            let (survey, Unreadable { count, first }) = survey.end();
            let topics = survey.topics().map(|(name, topic)| (name.to_owned(), topic.messages));
            (topics.collect::<Vec<_>>(), (count, first))
        };
        let topics = |topics: &[(&str, u64)]| {
            topics.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
        };
        let (a, b) = ("{\"topic\": \"a\", \"v\": 1}", "{\"topic\": \"b\", \"v\": 1}");
        assert_eq!(seen(&["{}", "{\"v\": 1}"]), (topics(&[("trace", 2)]), (0, 0)));
        // The only topic has them, whichever comes first.
        assert_eq!(seen(&["{}", a]), (topics(&[("a", 2)]), (0, 0)));
        assert_eq!(seen(&[a, "{}", a]), (topics(&[("a", 3)]), (0, 0)));
        // Those before the second topic were counted as messages of the first one.
        assert_eq!(seen(&["x", a, "{}", b, "{}"]), (topics(&[("a", 2), ("b", 1)]), (3, 1)));
        assert_eq!(seen(&[a, b, a, "{}", "x"]), (topics(&[("a", 2), ("b", 1)]), (2, 4)));
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
