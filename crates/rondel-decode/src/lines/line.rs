//! Decoding of a single line, which has no known shape.

use std::sync::Arc;

use rondel_event::{Block, Origin, Rows, TopicId};

use super::form::{Form, Members};
use super::roots::Roots;
use super::{LineErrorKind, Lines, Mistyped, Unseen, UnseenCause, names};
use crate::json::{JsonError, JsonErrorKind, Kind, Named, Node, Scanner, Writer, unescape, walk};
use crate::plain::is_plain;

/// Error of an array as a line if the specification has several topics.
const NAMED_OBJECT: &str = "an object, found an array; with several topics a line is an object with a member such as \"topic\": \"NAME\"";

/// Error of a payload that is a text without an object.
const NO_OBJECT: &str = "the payload is no JSON object";

/// Topic of a line.
enum LineTopic {
    /// One that is read, by its position; with its name, if its address has parameters.
    Read(usize, Option<String>),
    /// One that is not read, by its number.
    Other(u32),
}

impl Lines {
    /// Decodes a line, given with its line break.
    pub(super) fn line(
        &mut self,
        with_break: &[u8],
        block: &mut Block,
    ) -> Result<(), (usize, LineErrorKind)> {
        let line = &with_break[..with_break.len() - 1];
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        if scanner.peek().is_none() {
            return Ok(());
        }
        // A row that is an array has no names, and is all payload.
        let is_array = scanner.peek() == Some(b'[');
        let members =
            if is_array { scanner.skip(0).map(|()| Members::default()) } else { Members::find(&mut scanner) };
        let members = members.and_then(|members| scanner.end().map(|()| members)).map_err(in_line)?;

        let (topic, name) = match self.topic_of(line, &members, is_array)? {
            LineTopic::Read(topic, name) => (topic, name),
            LineTopic::Other(other) => {
                self.shapes.record(with_break, &self.unread, Err(other), None, self.time_unit);
                self.shapes.count_other(Some(other), 1);
                return Ok(());
            }
        };
        if let Some((event, holds)) = members.event(line, &self.topics[topic]) {
            return self.event(line, &members, topic, event, holds, block);
        }
        if let Some(reason) = members.wrong_event(line, &self.topics[topic]) {
            // An event is missing, not a message.
            let missing = self.topics[topic].events.unwrap_or(TopicId(topic as u32));
            self.count_undecodable(missing, block.len(), None, reason);
            return Ok(());
        }
        let form = members.form();
        if form.is_empty() {
            self.empty += 1;
            return Ok(());
        }
        // Without a frame, the whole line is the payload.
        let framed = form.payload().or(members.data.filter(|_| matches!(form, Form::Data(_))));
        let size = framed.map_or(line.len(), |payload| payload.end - payload.start);
        if size > self.largest {
            let (cause, line, row) = (UnseenCause::TooLarge(size), self.lines, block.len());
            self.unseen.push(Unseen { cause, line, row, topic: Some(TopicId(topic as u32)), origin: None });
            return Ok(());
        }
        self.message(with_break, &members, topic, name, block)
    }

    /// Returns the topic of a line.
    fn topic_of(
        &mut self,
        line: &[u8],
        members: &Members,
        is_array: bool,
    ) -> Result<LineTopic, (usize, LineErrorKind)> {
        let topic = members.topic.map(|topic| &line[topic.start + 1..topic.end - 1]);
        match topic {
            _ if self.any_topic => Ok(LineTopic::Read(0, None)),
            None if self.named == 1 => Ok(LineTopic::Read(0, None)),
            None if is_array => Err((0, LineErrorKind::Json(JsonErrorKind::Expected(NAMED_OBJECT)))),
            None => Err((0, LineErrorKind::NoTopic)),
            Some(raw) => {
                let name = unescape(raw).unwrap_or_default();
                match names::find_topic(self.topics[..self.named].iter().map(|topic| &*topic.names), &name) {
                    Some(index) => {
                        let name = self.topics[index].parameters.is_some().then_some(name);
                        Ok(LineTopic::Read(index, name))
                    }
                    None => Ok(LineTopic::Other(self.other(name))),
                }
            }
        }
    }

    /// Decodes the message in a line into a new row, and records the shape of the line.
    fn message(
        &mut self,
        with_break: &[u8],
        members: &Members,
        topic: usize,
        name: Option<String>,
        block: &mut Block,
    ) -> Result<(), (usize, LineErrorKind)> {
        let line = &with_break[..with_break.len() - 1];
        let (roots, id) = (&self.topics[topic], TopicId(topic as u32));
        let (form, time_unit) = (members.form(), roots.time_unit);
        let root = form.plan(roots);
        let row = block.push(id, self.time);
        let mut writer = Writer::new(block, row, time_unit);
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        let walked = walk(&mut scanner, Some(root), 0, &mut writer);
        // The text in a string is decoded separately. It differs in more than its values, so there is no shape to
        // record.
        let text = text_payload(line, form, roots);
        let undecodable = undecodable(&walked, form, text.as_deref(), roots, &mut writer);
        let (mistyped, time, origin, left_out) =
            (writer.mistyped, writer.time, writer.origin, writer.left_out);
        let first_mistyped = writer.first_mistyped.map(|slot| Mistyped {
            topic: id,
            slot,
            member: writer.first_member,
            is_inexact: writer.large == Some(slot),
            no_number: writer.no_number.filter(|text| text.slot() == slot),
            time: time.unwrap_or(self.time),
            row,
        });
        let origin = origin.0.zip(origin.1).map(|(publisher, number)| Origin { publisher, number });
        if let Some(reason) = undecodable {
            block.pop();
            self.count_undecodable(id, row, origin, reason);
            return Ok(());
        }
        if let Err(error) = walked {
            block.pop();
            return Err(in_line(error));
        }
        if left_out > 0 {
            self.left_out.push((id, left_out));
        }
        if let Some(first) = first_mistyped {
            if self.shapes.mistyped().get(id.index()).is_none_or(|count| *count == 0) {
                self.first_mistyped.push(first);
            }
            self.shapes.add_mistyped(Some(id), mistyped);
        }
        let named = roots.parameters.as_ref().zip(name.as_deref()).and_then(|(parameters, name)| {
            let texts = parameters.captures(name)?.into_iter().map(Box::from).collect();
            Some(Named { parameters: Arc::clone(parameters), texts })
        });
        if let Some(Named { parameters, texts }) = &named {
            parameters.write(texts, block, row);
        }
        block.set_time(row, time.unwrap_or(self.time));
        self.untimed |= Rows::from(time.is_none()) << row;
        if let Some(origin) = origin {
            self.origins.push((row, origin));
        }
        if text.is_none() && !members.depends_on_event(roots) {
            self.shapes.record(with_break, root, Ok(id), named, time_unit);
        }
        Ok(())
    }

    /// Counts a message whose payload cannot be decoded for this reason.
    fn count_undecodable(&mut self, topic: TopicId, row: usize, origin: Option<Origin>, reason: String) {
        if self.undecodable == 0 {
            self.first_undecodable = Some((self.lines, reason));
        }
        self.undecodable += 1;
        let (cause, line) = (UnseenCause::Undecodable, self.lines);
        self.unseen.push(Unseen { cause, line, row, topic: Some(topic), origin });
    }
}

/// Returns an error of JSON as one of the line.
fn in_line(error: JsonError) -> (usize, LineErrorKind) {
    (error.offset, LineErrorKind::Json(error.kind))
}

/// Returns the payload of a line without escapes, if it is a string that contains JSON.
fn text_payload(line: &[u8], form: Form, roots: &Roots) -> Option<String> {
    form.payload()
        .filter(|_| !(roots.is_plain && matches!(form, Form::Broker(_))))
        .filter(|text| text.kind == Kind::String && matches!(form, Form::Broker(_) | Form::Escaped(_)))
        .map(|text| unescape(&line[text.start + 1..text.end - 1]).unwrap_or_default())
}

/// Decodes the text of a payload in a string, after the walk over its line. Returns the reason why the payload cannot be
/// decoded.
fn undecodable(
    walked: &Result<(), JsonError>,
    form: Form,
    text: Option<&str>,
    roots: &Roots,
    writer: &mut Writer<'_>,
) -> Option<String> {
    match (walked, text) {
        (Err(error), _) => {
            let inside =
                form.payload().filter(|payload| (payload.start..payload.end).contains(&error.offset));
            inside.map(|payload| JsonError { offset: error.offset - payload.start, ..*error }.to_string())
        }
        // A text with a second level of escapes is not the original payload any more.
        (Ok(()), Some(text)) if matches!(form, Form::Escaped(_)) && text.contains('\\') => {
            Some(NO_OBJECT.to_owned())
        }
        (Ok(()), Some(text)) => object(text.as_bytes(), &roots.payload, writer).err(),
        (Ok(()), None) => None,
    }
}

/// Decodes the object in a text.
///
/// # Errors
/// The reason why it cannot be decoded.
fn object(text: &[u8], payload: &Node, writer: &mut Writer<'_>) -> Result<(), String> {
    let mut scanner = Scanner::new(text);
    scanner.skip_space();
    if scanner.peek() != Some(b'{') {
        return Err(match is_plain(text) {
            true => format!("{NO_OBJECT}; a topic of plain values needs `encoding: plain` in a deployment"),
            false => NO_OBJECT.to_owned(),
        });
    }
    let walked = walk(&mut scanner, Some(payload), 0, writer).and_then(|()| scanner.end());
    walked.map_err(|error| error.to_string())
}
