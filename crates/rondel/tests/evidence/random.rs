//! Random properties on random traces: the explanation of a violation stays within the reach of the formula, contains
//! the time point of the violation, and gives each subformula the verdict that it has as a property of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rondel_runtime::Emit;
use rondel_testkit::Random;
use serde_json::Value;

use crate::support::library::{check, plan};

#[derive(Clone, Copy, PartialEq)]
enum Model {
    Steps,
    Points,
    Dense,
    Linear,
}

impl Model {
    fn attribute(self) -> &'static str {
        match self {
            Model::Steps => "@time(steps)",
            Model::Points => "@time(points)",
            Model::Dense => "@time(dense)",
            Model::Linear => "@linear",
        }
    }
}

/// Reach of a formula, back and ahead; none if it has no bound.
type Reach = (Option<u64>, u64);

fn both(a: Reach, b: Reach) -> Reach {
    (a.0.zip(b.0).map(|(a, b)| a.max(b)), a.1.max(b.1))
}

/// A formula, and how far it looks, in steps or seconds.
fn formula(random: &mut Random, model: Model, depth: u64, ahead: bool) -> (String, Reach) {
    if depth == 0 || random.below(5) == 0 {
        let k = random.below(5);
        return match random.below(if model == Model::Linear { 7 } else { 8 }) {
            0 => ("a.p".into(), (Some(0), 0)),
            1 => ("b.q".into(), (Some(0), 0)),
            2 => (format!("a.n > {k}"), (Some(0), 0)),
            3 => (format!("b.m <= {k}"), (Some(0), 0)),
            4 => (["on(a)", "on(b)"][random.below(2) as usize].into(), (Some(0), 0)),
            5 => ("changed(a.n)".into(), (None, 0)),
            6 => (
                [format!("a{{n > {k}}}"), format!("b{{id < 3, m: {k}}}")][random.below(2) as usize].clone(),
                (Some(0), 0),
            ),
            _ => ("a.n > prev(a.n)".into(), (None, 0)),
        };
    }
    let below = |random: &mut Random, ahead| formula(random, model, depth - 1, ahead);
    let choice = random.below(if ahead { 12 } else { 8 });
    if choice < 4 {
        let (f, reach) = below(random, ahead);
        if choice == 0 {
            return (format!("not ({f})"), reach);
        }
        let (g, other) = below(random, ahead);
        let word = ["and", "or", "->"][choice as usize - 1];
        return (format!("({f}) {word} ({g})"), both(reach, other));
    }
    let lower = random.below(3);
    let upper = lower + random.below(4);
    let unit = if model == Model::Steps { "" } else { " s" };
    let is_open = choice < 7 && random.below(5) == 0;
    let bounds =
        if is_open { format!("[{lower}{unit},]") } else { format!("[{lower}{unit}, {upper}{unit}]") };
    let (f, reach) = below(random, ahead && choice > 7);
    let back = |reach: Reach| (reach.0.filter(|_| !is_open).map(|back| back + upper), reach.1);
    let on = |reach: Reach| (reach.0, reach.1 + upper);
    match choice {
        4 => (format!("once{bounds} ({f})"), back(reach)),
        5 => (format!("historically{bounds} ({f})"), back(reach)),
        6 => {
            let (g, other) = below(random, false);
            (format!("({f}) since{bounds} ({g})"), back(both(reach, other)))
        }
        7 => {
            let word = ["previously", "rising", "falling"][random.below(3) as usize];
            let step = (reach.0.map(|back| back + 1).filter(|_| model == Model::Steps), reach.1);
            (format!("{word} ({f})"), step)
        }
        8 | 9 => (format!("eventually{bounds} ({f})"), on(reach)),
        10 => (format!("always{bounds} ({f})"), on(reach)),
        _ => {
            let (g, other) = below(random, ahead);
            (format!("({f}) until{bounds} ({g})"), on(both(reach, other)))
        }
    }
}

/// A message: its time in halves of seconds, its topic, its key, its field as the trace has it.
struct Message {
    time: u64,
    topic: &'static str,
    id: u64,
    field: (&'static str, Value),
}

fn messages(random: &mut Random) -> Vec<Message> {
    let mut time = 0;
    let mut messages = Vec::new();
    for _ in 0..12 + random.below(20) {
        time += 1 + random.below(4);
        let (topic, name) = [("a", "p"), ("a", "n"), ("b", "q"), ("b", "m")][random.below(4) as usize];
        let value = match name {
            "p" | "q" => Value::from(random.below(2) == 0),
            _ => Value::from(random.below(6)),
        };
        messages.push(Message { time, topic, id: random.below(2), field: (name, value) });
    }
    messages
}

fn trace(messages: &[Message]) -> String {
    let mut text = String::new();
    for Message { time, topic, id, field: (name, value) } in messages {
        let time = *time as f64 / 2.0;
        writeln!(text, r#"{{"topic":"{topic}","time":{time},"id":{id},"{name}":{value}}}"#).unwrap();
    }
    text
}

/// The value of a field at a time, as it was sent or on a straight line.
fn field_at<'a>(
    messages: impl Iterator<Item = &'a Message> + Clone,
    name: &str,
    time: f64,
    straight: bool,
) -> Option<Value> {
    let mut of = messages.filter(|m| format!("{}.{}", m.topic, m.field.0) == name);
    let at = |m: &Message| m.time as f64 / 2.0;
    let before = of.clone().take_while(|m| at(m) <= time).last()?;
    if !straight || !before.field.1.is_number() || at(before) == time {
        return Some(before.field.1.clone());
    }
    let after = of.find(|m| at(m) > time)?;
    let (from, to) = (before.field.1.as_f64()?, after.field.1.as_f64()?);
    Some(Value::from(from + (to - from) * (time - at(before)) / (at(after) - at(before))))
}

fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-6,
        _ => a == b,
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const TOPICS: &str = "topic a { p: bool, n: int, id: int }\ntopic b { q: bool, m: float, id: int }\n";

#[derive(Default)]
struct Seen {
    violations: usize,
    values: usize,
}

/// One property on one trace.
fn one(seed: u64, seen: &mut Seen) {
    let random = &mut Random::new(seed);
    let model = [Model::Steps, Model::Points, Model::Dense, Model::Linear][random.below(4) as usize];
    let is_keyed = model != Model::Linear && random.below(4) == 0;
    let ends = is_keyed && random.below(2) == 0;
    // Messages on `b` concern all instances.
    let each = match (is_keyed, ends) {
        (false, _) => "",
        (true, false) => " for each id in a.id",
        (true, true) => " for each id in a.id until on(a) and a.p",
    };
    let depth = 1 + random.below(4);
    let (formula, reach) = formula(random, model, depth, true);
    let attribute = model.attribute();
    let spec = format!("{TOPICS}{attribute} property p{each} = {formula}\n");
    let messages = messages(random);
    let input = trace(&messages);
    let Some(explaining) = plan(&spec, Emit::Violations, true) else {
        // The formula is not monitorable, or a declaration occurs twice.
        return;
    };
    let violations = lines(&check(&explaining, &input));
    // Every part as a property of its own, at every message.
    let mut names = BTreeSet::new();
    for verdict in &violations {
        for column in verdict["evidence"].as_array().unwrap() {
            names.extend(column["values"].as_object().unwrap().keys().cloned());
        }
    }
    let parts: Vec<&String> = names.iter().filter(|name| !["a.n", "b.m"].contains(&name.as_str())).collect();
    let sees_b = ["b.", "b{", "on(b)"].iter().any(|read| formula.contains(read));
    let mut alone = String::from(TOPICS);
    for (i, part) in parts.iter().enumerate() {
        // It sees what the whole formula sees.
        let never = if is_keyed && sees_b { " or on(b) and not on(b)" } else { "" };
        writeln!(alone, "{attribute} property r{i}{each} = ({part}){never}").unwrap();
    }
    let mut truths = Truths::new();
    let alone = plan(&alone, Emit::Every, false);
    for verdict in alone.map(|alone| lines(&check(&alone, &input))).unwrap_or_default() {
        let about = verdict.get("about").unwrap_or(&verdict["time"]).to_string();
        let i: usize = verdict["property"].as_str().unwrap()[1..].parse().unwrap();
        let letter = verdict["verdict"].as_str().unwrap().chars().next().unwrap();
        let at_message = messages.iter().any(|m| (m.time as f64 / 2.0).to_string() == about);
        if at_message && (verdict.get("step").is_some() || verdict.get("about").is_some()) {
            // In dense time also what follows right after it.
            truths.entry((parts[i].clone(), verdict["key"].to_string(), about)).or_default().insert(letter);
        }
    }
    let case = Case { model, messages: &messages, is_keyed, ends, sees_b, reach, truths };
    for verdict in &violations {
        if let Err(why) = case.check(verdict, seen) {
            panic!("seed {seed}: {why}: {verdict}\n{spec}{input}");
        }
    }
}

/// The letters of the verdicts of a part, by its text, the key of the instance and the time point.
type Truths = BTreeMap<(String, String, String), BTreeSet<char>>;

/// A property on a trace, with the verdicts of its parts.
struct Case<'c> {
    model: Model,
    messages: &'c [Message],
    is_keyed: bool,
    /// Whether instances end.
    ends: bool,
    /// Whether the formula reads messages on `b`.
    sees_b: bool,
    reach: Reach,
    truths: Truths,
}

impl Case<'_> {
    /// Checks the explanation of a violation.
    fn check(&self, verdict: &Value, seen: &mut Seen) -> Result<(), String> {
        seen.violations += 1;
        let about = verdict.get("about").unwrap_or(&verdict["time"]).as_f64().unwrap();
        let columns = verdict["evidence"].as_array().unwrap();
        if !columns.iter().any(|column| column["time"].as_f64() == Some(about)) {
            return Err("no time point of the violation itself".to_owned());
        }
        if columns.len() > 6 {
            return Err("too much".to_owned());
        }
        let concerned = self.concerned(verdict["key"]["id"].as_u64(), about);
        for column in columns {
            self.check_reach(column, about, &concerned)?;
            self.check_values(column, &verdict["key"], &concerned, seen)?;
        }
        Ok(())
    }

    /// Whether each message concerns the instance that is violated.
    fn concerned(&self, key: Option<u64>, about: f64) -> Vec<bool> {
        let is_its = |m: &Message| m.topic == "a" && Some(m.id) == key;
        let is_last = |m: &&Message| {
            self.ends && is_its(m) && m.field == ("p", Value::Bool(true)) && (m.time as f64 / 2.0) < about
        };
        let begun = self.messages.iter().filter(is_last).map(|m| m.time).max();
        let concerns = |m: &Message| {
            !self.is_keyed
                || (m.topic == "b" && self.sees_b)
                || (is_its(m) && begun.is_none_or(|begun| m.time > begun))
        };
        self.messages.iter().map(concerns).collect()
    }

    /// Checks that a time point of an explanation is within the reach of the formula.
    fn check_reach(&self, column: &Value, about: f64, concerned: &[bool]) -> Result<(), String> {
        let mine = self.messages.iter().zip(concerned).filter(|(_, is)| **is);
        let mine: Vec<f64> = mine.map(|(m, _)| m.time as f64 / 2.0).collect();
        let distance = |a: f64, b: f64| match self.model {
            Model::Steps => mine.iter().filter(|time| **time > a && **time <= b).count() as f64,
            _ => b - a,
        };
        let time = column["time"].as_f64().unwrap();
        let is_within = if time <= about {
            self.reach.0.is_none_or(|back| distance(time, about) <= back as f64 + 1e-6)
        } else {
            distance(about, time) <= self.reach.1 as f64 + 1e-6
        };
        if is_within { Ok(()) } else { Err(format!("{time} is out of reach of {about}")) }
    }

    /// Checks the step and the values of a time point of an explanation.
    fn check_values(
        &self,
        column: &Value,
        key: &Value,
        concerned: &[bool],
        seen: &mut Seen,
    ) -> Result<(), String> {
        let time = column["time"].as_f64().unwrap();
        let message = self.messages.iter().position(|m| m.time as f64 / 2.0 == time);
        let message = message.filter(|step| concerned[*step]);
        let is_at = column.get("after").is_none();
        if is_at && column["step"].as_u64() != message.map(|step| step as u64) {
            return Err(format!("another step at {time}"));
        }
        let mine = self.messages.iter().zip(concerned).filter(|(_, is)| **is).map(|(m, _)| m);
        for (name, value) in column["values"].as_object().unwrap() {
            if let Some(real) = field_at(mine.clone(), name, time, self.model == Model::Linear) {
                seen.values += 1;
                let is_open = !is_at && value.is_null();
                if !is_open && !same(&real, value) {
                    return Err(format!("{name} is {real} at {time}"));
                }
                continue;
            }
            // Where the instance has no message it may have no verdict of its own.
            if message.is_none() || !is_at {
                continue;
            }
            let real = self.truths.get(&(name.clone(), key.to_string(), column["time"].to_string()));
            let is_right = match (real, value) {
                (Some(real), Value::Bool(true)) => real.contains(&'s'),
                (Some(real), Value::Bool(false)) => real.contains(&'v'),
                _ => true,
            };
            seen.values += usize::from(real.is_some() && !value.is_null());
            if !is_right {
                return Err(format!("{name} is {real:?} at {time}"));
            }
        }
        Ok(())
    }
}

#[test]
fn evidence_is_within_reach_and_right() {
    let seeds = rondel_testkit::seeds("evidence_is_within_reach_and_right", 150);
    let (count, mut seen) = (seeds.left(), Seen::default());
    seeds.for_each(|seed| one(seed, &mut seen));
    println!("{} violations, {} values", seen.violations, seen.values);
    assert!(seen.violations as u64 >= count / 2 || count < 20, "only {} violations", seen.violations);
}
