//! The reports of a property and their order do not depend on other properties: random formulas, alone and
//! with others.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-engine --test suite beside` runs one seed alone, `RONDEL_CASES` multiplies
//! them.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};
use rondel_testkit::Random;

const TOPICS: &str = "topic a { p: bool }\ntopic b { p: bool }\n";

/// A message: topic, time and value.
type Message = (u32, i64, bool);

/// A report: when it was emitted, the time that it refers to, and the verdict.
type Emitted = (i64, Option<i64>, bool, Verdict, bool);

/// Random parts of specifications and traces.
struct Parts(Random);

impl Parts {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn bounds(&mut self) -> String {
        let lower = self.below(3);
        format!("[{lower} ns, {} ns]", lower + self.below(4))
    }

    fn formula(&mut self, depth: u64) -> String {
        let topic = ["a", "b"][self.below(2) as usize];
        if depth == 0 {
            return match self.below(3) {
                0 => format!("on({topic})"),
                _ => format!("{topic}.p"),
            };
        }
        let x = self.formula(depth - 1);
        match self.below(9) {
            0 | 1 => format!("eventually{} ({x})", self.bounds()),
            2 | 3 => format!("always{} ({x})", self.bounds()),
            4 => format!("(({x}) until{} ({}))", self.bounds(), self.formula(depth - 1)),
            5 => format!("not ({x})"),
            6 => format!("(({x}) and ({}))", self.formula(depth - 1)),
            7 => format!("(({x}) -> ({}))", self.formula(depth - 1)),
            _ => format!("once{} ({})", self.bounds(), self.formula(0)),
        }
    }

    fn property(&mut self, name: &str) -> String {
        let model = ["dense", "dense", "points"][self.below(3) as usize];
        format!("@time({model}) property {name} = {}\n", self.formula(3))
    }

    fn trace(&mut self) -> Vec<Message> {
        let (length, mut time) = (2 + self.below(6), 0);
        let message = |_| {
            time += [0, 1, 1, 2, 3, 5][self.below(6) as usize];
            (self.below(2) as u32, time, self.below(2) == 1)
        };
        (0..length).map(message).collect()
    }
}

/// The reports of the property `p`.
fn emitted(text: &str, trace: &[Message], every: bool) -> Option<Vec<Emitted>> {
    let spec = rondel_spec::parse(text).spec?;
    let property = spec.properties.iter().position(|property| property.name == "p")? as u32;
    let program = Arc::new(Program::compile(&spec).ok()?);
    let mut monitor = Monitor::new(Arc::clone(&program));
    monitor.report_every(every);
    let mut block = Block::new(program.layout());
    for &(topic, time, p) in trace {
        let row = block.push(TopicId(topic), Timestamp::from_nanos(time));
        for field in &program.projections()[topic as usize].fields {
            let Slot::Bool(column) = field.slot else { panic!("{field:?}") };
            block.set_bool(column, row, p);
        }
    }
    let mut found = Vec::new();
    let mut take = |reports: &[Report]| {
        let own = reports.iter().filter(|report| report.property == property);
        found.extend(own.map(|report| {
            let about = report.about.map(Timestamp::as_nanos);
            (report.time.as_nanos(), about, report.after, report.verdict, report.changed)
        }));
    };
    take(monitor.step(&block));
    let last = trace.last().map_or(0, |(_, time, _)| *time);
    take(monitor.advance(Timestamp::from_nanos(last + 9)));
    take(monitor.end());
    Some(found)
}

#[test]
fn reports_do_not_depend_on_other_properties() {
    let seeds = rondel_testkit::seeds("beside", 5000);
    let total = seeds.left();
    let mut compared = 0;
    for seed in seeds {
        let mut numbers = Parts(Random::new(seed));
        let (own, other, trace) = (numbers.property("p"), numbers.property("q"), numbers.trace());
        let Some(alone) = emitted(&format!("{TOPICS}{own}"), &trace, false) else { continue };
        for both in [format!("{TOPICS}{own}{other}"), format!("{TOPICS}{other}{own}")] {
            let Some(beside) = emitted(&both, &trace, false) else { continue };
            assert_eq!(beside, alone, "seed {seed}\n{both}{trace:?}");
            compared += 1;
        }
    }
    println!("{compared} compared");
    assert!(rondel_testkit::is_replay() || compared > total, "only {compared} compared");
}
