//! Writing batches of entries, each in one transaction.

use rusqlite::{Connection, Statement, Transaction, TransactionBehavior, params};

use super::instances::{Instances, Lookup};
use super::runs::{Runs, end_lap};
use crate::entry::{Entry, VerdictEntry};
use crate::sink::Written;
use crate::tables::{number, parameters};
use crate::violation::Stored;

/// Caches over the tables. They agree with the tables between two batches.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    runs: Runs,
    instances: Instances,
    /// Number that changes when another connection has written.
    data_version: Option<i64>,
}

const INSERT: &str = "INSERT INTO verdicts (id, run, property, parameters, verdict, time, about, is_after, reported, \
                      lap, step, robustness, quantified, explanation, latency, missing, because_of) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) \
                      ON CONFLICT (time, id, property) DO NOTHING";

/// Statements of a batch.
struct Statements<'c> {
    insert: Statement<'c>,
    lookup: Lookup<'c>,
}

impl Writer {
    /// Writes entries, all or none.
    pub(crate) fn write(
        &mut self,
        connection: &mut Connection,
        entries: &[Entry<'_>],
    ) -> rusqlite::Result<Written> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = self.write_in(&transaction, entries).and_then(|written| {
            transaction.commit()?;
            Ok(written)
        });
        if result.is_err() {
            self.forget();
        }
        result
    }

    /// Forgets the caches.
    pub(crate) fn forget(&mut self) {
        *self = Writer::default();
    }

    fn write_in(
        &mut self,
        transaction: &Transaction<'_>,
        entries: &[Entry<'_>],
    ) -> rusqlite::Result<Written> {
        let version = transaction.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if self.data_version.replace(version).is_some_and(|known| known != version) {
            self.runs.clear();
            self.instances.clear();
        }
        let insert = transaction.prepare(INSERT)?;
        let mut statements = Statements { insert, lookup: Lookup::new(transaction)? };
        let mut written = Written::default();
        for entry in entries {
            match entry {
                Entry::Verdict(verdict) => {
                    let is_new = self.verdict(transaction, &mut statements, verdict)?;
                    *if is_new { &mut written.stored } else { &mut written.repeated } += 1;
                }
                Entry::Loss(loss) => self.runs.lose(transaction, loss)?,
                Entry::Reached(reached) => self.runs.reach(transaction, reached)?,
                Entry::Begin(begin) => {
                    self.flush(transaction)?;
                    self.runs.begin(transaction, begin)?;
                    self.instances.clear();
                }
                Entry::End(end) => {
                    self.flush(transaction)?;
                    self.runs.end(transaction, end)?;
                    self.instances.clear();
                }
            }
        }
        self.flush(transaction)?;
        Ok(written)
    }

    fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.instances.flush(connection)?;
        self.runs.flush(connection)
    }

    /// Stores a verdict. Returns whether it is new.
    fn verdict(
        &mut self,
        connection: &Connection,
        statements: &mut Statements<'_>,
        verdict: &VerdictEntry<'_>,
    ) -> rusqlite::Result<bool> {
        let run = self.runs.run(connection, verdict.run)?;
        if verdict.id.is_some_and(|id| run.earlier.contains(&id)) {
            run.repeated += 1;
            return Ok(false);
        }
        let (id, series, lap, latest) = (run.id, run.series, run.lap, run.latest);
        let property = self.runs.property(connection, series, verdict.property)?;
        let is_new = insert(&mut statements.insert, id, property, verdict)?;
        if is_new {
            // Before rows of other tables are inserted.
            let seq = connection.last_insert_rowid();
            if verdict.lap > lap {
                if let Some((latest, _)) = latest {
                    self.instances.flush(connection)?;
                    end_lap(connection, series, latest)?;
                    self.instances.clear();
                }
                self.runs.run(connection, verdict.run)?.lap = verdict.lap;
            }
            let stored = Stored { property, run: id, seq };
            self.instances.apply(verdict, stored, &mut statements.lookup)?;
        }
        let run = self.runs.run(connection, verdict.run)?;
        if is_new {
            run.stored += 1;
            run.latest = Some((verdict.time, verdict.reported));
        } else {
            run.repeated += 1;
        }
        Ok(is_new)
    }
}

/// Inserts the row of a verdict. Returns whether it was not there.
fn insert(
    statement: &mut Statement<'_>,
    run: i64,
    property: i64,
    verdict: &VerdictEntry<'_>,
) -> rusqlite::Result<bool> {
    let changed = statement.execute(params![
        verdict.id.map(u128::to_be_bytes),
        run,
        property,
        parameters(verdict),
        number(verdict.verdict),
        verdict.time,
        verdict.about,
        verdict.is_after,
        verdict.reported,
        verdict.lap,
        verdict.step.map(|step| i64::try_from(step).unwrap_or(i64::MAX)),
        verdict.robustness,
        text(verdict.values),
        text(verdict.explanation),
        verdict.latency,
        text(verdict.missing),
        text(verdict.because_of),
    ])?;
    Ok(changed > 0)
}

fn text(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
