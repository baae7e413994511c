//! Formulas as text, from the nodes of a specification.

mod atom;

use rondel_event::{Comparison, Condition, Path, Quantifier, Segment, Test, Timestamp, TopicId, Value};
use rondel_spec::{BinaryOp, Bounds, Call, Expr, ExprId, Property, Spec, TimeModel, UnaryOp, VariableId};

pub use atom::{Atom, Conjunct, Pair, atom, conjuncts};

/// The depth to which a formula is written: deeper ones are unreadable and could exhaust the stack.
const DEEPEST: u32 = 40;

/// The precedence of operators, from low to high.
mod level {
    pub(super) const IMPLIES: u8 = 1;
    pub(super) const OR: u8 = 2;
    pub(super) const AND: u8 = 3;
    pub(super) const SINCE: u8 = 4;
    pub(super) const PREFIX: u8 = 5;
    pub(super) const COMPARE: u8 = 6;
    pub(super) const ADD: u8 = 7;
    pub(super) const MULTIPLY: u8 = 8;
    pub(super) const NEGATE: u8 = 9;
}

/// A word of the language that stands for several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word: `changed`, `rising`, `falling`, `known`, `is_nan`, `finite`.
    pub word: &'static str,
    /// The operand.
    pub operand: ExprId,
}

/// The word for a node and its operands, if there is one.
pub fn word(spec: &Spec, id: ExprId) -> Option<Word> {
    if let Some(Call { word: word @ ("known" | "is_nan" | "finite"), operands, .. }) = spec.places.call(id) {
        return Some(Word { word, operand: *operands.first()? });
    }
    let node = |id: ExprId| &spec.nodes[id.index()];
    let Expr::And(a, b) = *node(id) else { return None };
    match (node(a), node(b)) {
        (_, Expr::Compare(rondel_event::Comparison::NotEqual, x, before)) if is_update(spec, a) => {
            (*node(*before) == Expr::Prev(*x)).then_some(Word { word: "changed", operand: *x })
        }
        (_, Expr::Not(before)) if *node(*before) == Expr::Previously(a) => {
            Some(Word { word: "rising", operand: a })
        }
        (Expr::Not(x), Expr::Previously(y)) if x == y => Some(Word { word: "falling", operand: *x }),
        _ => None,
    }
}

/// Whether a node is true at the messages of some topics, and only there.
fn is_update(spec: &Spec, id: ExprId) -> bool {
    let (mut id, mut steps) = (id, 0);
    loop {
        match spec.nodes[id.index()] {
            Expr::On(_) => return true,
            Expr::Or(a, b) if matches!(spec.nodes[b.index()], Expr::On(_)) && steps < DEEPEST => {
                (id, steps) = (a, steps + 1);
            }
            _ => return false,
        }
    }
}

/// The text of a node of a property.
pub fn written(spec: &Spec, id: ExprId, property: &Property) -> String {
    let mut writer = Writer { spec, property, most: usize::MAX, named: false, out: String::new() };
    writer.node(id, 0, 0);
    writer.out
}

/// The text of a node of a property in which definitions have their names; a definition itself with its name before it:
/// `speed = mean(odom.v) over 1 s`.
pub fn named(spec: &Spec, id: ExprId, property: &Property) -> String {
    let mut writer = Writer { spec, property, most: usize::MAX, named: true, out: String::new() };
    if let Some(name) = spec.places.definition(id) {
        writer.text(&format!("{name} = "));
    }
    writer.node(id, 0, 0);
    writer.out
}

/// The first characters of the text of a node, at most so many. A long text ends with `…`.
pub fn written_briefly(spec: &Spec, id: ExprId, property: &Property, most: usize) -> String {
    // A formula may be far longer than its nodes are many.
    let mut writer = Writer { spec, property, most: 4 * most, named: false, out: String::new() };
    writer.node(id, 0, 0);
    if writer.out.chars().nth(most).is_none() {
        return writer.out;
    }
    writer.out.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The text of a field.
pub fn field(spec: &Spec, topic: TopicId, path: &Path) -> String {
    if let Some(event) = spec.event_text(topic, path) {
        return event;
    }
    format!("{}{}", topic_name(spec, topic), behind(path))
}

/// A path as it stands behind a name.
fn behind(path: &Path) -> String {
    let dot = if matches!(path.0.first(), Some(Segment::Key(_))) { "." } else { "" };
    format!("{dot}{}", path_text(path))
}

/// The text of a path: keys that are no words stand in quotes.
fn path_text(path: &Path) -> String {
    let segment = |(i, segment): (usize, &Segment)| match segment {
        Segment::Key(key) => {
            let dot = if i > 0 { "." } else { "" };
            let key = if is_word(key) { key.to_string() } else { quoted(key) };
            format!("{dot}{key}")
        }
        Segment::Index(index) => format!("[{index}]"),
        Segment::FromEnd(index) => format!("[-{index}]"),
        Segment::Named(named) => named.to_string(),
    };
    path.0.iter().enumerate().map(segment).collect()
}

fn topic_name(spec: &Spec, topic: TopicId) -> &str {
    spec.topics.get(topic.index()).map_or("?", |topic| &topic.name)
}

struct Writer<'a> {
    spec: &'a Spec,
    property: &'a Property,
    /// The number of bytes after which nothing more is written.
    most: usize,
    /// Whether definitions below the first node are written as their names.
    named: bool,
    out: String,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn topic(&self, topic: TopicId) -> &str {
        topic_name(self.spec, topic)
    }

    /// Writes a node, in parentheses where it binds looser than `least`.
    fn node(&mut self, id: ExprId, least: u8, depth: u32) {
        if self.out.len() > self.most {
            return;
        }
        let Some(node) = self.spec.nodes.get(id.index()).filter(|_| depth < DEEPEST) else {
            return self.text("…");
        };
        if let Some(name) = self.spec.places.definition(id).filter(|_| self.named && depth > 0) {
            return self.text(name);
        }
        let below = depth + 1;
        if let Some(Word { word, operand }) = word(self.spec, id) {
            return self.call(word, &[operand], below);
        }
        if let Some(Call { word, operands, lasting }) = self.spec.places.call(id) {
            self.call(word, operands, below);
            if let Some(lasting) = lasting {
                let lasting = bound(*lasting, self.property.time);
                self.text(&format!(" for {lasting}"));
            }
            return;
        }
        if let Expr::And(..) = node
            && let Some(conjuncts) = conjuncts(self.spec, id)
        {
            let (level, least) = if conjuncts.len() > 1 { (level::AND, least) } else { (0, 0) };
            return self.around(level, least, |w| {
                for (i, conjunct) in conjuncts.iter().enumerate() {
                    w.text(if i > 0 { " and " } else { "" });
                    match conjunct {
                        Conjunct::Atom(atom) => w.atom(atom, below),
                        Conjunct::Formula(id) => w.node(*id, level::SINCE, below),
                    }
                }
            });
        }
        let binary = |op: &'static str, level: u8, left: u8, right: u8| Some((op, level, left, right));
        let infix = match node {
            Expr::Or(..) => binary("or", level::OR, level::OR, level::AND),
            Expr::And(..) => binary("and", level::AND, level::AND, level::SINCE),
            Expr::Compare(comparison, ..) => {
                binary(comparison.as_str(), level::COMPARE, level::ADD, level::ADD)
            }
            Expr::Binary(op, ..) => match op {
                BinaryOp::Add => binary("+", level::ADD, level::ADD, level::MULTIPLY),
                BinaryOp::Subtract => binary("-", level::ADD, level::ADD, level::MULTIPLY),
                BinaryOp::Multiply => binary("*", level::MULTIPLY, level::MULTIPLY, level::NEGATE),
                BinaryOp::Divide => binary("/", level::MULTIPLY, level::MULTIPLY, level::NEGATE),
                BinaryOp::Remainder => binary("%", level::MULTIPLY, level::MULTIPLY, level::NEGATE),
                BinaryOp::Min | BinaryOp::Max => None,
            },
            _ => None,
        };
        if let Expr::Or(a, b) = node
            && let Expr::Not(a) = self.spec.nodes[a.index()]
        {
            return self.around(level::IMPLIES, least, |w| {
                w.node(a, level::OR, below);
                w.text(" -> ");
                w.node(*b, level::IMPLIES, below);
            });
        }
        let operands: Vec<ExprId> = node.operands().collect();
        if let (Some((op, level, left, right)), [a, b]) = (infix, &operands[..]) {
            return self.around(level, least, |w| {
                w.node(*a, left, below);
                w.text(&format!(" {op} "));
                w.node(*b, right, below);
            });
        }
        let prefix = match node {
            Expr::Not(_) => Some("not".to_owned()),
            Expr::Previously(_) => Some("previously".to_owned()),
            Expr::Next(_) => Some("next".to_owned()),
            Expr::Once(bounds, _) => Some(format!("once{}", self.bounds(*bounds))),
            Expr::Historically(bounds, _) => Some(format!("historically{}", self.bounds(*bounds))),
            Expr::Eventually(bounds, _) => Some(format!("eventually{}", self.bounds(*bounds))),
            Expr::Always(bounds, _) => Some(format!("always{}", self.bounds(*bounds))),
            Expr::Exists(variable, _) => Some(format!("exists {}.", self.variable(*variable))),
            Expr::ForAll(variable, _) => Some(format!("forall {}.", self.variable(*variable))),
            _ => None,
        };
        if let (Some(prefix), [a]) = (prefix, &operands[..]) {
            return self.around(level::PREFIX, least, |w| {
                w.text(&format!("{prefix} "));
                w.node(*a, level::PREFIX, below);
            });
        }
        match node {
            Expr::Since(bounds, a, b) | Expr::Until(bounds, a, b) => {
                let word = if matches!(node, Expr::Since(..)) { "since" } else { "until" };
                let bounds = self.bounds(*bounds);
                self.around(level::SINCE, least, |w| {
                    w.node(*a, level::PREFIX, below);
                    w.text(&format!(" {word}{bounds} "));
                    w.node(*b, level::PREFIX, below);
                });
            }
            Expr::If(condition, a, b) if a == b && self.is_full(*condition) => self.window(*a, true, below),
            Expr::If(condition, a, b) => self.around(level::IMPLIES, least, |w| {
                for (word, id) in [("if ", condition), (" then ", a), (" else ", b)] {
                    w.text(word);
                    w.node(*id, level::IMPLIES, below);
                }
            }),
            Expr::Unary(UnaryOp::Negate, a) => self.around(level::NEGATE, least, |w| {
                w.text("-");
                w.node(*a, level::NEGATE, below);
            }),
            // Conversions of types and of logics have no text.
            Expr::ToFloat(a) | Expr::Definitely(a) => self.node(*a, least, below),
            Expr::Unary(UnaryOp::Abs, a) => self.call("abs", &[*a], below),
            Expr::Binary(BinaryOp::Min, a, b) => self.call("min", &[*a, *b], below),
            Expr::Binary(BinaryOp::Max, a, b) => self.call("max", &[*a, *b], below),
            Expr::StartsWith(a, b) => self.call("starts_with", &[*a, *b], below),
            Expr::Call(function, a, b) => {
                let arguments: Vec<ExprId> = [Some(*a), *b].into_iter().flatten().collect();
                self.call(function.name(), &arguments, below);
            }
            Expr::Prev(a) => self.call("prev", &[*a], below),
            Expr::Window { .. } => self.window(id, false, below),
            // An ambiguity has no text in the language.
            Expr::Ambiguous(_) => self.around(level::IMPLIES, least, |w| {
                let words = w.leaf(node, id);
                w.text(&words);
            }),
            leaf => {
                let leaf = self.leaf(leaf, id);
                self.text(&leaf);
            }
        }
    }

    /// Writes the pairs of an atom.
    fn atom(&mut self, atom: &Atom<'_>, depth: u32) {
        let topic = format!("{}{{", self.topic(atom.topic));
        self.text(&topic);
        for (i, pair) in atom.pairs.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            let (path, condition) = match pair {
                Pair::Bind(path, variable) => {
                    let pair = format!("{}: {}", path_text(path), self.variable(*variable));
                    self.text(&pair);
                    continue;
                }
                Pair::Where(path, condition) => (path_text(path), &self.spec.nodes[condition.index()]),
            };
            match condition {
                Expr::Compare(comparison, _, value) => {
                    // Behind a colon a name would be bound.
                    let is_literal = matches!(self.spec.nodes[value.index()], Expr::Literal(_));
                    match comparison {
                        Comparison::Equal if is_literal => self.text(&format!("{path}: ")),
                        _ => self.text(&format!("{path} {} ", comparison.as_str())),
                    }
                    self.node(*value, level::ADD, depth);
                }
                Expr::Not(_) => self.text(&format!("not {path}")),
                _ => self.text(&path),
            }
        }
        self.text("}");
    }

    /// Whether a condition is that of `over full`: known once a window is full.
    fn is_full(&self, condition: ExprId) -> bool {
        match &self.spec.nodes[condition.index()] {
            Expr::Or(full, unknown) => {
                matches!(self.spec.nodes[full.index()], Expr::Once(..)) && self.spec.is_unknown(*unknown)
            }
            _ => false,
        }
    }

    /// Writes a measurement over a window.
    fn window(&mut self, id: ExprId, full: bool, depth: u32) {
        let node = &self.spec.nodes[id.index()];
        let Expr::Window { aggregate, over, operand, .. } = node else { return self.node(id, 0, depth) };
        let name = aggregate.name();
        match (operand, aggregate.percentage()) {
            (Some(operand), Some(percentage)) => {
                self.text("percentile(");
                self.node(*operand, 0, depth);
                self.text(&format!(", {percentage})"));
            }
            (Some(operand), None) => self.call(name, &[*operand], depth),
            (None, _) => self.samples(name, node),
        }
        let full = if full { "full " } else { "" };
        let over = bound(*over, self.property.time);
        self.text(&format!(" over {full}{over}"));
    }

    fn samples(&mut self, name: &str, window: &Expr) {
        if let Expr::Window { topics, .. } = window {
            let topics: Vec<&str> = topics.iter().map(|topic| self.topic(*topic)).collect();
            self.text(&format!("{name}({})", topics.join(", ")));
        }
    }

    fn leaf(&self, node: &Expr, id: ExprId) -> String {
        let field = |topic: &TopicId, path: &Path| field(self.spec, *topic, path);
        match node {
            Expr::Literal(value) => value_text(value),
            Expr::Field { topic, path, .. } => field(topic, path),
            Expr::Length { topic, path, .. } => format!("len({})", field(topic, path)),
            Expr::Number { topic, path } => format!("number({})", field(topic, path)),
            Expr::IsNan { topic, path } => format!("is_nan({})", field(topic, path)),
            Expr::Carried { topic, path } if self.spec.events_of(*topic).is_some() => field(topic, path),
            Expr::Carried { topic, path } => format!("carried({})", field(topic, path)),
            Expr::Elements { topic, path, quantifier, conditions } => {
                let element = self.spec.places.element(id);
                elements(self.spec, *topic, path, (*quantifier, element), conditions)
            }
            Expr::On(topic) if self.spec.events_of(*topic).is_some() => {
                format!("an event of {}", self.topic(*topic))
            }
            Expr::On(topic) => format!("on({})", self.topic(*topic)),
            Expr::Age(topic) => format!("age({})", self.topic(*topic)),
            Expr::Latency(topic) => format!("latency({})", self.topic(*topic)),
            Expr::Jitter(topic) => format!("jitter({})", self.topic(*topic)),
            Expr::Chain(chain, measure) => {
                let name = self.spec.chains.get(chain.0 as usize).map_or("?", |chain| &chain.name);
                format!("{}({name})", format!("{measure:?}").to_lowercase())
            }
            Expr::InState(machine, states) => match self.spec.machines.get(machine.0 as usize) {
                Some(machine) => {
                    let name = |i: &u32| machine.states.get(*i as usize).map_or("?", |s| &s.name);
                    let states: Vec<&str> = states.iter().map(name).collect();
                    format!("in({}, {})", machine.name, states.join(", "))
                }
                None => "?".to_owned(),
            },
            Expr::MachineVariable(machine, variable, _) => {
                let machine = self.spec.machines.get(machine.0 as usize);
                let variable = machine.and_then(|m| m.variables.get(*variable as usize));
                variable.map_or_else(|| "?".to_owned(), |variable| variable.name.clone())
            }
            Expr::Key(parameter, _) => {
                let slice = self.property.slice.and_then(|slice| self.spec.slices.get(slice.0 as usize));
                let key = slice.and_then(|slice| slice.keys.get(*parameter as usize));
                key.map_or_else(|| format!("key{parameter}"), |key| key.name.clone())
            }
            Expr::Variable(variable, _) => self.variable(*variable),
            Expr::Bind { topic, fields } => {
                let field = |(path, variable, _): &(Path, VariableId, _)| {
                    format!("{}: {}", path_text(path), self.variable(*variable))
                };
                let fields: Vec<String> = fields.iter().map(field).collect();
                format!("{}{{{}}}", self.topic(*topic), fields.join(", "))
            }
            Expr::Ambiguous(machine) => {
                let name = self.spec.machines.get(machine.0 as usize).map_or("?", |machine| &machine.name);
                format!("{name} is ambiguous")
            }
            // Nodes without a text in the language.
            _ => self.spec.print(id).to_string(),
        }
    }

    fn call(&mut self, name: &str, operands: &[ExprId], depth: u32) {
        self.text(&format!("{name}("));
        for (i, operand) in operands.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            self.node(*operand, 0, depth);
        }
        self.text(")");
    }

    fn around(&mut self, level: u8, least: u8, inner: impl FnOnce(&mut Self)) {
        let parentheses = level < least;
        self.text(if parentheses { "(" } else { "" });
        inner(self);
        self.text(if parentheses { ")" } else { "" });
    }

    /// The name of a variable as it was written, or one by its number.
    fn variable(&self, variable: VariableId) -> String {
        let written = self.spec.places.variable(variable);
        written.map_or_else(|| format!("x{}", variable.0), str::to_owned)
    }

    fn bounds(&self, bounds: Bounds) -> String {
        let text = |b| bound(b, self.property.time);
        match bounds {
            Bounds::ALL => String::new(),
            Bounds { lower, upper: None } => format!("[{},]", text(lower)),
            Bounds { lower, upper: Some(upper) } => format!("[{}, {}]", text(lower), text(upper)),
        }
    }
}

/// A bound in the unit of a time model: a number of steps, or a duration.
pub fn bound(bound: u64, model: TimeModel) -> String {
    match model {
        TimeModel::Steps => bound.to_string(),
        TimeModel::Points | TimeModel::Dense if bound == 0 => "0".to_owned(),
        TimeModel::Points | TimeModel::Dense => duration(i64::try_from(bound).unwrap_or(i64::MAX)),
    }
}

/// A duration as a whole number of the largest possible unit, up to seconds.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let fitting = units.into_iter().find(|(unit, _)| nanos % unit == 0);
    fitting.map_or_else(|| format!("{nanos} ns"), |(unit, name)| format!("{} {name}", nanos / unit))
}

/// A value as it is written in a specification.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Time(ns) => Timestamp::from_nanos(*ns).to_string() + " s",
        Value::Duration(ns) => duration(*ns),
        Value::String(text) => quoted(text),
    }
}

/// Whether a text is a word of the language, so that it stands without quotes behind a point.
pub(crate) fn is_word(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || c == '_')
}

/// A text of the language in its quotes. Its escapes are not those of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Conditions on the elements of an array, with the name of an element; without one it is called `x`.
pub fn elements(
    spec: &Spec,
    topic: TopicId,
    path: &Path,
    (quantifier, element): (Quantifier, Option<&str>),
    conditions: &[Condition],
) -> String {
    let array = field(spec, topic, path);
    if quantifier.is_measure() {
        return format!("{}({array})", quantifier.as_str());
    }
    let element = element.unwrap_or("x");
    let all_of = |conditions: &[Condition]| {
        conditions
            .iter()
            .map(|condition| condition_text(condition, element))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    let alternatives: Vec<String> =
        conditions.chunk_by(|one, next| one.alternative == next.alternative).map(all_of).collect();
    let conditions = if alternatives.is_empty() { "true".to_owned() } else { alternatives.join(" or ") };
    format!("({} {element} in {array}: {conditions})", quantifier.as_str())
}

/// The text of the element that decides conditions on an array, or that is the least or the greatest.
pub fn element(
    spec: &Spec,
    topic: TopicId,
    path: &Path,
    (quantifier, element): (Quantifier, Option<&str>),
) -> String {
    let array = field(spec, topic, path);
    match quantifier.is_measure() {
        true => format!("element of {}({array})", quantifier.as_str()),
        false => format!("{} in {array}", element.unwrap_or("x")),
    }
}

/// A condition on an element of an array, which has this name.
fn condition_text(condition: &Condition, element: &str) -> String {
    let path = behind(&condition.path);
    match &condition.test {
        Test::Present => format!("{element}{path} is there"),
        Test::Equals(Value::Bool(true)) => format!("{element}{path}"),
        Test::Equals(Value::Bool(false)) => format!("not {element}{path}"),
        Test::Equals(value) => format!("{element}{path} == {}", value_text(value)),
        Test::OtherText(text) => {
            format!("{element}{path} != {}", value_text(&Value::String(text.clone())))
        }
        Test::Number(comparison, number) | Test::Integer(comparison, number) => {
            format!("{element}{path} {} {}", comparison.as_str(), value_text(&Value::Float(*number)))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn written_formulas_parse_to_equal_formulas() {
        let topics = "topic s { a: bool, b: bool, x: int, y: float, t: string } topic r { c: bool } \
                      topic l { n: [float], o: [{ on: bool, t: string, x: int }] } \
                      topic w { \"odd key\": bool, o: { \"ä-1\": [int] }, l: [{ \"odd key\": int, on: bool }] }";
        let spec = |formula: &str| {
            rondel_spec::parse(&format!("{topics} property p = {formula}")).spec.unwrap_or_default()
        };
        for formula in [
            "s.a -> s.b -> r.c",
            "(s.a -> s.b) -> r.c",
            "s.a and (s.b or r.c)",
            "not (s.a and s.b) or not s.a",
            "once[1, 3] s.x > 3 and previously s.a",
            "s.a since[0, 1500 ms] not s.b",
            "(s.a since s.b) since r.c",
            "historically[2 s,] (once s.a)",
            "changed(s.x) -> rising(s.a) or falling(r.c)",
            "s.x * (s.x + 2) - -s.x >= s.x - (s.x - 1)",
            "abs(s.y) < 0.5 and min(s.y, 2) > prev(s.y)",
            "if s.a then s.b else s.x % 2 == 0",
            "s.t == \"a\\nb\" or starts_with(s.t, \"c\")",
            "len(s.t) + 1 > s.x",
            "on(r) -> count(s.a) over 3 s > 2",
            "age(s) <= 200 ms",
            "s.a -> eventually[0, 2 s] r.c",
            "s.a until[1 s, 2 s] r.c",
            "(any e in l.n: e < 0.5 or e in [2, 3)) -> s.a",
            "all e in l.o: not (e.on and e.t == \"a\\n\") and e.x != 2 or e.on -> e.t == \"b\"",
            "(count e in l.o: e.x in (1, 2) or not e.on) > 2",
            "s{x: 1, y > 2.5, a, not b} -> once[0, 2 s] r{c}",
            "s{t != \"a\"} and r.c and s{x: 2}",
            "not (s{x < 3} and s.a) or (r.c and (s{y: 2, x >= 1} or s.b))",
            "not (exists i. s{x: i, t: \"a\", y < 3} and r.c and s{x: i, a})",
            "not (exists i. s{x: i} and s{x == i, y: 3})",
            "mean(s.x) over full 2 s > 1",
            "s.t == \"\\u{1}\\t\\u{8}\\\\\"",
            "w.\"odd key\" and w{\"odd key\", o.\"ä-1\"[2]: 3} -> not (exists i. w{\"odd key\": i})",
            "(any e in w.l: e.\"odd key\" > 2 and not e.on)",
            "(count(r) over full 2 s > 1 or percentile(s.y, 95) over full 2 s > 3) -> count(s.a) over 3 s > 2",
        ] {
            let before = spec(formula);
            assert!(!before.properties.is_empty(), "{formula}");
            let property = &before.properties[0];
            let text = written(&before, property.formula, property);
            let after = spec(&text);
            assert!(!after.properties.is_empty(), "{formula} is written as {text}");
            assert_eq!(
                before.print(property.formula).to_string(),
                after.print(after.properties[0].formula).to_string(),
                "{formula} is written as {text}"
            );
        }
    }

    #[test]
    fn depth_has_an_end() {
        let mut formula = "s.a".to_owned();
        for _ in 0..60 {
            formula = format!("previously not ({formula})");
        }
        let spec = rondel_spec::parse(&format!("topic s {{ a: bool }} property p = {formula}")).spec.unwrap();
        let text = written(&spec, spec.properties[0].formula, &spec.properties[0]);
        assert!(text.contains('…'), "{text}");
    }

    #[test]
    fn parameters_have_their_names() {
        let text = "topic req { id: string } property p for each who in req.id = once req.id == who";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let property = &spec.properties[0];
        assert_eq!(written(&spec, property.formula, property), "once req.id == who");
    }
}
