//! The feed of one run: verdicts, losses and the state of its destinations, from the evaluating thread.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, Verdict};
use rondel_net::adapter::{PublishError, Publisher as _, now};
use rondel_runtime::ros2::Part;
use rondel_runtime::testing::Came;
use rondel_runtime::{Notice, Omission, PropertyInfo, Report, Summary, UndeliveredMessages};
use rondel_sinks::{Condition, Encoder, Entry, Feed, Loss, Reached, RunKey, VerdictEntry, object};

use super::held::{HeldViolation, HeldViolations};
use super::state::{DestinationHandle, DestinationState};
use crate::sinks::queue::Queued;
use crate::sinks::silenced::{Looked, Silenced};

/// Minimum interval between two notices of further losses.
const AGAIN: Duration = Duration::from_secs(10);
/// Minimum interval of writing the time that is reached and losses of messages, in nanoseconds.
const ACCOUNT: i64 = 10_000_000_000;

/// Sends the entries of one run to its destinations, from the evaluating thread. Each entry is encoded once.
pub struct DestinationFeed {
    encoder: Encoder,
    key: RunKey,
    branches: Vec<Branch>,
    routes: Routes,
    /// Silences of operators.
    silenced: Silenced,
    /// Silenced violations that are open.
    held: HeldViolations,
    /// Silences for which these were last looked at.
    silences: Looked,
    /// Time of the reports of one call.
    reported: Option<Timestamp>,
    /// Messages that were not evaluated, as far as they are known to the sinks: reason, topic and number.
    omitted: Vec<(rondel_runtime::Reason, String, u64)>,
    /// Time at which they were last written.
    looked: Timestamp,
}

/// The branches that receive verdicts, as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// Those of each property.
    pub(super) of_properties: Vec<u64>,
    /// Those that notify people.
    pub(super) notifying: u64,
}

/// The route to one destination.
pub(super) struct Branch {
    pub(super) entrance: Entrance,
    pub(super) handle: DestinationHandle,
    /// Losses of the file that the sink knows.
    pub(super) recorded: RecordedDrops,
    /// Time since which there may be further ones.
    pub(super) dropped_since: Option<Timestamp>,
    /// State that notices have shown.
    pub(super) shown: Shown,
}

/// Number of entries without room in the file of a destination that were recorded at the destination as losses. Shared by
/// the runs of a destination.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedDrops(Arc<AtomicU64>);

impl RecordedDrops {
    /// Returns how many of the entries dropped so far are not recorded yet.
    pub(super) fn missing(&self, dropped: u64) -> u64 {
        dropped.saturating_sub(self.0.load(Ordering::Relaxed))
    }

    /// Notes that these further ones are.
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

/// Returns the loss of entries without room in the file of a destination.
pub(super) fn file_loss<'a>(
    run: RunKey,
    subject: &'a str,
    count: u64,
    from: Timestamp,
    until: Timestamp,
) -> Entry<'a> {
    let (from, until) = (from.as_nanos(), until.as_nanos());
    Entry::Loss(Loss { run, reason: "file full", subject, count, from, until })
}

/// The queue that entries go to.
pub(super) enum Entrance {
    /// That of the driver.
    Direct(Feed),
    /// That before it, with a file.
    Spooled(Arc<Queued>),
}

/// State of a destination that was shown last.
#[derive(Debug, Default)]
pub(super) struct Shown {
    is_failing: bool,
    is_broken: bool,
    lost: u64,
    at: Option<Instant>,
}

impl Branch {
    /// Adds an entry. Returns whether the sink or the queue before it has accepted it.
    fn add(&mut self, entry: &[u8]) -> bool {
        match &mut self.entrance {
            Entrance::Direct(feed) => {
                feed.encoded(entry);
                true
            }
            Entrance::Spooled(queued) => {
                let published = queued.publish(entry);
                // Entries without room are counted, except those of a sink that is closed and has no file any more.
                if let Err(PublishError::Closed) = published
                    && let Some(kept) = &self.handle.kept
                {
                    kept.queue.drops().add(1, now());
                }
                published.is_ok()
            }
        }
    }

    /// Whether entries wait in the queue or the file before the sink.
    fn is_behind(&self) -> bool {
        match &self.entrance {
            Entrance::Direct(_) => false,
            Entrance::Spooled(queued) => queued.is_behind(),
        }
    }

    fn send(&mut self) {
        if let Entrance::Direct(feed) = &mut self.entrance {
            // Entries without room are counted.
            feed.send();
        }
    }
}

impl DestinationFeed {
    /// Creates the feed of a run that its destinations know by `key`.
    pub(super) fn new(
        key: RunKey,
        wants_json: bool,
        branches: Vec<Branch>,
        routes: Routes,
        silenced: Silenced,
    ) -> DestinationFeed {
        let (encoder, held, looked) = (Encoder::new(key, wants_json), HeldViolations::default(), now());
        let (silences, reported, omitted) = (Looked::default(), None, Vec::new());
        DestinationFeed {
            encoder,
            key,
            branches,
            routes,
            silenced,
            held,
            silences,
            reported,
            omitted,
            looked,
        }
    }

    /// Adds a verdict. A violation that is muted or silenced does not go to destinations that notify people. If it outlasts
    /// its silence, it goes there then.
    pub fn verdict(&mut self, report: &Report<'_>) {
        let (mut route, notifying) = (self.route(report), self.routes.notifying);
        if route & notifying != 0 {
            let (is_muted, is_silenced) = (report.because_of().is_some(), self.silenced.silences(report));
            if is_silenced || !self.held.is_empty() {
                self.hold(report, route & notifying, is_muted, is_silenced);
            }
            if is_muted || is_silenced {
                route &= !notifying;
            }
        }
        self.add(report, route);
    }

    /// Adds a violation that was muted until now, for destinations that notify people.
    pub fn unmuted(&mut self, report: &Report<'_>) {
        let route = self.route(report) & self.routes.notifying;
        if route == 0 {
            return;
        }
        if self.silenced.silences(report) {
            self.hold(report, route, false, true);
        } else {
            self.add(report, route);
            self.send();
        }
    }

    /// Holds a violation that begins in a silence, and forgets one that has ended or is notified.
    #[cold]
    fn hold(&mut self, report: &Report<'_>, route: u64, is_muted: bool, is_silenced: bool) {
        self.held.begin_lap(report.lap());
        let property = report.property();
        let parameters = object(property.parameters.iter().map(String::as_str).zip(report.parameters()));
        let instance = (property.name.clone(), parameters);
        match report.verdict() {
            // One that is muted is held once it no longer is. A stamp of a chain is judged once: nothing ends its violation.
            Verdict::Violated if is_muted || report.missing().is_some() => {}
            // With `emit: every`, the first verdict of a violation is held.
            Verdict::Violated if is_silenced && self.held.holds(&instance) => {}
            Verdict::Violated if is_silenced => {
                let reported = *self.reported.get_or_insert_with(now);
                let entry = self.encoder.verdict(report, reported).to_vec();
                self.held.hold(instance, HeldViolation { route, entry });
            }
            Verdict::Violated | Verdict::Satisfied => self.held.remove(&instance),
            // It resolves nothing.
            Verdict::Inconclusive => {}
        }
    }

    /// Adds held violations whose silence has ended, for destinations that notify people.
    fn release_held(&mut self) {
        let now = now().as_nanos();
        if self.held.is_empty() || !self.silenced.may_have_changed(&mut self.silences, now) {
            return;
        }
        let DestinationFeed { held, silenced, branches, .. } = self;
        let due = held.take_due(|property, parameters| silenced.is_silenced(property, parameters, now));
        for HeldViolation { route, entry } in &due {
            for (i, branch) in branches.iter_mut().enumerate() {
                if *route & (1 << i) != 0 {
                    branch.add(entry);
                }
            }
        }
        if !due.is_empty() {
            self.send();
        }
    }

    /// Takes the silenced violations, for the next run.
    pub fn take_silenced(&mut self) -> HeldViolations {
        std::mem::take(&mut self.held)
    }

    /// Continues silenced violations of the run before, of properties that `keeps` their state.
    pub fn continue_silenced(&mut self, before: HeldViolations, keeps: impl Fn(&str) -> bool) {
        self.held = before.of_next_run(self.key, keeps);
    }

    /// The branches that receive the verdicts of a property, as bits.
    fn route(&self, report: &Report<'_>) -> u64 {
        self.routes.of_properties.get(report.property().position as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, report: &Report<'_>, route: u64) {
        if route == 0 {
            return;
        }
        let reported = *self.reported.get_or_insert_with(now);
        let entry = self.encoder.verdict(report, reported);
        for (i, branch) in self.branches.iter_mut().enumerate() {
            if route & (1 << i) != 0 {
                branch.add(entry);
            }
        }
    }

    /// Adds an entry for all destinations.
    fn entry(&mut self, entry: &Entry<'_>) {
        let entry = self.encoder.entry(entry);
        for branch in &mut self.branches {
            branch.add(entry);
        }
    }

    fn loss(&mut self, reason: &str, subject: &str, count: u64, from: Timestamp, until: Timestamp) {
        let (from, until) = (from.as_nanos(), until.as_nanos());
        self.entry(&Entry::Loss(Loss { run: self.key, reason, subject, count, from, until }));
    }

    /// Adds a verdict of a test. It has no id.
    pub fn came(&mut self, came: &Came, property: &PropertyInfo) {
        let parameters = property.parameters.iter().map(String::as_str).zip(&came.parameters);
        let parameters = object(parameters);
        self.entry(&Entry::Verdict(VerdictEntry {
            run: self.key,
            id: None,
            property: &property.name,
            parameters: &parameters,
            verdict: came.verdict.into(),
            time: came.time.as_nanos(),
            about: came.about.map(Timestamp::as_nanos),
            is_after: false,
            reported: now().as_nanos(),
            step: came.message.map(|message| message as u64),
            lap: 1,
            robustness: None,
            values: "",
            explanation: "",
            latency: None,
            missing: "",
            because_of: "",
            json: "",
        }));
    }

    /// Sends the verdicts of one call.
    pub fn send(&mut self) {
        self.reported = None;
        self.branches.iter_mut().for_each(Branch::send);
    }

    /// Notes messages that an earlier run of the same session has lost.
    pub fn continue_from(&mut self, summary: &Summary) {
        let known = |omission: &Omission| (omission.reason, subject(omission, summary), omission.count);
        self.omitted = summary.omitted().iter().map(known).collect();
    }

    /// Adds the event time that the run has reached, and messages that were not evaluated since the last call; without
    /// `ends` at most every ten seconds.
    pub fn account<S: Borrow<Summary>>(&mut self, summary: impl FnOnce() -> S, ends: bool) {
        let (from, until) = (self.looked, now());
        if !ends && (0..ACCOUNT).contains(&until.as_nanos().saturating_sub(from.as_nanos())) {
            return;
        }
        self.looked = until;
        let summary = summary();
        let summary = summary.borrow();
        if let Some(reached) = summary.reached {
            let (time, reported) = (reached.as_nanos(), until.as_nanos());
            self.entry(&Entry::Reached(Reached { run: self.key, time, reported }));
        }
        for omission in summary.omitted() {
            let topic = subject(&omission, summary);
            let Omission { reason, count, .. } = omission;
            let known = self.omitted.iter_mut().find(|known| known.0 == reason && known.1 == topic);
            let before = match known {
                Some(known) => std::mem::replace(&mut known.2, count),
                None => {
                    self.omitted.push((reason, topic.clone(), count));
                    0
                }
            };
            // A new lap counts from zero.
            let further = count.checked_sub(before).unwrap_or(count);
            if further > 0 {
                self.loss(reason.as_str(), &topic, further, from, until);
            }
        }
        self.account_dropped(from, until);
        self.send();
    }

    /// Records entries that found no room in the files of destinations, each at its own. Drivers record those of their
    /// queues. A loss waits until the file is empty, as it would find no room, either; at the end, the destination
    /// [adds it](super::Destination::close) to the file.
    fn account_dropped(&mut self, from: Timestamp, until: Timestamp) {
        let DestinationFeed { encoder, key, branches, .. } = self;
        for branch in branches {
            let count = branch.recorded.missing(branch.handle.dropped());
            if count == 0 {
                continue;
            }
            let since = *branch.dropped_since.get_or_insert(from);
            if branch.is_behind() {
                continue;
            }
            let subject = branch.handle.handle.status().name;
            if branch.add(encoder.entry(&file_loss(*key, &subject, count, since, until))) {
                branch.recorded.add(count);
                branch.dropped_since = None;
            }
        }
    }

    /// Adds messages that consumers of another sink did not accept, if the notice is about such messages.
    pub fn note(&mut self, notice: &Notice) {
        let Some(UndeliveredMessages { sink, count, first, last }) = notice.undelivered_messages() else {
            return;
        };
        self.loss("undelivered", sink, *count, *first, *last);
        self.send();
    }

    /// Notifies of violations that outlast their silence. Returns a notice for each destination that does not accept entries
    /// any more, or does again, or has lost more.
    pub fn look(&mut self) -> Vec<Notice> {
        self.release_held();
        let looked = Instant::now();
        let look = |branch: &mut Branch| branch.shown.look(&branch.handle.state(), looked);
        self.branches.iter_mut().filter_map(look).collect()
    }

    /// State of the destinations in diagnostics.
    pub fn parts(&self) -> Vec<Part> {
        self.branches.iter().map(|branch| part(&branch.handle.state())).collect()
    }

    /// Ends the run.
    pub fn end(mut self, status: &str) {
        let end = rondel_sinks::End { run: self.key, end: now().as_nanos(), status };
        self.entry(&Entry::End(end));
        self.send();
    }
}

/// The name of the topic of messages that were not evaluated, also of a bare formula; empty if it is not known.
fn subject(omission: &Omission, summary: &Summary) -> String {
    let topic = omission.topic.and_then(|topic| summary.topics.get(topic.index()));
    omission.topic_name.clone().or_else(|| topic.map(|topic| topic.name.clone())).unwrap_or_default()
}

/// State of a destination in diagnostics.
fn part(state: &DestinationState) -> Part {
    let status = &state.status;
    let mut values = vec![
        ("stored", status.stored.to_string()),
        ("repeated", status.repeated.to_string()),
        ("waiting", state.waiting.to_string()),
        ("lost", state.lost().to_string()),
    ];
    values.extend(status.last_error.clone().map(|error| ("last error", error)));
    Part {
        name: format!("{} {}", state.role.as_str(), status.name),
        is_failing: state.is_down(),
        has_lost: state.lost() > 0,
        message: status.condition.as_str().to_owned(),
        values,
    }
}

impl Shown {
    fn look(&mut self, state: &DestinationState, now: Instant) -> Option<Notice> {
        let (is_failing, lost) = (state.is_down(), state.lost());
        let is_broken = matches!(state.status.condition, Condition::Broken { .. });
        let is_late = self.at.is_none_or(|at| now.duration_since(at) >= AGAIN);
        let has_changed = (is_failing, is_broken) != (self.is_failing, self.is_broken);
        if !(has_changed || lost > self.lost && is_late) {
            return None;
        }
        *self = Shown { is_failing, is_broken, lost, at: Some(now) };
        Some(state.shown(Notice::sink))
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::TopicId;
    use rondel_runtime::{Options, SessionPlan, Specification, Stamp};
    use rondel_sinks::Status;

    use super::super::state::Role;
    use super::*;

    #[test]
    fn undecodable_messages_of_a_formula_have_a_topic() {
        let spec = rondel_spec::parse_formula("v").spec.unwrap();
        let specification = Specification { is_formula: true, ..Specification::new(spec).unwrap() };
        let mut session = SessionPlan::of(specification, Options::default()).start().unwrap();
        assert!(session.push(TopicId(0), Stamp::at(Timestamp::ZERO), b"no JSON").is_err());
        let summary = session.summary();
        let found: Vec<String> = summary.omitted().iter().map(|own| subject(own, &summary)).collect();
        assert_eq!(found, ["trace"]);
    }

    #[test]
    fn changes_and_losses_are_shown_once() {
        let start = Instant::now();
        let mut shown = Shown::default();
        let mut look = |condition, queued, seconds| {
            let mut status = Status::default();
            (status.name, status.condition, status.queued) = ("v.db".to_owned(), condition, queued);
            status.last_error = Some("cannot write the store v.db: disk full".to_owned());
            let state = DestinationState::of(Role::Store, status);
            shown
                .look(&state, start + Duration::from_secs(seconds))
                .map(|notice| notice.text(&mut |_| String::new()))
        };
        let failing = Condition::Failing { since: 0, attempts: 1 };
        assert_eq!(look(Condition::Starting, 0, 0), None);
        assert_eq!(look(Condition::Connected, 0, 1), None);
        let expected =
            "cannot write the store v.db: disk full; 5 entries wait in memory, and writing is tried again";
        assert_eq!(look(failing, 5, 2).as_deref(), Some(expected));
        assert_eq!(look(failing, 9, 60), None);
        assert_eq!(
            look(Condition::Connected, 0, 61).as_deref(),
            Some("the store v.db accepts verdicts again")
        );
        assert_eq!(look(Condition::Connected, 0, 99), None);
    }
}
