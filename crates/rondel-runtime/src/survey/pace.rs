//! Timing of the messages of a topic: periods, silences, and counts in windows.

use std::collections::{BTreeMap, VecDeque};

use rondel_event::Timestamp;

/// The windows in which messages are counted, in seconds.
const WINDOWS: [u64; 3] = [1, 10, 60];
/// Messages in a window beyond which they are no longer counted.
const KEPT: usize = 8_192;
const SECOND: u64 = 1_000_000_000;
/// The longest gaps that are kept with their times.
const LONGEST: usize = 8;
/// Classes of gaps for each doubling of their length: quantiles are exact to 2 %.
const CLASSES: f64 = 32.0;
/// A gap of a regular topic that is this many times as long as the next shorter one is a silence, not jitter.
const FAR: u64 = 3;

/// A time in one of several recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedTime {
    /// The recording, counted from 0.
    pub part: u32,
    /// The time in it.
    pub time: Timestamp,
}

/// Timing of messages.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The first and the last message of the recording that is read.
    current: Option<(Timestamp, Timestamp)>,
    /// The last message of all.
    last: Option<Timestamp>,
    messages: u64,
    /// The time from the first to the last message of each recording, together.
    spanned: u64,
    /// Pairs of consecutive messages.
    gaps: u64,
    /// Number of gaps in each class of lengths, and their sum.
    classes: BTreeMap<u16, (u64, u128)>,
    /// The longest gaps, the longest first, with the times of the messages before them.
    longest: Vec<Gap>,
    windows: [Window; WINDOWS.len()],
}

/// A time without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its length in nanoseconds.
    pub length: u64,
    /// The time of the message before it.
    pub from: RecordedTime,
    /// Whether no message came after it: it lasted until the end of the recording.
    pub is_last: bool,
}

/// The regularity of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// The median time between two messages, in nanoseconds.
    pub median: u64,
    /// The longest time between two messages, without the silences.
    pub longest: u64,
    /// The time of the message before that.
    pub longest_from: Option<RecordedTime>,
    /// Single gaps of a regular topic that are much longer than all others, in the order of their times.
    pub silences: Vec<Gap>,
    /// Whether nearly all gaps are about as long as the median.
    pub is_regular: bool,
}

/// A rate that a regular topic keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeastRate {
    /// The length of the window in seconds.
    pub window: u64,
    /// The messages per second in it.
    pub rate: f64,
    /// Whether it was kept all the time, also in silences.
    pub is_kept: bool,
}

/// The least number of messages in every window of one length.
#[derive(Clone, Debug, Default)]
struct Window {
    times: VecDeque<Timestamp>,
    least: Option<usize>,
    overflowed: bool,
}

impl Window {
    /// Drops messages that have left the window at this time. The count is lowest just after a message left.
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

/// The class of a gap.
fn class(length: u64) -> u16 {
    ((length.max(1) as f64).log2() * CLASSES) as u16
}

impl Pace {
    pub(super) fn add(&mut self, at: RecordedTime) {
        // A message that is out of order counts when it comes.
        let (first, time) = match self.current {
            Some((first, last)) => (first, last.max(at.time)),
            None => (at.time, at.time),
        };
        if let Some((_, last)) = self.current {
            let length = between(last, time);
            let (count, sum) = self.classes.entry(class(length)).or_default();
            (*count, *sum) = (*count + 1, *sum + u128::from(length));
            self.gaps += 1;
            self.gap(Gap { length, from: RecordedTime { part: at.part, time: last }, is_last: false });
        }
        (self.current, self.last) = (Some((first, time)), Some(time));
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

    fn gap(&mut self, gap: Gap) {
        let at = self.longest.partition_point(|other| other.length >= gap.length);
        if at < LONGEST {
            self.longest.truncate(LONGEST - 1);
            self.longest.insert(at, gap);
        }
    }

    /// Ends a recording at this time: what comes later belongs to another one.
    pub(super) fn end(&mut self, end: RecordedTime) {
        let Some((first, last)) = self.current.take() else { return };
        self.spanned = self.spanned.saturating_add(between(first, last));
        let length = between(last, end.time);
        if length > 0 {
            self.gap(Gap { length, from: RecordedTime { part: end.part, time: last }, is_last: true });
        }
        for (window, seconds) in self.windows.iter_mut().zip(WINDOWS) {
            window.pass(seconds * SECOND, end.time);
            window.times.clear();
        }
    }

    /// Returns when the last message came.
    pub fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Returns the longest time without a message after the first, in nanoseconds; `None` without messages.
    pub fn longest_gap(&self) -> Option<u64> {
        self.last.map(|_| self.longest.first().map_or(0, |gap| gap.length))
    }

    /// Returns the time from the first message to the last, in nanoseconds.
    fn span(&self) -> u64 {
        self.spanned.saturating_add(self.current.map_or(0, |(first, last)| between(first, last)))
    }

    /// Returns the mean number of messages per second, from the first to the last; `None` with fewer than two.
    pub fn rate(&self) -> Option<f64> {
        let nanos = self.span();
        (self.gaps > 0 && nanos > 0).then(|| self.gaps as f64 * 1e9 / nanos as f64)
    }

    /// The length of gaps that a part of all do not exceed.
    fn quantile(&self, part: f64) -> u64 {
        let rank = (part * self.gaps as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.classes.values().find(|(count, _)| {
            below += *count;
            below >= rank
        });
        found.map_or(0, |(count, sum)| u64::try_from(sum / u128::from(*count)).unwrap_or(u64::MAX))
    }

    /// Returns how regular the topic is; `None` with fewer than three messages.
    pub fn rhythm(&self) -> Option<Rhythm> {
        if self.gaps < 2 {
            return None;
        }
        let median = self.quantile(0.5);
        let most = (self.gaps / 50).clamp(1, LONGEST as u64 - 1) as usize;
        let is_far = |index: &usize| {
            let next = self.longest.get(index + 1).map_or(median, |next| next.length);
            let length = self.longest[*index].length;
            length / FAR > next && length / 5 > median
        };
        // The outer twentieth may be jitter or lost messages.
        let is_regular =
            self.gaps >= 4 && self.quantile(0.95) < 3 * median && self.quantile(0.1) > median / 4;
        let most = if is_regular { most } else { 0 };
        let far = (0..self.longest.len().min(most)).rfind(is_far).map_or(0, |index| index + 1);
        let (silences, others) = self.longest.split_at(far);
        let mut silences = silences.to_vec();
        silences.sort_by_key(|gap| gap.from);
        let longest = others.first().map_or(median, |gap| gap.length);
        let longest_from = others.first().map(|gap| gap.from);
        Some(Rhythm { median, longest, longest_from, silences, is_regular })
    }

    /// Returns the least rate that a regular topic keeps if it is never silent for longer than `bound`, in nanoseconds.
    pub(super) fn least_rate(&self, rhythm: &Rhythm, bound: u64) -> Option<LeastRate> {
        /// Messages in a window, as a rule.
        const SEVERAL: u64 = 10;
        let least = rhythm.median.saturating_mul(SEVERAL).max(bound.saturating_mul(2));
        let (window, seconds) = self
            .windows
            .iter()
            .zip(WINDOWS)
            .find(|(window, seconds)| seconds * SECOND >= least && !window.overflowed)?;
        let usual = (seconds * SECOND) as f64 / rhythm.median as f64;
        // A silence that is reported makes no bound.
        let counted = window.least.filter(|_| rhythm.silences.is_empty()).map_or(usual, |least| least as f64);
        let rate = (0.5 * usual).min(0.7 * counted).floor() / seconds as f64;
        let is_usable = rate > 0.2 * usual / seconds as f64;
        let rate = (rate * 100.0).floor() / 100.0;
        let is_kept = window.least.is_none_or(|least| least as f64 >= rate * seconds as f64);
        is_usable.then_some(LeastRate { window: seconds, rate, is_kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> RecordedTime {
        RecordedTime { part: 0, time: Timestamp::from_nanos(ms * 1_000_000) }
    }

    #[test]
    fn gaps_and_windows_include_the_end() {
        let mut pace = Pace::default();
        (0..=20).for_each(|i| pace.add(at(i * 100)));
        assert_eq!(pace.rate(), Some(10.0));
        assert_eq!((pace.longest_gap(), pace.windows[0].least), (Some(100_000_000), Some(9)));
        pace.end(at(2_450));
        // From 1450 to 2450 exclusively: 1500 to 2000.
        assert_eq!((pace.longest_gap(), pace.windows[0].least), (Some(450_000_000), Some(6)));
    }

    #[test]
    fn too_many_messages_are_not_kept() {
        let mut pace = Pace::default();
        (0..20_000).for_each(|i| pace.add(RecordedTime { part: 0, time: Timestamp::from_nanos(i * 1_000) }));
        assert!(pace.windows.iter().all(|window| window.overflowed));
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

    #[test]
    fn a_silence_does_not_change_the_rhythm() {
        let mut pace = Pace::default();
        for i in 0..3_000 {
            let after = if i >= 1_000 { 580 } else { 0 };
            pace.add(at(i * 20 + after + i % 3));
        }
        pace.end(at(60_570));
        let rhythm = pace.rhythm().unwrap();
        assert!(rhythm.is_regular && rhythm.longest <= 22_000_000, "{rhythm:?}");
        assert!((19_000_000..22_000_000).contains(&rhythm.median), "{rhythm:?}");
        let [silence] = rhythm.silences[..] else { panic!("{rhythm:?}") };
        assert_eq!((silence.from, silence.is_last), (at(999 * 20), false));
    }

    #[test]
    fn recordings_are_apart() {
        let mut pace = Pace::default();
        for part in 0..2 {
            (0..100).for_each(|i| pace.add(RecordedTime { part, ..at(i * 10 - 50_000 * i64::from(part)) }));
            pace.end(RecordedTime { part, ..at(1_000 - 50_000 * i64::from(part)) });
        }
        assert_eq!((pace.rate(), pace.longest_gap()), (Some(100.0), Some(10_000_000)));
    }

    #[test]
    fn events_are_not_regular() {
        let mut pace = Pace::default();
        [0, 10, 700, 705, 2_000, 9_000, 9_001, 9_002].into_iter().for_each(|ms| pace.add(at(ms)));
        assert!(!pace.rhythm().unwrap().is_regular);
    }
}
