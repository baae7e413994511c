//! What is remembered, as bytes, and back.

use std::sync::Arc;

use rondel_event::{SnapshotError, snapshot};

use crate::monitor::{Monitor, Saved};
use crate::program::Program;

/// The kind of a monitor's snapshot.
const MONITOR: &snapshot::Kind = b"RONDELss";
/// The version of the saved form. It goes up with every change of the saved state.
const VERSION: u32 = 18;

impl Monitor {
    /// All that the monitor remembers, as bytes. A monitor that is [restored](Monitor::restore) from them gives
    /// the same reports from there on.
    pub fn snapshot(&self) -> Vec<u8> {
        // Plain data always serialises.
        let state = postcard::to_stdvec(&self.saved()).unwrap_or_default();
        snapshot::seal(MONITOR, VERSION, self.program().fingerprint(), &state)
    }

    /// A monitor that goes on where the one went on that the snapshot is of.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, not whole, or of another program.
    pub fn restore(program: Arc<Program>, bytes: &[u8]) -> Result<Monitor, SnapshotError> {
        let (fingerprint, other) = (program.fingerprint(), SnapshotError::OtherProgram);
        let state = snapshot::open(MONITOR, VERSION, fingerprint, other, bytes)?;
        let saved: Saved = postcard::from_bytes(state).map_err(|_| SnapshotError::Altered)?;
        Monitor::from_saved(program, saved).ok_or(SnapshotError::Altered)
    }
}

/// Values of machines: a word of another crate, which knows nothing of bytes.
pub(crate) mod values {
    use rondel_event::Value;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum Saved {
        Unknown,
        Bool(bool),
        Int(i64),
        Float(f64),
        Time(i64),
        Duration(i64),
        String(Box<str>),
    }

    pub(crate) fn serialize<S: Serializer>(values: &[Option<Value>], to: S) -> Result<S::Ok, S::Error> {
        let saved = |value: &Option<Value>| match value {
            None => Saved::Unknown,
            Some(Value::Bool(x)) => Saved::Bool(*x),
            Some(Value::Int(x)) => Saved::Int(*x),
            Some(Value::Float(x)) => Saved::Float(*x),
            Some(Value::Time(x)) => Saved::Time(*x),
            Some(Value::Duration(x)) => Saved::Duration(*x),
            Some(Value::String(x)) => Saved::String(x.clone()),
        };
        values.iter().map(saved).collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<Value>>, D::Error> {
        let value = |saved| match saved {
            Saved::Unknown => None,
            Saved::Bool(x) => Some(Value::Bool(x)),
            Saved::Int(x) => Some(Value::Int(x)),
            Saved::Float(x) => Some(Value::Float(x)),
            Saved::Time(x) => Some(Value::Time(x)),
            Saved::Duration(x) => Some(Value::Duration(x)),
            Saved::String(x) => Some(Value::String(x)),
        };
        Ok(Vec::<Saved>::deserialize(from)?.into_iter().map(value).collect())
    }
}

/// A verdict, or none yet.
pub(crate) mod verdict {
    use rondel_event::Verdict;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const ALL: [Verdict; 3] = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];

    pub(crate) fn serialize<S: Serializer>(verdict: &Option<Verdict>, to: S) -> Result<S::Ok, S::Error> {
        ALL.iter().position(|known| Some(*known) == *verdict).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Verdict>, D::Error> {
        Ok(Option::<usize>::deserialize(from)?.and_then(|i| ALL.get(i).copied()))
    }
}
