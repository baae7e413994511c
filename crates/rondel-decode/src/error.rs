//! Errors of messages in CBOR, MessagePack, Protobuf, FlatBuffers, Avro, Sparkplug, SenML and XML.

use std::fmt;

use crate::avro::SchemaFault;
use crate::senml::PackFault;
use crate::xml::XmlFault;

/// Error in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageError {
    /// Offset in bytes of the invalid part of the message.
    pub offset: usize,
    /// Path of the field, or of the enclosing part if it is not read; empty for the message as a whole.
    pub path: Box<str>,
    /// The reason.
    pub kind: MessageErrorKind,
}

/// Reason why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageErrorKind {
    /// The message ends within a value.
    Truncated,
    /// The length extends beyond the end of the message, or of the enclosing part.
    LengthBeyondEnd(u64),
    /// The length is negative.
    NegativeLength(i64),
    /// The union or the enumeration of Avro has no branch or symbol with this index.
    NoSuchBranch(i64),
    /// The message does not begin as one of a schema registry.
    NotFramed,
    /// There is no schema with the id that the message names.
    NoSchema(u32, SchemaFault),
    /// The offset leads out of the message.
    OffsetBeyondEnd(u64),
    /// The list of fields of a table is not at its stated position.
    NotATable,
    /// The message does not have the identifier of its schema.
    OtherIdentifier([u8; 4]),
    /// No value of the encoding begins with this byte.
    UnknownByte(u8),
    /// End of a list that was not begun, or an invalid part of a text.
    Misplaced,
    /// More than [`MAX_DEPTH`](crate::json::MAX_DEPTH) levels.
    TooDeep,
    /// A text that is read is not UTF-8.
    NotText,
    /// A metric of Sparkplug has only this alias, or an integer without a data type, and no birth has defined it.
    NoBirth(Option<u64>),
    /// A death of Sparkplug whose metrics no birth has named.
    NoBirthBeforeDeath,
    /// The limit of nodes, devices or metrics of Sparkplug is exceeded.
    TooManyMetrics,
    /// A payload of Sparkplug whose body is compressed.
    Compressed,
    /// The pack is not SenML.
    Pack(PackFault),
    /// The pack of SenML holds a series, which is several events: see [`split`](crate::senml::split).
    Series,
    /// The message is not XML that is read.
    Xml(XmlFault),
    /// The event time is no time.
    NotATime,
    /// The time of the event is out of range.
    TimeOutOfRange,
    /// The message is followed by further bytes.
    TrailingBytes,
    /// The message exceeds this number of bytes as JSON.
    TooLarge(usize),
}

impl MessageErrorKind {
    /// Whether the message is well formed, but its time cannot be used.
    pub fn is_about_time(self) -> bool {
        matches!(self, MessageErrorKind::NotATime | MessageErrorKind::TimeOutOfRange)
    }
}

impl fmt::Display for MessageErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageErrorKind::Truncated => f.write_str("the message ends within a value"),
            MessageErrorKind::LengthBeyondEnd(length) => {
                write!(f, "the length {length} reaches beyond the end")
            }
            MessageErrorKind::NegativeLength(length) => write!(f, "the length {length} is negative"),
            MessageErrorKind::NoSuchBranch(index) => {
                write!(f, "the type has no branch or symbol {index}; is it the schema of the writer?")
            }
            MessageErrorKind::NotFramed => f.write_str(
                "the message does not begin with a zero and the id of a schema, as those of schema registries do",
            ),
            MessageErrorKind::NoSchema(id, why) => write!(f, "no schema with the id {id}: {why}"),
            MessageErrorKind::OffsetBeyondEnd(offset) => {
                write!(f, "the offset {offset} leads out of the message")
            }
            MessageErrorKind::NotATable => f.write_str("not a table"),
            MessageErrorKind::OtherIdentifier(wanted) => {
                write!(f, "the message is not marked `{}`, as its schema demands", wanted.escape_ascii())
            }
            MessageErrorKind::UnknownByte(byte) => write!(f, "no value begins with the byte {byte:#04x}"),
            MessageErrorKind::Misplaced => f.write_str("this cannot stand here"),
            MessageErrorKind::TooDeep => {
                write!(f, "nested deeper than {} levels", crate::json::MAX_DEPTH)
            }
            MessageErrorKind::NotText => f.write_str("a text that is not UTF-8"),
            MessageErrorKind::NoBirth(alias) => {
                match alias {
                    Some(alias) => write!(f, "no birth has named the metric with the alias {alias}")?,
                    None => f.write_str("no birth has said the data type of the metric")?,
                }
                f.write_str(
                    "; messages are read again after the next NBIRTH or DBIRTH, which the address must match, as \
                     `spBv1.0/GROUP/+/NODE/#` does",
                )
            }
            MessageErrorKind::NoBirthBeforeDeath => {
                f.write_str(
                    "no birth has named the metrics that the death makes unknown; the next NBIRTH or DBIRTH names them",
                )
            }
            MessageErrorKind::Compressed => {
                f.write_str("the payload is compressed, which is not read; let the node publish it uncompressed")
            }
            MessageErrorKind::TooManyMetrics => f.write_str(
                "more than 4,096 nodes and devices, or 1,048,576 metrics, on one topic; divide it into several",
            ),
            MessageErrorKind::Pack(fault) => fault.fmt(f),
            MessageErrorKind::Xml(fault) => fault.fmt(f),
            MessageErrorKind::Series => f.write_str("the pack holds several values of a name, at several times"),
            MessageErrorKind::NotATime => f.write_str("not a time"),
            MessageErrorKind::TimeOutOfRange => f.write_str(
                "the time lies beyond the years 1678 to 2262; is the unit of time right (s, ms, us, ns)?",
            ),
            MessageErrorKind::TooLarge(limit) => {
                write!(f, "as JSON, the message has more than {limit} bytes")
            }
            MessageErrorKind::TrailingBytes => f.write_str("bytes follow after the message"),
        }
    }
}

impl MessageError {
    /// The same with this limit, if it is about one.
    pub(crate) fn with_limit(mut self, limit: usize) -> MessageError {
        if let MessageErrorKind::TooLarge(_) = self.kind {
            self.kind = MessageErrorKind::TooLarge(limit);
        }
        self
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "field `{}`, ", self.path)?;
        }
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

impl std::error::Error for MessageError {}

/// Fault of a message. The path is collected on the way back, its last part first.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) kind: MessageErrorKind,
    path: Vec<String>,
}

/// Result of parsing; the error is boxed so that a success fits in one word.
pub(crate) type Parsed<T> = Result<T, Box<Fault>>;

impl Fault {
    #[cold]
    pub(crate) fn new(at: usize, kind: MessageErrorKind) -> Box<Fault> {
        Box::new(Fault { at, kind, path: Vec::new() })
    }

    /// Returns the fault at the beginning of the message.
    #[cold]
    pub(crate) fn at_start(mut self: Box<Fault>) -> Box<Fault> {
        self.at = 0;
        self
    }

    /// Adds the name of the enclosing member.
    #[cold]
    pub(crate) fn in_member(mut self: Box<Fault>, name: &str) -> Box<Fault> {
        self.path.push(name.to_owned());
        self
    }

    /// Adds the index of the enclosing element.
    #[cold]
    pub(crate) fn in_element(mut self: Box<Fault>, index: u64) -> Box<Fault> {
        self.path.push(format!("[{index}]"));
        self
    }

    #[cold]
    pub(crate) fn into_error(self) -> MessageError {
        let mut path = String::new();
        for segment in self.path.iter().rev() {
            if !path.is_empty() && !segment.starts_with('[') {
                path.push('.');
            }
            path.push_str(segment);
        }
        MessageError { offset: self.at, path: path.into(), kind: self.kind }
    }
}
