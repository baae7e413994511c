//! Definitions with parameters: `let near(a: float, b: float, d: float) = abs(a - b) < d`.
//!
//! A use is expanded while it is parsed: the body is parsed again at each use, with the arguments in place of the
//! parameters. The rest of the compiler sees what would have been written out by hand.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rondel_event::{Value, ValueType};

use super::ast::{BoundKind, DefinitionSyntax, Function, Name, NodeId, NodeKind, Prefix};
use super::circle::recursive;
use super::data::MEASUREMENTS;
use super::object::Object;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{Token, TokenKind};
use crate::modules::Role;
use crate::operators::Operator;
use crate::suggest::did_you_mean;

/// The most nodes that all expansions of a file may have.
const LIMIT: usize = 200_000;

/// The types of parameters; the first three are no types of values.
const TYPES: [&str; 10] =
    ["topic", "object", "bound", "bool", "int", "float", "string", "text", "time", "duration"];

/// What an argument has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterType {
    /// The name of a topic.
    Topic,
    /// A topic, or an object in one, of which fields are read.
    Object,
    /// A bound: a duration or a number of steps, which the time model of the property decides.
    Bound,
    /// A value.
    Value(ValueType),
}

/// A definition with parameters.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: Name,
    pub(super) parameters: Vec<(Name, ParameterType)>,
    /// The position of the first token of the body; none if the declaration is malformed before it.
    body: Option<usize>,
}

impl Definition {
    pub(super) fn name(&self) -> &str {
        &self.name.text
    }
}

/// What stands for a parameter.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    Topic(Name),
    Object(Object),
    Bound(BoundKind, Span),
    Value(NodeId),
    /// In the declaration itself, or after an error.
    Unknown,
}

/// The definitions that are being expanded.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// The definitions, the innermost last, with the locations of their uses.
    open: Vec<(usize, Span)>,
    pub(super) arguments: HashMap<String, Argument>,
    /// The number of nodes that expansions have added.
    nodes: usize,
    /// The definitions that are used.
    pub(super) used: HashSet<String>,
    /// The definition that is being declared.
    declared: Option<usize>,
    /// Uses in declarations: the definition that is declared, the one that it uses, and where.
    pub(super) calls: Vec<(usize, usize, Span)>,
}

impl Expansion {
    /// Forgets what an error has left open.
    pub(super) fn end(&mut self) {
        self.open.clear();
        self.arguments.clear();
    }
}

impl Parser<'_> {
    /// Finds the definitions with parameters; a malformed one is reported at its declaration.
    pub(super) fn find_definitions(&mut self) {
        let mut found: Vec<Definition> = Vec::new();
        for at in 0..self.tokens().len() {
            self.go_to(at);
            let is_one = self.word(0) == "let" && !self.word(1).is_empty() && self.symbol(2) == "(";
            if !is_one || self.symbol_before(1) == "." {
                continue;
            }
            let name = Name { text: self.word(1).to_owned(), span: self.token(1).span };
            let name = self.full(name, Role::Value);
            self.go_to(at + 2);
            let parameters = self.parameters(false).ok();
            let body = (parameters.is_some() && self.eat("=")).then(|| self.place());
            let parameters = parameters.unwrap_or_default();
            match found.iter_mut().find(|other| other.name.text == name.text) {
                None => found.push(Definition { name, parameters, body }),
                // What is right is meant.
                Some(other) if other.body.is_none() => *other = Definition { name, parameters, body },
                Some(_) => {}
            }
        }
        self.go_to(0);
        self.definitions = Rc::new(found);
    }

    /// Parses `(a: float, t: topic)`; without `tell` errors are not reported.
    fn parameters(&mut self, tell: bool) -> Parsed<Vec<(Name, ParameterType)>> {
        let fail = |parser: &mut Self, what: &str, help: &str| {
            if tell {
                parser.expected(what);
                parser.help_last(help);
            }
            Reported
        };
        let example = "write each parameter with its type: `let near(a: float, d: float) = …`";
        if !self.eat("(") {
            return Err(fail(self, "`(`", example));
        }
        let mut parameters: Vec<(Name, ParameterType)> = Vec::new();
        while self.symbol(0) != ")" {
            let word = self.word(0);
            if word.is_empty() || word.contains('.') || RESERVED.contains(&word) {
                return Err(fail(self, "the name of a parameter", example));
            }
            let name = Name { text: word.to_owned(), span: self.span() };
            if tell {
                self.refuse_alias(&name);
            }
            self.advance();
            if !self.eat(":") {
                return Err(fail(self, "`:` and the type of the parameter", example));
            }
            let value_type = match self.word(0) {
                "topic" => ParameterType::Topic,
                "object" => ParameterType::Object,
                "bound" => ParameterType::Bound,
                "bool" => ParameterType::Value(ValueType::Bool),
                "int" => ParameterType::Value(ValueType::Int),
                "float" => ParameterType::Value(ValueType::Float),
                "string" | "text" => ParameterType::Value(ValueType::String),
                "time" => ParameterType::Value(ValueType::Time),
                "duration" => ParameterType::Value(ValueType::Duration),
                other => {
                    let suggestion = did_you_mean(other, TYPES);
                    let message =
                        format!("expected the type of a parameter, found {}{suggestion}", self.found());
                    if tell {
                        let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message);
                        self.report(diagnostic.help(
                            "the types are topic, object, bool (also for formulas), int, float, string, time, duration, and \
                             bound for what stands in the brackets of an operator",
                        ));
                    }
                    return Err(Reported);
                }
            };
            self.advance();
            if let Some((first, _)) = parameters.iter().find(|(other, _)| other.text == name.text)
                && tell
            {
                let message = format!("parameter '{}' is declared twice", name.text);
                let diagnostic = Diagnostic::new(Code::DuplicateName, name.span, message);
                let diagnostic = diagnostic.label(first.span, "first declared here");
                self.report(diagnostic);
            }
            parameters.push((name, value_type));
            if !self.eat(",") && self.symbol(0) != ")" {
                return Err(fail(self, "`,` or `)`", example));
            }
        }
        self.advance();
        if parameters.is_empty() {
            self.go_to(self.place() - 1);
            return Err(fail(
                self,
                "the name of a parameter",
                "write a definition without parameters as `let name = …`",
            ));
        }
        Ok(parameters)
    }

    /// Parses a definition with parameters from its parameters on; its body is checked at each use.
    pub(super) fn definition(&mut self, name: usize) -> Parsed<()> {
        let span = self.tokens()[name].span;
        let word = span.of(self.text);
        let is_function = Function::named(word).is_some()
            || Operator::named(word).is_some()
            || MEASUREMENTS.contains(&word)
            || matches!(word, "in" | "reaction");
        let name = self.full(Name { text: word.to_owned(), span }, Role::Value);
        if is_function {
            let message = format!("'{word}' is a function of the language");
            let diagnostic = Diagnostic::new(Code::DuplicateName, name.span, message);
            self.report(diagnostic.help("choose another name"));
        }
        let parameters = self.parameters(true)?;
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.text.as_str()).collect();
        let call = format!("{}({})", name.text, names.join(", "));
        self.ast.definitions.push(DefinitionSyntax {
            name,
            call,
            used: false,
            nodes: Vec::new(),
            parameters: parameters.iter().map(|(name, _)| name.clone()).collect(),
        });
        self.declared_as()?;
        self.expansion.declared =
            self.ast.definitions.last().and_then(|own| self.definition_named(&own.name.text));
        let arguments = parameters.into_iter().map(|(name, value_type)| match value_type {
            ParameterType::Value(_) => (name.text, Argument::Unknown),
            ParameterType::Bound => (name.text, Argument::Bound(BoundKind::Whole(1), name.span)),
            ParameterType::Topic => (name.text.clone(), Argument::Topic(name)),
            ParameterType::Object => (name.text.clone(), Argument::Object(Object::whole(name))),
        });
        self.expansion.arguments = arguments.collect();
        let (nodes, variables) = (self.ast.nodes.len(), self.ast.variables.len());
        let body = self.expression_to_end();
        self.expansion.end();
        let nodes = self.ast.nodes.split_off(nodes);
        if let Some(own) = self.ast.definitions.last_mut() {
            own.nodes = nodes;
        }
        self.ast.variables.truncate(variables);
        body.map(|_| ())
    }

    /// Whether a definition is declared rather than expanded here.
    pub(super) fn declares(&self) -> bool {
        self.expansion.open.is_empty() && !self.expansion.arguments.is_empty()
    }

    /// Whether a name that a bound can have is declared somewhere: a definition without parameters, or a parameter.
    pub(super) fn declares_constant(&self, word: &str) -> bool {
        let text = |token: &Token| if token.kind == TokenKind::Word { token.span.of(self.text) } else { "" };
        let mut pairs = self.tokens().windows(2);
        self.expansion.arguments.contains_key(word)
            || pairs.any(|pair| matches!(text(&pair[0]), "const" | "let") && text(&pair[1]) == word)
    }

    /// Returns the definition with parameters of this name.
    pub(super) fn definition_named(&self, word: &str) -> Option<usize> {
        self.definitions.iter().position(|definition| definition.name.text == word)
    }

    /// Parses a use of a definition, with its name and the open parenthesis ahead.
    pub(super) fn expand(&mut self, index: usize) -> Parsed<NodeId> {
        let start = self.span();
        let definitions = self.definitions.clone();
        let Some(definition) = definitions.get(index) else { return Err(Reported) };
        self.ast.calls.push(Name { text: definition.name.text.clone(), span: start });
        self.advance();
        self.advance();
        let Some(body) = definition.body else {
            // What is wrong has been reported at its declaration.
            self.arguments()?;
            self.use_of(&definition.name.text);
            return Ok(self.node(NodeKind::Invalid, start.to(self.last_span())));
        };
        let name = &definition.name.text;
        let arguments = self.arguments_of(definition, start)?;
        let whole = start.to(self.last_span());
        // A wrong argument is not also reported where the body uses it.
        let is_wrong = |argument: &Argument| matches!(argument, Argument::Unknown);
        let Some(arguments) = arguments.filter(|arguments| !arguments.iter().any(is_wrong)) else {
            self.use_of(name);
            return Ok(self.node(NodeKind::Invalid, whole));
        };
        if self.declares() {
            self.expansion.calls.extend(self.expansion.declared.map(|declared| (declared, index, whole)));
            return Ok(self.node(NodeKind::Invalid, whole));
        }
        self.use_of(name);
        if let Some(from) = self.expansion.open.iter().position(|(open, _)| *open == index) {
            let names =
                self.expansion.open[from..].iter().map(|(open, _)| definitions[*open].name.text.as_str());
            let circle: Vec<&str> = names.chain([name.as_str()]).collect();
            self.report(recursive(&definition.name, &circle, whole));
            return Ok(self.node(NodeKind::Invalid, whole));
        }
        if self.expansion.nodes > LIMIT {
            let message = format!("definitions expand to more than {LIMIT} operations");
            let diagnostic = Diagnostic::new(Code::TooDeep, whole, message);
            return Err(self.report(diagnostic.help("use a definition less often inside others")));
        }
        let names = definition.parameters.iter().map(|(name, _)| name.text.clone());
        let outer = std::mem::replace(&mut self.expansion.arguments, names.zip(arguments).collect());
        let scope = std::mem::take(&mut self.scope);
        let before_body = std::mem::replace(&mut self.before_body, false);
        let (place, first) = (self.place(), self.ast.nodes.len());
        self.expansion.open.push((index, whole));
        self.go_to(body);
        let root = self.deeper(|parser| parser.expression());
        self.go_to(place);
        self.expansion.open.pop();
        self.expansion.arguments = outer;
        self.scope = scope;
        self.before_body = before_body;
        self.expansion.nodes += self.ast.nodes.len() - first;
        self.ast.expanded.extend(first..self.ast.nodes.len());
        // What is wrong with the body has been reported at its declaration.
        Ok(match root {
            Ok(root) => self.node(NodeKind::Same(root), whole),
            Err(Reported) => self.node(NodeKind::Invalid, whole),
        })
    }

    /// Parses the arguments of a use, with the closing parenthesis, into the order of the parameters: those by position,
    /// then those by name, as in `response(p, q, within: 2 s)`. None if some are missing, too many or misnamed.
    fn arguments_of(&mut self, definition: &Definition, start: Span) -> Parsed<Option<Vec<Argument>>> {
        let wanted = definition.parameters.len();
        let mut given: Vec<Option<Argument>> = Vec::new();
        given.resize_with(wanted, || None);
        // Where the first argument by name is, the arguments so far, and whether they are as they should be.
        let (mut named, mut count, mut right) = (None, 0, true);
        while self.symbol(0) != ")" {
            let span = self.span();
            let names_parameter = definition.parameters.iter().any(|(name, _)| name.text == self.word(0));
            if names_parameter && self.symbol(1) == "=" {
                let (message, word) =
                    ("expected `:` behind the name of a parameter, found `=`", self.word(0));
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.token(1).span, message);
                let value = self.token(2).span.of(self.text);
                return Err(self.report(diagnostic.help(format!("write `{word}: {value}`"))));
            }
            let place = if !self.word(0).is_empty() && self.symbol(1) == ":" {
                named.get_or_insert(span);
                let place = self.parameter_named(definition, &given);
                self.advance();
                self.advance();
                right &= place.is_some();
                place
            } else {
                if let Some(named) = named {
                    let message = "an argument without a name stands before those with names";
                    let diagnostic = Diagnostic::new(Code::ArgumentCount, span, message);
                    let diagnostic = diagnostic.label(named, "the first one with a name");
                    return Err(self.report(diagnostic.help("write its name too, as in `within: 2 s`")));
                }
                Some(count).filter(|place| *place < wanted)
            };
            let argument = self.argument(definition, place.map(|place| &definition.parameters[place]))?;
            if let Some(place) = place {
                given[place] = Some(argument);
            }
            count += 1;
            if !self.eat(",") && self.symbol(0) != ")" {
                return Err(self.after_expression(&[], "an operator, `,` or `)`"));
            }
        }
        self.advance();
        if !right {
            return Ok(None);
        }
        if count == wanted {
            return Ok(given.into_iter().collect());
        }
        let name = &definition.name.text;
        let plural = if wanted == 1 { "argument" } else { "arguments" };
        let message = format!("'{name}' takes {wanted} {plural} but got {count}");
        let names: Vec<&str> = definition.parameters.iter().map(|(name, _)| name.text.as_str()).collect();
        let diagnostic = Diagnostic::new(Code::ArgumentCount, start.to(self.last_span()), message)
            .label(definition.name.span, "declared here")
            .help(format!("write `{name}({})`", names.join(", ")));
        self.report(diagnostic);
        Ok(None)
    }

    /// Returns the place of the parameter whose name is ahead; none, after a report, if there is none or it has been
    /// given.
    fn parameter_named(&mut self, definition: &Definition, given: &[Option<Argument>]) -> Option<usize> {
        let (word, span) = (self.word(0), self.span());
        let names = || definition.parameters.iter().map(|(name, _)| name.text.as_str());
        let place = names().position(|name| name == word);
        if place.is_some() {
            let name = Name { text: word.to_owned(), span };
            self.ast.parameter_uses.push((definition.name.text.clone(), name));
        }
        let message = match place {
            Some(place) if given[place].is_none() => return Some(place),
            Some(_) => format!("parameter '{word}' of '{}' has two arguments", definition.name.text),
            None => {
                let suggestion = did_you_mean(word, names());
                format!("'{}' has no parameter '{word}'{suggestion}", definition.name.text)
            }
        };
        let names: Vec<&str> = names().collect();
        // The library has a pattern for each scope.
        let other = format!("{}_{word}", definition.name.text);
        let help = match self.definitions.iter().any(|definition| definition.name() == other) {
            true => format!("write `{other}(…)`"),
            false => format!("its parameters are {}", names.join(", ")),
        };
        let diagnostic = Diagnostic::new(Code::ArgumentCount, span, message)
            .label(definition.name.span, "declared here")
            .help(help);
        self.report(diagnostic);
        None
    }

    fn use_of(&mut self, name: &str) {
        self.expansion.used.insert(name.to_owned());
    }

    fn argument(
        &mut self,
        definition: &Definition,
        parameter: Option<&(Name, ParameterType)>,
    ) -> Parsed<Argument> {
        let name = match parameter {
            None => return Ok(Argument::Value(self.expression()?)),
            Some((name, ParameterType::Value(value_type))) => {
                let value = self.expression()?;
                let span = self.ast.nodes[value].span;
                let kind = NodeKind::Argument(value, *value_type, name.span);
                return Ok(Argument::Value(self.node(kind, span)));
            }
            Some((name, ParameterType::Bound)) => return self.bound_argument(definition, name),
            Some((name, ParameterType::Object)) => return self.object_argument(definition, name),
            Some((name, ParameterType::Topic)) => name,
        };
        let span = self.span();
        let word = self.word(0);
        let is_name = !word.is_empty() && !RESERVED.contains(&word) && matches!(self.symbol(1), "," | ")");
        if !is_name {
            let from = self.place();
            let value = self.expression()?;
            let span = self.ast.nodes[value].span;
            let given = self.written(from);
            let message = format!(
                "parameter '{}' of '{}' is a topic, found `{given}`",
                name.text, definition.name.text
            );
            let diagnostic =
                Diagnostic::new(Code::ArgumentType, span, message).label(name.span, "declared here");
            self.report(diagnostic.help("write the name of a topic without a field"));
            self.silence(&[value]);
            return Ok(Argument::Unknown);
        }
        self.advance();
        let name = self.topic_name(Name { text: word.to_owned(), span });
        Ok(Argument::Topic(name))
    }

    /// Parses the argument of a parameter that is a bound.
    fn bound_argument(&mut self, definition: &Definition, name: &Name) -> Parsed<Argument> {
        let (from, span) = (self.place(), self.span());
        let is_bound = match self.peek() {
            TokenKind::Duration | TokenKind::Int(_) | TokenKind::Float(_) => true,
            TokenKind::Word => !RESERVED.contains(&self.word(0)) && !matches!(self.symbol(1), "." | "("),
            _ => false,
        };
        if is_bound {
            let bound = self.bound()?;
            if matches!(self.symbol(0), "," | ")") {
                return Ok(Argument::Bound(bound.kind, bound.span));
            }
            self.go_to(from);
        }
        let value = self.expression()?;
        let given = self.written(from);
        let message =
            format!("parameter '{}' of '{}' is a bound, found `{given}`", name.text, definition.name.text);
        let diagnostic = Diagnostic::new(Code::ArgumentType, span.to(self.last_span()), message)
            .label(name.span, "declared here");
        self.report(diagnostic.help(
            "write a duration such as `200 ms`, a number of steps such as `5`, or the name of a `const`",
        ));
        self.silence(&[value]);
        Ok(Argument::Unknown)
    }

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

    /// Notes which definitions are used.
    pub(super) fn note_uses(&mut self) {
        self.report_unused_circles();
        for definition in &mut self.ast.definitions {
            definition.used = self.expansion.used.contains(&definition.name.text);
        }
    }

    /// Whether the next tokens are the use of a definition with parameters.
    pub(super) fn at_definition(&self) -> Option<usize> {
        let is_call = self.symbol(1) == "(" && *self.peek() == TokenKind::Word;
        if !is_call {
            return None;
        }
        let modules = &self.ast.modules;
        let found = self.definition_named(&modules.full(self.span().start, self.word(0), Role::Value))?;
        modules.sees(self.text, self.span(), self.definitions[found].name.span).then_some(found)
    }
}
