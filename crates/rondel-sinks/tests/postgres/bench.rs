//! Verdicts per second.
//!
//! `RONDEL_BENCH_VERDICTS=2000000 cargo test --release -p rondel-sinks --features postgres --test postgres -- --ignored bench --nocapture`

use std::time::{Duration, Instant};

use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
use rondel_sinks::{Begin, Entry, PropertyEntry, Sink, Truth, VerdictEntry};

use crate::server::Server;
use crate::support::{MIDNIGHT, begin, verdict};

const PROPERTIES: usize = 300;
const INSTANCES: usize = 20;
const BATCH: usize = 1 << 14;
const LIMIT: Duration = Duration::from_secs(60);

/// Processor time in seconds of this process, and of the session of the server: on a busy machine it varies less than the
/// time that passes.
struct Ticks {
    client: f64,
    session: f64,
}

impl Ticks {
    fn now(server: &Server) -> Ticks {
        let of = |process: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
            let (_, numbers) = stat.rsplit_once(')').unwrap();
            // In units of 10 ms: user and system time.
            numbers
                .split_whitespace()
                .skip(11)
                .take(2)
                .map(|ticks| ticks.parse::<f64>().unwrap())
                .sum::<f64>()
                / 100.0
        };
        let session = server.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'rondel'");
        Ticks { client: of("self"), session: of(&session[0]) }
    }
}

/// 300 properties with 20 instances each. One verdict in `period` of an instance is violated.
#[test]
#[ignore = "a measurement"]
fn bench() {
    let count = std::env::var("RONDEL_BENCH_VERDICTS").map_or(500_000, |count| count.parse().unwrap());
    let names: Vec<String> = (0..PROPERTIES).map(|i| format!("brakes_within_{i}_ms")).collect();
    let keys: Vec<String> = (0..INSTANCES).map(|i| format!("{{\"robot\":{i}}}")).collect();
    let server = Server::start_with(&["shared_buffers=512MB", "max_wal_size=4GB"]);
    for period in [2, 10] {
        server.query("DROP SCHEMA IF EXISTS rondel CASCADE");
        let keep = Some(Duration::from_secs(1));
        let mut sink = PostgresSink::new(PostgresOptions { keep, ..server.options() }).unwrap();
        let properties =
            names.iter().map(|name| PropertyEntry { name, ..PropertyEntry::default() }).collect();
        let begin = Entry::Begin(Box::new(Begin { properties, ..begin(1, "car") }));
        sink.write(&[begin], LIMIT).unwrap();
        let one = |i: usize| {
            let turn = i / (PROPERTIES * INSTANCES);
            let mix = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            VerdictEntry {
                id: Some(u128::from(mix ^ mix >> 31) << 64 | i as u128),
                property: "",
                time: MIDNIGHT + i as i64 * 1000,
                reported: MIDNIGHT + i as i64 * 1000,
                robustness: Some(i as f64),
                ..verdict(
                    1,
                    "p",
                    if turn.is_multiple_of(period) { Truth::Violated } else { Truth::Satisfied },
                    i as i64,
                )
            }
        };
        let (begun, ticks) = (Instant::now(), Ticks::now(&server));
        for first in (0..count).step_by(BATCH) {
            let all = first..count.min(first + BATCH);
            let batch: Vec<Entry<'_>> = all
                .map(|i| {
                    let (property, key) = (i * 7 % PROPERTIES, i / PROPERTIES % INSTANCES);
                    Entry::Verdict(VerdictEntry {
                        property: &names[property],
                        parameters: &keys[key],
                        ..one(i)
                    })
                })
                .collect();
            sink.write(&batch, LIMIT).unwrap();
        }
        let elapsed = begun.elapsed();
        let (client, session) = (ticks.client, ticks.session);
        let ticks = Ticks::now(&server);
        let rate = |seconds: f64| count as f64 / seconds;
        println!("one of {period} violated: {:.0} verdicts/s", rate(elapsed.as_secs_f64()));
        println!("  by processor time of this process: {:.0} verdicts/s", rate(ticks.client - client));
        println!(
            "  by processor time of the session of the server: {:.0} verdicts/s",
            rate(ticks.session - session)
        );
        println!("  {}", server.query("SELECT pg_size_pretty(sum(pg_total_relation_size(c.oid))) FROM pg_class c WHERE relnamespace = 'rondel'::regnamespace AND relkind = 'r'")[0]);
        for view in rondel_sinks::sqlite::VIEWS {
            let begun = Instant::now();
            let time = if view.name == "all_verdicts" { " ORDER BY time_ns DESC" } else { "" };
            server.query(&format!("SELECT * FROM {}{time} LIMIT 1000", view.name));
            println!("  {}: {:.1?}", view.name, begun.elapsed());
        }
        let (begun, mut calls) = (Instant::now(), 0);
        while sink.maintain(i64::MAX, Duration::from_millis(100)).unwrap() {
            calls += 1;
        }
        println!("  removed in {:.1?}, {calls} calls", begun.elapsed());
    }
}
