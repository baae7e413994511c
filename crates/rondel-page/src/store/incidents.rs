//! Violations, silences, actions of operators, and losses.

use rondel_sinks::sqlite::{Cell, StoreError};
use serde_json::{Value, json};

use super::properties::covers;
use super::{Row, View, containing};
use crate::answer::seconds;

/// Maximum number of silences that are read.
const SILENCES: usize = 10_000;
/// Number of actions shown.
const ACTIONS: usize = 100;

/// Columns of a violation.
const COLUMNS: &str = "v.id, p.name, p.severity, v.parameters, v.begin, v.last, v.end, v.ended_by, v.count, v.stale, \
    v.unknown, v.worst, v.acknowledged_by, v.acknowledged_at, v.acknowledged_until, v.comment, d.explanation, d.quantified, \
    d.missing, s.latest";

/// The violations to show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ViolationQuery<'q> {
    pub(crate) id: Option<i64>,
    pub(crate) property: Option<&'q str>,
    pub(crate) instance: Option<&'q str>,
    /// `open`, `stale` or `ended`; `unended` for the first two.
    pub(crate) status: Option<&'q str>,
    /// Part of the name of the property or of the parameters.
    pub(crate) search: Option<&'q str>,
    /// Violations that last at or after this time.
    pub(crate) from: Option<i64>,
    /// Violations that begin before this time.
    pub(crate) until: Option<i64>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    /// Time of day.
    pub(crate) now: i64,
}

/// A silence in force.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Silence {
    id: i64,
    pub(super) property: String,
    pub(super) parameters: Value,
    from: i64,
    pub(super) until: i64,
    set_by: String,
    comment: String,
}

impl View<'_> {
    /// Violations as the API describes them, the latest first, and the number of all that match.
    pub(crate) fn violations(&self, query: &ViolationQuery<'_>) -> Result<(Vec<Value>, i64), StoreError> {
        let mut values = vec![self.own()];
        let mut conditions = "p.series = ?1".to_owned();
        let mut add = |condition: &str, value: Cell| {
            values.push(value);
            conditions += " AND ";
            conditions += &condition.replace("?", &format!("?{}", values.len()));
        };
        if let Some(id) = query.id {
            add("v.id = ?", Cell::Integer(id));
        }
        if let Some(property) = query.property {
            add("p.name = ?", Cell::Text(property.to_owned()));
        }
        if let Some(instance) = query.instance {
            add("v.parameters = ?", Cell::Text(instance.to_owned()));
        }
        if let Some(search) = query.search {
            add("(p.name LIKE ? ESCAPE '\\' OR v.parameters LIKE ? ESCAPE '\\')", containing(search));
        }
        if let Some(from) = query.from {
            add("(v.end IS NULL OR v.end >= ?)", Cell::Integer(from));
        }
        if let Some(until) = query.until {
            add("v.begin < ?", Cell::Integer(until));
        }
        conditions += match query.status {
            Some("open") => " AND v.end IS NULL AND v.stale IS NULL",
            Some("stale") => " AND v.end IS NULL AND v.stale IS NOT NULL",
            Some("unended") => " AND v.end IS NULL",
            Some(_) => " AND v.end IS NOT NULL",
            None => "",
        };
        let tables = "violations v JOIN properties p ON p.id = v.property JOIN series s ON s.id = p.series";
        let total = self.number(&format!("SELECT count(*) FROM {tables} WHERE {conditions}"), &values)?;
        let because = if self.has_operators() { "d.because_of" } else { "NULL" };
        let sql = format!(
            "SELECT {COLUMNS}, {because} FROM {tables} LEFT JOIN verdicts d ON d.seq = v.verdict \
             WHERE {conditions} ORDER BY v.id DESC LIMIT {} OFFSET {}",
            query.limit, query.offset
        );
        let silences = self.silences(query.now)?;
        let rows = self.rows(&sql, &values, query.limit)?;
        let violations = rows.rows.iter().map(|row| violation(Row(row), &silences, query.now)).collect();
        Ok((violations, total.unwrap_or(0)))
    }

    /// The silences in force.
    pub(super) fn silences(&self, now: i64) -> Result<Vec<Silence>, StoreError> {
        if !self.has_operators() {
            return Ok(Vec::new());
        }
        let sql = "SELECT id, property, parameters, \"from\", until, set_by, comment FROM silences WHERE until > ?1 \
                   ORDER BY id DESC";
        let rows = self.rows(sql, &[Cell::Integer(now)], SILENCES)?;
        let silence = |row: &Vec<Cell>| {
            let row = Row(row);
            Silence {
                id: row.integer(0),
                property: row.text(1).to_owned(),
                parameters: row.object(2),
                from: row.integer(3),
                until: row.integer(4),
                set_by: row.text(5).to_owned(),
                comment: row.text(6).to_owned(),
            }
        };
        Ok(rows.rows.iter().map(silence).collect())
    }

    /// The silences in force as the API describes them.
    pub(crate) fn silences_json(&self, now: i64) -> Result<Vec<Value>, StoreError> {
        let json = |silence: Silence| {
            let Silence { id, property, parameters, from, until, set_by, comment } = silence;
            json!({
                "id": id, "property": property, "parameters": parameters, "from": seconds(from), "until": seconds(until),
                "set_by": set_by, "comment": comment,
            })
        };
        Ok(self.silences(now)?.into_iter().map(json).collect())
    }

    /// The latest actions of operators.
    pub(crate) fn actions(&self) -> Result<Vec<Value>, StoreError> {
        if !self.has_operators() {
            return Ok(Vec::new());
        }
        let sql = "SELECT id, at, operator, kind, members FROM actions ORDER BY id DESC";
        let rows = self.rows(sql, &[], ACTIONS)?;
        let action = |row: &Vec<Cell>| {
            let row = Row(row);
            json!({
                "id": row.integer(0), "at": seconds(row.integer(1)), "operator": row.text(2), "kind": row.text(3),
                "members": row.object(4),
            })
        };
        Ok(rows.rows.iter().map(action).collect())
    }

    /// Losses between two times of day, the latest first, and the number of all. `is_topic` distinguishes topics from sinks.
    pub(crate) fn losses(
        &self,
        range: Option<(i64, i64)>,
        part: (usize, usize),
        is_topic: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<Value>, i64), StoreError> {
        let (from, until) = range.unwrap_or((i64::MIN, i64::MAX));
        let values = [self.own(), Cell::Integer(from), Cell::Integer(until)];
        let tables =
            "losses l JOIN runs r ON r.id = l.run WHERE r.series = ?1 AND l.until >= ?2 AND l.\"from\" <= ?3";
        let total = self.number(&format!("SELECT count(*) FROM {tables}"), &values)?;
        let (offset, limit) = part;
        let sql = format!(
            "SELECT l.reason, l.subject, l.count, l.\"from\", l.until FROM {tables} ORDER BY l.id DESC \
             LIMIT {limit} OFFSET {offset}"
        );
        let loss = |row: &Vec<Cell>| {
            let row = Row(row);
            json!({
                "reason": row.text(0), "subject": row.text(1), "count": row.count(2), "from": seconds(row.integer(3)),
                "until": seconds(row.integer(4)), "is_blind": is_topic(row.text(1)),
            })
        };
        let losses = self.rows(&sql, &values, limit)?.rows.iter().map(loss).collect();
        Ok((losses, total.unwrap_or(0)))
    }
}

/// A violation as the API describes it.
fn violation(row: Row<'_>, silences: &[Silence], now: i64) -> Value {
    let (begin, last, end, stale) =
        (row.integer(4), row.integer(5), row.optional_integer(6), row.optional_integer(9));
    let status = match (end, stale) {
        (Some(_), _) => "ended",
        (None, Some(_)) => "stale",
        (None, None) => "open",
    };
    let until = end.or(stale).unwrap_or_else(|| last.max(row.optional_integer(19).unwrap_or(last)));
    let lasted = until.saturating_sub(begin).saturating_sub(row.integer(10)).max(0);
    let acknowledged_until = row.optional_integer(14);
    let is_acknowledged = end.is_some() || acknowledged_until.is_none_or(|until| until > now);
    let parameters = row.object(3);
    let own = silences.iter().filter(|silence| silence.property == row.text(1));
    let silenced =
        own.filter(|silence| covers(&silence.parameters, &parameters)).map(|silence| silence.until).max();
    json!({
        "id": row.integer(0),
        "property": row.text(1),
        "severity": row.text(2),
        "parameters": parameters,
        "status": status,
        "begin": seconds(begin),
        "last": seconds(last),
        "end": end.map(seconds),
        "ended_by": row.optional_text(7),
        "count": row.count(8),
        "seconds": seconds(lasted),
        "worst": row.real(11),
        "acknowledged_by": row.optional_text(12).filter(|_| is_acknowledged),
        "acknowledged_at": row.optional_integer(13).map(seconds),
        "acknowledged_until": acknowledged_until.map(seconds),
        "comment": row.optional_text(15).filter(|comment| !comment.is_empty()),
        "because_of": row.optional_text(20).filter(|name| !name.is_empty()),
        "silenced_until": silenced.filter(|_| end.is_none()).map(seconds),
        "values": row.object(17),
        "missing": row.optional_text(18).filter(|topic| !topic.is_empty()),
        "explanation": row.array(16),
    })
}
