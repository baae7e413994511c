//! Messages of data of which only the values of metrics by their names are read, as of most topics: these are written
//! to their slots at once.

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Read, Segment, TimeUnit, Timestamp, TopicId};

use super::metric::{Raw, code, plain};
use super::nodes::{Aliases, Known, Names, Place};
use super::payload::{METRIC, uuid};
use super::reads::name_of;
use super::rewriter::Rewriter;
use crate::error::{Fault, MessageError, Parsed};
use crate::fields::Fields;
use crate::protobuf::wire::{LENGTH, Reader, VARINT};
use crate::sink::{Refused, Scalar, Sink, Target};

/// Tags of the name and the alias of a metric (Protobuf: field number and wire type).
const NAME: u8 = 1 << 3 | LENGTH;
const ALIAS: u8 = 2 << 3 | VARINT;

/// Targets of the values that are read.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    topic: TopicId,
    /// The targets of values, by the numbers of names.
    values: Arc<[Box<[Target]>]>,
    /// Those of the time and the sequence number of a message.
    timestamp: Arc<[Target]>,
    seq: Arc<[Target]>,
    /// The numbers of the names of historical metrics in a message.
    historical: Vec<u32>,
}

impl Direct {
    /// `None` if more is read than values without parts.
    pub(super) fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        names: &Names,
    ) -> Option<Direct> {
        let is_plain = |read: &Read| matches!(read, Read::Value(_) | Read::Number(_) | Read::Presence);
        if names.takes_all() || !projection.fields.iter().all(|field| is_plain(&field.read)) {
            return None;
        }
        let mut values: Vec<Vec<Target>> = Vec::new();
        let (mut timestamp, mut seq) = (Vec::new(), Vec::new());
        // Each field by itself, so that its path is known.
        let fields = projection.fields.iter().map(|field| Projection { fields: vec![field.clone()] });
        let single: Vec<(Projection, Option<&Path>)> = fields
            .map(|field| (field, None))
            .chain(time.map(|time| (Projection::default(), Some(time))))
            .collect();
        for (projection, time) in &single {
            let path = projection.fields.first().map(|field| &field.path).or(*time)?;
            let mut fields = &Fields::new(projection, *time);
            while let Some(below) = only(fields) {
                fields = below;
            }
            let targets = fields.reads.iter().map(Target::new).collect::<Option<Vec<_>>>()?;
            match &path.0[..] {
                [Segment::Key(key)] if **key == *"timestamp" => timestamp.extend(targets),
                [Segment::Key(key)] if **key == *"seq" => seq.extend(targets),
                [_, _, Segment::Key(key)] if **key == *"value" => {
                    let number = names.number(name_of(path)?.as_bytes())? as usize;
                    values.resize(values.len().max(number + 1), Vec::new());
                    values[number].extend(targets);
                }
                _ => return None,
            }
        }
        let values = values.into_iter().map(Into::into).collect();
        Some(Direct { topic, values, timestamp: timestamp.into(), seq: seq.into(), historical: Vec::new() })
    }
}

/// The one place below this one.
fn only<'f, 'p>(fields: &'f Fields<'p>) -> Option<&'f Fields<'p>> {
    let keys = fields.keys.iter().map(|(_, below)| below);
    keys.chain(fields.named.iter().map(|(_, below)| below)).next()
}

impl Direct {
    /// Adds the event of a message of data.
    #[inline]
    pub(super) fn decode(
        &mut self,
        rewriter: &mut Rewriter,
        place: Place,
        payload: &[u8],
        time: Timestamp,
        block: &mut Block,
        refused: &mut Refused,
    ) -> Result<(), MessageError> {
        let Direct { topic, values, timestamp, seq, historical } = self;
        let mut sink = Sink::begin(block, *topic, time, TimeUnit::Milliseconds);
        let aliases = rewriter.aliases(place);
        let reading = Reading { values, timestamp, seq, rewriter, place, aliases };
        let read = reading.message(payload, historical, &mut sink);
        for number in historical.drain(..) {
            rewriter.history.add(rewriter.reads.names.get(number));
        }
        sink.end(read, refused)
    }
}

/// A message of data while it is read.
struct Reading<'d> {
    values: &'d [Box<[Target]>],
    timestamp: &'d [Target],
    seq: &'d [Target],
    rewriter: &'d Rewriter,
    place: Place,
    aliases: Option<&'d Aliases>,
}

impl Reading<'_> {
    #[inline(always)]
    fn message(&self, payload: &[u8], historical: &mut Vec<u32>, sink: &mut Sink<'_>) -> Parsed<()> {
        let mut reader = Reader { bytes: payload, at: 0 };
        let mut index = 0;
        while !reader.is_at_end() {
            let start = reader.at;
            if let Some(end) = self.passed(payload, start) {
                reader.at = end;
                index += 1;
                continue;
            }
            match reader.tag()? {
                (2, LENGTH) => {
                    let part = reader.part()?;
                    let written = match self.short(part) {
                        Short::Unread => Ok(()),
                        Short::Value(number, value) => write(self.targets(number), value, part.at, sink),
                        Short::Other => self.value(part, historical, sink),
                    };
                    written.map_err(|fault| fault.in_element(index).in_member("metrics"))?;
                    index += 1;
                }
                (1, VARINT) if !self.timestamp.is_empty() => {
                    write(self.timestamp, unsigned(reader.varint()?), start, sink)?;
                }
                (3, VARINT) if !self.seq.is_empty() => {
                    write(self.seq, unsigned(reader.varint()?), start, sink)?;
                }
                (4, LENGTH) => _ = uuid(&mut reader)?,
                (number, wire) => reader.skip(wire, number, start)?,
            }
        }
        Ok(())
    }

    /// The targets of the metric whose name has this number.
    #[inline(always)]
    fn targets(&self, number: u32) -> &[Target] {
        self.values.get(number as usize).map_or(&[], |targets| targets)
    }

    /// Reads any metric.
    fn value(&self, part: Reader<'_>, historical: &mut Vec<u32>, sink: &mut Sink<'_>) -> Parsed<()> {
        if !self.rewriter.reads.metrics {
            return Ok(());
        }
        let Some(resolved) = self.rewriter.resolve(Some(self.place), part)? else { return Ok(()) };
        let Some(number) = resolved.number else { return Ok(()) };
        if resolved.metric.is_historical {
            historical.push(number);
            return Ok(());
        }
        write(self.targets(number), resolved.metric.scalar(resolved.datatype), part.at, sink)
    }
}

/// A metric, as far as its beginning says without reading it whole.
enum Short<'m> {
    /// It is not read.
    Unread,
    /// The number of its name, and its value.
    Value(u32, Scalar<'m>),
    /// Its beginning does not decide.
    Other,
}

impl Reading<'_> {
    /// The end of a metric that begins here and is not read, where it has less than 128 bytes and an alias below 128 first.
    #[inline(always)]
    fn passed(&self, payload: &[u8], start: usize) -> Option<usize> {
        let begin = payload.get(start..)?.first_chunk()?;
        let &[METRIC, length @ 2..0x80, ALIAS, alias @ 0..0x80] = begin else { return None };
        let end = start + 2 + usize::from(length);
        (end <= payload.len() && self.aliases?.is_unread(alias)).then_some(end)
    }

    /// Reads a metric that begins with its alias or its name and has no more than a time, a data type and a value, as most
    /// have.
    #[inline(always)]
    fn short<'m>(&self, part: Reader<'m>) -> Short<'m> {
        let (number, size, born) = match part.bytes.get(part.at..) {
            Some(&[NAME, length @ 0..0x80, ref rest @ ..]) => {
                let Some(name) = rest.get(..usize::from(length)) else { return Short::Other };
                let names = &self.rewriter.reads.names;
                let Some(number) = names.fixed(name) else { return Short::Unread };
                (number, 2 + usize::from(length), None)
            }
            Some(&[ALIAS, alias @ 0..0x80, ..]) => match self.known(alias.into()) {
                None => return Short::Other,
                Some(known) => match known.name() {
                    None => return Short::Unread,
                    Some(number) => (number, 2, Some(known.datatype)),
                },
            },
            Some(&[ALIAS, low, high @ 0..0x80, ..]) => {
                match self.known(u64::from(low & 0x7f) | u64::from(high) << 7) {
                    None => return Short::Other,
                    Some(known) => match known.name() {
                        None => return Short::Unread,
                        Some(number) => (number, 3, Some(known.datatype)),
                    },
                }
            }
            _ => return Short::Other,
        };
        match value(Reader { at: part.at + size, ..part }, born) {
            Ok(Some(value)) => Short::Value(number, value),
            // The general decoder reads the message again and reports the fault.
            Ok(None) | Err(_) => Short::Other,
        }
    }

    #[inline(always)]
    fn known(&self, alias: u64) -> Option<Known> {
        self.aliases?.get(alias)
    }
}

/// The value of a metric that may state a data type other than that of its birth; `None` if it has more than a time and a
/// value, or an integer without any data type.
#[inline(always)]
fn value(mut reader: Reader<'_>, born: Option<u8>) -> Parsed<Option<Scalar<'_>>> {
    let (mut datatype, mut raw) = (0, Raw::None);
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag()? {
            (3, VARINT) => reader.skip(VARINT, 3, start)?,
            (4, VARINT) => datatype = code(reader.varint()?),
            (number @ 10..=15, wire) => match plain(number - 10, wire, &mut reader)? {
                Some(value) => raw = value,
                None => return Ok(None),
            },
            _ => return Ok(None),
        }
    }
    let datatype = match (datatype, born) {
        (0, Some(born)) => born,
        (0, None) if matches!(raw, Raw::Int(_) | Raw::Long(_)) => return Ok(None),
        (own, _) => own,
    };
    Ok(Some(raw.scalar(datatype)))
}

#[inline(always)]
fn write(targets: &[Target], value: Scalar<'_>, at: usize, sink: &mut Sink<'_>) -> Parsed<()> {
    targets.iter().try_for_each(|target| sink.write(target, value)).map_err(|kind| Fault::new(at, kind))
}

fn unsigned(value: u64) -> Scalar<'static> {
    i64::try_from(value).map_or(Scalar::Large(value as f64), Scalar::Int)
}
