//! The fail-over of the DDS study: two publishers on one topic with exclusive ownership; the stronger one is shut down,
//! killed or paused, and the time until a message of the weaker one arrives is measured.
//!
//! Both publishers are child processes; this process subscribes.

mod arrivals;
mod owner;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::signal::Signal;
use rondel_net::dds::TopicQos;
use serde::Serialize;

use self::arrivals::{Arrival, Arrivals};
pub use self::owner::{Liveliness, Owner};
use crate::child::{Child, Stdout};
use crate::failure::Result;
use crate::link::{Link, Network, PATIENCE};
use crate::runs::Runs;
use crate::table::{Table, groups, mean};
use crate::timescales::Random;
use crate::{program, say, takeover};

const TOPIC: &str = "failover/state";
/// The strengths, which are the payloads as well.
const WEAK: i32 = 1;
const STRONG: i32 = 2;
/// Number of messages of the stronger publisher, without one of the weaker, before it ends.
const STEADY: usize = 5;
/// The time limit for a take-over, besides the lease: more than the 10 s after which a participant counts as gone.
const LIMIT: Duration = Duration::from_secs(15);

/// The end of the stronger publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Its process ends in order (SIGTERM)
    Shutdown,
    /// Its process is killed (SIGKILL)
    Kill,
    /// Its process is paused (SIGSTOP)
    Pause,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Shutdown => "shutdown",
            End::Kill => "kill",
            End::Pause => "pause",
        }
    }

    fn signal(self) -> Signal {
        match self {
            End::Shutdown => Signal::SIGTERM,
            End::Kill => Signal::SIGKILL,
            End::Pause => Signal::SIGSTOP,
        }
    }
}

/// The plan of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ends.
    pub ends: Vec<End>,
    /// The leases of the publishers' participants. A shutdown is measured with the first.
    pub leases: Vec<Duration>,
    /// The lease of the publishers themselves; `None` for none.
    pub topic_lease: Option<Duration>,
    /// The kinds of liveliness; the first without a lease of the publishers, and of a shutdown.
    pub kinds: Vec<Liveliness>,
    /// The time between two messages of a publisher.
    pub period: Duration,
    /// The number of take-overs of each.
    pub repeat: usize,
}

/// The setting of a series of take-overs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Setting {
    end: End,
    /// The lease of the participants, in milliseconds.
    lease_ms: f64,
    /// The lease of the publishers, in milliseconds.
    topic_lease_ms: Option<f64>,
    liveliness: Liveliness,
}

/// A take-over.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    #[serde(flatten)]
    setting: Setting,
    /// The number of the take-over, from 0.
    repetition: usize,
    /// Milliseconds from the signal until a message of the weaker publisher arrives.
    take_over_ms: f64,
    /// Milliseconds from the last message of the stronger publisher to the first one of the weaker.
    gap_ms: f64,
    /// The number of messages of the weaker publisher that arrived although the stronger one was alive.
    premature: usize,
}

impl Plan {
    /// Returns the settings, in the order of measurement.
    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        let in_ms = |lease: Duration| lease.as_secs_f64() * 1e3;
        let topic_lease_ms = self.topic_lease.map(in_ms);
        let kinds = if topic_lease_ms.is_some() { self.kinds.len() } else { 1 };
        for &end in &self.ends {
            for &lease in &self.leases {
                for &liveliness in self.kinds.iter().take(kinds) {
                    let lease_ms = in_ms(lease);
                    // A publisher that leaves says so: nothing is waited for.
                    if end != End::Shutdown || settings.iter().all(|s: &Setting| s.end != End::Shutdown) {
                        settings.push(Setting { end, lease_ms, topic_lease_ms, liveliness });
                    }
                }
            }
        }
        settings
    }
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

/// The subscriber, and the settings of the publishers.
struct Bench<'a> {
    link: &'a Link,
    arrivals: Arc<Arrivals>,
    setting: Setting,
    period: Duration,
}

impl Bench<'_> {
    fn lease(&self) -> Duration {
        milliseconds(self.setting.lease_ms)
    }

    /// Starts a publisher.
    fn publisher(&self, strength: i32) -> Result<Child> {
        let mut arguments = ["peer", "owner"].map(str::to_owned).to_vec();
        arguments.extend([
            format!("--topic={TOPIC}"),
            format!("--strength={strength}"),
            format!("--period={}", self.period.as_micros()),
            format!("--dds-lease={}us", self.lease().as_micros()),
            format!("--liveliness={}", self.setting.liveliness.name()),
        ]);
        let topic_lease = self.setting.topic_lease_ms.map(milliseconds);
        arguments.extend(topic_lease.map(|lease| format!("--lease={}", lease.as_micros())));
        arguments.extend(self.link.join());
        let name = if strength == STRONG { "stronger publisher" } else { "weaker publisher" };
        let mut child = Child::start(name, &program::own()?, &arguments, Stdout::Nothing)?;
        child.wait_for("ready", PATIENCE)?;
        Ok(child)
    }

    /// Waits until only messages of the stronger publisher arrive.
    fn wait_steady(&self) -> Result<()> {
        self.arrivals.wait("the stronger publisher owns the topic", PATIENCE, |all| {
            let last = &all[all.len().saturating_sub(STEADY)..];
            (last.len() == STEADY && last.iter().all(|arrival| arrival.is_strong)).then_some(())
        })
    }

    /// Ends the stronger publisher once, and waits for the weaker one. Returns the times of the take-over, and a stronger
    /// publisher for the next one.
    fn take_over(&self, strong: Child, repetition: usize, phase: Duration) -> Result<(Run, Child)> {
        self.wait_steady()?;
        self.arrivals.trim();
        std::thread::sleep(self.period * 2 + phase);
        let signalled = Instant::now();
        strong.signal(self.setting.end.signal())?;
        let limit = LIMIT + self.lease();
        let (first, last, premature) =
            self.arrivals.wait("a message of the weaker publisher", limit, |all| found(all, signalled))?;
        let run = Run {
            setting: self.setting,
            repetition,
            take_over_ms: first.duration_since(signalled).as_secs_f64() * 1e3,
            gap_ms: first.duration_since(last).as_secs_f64() * 1e3,
            premature,
        };
        let next = match self.setting.end {
            End::Pause => {
                strong.signal(Signal::SIGCONT)?;
                strong
            }
            End::Shutdown => {
                strong.wait(PATIENCE)?.succeeded("stronger publisher")?;
                self.publisher(STRONG)?
            }
            End::Kill => {
                strong.wait(PATIENCE)?;
                self.publisher(STRONG)?
            }
        };
        Ok((run, next))
    }
}

/// Returns the arrival of the first message of the weaker publisher after the last one of the stronger, the arrival of
/// that one, and the number of messages of the weaker one before the signal.
fn found(all: &[Arrival], signalled: Instant) -> Option<(Instant, Instant, usize)> {
    let last = all.iter().rposition(|arrival| arrival.is_strong)?;
    let first = all[last + 1..].iter().find(|arrival| arrival.at > signalled)?;
    let premature = all.iter().filter(|arrival| !arrival.is_strong && arrival.at <= signalled).count();
    Some((first.at, all[last].at, premature))
}

/// Measures all take-overs.
///
/// # Errors
/// When a publisher fails, or the weaker one does not take over.
pub fn measure(plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let link = Link::open(Network::Dds)?;
    let mut all = Vec::new();
    for setting in plan.settings() {
        let arrivals = Arc::new(Arrivals::new(&STRONG.to_string()));
        // A subscription accepts every lease and liveliness.
        let address = owner::owned(TOPIC, TopicQos::default());
        let subscription = link.subscribe_to(&address, 0, Arc::clone(&arrivals))?;
        let bench = Bench { link: &link, arrivals, setting, period: plan.period };
        let weak = bench.publisher(WEAK)?;
        let mut strong = bench.publisher(STRONG)?;
        let mut random = Random::new(5);
        let before = all.len();
        for repetition in 0..plan.repeat.max(1) {
            // At any time between two messages.
            let period = u64::try_from(plan.period.as_micros()).unwrap_or(u64::MAX);
            let phase = Duration::from_micros(random.within(0, period));
            let (run, next) = bench.take_over(strong, repetition, phase)?;
            strong = next;
            runs.add(&run)?;
            all.push(run);
        }
        for child in [strong, weak] {
            child.end()?.succeeded("publisher")?;
        }
        drop(subscription);
        let times: Vec<f64> = all[before..].iter().map(|run: &Run| run.take_over_ms).collect();
        say(&format!(
            "{}, lease {} ms, {}: {:.1} ms",
            setting.end.name(),
            setting.lease_ms,
            setting.liveliness.name(),
            mean(&times)
        ));
    }
    link.close();
    Ok(all)
}

/// Returns the table.
pub fn table(runs: &[Run]) -> Table {
    let mut heads = vec![
        "end of the stronger publisher",
        "participant's lease, ms",
        "publisher's lease, ms",
        "liveliness",
    ];
    heads.extend(takeover::HEADS);
    heads.push("premature messages");
    let mut table = Table::new("Fail-over with exclusive ownership", &heads);
    for (setting, of) in groups(runs, |run| run.setting) {
        let times: Vec<f64> = of.iter().map(|run| run.take_over_ms).collect();
        let gaps: Vec<f64> = of.iter().map(|run| run.gap_ms).collect();
        let mut cells = vec![
            setting.end.name().to_owned(),
            format!("{}", setting.lease_ms),
            setting.topic_lease_ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string()),
            setting.liveliness.name().to_owned(),
        ];
        cells.extend(takeover::cells(&times, &gaps));
        cells.push(of.iter().map(|run| run.premature).sum::<usize>().to_string());
        table.row(cells);
    }
    let mut paper = vec!["shutdown (paper)", "-", "not stated", "automatic"];
    paper.extend(takeover::PAPER);
    paper.resize(heads.len(), "-");
    table.row(paper.into_iter().map(str::to_owned).collect());
    table.note(
        "Two processes publish on one topic of DDS over loopback, each a message per period. Times are from the signal to \
         the stronger one until a message of the weaker one arrives; the gap is from the last message of the stronger. \
         Messages of the weaker one are premature if they arrive before the signal: a lease has expired although its \
         publisher was alive. In CycloneDDS a publisher owns the topic until it leaves or its participant's lease \
         expires; a publisher's own lease changes only its liveliness.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            ends: vec![End::Shutdown, End::Kill, End::Pause],
            leases: [100, 500].map(Duration::from_millis).into(),
            topic_lease: Some(Duration::from_millis(50)),
            kinds: vec![Liveliness::Automatic, Liveliness::ManualByTopic],
            period: Duration::from_millis(10),
            repeat: 1,
        }
    }

    #[test]
    fn a_shutdown_is_measured_with_one_lease() {
        let settings = plan().settings();
        assert_eq!(settings.len(), 1 + 2 * 4);
        assert_eq!((settings[0].end, settings[0].lease_ms), (End::Shutdown, 100.0));
        let without = Plan { topic_lease: None, ..plan() };
        assert_eq!(without.settings().len(), 1 + 2 * 2);
    }

    #[test]
    fn the_weaker_publisher_is_found_after_the_stronger() {
        let begin = Instant::now();
        let at = |ms, is_strong| Arrival { at: begin + Duration::from_millis(ms), is_strong };
        let signalled = begin + Duration::from_millis(25);
        // One message of the stronger publisher was under way.
        let mut all = vec![at(5, true), at(10, false), at(20, true), at(26, true)];
        assert_eq!(found(&all, signalled), None);
        all.push(at(40, false));
        assert_eq!(found(&all, signalled), Some((all[4].at, all[3].at, 1)));
    }

    #[test]
    fn the_table_ends_with_the_paper() {
        let setting = plan().settings()[0];
        let run = |take_over_ms| Run { setting, repetition: 0, take_over_ms, gap_ms: 20.0, premature: 0 };
        let text = table(&[run(10.0), run(14.0)]).markdown();
        let own = "| shutdown | 100 | 50 | automatic | 2 | 12.0 | 2.0 | 12.0 | 14.0 | 14.0 | 20.0 | 0 |";
        assert!(text.contains(own) && text.contains("| 16.8 | 10.4 |"), "{text}");
    }
}
