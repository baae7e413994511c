//! The start of a run: sinks and publishers first, then the pipeline, and subscriptions last.

use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rondel_event::TopicId;
use rondel_net::adapter::{PartitionStates, Publisher};
use rondel_net::durability::{Schedule, Snapshots, State};
use rondel_net::kafka;
use rondel_report::Claim;
use rondel_runtime::{Clock, PropertyInfo, Session, SessionPlan};

use super::subscriber::{SubscribedTopic, Subscriber, comes_back};
use super::{Options, Running};
use crate::deployment::{Address, Deployment, Durability};
use crate::live::acting;
use crate::live::gate::{self, GateGroup, Gates};
use crate::live::group::{GroupStates, KeptStates};
use crate::live::health::{Attendants, Described, Health};
use crate::live::listener::Listener;
use crate::live::losses::{Sources, Unconfirmed, Undelivered, Watcher};
use crate::live::metrics::{Observed, PropertyLabels, Shown};
use crate::live::networks::Networks;
use crate::live::pipeline::{Parts, Pipeline};
use crate::live::publishers::Publishers;
use crate::live::reload::Reloads;
use crate::live::reload::past::PastViolations;
use crate::live::resume::Kept;
use crate::live::signals::StopFlag;
use crate::live::standby::{self, Joining, Membership};
use crate::output::VerdictWriter;
use crate::recorder::{Channel, FlightRecorder, Origin, warn_of_doubles};
use crate::schemas::is_schema_awaited;
use crate::sinks::console::Console;
use crate::sinks::driven::DestinationHandle;
use crate::sinks::own::Own;
use crate::sinks::present::Present;
use crate::sinks::spool::Spools;
use crate::sinks::withheld::Permit;
use crate::sinks::{Sink, Sinks, publishers};
use crate::specification::claims;

impl Running {
    /// Starts a run: creates publishers before subscriptions, so that the first message already has a sink.
    ///
    /// # Errors
    /// The publisher, subscription or thread that could not be created, and the reason.
    #[expect(clippy::too_many_lines, reason = "each part of a run is created once, in this order")]
    pub fn start(
        deployment: &Deployment,
        plan: &SessionPlan,
        mut session: Session,
        clock: Arc<dyn Clock>,
        networks: Networks,
        options: Options,
        interrupted: &StopFlag,
    ) -> Result<Running, String> {
        let Options {
            format,
            colour,
            snapshots,
            count,
            wait_subscribers,
            stop,
            spools,
            audit,
            destinations,
            mut feed,
            screen,
            simulated,
            metrics,
            tap,
            copies,
            read,
            end_within,
            programs,
            resumes,
        } = options;
        // Dropped after the publishers if the start fails.
        let networks = Arc::new(networks);
        let opened = Publishers::open(deployment, &networks, &spools)?;
        opened.wait_for_subscribers(deployment, wait_subscribers, interrupted);
        let Publishers {
            verdicts: sinks,
            mut released,
            notices,
            beats,
            actions,
            undelivered,
            queues,
            publishers: mut addressed,
        } = opened;
        let group = deployment.group.as_ref().map(|group| {
            let (permit, lease) = (Arc::new(Permit::default()), standby::lease(group));
            GateGroup { permit, lease, handle: standby::begin(group) }
        });
        let gates = Gates::open(deployment, &networks, &mut session, &clock, group.clone())?;
        if let Some(gates) = &gates {
            gates.add_drops(&undelivered);
            let own = gates.publishers().map(|(to, publisher)| (to.to_owned(), Arc::downgrade(publisher)));
            addressed.extend(own);
        }
        let others = gates.as_ref().map(|gates| Arc::clone(gates.others()));
        if let Some(Sink::Network(screen)) = &screen {
            undelivered.add(Address::Stdout.to_string(), screen.drops());
        }
        released.extend(screen);
        let writer = VerdictWriter::new(plan.properties(), format, colour);
        let stdout = Console::new(deployment.slow_consumer, spools.of(&Address::Stdout.to_string()));
        undelivered.add(Address::Stdout.to_string(), Some(stdout.drops()));
        let mut all_sinks = Sinks::new(sinks.clone(), writer, stdout);
        all_sinks.diagnose(plan.properties());
        let acting = acting::start(
            deployment,
            plan,
            &networks,
            actions,
            destinations.silenced(),
            audit.clone(),
            programs,
        )?;
        let (acting, acts) = acting.unzip();
        all_sinks.act(acts);
        all_sinks.record_in(audit.clone());
        if let Some(feed) = &mut feed {
            feed.continue_from(&session.summary());
        }
        all_sinks.send_to(feed);
        if let Some(group) = &group {
            all_sinks.join_group(Arc::clone(&group.permit), group.lease);
        }
        let standby = group.as_ref().map(|group| group.handle.clone());
        let driven = destinations.handles();
        let own = Arc::new(Own::default());
        let topics = subscribed_topics(deployment, plan);
        if topics.iter().any(|topic| topic.returns) {
            all_sinks.remember(Arc::clone(&own));
        }
        let publishing = publishing(deployment, &sinks);
        let answers = attended(deployment, &sinks, &mut all_sinks);
        let reporting = notices.clone();
        let senders = publishers(sinks.iter().flatten().chain(&released).cloned());
        let recorder = recorder(deployment, &networks, &topics)?;
        let pipeline = Arc::new(Pipeline::new(Parts {
            session,
            clock,
            simulated,
            topics: topic_texts(deployment),
            sinks: all_sinks,
            released,
            notices,
            gates,
            recorder,
            meter: metrics.as_ref().and_then(|metrics| {
                metrics.meter(deployment.sources.len(), deployment.specification.spec.properties.len())
            }),
            tap,
            copies,
            batching: deployment.addresses().any(Address::holds_back),
            stop_after: count,
            stop,
        }));
        let reloads = Reloads::default();
        let mut health = health(deployment, plan, &pipeline, &undelivered, &spools, driven.clone(), &reloads);
        health.standby = standby.clone();
        health.run = others.as_ref().map(|others| others.run().to_owned());
        health.actions = acting.as_ref().map(|acting| acting.actions.handle());
        let health = Arc::new(health);
        let every = deployment.heartbeat.as_ref().map(|heartbeat| heartbeat.every);
        let mut attendants = Attendants::start(health, &networks, answers, every, beats, reporting)?;
        attendants
            .watch(others.iter().flat_map(|others| gate::watch(deployment, &networks, others)).collect());
        let subscriber = Subscriber { pipeline: Arc::clone(&pipeline), own, topics };
        let states = divide(deployment, plan, &pipeline, &networks, &senders)?;
        let listener = Listener::start(deployment, Arc::clone(&networks), subscriber.clone())?;
        let keeper = keep_time(&pipeline, &networks)?;
        let kept = snapshots.map(|(file, schedule)| {
            let (exactly, pipeline) = (schedule.exactly, Arc::clone(&pipeline));
            let (driven, standby) = (driven.clone(), standby.clone());
            let kept: Box<dyn State> = Box::new(Kept { file, exactly, pipeline, driven, standby });
            (schedule, kept)
        });
        let snapshots = kept.or(states).map(|(schedule, kept)| {
            Snapshots::start(schedule, kept, Arc::clone(&networks), senders).map_err(no_thread)
        });
        let snapshots = snapshots.transpose()?;
        let sources = Sources::default();
        for (topic, binding) in deployment.specification.spec.topics.iter().zip(&deployment.sources) {
            sources.add(topic.name.clone(), binding.address.clone());
        }
        let losses = Watcher::start(
            Arc::clone(&pipeline),
            Arc::clone(&networks),
            undelivered.clone(),
            sources.clone(),
        )
        .map_err(no_thread)?;
        let slots: Vec<TopicId> = subscriber.topics.iter().map(|topic| topic.slot).collect();
        let senders = addressed.iter().map(|(_, publisher)| Weak::clone(publisher)).collect();
        let joining = group.map(|GateGroup { permit, handle, .. }| {
            let (pipeline, slots) = (Arc::downgrade(&pipeline), slots.clone());
            Joining { pipeline, permit, senders, slots, plan: Arc::new(plan.clone()), resumes, handle }
        });
        let membership = Membership::join(deployment, &networks, joining, interrupted)?;
        if let Some(metrics) = &metrics {
            metrics.begin(Observed {
                pipeline: Arc::downgrade(&pipeline),
                networks: Arc::downgrade(&networks),
                topics: topic_names(deployment),
                slots,
                properties: property_labels(plan),
                reloads: reloads.clone(),
                undelivered: undelivered.clone(),
                spools: spools.clone(),
                queues: queues.clone(),
                publishers: addressed.clone(),
                driven,
                audit,
                actions: acting.as_ref().map(|acting| acting.actions.handle()),
                subscriptions: listener.subscriptions(),
                subscribed: listener.wanted(),
                stall: attendants.stall(),
                standby,
                shown: Shown::default(),
            });
        }
        Ok(Running {
            losses,
            attendants,
            membership,
            metrics,
            end_within,
            undelivered,
            spools,
            destinations,
            acting,
            addressed,
            publishing,
            read: if read.is_empty() { deployment.sources.clone() } else { read },
            subscriber,
            sources,
            unconfirmed: Unconfirmed::default(),
            flushed: true,
            reloads,
            past: PastViolations::default(),
            queues,
            snapshots,
            keeper,
            listener,
            pipeline,
            spec: Arc::clone(&plan.specification().spec),
            published: published(deployment, plan),
        })
    }
}

/// When snapshots are written, and by what.
type Keeping = (Schedule, Box<dyn State>);

/// Divides a run by partitions if it is a member of a consumer group. Returns the writer of their states, and when it
/// writes.
fn divide(
    deployment: &Deployment,
    plan: &SessionPlan,
    pipeline: &Arc<Pipeline>,
    networks: &Networks,
    senders: &[Arc<dyn Publisher>],
) -> Result<Option<Keeping>, String> {
    let (Some(group), Some(Durability::Exactly(every))) =
        (deployment.consumer_group(), deployment.durability)
    else {
        return Ok(None);
    };
    let topic = deployment.sources.first().and_then(|binding| match &binding.address {
        Address::Kafka(place, _) => Some(kafka::without_key(place)),
        _ => None,
    });
    let Some(topic) = topic else { return Ok(None) };
    pipeline.divide(plan.clone());
    let states = GroupStates::open(group, topic, Arc::clone(pipeline), senders)?;
    networks.divide(Arc::clone(&states) as Arc<dyn PartitionStates>);
    let kept: Box<dyn State> = Box::new(KeptStates::new(states));
    Ok(Some((Schedule { every, exactly: true }, kept)))
}

/// The specification of a deployment with its name.
pub(super) fn described(deployment: &Deployment, plan: &SessionPlan) -> Described {
    let (spec, name) = (Arc::clone(&plan.specification().spec), deployment.specification.source.clone());
    Described { spec, name }
}

/// The topics of a run at its start: each subscription has the number of its topic.
fn subscribed_topics(deployment: &Deployment, plan: &SessionPlan) -> Vec<SubscribedTopic> {
    let topics = (0..).map(TopicId).zip(&deployment.sources);
    topics
        .map(|(slot, binding)| SubscribedTopic {
            slot,
            names: plan.names(slot).cloned(),
            returns: comes_back(deployment, &binding.address),
        })
        .collect()
}

/// The sinks of verdicts on networks, by address.
pub(super) fn publishing(deployment: &Deployment, sinks: &[Vec<Sink>]) -> Vec<(Address, Sink)> {
    let mut all: Vec<(Address, Sink)> = Vec::new();
    for (sink, address) in sinks.iter().flatten().zip(deployment.sinks.iter().flatten()) {
        if sink.publisher().is_some() && all.iter().all(|(known, _)| known != address) {
            all.push((address.clone(), sink.clone()));
        }
    }
    all
}

/// The name of each topic with its address, for messages.
pub(super) fn topic_texts(deployment: &Deployment) -> Vec<String> {
    let topics = deployment.specification.spec.topics.iter().zip(&deployment.sources);
    topics.map(|(topic, binding)| format!("'{}' ({})", topic.name, binding.address)).collect()
}

/// The name of each topic.
pub(super) fn topic_names(deployment: &Deployment) -> Vec<String> {
    deployment.specification.spec.declared().iter().map(|topic| topic.name.clone()).collect()
}

/// The labels of each property.
pub(super) fn property_labels(plan: &SessionPlan) -> Arc<[PropertyLabels]> {
    let labels = |property: &PropertyInfo| PropertyLabels {
        name: property.name.clone(),
        severity: property.severity.clone().unwrap_or_default(),
    };
    plan.properties().iter().map(labels).collect()
}

/// The sources of the state of a run, for queries and heartbeats.
fn health(
    deployment: &Deployment,
    plan: &SessionPlan,
    pipeline: &Arc<Pipeline>,
    undelivered: &Undelivered,
    spools: &Spools,
    driven: Vec<DestinationHandle>,
    reloads: &Reloads,
) -> Health {
    Health {
        pipeline: Arc::downgrade(pipeline),
        described: Mutex::new(described(deployment, plan)),
        reloads: reloads.clone(),
        undelivered: undelivered.clone(),
        spools: spools.clone(),
        driven,
        actions: None,
        standby: None,
        run: None,
        began: Instant::now(),
    }
}

/// The noun for the messages that a run publishes.
fn published(deployment: &Deployment, plan: &SessionPlan) -> &'static str {
    match (&deployment.synchronized, plan.alignment().policy.makes_sets()) {
        (None, _) => "verdicts",
        (Some(_), true) => "sets",
        (Some(_), false) => "messages",
    }
}

/// The message about a thread that cannot be started.
pub(super) fn no_thread(error: std::io::Error) -> String {
    format!("cannot start a thread: {error}")
}

/// Returns the verdict topics in the order of their sink numbers, with the present verdicts of those that can be
/// queried.
fn attended<'d>(
    deployment: &'d Deployment,
    sinks: &[Vec<Sink>],
    all: &mut Sinks,
) -> Vec<(&'d Address, Option<Arc<Present>>)> {
    let mut attended: Vec<(&Address, Option<Arc<Present>>)> = Vec::new();
    for (sink, address) in sinks.iter().flatten().zip(deployment.sinks.iter().flatten()) {
        let Some(publisher) = sink.publisher() else { continue };
        if attended.iter().all(|(known, _)| *known != address) {
            let is_queried = matches!((sink, address), (Sink::Network(_), Address::Zenoh(..)));
            attended.push((address, if is_queried { all.keep_present(publisher) } else { None }));
        }
    }
    attended
}

/// Starts to record around violations, if the deployment says so.
fn recorder(
    deployment: &Deployment,
    networks: &Networks,
    topics: &[SubscribedTopic],
) -> Result<Option<FlightRecorder>, String> {
    let Some(settings) = deployment.record.clone() else { return Ok(None) };
    warn_of_doubles(&deployment.sources);
    let (channels, folder) = (deployment.sources.iter().map(Channel::of).collect(), settings.folder.clone());
    let offers = networks.offers(deployment.sources.iter().map(|binding| &binding.address))?;
    let names = topics.iter().map(|topic| topic.names.clone()).collect();
    let recorder = FlightRecorder::start(settings, channels, names, offers, defined(deployment))
        .map_err(|error| format!("cannot record in {}: {error}", folder.display()))?;
    Ok(Some(recorder))
}

/// Returns the places where the properties of a deployment are defined.
pub fn defined(deployment: &Deployment) -> Origin {
    let specification = &deployment.specification;
    let place = |claim: Claim| {
        let file = claim.file.unwrap_or_else(|| specification.source.clone());
        (file, claim.place.map_or(0, |place| place.line as u32))
    };
    Origin { places: claims(specification).into_iter().map(place).collect() }
}

/// Starts the thread that evaluates verdicts decided by time alone, if there are any.
pub(super) fn keep_time(
    pipeline: &Arc<Pipeline>,
    networks: &Arc<Networks>,
) -> Result<Option<JoinHandle<()>>, String> {
    if !pipeline.is_timed() {
        return Ok(None);
    }
    let (kept, networks) = (Arc::clone(pipeline), Arc::downgrade(networks));
    let is_unsure =
        move || is_schema_awaited() || networks.upgrade().is_some_and(|networks| networks.is_unsure());
    let thread = thread::Builder::new().name("time".into());
    thread.spawn(move || kept.keep_time(is_unsure)).map(Some).map_err(no_thread)
}
