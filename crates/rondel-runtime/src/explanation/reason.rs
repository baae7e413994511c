//! Formulas as trees of causes: the search for an explanation follows them.

use std::collections::{BTreeSet, HashMap};

use rondel_event::{TopicId, Value, ValueType};
use rondel_spec::{Bounds, Class, Expr, ExprId, Property, Spec, Temporal, TimeModel, Transition};

use super::machines;
use super::terms::Course;
use crate::specification::formula::word;

mod explain;
mod truth;

pub(super) use explain::{Explained, explain};
pub(super) use truth::Past;

/// Maximum number of lags of a part; the farthest are kept.
const LAGS: usize = 64;

/// The formula of a property.
#[derive(Clone, Debug, Default)]
pub(super) struct Reason {
    /// The nodes, operands before operators.
    nodes: Vec<Node>,
    /// The formula itself.
    formula: usize,
    /// The time model of its bounds.
    time: TimeModel,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// The row that shows its truth.
    row: Option<usize>,
    /// The history of its truth.
    history: Option<usize>,
    /// The rows of the fields that it reads itself.
    fields: Vec<usize>,
    /// The row with its value, of a term.
    term: Option<usize>,
    /// Its operands, by their positions.
    operands: Vec<usize>,
    /// The transitions of its machine.
    moves: Vec<Move>,
    /// The topics that it or its operands read.
    topics: Vec<TopicId>,
    /// Whether it or an operand reads a field, and not only the arrival of messages.
    reads: bool,
    /// Distances at which the spans of the future operators in it and its operands begin and end; empty without future
    /// operators.
    lags: Vec<u64>,
}

/// A transition of a machine.
#[derive(Clone, Debug)]
struct Move {
    from: Value,
    to: Value,
    /// The node of its condition.
    guard: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// All operands are true.
    All,
    /// Some operand is true.
    Any,
    Not,
    /// False where the operand is unknown.
    Definitely,
    /// This truth everywhere.
    Constant(bool),
    /// It has this truth if the operand has it at an earlier time point within the bounds: `once`,
    /// `historically`.
    Back(bool, Bounds),
    /// The second operand was true at an earlier time point, and the first since then.
    Since(Bounds),
    /// As [`Kind::Back`], at later time points: `eventually`, `always`.
    Ahead(bool, Bounds),
    /// The second operand is true at a later time point, and the first until then.
    Until(Bounds),
    /// The second operand where the first is true, the third where it is false.
    If,
    /// The operand at the next time point.
    Next,
    /// The operand at the previous time point.
    Previously,
    /// The operand here and at the previous time point: `rising`, `falling`.
    Edge,
    /// The operand here and before the last message: `changed`.
    Changed,
    /// The operand before the last message.
    Prev,
    /// The messages within this distance.
    Window(u64),
    /// The last message.
    Last,
    /// A state of a machine, which holds since some time point.
    State,
    /// Several transitions of a machine were possible at once.
    Ambiguous,
    /// Its history decides; all its operands explain it.
    Whole,
}

impl Kind {
    fn of(spec: &Spec, id: ExprId) -> Kind {
        match word(spec, id).map(|word| word.word) {
            Some("changed") => return Kind::Changed,
            Some("known" | "is_nan" | "finite") => return Kind::Whole,
            Some(_) => return Kind::Edge,
            None => {}
        }
        match spec.nodes[id.index()] {
            Expr::And(..) => Kind::All,
            Expr::Or(..) => Kind::Any,
            Expr::Not(_) => Kind::Not,
            Expr::Definitely(_) => Kind::Definitely,
            Expr::Literal(Value::Bool(value)) => Kind::Constant(value),
            Expr::If(..) => Kind::If,
            Expr::Next(_) => Kind::Next,
            Expr::Previously(_) => Kind::Previously,
            Expr::Prev(_) => Kind::Prev,
            Expr::Window { over, .. } => Kind::Window(over),
            Expr::InState(..) => Kind::State,
            Expr::Ambiguous(_) => Kind::Ambiguous,
            ref node => match (node.class(), node.temporal()) {
                (Class::Measure, _) => Kind::Last,
                (Class::Past, Some(Temporal { bounds, guard: Some(_), .. })) => Kind::Since(bounds),
                (Class::Past, Some(Temporal { bounds, all, .. })) => Kind::Back(!all, bounds),
                (_, Some(Temporal { bounds, guard: Some(_), .. })) => Kind::Until(bounds),
                (_, Some(Temporal { bounds, all, .. })) => Kind::Ahead(!all, bounds),
                _ => Kind::Whole,
            },
        }
    }

    /// Distances at which its span begins and ends, given those of its operands.
    fn lags(self, of_operands: Vec<u64>) -> Vec<u64> {
        let [lower, upper] = match self {
            Kind::Ahead(_, bounds) | Kind::Until(bounds) => [bounds.lower, bounds.upper.unwrap_or(u64::MAX)],
            Kind::Next => [0; 2],
            _ => return of_operands,
        };
        let further =
            of_operands.iter().chain(&[0]).flat_map(|lag| [lower, upper].map(|own| own.saturating_add(*lag)));
        let lags: BTreeSet<u64> = further.collect();
        lags.into_iter().rev().take(LAGS).collect()
    }
}

/// Source of the values of a row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Row {
    /// A field that holds its value.
    Field,
    /// A number that is interpolated linearly between messages.
    Line,
    /// The state of a machine.
    State,
    /// The element of an array that decides a condition.
    Element,
    /// A part of the formula, with a history of its own.
    Watched,
    /// A part of the formula without a history, evaluated from its operands.
    Made,
    /// A term whose values are recorded.
    Term(Course),
}

impl Reason {
    /// The tree of a property's formula. `shown` maps nodes to the rows that show them.
    pub(super) fn new(
        spec: &Spec,
        property: &Property,
        shown: &HashMap<ExprId, Vec<usize>>,
        rows: &[Row],
    ) -> Reason {
        let formula = property.formula;
        let below = |id: ExprId| -> Vec<ExprId> {
            match word(spec, id) {
                Some(word) => vec![word.operand],
                None => spec.nodes[id.index()].operands().collect(),
            }
        };
        let mut ids = vec![formula];
        let mut places: HashMap<ExprId, usize> = HashMap::from([(formula, 0)]);
        let mut next = 0;
        while let Some(&id) = ids.get(next) {
            next += 1;
            let machine = machines::of(spec, property, id);
            let moves = machine.into_iter().flat_map(|(_, machine)| &machine.transitions);
            for operand in below(id).into_iter().chain(moves.filter_map(|transition| transition.guard)) {
                places.entry(operand).or_insert_with(|| {
                    ids.push(operand);
                    0
                });
            }
        }
        // Nodes refer only to nodes before them, except to the conditions of machines.
        ids.sort_unstable();
        ids.iter().enumerate().for_each(|(place, id)| {
            places.insert(*id, place);
        });
        let mut nodes: Vec<Node> = Vec::with_capacity(ids.len());
        for &id in &ids {
            let kind = Kind::of(spec, id);
            let expr = &spec.nodes[id.index()];
            let operands: Vec<usize> =
                below(id).into_iter().filter_map(|operand| places.get(&operand).copied()).collect();
            let (fields, parts): (Vec<usize>, Vec<usize>) =
                shown.get(&id).into_iter().flatten().partition(|row| {
                    matches!(rows[**row], Row::Field | Row::Line | Row::State | Row::Element)
                });
            let (terms, parts): (Vec<usize>, Vec<usize>) =
                parts.into_iter().partition(|row| matches!(rows[*row], Row::Term(_)));
            let row = parts.first().copied();
            let watched = row.filter(|row| rows[*row] == Row::Watched);
            let is_bool = matches!(expr, Expr::Field { value_type: ValueType::Bool, .. });
            let mut topics: Vec<TopicId> = expr.topics().to_vec();
            if let Expr::Chain(chain, _) = expr {
                let links = spec.chains.get(chain.0 as usize).and_then(|chain| chain.links.last());
                topics.extend(links.map(|(topic, _)| *topic));
            }
            operands.iter().for_each(|operand| topics.extend(&nodes[*operand].topics));
            topics.sort_unstable();
            topics.dedup();
            let moves = machines::of(spec, property, id).map_or_else(Vec::new, |(_, machine)| {
                let of = |transition: &Transition| Move {
                    from: machines::state(machine, transition.from),
                    to: machines::state(machine, transition.to),
                    guard: transition.guard.and_then(|guard| places.get(&guard).copied()),
                };
                machine.transitions.iter().map(of).collect()
            });
            let any = |of: fn(&Node) -> bool| operands.iter().any(|operand| of(&nodes[*operand]));
            let lags: BTreeSet<u64> =
                operands.iter().flat_map(|operand| nodes[*operand].lags.clone()).collect();
            nodes.push(Node {
                reads: !fields.is_empty() || any(|node| node.reads),
                lags: kind.lags(lags.into_iter().collect()),
                history: watched.or_else(|| fields.first().copied().filter(|_| is_bool)),
                kind,
                row,
                term: terms.first().copied(),
                fields,
                operands,
                moves,
                topics,
            });
        }
        let formula = places.get(&formula).copied().unwrap_or(0);
        Reason { nodes, formula, time: property.time }
    }
}
