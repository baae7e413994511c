//! Writing batches of entries, in transactions.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hasher;
use std::time::{Duration, Instant};

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::instances::Instances;
use super::runs::{self, Runs};
use super::session::Session;
use super::verdicts::{self, Properties, Row};
use crate::entry::{Begin, Entry, Loss, RunKey};
use crate::sink::Written;
use crate::violation::Stored;

/// Least number of entries of a transaction on a server that is too slow for more.
const LEAST: usize = 64;
/// Largest number of runs whose earlier ids are in memory, and of series that are known.
const KNOWN: usize = 1 << 10;

/// State between batches.
#[derive(Default)]
pub(super) struct Writer {
    /// The begin of the latest run, encoded, for a database that is replaced while the run lasts.
    begin: Option<(RunKey, Vec<u8>)>,
    /// Ids of earlier runs of the series, of runs that resume.
    earlier: HashMap<RunKey, HashSet<u128>>,
    /// Series that were written over this connection.
    series: BTreeSet<i64>,
    /// Whether the last batch had verdicts that were there.
    repeats: bool,
    pieces: Pieces,
}

/// Cuts of batches into transactions: none on a server that is fast enough.
#[derive(Default)]
struct Pieces {
    /// Largest number of entries of a transaction; `None`: all.
    largest: Option<usize>,
    /// Number of entries of the transaction that runs.
    running: usize,
    /// Entries that a call has committed before it failed. The next call begins with the same ones.
    committed: Vec<Committed>,
}

/// An entry that was committed.
struct Committed {
    hash: u64,
    /// Verdicts of its transaction, with the first entry of each.
    written: Written,
}

impl Writer {
    /// Writes entries, all or none: those that a call before has committed are skipped.
    pub(super) async fn write(
        &mut self,
        session: &Session,
        entries: &[Entry<'_>],
        limit: Duration,
    ) -> Result<Written, Error> {
        let deadline = Instant::now() + limit;
        let (skipped, mut written) = self.pieces.skip(entries);
        let mut rest = &entries[skipped..];
        let is_cut = self.pieces.largest.is_some_and(|largest| largest < rest.len());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.pieces.largest.unwrap_or(usize::MAX).min(rest.len()));
            self.pieces.running = piece.len();
            // The server gives up before this process does, so that the connection can be used again.
            let left = deadline.saturating_duration_since(Instant::now()) * 9 / 10;
            let result = self.write_piece(session, piece, left).await;
            if result.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)) {
                self.slow_down();
            }
            self.pieces.running = 0;
            let new = result?;
            written.stored += new.stored;
            written.repeated += new.repeated;
            if is_cut {
                self.pieces.commit(piece, new);
            }
            rest = after;
        }
        let committed = self.pieces.committed.len().min(entries.len());
        self.pieces.committed.drain(..committed);
        self.pieces.largest = self.pieces.largest.map(|largest| 2 * largest).filter(|_| is_cut);
        Ok(written)
    }

    /// Notes that the running transaction did not end in time: the next ones are smaller.
    pub(super) fn slow_down(&mut self) {
        if self.pieces.running > 0 {
            self.pieces.largest = Some((self.pieces.running / 2).max(LEAST));
            self.pieces.running = 0;
        }
    }

    /// Forgets what was read from the database.
    pub(super) fn forget(&mut self) {
        self.earlier.clear();
        self.series.clear();
    }

    /// Returns the series that were written over this connection.
    pub(super) fn series(&self) -> &BTreeSet<i64> {
        &self.series
    }

    async fn write_piece(
        &mut self,
        session: &Session,
        entries: &[Entry<'_>],
        limit: Duration,
    ) -> Result<Written, Error> {
        session.begin(limit).await?;
        let mut written = Written::default();
        // A begin or an end changes what is in the tables: it stands alone.
        let is_alone = |entry: &Entry<'_>| matches!(entry, Entry::Begin(_) | Entry::End(_));
        for part in entries.chunk_by(|a, b| !is_alone(a) && !is_alone(b)) {
            match &part[0] {
                Entry::Begin(begin) => {
                    runs::begin(session, begin).await?;
                    self.earlier.remove(&begin.run);
                }
                Entry::End(end) => {
                    let known = self.begin.take();
                    let result = runs::end(session, end, decoded(&known).as_ref()).await;
                    self.begin = known;
                    result?;
                }
                _ => {
                    let part = self.write_part(session, part).await?;
                    written.stored += part.stored;
                    written.repeated += part.repeated;
                }
            }
        }
        session.client.batch_execute("COMMIT").await?;
        for entry in entries {
            match entry {
                Entry::Begin(_) => {
                    let mut begin = Vec::new();
                    entry.encode(&mut begin);
                    self.begin = Some((entry.run(), begin));
                }
                Entry::End(end) if self.begin.as_ref().is_some_and(|(run, _)| *run == end.run) => {
                    self.begin = None;
                }
                _ => {}
            }
        }
        Ok(written)
    }

    /// Writes entries of which none begins or ends a run.
    async fn write_part(&mut self, session: &Session, part: &[Entry<'_>]) -> Result<Written, Error> {
        let mut runs = Runs::find(session, part, decoded(&self.begin).as_ref()).await?;
        self.know(session, part, &runs).await?;
        let mut properties = Properties::default();
        let mut rows: Vec<Row<'_>> = Vec::new();
        for entry in part {
            let Entry::Verdict(verdict) = entry else { continue };
            let Some(run) = runs.place(verdict.run) else { continue };
            let property = properties.want(runs.all[run].series, verdict.property);
            let earlier = self.earlier.get(&verdict.run);
            let is_earlier = verdict.id.zip(earlier).is_some_and(|(id, earlier)| earlier.contains(&id));
            rows.push(Row { verdict, run, property, is_earlier, seq: None });
        }
        properties.find(session).await?;
        verdicts::insert(session, &mut rows, &runs.all, &properties.all, &mut self.repeats).await?;
        let mut instances = Instances::default();
        for row in rows.iter().filter(|row| row.seq.is_some()) {
            instances.want(row.property, row.verdict);
        }
        instances.read(session, &properties.all).await?;
        let (mut rows, mut losses) = (rows.iter(), Vec::<&Loss<'_>>::new());
        for entry in part {
            match entry {
                Entry::Loss(loss) => losses.push(loss),
                Entry::Reached(reached) => runs.reach(reached),
                Entry::Verdict(_) => {
                    let Some(row) = rows.next() else { continue };
                    apply(session, row, &mut runs, &mut properties, &mut instances).await?;
                }
                Entry::Begin(_) | Entry::End(_) => {}
            }
        }
        instances.flush(session, &properties.all).await?;
        properties.flush(session).await?;
        runs.lose(session, &losses).await?;
        runs.flush(session).await?;
        let written = |count: i64| count.unsigned_abs();
        Ok(Written {
            stored: runs.all.iter().map(|run| written(run.stored)).sum(),
            repeated: runs.all.iter().map(|run| written(run.repeated)).sum(),
        })
    }

    /// Notes the series of runs, and reads the earlier ids of those that resume.
    async fn know(&mut self, session: &Session, part: &[Entry<'_>], runs: &Runs) -> Result<(), Error> {
        if self.series.len() > KNOWN || self.earlier.len() > KNOWN {
            self.forget();
        }
        self.series.extend(runs.all.iter().map(|run| run.series));
        for entry in part {
            let Entry::Verdict(verdict) = entry else { continue };
            let Some(run) = runs.place(verdict.run) else { continue };
            if runs.all[run].resumes && !self.earlier.contains_key(&verdict.run) {
                self.earlier.insert(verdict.run, runs::earlier_ids(session, &runs.all[run]).await?);
            }
        }
        Ok(())
    }
}

/// Applies a verdict to its run and its instance.
async fn apply<'e>(
    session: &Session,
    row: &Row<'e>,
    runs: &mut Runs,
    properties: &mut Properties<'_>,
    instances: &mut Instances<'e>,
) -> Result<(), Error> {
    let run = &mut runs.all[row.run];
    let Some(seq) = row.seq else {
        run.repeated += 1;
        return Ok(());
    };
    let lap = i64::from(row.verdict.lap);
    if lap > run.lap {
        if let Some((latest, _)) = run.latest {
            instances.flush(session, &properties.all).await?;
            runs::end_lap(session, run.series, latest).await?;
            instances.read(session, &properties.all).await?;
        }
        run.lap = lap;
    }
    let property = &mut properties.all[row.property];
    let stored = Stored { property: property.id, run: run.id, seq };
    instances.apply(property, row.property, stored, row.verdict);
    run.stored += 1;
    run.latest = Some((row.verdict.time, row.verdict.reported));
    Ok(())
}

impl Pieces {
    /// Notes a committed transaction, with its verdicts.
    fn commit(&mut self, piece: &[Entry<'_>], written: Written) {
        let first = self.committed.len();
        let entry = |entry| Committed { hash: hash(entry), written: Written::default() };
        self.committed.extend(piece.iter().map(entry));
        if let Some(first) = self.committed.get_mut(first) {
            first.written = written;
        }
    }

    /// Returns the number of the first entries that calls before have committed, and their verdicts.
    fn skip(&mut self, entries: &[Entry<'_>]) -> (usize, Written) {
        let both = self.committed.iter().zip(entries);
        let known = both.take_while(|(committed, entry)| committed.hash == hash(entry));
        let (mut count, mut written) = (0, Written::default());
        for (committed, _) in known {
            count += 1;
            written.stored += committed.written.stored;
            written.repeated += committed.written.repeated;
        }
        if count < entries.len() {
            self.committed.truncate(count);
        }
        (count, written)
    }
}

fn hash(entry: &Entry<'_>) -> u64 {
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    hasher.finish()
}

fn decoded(begin: &Option<(RunKey, Vec<u8>)>) -> Option<Begin<'_>> {
    match Entry::decode(&begin.as_ref()?.1) {
        Ok(Entry::Begin(begin)) => Some(*begin),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Reached;

    #[test]
    fn committed_entries_keep_their_counts() {
        let all: Vec<Entry<'_>> =
            (0..10).map(|time| Entry::Reached(Reached { time, ..Reached::default() })).collect();
        let mut pieces = Pieces::default();
        assert_eq!(pieces.skip(&all), (0, Written::default()));
        pieces.commit(&all[..4], Written { stored: 3, repeated: 1 });
        pieces.commit(&all[4..8], Written { stored: 4, repeated: 0 });
        assert_eq!(pieces.skip(&all), (8, Written { stored: 7, repeated: 1 }));
        assert_eq!(pieces.skip(&all), (8, Written { stored: 7, repeated: 1 }), "after a further failure");
        assert_eq!(pieces.skip(&all[1..]), (0, Written::default()), "other entries");
    }
}
