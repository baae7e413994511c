//! Sparkplug B (Eclipse Sparkplug 3.0): metrics of nodes and devices, in Protobuf messages on MQTT.
//!
//! A message is read as one with these members, whose names are those of the Protobuf definition:
//!
//! | member | value |
//! |---|---|
//! | `timestamp`, `seq`, `uuid`, `body` | of the payload |
//! | `metrics` | an array of objects: `name`, `alias`, `timestamp`, `datatype` (its name), `is_historical`, `is_transient`, `is_null`, `metadata`, `properties` (an object of their values), `value` |
//! | `value` | a number, text or boolean; a list where the data type is an array; `{columns, types, rows}` of a DataSet; `{metrics, parameters, version, template_ref, is_definition}` of a Template |
//!
//! Births name the metrics, and say their aliases and data types. A [`SparkplugDecoder`] keeps those of the last birth of
//! every node and device, and gives the name to a metric that comes with an alias alone, and the sign to an integer. A
//! metric that it cannot resolve refuses its message. A death makes the metrics of its node or device unknown.
//!
//! Times are in milliseconds, whatever the unit of the topic. The payload becomes CBOR, of the metrics that are read, and
//! a [`BinaryDecoder`] reads that; messages of data of which only values are read are read at once.

mod address;
mod direct;
mod metric;
mod nodes;

pub use address::{Address, Kind};

use rondel_event::{
    Block, NameId, Path, Projection, Read, Segment, Slot, Test, TimeUnit, Timestamp, TopicId, Value,
};

use crate::binary::{self, BinaryDecoder, BinaryFormat, put};
use crate::cdr::PlanError;
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::message::Text;
use crate::protobuf::wire::{LENGTH, Reader, VARINT};
use crate::sink::{NoNumber, Refused};
use direct::Direct;
use metric::{Attributes, Metric, NAMED};
use nodes::{Born, Names, Nodes, Place};

/// The full name of the type of payloads.
pub const TYPE: &str = "org.eclipse.tahu.protobuf.Payload";

/// The metric of a birth and a death that numbers connections.
const SESSION: &[u8] = b"bdSeq";

/// The members of a message.
const MEMBERS: [&str; 5] = ["timestamp", "metrics", "seq", "uuid", "body"];

/// Decodes the Sparkplug payloads of one topic.
#[derive(Clone, Debug)]
pub struct SparkplugDecoder {
    inner: BinaryDecoder,
    reads: Reads,
    /// How messages of data are read that need not be written again.
    direct: Option<Direct>,
    /// Whether metrics of commands are read.
    reads_commands: bool,
    nodes: Nodes,
    /// The places of names by their numbers, as far as they came.
    places: Vec<Option<Named>>,
    current: Named,
    scratch: Vec<u8>,
}

/// Kind of the messages with a topic name.
#[derive(Clone, Copy, Debug)]
enum Named {
    /// A message of metrics.
    Metrics(Place),
    /// A message that has none.
    Other,
    /// Any message: the name is not known.
    Unknown,
}

/// Metrics and members that are read.
#[derive(Clone, Debug)]
struct Reads {
    /// Whether any metric is.
    metrics: bool,
    attributes: Attributes,
    names: Names,
    /// The slots of the values by the numbers of the names, unless all metrics are read.
    slots: Vec<Box<[Slot]>>,
    /// The slots of everything that is read of metrics.
    all: Box<[Slot]>,
}

/// A metric with its name and data type.
struct Resolved<'m> {
    metric: Metric<'m>,
    /// The number of its name; `None` if no birth has named it, and it has its name itself.
    number: Option<u32>,
    datatype: u8,
}

/// The metrics that have no value any more after a message.
enum Ended {
    None,
    All,
    Names(Vec<u32>),
}

impl Reads {
    fn new(projection: &Projection, time: Option<&Path>) -> Reads {
        let is_metrics =
            |path: &&Path| matches!(path.0.first(), Some(Segment::Key(key)) if **key == *"metrics");
        let fields = projection.fields.iter().map(|field| &field.path);
        let paths: Vec<&Path> = fields.chain(time).filter(is_metrics).collect();
        let wanted: Option<Vec<&str>> = paths.iter().map(|path| name_of(path)).collect();
        let names = Names::new(wanted);
        let holds = projection.fields.iter().filter(|field| field.read != Read::Presence);
        let holds: Vec<_> = holds.filter(|field| is_metrics(&&field.path)).collect();
        let slots_of = |number: u32| {
            let own = holds.iter().filter(|field| {
                name_of(&field.path).and_then(|name| names.number(name.as_bytes())) == Some(number)
            });
            own.map(|field| field.slot).collect()
        };
        let count = if names.takes_all() { 0 } else { paths.len() as u32 };
        Reads {
            metrics: !paths.is_empty(),
            attributes: attributes(projection, &paths),
            slots: (0..count).map(slots_of).collect(),
            all: holds.iter().map(|field| field.slot).collect(),
            names,
        }
    }
}

/// The name of the one metric that a path leads to.
fn name_of(path: &Path) -> Option<&str> {
    let Some(Segment::Named(named)) = path.0.get(1) else { return None };
    match (&named.condition.path.0[..], &named.condition.test) {
        ([Segment::Key(key)], Test::Equals(Value::String(name)))
            if **key == *"name" && !named.is_parallel =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// The members of metrics that are read: those whose names stand in some path.
fn attributes(projection: &Projection, paths: &[&Path]) -> Attributes {
    let mut found = 0;
    let mut see = |path: &Path| {
        for segment in &path.0 {
            let keys = match segment {
                Segment::Key(key) => std::slice::from_ref(key),
                _ => &[],
            };
            let is_read = |name: &str| keys.iter().any(|key| **key == *name);
            NAMED.iter().filter(|(name, _)| is_read(name)).for_each(|(_, bit)| found |= bit);
        }
    };
    for path in paths {
        see(path);
        for segment in &path.0 {
            if let Segment::Named(named) = segment {
                see(&named.condition.path);
            }
        }
    }
    for field in &projection.fields {
        if let Read::Elements(_, conditions) | Read::Witness(_, conditions) = &field.read {
            conditions.iter().for_each(|condition| see(&condition.path));
        }
    }
    found
}

impl SparkplugDecoder {
    /// A decoder for messages on `topic`, of which the fields of `projection` are read.
    ///
    /// `time` names the field that holds the time of the event; without it the time is the one given to
    /// [`SparkplugDecoder::decode`].
    ///
    /// # Errors
    /// Fields that no message has, and an array whose elements have more than 64 conditions.
    pub fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
    ) -> Result<SparkplugDecoder, Vec<PlanError>> {
        let fields = projection.fields.iter().map(|field| &field.path);
        binary::check_members(fields.chain(time), &MEMBERS)?;
        let unit = TimeUnit::Milliseconds;
        let reads = Reads::new(projection, time);
        Ok(SparkplugDecoder {
            inner: BinaryDecoder::new(BinaryFormat::Cbor, topic, projection, time, unit)?,
            direct: Direct::new(topic, projection, time, &reads.names),
            reads,
            reads_commands: false,
            nodes: Nodes::default(),
            places: Vec::new(),
            current: Named::Unknown,
            scratch: Vec::new(),
        })
    }

    /// Reads metrics of commands as well. Otherwise these messages have none, as their values are not those of the node.
    pub fn read_commands(&mut self) {
        self.reads_commands = true;
    }

    /// Sets the name of the topic of the messages that follow. `name` tells the one with a number when it comes first.
    #[inline]
    pub fn set_name<N: AsRef<str>>(&mut self, id: Option<NameId>, name: impl FnOnce(NameId) -> Option<N>) {
        let known = id.and_then(|id| self.places.get(id.0 as usize).copied().flatten());
        self.current = match (known, id) {
            (Some(known), _) => known,
            (None, Some(id)) => self.place(id, name(id)),
            (None, None) => Named::Unknown,
        };
    }

    #[cold]
    fn place<N: AsRef<str>>(&mut self, id: NameId, name: Option<N>) -> Named {
        let Some(name) = name else { return Named::Unknown };
        let place = match Address::parse(name.as_ref()) {
            Some(address) => Named::Metrics(self.nodes.place(&address)),
            None => Named::Other,
        };
        let at = id.0 as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, None);
        }
        self.places[at] = Some(place);
        place
    }

    /// Forgets the aliases of the node whose name was set last, and of its devices, until their next births: one may have
    /// been missed that gave them to other metrics.
    pub fn forget_aliases(&mut self) {
        if let Named::Metrics(place) = self.current {
            self.nodes.forget_aliases(place);
        }
    }

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one.
    ///
    /// # Errors
    /// [`MessageError`] when the payload is not a message, a metric cannot be resolved, or the time is none; the block is
    /// as it was then.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        if let Named::Metrics(place) = self.current
            && place.kind == Kind::Data
            && self.direct.is_some()
        {
            return self.decode_data(place, payload, time, block);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let ended = self.rewrite(payload, &mut scratch).map_err(|fault| fault.into_error());
        let result = ended.and_then(|ended| {
            // Offsets in what was written say nothing about the payload.
            let of_payload = |error| MessageError { offset: 0, ..error };
            self.inner.decode(&scratch, time, block).map_err(of_payload)?;
            self.mark(&ended, block);
            Ok(())
        });
        if scratch.capacity() <= binary::KEPT {
            self.scratch = scratch;
        }
        result
    }

    /// Makes metrics unknown in the last row that it does not write.
    #[inline]
    fn mark(&self, ended: &Ended, block: &mut Block) {
        let row = block.len() - 1;
        let mut mark = |slots: &[Slot]| slots.iter().for_each(|slot| block.mark_present(*slot, 1 << row));
        match ended {
            Ended::None => {}
            Ended::Names(names) if !self.reads.names.takes_all() => {
                let slots = names.iter().filter_map(|name| self.reads.slots.get(*name as usize));
                slots.for_each(|slots| mark(slots));
            }
            Ended::All | Ended::Names(_) => mark(&self.reads.all),
        }
    }

    /// Writes the message as CBOR, with the metrics that are read, and takes note of births and deaths.
    fn rewrite(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Parsed<Ended> {
        put::open_map(out);
        let mut ended = Ended::None;
        match self.current {
            Named::Other => {}
            Named::Unknown => self.members(payload, None, out)?,
            Named::Metrics(place) => match place.kind {
                Kind::Birth if self.reads.metrics => ended = self.birth(place, payload, out)?,
                Kind::Death if self.reads.metrics => ended = self.death(place, payload, out)?,
                _ => self.members(payload, Some(place), out)?,
            },
        }
        put::close(out);
        Ok(ended)
    }

    /// Writes the members of a message of data or commands.
    fn members(&mut self, payload: &[u8], place: Option<Place>, out: &mut Vec<u8>) -> Parsed<()> {
        let reads_metrics = self.reads.metrics
            && (self.reads_commands || place.is_none_or(|place| place.kind != Kind::Command));
        if reads_metrics {
            put::text(b"metrics", out);
            put::open_array(out);
            let mut index = 0;
            each_metric(payload, |part| {
                let written = self.metric(place, part, out);
                index += 1;
                written.map_err(|fault| fault.in_element(index - 1).in_member("metrics"))
            })?;
            put::close(out);
        }
        others(payload, out)
    }

    /// Writes a metric of a message of data, if it is read.
    fn metric(&self, place: Option<Place>, part: Reader<'_>, out: &mut Vec<u8>) -> Parsed<()> {
        let Some(Resolved { metric, number, datatype }) = self.resolve(place, part)? else { return Ok(()) };
        let name = metric.name.or_else(|| Some(self.reads.names.get(number?)));
        metric.write(name, datatype, self.reads.attributes, out)?;
        put::room(part.at, out)
    }

    /// A metric of a message of data with its name and data type, if it is read.
    #[inline(always)]
    fn resolve<'m>(&self, place: Option<Place>, part: Reader<'m>) -> Parsed<Option<Resolved<'m>>> {
        let Reads { names, .. } = &self.reads;
        let known_as = |alias: u64| place.and_then(|place| self.nodes.metric(place, alias));
        // Most begin with what decides whether they are read.
        let (mut first, mut by_name, mut by_alias) = (part, None, None);
        if !first.is_at_end() && !names.takes_all() {
            match first.tag()? {
                (1, LENGTH) => {
                    let name = first.part()?;
                    let name = &name.bytes[name.at..];
                    let Some(number) = names.number(name) else { return Ok(None) };
                    by_name = Some((name.as_ptr(), number));
                }
                (2, VARINT) => {
                    let alias = first.varint()?;
                    let known = known_as(alias);
                    if known.is_some_and(|known| known.name().is_none()) {
                        return Ok(None);
                    }
                    by_alias = Some((alias, known));
                }
                _ => {}
            }
        }
        let metric = Metric::read(part)?;
        let known = match by_alias {
            Some((alias, known)) if metric.alias == Some(alias) => known,
            _ => metric.alias.and_then(known_as),
        };
        let number = match (metric.name, known) {
            (Some(name), _) => match by_name {
                Some((first, number)) if first == name.as_ptr() => Some(number),
                _ => names.number(name),
            },
            (None, Some(known)) => known.name(),
            (None, None) => return Err(Fault::new(part.at, MessageErrorKind::NoBirth(metric.alias))),
        };
        if number.is_none() && !(names.takes_all() && metric.name.is_some()) {
            return Ok(None);
        }
        let born = || {
            let by_name = || self.nodes.datatype(place?, number?);
            known.map(|known| known.datatype).or_else(by_name)
        };
        let datatype = if metric.datatype == 0 { born() } else { Some(metric.datatype) };
        if datatype.is_none() && metric.needs_datatype() {
            return Err(Fault::new(part.at, MessageErrorKind::NoBirth(None)));
        }
        Ok(Some(Resolved { metric, number, datatype: datatype.unwrap_or(0) }))
    }

    /// Takes the metrics of a birth, and writes those that are read.
    #[cold]
    fn birth(&mut self, place: Place, payload: &[u8], out: &mut Vec<u8>) -> Parsed<Ended> {
        let (mut born, mut session) = (Vec::new(), None);
        let takes_all = self.reads.names.takes_all();
        put::text(b"metrics", out);
        put::open_array(out);
        each_metric(payload, |part| {
            let metric = Metric::read(part)?;
            let Some(name) = metric.name else { return Ok(()) };
            if name == SESSION && place.is_node {
                session = metric.number();
            }
            born.push(Born { name, alias: metric.alias, datatype: metric.datatype });
            if takes_all || self.reads.names.number(name).is_some() {
                metric.write(Some(name), metric.datatype, self.reads.attributes, out)?;
            }
            put::room(part.at, out)
        })?;
        put::close(out);
        others(payload, out)?;
        // Earlier values of the metrics end here, also of those that the birth does not name any more.
        let ended = self.nodes.end(place).map_or(Ended::None, Ended::Names);
        let begun = self.nodes.begin(place, session, &born, &mut self.reads.names);
        begun.map_err(|nodes::Full| Fault::new(0, MessageErrorKind::TooManyMetrics))?;
        Ok(ended)
    }

    /// Forgets the metrics that a death ends.
    #[cold]
    fn death(&mut self, place: Place, payload: &[u8], out: &mut Vec<u8>) -> Parsed<Ended> {
        let mut session = None;
        each_metric(payload, |part| {
            let metric = Metric::read(part)?;
            if metric.name == Some(SESSION) && place.is_node {
                session = metric.number();
            }
            Ok(())
        })?;
        others(payload, out)?;
        if !self.nodes.is_current(place, session) {
            return Ok(Ended::None);
        }
        Ok(self.nodes.end(place).map_or(Ended::All, Ended::Names))
    }

    fn refused(&self) -> Refused {
        self.direct.as_ref().map_or_else(Refused::default, |direct| direct.refused)
    }

    /// Returns how many values so far had another type than the program reads.
    pub fn mistyped(&self) -> u64 {
        self.inner.mistyped() + self.refused().count
    }

    /// Returns how many numbers so far were NaN.
    pub fn not_numbers(&self) -> u64 {
        self.inner.not_numbers() + self.refused().not_numbers
    }

    /// Returns how many elements of arrays so far were NaN, and were left out.
    pub fn left_out(&self) -> u64 {
        self.inner.left_out()
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, if one was read so far.
    pub fn too_large(&self) -> Option<Slot> {
        self.inner.too_large().or(self.refused().too_large())
    }

    /// Returns the first text so far that should be a number and is none.
    pub fn no_number(&self) -> Option<NoNumber> {
        self.inner.no_number().or(self.refused().no_number)
    }
}

/// Calls a function with every metric of a payload.
#[inline(always)]
fn each_metric<'m>(payload: &'m [u8], mut metric: impl FnMut(Reader<'m>) -> Parsed<()>) -> Parsed<()> {
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

/// Writes the members of a payload beside its metrics.
#[inline(always)]
fn others(payload: &[u8], out: &mut Vec<u8>) -> Parsed<()> {
    let mut reader = Reader { bytes: payload, at: 0 };
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag()? {
            (1, VARINT) => {
                put::text(b"timestamp", out);
                put::unsigned(reader.varint()?, out);
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
    Ok(())
}

/// Reads the member that says what the body is.
fn uuid<'p>(reader: &mut Reader<'p>) -> Parsed<&'p [u8]> {
    let part = reader.part()?;
    match &part.bytes[part.at..] {
        b"SPBV1.0_COMPRESSED" => Err(Fault::new(part.at, MessageErrorKind::Compressed)),
        uuid => Ok(uuid),
    }
}

/// Returns the sequence number of a message, from 0 to 255, if it has one.
pub fn sequence(payload: &[u8]) -> Option<u8> {
    let mut reader = Reader { bytes: payload, at: 0 };
    let mut found = None;
    while !reader.is_at_end() {
        let start = reader.at;
        match reader.tag().ok()? {
            (3, VARINT) => found = Some(reader.varint().ok()?),
            (number, wire) => reader.skip(wire, number, start).ok()?,
        }
    }
    u8::try_from(found?).ok()
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
    others(payload, &mut message)?;
    put::close(&mut message);
    // Offsets in what was written say nothing about the payload.
    binary::write_json(BinaryFormat::Cbor, &message, text).map_err(|fault| fault.at_start())
}

#[cfg(test)]
mod tests;
