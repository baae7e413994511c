//! Surroundings of a member: its pipeline, and the network of its group. A simulation has others.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::Publisher;

use super::election::Sign;
use super::message::{About, write_sign};
use crate::live::networks::Networks;
use crate::live::pipeline::{Pipeline, Unresponsive};
use crate::{say, warn};

/// Time limit for the network to accept a sign of life. On Zenoh it waits for members alone, and not for slow consumers of
/// verdicts, from this limit on.
const OFFER: Duration = Duration::from_millis(10);
/// Time limit for delivering the last sign.
const LAST: Duration = Duration::from_millis(200);

/// Everything that a member acts on. The evaluating thread has a time limit: it may be busy, or stuck.
pub(super) trait Surroundings {
    /// Sends a sign of life.
    ///
    /// # Errors
    /// The reason why the network has not accepted it.
    fn send(&mut self, sign: &Sign, about: &About) -> Result<(), String>;

    /// Waits for the delivery of the last sign.
    fn flush(&mut self);

    /// Begins to publish in an epoch, with the withheld verdicts first. Returns their number; `None` if the evaluating
    /// thread does not answer.
    fn begin_publishing(&mut self, epoch: u64, limit: Duration) -> Option<usize>;

    /// Publishes up to `most` withheld verdicts. Returns whether there may be more; `None` if the evaluating thread does
    /// not answer.
    fn publish_withheld(&mut self, most: usize, limit: Duration) -> Option<bool>;

    /// Evaluates all messages, publishes their verdicts if the member may, and publishes nothing more.
    fn stop_publishing(&mut self, limit: Duration);

    /// Time of day of the first message, or that the evaluating thread does not answer; `None` once the run has ended.
    fn first_received(&mut self, limit: Duration) -> Option<Result<Option<Timestamp>, Unresponsive>>;

    /// Marks messages between two times of day as not received, since this member began later than the active one.
    fn began_late(&mut self, from: Timestamp, until: Timestamp);

    /// Whether verdicts wait in a queue.
    fn is_behind(&self) -> bool;

    /// Reports a change of the member.
    fn say(&self, text: &str);

    /// Warns.
    fn warn(&self, text: &str);
}

/// Surroundings of a member of a run.
pub(super) struct Connected {
    /// The name of the group.
    pub group: String,
    /// The pipeline, whose sinks have the permit.
    pub pipeline: Weak<Pipeline>,
    /// The publishers of verdicts.
    pub senders: Vec<Weak<dyn Publisher>>,
    /// The subscriptions to all topics.
    pub slots: Vec<TopicId>,
    /// The publisher of signs of life.
    pub publisher: Box<dyn Publisher>,
    /// The connection for signs of life alone, if there is one.
    pub connection: Option<Arc<Networks>>,
}

impl Connected {
    /// Whether the broker or the router of the group is reached, where a connection has one.
    fn is_connected(&self) -> bool {
        let is_lost = |networks: &Arc<Networks>| networks.connected().iter().any(|(_, is)| !is);
        !self.connection.as_ref().is_some_and(is_lost)
    }
}

impl Surroundings for Connected {
    fn send(&mut self, sign: &Sign, about: &About) -> Result<(), String> {
        let text = write_sign(&self.group, sign, about);
        // A connection that is lost accepts signs that no member receives.
        let sent = match self.is_connected() {
            true => self.publisher.offer(&text, OFFER).map_err(|error| error.to_string()),
            false => Err("the connection is lost".to_owned()),
        };
        self.publisher.release();
        sent
    }

    fn flush(&mut self) {
        self.publisher.flush(LAST);
    }

    fn begin_publishing(&mut self, epoch: u64, limit: Duration) -> Option<usize> {
        self.pipeline.upgrade()?.begin_publishing(epoch, limit)
    }

    fn publish_withheld(&mut self, most: usize, limit: Duration) -> Option<bool> {
        self.pipeline.upgrade()?.publish_withheld(most, limit)
    }

    fn stop_publishing(&mut self, limit: Duration) {
        if let Some(pipeline) = self.pipeline.upgrade() {
            // Without the permit, nothing is published even if the evaluating thread does not answer.
            pipeline.stop_publishing(limit);
        }
    }

    fn first_received(&mut self, limit: Duration) -> Option<Result<Option<Timestamp>, Unresponsive>> {
        Some(self.pipeline.upgrade()?.first_received(limit))
    }

    fn began_late(&mut self, from: Timestamp, until: Timestamp) {
        if let Some(pipeline) = self.pipeline.upgrade() {
            pipeline.began_late(&self.slots, from, until);
        }
    }

    fn is_behind(&self) -> bool {
        self.senders.iter().filter_map(|sender| sender.upgrade()).any(|sender| sender.is_behind())
    }

    fn say(&self, text: &str) {
        say(&format!("group '{}': {text}", self.group));
    }

    fn warn(&self, text: &str) {
        warn(&format!("group '{}': {text}", self.group));
    }
}
