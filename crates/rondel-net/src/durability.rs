//! Snapshots of the state of a receiver, written at intervals or before messages are acknowledged.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::adapter::Publisher;
use crate::networks::Networks;

/// Time limit for the acknowledgement of published messages; the snapshot is then retried.
const SETTLE: Duration = Duration::from_millis(1500);
/// Pause after a snapshot that could not be written.
const RETRY: Duration = Duration::from_secs(1);
/// Time limit for a broker to read the last acknowledgements.
const RELEASE: Duration = Duration::from_millis(500);

/// State that is written in snapshots.
pub trait State: Send + Sync + 'static {
    /// Returns a snapshot with `marks`, of which the next run gets those of the last snapshot.
    fn snapshot(&self, marks: Vec<u8>) -> Vec<u8>;

    /// Returns the number of messages received so far.
    fn received(&self) -> u64;

    /// Makes a snapshot durable.
    ///
    /// # Errors
    /// The reason of the failure.
    fn save(&self, snapshot: &[u8]) -> io::Result<()>;

    /// Reports the first failure after a saved snapshot, or with `None` that saving works again.
    fn report(&self, failure: Option<&io::Error>);
}

impl<S: State + ?Sized> State for Box<S> {
    fn snapshot(&self, marks: Vec<u8>) -> Vec<u8> {
        (**self).snapshot(marks)
    }

    fn received(&self) -> u64 {
        (**self).received()
    }

    fn save(&self, snapshot: &[u8]) -> io::Result<()> {
        (**self).save(snapshot)
    }

    fn report(&self, failure: Option<&io::Error>) {
        (**self).report(failure);
    }
}

/// Schedule of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Interval between two snapshots.
    pub every: Duration,
    /// Whether messages are acknowledged only once a snapshot contains them.
    pub exactly: bool,
}

/// Writer of snapshots, on its own thread.
pub struct Snapshots<S> {
    writer: Arc<Writer<S>>,
    /// Ends the thread when it is dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

struct Writer<S> {
    schedule: Schedule,
    state: S,
    networks: Arc<Networks>,
    /// Publishers whose messages must be accepted before a snapshot is saved.
    publishers: Vec<Arc<dyn Publisher>>,
}

impl<S: State> Snapshots<S> {
    /// Starts to write snapshots. `publishers` publish messages that must not be missing after a crash.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        schedule: Schedule,
        state: S,
        networks: Arc<Networks>,
        publishers: Vec<Arc<dyn Publisher>>,
    ) -> io::Result<Snapshots<S>> {
        let (end, ended) = mpsc::channel::<()>();
        let publishers = if schedule.exactly { publishers } else { Vec::new() };
        let writer = Arc::new(Writer { schedule, state, networks, publishers });
        let writing = Arc::clone(&writer);
        let thread = thread::Builder::new().name("snapshots".into());
        Ok(Snapshots { thread: thread.spawn(move || writing.run(&ended))?, end, writer })
    }

    /// Writes the last snapshot.
    ///
    /// # Errors
    /// The reason of the failure; messages received since the previous snapshot are then not acknowledged.
    pub fn end(self) -> io::Result<()> {
        drop(self.end);
        // After a slow snapshot, the wait for the next one is longer than the end of a run may take.
        self.writer.networks.wake_held();
        // A panic of the thread has been reported.
        let _ = self.thread.join();
        self.writer.write(RELEASE)
    }
}

impl<S: State> Writer<S> {
    fn run(&self, ended: &mpsc::Receiver<()>) {
        let Schedule { every, exactly } = self.schedule;
        let (mut failed, mut seen, mut pause) = (false, None, every);
        let wait = |pause| ended.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout);
        while wait(if exactly && !failed { Duration::ZERO } else { pause }) {
            if exactly {
                let held = failed || self.networks.wait_held(pause);
                let received = Some(self.state.received());
                if !held && received == seen {
                    continue;
                }
                seen = received;
            }
            let began = Instant::now();
            let written = self.write(Duration::ZERO);
            // Snapshots of a large state must not take all the time.
            pause = if written.is_ok() { (began.elapsed() * 4).max(every) } else { RETRY.min(every * 10) };
            if written.is_err() != failed {
                self.state.report(written.as_ref().err());
            }
            failed = written.is_err();
        }
    }

    /// Writes a snapshot, and acknowledges the messages in it.
    fn write(&self, limit: Duration) -> io::Result<()> {
        let (snapshot, acknowledgements) = self.networks.freeze(|marks| self.state.snapshot(marks));
        // The next run does not read them again.
        if !self.networks.is_settled() {
            let reason = "records that cannot be decoded are not acknowledged on their topic in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        // An undelivered verdict would be lost once the snapshot is saved.
        if !self.publishers.iter().all(|publisher| publisher.settle(SETTLE)) {
            let reason = "the verdicts before it were not accepted in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        self.state.save(&snapshot)?;
        self.networks.release(&acknowledgements, limit);
        Ok(())
    }
}
