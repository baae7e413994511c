//! Rows of verdicts and of their properties.

use std::collections::{HashMap, HashSet};
use std::pin::pin;

use tokio_postgres::Error;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::runs::Run;
use super::session::Session;
use super::values::{Json, Text, Uuid};
use crate::entry::VerdictEntry;
use crate::tables::{number, parameters};

/// A verdict on its way into the tables.
pub(super) struct Row<'e> {
    pub(super) verdict: &'e VerdictEntry<'e>,
    /// Place of its run.
    pub(super) run: usize,
    /// Place of its property.
    pub(super) property: usize,
    /// Whether a run before has stored it at another time.
    pub(super) is_earlier: bool,
    /// Its number in the table; `None` if it was there before.
    pub(super) seq: Option<i64>,
}

/// A property of a series.
pub(super) struct Property {
    pub(super) id: i64,
    /// Rows in the table of present verdicts, and their number in the table of properties.
    pub(super) listed: i64,
    pub(super) stored: i64,
}

/// The properties of a batch.
#[derive(Default)]
pub(super) struct Properties<'e> {
    pub(super) all: Vec<Property>,
    wanted: Vec<(i64, &'e str)>,
    places: HashMap<(i64, &'e str), usize>,
}

impl<'e> Properties<'e> {
    /// Returns the place that a property of a series will have.
    pub(super) fn want(&mut self, series: i64, name: &'e str) -> usize {
        *self.places.entry((series, name)).or_insert_with(|| {
            self.wanted.push((series, name));
            self.wanted.len() - 1
        })
    }

    /// Finds the properties. Those that the begin of a run has not named, as it was lost, are added.
    pub(super) async fn find(&mut self, session: &Session) -> Result<(), Error> {
        self.all = self.select(session).await?;
        if self.all.len() < self.wanted.len() {
            let sql = "INSERT INTO properties (series, name) SELECT * FROM unnest($1::bigint[], $2::text[]) \
                       ON CONFLICT DO NOTHING";
            let (series, names) = self.columns();
            session.execute(sql, &[&series, &names]).await?;
            self.all = self.select(session).await?;
        }
        Ok(())
    }

    fn columns(&self) -> (Vec<i64>, Vec<Text<'e>>) {
        self.wanted.iter().map(|(series, name)| (*series, Text(name))).unzip()
    }

    async fn select(&self, session: &Session) -> Result<Vec<Property>, Error> {
        let sql = "SELECT p.id, p.instances FROM unnest($1::bigint[], $2::text[]) \
                   WITH ORDINALITY AS w(series, name, n) \
                   JOIN properties p ON p.series = w.series AND p.name = w.name ORDER BY w.n";
        let (series, names) = self.columns();
        let rows = session.query(sql, &[&series, &names]).await?;
        let property = |row: &tokio_postgres::Row| {
            let listed = row.try_get(1)?;
            Ok(Property { id: row.try_get(0)?, listed, stored: listed })
        };
        rows.iter().map(property).collect()
    }

    /// Writes the numbers of listed instances.
    pub(super) async fn flush(&mut self, session: &Session) -> Result<(), Error> {
        let changed = || self.all.iter().filter(|property| property.listed != property.stored);
        let ids: Vec<i64> = changed().map(|property| property.id).collect();
        let listed: Vec<i64> = changed().map(|property| property.listed).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let sql = "UPDATE properties p SET instances = u.listed \
                   FROM unnest($1::bigint[], $2::bigint[]) AS u(id, listed) WHERE p.id = u.id";
        session.execute(sql, &[&ids, &listed]).await?;
        for property in &mut self.all {
            property.stored = property.listed;
        }
        Ok(())
    }
}

/// Statements that receive rows: into the table itself, and on their way into it.
const COPIES: [&str; 2] = [
    "COPY verdicts (seq, id, run, property, time, about, reported, step, robustness, latency, lap, verdict, is_after, \
     parameters, quantified, explanation, missing, because_of) FROM STDIN BINARY",
    "COPY staging (seq, id, run, property, time, about, reported, step, robustness, latency, lap, verdict, is_after, \
     parameters, quantified, explanation, missing, because_of) FROM STDIN BINARY",
];

/// Stores verdicts, and sets the numbers of those that were not there. `repeats` notes whether some were: the next ones
/// then take the longer way at once.
pub(super) async fn insert(
    session: &Session,
    rows: &mut [Row<'_>],
    runs: &[Run],
    properties: &[Property],
    repeats: &mut bool,
) -> Result<(), Error> {
    let count = rows.iter().filter(|row| !row.is_earlier).count();
    if count == 0 {
        return Ok(());
    }
    let sql = "SELECT nextval('verdicts_seq') FROM generate_series(1, $1::bigint)";
    let numbers = session.query(sql, &[&(count as i64)]).await?;
    let mut numbers = numbers.iter().map(|row| row.try_get::<_, i64>(0));
    for row in rows.iter_mut().filter(|row| !row.is_earlier) {
        row.seq = numbers.next().transpose()?;
    }
    let [direct, staged] = COPIES;
    if !*repeats {
        session.client.batch_execute("SAVEPOINT direct").await?;
        match copy(session, direct, rows, runs, properties).await {
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                session.client.batch_execute("ROLLBACK TO direct").await?;
            }
            result => return result,
        }
    }
    copy(session, staged, rows, runs, properties).await?;
    // Several parts of a batch share the table.
    let first = rows.iter().find_map(|row| row.seq).unwrap_or_default();
    let sql = "INSERT INTO verdicts SELECT * FROM staging WHERE seq >= $1 ORDER BY seq \
               ON CONFLICT (time, id, property) DO NOTHING RETURNING seq";
    let new = session.query(sql, &[&first]).await?;
    *repeats = new.len() < count;
    if *repeats {
        let new = new.iter().map(|row| row.try_get(0)).collect::<Result<HashSet<i64>, Error>>()?;
        for row in rows {
            row.seq = row.seq.filter(|seq| new.contains(seq));
        }
    }
    Ok(())
}

/// Sends the rows that have numbers.
async fn copy(
    session: &Session,
    statement: &'static str,
    rows: &[Row<'_>],
    runs: &[Run],
    properties: &[Property],
) -> Result<(), Error> {
    let types = [
        Type::INT8,
        Type::UUID,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::FLOAT8,
        Type::INT8,
        Type::INT8,
        Type::INT2,
        Type::BOOL,
        Type::JSONB,
        Type::JSONB,
        Type::JSONB,
        Type::TEXT,
        Type::TEXT,
    ];
    let statement = session.prepared(statement).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(session.client.copy_in(&statement).await?, &types));
    for row in rows {
        let Row { verdict, run, property, seq: Some(seq), .. } = row else { continue };
        writer
            .as_mut()
            .write(&[
                seq,
                &verdict.id.map(Uuid),
                &runs[*run].id,
                &properties[*property].id,
                &verdict.time,
                &verdict.about,
                &verdict.reported,
                &verdict.step.map(|step| i64::try_from(step).unwrap_or(i64::MAX)),
                &verdict.robustness.filter(|robustness| !robustness.is_nan()),
                &verdict.latency,
                &i64::from(verdict.lap),
                &(number(verdict.verdict) as i16),
                &verdict.is_after,
                &Json(parameters(verdict)),
                &present(verdict.values).map(Json),
                &present(verdict.explanation).map(Json),
                &present(verdict.missing).map(Text),
                &present(verdict.because_of).map(Text),
            ])
            .await?;
    }
    writer.finish().await?;
    Ok(())
}

fn present(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
