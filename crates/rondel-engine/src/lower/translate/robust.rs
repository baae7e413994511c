//! Robustness of formulas: the distance from the closest change of the verdict.
//!
//! It is an interval from the least to the greatest robustness under any values of unknown fields. As with
//! lower and upper truth, each end depends only on the same end of the operands, and negation swaps them. The
//! robustness is known where both ends are equal.

use std::collections::BTreeSet;

use rondel_event::{Comparison, ValueType};
use rondel_spec::{BinaryOp, Bounds, Class, Expr, ExprId, Temporal, TimeModel, UnaryOp};

use super::{Column, Meaning, Translator, Truth, TruthBounds, ValueColumns, values};
use crate::CompileError;
use crate::ir::node::{Constant, Kind, Node, RobustReach};
use crate::ir::wire::{NodeId, Wire};
use crate::lower::error;
use crate::ops::window::LIMIT;

/// The robustness of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Robustness {
    /// Infinite, with the sign of the truth, as the formula compares no numbers.
    Truth(Truth),
    /// Columns of the least and the greatest robustness, in each half.
    Levels { at: [NodeId; 2], after: [NodeId; 2] },
}

/// Columns of the least and the greatest robustness, per half.
type LevelColumns = [[NodeId; 2]; 2];

impl Translator<'_> {
    /// The robustness of a formula that has been translated.
    pub(super) fn robustness(&mut self, formula: ExprId) -> Result<Robustness, CompileError> {
        let mut needed = BTreeSet::from([formula]);
        let mut open = vec![formula];
        while let Some(id) = open.pop() {
            open.extend(self.parts(id).into_iter().filter(|part| needed.insert(*part)));
        }
        for id in needed {
            if !self.margins.contains_key(&id) {
                let robustness = self.robustness_of(id)?;
                self.margins.insert(id, robustness);
            }
        }
        Ok(self.margin(formula))
    }

    /// The operands whose robustness determines that of a node.
    fn parts(&self, id: ExprId) -> Vec<ExprId> {
        let truths = |x: ExprId| matches!(self.meaning_of(x), Some(Meaning::Truth(_)));
        match &self.spec.nodes[id.index()] {
            Expr::Prev(_) => Vec::new(),
            Expr::Compare(_, x, y) | Expr::If(_, x, y) if truths(*x) => vec![*x, *y],
            node if matches!(node.class(), Class::Connective | Class::Past) => node.operands().collect(),
            _ => Vec::new(),
        }
    }

    fn meaning_of(&self, id: ExprId) -> Option<Meaning> {
        self.done.get(id.index()).copied().flatten().map(|(meaning, _)| meaning)
    }

    fn truth_of(&self, id: ExprId) -> Truth {
        match self.meaning_of(id) {
            Some(Meaning::Truth(truth)) => truth,
            // Cannot happen: only booleans have robustness.
            _ => Truth::lasting(TruthBounds::both(Wire::FALSE)),
        }
    }

    fn margin(&self, id: ExprId) -> Robustness {
        self.margins.get(&id).copied().unwrap_or(Robustness::Truth(self.truth_of(id)))
    }

    fn robustness_of(&mut self, id: ExprId) -> Result<Robustness, CompileError> {
        let spec = self.spec;
        let expr = &spec.nodes[id.index()];
        if expr.class() == Class::Quantifier {
            return Err(CompileError::Unsupported { node: id, what: error::ROBUST_QUANTIFIER });
        }
        if let Expr::Compare(comparison, x, y) = *expr
            && let (Some(Meaning::Values(x)), Some(Meaning::Values(y))) =
                (self.meaning_of(x), self.meaning_of(y))
            && x.value_type != ValueType::String
        {
            return Ok(self.margin_of_comparison(comparison, x, y));
        }
        let parts = self.parts(id);
        if parts.iter().all(|part| matches!(self.margin(*part), Robustness::Truth(_))) {
            return Ok(Robustness::Truth(self.truth_of(id)));
        }
        let parts: Vec<LevelColumns> = parts.into_iter().map(|part| self.levels(part)).collect();
        let levels = match (expr, &parts[..]) {
            (Expr::Not(_), [x]) => self.negated(*x),
            (Expr::Definitely(_), [x]) => x.map(|[least, _]| [least, least]),
            (Expr::And(..), [x, y]) => self.joined(BinaryOp::Min, *x, *y),
            (Expr::Or(..), [x, y]) => self.joined(BinaryOp::Max, *x, *y),
            (Expr::Previously(_), [x]) => self.margin_before(*x),
            (Expr::If(condition, ..), [x, y]) => self.margin_choice(self.truth_of(*condition), *x, *y),
            (Expr::Compare(comparison, ..), [x, y]) => {
                // Equality of truths: both are true or both are false.
                let (not_x, not_y) = (self.negated(*x), self.negated(*y));
                let left = self.joined(BinaryOp::Max, not_x, *y);
                let right = self.joined(BinaryOp::Max, *x, not_y);
                let equal = self.joined(BinaryOp::Min, left, right);
                if *comparison == Comparison::Equal { equal } else { self.negated(equal) }
            }
            _ => match (expr.past(), &parts[..]) {
                (Some(Temporal { bounds, all: true, .. }), [x]) => {
                    let x = self.negated(*x);
                    let once = self.margin_once(bounds, x);
                    self.negated(once)
                }
                (Some(Temporal { bounds, .. }), [x]) => self.margin_once(bounds, *x),
                (Some(Temporal { bounds, .. }), [p, q]) => self.margin_since(bounds, *p, *q),
                _ if expr.class() == Class::Past => {
                    return Err(CompileError::Unsupported { node: id, what: error::ROBUST_OPERATOR });
                }
                _ => return Ok(Robustness::Truth(self.truth_of(id))),
            },
        };
        Ok(Robustness::Levels { at: levels[0], after: levels[1] })
    }

    /// The distance of two values from where their comparison changes; for times in seconds.
    fn margin_of_comparison(
        &mut self,
        comparison: Comparison,
        x: ValueColumns,
        y: ValueColumns,
    ) -> Robustness {
        let [at, after] = [(x.at, y.at), (x.after, y.after)].map(|(a, b)| {
            let levels = self.margin_of_columns(comparison, values::kind(x.value_type), a, b);
            match x.value_type {
                ValueType::Time | ValueType::Duration => levels.map(|level| self.in_seconds(level)),
                _ => levels,
            }
        });
        Robustness::Levels { at, after }
    }

    fn margin_of_columns(&mut self, comparison: Comparison, kind: Kind, x: Column, y: Column) -> [NodeId; 2] {
        let (left, right) = match comparison {
            Comparison::Greater | Comparison::GreaterOrEqual => (y, x),
            _ => (x, y),
        };
        let margin = self.graph.add(Node::Margin(kind, left.node, right.node));
        let margin = match comparison {
            Comparison::Equal | Comparison::NotEqual => {
                let distance = self.graph.add(Node::Unary(Kind::Float, UnaryOp::Abs, margin));
                if comparison == Comparison::Equal { self.negative(distance) } else { distance }
            }
            _ => margin,
        };
        let known = self.graph.and(x.known, y.known);
        let [low, high] = [f64::NEG_INFINITY, f64::INFINITY].map(|level| self.level(level));
        [self.pick(known, margin, low), self.pick(known, margin, high)]
    }

    fn in_seconds(&mut self, nanoseconds: NodeId) -> NodeId {
        let factor = self.level(1e-9);
        let (x, y) = (nanoseconds.min(factor), nanoseconds.max(factor));
        self.graph.add(Node::Binary(Kind::Float, BinaryOp::Multiply, x, y))
    }

    fn levels(&mut self, id: ExprId) -> LevelColumns {
        match self.margin(id) {
            Robustness::Levels { at, after } => [at, after],
            Robustness::Truth(Truth { at, after }) => {
                let [low, high] = [f64::NEG_INFINITY, f64::INFINITY].map(|level| self.level(level));
                [at, after]
                    .map(|bounds| [bounds.certain, bounds.possible].map(|bound| self.pick(bound, high, low)))
            }
        }
    }

    fn level(&mut self, level: f64) -> NodeId {
        self.graph.add(Node::Constant(Constant::Float(level.to_bits())))
    }

    fn constant(&self, node: NodeId) -> Option<f64> {
        match self.graph.nodes()[node.index()] {
            Node::Constant(Constant::Float(bits)) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// `x` where the wire is true, else `y`.
    fn pick(&mut self, condition: Wire, x: NodeId, y: NodeId) -> NodeId {
        match condition {
            Wire::TRUE => x,
            Wire::FALSE => y,
            _ if x == y => x,
            _ => self.graph.add(Node::Select(Kind::Float, condition, x, y)),
        }
    }

    fn negative(&mut self, x: NodeId) -> NodeId {
        match self.graph.nodes()[x.index()] {
            Node::Constant(Constant::Float(bits)) => self.level(-f64::from_bits(bits)),
            Node::Unary(Kind::Float, UnaryOp::Negate, x) => x,
            _ => self.graph.add(Node::Unary(Kind::Float, UnaryOp::Negate, x)),
        }
    }

    fn negated(&mut self, x: LevelColumns) -> LevelColumns {
        x.map(|[least, greatest]| [self.negative(greatest), self.negative(least)])
    }

    /// The minimum or maximum of two robustness intervals, end by end.
    fn joined(&mut self, op: BinaryOp, x: LevelColumns, y: LevelColumns) -> LevelColumns {
        [0, 1].map(|half| [0, 1].map(|end| self.extreme(op, x[half][end], y[half][end])))
    }

    fn extreme(&mut self, op: BinaryOp, x: NodeId, y: NodeId) -> NodeId {
        let (x, y) = (x.min(y), x.max(y));
        let (decides, yields) = match op {
            BinaryOp::Min => (f64::NEG_INFINITY, f64::INFINITY),
            _ => (f64::INFINITY, f64::NEG_INFINITY),
        };
        match (self.constant(x), self.constant(y)) {
            _ if x == y => x,
            (Some(level), _) if level == decides => x,
            (_, Some(level)) if level == decides => y,
            (Some(level), _) if level == yields => y,
            (_, Some(level)) if level == yields => x,
            _ => self.graph.add(Node::Binary(Kind::Float, op, x, y)),
        }
    }

    fn margin_once(&mut self, bounds: Bounds, q: LevelColumns) -> LevelColumns {
        let always = self.level(f64::INFINITY);
        self.margin_since(bounds, [[always; 2]; 2], q)
    }

    fn margin_since(
        &mut self,
        Bounds { lower, upper }: Bounds,
        p: LevelColumns,
        q: LevelColumns,
    ) -> LevelColumns {
        let always = self.level(f64::INFINITY);
        if upper.is_some_and(|upper| upper < lower) {
            return [[self.level(f64::NEG_INFINITY); 2]; 2];
        }
        let timed = self.model != TimeModel::Steps;
        let limit = LIMIT as u64;
        // Only in discrete time is the number of values to keep known in advance.
        let always_known = lower == 0 && upper.is_none()
            || !timed && upper.is_none_or(|upper| upper < limit) && lower < limit;
        let [[at, after], [at_end, after_end]] = [0, 1].map(|end| {
            let unknown = match end {
                _ if always_known => 0.0,
                0 => f64::NEG_INFINITY,
                _ => f64::INFINITY,
            };
            let bounds = RobustReach { lower, upper, timed, unknown: unknown.to_bits() };
            let [p, q] = [p, q].map(|x| [x[0][end], x[1][end]]);
            let unbounded = lower == 0 && upper.is_none();
            // A value that persists until the next row counts at that row.
            let rows_are_enough = unbounded && p == [always; 2] && q[0] == q[1];
            if self.model == TimeModel::Dense && !rows_are_enough {
                let at = self.graph.add(Node::RobustDense { p, q, bounds });
                return [at, self.graph.add(Node::AfterFloat(at))];
            }
            let at = if p[0] == always && !unbounded {
                self.graph.add(Node::RobustOnce { x: q[0], bounds })
            } else {
                let bounds = RobustReach { timed: timed && !unbounded, ..bounds };
                self.graph.add(Node::RobustSince { p: p[0], q: q[0], bounds })
            };
            [at; 2]
        });
        [[at, at_end], [after, after_end]]
    }

    /// The robustness just before; minus infinity at the first time point.
    fn margin_before(&mut self, x: LevelColumns) -> LevelColumns {
        let not_first = self.graph.previously(Wire::TRUE);
        let low = self.level(f64::NEG_INFINITY);
        let dense = self.model == TimeModel::Dense;
        let at = [0, 1].map(|end| {
            let [row, span] = [x[0][end], x[1][end]]
                .map(|column| self.graph.add(Node::Latch(Kind::Float, column, Wire::TRUE)));
            let before = if dense && row != span {
                let together = self.graph.wire(Node::SameTime);
                self.pick(together, row, span)
            } else {
                row
            };
            self.pick(not_first, before, low)
        });
        [at, if dense { x[1] } else { at }]
    }

    fn margin_choice(&mut self, condition: Truth, x: LevelColumns, y: LevelColumns) -> LevelColumns {
        let unknown = [f64::NEG_INFINITY, f64::INFINITY].map(|level| self.level(level));
        [(condition.at, 0), (condition.after, 1)].map(|(condition, half)| {
            [0, 1].map(|end| {
                let otherwise = self.pick(!condition.possible, y[half][end], unknown[end]);
                self.pick(condition.certain, x[half][end], otherwise)
            })
        })
    }
}
