//! Output of `--explain` for violations, case by case: `tests/evidence/cases.txt`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "evidence/random.rs"]
mod random;
mod support;

use std::path::Path;

use support::{Folder, rondel_with_input};

/// The lines of a part of a case, without their indentation.
fn part(case: &str, name: &str) -> String {
    let lines = case.lines().skip_while(|line| *line != format!("{name}:")).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines.map(|line| format!("{}\n", &line[2..])).collect()
}

#[test]
fn every_violation_shows_its_causes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evidence/cases.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut wrong, mut count) = (String::new(), 0);
    for case in text.split("\ncase: ").skip(1) {
        let name = case.lines().next().unwrap();
        let (spec, trace, shows) = (part(case, "spec"), part(case, "trace"), part(case, "shows"));
        let folder = Folder::new();
        let file = folder.file("case.rondel", &spec);
        let arguments = ["check", "-q", "-e", "violations", "--explain", &file, "-"];
        let found = rondel_with_input(arguments, trace.as_bytes());
        if found.stdout != shows {
            let indented: String = found.stdout.lines().map(|line| format!("  {line}\n")).collect();
            wrong += &format!("{name}\n{indented}{}\n", found.stderr);
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 40, "only {count} cases were read");
}
