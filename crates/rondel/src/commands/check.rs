//! `rondel check`: checks recordings against a specification.

use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rondel_decode::lines::Lines;
use rondel_event::{TimeUnit, Verdict};
use rondel_recording::{Piece, ReadError, TraceReader};
use rondel_runtime::text::counted;
use rondel_runtime::{
    Alignment, AlignmentStatistics, ChainStatistics, Input, ManualClock, Options, Session, SessionPlan,
    Summary, TimeSource,
};

use super::{NotShortForm, deployment_file};
use crate::deployment::{Deployment, check_time_field, time_source, time_unit};
use crate::output::{Emit, Format, Output, VerdictWriter, colour_of};
use crate::specification::{Reading, Specification, Syntax};
use crate::summary::{Reasons, Unused, mistyped_values, standing, status, unstamped, withheld};
use crate::{complain, exit, pipeline, resume, terminal, warn};

/// Check recordings of JSON lines
///
/// A line is one message: {"topic": "gear", "time": 12.5, "data": {"report": 22}}, or with the fields
/// beside topic and time; topic may be left out where the specification has one. Each recording is
/// checked from its own beginning. With a deployment (rondel.yaml) in the place of the specification,
/// its topics, addresses, times and alignment apply as they do in `rondel run`.
#[derive(Debug, Args)]
#[command(after_help = super::EXIT_STATUS)]
pub struct Check {
    /// The specification, or a deployment (.yaml); left out with --formula
    #[arg(value_name = "SPEC")]
    first: Option<PathBuf>,
    /// The recordings; `-` is standard input, .gz and .zst are decompressed
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", allow_hyphen_values = true)]
    formula: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// The field of a message that holds its time, such as header.stamp, instead of `time` in the line
    #[arg(long, value_name = "PATH")]
    time_field: Option<String>,
    /// The unit of times that are plain numbers (default: s)
    #[arg(long, value_name = "UNIT", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: Option<String>,
    /// The verdicts to print (default: change)
    #[arg(short, long, value_enum)]
    emit: Option<Emit>,
    /// The format of verdicts
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Explain each violation: show the values that caused it
    #[arg(long)]
    explain: bool,
    /// What to do at a line that is not valid, and at the cut end of a compressed recording: stop with status 3, or
    /// skip and count it
    #[arg(long, value_name = "ACTION", value_enum, default_value = "stop")]
    on_error: OnError,
    /// Exit with 4 also if the premise of an implication was never true
    #[arg(long)]
    strict: bool,
    /// Resume from a snapshot, with the next part of the recording
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write a snapshot at the end of the recording, and leave pending obligations open for the next part
    #[arg(long, value_name = "FILE")]
    snapshot_to: Option<PathBuf>,
    /// The format of the closing summary; JSON is one object on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    /// Print no summary and no progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// The reaction to a part of a recording that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// End with status 3
    Stop,
    /// Skip it and count it
    Skip,
}

/// A recording was not read to its end; the reason has been shown.
struct Stopped;

/// The state over all recordings.
struct Checking<'a> {
    options: &'a Check,
    plan: SessionPlan,
    out: Output<BufWriter<io::StdoutLock<'static>>>,
    colour: bool,
    summary: Summary,
    /// The number of events in the recordings, with those before a snapshot.
    events: u64,
    /// The recordings that were not read to their end.
    unread: Vec<String>,
    /// The lines that were skipped.
    skipped: u64,
    /// The compressed recordings that were cut or damaged, and checked up to there.
    cut: Vec<String>,
    /// Whether one of several recordings has no message, or one has messages on other topics only.
    unusable: bool,
    /// The name of the recording, if it stands before its first verdict.
    unnamed: Option<String>,
    /// The topics of the recordings that the specification does not read.
    unused: Unused,
}

impl Check {
    /// How the times of a recording are read, as the note of snapshots.
    fn times(&self) -> String {
        let field = self.time_field.as_deref().unwrap_or("time");
        format!("read from `{field}` in {}", self.time_unit.as_deref().unwrap_or("s"))
    }

    /// Checks, and returns the exit status.
    pub fn run(mut self) -> u8 {
        if self.formula.is_some() && self.first.as_deref().is_some_and(deployment_file) {
            complain("--formula cannot be used with a deployment file, which names its specification");
            return exit::USAGE;
        }
        if self.formula.is_some() {
            // The first argument is then the first recording.
            self.traces.splice(0..0, self.first.take());
        }
        let plan = match self.plan() {
            Ok(plan) => plan,
            Err(status) => return status,
        };
        plan.mixtures().iter().chain(&plan.overlaps()).for_each(|sentence| warn(sentence));
        if self.traces.is_empty() {
            complain("no recording to check: name one or more files, or `-` for standard input");
            return exit::USAGE;
        }
        if (self.resume.is_some() || self.snapshot_to.is_some()) && self.traces.len() > 1 {
            complain("--resume and --snapshot-to need exactly one recording, as a snapshot belongs to one");
            return exit::USAGE;
        }
        let started = Instant::now();
        let restored = match &self.resume {
            None => None,
            Some(file) => match resume::restore(file, &plan, &self.times()) {
                Ok(session) => Some(session),
                Err(error) => {
                    complain(&error);
                    return exit::USAGE;
                }
            },
        };
        let mut checking = Checking {
            options: &self,
            plan,
            out: Output::new(BufWriter::with_capacity(1 << 16, io::stdout().lock())),
            colour: terminal::colours_stdout(),
            summary: Summary::default(),
            events: 0,
            unread: Vec::new(),
            skipped: 0,
            cut: Vec::new(),
            unusable: false,
            unnamed: None,
            unused: Unused::new(),
        };
        let mut stopped = false;
        let mut restored = restored;
        for trace in &self.traces {
            if checking.trace(trace, restored.take()).is_err() {
                stopped = true;
                checking.unread.push(trace.display().to_string());
            }
            if checking.out.is_closed() {
                break;
            }
        }
        checking.finish(stopped, started.elapsed())
    }

    /// The sessions to run: of the deployment, or of the specification and the options.
    fn plan(&self) -> Result<SessionPlan, u8> {
        let options = Options {
            explain: self.explain,
            // Recorded times of arrival set the clock.
            clock: Arc::new(ManualClock::default()),
            // A deployment has its limit; a recording by itself has none.
            largest_message: usize::MAX,
            ..Options::default()
        };
        if let Some(file) = self.first.as_deref().filter(|file| deployment_file(file)) {
            let given = [
                (self.formula.is_some(), "--formula"),
                (self.reading.syntax != Syntax::Rondel, "--syntax"),
                (self.reading.time.is_some(), "--time"),
                (self.reading.unbounded, "--unbounded"),
                (!self.reading.schemas.is_empty(), "--schemas"),
                (self.time_field.is_some(), "--time-field"),
                (self.time_unit.is_some(), "--time-unit"),
            ];
            NotShortForm::check("check", &given)?;
            let mut deployment = Deployment::from_file(file).map_err(|_| exit::USAGE)?;
            if deployment.synchronized.is_some() {
                complain("this deployment only synchronizes: it has no property to check");
                return Err(exit::USAGE);
            }
            deployment.emit = self.emit.map_or(deployment.emit, Into::into);
            return Ok(deployment.plan(options));
        }
        let loaded =
            Specification::from_arguments(self.first.as_ref(), self.formula.as_deref(), &self.reading);
        let specification = loaded.map_err(|_| exit::USAGE)?;
        if let Some(field) = &self.time_field {
            for topic in &specification.spec.topics {
                check_time_field(topic, field).map_err(|error| {
                    complain(&format!("--time-field {field}: {error}"));
                    exit::USAGE
                })?;
            }
        }
        let time = self.time_field.as_deref().map_or(TimeSource::Source, time_source);
        let input = Input { time, time_unit: self.unit(), ..Input::default() };
        let inputs = vec![input; specification.spec.topics.len()];
        // Times in the messages may be out of order, as they are in a live run; those of the lines are in the
        // order of the recording.
        let alignment = match &self.time_field {
            Some(_) => Alignment::by_default(&inputs),
            None => Options::default().alignment,
        };
        let emit = self.emit.map_or(options.emit, Into::into);
        Ok(SessionPlan::of(specification.checked(), Options { inputs, alignment, emit, ..options }))
    }

    fn unit(&self) -> TimeUnit {
        self.time_unit.as_deref().and_then(time_unit).unwrap_or_default()
    }
}

impl Checking<'_> {
    fn trace(&mut self, path: &Path, restored: Option<Session>) -> Result<(), Stopped> {
        let name = path.display().to_string();
        let several = self.options.traces.len() > 1;
        if several {
            self.plan.set_recording(Some(&name));
        }
        let unreadable = |error: ReadError| {
            complain(&error.to_string());
            Stopped
        };
        let mut reader = TraceReader::open(path).map_err(unreadable)?;
        if several && self.options.format == Format::Text {
            if self.options.quiet {
                self.unnamed = Some(name.clone());
            } else {
                self.out.write(format!("{name}\n").as_bytes());
            }
        }
        let mut session = match restored {
            Some(session) => session,
            None => self.plan.start().map_err(|error| {
                complain(&error.to_string());
                Stopped
            })?,
        };
        let skips = self.options.on_error == OnError::Skip;
        let mut lines = session.lines(self.options.unit()).skip_errors(skips);
        let mut writer = VerdictWriter::new(self.plan.properties(), self.options.format, self.colour);
        let progress = self.progress(&reader);
        let consumed = reader.consumed();
        let mut stopped = Ok(());
        let mut reported = std::collections::HashSet::new();
        let mut text = Vec::new();
        'pieces: loop {
            let piece = match reader.lines() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) if skips && error.is_cut() => {
                    warn(&format!("{error}; it is checked up to there"));
                    self.cut.push(name.clone());
                    break;
                }
                Err(error) => {
                    stopped = Err(unreadable(error));
                    break;
                }
            };
            let Piece { text: bytes, start: mut at, end } = piece;
            while at < end {
                let taken = session.push_lines(&mut lines, bytes, at, end);
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
                match taken {
                    Ok(next) => at = next,
                    Err(error) => {
                        complain(&format!("{name}:{}:{}: {}", error.line, error.column, error.kind));
                        stopped = Err(Stopped);
                        break 'pieces;
                    }
                }
            }
            reader.used(end);
            if let Some(bar) = &progress {
                bar.set_position(consumed.load(Ordering::Relaxed));
            }
            if reader.is_live() {
                // The process that writes into the pipe may wait for a verdict.
                session.flush();
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
                self.out.flush();
            }
            if self.out.is_closed() {
                break;
            }
        }
        session.flush();
        self.emit(&mut session, &mut writer, &mut reported, &mut text);
        match &self.options.snapshot_to {
            None => {
                session.finish();
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
            }
            Some(file) if stopped.is_ok() => stopped = self.snapshot(file, &mut session),
            Some(file) => {
                warn(&format!(
                    "no snapshot was written to {}: the recording was not read to its end",
                    file.display()
                ));
            }
        }
        if let Some(bar) = progress {
            bar.finish_and_clear();
        }
        let summary = session.summary();
        self.events += session.events();
        self.skipped += lines.skipped().0;
        if summary.counts.received == 0 && lines.other_topics().next().is_none() && stopped.is_ok() {
            warn(&format!("{name}: the recording has no message"));
            self.unusable |= several;
        }
        self.remarks(&name, &summary, &mut lines);
        self.summary.merge(summary);
        stopped
    }

    /// Prints reports, and warns of the first notice of each kind.
    #[inline]
    fn emit(
        &mut self,
        session: &mut Session,
        writer: &mut VerdictWriter,
        reported: &mut std::collections::HashSet<(&'static str, Option<u32>)>,
        text: &mut Vec<u8>,
    ) {
        if session.has_reports() {
            session.reports().for_each(|report| writer.write(&report, text));
            if !text.is_empty()
                && let Some(name) = self.unnamed.take()
            {
                self.out.write(format!("{name}\n").as_bytes());
            }
            self.out.write(text);
            text.clear();
        }
        if session.has_notices() {
            for notice in session.notices() {
                let is_first = reported.insert((notice.kind, notice.topic.map(|topic| topic.0)));
                if is_first || notice.is_single() {
                    warn(&pipeline::sentence(&notice));
                }
            }
        }
    }

    /// Warns of values and messages that could not be used, and notes the topics that are not read.
    fn remarks(&mut self, name: &str, summary: &Summary, lines: &mut Lines) {
        if summary.counts.mistyped > 0 {
            warn(&format!("{name}: {}", mistyped_values(summary.counts.mistyped)));
        }
        if let Some((line, why)) = lines.take_first_undecodable() {
            let messages = counted(lines.undecodable(), "message", "messages");
            warn(&format!("{name}: cannot decode {messages}; the first in line {line}: {why}"));
        }
        if let (skipped, Some(first)) = lines.skipped() {
            let (line, column) = (first.line, first.column);
            let lines = counted(skipped, "line", "lines");
            warn(&format!("{name}: skipped {lines}; the first is {line}:{column}: {}", first.kind));
        }
        for sentence in &summary.omissions {
            warn(&format!("{name}: {sentence}"));
        }
        if summary.counts.received == 0 && lines.other_topics().next().is_some() {
            warn(&format!("{name}: no line is on a topic of the specification"));
            self.unusable = true;
        }
        for (topic, count) in lines.other_topics() {
            *self.unused.entry(topic.to_owned()).or_default() += count;
        }
    }

    /// Writes a snapshot, after the verdicts.
    fn snapshot(&mut self, file: &Path, session: &mut Session) -> Result<(), Stopped> {
        self.out.flush();
        if self.out.failure().is_some() {
            // A run that resumes there would never print what could not be printed here.
            warn(&format!(
                "no snapshot was written to {}: the verdicts could not be written",
                file.display()
            ));
            return Ok(());
        }
        rondel_recording::durable::replace(file, &session.snapshot(&self.options.times())).map_err(|error| {
            complain(&format!("cannot write the snapshot {}: {error}", file.display()));
            Stopped
        })
    }

    fn progress(&self, reader: &TraceReader) -> Option<ProgressBar> {
        if self.options.quiet || !io::stderr().is_terminal() {
            return None;
        }
        let size = reader.size().filter(|size| *size > 16 << 20)?;
        let style =
            ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(10));
        Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    fn finish(mut self, stopped: bool, elapsed: Duration) -> u8 {
        for sentence in unstamped(&self.summary) {
            warn(&sentence);
        }
        // A recording that could not be read at all has no summary.
        if self.options.quiet {
            let reasons = self.reasons();
            let sentences = reasons.sentences(self.options.strict).into_iter().chain(reasons.unused());
            // Other verdicts show this.
            let undecided = match self.options.emit {
                Some(Emit::Violations) => self.undecided(),
                _ => Vec::new(),
            };
            sentences.chain(undecided).for_each(|sentence| warn(&sentence));
        } else if !(stopped && self.events == 0) {
            let json = self.options.summary == Format::Json;
            let summary = if json { self.json(elapsed) } else { self.text(elapsed) };
            if self.options.format == Format::Text && !json {
                self.out.write(summary.as_bytes());
            } else {
                crate::say(summary.trim_end());
            }
        }
        let closed = self.out.is_closed();
        match self.out.finish() {
            Err(error) if !closed => {
                complain(&format!("cannot write the verdicts: {error}"));
                exit::TRACE
            }
            _ if stopped => exit::TRACE,
            _ => match status(&self.summary, self.options.strict) {
                exit::SATISFIED if self.unusable => exit::INCONCLUSIVE,
                status => status,
            },
        }
    }

    /// A sentence for each property that is inconclusive at the end.
    fn undecided(&self) -> Vec<String> {
        let all = self.plan.properties().iter().zip(&self.summary.properties);
        let sentences = all.filter_map(|(property, statistics)| match standing(statistics) {
            (Verdict::Inconclusive, detail) => Some(format!("{}: {detail}", property.name)),
            _ => None,
        });
        sentences.collect()
    }

    /// Why properties are vacuous.
    fn reasons(&self) -> Reasons<'_> {
        let spec = &self.plan.specification().spec;
        Reasons { summary: &self.summary, spec, unused: Some(&self.unused) }
    }

    /// One JSON object.
    fn json(&self, elapsed: Duration) -> String {
        let Summary { counts, properties, backwards, missing, omissions, chains, alignment, topics, .. } =
            &self.summary;
        let reasons = self.reasons();
        let verdicts = self.plan.properties().iter().zip(properties).enumerate();
        let verdicts = verdicts.map(|(i, (property, statistics))| {
            withheld(
                serde_json::json!({
                    "property": property.name,
                    "verdict": standing(statistics).0.as_str(),
                    "violations": statistics.violations,
                    "vacuous": reasons.json(i),
                }),
                statistics,
            )
        });
        serde_json::json!({
            "events": self.events,
            "seconds": elapsed.as_secs_f64(),
            "unread": self.unread,
            "skipped": self.skipped,
            "cut": self.cut,
            "undecodable": counts.undecodable,
            "refused": counts.refused,
            "mistyped": counts.mistyped,
            "backwards": backwards,
            "left_out": omissions,
            "missing_topics": self.summary.missing_topics(),
            "missing_fields": missing.fields(),
            "unused_topics": self.unused,
            "unstamped": topics.iter().map(|topic| topic.unstamped).sum::<u64>(),
            "properties": verdicts.collect::<Vec<_>>(),
            "chains": chains.iter().map(ChainStatistics::json).collect::<Vec<_>>(),
            "alignment": alignment.as_ref().map(AlignmentStatistics::json),
        })
        .to_string()
    }

    /// Lines of text.
    fn text(&self, elapsed: Duration) -> String {
        let Summary { properties, backwards, chains, alignment, .. } = &self.summary;
        let all = self.plan.properties();
        let mut text = format!(
            "\n{} checked against {} in {:.3} s",
            counted(self.events, "event", "events"),
            counted(all.len() as u64, "property", "properties"),
            elapsed.as_secs_f64(),
        );
        if *backwards > 0 {
            text += &format!("; time went backwards {}", counted(*backwards, "time", "times"));
        }
        if self.skipped > 0 {
            text += &format!("; {} skipped", counted(self.skipped, "line", "lines"));
        }
        if !self.cut.is_empty() {
            text += &format!("; cut: {}", self.cut.join(", "));
        }
        if !self.unread.is_empty() {
            text += &format!("; NOT read to the end: {}", self.unread.join(", "));
        }
        text.push('\n');
        let colour = self.colour && self.options.format == Format::Text;
        let reasons = self.reasons();
        for (i, (property, statistics)) in all.iter().zip(properties).enumerate() {
            let (verdict, detail) = standing(statistics);
            let (on, off) = if colour { (colour_of(verdict), "\x1b[0m") } else { ("", "") };
            text += format!("  {on}{:<12}{off}  {:<32} {detail}", verdict.as_str(), property.name).trim_end();
            text.push('\n');
            for line in reasons.lines(i) {
                text += &line;
                text.push('\n');
            }
        }
        if let Some(sentence) = reasons.unused() {
            text += &format!("  {sentence}\n");
        }
        for chain in chains {
            text += &chain.text();
            text.push('\n');
        }
        for sentence in alignment.iter().flat_map(AlignmentStatistics::sentences) {
            text += &format!("  {sentence}\n");
        }
        text
    }
}
