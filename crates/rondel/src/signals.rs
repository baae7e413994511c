//! Ending by signal: the first SIGINT or SIGTERM ends gracefully, the second at once. SIGHUP is ignored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                // The terminal is gone; whoever wants the run to end sends another signal.
                crate::warn("received SIGHUP: the run continues; SIGTERM ends it");
                continue;
            }
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
