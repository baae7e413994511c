//! ROS 2 over Zenoh between Rondel and programs that write and read rmw_zenoh's formats by hand, on loopback.

#![cfg(feature = "zenoh")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::ros2::qos::Durability;
use rondel_net::ros2::{
    self, Endpoint, Graph, MessageType, Middleware, NodeName, Qos, QosOverrides, TopicName, TypeHash,
};
use rondel_net::zenoh::{Mode, Ros2Node, Ros2Subscription, Session, Settings};
use rondel_testkit::Process;

const LIMIT: Duration = Duration::from_secs(30);
const TOPIC: TopicId = TopicId(3);
/// Each test has its own session, but names show which one a message belongs to.
const DOMAIN: u32 = 42;
/// The hash of std_msgs/msg/String.
const STRING: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

/// Returns the Python with the independent clients, if there is one.
fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "zenoh, rosbags")
}

/// An independent client. Dropping it ends it.
struct Client {
    process: Process,
    /// Number of lines taken from its output.
    taken: usize,
}

impl Client {
    fn start(python: &Path, script: &str, endpoint: &str, arguments: &[&str]) -> Client {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent");
        let mut command = Command::new(python);
        command.arg("-B").arg(folder.join(script)).args(arguments);
        command.args(["--domain", &DOMAIN.to_string(), "--connect", endpoint]);
        Client { process: Process::start(command), taken: 0 }
    }

    fn line(&mut self) -> String {
        self.taken += 1;
        self.process.take_stdout(1).remove(0).trim_end().to_owned()
    }

    #[track_caller]
    fn expect(&mut self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// Writes a line to its standard input.
    fn send(&mut self, line: &str) {
        self.process.write(format!("{line}\n").as_bytes());
    }

    /// Waits for the end and returns the rest of the output.
    #[track_caller]
    fn finish(self) -> String {
        let finished = self.process.finish();
        finished.expect_status(0);
        finished.stdout.lines().skip(self.taken).map(|line| format!("{line}\n")).collect()
    }
}

/// A message: text, number, time relative to the publishers' epoch, and publisher.
type Message = (String, Option<u64>, Option<i64>, u64);

/// Received messages.
#[derive(Default)]
struct Received {
    all: Mutex<Vec<Message>>,
    changed: Condvar,
}

impl Receiver for Received {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        assert_eq!(topic, TOPIC);
        for sample in samples {
            // CDR: the header of four bytes, the length, the text and a zero.
            let length = u32::from_le_bytes(sample.payload[4..8].try_into().unwrap()) as usize;
            let text = String::from_utf8(sample.payload[8..7 + length].to_vec()).unwrap();
            let time = sample.source_time.map(|time| time.as_nanos() - 1_700_000_000_000_000_000);
            let (number, publisher) = (
                sample.origin.map(|origin| origin.number),
                sample.origin.map_or(0, |origin| origin.publisher),
            );
            self.all.lock().unwrap().push((text, number, time, publisher));
            self.changed.notify_all();
        }
    }
}

impl Received {
    /// Waits for `count` messages, and returns them with their numbers.
    #[track_caller]
    fn wait(&self, count: usize) -> Vec<Message> {
        let all = self.all.lock().unwrap();
        let all = self.changed.wait_timeout_while(all, LIMIT, |all| all.len() < count).unwrap().0;
        assert_eq!(all.len(), count, "{all:?}");
        all.clone()
    }

    fn texts(&self, count: usize) -> Vec<String> {
        self.wait(count).into_iter().map(|(text, ..)| text).collect()
    }
}

fn texts(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|i| format!("n {i}")).collect()
}

/// Opens a session that listens, like the router of rmw_zenoh, with a node on it.
fn node(name: &str) -> (String, Session, Ros2Node) {
    let endpoint = rondel_testkit::free_endpoint();
    let listening =
        Settings { mode: Some(Mode::Router), listen: vec![endpoint.clone()], ..Settings::default() };
    let session = Session::open(&listening).unwrap();
    let node = NodeName::parse(name).unwrap();
    let settings = ros2::Settings { node, ..ros2::Settings::new(Middleware::Zenoh, DOMAIN).unwrap() };
    let joined = session.join_ros2(&settings).unwrap();
    (endpoint, session, joined)
}

fn endpoint(topic: &str, hash: Option<&str>, qos: Qos) -> Endpoint {
    Endpoint {
        topic: TopicName::parse(topic).unwrap(),
        message_type: MessageType::parse("std_msgs/msg/String").unwrap(),
        hash: hash.map(|hash| TypeHash::parse(hash).unwrap()),
        qos,
    }
}

fn kept(depth: u64) -> Qos {
    let overrides = QosOverrides { durability: Some(Durability::TransientLocal), ..QosOverrides::default() };
    Qos { depth, ..Qos::DEFAULT.with(&overrides) }
}

fn subscribe(node: &Ros2Node, endpoint: &Endpoint) -> (Arc<Received>, Ros2Subscription) {
    let received = Arc::<Received>::default();
    (Arc::clone(&received), node.subscribe(endpoint, TOPIC, Arc::clone(&received)).unwrap())
}

/// Waits until a condition holds.
#[track_caller]
fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "it never came to that");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn cdr(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len() + 1).unwrap();
    [&[0, 1, 0, 0][..], &length.to_le_bytes(), text.as_bytes(), &[0]].concat()
}

#[test]
fn messages_have_their_numbers_and_times() {
    let Some(python) = python("messages_have_their_numbers_and_times") else { return };
    let (place, _session, node) = node("monitor");
    for hash in [None, Some(STRING)] {
        for attachment in ["good", "named"] {
            let (received, subscription) =
                subscribe(&node, &endpoint("/fleet/r1/chatter", hash, Qos::DEFAULT));
            let options =
                ["/fleet/r1/chatter", "--count", "8", "--lose", "3", "4", "--attachment", attachment];
            Client::start(&python, "ros2_zenoh_publish.py", &place, &options).finish();
            let all = received.wait(6);
            let numbers: Vec<u64> = all.iter().map(|(_, number, ..)| number.unwrap()).collect();
            let times: Vec<i64> = all.iter().map(|(_, _, time, _)| time.unwrap()).collect();
            // Three and four are missing: the statistics of the run count them by these numbers.
            assert_eq!(numbers, [1, 2, 5, 6, 7, 8]);
            assert_eq!(times, [1, 2, 5, 6, 7, 8]);
            assert!(all.iter().all(|(.., publisher)| *publisher == all[0].3));
            assert!(subscription.close(LIMIT));
            assert_eq!(subscription.problems(), rondel_net::adapter::Problems::default());
            assert_eq!(Arc::strong_count(&received), 1, "the receiver is released");
        }
    }
}

#[test]
fn missing_and_broken_attachments_are_counted() {
    let Some(python) = python("missing_and_broken_attachments_are_counted") else { return };
    let (place, _session, node) = node("monitor");
    for attachment in ["none", "short"] {
        let (received, subscription) = subscribe(&node, &endpoint("/chatter", Some(STRING), Qos::DEFAULT));
        let options = ["/chatter", "--count", "5", "--attachment", attachment];
        Client::start(&python, "ros2_zenoh_publish.py", &place, &options).finish();
        assert_eq!(received.texts(5), texts(0..5));
        assert!(received.wait(5).iter().all(|(_, number, time, _)| number.is_none() && time.is_none()));
        assert_eq!(subscription.problems().unmarked, 5);
    }
}

#[test]
fn messages_of_another_type_are_refused_and_counted() {
    let Some(python) = python("messages_of_another_type_are_refused_and_counted") else { return };
    let (place, _session, node) = node("monitor");
    let (received, subscription) = subscribe(&node, &endpoint("/chatter", Some(STRING), Qos::BEST_AVAILABLE));
    let other = STRING.replace("df66", "0000");
    // Publishers with another hash, without any (ROS 2 Humble), and with another type.
    let options = ["/chatter", "--count", "5", "--keep", "5", "--hash", &other, "--stay"];
    let mut wrong = Client::start(&python, "ros2_zenoh_publish.py", &place, &options);
    wrong.expect("early 0");
    wrong.expect("sent 5");
    let bool_type = ["/chatter", "--count", "0", "--type", "std_msgs/msg/Bool", "--stay"];
    let mut bools = Client::start(&python, "ros2_zenoh_publish.py", &place, &bool_type);
    bools.expect("early 0");
    until(|| subscription.problems().malformed == 5 && subscription.problems().incompatible == 2);
    let options = ["/chatter", "--count", "5", "--hash", "TypeHashNotSupported"];
    Client::start(&python, "ros2_zenoh_publish.py", &place, &options).finish();
    assert_eq!(received.texts(5), texts(0..5));
    let problems = subscription.problems();
    assert_eq!((problems.malformed, problems.incompatible, problems.unmarked), (5, 2, 0));
    wrong.finish();
    bools.finish();
}

#[test]
fn kept_messages_are_received_first() {
    let Some(python) = python("kept_messages_are_received_first") else { return };
    let (place, _session, node) = node("monitor");
    // The publisher exists before the subscription, and has sent more than it keeps.
    let options = ["/early", "--early", "20", "--keep", "8", "--count", "5", "--wait-for-line", "--stay"];
    let mut publisher = Client::start(&python, "ros2_zenoh_publish.py", &place, &options);
    publisher.expect("early 20");
    let (received, subscription) = subscribe(&node, &endpoint("/early", Some(STRING), kept(10)));
    // Received before it sends more, of which it also keeps eight.
    assert_eq!(received.texts(8), texts(12..20));
    publisher.send("go on");
    assert_eq!(received.texts(13), texts(12..25));
    let all = received.wait(13);
    // Exact times, and numbers without a gap.
    assert!(
        all.iter()
            .zip(12..)
            .all(|((_, number, time, _), i)| (*number, *time) == (Some(i), Some(i as i64 + 1))),
        "{all:?}"
    );
    publisher.finish();
    assert!(subscription.drain(Duration::from_millis(50), LIMIT));
    assert_eq!(received.texts(13), texts(12..25), "nothing comes twice");

    // The publisher comes later, and sends at once: it keeps all until they are requested.
    let (received, _subscription) = subscribe(&node, &endpoint("/late", Some(STRING), kept(10)));
    let options = ["/late", "--early", "5", "--keep", "10", "--count", "5", "--stay"];
    let publisher = Client::start(&python, "ros2_zenoh_publish.py", &place, &options);
    assert_eq!(received.texts(10), texts(0..10));
    publisher.finish();

    // A subscription that does not request them does not get them.
    let options = ["/volatile", "--early", "6", "--keep", "8", "--count", "2"];
    let mut publisher = Client::start(&python, "ros2_zenoh_publish.py", &place, &options);
    publisher.expect("early 6");
    let (received, _subscription) = subscribe(&node, &endpoint("/volatile", Some(STRING), Qos::DEFAULT));
    assert_eq!(received.texts(2), texts(6..8));
    publisher.finish();
}

#[test]
fn a_publisher_without_messages_does_not_block_others() {
    let Some(python) = python("a_publisher_without_messages_does_not_block_others") else { return };
    let (place, session, node) = node("monitor");
    let options = ["/quiet", "--keep", "8", "--count", "3"];
    let mut publisher = Client::start(&python, "ros2_zenoh_publish.py", &place, &options);
    publisher.expect("early 0");
    let (received, _subscription) = subscribe(&node, &endpoint("/quiet", Some(STRING), kept(10)));
    assert_eq!(received.texts(3), texts(0..3));
    assert!(session.recovered().is_empty(), "nothing was missed");
    publisher.finish();
}

#[test]
fn messages_are_read_as_those_of_rmw_zenoh() {
    let Some(python) = python("messages_are_read_as_those_of_rmw_zenoh") else { return };
    let (place, _session, node) = node("/rondel/monitor");
    let volatile = node.publisher(&endpoint("/verdict", Some(STRING), Qos::DEFAULT)).unwrap();
    let mut subscriber =
        Client::start(&python, "ros2_zenoh_subscribe.py", &place, &["/verdict", "--count", "5"]);
    subscriber.expect("ready");
    assert!(volatile.wait_matched(LIMIT));
    (0..5).for_each(|i| volatile.publish(&cdr(&format!("n {i}"))).unwrap());
    let lines = subscriber.finish();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (i, line) in lines.iter().enumerate() {
        assert_eq!((&line["data"], &line["number"]), (&format!("n {i}").into(), &(i + 1).into()));
        assert_eq!(line["key"], format!("{DOMAIN}/verdict/std_msgs::msg::dds_::String_/{STRING}"));
        assert_eq!(line["gid"], lines[0]["gid"]);
        assert!(line["time"].as_i64().unwrap() > 1_700_000_000_000_000_000);
    }

    // Kept for later subscriptions, up to the depth; and discovered by existing ones.
    let early = node.publisher(&endpoint("/early", Some(STRING), kept(4))).unwrap();
    (0..10).for_each(|i| early.publish(&cdr(&format!("n {i}"))).unwrap());
    let options = ["/early", "--count", "6", "--keep", "10"];
    let mut subscriber = Client::start(&python, "ros2_zenoh_subscribe.py", &place, &options);
    subscriber.expect("ready");
    let mut line = || serde_json::from_str::<serde_json::Value>(&subscriber.line()).unwrap();
    for i in 6..10 {
        assert_eq!((line())["data"], format!("n {i}"));
    }
    (10..12).for_each(|i| early.publish(&cdr(&format!("n {i}"))).unwrap());
    let last = [line(), line()];
    assert_eq!(last.each_ref().map(|line| line["number"].as_u64()), [Some(11), Some(12)]);
    subscriber.finish();

    let options = ["/late", "--count", "3", "--keep", "10"];
    let mut subscriber = Client::start(&python, "ros2_zenoh_subscribe.py", &place, &options);
    subscriber.expect("ready");
    let late = node.publisher(&endpoint("/late", Some(STRING), kept(4))).unwrap();
    (0..3).for_each(|i| late.publish(&cdr(&format!("n {i}"))).unwrap());
    assert_eq!(subscriber.finish().lines().count(), 3);
}

#[test]
fn publishers_and_subscriptions_are_in_the_graph() {
    let Some(python) = python("publishers_and_subscriptions_are_in_the_graph") else { return };
    let (place, session, node) = node("/rondel/monitor");
    let (_received, subscription) = subscribe(&node, &endpoint("/chatter", Some(STRING), Qos::SENSOR_DATA));
    let publisher = node.publisher(&endpoint("/verdict", Some(STRING), kept(1))).unwrap();
    let options = ["/chatter", "--graph", "3"];
    let tokens = Client::start(&python, "ros2_zenoh_subscribe.py", &place, &options).finish();
    let graph_of = |tokens: &str| {
        let mut graph = Graph::default();
        tokens.lines().for_each(|token| assert!(graph.add(token), "{token}"));
        graph
    };
    let seen = graph_of(&tokens);
    assert_eq!(seen.nodes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["/rondel/monitor"]);
    assert_eq!(seen, session.ros2_graph(DOMAIN, LIMIT).unwrap(), "ours and theirs");

    let options = ["/chatter", "--count", "1", "--node", "talker", "--keep", "7", "--stay"];
    let mut talker = Client::start(&python, "ros2_zenoh_publish.py", &place, &options);
    talker.expect("early 0");
    talker.expect("sent 1");
    let graph = session.ros2_graph(DOMAIN, LIMIT).unwrap();
    let topics = graph.topics();
    let names: Vec<&str> = topics.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["/chatter", "/verdict"]);
    let chatter = &topics[&TopicName::parse("/chatter").unwrap()];
    let (of, end) = &chatter.publishers[0];
    assert_eq!(
        (of.to_string(), end.qos.to_string()),
        ("/talker".into(), "reliable, transient_local, keep_last 7".into())
    );
    assert_eq!(chatter.subscriptions[0].0.to_string(), "/rondel/monitor");
    assert_eq!(chatter.subscriptions[0].1.qos, Qos::SENSOR_DATA);
    assert_eq!(graph.nodes().len(), 2);

    assert!(subscription.close(LIMIT));
    drop((publisher, node));
    talker.finish();
    until(|| session.ros2_graph(DOMAIN, LIMIT).unwrap().tokens().count() == 0);
}
