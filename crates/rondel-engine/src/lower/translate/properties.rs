//! Properties of one time model: the nodes that they need, and their formulas, terms and premises.

use rondel_spec::{ExprId, TimeModel};

use super::future::look_ahead;
use super::{Column, Meaning, Robustness, TermSource, Translator, ValueColumns};
use crate::CompileError;
use crate::future::{Future, RobustFuture};
use crate::ir::graph::Graph;
use crate::ir::premise::Premise;
use crate::ir::truth::Truth;
use crate::relation::plan::Keep;

/// The properties that are translated so far.
#[derive(Default)]
pub(super) struct TranslatedProperties {
    pub(super) formulas: Vec<Truth>,
    pub(super) robust: Vec<Option<Robustness>>,
    pub(super) futures: Vec<Future>,
    pub(super) robust_futures: Vec<RobustFuture<Robustness>>,
    pub(super) premises: Vec<Premise>,
    /// Properties that are terms; none if every property must be a formula.
    pub(super) terms: Option<Vec<TermSource>>,
}

/// Demands of the properties on each node.
#[derive(Default)]
pub(super) struct Demands {
    /// Whether a property needs the node.
    needed: Vec<bool>,
    /// The retention policy of relations in the node.
    pub(super) keep: Vec<Keep>,
    /// Whether a quantifier in the node must be evaluated by relations.
    pub(super) by_relations: Vec<bool>,
}

impl Demands {
    fn none(nodes: usize) -> Demands {
        Demands {
            needed: vec![false; nodes],
            keep: vec![Keep::Bounded; nodes],
            by_relations: vec![false; nodes],
        }
    }

    /// Extends the demands on a node to another one. Returns whether that exists.
    fn extend(&mut self, from: usize, to: ExprId) -> bool {
        let Some(needed) = self.needed.get_mut(to.index()) else { return false };
        *needed = true;
        self.keep[to.index()] = self.keep[to.index()].max(self.keep[from]);
        self.by_relations[to.index()] |= self.by_relations[from];
        true
    }
}

impl Translator<'_> {
    /// Adds the properties with these indexes, all of time model `model`. Returns those without future
    /// operators.
    ///
    /// # Errors
    /// As [`Program::compile`](crate::Program::compile).
    pub(crate) fn add(&mut self, model: TimeModel, properties: &[u32]) -> Result<Vec<u32>, CompileError> {
        let spec = self.spec;
        self.model = model;
        self.done = vec![None; spec.nodes.len()];
        self.margins.clear();
        self.machines.clear();
        self.demand_formulas(properties)?;
        self.demand_operands()?;
        let ahead = look_ahead(&spec.nodes);
        for (i, expr) in spec.nodes.iter().enumerate() {
            if self.demands.needed[i] {
                self.interpolate(ExprId(i as u32), expr)?;
            }
            if self.demands.needed[i] && !ahead[i] {
                self.done[i] = Some(self.expr(ExprId(i as u32), expr)?);
            }
        }
        let mut plain = Vec::with_capacity(properties.len());
        for &property in properties {
            if self.add_property(property, &ahead)? {
                plain.push(property);
            }
        }
        self.add_premises(properties);
        if self.graph.has_overflowed() {
            return Err(CompileError::TooLarge { limit: Graph::LIMIT });
        }
        Ok(plain)
    }

    /// Sets the demands of the properties on their formulas and premises.
    fn demand_formulas(&mut self, properties: &[u32]) -> Result<(), CompileError> {
        let spec = self.spec;
        let mut demands = Demands::none(spec.nodes.len());
        for &property in properties {
            let property = &spec.properties[property as usize];
            let (name, formula) = (&property.name, property.formula);
            match demands.needed.get_mut(formula.index()) {
                Some(needed) => {
                    *needed = true;
                    let keep = Keep::of(&property.attributes, property.slice.is_some());
                    demands.keep[formula.index()] = demands.keep[formula.index()].max(keep);
                    let by_relations = property
                        .attributes
                        .iter()
                        .any(|(name, value)| name == "plan" && value == "relations");
                    demands.by_relations[formula.index()] |= by_relations;
                }
                None => return Err(CompileError::UnknownFormula { property: name.clone(), formula }),
            }
            // A premise is nearly always a subformula of its property.
            for &premise in &property.premises {
                demands.extend(formula.index(), premise);
            }
        }
        self.demands = demands;
        Ok(())
    }

    /// Extends the demands on all nodes to their operands.
    fn demand_operands(&mut self) -> Result<(), CompileError> {
        let spec = self.spec;
        // A truth that is unknown because tuples were evicted must not become false in an operator that
        // conflates the two.
        let mut collapses = vec![false; spec.nodes.len()];
        for (i, expr) in spec.nodes.iter().enumerate().rev() {
            if self.demands.needed[i] {
                collapses[i] |= !self.keeps_unknown(ExprId(i as u32), expr);
                if collapses[i] && self.demands.keep[i] != Keep::All {
                    self.demands.keep[i] = Keep::Strict;
                }
                for operand in self.required_operands(ExprId(i as u32), expr)? {
                    // Invalid operands are reported when their node is translated.
                    if self.demands.extend(i, operand) {
                        collapses[operand.index()] |= collapses[i];
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a property whose nodes are translated. Returns whether it is a formula without future operators.
    fn add_property(&mut self, position: u32, ahead: &[bool]) -> Result<bool, CompileError> {
        let (spec, model) = (self.spec, self.model);
        let property = &spec.properties[position as usize];
        if ahead[property.formula.index()] && property.robust {
            let future = self.robust_plan(position, property.formula, model, ahead)?;
            self.properties.robust_futures.push(future);
            return Ok(false);
        }
        if ahead[property.formula.index()] {
            let future = self.plan(position, property.formula, model, ahead)?;
            self.properties.futures.push(future);
            return Ok(false);
        }
        match self.done[property.formula.index()] {
            Some((Meaning::Truth(truth), _)) => {
                self.properties.formulas.push(truth);
                let robust = if property.robust { Some(self.robustness(property.formula)?) } else { None };
                self.properties.robust.push(robust);
                Ok(true)
            }
            Some((Meaning::Values(ValueColumns { at, after, value_type }), _))
                if self.properties.terms.is_some() =>
            {
                let halves = [at, after].map(|Column { node, known }| (node, known));
                let term = TermSource { property: position, value_type, halves };
                self.properties.terms.iter_mut().for_each(|terms| terms.push(term));
                Ok(false)
            }
            Some((Meaning::Values(values), _)) => {
                let (property, found) = (property.name.clone(), values.value_type);
                Err(CompileError::NotAFormula { property, found })
            }
            // Cannot happen: every formula is marked as needed.
            None => Ok(false),
        }
    }

    fn add_premises(&mut self, properties: &[u32]) {
        for &property in properties {
            for (number, premise) in (0..).zip(&self.spec.properties[property as usize].premises) {
                if let Some(Some((Meaning::Truth(truth), _))) = self.done.get(premise.index()) {
                    let certain = truth.certain();
                    self.properties.premises.push(Premise { property, number, certain });
                }
            }
        }
    }
}
