//! The figures of a summary: for how long properties were violated, their least robustness, and whose messages they mix.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use serde_json::{Value, json};
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::{Folder, rondel, rondel_with_input, start_rondel};

const SPEC: &str = "topic pose { robot: string, mode: string, speed: float }\n\
    property slow_change = changed(pose.mode) -> pose.speed < 1\n\
    property slow for each r in pose.robot = pose.speed < 1.5\n\
    @robust property margin = pose.speed < 2\n\
    property soon = pose.speed > 1 -> eventually[0, 1 s] pose.speed < 1\n\
    assert always margin\n";

/// Three robots in turn, ten messages a second; all drive faster and faster, and are slow again in the middle.
fn fleet(count: u64) -> String {
    let line = |i: u64| {
        let mode = ["idle", "drive"][(i / 40 % 2) as usize];
        let speed = if i == 100 { 0.0 } else { (i / 2) as f64 / 25.0 };
        let data = json!({"robot": format!("r{}", i % 3), "mode": mode, "speed": speed});
        json!({"topic": "pose", "time": i as f64 / 10.0, "data": data}).to_string() + "\n"
    };
    (0..count).map(line).collect()
}

const SHARED: &str = "warning: pose: messages alternate between 3 values of `robot`, and slow_change compares each \
    message with earlier ones of any value; `for each robot in pose.robot` keeps them apart\n";

#[test]
fn a_summary_has_durations_of_violations() {
    let (folder, name) = (Folder::new(), "a.rondel");
    let (spec, trace) = (folder.file(name, SPEC), folder.file("a.jsonl", fleet(120)));
    let checked = rondel(["check", "-e", "violations", &spec, &trace]);
    checked.expect_status(1);
    assert_eq!(checked.stderr, SHARED);
    let summary = checked.stdout.split_once("checked against").unwrap().1;
    for line in [
        "violated 1 time, first at step 80 (time 8 s), for 0.1 s\n",
        "violated 4 times, first of [\"r1\"] at step 76 (time 7.6 s); 12.3 s in total, longest 4.2 s of [\"r2\"] from \
         time 7.7 s\n",
        "violated 1 time, first at step 101 (time 10.1 s), for 1.8 s; least robustness -0.35",
        "violated 2 times, first at time 5.2 s\n",
    ] {
        assert!(summary.contains(line), "{line} is not in {summary}");
    }
    let json = rondel(["check", "-e", "violations", "--summary", "json", &spec, &trace]);
    let json: Value = serde_json::from_str(json.stderr.lines().last().unwrap()).unwrap();
    let property = |i: usize| &json["properties"][i];
    assert_eq!(property(0)["first"], json!({"time": 8.0, "step": 80, "instance": null}));
    assert_eq!(property(0)["in_violation"], json!({"seconds": 0.1, "steps": 1, "at_least": false}));
    assert_eq!(property(0)["least_robustness"], Value::Null);
    let longest = json!({"seconds": 4.2, "time": 7.7, "step": 77, "instance": "[\"r2\"]"});
    assert_eq!((&property(1)["longest"], &property(1)["first"]["instance"]), (&longest, &json!("[\"r1\"]")));
    let least = property(2)["least_robustness"].as_f64().unwrap();
    assert!((least + 0.36).abs() < 1e-9, "{least}");
    // A future operator does not show when it is satisfied again.
    assert_eq!([&property(3)["in_violation"], &property(3)["longest"]], [&Value::Null; 2]);
    assert_eq!(property(4).get("in_violation"), None);
    assert_eq!(property(4)["measured"].as_str().map(|text| text.starts_with("violated at")), Some(true));
}

#[test]
fn reports_have_the_same_figures() {
    let folder = Folder::new();
    let (spec, trace) = (folder.file("a.rondel", SPEC), folder.file("a.jsonl", fleet(120)));
    let report = |form: &str| {
        let file = folder.path("report");
        rondel(["check", "-q", "--report", &format!("{form}={file}"), &spec, &trace]).expect_status(1);
        std::fs::read_to_string(file).unwrap()
    };
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let judged = &json["recordings"][0]["properties"];
    let figures =
        |i: usize| ["violated_ns", "longest_ns", "longest_from_ns"].map(|member| judged[i][member].as_i64());
    assert_eq!(figures(1), [Some(12_300_000_000), Some(4_200_000_000), Some(7_700_000_000)]);
    assert_eq!(figures(3), [None; 3]);
    assert!((judged[2]["least_robustness"].as_f64().unwrap() + 0.36).abs() < 1e-9);
    let page = report("html");
    assert!(page.contains("violated for 12.3 s in all, for 4.2 s at most, from 7.7 s"), "{page}");
    // Reports of earlier versions can still be read.
    let mut older = json.clone();
    for property in older["recordings"][0]["properties"].as_array_mut().unwrap() {
        let members = property.as_object_mut().unwrap();
        members.retain(|name, _| {
            !["longest_from_ns", "is_at_least", "least_robustness"].contains(&name.as_str())
        });
    }
    assert!(rondel_report::Results::from_json(&older.to_string()).is_ok());
    assert!(report("junit").contains("\"least_robustness\" value=\"-0.35"));
}

#[test]
fn recordings_without_times_count_steps() {
    let lines: String = [false, true, true, false, true, false].map(|v| format!("{{\"v\": {v}}}\n")).concat();
    let checked = rondel_with_input(["check", "-e", "violations", "-f", "not v", "-"], lines.as_bytes());
    let expected =
        "violated 2 times, first at step 1 (time 0 s); 3 steps in total, longest 2 steps from step 1\n";
    assert!(checked.stdout.contains(expected), "{}", checked.stdout);
}

/// The numbers of the publisher show that messages are missing, but not for how long the violation lasted.
#[test]
fn messages_that_are_missing_end_a_violation() {
    let line = |n: u64| {
        let data = json!({"v": (3..=9).contains(&n)});
        json!({"topic": "t", "time": n, "origin": {"publisher": 1, "number": n}, "data": data}).to_string()
            + "\n"
    };
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic t property p = not t.v");
    let trace = folder.file("a.jsonl", [1, 2, 3, 4, 7, 8, 9, 10, 11].map(line).concat());
    let checked = rondel(["check", "-e", "violations", &spec, &trace]);
    assert!(checked.stdout.contains("first at step 2 (time 3 s), for at least 1 s"), "{}", checked.stdout);
}

#[test]
fn a_run_reports_durations_too() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    let endpoint = free_endpoint();
    let own = [
        "run",
        &spec,
        "--topic",
        "zenoh:demo/pose",
        "--time-from",
        "t",
        "-e",
        "violations",
        "--count",
        "120",
    ];
    let run = ["--format", "json"];
    let mut run = start_rondel(arguments(&[&own[..], &run].concat(), &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    let message = |(i, line): (usize, &str)| {
        let line: Value = serde_json::from_str(line).unwrap();
        let mut data = line["data"].clone();
        data["t"] = json!(i as f64 / 10.0);
        data.to_string() + "\n"
    };
    let messages: String = fleet(120).lines().enumerate().map(message).collect();
    let publish = ["publish", "--to", "zenoh:demo/pose", "--wait", "60"];
    rondel_with_input(arguments(&publish, &zenoh("peer", &endpoint)), messages.as_bytes()).expect_status(0);
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&[
        SHARED.trim_end(),
        "slow: violated 4 times, first of [\"r1\"] at step 76 (time 7.6 s); 12.3 s in total, longest 4.2 s of [\"r2\"] from \
         time 7.7 s",
        "least robustness -0.35",
    ]);
    assert_eq!(finished.stderr.matches("messages alternate").count(), 1, "{}", finished.stderr);
}

/// Also where several threads decode a long recording.
#[test]
fn long_recordings_are_looked_at_on_all_threads() {
    let folder = Folder::new();
    let (spec, trace) = (folder.file("a.rondel", SPEC), folder.file("a.jsonl", fleet(20_000)));
    for jobs in ["1", "3"] {
        let checked = rondel(["check", "-q", "-e", "violations", "--jobs", jobs, &spec, &trace]);
        assert_eq!(checked.stderr, SHARED, "{jobs}");
    }
}

#[test]
fn the_first_violation_of_a_quantifier_has_its_values() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic enter { robot: string, zone: string } topic leave { robot: string, zone: string }\n\
         topic ask { id: int } topic grant { id: int }\n\
         property exclusive = forall r, s, z. enter{robot: r, zone: z} and \
         (not leave{robot: s, zone: z} since[0, 100 s] enter{robot: s, zone: z}) -> r == s\n\
         property requested = forall x. grant{id: x} -> once[0, 10 s] ask{id: x}\n",
    );
    let lines = [
        json!({"topic": "enter", "time": 1, "data": {"robot": "a", "zone": "dock"}}),
        json!({"topic": "grant", "time": 3, "data": {"id": 4}}),
        json!({"topic": "enter", "time": 4, "data": {"robot": "b", "zone": "dock"}}),
    ];
    let trace = folder.file("a.jsonl", lines.map(|line| line.to_string() + "\n").concat());
    let checked = rondel(["check", "-e", "violations", &spec, &trace]);
    for line in [
        "violated 1 time, first at step 2 (time 4 s), r = \"b\", s = \"a\", z = \"dock\"\n",
        "violated 1 time, first at step 1 (time 3 s), x = 4\n",
    ] {
        assert!(checked.stdout.contains(line), "{line} is not in {}", checked.stdout);
    }
    let checked = rondel(["check", "-e", "violations", "--summary", "json", &spec, &trace]);
    let json: Value = serde_json::from_str(checked.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(json["properties"][1]["first"]["values"], json!({"x": "4"}));
}
