//! The cases of `corpus/`, each run through the command. Their format is described in
//! `corpus/README.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use support::{Emitted, Finished, Folder, rondel};

/// One case as it stands in its file.
#[derive(Default)]
struct Case {
    file: PathBuf,
    line: usize,
    name: String,
    why: String,
    syntax: Option<String>,
    formula: Option<String>,
    spec: Option<String>,
    /// The requested time model.
    time: Option<String>,
    /// The expected letters and the line of the trace; no letters where `verdicts` are listed.
    trace: Option<Vec<(String, String)>>,
    /// The expected verdicts with their times.
    verdicts: Option<Vec<Timed>>,
    /// Exit status, if the verdicts do not determine it.
    status: Option<i32>,
    /// Why it may still be refused, if it may.
    open: Option<String>,
}

/// A verdict that is a change, with its times.
#[derive(Clone, Debug, PartialEq)]
struct Timed {
    property: Option<String>,
    key: Option<serde_json::Value>,
    /// Whether time itself brought it, rather than a message.
    between: bool,
    /// As it is written: no number would keep all nanoseconds of some years.
    time: String,
    about: Option<String>,
    letter: String,
    robustness: Option<String>,
}

impl Timed {
    /// Reads what stands in a case: `[~]TIME [PROPERTY[KEY]] LETTER [ROBUSTNESS] [about TIME]`.
    fn read(text: &str) -> Option<Timed> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mut about = None;
        if let [.., "about", time] = words[..] {
            about = Some(time.to_owned());
            words.truncate(words.len() - 2);
        }
        let mut robustness = None;
        if let [.., letter, number] = words[..]
            && matches!(letter, "T" | "F" | "?")
        {
            robustness = Some(number.to_owned());
            words.pop();
        }
        let (time, name, letter) = match words[..] {
            [time, letter] => (time, None, letter),
            [time, name, letter] => (time, Some(name), letter),
            _ => return None,
        };
        let (property, key) = match name {
            Some(name) => match name.find('{') {
                Some(at) => (Some(&name[..at]), Some(serde_json::from_str(&name[at..]).ok()?)),
                None => (Some(name), None),
            },
            None => (None, None),
        };
        let between = time.starts_with('~');
        let time = time.trim_start_matches('~').to_owned();
        let letter = matches!(letter, "T" | "F" | "?").then(|| letter.to_owned())?;
        Some(Timed { property: property.map(str::to_owned), key, between, time, about, letter, robustness })
    }

    /// Reads what the command prints.
    fn printed(line: &str) -> Timed {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let letter = match object["verdict"].as_str() {
            Some("satisfied") => "T",
            Some("violated") => "F",
            _ => "?",
        };
        let number = |member: &str| {
            let from = line.rfind(&format!("\"{member}\":"))? + member.len() + 3;
            Some(line[from..].split([',', '}']).next()?.to_owned())
        };
        Timed {
            property: object["property"].as_str().map(str::to_owned),
            key: object.get("key").cloned(),
            between: object.get("step").is_none(),
            time: number("time").unwrap(),
            about: number("about"),
            letter: letter.to_owned(),
            robustness: number("robustness"),
        }
    }
}

impl std::fmt::Display for Timed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.property.as_deref().unwrap_or_default();
        let key = self.key.as_ref().map(serde_json::Value::to_string).unwrap_or_default();
        write!(f, "{}{} {name}{key} {}", if self.between { "~" } else { "" }, self.time, self.letter)?;
        self.robustness.as_ref().map_or(Ok(()), |robustness| write!(f, " {robustness}"))?;
        self.about.as_ref().map_or(Ok(()), |about| write!(f, " about {about}"))
    }
}

/// Which block indented lines belong to.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    None,
    Spec,
    Trace,
    Verdicts,
}

fn read_cases(file: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    let mut block = Block::None;
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", file.display(), index + 1);
        if let Some(content) = line.strip_prefix("  ")
            && block != Block::None
        {
            let case = cases.last_mut().unwrap();
            let line = content.trim_start();
            if block == Block::Spec {
                *case.spec.get_or_insert_default() += &format!("{content}\n");
            } else if block == Block::Verdicts {
                let verdict = Timed::read(line).unwrap_or_else(|| panic!("{}: verdict", place()));
                case.verdicts.get_or_insert_default().push(verdict);
            } else if line.starts_with(['{', '[']) {
                case.trace.get_or_insert_default().push((String::new(), line.to_owned()));
            } else {
                let (letters, message) =
                    line.split_once([' ', '\t']).unwrap_or_else(|| panic!("{}: no message", place()));
                assert!(
                    letters == "-" || letters.chars().all(|l| "TF?".contains(l)),
                    "{}: verdicts",
                    place()
                );
                let row = (letters.to_owned(), message.trim_start().to_owned());
                case.trace.get_or_insert_default().push(row);
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("{}: no key", place()));
        let value = value.trim().to_owned();
        block = Block::None;
        if key == "case" {
            let case = Case { file: file.to_owned(), line: index + 1, name: value, ..Case::default() };
            assert!(cases.iter().all(|c| c.name != case.name), "{}: the name is taken", place());
            cases.push(case);
            continue;
        }
        let case = cases.last_mut().unwrap_or_else(|| panic!("{}: before any case", place()));
        match key {
            "why" => case.why = value,
            "syntax" => case.syntax = Some(value),
            "formula" => case.formula = Some(value),
            "time" => case.time = Some(value),
            "status" => case.status = Some(value.parse().unwrap()),
            "open" => case.open = Some(value),
            "verdicts" => {
                block = Block::Verdicts;
                case.verdicts = Some(Vec::new());
            }
            "spec" => block = Block::Spec,
            "trace" => {
                block = Block::Trace;
                case.trace = Some(Vec::new());
            }
            _ => panic!("{}: unknown key '{key}'", place()),
        }
    }
    for case in &cases {
        let complete =
            !case.why.is_empty() && case.trace.is_some() && (case.formula.is_some() != case.spec.is_some());
        let consistent = case.rows().iter().all(|(letters, _)| letters.is_empty() == case.verdicts.is_some());
        assert!(consistent, "{}:{}: either letters or verdicts", case.file.display(), case.line);
        assert!(complete, "{}:{}: '{}' is not complete", file.display(), case.line, case.name);
    }
    cases
}

impl Case {
    fn rows(&self) -> &[(String, String)] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// The exit statuses that the verdicts allow, given whether a warning names a topic or field that never came.
    fn expected_status(&self, finished: &Finished) -> &'static [i32] {
        let vacuous = finished.stderr.contains(" vacuous: no message");
        match self.status_of_verdicts() {
            [0] | [0, 4] if vacuous && self.status.is_none() => &[4],
            status => status,
        }
    }

    /// The exit statuses that the verdicts alone allow. They do not show whether a property is open at the end.
    fn status_of_verdicts(&self) -> &'static [i32] {
        match self.status {
            Some(0) => return &[0],
            Some(1) => return &[1],
            Some(4) => return &[4],
            Some(other) => panic!("no case ends with {other}"),
            None => {}
        }
        if let Some(verdicts) = &self.verdicts {
            let some = |letter| verdicts.iter().any(|v| v.letter == letter);
            return match (some("F"), some("?"), some("T")) {
                (true, ..) => &[1],
                (_, true, _) => &[0, 4],
                (.., true) => &[0],
                _ => &[4],
            };
        }
        let steps: Vec<&str> =
            self.rows().iter().map(|(letters, _)| letters.as_str()).filter(|l| *l != "-").collect();
        let properties = steps.first().map_or(1, |letters| letters.len());
        if steps.iter().any(|letters| letters.contains('F')) {
            &[1]
        } else if (0..properties).any(|p| steps.last().is_none_or(|last| last.as_bytes()[p] == b'?')) {
            &[4]
        } else if steps.iter().any(|letters| letters.contains('?')) {
            &[0, 4]
        } else {
            &[0]
        }
    }

    /// Runs the case on its trace, given twice: each is a trace of its own.
    fn run(&self, folder: &Folder, further: &[&str]) -> Finished {
        let mut arguments: Vec<String> =
            ["check", "--quiet", "--format", "json", "--emit"].map(str::to_owned).into();
        arguments.push(if self.verdicts.is_some() { "change" } else { "every" }.to_owned());
        if let Some(time) = &self.time {
            arguments.extend(["--time".to_owned(), time.clone()]);
        }
        if let Some(syntax) = &self.syntax {
            arguments.extend(["--syntax".to_owned(), syntax.clone()]);
        }
        match (&self.formula, &self.spec) {
            (Some(formula), _) => arguments.extend(["--formula".to_owned(), formula.clone()]),
            (None, Some(spec)) => arguments.push(folder.file("case.rondel", spec)),
            (None, None) => unreachable!("looked at when it was read"),
        }
        let trace: String = self.rows().iter().map(|(_, message)| format!("{message}\n")).collect();
        let file = folder.file("trace.jsonl", trace);
        arguments.extend([file.clone(), file]);
        arguments.extend(further.iter().map(|argument| (*argument).to_owned()));
        rondel(arguments)
    }

    /// Describes the difference from the expectation, or between the verdicts of the two traces, if there is one.
    fn difference(&self, mut finished: Finished) -> Option<String> {
        let lines: Vec<&str> = finished.stdout.lines().collect();
        let (first, second) = lines.split_at(lines.len() / 2);
        let printed = |lines: &[&str]| lines.iter().map(|line| Timed::printed(line)).collect::<Vec<_>>();
        if printed(first) != printed(second) {
            let (file, line, name) = (self.file.display(), self.line, &self.name);
            return Some(format!("{file}:{line}: {name}\n  twice the same trace\n{}\n", finished.stdout));
        }
        finished.stdout = first.iter().map(|line| format!("{line}\n")).collect();
        self.difference_of_one(&finished)
    }

    /// Describes the difference of the verdicts of one trace from the expectation, if there is one.
    fn difference_of_one(&self, finished: &Finished) -> Option<String> {
        if let Some(open) = &self.open
            && finished.status == Some(2)
            && finished.stderr.contains(open)
        {
            return None;
        }
        match &self.verdicts {
            Some(expected) => self.timed_difference(expected, finished),
            None => self.step_difference(finished),
        }
    }

    /// Describes differences of verdicts with their times, property by property.
    fn timed_difference(&self, expected: &[Timed], finished: &Finished) -> Option<String> {
        let mut printed: Vec<Timed> = finished.stdout.lines().map(Timed::printed).collect();
        if expected.iter().all(|verdict| verdict.property.is_none()) {
            printed.iter_mut().for_each(|verdict| verdict.property = None);
        }
        let sorted = |mut verdicts: Vec<Timed>| {
            verdicts.sort_by_key(|v| (v.property.clone(), v.key.as_ref().map(ToString::to_string)));
            verdicts
        };
        let status = self.expected_status(finished);
        let (expected, got) = (sorted(expected.to_vec()), sorted(printed));
        if expected == got && finished.status.is_some_and(|s| status.contains(&s)) {
            return None;
        }
        let list =
            |verdicts: &[Timed]| verdicts.iter().map(|v| format!("\n      {v}")).collect::<Vec<_>>().concat();
        let trace: String = self.rows().iter().map(|(_, message)| format!("\n      {message}")).collect();
        Some(format!(
            "{}:{}: {}\n    {}\n  why: {}\n    trace{trace}\n    expected{}\n    got{}\n  exit status {status:?} expected, got {:?}\n{}\n",
            self.file.display(),
            self.line,
            self.name,
            self.what(),
            self.why,
            list(&expected),
            list(&got),
            finished.status,
            finished.stderr.trim_end(),
        ))
    }

    /// Formula or specification of the case, for messages.
    fn what(&self) -> String {
        let text = self.formula.as_deref().or(self.spec.as_deref()).unwrap_or_default();
        text.trim_end().replace('\n', "\n    ")
    }

    /// Describes differences of the verdicts at the steps.
    fn step_difference(&self, finished: &Finished) -> Option<String> {
        let mut by_step: Vec<String> = Vec::new();
        for verdict in Emitted::all(&finished.stdout) {
            let step = verdict.step as usize;
            by_step.resize(by_step.len().max(step + 1), String::new());
            by_step[step].push(verdict.letter);
        }
        let mut actual = by_step.iter();
        let mut table = String::new();
        let mut equal = true;
        for (letters, message) in self.rows() {
            let got = if letters == "-" { "-" } else { actual.next().map_or("nothing", String::as_str) };
            let same = got == letters;
            equal &= same;
            let mark = if same { ' ' } else { '>' };
            writeln!(table, "  {mark} {letters:8} {got:8} {message}").unwrap();
        }
        let surplus: Vec<&String> = actual.collect();
        let status = self.expected_status(finished);
        if equal && surplus.is_empty() && finished.status.is_some_and(|s| status.contains(&s)) {
            return None;
        }
        let what = self.what();
        let stderr = finished.stderr.trim_end();
        Some(format!(
            "{}:{}: {}\n    {what}\n  why: {}\n    expected got      message\n{table}  exit status {status:?} expected, got {:?}; \
             verdicts beyond the trace: {surplus:?}\n{stderr}\n",
            self.file.display(),
            self.line,
            self.name,
            self.why,
            finished.status,
        ))
    }
}

fn cases() -> Vec<Case> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut files: Vec<PathBuf> = ["rondel", "rye"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(corpus.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "case"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read_cases(file)).collect()
}

#[test]
fn every_case_of_the_corpus_has_its_verdicts_on_each_of_two_traces() {
    let cases = cases();
    assert!(cases.len() >= 150, "only {} cases were found", cases.len());
    let folder = Folder::new();
    let differences: Vec<String> =
        cases.iter().filter_map(|case| case.difference(case.run(&folder, &[]))).collect();
    assert!(
        differences.is_empty(),
        "\n{}\n{} of {} cases differ",
        differences.join("\n"),
        differences.len(),
        cases.len()
    );
}

#[test]
fn every_case_of_the_corpus_has_the_same_verdicts_with_two_workers() {
    let folder = Folder::new();
    for case in cases() {
        let (one, two) = (case.run(&folder, &[]), case.run(&folder, &["--workers", "2"]));
        let place = format!("{}:{}: {}", case.file.display(), case.line, case.name);
        assert_eq!((two.status, two.stdout), (one.status, one.stdout), "{place}\n{}", two.stderr);
    }
}
