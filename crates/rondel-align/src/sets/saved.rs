//! Snapshots of sets. Derived state is not saved but computed again.

use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use super::approximate::Candidate;
use super::latest::Pace;
use super::{PolicyState, SetSettings, SetStatistics, Sets};
use crate::saved::{fingerprint, open, seal};
use rondel_event::SnapshotError;
use rondel_event::snapshot::Kind;

const SETS: &Kind = b"RONDELse";

/// A serialised item with its stamp.
pub(super) type SavedItem = (i64, Vec<u8>);

/// The stamp and the items of each partial set.
pub(super) type SavedExact = Vec<(i64, Vec<Option<Vec<u8>>>)>;

#[derive(Serialize, Deserialize)]
pub(super) struct SavedApproximate {
    /// For each topic its queue, the number of skipped items, and whether an item was lost.
    pub(super) queues: Vec<(Vec<SavedItem>, usize, bool)>,
    pub(super) candidate: Option<Candidate>,
    pub(super) passed: Vec<u32>,
    pub(super) lost: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SavedLatest {
    /// For each topic its last item, whether it was in a set, and the pace.
    pub(super) states: Vec<(Option<SavedItem>, bool, Pace)>,
    pub(super) pacemaker: usize,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SavedPresence {
    pub(super) begun: bool,
    /// For each topic: whether it ever received an item, the time of the last one, whether it is absent, and the time of
    /// the next check.
    pub(super) topics: Vec<(bool, i64, bool, i64)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SavedSetBuffer {
    pub(super) statistics: SetStatistics,
    /// Sets that were not taken yet: time, lateness, items.
    pub(super) sets: Vec<(i64, Option<u64>, Vec<SavedItem>)>,
    pub(super) latest: Option<i64>,
}

#[derive(Serialize, Deserialize)]
enum SavedPolicy {
    Exact(SavedExact),
    Approximate(SavedApproximate),
    Epsilon(Vec<Vec<SavedItem>>),
    Latest(SavedLatest),
}

#[derive(Serialize, Deserialize)]
struct SavedSets {
    now: i64,
    presence: SavedPresence,
    before: Vec<Option<i64>>,
    policy: SavedPolicy,
    buffer: SavedSetBuffer,
}

/// Serialises an item with its stamp.
pub(super) fn save_item<T>((time, item): &(Timestamp, T), write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedItem {
    (time.as_nanos(), write(item))
}

/// Restores a serialised item.
pub(super) fn restore_item<T>(
    (time, item): &SavedItem,
    read: &mut dyn FnMut(&[u8]) -> Option<T>,
) -> Option<(Timestamp, T)> {
    Some((Timestamp::from_nanos(*time), read(item)?))
}

impl<T: Clone> Sets<T> {
    /// Returns a snapshot of the state with all waiting items; `write` serialises an item. Sets
    /// [restored](Sets::restore) from it continue like these. Notices that were not taken are not included.
    pub fn snapshot(&self, mut write: impl FnMut(&T, &mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = |item: &T| {
            let mut bytes = Vec::new();
            write(item, &mut bytes);
            bytes
        };
        let saved = SavedSets {
            now: self.now.as_nanos(),
            presence: self.presence.saved(),
            before: self.before.iter().map(|(before, _)| before.map(Timestamp::as_nanos)).collect(),
            policy: match &self.policy {
                PolicyState::Exact(policy) => SavedPolicy::Exact(policy.saved(&mut bytes)),
                PolicyState::Approximate(policy) => SavedPolicy::Approximate(policy.saved(&mut bytes)),
                PolicyState::Epsilon(policy) => SavedPolicy::Epsilon(policy.saved(&mut bytes)),
                PolicyState::Latest(policy) => SavedPolicy::Latest(policy.saved(&mut bytes)),
            },
            buffer: self.buffer.saved(&mut bytes),
        };
        seal(SETS, self.fingerprint(), &saved)
    }

    /// Restores sets without [limits](Sets::with_limits) from a snapshot; `read` deserialises an item.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are not a complete snapshot or belong to other settings.
    pub fn restore(
        settings: SetSettings,
        bytes: &[u8],
        read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Sets<T>, SnapshotError> {
        Sets::new(settings).restored(bytes, read)
    }

    /// Restores these new sets, with their settings and limits, from a snapshot.
    ///
    /// # Errors
    /// Those of [`Sets::restore`].
    pub fn restored(
        mut self,
        bytes: &[u8],
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Sets<T>, SnapshotError> {
        let saved: SavedSets = open(SETS, self.fingerprint(), bytes)?;
        self.take_over(saved, &mut read).ok_or(SnapshotError::Altered)?;
        Ok(self)
    }

    fn take_over(&mut self, saved: SavedSets, read: &mut dyn FnMut(&[u8]) -> Option<T>) -> Option<()> {
        let SavedSets { now, presence, before, policy, buffer } = saved;
        self.now = Timestamp::from_nanos(now);
        self.presence.restore(presence)?;
        if before.len() != self.before.len() {
            return None;
        }
        for (own, before) in self.before.iter_mut().zip(before) {
            own.0 = before.map(Timestamp::from_nanos);
        }
        self.buffer.restore(buffer, read)?;
        let weight = &mut self.buffer.weight;
        let read = &mut |bytes: &[u8]| read(bytes).inspect(|item| weight.add(item));
        match (&mut self.policy, policy) {
            (PolicyState::Exact(policy), SavedPolicy::Exact(saved)) => policy.restore(saved, read),
            (PolicyState::Approximate(policy), SavedPolicy::Approximate(saved)) => {
                policy.restore(saved, read)
            }
            (PolicyState::Epsilon(policy), SavedPolicy::Epsilon(saved)) => policy.restore(saved, read),
            (PolicyState::Latest(policy), SavedPolicy::Latest(saved)) => policy.restore(saved, read),
            _ => None,
        }
    }

    /// Returns the fingerprint of settings and limits.
    fn fingerprint(&self) -> u64 {
        let Sets { settings, limits, .. } = self;
        fingerprint(&format!("{settings:?} {limits:?}"))
    }

    /// Advances the clock to `now` after a gap without a subscription, which does not count towards the absence of
    /// topics.
    pub fn advance_after_gap(&mut self, now: Timestamp) {
        let gap = now.as_nanos().saturating_sub(self.now.as_nanos());
        if gap > 0 {
            self.presence.extend(gap);
        }
        self.advance(now);
    }
}
