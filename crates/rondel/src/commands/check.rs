//! `rondel check`: a specification against recorded traces.

use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rondel_decode::lines::Lines;
use rondel_engine::Monitor;
use rondel_event::{Block, Path as FieldPath, Timestamp, Verdict};
use rondel_recording::{Piece, ReadError, TraceReader};

use crate::chains::ChainReport;
use crate::deployment::time_unit;
use crate::evidence::Witness;
use crate::output::{Emit, Format, Given, Output, VerdictWriter, colour_of};
use crate::resume::{self, Known, Resumed};
use crate::specification::{Reading, Specification, Syntax, TimeModel};
use crate::tally::{Backwards, Tally, Unseen, counted, left_out, status};
use crate::{complain, exit, warn};

/// Check recorded traces of JSON lines
///
/// A line is one message: {"topic": "gear", "time": 12.5, "data": {"report": 22}}, or with the
/// fields beside topic and time; topic may be left out where the specification has one. Several
/// traces are checked one after the other, each from its own beginning.
#[derive(Debug, Args)]
#[command(after_help = super::EXIT_STATUS)]
pub struct Check {
    /// The specification; left out with --formula
    #[arg(value_name = "SPEC")]
    first: Option<PathBuf>,
    /// The traces; `-` is standard input, .gz and .zst are decompressed
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", allow_hyphen_values = true)]
    formula: Option<String>,
    /// The language of the specification
    #[arg(long, value_enum, default_value = "rondel")]
    syntax: Syntax,
    /// The model of time of properties that do not say so themselves (default: dense with units of time
    /// in their bounds, otherwise steps)
    #[arg(long, value_enum)]
    time: Option<TimeModel>,
    /// The field of a message that holds its time, such as header.stamp, instead of `time` in the line
    #[arg(long, value_name = "PATH")]
    time_field: Option<String>,
    /// The unit of `time` in the trace
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: String,
    /// Which verdicts to print
    #[arg(short, long, value_enum, default_value = "change")]
    emit: Emit,
    /// How to print them
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Say with every violation why: what changed at the last moments
    #[arg(long)]
    explain: bool,
    /// Go on from where a check ended that wrote this snapshot, with the next part of the trace
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// More of the trace is to come: leave open what is open, and write what is known into this file
    #[arg(long, value_name = "FILE")]
    snapshot_to: Option<PathBuf>,
    /// How the closing summary is written: for programs, one JSON object on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// What stopped a trace before its end. It has been shown.
struct Stopped;

/// What is kept over all traces.
struct Checking<'a> {
    options: &'a Check,
    specification: &'a Specification,
    out: Output<BufWriter<io::StdoutLock<'static>>>,
    colour: bool,
    /// What watches why properties are violated, where that is asked for.
    witness: Option<Witness>,
    tallies: Vec<Tally>,
    unseen: Unseen,
    chains: Vec<ChainReport>,
    events: u64,
    backwards: u64,
    /// Where the one trace goes on from, if it does.
    resumed: Option<Resumed>,
}

impl Check {
    /// How the times of a trace are read.
    fn times(&self) -> String {
        let field = self.time_field.as_deref().unwrap_or("time");
        format!("read from `{field}` in {}", self.time_unit)
    }

    /// Checks, and returns the exit status.
    pub fn run(mut self) -> u8 {
        if self.formula.is_some() {
            // What stands in the place of the specification is the first trace then.
            self.traces.splice(0..0, self.first.take());
        }
        let reading = Reading { syntax: Some(self.syntax), time: self.time };
        let loaded = Specification::from_arguments(self.first.as_ref(), self.formula.as_deref(), reading);
        let Ok(mut specification) = loaded else { return exit::USAGE };
        if self.traces.is_empty() {
            complain("no trace to check: name one or more files, or `-` for standard input");
            return exit::USAGE;
        }
        if (self.resume.is_some() || self.snapshot_to.is_some()) && self.traces.len() > 1 {
            complain("a snapshot is of one trace: with --resume and --snapshot-to name one only");
            return exit::USAGE;
        }
        let started = Instant::now();
        let witness = self.explain.then(|| Witness::new(&mut specification));
        let resumed = self.resume.as_ref().map(|file| {
            let accept = |resumed: &Resumed| {
                let (then, now) = (&resumed.known.times, self.times());
                if *then != now {
                    return Err(format!("its times were {then}, and here they are {now}"));
                }
                resumed.monitor(&specification).map(drop)
            };
            resume::read(file, self.explain, accept)
        });
        let resumed = match resumed.transpose() {
            Ok(resumed) => resumed,
            Err(why) => {
                complain(&why);
                return exit::USAGE;
            }
        };
        let mut checking = Checking {
            witness,
            resumed,
            options: &self,
            specification: &specification,
            out: Output::new(BufWriter::with_capacity(1 << 16, io::stdout().lock())),
            colour: io::stdout().is_terminal(),
            tallies: Tally::all(&specification),
            unseen: Unseen::new(&specification),
            chains: Vec::new(),
            events: 0,
            backwards: 0,
        };
        let mut stopped = false;
        for trace in &self.traces {
            stopped |= checking.trace(trace).is_err();
            if checking.out.is_closed() {
                break;
            }
        }
        checking.finish(stopped, started.elapsed())
    }
}

impl Checking<'_> {
    fn trace(&mut self, path: &Path) -> Result<(), Stopped> {
        let program = &self.specification.program;
        let name = path.display().to_string();
        let several = self.options.traces.len() > 1;
        let spec = &self.specification.spec;
        let writers = VerdictWriter::all(spec, several.then_some(name.as_str()));
        if let Some(witness) = &mut self.witness {
            witness.restart();
        }
        let topics = self.specification.trace_topics();
        let unreadable = |error: ReadError| {
            complain(&error.to_string());
            Stopped
        };
        let mut reader = TraceReader::open(path).map_err(unreadable)?;
        if several && self.options.format == Format::Text && !self.options.quiet {
            self.out.write(format!("{name}\n").as_bytes());
        }
        let mut lines = Lines::new(
            &topics,
            self.specification.is_formula,
            time_unit(&self.options.time_unit).unwrap_or_default(),
        );
        if let Some(field) = &self.options.time_field {
            lines = lines.with_time_at(&FieldPath::keys(field.split('.')));
        }
        let (mut monitor, mut backwards) = match self.resumed.take() {
            None => (Monitor::new(Arc::clone(program)), Backwards::default()),
            Some(resumed) => {
                let monitor = resumed.monitor(self.specification).map_err(|why| {
                    complain(&why);
                    Stopped
                })?;
                let known = resumed.known;
                lines = lines.from_time(Timestamp::from_nanos(known.time));
                self.events = known.events;
                self.unseen.keep(&known.unseen);
                self.tallies.iter_mut().zip(known.tallies).for_each(|(tally, saved)| tally.restore(saved));
                (monitor, Backwards::restored(known.backwards))
            }
        };
        monitor.report_every(self.options.emit == Emit::Every);
        let mut block = Block::new(program.layout());
        let mut text = Vec::new();
        let progress = self.progress(&reader);
        let consumed = reader.consumed();
        let mut stopped = Ok(());
        'pieces: loop {
            let piece = match reader.lines() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    stopped = Err(unreadable(error));
                    break;
                }
            };
            let Piece { text: bytes, start: mut at, end } = piece;
            while at < end {
                let decoded = lines.decode(bytes, at, end, &mut block);
                if block.is_full() || decoded.is_err() {
                    self.step(&mut monitor, &mut block, &mut backwards, &writers, &mut text);
                }
                match decoded {
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
                // Whoever writes to the other end of a pipe may wait for an answer.
                self.step(&mut monitor, &mut block, &mut backwards, &writers, &mut text);
                self.out.flush();
            }
            if self.out.is_closed() {
                break;
            }
        }
        self.step(&mut monitor, &mut block, &mut backwards, &writers, &mut text);
        match &self.options.snapshot_to {
            None => {
                self.tallies.iter_mut().for_each(Tally::over);
                monitor.end();
                self.report(None, &monitor, &writers, &mut text);
            }
            Some(file) if stopped.is_ok() => {
                let known = Known {
                    explain: self.options.explain,
                    times: self.options.times(),
                    events: self.events,
                    time: lines.time().as_nanos(),
                    backwards: backwards.saved(),
                    tallies: self.tallies.iter().map(Tally::saved).collect(),
                    unseen: self.unseen.all(),
                    waits: None,
                };
                stopped = self.snapshot(file, &monitor, &known);
            }
            Some(file) => warn(&format!(
                "no snapshot was written to {}, as the trace was not read to its end",
                file.display()
            )),
        }
        ChainReport::merge(&mut self.chains, ChainReport::all(&monitor, spec));
        for (tally, waiting) in self.tallies.iter_mut().zip(monitor.waiting()) {
            tally.end(monitor.position(), waiting);
        }
        if let Some(bar) = progress {
            bar.finish_and_clear();
        }
        self.backwards += backwards.count;
        if lines.mistyped() > 0 {
            let values = counted(lines.mistyped(), "value has", "values have");
            warn(&format!(
                "{name}: {values} another type than the specification reads, and counted as unknown"
            ));
        }
        for said in left_out(&monitor, &self.specification.spec) {
            warn(&format!("{name}: {said}"));
        }
        if lines.other_topics() > 0 && lines.other_topics() == lines.lines() {
            warn(&format!("{name}: no line is on a topic of the specification"));
        }
        stopped
    }

    /// Writes what is known, after what was said.
    fn snapshot(&mut self, file: &Path, monitor: &Monitor, known: &Known) -> Result<(), Stopped> {
        self.out.flush();
        if self.out.failure().is_some() {
            // Who goes on from here would never say what could not be said.
            warn(&format!("no snapshot was written to {}, as the verdicts were not", file.display()));
            return Ok(());
        }
        resume::write(file, &resume::bytes(known, &[monitor.snapshot()])).map_err(|error| {
            complain(&format!("cannot write the snapshot {}: {error}", file.display()));
            Stopped
        })
    }

    /// Evaluates the events of the block and empties it.
    fn step(
        &mut self,
        monitor: &mut Monitor,
        block: &mut Block,
        backwards: &mut Backwards,
        writers: &[VerdictWriter],
        text: &mut Vec<u8>,
    ) {
        if block.is_empty() {
            return;
        }
        let first = monitor.position();
        if let Some(row) = backwards.add(block) {
            warn(&format!(
                "time goes backwards at step {} (time {} s); further ones are only counted",
                first + row as u64,
                block.time(row)
            ));
        }
        self.unseen.look(block);
        monitor.step(block);
        self.report(Some((block, first)), monitor, writers, text);
        self.events += block.len() as u64;
        block.clear();
    }

    /// Counts verdicts, and prints those that are asked for.
    fn report(
        &mut self,
        block: Option<(&Block, u64)>,
        monitor: &Monitor,
        writers: &[VerdictWriter],
        text: &mut Vec<u8>,
    ) {
        let Checking { tallies, options, colour, .. } = self;
        let mut give = |given: &Given<'_>| {
            writers[given.report.property as usize].write(options.format, given, *colour, text);
        };
        match &mut self.witness {
            Some(witness) => witness.take(block, monitor, |given| {
                tallies[given.report.property as usize].add(given.report, || given.keys.to_vec());
                if options.emit.wants(given.report) {
                    give(given);
                }
            }),
            None => {
                let mut keys = Vec::new();
                for report in monitor.reports() {
                    tallies[report.property as usize].add(report, || monitor.key(report));
                    if options.emit.wants(report) {
                        give(&Given::new(report, monitor, None, &mut keys));
                    }
                }
            }
        }
        if !text.is_empty() {
            self.out.write(text);
            text.clear();
        }
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
        if self.events > 0
            && let Some(names) = self.unseen.names()
        {
            let hint =
                if names.split(", ").any(|name| matches!(name.rsplit('.').next(), Some("time" | "topic"))) {
                    " (`time` and `topic` are reserved in a line: fields of these names stand inside `data`)"
                } else {
                    ""
                };
            warn(&format!("no message carries what the specification reads as: {names}{hint}"));
        }
        // Of a trace that could not be read at all there is nothing to say.
        if !(self.options.quiet || stopped && self.events == 0) {
            let json = self.options.summary == Format::Json;
            let summary = if json { self.summary_json(elapsed) } else { self.summary(elapsed) };
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
            _ => status(&self.tallies, &self.unseen),
        }
    }

    /// For programs: one JSON object.
    fn summary_json(&self, elapsed: Duration) -> String {
        let properties = self.specification.spec.properties.iter().zip(&self.tallies);
        let properties = properties.map(|(property, tally)| {
            serde_json::json!({
                "property": property.name,
                "verdict": standing(tally).0.as_str(),
                "violations": tally.violations,
            })
        });
        serde_json::json!({
            "events": self.events,
            "seconds": elapsed.as_secs_f64(),
            "backwards": self.backwards,
            "properties": properties.collect::<Vec<_>>(),
            "chains": self.chains.iter().map(ChainReport::json).collect::<Vec<_>>(),
        })
        .to_string()
    }

    fn summary(&self, elapsed: Duration) -> String {
        let properties = &self.specification.spec.properties;
        let mut summary = format!(
            "\n{} checked against {} in {:.3} s",
            counted(self.events, "event", "events"),
            counted(properties.len() as u64, "property", "properties"),
            elapsed.as_secs_f64(),
        );
        if self.backwards > 0 {
            summary += &format!("; time went backwards {}", counted(self.backwards, "time", "times"));
        }
        summary.push('\n');
        let colour = self.colour && self.options.format == Format::Text;
        for (property, tally) in properties.iter().zip(&self.tallies) {
            let (verdict, detail) = standing(tally);
            let (on, off) = if colour { (colour_of(verdict), "\x1b[0m") } else { ("", "") };
            summary +=
                format!("  {on}{:<12}{off}  {:<32} {detail}", verdict.as_str(), property.name).trim_end();
            summary.push('\n');
        }
        for chain in &self.chains {
            summary += &chain.text();
            summary.push('\n');
        }
        summary
    }
}

/// What a property comes to, and what there is to say of it.
fn standing(tally: &Tally) -> (Verdict, String) {
    if let Some(first) = &tally.first {
        let times = counted(tally.violations, "time", "times");
        (Verdict::Violated, format!("became so {times}, first {first}"))
    } else if tally.undecided() {
        (Verdict::Inconclusive, "never decided".to_owned())
    } else if tally.open {
        (Verdict::Inconclusive, "so at the end".to_owned())
    } else if tally.inconclusive > 0 {
        let (at, one, many) = if tally.by_steps { ("at ", "step", "steps") } else { ("", "time", "times") };
        let times = counted(tally.inconclusive, one, many);
        (Verdict::Satisfied, format!("but inconclusive {at}{times}"))
    } else {
        (Verdict::Satisfied, String::new())
    }
}
