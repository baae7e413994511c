//! Expansion of definitions with parameters: their uses and arguments.
//!
//! A use is expanded while it is parsed: the body is parsed again at each use, with the arguments in place of the
//! parameters. The rest of the compiler sees what would have been written out by hand.

use std::collections::{HashMap, HashSet};

use super::ast::{BoundKind, Name, NodeId, NodeKind};
use super::circle::recursive;
use super::definition::{Definition, ParameterType};
use super::object::Object;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::suggest::did_you_mean;

/// Limit of the nodes in all expansions of a file.
const LIMIT: usize = 200_000;

/// Argument that replaces a parameter.
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
    pub(super) open: Vec<(usize, Span)>,
    pub(super) arguments: HashMap<String, Argument>,
    /// The number of nodes that expansions have added.
    nodes: usize,
    /// The definitions that are used.
    pub(super) used: HashSet<String>,
    /// The definition that is being declared.
    pub(super) declared: Option<usize>,
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
    /// Parses a use of a definition, with its name and the open parenthesis ahead.
    pub(super) fn expand(&mut self, index: usize) -> Parsed<NodeId> {
        let start = self.span();
        let definitions = self.definitions.clone();
        let Some(definition) = definitions.get(index) else { return Err(Reported) };
        self.ast.calls.push(Name { text: definition.name.text.clone(), span: start });
        self.advance();
        self.advance();
        let Some(body) = definition.body else {
            // The error has been reported at the declaration.
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
        // Errors in the body have been reported at the declaration.
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

    pub(super) fn use_of(&mut self, name: &str) {
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
}
