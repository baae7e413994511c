//! Types of topics on DDS that nobody has named: they are learnt from the publishers before the run begins.

use std::sync::Arc;
use std::time::Duration;

use rondel_decode::MessageType;
use rondel_net::dds::{RawType, TopicType};

use crate::deployment::{Address, Binding, Deployment};
use crate::networks::{self, NetworkSettings};
use crate::{complain, exit, say};

/// How long to wait for a publisher before it is said that one is waited for.
const SAID_AFTER: Duration = Duration::from_secs(2);

/// Whether the type of a topic is still to be learnt.
pub fn is_open(binding: &Binding) -> bool {
    binding.input.message_type.is_none() && binding.input.encoding.needs_schema()
}

/// Waits for publishers of all topics whose type is not known, and takes over their types.
///
/// # Errors
/// The exit status, after the reason was shown.
pub fn types(deployment: &mut Deployment) -> Result<(), u8> {
    if !deployment.sources.iter().any(is_open) {
        return Ok(());
    }
    // A participant of its own: the one of the run begins with the session, which needs the types.
    let settings = NetworkSettings { dds: deployment.networks.dds.clone(), ..NetworkSettings::default() };
    let networks = networks::open(&settings, true, || false)?;
    for binding in deployment.sources.iter_mut().filter(|binding| is_open(binding)) {
        let failed = |why: String| {
            complain(&format!("{}: {why}; name its definition with `schemas:` and `type:`", binding.address));
            exit::USAGE
        };
        let mut is_said = false;
        let found = loop {
            match networks.discovered_type(&binding.address, SAID_AFTER).map_err(failed)? {
                Some(found) => break found,
                None if is_said => {}
                None => {
                    is_said = true;
                    say(&format!("waiting for a publisher of {}, to learn its type", binding.address));
                }
            }
        };
        let schema = found.schema.map_err(failed)?;
        if let Address::Dds(_, topic_type, _) = &mut binding.address {
            *topic_type = TopicType::Raw(RawType { name: Some(found.name), keyed: Some(found.keyed) });
        }
        say(&format!("{}: messages of {}, as its publisher describes them", binding.address, schema.name()));
        binding.input.message_type = Some(Arc::new(MessageType::Cdr(schema)));
    }
    networks.close_within(Duration::from_secs(1));
    Ok(())
}
