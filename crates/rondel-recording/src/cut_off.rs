//! Times in which a recorder was cut off from a network.

use rondel_event::Timestamp;

/// Limit of intervals kept; later ones extend the last one.
const MOST: usize = 1024;

/// Interval in which messages may have been missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOff {
    /// Time of the last message received, by the clock of the recorder.
    pub from: Timestamp,
    /// Time at which messages were received again; `None` if they were not.
    pub until: Option<Timestamp>,
    /// The recorded topics; all if empty.
    pub topics: Vec<String>,
}

/// Intervals in which a recorder was cut off, in the order of their beginnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOffs(Vec<CutOff>);

impl CutOffs {
    /// Adds an interval, or the end of a known one.
    pub fn note(&mut self, new: CutOff) {
        let same = |known: &&mut CutOff| known.from == new.from && known.topics == new.topics;
        if let Some(known) = self.0.iter_mut().find(same) {
            known.until = known.until.or(new.until);
        } else if self.0.len() < MOST {
            let at = self.0.partition_point(|known| known.from <= new.from);
            self.0.insert(at, new);
        } else if let Some(last) = self.0.last_mut() {
            last.from = last.from.min(new.from);
            last.until = last.until.zip(new.until).map(|(known, new)| known.max(new));
            last.topics.clear();
        }
    }

    /// Returns the intervals that overlap with the span from the first of these times to the second.
    pub fn within(&self, from: Timestamp, until: Timestamp) -> CutOffs {
        let meets = |own: &&CutOff| own.from <= until && own.until.is_none_or(|end| end >= from);
        CutOffs(self.0.iter().filter(meets).cloned().collect())
    }

    /// Returns all intervals.
    pub fn all(&self) -> &[CutOff] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the intervals of another recording of the same time.
    pub(crate) fn and(mut self, other: CutOffs) -> CutOffs {
        other.0.into_iter().for_each(|own| self.note(own));
        self
    }

    /// Returns the intervals as a recorder notes them: one line each with the beginning and the end in nanoseconds, `-`
    /// without an end, and the topics, separated by tabs.
    pub fn text(&self) -> String {
        let line = |own: &CutOff| {
            let until = own.until.map_or_else(|| "-".to_owned(), |until| until.as_nanos().to_string());
            let topics = own.topics.iter().map(|topic| format!("\t{topic}"));
            format!("{}\t{until}{}", own.from.as_nanos(), topics.collect::<String>())
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Parses the result of [`text`](CutOffs::text), skipping invalid lines.
    pub(crate) fn read(text: &str) -> CutOffs {
        let mut all = CutOffs::default();
        for line in text.lines() {
            let mut parts = line.split('\t');
            let Some(from) = parts.next().and_then(|from| from.parse().ok()) else { continue };
            let until = parts.next().and_then(|until| until.parse().ok()).map(Timestamp::from_nanos);
            let topics = parts.map(str::to_owned).collect();
            all.note(CutOff { from: Timestamp::from_nanos(from), until, topics });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(from: i64, until: Option<i64>, topics: &[&str]) -> CutOff {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        CutOff { from: Timestamp::from_nanos(from), until: until.map(Timestamp::from_nanos), topics }
    }

    #[test]
    fn intervals_are_restored_from_text() {
        let mut all = CutOffs::default();
        all.note(cut(5, None, &["/a b", "c"]));
        all.note(cut(2, Some(4), &[]));
        all.note(cut(5, Some(9), &["/a b", "c"]));
        all.note(cut(8, None, &[]));
        assert_eq!(all.text(), "2\t4\n5\t9\t/a b\tc\n8\t-");
        assert_eq!(CutOffs::read(&all.text()), all);
        let within = |from, until| {
            let found = all.within(Timestamp::from_nanos(from), Timestamp::from_nanos(until));
            found.all().iter().map(|own| own.from.as_nanos()).collect::<Vec<_>>()
        };
        assert_eq!((within(0, 1), within(4, 4), within(10, 20)), (vec![], vec![2], vec![8]));
        assert_eq!(CutOffs::read("x\n\n-\t3\n"), CutOffs::default());
    }

    #[test]
    fn intervals_above_the_limit_extend_the_last() {
        let mut all = CutOffs::default();
        (0..5000).for_each(|i| all.note(cut(2 * i, Some(2 * i + 1), &["a"])));
        assert_eq!(all.all().len(), MOST);
        assert_eq!(all.all().last(), Some(&cut(2 * MOST as i64 - 2, Some(9999), &[])));
    }
}
