//! Actions of operators: acknowledging violations and silencing properties, each recorded.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::StoreOptions;
use super::connection::Writable;
use super::error::{StoreError, StoreErrorKind};
use crate::operate::{
    Acknowledgement, Action, Done, Found, NewSilence, no_property, no_silence, no_violation, object,
    silence_ended, silence_members, wrong_parameter,
};

/// Open violations that a silence covers since their begin, as `Silences::is_silenced` decides.
const BEGUN_IN_SILENCE: &str = "SELECT v.id FROM silences q JOIN properties p ON p.name = q.property \
    JOIN violations v ON v.property = p.id \
    WHERE q.id = ?1 AND v.end IS NULL AND v.recorded >= q.\"from\" \
    AND NOT EXISTS (SELECT 1 FROM \
        (SELECT key, CASE WHEN type IN ('true', 'false') THEN type ELSE value END AS value \
         FROM json_each(q.parameters)) j \
        WHERE NOT EXISTS (SELECT 1 FROM \
            (SELECT key, CASE WHEN type IN ('true', 'false') THEN type ELSE value END AS value \
             FROM json_each(v.parameters)) w \
            WHERE w.key = j.key AND (w.value = j.value OR CAST(w.value AS TEXT) = CAST(j.value AS TEXT)))) \
    ORDER BY v.id LIMIT ?2";

/// A store that is open for actions of operators.
#[derive(Debug)]
pub struct Operations {
    writable: Writable,
}

impl Operations {
    /// Opens a store, which must exist, and brings one of an earlier version up to date. Waits up to `limit` for locks, here
    /// and in actions.
    ///
    /// # Errors
    /// [`StoreError`]: the file is missing, no store, of a later version, or locked.
    pub fn open(path: &Path, limit: Duration) -> Result<Operations, StoreError> {
        if !path.exists() {
            let message = format!("cannot open the store {}: no such file", path.display());
            return Err(StoreError::new(StoreErrorKind::Missing, message));
        }
        // Otherwise it would become a store.
        if std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0) {
            let message =
                format!("{} is not a store of Rondel: it is empty; choose another file", path.display());
            return Err(StoreError::new(StoreErrorKind::NotAStore, message));
        }
        Ok(Operations { writable: Writable::open(path, &StoreOptions::default(), limit)? })
    }

    /// Acknowledges an open or stale violation.
    ///
    /// # Errors
    /// [`StoreError`], of the kind `Query` if there is no such violation, if it has ended, or if another operator has
    /// acknowledged it.
    pub fn acknowledge(&mut self, violation: i64, by: &Acknowledgement<'_>) -> Result<Action, StoreError> {
        self.act(|transaction| {
            let Some(found) = find(transaction, violation)? else { return Ok(Err(no_violation(violation))) };
            if let Some(refusal) = found.refusal(violation, by) {
                return Ok(Err(refusal));
            }
            let Acknowledgement { by, comment, at, until, .. } = by;
            let sql = "UPDATE violations SET acknowledged_by = ?2, comment = ?3, acknowledged_at = ?4, \
                       acknowledged_until = ?5 WHERE id = ?1";
            transaction.execute(sql, params![violation, by, comment, at, until])?;
            let until = until.map(|until| time_text(transaction, until)).transpose()?;
            let members = found.members(violation, until, comment);
            record(transaction, Done { kind: "ack", at: *at, by, members, subject: violation }).map(Ok)
        })
    }

    /// Silences a property, which must be known to the store.
    ///
    /// # Errors
    /// [`StoreError`], of the kind `Query` if no run has had such a property, or no instance of it such a parameter.
    pub fn silence(&mut self, silence: &NewSilence<'_>) -> Result<Action, StoreError> {
        let NewSilence { property, from, until, by, comment, .. } = *silence;
        let parameters = object(silence.parameters);
        self.act(|transaction| {
            if let Some(wrong) = check(transaction, property, &parameters)? {
                return Ok(Err(wrong));
            }
            let sql = "INSERT INTO silences (property, parameters, \"from\", until, set_by, comment) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            transaction.execute(sql, params![property, parameters.to_string(), from, until, by, comment])?;
            let id = transaction.last_insert_rowid();
            let until = time_text(transaction, until)?;
            let members = silence_members(id, property, &parameters, Some(until), comment);
            record(transaction, Done { kind: "silence", at: from, by, members, subject: id }).map(Ok)
        })
    }

    /// Ends a silence before its time.
    ///
    /// # Errors
    /// [`StoreError`], of the kind `Query` if there is no such silence, or if it has ended.
    pub fn remove_silence(&mut self, silence: i64, by: &str, at: i64) -> Result<Action, StoreError> {
        self.act(|transaction| {
            let sql = "SELECT property, parameters, until FROM silences WHERE id = ?1";
            let row = transaction.query_row(sql, [silence], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
            });
            let Some((property, parameters, until)) = row.optional()? else {
                return Ok(Err(no_silence(silence)));
            };
            if until <= at {
                let end = time_text(transaction, until)?;
                return Ok(Err(silence_ended(silence, &property, &end)));
            }
            let sql = "UPDATE silences SET until = ?2, removed_by = ?3 WHERE id = ?1";
            transaction.execute(sql, params![silence, at, by])?;
            let members = silence_members(silence, &property, &object(&parameters), None, "");
            record(transaction, Done { kind: "unsilence", at, by, members, subject: silence }).map(Ok)
        })
    }

    /// The numbers of the first violations that began while this silence covered them, and that have not ended: none of
    /// them was notified. At most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begun_in_silence(&self, silence: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        let ids = || -> rusqlite::Result<Vec<i64>> {
            let mut statement = self.writable.connection.prepare(BEGUN_IN_SILENCE)?;
            let ids = statement.query_map([silence, i64::from(limit)], |row| row.get(0))?;
            ids.collect()
        };
        ids().map_err(|error| self.writable.failed(&error))
    }

    /// The names of all properties of the store.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn properties(&self) -> Result<Vec<String>, StoreError> {
        let names = || -> rusqlite::Result<Vec<String>> {
            let sql = "SELECT DISTINCT name FROM properties ORDER BY name";
            let mut statement = self.writable.connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get(0))?;
            names.collect()
        };
        names().map_err(|error| self.writable.failed(&error))
    }

    /// Parameters of the present instances of a property, as JSON objects.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn instances(&self, property: &str) -> Result<Vec<String>, StoreError> {
        let all = || -> rusqlite::Result<Vec<String>> {
            let sql = "SELECT DISTINCT t.parameters FROM states t JOIN properties p ON p.id = t.property WHERE p.name = ?1";
            let mut statement = self.writable.connection.prepare(sql)?;
            let all = statement.query_map([property], |row| row.get(0))?;
            all.collect()
        };
        all().map_err(|error| self.writable.failed(&error))
    }

    /// Numbers and parameters, as JSON objects, of the silences of a property that last at a time of day.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn lasting_silences(&self, property: &str, at: i64) -> Result<Vec<(i64, String)>, StoreError> {
        let all = || -> rusqlite::Result<Vec<(i64, String)>> {
            let sql = "SELECT id, parameters FROM silences WHERE property = ?1 AND until > ?2 ORDER BY id";
            let mut statement = self.writable.connection.prepare(sql)?;
            let all = statement.query_map(params![property, at], |row| Ok((row.get(0)?, row.get(1)?)))?;
            all.collect()
        };
        all().map_err(|error| self.writable.failed(&error))
    }

    /// Notes that an action is in an audit file, so that no run records it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn note_audited(&mut self, action: i64) -> Result<(), StoreError> {
        note_audited(&self.writable.connection, &[action]).map_err(|error| self.writable.failed(&error))
    }

    /// Carries out an action in a transaction, unless it returns why it is refused.
    fn act(
        &mut self,
        action: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<Action, String>>,
    ) -> Result<Action, StoreError> {
        let path = self.writable.path.clone();
        let failed = |error: rusqlite::Error| StoreError::of(&error, "write the store", &path);
        let connection = &mut self.writable.connection;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let done = action(&transaction)
            .map_err(failed)?
            .map_err(|why| StoreError::new(StoreErrorKind::Query, why))?;
        transaction.commit().map_err(failed)?;
        Ok(done)
    }
}

/// Returns the violation with this number.
fn find(connection: &Connection, violation: i64) -> rusqlite::Result<Option<Found>> {
    let sql = "SELECT p.name, v.parameters, s.name, \
               strftime('%Y-%m-%dT%H:%M:%fZ', v.end / 1e9, 'unixepoch'), v.acknowledged_by, v.acknowledged_until \
               FROM violations v JOIN properties p ON p.id = v.property JOIN series s ON s.id = p.series \
               WHERE v.id = ?1";
    let found = connection.query_row(sql, [violation], |row| {
        let (by, until): (Option<String>, Option<i64>) = (row.get(4)?, row.get(5)?);
        Ok(Found {
            property: row.get(0)?,
            parameters: row.get(1)?,
            series: row.get(2)?,
            end: row.get(3)?,
            acknowledged: by.map(|by| (by, until)),
        })
    });
    found.optional()
}

/// Returns why a property cannot be silenced with these parameters.
fn check(connection: &Connection, property: &str, parameters: &Value) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT count(*) FROM properties WHERE name = ?1";
    if connection.query_row(sql, [property], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Some(no_property(property)));
    }
    let sql =
        "SELECT t.parameters FROM states t JOIN properties p ON p.id = t.property WHERE p.name = ?1 LIMIT 1";
    let instance: Option<String> = connection.query_row(sql, [property], |row| row.get(0)).optional()?;
    Ok(wrong_parameter(property, instance.as_deref(), parameters))
}

/// Adds an action to the table of actions.
fn record(connection: &Connection, done: Done<'_>) -> rusqlite::Result<Action> {
    let sql = "INSERT INTO actions (at, operator, kind, members) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(sql, params![done.at, done.by, done.kind, done.members.to_string()])?;
    Ok(done.action(connection.last_insert_rowid()))
}

/// Returns the first actions that are in no audit file.
pub(super) fn unaudited(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<Action>> {
    let sql = "SELECT id, kind, at, operator, members FROM actions WHERE NOT is_audited ORDER BY id LIMIT ?1";
    let mut statement = connection.prepare(sql)?;
    let actions = statement.query_map([limit], |row| {
        let members = object(&row.get::<_, String>(4)?);
        let subject = ["violation", "silence"].iter().find_map(|name| members.get(name)?.as_i64());
        Ok(Action {
            id: row.get(0)?,
            kind: row.get(1)?,
            at: row.get(2)?,
            operator: row.get(3)?,
            members,
            subject: subject.unwrap_or(0),
        })
    });
    actions?.collect()
}

/// Notes that actions are in an audit file.
pub(super) fn note_audited(connection: &Connection, actions: &[i64]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("UPDATE actions SET is_audited = 1 WHERE id = ?1")?;
    for action in actions {
        statement.execute([action])?;
    }
    Ok(())
}

/// A time of day as views show it.
fn time_text(connection: &Connection, time: i64) -> rusqlite::Result<String> {
    let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ?1 / 1e9, 'unixepoch')";
    Ok(connection.query_row(sql, [time], |row| row.get::<_, Option<String>>(0))?.unwrap_or_default())
}
