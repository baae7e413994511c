//! Sinks beside networks: the section `sinks:`, entries that wait in files, and sinks that are down.

use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process};
use rusqlite::Connection;

use super::store::{EXPECTED, LEVELS, MESSAGES, ROWS, await_begin, rows};
use super::support::network::{arguments, free_endpoint, zenoh};
use super::support::{Folder, rondel, rondel_with_input, start_rondel};
use super::{accepted, refused};

/// A run of the levels with these sections.
struct Run {
    process: Process,
    endpoint: String,
}

impl Run {
    fn start(folder: &Folder, sections: &str) -> Run {
        let endpoint = free_endpoint();
        folder.file("levels.rondel", LEVELS);
        let deployment = folder.file(
            "rondel.yaml",
            format!(
                "specification: levels.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
                 topics: {{ state: {{ source: zenoh:demo/state, time: t }} }}\n{sections}"
            ),
        );
        let mut process = start_rondel(["run", &deployment, "--format", "json"]);
        process.wait_stderr("ready");
        Run { process, endpoint }
    }

    /// Publishes the messages, and waits for their verdicts on standard output.
    fn publish(&mut self) {
        let publish = ["publish", "--to", "zenoh:demo/state", "--wait", "60"];
        let network = zenoh("client", &self.endpoint);
        rondel_with_input(arguments(&publish, &network), MESSAGES.as_bytes()).expect_status(0);
        self.process.take_stdout(7);
    }
}

/// Locks a store, until the connection commits.
fn lock(store: &str) -> Connection {
    let other = Connection::open(store).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// Runs without messages until the store has the verdicts of an earlier run, each once.
fn expect_written_later(folder: &Folder, store: &str, sections: &str) {
    let mut run = Run::start(folder, sections);
    let deadline = Instant::now() + LIMIT;
    while rows(store, ROWS) != EXPECTED {
        assert!(Instant::now() < deadline, "{}\n{}", rows(store, ROWS), run.process.all_stderr_so_far());
        std::thread::sleep(Duration::from_millis(50));
    }
    run.process.terminate();
    run.process.finish().expect_status(0).expect_stderr(&["of an earlier run wait in"]);
    assert_eq!(rows(store, ROWS), EXPECTED);
    let left = std::fs::read_dir(folder.path("kept")).unwrap().count();
    assert_eq!(left, 0, "the file is removed once its entries are written");
}

const SPOOLED: &str =
    "store: { path: verdicts.db, slow_consumer: 100 ms, spool: { directory: kept, limit: 1 MiB } }\n";

#[test]
fn verdicts_that_wait_at_the_end_are_written_once_by_the_next_run() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let mut run = Run::start(&folder, SPOOLED);
    await_begin(&store);
    let other = lock(&store);
    run.publish();
    run.process.terminate();
    let words = ["entries wait in", "and the next run writes them"];
    run.process.finish().expect_status(5).expect_stderr(&words);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(rows(&store, "SELECT count(*) AS verdicts FROM verdicts"), "verdicts\r\n0\r\n");
    expect_written_later(&folder, &store, SPOOLED);
    // The end of the first run comes before the begin of the second.
    let runs = "SELECT status, verdicts FROM runs ORDER BY id";
    assert_eq!(rows(&store, runs), "status,verdicts\r\nfinished,7\r\nfinished,0\r\n");
}

#[test]
fn verdicts_that_wait_are_written_once_after_a_kill() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let mut run = Run::start(&folder, SPOOLED);
    await_begin(&store);
    let other = lock(&store);
    run.publish();
    // Once the store has not accepted them for a while.
    run.process.wait_stderr("they are kept in");
    run.process.kill();
    drop(run);
    other.execute_batch("COMMIT").unwrap();
    expect_written_later(&folder, &store, SPOOLED);
    let runs = "SELECT verdicts FROM runs ORDER BY id";
    assert_eq!(rows(&store, runs), "verdicts\r\n7\r\n0\r\n");
}

#[test]
fn files_of_other_deployments_and_releases_are_named() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let mut run = Run::start(&folder, SPOOLED);
    await_begin(&store);
    let other = lock(&store);
    run.publish();
    run.process.terminate();
    run.process.finish().expect_status(5);
    other.execute_batch("COMMIT").unwrap();
    // Another series in the same folder leaves the file alone.
    let another = SPOOLED.replace("path:", "series: other, path:");
    let run = Run::start(&folder, &another);
    run.process.terminate();
    run.process.finish().expect_status(0).expect_stderr(&["holds verdicts of another deployment"]);
    assert_eq!(rows(&store, "SELECT count(*) AS verdicts FROM verdicts"), "verdicts\r\n0\r\n");
    expect_written_later(&folder, &store, SPOOLED);
}

#[test]
fn section_is_checked() {
    let start = "specification: vehicle.rondel\nzenoh: {}\n";
    for (wrong, place, words) in [
        ("sinks: []", "3:8", &["`sinks` needs an item"][..]),
        ("sinks:\n  - mysql: {}", "4:5", &["has no setting 'mysql'"]),
        ("webhook: {}", "3:1", &["write `sinks`"]),
        ("sink: {}", "3:1", &["`verdicts` for topics, or `sinks`"]),
    ] {
        refused(&format!("{start}{wrong}\n"), &[(place, words)]);
    }
    let hook =
        "sinks:\n  - webhook: { url: \"http://127.0.0.1:9/hook\" }\n    properties: slow\n    spool: true\n";
    if cfg!(feature = "webhook") {
        let words = ["webhook 127.0.0.1:9: verdicts on slow; those that wait are kept in"];
        accepted(&format!("{start}{hook}"), &words);
        let warned = accepted(
            &format!(
                "{start}verdicts: {{ emit: violations }}\nsinks:\n  - alertmanager: {{ url: \"http://127.0.0.1:9\" }}\n"
            ),
            &["every verdict has an id"],
        );
        assert!(warned.contains("never resolves an alert"), "{warned}");
    } else {
        refused(&format!("{start}{hook}"), &[("4:14", &["built without", "the feature `webhook`"])]);
    }
    // A recording is checked without them.
    let folder = Folder::new();
    folder.file("v.rondel", "topic a { v: bool }\nproperty p = a.v\n");
    let deployment = folder.file(
        "rondel.yaml",
        "specification: v.rondel\nzenoh: {}\ntopics: { a: zenoh:a }\n\
         sinks: [{ webhook: { url: \"http://127.0.0.1:9\", secret_env: RONDEL_UNSET } }]\n",
    );
    rondel(["check", &deployment, &folder.file("a.jsonl", "{\"v\":true}\n")]).expect_status(0);
}

#[cfg(feature = "webhook")]
#[test]
fn sink_that_is_down_holds_up_no_other() {
    let folder = Folder::new();
    let store = folder.path("verdicts.db");
    let port = rondel_testkit::free_port();
    let sections = format!(
        "store: verdicts.db\nsinks:\n  - webhook: {{ url: \"http://127.0.0.1:{port}/hook\" }}\n    name: hook\n"
    );
    let mut run = Run::start(&folder, &sections);
    run.publish();
    let deadline = Instant::now() + LIMIT;
    while rows(&store, ROWS) != EXPECTED {
        assert!(Instant::now() < deadline, "{}", run.process.all_stderr_so_far());
        std::thread::sleep(Duration::from_millis(50));
    }
    run.process.terminate();
    let words = ["verdicts.db: 7 verdicts stored", "hook: 0 verdicts written", "NOT written"];
    run.process.finish().expect_status(5).expect_stderr(&words);
    assert_eq!(rows(&store, ROWS), EXPECTED);
}
