//! Participants that DDS Security refuses.
//!
//! CycloneDDS reports them only in its log, and those without DDS Security, or that refuse this participant themselves,
//! only in its trace of discovery. Both are read here: a discovered participant that has not completed the handshake
//! after a time is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::Protection;
use crate::adapter::now;

/// Time limit of a handshake: normally it takes a tenth of a second; a lost message of it is repeated every second.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit of remembered participants and reasons.
const REMEMBERED: usize = 1024;
/// Limit of logged participants and reasons.
const LOGGED: usize = 32;

/// CycloneDDS's log messages about failed handshakes and insufficient permissions.
const FAILURES: [&str; 10] = [
    "Validate remote identity failed: ",
    "Begin handshake request failed: ",
    "Begin handshake reply failed: ",
    "Process handshake failed: ",
    "Getting shared secret failed: ",
    "Could not authenticate_peer_credential_token ",
    "Could not get remote participant ",
    "Plugin does not allow remote participant ",
    "Access control does not allow remote ",
    "Remote secure participant ",
];

/// The domains with DDS Security, by the id that CycloneDDS logs.
static ALL: Mutex<BTreeMap<u32, Weak<Refusals>>> = Mutex::new(BTreeMap::new());

/// The participants that a participant refuses.
#[derive(Debug)]
pub(super) struct Refusals {
    protection: Protection,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Participants with DDS Security that have not completed the handshake: since when, and where they are.
    pending: BTreeMap<String, (Instant, String)>,
    refused: BTreeSet<String>,
    /// Number of refused participants that are not remembered.
    others: u64,
    reasons: BTreeSet<String>,
    /// Time at which the last reason was logged.
    last_reason: Option<Instant>,
    logged: usize,
    /// Whether the expiry of this participant's own files was logged.
    has_ended: bool,
}

impl Refusals {
    /// Begins to read the log of the domain with this id.
    pub(super) fn begin(id: u32, protection: Protection) -> Arc<Refusals> {
        let new = Arc::new(Refusals { protection, state: Mutex::default() });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        all.insert(id, Arc::downgrade(&new));
        new
    }

    /// Reads a text that CycloneDDS has logged or traced for the domain with this id. Returns whether it is about a
    /// refused participant.
    pub(super) fn read(id: u32, text: &str) -> bool {
        // The lock is not held while logging.
        let one = ALL.lock().unwrap_or_else(PoisonError::into_inner).get(&id).and_then(Weak::upgrade);
        one.is_some_and(|one| one.look(text, Instant::now()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, text: &str, now: Instant) -> bool {
        let mut state = self.state();
        if let Some(discovered) = text.split_once("SPDP ST0 ").map(|(_, rest)| rest)
            && discovered.contains(" NEW ")
        {
            let (participant, place) = (id(discovered), place(discovered));
            if discovered.contains(" (secure) NEW ") {
                if state.pending.len() < REMEMBERED {
                    state.pending.insert(participant, (now, place));
                }
            } else if self.protection.authenticated {
                state.refuse(participant, || format!("a participant{place} does not use it"));
            }
        } else if let Some((_, remote)) = text.split_once("rguid=") {
            if remote.contains(") succeeded") {
                state.pending.remove(&id(remote));
            }
        } else if let Some((_, gone)) = text.split_once("SPDP ST3 ") {
            state.leave(&id(gone));
        }
        if let Some((_, endpoint)) = text.split_once("Non secure remote ") {
            let endpoint = endpoint.trim_start_matches(|c: char| c != ' ').trim_start();
            state.refuse(id(endpoint), || "a participant does not use it".to_owned());
            return true;
        }
        let Some(failure) = FAILURES.iter().find_map(|failure| text.find(failure)) else { return false };
        let reason = reason(&text[failure..]);
        state.last_reason = Some(now);
        if state.reasons.len() < REMEMBERED && state.reasons.insert(reason.clone()) {
            state.log(|| reason);
        }
        true
    }

    /// Refuses participants that have not completed the handshake in time. Must be called regularly.
    pub(super) fn watch(&self) {
        self.watch_at(Instant::now());
        let is_over = self.protection.ends.is_some_and(|ends| now().as_nanos() / 1_000_000_000 >= ends);
        if is_over && !std::mem::replace(&mut self.state().has_ended, true) {
            tracing::error!(
                "the certificate or the permissions of this participant have ended: nothing is received or published \
                 on DDS any more; begin again with new ones"
            );
        }
    }

    fn watch_at(&self, now: Instant) {
        let mut state = self.state();
        let is_over = |(since, _): &(Instant, String)| now.saturating_duration_since(*since) >= PATIENCE;
        let over: Vec<String> =
            state.pending.iter().filter(|(_, one)| is_over(one)).map(|(id, _)| id.clone()).collect();
        for participant in over {
            let Some((since, place)) = state.pending.remove(&participant) else { continue };
            let is_explained = state.last_reason.is_some_and(|at| at >= since);
            let text = format!(
                "a participant{place} has not proven who it is within {} s: its certificate is not signed by the \
                 authority of `identity_ca`, or it does not accept this one's",
                PATIENCE.as_secs()
            );
            if is_explained {
                state.add(participant);
            } else {
                state.refuse(participant, || text);
            }
        }
    }

    /// Returns the number of participants refused so far.
    pub(super) fn count(&self) -> u64 {
        let state = self.state();
        state.refused.len() as u64 + state.others
    }
}

impl State {
    /// Counts a participant; returns whether it is new.
    fn add(&mut self, participant: String) -> bool {
        if self.refused.contains(&participant) {
            return false;
        }
        if self.refused.len() < REMEMBERED {
            self.refused.insert(participant);
        } else {
            self.others += 1;
        }
        true
    }

    fn refuse(&mut self, participant: String, reason: impl FnOnce() -> String) {
        if self.add(participant) {
            self.log(reason);
        }
    }

    /// Handles the departure of a participant. If a handshake failed while it existed, it was probably its own.
    fn leave(&mut self, participant: &str) {
        if let Some((since, _)) = self.pending.remove(participant)
            && self.last_reason.is_some_and(|at| at >= since)
        {
            self.add(participant.to_owned());
        }
    }

    fn log(&mut self, reason: impl FnOnce() -> String) {
        self.logged += 1;
        if self.logged <= LOGGED {
            let rest = if self.logged == LOGGED { "; further ones are only counted" } else { "" };
            tracing::warn!("DDS Security refuses: {}{rest}", reason());
        }
    }
}

/// Returns the id of a participant at the beginning of a text, or of the participant of an endpoint: three of four
/// numbers.
fn id(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_hexdigit() && c != ':').unwrap_or(text.len()).min(64);
    let parts: Vec<&str> = text[..end].split(':').take(3).collect();
    parts.join(":")
}

/// Returns the address of a discovered participant after ` at `: the last one at which it receives data.
fn place(text: &str) -> String {
    let data = text.split_once("(data ").map_or("", |(_, rest)| rest);
    let data = data.split_once(" meta ").map_or("", |(data, _)| data);
    let last = data.split(' ').next_back().unwrap_or("");
    let address = last.strip_prefix("udp/").and_then(|last| last.split('@').next()).unwrap_or("");
    if address.is_empty() || address.len() > 64 { String::new() } else { format!(" at {address}") }
}

/// Returns the reason of a failure, without CycloneDDS's number.
fn reason(text: &str) -> String {
    let text = text.split_once('\n').map_or(text, |(first, _)| first);
    let text = text.rsplit_once("(code: ").map_or(text, |(text, _)| text).trim();
    let known = ["Validate", "Begin", "Process", "Getting"].iter().any(|first| text.starts_with(first));
    let text = match text.split_once(" failed: ") {
        Some((_, reason)) if known => reason.trim_start_matches("Certificate not valid: error: "),
        _ => text,
    };
    let shown: String = text.chars().take(300).collect();
    if known { format!("the certificate of a participant: {shown}") } else { shown }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PLAIN: &str = "SPDP ST0 1105747:b5d61582:10db23ee:1c1 bes fc3f NEW (0x0-0x0 vm/11.0.1) (data \
        udp/239.255.0.1:25151@1 udp/127.0.0.1:57754@1 meta udp/239.255.0.1:25150@1) QOS={}";
    const SECURE: &str = "SPDP ST0 c6238c12:94d86eb9:2fe75384:1c1 bes ffffc3f (secure) NEW (0x0) (data \
        udp/239.255.0.1:25151@1 udp/127.0.0.1:51751@1 meta udp/127.0.0.1:51751@1) QOS={}";
    const DONE: &str =
        "handshake (lguid=b184e0c2:82edbb9c:cadbf366:1c1 rguid=c6238c12:94d86eb9:2fe75384:1c1) succeeded";
    const FAILED: &str = "Begin handshake reply failed: Certificate not valid: error: unable to get local issuer \
        certificate; subject: /O=Fleet/CN=stranger(code: 200)";

    fn refusals() -> Refusals {
        let protection = Protection { encrypted: true, authenticated: true, ends: None };
        Refusals { protection, state: Mutex::default() }
    }

    #[test]
    fn a_participant_without_a_complete_handshake_is_refused() {
        let (refusals, now) = (refusals(), Instant::now());
        refusals.look(SECURE, now);
        refusals.watch_at(now + PATIENCE / 2);
        assert_eq!(refusals.count(), 0);
        refusals.look(DONE, now);
        refusals.watch_at(now + PATIENCE * 2);
        assert_eq!(refusals.count(), 0);
        refusals.look(SECURE, now);
        refusals.watch_at(now + PATIENCE);
        refusals.watch_at(now + PATIENCE);
        assert_eq!(refusals.count(), 1);
        // It is discovered again.
        refusals.look(SECURE, now);
        refusals.watch_at(now + PATIENCE);
        assert_eq!(refusals.count(), 1);
    }

    #[test]
    fn a_participant_without_security_is_refused_at_once() {
        let (refusals, now) = (refusals(), Instant::now());
        refusals.look(PLAIN, now);
        refusals.look(PLAIN, now);
        assert!(refusals.look("Non secure remote writer 1105747:b5d61582:10db23ee:203 is not allowed.", now));
        assert_eq!(refusals.count(), 1);
        assert!(refusals.look("Non secure remote reader 2:3:4:203 is not allowed.more", now));
        assert_eq!(refusals.count(), 2);
        let open = Refusals { protection: Protection::default(), state: Mutex::default() };
        open.look(PLAIN, now);
        assert_eq!(open.count(), 0);
    }

    #[test]
    fn a_failed_handshake_has_a_reason() {
        let (refusals, now) = (refusals(), Instant::now());
        refusals.look(SECURE, now);
        assert!(refusals.look(FAILED, now) && refusals.look(FAILED, now));
        let reasons = refusals.state().reasons.clone();
        let expected = "the certificate of a participant: unable to get local issuer certificate; subject: \
                        /O=Fleet/CN=stranger";
        assert_eq!(Vec::from_iter(reasons), [expected]);
        refusals.look(
            "SPDP ST3 c6238c12:94d86eb9:2fe75384:1c1ddsi_delete_proxy_participant_by_guid(c6) - deleting",
            now,
        );
        assert_eq!(refusals.count(), 1);
        assert!(!refusals.look("SPDP ST0 c6238c12:94d86eb9:2fe75384:1c1 (known)", now));
        assert_eq!(
            (place(PLAIN), id(PLAIN.trim_start_matches("SPDP ST0 "))),
            (" at 127.0.0.1:57754".to_owned(), "1105747:b5d61582:10db23ee".to_owned())
        );
    }

    #[test]
    fn memory_for_texts_of_the_network_is_bounded() {
        let (refusals, now) = (refusals(), Instant::now());
        for i in 0..3 * REMEMBERED {
            refusals.look(&PLAIN.replace("1105747", &format!("{i:x}")), now);
            refusals.look(&SECURE.replace("c6238c12", &format!("{i:x}")), now);
            refusals.look(&FAILED.replace("stranger", &format!("é{i}")), now);
        }
        refusals.watch_at(now + PATIENCE);
        let state = refusals.state();
        assert!(
            state.refused.len() <= REMEMBERED
                && state.reasons.len() <= REMEMBERED
                && state.pending.is_empty()
        );
    }
}
