//! A process that is killed while it writes, and one that repeats what it wrote.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
use rondel_sinks::{Begin, Entry};

use crate::server::{Server, write};
use crate::support::{begin, verdict};

const URL: &str = "RONDEL_TEST_URL";
const RUN: &str = "RONDEL_TEST_RUN";
const FIRST: &str = "RONDEL_TEST_FIRST";
/// Verdicts of a batch.
const BATCH: i64 = 500;

/// Writes batches without end, and prints the number of acknowledged verdicts after each: a child of the test below.
#[test]
#[ignore = "a child process of another test"]
fn child_writes() {
    let (Ok(url), Ok(first)) = (std::env::var(URL), std::env::var(FIRST)) else { return };
    let first: i64 = first.parse().unwrap();
    let password = Some("secret".to_owned());
    let mut sink = PostgresSink::new(PostgresOptions { url, password, ..Default::default() }).unwrap();
    let run: u128 = std::env::var(RUN).unwrap().parse().unwrap();
    write(&mut sink, &[Entry::Begin(Box::new(Begin { resumes: run > 1, ..begin(run, "car") }))]);
    let mut next = first;
    loop {
        let batch: Vec<Entry<'_>> = (next..next + BATCH)
            .map(|i| {
                let mut entry = verdict(run, "p", if i % 3 == 0 { Violated } else { Satisfied }, i);
                // The ids of a run before, as for repeated messages.
                entry.id = Some(u128::from(i.unsigned_abs()));
                Entry::Verdict(entry)
            })
            .collect();
        write(&mut sink, &batch);
        next += BATCH;
        println!("acknowledged {next}");
    }
}

fn spawn(server: &Server, run: u64, first: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child_writes", "--ignored", "--nocapture"])
        .env(URL, server.url("postgres"))
        .env(RUN, run.to_string())
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn acknowledged_verdicts_survive_a_kill_and_none_is_twice() {
    let server = Server::start();
    let mut first = 0;
    for round in 1..=5 {
        let mut child = spawn(&server, round, first);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = first;
        let mut seen = 0;
        for line in lines {
            let line = line.unwrap();
            let Some((_, number)) = line.split_once("acknowledged ") else { continue };
            acknowledged = number.parse().unwrap();
            seen += 1;
            // Kills it somewhere in a later batch; what it prints until then is read as well.
            if seen == 3 * round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 3 * round, "the child failed in round {round}");
        // The server may still end the transaction of the killed process: the next one waits for it.
        let lock = "BEGIN; SELECT FROM series FOR UPDATE; ROLLBACK";
        server.query(lock);
        let found = server.query("SELECT count(*), count(DISTINCT id), max(step) + 1 FROM verdicts");
        let found: Vec<i64> = found[0].split(',').map(|number| number.parse().unwrap()).collect();
        assert!(found[0] == found[1] && found[0] == found[2], "all, and none twice: {found:?}");
        assert!(found[0] >= acknowledged, "{found:?} of {acknowledged}");
        // A violation for each third verdict, whatever was repeated.
        let violations = (found[0] + 2) / 3;
        let counted = server.query("SELECT count(*), sum(count) FROM violations");
        assert_eq!(counted, [format!("{violations},{violations}")]);
        // Repeats the last batches.
        first = (acknowledged - 3 * BATCH).max(0);
    }
    assert_eq!(
        server.query("SELECT count(*) FILTER (WHERE status = 'aborted'), count(*) FROM runs"),
        ["4,5"]
    );
}
