//! Listening to the topics of a deployment: from the subscriptions to the account of what is missing.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Outage, Problems, Recovered, Subscription, now};
use rondel_runtime::Account;

use crate::complain;
use crate::deployment::Deployment;
use crate::live::discover::{self, TypeDiscovery, Unread};
use crate::live::networks::Networks;
use crate::live::pipeline::Stop;
use crate::live::reader::Reader;
use crate::live::subscriptions::Subscriptions;

/// Usual time limit at the end for messages in transit.
pub const DRAIN: Duration = Duration::from_millis(1500);
/// Interval without a message after which a subscription is drained.
const QUIET: Duration = Duration::from_millis(20);

/// The subscriptions of a command to the topics of a deployment.
pub struct Listener {
    subscriptions: Subscriptions,
    /// Number of subscriptions once all types are resolved.
    wanted: usize,
    networks: Arc<Networks>,
    /// Discovery of the types that were not known at the start.
    discovery: Option<TypeDiscovery>,
}

impl Listener {
    /// Subscribes a reader to the topics whose types are known or not needed, and starts to resolve the other types: each
    /// of their topics is subscribed to once its type is known.
    ///
    /// # Errors
    /// The topic that cannot be subscribed to, or that no thread can be started, and the reason.
    pub fn start(
        deployment: &Deployment,
        networks: Arc<Networks>,
        reader: impl Reader,
    ) -> Result<Listener, String> {
        let subscriptions = Subscriptions::default();
        let (mut topics, mut open) = ((0..).map(TopicId).zip(&deployment.sources), 0);
        topics.try_for_each(|(topic, binding)| {
            if discover::is_open(binding) {
                open += 1;
            } else {
                let subscription = reader.subscribe(&networks, topic, binding)?;
                subscriptions.add(Some(reader.number(topic)), subscription);
            }
            Ok::<_, String>(())
        })?;
        for further in reader.subscribe_further(&networks, deployment) {
            subscriptions.add(None, further?);
        }
        networks.begin();
        let wanted = subscriptions.count() + open;
        let discovery =
            TypeDiscovery::start(deployment, Arc::clone(&networks), subscriptions.clone(), reader)
                .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Listener { subscriptions, wanted, networks, discovery })
    }

    /// Returns the subscriptions, to which those of topics with open types are added.
    pub fn subscriptions(&self) -> Subscriptions {
        self.subscriptions.clone()
    }

    /// Returns the number of subscriptions once all types are resolved.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Returns the networks.
    pub fn networks(&self) -> &Arc<Networks> {
        &self.networks
    }

    /// Ends the discovery of types, which takes up to a second.
    pub fn pause_discovery(&mut self) {
        // Topics that are not read are found again.
        drop(self.discovery.take().map(TypeDiscovery::end));
    }

    /// Starts to resolve the open types of a deployment again, whose other topics are subscribed to.
    ///
    /// # Errors
    /// No thread can be started, and the reason.
    pub fn resume_discovery(&mut self, deployment: &Deployment, reader: impl Reader) -> Result<(), String> {
        let open = deployment.sources.iter().filter(|binding| discover::is_open(binding)).count();
        self.wanted = self.subscriptions.count() + open;
        let (networks, subscriptions) = (Arc::clone(&self.networks), self.subscriptions.clone());
        self.discovery = TypeDiscovery::start(deployment, networks, subscriptions, reader)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(())
    }

    /// Waits for the end, and calls `look` after each interval before it. Returns the reason for the end; that a network was
    /// given up has been shown.
    pub fn wait(
        &self,
        stopped: &mpsc::Receiver<Stop>,
        interval: Duration,
        mut look: impl FnMut(&Networks),
    ) -> Stop {
        loop {
            match stopped.recv_timeout(interval) {
                Ok(why) => return why,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Stop::Requested,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            look(&self.networks);
            if let Some(reason) = self.networks.failure() {
                complain(&reason);
                return Stop::GivenUp;
            }
        }
    }

    /// Closes the subscriptions within a time limit: after the messages in transit, for which it waits up to `drain`, unless
    /// the last wanted message was received.
    pub fn close(self, why: Stop, drain: Duration, limit: Duration) -> Closed {
        let deadline = Instant::now() + limit;
        let Listener { subscriptions, networks, discovery, .. } = self;
        let unread = discovery.map(TypeDiscovery::end).unwrap_or_default();
        let removed = subscriptions.removed_problems();
        let subscriptions = subscriptions.take();
        if why != Stop::Count {
            let drained = Instant::now() + drain;
            for subscription in &subscriptions {
                subscription.drain(QUIET, left(drained));
            }
        }
        let until = now();
        let (mut problems, mut is_closed) = (removed, true);
        for subscription in &subscriptions {
            is_closed &= subscription.close(left(deadline));
            problems += subscription.problems();
        }
        Closed { subscriptions, networks, why, problems, unread, until, is_closed }
    }
}

/// Time until a deadline.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// A listener whose subscriptions are closed, still in the networks.
pub struct Closed {
    /// Dropped before the networks.
    subscriptions: Vec<Box<dyn Subscription>>,
    /// The networks.
    pub networks: Arc<Networks>,
    /// Reason for the end.
    pub why: Stop,
    /// The problems of all subscriptions.
    pub problems: Problems,
    /// The topics that were not read since the types of their publishers cannot be used.
    pub unread: Vec<Unread>,
    /// Time up to which messages were received.
    pub until: Timestamp,
    /// Whether every receiver has returned from its last message.
    pub is_closed: bool,
}

impl Closed {
    /// Leaves the networks within a time limit. Nothing else may hold them any more.
    pub fn leave(self, limit: Duration) -> Outcome {
        let deadline = Instant::now() + limit;
        let Closed { networks, subscriptions, problems, unread, .. } = self;
        drop(subscriptions);
        let (outages, recovered) = (networks.outages(), networks.recovered());
        let is_left = Arc::into_inner(networks).is_some_and(|networks| networks.close_within(left(deadline)));
        Outcome { problems, unread, outages, recovered, is_left }
    }
}

/// The reports of the networks about a listener that has left them.
pub struct Outcome {
    /// The problems of all subscriptions.
    pub problems: Problems,
    /// The topics that were not read since the types of their publishers cannot be used.
    pub unread: Vec<Unread>,
    /// The connections that were lost.
    pub outages: Vec<Outage>,
    recovered: Vec<(TopicId, Recovered)>,
    /// Whether the networks were left in time, after everything published was delivered.
    pub is_left: bool,
}

impl Outcome {
    /// Adds the messages that were fetched again to the accounts of the topics. `topic` returns the position of the topic of
    /// a subscription.
    pub fn add_recovered(&self, accounts: &mut [Account], topic: impl Fn(TopicId) -> Option<usize>) {
        for (number, recovered) in &self.recovered {
            if let Some(account) = topic(*number).and_then(|topic| accounts.get_mut(topic)) {
                account.recovered = recovered.count;
            }
        }
    }
}
