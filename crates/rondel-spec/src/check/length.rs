//! Lengths of fields: `len(topic.field)`.

use rondel_event::{Countable, Path, Segment, ValueType};

use super::kinds::Kind;
use super::names::{Declared, Names};
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::SchemaType;
use crate::syntax::ast::{Name, NodeId};
use crate::type_names::describe;

impl<'a> Checker<'a> {
    /// Resolves the length of a field, which must be an array or a string as far as its type is declared.
    pub(super) fn length(
        &mut self,
        node: NodeId,
        name: &Name,
        steps: &[(Segment, Span)],
        within: Option<usize>,
        names: &Names<'a>,
    ) -> Meaning {
        let topic = match names.get(&name.text, name.span) {
            Some((Declared::Topic(topic), _))
                if !steps.is_empty() && !self.locals.contains_key(name.text.as_str()) =>
            {
                *topic
            }
            _ => {
                return match self.path(node, name, steps, within, names) {
                    Meaning::Field { topic, path, .. } => Meaning::Length { topic, path, of: None },
                    Meaning::Invalid => Meaning::Invalid,
                    _ => {
                        let message = format!("`len` takes a field, but '{}' is not a field", name.text);
                        let diagnostic = Diagnostic::new(Code::WrongArguments, name.span, message);
                        self.diagnostics.push(diagnostic.help("write `len(topic.field)`"));
                        Meaning::Invalid
                    }
                };
            }
        };
        let whole = self.span(node);
        let mut of = None;
        if let Some(fields) = self.fields(topic) {
            let (found, declared) = match fields.find(steps, whole) {
                Ok(found) => found,
                Err(diagnostic) => {
                    self.diagnostics.push(*diagnostic);
                    return Meaning::Invalid;
                }
            };
            if !matches!(
                found,
                SchemaType::Array(..) | SchemaType::Value(ValueType::String) | SchemaType::Open
            ) {
                let message = format!("expected an array or a string, found {}", describe(found));
                let place = steps.last().map_or(whole, |(_, last)| name.span.to(*last));
                let mut diagnostic = Diagnostic::new(Code::TypeMismatch, place, message);
                if let Some(declared) = declared {
                    diagnostic = diagnostic.label(declared, "declared here");
                }
                if let SchemaType::Object(schema) = found {
                    let mut fields = schema.fields.iter();
                    let array = fields.find(|(_, field)| matches!(field, SchemaType::Array(..)));
                    diagnostic.help = array.map(|(name, _)| format!("name its array: `.{name}`"));
                }
                self.diagnostics.push(diagnostic);
                return Meaning::Invalid;
            }
            of = match found {
                SchemaType::Array(..) => Some(Countable::Array),
                SchemaType::Value(ValueType::String) => Some(Countable::Text),
                _ => None,
            };
        }
        Meaning::Length { topic, path: Path(steps.iter().map(|(step, _)| step.clone()).collect()), of }
    }

    /// Reports lengths of undeclared fields that are used as numbers, times or booleans elsewhere.
    pub(super) fn check_lengths(&mut self) {
        for node in 0..self.ast.nodes.len() {
            let Meaning::Length { topic, path, .. } = &self.meanings[node] else { continue };
            let Some((kind, used)) = self.kinds.of_undeclared(*topic, path) else { continue };
            if matches!(kind, Kind::Anything | Kind::Text | Kind::Invalid) {
                continue;
            }
            let message =
                format!("expected an array or a string, but the field is {} elsewhere", kind.article());
            let diagnostic = Diagnostic::new(Code::TypeMismatch, self.span(node), message);
            let diagnostic = diagnostic.label(self.span(used), "used here");
            self.invalidate(node, diagnostic);
        }
    }
}
