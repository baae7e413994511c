//! Messages that a participant missed while it was stopped or cut off are fetched again, in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::io::Write as _;
use std::process::ChildStdin;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::Folder;
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::process::{LIMIT, Process};

/// How long a participant is stopped: longer than the publisher waits for it.
const STOPPED: Duration = Duration::from_millis(2500);

/// Messages of 4 KiB, so that they fill the buffers of a connection soon.
fn messages(numbers: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    let text = "x".repeat(4000);
    numbers.map(move |n| format!("{{\"n\":{n},\"text\":\"{text}\"}}"))
}

/// A publisher that cuts off whoever accepts nothing for half a second. It stays when it has published everything.
fn publisher(endpoint: &str, count: usize) -> (Process, JoinHandle<ChildStdin>) {
    let own =
        ["publish", "--to", "zenoh:state", "--rate", "2000", "--wait", "60", "--slow-consumer", "500 ms"];
    let mut publisher = Process::rondel(arguments(&own, &zenoh_listening("peer", endpoint)));
    let mut input = publisher.take_input();
    let writer = std::thread::spawn(move || {
        messages(0..count).for_each(|message| writeln!(input, "{message}").unwrap());
        input
    });
    (publisher, writer)
}

fn summary(stderr: &str) -> Value {
    let line = stderr.lines().rev().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no summary in\n{stderr}"))).unwrap()
}

fn stop_for_a_while(process: &Process) {
    process.signal("STOP");
    std::thread::sleep(STOPPED);
    process.signal("CONT");
}

#[test]
fn a_zenoh_tap_that_was_stopped_gets_every_message_in_order() {
    const COUNT: usize = 8000;
    let endpoint = free_endpoint();
    let (publisher, writer) = publisher(&endpoint, COUNT);
    let mut tap = Process::rondel(arguments(&["tap", "zenoh:state"], &zenoh("peer", &endpoint)));
    let first = tap.take_stdout(10);
    // The first message that a subscriber gets is where it begins.
    let begin = serde_json::from_str::<Value>(&first[0]).unwrap()["n"].as_u64().unwrap() as usize;
    stop_for_a_while(&tap);
    let mut expected = messages(begin + 10..COUNT);
    tap.take_stdout(COUNT - begin - 10).into_iter().for_each(|line| assert_eq!(Some(line), expected.next()));
    drop(writer.join().unwrap());
    publisher.finish().expect_status(0);
    tap.terminate();
    tap.finish().expect_status(0);
}

#[test]
fn a_zenoh_monitor_that_was_stopped_checks_every_message() {
    // The last of them are published while it is stopped: no later one shows that they are missing.
    const COUNT: usize = 3000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (publisher, writer) = publisher(&endpoint, COUNT);
    let specification = folder.file("p.rondel", "topic state { n: int }\nproperty p = state.n >= 0\n");
    let own = ["run", &specification, "--emit", "every", "--topic", "zenoh:state", "--summary", "json"];
    let mut run = Process::rondel(arguments(&own, &zenoh("peer", &endpoint)));
    run.take_stdout(10);
    stop_for_a_while(&run);
    run.take_stdout(COUNT - 200);
    let deadline = Instant::now() + LIMIT;
    while run.stdout_within(Duration::from_secs(2)).is_some() {
        assert!(Instant::now() < deadline);
    }
    run.terminate();
    let finished = run.finish();
    let summary = summary(&finished.stderr);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let topic = &summary["topics"][0];
    assert_eq!((&topic["lost"], &topic["duplicated"]), (&0.into(), &0.into()), "{summary}");
    assert!(topic["recovered"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["recovered"], topic["recovered"], "{summary}");
    assert!(summary["received"].as_u64().unwrap() >= COUNT as u64 - 190, "{summary}");
    assert!(finished.stderr.contains("received again until"), "{}", finished.stderr);
    drop(writer.join().unwrap());
    publisher.finish().expect_status(0);
}
