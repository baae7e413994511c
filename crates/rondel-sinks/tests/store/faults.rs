//! Files that cannot be used, or not now.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::sqlite::{Reader, Retention, SqliteSink, StoreError, StoreErrorKind, StoreOptions};
use rondel_sinks::{Entry, FailureKind, Sink};
use rusqlite::Connection;

use crate::support::{Folder, LIMIT, begin, open, query, verdict, write};

fn opened(path: &Path) -> Result<(), StoreError> {
    SqliteSink::open(path, StoreOptions::default()).map(drop)
}

fn batch(from: i64, count: i64) -> Vec<Entry<'static>> {
    (from..from + count)
        .map(|i| Entry::Verdict(verdict(1, "p", if i % 2 == 0 { Violated } else { Satisfied }, i)))
        .collect()
}

#[test]
fn store_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    let path = folder.store();
    drop(open(&path));
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    for error in [opened(&path).unwrap_err(), Reader::open(&path, LIMIT).map(drop).unwrap_err()] {
        assert_eq!(error.kind, StoreErrorKind::Newer);
        assert!(error.message.contains("has version 99, and this release knows versions up to 2"), "{error}");
    }
    let mut sink = SqliteSink::new(&path, StoreOptions::default());
    assert_eq!(sink.write(&batch(0, 1), LIMIT).unwrap_err().kind, FailureKind::Broken);
    connection.pragma_update(None, "user_version", 0).unwrap();
    assert_eq!(Reader::open(&path, LIMIT).map(drop).unwrap_err().kind, StoreErrorKind::Older);
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = Folder::new();
    let other = folder.0.join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE a (x)").unwrap();
    let text = folder.0.join("text.db");
    fs::write(&text, "no database at all, but long enough to be taken for one ".repeat(20)).unwrap();
    for path in [&other, &text] {
        let before = fs::read(path).unwrap();
        let error = opened(path).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::NotAStore, "{error}");
        assert!(error.message.contains("choose another file"), "{error}");
        assert_eq!(fs::read(path).unwrap(), before);
    }
    let error = opened(&folder.0.join("none/verdicts.db")).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::CannotOpen);
    assert!(error.message.contains("check that its folder exists"), "{error}");
    assert!(opened(&folder.0).unwrap_err().message.contains("it is a folder"));
    // An empty file becomes a store.
    fs::write(folder.store(), "").unwrap();
    opened(&folder.store()).unwrap();
}

#[test]
fn locked_store_is_tried_again() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let failure = sink.write(&batch(0, 5), Duration::ZERO).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("another process holds its lock"), "{failure}");
    // The other one writes a violation of the same property meanwhile.
    other.execute_batch("UPDATE series SET latest = 5; COMMIT").unwrap();
    assert_eq!(write(&mut sink, &batch(0, 5)).stored, 5);
}

#[test]
fn changes_of_others_are_seen() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &batch(0, 1));
    // Somebody ends the violation by hand.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("UPDATE violations SET end = last, ended_by = 'satisfied', since = NULL").unwrap();
    write(&mut sink, &batch(2, 1));
    assert_eq!(query(&path, "SELECT count, end IS NULL FROM violations ORDER BY id"), ["1,0", "1,1"]);
}

#[test]
fn locked_store_is_waited_for_as_long_as_set() {
    let folder = Folder::new();
    let path = folder.store();
    open(&path).close(LIMIT).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    let refused = SqliteSink::open_within(&path, StoreOptions::default(), Duration::from_millis(50));
    assert_eq!(refused.map(drop).unwrap_err().kind, StoreErrorKind::Busy);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn full_store_keeps_what_it_has_and_continues() {
    let folder = Folder::new();
    let path = folder.store();
    let retention = Retention { age: None, bytes: Some(1 << 20) };
    let options = StoreOptions { hard_limit: Some(2 << 20), ..StoreOptions::default() };
    let mut sink = SqliteSink::open(&path, options.clone()).unwrap();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    let mut stored = 0;
    let failure = loop {
        match sink.write(&batch(stored, 1000), LIMIT) {
            Ok(written) => stored += written.stored as i64,
            Err(failure) => break failure,
        }
        assert!(stored < 1_000_000);
    };
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("full; free space on its disk"), "{failure}");
    assert!(stored > 3000);
    let count = || query(&path, "SELECT count(*) FROM verdicts")[0].parse::<i64>().unwrap();
    assert_eq!(count(), stored, "all of a batch or nothing");
    // With a retention by size there is room again.
    drop(sink);
    let mut sink = SqliteSink::open(&path, StoreOptions { retention, ..options }).unwrap();
    while sink.maintain(0, LIMIT).unwrap() {}
    assert_eq!(write(&mut sink, &batch(stored, 1000)).stored, 1000);
    assert_eq!(query(&path, "PRAGMA integrity_check"), ["ok"]);
}

#[test]
fn damaged_store_is_named() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &batch(0, 5000));
    sink.close(LIMIT).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page.fill(0xa5);
    }
    fs::write(&path, bytes).unwrap();
    let mut sink = SqliteSink::new(&path, StoreOptions::default());
    let failure = sink.write(&batch(5000, 5), LIMIT).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Broken, "{failure}");
    assert!(failure.message.contains("move it away") && failure.message.contains("verdicts.db"), "{failure}");
}

#[test]
fn removed_file_is_replaced() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &batch(0, 5));
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(folder.0.join(format!("verdicts.db{end}"))).unwrap();
    }
    let failure = sink.write(&batch(5, 5), LIMIT).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("was removed or replaced"), "{failure}");
    assert_eq!(write(&mut sink, &batch(5, 5)).stored, 5);
    let run = query(&path, "SELECT series, host FROM all_runs");
    assert_eq!(run, ["car,car"], "with the begin of the run");
}

/// The log of the store must not be applied to the other file.
#[test]
fn database_of_another_program_in_place_of_the_store_is_left_as_it_is() {
    let folder = Folder::new();
    let path = folder.store();
    let mut sink = open(&path);
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &batch(0, 500));
    let other = folder.0.join("other.db");
    let connection = rusqlite::Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE foo(x); INSERT INTO foo VALUES('precious')").unwrap();
    connection.close().unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(sink.write(&batch(500, 5), LIMIT).unwrap_err().kind, FailureKind::Unavailable);
    let refused = sink.write(&batch(500, 5), LIMIT).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Broken, "{refused}");
    drop(sink);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let found: String = connection.query_row("SELECT x FROM foo", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "precious");
}

#[cfg(unix)]
#[test]
fn file_that_cannot_be_written_is_tried_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.store();
    drop(open(&path));
    let set = |mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(mode | 0o111)).unwrap();
    };
    set(0o444);
    if fs::File::options().append(true).open(&path).is_ok() {
        // The superuser may write everything. The unit tests of the errors cover the message.
        set(0o755);
        return;
    }
    let mut sink = SqliteSink::new(&path, StoreOptions::default());
    let failure = sink.write(&batch(0, 1), LIMIT).unwrap_err();
    set(0o755);
    assert_eq!(failure.kind, FailureKind::Unavailable, "{failure}");
    assert!(failure.message.contains("make the file and its folder writable"), "{failure}");
    assert_eq!(write(&mut sink, &batch(0, 1)).stored, 1);
}
