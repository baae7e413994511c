//! Random properties on random traces: whatever explains a violation lies within what the formula can look at, has
//! the moment that the violation is about, and says of every part what that part is as a property of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::support::{Folder, rondel_with_input};

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % sides
    }
}

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

/// How far a formula looks back and ahead; nothing where that has no bound.
type Reach = (Option<u64>, u64);

fn both(a: Reach, b: Reach) -> Reach {
    (a.0.zip(b.0).map(|(a, b)| a.max(b)), a.1.max(b.1))
}

/// A formula, and how far it looks, in steps or seconds.
fn formula(dice: &mut Dice, model: Model, depth: u64, ahead: bool) -> (String, Reach) {
    if depth == 0 || dice.roll(5) == 0 {
        let k = dice.roll(5);
        return match dice.roll(if model == Model::Linear { 7 } else { 8 }) {
            0 => ("a.p".into(), (Some(0), 0)),
            1 => ("b.q".into(), (Some(0), 0)),
            2 => (format!("a.n > {k}"), (Some(0), 0)),
            3 => (format!("b.m <= {k}"), (Some(0), 0)),
            4 => (["on(a)", "on(b)"][dice.roll(2) as usize].into(), (Some(0), 0)),
            5 => ("changed(a.n)".into(), (None, 0)),
            6 => (
                [format!("a{{n > {k}}}"), format!("b{{id < 3, m: {k}}}")][dice.roll(2) as usize].clone(),
                (Some(0), 0),
            ),
            _ => ("a.n > prev(a.n)".into(), (None, 0)),
        };
    }
    let below = |dice: &mut Dice, ahead| formula(dice, model, depth - 1, ahead);
    let choice = dice.roll(if ahead { 12 } else { 8 });
    if choice < 4 {
        let (f, reach) = below(dice, ahead);
        if choice == 0 {
            return (format!("not ({f})"), reach);
        }
        let (g, other) = below(dice, ahead);
        let word = ["and", "or", "->"][choice as usize - 1];
        return (format!("({f}) {word} ({g})"), both(reach, other));
    }
    let lower = dice.roll(3);
    let upper = lower + dice.roll(4);
    let unit = if model == Model::Steps { "" } else { " s" };
    let is_open = choice < 7 && dice.roll(5) == 0;
    let bounds =
        if is_open { format!("[{lower}{unit},]") } else { format!("[{lower}{unit}, {upper}{unit}]") };
    let (f, reach) = below(dice, ahead && choice > 7);
    let back = |reach: Reach| (reach.0.filter(|_| !is_open).map(|back| back + upper), reach.1);
    let on = |reach: Reach| (reach.0, reach.1 + upper);
    match choice {
        4 => (format!("once{bounds} ({f})"), back(reach)),
        5 => (format!("historically{bounds} ({f})"), back(reach)),
        6 => {
            let (g, other) = below(dice, false);
            (format!("({f}) since{bounds} ({g})"), back(both(reach, other)))
        }
        7 => {
            let word = ["previously", "rising", "falling"][dice.roll(3) as usize];
            let step = (reach.0.map(|back| back + 1).filter(|_| model == Model::Steps), reach.1);
            (format!("{word} ({f})"), step)
        }
        8 | 9 => (format!("eventually{bounds} ({f})"), on(reach)),
        10 => (format!("always{bounds} ({f})"), on(reach)),
        _ => {
            let (g, other) = below(dice, ahead);
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

fn messages(dice: &mut Dice) -> Vec<Message> {
    let mut time = 0;
    let mut messages = Vec::new();
    for _ in 0..12 + dice.roll(20) {
        time += 1 + dice.roll(4);
        let (topic, name) = [("a", "p"), ("a", "n"), ("b", "q"), ("b", "m")][dice.roll(4) as usize];
        let value = match name {
            "p" | "q" => Value::from(dice.roll(2) == 0),
            _ => Value::from(dice.roll(6)),
        };
        messages.push(Message { time, topic, id: dice.roll(2), field: (name, value) });
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
    let dice = &mut Dice(seed);
    let model = [Model::Steps, Model::Points, Model::Dense, Model::Linear][dice.roll(4) as usize];
    let is_keyed = model != Model::Linear && dice.roll(4) == 0;
    let ends = is_keyed && dice.roll(2) == 0;
    // Messages on `b` concern all instances.
    let each = match (is_keyed, ends) {
        (false, _) => "",
        (true, false) => " for each id in a.id",
        (true, true) => " for each id in a.id until on(a) and a.p",
    };
    let depth = 1 + dice.roll(4);
    let (formula, reach) = formula(dice, model, depth, true);
    let attribute = model.attribute();
    let spec = format!("{TOPICS}{attribute} property p{each} = {formula}\n");
    let messages = messages(dice);
    let input = trace(&messages);
    let folder = Folder::new();
    let run = |name: &str, spec: &str, more: &[&str]| {
        let file = folder.file(name, spec);
        let arguments = [&["check", "-q", "--format", "json"], more, &[&file, "-"]].concat();
        rondel_with_input(arguments, input.as_bytes())
    };
    let fail = |why: String| panic!("seed {seed}: {why}\n{spec}{input}");
    let explained = run("p.rondel", &spec, &["-e", "violations", "--explain"]);
    if explained.status == Some(2) {
        // What cannot be monitored, or is written twice.
        return;
    }
    let violations = lines(&explained.stdout);
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
    let mut truths: BTreeMap<(String, String, String), BTreeSet<char>> = BTreeMap::new();
    for verdict in lines(&run("r.rondel", &alone, &["-e", "every"]).stdout) {
        let about = verdict.get("about").unwrap_or(&verdict["time"]).to_string();
        let i: usize = verdict["property"].as_str().unwrap()[1..].parse().unwrap();
        let letter = verdict["verdict"].as_str().unwrap().chars().next().unwrap();
        let at_message = messages.iter().any(|m| (m.time as f64 / 2.0).to_string() == about);
        if at_message && (verdict.get("step").is_some() || verdict.get("about").is_some()) {
            // In dense time also what follows right after it.
            truths.entry((parts[i].clone(), verdict["key"].to_string(), about)).or_default().insert(letter);
        }
    }
    for verdict in &violations {
        seen.violations += 1;
        let about = verdict.get("about").unwrap_or(&verdict["time"]).as_f64().unwrap();
        let key = verdict["key"]["id"].as_u64();
        let columns = verdict["evidence"].as_array().unwrap();
        if !columns.iter().any(|column| column["time"].as_f64() == Some(about)) {
            fail(format!("no moment of the violation itself: {verdict}"));
        }
        if columns.len() > 6 {
            fail(format!("too much: {verdict}"));
        }
        let is_its = |m: &Message| m.topic == "a" && Some(m.id) == key;
        let is_last = |m: &&Message| {
            ends && is_its(m) && m.field == ("p", Value::Bool(true)) && (m.time as f64 / 2.0) < about
        };
        let begun = messages.iter().filter(is_last).map(|m| m.time).max();
        let concerns = |m: &&Message| {
            !is_keyed || (m.topic == "b" && sees_b) || (is_its(m) && begun.is_none_or(|begun| m.time > begun))
        };
        let mine: Vec<f64> = messages.iter().filter(concerns).map(|m| m.time as f64 / 2.0).collect();
        let distance = |a: f64, b: f64| match model {
            Model::Steps => mine.iter().filter(|time| **time > a && **time <= b).count() as f64,
            _ => b - a,
        };
        for column in columns {
            let time = column["time"].as_f64().unwrap();
            let is_within = if time <= about {
                reach.0.is_none_or(|back| distance(time, about) <= back as f64 + 1e-6)
            } else {
                distance(about, time) <= reach.1 as f64 + 1e-6
            };
            if !is_within {
                fail(format!("{time} is out of reach of {about}: {verdict}"));
            }
            let message = messages.iter().position(|m| m.time as f64 / 2.0 == time);
            let is_at = column.get("after").is_none();
            let is_seen = |step: &usize| concerns(&&messages[*step]);
            if is_at && column["step"].as_u64() != message.filter(is_seen).map(|step| step as u64) {
                fail(format!("another step at {time}: {verdict}"));
            }
            for (name, value) in column["values"].as_object().unwrap() {
                if let Some(real) =
                    field_at(messages.iter().filter(concerns), name, time, model == Model::Linear)
                {
                    seen.values += 1;
                    let is_open = column.get("after").is_some() && value.is_null();
                    if !is_open && !same(&real, value) {
                        fail(format!("{name} is {real} at {time}: {verdict}"));
                    }
                    continue;
                }
                // Where the instance has no message it may have no verdict of its own.
                if message.filter(is_seen).is_none() || !is_at {
                    continue;
                }
                let real =
                    truths.get(&(name.clone(), verdict["key"].to_string(), column["time"].to_string()));
                let is_right = match (real, value) {
                    (Some(real), Value::Bool(true)) => real.contains(&'s'),
                    (Some(real), Value::Bool(false)) => real.contains(&'v'),
                    _ => true,
                };
                seen.values += usize::from(real.is_some() && !value.is_null());
                if !is_right {
                    fail(format!("{name} is {real:?} at {time}: {verdict}"));
                }
            }
        }
    }
}

#[test]
fn evidence_is_within_reach_and_right() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("RONDEL_SEED").unwrap_or(1);
    let count = number("RONDEL_CASES").unwrap_or(150);
    println!("seeds {first} to {}", first + count - 1);
    let mut seen = Seen::default();
    (first..first + count).for_each(|seed| one(seed, &mut seen));
    println!("{} violations, {} values", seen.violations, seen.values);
    assert!(seen.violations as u64 >= count / 2 || count < 20, "only {} violations", seen.violations);
}
