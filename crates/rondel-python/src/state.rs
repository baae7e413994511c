//! The session of a monitor, which several threads may use.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rondel_runtime::{MessageValues, Session};

use crate::error;
use crate::report::Report;

/// The number of times that this process and those before it were forked.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The time after which a lock that was taken before a fork is never released.
const RELEASED_WITHIN: Duration = Duration::from_millis(100);

/// Registers a function with Python that counts forks: the other threads of a forked process do not exist in the new one.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let os = module.py().import("os")?;
    // Windows has none.
    if let Ok(register) = os.getattr("register_at_fork") {
        let arguments = PyDict::new(module.py());
        arguments.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
        register.call((), Some(&arguments))?;
    }
    Ok(())
}

/// Notes that this process is a fork.
#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A session, and its reports that were not returned yet.
pub(crate) struct State {
    /// `None` once it is closed.
    session: Option<Session>,
    is_finished: bool,
    kept: Vec<Report>,
    /// Space for the values of a message.
    values: MessageValues,
}

impl State {
    fn new(session: Option<Session>) -> State {
        State { session, is_finished: false, kept: Vec::new(), values: MessageValues::default() }
    }

    /// The session.
    ///
    /// # Errors
    /// `ValueError` once the monitor is closed.
    #[inline]
    pub(crate) fn session(&mut self) -> PyResult<&mut Session> {
        self.session.as_mut().ok_or_else(error::closed)
    }

    /// The session, before its end.
    ///
    /// # Errors
    /// `ValueError` once the monitor is closed or finished.
    #[inline]
    pub(crate) fn running(&mut self) -> PyResult<&mut Session> {
        if self.is_finished {
            return Err(error::finished());
        }
        self.session()
    }

    /// The session, before its end, and the space for the values of a message.
    ///
    /// # Errors
    /// As [`State::running`].
    #[inline]
    pub(crate) fn running_with_values(&mut self) -> PyResult<(&mut Session, &mut MessageValues)> {
        if self.is_finished {
            return Err(error::finished());
        }
        Ok((self.session.as_mut().ok_or_else(error::closed)?, &mut self.values))
    }

    /// Ends the trace. A second call does nothing.
    pub(crate) fn finish(&mut self) -> PyResult<()> {
        self.session()?.finish();
        self.is_finished = true;
        Ok(())
    }

    /// Keeps the reports of the session for the next call of [`State::take_reports`].
    pub(crate) fn keep_reports(&mut self) {
        if let Some(session) = &mut self.session {
            self.kept.extend(session.kept_reports().map(Report));
        }
    }

    /// Takes all reports.
    #[inline]
    pub(crate) fn take_reports(&mut self) -> Vec<Report> {
        if self.session.as_ref().is_some_and(Session::has_reports) {
            self.keep_reports();
        }
        std::mem::take(&mut self.kept)
    }

    /// Frees the session.
    pub(crate) fn close(&mut self) {
        *self = State::new(None);
    }
}

/// A state that one thread uses at a time.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// [`FORKS`] when it was last locked.
    locked_in: AtomicU32,
}

/// A locked state.
pub(crate) struct Locked<'s>(MutexGuard<'s, State>);

impl Deref for Locked<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl Shared {
    /// Wraps a session.
    pub(crate) fn new(session: Session) -> Shared {
        let state = State::new(Some(session));
        Shared { state: Mutex::new(state), locked_in: AtomicU32::new(FORKS.load(Ordering::Relaxed)) }
    }

    /// Locks the state; other threads run while it waits.
    ///
    /// # Errors
    /// `RuntimeError` if a thread used it when this process was forked, or an earlier call has panicked.
    #[inline]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<Locked<'_>> {
        let locked = self.lock_any(py)?;
        self.check_sound()?;
        Ok(locked)
    }

    /// Frees the session, also one in which a call has panicked.
    ///
    /// # Errors
    /// `RuntimeError` if a thread used it when this process was forked.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.lock_any(py)?.close();
        self.state.clear_poison();
        Ok(())
    }

    #[inline]
    fn lock_any(&self, py: Python<'_>) -> PyResult<Locked<'_>> {
        loop {
            if let Some(locked) = self.try_lock() {
                return Ok(locked);
            }
            // The guard cannot cross `detach`: wait there, then take it.
            py.detach(|| self.wait().map(drop))?;
        }
    }

    /// Refuses a state that a call has left half changed.
    #[inline]
    fn check_sound(&self) -> PyResult<()> {
        if self.state.is_poisoned() { Err(error::broken()) } else { Ok(()) }
    }

    /// Calls `work` with the locked state while other threads of Python run.
    ///
    /// # Errors
    /// Those of `work`, and of [`Shared::lock`].
    pub(crate) fn with_detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut locked = self.wait()?;
            self.check_sound()?;
            work(&mut locked)
        })
    }

    #[inline]
    fn try_lock(&self) -> Option<Locked<'_>> {
        match self.state.try_lock() {
            Ok(guard) => Some(self.locked(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.locked(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn locked<'s>(&'s self, guard: MutexGuard<'s, State>) -> Locked<'s> {
        self.locked_in.store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
        Locked(guard)
    }

    /// Locks the state. Call it without the lock of the interpreter.
    fn wait(&self) -> PyResult<Locked<'_>> {
        let begin = Instant::now();
        // Locked before a fork, or by a thread of this process that has not noted it yet.
        while self.locked_in.load(Ordering::Relaxed) != FORKS.load(Ordering::Relaxed) {
            if let Some(locked) = self.try_lock() {
                return Ok(locked);
            }
            if begin.elapsed() > RELEASED_WITHIN {
                return Err(PyRuntimeError::new_err(
                    "another thread used the monitor when this process was forked: make a new one, or fork without \
                     threads",
                ));
            }
            std::thread::sleep(RELEASED_WITHIN / 100);
        }
        Ok(self.locked(self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
