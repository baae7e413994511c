//! The flight recorder: keeps the last messages, and writes them to a file when a property turns violated.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rondel_decode::MessageType;
use rondel_event::{NameId, Timestamp, TopicId, TypeIndex, Verdict};
use rondel_net::adapter::{Sample, now};
use rondel_net::offers::Offers;
use rondel_recording::{Compression, CutOff, CutOffs};
use rondel_runtime::text::{counted, size};
use rondel_runtime::{Report, TopicNames};
use serde_json::{Value, json};

use super::channels::Channel;
use super::disk::{Disk, Job, Place, Status, file_name};
use super::events::{self, Violations};
use super::log::{self, Origin};
use super::ring::{Kept, Ring};
use crate::deployment::FlightSettings;
use crate::output::folder::check_writable;
use crate::warn;

/// Maximum duration of a file after its first violation, as a multiple of `after`.
const LONGEST: i64 = 10;
/// Stands for the verdicts among the topics.
const VERDICTS_TOPIC: u32 = u32::MAX;
/// Stands for the events among the topics.
const EVENTS_TOPIC: u32 = u32::MAX - 1;
/// Topics that addresses with parameters may find.
const TOPICS: usize = 10_000;

/// The topics that addresses with parameters have found, and those of publishers with another type.
struct FoundTopics {
    /// The names of each topic whose address has parameters.
    names: Vec<Option<Arc<TopicNames>>>,
    /// The further types of publishers.
    types: BTreeMap<(TopicId, TypeIndex), Arc<MessageType>>,
    numbers: BTreeMap<(TopicId, Option<NameId>, TypeIndex), u32>,
    /// The number of the next one.
    next: u32,
}

/// Keeps the last messages and verdicts, and passes those around violations on to be written.
pub struct FlightRecorder {
    settings: FlightSettings,
    origin: Origin,
    ring: Ring,
    disk: Disk,
    incident: Option<Incident>,
    lasting: Violations,
    /// The topics as files describe them, and when their messages were missed.
    channels: Vec<Channel>,
    cut_offs: CutOffs,
    found: FoundTopics,
    /// The number of topics at the start. Files describe those that were added later like found ones.
    first_found: u32,
    text: Vec<u8>,
    /// Messages that were not kept, since the memory was used up.
    refused: u64,
    /// Violations, and how many files did not reach back far enough, with the shortest reach in nanoseconds.
    violations: u64,
    short: u64,
    shortest: i64,
    /// Arrival of the last message, which may be the one that violates.
    last: Timestamp,
}

/// A file that is being written.
struct Incident {
    property: String,
    first: Timestamp,
    until: Timestamp,
    violations: u64,
    /// Reach of the messages before the violation, in nanoseconds, if shorter than set.
    reach: Option<i64>,
    refused: u64,
}

impl FlightRecorder {
    /// Starts to keep the messages of these topics, with what their publishers offer.
    ///
    /// # Errors
    /// The folder cannot be made or written to, or a thread not be started.
    pub fn start(
        settings: FlightSettings,
        channels: Vec<Channel>,
        names: Vec<Option<Arc<TopicNames>>>,
        offers: Offers,
        origin: Origin,
    ) -> io::Result<FlightRecorder> {
        std::fs::create_dir_all(&settings.folder)?;
        // Better now than with the first violation.
        check_writable(&settings.folder).map_err(io::Error::other)?;
        let (next, types) = (channels.len() as u32, BTreeMap::new());
        let (first_found, found) = (next, FoundTopics { names, types, next, numbers: BTreeMap::new() });
        let disk = Disk::start(channels.clone(), offers)?;
        disk.send(Job::Channel(VERDICTS_TOPIC, Box::new(log::channel())));
        disk.send(Job::Channel(EVENTS_TOPIC, Box::new(events::channel())));
        let ring = Ring::new(settings.memory);
        Ok(FlightRecorder {
            settings,
            origin,
            ring,
            disk,
            incident: None,
            lasting: Violations::default(),
            channels,
            cut_offs: CutOffs::default(),
            found,
            first_found,
            text: Vec::new(),
            refused: 0,
            violations: 0,
            short: 0,
            shortest: i64::MAX,
            last: Timestamp::from_nanos(i64::MAX),
        })
    }

    /// Adds a topic during the run. `topic` is its number, which is above all others.
    pub fn add_topic(&mut self, topic: TopicId, channel: Channel, names: Option<Arc<TopicNames>>) {
        let at = topic.index();
        while self.channels.len() < at {
            self.channels.push(channel.clone());
            self.found.names.push(None);
        }
        self.channels.push(channel);
        self.found.names.push(names);
    }

    /// Removes the topics from this number on, which have had no message.
    pub fn remove_topics(&mut self, first: TopicId) {
        self.channels.truncate(first.index());
        self.found.names.truncate(first.index());
    }

    /// Takes the places of other properties. `kept` has for each its position before, if it keeps its state.
    pub fn exchange(&mut self, origin: Origin, kept: &[Option<u32>]) {
        self.origin = origin;
        let now = now();
        for event in self.lasting.rearrange(kept, now) {
            self.event(&event, now);
        }
    }

    /// Sets the description of a topic once its type is resolved.
    pub fn resolve_topic(&mut self, topic: TopicId, channel: Channel) {
        let number = match topic.index() < self.first_found as usize {
            true => Some(topic.0),
            false => self.found.numbers.get(&(topic, None, TypeIndex::default())).copied(),
        };
        if let Some(number) = number {
            self.disk.send(Job::Channel(number, Box::new(channel.clone())));
        }
        if let Some(place) = self.channels.get_mut(topic.index()) {
            *place = channel;
        }
    }

    /// Marks messages of these topics as missed from a time on, up to another if that has come. A pattern stands for all
    /// topics.
    pub fn cut_off(&mut self, topics: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        let channels = topics.iter().filter_map(|topic| self.channels.get(topic.index()));
        let is_pattern = channels.clone().any(Channel::is_pattern);
        let topics = channels.filter(|_| !is_pattern).map(|channel| channel.name.clone()).collect();
        self.cut_offs.note(CutOff { from, until, topics });
    }

    /// Keeps a message that arrived at this time.
    #[inline]
    pub fn keep(&mut self, topic: TopicId, sample: &Sample<'_>, arrival: Timestamp) {
        let Sample { payload, source_time: source, origin, name, .. } = *sample;
        self.last = arrival;
        let number = match (name, sample.of_type) {
            (None, TypeIndex(0)) if topic.0 < self.first_found => Some(topic.0),
            (name, of_type) => {
                let known = self.found.numbers.get(&(topic, name, of_type)).copied();
                known.or_else(|| self.find(topic, name, of_type))
            }
        };
        match number {
            Some(topic) => self.push(Kept { topic, arrival, source, origin, payload }),
            None => self.refuse("there are too many topics"),
        }
    }

    /// Adds a further type that publishers of a topic have.
    pub fn add_type(&mut self, topic: TopicId, of_type: TypeIndex, message_type: &Arc<MessageType>) {
        self.found.types.insert((topic, of_type), Arc::clone(message_type));
    }

    /// Describes a topic that an address with parameters has found, or that has publishers of another type, and returns
    /// its number.
    #[cold]
    fn find(&mut self, topic: TopicId, name: Option<NameId>, of_type: TypeIndex) -> Option<u32> {
        if self.found.numbers.len() >= TOPICS {
            return None;
        }
        let mut channel = self.channels.get(topic.index())?.clone();
        if let Some(name) = name {
            channel = channel.named(&self.found.names.get(topic.index())?.as_ref()?.name(name)?);
        }
        if of_type != TypeIndex::default() {
            channel = channel.typed(self.found.types.get(&(topic, of_type)).map(|of| &**of));
        }
        let number = self.found.next;
        self.found.next += 1;
        self.found.numbers.insert((topic, name, of_type), number);
        self.disk.send(Job::Channel(number, Box::new(channel)));
        Some(number)
    }

    #[inline]
    fn push(&mut self, kept: Kept<'_>) {
        if !self.ring.fits(kept.payload) {
            self.seal(kept.arrival);
        }
        if self.ring.push(kept).is_err() {
            self.refuse_for_memory();
        }
    }

    /// Returns the start time of the file of a violation at this time. The last message is always included.
    fn begin(&self, now: Timestamp) -> Timestamp {
        earlier(now, self.settings.before).min(self.last)
    }

    #[cold]
    fn refuse_for_memory(&mut self) {
        self.refuse(&format!("{} of memory are used up", size(self.settings.memory)));
    }

    #[cold]
    fn refuse(&mut self, why: &str) {
        self.refused += 1;
        if self.refused == 1 {
            warn(&format!("the flight recorder cannot keep a message: {why}; further ones are only counted"));
        }
    }

    /// Seals the segment that is full, and passes it on while a file is written.
    #[cold]
    fn seal(&mut self, now: Timestamp) {
        let sealed = self.ring.seal(self.begin(now));
        let (Some(segment), Some(incident)) = (sealed, &self.incident) else { return };
        let until = incident.until;
        self.disk.send(Job::Write(segment, until));
        if now > until {
            self.close(now);
        }
    }

    /// Seals the open segment, and passes on its messages up to a time.
    fn pass_on(&mut self, until: Timestamp) {
        if let Some(segment) = self.ring.seal(self.begin(until)) {
            self.disk.send(Job::Write(segment, until));
        }
    }

    /// Takes a verdict; if a property turns violated, the kept messages are written to a file.
    pub fn take(&mut self, report: &Report<'_>) {
        let (now, mut text) = (now(), std::mem::take(&mut self.text));
        self.tick(now);
        text.clear();
        let name = &report.property().name;
        let message = format!("{name}: {}", report.verdict().as_str());
        let mut verdict = Vec::new();
        report.json(&mut verdict);
        log::write(report, now, &message, &self.origin, &verdict, &mut text);
        self.push(Kept { topic: VERDICTS_TOPIC, arrival: now, source: None, origin: None, payload: &text });
        self.text = text;
        if report.verdict() == Verdict::Violated && report.changed() {
            self.violated(&report.property().name, now);
        }
        if let Some(event) = self.lasting.take(report, now) {
            self.event(&event, now);
        }
    }

    /// Keeps an event that ends at this time.
    fn event(&mut self, event: &Value, now: Timestamp) {
        let text = event.to_string().into_bytes();
        self.push(Kept { topic: EVENTS_TOPIC, arrival: now, source: None, origin: None, payload: &text });
    }

    fn violated(&mut self, property: &str, now: Timestamp) {
        self.violations += 1;
        let FlightSettings { before, after, .. } = self.settings;
        if let Some(incident) = &mut self.incident {
            incident.violations += 1;
            let longest = later(incident.first, after.saturating_mul(LONGEST));
            incident.until = later(now, after).min(longest);
            return;
        }
        let from = self.begin(now);
        self.ring.seal(from);
        let segments: Vec<_> = self.ring.sealed().cloned().collect();
        let begins = segments.first().map_or(now, |first| first.first);
        let reach = now.as_nanos() - begins.as_nanos();
        let is_short = self.ring.forgotten().is_some_and(|forgotten| forgotten >= from);
        if is_short {
            self.short += 1;
            self.shortest = self.shortest.min(reach);
            if self.short == 1 {
                warn(&format!(
                    "the flight recorder reaches back {} of {}: {} of memory are used up",
                    seconds(reach),
                    seconds(before),
                    size(self.settings.memory)
                ));
            }
        }
        let place = Place {
            file: self.settings.folder.join(file_name(now, property)),
            compression: Compression::Zstd,
            keep: Some(self.settings.keep),
            split: (None, None),
        };
        self.disk.send(Job::Begin(Box::new(place), segments, from));
        self.incident = Some(Incident {
            property: property.to_owned(),
            first: now,
            until: later(now, after),
            violations: 1,
            reach: is_short.then_some(reach),
            refused: self.refused,
        });
    }

    /// Ends the file once its time is over.
    pub fn tick(&mut self, now: Timestamp) {
        if self.incident.as_ref().is_some_and(|incident| now > incident.until) {
            self.seal(now);
            self.close(now);
        }
    }

    /// Ends the file, if one is being written.
    fn close(&mut self, now: Timestamp) {
        let Some(incident) = self.incident.take() else { return };
        let Incident { property, first, until, violations, reach, refused } = incident;
        let FlightSettings { before, after, .. } = self.settings;
        // A lasting violation has its event in this file, up to the end of the file.
        let end = until.min(now);
        let events = self.lasting.end(end);
        for event in &events {
            let text = event.to_string().into_bytes();
            if !self.ring.fits(&text) {
                self.pass_on(end);
            }
            let kept = Kept { topic: EVENTS_TOPIC, arrival: end, source: None, origin: None, payload: &text };
            if self.ring.push(kept).is_err() {
                self.refuse_for_memory();
            }
        }
        if !events.is_empty() {
            self.pass_on(end);
        }
        let note = |name: &str, value: String| (name.to_owned(), value);
        let mut notes = vec![
            note("property", property),
            note("time", format!("{}", first.as_nanos())),
            note("violations", violations.to_string()),
            note("before", seconds(before)),
            note("after", seconds(after)),
            note("not_kept", (self.refused - refused).to_string()),
            note("until", end.as_nanos().to_string()),
        ];
        notes.extend(reach.map(|reach| note("reaches_back", seconds(reach))));
        let missed = self.cut_offs.within(earlier(first, before), end);
        notes.extend((!missed.is_empty()).then(|| note("cut_offs", missed.text())));
        self.disk.send(Job::End(notes));
    }

    /// Ends recording: a file that is being written is finished with what there is. Returns what was recorded;
    /// `is_done` is not set if writing took longer than `limit`.
    pub fn end(mut self, limit: Duration) -> FlightSummary {
        let now = now();
        self.seal(now);
        self.close(now);
        let is_done = self.disk.end(limit);
        let FlightRecorder { refused, violations, short, shortest, settings, .. } = self;
        let status = Arc::clone(self.disk.status());
        let shortest = (short > 0).then_some(shortest);
        FlightSummary { status, refused, violations, short, shortest, settings, is_done }
    }
}

/// Statistics of a flight recorder.
#[derive(Debug)]
pub struct FlightSummary {
    status: Arc<Status>,
    settings: FlightSettings,
    refused: u64,
    violations: u64,
    short: u64,
    shortest: Option<i64>,
    is_done: bool,
}

impl FlightSummary {
    /// Whether every message that should be in a file is in one.
    pub fn is_complete(&self) -> bool {
        let lost = self.status.lost.load(std::sync::atomic::Ordering::Relaxed);
        self.is_done && lost + self.refused == 0 && self.status.failure().is_none()
    }

    /// Returns the statistics as JSON.
    pub fn json(&self) -> Value {
        let order = std::sync::atomic::Ordering::Relaxed;
        let files = self.status.files();
        let files =
            files.iter().map(|(file, count)| json!({"file": file.display().to_string(), "messages": count}));
        json!({
            "violations": self.violations,
            "files": files.collect::<Vec<_>>(),
            "removed": self.status.removed.load(order),
            "written": self.status.written.load(order),
            "lost": self.status.lost.load(order),
            "not_kept": self.refused,
            "short": self.short,
            "reaches_back": self.shortest.map(|nanos| nanos as f64 / 1e9),
            "failure": self.status.failure(),
            "finished": self.is_done,
        })
    }

    /// Returns sentences for the summary.
    pub fn sentences(&self) -> Vec<String> {
        let folder = self.settings.folder.display();
        let mut all = Vec::new();
        if self.violations > 0 {
            let violations = counted(self.violations, "violation", "violations");
            all.push(format!("recorded {violations}: {} in {folder}", self.status));
        }
        if let Some(reach) = self.shortest {
            let files = counted(self.short, "file reaches", "files reach");
            all.push(format!(
                "{files} back less than {}, the shortest {}: {} of memory were used up",
                seconds(self.settings.before),
                seconds(reach),
                size(self.settings.memory)
            ));
        }
        if self.refused > 0 {
            let messages = counted(self.refused, "message was", "messages were");
            all.push(format!("{messages} not kept for recording: the memory was used up"));
        }
        all.extend(self.status.failure().map(|reason| format!("recording: {reason}")));
        if !self.is_done {
            all.push("recording did not end in time: the last file may not be finished".to_owned());
        }
        all
    }
}

fn earlier(time: Timestamp, nanos: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_sub(nanos))
}

fn later(time: Timestamp, nanos: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}

/// A duration in seconds, to the millisecond.
fn seconds(nanos: i64) -> String {
    let millis = (nanos as f64 / 1e6).round() / 1e3;
    format!("{millis} s")
}
