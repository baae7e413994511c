//! Settings of spools, and opening their files.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rondel_net::adapter::{Drops, now};
use rondel_runtime::text::counted;

use super::file::{Damage, SpoolFile};
use super::{Spool, State};
use crate::output::folder::check_writable;
use crate::warn;

/// Settings of spools: the folder and the size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolSettings {
    /// The folder of the files.
    pub directory: PathBuf,
    /// The largest size of each file in bytes.
    pub limit: u64,
    /// Whether the deployment does not set it: then nothing is created in the folder before it is needed.
    pub is_default: bool,
}

impl SpoolSettings {
    /// Checks whether the folder can be used, and creates nothing.
    ///
    /// # Errors
    /// The path, and why it cannot be used.
    pub fn check(&self) -> Result<(), String> {
        check_writable(&self.directory)
            .map_err(|why| format!("cannot keep verdicts in the folder {}: {why}", self.directory.display()))
    }

    /// Opens the spool of a sink, which has the payloads that an earlier run has left.
    ///
    /// # Errors
    /// The path, and why it cannot be used.
    pub(super) fn open(&self, sink: &str) -> Result<Arc<Spool>, String> {
        self.open_file(sink, self.directory.join(file_name(sink)), false)
    }

    /// Opens the spool of a sink beside networks. The runs of a series have a file of their own; those of others are
    /// named.
    ///
    /// # Errors
    /// The path, and why it cannot be used.
    pub fn open_of_series(&self, sink: &str, series: &str) -> Result<Arc<Spool>, String> {
        let start = format!("{}-{:08x}-", short(sink), crc32fast::hash(sink.as_bytes()));
        let name = format!("{start}{:08x}.spool", crc32fast::hash(series.as_bytes()));
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let other = entry.file_name().to_string_lossy().into_owned();
            if other != name && other.starts_with(&start) && other.ends_with(".spool") {
                warn(&format!(
                    "{sink}: {} holds verdicts of another deployment, whose next run writes them",
                    entry.path().display()
                ));
            }
        }
        self.open_file(sink, self.directory.join(name), true)
    }

    fn open_file(&self, sink: &str, path: PathBuf, is_confirmed_first: bool) -> Result<Arc<Spool>, String> {
        let failed = |error: io::Error| format!("cannot keep verdicts in {}: {error}", path.display());
        let file = SpoolFile::open(path.clone(), self.limit, self.is_default).map_err(failed)?;
        if !file.is_empty() {
            warn(&format!(
                "{sink}: {} of an earlier run wait in {} and are published first",
                counted(file.len(), "verdict", "verdicts"),
                path.display()
            ));
        }
        let drops = Arc::new(Drops::default());
        let damage = file.damage();
        if damage != Damage::default() {
            let mut parts = Vec::new();
            if damage.payloads > 0 {
                let count = counted(damage.payloads, "verdict of it is", "verdicts of it are");
                parts.push(format!("at least {count} lost"));
            }
            if damage.begin {
                parts.push("verdicts that were published before may come again".to_owned());
            }
            warn(&format!("{sink}: {} is damaged: {}", path.display(), parts.join("; ")));
            drops.add(damage.payloads, now());
        }
        let is_used = AtomicBool::new(!file.is_empty());
        let state = State {
            earlier: file.len(),
            damaged: damage.payloads,
            file,
            kept: 0,
            delivered: 0,
            again: 0,
            unsendable: 0,
            is_moving: false,
            is_sending: false,
            is_full: false,
            failure: None,
            burst: 0,
            is_settled: false,
        };
        let waits = Arc::new(AtomicBool::new(!state.file.is_empty()));
        let (is_begun, state, sink) = (AtomicBool::new(false), Mutex::new(state), sink.to_owned());
        let is_default = self.is_default;
        Ok(Arc::new(Spool { sink, is_default, is_confirmed_first, is_begun, waits, is_used, state, drops }))
    }
}

/// The last characters of a name, as far as they can be in the name of a file.
fn short(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: Vec<char> = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    plain[plain.len().saturating_sub(40)..].iter().collect()
}

/// The name of the file of a sink: letters, digits, `-`, `_` and `.` stay, other bytes are written as `%XX`.
fn file_name(sink: &str) -> String {
    let mut name = String::new();
    for byte in sink.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => name.push(char::from(byte)),
            _ => name += &format!("%{byte:02X}"),
        }
    }
    name + ".spool"
}
