//! `rondel explain`: the evaluation plan of a specification.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter};
use std::path::PathBuf;

use clap::Args;
use rondel_engine::{Evaluation, Memory, Program, WholeReason};
use rondel_event::{Read, TopicEvent, TopicId};
use rondel_runtime::text::counted;
use rondel_runtime::{Options, SessionPlan, formula, looks_ahead};
use rondel_spec::{Class, Expr, ExprId, Machine, Property, Slice, Spec, State, TimeModel as Model};

use crate::output::Output;
use crate::output::summary::declared_claims;
use crate::schemas::Schemas;
use crate::specification::{Reading, Specification};
use crate::{complain, exit};

/// Maximum number of shared parts of a property that are shown.
const SHARED: usize = 4;
/// Maximum number of characters of a formula that are shown.
const SHOWN: usize = 2000;
/// Maximum number of properties with common memory that are named.
const NAMED: usize = 8;

/// Print how a specification is evaluated: the fields it reads, its memory and its shared parts
#[derive(Debug, Args)]
pub struct Explain {
    /// The specification
    #[arg(value_name = "SPEC", required_unless_present = "formula")]
    file: Option<PathBuf>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", conflicts_with = "file", allow_hyphen_values = true)]
    formula: Option<String>,
    #[command(flatten)]
    reading: Reading,
}

impl Explain {
    /// Prints the plan, and returns the exit status.
    pub fn run(self) -> u8 {
        let loaded =
            Specification::from_arguments(self.file.as_ref(), self.formula.as_deref(), &self.reading);
        let Ok(specification) = loaded else { return exit::USAGE };
        let mut out = Output::new(BufWriter::new(io::stdout().lock()));
        Plan::new(&specification).write(|text| out.write(text.as_bytes()));
        let closed = out.is_closed();
        match out.finish() {
            Err(error) if !closed => {
                complain(&format!("cannot write the plan: {error}"));
                exit::TRACE
            }
            _ => exit::SATISFIED,
        }
    }
}

/// The plan of a specification.
struct Plan<'a> {
    spec: &'a Spec,
    schemas: &'a Schemas,
    program: &'a Program,
    /// For every node the properties that use it, in order.
    users: Vec<Vec<usize>>,
    /// Why no worker evaluates any property, where that concerns all of them.
    one_thread: Option<&'static str>,
}

/// Evaluation of the property or assert of this name by itself, one line for each fact; `None` if there is none.
#[cfg(feature = "lsp")]
pub(super) fn planned(spec: &Spec, name: &str) -> Option<String> {
    let property = spec.properties.iter().find(|property| property.name == name)?;
    // Its formula stands in the specification.
    let shown = |(what, _): &(&str, String)| !matches!(*what, "formula" | "states" | "transition" | "time");
    let rows = Alone::new(spec, property).rows(None).into_iter().filter(shown);
    Some(table(&rows.collect::<Vec<_>>()))
}

fn table(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(what, value)| format!("  {what:<12}  {value}\n")).collect()
}

/// A property of the plan by itself.
struct Alone {
    spec: Spec,
    /// The nodes of the whole specification that its nodes are.
    nodes: Vec<ExprId>,
    program: Option<Program>,
    /// Why one worker evaluates all of its instances, also beside other properties.
    undivided: Option<WholeReason>,
}

impl Alone {
    fn new(whole: &Spec, property: &Property) -> Alone {
        let (spec, nodes) = whole.part(property);
        let program = Program::compile(&spec).ok();
        let undivided = program.as_ref().and_then(|program| program.undivided(0));
        Alone { spec, nodes, program, undivided }
    }

    fn property(&self) -> &Property {
        &self.spec.properties[0]
    }

    fn slice(&self) -> Option<&Slice> {
        self.spec.slices.get(self.property().slice?.0 as usize)
    }

    fn written(&self, node: ExprId) -> String {
        shorten(&formula::written(&self.spec, node, self.property()))
    }

    fn topic(&self, topic: TopicId) -> &str {
        &self.spec.topics[topic.index()].name
    }
}

impl<'a> Plan<'a> {
    fn new(specification: &'a Specification) -> Plan<'a> {
        let spec = &specification.spec;
        let users = vec![Vec::new(); spec.nodes.len()];
        let mutes = spec.properties.iter().any(|property| property.because_of().is_some());
        let one_thread = mutes.then(|| {
            let mut plan = SessionPlan::of(specification.checked(), Options::default());
            plan.set_workers(2).ok().flatten()
        });
        Plan {
            spec,
            schemas: &specification.schemas,
            program: &specification.program,
            users,
            one_thread: one_thread.flatten(),
        }
    }

    fn write(mut self, mut out: impl FnMut(&str)) {
        let mut text = String::new();
        for (i, topic) in self.spec.declared().iter().enumerate() {
            text += &format!("topic {}", topic.name);
            if topic.address != topic.name {
                text += &format!("  \"{}\"", topic.address);
            }
            if let Some(name) = &topic.type_name {
                text += &format!("  : {name}  ({})", self.schemas.origin(name));
            }
            text.push('\n');
            text += &self.fields(i);
            if let Some(events) = self.spec.events_topic(TopicId(i as u32)) {
                text += &self.fields(events.index());
            }
        }
        for (i, property) in self.spec.properties.iter().enumerate() {
            let (part, nodes) = self.spec.part(property);
            for node in with_guards(&part, part.properties[0].formula) {
                self.users[nodes[node.index()].index()].push(i);
            }
        }
        out(&text);
        let mut alone = Some(0);
        for (i, property) in self.spec.properties.iter().enumerate() {
            let undivided = self.program.undivided(i as u32);
            let own = Alone { undivided, ..Alone::new(self.spec, property) };
            out(&self.property(i, &own));
            alone = alone.zip(own.program).map(|(sum, program)| sum + program.node_count());
        }
        text = String::new();
        let properties = declared_claims(self.spec);
        let together = self.program.node_count();
        text += &format!(
            "\n{properties}, {} for up to 64 events",
            counted(together as u64, "instruction", "instructions")
        );
        if let Some(sum) = alone.filter(|sum| *sum > together) {
            text += &format!(" ({sum} without sharing)");
        }
        text.push('\n');
        for memory in self.program.memory().iter().filter(|memory| memory.properties.len() > 1) {
            let name = |property: &u32| self.spec.properties[*property as usize].name.as_str();
            let mut names = memory.properties.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ");
            let others = memory.properties.len().saturating_sub(NAMED) as u64;
            if others > 0 {
                names += &format!(" and {}", counted(others, "other", "others"));
            }
            text += &format!("{} together for {names}\n", kept(memory));
        }
        if let Some(reason) = self.one_thread {
            text += &format!("no workers: one thread evaluates all messages, as {reason}\n");
        }
        out(&text);
    }

    /// The fields that are read of a topic.
    fn fields(&self, topic: usize) -> String {
        let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for field in &self.program.projections()[topic].fields {
            let what = match &field.read {
                Read::Value(value_type) => value_type.to_string(),
                Read::Number(value_type) => format!("{value_type}, also as text"),
                Read::Presence => "presence".to_owned(),
                Read::Elements(quantifier, _) if quantifier.is_measure() => {
                    format!("{} of its elements", quantifier.as_str())
                }
                Read::Elements(..) => "conditions on its elements".to_owned(),
                Read::Length | Read::LengthOf(_) => "length".to_owned(),
                Read::Witness(..) => "the element that decides conditions".to_owned(),
                Read::IsNan => "whether it is NaN".to_owned(),
                Read::Table(_) => "its elements".to_owned(),
            };
            // An event belongs to an instance by its key alone.
            let is_event = TopicEvent::named(&field.path.to_string()).is_some();
            if self.spec.events_of(TopicId(topic as u32)).is_some() && !is_event {
                continue;
            }
            let (name, what) = match self.spec.event_text(TopicId(topic as u32), &field.path) {
                Some(event) if field.read == Read::Presence => (event, "event".to_owned()),
                Some(event) => (event, what),
                None => (field.path.to_string(), what),
            };
            lines.entry(name).or_default().insert(what);
        }
        let width = lines.keys().map(|path| path.chars().count()).max().unwrap_or(0);
        let line = |(path, what): (&String, &BTreeSet<String>)| {
            let what = what.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("  {path:<width$}  {what}\n")
        };
        lines.iter().map(line).collect()
    }

    fn property(&self, i: usize, own: &Alone) -> String {
        let property = own.property();
        let keyword = if property.criterion.is_some() { "assert" } else { "property" };
        let judged = property.criterion.as_ref().and_then(|criterion| criterion.property);
        let judged = judged.and_then(|judged| self.spec.properties.get(judged as usize));
        let mut rows = own.rows(judged.map(|judged| judged.name.as_str()));
        let shared = self.shared(own);
        for node in shared.iter().take(SHARED) {
            let users = &self.users[own.nodes[node.index()].index()];
            let others = users.iter().filter(|user| **user != i).take(NAMED);
            let names: Vec<&str> = others.map(|i| self.spec.properties[*i].name.as_str()).collect();
            let mut names = names.join(", ");
            let more = (users.len() - 1).saturating_sub(NAMED) as u64;
            if more > 0 {
                names += &format!(" and {}", counted(more, "other", "others"));
            }
            rows.push(("shares", format!("{}  with {names}", own.written(*node))));
        }
        if shared.len() > SHARED {
            rows.push(("", format!("and {} more", shared.len() - SHARED)));
        }
        format!("\n{keyword} {}\n{}", property.name, table(&rows))
    }

    /// The largest parts that a property shares with others.
    fn shared(&self, own: &Alone) -> Vec<ExprId> {
        let mut found = Vec::new();
        let formula = own.property().formula;
        let mut seen = BTreeSet::from([formula]);
        let mut open = vec![formula];
        while let Some(id) = open.pop() {
            let node = &own.spec.nodes[id.index()];
            if self.users[own.nodes[id.index()].index()].len() < 2 {
                let operands: Vec<ExprId> = parts(&own.spec, node).collect();
                open.extend(operands.into_iter().rev().filter(|operand| seen.insert(*operand)));
            } else if !matches!(node, Expr::Literal(_) | Expr::Carried { .. }) && !own.spec.is_unknown(id) {
                found.push(id);
            }
        }
        found
    }
}

/// Returns the time model of a property, with the meaning of its bounds.
fn time_model(property: &Property) -> &'static str {
    match property.time {
        Model::Steps => "steps: bounds count events",
        Model::Points => "points: bounds are times between events",
        Model::Dense if property.linear => {
            "dense: bounds are times, and numbers are interpolated linearly between events"
        }
        Model::Dense => "dense: bounds are times, and the property has a truth value between events too",
    }
}

impl Alone {
    /// Rows of its explanation, each with a heading; `judged` is the property whose verdicts an assert judges.
    fn rows(&self, judged: Option<&str>) -> Vec<(&'static str, String)> {
        let (property, alone) = (self.property(), self.program.as_ref());
        let mut rows = Vec::new();
        let mut line = |what: &'static str, value: &str| rows.push((what, value.to_owned()));
        match &property.criterion {
            None => line("formula", &self.written(property.formula)),
            Some(_) => {
                let judged = judged.map(|name| format!("verdicts of {name}, and decides instead of it"));
                line("judges", judged.as_deref().unwrap_or("its own formula"));
                line("verdict", "one, at the end of the run");
            }
        }
        if let Some(machine) = self.spec.machines.iter().find(|machine| machine.name == property.name) {
            line("states", &states(machine));
            machine.transitions.iter().for_each(|transition| line("transition", &transition.text));
        }
        line("time", time_model(property));
        let mut topics: Vec<&str> =
            self.spec.topics_of(property.formula).into_iter().map(|topic| self.topic(topic)).collect();
        // The events of a topic have its name.
        let mut seen = std::collections::HashSet::new();
        topics.retain(|topic| seen.insert(*topic));
        let reads = if topics.is_empty() { "nothing".to_owned() } else { topics.join(", ") };
        line("reads", &reads);
        if let Some(slice) = self.slice() {
            line("for each", &self.parameters(slice));
        }
        let memory = alone.and_then(|program| program.memory().into_iter().next());
        line("evaluated", &self.time_points(&topics, memory.as_ref()));
        for clock in self.clocks(&topics).iter().take(SHARED) {
            line("clock", clock);
        }
        for plan in self.quantifiers().iter().take(SHARED) {
            line("quantifiers", plan);
        }
        let next: Vec<String> = alone
            .map_or(&[][..], |program| program.waits_for(0))
            .iter()
            .map(|(topic, path)| formula::field(&self.spec, *topic, path))
            .collect();
        let waits = match self.wait(property.formula) {
            (_, true) => Some("until it is certain, without a limit".to_owned()),
            (0, false) => None,
            (longest, false) => Some(format!("at most {}", span(longest, property.time))),
        };
        line(
            "waits",
            &match (waits, next.is_empty()) {
                (None, true) => "never: every verdict is certain at once".to_owned(),
                (Some(waits), true) => waits,
                (None, false) => format!("for the next {}", next.join(" and ")),
                (Some(waits), false) => format!("{waits}, and then for the next {}", next.join(" and ")),
            },
        );
        match self.reach(property.formula) {
            (_, true) => line("looks back", "to the beginning"),
            (0, false) => {}
            (longest, false) => line("looks back", &span(longest, property.time)),
        }
        if property.robust {
            line("robustness", "yes");
        }
        if let Some(other) = property.because_of() {
            line("muted", &format!("while {other} is violated"));
        }
        if let Some(memory) = &memory {
            line("memory", &kept(memory));
        }
        if let Some(alone) = alone {
            line("workers", &workers(alone, self.slice().is_some(), self.undivided));
            line("size", &counted(alone.node_count() as u64, "instruction", "instructions"));
        }
        rows
    }

    /// Describes the time points at which it is evaluated, given the topics that it reads.
    fn time_points(&self, topics: &[&str], memory: Option<&Memory>) -> String {
        let mut text = match self.slice() {
            None => "at every message".to_owned(),
            Some(slice) => {
                let keyed: Vec<&str> = slice
                    .keys
                    .iter()
                    .flat_map(|key| &key.fields)
                    .map(|(topic, _)| self.topic(*topic))
                    .collect();
                let shared: Vec<&str> =
                    topics.iter().copied().filter(|topic| !keyed.contains(topic)).collect();
                let all = if shared.is_empty() {
                    String::new()
                } else {
                    format!(", and for all instances at messages on {}", shared.join(", "))
                };
                format!("at every message with its parameters{all}")
            }
        };
        if memory.is_some_and(|memory| memory.changes_alone) {
            text += ", and when a time bound expires";
        }
        text
    }

    /// For each `prev`, the topics whose messages it counts, if the property reads other topics too.
    fn clocks(&self, topics: &[&str]) -> Vec<String> {
        let mut nodes = with_guards(&self.spec, self.property().formula);
        nodes.sort_unstable();
        let clock = |node: ExprId| match self.spec.nodes[node.index()] {
            Expr::Prev(_) => {
                let own: Vec<&str> =
                    self.spec.topics_of(node).into_iter().map(|topic| self.topic(topic)).collect();
                let on = || format!("{} counts messages on {}", self.written(node), own.join(", "));
                (own.len() < topics.len()).then(on)
            }
            _ => None,
        };
        nodes.into_iter().filter_map(clock).collect()
    }

    /// Evaluation of its quantified formulas, one line for each.
    fn quantifiers(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut needed = BTreeSet::from([self.property().formula]);
        while let Some(node) = needed.pop_last() {
            let expr = &self.spec.nodes[node.index()];
            if matches!(expr, Expr::Exists(..) | Expr::ForAll(..)) && looks_ahead(&self.spec, node) {
                found.push(
                    "by relations; future operators stay pending for each value until they are certain"
                        .to_owned(),
                );
                break;
            }
            needed.extend(expr.operands());
        }
        for quantifier in self.program.as_ref().map_or(&[][..], Program::quantifiers) {
            let how = match &quantifier.evaluation {
                Evaluation::ByValue(variables) => {
                    let place = |(topic, path): &(TopicId, rondel_event::Path)| {
                        format!("{}.{path}", self.topic(*topic))
                    };
                    let of = |places: &Vec<(TopicId, rondel_event::Path)>| {
                        places.iter().map(place).collect::<Vec<_>>().join(", ")
                    };
                    let keys: Vec<String> =
                        variables.iter().map(|(_, places)| format!("({})", of(places))).collect();
                    format!(
                        "by value, as `for each` with {}: a message affects only its own values",
                        keys.join(" and ")
                    )
                }
                Evaluation::Relations { node, why } => format!(
                    "by relations: values are kept as long as they matter; not by value because of {}: {why}",
                    self.written(*node)
                ),
            };
            found.push(how);
        }
        found
    }

    fn parameters(&self, slice: &Slice) -> String {
        let key = |key: &rondel_spec::Key| {
            let place = |(topic, path): &(TopicId, rondel_event::Path)| {
                format!("{}.{}", self.topic(*topic), path.as_listed())
            };
            // Events carry the same fields.
            let fields = key.fields.iter().filter(|(topic, _)| self.spec.events_of(*topic).is_none());
            let places: Vec<String> = fields.map(place).collect();
            format!("{}: {} in ({})", key.name, key.value_type, places.join(", "))
        };
        let mut text = slice.keys.iter().map(key).collect::<Vec<_>>().join("; ");
        if let Some(until) = slice.until {
            text += &format!(", until {}", self.written(until));
        }
        if let Some(limit) = slice.limit {
            text += &format!(", at most {limit}");
        }
        text
    }

    /// The longest wait of a verdict in the unit of the property, and whether it is unlimited.
    fn wait(&self, formula: ExprId) -> (u64, bool) {
        self.longest(formula, |node| match node {
            Expr::Next(_) => Some((1, false)),
            _ => {
                let bounds = node.bounds().filter(|_| node.class() == Class::Future)?;
                Some((bounds.upper.unwrap_or(0), bounds.upper.is_none()))
            }
        })
    }

    /// Horizon of a formula into the past, in the unit of the property, and whether it is unbounded.
    fn reach(&self, formula: ExprId) -> (u64, bool) {
        self.longest(formula, |node| match node {
            Expr::Window { over, .. } => Some((*over, false)),
            _ => {
                let bounds = node.bounds().filter(|_| node.class() == Class::Past)?;
                let far = bounds.upper.unwrap_or(bounds.lower);
                Some((far, bounds.upper.is_none()))
            }
        })
    }

    /// The largest sum of `adds` over the nodes of one path through a formula and the guards of machines.
    fn longest(&self, formula: ExprId, adds: impl Fn(&Expr) -> Option<(u64, bool)>) -> (u64, bool) {
        let mut sums = vec![(0_u64, false); self.spec.nodes.len()];
        let larger = |a: (u64, bool), b: (u64, bool)| (a.0.max(b.0), a.1 | b.1);
        // The guards of a machine may read another one, but not in a circle.
        for _ in 0..=self.spec.machines.len() {
            for (i, node) in self.spec.nodes.iter().enumerate() {
                let operands = parts(&self.spec, node).map(|operand| sums[operand.index()]);
                let (sum, endless) = operands.fold((0, false), larger);
                let (own, without_end) = adds(node).unwrap_or((0, false));
                sums[i] = (sum.saturating_add(own), endless | without_end);
            }
        }
        sums[formula.index()]
    }
}

/// The nodes that a node refers to, with the guards of its machine.
fn parts<'a>(spec: &'a Spec, node: &'a Expr) -> impl Iterator<Item = ExprId> + 'a {
    let machine = node.machine().and_then(|machine| spec.machines.get(machine.0 as usize));
    node.operands().chain(machine.into_iter().flat_map(Machine::conditions))
}

/// A node and all nodes below it, with the guards of machines.
pub(super) fn with_guards(spec: &Spec, root: ExprId) -> Vec<ExprId> {
    let (mut seen, mut all, mut open) = (vec![false; spec.nodes.len()], Vec::new(), vec![root]);
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut seen[id.index()], true) {
            all.push(id);
            open.extend(parts(spec, &spec.nodes[id.index()]));
        }
    }
    all
}

/// The states of a machine, with initial and final ones marked.
fn states(machine: &Machine) -> String {
    let state = |(i, state): (u32, &State)| {
        let marks = [(i == machine.initial, "initial"), (state.is_final, "final")];
        let marks: Vec<&str> = marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect();
        if marks.is_empty() { state.name.clone() } else { format!("{} ({})", state.name, marks.join(", ")) }
    };
    (0..).zip(&machine.states).map(state).collect::<Vec<_>>().join(", ")
}

/// The memory that is kept between messages.
fn kept(memory: &Memory) -> String {
    let Memory { bytes, texts, queues, quantified, by_value, by_key, .. } = *memory;
    let each = if by_key { " for each instance" } else { "" };
    let parts = [
        (bytes, "byte", "bytes"),
        (texts, "text", "texts"),
        (queues, "queue", "queues"),
        (quantified, "relation", "relations"),
    ];
    let parts = parts.into_iter().filter(|part| part.0 > 0);
    let text =
        parts.map(|(count, one, many)| counted(count as u64, one, many)).collect::<Vec<_>>().join(" + ");
    let own = if text.is_empty() { String::new() } else { text + each };
    let of_values = counted(by_value as u64, "byte", "bytes") + " for each value";
    match (own.is_empty(), by_value) {
        (true, 0) => "none".to_owned(),
        (true, _) => of_values,
        (false, 0) => own,
        (false, _) => format!("{own} + {of_values}"),
    }
}

/// Whether a worker evaluates the only property of a program on another thread.
fn workers(program: &Program, has_instances: bool, undivided: Option<WholeReason>) -> String {
    match (program.stays(0), undivided) {
        (Some(reason), _) => format!("no: {reason}"),
        (None, Some(reason)) => format!("yes, one for all instances: {reason}"),
        (None, None) if has_instances => "yes, each for some of the instances".to_owned(),
        (None, None) => "yes".to_owned(),
    }
}

/// A bound as text, in the unit of a time model.
fn span(bound: u64, model: Model) -> String {
    if model == Model::Steps { counted(bound, "step", "steps") } else { formula::bound(bound, model) }
}

/// The beginning of a long text.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
