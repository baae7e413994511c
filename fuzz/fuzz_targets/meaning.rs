//! A specification and a trace, both made from the fuzzer's bytes, through all of it: parsed, laid out and parsed
//! again, compiled, run over blocks with snapshots in between; and the naive definition of the engine's tests judges
//! the verdicts.

#![no_main]

#[allow(unused)]
#[path = "../../crates/rondel-engine/tests/definition/mod.rs"]
mod definition;

use std::fmt::Write as _;

use definition::drive::{agree, agree_in_time, drive};
use definition::timed::{Case, Delivery};
use definition::{Content, Event, Timed};
use libfuzzer_sys::{Corpus, fuzz_target};
use rondel_engine::Program;
use rondel_event::Value;

/// Choices from bytes; the first of each where there are no more.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn of(&mut self, n: usize) -> usize {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(byte) % n
    }

    fn one(&mut self, words: &[&'static str]) -> &'static str {
        words[self.of(words.len())]
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Model {
    Steps,
    Points,
    Dense,
}

const TOPICS: [&str; 3] = ["t0", "t1", "t2"];

struct Writer<'a> {
    choices: Choices<'a>,
    model: Model,
    text: String,
}

impl Writer<'_> {
    fn add(&mut self, words: &str) {
        self.text.push_str(words);
    }

    /// `[a,b]` in steps or nanoseconds, on a grid small enough for ends to meet.
    fn bounds(&mut self, is_ahead: bool) {
        let unit = if self.model == Model::Steps { "" } else { " ns" };
        let lower = self.choices.of(4);
        let width = self.choices.of(6);
        let _ = match (self.choices.of(4), is_ahead) {
            (0, false) if lower == 0 => Ok(()),
            (0, false) => write!(self.text, "[{lower}{unit},]"),
            _ => write!(self.text, "[{lower}{unit}, {}{unit}]", lower + width),
        };
    }

    fn window(&mut self) {
        let unit = if self.model == Model::Steps { "" } else { " ns" };
        let length = 1 + self.choices.of(6);
        let _ = write!(self.text, " over {length}{unit}");
    }

    fn number(&mut self, depth: usize) {
        let topic = self.choices.one(&TOPICS);
        match self.choices.of(if depth == 0 { 3 } else { 8 }) {
            0..=2 => {
                let _ = write!(self.text, "{topic}.i");
            }
            3 => {
                self.add("prev(");
                self.number(depth - 1);
                self.add(")");
            }
            4 => {
                self.add("(");
                self.number(depth - 1);
                let operator = self.choices.one(&[" + ", " - ", " * ", " / ", " % "]);
                self.add(operator);
                self.number(depth - 1);
                self.add(")");
            }
            5 => {
                let function = self.choices.one(&["min(", "max("]);
                self.add(function);
                self.number(depth - 1);
                self.add(", ");
                self.number(depth - 1);
                self.add(")");
            }
            6 => {
                self.add("(if ");
                self.truth(depth - 1);
                self.add(" then ");
                self.number(depth - 1);
                self.add(" else ");
                self.number(depth - 1);
                self.add(")");
            }
            _ => {
                self.add("count(");
                if self.choices.of(2) == 0 {
                    self.add(topic);
                } else {
                    let _ = write!(self.text, "{topic}.b");
                }
                self.add(")");
                self.window();
            }
        }
    }

    /// Of the past.
    fn truth(&mut self, depth: usize) {
        let topic = self.choices.one(&TOPICS);
        match self.choices.of(if depth == 0 { 4 } else { 19 }) {
            0 => {
                let _ = write!(self.text, "on({topic})");
            }
            1 | 2 => {
                let _ = write!(self.text, "{topic}.b");
            }
            3 => {
                self.number(depth.min(1));
                let comparison = self.choices.one(&[" == ", " < ", " >= ", " != "]);
                let constant = self.choices.of(3);
                let _ = write!(self.text, "{comparison}{constant}");
            }
            4 => self.unary("not (", depth),
            5 => self.unary("previously (", depth),
            6 => self.binary(" and ", depth),
            7 => self.binary(" or ", depth),
            8 => self.binary(" -> ", depth),
            9 => self.binary(" <-> ", depth),
            10 | 11 => self.bounded("once", depth),
            12 => self.bounded("historically", depth),
            13 | 14 => {
                self.add("((");
                self.truth(depth - 1);
                self.add(") since");
                self.bounds(false);
                self.add(" (");
                self.truth(depth - 1);
                self.add("))");
            }
            15 => {
                let function = self.choices.one(&["rising(", "falling(", "changed("]);
                self.unary(function, depth);
            }
            16 => {
                self.unary("stable(", depth);
                let unit = if self.model == Model::Steps { "" } else { " ns" };
                let _ = write!(self.text, " for {}{unit}", 1 + self.choices.of(5));
            }
            17 => {
                let (low, width) = (self.choices.of(3), self.choices.of(3));
                let _ = write!(self.text, "hysteresis({topic}.i, {low}, {})", low + width);
            }
            _ => {
                let limit = self.choices.of(5);
                let comparison = self.choices.one(&[">", "<=", "<", ">="]);
                let _ = write!(self.text, "age({topic}) {comparison} {limit} ns");
            }
        }
    }

    fn unary(&mut self, operator: &str, depth: usize) {
        self.add(operator);
        self.truth(depth - 1);
        self.add(")");
    }

    fn bounded(&mut self, operator: &str, depth: usize) {
        self.add(operator);
        self.bounds(false);
        self.unary(" (", depth);
    }

    fn binary(&mut self, operator: &str, depth: usize) {
        self.add("(");
        self.truth(depth - 1);
        self.add(operator);
        self.truth(depth - 1);
        self.add(")");
    }

    /// Of the future, over truths of the past.
    fn ahead(&mut self, depth: usize) {
        match self.choices.of(if depth == 0 { 3 } else { 6 }) {
            0 | 1 => {
                let operator = self.choices.one(&["eventually", "always"]);
                self.add(operator);
                self.bounds(true);
                self.unary(" (", 2);
            }
            2 => {
                self.add("((");
                self.truth(1);
                self.add(") until");
                self.bounds(true);
                self.add(" (");
                self.truth(1);
                self.add("))");
            }
            3 => {
                self.add("not (");
                self.ahead(depth - 1);
                self.add(")");
            }
            4 => {
                self.add("(");
                self.truth(1);
                let operator = self.choices.one(&[" -> ", " and ", " or "]);
                self.add(operator);
                self.ahead(depth - 1);
                self.add(")");
            }
            _ => {
                self.add("eventually");
                self.bounds(true);
                self.add(" (");
                self.ahead(depth - 1);
                self.add(")");
            }
        }
    }
}

/// The text of a specification, and whether it looks ahead.
fn specification(choices: Choices<'_>) -> (String, bool, Choices<'_>) {
    let mut writer = Writer { choices, model: Model::Steps, text: String::new() };
    for topic in TOPICS {
        let _ = writeln!(writer.text, "topic {topic} {{ b: bool, i: int }}");
    }
    let is_ahead = writer.choices.of(4) == 3;
    let count = 1 + writer.choices.of(3);
    for i in 0..count {
        // What looks ahead in dense time is judged otherwise, in the tests of the engine.
        let models = [Model::Steps, Model::Points, Model::Dense];
        writer.model = models[writer.choices.of(if is_ahead { 2 } else { 3 })];
        let name = match writer.model {
            Model::Steps => "steps",
            Model::Points => "points",
            Model::Dense => "dense",
        };
        let _ = write!(writer.text, "@time({name})\nproperty p{i} = ");
        if is_ahead {
            writer.ahead(1)
        } else {
            writer.truth(3)
        }
        writer.add("\n");
    }
    let Writer { choices, text, .. } = writer;
    (text, is_ahead, choices)
}

fn trace(choices: &mut Choices<'_>) -> Vec<Timed> {
    let mut time = [0, -3, 1_000_000_000_000][choices.of(3)];
    let length = 1 + choices.of(9);
    let event = |_| {
        time += [0, 1, 1, 2, 3, 5][choices.of(6)];
        let mut fields = Vec::new();
        for (name, usual) in [("b", true), ("i", false)] {
            let n = choices.of(8);
            let other = Value::String("x".into());
            match n {
                0 => {}
                1 => fields.push((name, Content::Value(other))),
                n if usual => fields.push((name, Content::Value(Value::Bool(n % 2 == 0)))),
                n => fields.push((name, Content::Value(Value::Int(n as i64 - 3)))),
            }
        }
        Timed { time, arrival: None, event: Event { topic: choices.of(3) as u32, fields } }
    };
    (0..length).map(event).collect()
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let (text, is_ahead, mut choices) = specification(Choices(bytes));
    let outcome = rondel_spec::parse(&text);
    let Some(spec) = outcome.spec else { return Corpus::Reject };
    if Program::compile(&spec).is_err() {
        return Corpus::Reject;
    }
    let trace = trace(&mut choices);
    let cuts = (0..3).map(|_| 1 + choices.of(4)).collect();
    let advances = (0..3).map(|_| choices.of(8) as u8).collect();
    let now = trace[trace.len() - 1].time + [0, 1, 4, 9][choices.of(4)];
    let case = Case { spec, trace, now, delivery: Delivery { cuts, advances } };
    let judged = if is_ahead { agree_in_time(&case) } else { agree(&case) };
    if let Err(error) = judged {
        panic!("{error}\n{text}\n{case:?}");
    }

    let formatted = rondel_spec::format(&text).unwrap();
    let Some(again) = rondel_spec::parse(&formatted).spec else { panic!("{formatted}") };
    let said = |spec| {
        let reports = drive(spec, &case.trace, case.now, &case.delivery).into_iter().map(|given| given.report);
        reports.map(|report| (report.property, report.verdict, report.time, report.row)).collect::<Vec<_>>()
    };
    assert_eq!(said(&case.spec), said(&again), "{text}\n{formatted}");
    Corpus::Keep
});
