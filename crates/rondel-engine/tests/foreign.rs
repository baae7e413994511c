//! Rondel agrees with independent tools: Reelay, whose format it reads, and RTAMT, which computes robustness.
//! Formulas and traces are pseudo-random and avoid the operators that the tools define differently:
//!
//! | tool | difference | here |
//! |---|---|---|
//! | Reelay, discrete | `once[0:0]` and `historically[0:0]` are unbounded | no upper bound of 0 |
//! | Reelay, dense | a change to false and back between two rows is left out | Reelay has a row every second |
//! | Reelay, dense | the verdict at the instant of a change is that of one of its sides | compared between the instants |
//! | Reelay, dense | in `p since q`, `p` must hold where `q` does, too | `p since (p and q)` |
//! | RTAMT, offline | future operators beyond the end are computed over the rest | not compared: it is inconclusive |
//! | RTAMT | `prev` is infinite at the first row, and unknown in Rondel | no `prev` |
//!
//! `make test-peers` installs both and runs this test. `RONDEL_SEED=17` runs one seed alone, `RONDEL_CASES`
//! multiplies them.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod definition;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use definition::drive::{Emitted, drive, signal};
use definition::timed::Delivery;
use definition::{Content, Event, Timed};
use rondel_event::{Value, Verdict};
use rondel_spec::{ParseOptions, Spec, TimeModel, format, parse, parse_rye_with};
use rondel_testkit::Random;

const SECOND: i64 = 1_000_000_000;

/// The other tools, in a process of their own.
struct Judge {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Judge {
    fn start() -> Judge {
        let python = std::env::var("RONDEL_TEST_TOOLS").unwrap_or_else(|_| {
            panic!("RONDEL_TEST_TOOLS names no Python with reelay and rtamt; `make test-peers` sets it")
        });
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/judge.py");
        let mut command = Command::new(&python);
        let command = command.args(["-W", "ignore", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {python}: {error}"));
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Judge { child, input, output: BufReader::new(output) }
    }

    /// The results of a tool for a formula over a trace.
    fn ask(&mut self, judge: &str, formula: &str, rows: &[Row]) -> Result<Vec<f64>, String> {
        let rows: Vec<String> = rows.iter().map(Row::text).collect();
        writeln!(self.input, "{judge}\t{formula}\t{}", rows.join("|")).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let number = |word: &str| word.parse().map_err(|_| format!("{judge}: {formula}: {line:?}"));
        if line.is_empty() {
            return Err(format!("{judge} has ended at {formula}"));
        }
        line.split_whitespace().map(number).collect()
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A row of a trace: time in seconds, and fields.
struct Row {
    time: i64,
    truths: Vec<(&'static str, bool)>,
    numbers: Vec<(&'static str, f64)>,
}

impl Row {
    fn text(&self) -> String {
        let mut text = self.time.to_string();
        for (name, truth) in &self.truths {
            let _ = write!(text, " {name}={}", u8::from(*truth));
        }
        for (name, number) in &self.numbers {
            let _ = write!(text, " {name}={number:?}");
        }
        text
    }

    fn event(&self) -> Timed {
        let truths = self.truths.iter().map(|(name, truth)| (*name, Content::Value(Value::Bool(*truth))));
        let numbers = self.numbers.iter().map(|(name, x)| (*name, Content::Value(Value::Float(*x))));
        let event = Event { topic: 0, fields: truths.chain(numbers).collect() };
        Timed { time: self.time * SECOND, arrival: None, event }
    }
}

/// Rows at increasing times. Rows with all fields have `x` and `y`, others some of `a`, `b` and `x`.
fn rows(numbers: &mut Random, is_whole: bool) -> Vec<Row> {
    let (mut time, count) = (0, 2 + numbers.below(30));
    let row = |_| {
        let number = |numbers: &mut Random| numbers.below(17) as f64 / 2.0 - 4.0;
        let mut row = Row { time, truths: Vec::new(), numbers: Vec::new() };
        time += 1 + numbers.below(3) as i64;
        if is_whole {
            row.numbers = vec![("x", number(numbers)), ("y", number(numbers))];
            return row;
        }
        for name in ["a", "b"] {
            if !numbers.one_in(3) {
                row.truths.push((name, numbers.one_in(2)));
            }
        }
        if !numbers.one_in(3) {
            row.numbers.push(("x", number(numbers)));
        }
        row
    };
    (0..count).map(row).collect()
}

fn delivery(numbers: &mut Random) -> Delivery {
    let cuts = (0..3).map(|_| 1 + numbers.below(7) as usize).collect();
    Delivery { cuts, advances: (0..3).map(|_| numbers.below(8) as u8).collect() }
}

/// Bounds as `[a:b]`, or none; in discrete time the upper one is above 0.
fn bounds(numbers: &mut Random) -> String {
    let (lower, width) = (numbers.below(4), numbers.below(5));
    match numbers.below(6) {
        0 => String::new(),
        1 => format!("[{lower}:]"),
        2 => format!("[:{}]", lower + 1),
        _ => format!("[{lower}:{}]", (lower + width).max(1)),
    }
}

/// A formula in Reelay's format.
fn rye(numbers: &mut Random, model: TimeModel, depth: u32) -> String {
    if depth == 0 || numbers.one_in(6) {
        let constant = numbers.below(7) as i64 - 3;
        return match numbers.below(6) {
            0 | 1 => "{a}".to_owned(),
            2 => "{b: true}".to_owned(),
            3 => "{a: false}".to_owned(),
            _ => format!("{{x {} {constant}}}", numbers.pick(&[">", "<", ">=", "<="])),
        };
    }
    let bounds = bounds(numbers);
    let one = rye(numbers, model, depth - 1);
    match numbers.below(9) {
        0 => format!("(not ({one}))"),
        1 if model == TimeModel::Steps => format!("(pre ({one}))"),
        1 | 2 => format!("(once{bounds} ({one}))"),
        3 | 4 => format!("(historically{bounds} ({one}))"),
        kind => {
            let other = rye(numbers, model, depth - 1);
            match kind {
                5 => format!("(({one}) and ({other}))"),
                6 => format!("(({one}) or ({other}))"),
                7 => format!("(({one}) -> ({other}))"),
                _ if model == TimeModel::Dense => format!("(({one}) since{bounds} (({one}) and ({other})))"),
                _ => format!("(({one}) since{bounds} ({other}))"),
            }
        }
    }
}

/// A formula for RTAMT, and the same for Rondel.
fn margin(numbers: &mut Random, depth: u32, is_ahead: bool) -> (String, String) {
    if depth == 0 || numbers.one_in(6) {
        let constant = numbers.below(9) as f64 / 2.0 - 2.0;
        let comparison = numbers.pick(&[">", "<", ">=", "<="]);
        let terms = [("x", "t.x"), ("y", "t.y"), ("x - y", "t.x - t.y"), ("x + y", "t.x + t.y")];
        let (theirs, ours) = terms[numbers.below(4) as usize];
        return (
            format!("({theirs} {comparison} {constant:?})"),
            format!("({ours} {comparison} {constant:?})"),
        );
    }
    let (lower, width) = (numbers.below(3), numbers.below(4));
    let is_bounded = is_ahead || !numbers.one_in(5);
    let bounds = |sign| {
        if is_bounded { format!("[{lower}{sign}{}]", lower + width) } else { String::new() }
    };
    let (theirs, ours) = (bounds(":"), bounds(", "));
    let one = margin(numbers, depth - 1, is_ahead);
    let prefix = |operator: &str| {
        (format!("({operator}{theirs} ({}))", one.0), format!("({operator}{ours} ({}))", one.1))
    };
    let kind = numbers.below(8);
    match kind {
        0 => return (format!("(not ({}))", one.0), format!("(not ({}))", one.1)),
        1 | 2 => return prefix(if is_ahead { "eventually" } else { "once" }),
        3 => return prefix(if is_ahead { "always" } else { "historically" }),
        _ => {}
    }
    let other = margin(numbers, depth - 1, is_ahead);
    let infix = |theirs: &str, ours: &str| {
        (format!("(({}) {theirs} ({}))", one.0, other.0), format!("(({}) {ours} ({}))", one.1, other.1))
    };
    match kind {
        4 => infix("and", "and"),
        5 => infix("or", "or"),
        6 => infix("implies", "->"),
        _ if is_ahead => infix(&format!("until{theirs}"), &format!("until{ours}")),
        _ => infix(&format!("since{theirs}"), &format!("since{ours}")),
    }
}

/// Compares `usual` seeds. A case returns the number of compared verdicts.
fn compare(usual: u64, mut case: impl FnMut(&mut Random, &mut Judge) -> Result<usize, String>) {
    let seeds = rondel_testkit::seeds("foreign", usual);
    let total = seeds.left();
    let mut judge = Judge::start();
    let (mut compared, mut cases) = (0, 0);
    for seed in seeds {
        match case(&mut Random::new(seed), &mut judge) {
            Ok(count) => {
                compared += count;
                cases += u64::from(count > 0);
            }
            Err(why) => panic!("{why}"),
        }
    }
    println!("{total} seeds: {cases} formulas, {compared} verdicts compared");
    assert!(total < 100 || cases > total * 9 / 10, "only {cases} of {total} formulas are compared");
    assert!(total < 100 || compared as u64 > total * 8, "only {compared} verdicts are compared");
}

fn of_rye(formula: &str, model: TimeModel) -> Spec {
    let options = ParseOptions { time: Some(model), ..ParseOptions::default() };
    let outcome = parse_rye_with(formula, Some("t"), "p", &options);
    let spec = outcome.spec.clone();
    spec.unwrap_or_else(|| panic!("{}", outcome.render("", formula, false)))
}

fn truth(verdict: Verdict) -> f64 {
    match verdict {
        Verdict::Satisfied => 1.0,
        Verdict::Violated => 0.0,
        Verdict::Inconclusive => f64::NAN,
    }
}

/// Compares what Rondel knows at each place with the tool's results.
fn same(formula: &str, rows: &[Row], ours: &[Option<f64>], theirs: &[f64]) -> Result<usize, String> {
    let differs = |(ours, theirs): (&Option<f64>, &f64)| ours.is_some_and(|ours| ours != *theirs);
    if ours.len() == theirs.len() && !ours.iter().zip(theirs).any(differs) {
        return Ok(ours.iter().flatten().count());
    }
    let rows: Vec<String> = rows.iter().map(Row::text).collect();
    Err(format!("{formula}\n{}\nours   {ours:?}\ntheirs {theirs:?}", rows.join("\n")))
}

#[test]
#[ignore = "needs reelay and rtamt: make test-peers"]
fn reelay_in_discrete_time() {
    compare(2000, |numbers, judge| {
        let formula = rye(numbers, TimeModel::Steps, 4);
        let (rows, delivery) = (rows(numbers, false), delivery(numbers));
        let trace: Vec<Timed> = rows.iter().map(Row::event).collect();
        let emitted = drive(&of_rye(&formula, TimeModel::Steps), &trace, 0, &delivery);
        let ours: Vec<Option<f64>> =
            emitted.iter().map(|emitted| Some(truth(emitted.report.verdict))).collect();
        same(&formula, &rows, &ours, &judge.ask("discrete", &formula, &rows)?)
    });
}

#[test]
#[ignore = "needs reelay and rtamt: make test-peers"]
fn reelay_in_dense_time() {
    compare(1500, |numbers, judge| {
        let formula = rye(numbers, TimeModel::Dense, 4);
        let (rows, delivery) = (rows(numbers, false), delivery(numbers));
        let trace: Vec<Timed> = rows.iter().map(Row::event).collect();
        let (first, last) = (rows[0].time, rows[rows.len() - 1].time);
        let emitted = drive(&of_rye(&formula, TimeModel::Dense), &trace, last * SECOND, &delivery);
        let (_, changes) = signal(&emitted, 0, &trace, last * SECOND);
        let at = |second: i64| {
            let by_then = |change: &&(i64, Verdict)| change.0 <= second * SECOND + SECOND / 2;
            changes.iter().take_while(by_then).last().map(|(_, verdict)| truth(*verdict))
        };
        let ours: Vec<Option<f64>> = (first..last).map(at).collect();
        same(&formula, &rows, &ours, &judge.ask("dense", &formula, &rows)?)
    });
}

#[test]
#[ignore = "needs reelay and rtamt: make test-peers"]
fn rtamt_in_discrete_time() {
    compare(1000, |numbers, judge| {
        let is_ahead = numbers.one_in(2);
        let (theirs, ours) = margin(numbers, 3, is_ahead);
        let (rows, delivery) = (rows(numbers, true), delivery(numbers));
        let trace: Vec<Timed> = rows.iter().map(Row::event).collect();
        let text = format!("topic t {{ x: float, y: float }} @robust @time(steps) property p = {ours}");
        // As the formatter writes it.
        let text = format(&text).unwrap();
        let outcome = parse(&text);
        let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
        let mut known = vec![None; rows.len()];
        let resolved = |emitted: &Emitted| {
            Some((emitted.event? - emitted.report.back as usize, emitted.report.robustness?))
        };
        for (place, robustness) in drive(&spec, &trace, 0, &delivery).iter().filter_map(resolved) {
            known[place] = Some(robustness);
        }
        same(&ours, &rows, &known, &judge.ask("robustness", &theirs, &rows)?)
    });
}
