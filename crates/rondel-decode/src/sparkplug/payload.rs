//! The members of a payload.

use super::cbor::Attributes;
use super::metric::Metric;
use crate::binary::{self, BinaryFormat, put};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::message::Text;
use crate::protobuf::wire::{LENGTH, Reader, VARINT};

/// Tag of a metric (Protobuf: field number and wire type).
pub(super) const METRIC: u8 = 2 << 3 | LENGTH;

/// Calls a function with every metric of a payload.
#[inline(always)]
pub(super) fn each_metric<'m>(
    payload: &'m [u8],
    mut metric: impl FnMut(Reader<'m>) -> Parsed<()>,
) -> Parsed<()> {
    let mut reader = Reader { bytes: payload, at: 0 };
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag()? {
            (2, LENGTH) => metric(reader.part()?)?,
            (number, wire) => reader.skip(wire, number, start)?,
        }
    }
    Ok(())
}

/// Writes the members of a payload beside its metrics; `arrival`, in milliseconds, replaces its timestamp.
#[inline(always)]
pub(super) fn others(payload: &[u8], arrival: Option<i64>, out: &mut Vec<u8>) -> Parsed<()> {
    let mut reader = Reader { bytes: payload, at: 0 };
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag()? {
            (1, VARINT) => {
                let sent = reader.varint()?;
                if arrival.is_none() {
                    put::text(b"timestamp", out);
                    put::unsigned(sent, out);
                }
            }
            (3, VARINT) => {
                put::text(b"seq", out);
                put::unsigned(reader.varint()?, out);
            }
            (4, LENGTH) => {
                let uuid = uuid(&mut reader)?;
                put::text(b"uuid", out);
                put::text(uuid, out);
            }
            (5, LENGTH) => {
                let body = reader.part()?;
                put::text(b"body", out);
                put::bytes(&body.bytes[body.at..], out);
            }
            (number, wire) => reader.skip(wire, number, start)?,
        }
    }
    if let Some(arrival) = arrival {
        put::text(b"timestamp", out);
        put::integer(arrival, out);
    }
    Ok(())
}

/// Reads the member that says what the body is.
pub(super) fn uuid<'p>(reader: &mut Reader<'p>) -> Parsed<&'p [u8]> {
    let part = reader.part()?;
    match &part.bytes[part.at..] {
        b"SPBV1.0_COMPRESSED" => Err(Fault::new(part.at, MessageErrorKind::Compressed)),
        uuid => Ok(uuid),
    }
}

/// Returns the sequence number of a message, from 0 to 255, if it has one.
#[inline]
pub fn sequence(payload: &[u8]) -> Option<u8> {
    let mut reader = Reader { bytes: payload, at: 0 };
    let mut found = None;
    while !reader.is_at_end() {
        let start = reader.at;
        // Most parts are metrics of less than 128 bytes.
        if let Some(&[METRIC, length @ 0..0x80]) = payload.get(start..start + 2) {
            reader.at += 2 + usize::from(length);
            continue;
        }
        match reader.tag().ok()? {
            (3, VARINT) => found = Some(reader.varint().ok()?),
            (number, wire) => reader.skip(wire, number, start).ok()?,
        }
    }
    let is_whole = reader.at == payload.len();
    u8::try_from(found.filter(|_| is_whole)?).ok()
}

/// Writes a payload as an object with the members of a message. Nothing is known of births: aliases have no names.
pub(crate) fn write_json(payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let mut message = Vec::new();
    put::open_map(&mut message);
    put::text(b"metrics", &mut message);
    put::open_array(&mut message);
    each_metric(payload, |part| {
        let metric = Metric::read(part)?;
        metric.write(metric.name, metric.datatype, Attributes::MAX, &mut message)?;
        put::room(part.at, &message)
    })?;
    put::close(&mut message);
    others(payload, None, &mut message)?;
    put::close(&mut message);
    // Offsets in what was written say nothing about the payload.
    binary::write_json(BinaryFormat::Cbor, &message, text).map_err(|fault| fault.at_start())
}
