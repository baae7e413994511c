//! `rondel record`, and the flight recorder of `rondel run`: what they write gives the verdicts of the live run, and
//! other programs read it; and its audit file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod audit;
mod flight;
mod noted;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rondel_testkit::{Broker, LIMIT, Process};
use serde_json::{Value, json};
use support::network::{
    arguments, dds, dds_domain, free_endpoint, independent, python, router, zenoh, zenoh_listening,
};
use support::{Finished, Folder, rondel, rondel_with_input, start_rondel};

const SPECIFICATION: &str = "
topic gear \"t/gear\" { t: time, report: int }
topic speed \"t/speed\" { t: time, v: float }
@time(steps) property limited = speed.v < 9 or once gear.report == 3
property recent = gear.report == 2 -> once[0, 25 s] speed.v > 5
property soon = gear.report == 1 -> eventually[0, 33 s] speed.v < 2
";

/// Messages ten seconds apart, as JSON lines with their topics.
fn messages(count: usize) -> Vec<(&'static str, String)> {
    let one = |i: usize| match i % 2 {
        0 => ("gear", format!("{{\"t\":{},\"report\":{}}}", 10 * i, i / 2 % 4)),
        _ => ("speed", format!("{{\"t\":{},\"v\":{}}}", 10 * i, (i * 7 % 40) as f64 / 4.0)),
    };
    (0..count).map(one).collect()
}

/// Sends messages one after the other, each topic by its own publisher, as the networks number them.
fn send(network: &[String], scheme: &str, messages: &[(&str, String)]) {
    for topic in ["gear", "speed"] {
        let own = messages.iter().filter(|(of, _)| *of == topic);
        let text: String = own.map(|(_, payload)| format!("{payload}\n")).collect();
        let to = format!("{scheme}:t/{topic}");
        let publish = arguments(&["publish", "--to", &to, "--wait", "60"], network);
        rondel_with_input(publish, text.as_bytes()).expect_status(0);
    }
}

/// The lines without what is left open at the end: by then time has passed in a run.
fn decided(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.retain(|line| !line.contains("\"inconclusive\"") || line.contains("\"step\""));
    lines.sort_unstable();
    lines
}

/// The verdicts on a recording, by the deployment.
fn check(deployment: &str, file: &str) -> Finished {
    rondel(["check", deployment, file, "--format", "json", "--emit", "every"])
}

/// The topics of an MCAP file as PyPI's `mcap` reads them: name, encoding, schema, its encoding, and the number of messages.
fn topics(python: &Path, file: &Path) -> Vec<(String, String, String, String, u64)> {
    let script = "
import json, sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    summary = make_reader(file, validate_crcs=True).get_summary()
    for channel in summary.channels.values():
        schema = summary.schemas.get(channel.schema_id)
        count = summary.statistics.channel_message_counts.get(channel.id, 0)
        print(json.dumps([channel.topic, channel.message_encoding, schema.name if schema else '', schema.encoding if schema else '', count]))
";
    let run = Command::new(python).args(["-c", script]).arg(file).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut all: Vec<_> = String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    all.sort();
    all
}

/// Records what a run checks, and expects the same verdicts on the recording.
fn recorded_is_live(
    folder: &Folder,
    section: &str,
    network: &[String],
    scheme: &str,
    extra: &[&str],
) -> String {
    folder.file("spec.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\n{section}\ntopics:\n  gear: {{ source: \"{scheme}:t/gear\", time: t }}\n  \
             speed: {{ source: \"{scheme}:t/speed\", time: t }}\nalignment: {{ max_wait: none, absent_after: never }}\n"
        ),
    );
    let all = messages(200);
    let file = folder.path("drive.mcap");
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--emit", "every", "--count", "200"]);
    run.wait_stderr("ready");
    let own = ["record", &deployment, "-o", &file, "--count", "200"];
    let mut record = start_rondel([&own[..], extra].concat());
    record.wait_stderr("ready");
    send(network, scheme, &all);
    let live = run.finish();
    live.expect_status(0);
    record
        .finish()
        .expect_status(0)
        .expect_stderr(&["received 200 messages, lost 0, refused 0; wrote 200 messages in"]);
    if extra.is_empty() {
        let checked = check(&deployment, &file);
        let (live, recorded) = (decided(&live.stdout), decided(&checked.stdout));
        assert!(live.len() > 300, "{}", live.len());
        assert_eq!(live, recorded, "{}", checked.stderr);
    }
    deployment
}

#[test]
fn zenoh_is_recorded_as_it_is_checked() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let section = format!("zenoh: {{ mode: client, connect: {endpoint} }}");
    recorded_is_live(&folder, &section, &network, "zenoh", &[]);
    if let Some(python) = python("zenoh_is_recorded_as_it_is_checked") {
        let expected =
            ["t/gear", "t/speed"].map(|name| (name.into(), "json".into(), "".into(), "".into(), 100));
        assert_eq!(topics(&python, folder.as_path().join("drive.mcap").as_path()), expected);
    }
}

#[test]
fn mqtt_is_recorded_as_it_is_checked() {
    let Some(broker) = Broker::start("mqtt_is_recorded_as_it_is_checked") else { return };
    let (folder, section) = (Folder::new(), format!("mqtt: {{ broker: \"127.0.0.1:{}\" }}", broker.port));
    let network = vec!["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)];
    let deployment = recorded_is_live(&folder, &section, &network, "mqtt", &[]);
    // By a pattern, each topic under its own name.
    let file = folder.path("all.mcap");
    let own = ["record", "mqtt:t/#", "-o", &file, "--compression", "lz4"];
    let mut record = start_rondel(arguments(&own, &network));
    record.wait_stderr("ready");
    send(&network, "mqtt", &messages(200));
    wait(|| written(&file, "t/gear") == 100 && written(&file, "t/speed") == 100);
    record.terminate();
    record
        .finish()
        .expect_status(0)
        .expect_stderr(&["received 200 messages on 2 topics of patterns, lost 0"]);
    let (one, other) = (check(&deployment, &folder.path("drive.mcap")), check(&deployment, &file));
    assert_eq!(decided(&one.stdout), decided(&other.stdout), "{}", other.stderr);
}

/// Waits for a condition.
fn wait(is: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is() {
        assert!(Instant::now() < end, "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number of messages on a topic that a recording has so far: a recorder writes once a second.
fn written(file: &str, topic: &str) -> u64 {
    let listed = rondel(["topics", file, "--format", "json"]);
    let seen: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let topics = seen["topics"].as_array().into_iter().flatten();
    topics.filter(|of| of["name"] == topic).filter_map(|of| of["messages"].as_u64()).sum()
}

#[test]
fn ros2_is_recorded_with_its_types() {
    let Some(python) = python("ros2_is_recorded_with_its_types") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    folder.file(
        "chatter.rondel",
        "topic chatter \"/fleet/chatter\" : std_msgs/msg/String\n\
         @time(steps) property short = chatter.data != \"n 4\"\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: chatter.rondel\nros2: {{ middleware: dds, domain: {domain} }}\n\
             dds: {{ interface: lo, domain: {domain} }}\ntopics:\n  chatter: ros2:/fleet/chatter\n"
        ),
    );
    folder.file("texts", (0..10).map(|i| format!("n {i}\n")).collect::<String>());
    let file = folder.path("drive.mcap");
    let own = ["run", &deployment, "--format", "json", "--emit", "every", "--count", "10"];
    let mut run = start_rondel(own);
    let mut record = start_rondel(["record", &deployment, "-o", &file, "--count", "10"]);
    run.wait_stderr("ready");
    record.wait_stderr("ready");
    let texts = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &texts];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    let live = run.finish();
    live.expect_status(0);
    record.finish().expect_status(0);
    let verdicts = |text: &str| -> Vec<(Value, Value)> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (line["step"].clone(), line["verdict"].clone())).collect()
    };
    let checked =
        rondel(["check", &folder.path("chatter.rondel"), &file, "--format", "json", "--emit", "every"]);
    checked.expect_status(1);
    assert_eq!(verdicts(&checked.stdout), verdicts(&live.stdout));
    assert_eq!(verdicts(&live.stdout).len(), 10);
    let path = PathBuf::from(&file);
    let (name, encoding) = ("std_msgs/msg/String".to_owned(), "ros2msg".to_owned());
    assert_eq!(topics(&python, &path), [("/fleet/chatter".into(), "cdr".into(), name, encoding, 10)]);
    let script = "
import sys
from pathlib import Path
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
expected = ['n %d' % i for i in range(10)]
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    assert reader.get_header().profile == 'ros2'
    assert [m[3].data for m in reader.iter_decoded_messages()] == expected
with AnyReader([Path(sys.argv[1])]) as reader:
    assert [reader.deserialize(raw, c.msgtype).data for c, _, raw in reader.messages()] == expected
";
    let read = Command::new(&python).args(["-c", script, &file]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let seen = ros2_topics(&python, &file);
    assert_eq!(seen[0][3..], json!(["UNKNOWN", 0, "RELIABLE", "VOLATILE", null]).as_array().unwrap()[..]);
}

/// The topics of a recording of ROS 2 as PyPI's `rosbags` and `mcap-ros2-support` read them, after they have read every
/// message: name, type, whether the hash is that of the type, history, depth, reliability, durability and deadline of
/// each publisher, in the form of rosbag2 before version 9.
fn ros2_topics(python: &Path, file: &str) -> Vec<Vec<Value>> {
    let script = "
import json, sys
from pathlib import Path
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    assert reader.get_header().profile == 'ros2'
    decoded = [message for _, _, _, message in reader.iter_decoded_messages()]
    assert [m.metadata for m in reader.iter_metadata() if m.name == 'rosbag2'] == [{'serialized_metadata': ''}]
    hashes = {}
    for channel in reader.get_summary().channels.values():
        hashes[channel.topic] = channel.metadata['topic_type_hash']
        text = channel.metadata.get('offered_qos_profiles', '')
        assert 'avoid_ros_namespace_conventions: false' in text and not set(text) & set('{}\"'), text
with AnyReader([Path(sys.argv[1])]) as reader:
    read = [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages()]
    assert len(read) == len(decoded) > 0
    for c in sorted(reader.connections, key=lambda c: c.topic):
        right = hashes[c.topic] == reader.typestore.hash_rihs01(c.msgtype)
        own = [c.topic, c.msgtype, right]
        for q in c.ext.offered_qos_profiles:
            forever = q.deadline.sec == 9223372036 and q.deadline.nsec == 854775807
            deadline = None if forever else q.deadline.sec + q.deadline.nsec / 1e9
            own += [q.history.name, q.depth, q.reliability.name, q.durability.name, deadline]
        print(json.dumps(own))
";
    let read = Command::new(python).args(["-c", script, file]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let text = String::from_utf8(read.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A topic of ROS 2 on DDS has its name and type in ROS 2, from its publisher or from a folder, and what its publisher
/// offers; the replay offers the same.
#[test]
fn offers_of_dds_publishers_are_recorded_and_replayed() {
    let Some(python) = python("offers_of_dds_publishers_are_recorded_and_replayed") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    std::fs::create_dir_all(folder.path("rover_msgs/msg")).unwrap();
    folder.file("rover_msgs/msg/Battery.msg", "float64 charge\n");
    let options = ["rt/rover/battery", "--kind", "battery", "--domain", &domain, "--transient-local", "3"];
    let mut publisher =
        independent(&python, "dds_typed.py", &[&options[..], &["--deadline", "0.5"]].concat());
    // A recorder waits two seconds for a publisher that describes the type, and then begins without it.
    publisher.wait_stdout("ready");
    let known = ["--type", "rover_msgs/msg/Battery", "--schemas", &folder.path(".")];
    let record = |file: &str, own: &[&str]| {
        let own = [&["record", "dds+cdr:rt/rover/battery", "-o", file, "--count", "3"], own].concat();
        start_rondel(arguments(&own, &dds(&domain)))
    };
    let files = ["discovered", "known"].map(|name| folder.path(&format!("{name}.mcap")));
    let mut recording = [record(&files[0], &[]), record(&files[1], &known)];
    for record in &mut recording {
        record.wait_stderr("ready");
    }
    publisher.write(b"wait 2\nwrite 1 3\n");
    let expected = |history: &str, depth: u64| {
        let name = ["/rover/battery", "rover_msgs/msg/Battery"];
        vec![json!([name[0], name[1], true, history, depth, "RELIABLE", "TRANSIENT_LOCAL", 0.5])]
    };
    for (record, file) in recording.into_iter().zip(&files) {
        record.finish().expect_status(0);
        assert_eq!(json!(ros2_topics(&python, file)), json!(expected("UNKNOWN", 0)));
    }
    publisher.close_input();
    publisher.finish();
    // The deployment of the address on DDS reads what has the name in ROS 2.
    folder.file(
        "battery.rondel",
        "topic battery \"battery\" : rover_msgs/msg/Battery\nproperty low = battery.charge < 0.15\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: battery.rondel\nschemas: [.]\ndds: {{ interface: lo, domain: {domain} }}\n\
             topics: {{ battery: \"dds:rt/rover/battery\" }}\n"
        ),
    );
    rondel(["check", &deployment, &files[0]]).expect_status(1);
    // It goes back to its address.
    let again = folder.path("again.mcap");
    let mut second = record(&again, &known);
    second.wait_stderr("ready");
    let replay = rondel(arguments(&["replay", &files[0], "--wait", "60"], &dds(&domain)));
    replay.expect_status(0).expect_stderr(&["/rover/battery -> dds:rt/rover/battery: 3 messages"]);
    second.finish().expect_status(0);
    assert_eq!(json!(ros2_topics(&python, &again)), json!(expected("UNKNOWN", 0)));
}

/// The same over Zenoh, where publishers announce everything, for a type of ROS 2 and one that a node describes.
#[test]
fn offers_of_zenoh_publishers_are_recorded() {
    let Some(python) = python("offers_of_zenoh_publishers_are_recorded") else { return };
    let (endpoint, folder) = (free_endpoint(), Folder::new());
    let options = ["/battery", "--domain", "9", "--mode", "router", "--listen", &endpoint, "--count", "4"];
    let mut node = independent(&python, "ros2_zenoh_described.py", &options);
    node.wait_stdout("ready");
    folder.file(
        "all.rondel",
        "topic battery \"/battery\" : rover_msgs/msg/Battery\ntopic chatter \"/chatter\" : std_msgs/msg/String\n\
         property charged = battery.charge < 1 or chatter.data == \"\"\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: all.rondel\nros2: {{ middleware: zenoh, domain: 9 }}\n\
             zenoh: {{ mode: client, connect: {endpoint} }}\n\
             topics: {{ battery: \"ros2:/battery\", chatter: \"ros2:/chatter\" }}\n"
        ),
    );
    let file = folder.path("all.mcap");
    let mut record = start_rondel(["record", &deployment, "-o", &file, "--count", "9"]);
    record.wait_stderr("ready");
    let options = ["/chatter", "--domain", "9", "--mode", "client", "--connect", &endpoint];
    let own = ["--keep", "5", "--count", "5"];
    let chatter = independent(&python, "ros2_zenoh_publish.py", &[&options[..], &own].concat());
    chatter.finish().expect_status(0);
    record.finish().expect_status(0);
    node.close_input();
    node.finish();
    let expected = json!([
        ["/battery", "rover_msgs/msg/Battery", true, "KEEP_LAST", 10, "RELIABLE", "VOLATILE", null],
        ["/chatter", "std_msgs/msg/String", true, "KEEP_LAST", 5, "RELIABLE", "TRANSIENT_LOCAL", null],
    ]);
    assert_eq!(json!(ros2_topics(&python, &file)), expected);
}

#[test]
fn files_are_split_and_survive_a_crash() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let section = format!("zenoh: {{ mode: client, connect: {endpoint} }}");
    let extra = ["--split-size", "4 KiB", "--compression", "none"];
    let deployment = recorded_is_live(&folder, &section, &network, "zenoh", &extra);
    let parts: Vec<String> = (0..9)
        .map(|i| folder.path(&format!("drive_{i}.mcap")))
        .filter(|part| Path::new(part).exists())
        .collect();
    assert!(parts.len() > 2, "{parts:?}");
    let merged = rondel(
        [
            &["check", &deployment, "--merge", "--format", "json", "--emit", "every"][..],
            &parts.iter().map(String::as_str).collect::<Vec<_>>(),
        ]
        .concat(),
    );
    assert!(decided(&merged.stdout).len() > 300, "{}", merged.stderr);
    // It does not replace a file.
    rondel(["record", &deployment, "-o", &folder.path("drive.mcap"), "--split-size", "4 KiB"])
        .expect_status(2)
        .expect_stderr(&["exists already, and is not replaced"]);
    rondel(["record", &deployment, "-o", &folder.path("no/where.mcap")])
        .expect_status(3)
        .expect_stderr(&["there is no folder"]);
    // A file that is in the way is skipped, and nothing is lost.
    folder.file("way_1.mcap", "mine");
    let way = folder.path("way.mcap");
    let own = [
        "record",
        &deployment,
        "-o",
        &way,
        "--count",
        "200",
        "--split-size",
        "4 KiB",
        "--compression",
        "none",
    ];
    let mut record = start_rondel(own);
    record.wait_stderr("ready");
    send(&network, "zenoh", &messages(200));
    record.finish().expect_status(0).expect_stderr(&["wrote 200 messages in", "way_0.mcap", "way_2.mcap"]);
    assert_eq!(std::fs::read_to_string(folder.path("way_1.mcap")).unwrap(), "mine");
    // Killed in between: what was written a second ago is there.
    let file = folder.path("killed.mcap");
    let mut record = start_rondel(["record", &deployment, "-o", &file]);
    record.wait_stderr("ready");
    send(&network, "zenoh", &messages(200));
    let size = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    wait(|| size() > 1000);
    wait(|| rondel(["topics", &file]).stdout.contains("t/speed"));
    record.kill();
    let checked = rondel(["check", "-q", "--on-error", "skip", &deployment, &file]);
    checked.expect_stderr(&["cut off"]);
}

#[test]
fn a_failing_disk_is_reported_and_counted() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    // A limit of the size of files stands for a full disk.
    let file = folder.path("full.mcap");
    let limited = format!("trap '' XFSZ; ulimit -f 8; exec '{}' \"$@\"", support::RONDEL);
    let mut command = Command::new("sh");
    let own = ["record", "zenoh:t/*", "-o", &file, "--compression", "none", "--count", "200"];
    command.args(["-c", &limited, "sh"]).args(arguments(&own, &network));
    let mut record = Process::start(command);
    record.wait_stderr("ready");
    send(&network, "zenoh", &messages(200));
    record.wait_stderr("cannot write");
    record.finish().expect_status(3).expect_stderr(&["received 200 messages", "lost"]);
    // The rest of the recording does not pass for the whole.
    let checked = rondel(["check", "-f", "true or v > 0", "--topics", "t/speed", &file]);
    assert!(matches!(checked.status, Some(3 | 4)), "{:?} {}", checked.status, checked.stderr);
    assert!(
        checked.stderr.contains("not written") || checked.stderr.contains("cut off"),
        "{}",
        checked.stderr
    );
    // The folder goes away.
    let gone = folder.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let file = format!("{gone}/drive.mcap");
    let own = ["record", "zenoh:t/*", "-o", &file, "--count", "20"];
    let mut record = start_rondel(arguments(&own, &network));
    record.wait_stderr("ready");
    wait(|| Path::new(&file).exists());
    std::fs::remove_dir_all(&gone).unwrap();
    send(&network, "zenoh", &messages(20));
    record.wait_stderr("was removed or moved");
    record.finish().expect_status(3).expect_stderr(&["received 20 messages", "lost"]);
}

/// Types that do not fit the publishers, and topics without messages, are named.
#[test]
fn topics_without_messages_are_named() {
    let Some(python) = python("topics_without_messages_are_named") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    folder.file("texts", "one\n");
    let file = folder.path("wrong.mcap");
    let own = ["record", "dds:rt/fleet/chatter", "-o", &file, "--type", "std_msgs/msg/Bool"];
    let mut record = start_rondel(arguments(&own, &dds(&domain)));
    record.wait_stderr("ready");
    let texts = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &texts];
    let publisher = independent(&python, "dds_publish.py", &options);
    record.wait_stderr("its type is");
    record.terminate();
    record.finish().expect_status(5).expect_stderr(&["publishers that do not match 1", ": NO MESSAGE"]);
    drop(publisher);
}

/// Messages sent while the recorder was stopped are recorded with later times, and no verdict is taken from those.
#[test]
fn a_stopped_recorder_notes_the_pause() {
    let (endpoint, folder) = (free_endpoint(), Folder::new());
    let file = folder.path("stopped.mcap");
    let own = ["record", "zenoh:q", "zenoh:a", "-o", &file];
    let mut record = start_rondel(arguments(&own, &zenoh_listening("router", &endpoint)));
    record.wait_stderr("ready");
    let send = |to: &str| {
        let publish = arguments(&["publish", "--to", to, "--wait", "60"], &zenoh("client", &endpoint));
        rondel_with_input(publish, b"{\"n\":1}\n").expect_status(0);
    };
    send("zenoh:q");
    record.signal("STOP");
    // For longer than what counts as a pause.
    std::thread::sleep(Duration::from_millis(1500));
    record.signal("CONT");
    record.wait_stderr("the recorder did not run for");
    send("zenoh:a");
    record.terminate();
    record.finish();
    let text = "topic q topic a property fast = on(q) -> eventually[0, 500 ms] on(a)";
    let checked = rondel(["check", &folder.file("fast.rondel", text), &file]);
    checked.expect_status(4).expect_stderr(&["verdicts that depend on them are inconclusive: fast"]);
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    let refused = |record: &str, said: &str| {
        let deployment = flight::deployment(&folder, "tcp/127.0.0.1:1", record);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    };
    refused("before: 1 s", "`record` needs `on: violation`");
    refused("on: error", "`on` of `record` must be violation");
    refused("on: violation, before: 10", "`before` must be a duration such as 10 s");
    refused("on: violation, after: 2 h", "must be at most 1 h");
    refused("on: violation, keep: 0", "`keep` must be a number of files");
    refused("on: violation, memory: 10 kB", "`memory` must be a whole number with a unit, from 1 MiB");
    refused("on: violation, directory: x", "write `folder`");
    folder.file("taken", "");
    let taken = flight::deployment(&folder, "tcp/127.0.0.1:1", "on: violation, folder: taken/x");
    for command in ["validate", "run"] {
        rondel([command, &taken])
            .expect_status(3)
            .expect_stderr(&["cannot record in the folder", "is not a folder"]);
    }
    let deployment = flight::deployment(&folder, "tcp/127.0.0.1:1", "on: violation, folder: new/e");
    let fine = rondel(["validate", &deployment]);
    assert!(
        fine.expect_status(0).stdout.contains("10 s before a violation and 5 s after it"),
        "{}",
        fine.stdout
    );
    assert!(!folder.as_path().join("new").exists());
}
