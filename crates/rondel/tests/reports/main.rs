//! Reports of checks, whatever their form, and the table of requirements.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod ci;
mod html;
mod json;
#[path = "../support/mod.rs"]
mod support;
mod traced;

use std::process::Command;

use serde_json::Value;
use support::{Finished, Folder, rondel};

const SPECIFICATION: &str = "topic gear { report: int }\n\
    topic speed { value: float }\n\
    topic door\n\
    @requirement(\"SYS-1\") @requirement(\"SYS-2\") @severity(critical)\n\
    property standstill = changed(gear.report) -> abs(speed.value) < 0.1\n\
    @requirement(\"SYS-3\") @severity(warning)\n\
    property slow = speed.value < 50.0\n\
    property closed = on(door) -> speed.value < 0.1\n";

/// The gear changes at 9 m/s; no message on `door`.
const DRIVE: &str = "{\"topic\":\"gear\",\"time\":0,\"data\":{\"report\":1}}\n\
    {\"topic\":\"speed\",\"time\":1,\"data\":{\"value\":0.0}}\n\
    {\"topic\":\"gear\",\"time\":2,\"data\":{\"report\":2}}\n\
    {\"topic\":\"speed\",\"time\":3,\"data\":{\"value\":9.0}}\n\
    {\"topic\":\"gear\",\"time\":4,\"data\":{\"report\":3}}\n\
    {\"topic\":\"gear\",\"time\":6.5,\"data\":{\"report\":3}}\n";
const DOOR: &str = "{\"topic\":\"door\",\"time\":7}\n";

struct Files(Folder);

impl Files {
    fn new() -> Files {
        let folder = Folder::new();
        folder.file("drive.rondel", SPECIFICATION);
        folder.file("a.jsonl", DRIVE);
        Files(folder)
    }

    fn check(&self, recordings: &[&str], options: &[&str]) -> Finished {
        let recordings = recordings.iter().map(|name| self.0.path(name));
        let options = options.iter().map(|option| (*option).to_owned());
        let all =
            ["check".to_owned(), self.0.path("drive.rondel")].into_iter().chain(recordings).chain(options);
        rondel(all)
    }

    fn report(&self, recordings: &[&str], form: &str, options: &[&str]) -> (Finished, String) {
        let file = self.0.path("report");
        let wanted = format!("--report={form}={file}");
        let finished = self.check(recordings, &[&["-q", wanted.as_str()], options].concat());
        let text = std::fs::read_to_string(file).expect(&finished.stderr);
        (finished, text)
    }

    fn json(&self, recordings: &[&str]) -> Value {
        serde_json::from_str(&self.report(recordings, "json", &[]).1).unwrap()
    }
}

/// Checks recordings without a reader of the verdicts.
fn without_reader(files: &Files, recordings: &[&str], options: &[&str]) -> Option<i32> {
    let mut check = Command::new(env!("CARGO_BIN_EXE_rondel"));
    check.args(["check", "-q", "-e", "every", "--jobs", "2", &files.0.path("drive.rondel")]);
    check.args(recordings.iter().map(|name| files.0.path(name))).args(options);
    check.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut check = check.spawn().unwrap();
    drop(check.stdout.take());
    check.wait().unwrap().code()
}

#[test]
fn a_check_without_a_reader_is_complete_or_not_green() {
    let files = Files::new();
    let speed = |i: u32| format!("{{\"topic\":\"speed\",\"time\":{i},\"data\":{{\"value\":1.0}}}}\n");
    // More than a pipe and the buffers take.
    let long: String = (0..3_000).map(speed).collect();
    for name in ["b.jsonl", "c.jsonl", "d.jsonl"] {
        files.0.file(name, format!("{DOOR}{DRIVE}{long}"));
    }
    for recordings in [&["b.jsonl"][..], &["b.jsonl", "c.jsonl", "d.jsonl"]] {
        assert_eq!(without_reader(&files, recordings, &[]), Some(3));
        let junit = files.0.path("without_reader.xml");
        let wanted = format!("--report=junit={junit}");
        assert_eq!(without_reader(&files, recordings, &[&wanted]), Some(1));
        let text = std::fs::read_to_string(&junit).unwrap();
        let cases = 3 * recordings.len();
        let counts = format!("tests=\"{cases}\" skipped=\"0\" failures=\"{}\"", recordings.len());
        assert!(text.contains(&counts), "{text}");
        assert_eq!(text.matches("name=\"events\" value=\"3007\"").count(), recordings.len(), "{text}");
        // Where a report needs standard output, none passes for a whole one.
        std::fs::remove_file(&junit).unwrap();
        assert_eq!(without_reader(&files, recordings, &[&wanted, "--report=github"]), Some(3));
        assert!(!std::path::Path::new(&junit).exists());
    }
}

#[test]
fn an_unread_recording_is_never_green() {
    let files = Files::new();
    files.0.file("cut.jsonl", format!("{DOOR}{{\"topic\":"));
    for recording in ["cut.jsonl", "none.jsonl"] {
        let (finished, text) = files.report(&[recording], "junit", &[]);
        finished.expect_status(3);
        assert!(text.contains("type=\"unread\""), "{text}");
        assert!(text.contains("the recording was read to its end"), "{text}");
        let (_, text) = files.report(&[recording], "tap", &[]);
        assert!(text.contains("not ok"), "{text}");
        let (_, text) = files.report(&[recording], "sarif", &[]);
        assert!(text.contains("\"executionSuccessful\": false"), "{text}");
        let (_, text) = files.report(&[recording], "github", &[]);
        assert!(text.contains("::error file="), "{text}");
        let (_, text) = files.report(&[recording], "html", &[]);
        assert!(text.contains("Not read to its end"), "{text}");
    }
}

/// Reports need every change, also where the deployment prints violations only.
#[test]
fn a_report_changes_nothing_that_is_printed() {
    let files = Files::new();
    let sources = "topics:\n  gear: zenoh:gear\n  speed: zenoh:speed\n  door: zenoh:door\n";
    let deployment = format!("specification: drive.rondel\n{sources}verdicts: {{ emit: violations }}\n");
    let deployment = files.0.file("rondel.yaml", deployment);
    let recording = files.0.path("a.jsonl");
    let check = |report: &[&str]| {
        let options = ["check", "-q", deployment.as_str(), recording.as_str()];
        rondel(options.iter().chain(report).copied()).expect_status(1).stdout.clone()
    };
    let report = format!("--report=json={}", files.0.path("report"));
    let printed = check(&[]);
    assert!(printed.contains("violated") && !printed.contains("satisfied"), "{printed}");
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(lines(&check(&[&report])), lines(&printed), "{}", check(&[&report]));
}

#[test]
fn wrong_reports_are_refused_before_the_check() {
    let files = Files::new();
    let missing = format!("junit={}/none/report", files.0.as_path().display());
    let folder = format!("html={}", files.0.as_path().display());
    for (report, status, expected) in [
        (
            "pdf=a",
            2,
            "`pdf` is no form of a report; the forms are junit, sarif, tap, github, json, html, svg",
        ),
        ("junit=", 2, "the file is missing: write junit=FILE, or junit for standard output"),
        (missing.as_str(), 3, "there is no folder"),
        (folder.as_str(), 3, "it is a folder"),
    ] {
        files.check(&["a.jsonl"], &["--report", report]).expect_status(status).expect_stderr(&[expected]);
    }
    let twice = files.check(&["a.jsonl"], &["--report", "tap", "--report", "junit"]);
    twice.expect_status(2).expect_stderr(&["two reports would be written to standard output"]);
}

#[test]
fn a_report_shows_changes_after_a_late_verdict_and_prints_no_more() {
    let folder = Folder::new();
    let specification = folder
        .file("ahead.rondel", "topic a\ntopic b\ntopic c\nproperty p = on(a) -> eventually[0, 2 s] on(b)");
    let lines = ["c", "a", "c", "c", "c", "c"].iter().enumerate();
    let trace: String = lines.map(|(i, topic)| format!("{{\"topic\":\"{topic}\",\"time\":{i}}}\n")).collect();
    let trace = folder.file("a.jsonl", trace);
    let file = folder.path("report.json");
    let printed = |option: &str| rondel(["check", &specification, &trace, "--format=json", option]).stdout;
    assert_eq!(printed(&format!("--report=json={file}")), printed("--explain"));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let changes = report["recordings"][0]["properties"][0]["changes"].as_array().unwrap();
    let changes: Vec<_> = changes
        .iter()
        .map(|change| {
            (change["time_ns"].as_i64().unwrap() / 1_000_000_000, change["verdict"].as_str().unwrap())
        })
        .collect();
    assert_eq!(changes, [(0, "satisfied"), (1, "violated"), (2, "satisfied")]);
}
