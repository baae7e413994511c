//! Nodes as s-expressions, for tests and debugging. There is no parser for this form.

use std::fmt::{self, Write};

use rondel_event::{Condition, Path, Test, TopicId, Value};

use crate::spec::{Bounds, Expr, ExprId, Spec, VariableId};

/// The maximum length of the text of a node. Shared operands are printed at each use, so the text can be much larger
/// than the graph.
const LIMIT: usize = 1 << 16;

/// A printable node; see [`Spec::print`].
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    spec: &'a Spec,
    id: ExprId,
}

impl Spec {
    /// Returns a node as text in prefix notation, truncated after 64 KiB.
    ///
    /// ```
    /// let spec = rondel_spec::parse_formula("previously (a and not b)").spec.unwrap();
    /// let formula = spec.properties[0].formula;
    /// assert_eq!(spec.print(formula).to_string(), "(previously (and trace.a (not trace.b)))");
    /// ```
    pub fn print(&self, id: ExprId) -> Printed<'_> {
        Printed { spec: self, id }
    }

    fn topic_name(&self, topic: TopicId) -> &str {
        self.topics.get(topic.index()).map_or("?", |topic| &topic.name)
    }

    fn path(&self, topic: TopicId, path: &Path) -> String {
        if let Some(event) = self.event_text(topic, path) {
            return event;
        }
        let dot = if path.to_string().starts_with('[') || path.0.is_empty() { "" } else { "." };
        format!("{}{dot}{path}", self.topic_name(topic))
    }

    /// Returns the operator of a node, or the whole node if it has no operands.
    fn head(&self, node: &Expr) -> String {
        let name = node.name();
        match node {
            Expr::Literal(value) => literal(value),
            Expr::Field { topic, path, .. } => self.path(*topic, path),
            Expr::Elements { topic, path, conditions, .. } => {
                format!("({name} {}{})", self.path(*topic, path), alternatives(conditions))
            }
            Expr::Window { aggregate, over, operand, topics } => {
                let topics: Vec<_> = topics.iter().map(|topic| self.topic_name(*topic)).collect();
                let name = match aggregate.percentage() {
                    Some(percentage) => format!("percentile {percentage}"),
                    None => aggregate.name().to_owned(),
                };
                match operand {
                    Some(_) => format!("{name} over {over} of {}", topics.join(",")),
                    None => format!("({name} over {over} of {})", topics.join(",")),
                }
            }
            Expr::Chain(chain, _) => {
                let chain = self.chains.get(chain.0 as usize).map_or("?", |chain| &chain.name);
                format!("({name} {chain})")
            }
            Expr::Key(n, _) => format!("key{n}"),
            Expr::Variable(VariableId(n), _) => format!("?{n}"),
            Expr::Bind { topic, fields } => {
                let topic = self.topic_name(*topic);
                let fields: Vec<_> = fields.iter().map(|(path, v, _)| format!("{path}: ?{}", v.0)).collect();
                format!("({name} {topic} {})", fields.join(" "))
            }
            Expr::Exists(VariableId(n), _) | Expr::ForAll(VariableId(n), _) => format!("{name} ?{n}"),
            Expr::InState(machine, states) => {
                let machine = self.machines.get(machine.0 as usize);
                let state = |i: &u32| {
                    machine.and_then(|m| m.states.get(*i as usize)).map_or("?", |state| &state.name)
                };
                let states: Vec<_> = states.iter().map(state).collect();
                format!("({name} {} {})", machine.map_or("?", |m| &m.name), states.join(" "))
            }
            Expr::Ambiguous(machine) => format!("({name} {})", machine.0),
            Expr::MachineVariable(machine, variable, _) => format!("({name} {} {variable})", machine.0),
            _ => match (node.field(), node.topic()) {
                (Some((topic, path, _)), _) => format!("({name} {})", self.path(topic, path)),
                (None, Some(topic)) => format!("({name} {})", self.topic_name(topic)),
                (None, None) => format!("{name}{}", bounds(node.bounds().unwrap_or(Bounds::ALL))),
            },
        }
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        // With a point, to distinguish 1.0 from an integer.
        Value::Float(x) => format!("{x:?}"),
        Value::Time(ns) => format!("{ns}ns"),
        Value::Duration(ns) => format!("(duration {ns})"),
        Value::String(text) => format!("{text:?}"),
    }
}

/// Conditions on an element: those of a single alternative, or `(or (and …) …)`.
fn alternatives(conditions: &[Condition]) -> String {
    let all_of = |conditions: &[Condition]| conditions.iter().map(condition).collect::<String>();
    let alternatives: Vec<_> = conditions.chunk_by(|one, next| one.alternative == next.alternative).collect();
    if alternatives.len() < 2 {
        return all_of(conditions);
    }
    let alternatives = alternatives.iter().map(|conditions| match conditions {
        [condition] => all_of(std::slice::from_ref(condition)),
        conditions => format!(" (and{})", all_of(conditions)),
    });
    format!(" (or{})", alternatives.collect::<String>())
}

fn condition(condition: &Condition) -> String {
    let path = &condition.path;
    match &condition.test {
        Test::Present => format!(" (present {path})"),
        Test::Equals(value) => format!(" (== {path} {})", literal(value)),
        Test::OtherText(text) => format!(" (!= {path} {text:?})"),
        Test::Number(comparison, number) | Test::Integer(comparison, number) => {
            format!(" ({} {path} {number:?})", comparison.as_str())
        }
    }
}

fn bounds(bounds: Bounds) -> String {
    match bounds {
        Bounds::ALL => String::new(),
        Bounds { lower, upper: None } => format!(" [{lower},]"),
        Bounds { lower, upper: Some(upper) } => format!(" [{lower},{upper}]"),
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        enum PrintItem {
            Node(ExprId),
            Text(&'static str),
        }
        let mut length = 0;
        // Not recursive: graphs can be deeper than the stack.
        let mut items = vec![PrintItem::Node(self.id)];
        while let Some(item) = items.pop() {
            let text = match item {
                PrintItem::Text(text) => text.to_owned(),
                PrintItem::Node(id) => {
                    let node = &self.spec.nodes[id.index()];
                    let operands: Vec<_> = node.operands().collect();
                    if operands.is_empty() {
                        self.spec.head(node)
                    } else {
                        items.push(PrintItem::Text(")"));
                        for operand in operands.into_iter().rev() {
                            items.push(PrintItem::Node(operand));
                            items.push(PrintItem::Text(" "));
                        }
                        format!("({}", self.spec.head(node))
                    }
                }
            };
            length += text.len();
            if length > LIMIT {
                return f.write_char('…');
            }
            f.write_str(&text)?;
        }
        Ok(())
    }
}
