//! Attributes that steady the verdict of a property: each stands for a formula around that of the property.
//!
//! | attribute | the formula `p` of the property becomes |
//! |---|---|
//! | `@warmup(d)` | `once[d,] true -> p` |
//! | `@while(q)` | `q -> p`; with `@warmup(d)`, `once[d,] true and q -> p` |
//! | `@hold(d)` | `historically[0,d] p`, of what the two above make of it |
//! | `@latch` | `historically p`, of what the others make of it |
//!
//! Their arguments are parsed after the formula, so that they are nodes of its body.

use rondel_event::Value;

use super::ast::{Attribute, BoundKind, BoundsSyntax, Infix, NodeId, NodeKind, Prefix};
use super::parser::{Parsed, Parser, Reported};
use crate::attributes::attribute_forms;
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;

/// The attributes, and whether they take an argument.
pub(crate) const STEADY: [(&str, bool); 4] =
    [("warmup", true), ("while", true), ("hold", true), ("latch", false)];

/// The attribute of these that takes a condition; others take a duration or a number of steps.
pub(super) const CONDITION: &str = "while";

impl Parser<'_> {
    /// Skips the argument of such an attribute, behind its opening parenthesis; returns its text.
    pub(super) fn steady_argument(&mut self) -> String {
        let from = self.place();
        let mut open = 0_usize;
        while !self.at_end() && !self.at_declaration() {
            match self.symbol(0) {
                ")" if open == 0 => break,
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
        self.written(from)
    }

    /// Adds what the attributes of a property make of its formula.
    pub(super) fn steadied(&mut self, attributes: &[Attribute], root: NodeId) -> Parsed<NodeId> {
        let end = self.place();
        let out = self.steady(attributes, root);
        self.go_to(end);
        out
    }

    fn steady(&mut self, attributes: &[Attribute], root: NodeId) -> Parsed<NodeId> {
        let find = |name: &str, argument: bool| {
            let mut of_this = attributes.iter().filter(|attribute| attribute.name.text == name);
            of_this.find(|attribute| attribute.argument.is_some() == argument)
        };
        let span = self.ast.nodes[root].span;
        let mut guard = None;
        if let Some(attribute) = find("warmup", true) {
            let bounds = self.lasting(attribute, true)?;
            let now = self.node(NodeKind::Literal(Value::Bool(true)), attribute.span);
            guard = Some(self.node(NodeKind::Unary(Prefix::Once(bounds), now), attribute.span));
        }
        if let Some(attribute) = find("while", true) {
            self.go_to(attribute.at);
            let condition = self.expression()?;
            self.closed("an operator or `)`")?;
            guard = Some(match guard {
                Some(warm) => self.node(NodeKind::Binary(Infix::And, warm, condition), attribute.span),
                None => condition,
            });
        }
        let mut root = match guard {
            Some(guard) => self.node(NodeKind::Binary(Infix::Implies, guard, root), span),
            None => root,
        };
        let latch = find("latch", false);
        if let Some(attribute) = find("hold", true) {
            if let Some(latch) = latch {
                let message = "`@hold` has no effect beside `@latch`, which holds a violation for ever";
                let diagnostic = Diagnostic::new(Code::InvalidAttribute, attribute.span, message);
                let diagnostic = diagnostic.label(latch.span, "for ever here");
                return Err(self.report(diagnostic.help("remove one of them")));
            }
            let bounds = self.lasting(attribute, false)?;
            root = self.node(NodeKind::Unary(Prefix::Historically(bounds), root), span);
        }
        if let Some(attribute) = latch {
            let bounds = BoundsSyntax { lower: None, upper: None, span: attribute.span };
            root = self.node(NodeKind::Unary(Prefix::Historically(Box::new(bounds)), root), span);
        }
        Ok(root)
    }

    /// Parses a duration or a number of steps, as the lower or the upper bound of an operator.
    fn lasting(&mut self, attribute: &Attribute, lower: bool) -> Parsed<Box<BoundsSyntax>> {
        self.go_to(attribute.at);
        let is_formula = *self.peek() == TokenKind::Word && self.symbol(1) != ")";
        let bound = if is_formula { None } else { Some(self.bound()?) };
        let Some(bound) = bound.filter(|_| self.symbol(0) == ")") else {
            return Err(self.no_length(attribute));
        };
        let span = bound.span;
        if matches!(bound.kind, BoundKind::Whole(0) | BoundKind::Duration(0)) {
            let message = format!("`{}` has no effect", attribute.span.of(self.text));
            let diagnostic = Diagnostic::new(Code::SuspiciousNumber, attribute.span, message);
            self.report(diagnostic.help("remove it, or write a duration above zero"));
        }
        let (lower, upper) = if lower { (Some(bound), None) } else { (None, Some(bound)) };
        Ok(Box::new(BoundsSyntax { lower, upper, span }))
    }

    /// Reports an argument that is no constant duration.
    fn no_length(&mut self, attribute: &Attribute) -> Reported {
        let name = &attribute.name.text;
        let span = attribute.argument.unwrap_or(attribute.span);
        let message =
            format!("`@{name}` takes a constant duration or number of steps, found `{}`", span.of(self.text));
        let diagnostic = Diagnostic::new(Code::InvalidAttribute, span, message);
        let form =
            attribute_forms().find(|(known, _)| known == name).map(|(_, form)| form).unwrap_or_default();
        self.report(diagnostic.help(format!("write {form}")))
    }

    fn closed(&mut self, what: &str) -> Parsed<()> {
        if self.symbol(0) == ")" { Ok(()) } else { Err(self.expected(what)) }
    }
}
