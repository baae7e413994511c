//! `rondel replay`: a recording that is replayed gives a live run the verdicts of `rondel check` on the same file, and
//! subscribers that are not ours get the payloads as they were recorded, in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "../../rondel-net/tests/broker/mod.rs"]
mod broker;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

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
        // To the addresses that were recorded, faster than it was.
        ("own", with_options(&["replay", &own, "--rate", "2"])),
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
        let (received, expected) = (by_topic(&received.stdout), BTreeMap::from(expected));
        assert!(received == expected, "{name}: {received:.300?}");
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
    let sessions = AtomicU32::new(0);
    json_is_replayed(&python, &network, |count| {
        // The broker keeps the messages for a reader that has been there.
        let name = format!("subscriber{}", sessions.fetch_add(1, Ordering::Relaxed));
        let session = ["-i", &name, "-c", "-q", "1", "-t", "t/#"];
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
property limited = odom.twist.twist.linear.x < 11
property braked = odom.twist.twist.linear.x > 11 -> once[0, 90 ms] odom.twist.twist.linear.x < 3
property soon = odom.twist.twist.linear.x > 11 -> eventually[0, 190 ms] odom.twist.twist.linear.x > 9
";

/// The verdicts of each property.
fn by_property(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in decided(text) {
        let verdict: Value = serde_json::from_str(line).unwrap();
        all.entry(verdict["property"].to_string()).or_default().push(line.to_owned());
    }
    all
}

/// Replays a bag: as fast as possible with the times of messages, and at its own pace in simulated time.
fn a_bag_is_replayed(python: &Path, middleware: &str, sections: &str, domain: &str) {
    let folder = Folder::new();
    let bag = bag(&folder, python);
    folder.file("rover.rondel", ROVER);
    let deployment = |name: &str, simulated: &str| {
        folder.file(
            &format!("{name}.yaml"),
            format!(
                "specification: rover.rondel\nros2: {{ middleware: {middleware}, domain: {domain}{simulated} }}\n{sections}\n\
                 topics:\n  odom: {{ source: \"ros2:/odom\", time: header.stamp }}\n\
                 alignment: {{ max_wait: none, absent_after: never }}\n"
            ),
        )
    };
    let plain = deployment("plain", "");
    let simulated = deployment("simulated", ", use_sim_time: true");
    let checked = rondel(["check", &plain, &bag, "--format", "json", "--emit", "every"]);
    let expected = by_property(&checked.stdout);
    assert_eq!(expected.len(), 3, "{}", checked.stderr);
    assert!(expected.values().map(Vec::len).sum::<usize>() > 600);
    for (deployment, pace, said) in [
        (&plain, "--as-fast-as-possible", "left out /brake: the deployment does not have it"),
        (&simulated, "--clock", "of the recording's time"),
    ] {
        agrees(|| {
            let own = ["run", deployment, "--format", "json", "--emit", "every", "--count", "300"];
            let mut run = Process::rondel(own);
            run.wait_stderr("ready");
            let replayed = rondel(["replay", deployment, &bag, "--wait", "60", pace]);
            replayed.expect_status(0).expect_stderr(&["replayed 300 messages of 5.980 s", said]);
            let live = run.finish();
            live.expect_status(0);
            live.expect_stderr(&["received 300, checked 300, undecodable 0"]);
            (by_property(&live.stdout) == expected, live)
        });
    }
}

/// Expects that one of some attempts agrees with the recording: a machine that stands still for half a second makes the
/// clock of a simulation jump, and what depends on that time is rightly inconclusive.
#[track_caller]
fn agrees(mut attempt: impl FnMut() -> (bool, Finished)) -> Finished {
    for i in 0.. {
        let (agrees, live) = attempt();
        if agrees {
            return live;
        }
        assert!(i < 4, "{}\n{}", live.stdout, live.stderr);
    }
    unreachable!()
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

#[test]
fn a_silence_in_simulated_time_is_that_of_the_recording() {
    let Some(python) = python("replay: a_silence_in_simulated_time") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    let script = "
import sys
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
store = get_typestore(Stores.ROS2_JAZZY)
text, clock = 'std_msgs/msg/String', 'rosgraph_msgs/msg/Clock'
with Writer(sys.argv[1], version=9, storage_plugin=StoragePlugin.MCAP) as writer:
    said = writer.add_connection('/fleet/chatter', text, typestore=store)
    told = writer.add_connection('/clock', clock, typestore=store)
    writer.write(told, 10**9, store.serialize_cdr(store.types[clock](clock=store.types['builtin_interfaces/msg/Time'](sec=7, nanosec=0)), clock))
    for tenths in [10, 15, 20, 25, 100, 105]:
        writer.write(said, tenths * 10**8, store.serialize_cdr(store.types[text](data='x'), text))
";
    let bag = folder.path("bag");
    run_python(&python, script, &[&bag], "");
    folder.file(
        "chatter.rondel",
        "topic chatter \"/fleet/chatter\" : std_msgs/msg/String\nproperty spoken = once[0, 3 s] on(chatter)\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: chatter.rondel\ntopics: {{ chatter: ros2:/fleet/chatter }}\n\
             ros2: {{ middleware: dds, domain: {domain}, use_sim_time: true }}\ndds: {{ interface: lo, domain: {domain} }}\n"
        ),
    );
    let checked = rondel(["check", &deployment, &bag, "--format", "json"]);
    let verdicts = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["verdict"].to_string()).collect()
    };
    let expected = verdicts(&checked.stdout);
    assert_eq!(expected, ["\"satisfied\"", "\"violated\"", "\"satisfied\""], "{}", checked.stderr);
    let live = agrees(|| {
        let mut run = Process::rondel(["run", &deployment, "--format", "json", "--count", "6"]);
        run.wait_stderr("ready");
        let replayed = rondel(["replay", &deployment, &bag, "--clock", "--wait", "60"]);
        replayed.expect_status(0).expect_stderr(&["left out /clock: --clock publishes the time"]);
        let live = run.finish();
        live.expect_status(0);
        (verdicts(&live.stdout) == expected, live)
    });
    let silent: Value = serde_json::from_str(live.stdout.lines().nth(1).unwrap()).unwrap();
    // The time of the recording: three seconds after the message before the silence.
    let time = silent["time"].as_f64().unwrap();
    assert!((5.0..9.9).contains(&time), "{time}");
}

/// The summary of a replay as JSON.
fn summary(finished: &Finished) -> Value {
    let line = finished.stderr.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no summary:\n{}", finished.stderr))).unwrap()
}

#[test]
fn messages_are_chosen_repeated_and_counted() {
    let endpoint = free_endpoint();
    let mut tap = Process::rondel(arguments(
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
    twice.expect_status(3).expect_stderr(&["lines.jsonl: line 4: byte 10: the text ends inside a value"]);
    let said = summary(&twice);
    let counts = ["published", "failed", "passes", "unordered", "unreadable_parts", "events", "left_out"];
    let counts = counts.map(|name| said[name].clone());
    assert_eq!(counts, [10.into(), 0.into(), 2.into(), 2.into(), 2.into(), 1.into(), Value::Array(vec![])]);
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
    // What is asked to end says what was sent.
    let own = ["replay", &lines, "--to", "zenoh:new", "--wait", "0", "--rate", "0.1"];
    let alone = support::network::zenoh_listening("peer", &endpoint);
    let mut stopped = Process::rondel(arguments(&own, &alone));
    stopped.wait_stderr("nobody has subscribed to zenoh:new/a, zenoh:new/b/c, zenoh:new/d after 0 s");
    stopped.signal("INT");
    stopped.finish().expect_status(0).expect_stderr(&["stopped before the end", "NOBODY HAS SUBSCRIBED"]);
}

#[test]
fn a_broker_that_goes_away_is_said() {
    let Some(broker) = Broker::start("replay: a_broker_that_goes_away_is_said") else { return };
    let folder = Folder::new();
    let line =
        |i: u32| format!("{{\"topic\":\"a\",\"time\":{},\"data\":{{\"n\":{i}}}}}\n", f64::from(i) / 20.0);
    let lines = folder.file("lines.jsonl", (0..1200).map(line).collect::<String>());
    let at = format!("127.0.0.1:{}", broker.port);
    let own = ["replay", &lines, "--to", "mqtt", "--mqtt-broker", &at];
    let limited = [&own[..], &["--slow-consumer", "1 s"]].concat();
    let [mut limited, mut patient] = [Process::rondel(limited), Process::rondel(own)];
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

/// Lines without a frame have their time beside the fields: a deployment that takes it from there finds it.
#[test]
fn the_time_of_flat_lines_is_published_where_it_is_read() {
    let folder = Folder::new();
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    folder.file("spec.rondel", "topic a { x: int } property p = a.x < 3");
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\nzenoh: {{ mode: client, connect: {endpoint} }}\n\
             topics: {{ a: {{ source: zenoh:a, time: time }} }}\n\
             alignment: {{ max_wait: none, absent_after: never }}\n"
        ),
    );
    let lines: String =
        (0..5).map(|at| format!("{{\"time\":{at}.5,\"topic\":\"a\",\"x\":{at}}}\n")).collect();
    let lines = folder.file("lines.jsonl", lines);
    let mut run =
        Process::rondel(["run", &deployment, "--format", "json", "--emit", "every", "--count", "5"]);
    run.wait_stderr("ready");
    rondel(["replay", &deployment, &lines, "--as-fast-as-possible", "--wait", "60"]).expect_status(0);
    let live = run.finish();
    live.expect_status(0);
    let checked = rondel(["check", &deployment, &lines, "--format", "json", "--emit", "every"]);
    assert_eq!(decided(&live.stdout), decided(&checked.stdout), "{}", live.stderr);
    assert_eq!(decided(&live.stdout).len(), 5, "{}", live.stderr);
}

#[test]
fn mistakes_are_said() {
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

/// A message that its publisher kept for later subscriptions is kept by the replay, too.
fn what_was_kept_is_kept(python: &Path, environment: &[(&str, &str)], network: &[&str]) {
    let folder = Folder::new();
    let script = "
import sys
from mcap.writer import Writer
with open(sys.argv[1], 'wb') as file:
    writer = Writer(file)
    writer.start('ros2', 'test')
    text = writer.register_schema('std_msgs/msg/String', 'ros2msg', b'string data')
    forever = '{sec: 9223372036, nsec: 854775807}'
    qos = f'- {{history: 1, depth: 1, reliability: 1, durability: 1, deadline: {forever}, lifespan: {forever}, liveliness: 1}}'
    map = writer.register_channel('/map', 'cdr', text, {'offered_qos_profiles': qos})
    for at in [1, 10**12]:
        writer.add_message(map, at, bytes([0, 1, 0, 0, 3, 0, 0, 0, 111, 107, 0]), at)
    writer.finish()
";
    let file = folder.path("map.mcap");
    run_python(python, script, &[&file], "");
    let command = |own: &[&str]| {
        let mut command = Command::new(RONDEL);
        command.args(own).args(network).envs(environment.iter().copied());
        Process::start(command)
    };
    let mut replay = command(&["replay", &file, "--to", "ros2", "--wait", "0"]);
    replay.wait_stderr("waiting 999 s for what was recorded at 1000 s");
    let mut tap = command(&["tap", "ros2:/map", "--type", "std_msgs/msg/String", "--count", "1"]);
    tap.wait_stdout("ok");
    tap.finish().expect_status(0);
    replay.signal("INT");
    replay.finish().expect_status(0).expect_stderr(&["replayed 1 message of"]);
}

#[test]
fn what_was_kept_is_kept_on_both_middlewares() {
    let Some(python) = python("replay: what_was_kept_is_kept") else { return };
    let domain = dds_domain();
    let environment = [("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"), ("ROS_DOMAIN_ID", domain.as_str())];
    what_was_kept_is_kept(&python, &environment, &["--dds-domain", &domain, "--dds-interface", "lo"]);
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let environment = [("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"), ("ROS_DOMAIN_ID", "12")];
    let network = ["--zenoh-mode", "client", "--zenoh-connect", &endpoint];
    what_was_kept_is_kept(&python, &environment, &network);
}
