//! What a formula is made of, as far as it says what explains what.

use std::collections::HashMap;

use rondel_event::{TopicId, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, TimeModel};

use crate::formula::word;

mod explain;
mod truth;

pub(super) use explain::{Explained, explain};
pub(super) use truth::Past;

/// The formula of a property.
#[derive(Clone, Debug, Default)]
pub(super) struct Reason {
    /// What there is of it, operands before those that they belong to; the formula itself is last.
    nodes: Vec<Node>,
    /// What its bounds are counted in.
    time: TimeModel,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// The row that shows whether it is true.
    row: Option<usize>,
    /// The history that says whether it is true.
    history: Option<usize>,
    /// The rows of the fields that it reads itself.
    fields: Vec<usize>,
    /// Its operands, by their places.
    operands: Vec<usize>,
    /// The topics that it reads, itself or below.
    topics: Vec<TopicId>,
    /// Whether it reads a field, itself or below, and not only whether messages come.
    reads: bool,
    /// Whether it looks ahead, itself or below.
    is_ahead: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// All operands are true.
    All,
    /// Some operand is true.
    Any,
    Not,
    /// Where it is not known it is false.
    Definitely,
    /// It is always this.
    Constant(bool),
    /// A moment before, from the nearer bound to the farther one, at which the operand has this truth: then it has
    /// that truth too.
    Back(bool, Bounds),
    /// A moment before at which the second operand is true, and the first since then.
    Since(Bounds),
    /// As [`Kind::Back`], of moments to come.
    Ahead(bool, Bounds),
    /// A moment to come at which the second operand is true, and until then the first.
    Until(Bounds),
    /// The moment that follows.
    Next,
    /// The moment before.
    Previously,
    /// The operand here and at the moment before: `rising`, `falling`.
    Edge,
    /// The operand here, and as it was before the last message: `changed`.
    Changed,
    /// The operand as it was before the last message.
    Prev,
    /// What came in the last while.
    Window(u64),
    /// The last message.
    Last,
    /// It has been so since some moment: states of machines.
    State,
    /// What its history says. All below belongs to it.
    Whole,
}

impl Kind {
    fn of(spec: &Spec, id: ExprId) -> Kind {
        match word(spec, id).map(|word| word.word) {
            Some("changed") => return Kind::Changed,
            Some(_) => return Kind::Edge,
            None => {}
        }
        match spec.nodes[id.index()] {
            Expr::And(..) => Kind::All,
            Expr::Or(..) => Kind::Any,
            Expr::Not(_) => Kind::Not,
            Expr::Definitely(_) => Kind::Definitely,
            Expr::Literal(Value::Bool(value)) => Kind::Constant(value),
            Expr::Once(bounds, _) => Kind::Back(true, bounds),
            Expr::Historically(bounds, _) => Kind::Back(false, bounds),
            Expr::Since(bounds, ..) => Kind::Since(bounds),
            Expr::Eventually(bounds, _) => Kind::Ahead(true, bounds),
            Expr::Always(bounds, _) => Kind::Ahead(false, bounds),
            Expr::Until(bounds, ..) => Kind::Until(bounds),
            Expr::Next(_) => Kind::Next,
            Expr::Previously(_) => Kind::Previously,
            Expr::Prev(_) => Kind::Prev,
            Expr::Window { over, .. } => Kind::Window(over),
            Expr::Age(_) | Expr::Latency(_) | Expr::Jitter(_) | Expr::Chain(..) => Kind::Last,
            Expr::InState(..) => Kind::State,
            _ => Kind::Whole,
        }
    }

    fn looks_ahead(self) -> bool {
        matches!(self, Kind::Ahead(..) | Kind::Until(_) | Kind::Next)
    }
}

/// How a row of the table comes to its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Row {
    /// A field that holds its value.
    Field,
    /// A number that runs straight from one message to the next.
    Line,
    /// A part of the formula, with a history of its own.
    Watched,
    /// A part of the formula of which that is known which is known of its parts.
    Made,
}

impl Reason {
    /// For a formula, with what is shown of it: nodes, and the rows that show them.
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
            for operand in below(id) {
                places.entry(operand).or_insert_with(|| {
                    ids.push(operand);
                    0
                });
            }
        }
        // Nodes refer only to nodes before them.
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
            let (fields, parts): (Vec<usize>, Vec<usize>) = shown
                .get(&id)
                .into_iter()
                .flatten()
                .partition(|row| matches!(rows[**row], Row::Field | Row::Line));
            let row = parts.first().copied();
            let watched = row.filter(|row| rows[*row] == Row::Watched);
            let is_bool = matches!(expr, Expr::Field { value_type: ValueType::Bool, .. });
            let mut topics: Vec<TopicId> = expr.topic().into_iter().collect();
            if let Expr::Window { topics: samples, .. } = expr {
                topics.extend(samples);
            }
            if let Expr::Chain(chain, _) = expr {
                let links = spec.chains.get(chain.0 as usize).and_then(|chain| chain.links.last());
                topics.extend(links.map(|(topic, _)| *topic));
            }
            operands.iter().for_each(|operand| topics.extend(&nodes[*operand].topics));
            topics.sort_unstable();
            topics.dedup();
            let any = |of: fn(&Node) -> bool| operands.iter().any(|operand| of(&nodes[*operand]));
            nodes.push(Node {
                reads: !fields.is_empty() || any(|node| node.reads),
                is_ahead: kind.looks_ahead() || any(|node| node.is_ahead),
                history: watched.or_else(|| fields.first().copied().filter(|_| is_bool)),
                kind,
                row,
                fields,
                operands,
                topics,
            });
        }
        Reason { nodes, time: property.time }
    }
}
