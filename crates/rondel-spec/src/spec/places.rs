//! Source locations of the nodes of a specification.

use std::collections::BTreeMap;

use rondel_event::{Comparison, Value};

use super::{BinaryOp, Expr, ExprId, Spec, VariableId};
use crate::diagnostic::{Code, Diagnostic, Span};

/// The source locations of the nodes of a [`Spec`] and the names of its variables; empty for a specification that
/// was not parsed from text. Locations do not take part in comparisons: any two values are equal.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub(crate) nodes: Vec<Span>,
    pub(crate) variables: Vec<String>,
    pub(crate) properties: Vec<Span>,
    /// The nodes that stand for operators made of others.
    pub(crate) calls: BTreeMap<ExprId, Call>,
    /// The names of definitions, by what they stand for.
    pub(crate) definitions: BTreeMap<ExprId, String>,
    /// The names of the elements in conditions on arrays, by these conditions.
    pub(crate) elements: BTreeMap<ExprId, String>,
}

/// An operator that is made of others, as it was written: `hysteresis(x, 20, 25)`, `stable(p) for 2 s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the operator.
    pub word: &'static str,
    /// The operands.
    pub operands: Vec<ExprId>,
    /// The duration in nanoseconds, or the number of steps.
    pub lasting: Option<u64>,
}

impl PartialEq for Places {
    fn eq(&self, _: &Places) -> bool {
        true
    }
}

impl Places {
    /// The span of a node, or the first span if several expressions became one node.
    pub fn node(&self, node: ExprId) -> Option<Span> {
        self.nodes.get(node.index()).copied()
    }

    /// The span of a property's name, by the property's position; none if the specification was not parsed from text.
    pub fn property(&self, property: usize) -> Option<Span> {
        self.properties.get(property).copied()
    }

    /// The calls among other nodes; none for a node that is not there any more.
    pub(crate) fn calls_with(&self, place: impl Fn(ExprId) -> Option<ExprId>) -> BTreeMap<ExprId, Call> {
        let moved = self.calls.iter().filter_map(|(id, call)| {
            let operands: Option<Vec<ExprId>> = call.operands.iter().map(|operand| place(*operand)).collect();
            Some((place(*id)?, Call { operands: operands?, ..call.clone() }))
        });
        moved.collect()
    }

    /// These names of nodes among other nodes.
    pub(crate) fn moved(
        names: &BTreeMap<ExprId, String>,
        place: impl Fn(ExprId) -> Option<ExprId>,
    ) -> BTreeMap<ExprId, String> {
        names.iter().filter_map(|(id, name)| Some((place(*id)?, name.clone()))).collect()
    }

    /// The name of the `let` that a node is the body of, if it computes something; the first of several.
    pub fn definition(&self, node: ExprId) -> Option<&str> {
        self.definitions.get(&node).map(String::as_str)
    }

    /// The name of the element in conditions on an array: `e` in `any e in …`.
    pub fn element(&self, node: ExprId) -> Option<&str> {
        self.elements.get(&node).map(String::as_str)
    }

    /// The operator that a node stands for, with its operands.
    pub fn call(&self, node: ExprId) -> Option<&Call> {
        self.calls.get(&node)
    }

    /// The name of a variable.
    pub fn variable(&self, variable: VariableId) -> Option<&str> {
        self.variables.get(variable.0 as usize).map(String::as_str)
    }
}

impl Spec {
    /// Returns whether a node is the truth that is unknown everywhere, of which operators like `hysteresis` are made.
    pub fn is_unknown(&self, id: ExprId) -> bool {
        let literal = |id: &ExprId| matches!(self.nodes.get(id.index()), Some(Expr::Literal(Value::Int(0))));
        match self.nodes.get(id.index()) {
            Some(Expr::Compare(Comparison::Equal, quotient, zero)) => {
                let quotient = self.nodes.get(quotient.index());
                matches!(quotient, Some(Expr::Binary(BinaryOp::Divide, a, b)) if literal(a) && literal(b))
                    && literal(zero)
            }
            _ => false,
        }
    }

    /// Returns a diagnostic at a node; none if the specification was not parsed from text.
    ///
    /// ```
    /// use rondel_spec::{Code, ExprId};
    /// let text = "topic a { id: int } property p = exists x. not a{id: x}";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let atom = (0..).map(ExprId).find(|id| spec.print(*id).to_string().starts_with("(bind")).unwrap();
    /// let refused = spec.refuse(Code::NotMonitorable, atom, "this is too much", None).unwrap();
    /// assert_eq!(&text[refused.span.start..refused.span.end], "a{id: x}");
    /// ```
    pub fn refuse(
        &self,
        code: Code,
        node: ExprId,
        message: impl Into<String>,
        help: Option<&str>,
    ) -> Option<Diagnostic> {
        let diagnostic = Diagnostic::new(code, self.places.node(node)?, message);
        Some(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        })
    }
}
