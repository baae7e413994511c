//! Kafka: a real broker, and an independent client. Each broker takes seconds to start and half a gigabyte, so that a
//! test has several parts.

#![allow(clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod avro;
mod commands;
mod exactly;
mod faults;
mod group;
#[path = "../support/mod.rs"]
mod support;

use std::fmt::Write as _;

use rondel_testkit::{KafkaBroker, Process};
use serde_json::{Value, json};
use support::network::arguments;
use support::{Finished, Folder, rondel, start_rondel};

/// The options of a command that joins a broker.
fn joining(broker: &KafkaBroker) -> Vec<String> {
    vec!["--kafka-broker".to_owned(), broker.address()]
}

/// A record to publish.
fn record(value: &str, key: Option<&str>) -> String {
    json!({"value": value, "key": key}).to_string()
}

/// Records with these numbers, on all partitions by their keys.
fn numbered(numbers: std::ops::Range<usize>) -> String {
    numbers.fold(String::new(), |mut lines, n| {
        let value = json!({"t": n as f64 / 1000.0, "n": n}).to_string();
        let _ = writeln!(lines, "{}", record(&value, Some(&format!("k{}", n % 7))));
        lines
    })
}

/// The summary that a run with `--summary json` has printed.
fn summary(finished: &Finished) -> Value {
    let line = finished.stderr.lines().rev().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{}", finished.stderr))).unwrap()
}

/// The published verdicts of a topic, each with its key.
fn verdicts(broker: &KafkaBroker, topic: &str) -> Vec<(String, Value)> {
    let read = |line: String| {
        let record: Value = serde_json::from_str(&line).unwrap();
        let verdict = serde_json::from_str(record["data"].as_str().unwrap()).unwrap();
        (record["key"].as_str().unwrap_or_default().to_owned(), verdict)
    };
    broker.records(topic).into_iter().map(read).collect()
}

/// Waits until the published verdicts of a topic fulfil a condition, and returns them.
fn await_verdicts(
    broker: &KafkaBroker,
    topic: &str,
    run: &mut Process,
    is_enough: impl Fn(&[(String, Value)]) -> bool,
) -> Vec<(String, Value)> {
    let deadline = std::time::Instant::now() + rondel_testkit::LIMIT;
    loop {
        let all = verdicts(broker, topic);
        if is_enough(&all) {
            return all;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "{} verdicts came; {}",
            all.len(),
            run.all_stderr_so_far()
        );
    }
}
