//! Runs, their series and properties, and what begins and ends with them.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Error;

use super::session::Session;
use super::values::{Text, Uuid};
use crate::entry::{Begin, End, Entry, Loss, PropertyEntry, Reached, RunKey};
use crate::tables::{self, REPEATABLE};

/// A run, locked with its series until the end of the transaction.
pub(super) struct Run {
    pub(super) id: i64,
    pub(super) series: i64,
    pub(super) lap: i64,
    /// Event time that it has reached, and the time of day of that.
    pub(super) latest: Option<(i64, i64)>,
    /// Whether it resumes from a snapshot.
    pub(super) resumes: bool,
    /// Whether it has reached a later time in this batch without a verdict.
    has_moved: bool,
    /// Verdicts of this batch that were stored, and those that were there.
    pub(super) stored: i64,
    pub(super) repeated: i64,
}

/// The runs of a batch.
pub(super) struct Runs {
    pub(super) all: Vec<Run>,
    places: HashMap<RunKey, usize>,
}

impl Runs {
    /// Finds the runs of entries. A run whose begin was lost gets a row with the key alone.
    pub(super) async fn find(
        session: &Session,
        entries: &[Entry<'_>],
        known: Option<&Begin<'_>>,
    ) -> Result<Runs, Error> {
        let keys: HashSet<RunKey> = entries.iter().map(Entry::run).collect();
        let keys: Vec<RunKey> = keys.into_iter().collect();
        let mut runs = Runs::select(session, &keys).await?;
        if runs.all.len() < keys.len() {
            for key in keys.iter().filter(|key| !runs.places.contains_key(key)) {
                match known.filter(|begin| begin.run == *key) {
                    Some(known) => begin(session, known).await?,
                    None => {
                        insert(session, &Begin { run: *key, ..Begin::default() }).await?;
                    }
                }
            }
            runs = Runs::select(session, &keys).await?;
        }
        Ok(runs)
    }

    async fn select(session: &Session, keys: &[RunKey]) -> Result<Runs, Error> {
        // In one order, so that two processes cannot wait for each other.
        let sql = "SELECT r.key, r.id, r.series, r.lap, r.latest, r.reported, r.resumes \
                   FROM runs r JOIN series s ON s.id = r.series WHERE r.key = ANY($1) ORDER BY s.id, r.id \
                   FOR NO KEY UPDATE OF r, s";
        let keys: Vec<Uuid> = keys.iter().map(|key| Uuid(key.0)).collect();
        let (mut all, mut places) = (Vec::new(), HashMap::new());
        for row in session.query(sql, &[&keys]).await? {
            let key: Uuid = row.try_get(0)?;
            let latest: (Option<i64>, Option<i64>) = (row.try_get(4)?, row.try_get(5)?);
            places.insert(RunKey(key.0), all.len());
            all.push(Run {
                id: row.try_get(1)?,
                series: row.try_get(2)?,
                lap: row.try_get(3)?,
                latest: latest.0.zip(latest.1),
                resumes: row.try_get(6)?,
                has_moved: false,
                stored: 0,
                repeated: 0,
            });
        }
        Ok(Runs { all, places })
    }

    /// Returns the place of a run among all.
    pub(super) fn place(&self, key: RunKey) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// Notes the event time that a run has reached.
    pub(super) fn reach(&mut self, reached: &Reached) {
        let Some(run) = self.place(reached.run).and_then(|place| self.all.get_mut(place)) else { return };
        let time = run.latest.map_or(reached.time, |(time, _)| time.max(reached.time));
        (run.latest, run.has_moved) = (Some((time, reached.reported)), true);
    }

    /// Writes the last times and the counts.
    pub(super) async fn flush(&self, session: &Session) -> Result<(), Error> {
        for run in &self.all {
            if run.stored + run.repeated == 0 && !run.has_moved {
                continue;
            }
            let (latest, reported) = run.latest.unzip();
            let sql = "UPDATE runs SET lap = $2, latest = $3, reported = $4, verdicts = verdicts + $5, \
                       repeated = repeated + $6 WHERE id = $1";
            session
                .execute(sql, &[&run.id, &run.lap, &latest, &reported, &run.stored, &run.repeated])
                .await?;
            if run.stored > 0 || run.has_moved {
                let sql = "UPDATE series SET latest = $2 WHERE id = $1";
                session.execute(sql, &[&run.series, &latest]).await?;
            }
        }
        Ok(())
    }

    /// Stores losses.
    pub(super) async fn lose(&self, session: &Session, losses: &[&Loss<'_>]) -> Result<(), Error> {
        if losses.is_empty() {
            return Ok(());
        }
        let run = |loss: &&Loss<'_>| Some(self.all.get(self.place(loss.run)?)?.id);
        let runs: Vec<Option<i64>> = losses.iter().map(run).collect();
        let reasons: Vec<Text<'_>> = losses.iter().map(|loss| Text(loss.reason)).collect();
        let subjects: Vec<Text<'_>> = losses.iter().map(|loss| Text(loss.subject)).collect();
        let count = |loss: &&Loss<'_>| i64::try_from(loss.count).unwrap_or(i64::MAX);
        let counts: Vec<i64> = losses.iter().map(count).collect();
        let from: Vec<i64> = losses.iter().map(|loss| loss.from).collect();
        let until: Vec<i64> = losses.iter().map(|loss| loss.until).collect();
        let sql = "INSERT INTO losses (run, reason, subject, count, \"from\", until) SELECT * FROM \
                   unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])";
        session.execute(sql, &[&runs, &reasons, &subjects, &counts, &from, &until]).await?;
        Ok(())
    }
}

/// Begins a run, and ends earlier ones of its series that have no end.
pub(super) async fn begin(session: &Session, begin: &Begin<'_>) -> Result<(), Error> {
    let series = insert(session, begin).await?;
    session.execute("SELECT FROM series WHERE id = $1 FOR NO KEY UPDATE", &[&series]).await?;
    let sql = "UPDATE runs SET \"end\" = coalesce(reported, begin), status = 'aborted' \
               WHERE series = $1 AND key != $2 AND \"end\" IS NULL RETURNING id";
    let open = session.query(sql, &[&series, &Uuid(begin.run.0)]).await?;
    let mut open = open.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, Error>>()?;
    open.sort_unstable();
    for run in open {
        become_stale(session, series, run).await?;
    }
    // The last one counts, if several have the same name.
    let properties: HashMap<&str, &PropertyEntry<'_>> =
        begin.properties.iter().map(|entry| (entry.name, entry)).collect();
    let names: Vec<Text<'_>> = properties.values().map(|entry| Text(entry.name)).collect();
    let severities: Vec<Text<'_>> = properties.values().map(|entry| Text(entry.severity)).collect();
    let requirements: Vec<Text<'_>> = properties.values().map(|entry| Text(entry.requirement)).collect();
    let texts: Vec<Text<'_>> = properties.values().map(|entry| Text(entry.text)).collect();
    let sql = "INSERT INTO properties (series, name, severity, requirement, text) \
               SELECT $1::bigint, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) \
               ON CONFLICT (series, name) DO UPDATE SET severity = excluded.severity, \
               requirement = excluded.requirement, text = excluded.text";
    session.execute(sql, &[&series, &names, &severities, &requirements, &texts]).await?;
    Ok(())
}

/// Ends a run. Its open violations become stale: they are not observed any more.
pub(super) async fn end(session: &Session, end: &End<'_>, known: Option<&Begin<'_>>) -> Result<(), Error> {
    let runs = Runs::find(session, &[Entry::End(end.clone())], known).await?;
    let Some(run) = runs.all.first() else { return Ok(()) };
    let sql = "UPDATE runs SET \"end\" = $2, status = $3 WHERE id = $1";
    session.execute(sql, &[&run.id, &end.end, &Text(end.status)]).await?;
    become_stale(session, run.series, run.id).await
}

/// Inserts a run with its series, or completes the row of a run whose verdicts came before. Returns the series.
async fn insert(session: &Session, begin: &Begin<'_>) -> Result<i64, Error> {
    let name = tables::series(begin);
    let name = Text(&name);
    session.execute("INSERT INTO series (name) VALUES ($1) ON CONFLICT DO NOTHING", &[&name]).await?;
    let series: i64 =
        session.query_one("SELECT id FROM series WHERE name = $1", &[&name]).await?.try_get(0)?;
    let sql = "INSERT INTO runs (key, series, kind, resumes, begin, specification, specification_hash, \
               configuration, configuration_hash, version, host) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
               ON CONFLICT (key) DO UPDATE SET kind = excluded.kind, resumes = excluded.resumes, \
               begin = excluded.begin, specification = excluded.specification, \
               specification_hash = excluded.specification_hash, configuration = excluded.configuration, \
               configuration_hash = excluded.configuration_hash, version = excluded.version, \
               host = excluded.host WHERE runs.begin = 0";
    let key = Uuid(begin.run.0);
    session
        .execute(
            sql,
            &[
                &key,
                &series,
                &begin.kind.as_str(),
                &begin.resumes,
                &begin.begin,
                &Text(begin.specification),
                &Text(begin.specification_hash),
                &Text(begin.configuration),
                &Text(begin.configuration_hash),
                &Text(begin.version),
                &Text(begin.host),
            ],
        )
        .await?;
    session.query_one("SELECT series FROM runs WHERE key = $1", &[&key]).await?.try_get(0)
}

/// Returns ids of the runs of a series before a run that resumes: of the last rows only, a snapshot is seldom older.
pub(super) async fn earlier_ids(session: &Session, run: &Run) -> Result<HashSet<u128>, Error> {
    let sql = "SELECT id FROM verdicts WHERE run IN (SELECT id FROM runs WHERE series = $1 AND id != $2) \
               AND id IS NOT NULL ORDER BY seq DESC LIMIT $3";
    let rows = session.query(sql, &[&run.series, &run.id, &REPEATABLE]).await?;
    rows.iter().map(|row| row.try_get::<_, Uuid>(0).map(|id| id.0)).collect()
}

/// Marks the open violations of a series as stale since the time that a run has reached.
async fn become_stale(session: &Session, series: i64, run: i64) -> Result<(), Error> {
    let row = session.query_one("SELECT latest FROM runs WHERE id = $1", &[&run]).await?;
    let Some(latest) = row.try_get::<_, Option<i64>>(0)? else { return Ok(()) };
    add_violated(session, series, latest).await?;
    let sql = "UPDATE violations SET stale = greatest(since, $2, sum_of(begin, unknown)), since = NULL \
               WHERE since IS NOT NULL AND \"end\" IS NULL AND property IN (SELECT id FROM properties WHERE series = $1)";
    session.execute(sql, &[&series, &latest]).await?;
    Ok(())
}

/// Ends the open violations of a series at the time that a lap has reached.
pub(super) async fn end_lap(session: &Session, series: i64, latest: i64) -> Result<(), Error> {
    add_violated(session, series, latest).await?;
    let sql = "UPDATE violations SET unknown = least(sum_of(unknown, coalesce(between_times(stale, $2), 0)), \
               between_times(begin, greatest(begin, $2))), stale = NULL, since = NULL, \"end\" = greatest(begin, $2), ended_by = 'lap' \
               WHERE \"end\" IS NULL AND property IN (SELECT id FROM properties WHERE series = $1)";
    session.execute(sql, &[&series, &latest]).await?;
    Ok(())
}

/// Adds the violated intervals that end at a time to the figures of their days.
async fn add_violated(session: &Session, series: i64, until: i64) -> Result<(), Error> {
    let sql = "INSERT INTO days (property, day, violated) \
               SELECT property, floor(begin::numeric / 86400000000000)::bigint AS day, \
               least(sum(between_times(since, $2)), 9223372036854775807)::bigint FROM violations \
               WHERE since IS NOT NULL AND \"end\" IS NULL \
               AND property IN (SELECT id FROM properties WHERE series = $1) GROUP BY property, day \
               ON CONFLICT (property, day) DO UPDATE SET violated = sum_of(days.violated, excluded.violated)";
    session.execute(sql, &[&series, &until]).await?;
    Ok(())
}
