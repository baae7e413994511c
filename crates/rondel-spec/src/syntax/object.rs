//! Objects in messages that have names, or are arguments: `let q = odom.pose.pose.orientation`, `yaw(q)`.

use std::collections::BTreeSet;

use rondel_event::Segment;

use super::ast::Name;
use super::definition::{Definition, ParameterType};
use super::expansion::Argument;
use super::parser::{Parsed, Parser, RESERVED};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::modules::Role;

/// An object in messages.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) topic: Name,
    /// The path in the messages of the topic.
    pub(super) steps: Vec<(Segment, Span)>,
    /// Where it is an argument.
    pub(super) given: Option<Span>,
}

impl Object {
    /// A topic as a whole.
    pub(super) fn whole(topic: Name) -> Object {
        Object { topic, steps: Vec::new(), given: None }
    }

    fn and(mut self, steps: Vec<(Segment, Span)>) -> Object {
        self.steps.extend(steps);
        self
    }
}

impl Parser<'_> {
    /// Parses the argument of a parameter that is an object.
    pub(super) fn object_argument(&mut self, definition: &Definition, name: &Name) -> Parsed<Argument> {
        let (from, span) = (self.place(), self.span());
        let word = self.word(0);
        if !word.is_empty() && !RESERVED.contains(&word) && self.symbol(1) != "(" {
            self.advance();
            let mut object = self.object_at(Name { text: word.to_owned(), span })?;
            // An argument that is passed on stays the one that was given first.
            object.given.get_or_insert(span.to(self.last_span()));
            if matches!(self.symbol(0), "," | ")") {
                return Ok(Argument::Object(object));
            }
            self.go_to(from);
        }
        let value = self.expression()?;
        let span = self.ast.nodes[value].span;
        let given = self.written(from);
        let message =
            format!("parameter '{}' of '{}' is an object, found `{given}`", name.text, definition.name.text);
        let diagnostic = Diagnostic::new(Code::ArgumentType, span, message).label(name.span, "declared here");
        self.report(
            diagnostic.help("write an object in the messages of a topic, such as `odom.pose.pose.position`"),
        );
        self.silence(&[value]);
        Ok(Argument::Unknown)
    }

    /// Parses the steps behind a name, and returns the object that both are: the name may be a parameter, or that of an
    /// object.
    pub(super) fn object_at(&mut self, name: Name) -> Parsed<Object> {
        let mut steps = Vec::new();
        self.steps(&name, &mut steps)?;
        Ok(self.object_of(name, steps))
    }

    /// Returns the object at a path.
    pub(super) fn object_of(&mut self, name: Name, steps: Vec<(Segment, Span)>) -> Object {
        if let Some(Argument::Object(object)) = self.expansion.arguments.get(&name.text).cloned() {
            self.note_parameter(&name.text, name.span);
            return object.and(steps);
        }
        match self.named_object(&name) {
            Some(object) => object.and(steps),
            None => Object { steps, ..Object::whole(self.topic_name(name)) },
        }
    }

    /// Returns the object that a `let` names, unless a parameter has the name.
    pub(super) fn named_object(&mut self, name: &Name) -> Option<Object> {
        if self.expansion.arguments.contains_key(&name.text) {
            return None;
        }
        let full = self.full(name.clone(), Role::Value);
        self.objects.get(&full.text).cloned()
    }

    /// Finds what names an object: `let q = odom.pose.pose.orientation`, where `q.x` or `f(q)` is read with an object as
    /// parameter.
    pub(super) fn find_objects(&mut self) {
        let read = self.words_read_as_objects();
        for at in 0..self.tokens().len() {
            self.go_to(at);
            let is_one = self.word(0) == "let" && !self.word(1).is_empty() && self.symbol(2) == "=";
            if !is_one || self.symbol_before(1) == "." || self.word(3).is_empty() {
                continue;
            }
            let (word, span) = (self.word(1).to_owned(), self.token(1).span);
            if !read.contains(&word) {
                continue;
            }
            let first = Name { text: self.word(3).to_owned(), span: self.token(3).span };
            self.go_to(at + 4);
            let reported = self.reported();
            let object = self.object_at(first);
            self.forget_after(reported);
            let is_alone = *self.peek() == TokenKind::End || self.at_declaration();
            if let Some(object) = object.ok().filter(|object| is_alone && !object.steps.is_empty()) {
                let name = self.full(Name { text: word, span }, Role::Value);
                self.objects.entry(name.text).or_insert(object);
            }
        }
        self.go_to(0);
    }

    /// Returns the words that are used as names of objects somewhere, and are no topics.
    fn words_read_as_objects(&self) -> BTreeSet<String> {
        let tokens = self.tokens();
        let text = |at: usize| match tokens.get(at) {
            Some(token) if token.kind == TokenKind::Word => token.span.of(self.text),
            _ => "",
        };
        let symbol = |at: usize| match tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Symbol(symbol)) => *symbol,
            _ => "",
        };
        let takes_object = |definition: &&Definition| {
            definition.parameters.iter().any(|(_, of)| *of == ParameterType::Object)
        };
        let last_word = |definition: &Definition| definition.name.text.rsplit('.').next().map(str::to_owned);
        let functions: BTreeSet<String> =
            self.definitions.iter().filter(takes_object).filter_map(last_word).collect();
        let is_argument = |at: usize| {
            let mut before = (1..at).rev().take(8);
            matches!(symbol(at + 1), "," | ")")
                && before.any(|open| symbol(open) == "(" && functions.contains(text(open - 1)))
        };
        let is_use = |at: &usize| {
            let is_alone = !text(*at).is_empty() && (*at == 0 || symbol(at - 1) != ".");
            is_alone && (symbol(at + 1) == "." || is_argument(*at))
        };
        let mut words: BTreeSet<String> =
            (0..tokens.len()).filter(is_use).map(|at| text(at).to_owned()).collect();
        for at in (1..tokens.len()).filter(|at| text(at - 1) == "topic") {
            words.remove(text(at));
        }
        words
    }
}
