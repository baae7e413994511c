//! The signal SIGUSR1, at which participants begin together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGUSR1;
use signal_hook::flag;

use crate::failure::{Failure, Result, io_error};

/// The time limit for the signal: a participant does not outlive a parent that was killed.
const LIMIT: Duration = Duration::from_secs(120);
/// The time from one look for the signal to the next.
const LOOK: Duration = Duration::from_millis(1);

/// A wait for the signal.
#[derive(Debug)]
pub struct Begin {
    is_signalled: Arc<AtomicBool>,
    deadline: Instant,
}

impl Begin {
    /// Registers for the signal: before the parent can know that this process is ready.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn register() -> Result<Begin> {
        Begin::within(LIMIT)
    }

    fn within(limit: Duration) -> Result<Begin> {
        let is_signalled = Arc::new(AtomicBool::new(false));
        flag::register(SIGUSR1, Arc::clone(&is_signalled)).map_err(io_error("signals"))?;
        Ok(Begin { is_signalled, deadline: Instant::now() + limit })
    }

    /// Waits for the signal.
    ///
    /// # Errors
    /// [`Failure::Late`] when it does not come.
    pub fn wait(&self) -> Result<()> {
        self.wait_with(LOOK, || Ok(()))
    }

    /// Waits for the signal, and calls `act` every `pause` until then.
    ///
    /// # Errors
    /// [`Failure::Late`] when it does not come; those of `act`.
    pub fn wait_with(&self, pause: Duration, mut act: impl FnMut() -> Result<()>) -> Result<()> {
        while !self.is_signalled.load(Ordering::Acquire) {
            if Instant::now() >= self.deadline {
                return Err(Failure::Late { what: "the signal to begin".to_owned(), limit: LIMIT });
            }
            act()?;
            std::thread::sleep(pause);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_ends_with_the_signal_or_at_its_limit() {
        assert!(matches!(Begin::within(Duration::ZERO).unwrap().wait(), Err(Failure::Late { .. })));
        let begin = Begin::register().unwrap();
        let mut calls = 0;
        let signal_at_third = || {
            calls += 1;
            if calls == 3 {
                signal_hook::low_level::raise(SIGUSR1).map_err(io_error("signals"))
            } else {
                Ok(())
            }
        };
        begin.wait_with(LOOK, signal_at_third).unwrap();
        assert_eq!(calls, 3);
        begin.wait().unwrap();
    }
}
