//! `rondel replay`: a recording that is replayed gives a live run the verdicts of `rondel check` on the same file, and
//! subscribers that are not ours get the payloads as they were recorded, in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "../../rondel-net/tests/broker/mod.rs"]
mod broker;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use broker::Broker;
use serde_json::Value;
use support::network::{arguments, dds_domain, free_endpoint, independent, python, router, zenoh};
use support::process::Process;
use support::{Finished, Folder, RONDEL, finish, rondel};

const SPECIFICATION: &str = "
topic gear \"t/gear\" { t: time, report: int }
topic speed \"t/speed\" { t: time, v: float }
@time(steps) property limited = speed.v < 9 or once gear.report == 3
property recent = gear.report == 2 -> once[0, 25 s] speed.v > 5
property soon = gear.report == 1 -> eventually[0, 33 s] speed.v < 2
";

/// Writes lines `TOPIC PAYLOAD` as an MCAP file, 5 ms apart.
const WRITE_JSON: &str = "
import sys
from mcap.writer import Writer
with open(sys.argv[1], 'wb') as file:
    writer, channels = Writer(file), {}
    writer.start('', 'test')
    for i, line in enumerate(sys.stdin):
        topic, payload = line.rstrip('\\n').split(' ', 1)
        if topic not in channels:
            channels[topic] = writer.register_channel(topic, 'json', 0)
        at = 1_700_000_000_000_000_000 + i * 5_000_000
        writer.add_message(channels[topic], at, payload.encode(), at)
    writer.finish()
";

/// Prints the payloads of an MCAP file, `TOPIC HEX`.
const PAYLOADS: &str = "
import sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    for _, channel, message in make_reader(file).iter_messages():
        print(channel.topic, message.data.hex())
";

/// Messages whose own times are ten seconds apart.
fn messages(count: usize) -> Vec<(&'static str, String)> {
    let one = |i: usize| match i % 2 {
        0 => ("t/gear", format!("{{\"t\":{}, \"report\":{}}}", 10 * i, i / 2 % 4)),
        _ => ("t/speed", format!("{{\"t\":{}, \"v\":{}}}", 10 * i, (i * 7 % 40) as f64 / 4.0)),
    };
    (0..count).map(one).collect()
}

fn run_python(python: &Path, script: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(python);
    command.args(["-c", script]).args(arguments);
    let run = finish(&mut command, input.as_bytes());
    run.expect_status(0);
    run.stdout
}

/// The lines without what is left open at the end: by then time has passed in a run.
fn decided(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.retain(|line| !line.contains("\"inconclusive\"") || line.contains("\"step\""));
    lines.sort_unstable();
    lines
}

/// What a subscriber printed as `TOPIC HEX …`, by topic.
fn by_topic(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(topic), Some(hex)) = (words.next(), words.next()) else { continue };
        if hex.len() > 3 && hex.len().is_multiple_of(2) && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            all.entry(topic.to_owned()).or_default().push(hex.to_owned());
        }
    }
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text as DDS carries it.
fn in_cdr(text: &str) -> Vec<u8> {
    let length = text.len() as u32 + 1;
    [&[0, 1, 0, 0], &length.to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

/// A network of JSON for one test.
struct Network<'n> {
    scheme: &'n str,
    /// The section of the deployment.
    section: String,
    /// The options of a command without one.
    options: Vec<String>,
    /// How a subscriber prints a payload.
    printed: fn(&str) -> Vec<u8>,
}

/// Replays JSON, written by others, recorded by Rondel and as lines, and compares verdicts and payloads.
fn json_is_replayed(python: &Path, network: &Network<'_>, subscriber: impl Fn(usize) -> Process) {
    let Network { scheme, section, options, printed } = network;
    let folder = Folder::new();
    folder.file("spec.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\n{section}\ntopics:\n  gear: {{ source: \"{scheme}:t/gear\", time: t }}\n  \
             speed: {{ source: \"{scheme}:t/speed\", time: t }}\nalignment: {{ max_wait: none, absent_after: never }}\n"
        ),
    );
    let all = messages(200);
    let text: String = all.iter().map(|(topic, payload)| format!("{topic} {payload}\n")).collect();
    let file = folder.path("foreign.mcap");
    run_python(python, WRITE_JSON, &[&file], &text);
    let line = |(i, (topic, payload)): (usize, &(&str, String))| {
        format!("{{\"topic\":\"{topic}\",\"time\":{},\"data\":{payload}}}\n", i as f64 / 200.0)
    };
    let lines = folder.file("lines.jsonl", all.iter().enumerate().map(line).collect::<String>());
    let (own, to) = (folder.path("own.mcap"), [scheme.to_string(), "--wait".into(), "60".into()]);
    let pace = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let with_options = |own: &[&str]| arguments(own, &[&options[..], &pace("--wait 60")].concat());
    let to_network = [&["--to".to_owned()][..], &to, options].concat();
    // Each of those who listen has a replay of its own, which waits for it.
    let mut record = Process::rondel(["record", &deployment, "-o", &own, "--count", "200"]);
    record.wait_stderr("ready");
    let fast = arguments(&["replay", &deployment, &file], &pace("--as-fast-as-possible --wait 60"));
    rondel(&fast).expect_status(0).expect_stderr(&["replayed 200 messages of 0.995 s in"]);
    record.finish().expect_status(0);
    for (name, replay) in [
        ("foreign", fast),
        // To the addresses that were recorded, slower.
        ("own", with_options(&["replay", &own, "--rate", "0.1"])),
        ("lines", arguments(&["replay", &lines, "--as-fast-as-possible"], &to_network)),
    ] {
        let run = ["run", &deployment, "--format", "json", "--emit", "every", "--count", "200"];
        let mut run = Process::rondel(run);
        run.wait_stderr("ready");
        let replayed = rondel(&replay);
        replayed.expect_status(0).expect_stderr(&["replayed 200 messages"]);
        let live = run.finish();
        live.expect_status(0);
        let recording = folder.path(if name == "lines" { "lines.jsonl" } else { "foreign.mcap" });
        let checked = rondel(["check", &deployment, &recording, "--format", "json", "--emit", "every"]);
        let (live, recorded) = (decided(&live.stdout), decided(&checked.stdout));
        assert!(live.len() > 300, "{name}: {}", live.len());
        assert_eq!(live, recorded, "{name}: {}\n{}", checked.stderr, replayed.stderr);

        let subscriber = subscriber(200);
        rondel(&replay).expect_status(0);
        let received = subscriber.finish();
        received.expect_status(0);
        let of_topic = |topic: &str| -> Vec<String> {
            all.iter().filter(|(own, _)| *own == topic).map(|(_, payload)| hex(&printed(payload))).collect()
        };
        let expected = ["t/gear", "t/speed"].map(|topic| (topic.to_owned(), of_topic(topic)));
        assert_eq!(by_topic(&received.stdout), BTreeMap::from(expected), "{name}");
    }
}

/// One of the independent subscribers, once it is subscribed.
fn raw_subscriber(python: &Path, own: &[&str]) -> Process {
    let mut subscriber = independent(python, "raw_subscribe.py", own);
    subscriber.wait_stdout("ready");
    subscriber
}

#[test]
fn json_over_zenoh() {
    let Some(python) = python("replay: json_over_zenoh") else { return };
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let network = Network {
        scheme: "zenoh",
        section: format!("zenoh: {{ mode: client, connect: {endpoint} }}"),
        options: zenoh("client", &endpoint),
        printed: |text| text.as_bytes().to_vec(),
    };
    json_is_replayed(&python, &network, |count| {
        let count = count.to_string();
        let own = ["zenoh", "t/gear", "t/speed", "--connect", &endpoint, "--count", &count];
        raw_subscriber(&python, &own)
    });
}

#[test]
fn json_over_dds() {
    let Some(python) = python("replay: json_over_dds") else { return };
    let domain = dds_domain();
    let network = Network {
        scheme: "dds",
        section: format!("dds: {{ domain: {domain}, interface: lo }}"),
        options: support::network::dds(&domain),
        printed: in_cdr,
    };
    json_is_replayed(&python, &network, |count| {
        let count = count.to_string();
        let own = ["dds", "t/gear", "t/speed", "--domain", &domain, "--count", &count];
        raw_subscriber(&python, &own)
    });
}

#[test]
fn json_over_mqtt() {
    let Some(python) = python("replay: json_over_mqtt") else { return };
    let Some(broker) = Broker::start("replay: json_over_mqtt") else { return };
    let network = Network {
        scheme: "mqtt",
        section: format!("mqtt: {{ broker: \"127.0.0.1:{}\" }}", broker.port),
        options: vec!["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)],
        printed: |text| text.as_bytes().to_vec(),
    };
    json_is_replayed(&python, &network, |count| {
        // The broker keeps the messages for a reader that has been there.
        let session = ["-i", "subscriber", "-c", "-q", "1", "-t", "t/#"];
        let first = [&session[..], &["-E"]].concat();
        assert!(broker.client("mosquitto_sub", &first).status().unwrap().success());
        let count = count.to_string();
        let own = [&session[..], &["-F", "%t %x", "-C", &count, "-W", "60"]].concat();
        Process::start(broker.client("mosquitto_sub", &own))
    });
}

/// Writes a bag of ROS 2 with `rosbags`; returns its folder.
fn bag(folder: &Folder, python: &Path) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-recording/tests/independent/bag.py");
    let own = folder.path("recorded");
    std::fs::create_dir_all(&own).unwrap();
    let mut command = Command::new(python);
    finish(command.args(["-B", script, &own, "ROS2_JAZZY", "MCAP"]), b"").expect_status(0);
    format!("{own}/bag")
}

const ROVER: &str = "
topic odom \"/odom\" : nav_msgs/msg/Odometry
topic battery \"/rover/battery\" : rover_msgs/msg/Battery
@time(steps) property charged = battery.charge > 0.5
property limited = odom.twist.twist.linear.x < 11
property braked = odom.twist.twist.linear.x > 11 -> once[0, 90 ms] odom.twist.twist.linear.x < 3
property soon = odom.twist.twist.linear.x > 11 -> eventually[0, 190 ms] odom.twist.twist.linear.x > 9
";

/// Battery messages carry no time: they count when they come.
const BATTERY: &str = "
topic battery \"/rover/battery\" : rover_msgs/msg/Battery
@time(steps) property charged = battery.charge > 0.5
";

/// The verdicts of each property of `ROVER`.
fn of_one_topic(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in decided(text) {
        let verdict: Value = serde_json::from_str(line).unwrap();
        if verdict["property"] != "charged" {
            all.entry(verdict["property"].to_string()).or_default().push(line.to_owned());
        }
    }
    all
}

/// Replays a bag: as fast as possible with the times of messages, and at its own pace in simulated time.
fn a_bag_is_replayed(python: &Path, middleware: &str, sections: &str, domain: &str) {
    let folder = Folder::new();
    let bag = bag(&folder, python);
    folder.file("plain.rondel", ROVER);
    folder.file("simulated.rondel", format!("{ROVER}{BATTERY}"));
    let deployment = |name: &str, simulated: &str, topics: &str| {
        folder.file(
            &format!("{name}.yaml"),
            format!(
                "specification: {name}.rondel\nros2: {{ middleware: {middleware}, domain: {domain}{simulated} }}\n{sections}\n\
                 schemas: types\ntopics:\n  odom: {{ source: \"ros2:/odom\", time: header.stamp }}\n{topics}\
                 alignment: {{ max_wait: none, absent_after: never }}\n"
            ),
        )
    };
    folder.file("types/rover_msgs/msg/Battery.msg", "float32 LOW=0.25\nfloat32 charge\nstring name\n");
    let plain = deployment("plain", "", "");
    let simulated = deployment("simulated", ", use_sim_time: true", "  battery: ros2:/rover/battery\n");
    let checked = rondel(["check", &plain, &bag, "--format", "json", "--emit", "every"]);
    let expected = of_one_topic(&checked.stdout);
    assert_eq!(expected.len(), 3, "{}", checked.stderr);
    assert!(expected.values().map(Vec::len).sum::<usize>() > 600);
    for (deployment, pace, count, said) in [
        (&plain, "--as-fast-as-possible", "300", "left out /brake: the deployment does not have it"),
        (&simulated, "--clock", "330", "of the recording's time"),
    ] {
        let own = ["run", deployment, "--format", "json", "--emit", "every", "--count", count];
        let mut run = Process::rondel(own);
        run.wait_stderr("ready");
        let replayed = rondel(["replay", deployment, &bag, "--wait", "60", pace]);
        replayed.expect_status(0).expect_stderr(&[&format!("replayed {count} messages of 5.98"), said]);
        let live = run.finish();
        live.expect_status(0);
        live.expect_stderr(&[&format!("received {count}, checked {count}, undecodable 0")]);
        assert_eq!(of_one_topic(&live.stdout), expected, "{pace}\n{}", live.stderr);
    }
}

/// The payloads that a bag has, by topic, and the file of its messages.
fn payloads(python: &Path, bag: &str) -> BTreeMap<String, Vec<String>> {
    by_topic(&run_python(python, PAYLOADS, &[&format!("{bag}/bag.mcap")], ""))
}

/// Replays a bag as an environment of ROS 2 says.
fn replay_in(environment: &[(&str, &str)], own: &[&str]) -> Finished {
    let mut command = Command::new(RONDEL);
    command.args(own).envs(environment.iter().copied());
    Process::start(command).finish()
}

#[test]
fn a_bag_over_ros2_on_zenoh() {
    let Some(python) = python("replay: a_bag_over_ros2_on_zenoh") else { return };
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let section = format!("zenoh: {{ mode: client, connect: {endpoint} }}");
    a_bag_is_replayed(&python, "zenoh", &section, "9");

    let folder = Folder::new();
    let bag = bag(&folder, &python);
    let keys = ["11/odom/**", "11/rover/battery/**", "11/brake/**", "11/clock/**"];
    let own = ["--connect", &endpoint, "--count", "391", "--attachment"];
    let mut subscriber =
        independent(&python, "raw_subscribe.py", &[&["zenoh"], &keys[..], &own[..]].concat());
    subscriber.wait_stdout("ready");
    let environment = [("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"), ("ROS_DOMAIN_ID", "11")];
    let network = ["--zenoh-mode", "client", "--zenoh-connect", &endpoint];
    let own =
        ["replay", &bag, "--network", "ros2", "--as-fast-as-possible", "--topics", "/odom,brake,/rover/*"];
    replay_in(&environment, &[&own[..], &network, &["--clock", "--clock-rate", "0.1"]].concat())
        .expect_status(0)
        .expect_stderr(&["replayed 390 messages", "/odom -> ros2:/odom: 300 messages\n"]);
    let received = subscriber.finish();
    received.expect_status(0);
    let expected = payloads(&python, &bag);
    let hashes = "
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
store = get_typestore(Stores.ROS2_JAZZY)
store.register(get_types_from_msg('float32 LOW=0.25\\nfloat32 charge\\nstring name', 'rover_msgs/msg/Battery'))
for name in ['nav_msgs/msg/Odometry', 'std_msgs/msg/Bool', 'rover_msgs/msg/Battery', 'rosgraph_msgs/msg/Clock']:
    print(name.replace('/msg/', '::msg::dds_::') + '_/' + store.hash_rihs01(name))
";
    let types = run_python(&python, hashes, &[], "");
    let types: Vec<&str> = types.lines().collect();
    let all = by_topic(&received.stdout);
    for (topic, of_type) in ["odom", "brake", "rover/battery"].iter().zip(&types) {
        assert_eq!(all[&format!("11/{topic}/{of_type}")], expected[&format!("/{topic}")], "{topic}");
    }
    assert!(all[&format!("11/clock/{}", types[3])][0].starts_with("00010000"), "{all:?}");
    // What is attached has numbers from 1 on.
    let odom = received.stdout.lines().filter(|line| line.starts_with("11/odom/"));
    for (i, line) in odom.enumerate() {
        let attached = line.split(' ').nth(2).unwrap();
        assert_eq!((attached.len(), &attached[..16]), (66, &hex(&(i as u64 + 1).to_le_bytes())[..]));
    }
}

#[test]
fn a_bag_over_ros2_on_dds() {
    let Some(python) = python("replay: a_bag_over_ros2_on_dds") else { return };
    let domain = dds_domain();
    let section = format!("dds: {{ interface: lo, domain: {domain} }}");
    a_bag_is_replayed(&python, "dds", &section, &domain);

    let folder = Folder::new();
    let bag = bag(&folder, &python);
    let domain = dds_domain();
    let topics = ["rt/odom", "rt/rover/battery", "rt/brake"];
    let own = ["--domain", &domain, "--count", "390"];
    let mut subscriber =
        independent(&python, "raw_subscribe.py", &[&["dds"], &topics[..], &own[..]].concat());
    subscriber.wait_stdout("ready");
    let environment = [("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"), ("ROS_DOMAIN_ID", domain.as_str())];
    let own =
        ["replay", &bag, "--to", "ros2", "--as-fast-as-possible", "--topics", "/odom,/brake,/rover/battery"];
    let network = ["--dds-domain", &domain, "--dds-interface", "lo", "--wait", "60"];
    replay_in(&environment, &[&own[..], &network].concat())
        .expect_status(0)
        .expect_stderr(&["replayed 390 messages"]);
    let received = subscriber.finish();
    received.expect_status(0);
    let (all, expected) = (by_topic(&received.stdout), payloads(&python, &bag));
    for (topic, of_type) in topics.iter().zip(["nav_msgs", "rover_msgs", "std_msgs"]) {
        assert_eq!(all[*topic], expected[&topic[2..]], "{topic}");
        assert!(
            received.stdout.contains(&format!("type {topic} {of_type}::msg::dds_::")),
            "{}",
            received.stdout
        );
    }
}
