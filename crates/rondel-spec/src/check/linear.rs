//! Numbers that run straight between messages: which properties ask for that, and what they can compare.

use std::collections::{HashMap, HashSet};

use rondel_event::{Comparison, ValueType};

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::Graph;
use crate::spec::{BinaryOp, Expr, ExprId, SliceId, TimeModel, UnaryOp};
use crate::syntax::ast::{Attribute, Name};

const WAY_OUT: &str = "numbers run straight under `+`, `-`, `abs`, `min`, `max`, and times or over a constant; \
                       for the rest write a second property, with `@interpolate(constant)`";

/// The attribute that says that numbers run straight, if that is what is said last.
pub(super) fn asked(attributes: &[Attribute]) -> Option<&Attribute> {
    let says = |a: &&Attribute| matches!(a.name.text.as_str(), "linear" | "interpolate");
    let last = attributes.iter().rev().find(says)?;
    matches!((last.name.text.as_str(), last.value.as_str()), ("linear", "") | (_, "linear")).then_some(last)
}

impl Checker<'_> {
    /// Whether numbers run straight in a property. What cannot is refused at its place.
    pub(super) fn linear(
        &mut self,
        name: &Name,
        attributes: &[Attribute],
        formula: ExprId,
        slice: Option<SliceId>,
        time: TimeModel,
    ) -> bool {
        let says = |a: &Attribute| matches!(a.name.text.as_str(), "time" | "linear" | "interpolate");
        let place = match asked(attributes) {
            Some(attribute) => attribute.span,
            None if self.linear && !attributes.iter().any(says) => name.span,
            None => return false,
        };
        let refused = if time != TimeModel::Dense {
            let message =
                "values run straight in dense time only: elsewhere there is nothing between messages";
            let diagnostic = Diagnostic::new(Code::WrongTimeModel, place, message);
            Some(diagnostic.help("write `@time(dense)`, or leave `@time` out"))
        } else if slice.is_some() {
            let message = "what is divided by key has values that are constant between messages";
            let diagnostic = Diagnostic::new(Code::NotStraight, place, message);
            Some(diagnostic.help("write `@interpolate(constant)`, or a property without `for each`"))
        } else if attributes.iter().any(|a| a.name.text == "robust") {
            let message = "a robustness is measured of values that are constant between messages";
            let diagnostic = Diagnostic::new(Code::NotStraight, place, message);
            Some(diagnostic.help("write `@interpolate(constant)`, or two properties"))
        } else {
            found(&self.graph, formula).map(|(way, what)| {
                let spec = self.graph.spec();
                let is_declared = spec.machines.iter().any(|machine| machine.name == name.text)
                    || spec.chains.iter().any(|chain| chain.name == name.text);
                // A node that another property has as well has its place there.
                let inside = way.iter().find_map(|node| {
                    let place = spec.places.node(*node).filter(|_| !is_declared)?;
                    (!self.is_elsewhere(name, place)).then_some(place)
                });
                refused(what, inside.unwrap_or(place))
            })
        };
        self.diagnostics.extend(refused);
        true
    }

    /// Whether a place is in another property than that of this name.
    fn is_elsewhere(&self, name: &Name, place: Span) -> bool {
        let others = self.ast.properties.iter().filter(|property| property.name.span != name.span);
        let mut roots = others.filter_map(|property| property.body.root);
        roots.any(|root| {
            let span = self.span(root);
            span.start <= place.start && place.end <= span.end
        })
    }
}

fn refused(what: &str, span: Span) -> Diagnostic {
    let message = format!("{what} does not go with values that run straight between messages");
    Diagnostic::new(Code::NotStraight, span, message).help(WAY_OUT)
}

/// What is wrong with a formula in which numbers are to run straight, if anything is.
pub(crate) fn not_straight(graph: &Graph, formula: ExprId, span: Span) -> Option<Diagnostic> {
    found(graph, formula).map(|(_, what)| refused(what, span))
}

/// What in a formula does not run straight, with what it is a part of up to the whole, and a word for it.
fn found(graph: &Graph, formula: ExprId) -> Option<(Vec<ExprId>, &'static str)> {
    let nodes = &graph.spec().nodes;
    // Operands stand before what they are of.
    let mut moves: Vec<bool> = Vec::with_capacity(nodes.len());
    for expr in nodes {
        let own = matches!(expr, Expr::Field { value_type: ValueType::Int | ValueType::Float, .. });
        moves.push(own || expr.operands().any(|operand| moves[operand.index()]));
    }
    let moves = |id: ExprId| moves[id.index()];
    let mut first: Option<(ExprId, &'static str)> = None;
    let mut seen = HashSet::from([(formula, false)]);
    // With each whether it is a part of numbers that are compared, some of which run straight.
    let mut open = vec![(formula, false)];
    let mut above = HashMap::new();
    while let Some((id, is_number)) = open.pop() {
        let expr = &nodes[id.index()];
        let what = if is_number { bent(graph, expr) } else { strange(expr, &moves) };
        if let Some(what) = what {
            if first.is_none_or(|(first, _)| id < first) {
                first = Some((id, what));
            }
            continue;
        }
        let inside = match expr {
            Expr::Compare(_, x, y) => (moves(*x) || moves(*y)) && graph.value_type(*x) != ValueType::Bool,
            _ => is_number,
        };
        // Whether a message brought another value is asked of the messages.
        let change = match expr {
            Expr::And(on, change) if is_update(graph, *on) && is_change(graph, *change) => Some(*change),
            _ => None,
        };
        let operands = expr.operands().filter(|operand| Some(*operand) != change);
        for part in operands.map(|operand| (operand, inside)).filter(|part| seen.insert(*part)) {
            above.entry(part.0).or_insert(id);
            open.push(part);
        }
    }
    let (node, what) = first?;
    let way = std::iter::successors(Some(node), |node| above.get(node).copied());
    Some((way.collect(), what))
}

/// What cannot be in such a property at all.
fn strange(expr: &Expr, moves: &dyn Fn(ExprId) -> bool) -> Option<&'static str> {
    match expr {
        Expr::Window { .. } => Some("a window"),
        Expr::Age(_) | Expr::Latency(_) | Expr::Jitter(_) => Some("what is measured of messages"),
        Expr::Chain(..) => Some("a chain"),
        Expr::InState(..) | Expr::Ambiguous(_) | Expr::MachineVariable(..) => Some("a machine"),
        Expr::Exists(..) | Expr::ForAll(..) => Some("a quantifier"),
        Expr::Prev(x) if moves(*x) => Some("`prev` of a number"),
        _ => None,
    }
}

/// What numbers that are compared, and some of which run straight, cannot be made of.
fn bent(graph: &Graph, expr: &Expr) -> Option<&'static str> {
    let constant = |id: &ExprId| graph.constant(*id).is_some();
    match expr {
        Expr::Literal(_)
        | Expr::Field { value_type: ValueType::Int | ValueType::Float, .. }
        | Expr::ToFloat(_)
        | Expr::Unary(UnaryOp::Negate | UnaryOp::Abs, _)
        | Expr::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Min | BinaryOp::Max, ..) => None,
        Expr::Binary(BinaryOp::Multiply, x, y) if constant(x) || constant(y) => None,
        Expr::Binary(BinaryOp::Multiply, ..) => Some("a product of two numbers that change"),
        Expr::Binary(BinaryOp::Divide, _, y) if constant(y) => None,
        Expr::Binary(BinaryOp::Divide, ..) => Some("division by a number that changes"),
        Expr::Binary(BinaryOp::Remainder, ..) => Some("`%`"),
        Expr::Field { .. } => Some("a time"),
        Expr::If(..) => Some("a choice between numbers"),
        Expr::Prev(_) => Some("`prev` of a number"),
        other => strange(other, &|_| true).or(Some("this")),
    }
}

fn is_update(graph: &Graph, id: ExprId) -> bool {
    matches!(graph.spec().nodes[id.index()], Expr::On(_))
}

/// Whether it asks if a field is another than before the last message.
fn is_change(graph: &Graph, id: ExprId) -> bool {
    let nodes = &graph.spec().nodes;
    let Expr::Compare(Comparison::NotEqual, x, before) = &nodes[id.index()] else { return false };
    matches!(&nodes[before.index()], Expr::Prev(y) if x == y)
        && matches!(nodes[x.index()], Expr::Field { .. })
}
