use std::collections::BTreeMap;

use rondel_event::Origin;
use serde::{Deserialize, Serialize};

use super::delays::IMPOSSIBLE;

/// How far back numbers are remembered.
const WINDOW: u64 = 256;
/// How many publishers of one topic are remembered.
const PUBLISHERS: usize = 4096;

/// Who publishes on a topic, and how far each has counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Origins {
    publishers: BTreeMap<u64, Publisher>,
    /// How many events had an origin.
    heard: u64,
    /// Who sent the event with the latest time.
    pub(super) latest_by: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Publisher {
    /// The first number that was seen: what came before it is not missing.
    first: u64,
    highest: u64,
    /// Which of the last numbers were seen, by their remainder.
    seen: [u64; (WINDOW / 64) as usize],
    /// The last number that was too far back to know whether it was seen.
    far_back: Option<u64>,
    /// The latest time.
    latest: Option<i64>,
    /// When it was heard last, in events with an origin.
    heard: u64,
}

/// What a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbered {
    /// It is the next.
    Next,
    /// It was seen.
    Again,
    /// So many before it are missing.
    Gap(u64),
    /// It was missing so far.
    Found,
    /// It is old, but was never missed.
    Old,
    /// The publisher counts anew, after this number.
    Anew(u64),
}

impl Origins {
    /// Whether they can have come about.
    pub(super) fn may_be(&self) -> bool {
        self.heard < IMPOSSIBLE && self.publishers.len() <= PUBLISHERS
    }

    /// An event with this origin came.
    pub(super) fn number(&mut self, origin: Origin) -> Numbered {
        self.heard += 1;
        let Some(publisher) = self.publishers.get_mut(&origin.publisher) else {
            self.forget();
            self.publishers.insert(origin.publisher, Publisher::new(origin.number, self.heard));
            return Numbered::Next;
        };
        publisher.heard = self.heard;
        publisher.number(origin.number)
    }

    /// An event of this publisher has this time. Whether it is not before another of the same publisher.
    pub(super) fn in_order(&mut self, publisher: u64, time: i64) -> bool {
        let Some(publisher) = self.publishers.get_mut(&publisher) else { return true };
        let in_order = publisher.latest.is_none_or(|latest| latest <= time);
        if in_order {
            publisher.latest = Some(time);
        }
        in_order
    }

    /// Makes room: whoever was not heard for longest is forgotten.
    fn forget(&mut self) {
        if self.publishers.len() < PUBLISHERS {
            return;
        }
        let oldest = self.publishers.iter().min_by_key(|(_, publisher)| publisher.heard).map(|(id, _)| *id);
        if let Some(oldest) = oldest {
            self.publishers.remove(&oldest);
        }
    }
}

impl Publisher {
    fn new(number: u64, heard: u64) -> Publisher {
        let mut new =
            Publisher { first: number, highest: number, seen: [0; 4], far_back: None, latest: None, heard };
        new.note(number);
        new
    }

    fn number(&mut self, number: u64) -> Numbered {
        if number > self.highest {
            let missing = number - self.highest - 1;
            if missing >= WINDOW {
                self.seen = [0; 4];
            } else {
                (self.highest + 1..number).for_each(|skipped| self.clear(skipped));
            }
            self.highest = number;
            self.note(number);
            return if missing > 0 { Numbered::Gap(missing) } else { Numbered::Next };
        }
        if self.highest - number >= WINDOW {
            // One by itself was long on its way. Two in a row: it counts anew.
            if number > 0 && self.far_back == Some(number - 1) {
                let highest = self.highest;
                *self = Publisher { latest: self.latest, ..Publisher::new(number, self.heard) };
                return Numbered::Anew(highest);
            }
            self.far_back = Some(number);
            return if number >= self.first { Numbered::Found } else { Numbered::Old };
        }
        if self.seen[slot(number)] & bit(number) != 0 {
            return Numbered::Again;
        }
        self.note(number);
        if number >= self.first { Numbered::Found } else { Numbered::Old }
    }

    fn note(&mut self, number: u64) {
        self.seen[slot(number)] |= bit(number);
    }

    fn clear(&mut self, number: u64) {
        self.seen[slot(number)] &= !bit(number);
    }
}

fn slot(number: u64) -> usize {
    (number % WINDOW / 64) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[u64]) -> Vec<Numbered> {
        let mut origins = Origins::default();
        numbers.iter().map(|&number| origins.number(Origin { publisher: 7, number })).collect()
    }

    #[test]
    fn numbers_go_on_are_missing_found_and_seen_again() {
        use Numbered::*;
        assert_eq!(
            numbers(&[5, 6, 6, 9, 7, 7, 8, 10]),
            [Next, Next, Again, Gap(2), Found, Again, Found, Next]
        );
        // What was before the first was never missed.
        assert_eq!(numbers(&[5, 3, 3, 4, 6]), [Next, Old, Again, Old, Next]);
        assert_eq!(numbers(&[0, 1_000, 999, 1_000]), [Next, Gap(999), Found, Again]);
        assert_eq!(numbers(&[0, u64::MAX, u64::MAX, 0]), [Next, Gap(u64::MAX - 1), Again, Found]);
    }

    #[test]
    fn a_publisher_that_counts_anew_is_believed_at_the_second_number() {
        use Numbered::*;
        assert_eq!(numbers(&[1_000, 0, 1, 2, 2, 4]), [Next, Old, Anew(1_000), Next, Again, Gap(1)]);
        // One alone was long on its way.
        assert_eq!(numbers(&[0, 1, 2, 1_000, 3, 1_001]), [Next, Next, Next, Gap(997), Found, Next]);
    }

    #[test]
    fn whoever_was_not_heard_for_longest_is_forgotten() {
        let mut origins = Origins::default();
        for publisher in (0..PUBLISHERS as u64).chain([0, PUBLISHERS as u64]) {
            origins.number(Origin { publisher, number: 1 });
        }
        assert_eq!(origins.publishers.len(), PUBLISHERS);
        assert_eq!(origins.number(Origin { publisher: 0, number: 1 }), Numbered::Again);
        assert_eq!(origins.number(Origin { publisher: 1, number: 1 }), Numbered::Next);
    }
}
