//! The account of verdicts over a series of take-overs: missing, repeated, with other ids, of an epoch that is over.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use super::arrivals::Arrival;

/// Counts of verdicts at a take-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages.
    pub messages: u64,
    /// Messages whose verdict never arrived.
    pub missing: u64,
    /// Verdicts about a message that had one already, with the same id.
    pub repeated: u64,
    /// The same with another id.
    pub differing: u64,
    /// Verdicts of an epoch that arrived after the first one of a later epoch.
    pub overtaken: u64,
    /// Verdicts that are no violation, or about no message.
    pub undecided: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: Counts) {
        self.messages += other.messages;
        self.missing += other.missing;
        self.repeated += other.repeated;
        self.differing += other.differing;
        self.overtaken += other.overtaken;
        self.undecided += other.undecided;
    }
}

/// The account of a series.
#[derive(Debug)]
pub struct Account {
    /// The ids of verdicts by the numbers of their messages, from those of the last take-over on.
    ids: BTreeMap<u64, String>,
    /// The first message of the series, of the take-over before, and of this one.
    first: u64,
    before: u64,
    begin: u64,
    /// The latest epoch so far.
    epoch: u64,
    counts: Counts,
}

impl Account {
    /// Begins with the message of a number. Verdicts about earlier ones do not count.
    pub fn new(first: u64) -> Account {
        let (ids, counts) = (BTreeMap::new(), Counts::default());
        Account { ids, first, before: first, begin: first, epoch: 0, counts }
    }

    /// Adds a verdict.
    pub fn add(&mut self, verdict: &Arrival) {
        if verdict.epoch < self.epoch {
            self.counts.overtaken += 1;
        }
        self.epoch = self.epoch.max(verdict.epoch);
        let Some(number) = verdict.number.filter(|_| verdict.is_violated) else {
            self.counts.undecided += 1;
            return;
        };
        if number < self.before {
            // Its id is forgotten.
            self.counts.repeated += u64::from(number >= self.first);
            return;
        }
        match self.ids.get(&number) {
            None => _ = self.ids.insert(number, verdict.id.clone()),
            Some(id) if *id == verdict.id => self.counts.repeated += 1,
            Some(_) => self.counts.differing += 1,
        }
    }

    /// Returns the counts of a take-over that ends before the message of a number.
    pub fn close(&mut self, end: u64) -> Counts {
        let Range { start, end } = self.begin..end.max(self.begin);
        let messages = end - start;
        let seen = self.ids.range(start..end).count() as u64;
        let counts = Counts { messages, missing: messages - seen, ..std::mem::take(&mut self.counts) };
        // Verdicts about them may still be repeated, but not those of the take-over before.
        self.ids = self.ids.split_off(&start);
        (self.before, self.begin) = (start, end);
        counts
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn verdict(number: u64, id: &str, epoch: u64) -> Arrival {
        Arrival { at: Instant::now(), number: Some(number), id: id.to_owned(), epoch, is_violated: true }
    }

    /// An account of verdicts: number, id, epoch.
    fn account(verdicts: &[(u64, &str, u64)]) -> Account {
        let mut account = Account::new(0);
        for &(number, id, epoch) in verdicts {
            account.add(&verdict(number, id, epoch));
        }
        account
    }

    #[test]
    fn complete_take_over_has_nothing_to_count() {
        let counts = account(&[(0, "a", 1), (1, "b", 1), (2, "c", 2), (3, "d", 2)]).close(4);
        assert_eq!(counts, Counts { messages: 4, ..Counts::default() });
    }

    #[test]
    fn missing_verdicts_are_counted_once() {
        let mut account = account(&[(0, "a", 1), (3, "d", 2), (5, "f", 2)]);
        assert_eq!(account.close(5), Counts { messages: 5, missing: 3, ..Counts::default() });
        // Number 5 came during the take-over before, and number 4 comes too late: it is new, and not repeated.
        account.add(&verdict(4, "e", 2));
        account.add(&verdict(6, "g", 2));
        assert_eq!(account.close(8), Counts { messages: 3, missing: 1, ..Counts::default() });
    }

    #[test]
    fn repeated_verdicts_have_equal_ids_or_are_named() {
        let mut account = account(&[(0, "a", 1), (1, "b", 1), (0, "a", 2), (1, "x", 2), (2, "c", 2)]);
        let counts = Counts { messages: 3, repeated: 1, differing: 1, ..Counts::default() };
        assert_eq!(account.close(3), counts);
        // Of the take-over before, ids are known.
        account.add(&verdict(2, "c", 2));
        account.add(&verdict(2, "y", 2));
        account.add(&verdict(3, "d", 2));
        assert_eq!(account.close(4), Counts { messages: 1, repeated: 1, differing: 1, ..Counts::default() });
        // Of earlier ones they are not.
        account.add(&verdict(0, "z", 2));
        assert_eq!(account.close(4), Counts { repeated: 1, ..Counts::default() });
    }

    #[test]
    fn verdicts_of_an_epoch_that_is_over_are_counted() {
        let mut account = account(&[(0, "a", 1), (1, "b", 2), (1, "b", 1), (2, "c", 1), (2, "c", 2)]);
        let counts = Counts { messages: 3, repeated: 2, overtaken: 2, ..Counts::default() };
        assert_eq!(account.close(3), counts);
        account.add(&verdict(3, "d", 1));
        assert_eq!(account.close(4), Counts { messages: 1, overtaken: 1, ..Counts::default() });
    }

    #[test]
    fn undecided_verdicts_do_not_hide_missing_ones() {
        let mut account = account(&[(0, "a", 1)]);
        account.add(&Arrival { is_violated: false, ..verdict(1, "b", 1) });
        account.add(&Arrival { number: None, ..verdict(0, "c", 1) });
        let counts = Counts { messages: 2, missing: 1, undecided: 2, ..Counts::default() };
        assert_eq!(account.close(2), counts);
    }

    #[test]
    fn verdicts_from_before_the_series_do_not_count() {
        let mut account = Account::new(5);
        for (number, id) in [(3, "a"), (4, "b"), (4, "c"), (5, "d")] {
            account.add(&verdict(number, id, 1));
        }
        assert_eq!(account.close(6), Counts { messages: 1, ..Counts::default() });
    }
}
