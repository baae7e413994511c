//! Silences in the memory of a running monitor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use rusqlite::Connection;
use serde_json::Value;

use crate::operate::{is_same_value, object};

/// Maximum number of silences in memory; the latest count.
const LIMIT: i64 = 10_000;

/// The silences of a store that have not ended, for those who notify people or act: any thread queries them.
///
/// The thread of the store reads them again within about a second after another process has changed the store. A
/// silence ends by its time, so that a store that cannot be read prolongs none.
#[derive(Debug, Default)]
pub struct Silences {
    /// Number of readings that found a change.
    generation: AtomicU64,
    /// Number of silences, so that a query without any takes no lock.
    count: AtomicU64,
    by_property: RwLock<HashMap<String, Vec<Silence>>>,
}

/// A silence.
#[derive(Clone, Debug, PartialEq)]
struct Silence {
    /// The parameters with a chosen value.
    parameters: Vec<(String, Value)>,
    from: i64,
    until: i64,
}

impl Silences {
    /// Whether there is a silence of any property.
    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether an instance of a property is silenced at a time of day, in nanoseconds since the Unix epoch. `parameters`
    /// is the JSON object of an [entry](crate::VerdictEntry::parameters); empty without parameters.
    pub fn is_silenced(&self, property: &str, parameters: &str, now: i64) -> bool {
        if !self.is_any() {
            return false;
        }
        let by_property = self.by_property.read().unwrap_or_else(PoisonError::into_inner);
        let Some(silences) = by_property.get(property) else { return false };
        let mut own = None;
        silences.iter().filter(|silence| (silence.from..silence.until).contains(&now)).any(|silence| {
            silence.parameters.is_empty() || {
                let own = own.get_or_insert_with(|| object(parameters));
                silence
                    .parameters
                    .iter()
                    .all(|(name, chosen)| own.get(name).is_some_and(|own| is_same_value(own, chosen)))
            }
        })
    }

    /// Returns the first time of day after `now` at which a silence begins or ends; the latest time if none does.
    pub fn next_change(&self, now: i64) -> i64 {
        let by_property = self.by_property.read().unwrap_or_else(PoisonError::into_inner);
        let times = by_property.values().flatten().flat_map(|silence| [silence.from, silence.until]);
        times.filter(|time| *time > now).min().unwrap_or(i64::MAX)
    }

    /// Number that grows with every change of the silences.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Reads the silences that have not ended at a time of day.
    pub(super) fn read(&self, connection: &Connection, now: i64) -> rusqlite::Result<()> {
        let sql = "SELECT property, parameters, \"from\", until FROM silences WHERE until > ?1 ORDER BY id DESC LIMIT ?2";
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([now, LIMIT], |row| {
            let parameters = match object(&row.get::<_, String>(1)?) {
                Value::Object(members) => members.into_iter().collect(),
                _ => Vec::new(),
            };
            Ok((row.get::<_, String>(0)?, Silence { parameters, from: row.get(2)?, until: row.get(3)? }))
        })?;
        let mut read: HashMap<String, Vec<Silence>> = HashMap::new();
        let mut count = 0;
        for row in rows {
            let (property, silence) = row?;
            read.entry(property).or_default().push(silence);
            count += 1;
        }
        let mut known = self.by_property.write().unwrap_or_else(PoisonError::into_inner);
        if *known != read {
            *known = read;
            self.count.store(count, Ordering::Release);
            self.generation.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_change_is_a_begin_or_an_end() {
        let silences = Silences::default();
        assert_eq!(silences.next_change(0), i64::MAX);
        let of = |from, until| Silence { parameters: Vec::new(), from, until };
        let all = [("p".to_owned(), vec![of(5, 20), of(1, 9)]), ("q".to_owned(), vec![of(12, 30)])];
        let silences = Silences { by_property: RwLock::new(all.into()), ..Silences::default() };
        for (now, next) in [(0, 1), (1, 5), (5, 9), (9, 12), (19, 20), (20, 30), (30, i64::MAX)] {
            assert_eq!(silences.next_change(now), next, "after {now}");
        }
    }
}
