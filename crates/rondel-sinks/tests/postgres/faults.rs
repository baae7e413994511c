//! Servers that refuse, are slow, or are not there.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
use rondel_sinks::{Entry, Failure, FailureKind, Sink, Written};
use rondel_testkit::{free_port, wait_until};

use crate::server::{Server, write};
use crate::support::{LIMIT, begin, verdict};

const SHORT: Duration = Duration::from_millis(400);

fn batch(from: i64, count: i64) -> Vec<Entry<'static>> {
    (from..from + count)
        .map(|i| Entry::Verdict(verdict(1, "p", if i % 2 == 0 { Violated } else { Satisfied }, i)))
        .collect()
}

/// The failure of a write by a new sink.
fn refused(options: PostgresOptions) -> Failure {
    let begun = Instant::now();
    let failure = PostgresSink::new(options).unwrap().write(&batch(0, 1), LIMIT).unwrap_err();
    assert!(begun.elapsed() < LIMIT, "{failure}");
    failure
}

fn expect(failure: &Failure, kind: FailureKind, parts: &[&str]) {
    assert_eq!(failure.kind, kind, "{failure}");
    for part in parts {
        assert!(failure.message.contains(part), "{failure}");
    }
    assert!(!failure.message.contains("secret"), "{failure}");
}

#[test]
fn refusals_name_the_way_out() {
    use FailureKind::{Broken, Unavailable};
    let server = Server::start();
    let url = |url: &str| PostgresOptions { url: url.to_owned(), ..server.options() };
    let wrong = PostgresOptions { password: Some("secret2".to_owned()), ..server.options() };
    let place = format!("127.0.0.1:{}/postgres", server.port());
    expect(&refused(wrong), Unavailable, &[&place, "28P01", "set the password"]);
    let none = PostgresOptions { password: None, ..server.options() };
    expect(&refused(none), Unavailable, &["password missing", "set a password"]);
    expect(&refused(url(&server.url("none"))), Unavailable, &["3D000", "create the database"]);
    let free = free_port();
    let absent = refused(url(&format!("postgresql://admin@127.0.0.1:{free}/x")));
    expect(&absent, Unavailable, &["Connection refused", "check that the server runs"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("postgresql://admin@{}/x", silent.local_addr().unwrap());
    let mut sink = PostgresSink::new(url(&silent_url)).unwrap();
    let begun = Instant::now();
    let failure = sink.write(&batch(0, 1), SHORT).unwrap_err();
    assert!(begun.elapsed() < LIMIT);
    expect(&failure, Unavailable, &["no answer within 0.4 s"]);

    server.query("CREATE SCHEMA rondel; CREATE TABLE rondel.other (x integer)");
    expect(&refused(server.options()), Broken, &["tables of another program", "?schema=NAME"]);
    let mut sink = PostgresSink::new(url(&format!("{}?schema=tests", server.url("postgres")))).unwrap();
    write(&mut sink, &batch(0, 3));
    assert_eq!(server.query("SELECT count(*) FROM tests.all_verdicts"), ["3"]);
    server.query("DROP SCHEMA rondel CASCADE");
    write(&mut server.sink(), &batch(0, 3));
    server.query("UPDATE schema_version SET version = 99");
    expect(&refused(server.options()), Broken, &["has version 99, and this release knows versions up to 1"]);
}

/// The grants of docs/reference/store-postgres.md suffice.
#[test]
fn rights_of_roles() {
    let server = Server::start();
    server
        .query("CREATE ROLE car LOGIN PASSWORD 'secret'; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC");
    let url = format!("postgresql://car@127.0.0.1:{}/postgres", server.port());
    let car = || PostgresOptions { url: url.clone(), ..server.options() };
    let advice =
        ["permission denied for database postgres (SQLSTATE 42501)", "docs/reference/store-postgres.md"];
    expect(&refused(car()), FailureKind::Unavailable, &advice);
    write(&mut server.sink(), &batch(0, 3));
    expect(&refused(car()), FailureKind::Unavailable, &["no right to it"]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/store-postgres.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, grants) = page.split_once("<!-- grants of a writer -->\n\n```sql\n").unwrap();
    let (grants, _) = grants.split_once("```").unwrap();
    server.query(&grants.replace("verdicts TO", "postgres TO"));
    let mut sink = PostgresSink::new(PostgresOptions { keep: Some(LIMIT), ..car() }).unwrap();
    assert_eq!(write(&mut sink, &batch(3, 5)).stored, 5);
    while sink.maintain(i64::MAX, LIMIT).unwrap() {}
    assert_eq!(server.query("SELECT count(*) FROM verdicts"), ["0"]);
}

#[test]
fn schema_is_made_once() {
    let server = Server::start();
    thread::scope(|scope| {
        for i in 0..6 {
            let mut sink = server.sink();
            scope.spawn(move || {
                let series = ["a", "b", "c", "d", "e", "f"][i];
                write(&mut sink, &[Entry::Begin(Box::new(begin(i as u128, series)))]);
            });
        }
    });
    assert_eq!(server.query("SELECT count(*), (SELECT version FROM schema_version) FROM runs"), ["6,1"]);
}

#[test]
fn lock_of_others_is_waited_for_and_interrupted() {
    let server = Server::start();
    let mut sink = server.sink();
    write(&mut sink, &batch(0, 1));
    let holds = "SELECT 1 FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation = 'runs'::regclass";
    thread::scope(|scope| {
        let lock = "BEGIN; LOCK TABLE runs IN EXCLUSIVE MODE; SELECT pg_sleep(20); COMMIT";
        let holder = scope.spawn(|| server.try_query("postgres", lock));
        wait_until("the lock is held", || !server.query(holds).is_empty());
        let begun = Instant::now();
        let failure = sink.write(&batch(1, 5), SHORT).unwrap_err();
        assert!(begun.elapsed() < LIMIT);
        expect(&failure, FailureKind::Unavailable, &["55P03", "another session holds a lock"]);
        // The same from another thread, long before the limit.
        let interrupt = sink.interrupter().unwrap();
        let waits =
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rondel' AND wait_event_type = 'Lock'";
        let interrupter = scope.spawn({
            let server = &server;
            move || {
                wait_until("the sink waits", || !server.query(waits).is_empty());
                interrupt();
            }
        });
        let failure = sink.write(&batch(1, 5), Duration::from_secs(15)).unwrap_err();
        interrupter.join().unwrap();
        expect(&failure, FailureKind::Unavailable, &["was interrupted"]);
        // The server notices the end of the interrupted connection only once it has the lock.
        let terminate = waits.replace("SELECT 1", "SELECT pg_terminate_backend(pid)");
        wait_until("the interrupted session has ended", || server.query(&terminate).is_empty());
        // An administrator ends the session in the middle of a statement.
        let terminator = scope.spawn({
            let server = &server;
            move || {
                wait_until("the sink waits", || !server.query(waits).is_empty());
                server.query(&terminate);
            }
        });
        let failure = sink.write(&batch(1, 5), Duration::from_secs(15)).unwrap_err();
        terminator.join().unwrap();
        expect(&failure, FailureKind::Unavailable, &["57P01", "an administrator ended the connection"]);
        server.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(20)%' \
                      AND pid != pg_backend_pid()",
        );
        assert!(holder.join().unwrap().is_err());
    });
    assert_eq!(write(&mut sink, &batch(1, 5)).stored, 5);
    // Ended between two calls, it is opened again by the next.
    server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rondel'");
    wait_until("the session has ended", || {
        server.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'rondel'").is_empty()
    });
    assert_eq!(write(&mut sink, &batch(6, 5)).stored, 5);
}

/// The server reports a full disk as this trigger does.
#[test]
fn full_disk_and_read_only_server_are_tried_again() {
    let server = Server::start();
    let mut sink = server.sink();
    write(&mut sink, &batch(0, 1));
    server.query(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION \
         'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT ON verdicts EXECUTE FUNCTION full_disk()",
    );
    let failure = sink.write(&batch(1, 5), LIMIT).unwrap_err();
    expect(
        &failure,
        FailureKind::Unavailable,
        &["No space left", "53100", "free space on the disk of the server"],
    );
    server.query("DROP FUNCTION full_disk CASCADE");
    assert_eq!(write(&mut sink, &batch(0, 6)).stored, 5, "over the same connection");
    server.query("ALTER DATABASE postgres SET default_transaction_read_only = on");
    drop(sink);
    expect(&refused(server.options()), FailureKind::Unavailable, &["25006", "name the primary server"]);
}

#[test]
fn removed_schema_is_made_again() {
    let server = Server::start();
    let mut sink = server.sink();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    write(&mut sink, &batch(0, 5));
    server.query("DROP SCHEMA rondel CASCADE");
    let failure = sink.write(&batch(5, 5), LIMIT).unwrap_err();
    expect(&failure, FailureKind::Unavailable, &["the schema was changed by others"]);
    assert_eq!(write(&mut sink, &batch(5, 5)).stored, 5);
    assert_eq!(server.query("SELECT series, host FROM all_runs"), ["car,car"], "with the begin of the run");
}

/// Batches that last longer than the limit are cut until they fit, and nothing is stored twice.
#[test]
fn slow_server_makes_progress() {
    let server = Server::start();
    let mut sink = server.sink();
    write(&mut sink, &[Entry::Begin(Box::new(begin(1, "car")))]);
    server.query(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.002); RETURN new; END $$; \
         CREATE TRIGGER slow BEFORE INSERT ON verdicts FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    let mut all = batch(0, 1000);
    for entry in all.iter_mut().step_by(7) {
        if let Entry::Verdict(verdict) = entry {
            // Only their place in the batch distinguishes them.
            verdict.id = None;
        }
    }
    let mut failures = 0;
    let written = loop {
        match sink.write(&all, Duration::from_secs(1)) {
            Ok(written) => break written,
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::Unavailable, "{failure}");
                failures += 1;
                assert!(failures < 40);
            }
        }
    };
    assert!(failures > 1);
    assert_eq!(written, Written { stored: 1000, repeated: 0 }, "also those of calls that failed");
    let stored = server.query("SELECT count(*), count(DISTINCT step), max(step) FROM verdicts");
    assert_eq!(stored, ["1000,1000,999"]);
    assert_eq!(server.query("SELECT count(*) FROM violations"), ["500"]);
}
