//! The state of a check over all its recordings.

use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rondel_event::Verdict;
use rondel_recording::{OpenError, Opened, RecordingError, SplitPart, shown};
use rondel_report::Signal;
use rondel_runtime::text::counted;
use rondel_runtime::{Emit, Session, SessionPlan};

use super::Check;
use super::parallel::{Found, Row};
use super::stored::CheckStore;
use crate::commands::reports::{Ended, Reports};
use crate::live::pipeline;
use crate::output::summary::{Reasons, never_stamped, not_evaluated, standing, unstamped};
use crate::output::terminal;
use crate::output::{Format, Output, VerdictWriter};
use crate::schemas::Schemas;
use crate::sinks::driven::DestinationFeed;
use crate::specification::is_deployment;
use crate::{complain, exit, warn};

/// Reason why a recording was not read completely; it has been shown.
pub(super) struct Stopped {
    pub(super) reason: String,
    /// Whether the options do not fit the recording, which itself may be valid.
    pub(super) is_misuse: bool,
}

impl Stopped {
    pub(super) fn because(reason: &str) -> Stopped {
        complain(reason);
        Stopped { reason: reason.to_owned(), is_misuse: false }
    }

    pub(super) fn misused(reason: &str) -> Stopped {
        Stopped { is_misuse: true, ..Stopped::because(reason) }
    }

    /// Adds the damage of a compressed file, which may have caused what is wrong in its content.
    fn with_damage(self, file: &Path) -> Stopped {
        if self.is_misuse {
            return self;
        }
        let damage = rondel_recording::damage(file).map(|error| error.to_string());
        let Some(damage) = damage.filter(|damage| !self.reason.contains(damage)) else { return self };
        let damage = format!("{}: {damage}; lines and rows may differ from what was written", shown(file));
        complain(&damage);
        Stopped { reason: format!("{}; {damage}", self.reason), ..self }
    }
}

/// The kinds of notices that were shown, by topic.
pub(super) type Notices = HashSet<(&'static str, Option<u32>)>;

/// Facts about a recording after it was read.
pub(super) struct Read {
    /// Sentences about parts that could not be used.
    pub(super) remarks: Vec<String>,
    /// The topics that the specification does not read, with their numbers of messages.
    pub(super) others: Vec<(String, u64)>,
    /// Whether it was read to its end.
    pub(super) is_whole: bool,
}

/// Standard output, or a writer to the thread that writes to it.
type Out = BufWriter<Box<dyn Write>>;

/// The state over all recordings.
pub(super) struct Checking<'a> {
    pub(super) options: &'a Check,
    pub(super) plan: SessionPlan,
    /// The verdicts to print: with reports, the sessions emit more.
    printed: Emit,
    pub(super) schemas: Arc<Schemas>,
    pub(super) is_deployment: bool,
    pub(super) out: Output<Out>,
    pub(super) colour: bool,
    /// Results so far.
    pub(super) found: Found,
    /// The name of the recording, if it stands before its first verdict.
    pub(super) unnamed: Option<String>,
    /// Requested reports.
    pub(super) reports: Option<Reports>,
    /// The state from which the first recording continues.
    pub(super) restored: Option<Session>,
    /// Whether other recordings are checked at the same time.
    pub(super) is_part: bool,
    /// The store of verdicts.
    store: Option<Arc<CheckStore>>,
    /// The run of the present recording in the store.
    feed: Option<DestinationFeed>,
}

/// State of a thread that checks recordings.
pub(super) struct Part<'a> {
    options: &'a Check,
    plan: SessionPlan,
    printed: Emit,
    schemas: Arc<Schemas>,
    reports: Option<Reports>,
    store: Option<Arc<CheckStore>>,
}

impl<'a> Part<'a> {
    /// Begins a recording.
    pub(super) fn start(&self, out: Out) -> Checking<'a> {
        let (plan, schemas, reports) = (self.plan.clone(), Arc::clone(&self.schemas), self.reports.clone());
        let out = Output::new(out);
        let store = self.store.clone();
        let all = Checking::new(self.options, plan, self.printed, schemas, reports);
        Checking { is_part: true, out, store, ..all }
    }
}

impl<'a> Checking<'a> {
    pub(super) fn new(
        options: &'a Check,
        plan: SessionPlan,
        printed: Emit,
        schemas: Arc<Schemas>,
        reports: Option<Reports>,
    ) -> Checking<'a> {
        Checking {
            options,
            plan,
            printed,
            schemas,
            is_deployment: options.first.as_deref().is_some_and(is_deployment),
            out: Output::new(BufWriter::with_capacity(1 << 16, Box::new(io::stdout()))),
            colour: terminal::colours_stdout(),
            found: Found::default(),
            unnamed: None,
            reports,
            restored: None,
            is_part: false,
            store: None,
            feed: None,
        }
    }

    /// Keeps verdicts in a store.
    pub(super) fn stored_in(mut self, store: Option<Arc<CheckStore>>) -> Checking<'a> {
        self.store = store;
        self
    }

    /// Creates the same check for another thread.
    pub(super) fn part(&self) -> Part<'a> {
        let (plan, schemas, reports) = (self.plan.clone(), Arc::clone(&self.schemas), self.reports.clone());
        let store = self.store.clone();
        Part { options: self.options, plan, printed: self.printed, schemas, reports, store }
    }

    /// Checks all recordings, the first from a restored state if there is one, and returns the exit status.
    pub(super) fn run(mut self, restored: Option<Session>) -> u8 {
        let started = Instant::now();
        self.restored = restored;
        let recordings: &[PathBuf] = self.options.recordings();
        match self.options.threads() {
            1 => self.one_by_one(recordings),
            threads => self.all_at_once(recordings, threads),
        }
        for (name, reason) in &self.options.unreadable {
            self.found.unread.push(name.clone());
            self.found.rows.push(Row::unread(name));
            if let Some(reports) = &mut self.reports {
                reports.unread(name, reason);
            }
        }
        self.finish(started.elapsed())
    }

    pub(super) fn trace(&mut self, path: &Path, restored: Option<Session>) -> Result<(), Stopped> {
        let name = self.options.name(path);
        let several = self.options.recordings().len() > 1;
        if several {
            self.plan.set_recording(Some(&name));
        }
        let opened = self.options.open(path, &self.plan).map_err(|error| match error {
            OpenError::Messages(RecordingError::Choice { .. }) => Stopped::misused(&error.to_string()),
            _ => Stopped::because(&error.to_string()),
        })?;
        if several && self.options.format == Format::Text {
            if self.options.quiet {
                self.unnamed = Some(name.clone());
            } else {
                self.out.write(format!("{name}\n").as_bytes());
            }
        }
        if let Some(store) = &self.store {
            let resumes = self.options.resume.is_some();
            self.feed = store.begin(&name, resumes, self.plan.properties());
        }
        if let Some((feed, session)) = self.feed.as_mut().zip(restored.as_ref()) {
            feed.continue_from(&session.summary());
        }
        let read = match opened {
            Opened::Lines(reader) => self.lines(&name, reader, restored),
            Opened::Messages(recording) => self.messages(path, recording, restored),
        };
        if let Some(feed) = self.feed.take() {
            feed.end(if read.is_ok() { "finished" } else { "unread" });
        }
        let Check { traces, merge, .. } = self.options;
        let files = traces.iter().filter(|file| *merge || file.as_path() == path);
        files.fold(read, |read, file| read.map_err(|stopped| stopped.with_damage(file)))
    }

    /// Evaluates the rest of a recording, or writes the snapshot.
    pub(super) fn end(
        &mut self,
        session: &mut Session,
        writer: &mut VerdictWriter,
        reported: &mut Notices,
        outcome: &mut Result<(), Stopped>,
    ) {
        let mut text = Vec::new();
        session.flush();
        self.emit(session, writer, reported, &mut text);
        match &self.options.snapshot_to {
            None => {
                if outcome.is_err() {
                    session.broke_off();
                }
                session.finish();
                self.emit(session, writer, reported, &mut text);
            }
            // Evaluated as the recording of the page is, but the state of a viewer's text replaces no snapshot.
            Some(_) if self.options.attempt => {}
            Some(file) if outcome.is_ok() => *outcome = self.snapshot(file, session),
            Some(file) => {
                warn(&format!(
                    "no snapshot was written to {}: the recording was not read to its end",
                    file.display()
                ));
            }
        }
    }

    /// Adds a recording to the summary and the reports, warns of values and messages that could not be used, after
    /// `remarks`, and notes the topics that are not read. `unit` names a message in this form of
    /// recording.
    pub(super) fn account(
        &mut self,
        name: &str,
        session: &Session,
        started: Instant,
        unit: &str,
        read: Read,
    ) {
        let summary = session.summary();
        if let Some(feed) = &mut self.feed {
            feed.account(|| &summary, true);
        }
        if self.options.page.is_some() {
            self.options.paged.keep(session.courses().0);
        }
        let (events, seconds) = (session.events(), started.elapsed().as_secs_f64());
        let Read { mut remarks, others, is_whole } = read;
        self.found.events += events;
        let several = self.options.recordings().len() > 1;
        let mut unusable = never_stamped(&summary);
        if several {
            // With others, in which they had a time, these would not be named.
            unusable.iter().for_each(|sentence| warn(&format!("{name}: {sentence}")));
        }
        if summary.counts.received == 0 && others.is_empty() && is_whole {
            let sentence = "the recording has no message".to_owned();
            warn(&format!("{name}: {sentence}"));
            unusable = unusable.or(Some(sentence).filter(|_| several));
        }
        let omitted = not_evaluated(&summary);
        // The summary of one recording in text contains it already.
        if several || self.options.quiet || self.options.summary == Format::Json {
            omitted.iter().for_each(|sentence| warn(&format!("{name}: {sentence}")));
        }
        remarks.extend(summary.left_out());
        if summary.counts.received == 0 && !others.is_empty() {
            remarks.push(format!("no {unit} is on a topic of the specification"));
            unusable = remarks.last().cloned();
        }
        self.found.unusable |= unusable.is_some();
        remarks.iter().for_each(|remark| warn(&format!("{name}: {remark}")));
        remarks.splice(0..0, omitted);
        for (topic, count) in others {
            *self.found.unused.entry(topic).or_default() += count;
        }
        if let Some(reports) = &mut self.reports {
            let spec = &self.plan.specification().spec;
            let reasons = Reasons { summary: &summary, spec, unused: Some(&self.found.unused) };
            let (signals, left_out) = session.courses();
            if left_out > 0 {
                let values = counted(left_out, "value", "values");
                warn(&format!("{name}: {values} of further fields or instances are not drawn"));
            }
            let signals = signals.iter().map(Signal::from).collect();
            reports.end(name, &reasons, Ended { inconclusive: unusable, remarks, events, seconds, signals });
        }
        self.found.summary.merge(summary);
    }

    /// Whether the check is interrupted, or further results would be lost: standard output is closed, and no report is
    /// written to a file.
    pub(super) fn has_ended(&self) -> bool {
        let is_interrupted = self.options.interrupted.load(Ordering::Relaxed);
        is_interrupted || self.out.is_closed() && !self.outlives_output()
    }

    /// Whether the check continues without standard output because its results go to files. A snapshot must not contain
    /// results that were not printed.
    fn outlives_output(&self) -> bool {
        self.options.snapshot_to.is_none() && self.reports.as_ref().is_some_and(Reports::are_in_files)
    }

    /// Prints reports, and warns of the first notice of each kind.
    #[inline]
    pub(super) fn emit(
        &mut self,
        session: &mut Session,
        writer: &mut VerdictWriter,
        reported: &mut Notices,
        text: &mut Vec<u8>,
    ) {
        if session.has_reports() {
            writer.set_begin(session.begin());
            for report in session.reports() {
                if let Some(reports) = &mut self.reports {
                    reports.take(&report);
                }
                let is_printed = match self.printed {
                    Emit::Every => true,
                    Emit::Change => report.changed(),
                    Emit::Violations => report.changed() && report.verdict() == Verdict::Violated,
                };
                // The page shows when a violation ends, also if that is not printed.
                let is_kept = is_printed || self.options.page.is_some() && report.changed();
                if is_kept && let Some(feed) = &mut self.feed {
                    feed.verdict(&report);
                }
                if !self.options.draws && !self.options.is_silent && is_printed {
                    writer.write(&report, text);
                }
            }
            if let Some(feed) = &mut self.feed {
                feed.send();
            }
            if !text.is_empty()
                && let Some(name) = self.unnamed.take()
            {
                self.out.write(format!("{name}\n").as_bytes());
            }
            if self.reports.as_ref().is_none_or(|reports| !reports.take_output()) {
                self.out.write(text);
            }
            text.clear();
        }
        if session.has_notices() {
            for notice in session.notices() {
                if let Some(reports) = &mut self.reports {
                    reports.note(&notice);
                }
                let is_first = reported.insert((notice.kind, notice.topic.map(|topic| topic.0)));
                if is_first || notice.is_single() {
                    warn(&pipeline::sentence(&notice));
                }
            }
        }
    }

    /// Writes a snapshot, after the verdicts.
    fn snapshot(&mut self, file: &Path, session: &mut Session) -> Result<(), Stopped> {
        self.out.flush();
        if self.out.failure().is_some() {
            // A run that resumes there would never print the results lost here.
            warn(&format!(
                "no snapshot was written to {}: the verdicts could not be written",
                file.display()
            ));
            return Ok(());
        }
        if self.store.as_ref().is_some_and(|store| !store.is_stored()) {
            warn(&format!("no snapshot was written to {}: the verdicts could not be stored", file.display()));
            return Ok(());
        }
        rondel_recording::durable::replace(file, &session.snapshot(&self.options.times())).map_err(|error| {
            Stopped::because(&format!("cannot write the snapshot {}: {error}", file.display()))
        })
    }

    /// Progress bar for files of this size, if standard error is a terminal.
    pub(super) fn progress_bar(&self, size: u64) -> Option<ProgressBar> {
        if self.is_part || self.options.quiet || !io::stderr().is_terminal() {
            return None;
        }
        let size = Some(size).filter(|size| *size > 16 << 20)?;
        let style = ProgressStyle::with_template(
            "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        );
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(10));
        Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    fn finish(mut self, elapsed: Duration) -> u8 {
        let stopped = !self.found.unread.is_empty();
        // With snapshots the parts are checked one after the other.
        let is_one_by_one = self.options.resume.is_some() || self.options.snapshot_to.is_some();
        let parts = if is_one_by_one { &[][..] } else { &self.found.parts };
        for sentence in SplitPart::missing(parts) {
            warn(&sentence);
            // Satisfaction of the readable part implies nothing for the rest.
            self.found.unusable |= self.plan.withholds();
        }
        for sentence in unstamped(&self.found.summary) {
            warn(&sentence);
        }
        // A recording that could not be read at all has no summary.
        if self.options.quiet {
            let reasons = self.reasons();
            let sentences = reasons.sentences(self.options.strict).into_iter().chain(reasons.unused());
            // Other verdicts show this.
            let undecided = match self.printed {
                Emit::Violations => self.undecided(),
                _ => Vec::new(),
            };
            sentences.chain(undecided).for_each(|sentence| warn(&sentence));
        } else if !(stopped && self.found.events == 0) {
            let json = self.options.summary == Format::Json;
            let summary = if json { self.json(elapsed) } else { self.text(elapsed) };
            let is_free = self.reports.as_ref().is_none_or(|reports| !reports.take_output());
            if self.options.format == Format::Text && !json && is_free {
                self.out.write(summary.as_bytes());
            } else {
                crate::say(summary.trim_end());
            }
        }
        self.out.flush();
        let outlives_output = self.outlives_output();
        // Reports of a part would be mistaken for those of the whole.
        let is_cut_off = self.has_ended();
        let unwritten =
            self.reports.take().filter(|_| !is_cut_off).and_then(|reports| {
                reports.write(&self.found.summary, self.options.strict, &mut self.out).err()
            });
        if let Some(error) = &unwritten {
            complain(error);
        }
        let stored = self.store.take().map(|store| store.close());
        let unstored = stored.filter(|stored| !stored.is_complete());
        if let Some(stored) = &unstored {
            complain(&stored.sentence());
        }
        // If nothing could be read for that reason, the command is wrong and not a recording.
        let is_misuse = stopped && self.found.misused == self.found.rows.len();
        let status = if is_misuse { exit::USAGE } else { self.standing(&self.found.summary) };
        match self.out.finish() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                complain(&format!("cannot write the verdicts: {error}"));
                exit::TRACE
            }
            // The reader, such as `head`, has seen enough: no reason for an error message.
            Err(_) if !outlives_output => exit::TRACE,
            _ if stopped && !is_misuse || unwritten.is_some() || unstored.is_some() => exit::TRACE,
            _ => status,
        }
    }

    /// A sentence for each property that is inconclusive at the end.
    fn undecided(&self) -> Vec<String> {
        let all = self.plan.properties().iter().zip(&self.found.summary.properties);
        let sentences = all.filter_map(|(property, statistics)| match standing(statistics) {
            _ if statistics.is_asserted => None,
            (Verdict::Inconclusive, detail) => Some(format!("{}: {detail}", property.name)),
            _ => None,
        });
        sentences.collect()
    }

    /// Sentences that explain vacuous properties.
    pub(super) fn reasons(&self) -> Reasons<'_> {
        let spec = &self.plan.specification().spec;
        Reasons { summary: &self.found.summary, spec, unused: Some(&self.found.unused) }
    }
}
