//! Converts messages to JSON, to pass them on or show them. Nothing is compiled: the schema is walked.
//!
//! Every length is compared with the remaining bytes before it is used, and the text has a limit: both bound the work.

mod members;
mod unions;
mod values;

use std::sync::Arc;

use super::error::{CdrError, CdrErrorKind};
use super::plan::Version;
use super::walk::PADDING;
use super::wide::{Seen, Wide, WideForm};
use crate::json::JsonForm;
use crate::schema::{Extensibility, Primitive, Schema};

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
        length: usize,
        origin: usize,
        may_end: bool,
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
}
