//! Silenced violations that are open: they are notified if they outlast their silence.

use std::collections::HashMap;

use rondel_sinks::{Entry, RunKey};

/// Maximum number of violations.
const MOST: usize = 1 << 14;
/// Maximum size of their entries in bytes.
const BYTES: usize = 16 << 20;

/// An instance of a property: its name, and its parameters as a JSON object.
pub(super) type Instance = (String, String);

/// Silenced violations by their instances.
#[derive(Debug, Default)]
pub struct HeldViolations {
    all: HashMap<Instance, HeldViolation>,
    /// Size of the entries.
    bytes: usize,
    /// Whether there was no room for a violation.
    was_full: bool,
    /// Lap of the violations: the next one begins without any.
    lap: u32,
}

/// A violation that was not sent to those that notify people.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldViolation {
    /// The branches that would have received it, as bits.
    pub(super) route: u64,
    /// Its entry, encoded.
    pub(super) entry: Vec<u8>,
}

impl HeldViolations {
    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Begins a lap, unless it has begun.
    pub(super) fn begin_lap(&mut self, lap: u32) {
        if lap > self.lap {
            self.all.clear();
            (self.bytes, self.lap) = (0, lap);
        }
    }

    /// Holds a violation, unless one of its instance is held. Warns of the first one without room.
    pub(super) fn hold(&mut self, instance: Instance, violation: HeldViolation) {
        if self.all.contains_key(&instance) {
            return;
        }
        let bytes = self.bytes.saturating_add(violation.entry.len());
        if self.all.len() < MOST && bytes <= BYTES {
            self.bytes = bytes;
            self.all.insert(instance, violation);
        } else if !std::mem::replace(&mut self.was_full, true) {
            crate::warn(&format!(
                "{} silenced violations wait for the ends of their silences; further ones are not notified when theirs end",
                self.all.len()
            ));
        }
    }

    /// Whether a violation of an instance is held.
    pub(super) fn holds(&self, instance: &Instance) -> bool {
        self.all.contains_key(instance)
    }

    /// Removes the violation of an instance, which has ended or is notified.
    pub(super) fn remove(&mut self, instance: &Instance) {
        if let Some(violation) = self.all.remove(instance) {
            self.bytes -= violation.entry.len();
        }
    }

    /// Takes the violations that are no longer silenced.
    pub(super) fn take_due(&mut self, is_silenced: impl Fn(&str, &str) -> bool) -> Vec<HeldViolation> {
        let is_due = |(property, parameters): &Instance, _: &mut HeldViolation| {
            !is_silenced(property.as_str(), parameters.as_str())
        };
        let due: Vec<HeldViolation> = self.all.extract_if(is_due).map(|(_, violation)| violation).collect();
        self.bytes -= size(due.iter());
        due
    }

    /// The violations of properties that `keeps` their state, as entries of the next run.
    pub(super) fn of_next_run(mut self, run: RunKey, keeps: impl Fn(&str) -> bool) -> HeldViolations {
        self.all.retain(|(property, _), violation| keeps(property.as_str()) && violation.set_run(run));
        self.bytes = size(self.all.values());
        self
    }
}

/// The size of the entries of violations.
fn size<'v>(violations: impl Iterator<Item = &'v HeldViolation>) -> usize {
    violations.map(|violation| violation.entry.len()).sum()
}

impl HeldViolation {
    /// Sets the run of the entry. Returns whether it could be read.
    fn set_run(&mut self, run: RunKey) -> bool {
        let mut entry = Vec::new();
        let Ok(Entry::Verdict(verdict)) = Entry::decode(&self.entry) else { return false };
        Entry::Verdict(rondel_sinks::VerdictEntry { run, ..verdict }).encode(&mut entry);
        self.entry = entry;
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn violation(number: u8) -> HeldViolation {
        HeldViolation { route: 1, entry: vec![number] }
    }

    fn instance(property: &str, parameters: &str) -> Instance {
        (property.to_owned(), parameters.to_owned())
    }

    #[test]
    fn violations_are_due_once_their_silence_ends() {
        let mut held = HeldViolations::default();
        held.begin_lap(1);
        held.hold(instance("p", "{}"), violation(1));
        held.hold(instance("p", "{}"), violation(2));
        held.hold(instance("q", "{}"), violation(3));
        held.hold(instance("r", "{}"), violation(4));
        held.remove(&instance("r", "{}"));
        assert!(held.take_due(|_, _| true).is_empty());
        assert_eq!(held.take_due(|property, _| property == "q"), [violation(1)], "the first one");
        held.begin_lap(1);
        assert!(!held.is_empty());
        held.begin_lap(2);
        assert!(held.is_empty());
    }

    #[test]
    fn number_is_bounded() {
        let mut held = HeldViolations::default();
        for i in 0..=MOST {
            held.hold(instance("p", &i.to_string()), violation(0));
        }
        assert!(held.was_full);
        assert_eq!(held.take_due(|_, _| false).len(), MOST);
        assert_eq!(held.bytes, 0);
    }

    #[test]
    fn size_is_bounded() {
        let mut held = HeldViolations::default();
        let large = || HeldViolation { route: 1, entry: vec![0; BYTES / 2 + 1] };
        held.hold(instance("p", ""), large());
        held.hold(instance("q", ""), large());
        assert!(held.holds(&instance("p", "")) && !held.holds(&instance("q", "")) && held.was_full);
        held.remove(&instance("p", ""));
        held.hold(instance("q", ""), large());
        assert!(held.holds(&instance("q", "")));
    }

    #[test]
    fn reload_continues_violations_of_kept_properties() {
        let bytes = |run: u128| {
            let mut out = Vec::new();
            let loss = rondel_sinks::Loss { run: RunKey(run), ..rondel_sinks::Loss::default() };
            Entry::Loss(loss).encode(&mut out);
            out
        };
        let mut held = HeldViolations::default();
        held.hold(instance("p", ""), HeldViolation { route: 1, entry: bytes(1) });
        // No verdict: it cannot be one of the next run.
        assert!(held.of_next_run(RunKey(2), |_| true).is_empty());
        let mut held = HeldViolations::default();
        held.hold(instance("p", ""), violation(1));
        assert!(held.of_next_run(RunKey(2), |_| false).is_empty());
    }
}
