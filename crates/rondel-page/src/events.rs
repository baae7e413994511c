//! Server-sent events: changes of verdicts and of the state of the run.
//!
//! One task reads the store while a viewer watches, and all viewers share what it has read. A viewer has no queue: it
//! holds its place in the store, and reads on when its connection accepts more. A place is the number of the last verdict
//! of an event, and the id of that event.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::{Problem, seconds};
use crate::guard::Viewing;
use crate::page::{Page, lock};
use crate::request::Request;
use crate::store::Change;

/// Minimum time between two events with changes.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Minimum time between two states, in nanoseconds.
const STATES: i64 = 1_000_000_000;
/// Time after which a comment keeps a connection open.
const QUIET: Duration = Duration::from_secs(5);
/// Maximum number of changes of an event.
const CHANGES: usize = 500;
/// Events kept for viewers that are behind; others read the store.
const KEPT: usize = 64;

/// Events that viewers share.
#[derive(Debug)]
pub(crate) struct Hub {
    progress: watch::Sender<Progress>,
    reading: Mutex<Reading>,
}

/// Progress of the store and of the run, for viewers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// The last place in the store.
    last: i64,
    /// The store: places of another one mean nothing.
    store: String,
    /// Number of times that viewers had to load everything again.
    resets: u64,
    /// The state, with a number that differs if it does.
    state: (u64, Arc<str>),
    has_ended: bool,
}

/// Events that were read.
#[derive(Debug, Default)]
struct Reading {
    kept: VecDeque<Event>,
    is_reading: bool,
    /// The state without its time, and the time of day of the last one.
    state: Value,
    stated: i64,
}

/// Changes as an event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    /// The place that it follows.
    after: i64,
    /// Its own place.
    last: i64,
    text: Arc<str>,
}

impl Default for Hub {
    fn default() -> Hub {
        Hub { progress: watch::Sender::new(Progress::default()), reading: Mutex::default() }
    }
}

/// An event in the form of the stream.
fn event(name: &str, id: &str, data: &Value) -> String {
    // JSON has no line breaks.
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}

impl Hub {
    /// Makes all viewers load everything again.
    pub(crate) fn reset(&self) {
        self.progress.send_modify(|progress| progress.resets += 1);
    }

    /// Ends the events of all viewers.
    pub(crate) fn end(&self) {
        self.progress.send_modify(|progress| progress.has_ended = true);
    }
}

impl Page {
    /// Reads new verdicts and the state, if a viewer watches. Blocks while the store is read.
    pub(crate) fn look(&self, now: i64) {
        if !self.is_watched(now) {
            return;
        }
        if let Some(live) = self.live() {
            let mut samples = lock(&self.samples);
            if samples.is_wanted()
                && let Ok(base) = self.base(now)
            {
                samples.sample(|name| base.described.property(name), &*live, now);
            }
            drop(samples);
            // For rates.
            self.figures(now);
        }
        let mut reading = lock(&self.hub.reading);
        if self.guard.viewers() == 0 {
            *reading = Reading::default();
            return;
        }
        // Errors are temporary: what cannot be read now is read later: viewers see the reason in the state.
        let _ = self.read_changes(&mut reading, now);
        self.read_state(&mut reading, now);
    }

    fn read_changes(&self, reading: &mut Reading, now: i64) -> Result<(), Problem> {
        let known = self.hub.progress.borrow().clone();
        let (store, (_, last)) = self.store.read(|view| Ok((view.identity()?, view.places()?)))?;
        if !reading.is_reading || store != known.store || last < known.last {
            let is_other = !known.store.is_empty() && (store != known.store || last < known.last);
            reading.kept.clear();
            reading.is_reading = true;
            self.hub.progress.send_modify(|progress| {
                (progress.store, progress.last) = (store, last);
                progress.resets += u64::from(is_other);
            });
            return Ok(());
        }
        if last == known.last {
            return Ok(());
        }
        let Some(event) = self.event_after(known.last, &store, now)? else { return Ok(()) };
        let last = event.last;
        reading.kept.push_back(event);
        if reading.kept.len() > KEPT {
            reading.kept.pop_front();
        }
        self.hub.progress.send_modify(|progress| progress.last = last);
        Ok(())
    }

    /// Reads the changes after a place.
    fn event_after(&self, after: i64, store: &str, now: i64) -> Result<Option<Event>, Problem> {
        // The last place first: verdicts that are stored meanwhile are read by the next call at the latest.
        let ((_, end), changes, reached) =
            self.store.read(|view| Ok((view.places()?, view.changes(after, CHANGES)?, view.reached)))?;
        // Verdicts of other series are passed over.
        let is_whole = changes.len() < CHANGES;
        let last = changes.last().map_or(after, |change| change.sequence);
        let last = if is_whole { end.max(last) } else { last };
        if last <= after {
            return Ok(None);
        }
        let changes: Vec<Value> = changes.into_iter().map(|Change { json, .. }| json).collect();
        let data = json!({
            "now": seconds(now), "reached": reached.map(seconds), "changes": changes, "has_more": !is_whole,
        });
        Ok(Some(Event { after, last, text: event("changes", &format!("{store}-{last}"), &data).into() }))
    }

    fn read_state(&self, reading: &mut Reading, now: i64) {
        if now.saturating_sub(reading.stated).saturating_abs() < STATES {
            return;
        }
        reading.stated = now;
        let Ok(state) = self.state(now) else { return };
        let mut compared = state.clone();
        compared["now"] = Value::Null;
        if compared == reading.state {
            return;
        }
        reading.state = compared;
        let data: Arc<str> = state.to_string().into();
        self.hub.progress.send_modify(|progress| progress.state = (progress.state.0 + 1, data));
    }

    /// The event that follows a place.
    fn next_event(&self, after: i64, store: &str, now: i64) -> Result<Option<Event>, Problem> {
        let kept = lock(&self.hub.reading).kept.iter().find(|event| event.after == after).cloned();
        match kept {
            Some(event) => Ok(Some(event)),
            None => self.event_after(after, store, now),
        }
    }

    /// Begins the events of a viewer. `clock` is the time of day in nanoseconds.
    pub(crate) fn events(
        self: &Arc<Page>,
        request: &Request,
        clock: fn() -> i64,
    ) -> Result<impl Stream<Item = Result<String, Infallible>> + Send + use<>, Problem> {
        let viewing = self.guard.view()?;
        self.watch(clock());
        let query = request.query()?;
        let wanted = request.last_event.as_deref().or(query.text("after"));
        let (store, (first, last)) = self.store.read(|view| Ok((view.identity()?, view.places()?)))?;
        let place = wanted.map(|wanted| place(wanted, &store, first, last));
        let progress = self.hub.progress.subscribe();
        let resets = progress.borrow().resets;
        let viewer = Viewer {
            page: Arc::clone(self),
            clock,
            progress,
            store,
            place: place.flatten().unwrap_or(last),
            resets,
            state: 0,
            sent: Instant::now() - INTERVAL,
            step: if place == Some(None) { Step::Reset } else { Step::Hello },
            _viewing: viewing,
        };
        Ok(stream::unfold(viewer, |mut viewer| async move {
            let text = viewer.next().await?;
            Some((Ok(text), viewer))
        }))
    }
}

/// The place of an id; `None` if events after it are not known any more.
fn place(id: &str, store: &str, first: i64, last: i64) -> Option<i64> {
    let (own, place) = id.rsplit_once('-')?;
    let place: i64 = place.parse().ok()?;
    // Retention removes the first ones.
    (own == store && place <= last && place + 1 >= first).then_some(place)
}

/// The next thing that a viewer receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Reset,
    Hello,
    Changes,
    End,
}

/// A viewer.
struct Viewer {
    page: Arc<Page>,
    clock: fn() -> i64,
    progress: watch::Receiver<Progress>,
    store: String,
    /// Its place in the store.
    place: i64,
    resets: u64,
    /// Number of the state that it has.
    state: u64,
    /// When it has received changes.
    sent: Instant,
    step: Step,
    _viewing: Viewing,
}

impl Viewer {
    fn id(&self) -> String {
        format!("{}-{}", self.store, self.place)
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        match self.step {
            Step::End => return None,
            Step::Reset => {
                self.step = Step::Hello;
                return Some(event("reset", &self.id(), &json!({})));
            }
            Step::Hello => {
                self.step = Step::Changes;
                let now = (self.clock)();
                let page = Arc::clone(&self.page);
                let reached =
                    tokio::task::spawn_blocking(move || page.base(now).ok()?.reached).await.ok().flatten();
                let data = json!({"now": seconds(now), "reached": reached.map(seconds)});
                return Some(event("hello", &self.id(), &data));
            }
            Step::Changes => {}
        }
        loop {
            let progress = self.progress.borrow_and_update().clone();
            if progress.has_ended {
                self.step = Step::End;
                return Some(event("end", &self.id(), &json!({})));
            }
            if progress.resets != self.resets {
                (self.resets, self.place) = (progress.resets, progress.last);
                if !progress.store.is_empty() {
                    self.store = progress.store;
                }
                self.step = Step::Hello;
                return Some(event("reset", &self.id(), &json!({})));
            }
            if progress.state.0 != self.state {
                self.state = progress.state.0;
                return Some(format!("event: state\nid: {}\ndata: {}\n\n", self.id(), progress.state.1));
            }
            if self.place < progress.last {
                sleep_until(self.sent + INTERVAL).await;
                if let Some(text) = self.changes().await {
                    return Some(text);
                }
            }
            match timeout(QUIET, self.progress.changed()).await {
                Ok(Ok(())) => {}
                // The page is gone.
                Ok(Err(_)) => return None,
                Err(_) => return Some(":\n\n".to_owned()),
            }
        }
    }

    /// The changes that follow its place; `None` if they cannot be read now.
    async fn changes(&mut self) -> Option<String> {
        self.sent = Instant::now();
        let (page, after, store, now) =
            (Arc::clone(&self.page), self.place, self.store.clone(), (self.clock)());
        let read = tokio::task::spawn_blocking(move || page.next_event(after, &store, now));
        let event = read.await.ok()?.ok()??;
        self.place = event.last;
        Some(event.text.as_ref().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_gone_are_not_found() {
        for (id, expected) in [
            ("0a0b0c0d-7", Some(7)),
            ("0a0b0c0d-10", Some(10)),
            ("0a0b0c0d-4", Some(4)),
            ("0a0b0c0d-3", None),
            ("0a0b0c0d-11", None),
            ("ffffffff-7", None),
            ("", None),
            ("7", None),
            ("0a0b0c0d-x", None),
            ("0a0b0c0d-99999999999999999999", None),
        ] {
            assert_eq!(place(id, "0a0b0c0d", 5, 10), expected, "{id}");
        }
        assert_eq!(place("00000000-0", "00000000", 0, 0), Some(0), "a store without verdicts");
    }

    #[test]
    fn events_are_lines() {
        let text = event("changes", "a-1", &json!({"property": "p\n\ndata: x"}));
        assert_eq!(text, "event: changes\nid: a-1\ndata: {\"property\":\"p\\n\\ndata: x\"}\n\n");
    }
}
