//! The process groups of programs, so that none is left running when the run ends.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Those of all runs of this process: one, but in tests.
static ALL: Mutex<Vec<Groups>> = Mutex::new(Vec::new());

/// The process groups of the programs of a run that have not been waited for. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    running: BTreeSet<u32>,
    has_ended: bool,
}

impl Groups {
    /// Those of a run, which [`kill_programs`] ends, too.
    pub(super) fn of_run() -> Groups {
        let groups = Groups::default();
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(groups.clone());
        groups
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the group of a program that was started. After the end, it is killed at once.
    pub(super) fn add(&self, child: &Child) {
        let mut state = self.state();
        state.running.insert(child.id());
        if state.has_ended {
            kill(child.id());
        }
    }

    /// Returns the status of a program if it has ended; its number may then be that of another process.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn try_wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let mut state = self.state();
        let status = child.try_wait()?;
        if status.is_some() {
            state.running.remove(&child.id());
        }
        Ok(status)
    }

    /// Kills all groups, and those of programs that are started later.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.running.iter().copied().for_each(kill);
    }

    /// Whether no program runs.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.state().running.is_empty()
    }
}

fn kill(group: u32) {
    if let Ok(group) = i32::try_from(group) {
        // The group may have ended.
        _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// Kills the programs of actions that still run, with their children, before the process exits.
pub fn kill_programs() {
    ALL.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Groups::end);
}
