//! Form of a line, determined by its members.

use super::roots::Roots;
use crate::json::{JsonError, JsonErrorKind, Kind, Node, Scanner};

/// Value of a member: its kind and its bounds in the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Members of a line that determine its form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Members {
    pub(super) topic: Option<Member>,
    pub(super) data: Option<Member>,
    pub(super) message: Option<Member>,
    pub(super) payload: Option<Member>,
    pub(super) arrival: Option<Member>,
    pub(super) time: Option<Member>,
    pub(super) event: Option<Member>,
    /// Key of the instance of an event: an object.
    pub(super) key: Option<Member>,
    /// Publisher of an event: a string.
    pub(super) publisher: Option<Member>,
    pub(super) tst: Option<Member>,
    /// Whether there are members that `rondel tap` does not write.
    pub(super) has_others: bool,
}

/// Form of a line, with its payload if a failure to decode it is no error of the line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Flat,
    Data(Option<Member>),
    Message(Member),
    /// From `mosquitto_sub`: the payload is JSON, or a string with JSON.
    Broker(Member),
    /// From `rondel tap`: the payload could not be decoded, and is an escaped string.
    Escaped(Member),
}

impl Form {
    /// Returns the plan for a line of this form.
    pub(super) fn plan(self, roots: &Roots) -> &Node {
        match self {
            Form::Flat => &roots.flat,
            Form::Data(_) | Form::Escaped(_) => &roots.data,
            Form::Message(_) => &roots.message,
            Form::Broker(payload) if payload.kind == Kind::String && !roots.is_plain => &roots.broker_frame,
            Form::Broker(_) => &roots.broker,
        }
    }

    /// Returns the payload, if a failure to decode it is no error of the line.
    pub(super) fn payload(self) -> Option<Member> {
        match self {
            Form::Flat => None,
            Form::Data(payload) => payload,
            Form::Message(payload) | Form::Broker(payload) | Form::Escaped(payload) => Some(payload),
        }
    }

    /// Whether it is a message without a payload, by which a broker removes a retained message; `mosquitto_sub` writes
    /// null or an empty string.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Form::Broker(payload) if payload.kind == Kind::String => payload.end - payload.start == 2,
            Form::Broker(payload) => payload.kind == Kind::Null,
            _ => false,
        }
    }
}

impl Members {
    pub(super) fn find(scanner: &mut Scanner<'_>) -> Result<Members, JsonError> {
        let mut members = Members::default();
        scanner.members(0, |scanner, key| {
            let (start, kind) = (scanner.at, scanner.kind()?);
            scanner.skip(1)?;
            let member = Some(Member { kind, start, end: scanner.at });
            if key.is("topic") {
                if kind != Kind::String {
                    let kind = JsonErrorKind::Expected("a string as the topic");
                    return Err(JsonError { offset: start, kind });
                }
                members.topic = member;
            } else if key.is("data") {
                members.data = member;
            } else if key.is("message") {
                members.message = member;
            } else if key.is("payload") {
                members.payload = member;
            } else if key.is("arrival") {
                members.arrival = member;
            } else if key.is("time") {
                members.time = member;
            } else if key.is("event") {
                members.event = member;
            } else if key.is("key") && kind == Kind::Object {
                members.key = member;
            } else if key.is("publisher") && kind == Kind::String {
                members.publisher = member;
            } else if key.is("tst") {
                members.tst = member;
                members.has_others = true;
            } else {
                members.has_others |= !key.is("origin");
            }
            Ok(())
        })?;
        Ok(members)
    }

    /// Determined only by keys and kinds of values, so that lines of one shape have one form.
    pub(super) fn form(&self) -> Form {
        let is_tap = !self.has_others
            && self.event.is_none()
            && self.key.is_none()
            && self.publisher.is_none()
            && self.arrival.is_some_and(|arrival| arrival.kind == Kind::Number);
        match (self.data, self.message, self.payload) {
            (Some(data), ..) if data.kind == Kind::Object => Form::Data(self.arrival.map(|_| data)),
            (.., Some(payload)) if self.tst.is_some() => Form::Broker(payload),
            (_, Some(message), _) if self.arrival.is_some() => Form::Message(message),
            (Some(data), ..) if is_tap => Form::Data(Some(data)),
            (.., Some(payload)) if is_tap && payload.kind == Kind::String => Form::Escaped(payload),
            _ => Form::Flat,
        }
    }
}
