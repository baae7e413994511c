//! Present verdicts and open violations of the instances of a batch: read once, changed here, written once.

use std::collections::HashMap;
use std::pin::pin;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use super::session::Session;
use super::values::{Json, Text, Uuid};
use super::verdicts::Property;
use crate::entry::VerdictEntry;
use crate::tables::{LISTED, number, parameters, truth};
use crate::violation::{Day, Days, Present, Stored, Violation, apply};

/// An instance of a property.
struct Instance<'e> {
    /// Place of its property.
    property: usize,
    parameters: &'e str,
    hash: Uuid,
    open: Option<Violation>,
    present: Option<Present>,
    /// Whether it is, or is to be, in the table of present verdicts.
    is_listed: bool,
    is_changed: bool,
}

/// The instances of a batch, and their changes.
#[derive(Default)]
pub(super) struct Instances<'e> {
    all: Vec<Instance<'e>>,
    places: HashMap<(usize, &'e str), usize>,
    /// Places of those that changed, and the violations that ended.
    changed: Vec<usize>,
    ended: Vec<(usize, Violation)>,
    days: Days,
}

impl<'e> Instances<'e> {
    /// Announces an instance that is to be read.
    pub(super) fn want(&mut self, property: usize, verdict: &VerdictEntry<'e>) {
        let parameters = parameters(verdict);
        self.places.entry((property, parameters)).or_insert_with(|| {
            self.all.push(Instance {
                property,
                parameters,
                hash: Uuid::of(parameters),
                open: None,
                present: None,
                is_listed: false,
                is_changed: false,
            });
            self.all.len() - 1
        });
    }

    /// Reads all from the tables, also again.
    pub(super) async fn read(&mut self, session: &Session, properties: &[Property]) -> Result<(), Error> {
        if self.all.is_empty() {
            return Ok(());
        }
        let sql = "SELECT t.verdict, t.since, t.time, v.id, v.run, v.lap, v.begin, v.last, v.count, v.since, \
                   v.stale, v.unknown, v.worst, v.verdict, v.recorded \
                   FROM unnest($1::bigint[], $2::uuid[]) WITH ORDINALITY AS k(property, instance, n) \
                   LEFT JOIN states t ON t.property = k.property AND t.instance = k.instance \
                   LEFT JOIN LATERAL (SELECT * FROM violations o WHERE o.property = k.property \
                   AND o.instance = k.instance AND o.\"end\" IS NULL ORDER BY o.id LIMIT 1) v ON true ORDER BY k.n";
        let of: Vec<i64> = self.all.iter().map(|instance| properties[instance.property].id).collect();
        let hashes: Vec<Uuid> = self.all.iter().map(|instance| instance.hash).collect();
        let rows = session.query(sql, &[&of, &hashes]).await?;
        for (instance, row) in self.all.iter_mut().zip(&rows) {
            instance.present = present(row)?;
            instance.is_listed = instance.present.is_some();
            instance.open = violation(row)?;
            instance.is_changed = false;
        }
        Ok(())
    }

    /// Applies a verdict that was stored.
    pub(super) fn apply(
        &mut self,
        property: &mut Property,
        place: usize,
        stored: Stored,
        verdict: &VerdictEntry<'e>,
    ) {
        let Instances { all, places, changed, ended, days } = self;
        let found =
            places.get(&(place, parameters(verdict))).and_then(|place| Some((*place, all.get_mut(*place)?)));
        let Some((place, instance)) = found else { return };
        if !std::mem::replace(&mut instance.is_changed, true) {
            changed.push(place);
        }
        if !instance.is_listed && property.listed < LISTED {
            instance.is_listed = true;
            property.listed += 1;
        }
        if let Some(violation) = apply(&mut instance.open, verdict, stored, days) {
            ended.push((place, violation));
        }
        if instance.is_listed {
            instance.present = Some(Present::after(instance.present, verdict));
        }
    }

    /// Writes all changes. Read the instances again before the next ones.
    pub(super) async fn flush(&mut self, session: &Session, properties: &[Property]) -> Result<(), Error> {
        let Instances { all, changed, ended, days, .. } = self;
        let (mut new, mut known) = (Vec::new(), Vec::new());
        let open = changed.iter().filter_map(|place| Some((*place, all[*place].open.as_ref()?)));
        for (place, violation) in ended.iter().map(|(place, violation)| (*place, violation)).chain(open) {
            match violation.id {
                Some(id) => known.push((id, violation)),
                None => new.push((&all[place], violation)),
            }
        }
        insert_violations(session, &new, properties).await?;
        update_violations(session, &known).await?;
        write_states(session, changed.iter().map(|place| &all[*place]), properties).await?;
        write_days(session, days).await?;
        changed.clear();
        ended.clear();
        days.clear();
        Ok(())
    }
}

fn present(row: &Row) -> Result<Option<Present>, Error> {
    let Some(verdict) = row.try_get::<_, Option<i16>>(0)? else { return Ok(None) };
    Ok(Some(Present { verdict: truth(i64::from(verdict)), since: row.try_get(1)?, time: row.try_get(2)? }))
}

fn violation(row: &Row) -> Result<Option<Violation>, Error> {
    let Some(id) = row.try_get::<_, Option<i64>>(3)? else { return Ok(None) };
    Ok(Some(Violation {
        id: Some(id),
        run: row.try_get(4)?,
        // As it was stored.
        lap: u32::try_from(row.try_get::<_, i64>(5)?).unwrap_or(u32::MAX),
        begin: row.try_get(6)?,
        last: row.try_get(7)?,
        count: row.try_get(8)?,
        since: row.try_get(9)?,
        stale: row.try_get(10)?,
        unknown: row.try_get(11)?,
        end: None,
        worst: row.try_get(12)?,
        verdict: row.try_get(13)?,
        recorded: row.try_get(14)?,
    }))
}

const COPY: &str = "COPY violations (property, instance, parameters, run, lap, begin, last, count, since, stale, \
                    unknown, \"end\", ended_by, worst, verdict, recorded) FROM STDIN BINARY";

async fn insert_violations(
    session: &Session,
    new: &[(&Instance<'_>, &Violation)],
    properties: &[Property],
) -> Result<(), Error> {
    if new.is_empty() {
        return Ok(());
    }
    let types = [
        Type::INT8,
        Type::UUID,
        Type::JSONB,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::FLOAT8,
        Type::INT8,
        Type::INT8,
    ];
    let statement = session.prepared(COPY).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(session.client.copy_in(&statement).await?, &types));
    for (instance, violation) in new {
        let (end, by) = violation.end.unzip();
        writer
            .as_mut()
            .write(&[
                &properties[instance.property].id,
                &instance.hash,
                &Json(instance.parameters),
                &violation.run,
                &i64::from(violation.lap),
                &violation.begin,
                &violation.last,
                &violation.count,
                &violation.since,
                &violation.stale,
                &violation.unknown,
                &end,
                &by.map(Text),
                &known_number(violation.worst),
                &violation.verdict,
                &violation.recorded,
            ])
            .await?;
    }
    writer.finish().await?;
    Ok(())
}

/// Writes violations that have rows. Acknowledgements are not touched.
async fn update_violations(session: &Session, known: &[(i64, &Violation)]) -> Result<(), Error> {
    if known.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = known.iter().map(|(id, _)| *id).collect();
    let all = || known.iter().map(|(_, violation)| *violation);
    let last: Vec<i64> = all().map(|violation| violation.last).collect();
    let counts: Vec<i64> = all().map(|violation| violation.count).collect();
    let since: Vec<Option<i64>> = all().map(|violation| violation.since).collect();
    let stale: Vec<Option<i64>> = all().map(|violation| violation.stale).collect();
    let unknown: Vec<i64> = all().map(|violation| violation.unknown).collect();
    let (ends, by): (Vec<Option<i64>>, Vec<Option<&str>>) =
        all().map(|violation| violation.end.unzip()).unzip();
    let worst: Vec<Option<f64>> = all().map(|violation| known_number(violation.worst)).collect();
    let sql = "UPDATE violations v SET last = u.last, count = u.count, since = u.since, stale = u.stale, \
               unknown = u.unknown, \"end\" = u.ends, ended_by = u.ended_by, worst = u.worst \
               FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
               $7::bigint[], $8::text[], $9::double precision[]) \
               AS u(id, last, count, since, stale, unknown, ends, ended_by, worst) WHERE v.id = u.id";
    session.execute(sql, &[&ids, &last, &counts, &since, &stale, &unknown, &ends, &by, &worst]).await?;
    Ok(())
}

async fn write_states<'i>(
    session: &Session,
    changed: impl Iterator<Item = &'i Instance<'i>>,
    properties: &[Property],
) -> Result<(), Error> {
    let listed: Vec<(&Instance<'_>, Present)> =
        changed.filter_map(|instance| Some((instance, instance.present?))).collect();
    if listed.is_empty() {
        return Ok(());
    }
    let of: Vec<i64> = listed.iter().map(|(instance, _)| properties[instance.property].id).collect();
    let hashes: Vec<Uuid> = listed.iter().map(|(instance, _)| instance.hash).collect();
    let parameters: Vec<Json<'_>> = listed.iter().map(|(instance, _)| Json(instance.parameters)).collect();
    let verdicts: Vec<i16> = listed.iter().map(|(_, present)| number(present.verdict) as i16).collect();
    let since: Vec<i64> = listed.iter().map(|(_, present)| present.since).collect();
    let times: Vec<i64> = listed.iter().map(|(_, present)| present.time).collect();
    let sql = "INSERT INTO states (property, instance, parameters, verdict, since, time) SELECT * FROM \
               unnest($1::bigint[], $2::uuid[], $3::jsonb[], $4::smallint[], $5::bigint[], $6::bigint[]) \
               ON CONFLICT (property, instance) DO UPDATE SET verdict = excluded.verdict, \
               since = excluded.since, time = excluded.time";
    session.execute(sql, &[&of, &hashes, &parameters, &verdicts, &since, &times]).await?;
    Ok(())
}

async fn write_days(session: &Session, days: &Days) -> Result<(), Error> {
    if days.is_empty() {
        return Ok(());
    }
    let properties: Vec<i64> = days.keys().map(|(property, _)| *property).collect();
    let numbers: Vec<i64> = days.keys().map(|(_, day)| *day).collect();
    let column = |of: fn(&Day) -> i64| days.values().map(of).collect::<Vec<i64>>();
    let sql = "INSERT INTO days AS d (property, day, verdicts, violations, recoveries, violated, recovery, longest) \
               SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], \
               $6::bigint[], $7::bigint[], $8::bigint[]) ON CONFLICT (property, day) DO UPDATE SET \
               verdicts = d.verdicts + excluded.verdicts, violations = d.violations + excluded.violations, \
               recoveries = d.recoveries + excluded.recoveries, violated = sum_of(d.violated, excluded.violated), \
               recovery = sum_of(d.recovery, excluded.recovery), longest = greatest(d.longest, excluded.longest)";
    session
        .execute(
            sql,
            &[
                &properties,
                &numbers,
                &column(|day| day.verdicts),
                &column(|day| day.violations),
                &column(|day| day.recoveries),
                &column(|day| day.violated),
                &column(|day| day.recovery),
                &column(|day| day.longest),
            ],
        )
        .await?;
    Ok(())
}

/// Returns a number unless it is none.
fn known_number(number: Option<f64>) -> Option<f64> {
    number.filter(|number| !number.is_nan())
}
