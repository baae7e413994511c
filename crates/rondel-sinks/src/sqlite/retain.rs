//! Retention: removing old rows, in pieces.

use rusqlite::{Connection, TransactionBehavior, params};

use super::Retention;

/// Rows removed in one transaction.
const PIECE: i64 = 10_000;
/// Rows removed at least, so that pages become free.
const LEAST: i64 = 100;
/// Part of the largest size to which a store shrinks, in percent.
const SHRUNK: i64 = 95;
/// Free pages that are returned to the file system in one piece.
const FREED: i64 = 4096;

/// Removes a piece of what is too old. Returns whether more may be due.
pub(crate) fn retain(connection: &mut Connection, retention: &Retention, now: i64) -> rusqlite::Result<bool> {
    let mut more = false;
    if let Some(age) = retention.age {
        let age = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        more |= remove_before(connection, now.saturating_sub(age))?;
    }
    if let Some(bytes) = retention.bytes {
        more |= shrink(connection, i64::try_from(bytes).unwrap_or(i64::MAX))?;
    }
    Ok(more)
}

/// Removes rows recorded before a time of day.
fn remove_before(connection: &mut Connection, before: i64) -> rusqlite::Result<bool> {
    // Rows are recorded in the order of their numbers.
    let verdicts =
        first_since(connection, "SELECT seq, reported FROM verdicts WHERE seq >= ?1 LIMIT 1", before)?;
    let violations =
        first_since(connection, "SELECT id, recorded FROM violations WHERE id >= ?1 LIMIT 1", before)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut removed = 0;
    let mut remove = |sql: &str, limit: i64| -> rusqlite::Result<()> {
        removed = transaction.execute(sql, params![limit, PIECE])?.max(removed);
        Ok(())
    };
    remove(
        "DELETE FROM verdicts WHERE seq IN (SELECT seq FROM verdicts WHERE seq < ?1 ORDER BY seq LIMIT ?2)",
        verdicts,
    )?;
    remove(
        "DELETE FROM violations WHERE id IN (SELECT id FROM violations WHERE id < ?1 AND end IS NOT NULL \
         ORDER BY id LIMIT ?2)",
        violations,
    )?;
    remove("DELETE FROM losses WHERE id IN (SELECT id FROM losses WHERE until < ?1 LIMIT ?2)", before)?;
    remove("DELETE FROM silences WHERE id IN (SELECT id FROM silences WHERE until < ?1 LIMIT ?2)", before)?;
    remove("DELETE FROM actions WHERE id IN (SELECT id FROM actions WHERE at < ?1 LIMIT ?2)", before)?;
    if removed as i64 >= PIECE {
        transaction.commit()?;
        return Ok(true);
    }
    // The last run of a live series stays.
    let removed = transaction.execute(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs r WHERE end < ?1 \
         AND (kind != 'run' OR EXISTS (SELECT 1 FROM runs o WHERE o.series = r.series AND o.id > r.id)) LIMIT ?2)",
        params![before, PIECE],
    )?;
    for sql in [
        "DELETE FROM violations WHERE property IN (SELECT p.id FROM properties p WHERE p.series NOT IN \
         (SELECT series FROM runs))",
        "DELETE FROM states WHERE property IN (SELECT p.id FROM properties p WHERE p.series NOT IN \
         (SELECT series FROM runs))",
        "DELETE FROM days WHERE property IN (SELECT p.id FROM properties p WHERE p.series NOT IN \
         (SELECT series FROM runs))",
        "DELETE FROM properties WHERE series NOT IN (SELECT series FROM runs)",
        "DELETE FROM series WHERE id NOT IN (SELECT series FROM runs)",
    ] {
        transaction.execute(sql, [])?;
    }
    transaction.commit()?;
    Ok(removed as i64 >= PIECE)
}

/// Returns the first number whose row was recorded at a time of day or later; beyond the last if there is none.
fn first_since(connection: &Connection, sql: &str, time: i64) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare(sql)?;
    let (mut low, mut high) = (0_i64, i64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut rows = statement.query([middle])?;
        match rows.next()? {
            Some(row) if row.get::<_, i64>(1)? < time => low = row.get::<_, i64>(0)?.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Removes the oldest verdicts and violations while the store is too large, and returns free pages to the file system.
fn shrink(connection: &mut Connection, bytes: i64) -> rusqlite::Result<bool> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (page, pages, free) = (number("page_size")?, number("page_count")?, number("freelist_count")?);
    let used = (pages - free).saturating_mul(page);
    if pages.saturating_mul(page) <= bytes {
        return Ok(false);
    }
    let excess = used - bytes / 100 * SHRUNK;
    if excess <= 0 {
        if free > 0 {
            let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({FREED})"))?;
            let mut rows = vacuum.query([])?;
            while rows.next()?.is_some() {}
        }
        return Ok(free > FREED);
    }
    // About as large a part of the verdicts as of the size.
    let rows = "SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM verdicts";
    let rows: i64 = connection.query_row(rows, [], |row| row.get(0))?;
    let part = i128::from(rows) * i128::from(excess) / i128::from(used.max(1));
    let piece = i64::try_from(part).unwrap_or(PIECE).clamp(LEAST, PIECE);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "DELETE FROM verdicts WHERE seq IN (SELECT seq FROM verdicts ORDER BY seq LIMIT ?1)";
    let verdicts = transaction.execute(sql, [piece])?;
    // Of violations as large a part as of verdicts: those that began before the first verdict that is left.
    let sql = "DELETE FROM violations WHERE id IN (SELECT id FROM violations WHERE end IS NOT NULL \
               AND verdict < coalesce((SELECT min(seq) FROM verdicts), 9223372036854775807) ORDER BY id LIMIT ?1)";
    let violations = transaction.execute(sql, [PIECE])?;
    transaction.commit()?;
    Ok(verdicts + violations > 0)
}
