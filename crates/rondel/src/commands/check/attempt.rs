//! The check of a text of a viewer of the page, in a process of its own: the text comes on standard input, and the result
//! goes to standard output, as the API of the page describes it.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::iter;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rondel_page::{StoredSignal, diagnostics_json};
use rondel_report::{Change, Claim, EvidencePoint, Judged, Outcome, Recording, Results, Signal, Violation};
use rondel_spec::Sources;
use serde_json::{Map, Value, json};

use super::Check;
use crate::live::page::Playground;
use crate::schemas::Schemas;
use crate::specification::{Edited, Specification, Syntax, files, is_deployment};
use crate::{complain, exit};

/// Limits of a check: bytes of memory, and seconds of CPU time.
const MEMORY: u64 = 1 << 30;
const CPU_SECONDS: u64 = 5;
/// Largest request, in bytes.
const REQUEST: u64 = 8 << 20;
/// Width of signals.
const WIDTH: usize = 2000;
/// The name of a text that is no file.
const TEXT: &str = "playground";

/// The option that makes a check one of a text, and the option for each file that the text may import.
const OPTION: &str = "--attempt";
const IMPORTABLE: &str = "--importable=";

/// Adds a recording to a playground that has no specification of its own.
pub fn offer(playground: &mut Playground, recording: &Path) {
    // The formula stands for the text, so that no file of a specification is expected.
    let arguments = ["check", OPTION, "--formula=true", "--"].map(OsString::from);
    let arguments = arguments.into_iter().chain([recording.as_os_str().to_owned()]).collect();
    playground.add(rondel_recording::shown(recording), arguments);
}

impl Check {
    /// The playground of this check, if its recording can be read again, and its specification is a file in Rondel's
    /// language.
    pub(super) fn playground(&self) -> Option<Playground> {
        let first = self.first.as_deref()?;
        let is_text = self.formula.is_none()
            && self.reading.syntax == Syntax::Rondel
            && first.extension().is_none_or(|ending| ending != "rye")
            && !is_deployment(first);
        let is_again = self.resume.is_none()
            && [first]
                .into_iter()
                .chain(self.traces.iter().map(PathBuf::as_path))
                .all(|path| path.is_file() || path.is_dir());
        if !is_text || !is_again {
            return None;
        }
        let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let command = arguments.iter().position(|argument| argument == "check")?;
        // Once, as viewers may save a text with other imports to the specification.
        let importable = files::imported(first).into_iter().map(|file| {
            let mut option = OsString::from(IMPORTABLE);
            option.push(file);
            option
        });
        let added: Vec<OsString> = iter::once(OsString::from(OPTION)).chain(importable).collect();
        arguments.splice(command + 1..command + 1, added);
        let mut playground = Playground::new(self.save_to.clone());
        playground.add(self.name(self.traces.first()?), arguments);
        Some(playground)
    }

    /// Checks the text on standard input, and returns the exit status: 0 whatever the verdicts are.
    pub(super) fn attempted(self) -> u8 {
        match self.attempt_result() {
            Ok(result) => match writeln!(io::stdout().lock(), "{result}") {
                Ok(()) => exit::SATISFIED,
                Err(_) => exit::TRACE,
            },
            Err(why) => {
                complain(&why);
                exit::TRACE
            }
        }
    }

    fn attempt_result(mut self) -> Result<Value, String> {
        // Before anything is read. A text without bounds ends this process and no other.
        for (resource, limit) in
            [(Resource::RLIMIT_DATA, MEMORY), (Resource::RLIMIT_CPU, CPU_SECONDS), (Resource::RLIMIT_CORE, 0)]
        {
            // A lower limit of the system stays.
            let set = getrlimit(resource)
                .and_then(|(_, most)| setrlimit(resource, limit.min(most), limit.min(most)));
            set.map_err(|error| format!("cannot limit the check: {error}"))?;
        }
        let mut request = Vec::new();
        io::stdin().lock().take(REQUEST).read_to_end(&mut request).map_err(|error| error.to_string())?;
        let request: Value = serde_json::from_slice(&request).map_err(|error| error.to_string())?;
        let text = request["specification"].as_str().unwrap_or_default();
        if self.formula.take().is_some() {
            self.traces.splice(0..0, self.first.take());
        }
        self.expand();
        self.trim_topics();
        if let Some((_, why)) = self.unreadable.first() {
            return Err(why.clone());
        }
        self.reading.recordings.clone_from(&self.traces);
        let sources = match &self.first {
            Some(file) => {
                let importable = std::mem::take(&mut self.importable).into_iter().collect();
                files::load_edited(file, &file.display().to_string(), text.to_owned(), importable)
            }
            None => Sources::alone(TEXT, text),
        };
        let schemas = Schemas::read(&self.reading.schemas)?.with_recordings(&self.reading.recordings);
        let Edited { specification, diagnostics, further } =
            Specification::edited(sources.clone(), &self.reading, schemas);
        let diagnostics = diagnostics_json(&diagnostics, &sources);
        let Some(specification) = specification else {
            let error = (!further.is_empty()).then(|| further.join("; "));
            return Ok(answer(&diagnostics, error, None));
        };
        let mut check = match request["messages"].as_str() {
            Some(messages) => Check::of_lines("messages", messages.as_bytes().to_vec()),
            None => Check { explain: true, ..self },
        };
        (check.jobs, check.workers) = (Some(1), None);
        if check.traces.len() > 1 && !check.merge {
            return Err("the playground checks one recording".to_owned());
        }
        match check.results(&specification, false) {
            Ok(results) => Ok(answer(&diagnostics, None, Some(&results))),
            Err(_) => Err(String::from("the recording cannot be checked against this specification")),
        }
    }
}

/// The result as the API describes it.
fn answer(diagnostics: &[Value], error: Option<String>, results: Option<&Results>) -> Value {
    let unread = Recording::default();
    let recording = results.and_then(|results| results.recordings.first()).unwrap_or(&unread);
    let judged = results.into_iter().flat_map(|results| results.judged(recording));
    let properties: Vec<Value> = judged.map(|(claim, judged)| property(claim, judged)).collect();
    let (begin, end) = (recording.begin.unwrap_or(0), recording.end.unwrap_or(0));
    let signals: Vec<Value> =
        recording.signals.iter().map(|signal| stored(signal).json(begin, end, WIDTH)).collect();
    json!({
        "diagnostics": diagnostics,
        "error": error.or_else(|| recording.problem.clone()),
        "remarks": recording.remarks,
        "events": recording.events,
        "begin": recording.begin.map(seconds),
        "end": recording.end.map(seconds),
        "properties": properties,
        "signals": signals,
    })
}

fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

fn property(claim: &Claim, judged: &Judged) -> Value {
    let remark = [judged.remark.as_str()].into_iter().chain(judged.vacuous.iter().map(String::as_str));
    let remark: Vec<&str> = remark.filter(|part| !part.is_empty()).collect();
    let number = |change: &Change| match change.verdict {
        Outcome::Violated => 1,
        Outcome::Inconclusive => 2,
        Outcome::Satisfied | Outcome::Vacuous => 0,
    };
    json!({
        "name": claim.name,
        "severity": claim.severity.as_deref().unwrap_or_default(),
        "outcome": judged.outcome.as_str(),
        "remark": remark.join("; "),
        "count": judged.count,
        "timeline": {
            "times": judged.changes.iter().map(|change| seconds(change.time_ns)).collect::<Vec<_>>(),
            "verdicts": judged.changes.iter().map(number).collect::<Vec<_>>(),
        },
        "violations": judged.violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

fn violation(violation: &Violation) -> Value {
    json!({
        "time": seconds(violation.time_ns),
        "certain": seconds(violation.certain_ns),
        "parameters": violation.parameters,
        "values": violation.values.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<String, Value>>(),
        "evidence": violation.evidence.iter().map(evidence).collect::<Vec<_>>(),
    })
}

fn evidence(point: &EvidencePoint) -> Value {
    json!({
        "time": seconds(point.time_ns),
        "after": point.after,
        "topic": point.topic,
        "values": point.values.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<String, Value>>(),
    })
}

/// A signal of a report as one of the page.
fn stored(signal: &Signal) -> StoredSignal {
    let value = |value: &Value| match value {
        Value::Bool(truth) => Some(rondel_event::Value::Bool(*truth)),
        Value::Number(number) => number.as_f64().map(rondel_event::Value::Float),
        Value::String(text) => Some(rondel_event::Value::String(text.as_str().into())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    StoredSignal {
        name: signal.name.clone(),
        thresholds: signal.thresholds.clone(),
        values: signal.values.iter().map(|(time, own)| (*time, value(own))).collect(),
    }
}
