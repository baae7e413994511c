//! Where the nodes of a specification come from, for whoever has something to say about one of them.

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{ExprId, Spec, VariableId};

/// Where the nodes of a [`Spec`] stand in its text, and what its variables are called there. Empty for one
/// that comes from no text. It is no part of what the specification says: any two are equal.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub(crate) nodes: Vec<Span>,
    pub(crate) variables: Vec<String>,
}

impl PartialEq for Places {
    fn eq(&self, _: &Places) -> bool {
        true
    }
}

impl Places {
    /// The words that became a node; the first ones, if several did.
    pub fn node(&self, node: ExprId) -> Option<Span> {
        self.nodes.get(node.index()).copied()
    }

    /// The name of a variable.
    pub fn variable(&self, variable: VariableId) -> Option<&str> {
        self.variables.get(variable.0 as usize).map(String::as_str)
    }
}

impl Spec {
    /// A diagnostic about a node, for what checks a specification further; none if it comes from no text.
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
