//! Parser of chains.

use rondel_event::Segment;

use super::ast::{Attribute, Chain, ChainBound, ForEach, Name, NodeId, NodeKind, Parameter, PropertySource};
use super::parser::{Mark, Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::modules::{Role, chain_name};
use crate::spec::ChainMeasure;

impl Parser<'_> {
    pub(super) fn chain(&mut self, attributes: Vec<Attribute>) -> Parsed<()> {
        self.advance();
        let named = if self.symbol(1) == "=" {
            let name = self.declared_name("a chain")?;
            self.advance();
            Some(name)
        } else {
            None
        };
        let mut topics = vec![self.used_name("a topic", Role::Value)?];
        self.expect("->")?;
        topics.push(self.used_name("a topic", Role::Value)?);
        while self.eat("->") {
            topics.push(self.used_name("a topic", Role::Value)?);
        }
        if self.word(0) != "by" {
            let reported = self.expected("`->` or `by`");
            self.help_last(
                "name the field that relates the messages after `by`: `by header.stamp within 100 ms`",
            );
            return Err(reported);
        }
        self.mark(Mark::Clause);
        self.advance();
        let fields =
            if self.symbol(0) == "(" { self.fields_by_topic(&topics)? } else { self.field_of_all(&topics)? };
        self.mark(Mark::Clause);
        self.keyword_or("within", "write the latency bound after `within`: `within 100 ms`")?;
        let within = self.bound()?;
        let mut further = Vec::new();
        while let Some(measure) = self.chain_measure() {
            let word = self.span();
            if further.iter().any(|(_, other, _, _)| *other == measure) {
                let message = format!("the chain already has a bound for `{}`", self.word(0));
                return Err(self.report(Diagnostic::new(Code::UnexpectedToken, word, message)));
            }
            self.mark(Mark::Clause);
            let written = self.word(0).to_owned();
            self.advance();
            if self.symbol(0) != "<=" {
                let reported = self.expected("`<=`");
                self.help_last("write an upper bound: `age <= 150 ms`");
                return Err(reported);
            }
            self.advance();
            further.push((written, measure, word, self.bound()?));
        }
        let name = named.unwrap_or_else(|| {
            let words = topics.iter().map(|topic| topic.span.of(self.text));
            let span = topics[0].span.to(topics[topics.len() - 1].span);
            let prefix = self.ast.modules.prefix(span.start);
            Name { text: format!("{prefix}{}", chain_name(words)), span }
        });
        let chain = self.ast.chains.len();
        self.ast.property_sources.push(PropertySource::Chain(chain));
        self.ast
            .property_sources
            .extend((0..further.len()).map(|bound| PropertySource::ChainBound(chain, bound)));
        let bounds = further.into_iter().map(|(word, measure, span, bound)| {
            let name = Name { text: format!("{}_{word}", name.text), span };
            ChainBound { name, measure, bound }
        });
        let bounds = bounds.collect();
        let parameters =
            vec![Parameter { name: self.last_step(&fields).unwrap_or_else(|| name.clone()), fields }];
        self.ast.for_eaches.push(ForEach { parameters, until: None, chain: true });
        let each = self.ast.for_eaches.len() - 1;
        self.ast.chains.push(Chain { name, attributes, topics, each, within, bounds });
        self.end_of_declaration()
    }

    /// Returns the measurement that the next word bounds, if it is one.
    fn chain_measure(&self) -> Option<ChainMeasure> {
        match self.word(0) {
            "age" => Some(ChainMeasure::Age),
            "reaction" => Some(ChainMeasure::Reaction),
            _ => None,
        }
    }

    /// Returns the last name in the path of the stamp.
    fn last_step(&self, fields: &[NodeId]) -> Option<Name> {
        let NodeKind::Path(_, steps) = &self.ast.nodes.get(*fields.first()?)?.kind else { return None };
        steps.iter().rev().find_map(|(segment, span)| match segment {
            Segment::Key(key) => Some(Name { text: key.to_string(), span: *span }),
            Segment::Index(_) | Segment::FromEnd(_) | Segment::Named(_) => None,
        })
    }

    /// Parses one path that applies to every topic.
    fn field_of_all(&mut self, topics: &[Name]) -> Parsed<Vec<NodeId>> {
        let first = self.name("a field")?;
        let root = (Segment::Key(first.text.as_str().into()), first.span);
        let path = self.path(first)?;
        let span = self.ast.nodes[path].span;
        let mut segments = vec![root];
        if let NodeKind::Path(_, rest) = &self.ast.nodes[path].kind {
            segments.extend(rest.iter().cloned());
        }
        self.ast.nodes.truncate(path);
        Ok(topics
            .iter()
            .map(|topic| self.node(NodeKind::Path(topic.clone(), segments.clone()), span))
            .collect())
    }

    /// Parses one path per topic, in order.
    fn fields_by_topic(&mut self, topics: &[Name]) -> Parsed<Vec<NodeId>> {
        let start = self.span();
        self.advance();
        let mut fields = vec![self.parameter_field()?];
        while self.eat(",") {
            fields.push(self.parameter_field()?);
        }
        self.expect(")")?;
        let span = start.to(self.last_span());
        if fields.len() != topics.len() {
            let fields = match fields.len() {
                1 => "1 field is".to_owned(),
                count => format!("{count} fields are"),
            };
            let message = format!("the chain has {} topics, but {fields} named here", topics.len());
            return Err(self.report(
                Diagnostic::new(Code::ChainTopics, span, message)
                    .help("name one field per topic, in the order of the chain"),
            ));
        }
        for (field, topic) in fields.iter().zip(topics) {
            let (other, place) = match &self.ast.nodes[*field].kind {
                NodeKind::Path(name, _) if name.text != topic.text => (name.text.clone(), name.span),
                _ => continue,
            };
            let place: Span = place;
            let message = format!("expected a field of '{}', found a field of '{other}'", topic.text);
            return Err(self.report(
                Diagnostic::new(Code::ChainTopics, place, message)
                    .label(topic.span, "the next topic of the chain")
                    .help("name one field per topic, in the order of the chain"),
            ));
        }
        Ok(fields)
    }
}
