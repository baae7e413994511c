//! The take-over of a standby monitor: of two members of a group, the active one is shut down, killed, paused, or hands
//! over, and the time until a verdict of the other one arrives is measured.
//!
//! The members are processes `rondel run`; this process publishes numbered messages, each of which violates the property,
//! and subscribes to the verdicts.

mod account;
mod arrivals;
mod feeder;
mod member;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::signal::Signal;
use rondel_net::address::Address;
use rondel_net::dds::Reliability;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::account::{Account, Counts};
use self::arrivals::{Arrivals, Arrived, GROUP, VERDICTS, taken_over};
use self::feeder::{Feeder, Stamps};
use self::member::Pair;
pub use self::table::{marks, table};
use crate::failure::{Failure, Result, io_error, same};
use crate::link::{Link, Network, PATIENCE, SETTLE, parse, wait_subscribed};
use crate::runs::Runs;
use crate::say;
use crate::table::mean;
use crate::timescales::Random;
use crate::traces::Folder;

const MESSAGES_TOPIC: &str = "standby/state";
const VERDICTS_TOPIC: &str = "standby/verdict";
/// Number of verdicts of the active member before it ends.
const STEADY: usize = 10;
/// Time after its start in which a member has claimed nothing yet, as it may not know all others: 500 ms, and the time to
/// discover its subscriber and the publisher.
const REST: Duration = Duration::from_millis(650);
/// Time in which a standby takes the state of the active member.
const TAKING: Duration = Duration::from_secs(5);
/// Time between two attempts to hand over.
const AGAIN: Duration = Duration::from_millis(100);
/// Number of take-overs in a row that may be disturbed.
const DISTURBED: usize = 20;

/// The end of the active member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Its process ends in order (SIGTERM)
    Shutdown,
    /// Its process is killed (SIGKILL)
    Kill,
    /// Its process is paused (SIGSTOP), until the other one has taken over (SIGCONT)
    Pause,
    /// It hands over (`rondel standby promote`)
    Promote,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Shutdown => "shutdown",
            End::Kill => "kill",
            End::Pause => "pause",
            End::Promote => "promote",
        }
    }

    /// Whether the standby has to wait for the lease.
    fn waits_for_lease(self) -> bool {
        matches!(self, End::Kill | End::Pause)
    }

    /// Time until the member that was ended can take over, once it follows.
    fn rest(self) -> Duration {
        if matches!(self, End::Shutdown | End::Kill) { REST } else { SETTLE }
    }
}

/// The plan of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The networks.
    pub networks: Vec<Network>,
    /// The ends.
    pub ends: Vec<End>,
    /// The leases of the group. Ends that wait for none are measured with the first.
    pub leases: Vec<Duration>,
    /// The time between two messages.
    pub period: Duration,
    /// The number of take-overs of each.
    pub repeat: usize,
}

/// The setting of a series of take-overs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Setting {
    network: Network,
    end: End,
    /// The lease of the group, in milliseconds.
    lease_ms: u64,
}

/// A take-over.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    #[serde(flatten)]
    setting: Setting,
    /// The number of the take-over, from 0.
    repetition: usize,
    /// Milliseconds from the signal, or from the request to hand over, until a verdict of the other member arrives.
    take_over_ms: f64,
    /// Milliseconds from the last verdict of the active member to the first one of the other member.
    gap_ms: f64,
    /// Counts of verdicts from the end of the take-over before to that of this one.
    #[serde(flatten)]
    counts: Counts,
    /// Number of further take-overs, for which no member was ended.
    unasked: u64,
}

impl Plan {
    /// Returns the ends that are measured with a lease, by its place.
    fn ends_with(&self, place: usize) -> impl Iterator<Item = End> + '_ {
        self.ends.iter().copied().filter(move |end| place == 0 || end.waits_for_lease())
    }
}

/// Returns the deployment of the members.
fn deployment(link: &Link, network: Network, lease_ms: u64) -> String {
    let [from, to] = [MESSAGES_TOPIC, VERDICTS_TOPIC].map(|topic| network.address(topic));
    format!(
        "formula: v < 0\n{}topics: {{ trace: {{ source: \"{from}\", time: t }} }}\nalignment: {{ policy: arrival }}\n\
         verdicts: {{ emit: every, to: \"{to}\" }}\ngroup: {{ name: {}, lease: {lease_ms} ms }}\n",
        link.section(),
        member::GROUP
    )
}

/// A group, and this process beside it. The members are ended first.
struct Bench<'a> {
    pair: Pair,
    feeder: Feeder,
    arrivals: Arc<Arrivals>,
    account: Account,
    interrupted: &'a AtomicBool,
    /// The epoch of the active member, or an earlier one.
    epoch: u64,
}

impl Bench<'_> {
    /// Waits until verdicts of this epoch arrive.
    fn wait_steady(&self, epoch: u64) -> Result<()> {
        self.arrivals.wait("verdicts of the active member", PATIENCE, self.interrupted, |arrived| {
            let last = arrived.verdicts.iter().rev().take_while(|verdict| verdict.epoch >= epoch);
            (last.count() >= STEADY).then_some(())
        })
    }

    /// Waits until the verdicts of all messages so far have arrived, and returns the number of these messages.
    fn wait_complete(&mut self) -> Result<u64> {
        let sent = self.feeder.sent()?;
        let last = Some(sent.saturating_sub(1));
        self.arrivals.wait("the verdict of the last message", PATIENCE, self.interrupted, |arrived| {
            // If it is missing, that of a later one arrives.
            arrived.verdicts.iter().any(|verdict| verdict.number >= last).then_some(())
        })?;
        Ok(sent)
    }

    /// Ends the active member. Returns the time of the signal or of the request to hand over; `None` if there was no handover,
    /// as a member took over by itself meanwhile.
    fn end(&self, end: End, active: usize) -> Result<Option<Instant>> {
        let signal = match end {
            End::Shutdown => Signal::SIGTERM,
            End::Kill => Signal::SIGKILL,
            End::Pause => Signal::SIGSTOP,
            End::Promote => {
                self.arrivals.forget_request();
                let begun = Instant::now();
                while !self.pair.promote()? {
                    // A standby that has just begun first takes the state of the active one: nothing was requested then.
                    if self.arrivals.has_request() || begun.elapsed() >= TAKING {
                        return Ok(None);
                    }
                    std::thread::sleep(AGAIN);
                }
                // The command first joined the network, and has left it by now.
                let wanted = "a request to hand over";
                let request = |arrived: &Arrived| arrived.request;
                return self.arrivals.wait(wanted, PATIENCE, self.interrupted, request).map(Some);
            }
        };
        let began = Instant::now();
        self.pair.signal(active, signal)?;
        Ok(Some(began))
    }

    /// Makes the member that was ended a standby.
    fn restore(&mut self, end: End, ended: usize) -> Result<()> {
        match end {
            End::Shutdown => self.pair.wait_ended(ended)?,
            End::Kill => self.pair.wait_killed(ended)?,
            End::Pause => self.pair.signal(ended, Signal::SIGCONT)?,
            End::Promote => {}
        }
        self.pair.complete()
    }

    /// Ends the active member once, and waits until the other one is active and has a standby. Returns `None` if the other
    /// one has taken over before: the next one has its verdicts and the number of such take-overs.
    fn take_over(&mut self, setting: Setting, repetition: usize, phase: Duration) -> Result<Option<Run>> {
        let end = setting.end;
        let (_, before) = self.pair.wait_active(self.epoch, self.interrupted)?;
        self.wait_steady(before)?;
        // A standby that has just begun has to know messages of a lease, as one in use.
        std::thread::sleep(Duration::from_millis(setting.lease_ms) + phase);
        let (active, epoch) = self.pair.wait_active(before, self.interrupted)?;
        let Some(from) = self.end(end, active)? else { return Ok(None) };
        let limit = PATIENCE + Duration::from_millis(setting.lease_ms);
        let wanted = "a verdict of the other member";
        let found = |arrived: &Arrived| taken_over(arrived, epoch);
        let (first, last) = self.arrivals.wait(wanted, limit, self.interrupted, found)?;
        self.restore(end, active)?;
        let (_, next) = self.pair.wait_active(epoch + 1, self.interrupted)?;
        std::thread::sleep(end.rest());
        if first < from {
            return Ok(None);
        }
        let sent = self.wait_complete()?;
        let arrived = self.arrivals.take();
        same(|| "messages that are no verdict of a group".to_owned(), 0, arrived.unreadable)?;
        arrived.verdicts.iter().for_each(|verdict| self.account.add(verdict));
        let unasked = next - self.epoch - 1;
        self.epoch = next;
        let ms_from = |time: Instant| first.duration_since(time).as_secs_f64() * 1e3;
        let (take_over_ms, gap_ms) = (ms_from(from), ms_from(last));
        let counts = self.account.close(sent);
        Ok(Some(Run { setting, repetition, take_over_ms, gap_ms, counts, unasked }))
    }
}

/// Measures all take-overs into `all`. Those before a failure stay in it.
///
/// # Errors
/// When a member fails, or does not take over.
pub fn measure(rondel: &Path, plan: &Plan, runs: &mut Runs, all: &mut Vec<Run>) -> Result<()> {
    // A signal ends the measurement in order, so that no member stays behind.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(io_error("signals"))?;
    }
    let folder = Folder::new("standby")?;
    for &network in &plan.networks {
        for (place, lease) in plan.leases.iter().enumerate() {
            let ends: Vec<End> = plan.ends_with(place).collect();
            if !ends.is_empty() {
                let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
                let of =
                    Group { rondel, plan, folder: &folder, network, lease_ms, interrupted: &interrupted };
                of.measure(&ends, runs, all)?;
            }
        }
    }
    Ok(())
}

/// A group on a network, with a lease.
struct Group<'a> {
    rondel: &'a Path,
    plan: &'a Plan,
    folder: &'a Folder,
    network: Network,
    lease_ms: u64,
    interrupted: &'a AtomicBool,
}

impl Group<'_> {
    /// Measures the take-overs of a group.
    fn measure(&self, ends: &[End], runs: &mut Runs, all: &mut Vec<Run>) -> Result<()> {
        let link = Link::open_for_all(self.network)?;
        let stamps = Stamps::new(self.plan.period);
        let arrivals = Arc::new(Arrivals::new(stamps));
        let verdicts = link.subscribe(VERDICTS_TOPIC, VERDICTS.0, Arc::clone(&arrivals))?;
        let signs = format!("rondel/group/{}", member::GROUP);
        let mut signs = parse(&self.network.address(&signs))?;
        if let Address::Dds(_, _, qos) = &mut signs {
            // As the members publish them.
            qos.reliability = Some(Reliability::BestEffort);
        }
        let signs = link.subscribe_to(&signs, GROUP.0, Arc::clone(&arrivals))?;
        let text = deployment(&link, self.network, self.lease_ms);
        let path = self.folder.write("rondel.yaml", text.as_bytes())?;
        let mut bench = self.begin(&link, &path, arrivals, stamps)?;
        let mut random = Random::new(5);
        for &end in ends {
            let setting = Setting { network: self.network, end, lease_ms: self.lease_ms };
            let before = all.len();
            for repetition in 0..self.plan.repeat.max(1) {
                // At any time between two messages.
                let mut phase = || Duration::from_micros(random.within(0, stamps.period_us));
                let mut tries = (0..DISTURBED).map(|_| bench.take_over(setting, repetition, phase()));
                let Some(run) = tries.find_map(Result::transpose).transpose()? else {
                    return Err(Failure::Usage(format!(
                        "a lease of {} ms is too short here: members take over by themselves",
                        self.lease_ms
                    )));
                };
                runs.add(&run)?;
                all.push(run);
            }
            let times: Vec<f64> = all[before..].iter().map(|run: &Run| run.take_over_ms).collect();
            let (network, end, lease) = (self.network.name(), end.name(), self.lease_ms);
            say(&format!("{network}, {end}, lease {lease} ms: {:.1} ms", mean(&times)));
        }
        let Bench { pair, feeder, .. } = bench;
        feeder.end()?;
        pair.end()?;
        drop((verdicts, signs));
        link.close();
        Ok(())
    }

    /// Starts the members and the publisher, and waits for verdicts.
    fn begin(
        &self,
        link: &Link,
        deployment: &Path,
        arrivals: Arc<Arrivals>,
        stamps: Stamps,
    ) -> Result<Bench<'_>> {
        let publisher = link.publisher(MESSAGES_TOPIC, false)?;
        let pair = Pair::start(self.rondel, deployment, self.interrupted)?;
        wait_subscribed(&*publisher)?;
        let feeder = Feeder::start(publisher, stamps)?;
        let account = Account::new(0);
        let interrupted = self.interrupted;
        let mut bench = Bench { pair, feeder, arrivals, account, interrupted, epoch: 1 };
        bench.epoch = bench.pair.wait_active(1, interrupted)?.1;
        bench.wait_steady(bench.epoch)?;
        std::thread::sleep(REST);
        // From here on, verdicts are counted.
        bench.account = Account::new(bench.wait_complete()?);
        Ok(bench)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_wait_for_no_lease_are_measured_once() {
        let plan = Plan {
            networks: vec![Network::Zenoh],
            ends: vec![End::Shutdown, End::Kill, End::Pause, End::Promote],
            leases: [50, 200].map(Duration::from_millis).into(),
            period: Duration::from_millis(10),
            repeat: 1,
        };
        assert_eq!(plan.ends_with(0).count(), 4);
        assert_eq!(plan.ends_with(1).collect::<Vec<_>>(), [End::Kill, End::Pause]);
    }
}
