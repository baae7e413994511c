//! Recordings in MCAP files, written by other libraries, checked as JSON lines are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::network::python;
use support::{Folder, rondel};

const SPECIFICATION: &str = "
topic odom \"/odom\"
topic brake \"ros2:/brake\"
topic battery \"/rover/battery\" : rover_msgs/msg/Battery
@time(steps) property limited = odom.twist.twist.linear.x < 12 or once brake.data
property braked = odom.twist.twist.linear.x > 11 -> once[0, 90 ms] brake.data
property soon = brake.data -> eventually[0, 100 ms] odom.twist.twist.linear.x > 9
property charged = battery.charge > Battery.LOW
";

/// Writes the messages as a bag and as JSON lines; returns the MCAP file and the lines.
fn record(folder: &Folder, python: &Path, store: &str) -> (String, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-recording/tests/independent/bag.py");
    let own = folder.path(store);
    std::fs::create_dir_all(&own).unwrap();
    let run = Command::new(python).args(["-B", script, &own, store, "MCAP"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = PathBuf::from(&own).join("bag/bag.mcap");
    (file.to_str().unwrap().to_owned(), format!("{own}/lines.jsonl"))
}

#[test]
fn an_mcap_file_gives_the_verdicts_of_its_lines() {
    let Some(python) = python("an_mcap_file_gives_the_verdicts_of_its_lines") else { return };
    let folder = Folder::new();
    let mut compared = 0;
    // Every store has the types of a distribution.
    for store in ["ROS2_FOXY", "ROS2_HUMBLE", "ROS2_JAZZY"] {
        let (file, lines) = record(&folder, &python, store);
        let text = folder.file("rover.rondel", SPECIFICATION);
        // Without the type, which lines do not have.
        let untyped = SPECIFICATION.replace(": rover_msgs/msg/Battery", "").replace("Battery.LOW", "0.25");
        let plain = folder.file("plain.rondel", untyped);
        for emit in ["every", "change"] {
            let of = |spec: &str, recording: &str| {
                rondel(["check", "--format", "json", "-e", emit, "--summary", "json", spec, recording])
            };
            let (messages, expected) = (of(&text, &file), of(&plain, &lines));
            messages.expect_status(1);
            assert_eq!(messages.stdout, expected.stdout, "{}", messages.stderr);
            compared += messages.stdout.lines().count();
        }
    }
    assert!(compared > 3000, "{compared}");
}

#[test]
fn a_deployment_reads_an_mcap_file() {
    let Some(python) = python("a_deployment_reads_an_mcap_file") else { return };
    let folder = Folder::new();
    let (file, _) = record(&folder, &python, "ROS2_HUMBLE");
    folder.file("rover.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        "specification: rover.rondel\nros2: { middleware: zenoh }\n\
         topics:\n  odom: { source: \"ros2:/odom\", type: nav_msgs/msg/Odometry, time: header.stamp }\n  \
         brake: { source: \"ros2:/brake\", type: std_msgs/msg/Bool }\n  battery: ros2:/rover/battery\n",
    );
    let checked = rondel(["check", "--summary", "json", "-e", "violations", &deployment, &file]);
    checked.expect_status(1).expect_stderr(&["\"events\":390", "\"undecodable\":0"]);
}

#[test]
fn folders_and_several_files_are_one_recording() {
    let Some(python) = python("folders_and_several_files_are_one_recording") else { return };
    let folder = Folder::new();
    let (file, _) = record(&folder, &python, "ROS2_HUMBLE");
    let spec = folder.file("rover.rondel", SPECIFICATION);
    let whole = Path::new(&file).parent().unwrap().to_str().unwrap().to_owned();
    let check = |arguments: &[&str]| {
        rondel(["check", "--format", "json", "-e", "every", "-q", &spec].iter().chain(arguments))
    };
    let expected = check(&[&file]);
    expected.expect_status(1);
    assert_eq!(check(&[&whole]).expect_status(1).stdout, expected.stdout);
    // Two files, in which the topics are apart, and the second of which is named twice.
    let script = "
import sys
from mcap.reader import make_reader
from mcap.writer import Writer
source, first, second = sys.argv[1:]
files = [Writer(first), Writer(second)]
for file in files: file.start('ros2', 'test')
channels = {}
for schema, channel, message in make_reader(open(source, 'rb')).iter_messages():
    file = files[channel.topic == '/odom']
    if channel.id not in channels:
        own = file.register_schema(schema.name, schema.encoding, schema.data)
        channels[channel.id] = file.register_channel(channel.topic, channel.message_encoding, own)
    file.add_message(channels[channel.id], message.log_time, message.data, message.publish_time, message.sequence)
for file in files: file.finish()
";
    let (first, second) = (folder.path("split/a_0.mcap"), folder.path("split/a_1.mcap"));
    std::fs::create_dir_all(folder.path("split")).unwrap();
    let run = Command::new(&python).args(["-c", script, &file, &first, &second]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(check(&["--merge", &first, &second]).expect_status(1).stdout, expected.stdout);
    let split = folder.path("split");
    let without = check(&[&split]);
    without.expect_status(3).expect_stderr(&[
        "metadata.yaml: it is missing; all MCAP files and databases of the folder are read as one recording",
    ]);
    assert_eq!(without.stdout, expected.stdout);
    let metadata = |files: &str| {
        let text = "rosbag2_bagfile_information:\n  storage_identifier: mcap\n  relative_file_paths: ";
        folder.file("split/metadata.yaml", format!("{text}{files}\n"));
        check(&["--on-error", "skip", &split])
    };
    assert_eq!(metadata("[a_0.mcap, a_1.mcap]").expect_status(1).stdout, expected.stdout);
    let counts = "[a_0.mcap, a_1.mcap]\n  topics_with_message_count:\n  \
                  - {topic_metadata: {name: /odom}, message_count: 301}\n  \
                  - {topic_metadata: {name: /brake}, message_count: 1}\n  \
                  - {topic_metadata: {name: /gone}, message_count: 2}";
    metadata(counts).expect_status(1).expect_stderr(&[
        "metadata.yaml: it counts 2 messages on /gone, and its files have 0",
        "metadata.yaml: it counts 301 messages on /odom, and its files have 300",
    ]);
    check(&[&split]).expect_status(3);
    let twice = metadata("[a_0.mcap, a_1.mcap, a_1.mcap]");
    twice.expect_status(1).expect_stderr(&["it is named twice, and read once"]);
    assert_eq!(twice.stdout, expected.stdout);
    metadata("[a_0.mcap, a_2.mcap]")
        .expect_status(1)
        .expect_stderr(&["a_2.mcap: No such file", "came on `odom`"]);
    check(&[&split]).expect_status(3).expect_stderr(&["a_2.mcap: No such file"]);
}

#[test]
fn topics_times_and_damage() {
    let Some(python) = python("topics_times_and_damage") else { return };
    let folder = Folder::new();
    let (file, _) = record(&folder, &python, "ROS2_HUMBLE");
    let formula = ["check", "-f", "twist.twist.linear.x < 10"];
    let run = |more: &[&str]| rondel(formula.iter().chain(more).chain(&[file.as_str()]));
    run(&[]).expect_status(2).expect_stderr(&[
        "the formula is about one topic: choose it with --topics from /brake, /noise, /odom, /rover/battery",
    ]);
    let odom = run(&["--topics", "odom"]);
    assert!(odom.expect_status(1).stdout.contains("300 events checked"), "{}", odom.stdout);
    let spaced = run(&["--topics", "odom, /nothing*"]);
    spaced.expect_status(1).expect_stderr(&["--topics /nothing*: no topic", "`$*` for a part of a level"]);
    let none = run(&["--topics", " odo ,gear"]);
    none.expect_status(2)
        .expect_stderr(&["--topics odo: no topic of the recording has this name; it has /brake"]);
    let later = run(&["--topics", "/od*m,/odom", "--from", "+1", "--to", "1700000001.98"]);
    assert!(later.expect_status(1).stdout.contains("50 events checked"), "{}", later.stdout);
    let two = "topic odom \"/odom\" topic brake \"/brake\" property p = on(odom) or on(brake)";
    let two = rondel(["check", &folder.file("two.rondel", two), "--topics", "odom", &file]);
    two.expect_stderr(&["--topics leaves out /brake, which the specification reads"]);
    assert!(two.stdout.contains("no message came on `brake`\n"), "{}", two.stdout);
    // Topics that are not there, and fields that the type does not have.
    let wrong = folder.file("wrong.rondel", "topic odo \"/odo\" property p = odo.twist.x > 1");
    let missing = rondel(["check", &wrong, &file]);
    missing.expect_status(4).expect_stderr(&["no message is on a topic of the specification"]);
    assert!(missing.stdout.contains("did you mean `/odom`?"), "{}", missing.stdout);
    assert!(missing.stdout.contains("/odom (300)"), "{}", missing.stdout);
    let wrong = folder.file("fields.rondel", "topic odom \"/odom\" property p = odom.twist.linear.x > 1");
    let missing = rondel(["check", "--summary", "json", &wrong, &file]);
    missing.expect_status(4).expect_stderr(&["cannot decode the messages on /odom: ", "\"undecodable\":300"]);
    // A recording that was not finished.
    let whole = std::fs::read(&file).unwrap();
    let cut = folder.file("cut.mcap", &whole[..whole.len() / 2]);
    let formula = [&formula[..], &["--topics", "odom"]].concat();
    let stopped = rondel(formula.iter().chain(&[cut.as_str()]));
    stopped.expect_status(3).expect_stderr(&["cut off at byte", "it is checked up to there"]);
    assert!(stopped.stdout.contains("NOT read to the end"), "{}", stopped.stdout);
    let skipped = rondel(formula.iter().chain(&["--on-error", "skip", cut.as_str()]));
    skipped.expect_status(1);
    assert!(skipped.stdout.contains("; cut: "), "{}", skipped.stdout);
    let zip = folder.file("zip.mcap", b"PK\x03\x04");
    rondel(formula.iter().chain(&[zip.as_str()]))
        .expect_status(3)
        .expect_stderr(&["this is no MCAP file, but a ZIP archive"]);
}

#[test]
fn a_first_specification_holds_for_its_bag() {
    let Some(python) = python("a_first_specification_holds_for_its_bag") else { return };
    let folder = Folder::new();
    let (file, _) = record(&folder, &python, "ROS2_HUMBLE");
    let listed = rondel(["topics", "--format", "json", &file]);
    let listed: serde_json::Value = serde_json::from_str(&listed.expect_status(0).stdout).unwrap();
    let topics: Vec<(&str, &str, &str)> = listed["topics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|topic| ["address", "name", "type"].map(|member| topic[member].as_str().unwrap()))
        .map(|[address, name, kind]| (address, name, kind))
        .collect();
    assert!(topics.contains(&("ros2:/odom", "/odom", "nav_msgs/msg/Odometry")), "{topics:?}");
    let own = folder.path("first");
    rondel(["init", &file, "--folder", &own]).expect_status(0);
    for first in ["first.rondel", "rondel.yaml"] {
        let checked = rondel(["check", "-q", "-e", "violations", &format!("{own}/{first}"), &file]);
        checked.expect_status(0).expect_stdout("");
    }
    rondel(["test", &format!("{own}/first.rondel")]).expect_status(0);
    let cut = &std::fs::read(&file).unwrap()[..2000];
    let cut = folder.file("cut.mcap", cut);
    rondel(["topics", &cut]).expect_status(3).expect_stderr(&["it is looked at up to there"]);
}

/// Missing messages count, whichever of several recordings lacks them.
#[test]
fn messages_that_are_missing_in_one_of_two_files() {
    let Some(python) = python("messages_that_are_missing_in_one_of_two_files") else { return };
    let folder = Folder::new();
    let write = "
import sys
from mcap.writer import Writer
for name, numbers in (('whole', [0, 1, 2, 3]), ('gap', [0, 1, 3])):
    file = Writer(f'{sys.argv[1]}/{name}.mcap')
    file.start('', 'test')
    channel = file.register_channel('/a', 'json', 0)
    for n in numbers: file.add_message(channel, n * 1000000000, b'{\"x\":1}', n * 1000000000, n)
    file.finish()
";
    let run = Command::new(python).args(["-c", write, &folder.path("")]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let [whole, gap] = ["whole.mcap", "gap.mcap"].map(|name| folder.path(name));
    let check = |files: &[&str], status: u8| {
        let checked = rondel(["check", "--summary", "json", "-f", "x < 5"].iter().chain(files));
        let lost = if status == 0 { "\"lost\":0" } else { "\"lost\":1" };
        checked.expect_status(status.into()).expect_stderr(&[lost]);
    };
    check(&[&whole, &whole], 0);
    check(&[&whole, &gap], 4);
    check(&[&gap, &whole], 4);
    check(&["--jobs", "1", &gap, &whole], 4);
}

#[test]
fn fields_of_messages_in_json_come_from_their_schema() {
    let Some(python) = python("fields_of_messages_in_json_come_from_their_schema") else { return };
    let folder = Folder::new();
    let script = "
import json, sys
from mcap.writer import Writer
file = Writer(sys.argv[1])
file.start()
schema = {'type': 'object', 'properties': {
    'stamp': {'type': 'object', 'title': 'time', 'properties': {'sec': {'type': 'integer'}, 'nsec': {'type': 'integer'}}},
    'speed': {'type': 'number'}, 'mode': {'type': 'string'}}}
own = file.register_schema('demo.Drive', 'jsonschema', json.dumps(schema).encode())
channel = file.register_channel('/drive', 'json', own)
for i in range(10):
    message = {'stamp': {'sec': i, 'nsec': 5}, 'speed': i * 1.5, 'mode': 'auto'}
    file.add_message(channel, i * 10**9, json.dumps(message).encode(), i * 10**9)
file.finish()
";
    let file = folder.path("drive.mcap");
    let run = Command::new(&python).args(["-c", script, &file]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let check = |property: &str| {
        let text = format!("topic drive \"/drive\" : demo.Drive\nproperty p = {property}\n");
        rondel(["check", "--format", "json", "-e", "violations", &folder.file("drive.rondel", text), &file])
    };
    let violated = check("drive.speed < 13 and drive.mode == \"auto\" and drive.stamp.sec >= 0");
    assert_eq!(violated.expect_status(1).stdout.lines().count(), 1, "{}", violated.stderr);
    check("drive.sped < 13").expect_status(2).expect_stderr(&["sped", "speed"]);
    check("drive.mode < 13").expect_status(2);
}
