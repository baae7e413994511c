//! Parameters of definitions where they are used: as topics, values, variables and bounds.

use rondel_event::Value;

use super::ast::{BoundKind, Name, NodeId, NodeKind, Prefix};
use super::expansion::Argument;
use super::parser::{Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::modules::Role;

impl Parser<'_> {
    /// Notes where the body of a definition names a parameter.
    pub(super) fn note_parameter(&mut self, name: &str, span: Span) {
        if self.declares()
            && self.expansion.arguments.contains_key(name)
            && let Some(own) = self.ast.definitions.last()
        {
            let name = Name { text: name.to_owned(), span };
            self.ast.parameter_uses.push((own.name.text.clone(), name));
        }
    }

    /// Returns the topic that a name stands for: the argument, if it is a parameter.
    pub(super) fn topic_name(&mut self, name: Name) -> Name {
        self.note_parameter(&name.text, name.span);
        match self.expansion.arguments.get(&name.text) {
            Some(Argument::Topic(topic)) => topic.clone(),
            Some(Argument::Object(object)) => {
                let topic = object.topic.clone();
                if self.declares() {
                    let message = format!("parameter '{}' is an object, of which fields are read", name.text);
                    let help = format!("declare it as a topic: `{}: topic`", name.text);
                    self.report(Diagnostic::new(Code::ArgumentType, name.span, message).help(help));
                }
                topic
            }
            _ => self.full(name, Role::Any),
        }
    }

    /// Returns the node of a parameter that is used as a value; none for other names.
    pub(super) fn parameter_value(&mut self, name: &Name) -> Option<NodeId> {
        let argument = self.expansion.arguments.get(&name.text)?.clone();
        self.note_parameter(&name.text, name.span);
        match argument {
            Argument::Value(node) => Some(self.node(NodeKind::Same(node), name.span)),
            Argument::Unknown => Some(self.node(NodeKind::Invalid, name.span)),
            Argument::Topic(_) | Argument::Object(_) => None,
            Argument::Bound(_, declared) => {
                if self.declares() {
                    let message =
                        format!("parameter '{}' is a bound, and stands only where bounds do", name.text);
                    let diagnostic = Diagnostic::new(Code::ArgumentType, name.span, message);
                    let diagnostic = diagnostic.label(declared, "declared here");
                    self.report(diagnostic.help("for a value, declare it as `duration`, `int` or `float`"));
                }
                Some(self.node(NodeKind::Invalid, name.span))
            }
        }
    }

    /// Returns the quantifier variable that a name stands for in an atom: one that is visible here, or the argument of a
    /// parameter.
    pub(super) fn bound_variable(&mut self, name: &Name) -> Option<usize> {
        if let Some(local) = self.variable(&name.text) {
            return Some(local);
        }
        let Some(Argument::Value(node)) = self.expansion.arguments.get(&name.text) else { return None };
        let NodeKind::Variable(local) = self.ast.nodes[self.ast.given(*node)].kind else { return None };
        Some(local)
    }

    /// Returns the bound that a parameter stands for: a literal, or the name of a constant.
    pub(super) fn parameter_bound(&mut self, name: &str, span: Span) -> Parsed<Option<(BoundKind, Span)>> {
        self.note_parameter(name, span);
        let Some(argument) = self.expansion.arguments.get(name) else { return Ok(None) };
        let node = match argument {
            Argument::Value(node) => self.ast.given(*node),
            Argument::Unknown => return Ok(Some((BoundKind::Whole(1), span))),
            Argument::Bound(kind, at) => return Ok(Some((kind.clone(), *at))),
            Argument::Topic(_) | Argument::Object(_) => return Ok(None),
        };
        let at = self.ast.nodes[node].span;
        let kind = match &self.ast.nodes[node].kind {
            NodeKind::Literal(Value::Duration(nanos)) if *nanos >= 0 => BoundKind::Duration(*nanos),
            NodeKind::Literal(Value::Int(steps)) if *steps >= 0 => BoundKind::Whole(steps.unsigned_abs()),
            NodeKind::Path(name, steps) if steps.is_empty() => BoundKind::Name(name.text.clone()),
            NodeKind::Invalid => return Err(Reported),
            NodeKind::Unary(Prefix::Negate, operand)
                if matches!(self.ast.nodes[*operand].kind, NodeKind::Literal(_)) =>
            {
                let message = format!("parameter '{name}' is a bound, so its argument must not be negative");
                let diagnostic =
                    Diagnostic::new(Code::ArgumentType, at, message).label(span, "used as a bound here");
                return Err(self.report(
                    diagnostic.help("write a non-negative number of steps, or a duration such as `200 ms`"),
                ));
            }
            _ => {
                let message = format!("parameter '{name}' is a bound, so its argument must be a constant");
                let diagnostic =
                    Diagnostic::new(Code::ArgumentType, at, message).label(span, "used as a bound here");
                return Err(self.report(diagnostic.help(
                    "write a duration such as `200 ms`, a number of steps, or the name of a `const`",
                )));
            }
        };
        Ok(Some((kind, at)))
    }
}
