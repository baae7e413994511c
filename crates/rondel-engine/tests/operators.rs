//! Derived operators agree with their definitions: random specifications as text and random traces, in all
//! time models, with and without parameters.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-engine --test suite operators` runs one seed alone, `RONDEL_CASES`
//! multiplies them.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::definition;

use std::sync::Arc;

use definition::drive::agree;
use definition::slice::instances;
use definition::timed::{Case, Delivery};
use definition::{Content, Event, Timed, write_timed};
use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Value};
use rondel_spec::Spec;
use rondel_testkit::Random;

/// Random parts of specifications and traces.
struct Parts(Random);

impl Parts {
    fn below(&mut self, end: i64) -> i64 {
        self.0.int(end)
    }

    fn number(&mut self) -> String {
        let topic = self.below(2);
        match self.below(6) {
            0 => format!("prev(t{topic}.i)"),
            1 => format!("t{topic}.f + 0.5"),
            2 => format!("t{topic}.f"),
            _ => format!("t{topic}.i"),
        }
    }

    fn truth(&mut self, unit: &str, depth: i64) -> String {
        let topic = self.below(2);
        match self.below(if depth == 0 { 4 } else { 15 }) {
            0 | 1 => format!("t{topic}.b"),
            2 => format!("on(t{topic})"),
            3 => format!("{} > {}", self.number(), self.below(4)),
            4..=6 => self.hysteresis(),
            7 | 8 => self.stable(unit, depth - 1),
            9 => format!("not ({})", self.truth(unit, depth - 1)),
            10 => format!("({}) and ({})", self.truth(unit, depth - 1), self.truth(unit, depth - 1)),
            11 => {
                let upper = self.below(4);
                format!("once[0, {upper}{unit}] ({})", self.truth(unit, depth - 1))
            }
            12 => format!("({}) since ({})", self.truth(unit, depth - 1), self.truth(unit, depth - 1)),
            _ => self.known(unit, depth - 1),
        }
    }

    fn hysteresis(&mut self) -> String {
        let x = self.number();
        let low = self.below(4);
        let high = match self.below(3) {
            0 => self.number(),
            _ => (low + self.below(3)).to_string(),
        };
        let low = if self.below(6) == 0 { self.number() } else { low.to_string() };
        format!("hysteresis({x}, {low}, {high})")
    }

    fn known(&mut self, unit: &str, depth: i64) -> String {
        match self.below(5) {
            0 => format!("known(t{}.s)", self.below(2)),
            1 => format!("known({})", self.truth(unit, depth)),
            2 => format!("known({})", self.number()),
            3 => format!("{}({} / {})", self.decided(), self.number(), self.number()),
            _ => format!("{}({})", self.decided(), self.number()),
        }
    }

    fn decided(&mut self) -> &'static str {
        ["is_nan", "finite"][self.below(2) as usize]
    }

    fn stable(&mut self, unit: &str, depth: i64) -> String {
        let lasting = 1 + self.below(4);
        let word = ["stable", "debounce"][self.below(2) as usize];
        format!("{word}({}) for {lasting}{unit}", self.truth(unit, depth))
    }

    /// A property whose formula is one of the operators, or contains one.
    fn property(&mut self, i: i64, each: &str) -> String {
        let model = ["steps", "points", "dense"][self.below(3) as usize];
        let unit = if model == "steps" { "" } else { " ns" };
        let formula = match self.below(6) {
            5 => self.known(unit, 1),
            0 => self.hysteresis(),
            1 => self.stable(unit, 2),
            2 | 3 => self.window(model, unit),
            _ => self.truth(unit, 3),
        };
        let length = 1 + self.below(5);
        let attribute = match self.below(12) {
            0 => format!("@warmup({length}{unit}) "),
            1 => "@while(t0.b) ".to_owned(),
            2 => format!("@hold({length}{unit}) "),
            3 => "@latch ".to_owned(),
            4 => format!("@latch @warmup({length}{unit}) @while(t1.b) "),
            _ => String::new(),
        };
        format!("@time({model}) {attribute}property p{i}{each} = {formula}\n")
    }

    /// A comparison of a measurement. No value is close to the constant, so that rounding does not matter.
    fn window(&mut self, model: &str, unit: &str) -> String {
        let (t, u) = (self.below(2), self.below(2));
        let x = match self.below(6) {
            0 | 1 => format!("t{t}.i"),
            2 => format!("t{t}.f + t{u}.f"),
            // NaN if the field is 0.5.
            3 => format!("(t{t}.f - 0.5) / (t{t}.f - 0.5)"),
            _ => format!("t{t}.f"),
        };
        let per_second = if model == "steps" { 0 } else { 2 };
        let (measured, scale) = match self.below(12 + per_second) {
            0 => (format!("mean({x})"), ""),
            1 => (format!("median({x})"), ""),
            2 => (format!("percentile({x}, 90)"), ""),
            3 => (format!("percentile({x}, 12.5)"), ""),
            4 | 5 => (format!("stddev({x})"), ""),
            6 => (format!("distinct({x})"), ""),
            7 => (format!("first({x})"), ""),
            8 => (format!("last({x})"), ""),
            9 => (format!("count({x} > 1)"), ""),
            10 => (format!("min({x})"), ""),
            11 => (format!("max({x})"), ""),
            12 => (format!("derivative({x})"), "e9"),
            _ => (format!("integral({x})"), "e-9"),
        };
        let full = if self.below(2) == 0 { "full " } else { "" };
        let (over, constant) = (1 + self.below(8), self.below(3));
        format!("{measured} over {full}{over}{unit} > {constant}.3217{scale}")
    }

    fn trace(&mut self) -> Vec<Timed> {
        let mut time = 0;
        let length = 1 + self.below(24);
        let mut event = |numbers: &mut Parts| {
            time += [0, 1, 1, 2, 3, 6][numbers.below(6) as usize];
            let topic = numbers.below(2) as u32;
            let mut fields = vec![("k", Content::Value(Value::Int(numbers.below(2))))];
            for name in ["b", "i", "f", "s"] {
                let value = match name {
                    "b" => Value::Bool(numbers.below(2) == 1),
                    "i" => Value::Int(numbers.below(6) - 1),
                    "s" => Value::String("s".into()),
                    _ => Value::Float([-1.0, 0.5, 1.0, 2.5, 4.0, f64::NAN][numbers.below(6) as usize]),
                };
                match numbers.below(8) {
                    0 => fields.push((name, Content::Null)),
                    1 if name == "f" => fields.push((name, Content::NotANumber)),
                    1 => {}
                    _ => fields.push((name, Content::Value(value))),
                }
            }
            Timed { time, arrival: None, event: Event { topic, fields } }
        };
        (0..length).map(|_| event(self)).collect()
    }

    fn case(&mut self, each: &str) -> Option<(String, Case)> {
        let mut text: String = (0..2)
            .map(|i| format!("topic t{i} {{ k: int, b: bool, i: int, f: float, s: string }}\n"))
            .collect();
        (0..1 + self.below(3)).for_each(|i| text += &self.property(i, each));
        let trace = self.trace();
        let delivery = Delivery {
            cuts: (0..4).map(|_| 1 + self.below(9) as usize).collect(),
            advances: (0..4).map(|_| self.below(8) as u8).collect(),
        };
        let now = trace.last().map_or(0, |last| last.time + self.below(9));
        let spec = rondel_spec::parse(&text).spec?;
        Some((text, Case { spec, trace, now, delivery }))
    }
}

/// Runs random cases; most of them must be valid and compared.
fn compare(each: &str, check: impl Fn(&Case) -> Result<(), String>) {
    let seeds = rondel_testkit::seeds("operators", 1000);
    let total = seeds.left();
    let (mut compared, mut calls) = (0, 0);
    for seed in seeds {
        let Some((text, case)) = Parts(Random::new(seed)).case(each) else { continue };
        if let Err(message) = check(&case) {
            panic!("seed {seed}:\n{text}{case:?}\n{message}");
        }
        compared += 1;
        calls += ["hysteresis", "stable", "debounce", " over ", "known", "is_nan"]
            .iter()
            .filter(|word| text.contains(*word))
            .count();
    }
    println!("{compared} of {total} specifications compared, with {calls} operators");
    if !rondel_testkit::is_replay() {
        assert!(compared as u64 > total / 2, "only {compared} compared");
        assert!(calls >= compared, "only {calls} in {compared}");
    }
}

#[test]
fn operators_without_parameters() {
    compare("", |case| agree(case).map_err(|error| error.to_string()));
}

/// Compares every verdict at an event of an instance.
fn agree_by_instance(case: &Case) -> Result<(), String> {
    let Case { spec, trace, now, delivery } = case;
    let found = at_events(spec, trace, delivery);
    for p in 0..spec.properties.len() {
        let mut expected: Vec<String> = Vec::new();
        for instance in instances(spec, p, trace, *now) {
            let events = instance.spots.iter().filter(|spot| spot.event.is_some());
            expected.extend(events.map(|spot| {
                let verdict = spot.verdict.unwrap();
                format!("{:?} {:04} {}", instance.keys, spot.time, verdict.as_str())
            }));
        }
        let mut found: Vec<String> =
            found.iter().filter(|(of, _)| *of == p).map(|(_, words)| words.clone()).collect();
        expected.sort();
        found.sort();
        if found != expected {
            return Err(format!("property {p}: found {found:#?}, expected {expected:#?}"));
        }
    }
    Ok(())
}

fn at_events(spec: &Spec, trace: &[Timed], delivery: &Delivery) -> Vec<(usize, String)> {
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    let (mut all, mut rest) = (Vec::new(), trace);
    for (round, &len) in delivery.cuts.iter().cycle().enumerate() {
        let (now, later) = rest.split_at(len.min(rest.len()));
        block.clear();
        now.iter().for_each(|timed| write_timed(&mut block, program.projections(), timed));
        monitor.step(&block);
        all.extend(monitor.reports().iter().filter(|report| report.at_event).map(|report| {
            let (key, time) = (monitor.key(report), report.time.as_nanos());
            (report.property as usize, format!("{key:?} {time:04} {}", report.verdict.as_str()))
        }));
        if round % 2 == 0 {
            monitor = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
            monitor.report_every(true);
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    all
}

#[test]
fn operators_with_parameters() {
    compare(" for each k in (t0.k, t1.k)", agree_by_instance);
}
