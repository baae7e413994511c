//! Checks and translation of tests.

use std::fmt::Write as _;

use rondel_event::terminal::is_obeyed;
use rondel_event::{Segment, Timestamp, TopicId, Value, ValueType};

use super::Checker;
use super::names::Names;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::fields::unknown_field;
use crate::spec::{Expectation, SchemaType, Test, TestMessage, TimeModel};
use crate::suggest::unknown;
use crate::syntax::ast::{self, Content, ContentKind, Expect, Message, NodeId};
use crate::type_names::article;

impl<'a> Checker<'a> {
    /// Resolves the topics and constants in the messages of all tests.
    pub(super) fn resolve_tests(&mut self, names: &Names<'a>) {
        let ast = self.ast;
        for test in &ast.tests {
            let mut topics = Vec::new();
            for message in &test.messages {
                topics.push(match self.topic(&message.topic, names) {
                    Ok(topic) => Some(topic),
                    Err(diagnostic) => {
                        self.diagnostics.push(*diagnostic);
                        None
                    }
                });
                self.resolve_content(&message.content, Some(&message.topic.text), names);
                if let Some(publisher) = &message.publisher {
                    self.resolve_content(publisher, None, names);
                }
            }
            for value in test.expectations.iter().flat_map(|expectation| &expectation.values) {
                self.resolve_content(value, None, names);
            }
            self.test_topics.push(topics);
        }
    }

    fn resolve_content(&mut self, content: &Content, topic: Option<&str>, names: &Names<'a>) {
        match &content.kind {
            ContentKind::Name(name) => self.refer_to_constant(name, content.span, topic, names),
            ContentKind::Array(elements) => {
                elements.iter().for_each(|e| self.resolve_content(e, topic, names))
            }
            ContentKind::Object(fields) => {
                fields.iter().for_each(|(_, f)| self.resolve_content(f, topic, names))
            }
            ContentKind::Null | ContentKind::Value(_) | ContentKind::Constant(..) => {}
        }
    }

    pub(super) fn lower_tests(&mut self) {
        let ast = self.ast;
        for (i, test) in ast.tests.iter().enumerate() {
            if let Some(other) = ast.tests[..i].iter().find(|other| other.name == test.name) {
                let message = format!("test '{}' is declared twice", test.name);
                self.diagnostics.push(
                    Diagnostic::new(Code::DuplicateName, test.span, message)
                        .label(other.span, "first declared here"),
                );
            }
            self.check_order(test);
            let mut messages = Vec::new();
            for (message, topic) in test.messages.iter().zip(self.test_topics[i].clone()) {
                let Some(topic) = topic else { continue };
                if let Some((event, holds)) = message.event {
                    messages.extend(self.lower_test_event(message, event, holds, topic));
                    continue;
                }
                if let Some(json) = self.lower_message(message, topic, true) {
                    messages.push(TestMessage { time: Timestamp::from_nanos(message.time), topic, json });
                }
            }
            let mut expectations = Vec::new();
            for expectation in &test.expectations {
                expectations.extend(self.lower_expectation(expectation));
            }
            if test.complete && test.expectations.is_empty() {
                let message = "this test has no expectation";
                self.diagnostics.push(
                    Diagnostic::new(Code::EmptyTest, test.span, message)
                        .help("add an expectation: `expect property violated at 2 s`"),
                );
            }
            // A stable sort keeps the order of simultaneous messages.
            messages.sort_by_key(|message| message.time);
            let end = test.end.map(|(end, _)| Timestamp::from_nanos(end));
            let (name, offset) = (test.name.clone(), test.span.start);
            self.graph.spec_mut().tests.push(Test { name, offset, messages, end, expectations });
        }
    }

    fn check_order(&mut self, test: &ast::Test) {
        let mut last: Option<(i64, Span)> = None;
        for message in &test.messages {
            if let Some((time, span)) = last.filter(|(time, _)| *time > message.time) {
                let problem = "this message is earlier than the one before it";
                let diagnostic = Diagnostic::new(Code::UnorderedTest, message.time_span, problem)
                    .label(span, format!("at {} s", Timestamp::from_nanos(time)))
                    .help("write the messages of a test in the order of their times");
                self.diagnostics.push(diagnostic);
            } else {
                last = Some((message.time, message.time_span));
            }
        }
        if let (Some((end, place)), Some((time, span))) = (test.end, last)
            && end < time
        {
            let message = "the test ends before its last message";
            self.diagnostics.push(
                Diagnostic::new(Code::UnorderedTest, place, message)
                    .label(span, format!("at {} s", Timestamp::from_nanos(time))),
            );
        }
    }

    /// Returns the content of a message of a topic as JSON; `has_keys` says whether it needs the fields of parameters.
    pub(super) fn lower_message(
        &mut self,
        message: &Message,
        topic: TopicId,
        has_keys: bool,
    ) -> Option<String> {
        if let Some(fields) = self.fields(topic)
            && let ContentKind::Object(members) = &message.content.kind
        {
            let schema = SchemaType::Object(fields.schema.clone());
            let path = fields.topic.to_owned();
            for (name, content) in members {
                self.check_member(&schema, &path, true, name, content);
            }
        }
        if has_keys {
            self.check_keys(message, topic);
        }
        let mut json = String::new();
        self.write_json(&message.content, &mut json)?;
        Some(json)
    }

    /// Checks a member of an object against its schema.
    fn check_member(
        &mut self,
        schema: &SchemaType,
        path: &str,
        root: bool,
        name: &ast::Name,
        content: &Content,
    ) {
        let (SchemaType::Object(schema) | SchemaType::Stamp(_, schema)) = schema else { return };
        let Some((_, field)) = schema.fields.iter().find(|(field, _)| *field == name.text) else {
            let place = if root { format!("topic '{path}'") } else { format!("'{path}'") };
            self.diagnostics.push(unknown_field(&name.text, name.span, &place, schema));
            return;
        };
        self.check_content(field, &format!("{path}.{}", name.text), content);
    }

    fn check_content(&mut self, expected: &SchemaType, path: &str, content: &Content) {
        match (&content.kind, expected) {
            (ContentKind::Null, _) => {}
            (ContentKind::Object(members), SchemaType::Object(_) | SchemaType::Stamp(..)) => {
                for (name, member) in members {
                    self.check_member(expected, path, false, name, member);
                }
            }
            (ContentKind::Array(elements), SchemaType::Array(element, _)) => {
                for content in elements {
                    self.check_content(element, path, content);
                }
            }
            (
                ContentKind::Value(_) | ContentKind::Name(_),
                SchemaType::Value(value_type) | SchemaType::Stamp(value_type, _),
            ) => {
                let Some(value) = self.content_value(content) else { return };
                if !fits(&value, *value_type) {
                    let found = article(value.value_type());
                    self.wrong_content(content.span, path, article(*value_type), found);
                }
            }
            (kind, expected) => {
                let expected = match expected {
                    SchemaType::Value(value_type) | SchemaType::Stamp(value_type, _) => article(*value_type),
                    SchemaType::Object(_) => "an object",
                    SchemaType::Array(..) => "an array",
                    SchemaType::Open => return,
                };
                let found = match kind {
                    ContentKind::Object(_) => "an object",
                    ContentKind::Array(_) => "an array",
                    _ => "a single value",
                };
                self.wrong_content(content.span, path, expected, found);
            }
        }
    }

    pub(super) fn wrong_content(&mut self, span: Span, path: &str, expected: &str, found: &str) {
        let message = format!("expected {expected} for '{path}', found {found}");
        self.diagnostics.push(Diagnostic::new(Code::TypeMismatch, span, message));
    }

    /// Warns about a message without the field of a parameter.
    pub(super) fn check_keys(&mut self, message: &Message, topic: TopicId) {
        let missing = self.graph.spec().slices.iter().flat_map(|slice| &slice.keys).find_map(|key| {
            let (_, path) = key.fields.iter().find(|(t, _)| *t == topic)?;
            (!has(&message.content, &path.0)).then(|| (key.name.clone(), path.to_string()))
        });
        if let Some((key, path)) = missing {
            let topic = &message.topic;
            let message = format!("this message has no field '{path}' for parameter '{key}'");
            self.diagnostics.push(
                Diagnostic::new(Code::MissingKey, topic.span, message)
                    .help("properties with this parameter reject a message without the field"),
            );
        }
    }

    /// Returns the value of a literal or a constant; none if an error has been reported.
    pub(super) fn content_value(&self, content: &Content) -> Option<Value> {
        match &content.kind {
            ContentKind::Value(value) => Some(value.clone()),
            ContentKind::Name(name) => {
                let binding = self.ast.bindings.iter().find(|binding| binding.name.text == *name)?;
                self.constant_of(binding.body.root?)
            }
            _ => None,
        }
    }

    /// Returns the value of a constant, which is the same in all time models.
    fn constant_of(&self, root: NodeId) -> Option<Value> {
        let models = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense];
        let id = models.into_iter().find_map(|model| self.lowered_to(root, model))?;
        self.graph.constant(id).cloned()
    }

    fn write_json(&self, content: &Content, out: &mut String) -> Option<()> {
        match &content.kind {
            // One that is left has been reported.
            ContentKind::Null | ContentKind::Constant(..) => out.push_str("null"),
            ContentKind::Array(elements) => {
                out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    self.write_json(element, out)?;
                }
                out.push(']');
            }
            ContentKind::Object(fields) => {
                out.push('{');
                for (i, (name, field)) in fields.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    write_text(&name.text, out);
                    out.push(':');
                    self.write_json(field, out)?;
                }
                out.push('}');
            }
            // Writing to a String does not fail.
            ContentKind::Value(_) | ContentKind::Name(_) => match self.content_value(content)? {
                Value::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                Value::Int(value) => write!(out, "{value}").ok()?,
                // JSON has no NaN or infinity; the field is then unknown.
                Value::Float(value) if !value.is_finite() => out.push_str("null"),
                Value::Float(value) => write!(out, "{value:?}").ok()?,
                Value::Time(nanos) | Value::Duration(nanos) => {
                    write!(out, "{}", Timestamp::from_nanos(nanos)).ok()?;
                }
                Value::String(text) => write_text(&text, out),
            },
        }
        Some(())
    }

    fn lower_expectation(&mut self, expect: &Expect) -> Option<Expectation> {
        let properties = &self.graph.spec().properties;
        let name = &expect.property;
        let Some(index) = properties.iter().position(|property| property.name == name.text) else {
            let ast = self.ast;
            let names: Vec<_> =
                ast.property_sources.iter().map(|source| ast.source_name(*source).text.as_str()).collect();
            // A declared property that could not be parsed has been reported.
            if !names.contains(&name.text.as_str()) {
                let message = format!("unknown property '{}'", name.text);
                let diagnostic = Diagnostic::new(Code::UnknownProperty, name.span, message);
                let diagnostic = unknown(diagnostic, &name.text, &names, "declared properties");
                let diagnostic = self.with_import(diagnostic, name);
                self.diagnostics.push(diagnostic);
            }
            return None;
        };
        let slice = properties[index].slice;
        let keys = self.lower_expected_values(expect, slice.map(|slice| slice.0 as usize))?;
        Some(Expectation {
            property: index as u32,
            keys,
            never: expect.never,
            verdict: expect.verdict,
            at: expect.at.map(Timestamp::from_nanos),
            offset: expect.span.start,
        })
    }

    fn lower_expected_values(&mut self, expect: &Expect, slice: Option<usize>) -> Option<Vec<Value>> {
        let Some(first) = expect.values.first() else { return Some(Vec::new()) };
        let span = expect.values.iter().fold(first.span, |span, key| span.to(key.span));
        let name = &expect.property.text;
        let keys =
            slice.and_then(|slice| self.graph.spec().slices.get(slice)).map(|slice| slice.keys.clone());
        let Some(keys) = keys else {
            let message = format!("'{name}' has no parameters");
            self.diagnostics.push(Diagnostic::new(Code::WrongKeys, span, message));
            return None;
        };
        if keys.len() != expect.values.len() {
            let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
            let plural = if keys.len() == 1 { "value" } else { "values" };
            let message =
                format!("'{name}' takes {} parameter {plural} but got {}", keys.len(), expect.values.len());
            self.diagnostics.push(
                Diagnostic::new(Code::WrongKeys, span, message)
                    .help(format!("write `{name}[{}]`", names.join(", "))),
            );
            return None;
        }
        let mut values = Vec::new();
        for (content, key) in expect.values.iter().zip(&keys) {
            let single = matches!(content.kind, ContentKind::Value(_) | ContentKind::Name(_));
            let value = self.content_value(content);
            if single && value.is_none() {
                return None;
            }
            match value.clone().and_then(|value| convert(value, key.value_type)) {
                Some(value) => values.push(value),
                None => {
                    let found = match (value, &content.kind) {
                        (Some(value), _) => article(value.value_type()),
                        (None, ContentKind::Object(_)) => "an object",
                        (None, ContentKind::Array(_)) => "an array",
                        (None, _) => "no value",
                    };
                    let message = format!(
                        "expected {} for parameter '{}', found {found}",
                        article(key.value_type),
                        key.name
                    );
                    self.diagnostics.push(Diagnostic::new(Code::WrongKeys, content.span, message));
                    return None;
                }
            }
        }
        Some(values)
    }
}

/// Returns whether a message can have this value for a field of the declared type.
fn fits(value: &Value, value_type: ValueType) -> bool {
    match value {
        Value::Int(_) => {
            value_type.is_number() || matches!(value_type, ValueType::Time | ValueType::Duration)
        }
        Value::Float(x) => {
            matches!(value_type, ValueType::Float | ValueType::Time | ValueType::Duration)
                || value_type == ValueType::Int && x.fract() == 0.0
        }
        Value::Duration(_) | Value::Time(_) => matches!(value_type, ValueType::Time | ValueType::Duration),
        Value::Bool(_) | Value::String(_) => value.value_type() == value_type,
    }
}

/// Converts a value to the type of a parameter; a time is written as a duration since zero.
fn convert(value: Value, key: ValueType) -> Option<Value> {
    match (value, key) {
        (Value::Duration(nanos) | Value::Time(nanos), ValueType::Time) => Some(Value::Time(nanos)),
        (value, _) if value.value_type() == key => Some(value),
        _ => None,
    }
}

/// Returns whether a message has a value at a path.
fn has(content: &Content, path: &[Segment]) -> bool {
    let Some((first, rest)) = path.split_first() else { return !matches!(content.kind, ContentKind::Null) };
    if let (Segment::Key(_), Some((Segment::Named(named), rest))) = (first, rest.split_first())
        && named.is_parallel
    {
        let names = at(content, &named.key().0).map(|names| &names.kind);
        let Some(ContentKind::Array(names)) = names else { return false };
        let Some(index) = names.iter().rposition(|name| is(name, named.name())) else { return false };
        let element = at(content, &[first.clone(), Segment::Index(index as u32)]);
        return element.is_some_and(|element| has(element, rest));
    }
    let next = match (first, &content.kind) {
        (Segment::Key(key), ContentKind::Object(fields)) => {
            fields.iter().find(|(name, _)| *name.text == **key).map(|(_, field)| field)
        }
        (Segment::Index(index), ContentKind::Array(elements)) => elements.get(*index as usize),
        (Segment::FromEnd(index), ContentKind::Array(elements)) => {
            elements.len().checked_sub(*index as usize).and_then(|index| elements.get(index))
        }
        (Segment::Named(named), ContentKind::Array(elements)) => elements
            .iter()
            .rfind(|element| at(element, &named.key().0).is_some_and(|name| is(name, named.name()))),
        _ => None,
    };
    next.is_some_and(|next| has(next, rest))
}

/// Returns what is at a path of members and positions.
fn at<'c>(content: &'c Content, path: &[Segment]) -> Option<&'c Content> {
    path.iter().try_fold(content, |content, segment| match (segment, &content.kind) {
        (Segment::Key(key), ContentKind::Object(fields)) => {
            fields.iter().find(|(name, _)| *name.text == **key).map(|(_, field)| field)
        }
        (Segment::Index(index), ContentKind::Array(elements)) => elements.get(*index as usize),
        _ => None,
    })
}

/// Whether it is the name of an element; of any if none is given.
fn is(content: &Content, name: Option<&Value>) -> bool {
    matches!(&content.kind, ContentKind::Value(value) if name.is_none_or(|name| name == value))
}

pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // Writing to a String does not fail.
            c if is_obeyed(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
