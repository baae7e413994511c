//! Live runs with workers: verdicts, snapshots, summaries and metrics are those of one thread.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::time::{SystemTime, UNIX_EPOCH};

use support::network::{arguments, free_endpoint, zenoh};
use support::{Finished, Folder, rondel, rondel_with_input, start_rondel};

const SPECIFICATION: &str = "topic a { id: int, x: float }\n\
    property high = once[0, 2] a.x > 3\n\
    property other = a.x > 1 -> previously a.x > 0\n\
    property each for each id in a.id = once[0, 3] a.x > 2\n";

/// Messages with times from now on, a millisecond apart.
fn lines(count: u64) -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let line = |i: u64| {
        let (seconds, millis) = (now + i / 1000, i % 1000);
        format!("{{\"t\":{seconds}.{millis:03},\"id\":{},\"x\":{}}}\n", i * i % 61, i * 7 % 5)
    };
    (0..count).map(line).collect()
}

/// Publishes messages to a run, and ends it. Returns its verdicts, three for each message.
fn run(folder: &Folder, workers: Option<&str>, more: &[&str], lines: &[String]) -> (Vec<String>, Finished) {
    let endpoint = free_endpoint();
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ a: {{ source: zenoh:a, time: t }} }}\nverdicts: {{ to: stdout, emit: every }}\n{}",
            workers.map(|workers| format!("workers: {workers}\n")).unwrap_or_default()
        ),
    );
    let own = ["run", &deployment, "--format", "json", "--summary", "json"];
    let mut run = start_rondel([&own[..], more].concat());
    run.wait_stderr("ready");
    let publish = arguments(&["publish", "--to", "zenoh:a", "--wait", "60"], &zenoh("client", &endpoint));
    rondel_with_input(publish, lines.concat().as_bytes()).expect_status(0);
    let verdicts = run.take_stdout(3 * lines.len());
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0);
    (verdicts, finished)
}

/// The member `workers` of the summary.
fn workers(finished: &Finished) -> serde_json::Value {
    let summary = finished.stderr.lines().find(|line| line.starts_with('{')).expect("a summary");
    serde_json::from_str::<serde_json::Value>(summary).unwrap()["workers"].clone()
}

#[test]
fn verdicts_do_not_depend_on_the_number_of_workers() {
    let folder = Folder::new();
    let lines = lines(6000);
    let (one, alone) = run(&folder, None, &[], &lines);
    assert!(workers(&alone).is_null());
    let settings: [(Option<&str>, &[&str]); 3] =
        [(Some("2"), &[]), (None, &["--workers", "4"]), (Some("auto"), &["--workers=1"])];
    for (set, more) in settings {
        let (several, finished) = run(&folder, set, more, &lines);
        assert!(several == one, "workers: {set:?} {more:?}");
        let is_used = more != ["--workers=1"];
        assert_eq!(workers(&finished)["messages"].is_u64(), is_used, "workers: {set:?} {more:?}");
    }
}

#[test]
fn snapshots_continue_with_other_numbers_of_workers() {
    let folder = Folder::new();
    let (lines, snapshot) = (lines(4000), folder.path("state.snapshot"));
    let both = |before: &str, after: &str| {
        let first = ["--workers", before, "--snapshot-to", &snapshot, "--snapshot-every", "1"];
        let second = ["--workers", after, "--resume", &snapshot];
        let (one, two) = lines.split_at(2500);
        [run(&folder, None, &first, one).0, run(&folder, None, &second, two).0].concat()
    };
    let one = both("1", "1");
    for (before, after) in [("4", "2"), ("4", "1"), ("1", "3")] {
        assert!(both(before, after) == one, "{before} workers, then {after}");
    }
}

#[test]
fn runs_that_need_one_thread_say_why() {
    let folder = Folder::new();
    let lines = lines(10);
    let explained = run(&folder, Some("2"), &["--explain"], &lines).1;
    explained.expect_stderr(&["`workers: 2`: one thread evaluates all messages, as explan"]);
    assert!(workers(&explained).is_null());
    let refused = rondel(["run", "-f", "v", "--topic", "zenoh:a", "--workers", "65"]);
    refused.expect_status(2).expect_stderr(&["must be a number from 1 to 64, or auto"]);
}
