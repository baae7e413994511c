//! Checks and translation of `for each`.

use std::collections::HashMap;

use rondel_event::{Path, TopicId, ValueType};

use super::kinds::Kind;
use super::names::Names;
use super::{Checker, Local, Meaning, attributes};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{Expr, ExprId, Key, Slice, SliceId, TimeModel};
use crate::syntax::ast::{Attribute, ForEach, Name, NodeId, Parameter};
use crate::type_names::article;

impl<'a> Checker<'a> {
    /// Resolves the fields of the parameters and the names in `until`. The parameters stay in scope until
    /// [`Checker::locals`] is cleared.
    pub(super) fn resolve_each(&mut self, each: Option<usize>, names: &Names<'a>) {
        let Some(index) = each else { return };
        let each: &'a ForEach = &self.ast.for_eaches[index];
        let mut first_fields: Vec<(TopicId, NodeId)> = Vec::new();
        for (i, parameter) in each.parameters.iter().enumerate() {
            let fields = self.resolve_parameter(parameter, Some((index, i)), names);
            if i == 0 {
                first_fields = fields;
            } else {
                self.same_topics(&each.parameters[0], &first_fields, parameter, &fields);
            }
            self.local(&parameter.name, Local::Parameter(index, i), names);
        }
        for node in each.until.iter().flat_map(|until| until.nodes()) {
            self.resolve(node, None, names);
        }
    }

    /// Declares a local name, which must not shadow another name.
    pub(super) fn local(&mut self, name: &'a Name, local: Local, names: &Names<'a>) {
        let outer = names.get(&name.text, name.span).map(|(_, span)| *span);
        let inner = self.locals.get(name.text.as_str()).map(|(_, span)| *span);
        match outer.or(inner) {
            Some(first) => self.declared_twice(name, first),
            None => {
                self.locals.insert(&name.text, (local, name.span));
            }
        }
    }

    pub(super) fn resolve_parameter(
        &mut self,
        parameter: &'a Parameter,
        place: Option<(usize, usize)>,
        names: &Names<'a>,
    ) -> Vec<(TopicId, NodeId)> {
        let mut fields: Vec<(TopicId, NodeId)> = Vec::new();
        for node in parameter.fields.iter().copied() {
            if !place.is_some_and(|(each, key)| self.resolve_element_name(node, parameter, each, key, names))
            {
                self.resolve(node, None, names);
            }
            let span = self.span(node);
            match &self.meanings[node] {
                Meaning::Field { topic, .. } => {
                    let topic = *topic;
                    if let Some((_, first)) = fields.iter().find(|(t, _)| *t == topic) {
                        let name = self.topic_name(topic);
                        let message =
                            format!("parameter '{}' has two fields in topic '{name}'", parameter.name.text);
                        let diagnostic = Diagnostic::new(Code::KeyTopics, span, message)
                            .label(self.span(*first), "first field")
                            .help("name one field per topic: a message belongs to one instance");
                        self.invalidate(node, diagnostic);
                    } else {
                        fields.push((topic, node));
                    }
                }
                Meaning::Invalid => {}
                _ => {
                    let message = format!("parameter '{}' is not read from a field", parameter.name.text);
                    let diagnostic = Diagnostic::new(Code::KeyTopics, span, message)
                        .help("name a field, such as `topic.id`");
                    self.invalidate(node, diagnostic);
                }
            }
        }
        fields
    }

    /// Reports parameters of one `for each` that have different topics.
    fn same_topics(
        &mut self,
        first: &Parameter,
        expected: &[(TopicId, NodeId)],
        parameter: &Parameter,
        found: &[(TopicId, NodeId)],
    ) {
        let broken = |c: &Self| parameter.fields.iter().chain(&first.fields).any(|node| c.is_invalid(*node));
        if broken(self) {
            return;
        }
        for (has, lacks, topics, others) in
            [(first, parameter, expected, found), (parameter, first, found, expected)]
        {
            let missing = topics.iter().find(|(topic, _)| others.iter().all(|(other, _)| other != topic));
            let Some((topic, node)) = missing else { continue };
            let topic = self.topic_name(*topic).to_owned();
            let message = format!(
                "parameter '{}' has no field in topic '{topic}', but parameter '{}' has one",
                lacks.name.text, has.name.text
            );
            let diagnostic = Diagnostic::new(Code::KeyTopics, lacks.name.span, message)
                .label(self.span(*node), format!("field of '{}'", has.name.text))
                .help(format!("add the field of '{topic}': `{} in (…, {topic}.{0})`", lacks.name.text));
            self.diagnostics.push(diagnostic);
            return;
        }
    }

    pub(super) fn topic_name(&self, topic: TopicId) -> &str {
        self.graph.spec().topics.get(topic.index()).map_or("?", |topic| &topic.name)
    }

    pub(super) fn infer_eaches(&mut self) {
        let ast = self.ast;
        for each in &ast.for_eaches {
            for parameter in &each.parameters {
                for node in &parameter.fields {
                    self.infer(*node);
                }
                if let Some((first, others)) = parameter.fields.split_first() {
                    others.iter().for_each(|other| self.same(*first, *other, *other));
                }
            }
        }
        for until in ast.for_eaches.iter().filter_map(|each| each.until) {
            self.infer_truth(until);
        }
    }

    /// Settles the types of the parameters.
    pub(super) fn settle_parameters(&mut self) {
        let ast = self.ast;
        let sound = !self.diagnostics.iter().any(Diagnostic::is_error);
        for (chain, parameter) in ast
            .for_eaches
            .iter()
            .flat_map(|each| each.parameters.iter().map(|parameter| (each.chain, parameter)))
        {
            // The stamp of a chain is a time by default.
            let guess = if chain { Kind::Time } else { Kind::Text };
            for node in parameter.fields.iter().copied() {
                if !self.is_invalid(node) && self.kinds.settle_parameter(node, guess) && !chain && sound {
                    let span = self.span(node);
                    let field = span.of(self.text);
                    let message = format!("cannot infer the type of '{field}': a string is assumed");
                    let help =
                        "declare the field in the schema of its topic, such as `topic name { field: int }`";
                    self.diagnostics.push(Diagnostic::new(Code::GuessedType, span, message).help(help));
                }
            }
        }
        for parameter in ast.for_eaches.iter().flat_map(|each| &each.parameters) {
            self.check_parameter_types(parameter);
        }
    }

    fn check_parameter_types(&mut self, parameter: &Parameter) {
        let fields: Vec<_> =
            parameter.fields.iter().filter_map(|node| Some((*node, self.field_of(*node)?.2))).collect();
        let Some((first, first_type)) = fields.first().copied() else { return };
        for (node, value_type) in fields {
            let diagnostic = if value_type == ValueType::Float {
                let message = format!("parameter '{}' cannot be a float", parameter.name.text);
                Diagnostic::new(Code::KeyType, self.span(node), message).help(
                    "use a string, an int, a bool, a time or a duration; floats are rarely exactly equal",
                )
            } else if value_type != first_type {
                let message = format!(
                    "parameter '{}' is {} here and {} elsewhere",
                    parameter.name.text,
                    article(value_type),
                    article(first_type)
                );
                Diagnostic::new(Code::KeyType, self.span(node), message)
                    .label(self.span(first), format!("{} here", article(first_type)))
            } else {
                continue;
            };
            self.invalidate(node, diagnostic);
        }
    }

    /// Returns the field of a node and its type.
    pub(super) fn field_of(&mut self, node: NodeId) -> Option<(TopicId, Path, ValueType)> {
        let Meaning::Field { topic, path, declared } = &self.meanings[node] else { return None };
        let (topic, path, declared) = (*topic, path.clone(), declared.map(|(t, _)| t));
        let value_type = match declared {
            Some(value_type) => value_type,
            None => match (self.kinds.settled(node), self.kinds.ints.contains(&(topic, path.clone()))) {
                (ValueType::Float, true) => ValueType::Int,
                (settled, _) => settled,
            },
        };
        Some((topic, path, value_type))
    }

    /// Returns the type of a parameter; none if it is invalid.
    pub(super) fn parameter_type(&mut self, each: usize, parameter: usize) -> Option<ValueType> {
        let node = *self.ast.for_eaches.get(each)?.parameters.get(parameter)?.fields.first()?;
        self.field_of(node).map(|(_, _, value_type)| value_type)
    }

    /// Returns the slice of a declaration; declarations with equal `for each` and limit share it.
    pub(super) fn lower_each(
        &mut self,
        each: Option<usize>,
        attributes: &[Attribute],
        model: TimeModel,
    ) -> Option<SliceId> {
        let index = each?;
        let until = match self.ast.for_eaches[index].until {
            Some(until) => Some(self.lower_root(until, model)?),
            None => None,
        };
        self.lower_parameters(index, until, attributes)
    }

    pub(super) fn lower_parameters(
        &mut self,
        each: usize,
        until: Option<ExprId>,
        attributes: &[Attribute],
    ) -> Option<SliceId> {
        let limit = attributes::limit(attributes);
        let mut keys = Vec::new();
        for parameter in &self.ast.for_eaches[each].parameters {
            let fields: Option<Vec<_>> = parameter.fields.iter().map(|node| self.field_of(*node)).collect();
            let fields = fields?;
            let value_type = fields.first()?.2;
            let fields = fields.into_iter().map(|(topic, path, _)| (topic, path)).collect();
            keys.push(Key { name: parameter.name.text.clone(), value_type, fields });
        }
        Some(self.slice(Slice { keys, until, limit }))
    }

    pub(super) fn slice(&mut self, slice: Slice) -> SliceId {
        let slices = &mut self.graph.spec_mut().slices;
        let index = slices.iter().position(|other| *other == slice).unwrap_or_else(|| {
            slices.push(slice);
            slices.len() - 1
        });
        SliceId(index as u32)
    }

    /// Returns whether the robustness of a property is requested.
    pub(super) fn robust(&mut self, attributes: &[Attribute], formula: ExprId) -> bool {
        let Some(attribute) = attributes::find(attributes, "robust") else { return false };
        if !self.compares_numbers(formula) {
            let message = "`@robust` has no effect, because this property compares no numbers";
            self.diagnostics.push(Diagnostic::new(Code::NothingToMeasure, attribute.span, message));
        }
        true
    }

    fn compares_numbers(&self, formula: ExprId) -> bool {
        let spec = self.graph.spec();
        let compares =
            |node: &Expr| matches!(node, Expr::Compare(_, a, _) if self.graph.value_type(*a).is_number());
        spec.below(formula).any(|(_, node)| compares(node))
    }

    fn reads_parameter(&self, formula: ExprId) -> bool {
        self.graph.spec().below(formula).any(|(_, node)| matches!(node, Expr::Key(..)))
    }

    /// Warns about a property that reads neither a parameter nor a topic of one.
    pub(super) fn warn_of_unused_parameter(&mut self, slice: SliceId, name: &Name, formula: ExprId) {
        let spec = self.graph.spec();
        let Some(parameter) = spec.slices.get(slice.0 as usize).and_then(|slice| slice.keys.first()) else {
            return;
        };
        let mut topics = spec.topics_of(formula);
        let of_one = spec.events_read(formula).into_iter().filter(|(_, event)| event.has_key());
        topics.extend(of_one.map(|(topic, _)| topic));
        if parameter.fields.iter().any(|(topic, _)| topics.contains(topic)) || self.reads_parameter(formula) {
            return;
        }
        let named: Vec<_> =
            parameter.fields.iter().map(|(topic, _)| format!("'{}'", self.topic_name(*topic))).collect();
        let message = format!(
            "'{}' does not read {}, so its verdict is the same for every '{}'",
            name.text,
            named.join(" or "),
            parameter.name
        );
        self.diagnostics.push(Diagnostic::new(Code::IdleKey, name.span, message));
    }
}

/// The names that are local to a declaration.
pub(super) type Locals<'a> = HashMap<&'a str, (Local, crate::diagnostic::Span)>;
