//! What a check or a run knows, in a file, so that another one can go on from there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_engine::{Monitor, Program};
use serde::{Deserialize, Serialize};

use crate::tally::SavedTally;

/// What such a file begins with.
const MAGIC: &[u8; 8] = b"RONDELgo";
/// The form of what follows.
const VERSION: u32 = 1;
/// Magic, version, the lengths of both parts; behind them comes a sum of everything.
const HEAD: usize = 8 + 4 + 8 + 8;

/// What is known beside the monitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Whether violations are explained: then the program has more in it.
    pub explain: bool,
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
}

/// From where a check or a run goes on.
pub struct Resumed {
    /// The monitor.
    pub monitor: Monitor,
    /// What is known beside it.
    pub known: Known,
}

/// FNV-1a: finds accidents, not malice.
fn sum(bytes: &[u8]) -> [u8; 8] {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).to_le_bytes()
}

/// The content of such a file.
pub fn bytes(monitor: &Monitor, known: &Known) -> Vec<u8> {
    // Plain data always has a form as JSON.
    let known = serde_json::to_vec(known).unwrap_or_default();
    let monitor = monitor.snapshot();
    let mut out = Vec::with_capacity(HEAD + known.len() + monitor.len() + 8);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(known.len() as u64).to_le_bytes());
    out.extend_from_slice(&(monitor.len() as u64).to_le_bytes());
    out.extend_from_slice(&known);
    out.extend_from_slice(&monitor);
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

/// Reads such a file, of a check or run of this program.
///
/// # Errors
/// Why it cannot be gone on from there, in words.
pub fn read(path: &Path, program: &Arc<Program>, explain: bool) -> Result<Resumed, String> {
    let name = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read the snapshot {name}: {error}"))?;
    restore(&bytes, program, explain).map_err(|why| format!("cannot go on from {name}: {why}"))
}

fn restore(bytes: &[u8], program: &Arc<Program>, explain: bool) -> Result<Resumed, String> {
    let none = "it is no snapshot of a check or a run";
    let cut =
        || format!("it has {} bytes, which is too short or too long: it was cut or added to", bytes.len());
    let altered = || "it was altered: its check sum does not match".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or(none)?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(format!(
            "it has version {version} of the format, and only version {VERSION} can be read"
        ));
    }
    let mut length = rest;
    let mut next = || {
        let (first, rest) = length.split_first_chunk().ok_or_else(cut)?;
        length = rest;
        Ok::<usize, String>(usize::try_from(u64::from_le_bytes(*first)).unwrap_or(usize::MAX))
    };
    let (of_known, of_monitor) = (next()?, next()?);
    if bytes.len() != HEAD.saturating_add(of_known).saturating_add(of_monitor).saturating_add(8) {
        return Err(cut());
    }
    let (state, found) = bytes.split_at(bytes.len() - 8);
    if sum(state) != found {
        return Err(altered());
    }
    let (known, monitor) = state[HEAD..].split_at(of_known);
    let known: Known = serde_json::from_slice(known).map_err(|_| altered())?;
    if known.explain != explain {
        let (with, how) = if known.explain { ("with", "give it") } else { ("without", "leave it out") };
        return Err(format!("it was written {with} --explain: {how} here too"));
    }
    let monitor = Monitor::restore(Arc::clone(program), monitor).map_err(|error| error.to_string())?;
    if known.tallies.len() != program.properties().len() {
        return Err(altered());
    }
    Ok(Resumed { monitor, known })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_hurt() {
        let program =
            |text: &str| Arc::new(Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap());
        let of = program("topic t property p = once on(t)");
        let known = Known { tallies: vec![SavedTally::default()], events: 7, ..Known::default() };
        let whole = bytes(&Monitor::new(Arc::clone(&of)), &known);
        assert_eq!(restore(&whole, &of, false).map(|resumed| resumed.known).unwrap(), known);
        for end in 0..whole.len() {
            assert!(restore(&whole[..end], &of, false).is_err());
        }
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] ^= 1;
            assert!(restore(&altered, &of, false).is_err(), "byte {at}");
        }
        assert!(restore(&[&whole[..], b"x"].concat(), &of, false).is_err());
        let why = |program: &Arc<Program>, explain| restore(&whole, program, explain).err().unwrap();
        assert!(why(&of, true).contains("without --explain"));
        assert!(why(&program("topic t property p = on(t)"), false).contains("another specification"));
    }
}
