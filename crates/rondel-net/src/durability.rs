//! Snapshots of what receives messages: written from time to time, or before messages are acknowledged.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::adapter::Publisher;
use crate::networks::Networks;

/// How long to wait for the acknowledgement of published messages, after which the snapshot is tried again.
const SETTLE: Duration = Duration::from_millis(1500);
/// How long to wait after a snapshot that could not be written.
const RETRY: Duration = Duration::from_secs(1);
/// How long a broker may take to read the last acknowledgements.
const RELEASE: Duration = Duration::from_millis(500);

/// What snapshots are taken of.
pub trait State: Send + Sync + 'static {
    /// Takes a snapshot with these marks, of which the next run needs those of the last snapshot.
    fn snapshot(&self, marks: Vec<u8>) -> Vec<u8>;

    /// Returns the number of messages received so far.
    fn received(&self) -> u64;

    /// Makes a snapshot durable.
    ///
    /// # Errors
    /// The reason why it is not.
    fn save(&self, snapshot: &[u8]) -> io::Result<()>;

    /// Reports that a snapshot was not saved, after one that was, or that one is saved again.
    fn report(&self, failure: Option<&io::Error>);
}

/// When snapshots are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The time between two snapshots.
    pub every: Duration,
    /// Whether messages are acknowledged only once a snapshot contains them.
    pub exactly: bool,
}

/// The writing of snapshots, on a thread of its own.
pub struct Snapshots<S> {
    writer: Arc<Writer<S>>,
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

struct Writer<S> {
    schedule: Schedule,
    state: S,
    networks: Arc<Networks>,
    /// The publishers whose messages must be accepted before a snapshot is saved.
    publishers: Vec<Arc<dyn Publisher>>,
}

impl<S: State> Snapshots<S> {
    /// Starts to write snapshots. `publishers` publish what must not be missing after a crash.
    ///
    /// # Errors
    /// When the thread cannot be started.
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
    /// The reason why it is not saved; messages that came after the one before are then not acknowledged.
    pub fn end(self) -> io::Result<()> {
        drop(self.end);
        // After a snapshot that took long, the next one is waited for longer than the end of a run may take.
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
            // A large state must not take all the time.
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
        // A verdict that did not arrive would be missing for ever once the snapshot is there.
        if !self.publishers.iter().all(|publisher| publisher.settle(SETTLE)) {
            let reason = "the verdicts before it were not accepted in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        self.state.save(&snapshot)?;
        self.networks.release(&acknowledgements, limit);
        Ok(())
    }
}
