//! Collects the names of a syntax tree.

mod declarations;

use std::collections::HashMap;
use std::rc::Rc;

use rondel_event::Segment;

use super::{Outline, SymbolKind, is_name};
use crate::attributes::CAUSE;
use crate::check;
use crate::definition::Definitions;
use crate::diagnostic::Span;
use crate::sources::Sources;
use crate::syntax::ast::{Ast, BoundKind, Content, ContentKind, ForEach, Name, NodeKind, Test};
use crate::syntax::elements::ElementsSyntax;
use crate::syntax::{self, Mark, ast};

pub(super) fn outline(sources: &Sources, types: Option<&dyn Definitions>) -> Outline {
    let (text, files) = (sources.text(), sources.spans());
    // Mistakes are reported by those who check.
    let modules = Rc::new(sources.modules(&mut Vec::new()));
    let ast = syntax::parse_files(text, &files, modules.clone(), &mut Vec::new());
    // Here the constants of message types are values and have no names any more.
    let mut typed = syntax::parse_files(text, &files, modules, &mut Vec::new());
    check::define(&mut typed, types, &mut Vec::new());
    let mut collector = Collector {
        text,
        ast: &ast,
        typed: &typed,
        wholes: files.iter().flat_map(|file| wholes(text, *file)).collect(),
        outline: Outline::default(),
        globals: HashMap::new(),
        properties: HashMap::new(),
        states: HashMap::new(),
        fields: HashMap::new(),
        parameters: HashMap::new(),
        scopes: vec![Scope::new()],
    };
    collector.declare();
    collector.follow();
    let mut outline = collector.outline;
    outline.uses.sort_unstable();
    outline.uses.dedup_by_key(|(span, _)| *span);
    outline
}

/// The declarations of a file, each with its attributes.
fn wholes(text: &str, file: Span) -> Vec<Span> {
    let (tokens, marks) = syntax::marks(file.of(text), &mut Vec::new());
    let mut starts: Vec<usize> =
        marks.iter().filter(|(_, mark)| *mark == Mark::Declaration).map(|(token, _)| *token).collect();
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([tokens.len().saturating_sub(1)]);
    let whole = |(start, end): (&usize, usize)| {
        let (first, last) = (tokens.get(*start)?, tokens.get(end.checked_sub(1)?)?);
        Some(Span::new(file.start + first.span.start, file.start + last.span.end.max(first.span.end)))
    };
    starts.iter().zip(ends).filter_map(whole).collect()
}

/// The local names of a declaration, with their symbols.
type Scope<'a> = HashMap<&'a str, usize>;

struct Collector<'a> {
    text: &'a str,
    ast: &'a Ast,
    /// The same with the fields of message types.
    typed: &'a Ast,
    /// The spans of the declarations.
    wholes: Vec<Span>,
    outline: Outline,
    /// Topics and definitions.
    globals: HashMap<&'a str, usize>,
    /// Properties, asserts, chains and machines.
    properties: HashMap<&'a str, usize>,
    /// The states, by the symbol of their machine.
    states: HashMap<(usize, &'a str), usize>,
    /// The parameters of definitions, by the name of the definition.
    parameters: HashMap<(&'a str, &'a str), usize>,
    /// The fields, by the symbol of their topic and their path.
    fields: HashMap<(usize, String), usize>,
    /// The first one is empty.
    scopes: Vec<Scope<'a>>,
}

impl<'a> Collector<'a> {
    /// Adds the uses of the names.
    fn follow(&mut self) {
        let ast = self.ast;
        // The scope of each node, by index in `scopes`.
        let mut scopes = vec![0; ast.nodes.len()];
        let enter = |scopes: &mut Vec<usize>, body: ast::Body, scope: usize| {
            body.nodes().filter_map(|node| scopes.get_mut(node).map(|own| *own = scope)).count();
        };
        let owner = |this: &Self, name: &Name| this.properties.get(name.text.as_str()).copied();
        for property in &ast.properties {
            let owner = owner(self, &property.name);
            let scope = self.each_parameters(property.each, owner);
            self.scopes.push(scope);
            enter(&mut scopes, property.body, self.scopes.len() - 1);
        }
        for machine in &ast.machines {
            let owner = owner(self, &machine.name);
            let mut scope = self.each_parameters(machine.each, owner);
            for variable in &machine.variables {
                let detail = format!("variable {} of {}", variable.name.text, machine.name.text);
                let symbol = self.add(SymbolKind::Variable, &variable.name, owner, detail);
                scope.insert(&variable.name.text, symbol);
            }
            let assigned = machine.transitions.iter().flat_map(|transition| &transition.assignments);
            for (name, _) in assigned {
                self.name_in(name, &scope);
            }
            machine.bounds().for_each(|bound| self.bound(bound));
            self.scopes.push(scope);
            machine.bodies().for_each(|body| enter(&mut scopes, body, self.scopes.len() - 1));
        }
        self.chains();
        // The name of a property stands alone in an assert, where topics do not.
        let properties: Scope<'a> = self
            .properties
            .iter()
            .filter(|(name, _)| !self.globals.contains_key(*name))
            .map(|(n, s)| (*n, *s))
            .collect();
        self.scopes.push(properties);
        for assert in &ast.asserts {
            enter(&mut scopes, assert.body, self.scopes.len() - 1);
            if let ast::Demanded::Longest(_, bound) = &assert.demand {
                self.bound(bound);
            }
            assert.span.iter().flat_map(|(begin, end)| [begin, end]).for_each(|bound| self.bound(bound));
        }
        let variables: Vec<usize> = ast
            .variables
            .iter()
            .map(|name| {
                let detail = format!("variable {}", name.text);
                let symbol = self.add(SymbolKind::Parameter, name, None, detail);
                // It is part of a declaration, of which nothing more is needed.
                self.outline.symbols[symbol].doc.clear();
                symbol
            })
            .collect();
        for (index, node) in ast.nodes.iter().enumerate() {
            let is_expanded = ast.expanded.contains(&index);
            // The name of an element is declared once, in the definition.
            if is_expanded && matches!(node.kind, NodeKind::Elements(_)) {
                continue;
            }
            let scope = if is_expanded { 0 } else { scopes[index] };
            self.node(&node.kind, node.span, scope, &variables);
        }
        for node in ast.definitions.iter().flat_map(|definition| &definition.nodes) {
            self.node(&node.kind, node.span, 0, &[]);
        }
        ast.calls.iter().for_each(|call| self.global(call));
        for (definition, name) in &ast.parameter_uses {
            if let Some(symbol) = self.parameters.get(&(definition.as_str(), name.text.as_str())).copied() {
                self.add_use(name.span, &name.text, symbol);
            }
        }
        ast.tests.iter().for_each(|test| self.test(test));
        self.causes();
    }

    /// Adds the uses of names in chains.
    fn chains(&mut self) {
        let ast = self.ast;
        for chain in &ast.chains {
            chain.topics.iter().for_each(|topic| self.global(topic));
            chain
                .bounds
                .iter()
                .map(|further| &further.bound)
                .chain([&chain.within])
                .for_each(|bound| self.bound(bound));
            let owner = self.properties.get(chain.name.text.as_str()).copied();
            self.each_parameters(Some(chain.each), owner);
        }
    }

    /// Adds the uses of properties in attributes.
    fn causes(&mut self) {
        let ast = self.ast;
        let of_properties = ast.properties.iter().flat_map(|property| &property.attributes);
        let of_machines = ast.machines.iter().flat_map(|machine| &machine.attributes);
        let of_chains = ast.chains.iter().flat_map(|chain| &chain.attributes);
        for attribute in of_properties.chain(of_machines).chain(of_chains) {
            if attribute.name.text == CAUSE
                && let Some(span) = attribute.argument
                && let Some(symbol) = self.properties.get(attribute.value.as_str()).copied()
            {
                self.add_use(span, &attribute.value, symbol);
            }
        }
    }

    /// The parameters of a `for each`.
    fn each_parameters(&mut self, each: Option<usize>, owner: Option<usize>) -> Scope<'a> {
        let each: Option<&'a ForEach> = each.and_then(|each| self.ast.for_eaches.get(each));
        let mut scope = Scope::new();
        for parameter in each.iter().flat_map(|each| &each.parameters) {
            let detail = format!("parameter {}", parameter.name.text);
            let symbol = self.add(SymbolKind::Parameter, &parameter.name, owner, detail);
            scope.insert(&parameter.name.text, symbol);
        }
        scope
    }

    /// Adds the use of a symbol, unless the text there is another one: that of a parameter that stands for it.
    fn add_use(&mut self, span: Span, name: &str, symbol: usize) {
        let written = span.of(self.text);
        // Of `limits.near`, and of `near` in the file that is imported as `limits`, the last word.
        let last = |text: &str| text.rsplit('.').next().unwrap_or("").len();
        let (from, to) = (written.len() - last(written), name.len() - last(name));
        if written == name && from == 0 || written[from..] == name[to..] && is_name(&written[from..]) {
            self.outline.uses.push((Span::new(span.start + from, span.end), symbol));
        }
    }

    fn global(&mut self, name: &Name) {
        if let Some(symbol) = self.globals.get(name.text.as_str()) {
            self.add_use(name.span, &name.text, *symbol);
        }
    }

    fn name_in(&mut self, name: &Name, scope: &Scope<'_>) {
        match scope.get(name.text.as_str()) {
            Some(symbol) => self.add_use(name.span, &name.text, *symbol),
            None => self.global(name),
        }
    }

    fn bound(&mut self, bound: &ast::Bound) {
        if let BoundKind::Name(text) = &bound.kind {
            self.global(&Name { text: text.clone(), span: bound.span });
        }
    }

    /// Adds the uses of a topic and of the fields of a path in it.
    fn path(&mut self, topic: &Name, steps: &[(Segment, Span)]) {
        self.global(topic);
        if let Some(symbol) = self.globals.get(topic.text.as_str()).copied() {
            self.fields_of(symbol, &mut String::new(), steps);
        }
    }

    /// Adds the uses of the fields of a path behind another path in a topic.
    fn fields_of(&mut self, symbol: usize, path: &mut String, steps: &[(Segment, Span)]) {
        for (step, span) in steps {
            match step {
                Segment::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                    if let Some(field) = self.fields.get(&(symbol, path.clone())).copied() {
                        self.add_use(*span, key, field);
                    }
                }
                Segment::Index(_) | Segment::FromEnd(_) | Segment::Named(_) => path.push_str("[]"),
            }
        }
    }

    /// Adds the uses of parameters as names of elements: `joints.position[name == j]`.
    fn names_of_elements(&mut self, steps: &[(Segment, Span)], scope: usize) {
        for (step, span) in steps {
            let Segment::Named(named) = step else { continue };
            let Some(parameter) = named.parameter.as_deref() else { continue };
            if let Some(symbol) = self.scopes.get(scope).and_then(|scope| scope.get(parameter)).copied() {
                self.add_use(Span::new(span.end - parameter.len(), span.end), parameter, symbol);
            }
        }
    }

    /// Adds the name of an element, and the uses of it and of its fields in the conditions.
    fn elements(&mut self, ElementsSyntax { array, steps, element, tests, .. }: &ElementsSyntax) {
        self.path(array, steps);
        let Some(element) = element else { return };
        let topic = self.globals.get(array.text.as_str()).copied();
        let mut path = String::new();
        if let Some(topic) = topic {
            self.fields_of(topic, &mut path, steps);
            path.push_str("[]");
        }
        let detail = format!("element {}", element.text);
        let symbol = self.add(SymbolKind::Parameter, element, None, detail);
        self.outline.symbols[symbol].doc.clear();
        for test in tests {
            let name = Span::new(test.span.start, test.span.start + element.text.len());
            self.add_use(name, &element.text, symbol);
            if let Some(topic) = topic {
                self.fields_of(topic, &mut path.clone(), &test.steps);
            }
        }
    }

    fn node(&mut self, kind: &NodeKind, span: Span, scope: usize, variables: &[usize]) {
        match kind {
            NodeKind::Path(name, steps) if steps.is_empty() => {
                let local = self.scopes.get(scope).and_then(|scope| scope.get(name.text.as_str()));
                match local.copied() {
                    Some(symbol) => self.add_use(name.span, &name.text, symbol),
                    None => self.global(name),
                }
            }
            NodeKind::Path(name, steps)
            | NodeKind::Length(name, steps)
            | NodeKind::Number(name, steps)
            | NodeKind::AtomField(name, steps) => {
                self.path(name, steps);
                self.names_of_elements(steps, scope);
            }
            NodeKind::Elements(elements) => {
                self.elements(elements);
                self.names_of_elements(&elements.steps, scope);
            }
            NodeKind::On(name)
            | NodeKind::Event(_, name)
            | NodeKind::Samples(name)
            | NodeKind::Atom { topic: name, .. }
            | NodeKind::Rye { topic: Some(name), .. } => self.global(name),
            NodeKind::Measure(_, name) => match self.properties.get(name.text.as_str()).copied() {
                Some(chain) if !self.globals.contains_key(name.text.as_str()) => {
                    self.add_use(name.span, &name.text, chain);
                }
                _ => self.global(name),
            },
            NodeKind::In(machine, states) => {
                let Some(symbol) = self.properties.get(machine.text.as_str()).copied() else { return };
                self.add_use(machine.span, &machine.text, symbol);
                for state in states {
                    if let Some(found) = self.states.get(&(symbol, state.text.as_str())).copied() {
                        self.add_use(state.span, &state.text, found);
                    }
                }
            }
            NodeKind::Variable(index) => {
                if let (Some(symbol), Some(name)) = (variables.get(*index), self.ast.variables.get(*index)) {
                    self.add_use(span, &name.text, *symbol);
                }
            }
            _ => {}
        }
        kind.reaches().for_each(|bound| self.bound(bound));
    }

    fn test(&mut self, test: &Test) {
        for message in &test.messages {
            self.path(&message.topic, &[]);
            if let Some(topic) = self.globals.get(message.topic.text.as_str()).copied() {
                self.content(&message.content, Some((topic, "")));
            }
            message.publisher.iter().for_each(|publisher| self.content(publisher, None));
        }
        for expectation in &test.expectations {
            if let Some(symbol) = self.properties.get(expectation.property.text.as_str()).copied() {
                self.add_use(expectation.property.span, &expectation.property.text, symbol);
            }
            expectation.values.iter().for_each(|value| self.content(value, None));
        }
    }

    /// Adds the uses in a value of a test, which stands for a topic or for a path in it.
    fn content(&mut self, content: &Content, at: Option<(usize, &str)>) {
        match &content.kind {
            ContentKind::Name(name) => self.global(&Name { text: name.clone(), span: content.span }),
            ContentKind::Constant(owner, _) => self.global(owner),
            ContentKind::Array(elements) => {
                let path = at.map(|(topic, path)| (topic, format!("{path}[]")));
                for element in elements {
                    self.content(element, path.as_ref().map(|(topic, path)| (*topic, path.as_str())));
                }
            }
            ContentKind::Object(fields) => {
                for (name, value) in fields {
                    let path = at.map(|(topic, path)| match path {
                        "" => (topic, name.text.clone()),
                        _ => (topic, format!("{path}.{}", name.text)),
                    });
                    if let Some(field) = path.as_ref().and_then(|key| self.fields.get(key)).copied() {
                        self.add_use(name.span, &name.text, field);
                    }
                    self.content(value, path.as_ref().map(|(topic, path)| (*topic, path.as_str())));
                }
            }
            ContentKind::Null | ContentKind::Value(_) => {}
        }
    }
}
