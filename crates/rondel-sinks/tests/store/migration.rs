//! A store of the version before is brought up to date.

use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::sqlite::{Cell, Filter, Reader, StoreErrorKind, VIEWS};
use rondel_sinks::{Begin, Entry};
use rusqlite::Connection;

use crate::support::{Folder, LIMIT, MIDNIGHT, SECOND, begin, open, query, verdict, view, write};

/// Writes a store as version 1 did: with two views of then, and a violation that ends before it begins.
fn version_1(folder: &Folder) {
    let connection = Connection::open(folder.store()).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    connection.execute_batch(include_str!("../../src/sqlite/schema.sql")).unwrap();
    let begin = MIDNIGHT + 10 * SECOND;
    connection
        .execute_batch(&format!(
            "CREATE VIEW open_violations AS SELECT id, property FROM violations WHERE end IS NULL;
             CREATE VIEW of_the_user AS SELECT id FROM open_violations;
             INSERT INTO series (id, name, latest) VALUES (1, 'car', {begin});
             INSERT INTO runs (id, key, series, kind, resumes, begin, specification, specification_hash, configuration,
                 configuration_hash, version, host, latest, reported)
                 VALUES (1, x'00000000000000000000000000000001', 1, 'run', 0, 5, '', '', '', '', '', '', {begin}, {begin});
             INSERT INTO properties (id, series, name) VALUES (1, 1, 'p'), (2, 1, 'q');
             INSERT INTO verdicts (seq, id, run, property, parameters, verdict, time, is_after, reported, lap)
                 VALUES (1, x'00000000000000000000000000000009', 1, 1, '{{}}', 1, {begin}, 0, {begin}, 1);
             INSERT INTO violations (id, property, parameters, run, lap, begin, last, count, since, unknown, verdict, recorded)
                 VALUES (1, 1, '{{}}', 1, 1, {begin}, {begin}, 1, {begin}, 0, 1, {begin});
             INSERT INTO violations (id, property, parameters, run, lap, begin, last, count, unknown, end, ended_by, verdict,
                 recorded) VALUES (2, 2, '{{}}', 1, 1, {begin}, {begin}, 1, 7, {MIDNIGHT}, 'satisfied', 1, {begin});
             PRAGMA user_version = 1; PRAGMA application_id = 1382966380;"
        ))
        .unwrap();
}

#[test]
fn store_of_version_1_is_brought_up_to_date() {
    let folder = Folder::new();
    version_1(&folder);
    let path = folder.store();
    let older = Reader::open(&path, LIMIT).unwrap_err();
    assert_eq!(older.kind, StoreErrorKind::Older);
    assert!(older.message.contains("has version 1, and this release reads version 2"), "{older}");
    let mut sink = open(&path);
    assert_eq!(query(&path, "PRAGMA user_version"), ["2"]);
    for known in VIEWS {
        view(&path, known.name, &Filter::default());
    }
    assert_eq!(query(&path, "SELECT * FROM of_the_user"), ["1"], "views of others stay");
    // The open violation continues.
    write(&mut sink, &[Entry::Begin(Box::new(Begin { resumes: true, ..begin(2, "car") }))]);
    write(
        &mut sink,
        &[Entry::Verdict(verdict(2, "p", Violated, 20)), Entry::Verdict(verdict(2, "p", Satisfied, 25))],
    );
    let shown = query(&path, "SELECT id, status, count, seconds FROM all_violations ORDER BY id");
    assert_eq!(shown, ["1,ended,2,5", "2,ended,1,0"], "the second one ended before it began");
    // A second time there is nothing to do.
    drop(sink);
    drop(open(&path));
    assert_eq!(query(&path, "SELECT count(*) FROM all_violations"), ["2"]);
}

#[test]
fn store_of_version_1_is_read_as_it_is() {
    let folder = Folder::new();
    version_1(&folder);
    let reader = Reader::open_earlier(&folder.store(), LIMIT).unwrap();
    assert_eq!(reader.version().unwrap(), 1);
    let named = |name: &str| {
        let sql = "SELECT v.id FROM violations v JOIN properties p ON p.id = v.property WHERE p.name = ?1";
        reader.select(sql, &[Cell::Text(name.to_owned())], 10).unwrap().rows
    };
    assert_eq!(named("p"), vec![vec![Cell::Integer(1)]]);
    assert!(named("p' OR 1 --").is_empty());
    let writes = reader.select("DELETE FROM verdicts WHERE seq = ?1", &[Cell::Integer(1)], 10).unwrap_err();
    assert_eq!(writes.kind, StoreErrorKind::Query);
    assert_eq!(Reader::open(&folder.store(), LIMIT).unwrap_err().kind, StoreErrorKind::Older);
}
