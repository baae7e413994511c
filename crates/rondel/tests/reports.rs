//! Reports of checks: for CI systems, read back by independent readers, and the table of requirements.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::process::Command;

use serde_json::Value;
use support::network::python;
use support::{Finished, Folder, finish, rondel};

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

#[test]
fn json_has_formulas_and_results() {
    let report = Files::new().json(&["a.jsonl"]);
    let claim = &report["properties"][0];
    assert_eq!(claim["name"], "standstill");
    assert_eq!(claim["requirements"], serde_json::json!(["SYS-1", "SYS-2"]));
    assert_eq!(claim["place"], serde_json::json!({"line": 5, "column": 10, "end_column": 20}));
    assert_eq!(claim["text"], "property standstill = changed(gear.report) -> abs(speed.value) < 0.1");
    let recording = &report["recordings"][0];
    assert_eq!((&recording["events"], &recording["begin"]), (&6.into(), &0.into()));
    assert_eq!(recording["end"], 6_500_000_000_i64);
    let [standstill, slow, closed] = [0, 1, 2].map(|i| &recording["properties"][i]);
    assert_eq!((&standstill["outcome"], &standstill["count"]), (&"violated".into(), &1.into()));
    // From the change of gear at 4 s to the next message at 6.5 s.
    assert_eq!(standstill["violated_ns"], 2_500_000_000_i64);
    assert_eq!(standstill["longest_ns"], 2_500_000_000_i64);
    assert_eq!(slow["outcome"], "satisfied");
    assert_eq!(closed["outcome"], "vacuous");
    let violation = &standstill["violations"][0];
    assert_eq!((&violation["time_ns"], &violation["step"]), (&4_000_000_000_i64.into(), &4.into()));
    let speed =
        violation["signals"].as_array().unwrap().iter().find(|signal| signal["name"] == "speed.value");
    assert_eq!(
        speed.unwrap()["values"],
        serde_json::json!([[1_000_000_000_i64, 0.0], [3_000_000_000_i64, 9.0]])
    );
    assert!(!violation["evidence"].as_array().unwrap().is_empty());
}

#[test]
fn a_topic_that_came_in_another_recording_is_not_missing() {
    let files = Files::new();
    files.0.file("b.jsonl", DOOR);
    let report = files.json(&["a.jsonl", "b.jsonl"]);
    let closed = |i: usize| report["recordings"][i]["properties"][2].clone();
    assert_eq!(closed(0)["outcome"], "satisfied");
    assert!(closed(0)["remark"].as_str().unwrap().starts_with("in this recording vacuous"));
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

#[test]
fn tap_is_alone_on_standard_output() {
    let finished = Files::new().check(&["a.jsonl"], &["--report", "tap"]);
    finished.expect_status(1);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(
        lines[..3].iter().map(|line| line.split(" (").next().unwrap()).collect::<Vec<_>>(),
        ["TAP version 14", "1..3", "not ok 1 - standstill"]
    );
    assert!(finished.stdout.contains("\nok 2 - slow"), "{}", finished.stdout);
    assert!(finished.stdout.contains("\nnot ok 3 - closed"), "{}", finished.stdout);
    finished.expect_stderr(&["6 events checked"]);
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
fn annotations_mark_the_line_of_the_specification() {
    let files = Files::new();
    let finished = files.check(&["a.jsonl"], &["-q", "--emit", "violations", "--report", "github"]);
    let specification = files.0.path("drive.rondel");
    let line = finished.stdout.lines().find(|line| line.starts_with("::error")).expect(&finished.stdout);
    let begin =
        format!("::error file={specification},line=5,col=10,endColumn=20,title=standstill violated::");
    assert!(line.starts_with(&begin), "{line}");
    assert!(line.contains("%0Astandstill violated at 4 s, step 4"), "{line}");
    // Only the violation is printed besides, although the report needs every change.
    let printed: Vec<&str> = finished.stdout.lines().filter(|line| line.contains("satisfied")).collect();
    assert_eq!(printed, [""; 0]);
}

/// The data that stand in an HTML report.
fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"report\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn html_needs_no_other_file() {
    let files = Files::new();
    let (_, page) = files.report(&["a.jsonl"], "html", &[]);
    for forbidden in ["<link", " src=", "@import", "url(", "https://"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let data = embedded(&page);
    let command = data["command"].as_str().unwrap();
    assert!(command.starts_with("rondel check ") && !command.contains("--report"), "{command}");
    assert_eq!(data["files"][0]["text"].as_str().map(str::trim_end), Some(SPECIFICATION.trim_end()));
    let standstill = &data["recordings"][0]["properties"][0];
    assert_eq!((&standstill["outcome"], &standstill["times"][2]), (&"violated".into(), &4.0.into()));
    let names: Vec<&str> =
        standstill["signals"].as_array().unwrap().iter().filter_map(|own| own["name"].as_str()).collect();
    assert!(names.contains(&"speed.value"), "{names:?}");
    assert!(page.contains("<noscript>") && page.contains("SYS-1"));
    // Equal input is an equal document.
    assert!(files.report(&["a.jsonl"], "html", &[]).1 == page);
}

#[test]
fn several_recordings_are_in_one_document() {
    let files = Files::new();
    files.0.file("b.jsonl", DOOR);
    files.0.file("cut.jsonl", format!("{DOOR}{{\"topic\":"));
    let (_, page) = files.report(&["a.jsonl", "b.jsonl", "cut.jsonl", "none.jsonl"], "html", &[]);
    let data = embedded(&page);
    let recordings = data["recordings"].as_array().unwrap();
    let states: Vec<bool> = recordings.iter().map(|own| own["problem"].is_string()).collect();
    assert_eq!(states, [false, false, true, true]);
    assert_eq!((recordings[0]["length"].as_f64(), &recordings[3]["begin"]), (Some(6.5), &Value::Null));
}

/// The numbers of the publisher show that messages are missing.
#[test]
fn reports_show_where_messages_were_missed() {
    let line = |n: u64| {
        let data = serde_json::json!({"v": 1.0, "w": n % 2});
        let origin = serde_json::json!({"publisher": 1, "number": n});
        serde_json::json!({"topic": "t", "time": n, "origin": origin, "data": data}).to_string() + "\n"
    };
    let folder = Folder::new();
    let spec =
        folder.file("s.rondel", "topic t { v: float }\n@time(dense) property p = once[0, 2 s] t.v < 5.0\n");
    let whole = folder.file("whole.jsonl", (0..20).map(line).collect::<String>());
    let gap = folder.file("gap.jsonl", (0..20).filter(|n| !(5..9).contains(n)).map(line).collect::<String>());
    let file = folder.path("report");
    let losses = |recording: &str| {
        rondel(["check", "-q", &format!("--report=json={file}"), &spec, recording]);
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        report["recordings"][0]["losses"].clone()
    };
    assert_eq!(losses(&whole), Value::Null);
    let found = losses(&gap);
    assert_eq!(found[0]["properties"], serde_json::json!(["p"]), "{found}");
    assert_eq!(found[0]["from_ns"], 4_000_000_000_i64, "{found}");
    assert_eq!(found[0]["until_ns"], 9_000_000_000_i64, "{found}");
    rondel(["check", "-q", &format!("--report=html={file}"), &spec, &gap]);
    let data = embedded(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(data["recordings"][0]["losses"][0]["from"], 4.0, "{data}");
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
fn requirements_are_traced_to_verdicts() {
    let files = Files::new();
    files.0.file("b.jsonl", DOOR);
    let (_, first) = files.report(&["a.jsonl"], "json", &[]);
    let first = files.0.file("first.json", first);
    let (_, second) = files.report(&["b.jsonl"], "json", &[]);
    let second = files.0.file("second.json", second);
    let required =
        files.0.file("required.txt", "SYS-1 Change gears at standstill\n\n# later\nSYS-9, missing\n");
    let specification = files.0.path("drive.rondel");
    let trace = |options: &[&str]| rondel([&["trace", &specification, &first, &second], options].concat());
    let table = trace(&["--requirements", &required]);
    table.expect_status(1);
    let lines: Vec<Vec<&str>> = table
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["requirement", "property", "verdict"]);
    assert_eq!(lines[1][..2], ["SYS-1", "standstill"]);
    assert!(lines[1][2].starts_with("violated in 1 of 2 (1 time)"), "{}", table.stdout);
    assert_eq!(lines[2][..2], ["SYS-2", "standstill"]);
    assert_eq!(lines[4][..2], ["-", "closed"]);
    assert_eq!(lines[5], ["SYS-9", "no property checks it"]);
    let csv = trace(&["--format", "csv"]);
    let head = csv.stdout.lines().next().unwrap();
    assert!(head.starts_with("requirement,property,worst,") && head.ends_with("b.jsonl"), "{head}");
    assert!(csv.stdout.contains("\nSYS-3,slow,inconclusive,satisfied,inconclusive\n"), "{}", csv.stdout);
    // Without reports: which property checks what.
    rondel(["trace", specification.as_str()]).expect_status(0);
    rondel(["trace", specification.as_str(), "--requirements", &required]).expect_status(4);
    let wrong = files.0.file("wrong.json", "{\"rondel_report\": 7}");
    rondel(["trace", specification.as_str(), &wrong])
        .expect_status(2)
        .expect_stderr(&["its format is 7, this version of Rondel reads 1"]);
}

/// The status of `check` of recordings and that of `trace` of its report, with their outputs.
fn checked_and_traced(specification: &str, recordings: &[(&str, &str)], options: &[&str]) -> [Finished; 2] {
    let folder = Folder::new();
    let specification = folder.file("s.rondel", specification);
    let recordings: Vec<String> = recordings.iter().map(|(name, text)| folder.file(name, text)).collect();
    let report = folder.path("r.json");
    let json = format!("json={report}");
    let mut check = vec!["check", &specification, "--report", &json];
    check.extend(recordings.iter().map(String::as_str));
    check.extend(options);
    let checked = rondel(check);
    [checked, rondel(["trace", &specification, &report])]
}

#[test]
fn traces_agree_with_checks() {
    let speed = "topic odom { speed: float }\n";
    let drive = "{\"topic\":\"odom\",\"time\":0,\"speed\":5}\n{\"topic\":\"odom\",\"time\":1,\"speed\":5}\n\
                 {\"topic\":\"odom\",\"time\":2,\"speed\":15}\n{\"topic\":\"odom\",\"time\":10,\"speed\":15}\n";
    let statuses = |specification: &str, recordings: &[(&str, &str)], options: &[&str]| {
        let [check, trace] = checked_and_traced(&format!("{speed}{specification}"), recordings, options);
        (check.status, trace.status, trace.stdout)
    };
    // The same text in two models of time.
    let (check, trace, table) = statuses(
        "@requirement(\"A\") assert share(odom.speed < 10) >= 0.5\n\
         @requirement(\"B\") @time(dense) assert share(odom.speed < 10) >= 0.5\n",
        &[("a.jsonl", drive)],
        &[],
    );
    assert_eq!((check, trace), (Some(1), Some(1)), "{table}");
    assert!(table.contains("\nB            share(odom.speed < 10) >= 0.5 (2)  violated"), "{table}");
    // A property that only an assert judges; its requirement is that of the assert.
    let asserted = "@requirement(\"A\") property slow = odom.speed < 10\nassert share(slow) >= ";
    for (share, status) in [("0.5", 0), ("0.6", 1)] {
        let (check, trace, table) = statuses(&format!("{asserted}{share}\n"), &[("a.jsonl", drive)], &[]);
        assert_eq!((check, trace), (Some(status), Some(status)), "{table}");
        assert!(table.contains("violated (1 time); an assert decides"), "{table}");
        assert!(table.lines().nth(2).unwrap().starts_with("A            share(slow)"), "{table}");
    }
    let property = "@requirement(\"A\") property slow = odom.speed < 20\n";
    // Not read to the end, or not at all.
    let cut = format!("{drive}{{\"topic\":");
    for recordings in
        [[("a.jsonl", drive), ("b.jsonl", cut.as_str())], [("a.jsonl", drive), ("b.jsonl", "{")]]
    {
        let (check, trace, table) = statuses(property, &recordings, &[]);
        assert_eq!((check, trace), (Some(3), Some(4)), "{table}");
    }
    // Without the times that the messages should carry, alone or beside one with times.
    let stamped = "{\"topic\":\"odom\",\"time\":0,\"speed\":5,\"stamp\":3}\n";
    for recordings in [&[("a.jsonl", drive)][..], &[("a.jsonl", drive), ("b.jsonl", stamped)]] {
        let (check, trace, table) = statuses(property, recordings, &["--time-field", "stamp"]);
        assert_eq!((check, trace), (Some(4), Some(4)), "{table}");
    }
    // Not checked in the recordings of one report.
    let folder = Folder::new();
    let first = folder.file("1.rondel", format!("{speed}{property}"));
    let both = folder
        .file("2.rondel", format!("{speed}{property}@requirement(\"B\") property ok = odom.speed < 30\n"));
    let trace = folder.file("a.jsonl", drive);
    let mut reports = Vec::new();
    for specification in [&first, &both] {
        let report = format!("{specification}.json");
        rondel(["check", specification.as_str(), &trace, &format!("--report=json={report}")])
            .expect_status(0);
        reports.push(report);
    }
    let table = rondel(["trace", both.as_str(), &reports[0], &reports[1]]);
    table.expect_status(4);
    assert!(table.stdout.contains("satisfied in 1 of 2, not checked in 1"), "{}", table.stdout);
}

#[test]
fn a_recording_without_times_is_an_error_also_among_others() {
    let folder = Folder::new();
    let spec = folder.file("s.rondel", "topic odom { speed: float }\nproperty slow = odom.speed < 20\n");
    let without = folder.file("n.jsonl", "{\"topic\":\"odom\",\"time\":0,\"speed\":5}\n");
    let with = folder.file("s.jsonl", "{\"topic\":\"odom\",\"time\":0,\"speed\":5,\"stamp\":3}\n");
    for recordings in [vec![&without], vec![&without, &with], vec![&with, &without]] {
        let mut check = vec!["check", "-q", "--time-field", "stamp", "--report=junit", &spec];
        check.extend(recordings.iter().map(|name| name.as_str()));
        let checked = rondel(check);
        checked.expect_status(4).expect_stderr(&["came without a time"]);
        assert!(checked.stdout.contains("no message on odom carried its time"), "{}", checked.stdout);
        assert!(checked.stdout.contains("errors=\"1\""), "{}", checked.stdout);
        if recordings.len() > 1 {
            checked.expect_stderr(&[&format!("{without}: no message on odom carried its time")]);
        }
    }
}

#[test]
fn status_4_is_a_failure_in_sarif() {
    let folder = Folder::new();
    let text = "topic speed { value: float }\ntopic door\n@severity(warning) property closed = on(door) -> speed.value < 0.1\n\
                property calm = speed.value > 100.0 -> speed.value < 0.1\n";
    let spec = folder.file("s.rondel", text);
    let trace = folder.file("a.jsonl", "{\"topic\":\"speed\",\"time\":1,\"value\":1.0}\n");
    for (strict, calm) in [(false, ["none", "open"]), (true, ["error", "fail"])] {
        let mut check = vec!["check", "--report=sarif", &spec, &trace];
        check.extend(strict.then_some("--strict"));
        let checked = rondel(check);
        checked.expect_status(4);
        let sarif: Value = serde_json::from_str(&checked.stdout).unwrap();
        let found = |i: usize| ["level", "kind"].map(|m| sarif["runs"][0]["results"][i][m].clone());
        assert_eq!(found(0), ["warning", "fail"], "{}", checked.stdout);
        assert_eq!(found(1), calm, "{}", checked.stdout);
    }
}

#[test]
fn the_page_counts_as_the_summary_does() {
    let folder = Folder::new();
    let text =
        "topic odom { x: float }\nproperty slow = odom.x < 10.0\nassert ever slow\nassert always slow\n";
    let spec = folder.file("s.rondel", text);
    let drive = "{\"topic\":\"odom\",\"time\":0,\"x\":5}\n{\"topic\":\"odom\",\"time\":1,\"x\":15}\n\
                 {\"topic\":\"odom\",\"time\":3,\"x\":5}\n";
    let (one, two) = (folder.file("a.jsonl", drive), folder.file("b.jsonl", drive));
    let page = folder.path("r.html");
    let checked =
        rondel(["check", "-e", "violations", "--report", &format!("html={page}"), &spec, &one, &two]);
    checked.expect_status(1);
    assert!(checked.stdout.contains(&format!("{one}: 3 events, 1 violated")), "{}", checked.stdout);
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("</td><td>3</td><td>1</td><td>1</td><td>0</td></tr>").count(), 2, "{page}");
    // Of the property, in two recordings; an assert is violated for no time.
    assert_eq!(
        page.matches("violated for ").count(),
        page.matches("violated for 2 s in all").count(),
        "{page}"
    );
    assert_eq!(page.matches("violated for 2 s in all, for 2 s at most").count(), 2, "{page}");
}

/// JUnit as `junitparser` reads it, SARIF as the models of `sarif-pydantic` accept it.
#[test]
fn independent_readers_agree() {
    let Some(python) = python("independent_readers_agree") else { return };
    let files = Files::new();
    let (_, junit) = files.report(&["a.jsonl"], "junit", &[]);
    let junit = files.0.file("drive.xml", junit);
    let (_, sarif) = files.report(&["a.jsonl"], "sarif", &[]);
    let sarif = files.0.file("drive.sarif", sarif);
    let script = "import sys, json, junitparser\n\
        from sarif_pydantic import Sarif\n\
        suites = junitparser.JUnitXml.fromfile(sys.argv[1])\n\
        cases = [(c.classname, c.name, [type(r).__name__ for r in c.result]) for s in suites for c in s]\n\
        sarif = Sarif.model_validate(json.load(open(sys.argv[2])))\n\
        found = [(r.rule_id, r.level.value if hasattr(r.level, 'value') else r.level, \
        r.locations[0].physical_location.region.start_line) for r in sarif.runs[0].results]\n\
        print(json.dumps([suites.tests, suites.failures, suites.errors, cases, found]))";
    let read = finish(Command::new(&python).args(["-c", script, &junit, &sarif]), b"");
    read.expect_status(0);
    let read: Value = serde_json::from_str(&read.stdout).expect(&read.stdout);
    let expected = serde_json::json!([
        3,
        1,
        1,
        [["drive", "standstill", ["Failure"]], ["drive", "slow", []], ["drive", "closed", ["Error"]]],
        [["standstill", "error", 5], ["closed", "error", 8]]
    ]);
    assert_eq!(read, expected);
}

/// The file of verdicts, events and explanations as the reader of the `mcap` package reads it; every message has the
/// members of its type.
#[test]
fn an_mcap_report_is_read_beside_the_recording() {
    let files = Files::new();
    let report = files.0.path("drive.mcap");
    let wanted = format!("--report=mcap={report}");
    files.check(&["a.jsonl"], &["-q", &wanted]).expect_status(1);
    // A second one takes its place.
    files.check(&["a.jsonl"], &["-q", &wanted]).expect_status(1);
    let Some(python) = python("an_mcap_report_is_read_beside_the_recording") else { return };
    let script = "import sys, json\n\
        from mcap.reader import make_reader\n\
        reader = make_reader(open(sys.argv[1], 'rb'), validate_crcs=True)\n\
        def fits(value, schema):\n\
        \tif schema.get('type') == 'object' and 'properties' in schema:\n\
        \t\tassert set(schema.get('required', [])) <= set(value), (value, schema)\n\
        \t\tassert set(value) <= set(schema['properties']), (value, schema)\n\
        \t\tfor name, part in value.items(): fits(part, schema['properties'][name])\n\
        \tif schema.get('type') == 'array':\n\
        \t\tfor part in value: fits(part, schema['items'])\n\
        found = []\n\
        for schema, channel, message in reader.iter_messages():\n\
        \tassert schema.encoding == 'jsonschema' and channel.message_encoding == 'json'\n\
        \tvalue = json.loads(message.data)\n\
        \tfits(value, json.loads(schema.data))\n\
        \tfound.append([channel.topic, schema.name, message.log_time, value])\n\
        notes = [m.metadata['name'].rsplit('/', 1)[-1] for m in reader.iter_metadata()]\n\
        print(json.dumps([found, notes]))";
    let read = finish(Command::new(&python).args(["-c", script, &report]), b"");
    read.expect_status(0);
    let read: Value = serde_json::from_str(&read.stdout).expect(&read.stdout);
    assert_eq!(read[1], serde_json::json!(["a.jsonl"]));
    let of = |topic: &str| -> Vec<&Value> {
        let all = read[0].as_array().unwrap().iter();
        all.filter(|message| message[0] == topic).collect()
    };
    let [events, explanations] = ["rondel/events", "rondel/explanations"].map(of);
    assert_eq!((events.len(), explanations.len()), (1, 1), "{read}");
    assert_eq!(events[0][2], 4_000_000_000_u64);
    assert_eq!(events[0][3]["end_time"], serde_json::json!({"sec": 6, "nsec": 500_000_000}));
    let explanation = &explanations[0][3];
    assert_eq!(
        (&explanations[0][1], &explanation["property"]),
        (&"rondel.Explanation".into(), &"standstill".into())
    );
    let points = explanation["points"].as_array().unwrap();
    let last = points.last().unwrap()["values"].as_array().unwrap();
    let speed = last.iter().find(|value| value["name"] == "abs(speed.value)").unwrap();
    assert_eq!(speed["value"], "9");
    let verdicts: Vec<String> = of("rondel/verdicts")
        .iter()
        .map(|message| message[3]["message"].as_str().unwrap().to_owned())
        .collect();
    for expected in ["standstill: violated", "standstill: satisfied", "slow: satisfied"] {
        assert!(verdicts.iter().any(|verdict| verdict == expected), "{expected}: {verdicts:?}");
    }
}

/// The members that the reference describes below a heading: the first column of its tables.
fn described(page: &str, heading: &str) -> std::collections::BTreeSet<String> {
    let part = page.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let part = part.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

/// Adds the paths of all members of a value: `recordings[].properties[].outcome`.
fn members(value: &Value, path: &str, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                members(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(elements) => {
            // Pairs have no members.
            elements.iter().for_each(|element| members(element, &format!("{path}[]"), found));
        }
        _ => {}
    }
}

#[test]
fn the_reference_describes_every_member_of_a_json_report() {
    let folder = Folder::new();
    folder.file("part.rondel", "topic o { x: float }\n@severity(minor) property low = o.x < 3\n");
    let spec = folder.file(
        "whole.rondel",
        "use \"part.rondel\"\n\
         topic s { r: [float], at: time, id: int }\n\
         @requirement(\"SYS-1\") property each for each i in s.id = all e in s.r: e > 0.5\n\
         @robust property near = mean(o.x) over 2 < 2.5\n\
         property pairs = forall k. s{id: k} -> k < 3\n\
         property later = s.at > prev(s.at)\n",
    );
    let line = |time: u32, text: &str| format!("{{\"time\":{time},{text}}}\n");
    let lines: String = (0..6)
        .map(|i| match i % 2 {
            0 => line(i, &format!("\"topic\":\"o\",\"x\":{i}")),
            _ => line(i, &format!("\"topic\":\"s\",\"id\":{i},\"at\":{i},\"r\":[1,0.{i},2]")),
        })
        .collect();
    let trace = folder.file("a.jsonl", lines);
    let missing = folder.path("missing.jsonl");
    let report = folder.path("report.json");
    let picture = format!("--report=json={report}");
    rondel(["check", "-q", &spec, &trace, &missing, &picture]).expect_status(3);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let mut found = std::collections::BTreeSet::new();
    members(&written, "", &mut found);
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command/check.md");
    let page = std::fs::read_to_string(page).unwrap();
    let described = described(&page, "\n## JSON reports\n");
    let missing: Vec<&String> = found.difference(&described).collect();
    assert!(missing.is_empty(), "not in the reference: {missing:#?}");
    // Those that this report does not have are written only where there is something to say.
    let optional = [
        "properties[].file",
        "recordings[].signals",
        "recordings[].signals[].kind",
        "recordings[].signals[].name",
        "recordings[].signals[].thresholds",
        "recordings[].signals[].upper",
        "recordings[].signals[].values",
        "recordings[].losses",
        "recordings[].losses[].from_ns",
        "recordings[].losses[].properties",
        "recordings[].losses[].until_ns",
        "recordings[].properties[].violations[].signals[].kind",
        "recordings[].properties[].violations[].signals[].upper",
    ];
    let unknown: Vec<&String> =
        described.difference(&found).filter(|member| !optional.contains(&member.as_str())).collect();
    assert!(unknown.is_empty(), "described, but not written: {unknown:#?}");
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
