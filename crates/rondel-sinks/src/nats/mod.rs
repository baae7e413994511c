//! Verdicts as messages of NATS JetStream.
//!
//! Each verdict is published with its id in the header `Nats-Msg-Id`, by which a stream recognises repeated ones, and counts
//! as written once its stream has acknowledged it.

mod connection;
mod error;
mod subject;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::ServerAddr;
use tokio::sync::Notify;

use crate::entry::Entry;
use crate::outgoing::{SeriesNames, Stopped, Unfinished, verdicts};
use crate::sink::{Failure, Progress, Sink, Written};
use crate::tls::TlsOptions;

use connection::{Connection, Ended, Publishing};
use subject::Template;

/// Duration for which a connection without verdicts is served, in each maintenance: it answers the server's pings.
const SERVE: Duration = Duration::from_millis(10);

/// Options of a sink of NATS.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NatsOptions {
    /// Addresses of the servers of one cluster: `nats://host:port`, `tls://host:port` or `host:port`; port 4222 without one.
    pub servers: Vec<String>,
    /// Subject of a verdict, with the placeholders `{property}`, `{series}` and `{verdict}`.
    pub subject: String,
    /// Name of the user, with a password.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<String>,
    /// Token, instead of a user.
    pub token: Option<String>,
    /// File of credentials with a JWT and its key, instead of a user. It is read for each connection.
    pub credentials: Option<PathBuf>,
    /// TLS. With it, a connection without TLS is refused.
    pub tls: Option<TlsOptions>,
}

impl fmt::Debug for NatsOptions {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsOptions")
            .field("servers", &self.servers)
            .field("subject", &self.subject)
            .field("user", &self.user)
            .field("credentials", &self.credentials)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Sink of NATS JetStream.
pub struct NatsSink {
    target: Target,
    connection: Option<Connection>,
    series: SeriesNames,
    unfinished: Unfinished,
    interrupt: Arc<Notify>,
}

/// Options that were checked.
struct Target {
    options: NatsOptions,
    servers: Vec<ServerAddr>,
    /// The servers, for messages.
    place: String,
    subject: Template,
}

impl NatsSink {
    /// Checks options. Does not connect.
    ///
    /// # Errors
    /// A sentence with the option and the way out.
    pub fn new(options: NatsOptions) -> Result<NatsSink, String> {
        let target = Target::new(options)?;
        Ok(NatsSink {
            target,
            connection: None,
            series: SeriesNames::default(),
            unfinished: Unfinished::default(),
            interrupt: Arc::new(Notify::new()),
        })
    }

    /// Publishes the verdicts that are not acknowledged. Connects again once if the connection was lost while it was idle.
    fn publish(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<(), Stopped> {
        let deadline = Instant::now() + limit;
        let mut is_new = self.connection.is_none();
        loop {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => {
                    // The answers to what was sent went to another connection.
                    self.unfinished.remove_sent();
                    Connection::open(&self.target, deadline, &self.interrupt)?
                }
            };
            let publishing = Publishing {
                target: &self.target,
                series: &self.series,
                unfinished: &mut self.unfinished,
                entries,
                limit,
                deadline,
            };
            let stopped = match connection.publish(publishing, &self.interrupt) {
                Ended::Finished(result) => {
                    self.connection = Some(connection);
                    return result.map_err(Stopped::from);
                }
                Ended::Late { failure, is_moving: true } => {
                    // Its acknowledgements are still on their way.
                    self.connection = Some(connection);
                    return Err(Stopped { failure, is_late: true });
                }
                Ended::Late { failure, is_moving: false } => Some(Stopped { failure, is_late: true }),
                Ended::Lost(failure) => is_new.then(|| failure.into()),
                Ended::Denied(failure) => Some(failure.into()),
            };
            match stopped {
                Some(stopped) => return Err(stopped),
                None => is_new = true,
            }
        }
    }
}

impl Sink for NatsSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        self.write_some(entries, limit).of_all(entries.len())
    }

    fn write_some(&mut self, entries: &[Entry<'_>], limit: Duration) -> Progress {
        self.series.note(entries);
        let has_verdicts = verdicts(entries).next().is_some();
        let result = if has_verdicts { self.publish(entries, limit) } else { Ok(()) };
        self.unfinished.finish(entries, result)
    }

    fn maintain(&mut self, _now: i64, limit: Duration) -> Result<bool, Failure> {
        if let Some(connection) = &mut self.connection
            && !connection.serve(limit.min(SERVE))
        {
            self.connection = None;
        }
        Ok(false)
    }

    fn close(&mut self, _limit: Duration) -> Result<(), Failure> {
        // Everything is acknowledged, or was reported.
        self.connection = None;
        Ok(())
    }

    fn wants_json(&self) -> bool {
        true
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        let interrupt = Arc::clone(&self.interrupt);
        Some(Box::new(move || interrupt.notify_one()))
    }
}

impl Target {
    fn new(options: NatsOptions) -> Result<Target, String> {
        if options.servers.is_empty() {
            return Err("NATS needs the address of a server, such as `nats://127.0.0.1:4222`".to_owned());
        }
        let servers: Vec<ServerAddr> =
            options.servers.iter().map(|text| server(text)).collect::<Result<_, _>>()?;
        check_login(&options)?;
        if let Some(tls) = &options.tls {
            tls.client_config()?;
        }
        let subject = Template::parse(&options.subject)?;
        Ok(Target { place: options.servers.join(", "), servers, subject, options })
    }
}

/// Parses the address of a server.
fn server(text: &str) -> Result<ServerAddr, String> {
    let wrong = |reason: &str| {
        format!(
            "cannot use the address `{text}` of NATS: {reason}; write it as `nats://host:4222` or `tls://host:4222`"
        )
    };
    // The text of an address with a password must not be printed.
    if text.contains('@') {
        return Err("an address of NATS contains a user or a token; move them to the options `user`, `password_env`, \
                    `token_env` or `credentials`"
            .to_owned());
    }
    let address: ServerAddr =
        text.trim().parse().map_err(|error: std::io::Error| wrong(&error.to_string()))?;
    if address.is_websocket() {
        return Err(wrong("WebSockets are not supported"));
    }
    if address.host().is_empty() {
        return Err(wrong("it has no host"));
    }
    Ok(address)
}

/// Checks that there is one way to log in at most.
fn check_login(options: &NatsOptions) -> Result<(), String> {
    let NatsOptions { user, password, token, credentials, .. } = options;
    if user.is_some() != password.is_some() {
        return Err(
            "NATS needs a password with a user, and a user with a password: set both, or neither".to_owned()
        );
    }
    let ways = [user.is_some(), token.is_some(), credentials.is_some()];
    if ways.iter().filter(|&&way| way).count() > 1 {
        return Err("NATS accepts one of a user with a password, a token and a file of credentials; remove the others".to_owned());
    }
    if let Some(path) = credentials {
        connection::credentials(path)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn options() -> NatsOptions {
        NatsOptions {
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            subject: "rondel.{property}".to_owned(),
            ..NatsOptions::default()
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        let some = |text: &str| Some(text.to_owned());
        let servers = |text: &str| NatsOptions { servers: vec![text.to_owned()], ..options() };
        let cases = [
            (NatsOptions { servers: Vec::new(), ..options() }, "needs the address of a server"),
            (servers("http://a:4222"), "`http://a:4222` of NATS: invalid scheme"),
            (servers("ws://a:4222"), "WebSockets are not supported"),
            (servers("nats://me:secret@a:4222"), "move them to the options `user`"),
            (servers("nats://"), "`nats://` of NATS"),
            (NatsOptions { subject: "a.*".to_owned(), ..options() }, "the subject `a.*` of NATS"),
            (NatsOptions { user: some("me"), ..options() }, "set both, or neither"),
            (NatsOptions { password: some("x"), ..options() }, "set both, or neither"),
            (
                NatsOptions { user: some("me"), password: some("x"), token: some("t"), ..options() },
                "remove the others",
            ),
            (NatsOptions { credentials: Some("/none/a.creds".into()), ..options() }, "/none/a.creds"),
        ];
        for (options, reason) in cases {
            let error = NatsSink::new(options).err().unwrap();
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
        assert!(NatsSink::new(NatsOptions { servers: vec!["localhost".to_owned()], ..options() }).is_ok());
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret =
            NatsOptions { user: Some("me".to_owned()), password: Some("secret".to_owned()), ..options() };
        assert!(!format!("{secret:?}").contains("secret"));
    }

    #[test]
    fn nothing_but_verdicts_needs_a_connection() {
        let mut sink = NatsSink::new(options()).unwrap();
        let entries = [Entry::End(crate::End { status: "finished", ..crate::End::default() })];
        assert_eq!(sink.write(&entries, Duration::ZERO).unwrap(), Written::default());
        assert!(!sink.maintain(0, Duration::ZERO).unwrap());
    }
}
