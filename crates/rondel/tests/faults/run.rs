//! The course of a case.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::account::{Course, read};
use crate::case::{Case, FAULTS, Fault, LOADS, NETWORKS, PARTS, SECONDS, name};
use crate::feed::Feed;
use crate::network::Rig;
use crate::participant::Participant;

/// Interval at which the monitor's progress is read.
const TICK: Duration = Duration::from_millis(10);
/// Verdicts that are further apart do not come steadily.
const GAP: Duration = Duration::from_secs(1);
/// Time for which verdicts must come steadily before the fault, and after it.
const STEADY: Duration = Duration::from_millis(1500);
/// The time for which consumers are connected before the fault.
const JOINING: Duration = Duration::from_millis(500);
/// Time before the fault with whose throughput that of the fault is compared.
const BEFORE: Duration = Duration::from_secs(1);
/// Time limit until verdicts come steadily.
const PATIENCE: Duration = Duration::from_secs(30);
/// Silence after which everything has come, and the time limit until then.
const QUIET: Duration = Duration::from_millis(2500);
const SETTLE: Duration = Duration::from_secs(60);
/// Time from the begin of a fault until SIGTERM, in cases in which the monitor ends during the fault.
const DURING: Duration = Duration::from_secs(4);
/// Time limit for the end of a monitor after SIGTERM. It should take less.
const END: Duration = Duration::from_secs(15);

/// Runs a case; nothing if this machine cannot.
pub fn run(case: Case) -> Option<Value> {
    match catch_unwind(AssertUnwindSafe(|| attempt(&case))) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Some(json!({
                "network": name(&NETWORKS, &case.network),
                "participant": name(&PARTS, &case.part),
                "fault": name(&FAULTS, &case.fault),
                "seconds": name(&SECONDS, &case.seconds),
                "load": name(&LOADS, &case.load),
                "rate": case.rate(),
                "missed": ["run"],
                "error": text,
            }))
        }
    }
}

fn attempt(case: &Case) -> Option<Value> {
    let mut rig = Rig::new(case)?;
    let feed = Feed::start(*case);
    rig.start(&feed);
    let mut growth = Growth::default();
    let began = Instant::now();
    let consumed = || rig.consumer.printed() > 0 && rig.healthy.printed() > 0;
    watch(&mut growth, &rig.monitor, PATIENCE, |growth| growth.steady(began).is_some() && consumed());
    assert!(consumed(), "{}: nothing comes", case.title());
    watch(&mut growth, &rig.monitor, JOINING, |_| false);

    let (before, from) = (growth.bytes_of_last(BEFORE), now());
    let printed = rig.monitor.printed();
    match case.fault {
        Fault::Pause => rig.part(case.part).signal("STOP"),
        Fault::Kill => rig.part(case.part).kill(),
        Fault::Partition => rig.cut(case.part, true),
    }
    let time = case.seconds.map_or(DURING, Duration::from_secs);
    watch(&mut growth, &rig.monitor, time, |_| false);
    let during = (rig.monitor.printed() - printed) as f64;
    let goes_on = case.seconds.and_then(|_| heal(&mut rig, case, &feed, &mut growth));
    let stopped = now();
    feed.stop();
    if case.seconds.is_some() {
        settle(&rig);
    }

    let terminated = Instant::now();
    rig.monitor.signal("TERM");
    let status = rig.monitor.wait(END);
    let ended = status.map(|_| terminated.elapsed().as_secs_f64());
    let memory_mib = rig.monitor.memory_mib();
    if case.seconds.is_none() {
        // One that is stopped would not read the rest.
        rig.publisher.kill();
    }
    let (written, begins) = feed.close();
    rig.publisher.wait(END);
    for consumer in [&mut rig.consumer, &mut rig.healthy] {
        if case.seconds.is_some() {
            consumer.signal("TERM");
            consumer.wait(END);
        }
        consumer.kill();
    }
    let errors = rig.monitor.text("err");
    let summary = errors.lines().rev().find(|line| line.starts_with('{'));
    let course = Course {
        written,
        begins,
        failed: failed(&rig.publisher.text("err")),
        unconfirmed: unconfirmed(&rig.publisher.text("err")),
        checked: read(&rig.monitor.outputs()),
        consumer: read(&rig.consumer.outputs()),
        healthy: read(&rig.healthy.outputs()),
        summary: summary.and_then(|line| serde_json::from_str(line).ok()),
        status: status.and_then(|status| status.code()),
        fault: from,
        stopped,
        throughput: during / time.as_secs_f64() / (before / BEFORE.as_secs_f64()),
        goes_on,
        ended,
        memory_mib,
    };
    if let Some(folder) = std::env::var_os("RONDEL_FAULTS_KEEP") {
        rig.keep(&Path::new(&folder).join(case.title().replace(' ', "-")));
    }
    Some(course.result(case))
}

/// Ends the fault, and returns the seconds until verdicts come steadily again, if they do.
fn heal(rig: &mut Rig, case: &Case, feed: &Feed, growth: &mut Growth) -> Option<f64> {
    match case.fault {
        Fault::Pause => rig.part(case.part).signal("CONT"),
        Fault::Kill => {
            let part = rig.part(case.part);
            part.start();
            if part.is("publisher") {
                feed.connect(part.take_input());
            }
        }
        Fault::Partition => rig.cut(case.part, false),
    }
    let healed = Instant::now();
    watch(growth, &rig.monitor, PATIENCE, |growth| growth.steady(healed).is_some());
    growth.steady(healed).map(|at| (at - healed).as_secs_f64())
}

/// Waits until the monitor and its consumers print nothing more, for a limited time.
fn settle(rig: &Rig) {
    let mut bytes = Growth::default();
    let settle = Instant::now();
    while settle.elapsed() < SETTLE {
        let all = [&rig.monitor, &rig.consumer, &rig.healthy].map(Participant::printed);
        bytes.look(all.iter().sum());
        if bytes.last().is_some_and(|last| last.elapsed() > QUIET) {
            break;
        }
        std::thread::sleep(TICK);
    }
}

/// The number of messages that a publisher could not publish: `published 9 messages in 1.000 s, 3 failed`.
fn failed(stderr: &str) -> u64 {
    let text = stderr.lines().find(|line| line.starts_with("published ")).and_then(|line| {
        let (before, _) = line.split_once(" failed")?;
        before.rsplit(' ').next()
    });
    text.and_then(|text| text.replace(',', "").parse().ok()).unwrap_or(0)
}

/// The number of messages that a publisher names as dropped or not confirmed: `zenoh:state: 9 dropped, as …`.
fn unconfirmed(stderr: &str) -> u64 {
    let number = |line: &str| {
        let (number, rest) = line.trim().split_once(":state: ")?.1.split_once(' ')?;
        let is_count = rest.starts_with("dropped") || rest.starts_with("published, but not confirmed");
        if is_count { number.replace(',', "").parse::<u64>().ok() } else { None }
    };
    stderr.lines().filter_map(number).sum()
}

/// Seconds since 1970, the clock of the consumers.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The times at which an output has grown.
#[derive(Default)]
struct Growth {
    bytes: u64,
    times: Vec<Instant>,
    sizes: Vec<u64>,
}

impl Growth {
    fn look(&mut self, bytes: u64) {
        if bytes > self.bytes || self.times.is_empty() {
            self.bytes = bytes;
            self.times.push(Instant::now());
            self.sizes.push(bytes);
        }
    }

    /// The bytes by which the output has grown in this time until now.
    fn bytes_of_last(&self, time: Duration) -> f64 {
        let before = self.times.iter().rposition(|at| at.elapsed() >= time).unwrap_or(0);
        (self.bytes - self.sizes[before]) as f64
    }

    fn last(&self) -> Option<Instant> {
        self.times.last().copied()
    }

    /// The first time since `from` from which on the output has grown steadily, if it has done so for long enough.
    fn steady(&self, from: Instant) -> Option<Instant> {
        let last = self.last().filter(|last| last.elapsed() < GAP)?;
        let since = self.times.iter().rev().take_while(|time| **time >= from);
        let mut first = last;
        for &time in since {
            if first - time > GAP {
                break;
            }
            first = time;
        }
        (last - first >= STEADY).then_some(first)
    }
}

/// Looks at the progress of a monitor for some time, or until a condition holds.
fn watch(growth: &mut Growth, monitor: &Participant, time: Duration, until: impl Fn(&Growth) -> bool) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline && !until(growth) {
        growth.look(monitor.printed());
        std::thread::sleep(TICK);
    }
}
