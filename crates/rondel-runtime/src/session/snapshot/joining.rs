//! Continuing from the state of another process that receives the same messages, as a standby of a group does.

use rondel_event::TopicId;

use super::saved::{Saved, StartError};
use crate::session::results::notices::PendingNotices;
use crate::session::{Edited, Session, SessionPlan};

impl SessionPlan {
    /// Starts a session that takes the place of `before` and continues from a [snapshot](Session::snapshot) of a session of
    /// another process, which receives the same messages. `before` keeps its reports and notices, and must not be used
    /// otherwise. Properties that it [watches](Session::watch_properties) are watched on, in their states of the snapshot.
    /// The caller pushes the messages that the snapshot does not contain, and calls [`Session::follow_clock`].
    ///
    /// # Errors
    /// [`StartError`] if the bytes are damaged or belong to another specification or other settings. `before` is then
    /// unchanged.
    pub fn join(&self, before: &mut Session, bytes: &[u8]) -> Result<Session, StartError> {
        let mut plan = self.clone();
        let topics: Vec<Option<TopicId>> = before.events.declared_topics().into_iter().map(Some).collect();
        plan.adopt(before, &topics);
        let saved = Saved::open(bytes, plan.options.explain, "")?;
        let (mut session, edited) = plan.continued(&saved)?;
        if edited.as_ref().is_some_and(Edited::is_any) {
            return Err("it belongs to another specification".into());
        }
        session.take_place_of(before);
        Ok(session)
    }
}

impl Session {
    /// Takes over the state that belongs to this process.
    fn take_place_of(&mut self, before: &mut Session) {
        let own = self.route.decoders_mut().into_iter().flatten();
        let known = before.route.decoders_mut().into_iter().flatten();
        for (own, known) in own.zip(known).filter(|(_, known)| known.keeps_births()) {
            std::mem::swap(own, known);
        }
        let topics: Vec<Option<usize>> = (0..self.shared.topics.len()).map(Some).collect();
        self.types.inherit(&before.types, &topics);
        self.sharing = before.sharing.take();
        self.watch = before.watch.take();
        // Their numbers of violations begin again.
        if let Some(watched) = before.watched_properties() {
            self.watch_properties(&watched);
        }
        self.attach(before.attachment().to_vec());
        self.shared.resumption.go_on();
        // Notices about types were emitted when the types were found.
        self.shared.notices = PendingNotices::default();
        // So that messages missed from here on make no earlier verdict uncertain.
        self.note_count();
    }

    /// Lets time pass as in a session before, which has received the same messages as they came.
    pub fn follow_clock(&mut self, before: &Session) {
        let now = (self.events() > 0).then(|| self.shared.clock.ticks());
        self.route.follow_clock(&before.route, now);
    }
}
