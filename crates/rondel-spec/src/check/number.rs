//! Numbers that may be written as texts: `number(topic.field)`.

use rondel_event::{Segment, ValueType};

use super::names::Names;
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::syntax::ast::{Name, NodeId};
use crate::type_names::describe;

impl<'a> Checker<'a> {
    /// Resolves `number` of a field, which must be a string or a number as far as its type is declared.
    pub(super) fn number(
        &mut self,
        node: NodeId,
        name: &Name,
        steps: &[(Segment, Span)],
        within: Option<usize>,
        names: &Names<'a>,
    ) -> Meaning {
        let place = steps.last().map_or(name.span, |(_, last)| name.span.to(*last));
        let (topic, path, declared) = match self.path(node, name, steps, within, names) {
            Meaning::Field { topic, path, declared } => (topic, path, declared),
            Meaning::Invalid => return Meaning::Invalid,
            _ => {
                let message = format!("`number` takes a field, but '{}' is not a field", name.text);
                let diagnostic = Diagnostic::new(Code::WrongArguments, name.span, message);
                self.diagnostics.push(diagnostic.help("write `number(topic.field)`"));
                return Meaning::Invalid;
            }
        };
        match declared {
            None | Some((ValueType::String | ValueType::Int | ValueType::Float, _)) => {
                Meaning::Number { topic, path }
            }
            Some((found, declaration)) => {
                let found = describe(&crate::spec::SchemaType::Value(found));
                let message = format!("expected a string or a number, found {found}");
                let mut diagnostic = Diagnostic::new(Code::TypeMismatch, place, message);
                if let Some(declaration) = declaration {
                    diagnostic = diagnostic.label(declaration, "declared here");
                }
                self.diagnostics.push(diagnostic);
                Meaning::Invalid
            }
        }
    }
}
