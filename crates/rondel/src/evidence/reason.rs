//! What of all that is watched explains a violation: of a conjunction that is false the operands that are
//! false, of a disjunction that is true those that are true.

use std::collections::{HashMap, VecDeque};

use rondel_event::{Timestamp, Value};
use rondel_spec::{Expr, ExprId, Spec};

use super::Moment;
use crate::formula::word;

/// The formula of a property, as far as it says what explains what.
#[derive(Clone, Debug, Default)]
pub(super) struct Reason {
    /// What is needed of the formula, operands before those that they belong to; the formula itself is last.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// The columns that show it.
    columns: Vec<usize>,
    /// The one among them that says whether it is true.
    truth: Option<usize>,
    /// Its operands, by their places.
    operands: Vec<usize>,
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
    /// What its column says. All below belongs to it.
    Whole,
}

impl Reason {
    /// For a formula, with what is shown of it: nodes, and the columns that show them.
    pub(super) fn new(spec: &Spec, formula: ExprId, columns: &HashMap<ExprId, Vec<usize>>) -> Reason {
        let below = |id: ExprId| -> Vec<ExprId> {
            match word(spec, id) {
                Some(word) => vec![word.operand],
                None => spec.nodes[id.index()].operands().collect(),
            }
        };
        let mut ids = vec![formula];
        let mut seen: HashMap<ExprId, usize> = HashMap::from([(formula, 0)]);
        let mut next = 0;
        while let Some(&id) = ids.get(next) {
            next += 1;
            for operand in below(id) {
                seen.entry(operand).or_insert_with(|| {
                    ids.push(operand);
                    0
                });
            }
        }
        // Nodes refer only to nodes before them.
        ids.sort_unstable();
        ids.iter().enumerate().for_each(|(place, id)| {
            seen.insert(*id, place);
        });
        let node = |id: &ExprId| {
            let kind = match &spec.nodes[id.index()] {
                _ if word(spec, *id).is_some() => Kind::Whole,
                Expr::And(..) => Kind::All,
                Expr::Or(..) => Kind::Any,
                Expr::Not(_) => Kind::Not,
                Expr::Definitely(_) => Kind::Definitely,
                _ => Kind::Whole,
            };
            let operands = below(*id).into_iter().filter_map(|operand| seen.get(&operand).copied());
            let columns = columns.get(id).cloned().unwrap_or_default();
            // What an atom binds is shown, and says nothing of its truth.
            let bound =
                if let Expr::Bind { fields, .. } = &spec.nodes[id.index()] { fields.len() } else { 0 };
            let truth = columns.get(bound..).and_then(|rest| rest.first().copied());
            Node { kind, columns, truth, operands: operands.collect() }
        };
        Reason { nodes: ids.iter().map(node).collect() }
    }

    /// The columns that explain that the formula is violated at the last moment, or at that time, and the
    /// moments at which one of them changed, with the last one.
    pub(super) fn explain(
        &self,
        moments: &VecDeque<Moment>,
        about: Option<Timestamp>,
        columns: &mut Vec<usize>,
        shown: &mut Vec<usize>,
    ) {
        columns.clear();
        shown.clear();
        let is_meant = |moment: &&Moment| about.is_none_or(|about| moment.time <= about);
        let values = moments.iter().rev().find(is_meant).map_or(&[][..], |moment| &moment.values);
        let truths = self.truths(values);
        let mut needed = vec![false; self.nodes.len()];
        if let Some(formula) = needed.last_mut() {
            *formula = true;
        }
        for (place, node) in self.nodes.iter().enumerate().rev().filter(|(_, node)| !node.operands.is_empty())
        {
            if !needed[place] {
                continue;
            }
            let deciding = match (node.kind, truths[place]) {
                (Kind::All, Some(false)) => Some(false),
                (Kind::Any, Some(true)) => Some(true),
                _ => None,
            };
            let decides = |operand: &&usize| deciding.is_none() || truths[**operand] == deciding;
            node.operands.iter().filter(decides).for_each(|operand| needed[*operand] = true);
        }
        columns.extend(
            self.nodes.iter().zip(needed).filter(|(_, needed)| *needed).flat_map(|(n, _)| &n.columns),
        );
        columns.sort_unstable();
        columns.dedup();
        let mut before: Option<&Moment> = None;
        for (i, moment) in moments.iter().enumerate() {
            let of = |moment: &Moment, column: &usize| moment.values.get(*column).cloned();
            let same = before
                .is_some_and(|before| columns.iter().all(|column| of(before, column) == of(moment, column)));
            if !same || i + 1 == moments.len() {
                shown.push(i);
                before = Some(moment);
            }
        }
    }

    /// The truth of every node, as far as the columns tell.
    fn truths(&self, values: &[Option<Value>]) -> Vec<Option<bool>> {
        let mut truths: Vec<Option<bool>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of = |operand: &usize| truths.get(*operand).copied().flatten();
            let decided = |by: bool| {
                let any = node.operands.iter().any(|operand| of(operand) == Some(by));
                let all = node.operands.iter().all(|operand| of(operand) == Some(!by));
                if any {
                    Some(by)
                } else if all {
                    Some(!by)
                } else {
                    None
                }
            };
            truths.push(match node.kind {
                Kind::All => decided(false),
                Kind::Any => decided(true),
                Kind::Not => node.operands.first().and_then(of).map(|truth| !truth),
                Kind::Definitely => node.operands.first().and_then(of),
                Kind::Whole => match node.truth.and_then(|column| values.get(column)) {
                    Some(Some(Value::Bool(truth))) => Some(*truth),
                    _ => None,
                },
            });
        }
        truths
    }
}
