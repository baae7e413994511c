//! Sets as they go into a snapshot. What follows from the rest is not in it.

use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use super::approximate::Candidate;
use super::latest::Pace;
use super::{Policy, SetSettings, SetStatistics, Sets};
use crate::saved::{fingerprint, open, seal};
use rondel_event::SnapshotError;
use rondel_event::snapshot::Kind;

const SETS: &Kind = b"RONDELse";

/// An item with its stamp.
pub(super) type SavedItem = (i64, Vec<u8>);

/// For each partial set its stamp and what has come.
pub(super) type SavedExact = Vec<(i64, Vec<Option<Vec<u8>>>)>;

#[derive(Serialize, Deserialize)]
pub(super) struct SavedApproximate {
    /// For each topic what waits, how much of it is passed over, and whether something was lost.
    pub(super) lines: Vec<(Vec<SavedItem>, usize, bool)>,
    pub(super) candidate: Option<Candidate>,
    pub(super) passed: Vec<u32>,
    pub(super) lost: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SavedLatest {
    /// For each topic what is held, whether it has been in a set, and how fast items come.
    pub(super) lines: Vec<(Option<SavedItem>, bool, Pace)>,
    pub(super) pacemaker: usize,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SavedPresence {
    pub(super) begun: bool,
    /// For each topic whether it was ever heard, since when it is waited for, whether it is absent, and when to look at
    /// it.
    pub(super) topics: Vec<(bool, i64, bool, i64)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SavedBook {
    pub(super) statistics: SetStatistics,
    /// Sets that were not taken yet: time, by how much they are tardy, items.
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
struct Saved {
    now: i64,
    presence: SavedPresence,
    before: Vec<Option<i64>>,
    policy: SavedPolicy,
    book: SavedBook,
}

/// An item with its stamp, as bytes.
pub(super) fn plain<T>((time, item): &(Timestamp, T), write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedItem {
    (time.as_nanos(), write(item))
}

/// And back.
pub(super) fn item<T>(
    (time, item): &SavedItem,
    read: &mut dyn FnMut(&[u8]) -> Option<T>,
) -> Option<(Timestamp, T)> {
    Some((Timestamp::from_nanos(*time), read(item)?))
}

impl<T: Clone> Sets<T> {
    /// All that the sets remember and all that waits for one, as bytes; `write` appends those of an item. Sets that are
    /// [restored](Sets::restore) from them go on as these do. Notices that were not taken are not in it.
    pub fn snapshot(&self, mut write: impl FnMut(&T, &mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = |item: &T| {
            let mut bytes = Vec::new();
            write(item, &mut bytes);
            bytes
        };
        let saved = Saved {
            now: self.now.as_nanos(),
            presence: self.presence.saved(),
            before: self.before.iter().map(|(before, _)| before.map(Timestamp::as_nanos)).collect(),
            policy: match &self.policy {
                Policy::Exact(policy) => SavedPolicy::Exact(policy.saved(&mut bytes)),
                Policy::Approximate(policy) => SavedPolicy::Approximate(policy.saved(&mut bytes)),
                Policy::Epsilon(policy) => SavedPolicy::Epsilon(policy.saved(&mut bytes)),
                Policy::Latest(policy) => SavedPolicy::Latest(policy.saved(&mut bytes)),
            },
            book: self.book.saved(&mut bytes),
        };
        seal(SETS, self.fingerprint(), &saved)
    }

    /// Sets that go on where those went on that the snapshot is of; `read` makes an item of its bytes, if they are
    /// one. There are no [limits](Sets::with_limits).
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, not whole, or of sets with other settings.
    pub fn restore(
        settings: SetSettings,
        bytes: &[u8],
        read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Sets<T>, SnapshotError> {
        Sets::new(settings).restored(bytes, read)
    }

    /// The same as [`Sets::restore`], for the settings and limits of these sets, which are new.
    ///
    /// # Errors
    /// As [`Sets::restore`].
    pub fn restored(
        mut self,
        bytes: &[u8],
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Sets<T>, SnapshotError> {
        let saved: Saved = open(SETS, self.fingerprint(), bytes)?;
        self.take_over(saved, &mut read).ok_or(SnapshotError::Altered)?;
        Ok(self)
    }

    fn take_over(&mut self, saved: Saved, read: &mut dyn FnMut(&[u8]) -> Option<T>) -> Option<()> {
        let Saved { now, presence, before, policy, book } = saved;
        self.now = Timestamp::from_nanos(now);
        self.presence.restore(presence)?;
        if before.len() != self.before.len() {
            return None;
        }
        for (own, before) in self.before.iter_mut().zip(before) {
            own.0 = before.map(Timestamp::from_nanos);
        }
        self.book.restore(book, read)?;
        match (&mut self.policy, policy) {
            (Policy::Exact(policy), SavedPolicy::Exact(saved)) => policy.restore(saved, read),
            (Policy::Approximate(policy), SavedPolicy::Approximate(saved)) => policy.restore(saved, read),
            (Policy::Epsilon(policy), SavedPolicy::Epsilon(saved)) => policy.restore(saved, read),
            (Policy::Latest(policy), SavedPolicy::Latest(saved)) => policy.restore(saved, read),
            _ => None,
        }
    }

    /// Of the settings and the limits.
    fn fingerprint(&self) -> u64 {
        let Sets { settings, limits, .. } = self;
        fingerprint(&format!("{settings:?} {limits:?}"))
    }

    /// Nobody has listened since the last call until the clock shows `now`: no topic is absent for not having been
    /// heard meanwhile.
    pub fn unheard_until(&mut self, now: Timestamp) {
        let gap = now.as_nanos().saturating_sub(self.now.as_nanos());
        if gap > 0 {
            self.presence.unheard(gap);
        }
        self.advance(now);
    }
}
