use std::time::Duration;

use rondel_event::Timestamp;

use super::book::Book;
use super::earliest::Earliest;

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
    /// When something came last.
    last: Option<Timestamp>,
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
    pub(super) fn new(topics: usize, absent_after: &[Option<Duration>]) -> Presence {
        let after = |i| absent_after.get(i).copied().flatten().map(nanos);
        let topic = |i| Topic { after: after(i), last: None, since: 0, absent: false };
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
        t.last = Some(now);
        t.since = now.as_nanos();
        if t.absent {
            t.absent = false;
            self.due.update(topic, t.due());
            book.back(topic, now);
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
                book.absent(i, topic.last);
            }
            self.due.update(i, topic.due());
        }
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let due = self.due.first().1;
        (due < i64::MAX).then_some(Timestamp::from_nanos(due))
    }
}

/// In nanoseconds; as long as possible if it is longer.
pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
