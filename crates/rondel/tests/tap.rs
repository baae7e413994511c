//! Output of `rondel tap` for messages on Zenoh and DDS over loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_testkit::Process;
use support::network::{arguments, dds, dds_domain, free_endpoint, zenoh, zenoh_listening};
use support::{Folder, rondel, rondel_with_input, start_rondel};

/// Publishes these lines on a topic and waits until they are on their way.
#[track_caller]
fn publish(endpoint: &str, topic: &str, lines: &str) {
    let own = ["publish", "--to", topic, "--wait", "60"];
    rondel_with_input(arguments(&own, &zenoh("client", endpoint)), lines.as_bytes()).expect_status(0);
}

fn tap(endpoint: &str, own: &[&str]) -> Process {
    let own = [&["tap"], own].concat();
    let mut tap = start_rondel(arguments(&own, &zenoh_listening("router", endpoint)));
    tap.wait_stderr("ready");
    tap
}

/// A tap of this deployment, which listens as a router.
fn tap_deployment(folder: &Folder, endpoint: &str, deployment: &str, own: &[&str]) -> Process {
    let text = format!("zenoh: {{ mode: router, listen: {endpoint} }}\n{deployment}");
    let file = folder.file("rondel.yaml", text);
    let mut tap = start_rondel([&["tap", &file], own].concat());
    tap.wait_stderr("ready");
    tap
}

const DEPLOYMENT: &str = "specification: vehicle.rondel\nverdicts: { to: dds:nowhere }\n\
    topics:\n  gear: { source: zenoh:t/gear, time: t }\n  speed: { source: zenoh:t/speed, time: t }\n";
const SPECIFICATION: &str =
    "topic gear { report: int }\ntopic speed { v: float }\nproperty p = gear.report > 0\n";

#[test]
fn messages_of_several_topics_with_their_times_and_names() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("vehicle.rondel", SPECIFICATION);
    let mut tap = tap_deployment(&folder, &endpoint, DEPLOYMENT, &["--format", "json", "--count", "4"]);
    publish(&endpoint, "zenoh:t/gear", "{\"t\":1.5, \"report\":1}\n\u{1b}[31mred\n{\"report\":7}\n");
    let lines = tap.take_stdout(3);
    publish(&endpoint, "zenoh:t/speed", "{\"v\":1.10}\n");
    let last = tap.take_stdout(1);
    let json = |line: &String| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    let shown: Vec<serde_json::Value> = lines.iter().chain(&last).map(json).collect();
    let report = |i: usize| &shown[i]["data"]["report"];
    assert_eq!((&shown[0]["topic"], &shown[0]["time"], report(0)), (&"gear".into(), &1.5.into(), &1.into()));
    assert!(shown[0]["arrival"].as_f64().unwrap() > 1e9, "{lines:?}");
    assert_eq!(shown[1]["payload"], "\\u{1b}[31mred", "{lines:?}");
    assert_eq!((&shown[2]["time"], report(2)), (&serde_json::Value::Null, &7.into()));
    assert!(shown[3]["topic"] == "speed" && last[0].contains("\"data\":{\"v\":1.10}"), "{last:?}");
    tap.finish().expect_status(0).expect_stderr(&["is not JSON", "received 4 messages, 1 is not JSON"]);
}

#[test]
fn only_some_fields_as_text() {
    let endpoint = free_endpoint();
    let own = ["zenoh:t/*", "--field", "header.stamp,v", "--time-from", "header.stamp", "--field", "w"];
    let mut tap = tap(&endpoint, &own);
    let input = "{\"header\":{\"stamp\":12.5},\"v\":[1, 2],\"other\":0}\n{\"v\":1}\n";
    publish(&endpoint, "zenoh:t/a", input);
    assert_eq!(
        tap.take_stdout(2),
        [
            "    12.5 s  zenoh:t/*  header.stamp=12.5  v=[1, 2]  w=-",
            "       - s  zenoh:t/*  header.stamp=-  v=1  w=-"
        ]
    );
    tap.terminate();
    tap.finish().expect_status(0).expect_stderr(&[
        "received 2 messages",
        "1 message did not carry header.stamp",
        "2 messages did not carry w",
    ]);
}

#[test]
fn once_is_the_first_message_of_every_topic() {
    let endpoint = free_endpoint();
    let mut tap = tap(&endpoint, &["zenoh:a", "zenoh:b", "--once", "--format", "raw"]);
    publish(&endpoint, "zenoh:a", "1\n2\n");
    publish(&endpoint, "zenoh:b", "3\n4\n");
    assert_eq!(tap.take_stdout(2), ["1", "3"]);
    let finished = tap.finish();
    finished.expect_status(0).expect_stderr(&["received 2 messages"]);
    assert_eq!(finished.stdout.lines().count(), 2, "{}", finished.stdout);
}

#[test]
fn aligned_is_in_the_order_of_times() {
    let endpoint = free_endpoint();
    let own = ["zenoh:gear", "zenoh:speed", "--aligned", "--time", "t", "--format", "json", "--field", "v"];
    let mut tap = tap(&endpoint, &[&own[..], &["--count", "4"]].concat());
    publish(&endpoint, "zenoh:gear", "{\"t\":2,\"v\":1}\n{\"t\":4.5,\"v\":2}\n");
    publish(&endpoint, "zenoh:speed", "{\"t\":4.45,\"v\":3}\n{\"t\":5,\"v\":4}\n");
    let lines = tap.take_stdout(4);
    // The first can be let go by the second and 100 ms before anything of the other comes; that is earlier than both.
    let times: Vec<f64> = lines
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["time"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{lines:?}");
    assert_eq!(lines[0], r#"{"time":2,"zenoh:gear":{"v":1}}"#);
    tap.finish().expect_status(0).expect_stderr(&["received 4, checked 4, undecodable 0", "messages 4"]);
}

#[test]
fn sets_are_one_line_and_late_events_are_marked() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("vehicle.rondel", SPECIFICATION);
    let exact = format!("{DEPLOYMENT}alignment: {{ policy: exact, reports: zenoh:t/reports }}\n");
    let mut tap = tap_deployment(&folder, &endpoint, &exact, &["--aligned"]);
    publish(&endpoint, "zenoh:t/gear", "{\"t\":1,\"report\":1}\n{\"t\":2,\"report\":2}\n");
    publish(&endpoint, "zenoh:t/speed", "{\"t\":2,\"v\":9}\n");
    assert_eq!(tap.take_stdout(1), [r#"       2 s  gear {"t":2,"report":2}  speed {"t":2,"v":9}"#]);
    tap.terminate();
    tap.finish().expect_status(0).expect_stderr(&["sets 1", "gear: 1 in no set (older)"]);

    let endpoint = free_endpoint();
    let mut tap = tap_deployment(&folder, &endpoint, DEPLOYMENT, &["--aligned", "--format", "text"]);
    publish(&endpoint, "zenoh:t/gear", "{\"t\":10,\"report\":1}\n{\"t\":20,\"report\":2}\n");
    tap.take_stdout(2);
    publish(&endpoint, "zenoh:t/speed", "{\"t\":9,\"v\":1}\n");
    assert_eq!(tap.take_stdout(1), [r#"      20 s  speed {"t":9,"v":1}  late"#]);
    tap.terminate();
    tap.finish().expect_status(0).expect_stderr(&["speed: 1 late"]);
}

#[test]
fn tap_ends_quietly_when_its_reader_ends() {
    for own in
        [&["zenoh:a", "--format", "json"][..], &["zenoh:a", "zenoh:b", "--aligned", "--time-from", "t"]]
    {
        let endpoint = free_endpoint();
        let line = format!(
            "{} tap {} {} | head -n 1",
            support::RONDEL,
            own.join(" "),
            zenoh_listening("router", &endpoint).join(" ")
        );
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &line]);
        let mut shell = Process::start(command);
        shell.wait_stderr("ready");
        publish(&endpoint, "zenoh:a", "{\"t\":1}\n{\"t\":2}\n{\"t\":3}\n");
        shell.take_stdout(1);
        // It may have ended by now.
        let again = ["publish", "--to", "zenoh:a", "--wait", "1", "--exit-on-unreachable"];
        rondel_with_input(arguments(&again, &zenoh("client", &endpoint)), b"{\"t\":4}\n{\"t\":5}\n");
        let finished = shell.finish();
        finished.expect_status(0).expect_stderr(&["received "]);
        assert!(
            !finished.stderr.contains("cannot write") && !finished.stderr.contains("panicked"),
            "{}",
            finished.stderr
        );
    }
}

/// Topics of DDS that come after the tap has begun, under their own names.
#[test]
fn all_topics_of_a_pattern_on_dds() {
    let network = dds(&dds_domain());
    let mut tap = start_rondel(arguments(&["tap", "dds:rt/*/state", "--count", "3"], &network));
    tap.wait_stderr("ready");
    for (topic, input) in [
        ("dds:rt/arm/state", "{\"v\":1}\n"),
        ("dds:rt/state", "{\"v\":0}\n"),
        ("dds:rt/arm/left/state", "{\"v\":2}\n{\"v\":3}\n"),
    ] {
        let wait = if topic == "dds:rt/state" { "1" } else { "60" };
        let own = ["publish", "--to", topic, "--wait", wait];
        rondel_with_input(arguments(&own, &network), input.as_bytes());
    }
    let lines = tap.take_stdout(3);
    let names: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(names, ["dds:rt/arm/state", "dds:rt/arm/left/state", "dds:rt/arm/left/state"], "{lines:?}");
    assert!(lines[2].ends_with("{\"v\":3}"), "{lines:?}");
    tap.finish().expect_status(0).expect_stderr(&["ready: dds:rt/*/state", "received 3 messages"]);
}

#[test]
fn impossible_taps_are_refused() {
    let folder = Folder::new();
    let file = folder.file("rondel.yaml", "formula: v\ntopics: { trace: zenoh:a }\n");
    for (own, words) in [
        (vec!["zenoh:a", "--aligned"], "--time-from"),
        (vec!["zenoh:a", "zenoh:a"], "twice"),
        (vec!["dds:rt/*", "dds:a", "--aligned", "--time-from", "t"], "one by one"),
        (vec!["dds:r t/*"], "'r t/*' is not a DDS name"),
        (vec!["zenoh:a", &file], "either addresses or one deployment"),
        (vec![&file, "--time-from", "t"], "cannot be used with a deployment file"),
        (vec![&file, "--aligned", "--format", "raw"], "--format json or text"),
        (vec!["zenoh:a", "--field", "a..b"], "header.stamp"),
        (vec!["nothing.yaml"], "nothing.yaml"),
    ] {
        rondel([&["tap"], &own[..]].concat()).expect_status(2).expect_stderr(&[words]);
    }
}
