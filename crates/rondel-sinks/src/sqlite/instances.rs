//! Present verdicts and open violations of instances: a bounded cache over their tables, written once per batch.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};

use rusqlite::{Connection, OptionalExtension, Statement, params};

use crate::entry::VerdictEntry;
use crate::tables::{LISTED, number, parameters, truth};
use crate::violation::{Day, Days, Present, Stored, Violation, apply};

/// Largest number of instances in memory between two batches.
const CACHED: usize = 1 << 17;

/// An instance of a property.
#[derive(Debug)]
struct Instance {
    open: Option<Violation>,
    present: Option<Present>,
    /// Whether it is, or is to be, in the table of present verdicts.
    is_listed: bool,
    /// Whether the tables differ.
    is_changed: bool,
}

/// Instances of one property.
#[derive(Debug, Default)]
struct OfProperty {
    instances: HashMap<Box<str>, Instance>,
    /// Rows in the table of present verdicts.
    listed: i64,
}

/// Cache of instances, and the changes of a batch.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    properties: HashMap<i64, OfProperty>,
    count: usize,
    /// Instances that changed in this batch.
    changed: Vec<(i64, Box<str>)>,
    /// Violations that ended in this batch.
    ended: Vec<(i64, Box<str>, Violation)>,
    days: Days,
}

/// Statements that look up an instance.
pub(crate) struct Lookup<'c> {
    open: Statement<'c>,
    state: Statement<'c>,
    listed: Statement<'c>,
}

impl<'c> Lookup<'c> {
    pub(crate) fn new(connection: &'c Connection) -> rusqlite::Result<Lookup<'c>> {
        let open = "SELECT id, run, lap, begin, last, count, since, stale, unknown, worst, verdict, recorded \
                    FROM violations WHERE property = ?1 AND parameters = ?2 AND end IS NULL ORDER BY id LIMIT 1";
        let state = "SELECT verdict, since, time FROM states WHERE property = ?1 AND parameters = ?2";
        Ok(Lookup {
            open: connection.prepare(open)?,
            state: connection.prepare(state)?,
            listed: connection.prepare("SELECT instances FROM properties WHERE id = ?1")?,
        })
    }

    fn listed(&mut self, property: i64) -> rusqlite::Result<i64> {
        Ok(self.listed.query_row([property], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    fn instance(&mut self, property: i64, parameters: &str) -> rusqlite::Result<Instance> {
        let open = self.open.query_row(params![property, parameters], |row| {
            Ok(Violation {
                id: row.get(0)?,
                run: row.get(1)?,
                lap: row.get(2)?,
                begin: row.get(3)?,
                last: row.get(4)?,
                count: row.get(5)?,
                since: row.get(6)?,
                stale: row.get(7)?,
                unknown: row.get(8)?,
                end: None,
                worst: row.get(9)?,
                verdict: row.get(10)?,
                recorded: row.get(11)?,
            })
        });
        let present = self.state.query_row(params![property, parameters], |row| {
            Ok(Present { verdict: truth(row.get(0)?), since: row.get(1)?, time: row.get(2)? })
        });
        let present = present.optional()?;
        let is_listed = present.is_some();
        Ok(Instance { open: open.optional()?, present, is_listed, is_changed: false })
    }
}

impl Instances {
    /// Forgets everything: after a rollback, and after others have changed the tables.
    pub(crate) fn clear(&mut self) {
        *self = Instances::default();
    }

    /// Applies a verdict that was stored.
    pub(crate) fn apply(
        &mut self,
        verdict: &VerdictEntry<'_>,
        stored: Stored,
        lookup: &mut Lookup<'_>,
    ) -> rusqlite::Result<()> {
        let parameters = parameters(verdict);
        let Instances { properties, count, changed, ended, days } = self;
        let of_property = match properties.entry(stored.property) {
            Occupied(known) => known.into_mut(),
            Vacant(vacant) => {
                let listed = lookup.listed(stored.property)?;
                vacant.insert(OfProperty { listed, ..OfProperty::default() })
            }
        };
        let OfProperty { instances, listed } = of_property;
        if !instances.contains_key(parameters) {
            let mut instance = lookup.instance(stored.property, parameters)?;
            if !instance.is_listed && *listed < LISTED {
                instance.is_listed = true;
                *listed += 1;
            }
            instances.insert(parameters.into(), instance);
            *count += 1;
        }
        let Some(instance) = instances.get_mut(parameters) else { return Ok(()) };
        if !std::mem::replace(&mut instance.is_changed, true) {
            changed.push((stored.property, parameters.into()));
        }
        if let Some(violation) = apply(&mut instance.open, verdict, stored, days) {
            ended.push((stored.property, parameters.into(), violation));
        }
        if instance.is_listed {
            instance.present = Some(Present::after(instance.present, verdict));
        }
        Ok(())
    }

    /// Writes all changes into the tables.
    pub(crate) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Instances { properties, count, changed, ended, days } = self;
        let mut violations = Violations::new(connection)?;
        for (property, parameters, violation) in ended.drain(..) {
            violations.write(property, &parameters, &violation)?;
        }
        let mut state = connection.prepare(
            "INSERT INTO states (property, parameters, verdict, since, time) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT DO UPDATE SET verdict = excluded.verdict, since = excluded.since, time = excluded.time",
        )?;
        for (property, parameters) in changed.drain(..) {
            let found = properties.get_mut(&property).and_then(|of| of.instances.get_mut(&parameters));
            let Some(instance) = found else { continue };
            instance.is_changed = false;
            if let Some(open) = &mut instance.open {
                open.id = Some(violations.write(property, &parameters, open)?);
            }
            if let Some(Present { verdict, since, time }) = instance.present {
                state.execute(params![property, parameters, number(verdict), since, time])?;
            }
        }
        let mut listed =
            connection.prepare("UPDATE properties SET instances = ?2 WHERE id = ?1 AND instances != ?2")?;
        for (property, of_property) in &*properties {
            listed.execute(params![property, of_property.listed])?;
        }
        write_days(connection, days)?;
        if *count > CACHED {
            properties.clear();
            *count = 0;
        }
        Ok(())
    }
}

/// Statements that write violations.
struct Violations<'c> {
    connection: &'c Connection,
    insert: Statement<'c>,
    update: Statement<'c>,
}

impl<'c> Violations<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Violations<'c>> {
        let insert = "INSERT INTO violations (property, parameters, run, lap, begin, last, count, since, stale, \
                      unknown, end, ended_by, worst, verdict, recorded) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let update = "UPDATE violations SET last = ?2, count = ?3, since = ?4, stale = ?5, unknown = ?6, end = ?7, \
                      ended_by = ?8, worst = ?9 WHERE id = ?1";
        Ok(Violations {
            connection,
            insert: connection.prepare(insert)?,
            update: connection.prepare(update)?,
        })
    }

    /// Writes a violation and returns its row. Acknowledgements are not touched.
    fn write(&mut self, property: i64, parameters: &str, violation: &Violation) -> rusqlite::Result<i64> {
        let Violation { last, count, since, stale, unknown, worst, .. } = violation;
        let (end, by) = violation.end.unzip();
        match violation.id {
            Some(id) => {
                self.update.execute(params![id, last, count, since, stale, unknown, end, by, worst])?;
                Ok(id)
            }
            None => {
                let Violation { run, lap, begin, verdict, recorded, .. } = violation;
                self.insert.execute(params![
                    property, parameters, run, lap, begin, last, count, since, stale, unknown, end, by,
                    worst, verdict, recorded
                ])?;
                Ok(self.connection.last_insert_rowid())
            }
        }
    }
}

fn write_days(connection: &Connection, days: &mut Days) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "INSERT INTO days (property, day, verdicts, violations, recoveries, violated, recovery, longest) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET \
         verdicts = verdicts + excluded.verdicts, violations = violations + excluded.violations, \
         recoveries = recoveries + excluded.recoveries, violated = violated + excluded.violated, \
         recovery = recovery + excluded.recovery, longest = max(longest, excluded.longest)",
    )?;
    for ((property, day), figures) in days.drain() {
        let Day { verdicts, violations, recoveries, violated, recovery, longest } = figures;
        statement
            .execute(params![property, day, verdicts, violations, recoveries, violated, recovery, longest])?;
    }
    Ok(())
}
