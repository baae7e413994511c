//! The case study of an Autoware vehicle: the monitor finds every planted fault, and nothing else.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // the helper is a test as well

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a study of the examples, and returns what it says; `None` if `rondel` is not built.
fn study(arguments: &[&str]) -> Option<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_rondel-bench"));
    // Tests of the whole workspace build it; those of this crate alone do not.
    if !program.with_file_name("rondel").is_file() {
        eprintln!("skipped: `rondel` is not built");
        return None;
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/autoware");
    let output = Command::new(program)
        .args(["autoware", "study", "--examples"])
        .arg(&examples)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    Some(said)
}

#[test]
fn a_recording_of_every_seed_shows_the_planted_faults_and_nothing_else() {
    for seed in ["1", "2", "3"] {
        let Some(said) = study(&["--recorded", "--seed", seed]) else { return };
        assert!(said.contains("recorded: 19 of 19 planted faults found, 0 violations"), "{said}");
    }
}

#[test]
fn a_live_drive_over_each_middleware_shows_the_planted_faults_and_nothing_else() {
    // The first two faults.
    let Some(said) = study(&["--seconds", "5.5"]) else { return };
    for middleware in ["rmw_zenoh", "DDS"] {
        let expected = format!("live over {middleware}: 2 of 2 planted faults found, 0 violations");
        assert!(said.contains(&expected), "{said}");
    }
}
