//! Verdicts of a member of a group: withheld while it is a standby, published from the take-over on.
//!
//! The thread of the group decides whether the member may publish, and the evaluating thread looks before each batch of
//! verdicts: [`Permit`] is all that they share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use rondel_event::Timestamp;
use rondel_runtime::KeptReport;

/// Number of verdicts that are withheld; of more, the oldest are dropped.
const VERDICTS: usize = 65_536;
/// Number of leases after which a verdict at exactly the published time counts as published.
const LEASES_TO_EQUAL: i64 = 10;
/// Value of an atomic time that is not known.
const NONE: i64 = i64::MIN;

/// The clock of a member, in nanoseconds.
#[derive(Debug)]
enum Clock {
    /// The time since then, on the monotonic clock.
    Monotonic(Instant),
    /// The time that a simulation has set.
    #[cfg(test)]
    Simulated(AtomicI64),
}

/// Permission of a member to publish.
#[derive(Debug)]
pub struct Permit {
    clock: Clock,
    /// Time until which the member may publish, on its clock; [`NONE`] if it may not.
    until: AtomicI64,
    /// Whether the evaluating thread had verdicts or messages of gates after that time.
    has_lapsed: AtomicBool,
    /// Number of times that the permission was revoked.
    revocations: AtomicU64,
    /// Time since which the network has returned the signs of this turn without a gap; [`NONE`] if that is not required.
    returned: AtomicI64,
    /// Time until which gates may pass messages on, as the network has returned a sign; `i64::MAX` if that is not required.
    proven: AtomicI64,
    /// Time of event up to which the member has handed its verdicts to their sinks.
    position: AtomicI64,
    /// Time of event up to which the active member has published, and the time at which that was received.
    published: AtomicI64,
    received: AtomicI64,
    /// The latest time of event of a withheld verdict.
    latest: AtomicI64,
    /// Number of verdicts withheld now, and of those that were dropped.
    withheld: AtomicU64,
    dropped: AtomicU64,
}

impl Default for Permit {
    fn default() -> Permit {
        Permit::with(Clock::Monotonic(Instant::now()))
    }
}

impl Permit {
    fn with(clock: Clock) -> Permit {
        Permit {
            clock,
            until: AtomicI64::new(NONE),
            has_lapsed: AtomicBool::new(false),
            revocations: AtomicU64::new(0),
            returned: AtomicI64::new(NONE),
            proven: AtomicI64::new(i64::MAX),
            position: AtomicI64::new(NONE),
            published: AtomicI64::new(NONE),
            received: AtomicI64::new(NONE),
            latest: AtomicI64::new(NONE),
            withheld: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// A permit with a simulated clock.
    #[cfg(test)]
    pub fn simulated(now: i64) -> Permit {
        Permit::with(Clock::Simulated(AtomicI64::new(now)))
    }

    /// Sets a simulated clock.
    #[cfg(test)]
    pub fn set_now(&self, now: i64) {
        if let Clock::Simulated(time) = &self.clock {
            time.store(now, Ordering::Release);
        }
    }

    /// Nanoseconds on its monotonic clock.
    pub fn now(&self) -> i64 {
        match &self.clock {
            Clock::Monotonic(began) => i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX),
            #[cfg(test)]
            Clock::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Permits to publish until a time.
    pub fn extend(&self, until: i64) {
        self.until.store(until, Ordering::Release);
    }

    /// Permits nothing more.
    pub fn revoke(&self) {
        self.revocations.fetch_add(1, Ordering::Release);
        self.until.store(NONE, Ordering::Release);
    }

    /// Number of times that the permission was revoked.
    pub fn revocations(&self) -> u64 {
        self.revocations.load(Ordering::Acquire)
    }

    /// Whether the member may publish now.
    fn is_valid(&self) -> bool {
        self.allows(self.now())
    }

    /// Whether the member may publish at a time.
    pub fn allows(&self, now: i64) -> bool {
        now < self.until.load(Ordering::Acquire)
    }

    /// Lets gates pass nothing on until [`Permit::prove`].
    pub fn await_proof(&self) {
        self.proven.store(NONE, Ordering::Release);
    }

    /// Sets the time since which the network has returned the signs of this member without a gap, and the time until which
    /// that counts.
    pub fn prove(&self, since: i64, until: i64) {
        self.returned.store(since, Ordering::Release);
        self.proven.store(until, Ordering::Release);
    }

    /// Whether the network has returned signs for a lease, up to now: another member that is active has received them, or
    /// this one has received a sign of that member.
    pub fn is_proven(&self, now: i64, lease: i64) -> bool {
        now < self.proven.load(Ordering::Acquire)
            && now >= self.returned.load(Ordering::Acquire).saturating_add(lease)
    }

    /// Reports that it was too late to publish, so that the member stops.
    pub fn lapse(&self) {
        self.has_lapsed.store(true, Ordering::Release);
    }

    /// Whether the evaluating thread was too late to publish. It is reported once.
    pub fn take_lapsed(&self) -> bool {
        self.has_lapsed.swap(false, Ordering::AcqRel)
    }

    /// Time of event up to which the member has handed its verdicts to their sinks.
    pub fn position(&self) -> Option<i64> {
        Some(self.position.load(Ordering::Acquire)).filter(|position| *position != NONE)
    }

    /// Sets the time of event up to which the active member has published; `None` if that is not known.
    pub fn set_published(&self, published: Option<i64>) {
        self.published.store(published.unwrap_or(NONE), Ordering::Release);
        self.received.store(self.now(), Ordering::Release);
    }

    /// Time on its clock at which the last sign of the active member was received, or at which this member stopped;
    /// `i64::MIN` if there was none.
    pub fn signed(&self) -> i64 {
        self.received.load(Ordering::Acquire)
    }

    /// The latest time of event of a withheld verdict; `i64::MIN` if there was none.
    pub fn latest(&self) -> i64 {
        self.latest.load(Ordering::Relaxed)
    }

    /// Number of verdicts that are withheld now.
    pub fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }

    /// Number of withheld verdicts that were dropped, since there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn known(&self) -> Known {
        Known {
            received: self.received.load(Ordering::Acquire),
            position: self.published.load(Ordering::Acquire),
        }
    }
}

/// Knowledge of a standby about the published verdicts.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Time of event up to which they were published.
    position: i64,
    /// Time at which that was received.
    received: i64,
}

/// Withheld items in their order, without those that another member has published.
///
/// Two members receive a message at different times, and a position may be older than its message: an item counts as
/// published only if its time is before the position, and it was withheld for a lease when that was received.
#[derive(Debug)]
struct Ring<T> {
    items: VecDeque<Item<T>>,
    lease: i64,
    most: usize,
}

#[derive(Debug)]
struct Item<T> {
    content: T,
    /// Time of event.
    time: i64,
    /// Time at which it was withheld.
    since: i64,
}

impl<T> Ring<T> {
    /// Creates an empty ring with room for `most` items.
    fn new(lease: i64, most: usize) -> Ring<T> {
        Ring { items: VecDeque::new(), lease, most }
    }

    /// Withholds an item. Returns whether the oldest one was dropped, though it may not have been published.
    fn push(&mut self, content: T, time: i64, since: i64, known: Known) -> bool {
        self.prune(known);
        let is_full = self.items.len() >= self.most;
        if is_full {
            self.items.pop_front();
        }
        self.items.push_back(Item { content, time, since });
        is_full
    }

    /// Removes the items at the front that were published.
    fn prune(&mut self, known: Known) {
        while self.items.front().is_some_and(|item| self.is_published(item, known)) {
            self.items.pop_front();
        }
    }

    fn is_published(&self, item: &Item<T>, known: Known) -> bool {
        let waited = known.received.saturating_sub(item.since);
        (item.time < known.position && waited > self.lease)
            || (item.time == known.position && waited > LEASES_TO_EQUAL * self.lease)
    }

    /// Takes the first item.
    fn pop(&mut self) -> Option<T> {
        self.items.pop_front().map(|item| item.content)
    }

    /// Removes all items.
    fn clear(&mut self) {
        self.items.clear();
    }

    /// The number of items.
    fn len(&self) -> usize {
        self.items.len()
    }
}

/// A withheld report.
#[derive(Debug)]
pub struct WithheldReport {
    /// The report.
    pub report: KeptReport,
    /// Whether its violation was muted until then: it was published already.
    pub was_muted: bool,
}

/// Treatment of new verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They are withheld.
    Withholding,
    /// They are withheld, while the thread of the group publishes those before them.
    Releasing,
    /// They are published.
    Publishing,
}

/// The verdicts of a member of a group: [`WithheldReport`], in a simulation numbers.
#[derive(Debug)]
pub struct Withheld<T> {
    permit: Arc<Permit>,
    ring: Ring<T>,
    mode: Mode,
    epoch: u64,
    /// Largest time of the verdicts that were handed to their sinks.
    position: i64,
}

impl<T> Withheld<T> {
    /// Begins to withhold verdicts, with the lease of the group in nanoseconds.
    pub fn new(permit: Arc<Permit>, lease: i64) -> Withheld<T> {
        let ring = Ring::new(lease, VERDICTS);
        Withheld { permit, ring, mode: Mode::Withholding, epoch: 0, position: NONE }
    }

    /// Whether the next verdicts are withheld. Looks at the clock, but only while they are published.
    pub fn is_withholding(&mut self) -> bool {
        if self.mode == Mode::Publishing && !self.permit.is_valid() {
            self.mode = Mode::Withholding;
            self.permit.lapse();
        }
        self.mode != Mode::Publishing
    }

    /// The epoch in which verdicts are published.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Withholds a verdict with a time of event.
    pub fn push(&mut self, verdict: T, time: Timestamp) {
        let known = self.permit.known();
        self.permit.latest.fetch_max(time.as_nanos(), Ordering::Relaxed);
        if self.ring.push(verdict, time.as_nanos(), self.permit.now(), known) {
            self.permit.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.count();
    }

    /// Whether verdicts are withheld, and none of them is about to be published.
    pub fn stands_by(&self) -> bool {
        self.mode == Mode::Withholding
    }

    /// Changes the withheld verdicts of a standby.
    pub fn change(&mut self, change: impl FnMut(&mut T)) {
        if self.mode == Mode::Withholding {
            self.ring.items.iter_mut().map(|item| &mut item.content).for_each(change);
        }
    }

    /// Forgets the withheld verdicts of a standby.
    pub fn forget(&mut self) {
        if self.mode == Mode::Withholding {
            self.ring.clear();
            self.count();
        }
    }

    /// Publishes nothing more.
    pub fn stop(&mut self) {
        self.mode = Mode::Withholding;
    }

    /// Begins to publish, with the withheld verdicts first. Returns their number.
    pub fn begin(&mut self, epoch: u64) -> usize {
        (self.mode, self.epoch) = (Mode::Releasing, epoch);
        let known = self.permit.known();
        self.ring.prune(known);
        // Verdicts before it were published by the active member before.
        self.position = self.position.max(known.position);
        self.permit.position.store(self.position, Ordering::Release);
        self.count();
        self.ring.len()
    }

    /// Takes up to `most` withheld verdicts to publish them; `None` if the member may not publish now, or all are published.
    /// From then on new ones are published at once.
    pub fn take(&mut self, most: usize) -> Option<Vec<T>> {
        if self.mode != Mode::Releasing {
            return None;
        }
        if !self.permit.is_valid() {
            self.mode = Mode::Withholding;
            self.permit.lapse();
            return None;
        }
        if self.ring.len() == 0 {
            self.mode = Mode::Publishing;
            return None;
        }
        let verdicts = (0..most).map_while(|_| self.ring.pop()).collect();
        self.count();
        Some(verdicts)
    }

    /// Notes the time of a verdict that is handed to its sinks.
    #[inline]
    pub fn note(&mut self, time: Timestamp) {
        self.position = self.position.max(time.as_nanos());
    }

    /// Shows the position of the noted verdicts, once all of them have been handed over.
    #[inline]
    pub fn show_position(&self) {
        self.permit.position.store(self.position, Ordering::Release);
    }

    fn count(&self) {
        self.permit.withheld.store(self.ring.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_items_are_removed() {
        let mut ring = Ring::new(10, 100);
        let unknown = Known { position: NONE, received: NONE };
        for time in 0..5 {
            assert!(!ring.push(time, time, time, unknown));
        }
        ring.prune(Known { position: 3, received: 11 });
        assert_eq!(ring.len(), 4, "only the first was withheld for more than a lease");
        ring.prune(Known { position: 3, received: 50 });
        assert_eq!(ring.len(), 2, "at the same time a further one may follow");
        ring.prune(Known { position: 3, received: 200 });
        assert_eq!((ring.pop(), ring.pop()), (Some(4), None));
    }

    #[test]
    fn full_ring_drops_the_oldest() {
        let mut ring = Ring::new(10, 2);
        let unknown = Known { position: NONE, received: NONE };
        let dropped: Vec<bool> = (0..4).map(|time| ring.push(time, time, 0, unknown)).collect();
        assert_eq!(dropped, [false, false, true, true]);
        assert_eq!((ring.pop(), ring.pop(), ring.pop()), (Some(2), Some(3), None));
    }

    #[test]
    fn verdicts_after_the_permitted_time_are_withheld() {
        let permit = Arc::new(Permit::default());
        let mut withheld = Withheld::<u64>::new(Arc::clone(&permit), 1);
        assert!(withheld.is_withholding());
        assert_eq!(withheld.begin(3), 0);
        permit.extend(i64::MAX);
        assert!(withheld.is_withholding(), "until the earlier ones are published");
        assert!(withheld.take(8).is_none());
        assert!(!withheld.is_withholding() && !permit.take_lapsed());
        permit.revoke();
        assert!(withheld.is_withholding() && permit.take_lapsed() && !permit.take_lapsed());
        permit.extend(i64::MAX);
        assert!(withheld.is_withholding(), "the thread of the group has to begin again");
    }
}
