//! Release of waiting events, handling of late ones, and absence of topics.

use rondel_event::{Timestamp, TopicId};

use super::frontier::ENDLESS;
use super::notice::Notice;
use super::settings::{LatePolicy, Lateness, Released};
use super::tree::Position;
use super::{NOTICES, Order};

impl<T> Order<T> {
    /// Handles a late event.
    pub(super) fn late(&mut self, index: usize, time: i64, delay: u64, item: T) {
        let (topic, policy) = (TopicId(index as u32), self.settings.late);
        let reached = Timestamp::from_nanos(self.reached.time);
        let excess = self.reached.time.saturating_sub(time) as u64;
        let max_wait =
            Some(self.frontiers.wait(index)).filter(|wait| *wait != ENDLESS).map(|wait| wait as u64);
        let here = &mut self.topics[index];
        let sufficient = here.record_late(excess, delay);
        let (late, received) = (here.counts.late, here.counts.received);
        let stamp = Timestamp::from_nanos(time);
        if policy == LatePolicy::Drop {
            here.counts.dropped += 1;
            if self.dropped.len() >= NOTICES {
                self.dropped.pop_front();
            }
            self.dropped.push_back((topic, stamp, reached, self.popped + self.out.len() as u64));
        } else {
            here.counts.released += 1;
            let lateness = Lateness { stamp, excess, inconclusive: policy == LatePolicy::Inconclusive };
            self.out.push_back(Released { topic, time: reached, lateness: Some(lateness), item });
        }
        self.notice(Notice::Late { topic, time: stamp, excess, delay, policy });
        // Reported at 1, 10, 100, … late events.
        if 10_u64.checked_pow(late.ilog10()) == Some(late) {
            self.notice(Notice::WaitTooShort { topic, late, received, max_wait, sufficient });
        }
    }

    /// Returns the position of the first waiting event and the time at which its wait ends: `i64::MIN` if it may be
    /// released at once, `None` if the clock does not end its wait.
    pub(super) fn head(&self) -> Option<(Position, Option<i64>)> {
        let head = self.heads.earliest();
        if head == Position::NEVER {
            return None;
        }
        Some(match self.frontiers.wait_before(head) {
            None => (head, Some(i64::MIN)),
            Some(ENDLESS) => (head, None),
            Some(wait) => (head, Some(head.time.saturating_add(wait))),
        })
    }

    /// Releases events and reports absences that are due, in the order of their times.
    pub(super) fn release_due(&mut self) {
        loop {
            let absent = self.absences.earliest();
            match self.head() {
                Some((_, Some(due)))
                    if due <= self.now && (due < absent.time || absent == Position::NEVER) =>
                {
                    let topic = self.heads.earliest().topic();
                    self.topics[topic].counts.guessed += u64::from(due != i64::MIN);
                    self.release_head();
                }
                _ if absent.time <= self.now && absent != Position::NEVER => self.lose(absent.topic()),
                _ => return,
            }
        }
    }

    /// Marks a topic as absent.
    fn lose(&mut self, index: usize) {
        self.absences.set(index, Position::NEVER);
        let here = &mut self.topics[index];
        here.absent = true;
        self.absent += usize::from(here.in_play);
        let (since, ever) = (Timestamp::from_nanos(here.last_seen), here.ever);
        self.set_frontier(index);
        self.notice(Notice::Absent { topic: TopicId(index as u32), since, ever });
    }

    /// Releases the first waiting event because the queue is full.
    pub(super) fn release_early(&mut self) {
        let head = self.heads.earliest();
        let counts = &mut self.topics[head.topic()].counts;
        counts.early += 1;
        counts.guessed += 1;
        self.release_head();
        self.notice(Notice::Early {
            topic: TopicId(head.topic() as u32),
            time: Timestamp::from_nanos(head.time),
        });
    }

    /// Releases the first waiting event; returns `false` if there is none.
    pub(super) fn release_head(&mut self) -> bool {
        let head = self.heads.earliest();
        let Some(here) = self.topics.get_mut(head.topic()) else { return false };
        let Some((time, item)) = here.queue.pop() else { return false };
        here.counts.released += 1;
        self.weight.remove(&item);
        self.waiting -= 1;
        self.reached = self.reached.max(head);
        let time = Timestamp::from_nanos(time);
        self.out.push_back(Released { topic: TopicId(head.topic() as u32), time, lateness: None, item });
        let index = head.topic();
        self.heads
            .set(index, here.queue.first().map_or(Position::NEVER, |time| Position::event(time, index)));
        true
    }
}
