//! Parts of a snapshot: the instances whose parameters hash into a range.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rondel_event::{SnapshotError, Value, snapshot};
use serde::{Deserialize, Serialize};

use crate::exec::inventory::Origins;
use crate::keyed::Instances;
use crate::keyed::moved::{Selection, SlicedOutline};
use crate::keyed::saved::SavedInstances;
use crate::monitor::program::Program;
use crate::monitor::uncertainty::Instance;
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
    /// The part at this position was taken at another time than the first one, or of another monitor.
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

/// A slice before the first event, with those instances of `of` that `which` selects.
fn only(
    program: &Program,
    sliced: usize,
    of: SavedInstances,
    which: Selection<'_>,
) -> Option<SavedInstances> {
    let sliced = program.sliced.get(sliced)?;
    let mut own = Instances::new(sliced, &rondel_event::Block::new(program.layout())).saved();
    let outline = SlicedOutline::new(sliced);
    own.take(&outline, of, &outline, &same(program), which).then_some(own)
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
        let program = self.program();
        let is_meant = |sliced: usize, key: &[u64]| {
            let values = program.sliced.get(sliced).map(|sliced| sliced.plan.keys.values(key));
            values.is_some_and(|values| hashes.contains(&key_hash(&values)))
        };
        let mut common = self.saved();
        let (mut rests, mut instances) = (Vec::new(), Vec::new());
        for (at, own) in self.instances.iter().enumerate() {
            // Just serialised, so that it can be read.
            instances.extend(only(
                program,
                at,
                own.saved(),
                Selection { with_template: false, is_meant: &|key| is_meant(at, key) },
            ));
            rests.extend(only(
                program,
                at,
                own.saved(),
                Selection { with_template: true, is_meant: &|_| false },
            ));
        }
        common.instances = rests;
        let slice_of = |property: u32| {
            program
                .sliced
                .iter()
                .position(|sliced| sliced.section.all_properties().any(|own| own == property))
        };
        let mut uncertain: UncertainInstances = common.uncertainties.take_keys();
        for (property, keys) in &mut uncertain {
            keys.retain(|key, _| slice_of(*property).is_some_and(|sliced| is_meant(sliced, key)));
        }
        // Plain data always serialises.
        let common = postcard::to_stdvec(&common).unwrap_or_default();
        let part = PartContents { from: hashes.start, until: hashes.end, common, instances, uncertain };
        snapshot::seal(PART, VERSION, program.fingerprint(), &postcard::to_stdvec(&part).unwrap_or_default())
    }

    /// Restores a monitor from parts of one monitor at one time. Returns it with the covered ranges of hashes, in
    /// order. An instance whose parameters are in none of them restarts with its next event.
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
                postcard::from_bytes::<PartContents>(state).map_err(|_| SnapshotError::Altered)
            });
            part.map_err(|error| PartsError::Part(at, error))
        };
        let parts: Vec<PartContents> = parts.iter().enumerate().map(read).collect::<Result<_, _>>()?;
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
            saved.uncertainties.add_keys(part.uncertain);
        }
        Monitor::from_saved(program, saved).map(|monitor| (monitor, covered)).ok_or(altered(0))
    }
}
