//! Recordings of messages as they were on a network.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use indicatif::ProgressBar;
use rondel_event::{NameId, Origin, Timestamp, TopicId};
use rondel_recording::{
    CutOff, End, OpenError, Opened, Progress, RecordedMessage, RecordedTopic, Recording, RecordingError,
    Selection,
};
use rondel_runtime::{Clock as _, ManualClock, Reason, Session, Stamp, TimeSource};

use super::checking::{Checking, Notices, Read, Stopped};
use super::choice::{behind, cut_off};
use super::kept::{Kept, kept_before};
use super::reading::{Reading, wanted};
use super::{Check, OnError};
use crate::commands::selecting::missing;
use crate::output::VerdictWriter;
use crate::time_text::TimeText;
use crate::warn;

/// After so many messages time passes for topics that are silent, and the progress is shown.
const STEP: u64 = 64;

/// How often what time alone decides is looked for at the end; each time takes some deadlines.
const POLLS: u32 = 100_000;

/// Which time of a recorded message counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum StampOf {
    /// When it was recorded
    #[default]
    Log,
    /// When it was published
    Publish,
}

/// The sequence numbers of a recorded topic: they count if the second follows the first, until one goes back.
#[derive(Clone, Copy, Debug, Default)]
enum Numbers {
    #[default]
    None,
    First(u32),
    After(u32),
    Unused,
}

impl Numbers {
    /// The number of the message, if it counts.
    #[inline]
    fn see(&mut self, number: u32) -> bool {
        let (next, counts) = match *self {
            Numbers::None => (Numbers::First(number), true),
            Numbers::First(before) if before.checked_add(1) == Some(number) => (Numbers::After(number), true),
            Numbers::After(before) if number > before => (Numbers::After(number), true),
            _ => (Numbers::Unused, false),
        };
        *self = next;
        counts
    }
}

impl Checking<'_> {
    /// Checks a recording of messages.
    pub(super) fn messages(
        &mut self,
        path: &Path,
        mut recording: Box<dyn Recording>,
        restored: Option<Session>,
    ) -> Result<(), Stopped> {
        let name = self.options.name(path);
        let started = Instant::now();
        let stop = |error: &dyn std::fmt::Display| Stopped::because(&format!("{name}: {error}"));
        let misused = |error: &str| Stopped::misused(&format!("{name}: {error}"));
        let schemas = Arc::clone(&self.schemas);
        let reading = Reading::new(self.options, &mut self.plan, &schemas, recording.topics());
        let Reading { topics, of_types, undecodable } = reading.map_err(|error| {
            let stopped = misused(&error);
            // What seems to be missing may be behind the cut.
            cut_off(path).map_or(stopped, |cut| Stopped::because(&behind(&cut)))
        })?;
        for (topic, reason) in &undecodable {
            warn(&format!(
                "{name}: cannot decode the messages on {}: {reason}",
                recording.topics()[*topic].name
            ));
        }
        let selection = self.selection(&*recording, &topics).map_err(|error| misused(&error))?;
        let (first, last) = (selection.from, selection.until);
        let begins_before = recording.span().is_some_and(|(begin, _)| begin < first);
        let kept = if begins_before { self.kept(path, &selection.topics, first) } else { Ok(Vec::new()) };
        recording.select(selection);
        for (topic, target) in topics.iter().enumerate() {
            if let Some(target) = target {
                recording.want(topic, &wanted(&self.plan, *target));
            }
        }
        // After the last message time passes as in a live run: not where another part follows, or time is simulated.
        let Check { snapshot_to, in_simulated_time, .. } = self.options;
        let passes = restored.is_none() && snapshot_to.is_none() && !in_simulated_time;
        // The times of each recording begin anew.
        let clock = Arc::new(ManualClock::default());
        let mut session = match restored {
            Some(session) => session,
            None => {
                self.plan.set_clock(clock.clone());
                self.plan.start().map_err(|error| stop(&error))?
            }
        };
        if let Some(reports) = &mut self.reports {
            reports.begin();
        }
        let is_aligned = self.plan.alignment().is_needed();
        let publish = self.options.stamp == Some(StampOf::Publish) || self.is_deployment;
        if !publish {
            for name in self.plan.latencies(&TimeSource::Source) {
                warn(&format!(
                    "`latency({name})` is unknown: the time of messages on {name} is that of their recording; choose that of \
                     their publishing with `--stamp publish`, or a field with `--time-field`"
                ));
            }
        }
        let mut writer = VerdictWriter::new(self.plan.properties(), self.options.format, self.colour);
        let (mut reported, mut text) = (Notices::new(), Vec::new());
        let mut numbers = vec![Numbers::default(); topics.len()];
        // Of rows some may have no time.
        let is_row = |topic: &RecordedTopic, target: &Option<TopicId>| {
            let input = target.and_then(|target| self.plan.input(target));
            topic.is_rows && input.is_some_and(|input| input.time.field().is_none())
        };
        let has_rows: Vec<bool> =
            recording.topics().iter().zip(&topics).map(|(topic, target)| is_row(topic, target)).collect();
        let names: Vec<Option<NameId>> = recording
            .topics()
            .iter()
            .zip(&topics)
            .map(|(recorded, target)| self.plan.names((*target)?)?.number(&recorded.name))
            .collect();
        let bar = self.progress_bar(recording.progress().size);
        let mut outcome = Ok(());
        let recorded = recording.end();
        let mut cut_offs = CutOffTimes::new(&recorded, recording.topics(), &topics);
        let mut count = 0_u64;
        if begins_before {
            clock.set(first);
            session.begins_at(first);
            let stamp = Stamp { source: Some(first), arrival: Some(first), ..Stamp::default() };
            for Kept { topic, payload } in kept.as_deref().unwrap_or_default() {
                let Some(target) = topics[*topic] else { continue };
                let stamp = Stamp { name: names[*topic], of_type: of_types[*topic], ..stamp };
                match undecodable.get(topic) {
                    Some(reason) => session.push_undecodable(target, stamp, reason),
                    None => drop(session.push(target, stamp, payload)),
                }
            }
            if let Err(error) = &kept {
                session.missing(
                    Reason::Skipped,
                    1,
                    &format!("before {}: {error}", TimeText::default().text(first)),
                );
            }
        }
        loop {
            match recording.next() {
                Ok(Some(message)) => {
                    let RecordedMessage { topic, log_time, publish_time, is_timed, sequence, payload } =
                        message;
                    let Some(target) = topics[topic] else { continue };
                    if has_rows[topic] {
                        session.note_own_time(target, log_time, is_timed);
                    }
                    let counts = numbers[topic].see(sequence);
                    let origin = Origin { publisher: topic as u64, number: sequence.into() };
                    let stamp = Stamp {
                        source: Some(if publish { publish_time } else { log_time }),
                        arrival: Some(log_time),
                        origin: counts.then_some(origin),
                        name: names[topic],
                        of_type: of_types[topic],
                    };
                    cut_offs.pass(log_time, &clock, &mut session);
                    clock.set(log_time);
                    match undecodable.get(&topic) {
                        Some(reason) => session.push_undecodable(target, stamp, reason),
                        // The session counts what cannot be decoded.
                        None => drop(session.push(target, stamp, payload)),
                    }
                    count += 1;
                    if count.is_multiple_of(STEP) {
                        if is_aligned {
                            session.poll();
                        }
                        if let Some(bar) = &bar {
                            show(bar, recording.progress(), log_time);
                        }
                        if self.has_ended() {
                            break;
                        }
                    }
                }
                Ok(None) => break,
                Err(RecordingError::Row { line, reason, topics: missing, .. })
                    if self.options.on_error == OnError::Skip =>
                {
                    let missing: HashSet<TopicId> =
                        missing.iter().filter_map(|topic| topics[*topic]).collect();
                    let missing = missing.into_iter().collect::<Vec<_>>();
                    session.unreadable(&missing, &format!("line {line}: {reason}"));
                    self.found.skipped += 1;
                }
                Err(error) => {
                    if let Err(stopped) = self.damaged(error, &topics, &mut session, &mut outcome) {
                        outcome = Err(stopped);
                        break;
                    }
                }
            }
            if session.has_reports() || session.has_notices() {
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let is_whole = outcome.is_ok() && !self.out.is_closed();
        if let Some(until) = recorded.until {
            cut_offs.pass(until.min(last), &clock, &mut session);
        }
        // Messages that came at the end and are in no file would be taken for a silence.
        let is_told = is_whole && passes && recorded.unwritten == 0;
        if let Some(until) = recorded.until.filter(|_| is_told) {
            // The last messages count at the times at which they came.
            session.flush();
            clock.set(until.min(last));
            for _ in 0..POLLS {
                let due = session.poll();
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
                if due.is_none_or(|due| due > clock.ticks()) {
                    break;
                }
            }
            session.end_now();
        }
        // Where the recording says how many messages it has.
        let all = recording.topics().iter().zip(&topics).filter(|(_, target)| target.is_some());
        let all: Option<u64> = all.map(|(topic, _)| topic.messages).sum();
        if let Some(all) =
            all.filter(|_| is_whole && (self.options.from.is_some() || self.options.to.is_some()))
        {
            session.left_out(all.saturating_sub(count));
        }
        let End { lost, refused, unwritten, unread, .. } = recorded;
        session.missing(Reason::Lost, lost, "on the way to the recorder");
        session.missing(Reason::Dropped, refused.saturating_add(unwritten), "by the recorder");
        session.missing(Reason::OtherType, unread, "topics or publishers that the recorder could not read");
        self.found.parts.extend(&recorded.parts);
        self.end(&mut session, &mut writer, &mut reported, &mut outcome);
        let unread = recording.topics().iter().zip(&topics).filter(|(_, target)| target.is_none());
        let others = unread.map(|(topic, _)| (topic.name.clone(), topic.messages.unwrap_or(0))).collect();
        let remarks = if recorded.is_complete() { Vec::new() } else { vec![missing(&recorded)] };
        let read = Read { remarks, others, is_whole: outcome.is_ok() };
        self.account(&name, (&session, started), "message", read);
        outcome
    }

    /// The messages before a time that publishers keep for later subscribers.
    fn kept(&self, path: &Path, is_read: &[bool], from: Timestamp) -> Result<Vec<Kept>, RecordingError> {
        match self.options.open(path, &self.plan) {
            Ok(Opened::Messages(mut recording)) => kept_before(&mut *recording, is_read, from),
            Err(OpenError::Messages(error)) => Err(error),
            // It could be opened before.
            Ok(Opened::Lines(_)) | Err(OpenError::Lines(_)) => Ok(Vec::new()),
        }
    }

    /// Takes note of a part that cannot be read. With an error, reading ends.
    fn damaged(
        &mut self,
        error: RecordingError,
        topics: &[Option<TopicId>],
        session: &mut Session,
        outcome: &mut Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let skips = self.options.on_error == OnError::Skip;
        match &error {
            RecordingError::Damage { topics: missing, .. } => {
                let targets: HashSet<TopicId> = missing.iter().filter_map(|topic| topics[*topic]).collect();
                let mut targets: Vec<TopicId> = targets.into_iter().collect();
                targets.sort();
                if skips {
                    warn(&error.to_string());
                    self.found.damaged += 1;
                    session.unreadable(&targets, &error.to_string());
                    return Ok(());
                }
                if targets.is_empty() {
                    // No message is missing, so that all of them are checked.
                    *outcome = Err(Stopped::because(&error.to_string()));
                    return Ok(());
                }
            }
            RecordingError::Cut { path, .. } => {
                let file = path.display().to_string();
                let said = format!("{error}; it is checked up to there");
                if skips {
                    warn(&said);
                    session.missing(Reason::Skipped, 1, &error.to_string());
                    self.found.cut.push(file);
                } else {
                    *outcome = Err(Stopped::because(&said));
                    self.found.unread.push(file);
                }
                // Another of the recordings that are merged may be cut too.
                return Ok(());
            }
            _ => {}
        }
        Err(Stopped::because(&error.to_string()))
    }

    /// The messages to read.
    fn selection(&self, recording: &dyn Recording, topics: &[Option<TopicId>]) -> Result<Selection, String> {
        let mut selection = Selection::of_topics(topics.iter().map(Option::is_some).collect());
        let first = recording.span().map(|(first, _)| first).unwrap_or_default();
        (selection.from, selection.until) = self.options.span(first)?;
        Ok(selection)
    }
}

/// The times in which the recorder was cut off from a network, as reading comes to them.
struct CutOffTimes {
    /// When each begins or ends, by the clock of the recorder: from when on, until when if that is known, and the topics.
    changes: Vec<(Timestamp, Timestamp, Option<Timestamp>, Vec<TopicId>)>,
    next: usize,
    /// Why nothing was received, in words.
    reason: &'static str,
}

impl CutOffTimes {
    fn new(recorded: &End, all: &[RecordedTopic], targets: &[Option<TopicId>]) -> CutOffTimes {
        let mut changes = Vec::new();
        for CutOff { from, until, topics } in recorded.cut_offs.all() {
            let is_meant = |topic: &RecordedTopic| topics.is_empty() || topics.contains(&topic.name);
            let meant = all.iter().zip(targets).filter(|(topic, _)| is_meant(topic));
            let mut missed: Vec<TopicId> = meant.filter_map(|(_, target)| *target).collect();
            missed.sort_unstable();
            missed.dedup();
            if !missed.is_empty() {
                changes.push((*from, *from, None, missed.clone()));
                changes.extend(until.map(|until| (until, *from, Some(until), missed)));
            }
        }
        changes.sort_by_key(|(at, ..)| *at);
        let reason = match recorded.dropped_out {
            true => "dropout: the logger could not write",
            false => "cut off from the network",
        };
        CutOffTimes { changes, next: 0, reason }
    }

    /// Takes those that begin or end before a message of this time into account, as a live run does.
    #[inline]
    fn pass(&mut self, time: Timestamp, clock: &ManualClock, session: &mut Session) {
        while let Some((at, from, until, topics)) = self.changes.get(self.next)
            && *at <= time
        {
            clock.set(*at);
            // What came before is older than what was missed.
            session.note_count();
            session.not_received(topics, (*from, *until), self.reason);
            self.next += 1;
        }
    }
}

/// Shows where reading is, in bytes and in the time of the recording.
fn show(bar: &ProgressBar, progress: Progress, time: Timestamp) {
    bar.set_position(progress.position);
    bar.set_message(TimeText::default().text(time));
}
