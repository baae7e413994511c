//! Runs, their series and properties: a cache over their tables, and what begins and ends with them.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use crate::entry::{Begin, End, Loss, Reached, RunKey};
use crate::tables::{self, REPEATABLE};
use crate::violation::DAY;

/// Largest number of runs and of properties in memory between two batches.
const CACHED: usize = 1 << 14;

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: i64,
    pub(crate) series: i64,
    pub(crate) lap: u32,
    /// Event time that it has reached, and the time of day of that.
    pub(crate) latest: Option<(i64, i64)>,
    /// Whether it has reached a later time in this batch without a verdict.
    pub(crate) has_moved: bool,
    /// Verdicts of this batch that were stored, and those that were there.
    pub(crate) stored: i64,
    pub(crate) repeated: i64,
    /// Ids of earlier runs of the series, of a run that resumes.
    pub(crate) earlier: HashSet<u128>,
}

/// Cache of runs and properties.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: HashMap<RunKey, Run>,
    /// Properties by series and name.
    properties: HashMap<i64, HashMap<Box<str>, i64>>,
    count: usize,
}

impl Runs {
    pub(crate) fn clear(&mut self) {
        *self = Runs::default();
    }

    /// Returns the run with this key. A run whose begin was lost gets a row with the key alone.
    pub(crate) fn run(&mut self, connection: &Connection, key: RunKey) -> rusqlite::Result<&mut Run> {
        match self.runs.entry(key) {
            Occupied(run) => Ok(run.into_mut()),
            Vacant(vacant) => {
                if let Some(run) = find(connection, key)? {
                    return Ok(vacant.insert(run));
                }
                insert(connection, &Begin { run: key, ..Begin::default() })?;
                Ok(vacant.insert(find(connection, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?))
            }
        }
    }

    /// Returns the property with this name, which is added if the begin of the run was lost.
    pub(crate) fn property(
        &mut self,
        connection: &Connection,
        series: i64,
        name: &str,
    ) -> rusqlite::Result<i64> {
        let known = self.properties.entry(series).or_default();
        if let Some(id) = known.get(name) {
            return Ok(*id);
        }
        let sql = "INSERT INTO properties (series, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        connection.execute(sql, params![series, name])?;
        let sql = "SELECT id FROM properties WHERE series = ?1 AND name = ?2";
        let id = connection.query_row(sql, params![series, name], |row| row.get(0))?;
        known.insert(name.into(), id);
        self.count += 1;
        Ok(id)
    }

    /// Begins a run, and ends earlier ones of its series that have no end. Open violations have to be in their tables.
    pub(crate) fn begin(&mut self, connection: &Connection, begin: &Begin<'_>) -> rusqlite::Result<()> {
        let series = insert(connection, begin)?;
        let sql = "SELECT id FROM runs WHERE series = ?1 AND key != ?2 AND end IS NULL";
        let mut statement = connection.prepare(sql)?;
        let open = statement.query_map(params![series, begin.run.0.to_be_bytes()], |row| row.get(0))?;
        for run in open.collect::<rusqlite::Result<Vec<i64>>>()? {
            let sql = "UPDATE runs SET end = coalesce(reported, begin), status = 'aborted' WHERE id = ?1";
            connection.execute(sql, [run])?;
            become_stale(connection, series, run)?;
        }
        let mut property = connection.prepare(
            "INSERT INTO properties (series, name, severity, requirement, text) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT DO UPDATE SET severity = excluded.severity, requirement = excluded.requirement, \
             text = excluded.text",
        )?;
        for entry in &begin.properties {
            property.execute(params![series, entry.name, entry.severity, entry.requirement, entry.text])?;
        }
        self.runs.remove(&begin.run);
        Ok(())
    }

    /// Ends a run. Its open violations become stale: they are not observed any more.
    pub(crate) fn end(&mut self, connection: &Connection, end: &End<'_>) -> rusqlite::Result<()> {
        let run = self.run(connection, end.run)?;
        let (id, series) = (run.id, run.series);
        let sql = "UPDATE runs SET end = ?2, status = ?3 WHERE id = ?1";
        connection.execute(sql, params![id, end.end, end.status])?;
        become_stale(connection, series, id)
    }

    pub(crate) fn lose(&mut self, connection: &Connection, loss: &Loss<'_>) -> rusqlite::Result<()> {
        let run = self.run(connection, loss.run)?.id;
        let sql = "INSERT INTO losses (run, reason, subject, count, \"from\", until) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let count = i64::try_from(loss.count).unwrap_or(i64::MAX);
        connection.execute(sql, params![run, loss.reason, loss.subject, count, loss.from, loss.until])?;
        Ok(())
    }

    /// Notes the event time that a run has reached.
    pub(crate) fn reach(&mut self, connection: &Connection, reached: &Reached) -> rusqlite::Result<()> {
        let run = self.run(connection, reached.run)?;
        let time = run.latest.map_or(reached.time, |(time, _)| time.max(reached.time));
        (run.latest, run.has_moved) = (Some((time, reached.reported)), true);
        Ok(())
    }

    /// Writes the last times and the counts of the runs of a batch.
    pub(crate) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut run_row = connection.prepare(
            "UPDATE runs SET lap = ?2, latest = ?3, reported = ?4, verdicts = verdicts + ?5, \
             repeated = repeated + ?6 WHERE id = ?1",
        )?;
        let mut series_row = connection.prepare("UPDATE series SET latest = ?2 WHERE id = ?1")?;
        for run in self.runs.values_mut().filter(|run| run.stored + run.repeated > 0 || run.has_moved) {
            let (latest, reported) = run.latest.unzip();
            run_row.execute(params![run.id, run.lap, latest, reported, run.stored, run.repeated])?;
            if run.stored > 0 || run.has_moved {
                series_row.execute(params![run.series, latest])?;
            }
            (run.stored, run.repeated, run.has_moved) = (0, 0, false);
        }
        if self.runs.len() + self.count > CACHED {
            self.clear();
        }
        Ok(())
    }
}

/// Inserts a run with its series, or completes the row of a run whose verdicts came before. Returns the series.
fn insert(connection: &Connection, begin: &Begin<'_>) -> rusqlite::Result<i64> {
    let name = tables::series(begin);
    connection.execute("INSERT INTO series (name) VALUES (?1) ON CONFLICT DO NOTHING", [&name])?;
    let series: i64 =
        connection.query_row("SELECT id FROM series WHERE name = ?1", [&name], |row| row.get(0))?;
    connection.execute(
        "INSERT INTO runs (key, series, kind, resumes, begin, specification, specification_hash, configuration, \
         configuration_hash, version, host) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
         ON CONFLICT DO UPDATE SET kind = excluded.kind, resumes = excluded.resumes, begin = excluded.begin, \
         specification = excluded.specification, specification_hash = excluded.specification_hash, \
         configuration = excluded.configuration, configuration_hash = excluded.configuration_hash, \
         version = excluded.version, host = excluded.host WHERE begin = 0",
        params![
            begin.run.0.to_be_bytes(),
            series,
            begin.kind.as_str(),
            begin.resumes,
            begin.begin,
            begin.specification,
            begin.specification_hash,
            begin.configuration,
            begin.configuration_hash,
            begin.version,
            begin.host,
        ],
    )?;
    let key = begin.run.0.to_be_bytes();
    connection.query_row("SELECT series FROM runs WHERE key = ?1", [key], |row| row.get(0))
}

fn find(connection: &Connection, key: RunKey) -> rusqlite::Result<Option<Run>> {
    let sql = "SELECT id, series, lap, latest, reported, resumes FROM runs WHERE key = ?1";
    let found = connection.query_row(sql, [key.0.to_be_bytes()], |row| {
        let latest: (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
        let run = Run {
            id: row.get(0)?,
            series: row.get(1)?,
            lap: row.get(2)?,
            latest: latest.0.zip(latest.1),
            has_moved: false,
            stored: 0,
            repeated: 0,
            earlier: HashSet::new(),
        };
        Ok((run, row.get::<_, bool>(5)?))
    });
    let Some((mut run, resumes)) = found.optional()? else { return Ok(None) };
    if resumes {
        // Of the last rows only: a snapshot is seldom older.
        let sql = "SELECT v.id FROM (SELECT id, run, property FROM verdicts ORDER BY seq DESC LIMIT ?3) v \
                   JOIN properties p ON p.id = v.property WHERE p.series = ?1 AND v.run != ?2 AND v.id IS NOT NULL";
        let mut statement = connection.prepare(sql)?;
        let ids = statement.query_map(params![run.series, run.id, REPEATABLE], |row| row.get(0))?;
        for id in ids {
            run.earlier.insert(u128::from_be_bytes(id?));
        }
    }
    Ok(Some(run))
}

/// Condition on open violations of a series.
const OPEN: &str = "end IS NULL AND property IN (SELECT id FROM properties WHERE series = ?1)";

/// Marks the open violations of a series as stale since the time that a run has reached.
fn become_stale(connection: &Connection, series: i64, run: i64) -> rusqlite::Result<()> {
    let sql = "SELECT latest FROM runs WHERE id = ?1";
    let Some(latest) = connection.query_row(sql, [run], |row| row.get::<_, Option<i64>>(0))? else {
        return Ok(());
    };
    add_violated(connection, series, latest)?;
    let sql = format!(
        "UPDATE violations SET since = NULL, \
         stale = max(since, ?2, begin + min(unknown, 9223372036854775807 - max(begin, 0))) \
         WHERE since IS NOT NULL AND {OPEN}"
    );
    connection.execute(&sql, params![series, latest])?;
    Ok(())
}

/// Ends the open violations of a series at the time that a lap has reached.
pub(crate) fn end_lap(connection: &Connection, series: i64, latest: i64) -> rusqlite::Result<()> {
    add_violated(connection, series, latest)?;
    let sql = format!(
        "UPDATE violations SET \
         unknown = min(unknown + coalesce(max(0, ?2 - stale), 0), max(begin, ?2) - begin), stale = NULL, since = NULL, \
         end = max(begin, ?2), ended_by = 'lap' WHERE {OPEN}"
    );
    connection.execute(&sql, params![series, latest])?;
    Ok(())
}

/// Adds the violated intervals that end at a time to the figures of their days.
fn add_violated(connection: &Connection, series: i64, until: i64) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO days (property, day, violated) \
         SELECT property, CAST((begin - ((begin % {DAY}) + {DAY}) % {DAY}) / {DAY} AS INTEGER) AS day, \
         CAST(total(max(0, ?2 - since)) AS INTEGER) FROM violations \
         WHERE since IS NOT NULL AND {OPEN} GROUP BY property, day \
         ON CONFLICT DO UPDATE SET violated = violated + excluded.violated"
    );
    connection.execute(&sql, params![series, until])?;
    Ok(())
}
