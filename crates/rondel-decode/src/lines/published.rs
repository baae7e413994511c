//! Undecoded messages in the lines of a trace, to publish them again.

use std::borrow::Cow;

use rondel_event::{TimeUnit, Timestamp};

use super::LineErrorKind;
use super::form::{Form, Member, Members};
use crate::json::{JsonError, Kind, Scanner, time_at, unescape};

/// Contents of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishedLine<'l> {
    /// An empty line.
    Empty,
    /// An [event](rondel_event::TopicEvent) of a topic, which is no message.
    Event,
    /// A line meant as an event that is none, for this reason.
    WrongEvent(String),
    /// A published message.
    Message(Published<'l>),
}

/// A message in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published<'l> {
    /// The topic, if the line names one.
    pub topic: Option<String>,
    /// Time of arrival, or the recorded time if the line has none; `None` without either.
    pub time: Option<Timestamp>,
    /// The original payload. `None` if the line has it only with escapes, which may represent other bytes.
    pub payload: Option<Cow<'l, [u8]>>,
}

/// Parses a line, given with or without its line break, in the forms of the [module](super). Times that are plain
/// numbers count in `unit`. `keep_time` keeps the `time` of a flat line in the payload, where the receiver may read it.
///
/// # Errors
/// The offset in the line, from 0, and the error there.
pub fn published(
    line: &[u8],
    unit: TimeUnit,
    keep_time: bool,
) -> Result<PublishedLine<'_>, (usize, LineErrorKind)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let json = |e: JsonError| (e.offset, LineErrorKind::Json(e.kind));
    let mut scanner = Scanner::new(line);
    scanner.skip_space();
    let start = scanner.at;
    let payload = |bytes: &'_ [u8]| Some(Cow::Owned(bytes.to_owned()));
    match scanner.peek() {
        None => return Ok(PublishedLine::Empty),
        Some(b'[') => {
            scanner.skip(0).and_then(|()| scanner.end()).map_err(json)?;
            let payload = payload(line[start..].trim_ascii_end());
            return Ok(PublishedLine::Message(Published { topic: None, time: None, payload }));
        }
        Some(_) => {}
    }
    let members = Members::find(&mut scanner).and_then(|members| scanner.end().map(|()| members));
    let members = members.map_err(json)?;
    let text = |member: &Member| unescape(&line[member.start + 1..member.end - 1]).unwrap_or_default();
    let topic = members.topic.as_ref().map(text);
    let is_event = |event: &Member| event.kind == Kind::String && members.named_event(&text(event)).is_some();
    // Without a time of arrival, it may be the message of a topic with a field of this name.
    if members.arrival.is_some() && members.names_event() {
        if members.may_be_event() && members.event.as_ref().is_some_and(is_event) {
            return Ok(PublishedLine::Event);
        }
        if let Some(reason) = members.event_fault(line) {
            return Ok(PublishedLine::WrongEvent(reason));
        }
    }
    let form = members.form();
    let time = |member: Option<Member>| -> Result<Option<Timestamp>, (usize, LineErrorKind)> {
        let Some(Member { kind, start, end }) = member.filter(|member| member.kind != Kind::Null) else {
            return Ok(None);
        };
        time_at(kind, &line[start..end], start, unit).map(Some).map_err(json)
    };
    let recorded = match form {
        Form::Broker(_) => time(members.tst)?,
        Form::Flat => time(members.time)?,
        Form::Data(_) | Form::Message(_) | Form::Escaped(_) => match time(members.arrival)? {
            None => time(members.time)?,
            arrival => arrival,
        },
    };
    let bytes = |member: Member| Some(Cow::Borrowed(&line[member.start..member.end]));
    let payload = match form {
        Form::Data(_) => members.data.and_then(bytes),
        Form::Message(message) => bytes(message),
        Form::Broker(payload) => match payload.kind {
            Kind::String => Some(Cow::Owned(text(&payload).into_bytes())),
            // An empty message, which `mosquitto_sub` writes as null.
            Kind::Null => Some(Cow::Borrowed(&[][..])),
            _ => bytes(payload),
        },
        Form::Escaped(payload) => {
            let text = text(&payload);
            (!text.contains('\\')).then(|| Cow::Owned(text.into_bytes()))
        }
        Form::Flat => Some(Cow::Owned(without_frame(line, start, keep_time).map_err(json)?)),
    };
    Ok(PublishedLine::Message(Published { topic, time: recorded, payload }))
}

/// Returns the object of a flat line without the members for the topic and, unless it is kept, the time.
fn without_frame(line: &[u8], start: usize, keep_time: bool) -> Result<Vec<u8>, JsonError> {
    let mut object = b"{".to_vec();
    let mut scanner = Scanner::new(line);
    scanner.at = start;
    scanner.members(0, |scanner, key| {
        let value = scanner.at;
        scanner.skip(1)?;
        if !key.is("topic") && (keep_time || !key.is("time")) {
            if object.len() > 1 {
                object.push(b',');
            }
            object.push(b'"');
            object.extend_from_slice(key.raw());
            object.extend_from_slice(b"\":");
            object.extend_from_slice(&line[value..scanner.at]);
        }
        Ok(())
    })?;
    object.push(b'}');
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_time_of_a_flat_line_may_be_one_of_its_payload() {
        let payload = |line: &'static str| match published(line.as_bytes(), TimeUnit::Seconds, true) {
            Ok(PublishedLine::Message(message)) => {
                (message.time, String::from_utf8(message.payload.unwrap().into_owned()).unwrap())
            }
            other => panic!("{other:?}"),
        };
        let second = Some(Timestamp::from_nanos(1_000_000_000));
        let flat = r#"{"time": 1, "topic": "a", "x": 2}"#;
        assert_eq!(payload(flat), (second, r#"{"time":1,"x":2}"#.to_owned()));
        let framed = r#"{"time": 1, "topic": "a", "data": {"x": 2}}"#;
        assert_eq!(payload(framed), (second, r#"{"x": 2}"#.to_owned()));
    }

    fn message(line: &str) -> (Option<String>, Option<f64>, Option<String>) {
        match published(line.as_bytes(), TimeUnit::Seconds, false) {
            Ok(PublishedLine::Message(Published { topic, time, payload })) => {
                let payload = payload.map(|bytes| String::from_utf8(bytes.into_owned()).unwrap());
                (topic, time.map(|time| time.as_nanos() as f64 / 1e9), payload)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn every_form_of_a_line_is_parsed() {
        for (line, topic, time, payload) in [
            (r#"{"topic":"a","time":1,"data":{"v": 2}}"#, "a", 1.0, r#"{"v": 2}"#),
            (
                r#" {"time":1, "v" : 2.50,"topic":"a\/b", "w":[1, 2]} "#,
                "a/b",
                1.0,
                r#"{"v":2.50,"w":[1, 2]}"#,
            ),
            (r#"{"topic":"a","time":1,"data":2}"#, "a", 1.0, r#"{"data":2}"#),
            (r#"{"topic":"a","time":null,"arrival":3,"data":[2]}"#, "a", 3.0, "[2]"),
            (
                r#"{"topic":"a","time":1,"arrival":3,"origin":{"publisher":1,"number":2},"data":{}}"#,
                "a",
                3.0,
                "{}",
            ),
            (r#"{"topic":"a","time":1,"arrival":3,"payload":"plain text"}"#, "a", 3.0, "plain text"),
            (r#"{"topic":"a","time":1,"arrival":3,"message":{"v":1}}"#, "a", 3.0, r#"{"v":1}"#),
            (r#"{"tst":"1970-01-01T00:00:05Z","topic":"a","payload":"{\"v\": 2}"}"#, "a", 5.0, r#"{"v": 2}"#),
            (r#"{"tst":"1970-01-01T00:00:05Z","topic":"a","payload":{"v": 2}}"#, "a", 5.0, r#"{"v": 2}"#),
            (r#"{"tst":"1970-01-01T00:00:05Z","topic":"a","payload":null}"#, "a", 5.0, ""),
            (
                r#"{"topic":"a","time":1,"event":"missed_deadline"}"#,
                "a",
                1.0,
                r#"{"event":"missed_deadline"}"#,
            ),
        ] {
            let expected = (Some(topic.to_owned()), Some(time), Some(payload.to_owned()));
            assert_eq!(message(line), expected, "{line}");
            assert_eq!(message(&format!("{line}\n")), expected, "{line}");
        }
        assert_eq!(message("[1, 2] "), (None, None, Some("[1, 2]".to_owned())));
        assert_eq!(message(r#"{"v":2}"#), (None, None, Some(r#"{"v":2}"#.to_owned())));
        let escaped = r#"{"topic":"a","time":1,"arrival":3,"payload":"\\x00"}"#;
        assert_eq!(message(escaped), (Some("a".to_owned()), Some(3.0), None));
        for (line, expected) in [
            ("  ", PublishedLine::Empty),
            (r#"{"topic":"a","time":1,"arrival":1,"event":"missed_deadline"}"#, PublishedLine::Event),
            (r#"{"topic":"a","time":1,"arrival":1,"event":"owner","publisher":"b"}"#, PublishedLine::Event),
        ] {
            assert_eq!(published(line.as_bytes(), TimeUnit::Seconds, false), Ok(expected));
        }
    }

    #[test]
    fn wrong_events_are_no_messages() {
        for (members, reason) in [
            (r#""event":"missed_dedline""#, "'missed_dedline' is no event of a topic"),
            (r#""event":3"#, "`event` is no text"),
            (r#""event":null"#, "`event` is no text"),
            (
                r#""event":"owner""#,
                "the event 'owner' needs a text `publisher`, which is empty if there is none",
            ),
            (
                r#""event":"owner","publisher":7"#,
                "the event 'owner' needs a text `publisher`, which is empty if there is none",
            ),
            (r#""event":"alive","publisher":"b""#, "the event 'alive' has no `publisher`"),
            (r#""event":"disposd","key":{"id":7}"#, "'disposd' is no event of a topic"),
        ] {
            let line = format!(r#"{{"topic":"a","time":1,"arrival":1,{members}}}"#);
            let found = published(line.as_bytes(), TimeUnit::Seconds, false);
            assert_eq!(found, Ok(PublishedLine::WrongEvent(reason.to_owned())), "{line}");
        }
        // With other members it is a message, and so it may be without a time of arrival.
        for line in [
            r#"{"topic":"a","time":1,"arrival":1,"event":"pressed","v":2}"#,
            r#"{"topic":"a","time":1,"arrival":1,"data":{"event":"pressed"}}"#,
            r#"{"topic":"a","time":1,"event":"pressed"}"#,
        ] {
            assert!(message(line).2.is_some_and(|payload| payload.contains("pressed")), "{line}");
        }
        // A flat line without members is an empty message, as where it is checked.
        assert_eq!(message(r#"{"topic":"a"}"#), (Some("a".to_owned()), None, Some("{}".to_owned())));
    }

    #[test]
    fn mistakes_have_their_place() {
        for (line, at) in
            [("x", 0), (r#"{"topic":3}"#, 9), (r#"{"time":"soon","v":1}"#, 8), (r#"{"v":1} x"#, 8), ("[1", 2)]
        {
            assert_eq!(published(line.as_bytes(), TimeUnit::Seconds, false).unwrap_err().0, at, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in r#"[\[\]{}",:\\ a-z0-9]{0,60}"#, topic in ".{0,9}", payload in ".{0,9}") {
            _ = published(line.as_bytes(), TimeUnit::Seconds, false);
            let line = serde_json::json!({"tst": 1, "topic": topic, "payload": payload}).to_string();
            let expected = (Some(topic), Some(1.0), Some(payload));
            prop_assert_eq!(message(&line), expected);
        }
    }
}
