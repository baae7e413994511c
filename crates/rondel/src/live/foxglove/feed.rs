//! From copies to messages of channels, on a thread of its own. It sleeps while no client has subscribed.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, Verdict};
use rondel_net::adapter::now;
use rondel_page::foxglove::{Hub, Level, Pending};
use rondel_runtime::text::counted;
use rondel_runtime::{Present, Summary};
use serde_json::json;

use super::channels::{Channels, PropertyChannel, stamp};
use super::copies::{CopiedVerdict, Copies, TakenVerdicts};
use super::signals::SignalTopic;
use crate::live::pipeline::Pipeline;
use crate::warn;

/// Interval of taking copies while a client has subscribed.
const INTERVAL: Duration = Duration::from_millis(50);
/// Minimum time between two looks at the copies, also if clients subscribe again and again.
const PAUSE: Duration = Duration::from_millis(20);
/// Time limit for the evaluating thread.
const LIMIT: Duration = Duration::from_millis(200);
/// Minimum time between two reports of messages that were left out, and of verdicts that were lost.
const REPORTED: Duration = Duration::from_secs(5);

/// The run that is shown.
pub(super) struct Shown {
    /// The number of the specification.
    epoch: u64,
    pipeline: Weak<Pipeline>,
    channels: Channels,
    signals: Vec<Option<SignalTopic>>,
    /// The channels whose messages are copied.
    wanted: HashSet<u32>,
    /// Messages that were left out, as they were reported last, and when.
    left_out: Vec<u64>,
    reported: Option<Instant>,
    /// Verdicts that were lost since the last report of that, and its time.
    lost: u64,
    lost_reported: Option<Instant>,
}

/// Publishes what was copied.
pub(super) struct Feed {
    pub(super) hub: Arc<Hub>,
    pub(super) copies: Arc<Copies>,
    pub(super) shown: Arc<Mutex<Option<Shown>>>,
}

/// The state of a property: the word, and the number of violated instances.
type State = (&'static str, u64);

impl Shown {
    pub(super) fn new(
        epoch: u64,
        pipeline: Weak<Pipeline>,
        channels: Channels,
        signals: Vec<Option<SignalTopic>>,
    ) -> Shown {
        Shown {
            epoch,
            pipeline,
            channels,
            signals,
            wanted: HashSet::new(),
            left_out: Vec::new(),
            reported: None,
            lost: 0,
            lost_reported: None,
        }
    }

    /// Copies what these channels need from here on.
    fn want(&mut self, copies: &Copies, wanted: HashSet<u32>) {
        let signals = &self.channels.signals;
        let is_wanted = |channel: &Option<u32>| channel.is_some_and(|channel| wanted.contains(&channel));
        let topics: Vec<bool> = signals.iter().map(is_wanted).collect();
        // All other channels have verdicts.
        let drawn = topics.iter().filter(|is_wanted| **is_wanted).count();
        copies.want(self.epoch, wanted.len() > drawn, &topics);
        self.wanted = wanted;
    }
}

impl Feed {
    /// Publishes until the end of the hub, and also ends it if this thread panics: the run goes on without the server.
    pub(super) fn run(self) {
        let _end = End { hub: &self.hub, copies: &self.copies, shown: &self.shown };
        while self.hub.wait(INTERVAL) {
            self.look();
            thread::sleep(PAUSE);
        }
    }

    /// Takes and publishes the copies, and meets new subscriptions.
    fn look(&self) {
        let mut shown = lock(&self.shown);
        let Some(shown) = shown.as_mut() else { return };
        let pending = self.hub.pending();
        if pending.is_empty() {
            self.publish_verdicts(shown, self.copies.take_verdicts());
        } else {
            self.begin(shown, &pending);
        }
        self.publish_signals(shown);
        let wanted = self.hub.subscribed();
        if wanted != shown.wanted {
            shown.want(&self.copies, wanted);
        }
    }

    /// Sends new subscriptions the present states. Between these and the verdicts that follow no message is evaluated.
    fn begin(&self, shown: &mut Shown, pending: &[Pending]) {
        let wanted = self.hub.subscribed();
        let pipeline = shown.pipeline.upgrade();
        let looked = pipeline.and_then(|pipeline| {
            pipeline.look_within(LIMIT, |summary, present| {
                shown.want(&self.copies, wanted);
                (self.copies.take_verdicts(), states(summary, present), summary.reached)
            })
        });
        let Some((taken, states, reached)) = looked else {
            // The subscriptions wait until the evaluating thread answers.
            return self.publish_verdicts(shown, self.copies.take_verdicts());
        };
        self.publish_verdicts(shown, taken);
        let time = reached.unwrap_or_else(now);
        self.hub.activate(pending, |channel| {
            let at = shown.channels.properties.iter().position(|property| property.id == channel)?;
            let property = shown.channels.properties.get(at)?;
            let state = states.get(at).copied().unwrap_or(("none", 0));
            Some((time.as_nanos(), state_message(property, state, time, "", None)))
        });
    }

    fn publish_verdicts(&self, shown: &mut Shown, taken: TakenVerdicts) {
        let TakenVerdicts { verdicts, lost } = taken;
        let channels = &shown.channels;
        // For each property with instances, the last verdict on one.
        let mut instances: BTreeMap<u32, CopiedVerdict> = BTreeMap::new();
        for mut copied in verdicts {
            let time = copied.time;
            if !copied.log.is_empty() {
                let log: Arc<[u8]> = std::mem::take(&mut copied.log).into();
                self.hub.publish(channels.verdicts, time.as_nanos(), &log);
            }
            for event in std::mem::take(&mut copied.events) {
                let event: Arc<[u8]> = event.into();
                self.hub.publish(channels.events, time.as_nanos(), &event);
            }
            let Some(property) = channels.properties.get(copied.property as usize) else { continue };
            if !shown.wanted.contains(&property.id) {
                continue;
            }
            if property.by_key {
                instances.insert(copied.property, copied);
            } else if copied.has_changed || copied.robustness.is_some() {
                let violated = u64::from(copied.verdict == Verdict::Violated);
                self.publish_state(property, (copied.verdict.as_str(), violated), &copied);
            }
        }
        if !instances.is_empty() {
            self.publish_instances(shown, &instances);
        }
        if lost > 0 {
            // The states are not known from the verdicts any more.
            self.hub.refresh();
        }
        shown.lost += lost;
        if shown.lost > 0 && is_due(shown.lost_reported) {
            let verdicts = counted(shown.lost, "verdict was", "verdicts were");
            let message = format!("{verdicts} not sent: there are more than this server can send");
            self.hub.status(Level::Warning, &message, "rondel.verdicts");
            warn(&format!("Foxglove: {verdicts} not sent"));
            (shown.lost, shown.lost_reported) = (0, Some(Instant::now()));
        }
    }

    /// Publishes the states of properties with instances: violated while an instance is.
    fn publish_instances(&self, shown: &Shown, instances: &BTreeMap<u32, CopiedVerdict>) {
        let pipeline = shown.pipeline.upgrade();
        let looked = pipeline.and_then(|own| own.look_within(LIMIT, |_, present| present.violated.clone()));
        let violated = looked.unwrap_or_default();
        for (position, copied) in instances {
            let Some(property) = shown.channels.properties.get(*position as usize) else { continue };
            let own = u64::from(copied.verdict == Verdict::Violated);
            let count = violated.get(*position as usize).copied().unwrap_or(own);
            let verdict = if count > 0 { Verdict::Violated } else { copied.verdict };
            self.publish_state(property, (verdict.as_str(), count), copied);
        }
    }

    fn publish_state(&self, property: &PropertyChannel, state: State, copied: &CopiedVerdict) {
        let CopiedVerdict { time, parameters, robustness, .. } = copied;
        let message = state_message(property, state, *time, parameters, *robustness);
        self.hub.publish(property.id, time.as_nanos(), &message);
    }

    fn publish_signals(&self, shown: &mut Shown) {
        let taken = self.copies.take_messages();
        let Some(pipeline) = shown.pipeline.upgrade() else { return };
        for message in &taken.messages {
            let at = message.topic.index();
            let channel = shown.channels.signals.get(at).copied().flatten();
            let topic = shown.signals.get_mut(at).and_then(Option::as_mut);
            let Some((channel, topic)) = channel.zip(topic) else { continue };
            if let Some((time, payload)) = topic.read(message, &pipeline) {
                let payload: Arc<[u8]> = payload.into();
                self.hub.publish(channel, time.as_nanos(), &payload);
            }
        }
        self.report_left_out(shown, taken.left_out);
    }

    /// Reports to clients how many messages the plots leave out.
    fn report_left_out(&self, shown: &mut Shown, left_out: Vec<u64>) {
        if !is_due(shown.reported) || left_out == shown.left_out || left_out.iter().all(|count| *count == 0) {
            return;
        }
        let named = shown.signals.iter().zip(&left_out).filter(|(_, count)| **count > 0);
        let texts: Vec<String> = named
            .filter_map(|(topic, count)| Some(format!("{count} of {}", topic.as_ref()?.name())))
            .collect();
        let message =
            format!("the signals leave out messages that are too many or too large: {}", texts.join(", "));
        self.hub.status(Level::Warning, &message, "rondel.signals");
        (shown.left_out, shown.reported) = (left_out, Some(Instant::now()));
    }
}

/// Whether something may be reported again that was last reported then.
fn is_due(reported: Option<Instant>) -> bool {
    reported.is_none_or(|reported| reported.elapsed() >= REPORTED)
}

/// Ends the hub and the copies with its thread.
struct End<'f> {
    hub: &'f Hub,
    copies: &'f Copies,
    shown: &'f Mutex<Option<Shown>>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.hub.end();
        // Nothing takes copies any more.
        self.copies.stop();
        *lock(self.shown) = None;
        if thread::panicking() {
            warn("the server for Foxglove has ended by a defect of Rondel; the run goes on without it");
        }
    }
}

/// Takes the lock of the run that is shown.
pub(super) fn lock(shown: &Mutex<Option<Shown>>) -> MutexGuard<'_, Option<Shown>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The present states of all properties.
fn states(summary: &Summary, present: &Present) -> Vec<State> {
    let all = summary.properties.iter().enumerate();
    let state = all.map(|(at, statistics)| {
        let violated = present.violated.get(at).copied().unwrap_or(0);
        let word = match statistics.last {
            _ if violated > 0 => Verdict::Violated.as_str(),
            Some(verdict) if statistics.by_key && verdict == Verdict::Violated => Verdict::Satisfied.as_str(),
            Some(verdict) => verdict.as_str(),
            None => "none",
        };
        (word, violated)
    });
    state.collect()
}

/// The state of a property from a time on, as JSON. `parameters` are those of the instance that has changed it.
fn state_message(
    property: &PropertyChannel,
    (word, violated): State,
    time: Timestamp,
    parameters: &str,
    robustness: Option<f64>,
) -> Arc<[u8]> {
    let mut message = json!({
        "timestamp": stamp(time), "property": property.name, "state": word, "violated": violated,
        "parameters": parameters,
    });
    if let Some(robustness) = robustness.filter(|robustness| robustness.is_finite()) {
        message["robustness"] = robustness.into();
    }
    message.to_string().into_bytes().into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn states_have_words_times_and_finite_robustness() {
        let property = PropertyChannel { id: 1, name: "p \"x\"".to_owned(), by_key: false };
        let time = Timestamp::from_nanos(1_500_000_000);
        let read = |robustness| {
            let message = state_message(&property, ("violated", 1), time, "id=7", robustness);
            serde_json::from_slice::<Value>(&message).unwrap()
        };
        assert_eq!(
            read(Some(-0.5)),
            json!({
                "timestamp": {"sec": 1, "nsec": 500_000_000}, "property": "p \"x\"", "state": "violated",
                "violated": 1, "parameters": "id=7", "robustness": -0.5,
            })
        );
        assert_eq!(read(Some(f64::INFINITY)).get("robustness"), None);
    }
}
