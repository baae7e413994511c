//! Violations whose source is gone: stale, never resolved, and the same when it returns.

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::sqlite::{Acknowledgement, Operations};
use rondel_sinks::{Begin, End, Entry, Reached, RunKey, VerdictEntry};

use crate::support::{Folder, LIMIT, MIDNIGHT, SECOND, begin, open, query, verdict, write};

/// The violations: number, status, count, seconds, and who has acknowledged each.
const SHOWN: &str = "SELECT id, status, count, seconds, acknowledged_by FROM all_violations ORDER BY id";

fn end(run: u128, at: i64) -> Entry<'static> {
    Entry::End(End { run: RunKey(run), end: MIDNIGHT + at * SECOND, status: "finished" })
}

fn acknowledge(folder: &Folder) {
    let by = Acknowledgement { by: "ada", at: MIDNIGHT, ..Acknowledgement::default() };
    Operations::open(&folder.store(), LIMIT).unwrap().acknowledge(1, &by).unwrap();
}

#[test]
fn input_that_is_missing_makes_a_violation_stale() {
    let folder = Folder::new();
    let mut sink = open(&folder.store());
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Violated, 10))]);
    acknowledge(&folder);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Inconclusive, 12))]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,stale,1,2,ada"]);
    // Twice changes nothing.
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Inconclusive, 15))]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,stale,1,2,ada"]);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Violated, 20))]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,open,2,2,ada"]);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Satisfied, 23))]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,ended,2,5,ada"]);
}

#[test]
fn end_of_a_run_makes_a_violation_stale_and_the_next_run_continues_it() {
    let folder = Folder::new();
    let mut sink = open(&folder.store());
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Violated, 10))]);
    acknowledge(&folder);
    let (time, reported) = (MIDNIGHT + 14 * SECOND, MIDNIGHT + 14 * SECOND);
    write(&mut sink, &[Entry::Reached(Reached { run: RunKey(1), time, reported }), end(1, 15)]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,stale,1,4,ada"]);
    write(&mut sink, &[Entry::Begin(Box::new(begin(2, "car")))]);
    // The first verdicts of the next run: nothing is known yet, then it is violated still.
    write(&mut sink, &[Entry::Verdict(verdict(2, "p", Inconclusive, 60))]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,stale,1,4,ada"]);
    write(&mut sink, &[Entry::Verdict(verdict(2, "p", Violated, 70))]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,open,2,4,ada"]);
    write(&mut sink, &[Entry::Verdict(verdict(2, "p", Violated, 71)), end(2, 72)]);
    assert_eq!(query(&folder.store(), SHOWN), ["1,stale,3,5,ada"]);
}

#[test]
fn violation_of_a_run_that_was_killed_goes_on() {
    let folder = Folder::new();
    let mut sink = open(&folder.store());
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Violated, 10))]);
    acknowledge(&folder);
    drop(sink);
    // Until the next run, only the lock of the series shows that the run has gone.
    assert_eq!(query(&folder.store(), SHOWN), ["1,open,1,0,ada"]);
    for (run, resumes) in [(2, true), (3, false)] {
        let mut sink = open(&folder.store());
        write(&mut sink, &[Entry::Begin(Box::new(Begin { resumes, ..begin(run, "car") }))]);
        let at = 20 * run as i64;
        let before = format!("1,stale,{},", run - 1);
        assert!(query(&folder.store(), SHOWN)[0].starts_with(&before));
        // A repeated verdict of the first run is the same one.
        let repeated = VerdictEntry { run: RunKey(run), ..verdict(1, "p", Violated, 10) };
        write(&mut sink, &[Entry::Verdict(repeated)]);
        assert!(query(&folder.store(), SHOWN)[0].starts_with(&before));
        write(&mut sink, &[Entry::Verdict(verdict(run, "p", Violated, at))]);
        assert!(query(&folder.store(), SHOWN)[0].starts_with(&format!("1,open,{run},")));
    }
    assert_eq!(query(&folder.store(), "SELECT count(*) FROM violations"), ["1"]);
}

/// Clocks step back: times of simulations, of recordings, of machines.
#[test]
fn seconds_are_never_negative() {
    let folder = Folder::new();
    let mut sink = open(&folder.store());
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let times = [
        vec![(Violated, 100), (Satisfied, 50)],
        vec![(Violated, 100), (Inconclusive, 50), (Violated, 200), (Satisfied, 60)],
        vec![(Violated, 100), (Inconclusive, 110), (Violated, 20), (Inconclusive, 30), (Satisfied, 400)],
        vec![(Violated, 300), (Inconclusive, 10)],
        vec![(Violated, 300), (Violated, 10)],
    ];
    let parameters: Vec<String> = (0..times.len()).map(|i| format!("{{\"id\":{i}}}")).collect();
    for (times, parameters) in times.iter().zip(&parameters) {
        for (truth, at) in times {
            let entry = VerdictEntry { parameters, id: None, ..verdict(1, "p", *truth, *at) };
            write(&mut sink, &[Entry::Verdict(entry)]);
            let wrong = query(&folder.store(), "SELECT * FROM all_violations WHERE seconds < 0");
            assert!(wrong.is_empty(), "{times:?}: {wrong:?}");
        }
    }
    write(&mut sink, &[end(1, 5)]);
    assert_eq!(query(&folder.store(), "SELECT count(*) FROM all_violations WHERE seconds < 0"), ["0"]);
    assert_eq!(
        query(&folder.store(), "SELECT count(*) FROM violations WHERE end < begin OR stale < begin"),
        ["0"]
    );
}
