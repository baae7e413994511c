//! A connection to NATS with the runtime that drives it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::client::PublishErrorKind;
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, ServerError, Subscriber};
use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::entry::{Entry, VerdictEntry, id_text};
use crate::outgoing::{Delivery, SeriesNames, Unfinished, identity, verdicts, without_text};
use crate::sink::{Failure, FailureKind};
use crate::tls::TlsOptions;

use super::Target;
use super::error::{self, Answer};

/// Verdicts that wait for an acknowledgement at a time. A server drops messages of a stream that has 10,000 of them waiting.
const WINDOW: usize = 4096;
/// Shortest time for connecting to one of several servers.
const CONNECT: Duration = Duration::from_secs(1);

/// A connection. It does not connect again by itself: what was sent and is not acknowledged has to be sent again then, and a
/// new connection reports why it cannot be made.
pub(super) struct Connection {
    session: Session,
    /// Drives the tasks of the client. It is dropped last.
    runtime: BackgroundRuntime,
}

/// State of a connection, used by its runtime.
struct Session {
    client: Client,
    acknowledgements: Subscriber,
    /// Subject to which the server answers, without the number of a message.
    inbox: String,
    /// Identities of the verdicts that wait for an acknowledgement, by the numbers of their messages.
    sent: HashMap<u64, u128>,
    /// Number of the next message.
    next: u64,
    /// Number of answers so far.
    answers: u64,
    signals: Arc<Signals>,
}

/// Verdicts to publish, and where.
pub(super) struct Publishing<'p> {
    pub(super) target: &'p Target,
    pub(super) series: &'p SeriesNames,
    pub(super) unfinished: &'p mut Unfinished,
    pub(super) entries: &'p [Entry<'p>],
    pub(super) limit: Duration,
    pub(super) deadline: Instant,
}

/// Outcome of publishing.
pub(super) enum Ended {
    /// Nothing waits for an acknowledgement. Some verdicts may have been refused.
    Finished(Result<(), Failure>),
    /// The connection is lost.
    Lost(Failure),
    /// The user has no permission for it.
    Denied(Failure),
    /// The time limit has passed, or the call was interrupted.
    Late {
        failure: Failure,
        /// Whether the server has answered meanwhile.
        is_moving: bool,
    },
}

/// Events of a connection.
#[derive(Default)]
struct Signals {
    changed: Notify,
    state: Mutex<SignalState>,
}

#[derive(Clone, Default)]
struct SignalState {
    is_lost: bool,
    /// Last error that the server reported.
    error: Option<String>,
}

impl Signals {
    fn note(&self, event: Event) {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Event::Disconnected | Event::Closed => state.is_lost = true,
                Event::ServerError(ServerError::Other(text)) => state.error = Some(text),
                Event::ServerError(error) => state.error = Some(error.to_string()),
                _ => return,
            }
        }
        self.changed.notify_one();
    }

    /// Waits until the connection is lost or of no use.
    async fn trouble(&self, target: &Target) -> Ended {
        loop {
            let SignalState { is_lost, error } = self.get();
            if let Some(error) = error.as_ref().filter(|error| error::is_denied(error)) {
                return Ended::Denied(error::denied(target, error));
            }
            if is_lost {
                let reason = error.as_deref().unwrap_or("the server has closed it");
                return Ended::Lost(error::lost(&target.place, &reason));
            }
            self.changed.notified().await;
        }
    }

    fn get(&self) -> SignalState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A runtime whose end waits for nothing, such as the resolution of a name.
struct BackgroundRuntime(Option<Runtime>);

impl BackgroundRuntime {
    fn new() -> Result<BackgroundRuntime, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Failure::unavailable(format!("cannot connect to NATS: {error}")))?;
        Ok(BackgroundRuntime(Some(runtime)))
    }

    /// Runs a future until its end, the deadline or an interruption; `None` for the latter two.
    fn run<T>(&self, future: impl Future<Output = T>, deadline: Instant, interrupt: &Notify) -> Option<T> {
        let runtime = self.0.as_ref()?;
        // The client logs each failure as well, on this thread.
        let _without_log = tracing::dispatcher::set_default(&tracing::Dispatch::none());
        runtime.block_on(async {
            tokio::select! {
                biased;
                result = tokio::time::timeout_at(deadline.into(), future) => result.ok(),
                () = interrupt.notified() => None,
            }
        })
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Connection {
    /// Connects to one of the servers.
    pub(super) fn open(
        target: &Target,
        deadline: Instant,
        interrupt: &Notify,
    ) -> Result<Connection, Failure> {
        let runtime = BackgroundRuntime::new()?;
        let signals = Arc::new(Signals::default());
        let options = options(target, deadline, &signals)?;
        let connected = runtime.run(
            async {
                let client = options.connect(target.servers.as_slice()).await?;
                let inbox = client.new_inbox();
                let acknowledgements = client.subscribe(format!("{inbox}.*")).await;
                Ok(acknowledgements.map(|acknowledgements| (client, inbox, acknowledgements)))
            },
            deadline,
            interrupt,
        );
        match connected {
            None => Err(error::no_connection(&target.place, &"the time limit has passed")),
            Some(Err(error)) => Err(error::cannot_connect(&target.place, &error)),
            Some(Ok(Err(error))) => Err(error::no_connection(&target.place, &error)),
            Some(Ok(Ok((client, inbox, acknowledgements)))) => {
                let sent = HashMap::new();
                let session = Session { client, acknowledgements, inbox, sent, next: 0, answers: 0, signals };
                Ok(Connection { session, runtime })
            }
        }
    }

    /// Publishes verdicts, and waits for the acknowledgement of each.
    pub(super) fn publish(&mut self, mut publishing: Publishing<'_>, interrupt: &Notify) -> Ended {
        let Publishing { target, limit, deadline, .. } = publishing;
        let answers = self.session.answers;
        let ended = self.runtime.run(self.session.publish(&mut publishing), deadline, interrupt);
        ended.unwrap_or_else(|| {
            let failure = match Instant::now() < deadline {
                true => Failure::unavailable("writing to NATS was interrupted by the end of the run"),
                false => error::late(target, self.session.sent.len(), limit),
            };
            Ended::Late { failure, is_moving: self.session.answers > answers }
        })
    }

    /// Serves the connection for a while. Returns whether it still exists.
    pub(super) fn serve(&mut self, limit: Duration) -> bool {
        let changed = self.session.signals.changed.notified();
        // Interruptions are for writes.
        self.runtime.run(changed, Instant::now() + limit, &Notify::new());
        !self.session.signals.get().is_lost
    }
}

impl Session {
    async fn publish(&mut self, publishing: &mut Publishing<'_>) -> Ended {
        let mut refused = None;
        for verdict in verdicts(publishing.entries) {
            let identity = identity(verdict);
            if publishing.unfinished.get(identity).is_some() {
                continue;
            }
            while self.sent.len() >= WINDOW {
                if let Err(ended) = self.receive(publishing, &mut refused).await {
                    return ended;
                }
            }
            if refused.as_ref().is_some_and(|failure: &Failure| failure.kind != FailureKind::Rejected) {
                // It concerns further ones as well.
                break;
            }
            if let Err(ended) = self.send(verdict, identity, publishing, &mut refused).await {
                return ended;
            }
        }
        while !self.sent.is_empty() {
            if let Err(ended) = self.receive(publishing, &mut refused).await {
                return ended;
            }
        }
        Ended::Finished(refused.map_or(Ok(()), Err))
    }

    /// Sends a verdict. One that is too large for the server is refused here.
    async fn send(
        &mut self,
        verdict: &VerdictEntry<'_>,
        identity: u128,
        publishing: &mut Publishing<'_>,
        refused: &mut Option<Failure>,
    ) -> Result<(), Ended> {
        let target = publishing.target;
        if verdict.json.is_empty() {
            publishing.unfinished.set(identity, Delivery::Rejected);
            refused.get_or_insert_with(|| without_text(verdict));
            return Ok(());
        }
        let series = publishing.series.of(verdict.run);
        let mut headers = HeaderMap::new();
        if let Some(id) = verdict.id {
            headers.insert("Nats-Msg-Id", id_text(id));
        }
        headers.insert("Rondel-Series", single_line(&series));
        let subject = target.subject.subject(verdict, &series);
        let reply = format!("{}.{}", self.inbox, self.next);
        let payload = verdict.json.to_owned().into();
        let sending = self.client.publish_with_reply_and_headers(subject, reply, headers, payload);
        let sent = tokio::select! {
            biased;
            sent = sending => sent,
            ended = self.signals.trouble(target) => return Err(ended),
        };
        match sent {
            Ok(()) => {}
            Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                let (size, largest) = (verdict.json.len(), self.client.max_payload());
                publishing.unfinished.set(identity, Delivery::Rejected);
                refused
                    .get_or_insert_with(|| error::too_large(&target.place, verdict.property, size, largest));
                return Ok(());
            }
            // The task of the connection has ended.
            Err(error) => return Err(Ended::Lost(error::lost(&target.place, &error))),
        }
        publishing.unfinished.set(identity, Delivery::Sent);
        self.sent.insert(self.next, identity);
        self.next += 1;
        Ok(())
    }

    /// Waits for an acknowledgement.
    async fn receive(
        &mut self,
        publishing: &mut Publishing<'_>,
        refused: &mut Option<Failure>,
    ) -> Result<(), Ended> {
        let target = publishing.target;
        let message = tokio::select! {
            biased;
            message = self.acknowledgements.next() => message,
            ended = self.signals.trouble(target) => return Err(ended),
        };
        let Some(message) = message else {
            return Err(Ended::Lost(error::lost(&target.place, &"it was closed")));
        };
        let Some(identity) = self.acknowledged(&message) else {
            return Ok(());
        };
        self.answers += 1;
        match error::answer(target, &message) {
            Answer::Stored { is_repeated } => {
                publishing.unfinished.set(identity, Delivery::Acknowledged { is_repeated });
            }
            Answer::Refused(failure) => {
                match failure.kind {
                    FailureKind::Rejected => publishing.unfinished.set(identity, Delivery::Rejected),
                    _ => drop(publishing.unfinished.remove(identity)),
                }
                // A reason that concerns all verdicts is reported rather than one that concerns some.
                if refused.as_ref().is_none_or(|known| known.kind == FailureKind::Rejected) {
                    *refused = Some(failure);
                }
            }
        }
        Ok(())
    }

    /// Returns the identity of the verdict that a message is about, once.
    fn acknowledged(&mut self, message: &Message) -> Option<u128> {
        let number = message.subject.rsplit('.').next()?;
        self.sent.remove(&number.parse().ok()?)
    }
}

/// Returns the options of the client.
fn options(target: &Target, deadline: Instant, signals: &Arc<Signals>) -> Result<ConnectOptions, Failure> {
    let options = &target.options;
    let unavailable = |reason: String| {
        Failure::unavailable(format!("cannot connect to NATS at {}: {reason}", target.place))
    };
    let share = deadline.saturating_duration_since(Instant::now()) / target.servers.len().max(1) as u32;
    let events = Arc::clone(signals);
    let mut client = ConnectOptions::new()
        .name("rondel")
        .connection_timeout(share.max(CONNECT))
        .ignore_discovered_servers()
        .event_callback(move |event| {
            events.note(event);
            std::future::ready(())
        });
    match (&options.user, &options.password, &options.token, &options.credentials) {
        (Some(user), Some(password), ..) => client = client.user_and_password(user.clone(), password.clone()),
        (_, _, Some(token), _) => client = client.token(token.clone()),
        (.., Some(path)) => {
            let text = credentials(path).map_err(unavailable)?;
            client = client.credentials(&text).map_err(|error| unavailable(error.to_string()))?;
        }
        _ => {}
    }
    // The files are read again, since certificates are renewed.
    match &options.tls {
        Some(tls) => {
            client = client.require_tls(true).tls_client_config(tls.client_config().map_err(unavailable)?)
        }
        // A server may require TLS anyway. Without a trust store, the connection fails only then.
        None => {
            if let Ok(config) = TlsOptions::default().client_config() {
                client = client.tls_client_config(config);
            }
        }
    }
    Ok(client)
}

/// Reads a file of credentials, and checks it.
///
/// # Errors
/// A sentence with the file and the way out.
pub(super) fn credentials(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!(
            "cannot read {} with the credentials of NATS: {error}; check its path and its permissions",
            path.display()
        )
    })?;
    match ConnectOptions::with_credentials(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!(
            "cannot use {} as credentials of NATS: {error}; `nsc generate creds` writes such a file",
            path.display()
        )),
    }
}

/// Returns a text without line breaks, which end a header.
fn single_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
