//! Rows and views after known verdicts.

use std::time::Duration;

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::sqlite::{Cell, Filter, Reader, Retention, SqliteSink, StoreErrorKind, StoreOptions};
use rondel_sinks::{Begin, End, Entry, Loss, Reached, RunKey, RunKind, Sink, VerdictEntry};

use crate::support::{Folder, LIMIT, MIDNIGHT, SECOND, begin, open, query, verdict, view, write};

fn verdicts<'a>(all: impl IntoIterator<Item = VerdictEntry<'a>>) -> Vec<Entry<'a>> {
    all.into_iter().map(Entry::Verdict).collect()
}

const VIOLATIONS: &str = "SELECT property, (begin - 1795910400000000000) / 1000000000, \
                          (end - 1795910400000000000) / 1000000000, ended_by, count, unknown / 1000000000, \
                          stale IS NOT NULL FROM violations ORDER BY id";

#[test]
fn everything_of_a_verdict_is_stored() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let full = VerdictEntry {
        parameters: r#"{"id":7}"#,
        about: Some(MIDNIGHT),
        is_after: true,
        robustness: Some(-1.5),
        values: r#"{"i":3}"#,
        explanation: r#"[{"time":1}]"#,
        latency: Some(5),
        because_of: "power",
        ..verdict(1, "p", Violated, 5)
    };
    let odd = VerdictEntry { robustness: Some(f64::NAN), id: None, ..verdict(1, "q", Satisfied, 6) };
    let written = write(&mut sink, &verdicts([full.clone(), odd.clone(), full, odd]));
    assert_eq!((written.stored, written.repeated), (3, 1), "one without an id cannot be recognised");
    sink.close(LIMIT).unwrap();
    let rows = view(&path, "all_verdicts", &Filter { property: Some("p"), ..Filter::default() });
    let expected = serde_json::json!({
        "time": "2026-11-29T00:00:05.000Z", "series": "car", "property": "p", "severity": "critical",
        "parameters": {"id": 7}, "verdict": "violated", "about": "2026-11-29T00:00:00.000Z",
        "reported": "2026-11-29T00:00:06.000Z", "lap": 1, "step": 5, "robustness": -1.5, "quantified": {"i": 3},
        "explanation": [{"time": 1}], "latency": 5e-9, "missing": null, "because_of": "power",
        "id": format!("{:032x}", verdict(1, "p", Violated, 5).id.unwrap()),
    });
    assert_eq!(rows, [expected]);
    let run = &view(&path, "all_runs", &Filter::default())[0];
    let shown =
        ["series", "kind", "specification", "version", "host"].map(|column| run[column].as_str().unwrap());
    assert_eq!(shown, ["car", "run", "brakes.rondel", "0.1.0", "car"]);
    assert_eq!((&run["verdicts"], &run["repeated"]), (&3.into(), &1.into()));
    assert_eq!(run["reported"], "2026-11-29T00:00:07.000Z", "its last sign of life");
}

#[test]
fn violations_follow_the_verdicts() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let all = [
        verdict(1, "p", Satisfied, 0),
        verdict(1, "p", Violated, 10),
        verdict(1, "p", Violated, 12),
        verdict(1, "p", Satisfied, 15),
        verdict(1, "q", Violated, 20),
        verdict(1, "q", Inconclusive, 22),
        verdict(1, "q", Violated, 25),
        verdict(1, "q", Satisfied, 26),
        verdict(1, "q", Inconclusive, 27),
        verdict(1, "p", Violated, 30),
        verdict(1, "q", Violated, 31),
    ];
    // The cut into batches makes no difference.
    for part in verdicts(all).chunks(3) {
        write(&mut sink, part);
    }
    assert_eq!(
        query(&path, VIOLATIONS),
        ["1,10,15,satisfied,2,0,0", "2,20,26,satisfied,2,3,0", "1,30,,,1,0,0", "2,31,,,1,0,0"]
    );
    let by = |name: &str, columns: &[&str]| -> Vec<String> {
        let rows = view(&path, name, &Filter::default());
        let show = |row: &serde_json::Value| {
            columns.iter().map(|column| row[column].to_string()).collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(show).collect()
    };
    assert_eq!(
        by("state", &["property", "verdict", "since", "violation"]),
        [r#""p" "violated" "2026-11-29T00:00:30.000Z" 3"#, r#""q" "violated" "2026-11-29T00:00:31.000Z" 4"#,]
    );
    let columns = ["property", "day", "violations", "recoveries", "violated_seconds", "verdicts"];
    assert_eq!(
        by("violations_per_day", &columns),
        [r#""p" "2026-11-29" 2 1 5.0 5"#, r#""q" "2026-11-29" 2 1 3.0 6"#]
    );
    // p lasts until 31 s, the last verdict of the series.
    assert_eq!(by("time_in_violation", &["property", "open", "seconds"]), [r#""p" 1 6.0"#, r#""q" 1 3.0"#]);
    assert_eq!(
        by("time_to_recovery", &["property", "mean_seconds", "longest_seconds"]),
        [r#""p" 5.0 5.0"#, r#""q" 3.0 3.0"#]
    );
    assert_eq!(by("open_violations", &["id", "property", "status"]), [r#"4 "q" "open""#, r#"3 "p" "open""#]);
}

/// With one verdict for each change, a property that stays violated has no further one.
#[test]
fn open_violation_lasts_until_the_time_that_the_run_has_reached() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &verdicts([verdict(1, "p", Violated, 10)]));
    let seconds = || query(&path, "SELECT open, seconds FROM time_in_violation");
    assert_eq!(seconds(), ["1,0"]);
    let reached = |second| {
        let (time, reported) = (MIDNIGHT + second * SECOND, MIDNIGHT + 99 * SECOND);
        Entry::Reached(Reached { run: RunKey(1), time, reported })
    };
    write(&mut sink, &[reached(16)]);
    assert_eq!(seconds(), ["1,6"]);
    assert_eq!(query(&path, "SELECT status, seconds FROM all_violations"), ["open,6"]);
    // An earlier time takes nothing back.
    write(&mut sink, &[reached(12), reached(17)]);
    assert_eq!(seconds(), ["1,7"]);
    write(&mut sink, &[Entry::End(End { run: RunKey(1), end: MIDNIGHT + 99 * SECOND, status: "finished" })]);
    assert_eq!(seconds(), ["1,7"], "it is not observed any more");
}

#[test]
fn runs_of_a_series_continue_each_other() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &verdicts([verdict(1, "p", Violated, 10), verdict(1, "q", Satisfied, 14)]));
    write(&mut sink, &[Entry::End(End { run: RunKey(1), end: MIDNIGHT + 15 * SECOND, status: "finished" })]);
    assert_eq!(query(&path, VIOLATIONS), ["1,10,,,1,0,1"], "a violation that is not observed is stale");
    // Another series has the same property; a run that was killed has no end.
    write(&mut sink, &[Entry::Begin(Box::new(begin(2, "truck")))]);
    write(&mut sink, &verdicts([verdict(2, "p", Satisfied, 16), verdict(2, "p", Violated, 17)]));
    drop(sink);
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(3, "car")))]);
    write(&mut sink, &verdicts([verdict(3, "p", Satisfied, 20)]));
    write(&mut sink, &[Entry::Begin(Box::new(begin(4, "truck")))]);
    assert_eq!(query(&path, VIOLATIONS), ["1,10,20,satisfied,1,6,0", "3,17,,,1,0,1"]);
    let runs = query(&path, "SELECT id, status FROM runs ORDER BY id");
    assert_eq!(runs, ["1,finished", "2,aborted", "3,", "4,"]);
    let shown = query(&path, "SELECT property, seconds FROM time_in_violation ORDER BY series");
    assert_eq!(shown, ["p,4", "p,0"]);
    // Checks have a series of their own: the same verdicts are those of another run.
    for run in [5, 6] {
        let own = Begin { kind: RunKind::Check, ..begin(run, "") };
        write(&mut sink, &[Entry::Begin(Box::new(own))]);
        let of = VerdictEntry { id: Some(77), ..verdict(run, "p", Violated, 1) };
        assert_eq!(write(&mut sink, &verdicts([of])).stored, 1);
    }
    assert_eq!(query(&path, "SELECT count(DISTINCT series) FROM all_runs"), ["4"]);
}

#[test]
fn resumed_run_repeats_ids_at_other_times() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &verdicts([VerdictEntry { id: Some(5), ..verdict(1, "p", Violated, 1) }]));
    // Times of arrival differ when a broker repeats messages; ids do not.
    let later = |run| VerdictEntry { id: Some(5), ..verdict(run, "p", Violated, 9) };
    write(&mut sink, &[Entry::Begin(Box::new(Begin { resumes: true, ..begin(2, "car") }))]);
    assert_eq!(write(&mut sink, &verdicts([later(2)])).repeated, 1);
    // A run from the beginning counts its messages from 0 again.
    write(&mut sink, &[Entry::Begin(Box::new(begin(3, "car")))]);
    assert_eq!(write(&mut sink, &verdicts([later(3)])).stored, 1);
}

#[test]
fn laps_and_chains_end_violations() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "sim")))]);
    let lap = |lap, entry| VerdictEntry { lap, ..entry };
    write(&mut sink, &verdicts([verdict(1, "p", Violated, 10), verdict(1, "q", Satisfied, 14)]));
    write(
        &mut sink,
        &verdicts([lap(2, verdict(1, "q", Satisfied, 1)), lap(2, verdict(1, "p", Satisfied, 2))]),
    );
    let stamp =
        VerdictEntry { parameters: r#"{"stamp":1}"#, missing: "gear", ..verdict(1, "q", Violated, 5) };
    write(&mut sink, &verdicts([lap(2, stamp)]));
    assert_eq!(query(&path, VIOLATIONS), ["1,10,14,lap,1,0,0", "2,5,5,once,1,0,0"]);
    assert_eq!(query(&path, "SELECT property, seconds FROM time_in_violation"), ["p,4", "q,0"]);
}

#[test]
fn lost_begins_and_losses_leave_usable_rows() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    let loss = Loss { run: RunKey(8), reason: "late", subject: "gear", count: u64::MAX, from: 0, until: 1 };
    write(&mut sink, &[Entry::Verdict(verdict(8, "p", Violated, 1)), Entry::Loss(loss)]);
    let losses = view(&path, "all_losses", &Filter::default());
    assert_eq!((&losses[0]["subject"], &losses[0]["count"]), (&"gear".into(), &i64::MAX.into()));
    assert_eq!(query(&path, "SELECT property, verdict FROM state"), ["p,violated"]);
    let extremes = [i64::MIN, i64::MAX, 0, i64::MIN + 1].into_iter().enumerate().map(|(i, time)| {
        let truth = [Violated, Inconclusive, Violated, Satisfied][i];
        VerdictEntry { time, reported: time, ..verdict(8, "p", truth, i as i64) }
    });
    let extremes = verdicts(extremes);
    write(&mut sink, &extremes);
    write(&mut sink, &[Entry::End(End { run: RunKey(8), end: i64::MAX, status: "" })]);
    for name in rondel_sinks::sqlite::VIEWS {
        view(&path, name.name, &Filter::default());
    }
}

#[test]
fn old_rows_are_removed() {
    let folder = Folder::new();
    let path = folder.store();
    let retention = Retention { age: Some(std::time::Duration::from_secs(3600)), bytes: None };
    let options = StoreOptions { retention, ..StoreOptions::default() };
    let mut sink = SqliteSink::open(&path, options).unwrap();
    let own = Begin { kind: RunKind::Check, ..begin(1, "") };
    write(&mut sink, &[Entry::Begin(Box::new(own)), Entry::Verdict(verdict(1, "p", Violated, 0))]);
    write(&mut sink, &[Entry::End(End { run: RunKey(1), end: MIDNIGHT, status: "finished" })]);
    write(&mut sink, &[Entry::Begin(Box::new(begin(2, "car")))]);
    let all = (0..40_000).map(|i| verdict(2, "q", if i % 2 == 0 { Violated } else { Satisfied }, i));
    write(&mut sink, &verdicts(all));
    // Until 30,000 s they are older than an hour.
    let now = MIDNIGHT + 33_601 * SECOND;
    let mut calls = 0;
    while sink.maintain(now, LIMIT).unwrap() {
        calls += 1;
        assert!(calls < 20);
    }
    assert!(calls >= 3, "in pieces");
    assert_eq!(query(&path, "SELECT count(*), min(step) FROM verdicts"), ["10000,30000"]);
    assert_eq!(query(&path, "SELECT count(*) FROM violations"), ["5000"]);
    assert_eq!(
        query(&path, "SELECT count(*) FROM series"),
        ["1"],
        "the check has gone, with everything of it"
    );
    assert_eq!(
        query(&path, "SELECT violations, recoveries FROM violations_per_day"),
        ["20000,20000"],
        "figures stay"
    );
}

#[test]
fn store_stays_below_its_size() {
    let folder = Folder::new();
    let path = folder.store();
    let retention = Retention { age: None, bytes: Some(4 << 20) };
    let mut sink = SqliteSink::open(&path, StoreOptions { retention, ..StoreOptions::default() }).unwrap();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    for part in 0..8 {
        let all = (0..20_000)
            .map(|i| verdict(1, "q", if i % 2 == 0 { Violated } else { Satisfied }, 20_000 * part + i));
        write(&mut sink, &verdicts(all));
        while sink.maintain(0, LIMIT).unwrap() {}
    }
    sink.close(LIMIT).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert!((2 << 20..4 << 20).contains(&size), "{size}");
    assert_eq!(query(&path, "SELECT max(step) FROM verdicts"), ["159999"], "the newest are left");
    assert_eq!(query(&path, "PRAGMA integrity_check"), ["ok"]);
}

/// A store with fewer rows than are removed at once.
#[test]
fn small_store_keeps_what_fits() {
    let folder = Folder::new();
    let path = folder.store();
    let retention = Retention { age: None, bytes: Some(1 << 20) };
    let mut sink = SqliteSink::open(&path, StoreOptions { retention, ..StoreOptions::default() }).unwrap();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &verdicts((0..20_000).map(|i| verdict(1, "q", Violated, i))));
    while sink.maintain(0, LIMIT).unwrap() {}
    sink.close(LIMIT).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert!((1 << 19..1 << 20).contains(&size), "{size}");
    let kept: i64 = query(&path, "SELECT count(*) FROM verdicts")[0].parse().unwrap();
    assert!(kept > 4000, "{kept}");
}

#[test]
fn queries_of_people_only_read() {
    let folder = Folder::new();
    let path = folder.store();
    drop(open(&path));
    let reader = Reader::open(&path, LIMIT).unwrap();
    let cases = [
        ("DELETE FROM verdicts", "a query only reads"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT none FROM verdicts", "no such column: none"),
        ("SELEC 1", "syntax error"),
        ("", "a query only reads"),
        ("PRAGMA user_version = 7", "a query only reads"),
    ];
    for (sql, expected) in cases {
        let error = reader.sql(sql, 10).unwrap_err();
        assert!(error.kind == StoreErrorKind::Query && error.message.contains(expected), "{sql}: {error}");
    }
    let error = reader.view("none", &Filter::default(), 10).unwrap_err();
    assert!(error.message.contains("views are state, open_violations"), "{error}");
    let filter = Filter { since: Some(0), ..Filter::default() };
    assert_eq!(reader.view("time_to_recovery", &filter, 10).unwrap_err().kind, StoreErrorKind::Query);
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let rows = reader.sql(many, 5).unwrap();
    assert!(rows.rows.len() == 5 && rows.has_more);
}

#[test]
fn query_takes_values_again() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    let mut reader = Reader::open(&path, LIMIT).unwrap();
    let sums = "SELECT i + ?1 FROM (SELECT 1 AS i UNION ALL SELECT 2) ORDER BY i";
    for value in [10, 20] {
        // The limit leaves a row unread.
        let found = reader.select(sums, &[Cell::Integer(value)], 1).unwrap();
        assert_eq!((found.rows, found.has_more), (vec![vec![Cell::Integer(value + 1)]], true));
    }
    // A statement that stays prepared sees what is written later, and holds no lock meanwhile.
    let count = "SELECT count(*) FROM verdicts WHERE ?1";
    for expected in 0..3 {
        let found = reader.select(count, &[Cell::Integer(1)], 1).unwrap();
        assert_eq!(found.rows, [[Cell::Integer(expected)]]);
        if expected == 0 {
            write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
        }
        write(&mut sink, &verdicts([verdict(1, "p", Violated, expected)]));
    }
    for sql in ["DELETE FROM verdicts", ""] {
        for _ in 0..2 {
            let error = reader.select(sql, &[], 1).unwrap_err();
            assert!(error.message.contains("a query only reads"), "{sql}: {error}");
        }
    }
    reader.end_within(Duration::ZERO).unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";
    for _ in 0..2 {
        assert_eq!(reader.select(endless, &[], 1).unwrap_err().kind, StoreErrorKind::Interrupted);
    }
    sink.close(LIMIT).unwrap();
}
