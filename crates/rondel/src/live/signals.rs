//! Signals: the first SIGINT or SIGTERM ends gracefully, the second at once. SIGHUP, also that of a terminal which is
//! closed, reloads a run, which goes on in any case; other commands ignore it.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::live::pipeline::Stop;
use crate::live::reload::requests::{Cause, Requester, Requests, requests};
use crate::sinks::actions::kill_programs;

/// Interval within which two signals count as one.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Flag that is set once a signal has requested the end of the command: the number of the signal, or 0.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicI32>);

impl StopFlag {
    /// Whether the end was requested.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The name of the signal, once one has requested the end.
    pub fn signal(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            SIGINT => Some("SIGINT"),
            _ => Some("SIGTERM"),
        }
    }
}

/// The end of a command that listens until a signal or a limit.
pub struct End {
    /// Channel for the reason to end.
    pub stop: mpsc::Sender<Stop>,
    /// Its receiver.
    pub stopped: mpsc::Receiver<Stop>,
    /// Flag that a signal sets.
    pub interrupted: StopFlag,
}

impl End {
    /// Sends [`Stop::Requested`] at the first signal.
    ///
    /// # Errors
    /// The reason why the system refuses to install the handlers.
    pub fn on_signal() -> Result<End, String> {
        let (stop, stopped) = mpsc::channel();
        End::of(stop, stopped, Box::new(hung_up))
    }

    /// As [`End::on_signal`], and requests a reload at each SIGHUP.
    ///
    /// # Errors
    /// The same.
    pub fn or_reload() -> Result<(End, Requester, Requests), String> {
        let (stop, stopped) = mpsc::channel();
        let (requester, requests) = requests(stop.clone());
        let on_hang_up = requester.clone();
        let end = End::of(stop, stopped, Box::new(move || on_hang_up.request(Cause::Signal)))?;
        Ok((end, requester, requests))
    }

    fn of(
        stop: mpsc::Sender<Stop>,
        stopped: mpsc::Receiver<Stop>,
        on_hang_up: Box<dyn Fn() + Send>,
    ) -> Result<End, String> {
        let on_signal = stop.clone();
        // The receiver may be gone: a later signal has nothing to stop.
        let interrupted =
            install(move || _ = on_signal.send(Stop::Requested), on_hang_up).map_err(unlistened)?;
        Ok(End { stop, stopped, interrupted })
    }
}

/// The message about handlers that cannot be installed.
fn unlistened(error: io::Error) -> String {
    format!("cannot listen for signals: {error}")
}

/// Shows that the terminal is gone. SIGINT and SIGTERM still end the command.
fn hung_up() {
    crate::warn("received SIGHUP: the run continues; SIGTERM ends it");
}

/// Calls `on_first` at the first signal, on a thread of its own; the second ends the process.
///
/// # Errors
/// The reason why the system refuses to install the handlers.
pub fn listen(on_first: impl FnOnce() + Send + 'static) -> Result<StopFlag, String> {
    install(on_first, Box::new(hung_up)).map_err(unlistened)
}

fn install(
    on_first: impl FnOnce() + Send + 'static,
    on_hang_up: Box<dyn Fn() + Send>,
) -> io::Result<StopFlag> {
    let flag = StopFlag::default();
    let set = flag.clone();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let mut first = Some(on_first);
    let mut last: Option<Instant> = None;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                on_hang_up();
                continue;
            }
            // Two at once are one: a process group and its parent may both pass a signal on.
            if last.is_some_and(|last| last.elapsed() < AT_ONCE) {
                continue;
            }
            last = Some(Instant::now());
            match first.take() {
                Some(on_first) => {
                    set.0.store(signal, Ordering::Relaxed);
                    on_first();
                }
                // The status that a shell reports for a process ended by a signal.
                None => {
                    kill_programs();
                    std::process::exit(128 + signal)
                }
            }
        }
    })?;
    Ok(flag)
}
