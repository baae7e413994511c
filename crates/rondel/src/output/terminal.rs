//! The terminal: colours, messages to people, and log lines, all in one form.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use rondel_event::terminal::escaped_lines;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use rondel_net::zenoh::without_locations;

use crate::output::time_text;

/// Condition for coloured output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The level from which on events are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Off,
    /// Failures: a requested operation does not work
    Error,
    /// Something was lost, refused or degraded
    Warn,
    /// Connections and subscriptions too
    Info,
    /// Details of connections too
    Debug,
    /// Every message too
    Trace,
}

/// Whether messages carry the time: in commands that run until they are stopped.
static LIVE: AtomicBool = AtomicBool::new(false);

/// Chooses whether output is coloured.
pub fn set_color(color: Color) {
    match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Gives every message from here on the time of day.
pub fn show_times() {
    LIVE.store(true, Ordering::Relaxed);
}

/// Whether standard output is coloured.
pub fn colours_stdout() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// The number of columns of standard output: of a terminal its own, else `COLUMNS`, else 100.
pub fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let variable = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    terminal.or_else(variable).filter(|width| *width > 0).unwrap_or(100)
}

/// Whether standard error is coloured.
pub fn colours_stderr() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

thread_local! {
    /// The lines of a thread that keeps them.
    static KEPT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// Whether lines have no times.
    static PLAIN: Cell<bool> = const { Cell::new(false) };
}

/// Starts to keep the lines that this thread writes.
pub fn keep_lines() {
    KEPT.set(Some(Vec::new()));
}

/// Takes the lines that this thread has kept.
pub fn take_lines() -> Vec<String> {
    KEPT.with_borrow_mut(|kept| kept.as_mut().map(std::mem::take).unwrap_or_default())
}

/// Calls a function. Returns its result, and the lines that it has shown on this thread, without colours and times, instead
/// of on standard error.
pub fn kept_lines<T>(call: impl FnOnce() -> T) -> (T, Vec<String>) {
    let before = KEPT.replace(Some(Vec::new()));
    PLAIN.set(true);
    let result = call();
    PLAIN.set(false);
    let lines = KEPT.replace(before).unwrap_or_default();
    (result, lines.iter().map(|line| strip_str(line).to_string()).collect())
}

/// Writes a line to standard error.
pub fn say(line: &str) {
    let is_kept = KEPT.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept.push(line.to_owned())).is_some());
    if is_kept {
        return;
    }
    // In one piece, so that it does not mix with standard output. A closed standard error is ignored.
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Writes an error to standard error.
pub fn complain(message: &str) {
    say(&format!("{} {}", head(Level::ERROR, colours_stderr()), escaped_lines(message)));
}

/// Writes a warning to standard error.
pub fn warn(message: &str) {
    say(&format!("{} {}", head(Level::WARN, colours_stderr()), escaped_lines(message)));
}

/// The head of a message: date and time in a live command, and the level.
fn head(level: Level, colour: bool) -> String {
    let (word, code) = match level {
        Level::ERROR => ("error:", "\x1b[1;31m"),
        Level::WARN => ("warning:", "\x1b[1;33m"),
        Level::INFO => ("info:", "\x1b[1;32m"),
        Level::DEBUG => ("debug:", "\x1b[1;34m"),
        Level::TRACE => ("trace:", "\x1b[2m"),
    };
    let is_timed = LIVE.load(Ordering::Relaxed) && !PLAIN.get();
    let time = if is_timed { time_text::now() + " " } else { String::new() };
    if colour { format!("{time}{code}{word}\x1b[0m") } else { format!("{time}{word}") }
}

/// Starts logging: `--log` decides, then RUST_LOG, then RONDEL_LOG, its name of before.
pub fn log(level: Option<LogLevel>) {
    let usual = "error,rondel_net=warn";
    let filter = match level {
        Some(LogLevel::Off) => EnvFilter::new("off"),
        Some(level) => {
            let word = format!("{level:?}").to_lowercase();
            EnvFilter::new(format!("error,rondel_net={word},rondel={word}"))
        }
        None => {
            let renamed = std::env::var("RONDEL_LOG").ok();
            if renamed.is_some() {
                warn("RONDEL_LOG is now called RUST_LOG, or --log; the next version reads only these");
            }
            let text = std::env::var("RUST_LOG").ok().or(renamed);
            text.and_then(|text| EnvFilter::try_new(text).ok()).unwrap_or_else(|| EnvFilter::new(usual))
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours_stderr())
        .event_format(Lines)
        .init();
}

/// Log lines in the form of messages: `2026-11-22 18:04:13.123 warning: text topic=…`.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = String::new();
        context.format_fields(Writer::new(&mut fields), event)?;
        let head = head(*event.metadata().level(), writer.has_ansi_escapes());
        writeln!(writer, "{head} {}", without_locations(&fields))
    }
}
