//! Parser of operands: literals, names and conditions.

use rondel_event::Value;

use super::ast::{Name, Node, NodeId, NodeKind};
use super::object::Object;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::duration::unit;
use crate::lexer::TokenKind;
use crate::modules::Role;
use crate::suggest::hint;

impl Parser<'_> {
    /// Parses an operand without operators around it.
    pub(super) fn primary(&mut self) -> Parsed<NodeId> {
        match self.peek() {
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                if self.symbol(0) != ")" {
                    return Err(self.after_expression(&[], "an operator or `)`"));
                }
                self.advance();
                Ok(inner)
            }
            TokenKind::Word => self.worded(self.span()),
            TokenKind::Symbol(".") if self.ast.single && matches!(self.token(1).kind, TokenKind::Text(_)) => {
                self.quoted_field()
            }
            _ => self.literal(),
        }
    }

    /// Parses `."name"` of a single formula, a field whose name is no word.
    fn quoted_field(&mut self) -> Parsed<NodeId> {
        let start = self.span();
        self.advance();
        let TokenKind::Text(text) = self.peek().clone() else { return Err(self.no_operand()) };
        let name = Name { text, span: self.span() };
        self.advance();
        let mut steps = Vec::new();
        self.steps(&name, &mut steps)?;
        Ok(self.node(NodeKind::Path(name, steps), start.to(self.last_span())))
    }

    fn literal(&mut self) -> Parsed<NodeId> {
        let span = self.span();
        if let Some((nanos, span)) = self.quantity()? {
            return Ok(self.node(NodeKind::Literal(Value::Duration(nanos)), span));
        }
        let kind = match self.peek().clone() {
            TokenKind::Int(digits) => {
                let value =
                    i64::try_from(digits).map_err(|_| {
                        self.advance();
                        self.report(Diagnostic::new(Code::InvalidNumber, span, "number is too large").help(
                            "integers have 64 bits; write a larger number as a float, such as `1.0e30`",
                        ))
                    })?;
                NodeKind::Literal(Value::Int(value))
            }
            TokenKind::Float(value) => NodeKind::Literal(Value::Float(value)),
            TokenKind::Text(text) => NodeKind::Literal(Value::String(text.into())),
            TokenKind::Rye { topic, body } => {
                let topic = topic
                    .map(|span| self.full(Name { text: span.of(self.text).to_owned(), span }, Role::Value));
                NodeKind::Rye { topic, body }
            }
            _ => return Err(self.no_operand()),
        };
        self.advance();
        Ok(self.node(kind, span))
    }

    /// Reports a missing operand, with advice for operators of other languages.
    fn no_operand(&mut self) -> Reported {
        let found = match (self.symbol(0), self.symbol(1)) {
            ("[", "]") => "[]",
            ("", _) => self.word(0),
            (symbol, _) => symbol,
        };
        let before = self.last_span();
        let behind = if before.end == self.span().start { before.of(self.text) } else { "" };
        let help = match (behind, found) {
            ("/", "*") => Some("comments start with `#` or `//` and end with the line"),
            ("-", "->") => Some("write `->`"),
            ("*", "*") => Some("write a power as `pow(x, 2)`"),
            (_, "~") => Some("write `not`"),
            (_, "{") => Some(
                "write the topic before the braces: `topic{field: 2}`; quote a formula in Reelay's format: \
                 `rye\"{field: 2}\"`",
            ),
            (_, "/") => Some(
                "declare the topic with its address, `topic odom \"/robot/odom\"`, and refer to it by name: `odom.x`",
            ),
            (_, "<" | "<=" | ">" | ">=" | "==" | "!=") => {
                Some("write both operands of the comparison: `x > 3 and x < 5`")
            }
            (_, "?") => Some("write variables without `?`: `exists x. topic{field: x}`"),
            _ => hint(found),
        };
        let is_known = *self.peek() != TokenKind::Unknown;
        if let (".", TokenKind::Int(_)) = (found, &self.token(1).kind) {
            let digits = self.token(1).span.of(self.text);
            let reported = self.expected("an expression");
            self.help_last(format!("write `0.{digits}`"));
            return reported;
        }
        if is_known && self.symbol_before(1) == "%" {
            let message = format!("expected an expression after `%`, found {}", self.found());
            return self.report(Diagnostic::new(Code::UnexpectedToken, before, message).help(
                "`%` is the remainder of a division and no unit: write a percentage as a number, such as `20` or `0.2`",
            ));
        }
        let reported = self.expected("an expression");
        if let Some(help) = help.filter(|_| is_known) {
            self.help_last(help);
        }
        reported
    }

    fn worded(&mut self, span: Span) -> Parsed<NodeId> {
        let word = self.word(0);
        match word {
            "true" | "false" => {
                self.advance();
                return Ok(self.node(NodeKind::Literal(Value::Bool(word == "true")), span));
            }
            "if" => return self.condition(span),
            "exists" | "forall" => return self.quantified(span),
            _ if RESERVED.contains(&word) || self.at_declaration() => {
                return Err(self.no_operand());
            }
            _ => {}
        }
        if let Some(reported) = self.joined_clause() {
            return Err(reported);
        }
        if self.at_elements() {
            return self.elements();
        }
        if let Some(definition) = self.at_definition() {
            return self.expand(definition);
        }
        if self.symbol(1) == "(" {
            return self.call(word, span);
        }
        if self.symbol(1) == "{" && !self.before_body {
            return self.atom();
        }
        self.advance();
        self.path(Name { text: word.to_owned(), span })
    }

    fn condition(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        let condition = self.expression()?;
        if self.word(0) != "then" {
            let reported = self.expected("an operator or `then`");
            self.help_last("write `p -> q`, or `if p then q else r`");
            return Err(reported);
        }
        self.advance();
        let yes = self.expression()?;
        if self.word(0) != "else" {
            let message = format!("expected an operator or `else`, found {}", self.found());
            return Err(self.report(
                Diagnostic::new(Code::UnexpectedToken, self.span(), message)
                    .help("write a condition without `else` as `p -> q`"),
            ));
        }
        self.advance();
        let no = self.expression()?;
        let span = start.to(self.ast.nodes[no].span);
        Ok(self.node(NodeKind::If(condition, yes, no), span))
    }

    pub(super) fn path(&mut self, name: Name) -> Parsed<NodeId> {
        let mut steps = Vec::new();
        self.steps(&name, &mut steps)?;
        let span = name.span.to(self.last_span());
        if self.variable(&name.text).is_none() {
            if let Some(value) = self.parameter_value(&name) {
                let Some((_, step)) = steps.first() else { return Ok(value) };
                let message = format!("parameter '{}' is not a topic and has no fields", name.text);
                let diagnostic = Diagnostic::new(Code::NoFields, *step, message);
                self.report(diagnostic.help(format!("declare it as a topic: `{}: topic`", name.text)));
                return Ok(self.node(NodeKind::Invalid, span));
            }
            let is_named = self.named_object(&name).is_some();
            let Object { topic, steps, given } = self.object_of(name, steps);
            let node = self.node(NodeKind::Path(topic, steps), span);
            if is_named {
                // The object was written elsewhere, so its path is not corrected here.
                self.ast.expanded.insert(node);
            }
            if let Some(given) = given {
                self.ast.given.insert(node, given);
            }
            return Ok(node);
        }
        let Some(local) = self.variable(&name.text) else {
            return Ok(self.node(NodeKind::Path(name, steps), span));
        };
        match steps.first() {
            None => Ok(self.node(NodeKind::Variable(local), span)),
            Some((_, step)) => {
                let message = format!("'{}' is not a topic and has no fields", name.text);
                let declared = self.ast.variables[local].span;
                let diagnostic = Diagnostic::new(Code::NoFields, *step, message);
                let help = format!(
                    "write `topic{{field: {}}}` for a message of which a field has its value",
                    name.text
                );
                self.report(diagnostic.label(declared, "declared here").help(help));
                Ok(self.node(NodeKind::Invalid, span))
            }
        }
    }

    /// Returns the innermost local variable with this name.
    pub(super) fn variable(&self, word: &str) -> Option<usize> {
        self.scope.iter().rev().copied().find(|local| self.ast.variables[*local].text == word)
    }

    /// Returns the text of an expression, in parentheses unless it is an operand as it is.
    pub(super) fn as_operand(&self, node: NodeId) -> String {
        let Node { kind, span } = &self.ast.nodes[node];
        let written = span.of(self.text);
        match kind {
            NodeKind::Literal(_)
            | NodeKind::Path(..)
            | NodeKind::Call(..)
            | NodeKind::Length(..)
            | NodeKind::Number(..)
            | NodeKind::Measure(..) => written.to_owned(),
            _ => format!("({written})"),
        }
    }

    /// Returns the bound that begins at a token ahead, with the word before it in `over full 5 s`.
    pub(super) fn written_bound(&self, ahead: usize) -> Option<String> {
        let is_full = self.word(ahead) == "full"
            && !matches!(self.token(ahead + 1).kind, TokenKind::Symbol(_) | TokenKind::End);
        let (first, from) = (self.token(ahead).span, if is_full { ahead + 1 } else { ahead });
        let last = match self.token(from).kind {
            TokenKind::Int(_) | TokenKind::Float(_) if unit(self.word(from + 1)).is_some() => from + 1,
            TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Duration | TokenKind::Word => from,
            _ => return None,
        };
        Some(first.to(self.token(last).span).of(self.text).to_owned())
    }
}
