//! Retention: removing old rows of the series that a sink writes, in pieces.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio_postgres::Error;

use super::session::Session;

/// Rows removed in one transaction.
const PIECE: i64 = 2_000;

/// Time of day before which rows are old.
#[derive(Clone, Copy)]
pub(super) struct Before(i64);

impl Before {
    pub(super) fn new(keep: Duration, now: i64) -> Before {
        Before(now.saturating_sub(i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// Statements that remove a piece of the old rows of the series `$1`: those before the time `$2`, `$3` rows.
const PIECES: [&str; 3] = [
    // The first rows of a run are its oldest: runs whose first row is not old are not looked at any further.
    "DELETE FROM verdicts v USING (SELECT o.run, o.seq FROM runs r, LATERAL (SELECT run, seq, reported FROM verdicts \
     WHERE run = r.id ORDER BY seq LIMIT $3) o WHERE r.series = ANY($1) AND (SELECT f.reported FROM verdicts f \
     WHERE f.run = r.id ORDER BY f.seq LIMIT 1) < $2 AND o.reported < $2 LIMIT $3) old \
     WHERE v.run = old.run AND v.seq = old.seq",
    // The same by property. Open ones stay, however many are before one that has ended.
    "DELETE FROM violations WHERE id IN (SELECT o.id FROM properties p, LATERAL (SELECT id, recorded \
     FROM violations WHERE property = p.id AND \"end\" IS NOT NULL ORDER BY id LIMIT $3) o \
     WHERE p.series = ANY($1) AND (SELECT f.recorded FROM violations f WHERE f.property = p.id \
     ORDER BY f.id LIMIT 1) < $2 AND o.recorded < $2 LIMIT $3)",
    "DELETE FROM losses WHERE id IN (SELECT l.id FROM losses l JOIN runs r ON r.id = l.run \
     WHERE r.series = ANY($1) AND l.until < $2 LIMIT $3)",
];

/// Removes pieces of what is too old, until about a time limit. Returns whether more may be due.
pub(super) async fn retain(
    session: &Session,
    series: &BTreeSet<i64>,
    before: Before,
    limit: Duration,
) -> Result<bool, Error> {
    if series.is_empty() {
        return Ok(false);
    }
    let (begun, series): (Instant, Vec<i64>) = (Instant::now(), series.iter().copied().collect());
    for sql in PIECES {
        loop {
            // Each in a transaction of its own.
            let removed = session.execute(sql, &[&series, &before.0, &PIECE]).await?;
            if removed < PIECE as u64 {
                break;
            }
            if begun.elapsed() >= limit {
                return Ok(true);
            }
        }
    }
    remove_runs(session, &series, before).await?;
    Ok(false)
}

/// Statements that remove what belongs to the series `$1`, of those without runs.
const OF_SERIES: [&str; 5] = [
    "DELETE FROM violations WHERE property IN (SELECT p.id FROM properties p WHERE p.series = ANY($1) \
     AND p.series NOT IN (SELECT series FROM runs))",
    "DELETE FROM states WHERE property IN (SELECT p.id FROM properties p WHERE p.series = ANY($1) \
     AND p.series NOT IN (SELECT series FROM runs))",
    "DELETE FROM days WHERE property IN (SELECT p.id FROM properties p WHERE p.series = ANY($1) \
     AND p.series NOT IN (SELECT series FROM runs))",
    "DELETE FROM properties WHERE series = ANY($1) AND series NOT IN (SELECT series FROM runs)",
    "DELETE FROM series WHERE id = ANY($1) AND id NOT IN (SELECT series FROM runs)",
];

/// Removes runs, and series without any. The last run of a live series stays.
async fn remove_runs(session: &Session, series: &[i64], before: Before) -> Result<(), Error> {
    session.begin(Duration::from_secs(5)).await?;
    let sql = "DELETE FROM runs r WHERE r.series = ANY($1) AND r.\"end\" < $2 AND (r.kind != 'run' \
               OR EXISTS (SELECT FROM runs o WHERE o.series = r.series AND o.id > r.id)) \
               AND NOT EXISTS (SELECT FROM verdicts v WHERE v.run = r.id)";
    let removed = session.execute(sql, &[&series, &before.0]).await?;
    let of_series = if removed > 0 { &OF_SERIES[..] } else { &[] };
    for sql in of_series {
        session.execute(sql, &[&series]).await?;
    }
    session.client.batch_execute("COMMIT").await
}
