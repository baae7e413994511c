//! `rondel repl`: formulas over a recording, line by line.

mod editor;
mod input;
mod playground;
mod screen;
mod vocabulary;

use std::io::{self, BufWriter, IsTerminal, Stdout};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use rondel_recording::shown;
use rondel_report::{Judged, Recording, Results};
use rondel_runtime::survey::{self, Survey, declarations};

use super::check::Check;
use super::selecting::can_be_read_again;
use super::topics::recorded;
use crate::output::Output;
use crate::output::terminal;
use crate::schemas::Schemas;
use crate::schemas::text_files::read_text;
use crate::specification::{Specification, is_deployment, is_specification, wants_specification};
use crate::{complain, exit, say, warn};
use editor::{Terminal, Typed};
use input::{LONGEST, Lines};
use playground::{Base, Meaning, Playground};
use screen::Screen;
use vocabulary::{COMMANDS, Vocabulary};

/// Maximum size of the messages that are examined for topics and fields, in bytes: enough for all that recur.
const SURVEYED: u64 = 64 << 20;

/// Size in bytes above which a recording is announced before it is examined, which takes a while.
const LARGE: u64 = 16 << 20;

/// The columns where there is no terminal.
const COLUMNS: usize = 80;

/// Try out formulas on a recording: type one, and see its verdict over time
///
/// Topics and fields are those of the recording; Tab completes them. A formula shows its verdict over time, a number its
/// values; `let NAME = FORMULA` is kept, and :help lists the commands. If standard input is no terminal, its lines are read
/// without prompts.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, override_usage = "rondel repl [OPTIONS] [SPECIFICATION] <TRACE>...")]
pub struct Repl {
    /// A specification (.rondel) whose topics, definitions and types lines can use instead of those of the recording; and the recordings: MCAP files, folders of rosbag2 or their databases (.db3), bags of ROS 1 (.bag), logs of PX4 (.ulg), tables (.csv), archives in XML (.xml) or JSON lines, and folders of recordings; .gz and .zst are decompressed
    #[arg(value_name = "TRACE", required = true)]
    files: Vec<PathBuf>,
    /// A file or folder with definitions of message types: *.msg, *.idl, *.desc, *.binpb, *.pb, *.fbs, *.bfbs, *.avsc (may be repeated)
    #[arg(long, value_name = "PATH")]
    schemas: Vec<PathBuf>,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  every line was evaluated, whatever the verdicts are; on a terminal, always
  2  wrong usage or specification, or a line with a mistake
  3  a recording could not be read, or the output not be written";

/// The specification, if the first or another file is one, and the recordings.
fn specification_and_recordings(files: Vec<PathBuf>) -> Result<(Option<PathBuf>, Vec<PathBuf>), String> {
    let is_spec = |file: &PathBuf| is_specification(file) || is_deployment(file);
    let (mut specs, traces): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(is_spec);
    match (specs.len(), traces.first()) {
        (0, _) => Ok((None, traces)),
        (1, Some(_)) => Ok((specs.pop(), traces)),
        (1, None) => Err(format!(
            "{0} is a specification: name a recording after it, `rondel repl {0} TRACE`",
            shown(&specs[0])
        )),
        _ => Err(format!(
            "{} and {} are both specifications: leave one of them out",
            shown(&specs[0]),
            shown(&specs[1])
        )),
    }
}

/// Outcome of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Well,
    Refused,
    Unread,
    Quit,
}

/// The state between two lines.
struct Session {
    /// The recordings are read again for every formula: so they need no memory, whatever their size, and one `Session`
    /// of the runtime gives the verdicts of all commands.
    check: Check,
    playground: Playground,
    vocabulary: Vocabulary,
    screen: Screen,
    interrupted: Arc<AtomicBool>,
    out: Output<BufWriter<Stdout>>,
    /// Whether an empty line precedes the next output.
    gap: bool,
    /// Whether anything was printed.
    has_printed: bool,
}

impl Repl {
    /// Reads lines until their end, and returns the exit status.
    pub fn run(self) -> u8 {
        let mut session = match self.start() {
            Ok(session) => session,
            Err(status) => return status,
        };
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            session.interact()
        } else {
            session.script()
        }
    }

    fn start(self) -> Result<Session, u8> {
        let (spec, traces) = specification_and_recordings(self.files).map_err(|error| {
            complain(&error);
            exit::USAGE
        })?;
        if let Some(trace) = traces.iter().find(|trace| !can_be_read_again(trace)) {
            complain(&format!(
                "{}: a recording is read again for each formula, so it must be a file or a folder",
                shown(trace)
            ));
            return Err(exit::USAGE);
        }
        let refused = |error: &dyn std::fmt::Display| {
            complain(&error.to_string());
            exit::USAGE
        };
        let schemas = Schemas::read(&self.schemas).map_err(|error| refused(&error))?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let check = Check::of_recordings(traces, Arc::clone(&interrupted));
        if check.traces().is_empty() {
            return Err(exit::TRACE);
        }
        let schemas = Arc::new(Mutex::new(schemas.with_recordings(check.traces())));
        let found = topics(check.traces(), &schemas)?;
        let base = match spec {
            None => Base::Recordings(found),
            Some(file) => {
                if is_deployment(&file) {
                    return Err(refused(&wants_specification(&file.display().to_string())));
                }
                read_text(&file).map_err(|error| {
                    refused(&format!("cannot read the specification {}: {error}", file.display()))
                })?;
                Base::File(file)
            }
        };
        let schemas = std::mem::take(&mut *schemas.lock().unwrap_or_else(PoisonError::into_inner));
        let playground = Playground::new(base, schemas).map_err(|mistakes| {
            say(mistakes.trim_end());
            exit::USAGE
        })?;
        Ok(Session {
            check,
            vocabulary: playground.vocabulary(),
            playground,
            screen: Screen { width: COLUMNS, colour: terminal::colours_stdout(), from: None, to: None },
            interrupted,
            out: Output::new(BufWriter::new(io::stdout())),
            gap: false,
            has_printed: false,
        })
    }
}

/// The topics of recordings, as the language declares them.
fn topics(traces: &[PathBuf], schemas: &Arc<Mutex<Schemas>>) -> Result<Vec<survey::Declaration>, u8> {
    let mut found = Survey::new(survey::TOPICS);
    for trace in traces {
        if io::stderr().is_terminal() && std::fs::metadata(trace).is_ok_and(|file| file.len() > LARGE) {
            say(&format!("looking for topics and fields in {}", shown(trace)));
        }
        let recorded::Surveyed { survey, is_whole, .. } =
            recorded::survey(trace, found, Some(schemas), recorded::Part::first(SURVEYED))?;
        found = survey;
        if !is_whole {
            warn(&format!(
                "{}: topics and fields are those of the first {} MiB; name others in a specification, before the recording",
                shown(trace),
                SURVEYED >> 20
            ));
        }
    }
    let knows = |name: &str| schemas.lock().unwrap_or_else(PoisonError::into_inner).schema(name).is_ok();
    let (declared, omitted) = declarations(&found, survey::TOPICS, knows);
    omitted.iter().for_each(|text| warn(&format!("left out: {text}")));
    Ok(declared)
}

impl Session {
    /// Reads lines from a terminal.
    fn interact(&mut self) -> u8 {
        let mut terminal = match Terminal::open() {
            Ok(terminal) => terminal,
            Err(error) => {
                complain(&error);
                return exit::USAGE;
            }
        };
        // While a recording is read, Ctrl-C ends that and not the command; without it, it ends the command.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&self.interrupted));
        self.print("Type a formula, or :help.\n");
        loop {
            self.screen.width = terminal.width().unwrap_or(COLUMNS);
            self.interrupted.store(false, Ordering::Relaxed);
            match terminal.read(&self.vocabulary) {
                Ok(Typed::Line(line)) if self.answer(&line) == Answered::Quit => return exit::SATISFIED,
                Ok(Typed::Line(_) | Typed::Dropped) => {}
                Ok(Typed::End) => return exit::SATISFIED,
                Err(error) => {
                    complain(&error);
                    return exit::TRACE;
                }
            }
        }
    }

    /// Reads lines from standard input, without prompts.
    fn script(&mut self) -> u8 {
        let (mut is_refused, mut is_unread) = (false, false);
        for (number, line) in (1..).zip(Lines::new(io::stdin().lock())) {
            let answered = match line {
                Err(reason) => {
                    complain(&format!("line {number} of the input {reason}"));
                    Answered::Refused
                }
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => {
                    self.gap = self.has_printed;
                    self.answer(&line)
                }
            };
            is_refused |= answered == Answered::Refused;
            is_unread |= answered == Answered::Unread;
            if answered == Answered::Quit || self.out.is_closed() {
                break;
            }
        }
        self.out.flush();
        match self.out.failure() {
            Some(error) => {
                if error.kind() != io::ErrorKind::BrokenPipe {
                    complain(&format!("cannot write the output: {error}"));
                }
                exit::TRACE
            }
            None if is_unread => exit::TRACE,
            None if is_refused => exit::USAGE,
            None => exit::SATISFIED,
        }
    }

    fn print(&mut self, text: &str) {
        if std::mem::take(&mut self.gap) {
            self.out.write(b"\n");
        }
        self.has_printed = true;
        self.out.write(text.as_bytes());
        self.out.flush();
    }

    /// Executes a line.
    fn answer(&mut self, line: &str) -> Answered {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
            return Answered::Well;
        }
        if let Some(command) = line.strip_prefix(':') {
            return self.command(command);
        }
        if line.len() > LONGEST {
            return self.refuse(&format!("a line has at most {} KiB", LONGEST >> 10));
        }
        let meaning = match self.playground.understand(line) {
            Ok((meaning, warnings)) => {
                if !warnings.is_empty() {
                    say(warnings.trim_end());
                }
                meaning
            }
            // Diagnostics are several lines, with a heading of their own.
            Err(mistakes) if mistakes.contains('\n') => {
                say(mistakes.trim_end());
                return Answered::Refused;
            }
            Err(reason) => return self.refuse(&reason),
        };
        match meaning {
            Meaning::Kept(name) => {
                self.vocabulary = self.playground.vocabulary();
                self.print(&format!("kept {name}\n"));
                Answered::Well
            }
            Meaning::Number(specification, unit) => {
                self.evaluate(&specification, true, None, &|screen, recording, judged| {
                    screen.number(recording, judged, unit)
                })
            }
            Meaning::Constant(value) => {
                self.print(&format!("{value}\n"));
                Answered::Well
            }
            Meaning::Properties(all, kept) => {
                let answered = self.properties(&all);
                if let Some(name) = kept {
                    self.vocabulary = self.playground.vocabulary();
                    self.print(&format!("kept {name}\n"));
                }
                answered
            }
        }
    }

    /// Shows the verdicts of properties, with their names if there are several.
    fn properties(&mut self, all: &[Specification]) -> Answered {
        let mut answered = Answered::Well;
        for specification in all {
            let name = specification.spec.properties.first().map(|property| property.name.as_str());
            let heading = name.filter(|_| all.len() > 1);
            let one = self.evaluate(specification, false, heading, &Screen::verdicts);
            answered = if one == Answered::Well { answered } else { one };
        }
        answered
    }

    /// Evaluates, and prints what `shown` makes of each recording.
    fn evaluate(
        &mut self,
        specification: &Specification,
        robustness: bool,
        heading: Option<&str>,
        shown: &dyn Fn(&Screen, &Recording, &Judged) -> String,
    ) -> Answered {
        let Ok(Results { recordings, .. }) = self.check.results(specification, robustness) else {
            return Answered::Refused;
        };
        if self.interrupted.load(Ordering::Relaxed) {
            say("interrupted");
            return Answered::Well;
        }
        let mut text = heading.map_or_else(String::new, |name| format!("{name}\n"));
        for recording in &recordings {
            if recordings.len() > 1 {
                text += &format!("{}\n", recording.name);
            }
            if let Some(judged) = recording.properties.first() {
                text += &shown(&self.screen, recording, judged);
            }
            recording.remarks.iter().for_each(|remark| text += &format!("{remark}\n"));
        }
        self.print(&text);
        match recordings.iter().any(|recording| recording.problem.is_some()) {
            true => Answered::Unread,
            false => Answered::Well,
        }
    }

    fn refuse(&self, reason: &str) -> Answered {
        complain(reason);
        Answered::Refused
    }

    /// Carries out a command, which stood behind a colon.
    fn command(&mut self, command: &str) -> Answered {
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
        match (name, argument) {
            ("quit" | "q" | "exit", _) => return Answered::Quit,
            ("help" | "h" | "?", _) => self.print(&help()),
            ("topics", _) => self.topics(),
            ("fields", topic) => return self.fields(topic),
            ("lets", _) => {
                let text: String = self.playground.definitions().map(|line| format!("{line}\n")).collect();
                self.print(if text.is_empty() { "nothing is defined\n" } else { &text });
            }
            ("drop", Some(name)) => {
                if let Err(reason) = self.playground.forget(name) {
                    return self.refuse(&reason);
                }
                self.vocabulary = self.playground.vocabulary();
            }
            ("drop", None) => return self.refuse("name what to remove: `:drop NAME`"),
            ("from" | "to", time) => {
                let mut screen = self.screen.clone();
                let limit = if name == "from" { &mut screen.from } else { &mut screen.to };
                *limit = time.map(str::to_owned);
                if let Err(reason) = screen.check() {
                    return self.refuse(&reason);
                }
                self.screen = screen;
            }
            ("all", _) => (self.screen.from, self.screen.to) = (None, None),
            _ => {
                let known = COMMANDS.iter().map(|(name, ..)| &name[1..]);
                let near = rondel_spec::nearest(name, known);
                let near = near.map_or_else(String::new, |near| format!("; did you mean `:{near}`?"));
                return self.refuse(&format!("there is no command `:{name}`{near}; :help lists them"));
            }
        }
        Answered::Well
    }

    /// Lists the topics with their addresses and types.
    fn topics(&mut self) {
        let topics = self.playground.topics();
        let width = topics.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let row = |(name, address, kind): &(String, String, Option<String>)| {
            let kind = kind.as_ref().map_or_else(String::new, |kind| format!("  {kind}"));
            format!("{name:<width$}  {address}{kind}\n")
        };
        let text: String = topics.iter().map(row).collect();
        self.print(if text.is_empty() { "no topic\n" } else { &text });
    }

    /// Lists the fields of a topic, or of all.
    fn fields(&mut self, topic: Option<&str>) -> Answered {
        let topics: Vec<String> = self.vocabulary.topics().map(str::to_owned).collect();
        if let Some(topic) = topic.filter(|topic| !topics.iter().any(|known| known == topic)) {
            let near = rondel_spec::nearest(topic, topics.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return self.refuse(&format!("there is no topic `{topic}`{near}"));
        }
        let wanted = topics.iter().filter(|known| topic.is_none_or(|topic| topic == *known));
        let fields: Vec<(String, String)> = wanted.flat_map(|topic| self.vocabulary.fields(topic)).collect();
        let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text: String =
            fields.iter().map(|(name, kind)| format!("{name:<width$}  {kind}\n")).collect();
        for open in self.playground.open_topics().filter(|open| topic.is_none_or(|topic| topic == *open)) {
            text += &format!("{open} has further fields: arrays of objects, or values of several types\n");
        }
        self.print(if text.is_empty() { "no field is known\n" } else { &text });
        Answered::Well
    }
}

/// Text of the help: commands, and the meaning of the blocks.
fn help() -> String {
    let mut text = "\
FORMULA          its verdict over time: █ satisfied, ▁ violated, ▒ inconclusive, ░ satisfied but vacuous
NUMBER           a field or another number over time, from ▁ to █
let NAME = …     keep a definition; const, topic and use are kept too
property …       the verdict of a property as a specification has it, with its attributes
"
    .to_owned();
    for (name, argument, meaning) in COMMANDS {
        text += &format!("{:<16} {meaning}\n", format!("{name} {argument}"));
    }
    text
}
