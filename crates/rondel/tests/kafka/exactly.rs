//! Exactly once: a monitor that is killed at any time goes on as if it had not been.

use std::collections::HashSet;
use std::time::Duration;

use rondel_testkit::{Random, fresh_seeds, wait_until};

use super::*;

/// Every hundredth record is a planted fault. The sequence shows every record that is missing or comes twice: a topic of
/// one partition has an order.
const SPECIFICATION: &str = "topic state { t: time, n: int }\n\
    property planted = state.n % 100 != 99\n\
    property in_sequence = state.n == 0 or state.n - prev(state.n) == 1\n";

fn deployment(folder: &Folder, broker: &KafkaBroker, durability: &str) -> String {
    folder.file("p.rondel", SPECIFICATION);
    let text = format!(
        "specification: p.rondel\ndurability: {durability}\nids: true\nkafka: {{ brokers: [\"{}\"], start: earliest }}\n\
         topics: {{ state: {{ source: kafka:state, time: t }} }}\n\
         verdicts: {{ to: kafka:verdicts, emit: every }}\n",
        broker.address()
    );
    folder.file("rondel.yaml", text)
}

fn monitor(deployment: &str, snapshot: &str) -> Process {
    start_rondel(["run", deployment, "--snapshot-to", snapshot, "--summary", "json"])
}

/// The times of the records that violate `planted`, and the number of all verdicts on it, repeated ones by their id.
pub(super) fn found(all: &[(String, Value)]) -> (HashSet<String>, usize, usize) {
    let of_it = all.iter().filter(|(_, verdict)| verdict["property"] == "planted");
    let distinct: HashSet<&str> = of_it.clone().map(|(key, _)| key.as_str()).collect();
    let violated = of_it.clone().filter(|(_, verdict)| verdict["verdict"] == "violated");
    let times = violated.clone().map(|(_, verdict)| verdict["time"].to_string()).collect();
    let ids: HashSet<&str> = violated.map(|(key, _)| key.as_str()).collect();
    (times, ids.len(), distinct.len())
}

#[test]
fn planted_faults_are_found_once_by_a_monitor_that_is_killed() {
    let test = "planted_faults_are_found_once_by_a_monitor_that_is_killed";
    let Some(broker) = KafkaBroker::start(test, "") else { return };
    for (index, seed) in fresh_seeds(test, 1).enumerate() {
        if index > 0 {
            broker.delete("state");
            broker.delete("verdicts");
        }
        broker.create("state", &["partitions=1"]);
        broker.create("verdicts", &["partitions=3"]);
        kills(&broker, seed);
    }
}

fn kills(broker: &KafkaBroker, seed: u64) {
    let (mut random, folder) = (Random::new(seed), Folder::new());
    let deployment = deployment(&folder, broker, "exactly");
    let snapshot = folder.path("state");
    let (count, kills) = (20_000, 5);
    let mut run = monitor(&deployment, &snapshot);
    run.wait_stderr("ready");
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| broker.publish("state", &numbered(0..count)));
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(random.below(400)));
            run.kill();
            run = monitor(&deployment, &snapshot);
            if random.below(5) > 0 {
                run.wait_stderr("ready");
            }
        }
        publishing.join().unwrap();
    });
    let planted = count / 100;
    let all = await_verdicts(broker, "verdicts", &mut run, |all| found(all).2 >= count);
    let (times, ids, distinct) = found(&all);
    assert_eq!((times.len(), ids, distinct), (planted, planted, count));
    run.terminate();
    let summary = summary(run.finish().expect_status(0));
    let of = |name: &str| {
        let all = summary["properties"].as_array().unwrap().iter();
        all.clone().find(|property| property["property"] == name).unwrap().clone()
    };
    assert_eq!((summary["empty"].as_u64(), summary["dropped"].as_u64()), (Some(0), Some(0)), "{summary}");
    assert_eq!(of("planted")["violations"].as_u64(), Some(planted as u64), "{summary}");
    assert_eq!(of("in_sequence")["violations"].as_u64(), Some(0), "{summary}");
}

#[test]
fn a_run_goes_on_at_its_snapshot_and_counts_expired_records() {
    let test = "a_run_goes_on_at_its_snapshot_and_counts_expired_records";
    let Some(broker) = KafkaBroker::start(test, "") else { return };
    broker.create("state", &["partitions=1"]);
    broker.create("verdicts", &["partitions=1"]);
    let folder = Folder::new();
    let deployment = deployment(&folder, &broker, "snapshot");
    let snapshot = folder.path("state");
    let start = |resumes: bool| {
        let own = ["run", &deployment, "--summary", "json", "--snapshot-to", &snapshot];
        let resume = ["--resume", &snapshot];
        let mut run = start_rondel([&own[..], if resumes { &resume[..] } else { &[] }].concat());
        run.wait_stderr("ready");
        run
    };
    let verdicts_of = |run: &mut Process, count: usize| {
        await_verdicts(&broker, "verdicts", run, |all| found(all).2 >= count);
    };
    let mut run = start(false);
    broker.publish("state", &numbered(0..100));
    verdicts_of(&mut run, 100);
    run.terminate();
    run.finish().expect_status(0);
    // Published between two runs.
    broker.publish("state", &numbered(100..200));
    let mut run = start(true);
    verdicts_of(&mut run, 200);
    run.terminate();
    let between = summary(run.finish().expect_status(0));
    assert_eq!(between["received"], 100, "{between}");
    // Of these, the first ones expire before the next run.
    broker.publish("state", &numbered(200..300));
    broker.expire("state", 0, 250);
    let run = start(true);
    wait_until("the others are checked", || found(&verdicts(&broker, "verdicts")).2 >= 250);
    run.terminate();
    let expired = run.finish();
    expired.expect_stderr(&["have expired"]);
    let counts = summary(expired.expect_status(5));
    assert_eq!((&counts["received"], &counts["dropped"]), (&json!(50), &json!(50)), "{counts}");
}

#[test]
fn dead_letters_that_are_not_acknowledged_are_written_by_the_next_run() {
    let test = "dead_letters_that_are_not_acknowledged_are_written_by_the_next_run";
    let Some(broker) = KafkaBroker::start(test, "") else { return };
    broker.create("state", &["partitions=1"]);
    broker.create("dead", &["partitions=1"]);
    let folder = Folder::new();
    // The producer waits for further records before it sends the first one.
    let deployment = |linger: u32| {
        let text = format!(
            "formula: n < 10\ndurability: exactly\n\
             kafka: {{ brokers: [\"{}\"], start: earliest, dead_letters: dead, settings: {{ linger.ms: {linger} }} }}\n\
             topics: {{ trace: kafka:state }}\nverdicts: {{ to: stdout }}\n",
            broker.address()
        );
        folder.file("rondel.yaml", text)
    };
    let snapshot = folder.path("state");
    broker.publish("state", &format!("{}\n", record("bad", None)));
    let mut run = monitor(&deployment(60_000), &snapshot);
    run.wait_stderr("cannot decode");
    run.terminate();
    let finished = run.finish();
    finished.expect_status(3);
    assert!(finished.stderr.contains("not acknowledged on their topic"), "{}", finished.stderr);
    let unconfirmed = json!([{"sink": "kafka:dead (dead letters)", "count": 1}]);
    assert_eq!(summary(&finished)["unconfirmed"], unconfirmed, "{}", finished.stderr);
    assert!(broker.records("dead").is_empty());
    let run = monitor(&deployment(1), &snapshot);
    wait_until("the record is written", || broker.records("dead").len() == 1);
    run.terminate();
    run.finish().expect_status(0);
}
