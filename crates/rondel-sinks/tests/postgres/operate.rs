//! Actions of operators.

use std::time::{Duration, Instant};

use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::postgres::{
    Acknowledgement, NewSilence, Operations, PostgresOptions, PostgresSink, Unacted,
};
use rondel_sinks::{Entry, FailureKind, VerdictEntry};

use crate::server::{Server, write};
use crate::support::{LIMIT, MIDNIGHT, SECOND, begin, verdict};

/// A time that is far ahead.
const FAR: i64 = i64::MAX / 2;

fn by(operator: &str) -> Acknowledgement<'_> {
    Acknowledgement {
        by: operator,
        comment: "sensor is replaced",
        at: MIDNIGHT,
        ..Acknowledgement::default()
    }
}

fn silence(property: &'static str, parameters: &'static str) -> NewSilence<'static> {
    NewSilence { property, parameters, from: MIDNIGHT, until: FAR, by: "ada", comment: "calibration" }
}

/// A store with an open violation of `p`, number 1, and of `q` for the id 7, number 2.
fn store(server: &Server) -> (PostgresSink, Operations) {
    let mut sink = server.sink();
    let of_q = VerdictEntry { parameters: r#"{"id":7}"#, ..verdict(1, "q", Violated, 11) };
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Violated, 10)), Entry::Verdict(of_q)]);
    let operations = Operations::open(server.options(), LIMIT).unwrap();
    (sink, operations)
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(acted: Result<T, Unacted>) -> String {
    match acted.unwrap_err() {
        Unacted::Refused(why) => why,
        Unacted::Failed(failure) => panic!("{failure}"),
    }
}

#[test]
fn violations_are_acknowledged_and_recorded() {
    let server = Server::start();
    let (mut sink, mut operations) = store(&server);
    let action = operations.acknowledge(2, &Acknowledgement { until: Some(FAR), ..by("ada") }).unwrap();
    assert_eq!((action.kind.as_str(), action.subject, action.operator.as_str()), ("ack", 2, "ada"));
    let owners = "SELECT id, acknowledged_by, comment FROM open_violations ORDER BY id";
    assert_eq!(server.query(owners), ["1,,", "2,ada,sensor is replaced"]);
    let members = server.query("SELECT members FROM actions").remove(0);
    let members: serde_json::Value = serde_json::from_str(&members).unwrap();
    assert_eq!(members, action.members);
    for (name, value) in [("series", "car"), ("property", "q"), ("comment", "sensor is replaced")] {
        assert_eq!(members[name], value, "{name}");
    }
    assert_eq!((&members["violation"], &members["parameters"]["id"]), (&2.into(), &7.into()));
    let until = members["until"].as_str().unwrap();
    assert!(until.len() == 24 && until.ends_with('Z'), "{until}");

    assert!(refusal(operations.acknowledge(9, &by("ada"))).starts_with("no violation has the number 9"));
    let taken = refusal(operations.acknowledge(2, &by("bob")));
    assert!(taken.starts_with("violation 2 of 'q' is acknowledged by ada; to take it over"), "{taken}");
    operations.acknowledge(2, &by("ada")).unwrap();
    operations.acknowledge(2, &Acknowledgement { replaces: true, ..by("bob") }).unwrap();
    write(&mut sink, &[Entry::Verdict(verdict(1, "p", Satisfied, 12))]);
    assert_eq!(
        refusal(operations.acknowledge(1, &by("ada"))),
        "violation 1 of 'p' ended at 2026-11-29T00:00:12.000Z: there is nothing to acknowledge"
    );
    // Refused actions leave nothing.
    assert_eq!(server.query("SELECT operator FROM actions ORDER BY id"), ["ada", "ada", "bob"]);
    operations.note_audited(action.id).unwrap();
    assert_eq!(server.query("SELECT count(*) FROM actions WHERE is_audited"), ["1"]);
}

#[test]
fn silences_are_set_and_removed() {
    let server = Server::start();
    let (_sink, mut operations) = store(&server);
    assert_eq!(operations.properties().unwrap(), ["p", "q"]);
    for (property, parameters, expected) in [
        ("x", "", "no run of the store has a property 'x'"),
        ("p", r#"{"id":7}"#, "'p' has no parameters: silence it without 'id'"),
        ("q", r#"{"robot":7}"#, "'q' has no parameter 'robot'; it has 'id'"),
    ] {
        assert_eq!(refusal(operations.silence(&silence(property, parameters))), expected);
    }
    let set = operations.silence(&silence("q", r#"{"id":"7"}"#)).unwrap();
    assert_eq!((set.kind.as_str(), set.subject), ("silence", 1));
    assert_eq!(
        server.query("SELECT property, parameters, set_by FROM present_silences"),
        [r#"q,{"id": "7"},ada"#]
    );
    let silenced = "SELECT id FROM open_violations WHERE silenced_until IS NOT NULL";
    assert_eq!(server.query(silenced), ["2"]);
    assert_eq!(operations.begun_in_silence(1, 10).unwrap(), [2]);
    assert!(
        refusal(operations.remove_silence(5, "bob", MIDNIGHT)).starts_with("no silence has the number 5")
    );
    let at = MIDNIGHT + SECOND;
    assert_eq!(operations.remove_silence(1, "bob", at).unwrap().kind, "unsilence");
    assert_eq!(
        refusal(operations.remove_silence(1, "bob", at)),
        "silence 1 of 'q' ended at 2026-11-29T00:00:01.000Z"
    );
    assert_eq!(server.query("SELECT removed_by FROM silences"), ["bob"]);
    assert_eq!(server.query("SELECT kind FROM actions ORDER BY id"), ["silence", "unsilence"]);
}

#[test]
fn unusable_databases_are_named_and_left_as_they_are() {
    let server = Server::start();
    let failure = |options| match Operations::open(options, LIMIT).map(drop).unwrap_err() {
        Unacted::Failed(failure) => failure,
        Unacted::Refused(why) => panic!("{why}"),
    };
    let missing = failure(server.options());
    assert!(missing.message.contains("has no store in the schema `rondel`"), "{missing}");
    assert_eq!(server.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'rondel'"), ["0"]);
    let wrong = failure(PostgresOptions { password: Some("wrong".to_owned()), ..server.options() });
    assert!(wrong.message.contains("28P01") && !wrong.message.contains("wrong"), "{wrong}");
    let (sink, mut operations) = store(&server);
    drop(sink);
    server.query("UPDATE rondel.schema_version SET version = 99");
    assert_eq!(failure(server.options()).kind, FailureKind::Broken);
    server.query("ALTER TABLE rondel.actions RENAME TO others");
    let Err(Unacted::Failed(failure)) = operations.acknowledge(1, &by("ada")) else { panic!("not failed") };
    assert!(failure.message.contains("42P01"), "{failure}");
    // Nothing of the transaction stays.
    assert_eq!(server.query("SELECT count(*) FROM open_violations WHERE acknowledged_by = 'ada'"), ["0"]);
    assert!(refusal(Operations::open(PostgresOptions::default(), LIMIT).map(drop)).contains("names no host"));
}

/// A trigger delays the answer to `COMMIT` beyond the limit.
#[test]
fn action_without_a_confirmation_may_be_stored() {
    let server = Server::start();
    let (_sink, operations) = store(&server);
    drop(operations);
    server.query(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(20); RETURN new; END $$; \
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON silences DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    let mut operations = Operations::open(server.options(), Duration::from_secs(5)).unwrap();
    let begun = Instant::now();
    let Err(Unacted::Failed(failure)) = operations.silence(&silence("p", "")) else { panic!("not failed") };
    assert!(begun.elapsed() < Duration::from_secs(15), "{failure}");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("the action may be stored"), "{failure}");
}

/// Triggers delay each statement, so that the limit passes before `COMMIT`.
#[test]
fn action_that_is_too_slow_is_rolled_back() {
    let server = Server::start();
    let (_sink, operations) = store(&server);
    drop(operations);
    server.query(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2.5); RETURN new; END $$; \
         CREATE TRIGGER slow BEFORE UPDATE ON violations FOR EACH ROW EXECUTE FUNCTION slow(); \
         CREATE TRIGGER slow BEFORE INSERT ON actions FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    let mut operations = Operations::open(server.options(), Duration::from_secs(4)).unwrap();
    let Err(Unacted::Failed(failure)) = operations.acknowledge(1, &by("ada")) else { panic!("not failed") };
    assert!(failure.message.contains("no answer within 4.0 s"), "{failure}");
    assert!(failure.message.ends_with("; try again later"), "{failure}");
    // A later action on the same connection commits nothing of it.
    assert_eq!(operations.properties().unwrap(), ["p", "q"]);
    drop(operations);
    assert_eq!(server.query("SELECT count(*) FROM open_violations WHERE acknowledged_by = 'ada'"), ["0"]);
    assert_eq!(server.query("SELECT count(*) FROM actions"), ["0"]);
}

#[test]
fn operators_are_advised_to_try_again() {
    let server = Server::start();
    let (_sink, operations) = store(&server);
    drop(operations);
    server.query(
        "CREATE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'busy' USING ERRCODE = '55P03'; END $$; \
         CREATE TRIGGER busy BEFORE INSERT ON silences FOR EACH ROW EXECUTE FUNCTION busy()",
    );
    let mut operations = Operations::open(server.options(), LIMIT).unwrap();
    let Err(Unacted::Failed(failure)) = operations.silence(&silence("p", "")) else { panic!("not failed") };
    let expected = "busy (SQLSTATE 55P03); another session holds a lock; try again later";
    assert!(failure.message.ends_with(expected), "{failure}");
}

#[test]
fn two_operators_do_not_overwrite_each_other() {
    let server = Server::start();
    let (_sink, first) = store(&server);
    let second = Operations::open(server.options(), LIMIT).unwrap();
    let threads = [(first, "ada"), (second, "bob")].map(|(mut operations, operator)| {
        std::thread::spawn(move || operations.acknowledge(1, &by(operator)).is_ok())
    });
    let accepted = threads.map(|thread| thread.join().unwrap());
    assert_eq!(accepted.iter().filter(|is| **is).count(), 1, "{accepted:?}");
    assert_eq!(server.query("SELECT count(*) FROM actions"), ["1"]);
}
