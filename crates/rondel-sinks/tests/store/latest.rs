//! The latest violations of a store that has many.

use rondel_sinks::Entry;
use rondel_sinks::sqlite::{Filter, Reader};
use rusqlite::Connection;

use crate::support::{Folder, LIMIT, MIDNIGHT, SECOND, begin, open, write};

/// A store with 60,000 violations of `p`, one a second, and ten of `q` among the first ones, of which SQLite has statistics; and
/// with more properties than one statement merges.
fn store(folder: &Folder) {
    let mut sink = open(&folder.store());
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car"))), Entry::Begin(Box::new(begin(2, "truck")))]);
    drop(sink);
    let connection = Connection::open(folder.store()).unwrap();
    let sql = format!(
        "INSERT INTO violations (property, parameters, run, lap, begin, last, count, unknown, end, ended_by, verdict, recorded)
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)
         SELECT (SELECT p.id FROM properties p JOIN series s ON s.id = p.series
                 WHERE s.name = 'car' AND p.name = CASE WHEN i % 100 = 7 AND i < 1000 THEN 'q' ELSE 'p' END),
                '{{}}', 1, 1, {MIDNIGHT} + i * {SECOND}, {MIDNIGHT}, 1, 0, {MIDNIGHT} + (i + 1) * {SECOND}, 'satisfied', 0,
                {MIDNIGHT} FROM n;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 899)
         INSERT INTO properties (series, name) SELECT s.id, 'r' || i FROM n, series s WHERE s.name = 'car'; ANALYZE"
    );
    connection.execute_batch(&sql).unwrap();
}

/// The ids of at most `limit` rows of the view, and whether there are more.
fn ids(folder: &Folder, filter: &Filter<'_>, limit: usize) -> (Vec<String>, bool) {
    let rows = Reader::open(&folder.store(), LIMIT).unwrap().view("all_violations", filter, limit).unwrap();
    let has_more = rows.has_more;
    let ids = rows.rows.iter().map(|row| format!("{:?}", row[0])).collect();
    (ids, has_more)
}

#[test]
fn filters_choose_the_latest_violations() {
    let folder = Folder::new();
    store(&folder);
    let after = |seconds: i64| Some(MIDNIGHT + seconds * SECOND);
    let cases = [
        (Filter::default(), "TRUE"),
        (Filter { property: Some("p"), ..Filter::default() }, "property = 'p'"),
        (Filter { property: Some("q"), ..Filter::default() }, "property = 'q'"),
        (Filter { series: Some("car"), ..Filter::default() }, "series = 'car'"),
        (Filter { series: Some("truck"), ..Filter::default() }, "series = 'truck'"),
        (Filter { since: after(59_950), ..Filter::default() }, "time_ns >= since_of(59950)"),
        (Filter { until: after(120), ..Filter::default() }, "time_ns < since_of(120)"),
        (Filter { until: after(55_000), ..Filter::default() }, "time_ns < since_of(55000)"),
        (Filter { property: Some("r7"), until: after(55_000), ..Filter::default() }, "property = 'r7'"),
        (Filter { property: Some("unknown"), until: after(55_000), ..Filter::default() }, "FALSE"),
        (
            Filter { since: after(10), until: after(55_000), ..Filter::default() },
            "time_ns >= since_of(10) AND time_ns < since_of(55000)",
        ),
        (
            Filter { series: Some("car"), property: Some("q"), since: after(300), until: after(900) },
            "series = 'car' AND property = 'q' AND time_ns >= since_of(300) AND time_ns < since_of(900)",
        ),
    ];
    for (filter, condition) in cases {
        let condition = condition.replace("since_of", &format!("{MIDNIGHT} + {SECOND} * "));
        let sql = format!("SELECT id FROM all_violations WHERE {condition} ORDER BY id DESC");
        let all = Reader::open(&folder.store(), LIMIT).unwrap().sql(&sql, usize::MAX).unwrap();
        let all: Vec<String> = all.rows.iter().map(|row| format!("{:?}", row[0])).collect();
        for limit in [1, 10, 1000, usize::MAX] {
            let (found, has_more) = ids(&folder, &filter, limit);
            assert_eq!(found, all[..all.len().min(limit)], "{condition} {limit}");
            assert_eq!(has_more, all.len() > limit, "{condition} {limit}");
        }
    }
}

/// Of those before a time, the ones that began last, though another one was stored later.
#[test]
fn violations_before_a_time_are_chosen_by_their_begin() {
    let folder = Folder::new();
    store(&folder);
    let connection = Connection::open(folder.store()).unwrap();
    let late = format!(
        "INSERT INTO violations (property, parameters, run, lap, begin, last, count, unknown, verdict, recorded)
         SELECT property, parameters, 1, 1, {MIDNIGHT} + 50 * {SECOND}, {MIDNIGHT}, 1, 0, 0, {MIDNIGHT} FROM violations
         WHERE id = 1"
    );
    connection.execute_batch(&late).unwrap();
    let before = |seconds: i64| Filter { until: Some(MIDNIGHT + seconds * SECOND), ..Filter::default() };
    // Row 101 began at 100 s, row 60,001 at 50 s.
    assert_eq!(ids(&folder, &before(101), 1), (vec!["Integer(101)".to_owned()], true));
    assert_eq!(ids(&folder, &before(51), 1), (vec!["Integer(60001)".to_owned()], true));
    assert_eq!(ids(&folder, &before(0), 1), (Vec::new(), false));
}
