//! Discovery in a domain: publishers, subscriptions, and the types of topics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cyclors::dds_attach_t;
use rondel_decode::schema::Schema;

use super::described::{AnnouncedType, Descriptor};
use super::domain::Domain;
use super::entity::{Entity, check, duration};
use super::publishers::{AnnouncedPublisher, announced, changed, publications, subscriptions};
use super::{DeclareError, OfferedQos};

/// Limit of listed publishers and subscriptions.
const LISTED: usize = 65_536;

/// Type of a topic as its publisher announces it.
#[derive(Clone, Debug)]
pub struct DiscoveredType {
    /// Name with its modules, such as `geometry_msgs::msg::dds_::PoseStamped_`.
    pub name: String,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Description of the type, or the reason why there is none.
    pub schema: Result<Schema, String>,
}

/// Maximum number of types of a topic that are considered.
const TYPES: usize = 16;

/// A publisher or a subscription in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredEndpoint {
    /// Its id.
    pub id: [u8; 16],
    /// The id of its participant.
    pub participant: [u8; 16],
    /// Whether it publishes.
    pub publishes: bool,
    /// The topic.
    pub topic: String,
    /// Name of the type with its modules.
    pub type_name: String,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Whether it describes the type.
    pub is_described: bool,
    /// The hash of the type in ROS 2, if it states one.
    pub type_hash: Option<String>,
    /// Quality of service that it offers or requests.
    pub qos: OfferedQos,
}

/// The publishers in a domain, as they appear and leave.
#[derive(Debug)]
pub struct Publishers {
    reader: Entity,
    _domain: Arc<Domain>,
}

impl Publishers {
    pub(super) fn watch(domain: Arc<Domain>) -> Result<Publishers, DeclareError> {
        Ok(Publishers { reader: publications(&domain)?, _domain: domain })
    }

    /// Calls `each` for every change since the last call, with the number of the publisher; with its description if it
    /// has appeared, and with `true` if it still exists.
    pub fn look(&self, mut each: impl FnMut(u64, Option<DiscoveredEndpoint>, bool)) {
        changed(&self.reader, |handle, endpoint, is_there| {
            each(handle, endpoint.map(|endpoint| endpoint.listed(true)), is_there);
        });
    }
}

/// Waits for data of readers.
struct Waiting {
    waitset: Entity,
}

impl Waiting {
    fn new(domain: &Domain, readers: &[&Entity]) -> Result<Waiting, DeclareError> {
        // SAFETY: a live handle.
        let waitset = unsafe { cyclors::dds_create_waitset(domain.participant()) };
        let waitset = Entity::own(waitset, "DDS wait set")?;
        for reader in readers {
            // SAFETY: a live handle. The condition is deleted with its reader.
            let condition =
                unsafe { cyclors::dds_create_readcondition(reader.handle(), cyclors::DDS_ANY_STATE) };
            let condition = check(condition, "DDS condition")?;
            // SAFETY: live handles.
            check(unsafe { cyclors::dds_waitset_attach(waitset.handle(), condition, 0) }, "DDS wait set")?;
        }
        Ok(Waiting { waitset })
    }

    fn wait(&self, until: Instant) {
        let limit = duration(until.saturating_duration_since(Instant::now()));
        let mut woken: [dds_attach_t; 2] = [0; 2];
        // SAFETY: a live handle, and room for the stated number of handles.
        unsafe { cyclors::dds_waitset_wait(self.waitset.handle(), woken.as_mut_ptr(), woken.len(), limit) };
    }
}

/// Waits for a publisher of a topic that `is_meant` and whose type `fits`, and for the description of this type. Returns
/// one that does not fit, or has no description, only when the limit is over: a publisher that is discovered a little
/// later may fit.
pub(super) fn discovered_type(
    domain: &Domain,
    is_meant: impl Fn(&str) -> bool,
    type_name: Option<&str>,
    limit: Duration,
    fits: impl Fn(&Schema) -> bool,
) -> Result<Option<DiscoveredType>, DeclareError> {
    let until = Instant::now() + limit;
    let reader = publications(domain)?;
    let waiting = Waiting::new(domain, &[&reader])?;
    let mut known: Vec<AnnouncedType> = Vec::new();
    let mut best: Option<DiscoveredType> = None;
    loop {
        let first_new = known.len();
        announced(&reader, |_, publisher| {
            let fits = |publisher: &AnnouncedPublisher<'_>| {
                let named = |name: &str| publisher.type_name.to_bytes() == name.as_bytes();
                publisher.topic.to_str().is_ok_and(&is_meant) && type_name.is_none_or(named)
            };
            if let Some(publisher) = publisher.filter(fits) {
                let announced = AnnouncedType::of(&publisher);
                if known.len() < TYPES && !known.iter().any(|known| known.is_same(&announced)) {
                    known.push(announced);
                }
            }
        });
        // Publishers with a description first.
        known[first_new..].sort_by_key(|found| found.described.is_none());
        for found in &known[first_new..] {
            let left = until.saturating_duration_since(Instant::now());
            let schema = match &found.described {
                Some(described) => match Descriptor::resolve(domain, described, left, || false) {
                    Ok(descriptor) => descriptor.schema().map_err(|error| error.to_string()),
                    Err(reason) => Err(reason.unwrap_or_else(|| {
                        "the publisher does not send the description of its type in time".to_owned()
                    })),
                },
                None => Err("the publisher does not describe its type".to_owned()),
            };
            let name = found.name.to_string_lossy().into_owned();
            let is_fit = schema.as_ref().is_ok_and(&fits);
            let is_better = best.as_ref().is_none_or(|best| best.schema.is_err() && schema.is_ok());
            let found = DiscoveredType { name, keyed: found.keyed, schema };
            if is_fit {
                return Ok(Some(found));
            }
            if is_better {
                best = Some(found);
            }
        }
        if Instant::now() >= until {
            return Ok(best);
        }
        waiting.wait(until);
    }
}

/// Returns the discovered publishers and subscriptions once no new one has appeared for `quiet`, at most after `limit`.
pub(super) fn endpoints(
    domain: &Domain,
    quiet: Duration,
    limit: Duration,
) -> Result<Vec<DiscoveredEndpoint>, DeclareError> {
    let until = Instant::now() + limit;
    let readers = [(publications(domain)?, true), (subscriptions(domain)?, false)];
    let waiting = Waiting::new(domain, &[&readers[0].0, &readers[1].0])?;
    let mut all = std::collections::BTreeMap::new();
    let mut last_change = Instant::now();
    loop {
        for (reader, publishes) in &readers {
            announced(reader, |handle, endpoint| {
                last_change = Instant::now();
                let Some(endpoint) = endpoint else {
                    all.remove(&handle);
                    return;
                };
                if all.len() < LISTED {
                    all.insert(handle, endpoint.listed(*publishes));
                }
            });
        }
        let next = until.min(last_change + quiet);
        if Instant::now() >= next {
            return Ok(all.into_values().collect());
        }
        waiting.wait(next);
    }
}
