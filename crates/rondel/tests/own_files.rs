//! `rondel check` reads files that `rondel record` and the flight recorder wrote: cut ones, incomplete ones, and what
//! time brings after their last message.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_recording::{McapWriter, MessageHead, WriterOptions};
use support::{Finished, Folder, rondel};

/// The beginning of the recordings: a time of day, in nanoseconds.
const START: u64 = 1_790_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// Writes a file with `{"v": V}` on `topic` at these seconds, and the notes of its recorder.
fn file(folder: &Folder, name: &str, topic: &str, values: &[(u64, u32)], notes: &[(&str, String)]) -> String {
    let path = folder.path(name);
    let options = WriterOptions { library: "rondel test".to_owned(), ..WriterOptions::default() };
    let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
    let channel = writer.channel(topic, "json", 0, &[]).unwrap();
    for (second, value) in values {
        let time = START + second * SECOND;
        let head = MessageHead { channel, sequence: 0, log_time: time, publish_time: time };
        writer.message(&head, format!("{{\"v\":{value}}}").as_bytes()).unwrap();
    }
    if !notes.is_empty() {
        let notes: Vec<_> = notes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        writer.metadata("rondel", &notes).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// The note of the end, at this second.
fn until(second: u64) -> (&'static str, String) {
    ("until", (START + second * SECOND).to_string())
}

fn check(arguments: &[&str]) -> Finished {
    rondel([&["check"][..], arguments].concat())
}

/// Of files that are merged, one that is cut ends only itself.
#[test]
fn a_cut_file_among_several_is_named_and_the_others_are_checked() {
    let folder = Folder::new();
    let spec = folder.file("s.rondel", "topic s \"t/s\" { v: int }\nproperty low = s.v < 5\n");
    let files: Vec<String> = (0..3)
        .map(|i| {
            file(&folder, &format!("e_{i}.mcap"), "t/s", &[(2 * i, 1), (2 * i + 1, 6 - 2 * i as u32)], &[])
        })
        .collect();
    // Recordings of a process killed just after a split: nothing but the header.
    let beginning = std::fs::read(&files[0]).unwrap()[..37].to_vec();
    let cuts = ["e_3.mcap", "e_4.mcap"].map(|name| folder.file(name, &beginning));
    let all: Vec<&str> = files.iter().chain(&cuts).map(String::as_str).collect();
    let merged = check(&[&[&spec, "--merge", "--emit", "every"], &all[..]].concat());
    merged.expect_status(3).expect_stderr(&["e_3.mcap: cut off", "e_4.mcap: cut off"]);
    assert!(merged.stdout.contains("6 events checked"), "{}", merged.stdout);
    assert!(merged.stdout.contains("e_3.mcap") && !merged.stdout.contains("e_0.mcap"), "{}", merged.stdout);
    assert!(merged.stdout.contains("violated"), "{}", merged.stdout);
    // The folder itself is one recording, and whole without the cut files.
    let folder_of = folder.path("");
    check(&[&spec, &folder_of]).expect_status(3).expect_stderr(&["e_3.mcap: cut off"]);
    for cut in &cuts {
        std::fs::rename(cut, format!("{cut}.txt")).unwrap();
    }
    let whole = check(&[&spec, &folder_of]);
    whole.expect_status(1);
    assert!(!whole.stderr.contains("missing"), "{}", whole.stderr);
    for cut in &cuts {
        std::fs::rename(format!("{cut}.txt"), cut).unwrap();
    }
    let skipping = check(&[&[&spec, "--merge", "--on-error", "skip"], &all[..]].concat());
    skipping.expect_status(1);
    let own = skipping.stdout.lines().find(|line| line.contains("cut: ")).unwrap();
    assert!(own.contains("e_3.mcap") && own.contains("e_4.mcap") && !own.contains("e_0.mcap"), "{own}");
}

/// Messages that the recorder knows to be missing make a satisfied check inconclusive.
#[test]
fn messages_that_a_recorder_missed_count() {
    let folder = Folder::new();
    let spec = folder.file("s.rondel", "topic s \"t/s\" { v: int }\nproperty low = s.v < 5\n");
    let note = |name: &'static str, count: u64| (name, count.to_string());
    let whole = file(&folder, "whole.mcap", "t/s", &[(0, 1)], &[note("received", 1), note("lost", 0)]);
    check(&[&spec, &whole]).expect_status(0);
    for (name, how) in [("refused", "refused"), ("unwritten", "not written"), ("not_kept", "refused")] {
        let part = file(&folder, &format!("{name}.mcap"), "t/s", &[(0, 1)], &[note(name, 3180)]);
        let said = format!("its recorder missed 3,180 messages (3,180 {how})");
        check(&[&spec, &part]).expect_status(4).expect_stderr(&[&said]);
        check(&[&spec, "--merge", &whole, &part]).expect_status(4).expect_stderr(&[&said]);
        check(&[&spec, &whole, &part]).expect_status(4).expect_stderr(&[&said]);
        let violated = file(&folder, &format!("{name}-v.mcap"), "t/s", &[(0, 7)], &[note(name, 1)]);
        check(&[&spec, &violated]).expect_status(1).expect_stderr(&["missed 1 message"]);
        let blind = folder.file(
            "report.yaml",
            "specification: s.rondel\nmqtt: { broker: localhost }\ntopics: { s: mqtt:t/s }\nblind: report\n",
        );
        check(&[&blind, &part]).expect_status(0).expect_stderr(&[&said]);
    }
}

/// After the last message time passes up to the end of the recording, as it did in the live run.
#[test]
fn time_passes_up_to_the_end_of_the_recording() {
    let folder = Folder::new();
    let text = "topic s \"t/s\" { v: int }\nproperty alive = age(s) < 3 s\n\
                property answered = s.v == 1 -> eventually[0, 5 s] s.v == 2\n";
    let spec = folder.file("s.rondel", text);
    let deployment = folder
        .file("d.yaml", "specification: s.rondel\nmqtt: { broker: localhost }\ntopics: { s: mqtt:t/s }\n");
    let values = [(0, 3), (1, 3), (2, 1)];
    for (second, alive, answered) in
        [(4, "satisfied", "inconclusive"), (6, "violated", "inconclusive"), (8, "violated", "violated")]
    {
        let own = file(&folder, &format!("{second}.mcap"), "t/s", &values, &[until(second)]);
        for with in [&spec, &deployment] {
            let checked = check(&[with, &own, "--summary", "json"]);
            let summary: serde_json::Value =
                serde_json::from_str(checked.stderr.lines().last().unwrap()).unwrap();
            let verdict = |i: usize| summary["properties"][i]["verdict"].clone();
            assert_eq!((verdict(0), verdict(1)), (alive.into(), answered.into()), "{second} {with}");
        }
        // A part of it ends where it is said to.
        let part = check(&[&spec, &own, "--to", "+3"]);
        assert!(!part.stdout.contains("violated"), "{}", part.stdout);
    }
    // Of files that were split, the last one has the end.
    let first = file(&folder, "p_0.mcap", "t/s", &values[..2], &[]);
    let last = file(&folder, "p_1.mcap", "t/s", &values[2..], &[until(8)]);
    check(&[&spec, "--merge", &first, &last]).expect_status(1);
}
