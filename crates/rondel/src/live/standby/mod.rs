//! Groups: several runs of one specification, of which one publishes its verdicts, and the others stand by.
//!
//! | module | contents |
//! |---|---|
//! | [`election`] | which member is active: pure, with times as arguments |
//! | [`message`] | signs of life and requests |
//! | [`transfer`] | the state of an active member, for a late one: pure, too |
//! | [`state`] | the state of a member, for summaries and metrics |
//! | `member` | the thread of a member |
//! | `surroundings` | the pipeline and the network on which that thread acts |

pub mod election;
mod member;
pub mod message;
#[cfg(test)]
mod simulation;
pub mod state;
mod surroundings;
pub mod transfer;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Sample, Subscription, now};
use rondel_net::zenoh::Mode;
use rondel_runtime::SessionPlan;

use self::election::{Election, Member, MemberId};
use self::member::{Event, Shared, Worker};
use self::message::{About, Message};
use self::state::{GroupHandle, GroupState};
use self::surroundings::Connected;
use crate::deployment::{Address, Deployment, GroupSettings};
use crate::live::networks::{NetworkSettings, Networks};
use crate::live::pipeline::Pipeline;
use crate::live::signals::StopFlag;
use crate::sinks::withheld::Permit;
use crate::warn;

/// Number of messages of the group that wait for its thread. Further ones are dropped: signs of life are repeated.
const QUEUE: usize = 1_024;
/// The least wait of a member that begins, for the discovery of others.
const START: i64 = 500_000_000;
/// Time limit for opening a connection of the group.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for closing the subscription, and the connection.
const LEAVE: Duration = Duration::from_millis(500);

/// A member of a group.
pub struct Membership {
    events: mpsc::SyncSender<Event>,
    thread: JoinHandle<()>,
    subscription: Box<dyn Subscription>,
    /// The connections for signs of life alone, if there are any.
    connections: Vec<Arc<Networks>>,
    handle: GroupHandle,
}

/// Everything of a run that its membership needs.
pub struct Joining {
    /// The pipeline, whose sinks have the permit.
    pub pipeline: Weak<Pipeline>,
    /// The permit to publish.
    pub permit: Arc<Permit>,
    /// The publishers of verdicts.
    pub senders: Vec<Weak<dyn Publisher>>,
    /// The subscriptions to all topics.
    pub slots: Vec<TopicId>,
    /// The plan of the session.
    pub plan: Arc<SessionPlan>,
    /// Whether the run continues from a snapshot.
    pub resumes: bool,
    /// The handle that others have.
    pub handle: GroupHandle,
}

/// The state of a member before it has joined.
pub fn begin(settings: &GroupSettings) -> GroupHandle {
    GroupHandle::new(GroupState::new(settings.name.clone(), random_id(), now().as_nanos()))
}

/// A number that no other process has.
fn random_id() -> MemberId {
    // `RandomState` is seeded by the operating system.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_i64(now().as_nanos());
    hasher.write_u32(std::process::id());
    MemberId(hasher.finish())
}

/// A hash of the settings of gates, in any order.
fn hash_of_gates(deployment: &Deployment) -> u64 {
    let spec = &deployment.specification.spec;
    let mut gates: Vec<String> = deployment.gates.iter().map(|gate| gate.text(spec)).collect();
    gates.sort_unstable();
    crc32fast::hash(gates.join("\n").as_bytes()).into()
}

/// The lease of a group in nanoseconds.
pub fn lease(settings: &GroupSettings) -> i64 {
    i64::try_from(settings.lease.as_nanos()).unwrap_or(i64::MAX)
}

/// The settings to join the network of a group beside its members: without the endpoints and the session of the run.
pub fn network_of(address: &Address, all: &NetworkSettings) -> NetworkSettings {
    let mut joined = NetworkSettings::default();
    match address {
        Address::Zenoh(..) => {
            joined.zenoh = all.zenoh.clone().map(|mut zenoh| {
                let here = std::mem::take(&mut zenoh.listen);
                let here = here
                    .iter()
                    .map(|endpoint| endpoint.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]"));
                zenoh.connect.extend(here);
                if !zenoh.connect.is_empty() || zenoh.mode == Some(Mode::Router) {
                    zenoh.mode = Some(Mode::Client);
                }
                zenoh
            });
        }
        Address::Mqtt(..) => {
            joined.mqtt = all.mqtt.clone().map(|mut mqtt| {
                // The broker would end the session of the run.
                (mqtt.settings.client_id, mqtt.settings.clean_start) = (None, true);
                mqtt
            });
        }
        _ => joined.dds.clone_from(&all.dds),
    }
    joined
}

/// Opens connections for signs of life alone, where that of the run has one broker or router: a consumer of verdicts that
/// accepts nothing can hold back everything on it. The first one sends, and the last one receives.
///
/// A session of Zenoh receives its own signs without the router, and the router returns none to it: with gates, which need
/// that proof, another session receives them.
fn own_connections(
    address: &Address,
    all: &NetworkSettings,
    has_gates: bool,
    interrupted: &StopFlag,
) -> Vec<Arc<Networks>> {
    let is_client = all.zenoh.as_ref().is_some_and(|zenoh| zenoh.mode == Some(Mode::Client));
    let count = match address {
        Address::Zenoh(..) if is_client => 1 + usize::from(has_gates),
        Address::Mqtt(..) => 1,
        _ => 0,
    };
    let joined = network_of(address, all);
    let mut connections = Vec::new();
    while connections.len() < count {
        match Networks::open(&joined, Some(PATIENCE), || interrupted.is_set(), |_| {}) {
            Ok(networks) => connections.push(Arc::new(networks)),
            Err(error) => {
                let effect = match connections.is_empty() {
                    true => "signs of life of the group share the connection of the run",
                    false => "gates of the group do not notice that the router stands still",
                };
                warn(&format!("{effect}: {error}"));
                break;
            }
        }
    }
    connections
}

/// Whether the network returns the signs of a member to it, so that they prove that it works.
fn returns_signs(address: &Address, connections: &[Arc<Networks>]) -> bool {
    match address {
        Address::Zenoh(..) => connections.len() > 1,
        Address::Mqtt(..) => true,
        _ => false,
    }
}

/// Returns why a member takes no state of another one: some of its messages are older than those that the other one
/// receives at the same time.
fn takes_none(deployment: &Deployment) -> Option<&'static str> {
    let on = |is_network: fn(&Address) -> bool| {
        deployment.sources.iter().any(|binding| is_network(&binding.address))
    };
    let keeps = deployment.networks.mqtt.as_ref().is_some_and(|mqtt| !mqtt.settings.clean_start);
    if on(|address| matches!(address, Address::Kafka(..))) {
        return Some("records of Kafka are read again");
    }
    let is_kept = keeps && on(|address| matches!(address, Address::Mqtt(..)));
    is_kept.then_some("with `clean_start: false`, the broker sends messages from before")
}

/// Whether a message concerns a member: those of transfers are for one member.
fn is_for(message: &Message, own: MemberId) -> bool {
    match message {
        Message::Request(route, _) | Message::Answer(route, _) => route.to == own,
        Message::Sign(..) | Message::Promote { .. } => true,
    }
}

impl Membership {
    /// Joins the group of a deployment, if it has one, once its topics are subscribed to.
    ///
    /// # Errors
    /// The topic that cannot be used, or the thread that cannot be started, and the reason.
    pub fn join(
        deployment: &Deployment,
        networks: &Networks,
        joining: Option<Joining>,
        interrupted: &StopFlag,
    ) -> Result<Option<Membership>, String> {
        let Some((settings, joining)) = deployment.group.as_ref().zip(joining) else { return Ok(None) };
        let handle = joining.handle.clone();
        // The topics have been subscribed to.
        handle.change(|state| state.since = now().as_nanos());
        let (events, incoming) = mpsc::sync_channel(QUEUE);
        let has_gates = !deployment.gates.is_empty();
        let connections = own_connections(&settings.address, &deployment.networks, has_gates, interrupted);
        let sending = connections.first().map_or(networks, |own| &**own);
        let receiving = connections.last().map_or(networks, |own| &**own);
        let publisher = sending.publisher(&settings.address, false)?;
        let (group, received, own) = (settings.name.clone(), events.clone(), handle.state().member);
        let counting = handle.clone();
        let receive = move |_: TopicId, samples: &[Sample<'_>]| {
            for sample in samples {
                match message::receive(&group, sample.payload) {
                    // A full queue means that the thread does not run: it finds out by itself.
                    Ok(message) if is_for(&message, own) => {
                        _ = received.try_send(Event::Received(Box::new(message)))
                    }
                    Ok(_) => {}
                    // The thread warns of them.
                    Err(reason) => counting.change(|state| state.ignored.count(reason)),
                }
            }
        };
        let subscription = receiving.subscribe(&settings.address, TopicId(u32::MAX), Arc::new(receive))?;
        connections.iter().for_each(|own| own.begin());
        let state = handle.state();
        let about = About {
            process: std::process::id(),
            sent: None,
            since: state.since,
            first: None,
            stood_still: None,
            active_for: None,
            taken: None,
            specification: crc32fast::hash(deployment.specification.sources.text().as_bytes()).into(),
            lease: lease(settings),
            gates: Some(hash_of_gates(deployment)),
        };
        let own = Member { id: state.member, prefer: settings.prefer, lease: lease(settings) };
        let Joining { pipeline, permit, senders, slots, plan, resumes, handle: of_worker } = joining;
        let begins = permit.now();
        let mut election = Election::new(own, begins);
        election.rest_until(begins + START);
        let (group, own_connections) = (settings.name.clone(), connections.clone());
        let outside = Connected {
            group,
            pipeline,
            senders,
            slots,
            publisher,
            connections: own_connections,
            plan,
            outcomes: mpsc::channel(),
        };
        let shared = Shared {
            permit,
            handle: of_worker,
            resumes,
            takes_none: takes_none(deployment),
            awaits_returns: has_gates && returns_signs(&settings.address, &connections),
        };
        let worker = Worker::new(settings.prefer, about, election, shared, outside);
        let thread = thread::Builder::new().name("group".into());
        let thread = thread
            .spawn(move || worker.run(&incoming))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Some(Membership { events, thread, subscription, connections, handle }))
    }

    /// Whether this member is active.
    pub fn is_active(&self) -> bool {
        self.handle.is_active()
    }

    /// Leaves the group, so that a standby takes over at once. Returns the last state.
    pub fn end(self) -> GroupState {
        let _ = self.events.send(Event::End);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
        self.subscription.close(LEAVE);
        drop(self.subscription);
        for networks in self.connections.into_iter().filter_map(Arc::into_inner) {
            networks.close_within(LEAVE);
        }
        self.handle.state()
    }
}
