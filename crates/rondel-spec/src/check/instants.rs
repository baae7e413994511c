//! Warnings about missed edges in dense time. `rising` and `falling` detect a change at a time point; a value that
//! changes just after a time point, such as the end of `once[0, 2 s] on(a)`, has no such time point.

use rondel_event::{Comparison, ValueType};

use super::Checker;
use super::linear::LINEAR_OPTION;
use crate::diagnostic::{Code, Diagnostic};
use crate::graph::Graph;
use crate::spec::{Below, ChainMeasure, Class, Expr, ExprId, Temporal};
use crate::syntax::ast::Name;

/// The ways in which a node can change in dense time.
#[derive(Clone, Copy, Default)]
struct EdgeTiming {
    /// The node because of which it can become true just after a time point.
    rises: Option<ExprId>,
    /// The node because of which it can become false just after a time point.
    falls: Option<ExprId>,
    /// Whether it is true only at isolated time points; `is_gap`: false only there.
    is_instant: bool,
    is_gap: bool,
}

impl EdgeTiming {
    fn instant(id: ExprId) -> EdgeTiming {
        EdgeTiming { falls: Some(id), is_instant: true, ..EdgeTiming::default() }
    }

    fn not(self) -> EdgeTiming {
        EdgeTiming { rises: self.falls, falls: self.rises, is_instant: self.is_gap, is_gap: self.is_instant }
    }

    fn and(self, other: EdgeTiming) -> EdgeTiming {
        let is_instant = self.is_instant || other.is_instant;
        EdgeTiming {
            rises: self.rises.or(other.rises).filter(|_| !is_instant),
            falls: self.falls.or(other.falls),
            is_instant,
            is_gap: self.is_gap && other.is_gap,
        }
    }

    /// Returns the union of both.
    fn either(self, other: EdgeTiming) -> EdgeTiming {
        EdgeTiming {
            rises: self.rises.or(other.rises),
            falls: self.falls.or(other.falls),
            is_instant: self.is_instant && other.is_instant,
            is_gap: self.is_gap && other.is_gap,
        }
    }
}

impl Checker<'_> {
    /// Warns about edges in dense time whose operand can change just after a time point.
    pub(super) fn warn_of_missed_edges(&mut self, name: &Name, roots: Vec<ExprId>, is_linear: bool) {
        let graph = &self.graph;
        let nodes = &graph.spec().nodes;
        let below = Below::new(nodes, roots);
        let edges: Vec<(ExprId, ExprId)> =
            below.filter_map(|(id, node)| Some((id, edge(nodes, node)?))).collect();
        let Some(last) = edges.iter().map(|(_, becomes)| becomes.index()).max() else { return };
        let mut turns: Vec<EdgeTiming> = Vec::with_capacity(last + 1);
        for id in (0..=last as u32).map(ExprId) {
            let found = edge_timing(graph, id, &turns, is_linear);
            turns.push(found);
        }
        for (edge, becomes) in edges {
            let Some(late) = turns[becomes.index()].rises else { continue };
            let places = &graph.spec().places;
            let place = |node: ExprId| self.place_in(name, node).or_else(|| places.node(node));
            let Some(span) = place(edge) else { continue };
            let message = "this edge is missed where the value changes just after a time point";
            let mut diagnostic = Diagnostic::new(Code::NoInstant, span, message).help(advice(graph, late));
            if let Some(late) = place(late).filter(|late| *late != span) {
                diagnostic = diagnostic.label(late, "changes just after a time point");
            }
            if is_linear && self.implicit_time == Some(name.span) {
                diagnostic = diagnostic.label(name.span, LINEAR_OPTION);
            }
            self.diagnostics.push(diagnostic);
        }
    }
}

/// Returns the operand of an edge, if the node is one.
fn edge(nodes: &[Expr], node: &Expr) -> Option<ExprId> {
    let Expr::And(x, y) = node else { return None };
    let opposite =
        |a: ExprId, b: ExprId| nodes[a.index()] == Expr::Not(b) || nodes[b.index()] == Expr::Not(a);
    let becomes = |x: ExprId, y: ExprId| match nodes[y.index()] {
        Expr::Not(before) => matches!(nodes[before.index()], Expr::Previously(before) if before == x),
        Expr::Previously(before) => opposite(x, before),
        _ => false,
    };
    if becomes(*x, *y) {
        return Some(*x);
    }
    becomes(*y, *x).then_some(*y)
}

fn edge_timing(graph: &Graph, id: ExprId, turns: &[EdgeTiming], is_linear: bool) -> EdgeTiming {
    let spec = graph.spec();
    let expr = &spec.nodes[id.index()];
    let of = |x: &ExprId| turns[x.index()];
    // A past operator is named itself as the cause.
    let own = |late: Option<ExprId>| late.map(|_| id);
    match expr {
        Expr::And(..) if edge(&spec.nodes, expr).is_some() => EdgeTiming::instant(id),
        Expr::Not(x) => of(x).not(),
        Expr::Definitely(x) | Expr::Exists(_, x) | Expr::ForAll(_, x) => of(x),
        Expr::And(x, y) => of(x).and(of(y)),
        Expr::Or(x, y) => of(x).not().and(of(y).not()).not(),
        Expr::If(c, x, y) if graph.value_type(*x) == ValueType::Bool => {
            let EdgeTiming { rises, falls, .. } = of(c);
            let late = rises.or(falls);
            EdgeTiming { rises: late, falls: late, ..EdgeTiming::default() }.either(of(x)).either(of(y))
        }
        Expr::Previously(x) if !of(x).is_instant => {
            EdgeTiming { rises: Some(id), falls: Some(id), ..EdgeTiming::default() }
        }
        Expr::InState(machine, states) => {
            let machine = spec.machines.get(machine.0 as usize);
            let waits = machine.into_iter().flat_map(|m| &m.transitions).filter(|t| t.after.is_some());
            let mut turns = EdgeTiming::default();
            for transition in waits {
                match [transition.from, transition.to].map(|state| states.contains(&state)) {
                    [false, true] => turns.rises = Some(id),
                    [true, false] => turns.falls = Some(id),
                    _ => {}
                }
            }
            turns
        }
        Expr::Compare(comparison, x, y) => compared(graph, id, *comparison, *x, *y, turns, is_linear),
        _ => match (expr.class(), expr.past()) {
            (Class::Event, _) => EdgeTiming::instant(id),
            (_, Some(Temporal { bounds, all, guard, operand })) => {
                // With `all`, both are negated.
                let operand = if all { of(&operand).not() } else { of(&operand) };
                let ends = own(operand.falls).filter(|_| bounds.upper.is_some());
                let falls = guard.and_then(|guard| of(&guard).falls).or(ends);
                let some = EdgeTiming { rises: operand.rises, falls, ..EdgeTiming::default() };
                if all { some.not() } else { some }
            }
            _ => EdgeTiming::default(),
        },
    }
}

/// The two sides of a comparison are equal at the time point of crossing.
fn compared(
    graph: &Graph,
    id: ExprId,
    comparison: Comparison,
    x: ExprId,
    y: ExprId,
    turns: &[EdgeTiming],
    is_linear: bool,
) -> EdgeTiming {
    if graph.value_type(x) == ValueType::Bool {
        let [x, y] = [x, y].map(|x| turns[x.index()]);
        let late = x.rises.or(x.falls).or(y.rises).or(y.falls);
        return EdgeTiming { rises: late, falls: late, ..EdgeTiming::default() };
    }
    let passes = (is_linear && super::linear::is_interpolated(graph, x, y))
        || grows(graph, x, y)
        || grows(graph, y, x);
    match comparison {
        _ if !passes => EdgeTiming::default(),
        Comparison::Less | Comparison::Greater | Comparison::NotEqual => {
            EdgeTiming { rises: Some(id), ..EdgeTiming::default() }
        }
        _ => EdgeTiming { falls: Some(id), ..EdgeTiming::default() },
    }
}

/// Returns whether the first operand grows with time and the second is constant.
fn grows(graph: &Graph, x: ExprId, y: ExprId) -> bool {
    let age = &graph.spec().nodes[x.index()];
    let ages = matches!(age, Expr::Age(_) | Expr::Chain(_, ChainMeasure::Age | ChainMeasure::Reaction));
    ages && graph.constant(y).is_some()
}

/// Returns the advice for a missed edge.
fn advice(graph: &Graph, late: ExprId) -> String {
    let nodes = &graph.spec().nodes;
    match &nodes[late.index()] {
        Expr::Compare(comparison, ..) => match comparison {
            Comparison::Equal | Comparison::NotEqual => {
                "both sides are equal only at the time point of crossing; compare with `<=` or `>=`".to_owned()
            }
            other => {
                let meant = match other {
                    Comparison::Less => "<=",
                    Comparison::LessOrEqual => "<",
                    Comparison::Greater => ">=",
                    _ => ">",
                };
                format!("both sides are equal at the time point of crossing; with `{meant}` the edge is at that time point")
            }
        },
        node if node.past().is_some() => {
            "bounds include their far end and a window does not: write `count(p) over 2 s > 0` instead of \
             `once[0, 2 s] p`"
                .to_owned()
        }
        Expr::InState(..) => {
            "a transition with `after` is taken just after its time has passed; test the state itself with `in(…)`".to_owned()
        }
        Expr::Previously(_) => "remove `previously`".to_owned(),
        _ => "an event is true at one time point only and false just after it: use the event itself".to_owned(),
    }
}
