//! A metric of a payload, `org.eclipse.tahu.protobuf.Payload`, as it is in the message.

use std::ops::RangeInclusive;

use crate::error::Parsed;
use crate::protobuf::wire::{FIXED32, FIXED64, LENGTH, Reader, VARINT};
use crate::sink::Scalar;

/// The data types whose bytes are the elements of an array.
const ARRAYS: RangeInclusive<u8> = 22..=34;

/// A value, without the meaning that its data type gives it.
#[derive(Clone, Copy, Default)]
pub(super) enum Raw<'m> {
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

impl<'m> Raw<'m> {
    /// The value by its data type, where it has no parts.
    #[inline(always)]
    pub(super) fn scalar(self, datatype: u8) -> Scalar<'m> {
        let whole = |value| integer(value, datatype).map_or(Scalar::Large(value as f64), Scalar::Int);
        match self {
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
}

/// A metric as it is in a message.
#[derive(Clone, Copy, Default)]
pub(super) struct Metric<'m> {
    pub(super) name: Option<&'m [u8]>,
    pub(super) alias: Option<u64>,
    /// 0 if the message does not say it.
    pub(super) datatype: u8,
    pub(super) timestamp: Option<u64>,
    pub(super) is_historical: bool,
    pub(super) is_transient: bool,
    pub(super) is_null: bool,
    pub(super) metadata: Option<Reader<'m>>,
    pub(super) properties: Option<Reader<'m>>,
    pub(super) value: Raw<'m>,
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
    pub(super) fn scalar(&self, datatype: u8) -> Scalar<'m> {
        if self.is_null { Scalar::Null } else { self.value.scalar(datatype) }
    }

    /// The integer that is its value.
    pub(super) fn number(&self) -> Option<u64> {
        match self.value {
            Raw::Int(value) => Some(value.into()),
            Raw::Long(value) => Some(value),
            _ => None,
        }
    }
}

/// The number of a data type; those that are not known are one.
pub(super) fn code(datatype: u64) -> u8 {
    u8::try_from(datatype).unwrap_or(u8::MAX)
}

pub(super) fn bytes<'m>(reader: &mut Reader<'m>) -> Parsed<&'m [u8]> {
    let part = reader.part()?;
    Ok(&part.bytes[part.at..])
}

/// Reads a value of one of the six types that metrics, properties, parameters and cells have, by its place among them.
#[inline(always)]
pub(super) fn plain<'m>(place: u32, wire: u8, reader: &mut Reader<'m>) -> Parsed<Option<Raw<'m>>> {
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

/// The integer that a number without a sign is by its data type; `None` if it is beyond the signed 64-bit range. Writers
/// extend the sign to 32 bits, or do not.
#[inline(always)]
pub(super) fn integer(value: u64, datatype: u8) -> Option<i64> {
    match datatype {
        1 => Some((value as i8).into()),
        2 => Some((value as i16).into()),
        3 => Some((value as i32).into()),
        4 => Some(value as i64),
        _ => i64::try_from(value).ok(),
    }
}
