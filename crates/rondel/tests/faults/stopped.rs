//! Participants that stop: no other participant waits longer than agreed, and every loss is counted and reported.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::network::{arguments, dds, dds_domain, free_endpoint, zenoh, zenoh_listening};
use crate::support::{Finished, Folder, RONDEL, start_rondel};
use rondel_testkit::{LIMIT, Process};

/// Time limit for the end of a monitor after SIGTERM: 5 s, and a tolerance for a very busy machine.
const END: Duration = Duration::from_secs(20);

/// One instance, whose parameter makes verdicts long: they fill the buffers of a connection soon.
pub const SPECIFICATION: &str = "topic state { id: string, v: bool }\n\
                             property p for each id in (state.id) = state.v\n";

/// Messages with their verdicts of 4 KiB each.
fn messages(count: usize) -> Vec<u8> {
    let id = "x".repeat(4000);
    (0..count).flat_map(|i| format!("{{\"id\":\"{id}\",\"v\":true,\"n\":{i}}}\n").into_bytes()).collect()
}

/// A monitor with a verdict for every message, which waits one second for consumers.
fn monitor(folder: &Folder, network: &str, options: &[String]) -> Process {
    let specification = folder.file("p.rondel", SPECIFICATION);
    let (topic, verdicts) = (format!("{network}:state"), format!("{network}:verdict"));
    let own = ["run", &specification, "--emit", "every", "--topic", &topic, "--publish", &verdicts];
    // Nothing is kept for consumers that come back: what is lost, is counted.
    let further = ["--summary", "json", "--slow-consumer", "1 s", "--resend", "0"];
    let mut run = start_rondel(arguments(&[&own[..], &further].concat(), options));
    run.wait_stderr("ready");
    run
}

pub fn tap(network: &str, options: &[String]) -> Process {
    let verdicts = format!("{network}:verdict");
    let mut tap = start_rondel(arguments(&["tap", &verdicts, "--format", "json"], options));
    tap.wait_stderr("ready");
    tap
}

/// Publishes messages on a thread, so many a second; returns what `rondel publish` leaves behind.
pub fn publishing(
    to: &str,
    own: &[&str],
    options: &[String],
    count: usize,
) -> std::thread::JoinHandle<Finished> {
    let arguments = arguments(&[&["publish", "--to", to, "--wait", "60"], own].concat(), options);
    std::thread::spawn(move || crate::support::rondel_with_input(arguments, &messages(count)))
}

/// A publisher that stays when it has published everything, until its input is dropped: what a publisher that
/// ends has in its buffers may be lost.
fn staying(options: &[String], count: usize) -> (Process, std::thread::JoinHandle<ChildStdin>) {
    let own = ["publish", "--to", "zenoh:state", "--rate", "2000", "--wait", "60"];
    let mut publisher = start_rondel(arguments(&own, options));
    let mut input = publisher.take_input();
    let writer = std::thread::spawn(move || {
        input.write_all(&messages(count)).unwrap();
        input
    });
    (publisher, writer)
}

/// Ends a monitor with SIGTERM, and returns the time that it took, its exit status and its summary.
pub fn end(run: Process) -> (Duration, Option<i32>, Value) {
    let began = Instant::now();
    run.terminate();
    let finished = run.finish();
    let took = began.elapsed();
    let summary = finished.stderr.lines().rev().find(|line| line.starts_with('{'));
    let summary = summary
        .unwrap_or_else(|| panic!("no summary, status {:?}, in\n{}", finished.status, finished.stderr));
    (took, finished.status, serde_json::from_str(summary).unwrap())
}

#[test]
fn a_stopped_zenoh_consumer_loses_only_its_own_verdicts() {
    const COUNT: usize = 6000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let run = monitor(&folder, "zenoh", &zenoh_listening("router", &endpoint));
    let peer = zenoh("peer", &endpoint);
    let mut stopped = tap("zenoh", &zenoh("client", &endpoint));
    let mut healthy = tap("zenoh", &zenoh("client", &endpoint));
    let (publisher, writer) = staying(&peer, COUNT);
    stopped.take_stdout(10);
    stopped.signal("STOP");
    // The other gets every verdict from its first one on: the monitor goes on checking.
    let mut step = || {
        let line = healthy.take_stdout(1).remove(0);
        serde_json::from_str::<Value>(&line).unwrap()["data"]["step"].as_u64().unwrap()
    };
    (step() + 1..COUNT as u64).for_each(|expected| assert_eq!(step(), expected));
    drop(writer.join().unwrap());
    publisher.finish().expect_status(0);
    stopped.signal("CONT");
    let (took, status, summary) = end(run);
    assert!(took < END, "{took:?}");
    assert_eq!(status, Some(5), "{summary}");
    assert_eq!((&summary["received"], &summary["lost"]), (&COUNT.into(), &0.into()), "{summary}");
    assert!(summary["dropped"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["undelivered"][0]["sink"], "zenoh:verdict", "{summary}");
    assert_eq!(summary["undelivered"][0]["count"], summary["dropped"], "{summary}");
}

#[test]
fn a_stopped_zenoh_consumer_does_not_keep_the_monitor_from_ending() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut run = monitor(&folder, "zenoh", &zenoh_listening("router", &endpoint));
    let mut stopped = tap("zenoh", &zenoh("client", &endpoint));
    let peer = arguments(&["publish", "--to", "zenoh:state", "--rate", "2000"], &zenoh("peer", &endpoint));
    let mut publisher = start_rondel(peer);
    let mut input = publisher.take_input();
    let writer = std::thread::spawn(move || {
        // Until the publisher ends.
        while input.write_all(&messages(50)).is_ok() {}
    });
    stopped.take_stdout(10);
    stopped.signal("STOP");
    // Zenoh gives the connection up, and takes up to 10 s to close it: what it misses meanwhile is counted.
    run.wait_stderr("Closing transport");
    let (took, status, summary) = end(run);
    assert!(took < END, "{took:?}");
    assert_eq!(status, Some(5), "{summary}");
    assert!(summary["received"].as_u64().unwrap() > 10, "{summary}");
    assert_eq!(summary["undelivered"][0]["sink"], "zenoh:verdict", "{summary}");
    publisher.kill();
    writer.join().unwrap();
}

#[test]
fn a_stopped_dds_consumer_does_not_stop_the_monitor() {
    const COUNT: usize = 3000;
    let (folder, domain) = (Folder::new(), dds_domain());
    let to_see = arguments(&["--publish", "stdout"], &dds(&domain));
    let mut run = monitor(&folder, "dds", &to_see);
    let mut stopped = tap("dds", &dds(&domain));
    let publisher = publishing("dds:state", &["--rate", "2000"], &dds(&domain), COUNT);
    stopped.take_stdout(10);
    stopped.signal("STOP");
    run.wait_stderr("dds:verdict: a consumer does not accept messages; they are dropped until it does");
    publisher.join().unwrap().expect_status(0);
    run.take_stdout(COUNT);
    stopped.signal("CONT");
    let (took, status, summary) = end(run);
    assert!(took < END, "{took:?}");
    assert_eq!(status, Some(5), "{summary}");
    assert_eq!(summary["received"], COUNT, "{summary}");
    assert!(summary["dropped"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["undelivered"][0]["sink"], "dds:verdict", "{summary}");
}

#[test]
fn a_tap_without_a_reader_does_not_hold_up_the_publisher() {
    const COUNT: usize = 3000;
    let endpoint = free_endpoint();
    let own = ["tap", "zenoh:state", "--slow-consumer", "500 ms"];
    let mut tap = Command::new(RONDEL)
        .args(arguments(&own, &zenoh_listening("peer", &endpoint)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut unread = tap.stdout.take().unwrap();
    let mut stderr = BufReader::new(tap.stderr.take().unwrap());
    let mut ready = String::new();
    stderr.read_line(&mut ready).unwrap();
    assert!(ready.contains("ready"), "{ready}");
    let began = Instant::now();
    let published = publishing("zenoh:state", &[], &zenoh("peer", &endpoint), COUNT).join().unwrap();
    published.expect_status(0).expect_stderr(&["published 3,000 messages"]);
    assert!(began.elapsed() < LIMIT / 2);
    let status = Command::new("kill").args(["-TERM", &tap.id().to_string()]).status().unwrap();
    assert!(status.success());
    let mut printed = String::new();
    stderr.read_to_string(&mut printed).unwrap();
    assert_eq!(tap.wait().unwrap().code(), Some(5), "{printed}");
    assert!(printed.contains("standard output is not read"), "{printed}");
    assert!(printed.contains("received 3,000 messages") && printed.contains("dropped because"), "{printed}");
    // Every printed line is complete.
    let mut text = String::new();
    unread.read_to_string(&mut text).unwrap();
    assert!(text.lines().rev().skip(1).all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[test]
fn messages_that_a_stopped_monitor_misses_are_counted() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let listening = zenoh_listening("peer", &endpoint);
    // The publisher listens: it cuts off a monitor that it reaches directly.
    let own =
        ["publish", "--to", "zenoh:state", "--rate", "2000", "--wait", "60", "--slow-consumer", "500 ms"];
    let mut publisher = start_rondel(arguments(&[&own[..], &["--resend", "0"]].concat(), &listening));
    let mut input = publisher.take_input();
    let (noticed, shown) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (until, end_at) = (Arc::clone(&noticed), Arc::clone(&shown));
    // Goes on until the gap is noticed: a later number shows it. The monitor may be cut off again if the machine is busy,
    // so that a few follow, one after the other, until one of them has arrived.
    let writer = std::thread::spawn(move || {
        let (messages, mut count) = (messages(100), 0);
        while !until.load(Ordering::Relaxed) {
            input.write_all(&messages).unwrap();
            count += 100;
        }
        while !end_at.load(Ordering::Relaxed) {
            input.write_all(b"{\"id\":\"afterwards\",\"v\":true}\n").unwrap();
            input.flush().unwrap();
            count += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        (input, count)
    });
    let specification = folder.file("p.rondel", SPECIFICATION);
    let own = ["run", &specification, "--emit", "every", "--topic", "zenoh:state", "--summary", "json"];
    let mut run = start_rondel(arguments(&own, &zenoh("peer", &endpoint)));
    run.wait_stderr("ready");
    run.take_stdout(10);
    run.signal("STOP");
    std::thread::sleep(Duration::from_millis(2500));
    run.signal("CONT");
    run.wait_stderr("by the sequence numbers of a publisher");
    noticed.store(true, Ordering::Relaxed);
    run.wait_stdout("afterwards");
    shown.store(true, Ordering::Relaxed);
    let (input, count) = writer.join().unwrap();
    // Everything has arrived when nothing comes any more.
    while run.stdout_within(Duration::from_secs(2)).is_some() {}
    drop(input);
    publisher.finish();
    let (took, status, summary) = end(run);
    assert!(took < END, "{took:?}");
    assert_eq!(status, Some(5), "{summary}");
    let topic = &summary["topics"][0];
    let number = |name: &str| topic[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"));
    assert!(number("lost") > 0, "{summary}");
    assert_eq!(number("received") + number("lost"), count, "{summary}");
    assert!(topic["lost_from"].as_f64().unwrap() < topic["lost_until"].as_f64().unwrap(), "{summary}");
    // It was connected again; afterwards the publisher has left.
    let outage = &summary["outages"][0];
    assert!(outage["from"].as_f64().unwrap() <= outage["until"].as_f64().unwrap(), "{summary}");
}
