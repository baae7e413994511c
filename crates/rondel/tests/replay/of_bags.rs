//! Replays of bags of ROS 2, also in simulated time.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::of_json::decided;
use super::support::network::{dds_domain, free_endpoint, independent, python, router};
use super::support::{Finished, Folder, RONDEL, finish, rondel, start_rondel};
use super::{PAYLOADS, by_topic, hex, run_python};
use rondel_testkit::Process;

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
            let mut run = start_rondel(own);
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
    // The attachments have numbers from 1 on.
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
    clocks = writer.add_connection('/clock', clock, typestore=store)
    writer.write(clocks, 10**9, store.serialize_cdr(store.types[clock](clock=store.types['builtin_interfaces/msg/Time'](sec=7, nanosec=0)), clock))
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
        let mut run = start_rondel(["run", &deployment, "--format", "json", "--count", "6"]);
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

/// The replay retains a message that its publisher retained for later subscriptions.
fn retained_state_is_replayed(python: &Path, environment: &[(&str, &str)], network: &[&str]) {
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
fn retained_state_is_replayed_on_both_middlewares() {
    let Some(python) = python("replay: retained_state_is_replayed") else { return };
    let domain = dds_domain();
    let environment = [("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"), ("ROS_DOMAIN_ID", domain.as_str())];
    retained_state_is_replayed(&python, &environment, &["--dds-domain", &domain, "--dds-interface", "lo"]);
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let environment = [("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"), ("ROS_DOMAIN_ID", "12")];
    let network = ["--zenoh-mode", "client", "--zenoh-connect", &endpoint];
    retained_state_is_replayed(&python, &environment, &network);
}
