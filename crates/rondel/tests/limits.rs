//! Limits of a live run: times far from the clock, and large messages, are refused and said.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::time::{SystemTime, UNIX_EPOCH};

use rondel_testkit::Process;
use support::network::{arguments, free_endpoint, zenoh};
use support::{Folder, rondel, rondel_with_input, start_rondel};

const SPECIFICATION: &str = "topic door { t: time, request: bool, answer: bool }
property answered = rising(door.request) -> eventually[0, 200 ms] door.answer
";

/// Starts a monitor of `demo/door`, which is the only topic and has its own times.
fn monitor(folder: &Folder, endpoint: &str, further: &str) -> Process {
    folder.file("door.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: door.rondel\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
             topics: {{ door: {{ source: zenoh:demo/door, time: t }} }}\nverdicts: {{ to: stdout }}\n{further}"
        ),
    );
    let mut monitor = start_rondel(["run", "--format", "json", "--summary", "json", &deployment]);
    monitor.wait_stderr("ready");
    monitor
}

fn publish(endpoint: &str, lines: &str) {
    let own = ["publish", "--to", "zenoh:demo/door", "-"];
    rondel_with_input(arguments(&own, &zenoh("client", endpoint)), lines.as_bytes()).expect_status(0);
}

#[test]
fn messages_with_impossible_times_are_counted_and_stop_no_deadline() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut monitor = monitor(&folder, &endpoint, "");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let lines = format!(
        "{{\"t\":\"2100-01-01T00:00:00Z\",\"request\":false,\"answer\":false}}\n{{\"t\":{now},\"request\":false,\"answer\":false}}\n\
         {{\"t\":{},\"request\":true,\"answer\":false}}\n{{\"t\":\"2100-01-01T00:00:00Z\",\"request\":false,\"answer\":false}}\n\
         {{\"t\":\"2300-01-01T00:00:00Z\",\"request\":false,\"answer\":false}}\n",
        now + 1
    );
    publish(&endpoint, &lines);
    // The refused message may have been an answer.
    monitor.wait_stdout("\"inconclusive\"");
    let second = format!(
        "{{\"t\":{},\"request\":false,\"answer\":false}}\n{{\"t\":{},\"request\":true,\"answer\":false}}\n",
        now + 60,
        now + 61
    );
    publish(&endpoint, &second);
    let violated = monitor.wait_stdout("\"violated\"");
    assert!(violated.contains("answered"), "{violated}");
    monitor.terminate();
    let finished = monitor.finish();
    finished.expect_status(0).expect_stderr(&[
        "door: the time 2100-01-01",
        "after the clock; the message was refused; further ones are only counted",
        "its time cannot be used (byte 5: the time lies beyond the year 2262)",
        "\"refused\":2",
        "\"undecodable\":1",
        "\"received\":7",
        "\"checked\":4",
    ]);
}

#[test]
fn limits_are_settings() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let further = "alignment: { policy: arrival, ahead: never }\nlimits: { message: 100 B }\n";
    let mut monitor = monitor(&folder, &endpoint, further);
    let long = "x".repeat(100);
    let lines = format!(
        "{{\"t\":\"2100-01-01T00:00:00Z\",\"request\":false,\"answer\":false}}\n{{\"t\":1,\"request\":true,\"more\":\"{long}\"}}\n"
    );
    publish(&endpoint, &lines);
    monitor.wait_stderr("is larger than the limit");
    monitor.terminate();
    monitor.finish().expect_status(0).expect_stderr(&[
        "door: a message of 132 bytes is larger than the limit of 100 B; it was refused",
        "\"refused\":1",
        "\"checked\":1",
    ]);
}

#[test]
fn a_recording_is_held_to_the_size_limit_of_its_deployment() {
    let folder = Folder::new();
    let text = "formula: v > 1\nlimits: { message: 1 KiB }\ntopics: { trace: zenoh:l }\n";
    let deployment = folder.file("limits.yaml", text);
    let lines = format!("{{\"v\":5}}\n{{\"v\":0,\"pad\":\"{}\"}}\n{{\"v\":7}}\n", "x".repeat(3000));
    let trace = folder.file("trace.jsonl", lines);
    rondel(["check", "-f", "v > 1", &trace]).expect_status(1);
    let found = rondel(["check", &deployment, &trace]);
    found.expect_status(4).expect_stderr(&["a message of 3,016 bytes is larger"]);
    assert!(found.stdout.contains("not evaluated: 1 message was refused: too large"), "{}", found.stdout);
    assert!(found.stdout.contains("2 events checked"), "{}", found.stdout);
}
