//! The parts of a payload as CBOR.

use super::metric::{Metric, Raw, bytes, code, integer, plain};
use crate::binary::put;
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::protobuf::wire::{LENGTH, Reader, VARINT};

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

/// Writes a metric that has no value any more: nothing is known of it but its name.
pub(super) fn write_ended(name: &[u8], out: &mut Vec<u8>) {
    put::open_map(out);
    put::text(b"name", out);
    put::text(name, out);
    for (member, _) in NAMED {
        put::text(member.as_bytes(), out);
        put::null(out);
    }
    put::text(b"value", out);
    put::null(out);
    put::close(out);
}

impl Metric<'_> {
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
