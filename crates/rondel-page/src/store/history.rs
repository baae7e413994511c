//! Verdicts over time, and changes since a place in the store.

use std::collections::HashMap;

use rondel_sinks::sqlite::{Cell, StoreError};
use serde_json::{Value, json};

use super::{Row, View};
use crate::answer::{INCONCLUSIVE, SATISFIED, VIOLATED, seconds, verdict_name};
use crate::thin::{Band, Timeline};

/// Maximum number of verdicts that are read for one history.
const VERDICTS: usize = 200_000;
/// Maximum number of violations that are read for one timeline.
const VIOLATIONS: usize = 20_000;
/// Violations before a time range among which one that reaches into it is searched.
const BEFORE: usize = 200;

/// A time range of a property or an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryQuery<'q> {
    pub(crate) property: &'q str,
    /// The parameters as the store writes them; `None` for all instances.
    pub(crate) instance: Option<&'q str>,
    pub(crate) from: i64,
    pub(crate) until: i64,
    pub(crate) width: usize,
    /// Event time that is reached, if it is later than the store knows.
    pub(crate) reached: Option<i64>,
    /// Whether intervals without a known verdict are read from the verdicts, beside the present ones.
    pub(crate) is_exact: bool,
}

/// A verdict that was stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Its place in the store.
    pub(crate) sequence: i64,
    pub(crate) json: Value,
}

impl View<'_> {
    /// The worst verdicts of a time range; empty before the first verdict of the store.
    pub(crate) fn timeline(&self, query: &HistoryQuery<'_>) -> Result<Timeline, StoreError> {
        let HistoryQuery { from, until, width, .. } = *query;
        let mut timeline = Timeline::new(from, until, width);
        let Some(property) = self.property(query.property)? else { return Ok(timeline) };
        let sql = "SELECT max(t.time) FROM states t WHERE t.property = ?1";
        let Some(latest) = self.number(sql, &[Cell::Integer(property)])? else { return Ok(timeline) };
        let end = self.reached.max(query.reached).unwrap_or(latest).max(latest);
        if let Some(first) = self.number("SELECT min(time) FROM verdicts", &[])? {
            timeline.fill(first.max(from), end.saturating_add(1), SATISFIED);
        }
        self.add_violations(&mut timeline, property, query, end)?;
        self.add_unknown(&mut timeline, property, query, end)?;
        Ok(timeline)
    }

    /// Adds violations to a timeline.
    fn add_violations(
        &self,
        timeline: &mut Timeline,
        property: i64,
        query: &HistoryQuery<'_>,
        reached: i64,
    ) -> Result<(), StoreError> {
        let mut values = vec![Cell::Integer(property), Cell::Integer(query.from), Cell::Integer(query.until)];
        let mut of_instance = "";
        if let Some(instance) = query.instance {
            values.push(Cell::Text(instance.to_owned()));
            of_instance = "AND parameters = ?4";
        }
        let columns = "SELECT begin, stale, end FROM violations WHERE property = ?1";
        // Those that begin in the range, those that are open, and the latest ones before the range.
        let inside = format!("{columns} {of_instance} AND begin >= ?2 AND begin <= ?3 ORDER BY begin DESC");
        let open = format!("{columns} {of_instance} AND end IS NULL AND begin < ?2 AND begin <= ?3");
        let before = format!(
            "{columns} {of_instance} AND begin < ?2 AND begin <= ?3 AND end IS NOT NULL ORDER BY begin DESC"
        );
        for (sql, limit) in [(inside, VIOLATIONS), (open, VIOLATIONS), (before, BEFORE)] {
            for row in &self.rows(&sql, &values, limit)?.rows {
                let row = Row(row);
                let (begin, stale, end) = (row.integer(0), row.optional_integer(1), row.optional_integer(2));
                let end = end.unwrap_or(reached.saturating_add(1));
                timeline.add(begin, stale.unwrap_or(end), VIOLATED);
                if let Some(stale) = stale {
                    timeline.add(stale, end, INCONCLUSIVE);
                }
            }
        }
        Ok(())
    }

    /// Adds intervals without a known verdict.
    fn add_unknown(
        &self,
        timeline: &mut Timeline,
        property: i64,
        query: &HistoryQuery<'_>,
        reached: i64,
    ) -> Result<(), StoreError> {
        let (values, of_instance) = selection(property, query.instance);
        let sql = format!("SELECT since FROM states WHERE property = ?1 {of_instance} AND verdict = 2");
        for row in &self.rows(&sql, &values, VIOLATIONS)?.rows {
            timeline.add(Row(row).integer(0), reached.saturating_add(1), INCONCLUSIVE);
        }
        if !query.is_exact || self.verdicts(property, query, "AND v.verdict = 2")?.is_empty() {
            return Ok(());
        }
        // Until the next verdict on the same instance.
        let mut since: HashMap<String, i64> = HashMap::new();
        for verdict in self.verdicts(property, query, "")? {
            match verdict.verdict {
                INCONCLUSIVE => {
                    since.entry(verdict.parameters).or_insert(verdict.time);
                }
                _ => {
                    if let Some(from) = since.remove(&verdict.parameters) {
                        timeline.add(from, verdict.time, INCONCLUSIVE);
                    }
                }
            }
        }
        // Those that last are present states, or continue behind the range.
        if self.reached.is_none_or(|reached| reached > query.until) {
            since.values().for_each(|from| timeline.add(*from, query.until, INCONCLUSIVE));
        }
        Ok(())
    }

    /// The verdicts of a time range, in order of time.
    fn verdicts(
        &self,
        property: i64,
        query: &HistoryQuery<'_>,
        condition: &str,
    ) -> Result<Vec<StoredVerdict>, StoreError> {
        let (mut values, of_instance) = selection(property, query.instance);
        values.extend([Cell::Integer(query.from), Cell::Integer(query.until)]);
        let (from, until) = (values.len() - 1, values.len());
        let sql = format!(
            "SELECT v.parameters, v.verdict, coalesce(v.about, v.time), v.robustness FROM verdicts v \
             WHERE v.property = ?1 {of_instance} {condition} AND v.time >= ?{from} AND v.time <= ?{until} \
             ORDER BY v.time DESC"
        );
        let rows = self.rows(&sql, &values, VERDICTS)?;
        let verdict = |row: &Vec<Cell>| {
            let row = Row(row);
            StoredVerdict {
                parameters: row.text(0).to_owned(),
                verdict: row.verdict(1),
                time: row.integer(2),
                robustness: row.real(3),
            }
        };
        // The latest ones, if there are too many.
        let mut all: Vec<StoredVerdict> = rows.rows.iter().map(verdict).collect();
        all.reverse();
        all.sort_by_key(|verdict| verdict.time);
        Ok(all)
    }

    /// The least and the greatest robustness of a time range; `None` for a property without robustness.
    pub(crate) fn robustness(&self, query: &HistoryQuery<'_>) -> Result<Option<Band>, StoreError> {
        let Some(property) = self.property(query.property)? else { return Ok(None) };
        let all = self.verdicts(property, query, "AND v.robustness IS NOT NULL")?;
        if all.is_empty() {
            return Ok(None);
        }
        let points: Vec<(i64, Option<f64>)> =
            all.iter().map(|verdict| (verdict.time, verdict.robustness)).collect();
        Ok(Some(Band::of(&points, query.from, query.until, query.width)))
    }

    /// Whether the store still has the verdicts from a time on: retention removes old ones.
    pub(crate) fn reaches_back(&self, from: i64) -> Result<bool, StoreError> {
        let first = self.number("SELECT min(time) FROM verdicts", &[])?;
        let begin = self.number("SELECT min(begin) FROM runs WHERE series = ?1", &[self.own()])?;
        let removed = self.number("SELECT min(seq) FROM verdicts", &[])?.is_some_and(|first| first > 1);
        Ok(!removed || first.is_none_or(|first| first <= from) || begin.is_some_and(|begin| begin > from))
    }

    /// The first and the last place of verdicts in the store; zeros without verdicts.
    pub(crate) fn places(&self) -> Result<(i64, i64), StoreError> {
        let first = self.number("SELECT min(seq) FROM verdicts", &[])?;
        let last = self.number("SELECT max(seq) FROM verdicts", &[])?;
        Ok((first.unwrap_or(0), last.unwrap_or(0)))
    }

    /// A text that differs between stores: places of one mean nothing in another.
    pub(crate) fn identity(&self) -> Result<String, StoreError> {
        let rows = self.rows("SELECT lower(hex(substr(key, 1, 4))) FROM runs ORDER BY id LIMIT 1", &[], 1)?;
        let text = rows.rows.first().map_or("", |row| Row(row).text(0));
        Ok(if text.is_empty() { "00000000".to_owned() } else { text.to_owned() })
    }

    /// The verdicts that were stored after a place, at most `limit`.
    pub(crate) fn changes(&self, after: i64, limit: usize) -> Result<Vec<Change>, StoreError> {
        let sql = format!(
            "SELECT v.seq, p.name, v.parameters, v.verdict, coalesce(v.about, v.time), v.robustness FROM verdicts v \
             JOIN properties p ON p.id = v.property WHERE v.seq > ?1 AND p.series = ?2 ORDER BY v.seq LIMIT {limit}"
        );
        let rows = self.rows(&sql, &[Cell::Integer(after), self.own()], limit)?;
        let change = |row: &Vec<Cell>| {
            let row = Row(row);
            let json = json!({
                "property": row.text(1),
                "parameters": row.object(2),
                "verdict": verdict_name(row.verdict(3)),
                "time": seconds(row.integer(4)),
                "robustness": row.real(5),
            });
            Change { sequence: row.integer(0), json }
        };
        Ok(rows.rows.iter().map(change).collect())
    }
}

/// Values and condition that select a property, or one of its instances.
fn selection(property: i64, instance: Option<&str>) -> (Vec<Cell>, &'static str) {
    match instance {
        Some(instance) => {
            (vec![Cell::Integer(property), Cell::Text(instance.to_owned())], "AND parameters = ?2")
        }
        None => (vec![Cell::Integer(property)], ""),
    }
}

/// A verdict of a history.
struct StoredVerdict {
    parameters: String,
    verdict: u8,
    time: i64,
    robustness: Option<f64>,
}
