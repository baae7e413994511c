//! Converts messages to JSON, to pass them on or show them. Nothing is compiled: the schema is walked.
//!
//! Every length is compared with the remaining bytes before it is used, and the text has a limit: both bound the work.

use std::sync::Arc;

use super::error::{CdrError, CdrErrorKind};
use super::plan::Version;
use super::walk::{
    DISCRIMINATOR_ID, EXTENDED_MUST_UNDERSTAND, ID_MASK, MUST_UNDERSTAND, PADDING, PID_EXTENDED,
    PID_LIST_END, PID_MASK, PID_MUST_UNDERSTAND,
};
use super::wide::{Seen, Wide, WideForm};
use crate::json::{JsonForm, write as text};
use crate::schema::{
    Case, DISCRIMINATOR, Definition, Extensibility, Member, Primitive, Schema, Struct, Type, Union,
};

/// Appends a message of this type as one JSON object to `out`, in at most `limit` bytes.
///
/// Structures are objects, without absent optional members; arrays and sequences are arrays; a bit mask is a number. A
/// union is an object with `discriminator` and the selected member. `form` determines the rest.
///
/// # Errors
/// [`CdrError`] if the payload is not entirely a message of the type, or is too large; `out` is then unchanged.
///
/// ```
/// use rondel_decode::cdr::write_json;
/// use rondel_decode::json::JsonForm;
/// use rondel_decode::schema::Library;
///
/// let mut library = Library::new();
/// library.add_msg("demo_msgs/msg/Speed", "uint8 gear\nfloat32 value")?;
/// let schema = library.schema("demo_msgs/msg/Speed")?;
/// let mut json = Vec::new();
/// let payload = [0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0xc0, 0x3f];
/// write_json(&schema, &payload, JsonForm::EXACT, 100, &mut json)?;
/// assert_eq!(json, br#"{"gear":2,"value":1.5}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_json(
    schema: &Schema,
    payload: &[u8],
    form: JsonForm,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CdrError> {
    write(schema, payload, false, form, limit, out)
}

/// Writes the key of a message like [`write_json`]: the members of [`Schema::key`], from the payload of a message of
/// `schema`.
///
/// # Errors
/// As [`write_json`].
pub fn write_key(
    schema: &Schema,
    payload: &[u8],
    form: JsonForm,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CdrError> {
    write(schema, payload, true, form, limit, out)
}

/// Writes a message of ROS 1 like [`write_json`].
///
/// # Errors
/// As [`write_json`].
pub fn write_packed_json(
    schema: &Schema,
    payload: &[u8],
    form: JsonForm,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CdrError> {
    let start = out.len();
    let mut walk = Walk {
        schema,
        bytes: payload,
        at: 0,
        end: payload.len(),
        origin: 0,
        may_end: false,
        is_big: false,
        version: Version::Packed,
        unstated: Extensibility::Final,
        only_key: false,
        wide: WideForm::Bytes,
        seen: Seen::default(),
        text: String::new(),
        probe: None,
        form,
        full: start.saturating_add(limit),
        out: &mut *out,
    };
    let fault = match walk.structure(schema.root()) {
        Ok(()) if walk.at < payload.len() => walk.kind(CdrErrorKind::TrailingBytes, walk.at),
        Ok(()) if walk.out.len() > walk.full => walk.kind(CdrErrorKind::TooLarge(limit), walk.at),
        Ok(()) => return Ok(()),
        Err(Stop::Ended) => walk.kind(CdrErrorKind::Truncated, walk.end),
        Err(Stop::Fault(fault)) => *fault,
    };
    out.truncate(start);
    let is_full = fault.kind == CdrErrorKind::TooLarge(0);
    let kind = if is_full { CdrErrorKind::TooLarge(limit) } else { fault.kind };
    Err(CdrError { offset: fault.at, path: Arc::from(fault.path), kind })
}

fn write(
    schema: &Schema,
    payload: &[u8],
    only_key: bool,
    form: JsonForm,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CdrError> {
    let whole = |kind| CdrError { offset: 0, path: "".into(), kind };
    let (header, bytes) =
        payload.split_first_chunk::<4>().ok_or_else(|| whole(CdrErrorKind::NoEncapsulation))?;
    let encapsulation = u16::from_be_bytes([header[0], header[1]]);
    use Extensibility::{Appendable, Final, Mutable};
    let (is_second, unstated, roots): (bool, _, &[Extensibility]) = match encapsulation {
        0x0000 | 0x0001 => (false, Final, &[Final, Appendable]),
        0x0002 | 0x0003 => (false, Final, &[Mutable]),
        0x0006 | 0x0007 => (true, Final, &[Final]),
        0x0008 | 0x0009 => (true, Appendable, &[Appendable]),
        0x000a | 0x000b => (true, Appendable, &[Mutable]),
        other => return Err(whole(CdrErrorKind::UnknownEncapsulation(other))),
    };
    if !roots.contains(&schema.root().extensibility.unwrap_or(unstated)) {
        return Err(whole(CdrErrorKind::WrongEncapsulation(encapsulation)));
    }
    let start = out.len();
    let version = if is_second { Version::Two } else { Version::One };
    let padding = usize::from(header[3] & 3);
    let read = |wide: WideForm, is_probe: bool, out: &mut Vec<u8>| {
        out.truncate(start);
        let mut walk = Walk {
            schema,
            bytes,
            at: 0,
            end: bytes.len(),
            origin: 0,
            may_end: false,
            is_big: encapsulation & 1 == 0,
            version,
            unstated,
            only_key,
            wide,
            seen: Seen::default(),
            text: String::new(),
            probe: is_probe.then_some(start),
            form,
            full: start.saturating_add(limit),
            out,
        };
        let fault = match walk.structure(schema.root()) {
            Ok(()) if bytes.len() - walk.at > PADDING => walk.kind(CdrErrorKind::TrailingBytes, walk.at),
            Ok(()) if walk.out.len() > walk.full && !is_probe => {
                walk.kind(CdrErrorKind::TooLarge(limit), walk.at)
            }
            Ok(()) => {
                let unread = walk.seen.unread + bytes.len().saturating_sub(walk.at);
                return (Ok(()), Seen { unread, ..walk.seen });
            }
            Err(Stop::Ended) => walk.kind(CdrErrorKind::Truncated, walk.end),
            Err(Stop::Fault(fault)) => *fault,
        };
        let is_full = fault.kind == CdrErrorKind::TooLarge(0);
        let kind = if is_full { CdrErrorKind::TooLarge(limit) } else { fault.kind };
        (Err(CdrError { offset: fault.at + 4, path: Arc::from(fault.path), kind }), walk.seen)
    };
    let (mut written, seen) = read(WideForm::order(version)[0], false, out);
    if seen.has_text && !(written.is_ok() && seen.is_exact(padding)) {
        let wide = Wide::default().choose(version, padding, |wide| {
            let (written, seen) = read(wide, true, out);
            written.ok().map(|()| seen)
        });
        written = read(wide, false, out).0;
    }
    written.inspect_err(|_| out.truncate(start))
}

/// Fault of a message: the reason, the position in the body, the field.
struct Fault {
    kind: CdrErrorKind,
    at: usize,
    path: String,
}

/// Reason why a list of members ends early.
enum Stop {
    /// An older writer does not know the members from here on.
    Ended,
    Fault(Box<Fault>),
}

type Walked<T> = Result<T, Stop>;

/// Prepends the name of a part to the path of a fault in it.
fn within<T>(part: &str, walked: Walked<T>) -> Walked<T> {
    walked.map_err(|stop| match stop {
        Stop::Fault(mut fault) => {
            let dot = if fault.path.is_empty() || fault.path.starts_with('[') { "" } else { "." };
            fault.path = format!("{part}{dot}{}", fault.path);
            Stop::Fault(fault)
        }
        Stop::Ended => Stop::Ended,
    })
}

/// Header of a member of a mutable type.
struct MemberHeader {
    id: u32,
    must_understand: bool,
    /// Position of the header.
    start: usize,
    length: usize,
    /// Position relative to which values in the member are aligned.
    origin: usize,
}

struct Walk<'m, 'w> {
    schema: &'m Schema,
    bytes: &'m [u8],
    at: usize,
    /// End of the message, or of the part of known length.
    end: usize,
    /// Position relative to which values are aligned.
    origin: usize,
    /// Whether the end may come before the next member, since its writer may know fewer members.
    may_end: bool,
    is_big: bool,
    version: Version,
    /// Extensibility of types whose definition does not state it.
    unstated: Extensibility,
    /// Whether members outside of the key are omitted.
    only_key: bool,
    wide: WideForm,
    seen: Seen,
    /// Buffer of the last wide string.
    text: String,
    /// Start of the output, which may be dropped, if the walk only probes whether the message has the form.
    probe: Option<usize>,
    form: JsonForm,
    /// Length of `out` above which the text is too large.
    full: usize,
    out: &'w mut Vec<u8>,
}

impl<'m> Walk<'m, '_> {
    fn kind(&self, kind: CdrErrorKind, at: usize) -> Fault {
        Fault { kind, at, path: String::new() }
    }

    #[cold]
    fn fault(&self, kind: CdrErrorKind, at: usize) -> Stop {
        Stop::Fault(Box::new(self.kind(kind, at)))
    }

    /// Reads `size` bytes.
    fn take(&mut self, size: usize) -> Walked<&'m [u8]> {
        let at = self.at;
        match self.bytes.get(at..at.saturating_add(size)).filter(|_| at + size <= self.end) {
            Some(bytes) => {
                self.at += size;
                Ok(bytes)
            }
            None if self.may_end && at >= self.end => Err(Stop::Ended),
            None => Err(self.fault(CdrErrorKind::Truncated, at.min(self.end))),
        }
    }

    fn align(&mut self, size: usize) {
        let size = self.version.align(size as u32) as usize;
        self.at += self.origin.wrapping_sub(self.at) & (size - 1);
    }

    /// Reads the bits of a number of this size.
    fn bits(&mut self, size: usize) -> Walked<u64> {
        self.align(size);
        let bytes = self.take(size)?;
        let add = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        Ok(if self.is_big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    fn u16(&mut self) -> Walked<u16> {
        self.bits(2).map(|bits| bits as u16)
    }

    fn u32(&mut self) -> Walked<u32> {
        self.bits(4).map(|bits| bits as u32)
    }

    /// Reads an integer of this type.
    fn integer(&mut self, primitive: Primitive) -> Walked<i128> {
        let bits = self.bits(primitive.size() as usize)?;
        Ok(match primitive {
            Primitive::Int8 => (bits as i8).into(),
            Primitive::Int16 => (bits as i16).into(),
            Primitive::Int32 => (bits as i32).into(),
            Primitive::Int64 => (bits as i64).into(),
            _ => bits.into(),
        })
    }

    /// Reads a length in bytes, and checks that they exist.
    fn length(&mut self) -> Walked<usize> {
        let length = self.u32()?;
        if length as usize > self.end - self.at {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), self.at - 4));
        }
        Ok(length as usize)
    }

    /// Reads a part of this length, and moves to its end.
    fn part(
        &mut self,
        (length, origin, may_end): (usize, usize, bool),
        read: impl FnOnce(&mut Self) -> Walked<()>,
    ) -> Walked<()> {
        let outer = (self.end, self.origin, self.may_end);
        let end = self.at + length;
        (self.end, self.origin, self.may_end) = (end, origin, may_end);
        match read(self) {
            Ok(()) => {}
            Err(Stop::Ended) => self.seen.has_ended = true,
            fault => return fault,
        }
        self.seen.unread += end.saturating_sub(self.at);
        (self.end, self.origin, self.may_end) = outer;
        self.at = end;
        Ok(())
    }

    /// Reads a part that must be complete.
    fn complete(&mut self, read: impl FnOnce(&mut Self) -> Walked<()>) -> Walked<()> {
        let may_end = std::mem::replace(&mut self.may_end, false);
        read(self)?;
        self.may_end = may_end;
        Ok(())
    }

    fn value(&mut self, value_type: &'m Type) -> Walked<()> {
        if self.out.len() > self.full {
            if let Some(start) = self.probe {
                self.out.truncate(start);
            } else {
                // The caller knows the limit.
                return Err(self.fault(CdrErrorKind::TooLarge(0), self.at));
            }
        }
        match value_type {
            Type::Primitive(primitive) => self.number(*primitive),
            Type::String { bound, wide: false } => self.text(bound.unwrap_or(u32::MAX)),
            Type::String { bound, wide: true } => self.wide_text(bound.unwrap_or(u32::MAX)),
            Type::Array { element, dimensions } => {
                self.collection(element, |this| this.array(element, dimensions))
            }
            Type::Sequence { element, bound } => {
                self.collection(element, |this| this.sequence(element, bound.unwrap_or(u32::MAX)))
            }
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Struct(structure) => self.structure(structure),
                Definition::Union(union) => self.union(union),
                Definition::Enum(enumeration) => {
                    let start = self.at;
                    let value = self.integer(enumeration.holder())?;
                    let constants = enumeration.constants.iter();
                    match constants.into_iter().find(|(_, of)| i128::from(*of) == value) {
                        Some((name, _)) if self.form.names => text::quoted(name, self.out),
                        Some(_) => text::integer(value, self.out),
                        None => return Err(self.fault(CdrErrorKind::NotInEnumeration(value as i32), start)),
                    }
                    Ok(())
                }
                Definition::Bitmask(mask) => self.number(mask.holder()),
                // A schema contains none.
                Definition::Alias(of) => self.value(of),
            },
        }
    }

    fn number(&mut self, primitive: Primitive) -> Walked<()> {
        let size = primitive.size() as usize;
        match primitive {
            Primitive::Bool => match self.bits(1)? {
                0 => self.out.extend_from_slice(b"false"),
                1 => self.out.extend_from_slice(b"true"),
                byte => return Err(self.fault(CdrErrorKind::NotABoolean(byte as u8), self.at - 1)),
            },
            Primitive::Float32 => {
                let value = f32::from_bits(self.u32()?);
                text::float(value.into(), self.form, self.out);
            }
            Primitive::Float64 => {
                let value = f64::from_bits(self.bits(size)?);
                text::float(value, self.form, self.out);
            }
            Primitive::Char | Primitive::WChar if self.form.names => {
                match char::from_u32(self.bits(size)? as u32) {
                    Some(letter) => text::quoted(letter.encode_utf8(&mut [0; 4]), self.out),
                    None => return Err(self.fault(CdrErrorKind::NotText, self.at - size)),
                }
            }
            integer => {
                let value = self.integer(integer)?;
                text::integer(value, self.out);
            }
        }
        Ok(())
    }

    fn wide_text(&mut self, bound: u32) -> Walked<()> {
        let length = self.u32()?;
        self.seen.has_text |= length > 0;
        let (start, size) = (self.at, self.wide.size(length));
        if size > self.end - start {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), start - 4));
        }
        let bytes = self.take(size)?;
        if self.wide.count(length) > bound {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(length), start - 4));
        }
        let mut value = std::mem::take(&mut self.text);
        if !self.wide.read(self.is_big, bytes, &mut value) {
            return Err(self.fault(CdrErrorKind::NotText, start));
        }
        text::quoted(&value, self.out);
        self.text = value;
        Ok(())
    }

    fn text(&mut self, bound: u32) -> Walked<()> {
        let length = self.length()?;
        let start = self.at;
        let bytes = self.take(length)?;
        if length.saturating_sub(1) > bound as usize {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(length as u32), start - 4));
        }
        let bytes = match bytes {
            _ if self.version == Version::Packed => bytes,
            [bytes @ .., 0] => bytes,
            // Not in the standard, but some writers write an empty string so.
            [] => bytes,
            _ => return Err(self.fault(CdrErrorKind::Unterminated, start)),
        };
        match std::str::from_utf8(bytes) {
            Ok(value) => text::quoted(value, self.out),
            Err(error) => return Err(self.fault(CdrErrorKind::NotText, start + error.valid_up_to())),
        }
        Ok(())
    }

    /// Reads elements, which follow their length in the second version unless they are primitive.
    fn collection(&mut self, element: &Type, read: impl FnOnce(&mut Self) -> Walked<()>) -> Walked<()> {
        if self.version == Version::Two && !matches!(element, Type::Primitive(_)) {
            let length = self.length()?;
            return self.part((length, self.origin, false), read);
        }
        read(self)
    }

    fn array(&mut self, element: &'m Type, dimensions: &[u32]) -> Walked<()> {
        let (size, inner) = dimensions.split_first().map_or((1, dimensions), |(size, inner)| (*size, inner));
        // If the array exists at all, it has all elements.
        if self.at >= self.end {
            self.take(1)?;
        }
        self.complete(|this| {
            this.elements(size, |this| match inner {
                [] => this.value(element),
                inner => this.array(element, inner),
            })
        })
    }

    fn sequence(&mut self, element: &'m Type, bound: u32) -> Walked<()> {
        let count = self.u32()?;
        let start = self.at - 4;
        if count > bound {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(count), start));
        }
        // Every element has at least one byte.
        if count as usize > self.end - self.at {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(count), start));
        }
        self.complete(|this| this.elements(count, |this| this.value(element)))
    }

    fn elements(&mut self, count: u32, mut read: impl FnMut(&mut Self) -> Walked<()>) -> Walked<()> {
        self.out.push(b'[');
        for index in 0..count {
            if index > 0 {
                self.out.push(b',');
            }
            within("[]", read(self))?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn structure(&mut self, structure: &'m Struct) -> Walked<()> {
        match structure.extensibility.unwrap_or(self.unstated) {
            Extensibility::Mutable if self.version == Version::Two => {
                let length = self.length()?;
                self.part((length, self.origin, false), |this| this.mutable(structure))
            }
            Extensibility::Mutable => self.complete(|this| this.mutable(structure)),
            Extensibility::Appendable if self.version == Version::Two => {
                let length = self.length()?;
                self.part((length, self.origin, true), |this| this.members(structure))
            }
            _ => self.members(structure),
        }
    }

    /// Writes the name of a member after the previous ones.
    fn key(&mut self, name: &str) {
        text::key(name, self.out);
    }

    fn members(&mut self, structure: &'m Struct) -> Walked<()> {
        self.out.push(b'{');
        for member in &structure.members {
            let before = self.out.len();
            self.key(&member.name);
            match within(&member.name, self.member(member)) {
                Ok(true) if self.leaves_out(structure, member) => self.out.truncate(before),
                Ok(true) => {}
                Ok(false) => self.out.truncate(before),
                Err(Stop::Ended) => {
                    self.out.truncate(before);
                    self.out.push(b'}');
                    return Err(Stop::Ended);
                }
                Err(fault) => return Err(fault),
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Whether a member that was read is not written.
    fn leaves_out(&self, structure: &Struct, member: &Member) -> bool {
        self.only_key && !member.key && structure.has_key()
    }

    /// Reads a member; returns whether it is present.
    fn member(&mut self, member: &'m Member) -> Walked<bool> {
        if !member.optional {
            return self.value(&member.member_type).map(|()| true);
        }
        if self.version == Version::Two {
            return match self.bits(1)? {
                0 => Ok(false),
                1 => self.complete(|this| this.value(&member.member_type)).map(|()| true),
                byte => Err(self.fault(CdrErrorKind::NotABoolean(byte as u8), self.at - 1)),
            };
        }
        let (header, length) = self.parameter()?;
        let found = header.as_ref().map_or(PID_LIST_END.into(), |header| header.id);
        if header.is_none() || found != member.id {
            return Err(self.fault(CdrErrorKind::UnexpectedMember(found), self.at));
        }
        if length > 0 {
            self.part((length, self.at, false), |this| this.value(&member.member_type))?;
        }
        Ok(length > 0)
    }

    /// Reads the header of a parameter, or `None` at the end of the list, and its length; checks that these bytes
    /// exist.
    fn parameter(&mut self) -> Walked<(Option<MemberHeader>, usize)> {
        self.align(4);
        let start = self.at;
        let (id, length) = (self.u16()?, self.u16()?);
        let (found, length) = match id & PID_MASK {
            PID_LIST_END => (None, length.into()),
            PID_EXTENDED => {
                let id = self.u32()?;
                (Some((id & ID_MASK, id & EXTENDED_MUST_UNDERSTAND != 0)), self.u32()?)
            }
            own => (Some((own.into(), id & PID_MUST_UNDERSTAND != 0)), length.into()),
        };
        if length as usize > self.end - self.at {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), start));
        }
        let length = length as usize;
        let header = found.map(|(id, must_understand)| MemberHeader {
            id,
            must_understand,
            start,
            length,
            origin: self.at,
        });
        Ok((header, length))
    }

    /// Reads the header of a member in the second version.
    fn member_header(&mut self) -> Walked<MemberHeader> {
        let start = self.at;
        let header = self.u32()?;
        let size = match header >> 28 & 7 {
            code @ 0..=3 => 1_u64 << code,
            code => {
                let next = u64::from(self.u32()?);
                // From the fifth code on, the length is also the first part of the member.
                if code > 4 {
                    self.at -= 4;
                }
                match code {
                    4 => next,
                    5 => 4 + next,
                    6 => 4 + 4 * next,
                    _ => 4 + 8 * next,
                }
            }
        };
        if size > (self.end - self.at) as u64 {
            let length = u32::try_from(size).unwrap_or(u32::MAX);
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), start));
        }
        Ok(MemberHeader {
            id: header & ID_MASK,
            must_understand: header & MUST_UNDERSTAND != 0,
            start,
            length: size as usize,
            origin: self.origin,
        })
    }

    /// Reads the header of the next member of a mutable type, or `None` after the last one.
    fn header(&mut self) -> Walked<Option<MemberHeader>> {
        if self.version != Version::Two {
            let (header, length) = self.parameter()?;
            if header.is_none() {
                self.at += length;
            }
            return Ok(header);
        }
        self.align(4);
        // At most three bytes before the end are padding.
        if self.at >= self.end { Ok(None) } else { self.member_header().map(Some) }
    }

    /// Reads the members of a mutable structure, which have headers.
    fn mutable(&mut self, structure: &'m Struct) -> Walked<()> {
        let mut seen = vec![false; structure.members.len()];
        self.out.push(b'{');
        while let Some(header) = self.header()? {
            self.known(structure, &mut seen, &header)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Reads a member of a mutable structure, or skips an unknown one.
    fn known(&mut self, structure: &'m Struct, seen: &mut [bool], header: &MemberHeader) -> Walked<()> {
        let MemberHeader { id, start, length, origin, must_understand } = *header;
        let Some(index) = structure.members.iter().position(|member| member.id == id) else {
            if must_understand {
                return Err(self.fault(CdrErrorKind::MustUnderstand(id), start));
            }
            self.at += length;
            return Ok(());
        };
        if std::mem::replace(&mut seen[index], true) {
            return Err(self.fault(CdrErrorKind::RepeatedMember(id), start));
        }
        let member = &structure.members[index];
        let before = self.out.len();
        self.key(&member.name);
        within(&member.name, self.part((length, origin, false), |this| this.value(&member.member_type)))?;
        if self.leaves_out(structure, member) {
            self.out.truncate(before);
        }
        Ok(())
    }

    fn union(&mut self, union: &'m Union) -> Walked<()> {
        match union.extensibility.unwrap_or(self.unstated) {
            Extensibility::Mutable if self.version == Version::Two => {
                let length = self.length()?;
                self.part((length, self.origin, false), |this| this.mutable_union(union))
            }
            Extensibility::Mutable => self.complete(|this| this.mutable_union(union)),
            Extensibility::Appendable if self.version == Version::Two => {
                let length = self.length()?;
                self.part((length, self.origin, false), |this| this.cases(union))
            }
            _ => self.cases(union),
        }
    }

    fn cases(&mut self, union: &'m Union) -> Walked<()> {
        self.out.push(b'{');
        if let Some(case) = self.case(union)? {
            self.key(&case.name);
            within(&case.name, self.complete(|this| this.value(&case.member_type)))?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Writes the discriminator; returns the selected case.
    fn case(&mut self, union: &'m Union) -> Walked<Option<&'m Case>> {
        self.key(DISCRIMINATOR);
        let start = self.at;
        within(DISCRIMINATOR, self.value(&union.discriminator))?;
        let past = std::mem::replace(&mut self.at, start);
        let label = self.label(&union.discriminator)?;
        self.at = past;
        let case = union.cases.iter().find(|case| case.labels.iter().any(|of| i128::from(*of) == label));
        Ok(case.or_else(|| union.cases.iter().find(|case| case.is_default)))
    }

    /// Reads a mutable union: the discriminator, then the selected case, both with headers.
    fn mutable_union(&mut self, union: &'m Union) -> Walked<()> {
        self.out.push(b'{');
        let mut case = None;
        match self.header()? {
            Some(MemberHeader { id: DISCRIMINATOR_ID, start, length, origin, .. }) => {
                let before = self.at;
                self.part((length, origin, false), |this| {
                    case = this.case(union)?;
                    if this.end - this.at > PADDING {
                        let kind = CdrErrorKind::LengthAboveBound((this.end - before) as u32);
                        return Err(this.fault(kind, start));
                    }
                    Ok(())
                })?;
            }
            Some(header) => {
                return Err(self.fault(CdrErrorKind::UnexpectedMember(header.id), header.start));
            }
            None => return Err(self.fault(CdrErrorKind::MissingMember(DISCRIMINATOR_ID), self.at)),
        }
        let mut is_read = false;
        while let Some(header) = self.header()? {
            let MemberHeader { id, start, length, origin, .. } = header;
            match case {
                Some(case) if case.id == id => {
                    if std::mem::replace(&mut is_read, true) {
                        return Err(self.fault(CdrErrorKind::RepeatedMember(id), start));
                    }
                    self.key(&case.name);
                    let read = |this: &mut Self| this.value(&case.member_type);
                    within(&case.name, self.part((length, origin, false), read))?;
                }
                _ if id == DISCRIMINATOR_ID || union.cases.iter().any(|case| case.id == id) => {
                    return Err(self.fault(CdrErrorKind::UnexpectedMember(id), start));
                }
                _ if header.must_understand => {
                    return Err(self.fault(CdrErrorKind::MustUnderstand(id), start));
                }
                // A case that only a newer writer knows.
                _ => self.at += length,
            }
        }
        if let Some(case) = case.filter(|_| !is_read) {
            return Err(self.fault(CdrErrorKind::MissingMember(case.id), self.at.min(self.end)));
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Reads the value of a discriminator.
    fn label(&mut self, discriminator: &Type) -> Walked<i128> {
        match discriminator {
            Type::Primitive(primitive) => self.integer(*primitive),
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Enum(enumeration) => self.integer(enumeration.holder()),
                _ => Ok(0),
            },
            _ => Ok(0),
        }
    }
}
