//! Logs of PX4 (ULog) that `pyulog` reads and writes, checked as the messages that it read from them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::path::PathBuf;
use std::process::Command;

use support::{Folder, rondel};

const SPECIFICATION: &str = "
topic attitude \"vehicle_attitude\"
topic battery \"battery_status\"
topic second \"battery_status/1\"
topic esc \"esc_status\"
topic log \"logged_messages\"
topic parameters
property steady = attitude.q[1] < 0.9 or attitude.reset_counter == 3
property full = battery.voltage > 14 and battery.connected or battery.name == \"pack1\"
property both = second.voltage < battery.voltage and second.cells[1] < 90
property turning = esc.esc[1].rpm < 4000 and esc.esc[0].state == 0
property said = log.level == 4 -> parameters.value < 300
property roll = parameters.name == \"MC_ROLL_P\" -> parameters.value < 200
";

/// Returns the Python with an independent writer, if there is one.
fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "pyulog")
}

#[test]
fn logs_of_pyulog_give_the_verdicts_of_its_messages() {
    let Some(python) = python("logs_of_pyulog_give_the_verdicts_of_its_messages") else { return };
    let folder = Folder::new();
    let spec = folder.file("ulog.rondel", SPECIFICATION);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-recording/tests/independent/ulog.py");
    let written = Command::new(python).arg("-B").arg(script).arg(folder.as_path()).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let check = |file: &str, more: &[&str]| {
        let file = folder.path(file);
        rondel(["check", "--format", "json", "-e", "every", "-q", &spec, &file].iter().chain(more))
    };
    let expected = check("lines.jsonl", &[]);
    expected.expect_status(1);
    assert!(expected.stdout.lines().count() > 3000, "{}", expected.stderr);
    let checked = check("pyulog.ulg", &[]);
    assert_eq!(checked.stdout, expected.stdout, "{}", checked.stderr);
    assert_eq!(check("own.ulg", &[]).stdout, expected.stdout);
    // Verdicts that depend on a dropout are inconclusive.
    let dropout = check("dropout.ulg", &[]);
    let undecided = |text: &str| text.matches("inconclusive").count();
    assert!(undecided(&dropout.stdout) > undecided(&expected.stdout), "{}", dropout.stderr);
    let said = rondel(["check", &spec, &folder.path("dropout.ulg")]);
    said.expect_stderr(&["1 dropout"]);
    assert!(said.stdout.contains("dropout: the logger could not write"), "{}", said.stdout);
    assert!(!said.stdout.contains("network"), "{}", said.stdout);
    let listed = rondel(["topics", &folder.path("own.ulg")]);
    listed.expect_status(0);
    for topic in ["battery_status/1  ulog/battery_status", "logged_messages", "parameters", "ulog"] {
        assert!(listed.stdout.contains(topic), "{}", listed.stdout);
    }
    let drafted = folder.path("drafted");
    rondel(["init", &folder.path("pyulog.ulg"), "--folder", &drafted]).expect_status(0);
    rondel(["check", "-q", &format!("{drafted}/first.rondel"), &folder.path("pyulog.ulg")]).expect_status(0);
    let picture = folder.path("log.svg");
    rondel(["plot", "-o", &picture, &spec, &folder.path("pyulog.ulg")]).expect_status(0);
    let typed =
        "topic attitude \"vehicle_attitude\" : ulog/msg/vehicle_attitude\nproperty p = attitude.q[0] > 0.5\n";
    let typed = folder.file("typed.rondel", typed);
    rondel(["check", &typed, &folder.path("pyulog.ulg")]).expect_status(0);
    let at = [
        "--time-field",
        "timestamp",
        "--time-unit",
        "us",
        "-q",
        "-f",
        "q[1] < 2",
        "--topics",
        "vehicle_attitude",
    ];
    rondel(["check"].iter().chain(&at).chain(&[folder.path("pyulog.ulg").as_str()])).expect_status(0);
}
