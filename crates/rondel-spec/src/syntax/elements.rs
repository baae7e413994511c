//! Parser of conditions on the elements of an array: `any r in scan.ranges: r < 0.2`.
//!
//! They are tested while a message is decoded, without keeping the array. So a condition compares an element, or a field
//! of it, with a constant, and several are joined by `and`.

use rondel_event::{Comparison, Quantifier, Segment, Value};

use super::ast::{ElementTest, ElementsSyntax, Name, NodeId, NodeKind};
use super::expression::level;
use super::parser::{INFIX, Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};

/// A use, for advice.
const EXAMPLE: &str =
    "write `any r in scan.ranges: r < 0.2`, or `all s in status.parts: s.level < 2 and s.on`";

impl Parser<'_> {
    /// Returns whether conditions on elements start here.
    pub(super) fn at_elements(&self) -> bool {
        matches!(self.word(0), "any" | "all" | "count") && !self.word(1).is_empty() && self.word(2) == "in"
    }

    /// Parses conditions on elements.
    pub(super) fn elements(&mut self) -> Parsed<NodeId> {
        let (start, word) = (self.span(), self.word(0));
        let quantifier = match word {
            "any" => Quantifier::Any,
            "all" => Quantifier::All,
            _ => Quantifier::Count,
        };
        self.advance();
        let element = self.name("an element")?;
        self.advance();
        let place = self.span();
        if self.word(0).is_empty() {
            let reported = self.expected("an array");
            self.help_last(EXAMPLE);
            return Err(reported);
        }
        let array = Name { text: self.word(0).to_owned(), span: place };
        self.advance();
        let mut steps = Vec::new();
        self.steps(&array, &mut steps)?;
        let array = self.topic_name(array);
        let place = place.to(self.last_span());
        if !self.eat(":") {
            let reported = self.expected("`:` and a condition on each element");
            self.help_last(EXAMPLE);
            return Err(reported);
        }
        let mut tests = Vec::new();
        loop {
            self.element_test(&element, &mut tests)?;
            if self.word(0) != "and" && self.symbol(0) != "&&" {
                break;
            }
            self.advance();
        }
        let span = start.to(self.last_span());
        let follows = [self.word(0), self.symbol(0)].into_iter().find(|next| {
            INFIX[..4].contains(next)
                || matches!(*next, "||" | "->" | "<->" | "+" | "-" | "*" | "/" | "%")
                || matches!(*next, "<" | "<=" | ">" | ">=" | "==" | "!=")
        });
        if let Some(operator) = follows {
            let message = format!("`{word}` before `{operator}` needs parentheses");
            let diagnostic = Diagnostic::new(Code::NeedsParentheses, span, message);
            return Err(
                self.report(diagnostic.help(format!("write `({}) {operator} …`", span.of(self.text))))
            );
        }
        let syntax = ElementsSyntax { quantifier, array, steps, place, tests };
        Ok(self.node(NodeKind::Elements(Box::new(syntax)), span))
    }

    /// Parses one condition: a comparison with a constant, in either order, an interval, or a truth.
    fn element_test(&mut self, element: &Name, tests: &mut Vec<ElementTest>) -> Parsed<()> {
        let start = self.span();
        let negated = self.word(0) == "not" || self.symbol(0) == "!";
        if negated {
            self.advance();
        }
        if self.word(0) != element.text {
            if negated {
                return Err(self.not_about_element(element, start));
            }
            let value = self.element_constant(element, start)?;
            let Some(comparison) = self.comparison() else {
                return Err(self.not_about_element(element, start));
            };
            self.advance();
            if self.word(0) != element.text {
                return Err(self.not_about_element(element, start));
            }
            let (steps, span) = self.element_path()?;
            let comparison = match comparison {
                Comparison::Less => Comparison::Greater,
                Comparison::LessOrEqual => Comparison::GreaterOrEqual,
                Comparison::Greater => Comparison::Less,
                Comparison::GreaterOrEqual => Comparison::LessOrEqual,
                same => same,
            };
            tests.push(ElementTest { steps, span, comparison, value });
            return Ok(());
        }
        let (steps, span) = self.element_path()?;
        if let Some(comparison) = self.comparison() {
            if negated {
                let message = "`not` before a comparison of an element";
                let diagnostic = Diagnostic::new(Code::NotInThisVersion, start, message);
                return Err(self.report(diagnostic.help("write the opposite comparison")));
            }
            self.advance();
            let value = self.element_constant(element, start)?;
            tests.push(ElementTest { steps, span, comparison, value });
        } else if self.word(0) == "in" && matches!(self.symbol(1), "[" | "(") && !negated {
            self.advance();
            let lower = if self.symbol(0) == "[" { Comparison::GreaterOrEqual } else { Comparison::Greater };
            self.advance();
            let low = self.element_constant(element, start)?;
            self.expect(",")?;
            let high = self.element_constant(element, start)?;
            let upper = if self.symbol(0) == "]" { Comparison::LessOrEqual } else { Comparison::Less };
            if !matches!(self.symbol(0), "]" | ")") {
                return Err(self.not_about_element(element, start));
            }
            self.advance();
            if (lower, upper) == (Comparison::Greater, Comparison::Less) {
                let message = "an element in a list of values";
                let diagnostic = Diagnostic::new(Code::NotInThisVersion, start.to(self.last_span()), message);
                return Err(self
                    .report(diagnostic.help(
                        "write one `any` or `all` for each value, or an interval such as `[20, 21]`",
                    )));
            }
            tests.push(ElementTest { steps: steps.clone(), span, comparison: lower, value: low });
            tests.push(ElementTest { steps, span, comparison: upper, value: high });
        } else {
            let value = self.node(NodeKind::Literal(Value::Bool(!negated)), span);
            tests.push(ElementTest { steps, span, comparison: Comparison::Equal, value });
        }
        Ok(())
    }

    /// Parses the name of the element and the steps to a field of it.
    fn element_path(&mut self) -> Parsed<(Vec<(Segment, Span)>, Span)> {
        let name = Name { text: self.word(0).to_owned(), span: self.span() };
        self.advance();
        let mut steps = Vec::new();
        self.steps(&name, &mut steps)?;
        Ok((steps, name.span.to(self.last_span())))
    }

    fn comparison(&self) -> Option<Comparison> {
        Some(match self.symbol(0) {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Parses what an element is compared with; whether it is a constant is seen later.
    fn element_constant(&mut self, element: &Name, start: Span) -> Parsed<NodeId> {
        let first = self.ast.nodes.len();
        let value = self.binary(level::SUM)?;
        let is_element =
            |kind: &NodeKind| matches!(kind, NodeKind::Path(name, _) if name.text == element.text);
        if self.ast.nodes[first..].iter().any(|node| is_element(&node.kind)) {
            self.silence(&(first..self.ast.nodes.len()).collect::<Vec<NodeId>>());
            return Err(self.not_about_element(element, start));
        }
        Ok(value)
    }

    fn not_about_element(&mut self, element: &Name, start: Span) -> Reported {
        let name = &element.text;
        let message = format!("a condition on '{name}' compares '{name}', or a field of it, with a constant");
        let span = start.to(self.last_span().max(start));
        let diagnostic = Diagnostic::new(Code::NotInThisVersion, span, message);
        self.report(diagnostic.label(element.span, "declared here").help(format!(
            "write `{name} < 0.2`, `{name}.level >= 2 and {name}.on`, `{name} in [1, 5]`; put what is not about \
             '{name}' outside of parentheses around the whole"
        )))
    }
}
