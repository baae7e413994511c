//! Consumer groups: processes that share a topic, while they are killed, stopped, added and removed. A broker of its own for
//! each test, and sessions of two seconds: each takes 20 to 60 seconds.

use std::collections::HashSet;
use std::time::Duration;

use rondel_testkit::{Random, fresh_seeds};

use super::exactly::found;
use super::*;

/// Lines of configuration: members may join at once, and are missed soon.
const QUICK: &str =
    "group.initial.rebalance.delay.ms=0\ngroup.min.session.timeout.ms=1000\noffsets.topic.num.partitions=1\n";

/// Every hundredth record is a planted fault. Numbers of one key differ by seven: the sequence shows every record that is
/// missing or comes twice.
const SPECIFICATION: &str = "topic state \"state/{k}\" { t: time, n: int }\n\
    property planted for each k in state.k = state.n % 100 != 99\n\
    property in_sequence for each k in state.k = state.n < 7 or state.n - prev(state.n) == 7\n";

/// The deployment of every member.
fn deployment(folder: &Folder, broker: &KafkaBroker, specification: &str) -> String {
    folder.file("p.rondel", specification);
    let text = format!(
        "specification: p.rondel\n\
         kafka:\n  brokers: [\"{}\"]\n  start: earliest\n  group: monitors\n  state: states\n  \
         settings: {{ session.timeout.ms: 2000, heartbeat.interval.ms: 300 }}\n\
         topics: {{ state: {{ source: \"kafka:state/{{k}}\", time: t }} }}\n\
         verdicts: {{ to: kafka:verdicts, emit: every }}\n",
        broker.address()
    );
    folder.file("rondel.yaml", text)
}

fn member(deployment: &str) -> Process {
    let mut run = start_rondel(["run", deployment, "--summary", "json"]);
    run.wait_stderr("ready");
    run
}

/// The numbers of verdicts on `in_sequence` that are violated.
fn out_of_sequence(all: &[(String, Value)]) -> usize {
    let of_it = all.iter().filter(|(_, verdict)| verdict["property"] == "in_sequence");
    let violated = of_it.filter(|(_, verdict)| verdict["verdict"] == "violated");
    violated.map(|(key, _)| key.as_str()).collect::<HashSet<_>>().len()
}

#[test]
fn planted_faults_are_found_once_by_members_that_come_and_go() {
    let test = "planted_faults_are_found_once_by_members_that_come_and_go";
    let Some(broker) = KafkaBroker::start(test, QUICK) else { return };
    let mut seeds = fresh_seeds(test, 1);
    let mut random = Random::new(seeds.next().unwrap());
    broker.create("state", &["partitions=4"]);
    broker.create("verdicts", &["partitions=3"]);
    let folder = Folder::new();
    let deployment = deployment(&folder, &broker, SPECIFICATION);
    let (count, parts) = (8_000, 8);
    let (mut first, mut second) = (member(&deployment), member(&deployment));
    first.wait_stderr("is assigned: from offset 0");
    second.wait_stderr("is assigned: from offset");
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            for part in 0..parts {
                broker.publish("state", &numbered(part * count / parts..(part + 1) * count / parts));
            }
        });
        let mut pause = || std::thread::sleep(Duration::from_millis(200 + random.below(600)));
        // Killed in the middle, and another in its place.
        pause();
        first.kill();
        first = member(&deployment);
        first.wait_stderr("is assigned: from offset");
        // A third one joins, and leaves with the states of its partitions.
        let third = member(&deployment);
        pause();
        third.terminate();
        third.finish().expect_status(0);
        // One that does not run for longer than its session has lost its partitions, and does not overwrite their states.
        second.signal("STOP");
        std::thread::sleep(Duration::from_secs(4));
        second.signal("CONT");
        pause();
        publishing.join().unwrap();
    });
    let all = await_verdicts(&broker, "verdicts", &mut first, |all| found(all).2 >= count);
    let (times, ids, _) = found(&all);
    assert_eq!((times.len(), ids), (count / 100, count / 100));
    assert_eq!(out_of_sequence(&all), 0);
    // The last ones take their states along, too.
    for run in [first, second] {
        run.terminate();
        let summary = summary(run.finish().expect_status(0));
        assert_eq!(summary["dropped"], 0, "{summary}");
    }
    let mut last = member(&deployment);
    last.wait_stderr("partition 3 of state is assigned");
    broker.publish("state", &numbered(count..count + 700));
    let all = await_verdicts(&broker, "verdicts", &mut last, |all| found(all).2 >= count + 700);
    assert_eq!(found(&all).1, count / 100 + 7);
    assert_eq!(out_of_sequence(&all), 0, "the last run goes on where the others ended");
    last.terminate();
    let summary = summary(last.finish().expect_status(0));
    assert_eq!(summary["partitions"].as_array().map(Vec::len), Some(4), "{summary}");
}

#[test]
fn members_without_partitions_and_partitions_without_messages() {
    let test = "members_without_partitions_and_partitions_without_messages";
    let Some(broker) = KafkaBroker::start(test, QUICK) else { return };
    broker.create("state", &["partitions=2"]);
    broker.create("verdicts", &["partitions=1"]);
    let folder = Folder::new();
    let specification = "topic state \"state/{k}\" { n: int }\n\
        @time(points)\nproperty answered for each k in state.k = state.n == 1 -> eventually[0, 1 s] state.n == 2\n";
    let deployment = deployment(&folder, &broker, specification);
    let text = std::fs::read_to_string(&deployment).unwrap();
    let deployment = folder.file("quiet.yaml", text.replace("time: t", "time: source"));
    // The third gets no partition, and none moves once it is there.
    let mut members = vec![member(&deployment)];
    members[0].wait_stderr("partition 1 of state is assigned");
    members.push(member(&deployment));
    members[1].wait_stderr("of state is assigned");
    members.push(member(&deployment));
    let part = |key: &str, partition: i32, n: i32| {
        json!({"value": json!({"n": n}).to_string(), "key": key, "partition": partition}).to_string()
    };
    // No further message comes, and none on the other partition.
    broker.publish("state", &part("a", 0, 1));
    let is_violated = |(_, verdict): &(String, Value)| verdict["verdict"] == "violated";
    await_verdicts(&broker, "verdicts", &mut members[0], |all| all.iter().any(is_violated));
    // Keys and values that are none.
    let lines = [
        json!({"value": null, "key": "a", "partition": 0}).to_string(),
        json!({"value": "{\"n\":1}", "key_hex": "ff00", "partition": 0}).to_string(),
        json!({"value": "{\"n\":1}", "partition": 0}).to_string(),
        part("b", 1, 3),
    ];
    broker.publish("state", &lines.join("\n"));
    await_verdicts(&broker, "verdicts", &mut members[0], |all| {
        all.iter().any(|(_, verdict)| verdict["key"]["k"] == "b")
    });
    // Further partitions are read from their first record.
    broker.grow("state", 4);
    broker.publish("state", &part("c", 3, 3));
    await_verdicts(&broker, "verdicts", &mut members[0], |all| {
        all.iter().any(|(_, verdict)| verdict["key"]["k"] == "c")
    });
    members.iter().for_each(Process::terminate);
    let finished: Vec<Finished> = members.into_iter().map(Process::finish).collect();
    let all: Vec<Value> = finished.iter().map(summary).collect();
    let sum = |name: &str| all.iter().map(|summary| summary[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("empty"), 1, "{all:?}");
    // The last member of the partition, or a further one that has taken it over at the end.
    let undecodable = |summary: &Value| summary["topics"][0]["undecodable"].as_u64();
    assert_eq!(all.iter().filter_map(undecodable).max(), Some(2), "{all:?}");
    assert_eq!(all.iter().filter_map(|summary| summary["undecodable"].as_u64()).max(), Some(2), "{all:?}");
    let grown = finished.iter().any(|run| run.stderr.contains("has 4 partitions, and had 2"));
    assert!(grown, "{}", finished[0].stderr);
}

#[test]
fn states_that_cannot_be_used_are_reported() {
    let test = "states_that_cannot_be_used_are_reported";
    let Some(broker) = KafkaBroker::start(test, QUICK) else { return };
    broker.create("state", &["partitions=1"]);
    broker.create("verdicts", &["partitions=1"]);
    let folder = Folder::new();
    // A file in the place of the folder.
    folder.file("states", "");
    let path = deployment(&folder, &broker, SPECIFICATION);
    rondel(["run", &path]).expect_status(5).expect_stderr(&["cannot write states of the group"]);
    std::fs::remove_file(folder.path("states")).unwrap();
    let mut run = member(&path);
    run.wait_stderr("partition 0 of state is assigned");
    broker.publish("state", &numbered(0..10));
    await_verdicts(&broker, "verdicts", &mut run, |all| found(all).2 >= 10);
    run.terminate();
    run.finish().expect_status(0);
    // Another specification has no property that goes on.
    let other =
        "topic state \"state/{k}\" { t: time, n: int }\nproperty other for each k in state.k = state.n < 3\n";
    let path = deployment(&folder, &broker, other);
    let mut run = member(&path);
    run.wait_stderr("cannot continue from its state");
    run.terminate();
    run.finish();
    // It went on with none of the records.
    let all = verdicts(&broker, "verdicts");
    assert!(all.iter().all(|(_, verdict)| verdict["property"] != "other"), "{all:?}");
}

#[test]
fn deployments_of_groups_are_checked() {
    // Without a broker.
    let folder = Folder::new();
    let validate = |specification: &str, kafka: &str, topics: &str, rest: &str| {
        folder.file("p.rondel", specification);
        let text = format!("specification: p.rondel\nkafka: {{ {kafka} }}\ntopics: {{ {topics} }}\n{rest}");
        rondel(["validate", &folder.file("rondel.yaml", text)])
    };
    let (group, topics) =
        ("group: monitors, state: states", "state: { source: \"kafka:state/{k}\", time: t }");
    let fine = validate(SPECIFICATION, group, topics, "");
    assert!(fine.expect_status(0).stdout.contains("the group monitors"), "{}", fine.stdout);
    let whole = "topic state \"state/{k}\" { t: time, n: int }\nproperty p = state.n < 3\n";
    let topic = "topic state { t: time, n: int }\nproperty p for each n in state.n = state.n < 3\n";
    for (specification, kafka, topics, rest, reason) in [
        (whole, group, topics, "", "no `for each` over the key"),
        (topic, group, "state: { source: \"kafka:state\", time: t }", "", "does not name the key"),
        (SPECIFICATION, group, "state: { source: \"mqtt:state/{k}\", time: t }", "", "is not on Kafka"),
        (SPECIFICATION, "group: monitors", topics, "", "`group` needs `state: FOLDER`"),
        (SPECIFICATION, "state: states", topics, "", "write `group: NAME`"),
        (SPECIFICATION, "group: monitors, state: \"kafka:states\"", topics, "", "must be a folder"),
        (SPECIFICATION, group, topics, "durability: none\n", "leave `durability` out"),
        (SPECIFICATION, group, topics, "store: verdicts.db\n", "`store` cannot be used with `kafka.group`"),
    ] {
        validate(specification, kafka, topics, rest).expect_status(2).expect_stderr(&[reason]);
    }
    let path = folder.path("rondel.yaml");
    validate(SPECIFICATION, group, topics, "");
    let workers = rondel(["run", &path, "--workers", "2"]);
    workers.expect_status(2).expect_stderr(&["--workers cannot be used with `kafka.group`"]);
    let snapshot = rondel(["run", &path, "--snapshot-to", &folder.path("snapshot")]);
    snapshot.expect_status(2).expect_stderr(&["leave --resume and --snapshot-to out"]);
}
