//! Messages that come in the wrong order, on a real network: checked in order, put into sets, reported.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_testkit::Process;
use support::network::{arguments, free_endpoint, zenoh};
use support::{Folder, rondel, rondel_with_input, start_rondel};

const SPECIFICATION: &str = "topic gear { report: int }\ntopic speed { v: float }\n\
    @time(dense) property at_standstill = changed(gear.report) -> speed.v < 0.1\n";

/// Publishes these lines on a topic and waits until they are on their way.
#[track_caller]
fn publish(endpoint: &str, topic: &str, lines: &str) {
    let own = ["publish", "--to", topic, "--wait", "60"];
    rondel_with_input(arguments(&own, &zenoh("client", endpoint)), lines.as_bytes()).expect_status(0);
}

/// A run of this deployment, which listens as a router.
fn run(folder: &Folder, endpoint: &str, deployment: &str) -> Process {
    folder.file("vehicle.rondel", SPECIFICATION);
    let text = format!("zenoh: {{ mode: router, listen: {endpoint} }}\n{deployment}");
    let file = folder.file("rondel.yaml", text);
    let mut run = start_rondel(["run", &file, "--format", "json"]);
    run.wait_stderr("ready");
    run
}

const TOPICS: &str = "specification: vehicle.rondel\n\
    topics:\n  gear: { source: zenoh:t/gear, time: t }\n  speed: { source: zenoh:t/speed, time: t }\n";

/// The gear changes at 2, after the vehicle stopped at 1; but the message of that comes after that of the gear.
const GEAR: &str = "{\"t\":0,\"report\":1}\n{\"t\":2,\"report\":2}\n{\"t\":4,\"report\":2}\n";
const SPEED: &str = "{\"t\":0,\"v\":9}\n{\"t\":1,\"v\":0}\n{\"t\":5,\"v\":7}\n";

#[test]
fn in_the_order_of_their_times() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut run =
        run(&folder, &endpoint, &format!("{TOPICS}alignment: {{ max_wait: none, absent_after: never }}\n"));
    publish(&endpoint, "zenoh:t/gear", GEAR);
    publish(&endpoint, "zenoh:t/speed", SPEED);
    let lines = run.take_stdout(2);
    assert!(lines[0].contains("inconclusive") && lines[1].contains("satisfied"), "{lines:?}");
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0);
    assert!(!finished.stdout.contains("violated"), "{}", finished.stdout);
}

#[test]
fn evaluation_on_arrival_would_report_a_violation() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut run = run(&folder, &endpoint, &format!("{TOPICS}alignment: {{ policy: arrival }}\n"));
    publish(&endpoint, "zenoh:t/speed", "{\"t\":0,\"v\":9}\n");
    publish(&endpoint, "zenoh:t/gear", GEAR);
    publish(&endpoint, "zenoh:t/speed", SPEED);
    run.wait_stdout("violated");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["times going backwards"]);
}

#[test]
fn late_messages_are_reported() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let reports = "alignment: { max_wait: 1 ms, late: drop, reports: stdout }\n";
    let mut run = run(&folder, &endpoint, &format!("{TOPICS}{reports}"));
    publish(&endpoint, "zenoh:t/gear", "{\"t\":10,\"report\":1}\n{\"t\":20,\"report\":2}\n");
    // Once the clock has let the first gear go, an earlier speed is too late.
    run.wait_stdout("inconclusive");
    publish(&endpoint, "zenoh:t/speed", "{\"t\":9,\"v\":1}\n{\"t\":30,\"v\":1}\n");
    let line = run.wait_stdout("\"report\":\"late\"");
    let report: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&report["report"], &report["topic"]), (&"late".into(), &"speed".into()));
    assert!(report["excess"].as_f64().unwrap() >= 1.0 && report["policy"] == "drop", "{line}");
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["speed: 1 late", "would have sufficed", "1 of them dropped"]);
}

#[test]
fn progress_makes_waiting_needless() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let progress = "alignment: { max_wait: none, absent_after: never, progress: zenoh:t/progress }\n";
    let mut run = run(&folder, &endpoint, &format!("{TOPICS}{progress}"));
    publish(&endpoint, "zenoh:t/gear", "{\"t\":10,\"report\":1}\n");
    // Nothing of speed ever comes; its publisher says that there was nothing up to 11.
    publish(&endpoint, "zenoh:t/progress", "{\"topic\":\"speed\",\"complete\":11}\n");
    run.wait_stdout("inconclusive");
    publish(&endpoint, "zenoh:t/progress", "{\"topic\":\"spede\",\"complete\":11}\n");
    run.wait_stderr("a progress marker could not be used");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["1 marker that could not be used"]);
}

#[test]
fn a_synchronizer_makes_one_message_of_each_set() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let deployment = "synchronize: { to: stdout }\n\
        topics:\n  gear: { source: zenoh:t/gear, time: t }\n  speed: { source: zenoh:t/speed, time: t }\n\
        alignment: { policy: exact }\n";
    let mut run = run(&folder, &endpoint, deployment);
    publish(&endpoint, "zenoh:t/gear", GEAR);
    publish(&endpoint, "zenoh:t/speed", "{\"t\":2, \"v\":9}\n{\"t\":3,\"v\":0}\n{\"t\":4,\"v\":7}\n");
    let lines = run.take_stdout(2);
    assert_eq!(
        lines,
        [
            r#"{"time":2,"gear":{"t":2,"report":2},"speed":{"t":2, "v":9}}"#,
            r#"{"time":4,"gear":{"t":4,"report":2},"speed":{"t":4,"v":7}}"#
        ]
    );
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&[
        "sets 2",
        "gear: 1 in no set (older)",
        "speed: 1 in no set (older)",
    ]);
}

#[test]
fn steps_number_all_messages_whatever_a_group_reads() {
    let folder = Folder::new();
    let text = "topic a \"a\" { v: int }\ntopic b \"b\" { w: int }\nproperty steps = a.v < 4\n\
                property dense = age(b) <= 2 s\nproperty large = b.w < 3\n";
    let spec = folder.file("same.rondel", text);
    let yaml = "specification: same.rondel\ntopics:\n  a: { source: \"mqtt:a\", time: time }\n  \
                b: { source: \"mqtt:b\", time: time }\nmqtt: { broker: \"127.0.0.1:1\" }\nverdicts: { to: [stdout] }\n";
    let aligned = folder.file("two.yaml", yaml);
    let line = |time: u32, topic: &str, field: &str, value: u32| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"{field}\":{value}}}\n")
    };
    let times = [0, 1, 2, 6, 7, 8];
    let both = |(value, time): (u32, &u32)| line(*time, "a", "v", value) + &line(*time, "b", "w", value);
    let trace = folder.file("same.jsonl", (0..).zip(&times).map(both).collect::<String>());
    let steps = |file: &str| {
        let checked = rondel(["check", "--format", "json", "-e", "every", "--summary", "json", file, &trace]);
        let verdict = |line: &str| -> Option<(String, u64, String)> {
            let verdict: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| verdict[name].as_str().map(str::to_owned);
            Some((text("property")?, verdict["step"].as_u64()?, text("verdict")?))
        };
        let summary = checked.stderr.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
        let first: Vec<_> =
            summary["properties"].as_array().unwrap().iter().map(|p| p["first"].clone()).collect();
        (checked.stdout.lines().filter_map(verdict).collect::<Vec<_>>(), first)
    };
    let ((direct, first), (grouped, first_grouped)) = (steps(&spec), steps(&aligned));
    assert_eq!(first_grouped, first);
    // Every verdict at a message of a group is one at the same message without groups.
    assert!(grouped.len() > times.len(), "{grouped:?}");
    for verdict in &grouped {
        assert!(direct.contains(verdict), "{verdict:?} {direct:?}");
    }
}

/// Elements of arrays as parameters: the program has a topic for them that no network has.
#[test]
fn elements_of_arrays_are_parameters_with_every_policy() {
    let folder = Folder::new();
    folder.file(
        "arm.rondel",
        "topic joints { name: [string], position: [float] }\ntopic speed { v: float }\n\
         property limits for each j in joints.name = joints.position[name == j] <= 3.1\n\
         property slow = speed.v < 10\n",
    );
    let trace = folder.file(
        "arm.jsonl",
        "{\"topic\":\"joints\",\"stamp\":0,\"name\":[\"a\",\"b\"],\"position\":[1,2]}\n\
         {\"topic\":\"speed\",\"stamp\":0.001,\"v\":1}\n\
         {\"topic\":\"joints\",\"stamp\":1,\"name\":[\"b\",\"a\"],\"position\":[3.2,2]}\n\
         {\"topic\":\"speed\",\"stamp\":1.001,\"v\":1}\n",
    );
    for policy in ["event_time", "approximate", "latest", "arrival"] {
        let deployment = format!(
            "specification: arm.rondel\nzenoh: {{}}\ntopics:\n  \
             joints: {{ source: \"zenoh:joints\", time: stamp }}\n  \
             speed: {{ source: \"zenoh:speed\", time: stamp }}\n\
             alignment: {{ policy: {policy}, max_wait: 1 s }}\n"
        );
        let file = folder.file(&format!("{policy}.yaml"), deployment);
        rondel(["validate", &file]).expect_status(0);
        let checked = rondel(["check", &file, &trace]);
        checked.expect_status(1);
        let is_violated = |line: &&str| line.starts_with("violated") && line.contains("limits");
        let violated: Vec<&str> = checked.stdout.lines().filter(is_violated).collect();
        assert!(violated.len() == 1 && violated[0].contains("b\"]"), "{policy}: {}", checked.stdout);
    }
}
