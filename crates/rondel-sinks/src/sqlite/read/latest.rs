//! The latest violations of a store that has millions.

use rusqlite::ToSql;

use super::super::error::StoreError;
use super::Reader;

/// Number of violations whose ids are sorted in a few milliseconds.
const FEW: i64 = 50_000;
/// Number of properties whose violations one statement merges: SQLite has at most 500 terms in it.
const TOGETHER: usize = 400;

/// A condition of a filter on a column of a view.
pub(super) struct Condition {
    pub(super) column: &'static str,
    pub(super) operator: &'static str,
    /// Number of the parameter with the value.
    pub(super) value: usize,
}

impl Condition {
    /// Returns it for a column with another name.
    pub(super) fn of(&self, column: &str) -> String {
        format!("{column} {} ?{}", self.operator, self.value)
    }
}

impl Reader {
    /// Returns the condition that a row is among the latest violations that fulfil conditions, one more than `limit`.
    ///
    /// The statistics of SQLite make it sort the rows of all violations instead of reading the latest ones: here their ids
    /// are chosen first, from the index if few violations fulfil the conditions, else by reading from the latest one on.
    pub(super) fn latest_violations(
        &self,
        conditions: &[Condition],
        values: &[&dyn ToSql],
        limit: usize,
    ) -> Result<String, StoreError> {
        let limit = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        if conditions.is_empty() {
            return Ok(format!("id IN (SELECT v.id FROM violations v ORDER BY v.id DESC LIMIT {limit})"));
        }
        let (mut of_property, mut of_violation) = (Vec::new(), String::new());
        for condition in conditions {
            match condition.column {
                "series" => of_property.push(condition.of("s.name")),
                "property" => of_property.push(condition.of("p.name")),
                _ => of_violation += &format!(" AND {}", condition.of("v.begin")),
            }
        }
        let of_property = match of_property.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", of_property.join(" AND ")),
        };
        let properties =
            format!("SELECT p.id FROM properties p JOIN series s ON s.id = p.series{of_property}");
        if conditions.iter().any(|condition| condition.operator == "<") {
            // Names are the first conditions.
            let names = conditions.iter().take_while(|condition| condition.operator == "=").count();
            return self.latest_before(&properties, &values[..names], &of_violation, limit);
        }
        let matches = format!("v.property IN ({properties}){of_violation}");
        let count = format!(
            "SELECT count(*) FROM (SELECT 1 FROM violations v INDEXED BY violations_of_property WHERE {matches} \
             LIMIT {FEW} + 1)"
        );
        let failed = |error: rusqlite::Error| StoreError::of(&error, "read the store", &self.path);
        let count: i64 = self.connection.query_row(&count, values, |row| row.get(0)).map_err(failed)?;
        let index = if count > FEW { "NOT INDEXED" } else { "INDEXED BY violations_of_property" };
        Ok(format!(
            "id IN (SELECT v.id FROM violations v {index} WHERE {matches} ORDER BY v.id DESC LIMIT {limit})"
        ))
    }

    /// Returns the condition that a row is among the violations that began last before a time, which `of_violation` contains.
    ///
    /// From the latest one on, all violations after that time would be read. SQLite merges those of each property from the
    /// index, and reads as many as there are rows.
    fn latest_before(
        &self,
        properties: &str,
        names: &[&dyn ToSql],
        of_violation: &str,
        limit: i64,
    ) -> Result<String, StoreError> {
        let read = || -> rusqlite::Result<Vec<i64>> {
            let mut statement = self.connection.prepare(properties)?;
            let ids = statement.query_map(names, |row| row.get(0))?;
            ids.collect()
        };
        let mut ids = read().map_err(|error| StoreError::of(&error, "read the store", &self.path))?;
        if ids.is_empty() {
            // No property has this number; the parameters of the statement stay the same.
            ids.push(-1);
        }
        let latest = format!("ORDER BY time DESC, id DESC LIMIT {limit}");
        let of_property = |id: &i64| {
            format!(
                "SELECT v.begin AS time, v.id AS id FROM violations v INDEXED BY violations_of_property \
                 WHERE v.property = {id}{of_violation}"
            )
        };
        let merged = ids.chunks(TOGETHER).map(|ids| {
            let all: Vec<String> = ids.iter().map(of_property).collect();
            format!("SELECT * FROM ({} {latest})", all.join(" UNION ALL "))
        });
        let merged: Vec<String> = merged.collect();
        Ok(format!("id IN (SELECT id FROM ({}) {latest})", merged.join(" UNION ALL ")))
    }
}
