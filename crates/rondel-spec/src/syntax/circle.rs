//! Definitions with parameters that use themselves.

use super::ast::Name;
use super::parser::Parser;
use crate::diagnostic::{Code, Diagnostic, Span};

/// Limit of the definitions that a diagnostic names.
const SHOWN: usize = 12;

/// Diagnostic for a definition that uses itself by way of others.
pub(super) fn recursive(name: &Name, circle: &[&str], at: Span) -> Diagnostic {
    let message = match circle.len() {
        2 => format!("definition '{}' uses itself", name.text),
        _ => format!("definition '{}' uses itself: {}", name.text, circle.join(" -> ")),
    };
    Diagnostic::new(Code::RecursiveDefinition, at, message)
        .label(name.span, "declared here")
        .help("definitions are expanded where they are used, so none can contain itself")
}

impl Parser<'_> {
    /// Reports definitions that use themselves and are used nowhere else: the others are reported where they are
    /// expanded.
    pub(super) fn report_unused_circles(&mut self) {
        let definitions = self.definitions.clone();
        let used: Vec<bool> =
            definitions.iter().map(|definition| self.expansion.used.contains(definition.name())).collect();
        let mut uses = vec![Vec::new(); definitions.len()];
        for (from, to, span) in std::mem::take(&mut self.expansion.calls) {
            if !used[from] && !used[to] {
                uses[from].push((to, span));
            }
        }
        // Where in the path each definition is, and which ones are done.
        let mut places: Vec<Option<usize>> = vec![None; definitions.len()];
        let mut done = vec![false; definitions.len()];
        for root in 0..definitions.len() {
            // The definitions from the root on, each used by the one before it, with the number of its uses seen.
            let mut path = if done[root] { Vec::new() } else { vec![(root, 0)] };
            places[root] = Some(0);
            while let Some((at, seen)) = path.last_mut() {
                let Some((to, span)) = uses[*at].get(*seen).copied() else {
                    (places[*at], done[*at]) = (None, true);
                    path.pop();
                    continue;
                };
                *seen += 1;
                match places[to] {
                    Some(first) => {
                        let names = path[first..].iter().map(|(open, _)| definitions[*open].name());
                        let mut circle: Vec<&str> = names.take(SHOWN).collect();
                        if path.len() - first > SHOWN {
                            circle.push("…");
                        }
                        circle.push(definitions[to].name());
                        self.report(recursive(&definitions[to].name, &circle, span));
                    }
                    None if done[to] => {}
                    None => {
                        places[to] = Some(path.len());
                        path.push((to, 0));
                    }
                }
            }
            places[root] = None;
        }
    }
}
