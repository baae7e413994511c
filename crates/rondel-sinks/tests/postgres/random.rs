//! Random entries in both databases: equal rows in all views. `RONDEL_SEED=17` runs one seed alone; a seed that fails is
//! kept.

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::{Begin, End, Entry, Loss, Reached, RunKey, RunKind, Sink, VerdictEntry};
use rondel_testkit::Random;

use crate::server::{Server, write};
use crate::support::{self, Folder, MIDNIGHT, SECOND, begin, verdict};

/// State of the run that the entries are of.
struct Live {
    run: u128,
    lap: u32,
    time: i64,
}

/// The columns of each view that are compared. Numbers of rows are counted, as transactions of PostgreSQL that are repeated
/// leave gaps, and runs of one batch may be inserted in another order.
const VIEWS: [(&str, &str); 9] = [
    (
        "state",
        "series, property, severity, parameters, verdict, since, latest, is_observed, \
         (SELECT count(*) FROM all_violations o WHERE o.id <= violation), time_ns, since_ns",
    ),
    (
        "all_violations",
        "row_number() OVER (ORDER BY id), series, property, severity, parameters, status, begin, last, \"end\", ended_by, count, seconds, worst, \
         because_of, time_ns, end_ns",
    ),
    (
        "open_violations",
        "(SELECT count(*) FROM all_violations o WHERE o.id <= open_violations.id), series, property, severity, parameters, \
         status, begin, last, count, worst, because_of, time_ns",
    ),
    (
        "violations_per_day",
        "series, property, severity, day, violations, recoveries, violated_seconds, verdicts, time_ns",
    ),
    ("time_in_violation", "series, property, severity, violations, open, seconds"),
    ("time_to_recovery", "series, property, severity, recoveries, mean_seconds, longest_seconds"),
    (
        "all_verdicts",
        "row_number() OVER (ORDER BY seq), id, series, property, severity, parameters, verdict, time, about, reported, \
         lap, step, robustness, quantified, explanation, latency, missing, because_of, \
         (SELECT series FROM all_runs o WHERE o.id = run), time_ns, about_ns, reported_ns",
    ),
    (
        "all_runs",
        "series, kind, begin, \"end\", status, specification, specification_hash, configuration, version, host, \
         verdicts, repeated, reported, time_ns",
    ),
    (
        "all_losses",
        "row_number() OVER (ORDER BY id), series, (SELECT series FROM all_runs o WHERE o.id = run), reason, subject, \
         count, \"from\", until, time_ns",
    ),
];

fn happens(random: &mut Random, percent: u64) -> bool {
    random.below(100) < percent
}

fn entries(random: &mut Random, count: usize) -> Vec<Entry<'static>> {
    let mut all: Vec<Entry<'static>> = Vec::new();
    let mut live = Live { run: 1, lap: 1, time: 0 };
    while all.len() < count {
        match random.below(100) {
            0 | 1 => {
                if happens(random, 60) {
                    let status = random.pick(&["finished", ""]);
                    let end = MIDNIGHT + live.time * SECOND;
                    all.push(Entry::End(End { run: RunKey(live.run), end, status }));
                }
                live = Live { run: live.run + 1, lap: 1, time: live.time };
                if happens(random, 90) {
                    let kind = random.pick(&[RunKind::Live, RunKind::Check]);
                    let resumes = happens(random, 40);
                    let series = random.pick(&["car", "truck", ""]);
                    all.push(Entry::Begin(Box::new(Begin { kind, resumes, ..begin(live.run, series) })));
                }
            }
            2 => {
                let (from, until) = (MIDNIGHT, MIDNIGHT + live.time * SECOND);
                let loss =
                    Loss { run: RunKey(live.run), reason: "late", subject: "gear", count: 3, from, until };
                all.push(Entry::Loss(loss));
            }
            3 => {
                let time = MIDNIGHT + (live.time + random.below(9) as i64 - 3) * SECOND;
                all.push(Entry::Reached(Reached { run: RunKey(live.run), time, reported: time + SECOND }));
            }
            4 => (live.lap, live.time) = (live.lap + 1, live.time - random.below(50) as i64),
            // An earlier entry again, also of another run.
            5..=9 => {
                let back = random.below(all.len().max(1) as u64) as usize;
                if let Some(Entry::Verdict(again)) = all.get(back) {
                    all.push(Entry::Verdict(VerdictEntry { run: RunKey(live.run), ..again.clone() }));
                }
            }
            _ => all.push(Entry::Verdict(one(random, &mut live))),
        }
    }
    all
}

fn one(random: &mut Random, live: &mut Live) -> VerdictEntry<'static> {
    let step = random.pick(&[0, 1, 1, 2, 9, 40_000]);
    live.time += step;
    let truth = random.pick(&[Violated, Violated, Satisfied, Satisfied, Inconclusive]);
    // `r` is in no begin.
    let property = random.pick(&["p", "p", "q", "r"]);
    let parameters = random.pick(&["", "", r#"{"robot":1}"#, r#"{"robot":2}"#, r#"{"robot":2.0}"#]);
    let plain = verdict(live.run, property, truth, live.time);
    let id = plain.id.map(|id| id ^ u128::from(parameters.len() as u8) << 100 ^ u128::from(live.lap) << 110);
    VerdictEntry {
        id: id.filter(|_| happens(random, 95)),
        parameters,
        about: happens(random, 20).then(|| plain.time - random.below(20) as i64 * SECOND),
        is_after: happens(random, 20),
        lap: live.lap,
        robustness: random.pick(&[None, Some(-1.5), Some(2.0), Some(f64::NAN)]),
        values: random.pick(&["", r#"{"i":3}"#]),
        explanation: random.pick(&["", r#"[{"time":1}]"#]),
        latency: random.pick(&[None, Some(5_000_000)]),
        missing: random.pick(&["", "", "", "", "", "", "gear"]),
        because_of: random.pick(&["", "", "q"]),
        ..plain
    }
}

/// A cell in one form, from either database.
fn normal(cell: &str) -> String {
    if let Ok(number) = cell.parse::<f64>() {
        return format!("{number:.9e}");
    }
    if cell.starts_with(['{', '[']) {
        return serde_json::from_str::<serde_json::Value>(cell).unwrap().to_string();
    }
    match cell {
        "t" => normal("1"),
        "f" => normal("0"),
        // 2026-11-29 00:00:05+00 as 2026-11-29T00:00:05.000Z, and a UUID as its digits.
        _ if cell.len() == 22 && cell.ends_with("+00") => format!("{}T{}.000Z", &cell[..10], &cell[11..19]),
        _ if cell.len() == 36 && cell.matches('-').count() == 4 => normal(&cell.replace('-', "")),
        _ => cell.to_owned(),
    }
}

fn compare(server: &Server, seed: u64) {
    let mut random = Random::new(seed);
    let folder = Folder::new();
    let path = folder.store();
    server.query("DROP SCHEMA IF EXISTS rondel CASCADE; SET timezone = 'UTC'");
    let (mut file, mut database) = (support::open(&path), server.sink());
    let count = 50 + random.below(400) as usize;
    let all = entries(&mut random, count);
    let mut rest = &all[..];
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(1 + random.below(60.min(rest.len() as u64)) as usize);
        assert_eq!(support::write(&mut file, batch), write(&mut database, batch));
        if happens(&mut random, 5) {
            database.close(support::LIMIT).unwrap();
            database = server.sink();
        }
        rest = after;
    }
    let reader = rondel_sinks::sqlite::Reader::open(&path, support::LIMIT).unwrap();
    for (view, columns) in VIEWS {
        let sql = format!("SELECT {columns} FROM {view}");
        let of_file = reader.sql(&sql, usize::MAX).unwrap().rows;
        let of_file = of_file.iter().map(|row| row.iter().map(|cell| normal(&shown(cell))).collect());
        let mut of_file: Vec<Vec<String>> = of_file.collect();
        let of_server = server.rows("postgres", &format!("SET timezone = 'UTC'; {sql}")).unwrap();
        let of_server = of_server.iter().map(|row| row.iter().map(|cell| normal(cell)).collect());
        let mut of_server: Vec<Vec<String>> = of_server.collect();
        of_file.sort();
        of_server.sort();
        for (left, right) in of_file.iter().zip(&of_server) {
            assert_eq!(left, right, "{view}");
        }
        assert_eq!(of_file.len(), of_server.len(), "{view}");
    }
}

fn shown(cell: &rondel_sinks::sqlite::Cell) -> String {
    use rondel_sinks::sqlite::Cell;
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
    }
}

#[test]
fn both_databases_have_equal_rows() {
    let server = Server::start();
    for seed in rondel_testkit::fresh_seeds("postgres-both_databases_have_equal_rows", 20) {
        compare(&server, seed);
    }
}
