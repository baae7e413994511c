//! ROS 2 among nodes that share no code with Rondel: hiroz over Zenoh, ros2-client on RustDDS over DDS. `make test-peers`
//! builds the nodes (the folder peers) and runs these tests. RONDEL_TEST_PEERS is the folder of their programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::path::PathBuf;
use std::process::Command;

use rondel_testkit::Process;
use support::network::{dds_domain, free_endpoint};
use support::{Finished, Folder, rondel, start_rondel};

const SPECIFICATION: &str = "topic chatter \"/fleet/chatter\" : std_msgs/msg/String\n\
     topic speed \"/fleet/speed\" : geometry_msgs/msg/Twist\n\
     property calm = speed.linear.x >= 0.0 and speed.angular.z != -4.0 and chatter.data != \"n 4\"\n";

/// The program of a peer, and its last arguments: where the network is.
struct Peer {
    program: &'static str,
    place: Vec<String>,
}

impl Peer {
    fn start(&self, role: &str, topic: &str, message_type: &str, count: usize) -> Process {
        let folder = std::env::var_os("RONDEL_TEST_PEERS").map(PathBuf::from);
        let folder = folder.expect("RONDEL_TEST_PEERS is set, as `make test-peers` does");
        let mut command = Command::new(folder.join(self.program));
        command.args([role, topic, message_type, &count.to_string()]).args(&self.place);
        let mut peer = Process::start(command);
        peer.wait_stdout("ready");
        peer
    }
}

/// Peers publish ten messages on each of two topics, which Rondel reads by their types; of the second, `lost` do not
/// arrive. Other peers read the verdicts, as messages of their own type and as text: these, in the words of
/// `on-…/src/main.rs`. Returns what the run wrote.
fn verdicts_of(peer: &Peer, network: &str, lost: usize, expected: &[&str]) -> Finished {
    let folder = Folder::new();
    folder.file("fleet.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: fleet.rondel\n{network}\
             topics: {{ chatter: ros2:/fleet/chatter, speed: ros2:/fleet/speed }}\n\
             verdicts: {{ to: [\"ros2+json:/fleet/text\", \"ros2:/fleet/verdict\"] }}\n"
        ),
    );
    rondel(["validate", &deployment]).expect_status(0);
    let count = (20 - lost).to_string();
    let mut run = start_rondel(["run", &deployment, "--count", &count, "--wait-subscribers", "60"]);
    // A client of Zenoh needs its router.
    run.wait_stderr("listening");
    let mut texts = peer.start("subscribe", "/fleet/text", "string", expected.len());
    let mut verdicts = peer.start("subscribe", "/fleet/verdict", "verdict", expected.len());
    run.wait_stderr("ready");
    // One after the other: the verdicts depend on the order.
    for (topic, message_type) in [("/fleet/speed", "twist"), ("/fleet/chatter", "string")] {
        let mut publisher = peer.start("publish", topic, message_type, 10);
        publisher.wait_stdout("sent");
        publisher.finish().expect_status(0);
    }
    assert_eq!(verdicts.take_stdout(expected.len()), expected);
    let read = |line: &String| {
        let verdict: serde_json::Value = serde_json::from_str(line).unwrap();
        let letter = ["satisfied", "violated", "inconclusive"].iter().position(|v| verdict["verdict"] == *v);
        format!("{} {} at step {}", verdict["property"].as_str().unwrap(), letter.unwrap(), verdict["step"])
    };
    assert_eq!(texts.take_stdout(expected.len()).iter().map(read).collect::<Vec<_>>(), expected);
    run.finish()
}

#[test]
#[ignore = "needs the programs that `make test-peers` builds"]
fn hiroz_over_zenoh() {
    let endpoint = free_endpoint();
    let peer = Peer { program: "on-hiroz", place: vec!["7".to_owned(), endpoint.clone()] };
    let network = format!(
        "ros2: {{ middleware: zenoh, domain: 7, node: /fleet/rondel }}\nzenoh: {{ mode: router, listen: {endpoint} }}\n"
    );
    let expected = [
        "calm 2 at step 0",
        "calm 1 at step 4",
        "calm 2 at step 5",
        "calm 0 at step 10",
        "calm 1 at step 12",
        "calm 0 at step 13",
    ];
    let run = verdicts_of(&peer, &network, 2, &expected);
    run.expect_status(5)
        .expect_stderr(&["received 18, checked 18, undecodable 0", "chatter: 2 messages lost"]);
}

/// A type that Rondel does not know is resolved by the node of the publisher, also for a run that began before it.
#[test]
#[ignore = "needs the programs that `make test-peers` builds"]
fn hiroz_describes_its_type() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let peer = Peer { program: "on-hiroz", place: vec!["7".to_owned(), endpoint.clone()] };
    folder.file(
        "battery.rondel",
        "topic battery \"/fleet/battery\" : rover_msgs/msg/Battery\n\
         property low = battery.charge < 0.65 and battery.codes[1] < 5 and battery.limits.y == -1.0\n\
         property known = battery.maker == \"rover\" and battery.stamp >= 5 s\n\
         property odd = battery.loading -> battery.charge > 0.05\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: battery.rondel\nros2: {{ middleware: zenoh, domain: 7, node: /fleet/rondel }}\n\
             zenoh: {{ mode: router, listen: {endpoint} }}\ntopics: {{ battery: ros2:/fleet/battery }}\n"
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--count", "10", "--strict"]);
    run.wait_stderr("waiting for a publisher of ros2:/fleet/battery, to resolve its type");
    let mut publisher = peer.start("publish", "/fleet/battery", "battery", 10);
    publisher.wait_stdout("sent");
    publisher.finish().expect_status(0);
    run.finish().expect_status(1).expect_stderr(&[
        "ros2:/fleet/battery: messages of rover_msgs/msg/Battery, as its publisher describes them",
        "received 10, checked 10, undecodable 0",
        "violated      low: violated 1 time, first at step 5",
        "satisfied     known",
        "satisfied     odd",
    ]);
}

#[test]
#[ignore = "needs the programs that `make test-peers` builds"]
fn ros2_client_over_dds() {
    let domain = dds_domain();
    let peer = Peer { program: "on-rustdds", place: vec![domain.clone()] };
    let network = format!(
        "ros2: {{ middleware: dds, domain: {domain}, node: /fleet/rondel }}\ndds: {{ interface: lo, domain: {domain} }}\n"
    );
    let expected = [
        "calm 2 at step 0",
        "calm 1 at step 4",
        "calm 2 at step 5",
        "calm 0 at step 10",
        "calm 1 at step 14",
        "calm 0 at step 15",
    ];
    let run = verdicts_of(&peer, &network, 0, &expected);
    run.expect_status(0).expect_stderr(&["received 20, checked 20, undecodable 0, dropped 0"]);
}
