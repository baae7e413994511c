//! A drive live: this process is the vehicle, and the monitor is a child.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use rondel_decode::schema::Library;
use rondel_net::adapter::{Publisher, now};
use rondel_net::ros2::{Endpoint, MessageType, Middleware, NodeName, Qos, TopicName, TypeHash};
use rondel_net::zenoh::{Mode, Ros2Node, Ros2Publisher, Session, Settings};

use super::messages::{Message, TOPICS, Topic};
use crate::child::Child;
use crate::failure::{Failure, Result, io_error};
use crate::link::{PATIENCE, free_port};

/// The endpoint in the deployment, which a free port replaces.
const ENDPOINT: &str = "tcp/localhost:7447";

/// A node of ROS 2 with a publisher on each topic.
pub struct Node {
    publishers: Vec<(Topic, Ros2Publisher)>,
    _node: Ros2Node,
    /// Dropped last.
    session: Session,
}

impl Node {
    /// Listens as the router of rmw_zenoh, and declares the publishers.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn open(endpoint: &str) -> Result<Node> {
        let listening =
            Settings { mode: Some(Mode::Router), listen: vec![endpoint.to_owned()], ..Settings::default() };
        let session = Session::open(&listening).map_err(network)?;
        let name = NodeName::new("/", "vehicle").map_err(network)?;
        let settings = rondel_net::ros2::Settings::new(Middleware::Zenoh, 0).map_err(network)?;
        let node =
            session.join_ros2(&rondel_net::ros2::Settings { node: name, ..settings }).map_err(network)?;
        let library = Library::ros().map_err(network)?;
        let mut publishers = Vec::new();
        for topic in TOPICS {
            let schema = library.schema(topic.message_type()).map_err(network)?;
            let hash = schema.rihs01().map(|hash| TypeHash::parse(&hash)).transpose().map_err(network)?;
            let endpoint = Endpoint {
                topic: TopicName::parse(topic.address()).map_err(network)?,
                message_type: MessageType::parse(topic.message_type()).map_err(network)?,
                hash,
                qos: Qos::DEFAULT,
            };
            publishers.push((topic, node.publisher(&endpoint).map_err(network)?));
        }
        Ok(Node { publishers, _node: node, session })
    }

    /// Waits until somebody has subscribed to every topic.
    ///
    /// # Errors
    /// [`Failure::Late`]
    pub fn wait_subscribed(&self) -> Result<()> {
        let matched = self.publishers.iter().all(|(_, publisher)| publisher.wait_matched(PATIENCE));
        let what = "subscriptions to every topic".to_owned();
        if matched { Ok(()) } else { Err(Failure::Late { what, limit: PATIENCE }) }
    }

    /// Publishes the messages at the times at which they are to arrive. Returns the begin of the drive, in nanoseconds
    /// since 1970, and the seconds that it took.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn publish(&self, all: &[Message]) -> Result<(u64, f64)> {
        let (begin, base_ns) = (Instant::now(), u64::try_from(now().as_nanos()).unwrap_or_default());
        for message in all {
            let due = begin + Duration::from_nanos(message.arrival_ns);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let publisher = self.publishers.iter().find(|(topic, _)| *topic == message.topic);
            if let Some((_, publisher)) = publisher {
                publisher.publish(&message.cdr(base_ns)).map_err(network)?;
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        for (_, publisher) in &self.publishers {
            publisher.flush(PATIENCE);
        }
        Ok((base_ns, seconds))
    }
}

/// Runs the monitor on a drive. Returns its verdicts, the begin of the drive, and the seconds that it took.
///
/// # Errors
/// When the network or the monitor fails.
pub fn run(rondel: &Path, deployment: &Path, folder: &Path, all: &[Message]) -> Result<(String, u64, f64)> {
    let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
    let place = |path: &Path| io_error(path.display().to_string());
    let text = fs::read_to_string(deployment).map_err(place(deployment))?.replace(ENDPOINT, &endpoint);
    let specification = deployment.with_file_name("autoware.rondel");
    fs::copy(&specification, folder.join("autoware.rondel")).map_err(place(&specification))?;
    let (copy, verdicts) = (folder.join("rondel.yaml"), folder.join("verdicts.jsonl"));
    fs::write(&copy, text).map_err(place(&copy))?;
    let node = Node::open(&endpoint)?;
    let arguments = ["run", "--emit", "violations", "--format", "json", "--count", &all.len().to_string()]
        .map(str::to_owned)
        .into_iter()
        .chain([copy.display().to_string()])
        .collect::<Vec<_>>();
    let out = File::create(&verdicts).map_err(place(&verdicts))?;
    let child = Child::start_into("the monitor", rondel, &arguments, out)?;
    node.wait_subscribed()?;
    let (base_ns, seconds) = node.publish(all)?;
    let ended = child.wait(PATIENCE)?;
    if ended.status != Some(0) {
        return Err(ended.failed("the monitor"));
    }
    let lines = fs::read_to_string(&verdicts).map_err(place(&verdicts))?;
    node.session.close().map_err(network)?;
    Ok((lines, base_ns, seconds))
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}
