//! Acceptance criteria decide the exit status, and stand in the summaries and in every report.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use serde_json::Value;
use support::network::{arguments, free_endpoint, zenoh};
use support::{Folder, rondel, rondel_with_input, start_rondel};

const DRIVE: &str = r#"{"topic":"mode","time":0,"driving":true}
{"topic":"odom","time":0,"x":5}
{"topic":"odom","time":3,"x":15}
{"topic":"odom","time":4,"x":5}
{"topic":"odom","time":6,"x":11}
{"topic":"mode","time":7,"driving":false}
{"topic":"odom","time":9,"x":5}
{"topic":"odom","time":10,"x":5}
"#;

const TOPICS: &str = "topic odom { x: float } topic mode { driving: bool } topic never { x: float }\n\
                      @time(dense) property slow = odom.x < 10\n";

/// Checks the drive against asserts about `slow`, which is violated in it.
fn check(asserts: &str, options: &[&str]) -> support::Finished {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", format!("{TOPICS}{asserts}"));
    let trace = folder.file("a.jsonl", DRIVE);
    rondel([&["check", &spec, &trace], options].concat())
}

#[test]
fn asserts_decide_the_exit_status() {
    let cases = [
        ("assert always slow", 1),
        ("assert ever not slow", 0),
        ("assert share(slow) >= 0.6", 0),
        ("assert share(slow) > 0.6", 1),
        ("assert longest(not slow) <= 3 s", 0),
        ("assert longest(not slow) < 3 s", 1),
        ("assert longest(not slow) <= 1 s while mode.driving", 0),
        ("assert count(violated slow) <= 2", 0),
        ("assert count(violated slow) <= 1 between 0 s and 4 s", 0),
        ("assert always slow between 4 s and 5.5 s", 0),
        ("assert always slow between 20 s and 30 s", 4),
        ("assert always slow while never.x > 1", 4),
        ("assert always never.x < 1  assert ever not slow", 4),
    ];
    for (asserts, status) in cases {
        let checked = check(asserts, &[]);
        assert_eq!(checked.status, Some(status), "{asserts}\n{}{}", checked.stdout, checked.stderr);
    }
    // No assert is about this one, so that it decides itself.
    let checked = check("property low = odom.x < 12  assert ever slow", &[]);
    assert_eq!(checked.status, Some(1), "{}", checked.stdout);
    assert_eq!(check("property low = odom.x < 20  assert ever slow", &[]).status, Some(0));
}

#[test]
fn measured_share_is_reported() {
    let checked = check("assert share(slow) >= 0.95 while mode.driving", &["-e", "violations"]);
    let verdict = "violated      share(slow) >= 0.95 while mode.driving";
    assert!(checked.stdout.contains(verdict), "{}", checked.stdout);
    assert!(checked.stdout.contains("share 0.7142, 5 s of 7 s; judged 7 s of 10 s"), "{}", checked.stdout);
    assert!(checked.stdout.contains("against 1 property and 1 assert"), "{}", checked.stdout);
    let checked = check("assert share(slow) >= 0.95", &["--summary", "json", "-q", "--format", "json"]);
    let last: Value = serde_json::from_str(checked.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["property"], &last["verdict"]), (&"share(slow) >= 0.95".into(), &"violated".into()));
    let checked = check("assert share(slow) >= 0.95", &["--summary", "json", "--format", "json"]);
    let summary: Value = serde_json::from_str(checked.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(summary["properties"][0]["asserted"], true);
    assert_eq!(summary["properties"][1]["measured"], "share 0.6, 6 s of 10 s");
}

#[test]
fn every_report_has_the_asserts() {
    let asserts = "@requirement(\"SYS-7\") assert count(violated slow) <= 1\nassert ever slow";
    for (form, failed, passed) in [
        ("tap", "not ok 2 - count(violated slow) <= 1", "ok 1 - slow"),
        ("junit", "<failure message=\"count(violated slow) &lt;= 1: violated: 2 times\"", "failures=\"1\""),
        ("sarif", "count(violated slow) <= 1 violated at 10 s", "\"level\": \"note\""),
        ("github", "::error file=", "::notice file="),
        ("json", "\"name\": \"count(violated slow) <= 1\"", "\"is_asserted\": true"),
        ("html", "count(violated slow) &lt;= 1", "an assert decides"),
    ] {
        let checked = check(asserts, &["-q", "--report", form]);
        assert_eq!(checked.status, Some(1));
        let text = &checked.stdout;
        assert!(text.contains(failed) && text.contains(passed), "{form}: {text}");
    }
}

#[test]
fn tests_and_other_commands_know_asserts() {
    let folder = Folder::new();
    let text = format!(
        "{TOPICS}assert always slow\ntest \"fast\" {{ at 1 s odom {{ x: 20 }} expect slow violated at 1 s }}\n"
    );
    let spec = folder.file("a.rondel", &text);
    assert_eq!(rondel(["test", &spec]).status, Some(0));
    let explained = rondel(["explain", &spec]);
    assert!(explained.stdout.contains("assert always slow\n  judges        verdicts of slow"));
}

#[test]
fn a_part_is_judged_with_the_parts_before() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", format!("{TOPICS}assert share(slow) >= 0.61"));
    let lines: Vec<&str> = DRIVE.split_inclusive('\n').collect();
    let (first, second) =
        (folder.file("1.jsonl", lines[..4].concat()), folder.file("2.jsonl", lines[4..].concat()));
    let snapshot = folder.path("snapshot");
    let part = rondel(["check", &spec, &first, "--snapshot-to", &snapshot]);
    assert_eq!(part.status, Some(0), "{}{}", part.stdout, part.stderr);
    let rest = rondel(["check", &spec, &second, "--resume", &snapshot]);
    assert_eq!(rest.status, Some(1), "{}{}", rest.stdout, rest.stderr);
    assert!(rest.stdout.contains("share 0.6, 6 s of 10 s"), "{}", rest.stdout);
}

#[test]
fn a_live_run_is_judged_at_its_end() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file(
        "a.rondel",
        "topic odom { x: float }\nproperty slow = odom.x < 10\nassert share(slow) >= 0.9\n",
    );
    let deployment = format!(
        "specification: a.rondel\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics: {{ odom: zenoh:t/odom }}\n"
    );
    let file = folder.file("rondel.yaml", deployment);
    let mut run = start_rondel(["run", &file, "--strict", "--count", "4"]);
    run.wait_stderr("ready");
    let publish =
        arguments(&["publish", "--to", "zenoh:t/odom", "--wait", "60"], &zenoh("client", &endpoint));
    rondel_with_input(publish, b"{\"x\": 1}\n{\"x\": 20}\n{\"x\": 1}\n{\"x\": 2}\n").expect_status(0);
    let finished = run.finish();
    finished.expect_status(1).expect_stderr(&["violated      share(slow) >= 0.9: share 0.75, 3 of 4 events"]);
    let verdict = finished.stdout.lines().last().unwrap();
    assert!(verdict.starts_with("violated      share(slow) >= 0.9"), "{verdict}");
    assert!(verdict.contains("time 20"), "a date: {verdict}");
}
