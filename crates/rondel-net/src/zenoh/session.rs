use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use rondel_event::TopicId;

use super::publisher::Gate;
use super::{DeclareError, Mode, Publisher, PublisherSettings, Settings, Subscription, parse_key};
use crate::adapter::Receiver;

/// How often a wait looks again. Zenoh tells of connections only through an unstable interface.
const POLL: Duration = Duration::from_millis(5);
/// How often a connection that cannot be made is spoken of and, as a client, tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long closing may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Zenoh's configuration file cannot be read, or is not one.
    #[error("{}: {reason}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A text that is no endpoint.
    #[error(
        "'{0}' is not a Zenoh endpoint; write tcp/HOST:PORT, tls/HOST:PORT, udp/HOST:PORT or unixsock-stream/PATH"
    )]
    Endpoint(String),
    /// An endpoint with a port that does not exist.
    #[error("the port of the endpoint '{endpoint}' is wrong: port {port} is not between 1 and 65535")]
    Port {
        /// The endpoint as it was given.
        endpoint: String,
        /// Its port.
        port: String,
    },
    /// A setting that Zenoh does not accept.
    #[error("Zenoh setting {key}: {reason}")]
    Setting {
        /// The setting, as it is called in Zenoh's configuration.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// None of the endpoints to connect to answers. Worth trying again.
    #[error("cannot reach {}: {reason}", endpoints.join(", "))]
    Unreachable {
        /// The endpoints.
        endpoints: Vec<String>,
        /// What Zenoh says.
        reason: String,
    },
    /// Anything else, such as a port to listen on that is taken.
    #[error("{0}")]
    Network(String),
}

/// With how many others a session is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Routers.
    pub routers: usize,
    /// Peers.
    pub peers: usize,
}

impl Connections {
    /// Whether there is any.
    pub fn any(self) -> bool {
        self.routers + self.peers > 0
    }
}

/// A participant in a Zenoh network. A lost connection is made anew by itself, and subscriptions
/// and publishers go on.
///
/// Dropping it closes it.
#[derive(Debug)]
pub struct Session {
    session: ::zenoh::Session,
    connect: Vec<String>,
    gate: Arc<Gate>,
}

impl Session {
    /// Joins the network. A peer or router does not wait for those it connects to (see
    /// [`Session::wait_connected`]); a client tries every endpoint once.
    ///
    /// # Errors
    /// As [`OpenError`] says; [`OpenError::Unreachable`] only as a client.
    pub fn open(settings: &Settings) -> Result<Session, OpenError> {
        let config = settings.config()?;
        let client = settings.mode == Some(Mode::Client)
            || config.get_json("mode").is_ok_and(|mode| mode.contains(Mode::Client.as_str()));
        let session = ::zenoh::open(config).wait().map_err(|e| {
            let reason = super::reason(e);
            if client {
                // Where the endpoints stand in a configuration file, it is the file that is not answered.
                let file =
                    settings.config_file.iter().map(|file| format!("the endpoints of {}", file.display()));
                let endpoints = settings.connect.iter().cloned();
                let endpoints =
                    if settings.connect.is_empty() { file.collect() } else { endpoints.collect() };
                OpenError::Unreachable { endpoints, reason }
            } else {
                OpenError::Network(reason)
            }
        })?;
        Ok(Session { session, connect: settings.connect.clone(), gate: Arc::default() })
    }

    /// Joins the network and, where there are endpoints to connect to, waits until one of them is
    /// connected. About once a second without success `waiting` is told why and says whether to go
    /// on.
    ///
    /// # Errors
    /// As [`OpenError`] says; [`OpenError::Unreachable`] when `waiting` has given up.
    pub fn open_connected(
        settings: &Settings,
        mut waiting: impl FnMut(&OpenError) -> ControlFlow<()>,
    ) -> Result<Session, OpenError> {
        let session = loop {
            let started = Instant::now();
            match Session::open(settings) {
                Ok(session) => break session,
                Err(e @ OpenError::Unreachable { .. }) => {
                    if waiting(&e).is_break() {
                        return Err(e);
                    }
                    // A refused connection fails at once; do not turn that into a busy loop.
                    std::thread::sleep(RETRY.saturating_sub(started.elapsed()));
                }
                Err(e) => return Err(e),
            }
        };
        while !session.connect.is_empty() && !session.wait_connected(RETRY) {
            let e =
                OpenError::Unreachable { endpoints: session.connect.clone(), reason: "no answer".to_owned() };
            if waiting(&e).is_break() {
                return Err(e);
            }
        }
        Ok(session)
    }

    /// With how many others the session is connected now.
    pub fn connections(&self) -> Connections {
        let info = self.session.info();
        Connections { routers: info.routers_zid().wait().count(), peers: info.peers_zid().wait().count() }
    }

    /// Waits, at most `limit`, until the session is connected with any other. Whether it is.
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

    /// Subscribes to a key expression. Samples go to `receiver`, under the name `topic`, until the
    /// subscription is closed or dropped.
    ///
    /// The receiver should not block for longer than 5 s at a time: that is how long Zenoh's
    /// publishers wait, unless configured otherwise, before they take the subscriber for dead.
    ///
    /// # Errors
    /// As [`DeclareError`] says.
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        key: &str,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        Subscription::declare(&self.session, parse_key(key)?, topic, receiver)
    }

    /// Declares a publisher on a key.
    ///
    /// # Errors
    /// As [`DeclareError`] says.
    pub fn publisher(&self, key: &str, settings: &PublisherSettings) -> Result<Publisher, DeclareError> {
        Publisher::declare(&self.session, parse_key(key)?, settings, Arc::clone(&self.gate))
    }

    /// [`close_within`](Session::close_within) 5 s.
    ///
    /// # Errors
    /// When the time was not enough.
    pub fn close(&self) -> Result<(), OpenError> {
        self.close_within(CLOSE_LIMIT)
    }

    /// Lets nothing more be published, sends what is still queued, and leaves the network. Takes at most
    /// `limit`. A publisher that blocks until then, because a neighbour takes nothing, goes on blocking;
    /// closing can be tried again, and otherwise what the neighbour has not taken is lost when the
    /// process ends. Close subscriptions first. Repeating it is harmless.
    ///
    /// # Errors
    /// When the time was not enough.
    pub fn close_within(&self, limit: Duration) -> Result<(), OpenError> {
        let late = || OpenError::Network("a neighbour did not take everything in time".to_owned());
        let deadline = Instant::now() + limit;
        if !self.gate.close(deadline) {
            return Err(late());
        }
        let session = self.session.clone();
        let (tell, told) = mpsc::channel();
        // Zenoh's own limit is 10 s and cannot be set; that is all the time that containers are given
        // to stop.
        let close = move || _ = tell.send(session.close().wait());
        std::thread::Builder::new()
            .name("zenoh close".to_owned())
            .spawn(close)
            .map_err(|e| OpenError::Network(super::reason(e)))?;
        match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(result) => result.map_err(|e| OpenError::Network(super::reason(e))),
            Err(_) => Err(late()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Zenoh closes when its last reference goes, which must not happen here either while somebody
        // blocks: then that reference stays until the process ends.
        if self.close().is_err() {
            std::mem::forget(self.session.clone());
        }
    }
}
