//! Alignment with errors of clocks, simulated: publishers whose clocks differ from that of the monitor.
//!
//! Times are injected into [`rondel_align::Order`], so that no network and no clock of this machine takes part, and the
//! results depend on the plan alone. The clock of the monitor is right. The error of each other clock goes in a straight
//! line from one random value to another, both within the bound.

use std::time::Duration;

use rondel_align::Marker;
use rondel_event::{Timestamp, TopicId};
use serde::Serialize;

use crate::failure::Result;
use crate::order::record::{Arrival, What};
use crate::order::setting::{Setting, replay};
use crate::report::Mark;
use crate::runs::Runs;
use crate::say;
use crate::table::{Table, quantile};
use crate::timescales::Random;

/// The settings that are compared.
const SETTINGS: [Setting; 6] = [
    Setting::Arrival,
    Setting::Wait { ms: 1, known: false },
    Setting::Wait { ms: 5, known: false },
    Setting::Wait { ms: 10, known: false },
    Setting::Wait { ms: 20, known: false },
    Setting::Markers,
];
/// The nanoseconds for which a message is on its way: the least and the most.
const DELAYS: [u64; 2] = [100_000, 1_000_000];
/// The time at which publishing begins.
const START: i64 = 1_000_000_000_000;
/// The number of steps from no error to the bound.
const STEPS: u64 = 1000;

/// The publishers of the two topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Publishers {
    /// One node publishes on both topics, by one clock.
    NodeToNode,
    /// A node for each topic, with a clock of its own.
    MultiNode,
}

impl Publishers {
    /// Returns the name for people.
    fn name(self) -> &'static str {
        match self {
            Publishers::NodeToNode => "node-to-node",
            Publishers::MultiNode => "multi-node",
        }
    }

    /// Returns the clock of a topic.
    fn clock(self, topic: usize) -> usize {
        match self {
            Publishers::NodeToNode => 0,
            Publishers::MultiNode => topic,
        }
    }

    /// Whether the publisher of a topic states the progress of another one, too.
    fn marks(self, topic: usize, other: usize) -> bool {
        self.clock(topic) == self.clock(other)
    }
}

/// The plan of the simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The bounds of the errors.
    pub errors: Vec<Duration>,
    /// The number of pairs of clocks.
    pub clocks: u64,
    /// The number of messages for each pair of clocks.
    pub events: u64,
    /// The mean time from one message to the next.
    pub gap: Duration,
    /// The seed of the generator.
    pub seed: u64,
}

/// The result of one setting with one bound of errors, over all clocks.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The publishers.
    pub publishers: Publishers,
    /// The bound of the errors in milliseconds.
    pub error_ms: f64,
    /// The setting.
    pub setting: Setting,
    /// The number of messages.
    pub events: u64,
    /// The number of messages released after one that was sent later.
    pub misordered: u64,
    /// The number of late messages, which were dropped.
    pub late: u64,
    /// Milliseconds from the arrival of a message until its release: median, 99th percentile.
    pub delay_ms: [f64; 2],
}

/// The error of a clock at the begin and at the end, as shares of the bound.
#[derive(Clone, Copy, Debug)]
struct Clock {
    begin: f64,
    end: f64,
}

impl Clock {
    fn draw(random: &mut Random) -> Clock {
        let mut share = || random.within(0, 2 * STEPS) as f64 / STEPS as f64 - 1.0;
        Clock { begin: share(), end: share() }
    }

    /// Returns the error in nanoseconds once this share of the time has passed.
    fn error(self, bound: Duration, passed: f64) -> i64 {
        (bound.as_nanos() as f64 * (self.begin + (self.end - self.begin) * passed)) as i64
    }
}

/// Returns the messages and the markers of a pair of clocks in the order of their arrival. The times at which messages are
/// sent and arrive do not depend on the errors.
fn traffic(plan: &Plan, publishers: Publishers, bound: Duration, pair: u64) -> Vec<Arrival> {
    let mut random = Random::new(plan.seed.wrapping_add(pair));
    let clocks = [Clock::draw(&mut random), Clock::draw(&mut random)];
    let gap = (plan.gap.as_nanos() as u64).max(1);
    let mut arrivals = Vec::new();
    let (mut sent, mut stamps, mut latest) = (START, [i64::MIN; 2], [i64::MIN; 2]);
    // Each topic delivers in order.
    let mut arrive = |arrivals: &mut Vec<Arrival>, random: &mut Random, topic: usize, sent: i64, what| {
        let [least, most] = DELAYS;
        latest[topic] = latest[topic].max(sent + random.within(least, most) as i64);
        arrivals.push(Arrival { at: at(latest[topic]), topic: TopicId(topic as u32), what });
    };
    for number in 0..plan.events {
        sent += random.within(1, 2 * gap - 1) as i64;
        let topic = (number % 2) as usize;
        let clock = publishers.clock(topic);
        let error = clocks[clock].error(bound, number as f64 / plan.events as f64);
        // No two messages of a clock have the same stamp.
        stamps[clock] = (sent + error).max(stamps[clock].saturating_add(1));
        let stamp = at(stamps[clock]);
        arrive(&mut arrivals, &mut random, topic, sent, What::Event { stamp, sent: at(sent) });
        for other in [topic, 1 - topic] {
            if publishers.marks(topic, other) {
                arrive(&mut arrivals, &mut random, other, sent, complete(stamp));
            }
        }
    }
    // Nothing follows, whatever the clocks show.
    let end = at(sent + 2 * bound.as_nanos() as i64 + 1);
    for topic in [0, 1] {
        arrive(&mut arrivals, &mut random, topic, sent, complete(end));
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

fn complete(time: Timestamp) -> What {
    What::Marker(Marker { complete: time, after: None, count: None })
}

/// Simulates every setting with every bound of errors.
///
/// # Errors
/// When a run cannot be written.
pub fn measure(plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let mut all = Vec::new();
    for publishers in [Publishers::NodeToNode, Publishers::MultiNode] {
        for &bound in &plan.errors {
            let traffic: Vec<Vec<Arrival>> =
                (0..plan.clocks).map(|pair| traffic(plan, publishers, bound, pair)).collect();
            for setting in SETTINGS {
                let run = run(plan, publishers, bound, setting, &traffic);
                runs.add(&run)?;
                all.push(run);
            }
            let error = bound.as_secs_f64() * 1e3;
            say(&format!("{}, clocks off by up to {error} ms: simulated", publishers.name()));
        }
    }
    Ok(all)
}

fn run(
    plan: &Plan,
    publishers: Publishers,
    bound: Duration,
    setting: Setting,
    traffic: &[Vec<Arrival>],
) -> Run {
    let (mut misordered, mut late, mut delays) = (0, 0, Vec::new());
    for arrivals in traffic {
        let outcome = replay(arrivals, setting);
        misordered += outcome.misordered();
        late += outcome.late;
        delays.extend(outcome.delays().map(|ns| ns as f64 / 1e6));
    }
    Run {
        publishers,
        error_ms: bound.as_secs_f64() * 1e3,
        setting,
        events: plan.events * plan.clocks,
        misordered,
        late,
        delay_ms: [0.5, 0.99].map(|part| quantile(&delays, part)),
    }
}

/// Returns the marks.
pub fn marks(runs: &[Run]) -> Vec<Mark> {
    let sum = |wanted: &dyn Fn(&Run) -> bool, value: fn(&Run) -> u64| {
        runs.iter().filter(|run| wanted(run)).map(value).sum::<u64>() as f64
    };
    let one_clock = |run: &Run| run.publishers == Publishers::NodeToNode && run.setting != Setting::Arrival;
    vec![
        Mark::at_most("one clock: misordered by time", sum(&one_clock, |run| run.misordered), 0.0, ""),
        Mark::at_most(
            "late with markers",
            sum(&|run| run.setting == Setting::Markers, |run| run.late),
            0.0,
            "",
        ),
    ]
}

/// Returns the table.
pub fn table(runs: &[Run]) -> Table {
    let heads =
        ["publishers", "error ms", "setting", "messages", "misordered %", "late %", "delay p50 ms", "p99"];
    let mut table = Table::new("Errors of clocks, simulated", &heads);
    for run in runs {
        let share = |count: u64| format!("{:.2}", count as f64 / run.events.max(1) as f64 * 100.0);
        let ms = |ms: f64| if ms.is_nan() { "-".to_owned() } else { format!("{ms:.2}") };
        table.row(vec![
            run.publishers.name().to_owned(),
            run.error_ms.to_string(),
            run.setting.name(),
            run.events.to_string(),
            share(run.misordered),
            share(run.late),
            ms(run.delay_ms[0]),
            ms(run.delay_ms[1]),
        ]);
    }
    table.note(
        "Misordered: released after a message that was sent later. Late messages are dropped. The delay is from the arrival \
         of a message until its release. A wait of 5 ms suffices for periods from 1 ms on (paper), with clocks that agree.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(errors: &[u64]) -> Plan {
        let errors = errors.iter().map(|ms| Duration::from_millis(*ms)).collect();
        Plan { errors, clocks: 4, events: 400, gap: Duration::from_millis(1), seed: 3 }
    }

    fn simulated(errors: &[u64]) -> Vec<Run> {
        measure(&plan(errors), &mut Runs::create("clocks", None).unwrap()).unwrap()
    }

    fn of(runs: &[Run], publishers: Publishers, setting: Setting) -> &Run {
        runs.iter().find(|run| run.publishers == publishers && run.setting == setting).unwrap()
    }

    #[test]
    fn clocks_that_agree_disturb_nothing() {
        let runs = simulated(&[0]);
        assert_eq!(runs.len(), 2 * SETTINGS.len());
        assert!(marks(&runs).iter().all(Mark::met));
        for publishers in [Publishers::NodeToNode, Publishers::MultiNode] {
            assert!(of(&runs, publishers, Setting::Arrival).misordered > 0);
            for setting in [Setting::Markers, Setting::Wait { ms: 5, known: false }] {
                let run = of(&runs, publishers, setting);
                assert_eq!((run.events, run.misordered, run.late), (1600, 0, 0), "{run:?}");
            }
            // A message waits for 5 ms after its stamp, of which it is on its way for 0.1 to 1 ms.
            let [median, _] = of(&runs, publishers, Setting::Wait { ms: 5, known: false }).delay_ms;
            assert!((4.0..4.9).contains(&median), "{median}");
        }
    }

    #[test]
    fn errors_misorder_two_clocks_and_make_messages_late() {
        let runs = simulated(&[10]);
        let wait = |ms| Setting::Wait { ms, known: false };
        let (one, two) = (Publishers::NodeToNode, Publishers::MultiNode);
        assert!(of(&runs, two, Setting::Markers).misordered > 0);
        assert!(of(&runs, two, wait(1)).late > of(&runs, two, wait(20)).late);
        // The differences of a clock are right, whatever it shows.
        assert!(runs.iter().filter(|run| run.publishers == one).skip(1).all(|run| run.misordered == 0));
        assert_eq!(of(&runs, one, Setting::Markers).late + of(&runs, two, Setting::Markers).late, 0);
        // A message waits until the slower clock has reached its stamp.
        let delay = |publishers| of(&runs, publishers, Setting::Markers).delay_ms[0];
        assert!(delay(two) > 2.0 * delay(one), "{runs:?}");
    }

    #[test]
    fn a_simulation_depends_on_its_plan_alone() {
        let traffic = |plan: &Plan, ms| traffic(plan, Publishers::MultiNode, Duration::from_millis(ms), 1);
        let plan = plan(&[]);
        assert_eq!(traffic(&plan, 5), traffic(&plan, 5));
        assert_ne!(traffic(&plan, 5), traffic(&Plan { seed: 4, ..plan.clone() }, 5));
        // Errors change stamps, not arrivals.
        let times = |ms| traffic(&plan, ms).iter().map(|arrival| arrival.at).collect::<Vec<_>>();
        assert_eq!(times(0), times(10));
        assert!(measure(&plan, &mut Runs::create("clocks", None).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn the_table_has_shares() {
        let run = Run {
            publishers: Publishers::MultiNode,
            error_ms: 0.1,
            setting: Setting::Markers,
            events: 400,
            misordered: 1,
            late: 2,
            delay_ms: [1.25, f64::NAN],
        };
        let text = table(&[run]).markdown();
        assert!(text.contains("| multi-node | 0.1 | markers | 400 | 0.25 | 0.50 | 1.25 | - |"), "{text}");
    }
}
