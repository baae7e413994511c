//! A broker that is gone for a while, and topics that come later.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rondel_testkit::wait_until;

use super::*;

/// Duration of an outage: 5 seconds, or `RONDEL_TEST_OUTAGE` seconds.
fn outage() -> Duration {
    let seconds = std::env::var("RONDEL_TEST_OUTAGE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

#[test]
fn an_outage_is_reported_while_it_lasts_and_loses_nothing() {
    let test = "an_outage_is_reported_while_it_lasts_and_loses_nothing";
    let Some(mut broker) = KafkaBroker::start(test, "") else { return };
    broker.create("state", &["partitions=1"]);
    broker.create("verdicts", &["partitions=3"]);
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: n % 100 != 99\nids: true\nkafka: {{ brokers: [\"{}\"] }}\n\
             topics: {{ trace: {{ source: kafka:state, time: t }} }}\n\
             verdicts: {{ to: kafka:verdicts, emit: every }}\n",
            broker.address()
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
    run.wait_stderr("ready");
    broker.publish("state", &numbered(0..1000));
    await_verdicts(&broker, "verdicts", &mut run, |all| all.len() >= 1000);
    broker.kill();
    run.wait_stderr("is not restored");
    std::thread::sleep(outage());
    broker.resume();
    broker.publish("state", &numbered(1000..2000));
    let all = await_verdicts(&broker, "verdicts", &mut run, |all| all.len() >= 2000);
    let violated = all.iter().filter(|(_, verdict)| verdict["verdict"] == "violated").count();
    assert_eq!((all.len(), violated), (2000, 20));
    run.terminate();
    let finished = run.finish();
    let summary = summary(&finished);
    assert_eq!((&summary["received"], &summary["dropped"]), (&json!(2000), &json!(0)), "{summary}");
    assert!(summary["outages"].as_array().is_some_and(|outages| !outages.is_empty()), "{summary}");
}

#[test]
fn a_topic_may_come_later() {
    let Some(broker) = KafkaBroker::start("a_topic_may_come_later", "") else { return };
    let own = ["run", "-f", "n < 1000", "--topic", "kafka:late", "--emit", "every", "--format", "json"];
    let mut run = start_rondel(arguments(&[&own[..], &["--summary", "json"]].concat(), &joining(&broker)));
    run.wait_stderr("ready");
    broker.create("late", &["partitions=1"]);
    broker.publish("late", &numbered(0..10));
    assert_eq!(run.take_stdout(10).len(), 10);
    run.terminate();
    assert_eq!(summary(&run.finish())["received"], 10);
}

#[test]
fn dead_letters_wait_for_room_in_the_queue() {
    let Some(broker) = KafkaBroker::start("dead_letters_wait_for_room_in_the_queue", "") else { return };
    broker.create("state", &["partitions=1"]);
    broker.create("dead", &["partitions=1"]);
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: n < 10\nkafka: {{ brokers: [\"{}\"], start: earliest, dead_letters: dead,\n  \
             settings: {{ queue.buffering.max.messages: 10 }} }}\n\
             topics: {{ trace: kafka:state }}\nverdicts: {{ to: stdout }}\n",
            broker.address()
        ),
    );
    let count = 3000;
    let lines: String = (0..count).map(|n| record(&format!("bad {n}"), None) + "\n").collect();
    broker.publish("state", &lines);
    let finished = rondel(["run", &deployment, "--count", &count.to_string(), "--summary", "json"]);
    let summary = summary(&finished);
    assert_eq!((&summary["undecodable"], &summary["dropped"]), (&json!(count), &json!(0)), "{summary}");
    assert_eq!(broker.records("dead").len(), count, "{}", finished.stderr);
    let written = json!({"sink": "kafka:dead", "written": count, "waiting": 0, "refused": 0});
    assert_eq!(summary["dead_letters"], written);
}

#[test]
fn refused_dead_letters_are_counted() {
    let Some(broker) = KafkaBroker::start("refused_dead_letters_are_counted", "") else { return };
    broker.create("state", &["partitions=1"]);
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: n < 10\nkafka: {{ brokers: [\"{}\"], start: earliest, dead_letters: missing }}\n\
             topics: {{ trace: kafka:state }}\nverdicts: {{ to: stdout }}\nmetrics: 127.0.0.1:0\n",
            broker.address()
        ),
    );
    broker.publish("state", &(record("bad", None) + "\n"));
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
    let line = run.wait_stderr("listening on metrics http://");
    let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).unwrap().0.to_owned();
    wait_until("the record is counted", || {
        let (mut stream, mut text) = (TcpStream::connect(&address).unwrap(), String::new());
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        stream.read_to_string(&mut text).unwrap();
        let value = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.and_then(|value| value.parse::<f64>().ok())
        };
        let of_letters = |result: &str| {
            value(&format!(r#"rondel_dead_letters_total{{sink="kafka:missing",result="{result}"}}"#))
        };
        let waiting = value(r#"rondel_waiting_dead_letters{sink="kafka:missing"}"#);
        (of_letters("written"), of_letters("refused"), waiting) == (Some(0.0), Some(1.0), Some(0.0))
            && value("rondel_unpublished_messages_total") == Some(1.0)
    });
    run.terminate();
    let summary = summary(&run.finish());
    let refused = json!({"sink": "kafka:missing", "written": 0, "waiting": 0, "refused": 1});
    assert_eq!((&summary["dropped"], &summary["dead_letters"]), (&json!(1), &refused));
}

#[test]
fn dead_letters_of_new_topics_and_of_large_records_are_written() {
    let test = "dead_letters_of_new_topics_and_of_large_records_are_written";
    let Some(broker) = KafkaBroker::start(test, "") else { return };
    for topic in ["state", "late", "dead"] {
        broker.create(topic, &["partitions=1"]);
    }
    let folder = Folder::new();
    let deployment = |specification: &str, topics: &str| {
        folder.file("p.rondel", specification);
        let text = format!(
            "specification: p.rondel\nlimits: {{ message: 1 KiB }}\n\
             kafka: {{ brokers: [\"{}\"], start: earliest, dead_letters: dead }}\n\
             topics: {{ {topics} }}\nverdicts: {{ to: stdout }}\n",
            broker.address()
        );
        folder.file("rondel.yaml", text)
    };
    let before = "topic state { n: int }\nproperty low = state.n < 10\n";
    let file = deployment(before, "state: kafka:state");
    let bad =
        |count: usize| -> String { (0..count).map(|n| record(&format!("bad {n}"), None) + "\n").collect() };
    let large = json!({"n": 1, "text": "x".repeat(2000)}).to_string();
    broker.publish("state", &(bad(1) + &record(&large, Some("k")) + "\n"));
    // They are read as soon as the topic is subscribed to, before the reload is complete.
    broker.publish("late", &bad(200));
    let mut run = start_rondel(["run", &file, "--summary", "json"]);
    run.wait_stderr("ready");
    wait_until("both records are written", || broker.records("dead").len() == 2);
    let after = format!("{before}topic late {{ n: int }}\nproperty lower = late.n < 10\n");
    deployment(&after, "state: kafka:state, late: kafka:late");
    run.signal("HUP");
    run.wait_stderr("reloaded within");
    wait_until("all records are written", || broker.records("dead").len() == 202);
    run.terminate();
    let summary = summary(&run.finish());
    let written = json!({"sink": "kafka:dead", "written": 202, "waiting": 0, "refused": 0});
    assert_eq!(summary["dead_letters"], written, "{summary}");
    assert_eq!((&summary["undecodable"], &summary["refused"]), (&json!(201), &json!(1)), "{summary}");
    let dead: Vec<Value> =
        broker.records("dead").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dead[1]["headers"]["rondel-cause"], "larger than the limit of 1 KiB");
    assert_eq!((&dead[1]["data"], &dead[1]["key"]), (&json!(large), &json!("k")));
    assert!(dead[2..].iter().all(|record| record["headers"]["rondel-topic"] == "late"), "{dead:?}");
}
