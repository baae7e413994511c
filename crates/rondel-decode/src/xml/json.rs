//! Converts messages to JSON. An element without attributes and elements becomes its text, which is a number or a boolean
//! if it looks like one; other elements become objects, with their own text as the member `text`. Elements of one name in
//! an element become an array if there are several.

use super::document::{Document, Part};
use super::plan::TEXT;
use crate::error::Parsed;
use crate::json::{check, write};
use crate::message::Text;
use crate::plain::number;

/// Writes a message as one JSON value.
pub(crate) fn write_json(payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let mut document = Document::default();
    document.read(payload, None)?;
    let mut writer = Writer { document: &document, text, joined: Vec::new() };
    writer.part(0)
}

struct Writer<'d, 't, 'o> {
    document: &'d Document,
    text: &'t mut Text<'o>,
    /// Buffer for the pieces of a text.
    joined: Vec<u8>,
}

impl<'d> Writer<'d, '_, '_> {
    fn part(&mut self, at: u32) -> Parsed<()> {
        let document = self.document;
        let Some(part) = document.parts.get(at as usize) else { return Ok(()) };
        self.text.room(part.at)?;
        if part.is_nil {
            self.text.out.extend_from_slice(b"null");
            return Ok(());
        }
        let members = self.members(part);
        if members.is_empty() {
            return self.value(part);
        }
        self.text.out.push(b'{');
        let mut has_text = false;
        for group in members.chunk_by(|(one, _), (other, _)| one == other) {
            let [(head, first), ..] = group else { continue };
            let name = self.name(*first);
            has_text |= name == TEXT.as_bytes();
            write::separate(self.text.out);
            self.text.text(name, part.at)?;
            self.text.out.push(b':');
            if group.len() == 1 {
                self.part(*head)?;
                continue;
            }
            self.text.out.push(b'[');
            for (_, element) in group {
                write::separate(self.text.out);
                self.part(*element)?;
            }
            self.text.out.push(b']');
        }
        if !has_text {
            self.text_member(part)?;
        }
        self.text.out.push(b'}');
        Ok(())
    }

    /// Returns the parts in a part, each after the first one of its name; those of one name follow each other.
    fn members(&self, part: &Part) -> Vec<(u32, u32)> {
        let mut members = Vec::new();
        let mut member = part.first;
        while let Some(present) = self.document.parts.get(member as usize) {
            members.push((member, member));
            member = present.next;
        }
        members.sort_by(|(_, one), (_, other)| self.name(*one).cmp(self.name(*other)));
        let mut first = None;
        for (of_name, member) in &mut members {
            let head = match first {
                Some(head) if self.name(head) == self.name(*member) => head,
                _ => *member,
            };
            (first, *of_name) = (Some(head), head);
        }
        // In the order of the message.
        members.sort_unstable();
        members
    }

    fn name(&self, part: u32) -> &'d [u8] {
        let document = self.document;
        let part = document.parts.get(part as usize);
        part.and_then(|part| document.texts.get(part.name.clone())).unwrap_or_default()
    }

    fn text_member(&mut self, part: &Part) -> Parsed<()> {
        let mut joined = std::mem::take(&mut self.joined);
        let text = self.document.text_of(part, &mut joined);
        let written = if text.trim_ascii().is_empty() {
            Ok(())
        } else {
            write::key(TEXT, self.text.out);
            self.scalar(text, part.at)
        };
        self.joined = joined;
        written
    }

    fn value(&mut self, part: &Part) -> Parsed<()> {
        let mut joined = std::mem::take(&mut self.joined);
        let text = self.document.text_of(part, &mut joined);
        let written = self.scalar(text, part.at);
        self.joined = joined;
        written
    }

    fn scalar(&mut self, text: &[u8], at: usize) -> Parsed<()> {
        let trimmed = text.trim_ascii();
        let is_number = || number(trimmed).is_some_and(f64::is_finite) && check(trimmed).is_ok();
        if matches!(trimmed, b"true" | b"false") || is_number() {
            self.text.out.extend_from_slice(trimmed);
            return Ok(());
        }
        self.text.text(text, at)
    }
}
