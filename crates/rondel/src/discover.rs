//! Types of topics on DDS and ROS 2 that nobody has defined: they are learnt from the publishers before the run begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_net::dds::{RawType, TopicType};
use rondel_net::ros2::{MessageType, TypeHash};

use crate::deployment::{Address, Binding, Deployment};
use crate::networks::{self, NetworkSettings};
use crate::{complain, exit, say};

/// How long to wait for a publisher before it is said that one is waited for.
const SAID_AFTER: Duration = Duration::from_secs(2);
/// How long after that it is said again, and again.
const SAID_AGAIN: Duration = Duration::from_secs(10);

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
    for binding in deployment.sources.iter_mut().filter(|binding| is_open(binding)) {
        let failed = |why: String| {
            complain(&format!("{}: {why}; name its definition with `schemas:` and `type:`", binding.address));
            exit::USAGE
        };
        let (began, mut said): (_, Option<Instant>) = (Instant::now(), None);
        // A publisher that was found has as long to describe its type.
        let found = loop {
            if let Some(found) = networks.discovered_type(&binding.address, SAID_AFTER).map_err(failed)? {
                break found;
            }
            if stopped() {
                complain(&format!(
                    "stopped before the type of {} was known: nothing was received or published",
                    binding.address
                ));
                return Err(exit::NETWORK);
            }
            if said.is_none_or(|said| said.elapsed() >= SAID_AGAIN) {
                let waited = said.map_or(String::new(), |_| format!(" for {} s", began.elapsed().as_secs()));
                said = Some(Instant::now());
                say(&format!(
                    "waiting for a publisher of {}, to learn its type{waited}; no topic is read before",
                    binding.address
                ));
            }
        };
        let schema = found.schema.map_err(failed)?;
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
    }
    networks.close_within(Duration::from_secs(1));
    Ok(())
}
