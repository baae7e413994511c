use std::time::Duration;

use rondel_event::Timestamp;

use super::book::Book;

/// Which topics are absent.
///
/// A deadline is moved only when it has come, not by every item: then at most one item in each
/// `absent_after` costs more than a comparison.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    topics: Vec<Topic>,
    /// No topic is absent before.
    next: i64,
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
    fn due(&self) -> Option<i64> {
        self.after.filter(|_| !self.absent).map(|after| self.since.saturating_add(after))
    }
}

impl Presence {
    pub(super) fn new(topics: usize, absent_after: &[Option<Duration>]) -> Presence {
        let after = |i| absent_after.get(i).copied().flatten().map(nanos);
        let topic = |i| Topic { after: after(i), last: None, since: 0, absent: false };
        Presence { topics: (0..topics).map(topic).collect(), next: i64::MAX, begun: false }
    }

    pub(super) fn seen<T>(&mut self, topic: usize, now: Timestamp, book: &mut Book<T>) {
        if !self.begun {
            self.begun = true;
            self.topics.iter_mut().for_each(|t| t.since = now.as_nanos());
            self.find_next();
        }
        let t = &mut self.topics[topic];
        t.last = Some(now);
        t.since = now.as_nanos();
        if t.absent {
            t.absent = false;
            book.back(topic, now);
            self.next = self.next.min(self.topics[topic].due().unwrap_or(i64::MAX));
        }
    }

    pub(super) fn advance<T>(&mut self, now: Timestamp, book: &mut Book<T>) {
        if !self.begun || now.as_nanos() < self.next {
            return;
        }
        for (i, topic) in self.topics.iter_mut().enumerate() {
            if topic.due().is_some_and(|due| due <= now.as_nanos()) {
                topic.absent = true;
                book.absent(i, topic.last);
            }
        }
        self.find_next();
    }

    fn find_next(&mut self) {
        self.next = self.topics.iter().filter_map(Topic::due).min().unwrap_or(i64::MAX);
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (self.next < i64::MAX).then_some(Timestamp::from_nanos(self.next))
    }
}

/// In nanoseconds; as long as possible if it is longer.
pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
