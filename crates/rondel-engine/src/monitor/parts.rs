//! Parts of a snapshot: the instances whose parameters hash into a range.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rondel_event::{SnapshotError, Value, snapshot};
use serde::{Deserialize, Serialize};

use crate::exec::inventory::Origins;
use crate::keyed::Instances;
use crate::keyed::moved::{SlicedOutline, Which};
use crate::keyed::saved::SavedInstances;
use crate::monitor::doubt::Instance;
use crate::monitor::program::Program;
use crate::monitor::{Monitor, SavedMonitor};

/// The kind of a part.
const PART: &snapshot::Kind = b"RONDELpt";
/// The version of the saved form. It goes up with every change of the saved state.
const VERSION: u32 = 1;

/// The number of hashes of parameters: they are below it.
pub const KEY_HASHES: u64 = 1 << 32;

/// A hash of the parameters of an instance, below [`KEY_HASHES`]. It is the same in every release and on every machine:
/// FNV-1a (Fowler, Noll, Vo) of 64 bits over the parameters in their order, of a text its length in bytes and these, of
/// anything else its number, and numbers as eight bytes, the lowest first; the result `x` as `x ^ x >> 32`, times
/// `0x9E37_79B9_7F4A_7C15`, of which the upper 32 bits.
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

/// Why parts are not restored into one monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartsError {
    /// There is no part.
    Empty,
    /// A part, by its position, is not whole, of another version, or of another program.
    Part(usize, SnapshotError),
    /// The ranges of two parts, by their positions, overlap.
    Overlap(usize, usize),
    /// A part, by its position, was taken at another time than the first one, or of another monitor.
    OtherTime(usize),
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartsError::Empty => f.write_str("there is no part to restore"),
            PartsError::Part(at, error) => write!(f, "part {at}: {error}"),
            PartsError::Overlap(a, b) => write!(f, "the ranges of parts {a} and {b} overlap"),
            PartsError::OtherTime(at) => {
                write!(f, "part {at} was taken at another time than part 0, or of another monitor")
            }
        }
    }
}

impl std::error::Error for PartsError {}

/// What is uncertain of the instances of each property, by their keys.
type Doubtful = Vec<(u32, BTreeMap<Vec<u64>, Instance>)>;

#[derive(Serialize, Deserialize)]
struct DoubtPart {
    from: u64,
    until: u64,
    /// All but the instances, which is in every part.
    common: Vec<u8>,
    instances: Vec<SavedInstances>,
    doubtful: Doubtful,
}

/// The instances of a division before the first event, and those of `of` with keys that are meant.
fn only(program: &Program, sliced: usize, of: SavedInstances, which: Which<'_>) -> Option<SavedInstances> {
    let sliced = program.sliced.get(sliced)?;
    let mut own = Instances::new(sliced, &rondel_event::Block::new(program.layout())).saved();
    let outline = SlicedOutline::new(sliced);
    own.take(&outline, of, &outline, &same(program), which).then_some(own)
}

fn same(program: &Program) -> Origins {
    Origins((0..program.properties().len() as u32).map(Some).collect())
}

impl Monitor {
    /// A part of a [snapshot](Monitor::snapshot): of the instances of `for each` those whose parameters have a
    /// [hash](key_hash) in the range, and everything that is not of one instance. Parts with different ranges are
    /// [restored](Monitor::restore_parts) into one monitor, or each into a monitor of its own, which then takes the
    /// messages with these parameters.
    pub fn snapshot_part(&self, hashes: Range<u64>) -> Vec<u8> {
        let program = self.program();
        let is_meant = |sliced: usize, key: &[u64]| {
            let values = program.sliced.get(sliced).map(|sliced| sliced.plan.keys.values(key));
            values.is_some_and(|values| hashes.contains(&key_hash(&values)))
        };
        let mut common = self.saved();
        let (mut rests, mut instances) = (Vec::new(), Vec::new());
        for (at, own) in self.instances.iter().enumerate() {
            // What was written just now can be read.
            instances.extend(only(program, at, own.saved(), (false, &|key| is_meant(at, key))));
            rests.extend(only(program, at, own.saved(), (true, &|_| false)));
        }
        common.instances = rests;
        let slice_of = |property: u32| {
            program
                .sliced
                .iter()
                .position(|sliced| sliced.section.all_properties().any(|own| own == property))
        };
        let mut doubtful: Doubtful = common.doubts.take_keys();
        for (property, keys) in &mut doubtful {
            keys.retain(|key, _| slice_of(*property).is_some_and(|sliced| is_meant(sliced, key)));
        }
        // Plain data always serialises.
        let common = postcard::to_stdvec(&common).unwrap_or_default();
        let part = DoubtPart { from: hashes.start, until: hashes.end, common, instances, doubtful };
        snapshot::seal(PART, VERSION, program.fingerprint(), &postcard::to_stdvec(&part).unwrap_or_default())
    }

    /// A monitor that goes on with the instances of all these parts, of one monitor at one time, and the ranges of
    /// hashes that they cover, in order. An instance whose parameters are in none of them begins anew with its next event.
    ///
    /// # Errors
    /// [`PartsError`] when a part is damaged or of another program, when ranges overlap, or times differ.
    pub fn restore_parts(
        program: Arc<Program>,
        parts: &[&[u8]],
    ) -> Result<(Monitor, Vec<Range<u64>>), PartsError> {
        let read = |(at, bytes): (usize, &&[u8])| {
            let (fingerprint, other) = (program.fingerprint(), SnapshotError::OtherProgram);
            let state = snapshot::open(PART, VERSION, fingerprint, other, bytes);
            let part = state.and_then(|state| {
                postcard::from_bytes::<DoubtPart>(state).map_err(|_| SnapshotError::Altered)
            });
            part.map_err(|error| PartsError::Part(at, error))
        };
        let parts: Vec<DoubtPart> = parts.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let first = parts.first().ok_or(PartsError::Empty)?;
        if let Some(other) = parts.iter().position(|part| part.common != first.common) {
            return Err(PartsError::OtherTime(other));
        }
        let mut order: Vec<usize> = (0..parts.len()).filter(|&at| parts[at].from < parts[at].until).collect();
        order.sort_by_key(|&at| parts[at].from);
        if let Some(pair) = order.windows(2).find(|pair| parts[pair[1]].from < parts[pair[0]].until) {
            return Err(PartsError::Overlap(pair[0].min(pair[1]), pair[0].max(pair[1])));
        }
        let covered = order.iter().map(|&at| parts[at].from..parts[at].until).collect();
        let altered = |at: usize| PartsError::Part(at, SnapshotError::Altered);
        let mut saved: SavedMonitor = postcard::from_bytes(&first.common).map_err(|_| altered(0))?;
        let outlines: Vec<SlicedOutline> = program.sliced.iter().map(SlicedOutline::new).collect();
        let origins = same(&program);
        for (at, part) in parts.into_iter().enumerate() {
            if (part.instances.len(), saved.instances.len()) != (outlines.len(), outlines.len()) {
                return Err(altered(at));
            }
            for ((own, other), outline) in saved.instances.iter_mut().zip(part.instances).zip(&outlines) {
                if !own.take(outline, other, outline, &origins, (false, &|_| true)) {
                    return Err(altered(at));
                }
            }
            saved.doubts.add_keys(part.doubtful);
        }
        Monitor::from_saved(program, saved).map(|monitor| (monitor, covered)).ok_or(altered(0))
    }
}
