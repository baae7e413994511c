//! The case study of an Autoware vehicle, recorded: the monitor finds every planted fault, and nothing else.

#![allow(clippy::unwrap_used)] // a test

use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_recording_of_every_seed_shows_the_planted_faults_and_nothing_else() {
    let program = Path::new(env!("CARGO_BIN_EXE_rondel-bench"));
    // Tests of the whole workspace build it; those of this crate alone do not.
    if !program.with_file_name("rondel").is_file() {
        eprintln!("skipped: `rondel` is not built");
        return;
    }
    let deployment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/autoware/rondel.yaml");
    for seed in ["1", "2", "3"] {
        let output = Command::new(program)
            .args(["autoware", "study", "--recorded", "--seed", seed, "--deployment"])
            .arg(&deployment)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("recorded: 19 of 19 planted faults found, 0 violations"), "{said}");
    }
}
