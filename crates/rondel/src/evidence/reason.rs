//! What of all that is watched explains a violation: of a conjunction that is false the operands that are
//! false, of a disjunction that is true those that are true, and of an operator that looks elsewhere the
//! moment that makes it so.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use rondel_event::{Timestamp, Value};
use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, TimeModel};

use super::{Moment, SHOWN};
use crate::formula::word;
use elsewhere::{Look, Past};

mod elsewhere;

/// Whether a node looks at other moments for what makes it true or false.
pub(super) fn looks_elsewhere(node: &Expr) -> bool {
    Look::of(node).is_some()
}

/// The formula of a property, as far as it says what explains what.
#[derive(Clone, Debug, Default)]
pub(super) struct Reason {
    /// What is needed of the formula, operands before those that they belong to; the formula itself is last.
    nodes: Vec<Node>,
    /// What its bounds are counted in.
    time: TimeModel,
    /// Whether its steps are those of an instance, which nobody counts here.
    by_key: bool,
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
    /// It looks at other moments, for one that makes it so.
    Elsewhere(Look, Bounds),
    /// What its column says. All below belongs to it.
    Whole,
}

/// The truth of every node at a moment, as far as it is known.
type Truths = Vec<Option<bool>>;

impl Reason {
    /// For a formula, with what is shown of it: nodes, and the columns that show them.
    pub(super) fn new(spec: &Spec, property: &Property, columns: &HashMap<ExprId, Vec<usize>>) -> Reason {
        let formula = property.formula;
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
                node => Look::of(node).map_or(Kind::Whole, |(look, bounds)| Kind::Elsewhere(look, bounds)),
            };
            let operands = below(*id).into_iter().filter_map(|operand| seen.get(&operand).copied());
            let columns = columns.get(id).cloned().unwrap_or_default();
            // What an atom binds is shown, and says nothing of its truth.
            let bound =
                if let Expr::Bind { fields, .. } = &spec.nodes[id.index()] { fields.len() } else { 0 };
            let truth = columns.get(bound..).and_then(|rest| rest.first().copied());
            Node { kind, columns, truth, operands: operands.collect() }
        };
        let (time, by_key) = (property.time, property.slice.is_some());
        Reason { nodes: ids.iter().map(node).collect(), time, by_key }
    }

    /// Whether something in it looks at other moments.
    pub(super) fn looks_elsewhere(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.kind, Kind::Elsewhere(..)))
    }

    /// The columns that explain that the formula is violated at the last moment, or at that time, and the
    /// moments: those at which a column changed that is about the violation's own moment, those that
    /// operators found elsewhere, and the last one.
    pub(super) fn explain(
        &self,
        moments: &mut VecDeque<Moment>,
        about: Option<Timestamp>,
        columns: &mut Vec<usize>,
        shown: &mut Vec<usize>,
    ) {
        columns.clear();
        shown.clear();
        let is_meant = |moment: &Moment| about.is_none_or(|about| moment.time <= about);
        let Some(own) = moments.iter().rposition(is_meant) else { return };
        let mut truths: Vec<Truths> = moments.iter().map(|moment| self.truths(&moment.values)).collect();
        self.follow(&mut truths[own], &mut moments[own], about);
        let moments = &*moments;
        let past = Past { moments, truths: &truths, own, about, time: self.time, by_key: self.by_key };
        let (mut present, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<(usize, usize, bool)> =
            self.nodes.len().checked_sub(1).map(|formula| (formula, own, true)).into_iter().collect();
        let mut seen: HashSet<(usize, usize, bool)> = open.iter().copied().collect();
        while let Some((place, at, is_present)) = open.pop() {
            let node = &self.nodes[place];
            let truth = truths[at][place];
            columns.extend(&node.columns);
            let found = match node.kind {
                Kind::Elsewhere(look, bounds) => past.find(look, bounds, &node.operands, at, truth),
                _ => None,
            };
            // Where there is no such moment the operator itself is shown, unless it is the formula.
            if let Some(found) = found.filter(|found| !found.is_empty() || !node.columns.is_empty()) {
                for (operand, moment) in found {
                    elsewhere.insert(moment);
                    if seen.insert((operand, moment, false)) {
                        open.push((operand, moment, false));
                    }
                }
                continue;
            }
            if is_present {
                present.extend(&node.columns);
            }
            let deciding = match (node.kind, truth) {
                (Kind::All, Some(false)) => Some(false),
                (Kind::Any, Some(true)) => Some(true),
                _ => None,
            };
            // Where it is not known which operands decide, any may.
            let deciding =
                deciding.filter(|_| node.operands.iter().any(|operand| truths[at][*operand] == deciding));
            let decides = |operand: &&usize| deciding.is_none() || truths[at][**operand] == deciding;
            for &operand in node.operands.iter().filter(decides) {
                if seen.insert((operand, at, is_present)) {
                    open.push((operand, at, is_present));
                }
            }
        }
        columns.sort_unstable();
        columns.dedup();
        let mut before: Option<&Moment> = None;
        for (i, moment) in moments.iter().enumerate() {
            let of = |moment: &Moment, column: &usize| moment.values.get(*column).cloned();
            let same = present.is_empty()
                || before.is_some_and(|before| {
                    present.iter().all(|column| of(before, column) == of(moment, column))
                });
            if !same || i + 1 == moments.len() {
                shown.push(i);
                before = Some(moment);
            }
        }
        // What was found elsewhere is shown in any case, of the rest what is latest.
        let room = SHOWN.saturating_sub(elsewhere.iter().filter(|i| shown.last() != Some(*i)).count());
        shown.drain(..shown.len() - shown.len().min(room.max(1)));
        shown.extend(elsewhere);
        shown.sort_unstable();
        shown.dedup();
        shown.drain(..shown.len() - shown.len().min(SHOWN));
    }

    /// Notes what follows at the violation's own moment from the formula being false there: what looks ahead
    /// may have been the same for long, and then nothing is said of it anew.
    fn follow(&self, truths: &mut Truths, moment: &mut Moment, about: Option<Timestamp>) {
        let is_own = about.is_none_or(|about| about == moment.time);
        // Nobody watches the formula itself.
        let Some(formula) = truths.last_mut() else { return };
        *formula = Some(false);
        let mut open = vec![(truths.len() - 1, false)];
        while let Some((place, truth)) = open.pop() {
            let node = &self.nodes[place];
            let is_ahead = matches!(node.kind, Kind::Elsewhere(Look::Ahead(_) | Look::Until, _));
            if truths[place].is_none() || is_ahead && !is_own {
                truths[place] = Some(truth);
                let shown = node.truth.filter(|_| is_ahead && is_own);
                if let Some(value) = shown.and_then(|column| moment.values.get_mut(column)) {
                    *value = Some(Value::Bool(truth));
                }
            }
            let operands = node.operands.iter();
            match (node.kind, truth) {
                (Kind::Not, _) => open.extend(operands.map(|operand| (*operand, !truth))),
                (Kind::Any, false) | (Kind::All, true) => {
                    open.extend(operands.map(|operand| (*operand, truth)));
                }
                // All but one are known not to make it so. In dense time they may be otherwise right after.
                (Kind::Any, true) | (Kind::All, false) if self.time != TimeModel::Dense => {
                    let mut rest = operands.filter(|operand| truths[**operand] != Some(!truth));
                    if let (Some(&operand), None) = (rest.next(), rest.next()) {
                        open.push((operand, truth));
                    }
                }
                _ => {}
            }
        }
    }

    /// The truth of every node, as far as the columns tell.
    fn truths(&self, values: &[Option<Value>]) -> Truths {
        let mut truths: Truths = Vec::with_capacity(self.nodes.len());
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
                Kind::Elsewhere(..) | Kind::Whole => match node.truth.and_then(|column| values.get(column)) {
                    Some(Some(Value::Bool(truth))) => Some(*truth),
                    _ => None,
                },
            });
        }
        truths
    }
}
