//! When messages of a topic came: gaps, and counts in windows.

use std::collections::VecDeque;

use rondel_event::Timestamp;

/// The windows in which messages are counted, in seconds.
const WINDOWS: [u64; 3] = [1, 10, 60];
/// Messages in a window beyond which they are no longer counted.
const KEPT: usize = 8_192;
const SECOND: u64 = 1_000_000_000;

/// When messages came.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    messages: u64,
    longest: u64,
    windows: [Window; WINDOWS.len()],
}

/// The least number of messages in every window of one length.
#[derive(Clone, Debug, Default)]
struct Window {
    times: VecDeque<Timestamp>,
    least: Option<usize>,
    overflowed: bool,
}

impl Window {
    /// Drops what is out of the window at this time. Just after a message left, the fewest are in it.
    fn pass(&mut self, length: u64, time: Timestamp) {
        while self.times.front().is_some_and(|first| between(*first, time) >= length) {
            self.times.pop_front();
            let left = self.times.len();
            self.least = Some(self.least.map_or(left, |least| least.min(left)));
        }
    }
}

/// Returns the nanoseconds from one time to another that is not earlier.
pub(super) fn between(from: Timestamp, to: Timestamp) -> u64 {
    let nanos = i128::from(to.as_nanos()) - i128::from(from.as_nanos());
    u64::try_from(nanos).unwrap_or(if nanos < 0 { 0 } else { u64::MAX })
}

impl Pace {
    pub(super) fn add(&mut self, time: Timestamp) {
        // A message that is out of order counts when it comes.
        let time = self.last.map_or(time, |last| last.max(time));
        self.gap(time);
        self.first.get_or_insert(time);
        self.last = Some(time);
        self.messages += 1;
        for (window, seconds) in self.windows.iter_mut().zip(WINDOWS) {
            window.pass(seconds * SECOND, time);
            if window.times.len() < KEPT && !window.overflowed {
                window.times.push_back(time);
            } else {
                *window = Window { overflowed: true, ..Window::default() };
            }
        }
    }

    fn gap(&mut self, time: Timestamp) {
        if let Some(last) = self.last {
            self.longest = self.longest.max(between(last, time));
        }
    }

    pub(super) fn end(&mut self, time: Timestamp) {
        self.gap(time);
        for (window, seconds) in self.windows.iter_mut().zip(WINDOWS) {
            window.pass(seconds * SECOND, time);
        }
    }

    /// Returns when the last message came.
    pub fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Returns the longest time without a message after the first, in nanoseconds; `None` without messages.
    pub fn longest_gap(&self) -> Option<u64> {
        self.last.map(|_| self.longest)
    }

    /// Returns the mean number of messages per second, from the first to the last; `None` with fewer than two.
    pub fn rate(&self) -> Option<f64> {
        let nanos = between(self.first?, self.last?);
        (self.messages > 1 && nanos > 0).then(|| (self.messages - 1) as f64 * 1e9 / nanos as f64)
    }

    /// Returns the shortest window in which messages were always several: its length in seconds, and the least number
    /// of messages in it.
    pub fn least(&self) -> Option<(u64, usize)> {
        const SEVERAL: usize = 5;
        let all = self.windows.iter().zip(WINDOWS);
        all.filter(|(window, _)| !window.overflowed)
            .find_map(|(window, seconds)| Some((seconds, window.least.filter(|least| *least >= SEVERAL)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn gaps_and_windows_include_the_end() {
        let mut pace = Pace::default();
        (0..=20).for_each(|i| pace.add(at(i * 100)));
        assert_eq!(pace.rate(), Some(10.0));
        assert_eq!((pace.longest_gap(), pace.least()), (Some(100_000_000), Some((1, 9))));
        pace.end(at(2_450));
        // From 1450 to 2450 exclusively: 1500 to 2000.
        assert_eq!((pace.longest_gap(), pace.least()), (Some(450_000_000), Some((1, 6))));
    }

    #[test]
    fn too_many_messages_are_not_kept() {
        let mut pace = Pace::default();
        (0..20_000).for_each(|i| pace.add(Timestamp::from_nanos(i * 1_000)));
        assert_eq!(pace.least(), None);
        assert!(pace.windows.iter().all(|window| window.times.is_empty()));
    }

    #[test]
    fn messages_out_of_order_make_no_gap() {
        let mut pace = Pace::default();
        for time in [at(0), at(1_000), at(500), at(1_100)] {
            pace.add(time);
        }
        assert_eq!(pace.longest_gap(), Some(1_000_000_000));
        assert_eq!(Pace::default().longest_gap(), None);
    }
}
