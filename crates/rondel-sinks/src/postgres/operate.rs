//! Actions of operators: acknowledging violations and silencing properties, each recorded in the same transaction.

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_postgres::Error;

use super::error::{failure, reason, too_slow, unconfirmed};
use super::session::Session;
use super::{PostgresOptions, Target, runtime};
use crate::operate::{
    Acknowledgement, Action, Done, Found, NewSilence, no_property, no_silence, no_violation, object,
    silence_ended, silence_members, wrong_parameter,
};
use crate::sink::Failure;

/// A violation, locked until the action is stored: the run that writes it waits.
const FIND: &str = "SELECT p.name, v.parameters::text, s.name, \
    to_char(time_of(v.\"end\") AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), \
    v.acknowledged_by, v.acknowledged_until \
    FROM violations v JOIN properties p ON p.id = v.property JOIN series s ON s.id = p.series \
    WHERE v.id = $1 FOR UPDATE OF v";
const ACKNOWLEDGE: &str = "UPDATE violations SET acknowledged_by = $2, comment = $3, acknowledged_at = $4, \
    acknowledged_until = $5 WHERE id = $1";
/// Existence of a property, and the parameters of one of its instances.
const KNOWN: &str = "SELECT EXISTS (SELECT FROM properties WHERE name = $1), \
    (SELECT t.parameters::text FROM states t JOIN properties p ON p.id = t.property WHERE p.name = $1 LIMIT 1)";
const SILENCE: &str = "INSERT INTO silences (property, parameters, \"from\", until, set_by, comment) \
    VALUES ($1, $2::text::jsonb, $3, $4, $5, $6) RETURNING id";
const FIND_SILENCE: &str = "SELECT property, parameters::text, until FROM silences WHERE id = $1 FOR UPDATE";
const END_SILENCE: &str = "UPDATE silences SET until = $2, removed_by = $3 WHERE id = $1";
const RECORD: &str = "INSERT INTO actions (at, operator, kind, members) VALUES ($1, $2, $3, $4::text::jsonb) \
    RETURNING id";
/// A time of day as the store of SQLite shows it.
const TIME: &str = "SELECT to_char(time_of($1) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')";
/// Open violations that a silence covers since their begin, as the view of open violations compares parameters.
const BEGUN_IN_SILENCE: &str = "SELECT v.id FROM silences q JOIN properties p ON p.name = q.property \
    JOIN violations v ON v.property = p.id \
    WHERE q.id = $1 AND v.\"end\" IS NULL AND v.recorded >= q.\"from\" \
    AND NOT EXISTS (SELECT 1 FROM jsonb_each(q.parameters) j WHERE NOT coalesce(\
        v.parameters -> j.key = j.value OR v.parameters ->> j.key = j.value #>> '{}', false)) \
    ORDER BY v.id LIMIT $2";

/// Reason why an action of an operator is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unacted {
    /// There is no such violation, property or silence, or it does not permit the action.
    Refused(String),
    /// The database cannot be used.
    Failed(Failure),
}

/// A store that is open for actions of operators.
pub struct Operations {
    target: Target,
    runtime: Runtime,
    session: Session,
    limit: Duration,
}

impl Operations {
    /// Connects to a store, which must exist, and brings one of an earlier version up to date. Waits up to `limit` for the
    /// server, here and in actions.
    ///
    /// # Errors
    /// [`Unacted`]: refused if the options are wrong; failed if the server cannot be used, or has no store.
    pub fn open(options: PostgresOptions, limit: Duration) -> Result<Operations, Unacted> {
        let target = Target::of_operations(options).map_err(Unacted::Refused)?;
        let runtime = runtime().map_err(Unacted::Refused)?;
        let opened = runtime.block_on(async {
            match tokio::time::timeout(limit, Session::open_existing(&target, limit)).await {
                Ok(opened) => opened,
                Err(_) => Err(too_slow(&target, limit)),
            }
        });
        let session = opened.map_err(Unacted::Failed)?;
        Ok(Operations { target, runtime, session, limit })
    }

    /// Acknowledges an open or stale violation.
    ///
    /// # Errors
    /// [`Unacted`]: refused if there is no such violation, if it has ended, or if another operator has acknowledged it.
    pub fn acknowledge(&mut self, violation: i64, by: &Acknowledgement<'_>) -> Result<Action, Unacted> {
        self.act(async |session| {
            let rows = session.query(FIND, &[&violation]).await?;
            let Some(row) = rows.first() else { return Ok(Err(no_violation(violation))) };
            let (operator, until): (Option<String>, Option<i64>) = (row.try_get(4)?, row.try_get(5)?);
            let found = Found {
                property: row.try_get(0)?,
                parameters: row.try_get(1)?,
                series: row.try_get(2)?,
                end: row.try_get(3)?,
                acknowledged: operator.map(|operator| (operator, until)),
            };
            if let Some(refusal) = found.refusal(violation, by) {
                return Ok(Err(refusal));
            }
            let Acknowledgement { by, comment, at, until, .. } = *by;
            session.execute(ACKNOWLEDGE, &[&violation, &by, &comment, &at, &until]).await?;
            let until = match until {
                Some(until) => Some(time_text(session, until).await?),
                None => None,
            };
            let members = found.members(violation, until, comment);
            record(session, Done { kind: "ack", at, by, members, subject: violation }).await.map(Ok)
        })
    }

    /// Silences a property, which must be known to the store.
    ///
    /// # Errors
    /// [`Unacted`]: refused if no run has had such a property, or no instance of it such a parameter.
    pub fn silence(&mut self, silence: &NewSilence<'_>) -> Result<Action, Unacted> {
        let NewSilence { property, from, until, by, comment, .. } = *silence;
        let parameters = object(silence.parameters);
        self.act(async |session| {
            let row = session.query_one(KNOWN, &[&property]).await?;
            let (is_known, instance): (bool, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            if !is_known {
                return Ok(Err(no_property(property)));
            }
            if let Some(wrong) = wrong_parameter(property, instance.as_deref(), &parameters) {
                return Ok(Err(wrong));
            }
            let text = parameters.to_string();
            let row = session.query_one(SILENCE, &[&property, &text, &from, &until, &by, &comment]).await?;
            let id: i64 = row.try_get(0)?;
            let until = time_text(session, until).await?;
            let members = silence_members(id, property, &parameters, Some(until), comment);
            record(session, Done { kind: "silence", at: from, by, members, subject: id }).await.map(Ok)
        })
    }

    /// Ends a silence before its time.
    ///
    /// # Errors
    /// [`Unacted`]: refused if there is no such silence, or if it has ended.
    pub fn remove_silence(&mut self, silence: i64, by: &str, at: i64) -> Result<Action, Unacted> {
        self.act(async |session| {
            let rows = session.query(FIND_SILENCE, &[&silence]).await?;
            let Some(row) = rows.first() else { return Ok(Err(no_silence(silence))) };
            let property: String = row.try_get(0)?;
            let parameters: Value = object(row.try_get(1)?);
            let until: i64 = row.try_get(2)?;
            if until <= at {
                let end = time_text(session, until).await?;
                return Ok(Err(silence_ended(silence, &property, &end)));
            }
            session.execute(END_SILENCE, &[&silence, &at, &by]).await?;
            let members = silence_members(silence, &property, &parameters, None, "");
            record(session, Done { kind: "unsilence", at, by, members, subject: silence }).await.map(Ok)
        })
    }

    /// The numbers of the first violations that began while this silence covered them, and that have not ended. At most
    /// `limit`.
    ///
    /// # Errors
    /// [`Unacted`]: the database cannot be used.
    pub fn begun_in_silence(&mut self, silence: i64, limit: u32) -> Result<Vec<i64>, Unacted> {
        let limit = i64::from(limit);
        self.act(async |session| {
            let rows = session.query(BEGUN_IN_SILENCE, &[&silence, &limit]).await?;
            rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, Error>>().map(Ok)
        })
    }

    /// The names of all properties of the store.
    ///
    /// # Errors
    /// [`Unacted`]: the database cannot be used.
    pub fn properties(&mut self) -> Result<Vec<String>, Unacted> {
        self.act(async |session| {
            let rows = session.query("SELECT DISTINCT name FROM properties ORDER BY name", &[]).await?;
            rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, Error>>().map(Ok)
        })
    }

    /// Parameters of the present instances of a property, as JSON objects.
    ///
    /// # Errors
    /// [`Unacted`]: the database cannot be used.
    pub fn instances(&mut self, property: &str) -> Result<Vec<String>, Unacted> {
        self.act(async |session| {
            let sql = "SELECT DISTINCT t.parameters::text FROM states t JOIN properties p ON p.id = t.property \
                       WHERE p.name = $1";
            let rows = session.query(sql, &[&property]).await?;
            rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, Error>>().map(Ok)
        })
    }

    /// Numbers and parameters, as JSON objects, of the silences of a property that last at a time of day.
    ///
    /// # Errors
    /// [`Unacted`]: the database cannot be used.
    pub fn lasting_silences(&mut self, property: &str, at: i64) -> Result<Vec<(i64, String)>, Unacted> {
        self.act(async |session| {
            let sql =
                "SELECT id, parameters::text FROM silences WHERE property = $1 AND until > $2 ORDER BY id";
            let rows = session.query(sql, &[&property, &at]).await?;
            let pair = |row: &tokio_postgres::Row| -> Result<(i64, String), Error> {
                Ok((row.try_get(0)?, row.try_get(1)?))
            };
            rows.iter().map(pair).collect::<Result<Vec<_>, Error>>().map(Ok)
        })
    }

    /// Notes that an action is in an audit file.
    ///
    /// # Errors
    /// [`Unacted`]: the database cannot be used.
    pub fn note_audited(&mut self, action: i64) -> Result<(), Unacted> {
        self.act(async |session| {
            let sql = "UPDATE actions SET is_audited = true WHERE id = $1";
            session.execute(sql, &[&action]).await.map(|_| Ok(()))
        })
    }

    /// Carries out an action in a transaction, unless it returns why it is refused.
    fn act<T>(
        &mut self,
        action: impl AsyncFnOnce(&Session) -> Result<Result<T, String>, Error>,
    ) -> Result<T, Unacted> {
        let Operations { target, runtime, session, limit } = self;
        let (session, limit) = (&*session, *limit);
        // Whether the server may have stored the action without an answer.
        let commits = Cell::new(false);
        let acted = runtime.block_on(async {
            let acted = tokio::time::timeout(limit, async {
                session.begin(limit).await?;
                let done = action(session).await?;
                commits.set(done.is_ok());
                session.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
                Ok::<_, Error>(done)
            });
            acted.await
        });
        let failed = match acted {
            Ok(Ok(done)) => return done.map_err(Unacted::Refused),
            Ok(Err(error)) => {
                // A later action begins a transaction of its own.
                let _ = runtime.block_on(async {
                    tokio::time::timeout(limit, session.client.batch_execute("ROLLBACK")).await
                });
                match commits.get() && error.as_db_error().is_none() {
                    true => unconfirmed(target, &reason(&error)),
                    false => failure(&error, "write", target),
                }
            }
            Err(_) if commits.get() => {
                unconfirmed(target, &format!("no answer within {:.1} s", limit.as_secs_f64()))
            }
            Err(_) => {
                // It is sent even if the server does not answer in time; otherwise a later action would store this one.
                let _ = runtime.block_on(async {
                    tokio::time::timeout(limit / 4, session.client.batch_execute("ROLLBACK")).await
                });
                too_slow(target, limit)
            }
        };
        Err(Unacted::Failed(failed))
    }
}

/// Adds an action to the table of actions.
async fn record(session: &Session, done: Done<'_>) -> Result<Action, Error> {
    let members = done.members.to_string();
    let row = session.query_one(RECORD, &[&done.at, &done.by, &done.kind, &members]).await?;
    Ok(done.action(row.try_get(0)?))
}

/// A time of day as views show it.
async fn time_text(session: &Session, time: i64) -> Result<String, Error> {
    let row = session.query_one(TIME, &[&time]).await?;
    row.try_get(0)
}
