//! Ending by signal: the first SIGINT or SIGTERM ends gracefully, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
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
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let mut first = Some(asked);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
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
