//! Avro in the framing of the schema registries. The registry is a small server in the test that speaks the documented API
//! (`GET /schemas/ids/ID`): none can be part of the tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Schemas of two versions of a type, by their ids.
const SCHEMAS: [(u32, &str); 2] = [
    (
        1,
        r#"{"type": "record", "name": "Car", "fields": [{"name": "n", "type": "long"}, {"name": "speed", "type": "double"}]}"#,
    ),
    (
        700,
        r#"{"type": "record", "name": "Car", "fields": [{"name": "name", "type": "string"},
            {"name": "speed", "type": ["null", "double"]}, {"name": "n", "type": "long"}]}"#,
    ),
];

/// Starts a registry; returns its address and the number of its requests.
fn registry() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let found = SCHEMAS.iter().find(|(id, _)| head[0].contains(&format!("/schemas/ids/{id} ")));
            let (status, body) = match found {
                Some((_, schema)) => ("200 OK", json!({"schema": schema}).to_string()),
                None => ("404 Not Found", json!({"error_code": 40403}).to_string()),
            };
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, count)
}

/// A number in zigzag encoding, below 64.
fn small(value: i64) -> u8 {
    (value << 1) as u8
}

/// Lines of records with these datums, each after the id of its schema.
fn framed(records: &[(u32, Vec<u8>)]) -> String {
    records.iter().fold(String::new(), |mut lines, (id, datum)| {
        let message = [&[0], &id.to_be_bytes()[..], datum].concat();
        let hex: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(lines, "{}", json!({"value_hex": hex, "key": "car"}));
        lines
    })
}

#[test]
fn records_are_read_by_the_schemas_of_a_registry() {
    let test = "records_are_read_by_the_schemas_of_a_registry";
    let Some(broker) = KafkaBroker::start(test, "") else { return };
    let ((registry, requests), folder) = (registry(), Folder::new());
    folder.file("p.rondel", "topic car { n: int, speed: float }\nproperty slow = car.speed < 10\n");
    let text = format!(
        "specification: p.rondel\nkafka: {{ brokers: [\"{}\"], start: earliest, dead_letters: dead }}\n\
         topics: {{ car: {{ source: kafka:cars, encoding: avro, registry: \"{registry}\" }} }}\n\
         verdicts: {{ to: kafka:verdicts, emit: every }}\n",
        broker.address()
    );
    let deployment = folder.file("rondel.yaml", &text);
    broker.create("cars", &["partitions=1"]);
    broker.create("verdicts", &["partitions=1"]);
    broker.create("dead", &["partitions=1"]);
    let old = |n, speed: f64| (1, [&[small(n)], &speed.to_le_bytes()[..]].concat());
    let new =
        |n, speed: f64| (700, [&[small(1), b'x', small(1)], &speed.to_le_bytes()[..], &[small(n)]].concat());
    let records =
        [old(0, 1.0), new(1, 20.0), old(2, 30.0), (9, vec![1, 2]), (1, vec![0]), new(3, 2.0), old(4, 3.0)];
    broker.publish("cars", &framed(&records));
    // The message that is not framed, and a tombstone.
    broker.publish("cars", &format!("{}\n{}\n", record("{}", None), json!({"value": null, "key": "car"})));
    let own = ["run", &deployment, "--count", "8", "--summary", "json"];
    let finished = rondel(own);
    finished.expect_status(0);
    // Those after a record that was not read are inconclusive, and of no step.
    let all = verdicts(&broker, "verdicts").into_iter().map(|(_, verdict)| verdict);
    let all: Vec<Value> = all.filter(|verdict| verdict.get("step").is_some()).collect();
    let violated = all.iter().filter(|verdict| verdict["verdict"] == "violated").count();
    assert_eq!((all.len(), violated), (5, 2), "{all:?}");
    let summary = summary(&finished);
    assert_eq!(summary["undecodable"], 3, "{summary}");
    assert_eq!(summary["dead_letters"]["written"], 3, "{summary}");
    // Each of two schemas and the unknown one.
    assert_eq!(requests.load(Ordering::SeqCst), 3);
    assert!(finished.stderr.contains("gives no schema with the id 9"), "{}", finished.stderr);
    // The records that cannot be decoded, as they were received; a tombstone is none of them.
    let dead: Vec<Value> =
        broker.records("dead").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| dead.iter().map(|record| record["headers"][name].clone()).collect::<Vec<_>>();
    assert_eq!(of("rondel-offset"), ["3", "4", "7"]);
    assert_eq!((of("rondel-topic"), of("rondel-partition")), (vec![json!("cars"); 3], vec![json!("0"); 3]));
    assert!(
        dead[0]["headers"]["rondel-cause"].as_str().unwrap().contains("no schema with the id 9"),
        "{dead:?}"
    );
    // Without a deployment.
    let own = ["topics", "kafka:cars", "--for", "6", "--kafka-start", "earliest"];
    let listed = rondel(arguments(&own, &joining(&broker)));
    assert!(listed.stdout.contains("avro of a registry, schema ids 1, 9, 700, others"), "{}", listed.stdout);
    let empty = folder.path("draft");
    let own = ["init", "kafka:cars", "--for", "6", "--kafka-start", "earliest", "--folder", &empty];
    rondel(arguments(&own, &joining(&broker))).expect_status(2).expect_stderr(&[
        "nothing to write about",
        "Avro of a schema registry (schema ids 1, 9, 700)",
        "registry: ",
    ]);
    // The same schemas for records that are checked later, with the encoding of the deployment or of the address.
    broker.create("later", &["partitions=1"]);
    broker.publish("later", &framed(&records[..3]));
    let deployment = folder.file("later.yaml", text.replace("kafka:cars", "kafka:later"));
    for address in ["kafka:later", "kafka+avro:later"] {
        let own = ["check", &deployment, address, "--emit", "every", "--format", "json"];
        let finished = rondel(arguments(&own, &joining(&broker)));
        let violated = finished.stdout.lines().filter(|line| line.contains(r#""violated""#)).count();
        assert_eq!((finished.stdout.lines().count(), violated), (3, 2), "{}", finished.stderr);
    }
    let kept = (&dead[0]["key"], &dead[0]["data"], &dead[2]["key"], &dead[2]["data"]);
    let expected = (&json!("car"), &json!("\u{0}\u{0}\u{0}\u{0}\t\u{1}\u{2}"), &json!(null), &json!("{}"));
    assert_eq!(kept, expected);
}
