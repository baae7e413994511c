//! Rows and views after known verdicts.

use std::time::Duration;

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
use rondel_sinks::{Begin, End, Entry, Loss, Reached, RunKey, RunKind, Sink, VerdictEntry};

use crate::server::{Server, write};
use crate::support::{LIMIT, MIDNIGHT, SECOND, begin, verdict};

fn verdicts<'a>(all: impl IntoIterator<Item = VerdictEntry<'a>>) -> Vec<Entry<'a>> {
    all.into_iter().map(Entry::Verdict).collect()
}

#[test]
fn everything_of_a_verdict_is_stored() {
    let server = Server::start();
    let mut sink = server.sink();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let full = VerdictEntry {
        parameters: r#"{"id":7,"name":"a\u0000b"}"#,
        about: Some(MIDNIGHT),
        is_after: true,
        robustness: Some(-1.5),
        values: r#"{"i":3}"#,
        explanation: r#"[{"time":1}]"#,
        latency: Some(5),
        missing: "ge\0ar",
        ..verdict(1, "p", Violated, 5)
    };
    let odd = VerdictEntry { robustness: Some(f64::NAN), id: None, ..verdict(1, "q", Satisfied, 6) };
    let all = verdicts([full.clone(), odd.clone(), full, odd]);
    let written = write(&mut sink, &all);
    assert_eq!((written.stored, written.repeated), (3, 1), "one without an id cannot be recognised");
    assert_eq!(write(&mut sink, &all).repeated, 2);
    sink.close(LIMIT).unwrap();
    let id = verdict(1, "p", Violated, 5).id.unwrap();
    let row = server.query(
        "SELECT series, severity, parameters, verdict, time AT TIME ZONE 'UTC', about_ns, lap, step, robustness, \
         quantified, explanation, latency, missing, replace(id::text, '-', '') FROM all_verdicts WHERE property = 'p'",
    );
    assert_eq!(
        row,
        [format!(
            "car,critical,{{\"id\": 7, \"name\": \"a\u{fffd}b\"}},violated,2026-11-29 00:00:05,{MIDNIGHT},1,5,-1.5,\
             {{\"i\": 3}},[{{\"time\": 1}}],5e-09,ge\u{fffd}ar,{id:032x}"
        )]
    );
    let run =
        server.query("SELECT series, kind, specification, version, host, verdicts, repeated FROM all_runs");
    assert_eq!(run, ["car,run,brakes.rondel,0.1.0,car,5,3"]);
}

#[test]
fn runs_of_a_series_continue_each_other() {
    let server = Server::start();
    let mut sink = server.sink();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &verdicts([verdict(1, "p", Violated, 10), verdict(1, "q", Satisfied, 14)]));
    let violations = "SELECT id, (begin - 1795910400000000000) / 1000000000, \
                      (\"end\" - 1795910400000000000) / 1000000000, ended_by, count, unknown / 1000000000, \
                      stale IS NOT NULL FROM violations ORDER BY id";
    write(&mut sink, &[Entry::End(End { run: RunKey(1), end: MIDNIGHT + 15 * SECOND, status: "finished" })]);
    assert_eq!(server.query(violations), ["1,10,,,1,0,t"], "a violation that is not observed is stale");
    // Another series has the same property; a run that was killed has no end.
    write(&mut sink, &[Entry::Begin(Box::new(begin(2, "truck")))]);
    write(&mut sink, &verdicts([verdict(2, "p", Satisfied, 16), verdict(2, "p", Violated, 17)]));
    drop(sink);
    let mut sink = server.sink();
    let resumed = Begin { resumes: true, ..begin(3, "car") };
    write(&mut sink, &[Entry::Begin(Box::new(resumed))]);
    // Times of arrival differ when a broker repeats messages; ids do not.
    let again = VerdictEntry { id: verdict(1, "q", Satisfied, 14).id, ..verdict(3, "q", Satisfied, 19) };
    assert_eq!(write(&mut sink, &verdicts([again, verdict(3, "p", Satisfied, 20)])).repeated, 1);
    write(&mut sink, &[Entry::Begin(Box::new(begin(4, "truck")))]);
    assert_eq!(server.query(violations), ["1,10,20,satisfied,1,6,f", "2,17,,,1,0,t"]);
    let runs = server.query("SELECT id, status FROM runs ORDER BY id");
    assert_eq!(runs, ["1,finished", "2,aborted", "3,", "4,"]);
    // Somebody ends the violation of the truck by hand: nothing of it is in memory.
    server.query("UPDATE violations SET \"end\" = last, ended_by = 'satisfied', stale = NULL WHERE id = 2");
    write(&mut sink, &verdicts([verdict(4, "p", Violated, 30)]));
    assert_eq!(server.query("SELECT id, count FROM open_violations"), ["3,1"]);
}

#[test]
fn extremes_leave_usable_views() {
    let server = Server::start();
    let mut sink = server.sink();
    let loss = Loss { run: RunKey(8), reason: "late", subject: "ge\0ar", count: u64::MAX, from: 0, until: 1 };
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(100_000));
    let of_long = VerdictEntry { parameters: &long, ..verdict(8, "q", Violated, 1) };
    let entries = [Entry::Verdict(verdict(8, "p", Violated, 1)), Entry::Loss(loss), Entry::Verdict(of_long)];
    assert_eq!(write(&mut sink, &entries).stored, 2);
    assert_eq!(server.query("SELECT subject, count FROM all_losses"), [format!("ge\u{fffd}ar,{}", i64::MAX)]);
    let extremes = [i64::MIN, i64::MAX, 0, i64::MIN + 1].into_iter().enumerate().map(|(i, time)| {
        let truth = [Violated, Inconclusive, Violated, Satisfied][i];
        VerdictEntry { time, reported: time, ..verdict(8, "p", truth, i as i64) }
    });
    write(&mut sink, &verdicts(extremes));
    for lap in 2..5 {
        let again = VerdictEntry { time: i64::MIN, lap, ..verdict(8, "p", Violated, 9 + i64::from(lap)) };
        let reached = Reached { run: RunKey(8), time: i64::MAX, reported: 5 };
        write(&mut sink, &[Entry::Verdict(again), Entry::Reached(reached)]);
    }
    write(&mut sink, &[Entry::End(End { run: RunKey(8), end: i64::MAX, status: "" })]);
    server.query(&format!(
        "INSERT INTO silences (property, \"from\", until, set_by) VALUES ('p', 0, {max}, 'me')",
        max = i64::MAX
    ));
    // It would break the view of open violations.
    let wrong =
        "INSERT INTO silences (property, parameters, \"from\", until, set_by) VALUES ('p', '[]', 0, 9, 'me')";
    assert!(server.try_query("postgres", wrong).is_err());
    server.query("INSERT INTO actions (at, operator, kind, members) VALUES (0, 'me', 'ack', '{}')");
    for view in rondel_sinks::sqlite::VIEWS {
        let rows = server.query(&format!("SELECT * FROM {}", view.name));
        assert!(!rows.is_empty(), "{}", view.name);
        // The same columns as those that `rondel query` shows of a file.
        let columns: Vec<String> = view.columns.iter().map(|column| format!("\"{column}\"")).collect();
        server.query(&format!("SELECT {} FROM {}", columns.join(", "), view.name));
    }
    assert_eq!(server.query("SELECT verdict FROM state WHERE property = 'q'"), ["violated"]);
}

#[test]
fn instances_beyond_the_limit_are_not_listed() {
    let server = Server::start();
    let mut sink = server.sink();
    let names: Vec<String> = (0..12_000).map(|i| format!("{{\"robot\":{i}}}")).collect();
    let all = names.iter().enumerate().map(|(i, parameters)| VerdictEntry {
        parameters,
        id: Some(i as u128),
        ..verdict(1, "p", Violated, 0)
    });
    let all = verdicts(all);
    for part in all.chunks(7_000) {
        write(&mut sink, part);
    }
    assert_eq!(server.query("SELECT count(*) FROM state"), ["10000"]);
    assert_eq!(server.query("SELECT count(*) FROM open_violations"), ["12000"]);
    assert_eq!(server.query("SELECT instances FROM properties"), ["10000"]);
}

#[test]
fn entries_that_cannot_be_stored_are_rejected() {
    let server = Server::start();
    let mut sink = server.sink();
    let wrong = VerdictEntry { explanation: "[no json", ..verdict(1, "p", Violated, 2) };
    let failure = sink.write(&verdicts([verdict(1, "p", Violated, 1), wrong.clone()]), LIMIT).unwrap_err();
    assert_eq!(failure.kind, rondel_sinks::FailureKind::Rejected, "{failure}");
    assert!(failure.message.contains("invalid input syntax for type json"), "{failure}");
    assert_eq!(write(&mut sink, &verdicts([verdict(1, "p", Violated, 1)])).stored, 1, "nothing was stored");
}

#[test]
fn old_rows_of_the_own_series_are_removed() {
    let server = Server::start();
    let mut other = server.sink();
    write(&mut other, &[Entry::Begin(Box::new(begin(9, "truck")))]);
    write(&mut other, &verdicts([verdict(9, "p", Violated, 0), verdict(9, "p", Satisfied, 1)]));
    let keep = Some(Duration::from_secs(3600));
    let mut sink = PostgresSink::new(PostgresOptions { keep, ..server.options() }).unwrap();
    let own = Begin { kind: RunKind::Check, ..begin(1, "") };
    write(&mut sink, &[Entry::Begin(Box::new(own)), Entry::Verdict(verdict(1, "p", Violated, 0))]);
    write(&mut sink, &[Entry::End(End { run: RunKey(1), end: MIDNIGHT, status: "finished" })]);
    write(&mut sink, &[Entry::Begin(Box::new(begin(2, "car")))]);
    let all = (0..20_000).map(|i| verdict(2, "q", if i % 2 == 0 { Violated } else { Satisfied }, i));
    write(&mut sink, &verdicts(all));
    // Until 10,000 s they are older than an hour.
    let now = MIDNIGHT + 13_601 * SECOND;
    let mut calls = 0;
    while sink.maintain(now, Duration::from_millis(1)).unwrap() {
        calls += 1;
        assert!(calls < 50);
    }
    assert!(calls >= 3, "in pieces");
    let own = "SELECT count(*), min(step) FROM all_verdicts WHERE series = 'car'";
    assert_eq!(server.query(own), ["10000,10000"]);
    assert_eq!(server.query("SELECT count(*) FROM all_violations WHERE series = 'car'"), ["5000"]);
    let figures = "SELECT violations, recoveries FROM violations_per_day WHERE series = 'car'";
    assert_eq!(server.query(figures), ["10000,10000"], "figures stay");
    // The check has gone, with everything of it; the series of another process has not.
    assert_eq!(server.query("SELECT name FROM series ORDER BY name"), ["car", "truck"]);
    assert_eq!(server.query("SELECT count(*) FROM all_verdicts WHERE series = 'truck'"), ["2"]);
    assert_eq!(server.query("SELECT count(*) FROM runs"), ["2"]);
}

#[test]
fn ended_violations_behind_many_open_ones_are_removed() {
    let server = Server::start();
    let mut sink = PostgresSink::new(PostgresOptions { keep: Some(LIMIT), ..server.options() }).unwrap();
    // More than one transaction removes.
    let names: Vec<String> = (0..2_100).map(|i| format!("{{\"robot\":{i}}}")).collect();
    let open = names.iter().enumerate().map(|(i, parameters)| VerdictEntry {
        parameters,
        id: Some(i as u128),
        ..verdict(1, "p", Violated, 0)
    });
    write(&mut sink, &verdicts(open));
    write(&mut sink, &verdicts([verdict(1, "p", Violated, 1), verdict(1, "p", Satisfied, 2)]));
    while sink.maintain(i64::MAX, LIMIT).unwrap() {}
    let left = server.query("SELECT count(*), count(\"end\") FROM violations");
    assert_eq!(left, ["2100,0"]);
}
