//! Reports a stalled evaluating thread.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_runtime::Notice;

use crate::live::pipeline::{Pipeline, sentence};
use crate::sinks::place::words;
use crate::sinks::{Sink, publishers};
use crate::warn;

/// Interval of looking.
const LOOK: Duration = Duration::from_millis(200);
/// Minimum duration of a stall that is reported.
const STANDS: Duration = Duration::from_secs(1);
/// Interval of further reports while the stall lasts.
const AGAIN: Duration = Duration::from_secs(10);

/// The stall that lasts, if one does: its duration, and the place of the thread in words.
#[derive(Clone, Debug, Default)]
pub struct Stall(Arc<Mutex<Option<(Duration, String)>>>);

impl Stall {
    /// The stall that lasts at present.
    pub fn get(&self) -> Option<(Duration, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the stall.
    pub(super) fn set(&self, stall: Option<(Duration, String)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stall;
    }
}

/// The names of the sinks by number. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    /// Creates the names of sinks.
    pub fn of(names: Vec<String>) -> Names {
        Names(Arc::new(Mutex::new(names)))
    }

    /// Replaces the names.
    pub fn set(&self, names: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Looks at the place of a pipeline, on a thread of its own.
pub struct Watchdog {
    stall: Stall,
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    /// Starts the thread. Reports go to standard error and to these sinks; `names` are the names of the sinks by number.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(pipeline: Weak<Pipeline>, names: Names, notices: Vec<Sink>) -> io::Result<Watchdog> {
        let (end, ended) = mpsc::channel::<()>();
        let stall = Stall::default();
        let shown = stall.clone();
        let look = move || {
            let mut standing = Standing::default();
            while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(pipeline) = pipeline.upgrade() else { break };
                let place = pipeline.place();
                let busy = pipeline.is_busy().then(|| place.get());
                let report = standing.look(busy, Instant::now());
                let stands = standing.stall(Instant::now());
                shown.set(stands.map(|(lasted, at)| (lasted, words(at, &names.get()))));
                let Some((seconds, at, is_over)) = report else { continue };
                let notice = Notice::stalled(seconds, &words(at, &names.get()), is_over);
                warn(&sentence(&notice));
                let json = notice.json().to_string();
                for publisher in publishers(notices.iter().cloned()) {
                    // A report that cannot be published is on standard error.
                    _ = publisher.publish(json.as_bytes());
                    publisher.release();
                }
            }
        };
        let thread = thread::Builder::new().name("watchdog".into()).spawn(look)?;
        Ok(Watchdog { stall, end, thread })
    }

    /// The stall that lasts at present, which the thread updates.
    pub fn stall(&self) -> Stall {
        self.stall.clone()
    }

    /// Ends the thread.
    pub fn end(self) {
        drop(self.end);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
    }
}

/// Detection of stalls: the place of the thread, and the time since when it is there.
#[derive(Debug, Default)]
struct Standing {
    at: Option<(u64, Instant)>,
    /// Time of the last report.
    reported: Option<Instant>,
}

impl Standing {
    /// The stall that lasts: its duration and the place. Shorter ones than those that are reported are none.
    fn stall(&self, now: Instant) -> Option<(Duration, u64)> {
        let (at, since) = self.at?;
        let lasted = now.duration_since(since);
        (lasted >= STANDS).then_some((lasted, at))
    }

    /// Takes the place of the thread, if it is busy. Returns a report that is due: the duration of the stall in seconds,
    /// the place, and whether the stall is over.
    fn look(&mut self, busy: Option<u64>, now: Instant) -> Option<(f64, u64, bool)> {
        let lasted = |since: Instant| now.duration_since(since);
        match (self.at, busy) {
            (Some((at, since)), Some(place)) if at == place => {
                let is_due = self.reported.is_none_or(|reported| lasted(reported) >= AGAIN);
                if lasted(since) < STANDS || !is_due {
                    return None;
                }
                self.reported = Some(now);
                Some((lasted(since).as_secs_f64(), at, false))
            }
            (was, _) => {
                self.at = busy.map(|place| (place, now));
                let was_reported = self.reported.take().is_some();
                was.filter(|_| was_reported).map(|(at, since)| (lasted(since).as_secs_f64(), at, true))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::place::Place;

    #[test]
    fn stalled_thread_is_reported_with_its_place() {
        let (mut standing, began) = (Standing::default(), Instant::now());
        let at = |millis: u64| began + Duration::from_millis(millis);
        let place = Place::default();
        place.evaluating(7);
        place.publishing(1);
        let busy = Some(place.get());
        assert_eq!(standing.look(None, at(0)), None);
        assert_eq!(standing.look(busy, at(200)), None);
        assert_eq!(standing.look(busy, at(1100)), None);
        let names = ["mqtt:a".to_owned(), "zenoh:b".to_owned()];
        let report =
            standing.look(busy, at(1200)).map(|(seconds, at, over)| (seconds, words(at, &names), over));
        assert_eq!(report, Some((1.0, "publishing on zenoh:b".to_owned(), false)));
        assert_eq!(standing.look(busy, at(1400)), None, "it is not said again soon");
        assert_eq!(standing.stall(at(1400)), Some((Duration::from_millis(1200), place.get())));
        assert!(standing.look(busy, at(11_300)).is_some());
        place.evaluating(8);
        let report = standing.look(Some(place.get()), at(11_500));
        assert_eq!(report.map(|(seconds, _, over)| (seconds, over)), Some((11.3, true)));
        assert_eq!(standing.look(None, at(13_000)), None);
        assert_eq!(standing.stall(at(15_000)), None);
    }

    #[test]
    fn moving_thread_is_not_reported() {
        let (mut standing, began) = (Standing::default(), Instant::now());
        let place = Place::default();
        for i in 0..100 {
            place.evaluating(i);
            assert_eq!(standing.look(Some(place.get()), began + Duration::from_millis(200 * i)), None);
        }
    }
}
