//! Advice for names that mean nothing where they are written.

use rondel_event::Segment;

use super::Checker;
use crate::diagnostic::Span;
use crate::suggest::ending;
use crate::syntax::ast::{Body, Infix, NodeId, NodeKind};

impl Checker<'_> {
    /// Returns advice for an unknown name that is compared with a field.
    pub(super) fn compared_advice(&self, node: NodeId, word: &str) -> Option<String> {
        Some(match self.compared_with(node)? {
            NodeKind::AtomField(..) => {
                let quantifier = if self.is_in_implication(node) { "forall" } else { "exists" };
                format!(
                    "write `{quantifier} {word}. …` before the formula for a variable, `\"{word}\"` for a string"
                )
            }
            _ => format!("write `\"{word}\"` for a string, or declare a constant with `const {word} = 2`"),
        })
    }

    /// Returns whether the formula around a node is an implication.
    fn is_in_implication(&self, node: NodeId) -> bool {
        let ast = self.ast;
        let bodies = ast.properties.iter().map(|property| property.body);
        let bodies = bodies.chain(ast.bindings.iter().map(|binding| binding.body));
        let mut bodies = bodies.chain(ast.asserts.iter().map(|assert| assert.body));
        let root = bodies.find(|body: &Body| body.nodes().contains(&node)).and_then(|body| body.root);
        root.is_some_and(|root| matches!(ast.nodes[root].kind, NodeKind::Binary(Infix::Implies, ..)))
    }

    /// Returns advice for the name of a constant of a message type, of the topic that it is compared with first.
    pub(super) fn constant_of_type(
        &self,
        word: &str,
        compared: Option<(&str, Option<&str>)>,
    ) -> Option<String> {
        let (topic, field) = compared.map_or((None, None), |(topic, field)| (Some(topic), field));
        let owners_in = |is_meant: &dyn Fn(&str) -> bool| {
            let topics = self.ast.topics.iter().filter(|topic| is_meant(&topic.name.text));
            let constants = topics.filter_map(|topic| topic.definition.as_ref()).flat_map(|of| &of.constants);
            // The whole name, or its end.
            let names = || constants.clone().map(|constant| constant.name.as_str());
            let word = match names().any(|name| name.eq_ignore_ascii_case(word)) {
                true => word,
                false => ending(word, field, names()).unwrap_or(word),
            };
            let mut owners: Vec<String> = Vec::new();
            for constant in constants.filter(|constant| constant.name.eq_ignore_ascii_case(word)) {
                let written = format!("`{}.{}`", constant.owner, constant.name);
                if !owners.contains(&written) {
                    owners.push(written);
                }
            }
            owners
        };
        let mut owners = topic.map(|topic| owners_in(&|name| name == topic)).unwrap_or_default();
        if owners.is_empty() {
            owners = owners_in(&|_| true);
        }
        owners.truncate(3);
        (!owners.is_empty()).then(|| format!("write {}, a constant of the message type", owners.join(" or ")))
    }

    /// Returns the name of the topic with which a node is compared, and that of its field.
    pub(super) fn compared_field(&self, node: NodeId) -> Option<(&str, Option<&str>)> {
        let ast = self.ast;
        let other = ast.nodes.iter().skip(node).take(3).find_map(|parent| match &parent.kind {
            NodeKind::Binary(Infix::Compare(_), left, right) if *left == node => {
                Some(&ast.nodes[*right].kind)
            }
            NodeKind::Binary(Infix::Compare(_), left, right) if *right == node => {
                Some(&ast.nodes[*left].kind)
            }
            NodeKind::Elements(of) if of.tests.iter().any(|test| test.value == node) => Some(&parent.kind),
            _ => None,
        })?;
        match other {
            NodeKind::Path(name, steps) => {
                let last = steps.iter().rev().find_map(|(step, _)| match step {
                    Segment::Key(name) => Some(&**name),
                    _ => None,
                });
                Some((&name.text, last))
            }
            NodeKind::AtomField(name, _) => Some((&name.text, None)),
            NodeKind::Elements(of) => Some((&of.array.text, None)),
            _ => None,
        }
    }

    /// Returns the left operand, if the node is the right operand of a comparison.
    fn compared_with(&self, node: NodeId) -> Option<&NodeKind> {
        match &self.ast.nodes.get(node + 1)?.kind {
            NodeKind::Binary(Infix::Compare(_), left, right) if *right == node => {
                Some(&self.ast.nodes[*left].kind)
            }
            _ => None,
        }
    }

    /// Returns advice for a parameter or a variable of another declaration.
    pub(super) fn local_of_that_name(&self, word: &str) -> Option<String> {
        let ast = self.ast;
        if let Some(help) = self.machine_of_that_name(word) {
            return Some(help);
        }
        if ast.properties.iter().any(|property| property.name.text == word) {
            return Some(format!(
                "'{word}' is a property, which only an `assert` can name, and alone: name its formula with `let`"
            ));
        }
        let divided = ast.properties.iter().map(|p| (&p.name, p.each));
        let mut divided = divided.chain(ast.machines.iter().map(|m| (&m.name, m.each)));
        let owner = divided.find(|(_, each)| {
            let parameters =
                each.and_then(|each| ast.for_eaches.get(each)).map_or(&[][..], |each| &each.parameters);
            parameters.iter().any(|parameter| parameter.name.text == word)
        });
        if let Some((owner, _)) = owner {
            return Some(format!("'{word}' is a parameter of '{}' and visible only there", owner.text));
        }
        let owner = ast.machines.iter().find(|m| m.variables.iter().any(|v| v.name.text == word))?;
        Some(format!("'{word}' is a variable of machine '{}' and visible only there", owner.name.text))
    }

    /// Returns advice for the name of a machine or a state.
    pub(super) fn machine_of_that_name(&self, word: &str) -> Option<String> {
        let mut machines = self.ast.machines.iter();
        let has_state = |m: &crate::syntax::ast::Machine| {
            m.transitions
                .iter()
                .any(|transition| [&transition.from, &transition.to].iter().any(|state| state.text == word))
        };
        let machine = machines.find(|machine| machine.name.text == word || has_state(machine))?;
        let name = &machine.name.text;
        let first = machine.transitions.first().map_or("a", |transition| transition.from.text.as_str());
        Some(match word == name {
            true => format!(
                "'{name}' is a machine: write `in({name}, {first})` to test whether it is in state '{first}'"
            ),
            false => {
                format!("'{word}' is a state of machine '{name}': write `in({name}, {word})` to test it")
            }
        })
    }

    /// Returns advice for a field without its topic.
    pub(super) fn field_of_that_name(&self, word: &str) -> Option<String> {
        let topic = self.ast.topics.iter().find(|topic| {
            topic.schema.as_ref().is_some_and(|schema| schema.fields.iter().any(|(name, _)| name == word))
        })?;
        Some(format!(
            "topic '{}' has a field of this name: write `{}.{word}`",
            topic.name.text, topic.name.text
        ))
    }

    /// Returns advice for an array where a single value is expected: in a window, and as a parameter.
    pub(super) fn array_advice(&self, node: NodeId) -> Option<String> {
        let ast = self.ast;
        let part = self.span(node);
        let mut parameters = ast.for_eaches.iter().flat_map(|each| &each.parameters);
        if let Some(parameter) = parameters.find(|parameter| parameter.fields.contains(&node)) {
            let (name, array) = (&parameter.name.text, part.of(self.text));
            return Some(format!(
                "a parameter is a single value; write `all {name} in {array}: …` in the formula for all elements"
            ));
        }
        let window = ast.nodes.iter().skip(node).take(2).find_map(|parent| match &parent.kind {
            NodeKind::Window { aggregate, operand, .. } if *operand == node => {
                Some((aggregate.name(), parent.span))
            }
            _ => None,
        });
        let (word, whole) = window.filter(|(word, _)| matches!(*word, "min" | "max" | "sum" | "mean"))?;
        if part.start < whole.start || whole.end < part.end {
            return None;
        }
        let [before, after] = [Span::new(whole.start, part.start), Span::new(part.end, whole.end)];
        let [before, part, after] = [before, part, after].map(|span| span.of(self.text));
        Some(format!("write `{before}{word}({part}){after}`"))
    }
}
