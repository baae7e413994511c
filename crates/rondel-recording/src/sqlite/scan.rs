//! Reads the messages of a database in a thread: in the order of their times through the index; without an index, in an
//! order sorted from times and row ids alone; from a damaged database, the rows that its table still has.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use rondel_event::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};

use super::open::Limit;
use crate::recording::RecordingError;

/// Maximum number of messages, and of bytes, after which a batch ends.
const MESSAGES: usize = 512;
const BYTES: usize = 1 << 20;
/// Number of batches that may wait to be taken.
const WAITING: usize = 2;

/// A batch of messages.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) data: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    /// In the last batch: ids of other topics in the database, with the numbers of their messages.
    pub(super) others: Vec<(i64, u64)>,
}

/// A message in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) time: i64,
    pub(super) topic: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Selection of the messages to read.
pub(super) struct Wanted {
    pub(super) path: PathBuf,
    /// Ids of the wanted topics in the database, in order, with their positions.
    pub(super) topics: Vec<(i64, u32)>,
    /// Ids of all topics.
    pub(super) known: HashSet<i64>,
    pub(super) from: i64,
    pub(super) until: i64,
    /// Whether the file is known to end too early.
    pub(super) is_cut: bool,
}

/// Handle of the reading thread.
pub(super) struct Scan {
    batches: Receiver<Result<Batch, RecordingError>>,
    /// Finished batches, whose memory is reused.
    done: Sender<Batch>,
}

impl Scan {
    pub(super) fn start(database: Connection, wanted: Wanted, limit: Arc<Limit>) -> Scan {
        let (send, batches) = sync_channel(WAITING);
        let (done, spare) = channel();
        let (path, refused) = (wanted.path.clone(), send.clone());
        let run = move || {
            Reader {
                wanted,
                limit,
                send,
                spare,
                batch: Batch::default(),
                last: None,
                unusable: Unusable::default(),
                others: HashMap::new(),
            }
            .run(&database);
        };
        if let Err(source) = thread::Builder::new().name("sqlite".to_owned()).spawn(run) {
            // The channel has room for the error.
            let _ = refused.send(Err(RecordingError::Open { path, source }));
        }
        Scan { batches, done }
    }

    /// Returns the next batch in exchange for a finished one; `None` at the end.
    pub(super) fn next(&self, done: Batch) -> Option<Result<Batch, RecordingError>> {
        // A thread that has ended needs no memory.
        let _ = self.done.send(done);
        self.batches.recv().ok()
    }
}

/// Condition that a time is a number: other values are sorted before or after all numbers, so that the index skips
/// them.
const HAS_TIME: &str = "timestamp BETWEEN -9223372036854775808 AND 9223372036854775807";

/// Returns the first and the last time.
pub(super) fn span(database: &Connection) -> Option<(Timestamp, Timestamp)> {
    let one = |order: &str| {
        let query =
            format!("SELECT timestamp FROM messages WHERE {HAS_TIME} ORDER BY timestamp {order} LIMIT 1");
        database.query_row(&query, [], |row| row.get(0)).ok().map(Timestamp::from_nanos)
    };
    Some((one("ASC")?, one("DESC")?))
}

/// State of the reading thread.
struct Reader {
    wanted: Wanted,
    limit: Arc<Limit>,
    send: SyncSender<Result<Batch, RecordingError>>,
    spare: Receiver<Batch>,
    batch: Batch,
    /// Time and row id of the last message.
    last: Option<(i64, i64)>,
    unusable: Unusable,
    /// Number of messages of other topics, by id.
    others: HashMap<i64, u64>,
}

/// Numbers of rows that are no messages, by reason.
#[derive(Default)]
struct Unusable {
    /// The time is no integer.
    time: u64,
    data: u64,
    /// The topic is not in the table of topics.
    topic: u64,
}

impl Unusable {
    /// Returns the numbers and reasons as a sentence; `None` without such rows.
    fn reason(&self) -> Option<String> {
        let reasons = [
            (self.time, "without a time"),
            (self.data, "without data"),
            (self.topic, "of a topic that is not in the table `topics`"),
        ];
        let (count, found) =
            (self.time + self.data + self.topic, reasons.iter().filter(|(count, _)| *count > 0));
        let found: Vec<String> = found.map(|(count, reason)| format!("{count} {reason}")).collect();
        let rows = if count == 1 { "row" } else { "rows" };
        (count > 0)
            .then(|| format!("{count} {rows} of the table `messages` cannot be read: {}", found.join(", ")))
    }
}

/// Reason why reading ends.
enum Stop {
    /// The reader was dropped.
    Unused,
    /// SQLite reported an error.
    Failed(rusqlite::Error),
    /// Rows are repeated, or in the wrong order.
    Circular,
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl Stop {
    fn reason(&self) -> String {
        match self {
            Stop::Failed(error) => error.to_string(),
            Stop::Unused | Stop::Circular => "its pages contradict one another".to_owned(),
        }
    }
}

impl Reader {
    fn run(mut self, database: &Connection) {
        let ended = self.by_time(database);
        let ended = match ended {
            Err(stop @ (Stop::Failed(_) | Stop::Circular)) if !self.is_over() => {
                let reason = format!(
                    "the index of the times cannot be used ({}); the table is read from there on, in the order \
                     in which messages were written",
                    stop.reason()
                );
                self.fault(reason, Vec::new());
                self.by_row(database)
            }
            other => other,
        };
        match ended {
            Ok(()) => {}
            Err(Stop::Unused) => return,
            Err(_) if self.limit.is_stopped.load(Ordering::Relaxed) => return,
            Err(stop) => self.damaged(format!("it cannot be read on ({})", stop.reason())),
        }
        if let Some(reason) = self.unusable.reason() {
            self.damaged(reason);
        }
        self.batch.others = self.others.drain().collect();
        let _ = self.hand_over();
    }

    fn is_over(&self) -> bool {
        self.limit.is_stopped.load(Ordering::Relaxed)
    }

    /// Records that messages may be missing.
    fn damaged(&mut self, reason: String) {
        self.fault(reason, self.wanted.topics.iter().map(|(_, topic)| *topic as usize).collect());
    }

    /// Hands over the messages read so far, and then the fault. If the file is known to end too early, the cut is the
    /// reason.
    fn fault(&mut self, reason: String, topics: Vec<usize>) {
        if self.hand_over().is_err() || self.wanted.is_cut {
            return;
        }
        let _ = self.send.send(Err(RecordingError::Damage {
            path: self.wanted.path.clone(),
            offset: 0,
            reason,
            topics,
        }));
    }

    fn hand_over(&mut self) -> Result<(), Stop> {
        if self.batch.entries.is_empty() && self.batch.others.is_empty() {
            return Ok(());
        }
        let mut next = self.spare.try_recv().unwrap_or_default();
        next.entries.clear();
        next.data.clear();
        next.others.clear();
        let batch = std::mem::replace(&mut self.batch, next);
        self.send.send(Ok(batch)).map_err(|_| Stop::Unused)
    }

    /// Returns the condition for the wanted topics.
    fn is_wanted(&self) -> String {
        let numbers: Vec<String> = self.wanted.topics.iter().map(|(number, _)| number.to_string()).collect();
        format!("topic_id IN ({})", numbers.join(","))
    }

    /// Adds a message; `columns` are those of its topic and its data.
    fn add(&mut self, row: &rusqlite::Row<'_>, time: i64, columns: (usize, usize)) -> Result<(), Stop> {
        let ValueRef::Integer(number) = row.get_ref(columns.0)? else {
            self.unusable.topic += 1;
            return Ok(());
        };
        let Ok(at) = self.wanted.topics.binary_search_by_key(&number, |(number, _)| *number) else {
            match self.wanted.known.contains(&number) {
                true => *self.others.entry(number).or_default() += 1,
                false => self.unusable.topic += 1,
            }
            return Ok(());
        };
        let (ValueRef::Blob(data) | ValueRef::Text(data)) = row.get_ref(columns.1)? else {
            self.unusable.data += 1;
            return Ok(());
        };
        let start = self.batch.data.len();
        self.batch.data.extend_from_slice(data);
        let (topic, end) = (self.wanted.topics[at].1, self.batch.data.len());
        self.batch.entries.push(Entry { time, topic, start, end });
        if self.batch.entries.len() >= MESSAGES || end >= BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Reads in the order of times. Rows of other topics are skipped here and not by SQLite, so that cycles of pages
    /// are detected.
    fn by_time(&mut self, database: &Connection) -> Result<(), Stop> {
        let span = [self.wanted.from, self.wanted.until];
        let wanted = self.is_wanted();
        let all = format!(
            "SELECT timestamp, rowid, topic_id, CASE WHEN {wanted} THEN data END FROM messages \
             WHERE timestamp BETWEEN ?1 AND ?2 ORDER BY timestamp, rowid"
        );
        let mut plan = database.prepare(&format!("EXPLAIN QUERY PLAN {all}"))?;
        let mut steps = plan.query(span)?;
        let mut is_sorted = false;
        while let Some(step) = steps.next()? {
            is_sorted |= super::text(step, 3)?.contains("TEMP B-TREE");
        }
        if is_sorted {
            self.sorted(database, &wanted)?;
            return self.without_time(database);
        }
        let mut statement = database.prepare(&all)?;
        let mut rows = statement.query(span)?;
        while let Some(row) = rows.next()? {
            let (ValueRef::Integer(time), ValueRef::Integer(number)) = (row.get_ref(0)?, row.get_ref(1)?)
            else {
                self.unusable.time += 1;
                continue;
            };
            if self.last.is_some_and(|last| last >= (time, number)) {
                return Err(Stop::Circular);
            }
            self.add(row, time, (2, 3))?;
            self.last = Some((time, number));
        }
        self.without_time(database)
    }

    /// Counts the messages without a time, of the wanted topics and of unknown ones.
    fn without_time(&mut self, database: &Connection) -> Result<(), Stop> {
        let query = "SELECT topic_id FROM messages WHERE timestamp IS NULL OR timestamp >= ''";
        let mut statement = database.prepare(query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.unusable.time += u64::from(self.concerns(row.get_ref(0)?));
        }
        Ok(())
    }

    /// Whether a topic is wanted, or unknown.
    fn concerns(&self, topic: ValueRef<'_>) -> bool {
        let ValueRef::Integer(number) = topic else { return true };
        let is_wanted = self.wanted.topics.binary_search_by_key(&number, |(number, _)| *number).is_ok();
        is_wanted || !self.wanted.known.contains(&number)
    }

    /// Reads in the order of times without an index: SQLite sorts only the times, not the messages.
    fn sorted(&mut self, database: &Connection, wanted: &str) -> Result<(), Stop> {
        let mut keys = database.prepare(&format!(
            "SELECT timestamp, rowid FROM messages WHERE timestamp BETWEEN ?1 AND ?2 AND ({wanted} OR topic_id IS \
             NULL OR topic_id NOT IN (SELECT id FROM topics WHERE id IS NOT NULL)) ORDER BY 1, 2"
        ))?;
        let mut one: Statement<'_> =
            database.prepare("SELECT topic_id, data FROM messages WHERE rowid = ?1")?;
        let mut rows = keys.query([self.wanted.from, self.wanted.until])?;
        while let Some(row) = rows.next()? {
            let (ValueRef::Integer(time), ValueRef::Integer(number)) = (row.get_ref(0)?, row.get_ref(1)?)
            else {
                self.unusable.time += 1;
                continue;
            };
            if self.last.is_some_and(|last| last >= (time, number)) {
                return Err(Stop::Circular);
            }
            let mut found = one.query([number])?;
            if let Some(found) = found.next()? {
                self.add(found, time, (0, 1))?;
            }
            self.last = Some((time, number));
        }
        Ok(())
    }

    /// Reads the table in the order of its rows, after the last message read. Skips rows that cannot be read.
    fn by_row(&mut self, database: &Connection) -> Result<(), Stop> {
        let after = self.last.unwrap_or((i64::MIN, i64::MIN));
        let is_wanted = self.is_wanted();
        let mut statement = database.prepare(&format!(
            "SELECT timestamp, rowid, topic_id, CASE WHEN {is_wanted} AND (timestamp, rowid) > (?2, ?3) THEN data \
             END FROM messages NOT INDEXED WHERE rowid >= ?1 ORDER BY rowid"
        ))?;
        let (mut first, mut gap) = (i64::MIN, 1_i64);
        let mut last = None;
        loop {
            let read = self.rows(&mut statement, first, after, &mut last);
            let Err(stop) = read else { return Ok(()) };
            let is_gone = matches!(stop, Stop::Unused | Stop::Circular) || self.is_over();
            let Some(row) = last.filter(|_| !is_gone && gap < i64::MAX / 4) else { return Err(stop) };
            if first <= row {
                // Messages were read since the last gap.
                self.damaged(format!("messages after row {row} cannot be read ({})", stop.reason()));
                gap = 1;
            }
            gap *= 2;
            first = row.saturating_add(gap);
        }
    }

    /// Reads rows from one on, and records the last one.
    fn rows(
        &mut self,
        statement: &mut Statement<'_>,
        first: i64,
        after: (i64, i64),
        last: &mut Option<i64>,
    ) -> Result<(), Stop> {
        let mut rows = statement.query([first, after.0, after.1])?;
        while let Some(row) = rows.next()? {
            let ValueRef::Integer(number) = row.get_ref(1)? else { continue };
            if last.is_some_and(|last| last >= number) {
                return Err(Stop::Circular);
            }
            *last = Some(number);
            let ValueRef::Integer(time) = row.get_ref(0)? else {
                self.unusable.time += u64::from(self.concerns(row.get_ref(2)?));
                continue;
            };
            if (time, number) > after && (self.wanted.from..=self.wanted.until).contains(&time) {
                self.add(row, time, (2, 3))?;
            }
        }
        Ok(())
    }
}
