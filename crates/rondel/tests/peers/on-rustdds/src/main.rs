//! A node of ROS 2 on ros2-client and RustDDS.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use arguments::{Arguments, LIMIT, PERIOD, stay};
use futures::executor::block_on;
use ros2_client::qos::{History, WhenFull};
use ros2_client::{Context, MessageTypeName, Name, Node, NodeName, NodeOptions, QosProfile};
use rustdds::{DomainParticipantBuilder, Topic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[path = "../../arguments.rs"]
mod arguments;

#[derive(Debug, Serialize, Deserialize)]
struct Text {
    data: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Vector3 {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Twist {
    linear: Vector3,
    angular: Vector3,
}

#[derive(Debug, Serialize, Deserialize)]
struct Time {
    sec: i32,
    nanosec: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeyValue {
    key: String,
    value: String,
}

/// rondel_msgs/msg/Verdict.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    stamp: Time,
    about: Time,
    property: String,
    parameters: Vec<KeyValue>,
    verdict: u8,
    step: i64,
    severity: String,
    requirement: String,
    values: Vec<KeyValue>,
    robustness: f64,
    latency: f64,
    missing: String,
    evidence: String,
    id: String,
}

/// Joins a domain on the loopback, and returns a node in the namespace `/fleet`.
fn join(domain: u16) -> Node {
    let participant =
        DomainParticipantBuilder::new(domain).with_only_networks([Ipv4Addr::LOCALHOST]).build().unwrap();
    let context = Context::from_domain_participant(participant).unwrap();
    let options = NodeOptions::new().enable_rosout(false).start_parameter_services(false);
    let mut node = context.new_node(NodeName::new("/fleet", "rustdds").unwrap(), options).unwrap();
    let spinner = node.spinner().unwrap();
    thread::spawn(move || block_on(spinner.spin()));
    node
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn publish<M: Serialize>(node: &mut Node, topic: &Topic, count: u32, message: impl Fn(u32) -> M) {
    let publisher = node.create_publisher::<M>(topic, None).unwrap();
    println!("ready");
    until("a subscription", || publisher.get_subscription_count(node) > 0);
    for i in 0..count {
        publisher.publish(message(i)).map_err(|error| error.to_string()).unwrap();
        thread::sleep(PERIOD);
    }
    println!("sent");
    stay();
}

fn subscribe<M: DeserializeOwned + Debug + 'static>(
    node: &mut Node,
    topic: &Topic,
    count: u32,
    line: impl Fn(M) -> String,
) {
    let subscription = node.create_subscription::<M>(topic, None).unwrap();
    println!("ready");
    for _ in 0..count {
        let mut taken = None;
        until("a message", || {
            taken = subscription.take().unwrap();
            taken.is_some()
        });
        println!("{}", line(taken.unwrap().0));
    }
    // The samples must be acknowledged, too.
    stay();
}

fn main() {
    let Arguments { publishes, topic, message_type, count, domain, .. } = Arguments::parse();
    let mut node = join(domain);
    let (package, name) = match message_type.as_str() {
        "string" => ("std_msgs", "String"),
        "twist" => ("geometry_msgs", "Twist"),
        "verdict" => ("rondel_msgs", "Verdict"),
        other => panic!("unknown type {other}"),
    };
    let qos = QosProfile::publisher_default()
        .reliability_reliable(WhenFull::Block)
        .history(History::KeepLast { depth: 100 });
    let topic =
        node.create_topic(&Name::parse(&topic).unwrap(), MessageTypeName::new(package, name), &qos).unwrap();
    match (publishes, name) {
        (true, "String") => publish(&mut node, &topic, count, |i| Text { data: format!("n {i}") }),
        (true, "Twist") => publish(&mut node, &topic, count, |i| {
            let linear = Vector3 { x: f64::from(i), ..Vector3::default() };
            Twist { linear, angular: Vector3 { z: -f64::from(i), ..Vector3::default() } }
        }),
        (false, "String") => subscribe(&mut node, &topic, count, |text: Text| text.data),
        (false, "Verdict") => subscribe(&mut node, &topic, count, |v: Verdict| {
            format!("{} {} at step {}", v.property, v.verdict, v.step)
        }),
        (_, other) => panic!("nothing to do with {other}"),
    }
}
