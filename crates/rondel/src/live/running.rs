//! A deployment at work: networks, session, sinks.

mod end;
mod reload;
mod start;
mod subscriber;
mod summary;

use std::path::PathBuf;
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rondel_event::TopicId;
use rondel_net::adapter::Publisher;
use rondel_net::durability::{Schedule, Snapshots, State};
use rondel_runtime::Notice;
use rondel_spec::Spec;

use crate::deployment::{Address, Binding};
use crate::live::acting::Acting;
use crate::live::foxglove::copies::Copies;
use crate::live::health::Attendants;
use crate::live::listener::Listener;
use crate::live::losses::{Sources, Unconfirmed, Undelivered, Watcher};
use crate::live::metrics::RunState;
use crate::live::pipeline::{Pipeline, Simulated, Stop};
use crate::live::reload::Reloads;
use crate::live::reload::past::PastViolations;
use crate::live::standby::Membership;
use crate::live::tap::Tap;
use crate::output::Format;
use crate::sinks::Sink;
use crate::sinks::audit::Audit;
use crate::sinks::driven::{DestinationFeed, Destinations};
use crate::sinks::queue::Queue;
use crate::sinks::spool::Spools;
pub use reload::Renewal;
#[cfg(feature = "foxglove")]
pub use start::defined;
use subscriber::Subscriber;
pub use summary::RunSummary;

/// Default of [`Options::end_within`]. Containers are killed after ten seconds, and a service may have less.
pub const END_WITHIN: Duration = Duration::from_secs(5);
/// Interval of checking whether a network was given up.
const CHECK: Duration = Duration::from_secs(1);

/// The options of a run beside its deployment.
pub struct Options {
    /// The format of verdicts on standard output.
    pub format: Format,
    /// Whether they are coloured.
    pub colour: bool,
    /// The snapshot file and when it is written.
    pub snapshots: Option<(PathBuf, Schedule)>,
    /// Number of messages after which to stop.
    pub count: Option<u64>,
    /// Time limit for subscribers of the verdicts before messages are received.
    pub wait_subscribers: Duration,
    /// Channel for the reason to stop.
    pub stop: mpsc::Sender<Stop>,
    /// Storage of messages for slow consumers.
    pub spools: Spools,
    /// The audit file.
    pub audit: Option<Arc<Audit>>,
    /// The store and other destinations beside networks.
    pub destinations: Destinations,
    /// The feed of the run, if there are destinations.
    pub feed: Option<DestinationFeed>,
    /// A further sink of messages that were put in order.
    pub screen: Option<Sink>,
    /// The simulation that sets the clock, if one does.
    pub simulated: Option<Simulated>,
    /// The state that metrics, probes and the service manager show; `None` where nothing shows it.
    pub metrics: Option<Arc<RunState>>,
    /// Copies of messages for viewers of the page; `None` without a page.
    pub tap: Option<Arc<Tap>>,
    /// Copies of verdicts and messages for Foxglove; `None` unless it is served.
    pub copies: Option<Arc<Copies>>,
    /// The sources as the deployment names them, before the types of publishers are known; empty if they are the same.
    pub read: Vec<Binding>,
    /// Time limit for ending.
    pub end_within: Duration,
    /// Maximum number of programs of actions at once.
    pub programs: usize,
    /// Whether the session continues from a snapshot.
    pub resumes: bool,
}

/// A deployment that is running.
pub struct Running {
    listener: Listener,
    /// Messages that consumers did not accept.
    undelivered: Undelivered,
    /// Messages kept for them.
    spools: Spools,
    /// The store and other destinations beside networks.
    destinations: Destinations,
    /// Actions on verdicts.
    acting: Option<Acting>,
    /// The publishers with their addresses.
    addressed: Vec<(String, Weak<dyn Publisher>)>,
    /// The sinks of verdicts on networks, by address.
    publishing: Vec<(Address, Sink)>,
    /// The topics as they are subscribed to.
    subscriber: Subscriber,
    /// The sources as the deployment names them.
    read: Vec<Binding>,
    /// The topics of all subscriptions so far.
    sources: Sources,
    /// Messages of sinks that were removed, as far as consumers have not confirmed them.
    unconfirmed: Unconfirmed,
    /// Whether every sink that was removed has delivered its messages.
    flushed: bool,
    /// The numbers of reloads.
    reloads: Reloads,
    /// The violations of properties that reloads have changed or removed.
    past: PastViolations,
    /// The queues of verdicts or sets.
    queues: Vec<Arc<Queue>>,
    losses: Watcher,
    attendants: Attendants,
    /// The membership in a group.
    membership: Option<Membership>,
    /// The state that metrics, probes and the service manager show, if anything does.
    metrics: Option<Arc<RunState>>,
    /// Time limit for ending.
    end_within: Duration,
    pipeline: Arc<Pipeline>,
    /// The thread that keeps time, if time alone decides verdicts.
    keeper: Option<JoinHandle<()>>,
    /// The writing of snapshots.
    snapshots: Option<Snapshots<Box<dyn State>>>,
    spec: Arc<Spec>,
    /// The noun for published messages: verdicts, sets or messages.
    published: &'static str,
}

impl Running {
    /// Waits for the end or for a request to reload, and calls `look` once a second. Returns the reason; that a network was
    /// given up has been shown.
    pub fn wait(&self, stopped: &mpsc::Receiver<Stop>, mut look: impl FnMut()) -> Stop {
        self.listener.wait(stopped, CHECK, |_| look())
    }

    /// Publishes a report that is shown elsewhere.
    pub fn report(&self, notice: &Notice) {
        self.pipeline.publish_notice(notice);
    }

    /// The pipeline, and the subscription to each topic.
    #[cfg_attr(not(feature = "page"), allow(dead_code))]
    pub fn observed(&self) -> (Weak<Pipeline>, Vec<TopicId>) {
        (Arc::downgrade(&self.pipeline), self.subscriber.topics.iter().map(|topic| topic.slot).collect())
    }

    /// The numbers of reloads.
    pub fn reloads(&self) -> &Reloads {
        &self.reloads
    }
}
