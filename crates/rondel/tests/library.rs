//! Folders with many recordings, checked several at once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;
use support::{Finished, Folder, finish, rondel};

/// A specification and forty recordings in folders, some of them violated, one broken, one empty.
fn library() -> (Folder, String, String) {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic odom { x: float }\nproperty slow = odom.x < 10\n");
    for drive in 0..40 {
        let line = |i: i64| {
            let x = if drive % 3 == 0 && i == 150 { 20 } else { i % 10 };
            format!("{{\"topic\":\"odom\",\"time\":{i},\"x\":{x}}}\n")
        };
        std::fs::create_dir_all(folder.path(&format!("drives/{}", drive % 4))).unwrap();
        let text: String = (0..200 + drive * 5).map(line).collect();
        let text = match drive {
            7 => text.replacen("\"time\":99", "\"time\":", 1),
            8 => String::new(),
            _ => text,
        };
        folder.file(&format!("drives/{}/{drive:02}.jsonl", drive % 4), text);
    }
    folder.file("drives/notes.txt", "not a recording");
    let drives = folder.path("drives");
    (folder, spec, drives)
}

fn check(options: &[&str]) -> Finished {
    rondel([&["check"], options].concat())
}

/// A text without the time that the check took, such as ` in 0.012 s`.
fn without_durations(text: &str) -> String {
    let without = |line: &str| -> Option<String> {
        let (before, after) = line.split_once(" checked against ")?;
        let (claims, duration) = after.split_once(" in ")?;
        let (_, rest) = duration.split_once(" s")?;
        Some(format!("{before} checked against {claims}{rest}"))
    };
    let lines = text.split('\n').map(|line| without(line).unwrap_or_else(|| line.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let (folder, spec, drives) = library();
    let run = |jobs: &str, format: &str| {
        let report = folder.path(&format!("{jobs}.tap"));
        let tap = format!("tap={report}");
        let checked =
            check(&["-e", "every", "--format", format, "--jobs", jobs, "--report", &tap, &spec, &drives]);
        let texts = [without_durations(&checked.stdout), without_durations(&checked.stderr)];
        (checked.status, texts, std::fs::read_to_string(report).unwrap())
    };
    for format in ["text", "json"] {
        let one = run("1", format);
        assert_eq!(one.0, Some(3));
        assert_eq!(one.2.lines().filter(|line| line.starts_with("not ok")).count(), 16, "{}", one.2);
        for jobs in ["2", "7", "100"] {
            assert!(run(jobs, format) == one, "{jobs} jobs");
        }
    }
}

#[test]
fn a_table_names_every_recording() {
    let (_folder, spec, drives) = library();
    let checked = check(&["-e", "violations", &spec, &drives]);
    assert_eq!(checked.status, Some(3));
    assert!(checked.stderr.contains("1 file is no recording, by the names; the first is notes.txt"));
    assert!(checked.stderr.contains("0/08.jsonl: the recording has no message"), "{}", checked.stderr);
    for row in ["  violated      ", "  unread        ", "  inconclusive  ", "  satisfied     "] {
        assert!(checked.stdout.contains(&format!("{row}{drives}/")), "{row}\n{}", checked.stdout);
    }
    assert!(checked.stdout.contains("3/07.jsonl: 99 events\n"), "{}", checked.stdout);
    assert!(checked.stdout.contains("0/00.jsonl: 200 events, 1 violated\n"), "{}", checked.stdout);
    let checked = check(&["-e", "violations", "--summary", "json", "--format", "json", &spec, &drives]);
    let summary: Value = serde_json::from_str(checked.stderr.lines().last().unwrap()).unwrap();
    let rows = summary["recordings"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["result"], &rows[0]["violated"]), (40, &"violated".into(), &1.into()));
    let names: Vec<&str> = rows.iter().map(|row| row["recording"].as_str().unwrap()).collect();
    assert!(names.is_sorted());
}

#[test]
fn a_folder_without_recordings_is_an_error() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic odom { x: float }\nproperty slow = odom.x < 10\n");
    folder.file("empty/readme.txt", "");
    let checked = check(&[&spec, &folder.path("empty")]);
    assert_eq!(checked.status, Some(3));
    assert!(checked.stderr.contains("this folder has no recording"), "{}", checked.stderr);
}

#[test]
fn asserts_are_judged_for_each_recording() {
    let (folder, _, drives) = library();
    let text = "topic odom { x: float }\nproperty slow = odom.x < 10\nassert count(violated slow) <= 1\n\
                assert share(slow) >= 0.996\n";
    let spec = folder.file("b.rondel", text);
    let (one, two) = (format!("{drives}/0/00.jsonl"), format!("{drives}/1/01.jsonl"));
    let checked = check(&["-e", "violations", &spec, &one, &two]);
    assert_eq!(checked.status, Some(1), "{}", checked.stdout);
    let worst = format!("share 0.995, 199 of 200 events, in {one}\n");
    assert!(checked.stdout.contains(&worst), "{}", checked.stdout);
    assert!(checked.stdout.contains(&format!("  violated      {one}: 200 events, 1 violated")));
    assert!(checked.stdout.contains(&format!("  satisfied     {two}: 205 events\n")));
}

/// A folder with two recordings and a specification that both satisfy.
fn two() -> (Folder, String, String) {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic odom { x: float }\nproperty slow = odom.x < 10\n");
    for name in ["a.jsonl", "b.jsonl"] {
        folder.file(&format!("drives/{name}"), "{\"topic\":\"odom\",\"time\":1,\"x\":5}\n");
    }
    let drives = folder.path("drives");
    (folder, spec, drives)
}

#[test]
fn other_files_in_a_folder_are_named_and_skipped() {
    let (folder, spec, drives) = two();
    assert!(Command::new("mkfifo").arg(folder.path("drives/pipe.jsonl")).status().unwrap().success());
    folder.file("drives/.hidden.jsonl", "{}");
    folder.file("drives/.git/c.jsonl", "{}");
    let checked = check(&[&spec, &drives]);
    checked.expect_status(0).expect_stderr(&[
        "1 file is no recording, by the names; the first is pipe.jsonl",
        "1 file is hidden, and not checked; the first is .hidden.jsonl",
    ]);
    assert!(checked.stdout.contains("b.jsonl: 1 event\n"), "{}", checked.stdout);
}

#[test]
fn a_folder_that_cannot_be_read_does_not_end_the_others() {
    let (folder, spec, drives) = two();
    let report = folder.path("r.tap");
    let tap = format!("tap={report}");
    // A missing one is treated as one that may not be read.
    let missing = folder.path("empty");
    std::fs::create_dir_all(&missing).unwrap();
    let checked = check(&["--report", &tap, &spec, &missing, &drives]);
    checked.expect_status(3).expect_stderr(&["this folder has no recording"]);
    assert!(checked.stdout.contains(&format!("  unread        {missing}: 0 events\n")), "{}", checked.stdout);
    assert!(
        std::fs::read_to_string(&report).unwrap().contains("not ok 3 - the recording was read to its end")
    );
    let closed = folder.path("drives/closed");
    std::fs::create_dir_all(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rondel"));
    if std::fs::read_dir(&closed).is_ok() {
        // Root may read everything.
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups", env!("CARGO_BIN_EXE_rondel")]);
    }
    let checked = finish(command.args(["check", &spec, &drives]), b"");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    checked.expect_status(3).expect_stderr(&["cannot open", "drives/closed: Permission denied"]);
    assert!(checked.stdout.contains("b.jsonl: 1 event\n"), "{}", checked.stdout);
}

#[test]
fn names_do_not_reach_the_terminal_raw() {
    let (folder, spec, drives) = two();
    folder.file("drives/c\u{1b}[31m\n.jsonl", "{");
    folder.file("drives/n\u{1b}[31m.txt", "");
    for format in ["text", "json"] {
        let checked = check(&["--format", format, &spec, &drives]);
        checked
            .expect_status(3)
            .expect_stderr(&["c\\u{1b}[31m\\n.jsonl:1:2", "the first is n\\u{1b}[31m.txt"]);
        assert!(!checked.stdout.contains('\u{1b}') && !checked.stderr.contains('\u{1b}'));
    }
}

#[test]
fn impossible_selections_are_usage_errors() {
    let (_folder, spec, drives) = two();
    let (a, b) = (format!("{drives}/a.jsonl"), format!("{drives}/b.jsonl"));
    for (options, said) in [
        (&["--from", "x"][..], "--from x: write seconds"),
        (&["--to", "+x"], "--to +x: write seconds"),
        (&["--from", "+4", "--to", "+2"], "--from is after --to"),
        (&["--from", "4", "--to", "2"], "--from is after --to"),
        (&["--from", "+4"], "--from is for MCAP files, bags and tables, but "),
        (&["--merge"], "a.jsonl has JSON lines, as 1 more have"),
        (&["--topics", "odom"], "--topics is for MCAP files"),
    ] {
        for recordings in [&[a.as_str(), &b][..], &[drives.as_str()]] {
            let checked = check(&[&[spec.as_str()], recordings, options].concat());
            checked.expect_status(2).expect_stderr(&[said]);
            assert_eq!(checked.stderr.matches("error:").count(), 1, "{}", checked.stderr);
            assert_eq!(checked.stdout, "");
        }
    }
}
