//! `rondel size`: plans from measurements, and wrong input.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::fmt::Write as _;

use serde_json::Value;
use support::{Finished, Folder, rondel};

const FLEET: &str = "topic car { vehicle: string, speed: float, brake: bool }
property slow for each v in car.vehicle = mean(car.speed) over 4 s < 90
property brakes for each v in car.vehicle = car.speed > 90 -> once[0, 4 s] car.brake
";

const WHOLE: &str = "topic car { speed: float }
property slow = car.speed < 90
";

/// Lines of vehicles, each with a message every second.
fn lines(keys: u32, rounds: u32) -> String {
    let mut text = String::new();
    for i in 0..keys * rounds {
        let (time, key) = (f64::from(i) / f64::from(keys), i % keys);
        let speed = (i * 7) % 100;
        writeln!(
            text,
            r#"{{"topic":"car","time":{time:.6},"vehicle":"car-{key}","speed":{speed},"brake":{}}}"#,
            i % 3 == 0
        )
        .unwrap();
    }
    text
}

#[track_caller]
fn json(finished: &Finished) -> Value {
    finished.expect_status(0);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stdout))
}

/// Fails unless all these members of an object are numbers.
#[track_caller]
fn expect_numbers(object: &Value, names: &[&str]) {
    for name in names {
        assert!(object[name].as_f64().is_some_and(|number| number >= 0.0), "{name} in {object}");
    }
}

#[test]
fn synthetic_messages_make_a_plan() {
    let folder = Folder::new();
    let specification = folder.file("fleet.rondel", FLEET);
    let arguments =
        ["size", &specification, "--rate", "1000", "--keys", "1000", "--messages", "4000", "--json"];
    let report = json(&rondel(arguments));
    assert_eq!(report["source"]["kind"], "synthetic");
    assert_eq!(report["source"]["keys"], 1000);
    assert!(report["source"]["recording"].is_null() && report["source"]["rate"].is_null());
    let measured = &report["measured"];
    expect_numbers(measured, &["decode_ns", "evaluate_ns", "process_bytes", "messages"]);
    assert_eq!((&measured["undecodable"], measured["horizon_s"].as_f64()), (&Value::from(0), Some(4.0)));
    expect_numbers(&measured["state"], &["bytes_of_key", "snapshot_bytes_of_key", "snapshot_ns_by_byte"]);
    let fills = measured["fills"].as_array().unwrap();
    assert_eq!(fills.len(), 3);
    for fill in fills {
        assert_eq!(fill["full"], true, "{fill}");
        assert!(fill["instances"].as_u64().unwrap() > 0, "{fill}");
    }
    let plan = &report["plan"];
    assert_eq!((plan["rate"].as_f64(), &plan["keys"]), (Some(1000.0), &Value::from(1000)));
    assert!(plan["way"].is_string() && plan["reason"].is_string() && plan["fits"].is_boolean());
    let numbers = ["processes", "cores", "partitions", "state_bytes", "snapshot_bytes", "recovery_s"];
    expect_numbers(plan, &numbers);
    let fleets: Vec<Option<u64>> =
        report["fleets"].as_array().unwrap().iter().map(|fleet| fleet["keys"].as_u64()).collect();
    assert_eq!(fleets, [Some(1), Some(100), Some(10_000), Some(1_000_000)]);
    assert!(report["cpu"].is_string() && report["notes"].as_array().is_some_and(|notes| !notes.is_empty()));
}

#[test]
fn a_recording_has_a_rate_and_keys() {
    let folder = Folder::new();
    let specification = folder.file("fleet.rondel", FLEET);
    let recording = folder.file("fleet.jsonl", lines(50, 40));
    let report = json(&rondel(["size", &specification, &recording, "--json"]));
    assert_eq!(report["source"]["kind"], "recording");
    assert_eq!(report["source"]["messages"], 2000);
    assert_eq!(report["source"]["keys"], 50);
    let rate = report["plan"]["rate"].as_f64().unwrap();
    assert!((49.0..51.0).contains(&rate), "{rate}");
    assert_eq!(report["plan"]["keys"], 50);
    // The text has the same, for people.
    let text = rondel(["size", &specification, &recording, "--keys", "500", "--rate", "500"]);
    text.expect_status(0);
    for words in
        ["Measured\n", "Plan for 500 messages/s of 500 keys", "Fleets with 1.0 messages/s", "1,000,000"]
    {
        assert!(text.stdout.contains(words), "{words} in {}", text.stdout);
    }
}

#[test]
fn a_table_is_a_recording_too() {
    let folder = Folder::new();
    let specification = folder.file("fleet.rondel", FLEET);
    let mut rows = "time,vehicle,speed,brake\n".to_owned();
    for i in 0..1200 {
        writeln!(rows, "{},car-{},{},{}", f64::from(i) / 30.0, i % 30, i % 90, i % 2 == 0).unwrap();
    }
    let report = json(&rondel(["size", &specification, &folder.file("car.csv", rows), "--json"]));
    assert_eq!(report["source"]["messages"], 1200);
    assert_eq!(report["source"]["keys"], 30);
    assert_eq!(report["measured"]["undecodable"], 0);
    assert!(report["measured"]["fills"][2]["instances"].as_u64() > Some(0), "{report}");
}

#[test]
fn windows_hold_more_at_a_higher_rate() {
    let folder = Folder::new();
    let window = "topic car { vehicle: string, speed: float }
                  property steady for each v in car.vehicle = mean(car.speed) over 20 s < 1000";
    let specification = folder.file("window.rondel", window);
    let of_rate = |rate: &str| {
        let report = json(&rondel(["size", &specification, "--rate", rate, "--keys", "20", "--json"]));
        report["measured"]["state"]["snapshot_bytes_of_key"].as_f64().unwrap()
    };
    let (slow, fast) = (of_rate("20"), of_rate("400"));
    assert!(fast > slow, "{fast} and {slow}");
}

#[test]
fn a_longer_horizon_than_messages_is_extrapolated() {
    let folder = Folder::new();
    let specification = folder.file("fleet.rondel", FLEET);
    let arguments = ["--rate", "100000", "--keys", "100", "--horizon", "1 h", "--messages", "2000", "--json"];
    let report = json(&rondel([&["size", specification.as_str()][..], &arguments].concat()));
    let notes = report["notes"].to_string();
    assert!(notes.contains("extrapolated linearly") && notes.contains("unreliable"), "{notes}");
    // No property remembers an hour.
    assert!(notes.contains("no property remembers more than 4 s"), "{notes}");
    assert_eq!(report["measured"]["horizon_s"].as_f64(), Some(4.0));
}

#[test]
fn times_without_order_are_noted() {
    let folder = Folder::new();
    let specification = folder.file("fleet.rondel", FLEET);
    let lines = lines(50, 40);
    let backwards: String = lines.lines().rev().flat_map(|line| [line, "\n"]).collect();
    let backwards = folder.file("backwards.jsonl", backwards);
    let report = json(&rondel(["size", &specification, &backwards, "--json"]));
    assert!(report["notes"].to_string().contains("1,999 messages are older than one before"), "{report}");
    let message = lines.lines().next().unwrap();
    let same: String =
        (0..2000).map(|i| message.replace("car-0", &format!("car-{}", i % 50)) + "\n").collect();
    let same = folder.file("same.jsonl", same);
    rondel(["size", &specification, &same])
        .expect_status(2)
        .expect_stderr(&["or all the same", "add --rate"]);
    let report = json(&rondel(["size", &specification, &same, "--rate", "50", "--json"]));
    assert!(report["notes"].to_string().contains("they are spread evenly"), "{report}");
}

#[test]
fn a_small_state_has_the_time_of_an_empty_snapshot() {
    let folder = Folder::new();
    let specification = folder.file("whole.rondel", WHOLE);
    let report = json(&rondel(["size", &specification, "--rate", "100", "--json"]));
    let state = &report["measured"]["state"];
    expect_numbers(state, &["snapshot_ns", "snapshot_ns_by_byte", "recovery_ns", "recovery_ns_by_byte"]);
    assert!(state["snapshot_ns"].as_f64() > Some(0.0), "{state}");
    let text = rondel(["size", &specification, "--rate", "100"]);
    text.expect_status(0);
    assert!(text.stdout.contains("recovery ") && !text.stdout.contains("for each MB"), "{}", text.stdout);
}

#[test]
fn few_keys_say_nothing_about_memory() {
    let folder = Folder::new();
    let specification = folder.file("fleet.rondel", FLEET);
    let recording = folder.file("few.jsonl", lines(3, 400));
    let report = json(&rondel(["size", &specification, &recording, "--json"]));
    assert!(report["plan"]["state_bytes"].is_null() && report["measured"]["state"].is_null());
    assert!(report["measured"]["decode_ns"].is_number());
    assert!(report["notes"].to_string().contains("3 keys in the messages"), "{}", report["notes"]);
    rondel(["size", &specification, &recording]).expect_status(0);
}

#[test]
fn without_for_each_there_is_one_process() {
    let folder = Folder::new();
    let specification = folder.file("whole.rondel", WHOLE);
    let report = json(&rondel(["size", &specification, "--rate", "1e9", "--json"]));
    assert_eq!(report["plan"]["way"], "one-process");
    assert_eq!(report["plan"]["fits"], false);
    assert!(report["plan"]["keys"].is_null() && report["fleets"].as_array().unwrap().is_empty());
    rondel(["size", &specification, "--rate", "10", "--keys", "5"])
        .expect_status(2)
        .expect_stderr(&["--keys 5: no property of the specification has `for each`"]);
}

#[test]
fn shared_topics_and_keys_in_addresses_are_noted() {
    let folder = Folder::new();
    let specification = folder.file(
        "named.rondel",
        "topic car \"fleet/{id}/pose\" { speed: float }
         topic weather { wet: bool }
         property slow for each v in car.id = weather.wet -> car.speed < 90",
    );
    let report = json(&rondel([
        "size",
        &specification,
        "--rate",
        "100000",
        "--keys",
        "200000",
        "--messages",
        "4000",
        "--json",
    ]));
    assert!(report["plan"]["processes"].as_u64().unwrap() >= 4, "{report}");
    assert!(report["plan"]["reason"].as_str().unwrap().contains("parts of addresses"), "{report}");
    assert!(report["notes"].to_string().contains("messages on weather have no key"), "{report}");
}

#[test]
fn wrong_input_is_refused_with_a_sentence() {
    let folder = Folder::new();
    let fleet = folder.file("fleet.rondel", FLEET);
    let recording = folder.file("fleet.jsonl", lines(50, 40));
    let few = folder.file("few.jsonl", lines(10, 3));
    let others = folder.file("others.jsonl", "{\"topic\":\"ship\",\"time\":1,\"v\":2}\n".repeat(2000));
    let untimed = folder.file("untimed.jsonl", lines(50, 40).replace("\"time\"", "\"when\""));
    let wrong = folder.file("wrong.rondel", "topic car { speed: float }\nproperty p = car.spede < 3\n");
    let deployment = folder.file("rondel.yaml", "specification: fleet.rondel\n");
    let refused = |arguments: &[&str], status: i32, words: &[&str]| {
        let finished = rondel([&["size"][..], arguments].concat());
        finished.expect_status(status).expect_stderr(words);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    };
    for rate in ["0", "-5", "many", "1e300"] {
        refused(&[&fleet, "--rate", rate, "--keys", "1"], 2, &["--rate", "from 0.000001 to 1e12"]);
    }
    refused(&[&fleet, "--rate", "5", "--keys", "0"], 2, &["--keys", "from 1 to 1000000000000"]);
    refused(&[&fleet, "--rate", "5", "--keys", "-1"], 2, &["--keys", "from 1 to 1000000000000"]);
    refused(&[&fleet, "--keys", "5"], 2, &["--rate N is needed"]);
    refused(&[&fleet, "--rate", "5"], 2, &["--keys N is needed"]);
    refused(&[&fleet, &few], 2, &["has 30 messages", "at least 1,000"]);
    refused(&[&fleet, &others], 2, &["no message is on a topic", "which has car", "the recording has ship"]);
    refused(&[&fleet, &untimed], 2, &["have no times", "add --rate"]);
    refused(&[&wrong, &recording], 2, &["spede"]);
    refused(&[&deployment, &recording], 2, &["is a deployment"]);
    refused(&[&fleet, &fleet], 2, &["a recording should stand here"]);
    refused(&[&fleet, "nowhere.jsonl"], 3, &["nowhere.jsonl"]);
}
