//! Encoder and decoder of the MQTT 3.1.1 and 5 packets that a client needs. Decoded packets borrow
//! their bytes.

use super::{Qos, Version};

/// The bytes are not a valid MQTT packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Length limit of a packet without its fixed header, in bytes.
pub(super) const LONGEST: usize = 268_435_455;

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
pub(super) const PUBLISH: u8 = 0x30;
pub(super) const PUBACK: u8 = 0x40;
pub(super) const PUBREC: u8 = 0x50;
pub(super) const PUBREL: u8 = 0x62;
pub(super) const PUBCOMP: u8 = 0x70;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const UNSUBSCRIBE: u8 = 0xa2;
const UNSUBACK: u8 = 0xb0;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
const DISCONNECT: u8 = 0xe0;
/// Reason code of DISCONNECT: another client with the same id took over the session.
pub(super) const TAKEN_OVER: u8 = 0x8e;
/// DUP flag in the first byte of PUBLISH: the message may have been sent before.
pub(super) const DUP: u8 = 0x08;

/// A packet from the broker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    ConnAck(ConnAck),
    Publish(Publish<'a>),
    PubAck(u16, u8),
    PubRec(u16, u8),
    PubRel(u16),
    PubComp(u16),
    SubAck(u16, &'a [u8]),
    UnsubAck,
    PingResp,
    Disconnect(u8, String),
}

/// CONNACK: the broker's answer to a connection request, with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnAck {
    pub(super) session_present: bool,
    /// Return code (3.1.1) or reason code (5); 0 is success.
    pub(super) code: u8,
    pub(super) receive_maximum: u16,
    pub(super) maximum_qos: Qos,
    pub(super) maximum_packet: usize,
    pub(super) keep_alive: Option<u16>,
    /// The broker's reason string; may be empty.
    pub(super) reason: String,
}

impl ConnAck {
    /// The limits of a broker that sets none.
    pub(super) fn unlimited() -> ConnAck {
        ConnAck {
            session_present: false,
            code: 0,
            receive_maximum: u16::MAX,
            maximum_qos: Qos::ExactlyOnce,
            maximum_packet: LONGEST,
            keep_alive: None,
            reason: String::new(),
        }
    }
}

/// PUBLISH: a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Publish<'a> {
    pub(super) duplicate: bool,
    pub(super) retained: bool,
    pub(super) qos: Qos,
    pub(super) topic: &'a str,
    /// Packet id; 0 at QoS 0.
    pub(super) id: u16,
    pub(super) payload: &'a [u8],
}

/// Finds the first complete packet; returns its first byte and the start and end of its body.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<(u8, usize, usize)>, Malformed> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let mut length = 0;
    for (i, &byte) in rest.iter().enumerate().take(4) {
        length |= usize::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            let start = 2 + i;
            return Ok((bytes.len() - start >= length).then_some((first, start, start + length)));
        }
    }
    if rest.len() >= 4 { Err(Malformed) } else { Ok(None) }
}

/// Decodes a packet from its first byte and its body.
pub(super) fn decode(version: Version, first: u8, body: &[u8]) -> Result<Packet<'_>, Malformed> {
    let mut body = Fields(body);
    let five = version == Version::V5;
    let acknowledged = |mut body: Fields<'_>| {
        let id = body.id()?;
        // Success may be omitted.
        let reason = if five && !body.0.is_empty() { body.byte()? } else { 0 };
        Ok((id, reason))
    };
    match first & 0xf0 {
        CONNACK => {
            let session_present = body.byte()? & 1 == 1;
            let mut answer = ConnAck { session_present, code: body.byte()?, ..ConnAck::unlimited() };
            // A broker without version 5 answers in the format of version 3.1.1.
            if five && !body.0.is_empty() {
                body.properties(|id, value| match (id, value) {
                    (0x21, PropertyValue::Number(n)) => answer.receive_maximum = n.clamp(1, 0xffff) as u16,
                    (0x24, PropertyValue::Number(0)) => answer.maximum_qos = Qos::AtMostOnce,
                    (0x24, PropertyValue::Number(_)) => answer.maximum_qos = Qos::AtLeastOnce,
                    (0x27, PropertyValue::Number(n)) => answer.maximum_packet = n as usize,
                    (0x13, PropertyValue::Number(n)) => answer.keep_alive = Some(n as u16),
                    (0x1f, PropertyValue::Text(text)) => answer.reason = text.to_owned(),
                    _ => {}
                })?;
            }
            Ok(Packet::ConnAck(answer))
        }
        PUBLISH => {
            let qos = Qos::from_number(first >> 1 & 3).ok_or(Malformed)?;
            let topic = body.text()?;
            let id = if qos == Qos::AtMostOnce { 0 } else { body.id()? };
            if five {
                body.properties(|_, _| ())?;
            }
            let (duplicate, retained) = (first & DUP != 0, first & 1 != 0);
            Ok(Packet::Publish(Publish { duplicate, retained, qos, topic, id, payload: body.0 }))
        }
        PUBACK => acknowledged(body).map(|(id, reason)| Packet::PubAck(id, reason)),
        PUBREC => acknowledged(body).map(|(id, reason)| Packet::PubRec(id, reason)),
        0x60 => acknowledged(body).map(|(id, _)| Packet::PubRel(id)),
        PUBCOMP => acknowledged(body).map(|(id, _)| Packet::PubComp(id)),
        SUBACK => {
            let id = body.id()?;
            if five {
                body.properties(|_, _| ())?;
            }
            Ok(Packet::SubAck(id, body.0))
        }
        UNSUBACK => body.id().map(|_| Packet::UnsubAck),
        PINGRESP => Ok(Packet::PingResp),
        DISCONNECT => {
            let code = if body.0.is_empty() { 0 } else { body.byte()? };
            let mut reason = String::new();
            if !body.0.is_empty() {
                body.properties(|id, value| {
                    if let (0x1f, PropertyValue::Text(text)) = (id, value) {
                        reason = text.to_owned();
                    }
                })?;
            }
            Ok(Packet::Disconnect(code, reason))
        }
        _ => Err(Malformed),
    }
}

/// Value of a property.
enum PropertyValue<'a> {
    Number(u32),
    Text(&'a str),
    Other,
}

/// The rest of a packet's body.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|b| b[0])
    }

    fn short(&mut self) -> Result<u16, Malformed> {
        self.take(2).map(|b| u16::from_be_bytes([b[0], b[1]]))
    }

    /// Reads a packet id, which is never 0.
    fn id(&mut self) -> Result<u16, Malformed> {
        self.short().and_then(|id| if id == 0 { Err(Malformed) } else { Ok(id) })
    }

    fn variable(&mut self) -> Result<u32, Malformed> {
        let mut value = 0;
        for i in 0..4 {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.short()?;
        std::str::from_utf8(self.take(usize::from(length))?).map_err(|_| Malformed)
    }

    /// Reads the properties and calls `each` with their id and value.
    fn properties(&mut self, mut each: impl FnMut(u32, PropertyValue<'a>)) -> Result<(), Malformed> {
        let length = self.variable()? as usize;
        let mut all = Fields(self.take(length)?);
        while !all.0.is_empty() {
            let id = all.variable()?;
            let value = match id {
                0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28 | 0x29 | 0x2a => {
                    PropertyValue::Number(all.byte()?.into())
                }
                0x13 | 0x21 | 0x22 | 0x23 => PropertyValue::Number(all.short()?.into()),
                0x02 | 0x11 | 0x18 | 0x27 => {
                    let b = all.take(4)?;
                    PropertyValue::Number(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
                }
                0x0b => PropertyValue::Number(all.variable()?),
                0x03 | 0x08 | 0x12 | 0x15 | 0x1a | 0x1c | 0x1f => PropertyValue::Text(all.text()?),
                0x09 | 0x16 => {
                    let length = all.short()?;
                    all.take(usize::from(length))?;
                    PropertyValue::Other
                }
                0x26 => {
                    all.text()?;
                    all.text()?;
                    PropertyValue::Other
                }
                _ => return Err(Malformed),
            };
            each(id, value);
        }
        Ok(())
    }
}

/// CONNECT: a connection request.
pub(super) struct Connect<'a> {
    pub(super) version: Version,
    pub(super) client: &'a str,
    pub(super) clean: bool,
    pub(super) session_expiry: u32,
    pub(super) receive_maximum: Option<u16>,
    pub(super) keep_alive: u16,
    pub(super) user: Option<&'a str>,
    pub(super) password: Option<&'a [u8]>,
}

/// Writes a fixed header; the caller has checked the length of the body.
fn header(first: u8, length: usize, out: &mut Vec<u8>) {
    out.push(first);
    variable(length, out);
}

fn variable(mut value: usize, out: &mut Vec<u8>) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    // The lengths of all strings were checked.
    let length = bytes.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(length as u16).to_be_bytes());
    out.extend_from_slice(&bytes[..length]);
}

pub(super) fn connect(connect: &Connect<'_>, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    text(b"MQTT", &mut body);
    body.push(if connect.version == Version::V5 { 5 } else { 4 });
    let flag = |on: bool, bit: u8| u8::from(on) << bit;
    body.push(flag(connect.user.is_some(), 7) | flag(connect.password.is_some(), 6) | flag(connect.clean, 1));
    body.extend_from_slice(&connect.keep_alive.to_be_bytes());
    if connect.version == Version::V5 {
        body.extend_from_slice(&[if connect.receive_maximum.is_some() { 8 } else { 5 }, 0x11]);
        body.extend_from_slice(&connect.session_expiry.to_be_bytes());
        if let Some(maximum) = connect.receive_maximum {
            body.push(0x21);
            body.extend_from_slice(&maximum.to_be_bytes());
        }
    }
    text(connect.client.as_bytes(), &mut body);
    for field in [connect.user.map(str::as_bytes), connect.password].into_iter().flatten() {
        text(field, &mut body);
    }
    header(CONNECT, body.len(), out);
    out.append(&mut body);
}

pub(super) fn subscribe<'f>(
    version: Version,
    id: u16,
    filters: impl Iterator<Item = (&'f str, Qos)>,
    out: &mut Vec<u8>,
) {
    let mut body = id.to_be_bytes().to_vec();
    if version == Version::V5 {
        body.push(0);
    }
    for (filter, qos) in filters {
        text(filter.as_bytes(), &mut body);
        body.push(qos as u8);
    }
    header(SUBSCRIBE, body.len(), out);
    out.append(&mut body);
}

pub(super) fn unsubscribe(version: Version, id: u16, filter: &str, out: &mut Vec<u8>) {
    let properties = usize::from(version == Version::V5);
    header(UNSUBSCRIBE, 4 + properties + filter.len(), out);
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0][..properties]);
    text(filter.as_bytes(), out);
}

/// Returns the length of a PUBLISH packet without its fixed header.
pub(super) fn publish_length(version: Version, publish: &Publish<'_>) -> usize {
    let id = if publish.qos == Qos::AtMostOnce { 0 } else { 2 };
    2 + publish.topic.len() + id + usize::from(version == Version::V5) + publish.payload.len()
}

pub(super) fn publish(version: Version, publish: &Publish<'_>, out: &mut Vec<u8>) {
    let first =
        PUBLISH | u8::from(publish.duplicate) << 3 | (publish.qos as u8) << 1 | u8::from(publish.retained);
    header(first, publish_length(version, publish), out);
    text(publish.topic.as_bytes(), out);
    if publish.qos != Qos::AtMostOnce {
        out.extend_from_slice(&publish.id.to_be_bytes());
    }
    if version == Version::V5 {
        out.push(0);
    }
    out.extend_from_slice(publish.payload);
}

/// Returns the topic of a PUBLISH written by [`publish`].
pub(super) fn published_topic(packet: &[u8]) -> &[u8] {
    published_parts(packet).0
}

/// Returns the payload of a PUBLISH at QoS 1 or 2 written by [`publish`].
pub(super) fn published_payload(version: Version, packet: &[u8]) -> &[u8] {
    // The packet id, and the length of the properties.
    let between = 2 + usize::from(version == Version::V5);
    published_parts(packet).1.get(between..).unwrap_or_default()
}

/// Returns the topic of such a packet, and the rest.
fn published_parts(packet: &[u8]) -> (&[u8], &[u8]) {
    // The remaining length ends with the first byte below 128.
    let rest = packet.get(1..).unwrap_or_default();
    let length = rest.iter().position(|byte| byte & 0x80 == 0).map_or(rest.len(), |last| last + 1);
    let Some((size, rest)) = rest[length..].split_first_chunk::<2>() else { return (&[], &[]) };
    rest.split_at_checked(usize::from(u16::from_be_bytes(*size))).unwrap_or_default()
}

/// Appends a PUBACK, PUBREC, PUBREL or PUBCOMP.
pub(super) fn acknowledge(kind: u8, id: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind, 2]);
    out.extend_from_slice(&id.to_be_bytes());
}

pub(super) fn ping(out: &mut Vec<u8>) {
    out.extend_from_slice(&[PINGREQ, 0]);
}

/// Appends a DISCONNECT; `forget` makes the broker end the session at once (version 5 only).
pub(super) fn disconnect(version: Version, forget: bool, out: &mut Vec<u8>) {
    if version == Version::V5 && forget {
        out.extend_from_slice(&[DISCONNECT, 7, 0, 5, 0x11, 0, 0, 0, 0]);
    } else {
        out.extend_from_slice(&[DISCONNECT, 0]);
    }
}

/// Returns the meaning of an error code, with the broker's own reason string if it is not empty.
pub(super) fn reason(version: Version, code: u8, text: &str) -> String {
    let known = match code {
        1 if version == Version::V3 => "the broker does not support this MQTT version; try version 5",
        2 if version == Version::V3 => "the broker rejects the client id",
        3 if version == Version::V3 => "the broker is not available",
        4 if version == Version::V3 => "wrong user or password",
        5 if version == Version::V3 => "not authorized; check user and password",
        // The answer of a broker without version 5 to a client of version 5.
        1 | 0x84 => "the broker does not support this MQTT version; try version 3.1.1",
        0x00 => "the broker closed the connection",
        0x81 => "malformed packet",
        0x82 => "protocol error",
        0x83 => "rejected by the implementation of the broker",
        0x85 => "the broker rejects the client id",
        0x86 => "wrong user or password",
        0x87 => "not authorized; check user and password, and what the broker allows this user",
        0x88 => "the broker is not available",
        0x89 => "the broker is busy",
        0x8a => "the broker has banned this client",
        0x8b => "the broker is shutting down",
        0x8d => "the broker received nothing from this client within the keep-alive interval",
        0x8e => "another client connected with the same client id; give each client its own",
        0x8f => "the broker rejects the topic filter",
        0x90 => "the broker rejects the topic",
        0x93 => "the broker's receive maximum is exceeded",
        0x95 => "the packet is larger than the broker's maximum",
        0x97 => "a quota of the broker is exceeded",
        0x9e => "the broker does not support shared subscriptions",
        0xa2 => "the broker does not support wildcard subscriptions",
        _ => "",
    };
    match (known, text) {
        ("", "") => format!("reason code {code:#04x}"),
        (known, "") => known.to_owned(),
        ("", text) => format!("{text} (reason code {code:#04x})"),
        (known, text) => format!("{known} ({text})"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [Version; 2] = [Version::V3, Version::V5];

    #[test]
    fn encoded_messages_are_decoded() {
        for (version, length) in
            BOTH.into_iter().flat_map(|v| [(v, 0), (v, 100), (v, 20_000), (v, 3_000_000)])
        {
            for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
                let payload = vec![b'x'; length];
                let id = if qos == Qos::AtMostOnce { 0 } else { 513 };
                let written =
                    Publish { duplicate: true, retained: false, qos, topic: "a/b", id, payload: &payload };
                let mut out = Vec::new();
                publish(version, &written, &mut out);
                assert_eq!(frame(&out[..out.len() - 1]), Ok(None), "the last byte is missing");
                let (first, start, end) = frame(&out).unwrap().unwrap();
                assert_eq!(end, out.len());
                assert_eq!(decode(version, first, &out[start..end]), Ok(Packet::Publish(written)));
                assert_eq!(published_topic(&out), b"a/b");
            }
        }
    }

    #[test]
    fn limits_of_the_broker_are_decoded() {
        let body = [1, 0, 11, 0x21, 0, 20, 0x24, 1, 0x1f, 0, 3, b'y', b'e', b's'];
        let Ok(Packet::ConnAck(answer)) = decode(Version::V5, CONNACK, &body) else { panic!("no answer") };
        assert!(answer.session_present && answer.code == 0);
        assert_eq!((answer.receive_maximum, answer.maximum_qos), (20, Qos::AtLeastOnce));
        assert_eq!(answer.reason, "yes");
        let body = [1, 0, 12, 0x21, 0, 20];
        assert_eq!(decode(Version::V5, CONNACK, &body), Err(Malformed), "shorter than its stated length");
    }

    #[test]
    fn a_length_ends_within_four_bytes() {
        assert_eq!(frame(&[PUBLISH, 0xff, 0xff, 0xff]), Ok(None));
        assert_eq!(frame(&[PUBLISH, 0xff, 0xff, 0xff, 0xff]), Err(Malformed));
        assert_eq!(frame(&[]), Ok(None));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), first in any::<u8>(), five in any::<bool>()) {
            let version = BOTH[usize::from(five)];
            let _ = decode(version, first, &bytes);
            if let Ok(Some((first, start, end))) = frame(&bytes) {
                let _ = decode(version, first, &bytes[start..end]);
            }
        }
    }
}
