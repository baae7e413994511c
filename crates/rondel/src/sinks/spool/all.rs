//! All spools of a run, with their sentences in its summary.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rondel_net::address::Address;
use rondel_runtime::text::{counted, grouped};
use serde_json::{Value, json};

use super::{Spool, SpoolSettings};
use crate::warn;

impl SpoolSettings {
    /// Whether messages of a sink are kept: by default those of networks that can refuse one.
    pub fn keeps(&self, sink: &Address) -> bool {
        can_refuse(sink) && !(self.is_default && *sink == Address::Stdout)
    }
}

/// Whether a sink can refuse a message: Zenoh does not, it closes the connection of a slow subscriber.
pub fn can_refuse(sink: &Address) -> bool {
    sink.holds_back() || *sink == Address::Stdout
}

/// The spools of a run. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Spools(Arc<Mutex<Vec<Arc<Spool>>>>);

impl Spools {
    /// Opens the spools of sinks, unless nothing is to be kept; only those that can refuse a message have one.
    ///
    /// # Errors
    /// The path, and why it cannot be used.
    pub fn open<'a>(
        settings: Option<&SpoolSettings>,
        sinks: impl Iterator<Item = &'a Address>,
    ) -> Result<Spools, String> {
        let spools = Spools::default();
        spools.add(settings, sinks)?;
        Ok(spools)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Spool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the spools of sinks that have none yet.
    ///
    /// # Errors
    /// As [`Spools::open`].
    pub fn add<'a>(
        &self,
        settings: Option<&SpoolSettings>,
        sinks: impl Iterator<Item = &'a Address>,
    ) -> Result<(), String> {
        let Some(settings) = settings else { return Ok(()) };
        match settings.check() {
            Err(_) if settings.is_default => return Ok(()),
            checked => checked?,
        }
        for name in sinks.filter(|sink| settings.keeps(sink)).map(Address::to_string) {
            if self.of(&name).is_some() {
                continue;
            }
            match settings.open(&name) {
                Err(error) if settings.is_default => {
                    warn(&format!("{error}; messages that {name} does not accept in time are dropped"));
                }
                opened => self.all().push(opened?),
            }
        }
        Ok(())
    }

    /// The number of spools.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Removes the spools behind the first `len`: those of sinks that were never used.
    pub fn truncate(&self, len: usize) {
        self.all().truncate(len);
    }

    /// The spool of a sink, if it has one.
    pub fn of(&self, sink: &str) -> Option<Arc<Spool>> {
        self.all().iter().find(|spool| spool.sink == sink).cloned()
    }

    /// The number of verdicts that wait.
    pub fn waiting(&self) -> u64 {
        self.all().iter().map(|spool| spool.state().file.len()).sum()
    }

    /// The sinks with a spool, each with the number of messages that wait in it.
    pub fn sizes(&self) -> Vec<(String, u64)> {
        self.all().iter().map(|spool| (spool.sink.clone(), spool.state().file.len())).collect()
    }

    /// Returns a JSON array of the spools that were used.
    pub fn json(&self) -> Value {
        let one = |spool: &Arc<Spool>| {
            let state = spool.state();
            let (waiting, path): (_, &Path) = (state.file.len(), state.file.path());
            (state.earlier + state.kept + state.damaged + waiting > 0).then(|| {
                json!({
                    "sink": spool.sink,
                    "earlier": state.earlier,
                    "damaged": state.damaged,
                    "kept": state.kept,
                    "published": state.delivered,
                    "waiting": waiting,
                    "unconfirmed": state.unconfirmed(),
                    "file": path,
                })
            })
        };
        self.all().iter().filter_map(one).collect()
    }

    /// Returns a sentence for each spool that was used.
    pub fn sentences(&self) -> Vec<String> {
        let one = |spool: &Arc<Spool>| {
            let state = spool.state();
            let waiting = state.file.len();
            let sources = [(state.earlier, "of an earlier run"), (state.kept, "kept for a slow consumer")];
            let mut parts: Vec<String> = sources
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what}", grouped(*count)))
                .collect();
            if !parts.is_empty() {
                parts.push(format!("{} published", grouped(state.delivered)));
            }
            if state.damaged > 0 {
                parts.push(format!("{} damaged and lost", grouped(state.damaged)));
            }
            let sent = match state.unconfirmed() {
                0 => String::new(),
                unconfirmed => format!(" ({} of them sent, but not confirmed)", grouped(unconfirmed)),
            };
            if waiting > 0 {
                parts.push(format!(
                    "{} in {}{sent}, and the next run publishes them",
                    counted(waiting, "verdict waits", "verdicts wait"),
                    state.file.path().display()
                ));
            }
            (!parts.is_empty()).then(|| format!("{}: {}", spool.sink, parts.join(", ")))
        };
        self.all().iter().filter_map(one).collect()
    }
}
