//! Symbols of the declarations.

use rondel_event::ValueType;

use super::Collector;
use crate::diagnostic::Span;
use crate::outline::{Symbol, SymbolKind, constant_text, type_text};
use crate::spec::{Schema, SchemaType};
use crate::syntax::ast::{self, Name};

impl<'a> Collector<'a> {
    pub(super) fn add(
        &mut self,
        kind: SymbolKind,
        name: &Name,
        owner: Option<usize>,
        detail: String,
    ) -> usize {
        let symbol = self.outline.symbols.len();
        let span = name.span;
        let index = self.wholes.partition_point(|whole| whole.start <= span.start);
        let whole = index.checked_sub(1).and_then(|index| self.wholes.get(index));
        let whole = whole.copied().filter(|whole| whole.end >= span.end).unwrap_or(span);
        let doc = if owner.is_none() { comment_above(self.text, whole.start) } else { String::new() };
        // A chain may be called as its topics are listed, and a test by a text in quotes.
        let prefix = self.ast.modules.prefix(span.start);
        let text = name.text.strip_prefix(prefix).unwrap_or(&name.text);
        let is_written = span.of(self.text) == text;
        self.outline.uses.extend(is_written.then_some((span, symbol)));
        let (name, span) = (text.to_owned(), Some(span));
        self.outline.symbols.push(Symbol {
            kind,
            name,
            module: prefix.trim_end_matches('.').to_owned(),
            span,
            whole,
            owner,
            detail,
            doc,
            is_external: !is_written,
        });
        symbol
    }

    pub(super) fn declare(&mut self) {
        let ast = self.ast;
        let main = self.text.len();
        for (alias, uses) in &ast.aliases {
            let symbol = self.add(SymbolKind::Import, alias, None, String::new());
            self.outline.uses.extend(uses.iter().map(|span| (*span, symbol)));
            let names = ast.modules.names_of(main, &alias.text);
            let row = |(name, full)| (alias.text.clone(), name, full);
            self.outline.imports.extend(names.into_iter().map(row));
        }
        self.outline.imports.sort();
        self.outline.imports.dedup();
        for (topic, typed) in ast.topics.iter().zip(&self.typed.topics) {
            let symbol = self.add(SymbolKind::Topic, &topic.name, None, String::new());
            // Without an address its name is the address.
            self.outline.symbols[symbol].is_external |= topic.address.is_none();
            self.globals.entry(&topic.name.text).or_insert(symbol);
            // A topic without a schema still has the parameters of its address.
            let parameter = |name: &Name| (name.text.clone(), SchemaType::Value(ValueType::String));
            let parameters = || Schema { fields: topic.parameters.iter().map(parameter).collect() };
            let has_parameters = !topic.parameters.is_empty();
            let schema = typed.schema.clone().or_else(|| has_parameters.then(parameters));
            if let Some(schema) = &schema {
                self.declare_fields(symbol, topic, schema, String::new());
            }
            self.outline.topics.push((topic.name.text.clone(), schema));
            for constant in typed.definition.iter().flat_map(|definition| &definition.constants) {
                let row = (constant.owner.clone(), constant.name.clone(), constant_text(&constant.value));
                if !self.outline.constants.contains(&row) {
                    self.outline.constants.push(row);
                }
            }
        }
        self.outline.constants.sort();
        for binding in &ast.bindings {
            let kind = if binding.constant { SymbolKind::Constant } else { SymbolKind::Definition };
            let symbol = self.add(kind, &binding.name, None, String::new());
            self.globals.entry(&binding.name.text).or_insert(symbol);
        }
        for definition in &ast.definitions {
            let symbol = self.add(SymbolKind::Definition, &definition.name, None, definition.call.clone());
            let is_first = *self.globals.entry(&definition.name.text).or_insert(symbol) == symbol;
            for parameter in definition.parameters.iter().filter(|_| is_first) {
                let detail = format!("parameter {} of {}", parameter.text, definition.name.text);
                let own = self.add(SymbolKind::Parameter, parameter, Some(symbol), detail);
                self.parameters.insert((&definition.name.text, &parameter.text), own);
            }
        }
        for property in &ast.properties {
            let symbol = self.add(SymbolKind::Property, &property.name, None, String::new());
            self.properties.entry(&property.name.text).or_insert(symbol);
        }
        for machine in &ast.machines {
            let symbol = self.add(SymbolKind::Machine, &machine.name, None, String::new());
            self.properties.entry(&machine.name.text).or_insert(symbol);
            self.declare_states(symbol, machine);
        }
        for chain in &ast.chains {
            let symbol = self.add(SymbolKind::Chain, &chain.name, None, String::new());
            self.properties.entry(&chain.name.text).or_insert(symbol);
            for ast::ChainBound { name, .. } in &chain.bounds {
                // The bound itself has the name of the chain.
                if name.span != chain.name.span {
                    let bound = self.add(SymbolKind::Chain, name, Some(symbol), name.text.clone());
                    self.properties.entry(&name.text).or_insert(bound);
                }
            }
        }
        for assert in ast.asserts.iter().filter(|assert| assert.is_named) {
            let symbol = self.add(SymbolKind::Assert, &assert.name, None, String::new());
            self.properties.entry(&assert.name.text).or_insert(symbol);
        }
        for test in &ast.tests {
            let name = Name { text: test.name.clone(), span: test.span };
            self.add(SymbolKind::Test, &name, None, String::new());
        }
    }

    fn declare_fields(&mut self, topic: usize, syntax: &ast::Topic, schema: &Schema, prefix: String) {
        for (name, field) in &schema.fields {
            let parameter =
                syntax.parameters.iter().find(|parameter| prefix.is_empty() && parameter.text == *name);
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let detail = format!("{}.{path}: {}", syntax.name.text, type_text(field));
            let place = syntax.places.get(&path);
            let span = match parameter {
                Some(parameter) => Some(parameter.span),
                None => place.and_then(|place| name_before(self.text, place.start, name)),
            };
            let written = Name { text: path.clone(), span: span.unwrap_or(syntax.name.span) };
            let symbol = self.add(SymbolKind::Field, &written, Some(topic), detail);
            let added = &mut self.outline.symbols[symbol];
            (added.span, added.is_external) = (span, true);
            // Only a field of the topic itself is written with its whole path.
            self.outline.uses.pop_if(|(_, last)| *last == symbol);
            self.outline.uses.extend(span.map(|span| (span, symbol)));
            self.fields.insert((topic, path.clone()), symbol);
            let (mut inner, mut path) = (field, path);
            while let SchemaType::Array(element, _) = inner {
                inner = element;
                path.push_str("[]");
            }
            if let SchemaType::Object(schema) | SchemaType::Stamp(_, schema) = inner {
                self.declare_fields(topic, syntax, schema, path);
            }
        }
    }

    fn declare_states(&mut self, machine: usize, syntax: &'a ast::Machine) {
        let ends = syntax.transitions.iter().flat_map(|transition| [&transition.from, &transition.to]);
        let errors = syntax.errors.iter().flat_map(|error| &error.states);
        for state in
            syntax.states.iter().chain(&syntax.initial).chain(ends).chain(errors).chain(&syntax.finals)
        {
            match self.states.get(&(machine, state.text.as_str())) {
                Some(symbol) => self.outline.uses.push((state.span, *symbol)),
                None => {
                    let detail = format!("state {} of {}", state.text, syntax.name.text);
                    let symbol = self.add(SymbolKind::State, state, Some(machine), detail);
                    self.states.insert((machine, &state.text), symbol);
                }
            }
        }
    }
}

/// Span of the name of a field, before the colon and the type.
fn name_before(text: &str, type_start: usize, name: &str) -> Option<Span> {
    let before = text.get(..type_start)?.trim_end().strip_suffix(':')?.trim_end();
    // A name in quotes may contain escapes.
    before.ends_with(name).then(|| Span::new(before.len() - name.len(), before.len()))
}

/// The comment in the lines above a declaration, without its marks.
fn comment_above(text: &str, start: usize) -> String {
    let above = text.get(..start).unwrap_or("");
    let Some(above) = above.trim_end_matches([' ', '\t']).strip_suffix('\n') else { return String::new() };
    let comment = |line: &'_ str| {
        let line = line.trim();
        let inner = line.strip_prefix("//").or_else(|| line.strip_prefix('#'))?;
        Some(inner.strip_prefix(' ').unwrap_or(inner).to_owned())
    };
    let mut lines: Vec<String> = above.split('\n').rev().map_while(comment).collect();
    lines.reverse();
    lines.join("\n")
}
