//! The sessions of the partitions that a member of a consumer group has: one of them is at hand, the others are parked.

use rondel_event::TopicId;
use rondel_net::adapter::PartitionMark;
use rondel_runtime::{Present, Session, SessionPlan, Summary, Ticks};

use super::{Pipeline, State};

/// Number of the session that has no partition, and receives nothing.
const NONE: i32 = -1;

/// The sessions of partitions beside the one at hand.
pub(super) struct Divided {
    plan: SessionPlan,
    /// Partition of the session at hand.
    current: i32,
    /// The others by partition.
    parked: Vec<(i32, Session)>,
}

impl Divided {
    /// The position of a partition among the parked ones.
    fn parked(&self, partition: i32) -> Option<usize> {
        self.parked.iter().position(|(own, _)| *own == partition)
    }

    /// The partitions, that of the session at hand first.
    fn partitions(&self) -> Vec<i32> {
        let all = std::iter::once(self.current).chain(self.parked.iter().map(|(own, _)| *own));
        all.filter(|own| *own != NONE).collect()
    }
}

impl Pipeline {
    /// Divides the run by partitions, before it receives anything: each has a session of this plan.
    pub fn divide(&self, plan: SessionPlan) {
        self.state().divided = Some(Box::new(Divided { plan, current: NONE, parked: Vec::new() }));
    }

    /// Adds the session of a partition, which continues from a snapshot if there is one. Returns the bytes attached to the
    /// snapshot.
    ///
    /// # Errors
    /// The reason why the snapshot cannot be restored.
    pub fn add_partition(&self, partition: i32, snapshot: Option<&[u8]>) -> Result<Option<Vec<u8>>, String> {
        let state = &mut *self.state();
        state.remove_partition(partition);
        let topics: Vec<TopicId> = (0..state.topics.len() as u32).map(TopicId).collect();
        let Some(divided) = &mut state.divided else { return Err("the run is not divided".to_owned()) };
        let session = match snapshot {
            Some(bytes) => divided.plan.restore(bytes, ""),
            None => divided.plan.start(),
        };
        let mut session = session.map_err(|error| error.to_string())?;
        for (topic, of) in &state.resolved {
            // The other sessions can read it.
            _ = session.resolve_type(*topic, of);
        }
        let attached = snapshot.map(|_| session.attachment().to_vec());
        // All records since the snapshot still come.
        session.resumed(&topics);
        divided.parked.push((partition, session));
        if let Some(due) = state.due()
            && state.armed.is_none_or(|armed| due < armed)
        {
            state.armed = Some(due);
            self.sooner.notify_one();
        }
        Ok(attached)
    }

    /// Returns a snapshot of the session of a partition with these bytes attached; `None` without such a session.
    pub fn partition_snapshot(&self, mark: &PartitionMark, attached: Vec<u8>) -> Option<Vec<u8>> {
        let state = &mut *self.state();
        if !state.turn_to(mark.partition) {
            return None;
        }
        self.place.saving();
        state.session.attach(attached);
        let bytes = state.session.snapshot("");
        // Taking a snapshot evaluates all messages.
        state.emit();
        if self.batches() {
            state.release();
        }
        Some(bytes)
    }

    /// Removes the session of a partition.
    pub fn remove_partition(&self, partition: i32) {
        self.state().remove_partition(partition);
    }
}

impl State {
    /// Makes the session of a partition that at hand. Returns false if there is none. A run that is not divided has one
    /// session for all.
    #[inline]
    pub(super) fn turn_to(&mut self, partition: i32) -> bool {
        match &self.divided {
            None => true,
            Some(divided) if divided.current == partition => true,
            Some(_) => self.exchange_session(partition),
        }
    }

    fn exchange_session(&mut self, partition: i32) -> bool {
        let Some(at) = self.divided.as_ref().and_then(|divided| divided.parked(partition)) else {
            return false;
        };
        self.session.flush();
        self.emit();
        let Some(divided) = &mut self.divided else { return false };
        let Some((parked, session)) = divided.parked.get_mut(at) else { return false };
        std::mem::swap(&mut divided.current, parked);
        std::mem::swap(&mut self.session, session);
        true
    }

    fn remove_partition(&mut self, partition: i32) {
        if self.divided.as_ref().is_some_and(|divided| divided.current == partition) {
            self.turn_to(NONE);
        }
        if let Some(divided) = &mut self.divided {
            divided.parked.retain(|(own, _)| *own != partition || *own == NONE);
        }
    }

    /// Calls `act` with every session at hand in turn.
    pub(super) fn each(&mut self, mut act: impl FnMut(&mut State)) {
        let Some(divided) = &self.divided else { return act(self) };
        for partition in divided.partitions() {
            if self.turn_to(partition) {
                act(self);
            }
        }
    }

    /// The sessions.
    fn sessions(&self) -> impl Iterator<Item = &Session> {
        let parked = self.divided.iter().flat_map(|divided| &divided.parked);
        let current = self.divided.as_ref().map_or(0, |divided| divided.current);
        let all =
            std::iter::once((current, &self.session)).chain(parked.map(|(own, session)| (*own, session)));
        all.filter(|(own, _)| *own != NONE).map(|(_, session)| session)
    }

    /// The time at which time alone decides a verdict of some session.
    pub(super) fn due(&self) -> Option<Ticks> {
        self.sessions().filter_map(Session::due).min()
    }

    /// The statistics of all sessions.
    pub(super) fn summary_of_sessions(&self) -> Summary {
        let mut all = self.sessions().map(Session::summary);
        // Without a partition, those of no message.
        let mut first = all.next().unwrap_or_else(|| self.session.summary());
        all.for_each(|summary| first.merge(summary));
        first
    }

    /// The state that the properties of all sessions hold.
    pub(super) fn present(&self) -> Present {
        let mut all = self.sessions().map(Session::present);
        let mut first = all.next().unwrap_or_else(|| self.session.present());
        for Present { instances, bytes, violated, .. } in all {
            first.instances += instances;
            first.bytes += bytes;
            first.violated.iter_mut().zip(violated).for_each(|(own, other)| *own += other);
        }
        first
    }
}
