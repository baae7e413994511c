//! Random quantified formulas with future operators.

use proptest::prelude::*;
use rondel_event::{Comparison, Value};
use rondel_spec::{Bounds, Expr, ExprId, Spec, VariableId};

use super::{Kitchen, written};

/// Quantified formula with future operators.
pub(in super::super) fn ahead_spec() -> impl Strategy<Value = Spec> {
    written(|kitchen| {
        let formula = kitchen.formula_ahead();
        kitchen.around(formula);
    })
}

impl Kitchen {
    /// Adds a closed formula with future operators as the last node.
    fn formula_ahead(&mut self) -> ExprId {
        let x = self.variable();
        let variables = if self.choose(4) == 3 { vec![x, self.variable()] } else { vec![x] };
        let mut guard = if self.choose(2) == 0 { self.atom(&variables) } else { self.safe(&variables, 2) };
        if self.choose(5) == 4 {
            let among = self.one_of_two(x);
            let pair = if self.choose(2) == 0 { (guard, among) } else { (among, guard) };
            guard = self.add(Expr::And(pair.0, pair.1));
        }
        let then = self.later(&variables, 2);
        let all = self.choose(2) == 0;
        let mut formula = if all {
            let not = self.add(Expr::Not(guard));
            self.add(Expr::Or(not, then))
        } else {
            self.add(Expr::And(guard, then))
        };
        for variable in variables.into_iter().rev() {
            formula =
                self.add(if all { Expr::ForAll(variable, formula) } else { Expr::Exists(variable, formula) });
        }
        formula
    }

    /// Adds `variable in (…)`, with two values.
    fn one_of_two(&mut self, variable: VariableId) -> ExprId {
        let values = match self.is_int(variable) {
            true => [Value::Int(1), Value::Int(2)],
            false => [Value::String("a".into()), Value::String("b".into())],
        };
        let value_type = self.variables[variable.0 as usize];
        let [x, y] = values.map(|value| {
            let (left, right) =
                (self.add(Expr::Variable(variable, value_type)), self.add(Expr::Literal(value)));
            self.add(Expr::Compare(Comparison::Equal, left, right))
        });
        self.add(Expr::Or(x, y))
    }

    /// Adds a formula that contains a quantified one, or is that one.
    fn around(&mut self, formula: ExprId) {
        match self.choose(12) {
            0 => {
                self.add(Expr::Not(formula));
            }
            1 => {
                let other = self.closed();
                self.add(Expr::Or(other, formula));
            }
            2 => {
                let other = self.formula_ahead();
                self.add(Expr::And(formula, other));
            }
            3 => {
                let bounds = self.ahead_bounds();
                self.add(Expr::Eventually(bounds, formula));
            }
            4 => {
                let (bounds, other) = (self.ahead_bounds(), self.closed());
                self.add(Expr::Until(bounds, formula, other));
            }
            _ => {}
        }
    }

    fn ahead_bounds(&mut self) -> Bounds {
        let lower = if self.choose(3) == 0 { u64::from(self.choose(3)) } else { 0 };
        Bounds { lower, upper: Some(lower + u64::from(self.choose(4))) }
    }

    /// Adds a formula with future operators whose free variables are among these.
    fn later(&mut self, variables: &[VariableId], depth: u8) -> ExprId {
        let bounds = self.ahead_bounds();
        let depth = depth.saturating_sub(1);
        match self.choose(if depth == 0 { 8 } else { 13 }) {
            0..=2 => {
                let x = self.atom(variables);
                self.add(Expr::Eventually(bounds, x))
            }
            3 => {
                let x = self.any(variables, 2);
                self.add(Expr::Eventually(bounds, x))
            }
            4 => {
                let x = self.any(variables, 2);
                self.add(Expr::Always(bounds, x))
            }
            5 | 6 => {
                let (x, y) = (self.any(variables, 2), self.any(variables, 2));
                self.add(Expr::Until(bounds, x, y))
            }
            7 => {
                let y = self.variable();
                let both = [variables, &[y]].concat();
                let x = self.safe(&both, 1);
                let inner = self.add(Expr::Exists(y, x));
                self.add(Expr::Eventually(bounds, inner))
            }
            8 => {
                let x = self.later(variables, depth);
                self.add(Expr::Not(x))
            }
            9 => {
                let (x, y) = (self.later(variables, depth), self.any(variables, 1));
                if self.choose(2) == 0 { self.add(Expr::And(x, y)) } else { self.add(Expr::Or(y, x)) }
            }
            10 => {
                let (x, y) = (self.atom(variables), self.later(variables, depth));
                let both = self.add(Expr::And(x, y));
                self.add(Expr::Eventually(bounds, both))
            }
            11 => {
                let (x, y) = (self.later(variables, depth), self.later(variables, depth));
                self.add(Expr::And(x, y))
            }
            _ => {
                let x = self.any(variables, 1);
                self.add(Expr::Next(x))
            }
        }
    }
}
