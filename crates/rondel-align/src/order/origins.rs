//! Sequence numbers of publishers.

use std::collections::BTreeMap;

use rondel_event::Origin;
use serde::{Deserialize, Serialize};

use super::delays::IMPOSSIBLE;

/// Number of the last sequence numbers that are remembered of each publisher.
const WINDOW: u64 = 256;
/// Limit of publishers that are remembered of each topic.
const PUBLISHERS: usize = 4096;

/// The publishers of a topic with their sequence numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SequenceNumbers {
    publishers: BTreeMap<u64, PublisherNumbers>,
    /// Number of events with an origin.
    received: u64,
    /// Publisher of the event with the latest time.
    pub(super) latest_by: Option<u64>,
}

/// Sequence numbers of one publisher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PublisherNumbers {
    /// First number received: lower ones are not missing.
    first: u64,
    highest: u64,
    /// The numbers received within the window, as a bit set by their remainder.
    seen: [u64; (WINDOW / 64) as usize],
    /// Last number below the window; it is unknown whether it was received before.
    far_back: Option<u64>,
    /// Latest time of an event.
    latest: Option<i64>,
    /// `SequenceNumbers::received` at the last event.
    last_event: u64,
    /// Whether no higher number has come since a [seam](SequenceNumbers::join).
    #[serde(skip)]
    is_joined: bool,
}

/// Result of checking a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOutcome {
    /// The next number.
    Next,
    /// A duplicate.
    Again,
    /// Numbers before it are missing.
    Gap(u64),
    /// A number that was missing.
    Found,
    /// An older number than the first one received.
    Old,
    /// The publisher restarted its numbers; contains the highest number before.
    Restarted(u64),
}

impl SequenceNumbers {
    /// Whether restored values are plausible: a snapshot may contain any numbers.
    pub fn is_plausible(&self) -> bool {
        self.received < IMPOSSIBLE && self.publishers.len() <= PUBLISHERS
    }

    /// Checks and records the sequence number of an event.
    pub fn number(&mut self, origin: Origin) -> NumberOutcome {
        self.received += 1;
        let Some(publisher) = self.publishers.get_mut(&origin.publisher) else {
            self.forget();
            self.publishers.insert(origin.publisher, PublisherNumbers::new(origin.number, self.received));
            return NumberOutcome::Next;
        };
        publisher.last_event = self.received;
        publisher.number(origin.number)
    }

    /// Notes a seam: events received from here on may overlap with earlier ones. Until a publisher has a higher number,
    /// numbers between its first and its highest one are duplicates, however far they go back, and no restart.
    pub fn join(&mut self) {
        self.publishers.values_mut().for_each(|publisher| publisher.is_joined = true);
    }

    /// Records that a publisher's numbers up to this one were received, after the highest one so far.
    pub fn receive_through(&mut self, publisher: u64, number: u64) {
        let Some(publisher) = self.publishers.get_mut(&publisher) else { return };
        if number > publisher.highest {
            self.received += number - publisher.highest;
            publisher.last_event = self.received;
            (number.saturating_sub(WINDOW - 1).max(publisher.highest + 1)..=number)
                .for_each(|n| publisher.note(n));
            publisher.highest = number;
        }
    }

    /// Whether this is the first number of its publisher that was received.
    pub fn is_first(&self, origin: Origin) -> bool {
        self.publishers
            .get(&origin.publisher)
            .is_some_and(|p| p.first == origin.number && p.highest == p.first)
    }

    /// Returns the number after the highest one of each publisher.
    pub fn expected(&self) -> impl Iterator<Item = Origin> {
        let after = |(&publisher, numbers): (&u64, &PublisherNumbers)| Origin {
            publisher,
            number: numbers.highest.wrapping_add(1),
        };
        self.publishers.iter().map(after)
    }

    /// Returns the number of publishers that are remembered.
    pub fn publishers(&self) -> usize {
        self.publishers.len()
    }

    /// Records the time of an event. Returns whether the times of its publisher are in order.
    pub(super) fn in_order(&mut self, publisher: u64, time: i64) -> bool {
        let Some(publisher) = self.publishers.get_mut(&publisher) else { return true };
        let in_order = publisher.latest.is_none_or(|latest| latest <= time);
        if in_order {
            publisher.latest = Some(time);
        }
        in_order
    }

    /// Forgets the publisher with the oldest last event if the limit is reached.
    fn forget(&mut self) {
        if self.publishers.len() < PUBLISHERS {
            return;
        }
        let oldest =
            self.publishers.iter().min_by_key(|(_, publisher)| publisher.last_event).map(|(id, _)| *id);
        if let Some(oldest) = oldest {
            self.publishers.remove(&oldest);
        }
    }
}

impl PublisherNumbers {
    fn new(number: u64, last_event: u64) -> PublisherNumbers {
        let mut new = PublisherNumbers {
            first: number,
            highest: number,
            seen: [0; 4],
            far_back: None,
            latest: None,
            last_event,
            is_joined: false,
        };
        new.note(number);
        new
    }

    fn number(&mut self, number: u64) -> NumberOutcome {
        if number > self.highest {
            self.is_joined = false;
            let missing = number - self.highest - 1;
            if missing >= WINDOW {
                self.seen = [0; 4];
            } else {
                (self.highest + 1..number).for_each(|skipped| self.clear(skipped));
            }
            self.highest = number;
            self.note(number);
            return if missing > 0 { NumberOutcome::Gap(missing) } else { NumberOutcome::Next };
        }
        if self.highest - number >= WINDOW {
            if self.is_joined && number >= self.first {
                return NumberOutcome::Again;
            }
            // A single number this far back is a delayed event; two successive ones are a restart.
            if number > 0 && self.far_back == Some(number - 1) {
                let highest = self.highest;
                *self = PublisherNumbers {
                    latest: self.latest,
                    ..PublisherNumbers::new(number, self.last_event)
                };
                return NumberOutcome::Restarted(highest);
            }
            self.far_back = Some(number);
            return if number >= self.first { NumberOutcome::Found } else { NumberOutcome::Old };
        }
        if self.seen[slot(number)] & bit(number) != 0 {
            return NumberOutcome::Again;
        }
        self.note(number);
        if number >= self.first { NumberOutcome::Found } else { NumberOutcome::Old }
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

    fn numbers(numbers: &[u64]) -> Vec<NumberOutcome> {
        let mut origins = SequenceNumbers::default();
        numbers.iter().map(|&number| origins.number(Origin { publisher: 7, number })).collect()
    }

    #[test]
    fn gaps_and_duplicates_are_detected() {
        use NumberOutcome::*;
        assert_eq!(
            numbers(&[5, 6, 6, 9, 7, 7, 8, 10]),
            [Next, Next, Again, Gap(2), Found, Again, Found, Next]
        );
        // Numbers before the first one received are not missing.
        assert_eq!(numbers(&[5, 3, 3, 4, 6]), [Next, Old, Again, Old, Next]);
        assert_eq!(numbers(&[0, 1_000, 999, 1_000]), [Next, Gap(999), Found, Again]);
        assert_eq!(numbers(&[0, u64::MAX, u64::MAX, 0]), [Next, Gap(u64::MAX - 1), Again, Found]);
    }

    #[test]
    fn a_restart_is_detected_at_the_second_number() {
        use NumberOutcome::*;
        assert_eq!(numbers(&[1_000, 0, 1, 2, 2, 4]), [Next, Old, Restarted(1_000), Next, Again, Gap(1)]);
        // A single number is a delayed event.
        assert_eq!(numbers(&[0, 1, 2, 1_000, 3, 1_001]), [Next, Next, Next, Gap(997), Found, Next]);
    }

    #[test]
    fn numbers_that_overlap_at_a_seam_are_duplicates() {
        use NumberOutcome::*;
        let mut origins = SequenceNumbers::default();
        let mut number = |number, joins| {
            if joins {
                origins.join();
            }
            origins.number(Origin { publisher: 7, number })
        };
        (10..=1_000).for_each(|one| _ = number(one, false));
        assert_eq!(number(11, true), Again);
        assert!((12..=1_000).all(|one| number(one, false) == Again));
        assert_eq!(number(1_001, false), Next);
        // After a higher number, two successive ones are a restart again; numbers before the first one are not.
        assert_eq!([11, 12].map(|one| number(one, false)), [Found, Restarted(1_001)]);
        assert_eq!([number(3, true), number(4, false)], [Old, Old]);
    }

    #[test]
    fn the_publisher_with_the_oldest_event_is_forgotten() {
        let mut origins = SequenceNumbers::default();
        for publisher in (0..PUBLISHERS as u64).chain([0, PUBLISHERS as u64]) {
            origins.number(Origin { publisher, number: 1 });
        }
        assert_eq!(origins.publishers.len(), PUBLISHERS);
        assert_eq!(origins.number(Origin { publisher: 0, number: 1 }), NumberOutcome::Again);
        assert_eq!(origins.number(Origin { publisher: 1, number: 1 }), NumberOutcome::Next);
    }
}
