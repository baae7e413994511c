//! Names, aliases and data types of metrics, by the last birth of each node and device.

use std::collections::HashMap;

use super::address::{Address, Kind};

/// Limit of nodes and devices of a topic.
const SOURCES: usize = 4096;
/// Limit of the metrics of all of them together.
const METRICS: usize = 1 << 20;
/// The most bytes that the names of metrics and of nodes have together, each.
const BYTES: usize = 16 << 20;

/// The names of metrics, by numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    list: Vec<Box<[u8]>>,
    /// The number of each name, where all names are read, not only those of a specification.
    numbers: Option<HashMap<Box<[u8]>, u32>>,
    bytes: usize,
}

impl Names {
    /// These names alone; all that come if there are none.
    pub(super) fn new(wanted: Option<Vec<&str>>) -> Names {
        let Some(mut wanted) = wanted else {
            return Names { numbers: Some(HashMap::new()), ..Names::default() };
        };
        wanted.sort_unstable_by_key(|name| (name.len(), name.as_bytes()));
        wanted.dedup();
        let list = wanted.into_iter().map(|name| name.as_bytes().into()).collect();
        Names { list, ..Names::default() }
    }

    /// Whether names are added as they come.
    pub(super) fn takes_all(&self) -> bool {
        self.numbers.is_some()
    }

    pub(super) fn get(&self, number: u32) -> &[u8] {
        self.list.get(number as usize).map_or(&[], |name| name)
    }

    /// The number of a name that is read or known.
    #[inline]
    pub(super) fn number(&self, name: &[u8]) -> Option<u32> {
        match &self.numbers {
            Some(numbers) => numbers.get(name).copied(),
            None => self.fixed(name),
        }
    }

    /// The number of a name among those that are read, where names are not added as they come.
    #[inline]
    pub(super) fn fixed(&self, name: &[u8]) -> Option<u32> {
        let found = self.list.binary_search_by(|own| (own.len(), &**own).cmp(&(name.len(), name)));
        found.ok().map(|at| at as u32)
    }

    /// The number of a name, which is added where all are; `None` if it is not read, an error if there is no room.
    fn add(&mut self, name: &[u8]) -> Result<Option<u32>, Full> {
        let number = self.number(name);
        let Some(numbers) = self.numbers.as_mut().filter(|_| number.is_none()) else { return Ok(number) };
        if self.list.len() >= METRICS || self.bytes + name.len() > BYTES {
            return Err(Full);
        }
        let added = self.list.len() as u32;
        self.bytes += name.len();
        self.list.push(name.into());
        numbers.insert(name.into(), added);
        Ok(Some(added))
    }
}

/// A metric of a birth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Born<'m> {
    pub(super) name: &'m [u8],
    pub(super) alias: Option<u64>,
    pub(super) datatype: u8,
}

/// A metric that is known by its alias.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    name: u32,
    pub(super) datatype: u8,
}

impl Known {
    /// Stands for the name of a metric that is not read.
    const UNREAD: u32 = u32::MAX;
    const NONE: Known = Known { name: Known::UNREAD - 1, datatype: 0 };

    /// The number of its name, if it is read.
    #[inline(always)]
    pub(super) fn name(self) -> Option<u32> {
        (self.name != Known::UNREAD).then_some(self.name)
    }
}

/// The aliases of a birth.
#[derive(Clone, Debug, Default)]
pub(super) struct Aliases {
    /// Those in succession, with gaps, and the first one.
    dense: Vec<Known>,
    first: u64,
    /// In ascending order, where they are far apart.
    sparse: Vec<(u64, Known)>,
    /// Those below 128 that are not read, as bits.
    unread: u128,
}

impl Aliases {
    fn new(mut known: Vec<(u64, Known)>) -> Aliases {
        // The last metric with an alias counts.
        known.reverse();
        known.sort_by_key(|(alias, _)| *alias);
        known.dedup_by_key(|(alias, _)| *alias);
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return Aliases::default() };
        let (first, span) = (first.0, last.0 - first.0);
        let unread = known.iter().filter(|(alias, of)| *alias < 128 && of.name().is_none());
        let unread = unread.fold(0, |bits, (alias, _)| bits | 1 << alias);
        if span > 4 * known.len() as u64 {
            return Aliases { sparse: known, unread, ..Aliases::default() };
        }
        let mut dense = vec![Known::NONE; span as usize + 1];
        known.iter().for_each(|(alias, of)| dense[(alias - first) as usize] = *of);
        Aliases { dense, first, sparse: Vec::new(), unread }
    }

    /// Whether an alias below 128 is of a metric that is not read.
    #[inline(always)]
    pub(super) fn is_unread(&self, alias: u8) -> bool {
        self.unread >> (alias & 127) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn get(&self, alias: u64) -> Option<Known> {
        match self.dense.get(alias.wrapping_sub(self.first) as usize) {
            Some(known) => Some(*known).filter(|known| known.name != Known::NONE.name),
            None if self.sparse.is_empty() => None,
            None => self.far(alias),
        }
    }

    fn far(&self, alias: u64) -> Option<Known> {
        let at = self.sparse.binary_search_by_key(&alias, |(alias, _)| *alias).ok()?;
        Some(self.sparse[at].1)
    }

    fn len(&self) -> usize {
        self.dense.len() + self.sparse.len()
    }
}

/// A node or a device.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Number of the node of a device; `None` for a node.
    node: Option<u32>,
    aliases: Aliases,
    /// The metrics that are read, by the numbers of their names in ascending order, with their data types.
    metrics: Vec<(u32, u8)>,
    /// The number of the connection that the birth of a node states.
    session: Option<u64>,
    is_born: bool,
}

/// There is no room for more metrics.
pub(super) struct Full;

/// The nodes and devices of a topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    sources: Vec<Source>,
    numbers: HashMap<Box<str>, u32>,
    bytes: usize,
    /// The metrics of all sources.
    metrics: usize,
}

/// Node or device of a topic name, and the type of its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// `None` if there are too many.
    source: Option<u32>,
    pub(super) kind: Kind,
    pub(super) is_node: bool,
}

impl Nodes {
    /// The place of a name.
    pub(super) fn place(&mut self, address: &Address<'_>) -> Place {
        let of_node = format!("{}/{}", address.group, address.node);
        let node = self.source(&of_node, None);
        let source = match address.device {
            None => node,
            Some(device) => node.and_then(|node| self.source(&format!("{of_node}/{device}"), Some(node))),
        };
        Place { source, kind: address.kind, is_node: address.device.is_none() }
    }

    fn source(&mut self, name: &str, node: Option<u32>) -> Option<u32> {
        if let Some(known) = self.numbers.get(name) {
            return Some(*known);
        }
        if self.sources.len() >= SOURCES || self.bytes + name.len() > BYTES {
            return None;
        }
        let number = self.sources.len() as u32;
        self.bytes += name.len();
        self.numbers.insert(name.into(), number);
        self.sources.push(Source { node, ..Source::default() });
        Some(number)
    }

    fn of(&self, place: Place) -> Option<&Source> {
        self.sources.get(place.source? as usize)
    }

    /// The aliases of a node or a device.
    #[inline(always)]
    pub(super) fn aliases(&self, place: Place) -> Option<&Aliases> {
        self.of(place).map(|source| &source.aliases)
    }

    /// The metric with an alias.
    #[inline]
    pub(super) fn metric(&self, place: Place, alias: u64) -> Option<Known> {
        self.of(place)?.aliases.get(alias)
    }

    /// The data type of a metric by its name.
    pub(super) fn datatype(&self, place: Place, name: u32) -> Option<u8> {
        let metrics = &self.of(place)?.metrics;
        let at = metrics.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(metrics[at].1)
    }

    /// Whether a death belongs to the last birth, or to a later one that was missed: a broker may publish that of an
    /// earlier connection afterwards. Connections are numbered from 0 to 255, and then from 0 again.
    pub(super) fn is_current(&self, place: Place, session: Option<u64>) -> bool {
        match (self.of(place).and_then(|source| source.session), session) {
            (Some(born), Some(dead)) => !(1..128).contains(&(born.wrapping_sub(dead) % 256)),
            _ => true,
        }
    }

    /// Forgets the aliases of a node with its devices; the node is that of the place.
    pub(super) fn forget_aliases(&mut self, place: Place) {
        let Some(source) = self.of(place) else { return };
        let node = if place.is_node { place.source } else { source.node };
        for (at, source) in (0..).zip(&mut self.sources) {
            if Some(at) == node || source.node == node && node.is_some() {
                self.metrics -= source.aliases.len();
                source.aliases = Aliases::default();
            }
        }
    }

    /// Forgets the metrics of a node with its devices, or of a device. Returns the names of those that are read, each once
    /// or more often; `None` if no birth has named them.
    pub(super) fn end(&mut self, place: Place) -> Option<Vec<u32>> {
        let number = place.source?;
        let is_born = self.of(place)?.is_born;
        let mut names = Vec::new();
        for (at, source) in (0..).zip(&mut self.sources) {
            if at == number || place.is_node && source.node == Some(number) {
                self.metrics -= source.aliases.len() + source.metrics.len();
                names.extend(source.metrics.drain(..).map(|(name, _)| name));
                source.aliases = Aliases::default();
                (source.session, source.is_born) = (None, false);
            }
        }
        is_born.then_some(names)
    }

    /// Takes the metrics of a birth, after [`Nodes::end`].
    ///
    /// # Errors
    /// There are too many nodes or metrics.
    pub(super) fn begin(
        &mut self,
        place: Place,
        session: Option<u64>,
        born: &[Born<'_>],
        names: &mut Names,
    ) -> Result<(), Full> {
        let number = place.source.ok_or(Full)? as usize;
        if self.metrics + born.len() > METRICS {
            return Err(Full);
        }
        let (mut aliases, mut metrics) = (Vec::new(), Vec::new());
        for Born { name, alias, datatype } in born {
            let name = names.add(name)?;
            if let Some(alias) = alias {
                aliases.push((*alias, Known { name: name.unwrap_or(Known::UNREAD), datatype: *datatype }));
            }
            metrics.extend(name.map(|name| (name, *datatype)));
        }
        metrics.sort_by_key(|(name, _)| *name);
        metrics.dedup_by_key(|(name, _)| *name);
        let aliases = Aliases::new(aliases);
        let added = aliases.len() + metrics.len();
        if self.metrics + added > METRICS {
            return Err(Full);
        }
        let Some(source) = self.sources.get_mut(number) else { return Err(Full) };
        self.metrics += added;
        (source.aliases, source.metrics, source.session) = (aliases, metrics, session);
        source.is_born = true;
        Ok(())
    }
}
