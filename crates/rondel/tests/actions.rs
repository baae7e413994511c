//! Actions on violations, on real networks and with real programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rondel_testkit::{Broker, Process};
use serde_json::{Value, json};
use support::network::{arguments, dds_domain, free_endpoint, independent, python, zenoh};
use support::{Finished, Folder, rondel, start_rondel};

const SPECIFICATION: &str = "topic scan { robot: string, distance: float }\n\
                             @severity(critical) property gap for each robot in scan.robot = scan.distance > 1.0\n";
/// Three violations, of two robots.
const SCANS: [&str; 5] = [
    r#"{"robot":"a","distance":5}"#,
    r#"{"robot":"a","distance":0.5}"#,
    r#"{"robot":"a","distance":2}"#,
    r#"{"robot":"b","distance":0.25}"#,
    r#"{"robot":"a","distance":0.75}"#,
];

/// A deployment whose router is the monitor.
struct Deployed {
    folder: Folder,
    endpoint: String,
    file: String,
}

impl Deployed {
    fn new(sections: &str) -> Deployed {
        let (folder, endpoint) = (Folder::new(), free_endpoint());
        folder.file("gap.rondel", SPECIFICATION);
        let text = format!(
            "specification: gap.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ scan: zenoh:scan }}\n{sections}"
        );
        let file = folder.file("rondel.yaml", text.replace("FOLDER", &folder.path("")));
        Deployed { folder, endpoint, file }
    }

    fn run(&self, options: &[&str]) -> Process {
        let own = ["run", &self.file, "--format", "json", "--summary", "json"];
        let mut run = start_rondel([&own[..], options].concat());
        run.wait_stderr("ready");
        run
    }

    fn peer(&self) -> Vec<String> {
        zenoh("client", &self.endpoint)
    }

    /// Publishes messages, once the monitor has subscribed.
    fn scan<'m>(&self, messages: impl IntoIterator<Item = &'m str>) {
        let own = ["publish", "--to", "zenoh:scan", "--wait", "60"];
        let mut feed = start_rondel(arguments(&own, &self.peer()));
        for message in messages {
            feed.write(format!("{message}\n").as_bytes());
        }
        feed.close_input();
        feed.finish().expect_status(0);
    }
}

/// The account of the actions in the summary.
fn actions(finished: &Finished) -> Vec<Value> {
    let line = finished.stderr.lines().find(|line| line.starts_with('{'));
    let summary: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{}", finished.stderr))).unwrap();
    summary["actions"].as_array().unwrap().clone()
}

fn counts(action: &Value) -> [u64; 5] {
    ["caused", "done", "failed", "limited", "dropped"].map(|name| action[name].as_u64().unwrap())
}

#[test]
fn messages_in_json_over_zenoh_and_mqtt() {
    let Some(broker) = Broker::start("actions: messages_in_json") else { return };
    let message =
        "{ stop: true, robot: \"{robot}\", reason: \"{property} ({severity})\", value: \"{scan.distance}\" }";
    let deployed = Deployed::new(&format!(
        "mqtt: {{ broker: \"127.0.0.1:{}\" }}\nactions:\n  - publish: {{ to: zenoh:alarm/stop, message: {message} }}\n\
         \x20 - {{ on: change, properties: gap, publish: {{ to: mqtt:alarm, message: \"{{robot}} {{verdict}}\", encoding: plain }} }}\n",
        broker.port
    ));
    rondel(["validate", &deployed.file]).expect_status(0);
    let run = deployed.run(&["--count", "5"]);
    let mut on_zenoh =
        start_rondel(arguments(&["tap", "zenoh:alarm/stop", "--format", "json"], &deployed.peer()));
    on_zenoh.wait_stderr("ready");
    let mut on_mqtt = broker
        .client("mosquitto_sub", &["-q", "1", "-t", "alarm", "-t", "ready", "-C", "6", "-W", "60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(on_mqtt.stdout.take().unwrap()).lines().map(Result::unwrap);
    // It has subscribed when its own retained message comes.
    broker.client("mosquitto_pub", &["-t", "ready", "-r", "-m", "{}"]).status().unwrap();
    assert_eq!(lines.next().unwrap(), "{}");
    deployed.scan(SCANS);
    let expected = |robot: &str, value: f64| json!({"stop": true, "robot": robot, "reason": "gap (critical)", "value": value});
    let messages: Vec<Value> = on_zenoh
        .take_stdout(3)
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone())
        .collect();
    assert_eq!(messages, [expected("a", 0.5), expected("b", 0.25), expected("a", 0.75)]);
    let changes = ["a satisfied", "a violated", "a satisfied", "b violated", "a violated"];
    assert!(lines.eq(changes));
    on_mqtt.wait().unwrap();
    let finished = run.finish();
    finished.expect_status(0);
    let all = actions(&finished);
    assert_eq!(all.iter().map(counts).collect::<Vec<_>>(), [[3, 3, 0, 0, 0], [5, 5, 0, 0, 0]]);
    assert_eq!((&all[0]["action"], &all[0]["pending"]), (&json!("publish zenoh:alarm/stop"), &json!(0)));
}

#[test]
fn messages_of_ros2_have_their_type() {
    let Some(python) = python("actions: messages_of_ros2") else { return };
    let deployed = Deployed::new(
        "ros2: { middleware: zenoh, domain: 7 }\n\
         actions:\n  - publish: { to: \"ros2:/stop\", type: std_msgs/msg/Bool, message: { data: true } }\n",
    );
    rondel(["validate", &deployed.file]).expect_status(0);
    let run = deployed.run(&["--count", "5"]);
    let options = ["/stop", "--type", "std_msgs/msg/Bool", "--count", "3", "--domain", "7"];
    let connect = ["--mode", "client", "--connect", &deployed.endpoint];
    let mut subscriber = independent(&python, "ros2_zenoh_subscribe.py", &[&options[..], &connect].concat());
    subscriber.wait_stdout("ready");
    deployed.scan(SCANS);
    let received = subscriber.finish();
    received.expect_status(0);
    let received: Vec<Value> = received
        .stdout
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let received: Vec<_> =
        received.iter().map(|line| (line["data"].clone(), line["number"].clone())).collect();
    assert_eq!(received, [1, 2, 3].map(|number| (json!(true), json!(number))));
    run.finish().expect_status(0);
}

#[test]
fn programs_run_if_they_are_allowed() {
    let deployed = Deployed::new(
        "audit: audit.jsonl\nactions:\n  - run: [sh, -c, 'echo \"$1 $RONDEL_VERDICT\" >> FOLDER/out', notify, \"{robot} {scan.distance}\"]\n\
         \x20   timeout: 30 s\n",
    );
    rondel(["validate", &deployed.file]).expect_status(0).expect_stderr(&["--allow-run"]);
    let refused = rondel(["run", &deployed.file]);
    refused.expect_status(2).expect_stderr(&["allow that with `rondel run --allow-run`"]);
    // One at a time: in the order of the violations.
    let run = deployed.run(&["--count", "5", "--allow-run=1"]);
    deployed.scan(SCANS);
    let finished = run.finish();
    finished.expect_status(0);
    assert_eq!(actions(&finished).iter().map(counts).collect::<Vec<_>>(), [[3, 3, 0, 0, 0]]);
    let written = std::fs::read_to_string(deployed.folder.path("out")).unwrap();
    assert_eq!(written, "a 0.5 violated\nb 0.25 violated\na 0.75 violated\n");
    let audit = deployed.folder.path("audit.jsonl");
    rondel(["audit", "verify", &audit]).expect_status(0);
    let lines = std::fs::read_to_string(audit).unwrap();
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(counts(&records.last().unwrap()["actions"][0]), [3, 3, 0, 0, 0]);
    let records: Vec<&Value> = records.iter().filter(|record| record["record"] == "action").collect();
    assert_eq!(records.len(), 3, "{lines}");
    assert_eq!((&records[1]["action"], &records[1]["key"]), (&json!("run sh"), &json!({"robot": "b"})));
    assert_eq!((&records[1]["done"], &records[1]["result"]), (&json!(true), &json!({"status": 0})));
}

#[test]
fn programs_that_fail_hang_or_are_missing_are_counted() {
    let deployed = Deployed::new(
        "actions:\n  - { run: [sh, -c, \"echo no brake; exit 3\"] }\n  - { run: [sleep, \"600\"], timeout: 100 ms }\n\
         \x20 - { run: [/nonexistent/notify] }\n  - { run: [sh, -c, \"sleep 5 & echo\"] }\n",
    );
    let began = Instant::now();
    let mut run = deployed.run(&["--allow-run"]);
    deployed.scan([SCANS[1]]);
    run.wait_stderr("it was ended after 0.1 s");
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&[
        "run sh on 'gap' failed: it ended with exit status: 3; its output: no brake",
        "run /nonexistent/notify on 'gap' failed: the program cannot be started: No such file",
    ]);
    let counts: Vec<_> = actions(&finished).iter().map(counts).collect();
    assert_eq!(counts, [[1, 0, 1, 0, 0], [1, 0, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0]]);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn programs_end_with_the_run() {
    let deployed = Deployed::new("actions: [{ run: [sleep, \"600\"], timeout: 1 h }]\n");
    let run = deployed.run(&["--allow-run=2", "--count", "5", "--stop-timeout", "3"]);
    let began = Instant::now();
    deployed.scan(SCANS);
    let finished = run.finish();
    finished.expect_status(0);
    assert!(began.elapsed() < Duration::from_secs(30));
    // Two were ended, and the third had no room.
    assert_eq!(actions(&finished).iter().map(counts).collect::<Vec<_>>(), [[3, 0, 2, 0, 1]]);
}

#[test]
fn limits_hold_for_many_violations() {
    let deployed = Deployed::new(
        "actions:\n  - { publish: { to: zenoh:alarm, message: \"{robot}\" }, limit: { per_minute: 5 } }\n\
         \x20 - { publish: { to: zenoh:alarm, message: \"{robot}\" }, limit: { total: 2 } }\n",
    );
    let run = deployed.run(&["--count", "1000"]);
    let messages: Vec<String> =
        (0..1000).map(|robot| format!("{{\"robot\":\"r{robot}\",\"distance\":0}}")).collect();
    deployed.scan(messages.iter().map(String::as_str));
    let finished = run.finish();
    finished.expect_status(0);
    let all = actions(&finished);
    let [caused, done, failed, limited, dropped] = counts(&all[0]);
    assert_eq!((caused, failed, dropped), (1000, 0, 0));
    // A slow machine takes some seconds, in which one or two more are allowed.
    assert!((5..10).contains(&done) && done + limited == 1000, "{all:?}");
    assert_eq!(counts(&all[1]), [1000, 2, 0, 998, 0]);
}

/// An action that calls the service `/stop` on this middleware.
fn stop(middleware: &str, timeout: &str) -> String {
    format!(
        "ros2: {{ {middleware} }}\nactions:\n  - call: {{ service: ros2:/stop, type: std_srvs/srv/SetBool, request: {{ data: true }} }}\n    \
         timeout: {timeout}\n"
    )
}

#[test]
fn services_are_called_over_zenoh() {
    let Some(python) = python("actions: services_are_called_over_zenoh") else { return };
    for (answer, timeout, words, done) in [
        ("yes", "30 s", "call ros2:/stop on 'gap': the server reports success: stopped", true),
        ("no", "30 s", "call ros2:/stop on 'gap' failed: the server reports no success: no brake", false),
        (
            "none",
            "200 ms",
            "call ros2:/stop on 'gap' failed: the server has not answered within 0.2 s",
            false,
        ),
        ("", "30 s", "call ros2:/stop on 'gap' failed: no server offers the service", false),
    ] {
        let deployed = Deployed::new(&stop("middleware: zenoh, domain: 7", timeout));
        let mut run = deployed.run(&[]);
        let connect = ["--mode", "client", "--connect", &deployed.endpoint];
        let options = ["/stop", "--domain", "7", "--answer", answer];
        let mut server = (!answer.is_empty())
            .then(|| independent(&python, "ros2_zenoh_service.py", &[&options[..], &connect].concat()));
        if let Some(server) = &mut server {
            server.wait_stdout("ready");
        }
        deployed.scan([SCANS[1]]);
        run.wait_stderr(words);
        if let Some(mut server) = server {
            server.wait_stdout("request True 1 16");
            server.close_input();
            server.finish().expect_status(0);
        }
        run.terminate();
        let finished = run.finish();
        finished.expect_status(0);
        let expected = if done { [1, 1, 0, 0, 0] } else { [1, 0, 1, 0, 0] };
        assert_eq!(counts(&actions(&finished)[0]), expected);
    }
}

#[test]
fn services_are_called_over_dds() {
    let Some(python) = python("actions: services_are_called_over_dds") else { return };
    let domain = dds_domain();
    let middleware = format!("middleware: dds, domain: {domain}");
    let sections = format!("dds: {{ interface: lo, domain: {domain} }}\n{}", stop(&middleware, "30 s"));
    let deployed = Deployed::new(&sections);
    let mut run = deployed.run(&[]);
    let mut server = independent(&python, "dds_service.py", &["/stop", "--domain", &domain]);
    server.wait_stdout("matched");
    deployed.scan([SCANS[1]]);
    run.wait_stderr("call ros2:/stop on 'gap': the server reports success: stopped");
    server.wait_stdout("request True 1");
    server.close_input();
    server.finish().expect_status(0);
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0);
    assert_eq!(counts(&actions(&finished)[0]), [1, 1, 0, 0, 0]);
}
