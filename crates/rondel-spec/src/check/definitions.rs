//! Topics with the name of a message type: their fields and constants come from its definition.

use std::collections::HashSet;

use rondel_event::{Segment, ValueType};

use crate::definition::{Definition, Definitions, NoDefinition};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::SchemaType;
use crate::suggest::{did_you_mean, ending, nearest, unknown};
use crate::syntax::ast::{Ast, Content, ContentKind, NodeKind, Topic};

/// Gives topics the fields of their types, and replaces names of constants by their values. Without `types`, names of
/// types are only recorded.
pub(crate) fn define(ast: &mut Ast, types: Option<&dyn Definitions>, diagnostics: &mut Vec<Diagnostic>) {
    let mut known: Vec<Option<Definition>> = Vec::with_capacity(ast.topics.len());
    for topic in &mut ast.topics {
        let (Some(name), Some(types)) = (&topic.type_name, types) else {
            known.push(None);
            continue;
        };
        known.push(match types.definition(&name.text) {
            Ok(found) => {
                // Fields that are written in place take precedence: the messages may be another form of the type.
                if topic.schema.is_none() {
                    topic.schema = Some(found.schema.clone());
                    topic.definition = Some(found.clone());
                }
                Some(found)
            }
            Err(problem) => {
                diagnostics.extend(diagnose(&name.text, name.span, problem, topic.schema.is_some()));
                None
            }
        });
    }
    for topic in &mut ast.topics {
        diagnostics.extend(add_parameters(topic));
    }
    let mut constants = Constants { ast_names: names(ast), known, diagnostics };
    let topics: Vec<String> = ast.topics.iter().map(|topic| topic.name.text.clone()).collect();
    for node in &mut ast.nodes {
        let NodeKind::Path(name, steps) = &node.kind else { continue };
        let [(Segment::Key(constant), span)] = &steps[..] else { continue };
        match constants.value(&topics, &name.text, constant, *span) {
            None => {}
            Some(Some(value)) => node.kind = NodeKind::Literal(value),
            Some(None) => node.kind = NodeKind::Invalid,
        }
    }
    let contents = ast.tests.iter_mut().flat_map(|test| {
        let messages = test.messages.iter_mut();
        let messages = messages
            .flat_map(|message| std::iter::once(&mut message.content).chain(message.publisher.as_mut()));
        messages.chain(test.expectations.iter_mut().flat_map(|expectation| &mut expectation.values))
    });
    contents.for_each(|content| constants.replace(&topics, content));
}

/// Adds the parameters of the address to the fields of a topic, where these are known. Elsewhere they are found by name.
fn add_parameters(topic: &mut Topic) -> Vec<Diagnostic> {
    let Some(schema) = &mut topic.schema else { return Vec::new() };
    let mut diagnostics = Vec::new();
    for parameter in &topic.parameters {
        if schema.fields.iter().any(|(name, _)| *name == parameter.text) {
            let message =
                format!("parameter '{}' of the address is also a field of the messages", parameter.text);
            let mut diagnostic = Diagnostic::new(Code::DuplicateName, parameter.span, message);
            if let Some(field) = topic.places.get(&parameter.text) {
                diagnostic = diagnostic.label(*field, "the field is declared here");
            }
            diagnostics.push(diagnostic.help("give the parameter another name"));
            continue;
        }
        topic.places.insert(parameter.text.clone(), parameter.span);
        schema.fields.push((parameter.text.clone(), SchemaType::Value(ValueType::String)));
    }
    diagnostics
}

/// The names of topics, constants and definitions, which hide names of types.
fn names(ast: &Ast) -> HashSet<String> {
    let topics = ast.topics.iter().map(|topic| &topic.name);
    topics.chain(ast.bindings.iter().map(|binding| &binding.name)).map(|name| name.text.clone()).collect()
}

fn diagnose(name: &str, span: Span, problem: NoDefinition, has_schema: bool) -> Option<Diagnostic> {
    match problem {
        NoDefinition::NotInPackage { types } => {
            let diagnostic =
                Diagnostic::new(Code::UnknownType, span, format!("unknown message type '{name}'"));
            let types: Vec<&str> = types.iter().map(String::as_str).collect();
            let package = name.split(['/', '.']).next().unwrap_or(name);
            Some(unknown(diagnostic, name, &types, &format!("message types of {package}")))
        }
        NoDefinition::Invalid(reason) => {
            let message = format!("the definition of '{name}' cannot be used: {reason}");
            Some(Diagnostic::new(Code::UnknownType, span, message))
        }
        NoDefinition::UnknownPackage { .. } if has_schema => None,
        NoDefinition::UnknownPackage { alike } => {
            let suggestion = did_you_mean(name, alike.iter().map(String::as_str));
            let message =
                format!("no definition of '{name}' is known, so its fields are not checked{suggestion}");
            let help = "name the file or folder that defines it with `--schemas PATH`, or with `schemas:` in the \
                        deployment";
            Some(Diagnostic::new(Code::UndefinedType, span, message).help(help))
        }
    }
}

/// The constants of the types of all topics.
struct Constants<'d> {
    ast_names: HashSet<String>,
    known: Vec<Option<Definition>>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl Constants<'_> {
    /// Returns the value of `owner.name` if that is a constant; `Some(None)` if it should be one, which is reported.
    fn value(
        &mut self,
        topics: &[String],
        owner: &str,
        name: &str,
        span: Span,
    ) -> Option<Option<rondel_event::Value>> {
        if let Some(topic) = topics.iter().position(|topic| topic == owner) {
            // A field of the topic's messages hides a constant of its type.
            let found = self.known.get(topic)?.as_ref()?;
            if found.schema.fields.iter().any(|(field, _)| field == name) {
                return None;
            }
            let own = found.constants.iter().filter(|constant| constant.owner == found.short_name);
            if let Some(constant) = own.clone().find(|constant| constant.name == name) {
                return Some(Some(constant.value.clone()));
            }
            let fields = found.schema.fields.iter().map(|(field, _)| field.as_str());
            if nearest(name, fields).is_some() {
                return None;
            }
            let meant = nearest(name, own.map(|constant| constant.name.as_str()))?;
            let message =
                format!("unknown field or constant '{name}' of topic '{owner}'; did you mean '{meant}'?");
            self.diagnostics.push(Diagnostic::new(Code::UnknownField, span, message));
            return Some(None);
        }
        if self.ast_names.contains(owner) {
            return None;
        }
        let types = self.known.iter().flatten();
        if !types.clone().any(|found| found.has_owner(owner)) {
            return None;
        }
        let of_owner = types.flat_map(|found| &found.constants).filter(|constant| constant.owner == owner);
        if let Some(constant) = of_owner.clone().find(|constant| constant.name == name) {
            return Some(Some(constant.value.clone()));
        }
        let mut names: Vec<&str> = Vec::new();
        for constant in of_owner {
            if !names.contains(&constant.name.as_str()) {
                names.push(&constant.name);
            }
        }
        let diagnostic =
            Diagnostic::new(Code::UnknownName, span, format!("unknown constant '{name}' of '{owner}'"));
        if let Some(meant) = ending(name, None, names.iter().copied()) {
            let message = format!("{}; did you mean '{meant}'?", diagnostic.message);
            self.diagnostics.push(Diagnostic { message, ..diagnostic });
            return Some(None);
        }
        let described = format!("constants of '{owner}'");
        let mut diagnostic = unknown(diagnostic, name, &names, &described);
        if names.is_empty() {
            diagnostic = diagnostic.help(format!("'{owner}' is a message type without constants"));
        }
        self.diagnostics.push(diagnostic);
        Some(None)
    }

    /// Replaces the constants in a message of a test.
    fn replace(&mut self, topics: &[String], content: &mut Content) {
        match &mut content.kind {
            ContentKind::Array(elements) => elements.iter_mut().for_each(|e| self.replace(topics, e)),
            ContentKind::Object(fields) => fields.iter_mut().for_each(|(_, f)| self.replace(topics, f)),
            ContentKind::Constant(owner, name) => {
                let value = self.value(topics, &owner.text, &name.text, name.span);
                if value.is_none() {
                    let message = format!("unknown constant '{}.{}'", owner.text, name.text);
                    let help = "write `Type.NAME` for a constant of a message type, or a value";
                    let span = owner.span.to(name.span);
                    self.diagnostics.push(Diagnostic::new(Code::UnknownName, span, message).help(help));
                }
                content.kind = match value.flatten() {
                    Some(value) => ContentKind::Value(value),
                    None => ContentKind::Null,
                };
            }
            ContentKind::Null | ContentKind::Value(_) | ContentKind::Name(_) => {}
        }
    }
}

impl Definition {
    fn has_owner(&self, name: &str) -> bool {
        self.short_name == name || self.constants.iter().any(|constant| constant.owner == name)
    }
}
