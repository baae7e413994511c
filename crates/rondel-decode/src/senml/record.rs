//! Records, and how they are resolved.

use std::borrow::Cow;
use std::ops::Range;

use rondel_event::{TimeUnit, Timestamp};

use super::fault::PackFault;
use crate::binary::cbor::Cbor;
use crate::binary::{Format, Reader, Token, put};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::{Kind, Scanner, float, unescape};
use crate::sink::{Scalar, float_nanos};

const NS_PER_S: i64 = 1_000_000_000;

/// Times below are relative to now, in nanoseconds.
const ABSOLUTE: i64 = (1 << 28) * NS_PER_S;

/// The version of SenML that RFC 8428 describes; a pack states a higher one if it needs it.
const VERSION: f64 = 10.0;

/// Representation of times in the resolved pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// As a number of seconds.
    Seconds,
    /// As whole seconds and nanoseconds.
    Parts,
    /// As a decimal fraction of SenML in CBOR, an exponent of ten and an integer; relative times stay relative.
    Decimal,
}

/// A record as it was written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) time: i64,
    /// Its place in what was written, and that of its name.
    pub(super) at: Range<usize>,
    pub(super) name: Range<usize>,
}

/// The records that were written of a pack.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub(super) all: Vec<Written>,
    /// Whether they have several times.
    pub(super) varies: bool,
}

impl Records {
    /// Whether a name comes with several times.
    pub(super) fn have_series(&mut self, written: &[u8]) -> bool {
        if !self.varies {
            return false;
        }
        let name = |record: &Written| written.get(record.name.clone()).unwrap_or_default();
        self.all.sort_by(|one, other| name(one).cmp(name(other)));
        self.all.windows(2).any(|pair| name(&pair[0]) == name(&pair[1]) && pair[0].time != pair[1].time)
    }
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    fn plus(self, other: Option<Number>) -> Number {
        match (self, other) {
            (own, None) => own,
            (Number::Int(own), Some(Number::Int(other))) => {
                own.checked_add(other).map_or(Number::Float(own as f64 + other as f64), Number::Int)
            }
            (own, Some(other)) => Number::Float(own.float() + other.float()),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Number::Int(value) => put::integer(value, out),
            Number::Float(value) => put::double(value, out),
        }
    }
}

/// A value of a label.
enum Item<'m> {
    Number(Number),
    /// A number of seconds in nanoseconds.
    Nanos(i64),
    Text(Cow<'m, [u8]>),
    Bool(bool),
    Bytes(Vec<u8>),
}

/// The labels, each with its number in CBOR.
const LABELS: [(&str, i64); 15] = [
    ("bver", -1),
    ("bn", -2),
    ("bt", -3),
    ("bu", -4),
    ("bv", -5),
    ("bs", -6),
    ("n", 0),
    ("u", 1),
    ("v", 2),
    ("vs", 3),
    ("vb", 4),
    ("s", 5),
    ("t", 6),
    ("ut", 7),
    ("vd", 8),
];

/// The fields of a record.
#[derive(Default)]
struct Record<'m> {
    name: Option<Cow<'m, [u8]>>,
    unit: Option<Cow<'m, [u8]>>,
    time: Option<i64>,
    update: Option<Number>,
    number: Option<Number>,
    /// Any other value, with its label.
    other: Option<(&'static str, Item<'m>)>,
    sum: Option<Number>,
    values: u32,
    /// Whether there is a field that is no base field.
    is_own: bool,
}

/// The base fields so far.
#[derive(Default)]
struct Base<'m> {
    name: Cow<'m, [u8]>,
    time: i64,
    unit: Option<Cow<'m, [u8]>>,
    value: Option<Number>,
    sum: Option<Number>,
}

/// A pack while it is resolved.
struct Pack<'m, 'o> {
    base: Base<'m>,
    now: Option<i64>,
    times: Times,
    latest: Option<i64>,
    records: &'o mut Records,
    out: &'o mut Vec<u8>,
}

fn fault(at: usize, fault: PackFault) -> Box<Fault> {
    Fault::new(at, MessageErrorKind::Pack(fault))
}

/// Writes the resolved records of a pack, and the latest of their times. Relative times are after `now`.
pub(super) fn resolve(
    payload: &[u8],
    now: Option<i64>,
    times: Times,
    records: &mut Records,
    out: &mut Vec<u8>,
) -> Parsed<()> {
    records.all.clear();
    records.varies = false;
    put::open_map(out);
    put::text(b"records", out);
    put::open_array(out);
    let mut pack = Pack { base: Base::default(), now, times, latest: None, records, out };
    match payload.first() {
        Some(0x80..=0x9f) => pack.cbor(payload)?,
        _ => pack.json(payload)?,
    }
    let Pack { latest, out, .. } = pack;
    put::close(out);
    if let Some(latest) = latest {
        put::text(b"time", out);
        write_time(latest, times, out);
    }
    put::close(out);
    Ok(())
}

impl<'m> Pack<'m, '_> {
    fn json(&mut self, payload: &'m [u8]) -> Parsed<()> {
        let mut scanner = Scanner::new(payload);
        scanner.skip_space();
        if scanner.peek() != Some(b'[') {
            return Err(fault(scanner.at, PackFault::NoPack));
        }
        let mut refused = None;
        let scanned = scanner.elements(0, |scanner, index| {
            let start = scanner.at;
            if scanner.kind()? != Kind::Object {
                refused.get_or_insert(fault(start, PackFault::NoPack).in_element(index as u64));
                return scanner.skip(1);
            }
            let mut record = Record::default();
            let mut result = Ok(());
            scanner.members(1, |scanner, key| {
                let (start, kind) = (scanner.at, scanner.kind()?);
                scanner.skip(2)?;
                if result.is_ok() {
                    let text = &payload[start..scanner.at];
                    result = match LABELS.iter().find(|(label, _)| key.is(label)) {
                        Some((label, _)) => json_item(label, kind, text)
                            .and_then(|item| self.take(&mut record, label, item))
                            .map_err(|kind| Fault::new(start, kind)),
                        None if key.raw().ends_with(b"_") => Err(fault(start, PackFault::UnknownLabel)),
                        None => Ok(()),
                    };
                }
                Ok(())
            })?;
            let written = result.and_then(|()| self.write(record, start));
            if let Err(fault) = written
                && refused.is_none()
            {
                refused = Some(fault.in_element(index as u64));
            }
            Ok(())
        });
        // Faults of JSON are reported before those of SenML.
        scanned.and_then(|()| scanner.end()).map_err(|error| match error.kind {
            crate::json::JsonErrorKind::TooDeep => Fault::new(error.offset, MessageErrorKind::TooDeep),
            _ => fault(error.offset, PackFault::NoPack),
        })?;
        refused.map_or(Ok(()), Err)
    }

    fn cbor(&mut self, payload: &'m [u8]) -> Parsed<()> {
        let mut reader = Reader::new(payload);
        let Token::Array(count) = Cbor::token(&mut reader)? else { return Err(fault(0, PackFault::NoPack)) };
        let mut index = 0;
        while count != Some(index) && !(count.is_none() && Cbor::end(&mut reader)) {
            self.cbor_record(&mut reader).map_err(|fault| fault.in_element(index))?;
            index += 1;
        }
        if reader.rest() > 0 {
            return Err(Fault::new(reader.at(), MessageErrorKind::TrailingBytes));
        }
        Ok(())
    }

    fn cbor_record(&mut self, reader: &mut Reader<'m>) -> Parsed<()> {
        let start = reader.at();
        let Token::Map(count) = Cbor::token(reader)? else { return Err(fault(start, PackFault::NoPack)) };
        let (mut record, mut passed) = (Record::default(), 0);
        while count != Some(passed) && !(count.is_none() && Cbor::end(reader)) {
            passed += 1;
            let start = reader.at();
            let label = match Cbor::token(reader)? {
                Token::Scalar(Scalar::Int(number)) => LABELS.iter().find(|(_, own)| *own == number),
                Token::Scalar(Scalar::Text(text)) => {
                    let label = LABELS.iter().find(|(label, _)| label.as_bytes() == text);
                    if label.is_none() && text.ends_with(b"_") {
                        return Err(fault(start, PackFault::UnknownLabel));
                    }
                    label
                }
                Token::Scalar(_) => None,
                _ => return Err(fault(start, PackFault::NoPack)),
            };
            let at = reader.at();
            match label {
                Some((label, _)) => {
                    let item = cbor_item(label, reader)?;
                    self.take(&mut record, label, item).map_err(|kind| Fault::new(at, kind))?;
                }
                None => Cbor::skip(reader, 1, 2)?,
            }
        }
        self.write(record, start)
    }

    /// Takes a field of a record.
    fn take(
        &mut self,
        record: &mut Record<'m>,
        label: &'static str,
        item: Item<'m>,
    ) -> Result<(), MessageErrorKind> {
        record.is_own |= !label.starts_with('b');
        match (label, item) {
            ("bver", Item::Number(version)) if version.float() > VERSION => {
                return Err(MessageErrorKind::Pack(PackFault::LaterVersion));
            }
            ("bver", Item::Number(_)) => {}
            ("bn", Item::Text(text)) => self.base.name = text,
            ("bt", Item::Nanos(nanos)) => self.base.time = nanos,
            ("bu", Item::Text(text)) => self.base.unit = Some(text),
            ("bv", Item::Number(value)) => self.base.value = Some(value),
            ("bs", Item::Number(value)) => self.base.sum = Some(value),
            ("n", Item::Text(text)) => record.name = Some(text),
            ("u", Item::Text(text)) => record.unit = Some(text),
            ("t", Item::Nanos(nanos)) => record.time = Some(nanos),
            ("ut", Item::Number(value)) => record.update = Some(value),
            ("s", Item::Number(value)) => record.sum = Some(value),
            ("v", Item::Number(value)) => {
                record.number = Some(value);
                record.values += 1;
            }
            ("vs" | "vd", item @ Item::Text(_))
            | ("vd", item @ Item::Bytes(_))
            | ("vb", item @ Item::Bool(_)) => {
                record.other = Some((label, item));
                record.values += 1;
            }
            _ => return Err(MessageErrorKind::Pack(PackFault::OtherType(label))),
        }
        Ok(())
    }

    /// Writes a record with the base fields.
    fn write(&mut self, record: Record<'m>, at: usize) -> Parsed<()> {
        if !record.is_own {
            return Ok(());
        }
        let Base { name: base_name, unit: base_unit, .. } = &self.base;
        let own_name = record.name.as_deref().unwrap_or(&[]);
        if base_name.is_empty() && own_name.is_empty() {
            return Err(fault(at, PackFault::NoName));
        }
        if record.values > 1 {
            return Err(fault(at, PackFault::SeveralValues));
        }
        let number = match (record.number, &record.other) {
            (Some(number), _) => Some(number.plus(self.base.value)),
            (None, None) => self.base.value,
            (None, Some(_)) => None,
        };
        let sum = record.sum.map(|sum| sum.plus(self.base.sum));
        if number.is_none() && record.other.is_none() && sum.is_none() {
            return Err(fault(at, PackFault::NoValue));
        }
        let own_time = self.base.time.checked_add(record.time.unwrap_or(0));
        let time = own_time.and_then(|time| match self.now {
            Some(now) if time < ABSOLUTE => now.checked_add(time),
            _ => Some(time),
        });
        // As it was, it can be resolved once more.
        let shown_time = if self.times == Times::Decimal { own_time } else { time };
        let time = time.ok_or_else(|| Fault::new(at, MessageErrorKind::TimeOutOfRange))?;
        self.records.varies |= self.latest.is_some_and(|latest| latest != time);
        self.latest = self.latest.max(Some(time));
        let out = &mut *self.out;
        let start = out.len();
        put::open_map(out);
        put::text(b"n", out);
        put::joined(base_name, own_name, out);
        let name = out.len() - base_name.len() - own_name.len()..out.len();
        if let Some(unit) = record.unit.as_ref().or(base_unit.as_ref()) {
            put::text(b"u", out);
            put::text(unit, out);
        }
        put::text(b"t", out);
        write_time(shown_time.unwrap_or(time), self.times, out);
        if let Some(update) = record.update {
            put::text(b"ut", out);
            update.write(out);
        }
        if let Some(number) = number {
            put::text(b"v", out);
            number.write(out);
        }
        if let Some((label, item)) = record.other {
            put::text(label.as_bytes(), out);
            match item {
                Item::Text(text) => put::text(&text, out),
                Item::Bool(value) => put::boolean(value, out),
                Item::Bytes(bytes) => put::bytes(&bytes, out),
                Item::Number(_) | Item::Nanos(_) => put::null(out),
            }
        }
        if let Some(sum) = sum {
            put::text(b"s", out);
            sum.write(out);
        }
        put::close(out);
        self.records.all.push(Written { time, at: start..out.len(), name });
        put::room(at, out)
    }
}

fn write_time(nanos: i64, times: Times, out: &mut Vec<u8>) {
    let (seconds, part) = (nanos.div_euclid(NS_PER_S), nanos.rem_euclid(NS_PER_S));
    match times {
        Times::Parts => {
            put::open_map(out);
            put::text(b"sec", out);
            put::integer(seconds, out);
            put::text(b"nanosec", out);
            put::integer(part, out);
            put::close(out);
        }
        Times::Decimal => {
            put::open_array_of(2, out);
            put::integer(-9, out);
            put::integer(nanos, out);
        }
        Times::Seconds if part == 0 => put::integer(seconds, out),
        Times::Seconds => {
            // The double nearest to the decimal number.
            let text = format!(
                "{}{}.{:09}",
                if nanos < 0 { "-" } else { "" },
                nanos.unsigned_abs() / 1_000_000_000,
                nanos.unsigned_abs() % 1_000_000_000
            );
            put::double(float(text.as_bytes()), out);
        }
    }
}

/// Whether the number of a label is a time in seconds that is added up.
fn is_time(label: &str) -> bool {
    matches!(label, "bt" | "t")
}

fn json_item<'m>(label: &'static str, kind: Kind, text: &'m [u8]) -> Result<Item<'m>, MessageErrorKind> {
    let other = MessageErrorKind::Pack(PackFault::OtherType(label));
    match kind {
        Kind::Number if is_time(label) => {
            let time = Timestamp::parse(text, TimeUnit::Seconds);
            time.map(|time| Item::Nanos(time.as_nanos())).map_err(|_| MessageErrorKind::TimeOutOfRange)
        }
        Kind::Number => {
            let whole = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            Ok(Item::Number(whole.map_or_else(|| Number::Float(float(text)), Number::Int)))
        }
        Kind::String => {
            let raw = &text[1..text.len() - 1];
            match raw.contains(&b'\\') {
                false => Ok(Item::Text(raw.into())),
                true => Ok(Item::Text(unescape(raw).ok_or(MessageErrorKind::NotText)?.into_bytes().into())),
            }
        }
        Kind::True | Kind::False => Ok(Item::Bool(kind == Kind::True)),
        _ => Err(other),
    }
}

fn cbor_item<'m>(label: &'static str, reader: &mut Reader<'m>) -> Parsed<Item<'m>> {
    let start = reader.at();
    let other = || fault(start, PackFault::OtherType(label));
    let token = Cbor::token(reader)?;
    let number = match token {
        Token::Scalar(Scalar::Int(value)) => Number::Int(value),
        Token::Scalar(Scalar::Float(value) | Scalar::Large(value)) => Number::Float(value),
        // A decimal fraction: an exponent of ten and an integer.
        Token::Array(Some(2)) => {
            let mut part = || match Cbor::token(reader)? {
                Token::Scalar(Scalar::Int(value)) => Ok(value),
                _ => Err(other()),
            };
            let (exponent, digits) = (part()?, part()?);
            if is_time(label) {
                let text = format!("{digits}e{exponent}");
                let time = Timestamp::parse(text.as_bytes(), TimeUnit::Seconds);
                let time = time.map_err(|_| Fault::new(start, MessageErrorKind::TimeOutOfRange))?;
                return Ok(Item::Nanos(time.as_nanos()));
            }
            Number::Float(float(format!("{digits}e{exponent}").as_bytes()))
        }
        Token::Scalar(Scalar::Text(text)) => return Ok(Item::Text(text.into())),
        Token::OpenText => {
            let mut text = Vec::new();
            Cbor::text_parts(reader, &mut text)?;
            return Ok(Item::Text(text.into()));
        }
        Token::Scalar(Scalar::Bool(value)) => return Ok(Item::Bool(value)),
        Token::Scalar(Scalar::Bytes(_)) => {
            let (mut again, mut bytes) = (reader.from(start), Vec::new());
            Cbor::bytes(&mut again, &mut bytes)?;
            return Ok(Item::Bytes(bytes));
        }
        _ => return Err(other()),
    };
    if !is_time(label) {
        return Ok(Item::Number(number));
    }
    let nanos = match number {
        Number::Int(seconds) => seconds.checked_mul(NS_PER_S).ok_or(MessageErrorKind::TimeOutOfRange),
        Number::Float(seconds) => float_nanos(seconds, NS_PER_S),
    };
    nanos.map(Item::Nanos).map_err(|kind| Fault::new(start, kind))
}
