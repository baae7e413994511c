//! `rondel test`: the tests embedded in specifications.

use std::fmt::Write as _;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rondel_event::{Named, Path, Segment, Timestamp, Value, Verdict};
use rondel_runtime::testing::{self, Came, Outcome};
use rondel_runtime::text::{counted, grouped, parameters_text};
use rondel_runtime::{Options, Reason, SessionPlan, formula};
use rondel_sinks::RunKind;
use rondel_spec::{Expectation, Expr, ExprId, Spec, Test as SpecTest};
use serde_json::json;

use super::explain::with_guards;

use crate::output::terminal;
use crate::output::{Format, Output, colour_of};
use crate::sinks::driven::{self, Described, Destination, RunDescription, StoreSettings};
use crate::specification::{Reading, Specification};
use crate::{complain, exit};

/// The number of characters of a message that are shown.
const SHOWN: usize = 60;

/// The number of keys that are listed.
const KEYS: usize = 5;

/// Time without progress for which the store is waited for.
const STORE: Duration = Duration::from_secs(60);

/// Run the tests embedded in specifications
///
/// Each test starts from the beginning, with its own messages only. A failed test shows the messages and the
/// verdicts over time.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Test {
    /// The specifications
    #[arg(value_name = "SPEC", required = true)]
    files: Vec<PathBuf>,
    /// Run only tests whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// Explain the violations in failed tests
    #[arg(long)]
    explain: bool,
    /// Keep the verdicts of every test in this file, a store of SQLite that `rondel query` reads
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// The format of the results
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  every test passed
  1  a test failed
  2  wrong usage or specification, or no test has that name
  3  the output, or the store of verdicts, could not be written";

impl Test {
    /// Runs the tests, and returns the exit status.
    pub fn run(self) -> u8 {
        let mut out = Output::new(BufWriter::new(io::stdout().lock()));
        let colour = terminal::colours_stdout();
        let (mut passed, mut failed, mut refused) = (0, 0, false);
        let store = match self.open_store() {
            Ok(store) => store,
            Err(status) => return status,
        };
        for file in &self.files {
            let Ok(specification) = Specification::from_file(file, &self.reading) else {
                refused = true;
                continue;
            };
            let options = Options { explain: self.explain, ..Options::default() };
            let described = store.as_ref().map(|_| Described::of(&specification));
            let plan = SessionPlan::of(specification.checked(), options);
            let is_meant =
                |test: &&SpecTest| self.filter.as_ref().is_none_or(|text| test.name.contains(text.as_str()));
            for test in specification.spec.tests.iter().filter(is_meant) {
                let ran = match testing::run(&plan, test) {
                    Ok(ran) => ran,
                    Err(error) => {
                        complain(&format!("{}: {error}", specification.source));
                        refused = true;
                        break;
                    }
                };
                if let Some((store, described)) = store.as_ref().zip(described.as_ref()) {
                    keep(store, described, &plan, test, &ran);
                }
                *(if ran.is_ok() { &mut passed } else { &mut failed }) += 1_u64;
                let shown = Shown { specification: &specification, test, ran: &ran, colour };
                out.write(
                    match self.format {
                        Format::Text => shown.text(),
                        Format::Json => shown.json() + "\n",
                    }
                    .as_bytes(),
                );
            }
        }
        if passed + failed > 0 {
            let summary = format!("{} passed, {} failed", counted(passed, "test", "tests"), grouped(failed));
            match self.format {
                Format::Text => out.write(format!("\n{summary}\n").as_bytes()),
                Format::Json => crate::say(&summary),
            }
        }
        let stored = store.map(|store| store.close(STORE)).filter(|stored| !stored.is_complete());
        if let Err(error) = out.finish() {
            complain(&format!("cannot write the results of the tests: {error}"));
            return exit::TRACE;
        }
        if refused {
            return exit::USAGE;
        }
        if let Some(stored) = stored {
            complain(&stored.sentence());
            return exit::TRACE;
        }
        match (passed, failed, &self.filter) {
            (0, 0, Some(text)) => complain(&format!("no test has '{text}' in its name")),
            (0, 0, None) => complain("the specification has no test; write one as test \"name\" { … }"),
            (_, 0, _) => return exit::SATISFIED,
            _ => return exit::VIOLATED,
        }
        exit::USAGE
    }

    /// Opens the store of verdicts, if there is one.
    fn open_store(&self) -> Result<Option<Destination>, u8> {
        let Some(path) = &self.store else { return Ok(None) };
        let refuse = |why: &str, status: u8| {
            complain(why);
            Err(status)
        };
        if !driven::IS_AVAILABLE {
            return refuse(&format!("--store: {}", driven::UNAVAILABLE), exit::USAGE);
        }
        if self.files.iter().any(|file| driven::is_same_file(file, path)) {
            let why = format!("--store: {} is a specification: choose another file", path.display());
            return refuse(&why, exit::USAGE);
        }
        let settings = StoreSettings { wait: Some(STORE), ..StoreSettings::of(path.clone()) };
        match settings.check().and_then(|()| Destination::store(&settings)) {
            Ok(store) => Ok(Some(store)),
            Err(why) => refuse(&why, exit::TRACE),
        }
    }
}

/// Stores the verdicts of a test, as a run of its own.
fn keep(store: &Destination, specification: &Described, plan: &SessionPlan, test: &SpecTest, ran: &Outcome) {
    let feed = store.begin(&RunDescription {
        kind: RunKind::Test,
        resumes: false,
        specification,
        configuration: &test.name,
        configuration_hash: "",
        properties: plan.properties(),
    });
    let Some(mut feed) = feed else { return };
    for came in &ran.came {
        if let Some(property) = plan.properties().get(came.property as usize) {
            feed.came(came, property);
        }
    }
    feed.end(if ran.is_ok() { "passed" } else { "failed" });
}

/// A test and its outcome.
struct Shown<'a> {
    specification: &'a Specification,
    test: &'a SpecTest,
    ran: &'a Outcome,
    colour: bool,
}

impl Shown<'_> {
    fn unmet(&self) -> impl Iterator<Item = &Expectation> {
        self.ran.unmet.iter().map(|i| &self.test.expectations[*i])
    }

    fn place(&self, offset: usize) -> String {
        let place = self.specification.place(offset);
        format!("{}:{}:{}", place.file, place.line, place.column)
    }

    fn expected(&self, expectation: &Expectation) -> String {
        expected(&self.specification.spec, expectation)
    }

    fn text(&self) -> String {
        let name = &self.test.name;
        let paint = |code: &'static str| if self.colour { (code, "\x1b[0m") } else { ("", "") };
        let mut text = if self.ran.is_ok() {
            let (on, off) = paint("\x1b[32m");
            format!("{on}ok{off}      {name}\n")
        } else {
            let (on, off) = paint("\x1b[1;31m");
            format!("{on}FAILED{off}  {name}\n")
        };
        for problem in self.problems() {
            text += &format!("  {}: {problem}\n", self.place(self.test.offset));
        }
        for expectation in self.unmet() {
            text +=
                &format!("  {}: expected {}\n", self.place(expectation.offset), self.expected(expectation));
            text += &self.table(expectation);
            for unknown in self.unknown(expectation) {
                text += &format!("      {unknown}\n");
            }
            for given in self.ran.of(expectation) {
                if let Some(explanation) = &given.explanation {
                    text += &format!("    violated at {} s:\n", given.about.unwrap_or(given.time));
                    explanation.lines().for_each(|line| text += &format!("  {line}\n"));
                }
            }
        }
        text
    }

    fn problems(&self) -> Vec<String> {
        let Outcome { undecodable, not_evaluated, endless, .. } = self.ran;
        let mut problems: Vec<String> =
            undecodable.iter().map(|message| format!("cannot decode the message {message}")).collect();
        let others = not_evaluated.iter().filter(|omission| omission.reason != Reason::Undecodable);
        problems.extend(others.map(|omission| {
            format!("not evaluated: {}", omission.sentence(&mut |time| format!("{time} s")))
        }));
        if *endless {
            problems.push("time alone changes verdicts without end; end the test with `end at …`".to_owned());
        }
        problems
    }

    /// The messages and the verdicts that an expectation is about, over time.
    fn table(&self, expectation: &Expectation) -> String {
        let given: Vec<&Came> = self.ran.of(expectation).collect();
        let mut rows: Vec<(Timestamp, String, String)> = Vec::new();
        for (i, message) in self.test.messages.iter().enumerate() {
            let verdicts = given.iter().filter(|given| given.message == Some(i));
            let what = shorten(&message.text(&self.specification.spec));
            rows.push((message.time, what, self.verdicts(verdicts.copied())));
        }
        for &given in given.iter().filter(|given| given.message.is_none()) {
            let at = rows.partition_point(|(time, ..)| *time <= given.time);
            rows.insert(at, (given.time, String::new(), self.verdicts([given])));
        }
        let width = |cell: fn(&(Timestamp, String, String)) -> String| {
            rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0)
        };
        let (times, whats) = (width(|row| format!("{} s", row.0)), width(|row| row.1.clone()));
        let mut table = String::new();
        for (time, what, verdicts) in &rows {
            let line = format!("      {:>times$}   {what:<whats$}   {verdicts}", format!("{time} s"));
            table += line.trim_end();
            table.push('\n');
        }
        match self.unknown_key(expectation) {
            Some(sentence) => table += &format!("      {sentence}\n"),
            None if given.is_empty() => table += "      no verdict\n",
            None => {}
        }
        table
    }

    /// A sentence about an expectation of an instance that never existed.
    fn unknown_key(&self, expectation: &Expectation) -> Option<String> {
        let keys = self.ran.other_keys(expectation)?;
        if expectation.keys.is_empty() {
            return Some("the property has no verdict: no message was one for it".to_owned());
        }
        let mut sentence = format!("no message had the key {}", parameters_text(&expectation.keys));
        let shown: Vec<String> = keys.iter().take(KEYS).map(|key| parameters_text(key)).collect();
        if !shown.is_empty() {
            sentence += &format!("; the keys that came are {}", shown.join(", "));
        }
        if keys.len() > KEYS {
            sentence += &format!(" and {} more", keys.len() - KEYS);
        }
        Some(sentence)
    }

    /// The fields that are unknown at the time of an expectation.
    fn unknown(&self, expectation: &Expectation) -> Vec<String> {
        let spec = &self.specification.spec;
        if expectation.never || expectation.verdict == Verdict::Inconclusive {
            return Vec::new();
        }
        let formula = spec.properties[expectation.property as usize].formula;
        let mut nodes = with_guards(spec, formula);
        nodes.sort_unstable();
        let unknown = |node: ExprId| {
            let (Expr::Field { topic, path, .. }
            | Expr::Length { topic, path, .. }
            | Expr::Number { topic, path }) = &spec.nodes[node.index()]
            else {
                return None;
            };
            let name = formula::field(spec, *topic, path);
            let first = self
                .test
                .messages
                .iter()
                .find(|message| message.topic == *topic && carries(&message.json, path));
            match first {
                None => Some(format!("no message carries {name}: it is unknown")),
                Some(first) if expectation.at.is_some_and(|at| at < first.time) => {
                    Some(format!("{name} is unknown before {} s", first.time))
                }
                Some(_) => None,
            }
        };
        nodes.into_iter().filter_map(unknown).collect()
    }

    fn verdicts<'g>(&self, given: impl IntoIterator<Item = &'g Came>) -> String {
        let one = |given: &Came| {
            let (on, off) = if self.colour { (colour_of(given.verdict), "\x1b[0m") } else { ("", "") };
            let mut text = format!("{on}{}{off}", given.verdict.as_str());
            if !given.parameters.is_empty() {
                text = format!("{} {text}", parameters_text(&given.parameters));
            }
            match given.about {
                Some(about) => format!("{text}, about {about} s"),
                None => text,
            }
        };
        given.into_iter().map(one).collect::<Vec<_>>().join("; ")
    }

    fn json(&self) -> String {
        let seconds = |time: Timestamp| serde_json::from_str(&time.to_string()).unwrap_or(json!(null));
        let failed: Vec<serde_json::Value> = self
            .unmet()
            .map(|expectation| {
                let place = self.specification.place(expectation.offset);
                let given = self.ran.of(expectation).map(|given| {
                    let mut came = json!({"time": seconds(given.time), "verdict": given.verdict.as_str()});
                    if let Some(about) = given.about {
                        came["about"] = seconds(about);
                    }
                    if !given.parameters.is_empty() {
                        came["key"] = given.parameters.iter().map(json_of).collect();
                    }
                    came
                });
                let mut failed = json!({
                    "line": place.line,
                    "column": place.column,
                    "expected": self.expected(expectation),
                    "came": given.collect::<Vec<_>>(),
                });
                if let Some(sentence) = self.unknown_key(expectation) {
                    failed["reason"] = json!(sentence);
                }
                failed
            })
            .collect();
        let place = self.specification.place(self.test.offset);
        json!({
            "file": place.file,
            "test": self.test.name,
            "line": place.line,
            "ok": self.ran.is_ok(),
            "failed": failed,
            "problems": self.problems(),
        })
        .to_string()
    }
}

/// Text of an expectation.
pub(super) fn expected(spec: &Spec, expectation: &Expectation) -> String {
    let Expectation { property, keys, never, verdict, at, .. } = expectation;
    let mut text = spec.properties[*property as usize].name.clone() + &parameters_text(keys);
    text += if *never { " never " } else { " " };
    text += verdict.as_str();
    if let Some(at) = at {
        // Writing to a String does not fail.
        let _ = write!(text, " at {at} s");
    }
    text
}

/// The value of a parameter in JSON.
fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(b) => json!(b),
        Value::Int(i) => json!(i),
        Value::Float(x) => json!(x),
        Value::Time(ns) | Value::Duration(ns) => json!(Timestamp::from_nanos(*ns).to_string()),
        Value::String(text) => json!(text),
    }
}

/// Whether a message has a value at a path.
fn carries(json: &str, path: &Path) -> bool {
    let message: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    value_at(&message, &path.0).is_some_and(|value| !value.is_null())
}

/// The value at a path.
fn value_at<'v>(value: &'v serde_json::Value, path: &[Segment]) -> Option<&'v serde_json::Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    if let (Segment::Key(array), Some((Segment::Named(named), rest))) = (first, rest.split_first())
        && named.is_parallel
    {
        let names = value_at(value, &named.key().0)?.as_array()?;
        let index = names.iter().rposition(|name| is_name(name, named))?;
        return value_at(value.get(&**array)?.get(index)?, rest);
    }
    let next = match first {
        Segment::Key(key) => value.get(&**key),
        Segment::Index(index) => value.get(*index as usize),
        Segment::FromEnd(index) => {
            let elements = value.as_array()?;
            elements.get(elements.len().checked_sub(*index as usize)?)
        }
        Segment::Named(named) => {
            let has_name = |element: &serde_json::Value| {
                value_at(element, &named.key().0).is_some_and(|name| is_name(name, named))
            };
            value.as_array()?.iter().rfind(|element| has_name(element))
        }
    };
    value_at(next?, rest)
}

/// Whether it is the name of an element; any is that of a parameter.
fn is_name(value: &serde_json::Value, named: &Named) -> bool {
    named.name().is_none_or(|name| *value == json_of(name))
}

/// The beginning of a long text.
fn shorten(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}
