//! Runs in simulated time, which independent programs publish on `/clock`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process};
use serde_json::Value;
use support::network::{dds_domain, free_endpoint, independent, python};
use support::{Folder, rondel, start_rondel};

const SPECIFICATION: &str = "topic chatter \"/fleet/chatter\" : std_msgs/msg/String\n\
     property spoken = once[0, 2 s] on(chatter)\n";

fn folder(sections: &str) -> (Folder, String) {
    let folder = Folder::new();
    folder.file("chatter.rondel", SPECIFICATION);
    let topics = "topics: { chatter: ros2:/fleet/chatter }";
    let deployment =
        folder.file("rondel.yaml", format!("specification: chatter.rondel\n{topics}\n{sections}\n"));
    (folder, deployment)
}

/// A simulation that follows commands, and a monitor whose verdicts are read.
struct Case {
    simulator: Process,
    run: Process,
}

impl Case {
    fn send(&mut self, line: &str) {
        self.simulator.write(format!("{line}\n").as_bytes());
        self.simulator.wait_stdout(line);
    }

    /// Repeats lines until a verdict comes: messages on `/clock` may be lost. Returns its time and the verdict.
    fn verdict(&mut self, mut line: impl FnMut(u32) -> String) -> (f64, String) {
        let start = Instant::now();
        for i in 0.. {
            assert!(start.elapsed() < LIMIT, "no verdict:\n{}", self.run.all_stderr_so_far());
            self.send(&line(i));
            if let Some(printed) = self.run.stdout_within(Duration::from_millis(50)) {
                let verdict: Value = serde_json::from_str(&printed).unwrap();
                return (verdict["time"].as_f64().unwrap(), verdict["verdict"].as_str().unwrap().to_owned());
            }
        }
        unreachable!()
    }
}

fn follows_the_simulation(mut case: Case) {
    case.simulator.wait_stdout("ready");
    case.run.wait_stderr("ready");
    // Messages on different topics are in no order: the clock must be known before the message.
    for i in 0..10 {
        case.send(&format!("clock {}", 100.0 + f64::from(i.min(4)) / 10.0));
        assert_eq!(case.run.stdout_within(Duration::from_millis(100)), None);
    }
    let (first, verdict) =
        case.verdict(|i| if i == 0 { "say a".to_owned() } else { "clock 100.4".to_owned() });
    assert_eq!(verdict, "satisfied");
    assert!((100.0..=100.4).contains(&first), "{first}");
    // The simulation is paused for longer than the property allows.
    for _ in 0..30 {
        case.send("clock 100.4");
        assert_eq!(case.run.stdout_within(Duration::from_millis(100)), None);
    }
    let (silent, verdict) = case.verdict(|i| format!("clock {}", 100.5 + f64::from(i) / 10.0));
    assert_eq!(verdict, "violated");
    assert!((silent - first - 2.0).abs() < 1e-6, "{silent}");
    // The simulation restarts.
    case.send("clock 0");
    case.run.wait_stderr("checking restarts");
    (0..5).for_each(|i| case.send(&format!("clock {}", f64::from(i) / 10.0)));
    let (again, verdict) = case.verdict(|i| if i == 0 { "say b".to_owned() } else { "clock 0.4".to_owned() });
    assert_eq!(verdict, "satisfied");
    assert!((0.0..=0.4).contains(&again), "{again}");
    case.run.terminate();
    let restarted = "the time on /clock went back, and checking restarted, 1 time";
    case.run.finish().expect_status(0).expect_stderr(&["received 2, checked 2, undecodable 0", restarted]);
    case.simulator.close_input();
    case.simulator.finish().expect_status(0);
}

#[test]
fn simulated_time_over_zenoh() {
    let Some(python) = python("simulated: over_zenoh") else { return };
    let endpoint = free_endpoint();
    let (_folder, deployment) = folder(&format!(
        "ros2: {{ middleware: zenoh, domain: 9, use_sim_time: true }}\nzenoh: {{ mode: router, listen: {endpoint} }}"
    ));
    let said = rondel(["validate", &deployment]);
    said.expect_status(0);
    assert!(said.stdout.contains("the time on ros2:/clock"), "{}", said.stdout);
    let run = start_rondel(["run", &deployment, "--format", "json"]);
    let options = ["/fleet/chatter", "--domain", "9", "--connect", &endpoint];
    let simulator = independent(&python, "ros2_zenoh_simulator.py", &options);
    follows_the_simulation(Case { simulator, run });
}

#[test]
fn simulated_time_over_dds() {
    let Some(python) = python("simulated: over_dds") else { return };
    let domain = dds_domain();
    let (_folder, deployment) = folder(&format!(
        "ros2: {{ middleware: dds, domain: {domain}, use_sim_time: true }}\ndds: {{ interface: lo, domain: {domain} }}"
    ));
    let run = start_rondel(["run", &deployment, "--format", "json"]);
    let simulator = independent(&python, "dds_simulator.py", &["rt/fleet/chatter", "--domain", &domain]);
    follows_the_simulation(Case { simulator, run });
}

#[test]
fn without_a_clock_a_run_is_inconclusive() {
    let Some(python) = python("simulated: without_a_clock") else { return };
    for (format, said) in [
        ("text", "no message came on /clock: time stood"),
        ("json", r#""clock":{"contested":false,"leaps":0,"#),
    ] {
        let domain = dds_domain();
        let (_folder, deployment) = folder(&format!(
            "ros2: {{ middleware: dds, domain: {domain}, use_sim_time: true }}\n\
             dds: {{ interface: lo, domain: {domain} }}"
        ));
        let arguments = ["run", &deployment, "--format", "json", "--strict", "--summary", format];
        let run = start_rondel(arguments);
        let simulator = independent(&python, "dds_simulator.py", &["rt/fleet/chatter", "--domain", &domain]);
        let mut case = Case { simulator, run };
        case.simulator.wait_stdout("ready");
        assert_eq!(case.verdict(|_| "say a".to_owned()).1, "satisfied");
        case.run.terminate();
        case.run.finish().expect_status(4).expect_stderr(&[said]);
        case.simulator.close_input();
        case.simulator.finish().expect_status(0);
    }
}

#[test]
fn a_recording_has_the_clock() {
    let Some(python) = python("simulated: a_recording_has_the_clock") else { return };
    let domain = dds_domain();
    let (folder, deployment) = folder(&format!(
        "ros2: {{ middleware: dds, domain: {domain}, use_sim_time: true }}\ndds: {{ interface: lo, domain: {domain} }}"
    ));
    let file = folder.path("drive.mcap");
    let mut record = start_rondel(["record", &deployment, "-o", &file, "--count", "2"]);
    record.wait_stderr("log times are those of this machine");
    let mut simulator = independent(&python, "dds_simulator.py", &["rt/fleet/chatter", "--domain", &domain]);
    simulator.wait_stdout("ready");
    record.wait_stderr("ready");
    simulator.write(b"clock 100.5\nsay a\n");
    record.finish().expect_status(0).expect_stderr(&["received 2"]);
    simulator.close_input();
    simulator.finish().expect_status(0);
    let topics = rondel(["topics", &file]);
    topics.expect_status(0);
    let has =
        |parts: [&str; 2]| topics.stdout.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(["/clock", "rosgraph_msgs/msg/Clock"]), "{}", topics.stdout);
    assert!(has(["/fleet/chatter", "std_msgs/msg/String"]), "{}", topics.stdout);
    rondel(["check", &deployment, &file]).expect_status(0).expect_stderr(&[]);
}

#[test]
fn mistakes() {
    let refused = |sections: &str, said: &str| {
        let (_folder, deployment) = folder(sections);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    };
    let simulated = "ros2: { use_sim_time: true }";
    refused(&format!("{simulated}\nids: true"), "rondel.yaml:4:6: with `use_sim_time` there is no `ids`");
    for to in ["verdicts: { to: \"ros2+json:/clock\" }", "verdicts: { to: dds:rt/clock }"] {
        let ros2 = "ros2: { middleware: dds, use_sim_time: true }";
        refused(&format!("{ros2}\n{to}"), "would be read as the time on ros2:/clock");
    }
    refused("ros2: { use_sim_time: maybe }", "use_sim_time");
    refused("ros2: { sim_time: true }", "write `use_sim_time: true`");
    let folder = Folder::new();
    folder.file("chatter.rondel", SPECIFICATION);
    let topics = "topics: { chatter: { source: ros2:/fleet/chatter, time: source } }";
    let deployment =
        folder.file("rondel.yaml", format!("specification: chatter.rondel\n{simulated}\n{topics}\n"));
    rondel(["validate", &deployment]).expect_status(2).expect_stderr(&["`time: source` is a time of day"]);
    let (_folder, deployment) = self::folder(simulated);
    let run = rondel(["run", &deployment, "--snapshot-to", "never"]);
    run.expect_status(2).expect_stderr(&["cannot continue from a snapshot"]);
}
