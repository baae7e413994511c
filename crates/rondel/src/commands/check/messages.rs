//! Recordings of messages as they were on a network.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use indicatif::ProgressBar;
use rondel_event::{Timestamp, TopicId};
use rondel_recording::{OpenError, Opened, Progress, RecordedTopic, Recording, RecordingError, Selection};
use rondel_runtime::{Clock as _, ManualClock, Reason, Session, TimeSource};

use super::checking::{Checking, Notices, Read, Stopped};
use super::choice::{behind, cut_off};
use super::kept::{Kept, kept_before};
use super::message_run::{CutOffTimes, MessageRun, Route};
use super::reading::{Reading, wanted};
use super::{Check, OnError};
use crate::commands::selecting::missing;
use crate::output::VerdictWriter;
use crate::output::time_text::TimeText;
use crate::warn;

/// Number of messages after which time advances for silent topics, and the progress is shown.
const STEP: u64 = 64;

/// Maximum number of polls for verdicts that time alone decides, at the end; each poll handles some deadlines.
const POLLS: u32 = 100_000;

/// The time of a recorded message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum StampOf {
    /// The time at which it was recorded
    #[default]
    Log,
    /// The time at which it was published
    Publish,
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
        let reading = self.reading(path, &name, recording.topics())?;
        let selection = self
            .selection(&*recording, &reading.topics)
            .map_err(|error| Stopped::misused(&format!("{name}: {error}")))?;
        let (first, last) = (selection.from, selection.until);
        let begins_before = recording.span().is_some_and(|(begin, _)| begin < first);
        let kept = if begins_before { self.kept(path, &selection.topics, first) } else { Ok(Vec::new()) };
        recording.select(selection);
        for (topic, target) in reading.topics.iter().enumerate() {
            if let Some(target) = target {
                recording.want(topic, &wanted(&self.plan, *target));
            }
        }
        // After the last message time passes as in a live run: not where another part follows, or time is simulated.
        let Check { snapshot_to, in_simulated_time, .. } = self.options;
        let passes = restored.is_none() && snapshot_to.is_none() && !in_simulated_time;
        let mut run = self.begin_messages(&name, &*recording, reading, restored)?;
        let recorded = recording.end();
        if begins_before {
            run.push_kept(first, &kept);
        }
        self.read_messages(&mut run, &mut *recording);
        if let Some(bar) = run.bar.take() {
            bar.finish_and_clear();
        }
        let is_whole = run.outcome.is_ok() && !self.out.is_closed();
        if let Some(until) = recorded.until {
            run.pass_cut_offs(until.min(last));
        }
        // Unwritten messages at the end would be taken for a silence.
        let is_final_silence = is_whole && passes && recorded.unwritten == 0;
        if let Some(until) = recorded.until.filter(|_| is_final_silence) {
            self.pass_silence(&mut run, until.min(last));
        }
        // The number of messages is known for some formats only.
        let all = recording.topics().iter().zip(&run.routes).filter(|(_, route)| route.is_some());
        let all: Option<u64> = all.map(|(topic, _)| topic.messages).sum();
        if let Some(all) =
            all.filter(|_| is_whole && (self.options.from.is_some() || self.options.to.is_some()))
        {
            run.session.left_out(all.saturating_sub(run.count));
        }
        run.note_missing(&recorded);
        self.found.parts.extend(&recorded.parts);
        self.end(&mut run.session, &mut run.writer, &mut run.reported, &mut run.outcome);
        let unread = recording.topics().iter().zip(&run.routes).filter(|(_, route)| route.is_none());
        let others = unread.map(|(topic, _)| (topic.name.clone(), topic.messages.unwrap_or(0))).collect();
        let remarks = if recorded.is_complete() { Vec::new() } else { vec![missing(&recorded)] };
        let read = Read { remarks, others, is_whole: run.outcome.is_ok() };
        self.account(&name, &run.session, started, "message", read);
        run.outcome
    }

    /// Maps the recorded topics to those of the specification, and warns of those that cannot be decoded.
    fn reading(&mut self, path: &Path, name: &str, recorded: &[RecordedTopic]) -> Result<Reading, Stopped> {
        let schemas = Arc::clone(&self.schemas);
        let reading = Reading::new(self.options, &mut self.plan, &schemas, recorded).map_err(|error| {
            let stopped = Stopped::misused(&format!("{name}: {error}"));
            // A topic that seems to be missing may be behind the cut.
            cut_off(path).map_or(stopped, |cut| Stopped::because(&behind(&cut)))
        })?;
        for (topic, reason) in &reading.undecodable {
            warn(&format!("{name}: cannot decode the messages on {}: {reason}", recorded[*topic].name));
        }
        Ok(reading)
    }

    /// Begins the session of a recording, or continues a restored one.
    fn begin_messages(
        &mut self,
        name: &str,
        recording: &dyn Recording,
        reading: Reading,
        restored: Option<Session>,
    ) -> Result<MessageRun, Stopped> {
        // Each recording has its own time axis.
        let clock = Arc::new(ManualClock::default());
        let session = match restored {
            Some(session) => session,
            None => {
                self.plan.set_clock(clock.clone());
                self.plan.start().map_err(|error| Stopped::because(&format!("{name}: {error}")))?
            }
        };
        if let Some(reports) = &mut self.reports {
            reports.begin();
        }
        let publish = self.options.stamp == Some(StampOf::Publish) || self.is_deployment;
        if !publish {
            for name in self.plan.latencies(&TimeSource::Source) {
                warn(&format!(
                    "`latency({name})` is unknown: the time of messages on {name} is that of their recording; choose that of \
                     their publishing with `--stamp publish`, or a field with `--time-field`"
                ));
            }
        }
        Ok(MessageRun {
            writer: VerdictWriter::new(self.plan.properties(), self.options.format, self.colour),
            reported: Notices::new(),
            text: Vec::new(),
            bar: self.progress_bar(recording.progress().size),
            cut_offs: CutOffTimes::new(&recording.end(), recording.topics(), &reading.topics),
            routes: Route::all(&self.plan, recording.topics(), reading),
            is_aligned: self.plan.alignment().is_needed(),
            publish,
            session,
            clock,
            count: 0,
            mistyped: None,
            outcome: Ok(()),
        })
    }

    /// Pushes the messages of a recording into the session, until its end or that of the check.
    fn read_messages(&mut self, run: &mut MessageRun, recording: &mut dyn Recording) {
        loop {
            match recording.next() {
                Ok(Some(message)) => {
                    let log_time = message.log_time;
                    if !run.push(message) {
                        continue;
                    }
                    if let Some((topic, offset)) = run.mistyped.take()
                        && let Some(place) = recording.place(offset)
                    {
                        run.session.place_mistyped(topic, place);
                    }
                    if run.count.is_multiple_of(STEP) {
                        if run.is_aligned {
                            run.session.poll();
                        }
                        if let Some(bar) = &run.bar {
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
                    let missing = run.targets(&missing);
                    run.session.unreadable(&missing, &format!("line {line}: {reason}"));
                    self.found.skipped += 1;
                }
                Err(error) => {
                    if let Err(stopped) = self.damaged(error, run) {
                        run.outcome = Err(stopped);
                        break;
                    }
                }
            }
            if run.session.has_reports() || run.session.has_notices() {
                self.emit_of(run);
            }
        }
    }

    /// Lets time pass after the last message, up to the end of recording.
    fn pass_silence(&mut self, run: &mut MessageRun, until: Timestamp) {
        // The last messages count at the times at which they came.
        run.session.flush();
        run.clock.set(until);
        for _ in 0..POLLS {
            let due = run.session.poll();
            self.emit_of(run);
            if due.is_none_or(|due| due > run.clock.ticks()) {
                break;
            }
        }
        run.session.end_now();
    }

    #[inline]
    fn emit_of(&mut self, run: &mut MessageRun) {
        self.emit(&mut run.session, &mut run.writer, &mut run.reported, &mut run.text);
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

    /// Counts an unreadable part. An error ends reading.
    fn damaged(&mut self, error: RecordingError, run: &mut MessageRun) -> Result<(), Stopped> {
        let skips = self.options.on_error == OnError::Skip;
        match &error {
            RecordingError::Damage { topics: missing, .. } => {
                let targets = run.targets(missing);
                if skips {
                    warn(&error.to_string());
                    self.found.damaged += 1;
                    run.session.unreadable(&targets, &error.to_string());
                    return Ok(());
                }
                if targets.is_empty() {
                    // No message is missing, so that all of them are checked.
                    run.outcome = Err(Stopped::because(&error.to_string()));
                    return Ok(());
                }
            }
            RecordingError::Cut { path, .. } => {
                let file = path.display().to_string();
                let said = format!("{error}; it is checked up to there");
                if skips {
                    warn(&said);
                    run.session.missing(Reason::Skipped, 1, &error.to_string());
                    self.found.cut.push(file);
                } else {
                    run.outcome = Err(Stopped::because(&said));
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

/// Shows the progress of reading, in bytes and in the time of the recording.
fn show(bar: &ProgressBar, progress: Progress, time: Timestamp) {
    bar.set_position(progress.position);
    bar.set_message(TimeText::default().text(time));
}
