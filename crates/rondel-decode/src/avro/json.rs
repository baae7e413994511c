//! Converts messages to JSON: unions as the value of their branch, maps as objects, enumerations as texts, and points in
//! time as objects of seconds and nanoseconds.

use super::schema::{Kind, Logical};
use super::walk::{scalar, time};
use super::wire::Reader;
use super::{AvroType, schema::Types};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::{MAX_DEPTH, write};
use crate::message::Text;
use crate::sink::Scalar;

const NS_PER_S: i64 = 1_000_000_000;

/// Writes a message of this type as one JSON value.
pub(crate) fn write_json(of: &AvroType, payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let mut writer = Writer { types: &of.types, reader: Reader::new(payload), text };
    writer.value(of.root, 0)?;
    match writer.reader.rest() {
        0 => Ok(()),
        _ => Err(Fault::new(writer.reader.at, MessageErrorKind::TrailingBytes)),
    }
}

struct Writer<'d, 't, 'o> {
    types: &'d Types,
    reader: Reader<'d>,
    text: &'t mut Text<'o>,
}

impl Writer<'_, '_, '_> {
    fn value(&mut self, of: usize, depth: u32) -> Parsed<()> {
        let (types, start) = (self.types, self.reader.at);
        self.text.room(start)?;
        if depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        let node = types.node(of);
        match &node.kind {
            Kind::Record(fields) => {
                self.text.out.push(b'{');
                for field in fields {
                    write::key(&field.name, self.text.out);
                    self.value(field.of, depth + 1).map_err(|fault| fault.in_member(&field.name))?;
                }
                self.text.out.push(b'}');
            }
            Kind::Union(branches) => {
                let branch = self.reader.index(branches.len())?;
                self.value(branches[branch], depth + 1)?;
            }
            Kind::Array(of) => self.elements(*of, depth)?,
            Kind::Map(of) => self.entries(*of, depth)?,
            Kind::Bytes | Kind::Fixed(_) if !matches!(node.logical, Logical::Decimal(_)) => {
                let bytes = match node.kind {
                    Kind::Fixed(size) => self.reader.take(size, start)?,
                    _ => self.reader.bytes()?,
                };
                write::bytes(bytes, self.text.out);
            }
            _ => {
                let value = scalar(node, &mut self.reader)?;
                match (time(node.logical, value), value) {
                    // A time that no 64 bits of nanoseconds hold stays a number.
                    (Scalar::Beyond, value) | (value, _) => self.scalar(value)?,
                }
            }
        }
        Ok(())
    }

    fn elements(&mut self, of: usize, depth: u32) -> Parsed<()> {
        self.text.out.push(b'[');
        let (is_empty, mut index) = (self.types.node(of).is_empty, 0);
        while let Some(block) = self.reader.block(is_empty)? {
            for _ in 0..block.count {
                write::separate(self.text.out);
                self.value(of, depth + 1).map_err(|fault| fault.in_element(index))?;
                index += 1;
            }
        }
        self.text.out.push(b']');
        Ok(())
    }

    fn entries(&mut self, of: usize, depth: u32) -> Parsed<()> {
        self.text.out.push(b'{');
        while let Some(block) = self.reader.block(false)? {
            for _ in 0..block.count {
                let key = self.reader.bytes()?;
                write::separate(self.text.out);
                self.text.text(key, self.reader.at - key.len())?;
                self.text.out.push(b':');
                let written = self.value(of, depth + 1);
                written.map_err(|fault| fault.in_member(&String::from_utf8_lossy(key)))?;
            }
        }
        self.text.out.push(b'}');
        Ok(())
    }

    fn scalar(&mut self, value: Scalar<'_>) -> Parsed<()> {
        let out = &mut *self.text.out;
        match value {
            Scalar::Null => out.extend_from_slice(b"null"),
            Scalar::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Scalar::Int(value) => write::integer(value.into(), out),
            Scalar::Float(value) | Scalar::Large(value) => write::float(value, self.text.form, out),
            Scalar::Text(text) => {
                return self.text.text(text, self.reader.at - text.len().min(self.reader.at));
            }
            Scalar::Instant(nanos) | Scalar::Span(nanos) => {
                let (seconds, nanos) = (nanos.div_euclid(NS_PER_S), nanos.rem_euclid(NS_PER_S));
                out.extend_from_slice(format!("{{\"sec\":{seconds},\"nanosec\":{nanos}}}").as_bytes());
            }
            Scalar::Bytes(_) | Scalar::Beyond | Scalar::Other => out.extend_from_slice(b"{}"),
        }
        Ok(())
    }
}
