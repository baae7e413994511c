//! `rondel check`: checks recordings against a specification.

mod ahead;
#[cfg(feature = "page")]
pub(super) mod attempt;
mod checking;
mod choice;
mod kafka;
mod kept;
mod lines;
mod message_run;
mod messages;
mod page;
mod parallel;
mod reading;
mod recordings;
mod results;
mod sample;
mod stored;
mod summary;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use rondel_event::TimeUnit;
use rondel_recording::{Opened, shown};
use rondel_report::Judged;
use rondel_runtime::{Alignment, Input, ManualClock, Options, ResetPolicy, Session, SessionPlan, TimeSource};

use checking::Checking;
use kafka::{KafkaArguments, KafkaRecordings};
use messages::StampOf;
use page::Paged;
pub(super) use sample::{Sample, SampledMessage};
use stored::CheckStore;

use super::from_deployment;
use crate::commands::reports::{Reports, Wanted, look_ahead};
use crate::commands::table_arguments::TableArguments;
use crate::deployment::{self, Deployment, check_time_field, page_address, time_source, time_unit};
use crate::live::resume;
use crate::output::{Emit, Format};
use crate::sinks::driven;
use crate::specification::{Reading, Specification, is_deployment};
use crate::{complain, exit, warn};

/// Check recordings: MCAP files, bags of ROS 2 and ROS 1, logs of PX4, tables, and JSON lines
///
/// In an MCAP file or a bag, messages are decoded by the types that it has. In JSON lines, a line is
/// one message: {"topic": "gear", "time": 12.5, "data": {"report": 22}}, or with the fields beside
/// topic and time; topic may be left out where the specification has one. In tables (.csv), a row is
/// a message, with columns for time, topic and fields. Each recording is checked
/// from its own beginning. With a deployment (rondel.yaml) in the place of the specification,
/// its topics, addresses, times and alignment apply as they do in `rondel run`.
#[derive(Debug, Default, Args)]
#[command(after_help = super::EXIT_STATUS)]
pub struct Check {
    /// The specification, or a deployment (.yaml); left out with --formula
    #[arg(value_name = "SPEC")]
    first: Option<PathBuf>,
    /// The recordings: MCAP files, folders of rosbag2 or their databases (.db3), bags of ROS 1 (.bag), logs of PX4 (.ulg), tables (.csv), archives in XML (.xml) or JSON lines, and folders of recordings; `-` is standard input, .gz and .zst are decompressed, kafka:TOPIC stands for the records that the broker has
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Paths that cannot be read at all, named by the user or found in a named folder, with the reasons.
    #[arg(skip)]
    unreadable: Vec<(String, String)>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", allow_hyphen_values = true)]
    formula: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// The field of a message that holds its time, such as header.stamp, instead of `time` in the line; of a table the
    /// column, or two such as Date,Time
    #[arg(long, value_name = "PATH")]
    time_field: Option<String>,
    /// The unit of times that are plain numbers (default: s)
    #[arg(long, value_name = "UNIT", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: Option<String>,
    /// The time of messages in MCAP files (default: log)
    #[arg(long, value_enum, conflicts_with = "time_field")]
    stamp: Option<StampOf>,
    /// Read only messages recorded from this time on: seconds, a date and time, or +SECONDS after the beginning
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Read only messages recorded up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, visible_alias = "until")]
    to: Option<String>,
    /// Read only these topics of the recordings: names or patterns, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    topics: Vec<String>,
    /// The topic of the rows of a table (.csv), instead of its column `topic` or the name of the file; not for JSON lines
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    kafka: KafkaArguments,
    /// Recordings of Kafka that are checked.
    #[arg(skip)]
    kafka_recordings: Option<KafkaRecordings>,
    /// Check all recordings as one, merged by the times of recording: all but JSON lines
    #[arg(long)]
    merge: bool,
    /// Use N threads (default: the number of cores), to check recordings in parallel or, with one recording of JSON lines,
    /// to decode in parallel to evaluation
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Evaluate each recording with N threads besides the one that reads it, or with as many as there are cores (auto),
    /// with the same verdicts (default: 1, the one that reads it)
    #[arg(long, value_name = "N|auto", value_parser = deployment::workers)]
    workers: Option<usize>,
    /// The verdicts to print (default: change)
    #[arg(short, long, value_enum)]
    emit: Option<Emit>,
    /// The format of verdicts
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Explain each violation: show the values that caused it
    #[arg(long)]
    explain: bool,
    /// Reaction to an unreadable line or part, and to the cut end of a recording: stop with status 3, or skip and count
    /// it
    #[arg(long, value_name = "ACTION", value_enum, default_value = "stop")]
    on_error: OnError,
    /// Reaction when the times of all topics step back together: restart, make verdicts inconclusive, or treat the
    /// messages as late ones (default: restart, or as the deployment says)
    #[arg(long, value_name = "ACTION", value_enum)]
    reset: Option<OnReset>,
    /// Write a report, and explain violations: junit=FILE, sarif=FILE, tap=FILE, github, json=FILE, html=FILE,
    /// svg=FILE, mcap=FILE; without a file, on standard output (may be repeated)
    #[arg(long, value_name = "FORM[=FILE]")]
    report: Vec<Wanted>,
    /// Exit with 4 also if the premise of an implication was never true
    #[arg(long)]
    strict: bool,
    /// Resume from a snapshot, with the next part of the recording
    #[arg(long, value_name = "FILE")]
    pub(super) resume: Option<PathBuf>,
    /// Write a snapshot at the end of the recording, and leave pending obligations open for the next part
    #[arg(long, value_name = "FILE")]
    snapshot_to: Option<PathBuf>,
    /// Keep the printed verdicts in this file, a store of SQLite that `rondel query` reads
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Afterwards serve the page of the results over HTTP until a signal, on this address (default: 127.0.0.1:8080), and
    /// explain violations; for one recording
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:8080", value_parser = page_address)]
    page: Option<SocketAddr>,
    /// Permit viewers of the page to save the specification of its playground to this file
    #[cfg_attr(not(feature = "page"), allow(dead_code))]
    #[arg(long, value_name = "FILE", requires = "page")]
    save_to: Option<PathBuf>,
    /// Check the text on standard input for the page, and write the result to standard output.
    #[arg(long, hide = true)]
    attempt: bool,
    /// A file that this text may import (may be repeated).
    #[cfg_attr(not(feature = "page"), allow(dead_code))]
    #[arg(long, hide = true, value_name = "FILE")]
    importable: Vec<PathBuf>,
    /// Results that the page shows beside the store.
    #[arg(skip)]
    paged: Arc<Paged>,
    /// The format of the closing summary; JSON is one object on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    /// Print no summary and no progress bar
    #[arg(short, long)]
    quiet: bool,
    /// Whether the deployment uses simulated time.
    #[arg(skip)]
    in_simulated_time: bool,
    /// Whether the fields are drawn over the whole recording, and no verdicts printed.
    #[arg(skip)]
    draws: bool,
    /// Whether the results are taken, and nothing is printed.
    #[arg(skip)]
    is_silent: bool,
    /// The lines of the only recording, if it is no file.
    #[arg(skip)]
    lines: Option<Vec<u8>>,
    /// Flag that interrupts the check.
    #[arg(skip)]
    interrupted: Arc<AtomicBool>,
}

/// Reaction to times that step back on all topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnReset {
    /// Begin a new lap
    Restart,
    /// All verdicts are inconclusive from there on
    Inconclusive,
    /// The messages are late
    Ignore,
}

impl From<OnReset> for ResetPolicy {
    fn from(reset: OnReset) -> ResetPolicy {
        match reset {
            OnReset::Restart => ResetPolicy::Restart,
            OnReset::Inconclusive => ResetPolicy::Inconclusive,
            OnReset::Ignore => ResetPolicy::Ignore,
        }
    }
}

/// The reaction to a part of a recording that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// End with status 3
    #[default]
    Stop,
    /// Skip it and count it
    Skip,
}

impl Check {
    /// Description of how the times of a recording are read, stored in snapshots.
    fn times(&self) -> String {
        let field = self.time_field.as_deref().unwrap_or("time");
        if self.stamp == Some(StampOf::Publish) {
            return "read from the times of publication".to_owned();
        }
        format!("read from `{field}` in {}", self.time_unit.as_deref().unwrap_or("s"))
    }

    /// Draws verdicts and fields into a file, and returns the exit status: 0 whatever the verdicts are.
    pub fn draw(mut self, picture: Wanted) -> u8 {
        self.report.push(picture);
        self.draws = true;
        match self.run() {
            exit::VIOLATED | exit::INCONCLUSIVE => exit::SATISFIED,
            status => status,
        }
    }

    /// Checks, serves the page if there is one, and returns the exit status of the check.
    pub fn run(self) -> u8 {
        match self.page {
            #[cfg(feature = "page")]
            _ if self.attempt => self.attempted(),
            Some(listen) => self.with_page(listen),
            None => self.checked(),
        }
    }

    /// Checks, and returns the exit status.
    fn checked(mut self) -> u8 {
        if self.formula.is_some() && self.first.as_deref().is_some_and(is_deployment) {
            complain("--formula cannot be used with a deployment file, which names its specification");
            return exit::USAGE;
        }
        if let Some(why) = self.misplaced_file() {
            complain(&why);
            return exit::USAGE;
        }
        if let Err(status) = self.gather() {
            return status;
        }
        if self.traces.is_empty() && !self.unreadable.is_empty() {
            return exit::TRACE;
        }
        self.trim_topics();
        if let Err(error) = self.check_choice() {
            complain(&error);
            return exit::USAGE;
        }
        self.reading.recordings.clone_from(&self.traces);
        let (mut plan, printed, specification, in_simulated_time) = match self.plan() {
            Ok(planned) => planned,
            Err(status) => return self.unopened().unwrap_or(status),
        };
        self.in_simulated_time = in_simulated_time;
        if let Some(reset) = self.reset {
            plan.set_reset(reset.into());
        }
        if let Err(status) = self.set_workers(&mut plan) {
            return status;
        }
        let reports = match Reports::new(&self.report, &specification) {
            Ok(reports) => reports,
            Err(refused) => {
                complain(&refused.reason);
                return if refused.is_misuse { exit::USAGE } else { exit::TRACE };
            }
        };
        let sentences = [plan.mixtures(), plan.overlaps(), plan.undecidable()].concat();
        sentences.iter().for_each(|sentence| warn(sentence));
        if self.traces.is_empty() {
            complain("no recording to check: name one or more files, or `-` for standard input");
            return exit::USAGE;
        }
        if (self.resume.is_some() || self.snapshot_to.is_some()) && self.traces.len() > 1 && !self.merge {
            complain("--resume and --snapshot-to need exactly one recording, as a snapshot belongs to one");
            return exit::USAGE;
        }
        if self.page.is_some() {
            if self.recordings().len() > 1 {
                complain(
                    "--page shows the results of one recording: name one, or check all as one with --merge",
                );
                return exit::USAGE;
            }
            self.paged.describe(&specification);
        }
        if let Err(status) = self.fetch(&plan) {
            return status;
        }
        let restored = match self.restored(&mut plan, &specification) {
            Ok(restored) => restored,
            Err(status) => return status,
        };
        let store = match self.open_store(&specification) {
            Ok(store) => store,
            Err(status) => return status,
        };
        let checking = Checking::new(&self, plan, printed, specification.schemas, reports);
        checking.stored_in(store).run(restored)
    }

    /// Restores the session of `--resume`, if there is one.
    fn restored(&self, plan: &mut SessionPlan, specification: &Specification) -> Result<Option<Session>, u8> {
        let Some(snapshot) = &self.resume else { return Ok(None) };
        // The state of a snapshot is restored for the messages as they are recorded.
        if let Some(file) = self.traces.first()
            && let Ok(Opened::Messages(recording)) = self.open(file, plan)
        {
            // Errors are shown when the recording is read.
            let _ = reading::Reading::new(self, plan, &specification.schemas, recording.topics());
        }
        let restored = resume::restore(snapshot, plan, &self.times()).map_err(|error| {
            complain(&match self.explaining() {
                Some(option) => error.replace(
                    "leave --explain out",
                    &format!("leave {option} out, which explains them, or write the snapshot with --explain"),
                ),
                None => error,
            });
            exit::USAGE
        })?;
        Ok(Some(restored))
    }

    /// The option that explains violations in place of `--explain`.
    fn explaining(&self) -> Option<&'static str> {
        match (self.explain, self.report.is_empty(), self.page.is_some()) {
            (true, ..) | (false, true, false) => None,
            (false, false, false) => Some("--report"),
            (false, true, true) => Some("--page"),
            (false, false, true) => Some("--report and --page"),
        }
    }

    /// Opens the store of verdicts, if there is one.
    fn open_store(&self, specification: &Specification) -> Result<Option<Arc<CheckStore>>, u8> {
        let Some(path) = &self.store else { return Ok(None) };
        let refuse = |why: &str, status: u8| {
            complain(why);
            Err(status)
        };
        if !driven::IS_AVAILABLE {
            return refuse(&format!("--store: {}", driven::UNAVAILABLE), exit::USAGE);
        }
        let mut others = self.first.iter().chain(&self.traces).chain(&self.resume).chain(&self.snapshot_to);
        if let Some(other) = others.find(|other| driven::is_same_file(other, path)) {
            let why = format!("--store: {} is read or written otherwise: choose another file", shown(other));
            return refuse(&why, exit::USAGE);
        }
        match CheckStore::open(path, specification) {
            Ok(store) => Ok(Some(Arc::new(store))),
            Err(why) => refuse(&why, exit::TRACE),
        }
    }

    /// Removes blanks around the names of topics.
    fn trim_topics(&mut self) {
        self.topics = self.topics.iter().map(|name| name.trim().to_owned()).collect();
        self.topics.retain(|name| !name.is_empty());
    }

    /// The number of threads that check.
    fn threads(&self) -> usize {
        // Lines of a pipe are checked as they come.
        if self.recordings().len() < 2 || self.traces.iter().any(|trace| trace.as_os_str() == "-") {
            return 1;
        }
        self.jobs().min(self.recordings().len())
    }

    /// The number of threads that may be used.
    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.jobs.map_or_else(cores, usize::from)
    }

    /// The number of threads that may decode beside the one that evaluates.
    fn helpers(&self) -> usize {
        self.jobs() - 1
    }

    /// The sessions to run, of the deployment, or of the specification and the options; which of their verdicts to
    /// print; the specification; and whether time is that of a simulation.
    fn plan(&self) -> Result<(SessionPlan, rondel_runtime::Emit, Specification, bool), u8> {
        let options = self.options();
        if let Some(file) = self.first.as_deref().filter(|file| is_deployment(file)) {
            let given = [
                (self.formula.is_some(), "--formula"),
                (self.time_field.is_some(), "--time-field"),
                (self.time_unit.is_some(), "--time-unit"),
                (self.stamp.is_some(), "--stamp"),
            ];
            from_deployment("check", given.into_iter().chain(self.reading.given())).map_err(|why| {
                complain(&why);
                exit::USAGE
            })?;
            let recordings = &self.reading.recordings;
            let mut deployment = Deployment::for_recordings(file, recordings).map_err(|_| exit::USAGE)?;
            if deployment.synchronized.is_some() {
                complain("this deployment only synchronizes: it has no property to check");
                return Err(exit::USAGE);
            }
            let printed = self.emit.map_or(deployment.emit, Into::into);
            deployment.emit = self.emitted(printed, &deployment.specification);
            let is_simulated = deployment.clock.is_some();
            return Ok((deployment.plan(options), printed, deployment.specification, is_simulated));
        }
        let loaded =
            Specification::from_arguments(self.first.as_ref(), self.formula.as_deref(), &self.reading);
        let specification = loaded.map_err(|_| exit::USAGE)?;
        let (plan, printed) = self.plan_of(&specification)?;
        Ok((plan, printed, specification, false))
    }

    /// The sessions that check a specification, and which of their verdicts to print.
    fn plan_of(&self, specification: &Specification) -> Result<(SessionPlan, rondel_runtime::Emit), u8> {
        let options = self.options();
        if let Some(field) = &self.time_field {
            for topic in specification.spec.declared() {
                check_time_field(topic, field).map_err(|error| {
                    complain(&format!("--time-field {field}: {error}"));
                    exit::USAGE
                })?;
            }
        }
        let time = self.time_field.as_deref().map_or(TimeSource::Source, time_source);
        let input = Input { time, time_unit: self.unit(), ..Input::default() };
        let inputs = vec![input; specification.spec.declared().len()];
        // Times in the messages may be out of order, as they are in a live run; those of the lines are in the
        // order of the recording.
        let alignment = match &self.time_field {
            Some(_) => Alignment::by_default(&inputs),
            None => Options::default().alignment,
        };
        let printed = self.emit.map_or(options.emit, Into::into);
        let emit = self.emitted(printed, specification);
        let plan = SessionPlan::of(specification.checked(), Options { inputs, alignment, emit, ..options });
        Ok((plan, printed))
    }

    /// The options of the sessions but for how messages are read.
    fn options(&self) -> Options {
        Options {
            // A report and the page contain what caused a violation.
            explain: self.explain || !self.report.is_empty() || self.page.is_some(),
            ids: self.store.is_some(),
            signals: if self.report.is_empty() { 0 } else { Judged::MOST_VIOLATIONS as u32 },
            courses: self.draws || self.page.is_some(),
            // Recorded times of arrival set the clock.
            clock: Arc::new(ManualClock::default()),
            // A deployment has its limit; a recording by itself has none.
            largest_message: usize::MAX,
            ..Options::default()
        }
    }

    /// The verdicts that sessions emit so that these can be printed: reports and the page need every change, and reports of
    /// what looks ahead
    /// every verdict, as what follows one about an earlier time is known only so.
    fn emitted(&self, printed: rondel_runtime::Emit, specification: &Specification) -> rondel_runtime::Emit {
        let reports = self.draws || !self.report.is_empty();
        match printed {
            _ if reports && look_ahead(specification).contains(&true) => rondel_runtime::Emit::Every,
            rondel_runtime::Emit::Violations if reports || self.page.is_some() => {
                rondel_runtime::Emit::Change
            }
            emit => emit,
        }
    }

    fn unit(&self) -> TimeUnit {
        self.time_unit.as_deref().and_then(time_unit).unwrap_or_default()
    }
}
