//! Snapshots: the state of a session as bytes, from which another session continues.

use rondel_engine::CompileError;
use rondel_event::SnapshotError;
use rondel_event::snapshot::{self, Kind};
use serde::{Deserialize, Serialize};

use crate::ordering::progress::Waiting;
use crate::report::muting::SavedMuting;
use crate::statistics::SavedStatistics;
use crate::statistics::account::{RecordedNumbers, SavedNumbers};
use crate::statistics::missing::SavedMissing;
use crate::statistics::omission::SavedOmission;

/// The kind of a session's snapshot.
const SESSION: &Kind = b"RONDELgo";
/// The kind of a part of a session's snapshot.
const PART: &Kind = b"RONDELgp";
/// Version of the saved form, incremented with every change of the saved state.
const VERSION: u32 = 12;

/// The state of a session beside its monitors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Whether violations are explained: the program then has more properties.
    pub(crate) explain: bool,
    /// The fingerprint of the program, without the parts that explanations watch.
    pub(crate) program: u64,
    /// The names of the topics and of the properties.
    pub(crate) topics: Vec<String>,
    pub(crate) properties: Vec<String>,
    /// A note of the caller. Unless it is empty, it must be the same where another session continues.
    pub(crate) note: String,
    /// The number of checked events.
    pub(crate) events: u64,
    /// The time of the last event, in nanoseconds: also that of an event without a time.
    pub(crate) time: i64,
    /// The time of day, in nanoseconds.
    pub(crate) at: i64,
    /// Whether it contains every received message, because the run had ended.
    pub(crate) is_whole: bool,
    /// Whether the time of some message was that of its arrival.
    pub(crate) is_by_arrival: bool,
    /// The time of the last event of a recording, in nanoseconds.
    pub(crate) recorded_until: Option<i64>,
    /// Time of the last event for [`Backwards`](crate::statistics::Backwards), and number of events that went back.
    pub(crate) backwards: (Option<i64>, u64),
    /// The statistics of each property.
    pub(crate) statistics: Vec<SavedStatistics>,
    /// Missing topics and fields of the properties.
    pub(crate) missing: SavedMissing,
    /// The state of an alignment beside its waiting messages, if there is one.
    pub(crate) waiting: Option<Waiting>,
    /// The sequence numbers of publishers.
    pub(crate) numbers: SavedNumbers,
    /// Topics with missed messages before the next event, and number of messages up to the last one before them.
    pub(crate) unseen: (Vec<u32>, u64),
    /// For each topic the numbers in lines.
    pub(crate) recorded: Vec<RecordedNumbers>,
    /// The messages that were not evaluated.
    pub(crate) omissions: Vec<SavedOmission>,
    /// The number of the lap, from 1; 0 if it is not known.
    pub(crate) lap: u32,
    /// The latest time of each topic in the lap, in nanoseconds.
    pub(crate) latest: Vec<i64>,
    /// The state of muting, if a property has `@because_of`.
    pub(crate) muting: Option<SavedMuting>,
    /// Bytes of the caller.
    pub(crate) attachment: Vec<u8>,
}

/// The content of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    /// The state beside the monitors.
    pub(crate) known: Known,
    /// The monitors, each with the messages that wait for it.
    pub(crate) states: Vec<Vec<u8>>,
}

/// Reason why a session cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// A property cannot be monitored.
    Compile(CompileError),
    /// The bytes are not a snapshot of a session, or of another version, or damaged.
    Snapshot(SnapshotError),
    /// The snapshot belongs to another specification: no property there has the same meaning.
    Unrelated,
    /// The snapshot does not belong to this session, for this reason.
    Mismatch(String),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Compile(error) => error.fmt(f),
            StartError::Snapshot(error) => error.fmt(f),
            StartError::Unrelated => {
                f.write_str("it belongs to another specification: no property there has the same meaning")
            }
            StartError::Mismatch(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for StartError {}

impl From<SnapshotError> for StartError {
    fn from(error: SnapshotError) -> StartError {
        StartError::Snapshot(error)
    }
}

impl From<CompileError> for StartError {
    fn from(error: CompileError) -> StartError {
        StartError::Compile(error)
    }
}

impl From<&str> for StartError {
    fn from(reason: &str) -> StartError {
        StartError::Mismatch(reason.to_owned())
    }
}

impl Saved {
    /// Serialises the state.
    pub(crate) fn seal(&self) -> Vec<u8> {
        self.seal_as(SESSION)
    }

    /// Serialises the state of a part.
    pub(super) fn seal_part(&self) -> Vec<u8> {
        self.seal_as(PART)
    }

    fn seal_as(&self, kind: &Kind) -> Vec<u8> {
        // Plain data always serialises.
        snapshot::seal(kind, VERSION, 0, &postcard::to_stdvec(self).unwrap_or_default())
    }

    /// Deserialises the state.
    pub(crate) fn open(bytes: &[u8], explain: bool, note: &str) -> Result<Saved, StartError> {
        Saved::open_as(SESSION, bytes, explain, note)
    }

    /// Deserialises the state of a part.
    pub(super) fn open_part(bytes: &[u8], explain: bool, note: &str) -> Result<Saved, StartError> {
        Saved::open_as(PART, bytes, explain, note)
    }

    fn open_as(kind: &Kind, bytes: &[u8], explain: bool, note: &str) -> Result<Saved, StartError> {
        let state = snapshot::open(kind, VERSION, 0, SnapshotError::OtherProgram, bytes)?;
        let saved: Saved = postcard::from_bytes(state).map_err(|_| SnapshotError::Altered)?;
        if saved.known.explain != explain {
            return Err(StartError::from(if saved.known.explain {
                "violations were explained when the snapshot was written, and are not here: add --explain"
            } else {
                "violations were not explained when the snapshot was written: leave --explain out"
            }));
        }
        // Without a note, the times are nanoseconds, which every session evaluates.
        if !saved.known.note.is_empty() && saved.known.note != note {
            return Err(StartError::Mismatch(format!(
                "its times were {}, and here they are {note}",
                saved.known.note
            )));
        }
        Ok(saved)
    }

    /// The state of an alignment with `count` groups and this many properties.
    pub(crate) fn waiting(&self, count: usize, properties: usize) -> Result<&Waiting, StartError> {
        let waiting = self.known.waiting.as_ref();
        let waiting = waiting.ok_or(
            "it belongs to a session that evaluates messages as they come, and here they wait to be put in order",
        )?;
        if self.states.len() != count {
            return Err("it belongs to another specification, or to other alignment settings".into());
        }
        self.fits(properties)?;
        Ok(waiting)
    }

    /// Refuses a snapshot of another number of properties.
    pub(crate) fn fits(&self, properties: usize) -> Result<(), StartError> {
        // A synchronizer has no properties.
        match self.known.statistics.len() == properties {
            true => Ok(()),
            false => Err("it belongs to another specification".into()),
        }
    }
}
