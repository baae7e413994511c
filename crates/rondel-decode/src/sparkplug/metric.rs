//! The parts of a payload, `org.eclipse.tahu.protobuf.Payload`, and how they are written in CBOR.

use std::ops::RangeInclusive;

use crate::binary::put;
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::protobuf::wire::{FIXED32, FIXED64, LENGTH, Reader, VARINT};
use crate::sink::Scalar;

/// Metrics of templates, and sets of properties in properties, are nested at most this deep.
const MAX_DEPTH: u32 = 16;

/// The members of a metric that are written beside its name and value, as bits.
pub(super) type Attributes = u8;
pub(super) const ALIAS: Attributes = 1;
pub(super) const TIMESTAMP: Attributes = 2;
pub(super) const DATATYPE: Attributes = 4;
pub(super) const IS_HISTORICAL: Attributes = 8;
pub(super) const IS_TRANSIENT: Attributes = 16;
pub(super) const IS_NULL: Attributes = 32;
pub(super) const METADATA: Attributes = 64;
pub(super) const PROPERTIES: Attributes = 128;

/// The names of these members, each with its bit.
pub(super) const NAMED: [(&str, Attributes); 8] = [
    ("alias", ALIAS),
    ("timestamp", TIMESTAMP),
    ("datatype", DATATYPE),
    ("is_historical", IS_HISTORICAL),
    ("is_transient", IS_TRANSIENT),
    ("is_null", IS_NULL),
    ("metadata", METADATA),
    ("properties", PROPERTIES),
];

/// The names of data types, by their numbers.
const DATATYPES: [&str; 35] = [
    "Unknown",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float",
    "Double",
    "Boolean",
    "String",
    "DateTime",
    "Text",
    "UUID",
    "DataSet",
    "Bytes",
    "File",
    "Template",
    "PropertySet",
    "PropertySetList",
    "Int8Array",
    "Int16Array",
    "Int32Array",
    "Int64Array",
    "UInt8Array",
    "UInt16Array",
    "UInt32Array",
    "UInt64Array",
    "FloatArray",
    "DoubleArray",
    "BooleanArray",
    "StringArray",
    "DateTimeArray",
];

/// The data types whose bytes are the elements of an array.
const ARRAYS: RangeInclusive<u8> = 22..=34;

/// A value, without the meaning that its data type gives it.
#[derive(Clone, Copy, Default)]
enum Raw<'m> {
    #[default]
    None,
    /// Of 32 bits, and of 64; signed ones in two's complement.
    Int(u32),
    Long(u64),
    Float(f32),
    Double(f64),
    Bool(bool),
    Text(&'m [u8]),
    Bytes(&'m [u8]),
    DataSet(Reader<'m>),
    Template(Reader<'m>),
    Properties(Reader<'m>),
    PropertyList(Reader<'m>),
}

/// A metric as it is in a message.
#[derive(Clone, Copy, Default)]
pub(super) struct Metric<'m> {
    pub(super) name: Option<&'m [u8]>,
    pub(super) alias: Option<u64>,
    /// 0 if the message does not say it.
    pub(super) datatype: u8,
    timestamp: Option<u64>,
    is_historical: bool,
    is_transient: bool,
    is_null: bool,
    metadata: Option<Reader<'m>>,
    properties: Option<Reader<'m>>,
    value: Raw<'m>,
}

impl<'m> Metric<'m> {
    pub(super) fn read(mut reader: Reader<'m>) -> Parsed<Metric<'m>> {
        let mut metric = Metric::default();
        while !reader.is_at_end() {
            let start = reader.at;
            match reader.tag()? {
                (1, LENGTH) => metric.name = Some(bytes(&mut reader)?),
                (2, VARINT) => metric.alias = Some(reader.varint()?),
                (3, VARINT) => metric.timestamp = Some(reader.varint()?),
                (4, VARINT) => metric.datatype = code(reader.varint()?),
                (5, VARINT) => metric.is_historical = reader.varint()? != 0,
                (6, VARINT) => metric.is_transient = reader.varint()? != 0,
                (7, VARINT) => metric.is_null = reader.varint()? != 0,
                (8, LENGTH) => metric.metadata = Some(reader.part()?),
                (9, LENGTH) => metric.properties = Some(reader.part()?),
                (16, LENGTH) => metric.value = Raw::Bytes(bytes(&mut reader)?),
                (17, LENGTH) => metric.value = Raw::DataSet(reader.part()?),
                (18, LENGTH) => metric.value = Raw::Template(reader.part()?),
                (number, wire) => match plain(number.wrapping_sub(10), wire, &mut reader)? {
                    Some(value) => metric.value = value,
                    None => reader.skip(wire, number, start)?,
                },
            }
        }
        Ok(metric)
    }

    /// Whether the value means something else by another data type.
    pub(super) fn needs_datatype(&self) -> bool {
        self.datatype == 0
            && !self.is_null
            && matches!(self.value, Raw::Int(_) | Raw::Long(_) | Raw::Bytes(_))
    }

    /// The value, where it has no parts.
    #[inline(always)]
    pub(super) fn scalar(&self, datatype: u8) -> Scalar<'m> {
        let whole = |value| integer(value, datatype).map_or(Scalar::Large(value as f64), Scalar::Int);
        match self.value {
            _ if self.is_null => Scalar::Null,
            Raw::None => Scalar::Null,
            Raw::Int(value) => whole(value.into()),
            Raw::Long(value) => whole(value),
            Raw::Float(value) => Scalar::Float(value.into()),
            Raw::Double(value) => Scalar::Float(value),
            Raw::Bool(value) => Scalar::Bool(value),
            Raw::Text(text) => Scalar::Text(text),
            Raw::Bytes(bytes) if !ARRAYS.contains(&datatype) => Scalar::Bytes(bytes.len() as u64),
            _ => Scalar::Other,
        }
    }

    /// The integer that is its value.
    pub(super) fn number(&self) -> Option<u64> {
        match self.value {
            Raw::Int(value) => Some(value.into()),
            Raw::Long(value) => Some(value),
            _ => None,
        }
    }

    /// Writes the metric as a map, with this name and data type.
    pub(super) fn write(
        &self,
        name: Option<&[u8]>,
        datatype: u8,
        attributes: Attributes,
        out: &mut Vec<u8>,
    ) -> Parsed<()> {
        self.write_at(name, datatype, attributes, 0, out)
    }

    fn write_at(
        &self,
        name: Option<&[u8]>,
        datatype: u8,
        attributes: Attributes,
        depth: u32,
        out: &mut Vec<u8>,
    ) -> Parsed<()> {
        let is_read = |attribute: Attributes| attributes & attribute != 0;
        put::open_map(out);
        if let Some(name) = name {
            put::text(b"name", out);
            put::text(name, out);
        }
        if let Some(alias) = self.alias.filter(|_| is_read(ALIAS)) {
            put::text(b"alias", out);
            put::unsigned(alias, out);
        }
        if let Some(timestamp) = self.timestamp.filter(|_| is_read(TIMESTAMP)) {
            put::text(b"timestamp", out);
            put::unsigned(timestamp, out);
        }
        if is_read(DATATYPE) && datatype != 0 {
            put::text(b"datatype", out);
            write_datatype(datatype, out);
        }
        // A flag that is not there is false, and does not leave the one before as it is.
        for (attribute, name, value) in [
            (IS_HISTORICAL, &b"is_historical"[..], self.is_historical),
            (IS_TRANSIENT, b"is_transient", self.is_transient),
            (IS_NULL, b"is_null", self.is_null),
        ] {
            if is_read(attribute) {
                put::text(name, out);
                put::boolean(value, out);
            }
        }
        if let Some(metadata) = self.metadata.filter(|_| is_read(METADATA)) {
            put::text(b"metadata", out);
            write_metadata(metadata, out)?;
        }
        if let Some(properties) = self.properties.filter(|_| is_read(PROPERTIES)) {
            put::text(b"properties", out);
            write_properties(properties, depth, out)?;
        }
        put::text(b"value", out);
        match self.value {
            _ if self.is_null => put::null(out),
            value => write_value(value, datatype, attributes, depth, out)?,
        }
        put::close(out);
        Ok(())
    }
}

/// The number of a data type; those that are not known are one.
fn code(datatype: u64) -> u8 {
    u8::try_from(datatype).unwrap_or(u8::MAX)
}

fn bytes<'m>(reader: &mut Reader<'m>) -> Parsed<&'m [u8]> {
    let part = reader.part()?;
    Ok(&part.bytes[part.at..])
}

/// Reads a value of one of the six types that metrics, properties, parameters and cells have, by its place among them.
#[inline(always)]
fn plain<'m>(place: u32, wire: u8, reader: &mut Reader<'m>) -> Parsed<Option<Raw<'m>>> {
    Ok(Some(match (place, wire) {
        (0, VARINT) => Raw::Int(reader.varint()? as u32),
        (1, VARINT) => Raw::Long(reader.varint()?),
        (2, FIXED32) => Raw::Float(f32::from_le_bytes(reader.array()?)),
        (3, FIXED64) => Raw::Double(f64::from_le_bytes(reader.array()?)),
        (4, VARINT) => Raw::Bool(reader.varint()? != 0),
        (5, LENGTH) => Raw::Text(bytes(reader)?),
        _ => return Ok(None),
    }))
}

fn write_datatype(datatype: u8, out: &mut Vec<u8>) {
    match DATATYPES.get(usize::from(datatype)) {
        Some(name) => put::text(name.as_bytes(), out),
        None => put::unsigned(datatype.into(), out),
    }
}

fn write_value(
    value: Raw<'_>,
    datatype: u8,
    attributes: Attributes,
    depth: u32,
    out: &mut Vec<u8>,
) -> Parsed<()> {
    match value {
        Raw::None => put::null(out),
        Raw::Int(value) => write_integer(value.into(), datatype, out),
        Raw::Long(value) => write_integer(value, datatype, out),
        Raw::Float(value) => put::single(value, out),
        Raw::Double(value) => put::double(value, out),
        Raw::Bool(value) => put::boolean(value, out),
        Raw::Text(text) => put::text(text, out),
        Raw::Bytes(bytes) => write_bytes(bytes, datatype, out),
        Raw::DataSet(part) => write_dataset(part, out)?,
        Raw::Template(part) => write_template(part, attributes, depth + 1, out)?,
        Raw::Properties(part) => write_properties(part, depth + 1, out)?,
        Raw::PropertyList(mut part) => {
            put::open_array(out);
            while !part.is_at_end() {
                let start = part.at;
                match part.tag()? {
                    (1, LENGTH) => write_properties(part.part()?, depth + 1, out)?,
                    (number, wire) => part.skip(wire, number, start)?,
                }
            }
            put::close(out);
        }
    }
    Ok(())
}

/// The integer that a number without a sign is by its data type; `None` if it is beyond the signed 64-bit range. Writers
/// extend the sign to 32 bits, or do not.
#[inline(always)]
fn integer(value: u64, datatype: u8) -> Option<i64> {
    match datatype {
        1 => Some((value as i8).into()),
        2 => Some((value as i16).into()),
        3 => Some((value as i32).into()),
        4 => Some(value as i64),
        _ => i64::try_from(value).ok(),
    }
}

fn write_integer(value: u64, datatype: u8, out: &mut Vec<u8>) {
    match integer(value, datatype) {
        Some(value) => put::integer(value, out),
        None => put::unsigned(value, out),
    }
}

/// Writes bytes, or the elements of an array that they are.
fn write_bytes(bytes: &[u8], datatype: u8, out: &mut Vec<u8>) {
    match datatype {
        22 => elements::<1>(bytes, out, |e, out| put::integer(i8::from_le_bytes(e).into(), out)),
        23 => elements::<2>(bytes, out, |e, out| put::integer(i16::from_le_bytes(e).into(), out)),
        24 => elements::<4>(bytes, out, |e, out| put::integer(i32::from_le_bytes(e).into(), out)),
        25 => elements::<8>(bytes, out, |e, out| put::integer(i64::from_le_bytes(e), out)),
        26 => elements::<1>(bytes, out, |e, out| put::unsigned(u8::from_le_bytes(e).into(), out)),
        27 => elements::<2>(bytes, out, |e, out| put::unsigned(u16::from_le_bytes(e).into(), out)),
        28 => elements::<4>(bytes, out, |e, out| put::unsigned(u32::from_le_bytes(e).into(), out)),
        29 | 34 => elements::<8>(bytes, out, |e, out| put::unsigned(u64::from_le_bytes(e), out)),
        30 => elements::<4>(bytes, out, |e, out| put::single(f32::from_le_bytes(e), out)),
        31 => elements::<8>(bytes, out, |e, out| put::double(f64::from_le_bytes(e), out)),
        32 => {
            let (count, bits) = bytes.split_first_chunk().unwrap_or((&[0; 4], &[]));
            let count = u32::from_le_bytes(*count) as usize;
            put::open_array(out);
            for at in 0..count.min(bits.len() * 8) {
                put::boolean(bits[at / 8] << (at % 8) & 0x80 != 0, out);
            }
            put::close(out);
        }
        33 => {
            put::open_array(out);
            let whole = bytes.strip_suffix(&[0]).unwrap_or(bytes);
            let texts = whole.split(|byte| *byte == 0);
            texts.filter(|_| !bytes.is_empty()).for_each(|text| put::text(text, out));
            put::close(out);
        }
        _ => put::bytes(bytes, out),
    }
}

fn elements<const N: usize>(bytes: &[u8], out: &mut Vec<u8>, write: impl Fn([u8; N], &mut Vec<u8>)) {
    put::open_array(out);
    bytes.as_chunks::<N>().0.iter().for_each(|element| write(*element, out));
    put::close(out);
}

/// Writes a table as its columns and rows.
fn write_dataset(part: Reader<'_>, out: &mut Vec<u8>) -> Parsed<()> {
    let mut types = Vec::new();
    put::open_map(out);
    for (wanted, name) in [(2, &b"columns"[..]), (3, b"types"), (4, b"rows")] {
        put::text(name, out);
        put::open_array(out);
        let mut reader = part;
        while !reader.is_at_end() {
            let start = reader.at;
            match reader.tag()? {
                (2, LENGTH) if wanted == 2 => put::text(bytes(&mut reader)?, out),
                (3, VARINT) if wanted == 3 => add_type(code(reader.varint()?), &mut types, out),
                (3, LENGTH) if wanted == 3 => {
                    let mut packed = reader.part()?;
                    while !packed.is_at_end() {
                        add_type(code(packed.varint()?), &mut types, out);
                    }
                }
                (4, LENGTH) if wanted == 4 => write_row(reader.part()?, &types, out)?,
                (number, wire) => reader.skip(wire, number, start)?,
            }
            put::room(start, out)?;
        }
        put::close(out);
    }
    put::close(out);
    Ok(())
}

fn add_type(datatype: u8, types: &mut Vec<u8>, out: &mut Vec<u8>) {
    types.push(datatype);
    write_datatype(datatype, out);
}

fn write_row(mut row: Reader<'_>, types: &[u8], out: &mut Vec<u8>) -> Parsed<()> {
    put::open_array(out);
    let mut types = types.iter();
    while !row.is_at_end() {
        let start = row.at;
        match row.tag()? {
            (1, LENGTH) => {
                let mut cell = row.part()?;
                let mut value = Raw::None;
                while !cell.is_at_end() {
                    let start = cell.at;
                    let (number, wire) = cell.tag()?;
                    match plain(number.wrapping_sub(1), wire, &mut cell)? {
                        Some(found) => value = found,
                        None => cell.skip(wire, number, start)?,
                    }
                }
                write_value(value, types.next().copied().unwrap_or(0), 0, 0, out)?;
            }
            (number, wire) => row.skip(wire, number, start)?,
        }
    }
    put::close(out);
    Ok(())
}

/// Writes a template as its metrics and parameters.
fn write_template(part: Reader<'_>, attributes: Attributes, depth: u32, out: &mut Vec<u8>) -> Parsed<()> {
    if depth > MAX_DEPTH {
        return Err(Fault::new(part.at, MessageErrorKind::TooDeep));
    }
    put::open_map(out);
    for (wanted, name) in [(2, &b"metrics"[..]), (3, b"parameters")] {
        put::text(name, out);
        put::open_array(out);
        let mut reader = part;
        while !reader.is_at_end() {
            let start = reader.at;
            match reader.tag()? {
                (2, LENGTH) if wanted == 2 => {
                    let metric = Metric::read(reader.part()?)?;
                    metric.write_at(metric.name, metric.datatype, attributes, depth, out)?;
                }
                (3, LENGTH) if wanted == 3 => write_parameter(reader.part()?, out)?,
                (number, wire) => reader.skip(wire, number, start)?,
            }
            put::room(start, out)?;
        }
        put::close(out);
    }
    let mut reader = part;
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag()? {
            (1, LENGTH) => {
                put::text(b"version", out);
                put::text(bytes(&mut reader)?, out);
            }
            (4, LENGTH) => {
                put::text(b"template_ref", out);
                put::text(bytes(&mut reader)?, out);
            }
            (5, VARINT) => {
                put::text(b"is_definition", out);
                put::boolean(reader.varint()? != 0, out);
            }
            (number, wire) => reader.skip(wire, number, start)?,
        }
    }
    put::close(out);
    Ok(())
}

fn write_parameter(mut part: Reader<'_>, out: &mut Vec<u8>) -> Parsed<()> {
    let (mut name, mut datatype, mut value) = (None, 0, Raw::None);
    while !part.is_at_end() {
        let start = part.at;
        match part.tag()? {
            (1, LENGTH) => name = Some(bytes(&mut part)?),
            (2, VARINT) => datatype = code(part.varint()?),
            (number, wire) => match plain(number.wrapping_sub(3), wire, &mut part)? {
                Some(found) => value = found,
                None => part.skip(wire, number, start)?,
            },
        }
    }
    put::open_map(out);
    if let Some(name) = name {
        put::text(b"name", out);
        put::text(name, out);
    }
    put::text(b"value", out);
    write_value(value, datatype, 0, 0, out)?;
    put::close(out);
    Ok(())
}

/// Writes a set of properties as a map of their values.
fn write_properties(part: Reader<'_>, depth: u32, out: &mut Vec<u8>) -> Parsed<()> {
    if depth > MAX_DEPTH {
        return Err(Fault::new(part.at, MessageErrorKind::TooDeep));
    }
    put::open_map(out);
    // The keys come by themselves, usually before the values.
    let (mut keys, mut values) = (part, part);
    while let Some(key) = next(&mut keys, 1)? {
        let Some(value) = next(&mut values, 2)? else { break };
        put::text(&key.bytes[key.at..], out);
        write_property(value, depth, out)?;
        put::room(key.at, out)?;
    }
    put::close(out);
    Ok(())
}

/// The next part with this number.
fn next<'m>(reader: &mut Reader<'m>, wanted: u32) -> Parsed<Option<Reader<'m>>> {
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag()? {
            (number, LENGTH) if number == wanted => return Ok(Some(reader.part()?)),
            (number, wire) => reader.skip(wire, number, start)?,
        }
    }
    Ok(None)
}

fn write_property(mut part: Reader<'_>, depth: u32, out: &mut Vec<u8>) -> Parsed<()> {
    let (mut datatype, mut is_null, mut value) = (0, false, Raw::None);
    while !part.is_at_end() {
        let start = part.at;
        match part.tag()? {
            (1, VARINT) => datatype = code(part.varint()?),
            (2, VARINT) => is_null = part.varint()? != 0,
            (9, LENGTH) => value = Raw::Properties(part.part()?),
            (10, LENGTH) => value = Raw::PropertyList(part.part()?),
            (number, wire) => match plain(number.wrapping_sub(3), wire, &mut part)? {
                Some(found) => value = found,
                None => part.skip(wire, number, start)?,
            },
        }
    }
    let value = if is_null { Raw::None } else { value };
    write_value(value, datatype, 0, depth, out)
}

fn write_metadata(mut part: Reader<'_>, out: &mut Vec<u8>) -> Parsed<()> {
    put::open_map(out);
    while !part.is_at_end() {
        let start = part.at;
        let (number, wire) = part.tag()?;
        let name = match (number, wire) {
            (1, VARINT) => "is_multi_part",
            (3, VARINT) => "size",
            (4, VARINT) => "seq",
            (2, LENGTH) => "content_type",
            (5, LENGTH) => "file_name",
            (6, LENGTH) => "file_type",
            (7, LENGTH) => "md5",
            (8, LENGTH) => "description",
            _ => {
                part.skip(wire, number, start)?;
                continue;
            }
        };
        put::text(name.as_bytes(), out);
        match (number, wire) {
            (1, _) => put::boolean(part.varint()? != 0, out),
            (_, VARINT) => put::unsigned(part.varint()?, out),
            _ => put::text(bytes(&mut part)?, out),
        }
        put::room(start, out)?;
    }
    put::close(out);
    Ok(())
}
