//! Sinks beside networks: the store of verdicts, databases, message brokers and HTTP servers.
//!
//! | module | contents |
//! |---|---|
//! | [`store`] | settings of the store of SQLite |
//! | [`settings`], [`targets`] | settings of the items of `sinks:`; their kinds |
//! | [`feed`] | entries of one run, from the evaluating thread |
//! | [`held`] | silenced violations that may outlast their silence |
//! | [`spooled`] | the queue and the file before a destination |
//! | [`state`] | state and outcome of a destination |
//! | `actions` | actions of operators in a store, for the audit of the run |
//!
//! The feed belongs to the evaluating thread and encodes verdicts without a lock; the thread of each
//! [driver](rondel_sinks::Driver) writes them.

#[cfg(feature = "sqlite")]
mod actions;
mod feed;
mod held;
mod settings;
mod spooled;
mod state;
mod store;
pub mod targets;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rondel_net::adapter::{Publisher, now};
use rondel_runtime::{PropertyInfo, SystemClock};
use rondel_sinks::{
    Begin, DecodeEntryError, Driver, Entry, Feed, PropertyEntry, RunKey, RunKind, Sink, SlowConsumer,
};

use feed::{Branch, Entrance, RecordedDrops, Routes, Shown, file_loss};
use spooled::{Driven, WORDS};
use state::{Kept, is_stuck};
use store::{AtStart, OpenSink, Operators};

#[cfg(feature = "sqlite")]
pub use actions::action_members;
pub use feed::DestinationFeed;
pub use settings::{Filter, MOST_SINKS, SinkSettings};
pub use state::{DestinationHandle, DestinationState, DestinationSummary, Role};
pub use store::{IS_AVAILABLE, StoreSettings, UNAVAILABLE, WAIT, default_series, is_same_file};

use crate::sinks::origin::{host, sha256_text};
use crate::sinks::queue::{Queue, Queued};
use crate::sinks::silenced::Silenced;
use crate::sinks::spool::{Spool, SpoolSettings};
use crate::specification::{Specification, claims};

/// A specification as the runs of a destination name it.
#[derive(Clone, Debug)]
pub struct Described {
    name: String,
    hash: String,
    /// The text of each property.
    texts: Vec<String>,
}

impl Described {
    /// Describes a specification.
    pub fn of(specification: &Specification) -> Described {
        Described {
            name: specification.source.clone(),
            hash: sha256_text(specification.sources.text().as_bytes()),
            texts: claims(specification).into_iter().map(|claim| claim.text).collect(),
        }
    }
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub struct RunDescription<'a> {
    /// Its purpose.
    pub kind: RunKind,
    /// Whether it resumes from a snapshot.
    pub resumes: bool,
    /// The specification.
    pub specification: &'a Described,
    /// The deployment, the recording or the test.
    pub configuration: &'a str,
    /// The hash of the deployment; empty without one.
    pub configuration_hash: &'a str,
    /// The properties of its verdicts.
    pub properties: &'a [PropertyInfo],
}

/// An open destination with its thread.
pub struct Destination {
    /// Name of the series of its runs; empty for series of their own.
    series: String,
    filter: Filter,
    wants_json: bool,
    /// Whether it notifies people.
    notifies: bool,
    /// Time of a failure after which it counts as down.
    wait: Duration,
    handle: DestinationHandle,
    /// The operators of a store.
    operators: Operators,
    /// Losses of the file that the destination knows.
    recorded: RecordedDrops,
    /// Key of the latest run.
    run: Mutex<RunKey>,
    /// `None` once it is closed.
    open: Mutex<Option<Open>>,
}

/// The thread of a destination, and the lock of its series.
struct Open {
    thread: DestinationThread,
    lock: Option<File>,
}

enum DestinationThread {
    /// Entries go to the driver.
    Direct(Driver),
    /// Entries go to the queue before it.
    Spooled { queued: Arc<Queued>, driven: Arc<Driven> },
}

/// Parts of a destination that is opened.
struct Opening<'a> {
    role: Role,
    name: String,
    sink: Box<dyn Sink>,
    operators: Operators,
    series: String,
    wait: Option<Duration>,
    spool: Option<&'a SpoolSettings>,
    filter: Filter,
    lock: Option<File>,
}

impl Destination {
    /// Opens a store whose runs have series of their own, and starts its thread.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub fn store(settings: &StoreSettings) -> Result<Destination, String> {
        Destination::open_store(settings, String::new(), None, AtStart::Refuse)
    }

    fn open_store(
        settings: &StoreSettings,
        series: String,
        lock: Option<File>,
        start: AtStart,
    ) -> Result<Destination, String> {
        let OpenSink { sink, operators } = store::sink(settings, start)?;
        Destination::open(Opening {
            role: Role::Store,
            name: settings.path.display().to_string(),
            sink,
            operators,
            series,
            wait: settings.wait,
            spool: settings.spool.as_ref(),
            filter: Filter::default(),
            lock,
        })
    }

    fn open(opening: Opening<'_>) -> Result<Destination, String> {
        let Opening { role, name, sink, operators, series, wait, spool, filter, lock } = opening;
        let spool = spool.map(|settings| settings.open_of_series(&name, &series)).transpose()?;
        if let Some(spool) = &spool {
            check_encoding(&name, spool)?;
        }
        let options = rondel_sinks::Options {
            slow_consumer: wait.map_or(SlowConsumer::Drop, |limit| SlowConsumer::Block { limit }),
            hands_back: spool.is_some(),
            ..rondel_sinks::Options::default()
        };
        let driver = Driver::start(&name, sink, options, Arc::new(SystemClock))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let (driver_handle, wants_json, notifies) = (driver.handle(), driver.wants_json(), driver.notifies());
        let wait = wait.unwrap_or(Duration::ZERO);
        let (thread, kept) = match spool {
            None => (DestinationThread::Direct(driver), None),
            Some(spool) => {
                let queue = Queue::new(name, WORDS, wait, Some(Arc::clone(&spool)));
                let driven = Arc::new(Driven::new(driver, wait));
                let publisher = Arc::clone(&driven) as Arc<dyn Publisher>;
                let queued = Arc::new(Queued::new(publisher, Arc::clone(&queue)));
                (DestinationThread::Spooled { queued, driven }, Some(Kept { queue, spool }))
            }
        };
        let handle = DestinationHandle { role, handle: driver_handle, kept };
        let open = Mutex::new(Some(Open { thread, lock }));
        let (recorded, run) = Default::default();
        Ok(Destination { series, filter, wants_json, notifies, wait, handle, operators, recorded, run, open })
    }

    fn open_state(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run of this destination alone; `None` once it is closed.
    pub fn begin(&self, run: &RunDescription<'_>) -> Option<DestinationFeed> {
        begin(std::slice::from_ref(self), run)
    }

    /// Begins a run, and returns the route of its entries.
    fn branch(&self, run: &RunDescription<'_>, key: RunKey) -> Option<Branch> {
        let open = self.open_state();
        let texts = run.specification.texts.iter().map(String::as_str).chain(std::iter::repeat(""));
        let properties = run.properties.iter().zip(texts).filter(|(info, _)| self.filter.takes(info));
        let host = host().unwrap_or_default();
        let begin = Begin {
            run: key,
            series: &self.series,
            kind: run.kind,
            resumes: run.resumes,
            begin: now().as_nanos(),
            specification: &run.specification.name,
            specification_hash: &run.specification.hash,
            configuration: run.configuration,
            configuration_hash: run.configuration_hash,
            version: env!("CARGO_PKG_VERSION"),
            host: &host,
            properties: properties.map(|(info, text)| PropertyEntry::new(info, text)).collect(),
        };
        let entrance = match &open.as_ref()?.thread {
            DestinationThread::Direct(driver) => {
                let mut feed = driver.feed();
                feed.begin(begin);
                feed.send();
                Entrance::Direct(feed)
            }
            DestinationThread::Spooled { queued, driven } => {
                let mut feed: Feed = driven.feed()?;
                feed.begin(begin);
                // Entries without room are counted.
                feed.take(|entry| drop(queued.publish(entry)));
                Entrance::Spooled(Arc::clone(queued))
            }
        };
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = key;
        let (handle, recorded, shown) = (self.handle.clone(), self.recorded.clone(), Shown::default());
        Some(Branch { entrance, handle, recorded, dropped_since: None, shown })
    }

    /// Reads its state.
    pub fn handle(&self) -> DestinationHandle {
        self.handle.clone()
    }

    /// Writes everything that waits, and closes the destination. Waits up to `limit`; the rest stays in its file, or is
    /// lost.
    pub fn close(&self, limit: Duration) -> DestinationSummary {
        let open = self.open_state().take();
        let mut is_ended = true;
        if let Some(Open { thread, lock }) = open {
            is_ended = match thread {
                DestinationThread::Direct(driver) => driver.close(limit).is_ended,
                DestinationThread::Spooled { queued, driven } => {
                    // Its entries are safe.
                    let is_down = is_stuck(self.handle.handle.condition(), self.wait);
                    queued.flush(if is_down { Duration::ZERO } else { limit });
                    self.keep_loss();
                    driven.is_ended()
                }
            };
            drop(lock);
        }
        DestinationSummary { state: self.handle.state(), is_ended }
    }

    /// Puts the loss of entries without room into the file, unless the destination knows it: the next run writes it.
    fn keep_loss(&self) {
        let count = self.recorded.missing(self.handle.dropped());
        let Some(Kept { queue, spool }) = self.handle.kept.as_ref().filter(|_| count > 0) else { return };
        let run = *self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let (subject, until, mut entry) = (self.handle.handle.status().name, now(), Vec::new());
        let from = queue.drops().span().map_or(until, |(first, _)| first);
        file_loss(run, &subject, count, from, until).encode(&mut entry);
        if spool.keep_beyond_limit(&entry) {
            self.recorded.add(count);
        }
    }
}

/// Refuses a file whose entries this program cannot read.
fn check_encoding(name: &str, spool: &Spool) -> Result<(), String> {
    let Some(payload) = spool.first() else { return Ok(()) };
    match Entry::decode(&payload) {
        Err(DecodeEntryError::Encoding(encoding)) => Err(format!(
            "{name}: {} has entries in the encoding {encoding} of another release: run that release once more to write \
             them, or remove the file",
            spool.path().display()
        )),
        // Damaged ones are counted later.
        _ => Ok(()),
    }
}

/// Returns the silences in the store among destinations.
fn silenced(destinations: &[Destination]) -> Silenced {
    destinations.first().map(|first| first.operators.silenced.clone()).unwrap_or_default()
}

/// Begins a run of several destinations; `None` if there is none, or one is closed.
fn begin(destinations: &[Destination], run: &RunDescription<'_>) -> Option<DestinationFeed> {
    if destinations.is_empty() {
        return None;
    }
    let key = random_key();
    let branches = destinations.iter().map(|destination| destination.branch(run, key));
    let branches = branches.collect::<Option<Vec<Branch>>>()?;
    let route = |property: &PropertyInfo| {
        let takes = destinations.iter().map(|destination| destination.filter.takes(property));
        takes.enumerate().fold(0, |route, (i, takes)| route | (u64::from(takes) << i))
    };
    let notify = destinations.iter().enumerate().filter(|(_, destination)| destination.notifies);
    let routes = Routes {
        of_properties: run.properties.iter().map(route).collect(),
        notifying: notify.fold(0, |all, (i, _)| all | (1 << i)),
    };
    let wants_json = destinations.iter().any(|destination| destination.wants_json);
    Some(DestinationFeed::new(key, wants_json, branches, routes, silenced(destinations)))
}

/// The destinations of a run: the store first, then the items of `sinks:`.
#[derive(Default)]
pub struct Destinations(Vec<Destination>);

impl Destinations {
    /// Opens the store and the sinks of a deployment, of which `named_by` is the path, and reserves the series of the
    /// store.
    ///
    /// # Errors
    /// The reason why one cannot be used.
    pub fn open(
        store: Option<&StoreSettings>,
        sinks: &[SinkSettings],
        named_by: &Path,
    ) -> Result<Destinations, String> {
        let series = |own: &Option<String>| own.clone().unwrap_or_else(|| store::default_series(named_by));
        let mut all = Vec::new();
        if let Some(settings) = store {
            let series = series(&settings.series);
            let lock = settings.lock(&series)?;
            all.push(Destination::open_store(settings, series, Some(lock), AtStart::Retry)?);
        }
        for settings in sinks {
            let SinkSettings { name, target, wait, spool, filter, .. } = settings;
            all.push(Destination::open(Opening {
                role: Role::Sink,
                name: name.clone(),
                sink: target.sink().map_err(|error| format!("{name}: {error}"))?,
                operators: Operators::default(),
                series: series(&settings.series),
                wait: *wait,
                spool: spool.as_ref(),
                filter: filter.clone(),
                lock: None,
            })?);
        }
        Ok(Destinations(all))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins a run; `None` if there is no destination.
    pub fn begin(&self, run: &RunDescription<'_>) -> Option<DestinationFeed> {
        begin(&self.0, run)
    }

    /// Returns the silences in the store.
    pub fn silenced(&self) -> Silenced {
        silenced(&self.0)
    }

    /// Records no actions of operators: without SQLite there is no store.
    #[cfg(not(feature = "sqlite"))]
    pub fn record_actions(&self, _: &Arc<super::audit::Audit>) {}

    /// Returns a handle of each destination.
    pub fn handles(&self) -> Vec<DestinationHandle> {
        self.0.iter().map(Destination::handle).collect()
    }

    /// Closes all destinations at the same time: see [`Destination::close`].
    pub fn close(&self, limit: Duration) -> Vec<DestinationSummary> {
        let [first, others @ ..] = &self.0[..] else { return Vec::new() };
        thread::scope(|scope| {
            let close = |destination| {
                let thread = thread::Builder::new().name("closing".to_owned());
                thread.spawn_scoped(scope, move || Destination::close(destination, limit)).ok()
            };
            let closing: Vec<_> = others.iter().map(close).collect();
            let mut summaries = vec![first.close(limit)];
            for (destination, thread) in others.iter().zip(closing) {
                // Without a thread it is closed here; after a panic it is closed already.
                let summary = thread.and_then(|thread| thread.join().ok());
                summaries.push(summary.unwrap_or_else(|| destination.close(limit)));
            }
            summaries
        })
    }
}

/// A key that no other run has.
pub fn random_key() -> RunKey {
    // `RandomState` is seeded by the operating system.
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_i64(now().as_nanos());
        hasher.write_u32(std::process::id());
        u128::from(hasher.finish())
    };
    RunKey((half() << 64) | half())
}
