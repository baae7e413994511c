//! Conversion of messages in any encoding to JSON.

use std::sync::Arc;

use crate::binary::{self, BinaryFormat};
use crate::decoder::{DecodeError, DecoderError};
use crate::encoding::{Encoding, MessageType};
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::json::{JsonForm, check};
use crate::schema::Schema;
use crate::{avro, cdr, flatbuffers, plain, protobuf, senml, sparkplug, xml};

/// Writer of the messages of a topic as JSON.
#[derive(Clone, Debug)]
pub struct MessageWriter {
    encoding: Encoding,
    message_type: Option<Arc<MessageType>>,
    /// Type of the keys of the messages, if they have any.
    key: Option<Arc<Schema>>,
    form: JsonForm,
}

impl MessageWriter {
    /// Creates a writer for messages in this encoding, and of this type if the encoding needs one.
    ///
    /// # Errors
    /// The type is missing or of another encoding.
    pub fn new(
        encoding: Encoding,
        message_type: Option<Arc<MessageType>>,
        form: JsonForm,
    ) -> Result<MessageWriter, DecoderError> {
        match message_type.as_deref().map(MessageType::encoding) {
            Some(found) if found != encoding => Err(DecoderError::OtherType(encoding, found)),
            None if encoding.needs_schema() => Err(DecoderError::NoType(encoding)),
            _ => {
                let key = match message_type.as_deref() {
                    Some(MessageType::Cdr(schema)) => schema.key().map(Arc::new),
                    _ => None,
                };
                Ok(MessageWriter { encoding, message_type, key, form })
            }
        }
    }

    /// Writes the key of an instance; `payload` is one of its messages if `is_message`, otherwise only the serialised
    /// key members. Returns whether there is a key; only messages in CDR have one.
    ///
    /// # Errors
    /// As [`MessageWriter::write`].
    pub fn write_key(
        &self,
        payload: &[u8],
        is_message: bool,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, DecodeError> {
        let (Some(MessageType::Cdr(schema)), Some(key)) = (self.message_type.as_deref(), &self.key) else {
            return Ok(false);
        };
        let written = match is_message {
            true => cdr::write_key(schema, payload, self.form, limit, out),
            false => cdr::write_json(key, payload, self.form, limit, out),
        };
        written.map(|()| true).map_err(DecodeError::Cdr)
    }

    /// Appends a message to `out`, in at most `limit` bytes. A message in JSON is written unchanged.
    ///
    /// Objects have the names and the order of the definition. Fields without a value are omitted; missing fields with
    /// a default are written.
    ///
    /// # Errors
    /// [`DecodeError`] if the payload is not entirely a message of the encoding and the type, or is too large; `out` is
    /// then unchanged.
    pub fn write(&self, payload: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let (start, form) = (out.len(), self.form);
        let mut target = Text { full: start.saturating_add(limit), form, out: &mut *out };
        let written = match (self.encoding, self.message_type.as_deref()) {
            (_, Some(MessageType::Cdr(schema))) => {
                return cdr::write_json(schema, payload, form, limit, out).map_err(DecodeError::Cdr);
            }
            (_, Some(MessageType::Ros1(schema))) => {
                return cdr::write_packed_json(schema, payload, form, limit, out).map_err(DecodeError::Cdr);
            }
            (_, Some(MessageType::Protobuf(of))) => protobuf::write_json(of, payload, &mut target),
            (_, Some(MessageType::Flatbuffers(of))) => flatbuffers::write_json(of, payload, &mut target),
            (_, Some(MessageType::Registered(source))) => {
                avro::write_registered(&**source, payload, &mut target)
            }
            (_, Some(MessageType::Avro(of))) => avro::write_json(of, payload, &mut target),
            (Encoding::Cbor, _) => binary::write_json(BinaryFormat::Cbor, payload, &mut target),
            (Encoding::Plain, _) => plain::write_json(payload, &mut target),
            (Encoding::Senml, _) => senml::write_json(payload, None, &mut target),
            (Encoding::SparkplugB, _) => sparkplug::write_json(payload, &mut target),
            (Encoding::Xml, _) => xml::write_json(payload, &mut target),
            (Encoding::Msgpack, _) => binary::write_json(BinaryFormat::Msgpack, payload, &mut target),
            _ => {
                check(payload).map_err(DecodeError::Json)?;
                out.extend_from_slice(payload);
                return Ok(());
            }
        };
        written.and_then(|()| target.room(payload.len())).map_err(|fault| {
            out.truncate(start);
            DecodeError::Message(fault.into_error().with_limit(limit))
        })
    }
}

/// Text of a message that is being written.
pub(crate) struct Text<'o> {
    /// Length of `out` above which the text is too large.
    full: usize,
    pub(crate) form: JsonForm,
    pub(crate) out: &'o mut Vec<u8>,
}

impl Text<'_> {
    /// Writes a message after what is in `out`, in at most `limit` bytes, with this function.
    ///
    /// # Errors
    /// That of the function, or that the message is too large; `out` is as it was then.
    pub(crate) fn write(
        limit: usize,
        form: JsonForm,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Text<'_>) -> Parsed<()>,
    ) -> Result<(), MessageError> {
        let start = out.len();
        let mut text = Text { full: start.saturating_add(limit), form, out: &mut *out };
        let written = write(&mut text).and_then(|()| text.room(0));
        written.map_err(|fault| {
            out.truncate(start);
            fault.into_error().with_limit(limit)
        })
    }

    /// Checks that more may be written. Called for every value, so that the limit of the text bounds the work.
    pub(crate) fn room(&self, at: usize) -> Parsed<()> {
        if self.out.len() > self.full { Err(Fault::new(at, MessageErrorKind::TooLarge(0))) } else { Ok(()) }
    }

    /// Writes a text, which must be UTF-8.
    pub(crate) fn text(&mut self, text: &[u8], at: usize) -> Parsed<()> {
        let text = std::str::from_utf8(text)
            .map_err(|error| Fault::new(at + error.valid_up_to(), MessageErrorKind::NotText))?;
        crate::json::write::quoted(text, self.out);
        Ok(())
    }

    /// Writes a value of an enumeration with these constants, in ascending order.
    pub(crate) fn enumeration(&mut self, value: i64, labels: &[(i64, Box<str>)]) {
        match labels.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(at) if self.form.names => crate::json::write::quoted(&labels[at].1, self.out),
            _ => crate::json::write::integer(value.into(), self.out),
        }
    }
}
