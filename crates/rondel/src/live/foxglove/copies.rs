//! Verdicts and messages that the evaluating thread copies while a client of Foxglove has subscribed.

// Without the server nothing reads them.
#![cfg_attr(not(feature = "foxglove"), allow(dead_code))]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId, TypeIndex, Verdict};
use rondel_net::adapter::Sample;
use rondel_runtime::Report;
use rondel_runtime::text::beginning;

use crate::output::time_text::TimeText;
use crate::recorder::{Origin, Violations, log, parameters};

/// Largest message that is copied, in bytes.
const LARGEST: usize = 256 << 10;
/// Largest message that is copied as often as [`OFTEN`], in bytes; larger ones are copied once in a [`WINDOW`].
const SMALL: usize = 4 << 10;
/// Time in which the messages of a topic are counted.
const WINDOW: Duration = Duration::from_millis(100);
/// Messages of a topic that are copied in a window: 1,000 a second.
const OFTEN: u32 = 100;
/// Maximum size of the copies that wait, in bytes.
const MESSAGES: usize = 4 << 20;
/// Maximum number and size in bytes of the verdicts that wait.
const VERDICTS: usize = 10_000;
const VERDICT_BYTES: usize = 4 << 20;
/// Largest text of an explanation, and largest verdict in its JSON form, that a log message contains, in bytes.
const EXPLANATION: usize = 16 << 10;
const JSON: usize = 48 << 10;
/// Columns of an explanation.
const WIDTH: usize = 100;

/// Copies for the thread of the server. Without a subscription the evaluating thread reads a flag for each call of a
/// network and for each group of verdicts.
#[derive(Debug, Default)]
pub struct Copies {
    wants_verdicts: AtomicBool,
    wants_messages: AtomicBool,
    /// The evaluating thread waits for this lock only while the copies are taken.
    verdicts: Mutex<Verdicts>,
    /// The evaluating thread never waits for this lock.
    messages: Mutex<Messages>,
}

#[derive(Debug, Default)]
struct Verdicts {
    /// Number of times that the specification was exchanged.
    epoch: u64,
    /// The places of the properties; `None` until the server knows the specification.
    origin: Option<Origin>,
    lasting: Violations,
    times: TimeText,
    waiting: Vec<CopiedVerdict>,
    bytes: usize,
    lost: u64,
}

#[derive(Debug, Default)]
struct Messages {
    /// The topics with subscriptions.
    wanted: Vec<bool>,
    /// For each topic the begin of its window and the messages that it still takes.
    windows: Vec<Option<(Instant, u32)>>,
    waiting: VecDeque<CopiedMessage>,
    bytes: usize,
    /// Messages of each topic for which there was no room. Those that come while the copies are taken are not counted.
    left_out: Vec<u64>,
}

/// A verdict, in the forms of the channels.
#[derive(Debug)]
pub struct CopiedVerdict {
    /// The position of its property.
    pub property: u32,
    /// Its time.
    pub time: Timestamp,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it differs from the one before.
    pub has_changed: bool,
    /// The parameters of its instance, such as `id=7`; empty without parameters.
    pub parameters: String,
    /// Its robustness, if it has one.
    pub robustness: Option<f64>,
    /// The log message, of a verdict that differs from the one before.
    pub log: Vec<u8>,
    /// Events: of a violation that has ended, and of one that has begun.
    pub events: Vec<Vec<u8>>,
}

/// A message as it was received.
#[derive(Debug)]
pub struct CopiedMessage {
    /// The topic.
    pub topic: TopicId,
    /// Its type, where its publisher has another one than the subscription.
    pub of_type: TypeIndex,
    /// The time at which it was sent, where the network knows it.
    pub source: Option<Timestamp>,
    /// The time of its arrival.
    pub arrival: Timestamp,
    /// Its bytes.
    pub payload: Box<[u8]>,
}

/// Verdicts that were copied.
#[derive(Debug, Default)]
pub struct TakenVerdicts {
    /// The verdicts, in order.
    pub verdicts: Vec<CopiedVerdict>,
    /// Number of verdicts for which there was no room.
    pub lost: u64,
}

/// Messages that were copied.
#[derive(Debug, Default)]
pub struct TakenMessages {
    /// The messages, in order.
    pub messages: VecDeque<CopiedMessage>,
    /// For each topic the number of messages so far for which there was no room.
    pub left_out: Vec<u64>,
}

impl Copies {
    fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether verdicts are copied.
    #[inline]
    pub fn wants_verdicts(&self) -> bool {
        self.wants_verdicts.load(Ordering::Relaxed)
    }

    /// Whether messages are copied.
    #[inline]
    pub fn wants_messages(&self) -> bool {
        self.wants_messages.load(Ordering::Relaxed)
    }

    /// Forgets everything: topics and properties have other numbers.
    pub fn forget(&self) {
        self.wants_messages.store(false, Ordering::Relaxed);
        *self.messages() = Messages::default();
        let verdicts = &mut *self.verdicts();
        *verdicts = Verdicts { epoch: verdicts.epoch + 1, ..Verdicts::default() };
    }

    /// Stops to copy for good.
    pub fn stop(&self) {
        self.forget();
        self.wants_verdicts.store(false, Ordering::Relaxed);
    }

    /// Sets the places of the properties. Returns the number of the specification, for [`Copies::want`].
    pub fn describe(&self, origin: Origin) -> u64 {
        let verdicts = &mut *self.verdicts();
        verdicts.origin = Some(origin);
        verdicts.epoch
    }

    /// Sets what is copied: verdicts, and the messages of these topics. Does nothing if the specification was exchanged.
    pub fn want(&self, epoch: u64, verdicts: bool, topics: &[bool]) {
        let mut own = self.verdicts();
        if own.epoch != epoch {
            return;
        }
        if !verdicts {
            // A violation that ends unseen must not be reported as one that lasts.
            own.lasting = Violations::default();
        }
        self.wants_verdicts.store(verdicts, Ordering::Relaxed);
        let messages = &mut *self.messages();
        messages.wanted = topics.to_vec();
        messages.windows.resize(topics.len(), None);
        messages.left_out.resize(topics.len(), 0);
        self.wants_messages.store(topics.contains(&true), Ordering::Relaxed);
    }

    /// Takes the verdicts since the last call.
    pub fn take_verdicts(&self) -> TakenVerdicts {
        let own = &mut *self.verdicts();
        own.bytes = 0;
        TakenVerdicts { verdicts: std::mem::take(&mut own.waiting), lost: std::mem::take(&mut own.lost) }
    }

    /// Takes the messages since the last call.
    pub fn take_messages(&self) -> TakenMessages {
        let own = &mut *self.messages();
        own.bytes = 0;
        TakenMessages { messages: std::mem::take(&mut own.waiting), left_out: own.left_out.clone() }
    }

    /// Copies a verdict.
    #[cold]
    pub fn verdict(&self, report: &Report<'_>) {
        self.verdicts().copy(report);
    }

    /// Copies received samples. `time` is the time of a simulation, if one sets the time.
    #[cold]
    pub fn receive(&self, topic: TopicId, samples: &[Sample<'_>], time: Option<Timestamp>) {
        // The server takes messages just now: nothing waits for it.
        let Ok(mut own) = self.messages.try_lock() else { return };
        let own = &mut *own;
        if own.wanted.get(topic.index()) != Some(&true) {
            return;
        }
        let now = Instant::now();
        for sample in samples {
            if !own.copy(topic, sample, time, now)
                && let Some(left_out) = own.left_out.get_mut(topic.index())
            {
                *left_out += 1;
            }
        }
    }
}

impl Verdicts {
    fn copy(&mut self, report: &Report<'_>) {
        let Some(origin) = &self.origin else { return };
        if self.waiting.len() >= VERDICTS || self.bytes >= VERDICT_BYTES {
            self.lost += 1;
            return;
        }
        let mut copied = CopiedVerdict {
            property: report.property().position,
            time: report.time(),
            verdict: report.verdict(),
            has_changed: report.changed(),
            parameters: parameters(report),
            robustness: report.robustness(),
            log: Vec::new(),
            events: Vec::new(),
        };
        if report.changed() {
            let mut verdict = Vec::new();
            report.json(&mut verdict);
            if verdict.len() > JSON {
                verdict = b"{}".to_vec();
            }
            let message = sentence(report, &copied.parameters, &mut self.times);
            log::write(report, copied.time, &message, origin, &verdict, &mut copied.log);
        }
        let ended = self.lasting.take(report, copied.time);
        let events = ended.into_iter().chain(self.lasting.begun(report));
        copied.events = events.map(|event| event.to_string().into_bytes()).collect();
        if !copied.has_changed && copied.robustness.is_none() && copied.events.is_empty() {
            // No channel shows it; with `emit: every` there is one for each message.
            return;
        }
        let events: usize = copied.events.iter().map(Vec::len).sum();
        self.bytes += copied.log.len() + events + copied.parameters.len();
        self.waiting.push(copied);
    }
}

impl Messages {
    /// Copies a sample. Returns whether there was room for it.
    fn copy(&mut self, topic: TopicId, sample: &Sample<'_>, time: Option<Timestamp>, now: Instant) -> bool {
        let length = sample.payload.len();
        let Some(window) = self.windows.get_mut(topic.index()) else { return false };
        if window.is_none_or(|(begin, _)| now.duration_since(begin) >= WINDOW) {
            *window = Some((now, OFTEN));
        }
        let Some((_, left)) = window else { return false };
        let is_small = length <= SMALL;
        // A large one needs a whole window.
        let is_due = if is_small { *left > 0 } else { *left == OFTEN };
        if !is_due || length > LARGEST || self.bytes + length > MESSAGES {
            return false;
        }
        *left = if is_small { *left - 1 } else { 0 };
        self.bytes += length;
        self.waiting.push_back(CopiedMessage {
            topic,
            of_type: sample.of_type,
            source: sample.source_time,
            arrival: time.unwrap_or_else(|| sample.arrival()),
            payload: sample.payload.into(),
        });
        true
    }
}

/// A verdict as a log message: a sentence, and the explanation of a violation below it.
fn sentence(report: &Report<'_>, parameters: &str, times: &mut TimeText) -> String {
    let mut text = report.property().name.clone();
    if !parameters.is_empty() {
        text += &format!(" [{parameters}]");
    }
    text += &format!(": {}", report.verdict().as_str());
    if let Some(other) = report.because_of() {
        text += &format!(" (because of {other})");
    }
    if let Some(robustness) = report.robustness() {
        text += &format!(", robustness {robustness}");
    }
    if let Some(explanation) = report.explanation() {
        let mut table = Vec::new();
        explanation.text(WIDTH, &mut |time| (times.text(time), None), &mut table);
        let table = String::from_utf8_lossy(&table);
        text.push('\n');
        text += beginning(&table, EXPLANATION).trim_end();
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn wanted(topics: &[bool]) -> Copies {
        let copies = Copies::default();
        let epoch = copies.describe(Origin::default());
        copies.want(epoch, true, topics);
        copies
    }

    #[test]
    fn messages_of_subscribed_topics_are_copied() {
        let copies = Copies::default();
        assert!(!copies.wants_messages() && !copies.wants_verdicts());
        copies.receive(TopicId(1), &[Sample::new(b"early", None, None)], None);
        let epoch = copies.describe(Origin::default());
        copies.want(epoch, false, &[false, true]);
        assert!(copies.wants_messages() && !copies.wants_verdicts());
        let time = Some(Timestamp::from_nanos(7));
        copies.receive(TopicId(0), &[Sample::new(b"other", None, None)], None);
        copies.receive(TopicId(1), &[Sample::new(b"own", None, None)], time);
        copies.receive(TopicId(9), &[Sample::new(b"unknown", None, None)], None);
        let taken = copies.take_messages();
        let texts: Vec<&[u8]> = taken.messages.iter().map(|message| &*message.payload).collect();
        assert_eq!(texts, [b"own"]);
        assert_eq!(taken.messages[0].arrival, Timestamp::from_nanos(7));
        assert_eq!(taken.left_out, [0, 0]);
        assert!(copies.take_messages().messages.is_empty());
    }

    #[test]
    fn fast_and_large_messages_are_thinned_and_counted() {
        let copies = wanted(&[true, true]);
        let many = [Sample::new(b"x", None, None); 250];
        copies.receive(TopicId(0), &many, None);
        let large = vec![b'x'; SMALL + 1];
        copies.receive(TopicId(1), &[Sample::new(&large, None, None); 3], None);
        let taken = copies.take_messages();
        assert_eq!(taken.messages.len(), OFTEN as usize + 1);
        assert_eq!(taken.left_out, [250 - u64::from(OFTEN), 2]);
        let too_large = vec![b'x'; LARGEST + 1];
        std::thread::sleep(WINDOW);
        copies.receive(TopicId(1), &[Sample::new(&too_large, None, None)], None);
        assert_eq!(copies.take_messages().left_out[1], 3);
    }

    #[test]
    fn memory_of_messages_is_bounded() {
        let copies = wanted(&[true; 100]);
        let large = vec![b'x'; LARGEST];
        for topic in 0..100 {
            copies.receive(TopicId(topic), &[Sample::new(&large, None, None)], None);
        }
        assert_eq!(copies.take_messages().messages.len(), MESSAGES / LARGEST);
    }

    #[test]
    fn nothing_is_copied_for_another_specification() {
        let copies = wanted(&[true]);
        copies.receive(TopicId(0), &[Sample::new(b"x", None, None)], None);
        copies.forget();
        assert!(!copies.wants_messages());
        assert!(copies.take_messages().messages.is_empty());
        copies.want(0, true, &[true]);
        assert!(!copies.wants_messages(), "the numbers are those of the specification before");
        let epoch = copies.describe(Origin::default());
        copies.want(epoch, false, &[true]);
        assert!(copies.wants_messages());
    }
}
