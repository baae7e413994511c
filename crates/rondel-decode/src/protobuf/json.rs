//! Converts messages to JSON. Fields come in any order and in several parts: they are sorted by their index in the
//! type.

use std::collections::BTreeMap;

use super::descriptor::{Descriptors, Field, Kind, ProtobufType};
use super::walk::scalar;
use super::wire::{LENGTH, Reader};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::{MAX_DEPTH, write};
use crate::message::Text;
use crate::sink::Scalar;

/// Writes a message of this type as one JSON object.
pub(crate) fn write_json(of: &ProtobufType, payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let mut writer = Writer { descriptors: &of.descriptors, text };
    writer.message(of.root, &[Reader { bytes: payload, at: 0 }], 0)
}

struct Writer<'d, 't, 'o> {
    descriptors: &'d Descriptors,
    text: &'t mut Text<'o>,
}

/// Occurrence of a field in a message: its index in the type, the part of the message, and the position of its value in
/// it.
#[derive(Clone, Copy)]
struct Occurrence {
    field: u32,
    part: u32,
    value: u32,
    wire: u8,
}

/// Returns a number that must fit in 32 bits.
fn short(number: usize) -> Parsed<u32> {
    u32::try_from(number).map_err(|_| Fault::new(0, MessageErrorKind::TooLarge(0)))
}

/// Returns a reader of the value of a field in a part.
fn reader<'m>(parts: &[Reader<'m>], at: &Occurrence) -> Reader<'m> {
    Reader { bytes: parts[at.part as usize].bytes, at: at.value as usize }
}

impl Writer<'_, '_, '_> {
    /// Writes a message composed of all its parts.
    fn message(&mut self, of: usize, parts: &[Reader<'_>], depth: u32) -> Parsed<()> {
        let begin = parts.first().map_or(0, |part| part.at);
        if depth >= MAX_DEPTH {
            return Err(Fault::new(begin, MessageErrorKind::TooDeep));
        }
        let descriptors = self.descriptors;
        let message = &descriptors.messages[of];
        let occurrences = occurrences(&message.fields, parts)?;
        self.text.out.push(b'{');
        let mut left = &occurrences[..];
        for (place, field) in message.fields.iter().enumerate() {
            let count = left.iter().take_while(|found| found.field as usize == place).count();
            let (found, rest) = left.split_at(count);
            left = rest;
            if field.kind == Kind::Group || found.is_empty() && !field.is_repeated && field.is_optional {
                continue;
            }
            self.text.room(begin)?;
            write::key(&field.name, self.text.out);
            self.field(field, found, parts, depth).map_err(|fault| fault.in_member(&field.name))?;
        }
        self.text.out.push(b'}');
        Ok(())
    }

    fn field(&mut self, field: &Field, found: &[Occurrence], parts: &[Reader<'_>], depth: u32) -> Parsed<()> {
        if let (Kind::Message(of), true) = (field.kind, field.is_repeated)
            && self.descriptors.messages[of].is_entry
        {
            return self.map(of, found, parts, depth);
        }
        if field.is_repeated {
            return self.elements(field.kind, found, parts, depth);
        }
        match (field.kind, found.last()) {
            (Kind::Message(of), _) => {
                let inner = found.iter().map(|found| reader(parts, found).part());
                self.message(of, &inner.collect::<Parsed<Vec<_>>>()?, depth + 1)
            }
            (kind, Some(last)) => self.value(kind, &mut reader(parts, last), depth),
            (kind, None) => self.default(kind),
        }
    }

    /// Writes the default of a missing field.
    fn default(&mut self, kind: Kind) -> Parsed<()> {
        match kind {
            Kind::Bool => self.text.out.extend_from_slice(b"false"),
            Kind::String => self.text.out.extend_from_slice(b"\"\""),
            Kind::Bytes => self.text.out.extend_from_slice(b"[]"),
            Kind::Enum(of) => self.text.enumeration(0, &self.descriptors.enums[of].labels),
            Kind::Message(of) => self.message(of, &[], 0)?,
            kind if kind.is_float() => write::float(0.0, self.text.form, self.text.out),
            _ => self.text.out.push(b'0'),
        }
        Ok(())
    }

    fn elements(&mut self, kind: Kind, found: &[Occurrence], parts: &[Reader<'_>], depth: u32) -> Parsed<()> {
        self.text.out.push(b'[');
        let mut index = 0;
        for at in found {
            let mut values = reader(parts, at);
            let is_packed = at.wire == LENGTH && kind.is_packable();
            if is_packed {
                values = values.part()?;
            }
            while !is_packed || !values.is_at_end() {
                write::separate(self.text.out);
                self.value(kind, &mut values, depth).map_err(|fault| fault.in_element(index))?;
                index += 1;
                if !is_packed {
                    break;
                }
            }
        }
        self.text.out.push(b']');
        Ok(())
    }

    /// Writes a map as an object. If a key is repeated, the last entry counts.
    fn map(&mut self, of: usize, found: &[Occurrence], parts: &[Reader<'_>], depth: u32) -> Parsed<()> {
        let descriptors = self.descriptors;
        let field = |number| descriptors.messages[of].fields.iter().find(|field| field.number == number);
        let (Some(key), Some(value)) = (field(1), field(2)) else {
            self.text.out.extend_from_slice(b"{}");
            return Ok(());
        };
        let mut entries = BTreeMap::new();
        for at in found {
            let entry = reader(parts, at).part()?;
            entries.insert(entry_key(key.kind, entry)?, entry);
        }
        self.text.out.push(b'{');
        for (name, entry) in entries {
            write::key(&name, self.text.out);
            let inner = [entry];
            let values = occurrences(std::slice::from_ref(value), &inner)?;
            let written = match (value.kind, values.last()) {
                (Kind::Group, _) => {
                    self.text.out.extend_from_slice(b"null");
                    Ok(())
                }
                // The parts of a message are merged, as by `field`.
                _ => self.field(value, &values, &inner, depth + 1),
            };
            written.map_err(|fault| fault.in_member(&name))?;
        }
        self.text.out.push(b'}');
        Ok(())
    }

    fn value(&mut self, kind: Kind, reader: &mut Reader<'_>, depth: u32) -> Parsed<()> {
        let start = reader.at;
        self.text.room(start)?;
        match kind {
            Kind::Message(of) => return self.message(of, &[reader.part()?], depth + 1),
            Kind::Bytes => {
                let part = reader.part()?;
                write::bytes(&part.bytes[part.at..], self.text.out);
                return Ok(());
            }
            _ => {}
        }
        match scalar(kind, reader)? {
            Scalar::Bool(value) => {
                self.text.out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            Scalar::Int(value) => match kind {
                Kind::Enum(of) => self.text.enumeration(value, &self.descriptors.enums[of].labels),
                _ => write::integer(value.into(), self.text.out),
            },
            Scalar::Large(_) => {
                let mut again = Reader { at: start, ..*reader };
                let value = match kind {
                    Kind::Fixed64 => u64::from_le_bytes(again.array()?),
                    _ => again.varint()?,
                };
                write::integer(value.into(), self.text.out);
            }
            Scalar::Float(value) => write::float(value, self.text.form, self.text.out),
            Scalar::Text(value) => self.text.text(value, reader.at - value.len())?,
            _ => self.text.out.extend_from_slice(b"{}"),
        }
        Ok(())
    }
}

/// Returns the occurrences of fields, sorted by their index in the type, without those that a later field of the same
/// oneof replaces. Unknown fields, and fields with another wire type than their type, are skipped.
fn occurrences(fields: &[Field], parts: &[Reader<'_>]) -> Parsed<Vec<Occurrence>> {
    let mut found = Vec::new();
    // Last field of each oneof, and the occurrence from which on it is set.
    let mut oneofs = BTreeMap::new();
    for (part, reader) in parts.iter().enumerate() {
        let mut reader = *reader;
        while !reader.is_at_end() {
            let start = reader.at;
            let (number, wire) = reader.tag()?;
            let value = reader.at;
            reader.skip(wire, number, start)?;
            let place = fields.iter().position(|field| field.number == number);
            let Some((place, field)) = place.map(|place| (place, &fields[place])) else { continue };
            let is_packed = field.is_repeated && wire == LENGTH && field.kind.is_packable();
            if wire != field.kind.wire() && !is_packed {
                continue;
            }
            if let Some(oneof) = field.oneof
                && oneofs.get(&oneof).is_none_or(|(last, _)| *last != place)
            {
                oneofs.insert(oneof, (place, found.len()));
            }
            found.push(Occurrence { field: short(place)?, part: short(part)?, value: short(value)?, wire });
        }
    }
    let mut index = 0;
    found.retain(|other: &Occurrence| {
        let (place, at) = (other.field as usize, index);
        index += 1;
        let oneof = fields[place].oneof.and_then(|oneof| oneofs.get(&oneof));
        oneof.is_none_or(|(last, since)| *last == place && at >= *since)
    });
    found.sort_by_key(|found| found.field);
    Ok(found)
}

/// Returns the key of an entry as the name of a member.
fn entry_key(kind: Kind, entry: Reader<'_>) -> Parsed<String> {
    let mut reader = entry;
    let mut key = match kind {
        Kind::String => String::new(),
        Kind::Bool => "false".to_owned(),
        _ => "0".to_owned(),
    };
    while !reader.is_at_end() {
        let start = reader.at;
        let (number, wire) = reader.tag()?;
        if number != 1 || wire != kind.wire() {
            reader.skip(wire, number, start)?;
            continue;
        }
        let at = reader.at;
        key = match scalar(kind, &mut reader)? {
            Scalar::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => text.to_owned(),
                Err(_) => return Err(Fault::new(at, MessageErrorKind::NotText)),
            },
            Scalar::Int(value) => value.to_string(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Large(_) => match kind {
                Kind::Fixed64 => u64::from_le_bytes(Reader { at, ..reader }.array()?).to_string(),
                _ => Reader { at, ..reader }.varint()?.to_string(),
            },
            _ => key,
        };
    }
    Ok(key)
}
