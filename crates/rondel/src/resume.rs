//! What a check or a run knows, in a file, so that another one can go on from there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_engine::Monitor;
use serde::{Deserialize, Serialize};

use crate::specification::Specification;
use crate::tally::SavedTally;

/// What such a file begins with.
const MAGIC: &[u8; 8] = b"RONDELgo";
/// The form of what follows.
const VERSION: u32 = 3;
/// Magic, version, the lengths of both parts; behind them comes a sum of everything.
const HEAD: usize = 8 + 4 + 8 + 8;

/// What is known beside the monitors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Whether violations are explained: then the program has more in it.
    pub explain: bool,
    /// Of a trace, how its times were read: the unit, and the field.
    pub times: String,
    /// How many events were checked.
    pub events: u64,
    /// The time of the last event, in nanoseconds: also that of one without a time.
    pub time: i64,
    /// The latest time before that events would go back, and how many did.
    pub backwards: (Option<i64>, u64),
    /// What became of each property.
    pub tallies: Vec<SavedTally>,
    /// The fields that no message has carried yet.
    pub unseen: Vec<String>,
    /// What is known beside the messages that wait, where messages do.
    pub waits: Option<Waits>,
}

/// What is known beside messages that wait to be put in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// What the clock showed that they wait by, if there was a message to set it.
    pub clock: Option<i64>,
    /// How many messages had no time.
    pub unstamped: u64,
    /// How much word of progress could not be used.
    pub unread: u64,
    /// How far publishers are that say who they are: topic, who, time.
    pub publishers: Vec<(u32, Vec<u8>, i64)>,
}

/// From where a check or a run goes on.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// What is known beside the monitors.
    pub known: Known,
    /// The monitors, and what waits for each.
    pub states: Vec<Vec<u8>>,
}

impl Resumed {
    /// The monitor of a program, where messages are checked as they come, and of the properties of its
    /// specification: the program also has those parts that are watched to explain them.
    ///
    /// # Errors
    /// Why it cannot be gone on from there, in words.
    pub fn monitor(&self, specification: &Specification) -> Result<Monitor, String> {
        if self.known.waits.is_some() {
            return Err(
                "it is of a run in which messages wait to be put in order, and here they do not".to_owned()
            );
        }
        self.has_tallies(specification.spec.properties.len())?;
        let [state] = &self.states[..] else { return Err(ALTERED.to_owned()) };
        Monitor::restore(Arc::clone(&specification.program), state).map_err(|error| error.to_string())
    }

    /// What is known beside `count` alignments of so many properties.
    ///
    /// # Errors
    /// Why it cannot be gone on from there, in words.
    pub fn waits(&self, count: usize, properties: usize) -> Result<&Waits, String> {
        let waits = self.known.waits.as_ref();
        let waits =
            waits.ok_or("it is of a run in which messages are checked as they come, and here they wait")?;
        if self.states.len() != count {
            return Err("it belongs to another specification, or to other settings of alignment".to_owned());
        }
        self.has_tallies(properties)?;
        Ok(waits)
    }

    fn has_tallies(&self, count: usize) -> Result<(), String> {
        // Where nothing is checked there are none.
        match self.known.tallies.len() == count {
            true => Ok(()),
            false => Err("it belongs to another specification".to_owned()),
        }
    }
}

const ALTERED: &str = "it was altered: its check sum does not match";

/// FNV-1a: finds accidents, not malice.
fn sum(bytes: &[u8]) -> [u8; 8] {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).to_le_bytes()
}

/// The content of such a file: what is known, and a state for each monitor.
pub fn bytes(known: &Known, states: &[Vec<u8>]) -> Vec<u8> {
    // Plain data always has a form as JSON.
    let known = serde_json::to_vec(known).unwrap_or_default();
    let of_states: usize = states.iter().map(|state| 8 + state.len()).sum();
    let mut out = Vec::with_capacity(HEAD + known.len() + of_states + 8);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(known.len() as u64).to_le_bytes());
    out.extend_from_slice(&(of_states as u64).to_le_bytes());
    out.extend_from_slice(&known);
    for state in states {
        out.extend_from_slice(&(state.len() as u64).to_le_bytes());
        out.extend_from_slice(state);
    }
    out.extend_from_slice(&sum(&out));
    out
}

/// Writes them beside the file first, and then in its place: whatever happens, there is a whole one.
///
/// # Errors
/// What kept it from being written; then the file is as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside: PathBuf = path.with_file_name(name);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved
}

/// Reads such a file. `accept` says whether what is in it fits.
///
/// # Errors
/// Why it cannot be gone on from there, in words.
pub fn read(
    path: &Path,
    explain: bool,
    accept: impl FnOnce(&Resumed) -> Result<(), String>,
) -> Result<Resumed, String> {
    let name = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read the snapshot {name}: {error}"))?;
    let accepted = parse(&bytes, explain).and_then(|resumed| accept(&resumed).map(|()| resumed));
    accepted.map_err(|why| format!("cannot go on from {name}: {why}"))
}

/// The content of such a file.
///
/// # Errors
/// Why it is none, in words.
pub fn parse(bytes: &[u8], explain: bool) -> Result<Resumed, String> {
    let none = "it is no snapshot of a check or a run";
    let cut =
        || format!("it has {} bytes, which is too short or too long: it was cut or added to", bytes.len());
    let altered = || ALTERED.to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or(none)?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(format!(
            "it has version {version} of the format, and only version {VERSION} can be read"
        ));
    }
    let length = |rest: &mut &[u8]| {
        let (first, after) = rest.split_first_chunk()?;
        *rest = after;
        Some(usize::try_from(u64::from_le_bytes(*first)).unwrap_or(usize::MAX))
    };
    let mut lengths = rest;
    let (of_known, of_states) = length(&mut lengths).zip(length(&mut lengths)).ok_or_else(cut)?;
    if bytes.len() != HEAD.saturating_add(of_known).saturating_add(of_states).saturating_add(8) {
        return Err(cut());
    }
    let (state, found) = bytes.split_at(bytes.len() - 8);
    if sum(state) != found {
        return Err(altered());
    }
    let (known, mut rest) = state[HEAD..].split_at(of_known);
    let known: Known = serde_json::from_slice(known).map_err(|_| altered())?;
    let mut states = Vec::new();
    while !rest.is_empty() {
        let length = length(&mut rest).ok_or_else(altered)?;
        let (state, after) = rest.split_at_checked(length).ok_or_else(altered)?;
        states.push(state.to_vec());
        rest = after;
    }
    if known.explain != explain {
        let (with, how) = if known.explain { ("with", "give it") } else { ("without", "leave it out") };
        return Err(format!("it was written {with} --explain: {how} here too"));
    }
    Ok(Resumed { known, states })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_hurt() {
        let specification = |text: &str| Specification::from_text(text, "here").unwrap();
        let of = specification("topic t property p = once on(t)");
        let known = Known { tallies: vec![SavedTally::default()], events: 7, ..Known::default() };
        let whole = bytes(&known, &[Monitor::new(Arc::clone(&of.program)).snapshot()]);
        let read = |bytes: &[u8], of: &Specification, explain| {
            parse(bytes, explain).and_then(|resumed| resumed.monitor(of).map(|_| resumed.known))
        };
        assert_eq!(read(&whole, &of, false).unwrap(), known);
        for end in 0..whole.len() {
            assert!(read(&whole[..end], &of, false).is_err());
        }
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] ^= 1;
            assert!(read(&altered, &of, false).is_err(), "byte {at}");
            // Under a right sum there may be nonsense, but no panic.
            let end = altered.len() - 8;
            for value in [altered[at], 0, 0x7F, 0xFF] {
                altered[at.min(end - 1)] = value;
                let sum = sum(&altered[..end]);
                altered[end..].copy_from_slice(&sum);
                let _ = read(&altered, &of, false);
            }
        }
        assert!(read(&[&whole[..], b"x"].concat(), &of, false).is_err());
        let why = |of: &Specification, explain| read(&whole, of, explain).unwrap_err();
        assert!(why(&of, true).contains("without --explain"));
        assert!(why(&specification("topic t property p = on(t)"), false).contains("another specification"));
        let waiting = Known { waits: Some(Waits::default()), ..known };
        let waiting = bytes(&waiting, &[Vec::new()]);
        assert!(read(&waiting, &of, false).unwrap_err().contains("wait to be put in order"));
    }
}
