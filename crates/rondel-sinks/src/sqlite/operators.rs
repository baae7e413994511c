//! Decisions of operators in a store that a monitor writes: silences, and actions for its audit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::operate::{note_audited, unaudited};
use super::silences::Silences;
use crate::operate::Action;

/// Number of actions that are recorded at once.
const ACTIONS: u32 = 1000;

/// Records an action in the audit of a run, on the thread of the store. Returns whether it has.
pub type ActionRecorder = Box<dyn FnMut(&Action) -> bool + Send>;

/// Place for the recorder of a run, whose audit may begin after its store is open.
#[derive(Default)]
pub struct ActionSlot {
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    recorder: Option<ActionRecorder>,
    /// Whether it has seen no action yet.
    is_new: bool,
}

impl ActionSlot {
    /// Records actions that are in no audit file from here on: also earlier ones, each at least once.
    pub fn record_by(&self, recorder: ActionRecorder) {
        *self.slot() = Slot { recorder: Some(recorder), is_new: true };
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decisions of operators, as far as the thread of the store knows them.
#[derive(Default)]
pub(super) struct Operators {
    pub(super) silences: Arc<Silences>,
    pub(super) actions: Arc<ActionSlot>,
    /// Number that changes when another connection has written.
    data_version: Option<i64>,
    /// Actions that are recorded, and that the store does not know as such yet.
    recorded: Vec<i64>,
}

impl Operators {
    /// Reads what other processes have changed, at this time of day.
    pub(super) fn look(&mut self, connection: &Connection, now: i64) -> rusqlite::Result<()> {
        self.settle(connection)?;
        let version: i64 = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        let mut slot = self.actions.slot();
        if self.data_version == Some(version) && !slot.is_new {
            return Ok(());
        }
        self.silences.read(connection, now)?;
        let mut is_complete = true;
        if let Slot { recorder: Some(recorder), is_new } = &mut *slot {
            *is_new = false;
            let actions = unaudited(connection, ACTIONS)?;
            is_complete = actions.len() < ACTIONS as usize;
            for action in actions {
                if !recorder(&action) {
                    is_complete = false;
                    break;
                }
                self.recorded.push(action.id);
            }
        }
        // Otherwise again at the next look.
        self.data_version = Some(version).filter(|_| is_complete);
        Ok(())
    }

    /// Notes recorded actions in the store: some time after they were recorded, so that a crash repeats rather than loses
    /// one.
    pub(super) fn settle(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if !self.recorded.is_empty() {
            note_audited(connection, &self.recorded)?;
            self.recorded.clear();
        }
        Ok(())
    }

    /// Forgets which changes were read: after another connection was opened.
    pub(super) fn forget(&mut self) {
        self.data_version = None;
    }
}
