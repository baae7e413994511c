//! The end of a run: drains and closes subscriptions, flushes publishers, and leaves the networks.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::Publisher;
use rondel_net::durability::Snapshots;

use super::Running;
use super::subscriber::Subscriber;
use super::summary::RunSummary;
use crate::live::acting::Acting;
use crate::live::listener::Outcome;
use crate::live::losses::Unconfirmed;
use crate::live::pipeline::{Pipeline, Stop};
use crate::live::standby::Membership;
use crate::live::standby::state::GroupState;
use crate::sinks::actions::ActionSummary;

/// Part of the time limit that is reserved for the summary and the exit of the process.
const EXIT: Duration = Duration::from_millis(600);
/// Part of the time limit that is reserved for closing the networks.
const LEAVE: Duration = Duration::from_millis(700);
/// Minimum time that a woken publisher gets to return.
const WAKE: Duration = Duration::from_millis(300);

impl Running {
    /// Ends gracefully: checks everything received and publishes its verdicts. `None` when a subscriber of
    /// the verdicts blocks.
    pub fn end(self, why: Stop) -> Option<RunSummary> {
        let end = Instant::now() + self.end_within.saturating_sub(EXIT);
        let deadline = end - LEAVE;
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let (membership, retired) = retire(self.membership);
        // Before their subscription is closed.
        let partitions = self.listener.networks().partitions();
        // On DDS a subscription ends when nothing more waits. Messages may come faster than they are checked.
        let receiving = left(deadline).saturating_sub(WAKE);
        // The rest is for the evaluation of the last messages.
        let closed = self.listener.close(why, receiving * 4 / 9, receiving);
        if !closed.is_closed {
            closed.networks.wake();
        }
        end_late(&self.pipeline, &self.subscriber, retired.as_ref(), left(deadline).max(WAKE));
        // Another member goes on, too.
        let resumable = self.snapshots.is_some() || membership.is_some() || retired.is_some();
        let ended = self.pipeline.end(resumable.then_some(closed.is_closed), left(deadline).max(WAKE));
        let Some(publishers) = ended else {
            // Accepted verdicts are written all the same.
            self.destinations.close(WAKE);
            end_actions(self.acting, WAKE);
            return None;
        };
        self.losses.end();
        self.attendants.end();
        let recorded = self.pipeline.end_recording(left(deadline).max(WAKE));
        // A panic of the thread has been reported.
        let _ = self.keeper.map(JoinHandle::join);
        let mut flushed = closed.is_closed && self.flushed;
        flushed &= flush_all(&publishers, deadline, Duration::ZERO);
        // Afterwards: a standby takes over at once.
        let standby = membership.map(Membership::end).or(retired);
        // Afterwards: programs take as long as they like.
        let (acted, acting) = end_actions(self.acting, left(deadline).max(WAKE));
        flushed &= flush_all(&acting, deadline, WAKE);
        let mut unconfirmed = unconfirmed(self.unconfirmed, &self.addressed);
        // Afterwards: verdicts that were not delivered are not forgotten.
        let kept = self.snapshots.map_or(Ok(()), Snapshots::end);
        let driven = self.destinations.close(left(deadline).max(WAKE));
        let dead_letters = closed.networks.dead_letters(left(deadline).max(WAKE));
        dead_letters.iter().for_each(|counts| unconfirmed.add_dead_letters(counts));
        if let Some(metrics) = self.metrics {
            metrics.end();
        }
        drop((publishers, acting));
        let refused = closed.networks.refused();
        let refused_participants = closed.networks.refused_participants();
        let is_joined = !closed.networks.is_any_awaited();
        let outcome = closed.leave(left(end));
        // After closing: until then a consumer may be cut off.
        let (mut summary, mut traffic) = self.pipeline.summary();
        let topics = &self.subscriber.topics;
        outcome.add_recovered(&mut summary.accounts, |number| {
            topics.iter().position(|topic| topic.slot == number)
        });
        let Outcome { problems, unread, outages, is_left, .. } = outcome;
        flushed &= is_left;
        traffic.unpublished += refused;
        traffic.published -= traffic.published.min(self.queues.iter().map(|queue| queue.withdrawn()).sum());
        Some(RunSummary {
            summary,
            traffic,
            counted: why == Stop::Count,
            problems,
            published: self.published,
            spec: self.spec,
            kept,
            flushed,
            undelivered: self.undelivered,
            unconfirmed,
            spools: self.spools,
            recorded,
            partitions,
            dead_letters,
            outages,
            is_joined,
            refused_participants,
            unread,
            workers: self.pipeline.workers(),
            failure: self.pipeline.failure(),
            clock: self.pipeline.clock_account(),
            reloads: self.reloads,
            past: self.past,
            gates: self.pipeline.gates(),
            audit: None,
            pushes: None,
            standby,
            driven,
            acted,
        })
    }
}

/// Ends the actions; returns their account and their publishers.
fn end_actions(acting: Option<Acting>, limit: Duration) -> (Option<ActionSummary>, Vec<Arc<dyn Publisher>>) {
    match acting {
        None => (None, Vec::new()),
        Some(Acting { actions, publishers }) => (Some(actions.end(limit)), publishers),
    }
}

/// Lets a standby leave its group: it must not take over any more. An active member stays until its verdicts are published.
fn retire(membership: Option<Membership>) -> (Option<Membership>, Option<GroupState>) {
    match membership {
        Some(standby) if !standby.is_active() => (None, Some(standby.end())),
        active => (active, None),
    }
}

/// Lets the last verdicts of a late standby be inconclusive where they depend on messages that it has not received.
fn end_late(pipeline: &Pipeline, subscriber: &Subscriber, standby: Option<&GroupState>, limit: Duration) {
    if let Some(standby) = standby.filter(|standby| standby.is_late) {
        let slots: Vec<TopicId> = subscriber.topics.iter().map(|topic| topic.slot).collect();
        pipeline.end_late(&slots, standby.unmarked, limit);
    }
}

/// Adds the messages that the consumers of publishers have not confirmed.
fn unconfirmed(mut all: Unconfirmed, publishers: &[(String, Weak<dyn Publisher>)]) -> Unconfirmed {
    for (sink, publisher) in publishers {
        if let Some(publisher) = publisher.upgrade() {
            all.add(sink, &*publisher);
        }
    }
    all
}

/// Flushes publishers until a deadline, each for at least `least`. Returns whether everything was handed over.
fn flush_all(publishers: &[Arc<dyn Publisher>], deadline: Instant, least: Duration) -> bool {
    let mut flushed = true;
    for publisher in publishers {
        flushed &= publisher.flush(deadline.saturating_duration_since(Instant::now()).max(least));
    }
    flushed
}
