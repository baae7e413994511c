//! Source locations of the nodes of a specification.

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{ExprId, Spec, VariableId};

/// The source locations of the nodes of a [`Spec`] and the names of its variables; empty for a specification that
/// was not parsed from text. Locations do not take part in comparisons: any two values are equal.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub(crate) nodes: Vec<Span>,
    pub(crate) variables: Vec<String>,
    pub(crate) properties: Vec<Span>,
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

    /// The name of a variable.
    pub fn variable(&self, variable: VariableId) -> Option<&str> {
        self.variables.get(variable.0 as usize).map(String::as_str)
    }
}

impl Spec {
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
