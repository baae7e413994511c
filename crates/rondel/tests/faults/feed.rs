//! The source of the publisher's messages: numbered lines, so many a second by the clock.

use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::case::Case;

/// Time between two batches of lines.
const TICK: Duration = Duration::from_millis(10);

/// A source, on a thread of its own. What the publisher does not take in time follows later, as from a sensor whose
/// values wait.
pub struct Feed {
    shared: Arc<Mutex<Shared>>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    input: Option<ChildStdin>,
    /// The first number that each publisher got.
    begins: Vec<u64>,
    next: u64,
    stop: bool,
}

impl Feed {
    pub fn start(case: Case) -> Feed {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let shares = Arc::clone(&shared);
        let thread = std::thread::spawn(move || feed(case, &shares));
        Feed { shared, thread }
    }

    /// Goes on with a publisher.
    pub fn connect(&self, input: ChildStdin) {
        let mut shared = self.shared.lock().unwrap();
        let next = shared.next;
        shared.begins.push(next);
        shared.input = Some(input);
    }

    /// Writes no further lines. The publisher's input stays open.
    pub fn stop(&self) {
        self.shared.lock().unwrap().stop = true;
    }

    /// Closes the publisher's input. Returns how many messages were written, and the first number of each publisher.
    pub fn close(self) -> (u64, Vec<u64>) {
        self.stop();
        self.thread.join().unwrap();
        let mut shared = self.shared.lock().unwrap();
        shared.input = None;
        (shared.next, std::mem::take(&mut shared.begins))
    }
}

fn feed(case: Case, shared: &Mutex<Shared>) {
    let padding = "x".repeat(case.load.padding());
    let mut lines = Vec::new();
    // When the present publisher began, and with which number.
    let mut began: Option<(Instant, u64)> = None;
    loop {
        std::thread::sleep(TICK);
        let (mut input, next) = {
            let mut shared = shared.lock().unwrap();
            if shared.stop {
                return;
            }
            (shared.input.take(), shared.next)
        };
        let Some(open) = &mut input else {
            began = None;
            continue;
        };
        let (start, first) = *began.get_or_insert((Instant::now(), next));
        let due = first + (start.elapsed().as_secs_f64() * case.rate() as f64) as u64;
        // A second at a time, so that a stop does not wait for all that is due.
        let due = due.min(next + case.rate());
        lines.clear();
        for n in next..due {
            let _ = writeln!(lines, "{{\"id\":\"{padding}\",\"n\":{n},\"v\":true}}");
        }
        // The lock is not held: a publisher that is stopped does not read.
        let written = open.write_all(&lines).and_then(|()| open.flush());
        let mut shared = shared.lock().unwrap();
        shared.next = due;
        // A publisher that was killed has no input. There may be another one already.
        if written.is_ok() && shared.input.is_none() {
            shared.input = input;
        }
    }
}
