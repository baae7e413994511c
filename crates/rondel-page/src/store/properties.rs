//! Present verdicts of properties and instances.

use std::collections::HashMap;

use rondel_sinks::sqlite::{Cell, StoreError};
use serde_json::{Value, json};

use super::{INSTANCES, Row, View, containing};
use crate::answer::{NONE, rank, seconds, verdict_name};
use crate::describe::{Described, PropertyText};

/// Maximum number of properties and of open violations that a summary reads.
const MOST: usize = 100_000;

/// The present state of a property.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    pub(crate) name: String,
    pub(crate) severity: String,
    pub(crate) requirement: String,
    pub(crate) networks: Vec<String>,
    /// The worst of all instances, by its number.
    pub(crate) verdict: u8,
    pub(crate) since: Option<i64>,
    /// Instances by verdict.
    pub(crate) counts: [u64; 3],
    pub(crate) violations: u64,
    pub(crate) worst: Option<f64>,
    /// The oldest open violation.
    pub(crate) violation: Option<i64>,
    pub(crate) acknowledged_by: Option<String>,
    pub(crate) silenced_until: Option<i64>,
    pub(crate) because_of: Option<String>,
}

/// The instances to show.
#[derive(Clone, Debug)]
pub(crate) struct InstanceQuery<'q> {
    pub(crate) property: &'q str,
    pub(crate) search: Option<&'q str>,
    pub(crate) verdict: Option<u8>,
    pub(crate) sort: &'q str,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    /// Time of day.
    pub(crate) now: i64,
}

/// Whether a silence with these parameters covers an instance: `Silences::is_silenced` decides likewise.
pub(super) fn covers(silence: &Value, instance: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let chosen = silence.as_object();
    chosen
        .into_iter()
        .flatten()
        .all(|(name, value)| instance.get(name).is_some_and(|own| own == value || text(own) == text(value)))
}

impl View<'_> {
    /// Names, severities, requirements and texts of all properties.
    pub(crate) fn described(&self) -> Result<Described, StoreError> {
        let sql = "SELECT name, severity, requirement, text FROM properties WHERE series = ?1 ORDER BY id";
        let rows = self.rows(sql, &[self.own()], MOST)?;
        let texts = rows.rows.iter().map(|row| [0, 1, 2, 3].map(|at| Row(row).text(at)));
        Ok(Described::stored(texts))
    }

    /// The present states of the properties of a specification, in its order.
    pub(crate) fn summaries(&self, described: &Described, now: i64) -> Result<Vec<Summary>, StoreError> {
        let mut known = self.known(now)?;
        let summary = |property: &PropertyText| Summary {
            name: property.name().to_owned(),
            severity: property.severity.clone(),
            requirement: property.requirement.clone(),
            networks: property.networks.clone(),
            ..known.remove(property.name()).unwrap_or_else(Summary::unknown)
        };
        Ok(described.properties.iter().map(summary).collect())
    }

    /// The present states that the store has, by property.
    fn known(&self, now: i64) -> Result<HashMap<String, Summary>, StoreError> {
        let sql = "SELECT p.name, t.verdict, count(*), min(t.since), max(t.since) FROM states t \
                   JOIN properties p ON p.id = t.property WHERE p.series = ?1 GROUP BY t.property, t.verdict";
        let mut known: HashMap<String, Summary> = HashMap::new();
        for row in &self.rows(sql, &[self.own()], MOST)?.rows {
            let row = Row(row);
            let (verdict, name) = (row.verdict(1), row.text(0));
            let summary = known.entry(name.to_owned()).or_insert_with(Summary::unknown);
            summary.counts[usize::from(verdict)] = row.count(2);
            if rank(verdict) < rank(summary.verdict) || summary.verdict == NONE {
                // A bad state lasts since the first instance has it, a good one since the last.
                let since = if verdict == 0 { row.integer(4) } else { row.integer(3) };
                (summary.verdict, summary.since) = (verdict, Some(since));
            }
        }
        let sql = "SELECT p.name, total(d.violations) FROM days d JOIN properties p ON p.id = d.property \
                   WHERE p.series = ?1 GROUP BY d.property";
        for row in &self.rows(sql, &[self.own()], MOST)?.rows {
            let summary = known.entry(Row(row).text(0).to_owned()).or_insert_with(Summary::unknown);
            summary.violations = Row(row).count(1);
        }
        self.add_open(&mut known, now)?;
        Ok(known)
    }

    /// Adds the open violations.
    fn add_open(&self, known: &mut HashMap<String, Summary>, now: i64) -> Result<(), StoreError> {
        let because = if self.has_operators() { "d.because_of" } else { "NULL" };
        let sql = format!(
            "SELECT p.name, v.id, v.worst, v.acknowledged_by, v.acknowledged_until, v.parameters, {because} \
             FROM violations v JOIN properties p ON p.id = v.property LEFT JOIN verdicts d ON d.seq = v.verdict \
             WHERE p.series = ?1 AND v.end IS NULL ORDER BY v.begin, v.id"
        );
        let silences = self.silences(now)?;
        for row in &self.rows(&sql, &[self.own()], MOST)?.rows {
            let row = Row(row);
            let summary = known.entry(row.text(0).to_owned()).or_insert_with(Summary::unknown);
            summary.worst = match (summary.worst, row.real(2)) {
                (Some(worst), Some(own)) => Some(worst.min(own)),
                (worst, own) => worst.or(own),
            };
            if summary.violation.is_some() {
                continue;
            }
            summary.violation = row.optional_integer(1);
            let is_present = row.optional_integer(4).is_none_or(|until| until > now);
            summary.acknowledged_by = row.optional_text(3).filter(|_| is_present).map(str::to_owned);
            summary.because_of = row.optional_text(6).filter(|name| !name.is_empty()).map(str::to_owned);
            let instance = row.object(5);
            let own = silences.iter().filter(|silence| silence.property == row.text(0));
            summary.silenced_until = own
                .filter(|silence| covers(&silence.parameters, &instance))
                .map(|silence| silence.until)
                .max();
        }
        Ok(())
    }

    /// The instances of a property, as the API describes them; `None` if the store does not know the property.
    pub(crate) fn instances(&self, query: &InstanceQuery<'_>) -> Result<Option<Value>, StoreError> {
        let Some(property) = self.property(query.property)? else { return Ok(None) };
        let own = Cell::Integer(property);
        let sql = "SELECT verdict, count(*) FROM states WHERE property = ?1 GROUP BY verdict";
        let mut counts = [0; 3];
        for row in &self.rows(sql, &[own.clone()], 3)?.rows {
            counts[usize::from(Row(row).verdict(0))] = Row(row).count(1);
        }
        let mut conditions = "t.property = ?1".to_owned();
        let mut values = vec![own];
        if let Some(search) = query.search {
            values.push(containing(search));
            conditions += &format!(" AND t.parameters LIKE ?{} ESCAPE '\\'", values.len());
        }
        if let Some(verdict) = query.verdict {
            values.push(Cell::Integer(i64::from(verdict)));
            conditions += &format!(" AND t.verdict = ?{}", values.len());
        }
        let total = self.number(&format!("SELECT count(*) FROM states t WHERE {conditions}"), &values)?;
        let order = match query.sort {
            "newest" => "t.since DESC, t.parameters",
            "name" => "t.parameters",
            _ => "CASE t.verdict WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 2 END, t.since, t.parameters",
        };
        let sql = format!(
            "SELECT t.parameters, t.verdict, t.since, t.time, v.id, v.worst, v.acknowledged_by, v.acknowledged_until \
             FROM states t LEFT JOIN violations v \
             ON v.property = t.property AND v.parameters = t.parameters AND v.end IS NULL \
             WHERE {conditions} ORDER BY {order} LIMIT {} OFFSET {}",
            query.limit, query.offset
        );
        let rows = self.rows(&sql, &values, query.limit)?;
        let instance = |row: &Vec<Cell>| {
            let row = Row(row);
            let is_present = row.optional_integer(7).is_none_or(|until| until > query.now);
            json!({
                "parameters": row.object(0),
                "verdict": verdict_name(row.verdict(1)),
                "since": seconds(row.integer(2)),
                "latest": seconds(row.integer(3)),
                "violation": row.optional_integer(4),
                "worst": row.real(5),
                "acknowledged_by": row.optional_text(6).filter(|_| is_present),
            })
        };
        let instances: Vec<Value> = rows.rows.iter().map(instance).collect();
        Ok(Some(json!({
            "now": seconds(query.now),
            "total": total.unwrap_or(0),
            "offset": query.offset,
            "counts": counts_json(counts),
            "instances": instances,
            "is_complete": counts.iter().sum::<u64>() < INSTANCES as u64,
        })))
    }
}

fn counts_json([satisfied, violated, inconclusive]: [u64; 3]) -> Value {
    let total = satisfied + violated + inconclusive;
    json!({"total": total, "satisfied": satisfied, "violated": violated, "inconclusive": inconclusive})
}

/// The state of a property as the API describes it.
pub(crate) fn summary_json(summary: &Summary, timeline: Value) -> Value {
    json!({
        "name": summary.name,
        "verdict": verdict_name(summary.verdict),
        "since": summary.since.map(seconds),
        "severity": summary.severity,
        "requirement": summary.requirement,
        "networks": summary.networks,
        "instances": counts_json(summary.counts),
        "violations": summary.violations,
        "worst": summary.worst,
        "acknowledged_by": summary.acknowledged_by,
        "silenced_until": summary.silenced_until.map(seconds),
        "because_of": summary.because_of,
        "violation": summary.violation,
        "timeline": timeline,
    })
}

impl Summary {
    /// That of a property without a verdict.
    fn unknown() -> Summary {
        Summary { verdict: NONE, ..Summary::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_cover_the_instances_with_their_parameters() {
        let instance = json!({"robot": 7, "site": "a"});
        for (silence, expected) in [
            (json!({}), true),
            (json!({"robot": 7}), true),
            (json!({"robot": "7"}), true),
            (json!({"robot": 8}), false),
            (json!({"robot": 7, "site": "b"}), false),
            (json!({"other": 1}), false),
        ] {
            assert_eq!(covers(&silence, &instance), expected, "{silence}");
        }
    }
}
