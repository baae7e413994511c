//! A drive live: this process is the vehicle, and the monitor is a child.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use rondel_decode::schema::Library;
use rondel_net::adapter::{Publisher, now};
use rondel_net::address::{Address, Encoding};
use rondel_net::networks::Networks;
use rondel_net::ros2::{self, MessageType, Middleware, TypeHash};

use super::messages::{Message, TOPICS, Topic};
use crate::child::Child;
use crate::failure::{Failure, Result, io_error};
use crate::link::{PATIENCE, SETTLE};
use crate::place::Place;

/// The endpoint in the deployment on Zenoh, which a free port replaces.
const ENDPOINT: &str = "tcp/localhost:7447";
/// The domain in the deployment on DDS, which another one replaces.
const DOMAIN: &str = "domain: 7";

/// Returns the file of the deployment, and this deployment with the place in it.
///
/// # Errors
/// When the file cannot be read.
fn deployment(place: &Place, examples: &Path) -> Result<(&'static str, String)> {
    let name = match place {
        Place::Zenoh(_) | Place::ZenohRouter(_) => "rondel.yaml",
        Place::Dds(..) => "dds.yaml",
    };
    let path = examples.join(name);
    let text = fs::read_to_string(&path).map_err(io_error(path.display().to_string()))?;
    let text = match place {
        Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => text.replace(ENDPOINT, endpoint),
        Place::Dds(domain, _) => text.replace(DOMAIN, &format!("domain: {domain}")),
    };
    Ok((name, text))
}

/// A node of ROS 2 with a publisher on each topic.
pub struct Node {
    publishers: Vec<(Topic, Box<dyn Publisher>)>,
    /// Dropped last.
    networks: Networks,
}

impl Node {
    /// Joins the network, and declares the publishers.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn open(place: &Place) -> Result<Node> {
        let networks =
            Networks::open(&place.settings("vehicle")?, Some(PATIENCE), || false, |_| {}).map_err(network)?;
        let library = Library::ros().map_err(network)?;
        let mut publishers = Vec::new();
        for topic in TOPICS {
            let schema = library.schema(topic.message_type()).map_err(network)?;
            let hash = schema.rihs01().map(|hash| TypeHash::parse(&hash)).transpose().map_err(network)?;
            let message_type = MessageType::parse(topic.message_type()).map_err(network)?;
            let of = ros2::Topic::parse(topic.address()).map_err(network)?.typed(message_type, hash);
            let address = Address::Ros2(Box::new(of), Encoding::CDR);
            let publisher = networks.publisher_of(&address, Some(&schema), false).map_err(network)?;
            publishers.push((topic, publisher));
        }
        Ok(Node { publishers, networks })
    }

    /// Waits for subscribers on every topic, and for [`SETTLE`] more, so that they have discovered the publishers as
    /// well.
    ///
    /// # Errors
    /// [`Failure::Late`]
    pub fn wait_subscribed(&self) -> Result<()> {
        let matched = self.publishers.iter().all(|(_, publisher)| publisher.wait_matched(PATIENCE));
        if !matched {
            return Err(Failure::Late { what: "subscriptions to every topic".to_owned(), limit: PATIENCE });
        }
        std::thread::sleep(SETTLE);
        Ok(())
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

/// A live drive that has ended.
pub struct Driven {
    /// The verdicts of the monitor, as JSON lines.
    pub verdicts: String,
    /// The begin of the drive, in nanoseconds since 1970.
    pub base_ns: u64,
    /// The seconds that it took.
    pub seconds: f64,
}

/// Runs the monitor on a drive, with a deployment of `examples`.
///
/// # Errors
/// When the network or the monitor fails.
pub fn run(
    rondel: &Path,
    middleware: Middleware,
    examples: &Path,
    folder: &Path,
    all: &[Message],
) -> Result<Driven> {
    let at = |path: &Path| io_error(path.display().to_string());
    let place = Place::free(middleware)?;
    let (name, text) = deployment(&place, examples)?;
    let specification = examples.join("autoware.rondel");
    fs::copy(&specification, folder.join("autoware.rondel")).map_err(at(&specification))?;
    let (copy, verdicts) = (folder.join(name), folder.join(name).with_extension("jsonl"));
    fs::write(&copy, text).map_err(at(&copy))?;
    let node = Node::open(&place)?;
    let arguments = ["run", "--emit", "violations", "--format", "json", "--count", &all.len().to_string()]
        .map(str::to_owned)
        .into_iter()
        .chain([copy.display().to_string()])
        .collect::<Vec<_>>();
    let out = File::create(&verdicts).map_err(at(&verdicts))?;
    let child = Child::start_into("the monitor", rondel, &arguments, out)?;
    node.wait_subscribed()?;
    let (base_ns, seconds) = node.publish(all)?;
    child.wait(PATIENCE)?.succeeded("the monitor")?;
    let verdicts = fs::read_to_string(&verdicts).map_err(at(&verdicts))?;
    drop(node.publishers);
    node.networks.close();
    Ok(Driven { verdicts, base_ns, seconds })
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}
