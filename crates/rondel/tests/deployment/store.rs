//! Stores of verdicts: of runs, checks and tests, and files that cannot be used.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process};
use rusqlite::Connection;
use serde_json::json;

use super::support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use super::support::{Folder, RONDEL, finish, rondel, rondel_with_input, start_rondel};
use super::{accepted, refused, validate};

pub(super) const LEVELS: &str = "topic state { t: float, n: int, id: int }\n\
    @severity(critical) property low = state.n < 10\n\
    property per_id for each id in state.id = state.n != 13\n";

pub(super) const MESSAGES: &str = "{\"t\":1,\"n\":5,\"id\":1}\n{\"t\":2,\"n\":12,\"id\":2}\n\
    {\"t\":3,\"n\":13,\"id\":1}\n{\"t\":5.5,\"n\":1,\"id\":1}\n";

/// Verdicts in the order of storing.
pub(super) const ROWS: &str = "SELECT p.name, v.parameters, v.verdict, v.time, v.about FROM verdicts v \
    JOIN properties p ON p.id = v.property ORDER BY v.time, p.name, v.parameters";

/// The verdicts on [`MESSAGES`] in a store.
pub(super) const EXPECTED: &str = "name,parameters,verdict,time,about\r\n\
    low,{},0,1000000000,\r\n\
    per_id,\"{\"\"id\"\":1}\",0,1000000000,\r\n\
    low,{},1,2000000000,\r\n\
    per_id,\"{\"\"id\"\":2}\",0,2000000000,\r\n\
    per_id,\"{\"\"id\"\":1}\",1,3000000000,\r\n\
    low,{},0,5500000000,\r\n\
    per_id,\"{\"\"id\"\":1}\",0,5500000000,\r\n";

/// The rows of a statement as CSV.
#[track_caller]
pub(super) fn rows(store: &str, sql: &str) -> String {
    let finished = rondel(["query", store, "--sql", sql, "--format", "csv"]);
    finished.expect_status(0);
    finished.stdout
}

/// A run of the levels on Zenoh, which ends after all messages.
fn run(folder: &Folder, store: &str, endpoint: &str) -> Process {
    let specification = folder.file("levels.rondel", LEVELS);
    let own = ["run", &specification, "--topic", "zenoh:demo/state", "--time-from", "t", "--count", "4"];
    let kept = ["--store", store];
    let mut run = start_rondel(arguments(&[&own[..], &kept].concat(), &zenoh_listening("peer", endpoint)));
    run.wait_stderr("ready");
    run
}

/// Waits until the begin of a run is stored.
pub(super) fn await_begin(store: &str) {
    let deadline = Instant::now() + LIMIT;
    while rows(store, "SELECT count(*) AS runs FROM runs") == "runs\r\n0\r\n" {
        assert!(Instant::now() < deadline, "no run has begun");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(super) fn publish(endpoint: &str) {
    let publish = ["publish", "--to", "zenoh:demo/state", "--wait", "60"];
    rondel_with_input(arguments(&publish, &zenoh("peer", endpoint)), MESSAGES.as_bytes()).expect_status(0);
}

#[test]
fn run_and_check_store_the_same_verdicts() {
    let folder = Folder::new();
    let (endpoint, live, checked) = (free_endpoint(), folder.path("live.db"), folder.path("checked.db"));
    let run = run(&folder, &live, &endpoint);
    publish(&endpoint);
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["live.db: 7 verdicts stored"]);
    assert_eq!(rows(&live, ROWS), EXPECTED);
    let recording = folder.file("drive.jsonl", MESSAGES);
    let specification = folder.path("levels.rondel");
    let check = ["check", "--time-field", "t", "--store", &checked, &specification, &recording];
    rondel(check).expect_status(1);
    assert_eq!(rows(&checked, ROWS), EXPECTED);
    let ids = "SELECT count(*) AS verdicts, count(DISTINCT id) AS ids FROM verdicts";
    for store in [&live, &checked] {
        assert_eq!(rows(store, ids), "verdicts,ids\r\n7,7\r\n");
    }
    // Everything that identifies the run.
    let runs = "SELECT kind, status, resumes, verdicts, specification_hash = '' AS hash, begin <= end AS ends FROM runs";
    assert_eq!(rows(&live, runs), "kind,status,resumes,verdicts,hash,ends\r\nrun,finished,0,7,0,1\r\n");
    assert_eq!(rows(&checked, runs), "kind,status,resumes,verdicts,hash,ends\r\ncheck,finished,0,7,0,1\r\n");
    let configuration = rows(&checked, "SELECT configuration FROM runs");
    assert!(configuration.contains("drive.jsonl"), "{configuration}");
    // Views, with filters and formats.
    let violations = ["query", &live, "all_violations", "--property", "low", "--format", "json"];
    let finished = rondel(violations);
    let row: serde_json::Value = serde_json::from_str(finished.expect_status(0).stdout.trim()).unwrap();
    let found = ["severity", "begin", "end", "ended_by", "seconds"].map(|name| row[name].clone());
    let (begin, end) = ("1970-01-01T00:00:02.000Z", "1970-01-01T00:00:05.500Z");
    assert_eq!(json!(found), json!(["critical", begin, end, "satisfied", 3.5]));
    let since = ["query", &live, "all_verdicts", "--since", "3", "--until", "5", "--format", "csv"];
    let finished = rondel(since);
    assert_eq!(finished.expect_status(0).stdout.lines().count(), 2, "{}", finished.stdout);
    rondel(["query", &live, "all_verdicts", "--limit", "2"])
        .expect_status(0)
        .expect_stderr(&["more than 2 rows"]);
    let finished = rondel(["query", &live]);
    let shown = &finished.expect_status(0).stdout;
    assert!(
        shown.contains("open_violations ") && shown.contains(" violations that have not ended"),
        "{shown}"
    );
}

#[test]
fn each_recording_and_each_test_is_a_run() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let (good, bad) =
        (folder.file("good.jsonl", "{\"v\":true}\n"), folder.file("bad.jsonl", "{\"v\":false}\n"));
    rondel(["check", "-f", "v", "--jobs", "2", "--store", &store, &good, &bad]).expect_status(1);
    let specification = folder.file(
        "tested.rondel",
        "topic a { v: bool }\nproperty p = a.v\n\
         test \"holds\" { at 1 s a { v: true } expect p satisfied }\n\
         test \"fails\" { at 1 s a { v: true } at 2 s a { v: false } expect p never violated }\n",
    );
    rondel(["test", "--store", &store, &specification]).expect_status(1);
    let runs = "SELECT kind, status, verdicts FROM runs ORDER BY kind, status, verdicts";
    assert_eq!(
        rows(&store, runs),
        "kind,status,verdicts\r\ncheck,finished,1\r\ncheck,finished,1\r\ntest,failed,2\r\ntest,passed,1\r\n"
    );
    let violated = "SELECT p.name, v.time, v.step FROM verdicts v JOIN properties p ON p.id = v.property \
                    JOIN runs r ON r.id = v.run WHERE r.kind = 'test' AND v.verdict = 1";
    assert_eq!(rows(&store, violated), "name,time,step\r\np,2000000000,1\r\n");
}

#[test]
fn messages_that_were_not_evaluated_are_losses() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let line = |n: u32| {
        let origin = format!("{{\"publisher\":1,\"number\":{n}}}");
        format!("{{\"time\":{n},\"origin\":{origin},\"data\":{{\"v\":true}}}}\n")
    };
    let recording = folder.file("a.jsonl", [0, 1, 4].map(line).concat());
    // The messages 2 and 3 are missing.
    rondel(["check", "-f", "historically[0, 1 s] v", "--store", &store, &recording]);
    let losses = "SELECT subject, sum(count) AS count FROM losses WHERE reason = 'lost'";
    // The topic of a bare formula has this name.
    assert_eq!(rows(&store, losses), "subject,count\r\ntrace,2\r\n");
}

#[test]
fn files_that_cannot_be_used_are_refused_at_the_start() {
    let folder = Folder::new();
    let garbage =
        folder.file("text.db", "no database at all, but long enough to be taken for one ".repeat(20));
    let newer = folder.path("newer.db");
    let recording = folder.file("a.jsonl", "{\"v\":true}\n");
    rondel(["check", "-f", "v", "--store", &newer, &recording]).expect_status(0);
    let store = Connection::open(&newer).unwrap();
    let version: i64 = store.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    store.pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    let before = fs::read(&garbage).unwrap();
    let (nowhere, itself) = (folder.path("none/verdicts.db"), folder.path(""));
    for (store, words) in [
        (garbage.as_str(), "choose another file"),
        (&newer, "has version 99"),
        (&nowhere, "there is no folder"),
        (&itself, "it is a folder; name a file in it"),
    ] {
        rondel(["run", "-f", "v", "--topic", "zenoh:a", "--store", store])
            .expect_status(3)
            .expect_stderr(&[words]);
        rondel(["check", "-f", "v", "--store", store, &recording]).expect_status(3).expect_stderr(&[words]);
    }
    assert_eq!(fs::read(&garbage).unwrap(), before);
    rondel(["check", "-f", "v", "--store", &recording, &recording])
        .expect_status(2)
        .expect_stderr(&["choose another file"]);
    // An administrator may write everything.
    let fixed = folder.file("fixed.db", "");
    let mut permissions = fs::metadata(&fixed).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&fixed, permissions).unwrap();
    if OpenOptions::new().append(true).open(&fixed).is_err() {
        rondel(["run", "-f", "v", "--topic", "zenoh:a", "--store", &fixed])
            .expect_status(3)
            .expect_stderr(&["not writable"]);
    }
    // Neither a device nor a pipe is opened, which would wait for its writer.
    let pipe = folder.path("pipe.db");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for special in ["/dev/full", pipe.as_str()] {
        let words = &["not a regular file"];
        rondel(["run", "-f", "v", "--topic", "zenoh:a", "--store", special])
            .expect_status(3)
            .expect_stderr(words);
        rondel(["check", "-f", "v", "--store", special, &recording]).expect_status(3).expect_stderr(words);
        rondel(["query", special, "state"]).expect_status(3).expect_stderr(words);
    }
    let (empty, other) = (folder.file("empty.db", ""), folder.path("other.db"));
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE state (x)").unwrap();
    let bare = folder.path("bare.db");
    Connection::open(&bare)
        .unwrap()
        .execute_batch(&format!("PRAGMA application_id = 1382966380; PRAGMA user_version = {version}"))
        .unwrap();
    for store in [&empty, &other, &bare] {
        rondel(["query", store, "state"]).expect_status(3).expect_stderr(&["is not a store of Rondel"]);
    }
    rondel(["query", &nowhere, "state"]).expect_status(3).expect_stderr(&["no such file"]);
    rondel(["query", &garbage, "state"]).expect_status(3).expect_stderr(&["choose another file"]);
    rondel(["query", &newer, "state"]).expect_status(3).expect_stderr(&["has version 99"]);
}

/// The violations of two checks of one recording have rows of their own, and begin with the same verdicts.
#[test]
fn recording_checked_again_has_the_same_ids_of_verdicts() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let specification = folder.file("levels.rondel", LEVELS);
    let recording = folder.file("drive.jsonl", MESSAGES);
    for more in [&[][..], &["--workers", "2"]] {
        let check = ["check", "--time-field", "t", "--store", &store, &specification, &recording];
        rondel([&check[..], more].concat()).expect_status(1);
    }
    let once = "SELECT p.name, v.parameters, count(*) AS checks, count(DISTINCT v.id) AS numbers FROM violations v \
                JOIN verdicts d ON d.seq = v.verdict JOIN properties p ON p.id = v.property \
                GROUP BY d.id, p.name ORDER BY p.name";
    let expected = "name,parameters,checks,numbers\r\nlow,{},2,2\r\nper_id,\"{\"\"id\"\":1}\",2,2\r\n";
    assert_eq!(rows(&store, once), expected);
    let ids =
        "SELECT count(*) AS verdicts, count(DISTINCT id) AS ids, sum(id IS NULL) AS without FROM verdicts";
    assert_eq!(rows(&store, ids), "verdicts,ids,without\r\n14,7,0\r\n");
}

/// A store that a killed run has left: without an end, its last sign an hour ago.
#[test]
fn run_without_an_end_is_named() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let recording = folder.file("v.jsonl", "{\"v\":true}\n");
    rondel(["check", "-f", "v", "--store", &store, &recording]).expect_status(0);
    let change = |sql: &str| Connection::open(&store).unwrap().execute_batch(sql).unwrap();
    let now = "CAST(strftime('%s', 'now') AS INTEGER) * 1000000000";
    change(&format!(
        "UPDATE series SET name = 'car'; UPDATE runs SET kind = 'run', end = NULL, reported = {now} - 3600000000000"
    ));
    let said = "the run of 'car' has not ended and has written nothing for 36";
    for view in ["state", "open_violations", "all_runs"] {
        rondel(["query", &store, view]).expect_status(0).expect_stderr(&[said, "it may have been killed"]);
    }
    change(&format!("UPDATE runs SET reported = {now} - 5000000000"));
    let silent = rondel(["query", &store, "state", "--series", "car"]);
    assert_eq!(silent.expect_status(0).stderr, "");
}

#[test]
fn query_without_an_end_is_ended() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let recording = folder.file("v.jsonl", "{\"v\":true}\n");
    rondel(["check", "-f", "v", "--store", &store, &recording]).expect_status(0);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let begun = Instant::now();
    rondel(["query", &store, "--sql", endless, "--timeout", "1"]).expect_status(3).expect_stderr(&[
        "the query has not ended within 1 s: choose fewer rows, or set another limit with --timeout",
    ]);
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    rondel(["query", &store, "--sql", endless, "--timeout", "200 ms"]).expect_status(3);
    rondel(["query", &store, "--sql", endless, "--timeout", "0.2"]).expect_status(3);
    for wrong in ["0", "25 h", "soon"] {
        rondel(["query", &store, "--sql", endless, "--timeout", wrong])
            .expect_status(2)
            .expect_stderr(&["must be a duration from 1 ms to 24 h, such as 2 s or 10 min"]);
    }
    let text = "SELECT 'a' || char(8238) || 'b' AS x";
    let finished = rondel(["query", &store, "--sql", text, "--format", "json"]);
    finished.expect_status(0).expect_stdout("{\"x\":\"a\\u202eb\"}\n");
    assert_eq!(rows(&store, text), "x\r\na\u{202e}b\r\n");
}

#[test]
fn store_without_room_ends_a_check_at_once() {
    let folder = Folder::new();
    let recording = folder.file("a.jsonl", "{\"v\":true}\n");
    let began = Instant::now();
    let mut check = Command::new("sh");
    // The largest file has one block.
    check.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\"", RONDEL]);
    check.args(["check", "-f", "v", "--store", &folder.path("verdicts.db"), &recording]);
    finish(&mut check, b"").expect_status(3).expect_stderr(&["verdicts.db"]);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn store_in_a_folder_that_is_not_writable_can_be_read() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("kept")).unwrap();
    let store = folder.path("kept/100%?.db");
    rondel_with_input(["check", "-f", "v", "--store", &store, "-"], b"{\"v\":true}\n").expect_status(0);
    let names = || fs::read_dir(folder.path("kept")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names().collect::<Vec<_>>(), ["100%?.db"], "the log is gone");
    let set = |mode| fs::set_permissions(folder.path("kept"), fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    assert_eq!(rows(&store, "SELECT count(*) AS runs FROM runs"), "runs\r\n1\r\n");
    set(0o755);
}

#[test]
fn wrong_queries_name_the_way_out() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    rondel_with_input(["check", "-f", "v", "--store", &store, "-"], b"{\"v\":true}\n").expect_status(0);
    for (more, words) in [
        (&["stat"][..], "possible values"),
        (&["all_runs", "--property", "p"], "has no property"),
        (&["time_in_violation", "--since", "1 h"], "has no times"),
        (&["state", "--since", "yesterday"], "a duration before now"),
        (&["all_violations", "--property", "unknown"], "no run of the store has the property 'unknown'"),
        (&["all_runs", "--series", "unknown"], "no run of the store has the series 'unknown'"),
        (&["--sql", "DELETE FROM verdicts"], "a query only reads"),
        (&["--property", "p"], "VIEW"),
    ] {
        let finished = rondel([&["query", store.as_str()][..], more].concat());
        finished.expect_status(2).expect_stderr(&[words]);
    }
}

#[test]
fn locked_store_is_reported_and_written_later() {
    let folder = Folder::new();
    let (endpoint, store) = (free_endpoint(), folder.path("verdicts.db"));
    let specification = folder.file("levels.rondel", LEVELS);
    let own = ["run", &specification, "--topic", "zenoh:demo/state", "--time-from", "t", "--store", &store];
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    let other = Connection::open(&store).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    publish(&endpoint);
    // Verdicts are published all the same.
    run.wait_stdout("violated");
    run.wait_stderr("another process holds its lock");
    other.execute_batch("COMMIT").unwrap();
    run.wait_stderr("accepts verdicts again");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["verdicts.db: 7 verdicts stored"]);
    assert_eq!(rows(&store, ROWS), EXPECTED);
}

#[test]
fn verdicts_not_stored_at_the_end_are_counted() {
    let folder = Folder::new();
    let (endpoint, store) = (free_endpoint(), folder.path("verdicts.db"));
    let run = run(&folder, &store, &endpoint);
    await_begin(&store);
    let other = Connection::open(&store).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    publish(&endpoint);
    run.finish().expect_status(5).expect_stderr(&["NOT stored"]);
    other.execute_batch("COMMIT").unwrap();
    // The next run finds that this one has no end.
    let endpoint = free_endpoint();
    let run = self::run(&folder, &store, &endpoint);
    publish(&endpoint);
    run.finish().expect_status(0);
    let status = "SELECT status, verdicts FROM runs ORDER BY id";
    assert_eq!(rows(&store, status), "status,verdicts\r\naborted,0\r\nfinished,7\r\n");
}

#[test]
fn two_runs_of_a_series_are_refused() {
    let folder = Folder::new();
    let (endpoint, store) = (free_endpoint(), folder.path("verdicts.db"));
    let first = run(&folder, &store, &endpoint);
    await_begin(&store);
    let specification = folder.path("levels.rondel");
    let second =
        ["run", &specification, "--topic", "zenoh:demo/state", "--time-from", "t", "--store", &store];
    rondel(second).expect_status(3).expect_stderr(&["another run of the series", "`series`"]);
    // Others may write at the same time.
    let recording = folder.file("a.jsonl", "{\"v\":true}\n");
    rondel(["check", "-f", "v", "--store", &store, &recording]).expect_status(0);
    publish(&endpoint);
    first.finish().expect_status(0);
    let kinds = "SELECT kind, verdicts FROM runs ORDER BY id";
    assert_eq!(rows(&store, kinds), "kind,verdicts\r\nrun,7\r\ncheck,1\r\n");
}

#[test]
fn sections_are_checked() {
    let start = "specification: vehicle.rondel\nzenoh: {}\n";
    accepted(
        &format!(
            "{start}store: {{ path: v.db, series: car, keep: {{ days: 30, size: 2 GiB }}, slow_consumer: drop, sync: true }}\n"
        ),
        &["v.db, series car, the last 30 days", "a full queue drops them", "every verdict has an id"],
    );
    accepted(&format!("{start}store: v.db\n"), &["verdicts in"]);
    let warned =
        accepted(&format!("{start}verdicts: {{ emit: violations }}\nstore: v.db\n"), &["verdicts in"]);
    assert!(warned.contains("4:8") && warned.contains("violations that never end"), "{warned}");
    accepted(
        &format!("{start}store: {{ path: v.db, spool: {{ directory: kept, limit: 1 MiB }} }}\n"),
        &["those that wait are kept in", "kept, up to 1 MiB"],
    );
    for (wrong, place, words) in [
        ("store: {}", "3:8", &["`store` needs a file"][..]),
        ("store: { path: v.db, keep: {} }", "3:28", &["`keep` needs `days` or `size`"]),
        ("store: { path: v.db, keep: { days: 0 } }", "3:36", &["`days`", "from 1 to 36500"]),
        ("store: { path: v.db, keep: { size: 1 TiB } }", "3:36", &["16384 GiB"]),
        ("store: { path: v.db, slow_consumer: never }", "3:37", &["drop, or a duration"]),
        ("store: { path: v.db, sync: 3 }", "3:28", &["true or false"]),
        ("store: { path: v.db, series: \"\" }", "3:30", &["must be a name"]),
        ("store: { path: v.db, days: 3 }", "3:22", &["write `keep`"]),
        (
            "store: { path: v.db, spool: { limit: 1 } }",
            "3:38",
            &["`limit` of `spool`", "from 1 KiB to 4 GiB"],
        ),
        ("store: vehicle.rondel", "3:8", &["the file of `specification`, too"]),
        ("store: v.db\naudit: ./v.db", "3:8", &["the file of `audit`, too"]),
        ("database: v.db", "3:1", &["write `store: verdicts.db`"]),
    ] {
        refused(&format!("{start}{wrong}\n"), &[(place, words)]);
    }
    validate(&format!("{start}store: none/v.db\n")).expect_status(3).expect_stderr(&["there is no folder"]);
    validate(&format!("{start}store: .\n")).expect_status(3).expect_stderr(&["it is a folder"]);
    assert!(!Path::new("v.db").exists());
}
