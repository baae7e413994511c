//! Drafts of generated robots: ten healthy minutes satisfy what `rondel init` writes about the first ones, and faults do not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // the helpers are tests as well

mod support;

#[path = "support/robots.rs"]
mod robots;

use std::collections::BTreeMap;
use std::path::Path;

use robots::{Fault, ROBOTS, Robot};
use support::network::python;
use support::{Folder, rondel};

/// The seed of the robots; another one with `RONDEL_SEED`.
fn seed() -> u64 {
    let seed = std::env::var("RONDEL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("RONDEL_SEED={seed}");
    seed
}

/// Writes a draft from the lines up to a time, and returns the file to check with.
fn drafted(folder: &Folder, robot: &Robot, trace: &str, to: &str) -> String {
    let own = folder.path(robot.name);
    let written = rondel(["init", trace, "--folder", &own, "--to", to]);
    written.expect_status(0);
    rondel(["validate", &format!("{own}/rondel.yaml")]).expect_status(0);
    rondel(["test", &format!("{own}/first.rondel")]);
    format!("{own}/rondel.yaml")
}

/// The properties of a draft that are violated in a recording, each with its first violation.
fn violated(deployment: &str, trace: &str) -> BTreeMap<String, String> {
    let found = rondel(["check", "--quiet", "--emit", "violations", deployment, trace]);
    assert!(matches!(found.status, Some(0 | 1)), "{}", found.stderr);
    let mut first = BTreeMap::new();
    for line in found.stdout.lines() {
        let property = line.split_whitespace().nth(1).unwrap().to_owned();
        first.entry(property).or_insert_with(|| line.to_owned());
    }
    first
}

#[test]
fn ten_healthy_minutes_satisfy_the_draft_of_the_first_one() {
    let seed = seed();
    let run = |robot: &Robot| {
        let folder = Folder::new();
        let trace = folder.file("run.jsonl", robot.lines(seed, 660.0, &[]));
        let deployment = drafted(&folder, robot, &trace, "+60");
        let specification =
            std::fs::read_to_string(deployment.replace("rondel.yaml", "first.rondel")).unwrap();
        let found = violated(&deployment, &trace);
        assert_eq!(found, BTreeMap::new(), "{} with seed {seed}\n{specification}", robot.name);
    };
    std::thread::scope(|threads| ROBOTS.iter().for_each(|robot| drop(threads.spawn(move || run(robot)))));
}

/// The draft of a healthy minute finds a silence, a sensor that hangs, and values out of range.
#[test]
fn a_draft_finds_planted_faults() {
    let seed = seed();
    for (robot, faults, properties) in [
        (
            &ROBOTS[0],
            &[
                Fault::Silence("/scan", 20.0, 22.0),
                Fault::Wild("/battery", "percentage", 30.0),
                Fault::Wild("/battery", "temperature", 40.0),
            ][..],
            &["scan_fresh", "battery_percentage", "battery_temperature"][..],
        ),
        (
            &ROBOTS[2],
            &[Fault::Stuck("/imu", 30.0, 40.0), Fault::Wild("/gps", "latitude", 20.0)],
            &["imu_seq", "imu_angular_velocity_x_alive", "gps_latitude"],
        ),
        (
            &ROBOTS[4],
            &[Fault::Wild("/odom", "seq", 20.0), Fault::Silence("/meter", 40.0, 50.0)],
            &["odom_header_seq", "meter_fresh"],
        ),
    ] {
        let folder = Folder::new();
        let trace = folder.file("run.jsonl", robot.lines(seed, 60.0, &[]));
        let deployment = drafted(&folder, robot, &trace, "+60");
        let found = violated(&deployment, &folder.file("faults.jsonl", robot.lines(seed + 1, 60.0, faults)));
        for property in properties {
            assert!(found.contains_key(*property), "{property} with seed {seed}: {found:#?}");
        }
    }
}

/// Makes properties of the rules that a draft only suggests as the recording violates them.
fn with_refuted(specification: &str) {
    let text = std::fs::read_to_string(specification).unwrap();
    let mut is_refuted = false;
    let line = |line: &str| {
        let is_rule = is_refuted && line.starts_with("// property ");
        is_refuted = line.starts_with("// Only suggested. Violated ");
        let line = if is_rule { &line[3..] } else { line };
        format!("{line}\n")
    };
    let text: String = text.lines().map(line).collect();
    std::fs::write(specification, text).unwrap();
}

/// Faults in the recording that a draft is made from are reported, and do not widen its bounds: the rules that they violate
/// are comments.
#[test]
fn faults_are_reported_and_not_adopted() {
    let (seed, folder) = (seed(), Folder::new());
    let faults = [
        Fault::Silence("/odom", 20.0, 20.6),
        Fault::Wild("/battery", "temperature", 40.0),
        Fault::Wild("/odom", "z", 30.0),
    ];
    let trace = folder.file("run.jsonl", ROBOTS[0].lines(seed, 60.0, &faults));
    let own = folder.path("own");
    let written = rondel(["init", &trace, "--folder", &own]);
    written.expect_status(0).expect_stderr(&[
        "unlike the rest: /odom: one silence of 6",
        " ms at +19.9",
        " s, otherwise 20 ms",
        "unlike the rest: /battery: temperature: one value of 1234567 at +40",
        " s, otherwise ",
    ]);
    assert_eq!(violated(&format!("{own}/first.rondel"), &trace), BTreeMap::new());
    for property in ["odom_fresh", "battery_temperature"] {
        written.expect_stderr(&[&format!("only suggested: {property}: Violated ")]);
    }
    with_refuted(&format!("{own}/first.rondel"));
    let found = violated(&format!("{own}/first.rondel"), &trace);
    for property in ["odom_fresh", "battery_temperature"] {
        assert!(found.contains_key(property), "{found:#?}");
    }
    let healthy = folder.file("healthy.jsonl", ROBOTS[0].lines(seed + 1, 120.0, &[]));
    assert_eq!(violated(&format!("{own}/first.rondel"), &healthy), BTreeMap::new());
}

/// Several recordings give one draft; the times between them are no silences.
#[test]
fn several_recordings_give_one_draft() {
    let (seed, folder) = (seed(), Folder::new());
    let traces: Vec<String> = (0..3)
        .map(|run| folder.file(&format!("runs/{run}.jsonl"), ROBOTS[1].lines(seed + run, 30.0, &[])))
        .collect();
    let own = folder.path("own");
    let all: Vec<&str> = ["init"].into_iter().chain(traces.iter().map(String::as_str)).collect();
    let written = rondel([&all[..], &["--folder", &own]].concat());
    written.expect_status(0);
    assert!(!written.stderr.contains("unlike"), "{}", written.stderr);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    assert!(text.contains("of 3 recordings") && text.contains("from 90.0 s"), "{text}");
    for trace in &traces {
        assert_eq!(violated(&format!("{own}/first.rondel"), trace), BTreeMap::new());
    }
    // A folder of recordings is all of them.
    let whole = folder.path("whole");
    rondel(["init", &folder.path("runs"), "--folder", &whole]).expect_status(0);
    assert_eq!(std::fs::read_to_string(format!("{whole}/first.rondel")).unwrap(), text);
    rondel(["init", &traces[0], "zenoh:a/**"])
        .expect_status(2)
        .expect_stderr(&["name recordings or patterns"]);
    rondel(["init", "zenoh:a/**", "--from", "+1"])
        .expect_status(2)
        .expect_stderr(&["choose a part of a recording"]);
}

/// Numbers that come as texts are numbers for the deployment, and single values have the encoding `plain`.
#[test]
fn numbers_in_texts_are_read_as_numbers() {
    let folder = Folder::new();
    let line = |i: u32| {
        let power = 150.0 + f64::from(i % 7);
        format!(
            "{{\"topic\": \"meter\", \"time\": {i}, \"data\": {{\"power\": \"{power}\", \"unit\": \"W\"}}}}\n"
        )
    };
    let trace = folder.file("meter.jsonl", (0..100).map(line).collect::<String>());
    let listed = rondel(["topics", &trace]);
    listed.expect_status(0);
    assert!(listed.stdout.contains("json, numbers as texts"), "{}", listed.stdout);
    let own = folder.path("own");
    rondel(["init", &trace, "--folder", &own])
        .expect_status(0)
        .expect_stderr(&["next: rondel check ", "rondel.yaml"]);
    let deployment = std::fs::read_to_string(format!("{own}/rondel.yaml")).unwrap();
    assert!(deployment.contains("meter: { source: \"zenoh:meter\", texts: numbers }"), "{deployment}");
    let specification = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    assert!(specification.contains("{ power: float, unit: string }"), "{specification}");
    assert!(specification.contains("abs(meter.power) <= "), "{specification}");
    let checked = rondel(["check", &format!("{own}/rondel.yaml"), &trace]);
    checked.expect_status(0);
    assert!(!checked.stderr.contains("vacuous"), "{}", checked.stderr);

    let line = |i: u32| {
        let power = 20.0 + f64::from(i % 7);
        format!(
            "{{\"tst\": \"2026-11-28T07:{:02}:{:02}Z\", \"topic\": \"home/temp\", \"payload\": \"{power}\"}}\n",
            i / 60,
            i % 60
        )
    };
    let trace = folder.file("plain.jsonl", (0..100).map(line).collect::<String>());
    let own = folder.path("plain");
    rondel(["init", &trace, "--folder", &own]).expect_status(0);
    let deployment = std::fs::read_to_string(format!("{own}/rondel.yaml")).unwrap();
    assert!(deployment.contains("temp: { source: \"mqtt:home/temp\", encoding: plain }"), "{deployment}");
    rondel(["validate", &format!("{own}/rondel.yaml")]).expect_status(0);
    let checked = rondel(["check", &format!("{own}/rondel.yaml"), &trace]);
    checked.expect_status(0);
    assert!(!checked.stdout.contains("vacuous"), "{}", checked.stdout);
    rondel(["check", &format!("{own}/first.rondel"), &trace])
        .expect_status(4)
        .expect_stderr(&["messages were not seen"]);
}

/// Bags of ROS 2 that another library writes: the draft of a minute with a silence names it, and holds for five minutes without.
#[test]
fn drafts_of_bags_hold() {
    let Some(python) = python("drafts_of_bags_hold") else { return };
    let (seed, folder) = (seed(), Folder::new());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/robot_bag.py");
    let bag = |name: &str, seed: u64, arguments: &[&str]| {
        let path = folder.path(name);
        let mut command = std::process::Command::new(&python);
        let written = command.arg(&script).arg(&path).arg(seed.to_string()).args(arguments).output().unwrap();
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        path
    };
    let first = bag("first", seed, &["SQLITE3", "60", "20"]);
    let own = folder.path("own");
    let written = rondel(["init", &first, "--folder", &own]);
    written.expect_status(0).expect_stderr(&[
        "/odom: one silence of 62",
        "0 ms at +19.9",
        " s, otherwise 20 ms",
    ]);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    for part in [
        "abs(odom.twist.twist.linear.x) <= ",
        "battery_state.percentage >= 0.0 and battery_state.percentage <= 1.0",
        "all r in scan.ranges: r >= 0.0 and (r <= 12.0 or",
        "BatteryState.POWER_SUPPLY_STATUS_FULL",
        "age(odom) <= 1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    rondel(["validate", &format!("{own}/rondel.yaml")]).expect_status(0);
    let specification = format!("{own}/first.rondel");
    assert_eq!(violated(&specification, &first), BTreeMap::new(), "seed {seed}\n{text}");
    with_refuted(&specification);
    let found = violated(&specification, &first);
    assert!(
        found.contains_key("odom_fresh") && found.keys().all(|name| name.starts_with("odom")),
        "{found:#?}"
    );
    let healthy = bag("healthy", seed + 1, &["MCAP", "300", "0"]);
    assert_eq!(violated(&specification, &healthy), BTreeMap::new(), "seed {seed}\n{text}");
}
