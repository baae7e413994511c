//! Rondel among clients that are not ours: the Python packages `eclipse-zenoh` and `cyclonedds`, as
//! publishers of what is checked and as subscribers of the verdicts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::path::Path;

use rondel_testkit::Process;
use support::network::{dds, dds_domain, free_endpoint, independent, python, router, zenoh};
use support::{Emitted, Folder, letters, rondel_with_input, start_rondel};

const MESSAGES: usize = 2000;

/// Starts a monitor of `n < 1500` that begins when somebody has subscribed to its verdicts.
fn monitor(topic: &str, verdicts: &str, network: &[String]) -> Process {
    support::network::monitor("n < 1500", topic, verdicts, network)
}

/// `{"n": 0}`, `{"n": 1}` … go in; a verdict for each comes out, in order.
#[track_caller]
fn all_arrive(mut run: Process, mut subscriber: Process, publish: impl FnOnce() -> Process) {
    run.wait_stderr("ready");
    let publisher = publish();
    let lines = subscriber.take_stdout(MESSAGES);
    let expected: String = (0..MESSAGES).map(|n| if n < 1500 { 'T' } else { 'F' }).collect();
    assert_eq!(letters(&lines.join("\n")), expected);
    assert!(lines.iter().enumerate().all(|(i, line)| Emitted::parse(line).step == i as u64));
    publisher.finish().expect_status(0).expect_stdout(&format!("sent {MESSAGES}\n"));
    let subscribed = subscriber.finish();
    subscribed.expect_status(0);
    assert!(subscribed.stdout.ends_with(&format!("received {MESSAGES}\n")));
    run.terminate();
    let summary = "received 2,000, checked 2,000, undecodable 0, dropped 0, verdicts 2,000";
    run.finish().expect_status(0).expect_stderr(&[summary]);
}

/// A subscriber that prints the verdicts and ends after the last one.
fn zenoh_subscriber(python: &Path, network: &[&str]) -> Process {
    let count = MESSAGES.to_string();
    let own = ["demo/verdict", "--print", "--quiet", "60", "--count", &count];
    let mut subscriber = independent(python, "zenoh_subscribe.py", &[&own, network].concat());
    subscriber.wait_stdout("ready");
    subscriber
}

fn zenoh_publisher(python: &Path, network: &[&str]) -> Process {
    let count = MESSAGES.to_string();
    independent(python, "zenoh_publish.py", &[&["demo/state", "--count", &count], network].concat())
}

#[test]
fn zenoh_in_python_peer_to_peer() {
    let Some(python) = python("zenoh_in_python_peer_to_peer") else { return };
    let (theirs, ours) = (free_endpoint(), free_endpoint());
    let subscriber = zenoh_subscriber(&python, &["--listen", &theirs]);
    // The verdicts go to where the subscriber listens, the messages come to where the monitor does.
    let network = [zenoh("peer", &theirs), vec!["--zenoh-listen".to_owned(), ours.clone()]].concat();
    let run = monitor("zenoh:demo/state", "zenoh:demo/verdict", &network);
    all_arrive(run, subscriber, || zenoh_publisher(&python, &["--connect", &ours]));
}

#[test]
fn zenoh_in_python_through_a_router() {
    let Some(python) = python("zenoh_in_python_through_a_router") else { return };
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    through_a_router(&python, &endpoint);
}

#[test]
fn zenoh_with_a_router_in_python() {
    let Some(python) = python("zenoh_with_a_router_in_python") else { return };
    let endpoint = free_endpoint();
    // A router that is not ours: a session in router mode that subscribes to something else.
    let options = ["never/published", "--mode", "router", "--listen", &endpoint, "--quiet", "600"];
    let mut router = independent(&python, "zenoh_subscribe.py", &options);
    router.wait_stdout("ready");
    through_a_router(&python, &endpoint);
}

#[track_caller]
fn through_a_router(python: &Path, endpoint: &str) {
    let client = ["--mode", "client", "--connect", endpoint];
    let subscriber = zenoh_subscriber(python, &client);
    let run = monitor("zenoh:demo/state", "zenoh:demo/verdict", &zenoh("client", endpoint));
    all_arrive(run, subscriber, || zenoh_publisher(python, &client));
}

#[test]
fn dds_in_python() {
    let Some(python) = python("dds_in_python") else { return };
    let (domain, count) = (dds_domain(), MESSAGES.to_string());
    let run = monitor("dds:state", "dds:verdict", &dds(&domain));
    let options = ["verdict", "--domain", &domain, "--print", "--quiet", "60", "--count", &count];
    let mut subscriber = independent(&python, "dds_subscribe.py", &options);
    subscriber.wait_stdout("ready");
    all_arrive(run, subscriber, || {
        independent(&python, "dds_publish.py", &["state", "--domain", &domain, "--count", &count])
    });
}

#[test]
fn dds_in_python_of_another_type() {
    let Some(python) = python("dds_in_python_of_another_type") else { return };
    let (domain, count) = (dds_domain(), MESSAGES.to_string());
    let folder = support::Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: n < 1500\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ trace: {{ source: dds:state, type: \"demo::Text\" }} }}\n\
             verdicts: {{ emit: every, to: dds:verdict }}\n"
        ),
    );
    let run = start_rondel(["run", &deployment, "--wait-subscribers", "60"]);
    let options = ["verdict", "--domain", &domain, "--print", "--quiet", "60", "--count", &count];
    let mut subscriber = independent(&python, "dds_subscribe.py", &options);
    subscriber.wait_stdout("ready");
    let typed = ["state", "--domain", &domain, "--count", &count, "--type", "demo::Text"];
    all_arrive(run, subscriber, || independent(&python, "dds_publish.py", &typed));
}

#[test]
fn from_dds_in_python_to_zenoh_in_python() {
    let Some(python) = python("from_dds_in_python_to_zenoh_in_python") else { return };
    let (domain, endpoint, count) = (dds_domain(), free_endpoint(), MESSAGES.to_string());
    let subscriber = zenoh_subscriber(&python, &["--listen", &endpoint]);
    let both = [dds(&domain), zenoh("peer", &endpoint)].concat();
    let run = monitor("dds:rt/state", "zenoh:demo/verdict", &both);
    all_arrive(run, subscriber, || {
        independent(&python, "dds_publish.py", &["rt/state", "--domain", &domain, "--count", &count])
    });
}

#[test]
fn a_publisher_in_python_states_its_progress() {
    let Some(python) = python("a_publisher_in_python_states_its_progress") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file(
        "v.rondel",
        "topic gear { report: int } topic speed { v: float }\n\
        @time(dense) property slow = gear.report == 2 -> speed.v < 10\n",
    );
    let deployment = folder.file("rondel.yaml", format!(
        "specification: v.rondel\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics:\n  gear: {{ source: zenoh:vehicle/gear, time: stamp }}\n  speed: {{ source: zenoh:speed, time: stamp }}\n\
         alignment: {{ max_wait: none, absent_after: never, progress: zenoh:vehicle/progress }}\n"
    ));
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
    run.wait_stderr("ready");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/progress.py");
    let publisher = independent(&python, example.to_str().unwrap(), &[&endpoint]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    // One before the present, and one from now on: what happens in between is known once gear is further.
    let lines = format!("{{\"stamp\":{now},\"v\":1}}\n{{\"stamp\":{},\"v\":12}}\n", now + 2.0);
    let to = [
        "publish",
        "--to",
        "zenoh:speed",
        "--wait",
        "60",
        "--zenoh-mode",
        "client",
        "--zenoh-connect",
        &endpoint,
    ];
    rondel_with_input(to, lines.as_bytes()).expect_status(0);
    run.wait_stdout("violated");
    publisher.terminate();
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0);
    let summary = finished.stderr.lines().last().unwrap();
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    let gear = &summary["alignment"]["topics"]["gear"];
    assert!(gear["markers"].as_u64().unwrap() > 0 && gear["late"] == 0, "{gear}");
}
