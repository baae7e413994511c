//! Name resolution.

use std::collections::HashMap;

use rondel_event::{Path, Segment, TopicId, ValueType};

use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::fields::Fields;
use crate::modules::{Modules, Role};
use crate::rye;
use crate::spec::SchemaType;
use crate::suggest::{did_you_mean, list};
use crate::syntax::ast::{Ast, Bound, BoundKind, Name, NodeId, NodeKind};

/// The declaration of a name.
#[derive(Clone, Copy)]
pub(super) enum Declared {
    Topic(TopicId),
    Binding(usize),
    /// A definition with parameters.
    Definition(usize),
}

/// The names of topics and definitions.
pub(super) struct Names<'a> {
    all: HashMap<&'a str, (Declared, Span)>,
    text: &'a str,
    modules: &'a Modules,
}

impl<'a> Names<'a> {
    /// The declaration of a name, if the file in which it is written at `at` can use it.
    pub(super) fn get(&self, name: &str, at: Span) -> Option<&(Declared, Span)> {
        self.all.get(name).filter(|(_, declared)| self.modules.sees(self.text, at, *declared))
    }

    /// The declaration of a name in any file.
    pub(super) fn anywhere(&self, name: &str) -> Option<&(Declared, Span)> {
        self.all.get(name)
    }

    /// The names that can be written at `at`, with their declarations.
    fn visible(&self, at: Span) -> impl Iterator<Item = (&'a str, Declared, Span)> {
        let is_qualified = at.of(self.text).contains('.');
        self.all.iter().filter_map(move |(name, (declared, span))| {
            if is_qualified {
                return name.contains('.').then_some((*name, *declared, *span));
            }
            let written = name.rsplit('.').next().unwrap_or(name);
            let is_own = self.modules.full(at.start, written, Role::Value) == **name;
            (is_own && self.modules.sees(self.text, at, *span)).then_some((written, *declared, *span))
        })
    }
}

impl<'a> Checker<'a> {
    pub(super) fn resolve_names(&mut self) {
        let ast = self.ast;
        let names = self.declared_names();
        for (i, binding) in ast.bindings.iter().enumerate() {
            for node in binding.body.nodes() {
                self.resolve(node, Some(i), &names);
            }
        }
        for property in &ast.properties {
            self.resolve_each(property.each, &names);
            self.resolve_body(property.body, &names);
            self.locals.clear();
        }
        for machine in 0..ast.machines.len() {
            self.resolve_machine(machine, &names);
        }
        for chain in &ast.chains {
            self.resolve_chain(chain, &names);
        }
        self.resolve_asserts(&names);
        self.resolve_tests(&names);
        self.check_variables();
    }

    fn declared_names(&mut self) -> Names<'a> {
        let ast: &'a Ast = self.ast;
        let topics =
            ast.topics.iter().enumerate().map(|(i, topic)| (&topic.name, Declared::Topic(TopicId(i as u32))));
        let bindings = ast.bindings.iter().enumerate().map(|(i, b)| (&b.name, Declared::Binding(i)));
        let definitions = ast.definitions.iter().enumerate().map(|(i, d)| (&d.name, Declared::Definition(i)));
        let mut all: Vec<_> = topics.chain(bindings).chain(definitions).collect();
        all.sort_by_key(|(name, _)| name.span);
        let (text, modules) = (self.text, &*ast.modules);
        let mut names = Names { all: HashMap::new(), text, modules };
        for (name, declared) in all {
            match names.anywhere(&name.text) {
                Some((_, first)) => {
                    let first = *first;
                    // A duplicate definition is not also reported as unused.
                    if let Declared::Binding(i) = declared {
                        self.used[i] = true;
                    }
                    self.declared_twice(name, first);
                }
                None => {
                    names.all.insert(&name.text, (declared, name.span));
                }
            }
        }
        let mut properties = HashMap::new();
        let asserts = ast.asserts.iter().filter(|assert| assert.is_named).map(|assert| &assert.name);
        for name in ast.property_sources.iter().map(|source| ast.source_name(*source)).chain(asserts) {
            if let Some(first) = properties.insert(name.text.as_str(), name.span) {
                self.declared_twice(name, first);
            }
        }
        names
    }

    pub(super) fn declared_twice(&mut self, name: &Name, first: Span) {
        let message = format!("'{}' is declared twice", name.text);
        self.diagnostics.push(
            Diagnostic::new(Code::DuplicateName, name.span, message).label(first, "first declared here"),
        );
    }

    pub(super) fn resolve(&mut self, node: NodeId, within: Option<usize>, names: &Names<'a>) {
        let ast = self.ast;
        let kind = &ast.nodes[node].kind;
        if let Some(diagnostic) = self.wrong_element(kind, names) {
            return self.invalidate(node, diagnostic);
        }
        let meaning = match kind {
            NodeKind::Invalid => Meaning::Invalid,
            NodeKind::Path(name, steps) => self.path(node, name, steps, within, names),
            NodeKind::Length(name, steps) => self.length(node, name, steps, within, names),
            NodeKind::Number(name, steps) => self.number(node, name, steps, within, names),
            NodeKind::Elements(syntax) => self.elements(node, syntax, within, names),
            NodeKind::Measure(measure, name) if self.measures_chain(*measure, name, names) => {
                self.resolve_chain_measure(*measure, name)
            }
            NodeKind::On(name)
            | NodeKind::Measure(_, name)
            | NodeKind::Event(_, name)
            | NodeKind::Atom { topic: name, .. } => match self.topic(name, names) {
                Ok(topic) => Meaning::Topic(topic),
                Err(diagnostic) => return self.invalidate(node, *diagnostic),
            },
            NodeKind::Samples(name) => match self.topic(name, names) {
                Ok(topic) => Meaning::Topic(topic),
                Err(_) => self.path(node, name, &[], within, names),
            },
            // An unknown topic is reported once, for the atom.
            NodeKind::AtomField(name, steps) => match self.topic(name, names) {
                Ok(topic) => self.field(node, topic, steps),
                Err(_) => Meaning::Invalid,
            },
            NodeKind::In(machine, states) => self.resolve_in(machine, states),
            NodeKind::Rye { topic, body } => self.embedded(node, topic.as_ref(), *body, names),
            NodeKind::Quantified { variables, .. } => {
                self.warn_of_shadowing(variables, names);
                Meaning::Itself
            }
            _ => Meaning::Itself,
        };
        self.meanings[node] = meaning;
        for bound in kind.reaches() {
            if let Err(diagnostic) = self.resolve_bound(bound, within, names) {
                self.invalidate(node, *diagnostic);
            }
        }
    }

    /// Resolves the constant that a bound names.
    pub(super) fn resolve_bound(
        &mut self,
        bound: &Bound,
        within: Option<usize>,
        names: &Names<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let BoundKind::Name(name) = &bound.kind else { return Ok(()) };
        match names.get(name, bound.span) {
            Some((Declared::Binding(i), _)) => {
                self.refer(within, *i);
                self.bounds.insert(bound.span, *i);
                Ok(())
            }
            _ => {
                let suggestion = self.suggestion(name, bound.span, names);
                let message = format!("unknown constant '{name}'{suggestion}");
                let mut diagnostic = Diagnostic::new(Code::UnknownName, bound.span, message);
                diagnostic.help = self.qualified(name, bound.span, Role::Value);
                if matches!(name.to_lowercase().as_str(), "inf" | "infinity" | "infty" | "oo" | "end") {
                    diagnostic.help = Some("leave out an infinite bound: `[0,]`".to_owned());
                }
                Err(Box::new(diagnostic))
            }
        }
    }

    /// Resolves a name that must be a constant.
    pub(super) fn refer_to_constant(
        &mut self,
        name: &str,
        span: Span,
        topic: Option<&str>,
        names: &Names<'a>,
    ) {
        match names.get(name, span) {
            Some((Declared::Binding(i), _)) if self.ast.bindings[*i].constant => self.refer(None, *i),
            Some((Declared::Binding(_), declared)) => {
                let message = format!("'{name}' is not a constant");
                let diagnostic = Diagnostic::new(Code::NotConstant, span, message);
                self.diagnostics.push(
                    diagnostic
                        .label(*declared, "declared here")
                        .help("declare a value that never changes with `const` instead of `let`"),
                );
            }
            _ => {
                let suggestion = self.suggestion(name, span, names);
                let message = format!("unknown constant '{name}'{suggestion}");
                let qualified = self.qualified(name, span, Role::Value);
                let help =
                    qualified.or_else(|| self.constant_of_type(name, topic.map(|topic| (topic, None))));
                let help = help.unwrap_or_else(|| "put strings in quotes".to_owned());
                self.diagnostics.push(Diagnostic::new(Code::UnknownName, span, message).help(help));
            }
        }
    }

    /// Records that the binding `within`, or a property, refers to `binding`.
    fn refer(&mut self, within: Option<usize>, binding: usize) {
        self.used[binding] = true;
        if let Some(within) = within {
            self.references[within].push(binding);
        }
    }

    /// Returns advice for a name without that of its import.
    pub(super) fn qualified(&self, word: &str, at: Span, role: Role) -> Option<String> {
        let modules = &self.ast.modules;
        if modules.is_alias(at.start, word) {
            return Some(format!(
                "'{word}' is an import: write `{word}.name` for something that it declares"
            ));
        }
        let name = modules.qualified(at.start, word, role)?;
        Some(format!("write `{name}`: its file is imported with `as`"))
    }

    /// Adds advice to an error about a property, a machine or a chain without the name of its import.
    pub(super) fn with_import(&self, diagnostic: Diagnostic, name: &Name) -> Diagnostic {
        match self.qualified(name.span.of(self.text), name.span, Role::Any) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }

    fn suggestion(&self, word: &str, at: Span, names: &Names<'_>) -> String {
        if self.qualified(word, at, Role::Value).is_some() {
            return String::new();
        }
        // In a fixed order, because the first of several equally similar names is suggested.
        let mut candidates: Vec<_> = names.visible(at).map(|(name, _, span)| (span, name)).collect();
        candidates.extend(self.locals.iter().map(|(name, (_, span))| (*span, *name)));
        candidates.sort();
        let locals = self.ast.variables.iter().map(|variable| variable.text.as_str());
        did_you_mean(word, candidates.into_iter().map(|(_, name)| name).chain(locals))
    }

    pub(super) fn path(
        &mut self,
        node: NodeId,
        name: &Name,
        steps: &[(Segment, Span)],
        within: Option<usize>,
        names: &Names<'a>,
    ) -> Meaning {
        let segments = || steps.iter().map(|(segment, _)| segment.clone());
        if self.ast.single {
            let root = Segment::Key(name.text.as_str().into());
            let path = Path(std::iter::once(root).chain(segments()).collect());
            return Meaning::Field { topic: TopicId(0), path, declared: None };
        }
        let is_expanded = self.ast.expanded.contains(&node);
        if let Some((local, declared)) = self.locals.get(name.text.as_str()).filter(|_| !is_expanded) {
            let Some((_, step)) = steps.first() else { return local.meaning() };
            let message = format!("'{}' is not a topic and has no fields", name.text);
            self.diagnostics
                .push(Diagnostic::new(Code::NoFields, *step, message).label(*declared, "declared here"));
            return Meaning::Invalid;
        }
        // A topic that is an argument is reported once, where it is given.
        let is_argument = is_expanded && !steps.is_empty() && name.span.start != self.span(node).start;
        if is_argument && let Err(diagnostic) = self.topic(name, names) {
            self.diagnostics.push(*diagnostic);
            return Meaning::Invalid;
        }
        let diagnostic = match names.get(&name.text, name.span) {
            Some((Declared::Binding(i), declared)) => {
                self.refer(within, *i);
                let Some((_, step)) = steps.first() else { return Meaning::Binding(*i) };
                let message = format!("'{}' is not a topic and has no fields", name.text);
                Diagnostic::new(Code::NoFields, *step, message).label(*declared, "declared here")
            }
            Some((Declared::Definition(i), declared)) => {
                let message = format!("'{}' takes arguments", name.text);
                let call = &self.ast.definitions[*i].call;
                Diagnostic::new(Code::ArgumentCount, name.span, message)
                    .label(*declared, "declared here")
                    .help(format!("write `{call}`"))
            }
            Some((Declared::Topic(topic), declared)) => {
                if steps.is_empty() {
                    let message = format!("topic '{}' is not a value", name.text);
                    Diagnostic::new(Code::TopicIsNotAValue, name.span, message)
                        .label(*declared, "declared here")
                        .help(format!(
                            "name one of its fields, or write `on({})` for the arrival of a message",
                            name.text
                        ))
                } else {
                    return self.field(node, *topic, steps);
                }
            }
            None => self.undeclared(node, name, steps, within, names),
        };
        self.diagnostics.push(diagnostic);
        Meaning::Invalid
    }

    /// Returns the error for a path whose first word is not declared.
    fn undeclared(
        &self,
        node: NodeId,
        name: &Name,
        steps: &[(Segment, Span)],
        within: Option<usize>,
        names: &Names<'a>,
    ) -> Diagnostic {
        let what = if steps.is_empty() { "name" } else { "topic" };
        let code = if steps.is_empty() { Code::UnknownName } else { Code::UnknownTopic };
        let suggestion = self.suggestion(&name.text, name.span, names);
        let mut diagnostic =
            Diagnostic::new(code, name.span, format!("unknown {what} '{}'{suggestion}", name.text));
        let constant = match name.text.to_lowercase().as_str() {
            "true" => Some("write `true`"),
            "false" => Some("write `false`"),
            "null" | "none" | "nil" | "nan" => Some(
                "remove the comparison: a field without a value is unknown, and so is every expression that uses it",
            ),
            _ => None,
        };
        if let Some(help) = constant.filter(|_| steps.is_empty() && suggestion.is_empty()) {
            return diagnostic.help(help);
        }
        if let Some(help) = self.qualified(&name.text, name.span, Role::Value) {
            return diagnostic.help(help);
        }
        let compared = self.compared_field(node);
        if let Some(help) = self.constant_of_type(&name.text, compared).filter(|_| steps.is_empty()) {
            return diagnostic.help(help);
        }
        // A definition more often refers to a local name of another declaration.
        let field = || self.field_of_that_name(&name.text);
        let local = || self.local_of_that_name(&name.text);
        if let Some(help) = if within.is_some() { local().or_else(field) } else { field().or_else(local) } {
            diagnostic = diagnostic.help(help);
        } else if steps.is_empty() && self.ast.variables.iter().any(|l| l.text == name.text) {
            let help = "a variable of this name is visible only in the formula of its quantifier";
            diagnostic = diagnostic.help(help);
        } else if !steps.is_empty() && suggestion.is_empty() {
            diagnostic.help = self.declared_topics();
        } else if steps.is_empty()
            && suggestion.is_empty()
            && let Some(help) = self.compared_advice(node, &name.text)
        {
            diagnostic = diagnostic.help(help);
        } else if suggestion.is_empty() {
            diagnostic.help = self.visible_names(name.span, names);
        }
        diagnostic
    }

    /// Resolves a field of a topic.
    pub(super) fn field(&mut self, node: NodeId, topic: TopicId, steps: &[(Segment, Span)]) -> Meaning {
        if let Some(meaning) = self.parameter_of_address(topic, steps) {
            return meaning;
        }
        let declared = match self.fields(topic).map(|fields| fields.find_value(steps, self.span(node))) {
            None => None,
            Some(Ok(declared)) => declared,
            Some(Err(mut diagnostic)) => {
                let found = self.fields(topic).and_then(|fields| fields.find(steps, self.span(node)).ok());
                if let Some((SchemaType::Array(..), _)) = found {
                    diagnostic.help = self.array_advice(node).or(diagnostic.help);
                }
                match self.ast.given.get(&node) {
                    None => self.diagnostics.push(*diagnostic),
                    Some(given) => self.refuse_argument(*given, *diagnostic),
                }
                return Meaning::Invalid;
            }
        };
        Meaning::Field { topic, path: Path(steps.iter().map(|(step, _)| step.clone()).collect()), declared }
    }

    /// Reports an object that is an argument and lacks a field, once, where it is given.
    fn refuse_argument(&mut self, given: Span, mut diagnostic: Diagnostic) {
        if self.diagnostics.iter().any(|other| other.span == given) {
            return;
        }
        let read = std::mem::replace(&mut diagnostic.span, given);
        self.diagnostics.push(diagnostic.label(read, "read here"));
    }

    /// Resolves a parameter of an address, where the fields of the topic are not known. Elsewhere it is one of them.
    fn parameter_of_address(&mut self, topic: TopicId, steps: &[(Segment, Span)]) -> Option<Meaning> {
        let declared = self.ast.topics.get(topic.index()).filter(|topic| topic.schema.is_none())?;
        let (Segment::Key(key), _) = steps.first()? else { return None };
        let parameter = declared.parameters.iter().find(|parameter| *parameter.text == **key)?;
        if let Some((_, step)) = steps.get(1) {
            let message =
                format!("'{key}' is a parameter of an address, which is a string and has no fields");
            let diagnostic = Diagnostic::new(Code::NoFields, *step, message);
            self.diagnostics.push(diagnostic.label(parameter.span, "declared here"));
            return Some(Meaning::Invalid);
        }
        let path = Path(vec![Segment::Key(key.clone())]);
        Some(Meaning::Field { topic, path, declared: Some((ValueType::String, Some(parameter.span))) })
    }

    fn declared_topics(&self) -> Option<String> {
        let topics = list(self.ast.topics.iter().map(|topic| topic.name.text.as_str()))?;
        Some(format!("declared topics: {topics}"))
    }

    /// Returns the definitions and local names in scope.
    fn visible_names(&self, at: Span, names: &Names<'_>) -> Option<String> {
        let bindings = names.visible(at).filter(|(_, declared, _)| matches!(declared, Declared::Binding(_)));
        let mut visible: Vec<_> = bindings.map(|(name, _, span)| (span, name)).collect();
        visible.extend(self.locals.iter().map(|(name, (_, span))| (*span, *name)));
        visible.sort();
        match list(visible.into_iter().map(|(_, name)| name)) {
            Some(visible) => Some(format!("names in scope: {visible}; write a field as `topic.field`")),
            None => Some("write a field as `topic.field`".to_owned()),
        }
    }

    pub(super) fn fields(&self, topic: TopicId) -> Option<Fields<'a>> {
        let topic = self.ast.topics.get(topic.index())?;
        let schema = topic.schema.as_ref()?;
        Some(Fields { topic: &topic.name.text, schema, places: &topic.places })
    }

    pub(super) fn topic(&self, name: &Name, names: &Names<'_>) -> Result<TopicId, Box<Diagnostic>> {
        if self.ast.single {
            let only = &self.graph.spec().topics[0].name;
            if name.text == *only {
                return Ok(TopicId(0));
            }
            let message = format!("unknown topic '{}' in a single formula", name.text);
            return Err(Box::new(
                Diagnostic::new(Code::UnknownTopic, name.span, message)
                    .help(format!("a single formula has one topic, '{only}': write `on({only})`")),
            ));
        }
        match names.get(&name.text, name.span) {
            Some((Declared::Topic(topic), _)) => Ok(*topic),
            Some((Declared::Binding(_) | Declared::Definition(_), declared)) => {
                let message = format!("'{}' is not a topic", name.text);
                Err(Box::new(
                    Diagnostic::new(Code::UnknownTopic, name.span, message).label(*declared, "declared here"),
                ))
            }
            None => {
                let topics = self.ast.topics.iter().map(|topic| topic.name.text.as_str());
                let qualified = self.qualified(&name.text, name.span, Role::Value);
                let suggestion = match qualified {
                    Some(_) => String::new(),
                    None => did_you_mean(&name.text, topics),
                };
                let message = format!("unknown topic '{}'{suggestion}", name.text);
                let mut diagnostic = Diagnostic::new(Code::UnknownTopic, name.span, message);
                let topics = || self.declared_topics().filter(|_| suggestion.is_empty());
                diagnostic.help = qualified.or_else(|| self.machine_of_that_name(&name.text)).or_else(topics);
                Err(Box::new(diagnostic))
            }
        }
    }

    fn embedded(&mut self, node: NodeId, topic: Option<&Name>, body: Span, names: &Names<'_>) -> Meaning {
        let topic = match topic {
            Some(name) => self.topic(name, names),
            None if self.graph.spec().topics.len() == 1 => Ok(TopicId(0)),
            None => {
                let start = self.span(node).start;
                let message = match self.ast.topics.len() {
                    0 => "this formula has no topic, because none is declared",
                    _ => "this formula does not name its topic",
                };
                Err(Box::new(
                    Diagnostic::new(Code::UnclearTopic, Span::new(start, start + "rye".len()), message)
                        .help("declare the topic and write its name before the quotes: `rye gear\"{…}\"`"),
                ))
            }
        };
        let topic = match topic {
            Ok(topic) => topic,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                return Meaning::Invalid;
            }
        };
        // Errors are reported now; the nodes depend on the time model and are added later.
        let fields = self.fields(topic);
        let graph = &mut self.graph;
        let target = rye::Target { topic, fields, model: None, graph, diagnostics: self.diagnostics };
        match rye::formula(self.text, body, target) {
            Some(_) => Meaning::Formula { topic, bounds: rye::first_bounds(self.text, body) },
            None => Meaning::Invalid,
        }
    }

    /// Orders the bindings so that each follows those that it refers to.
    pub(super) fn order_bindings(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.references.len()];
        for start in 0..self.references.len() {
            if states[start] != State::New {
                continue;
            }
            // Each with the index of the next reference to follow.
            let mut open = vec![(start, 0)];
            states[start] = State::Open;
            while let Some((binding, next)) = open.last_mut() {
                let binding = *binding;
                let Some(&to) = self.references[binding].get(*next) else {
                    states[binding] = State::Done;
                    self.order.push(binding);
                    open.pop();
                    continue;
                };
                *next += 1;
                match states[to] {
                    State::New => {
                        states[to] = State::Open;
                        open.push((to, 0));
                    }
                    State::Done => {}
                    State::Open => {
                        let from = open.iter().position(|(b, _)| *b == to).unwrap_or(0);
                        let cycle: Vec<usize> = open[from..].iter().map(|(b, _)| *b).collect();
                        self.report_cycle(&cycle);
                    }
                }
            }
        }
    }

    fn report_cycle(&mut self, cycle: &[usize]) {
        let ast = self.ast;
        let Some((first, others)) = cycle.split_first() else { return };
        let name = &ast.bindings[*first].name;
        let message = match others.len() {
            0 => format!("the definition of '{}' refers to itself", name.text),
            _ => format!("the definition of '{}' refers to itself through other definitions", name.text),
        };
        let mut diagnostic = Diagnostic::new(Code::CyclicDefinition, name.span, message);
        for (i, other) in others.iter().enumerate() {
            let name = &ast.bindings[*other].name;
            let text = if i + 1 == others.len() {
                "refers to the first definition"
            } else {
                "through this definition"
            };
            diagnostic = diagnostic.label(name.span, text);
        }
        self.diagnostics.push(diagnostic.help("remove the cycle; `prev` and `previously` do not break it"));
        for binding in cycle {
            if let Some(root) = ast.bindings[*binding].body.root {
                self.meanings[root] = Meaning::Invalid;
            }
        }
    }
}
