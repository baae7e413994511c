//! Messages that a participant missed while it was stopped or cut off are fetched again, in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::Write as _;
use std::process::ChildStdin;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process};
use serde_json::Value;
use support::network::{
    arguments, dds, dds_domain, free_endpoint, independent, python, router, zenoh, zenoh_listening,
};
use support::{Folder, start_rondel};

/// Time for which a participant is stopped: longer than the publisher waits for it.
const STOPPED: Duration = Duration::from_millis(2500);

/// Silence after which everything has come, on a busy machine too.
const QUIET: Duration = Duration::from_secs(4);

/// Messages of 4 KiB, so that they fill the buffers of a connection soon.
fn messages(numbers: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    let text = "x".repeat(4000);
    numbers.map(move |n| format!("{{\"n\":{n},\"text\":\"{text}\"}}"))
}

/// A publisher that cuts off whoever accepts nothing for half a second. It stays when it has published everything.
fn publisher(endpoint: &str, count: usize) -> (Process, JoinHandle<ChildStdin>) {
    publisher_with(endpoint, count, &[])
}

fn publisher_with(endpoint: &str, count: usize, more: &[&str]) -> (Process, JoinHandle<ChildStdin>) {
    let own =
        ["publish", "--to", "zenoh:state", "--rate", "2000", "--wait", "60", "--slow-consumer", "500 ms"];
    let own = [&own[..], more].concat();
    let mut publisher = start_rondel(arguments(&own, &zenoh_listening("peer", endpoint)));
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
    let mut tap = start_rondel(arguments(&["tap", "zenoh:state"], &zenoh("peer", &endpoint)));
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
    let text = "topic state { n: int }\nproperty p = (state.n >= 0) since (state.n >= 0)\n";
    let specification = folder.file("p.rondel", text);
    let own = ["run", &specification, "--emit", "every", "--topic", "zenoh:state", "--summary", "json"];
    let mut run = start_rondel(arguments(&own, &zenoh("peer", &endpoint)));
    run.take_stdout(10);
    stop_for_a_while(&run);
    run.take_stdout(COUNT - 200);
    let deadline = Instant::now() + LIMIT;
    while run.stdout_within(QUIET).is_some() {
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
    // Nothing was missed, so that nothing is uncertain, however far the property looks back.
    let property = &summary["properties"][0];
    assert_eq!(
        (&property["verdict"], &property["withheld"]),
        (&"satisfied".into(), &Value::Null),
        "{summary}"
    );
    assert!(finished.stderr.contains("received again until"), "{}", finished.stderr);
    drop(writer.join().unwrap());
    publisher.finish().expect_status(0);
}

/// The publisher has published everything while the monitor is stopped, and ends as soon as it may.
#[test]
fn a_zenoh_publisher_that_ends_waits_for_a_monitor_that_was_stopped() {
    const COUNT: usize = 5000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (publisher, writer) = publisher(&endpoint, COUNT);
    let ending = std::thread::spawn(move || {
        drop(writer.join().unwrap());
        publisher.finish()
    });
    // Each number follows the one before: nothing is missing, nothing comes twice.
    let text = "topic state { n: int }\nproperty p = state.n == prev(state.n) + 1\n";
    let specification = folder.file("p.rondel", text);
    let own = ["run", &specification, "--emit", "every", "--topic", "zenoh:state", "--summary", "json"];
    let mut run = start_rondel(arguments(&own, &zenoh("peer", &endpoint)));
    run.take_stdout(10);
    stop_for_a_while(&run);
    let published = ending.join().unwrap();
    run.terminate();
    let finished = run.finish();
    let summary = summary(&finished.stderr);
    published.expect_status(0).expect_stderr(&["published 5,000 messages", "was cut off"]);
    assert!(
        !published.stderr.contains("dropped") && !published.stderr.contains("confirmed"),
        "{}",
        published.stderr
    );
    assert_eq!((&summary["lost"], &summary["dropped"]), (&0.into(), &0.into()), "{summary}");
    assert!(summary["recovered"].as_u64().unwrap() > 0, "{summary}");
    // The first message that a subscriber gets is where it begins.
    assert!(summary["received"].as_u64().unwrap() > COUNT as u64 - 190, "{summary}");
    assert_eq!(summary["properties"][0]["violations"], 0, "{summary}");
}

/// No monitor fetches the messages: the publisher reports the unconfirmed ones.
#[test]
fn a_zenoh_publisher_reports_unconfirmed_messages_of_a_stopped_monitor_at_its_end() {
    const COUNT: usize = 3000;
    let endpoint = free_endpoint();
    let (publisher, writer) = publisher(&endpoint, COUNT);
    let mut tap = start_rondel(arguments(&["tap", "zenoh:state"], &zenoh("peer", &endpoint)));
    tap.take_stdout(10);
    tap.signal("STOP");
    drop(writer.join().unwrap());
    let published = publisher.finish();
    published.expect_status(5);
    // Messages in the buffers of the connection may be lost or not.
    let count = |words: &str| {
        let line = published.stderr.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("no {words:?} in\n{}", published.stderr));
        let (number, _) = line.split_once(words).unwrap();
        number.rsplit(' ').next().unwrap().replace(',', "").parse::<usize>().unwrap()
    };
    let all = count(" dropped, as") + count(" published, but not confirmed by every subscriber");
    assert!((COUNT - 190..=COUNT).contains(&all), "{all} in\n{}", published.stderr);
    tap.signal("CONT");
    tap.terminate();
    tap.finish();
}

/// The router between publisher and monitor is killed, and another started: what was published meanwhile is fetched
/// from the publisher.
#[test]
fn a_zenoh_monitor_checks_every_message_over_a_restart_of_the_router() {
    const RATE: usize = 1000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut first = router(&endpoint);
    let client = zenoh("client", &endpoint);
    let specification = folder.file("p.rondel", "topic state { n: int }\nproperty p = state.n >= 0\n");
    let own = ["run", &specification, "--emit", "every", "--topic", "zenoh:state", "--summary", "json"];
    let mut run = start_rondel(arguments(&[&own[..], &["--format", "json"]].concat(), &client));
    run.wait_stderr("ready");
    let rate = RATE.to_string();
    let own = ["publish", "--to", "zenoh:state", "--wait", "60", "--rate", &rate];
    let mut publisher = start_rondel(arguments(&own, &client));
    let mut input = publisher.take_input();
    let (stop, until) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut count = 0u64;
        while until.try_recv().is_err() {
            writeln!(input, "{{\"n\":{count}}}").unwrap();
            count += 1;
        }
        (input, count)
    });
    run.take_stdout(RATE);
    first.kill();
    // Long enough for the silence of the publisher to be noticed.
    std::thread::sleep(STOPPED);
    let _second = router(&endpoint);
    run.wait_stderr("received again until");
    stop.send(()).unwrap();
    let (input, count) = writer.join().unwrap();
    let last = format!("\"step\":{},", count - 1);
    run.wait_stdout(&last);
    run.terminate();
    let finished = run.finish();
    let summary = summary(&finished.stderr);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!((&summary["received"], &summary["lost"]), (&count.into(), &0.into()), "{summary}");
    assert!(summary["recovered"].as_u64().unwrap() > RATE as u64, "{summary}");
    drop(input);
    publisher.finish().expect_status(0);
}

/// The numbers in the payloads of messages.
#[track_caller]
fn numbers(lines: &[String]) -> Vec<usize> {
    let number = |line: &String| {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line:?}"));
        message["n"].as_u64().unwrap_or_else(|| panic!("no number in {line:?}")) as usize
    };
    lines.iter().map(number).collect()
}

#[test]
fn an_advanced_publisher_of_zenoh_resends_missed_messages() {
    const COUNT: usize = 8000;
    let Some(python) = python("an_advanced_publisher_of_zenoh_resends_missed_messages") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let lines: String = messages(0..COUNT).map(|line| line + "\n").collect();
    let file = folder.file("messages", lines);
    let own = ["state", "--file", &file, "--rate", "2000", "--advanced", "--stay", "--wait", "0.5"];
    let mut publisher =
        independent(&python, "zenoh_publish.py", &[&own[..], &["--listen", &endpoint]].concat());
    let input = publisher.take_input();
    let mut tap = start_rondel(arguments(&["tap", "zenoh:state"], &zenoh("peer", &endpoint)));
    let begin = numbers(&tap.take_stdout(1))[0];
    stop_for_a_while(&tap);
    let received = numbers(&tap.take_stdout(COUNT - begin - 1));
    assert!(received.into_iter().eq(begin + 1..COUNT));
    tap.terminate();
    drop(input);
    publisher.finish().expect_status(0);
    let tapped = tap.finish();
    assert!(tapped.stderr.contains("received again"), "{}", tapped.stderr);
}

#[test]
fn an_advanced_subscriber_of_zenoh_recovers_missed_messages() {
    const COUNT: usize = 8000;
    let Some(python) = python("an_advanced_subscriber_of_zenoh_recovers_missed_messages") else { return };
    let endpoint = free_endpoint();
    let (publisher, writer) = publisher(&endpoint, COUNT);
    let own = ["state", "--print", "--quiet", "60", "--advanced", "--connect", &endpoint];
    let mut subscriber = independent(&python, "zenoh_subscribe.py", &own);
    subscriber.wait_stdout("ready");
    let begin = numbers(&subscriber.take_stdout(1))[0];
    stop_for_a_while(&subscriber);
    let received = numbers(&subscriber.take_stdout(COUNT - begin - 1));
    assert!(received.into_iter().eq(begin + 1..COUNT));
    drop(writer.join().unwrap());
    publisher.finish().expect_status(0);
}

#[test]
fn publisher_and_subscribers_report_messages_that_are_not_kept() {
    const COUNT: usize = 9000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (publisher, writer) = publisher_with(&endpoint, COUNT, &["--resend", "0"]);
    let mut tap = start_rondel(arguments(&["tap", "zenoh:state"], &zenoh("peer", &endpoint)));
    let deployment = format!(
        "formula: n >= 0\nzenoh: {{ connect: {endpoint}, mode: peer }}\n\
         topics: {{ trace: {{ source: zenoh:state, time: n }} }}\n\
         alignment: {{ max_wait: 100 ms, ahead: never, behind: never }}\nverdicts: {{ emit: every }}\n"
    );
    let deployment = folder.file("rondel.yaml", deployment);
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
    tap.take_stdout(10);
    run.take_stdout(10);
    tap.signal("STOP");
    stop_for_a_while(&run);
    tap.signal("CONT");
    tap.wait_stderr("by the sequence numbers of a publisher");
    run.wait_stderr("by the sequence numbers of a publisher");
    drop(writer.join().unwrap());
    let published = publisher.finish();
    published.expect_status(5).expect_stderr(&[
        "zenoh:state: ",
        "dropped, as a consumer did not accept them in time (from ",
        "zenoh: the connection with ",
    ]);
    tap.terminate();
    let tapped = tap.finish();
    tapped.expect_status(5).expect_stderr(&["messages lost between", "zenoh: the connection with "]);
    run.terminate();
    let finished = run.finish();
    assert_eq!(finished.status, Some(5), "{}", finished.stderr);
    assert!(summary(&finished.stderr)["lost"].as_u64().unwrap() > 0);
    // One loss is reported once.
    assert!(!finished.stderr.contains("numbers of the publisher"), "{}", finished.stderr);
}

/// No later message shows by its number that they are missing.
#[test]
fn the_last_messages_of_a_publisher_that_keeps_nothing_are_counted() {
    const COUNT: usize = 4000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (publisher, writer) = publisher_with(&endpoint, COUNT, &["--resend", "0"]);
    let specification = folder.file("p.rondel", "topic state { n: int }\nproperty p = state.n >= 0\n");
    let own = ["run", &specification, "--emit", "every", "--topic", "zenoh:state", "--summary", "json"];
    let mut run = start_rondel(arguments(&own, &zenoh("peer", &endpoint)));
    run.take_stdout(10);
    run.signal("STOP");
    // The publisher stays, and publishes nothing more.
    let input = writer.join().unwrap();
    std::thread::sleep(STOPPED);
    run.signal("CONT");
    run.wait_stderr("which does not keep them");
    run.terminate();
    let finished = run.finish();
    let summary = summary(&finished.stderr);
    assert_eq!(finished.status, Some(5), "{}", finished.stderr);
    let number = |name: &str| summary[name].as_u64().unwrap() as usize;
    // Those before its first message do not count.
    let all = number("received") + number("dropped");
    assert!(number("dropped") > 0 && (COUNT - 190..=COUNT).contains(&all), "{summary}");
    drop(input);
    publisher.finish();
}

#[test]
fn the_port_that_was_taken_is_shown() {
    let own = ["run", "-f", "v", "--topic", "zenoh:state", "--zenoh-listen", "tcp/127.0.0.1:0"];
    let mut run = start_rondel(own);
    let line = run.wait_stderr("listening on zenoh tcp/127.0.0.1:");
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    assert!(port.parse::<u16>().unwrap() > 0, "{line}");
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let published = support::rondel_with_input(
        arguments(&["publish", "--to", "zenoh:state"], &zenoh("peer", &endpoint)),
        b"{\"v\":true}\n",
    );
    published.expect_status(0);
    run.take_stdout(1);
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn a_dds_monitor_that_was_taken_for_gone_checks_every_message() {
    const COUNT: usize = 8000;
    let (folder, domain) = (Folder::new(), dds_domain());
    let network = [dds(&domain), ["--dds-lease", "1 s"].map(str::to_owned).into()].concat();
    let own = ["publish", "--to", "dds:state", "--rate", "2000", "--wait", "60", "--dds-history", "20000"];
    let mut publisher = start_rondel(arguments(&own, &network));
    let mut input = publisher.take_input();
    let writer = std::thread::spawn(move || {
        messages(0..COUNT).for_each(|message| writeln!(input, "{message}").unwrap());
        input
    });
    // Each number follows the one before: nothing is missing, nothing comes twice.
    let text = "topic state { n: int }\nproperty p = state.n == prev(state.n) + 1\n";
    let specification = folder.file("p.rondel", text);
    let own = ["run", &specification, "--emit", "every", "--topic", "dds:state", "--summary", "json"];
    let mut run = start_rondel(arguments(&own, &network));
    run.take_stdout(10);
    run.signal("STOP");
    // Longer than the lease, and than the publisher takes to notice.
    std::thread::sleep(Duration::from_secs(3));
    run.signal("CONT");
    run.wait_stderr("received again until");
    drop(writer.join().unwrap());
    let lines = std::iter::from_fn(|| run.stdout_within(QUIET)).filter(|l| l.contains("violated")).count();
    publisher.finish();
    run.terminate();
    let finished = run.finish();
    let summary = summary(&finished.stderr);
    let topic = &summary["topics"][0];
    assert!(topic["recovered"].as_u64().unwrap() > 0, "{summary}");
    assert!(lines <= 1, "{lines} gaps, {summary}");
    let outages = summary["outages"].as_array().unwrap();
    // Further messages may be missing.
    assert!(!outages.is_empty(), "{summary}");
    assert_eq!(finished.status, Some(5), "{}", finished.stderr);
    assert!(summary["received"].as_u64().unwrap() > COUNT as u64 - 500, "{summary}");
}
