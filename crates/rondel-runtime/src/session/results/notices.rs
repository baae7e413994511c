//! Notices that wait to be taken.

use crate::report::notice::Notice;
use crate::session::Session;
use crate::statistics::TopicStatistics;

/// The limit of notices that wait to be taken.
const NOTICES: usize = 4096;

/// Notices that wait to be taken.
#[derive(Debug, Default)]
pub(in crate::session) struct PendingNotices {
    waiting: Vec<Notice>,
    /// Number of notices dropped since the last were taken, because too many waited.
    dropped: u64,
}

impl PendingNotices {
    /// Keeps a notice until it is taken, with the name of its topic.
    pub(in crate::session) fn add(&mut self, mut notice: Notice, topics: &[TopicStatistics]) {
        if self.waiting.len() >= NOTICES {
            self.dropped += 1;
            return;
        }
        name_topic(&mut notice, topics);
        self.waiting.push(notice);
    }

    /// Takes all notices, in order.
    fn take(&mut self) -> impl Iterator<Item = Notice> {
        let dropped = std::mem::take(&mut self.dropped);
        let dropped = (dropped > 0).then(|| Notice::dropped(dropped));
        self.waiting.drain(..).chain(dropped)
    }
}

/// Writes the name of its topic into a notice.
fn name_topic(notice: &mut Notice, topics: &[TopicStatistics]) {
    let topic = notice.topic.and_then(|topic| topics.get(topic.index()));
    notice.topic_name = topic.map(|topic| topic.name.clone());
}

impl Session {
    /// Whether there are notices to take.
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.shared.notices.waiting.is_empty()
    }

    /// Takes the notices since the last call, in order; at most 4,096 wait.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        self.shared.notices.take()
    }

    /// Takes notices of messages lost according to the numbers of their publishers since the last call, one for each
    /// topic, and of the first values of another type than the specification reads. Call it about once a second: it
    /// also records the number of messages received by now, so that [`Session::cut_off`] knows which verdicts are older
    /// than an outage.
    pub fn losses(&mut self) -> Vec<Notice> {
        self.note_count();
        self.note_guesses();
        let mut losses = self.shared.accounts.losses();
        losses.extend(self.types.mistyped_notices(&self.route));
        losses.iter_mut().for_each(|notice| name_topic(notice, &self.shared.topics));
        losses
    }
}
