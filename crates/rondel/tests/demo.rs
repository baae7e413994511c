//! `rondel demo` without a network: what it prints and writes, and that the commands that it names do what it says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::time::{Duration, Instant};

use support::{Folder, rondel};

/// The lines of a text that begin with a word.
fn beginning<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.starts_with(word)).collect()
}

#[test]
fn the_demo_shows_planted_faults_with_causes_and_a_picture() {
    let begun = Instant::now();
    let shown = rondel(["demo"]);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    shown.expect_status(0);
    assert_eq!(shown.stderr, "", "nothing but the demo is shown");
    let violated = beginning(&shown.stdout, "violated ");
    for (property, time) in [
        ("speed_limit", "time 2.8 s"),
        ("velocity_fresh", "time 2.25 s"),
        ("gear_change_at_standstill", "time 7.5 s"),
    ] {
        let is_named = |line: &&&str| line.contains(property) && line.contains(time);
        assert_eq!(violated.iter().filter(is_named).count(), 1, "{property}\n{}", shown.stdout);
        // Its bar has columns of both verdicts.
        let bars = beginning(&shown.stdout, property);
        assert!(
            bars.iter().any(|bar| bar.contains('█') && bar.contains('▁')),
            "{property}\n{}",
            shown.stdout
        );
    }
    assert_eq!(violated.len(), 3, "{}", shown.stdout);
    // The cause of a violation stands below it, and the totals in the summary.
    assert!(shown.stdout.contains("velocity.longitudinal <= 8.5     false"), "{}", shown.stdout);
    assert!(shown.stdout.contains("190 events checked against 4 properties"), "{}", shown.stdout);
    for field in ["velocity.longitudinal", "gear.report", "brake.pressed"] {
        assert!(!beginning(&shown.stdout, field).is_empty(), "{field}\n{}", shown.stdout);
    }
    let kept = beginning(&shown.stdout, "brake_before_reverse");
    assert!(kept.iter().any(|bar| bar.contains('█') && !bar.contains('▁')), "{}", shown.stdout);
    assert!(!shown.stdout.contains('\u{1b}'), "no colours without a terminal");
}

/// The files are those that the demo checks, and every command that it names works with them.
#[test]
fn the_commands_of_the_demo_work_with_its_files() {
    let folder = Folder::new();
    let own = folder.path("first look");
    let shown = rondel(["demo", "--write", &own]);
    shown.expect_status(0);
    let (specification, recording) = (format!("{own}/drive.rondel"), format!("{own}/drive.jsonl"));
    let checked = rondel(["check", "--explain", &specification, &recording]);
    checked.expect_status(1);
    let verdicts = |text: &str| {
        let lines = text.lines().take_while(|line| !line.contains("events checked"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert!(shown.stdout.contains(&verdicts(&checked.stdout)), "{}\n{}", shown.stdout, checked.stdout);
    rondel(["fmt", "--check", &specification]).expect_status(0);
    let commands: Vec<&str> =
        shown.stdout.lines().filter_map(|line| line.strip_prefix("  rondel ")).collect();
    assert_eq!(commands.len(), 3, "{}", shown.stdout);
    for (command, status) in commands.iter().zip([1, 0, 0]) {
        // A path with a blank is in quotes.
        assert!(command.contains(&format!("'{own}/drive.jsonl'")), "{command}");
        let ran = std::process::Command::new("sh")
            .args(["-c", &format!("'{}' {command}", support::RONDEL)])
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(status), "{command}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
    assert!(folder.as_path().join("first look/drive.html").exists());
    rondel(["check", &format!("{own}/own/first.rondel"), &recording]).expect_status(0);
}

#[test]
fn the_demo_overwrites_nothing() {
    let folder = Folder::new();
    let file = folder.file("drive.jsonl", "mine\n");
    rondel(["demo", "--write", &folder.path("")])
        .expect_status(2)
        .expect_stdout("")
        .expect_stderr(&["drive.jsonl exists already; name another folder with --write"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
    assert!(!folder.as_path().join("drive.rondel").exists());
    // A file stands in the place of the folder.
    rondel(["demo", "--write", &file]).expect_status(3).expect_stderr(&["cannot write "]);
    for wrong in [&["demo", "--fast"][..], &["demo", "--live", "--write", "x"]] {
        rondel(wrong).expect_status(2);
    }
}
