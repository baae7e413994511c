//! Checks of quantifier variables.

use rondel_event::ValueType;

use super::names::Names;
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{TimeModel, VariableId};
use crate::syntax::ast::{Name, NodeId, NodeKind, Pair};
use crate::type_names::article;

impl<'a> Checker<'a> {
    /// Reports variables that are not bound, and warns about unused ones.
    pub(super) fn check_variables(&mut self) {
        let ast = self.ast;
        let mut first_use = vec![None; ast.variables.len()];
        for node in &ast.nodes {
            if let NodeKind::Variable(variable) = node.kind {
                first_use[variable].get_or_insert(node.span);
            }
        }
        let mut bound = vec![false; ast.variables.len()];
        self.bindings_of_variables().into_iter().for_each(|(variable, ..)| bound[variable] = true);
        for (i, node) in ast.nodes.iter().enumerate() {
            let NodeKind::Quantified { variables, .. } = &node.kind else { continue };
            for variable in variables {
                let Name { text, span } = &ast.variables[*variable];
                match first_use[*variable] {
                    // Where it was taken for a topic it is used.
                    None if self.diagnostics.iter().any(|diagnostic| {
                        diagnostic.code == Code::NoFields
                            && diagnostic.labels.iter().any(|label| label.span == *span)
                    }) => {}
                    None => {
                        let message = format!("variable '{text}' is never used");
                        self.diagnostics.push(Diagnostic::new(Code::Unused, *span, message));
                    }
                    Some(place) if !bound[*variable] => {
                        let message = format!("variable '{text}' is not bound to a field");
                        let help = format!("bind it in an atom: `topic{{field: {text}}}`");
                        let diagnostic = Diagnostic::new(Code::UnboundVariable, *span, message);
                        self.invalidate(i, diagnostic.label(place, "used here").help(help));
                        // Without a field it has no type, so nothing else is said of its uses.
                        for (use_of, node) in ast.nodes.iter().enumerate() {
                            if matches!(node.kind, NodeKind::Variable(used) if used == *variable) {
                                self.meanings[use_of] = Meaning::Invalid;
                            }
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Returns the pairs that bind variables: variable, its node, field.
    fn bindings_of_variables(&self) -> Vec<(usize, NodeId, NodeId)> {
        let nodes = &self.ast.nodes;
        let atoms = nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Atom { pairs, .. } => Some(pairs),
            _ => None,
        });
        let bindings = atoms.flatten().filter_map(|pair| match *pair {
            Pair::Bind { field, variable: node } => match nodes[node].kind {
                NodeKind::Variable(variable) => Some((variable, node, field)),
                _ => None,
            },
            Pair::Where { .. } => None,
        });
        bindings.collect()
    }

    pub(super) fn warn_of_shadowing(&mut self, variables: &[usize], names: &Names<'a>) {
        let ast = self.ast;
        variables.iter().for_each(|variable| self.warn_of_shadowed(&ast.variables[*variable], names));
    }

    /// Warns about a local name that is also that of an outer declaration.
    pub(super) fn warn_of_shadowed(&mut self, Name { text, span }: &Name, names: &Names<'a>) {
        let outer = names.get(text, *span).map(|(_, place)| *place);
        let inner = self.locals.get(text.as_str()).map(|(_, place)| *place);
        if let Some(hidden) = outer.or(inner) {
            self.diagnostics.push(Diagnostic::shadowing(text, *span, hidden));
        }
    }

    /// Settles the types of the variables: the declared type of a field that they are bound to, or the inferred type.
    pub(super) fn settle_variables(&mut self) {
        let ast = self.ast;
        let bindings = self.bindings_of_variables();
        let mut declared: Vec<Option<(ValueType, NodeId)>> = vec![None; ast.variables.len()];
        for (variable, node, field) in &bindings {
            let Meaning::Field { declared: Some((found, _)), .. } = self.meanings[*field] else { continue };
            match declared[*variable] {
                Some((first, place)) if first != found && !self.is_invalid(*node) => {
                    let name = &ast.variables[*variable].text;
                    let message = format!(
                        "'{name}' is bound to {} here and to {} elsewhere",
                        article(found),
                        article(first)
                    );
                    let diagnostic = Diagnostic::new(Code::ConflictingUse, self.span(*node), message);
                    let label = format!("bound to {} here", article(first));
                    let diagnostic = diagnostic.label(self.span(place), label);
                    self.invalidate(*node, diagnostic);
                }
                Some(_) => {}
                None => declared[*variable] = Some((found, *field)),
            }
        }
        // A field of unknown type is read as a string, because bound fields are mostly names.
        let sound = !self.diagnostics.iter().any(Diagnostic::is_error);
        for (_, _, field) in bindings {
            if self.kinds.settle_bound(field) && sound {
                let span = self.span(field);
                let message =
                    format!("cannot infer the type of '{}': a string is assumed", span.of(self.text));
                let help =
                    "declare the field in the schema of its topic, such as `topic name { field: int }`";
                self.diagnostics.push(Diagnostic::new(Code::GuessedType, span, message).help(help));
            }
        }
        self.variable_types = (0..ast.variables.len())
            .map(|variable| match declared[variable] {
                Some((found, _)) => found,
                None => self.kinds.settled(ast.nodes.len() + variable),
            })
            .collect();
    }

    /// Returns the id of a variable in a time model.
    pub(super) fn variable_id(&mut self, variable: usize, model: TimeModel) -> VariableId {
        let (graph, name) = (&mut self.graph, &self.ast.variables[variable].text);
        *self.variables.entry((variable, model)).or_insert_with(|| graph.fresh_variable(name))
    }
}
