//! Messages, keys, times and verdicts, and the commands beside `run`.

use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::*;

#[test]
fn records_are_checked_and_verdicts_published() {
    let Some(broker) = KafkaBroker::start("records_are_checked_and_verdicts_published", "") else { return };
    keys_are_parameters(&broker);
    keys_of_a_megabyte_are_over_the_limit(&broker);
    headers_are_parameters(&broker);
    unreadable_records_are_counted(&broker);
    compressed_records_are_read(&broker);
    topics_are_listed_and_printed(&broker);
    recordings_are_made_and_replayed(&broker);
    ranges_of_records_are_checked(&broker);
}

#[test]
fn temporary_files_are_removed_at_a_signal() {
    // A broker that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (folder, address) = (Folder::new(), silent.local_addr().unwrap().to_string());
    let temporary = folder.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rondel"));
    command.args(["check", "-f", "n < 1", "kafka:a", "--kafka-broker", &address]).env("TMPDIR", &temporary);
    let check = Process::start(command);
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    let begun = Instant::now();
    while left() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(4), "no temporary folder");
        thread::sleep(Duration::from_millis(10));
    }
    check.signal("INT");
    check.finish().expect_status(130);
    assert_eq!(left(), 0);
}

#[test]
fn mistakes_are_shown_before_a_broker_is_connected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let (folder, address) = (Folder::new(), listener.local_addr().unwrap().to_string());
    let temporary = folder.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let misspelt = folder.file("p.rondel", "topic a { n: int }\nproperty p = a.m < 1\n");
    let deployment =
        folder.file("rondel.yaml", "specification: p.rondel\ntopics: { a: { source: kafka:a } }\n");
    let right = folder.file("right.rondel", "topic a { n: int }\nproperty p = a.n < 1\n");
    for (specification, recording, mistake) in [
        (["-f", "n <"], "kafka:a", "error"),
        (["--quiet", &misspelt], "kafka:a", "a.m"),
        (["--quiet", &deployment], "kafka:a", "a.m"),
        // An encoding that needs types, and none.
        (["--quiet", &right], "kafka+avro:a", "give the file with --schemas; or check with a deployment"),
        (["-f", "n < 1"], "kafka+avro:a", "`registry: http://HOST:8081`"),
        (["-f", "n < 1"], "kafka+protobuf:a", "messages in protobuf can be read only with the definition"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rondel"));
        command.arg("check").args(specification).args([recording, "--kafka-broker", &address]);
        command.env("TMPDIR", &temporary);
        Process::start(command).finish().expect_status(2).expect_stderr(&[mistake]);
        assert!(listener.accept().is_err(), "{specification:?}: a broker was connected");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{specification:?}");
    }
}

fn keys_are_parameters(broker: &KafkaBroker) {
    broker.create("telemetry", &["partitions=1"]);
    broker.create("verdicts", &["partitions=2"]);
    let folder = Folder::new();
    folder.file(
        "p.rondel",
        "topic car \"telemetry/{vehicle}\" { v: float }\n\
         property slow for each vehicle in car.vehicle = car.v < 10\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nids: true\nkafka: {{ brokers: [\"{}\"] }}\n\
             topics: {{ car: {{ source: \"kafka:telemetry/{{vehicle}}\", time: source }} }}\n\
             verdicts: {{ to: kafka:verdicts, emit: change }}\n",
            broker.address()
        ),
    );
    rondel(["validate", &deployment]).expect_status(0);
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
    run.wait_stderr("ready");
    let mut lines = String::new();
    for (key, v, ms) in [("a", 5, 1_000), ("b", 50, 2_000), ("a", 60, 3_000)] {
        let value = json!({"v": v}).to_string();
        let line = json!({"value": value, "key": key, "timestamp": 1_700_000_000_000_i64 + ms});
        let _ = writeln!(lines, "{line}");
    }
    let _ = writeln!(lines, "{}", record("{\"v\":99}", None));
    broker.publish("telemetry", &lines);
    let is_violated = |(_, verdict): &&(String, Value)| verdict["verdict"] == "violated";
    let all = await_verdicts(broker, "verdicts", &mut run, |all| all.iter().filter(is_violated).count() == 2);
    for (key, verdict) in &all {
        assert_eq!(verdict["id"], key.as_str(), "{verdict}");
    }
    let mut violated: Vec<_> = all.iter().filter(is_violated).collect();
    violated.sort_by_key(|(_, verdict)| verdict["key"]["vehicle"].to_string());
    let of =
        |index: usize| (&violated[index].1["key"]["vehicle"], violated[index].1["time"].as_f64().unwrap());
    assert_eq!(of(0), (&json!("a"), 1_700_000_003.0));
    assert_eq!(of(1), (&json!("b"), 1_700_000_002.0));
    run.terminate();
    let summary = summary(run.finish().expect_status(0));
    // The record without a key is an undecodable message of the topic.
    assert_eq!((&summary["received"], &summary["undecodable"]), (&json!(4), &json!(1)), "{summary}");
    assert_eq!(summary["topics"][0]["undecodable"], 1, "{summary}");
    assert_eq!(summary["not_evaluated"][0]["reason"], "undecodable", "{summary}");
}

fn keys_of_a_megabyte_are_over_the_limit(broker: &KafkaBroker) {
    broker.create("long", &["partitions=1", "max.message.bytes=3000000"]);
    let folder = Folder::new();
    folder.file(
        "p.rondel",
        "topic car \"long/{vehicle}\" { v: float }\n\
         property slow for each vehicle in car.vehicle = car.v < 10\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nkafka: {{ brokers: [\"{}\"], start: earliest }}\n\
             topics: {{ car: {{ source: \"kafka:long/{{vehicle}}\", time: source }} }}\n",
            broker.address()
        ),
    );
    let long = "k".repeat(1 << 20);
    let lines: String = (0..10).map(|n| record("{\"v\":50}", Some(&format!("{long}{n}"))) + "\n").collect();
    broker.publish("long", &lines);
    let finished = rondel(["run", &deployment, "--count", "10", "--format", "json"]);
    assert_eq!(finished.stdout, "");
    finished.expect_stderr(&[
        "received 10, checked 10",
        "slow: 10 messages have a parameter of more than 64 KiB",
    ]);
}

fn headers_are_parameters(broker: &KafkaBroker) {
    broker.create("orders", &["partitions=1"]);
    let folder = Folder::new();
    folder.file(
        "p.rondel",
        "topic order \"orders/{id}/{tenant}\" { v: float }\n\
         property small for each tenant in order.tenant = order.v < 10\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nkafka: {{ brokers: [\"{}\"], start: earliest }}\n\
             topics: {{ order: {{ source: \"kafka:orders/{{id}};type=order;tenant={{tenant}}\", time: source }} }}\n\
             verdicts: {{ emit: every }}\n",
            broker.address()
        ),
    );
    let mut lines = String::new();
    for (kind, tenant, v) in [("order", "north", 5), ("order", "south", 50), ("offer", "west", 99)] {
        let value = json!({"v": v}).to_string();
        let line = json!({"value": value, "key": "k", "headers": {"type": kind, "tenant": tenant}});
        let _ = writeln!(lines, "{line}");
    }
    broker.publish("orders", &lines);
    let publish = ["publish", "--to", "kafka:orders/k;type=order;tenant=east"];
    support::rondel_with_input(arguments(&publish, &joining(broker)), b"{\"v\":60}\n").expect_status(0);
    // Without the header that is a parameter.
    let bare = json!({"value": "{\"v\":99}", "key": "k", "headers": {"type": "order"}}).to_string();
    broker.publish("orders", &bare);
    let finished = rondel(["run", &deployment, "--count", "3", "--format", "json"]);
    let violated: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let violated = violated.iter().filter(|verdict| verdict["verdict"] == "violated");
    let tenants: Vec<&Value> = violated.map(|verdict| &verdict["key"]["tenant"]).collect();
    assert_eq!(tenants, [&json!("south"), &json!("east")], "{}", finished.stdout);
    // A recording has the headers in the names of its topics.
    let file = folder.path("orders.mcap");
    let address = "kafka:orders/{id};type=order;tenant={tenant}";
    let own = ["record", address, "-o", &file, "--count", "3", "--kafka-start", "earliest"];
    // The record without the header is not in it.
    rondel(arguments(&own, &joining(broker))).expect_status(5).expect_stderr(&["refused 1"]);
    let checked = rondel(["check", &deployment, &file, "--format", "json"]);
    assert_eq!(
        checked.expect_status(1).stdout.matches("\"verdict\":\"violated\"").count(),
        2,
        "{}",
        checked.stdout
    );
}

fn unreadable_records_are_counted(broker: &KafkaBroker) {
    broker.create("state", &["partitions=1"]);
    let own = ["run", "-f", "v < 9", "--topic", "kafka:state", "--emit", "every", "--format", "json"];
    let mut run = start_rondel(arguments(&[&own[..], &["--summary", "json"]].concat(), &joining(broker)));
    run.wait_stderr("ready");
    let lines =
        ["{\"value\":null,\"key\":\"k\"}", "{\"value\":\"poison\"}", "{\"value\":\"{\\\"v\\\":10}\"}"];
    broker.publish("state", &lines.join("\n"));
    assert!(run.wait_stdout("violated").contains("violated"));
    run.terminate();
    let summary = summary(&run.finish());
    let counts = [&summary["received"], &summary["empty"], &summary["undecodable"]];
    assert_eq!(counts, [&json!(2), &json!(1), &json!(1)], "{summary}");
}

fn compressed_records_are_read(broker: &KafkaBroker) {
    // The broker compresses what it stores.
    for kind in ["gzip", "lz4", "snappy", "zstd"] {
        let compression = format!("compression.type={kind}");
        broker.create(kind, &["partitions=1", &compression]);
        broker.publish(kind, &numbered(0..100));
        let address = format!("kafka:{kind}");
        let own = ["tap", &address, "--count", "100", "--kafka-start", "earliest"];
        let tapped = rondel(arguments(&own, &joining(broker)));
        assert!(tapped.expect_status(0).stdout.contains("\"n\":99"), "{kind}: {}", tapped.stdout);
    }
}

fn topics_are_listed_and_printed(broker: &KafkaBroker) {
    broker.create("shown", &["partitions=2"]);
    let own = ["tap", "kafka:shown", "--count", "2", "--kafka-start", "earliest"];
    let publish = ["publish", "--to", "kafka:shown/car-7"];
    let published =
        support::rondel_with_input(arguments(&publish, &joining(broker)), b"{\"v\":1}\n{\"v\":2}\n");
    published.expect_status(0);
    let keys: Vec<String> = broker.records("shown");
    assert!(keys.iter().all(|line| line.contains("\"car-7\"")), "{keys:?}");
    let tapped = rondel(arguments(&own, &joining(broker)));
    assert!(tapped.expect_status(0).stdout.contains("{\"v\":2}"), "{}", tapped.stdout);
    let mut listing = start_rondel(arguments(&["topics", "kafka:s*", "--for", "5"], &joining(broker)));
    listing.wait_stderr("looking at");
    broker.publish("shown", &record("{\"v\":3}", None));
    let listed = listing.finish();
    assert!(listed.expect_status(0).stdout.contains("kafka:shown"), "{}", listed.stdout);
    let missing = ["run", "-f", "v < 9", "--topic", "kafka:nowhere"];
    let mut run = start_rondel(arguments(&missing, &joining(broker)));
    run.wait_stderr("has no topic `nowhere`");
    run.terminate();
}

fn recordings_are_made_and_replayed(broker: &KafkaBroker) {
    broker.create("recorded", &["partitions=1"]);
    broker.create("again.recorded", &["partitions=1"]);
    broker.publish("recorded", &numbered(0..10));
    let folder = Folder::new();
    let file = folder.path("state.mcap");
    let own = ["record", "kafka:recorded", "-o", &file, "--count", "10", "--kafka-start", "earliest"];
    rondel(arguments(&own, &joining(broker))).expect_status(0);
    rondel(["check", "-f", "n < 10", &file]).expect_status(0);
    let own = ["replay", &file, "--to", "kafka:again", "--as-fast-as-possible"];
    rondel(arguments(&own, &joining(broker))).expect_status(0);
    let value = |line: &String| -> Value { serde_json::from_str::<Value>(line).unwrap()["data"].clone() };
    let read = |topic: &str| -> Vec<Value> { broker.records(topic).iter().map(value).collect() };
    assert_eq!(read("again.recorded"), read("recorded"));
}

fn ranges_of_records_are_checked(broker: &KafkaBroker) {
    broker.create("ranged", &["partitions=2"]);
    let mut lines = String::new();
    for n in 0..20 {
        let (value, time) = (json!({"n": n}).to_string(), 1_700_000_000_000_i64 + n * 1000);
        let _ = writeln!(lines, "{}", json!({"value": value, "partition": n % 2, "timestamp": time}));
    }
    broker.publish("ranged", &lines);
    let check = |address: &str, options: &[&str]| {
        let own = ["check", "-f", "n % 7 != 3", address, "--emit", "every", "--format", "json"];
        rondel(arguments(&[&own[..], options].concat(), &joining(broker)))
    };
    // The numbers of all messages, and of those that violate the formula: of the seconds at which they were published.
    let checked = |options: &[&str]| {
        let finished = check("kafka:ranged", options);
        let verdicts = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let (mut all, mut violated) = (Vec::new(), Vec::new());
        for verdict in verdicts {
            let n = verdict["time"].as_f64().unwrap() - 1_700_000_000.0;
            all.push(n);
            violated.extend((verdict["verdict"] == "violated").then_some(n));
        }
        assert!(all.is_sorted(), "partitions are merged by time: {all:?}");
        (all.len(), violated)
    };
    assert_eq!(checked(&[]), (20, vec![3.0, 10.0, 17.0]));
    assert_eq!(checked(&["--from", "1700000005", "--to", "1700000012"]), (8, vec![10.0]));
    assert_eq!(checked(&["--from", "+15"]), (5, vec![17.0]));
    assert_eq!(checked(&["--kafka-offsets", "0:2..4"]), (2, vec![]));
    assert_eq!(checked(&["--kafka-offsets", "0:9..", "--kafka-offsets", "1:..2"]), (3, vec![3.0]));
    check("kafka:ranged", &["--kafka-offsets", "7:0.."]).expect_status(3).expect_stderr(&["no partition 7"]);
    check("kafka:ranged", &["--kafka-offsets", "7"]).expect_status(2).expect_stderr(&["PARTITION:FROM..TO"]);
    check("kafka:nowhere", &[]).expect_status(3).expect_stderr(&["has no topic `nowhere`"]);
    broker.expire("ranged", 0, 4);
    check("kafka:ranged", &["--kafka-offsets", "0:2..6"])
        .expect_stderr(&["2 records of the selected ones have expired"]);
}

#[test]
fn users_and_wrong_settings_are_refused_with_the_reason() {
    let test = "users_and_wrong_settings_are_refused_with_the_reason";
    let Some(broker) = KafkaBroker::start(test, KafkaBroker::WITH_USERS) else { return };
    broker.create("state", &["partitions=1"]);
    let folder = Folder::new();
    let own = ["run", "-f", "v < 9", "--topic", "kafka:state", "--exit-on-unreachable", "--kafka-config"];
    let config = |user: &str, password: &str| {
        let text = format!(
            "# the user\nsecurity.protocol=sasl_plaintext\nsasl.mechanism=PLAIN\nsasl.username={user}\n\
             sasl.password={password}\n"
        );
        let config = folder.file("client.properties", text);
        arguments(&[&own[..], &[&config]].concat(), &joining(&broker))
    };
    rondel(config("admin", "wrong")).expect_status(5).expect_stderr(&["check `sasl.username`"]);
    rondel(config("reader", "secret")).expect_status(5).expect_stderr(&["add an ACL for the operation Read"]);
    let mut allowed = start_rondel(config("admin", "secret"));
    allowed.wait_stderr("ready");
    allowed.terminate();
    let deployment = |section: &str| {
        let text = format!("formula: v < 9\nkafka: {section}\ntopics: {{ trace: kafka:state }}\n");
        rondel(["validate", &folder.file("wrong.yaml", text)])
    };
    for (section, reason) in [
        ("{ group: monitors }", "needs `state: FOLDER`"),
        ("{ settings: { group.id: monitors } }", "write `group: NAME`"),
        ("{ start: middle }", "`start` must be latest or earliest"),
        ("{ brokers: [kafka] }", "HOST:PORT"),
        ("{ settings: { fetch.max.bites: 5 } }", "there is no setting `fetch.max.bites`"),
        ("{ settings: { sasl.password: x } }", "settings_env"),
        ("{ tls: { ca: ca.pem } }", "without TLS"),
    ] {
        deployment(section).expect_status(2).expect_stderr(&[reason]);
    }
}
