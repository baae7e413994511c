//! Ending by signal: the first SIGINT or SIGTERM ends gracefully, the second at once. SIGHUP is ignored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How close signals must be to count as one.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Whether the command was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<AtomicBool>);

impl Asked {
    /// Whether it was.
    pub fn yet(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Calls `asked` at the first signal, on a thread of its own; the second ends the process.
///
/// # Errors
/// When the system refuses.
pub fn listen(asked: impl FnOnce() + Send + 'static) -> io::Result<Asked> {
    let flag = Asked::default();
    let set = flag.clone();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let mut first = Some(asked);
    let mut last: Option<Instant> = None;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                // The terminal is gone; whoever wants the run to end sends another signal.
                crate::warn("received SIGHUP: the run continues; SIGTERM ends it");
                continue;
            }
            // Two at once are one: a process group and its parent may both pass a signal on.
            if last.is_some_and(|last| last.elapsed() < AT_ONCE) {
                continue;
            }
            last = Some(Instant::now());
            match first.take() {
                Some(asked) => {
                    set.0.store(true, Ordering::Relaxed);
                    asked();
                }
                // What the shell reports for a process that a signal ended.
                None => std::process::exit(128 + signal),
            }
        }
    })?;
    Ok(flag)
}
