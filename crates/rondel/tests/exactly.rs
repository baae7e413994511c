//! Exactly once: a monitor that is killed at any time continues as if it had not been.

#![allow(clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use rondel_testkit::{Broker, LIMIT, Process, Random, fresh_seeds};
use support::network::arguments;
use support::{Folder, rondel, rondel_with_input, start_rondel};

/// Properties whose verdicts show every message that is missing or taken twice. None of them is decided by the wall
/// clock, which goes on while a monitor is dead.
const SPECIFICATION: &str = "topic state { t: time, n: int, id: int, v: bool }\n\
    property in_sequence = state.n == 0 or state.n - prev(state.n) == 1\n\
    property apart for each id in state.id = state.v or previously state.v\n\
    property soon = state.n % 5 == 0 -> eventually[0, 1 h] state.v\n\
    machine parity { initial even even -> odd when on(state) odd -> even when on(state) error odd }\n";

/// The message with this number.
fn message(n: usize) -> String {
    format!("{{\"t\":{}.{:03},\"n\":{n},\"id\":{},\"v\":{}}}\n", n / 1000, n % 1000, n % 7, n % 11 < 4)
}

/// A deployment that counts every message once.
fn deployment(folder: &Folder, broker: &Broker, version: &str, qos: u8) -> String {
    folder.file("p.rondel", SPECIFICATION);
    folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\ndurability: exactly\n\
             mqtt: {{ broker: 127.0.0.1:{}, client_id: monitor, clean_start: false, qos: {qos}, version: {version} }}\n\
             topics: {{ state: {{ source: mqtt:state, time: t }} }}\n\
             verdicts: {{ to: mqtt:verdict, emit: every }}\nalignment: {{ reports: mqtt:reports }}\n",
            broker.port
        ),
    )
}

fn monitor(deployment: &str, snapshot: &str) -> Process {
    start_rondel(["run", deployment, "--snapshot-to", snapshot, "--summary", "json"])
}

/// The same with a store of verdicts.
fn storing_monitor(deployment: &str, snapshot: &str, store: &str) -> Process {
    let run = ["run", deployment, "--snapshot-to", snapshot, "--store", store, "--summary", "json"];
    start_rondel(run)
}

/// Whether it is the verdict on an obligation that is open at the end: it stays open in a run.
fn is_open(line: &str) -> bool {
    line.contains("\"soon\"") && !line.contains("\"step\"")
}

/// Checks that a store has every verdict, and none twice.
fn check_store(store: &str, expected: &[&str]) {
    let id = |line: &str| {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        json["id"].as_str().unwrap().to_owned()
    };
    let sql = "SELECT lower(hex(id)) AS id FROM verdicts";
    let stored = rondel(["query", store, "--sql", sql, "--format", "json", "--limit", "10000000"]);
    let rows: Vec<String> = stored.expect_status(0).stdout.lines().map(id).collect();
    let distinct: HashSet<&String> = rows.iter().collect();
    assert_eq!(rows.len(), distinct.len(), "none is stored twice");
    let wanted: HashSet<String> = expected.iter().map(|line| id(line)).collect();
    assert!(rows.iter().all(|id| wanted.contains(id)), "no other is stored");
    let missing = expected.iter().filter(|line| !is_open(line) && !distinct.contains(&id(line)));
    assert_eq!(missing.count(), 0, "of {} verdicts", expected.len());
}

/// Prints what is published on topics.
fn reader(broker: &Broker, topics: &str) -> Process {
    let client = broker.client("mosquitto_sub", &["-q", "1", "-t", topics, "-d"]);
    let mut by_lines = Command::new("stdbuf");
    by_lines.arg("-oL").arg(client.get_program()).args(client.get_args());
    let mut reader = Process::start(by_lines);
    reader.wait_stdout("Subscribed");
    reader
}

/// Waits until every verdict has come that a run without a kill has, and no other. Returns how many these are, and how
/// many came again.
fn await_verdicts(reader: &mut Process, run: &mut Process, expected: &[&str]) -> (usize, usize) {
    let mut missing: HashSet<&str> = expected.iter().copied().filter(|line| !is_open(line)).collect();
    let all: HashSet<&str> = expected.iter().copied().collect();
    let deadline = Instant::now() + LIMIT;
    let (mut seen, mut repeats) = (HashSet::new(), 0);
    while !missing.is_empty() {
        let line = reader.stdout_within(deadline.saturating_duration_since(Instant::now()));
        let Some(line) = line else {
            let example = missing.iter().next().unwrap();
            panic!("{} verdicts are missing, such as {example}; {}", missing.len(), run.all_stderr_so_far());
        };
        if !line.starts_with('{') {
            continue;
        }
        assert!(all.contains(line.as_str()), "unexpected verdict: {line}");
        missing.remove(line.as_str());
        repeats += usize::from(!seen.insert(line));
    }
    (all.len(), repeats)
}

/// Publishes messages at so many a second while a monitor is killed so many times. Its verdicts must be those of a
/// run without a kill, repeated ones with the same id.
fn crashes(test: &str, seed: u64, version: &str, qos: u8, kills: usize, rate: usize) {
    let Some(broker) = Broker::start(test) else { return };
    let mut random = Random::new(seed);
    let folder = Folder::new();
    let deployment = deployment(&folder, &broker, version, qos);
    let snapshot = folder.path("state");
    let mut reader = reader(&broker, "verdict/#");
    // The broker keeps messages for a session only once it has subscribed.
    let store = folder.path("verdicts.db");
    let mut run = storing_monitor(&deployment, &snapshot, &store);
    run.wait_stderr("ready");
    let count = rate * kills / 4;
    let network = ["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)];
    let publish = ["publish", "--to", "mqtt:state", "--rate", &rate.to_string(), "--mqtt-qos", "1"];
    let publish = arguments(&publish, &network);
    let input: String = (0..count).map(message).collect();
    let recording = folder.file("recording.jsonl", &input);
    let publishing =
        std::thread::spawn(move || rondel_with_input(publish, input.as_bytes()).expect_status(0).status);
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(random.below(250)));
        run.kill();
        run = storing_monitor(&deployment, &snapshot, &store);
        if random.below(5) > 0 {
            run.wait_stderr("ready");
        }
    }
    publishing.join().unwrap();
    let mut checked = rondel(["check", &deployment, &recording, "--emit", "every", "--format", "json"]);
    checked.stderr = checked.stderr.replace(',', "");
    let expected: Vec<&str> = checked.stdout.lines().collect();
    assert!(expected.len() > 3 * count, "{}", checked.stderr);
    let (all, repeats) = await_verdicts(&mut reader, &mut run, &expected);
    run.terminate();
    let finished = run.finish();
    eprintln!("{test} MQTT {version}, QoS {qos}: {count} messages, {all} verdicts, {repeats} repeated");
    finished.expect_status(0);
    check_store(&store, &expected);
    let summary = finished.stderr.lines().rev().find(|line| line.starts_with('{')).unwrap();
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    for property in summary["properties"].as_array().unwrap() {
        let name = property["property"].as_str().unwrap();
        let violated = format!("\"property\":\"{name}\",");
        let expected = checked.stderr.lines().find(|line| line.contains(&format!("  {name} "))).unwrap_or("");
        let times = property["violations"].as_u64().unwrap();
        assert!(
            times == 0 && !expected.contains("violated")
                || expected.contains(&format!("violated {times} time")),
            "{violated} {times} times, and a run without a kill says {expected}"
        );
    }
}

#[test]
fn a_monitor_that_is_killed_at_any_time_misses_nothing_at_qos_1() {
    let test = "a_monitor_that_is_killed_at_any_time_misses_nothing_at_qos_1";
    fresh_seeds(test, 1).for_each(|seed| crashes(test, seed, "5", 1, 5, 2000));
}

#[test]
fn a_monitor_that_is_killed_at_any_time_misses_nothing_at_qos_2() {
    let test = "a_monitor_that_is_killed_at_any_time_misses_nothing_at_qos_2";
    fresh_seeds(test, 1).for_each(|seed| crashes(test, seed, "5", 2, 5, 2000));
}

/// A snapshot that cannot be written, by a disk that is full or in a folder that is gone, keeps messages with the broker.
/// With `durability: snapshot`: the broker keeps what is published between two runs, if the first one ended in order.
#[test]
fn messages_kept_by_the_broker_between_two_runs_are_checked() {
    let Some(broker) = Broker::start("messages_kept_by_the_broker_between_two_runs_are_checked") else {
        return;
    };
    let folder = Folder::new();
    let file = deployment(&folder, &broker, "5", 1);
    let text = std::fs::read_to_string(&file).unwrap().replace("durability: exactly", "durability: snapshot");
    let file = folder.file("rondel.yaml", text);
    let snapshot = folder.path("state");
    let publish = |numbers: std::ops::Range<usize>| {
        let network = ["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)];
        let publish = arguments(&["publish", "--to", "mqtt:state", "--mqtt-qos", "1"], &network);
        let input: String = numbers.map(message).collect();
        rondel_with_input(publish, input.as_bytes()).expect_status(0);
    };
    let start = || {
        let kept = ["--resume", &snapshot, "--snapshot-to", &snapshot, "--snapshot-every", "1"];
        let mut run =
            start_rondel([&["run", &file, "--summary", "json", "--count", "10"], &kept[..]].concat());
        run.wait_stderr("ready");
        run
    };
    let summary = |run: Process| -> serde_json::Value {
        let finished = run.finish();
        let line = finished.stderr.lines().rev().find(|line| line.starts_with('{')).unwrap().to_owned();
        serde_json::from_str(&line).unwrap()
    };
    let withheld = |summary: &serde_json::Value| {
        let properties = summary["properties"].as_array().unwrap();
        properties.iter().any(|property| property["withheld"].as_u64().is_some())
    };
    let first = start();
    publish(0..10);
    assert!(!withheld(&summary(first)));
    publish(10..20);
    let second = summary(start());
    assert_eq!(second["pauses"][0]["cause"], "restart", "{second}");
    assert!(!withheld(&second), "{second}");
    // A snapshot of a run that is killed is older than what it had acknowledged.
    let mut third = start();
    publish(20..25);
    let deadline = Instant::now() + LIMIT;
    let written = || std::fs::metadata(&snapshot).and_then(|file| file.modified()).unwrap();
    let before = written();
    while written() == before && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    third.kill();
    drop(third);
    let fourth = start();
    publish(25..35);
    let fourth = summary(fourth);
    assert!(withheld(&fourth), "{fourth}");
}

#[test]
fn nothing_is_acknowledged_while_the_snapshot_cannot_be_written() {
    let test = "nothing_is_acknowledged_while_the_snapshot_cannot_be_written";
    let Some(broker) = Broker::start(test) else { return };
    let folder = Folder::new();
    let deployment = deployment(&folder, &broker, "5", 1);
    let mut verdicts = reader(&broker, "verdict/#");
    let mut reports = reader(&broker, "reports");
    std::fs::create_dir(folder.path("states")).unwrap();
    let snapshot = folder.path("states/state");
    // Files of at most 16 KiB; without the signal, writing fails as it does on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, support::RONDEL, "run", &deployment, "--snapshot-to", &snapshot]);
    let mut run = Process::start(command);
    run.wait_stderr("ready");
    let network = ["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)];
    let publish = |numbers: std::ops::Range<usize>| {
        let input: String = numbers.map(message).collect();
        let publish = arguments(&["publish", "--to", "mqtt:state"], &network);
        rondel_with_input(publish, input.as_bytes()).expect_status(0);
    };
    // The marks of 3,000 messages alone are larger.
    publish(0..3000);
    // Reported once: on a busy machine the verdicts before it may not be accepted in time, at first.
    let line = run.wait_stderr("cannot write the snapshot");
    assert!(line.contains("File too large") || line.contains("not accepted in time"), "{line}");
    assert!(line.contains("not acknowledged before it is written"), "{line}");
    let report = reports.wait_stdout("\"report\":\"unsaved\"");
    assert!(report.contains("\"acknowledged\":false"), "{report}");
    run.terminate();
    run.finish().expect_status(3).expect_stderr(&["cannot write the last snapshot: File too large"]);
    // A folder that is gone for a while.
    let mut run = monitor(&deployment, &snapshot);
    run.wait_stderr("ready");
    std::fs::rename(folder.path("states"), folder.path("gone")).unwrap();
    publish(3000..3100);
    run.wait_stderr("cannot write the snapshot");
    run.kill();
    std::fs::rename(folder.path("gone"), folder.path("states")).unwrap();
    let mut run = monitor(&deployment, &snapshot);
    run.wait_stderr("ready");
    std::fs::rename(folder.path("states"), folder.path("gone")).unwrap();
    publish(3100..3200);
    run.wait_stderr("cannot write the snapshot");
    std::fs::rename(folder.path("gone"), folder.path("states")).unwrap();
    run.wait_stderr("is written again");
    let recording = folder.file("recording.jsonl", (0..3200).map(message).collect::<String>());
    let checked = rondel(["check", &deployment, &recording, "--emit", "every", "--format", "json"]);
    let expected: Vec<&str> = checked.stdout.lines().collect();
    await_verdicts(&mut verdicts, &mut run, &expected);
    run.terminate();
    run.finish().expect_status(0);
    // A snapshot that is damaged stops the next run before it takes a message.
    let whole = std::fs::read(&snapshot).unwrap();
    let start = || rondel(["run", &deployment, "--snapshot-to", &snapshot]);
    std::fs::write(&snapshot, &whole[..whole.len() / 2]).unwrap();
    start().expect_status(2).expect_stderr(&["cannot resume from", "it was truncated or extended"]);
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    std::fs::write(&snapshot, &altered).unwrap();
    start().expect_status(2).expect_stderr(&["cannot resume from", "was altered"]);
    std::fs::write(&snapshot, "").unwrap();
    start().expect_status(2).expect_stderr(&["cannot resume from", "this is not a snapshot"]);
}

/// The thread that waits for the next snapshot is woken when the run ends.
#[test]
fn a_run_ends_at_once_when_its_next_snapshot_is_due_much_later() {
    let Some(broker) = Broker::start("a_run_ends_at_once_when_its_next_snapshot_is_due_much_later") else {
        return;
    };
    let folder = Folder::new();
    let file = deployment(&folder, &broker, "5", 1);
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("durability: exactly", "durability: { level: exactly, every: 1 min }");
    let file = folder.file("rondel.yaml", text);
    let mut run = monitor(&file, &folder.path("state"));
    run.wait_stderr("ready");
    let began = Instant::now();
    run.terminate();
    run.finish().expect_status(0);
    assert!(began.elapsed() < Duration::from_secs(30), "it waits for the next snapshot");
}

#[test]
fn settings_that_cannot_keep_the_promise_are_refused() {
    let folder = Folder::new();
    let write = |durability: &str, mqtt: &str| {
        let text = format!(
            "formula: v\ndurability: {durability}\nmqtt: {{ broker: 127.0.0.1:1, {mqtt} }}\n\
             topics: {{ trace: {{ source: mqtt:state, time: t }} }}\n"
        );
        folder.file("rondel.yaml", text)
    };
    let kept = "client_id: a, clean_start: false";
    for (durability, mqtt, part) in [
        ("exactly", "qos: 1", "needs `clean_start: false` and a `client_id`"),
        (
            "exactly",
            "client_id: a, clean_start: false, qos: 0",
            "needs `qos: 1` or `qos: 2` for topic 'trace'",
        ),
        ("always", kept, "must be none, snapshot or exactly"),
        ("{ level: none, every: 1 s }", kept, "`every` belongs to `level: exactly`"),
        ("{ mode: exactly }", kept, "write `level`"),
    ] {
        rondel(["validate", &write(durability, mqtt)]).expect_status(2).expect_stderr(&[part]);
    }
    let run = |durability: &str, more: &[&str]| {
        let deployment = write(durability, kept);
        rondel([&["run", &deployment, "--exit-on-unreachable"], more].concat())
    };
    run("exactly", &[]).expect_status(2).expect_stderr(&["add --snapshot-to FILE"]);
    run("snapshot", &[]).expect_status(2).expect_stderr(&["add --snapshot-to FILE"]);
    let to = folder.path("state");
    run("none", &["--snapshot-to", &to]).expect_status(2).expect_stderr(&["leave --snapshot-to out"]);
    let nowhere = folder.path("nowhere/state");
    let refused = run("{ level: exactly, every: 50 ms }", &["--snapshot-to", &nowhere]);
    refused.expect_status(3).expect_stderr(&["cannot write the snapshot", "No such file or directory"]);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_kills() {
    for (version, qos) in [("5", 1), ("5", 2), ("3.1.1", 1), ("3.1.1", 2)] {
        fresh_seeds("two_hundred_kills", 1)
            .for_each(|seed| crashes("two_hundred_kills", seed, version, qos, 50, 1000));
    }
}
