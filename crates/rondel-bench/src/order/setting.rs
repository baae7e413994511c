//! The settings of alignment that are compared, and the replay of arrivals through them.

use rondel_align::{LatePolicy, MaxWait, Order, OrderPolicy, OrderSettings, TopicOrder};
use rondel_event::{Timestamp, TopicId};
use serde::{Serialize, Serializer};

use super::TOPICS;
use super::record::{Arrival, What};

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// In the order of arrival.
    Arrival,
    /// In the order of times, with a `max_wait`.
    Wait {
        /// The `max_wait` in milliseconds.
        ms: u64,
        /// Whether topics are `in_order`.
        known: bool,
    },
    /// In the order of times, released by markers.
    Markers,
}

/// All settings.
pub const SETTINGS: [Setting; 8] = [
    Setting::Arrival,
    Setting::Wait { ms: 1, known: false },
    Setting::Wait { ms: 5, known: false },
    Setting::Wait { ms: 20, known: false },
    Setting::Wait { ms: 1, known: true },
    Setting::Wait { ms: 5, known: true },
    Setting::Wait { ms: 20, known: true },
    Setting::Markers,
];

impl Setting {
    /// Returns the name for people.
    pub fn name(self) -> String {
        match self {
            Setting::Arrival => "arrival".to_owned(),
            Setting::Wait { ms, known: false } => format!("max_wait {ms} ms"),
            Setting::Wait { ms, known: true } => format!("max_wait {ms} ms, in_order"),
            Setting::Markers => "markers".to_owned(),
        }
    }

    fn order(self) -> OrderSettings {
        let (policy, max_wait, fifo) = match self {
            Setting::Arrival => (OrderPolicy::Arrival, MaxWait::None, true),
            Setting::Wait { ms, known } => (OrderPolicy::EventTime, MaxWait::Fixed(ms * 1_000_000), known),
            Setting::Markers => (OrderPolicy::EventTime, MaxWait::None, true),
        };
        OrderSettings {
            policy,
            topics: vec![TopicOrder { max_wait, fifo, ..TopicOrder::default() }; TOPICS.len()],
            queue: 0,
            ahead: None,
            behind: None,
            late: LatePolicy::Drop,
        }
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// An event that was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The topic.
    pub topic: TopicId,
    /// The time at which the event was sent.
    pub sent: Timestamp,
    /// The time at which it arrived.
    pub arrived: Timestamp,
    /// The time at which it was released.
    pub at: Timestamp,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The released events, in order.
    pub releases: Vec<Release>,
    /// The number of late events, which were dropped.
    pub late: u64,
}

impl Outcome {
    /// Returns the number of events released after one that was sent later.
    pub fn misordered(&self) -> u64 {
        let mut latest = Timestamp::from_nanos(i64::MIN);
        let mut misordered = 0;
        for release in &self.releases {
            misordered += u64::from(release.sent < latest);
            latest = latest.max(release.sent);
        }
        misordered
    }

    /// Returns the nanoseconds from the sending of each released event until its release.
    pub fn latencies(&self) -> impl Iterator<Item = i64> {
        self.releases.iter().map(|release| release.at.as_nanos() - release.sent.as_nanos())
    }

    /// Returns the nanoseconds from the arrival of each released event until its release.
    pub fn delays(&self) -> impl Iterator<Item = i64> {
        self.releases.iter().map(|release| release.at.as_nanos() - release.arrived.as_nanos())
    }
}

/// Replays arrivals with the recorded clock: a wait ends when it is due, not when a thread wakes.
pub fn replay(arrivals: &[Arrival], setting: Setting) -> Outcome {
    let mut replay = Replay { order: Order::new(setting.order()), outcome: Outcome::default() };
    for arrival in arrivals {
        replay.pass(Some(arrival.at));
        match arrival.what {
            What::Event { stamp, sent } => {
                replay.order.push(arrival.topic, stamp, None, arrival.at, Sent { sent, arrived: arrival.at });
            }
            What::Marker(marker) if setting == Setting::Markers => {
                replay.order.mark(arrival.topic, &marker, arrival.at);
            }
            What::Marker(_) => {}
        }
        replay.release(arrival.at);
    }
    replay.pass(None);
    // Events that wait now are never released.
    replay.outcome.late = replay.order.statistics().iter().map(|topic| topic.dropped).sum();
    replay.outcome
}

/// An event that waits.
#[derive(Clone, Copy, Debug)]
struct Sent {
    sent: Timestamp,
    arrived: Timestamp,
}

struct Replay {
    order: Order<Sent>,
    outcome: Outcome,
}

impl Replay {
    /// Advances the clock to `until`, or until nothing is due.
    fn pass(&mut self, until: Option<Timestamp>) {
        let mut before = None;
        while let Some(due) = self.order.deadline()
            && until.is_none_or(|until| due <= until)
            && before.is_none_or(|before| due > before)
        {
            self.order.advance(due);
            self.release(due);
            before = Some(due);
        }
    }

    fn release(&mut self, at: Timestamp) {
        while let Some(released) = self.order.pop() {
            let Sent { sent, arrived } = released.item;
            self.outcome.releases.push(Release { topic: released.topic, sent, arrived, at });
        }
        self.order.notices().for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use rondel_align::Marker;

    use super::*;

    const MS: i64 = 1_000_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_nanos(ms * MS)
    }

    fn event(topic: u32, stamp: i64, arrival: i64) -> Arrival {
        Arrival {
            at: at(arrival),
            topic: TopicId(topic),
            what: What::Event { stamp: at(stamp), sent: at(stamp) },
        }
    }

    fn marker(topic: u32, complete: i64, after: Option<i64>, count: Option<u64>, arrival: i64) -> Arrival {
        let marker = Marker { complete: at(complete), after: after.map(at), count };
        Arrival { at: at(arrival), topic: TopicId(topic), what: What::Marker(marker) }
    }

    #[test]
    fn each_setting_orders_the_same_arrivals() {
        let arrivals = [
            marker(0, 99, None, None, 99),
            marker(1, 99, None, None, 99),
            event(0, 100, 101),
            event(0, 102, 103),
            marker(0, 103, Some(99), Some(2), 103),
            // Seven late: a wait of 5 ms is over, one of 20 ms is not.
            event(1, 101, 108),
            marker(1, 103, Some(99), Some(1), 109),
        ];
        let outcome = |setting| {
            let outcome = replay(&arrivals, setting);
            (outcome.misordered(), outcome.late, outcome.latencies().map(|ns| ns / MS).collect::<Vec<_>>())
        };
        let wait = |ms, known| outcome(Setting::Wait { ms, known });
        assert_eq!(outcome(Setting::Arrival), (1, 0, vec![1, 1, 7]));
        assert_eq!(wait(5, false), (0, 1, vec![5, 5]));
        assert_eq!(wait(5, true), (0, 1, vec![5, 5]));
        assert_eq!(wait(20, false), (0, 0, vec![20, 20, 20]));
        // The event of the second topic shows that no earlier one follows; the event behind it waits.
        assert_eq!(wait(20, true), (0, 0, vec![8, 7, 20]));
        assert_eq!(outcome(Setting::Markers), (0, 0, vec![8, 7, 7]));
        let delays: Vec<i64> = replay(&arrivals, Setting::Markers).delays().map(|ns| ns / MS).collect();
        assert_eq!(delays, [7, 0, 6]);
    }

    #[test]
    fn events_without_a_marker_are_never_released() {
        let arrivals = [event(0, 100, 101), marker(0, 100, None, None, 101)];
        assert_eq!(replay(&arrivals, Setting::Markers).releases.len(), 0);
    }

    #[test]
    fn the_order_is_that_of_sending() {
        // The clock of the second topic is 5 ms behind.
        let behind = What::Event { stamp: at(96), sent: at(101) };
        let second = Arrival { at: at(102), topic: TopicId(1), what: behind };
        let arrivals = [event(0, 100, 101), second, event(0, 103, 104)];
        let outcome = |ms| replay(&arrivals, Setting::Wait { ms, known: false });
        let short = outcome(1);
        assert_eq!((short.misordered(), short.late, short.releases.len()), (0, 1, 2));
        let long = outcome(20);
        assert_eq!((long.misordered(), long.late), (1, 0));
        assert_eq!(long.delays().map(|ns| ns / MS).collect::<Vec<_>>(), [14, 19, 19]);
    }
}
