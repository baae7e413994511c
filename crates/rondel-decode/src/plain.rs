//! Plain payloads: a single value as text, such as `23.5`, `ON` or `online`, as sent by most devices on MQTT.
//!
//! The message has one field, `value`. The type that the program reads determines the meaning of the text:
//!
//! | type | text |
//! |---|---|
//! | `float`, `int` | a number; `nan` is one that is unknown |
//! | `bool` | a word for true or false, in capital or small letters: see [`Words`] |
//! | `string` | the text itself |
//! | `time`, `duration` | a date, a number with a unit, or a number in the unit of the topic |
//!
//! White space around the text, and quotation marks around the whole text, are ignored. `null` is no value. Any other
//! text is a value of another type.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use crate::cdr::{PlanError, PlanErrorKind};
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::fields::{Fields, Want};
use crate::json;
use crate::message::Text;
use crate::sink::{Refused, Scalar, Sink, Target};

/// Name of the field.
pub const VALUE: &str = "value";

/// Common words for true and false, in lower case.
const USUAL: [(&str, bool); 20] = [
    ("true", true),
    ("false", false),
    ("on", true),
    ("off", false),
    ("1", true),
    ("0", false),
    ("yes", true),
    ("no", false),
    ("online", true),
    ("offline", false),
    ("open", true),
    ("closed", false),
    ("enabled", true),
    ("disabled", false),
    ("active", true),
    ("inactive", false),
    ("connected", true),
    ("disconnected", false),
    ("detected", true),
    ("clear", false),
];

/// Maximum length of a word that is looked up, in bytes.
const LONGEST: usize = 64;

/// Words for true and false, in lower case: those of a deployment, and the common ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    own: Vec<(Box<str>, bool)>,
}

impl Words {
    /// Adds a word, which replaces a common one.
    ///
    /// # Errors
    /// The word, if it was added before.
    pub fn add(&mut self, word: &str, value: bool) -> Result<(), String> {
        let word = word.trim().to_ascii_lowercase();
        if self.own.iter().any(|(own, _)| **own == *word) {
            return Err(word);
        }
        self.own.push((word.into(), value));
        Ok(())
    }

    /// Returns the truth value of a word.
    pub fn truth(&self, text: &[u8]) -> Option<bool> {
        let mut small = [0; LONGEST];
        let small = small.get_mut(..text.len())?;
        small.copy_from_slice(text);
        small.make_ascii_lowercase();
        let own = self.own.iter().find(|(word, _)| word.as_bytes() == small).map(|(_, value)| *value);
        own.or_else(|| USUAL.iter().find(|(word, _)| word.as_bytes() == small).map(|(_, value)| *value))
    }
}

/// Fields read of the plain payloads of a topic.
#[derive(Clone, Debug)]
pub(crate) struct PlainPlan {
    targets: Arc<[Target]>,
    words: Arc<Words>,
}

impl PlainPlan {
    /// Returns the plan for the fields of a projection and the event time, and the fields that a plain payload does not
    /// have.
    pub(crate) fn new(
        projection: &Projection,
        time: Option<&Path>,
        words: Arc<Words>,
    ) -> (PlainPlan, Vec<PlanError>) {
        let fields = Fields::new(projection, time);
        let (mut targets, mut errors) = (Vec::new(), Vec::new());
        let mut refuse = |path: String, kind| errors.push(PlanError { path: path.into(), kind });
        for (key, below) in &fields.keys {
            if *key != VALUE {
                refuse((*key).to_owned(), PlanErrorKind::NoField(vec![VALUE.into()]));
                continue;
            }
            if let Some((part, _)) = below.keys.first() {
                refuse(format!("{VALUE}.{part}"), PlanErrorKind::NoField(Vec::new()));
            }
            if below.elements().next().is_some() || !fields.parallel.is_empty() {
                refuse(VALUE.to_owned(), PlanErrorKind::NoElements);
            }
            for want in &below.reads {
                match Target::new(want) {
                    Some(target) if !matches!(want, Want::Elements(..)) => targets.push(target),
                    _ => refuse(VALUE.to_owned(), PlanErrorKind::NoElements),
                }
            }
        }
        (PlainPlan { targets: targets.into(), words }, errors)
    }

    /// Returns the column of the value.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.targets.iter().find_map(Target::slot)
    }

    /// Writes the fields of a text.
    #[inline(always)]
    pub(crate) fn write(&self, text: &[u8], sink: &mut Sink<'_>) -> Result<(), MessageErrorKind> {
        let text = trimmed(text);
        self.targets.iter().try_for_each(|target| sink.write(target, scalar(text, target, &self.words)))
    }
}

/// Decodes the plain payloads of one topic.
#[derive(Clone, Debug)]
pub struct PlainDecoder {
    topic: TopicId,
    plan: PlainPlan,
    time_unit: TimeUnit,
    refused: Refused,
}

impl PlainDecoder {
    /// Creates a decoder for messages on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to [`PlainDecoder::decode`].
    /// Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// All fields except `value`, and reads of array elements.
    pub fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
        words: Arc<Words>,
    ) -> Result<PlainDecoder, Vec<PlanError>> {
        let (plan, errors) = PlainPlan::new(projection, time, words);
        if errors.is_empty() {
            Ok(PlainDecoder { topic, plan, time_unit, refused: Refused::default() })
        } else {
            Err(errors)
        }
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the payload is one.
    ///
    /// # Errors
    /// [`MessageError`] if a text that is read is not UTF-8, or the event time is invalid; the block is then unchanged.
    /// A value of another type is written as invalid (see [`Refused::mistyped`]).
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let mut sink = Sink::begin(block, self.topic, time, self.time_unit);
        let written = self.plan.write(payload, &mut sink).map_err(|kind| Fault::new(0, kind));
        sink.end(written, &mut self.refused)
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }
}

/// Returns the text without white space and quotation marks around it.
fn trimmed(payload: &[u8]) -> &[u8] {
    let text = payload.trim_ascii();
    match text {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'"') && !inner.contains(&b'\\') => inner,
        _ => text,
    }
}

/// Returns the value of a text for a target.
#[inline(always)]
fn scalar<'m>(text: &'m [u8], target: &Target, words: &Words) -> Scalar<'m> {
    if text.is_empty() || text == b"null" {
        return Scalar::Null;
    }
    match target {
        Target::Float(_) | Target::IsNan(_) => number(text).map_or(Scalar::Text(text), Scalar::Float),
        Target::Int(_) | Target::Exact(_) => integer(text),
        Target::Bool(_) => words.truth(text).map_or(Scalar::Text(text), Scalar::Bool),
        Target::Time(_) | Target::Duration(_) | Target::EventTime => match integer(text) {
            Scalar::Int(value) => Scalar::Int(value),
            _ => number(text).map_or(Scalar::Text(text), Scalar::Float),
        },
        _ => Scalar::Text(text),
    }
}

/// Returns the decimal number in a text; null if it is empty, and the text itself if it is no number.
pub(crate) fn decimal(text: &[u8]) -> Scalar<'_> {
    let number = text.trim_ascii();
    if number.is_empty() {
        return Scalar::Null;
    }
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let is_decimal = number.iter().any(is_digit)
        && number.iter().all(|byte| is_digit(byte) || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    if is_decimal { integer(number) } else { Scalar::Text(text) }
}

/// Returns the number in a text, which may be infinite or NaN.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let points = digits.iter().filter(|byte| **byte == b'.').count();
    let is_simple = digits.first().is_some_and(u8::is_ascii_digit)
        && points <= 1
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if is_simple && digits.last() != Some(&b'.') {
        return Some(json::float(text));
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the integer in a text, or a number that is none.
fn integer(text: &[u8]) -> Scalar<'_> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
        && let Ok(text) = std::str::from_utf8(text)
    {
        return match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(value), _) => Scalar::Int(value),
            (Err(_), Ok(value)) => Scalar::Large(value),
            (Err(_), Err(_)) => Scalar::Other,
        };
    }
    number(text).map_or(Scalar::Text(text), Scalar::Float)
}

/// Writes a payload as an object with the member `value`: numbers, `true`, `false` and `null` as such, any other text
/// as a string.
pub(crate) fn write_json(payload: &[u8], out: &mut Text<'_>) -> Parsed<()> {
    let text = trimmed(payload);
    out.room(0)?;
    out.out.extend_from_slice(b"{\"value\":");
    let is_quoted = text.len() < payload.trim_ascii().len();
    match (number(text).filter(|_| !is_quoted), text) {
        (_, b"") => out.out.extend_from_slice(b"null"),
        (_, b"true" | b"false" | b"null") => out.out.extend_from_slice(text),
        (Some(_), _) if json::check(text).is_ok() => out.out.extend_from_slice(text),
        (Some(value), _) => json::write::float(value, out.form, out.out),
        (None, _) => out.text(text, 0)?,
    }
    out.out.push(b'}');
    Ok(())
}

/// Whether a payload looks like a plain value: a short text in one line that does not begin like an object or an array.
pub fn is_plain(payload: &[u8]) -> bool {
    const LONGEST: usize = 256;
    let is_printed = |text: &str| text.chars().all(|c| !c.is_control());
    let text = payload.trim_ascii();
    !matches!(text, [] | [b'{' | b'[', ..])
        && text.len() <= LONGEST
        && std::str::from_utf8(text).is_ok_and(is_printed)
}
