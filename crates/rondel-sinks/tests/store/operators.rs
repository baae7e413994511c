//! Acknowledgements and silences of operators, and what a running monitor sees of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::sqlite::{
    Acknowledgement, Action, Filter, NewSilence, Operations, Retention, SqliteSink, StoreErrorKind,
    StoreOptions,
};
use rondel_sinks::{Entry, Sink, VerdictEntry};
use rusqlite::Connection;

use crate::support::{Folder, LIMIT, MIDNIGHT, SECOND, begin, open, query, verdict, view, write};

/// In the year 2255.
const FAR: i64 = 9_000_000_000 * SECOND;

/// A store with an open violation of `p`, number 1, and one of `q`, number 2, of the instance 7.
fn store(folder: &Folder) -> SqliteSink {
    let mut sink = open(&folder.store());
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let q = VerdictEntry { parameters: r#"{"id":7}"#, ..verdict(1, "q", Violated, 11) };
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Violated, 10)), Entry::Verdict(q)]);
    sink
}

fn by(name: &str) -> Acknowledgement<'_> {
    Acknowledgement { by: name, comment: "sensor is replaced", at: MIDNIGHT, until: None, replaces: false }
}

fn silence<'a>(property: &'a str, parameters: &'a str) -> NewSilence<'a> {
    NewSilence { property, parameters, from: MIDNIGHT, until: FAR, by: "ada", comment: "" }
}

/// The operators of the open violations, as the view shows them.
fn owners(folder: &Folder) -> Vec<String> {
    let rows = view(&folder.store(), "open_violations", &Filter::default());
    rows.iter().map(|row| format!("{} {}", row["id"], row["acknowledged_by"])).collect()
}

#[test]
fn acknowledgement_lasts_until_its_time_and_no_longer_than_the_violation() {
    let folder = Folder::new();
    let mut sink = store(&folder);
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    operations.acknowledge(1, &Acknowledgement { until: Some(FAR), ..by("ada") }).unwrap();
    operations.acknowledge(2, &Acknowledgement { until: Some(MIDNIGHT + SECOND), ..by("bob") }).unwrap();
    // That of `q` has expired long ago.
    assert_eq!(owners(&folder), ["2 null", r#"1 "ada""#]);
    // The writer continues the violation and leaves the acknowledgement alone, also while the violation is stale.
    for truth in [Inconclusive, Violated] {
        write(&mut sink, &[Entry::Verdict(verdict(1, "p", truth, 12 + truth as i64))]);
        assert_eq!(owners(&folder)[1], r#"1 "ada""#);
    }
    let again = [verdict(1, "p", Satisfied, 20), verdict(1, "p", Violated, 21)];
    write(&mut sink, &again.map(Entry::Verdict));
    assert_eq!(owners(&folder), ["3 null", "2 null"], "a new violation has no owner");
    let all = view(&folder.store(), "all_violations", &Filter { property: Some("p"), ..Filter::default() });
    assert_eq!((&all[1]["acknowledged_by"], &all[1]["count"]), (&"ada".into(), &2.into()));
}

#[test]
fn wrong_acknowledgements_are_refused() {
    let folder = Folder::new();
    let mut sink = store(&folder);
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    let mut refused = |id: i64, by: &Acknowledgement<'_>| {
        let error = operations.acknowledge(id, by).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Query, "{error}");
        error.message
    };
    assert!(refused(9, &by("ada")).starts_with("no violation has the number 9; the view `open_violations`"));
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Satisfied, 12))]);
    assert_eq!(
        refused(1, &by("ada")),
        "violation 1 of 'p' ended at 2026-11-29T00:00:12.000Z: there is nothing to acknowledge"
    );
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    operations.acknowledge(2, &by("ada")).unwrap();
    let error = operations.acknowledge(2, &by("bob")).unwrap_err();
    assert!(
        error.message.starts_with("violation 2 of 'q' is acknowledged by ada; to take it over"),
        "{error}"
    );
    assert_eq!(owners(&folder), [r#"2 "ada""#]);
    // The same operator may change it, another one take it over, and anybody replace one that has expired.
    operations.acknowledge(2, &Acknowledgement { until: Some(MIDNIGHT + SECOND), ..by("ada") }).unwrap();
    operations.acknowledge(2, &Acknowledgement { at: MIDNIGHT + 2 * SECOND, ..by("bob") }).unwrap();
    operations.acknowledge(2, &Acknowledgement { replaces: true, ..by("eve") }).unwrap();
    assert_eq!(owners(&folder), [r#"2 "eve""#]);
    let actions = view(&folder.store(), "all_actions", &Filter::default());
    let expected = serde_json::json!({
        "violation": 2, "series": "car", "property": "q", "parameters": {"id": 7}, "comment": "sensor is replaced",
    });
    assert_eq!((actions.len(), &actions[0]["members"]), (4, &expected));
}

#[test]
fn unusable_stores_are_named() {
    let folder = Folder::new();
    let missing = Operations::open(&folder.0.join("none.db"), LIMIT).unwrap_err();
    assert_eq!(missing.kind, StoreErrorKind::Missing);
    assert!(!folder.0.join("none.db").exists(), "none is created");
    let empty = folder.0.join("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert_eq!(Operations::open(&empty, LIMIT).unwrap_err().kind, StoreErrorKind::NotAStore);
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0, "it is left as it is");
    drop(store(&folder));
    let path = folder.store();
    let mut operations = Operations::open(&path, Duration::from_millis(1)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = operations.acknowledge(1, &by("ada")).unwrap_err();
    assert_eq!(locked.kind, StoreErrorKind::Busy);
    assert!(locked.message.contains("another process holds its lock"), "{locked}");
    other.execute_batch("ROLLBACK").unwrap();
    operations.acknowledge(1, &by("ada")).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(Operations::open(&path, LIMIT).unwrap_err().kind, StoreErrorKind::Newer);
}

#[test]
fn silences_name_known_properties_and_parameters() {
    let folder = Folder::new();
    drop(store(&folder));
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    assert_eq!(operations.properties().unwrap(), ["p", "q"]);
    for (property, parameters, expected) in [
        ("x", "", "no run of the store has a property 'x'"),
        ("p", r#"{"id":7}"#, "'p' has no parameters: silence it without 'id'"),
        ("q", r#"{"robot":7}"#, "'q' has no parameter 'robot'; it has 'id'"),
    ] {
        let error = operations.silence(&silence(property, parameters)).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (StoreErrorKind::Query, expected));
    }
    assert_eq!(operations.silence(&silence("q", r#"{"id":"7"}"#)).unwrap().subject, 1);
    assert_eq!(operations.silence(&silence("p", "")).unwrap().subject, 2);
    let open = view(&folder.store(), "open_violations", &Filter::default());
    assert!(open.iter().all(|row| row["silenced_until"].as_str().unwrap().starts_with("2255-")), "{open:?}");
    let present = || {
        query(&folder.store(), "SELECT id, property, parameters, set_by FROM present_silences ORDER BY id")
    };
    assert_eq!(present(), [r#"1,q,"{""id"":""7""}",ada"#, "2,p,,ada"]);
    operations.remove_silence(2, "bob", MIDNIGHT + SECOND).unwrap();
    assert_eq!(present().len(), 1);
    let ended = operations.remove_silence(2, "bob", MIDNIGHT + 2 * SECOND).unwrap_err();
    assert_eq!(ended.message, "silence 2 of 'p' ended at 2026-11-29T00:00:01.000Z");
    let unknown = operations.remove_silence(3, "bob", MIDNIGHT).unwrap_err();
    assert!(unknown.message.starts_with("no silence has the number 3"), "{unknown}");
    // Ended silences are kept as history.
    assert_eq!(query(&folder.store(), "SELECT id, removed_by FROM silences ORDER BY id"), ["1,", "2,bob"]);
    let actions = query(&folder.store(), "SELECT operator, kind FROM actions ORDER BY id");
    assert_eq!(actions, ["ada,silence", "ada,silence", "bob,unsilence"]);
    // Violations that began before a silence were notified.
    let later = operations.silence(&NewSilence { from: MIDNIGHT + 60 * SECOND, ..silence("p", "") }).unwrap();
    let begun = [1, 2, later.subject, 9].map(|id| operations.begun_in_silence(id, 9).unwrap());
    assert_eq!(begun, [vec![2], vec![1], vec![], vec![]]);
}

#[test]
fn running_monitor_sees_silences_of_others() {
    let folder = Folder::new();
    let mut sink = store(&folder);
    let silences = sink.silences();
    let seen = |property, parameters, now| silences.is_silenced(property, parameters, now);
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    let first = operations.silence(&NewSilence { until: MIDNIGHT + 9 * SECOND, ..silence("p", "") }).unwrap();
    operations.silence(&silence("q", r#"{"id":7}"#)).unwrap();
    assert!(!seen("p", "", MIDNIGHT), "not looked yet");
    sink.look(MIDNIGHT, LIMIT).unwrap();
    assert!(seen("p", "", MIDNIGHT) && seen("p", r#"{"id":1}"#, MIDNIGHT));
    assert!(
        !seen("p", "", MIDNIGHT - 1) && !seen("p", "", MIDNIGHT + 9 * SECOND),
        "from its begin to its end"
    );
    assert!(seen("q", r#"{"id":7,"x":1}"#, MIDNIGHT) && seen("q", r#"{"id":"7"}"#, MIDNIGHT));
    assert!(!seen("q", r#"{"id":8}"#, MIDNIGHT) && !seen("q", "", MIDNIGHT) && !seen("x", "", MIDNIGHT));
    let generation = silences.generation();
    sink.look(MIDNIGHT, LIMIT).unwrap();
    assert_eq!(silences.generation(), generation, "nothing has changed");
    operations.remove_silence(first.subject, "bob", MIDNIGHT).unwrap();
    sink.look(MIDNIGHT, LIMIT).unwrap();
    assert!(!seen("p", "", MIDNIGHT) && silences.generation() > generation);
    // A sink that opens the store has them before its first verdict.
    let sink = open(&folder.store());
    assert!(sink.silences().is_silenced("q", r#"{"id":7}"#, MIDNIGHT));
    assert_eq!(sink.look_interval(), Some(Duration::from_secs(1)));
}

/// The views, the violations that began in a silence, and a running monitor compare values by one rule.
#[test]
fn values_of_silences_are_compared_by_one_rule() {
    let cases = [
        ("true", "true", true),
        ("true", r#""true""#, true),
        (r#""false""#, "false", true),
        ("true", "1", false),
        ("1", "true", false),
        ("false", "0", false),
        (r#""1""#, "true", false),
        ("7", r#""7""#, true),
        ("7.0", "7", true),
    ];
    for (own, chosen, expected) in cases {
        let folder = Folder::new();
        let mut sink = open(&folder.store());
        let (own, chosen) = (format!(r#"{{"v":{own}}}"#), format!(r#"{{"v":{chosen}}}"#));
        write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
        write(
            &mut sink,
            &[Entry::Verdict(VerdictEntry { parameters: &own, ..verdict(1, "q", Violated, 11) })],
        );
        let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
        let silence = operations.silence(&silence("q", &chosen)).unwrap().subject;
        sink.look(MIDNIGHT, LIMIT).unwrap();
        let shown = view(&folder.store(), "open_violations", &Filter::default());
        let found = [
            sink.silences().is_silenced("q", &own, MIDNIGHT),
            operations.begun_in_silence(silence, 9).unwrap() == [1],
            !shown[0]["silenced_until"].is_null(),
        ];
        assert_eq!(found, [expected; 3], "{own} {chosen}");
    }
}

#[test]
fn silences_are_read_while_the_store_is_locked_for_writing() {
    let folder = Folder::new();
    drop(store(&folder));
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    operations.silence(&silence("p", "")).unwrap();
    drop(operations);
    let writer = Connection::open(folder.store()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut sink = SqliteSink::new(&folder.store(), StoreOptions::default());
    sink.read_silences(i64::MIN, LIMIT).unwrap();
    let silences = sink.silences();
    assert!(silences.is_silenced("p", "", MIDNIGHT) && !silences.is_silenced("q", "", MIDNIGHT));
    let remove = format!("UPDATE silences SET until = {MIDNIGHT}; COMMIT; BEGIN IMMEDIATE");
    writer.execute_batch(&remove).unwrap();
    sink.look(MIDNIGHT, LIMIT).unwrap();
    assert!(!silences.is_any(), "a sink that is not open yet looks, too");
    // A new store has none; of a file that is no store it is not known.
    let at = |name: &str| SqliteSink::new(&folder.0.join(name), StoreOptions::default());
    at("none.db").read_silences(MIDNIGHT, LIMIT).unwrap();
    assert!(!folder.0.join("none.db").exists());
    std::fs::write(folder.0.join("text.db"), "no database".repeat(100)).unwrap();
    let error = at("text.db").read_silences(MIDNIGHT, LIMIT).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::NotAStore, "{error}");
}

#[test]
fn actions_are_recorded_by_the_run_at_least_once() {
    let folder = Folder::new();
    let mut sink = store(&folder);
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    let ack = operations.acknowledge(1, &by("ada")).unwrap();
    let audited = operations.acknowledge(1, &by("ada")).unwrap();
    operations.note_audited(audited.id).unwrap();
    let recorded: Arc<Mutex<Vec<Action>>> = Arc::default();
    let record = |sink: &SqliteSink, accepts: bool| {
        let recorded = Arc::clone(&recorded);
        let recorder = move |action: &Action| {
            if accepts {
                recorded.lock().unwrap().push(action.clone());
            }
            accepts
        };
        sink.actions().record_by(Box::new(recorder));
    };
    sink.look(MIDNIGHT, LIMIT).unwrap();
    // An audit that is full is tried again.
    record(&sink, false);
    sink.look(MIDNIGHT, LIMIT).unwrap();
    record(&sink, true);
    sink.look(MIDNIGHT, LIMIT).unwrap();
    assert_eq!(*recorded.lock().unwrap(), std::slice::from_ref(&ack));
    // A crash before the store has noted it repeats it.
    drop(sink);
    let mut sink = open(&folder.store());
    record(&sink, true);
    sink.look(MIDNIGHT, LIMIT).unwrap();
    sink.look(MIDNIGHT, LIMIT).unwrap();
    assert_eq!(*recorded.lock().unwrap(), [ack.clone(), ack]);
    sink.close(LIMIT).unwrap();
    assert_eq!(query(&folder.store(), "SELECT count(*) FROM actions WHERE NOT is_audited"), ["0"]);
}

#[test]
fn old_silences_and_actions_are_removed() {
    let folder = Folder::new();
    drop(store(&folder));
    let mut operations = Operations::open(&folder.store(), LIMIT).unwrap();
    operations.silence(&NewSilence { until: MIDNIGHT + SECOND, ..silence("p", "") }).unwrap();
    operations.silence(&silence("q", "")).unwrap();
    let retention = Retention { age: Some(Duration::from_secs(3600)), bytes: None };
    let options = StoreOptions { retention, ..StoreOptions::default() };
    let mut sink = SqliteSink::open(&folder.store(), options).unwrap();
    while sink.maintain(MIDNIGHT + 7200 * SECOND, LIMIT).unwrap() {}
    assert_eq!(query(&folder.store(), "SELECT property FROM silences"), ["q"]);
    assert_eq!(query(&folder.store(), "SELECT count(*) FROM actions"), ["0"]);
}
