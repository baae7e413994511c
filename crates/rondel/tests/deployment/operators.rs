//! `rondel ack` and `rondel silence`, on stores of checks and of runs, with and without an audit file.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, free_port};
use rusqlite::Connection;

use super::store::{LEVELS, await_begin, publish, rows};
use super::support::network::{arguments, free_endpoint, zenoh_listening};
use super::support::{Finished, Folder, RONDEL, finish, rondel, start_rondel};

/// A check whose last verdicts are violated: of `low`, number 1, and of `per_id` for the id 1, number 2.
fn checked(folder: &Folder) -> String {
    let store = folder.path("verdicts.db");
    let specification = folder.file("levels.rondel", LEVELS);
    let lines = "{\"t\":1,\"n\":5,\"id\":1}\n{\"t\":2,\"n\":12,\"id\":2}\n{\"t\":3,\"n\":13,\"id\":1}\n";
    let recording = folder.file("drive.jsonl", lines);
    let check = ["check", "--time-field", "t", "--store", &store, &specification, &recording];
    rondel(check).expect_status(1);
    store
}

/// An action of the operator ada.
fn act(store: &str, arguments: &[&str]) -> Finished {
    rondel([arguments, &["--store", store, "--by", "ada"]].concat())
}

/// An action that is refused with these words.
#[track_caller]
fn refused(store: &str, arguments: &[&str], status: i32, words: &str) {
    act(store, arguments).expect_status(status).expect_stderr(&[words]);
}

#[test]
fn database_that_cannot_be_used_is_named() {
    let url = format!("postgresql://ada@127.0.0.1:{}/verdicts", free_port());
    for action in [&["ack", "1"][..], &["silence", "low", "--for", "2 h"], &["silence", "--remove", "1"]] {
        if cfg!(feature = "postgres") {
            refused(&url, action, 3, "check that the server runs");
        } else {
            refused(&url, action, 2, "this Rondel is built without stores in PostgreSQL");
        }
    }
    let folder = Folder::new();
    let store = checked(&folder);
    refused(&store, &["ack", "1", "--tls-ca", "ca.pem"], 2, "--tls-ca is for databases");
}

#[test]
fn violations_are_acknowledged() {
    let folder = Folder::new();
    let store = checked(&folder);
    act(&store, &["ack", "1", "--comment", "tank is being refilled"])
        .expect_status(0)
        .expect_stdout("violation 1 of 'low' is acknowledged by ada\n");
    let until = act(&store, &["ack", "2", "--until", "2 h"]);
    until.expect_status(0);
    assert!(
        until.stdout.starts_with("violation 2 of 'per_id' is acknowledged by ada until 2"),
        "{}",
        until.stdout
    );
    let shown = "SELECT id, status, acknowledged_by, comment FROM open_violations ORDER BY id";
    let expected =
        "id,status,acknowledged_by,comment\r\n1,stale,ada,tank is being refilled\r\n2,stale,ada,\r\n";
    assert_eq!(rows(&store, shown), expected);
    refused(&store, &["ack", "9"], 2, "no violation has the number 9");
    refused(&store, &["ack", "0"], 2, "0 is not in 1..");
    refused(&store, &["ack", "1", "--until", "tomorrow"], 2, "write a duration from now");
    refused(&store, &["ack", "1", "--until", "2001-01-01T00:00:00Z"], 2, "this time has passed");
    let bob = ["ack", "1", "--store", &store, "--by", "bob"];
    rondel(bob).expect_status(2).expect_stderr(&["acknowledged by ada", "--replace"]);
    rondel([&bob[..], &["--replace"]].concat()).expect_status(0);
    rondel(["ack", "1", "--store", &store, "--by", " "]).expect_status(2).expect_stderr(&["add --by NAME"]);
    let mut nameless = Command::new(RONDEL);
    nameless.args(["ack", "2", "--replace", "--store", &store]).env_remove("USER").env_remove("LOGNAME");
    let nameless = finish(&mut nameless, b"");
    assert!(nameless.expect_status(0).stdout.contains("is acknowledged by uid "), "{}", nameless.stdout);
    refused(&folder.path("none.db"), &["ack", "1"], 3, "no such file");
    let connection = Connection::open(&store).unwrap();
    connection
        .execute_batch("UPDATE violations SET end = last, ended_by = 'satisfied' WHERE id = 1")
        .unwrap();
    refused(&store, &["ack", "1"], 2, "ended at 1970-01-01T00:00:02.000Z: there is nothing to acknowledge");
    connection.pragma_update(None, "user_version", 99).unwrap();
    refused(&store, &["ack", "2"], 3, "has version 99");
}

#[test]
fn properties_are_silenced() {
    let folder = Folder::new();
    let store = checked(&folder);
    let silenced = act(&store, &["silence", "per_id", "--where", "id=1", "--for", "2 h"]);
    silenced.expect_status(0);
    assert!(
        silenced.stdout.starts_with("silence 1 of 'per_id' {\"id\":1} lasts until 2"),
        "{}",
        silenced.stdout
    );
    act(&store, &["silence", "low", "--for", "1 d"]).expect_status(0);
    let present = "SELECT id, property, parameters, set_by FROM present_silences ORDER BY id";
    let expected = "id,property,parameters,set_by\r\n1,per_id,\"{\"\"id\"\":1}\",ada\r\n2,low,,ada\r\n";
    assert_eq!(rows(&store, present), expected);
    refused(&store, &["silence", "lwo", "--for", "2 h"], 2, "has a property 'lwo'; did you mean 'low'?");
    rondel(["query", &store, "state", "--property", "lwo"])
        .expect_status(2)
        .expect_stderr(&["has the property 'lwo'; did you mean 'low'?"]);
    refused(&store, &["silence", "low", "--for", "200000 d"], 2, "too long: write at most 30000 d");
    refused(&store, &["ack", "1", "--until", "200000 d"], 2, "too long: write at most 30000 d");
    refused(&store, &["silence", "low", "--for", "long"], 2, "write a duration such as 30 min");
    refused(&store, &["silence", "low"], 2, "--for");
    refused(&store, &["silence", "per_id", "--where", "robot=1", "--for", "2 h"], 2, "no parameter 'robot'");
    refused(&store, &["silence", "per_id", "--where", "id", "--for", "2 h"], 2, "write NAME=VALUE");
    assert!(silenced.stderr.is_empty(), "{}", silenced.stderr);
    for (chosen, said) in [
        ("id=9", "no present instance of 'per_id' has id=9; it has 1, 2; the silence is stored"),
        ("id=door", "no present instance of 'per_id' has id=door, whose values are numbers; it has 1, 2"),
    ] {
        act(&store, &["silence", "per_id", "--where", chosen, "--for", "2 h"])
            .expect_status(0)
            .expect_stderr(&["warning: ", said]);
    }
    act(&store, &["silence", "low", "--for", "1 h"])
        .expect_status(0)
        .expect_stderr(&["warning: silence 2 covers the same already; both are stored"]);
    act(&store, &["silence", "--remove", "5"]).expect_status(0);
    let removed = act(&store, &["silence", "--remove", "1"]);
    removed.expect_status(0).expect_stdout("silence 1 of 'per_id' has ended\n");
    refused(&store, &["silence", "--remove", "1"], 2, "silence 1 of 'per_id' ended at ");
    refused(&store, &["silence", "--remove", "7"], 2, "no silence has the number 7");
    let shown = rondel(["query", &store, "present_silences", "--property", "low"]);
    assert_eq!(shown.expect_status(0).stdout.lines().count(), 2, "{}", shown.stdout);
}

#[test]
fn actions_are_in_the_audit_file() {
    let folder = Folder::new();
    let store = checked(&folder);
    let audit = folder.path("audit.jsonl");
    act(&store, &["ack", "1", "--audit", &audit]).expect_status(0);
    act(&store, &["silence", "low", "--for", "2 h", "--audit", &audit]).expect_status(0);
    let text = fs::read_to_string(&audit).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found =
        ["record", "action", "operator", "violation", "property"].map(|name| lines[0][name].to_string());
    assert_eq!(found, ["\"operator\"", "\"ack\"", "\"ada\"", "1", "\"low\""]);
    assert_eq!((lines.len(), &lines[1]["action"], &lines[1]["number"]), (2, &"silence".into(), &2.into()));
    rondel(["audit", "verify", &audit]).expect_status(0);
    assert_eq!(rows(&store, "SELECT sum(is_audited) AS audited FROM actions"), "audited\r\n2\r\n");
    refused(&store, &["ack", "2", "--audit", &store], 2, "is the store: choose another file");
    let new = folder.path("new.jsonl");
    refused(&store, &["ack", "99", "--audit", &new], 2, "no violation has the number 99");
    assert!(fs::metadata(&new).is_err(), "an action that is refused creates no audit file");
    let other = folder.file("other.jsonl", "no audit file\n");
    refused(&store, &["ack", "2", "--audit", &other], 3, "it is not an audit file");
    assert_eq!(
        rows(&store, "SELECT count(*) AS actions FROM actions"),
        "actions\r\n2\r\n",
        "nothing is stored then"
    );
}

/// The run holds the audit file, and records the actions that it sees in its store.
#[test]
fn run_records_actions_of_operators() {
    let folder = Folder::new();
    let (endpoint, store, audit) = (free_endpoint(), folder.path("live.db"), folder.path("audit.jsonl"));
    let specification = folder.file("levels.rondel", LEVELS);
    let own = ["run", &specification, "--topic", "zenoh:demo/state", "--time-from", "t", "--count", "4"];
    let kept = ["--store", &store, "--audit", &audit];
    let mut run = start_rondel(arguments(&[&own[..], &kept].concat(), &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    await_begin(&store);
    act(&store, &["silence", "low", "--for", "2 h", "--audit", &audit])
        .expect_status(0)
        .expect_stderr(&["is written by a run"]);
    // Without the option as well.
    act(&store, &["silence", "--remove", "1"]).expect_status(0);
    let deadline = Instant::now() + LIMIT;
    while !fs::read_to_string(&audit).unwrap().contains("\"unsilence\"") {
        assert!(Instant::now() < deadline, "the action is not recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    publish(&endpoint);
    run.finish().expect_status(0);
    rondel(["audit", "verify", &audit]).expect_status(0);
    let text = fs::read_to_string(&audit).unwrap();
    let actions: Vec<&str> = text.lines().filter(|line| line.contains("\"record\":\"operator\"")).collect();
    assert!(actions.len() == 2 && actions[0].contains("\"action\":\"silence\""), "{text}");
    assert_eq!(rows(&store, "SELECT sum(is_audited) AS audited FROM actions"), "audited\r\n2\r\n");
}
