//! The section `group:` of a deployment.

use std::time::Duration;

use rondel_net::dds::Reliability;
use rondel_net::networks::NetworkSettings;
use rondel_net::ros2::Middleware;

use super::alignment::duration;
use super::places::{Place, Role};
use super::yaml::{Form, Item, Mistakes, Synonyms};
use super::{Address, Deployment, Durability};

/// The lease, unless it is set.
const LEASE: Duration = Duration::from_millis(100);
/// The limits of the lease. Below them, the delays of a scheduler would count as silence.
pub const LEASES: (Duration, Duration) = (Duration::from_millis(15), Duration::from_secs(60));
/// The limit of the preference, in both directions.
pub const PREFER: i64 = 1_000_000;
/// The beginning of the topic of each group.
const TOPICS: &str = "rondel/group/";
/// The networks that can carry the messages of a group.
const NETWORKS: [&str; 3] = ["zenoh", "mqtt", "dds"];

/// Names that people write for settings of a group.
const SYNONYMS: Synonyms = &[
    (&["group", "id", "cluster"], "write `name`, such as `name: braking`"),
    (&["timeout", "heartbeat", "ttl", "interval", "after"], "write `lease`, such as `lease: 100 ms`"),
    (
        &["priority", "preference", "rank", "weight"],
        "write `prefer: N`: the member with the larger number takes over",
    ),
    (&["on", "topic", "transport"], "write `network`: zenoh, mqtt or dds"),
];

/// A group of runs, of which one publishes its verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Its name.
    pub name: String,
    /// The topic of its messages.
    pub address: Address,
    /// Time without a sign of life after which the active member is replaced.
    pub lease: Duration,
    /// Of two members that can take over, the one with the larger number does.
    pub prefer: i64,
}

/// The settings that a group cannot have beside it.
pub(super) struct Beside<'y> {
    /// The section `synchronize:`.
    pub synchronize: Option<Item<'y>>,
    /// The setting `durability:`.
    pub durability: Option<(Item<'y>, Option<Durability>)>,
    /// The setting `reload:`.
    pub reload: Option<Item<'y>>,
    /// Whether a simulation sets the time.
    pub is_simulated: bool,
}

/// Reads the section, for the sinks of verdicts.
pub(super) fn group<'y>(
    item: Item<'y>,
    sinks: &[Vec<Address>],
    beside: &Beside<'y>,
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Option<GroupSettings> {
    let (mut name, mut what) = (Some(item), "group");
    let (mut network, mut lease, mut prefer) = (None, None, None);
    if item.is_mapping() {
        let mut members = item.members("group", mistakes);
        (name, what, network) = (members.get("name"), "name", members.get("network"));
        (lease, prefer) = (members.get("lease"), members.get("prefer"));
        members.finish(SYNONYMS, mistakes);
    }
    check_beside(item, beside, mistakes);
    if name.is_none() {
        mistakes.at(item, "`group` needs `name`, such as `name: braking`: all members have the same");
    }
    let lease = lease.map_or(Some(LEASE), |item| read_lease(item, mistakes));
    let prefer = prefer.map_or(Some(0), |item| item.integer("prefer", -PREFER..=PREFER, mistakes));
    let name = name.and_then(|item| read_name(item, what, mistakes));
    let network = network_of(item, network, sinks, mistakes)?;
    let (name, lease, prefer) = (name?, lease?, prefer?);
    match Address::parse_sink(&format!("{network}:{TOPICS}{name}")) {
        Ok(mut address) => {
            set_delivery(&mut address);
            places.push(Place::new(Role::Group, "`group`", &address, item));
            Some(GroupSettings { name, address, lease, prefer })
        }
        Err(error) => {
            mistakes.at(item, error);
            None
        }
    }
}

/// Lets the messages of groups be sent and received best effort, if the address is that of a topic of groups on DDS.
pub fn set_delivery(address: &mut Address) {
    if let Address::Dds(topic, _, qos) = address
        && topic.starts_with(TOPICS)
    {
        // A reliable publisher waits for the acknowledgements of a member that was killed, until its participant's lease
        // ends: it could not send its own signs meanwhile.
        qos.reliability = Some(Reliability::BestEffort);
    }
}

/// Refuses settings that need one process.
fn check_beside(item: Item<'_>, beside: &Beside<'_>, mistakes: &mut Mistakes) {
    if let Some(synchronize) = beside.synchronize {
        mistakes.at(synchronize, "a synchronizer has no verdicts to withhold: leave `group` out");
    }
    if let Some((durability, Some(Durability::Exactly(_)))) = beside.durability {
        mistakes.at(
            durability,
            "`durability: exactly` and `group` cannot be used together: a standby would not acknowledge its messages, as \
             only the active member writes snapshots",
        );
    }
    if let Some(reload) = beside
        .reload
        .filter(|reload| reload.text("reload", &mut Mistakes::default()).is_some_and(|text| text == "watch"))
    {
        mistakes.at(
            reload,
            "a member of a `group` is not reloaded: leave `reload` out, and restart one member after the other, as in \
             `rondel standby promote`",
        );
    }
    if beside.is_simulated {
        mistakes.at(
            item,
            "with `use_sim_time` there is no `group`: verdicts have no ids there, by which a repeated one is recognised",
        );
    }
}

/// Refuses gates on another network than the signs of life: a member that has lost the others there could still pass
/// messages on.
pub(super) fn check_gates(
    item: Option<Item<'_>>,
    deployment: &Deployment,
    networks: &NetworkSettings,
    mistakes: &mut Mistakes,
) {
    let (Some(item), Some(group)) = (item, &deployment.group) else { return };
    let own = network_below(&group.address, networks);
    for to in deployment.gates.iter().map(|gate| &gate.to) {
        let network = network_below(to, networks);
        // Wrong settings of ROS 2 are reported elsewhere.
        if network == own || network.is_none() && matches!(to, Address::Ros2(..)) {
            continue;
        }
        let why = match network {
            Some(network) => format!("write `network: {network}` in `group`"),
            None => "this network has no groups".to_owned(),
        };
        mistakes.at(
            item,
            format!(
                "the gate to {to} and its `group` need one network: a member that the others do not reach must not pass \
                 messages on; {why}"
            ),
        );
    }
}

/// The network that carries an address, as `network:` of a group names it; `None` for one that no group uses.
fn network_below(address: &Address, networks: &NetworkSettings) -> Option<&'static str> {
    match address {
        Address::Zenoh(..) => Some("zenoh"),
        Address::Mqtt(..) => Some("mqtt"),
        Address::Dds(..) => Some("dds"),
        Address::Ros2(..) => match networks.ros2.as_ref()?.as_ref().ok()?.middleware {
            Middleware::Zenoh => Some("zenoh"),
            Middleware::Dds => Some("dds"),
        },
        Address::Kafka(..) | Address::Stdout => None,
    }
}

fn read_lease(item: Item<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    let nanos = duration(item, "lease", "100 ms", "", mistakes)?;
    let lease = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
    if !(LEASES.0..=LEASES.1).contains(&lease) {
        mistakes.at(item, "`lease` must be from 15 ms to 60 s");
        return None;
    }
    Some(lease)
}

/// Reads a name, which is a part of a topic on every network. `what` is the setting that has it.
fn read_name(item: Item<'_>, what: &str, mistakes: &mut Mistakes) -> Option<String> {
    if let Some(Form::Boolean(_) | Form::Integer(_) | Form::Number(_)) = item.form() {
        let kind = item.kind();
        mistakes.at(
            item,
            format!("`{what}` must be text, such as braking, not {kind}: put it in quotes if it is the name"),
        );
        return None;
    }
    let name = item.text(what, mistakes)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        mistakes.at(item, "the name of a `group` has letters, digits, `_` and `-`, at most 64");
        return None;
    }
    Some(name)
}

/// The network of the messages: the given one, or that of the first sink that can carry them.
fn network_of(
    group: Item<'_>,
    given: Option<Item<'_>>,
    sinks: &[Vec<Address>],
    mistakes: &mut Mistakes,
) -> Option<&'static str> {
    if let Some(item) = given {
        let text = item.text("network", mistakes)?;
        let known = NETWORKS.into_iter().find(|name| *name == text);
        if known.is_none() {
            let why = match text.as_str() {
                "kafka" => {
                    "`network: kafka` is not possible: Kafka delivers too late for a lease; use zenoh, mqtt or dds"
                }
                "ros2" => "`network: ros2` is not possible: write the network below it, zenoh or dds",
                _ => "`network` must be zenoh, mqtt or dds",
            };
            mistakes.at(item, why);
        }
        return known;
    }
    let network = sinks.iter().flatten().find_map(|sink| match sink {
        Address::Zenoh(..) => Some("zenoh"),
        Address::Mqtt(..) => Some("mqtt"),
        Address::Dds(..) => Some("dds"),
        Address::Kafka(..) | Address::Ros2(..) | Address::Stdout => None,
    });
    if network.is_none() {
        mistakes.at(
            group,
            "`group` needs `network`: zenoh, mqtt or dds, as no verdicts go there; its members find each other on it",
        );
    }
    network
}
