//! docs/reference/store.md: its queries print what is below them, and its schema is the one of the crate.
//!
//! `RONDEL_DOCS=write` writes both into the page.

use std::path::Path;

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::sqlite::{Acknowledgement, Format, NewSilence, Operations, Reader, VIEWS};
use rondel_sinks::{Begin, End, Entry, Loss, PropertyEntry, RunKey, VerdictEntry};

use crate::support::{Folder, LIMIT, MIDNIGHT, SECOND, begin, open, verdict, write};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

fn run(run: u128, at: i64) -> Entry<'static> {
    let property = |name, severity, requirement, text| PropertyEntry { name, severity, requirement, text };
    let properties = vec![
        property("brakes", "critical", "SYS-7", "pedal.pressed -> within 100 ms brake.active"),
        property("gap", "warning", "", "for each robot in scan.robot = scan.distance > 0.5"),
    ];
    Entry::Begin(Box::new(Begin { begin: MIDNIGHT + at * SECOND, properties, ..begin(run, "car") }))
}

/// The store that the page describes.
fn example(path: &Path) {
    let mut sink = open(path);
    let at = 8 * HOUR;
    let robot = |number: u8, entry: VerdictEntry<'static>| {
        let parameters = [r#"{"robot":1}"#, r#"{"robot":2}"#][usize::from(number - 1)];
        let id = entry.id.map(|id| id << 8 | u128::from(number));
        Entry::Verdict(VerdictEntry { parameters, id, ..entry })
    };
    let violated =
        |robustness, explanation, entry| VerdictEntry { robustness: Some(robustness), explanation, ..entry };
    let explanation = r#"[{"time":1795939212,"scan.distance":0.31}]"#;
    let repeated = Entry::Verdict(verdict(1, "brakes", Violated, at + 10));
    let first = [
        run(1, at),
        Entry::Verdict(verdict(1, "brakes", Satisfied, at)),
        robot(1, verdict(1, "gap", Satisfied, at + 1)),
        robot(2, verdict(1, "gap", Satisfied, at + 1)),
        repeated.clone(),
        repeated,
        robot(1, violated(-0.02, "", verdict(1, "gap", Violated, at + 12))),
        robot(2, violated(-0.19, explanation, verdict(1, "gap", Violated, at + 12))),
        robot(1, verdict(1, "gap", Satisfied, at + 14)),
        Entry::Verdict(verdict(1, "brakes", Satisfied, at + 15)),
        Entry::Loss(Loss {
            run: RunKey(1),
            reason: "late",
            subject: "scan",
            count: 3,
            from: MIDNIGHT + (at + 5) * SECOND,
            until: MIDNIGHT + (at + 9) * SECOND,
        }),
        Entry::End(End { run: RunKey(1), end: MIDNIGHT + (at + 20) * SECOND, status: "finished" }),
    ];
    write(&mut sink, &first);
    let at = DAY + 7 * HOUR;
    let second = [
        run(2, at),
        robot(2, verdict(2, "gap", Satisfied, at + 1)),
        Entry::Verdict(verdict(2, "brakes", Violated, at + 30)),
        Entry::Verdict(verdict(2, "brakes", Inconclusive, at + 31)),
        robot(1, violated(-0.4, "", verdict(2, "gap", Violated, at + 40))),
        robot(1, violated(-0.1, "", verdict(2, "gap", Violated, at + 41))),
    ];
    write(&mut sink, &second);
    let by = Acknowledgement {
        by: "night shift",
        comment: "sensor is being replaced",
        at: MIDNIGHT + (at + 90) * SECOND,
        until: None,
        replaces: false,
    };
    let mut operations = Operations::open(path, LIMIT).unwrap();
    operations.acknowledge(4, &by).unwrap();
    let silence = NewSilence {
        property: "gap",
        parameters: r#"{"robot":1}"#,
        from: by.at,
        // In the year 2255.
        until: 9_000_000_000 * SECOND,
        by: "night shift",
        comment: "",
    };
    operations.silence(&silence).unwrap();
}

#[test]
fn page_prints_what_its_queries_return() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/store.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let folder = Folder::new();
    example(&folder.store());
    let reader = Reader::open(&folder.store(), LIMIT).unwrap();
    let (mut expected, mut printed, mut queries) = (String::new(), None, 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        expected += &format!("{line}\n");
        let block = |lines: &mut std::str::Lines<'_>| -> Vec<String> {
            lines.take_while(|line| *line != "```").map(str::to_owned).collect()
        };
        let content = match line {
            "```sql" => {
                let sql = block(&mut lines).join("\n");
                let rows = reader.sql(&sql, 1000).unwrap_or_else(|error| panic!("{sql}\n{error}"));
                printed = Some(rows.text(Format::Table));
                queries += 1;
                format!("{sql}\n")
            }
            "```text" if printed.is_some() => {
                block(&mut lines);
                printed.take().unwrap_or_default()
            }
            "```sql schema" => {
                block(&mut lines);
                let [first, second] = [
                    include_str!("../../src/sqlite/schema.sql"),
                    include_str!("../../src/sqlite/version2.sql"),
                ];
                format!("{first}\n{second}")
            }
            _ => continue,
        };
        expected += &format!("{content}```\n");
    }
    assert!(queries > 8);
    for view in VIEWS {
        assert!(text.contains(&format!("| `{}` |", view.name)), "{} is not described", view.name);
    }
    if std::env::var("RONDEL_DOCS").is_ok_and(|mode| mode == "write") {
        std::fs::write(&page, &expected).unwrap();
        return;
    }
    assert!(text == expected, "docs/reference/store.md is out of date: run this test with RONDEL_DOCS=write");
}
