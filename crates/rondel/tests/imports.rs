//! Specifications of several files, as the commands read them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use support::{Finished, Folder, rondel, rondel_with_input};

const TOPICS: &str = "\
# What the vehicle publishes.
topic gear \"/vehicle/gear\" { report: int }
const highest = 24

property known = gear.report <= highest
";

const MAIN: &str = "\
use \"common/topics.rondel\"

property drives = gear.report > 0

test \"park\" {
    at 0 s gear { report: 0 }
    expect drives violated
}
";

const TRACE: &str = r#"{"time": 1, "topic": "/vehicle/gear", "report": 25}
"#;

trait Parts {
    fn expect_parts(&self, parts: &[&str]);
}

impl Parts for Finished {
    /// Standard output has all these parts.
    fn expect_parts(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stdout.contains(part), "no {part} in:\n{}", self.stdout);
        }
    }
}

/// A folder with a specification of two files and a recording.
fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("specs/common")).unwrap();
    folder.file("specs/common/topics.rondel", TOPICS);
    folder.file("specs/main.rondel", MAIN);
    folder.file("trace.jsonl", TRACE);
    folder
}

#[test]
fn verdicts_of_an_import_with_a_name_have_that_name() {
    let folder = folder();
    let main = folder.file(
        "specs/named.rondel",
        "use \"common/topics.rondel\" as common\nlet highest = 3\n\
         property low = common.gear.report < highest\n\
         test \"high\" { at 0 s common.gear { report: 25 } expect common.known violated }\n",
    );
    let trace = folder.path("trace.jsonl");
    rondel(["check", &main, &trace]).expect_status(1).expect_parts(&["common.known", "low"]);
    rondel(["explain", &main])
        .expect_status(0)
        .expect_parts(&["topic common.gear  \"/vehicle/gear\"", "property common.known"]);
    rondel(["test", &main]).expect_status(0).expect_stdout("ok      high\n\n1 test passed, 0 failed\n");
    let deployment = folder.file(
        "rondel.yaml",
        "specification: specs/named.rondel\ntopics:\n  common.gear: zenoh:vehicle/gear\n",
    );
    let received = folder.file("received.jsonl", TRACE.replace("/vehicle", "vehicle"));
    rondel(["check", &deployment, &received]).expect_status(1).expect_parts(&["common.known"]);
    let shown = rondel(["fmt", "--check", &main]);
    shown.expect_status(1);
}

#[test]
fn every_command_reads_the_imported_files() {
    let folder = folder();
    let (main, trace) = (folder.path("specs/main.rondel"), folder.path("trace.jsonl"));
    let topics = folder.path("specs/common/topics.rondel");

    rondel(["check", &main, &trace]).expect_status(1).expect_parts(&["known", "drives"]);
    rondel(["explain", &main]).expect_status(0).expect_parts(&[
        "topic gear  \"/vehicle/gear\"",
        "property known",
        "property drives",
    ]);
    rondel(["test", &main]).expect_status(0).expect_stdout("ok      park\n\n1 test passed, 0 failed\n");
    rondel(["trace", &main]).expect_parts(&["known", "drives"]);

    // A deployment reads the same file, and reports name the file in which a property is declared.
    let deployment =
        folder.file("rondel.yaml", "specification: specs/main.rondel\ntopics:\n  gear: zenoh:vehicle/gear\n");
    let received = folder.file("received.jsonl", TRACE.replace("/vehicle", "vehicle"));
    rondel(["check", &deployment, &received]).expect_status(1).expect_parts(&["known"]);
    for report in ["sarif", "junit", "github"] {
        let shown = rondel(["check", "--report", report, &main, &trace]);
        shown.expect_status(1).expect_parts(&[&topics]);
    }
    let sarif = rondel(["check", "--report", "sarif", &main, &trace]);
    let sarif: serde_json::Value = serde_json::from_str(&sarif.stdout).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(result["ruleId"], "known");
    assert_eq!(place["artifactLocation"]["uri"], format!("file://{topics}"));
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&5.into(), &10.into()));

    // Only the file itself is formatted.
    rondel(["fmt", "--check", &main, &topics]).expect_status(0);
}

#[test]
fn a_failed_test_of_an_imported_file_names_that_file() {
    let folder = folder();
    let tests = "topic t { x: int }\nproperty p = t.x > 0\ntest \"no\" {\n    at 0 s t { x: 0 }\n    expect p satisfied\n}\n";
    let tests = folder.file("specs/common/tests.rondel", tests);
    let main = folder.file("main.rondel", "use \"specs/common/tests.rondel\"\n");
    rondel(["test", &main]).expect_status(1).expect_parts(&[&format!("{tests}:5:5: expected p satisfied")]);
    let json = rondel(["test", "--format", "json", &main]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["file"].as_str(), &json["line"]), (Some(tests.as_str()), &3.into()));
}

#[test]
fn a_mistake_names_its_file_and_line() {
    let folder = folder();
    let main = folder.path("specs/main.rondel");
    let topics =
        folder.file("specs/common/topics.rondel", format!("{TOPICS}property more = gear.reprot > 1\n"));
    rondel(["explain", &main])
        .expect_status(2)
        .expect_stderr(&[&format!("--> {topics}:6:22"), "6 | property more = gear.reprot > 1"]);
    folder.file("specs/common/topics.rondel", format!("{TOPICS}\nproperty drives = gear.report > 1\n"));
    rondel(["explain", &main])
        .expect_status(2)
        .expect_stderr(&[&format!("--> {main}:3:10"), &format!("::: {topics}:7:10")]);
}

#[test]
fn impossible_imports_are_refused() {
    let folder = folder();
    let refused = |import: &str, expected: &[&str]| {
        let main = folder.file("specs/main.rondel", format!("# first\nuse \"{import}\"\n{MAIN}"));
        let place = format!("--> {main}:2:5");
        let mut all = vec!["E0113", place.as_str()];
        all.extend(expected);
        rondel(["explain", &main]).expect_status(2).expect_stderr(&all);
    };
    refused("none.rondel", &["cannot import \"none.rondel\"", "No such file"]);
    folder.file("specs/common.parts.rondel", "");
    for written in ["common.parts", "common.parts.rdl"] {
        refused(written, &["No such file", "write `use \"common.parts.rondel\"`"]);
    }
    refused("common", &["it is a folder"]);
    refused("../specs/./main.rondel", &["main.rondel imports itself"]);
    folder.file("specs/latin.rondel", b"# \xe9\n");
    refused("latin.rondel", &["it is not UTF-8 text: line 1"]);
    folder.file("specs/common/circle.rondel", "use \"../main.rondel\"\n");
    let main = folder.file("specs/main.rondel", "use \"common/circle.rondel\"\n");
    let circle = folder.path("specs/common/circle.rondel");
    rondel(["explain", &main])
        .expect_status(2)
        .expect_stderr(&[&format!("circle: {main} -> {circle} -> {main}"), &format!("--> {circle}:1:5")]);
    rondel_with_input(["explain", "-"], MAIN.as_bytes())
        .expect_status(2)
        .expect_stderr(&["E0113", "works only in a file"]);
}

#[cfg(unix)]
#[test]
fn links_and_pipes() {
    let folder = folder();
    // Imports are relative to the link, and a file counts once, whatever path names it.
    let link = std::path::PathBuf::from(folder.path("link.rondel"));
    std::os::unix::fs::symlink(folder.path("specs/common/topics.rondel"), &link).unwrap();
    let main = folder.file(
        "specs/main.rondel",
        "use \"../link.rondel\"\nuse \"./common/../common/topics.rondel\"\nproperty p = gear.report > 0\n",
    );
    rondel(["explain", &main]).expect_status(0).expect_parts(&["2 properties"]);
    let pipe = folder.path("specs/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let main = folder.file("specs/main.rondel", "use \"pipe\"\nproperty p = true\n");
    rondel(["explain", &main]).expect_status(2).expect_stderr(&["it is a pipe or a device"]);
}
