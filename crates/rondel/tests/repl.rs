//! `rondel repl`: formulas over a recording, line by line, from standard input.

#![cfg(feature = "repl")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::process::Command;

use rondel_recording::{McapWriter, MessageHead, RecordedSchema, WriterOptions};
use support::{Finished, Folder, RONDEL, finish, rondel_with_input};

/// A recording of one topic without a name: speed and brake once a second.
fn drive(folder: &Folder) -> String {
    let rows =
        [(4, false), (8, false), (12, false), (12, true), (6, true), (12, false), (12, false), (12, false)];
    let line = |(time, (speed, brake)): (usize, &(u32, bool))| {
        format!("{{\"time\": {time}, \"speed\": {speed}, \"brake\": {brake}}}\n")
    };
    folder.file("drive.jsonl", rows.iter().enumerate().map(line).collect::<String>())
}

/// An MCAP file with messages of ROS 2 on `/odom/speed`: 1.5, 3 and 4.5, a second apart, and with JSON on `/gear`.
fn bag(folder: &Folder) -> String {
    let path = folder.path("drive.mcap");
    let options = WriterOptions { library: "rondel test".to_owned(), ..WriterOptions::default() };
    let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
    let schema = writer.schema(&RecordedSchema {
        name: "std_msgs/msg/Float64".to_owned(),
        encoding: "ros2msg".to_owned(),
        data: b"float64 data".to_vec(),
    });
    let schema = schema.unwrap();
    let speed = writer.channel("/odom/speed", "cdr", schema, &[]).unwrap();
    let gear = writer.channel("/gear", "json", 0, &[]).unwrap();
    for i in 1..=3_u32 {
        let time = u64::from(i) * 1_000_000_000;
        let head = |channel| MessageHead { channel, sequence: 0, log_time: time, publish_time: time };
        let value = f64::from(i) * 1.5;
        writer.message(&head(speed), &[&[0, 1, 0, 0][..], &value.to_le_bytes()].concat()).unwrap();
        writer.message(&head(gear), format!("{{\"report\": {i}}}").as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// A recording of several topics.
fn vehicle() -> [String; 2] {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    ["vehicle.jsonl", "vehicle.rondel"].map(|name| format!("{examples}/{name}"))
}

fn repl<const N: usize>(arguments: [&str; N], lines: &[&str]) -> Finished {
    let arguments = ["repl"].into_iter().chain(arguments);
    rondel_with_input(arguments, (lines.join("\n") + "\n").as_bytes())
}

/// The answers, which empty lines part.
fn answers(finished: &Finished) -> Vec<String> {
    finished.stdout.split("\n\n").map(|answer| answer.trim_end().to_owned()).collect()
}

#[test]
fn a_formula_shows_its_verdict_over_time() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let finished = repl([&trace], &["speed > 10 -> once[0,2] brake"]);
    finished.expect_status(0).expect_stdout(
        "██████████████████████▁▁▁▁▁▁▁▁▁▁▁▁▁████████████████████████████████████████████▁\n\
         0 s ──────────────────────────────────────────────────────────────────────── 7 s\n\
         violated 2 times, first at step 2 (time 2 s); 1 s in total, longest 1 s from time 2 s\n",
    );
    assert_eq!(finished.stderr, "");
    assert!(!finished.stdout.contains('\x1b'));
}

#[test]
fn verdicts_have_glyphs_and_words() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let finished = repl(
        [&trace],
        &[
            "speed < 20",
            "always[0,2] speed < 20",
            "speed > 30 -> brake",
            "prev(speed) > 3",
            "speed < 5 or brake",
        ],
    );
    finished.expect_status(0);
    let answers = answers(&finished);
    let lines: Vec<(char, char, &str)> = answers
        .iter()
        .map(|answer| {
            let mut lines = answer.lines();
            let bar: Vec<char> = lines.next().unwrap().chars().collect();
            assert_eq!(bar.len(), 80);
            (bar[0], bar[79], lines.nth(1).unwrap())
        })
        .collect();
    assert_eq!(lines[0], ('█', '█', "satisfied"));
    assert_eq!(lines[1], ('█', '▒', "inconclusive at the end"));
    assert_eq!(lines[2], ('░', '░', "vacuous: the premise `trace.speed > 30` was never true"));
    assert_eq!(lines[3], ('▒', '█', "satisfied, but inconclusive at 1 step"));
    assert_eq!(
        lines[4],
        ('█', '▁', "violated 2 times, first at step 1 (time 1 s); 4 s in total, longest 2 s from time 5 s")
    );
}

#[test]
fn numbers_are_shown_as_levels() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let lines = ["speed", "trace.speed / 2.0", "rate(trace) over 2 s", "age(trace)", "speed / 0.0"];
    let finished = repl([&trace], &lines);
    finished.expect_status(0);
    let answers = answers(&finished);
    let levels = "▁▁▁▁▁▁▁▁▁▁▁▅▅▅▅▅▅▅▅▅▅▅███████████████████████▃▃▃▃▃▃▃▃▃▃▃▃███████████████████████\n";
    assert!(answers[0].starts_with(levels), "{}", answers[0]);
    assert!(answers[1].starts_with(levels), "{}", answers[1]);
    let last = |i: usize| answers[i].lines().last().unwrap();
    assert_eq!(last(0), "min 4, max 12, last 12");
    assert_eq!(last(1), "min 2, max 6, last 6");
    assert_eq!(last(2), "min 0.5, max 1, last 1");
    assert!(last(3).ends_with(" s"), "{}", answers[3]);
    assert_eq!(answers[4], "no value in this stretch");
}

#[test]
fn definitions_are_kept_and_can_be_replaced() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let lines = [
        "let fast = speed > 10",
        "const LIMIT = 20",
        "use std.patterns",
        "fast -> once[0, 2 s] brake",
        "absence(speed > LIMIT)",
        "let fast = speed > 100",
        "fast",
        ":lets",
        ":drop fast",
        ":drop std.patterns",
        "fast",
    ];
    let finished = repl([&trace], &lines);
    finished.expect_status(2).expect_stderr(&[
        "error[E0201]: unknown name 'fast'",
        "--> input:1:1",
        "1 | fast",
    ]);
    let answers = answers(&finished);
    assert_eq!(answers[..3], ["kept fast", "kept LIMIT", "kept std.patterns"]);
    assert!(
        answers[3].ends_with(
            "violated 2 times, first at step 2 (time 2 s); 1 s in total, longest 1 s from time 2 s"
        ),
        "{}",
        answers[3]
    );
    assert!(answers[4].ends_with("\nsatisfied"), "{}", answers[4]);
    assert_eq!(answers[5], "kept fast");
    assert!(answers[6].ends_with("violated 1 time, first at step 0 (time 0 s), for 7 s"), "{}", answers[6]);
    assert_eq!(answers[7], "use std.patterns\nlet fast = speed > 100\nconst LIMIT = 20");
    assert_eq!(answers.len(), 8);
}

#[test]
fn a_definition_that_is_used_is_not_removed() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let lines = [
        "let fast = speed > 10",
        "let both = fast and brake",
        "# a comment",
        ":drop fast",
        ":drop both",
        ":drop fast",
    ];
    let finished = repl([&trace], &lines);
    finished
        .expect_status(2)
        .expect_stderr(&["error: `both` uses it: remove that first, or redefine `fast`\n"]);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert_eq!(answers(&finished), ["kept fast", "kept both"]);
}

#[test]
fn declarations_with_verdicts_are_evaluated() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let finished = repl(
        [&trace],
        &[
            "@time(dense) property p = speed < 20",
            "property a = speed < 9 property b = brake",
            "assert share(brake) > 0.5",
        ],
    );
    finished.expect_status(2).expect_stderr(&["asserts and tests are for `rondel check` and `rondel test`"]);
    let answers = answers(&finished);
    assert!(answers[0].ends_with("\nsatisfied"), "{}", answers[0]);
    let lines: Vec<&str> = answers[1].lines().collect();
    assert_eq!((lines[0], lines[4], lines.len()), ("a", "b", 8));
}

#[test]
fn machines_are_evaluated_and_kept() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let lines = [
        "machine m { initial off off -> on when brake on -> off when not brake error on }",
        "in(m, on) or not brake",
        ":drop m",
        "in(m, on)",
    ];
    let finished = repl([&trace], &lines);
    finished.expect_status(2).expect_stderr(&["unknown machine 'm'"]);
    let answers = answers(&finished);
    assert!(answers[0].contains("\nviolated"), "{}", answers[0]);
    assert!(answers[0].ends_with("\nkept m"), "{}", answers[0]);
    assert!(answers[1].ends_with("\nsatisfied"), "{}", answers[1]);
}

#[test]
fn constants_show_their_values() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let finished = repl([&trace], &["3 + 4", "const D = 1500 ms", "2 * D", "sqrt(2.25)", "\"a\""]);
    finished.expect_status(0);
    assert_eq!(answers(&finished), ["7", "kept D", "3 s", "1.5", "\"a\""]);
}

#[test]
fn a_field_that_is_no_number_differs_from_one_that_is_not_listed() {
    let folder = Folder::new();
    let fields: String = (0..20).map(|i| format!("\"f{i}\": {i}, ")).collect();
    let message = |i: i32| {
        let parts = if i % 2 == 0 { "1" } else { "\"a\"" };
        format!("{{\"topic\": \"a\", \"time\": {i}, {fields}\"s\": \"x\", \"l\": [1], \"mixed\": {parts}}}\n")
    };
    let trace = folder.file("a.jsonl", (0..4).map(message).collect::<String>());
    let finished = repl([&trace], &["a.s", "a.l", "a.mixed", "a.f3"]);
    finished
        .expect_status(2)
        .expect_stderr(&["expected a bool, found a string", "expected a single value, found an array"]);
    let answers = answers(&finished);
    assert!(answers[0].contains("min 1, max 1, last 1"), "{}", answers[0]);
    assert!(answers[0].contains("not evaluated: 2 values on a"), "{}", answers[0]);
    assert!(answers[1].contains("min 3, max 3, last 3"), "{}", answers[1]);
}

#[test]
fn a_specification_gives_topics_definitions_and_properties() {
    let [trace, spec] = vehicle();
    let lines =
        ["standing", "speed_limit", "gear.report == REVERSE", ":topics", ":fields gear", "gear.repot == 3"];
    let finished = repl([&spec, &trace], &lines);
    finished.expect_status(2).expect_stderr(&[
        "error[E0301]: unknown field 'repot' in topic 'gear'; did you mean 'report'?",
        "--> input:1:6",
    ]);
    let answers = answers(&finished);
    assert!(
        answers[0]
            .contains("violated 2 times, first at step 3 (time 0.05 s); 6.8 s in total, longest 4.45 s"),
        "{}",
        answers[0]
    );
    assert!(answers[1].ends_with("\nsatisfied"), "{}", answers[1]);
    assert_eq!(answers[3], "gear      demo/gear\nvelocity  demo/velocity\nbrake     demo/brake");
    assert_eq!(answers[4], "gear.report  int");
    let wrong = Folder::new();
    let typo = wrong.file("typo.rondel", "topic gear { report: int }\nlet a = gear.repot > 3\n");
    for (spec, said) in [
        (typo.as_str(), "typo.rondel:2:14"),
        ("none.rondel", "cannot read the specification none.rondel"),
        ("rondel.yaml", "rondel.yaml is a deployment"),
    ] {
        repl([spec, &trace], &["1 < 2"]).expect_status(2).expect_stderr(&[said]);
    }
}

#[test]
fn topics_and_fields_are_those_of_the_recording() {
    let folder = Folder::new();
    let trace = folder.file(
        "scan.jsonl",
        "{\"topic\": \"/lidar/scan\", \"time\": 0, \"data\": {\"ranges\": [1, 2.5], \"mode\": \"a\"}}\n\
         {\"topic\": \"/lidar/scan\", \"time\": 1, \"data\": {\"ranges\": [0.1, 2.5], \"mode\": \"b\"}}\n\
         {\"topic\": \"/a/b\", \"time\": 2, \"data\": {\"parts\": [{\"level\": 1}], \"odd key\": 1}}\n",
    );
    let lines = [
        ":topics",
        ":fields",
        "min(scan.ranges)",
        "all r in scan.ranges: r > 0.2",
        "b.parts[0].level",
        "b.parts[0].level < 3",
        "let level = b.parts[0].level",
        "level == 1",
        "b.\"odd key\"",
        "scan.none",
        ":fields scam",
        "scan.mode",
    ];
    let finished = repl([&trace], &lines);
    finished.expect_status(2).expect_stderr(&[
        "unknown field 'none' in topic 'scan'",
        "there is no topic `scam`; did you mean `scan`?",
        "expected a bool, found a string",
    ]);
    let answers = answers(&finished);
    assert_eq!(answers[0], "b     /a/b\nscan  /lidar/scan");
    let fields = [
        "b.\"odd key\"  int",
        "scan.mode    string",
        "scan.ranges  [float]",
        "b has further fields: arrays of objects, or values of several types",
    ];
    assert_eq!(answers[1].lines().collect::<Vec<_>>(), fields);
    assert!(answers[2].ends_with("min 0.1, max 1, last 0.1"), "{}", answers[2]);
    assert!(answers[3].ends_with("violated 1 time, first at step 1 (time 1 s), for 1 s"), "{}", answers[3]);
    assert!(answers[4].ends_with("min 1, max 1, last 1"), "{}", answers[4]);
    assert!(answers[5].ends_with("satisfied, but inconclusive at 2 steps"), "{}", answers[5]);
    assert!(answers[7].ends_with("satisfied, but inconclusive at 2 steps"), "{}", answers[7]);
    assert!(answers[8].ends_with("min 1, max 1, last 1"), "{}", answers[8]);
}

#[test]
fn types_are_those_of_the_recording() {
    let folder = Folder::new();
    let bag = bag(&folder);
    let lines = [":topics", ":fields", "speed.data", "gear.report == 2 -> speed.data > 4", "speed.date > 3"];
    let finished = repl([&bag], &lines);
    finished.expect_status(2).expect_stderr(&["unknown field 'date' in topic 'speed'"]);
    let answers = answers(&finished);
    assert_eq!(answers[0], "gear   /gear\nspeed  /odom/speed  std_msgs/msg/Float64");
    assert_eq!(answers[1], "gear.report  int\nspeed.data   float");
    assert!(answers[2].ends_with("min 1.5, max 4.5, last 4.5"), "{}", answers[2]);
    assert!(answers[3].ends_with("violated 1 time, first at step 3 (time 2 s), for 1 s"), "{}", answers[3]);
}

#[test]
fn a_stretch_is_shown_by_itself() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let lines =
        [":from +2", ":to 4", "speed < 9", ":from 5", ":from", ":from 9", ":to", "brake", ":all", "brake"];
    let finished = repl([&trace], &lines);
    finished.expect_status(2).expect_stderr(&["error: :from is after :to"]);
    let answers = answers(&finished);
    assert!(answers[0].starts_with("▁▁▁"), "{}", answers[0]);
    assert!(answers[0].contains("\n2 s ─") && answers[0].contains("─ 4 s\n"), "{}", answers[0]);
    assert!(answers[0].contains("\nwhole recording: violated "), "{}", answers[0]);
    assert!(answers[1].starts_with("▁▁▁"), "{}", answers[1]);
    assert!(answers[1].contains("\n0 s ─") && answers[1].contains("─ 7 s\n"), "{}", answers[1]);
}

#[test]
fn commands_that_do_not_exist_are_refused() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let finished = repl([&trace], &[":frm 3", ":", ":drop", ":from x", ":help", ":quit", "speed"]);
    finished.expect_status(2).expect_stderr(&[
        "there is no command `:frm`; did you mean `:from`?",
        "there is no command `:`",
        "name what to remove",
        ":from x: write seconds",
    ]);
    assert!(finished.stdout.starts_with("FORMULA"), "{}", finished.stdout);
    // Lines after `:quit` are not read.
    assert!(!finished.stdout.contains("max 12"), "{}", finished.stdout);
}

#[test]
fn colours_are_for_terminals() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let shown = |arguments: &[&str], no_color: bool| {
        let mut command = Command::new(RONDEL);
        command.args(["repl", &trace]).args(arguments).env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        finish(&mut command, b"speed < 9\n").stdout
    };
    assert!(!shown(&[], false).contains('\x1b'));
    assert!(!shown(&[], true).contains('\x1b'));
    let coloured = shown(&["--color", "always"], false);
    assert!(
        coloured.starts_with("\x1b[32m█") && coloured.contains("\x1b[1;31mviolated\x1b[0m 2 times"),
        "{coloured}"
    );
}

#[test]
fn several_recordings_are_shown_one_by_one() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let other = folder.file("other.jsonl", "{\"time\": 0, \"speed\": 1, \"brake\": false, \"more\": 2}\n");
    let finished = repl([&trace, &other], &["speed < 9", "more < 3"]);
    finished.expect_status(0);
    let first = &answers(&finished)[0];
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!((lines[0], lines[4], lines[7]), (trace.as_str(), other.as_str(), "satisfied"), "{first}");
}

#[test]
fn unreadable_recordings_are_named() {
    let folder = Folder::new();
    let empty = folder.path("nothing");
    std::fs::create_dir(&empty).unwrap();
    for (trace, status, said) in [
        ("none.jsonl", 3, "cannot open none.jsonl"),
        (empty.as_str(), 3, "this folder has no recording"),
        ("-", 2, "must be a file or a folder"),
        ("/dev/null", 2, "must be a file or a folder"),
    ] {
        repl([trace], &["1 < 2"]).expect_status(status).expect_stderr(&[said]);
    }
    // Messages before a line that cannot be read are shown.
    let broken = folder
        .file("broken.jsonl", "{\"time\": 1, \"v\": 3}\n{\"time\": 2, \"v\": 30\n{\"time\": 3, \"v\": 5}\n");
    let finished = repl([&broken], &["v < 10"]);
    finished.expect_status(3).expect_stderr(&["broken.jsonl:2:", "the text ends inside a value"]);
    assert!(finished.stdout.contains("█"), "{}", finished.stdout);
}

#[test]
fn a_recording_without_messages_has_no_line() {
    let folder = Folder::new();
    for content in ["", "\n\n"] {
        let trace = folder.file("empty.jsonl", content);
        let finished = repl([&trace], &[":topics", ":fields", "1 > 0", "x > 0"]);
        finished.expect_status(2).expect_stderr(&["unknown name 'x'"]);
        let answers = answers(&finished);
        assert_eq!(answers[..2], ["no topic", "no field is known"]);
        assert!(answers[2].starts_with("the recording has no message"), "{}", answers[2]);
    }
}

#[test]
fn no_line_ends_the_command() {
    let folder = Folder::new();
    let trace = drive(&folder);
    let mut input = Vec::new();
    for line in [
        "(".repeat(100_000) + "speed",
        "not ".repeat(100_000) + "brake",
        "{".repeat(5_000),
        "let a = ".to_owned() + &"[".repeat(5_000),
        "x".repeat(2_000_000),
        "\"".to_owned(),
        "@".to_owned(),
        ") or (speed".to_owned(),
        "speed) >= 0 or (speed".to_owned(),
        "property".to_owned(),
        "let".to_owned(),
        "use \"drive.jsonl\"".to_owned(),
        "test \"x\" { at 0 s".to_owned(),
        "machine m {".to_owned(),
        "speed \u{0}\u{1b}[2J".to_owned(),
    ] {
        input.extend(line.as_bytes());
        input.push(b'\n');
    }
    input.extend(b"\xff\xfe\n# nothing\nspeed < 20 // the last line has no break");
    let finished = rondel_with_input(["repl", &trace], &input);
    finished.expect_status(2).expect_stderr(&[
        "nested more than 250 levels deep",
        "line 5 of the input has more than 1024 KiB",
        "line 16 of the input is not UTF-8 text",
    ]);
    assert!(!finished.stderr.contains('\u{1b}'), "{}", finished.stderr);
    assert!(finished.stdout.ends_with("\nsatisfied\n"), "{}", finished.stdout);
}

#[test]
fn bar_continues_after_a_violation_that_is_decided_later() {
    let folder = Folder::new();
    let line = |(time, topic): (usize, &str)| format!("{{\"topic\":\"{topic}\",\"time\":{time},\"x\":1}}\n");
    let trace: String = ["c", "a", "c", "c", "c", "b", "c", "c"].into_iter().enumerate().map(line).collect();
    let trace = folder.file("late.jsonl", trace);
    for model in ["points", "dense", "steps"] {
        let two = if model == "steps" { "2" } else { "2 s" };
        let property = format!("@time({model}) property p = on(a) -> eventually[0, {two}] on(b)");
        let bar = answers(&repl([&trace], &[&property])).remove(0);
        let bar = bar.lines().next().unwrap();
        // At the message of `a`, up to the next message.
        assert!(bar.starts_with('█') && bar.contains('▁') && bar.ends_with("██████"), "{model}: {bar}");
        assert!(bar.matches('▁').count() <= 13, "{model}: {bar}");
    }
}
