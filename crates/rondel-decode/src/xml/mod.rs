//! XML: elements and attributes, by their local names.
//!
//! An [`XmlDecoder`] walks over every message once, keeps the elements and attributes that lead to a field, and converts
//! these to CBOR, which a [`BinaryDecoder`] reads. A path begins in the outermost element, whose own name is not part of
//! it. The plan states the conversion of texts:
//!
//! | type | text, without white space around it |
//! |---|---|
//! | `float`, `int` | a decimal number, also `NaN`, `INF` and `-INF`; nothing is null |
//! | `bool` | `true`, `false`, `1` or `0`; nothing is null |
//! | `time`, `duration` | a number in the unit of the topic, a date, or a number with a unit |
//! | `string` | the text as it is |
//!
//! Any other text, and an element with elements in it, is a value of another type. Elements of one name in an element are
//! an array if the plan reads one, or if there are several. Namespaces are not resolved: names are compared without their
//! prefixes, and declarations of namespaces are no fields. `xsi:nil="true"` makes an element null.
//!
//! The five entities of XML and the numbers of characters are known. A document type definition is refused, so that no
//! entity expands. The reader of events is `quick-xml`, which allocates the names of open elements; the buffers of
//! everything else are used again. Skipped parts are checked only for their structure.

mod document;
mod fault;
mod json;
mod plan;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, TimeUnit, Timestamp, TopicId};

use crate::binary::{self, BinaryDecoder, BinaryFormat, put};
use crate::cdr::PlanError;
use crate::error::MessageError;
use crate::fields::Fields;
use crate::plain::decimal;
use crate::sink::{Refused, Scalar};
use document::{Document, NONE, Part};
pub use fault::XmlFault;
pub(crate) use json::write_json;
use plan::{Form, Plan, TEXT};

/// Maximum depth of elements: half of that of JSON, in which an element may be an object in an array.
pub const MAX_DEPTH: usize = crate::json::MAX_DEPTH as usize / 2;

/// Maximum number of elements and attributes of a message.
pub const MAX_PARTS: usize = 1 << 20;

/// Whether a payload is an XML message.
pub fn is_message(payload: &[u8]) -> bool {
    let text = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
    text.trim_ascii_start().starts_with(b"<") && Document::default().read(payload, None).is_ok()
}

/// Decodes the XML payloads of one topic.
#[derive(Clone, Debug)]
pub struct XmlDecoder {
    inner: BinaryDecoder,
    plan: Arc<Plan>,
    document: Document,
    converted: Converted,
}

/// A message as CBOR.
#[derive(Clone, Debug, Default)]
struct Converted {
    message: Vec<u8>,
    /// Offset of the event time in the payload.
    time_at: usize,
    /// While a value is searched for, its offset in the message, and that of the last part in the payload that begins
    /// before.
    wanted: Option<(usize, usize)>,
    /// Buffer for the pieces of a text.
    joined: Vec<u8>,
}

impl XmlDecoder {
    /// Creates a decoder for messages on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to [`XmlDecoder::decode`]. Times that
    /// are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// An array whose elements have more than 64 conditions.
    pub fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<XmlDecoder, Vec<PlanError>> {
        let plan = Plan::new(&Fields::new(projection, time));
        let (projection, time) = plan.separate(projection, time);
        let inner = BinaryDecoder::new(BinaryFormat::Cbor, topic, &projection, time.as_ref(), time_unit)?;
        let (document, converted) = (Document::default(), Converted::default());
        Ok(XmlDecoder { inner, plan: Arc::new(plan), document, converted })
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the payload contains
    /// one.
    ///
    /// # Errors
    /// [`MessageError`] if the payload is not an XML document, exceeds a limit, or its time is invalid; the block is then
    /// unchanged. A field of another type is written as invalid (see [`Refused::mistyped`]).
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let XmlDecoder { inner, plan, document, converted } = self;
        let plan: &Plan = plan;
        let result = document.read(payload, Some(plan)).map_err(|fault| fault.into_error()).and_then(|()| {
            converted.begin();
            converted.part(document, plan, Plan::ROOT);
            let time_at = converted.time_at;
            // Only an event time is refused here; offsets in the converted message say nothing about the payload.
            let of_payload = |error| MessageError { offset: time_at, ..error };
            let knows_first = inner.refused().first_mistyped().is_some();
            inner.decode(&converted.message, time, block).map_err(of_payload)?;
            if !knows_first && let Some(first) = &mut inner.refused_mut().first {
                first.offset = first.offset.map(|at| converted.place_of(at, document, plan));
            }
            Ok(())
        });
        document.shrink(binary::KEPT);
        if converted.message.capacity() > binary::KEPT {
            *converted = Converted::default();
        }
        result
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        self.inner.refused()
    }
}

impl Converted {
    fn begin(&mut self) {
        self.message.clear();
        self.time_at = 0;
    }

    /// Returns the offset in the payload of the part with the value at this offset of the converted message.
    #[cold]
    fn place_of(&mut self, at: usize, document: &Document, plan: &Plan) -> usize {
        self.begin();
        self.wanted = Some((at, 0));
        self.part(document, plan, Plan::ROOT);
        self.wanted.take().map_or(0, |(_, place)| place)
    }

    /// Notes that a value of a part begins.
    fn pass(&mut self, part: &Part) {
        if let Some((at, place)) = &mut self.wanted
            && self.message.len() <= *at
        {
            *place = part.at;
        }
    }

    /// Writes a part of a message.
    fn part(&mut self, document: &Document, plan: &Plan, at: u32) {
        let Some(part) = document.parts.get(at as usize) else { return };
        self.pass(part);
        let node = plan.node(part.node);
        if node.is_event_time {
            self.time_at = part.at;
        }
        if part.is_nil {
            put::null(&mut self.message);
        } else if node.keys.is_empty() {
            self.value(document, part, node.form);
        } else {
            self.members(document, plan, part);
        }
    }

    fn members(&mut self, document: &Document, plan: &Plan, part: &Part) {
        let node = plan.node(part.node);
        put::open_map(&mut self.message);
        let mut has_text = false;
        let mut member = part.first;
        while let Some(first) = document.parts.get(member as usize) {
            has_text |= Some(first.node) == node.text();
            if let Some((name, _)) = node.keys.iter().find(|(_, key)| *key == first.node) {
                put::text(name.as_bytes(), &mut self.message);
            }
            self.repeated(document, plan, first, member);
            member = first.next;
        }
        self.pass(part);
        if let Some(member) = node.text().filter(|_| !has_text) {
            let mut joined = std::mem::take(&mut self.joined);
            let text = document.text_of(part, &mut joined);
            self.text_member(text, plan, member);
            self.joined = joined;
        }
        if let Some(own) = node.own() {
            put::text(own.as_bytes(), &mut self.message);
            self.value(document, part, node.form);
        }
        put::close(&mut self.message);
    }

    /// Writes all parts with the node of the first one.
    fn repeated(&mut self, document: &Document, plan: &Plan, first: &Part, at: u32) {
        if first.count == 1 && !plan.node(first.node).is_array {
            return self.part(document, plan, at);
        }
        self.pass(first);
        put::open_array_of(first.count.into(), &mut self.message);
        let mut next = at;
        while let Some(part) = document.parts.get(next as usize) {
            self.part(document, plan, next);
            next = part.same;
        }
    }

    /// Writes the text of an element as a member with this node, unless there is none.
    fn text_member(&mut self, text: &[u8], plan: &Plan, member: u32) {
        if text.trim_ascii().is_empty() {
            return;
        }
        let node = plan.node(member);
        put::text(TEXT.as_bytes(), &mut self.message);
        if node.is_array {
            put::open_array_of(1, &mut self.message);
        }
        if node.keys.is_empty() {
            return self.scalar(text, node.form);
        }
        put::open_map(&mut self.message);
        if let Some(inner) = node.text() {
            self.text_member(text, plan, inner);
        }
        if let Some(own) = node.own() {
            put::text(own.as_bytes(), &mut self.message);
            self.scalar(text, node.form);
        }
        put::close(&mut self.message);
    }

    /// Writes the value of an element without regard to attributes.
    fn value(&mut self, document: &Document, part: &Part, form: Form) {
        if part.has_elements && form != Form::None {
            // A value of another type.
            put::open_map(&mut self.message);
            return put::close(&mut self.message);
        }
        let mut joined = std::mem::take(&mut self.joined);
        let text = document.text_of(part, &mut joined);
        self.scalar(text, form);
        self.joined = joined;
    }

    fn scalar(&mut self, text: &[u8], form: Form) {
        let out = &mut self.message;
        let trimmed = text.trim_ascii();
        match (form, trimmed) {
            (Form::Text, _) => put::text(text, out),
            // Only its presence is read.
            (Form::None, _) => put::boolean(true, out),
            (_, b"") => put::null(out),
            (Form::Bool, b"true" | b"1") => put::boolean(true, out),
            (Form::Bool, b"false" | b"0") => put::boolean(false, out),
            (Form::Bool, _) => put::text(trimmed, out),
            (Form::Number, b"NaN") => put::double(f64::NAN, out),
            (Form::Number, b"INF" | b"+INF") => put::double(f64::INFINITY, out),
            (Form::Number, b"-INF") => put::double(f64::NEG_INFINITY, out),
            (Form::Number, _) => match decimal(trimmed) {
                Scalar::Int(value) => put::integer(value, out),
                Scalar::Float(value) => put::double(value, out),
                Scalar::Large(nearest) => match unsigned(trimmed) {
                    Some(value) => put::unsigned(value, out),
                    None => put::double(nearest, out),
                },
                _ => put::text(trimmed, out),
            },
        }
    }
}

/// Returns the unsigned integer in a text.
fn unsigned(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

const _: () = assert!(MAX_PARTS < NONE as usize);
