//! Snapshots of a live run: written from time to time, or before messages are acknowledged.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher;
use rondel_recording::durable;
use rondel_runtime::Notice;

use crate::networks::Networks;
use crate::pipeline::Pipeline;
use crate::{complain, say};

/// How long to wait for the acknowledgement of verdicts, after which the snapshot is tried again.
const SETTLE: Duration = Duration::from_millis(1500);
/// How long to wait after a snapshot that could not be written.
const RETRY: Duration = Duration::from_secs(1);
/// How long a broker may take to read the last acknowledgements.
const RELEASE: Duration = Duration::from_millis(500);

/// What snapshots are written.
#[derive(Clone)]
pub struct Schedule {
    /// The file.
    pub file: PathBuf,
    /// The time between two snapshots.
    pub every: Duration,
    /// Whether messages are acknowledged only once a snapshot contains them.
    pub exactly: bool,
}

/// The writing of snapshots, on a thread of its own.
pub struct Snapshots {
    writer: Arc<Writer>,
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

struct Writer {
    schedule: Schedule,
    pipeline: Arc<Pipeline>,
    networks: Arc<Networks>,
    /// The publishers whose messages must be accepted before a snapshot is written.
    publishers: Vec<Arc<dyn Publisher>>,
}

impl Snapshots {
    /// Starts to write snapshots. `publishers` are those of verdicts.
    pub fn start(
        schedule: Schedule,
        pipeline: Arc<Pipeline>,
        networks: Arc<Networks>,
        publishers: Vec<Arc<dyn Publisher>>,
    ) -> io::Result<Snapshots> {
        let (end, ended) = mpsc::channel::<()>();
        let publishers = if schedule.exactly { publishers } else { Vec::new() };
        let writer = Arc::new(Writer { schedule, pipeline, networks, publishers });
        let writing = Arc::clone(&writer);
        let thread = thread::Builder::new().name("snapshots".into());
        Ok(Snapshots { thread: thread.spawn(move || writing.run(&ended))?, end, writer })
    }

    /// Writes the last snapshot. Returns whether it was written.
    pub fn end(self) -> bool {
        drop(self.end);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
        let written = self.writer.write(RELEASE);
        if let Err(error) = &written {
            let Schedule { file, exactly, .. } = &self.writer.schedule;
            complain(&Notice::unsaved(file, error, *exactly).text(&mut |_| String::new()));
        }
        written.is_ok()
    }
}

impl Writer {
    fn run(&self, ended: &mpsc::Receiver<()>) {
        let Schedule { file, every, exactly } = &self.schedule;
        let (mut failed, mut seen, mut pause) = (false, None, *every);
        let wait = |pause| ended.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout);
        while wait(if *exactly && !failed { Duration::ZERO } else { pause }) {
            if *exactly {
                let held = failed || self.networks.wait_held(pause);
                let received = Some(self.pipeline.received());
                if !held && received == seen {
                    continue;
                }
                seen = received;
            }
            let began = Instant::now();
            let written = self.write(Duration::ZERO);
            // A large state must not take all the time.
            pause = if written.is_ok() { (began.elapsed() * 4).max(*every) } else { RETRY.min(*every * 10) };
            match &written {
                Err(error) if !failed => {
                    self.pipeline.report_losses(vec![Notice::unsaved(file, error, *exactly)]);
                }
                Ok(()) if failed => say(&format!("the snapshot {} is written again", file.display())),
                _ => {}
            }
            failed = written.is_err();
        }
    }

    /// Writes a snapshot, and acknowledges the messages in it.
    fn write(&self, limit: Duration) -> io::Result<()> {
        let (bytes, acknowledgements) = self.networks.freeze(|marks| self.pipeline.snapshot(marks));
        // A verdict that did not arrive would be missing for ever once the snapshot is there.
        if !self.publishers.iter().all(|publisher| publisher.settle(SETTLE)) {
            let reason = "the verdicts before it were not accepted in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        durable::replace(&self.schedule.file, &bytes)?;
        self.networks.release(&acknowledgements, limit);
        Ok(())
    }
}
