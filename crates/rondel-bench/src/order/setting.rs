//! The settings of alignment that are compared, and what each makes of the same arrivals.

use rondel_align::{MaxWait, Order, OrderPolicy, OrderSettings, Tardy, TopicOrder};
use rondel_event::Timestamp;
use serde::{Serialize, Serializer};

use super::TOPICS;
use super::record::{Arrival, What};

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// As they come.
    Arrival,
    /// By their times, waiting at most so many milliseconds.
    Wait {
        /// The `max_wait`.
        ms: u64,
        /// Whether topics are `in_order`.
        known: bool,
    },
    /// By their times, as markers say.
    Markers,
}

/// All that are compared.
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
    /// For people.
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
            tardy: Tardy::Drop,
        }
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// What a setting made of the arrivals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Released after one with a later time.
    pub misordered: u64,
    /// Came too late for its place, and was left out.
    pub tardy: u64,
    /// From its time until it was released, in nanoseconds: for each that was.
    pub latencies: Vec<i64>,
}

/// Lets the arrivals through, by the clock that they were written down with: what is waited for ends when it is due,
/// and not when a thread wakes.
pub fn replay(arrivals: &[Arrival], setting: Setting) -> Outcome {
    let mut replay =
        Replay { order: Order::new(setting.order()), latest: i64::MIN, outcome: Outcome::default() };
    for arrival in arrivals {
        replay.pass(Some(arrival.at));
        match arrival.what {
            What::Event(stamp) => replay.order.push(arrival.topic, stamp, None, arrival.at, stamp),
            What::Marker(marker) if setting == Setting::Markers => {
                replay.order.mark(arrival.topic, &marker, arrival.at);
            }
            What::Marker(_) => {}
        }
        replay.release(arrival.at);
    }
    replay.pass(None);
    // Whatever waits now was never let go.
    replay.outcome.tardy = replay.order.statistics().iter().map(|topic| topic.dropped).sum();
    replay.outcome
}

struct Replay {
    order: Order<Timestamp>,
    /// The latest time that was released.
    latest: i64,
    outcome: Outcome,
}

impl Replay {
    /// Lets time go on, up to this or without end.
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

    fn release(&mut self, now: Timestamp) {
        while let Some(released) = self.order.pop() {
            let stamp = released.item.as_nanos();
            self.outcome.misordered += u64::from(stamp < self.latest);
            self.latest = self.latest.max(stamp);
            self.outcome.latencies.push(now.as_nanos() - stamp);
        }
        self.order.notices().for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use rondel_align::Marker;
    use rondel_event::TopicId;

    use super::*;

    const MS: i64 = 1_000_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_nanos(ms * MS)
    }

    fn event(topic: u32, stamp: i64, arrival: i64) -> Arrival {
        Arrival { at: at(arrival), topic: TopicId(topic), what: What::Event(at(stamp)) }
    }

    fn marker(topic: u32, complete: i64, after: Option<i64>, count: Option<u64>, arrival: i64) -> Arrival {
        let marker = Marker { complete: at(complete), after: after.map(at), count };
        Arrival { at: at(arrival), topic: TopicId(topic), what: What::Marker(marker) }
    }

    #[test]
    fn each_setting_sees_the_same_and_makes_its_own_of_it() {
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
            let Outcome { misordered, tardy, latencies } = replay(&arrivals, setting);
            (misordered, tardy, latencies.iter().map(|ns| ns / MS).collect::<Vec<_>>())
        };
        let wait = |ms, known| outcome(Setting::Wait { ms, known });
        assert_eq!(outcome(Setting::Arrival), (1, 0, vec![1, 1, 7]));
        assert_eq!(wait(5, false), (0, 1, vec![5, 5]));
        assert_eq!(wait(5, true), (0, 1, vec![5, 5]));
        assert_eq!(wait(20, false), (0, 0, vec![20, 20, 20]));
        // The event of the second topic says that nothing of it comes before; what is behind it waits.
        assert_eq!(wait(20, true), (0, 0, vec![8, 7, 20]));
        assert_eq!(outcome(Setting::Markers), (0, 0, vec![8, 7, 7]));
    }

    #[test]
    fn what_no_marker_speaks_of_is_never_released() {
        let arrivals = [event(0, 100, 101), marker(0, 100, None, None, 101)];
        assert_eq!(replay(&arrivals, Setting::Markers).latencies.len(), 0);
    }
}
