//! Definitions with parameters: `let near(a: float, b: float, d: float) = abs(a - b) < d`.

use std::rc::Rc;

use rondel_event::ValueType;

use super::ast::{BoundKind, DefinitionSyntax, Function, Name};
use super::data::MEASUREMENTS;
use super::expansion::Argument;
use super::object::Object;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::{Token, TokenKind};
use crate::modules::Role;
use crate::operators::Operator;
use crate::suggest::did_you_mean;

/// The types of parameters; the first three are no types of values.
const TYPES: [&str; 10] =
    ["topic", "object", "bound", "bool", "int", "float", "string", "text", "time", "duration"];

/// Kind of argument that a parameter takes.
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
    pub(super) body: Option<usize>,
}

impl Definition {
    pub(super) fn name(&self) -> &str {
        &self.name.text
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
                // A correct declaration wins over a wrong one.
                Some(other) if other.body.is_none() => *other = Definition { name, parameters, body },
                Some(_) => {}
            }
        }
        self.go_to(0);
        self.definitions = Rc::new(found);
    }

    /// Parses `(a: float, t: topic)`, and reports errors if `reports`.
    fn parameters(&mut self, reports: bool) -> Parsed<Vec<(Name, ParameterType)>> {
        let fail = |parser: &mut Self, what: &str, help: &str| {
            if reports {
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
            if reports {
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
                    if reports {
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
                && reports
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

    /// Notes which definitions are used.
    pub(super) fn note_uses(&mut self) {
        self.report_unused_circles();
        for definition in &mut self.ast.definitions {
            definition.used = self.expansion.used.contains(&definition.name.text);
        }
    }

    /// Index of the definition with parameters that the next tokens use.
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
