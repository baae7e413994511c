//! Checks of the positions of future operators.

use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::ast::{Body, Function, Infix, NodeId, NodeKind, Prefix, Property};

const ADVICE: &str =
    "put future operators outside: they may contain past operators, but not the other way round";

impl Checker<'_> {
    /// Reports future operators inside operators with memory, which would have to wait for the values they remember.
    pub(super) fn check_future(&mut self) {
        let ast = self.ast;
        for binding in self.order.clone() {
            ast.bindings[binding].body.nodes().for_each(|node| self.check_future_of(node));
        }
        for until in ast.for_eaches.iter().filter_map(|each| each.until) {
            until.nodes().for_each(|node| self.check_future_of(node));
            self.no_future(until, "the `until` of a `for each`");
        }
        for body in ast.machines.iter().flat_map(|machine| machine.bodies()) {
            body.nodes().for_each(|node| self.check_future_of(node));
            self.no_future(body, "a machine");
        }
        for property in &ast.properties {
            for node in property.body.nodes() {
                if !self.refuse_held(property, node) {
                    self.check_future_of(node);
                }
            }
        }
        for assert in &ast.asserts {
            let bodies = [Some(assert.body), assert.mode].into_iter().flatten();
            bodies.flat_map(|body| body.nodes()).for_each(|node| self.check_future_of(node));
            assert.mode.into_iter().for_each(|mode| self.no_future(mode, "`while`"));
        }
    }

    /// Reports an expression with a future operator where its value is needed at once.
    pub(super) fn no_future(&mut self, body: Body, inside: &str) {
        if let Some(root) = body.root
            && let Some(ahead) = self.future[root]
        {
            self.report_future(root, ahead, inside, ADVICE);
        }
    }

    fn report_future(&mut self, node: NodeId, ahead: NodeId, inside: &str, help: &str) {
        if !self.is_invalid(node) {
            let message = format!("{inside} cannot contain a future operator");
            let diagnostic = Diagnostic::new(Code::FutureInside, self.span(node), message);
            self.invalidate(node, diagnostic.label(self.span(ahead), "future operator").help(help));
        }
    }

    /// Reports `@hold` or `@latch` on a formula that looks ahead, at the node that the attribute stands for.
    fn refuse_held(&mut self, property: &Property, node: NodeId) -> bool {
        let NodeKind::Unary(Prefix::Historically(bounds), operand) = &self.ast.nodes[node].kind else {
            return false;
        };
        let name = if bounds.upper.is_some() { "hold" } else { "latch" };
        let attribute = property.attributes.iter().find(|attribute| attribute.name.text == name);
        // An operator that is written begins before its operand.
        let is_written = self.span(node) != self.span(*operand);
        let (Some(attribute), Some(ahead), false) = (attribute, self.future[*operand], is_written) else {
            return false;
        };
        let written = attribute.span.of(self.text);
        let message = format!("`{written}` cannot hold a verdict that waits for the future");
        let help = format!(
            "`@{name}` looks back at verdicts that are not known yet: remove it, or look back yourself, as with \
             `once[2 s, 2 s] p -> once[0, 2 s] q` instead of `p -> eventually[0, 2 s] q`"
        );
        let diagnostic = Diagnostic::new(Code::FutureInside, attribute.span, message);
        let diagnostic = diagnostic.label(self.span(ahead), "future operator").help(help);
        self.invalidate(node, diagnostic);
        true
    }

    pub(super) fn check_future_of(&mut self, node: NodeId) {
        let ast = self.ast;
        if let Meaning::Binding(i) = self.meanings[node] {
            self.future[node] = ast.bindings[i].body.root.and_then(|root| self.future[root]);
            return;
        }
        let kind = &ast.nodes[node].kind;
        let Some(ahead) = kind.operands().into_iter().find_map(|operand| self.future[operand]) else {
            let own = matches!(
                kind,
                NodeKind::Unary(Prefix::Next | Prefix::Eventually(_) | Prefix::Always(_), _)
                    | NodeKind::Binary(Infix::Until(_), ..)
            );
            self.future[node] = own.then_some(node);
            return;
        };
        let inside = match kind {
            NodeKind::Unary(Prefix::Previously, _) => "`previously`",
            NodeKind::Unary(Prefix::Once(_), _) => "`once`",
            NodeKind::Unary(Prefix::Historically(_), _) => "`historically`",
            NodeKind::Binary(Infix::Since(_), ..) => "`since`",
            NodeKind::Binary(Infix::Compare(_), ..) | NodeKind::Member { .. } => "a comparison",
            NodeKind::Call(function, _) => match function {
                Function::Prev => "`prev`",
                Function::Changed => "`changed`",
                Function::Rising => "`rising`",
                Function::Falling => "`falling`",
                _ => "a function",
            },
            NodeKind::Operator { operator, .. } => operator.inside,
            NodeKind::Window { .. } => "a window",
            NodeKind::If(_, yes, _) if !self.is_truth(*yes) => "the condition of an `if` between values",
            _ => {
                self.future[node] = Some(ahead);
                return;
            }
        };
        let help = match inside {
            "a comparison" => "compare booleans with `<->`, which can contain future operators",
            _ => ADVICE,
        };
        self.report_future(node, ahead, inside, help);
    }
}
