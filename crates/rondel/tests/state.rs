//! The state of a run: present verdicts that can be queried on Zenoh, and the heartbeat.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::Sample;
use rondel_net::zenoh::{Mode, Session, Settings};
use rondel_testkit::{Broker, Process};
use serde_json::Value;
use support::network::{arguments, free_endpoint, zenoh};
use support::{Folder, rondel, start_rondel};

const SPECIFICATION: &str = "topic door { id: string, open: bool }\n\
                             property shut for each id in (door.id) = not door.open\n\
                             property mine = door.id == \"a\"\n";

/// A monitor whose verdicts go to Zenoh, and a publisher that has sent these messages, each checked.
fn checked(folder: &Folder, endpoint: &str, more: &str, messages: &[(&str, bool)]) -> (Process, Process) {
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ door: zenoh:door }}\nverdicts: {{ to: [stdout, zenoh:verdict{more}",
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
    run.wait_stderr("ready");
    let own = ["publish", "--to", "zenoh:door", "--wait", "60"];
    let mut feed = start_rondel(arguments(&own, &zenoh("client", endpoint)));
    for (id, open) in messages {
        feed.write(format!("{{\"id\":\"{id}\",\"open\":{open}}}\n").as_bytes());
    }
    (run, feed)
}

/// Verdicts as texts: property, instance, verdict.
fn texts(verdicts: &Value) -> Vec<String> {
    let text = |verdict: &Value| {
        let key = verdict["key"]["id"].as_str().unwrap_or("-").to_owned();
        format!("{} {key} {}", verdict["property"].as_str().unwrap(), verdict["verdict"].as_str().unwrap())
    };
    verdicts.as_array().unwrap().iter().map(text).collect()
}

const PRESENT: [&str; 3] = ["mine - violated", "shut a satisfied", "shut b violated"];

#[test]
fn a_get_and_a_late_subscriber_have_the_present_verdicts() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let messages = [("a", true), ("b", false), ("a", false), ("b", true)];
    let (mut run, feed) = checked(&folder, &endpoint, "] }\n", &messages);
    run.take_stdout(8);
    let settings =
        Settings { mode: Some(Mode::Client), connect: vec![endpoint.clone()], ..Settings::default() };
    let session = Session::open(&settings).unwrap();
    // A session discovers queryables with a delay.
    let deadline = Instant::now() + Duration::from_secs(20);
    let answers = loop {
        let answers = session.get("verdict/shut", Duration::from_secs(20)).unwrap();
        if !answers.is_empty() || Instant::now() > deadline {
            break answers;
        }
    };
    assert_eq!(answers.len(), 1);
    let state: Value = serde_json::from_slice(&answers[0]).unwrap();
    assert_eq!(texts(&state["verdicts"]), PRESENT[1..], "{state}");
    assert_eq!(
        (&state["left_out"], &state["received"], &state["responsive"]),
        (&0.into(), &4.into(), &true.into())
    );
    let properties: Vec<_> = state["properties"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&properties[1]["property"], &properties[1]["violations"]),
        (&"mine".into(), &2.into()),
        "{state}"
    );
    // The subscriber of another program, and of this one.
    let mut tap =
        start_rondel(arguments(&["tap", "zenoh:verdict/*", "--format", "json"], &zenoh("client", &endpoint)));
    let lines = tap.take_stdout(3);
    let data = |line: &String| serde_json::from_str::<Value>(line).unwrap()["data"].clone();
    let mut present = texts(&lines.iter().map(data).collect());
    present.sort();
    assert_eq!(present, PRESENT);
    let (sender, received) = std::sync::mpsc::channel();
    let receiver = move |_: TopicId, samples: &[Sample<'_>]| {
        samples.iter().for_each(|sample| sender.send(sample.payload.to_vec()).unwrap());
    };
    let _subscription = session.subscribe("verdict/*", TopicId(0), Arc::new(receiver)).unwrap();
    assert_eq!(received.try_iter().count(), 3, "they come before it has subscribed");
    drop(feed);
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn the_heartbeat_has_the_state_of_the_run_on_every_network_of_verdicts() {
    let test = "the_heartbeat_has_the_state_of_the_run_on_every_network_of_verdicts";
    let (Some(broker), folder, endpoint) = (Broker::start(test), Folder::new(), free_endpoint()) else {
        return;
    };
    let mut listening = broker
        .client("mosquitto_sub", &["-q", "1", "-t", "rondel/heartbeat"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let more =
        format!(", mqtt:verdict] }}\nheartbeat: 200 ms\nmqtt: {{ broker: \"127.0.0.1:{}\" }}\n", broker.port);
    let (mut run, feed) = checked(&folder, &endpoint, &more, &[("a", true), ("b", false)]);
    run.take_stdout(4);
    let options = zenoh("client", &endpoint);
    let mut tap = start_rondel(arguments(&["tap", "zenoh:rondel/heartbeat", "--format", "json"], &options));
    let line: Value = serde_json::from_str(&tap.take_stdout(1)[0]).unwrap();
    let lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    let mut beats = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let heartbeat = beats.find(|beat| beat["received"] == 2).unwrap();
    for beat in [&line["data"], &heartbeat] {
        assert_eq!(texts_of(beat), ["shut violated 1", "mine violated 1"], "{beat}");
        assert!(beat["uptime"].as_f64().unwrap() > 0.0 && beat["lost"] == 0, "{beat}");
        assert_eq!((&beat["ends"], &beat["every"]), (&false.into(), &0.2.into()), "{beat}");
    }
    let next = beats.next().unwrap();
    assert_eq!(next["heartbeat"].as_u64(), heartbeat["heartbeat"].as_u64().map(|number| number + 1));
    drop(feed);
    run.terminate();
    let last = beats.find(|beat| beat["ends"] == true).unwrap();
    assert_eq!(last["received"], 2, "{last}");
    run.finish().expect_status(0);
    listening.kill().unwrap();
    listening.wait().unwrap();
}

/// The properties of a state: name, verdict, violations.
fn texts_of(state: &Value) -> Vec<String> {
    let one = |property: &Value| {
        let text = |name: &str| property[name].as_str().unwrap().to_owned();
        format!("{} {} {}", text("property"), text("verdict"), property["violations"])
    };
    state["properties"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_heartbeat_needs_an_interval_and_a_network() {
    let folder = Folder::new();
    for (heartbeat, said) in [
        ("1", "`heartbeat` must be a duration such as 1 s; 1 has no unit"),
        ("10 ms", "the interval of `heartbeat` must be from 100 ms to 1 h"),
        ("{ topic: a }", "`heartbeat` needs `every`"),
        ("{ every: 1 s, topic: v }", "use different topics"),
        ("{ every: 1 s, to: a }", "heartbeat has no setting 'to'; write `topic`"),
    ] {
        let text = format!(
            "formula: v\ntopics: {{ trace: zenoh:t }}\nverdicts: {{ to: zenoh:v }}\nheartbeat: {heartbeat}\n"
        );
        let deployment = folder.file("rondel.yaml", text);
        rondel(["validate", &deployment]).expect_stderr(&[said]);
    }
    let deployment = folder.file("rondel.yaml", "formula: v\ntopics: { trace: zenoh:t }\nheartbeat: 1 s\n");
    rondel(["validate", &deployment]).expect_stderr(&["no network carries verdicts"]);
}
