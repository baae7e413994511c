//! Consumers that stop where `then: spool` is set: monitoring goes on, and they get every verdict afterwards, in order.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::stopped::{SPECIFICATION, end, publishing, tap};
use crate::support::network::{dds, dds_domain};
use crate::support::{Folder, RONDEL, start_rondel};
use rondel_testkit::{Broker, LIMIT, Process};

const COUNT: usize = 3000;

/// A deployment that keeps verdicts for consumers that are slow for a second.
fn deployment(folder: &Folder, network: &str, settings: &str, to: &str, limit: &str) -> String {
    folder.file("p.rondel", SPECIFICATION);
    let text = format!(
        "specification: p.rondel\n{settings}\ntopics: {{ state: {network}:state }}\n\
         verdicts: {{ emit: every, to: \"{to}\" }}\nlimits: {{ resend: 0 }}\n\
         slow_consumer: {{ wait: 1 s, then: spool, limit: {limit}, directory: kept }}\n"
    );
    folder.file("rondel.yaml", text)
}

fn run(deployment: &str) -> Process {
    let mut run = start_rondel(["run", deployment, "--summary", "json"]);
    run.wait_stderr("ready");
    run
}

/// A consumer on DDS, and a run that takes messages once it has subscribed, as earlier verdicts would be lost.
fn run_for_tap(deployment: &str, options: &[String]) -> (Process, Process) {
    let consumer = tap("dds", options);
    let own = ["run", deployment, "--summary", "json", "--wait-subscribers", "60"];
    let mut run = start_rondel(own);
    run.wait_stderr("ready");
    (run, consumer)
}

fn step(line: &str) -> u64 {
    let verdict: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line}"));
    let verdict = if verdict["data"].is_object() { &verdict["data"] } else { &verdict };
    verdict["step"].as_u64().unwrap()
}

/// The files in which verdicts wait.
fn files(folder: &Folder) -> usize {
    std::fs::read_dir(folder.as_path().join("kept")).unwrap().count()
}

/// Takes verdicts from a consumer until it has so many different steps, in the order in which they came, or until no
/// more come.
fn take_steps(consumer: &mut Process, count: usize, steps: &mut Vec<u64>) {
    let mut different: BTreeSet<u64> = steps.iter().copied().collect();
    while different.len() < count
        && let Some(line) = consumer.stdout_within(LIMIT)
    {
        different.insert(step(&line));
        steps.push(step(&line));
    }
}

/// Fails with the steps that never came, at most 20 of them, and the summary of the monitor.
#[track_caller]
fn assert_all_came(steps: &[u64], count: usize, summary: &Value) {
    let different: BTreeSet<u64> = steps.iter().copied().collect();
    let missing: Vec<u64> = (0..count as u64).filter(|step| !different.contains(step)).take(20).collect();
    assert!(missing.is_empty(), "{} of {count} came, not {missing:?}: {summary}", different.len());
}

#[test]
fn a_stopped_dds_consumer_gets_every_verdict_when_resumed() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let settings = format!("dds: {{ domain: {domain}, interface: lo }}");
    let deployment = deployment(&folder, "dds", &settings, "dds:verdict", "64 MiB");
    let (mut run, mut stopped) = run_for_tap(&deployment, &dds(&domain));
    let publisher = publishing("dds:state", &["--rate", "2000"], &dds(&domain), COUNT);
    let first = step(&stopped.take_stdout(1)[0]);
    stopped.signal("STOP");
    run.wait_stderr("a consumer does not accept verdicts; they are kept in");
    publisher.join().unwrap().expect_status(0);
    stopped.signal("CONT");
    let mut steps: Vec<u64> = (0..=first).collect();
    take_steps(&mut stopped, COUNT, &mut steps);
    run.wait_stderr("the consumer accepts verdicts again");
    let (_, status, summary) = end(run);
    assert_all_came(&steps, COUNT, &summary);
    assert!(steps.is_sorted_by(|a, b| a < b), "verdicts came twice or out of order");
    assert_eq!(
        (status, &summary["received"], &summary["dropped"]),
        (Some(0), &COUNT.into(), &0.into()),
        "{summary}"
    );
    assert_eq!(
        (&summary["spooled"][0]["sink"], &summary["spooled"][0]["waiting"]),
        (&"dds:verdict".into(), &0.into())
    );
    assert!(summary["spooled"][0]["kept"].as_u64().unwrap() > 100, "{summary}");
    assert_eq!(files(&folder), 0);
}

#[test]
fn next_run_publishes_verdicts_that_a_stopped_dds_consumer_did_not_acknowledge() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let settings = format!("dds: {{ domain: {domain}, interface: lo }}");
    let deployment = deployment(&folder, "dds", &settings, "dds:verdict", "64 MiB");
    // Few enough that none is refused, and so many that some are.
    for (count, rate, is_refused) in [(20, "50", false), (COUNT, "2000", true)] {
        let (first, mut stopped) = run_for_tap(&deployment, &dds(&domain));
        let publisher = publishing("dds:state", &["--rate", rate], &dds(&domain), count);
        let begin = step(&stopped.take_stdout(1)[0]);
        stopped.signal("STOP");
        publisher.join().unwrap().expect_status(0);
        let (_, status, summary) = end(first);
        let (spooled, count) = (&summary["spooled"][0], count as u64);
        assert_eq!((status, &summary["dropped"]), (Some(5), &0.into()), "{summary}");
        let unconfirmed = spooled["unconfirmed"].as_u64().unwrap();
        assert!(unconfirmed > 0 && is_refused == (spooled["kept"].as_u64().unwrap() > 0), "{summary}");
        assert_eq!(files(&folder), 1);
        let mut second = run(&deployment);
        stopped.signal("CONT");
        let mut steps = (0..=begin).collect();
        take_steps(&mut stopped, count as usize, &mut steps);
        second.wait_stderr("the consumer accepts verdicts again");
        let (_, status, summary) = end(second);
        assert_all_came(&steps, count as usize, &summary);
        assert_eq!((status, files(&folder)), (Some(0), 0), "{summary}");
        assert_eq!(summary["spooled"][0]["earlier"], spooled["waiting"], "{summary}");
    }
}

#[test]
fn delivered_and_dropped_verdicts_add_up_at_the_limit() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let settings = format!("dds: {{ domain: {domain}, interface: lo }}");
    let deployment = deployment(&folder, "dds", &settings, "dds:verdict", "256 KiB");
    let (mut run, mut stopped) = run_for_tap(&deployment, &dds(&domain));
    let publisher = publishing("dds:state", &["--rate", "2000"], &dds(&domain), COUNT);
    let begin = step(&stopped.take_stdout(1)[0]);
    stopped.signal("STOP");
    run.wait_stderr("is full with");
    publisher.join().unwrap().expect_status(0);
    stopped.signal("CONT");
    let said = run.wait_stderr("the consumer accepts verdicts again").replace(',', "");
    let dropped = said.strip_suffix(" dropped").and_then(|said| said.rsplit(' ').next()?.parse::<u64>().ok());
    let delivered = COUNT as u64 - dropped.unwrap_or_else(|| panic!("no number in {said}"));
    let mut steps = (0..=begin).collect();
    take_steps(&mut stopped, delivered as usize, &mut steps);
    run.terminate();
    let finished = run.finish();
    let summary = finished.stderr.lines().rev().find(|line| line.starts_with('{')).unwrap();
    let summary: Value = serde_json::from_str(summary).unwrap();
    assert_eq!((&summary["received"], &summary["dropped"]), (&COUNT.into(), &dropped.into()), "{summary}");
    assert_eq!(summary["verdicts"], delivered, "{summary}");
    assert_eq!(steps.iter().collect::<BTreeSet<_>>().len() as u64, delivered, "{summary}");
    // Refused verdicts are said to be kept, by one voice.
    assert!(!finished.stderr.contains("they are dropped"), "{}", finished.stderr);
    assert_eq!((finished.status, files(&folder)), (Some(5), 0));
}

#[test]
fn a_dds_consumer_with_an_expired_lease_gets_unacknowledged_verdicts() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let settings = format!("dds: {{ domain: {domain}, interface: lo }}");
    let deployment = deployment(&folder, "dds", &settings, "dds:verdict", "64 MiB");
    // Long enough for a busy machine.
    let lease = ["--dds-lease", "4 s"].map(str::to_owned);
    let short: Vec<String> = dds(&domain).into_iter().chain(lease).collect();
    let (mut run, mut stopped) = run_for_tap(&deployment, &short);
    let publisher = publishing("dds:state", &["--rate", "10"], &dds(&domain), 60);
    let begin = step(&stopped.take_stdout(1)[0]);
    stopped.signal("STOP");
    run.wait_stderr("a consumer was lost that has not confirmed");
    publisher.join().unwrap().expect_status(0);
    stopped.signal("CONT");
    let mut steps = (0..=begin).collect();
    take_steps(&mut stopped, 60, &mut steps);
    run.wait_stderr("the consumer accepts verdicts again");
    let (_, _, summary) = end(run);
    assert_all_came(&steps, 60, &summary);
    assert_eq!((&summary["dropped"], files(&folder)), (&0.into(), 0), "{summary}");
}

#[test]
fn a_frozen_broker_gets_every_verdict_from_this_run_or_the_next() {
    let test = "a_frozen_broker_gets_every_verdict_from_this_run_or_the_next";
    // The messages come over another one.
    let (Some(mut broker), (folder, domain)) = (Broker::start(test), (Folder::new(), dds_domain())) else {
        return;
    };
    let settings = format!(
        "dds: {{ domain: {domain}, interface: lo }}\nmqtt: {{ broker: \"127.0.0.1:{}\", version: 5 }}",
        broker.port
    );
    let deployment = deployment(&folder, "dds", &settings, "mqtt:verdict", "4 MiB");
    let mut first = run(&deployment);
    broker.freeze();
    publishing("dds:state", &["--rate", "2000"], &dds(&domain), COUNT).join().unwrap().expect_status(0);
    first.wait_stderr("mqtt%3Averdict.spool is full");
    let (_, status, summary) = end(first);
    assert_eq!((status, &summary["received"]), (Some(5), &COUNT.into()), "{summary}");
    let count = |value: &Value| value.as_u64().unwrap();
    let spooled = &summary["spooled"][0];
    // Together with those that the broker has not confirmed.
    let (kept, dropped) = (count(&spooled["waiting"]), count(&summary["dropped"]));
    assert_eq!(kept, count(&spooled["kept"]) + count(&spooled["unconfirmed"]), "{summary}");
    assert_eq!((kept + dropped, &summary["unconfirmed"]), (COUNT as u64, &json!([])), "{summary}");
    assert!(kept > 500 && dropped > 500 && count(&spooled["unconfirmed"]) > 10, "{summary}");
    assert_eq!(files(&folder), 1);
    // The broker is there again, and a reader: the next run publishes what waits.
    broker.kill();
    broker.resume();
    let number = kept.to_string();
    let mut reader = broker
        .client(
            "mosquitto_sub",
            &["-q", "1", "-t", "verdict", "-t", "ready", "-C", &(kept + 1).to_string(), "-W", "60"],
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    // It has subscribed when its own retained message comes.
    let published = broker.client("mosquitto_pub", &["-t", "ready", "-r", "-m", "{}"]).status().unwrap();
    assert!(published.success());
    assert_eq!(lines.next().unwrap().unwrap(), "{}");
    let mut second = start_rondel(["run", &deployment, "--summary", "json"]);
    let line = second.wait_stderr("of an earlier run wait in");
    assert!(line.replace(',', "").contains(&number), "{line}");
    let steps: Vec<u64> = lines.map(|line| step(&line.unwrap())).collect();
    assert_eq!(steps.len() as u64, kept);
    assert!(steps.is_sorted() && steps[0] == 0, "{steps:?}");
    reader.wait().unwrap();
    second.wait_stderr("the consumer accepts verdicts again");
    let (_, status, summary) = end(second);
    assert_eq!((status, &summary["spooled"][0]["published"]), (Some(0), &kept.into()), "{summary}");
    assert_eq!(files(&folder), 0);
}

#[test]
fn a_damaged_verdict_is_counted_and_the_others_come() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let settings = format!("dds: {{ domain: {domain}, interface: lo }}");
    let deployment = deployment(&folder, "dds", &settings, "stdout", "64 MiB");
    let run = |stdout| {
        let mut command = Command::new(RONDEL);
        command.args(["run", &deployment, "--format", "json", "--summary", "json"]);
        command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (unread, writer) = std::io::pipe().unwrap();
    let mut first = run(Stdio::from(writer));
    let mut stderr = BufReader::new(first.stderr.take().unwrap()).lines().map(Result::unwrap);
    stderr.find(|line| line.contains("ready")).unwrap();
    publishing("dds:state", &["--rate", "2000"], &dds(&domain), COUNT).join().unwrap().expect_status(0);
    stderr.find(|line| line.contains("they are kept in")).unwrap();
    assert!(Command::new("kill").args(["-TERM", &first.id().to_string()]).status().unwrap().success());
    let summary: Value = serde_json::from_str(&stderr.find(|line| line.starts_with('{')).unwrap()).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(5), "{summary}");
    drop(unread);
    let waiting = summary["spooled"][0]["waiting"].as_u64().unwrap();
    assert!(waiting > 100, "{summary}");
    let file = std::fs::read_dir(folder.as_path().join("kept")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();

    let mut second = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
    second.wait_stderr("is damaged: at least 1 verdict of it is lost");
    let steps: Vec<u64> = second.take_stdout(waiting as usize - 1).iter().map(|line| step(line)).collect();
    assert!(steps.is_sorted(), "{steps:?}");
    second.wait_stderr("the consumer accepts verdicts again");
    let (_, status, summary) = end(second);
    let spooled = &summary["spooled"][0];
    assert_eq!(
        (status, &spooled["earlier"], &spooled["damaged"], &summary["dropped"]),
        (Some(5), &(waiting - 1).into(), &1.into(), &1.into()),
        "{summary}"
    );
    assert_eq!(files(&folder), 0);
}

#[test]
fn standard_output_without_a_reader_for_a_while_has_every_verdict() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let settings = format!("dds: {{ domain: {domain}, interface: lo }}");
    let deployment = deployment(&folder, "dds", &settings, "stdout", "64 MiB");
    let mut run = Command::new(RONDEL)
        .args(["run", &deployment, "--format", "json", "--summary", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = run.stdout.take().unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut wait =
        |part: &str| stderr.find(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part}"));
    wait("ready");
    publishing("dds:state", &["--rate", "2000"], &dds(&domain), COUNT).join().unwrap().expect_status(0);
    wait("they are kept in");
    let mut lines = BufReader::new(unread).lines().map(Result::unwrap);
    let steps: Vec<u64> = lines.by_ref().take(COUNT).map(|line| step(&line)).collect();
    assert!(steps.iter().copied().eq(0..COUNT as u64), "verdicts are missing or out of order");
    wait("the consumer accepts verdicts again");
    let status = Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    assert!(status.success());
    let summary: Value = serde_json::from_str(&wait("{\"")).unwrap();
    assert_eq!((&summary["received"], &summary["dropped"]), (&COUNT.into(), &0.into()), "{summary}");
    assert_eq!(run.wait().unwrap().code(), Some(0), "{summary}");
    assert_eq!((lines.next(), files(&folder)), (None, 0));
}
