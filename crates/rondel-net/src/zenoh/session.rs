//! Zenoh sessions.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use rondel_event::TopicId;

use super::backlog::Backlog;
use super::envelope::Plain;
use super::present::{Answering, State, StateQuerier};
use super::publisher::{PublishContext, PublishGate};
use super::recovery::{Numbers, Recoverer};
use super::resend::ResendCache;
use super::watch::Watch;
use super::{DeclareError, Mode, Publisher, PublisherSettings, Ros2Node, Settings, Subscription, parse_key};
use crate::adapter::{Listener, Outage, Receiver, Recovered};
use crate::attempts::{RETRY, open_reachable};

/// Polling interval of waits. Zenoh reports connections only through an unstable interface.
const POLL: Duration = Duration::from_millis(5);

/// Default time limit of closing.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of closing without any neighbour. There is no one to send messages to, and Zenoh waits for a connection
/// that is being opened, or for the resolution of a name.
const CLOSE_ALONE: Duration = Duration::from_millis(300);

/// Error of opening a session.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration file cannot be read or parsed.
    #[error("cannot use the Zenoh configuration file {}: {reason}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// Zenoh's reason.
        reason: String,
    },
    /// A text is no endpoint.
    #[error(
        "'{0}' is not a Zenoh endpoint; write tcp/HOST:PORT, tls/HOST:PORT, udp/HOST:PORT or unixsock-stream/PATH"
    )]
    Endpoint(String),
    /// The port of an endpoint does not exist.
    #[error("the port of the endpoint '{endpoint}' is wrong: port {port} is not between 1 and 65535")]
    Port {
        /// The endpoint as it was given.
        endpoint: String,
        /// Its port.
        port: String,
    },
    /// An endpoint is not encrypted, although TLS or credentials are configured.
    #[error(
        "{what} is configured, but the session {verb} {endpoint}, which is not encrypted; write tls/HOST:PORT, or remove \
         the settings of {what}"
    )]
    Plaintext {
        /// The configured protection.
        what: &'static str,
        /// Verb for the use of the endpoint: connects to it or listens on it.
        verb: &'static str,
        /// The endpoint.
        endpoint: String,
    },
    /// Like `Plaintext`, for Zenoh's default endpoint.
    #[error(
        "{what} is configured, but without `listen` the mode {mode} listens on {endpoint}, which is not encrypted; set \
         `listen` to tls/HOST:PORT, or only `connect`"
    )]
    PlaintextByDefault {
        /// The configured protection.
        what: &'static str,
        /// The mode.
        mode: &'static str,
        /// The default endpoint.
        endpoint: String,
    },
    /// A client is configured to listen, and has no endpoint to connect to.
    #[error(
        "the mode client only connects, and cannot wait for others on {endpoint}; set `connect`, or use the mode peer or router"
    )]
    ClientListens {
        /// The endpoint.
        endpoint: String,
    },
    /// Zenoh does not accept a setting.
    #[error("Zenoh setting {key}: {reason}")]
    Setting {
        /// Name of the setting in Zenoh's configuration.
        key: &'static str,
        /// Zenoh's reason.
        reason: String,
    },
    /// None of the endpoints to connect to answers; a later attempt may succeed.
    #[error("cannot connect to Zenoh at {}: {reason}", endpoints.join(", "))]
    Unreachable {
        /// The endpoints.
        endpoints: Vec<String>,
        /// Zenoh's reason.
        reason: String,
    },
    /// Any other error, such as a port to listen on that is in use.
    #[error("{0}")]
    Network(String),
}

/// Number of connections of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Routers.
    pub routers: usize,
    /// Peers.
    pub peers: usize,
}

impl Connections {
    /// Whether there is at least one connection.
    pub fn any(self) -> bool {
        self.routers + self.peers > 0
    }
}

/// A session in a Zenoh network. Lost connections are restored automatically, with subscriptions and
/// publishers.
///
/// Dropping it closes it.
#[derive(Debug)]
pub struct Session {
    session: ::zenoh::Session,
    connect: Vec<String>,
    gate: Arc<PublishGate>,
    watch: Arc<Watch>,
    recoverer: Arc<Recoverer>,
    listeners: Vec<Listener>,
    /// Messages kept by publishers for subscribers that missed them.
    cache: Arc<ResendCache>,
    backlog: Arc<Backlog>,
    querier: StateQuerier,
}

impl Session {
    /// Joins the network. A peer or router does not wait for its connections (see
    /// [`Session::wait_connected`]); a client tries every endpoint once.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Unreachable`] only as a client.
    pub fn open(settings: &Settings) -> Result<Session, OpenError> {
        let config = settings.config()?;
        let (block_limit, queue) = (super::settings::block_limit(&config), super::settings::queue(&config));
        let client = settings.is_client();
        let session = ::zenoh::open(config).wait().map_err(|e| {
            let reason = super::reason(e);
            if client {
                // Without endpoints in the settings, those of the configuration file are used.
                let file =
                    settings.config_file.iter().map(|file| format!("the endpoints of {}", file.display()));
                let endpoints = settings.connect.iter().cloned();
                let endpoints =
                    if settings.connect.is_empty() { file.collect() } else { endpoints.collect() };
                OpenError::Unreachable { endpoints, reason }
            } else {
                let listen = settings.listen.join(", ");
                OpenError::Network(if listen.is_empty() {
                    format!("cannot open a Zenoh session: {reason}")
                } else {
                    format!("cannot open a Zenoh session that listens on {listen}: {reason}")
                })
            }
        })?;
        let default_mode =
            if settings.config_file.is_some() { "as configured" } else { Mode::default().as_str() };
        tracing::info!(
            zid = %session.zid(), mode = settings.mode.map_or(default_mode, Mode::as_str), connect = ?settings.connect,
            listen = ?settings.listen, config_file = ?settings.config_file, "opened the Zenoh session"
        );
        let gate = Arc::<PublishGate>::default();
        let watch = Watch::start(&session, Arc::clone(&gate), block_limit, !settings.connect.is_empty())
            .map_err(|e| OpenError::Network(super::reason(e)))?;
        let thread = |e: std::io::Error| {
            OpenError::Network(format!("cannot start a thread of the Zenoh session: {e}"))
        };
        let recoverer = Recoverer::start(session.clone(), Arc::downgrade(&watch)).map_err(thread)?;
        let kept = settings.resend.unwrap_or(super::RESEND);
        let cache = ResendCache::start(kept, Arc::clone(&gate), Arc::downgrade(&watch)).map_err(thread)?;
        watch.tick(&cache);
        let backlog = Backlog::start(&session, queue).map_err(|e| OpenError::Network(super::reason(e)))?;
        let listeners = actual(settings.listeners(), &session);
        let (connect, querier) = (settings.connect.clone(), StateQuerier::start().map_err(thread)?);
        Ok(Session { session, connect, gate, watch, recoverer, listeners, cache, backlog, querier })
    }

    /// Joins the network and, if there are endpoints to connect to, waits until one is connected.
    /// `waiting` is called about once a second with the reason and returns whether to continue.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Unreachable`] when `waiting` returned `Break`.
    pub fn open_connected(
        settings: &Settings,
        mut waiting: impl FnMut(&OpenError) -> ControlFlow<()>,
    ) -> Result<Session, OpenError> {
        let is_unreachable = |error: &OpenError| matches!(error, OpenError::Unreachable { .. });
        let session = open_reachable(|| Session::open(settings), is_unreachable, &mut waiting)?;
        while !session.connect.is_empty() && !session.wait_connected(RETRY) {
            let e =
                OpenError::Unreachable { endpoints: session.connect.clone(), reason: "no answer".to_owned() };
            if waiting(&e).is_break() {
                return Err(e);
            }
        }
        if !session.connect.is_empty() {
            let Connections { routers, peers } = session.connections();
            tracing::info!(connect = ?session.connect, routers, peers, "connected to the Zenoh network");
        }
        Ok(session)
    }

    /// Joins the network as a peer or router. If none of the endpoints to connect to answers within a second, `later`
    /// is called with the reason; messages sent there until one answers count as missed.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open_later(settings: &Settings, later: impl FnOnce(&OpenError)) -> Result<Session, OpenError> {
        let session = Session::open(settings)?;
        if !session.connect.is_empty() && !session.wait_connected(RETRY) {
            let endpoints = session.connect.clone();
            later(&OpenError::Unreachable { endpoints, reason: "no answer".to_owned() });
            session.watch.begin_alone();
        }
        Ok(session)
    }

    /// Whether none of the endpoints to connect to was reached so far.
    pub fn is_awaited(&self) -> bool {
        !self.connect.is_empty() && self.watch.never_connected()
    }

    /// Whether it lost its last connection and has endpoints to connect to. A session that only listens is not cut off
    /// by neighbours that leave.
    pub fn is_cut_off(&self) -> bool {
        !self.connect.is_empty() && self.outages().iter().any(|outage| outage.until.is_none())
    }

    /// Returns the endpoints on which the session listens.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Returns the current number of connections.
    pub fn connections(&self) -> Connections {
        let info = self.session.info();
        Connections { routers: info.routers_zid().wait().count(), peers: info.peers_zid().wait().count() }
    }

    /// Waits up to `limit` for a connection. Returns whether there is one.
    pub fn wait_connected(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.connections().any() {
                return true;
            }
            if Instant::now() >= deadline || self.session.is_closed() {
                return false;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Subscribes to a key expression. `receiver` gets the samples with the id `topic` until the
    /// subscription is closed or dropped.
    ///
    /// The receiver should not block for longer than 5 s at a time: by default, other Zenoh publishers close the
    /// connection with a subscriber that accepts nothing for this long.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        key: &str,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let key_expression = parse_key(key)?;
        let numbers = Numbers::new(&self.recoverer, key.to_owned(), topic, Arc::clone(&receiver), None);
        let (kept, late) = (Arc::clone(&numbers), Arc::clone(&receiver));
        let subscription =
            Subscription::declare(&self.session, key_expression.clone(), topic, receiver, numbers, Plain)?;
        kept.begin();
        self.querier.query(&self.session, &key_expression, topic, &late, subscription.early());
        if tracing::enabled!(tracing::Level::INFO) {
            let Connections { routers, peers } = self.connections();
            tracing::info!(topic = %key, routers, peers, "subscribed");
        }
        Ok(subscription)
    }

    /// Calls `observer` with every message on the keys that match an expression, until the result is dropped.
    #[cfg(all(feature = "dds", feature = "mqtt"))]
    pub(crate) fn observe(
        &self,
        key: &str,
        observer: crate::observe::Observer,
    ) -> Result<::zenoh::pubsub::Subscriber<()>, DeclareError> {
        let subscriber = self.session.declare_subscriber(parse_key(key)?).callback(move |sample| {
            if sample.kind() == ::zenoh::sample::SampleKind::Put {
                let super::envelope::Metadata { source_time, origin, .. } =
                    super::envelope::metadata(&sample);
                observer(crate::observe::Observed {
                    topic: sample.key_expr().as_str(),
                    payload: &sample.payload().to_bytes(),
                    source_time,
                    origin,
                });
            }
        });
        subscriber.wait().map_err(|error| {
            DeclareError::Network(format!("cannot subscribe to Zenoh key '{key}': {}", super::reason(error)))
        })
    }

    /// Declares a publisher on a key.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publisher(&self, key: &str, settings: &PublisherSettings) -> Result<Publisher, DeclareError> {
        Publisher::declare(&self.session, parse_key(key)?, settings, &self.publish_context(), None)
    }

    fn publish_context(&self) -> PublishContext {
        PublishContext {
            gate: Arc::clone(&self.gate),
            watch: Arc::clone(&self.watch),
            cache: Arc::clone(&self.cache),
            backlog: Arc::clone(&self.backlog),
        }
    }

    /// Answers queries of the present state of a topic until the result is dropped.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn answer(&self, key: &str, state: Arc<dyn State>) -> Result<Answering, DeclareError> {
        Answering::declare(&self.session, parse_key(key)?, Arc::clone(&self.gate), state)
    }

    /// Sends a query on a key, and returns the answers received within `limit`.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn get(&self, key: &str, limit: Duration) -> Result<Vec<Vec<u8>>, DeclareError> {
        let failed =
            |e| DeclareError::Network(format!("cannot ask on Zenoh key '{key}': {}", super::reason(e)));
        let answers = self.session.get(parse_key(key)?).timeout(limit).wait().map_err(failed)?;
        let payload =
            |reply: ::zenoh::query::Reply| Some(reply.result().ok()?.payload().to_bytes().into_owned());
        Ok(answers.into_iter().filter_map(payload).collect())
    }

    /// Joins ROS 2 as a node, in the formats of rmw_zenoh. The session should be the one of
    /// [`Settings::zenoh`](crate::ros2::Settings::zenoh), or reach the same router.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn join_ros2(&self, settings: &crate::ros2::Settings) -> Result<Ros2Node, DeclareError> {
        Ros2Node::join(&self.session, settings, &self.recoverer, self.publish_context())
    }

    /// Returns the graph of a domain of ROS 2, as far as tokens of rmw_zenoh are received within `limit`.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn ros2_graph(&self, domain: u32, limit: Duration) -> Result<crate::ros2::Graph, DeclareError> {
        super::ros2::graph(&self.session, domain, limit)
    }

    /// Finds publishers of a topic of ROS 2, of this type if it is known, and returns the type described by the node of
    /// one of them, or the reason why there is no description; `None` if there is no publisher. If there are several
    /// types, one that `fits` is preferred. Takes `limit` only if no node describes a type.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn ros2_type(
        &self,
        domain: u32,
        topic: &crate::ros2::TopicName,
        message_type: Option<&crate::ros2::MessageType>,
        limit: Duration,
        fits: impl Fn(&rondel_decode::schema::Schema) -> bool,
    ) -> Result<Option<super::DescribedType>, DeclareError> {
        super::ros2::described::discovered_type(&self.session, domain, topic, message_type, limit, fits)
    }

    /// Returns the messages missed and fetched again so far, for each topic of subscriptions.
    pub fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        self.recoverer.recovered()
    }

    /// Returns the connections lost and restored so far, and one that is not restored yet.
    pub fn outages(&self) -> Vec<Outage> {
        self.watch.outages()
    }

    /// Whether the last connection was lost so recently that the missed messages are unknown yet.
    pub fn is_unsure(&self) -> bool {
        self.watch.is_unsure()
    }

    /// Closes the session like [`close_within`](Session::close_within) with a limit of 5 s.
    ///
    /// # Errors
    /// [`OpenError::Network`] when the limit was exceeded.
    pub fn close(&self) -> Result<(), OpenError> {
        self.close_within(CLOSE_LIMIT)
    }

    /// Stops publishing, sends queued messages and leaves the network. A publisher that still blocks after `limit`,
    /// because a neighbour accepts nothing, continues to block; closing can be tried again, otherwise the messages that
    /// the neighbour did not accept are lost when the process ends. Close subscriptions first. May be called
    /// repeatedly.
    ///
    /// # Errors
    /// [`OpenError::Network`] when the limit was exceeded.
    pub fn close_within(&self, limit: Duration) -> Result<(), OpenError> {
        let timed_out = || {
            let text =
                "cannot close the Zenoh session in time: a subscriber does not accept the remaining messages";
            OpenError::Network(text.to_owned())
        };
        let deadline = Instant::now() + limit;
        self.watch.end();
        self.recoverer.end();
        if !self.gate.close(deadline) {
            return Err(timed_out());
        }
        let was_closed = self.session.is_closed();
        // Before closing, which ends every connection.
        let alone = self.watch.is_alone();
        let session = self.session.clone();
        let (sender, result) = mpsc::channel();
        // Zenoh's own limit is 10 s and cannot be set; containers are killed after the same time.
        let close = move || _ = sender.send(session.close().wait());
        std::thread::Builder::new()
            .name("zenoh close".to_owned())
            .spawn(close)
            .map_err(|e| OpenError::Network(super::reason(e)))?;
        let left = deadline.saturating_duration_since(Instant::now());
        let left = if alone { left.min(CLOSE_ALONE) } else { left };
        match result.recv_timeout(left) {
            Err(mpsc::RecvTimeoutError::Timeout) if alone => Ok(()),
            Ok(Ok(())) => {
                if !was_closed {
                    tracing::info!(connect = ?self.connect, "closed the Zenoh session");
                }
                Ok(())
            }
            Ok(Err(e)) => {
                Err(OpenError::Network(format!("cannot close the Zenoh session: {}", super::reason(e))))
            }
            Err(_) => Err(timed_out()),
        }
    }
}

/// Replaces the port 0, which requests a free one, by the port in use.
fn actual(mut listeners: Vec<Listener>, session: &::zenoh::Session) -> Vec<Listener> {
    let mut taken: Vec<String> =
        session.info().locators().wait().iter().map(|locator| format!("zenoh {locator}")).collect();
    for listener in &mut listeners {
        let Some(given) = listener.place.strip_suffix(":0") else { continue };
        let protocol = given.split('/').next().unwrap_or_default();
        let of_all = ["0.0.0.0", "[::]"].iter().any(|host| given.ends_with(host));
        let is_it = |place: &String| match place.rsplit_once(':') {
            Some((host, _)) => host == given || of_all && host.starts_with(protocol),
            None => false,
        };
        let Some(at) = taken.iter().position(is_it) else { continue };
        let port = taken[at].rsplit_once(':').map(|(_, port)| port.to_owned()).unwrap_or_default();
        // On all interfaces there is an endpoint for each of them.
        taken.retain(|place| !(is_it(place) && place.ends_with(&format!(":{port}"))));
        listener.place = format!("{given}:{port}");
    }
    listeners
}

impl Drop for Session {
    fn drop(&mut self) {
        // Zenoh closes when the last reference is dropped, which is a deadlock too while a publisher
        // blocks. In that case a reference is leaked until the process ends.
        if self.close().is_err() {
            std::mem::forget(self.session.clone());
        }
    }
}
