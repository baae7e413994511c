//! `rondel validate`, and `rondel run` as far as a deployment that does not get to its network; the files of
//! `deploy/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod actions;
mod gates;
mod good;
mod impossible;
mod mistakes;
mod operators;
mod shipped;
mod sinks;
mod starting;
mod store;
#[path = "../support/mod.rs"]
mod support;

use support::{Finished, Folder, rondel};

const SPECIFICATION: &str = "topic gear \"/demo/gear\" { report: int }\n\
                             topic speed \"/demo/speed\" { value: float }\n\
                             property slow = speed.value < 10.0\n\
                             property no_reverse = gear.report != 20\n";

/// Validates this deployment beside the specification `vehicle.rondel`.
fn validate(deployment: &str) -> Finished {
    let folder = Folder::new();
    folder.file("vehicle.rondel", SPECIFICATION);
    rondel(["validate", &folder.file("rondel.yaml", deployment)])
}

/// Validates a deployment that must be refused, and looks for each `(place, words)` on one line of
/// what is said; there must be as many mistakes as expected, no more.
#[track_caller]
fn refused(deployment: &str, expected: &[(&str, &[&str])]) {
    let finished = validate(deployment);
    finished.expect_status(2);
    let errors: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("error")).collect();
    for (place, words) in expected {
        let place = if place.is_empty() { String::new() } else { format!("rondel.yaml:{place}: ") };
        assert!(
            errors.iter().any(|line| line.contains(&place) && words.iter().all(|word| line.contains(word))),
            "{place}… {words:?} is not among\n{}\nof\n{deployment}",
            finished.stderr
        );
    }
    assert_eq!(errors.len(), expected.len(), "{}\nof\n{deployment}", finished.stderr);
}

/// Validates a good deployment, and looks for these words in what is printed.
#[track_caller]
fn accepted(deployment: &str, words: &[&str]) -> String {
    let finished = validate(deployment);
    assert_eq!(finished.status, Some(0), "{deployment}\n{}", finished.stderr);
    for word in words {
        assert!(finished.stdout.contains(word), "{word} is not in\n{}", finished.stdout);
    }
    finished.stderr
}
