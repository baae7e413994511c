//! A connection to a server: settings, version of the schema, prepared statements.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, Socket, Statement};

use super::Target;
use super::error::{self, failure};
use super::tls::MakeConnector;
use crate::sink::Failure;

/// Statements that make each version from the one before. Never change one that was released; append.
const MIGRATIONS: &[&str] = &[concat!(include_str!("schema.sql"), include_str!("views.sql"))];
/// Version of the schema.
pub const VERSION: u32 = MIGRATIONS.len() as u32;
/// Oldest version of PostgreSQL that knows all statements.
const OLDEST: i32 = 140_000;
/// Key of the lock under which a schema is made: "Rondel" in ASCII.
const LOCK: i64 = 0x526f_6e64_656c;
/// Time without an answer after which the system checks whether the server is there.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Rows of a batch on their way into the table of verdicts.
const STAGING: &str = "CREATE TEMPORARY TABLE staging (LIKE verdicts) ON COMMIT DELETE ROWS";

/// Parameters of a statement.
pub(super) type Parameters<'a> = [&'a (dyn ToSql + Sync)];

/// A connection that is ready to write.
pub(super) struct Session {
    pub(super) client: Client,
    task: Task,
    statements: RefCell<HashMap<&'static str, Statement>>,
}

/// Moves bytes between the client and the server. Dropping it ends the connection.
struct Task(JoinHandle<Result<(), Error>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Session {
    /// Connects, makes the schema if it does not exist, and brings it up to date.
    pub(super) async fn open(target: &Target, limit: Duration) -> Result<Session, Failure> {
        let session = Session::connect(target, limit).await?;
        session.prepare_schema(target).await?;
        session.client.batch_execute(STAGING).await.map_err(|error| failure(&error, "use", target))?;
        Ok(session)
    }

    /// Connects to a schema, which must exist, and brings it up to date.
    pub(super) async fn open_existing(target: &Target, limit: Duration) -> Result<Session, Failure> {
        let session = Session::connect(target, limit).await?;
        session.set_schema(target).await?;
        if session.version(target).await?.is_none() {
            return Err(error::missing(target));
        }
        session.prepare_schema(target).await?;
        Ok(session)
    }

    async fn connect(target: &Target, limit: Duration) -> Result<Session, Failure> {
        let mut config = target.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(limit / 2);
        }
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 2).tcp_user_timeout(2 * KEEPALIVE);
        let connected = match &target.tls {
            None => connect(&config, NoTls).await,
            Some(tls) => {
                // Certificates are replaced while a monitor runs: their files are read again.
                let tls = tls.client_config().map_err(Failure::unavailable)?;
                connect(&config, MakeConnector(Arc::new(tls))).await
            }
        };
        connected.map_err(|error| failure(&error, "connect to", target))
    }

    async fn set_schema(&self, target: &Target) -> Result<(), Failure> {
        let sql = format!(
            "SET search_path = \"{}\"; SET client_min_messages = warning; \
             SET idle_in_transaction_session_timeout = '30s'",
            target.schema
        );
        self.client.batch_execute(&sql).await.map_err(|error| failure(&error, "use", target))
    }

    async fn prepare_schema(&self, target: &Target) -> Result<(), Failure> {
        let failed = |error: Error| failure(&error, "use", target);
        let server = self.query_one("SELECT current_setting('server_version_num')::integer", &[]).await;
        let server: i32 = server.and_then(|row| row.try_get(0)).map_err(failed)?;
        if server < OLDEST {
            return Err(error::too_old(target, server / 10_000, OLDEST / 10_000));
        }
        self.set_schema(target).await?;
        if self.version(target).await? != Some(VERSION) {
            self.client
                .batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})"))
                .await
                .map_err(failed)?;
            self.migrate(target).await?;
            self.client.batch_execute("COMMIT").await.map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the version of the schema; `None` if it does not exist or is empty.
    async fn version(&self, target: &Target) -> Result<Option<u32>, Failure> {
        let failed = |error: Error| failure(&error, "read the version of", target);
        let sql = "SELECT has_schema_privilege(oid, 'USAGE'), to_regclass('schema_version') IS NOT NULL, \
                   EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid) FROM pg_namespace n WHERE nspname = $1";
        let rows = self.query(sql, &[&target.schema]).await.map_err(failed)?;
        let Some(row) = rows.first() else { return Ok(None) };
        let found = |column| row.try_get::<_, bool>(column).map_err(failed);
        let (is_usable, has_version, has_tables) = (found(0)?, found(1)?, found(2)?);
        if !is_usable {
            return Err(error::no_right(target));
        }
        if !has_version {
            return if has_tables { Err(error::not_a_store(target)) } else { Ok(None) };
        }
        let row = self.query_one("SELECT version FROM schema_version", &[]).await.map_err(failed)?;
        let version: i32 = row.try_get(0).map_err(failed)?;
        match u32::try_from(version) {
            Ok(version) if version <= VERSION => Ok(Some(version)),
            _ => Err(error::newer(target, version, VERSION)),
        }
    }

    /// Applies the migrations that a schema does not have, within a transaction that has the lock.
    async fn migrate(&self, target: &Target) -> Result<(), Failure> {
        let failed = |error: Error| failure(&error, "bring the schema up to date in", target);
        // Another process may have been faster.
        let version = self.version(target).await?;
        if version == Some(VERSION) {
            return Ok(());
        }
        if version.is_none() {
            let sql = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
            let row = self.query_one(sql, &[&target.schema]).await.map_err(failed)?;
            let exists: bool = row.try_get(0).map_err(failed)?;
            // CREATE SCHEMA needs a right even where the schema exists, and not every writer has it.
            if !exists {
                let sql = format!("CREATE SCHEMA \"{}\"", target.schema);
                self.client.batch_execute(&sql).await.map_err(failed)?;
            }
            let sql = "CREATE TABLE schema_version (version integer NOT NULL); \
                       INSERT INTO schema_version VALUES (0)";
            self.client.batch_execute(sql).await.map_err(failed)?;
        }
        for migration in MIGRATIONS.iter().skip(version.unwrap_or(0) as usize) {
            self.client.batch_execute(migration).await.map_err(failed)?;
        }
        let sql = format!("UPDATE schema_version SET version = {VERSION}");
        self.client.batch_execute(&sql).await.map_err(failed)
    }

    /// Begins a transaction whose statements end within a limit, each for itself.
    pub(super) async fn begin(&self, limit: Duration) -> Result<(), Error> {
        let limit = limit.as_millis().clamp(1, i32::MAX as u128);
        let lock = (limit * 3 / 4).max(1);
        let sql = format!("BEGIN; SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {lock}");
        self.client.batch_execute(&sql).await
    }

    /// Returns a statement, prepared once.
    pub(super) async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) async fn query(
        &self,
        sql: &'static str,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, parameters).await
    }

    pub(super) async fn query_one(
        &self,
        sql: &'static str,
        parameters: &Parameters<'_>,
    ) -> Result<Row, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query_one(&statement, parameters).await
    }

    pub(super) async fn execute(&self, sql: &'static str, parameters: &Parameters<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.client.execute(&statement, parameters).await
    }

    /// Whether the server has closed the connection.
    pub(super) async fn is_closed(&self) -> bool {
        // Between two calls nothing reads from the connection: first its socket is looked at, then its task runs.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.task.0.is_finished() || self.client.is_closed()
    }

    /// Takes what an error leaves behind out of the way. Returns whether the connection can be used again; otherwise it is
    /// consumed, with the reason for its end if the server has said one.
    pub(super) async fn recover(mut self, error: Error) -> (Option<Session>, Error) {
        let is_usable = error.as_db_error().is_some_and(|error| {
            // Of other errors, such as missing tables, a new connection may know more.
            let passes =
                matches!(&error.code().code()[..2], "21" | "22" | "23" | "40" | "53" | "54" | "55" | "57");
            error.severity() == "ERROR" && passes
        });
        if is_usable && self.client.batch_execute("ROLLBACK").await.is_ok() {
            return (Some(self), error);
        }
        if error.is_closed()
            && let Ok(Ok(Err(reason))) =
                tokio::time::timeout(Duration::from_millis(100), &mut self.task.0).await
        {
            return (None, reason);
        }
        (None, error)
    }

    /// Ends the connection.
    pub(super) async fn close(self) -> Result<(), Error> {
        let Session { client, mut task, .. } = self;
        drop(client);
        (&mut task.0).await.unwrap_or(Ok(()))
    }
}

async fn connect<T>(config: &Config, tls: T) -> Result<Session, Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    let task = Task(tokio::spawn(connection));
    Ok(Session { client, task, statements: RefCell::default() })
}

/// Sets whether the connection is encrypted. An error if the URL contradicts.
pub(super) fn set_encryption(config: &mut Config, is_encrypted: bool) -> Result<(), String> {
    match (config.get_ssl_mode(), is_encrypted) {
        (SslMode::Require, false) => {
            Err("the URL of the database requires TLS: set `tls`, and leave `sslmode` out".to_owned())
        }
        (SslMode::Disable, true) => {
            Err("the URL of the database excludes TLS, and `tls` is set: leave `sslmode` out".to_owned())
        }
        _ => {
            config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
            Ok(())
        }
    }
}
