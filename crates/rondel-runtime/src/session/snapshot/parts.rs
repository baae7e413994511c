//! Parts of a snapshot: the instances whose parameters hash into a range.

use std::ops::Range;
use std::sync::Arc;

use rondel_engine::Monitor;
use rondel_event::SnapshotError;

use super::saved::{Known, Saved, StartError};
use crate::session::{Route, Session, SessionPlan};
use crate::statistics::missing;

impl Session {
    /// Writes a part of a [snapshot](Session::snapshot): the `for each` instances whose parameters have a
    /// [hash](crate::key_hash) in the range, and all other state, also the counts of the whole session.
    /// [`SessionPlan::restore_parts`] continues from parts.
    ///
    /// # Errors
    /// [`StartError::Mismatch`] if messages wait to be put in order: such a session has no parts.
    pub fn snapshot_part(&mut self, hashes: Range<u64>, note: &str) -> Result<Vec<u8>, StartError> {
        let parts = self.snapshot_parts(&[hashes.start, hashes.end], note);
        parts.map(|mut parts| parts.pop().unwrap_or_default())
    }

    /// Writes several [parts](Session::snapshot_part) in one pass over the instances: one for each range between two
    /// neighbours of `cuts`, which are in order.
    ///
    /// # Errors
    /// As those of [`Session::snapshot_part`].
    pub fn snapshot_parts(&mut self, cuts: &[u64], note: &str) -> Result<Vec<Vec<u8>>, StartError> {
        if !matches!(self.route, Route::Direct(_)) {
            return Err("messages wait to be put in order: only a whole snapshot contains them".into());
        }
        let mut saved = self.saved(note, Some(cuts));
        let states = std::mem::take(&mut saved.states);
        let sealed = states.into_iter().map(|state| {
            saved.states = vec![state];
            saved.seal_part()
        });
        Ok(sealed.collect())
    }
}

impl SessionPlan {
    /// Starts a session that continues from [parts](Session::snapshot_part) of one session at one time, or of several
    /// sessions that have [advanced](Session::advance) to the same time and whose messages all have parameters. Returns it
    /// with the covered ranges of hashes, in order. An instance whose parameters are in none of them restarts with its next
    /// message. `note` must be that of the parts. Counts are those of the session with the most events, since sessions may
    /// have a common past.
    ///
    /// # Errors
    /// [`StartError`] when a part is damaged or of another specification, also of an edited one; when ranges overlap, when
    /// parts were taken at different times, and when sessions differ in state that belongs to no instance.
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
        let known = self.joined(&read)?;
        let mut states = Vec::with_capacity(read.len());
        for (at, saved) in read.iter().enumerate() {
            let [state] = &saved.states[..] else {
                return Err(of_part(at, SnapshotError::Altered.into()));
            };
            states.push(state.as_slice());
        }
        let restored = Monitor::restore_parts(Arc::clone(&self.specification.program), &states);
        let (monitor, covered) = restored.map_err(|error| StartError::Mismatch(error.to_string()))?;
        let saved = Saved { known, states: vec![monitor.snapshot()] };
        let mut session = self.session(Some(&saved))?;
        if self.options.live {
            session.forget_events();
        }
        Ok((session, covered))
    }

    /// Joins the state of parts beside their monitors.
    fn joined(&self, parts: &[Saved]) -> Result<Known, StartError> {
        let is_own = |saved: &Saved| saved.known.program == self.fingerprint;
        if !parts.iter().all(is_own) || self.synchronizes {
            return Err(
                "the parts belong to another specification: only a whole snapshot continues after an edit"
                    .into(),
            );
        }
        let most = (0..parts.len()).rev().max_by_key(|&at| parts[at].known.events);
        let mut known = most.map(|at| parts[at].known.clone()).ok_or("there is no part to restore")?;
        for Saved { known: other, .. } in parts {
            if (&other.topics, &other.properties) != (&known.topics, &known.properties) {
                return Err(SnapshotError::Altered.into());
            }
            if other.muting != known.muting {
                return Err(
                    "the parts are of several sessions, whose violations are muted by different ones: \
                            sessions with `@because_of` are not joined"
                        .into(),
                );
            }
            known.time = known.time.max(other.time);
            known.recorded_until = known.recorded_until.max(other.recorded_until);
            known.is_by_arrival |= other.is_by_arrival;
            missing::join(&mut known.missing, &other.missing);
            let ((topics, before), (others, other)) = (&mut known.unseen, &other.unseen);
            if !others.is_empty() {
                *before = if topics.is_empty() { *other } else { (*other).min(*before) };
                topics.extend(others);
                topics.sort_unstable();
                topics.dedup();
            }
        }
        Ok(known)
    }
}
