//! Parts of a snapshot: the instances whose parameters hash into a range.

use std::ops::Range;
use std::sync::Arc;

use rondel_engine::Monitor;
use rondel_event::SnapshotError;

use super::saved::{Saved, StartError};
use crate::session::{Route, Session, SessionPlan};

impl Session {
    /// Writes a part of a [snapshot](Session::snapshot): the `for each` instances whose parameters have a
    /// [hash](crate::key_hash) in the range, and all other state, also the counts of the whole session.
    /// [`SessionPlan::restore_parts`] continues from parts.
    ///
    /// # Errors
    /// [`StartError::Mismatch`] if messages wait to be put in order: such a session has no parts.
    pub fn snapshot_part(&mut self, hashes: Range<u64>, note: &str) -> Result<Vec<u8>, StartError> {
        match self.route {
            Route::Direct(_) => Ok(self.saved(note, Some(hashes)).seal_part()),
            _ => Err("messages wait to be put in order: only a whole snapshot contains them".into()),
        }
    }
}

impl SessionPlan {
    /// Starts a session that continues from [parts](Session::snapshot_part) of one session at one time. Returns it with
    /// the covered ranges of hashes, in order. An instance whose parameters are in none of them restarts with its next
    /// message. `note` must be that of the parts.
    ///
    /// # Errors
    /// [`StartError`] when a part is damaged or of another specification, also of an edited one; when ranges overlap, and
    /// when parts were taken at different times.
    pub fn restore_parts(
        &self,
        parts: &[&[u8]],
        note: &str,
    ) -> Result<(Session, Vec<Range<u64>>), StartError> {
        let of_part = |at: usize, error: StartError| StartError::Mismatch(format!("part {at}: {error}"));
        let mut read = Vec::with_capacity(parts.len());
        for (at, bytes) in parts.iter().enumerate() {
            let saved = Saved::open_part(bytes, self.options.explain, note);
            read.push(saved.map_err(|error| of_part(at, error))?);
        }
        let Some(first) = read.first() else {
            return Err("there is no part to restore".into());
        };
        if first.known.program != self.fingerprint || self.synchronizes {
            return Err(
                "the parts belong to another specification: only a whole snapshot continues after an edit"
                    .into(),
            );
        }
        // They may have been written one after another.
        let common = |saved: &Saved| {
            let known = super::saved::Known { at: 0, ..saved.known.clone() };
            postcard::to_stdvec(&known).unwrap_or_default()
        };
        let expected = common(first);
        if let Some(other) = read.iter().position(|saved| common(saved) != expected) {
            return Err(StartError::Mismatch(format!(
                "part {other} was taken at another time than part 0, or of another session"
            )));
        }
        let mut states = Vec::with_capacity(read.len());
        for (at, saved) in read.iter().enumerate() {
            let [state] = &saved.states[..] else {
                return Err(of_part(at, SnapshotError::Altered.into()));
            };
            states.push(state.as_slice());
        }
        let restored = Monitor::restore_parts(Arc::clone(&self.specification.program), &states);
        let (monitor, covered) = restored.map_err(|error| StartError::Mismatch(error.to_string()))?;
        let saved = Saved { known: first.known.clone(), states: vec![monitor.snapshot()] };
        let mut session = self.session(Some(&saved))?;
        if self.options.live {
            session.forget_events();
        }
        Ok((session, covered))
    }
}
