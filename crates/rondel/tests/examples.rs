//! The examples: they are laid out, their tests pass, and on their recordings comes what their remarks say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::path::{Path, PathBuf};

use support::{Finished, rondel};

fn example(name: &str) -> String {
    folder().join(name).to_str().unwrap().to_owned()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

/// Checks the recording of the same name, and shows violations only.
fn violations(name: &str) -> Finished {
    let (spec, trace) = (example(&format!("{name}.rondel")), example(&format!("{name}.jsonl")));
    rondel(["check", "--quiet", "--emit", "violations", &spec, &trace])
}

#[test]
fn all_are_laid_out_and_pass_their_tests() {
    let mut tested = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "rondel") {
            continue;
        }
        rondel(["fmt".as_ref(), "--check".as_ref(), path.as_os_str()]).expect_status(0);
        if std::fs::read_to_string(&path).unwrap().contains("\ntest ") {
            rondel(["test".as_ref(), path.as_os_str()]).expect_status(0);
            tested += 1;
        }
    }
    assert!(tested >= 6, "only {tested} have tests");
}

#[test]
fn the_autoware_vehicle_is_laid_out_and_passes_its_tests() {
    let path = example("autoware/autoware.rondel");
    rondel(["fmt", "--check", &path]).expect_status(0);
    rondel(["test", &path]).expect_status(0);
    for deployment in ["rondel", "dds", "synchronizer", "two-networks/rondel"] {
        rondel(["validate", &example(&format!("autoware/{deployment}.yaml"))]).expect_status(0);
    }
}

#[test]
fn the_mode_manager() {
    violations("mode_manager").expect_status(1).expect_stdout(
        "\
violated      driver_takes_over                step         7   time 9.5 s, severity warning
violated      says_stop                                         time 10 s, severity critical
",
    );
}

#[test]
fn example_of_an_ownership_has_its_violations() {
    violations("ownership").expect_status(1).expect_stdout(
        "\
violated      owned                            step        12   time 1.2 s, severity warning
violated      settled                          step        23   time 2.1 s
violated      owned                            step        33   time 2.95 s, severity warning
violated      taken_over                                        time 3.05 s, severity critical
",
    );
}

#[test]
fn the_driving_chain() {
    violations("driving_chain").expect_status(1).expect_stdout(
        "\
violated      drive[11.2 s]                                     time 11.35 s, about 11.2 s, missing on fusion, severity critical
violated      drive_age                                         time 11.35 s, severity critical
violated      drive[13 s]                                       time 13.15 s, about 13 s, missing on actuator, severity critical
violated      drive_age                                         time 13.15 s, severity critical
violated      drive[13.1 s]                                     time 13.25 s, about 13.1 s, missing on planner, severity critical
violated      drive_age                                         time 13.25 s, severity critical
violated      drive[13.2 s]                                     time 13.35 s, about 13.2 s, missing on actuator, severity critical
violated      drive_age                                         time 13.35 s, severity critical
violated      drive[14 s]                                       time 14.15 s, about 14 s, missing on planner, severity critical
violated      drive_age                                         time 14.15 s, severity critical
violated      drive[14.1 s]                                     time 14.25 s, about 14.1 s, missing on planner, severity critical
violated      drive_reaction                                    time 14.3 s, severity critical
violated      drive[14.2 s]                                     time 14.35 s, about 14.2 s, missing on planner, severity critical
",
    );
}

#[test]
fn json_summary_has_the_statistics_of_a_chain() {
    let (spec, trace) = (example("driving_chain.rondel"), example("driving_chain.jsonl"));
    let finished = rondel([
        "check",
        "--emit",
        "violations",
        "--format",
        "json",
        "--summary",
        "json",
        &spec,
        &trace,
        &trace,
    ]);
    let verdicts: Vec<serde_json::Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts[0]["missing"], "fusion");
    let line = finished.stderr.lines().last().unwrap();
    let summary: serde_json::Value = serde_json::from_str(line).unwrap();
    let chain = &summary["chains"][0];
    assert_eq!(
        (&chain["chain"], &chain["started"], &chain["late"]),
        (&"drive".into(), &100.into(), &6.into())
    );
    assert_eq!(chain["lost"], serde_json::json!({ "fusion": 2 }));
    assert_eq!((&chain["latency"]["count"], &chain["latency"]["max"]), (&92.into(), &0.1733.into()));
    assert_eq!((&chain["age"]["count"], &chain["age"]["max"]), (&90.into(), &0.4699.into()));
    assert_eq!(summary["properties"][1]["violations"], 10);
    assert_eq!(summary["events"], 382);
}

#[test]
fn example_of_flights_has_its_violations() {
    violations("flights").expect_status(1).expect_stdout(
        "\
violated      sequence_order[\"AFR1\"]           step         6   time 3 s, severity critical
violated      known[\"KLM9\"]                    step         9   time 4.5 s
",
    );
}

#[test]
fn archive_of_flights_in_xml_has_its_violations() {
    let (spec, trace) = (example("sfdps.rondel"), example("sfdps.xml.gz"));
    rondel(["check", "--quiet", "--emit", "violations", &spec, &trace]).expect_status(1).expect_stdout(
        "\
violated      sequence_order[\"AFR1\"]           step         4   time +2 s (2026-11-22 10:00:02), severity critical
violated      altitude[\"AFR1\"]                 step         6   time +3 s (2026-11-22 10:00:03)
violated      sequence_order[\"AFR1\"]           step         8   time +4 s (2026-11-22 10:00:04), severity critical
",
    );
}

#[test]
fn example_of_a_takeover_has_its_violations() {
    violations("takeover").expect_status(1).expect_stdout(
        "\
violated      gear_change_at_standstill        step       118   time 4.2 s, severity critical, requirement SYS-017
violated      odometry_alive                                    time 4.2 s
",
    );
}

#[test]
fn example_of_requests_has_its_violations() {
    violations("requests").expect_status(1).expect_stdout(
        "\
violated      only_after_grant[\"b\"]            step         2   time 1.5 s
violated      answered[1]                                       time 3 s
violated      no_answer_for_nothing[9]         step         8   time 5.5 s
",
    );
}
