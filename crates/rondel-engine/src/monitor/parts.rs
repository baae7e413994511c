//! Parts of a snapshot: the instances whose parameters hash into a range.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rondel_event::{Block, SnapshotError, Timestamp, TopicId, Value, snapshot};
use serde::{Deserialize, Serialize};

use crate::exec::inventory::Origins;
use crate::keyed::Instances;
use crate::keyed::moved::{Selection, SlicedOutline};
use crate::keyed::plan::Sliced;
use crate::keyed::saved::SavedInstances;
use crate::keyed::shards::Shards;
use crate::monitor::program::Program;
use crate::monitor::uncertainty::{Instance, SeenAgain, UnseenFrom};
use crate::monitor::{Monitor, SavedMonitor};

/// Kind of a snapshot part.
const PART: &snapshot::Kind = b"RONDELpt";
/// Version of the saved form, incremented with every change of the saved state.
const VERSION: u32 = 2;

/// Number of hashes of parameters: all hashes are below it.
pub const KEY_HASHES: u64 = 1 << 32;

/// Hash of the parameters of an instance, below [`KEY_HASHES`]. It is the same in every release and on every machine:
/// 64-bit FNV-1a (Fowler, Noll, Vo) over the parameters in order. A text contributes its length in bytes and its bytes,
/// any other value its number; numbers are eight bytes, little-endian. With the result `x`, the hash is the upper 32
/// bits of `(x ^ x >> 32) * 0x9E37_79B9_7F4A_7C15`.
///
/// ```
/// use rondel_engine::key_hash;
/// use rondel_event::Value;
/// assert_eq!(key_hash(&[Value::Int(7)]), 196_479_209);
/// assert_eq!(key_hash(&[Value::String("r7".into())]), 2_576_826_288);
/// ```
pub fn key_hash(parameters: &[Value]) -> u64 {
    let mut bytes = Vec::new();
    for value in parameters {
        match value {
            Value::Bool(x) => bytes.extend_from_slice(&u64::from(*x).to_le_bytes()),
            Value::Int(x) | Value::Time(x) | Value::Duration(x) => bytes.extend_from_slice(&x.to_le_bytes()),
            Value::Float(x) => bytes.extend_from_slice(&x.to_bits().to_le_bytes()),
            Value::String(text) => {
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
    let hash = snapshot::checksum(&bytes);
    (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// Reason why parts cannot be restored into one monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartsError {
    /// There is no part.
    Empty,
    /// The part at this position is damaged, of another version, or of another program.
    Part(usize, SnapshotError),
    /// The ranges of the parts at two positions overlap.
    Overlap(usize, usize),
    /// The part at this position was taken at another time than one before it.
    OtherTime(usize),
    /// The part at this position is of another monitor than one before it, and state that belongs to no instance differs.
    OtherState(usize),
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartsError::Empty => f.write_str("there is no part to restore"),
            PartsError::Part(at, error) => write!(f, "part {at}: {error}"),
            PartsError::Overlap(a, b) => write!(f, "the ranges of parts {a} and {b} overlap"),
            PartsError::OtherTime(at) => {
                write!(f, "part {at} was taken at another time than those before it")
            }
            PartsError::OtherState(at) => write!(
                f,
                "part {at} is of another monitor than those before it: these are joined only if every property and \
                 chain has `for each`, and every message its parameters"
            ),
        }
    }
}

impl std::error::Error for PartsError {}

/// Uncertain instances of each property, by parameter.
type UncertainInstances = Vec<(u32, BTreeMap<Vec<u64>, Instance>)>;

#[derive(Serialize, Deserialize)]
struct PartContents {
    from: u64,
    until: u64,
    /// Everything except the instances, the same in every part.
    common: Vec<u8>,
    instances: Vec<SavedInstances>,
    uncertain: UncertainInstances,
}

fn same(program: &Program) -> Origins {
    Origins((0..program.properties().len() as u32).map(Some).collect())
}

impl Monitor {
    /// Writes a part of a [snapshot](Monitor::snapshot): the `for each` instances whose parameters have a
    /// [hash](key_hash) in the range, and all state outside of instances. Parts with different ranges are
    /// [restored](Monitor::restore_parts) into one monitor, or each into its own, which then takes the messages with
    /// these parameters.
    pub fn snapshot_part(&self, hashes: Range<u64>) -> Vec<u8> {
        self.snapshot_parts(&[hashes.start, hashes.end]).pop().unwrap_or_default()
    }

    /// Writes several [parts](Monitor::snapshot_part) in one pass over the instances: one for each range between two
    /// neighbours of `cuts`, which are in order.
    pub fn snapshot_parts(&self, cuts: &[u64]) -> Vec<Vec<u8>> {
        let program = self.program();
        let count = cuts.len().saturating_sub(1);
        let part_of = |sliced: usize, key: &[u64]| {
            let hash = key_hash(&program.sliced.get(sliced)?.plan.keys.values(key));
            let part = cuts.partition_point(|&cut| cut <= hash).checked_sub(1)?;
            (part < count).then_some(part)
        };
        let mut common = self.saved();
        let mut parts: Vec<(Vec<SavedInstances>, UncertainInstances)> = Vec::new();
        parts.resize_with(count, Default::default);
        let origins = same(program);
        let block = Block::new(program.layout());
        let (mut rests, all) = (Vec::new(), std::mem::take(&mut common.instances));
        for ((at, sliced), (own, all)) in
            program.sliced.iter().enumerate().zip(self.instances.iter().zip(all))
        {
            let outline = SlicedOutline::new(sliced);
            let blank = || Instances::new(sliced, &block).saved();
            let mut divided: Vec<SavedInstances> = (0..count).map(|_| blank()).collect();
            // Just serialised, so that it can be read. Otherwise the parts would be refused.
            if SavedInstances::divide(&mut divided, &outline, all, &origins, &|key| part_of(at, key)) {
                let mut rest = own.part(sliced, &block, Shards::NONE);
                rest.add_lost(own);
                rests.push(rest.saved());
                parts.iter_mut().zip(divided).for_each(|((instances, _), own)| instances.push(own));
            }
        }
        common.instances = rests;
        for (property, keys) in common.uncertainties.take_keys() {
            parts.iter_mut().for_each(|(_, uncertain)| uncertain.push((property, BTreeMap::new())));
            let is_its = |sliced: &Sliced| sliced.section.all_properties().any(|own| own == property);
            let Some(sliced) = program.sliced.iter().position(is_its) else { continue };
            for (key, instance) in keys {
                let part = part_of(sliced, &key).and_then(|part| parts.get_mut(part));
                if let Some((_, own)) = part.and_then(|(_, uncertain)| uncertain.last_mut()) {
                    own.insert(key, instance);
                }
            }
        }
        // Plain data always serialises.
        let common = postcard::to_stdvec(&common).unwrap_or_default();
        let sealed = |((instances, uncertain), range): ((_, _), &[u64])| {
            let common = common.clone();
            let part = PartContents { from: range[0], until: range[1], common, instances, uncertain };
            let bytes = postcard::to_stdvec(&part).unwrap_or_default();
            snapshot::seal(PART, VERSION, program.fingerprint(), &bytes)
        };
        parts.into_iter().zip(cuts.windows(2)).map(sealed).collect()
    }

    /// Restores a monitor from parts of one monitor at one time, or of several monitors of a program that have
    /// [advanced](Monitor::advance) to the same time and whose events all have parameters. Returns it with the covered
    /// ranges of hashes, in order. An instance whose parameters are in none of them restarts with its next event. A
    /// property for which some of the monitors missed messages is uncertain for all instances from that time on.
    ///
    /// # Errors
    /// [`PartsError`] when a part is damaged or of another program, when ranges overlap, or times differ, and when
    /// monitors differ in state that belongs to no instance.
    pub fn restore_parts(
        program: Arc<Program>,
        parts: &[&[u8]],
    ) -> Result<(Monitor, Vec<Range<u64>>), PartsError> {
        let read = |(at, bytes): (usize, &&[u8])| {
            let (fingerprint, other) = (program.fingerprint(), SnapshotError::OtherProgram);
            let state = snapshot::open(PART, VERSION, fingerprint, other, bytes);
            let part = state.and_then(|state| {
                postcard::from_bytes::<PartContents>(state).map_err(|_| SnapshotError::Altered)
            });
            part.map_err(|error| PartsError::Part(at, error))
        };
        let parts: Vec<PartContents> = parts.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let Joined { mut saved, uncertain } = Joined::new(&parts)?;
        let covered = covered(&parts)?;
        let altered = |at: usize| PartsError::Part(at, SnapshotError::Altered);
        let outlines: Vec<SlicedOutline> = program.sliced.iter().map(SlicedOutline::new).collect();
        let origins = same(&program);
        let all = Selection { with_template: false, is_meant: &|_| true };
        for (at, part) in parts.into_iter().enumerate() {
            if (part.instances.len(), saved.instances.len()) != (outlines.len(), outlines.len()) {
                return Err(altered(at));
            }
            for ((own, other), outline) in saved.instances.iter_mut().zip(part.instances).zip(&outlines) {
                if !own.take(outline, other, outline, &origins, all) {
                    return Err(altered(at));
                }
            }
            let mut keys = part.uncertain;
            keys.retain(|(property, _)| !uncertain.contains(property));
            saved.uncertainties.add_keys(keys);
        }
        saved.instances.iter_mut().zip(&outlines).for_each(|(own, outline)| own.schedule(outline));
        let time = Timestamp::from_nanos(saved.time);
        let mut monitor = Monitor::from_saved(program, saved).ok_or(altered(0))?;
        if !uncertain.is_empty() {
            let topics = 0..monitor.program().projections().len() as u32;
            let topics: Vec<TopicId> = topics.map(TopicId).collect();
            let span = (UnseenFrom::Time(time), SeenAgain::Now(time));
            monitor.miss_for(&topics, span, |property| uncertain.contains(&property));
        }
        Ok((monitor, covered))
    }
}

/// Returns the ranges of parts in order.
fn covered(parts: &[PartContents]) -> Result<Vec<Range<u64>>, PartsError> {
    let mut order: Vec<usize> = (0..parts.len()).filter(|&at| parts[at].from < parts[at].until).collect();
    order.sort_by_key(|&at| parts[at].from);
    if let Some(pair) = order.windows(2).find(|pair| parts[pair[1]].from < parts[pair[0]].until) {
        return Err(PartsError::Overlap(pair[0].min(pair[1]), pair[0].max(pair[1])));
    }
    Ok(order.iter().map(|&at| parts[at].from..parts[at].until).collect())
}

/// State outside of instances, joined from the monitors of all parts.
struct Joined {
    saved: SavedMonitor,
    /// Properties that are uncertain in some of the monitors only.
    uncertain: Vec<u32>,
}

impl Joined {
    /// Joins the monitors of parts. That with the most events gives what cannot be joined, such as the number of the next
    /// step; monitors without an event have no state apart from missed messages.
    fn new(parts: &[PartContents]) -> Result<Joined, PartsError> {
        // Each monitor with the position of its first part.
        let mut monitors: Vec<(usize, SavedMonitor)> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if monitors.iter().any(|(first, _)| parts[*first].common == part.common) {
                continue;
            }
            let saved: Result<SavedMonitor, _> = postcard::from_bytes(&part.common);
            monitors.push((at, saved.map_err(|_| PartsError::Part(at, SnapshotError::Altered))?));
        }
        let mut begun = monitors.iter().filter(|(_, saved)| saved.position > 0);
        let time = begun.next().map(|(_, saved)| saved.time);
        if let Some((at, _)) = begun.find(|(_, saved)| Some(saved.time) != time) {
            return Err(PartsError::OtherTime(*at));
        }
        let most =
            (0..monitors.len()).rev().max_by_key(|&i| monitors[i].1.position).ok_or(PartsError::Empty)?;
        let (first, saved) = monitors.swap_remove(most);
        let mut joined = Joined { saved, uncertain: Vec::new() };
        for (at, other) in &monitors {
            if other.position == 0 {
                // Messages may have been missed before the first event.
                if other.uncertainties.is_active() {
                    joined.add_uncertain(other);
                }
            } else if !joined.add(other) {
                return Err(PartsError::OtherState(first.max(*at)));
            }
        }
        for property in &joined.uncertain {
            joined.saved.uncertainties.clear(*property);
        }
        Ok(joined)
    }

    /// Joins another monitor. Returns false if they differ in state that belongs to no instance.
    fn add(&mut self, other: &SavedMonitor) -> bool {
        let saved = &self.saved;
        let whole = |of: &SavedMonitor| {
            postcard::to_stdvec(&(&of.sections, &of.chains, &of.linear)).unwrap_or_default()
        };
        if whole(saved) != whole(other) || saved.instances.len() != other.instances.len() {
            return false;
        }
        self.add_uncertain(other);
        let saved = &mut self.saved;
        saved.event_time = saved.event_time.max(other.event_time);
        saved.beyond = saved.beyond.max(other.beyond);
        saved.instances.iter_mut().zip(&other.instances).all(|(own, other)| own.join(other))
    }

    /// Joins the uncertainty of another monitor.
    fn add_uncertain(&mut self, other: &SavedMonitor) {
        let Joined { saved, uncertain } = self;
        for property in saved.uncertainties.differing(&other.uncertainties) {
            if !uncertain.contains(&property) {
                uncertain.push(property);
            }
        }
        saved.uncertainties.join(&other.uncertainties);
    }
}
