//! Repeated attempts: to reach a network, and to take a lock.

use std::ops::ControlFlow;
#[cfg(any(feature = "kafka", feature = "mqtt"))]
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of attempts to reach a network, and of reports that it is not reached.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// Interval of attempts to take a lock before a deadline.
#[cfg(any(feature = "kafka", feature = "mqtt"))]
const POLL: Duration = Duration::from_millis(1);

/// Opens a session, again after each error that says that nothing is reached. `waiting` is called about once a second
/// with the error and returns whether to continue.
///
/// # Errors
/// The first other error, or the last one when `waiting` returned `Break`.
pub(crate) fn open_reachable<T, E>(
    open: impl Fn() -> Result<T, E>,
    is_unreachable: impl Fn(&E) -> bool,
    mut waiting: impl FnMut(&E) -> ControlFlow<()>,
) -> Result<T, E> {
    loop {
        let started = Instant::now();
        match open() {
            Err(error) if is_unreachable(&error) => {
                if waiting(&error).is_break() {
                    return Err(error);
                }
                // A refused connection fails immediately; this avoids a busy loop.
                thread::sleep(RETRY.saturating_sub(started.elapsed()));
            }
            opened => return opened,
        }
    }
}

/// Returns the guard of a mutex, `None` if it cannot be locked before the deadline.
#[cfg(any(feature = "kafka", feature = "mqtt"))]
pub(crate) fn lock_until<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(POLL),
        }
    }
}
