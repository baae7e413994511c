//! Comparisons that no message can decide are inconclusive, and a warning names the setting that helps.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_recording::{McapWriter, MessageHead, WriterOptions};
use support::{Folder, rondel};

const LATENCY: &str = "topic a { x: int }\nproperty quick = latency(a) < 50 ms\n";

/// Writes a file with three messages that were published these seconds before they were recorded.
fn recorded(folder: &Folder, name: &str, before: u64) -> String {
    let path = folder.path(name);
    let options = WriterOptions { library: "rondel test".to_owned(), ..WriterOptions::default() };
    let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
    let channel = writer.channel("a", "json", 0, &[]).unwrap();
    for second in 0..3 {
        let log_time = (1_790_000_000 + second) * 1_000_000_000;
        let publish_time = log_time - before * 1_000_000_000;
        writer.message(&MessageHead { channel, sequence: 0, log_time, publish_time }, b"{\"x\":1}").unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn latency_of_a_recording_is_unknown_without_times_of_publishing() {
    let folder = Folder::new();
    let spec = folder.file("s.rondel", LATENCY);
    let slow = recorded(&folder, "slow.mcap", 5);
    let unknown = rondel(["check", &spec, &slow]);
    unknown.expect_status(4).expect_stderr(&["`latency(a)` is unknown: ", "--stamp publish"]);
    let known = rondel(["check", "--stamp", "publish", &spec, &slow]);
    known.expect_status(1);
    assert!(!known.stderr.contains("latency"), "{}", known.stderr);
    // Writers that do not know when a message was published note the time of recording twice.
    let same = recorded(&folder, "same.mcap", 0);
    rondel(["check", "--stamp", "publish", &spec, &same]).expect_status(4);
}

#[test]
fn a_deployment_by_arrival_has_no_latency() {
    let folder = Folder::new();
    folder.file("s.rondel", LATENCY);
    let deployment = |name: &str, time: &str| {
        let text = format!("specification: s.rondel\nzenoh: {{}}\ntopics:\n  a: {{source: zenoh:a{time}}}\n");
        folder.file(name, text)
    };
    let lines =
        folder.file("l.jsonl", "{\"topic\": \"a\", \"time\": 1, \"arrival\": 6, \"data\": {\"x\": 1}}\n");
    let by_arrival = deployment("arrival.yaml", "");
    rondel(["validate", &by_arrival])
        .expect_status(0)
        .expect_stderr(&["`latency(a)` is unknown: ", "`time`"]);
    rondel(["check", &by_arrival, &lines]).expect_status(4).expect_stderr(&["`latency(a)` is unknown: "]);
    let by_source = deployment("source.yaml", ", time: source");
    let valid = rondel(["validate", &by_source]);
    assert!(!valid.expect_status(0).stderr.contains("latency"), "{}", valid.stderr);
    rondel(["check", &by_source, &lines]).expect_status(1);
}

/// The expansion of `known` and `is_nan` does not show.
#[test]
fn explanations_show_known_as_written() {
    let folder = Folder::new();
    let spec =
        folder.file("s.rondel", "topic m { x: float }\nproperty p = on(m) -> known(m.x) and m.x > 0.2\n");
    let lines = folder.file("l.jsonl", "{\"time\":1,\"x\":1}\n{\"time\":2,\"x\":null}\n");
    let explained = rondel(["check", "--explain", &spec, &lines]);
    explained.expect_status(1);
    assert!(explained.stdout.contains("known(m.x)  false"), "{}", explained.stdout);
    assert!(!explained.stdout.contains("m.x == m.x"), "{}", explained.stdout);
    assert!(!explained.stdout.contains("is_nan"), "{}", explained.stdout);
}

#[test]
fn nothing_that_measures_time_is_satisfied_without_times() {
    let folder = Folder::new();
    let spec = folder.file(
        "s.rondel",
        "topic a { x: int }\nproperty fresh = age(a) <= 1 s\nproperty slow = rate(a) over 10 s <= 20\n\
         property low = once[0, 1 s] a.x < 3\nproperty plain = a.x < 3\n",
    );
    let untimed = folder.file("untimed.jsonl", "{\"x\":1}\n{\"x\":2}\n");
    let checked = rondel(["check", &spec, &untimed]);
    checked.expect_status(4);
    assert_eq!(checked.stdout.matches("no message on `a` carried a time").count(), 3, "{}", checked.stdout);
    let timed = folder.file("timed.jsonl", "{\"time\":1,\"x\":1}\n{\"time\":2,\"x\":2}\n");
    rondel(["check", &spec, &timed]).expect_status(0);
}

/// A deployment of a LaserScan as CBOR: each message has the bytes of its array of floats.
fn scans(folder: &Folder, name: &str, all: &[&[f32]]) -> String {
    let path = folder.path(name);
    let options = WriterOptions { library: "rondel test".to_owned(), ..WriterOptions::default() };
    let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
    let channel = writer.channel("scan", "cbor", 0, &[]).unwrap();
    for (second, ranges) in (1_790_000_000..).zip(all) {
        let mut payload = vec![0xa1, 0x61, b'r', 0x80 | ranges.len() as u8];
        for range in *ranges {
            payload.push(0xfa);
            payload.extend(range.to_be_bytes());
        }
        let log_time = second * 1_000_000_000;
        writer
            .message(&MessageHead { channel, sequence: 0, log_time, publish_time: log_time }, &payload)
            .unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn elements_that_are_nan_are_left_out_and_counted() {
    const NAN: f32 = f32::NAN;
    let folder = Folder::new();
    let four = "topic scan { r: [float] }\nproperty near = min(scan.r) > 0.3\n\
        property clear = all r in scan.r: r > 0.3\nproperty free = not (any r in scan.r: r < 0.3)\n\
        property few = (count r in scan.r: r < 0.3) < 1\n";
    let spec = folder.file("s.rondel", four);
    let whole = folder.file("whole.rondel", format!("{four}property total = sum(scan.r) > 0.3\n"));
    let clear = scans(&folder, "clear", &[&[1.0, 2.0], &[NAN, 2.0], &[f32::INFINITY, NAN, f32::INFINITY]]);
    let checked = rondel(["check", &spec, &clear]);
    checked.expect_status(0);
    let sentence = "scan: 2 elements of arrays are NaN or null, and were left out";
    assert!(checked.stderr.contains(sentence), "{}", checked.stderr);
    // An obstacle beside NaN is found.
    let obstacle = scans(&folder, "obstacle", &[&[NAN, 0.1, f32::INFINITY]]);
    let checked = rondel(["check", &spec, &obstacle]);
    checked.expect_status(1);
    assert_eq!(checked.stdout.matches("violated 1 time").count(), 4, "{}", checked.stdout);
    // Without any other element the result is unknown. A sum without an element is another sum.
    let blind = scans(&folder, "blind", &[&[NAN, NAN]]);
    let checked = rondel(["check", &whole, &blind]);
    checked.expect_status(4);
    assert!(checked.stdout.contains("5 values on scan are NaN"), "{}", checked.stdout);
    let partly = scans(&folder, "partly", &[&[NAN, 1.0]]);
    let checked = rondel(["check", &whole, &partly]);
    checked.expect_status(4);
    assert!(checked.stdout.contains("inconclusive  total"), "{}", checked.stdout);
    let lines = folder.file("l.jsonl", "{\"topic\":\"scan\",\"time\":1,\"data\":{\"r\":[null,2]}}\n");
    let checked = rondel(["check", &spec, &lines]);
    checked.expect_status(0);
    let sentence = "scan: 1 element of an array is NaN or null, and was left out";
    assert!(checked.stderr.contains(sentence), "{}", checked.stderr);
}

#[test]
fn windows_leave_nan_out() {
    let folder = Folder::new();
    let values = |name: &str, all: &[f32]| {
        let path = folder.path(name);
        let options = WriterOptions { library: "rondel test".to_owned(), ..WriterOptions::default() };
        let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
        let channel = writer.channel("m", "cbor", 0, &[]).unwrap();
        for (second, value) in (1_790_000_000..).zip(all) {
            let payload = [&[0xa1, 0x61, b'x', 0xfa][..], &value.to_be_bytes()].concat();
            let log_time = second * 1_000_000_000;
            let head = MessageHead { channel, sequence: 0, log_time, publish_time: log_time };
            writer.message(&head, &payload).unwrap();
        }
        writer.finish().unwrap();
        path
    };
    let window = |measure: &str| {
        let text = format!("topic m {{ x: float }}\nproperty p = {measure} over full 2 s < 50.0\n");
        folder.file("s.rondel", text)
    };
    let (some, all) = (values("some", &[1.0, f32::NAN, 2.0, 3.0]), values("all", &[f32::NAN; 4]));
    for measure in ["max(m.x)", "mean(m.x)", "median(m.x)", "stddev(m.x)", "max(m.x + 1.0)"] {
        let checked = rondel(["check", &window(measure), &some]);
        checked
            .expect_status(0)
            .expect_stderr(&["1 value on m is NaN: left out, without an effect on verdicts"]);
        assert!(!checked.stdout.contains("not evaluated"), "{}", checked.stdout);
        rondel(["check", &window(measure), &all]).expect_status(4);
    }
    for measure in ["sum(m.x)", "last(m.x)", "max(m.x - prev(m.x))"] {
        rondel(["check", &window(measure), &some]).expect_status(4);
    }
    // Another part of the formula needs the value.
    let both =
        folder.file("b.rondel", "topic m { x: float }\nproperty p = max(m.x) over 2 s < 5.0 and m.x < 5.0\n");
    rondel(["check", &both, &some]).expect_status(4);
}

/// Counts, machines, variables and asserts are not satisfied over a value that was not read.
#[test]
fn nothing_is_satisfied_over_a_value_of_another_type() {
    let folder = Folder::new();
    let lines = "{\"topic\":\"t\",\"time\":1,\"x\":1,\"id\":1,\"a\":[1]}\n\
                 {\"topic\":\"t\",\"time\":2,\"x\":\"200\",\"id\":\"1\",\"a\":[\"200\"]}\n\
                 {\"topic\":\"t\",\"time\":3,\"x\":1,\"id\":1,\"a\":[1]}\n";
    let recording = folder.file("x.jsonl", lines);
    for (property, status) in [
        ("assert always t.x < 10", 4),
        ("property p = count(t.x >= 10) over 10 s == 0", 4),
        ("machine m { initial ok error bad ok -> bad when t.x >= 10 }", 4),
        ("property p = forall v. t{x: v} -> v < 10", 4),
        ("property p = not exists v. t{id: v, x: 200}", 4),
        ("property p for each i in t.id = on(t) -> t.id < 10", 4),
        ("property p = not (any r in t.a: r >= 10)", 4),
        ("property p = (count r in t.a: r >= 10) == 0", 4),
        ("property p = all r in t.a: r < 10", 1),
        ("property p = on(t)", 0),
    ] {
        let text = format!("topic t {{ x: float, id: int, a: [float] }}\n{property}\n");
        let specification = folder.file("s.rondel", text);
        let checked = rondel(["check", &specification, &recording]);
        assert_eq!(checked.status, Some(status), "{property}\n{}{}", checked.stdout, checked.stderr);
    }
}

/// Properties that do not depend on messages before the span are satisfied.
#[test]
fn a_part_of_a_recording_is_judged_by_itself() {
    let folder = Folder::new();
    let recording = folder.file("x.csv", "time,x\n1,1\n2,1\n3,1\n4,1\n");
    for (property, status) in [
        ("property p = t.x < 10", 0),
        ("assert always t.x < 10", 0),
        ("property p = once[0, 1 s] t.x < 10", 0),
        ("property p = historically[0, 10 s] t.x < 10", 4),
    ] {
        let specification = folder.file("s.rondel", format!("topic t\n{property}\n"));
        let checked = rondel(["check", "--from", "3", "--topic", "t", &specification, &recording]);
        assert_eq!(checked.status, Some(status), "{property}\n{}{}", checked.stdout, checked.stderr);
    }
}
