//! Rates of binary messages of ROS 2: the monitor, which reads two fields of each, beside a plain subscriber, which counts.

use std::path::Path;
use std::time::Duration;

use rondel_decode::schema::Library;
use rondel_net::adapter::Publisher;
use rondel_net::address::{Address, Encoding};
use rondel_net::networks::Networks;
use rondel_net::ros2::{self, MessageType, Middleware, TypeHash};
use serde::Serialize;

use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result, same};
use crate::link::{PATIENCE, wait_subscribed};
use crate::place::Place;
use crate::program;
use crate::report::Mark;
use crate::say;
use crate::table::{Table, median};
use crate::traces::Folder;

const TOPIC: &str = "/bench/in";
const TYPE: &str = "autoware_vehicle_msgs/msg/VelocityReport";
const SPECIFICATION: &str = "topic velocity \"/bench/in\" : autoware_vehicle_msgs/msg/VelocityReport\n\
     property slow = velocity.longitudinal_velocity < 100.0 and velocity.lateral_velocity < 100.0\n";
/// The least part of the plain subscriber's rate.
const MARK: f64 = 0.9;
/// The time limit for a turn, besides 20,000 messages a second.
const LIMIT: Duration = Duration::from_secs(60);

/// Route of messages to the subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Way {
    /// DDS, as they come.
    DdsPush,
    /// DDS, every 20 ms.
    DdsPoll,
    /// Zenoh, in the format of rmw_zenoh.
    RmwZenoh,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::DdsPush => "DDS, pushed",
            Way::DdsPoll => "DDS, `poll: 20 ms`",
            Way::RmwZenoh => "rmw_zenoh",
        }
    }

    fn middleware(self) -> Middleware {
        if self == Way::RmwZenoh { Middleware::Zenoh } else { Middleware::Dds }
    }
}

/// Rates on one way, in messages per second, turn by turn.
#[derive(Clone, Debug, Serialize)]
pub struct Rates {
    way: Way,
    monitor: Vec<f64>,
    plain: Vec<f64>,
}

impl Rates {
    /// Returns the monitor's rate over the plain subscriber's: the median of the turns.
    fn ratio(&self) -> f64 {
        median(&self.monitor.iter().zip(&self.plain).map(|(m, p)| m / p).collect::<Vec<_>>())
    }
}

/// Measures every way `repeat` times, by turns.
///
/// # Errors
/// When a message is lost, or a network cannot be used.
pub fn measure(rondel: &Path, length: u64, repeat: usize) -> Result<Vec<Rates>> {
    let folder = Folder::new("rates")?;
    folder.write("rates.rondel", SPECIFICATION.as_bytes())?;
    let empty = |way| Rates { way, monitor: Vec::new(), plain: Vec::new() };
    let mut rows = [Way::DdsPush, Way::DdsPoll, Way::RmwZenoh].map(empty);
    for turn in 0..repeat {
        for row in &mut rows {
            // Each comes first as often as the other.
            for monitor in [turn.is_multiple_of(2), !turn.is_multiple_of(2)] {
                let of = monitor.then_some((rondel, &folder));
                let rate = length as f64 / pass(row.way, of, length)?;
                if monitor { row.monitor.push(rate) } else { row.plain.push(rate) }
            }
            let (name, ratio) = (row.way.name(), row.ratio());
            say(&format!("{name}, turn {}: {ratio:.2} of a plain subscriber so far", turn + 1));
        }
    }
    Ok(rows.into())
}

/// Returns the seconds from the first message at the subscriber, the monitor or a plain one, to the last one there.
fn pass(way: Way, monitor: Option<(&Path, &Folder)>, length: u64) -> Result<f64> {
    let place = Place::free(way.middleware())?;
    let networks =
        Networks::open(&place.settings("bench")?, Some(PATIENCE), || false, |_| {}).map_err(network)?;
    let publisher = publisher(&networks)?;
    let (program, arguments) = match monitor {
        Some((rondel, folder)) => {
            let path = folder.write("rondel.yaml", deployment(way, &place).as_bytes())?;
            let fixed = ["run", "--emit=change", "--summary=json"].map(str::to_owned);
            (rondel.to_owned(), [&fixed[..], &[path.display().to_string()]].concat())
        }
        None => (program::own()?, plain(&place)),
    };
    let name = if monitor.is_some() { "monitor" } else { "plain subscriber" };
    let arguments = [arguments, vec![format!("--count={length}")]].concat();
    let mut child = Child::start(name, &program, &arguments, Stdout::Nothing)?;
    let limit = LIMIT + Duration::from_micros(50) * u32::try_from(length).unwrap_or(u32::MAX);
    child.kill_after(limit);
    child.wait_for("ready", PATIENCE)?;
    wait_subscribed(&*publisher)?;
    for number in 0..length {
        publisher.publish(&message(number)).map_err(network)?;
    }
    publisher.release();
    let summary = child.wait(limit)?.summary(name)?;
    same(|| format!("{name}, {}: received", way.name()), length, summary.received)?;
    same(|| format!("{name}, {}: checked", way.name()), length, summary.checked)?;
    same(|| format!("{name}, {}: dropped", way.name()), 0, summary.dropped)?;
    drop(publisher);
    networks.close();
    Ok(summary.seconds)
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}

fn publisher(networks: &Networks) -> Result<Box<dyn Publisher>> {
    let schema = Library::ros().and_then(|library| library.schema(TYPE)).map_err(network)?;
    let hash = schema.rihs01().map(|hash| TypeHash::parse(&hash)).transpose().map_err(network)?;
    let message_type = MessageType::parse(TYPE).map_err(network)?;
    let topic = ros2::Topic::parse(TOPIC).map_err(network)?.typed(message_type, hash);
    let address = Address::Ros2(Box::new(topic), Encoding::CDR);
    networks.publisher_of(&address, Some(&schema), true).map_err(network)
}

/// Returns a VelocityReport in CDR, with the frame `base_link`.
fn message(number: u64) -> Vec<u8> {
    let speed = (number % 50) as f32 / 2.0;
    let mut cdr = vec![0, 1, 0, 0];
    // A hundred a second.
    cdr.extend(((number / 100) as u32).to_le_bytes());
    cdr.extend(((number % 100) as u32 * 10_000_000).to_le_bytes());
    cdr.extend(10_u32.to_le_bytes());
    cdr.extend(b"base_link\0\0\0");
    for value in [speed, 0.0, 0.0] {
        cdr.extend(value.to_le_bytes());
    }
    cdr
}

/// Returns the deployment of the monitor.
fn deployment(way: Way, place: &Place) -> String {
    let poll = if way == Way::DdsPoll { ", qos: { poll: 20 ms }" } else { "" };
    match place {
        Place::Dds(domain, interface) => format!(
            "specification: rates.rondel\ndds: {{ domain: {domain}, interface: {interface} }}\n\
             topics: {{ velocity: {{ source: dds:rt{TOPIC}, type: {TYPE}{poll} }} }}\nverdicts: {{ to: stdout }}\n"
        ),
        Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => format!(
            "specification: rates.rondel\nros2: {{ middleware: zenoh, domain: 0 }}\nzenoh: {{ connect: {endpoint} }}\n\
             topics: {{ velocity: ros2:{TOPIC} }}\nverdicts: {{ to: stdout }}\n"
        ),
    }
}

/// Returns the arguments of the plain subscriber.
fn plain(place: &Place) -> Vec<String> {
    let mut arguments = ["peer", "count"].map(str::to_owned).to_vec();
    arguments.extend(match place {
        Place::Dds(domain, interface) => vec![
            format!("--topic=dds:rt{TOPIC}"),
            format!("--type={TYPE}"),
            format!("--dds-domain={domain}"),
            format!("--dds-interface={interface}"),
        ],
        Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => {
            vec![format!("--topic=zenoh:0{TOPIC}/**"), format!("--zenoh-connect={endpoint}")]
        }
    });
    arguments
}

/// Returns the marks: for messages that are pushed.
pub fn marks(rows: &[Rates]) -> Vec<Mark> {
    let mark = |row: &Rates| {
        Mark::at_least(format!("{}: monitor over plain subscriber", row.way.name()), row.ratio(), MARK, "")
    };
    rows.iter().filter(|row| row.way != Way::DdsPoll).map(mark).collect()
}

/// Returns the table.
pub fn table(rows: &[Rates]) -> Table {
    let heads = ["way", "monitor, messages/s", "plain subscriber, messages/s", "ratio"];
    let mut table = Table::new("Binary messages of ROS 2", &heads);
    for row in rows {
        let rate = |rates: &[f64]| format!("{:.0}", median(rates));
        table.row(vec![
            row.way.name().to_owned(),
            rate(&row.monitor),
            rate(&row.plain),
            format!("{:.2}", row.ratio()),
        ]);
    }
    table.note(
        "VelocityReport in CDR at full rate; the monitor reads two fields and emits verdicts on change. From the first \
         message at the subscriber to the last one there. The plain subscriber takes messages as they come on every way. \
         Medians of the turns, the ratio of neighbours.",
    );
    table
}

#[cfg(test)]
mod tests {
    use rondel_net::ros2::MessageType;

    use super::*;

    #[test]
    fn the_message_is_of_its_type() {
        // Stamp, nine letters and a zero, three numbers at a multiple of four.
        let cdr = message(7);
        assert_eq!(cdr.len(), 4 + 8 + 4 + 10 + 2 + 12);
        assert_eq!(cdr[28..32], 3.5_f32.to_le_bytes());
        assert!(MessageType::parse(TYPE).is_ok());
    }
}
