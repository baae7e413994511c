//! A check or a run in parts says what one in one piece says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::{Finished, Folder, rondel, rondel_with_input, start_rondel};

const SPEC: &str = "topic a { x: float, id: int } topic b { id: int, s: string } topic c { z: int }\n\
    property past = once[0, 2] a.x > 1.0\n\
    property dense = once[0.5 s, 2 s] a.x > 1.0\n\
    property ahead = on(a) -> eventually[0, 3 s] on(b)\n\
    property keyed for each id in (a.id, b.id) = on(a) -> eventually[0, 3 s] on(b)\n\
    property text = b.s == \"x\" -> a.x > 0.5\n\
    property mean_x = mean(a.x) over 2 s > 1.0\n\
    property never = c.z > 0\n\
    machine m for each id in (a.id, b.id) { initial p final p p -> q when on(a) q -> p when on(b) within 5 s }\n";

/// Lines of two topics, some without a time, one that goes back.
fn trace() -> Vec<String> {
    let line = |i: usize| {
        let time = if i == 17 { 3.0 } else { i as f64 * 0.7 };
        let time = if i % 5 == 3 { String::new() } else { format!(", \"time\": {time}") };
        match i % 3 {
            0 => format!("{{\"topic\": \"b\", \"id\": {}, \"s\": \"{}\"{time}}}\n", i % 4, ["x", "y"][i % 2]),
            _ => format!(
                "{{\"topic\": \"a\", \"id\": {}, \"x\": {}{time}}}\n",
                i % 4,
                (i * 7 % 20) as f64 / 10.0
            ),
        }
    };
    (0..40).map(line).collect()
}

fn check(arguments: &[&str], input: &str) -> Finished {
    rondel_with_input([&["check"], arguments, &["-"]].concat(), input.as_bytes())
}

/// Lines of a summary below the first, which has the duration.
fn summary(stderr: &str) -> Vec<&str> {
    stderr.lines().skip_while(|line| !line.contains("checked against")).skip(1).collect()
}

#[test]
fn a_trace_in_parts() {
    let folder = Folder::new();
    let spec = folder.file("spec.rondel", SPEC);
    let snapshot = folder.path("state.snapshot");
    let lines = trace();
    for (emit, explain) in [("change", None), ("every", None), ("violations", Some("--explain"))] {
        let format = if explain.is_some() { "text" } else { "json" };
        let common: Vec<&str> =
            // Where a message waits that may begin a new lap, a snapshot takes it for a late one.
            ["--emit", emit, "--format", format, "--reset", "ignore", &spec].into_iter().chain(explain).collect();
        let whole = check(&common, &lines.concat());
        for (first, second) in [(0, 1), (1, 2), (13, 20), (18, 39), (40, 40)] {
            let to: &[&str] = &["--snapshot-to", &snapshot];
            let on: &[&str] = &["--resume", &snapshot];
            let one = check(&[to, &common].concat(), &lines[..first].concat());
            let two = check(&[on, to, &common].concat(), &lines[first..second].concat());
            let three = check(&[on, &common].concat(), &lines[second..].concat());
            let parts = one.stdout.clone() + &two.stdout + &three.stdout;
            if explain.is_some() {
                // The values below a violation begin with each part.
                let violations = |text: &str| -> Vec<String> {
                    text.lines().filter(|line| line.starts_with("violated")).map(str::to_owned).collect()
                };
                assert_eq!(violations(&parts), violations(&whole.stdout), "{first}, {second}");
            } else {
                assert_eq!(parts, whole.stdout, "{first}, {second}");
            }
            assert_eq!(summary(&three.stderr), summary(&whole.stderr));
            three.expect_status(whole.status.unwrap());
            let said = if explain.is_some() { &three.stdout } else { &three.stderr };
            assert!(said.contains("40 events checked"), "{said}");
        }
    }
}

#[test]
fn open_obligations_stay_open() {
    let folder = Folder::new();
    let snapshot = folder.path("state.snapshot");
    let formula = ["--format", "json", "-f", "a -> eventually[0, 5] b"];
    let one = check(&[&["--snapshot-to", &snapshot], &formula[..]].concat(), "{\"a\":true}\n");
    one.expect_status(4).expect_stdout("");
    let two = check(&[&["--resume", &snapshot], &formula[..]].concat(), "{\"b\":true}\n");
    two.expect_status(0);
    let alone = check(&formula, "{\"a\":true}\n");
    alone.expect_status(4);
    assert!(alone.stdout.contains("inconclusive"), "{}", alone.stdout);
}

#[test]
fn unsuitable_snapshots_are_refused() {
    let folder = Folder::new();
    let snapshot = folder.path("state.snapshot");
    let name = snapshot.clone();
    let resume =
        |formula: &str, more: &[&str]| check(&[&["--resume", &name, "-f", formula], more].concat(), "");
    resume("v", &[]).expect_status(2).expect_stderr(&["cannot read the snapshot"]);
    check(&["--snapshot-to", &name, "-f", "v"], "{\"v\":true}\n").expect_status(0);
    resume("v", &[]).expect_status(0);
    resume("once v", &[]).expect_status(2).expect_stderr(&["cannot resume from", "another specification"]);
    resume("v", &["--explain"]).expect_status(2).expect_stderr(&["leave --explain out"]);
    let report = format!("json={}", folder.path("report.json"));
    resume("v", &["--report", &report]).expect_status(2).expect_stderr(&["leave --report out"]);
    let other_unit = ["read from `time` in s", "in ms"];
    resume("v", &["--time-unit", "ms"]).expect_status(2).expect_stderr(&other_unit);
    resume("v", &["--time-field", "t"]).expect_status(2).expect_stderr(&["here they are read from `t` in s"]);
    let whole = std::fs::read(&snapshot).unwrap();
    std::fs::write(&snapshot, &whole[..whole.len() - 1]).unwrap();
    resume("v", &[]).expect_status(2).expect_stderr(&["it was truncated or extended"]);
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 4;
    std::fs::write(&snapshot, &altered).unwrap();
    resume("v", &[]).expect_status(2).expect_stderr(&["was altered"]);
    std::fs::write(&snapshot, "{}").unwrap();
    resume("v", &[]).expect_status(2).expect_stderr(&["this is not a snapshot"]);
    rondel(["check", "--snapshot-to", &name, "-f", "v", "x.jsonl", "y.jsonl"])
        .expect_status(2)
        .expect_stderr(&["need exactly one recording"]);
    // Of what could not be read to its end, or not be written, there is none.
    std::fs::remove_file(&snapshot).unwrap();
    check(&["--snapshot-to", &name, "-f", "v"], "{\n")
        .expect_status(3)
        .expect_stderr(&["no snapshot was written"]);
    assert!(!std::path::Path::new(&snapshot).exists());
    let nowhere = folder.path("nowhere/state");
    check(&["--snapshot-to", &nowhere, "-f", "v"], "{\"v\":true}\n")
        .expect_status(3)
        .expect_stderr(&["cannot write the snapshot"]);
}

#[test]
fn a_run_resumes_from_the_snapshot_of_another() {
    let folder = Folder::new();
    let name = folder.path("state.snapshot");
    let part = |input: &str, expected: &[&str]| {
        let endpoint = free_endpoint();
        let own = [
            "run",
            "-f",
            "once[1,2] v",
            "--emit",
            "every",
            "--format",
            "json",
            "--topic",
            "zenoh:demo/state",
        ];
        let kept = ["--resume", &name, "--snapshot-to", &name, "--snapshot-every", "1"];
        let mut run =
            start_rondel(arguments(&[&own[..], &kept].concat(), &zenoh_listening("peer", &endpoint)));
        run.wait_stderr("ready");
        let publish = ["publish", "--to", "zenoh:demo/state", "--wait", "60"];
        rondel_with_input(arguments(&publish, &zenoh("peer", &endpoint)), input.as_bytes()).expect_status(0);
        let lines = run.take_stdout(expected.len());
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.contains(expected), "{line}, not {expected}");
        }
        run.terminate();
        run.finish()
    };
    let first = part("{\"v\":true}\n", &["\"step\":0,\"verdict\":\"violated\""]);
    first.expect_status(0).expect_stderr(&["does not exist yet"]);
    let second = part(
        "{\"v\":false}\n{\"v\":false}\n{\"v\":false}\n",
        &[
            // Messages published in between are unknown.
            "\"step\":1,\"verdict\":\"inconclusive\"",
            "\"step\":2,\"verdict\":\"inconclusive\"",
            "\"step\":3,\"verdict\":\"violated\"",
        ],
    );
    // The violation at the beginning is not forgotten.
    second.expect_status(0).expect_stderr(&[
        "violated 2 times, first at step 0 (time",
        "); 2 verdicts inconclusive, as messages were not seen",
        "the monitor goes on from a snapshot of",
        "messages were not seen",
    ]);
}

#[test]
fn missing_messages_between_two_recordings_are_inconclusive() {
    let folder = Folder::new();
    let snapshot = folder.path("state.snapshot");
    let line = |n: u32| {
        let origin = format!("{{\"publisher\":1,\"number\":{n}}}");
        format!("{{\"time\":{n},\"origin\":{origin},\"data\":{{\"v\":{}}}}}\n", n == 3)
    };
    let part = |lines: [u32; 3], more: [&str; 2]| {
        let formula = ["-f", "historically[0, 1 s] not v", "--summary", "json"];
        check(&[&more[..], &formula[..]].concat(), &lines.map(line).concat())
    };
    // A recording with missing messages is not green.
    for (second, status) in [([3, 4, 5], 1), ([4, 5, 6], 4)] {
        part([0, 1, 2], ["--snapshot-to", &snapshot]).expect_status(0);
        let continued = part(second, ["--resume", &snapshot]);
        let from = second[0];
        continued
            .expect_status(status)
            .expect_stderr(&[&format!("\"resumed\":{{\"from\":2.0,\"until\":{from}.0}}")]);
        let is_withheld = continued.stdout.contains("inconclusive");
        assert_eq!(is_withheld, from == 4, "{}", continued.stdout);
    }
}

/// The messages of both, more than are remembered one by one, and of one publisher.
#[test]
fn messages_in_both_recordings_are_counted() {
    let folder = Folder::new();
    let snapshot = folder.path("state.snapshot");
    let lines = |numbers: std::ops::Range<u32>| -> String {
        let line = |n| {
            format!(
                "{{\"time\":{n},\"origin\":{{\"publisher\":1,\"number\":{n}}},\"data\":{{\"v\":true}}}}\n"
            )
        };
        numbers.map(line).collect()
    };
    for overlap in [1, 10, 1_000] {
        check(&["--snapshot-to", &snapshot, "-f", "v"], &lines(0..2_000)).expect_status(0);
        let second = lines(2_000 - overlap..2_100);
        let json =
            check(&["--resume", &snapshot, "--reset", "ignore", "-f", "v", "--summary", "json"], &second);
        json.expect_status(0).expect_stderr(&[&format!("\"duplicated\":{overlap},")]);
        let said = if overlap == 1 { "1 message came" } else { &format!("{overlap} messages came") };
        check(&["--resume", &snapshot, "--reset", "ignore", "-f", "v"], &second)
            .expect_status(0)
            .expect_stderr(&[&format!(
                "{} twice, by the numbers of publishers",
                said.replace("1000", "1,000")
            )]);
    }
}

/// The gear changes at 2, when the vehicle stands since 1; its messages come in the first run, those of the speed in the second.
#[test]
fn waiting_messages_are_restored_in_the_next_run() {
    let folder = Folder::new();
    folder.file(
        "vehicle.rondel",
        "topic gear { report: int }\ntopic speed { v: float }\n\
         @time(dense) property at_standstill = changed(gear.report) -> speed.v < 0.1\n",
    );
    let name = folder.path("state.snapshot");
    let deployment = |max_wait: &str, endpoint: &str| {
        let text = format!(
            "zenoh: {{ mode: router, listen: {endpoint} }}\nspecification: vehicle.rondel\nblind: report\n\
             topics:\n  gear: {{ source: zenoh:t/gear, time: t }}\n  speed: {{ source: zenoh:t/speed, time: t }}\n\
             alignment: {{ max_wait: {max_wait}, absent_after: never }}\n"
        );
        folder.file("rondel.yaml", text)
    };
    let part = |topic: &str, input: &str, more: &[&str], expected: usize| {
        let endpoint = free_endpoint();
        let file = deployment("none", &endpoint);
        let mut run = start_rondel([&["run", &file, "--format", "json", "--resume", &name], more].concat());
        run.wait_stderr("ready");
        let publish = ["publish", "--to", topic, "--wait", "60"];
        rondel_with_input(arguments(&publish, &zenoh("client", &endpoint)), input.as_bytes())
            .expect_status(0);
        let lines = run.take_stdout(expected);
        run.terminate();
        (lines, run.finish())
    };
    let gear = "{\"t\":0,\"report\":1}\n{\"t\":2,\"report\":2}\n{\"t\":4,\"report\":2}\n";
    let kept = ["--snapshot-to", &name];
    let (_, first) = part("zenoh:t/gear", gear, &kept, 0);
    first.expect_status(0).expect_stdout("").expect_stderr(&["gear: 3 waiting for the next run"]);
    let other = deployment("1 s", &free_endpoint());
    rondel(["run", &other, "--resume", &name])
        .expect_status(2)
        .expect_stderr(&["cannot resume from", "other alignment settings"]);
    // A misspelt file must not cost the state.
    rondel(["run", &other, "--resume", &folder.path("stat.snapshot"), "--snapshot-to", &name])
        .expect_status(2)
        .expect_stderr(&["stat.snapshot does not exist, and ", "state.snapshot would be replaced"]);
    let speed = "{\"t\":0,\"v\":9}\n{\"t\":1,\"v\":0}\n{\"t\":5,\"v\":7}\n";
    let (lines, second) = part("zenoh:t/speed", speed, &[], 2);
    assert!(lines[0].contains("inconclusive") && lines[1].contains("satisfied"), "{lines:?}");
    second.expect_status(0);
    assert!(!second.stdout.contains("violated"), "{}", second.stdout);
}

const BEFORE: &str = "topic a { v: bool, n: int }\n\
    @time(steps) property kept = once a.v\n\
    @time(steps) property edited = once[0, 1] a.v\n\
    property gone = a.n < 5\n";
const AFTER: &str = "topic a { v: bool, n: int }\n\
    property new = a.n > 0\n\
    @time(steps) property edited = once[0, 2] a.v\n\
    @time(steps) property kept = once a.v\n";

/// Report of the edit.
const SAID: &str = "the specification was edited since the snapshot: `kept` continues with its state; `new` restarts: \
    it is new; `edited` restarts: its formula, or what that refers to, has changed; removed: gone";

#[test]
fn an_edited_specification_keeps_unchanged_properties() {
    let folder = Folder::new();
    let (before, after) = (folder.file("before.rondel", BEFORE), folder.file("after.rondel", AFTER));
    let name = folder.path("state.snapshot");
    check(&["--snapshot-to", &name, &before], "{\"topic\":\"a\",\"v\":true,\"n\":1}\n").expect_status(0);
    let rest = "{\"topic\":\"a\",\"v\":false,\"n\":1}\n";
    let two = check(&["--resume", &name, "--snapshot-to", &name, "--format", "json", &after], rest);
    two.expect_status(1).expect_stderr(&[SAID, "2 events checked"]);
    // Verdicts from before the edit are not repeated.
    assert!(!two.stdout.contains("kept"), "{}", two.stdout);
    assert!(
        two.stdout.contains("\"property\":\"edited\",\"time\":0,\"step\":1,\"verdict\":\"violated\""),
        "{}",
        two.stdout
    );
    let three = check(&["--resume", &name, "--format", "json", &after], rest);
    three.expect_status(1).expect_stderr(&["3 events checked"]);
    assert!(!three.stderr.contains("was edited"), "{}", three.stderr);
    // Nothing is the same.
    let other = folder.file("other.rondel", AFTER.replace("kept", "other"));
    check(&["--snapshot-to", &name, &before], rest).expect_status(1);
    check(&["--resume", &name, &other], rest)
        .expect_status(2)
        .expect_stderr(&["no property there has the same meaning"]);
}

#[test]
fn a_run_resumes_with_an_edited_specification() {
    let folder = Folder::new();
    let name = folder.path("state.snapshot");
    let (before, after) = (folder.file("before.rondel", BEFORE), folder.file("after.rondel", AFTER));
    let part = |spec: &str, input: &str, expected: &[(&str, &str)]| {
        let endpoint = free_endpoint();
        let own = ["run", spec, "--emit", "every", "--format", "json", "--topic", "zenoh:demo/state"];
        let kept = ["--resume", &name, "--snapshot-to", &name];
        let mut run =
            start_rondel(arguments(&[&own[..], &kept].concat(), &zenoh_listening("peer", &endpoint)));
        run.wait_stderr("ready");
        let publish = ["publish", "--to", "zenoh:demo/state", "--wait", "60"];
        rondel_with_input(arguments(&publish, &zenoh("peer", &endpoint)), input.as_bytes()).expect_status(0);
        let lines = run.take_stdout(3);
        for (property, verdict) in expected {
            let is_it = |line: &String| line.contains(property) && line.contains(verdict);
            assert!(lines.iter().any(is_it), "{lines:?}, not {verdict} {property}");
        }
        run.terminate();
        run.finish()
    };
    part(&before, "{\"v\":true,\"n\":1}\n", &[("kept", "\"step\":0,\"verdict\":\"satisfied\"")]);
    let second = part(
        &after,
        "{\"v\":false,\"n\":1}\n",
        &[
            // `kept` was final before, and a property that restarts has missed nothing.
            ("kept", "\"step\":1,\"verdict\":\"satisfied\""),
            ("edited", "\"step\":1,\"verdict\":\"violated\""),
            ("new", "\"step\":1,\"verdict\":\"satisfied\""),
        ],
    );
    second.expect_stderr(&["the monitor goes on from a snapshot of", SAID]);
}
