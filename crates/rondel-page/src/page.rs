//! The page: its settings, and the state that answers share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::{Value, json};

use crate::answer::{Problem, seconds};
use crate::describe::Described;
use crate::events::Hub;
use crate::guard::{Access, Guard};
use crate::live::{Figures, Live};
use crate::playground::Checker;
use crate::sampling::{Rates, Samples, StoredSignal};
use crate::store::{RunRow, Store, Summary};

/// Time for which an overview is used again, in nanoseconds.
const FRESH: u64 = 250_000_000;
/// The same for figures: the evaluating thread waits while they are copied.
const FIGURES: u64 = 500_000_000;
/// Time after the last request for which a viewer counts as watching, in nanoseconds.
const WATCHES: u64 = 10_000_000_000;
/// Time without figures from which on the page lags behind, in nanoseconds: a long step of the evaluating thread is no stall.
const STALLS: u64 = 1_000_000_000;

/// Subject of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A run.
    Run,
    /// A store.
    Store,
    /// A checked recording.
    Check,
}

/// Settings of a page.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its subject.
    pub kind: Kind,
    /// Name of the run or the recording; `None` for that of the series.
    pub name: Option<String>,
    /// The store.
    pub store: PathBuf,
    /// Name of the series of runs in the store; `None` for that of the latest run.
    pub series: Option<String>,
    /// Access to it.
    pub access: Access,
    /// The checks of the playground, if there is one.
    pub playground: Option<Arc<dyn Checker>>,
    /// Version of the program.
    pub version: String,
    /// Features of the program.
    pub features: Vec<String>,
    /// The fields of a checked recording over time.
    pub signals: Vec<StoredSignal>,
}

/// A page.
pub struct Page {
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) store: Store,
    pub(crate) hub: Hub,
    /// The specification; `None` for the texts in the store.
    described: RwLock<Option<Arc<Described>>>,
    live: RwLock<Option<Arc<dyn Live>>>,
    base: Mutex<Option<(i64, Arc<Base>)>>,
    figures: Mutex<Option<(i64, Option<Arc<Figures>>)>>,
    stall: Mutex<Stall>,
    pub(crate) rates: Mutex<Rates>,
    pub(crate) samples: Mutex<Samples>,
    /// Time of day of the last request, and whether the run copies messages since.
    watched: Mutex<(i64, bool)>,
    /// Held while the playground checks.
    pub(crate) checking: Mutex<()>,
}

/// Answers of the evaluating thread.
#[derive(Debug, Default)]
struct Stall {
    /// Time of day of the last answer, in nanoseconds.
    answered: Option<i64>,
    /// Time of day since which the verdicts are not known to be present; `None` while it answers.
    since: Option<i64>,
    /// Time of day of the first request without an answer.
    missed: i64,
}

impl Stall {
    /// Notes whether the thread has answered a request.
    fn note(&mut self, has_answered: bool, now: i64) {
        if has_answered {
            *self = Stall { answered: Some(now), ..Stall::default() };
        } else if self.since.is_none() {
            // An older answer says when a viewer looked last, and not when the thread stopped.
            let recent = self.answered.filter(|answered| now.abs_diff(*answered) < WATCHES);
            (self.since, self.missed) = (Some(recent.unwrap_or(now)), now);
        }
    }

    /// Returns since when the page has been lagging behind, if it does.
    fn since(&self, now: i64) -> Option<i64> {
        self.since.filter(|_| now.abs_diff(self.missed) >= STALLS)
    }
}

/// Present states of all properties, which requests of several viewers share.
pub(crate) struct Base {
    pub(crate) described: Arc<Described>,
    pub(crate) summaries: Vec<Summary>,
    pub(crate) reached: Option<i64>,
    pub(crate) name: String,
    pub(crate) run: Option<RunRow>,
    /// Id of the last event before these states.
    pub(crate) event: String,
}

/// Locks a mutex, also after a panic of another thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks whether a store can be read, and has a series.
///
/// # Errors
/// The reason why not.
pub fn check_store(store: &Path, series: Option<&str>) -> Result<(), String> {
    Store::new(store.to_owned(), series.map(str::to_owned)).check()
}

impl Page {
    /// Creates a page.
    pub fn new(settings: Settings) -> Page {
        let (described, live, base, figures) = Default::default();
        let (stall, rates, samples, watched, checking) = Default::default();
        Page {
            guard: Guard::new(settings.access.clone()),
            store: Store::new(settings.store.clone(), settings.series.clone()),
            hub: Hub::default(),
            settings,
            described,
            live,
            base,
            figures,
            stall,
            rates,
            samples,
            watched,
            checking,
        }
    }

    /// Shows a run, or another specification after a reload. Viewers load everything again.
    pub fn show(&self, described: Described, live: Option<Arc<dyn Live>>) {
        *self.described.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(described));
        if let Some(live) = live {
            live.watch(lock(&self.watched).1);
            *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(live);
        }
        *lock(&self.base) = None;
        *lock(&self.figures) = None;
        *lock(&self.stall) = Stall::default();
        self.hub.reset();
    }

    /// Ends the events of all viewers.
    pub fn end(&self) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.hub.end();
    }

    /// The run, if there is one.
    pub(crate) fn live(&self) -> Option<Arc<dyn Live>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The present states of all properties.
    pub(crate) fn base(&self, now: i64) -> Result<Arc<Base>, Problem> {
        let mut slot = lock(&self.base);
        if let Some((at, base)) = &*slot
            && now.abs_diff(*at) < FRESH
        {
            return Ok(Arc::clone(base));
        }
        let known = self.described.read().unwrap_or_else(PoisonError::into_inner).clone();
        let base = self.store.read(|view| {
            // Before the states: later changes are events.
            let (_, last) = view.places()?;
            let event = format!("{}-{last}", view.identity()?);
            let described = match known {
                Some(described) => described,
                None => Arc::new(view.described()?),
            };
            let summaries = view.summaries(&described, now)?;
            let (reached, name, run) = (view.reached, view.name.clone(), view.run()?);
            Ok(Base { described, summaries, reached, name, run, event })
        })?;
        let base = Arc::new(base);
        *slot = Some((now, Arc::clone(&base)));
        Ok(base)
    }

    /// Forgets the present states, after an action of an operator.
    pub(crate) fn renew(&self) {
        *lock(&self.base) = None;
    }

    /// The figures of the run; `None` without a run, and if it does not answer.
    pub(crate) fn figures(&self, now: i64) -> Option<Arc<Figures>> {
        let live = self.live()?;
        let mut slot = lock(&self.figures);
        if let Some((at, figures)) = &*slot
            && now.abs_diff(*at) < FIGURES
        {
            return figures.clone();
        }
        let figures = live.figures().map(Arc::new);
        *slot = Some((now, figures.clone()));
        lock(&self.stall).note(figures.is_some(), now);
        if let Some(figures) = &figures {
            lock(&self.rates).note(figures, now);
        }
        figures
    }

    /// The latest event time.
    pub(crate) fn reached(&self, base: &Base, now: i64) -> Option<i64> {
        base.reached.max(self.figures(now).and_then(|figures| figures.reached))
    }

    /// Notes a request: the run copies messages from now on.
    pub(crate) fn watch(&self, now: i64) {
        let mut watched = lock(&self.watched);
        let (_, was_watched) = *watched;
        *watched = (now, true);
        if !was_watched && let Some(live) = self.live() {
            live.watch(true);
        }
    }

    /// Whether a viewer watches. If none does any more, the run stops to copy messages.
    pub(crate) fn is_watched(&self, now: i64) -> bool {
        let mut watched = lock(&self.watched);
        if !watched.1 {
            return false;
        }
        if self.guard.viewers() > 0 || now.abs_diff(watched.0) < WATCHES {
            return true;
        }
        watched.1 = false;
        if let Some(live) = self.live() {
            live.watch(false);
        }
        false
    }

    /// The state of the run as the API describes it.
    pub(crate) fn state(&self, now: i64) -> Result<Value, Problem> {
        let base = self.base(now)?;
        let (is_live, figures) = (self.live().is_some(), self.figures(now));
        let mut reasons = figures.as_ref().map_or_else(Vec::new, |figures| figures.reasons.clone());
        if is_live && figures.is_none() {
            reasons.push("the evaluating thread does not answer".to_owned());
        }
        // The page of a run itself knows more.
        let stored = base.run.as_ref().filter(|_| self.settings.kind == Kind::Store);
        let silent_since = stored.and_then(|run| run.silent_since(now));
        if silent_since.is_some() {
            let why =
                "the run has not ended and writes nothing into the store any more: it may have been killed";
            reasons.push(why.to_owned());
        }
        let behind_since = match &figures {
            Some(figures) => figures.behind_since,
            None => lock(&self.stall).since(now).filter(|_| is_live).or(silent_since),
        };
        let networks: Vec<Value> = (figures.iter().flat_map(|figures| &figures.networks))
            .map(|network| {
                json!({"name": network.name, "is_connected": network.is_connected, "outages": network.outages})
            })
            .collect();
        let sinks: Vec<Value> = (figures.iter().flat_map(|figures| &figures.sinks))
            .map(|sink| {
                json!({
                    "name": sink.name, "is_connected": sink.is_connected, "waiting": sink.waiting, "lost": sink.lost,
                })
            })
            .collect();
        let run = base.run.as_ref();
        let kind = match (self.settings.kind, run) {
            (Kind::Run, _) => "run",
            (Kind::Check, _) => "check",
            (Kind::Store, _) => "store",
        };
        let of_check = run.filter(|run| run.kind == "check").map(|run| run.configuration.clone());
        let name = self.settings.name.clone().or(of_check).unwrap_or_else(|| base.name.clone());
        Ok(json!({
            "now": seconds(now),
            "kind": kind,
            "name": name,
            "began": run.map(|run| seconds(run.begin)),
            "ended": run.and_then(|run| run.end).map(seconds),
            "reached": self.reached(&base, now).map(seconds),
            "is_ready": reasons.is_empty(),
            "reasons": reasons,
            "behind_since": behind_since.map(seconds),
            "messages": figures.as_ref().map(|figures| figures.messages),
            "networks": networks,
            "sinks": sinks,
            "may_act": self.guard.may_act(),
            "has_playground": self.settings.playground.is_some(),
            "build": {"version": self.settings.version, "features": self.settings.features},
        }))
    }
}

impl Base {
    /// The values of a filter, in order and once each.
    pub(crate) fn values<'b>(&'b self, of: impl Fn(&'b Summary) -> Vec<&'b str>) -> Vec<&'b str> {
        let all: BTreeSet<&str> =
            self.summaries.iter().flat_map(of).filter(|value| !value.is_empty()).collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn stall_begins_with_the_last_answer_if_a_viewer_watched() {
        let mut stall = Stall::default();
        stall.note(false, 5 * S);
        assert_eq!(stall.since(5 * S), None, "a long step");
        assert_eq!(stall.since(6 * S), Some(5 * S), "there was no answer before");
        stall.note(true, 7 * S);
        assert_eq!(stall.since(70 * S), None);
        stall.note(false, 8 * S);
        stall.note(false, 9 * S);
        assert_eq!((stall.since(8 * S), stall.since(9 * S)), (None, Some(7 * S)));
        stall.note(true, 10 * S);
        stall.note(false, 3600 * S);
        assert_eq!(stall.since(3601 * S), Some(3600 * S), "no viewer watched between");
    }
}
