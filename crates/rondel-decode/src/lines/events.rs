//! Lines that are events of topics: `{"topic": "gear", "time": 12.5, "event": "missed_deadline"}`. Those of an instance
//! may have its key: `{"topic": "track", "time": 13, "event": "disposed", "key": {"id": 7}}`. That of an owner has a
//! publisher: `{"topic": "gear", "time": 14, "event": "owner", "publisher": "front"}`.

use rondel_event::{Block, Rows, TopicEvent};

use super::form::{Member, Members};
use super::roots::Roots;
use super::{LineErrorKind, Lines};
use crate::json::{JsonError, Kind, Scanner, Writer, walk};

impl Members {
    /// Whether the line has the members of an event. As the value of one of them decides, such lines must not have a
    /// shape.
    pub(super) fn may_be_event(&self) -> bool {
        self.names_event() && !self.has_others
    }

    /// Whether the line has a member `event` outside of a payload.
    pub(super) fn names_event(&self) -> bool {
        self.event.is_some() && self.data.or(self.message).or(self.payload).is_none()
    }

    /// Whether the value of the member `event` decides what a line of this topic is.
    pub(super) fn depends_on_event(&self, roots: &Roots) -> bool {
        self.may_be_event() || roots.expects_events && self.names_event()
    }

    /// Returns why a line that is no [event](Members::event), but meant as one, cannot be used; `None` for a message.
    pub(super) fn wrong_event(&self, line: &[u8], roots: &Roots) -> Option<String> {
        if roots.expects_events && self.names_event() { self.event_fault(line) } else { None }
    }

    /// Returns why the member `event` of a line makes no [event](Members::event) although it is meant to; `None` if the
    /// line may be a message.
    pub(super) fn event_fault(&self, line: &[u8]) -> Option<String> {
        let member = self.event?;
        let text = (member.kind == Kind::String)
            .then(|| String::from_utf8_lossy(&line[member.start + 1..member.end - 1]));
        let Some(name) = text else {
            return (!self.has_others).then(|| "`event` is no text".to_owned());
        };
        match TopicEvent::read(&name) {
            Some((event, _)) if event.has_publisher() && self.publisher.is_none() => {
                Some(format!("the event '{name}' needs a text `publisher`, which is empty if there is none"))
            }
            Some((event, _)) if !event.has_publisher() && self.publisher.is_some() && !self.has_others => {
                Some(format!("the event '{name}' has no `publisher`"))
            }
            None if !self.has_others => Some(format!("'{name}' is no event of a topic")),
            _ => None,
        }
    }

    /// Returns the event with a name, and its value, if the line has the members of it.
    pub(super) fn named_event(&self, name: &str) -> Option<(TopicEvent, bool)> {
        TopicEvent::read(name).filter(|(event, _)| event.has_publisher() == self.publisher.is_some())
    }

    /// Returns the event of a line, and its value; `None` if the line is a message.
    pub(super) fn event(&self, line: &[u8], roots: &Roots) -> Option<(TopicEvent, bool)> {
        let event = self.event.filter(|event| event.kind == Kind::String && self.may_be_event())?;
        if roots.reads_event && self.arrival.is_none() {
            return None;
        }
        self.named_event(std::str::from_utf8(&line[event.start + 1..event.end - 1]).ok()?)
    }
}

impl Lines {
    /// Whether a line is an event of any topic.
    pub fn is_event(&self, line: &[u8]) -> bool {
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        let members = Members::find(&mut scanner);
        let roots = self.topics.first();
        members.ok().zip(roots).is_some_and(|(members, roots)| members.event(line, roots).is_some())
    }

    /// Decodes a line that is an event of a topic, by the position of the topic. If no event of it is read, the line is
    /// counted like one on a topic that is not read.
    pub(super) fn event(
        &mut self,
        line: &[u8],
        members: &Members,
        topic: usize,
        event: TopicEvent,
        holds: bool,
        block: &mut Block,
    ) -> Result<(), (usize, LineErrorKind)> {
        let Some(id) = self.topics[topic].events else {
            let name = self.topics[topic].names.first().map(String::as_str).unwrap_or_default();
            let other = self.other(format!("events of {name}"));
            self.shapes.count_other(Some(other), 1);
            return Ok(());
        };
        let roots = &self.topics[id.index()];
        // The same line with the event as its message.
        let mut framed = b"{".to_vec();
        for (name, member) in [("time", members.time), ("arrival", members.arrival)] {
            if let Some(Member { start, end, .. }) = member {
                framed.extend_from_slice(format!("\"{name}\":").as_bytes());
                framed.extend_from_slice(&line[start..end]);
                framed.push(b',');
            }
        }
        // The other events concern the whole topic, whichever key is given.
        let written = |member: Member| std::str::from_utf8(&line[member.start..member.end]).ok();
        let key = members.key.filter(|_| event.has_key()).and_then(written);
        let publisher = members.publisher.and_then(written);
        let message = match (publisher, key) {
            (Some(publisher), key) => TopicEvent::owner_message(publisher, key),
            (None, Some(key)) => event.message_of(key),
            (None, None) => event.message(holds),
        };
        framed.extend_from_slice(format!("\"data\":{message}}}").as_bytes());
        let row = block.push(id, self.time);
        let time_unit = roots.time_unit;
        let mut writer = Writer::new(block, row, time_unit);
        let walked = walk(&mut Scanner::new(&framed), Some(&roots.data), 0, &mut writer);
        let time = writer.time;
        if let Err(JsonError { kind, .. }) = walked {
            block.pop();
            let at = members.time.or(members.arrival).map_or(0, |member| member.start);
            return Err((at, LineErrorKind::Json(kind)));
        }
        block.set_time(row, time.unwrap_or(self.time));
        self.untimed |= Rows::from(time.is_none()) << row;
        Ok(())
    }
}
