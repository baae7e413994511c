//! Detection of absent topics.

use rondel_event::Timestamp;

use super::buffer::SetBuffer;
use super::earliest::Earliest;
use super::saved::SavedPresence;

/// Tracks which topics are absent.
///
/// Items do not move the deadline of their topic: it is moved when it is reached, if an item arrived
/// meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    topics: Vec<PresenceTopic>,
    /// Time at which to check a topic again, at the latest when it becomes absent; `i64::MAX` is never.
    due: Earliest,
    begun: bool,
}

/// Presence of one topic.
#[derive(Clone, Debug)]
struct PresenceTopic {
    /// Time without an item after which the topic is absent.
    after: Option<i64>,
    /// Whether an item ever arrived.
    ever: bool,
    /// Time of the last item; before that, of the first item of any topic.
    since: i64,
    absent: bool,
}

impl PresenceTopic {
    /// Returns the time at which the topic becomes absent without an item; `i64::MAX` if never.
    fn due(&self) -> i64 {
        self.after.filter(|_| !self.absent).map_or(i64::MAX, |after| self.since.saturating_add(after))
    }
}

impl Presence {
    pub(super) fn new(topics: usize, absent_after: &[Option<u64>]) -> Presence {
        let after = |i| absent_after.get(i).copied().flatten().map(nanos);
        let topic = |i| PresenceTopic { after: after(i), ever: false, since: 0, absent: false };
        let topics: Vec<_> = (0..topics).map(topic).collect();
        Presence { due: Earliest::new(topics.len()), topics, begun: false }
    }

    pub(super) fn seen<T>(
        &mut self,
        topic: usize,
        now: Timestamp,
        then: Timestamp,
        buffer: &mut SetBuffer<T>,
    ) {
        if !self.begun {
            self.begun = true;
            for (i, topic) in self.topics.iter_mut().enumerate() {
                topic.since = now.as_nanos();
                self.due.set(i, topic.due());
            }
            self.due.rebuild();
        }
        let t = &mut self.topics[topic];
        let gap = now.as_nanos().saturating_sub(t.since).max(0) as u64;
        t.ever = true;
        t.since = now.max(then).as_nanos();
        if t.absent {
            t.absent = false;
            self.due.update(topic, t.due());
            buffer.returned(topic, gap);
        }
    }

    pub(super) fn advance<T>(&mut self, now: Timestamp, buffer: &mut SetBuffer<T>) {
        loop {
            let (i, due) = self.due.first();
            if due > now.as_nanos() || due == i64::MAX {
                break;
            }
            let topic = &mut self.topics[i];
            if topic.due() <= now.as_nanos() {
                topic.absent = true;
                buffer.absent(i, Timestamp::from_nanos(topic.since), topic.ever);
            }
            self.due.update(i, topic.due());
        }
    }

    /// Extends all deadlines by a gap without a subscription.
    pub(super) fn extend(&mut self, gap: i64) {
        if !self.begun {
            return;
        }
        for (i, topic) in self.topics.iter_mut().enumerate() {
            if !topic.absent {
                topic.since = topic.since.saturating_add(gap);
            }
            self.due.set(i, topic.due());
        }
        self.due.rebuild();
    }

    /// Returns the state for a snapshot. It includes the times of the next check, which items do not move.
    pub(super) fn saved(&self) -> SavedPresence {
        let topic = |(i, t): (usize, &PresenceTopic)| (t.ever, t.since, t.absent, self.due.key(i));
        SavedPresence { begun: self.begun, topics: self.topics.iter().enumerate().map(topic).collect() }
    }

    /// Restores a saved state; `None` if it is inconsistent.
    pub(super) fn restore(&mut self, saved: SavedPresence) -> Option<()> {
        if saved.topics.len() != self.topics.len() {
            return None;
        }
        self.begun = saved.begun;
        for (i, (own, (ever, since, absent, due))) in self.topics.iter_mut().zip(saved.topics).enumerate() {
            *own = PresenceTopic { after: own.after, ever, since, absent };
            self.due.set(i, due);
        }
        self.due.rebuild();
        Some(())
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let due = self.due.first().1;
        (due < i64::MAX).then_some(Timestamp::from_nanos(due))
    }
}

/// Returns a duration as a signed difference of times.
pub(super) fn nanos(duration: u64) -> i64 {
    i64::try_from(duration).unwrap_or(i64::MAX)
}
