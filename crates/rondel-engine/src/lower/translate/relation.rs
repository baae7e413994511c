//! Translation of quantified formulas: subformulas with variables become a relation plan, the rest wires and
//! columns.

use std::collections::HashSet;
use std::rc::Rc;

use rondel_event::{Read, ValueType};
use rondel_spec::{Class, Expr, ExprId, TimeModel, VariableId};

use super::{Meaning, Translator, Truth};
use crate::CompileError;
use crate::ir::node::Node;
use crate::ir::wire::Halves;
use crate::relation::literal::{Refusal, Scope};
use crate::relation::plan::{RelationPlan, TruthBound};
use crate::relation::safe::Compiler;
use crate::relation::source::{Input, Relation};

impl<'a> Translator<'a> {
    /// The variables of all nodes.
    pub(super) fn scope(&mut self) -> Rc<Scope<'a>> {
        let spec = self.spec;
        Rc::clone(self.scope.get_or_insert_with(|| Rc::new(Scope::new(spec))))
    }

    /// Nodes that must be translated before a node: its operands, or the nodes without variables that the
    /// body of a quantifier refers to.
    pub(super) fn required_operands(&mut self, id: ExprId, expr: &Expr) -> Result<Vec<ExprId>, CompileError> {
        if expr.class() != Class::Quantifier {
            return Ok(expr.operands().collect());
        }
        let scope = self.scope();
        let nodes = &self.spec.nodes;
        let (mut seen, mut open, mut inputs) = (HashSet::from([id]), vec![id], Vec::new());
        while let Some(node) = open.pop() {
            let expr = &nodes[node.index()];
            if let Some(topic) = expr.topic() {
                self.topic_set(node, topic)?;
            }
            scope.check(node)?;
            for operand in expr.operands() {
                if operand >= node {
                    return Err(CompileError::ForwardReference { node, operand });
                }
                if scope.is_closed(operand) {
                    inputs.push(operand);
                } else if seen.insert(operand) {
                    open.push(operand);
                }
            }
        }
        Ok(inputs)
    }

    /// Whether the node is unknown where an operand is unknown, except where the operand does not affect it.
    pub(super) fn keeps_unknown(&mut self, id: ExprId, expr: &Expr) -> bool {
        match expr {
            Expr::Definitely(_) | Expr::Prev(_) => false,
            Expr::Exists(..) | Expr::ForAll(..) => {
                let scope = self.scope();
                let (mut seen, mut open) = (HashSet::from([id]), vec![id]);
                while let Some(node) = open.pop() {
                    let Some(expr) = self.spec.nodes.get(node.index()) else { continue };
                    if matches!(expr, Expr::Definitely(_)) {
                        return false;
                    }
                    let below =
                        expr.operands().filter(|operand| *operand < node && !scope.is_closed(*operand));
                    open.extend(below.filter(|operand| seen.insert(*operand)));
                }
                true
            }
            // An operand that is not boolean contains no quantifier that could make it unknown.
            _ => matches!(expr.class(), Class::Connective | Class::Past | Class::Future),
        }
    }

    /// The truth of a quantified formula.
    pub(super) fn quantified(&mut self, id: ExprId) -> Result<Meaning, CompileError> {
        let scope = self.scope();
        if let Some(&variable) = scope.free(id).first() {
            let refusal =
                Refusal::of(id, "no quantifier binds the variable", "put `exists` or `forall` before it");
            return Err(not_monitorable(refusal.about(Some(variable))));
        }
        let (model, keep) = (self.model, self.demands.keep[id.index()]);
        let done = &self.done;
        let two_valued = |node: ExprId| {
            done.get(node.index()).copied().flatten().is_some_and(|(meaning, _)| meaning.is_known())
        };
        let plan = |truth_bound| {
            Compiler::compile(&scope, id, truth_bound, model, keep, &two_valued).map_err(not_monitorable)
        };
        let (certain, possible) = (plan(TruthBound::Certain)?, plan(TruthBound::Possible)?);
        // Evaluation by value evicts nothing, so it is preferred wherever the plan would not evict either.
        if !certain.forgets()
            && let Some(division) = self.division(id)
        {
            return Ok(Meaning::Truth(self.by_value(division)?));
        }
        let one = certain == possible;
        // A violation rests on the formula being certainly false, or its negated body being certainly true.
        let names = |plan| with_names(&scope, plan);
        let is_negated = certain.negated;
        let (certain, possible) = match (one, is_negated) {
            (true, _) => (names(certain), possible),
            (false, true) => (certain, names(possible)),
            (false, false) => (names(certain), possible),
        };
        let certain = self.planned(id, certain)?;
        let possible = if one { certain } else { self.planned(id, possible)? };
        Ok(Meaning::Truth(Truth::of(certain, possible)))
    }

    /// The truth of a plan.
    pub(super) fn planned(&mut self, id: ExprId, plan: RelationPlan) -> Result<Halves, CompileError> {
        let fields = plan.fields.iter();
        let fields = fields.map(|read| (read.topic, read.path.clone(), Read::Value(read.value_type)));
        let fields: Vec<_> = fields.collect();
        let fields = fields.into_iter().map(|(topic, path, read)| self.field(topic, &path, read)).collect();
        let meaning = |node: ExprId| {
            let meaning = self.done.get(node.index()).copied().flatten();
            meaning
                .map(|(meaning, _)| meaning)
                .ok_or(CompileError::ForwardReference { node: id, operand: node })
        };
        let mut truths = Vec::new();
        for truth in &plan.truths {
            match meaning(truth.node)? {
                Meaning::Truth(Truth { at, after }) => truths.push([at, after].map(|bounds| {
                    let wire = match truth.truth_bound {
                        TruthBound::Certain => bounds.certain,
                        TruthBound::Possible => bounds.possible,
                    };
                    if truth.negated { !wire } else { wire }
                })),
                Meaning::Values(values) => {
                    let (node, found) = (truth.node, values.value_type);
                    return Err(CompileError::WrongType { node, expected: "bool", found });
                }
            }
        }
        let mut values = Vec::new();
        for node in &plan.values {
            values.push(match meaning(*node)? {
                Meaning::Truth(Truth { at, after }) => {
                    Input::Truth([at, after].map(|bounds| [bounds.certain, bounds.possible]))
                }
                Meaning::Values(values) => Input::Column(
                    values.value_type,
                    [values.at, values.after].map(|column| (column.node.0, column.known)),
                ),
            });
        }
        let relation =
            Relation { plan, node: id, model: self.model, truths, values, fields, slots: Vec::new() };
        let mut operands = Vec::new();
        relation.for_each_register(|node| operands.push(node));
        operands.sort_unstable();
        operands.dedup();
        let dense = self.model == TimeModel::Dense;
        let at = self.sources.add_relation(&mut self.graph, relation, operands.into());
        let after = if dense { self.graph.wire(Node::After(at.node())) } else { at };
        Ok(Halves { at, after })
    }
}

impl Scope<'_> {
    /// Checks that a variable has the same type in this node as everywhere.
    fn check(&self, node: ExprId) -> Result<(), CompileError> {
        let same = |variable, right: ValueType| match self.type_of(variable) {
            Some(left) if left != right => Err(CompileError::MixedTypes { node, left, right }),
            _ => Ok(()),
        };
        match &self.spec.nodes[node.index()] {
            Expr::Variable(variable, value_type) => same(*variable, *value_type),
            Expr::Bind { fields, .. } => {
                fields.iter().try_for_each(|(_, variable, value_type)| same(*variable, *value_type))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn not_monitorable(Refusal { node, variable, why, help }: Refusal) -> CompileError {
    CompileError::NotMonitorable { node, variable, why, help }
}

/// A plan that records the values that satisfy it.
pub(super) fn with_names(scope: &Scope<'_>, plan: RelationPlan) -> RelationPlan {
    let typed = |variable: &VariableId| Some((*variable, scope.type_of(*variable)?));
    let variables = plan.roots.iter().flat_map(|root| &plan.parts[root.part.index()].variables);
    let mut named: Vec<_> = variables.filter_map(typed).collect();
    named.sort_unstable_by_key(|(variable, _)| variable.0);
    named.dedup();
    RelationPlan { named, ..plan }
}
