//! The command on MQTT: Debian's broker in between, its clients at both ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::process::Stdio;

use rondel_testkit::Broker;
use support::network::arguments;
use support::{Emitted, Folder, rondel, rondel_with_input, start_rondel};

const MESSAGES: usize = 3000;

fn messages() -> (String, String) {
    let holds = |i: usize| !i.is_multiple_of(7);
    let text = (0..MESSAGES).map(|i| format!("{{\"n\":{i},\"v\":{}}}\n", holds(i))).collect();
    (text, (0..MESSAGES).map(|i| if holds(i) { 'T' } else { 'F' }).collect())
}

/// The options of a participant.
fn at(broker: &Broker) -> Vec<String> {
    vec!["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)]
}

fn assert_verdicts<'a>(lines: impl Iterator<Item = &'a str>, expected: &str) {
    let verdicts: Vec<Emitted> = lines.map(Emitted::parse).collect();
    assert!(verdicts.iter().enumerate().all(|(i, v)| v.step == i as u64), "steps are out of order");
    assert_eq!(verdicts.iter().map(|v| v.letter).collect::<String>(), expected);
}

#[test]
fn a_deployment_between_independent_clients() {
    let name = "a_deployment_between_independent_clients";
    let guarded = Broker::with(name, |port, folder| {
        let file = folder.as_path().join("passwords");
        let mut making = std::process::Command::new("mosquitto_passwd");
        let made = making.args(["-b", "-c"]).arg(&file).args(["me", "secret"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        format!("listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\n", file.display())
    });
    let Some(broker) = guarded else { return };
    let folder = Folder::new();
    folder.file("password", "secret\n");
    for version in ["3.1.1", "5"] {
        let known = if version == "5" { "5" } else { "311" };
        let client = |program, more: &[&str]| {
            broker.client(program, &[&["-V", known, "-u", "me", "-P", "secret", "-q", "1"], more].concat())
        };
        let deployment = folder.file(
            "rondel.yaml",
            format!(
                "formula: v\nmqtt:\n  broker: 127.0.0.1:{}\n  version: {version}\n  user: me\n  \
                 password_file: password\n  verdict_qos: 2\n\
                 topics: {{ trace: {{ source: \"mqtt:plant/+/state\", qos: 1, retained: false }} }}\n\
                 verdicts: {{ emit: every, to: mqtt:verdict }}\n",
                broker.port
            ),
        );
        // The broker keeps the verdicts for a reader that has been there.
        let reader = ["-i", "reader", "-c", "-t", "verdict"];
        assert!(client("mosquitto_sub", &[&reader[..], &["-E"]].concat()).status().unwrap().success());
        let mut run = start_rondel(["run", &deployment]);
        run.wait_stderr("ready");
        let (input, expected) = messages();
        let mut publishing =
            client("mosquitto_pub", &["-t", "plant/7/state", "-l"]).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut publishing.stdin.take().unwrap(), input.as_bytes()).unwrap();
        assert!(publishing.wait().unwrap().success());
        let fetch = [&reader[..], &["-C", "3000", "-W", "60"]].concat();
        let fetched = client("mosquitto_sub", &fetch).output().unwrap();
        assert_verdicts(String::from_utf8(fetched.stdout).unwrap().lines(), &expected);
        run.terminate();
        run.finish()
            .expect_status(0)
            .expect_stderr(&["received 3,000, checked 3,000, undecodable 0, dropped 0, verdicts 3,000;"]);
    }
}

#[test]
fn topics_are_listed_with_their_encodings() {
    let Some(broker) = Broker::start("topics_are_listed_with_their_encodings") else { return };
    let network = at(&broker);
    let mut topics = start_rondel(arguments(&["topics", "--for", "4", "--format", "json"], &network));
    topics.wait_stderr("looking at mqtt:#");
    // The clients of the broker start fast, so that all comes within the time for looking.
    for (topic, payload) in [("plant/state", "{\"v\": 1}"), ("plant/state", "{\"v\": 22}"), ("lamp", "on")] {
        let sent = broker.client("mosquitto_pub", &["-q", "1", "-t", topic, "-m", payload]).status();
        assert!(sent.unwrap().success());
    }
    let line = topics.take_stdout(1).remove(0);
    topics.finish().expect_status(0).expect_stderr(&["2 topics in 4 seconds at mqtt:# (broker "]);
    let seen: serde_json::Value = serde_json::from_str(&line).unwrap();
    let (lamp, state) = (&seen["topics"][0], &seen["topics"][1]);
    assert_eq!((&lamp["address"], &lamp["encoding"]), (&"mqtt:lamp".into(), &"plain".into()), "{line}");
    assert_eq!((&state["encoding"], &state["messages"]), (&"json".into(), &2.into()), "{line}");
    assert_eq!((&state["size"]["min"], &state["size"]["max"]), (&8.into(), &9.into()), "{line}");
}

/// A value of another type is unknown; for one that is not expected to be plain, a message names the encoding that reads it.
#[test]
fn plain_payloads_are_read_by_their_type() {
    let Some(broker) = Broker::start("plain_payloads_are_read_by_their_type") else { return };
    let folder = Folder::new();
    folder.file(
        "p.rondel",
        "topic temp { value: float }\ntopic lamp { value: bool }\ntopic mode { mode: string }\n\
         property warm = temp.value < 30\nproperty dark = lamp.value -> temp.value > 0\n\
         property known = mode.mode == \"heat\"\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nmqtt: {{ broker: 127.0.0.1:{} }}\ntopics:\n  \
             temp: {{ source: mqtt:home/temp, encoding: plain }}\n  \
             lamp: {{ source: mqtt+plain:home/lamp, true_words: bright }}\n  mode: mqtt:home/mode\n",
            broker.port
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--emit", "change"]);
    run.wait_stderr("ready");
    let publish = |topic: &str, payload: &str| {
        let sent = broker.client("mosquitto_pub", &["-q", "1", "-t", topic, "-m", payload]).status();
        assert!(sent.unwrap().success());
    };
    let mut verdicts = Vec::new();
    for (topic, payload, count) in [
        ("home/temp", "23.5", 1),
        ("home/lamp", "OFF", 2),
        ("home/lamp", "Bright", 0),
        ("home/temp", "-2", 1),
        ("home/temp", "31", 2),
        ("home/temp", "unavailable", 2),
        ("home/mode", "heat", 0),
    ] {
        publish(topic, payload);
        let lines = run.take_stdout(count);
        let emitted = lines.iter().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        verdicts.extend(emitted);
    }
    run.wait_stderr("a topic of plain values needs `encoding: plain`");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["1 value on temp has another type"]);
    let wanted = [
        "satisfied warm",
        "satisfied dark",
        "inconclusive known",
        "violated dark",
        "violated warm",
        "satisfied dark",
        "inconclusive warm",
        "inconclusive dark",
    ];
    assert_eq!(verdicts, wanted);
}

#[test]
fn publish_run_and_tap_by_their_options() {
    let Some(broker) = Broker::start("publish_run_and_tap_by_their_options") else { return };
    // The last is as a bridge between DDS and MQTT would have it.
    for (mqtt, qos) in [("mqtt", "0"), ("mqtt", "1"), ("mqtt", "2"), ("mqtt+cdr_string", "1")] {
        let network = [at(&broker), vec!["--mqtt-qos".to_owned(), qos.to_owned()]].concat();
        let on = |topic: &str| format!("{mqtt}:{topic}");
        let mut run = support::network::monitor("v", &on("state"), &on("verdict"), &network);
        run.wait_stderr("ready");
        let mut tap = start_rondel(arguments(&["tap", &on("#"), "--count", "6000"], &network));
        tap.wait_stderr("ready");
        let (input, expected) = messages();
        rondel_with_input(arguments(&["publish", "--to", &on("state")], &network), input.as_bytes())
            .expect_status(0)
            .expect_stderr(&["published 3,000 messages"]);
        let lines = tap.take_stdout(6000);
        assert_verdicts(lines.iter().map(String::as_str).filter(|line| line.contains("verdict")), &expected);
        tap.finish().expect_status(0);
        run.terminate();
        run.finish().expect_status(0).expect_stderr(&["received 3,000, checked 3,000, "]);
    }
}

#[test]
fn a_lost_broker_is_reported_and_counted() {
    let Some(mut broker) = Broker::start("a_lost_broker_is_reported_and_counted") else { return };
    let own =
        ["run", "-f", "v", "--topic", "mqtt:state", "--publish", "stdout", "--format", "json", "-e", "every"];
    let mut run = start_rondel(arguments(&own, &at(&broker)));
    run.wait_stderr("ready");
    broker.kill();
    run.wait_stderr("broke: the broker closed the connection; reconnecting");
    broker.resume();
    run.wait_stderr("messages published meanwhile are lost");
    rondel_with_input(arguments(&["publish", "--to", "mqtt:state"], &at(&broker)), b"{\"v\":true}\n")
        .expect_status(0);
    assert!(run.take_stdout(1)[0].contains("satisfied"));
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["received 1, ", "broken connections 1"]);
}

#[test]
fn wrong_settings_and_brokers_are_refused() {
    let Some(broker) = Broker::with("wrong_settings_and_brokers_are_refused", |port, _| {
        format!("listener {port} 127.0.0.1\nallow_anonymous false\n")
    }) else {
        return;
    };
    rondel(arguments(&["tap", "mqtt:state"], &at(&broker)))
        .expect_status(5)
        .expect_stderr(&["refuses the connection: not authorized"]);
    let inside = "mqtt://me:secret@localhost".to_owned();
    let refused = rondel(["tap", "mqtt:state", "--mqtt-broker", &inside]);
    refused.expect_status(2).expect_stderr(&["the password in a file or an environment variable"]);
    let no_broker = ["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", rondel_testkit::free_port())];
    let options = [&no_broker[..], &["--exit-on-unreachable".to_owned()]].concat();
    rondel(arguments(&["tap", "mqtt:state"], &options))
        .expect_status(5)
        .expect_stderr(&["connection refused; check that the broker is running"]);
    rondel(["run", "-f", "v", "--topic", "mqtt:a/#", "--publish", "mqtt:a/verdict"])
        .expect_status(2)
        .expect_stderr(&["verdicts on mqtt:a/verdict would come back as messages of mqtt:a/#"]);
    rondel(["run", "-f", "v", "--topic", "mqtt:a/#/b"])
        .expect_status(2)
        .expect_stderr(&["# must be the whole last level"]);
    rondel(["publish", "--to", "mqtt:a/+"]).expect_status(2).expect_stderr(&["no wildcards"]);
}

/// Two monitors with one client id take over from each other: the cause is named.
#[test]
fn two_monitors_with_one_client_id_name_the_cause() {
    let test = "two_monitors_with_one_client_id_name_the_cause";
    let Some(broker) = Broker::start(test) else { return };
    for version in ["3.1.1", "5"] {
        let monitor = || {
            let own = [
                "run",
                "-f",
                "v",
                "--topic",
                "mqtt:a",
                "--mqtt-client-id",
                "same",
                "--mqtt-version",
                version,
            ];
            start_rondel(arguments(&own, &at(&broker)))
        };
        let mut both = [monitor(), monitor()];
        let line = both[0].wait_stderr("another client may use the client id 'same', too: give each its own");
        assert!(line.contains("closed 3 connections in a row"), "{line}");
    }
}

/// Only with snapshots does a run leave behind what it took from the session at the broker.
#[test]
fn a_run_with_kept_messages_but_no_snapshot_warns() {
    let Some(broker) = Broker::start("a_run_with_kept_messages_but_no_snapshot_warns") else {
        return;
    };
    let folder = Folder::new();
    for (clean, snapshot, is_said) in [(false, false, true), (false, true, false), (true, false, false)] {
        let deployment = folder.file(
            "rondel.yaml",
            format!(
                "formula: v\nmqtt: {{ broker: \"127.0.0.1:{}\", client_id: kept, clean_start: {clean}, qos: 1 }}\n\
                 topics: {{ trace: mqtt:state }}\n",
                broker.port
            ),
        );
        let to = ["--snapshot-to".to_owned(), folder.path("state.snapshot")];
        let mut run = start_rondel(arguments(&["run", &deployment], if snapshot { &to } else { &[] }));
        run.wait_stderr("ready");
        run.terminate();
        let ended = run.finish();
        let warning = "what the broker kept is taken by this run";
        assert_eq!(ended.stderr.contains(warning), is_said, "{clean} {snapshot}: {}", ended.stderr);
    }
}

/// A monitor whose verdicts the broker does not accept says so: they are dropped, and the status is 5.
#[test]
fn verdicts_that_the_broker_refuses_are_dropped() {
    let configure = |port: u16, folder: &rondel_testkit::Folder| {
        let list = folder.file("acl", "topic read #\ntopic write state\n");
        format!("listener {port} 127.0.0.1\nallow_anonymous true\nacl_file {list}\n")
    };
    let Some(broker) = Broker::with("verdicts_that_the_broker_refuses_are_dropped", configure) else {
        return;
    };
    let own = ["run", "-f", "v", "--emit", "every", "--topic", "mqtt:state", "--publish", "mqtt:verdict"];
    let mut run = start_rondel(arguments(&[&own[..], &["--count", "3"]].concat(), &at(&broker)));
    run.wait_stderr("ready");
    let lines = "{\"v\":true}\n{\"v\":true}\n{\"v\":false}\n";
    let mut publishing = broker
        .client("mosquitto_pub", &["-q", "1", "-t", "state", "-l"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut publishing.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    assert!(publishing.wait().unwrap().success());
    run.finish()
        .expect_status(5)
        .expect_stderr(&["received 3, checked 3, undecodable 0, dropped 3, verdicts 3"]);
}
