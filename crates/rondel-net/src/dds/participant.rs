//! Participants in a DDS domain.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_event::TopicId;

use super::announced_node::AnnouncedNode;
use super::discovery::{self, DiscoveredEndpoint, DiscoveredType};
use super::domain::Domain;
use super::further::Part;
use super::matches;
use super::publisher::{self, Publisher};
use super::refused::Refusals;
use super::{
    DeclareError, DeclaredTopic, Matching, Protection, PublisherSettings, Publishers, SecurityError,
    Selected, Settings, StringType, Subscription, TopicQos, TopicType,
};
use crate::adapter::{Listener, Outage, Receiver, Recovered};
use crate::ros2::NodeName;

/// The largest domain id whose ports are below 65,536.
const LAST_DOMAIN: u32 = 230;

/// Error of joining a domain.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The domain id is too large.
    #[error("DDS domain {0} does not exist: choose a domain from 0 to {LAST_DOMAIN}")]
    Domain(u32),
    /// CycloneDDS refused, for instance because the network interface does not exist.
    #[error("cannot join DDS domain {domain}{}: {reason}", on(interface))]
    Network {
        /// Domain id.
        domain: u32,
        /// Network interface of the settings.
        interface: Option<String>,
        /// CycloneDDS's reason.
        reason: String,
    },
    /// Files of DDS Security that cannot be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Security(Vec<SecurityError>),
}

/// Returns the part of the error message that names the interface.
fn on(interface: &Option<String>) -> String {
    interface.as_ref().map(|i| format!(" on interface {i}")).unwrap_or_default()
}

/// A participant in a DDS domain.
///
/// On the network it appears as two participants if it has both subscriptions and publishers. When a
/// reader's cache is full, CycloneDDS's receive thread waits and reads no acknowledgements either. A
/// publisher used by the receiver that should empty the cache waits for acknowledgements: with a common
/// receive thread, that is a deadlock.
///
/// With [DDS Security](Settings::security) it is one participant for both. Its publishers then wait for
/// acknowledgements only when 16 MB have none, and for a limited time if [`Settings::slow_consumer`] is set.
#[derive(Debug)]
pub struct Participant {
    settings: Settings,
    protection: Protection,
    state: Mutex<ParticipantState>,
}

#[derive(Debug, Default)]
struct ParticipantState {
    closed: bool,
    /// Opened with the participant, to report errors early; becomes `input` or `output`.
    spare: Option<Arc<Domain>>,
    input: Option<Arc<Domain>>,
    output: Option<Arc<Domain>>,
    writers: Vec<std::sync::Weak<publisher::Writer>>,
    /// The nodes in the graph of ROS 2.
    nodes: Vec<Arc<AnnouncedNode>>,
}

impl ParticipantState {
    /// Returns the domain of the publishers, or that of the subscriptions. If there is none, moves the spare one there or
    /// opens another, with a node of ROS 2 if one is set. With security it is one domain for both.
    fn domain(
        &mut self,
        publishes: bool,
        settings: &Settings,
        protection: Protection,
    ) -> Result<Arc<Domain>, DeclareError> {
        let ParticipantState { spare, input, output, nodes, .. } = self;
        let (place, other, suffix) = if publishes { (output, input, SINKS) } else { (input, output, "") };
        if settings.security.is_some() && place.is_none() {
            place.clone_from(other);
        }
        if let Some(domain) = place {
            return Ok(Arc::clone(domain));
        }
        let domain = match spare.take() {
            Some(domain) => domain,
            None => Arc::new(Domain::open(settings, protection)?),
        };
        // Participants discovered from here on are known to have been met while this process ran.
        matches::beat();
        if let Some(node) = &settings.node {
            let named = NodeName::new(node.namespace(), &format!("{}{suffix}", node.name()));
            nodes.push(AnnouncedNode::create(&domain, named.unwrap_or_else(|_| node.clone()))?);
        }
        *place = Some(Arc::clone(&domain));
        Ok(domain)
    }
}

impl Participant {
    /// Joins a domain. The environment variable `CYCLONEDDS_URI` is ignored.
    ///
    /// # Errors
    /// [`OpenError`]; a domain without other participants is not an error.
    pub fn open(settings: &Settings) -> Result<Participant, OpenError> {
        if settings.domain > LAST_DOMAIN {
            return Err(OpenError::Domain(settings.domain));
        }
        let protection = settings.security.as_ref().map(|files| files.check(settings.domain)).transpose();
        let protection = protection.map_err(OpenError::Security)?;
        let domain =
            Domain::open(settings, protection.unwrap_or_default()).map_err(|e| OpenError::Network {
                domain: settings.domain,
                interface: settings.interface.clone(),
                reason: e.to_string(),
            })?;
        tracing::info!(
            domain = settings.domain, interface = settings.interface.as_deref().unwrap_or("any"), peers = ?settings.peers,
            reader_queue = settings.reader_queue, "joined the DDS domain"
        );
        let state = ParticipantState { spare: Some(Arc::new(domain)), ..ParticipantState::default() };
        let protection = protection.unwrap_or_default();
        Ok(Participant { settings: settings.clone(), protection, state: Mutex::new(state) })
    }

    /// Returns the endpoints on which this participant listens.
    pub fn listeners(&self) -> Vec<Listener> {
        self.settings.listeners(self.protection)
    }

    fn state(&self) -> Result<MutexGuard<'_, ParticipantState>, DeclareError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(DeclareError::Closed) } else { Ok(state) }
    }

    /// Subscribes to a topic of strings. `receiver` gets the strings with the id `topic` until the subscription is
    /// closed or dropped.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        name: &str,
        string_type: &StringType,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let qos = TopicQos::default();
        let of = DeclaredTopic { topic_type: &TopicType::Text(string_type.clone()), qos: &qos, schema: None };
        self.subscribe_as(name, of, topic, receiver)
    }

    /// Subscribes to a topic of any type. `receiver` gets the samples with the id `topic` until the subscription is
    /// closed or dropped. With a schema, publishers with another type are read by their own one, if the receiver [wants
    /// that](Receiver::wants_types) and they describe it. Others are refused: they are counted as
    /// [incompatible](crate::adapter::Problems::incompatible), and messages of theirs received nevertheless as
    /// [malformed](crate::adapter::Problems::malformed). A publisher that neither describes its type nor has a hash of
    /// it is known only by the name of its type.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe_as<R: Receiver + ?Sized>(
        &self,
        name: &str,
        of: DeclaredTopic<'_>,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let domain = self.input()?;
        let part = Part::first(topic, None);
        Subscription::create(domain, name, of, self.settings.reader_queue, part, receiver)
    }

    /// Subscribes to every topic whose name matches the [pattern](super::check_pattern) when a publisher of it is
    /// discovered. `select` returns the receiver of a topic name; `None` to exclude the topic. All samples have the id
    /// `topic`. With a schema, publishers with another type are refused as by [`Participant::subscribe_as`]. Topics of
    /// another type are ignored and counted as [incompatible](crate::adapter::Problems::incompatible).
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe_matching<R: Receiver + ?Sized>(
        &self,
        pattern: &str,
        of: DeclaredTopic<'_>,
        topic: TopicId,
        select: impl Fn(&str) -> Option<Selected<R>> + Send + 'static,
    ) -> Result<Matching, DeclareError> {
        let domain = self.input()?;
        Matching::create(domain, pattern, of, self.settings.reader_queue, topic, select)
    }

    /// Waits up to `limit` for a publisher of a topic that `is_meant`, of this type if it is given, and returns the
    /// type that it announces; `None` if there is no publisher in time. If publishers have several types, one that
    /// `fits` is preferred.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn discovered_type(
        &self,
        is_meant: impl Fn(&str) -> bool,
        type_name: Option<&str>,
        limit: Duration,
        fits: impl Fn(&Schema) -> bool,
    ) -> Result<Option<DiscoveredType>, DeclareError> {
        discovery::discovered_type(&*self.input()?, is_meant, type_name, limit, fits)
    }

    /// Returns the publishers and subscriptions in the domain, including its own, once no others have been discovered
    /// for `quiet`, or after `limit`.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn endpoints(
        &self,
        quiet: Duration,
        limit: Duration,
    ) -> Result<Vec<DiscoveredEndpoint>, DeclareError> {
        discovery::endpoints(&*self.input()?, quiet, limit)
    }

    /// Returns the publishers in the domain, and keeps watching them.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publishers(&self) -> Result<Publishers, DeclareError> {
        Publishers::watch(self.input()?)
    }

    /// Returns the domain of the subscriptions.
    fn input(&self) -> Result<Arc<Domain>, DeclareError> {
        self.state()?.domain(false, &self.settings, self.protection)
    }

    /// Creates a publisher on a topic of strings.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publisher(
        &self,
        name: &str,
        string_type: &StringType,
        settings: PublisherSettings,
    ) -> Result<Publisher, DeclareError> {
        let qos = TopicQos::default();
        let of = DeclaredTopic { topic_type: &TopicType::Text(string_type.clone()), qos: &qos, schema: None };
        self.publisher_as(name, of, settings)
    }

    /// Creates a publisher on a topic of any type. Its payloads are strings, or whole serialised samples. With a
    /// schema, others can discover the raw type; without one, only its name.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publisher_as(
        &self,
        name: &str,
        of: DeclaredTopic<'_>,
        settings: PublisherSettings,
    ) -> Result<Publisher, DeclareError> {
        let mut state = self.state()?;
        let domain = state.domain(true, &self.settings, self.protection)?;
        let publisher = Publisher::create(
            domain,
            name,
            of,
            settings,
            self.settings.slow_consumer,
            self.settings.history,
        )?;
        state.writers.retain(|w| w.strong_count() > 0);
        state.writers.push(publisher.writer());
        Ok(publisher)
    }

    /// Returns the samples missed and fetched again so far, for each topic of subscriptions.
    pub fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        let Ok(state) = self.state() else { return Vec::new() };
        state.input.iter().flat_map(|domain| domain.recovered()).collect()
    }

    /// Returns the participants that were lost for longer than their lease and have returned, by topic. Call it several
    /// times a second: it records that this process runs.
    pub fn outages(&self) -> Vec<Outage> {
        matches::beat();
        let Ok(state) = self.state() else { return Vec::new() };
        state
            .writers
            .iter()
            .filter_map(|writer| writer.upgrade())
            .for_each(|writer| writer.look_at_matches());
        self.watched(&state).for_each(|refusals| refusals.watch());
        state.input.iter().chain(&state.output).flat_map(|domain| domain.outages()).collect()
    }

    /// Returns the number of participants that DDS Security refused so far.
    pub fn refused(&self) -> u64 {
        let Ok(state) = self.state() else { return 0 };
        self.watched(&state).map(|refusals| refusals.count()).sum()
    }

    /// Returns the refusals by DDS Security: those of the one domain that both receives and publishes.
    fn watched<'s>(&self, state: &'s ParticipantState) -> impl Iterator<Item = &'s Arc<Refusals>> {
        let mut domains = [&state.spare, &state.input, &state.output].into_iter().flatten();
        domains.find_map(|domain| domain.refusals()).into_iter()
    }

    /// Stops publishing, wakes blocked publishers, sends buffered samples and waits for their
    /// acknowledgement. Returns whether all reliable readers acknowledged everything within `limit`. Close
    /// subscriptions first. The participant leaves the domain when the last subscription and publisher is
    /// dropped. May be called repeatedly.
    pub fn close(&self, limit: Duration) -> bool {
        let mut state = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = ParticipantState { closed: true, ..ParticipantState::default() };
            std::mem::replace(&mut *state, closed)
        };
        if !state.closed {
            tracing::info!(domain = self.settings.domain, "closing the DDS participant");
        }
        // First, so that blocked publishers release the lock of their writer.
        for domain in [state.input, state.output].into_iter().flatten() {
            domain.set_closing();
        }
        let deadline = Instant::now() + limit;
        let mut acknowledged = true;
        for writer in state.writers.drain(..).filter_map(|w| w.upgrade()) {
            let flushed = writer.flush(deadline.saturating_duration_since(Instant::now()));
            if !flushed {
                tracing::debug!(
                    topic = %writer.name(),
                    "not all reliable subscribers acknowledged all samples in time; the rest may be lost"
                );
            }
            acknowledged &= flushed;
        }
        acknowledged
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}

/// Suffix of the name of the publishers' node.
const SINKS: &str = "_sinks";
