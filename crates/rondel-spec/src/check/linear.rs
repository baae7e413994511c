//! Checks of properties with linear interpolation.

use std::collections::{HashMap, HashSet};

use rondel_event::{Comparison, Quantifier, ValueType};

use super::{Checker, attributes};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::Graph;
use crate::spec::{Below, BinaryOp, Class, Expr, ExprId, SliceId, TimeModel, UnaryOp, fold};
use crate::syntax::ast::{Attribute, Name};

const SECOND_PROPERTY: &str = "write a second property for it with `@interpolate(constant)`";

/// The label where the command-line option requests linear interpolation.
pub(super) const LINEAR_OPTION: &str =
    "numbers are interpolated linearly because of `--time linear` (`time: linear` in a deployment)";

impl Checker<'_> {
    /// Returns whether a property uses linear interpolation, and reports what cannot be combined with it.
    pub(super) fn linear(
        &mut self,
        name: &Name,
        attributes: &[Attribute],
        formula: ExprId,
        slice: Option<SliceId>,
        time: TimeModel,
    ) -> bool {
        let attribute = attributes::linear_interpolation(attributes);
        if attribute.is_none() && (!self.linear || attributes::chooses_time(attributes)) {
            return false;
        }
        let ast = self.ast;
        // A further bound of a chain has the settings of the chain.
        if ast.chains.iter().flat_map(|chain| &chain.bounds).any(|bound| bound.name.span == name.span) {
            return false;
        }
        // The option has no effect on properties that compare no numbers.
        if attribute.is_none() && !self.has_numbers(formula, slice) {
            return false;
        }
        let place = attribute.map_or(name.span, |attribute| attribute.span);
        let without = match attribute {
            Some(attribute) => format!("remove `{}`", attribute.span.of(self.text)),
            None => "write `@interpolate(constant)` before it".to_owned(),
        };
        let is_chain = ast.chains.iter().any(|chain| chain.name.span == name.span);
        let is_machine = ast.machines.iter().any(|machine| machine.name.span == name.span);
        let error = if time != TimeModel::Dense {
            let message = "linear interpolation needs dense time";
            let diagnostic = Diagnostic::new(Code::WrongTimeModel, place, message);
            Some(diagnostic.help("write `@time(dense)`, or remove `@time`"))
        } else if is_chain || is_machine {
            let subject = if is_chain { "a chain" } else { "a machine" };
            Some(depends_on_messages(subject, place).help(without))
        } else if slice.is_some() {
            let message = "linear interpolation cannot be combined with `for each`";
            let diagnostic = Diagnostic::new(Code::NotStraight, place, message);
            Some(diagnostic.help(format!("{without}, or remove `for each`")))
        } else if attributes::find(attributes, "robust").is_some() {
            let message = "linear interpolation cannot be combined with `@robust`";
            let diagnostic = Diagnostic::new(Code::NotStraight, place, message);
            Some(diagnostic.help(format!("{without}, or write two properties")))
        } else {
            first_conflict(&self.graph, formula).map(|(path, not_linear)| {
                let inside = path.iter().find_map(|node| self.place_in(name, *node));
                not_linear.error(inside.unwrap_or(place))
            })
        };
        let error = error.map(|error| match attribute {
            Some(_) => error,
            None => error.label(name.span, LINEAR_OPTION),
        });
        self.diagnostics.extend(error);
        true
    }

    /// Returns whether a formula contains numeric fields.
    fn has_numbers(&self, formula: ExprId, slice: Option<SliceId>) -> bool {
        let spec = self.graph.spec();
        let until = slice.and_then(|id| spec.slices.get(id.0 as usize)?.until);
        spec.below_with_machines(until.into_iter().chain([formula])).any(|(_, node)| is_number(node))
    }

    /// Returns the location of a node in a property, or in a definition that it uses.
    pub(super) fn place_in(&self, name: &Name, node: ExprId) -> Option<Span> {
        let ast = self.ast;
        let own = ast.properties.iter().find(|property| property.name.span == name.span)?;
        let mut nodes = own.body.nodes();
        if let Some(here) = nodes.find(|here| self.lowered_to(*here, TimeModel::Dense) == Some(node)) {
            return Some(self.span(here));
        }
        // A shared node has its location in another property.
        let place = self.graph.spec().places.node(node)?;
        let mut roots = ast.properties.iter().filter_map(|property| property.body.root);
        let is_elsewhere = roots.any(|root| {
            let span = self.span(root);
            span.start <= place.start && place.end <= span.end
        });
        (!is_elsewhere).then_some(place)
    }
}

/// The reason why an expression cannot be combined with linear interpolation, and the fix.
#[derive(Clone, Copy)]
struct NotLinear {
    subject: &'static str,
    /// Whether the expression depends on individual messages; otherwise it is not piecewise linear.
    depends_on_messages: bool,
    advice: &'static str,
}

impl NotLinear {
    const fn number(subject: &'static str, advice: &'static str) -> NotLinear {
        NotLinear { subject, depends_on_messages: false, advice }
    }

    const fn messages(subject: &'static str, advice: &'static str) -> NotLinear {
        NotLinear { subject, depends_on_messages: true, advice }
    }

    fn error(self, span: Span) -> Diagnostic {
        let diagnostic = if self.depends_on_messages {
            depends_on_messages(self.subject, span)
        } else {
            let message = format!("{} is not piecewise linear", self.subject);
            Diagnostic::new(Code::NotStraight, span, message)
        };
        diagnostic.help(self.advice)
    }
}

fn depends_on_messages(subject: &str, span: Span) -> Diagnostic {
    let message =
        format!("{subject} depends on individual messages and cannot be combined with linear interpolation");
    Diagnostic::new(Code::NotStraight, span, message)
}

/// Returns the error for a single formula for which the option requests linear interpolation.
pub(crate) fn not_piecewise_linear(graph: &Graph, formula: ExprId, span: Span) -> Option<Diagnostic> {
    let has_numbers = graph.spec().nodes.iter().any(is_number);
    let (_, not_linear) = first_conflict(graph, formula).filter(|_| has_numbers)?;
    Some(not_linear.error(span).label(span, LINEAR_OPTION))
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Field { value_type: ValueType::Int | ValueType::Float, .. })
}

/// Returns the first node that cannot be combined with linear interpolation, with its ancestors and the reason.
fn first_conflict(graph: &Graph, formula: ExprId) -> Option<(Vec<ExprId>, NotLinear)> {
    let nodes = &graph.spec().nodes;
    let varies = fold(nodes, |_, expr, varies: &[bool]| {
        is_number(expr) || expr.operands().any(|operand| varies[operand.index()])
    });
    let varies = |id: ExprId| varies[id.index()];
    let mut first: Option<(ExprId, NotLinear)> = None;
    let mut seen = HashSet::from([(formula, false)]);
    // With each node, whether it is part of a comparison of interpolated numbers.
    let mut open = vec![(formula, false)];
    let mut above = HashMap::new();
    while let Some((id, is_number)) = open.pop() {
        let expr = &nodes[id.index()];
        let conflict = if is_number { not_linear(graph, expr) } else { needs_messages(graph, expr, &varies) };
        if let Some(conflict) = conflict {
            if first.is_none_or(|(first, _)| id < first) {
                first = Some((id, conflict));
            }
            continue;
        }
        let inside = match expr {
            Expr::Compare(_, x, y) => (varies(*x) || varies(*y)) && graph.value_type(*x) != ValueType::Bool,
            _ => is_number,
        };
        // `changed` compares the values of messages, not interpolated ones.
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
    let (node, conflict) = first?;
    let path = std::iter::successors(Some(node), |node| above.get(node).copied());
    Some((path.collect(), conflict))
}

/// Returns the reason for an expression that depends on individual messages.
fn needs_messages(graph: &Graph, expr: &Expr, varies: &dyn Fn(ExprId) -> bool) -> Option<NotLinear> {
    let subject = match expr {
        Expr::Window { .. } => "a window",
        Expr::Age(_) => "`age`",
        Expr::Latency(_) => "`latency`",
        Expr::Jitter(_) => "`jitter`",
        Expr::Chain(..) => "a measurement of a chain",
        _ if expr.class() == Class::Machine => "a machine",
        _ if expr.class() == Class::Quantifier => "a quantifier",
        Expr::And(on, change) => return changed(graph, *on, *change, varies),
        // `known` and `is_nan`.
        Expr::If(certain, yes, _)
            if graph.constant(*yes).is_some()
                && matches!(graph.spec().nodes[certain.index()], Expr::Definitely(x) if varies(x)) =>
        {
            "`known` of a number"
        }
        Expr::Prev(x) if !varies(*x) => return None,
        Expr::Prev(x) if graph.value_type(*x) == ValueType::Bool => {
            let advice = "write `previously p` for the value just before this time point; for the value at the last \
                           message, write a second property with `@interpolate(constant)`";
            return Some(NotLinear::messages("`prev` of a comparison of numbers", advice));
        }
        Expr::Prev(_) => return Some(PREV),
        _ => return None,
    };
    Some(NotLinear::messages(subject, SECOND_PROPERTY))
}

const PREV: NotLinear = NotLinear::messages(
    "`prev` of a number",
    "write `changed(topic.field)` to detect a new value; otherwise write a second property with \
     `@interpolate(constant)`",
);

/// Returns the reason for `changed` of something other than a field.
fn changed(graph: &Graph, on: ExprId, change: ExprId, varies: &dyn Fn(ExprId) -> bool) -> Option<NotLinear> {
    let nodes = &graph.spec().nodes;
    let is_on = |id: ExprId| is_update(graph, id);
    let is_update = is_on(on) || matches!(nodes[on.index()], Expr::Or(x, y) if is_on(x) || is_on(y));
    let Expr::Compare(Comparison::NotEqual, x, before) = nodes[change.index()] else { return None };
    let is_change = matches!(nodes[before.index()], Expr::Prev(y) if x == y);
    if !is_update || !is_change || !varies(x) || matches!(nodes[x.index()], Expr::Field { .. }) {
        return None;
    }
    Some(match graph.value_type(x) {
        ValueType::Bool => NotLinear::messages(
            "`changed` of a comparison of numbers",
            "write `rising(p) or falling(p)` to detect a change of a boolean",
        ),
        _ => NotLinear::messages(
            "`changed` of a computed value",
            "check each field by itself: `changed(topic.a) or changed(topic.b)`",
        ),
    })
}

/// Returns the reason for an operand of a comparison that is not piecewise linear.
fn not_linear(graph: &Graph, expr: &Expr) -> Option<NotLinear> {
    let constant = |id: &ExprId| graph.constant(*id).is_some();
    Some(match expr {
        Expr::Literal(_)
        | Expr::Field { value_type: ValueType::Int | ValueType::Float, .. }
        | Expr::ToFloat(_)
        | Expr::Unary(UnaryOp::Negate | UnaryOp::Abs, _)
        | Expr::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Min | BinaryOp::Max, ..) => {
            return None;
        }
        Expr::Binary(BinaryOp::Multiply, x, y) if constant(x) || constant(y) => return None,
        Expr::Binary(BinaryOp::Multiply, ..) => NotLinear::number(
            "a product of two variable numbers",
            "make one factor a constant; otherwise write a second property for it with `@interpolate(constant)`",
        ),
        Expr::Binary(BinaryOp::Divide, _, y) if constant(y) => return None,
        Expr::Binary(BinaryOp::Divide, ..) => NotLinear::number(
            "a quotient with a variable divisor",
            "for positive `y`, write `x > 3 * y` instead of `x / y > 3`; otherwise write a second property for it \
             with `@interpolate(constant)`",
        ),
        Expr::Binary(BinaryOp::Remainder, ..) => NotLinear::number("a remainder (`%`)", SECOND_PROPERTY),
        Expr::If(..) => NotLinear::number(
            "an `if` between numbers",
            "write an `if` between comparisons: `if p then x < 3 else y < 3`",
        ),
        Expr::Prev(_) => PREV,
        Expr::Elements { quantifier, .. } if quantifier.is_measure() => NotLinear::number(
            "a measure of elements beside an interpolated number",
            "compare the measure with a constant, or write a second property with `@interpolate(constant)`",
        ),
        Expr::Elements { quantifier: Quantifier::Count, .. } => NotLinear::number(
            "a number of elements beside an interpolated number",
            "compare the number with a constant, or write a second property with `@interpolate(constant)`",
        ),
        Expr::Length { .. } => NotLinear::number(
            "`len` beside an interpolated number",
            "compare the length with a constant, or write a second property with `@interpolate(constant)`",
        ),
        Expr::Number { .. } => NotLinear::number(
            "`number` beside an interpolated number",
            "compare the number with a constant, or write a second property with `@interpolate(constant)`",
        ),
        other => needs_messages(graph, other, &|_| true)
            .unwrap_or(NotLinear::number("this expression", SECOND_PROPERTY)),
    })
}

/// Returns whether a comparison has interpolated operands.
pub(super) fn is_interpolated(graph: &Graph, x: ExprId, y: ExprId) -> bool {
    let nodes = &graph.spec().nodes;
    // `changed` compares the values of messages, not interpolated ones.
    if matches!(nodes[y.index()], Expr::Prev(before) if before == x) {
        return false;
    }
    Below::new(nodes, [x, y]).any(|(_, node)| is_number(node))
}

fn is_update(graph: &Graph, id: ExprId) -> bool {
    matches!(graph.spec().nodes[id.index()], Expr::On(_))
}

/// Returns whether the node compares a field with its previous value.
fn is_change(graph: &Graph, id: ExprId) -> bool {
    let nodes = &graph.spec().nodes;
    let Expr::Compare(Comparison::NotEqual, x, before) = &nodes[id.index()] else { return false };
    matches!(&nodes[before.index()], Expr::Prev(y) if x == y)
        && matches!(nodes[x.index()], Expr::Field { .. })
}
