//! A node of ROS 2 on hiroz, which speaks the format of rmw_zenoh.

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::thread;

use arguments::{Arguments, LIMIT, PERIOD, stay};
use hiroz::context::ZContextBuilder;
use hiroz::msg::{SerdeCdrSerdes, ZMessage};
use hiroz::node::ZNode;
use hiroz::qos::{QosDurability, QosHistory, QosProfile};
use hiroz::{Builder, MessageTypeInfo, WithTypeInfo};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[path = "../../arguments.rs"]
mod arguments;

/// Larger messages are lost on the way: the session of the publisher filters them after they were numbered.
const LARGEST: usize = 600;

#[derive(Debug, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "std_msgs/msg/String")]
struct Text {
    data: String,
}

#[derive(Debug, Default, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "geometry_msgs/msg/Vector3")]
struct Vector3 {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Debug, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "geometry_msgs/msg/Twist")]
struct Twist {
    linear: Vector3,
    angular: Vector3,
}

#[derive(Debug, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "builtin_interfaces/msg/Time")]
struct Time {
    sec: i32,
    nanosec: u32,
}

#[derive(Debug, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "diagnostic_msgs/msg/KeyValue")]
struct KeyValue {
    key: String,
    value: String,
}

#[derive(Debug, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "rondel_msgs/msg/Verdict")]
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

/// A type without a public definition: its node describes it.
#[derive(Debug, Serialize, Deserialize, MessageTypeInfo)]
#[ros_msg(type_name = "rover_msgs/msg/Battery")]
struct Battery {
    stamp: Time,
    charge: f32,
    maker: String,
    codes: Vec<u16>,
    limits: Vector3,
    loading: bool,
}

impl ZMessage for Battery {
    type Serdes = SerdeCdrSerdes<Battery>;
}

impl ZMessage for Text {
    type Serdes = SerdeCdrSerdes<Text>;
}

impl ZMessage for Twist {
    type Serdes = SerdeCdrSerdes<Twist>;
}

impl ZMessage for Verdict {
    type Serdes = SerdeCdrSerdes<Verdict>;
}

/// Connects to an endpoint, and returns a node in the namespace `/fleet`.
fn join(domain: u16, endpoint: &str) -> ZNode {
    let filter =
        json!([{ "flows": ["egress"], "messages": ["put"], "key_exprs": ["**"], "size_limit": LARGEST }]);
    let context = ZContextBuilder::default()
        .with_domain_id(usize::from(domain))
        .with_mode("client")
        .with_json("connect/endpoints", json!([endpoint]))
        .with_json("low_pass_filter", filter)
        .disable_multicast_scouting()
        .build()
        .unwrap();
    let node = context.create_node("hiroz").with_namespace("/fleet");
    node.with_type_description_service().build().unwrap()
}

async fn publish<M>(node: &ZNode, topic: &str, qos: QosProfile, count: u32, message: impl Fn(u32) -> M)
where
    M: ZMessage + WithTypeInfo,
{
    let publisher = node.create_pub::<M>(topic).with_qos(qos).build().unwrap();
    println!("ready");
    assert!(publisher.wait_for_subscription(1, LIMIT).await, "a subscription");
    for i in 0..count {
        publisher.publish(&message(i)).unwrap();
        thread::sleep(PERIOD);
    }
    println!("sent");
    stay();
}

fn subscribe<M>(node: &ZNode, topic: &str, qos: QosProfile, count: u32, line: impl Fn(M) -> String)
where
    M: ZMessage<Serdes = SerdeCdrSerdes<M>> + WithTypeInfo + DeserializeOwned + Serialize + Debug,
{
    let subscription = node.create_sub::<M>(topic).with_qos(qos).build().unwrap();
    println!("ready");
    for _ in 0..count {
        println!("{}", line(subscription.recv_timeout(LIMIT).unwrap()));
    }
    stay();
}

#[tokio::main]
async fn main() {
    let Arguments { publishes, topic, message_type, count, domain, endpoint } = Arguments::parse();
    let node = join(domain, &endpoint.expect("the endpoint is missing"));
    let history = QosHistory::KeepLast(NonZeroUsize::new(100).unwrap());
    let qos = QosProfile { history, ..QosProfile::default() };
    match (publishes, message_type.as_str()) {
        // The third and the fourth are lost.
        (true, "string") => {
            let long = |i| if (2..4).contains(&i) { "x".repeat(2 * LARGEST) } else { String::new() };
            publish(&node, &topic, qos, count, |i| Text { data: format!("n {i}{}", long(i)) }).await;
        }
        (true, "twist") => {
            let twist = |i| {
                let linear = Vector3 { x: f64::from(i), ..Vector3::default() };
                Twist { linear, angular: Vector3 { z: -f64::from(i), ..Vector3::default() } }
            };
            publish(&node, &topic, qos, count, twist).await;
        }
        (true, "battery") => {
            let battery = |i: u32| Battery {
                stamp: Time { sec: 5, nanosec: i },
                charge: i as f32 / 10.0,
                maker: "rover".to_owned(),
                codes: vec![7, i as u16],
                limits: Vector3 { y: -1.0, ..Vector3::default() },
                loading: i % 2 == 1,
            };
            publish(&node, &topic, qos, count, battery).await;
        }
        (false, "string") => subscribe(&node, &topic, qos, count, |text: Text| text.data),
        (false, "verdict") => {
            // Those that came before it are kept for it.
            let qos = QosProfile { durability: QosDurability::TransientLocal, ..qos };
            subscribe(&node, &topic, qos, count, |v: Verdict| {
                format!("{} {} at step {}", v.property, v.verdict, v.step)
            });
        }
        (_, other) => panic!("nothing to do with {other}"),
    }
}
