//! A network that cannot be reached when a run begins holds up no other one. Costs about 10 s.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rondel_testkit::Broker;
use serde_json::Value;
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::{Folder, start_rondel};

/// The verdict of a line of standard output, with its property.
fn verdict(line: &str) -> (String, String) {
    let line: Value = serde_json::from_str(line).unwrap();
    let text = |member: &str| line[member].as_str().unwrap().to_owned();
    (text("property"), text("verdict"))
}

#[test]
fn a_broker_that_comes_later_holds_up_no_other_network_and_gets_every_verdict() {
    let test = "a_broker_that_comes_later_holds_up_no_other_network_and_gets_every_verdict";
    let (Some(mut broker), folder) = (Broker::start(test), Folder::new()) else { return };
    broker.kill();
    let endpoint = free_endpoint();
    folder.file(
        "p.rondel",
        "topic state { n: int }\ntopic lamp { on: bool }\nproperty small = state.n < 5\n\
         property lit = historically[0, 1 min] lamp.on\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             mqtt: {{ broker: \"127.0.0.1:{}\" }}\ntopics: {{ state: zenoh:state, lamp: mqtt:lamp }}\n\
             verdicts: {{ to: [stdout, mqtt:verdict] }}\n",
            broker.port
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
    run.wait_stderr("the other networks are used meanwhile");
    run.wait_stderr("ready");
    let feed = ["publish", "--to", "zenoh:state", "--wait", "60"];
    let mut feed = start_rondel(arguments(&feed, &zenoh("client", &endpoint)));
    feed.write(b"{\"n\":9}\n");
    let mut seen = Vec::new();
    while seen.last() != Some(&("small".to_owned(), "violated".to_owned())) {
        seen.push(verdict(&run.take_stdout(1)[0]));
    }
    // Whether the lamp was lit is not known.
    assert!(!seen.iter().any(|(name, verdict)| name == "lit" && verdict != "inconclusive"), "{seen:?}");
    broker.resume();
    // Both directions work as soon as the broker is there.
    let mut reader = broker
        .client("mosquitto_sub", &["-q", "1", "-t", "verdict/#", "-t", "ready", "-W", "60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines().map(Result::unwrap);
    // It has subscribed when its own retained message comes; verdicts that waited may come before.
    let published = broker.client("mosquitto_pub", &["-t", "ready", "-r", "-m", "{}"]).status();
    assert!(published.unwrap().success() && lines.any(|line| line == "{}"));
    run.wait_stderr("was lost from");
    loop {
        let mut publisher =
            broker.client("mosquitto_pub", &["-q", "1", "-t", "lamp", "-m", "{\"on\":false}"]);
        assert!(publisher.status().unwrap().success());
        if run
            .stdout_within(std::time::Duration::from_millis(500))
            .is_some_and(|line| line.contains("violated"))
        {
            break;
        }
    }
    let line = lines.next().unwrap();
    assert!(line.contains("\"property\""), "{line}");
    reader.kill().unwrap();
    reader.wait().unwrap();
    feed.close_input();
    run.terminate();
    let summary: Value = serde_json::from_str(&run.wait_stderr("{\"")).unwrap();
    assert_eq!(summary["dropped"], 0, "{summary}");
    assert!(summary["outages"].as_array().is_some_and(|outages| !outages.is_empty()), "{summary}");
}

#[test]
fn a_zenoh_router_that_comes_later_holds_up_no_other_network() {
    let test = "a_zenoh_router_that_comes_later_holds_up_no_other_network";
    let (Some(broker), folder) = (Broker::start(test), Folder::new()) else { return };
    let endpoint = free_endpoint();
    folder.file("p.rondel", "topic state { n: int }\ntopic lamp { on: bool }\nproperty small = state.n < 5\nproperty lit = lamp.on\n");
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: peer, connect: \"{endpoint}\" }}\n\
             mqtt: {{ broker: \"127.0.0.1:{}\" }}\ntopics: {{ state: zenoh:state, lamp: mqtt:lamp }}\n",
            broker.port
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
    run.wait_stderr("the other networks are used meanwhile");
    run.wait_stderr("ready");
    let published =
        broker.client("mosquitto_pub", &["-q", "1", "-t", "lamp", "-m", "{\"on\":false}"]).status();
    assert!(published.unwrap().success());
    while verdict(&run.take_stdout(1)[0]) != ("lit".to_owned(), "violated".to_owned()) {}
    let feed = ["publish", "--to", "zenoh:state", "--wait", "60"];
    let mut feed = start_rondel(arguments(&feed, &zenoh_listening("router", &endpoint)));
    feed.write(b"{\"n\":9}\n");
    while verdict(&run.take_stdout(1)[0]) != ("small".to_owned(), "violated".to_owned()) {}
    feed.close_input();
    run.terminate();
    let summary: Value = serde_json::from_str(&run.wait_stderr("{\"")).unwrap();
    assert!(summary["outages"].as_array().is_some_and(|outages| !outages.is_empty()), "{summary}");
}

#[test]
fn a_network_that_never_came_shows_in_the_exit_status() {
    let test = "a_network_that_never_came_shows_in_the_exit_status";
    let (Some(mut broker), folder) = (Broker::start(test), Folder::new()) else { return };
    broker.kill();
    folder
        .file("p.rondel", "topic state { n: int }\ntopic lamp { on: bool }\nproperty small = state.n < 5\n");
    for (mode, settings) in [("router", "listen"), ("peer", "connect")] {
        if mode == "peer" {
            broker.resume();
        }
        let deployment = folder.file(
            "rondel.yaml",
            format!(
                "specification: p.rondel\nzenoh: {{ mode: {mode}, {settings}: \"{}\" }}\n\
                 mqtt: {{ broker: \"127.0.0.1:{}\" }}\ntopics: {{ state: zenoh:state, lamp: mqtt:lamp }}\n",
                free_endpoint(),
                broker.port
            ),
        );
        let mut run = start_rondel(["run", &deployment]);
        run.wait_stderr("the other networks are used meanwhile");
        run.wait_stderr("ready");
        run.terminate();
        run.finish().expect_status(5);
    }
}
