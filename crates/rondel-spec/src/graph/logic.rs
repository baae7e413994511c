//! Nodes of propositional logic, and the premises of implications.

use std::collections::HashSet;

use rondel_event::{Comparison, Value};

use super::Graph;
use crate::spec::{BinaryOp, Class, Expr, ExprId, VariableId};

impl Graph {
    pub(crate) fn choice(&mut self, condition: ExprId, yes: ExprId, no: ExprId) -> ExprId {
        let (yes, no) = self.same_type(yes, no);
        match self.truth(condition) {
            Some(true) => yes,
            Some(false) => no,
            None => self.add(Expr::If(condition, yes, no)),
        }
    }

    pub(crate) fn not(&mut self, a: ExprId) -> ExprId {
        match (self.truth(a), &self.spec.nodes[a.index()]) {
            (Some(value), _) => self.bool(!value),
            (None, Expr::Not(inner)) => *inner,
            _ => self.add(Expr::Not(a)),
        }
    }

    pub(crate) fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            (Some(true), _) => b,
            (_, Some(true)) => a,
            (Some(false), _) | (_, Some(false)) => self.bool(false),
            _ if a == b => a,
            _ => self.add(Expr::And(a, b)),
        }
    }

    pub(crate) fn or(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            (Some(false), _) => b,
            (_, Some(false)) => a,
            (Some(true), _) | (_, Some(true)) => self.bool(true),
            _ if a == b => a,
            _ => self.add(Expr::Or(a, b)),
        }
    }

    pub(crate) fn implies(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let not = self.not(a);
        let or = self.or(not, b);
        if matches!(self.spec.nodes[or.index()], Expr::Or(..)) && or != b && or != not {
            self.implications.insert(or, a);
        }
        or
    }

    /// Returns the premises of the implications that a formula is made of, through `and`, `historically` and
    /// `always`, but for those with future operators, which are not evaluated by themselves.
    pub(crate) fn premises(&self, formula: ExprId) -> Vec<ExprId> {
        let mut premises = Vec::new();
        let mut open = vec![formula];
        while let Some(id) = open.pop() {
            match (self.implications.get(&id), &self.spec.nodes[id.index()]) {
                (Some(premise), _) if !self.looks_ahead(*premise) => premises.push(*premise),
                (Some(_), _) => {}
                (None, Expr::And(a, b)) => open.extend([*b, *a]),
                (None, Expr::Definitely(a)) => open.push(*a),
                (None, node) => {
                    let throughout = node.temporal().filter(|temporal| temporal.all);
                    open.extend(throughout.map(|temporal| temporal.operand));
                }
            }
        }
        let mut seen = HashSet::new();
        premises.retain(|premise| seen.insert(*premise));
        premises
    }

    fn looks_ahead(&self, id: ExprId) -> bool {
        self.spec.below(id).any(|(_, node)| node.class() == Class::Future)
    }

    pub(crate) fn iff(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let both = self.and(a, b);
        let (not_a, not_b) = (self.not(a), self.not(b));
        let neither = self.and(not_a, not_b);
        self.or(both, neither)
    }

    /// Returns a truth that is unknown everywhere: a comparison with a quotient that has no value.
    pub(crate) fn unknown(&mut self) -> ExprId {
        let zero = self.literal(Value::Int(0));
        let quotient = self.add(Expr::Binary(BinaryOp::Divide, zero, zero));
        self.add(Expr::Compare(Comparison::Equal, quotient, zero))
    }

    pub(crate) fn definitely(&mut self, a: ExprId) -> ExprId {
        match self.spec.nodes[a.index()] {
            Expr::Literal(_) | Expr::Definitely(_) => a,
            ref node if node.class() == Class::Event => a,
            _ => self.add(Expr::Definitely(a)),
        }
    }

    /// Returns a new variable.
    pub(crate) fn fresh_variable(&mut self, name: &str) -> VariableId {
        let names = &mut self.spec.places.variables;
        names.push(name.to_owned());
        VariableId(names.len() as u32 - 1)
    }

    pub(crate) fn quantified(&mut self, all: bool, variable: VariableId, a: ExprId) -> ExprId {
        match self.truth(a) {
            Some(_) => a,
            None if all => self.add(Expr::ForAll(variable, a)),
            None => self.add(Expr::Exists(variable, a)),
        }
    }
}
