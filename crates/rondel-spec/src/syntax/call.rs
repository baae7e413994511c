//! Parser of calls: functions, operators, windows and lengths.

use super::ast::{Function, NodeId, NodeKind};
use super::data::{AGGREGATES, MEASUREMENTS};
use super::parser::{Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::foreign;
use crate::functions::FunctionId;
use crate::lexer::{Token, TokenKind};
use crate::modules::Role;
use crate::operators::{OPERATORS, Operator};
use crate::sources::{library_definitions, library_with};
use crate::suggest::{did_you_mean, hint, list, nearest, translation};

/// Returns whether a word is called without a definition.
fn is_known_call(word: &str) -> bool {
    Function::named(word).is_some()
        || Operator::named(word).is_some()
        || AGGREGATES.contains(&word)
        || matches!(word, "len" | "number")
}

impl<'a> Parser<'a> {
    pub(super) fn call(&mut self, word: &'a str, span: Span) -> Parsed<NodeId> {
        if word == "in" {
            return self.in_state(span);
        }
        if let Some(node) = self.measurement(word, span)? {
            return Ok(node);
        }
        self.advance();
        self.advance();
        // An unknown definition may have parameters of any name.
        let has_names = !is_known_call(word) && !self.is_topic(word);
        let arguments = self.arguments_with(has_names).inspect_err(|_| {
            if self.symbol(0) == ":" && self.is_topic(word) {
                self.help_last(format!("write `{word}{{field: 3}}` for a message with this value"));
            }
        })?;
        self.called(word, arguments, span)
    }

    /// Parses the arguments of a call with the closing parenthesis.
    pub(super) fn arguments(&mut self) -> Parsed<Vec<NodeId>> {
        self.arguments_with(false)
    }

    fn arguments_with(&mut self, has_names: bool) -> Parsed<Vec<NodeId>> {
        let mut arguments = Vec::new();
        while self.symbol(0) != ")" {
            if has_names && !self.word(0).is_empty() && self.symbol(1) == ":" {
                self.advance();
                self.advance();
            }
            arguments.push(self.expression()?);
            if !self.eat(",") && self.symbol(0) != ")" {
                return Err(self.after_expression(&[], "an operator, `,` or `)`"));
            }
        }
        self.advance();
        Ok(arguments)
    }

    fn called(&mut self, word: &str, arguments: Vec<NodeId>, span: Span) -> Parsed<NodeId> {
        let whole = span.to(self.last_span());
        if let Some(node) = self.measure_of_elements(word, &arguments, whole) {
            return Ok(node);
        }
        if let Some(aggregate) = self.window_of(word, &arguments, span)? {
            return self.window(aggregate, &arguments, whole);
        }
        if word == "len" {
            return Ok(self.length(&arguments, whole));
        }
        if word == "number" {
            return Ok(self.number(&arguments, whole));
        }
        if let Some(operator) = Operator::named(word) {
            return self.operator(operator, arguments, whole);
        }
        let Some(function) = Function::named(word) else {
            return self.unknown_function(word, &arguments, span, whole);
        };
        if arguments.len() != function.arity() {
            self.wrong_arity(word, function, &arguments, whole);
            return Ok(self.node(NodeKind::Invalid, whole));
        }
        Ok(self.node(NodeKind::Call(function, arguments), whole))
    }

    /// Reports a call of a function that is not known, with the names that may be meant.
    fn unknown_function(
        &mut self,
        word: &str,
        arguments: &[NodeId],
        span: Span,
        whole: Span,
    ) -> Parsed<NodeId> {
        let definitions = self.definitions.clone();
        let mut all: Vec<&str> = definitions.iter().map(|definition| definition.name()).collect();
        let operators = OPERATORS.iter().map(|operator| operator.name);
        let known = Function::names().chain(operators).chain(MEASUREMENTS).chain(["reaction", "in"]);
        known.for_each(|name| all.push(name));
        if let Some(reported) = self.without_parameters(word, span, arguments) {
            return reported;
        }
        let names = || all.iter().copied();
        let mut candidates = all.clone();
        library_definitions().for_each(|name| candidates.push(name));
        let is_elsewhere = self.ast.modules.qualified(span.start, word, Role::Value).is_some()
            || library_with(word).is_some();
        let call = foreign::call(word).filter(|_| !is_elsewhere);
        let foreign = call
            .map(|call| self.instead_of(call, arguments))
            .or_else(|| foreign::advice(word).map(str::to_owned));
        let suggestion = match call.and_then(foreign::Call::renamed).or_else(|| translation(word)) {
            _ if is_elsewhere => String::new(),
            Some(meant) => format!("; did you mean '{meant}'?"),
            None if foreign.is_some() => String::new(),
            None => did_you_mean(word, candidates.iter().copied()),
        };
        let is_missing = |name: &&str| !definitions.iter().any(|definition| definition.name() == *name);
        let imported = nearest(word, candidates.iter().copied()).filter(is_missing).and_then(library_with);
        let message = format!("unknown function '{word}'{suggestion}");
        let mut diagnostic = Diagnostic::new(Code::UnknownFunction, span, message);
        let functions = || list(names()).map(|names| format!("functions: {names}"));
        let qualified = self.ast.modules.qualified(span.start, word, Role::Value);
        let qualified = qualified.map(|name| format!("write `{name}(…)`: its file is imported with `as`"));
        let library = qualified.or_else(|| {
            let library = library_with(word).or(imported)?;
            Some(format!("write `use std.{library}` at the top of the file to import it"))
        });
        diagnostic.help = match self.is_topic(word) {
            true => Some(format!(
                "'{word}' is a topic: write `{word}{{field: 2}}` for a message with this value, `on({word})` for any message"
            )),
            false if library.is_some() => library,
            false if foreign.is_some() => foreign.clone(),
            false if suggestion.is_empty() => hint(word).map(str::to_owned).or_else(functions),
            false => hint(word).map(str::to_owned),
        };
        if matches!(word, "any" | "all") {
            // The parentheses hold no single value; a further error about that would not help.
            return Err(self.report(diagnostic));
        }
        if !self.is_part {
            self.report(diagnostic);
        }
        // It may take arrays, which are no values.
        if foreign.is_some() {
            self.silence(arguments);
        }
        self.silence_topics(arguments);
        Ok(self.node(NodeKind::Invalid, whole))
    }

    /// Reports a call with too many or too few arguments.
    fn wrong_arity(&mut self, word: &str, function: Function, arguments: &[NodeId], whole: Span) {
        let plural = if function.arity() == 1 { "argument" } else { "arguments" };
        let message = format!("`{word}` takes {} {plural} but got {}", function.arity(), arguments.len());
        let mut diagnostic = Diagnostic::new(Code::WrongArguments, whole, message);
        diagnostic.help = match function {
            Function::Min | Function::Max if arguments.len() == 1 => {
                Some(format!("write `{word}(…) over 10 s` for the {word} of a window"))
            }
            Function::Prev if arguments.len() == 2 => {
                Some("write `prev(prev(x))` for the value two messages ago".to_owned())
            }
            _ => Some(self.call_advice(word, function, arguments)),
        };
        self.report(diagnostic);
    }

    /// Reports a call of a definition without parameters; none for other calls.
    fn without_parameters(&mut self, word: &str, span: Span, arguments: &[NodeId]) -> Option<Parsed<NodeId>> {
        let text = |token: &Token| if token.kind == TokenKind::Word { token.span.of(self.text) } else { "" };
        let is_equals = |token: &Token| token.kind == TokenKind::Symbol("=");
        let declares = |tokens: &[Token]| {
            matches!(text(&tokens[0]), "let" | "const") && text(&tokens[1]) == word && is_equals(&tokens[2])
        };
        let is_imported = self.ast.modules.qualified(span.start, word, Role::Value).is_some();
        if is_imported || !self.tokens().windows(3).any(declares) {
            return None;
        }
        let whole = span.to(self.last_span());
        let diagnostic = Diagnostic::new(Code::ArgumentCount, whole, format!("'{word}' has no parameters"));
        self.report(diagnostic.help(format!("write `{word}`")));
        self.silence(arguments);
        Some(Ok(self.node(NodeKind::Invalid, whole)))
    }

    /// Marks topics among arguments as invalid: a function that is misspelt may take them.
    fn silence_topics(&mut self, arguments: &[NodeId]) {
        let is_topic = |argument: &&NodeId| match &self.ast.nodes[**argument].kind {
            NodeKind::Path(name, steps) => steps.is_empty() && self.is_topic(&name.text),
            _ => false,
        };
        let topics: Vec<NodeId> = arguments.iter().filter(is_topic).copied().collect();
        self.silence(&topics);
    }

    /// Parses what follows the operands of an operator: `for 2 s`.
    fn operator(
        &mut self,
        operator: &'static Operator,
        operands: Vec<NodeId>,
        whole: Span,
    ) -> Parsed<NodeId> {
        let Operator { name, arity, lasts, example, .. } = *operator;
        let has_duration = lasts && self.word(0) == "for";
        let lasting = match has_duration {
            true => {
                self.advance();
                Some(Box::new(self.bound()?))
            }
            false => None,
        };
        let whole = whole.to(self.last_span());
        let message = if operands.len() != arity {
            let plural = if arity == 1 { "argument" } else { "arguments" };
            format!("`{name}` takes {arity} {plural} but got {}", operands.len())
        } else if lasts && !has_duration {
            format!("`{name}` needs a duration")
        } else {
            return Ok(self.node(NodeKind::Operator { operator, operands, lasting }, whole));
        };
        let help = format!("write `{example}`");
        self.report(Diagnostic::new(Code::WrongArguments, whole, message).help(help));
        self.silence(&operands);
        Ok(self.node(NodeKind::Invalid, whole))
    }

    /// Marks operands as invalid, so that no further error is reported for them.
    pub(super) fn silence(&mut self, operands: &[NodeId]) {
        operands.iter().for_each(|operand| self.ast.nodes[*operand].kind = NodeKind::Invalid);
    }

    /// Returns a field that may be a number as a text. The path itself is no operand: the text is not a number.
    fn number(&mut self, arguments: &[NodeId], whole: Span) -> NodeId {
        let message = match *arguments {
            [operand] => {
                let node = &mut self.ast.nodes[operand];
                match &node.kind {
                    NodeKind::Path(name, steps) => {
                        node.kind = NodeKind::Number(name.clone(), steps.clone());
                        node.span = whole;
                        return operand;
                    }
                    NodeKind::Invalid => return self.node(NodeKind::Invalid, whole),
                    _ => "`number` takes a field, but this is an expression".to_owned(),
                }
            }
            _ => format!("`number` takes 1 argument but got {}", arguments.len()),
        };
        let diagnostic = Diagnostic::new(Code::WrongArguments, whole, message);
        self.report(
            diagnostic.help("write `number(topic.field)`: it reads a text such as \"150.5\" as a number"),
        );
        self.silence(arguments);
        self.node(NodeKind::Invalid, whole)
    }

    /// Returns the length of a field. The path itself is no operand: an array is not a value.
    fn length(&mut self, arguments: &[NodeId], whole: Span) -> NodeId {
        let [operand] = *arguments else {
            let message = format!("`len` takes 1 argument but got {}", arguments.len());
            self.report(Diagnostic::new(Code::WrongArguments, whole, message));
            self.silence(arguments);
            return self.node(NodeKind::Invalid, whole);
        };
        let node = &mut self.ast.nodes[operand];
        match &node.kind {
            NodeKind::Path(name, steps) => {
                node.kind = NodeKind::Length(name.clone(), steps.clone());
                node.span = whole;
                operand
            }
            NodeKind::Invalid => self.node(NodeKind::Invalid, whole),
            // The length of a text that is computed.
            _ => self.node(NodeKind::Call(Function::Value(FunctionId::LEN), arguments.to_vec()), whole),
        }
    }
}
