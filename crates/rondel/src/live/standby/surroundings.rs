//! Surroundings of a member: its pipeline, and the network of its group. A simulation has others.

use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::Publisher;
use rondel_runtime::SessionPlan;

use super::election::Sign;
use super::message::{About, write_answer, write_request, write_sign};
use super::transfer::{Answer, Request, Route, pack, unpack};
use crate::live::networks::Networks;
use crate::live::pipeline::{Joined, MemberState, Pipeline, Unresponsive};
use crate::{say, warn};

/// Time limit for the network to accept a sign of life. On Zenoh it waits for members alone, and not for slow consumers of
/// verdicts, from this limit on.
const OFFER: Duration = Duration::from_millis(10);
/// Time limit for the network to accept a message of a transfer. On Zenoh one that would have to wait is not sent.
const OFFER_PART: Duration = Duration::from_millis(5);
/// Time limit for delivering the last sign.
const LAST: Duration = Duration::from_millis(200);

/// The outcome of work on another thread, with the number of its transfer.
pub(super) enum Outcome {
    /// A state and its step, or the reason why there is none.
    Saved(u64, Result<(Vec<u8>, u64), String>),
    /// A state was joined, or not for a reason.
    Joined(u64, Result<Joined, String>),
}

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

    /// Number of outages of the networks of its topics that have ended.
    fn outages(&self) -> u64;

    /// Marks messages between two times of day as not received, since this member began later than the active one. Returns
    /// false if the evaluating thread does not answer.
    fn began_late(&mut self, from: Timestamp, until: Timestamp, limit: Duration) -> bool;

    /// Sends a request for the state of another member. It is repeated if it is lost.
    fn request(&mut self, route: Route, request: &Request);

    /// Sends an answer to it, which is requested again if it is lost.
    fn answer(&mut self, route: Route, answer: &Answer);

    /// Begins to note the identities of messages. Returns false if the evaluating thread does not answer.
    fn note_identities(&mut self, limit: Duration) -> bool;

    /// Ends to note them.
    fn end_noting(&mut self, limit: Duration);

    /// Begins to take a snapshot for a transfer, on another thread.
    fn save(&mut self, transfer: u64);

    /// Begins to note the messages that the state of another member may contain. Returns false if the evaluating thread does
    /// not answer.
    fn begin_keeping(&mut self, limit: Duration) -> bool;

    /// Keeps copies of messages from here on. Returns as `begin_keeping`.
    fn copy_messages(&mut self, limit: Duration) -> bool;

    /// Records that the state must contain the messages so far. Returns as `begin_keeping`.
    fn mark_copies(&mut self, limit: Duration) -> bool;

    /// Forgets the copies.
    fn end_keeping(&mut self, limit: Duration);

    /// Begins to join the state of a transfer, on another thread.
    fn join(&mut self, transfer: u64, state: Vec<u8>);

    /// The next outcome of work on another thread.
    fn outcome(&mut self) -> Option<Outcome>;

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
    /// The connections for signs of life alone, if there are any.
    pub connections: Vec<Arc<Networks>>,
    /// The plan of the session.
    pub plan: Arc<SessionPlan>,
    /// The outcomes of work on other threads.
    pub outcomes: (mpsc::Sender<Outcome>, mpsc::Receiver<Outcome>),
}

impl Connected {
    /// Whether the broker or the router of the group is reached, where a connection has one.
    fn is_connected(&self) -> bool {
        let is_lost = |networks: &Arc<Networks>| networks.connected().iter().any(|(_, is)| !is);
        !self.connections.iter().any(is_lost)
    }

    /// Sends a message of a transfer. One that is not accepted counts as lost.
    fn offer(&mut self, text: &[u8]) {
        if self.is_connected() {
            _ = self.publisher.offer(text, OFFER_PART);
            self.publisher.release();
        }
    }

    /// Calls a function with the pipeline on a thread of its own, and keeps the outcome. Without a pipeline the run has
    /// ended.
    fn start(&self, work: impl FnOnce(&Pipeline) -> Outcome + Send + 'static, failed: Outcome) {
        let (pipeline, outcomes) = (Weak::clone(&self.pipeline), self.outcomes.0.clone());
        let work = move || {
            if let Some(pipeline) = pipeline.upgrade() {
                // The receiver is gone when the member has ended.
                _ = outcomes.send(work(&pipeline));
            }
        };
        if thread::Builder::new().name("state".into()).spawn(work).is_err() {
            _ = self.outcomes.0.send(failed);
        }
    }

    /// Calls a function with the pipeline; false if there is none any more.
    fn is_done(&self, act: impl FnOnce(&Pipeline) -> bool) -> bool {
        self.pipeline.upgrade().is_some_and(|pipeline| act(&pipeline))
    }
}

/// The reason why there is no state.
const NO_THREAD: &str = "no thread can be started";

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

    fn outages(&self) -> u64 {
        self.pipeline.upgrade().map_or(0, |pipeline| pipeline.outages())
    }

    fn began_late(&mut self, from: Timestamp, until: Timestamp, limit: Duration) -> bool {
        self.is_done(|pipeline| pipeline.began_late(&self.slots, from, until, limit))
    }

    fn request(&mut self, route: Route, request: &Request) {
        let text = write_request(&self.group, route, request);
        self.offer(&text);
    }

    fn answer(&mut self, route: Route, answer: &Answer) {
        let text = write_answer(&self.group, route, answer);
        self.offer(&text);
    }

    fn note_identities(&mut self, limit: Duration) -> bool {
        self.is_done(|pipeline| pipeline.note_identities(&self.plan, limit))
    }

    fn end_noting(&mut self, limit: Duration) {
        // Otherwise they are forgotten with the next transfer: their number is limited.
        self.is_done(|pipeline| pipeline.end_noting(limit));
    }

    fn save(&mut self, transfer: u64) {
        let save = move |pipeline: &Pipeline| {
            let saved: Result<MemberState, String> = pipeline.state_for_member();
            Outcome::Saved(transfer, saved.map(|of| (pack(&of.identities, &of.snapshot), of.step)))
        };
        self.start(save, Outcome::Saved(transfer, Err(NO_THREAD.to_owned())));
    }

    fn begin_keeping(&mut self, limit: Duration) -> bool {
        self.is_done(|pipeline| pipeline.begin_keeping(&self.plan, limit))
    }

    fn copy_messages(&mut self, limit: Duration) -> bool {
        self.is_done(|pipeline| pipeline.copy_messages(limit))
    }

    fn mark_copies(&mut self, limit: Duration) -> bool {
        self.is_done(|pipeline| pipeline.mark_copies(limit))
    }

    fn end_keeping(&mut self, limit: Duration) {
        // Otherwise they are forgotten with the next transfer: their number is limited.
        self.is_done(|pipeline| pipeline.end_keeping(limit));
    }

    fn join(&mut self, transfer: u64, state: Vec<u8>) {
        let plan = Arc::clone(&self.plan);
        let join = move |pipeline: &Pipeline| {
            let joined = match unpack(state) {
                Some((identities, snapshot)) => pipeline.join_state(&plan, &identities, &snapshot),
                None => Err("its state is too short".to_owned()),
            };
            Outcome::Joined(transfer, joined)
        };
        self.start(join, Outcome::Joined(transfer, Err(NO_THREAD.to_owned())));
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcomes.1.try_recv().ok()
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
