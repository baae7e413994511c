//! Reports a thread that evaluates and does not move.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_runtime::Notice;

use crate::pipeline::{Pipeline, sentence};
use crate::sinks::{Sink, publishers};
use crate::warn;

/// Interval of looking.
const LOOK: Duration = Duration::from_millis(200);
/// How long it must stand to be reported.
const STANDS: Duration = Duration::from_secs(1);
/// Interval of further reports while it stands.
const AGAIN: Duration = Duration::from_secs(10);

/// The number of places in [`Place`].
const PLACES: u64 = 1 << 16;
const EVALUATING: u64 = 0;
const PRINTING: u64 = 1;
const SAVING: u64 = 2;
/// The first of the sinks.
const SINKS: u64 = 3;

/// Where the thread that evaluates is: the number of messages, and the place in the lowest bits. Each note is one relaxed
/// store.
#[derive(Debug, Default)]
pub struct Place(AtomicU64);

impl Place {
    fn set(&self, place: u64) {
        let messages = self.0.load(Ordering::Relaxed) & !(PLACES - 1);
        self.0.store(messages | place, Ordering::Relaxed);
    }

    /// It evaluates after so many messages.
    #[inline]
    pub fn evaluating(&self, messages: u64) {
        self.0.store((messages * PLACES) | EVALUATING, Ordering::Relaxed);
    }

    /// It writes to standard output.
    #[inline]
    pub fn printing(&self) {
        self.set(PRINTING);
    }

    /// It takes a snapshot.
    pub fn saving(&self) {
        self.set(SAVING);
    }

    /// It publishes on the sink with this number.
    #[inline]
    pub fn publishing(&self, sink: u16) {
        self.set((SINKS + u64::from(sink)).min(PLACES - 1));
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Looks at the place of a pipeline, on a thread of its own.
pub struct Watchdog {
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    /// Starts to look. Reports go to standard error and to these sinks; `names` are those of the sinks by number.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(pipeline: Weak<Pipeline>, names: Vec<String>, notices: Vec<Sink>) -> io::Result<Watchdog> {
        let (end, ended) = mpsc::channel::<()>();
        let look = move || {
            let mut standing = Standing::default();
            while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(pipeline) = pipeline.upgrade() else { break };
                let place = pipeline.place();
                let busy = pipeline.is_busy().then(|| place.get());
                let Some((seconds, at, is_over)) = standing.look(busy, Instant::now()) else { continue };
                let notice = Notice::stalled(seconds, &words(at, &names), is_over);
                warn(&sentence(&notice));
                let json = notice.json().to_string();
                for publisher in publishers(notices.iter().cloned()) {
                    // What cannot be published is on standard error.
                    _ = publisher.publish(json.as_bytes());
                    publisher.release();
                }
            }
        };
        let thread = thread::Builder::new().name("watchdog".into()).spawn(look)?;
        Ok(Watchdog { end, thread })
    }

    /// Ends the thread.
    pub fn end(self) {
        drop(self.end);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
    }
}

/// A place in words.
fn words(place: u64, names: &[String]) -> String {
    match place % PLACES {
        EVALUATING => "evaluating messages".to_owned(),
        PRINTING => "writing to standard output".to_owned(),
        SAVING => "taking a snapshot".to_owned(),
        sink => {
            let name = usize::try_from(sink - SINKS).ok().and_then(|sink| names.get(sink));
            format!("publishing on {}", name.map_or("a sink", String::as_str))
        }
    }
}

/// Since when the thread stands at a place.
#[derive(Debug, Default)]
struct Standing {
    at: Option<(u64, Instant)>,
    /// When it was reported last.
    reported: Option<Instant>,
}

impl Standing {
    /// Notes where the thread is, if it is busy. Returns a report that is due: for how many seconds it has stood, where,
    /// and whether it is over.
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

    #[test]
    fn a_thread_that_does_not_move_is_reported_where_it_stands() {
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
        let told =
            standing.look(busy, at(1200)).map(|(seconds, at, over)| (seconds, words(at, &names), over));
        assert_eq!(told, Some((1.0, "publishing on zenoh:b".to_owned(), false)));
        assert_eq!(standing.look(busy, at(1400)), None, "it is not said again soon");
        assert!(standing.look(busy, at(11_300)).is_some());
        place.evaluating(8);
        let told = standing.look(Some(place.get()), at(11_500));
        assert_eq!(told.map(|(seconds, _, over)| (seconds, over)), Some((11.3, true)));
        assert_eq!(standing.look(None, at(13_000)), None);
    }

    #[test]
    fn a_thread_that_moves_is_not_reported() {
        let (mut standing, began) = (Standing::default(), Instant::now());
        let place = Place::default();
        for i in 0..100 {
            place.evaluating(i);
            assert_eq!(standing.look(Some(place.get()), began + Duration::from_millis(200 * i)), None);
        }
    }
}
