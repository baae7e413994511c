//! Nodes of the specification from checked expressions, and warnings about what they amount to.

use rondel_event::{Comparison, Value};

use super::names::bounds_of;
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::is_empty;
use crate::spec::{BinaryOp, Bounds, Expr, ExprId, Property, SliceId, UnaryOp};
use crate::syntax::ast::{Attribute, Bound, BoundsSyntax, Function, Infix, Name, NodeId, NodeKind, Prefix};

/// What each node of the tree has become; nothing for what is broken.
type Lowered = Vec<Option<ExprId>>;

impl Checker<'_> {
    pub(super) fn lower(&mut self) {
        let ast = self.ast;
        let mut lowered: Lowered = vec![None; ast.nodes.len()];
        for i in self.order.clone() {
            let binding = &ast.bindings[i];
            self.lower_body(binding.body.nodes(), &mut lowered);
            let root = binding.body.root.and_then(|root| lowered[root]);
            if let Some(root) = root
                && binding.constant
                && self.graph.constant(root).is_none()
            {
                let span = binding.body.root.map_or(binding.name.span, |root| self.span(root));
                let message = format!("the `const` '{}' is not a constant", binding.name.text);
                self.diagnostics.push(
                    Diagnostic::new(Code::NotConstant, span, message)
                        .help("for what changes with messages write `let` instead of `const`"),
                );
            }
        }
        for property in &ast.properties {
            self.lower_body(property.body.nodes(), &mut lowered);
            let slice = self.lower_each(property.each, &property.attributes, &mut lowered);
            let Some((root, formula)) = property.body.root.and_then(|root| Some((root, lowered[root]?)))
            else {
                continue;
            };
            let warning =
                super::constant_property(&self.graph, formula, &property.name.text, self.span(root));
            self.diagnostics.extend(warning);
            self.push_property(&property.name, &property.attributes, formula, slice);
        }
        // After an error a use may have been lost with what could not be read.
        if !self.diagnostics.iter().any(Diagnostic::is_error) {
            self.warn_of_unused();
        }
    }

    pub(super) fn push_property(
        &mut self,
        name: &Name,
        attributes: &[Attribute],
        formula: ExprId,
        slice: Option<SliceId>,
    ) {
        let robust = self.robust(attributes, formula);
        if let Some(slice) = slice {
            self.warn_of_idle_key(slice, name, formula);
        }
        let attributes = attributes.iter().map(|a| (a.name.text.clone(), a.value.clone())).collect();
        let property = Property { attributes, slice, robust, ..Property::new(&name.text, formula) };
        self.graph.spec_mut().properties.push(property);
    }

    fn warn_of_unused(&mut self) {
        let ast = self.ast;
        for (binding, used) in ast.bindings.iter().zip(&self.used) {
            // A leading underscore says that this is on purpose.
            if !used && !binding.name.text.starts_with('_') {
                let message = format!("'{}' is never used", binding.name.text);
                self.diagnostics.push(Diagnostic::new(Code::Unused, binding.name.span, message));
            }
        }
    }

    pub(super) fn lower_body(&mut self, nodes: std::ops::Range<NodeId>, lowered: &mut [Option<ExprId>]) {
        for node in nodes {
            if !self.is_broken(node) {
                lowered[node] = self.lower_node(node, lowered);
            }
        }
    }

    fn lower_node(&mut self, node: NodeId, lowered: &[Option<ExprId>]) -> Option<ExprId> {
        let ast = self.ast;
        match &self.meanings[node] {
            Meaning::Broken => return None,
            Meaning::Formula(id) => return Some(*id),
            Meaning::Binding(i) => return ast.bindings[*i].body.root.and_then(|root| lowered[root]),
            Meaning::On(topic) => return Some(self.graph.add(Expr::On(*topic))),
            Meaning::Field { topic, path, declared } => {
                let (topic, path) = (*topic, path.clone());
                let value_type = declared.map_or_else(|| self.kinds.settled(node), |(t, _)| t);
                return Some(self.graph.add(Expr::Field { topic, path, value_type }));
            }
            Meaning::Key(each, key) => {
                let (each, key) = (*each, *key);
                let value_type = self.key_type(each, key)?;
                return Some(self.graph.add(Expr::Key(key as u32, value_type)));
            }
            Meaning::Itself => {}
        }
        let kind = &ast.nodes[node].kind;
        let bounds = match bounds_of(kind) {
            Some(bounds) => self.lower_bounds(bounds, lowered)?,
            None => Bounds::ALL,
        };
        let g = &mut self.graph;
        let id = match kind {
            NodeKind::Literal(value) => g.literal(value.clone()),
            NodeKind::Unary(prefix, a) => {
                let a = lowered[*a]?;
                match prefix {
                    Prefix::Negate => return self.has_result(node, |g| g.unary(UnaryOp::Negate, a)),
                    Prefix::Not => g.not(a),
                    Prefix::Previously => g.previously(a),
                    Prefix::Once(_) => g.once(bounds, a),
                    Prefix::Historically(_) => g.historically(bounds, a),
                }
            }
            NodeKind::Binary(infix, a, b) => {
                let (a, b) = (lowered[*a]?, lowered[*b]?);
                match infix {
                    Infix::Arithmetic(op) => return self.has_result(node, |g| g.binary(*op, a, b)),
                    Infix::Compare(op) => return Some(self.lower_comparison(node, *op, a, b)),
                    Infix::Iff => g.iff(a, b),
                    Infix::Implies => g.implies(a, b),
                    Infix::Or => g.or(a, b),
                    Infix::And => g.and(a, b),
                    Infix::Since(_) => g.since(bounds, a, b),
                }
            }
            NodeKind::If(condition, yes, no) => g.choice(lowered[*condition]?, lowered[*yes]?, lowered[*no]?),
            NodeKind::Call(function, arguments) => {
                return self.lower_call(node, *function, arguments, lowered);
            }
            NodeKind::Path(..) | NodeKind::On(_) | NodeKind::Rye { .. } | NodeKind::Broken => return None,
        };
        Some(id)
    }

    fn lower_call(
        &mut self,
        node: NodeId,
        function: Function,
        arguments: &[NodeId],
        lowered: &[Option<ExprId>],
    ) -> Option<ExprId> {
        let a = lowered[*arguments.first()?]?;
        let b = match arguments.get(1) {
            Some(b) => lowered[*b]?,
            None => a,
        };
        let id = match function {
            Function::Abs => return self.has_result(node, |g| g.unary(UnaryOp::Abs, a)),
            Function::Min => return self.has_result(node, |g| g.binary(BinaryOp::Min, a, b)),
            Function::Max => return self.has_result(node, |g| g.binary(BinaryOp::Max, a, b)),
            Function::StartsWith => self.graph.starts_with(a, b),
            Function::Prev => self.graph.prev(a),
            Function::Rising => self.graph.rising(a),
            Function::Falling => self.graph.falling(a),
            Function::Changed => {
                let topics = self.graph.topics_of(a);
                if topics.is_empty() {
                    let message = "this mentions no topic, so that no message can change it";
                    let span = arguments.first().map_or(self.span(node), |a| self.span(*a));
                    self.diagnostics.push(Diagnostic::new(Code::NeverUpdated, span, message));
                    return None;
                }
                self.graph.changed(&topics, a)
            }
        };
        Some(id)
    }

    /// Arithmetic, which may have no result.
    fn has_result(
        &mut self,
        node: NodeId,
        build: impl FnOnce(&mut crate::graph::Graph) -> Option<ExprId>,
    ) -> Option<ExprId> {
        let id = build(&mut self.graph);
        if id.is_none() {
            let division = matches!(
                self.ast.nodes[node].kind,
                NodeKind::Binary(Infix::Arithmetic(BinaryOp::Divide | BinaryOp::Remainder), ..)
            );
            let message = match division {
                true => "this division of integers has no result",
                false => "the result of this does not fit into an int (64 bits)",
            };
            let span = self.span(node);
            self.diagnostics.push(Diagnostic::new(Code::NoResult, span, message));
        }
        id
    }

    fn lower_comparison(&mut self, node: NodeId, op: Comparison, a: ExprId, b: ExprId) -> ExprId {
        let id = self.graph.compare(op, a, b);
        let warning = super::constant::comparison(&self.graph, op, a, b, id, self.span(node));
        self.diagnostics.extend(warning);
        id
    }

    fn lower_bounds(&mut self, syntax: &BoundsSyntax, lowered: &[Option<ExprId>]) -> Option<Bounds> {
        let lower = match &syntax.lower {
            Some(bound) => self.lower_bound(bound, lowered)?,
            None => 0,
        };
        let upper = match &syntax.upper {
            Some(bound) => Some(self.lower_bound(bound, lowered)?),
            None => None,
        };
        let bounds = Bounds { lower, upper };
        if is_empty(bounds) {
            let message = "there is nothing between these bounds";
            self.diagnostics.push(
                Diagnostic::new(Code::EmptyInterval, syntax.span, message)
                    .help("the nearer bound comes first: `[a,b]` reaches from a to b steps back"),
            );
        }
        Some(bounds)
    }

    fn lower_bound(&mut self, bound: &Bound, lowered: &[Option<ExprId>]) -> Option<u64> {
        let name = match bound {
            Bound::Steps(steps) => return Some(*steps),
            Bound::Name(name) => name,
        };
        let ast = self.ast;
        let binding = ast.bindings.iter().find(|binding| binding.name.text == name.text)?;
        // If the constant itself is broken, that has been reported.
        let id = binding.body.root.and_then(|root| lowered[root])?;
        let found = match self.graph.constant(id) {
            Some(Value::Int(steps)) => match u64::try_from(*steps) {
                Ok(steps) => return Some(steps),
                Err(_) => "is negative",
            },
            Some(_) => "is not an integer",
            None => "is not a constant",
        };
        let message = format!("a bound is a whole number of steps, but '{}' {found}", name.text);
        let code = if found == "is not a constant" { Code::NotConstant } else { Code::InvalidBounds };
        let place: Span = binding.name.span;
        self.diagnostics.push(Diagnostic::new(code, name.span, message).label(place, "declared here"));
        None
    }
}
