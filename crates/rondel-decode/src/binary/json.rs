//! Converts messages to JSON. Keys of maps are texts, or integers in decimal digits; members with other keys are
//! omitted, since no path names them.

use super::cbor::Cbor;
use super::msgpack::Msgpack;
use super::{BinaryFormat, Format, Reader, Token};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::{MAX_DEPTH, write};
use crate::message::Text;
use crate::sink::Scalar;

const NS_PER_S: i64 = 1_000_000_000;

/// Writes a message as one JSON value.
pub(crate) fn write_json(format: BinaryFormat, payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let mut writer = Writer { reader: Reader { bytes: payload, at: 0, is_epoch: false }, text };
    match format {
        BinaryFormat::Cbor => writer.value::<Cbor>(0)?,
        BinaryFormat::Msgpack => writer.value::<Msgpack>(0)?,
    }
    match writer.reader.rest() {
        0 => Ok(()),
        _ => Err(Fault::new(writer.reader.at, MessageErrorKind::TrailingBytes)),
    }
}

struct Writer<'m, 't, 'o> {
    reader: Reader<'m>,
    text: &'t mut Text<'o>,
}

impl Writer<'_, '_, '_> {
    fn value<F: Format>(&mut self, depth: u32) -> Parsed<()> {
        let start = self.reader.at;
        self.text.room(start)?;
        let token = F::token(&mut self.reader)?;
        if matches!(token, Token::Array(_) | Token::Map(_)) && depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        match token {
            Token::Scalar(Scalar::Bytes(_)) => {
                let (mut again, mut bytes) = (Reader { at: start, ..self.reader }, Vec::new());
                F::bytes(&mut again, &mut bytes)?;
                write::bytes(&bytes, self.text.out);
            }
            Token::Scalar(scalar) => self.scalar(scalar)?,
            Token::OpenText => {
                let mut parts = Vec::new();
                F::text_parts(&mut self.reader, &mut parts)?;
                self.text.text(&parts, start)?;
            }
            Token::Array(count) => {
                self.text.out.push(b'[');
                let mut passed = 0;
                while !self.is_over::<F>(count, passed) {
                    write::separate(self.text.out);
                    self.value::<F>(depth + 1).map_err(|fault| fault.in_element(passed))?;
                    passed += 1;
                }
                self.text.out.push(b']');
            }
            Token::Map(count) => {
                self.text.out.push(b'{');
                let mut passed = 0;
                while !self.is_over::<F>(count, passed) {
                    self.member::<F>(depth)?;
                    passed += 1;
                }
                self.text.out.push(b'}');
            }
            Token::End => return Err(Fault::new(start, MessageErrorKind::Misplaced)),
        }
        Ok(())
    }

    /// Whether the elements or members have ended: after `count` ones, or at an end, which is skipped.
    fn is_over<F: Format>(&mut self, count: Option<u64>, passed: u64) -> bool {
        match count {
            Some(count) => passed == count,
            None => F::end(&mut self.reader),
        }
    }

    fn member<F: Format>(&mut self, depth: u32) -> Parsed<()> {
        let start = self.reader.at;
        let mut parts = Vec::new();
        let number;
        let key = match F::token(&mut self.reader)? {
            Token::Scalar(Scalar::Text(text)) => Some(text),
            Token::Scalar(Scalar::Int(value)) => {
                number = value.to_string();
                Some(number.as_bytes())
            }
            Token::OpenText => {
                F::text_parts(&mut self.reader, &mut parts)?;
                Some(&parts[..])
            }
            Token::Scalar(_) => None,
            Token::Map(_) | Token::Array(_) => {
                self.reader.at = start;
                F::skip(&mut self.reader, 1, depth + 1)?;
                None
            }
            Token::End => return Err(Fault::new(start, MessageErrorKind::Misplaced)),
        };
        let Some(key) = key else { return F::skip(&mut self.reader, 1, depth + 1) };
        write::separate(self.text.out);
        self.text.text(key, start)?;
        self.text.out.push(b':');
        self.value::<F>(depth + 1).map_err(|fault| fault.in_member(&String::from_utf8_lossy(key)))
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Parsed<()> {
        let out = &mut *self.text.out;
        match scalar {
            Scalar::Null => out.extend_from_slice(b"null"),
            Scalar::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Scalar::Int(value) => write::integer(value.into(), out),
            Scalar::Large(nearest) => {
                // Both encodings write the 64 bits of such an integer last.
                let bytes = self.reader.bytes[..self.reader.at].last_chunk().copied().unwrap_or_default();
                let bits = i128::from(u64::from_be_bytes(bytes));
                write::integer(if nearest < 0.0 { -1 - bits } else { bits }, out);
            }
            Scalar::Float(value) => write::float(value, self.text.form, out),
            Scalar::Text(text) => return self.text.text(text, self.reader.at - text.len()),
            Scalar::Instant(nanos) | Scalar::Span(nanos) => {
                let (seconds, nanos) = (nanos.div_euclid(NS_PER_S), nanos.rem_euclid(NS_PER_S));
                out.extend_from_slice(format!("{{\"sec\":{seconds},\"nanosec\":{nanos}}}").as_bytes());
            }
            // Present, but of a type that cannot be read.
            Scalar::Bytes(_) | Scalar::Beyond | Scalar::Other => out.extend_from_slice(b"{}"),
        }
        Ok(())
    }
}
