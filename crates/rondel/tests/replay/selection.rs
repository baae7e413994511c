//! Messages that are chosen, repeated, counted or left out.

use serde_json::Value;

use super::run_python;
use super::support::network::{arguments, dds_domain, free_endpoint, python, zenoh};
use super::support::{self, Finished, Folder, rondel, start_rondel};
use rondel_testkit::Broker;

/// The summary of a replay as JSON.
fn summary(finished: &Finished) -> Value {
    let line = finished.stderr.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no summary:\n{}", finished.stderr))).unwrap()
}

#[test]
fn messages_are_chosen_repeated_and_counted() {
    let endpoint = free_endpoint();
    let mut tap = start_rondel(arguments(
        &["tap", "zenoh:new/**", "--format", "json", "--count", "13"],
        &support::network::zenoh_listening("peer", &endpoint),
    ));
    tap.wait_stderr("ready");
    let folder = Folder::new();
    let line = |topic: &str, time: f64, n: u32| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"data\":{{\"n\":{n}}}}}\n")
    };
    let (broken, event) =
        ("{\"topic\":\n", "{\"topic\":\"a\",\"time\":2,\"arrival\":2,\"event\":\"missed_deadline\"}\n");
    let text: Vec<String> = [
        line("a", 1.0, 1),
        line("/b/c", 1.1, 2),
        line("a", 1.05, 3),
        broken.to_owned(),
        line("d", 1.2, 4),
        event.to_owned(),
        event.replace("deadline", "dedline"),
        event.replace("\"missed_deadline\"", "3"),
        event.replace("missed_deadline", "owner"),
        line("a", 1.3, 5),
        line("a", 99.0, 6),
    ]
    .into();
    let lines = folder.file("lines.jsonl", text.concat());
    let network = zenoh("peer", &endpoint);
    let replay = |own: &[&str]| {
        let common = ["replay", &lines, "--wait", "60", "--summary", "json"];
        rondel(arguments(&[&common[..], own].concat(), &network))
    };
    // A line that cannot be read, and one whose time goes back.
    let own =
        ["--to", "zenoh:new/x/", "--until", "+2", "--rate", "4", "--loop", "2", "--map", "d=zenoh:new/d"];
    let twice = replay(&own);
    twice.expect_status(3).expect_stderr(&[
        "lines.jsonl: line 4: byte 10: the text ends inside a value",
        "lines.jsonl: line 7: 'missed_dedline' is no event of a topic",
        "lines.jsonl: line 8: `event` is no text",
        "lines.jsonl: line 9: the event 'owner' needs a text `publisher`",
    ]);
    let said = summary(&twice);
    let counts = ["published", "failed", "passes", "unordered", "unreadable_parts", "events", "left_out"];
    let counts = counts.map(|name| said[name].clone());
    assert_eq!(counts, [10.into(), 0.into(), 2.into(), 2.into(), 8.into(), 1.into(), Value::Array(vec![])]);
    let to: Vec<&str> =
        said["topics"].as_array().unwrap().iter().map(|to| to["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["zenoh:new/x/a", "zenoh:new/x/b/c", "zenoh:new/d"]);
    let own = ["--to", "zenoh:new", "--from", "+0.02", "--topics", "a", "--as-fast-as-possible"];
    let chosen = replay(&own);
    assert_eq!(summary(&chosen)["published"], 3, "{}", chosen.stderr);
    let came = tap.finish();
    let numbers: Vec<i64> = came
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["data"]["n"].as_i64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 3, 5, 6]);
    // A replay that is stopped reports the sent messages.
    let own = ["replay", &lines, "--to", "zenoh:new", "--wait", "0", "--rate", "0.1"];
    let alone = support::network::zenoh_listening("peer", &endpoint);
    let mut stopped = start_rondel(arguments(&own, &alone));
    stopped.wait_stderr("no subscriber on zenoh:new/a, zenoh:new/b/c, zenoh:new/d after 0 s");
    stopped.signal("INT");
    stopped.finish().expect_status(0).expect_stderr(&["stopped before the end", "NO SUBSCRIBERS"]);
}

#[test]
fn replay_reports_a_lost_broker() {
    let Some(broker) = Broker::start("replay: replay_reports_a_lost_broker") else { return };
    let folder = Folder::new();
    let line =
        |i: u32| format!("{{\"topic\":\"a\",\"time\":{},\"data\":{{\"n\":{i}}}}}\n", f64::from(i) / 20.0);
    let lines = folder.file("lines.jsonl", (0..1200).map(line).collect::<String>());
    let at = format!("127.0.0.1:{}", broker.port);
    let own = ["replay", &lines, "--to", "mqtt", "--mqtt-broker", &at];
    let limited = [&own[..], &["--slow-consumer", "1 s"]].concat();
    let [mut limited, mut patient] = [start_rondel(limited), start_rondel(own)];
    limited.wait_stderr("ready");
    patient.wait_stderr("ready");
    drop(broker);
    limited.wait_stderr("cannot publish a message on mqtt:a");
    limited.signal("INT");
    limited.finish().expect_status(5).expect_stderr(&[" failed; stopped", "not restored"]);
    // Without a limit a message waits for the broker, but not beyond the signal.
    patient.wait_stderr("the MQTT broker does not accept messages");
    patient.signal("TERM");
    patient.finish().expect_status(5).expect_stderr(&["stopped", "not restored"]);
}

#[test]
fn mistakes_in_replay_are_reported() {
    let folder = Folder::new();
    let lines = folder.file(
        "lines.jsonl",
        "{\"topic\":\"a b\",\"time\":1,\"v\":1}\n{\"topic\":\"x\",\"time\":2,\"v\":1}\n",
    );
    let refused = |status: i32, own: &[&str], said: &str| {
        rondel([&["replay"], own].concat()).expect_status(status).expect_stderr(&[said]);
    };
    refused(2, &[&lines], "the recording does not say on which network it was: name one with --to");
    refused(2, &[&lines, "--to", "zenoo"], "did you mean 'zenoh'?");
    refused(2, &[&lines, "--to", "+3"], "the end of the time span is --until");
    refused(
        2,
        &[&lines, "--to", "zenoh", "--topics", "y"],
        "no topic of the recording has this name; it has a b, x",
    );
    refused(
        2,
        &[&lines, "--to", "zenoh", "--map", "y=zenoh:z"],
        "--map y=…: no topic of the recording has this name",
    );
    refused(2, &[&lines, "--map", "x"], "write TOPIC=ADDRESS");
    refused(
        2,
        &[&lines, "--map", "x=zenoh:y", "--map", "x=zenoh:z"],
        "--map x=…: this topic has an address already",
    );
    refused(2, &[&lines, "--map", "x=zenoh:a/*"], "has no wildcards");
    refused(2, &[&lines, "--map", "x=zenoh+cdr:a"], "they are json, and zenoh+cdr:a is for cdr");
    refused(2, &[&lines, "--to", "ros2", "--topics", "a b"], "letters, digits, _ and / are allowed");
    refused(
        2,
        &[&lines, "--to", "mqtt", "--from", "50"],
        "no message of the recording is selected: it has messages from 1 s to 2 s",
    );
    refused(2, &[&lines, "--to", "mqtt", "--from", "5", "--until", "4"], "--from is after --until");
    refused(2, &[&lines, "--to", "mqtt", "--clock"], "--clock publishes on ROS 2");
    refused(2, &[&lines, "--to", "mqtt", "--clock-rate", "3"], "--clock");
    refused(2, &[&lines, &lines, "--to", "mqtt"], "has JSON lines: only MCAP files and folders of rosbag2");
    refused(2, &["-", "--to", "mqtt"], "is no file: a recording is read twice");
    refused(2, &[&lines, "--to", "mqtt", "--loop", "0"], "a whole number from 1, or `forever`");
    refused(2, &[&lines, "--to", "mqtt", "--rate", "-1"], "a number from 0.001");
    refused(3, &["nothing.mcap", "--to", "mqtt"], "cannot open nothing.mcap");
    let empty = folder.file("empty.jsonl", "");
    refused(2, &[&empty, "--to", "mqtt"], "the recording has no messages");
    let foreign = folder.file("notes.txt", "\nfirst\nsecond\n");
    refused(
        3,
        &[&foreign, "--to", "mqtt"],
        "notes.txt: no line of it is a message; line 2: byte 1: expected an object",
    );
    let deployment = folder.file("rondel.yaml", "formula: v > 0\ntopics: { trace: mqtt:y }\n");
    refused(2, &[&deployment], "no recording to replay");
    refused(2, &[&deployment, &lines, "--to", "mqtt"], "--to cannot be used with a deployment file");
    refused(2, &[&deployment, &lines], "the deployment does not have it");
    refused(
        5,
        &[&lines, "--to", "mqtt", "--mqtt-broker", "127.0.0.1:1", "--exit-on-unreachable"],
        "127.0.0.1:1",
    );
}

#[test]
fn topics_that_a_network_cannot_carry_are_left_out() {
    let Some(python) = python("replay: topics_that_a_network_cannot_carry") else { return };
    let folder = Folder::new();
    let script = "
import sys
from mcap.writer import Writer
with open(sys.argv[1], 'wb') as file:
    writer = Writer(file)
    writer.start('', 'test')
    named = writer.register_schema('demo/msg/Unknown', '', b'')
    ids = [writer.register_channel(*channel) for channel in [('/json', 'json', 0), ('/cbor', 'cbor', 0), ('/bare', 'cdr', 0), ('/named', 'cdr', named), ('/odd', 'smoke', 0)]]
    for i, id in enumerate(ids):
        writer.add_message(id, i, b'{}  ', i)
    writer.finish()
";
    let file = folder.path("mixed.mcap");
    run_python(&python, script, &[&file], "");
    let domain = dds_domain();
    let own = ["replay", &file, "--to", "dds", "--wait", "0", "--as-fast-as-possible"];
    let replayed = rondel(arguments(&own, &support::network::dds(&domain)));
    replayed.expect_status(5).expect_stderr(&[
        "/cbor is not published: DDS cannot carry cbor",
        "/bare is not published: the recording does not say their type",
        "/odd is not published: the encoding 'smoke' is not known",
        "/named: the recording has no definition of demo/msg/Unknown; they are published with the name of their type only",
        "/json -> dds:json: 1 message",
        "cannot publish a message on dds:named",
        "left out /cbor",
    ]);
}
