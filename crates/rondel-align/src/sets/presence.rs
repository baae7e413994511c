use rondel_event::Timestamp;

use super::book::Book;
use super::earliest::Earliest;
use super::saved::SavedPresence;

/// Which topics are absent.
///
/// A deadline is moved only when it comes up and an item has come meanwhile, not by every item.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    topics: Vec<Topic>,
    /// When to look at a topic: not after it is absent. `i64::MAX` is never.
    due: Earliest,
    begun: bool,
}

#[derive(Clone, Debug)]
struct Topic {
    after: Option<i64>,
    /// Whether something ever came.
    ever: bool,
    /// Since when it is waited for: the last item, or the first of any topic.
    since: i64,
    absent: bool,
}

impl Topic {
    /// When it will be absent, if nothing comes.
    fn due(&self) -> i64 {
        self.after.filter(|_| !self.absent).map_or(i64::MAX, |after| self.since.saturating_add(after))
    }
}

impl Presence {
    pub(super) fn new(topics: usize, absent_after: &[Option<u64>]) -> Presence {
        let after = |i| absent_after.get(i).copied().flatten().map(nanos);
        let topic = |i| Topic { after: after(i), ever: false, since: 0, absent: false };
        let topics: Vec<_> = (0..topics).map(topic).collect();
        Presence { due: Earliest::new(topics.len()), topics, begun: false }
    }

    pub(super) fn seen<T>(&mut self, topic: usize, now: Timestamp, book: &mut Book<T>) {
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
        t.since = now.as_nanos();
        if t.absent {
            t.absent = false;
            self.due.update(topic, t.due());
            book.returned(topic, gap);
        }
    }

    pub(super) fn advance<T>(&mut self, now: Timestamp, book: &mut Book<T>) {
        loop {
            let (i, due) = self.due.first();
            if due > now.as_nanos() || due == i64::MAX {
                break;
            }
            let topic = &mut self.topics[i];
            if topic.due() <= now.as_nanos() {
                topic.absent = true;
                book.absent(i, Timestamp::from_nanos(topic.since), topic.ever);
            }
            self.due.update(i, topic.due());
        }
    }

    /// Nobody has listened for so long: no topic is absent for that.
    pub(super) fn unheard(&mut self, gap: i64) {
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

    /// For a snapshot. When to look at a topic is part of it: not all of them were looked at since they were heard.
    pub(super) fn saved(&self) -> SavedPresence {
        let topic = |(i, t): (usize, &Topic)| (t.ever, t.since, t.absent, self.due.key(i));
        SavedPresence { begun: self.begun, topics: self.topics.iter().enumerate().map(topic).collect() }
    }

    /// Takes over what was saved, if it can be that.
    pub(super) fn restore(&mut self, saved: SavedPresence) -> Option<()> {
        if saved.topics.len() != self.topics.len() {
            return None;
        }
        self.begun = saved.begun;
        for (i, (own, (ever, since, absent, due))) in self.topics.iter_mut().zip(saved.topics).enumerate() {
            *own = Topic { after: own.after, ever, since, absent };
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

/// As a distance of two times.
pub(super) fn nanos(duration: u64) -> i64 {
    i64::try_from(duration).unwrap_or(i64::MAX)
}
