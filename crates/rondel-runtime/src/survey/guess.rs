//! Guessing the encoding of a payload.

use rondel_decode::avro::unframe;
use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageWriter, plain, senml, xml};
use serde_json::{Value, json};

use super::binary;
use super::fields::NO_NUMBER;

/// Payloads that are larger are not looked into.
const LARGEST: usize = 1 << 20;

/// Guessed encoding of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PayloadKind {
    /// JSON.
    Json,
    /// JSON in a string of DDS.
    CdrString,
    /// CDR, of a type that is not known here.
    Cdr,
    /// The encoding of ROS 1; only known from a recording.
    Ros1,
    /// The encoding of PX4 logs; only known from a recording.
    Ulog,
    /// CBOR.
    Cbor,
    /// MessagePack.
    Msgpack,
    /// Avro in the framing of the schema registries, of types that are not known here.
    Registered,
    /// One value as text.
    Plain,
    /// Metrics by Sparkplug B, which the name of the topic says.
    SparkplugB,
    /// Measurements by SenML.
    Senml,
    /// XML.
    Xml,
    /// Other text.
    Text,
    /// Bytes of another kind.
    Other,
    /// Nothing.
    Empty,
}

impl PayloadKind {
    /// Whether only a deployment says that messages are read so.
    pub(super) fn is_stated(self) -> bool {
        matches!(self, PayloadKind::Plain | PayloadKind::SparkplugB | PayloadKind::Senml | PayloadKind::Xml)
    }

    /// Returns its name; that of an encoding is the one in deployments.
    pub fn name(self) -> &'static str {
        let encoding = match self {
            PayloadKind::Json => Encoding::Json,
            PayloadKind::Cdr => Encoding::Cdr,
            PayloadKind::Ros1 => Encoding::Ros1,
            PayloadKind::Cbor => Encoding::Cbor,
            PayloadKind::Msgpack => Encoding::Msgpack,
            PayloadKind::Registered => Encoding::Avro,
            PayloadKind::Plain => Encoding::Plain,
            PayloadKind::SparkplugB => Encoding::SparkplugB,
            PayloadKind::Senml => Encoding::Senml,
            PayloadKind::Xml => Encoding::Xml,
            PayloadKind::CdrString => return "cdr_string",
            PayloadKind::Ulog => return "ulog",
            PayloadKind::Text => return "text",
            PayloadKind::Other => return "other",
            PayloadKind::Empty => return "empty",
        };
        encoding.name()
    }
}

/// Reads JSON. A number beyond the range of doubles, which decoders take for infinite, is [`NO_NUMBER`], as an infinite
/// number of other encodings is in a survey.
///
/// # Errors
/// The text is not JSON.
pub(super) fn json(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|error| match without_infinite(text) {
        Some(text) => serde_json::from_slice(&text),
        None => Err(error),
    })
}

/// The text with [`NO_NUMBER`] for each number beyond the range of doubles; `None` if there is none.
fn without_infinite(text: &[u8]) -> Option<Vec<u8>> {
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    let (mut out, mut copied, mut at) = (Vec::new(), 0, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(byte) = text.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end =
                    text[at..].iter().position(|byte| !is_of_number(byte)).map_or(text.len(), |n| at + n);
                let number =
                    std::str::from_utf8(&text[at..end]).ok().and_then(|text| text.parse::<f64>().ok());
                if let Some(number) = number.filter(|number| number.is_infinite()) {
                    out.extend_from_slice(&text[copied..at]);
                    let replaced = NO_NUMBER.copysign(number);
                    out.extend_from_slice(format!("{replaced:e}").as_bytes());
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    (copied > 0).then(|| {
        out.extend_from_slice(&text[copied..]);
        out
    })
}

/// Returns the id of the schema of a payload that is probably Avro in the framing of the schema registries. Ids that fill four
/// bytes are rather a header of CDR, and JSON has the same framing.
pub(super) fn registered(payload: &[u8]) -> Option<u32> {
    let (id, datum) = unframe(payload).filter(|(id, _)| id >> 24 == 0)?;
    let is_json = datum.first() == Some(&b'{') && json(datum).is_ok();
    (!is_json).then_some(id)
}

/// Returns what a payload looks like, and its value where it describes itself.
pub(super) fn read(payload: &[u8]) -> (PayloadKind, Option<Value>) {
    if payload.is_empty() {
        return (PayloadKind::Empty, None);
    }
    if is_cdr(payload) {
        return match string(payload).and_then(|text| json(text).ok()) {
            Some(value) => (PayloadKind::CdrString, Some(value)),
            None => (PayloadKind::Cdr, None),
        };
    }
    if payload.len() > LARGEST {
        return (PayloadKind::Other, None);
    }
    if senml::is_pack(payload)
        && let Some(value) = written(Encoding::Senml, payload)
    {
        return (PayloadKind::Senml, Some(value));
    }
    if xml::is_message(payload) {
        // An element with a text alone has no fields.
        return (PayloadKind::Xml, written(Encoding::Xml, payload).filter(Value::is_object));
    }
    match json(payload) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => return (PayloadKind::Json, Some(value)),
        Ok(value) => return (PayloadKind::Plain, Some(plain_value(value))),
        Err(_) => {}
    }
    // The marks of maps in one are those of short arrays or texts in the other: only what is whole to the last byte
    // counts.
    if let Some(value) = binary::cbor(payload).filter(Value::is_object) {
        return (PayloadKind::Cbor, Some(value));
    }
    if let Some(value) = binary::msgpack(payload).filter(Value::is_object) {
        return (PayloadKind::Msgpack, Some(value));
    }
    let is_printed = |text: &&str| text.chars().all(|c| !c.is_control() || c.is_whitespace());
    if let Some(text) = std::str::from_utf8(payload).ok().filter(is_printed) {
        return match plain::is_plain(payload) {
            true => (PayloadKind::Plain, Some(plain_value(text.trim().into()))),
            false => (PayloadKind::Text, None),
        };
    }
    let list = |value: &Value| value.is_array();
    match (binary::cbor(payload).filter(list), binary::msgpack(payload).filter(list)) {
        (Some(value), _) => (PayloadKind::Cbor, Some(value)),
        (_, Some(value)) => (PayloadKind::Msgpack, Some(value)),
        _ => (PayloadKind::Other, None),
    }
}

/// The JSON of a message in an encoding without types.
fn written(encoding: Encoding, payload: &[u8]) -> Option<Value> {
    const FORM: JsonForm = JsonForm { names: false, infinite: false };
    let mut text = Vec::new();
    let writer = MessageWriter::new(encoding, None, FORM).ok()?;
    writer.write(payload, LARGEST, &mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns what a payload of JSON lines is: a message, or a plain value. Text with escapes may be anything.
pub(super) fn of_value(value: Value) -> (PayloadKind, Value) {
    match &value {
        Value::Object(_) | Value::Array(_) | Value::Null => (PayloadKind::Json, value),
        Value::String(text) if text.contains('\\') => (PayloadKind::Other, value),
        Value::String(text) if !plain::is_plain(text.as_bytes()) => (PayloadKind::Text, value),
        _ => (PayloadKind::Plain, plain_value(value)),
    }
}

/// The message that a plain value is; a word for true or false is a boolean.
fn plain_value(value: Value) -> Value {
    let truth = value.as_str().and_then(|text| plain::Words::default().truth(text.as_bytes()));
    json!({ (plain::VALUE): truth.map_or(value, Value::Bool) })
}

/// Whether there is a header of CDR: the kind of encoding, and options of which only the padding may be set.
fn is_cdr(payload: &[u8]) -> bool {
    matches!(payload, [0, kind, 0, padding, _, ..] if *kind < 12 && *padding < 4)
}

/// Returns the text of a sample that is one string.
fn string(payload: &[u8]) -> Option<&[u8]> {
    let length: [u8; 4] = payload.get(4..8)?.try_into().ok()?;
    let is_little = payload[1] & 1 == 1;
    let length = if is_little { u32::from_le_bytes(length) } else { u32::from_be_bytes(length) } as usize;
    let text = payload.get(8..8usize.checked_add(length)?)?;
    let rest = payload.len() - 8 - length;
    text.strip_suffix(&[0]).filter(|_| rest < 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_payload_panics(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (kind, value) = read(&payload);
            prop_assert_eq!(kind == PayloadKind::Empty, payload.is_empty());
            prop_assert!(value.is_none() || !matches!(kind, PayloadKind::Cdr | PayloadKind::Text | PayloadKind::Other));
        }
    }

    #[test]
    fn numbers_beyond_doubles_are_replaced() {
        let (more, less) = (1.7e308, -1.7e308);
        let none = serde_json::json!({"a": more, "b": [less, 1.5], "1e999": "-1e999 \" 1e999"});
        for (text, expected) in [
            (r#"{"a": 1e999, "b": [-1E+400, 1.5], "1e999": "-1e999 \" 1e999"}"#, Some(none)),
            ("1e999", Some(serde_json::json!(more))),
            ("1e308", Some(serde_json::json!(1e308))),
            (r#"{"a": 1e999"#, None),
            (r#"{"a": 1e999e}"#, None),
            (r#"["1e999\"#, None),
        ] {
            assert_eq!(json(text.as_bytes()).ok(), expected, "{text}");
        }
    }

    #[test]
    fn encodings_of_payloads_are_guessed() {
        let string = |text: &str| {
            let length = (text.len() as u32 + 1).to_le_bytes();
            [&[0, 1, 0, 0], &length[..], text.as_bytes(), &[0]].concat()
        };
        for (payload, kind) in [
            (b"{\"v\": 1}".to_vec(), PayloadKind::Json),
            (b"21.5".to_vec(), PayloadKind::Plain),
            (b"on".to_vec(), PayloadKind::Plain),
            (b"\"on\"".to_vec(), PayloadKind::Plain),
            (b"[1, 2]".to_vec(), PayloadKind::Json),
            (b"two\nlines".to_vec(), PayloadKind::Text),
            (b"{\"v\": ".to_vec(), PayloadKind::Text),
            (b"<m><v>1</v></m>".to_vec(), PayloadKind::Xml),
            (b"<m><v>1</m>".to_vec(), PayloadKind::Plain),
            (string("{\"v\": 1}"), PayloadKind::CdrString),
            (string("hello"), PayloadKind::Cdr),
            (vec![0, 1, 0, 0, 20], PayloadKind::Cdr),
            (vec![0xa1, 0x61, b'v', 0x18, 200], PayloadKind::Cbor),
            (vec![0x81, 0xa1, b'v', 0xcc, 200], PayloadKind::Msgpack),
            (vec![0x82, 1, 0x18, 200], PayloadKind::Cbor),
            (vec![0xff, 0xd8, 0xff, 0xe0, 0, 1], PayloadKind::Other),
            (Vec::new(), PayloadKind::Empty),
        ] {
            assert_eq!(read(&payload).0, kind, "{payload:?}");
        }
    }

    #[test]
    fn wrong_lengths_are_rejected() {
        for payload in [
            [0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00].to_vec(),
            [0xdf, 0xff, 0xff, 0xff, 0xff, 0x00].to_vec(),
            vec![0x81; 100_000],
            vec![0x9f; 100_000],
            [0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, b'{'].to_vec(),
        ] {
            assert_eq!(read(&payload).1, None);
        }
    }
}
