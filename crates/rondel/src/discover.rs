//! Types of topics on DDS and ROS 2 that nobody has defined: they are learnt from the publishers before the run begins.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rondel_net::dds::{DiscoveredType, RawType, TopicType};
use rondel_net::ros2::{MessageType, TypeHash};

use crate::deployment::{Address, Binding, Deployment};
use crate::networks::{self, NetworkSettings};
use crate::{complain, exit, say};

/// How long to wait for a publisher before it is said that one is waited for.
const SAID_AFTER: Duration = Duration::from_secs(2);
/// How long after that it is said again, and again.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// How many topics are asked for at once.
const AT_ONCE: usize = 32;
/// How many are named that are waited for.
const NAMED: usize = 5;

/// Whether the type of a topic is still to be learnt.
pub fn is_open(binding: &Binding) -> bool {
    binding.input.message_type.is_none() && binding.input.encoding.needs_schema()
}

/// Waits for publishers of all topics whose type is not known, and takes over their types. Gives up within
/// [`SAID_AFTER`] once it is `stopped`.
///
/// # Errors
/// The exit status, after the reason was shown.
pub fn types(deployment: &mut Deployment, stopped: impl Fn() -> bool + Sync) -> Result<(), u8> {
    if !deployment.sources.iter().any(is_open) {
        return Ok(());
    }
    // A participant of its own: the one of the run begins with the session, which needs the types.
    let open =
        || deployment.sources.iter().filter(|binding| is_open(binding)).map(|binding| &binding.address);
    let on_ros2 = open().any(|address| matches!(address, Address::Ros2(..) | Address::Zenoh(..)));
    let NetworkSettings { zenoh, dds, ros2, .. } = &deployment.networks;
    let (zenoh, ros2) = if on_ros2 { (zenoh.clone(), ros2.clone()) } else { (None, None) };
    let settings = NetworkSettings { zenoh, dds: dds.clone(), ros2, ..NetworkSettings::default() };
    let networks = networks::open(&settings, true, &stopped)?;
    let (began, mut said): (_, Option<Instant>) = (Instant::now(), None);
    loop {
        let open = deployment.sources.iter_mut().filter(|binding| is_open(binding));
        // Of all at once, so that none is asked later because of another.
        let asked: Vec<&mut Binding> = open.collect();
        let (mut learnt, mut waiting) = (Vec::new(), Vec::new());
        for some in asked.chunks(AT_ONCE) {
            let found = thread::scope(|scope| {
                let ask = |binding: &&mut Binding| {
                    let address = binding.address.clone();
                    // A publisher that was found has as long to describe its type.
                    scope.spawn(|| Asked { found: networks.discovered_type(&address, SAID_AFTER), address })
                };
                let asking: Vec<thread::ScopedJoinHandle<'_, Asked>> = some.iter().map(ask).collect();
                asking.into_iter().filter_map(|asking| asking.join().ok()).collect::<Vec<_>>()
            });
            learnt.extend(found);
        }
        for (binding, Asked { address, found }) in asked.into_iter().zip(learnt) {
            match found.map_err(|why| failed(&address, &why))? {
                Some(found) => learn(binding, found)?,
                None => waiting.push(address.to_string()),
            }
        }
        if waiting.is_empty() {
            break;
        }
        let names = listed(&waiting);
        if stopped() {
            let (types, were) = if waiting.len() == 1 { ("type", "was") } else { ("types", "were") };
            complain(&format!(
                "stopped before the {types} of {names} {were} known: nothing was received or published"
            ));
            return Err(exit::NETWORK);
        }
        if said.is_none_or(|said| said.elapsed() >= SAID_AGAIN) {
            let waited = said.map_or(String::new(), |_| format!(" for {} s", began.elapsed().as_secs()));
            said = Some(Instant::now());
            let (publisher, types) = match waiting.len() {
                1 => ("a publisher", "its type"),
                _ => ("publishers", "their types"),
            };
            say(&format!(
                "waiting for {publisher} of {names}, to learn {types}{waited}; no topic is read before"
            ));
        }
    }
    networks.close_within(Duration::from_secs(1));
    Ok(())
}

/// What the network says about a topic.
struct Asked {
    address: Address,
    found: Result<Option<DiscoveredType>, String>,
}

/// The addresses, and how many there are beyond those that are named.
fn listed(addresses: &[String]) -> String {
    let named = addresses.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match addresses.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Says why there is no type.
fn failed(address: &Address, why: &str) -> u8 {
    complain(&format!("{address}: {why}; name its definition with `schemas:` and `type:`"));
    exit::USAGE
}

/// Takes over the type that a publisher describes.
///
/// # Errors
/// The exit status, after the reason was shown.
fn learn(binding: &mut Binding, found: DiscoveredType) -> Result<(), u8> {
    let schema = found.schema.map_err(|why| failed(&binding.address, &why))?;
    match &mut binding.address {
        Address::Dds(_, topic_type, _) => {
            *topic_type = TopicType::Raw(RawType { name: Some(found.name), keyed: Some(found.keyed) });
        }
        Address::Ros2(topic, _) => {
            let hash = schema.rihs01().and_then(|hash| TypeHash::parse(&hash).ok());
            topic.message_type = MessageType::from_dds(&found.name);
            topic.hash = hash;
        }
        _ => {}
    }
    say(&format!("{}: messages of {}, as its publisher describes them", binding.address, schema.name()));
    binding.input.message_type = Some(Arc::new(rondel_decode::MessageType::Cdr(schema)));
    Ok(())
}
