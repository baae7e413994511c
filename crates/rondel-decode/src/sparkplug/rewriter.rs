//! From payloads to CBOR, with what births, deaths and aliases say.

use rondel_event::NameId;

use super::address::{Address, Kind};
use super::cbor::write_ended;
use super::history::History;
use super::metric::Metric;
use super::nodes::{self, Aliases, Born, Names, Nodes, Place};
use super::payload::{each_metric, others};
use super::reads::Reads;
use crate::binary::put;
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::protobuf::wire::{LENGTH, Reader, VARINT};

/// The metric of a birth and a death that numbers connections.
const SESSION: &[u8] = b"bdSeq";

/// Kind of the messages with a topic name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// A message of metrics.
    Metrics(Place),
    /// A message that has none.
    Other,
    /// Any message: the name is not known.
    Unknown,
}

/// A metric with its name and data type.
pub(super) struct Resolved<'m> {
    pub(super) metric: Metric<'m>,
    /// The number of its name; `None` if no birth has named it, and it has its name itself.
    pub(super) number: Option<u32>,
    pub(super) datatype: u8,
}

/// The metrics that have no value any more after a message.
pub(super) enum Ended {
    None,
    All,
    Names(Vec<u32>),
}

/// Writes messages as CBOR, and keeps the last births.
#[derive(Clone, Debug)]
pub(super) struct Rewriter {
    pub(super) reads: Reads,
    /// Whether metrics of commands are read.
    reads_commands: bool,
    /// Whether historical metrics, commands and metrics that end are written as well.
    shows_all: bool,
    nodes: Nodes,
    /// The places of names by their numbers, as far as they came.
    places: Vec<Option<Named>>,
    pub(super) current: Named,
    pub(super) history: History,
    /// The historical metrics of a message, where they are written.
    past: Vec<u8>,
}

impl Rewriter {
    pub(super) fn new(reads: Reads, shows_all: bool) -> Rewriter {
        Rewriter {
            reads,
            reads_commands: false,
            shows_all,
            nodes: Nodes::default(),
            places: Vec::new(),
            current: Named::Unknown,
            history: History::default(),
            past: Vec::new(),
        }
    }

    pub(super) fn read_commands(&mut self) {
        self.reads_commands = true;
    }

    #[inline]
    pub(super) fn set_name<N: AsRef<str>>(
        &mut self,
        id: Option<NameId>,
        name: impl FnOnce(NameId) -> Option<N>,
    ) {
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

    /// The place whose messages of data have the name that was set last.
    #[inline(always)]
    pub(super) fn place_of_data(&self) -> Option<Place> {
        match self.current {
            Named::Metrics(place) if place.kind == Kind::Data => Some(place),
            _ => None,
        }
    }

    /// Whether a death of a node has the name that was set last.
    #[inline(always)]
    pub(super) fn is_death_of_node(&self) -> bool {
        matches!(self.current, Named::Metrics(place) if place.kind == Kind::Death && place.is_node)
    }

    pub(super) fn forget_aliases(&mut self) {
        if let Named::Metrics(place) = self.current {
            self.nodes.forget_aliases(place);
        }
    }

    /// Writes the message as CBOR, with the metrics that are read, and takes note of births and deaths. `arrival`, in
    /// milliseconds, replaces its timestamp.
    pub(super) fn rewrite(
        &mut self,
        payload: &[u8],
        arrival: Option<i64>,
        out: &mut Vec<u8>,
    ) -> Parsed<Ended> {
        self.past.clear();
        put::open_map(out);
        let mut ended = Ended::None;
        match self.current {
            Named::Other => {}
            Named::Unknown => self.members(payload, None, out)?,
            Named::Metrics(place) => match place.kind {
                Kind::Birth if self.reads.metrics => ended = self.birth(place, payload, out)?,
                Kind::Death if self.reads.metrics => ended = self.death(place, payload, arrival, out)?,
                _ => self.members(payload, Some(place), out)?,
            },
        }
        if !self.past.is_empty() {
            put::text(b"history", out);
            put::open_array(out);
            out.append(&mut self.past);
            put::close(out);
        }
        put::close(out);
        Ok(ended)
    }

    /// Writes the members of a message of data or commands.
    fn members(&mut self, payload: &[u8], place: Option<Place>, out: &mut Vec<u8>) -> Parsed<()> {
        let is_command = place.is_some_and(|place| place.kind == Kind::Command) && !self.reads_commands;
        if self.reads.metrics && (!is_command || self.shows_all) {
            put::text(if is_command { b"commands" } else { b"metrics" }, out);
            put::open_array(out);
            let mut index = 0;
            each_metric(payload, |part| {
                let written = self.metric(place, part, out);
                index += 1;
                written.map_err(|fault| fault.in_element(index - 1).in_member("metrics"))
            })?;
            put::close(out);
        }
        others(payload, None, out)
    }

    /// Writes a metric of a message of data, if it is read.
    fn metric(&mut self, place: Option<Place>, part: Reader<'_>, out: &mut Vec<u8>) -> Parsed<()> {
        let Some(Resolved { metric, number, datatype }) = self.resolve(place, part)? else { return Ok(()) };
        let Rewriter { reads, history, past, shows_all, .. } = self;
        let name = metric.name.or_else(|| Some(reads.names.get(number?)));
        if metric.is_historical {
            history.add(name.unwrap_or_default());
            if *shows_all {
                metric.write(name, datatype, reads.attributes, past)?;
            }
            return put::room(part.at, past);
        }
        metric.write(name, datatype, reads.attributes, out)?;
        put::room(part.at, out)
    }

    /// The aliases of a node or a device.
    #[inline(always)]
    pub(super) fn aliases(&self, place: Place) -> Option<&Aliases> {
        self.nodes.aliases(place)
    }

    /// A metric of a message of data with its name and data type, if it is read.
    pub(super) fn resolve<'m>(&self, place: Option<Place>, part: Reader<'m>) -> Parsed<Option<Resolved<'m>>> {
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
        others(payload, None, out)?;
        put::text(b"metrics", out);
        put::open_array(out);
        let Rewriter { reads, history, past, shows_all, .. } = self;
        each_metric(payload, |part| {
            let metric = Metric::read(part)?;
            let Some(name) = metric.name else { return Ok(()) };
            if name == SESSION && place.is_node {
                session = metric.number();
            }
            born.push(Born { name, alias: metric.alias, datatype: metric.datatype });
            let is_read = reads.names.takes_all() || reads.names.number(name).is_some();
            if is_read && metric.is_historical {
                history.add(name);
            }
            match (is_read, metric.is_historical) {
                (true, false) => metric.write(Some(name), metric.datatype, reads.attributes, out)?,
                (true, true) if *shows_all => {
                    metric.write(Some(name), metric.datatype, reads.attributes, past)?;
                }
                _ => {}
            }
            put::room(part.at, out)?;
            put::room(part.at, past)
        })?;
        // Earlier values of the metrics end here, also of those that the birth does not name any more.
        let ended = self.nodes.end(place);
        let begun = self.nodes.begin(place, session, &born, &mut self.reads.names);
        begun.map_err(|nodes::Full| Fault::new(0, MessageErrorKind::TooManyMetrics))?;
        if self.shows_all {
            let mut born: Vec<&[u8]> = born.iter().map(|born| born.name).collect();
            born.sort_unstable();
            let is_gone = |name: &&[u8]| born.binary_search(name).is_err();
            self.write_ended(ended.as_deref().unwrap_or_default(), is_gone, out)?;
        }
        put::close(out);
        Ok(ended.map_or(Ended::None, Ended::Names))
    }

    /// Forgets the metrics that a death ends.
    #[cold]
    fn death(
        &mut self,
        place: Place,
        payload: &[u8],
        arrival: Option<i64>,
        out: &mut Vec<u8>,
    ) -> Parsed<Ended> {
        let mut session = None;
        each_metric(payload, |part| {
            let metric = Metric::read(part)?;
            if metric.name == Some(SESSION) && place.is_node {
                session = metric.number();
            }
            Ok(())
        })?;
        others(payload, arrival, out)?;
        if !self.nodes.is_current(place, session) {
            return Ok(Ended::None);
        }
        let ended = self.nodes.end(place);
        if self.shows_all {
            let unknown = || Fault::new(0, MessageErrorKind::NoBirthBeforeDeath);
            let names = ended.as_ref().ok_or_else(unknown)?;
            put::text(b"metrics", out);
            put::open_array(out);
            self.write_ended(names, |_| true, out)?;
            put::close(out);
        }
        Ok(ended.map_or(Ended::All, Ended::Names))
    }

    /// Writes that these metrics have no value any more, each once.
    fn write_ended(
        &self,
        numbers: &[u32],
        is_meant: impl Fn(&&[u8]) -> bool,
        out: &mut Vec<u8>,
    ) -> Parsed<()> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let names: &Names = &self.reads.names;
        for name in numbers.into_iter().map(|number| names.get(number)).filter(is_meant) {
            write_ended(name, out);
            put::room(0, out)?;
        }
        Ok(())
    }
}
