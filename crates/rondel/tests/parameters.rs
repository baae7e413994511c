//! Parameters in addresses, `fleet/{robot}/pose`: in recordings of all forms, on Zenoh and on MQTT.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "../../rondel-net/tests/broker/mod.rs"]
mod broker;
mod support;

use std::io::Write as _;
use std::process::Stdio;

use broker::Broker;
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::process::Process;
use support::{Folder, rondel, rondel_with_input};

const SPEC: &str = "\
topic pose \"fleet/{robot}/pose\" { x: float }
topic speed \"fleet/{robot}/speed\" { value: float }
property slow for each robot in (pose.robot, speed.robot) = pose.x < 2 -> speed.value <= 0.5
property ours = on(pose) -> pose.robot in (\"r1\", \"r2\") and len(pose.robot) == 2
";

/// The topic, the time, the field and the value of messages: `r2` is violated at 3, and `r17` is not ours at 4.
const MESSAGES: [(&str, u32, &str, f64); 7] = [
    ("fleet/r1/pose", 0, "x", 1.0),
    ("fleet/r2/pose", 0, "x", 9.0),
    ("fleet/r1/speed", 1, "value", 0.25),
    ("fleet/r2/speed", 1, "value", 4.0),
    ("fleet/r1/battery", 2, "value", 100.0),
    ("fleet/r2/pose", 3, "x", 1.0),
    ("fleet/r17/pose", 4, "x", 9.0),
];

/// Whether the output names the two violations, and no other.
#[track_caller]
fn expect_violations(shown: &str) {
    let violated: Vec<&str> = shown.lines().filter(|line| line.contains("violated")).collect();
    assert_eq!(violated.len(), 2, "{shown}");
    assert!(violated.iter().any(|line| line.contains("slow") && line.contains("r2")), "{shown}");
    assert!(violated.iter().any(|line| line.contains("ours")), "{shown}");
}

#[test]
fn names_in_recordings_are_matched() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    let ordered =
        "specification: a.rondel\nzenoh: {}\nalignment: { policy: event_time }\nverdicts: { to: stdout }\n";
    let ordered = folder.file("d.yaml", ordered);
    let line = |(topic, time, field, value): &(&str, u32, &str, f64)| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"{field}\":{value},\"robot\":\"other\"}}\n")
    };
    let lines: String = MESSAGES.iter().map(line).collect();
    let cells = |(topic, time, field, value): &(&str, u32, &str, f64)| match *field {
        "x" => format!("{time},{topic},{value},\n"),
        _ => format!("{time},{topic},,{value}\n"),
    };
    let rows: String = MESSAGES.iter().map(cells).collect();
    let tap = |(topic, time, field, value): &(&str, u32, &str, f64)| {
        format!(
            "{{\"topic\":\"zenoh:{topic}\",\"time\":{time},\"arrival\":{time},\"data\":{{\"{field}\":{value}}}}}\n"
        )
    };
    for (name, text) in [
        ("flat.jsonl", lines.clone()),
        ("tap.jsonl", MESSAGES.iter().map(tap).collect()),
        ("slash.jsonl", lines.replace("\"fleet", "\"/fleet")),
        ("table.csv", format!("time,topic,x,value\n{rows}")),
    ] {
        let trace = folder.file(name, text);
        for more in [&[][..], &["--jobs", "2"]] {
            let said =
                rondel([&["check", &spec, &trace, "--emit", "violations", "--quiet"][..], more].concat());
            said.expect_status(1);
            expect_violations(&said.stdout);
        }
        // The same where messages are put in order.
        let said = rondel(["check", &ordered, &trace, "--emit", "violations", "--quiet"]);
        said.expect_status(1);
        expect_violations(&said.stdout);
    }
    // By the name of the topic, a parameter is a field of the message.
    let own = "{\"topic\":\"pose\",\"time\":0,\"robot\":\"r1\",\"x\":1}\n{\"topic\":\"speed\",\"time\":1,\"robot\":\"r1\",\"value\":3}\n";
    let trace = folder.file("own.jsonl", own);
    let said = rondel(["check", &spec, &trace, "--emit", "violations", "--quiet"]);
    said.expect_status(1);
    assert!(said.stdout.contains("r1") && said.stdout.lines().count() == 1, "{}", said.stdout);
}

#[test]
fn topics_of_recorded_messages_are_matched() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    for addresses in [
        &["zenoh:fleet/**"][..],
        &["zenoh:fleet/{robot}/pose", "zenoh:fleet/{robot}/speed", "zenoh:fleet/r1/battery"],
    ] {
        let endpoint = free_endpoint();
        let bag = folder.path(&format!("{}.mcap", addresses.len()));
        let own = [&["record", "--output", &bag, "--count", "7"], addresses].concat();
        let mut recording = Process::rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
        recording.wait_stderr("ready");
        publish_all(&zenoh("peer", &endpoint), &MESSAGES);
        recording.finish().expect_status(0);
        let said = rondel(["check", &spec, &bag, "--emit", "violations", "--quiet"]);
        said.expect_status(1);
        expect_violations(&said.stdout);
    }
}

/// Publishes the messages one after the other.
fn publish_all(network: &[String], messages: &[(&str, u32, &str, f64)]) {
    for (topic, _, field, value) in messages {
        let to = format!("zenoh:{topic}");
        let message = format!("{{\"{field}\":{value}}}\n");
        let said = rondel_with_input(
            arguments(&["publish", "--to", &to, "--wait", "30"], network),
            message.as_bytes(),
        );
        said.expect_status(0);
    }
}

#[test]
fn zenoh_is_asked_for_all_names() {
    let folder = Folder::new();
    let endpoint = free_endpoint();
    let spec = folder.file("a.rondel", SPEC);
    let more = ["--topic", "pose=zenoh:fleet/{robot}/pose", "--topic", "speed=zenoh:fleet/{robot}/speed"];
    let own =
        [&["run", &spec, "--publish", "stdout", "--emit", "violations", "--count", "6"], &more[..]].concat();
    let mut run = Process::rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    // Nobody asks for the battery, and its publisher would wait for somebody.
    let meant: Vec<_> = MESSAGES.into_iter().filter(|(topic, ..)| !topic.ends_with("battery")).collect();
    publish_all(&zenoh("peer", &endpoint), &meant);
    let finished = run.finish();
    finished.expect_status(0);
    expect_violations(&finished.stdout);
}

#[test]
fn recordings_are_replayed_under_their_names() {
    let folder = Folder::new();
    folder.file("a.rondel", SPEC);
    let endpoint = free_endpoint();
    let more = ["--topic", "pose=zenoh:fleet/{robot}/pose", "--topic", "speed=zenoh:fleet/{robot}/speed"];
    let spec = folder.path("a.rondel");
    let own =
        [&["run", &spec, "--publish", "stdout", "--emit", "violations", "--count", "6"], &more[..]].concat();
    let mut run = Process::rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    let line = |(topic, time, field, value): &(&str, u32, &str, f64)| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"data\":{{\"{field}\":{value}}}}}\n")
    };
    let trace = folder.file("a.jsonl", MESSAGES.iter().map(line).collect::<String>());
    let deployment = format!(
        "specification: a.rondel\nzenoh: {{ mode: peer, connect: {endpoint} }}\nverdicts: {{ to: stdout }}\n"
    );
    let deployment = folder.file("d.yaml", deployment);
    rondel(["replay", &deployment, &trace, "--as-fast-as-possible", "--wait", "60"]).expect_status(0);
    let finished = run.finish();
    finished.expect_status(0);
    expect_violations(&finished.stdout);
}

#[test]
fn brokers_are_asked_for_all_names() {
    let Some(broker) = Broker::start("brokers_are_asked_for_all_names") else { return };
    let folder = Folder::new();
    // Part of a segment: the filter delivers more than the address means.
    let spec = folder.file(
        "a.rondel",
        SPEC.replace("fleet/{robot}/pose", "fleet/r{robot}/pose")
            .replace("\"r1\", \"r2\"", "\"1\", \"2\"")
            .replace("== 2", "== 1")
            .replace("fleet/{robot}/speed", "fleet/r{robot}/speed"),
    );
    let deployment = format!(
        "specification: {spec}\nmqtt:\n  broker: 127.0.0.1:{}\nverdicts: {{ emit: violations, to: stdout }}\n",
        broker.port
    );
    let deployment = folder.file("rondel.yaml", deployment);
    let mut run = Process::rondel(["run", &deployment, "--count", "6"]);
    run.wait_stderr("ready");
    let others = [("fleet/s1/pose", 0, "x", 0.0), ("fleet/r/pose", 0, "x", 0.0)];
    for (topic, _, field, value) in others.into_iter().chain(MESSAGES) {
        let mut publishing = broker
            .client("mosquitto_pub", &["-q", "1", "-t", topic, "-l"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(publishing.stdin.take().unwrap(), "{{\"{field}\":{value}}}").unwrap();
        assert!(publishing.wait().unwrap().success());
    }
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["received 6, checked 6"]);
    let violated = finished.stdout.lines().filter(|line| line.contains("violated")).count();
    assert_eq!(violated, 2, "{}", finished.stdout);
}

#[test]
fn tests_write_parameters_as_fields() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        format!(
            "{SPEC}test \"dock\" {{\n  at 0 s pose {{ robot: \"r1\", x: 1 }}\n  at 1 s speed {{ robot: \"r2\", value: 3 }}\n  \
             expect slow never violated\n}}\ntest \"fast\" {{\n  at 0 s pose {{ robot: \"r1\", x: 1 }}\n  at 1 s speed {{ \
             robot: \"r1\", value: 3 }}\n  expect slow[\"r1\"] violated at 1 s\n}}\n"
        ),
    );
    rondel(["test", &spec]).expect_status(0);
}

#[test]
fn addresses_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let spec =
        folder.file("a.rondel", "topic pose \"fleet/{robot}/pose\" { x: float }\nproperty p = pose.x < 2\n");
    let plain =
        folder.file("b.rondel", "topic pose \"fleet/r1/pose\" { x: float }\nproperty p = pose.x < 2\n");
    for (spec, source, reason) in [
        (&spec, "zenoh:fleet/r1/pose", "has to have the parameters"),
        (&spec, "zenoh:fleet/{other}/pose", "has to have the parameters"),
        (&spec, "dds:fleet/pose", "only Zenoh and MQTT have wildcards"),
        (&plain, "mqtt:fleet/{robot}/pose", "write them in the specification too"),
    ] {
        let said = rondel(["run", spec, "--topic", source, "--publish", "stdout"]);
        said.expect_status(2);
        assert!(said.stderr.contains(reason), "{source}: {}", said.stderr);
    }
    let said = rondel(["run", &plain, "--topic", "zenoh:fleet/r1/pose", "--publish", "zenoh:a/{b}"]);
    said.expect_status(2);
    assert!(said.stderr.contains("has no parameters"), "{}", said.stderr);
    let deployment = "specification: a.rondel\nzenoh: {}\nrecord: { folder: out, before: 1 s, after: 1 s }\nverdicts: { to: stdout }\n";
    let said = rondel(["validate", &folder.file("d.yaml", deployment)]);
    said.expect_status(2);
    assert!(said.stderr.contains("cannot be recorded"), "{}", said.stderr);
}
