//! `rondel demo` on the recording that comes with the program: verdicts with explanations, a picture, and commands to go on.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rondel_event::Timestamp;
use rondel_report::{Recording, Results};

use super::vehicle;
use crate::commands::check::Check;
use crate::commands::table_arguments::in_shell;
use crate::output::blocks::{self, Axis};
use crate::output::folder::write_new;
use crate::output::terminal;
use crate::output::time_text::TimeText;
use crate::specification::Specification;
use crate::{complain, exit};

/// The specification.
const SPECIFICATION: &str = include_str!("drive.rondel");
/// The names of its file and of that of the recording.
const FILES: [&str; 2] = ["drive.rondel", "drive.jsonl"];
/// The folder in the commands to try if none was written to.
const FOLDER: &str = "demo";
/// The fewest and the most columns of a line of the picture.
const WIDTHS: std::ops::RangeInclusive<usize> = 20..=100;

/// Checks the recording, with its files in a folder if one is named, and returns the exit status.
pub fn run(folder: Option<&Path>) -> u8 {
    let lines = vehicle::recording();
    if let Some(folder) = folder
        && let Err((status, error)) = write(folder, &lines)
    {
        complain(&error);
        return status;
    }
    let Ok(specification) = Specification::from_text(SPECIFICATION, FILES[0]) else { return exit::USAGE };
    print("A vehicle drives in a car park for 9 s. These are the properties that it must keep:\n\n");
    for line in SPECIFICATION.lines() {
        print(&if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") });
    }
    let command = format!("rondel check --explain {} {}", FILES[0], FILES[1]);
    print(&format!("\nA recording of the drive is checked, and violations are explained: {command}\n\n"));
    let mut check = Check::of_lines(FILES[1], lines.into_bytes());
    let status = match check.print(&specification) {
        // The faults are planted.
        Ok(exit::VIOLATED) => exit::SATISFIED,
        Ok(status) | Err(status) => status,
    };
    let results = match check.results(&specification, false) {
        Ok(results) => results,
        Err(status) => return status,
    };
    print("\nThe same over time: verdicts, and the fields that they are about.\n\n");
    print(&picture(&results, terminal::width(), terminal::colours_stdout()));
    print(&next(folder));
    status
}

/// Writes to standard output. A closed one cannot be reported anywhere.
fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Writes the specification and the recording to a folder.
///
/// # Errors
/// The exit status and the reason.
fn write(folder: &Path, lines: &str) -> Result<(), (u8, String)> {
    let files = FILES.map(|name| folder.join(name));
    if let Some(file) = files.iter().find(|file| file.exists()) {
        let reason = format!("{} exists already; name another folder with --write", file.display());
        return Err((exit::USAGE, reason));
    }
    let failed =
        |file: &Path, error: io::Error| (exit::TRACE, format!("cannot write {}: {error}", file.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let texts = [SPECIFICATION, lines];
    write_new(files.iter().map(PathBuf::as_path).zip(texts)).map_err(|(file, error)| failed(file, error))
}

/// The verdicts of the properties and the fields that they read, a line for each, on one axis of time.
fn picture(results: &Results, columns: usize, colour: bool) -> String {
    let Some(recording) = results.recordings.first() else { return String::new() };
    let (Some(begin), Some(end)) = (recording.begin, recording.end) else { return String::new() };
    let names = results.properties.iter().map(|property| property.name.as_str());
    let signals = recording.signals.iter().map(|signal| signal.name.as_str());
    let margin = names.clone().chain(signals).map(|name| name.chars().count()).max().unwrap_or(0) + 1;
    let width = columns.saturating_sub(margin).clamp(*WIDTHS.start(), *WIDTHS.end());
    let axis = Axis { begin, end, width };
    let mut text = String::new();
    for (name, judged) in names.zip(&recording.properties) {
        let bar = blocks::bar(&blocks::verdicts(&judged.changes, axis), colour);
        text += &format!("{name:<margin$}{bar}\n");
    }
    text += &fields(recording, axis, margin);
    let mut times = TimeText::default();
    let [begin, end] = [begin, end].map(|time| times.text(Timestamp::from_nanos(time)));
    text += &format!("{:<margin$}{}\n", "", blocks::axis(&begin, &end, width));
    text + "█ satisfied, ▁ violated; a field from its least value ▁ to its greatest █\n"
}

/// The lines of the fields.
fn fields(recording: &Recording, axis: Axis, margin: usize) -> String {
    let number = |value: &serde_json::Value| match value {
        serde_json::Value::Bool(value) => Some(f64::from(u8::from(*value))),
        value => value.as_f64(),
    };
    let line = |signal: &rondel_report::Signal| {
        let course: Vec<(i64, Option<f64>)> =
            signal.values.iter().map(|(time, value)| (*time, number(value))).collect();
        let (line, _) = blocks::values(&course, axis)?;
        Some(format!("{:<margin$}{line}\n", signal.name))
    };
    recording.signals.iter().filter_map(line).collect()
}

/// The commands to try next, with the files in a folder.
fn next(folder: Option<&Path>) -> String {
    let named = folder.unwrap_or(Path::new(FOLDER));
    let [specification, recording] = FILES.map(|name| in_shell(&named.join(name).display().to_string()));
    let path = |name: &str| in_shell(&named.join(name).display().to_string());
    let written = match folder {
        Some(folder) => format!("The files are in {}.", folder.display()),
        None => format!("Write the files first: rondel demo --write {FOLDER}"),
    };
    format!(
        "\n{written}\n\
         Next, change a bound, and check again:\n  \
         rondel check --explain {specification} {recording}\n\
         Draw it as a picture for a browser:\n  \
         rondel plot {specification} {recording} --out {}\n\
         Write a first specification from a recording, as from one of yours:\n  \
         rondel init {recording} --folder {}\n\
         `rondel demo --live` checks the same vehicle on a live network.\n",
        path("drive.html"),
        path("own")
    )
}
