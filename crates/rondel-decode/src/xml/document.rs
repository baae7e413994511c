//! Reads the elements and attributes of a message into a list that the next message reuses.

use std::ops::Range;

use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::fault::XmlFault;
use super::plan::{Form, Plan};
use super::text::{self, is_name, local};
use super::{MAX_DEPTH, MAX_PARTS};
use crate::error::{Fault, MessageErrorKind, Parsed};

/// No part, or no piece.
pub(super) const NONE: u32 = u32::MAX;

/// Number of attributes up to which names are compared one by one.
const FEW: usize = 16;

/// An element or attribute that is read.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its node in the plan.
    pub(super) node: u32,
    /// Offset in the message.
    pub(super) at: usize,
    /// Its local name in the texts, if there is no plan.
    pub(super) name: Range<usize>,
    /// The first and the last part in it; with a plan the first of each node.
    pub(super) first: u32,
    last: u32,
    /// The next part in the same element.
    pub(super) next: u32,
    /// With a plan, the next part with the same node, and of the first one the last and the number of them.
    pub(super) same: u32,
    last_same: u32,
    pub(super) count: u32,
    /// The pieces of its text.
    first_piece: u32,
    last_piece: u32,
    /// Whether there are elements in it, also those that are not read.
    pub(super) has_elements: bool,
    /// Whether its text is read.
    reads_text: bool,
    /// Whether it is marked as having no value.
    pub(super) is_nil: bool,
}

/// A piece of the text of an element: other elements may lie between pieces.
#[derive(Clone, Debug)]
struct Piece {
    text: Range<usize>,
    next: u32,
}

/// An element whose end has not come.
#[derive(Clone, Debug)]
struct Open {
    part: u32,
    /// Its name in the message.
    name: Range<usize>,
}

/// The parts of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    pub(super) parts: Vec<Part>,
    pieces: Vec<Piece>,
    pub(super) texts: Vec<u8>,
    open: Vec<Open>,
    /// Number of elements and attributes of the message.
    passed: usize,
}

impl Document {
    /// Reads a message: with a plan the parts in it, otherwise all. The first part is the outermost element.
    pub(super) fn read(&mut self, payload: &[u8], plan: Option<&Plan>) -> Parsed<()> {
        self.parts.clear();
        self.pieces.clear();
        self.texts.clear();
        self.open.clear();
        self.passed = 0;
        if let Err(error) = std::str::from_utf8(payload) {
            return Err(Fault::new(error.valid_up_to(), MessageErrorKind::NotText));
        }
        self.events(payload, plan).map_err(|fault| {
            let enclosing = self.open.iter().skip(1).rev();
            enclosing.fold(fault, |fault, open| {
                let name = payload.get(open.name.clone()).unwrap_or_default();
                fault.in_member(&String::from_utf8_lossy(local(name)))
            })
        })
    }

    /// Drops the buffers if they have more bytes than this.
    pub(super) fn shrink(&mut self, most: usize) {
        let parts = self.parts.capacity() * size_of::<Part>();
        if parts + self.pieces.capacity() * size_of::<Piece>() + self.texts.capacity() > most {
            *self = Document::default();
        }
    }

    fn events(&mut self, payload: &[u8], plan: Option<&Plan>) -> Parsed<()> {
        let start = if payload.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut reader = Reader::from_reader(&payload[start..]);
        reader.config_mut().enable_all_checks(true);
        loop {
            let at = start + reader.buffer_position() as usize;
            // Its content is not even looked at.
            if matches!(payload.get(at..at + 3), Some(b"<!D" | b"<!d")) {
                return Err(wrong(at, XmlFault::Doctype));
            }
            let event = reader.read_event().map_err(|error| {
                let is_at_end = start + reader.buffer_position() as usize >= payload.len();
                let found = (start + reader.error_position() as usize).min(payload.len());
                fault_of(&error, found, is_at_end.then_some(payload.len()))
            })?;
            match event {
                Event::Start(tag) => self.start(&tag, at, plan)?,
                Event::Empty(tag) => {
                    self.start(&tag, at, plan)?;
                    self.open.pop();
                }
                Event::End(_) => _ = self.open.pop(),
                Event::Text(text) => self.text(&text, at)?,
                Event::CData(text) => {
                    let part = self.inside(at)?;
                    self.append(part, &text, at + b"<![CDATA[".len())?;
                }
                Event::GeneralRef(name) => self.reference(&name, at)?,
                Event::Decl(declaration) => {
                    let encoding = declaration.encoding().transpose();
                    let encoding = encoding.map_err(|_| wrong(at, XmlFault::Attributes))?;
                    if at != start {
                        return Err(wrong(at, XmlFault::Markup));
                    }
                    if encoding.is_some_and(|name| !is_utf8(&name)) {
                        return Err(wrong(at, XmlFault::OtherEncoding));
                    }
                }
                Event::DocType(_) => return Err(wrong(at, XmlFault::Doctype)),
                Event::PI(_) | Event::Comment(_) => {}
                Event::Eof => break,
            }
        }
        match (self.open.is_empty(), self.parts.is_empty()) {
            (false, _) => Err(Fault::new(payload.len(), MessageErrorKind::Truncated)),
            (true, true) => Err(wrong(0, XmlFault::NoElement)),
            (true, false) => Ok(()),
        }
    }

    /// Begins an element.
    fn start(&mut self, tag: &BytesStart<'_>, at: usize, plan: Option<&Plan>) -> Parsed<()> {
        let name = tag.name().into_inner();
        if !is_name(name) {
            return Err(wrong(at, XmlFault::Name));
        }
        let enclosing = self.open.last().map(|open| open.part);
        let part = match enclosing {
            None if self.passed > 0 => return Err(wrong(at, XmlFault::Outside)),
            None => self.add(None, plan.map(|_| Plan::ROOT), local(name), at, plan),
            Some(_) if self.open.len() >= MAX_DEPTH => return Err(wrong(at, XmlFault::TooDeep)),
            Some(element) => {
                if let Some(element) = self.parts.get_mut(element as usize) {
                    element.has_elements = true;
                }
                self.add_in(element, local(name), at, plan)
            }
        };
        self.count(at)?;
        self.open.push(Open { part, name: at + 1..at + 1 + name.len() });
        self.attributes(tag, part, at, plan)
    }

    fn attributes(
        &mut self,
        tag: &BytesStart<'_>,
        element: u32,
        at: usize,
        plan: Option<&Plan>,
    ) -> Parsed<()> {
        let raw = tag.attributes_raw();
        if raw.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        // The reader compares the names of many by their hashes, for which it allocates.
        let is_many = memchr::memchr_iter(b'=', raw).count() > FEW;
        let mut names: [&[u8]; FEW] = [&[]; FEW];
        let mut attributes = tag.attributes();
        for (index, attribute) in attributes.with_checks(is_many).enumerate() {
            let attribute = attribute.map_err(|_| wrong(at, XmlFault::Attributes))?;
            let name = attribute.key.into_inner();
            if !is_name(name) {
                return Err(wrong(at, XmlFault::Name));
            }
            if names.iter().take(index).any(|known| *known == name) {
                return Err(wrong(at, XmlFault::TwoAttributes));
            }
            if let Some(own) = names.get_mut(index) {
                *own = name;
            }
            self.count(at)?;
            if memchr::memchr(b'<', &attribute.value).is_some() {
                return Err(wrong(at, XmlFault::Attributes));
            }
            if name == b"xmlns" || name.starts_with(b"xmlns:") {
                continue;
            }
            if name == b"xsi:nil" {
                if let Some(element) = self.parts.get_mut(element as usize) {
                    element.is_nil = matches!(attribute.value.trim_ascii(), b"true" | b"1");
                }
                continue;
            }
            let part = self.add_in(element, local(name), at, plan);
            self.append_value(part, &attribute.value, at)?;
        }
        Ok(())
    }

    /// Counts an element or attribute.
    fn count(&mut self, at: usize) -> Parsed<()> {
        self.passed += 1;
        if self.passed > MAX_PARTS { Err(wrong(at, XmlFault::TooMany)) } else { Ok(()) }
    }

    /// Adds a part to an element, if both are read. Returns it, or [`NONE`].
    fn add_in(&mut self, element: u32, name: &[u8], at: usize, plan: Option<&Plan>) -> u32 {
        let Some(parent) = self.parts.get(element as usize) else { return NONE };
        match plan {
            None => self.add(Some(element), None, name, at, plan),
            Some(plan) => match plan.node(parent.node).key(name) {
                Some(node) => self.add(Some(element), Some(node), name, at, Some(plan)),
                None => NONE,
            },
        }
    }

    /// Adds a part to an element. Returns it.
    fn add(
        &mut self,
        element: Option<u32>,
        node: Option<u32>,
        name: &[u8],
        at: usize,
        plan: Option<&Plan>,
    ) -> u32 {
        let new = self.parts.len() as u32;
        let name_start = self.texts.len();
        let reads_text = match plan.zip(node) {
            Some((plan, node)) => plan.node(node).form != Form::None || plan.node(node).text().is_some(),
            None => {
                self.texts.extend_from_slice(name);
                true
            }
        };
        self.parts.push(Part {
            node: node.unwrap_or(NONE),
            at,
            name: name_start..self.texts.len(),
            first: NONE,
            last: NONE,
            next: NONE,
            same: NONE,
            last_same: new,
            count: 1,
            first_piece: NONE,
            last_piece: NONE,
            has_elements: false,
            reads_text,
            is_nil: false,
        });
        if let Some(element) = element {
            self.link(element, new, node);
        }
        new
    }

    /// Appends a part to those in its element, with a plan to those with the same node.
    fn link(&mut self, element: u32, new: u32, node: Option<u32>) {
        let mut same = if node.is_some() { self.parts[element as usize].first } else { NONE };
        while let Some(part) = self.parts.get(same as usize) {
            if Some(part.node) == node {
                break;
            }
            same = part.next;
        }
        if let Some(head) = self.parts.get_mut(same as usize) {
            head.count += 1;
            let before = std::mem::replace(&mut head.last_same, new);
            self.parts[before as usize].same = new;
            return;
        }
        let parent = &mut self.parts[element as usize];
        let before = std::mem::replace(&mut parent.last, new);
        match self.parts.get_mut(before as usize) {
            Some(before) => before.next = new,
            None => self.parts[element as usize].first = new,
        }
    }

    /// Returns the innermost open element.
    fn inside(&self, at: usize) -> Parsed<u32> {
        self.open.last().map(|open| open.part).ok_or_else(|| wrong(at, XmlFault::Outside))
    }

    /// Adds text between tags, without references.
    fn text(&mut self, text: &[u8], at: usize) -> Parsed<()> {
        if self.open.is_empty() && text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let part = self.inside(at)?;
        if let Some(place) = memchr::memmem::find(text, b"]]>") {
            return Err(wrong(at + place, XmlFault::Markup));
        }
        self.append(part, text, at)
    }

    /// Adds the character of a reference.
    fn reference(&mut self, name: &[u8], at: usize) -> Parsed<()> {
        let part = self.inside(at)?;
        let character = text::character(name).ok_or_else(|| wrong(at, XmlFault::Entity))?;
        self.append_raw(part, character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Adds text to a part, if it is read. The end of a line is a line feed.
    fn append(&mut self, part: u32, text: &[u8], at: usize) -> Parsed<()> {
        if self.parts.get(part as usize).is_some_and(|part| part.reads_text) {
            let start = self.texts.len();
            text::append(text, &mut self.texts).map_err(|place| wrong(at + place, XmlFault::Character))?;
            self.end_piece(part, start);
        }
        Ok(())
    }

    fn append_raw(&mut self, part: u32, text: &[u8]) {
        if self.parts.get(part as usize).is_some_and(|part| part.reads_text) {
            let start = self.texts.len();
            self.texts.extend_from_slice(text);
            self.end_piece(part, start);
        }
    }

    /// Adds the value of an attribute to its part, if it is read. `at` is the offset of the tag.
    fn append_value(&mut self, part: u32, value: &[u8], at: usize) -> Parsed<()> {
        if self.parts.get(part as usize).is_some_and(|part| part.reads_text) {
            let start = self.texts.len();
            text::append_value(value, &mut self.texts).map_err(|fault| wrong(at, fault))?;
            self.end_piece(part, start);
        }
        Ok(())
    }

    /// Adds the texts from an offset on to a part.
    fn end_piece(&mut self, part: u32, start: usize) {
        let end = self.texts.len();
        let Some(part) = self.parts.get_mut(part as usize) else { return };
        if let Some(last) = self.pieces.get_mut(part.last_piece as usize)
            && last.text.end == start
        {
            last.text.end = end;
            return;
        }
        let new = self.pieces.len() as u32;
        match self.pieces.get_mut(part.last_piece as usize) {
            Some(last) => last.next = new,
            None => part.first_piece = new,
        }
        part.last_piece = new;
        self.pieces.push(Piece { text: start..end, next: NONE });
    }

    /// Returns the text of a part; `joined` is a buffer for several pieces.
    pub(super) fn text_of<'d>(&'d self, part: &Part, joined: &'d mut Vec<u8>) -> &'d [u8] {
        let texts = |piece: &Piece| self.texts.get(piece.text.clone()).unwrap_or_default();
        let Some(first) = self.pieces.get(part.first_piece as usize) else { return &[] };
        if first.next == NONE {
            return texts(first);
        }
        joined.clear();
        let mut piece = Some(first);
        while let Some(present) = piece {
            joined.extend_from_slice(texts(present));
            piece = self.pieces.get(present.next as usize);
        }
        joined
    }
}

#[cold]
fn wrong(at: usize, fault: XmlFault) -> Box<Fault> {
    Fault::new(at, MessageErrorKind::Xml(fault))
}

/// Returns the fault at an offset; `end` is the end of the message if the reader has come to it.
#[cold]
fn fault_of(error: &Error, at: usize, end: Option<usize>) -> Box<Fault> {
    match (error, end) {
        (Error::Syntax(SyntaxError::InvalidBangMarkup), _) => wrong(at, XmlFault::Markup),
        (Error::Syntax(_), Some(end)) => Fault::new(end, MessageErrorKind::Truncated),
        (
            Error::IllFormed(IllFormedError::MismatchedEndTag { .. } | IllFormedError::UnmatchedEndTag(_)),
            _,
        ) => wrong(at, XmlFault::EndTag),
        (Error::IllFormed(IllFormedError::UnclosedReference), _) => wrong(at, XmlFault::Entity),
        _ => wrong(at, XmlFault::Markup),
    }
}

/// Whether a declared encoding is UTF-8, or a part of it.
fn is_utf8(name: &[u8]) -> bool {
    [&b"utf-8"[..], b"utf8", b"us-ascii"].iter().any(|known| name.eq_ignore_ascii_case(known))
}
