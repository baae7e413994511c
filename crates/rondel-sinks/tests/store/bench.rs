//! Verdicts per second, and times of views over many verdicts.
//!
//! `RONDEL_BENCH_VERDICTS=10000000 cargo test --release -p rondel-sinks --test store -- --ignored bench --nocapture`

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_runtime::SystemClock;
use rondel_sinks::sqlite::{Filter, Reader, SqliteSink, StoreOptions, VIEWS};
use rondel_sinks::{
    Begin, Driver, Entry, Options, PropertyEntry, RunKey, Sink, SlowConsumer, Truth, VerdictEntry,
};

use crate::support::{Folder, LIMIT, MIDNIGHT, begin};

const PROPERTIES: usize = 300;
const INSTANCES: usize = 20;
const BATCH: usize = 1 << 14;

/// Names of properties and parameters.
struct Names {
    properties: Vec<String>,
    parameters: Vec<String>,
}

/// The verdict with this number: 300 properties, 20 instances of each, whose verdicts alternate; ten days altogether.
fn verdict(names: &Names, i: usize, all: usize) -> VerdictEntry<'_> {
    let (property, instance) = (i * 7 % PROPERTIES, i / PROPERTIES % INSTANCES);
    let turn = i / (PROPERTIES * INSTANCES);
    let time = MIDNIGHT + (10.0 * 86_400e9 * i as f64 / all as f64) as i64;
    // By splitmix64, as ids are hashes.
    let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
    let high = u128::from(mix((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    VerdictEntry {
        run: RunKey(1),
        id: Some(high << 64 | i as u128),
        property: &names.properties[property],
        parameters: &names.parameters[instance],
        verdict: if turn.is_multiple_of(2) { Truth::Violated } else { Truth::Satisfied },
        time,
        about: None,
        is_after: false,
        reported: time,
        step: Some(i as u64),
        lap: 1,
        robustness: Some(i as f64),
        values: "",
        explanation: "",
        latency: None,
        missing: "",
        because_of: "",
        json: "",
    }
}

fn names() -> Names {
    Names {
        properties: (0..PROPERTIES).map(|i| format!("brakes_within_{i}_ms")).collect(),
        parameters: (0..INSTANCES).map(|i| format!("{{\"robot\":{i}}}")).collect(),
    }
}

fn begun(names: &Names) -> Entry<'_> {
    let property = |name| PropertyEntry { name, ..PropertyEntry::default() };
    let properties = names.properties.iter().map(|name| property(name.as_str())).collect();
    Entry::Begin(Box::new(Begin { properties, ..begin(1, "car") }))
}

/// Processor time of this thread: on a busy machine it varies less than the time that passes.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[test]
#[ignore = "a benchmark"]
fn bench() {
    let all = std::env::var("RONDEL_BENCH_VERDICTS").map_or(2_000_000, |all| all.parse().unwrap());
    let folder = Folder::new();
    let path = folder.store();
    let names = names();
    let mut sink = SqliteSink::open(&path, StoreOptions::default()).unwrap();
    sink.write(&[begun(&names)], LIMIT).unwrap();
    let (mut next, mut part, mut spent) = (0, 0, Duration::ZERO);
    let mut busy = Duration::ZERO;
    let mut slowest = Duration::ZERO;
    while next < all {
        let batch: Vec<Entry<'_>> =
            (next..(next + BATCH).min(all)).map(|i| Entry::Verdict(verdict(&names, i, all))).collect();
        let (began, processor) = (Instant::now(), processor_time());
        assert_eq!(sink.write(&batch, LIMIT).unwrap().stored, batch.len() as u64);
        let took = began.elapsed();
        busy += processor_time() - processor;
        (slowest, spent, next, part) =
            (slowest.max(took), spent + took, next + batch.len(), part + batch.len());
        if part >= all / 10 {
            let rate = |time: Duration| part as f64 / time.as_secs_f64();
            let (wall, processor) = (rate(spent), rate(busy));
            println!(
                "{next}: {wall:.0} verdicts/s, {processor:.0} of processor time; longest batch {slowest:?}"
            );
            (spent, busy, part, slowest) = Default::default();
        }
    }
    // A tenth again: they are all there.
    let again: Vec<Entry<'_>> = (0..BATCH).map(|i| Entry::Verdict(verdict(&names, i, all))).collect();
    let began = Instant::now();
    assert_eq!(sink.write(&again, LIMIT).unwrap().repeated, BATCH as u64);
    println!("repeated: {:.0} verdicts/s", BATCH as f64 / began.elapsed().as_secs_f64());
    sink.close(LIMIT).unwrap();
    println!("{} bytes a verdict", std::fs::metadata(&path).unwrap().len() / all as u64);
    for property in [None, Some(names.properties[7].as_str())] {
        let filter = Filter { property, ..Filter::default() };
        for view in
            VIEWS.iter().filter(|view| property.is_none() || !["all_runs", "all_losses"].contains(&view.name))
        {
            let reader = Reader::open(&path, LIMIT).unwrap();
            let (began, processor) = (Instant::now(), processor_time());
            let rows = reader.view(view.name, &filter, 1000).unwrap();
            println!(
                "{:20} {:12?}, {:12?} of processor time, {} rows{}",
                view.name,
                began.elapsed(),
                processor_time() - processor,
                rows.rows.len(),
                if property.is_some() { " of a property" } else { "" }
            );
        }
    }
    let began = Instant::now();
    let times = Filter {
        since: Some(MIDNIGHT + 3 * 86_400_000_000_000),
        until: Some(MIDNIGHT + 3 * 86_400_000_000_000 + 60_000_000_000),
        ..Filter::default()
    };
    let rows = Reader::open(&path, LIMIT).unwrap().view("all_verdicts", &times, 1000).unwrap();
    println!("all_verdicts of a minute {:?} {} rows", began.elapsed(), rows.rows.len());
    driven(&names);
}

/// Cost for the evaluating thread, and throughput with encoding, queue and thread.
fn driven(names: &Names) {
    let all = 1_000_000;
    let folder = Folder::new();
    let sink = SqliteSink::open(&folder.store(), StoreOptions::default()).unwrap();
    let slow_consumer = SlowConsumer::Block { limit: LIMIT };
    let options = Options { slow_consumer, ..Options::default() };
    let driver = Driver::start("sqlite", Box::new(sink), options, Arc::new(SystemClock)).unwrap();
    let mut feed = driver.feed();
    feed.entry(&begun(names));
    let began = Instant::now();
    for i in 0..100_000 {
        feed.entry(&Entry::Verdict(verdict(names, i, all)));
    }
    println!("sending: {:.0} ns a verdict", began.elapsed().as_nanos() as f64 / 1e5);
    for i in 100_000..all {
        feed.entry(&Entry::Verdict(verdict(names, i, all)));
    }
    feed.send();
    let handle = driver.handle();
    assert_eq!(driver.close(Duration::from_secs(60)).unwritten, 0);
    assert_eq!((handle.status().stored, handle.status().lost()), (all as u64, 0));
    println!("by a driver: {:.0} verdicts/s", all as f64 / began.elapsed().as_secs_f64());
}
