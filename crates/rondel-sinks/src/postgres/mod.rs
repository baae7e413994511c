//! Store of verdicts in a database of PostgreSQL.
//!
//! [`PostgresSink`] writes, behind a [`Driver`](crate::Driver), the tables and views of the
//! [store in a file](crate::sqlite) into a schema of its own. Any number of processes may write into one schema, each
//! series by one at a time. [`Operations`] are the actions of operators. docs/reference/store-postgres.md describes schema,
//! rights and faults.

mod error;
mod instances;
mod operate;
mod retain;
mod runs;
mod session;
mod tls;
mod values;
mod verdicts;
mod writer;

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use self::error::{failure, interrupted, too_slow};
pub use self::operate::{Operations, Unacted};
use self::session::Session;
pub use self::session::VERSION;
use self::writer::Writer;
use crate::entry::Entry;
pub use crate::operate::{Acknowledgement, Action, NewSilence, is_same_value};
use crate::sink::{Failure, Sink, Written};
use crate::tls::TlsOptions;

/// Schema of the tables, unless the URL names another.
const SCHEMA: &str = "rondel";
/// Least time limit of a call.
const LEAST: Duration = Duration::from_millis(50);

/// Options of a store in PostgreSQL.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PostgresOptions {
    /// URL as of `psql`: `postgresql://USER@HOST:PORT/DATABASE`, or pairs `host=… user=…`. The parameter `schema` of a URL
    /// names the schema of the tables, by default `rondel`.
    pub url: String,
    /// Password, instead of one in the URL.
    pub password: Option<String>,
    /// Encryption, with the server's certificate and name verified; `None`: none.
    pub tls: Option<TlsOptions>,
    /// Age after which rows of the series that this sink writes are removed, by time of day.
    pub keep: Option<Duration>,
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL and the password.
        let PostgresOptions { tls, keep, .. } = self;
        f.debug_struct("PostgresOptions").field("tls", tls).field("keep", keep).finish_non_exhaustive()
    }
}

/// The database that a sink or an action of an operator writes.
pub(crate) struct Target {
    config: Config,
    schema: String,
    tls: Option<TlsOptions>,
    /// End of messages about faults that may pass: a driver repeats the calls of its sink, but no action of an operator.
    again: &'static str,
}

impl Target {
    /// Parses options of a sink.
    fn of_sink(options: PostgresOptions) -> Result<Target, String> {
        Target::of(options, "it is tried again")
    }

    /// Parses options of actions of operators.
    fn of_operations(options: PostgresOptions) -> Result<Target, String> {
        Target::of(options, "try again later")
    }

    fn of(options: PostgresOptions, again: &'static str) -> Result<Target, String> {
        let PostgresOptions { url, password, tls, keep: _ } = options;
        let (url, schema) = split_schema(&url)?;
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            format!(
                "cannot understand the URL of a database of PostgreSQL: {}; write it as \
                 postgresql://USER@HOST:PORT/DATABASE",
                error::reason(&error)
            )
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("the URL of a database of PostgreSQL names no host".to_owned());
        }
        if let Some(password) = password {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("rondel");
        }
        session::set_encryption(&mut config, tls.is_some())?;
        if let Some(tls) = &tls {
            tls.client_config()?;
        }
        Ok(Target { config, schema, tls, again })
    }
}

/// Creates a runtime for the connections of one thread.
fn runtime() -> Result<Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.map_err(|error| format!("cannot prepare connections to PostgreSQL: {error}"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        for (i, host) in self.config.get_hosts().iter().enumerate() {
            let separator = if i > 0 { "," } else { "" };
            let port = ports.get(i).or(ports.first()).unwrap_or(&5432);
            match host {
                Host::Tcp(host) => write!(f, "{separator}{host}:{port}")?,
                #[cfg(unix)]
                Host::Unix(folder) => write!(f, "{separator}{}:{port}", folder.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().or(self.config.get_user()).unwrap_or_default())
    }
}

/// Sink that writes into a database of PostgreSQL.
pub struct PostgresSink {
    target: Target,
    keep: Option<Duration>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
    session: Option<Session>,
    writer: Writer,
    interrupt: Arc<Notify>,
}

impl PostgresSink {
    /// Creates a sink, which connects by its first write.
    ///
    /// # Errors
    /// A sentence: the URL is wrong, or a file of `tls` cannot be used.
    pub fn new(options: PostgresOptions) -> Result<PostgresSink, String> {
        let keep = options.keep;
        let target = Target::of_sink(options)?;
        let runtime = runtime()?;
        let (session, writer, interrupt) = Default::default();
        Ok(PostgresSink { target, keep, runtime: Some(runtime), session, writer, interrupt })
    }

    /// Runs a call until it ends, its time limit passes, or it is interrupted. Afterwards there is no connection, unless
    /// the call has left one.
    fn run<T>(
        &mut self,
        limit: Duration,
        call: impl AsyncFnOnce(&Target, &mut Writer, &mut Option<Session>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let PostgresSink { target, runtime, session, writer, interrupt, .. } = self;
        let Some(runtime) = runtime else { return Err(self::interrupted(target)) };
        let mut open = session.take();
        let result = runtime.block_on(async {
            let mut call = pin!(tokio::time::timeout(limit, call(target, writer, &mut open)));
            let mut interrupted = pin!(interrupt.notified());
            poll_fn(|context| match call.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => interrupted.as_mut().poll(context).map(|()| None),
            })
            .await
        });
        match result {
            Some(Ok(result)) => {
                *session = open;
                result
            }
            // In the middle of a statement: the server ends the transaction with the connection.
            Some(Err(_)) => {
                writer.slow_down();
                runtime.block_on(tokio::task::yield_now());
                Err(too_slow(target, limit))
            }
            None => {
                runtime.block_on(tokio::task::yield_now());
                Err(self::interrupted(target))
            }
        }
    }
}

impl PostgresSink {
    /// Forgets an interruption that came after the last call.
    fn ignore_interruption(&self) {
        let Some(runtime) = &self.runtime else { return };
        runtime.block_on(poll_fn(|context| {
            let interrupted = pin!(self.interrupt.notified());
            let _ = interrupted.poll(context);
            Poll::Ready(())
        }));
    }
}

impl Drop for PostgresSink {
    fn drop(&mut self) {
        self.session = None;
        if let Some(runtime) = self.runtime.take() {
            // Looking up the name of a host may still take long: nothing waits for it.
            runtime.shutdown_background();
        }
    }
}

impl Sink for PostgresSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        let limit = limit.max(LEAST);
        self.run(limit, async |target, writer, open| {
            let session = connected(target, writer, open, limit).await?;
            match writer.write(&session, entries, limit).await {
                Ok(written) => {
                    *open = Some(session);
                    Ok(written)
                }
                Err(error) => {
                    let (session, error) = session.recover(error).await;
                    *open = session;
                    Err(failure(&error, "write", target))
                }
            }
        })
    }

    fn maintain(&mut self, now: i64, limit: Duration) -> Result<bool, Failure> {
        let (Some(keep), Some(_)) = (self.keep, &self.session) else { return Ok(false) };
        // A piece lasts about as long as the limit; the statements of a slow server may last longer.
        self.run(limit.max(Duration::from_secs(5)), async |target, writer, open| {
            let Some(session) = open.take() else { return Ok(false) };
            match retain::retain(&session, writer.series(), retain::Before::new(keep, now), limit).await {
                Ok(more) => {
                    *open = Some(session);
                    Ok(more)
                }
                Err(error) => {
                    let (session, error) = session.recover(error).await;
                    *open = session;
                    Err(failure(&error, "remove old rows of", target))
                }
            }
        })
    }

    fn close(&mut self, limit: Duration) -> Result<(), Failure> {
        self.ignore_interruption();
        self.run(limit, async |target, _, open| match open.take() {
            Some(session) => session.close().await.map_err(|error| failure(&error, "close", target)),
            None => Ok(()),
        })
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        let interrupt = Arc::clone(&self.interrupt);
        // Between two calls, it interrupts the next one.
        Some(Box::new(move || interrupt.notify_one()))
    }
}

/// Takes the open connection, or opens one.
async fn connected(
    target: &Target,
    writer: &mut Writer,
    open: &mut Option<Session>,
    limit: Duration,
) -> Result<Session, Failure> {
    if let Some(session) = open.take()
        && !session.is_closed().await
    {
        return Ok(session);
    }
    // The database may contain other rows than before: it was restored, or is another one.
    writer.forget();
    Session::open(target, limit).await
}

/// Returns a URL without its parameter `schema`, and the name of the schema.
fn split_schema(url: &str) -> Result<(String, String), String> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), SCHEMA.to_owned())) };
    let (schema, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|parameter| parameter.starts_with("schema="));
    let schema = schema.last().map_or(SCHEMA, |parameter| &parameter["schema=".len()..]);
    let is_name = !schema.is_empty()
        && schema.len() < 64
        && schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && schema.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        return Err(format!(
            "`{schema}` cannot be the name of a schema: write lower-case letters, digits and underscores"
        ));
    }
    let separator = if others.is_empty() { "" } else { "?" };
    Ok((format!("{before}{separator}{}", others.join("&")), schema.to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn interruption_between_calls_ends_the_next_one() {
        let mut sink = sink("postgresql://a@127.0.0.1/b", None).unwrap();
        let interrupt = sink.interrupter().unwrap();
        let wait = |sink: &mut PostgresSink| {
            sink.run(LEAST, async |_, _, _| std::future::pending::<Result<(), Failure>>().await)
        };
        interrupt();
        assert!(wait(&mut sink).is_err_and(|failure| failure.message.contains("was interrupted")));
        assert!(wait(&mut sink).is_err_and(|failure| failure.message.contains("no answer within")));
        interrupt();
        sink.ignore_interruption();
        assert!(wait(&mut sink).is_err_and(|failure| failure.message.contains("no answer within")));
    }

    fn sink(url: &str, tls: Option<TlsOptions>) -> Result<PostgresSink, String> {
        PostgresSink::new(PostgresOptions {
            url: url.to_owned(),
            password: Some("secret".to_owned()),
            tls,
            keep: None,
        })
    }

    #[test]
    fn urls_are_understood() {
        let cases = [
            ("postgresql://rondel@db.example/verdicts", "db.example:5432/verdicts", "rondel"),
            ("postgres://a:b@one:1,two:2/c?connect_timeout=3&schema=tests", "one:1,two:2/c", "tests"),
            ("postgresql://rondel@%2Frun%2Fpostgresql/v?schema=t_1", "/run/postgresql:5432/v", "t_1"),
            ("host=db.example user=rondel", "db.example:5432/rondel", "rondel"),
        ];
        for (url, place, schema) in cases {
            let PostgresSink { target, .. } = &sink(url, None).unwrap();
            assert_eq!((target.to_string().as_str(), target.schema.as_str()), (place, schema));
            assert_eq!(target.config.get_password(), Some(&b"secret"[..]));
        }
    }

    #[test]
    fn wrong_options_are_named() {
        let cases = [
            ("postgresql://db.example:port/x", None, "invalid"),
            ("postgresql:///x", None, "names no host"),
            ("http://db.example", None, "write it as postgresql://"),
            ("postgresql://a@b/c?schema=No", None, "cannot be the name of a schema"),
            ("postgresql://a@b/c?sslmode=require", None, "set `tls`"),
            ("postgresql://a@b/c?sslmode=disable", Some(TlsOptions::default()), "excludes TLS"),
            (
                "postgresql://a@b/c",
                Some(TlsOptions { ca: Some("none.pem".into()), ..TlsOptions::default() }),
                "none.pem",
            ),
        ];
        for (url, tls, expected) in cases {
            let error = sink(url, tls).map(drop).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
        }
        let options = PostgresOptions { url: "postgresql://a:hidden@b".to_owned(), ..Default::default() };
        assert!(!format!("{options:?}").contains("hidden"));
    }
}
