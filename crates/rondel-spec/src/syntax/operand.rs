//! Parser of operands: literals, names and calls.

use rondel_event::{FROM_END, Named, Path, Segment, Value};

use super::ast::{Function, Name, Node, NodeId, NodeKind};
use super::data::{AGGREGATES, MEASUREMENTS};
use super::object::Object;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::duration::unit;
use crate::foreign;
use crate::functions::FunctionId;
use crate::lexer::{LARGEST_INDEX, Token, TokenKind, begins_word, continues_word};
use crate::modules::Role;
use crate::operators::{OPERATORS, Operator};
use crate::sources::{library_definitions, library_with};
use crate::suggest::{did_you_mean, hint, list, nearest, translation};

/// Returns whether a key needs no quotes.
fn is_name(key: &str) -> bool {
    key.starts_with(begins_word) && key.chars().all(continues_word)
}

/// Returns whether a word is called without a definition.
fn is_known_call(word: &str) -> bool {
    Function::named(word).is_some()
        || Operator::named(word).is_some()
        || AGGREGATES.contains(&word)
        || matches!(word, "len" | "number")
}

impl<'a> Parser<'a> {
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
                // What stands elsewhere is not corrected here.
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

    /// Parses any number of steps: `.name`, `."name"` and `[index]`.
    pub(super) fn steps(&mut self, name: &Name, steps: &mut Vec<(Segment, Span)>) -> Parsed<()> {
        loop {
            match self.symbol(0) {
                "." => {
                    let dot = self.span();
                    self.advance();
                    let place = self.span();
                    // `topic.` at the end of a line: the next declaration is not the missing field.
                    let gap = Span::new(dot.end, place.start).of(self.text);
                    if gap.contains('\n') && self.at_declaration() {
                        return Err(self.expected("the name of a field"));
                    }
                    let key: Box<str> = match self.peek() {
                        TokenKind::Text(text) => text.as_str().into(),
                        TokenKind::Word => place.of(self.text).into(),
                        _ => return Err(self.expected("the name of a field")),
                    };
                    steps.push((Segment::Key(key), place));
                    self.advance();
                }
                "[" if self.is_name_ahead() => {
                    let named = self.named_element()?;
                    steps.push(named);
                }
                "[" => {
                    self.advance();
                    let place = self.span();
                    let from_end = self.symbol(0) == "-";
                    if from_end {
                        self.advance();
                    }
                    let index = match *self.peek() {
                        TokenKind::Int(digits) => u32::try_from(digits).ok(),
                        _ => None,
                    };
                    let Some(index) = index else { return Err(self.bad_index(name, steps.is_empty())) };
                    let place = place.to(self.span());
                    if from_end && !(1..=FROM_END).contains(&index) {
                        let message = format!("there is no element [-{index}]");
                        let help = format!("write [-1] for the last element, up to [-{FROM_END}]");
                        let wrong = Diagnostic::new(Code::UnexpectedToken, place, message).help(help);
                        return Err(self.report(wrong));
                    }
                    self.advance();
                    if self.symbol(0) != "]" {
                        return Err(self.bad_index(name, steps.is_empty()));
                    }
                    let index = if from_end { Segment::FromEnd(index) } else { Segment::Index(index) };
                    steps.push((index, place));
                    self.advance();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Whether an element follows by its name: `[id == …]` or `[header.frame_id == …]`.
    fn is_name_ahead(&self) -> bool {
        self.symbol(2) == "==" || (self.symbol(2) == "." && self.symbol(4) == "==")
    }

    /// Parses `[key == name]`, where the key is a field, or a field of a field. What follows says whether the elements are
    /// objects with their names in them, or values whose names stand in another array.
    fn named_element(&mut self) -> Parsed<(Segment, Span)> {
        self.advance();
        let start = self.span();
        let mut key = Vec::new();
        loop {
            let step: Box<str> = match self.peek() {
                TokenKind::Text(text) => text.as_str().into(),
                TokenKind::Word => self.span().of(self.text).into(),
                _ => return Err(self.expected("the name of a field")),
            };
            key.push(Segment::Key(step));
            self.advance();
            if !self.eat(".") {
                break;
            }
        }
        self.expect("==")?;
        let is_negative = self.eat("-");
        let name = match self.peek() {
            TokenKind::Text(text) if !is_negative => Some(Value::String(text.as_str().into())),
            TokenKind::Int(digits) => i64::try_from(*digits)
                .ok()
                .map(|digits| Value::Int(if is_negative { -digits } else { digits })),
            TokenKind::Word if !is_negative => match self.word(0) {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            _ => None,
        };
        // Whether it is a parameter is known later.
        let parameter = (name.is_none() && !is_negative && *self.peek() == TokenKind::Word)
            .then(|| self.word(0).to_owned())
            .filter(|word| !RESERVED.contains(&word.as_str()) && self.symbol(1) == "]");
        if name.is_none() && parameter.is_none() {
            let reported = self.expected("a text, a whole number or a parameter");
            self.help_last(
                "the name of an element is written out: `joints.position[name == \"elbow\"]`; for all elements write \
                 `any x in topic.array: x.id == …`, or `for each j in joints.name` and `joints.position[name == j]`",
            );
            return Err(reported);
        }
        self.advance();
        let span = start.to(self.last_span());
        self.expect("]")?;
        let is_parallel = !matches!(self.symbol(0), "." | "[");
        if is_parallel && key.len() > 1 {
            let message = "the array of names is a member of the same object as the array".to_owned();
            let help = "name it by its own name alone: `joints.position[name == \"elbow\"]`";
            return Err(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
        }
        let named = match (name, parameter) {
            (Some(name), _) => Named::new(Path(key), name, is_parallel),
            (None, parameter) => Named::of_parameter(Path(key), &parameter.unwrap_or_default(), is_parallel),
        };
        Ok((Segment::Named(Box::new(named)), span))
    }

    /// Reports an invalid index after a name, which may be bounds after a misspelt operator.
    fn bad_index(&mut self, name: &Name, is_first: bool) -> Reported {
        if let Some(help) = hint(&name.text) {
            let message = format!("unknown operator '{}'", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message).help(help));
        }
        if let Some(meant) = translation(&name.text) {
            let message = format!("unknown operator '{}'; did you mean '{meant}'?", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message));
        }
        if self.symbol(0) == "-" {
            let message = "expected an array index, found `-`";
            return self
                .report(Diagnostic::new(Code::UnexpectedToken, self.span(), message).help(
                    "array indices start at 0; write `prev(x)` for the value before the last message",
                ));
        }
        if self.symbol(1) == "=" {
            let reported = self.expected("an array index, such as `[0]`");
            let help = format!("write `==` for the element with a name: `[{} == \"name\"]`", self.word(0));
            self.help_last(help);
            return reported;
        }
        let operators = ["once", "historically", "since", "eventually", "always", "until"];
        if let Some(operator) = nearest(&name.text, operators) {
            let message = format!("unknown operator '{}'; did you mean '{operator}'?", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message));
        }
        if matches!(self.peek(), TokenKind::Int(_)) && self.symbol(1) == "]" {
            let diagnostic = Diagnostic::new(Code::InvalidNumber, self.span(), "array index is too large");
            return self.report(diagnostic.help(LARGEST_INDEX));
        }
        let is_word = *self.peek() == TokenKind::Word;
        let is_pair = matches!(self.symbol(1), ":" | "=" | "==" | "!=" | "<" | "<=" | ">" | ">=");
        let field = match self.peek() {
            TokenKind::Text(field) if is_name(field) => Some(field.clone()),
            TokenKind::Text(field) => Some(format!("\"{field}\"")),
            _ => None,
        };
        let reported = self.expected("an array index, such as `[0]`");
        let word = &name.text;
        if MEASUREMENTS.contains(&word.as_str()) || matches!(word.as_str(), "min" | "max") {
            self.help_last(format!("write the window after the parentheses: `{word}(x) over 2 s`"));
        } else if let Some(field) = field {
            let object = Span::new(name.span.start, self.last_span().start).of(self.text);
            self.help_last(format!("write `{object}.{field}` to access a field"));
        } else if is_first && is_pair && self.is_topic(word) {
            self.help_last(format!("write `{word}{{field: 3}}` for a message with this value"));
        } else if is_word {
            self.help_last("write a field without an index for its current value, `prev(x)` for the value before the last message");
        }
        reported
    }

    fn call(&mut self, word: &'a str, span: Span) -> Parsed<NodeId> {
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
            let definitions = self.definitions.clone();
            let mut all: Vec<&str> = definitions.iter().map(|definition| definition.name()).collect();
            let operators = OPERATORS.iter().map(|operator| operator.name);
            let known = Function::names().chain(operators).chain(MEASUREMENTS).chain(["reaction", "in"]);
            known.for_each(|name| all.push(name));
            if let Some(reported) = self.without_parameters(word, span, &arguments) {
                return reported;
            }
            let names = || all.iter().copied();
            let mut candidates = all.clone();
            library_definitions().for_each(|name| candidates.push(name));
            let is_elsewhere = self.ast.modules.qualified(span.start, word, Role::Value).is_some()
                || library_with(word).is_some();
            let call = foreign::call(word).filter(|_| !is_elsewhere);
            let foreign = call
                .map(|call| self.instead_of(call, &arguments))
                .or_else(|| foreign::advice(word).map(str::to_owned));
            let suggestion = match call.and_then(foreign::Call::renamed).or_else(|| translation(word)) {
                _ if is_elsewhere => String::new(),
                Some(meant) => format!("; did you mean '{meant}'?"),
                None if foreign.is_some() => String::new(),
                None => did_you_mean(word, candidates.iter().copied()),
            };
            let is_missing = |name: &&str| !definitions.iter().any(|definition| definition.name() == *name);
            let imported =
                nearest(word, candidates.iter().copied()).filter(is_missing).and_then(library_with);
            let message = format!("unknown function '{word}'{suggestion}");
            let mut diagnostic = Diagnostic::new(Code::UnknownFunction, span, message);
            let functions = || list(names()).map(|names| format!("functions: {names}"));
            let qualified = self.ast.modules.qualified(span.start, word, Role::Value);
            let qualified =
                qualified.map(|name| format!("write `{name}(…)`: its file is imported with `as`"));
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
                // What stands in the parentheses is no single value, which need not be said, too.
                return Err(self.report(diagnostic));
            }
            if !self.is_part {
                self.report(diagnostic);
            }
            // It may take arrays, which are no values.
            if foreign.is_some() {
                self.silence(&arguments);
            }
            self.silence_topics(&arguments);
            return Ok(self.node(NodeKind::Invalid, whole));
        };
        if arguments.len() != function.arity() {
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
                _ => Some(self.call_advice(word, function, &arguments)),
            };
            self.report(diagnostic);
            return Ok(self.node(NodeKind::Invalid, whole));
        }
        Ok(self.node(NodeKind::Call(function, arguments), whole))
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
