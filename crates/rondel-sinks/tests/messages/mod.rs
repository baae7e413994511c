//! Verdicts, loads and waiting for the tests of message brokers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_runtime::SystemClock;
use rondel_sinks::{
    Begin, Condition, Driver, Entry, Options, RunKey, Sink, SlowConsumer, Status, Truth, VerdictEntry,
};

pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// 2026-11-29 00:00:00 UTC.
const MIDNIGHT: i64 = 1_795_910_400_000_000_000;

/// A verdict that owns its texts.
pub(crate) struct Sample {
    pub(crate) id: u128,
    pub(crate) property: String,
    pub(crate) parameters: String,
    pub(crate) json: String,
    time: i64,
}

impl Sample {
    /// The verdict with this number: two properties, one of them on three robots.
    pub(crate) fn new(number: u64) -> Sample {
        let (property, parameters) = match number % 4 {
            0 => ("brakes", String::new()),
            robot => ("limits.gap", format!(r#"{{"robot":{robot}}}"#)),
        };
        let id = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let key = if parameters.is_empty() { String::new() } else { format!(r#""key":{parameters},"#) };
        let json = format!(
            r#"{{"property":"{property}",{key}"time":{number},"verdict":"violated","id":"{id:032x}"}}"#
        );
        Sample {
            id,
            property: property.to_owned(),
            parameters,
            json,
            time: MIDNIGHT + number as i64 * 1_000_000,
        }
    }

    pub(crate) fn all(range: std::ops::Range<u64>) -> Vec<Sample> {
        range.map(Sample::new).collect()
    }

    /// Makes the message this long, at least.
    pub(crate) fn with_size(mut self, size: usize) -> Sample {
        self.json = format!(r#"{{"explanation":"{}","id":"{:032x}"}}"#, "x".repeat(size), self.id);
        self
    }

    pub(crate) fn id(&self) -> String {
        format!("{:032x}", self.id)
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry::Verdict(VerdictEntry {
            run: RunKey(1),
            id: Some(self.id),
            property: &self.property,
            parameters: &self.parameters,
            verdict: Truth::Violated,
            time: self.time,
            about: None,
            is_after: false,
            reported: self.time,
            step: None,
            lap: 1,
            robustness: None,
            values: "",
            explanation: "",
            latency: None,
            missing: "",
            because_of: "",
            json: &self.json,
        })
    }
}

pub(crate) fn entries(samples: &[Sample]) -> Vec<Entry<'_>> {
    samples.iter().map(Sample::entry).collect()
}

pub(crate) fn begin() -> Entry<'static> {
    Entry::Begin(Box::new(Begin { run: RunKey(1), series: "car-7", ..Begin::default() }))
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, limit: Duration, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_true() {
        assert!(Instant::now() < deadline, "the time is over before {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A broker that a test kills.
pub(crate) trait Broker {
    fn kill(&mut self);
    fn resume(&mut self);
    /// Returns the address that errors contain.
    fn place(&self) -> String;
}

/// Writes verdicts by a driver, during which the broker is gone for a while. Returns the state after the last one.
pub(crate) fn write_over_outage(broker: &mut dyn Broker, sink: Box<dyn Sink>, samples: &[Sample]) -> Status {
    let options = Options { batch: 500, ..Options::default() };
    let driver = Driver::start("broker", sink, options, Arc::new(SystemClock)).unwrap();
    let (mut feed, handle) = (driver.feed(), driver.handle());
    feed.entry(&begin());
    let third = samples.len() / 3;
    samples[..third].iter().for_each(|sample| feed.entry(&sample.entry()));
    feed.send();
    wait_until("some are written", LIMIT, || handle.status().stored > 0);
    broker.kill();
    let killed = Instant::now();
    for part in samples[third..2 * third].chunks(100) {
        part.iter().for_each(|sample| feed.entry(&sample.entry()));
        assert!(feed.send(), "the queue has room");
    }
    wait_until("the outage is noticed", LIMIT, || {
        matches!(handle.status().condition, Condition::Failing { .. })
    });
    let error = handle.status().last_error.unwrap();
    assert!(error.contains(&broker.place()) && error.contains("check"), "{error}");
    wait_until("the outage ends", 2 * outage() + LIMIT, || killed.elapsed() >= outage());
    broker.resume();
    samples[2 * third..].iter().for_each(|sample| feed.entry(&sample.entry()));
    feed.send();
    assert_eq!(driver.close(Duration::from_secs(60)).unwritten, 0);
    handle.status()
}

/// Checks that the end of a run does not wait for a broker that does not answer.
pub(crate) fn expect_quick_end(sink: Box<dyn Sink>) {
    let driver = Driver::start("broker", sink, Options::default(), Arc::new(SystemClock)).unwrap();
    let mut feed = driver.feed();
    feed.entry(&Sample::new(0).entry());
    feed.send();
    let began = Instant::now();
    let closed = driver.close(Duration::from_millis(200));
    assert!(closed.is_ended && began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

/// Writes 500,000 verdicts, or `RONDEL_BENCH_VERDICTS`, and prints how many a second.
pub(crate) fn measure(sink: Box<dyn Sink>) {
    let all: u64 = std::env::var("RONDEL_BENCH_VERDICTS").map_or(500_000, |all| all.parse().unwrap());
    let samples = Sample::all(0..all);
    let slow_consumer = SlowConsumer::Block { limit: Duration::from_secs(60) };
    let options = Options { slow_consumer, ..Options::default() };
    let driver = Driver::start("broker", sink, options, Arc::new(SystemClock)).unwrap();
    let mut feed = driver.feed();
    feed.entry(&begin());
    let began = Instant::now();
    samples.iter().for_each(|sample| feed.entry(&sample.entry()));
    feed.send();
    let handle = driver.handle();
    assert_eq!(driver.close(Duration::from_secs(60)).unwritten, 0);
    let status = handle.status();
    assert_eq!((status.stored, status.lost()), (all, 0));
    println!("{:.0} verdicts/s, {} failures", all as f64 / began.elapsed().as_secs_f64(), status.failures);
}

/// Duration of an outage under load: 3 seconds, or `RONDEL_TEST_OUTAGE` seconds.
fn outage() -> Duration {
    let seconds = std::env::var("RONDEL_TEST_OUTAGE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}
