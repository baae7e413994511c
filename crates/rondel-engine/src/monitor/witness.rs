//! Witnesses: values that violate a property with quantifiers.

use rondel_event::{Block, Path, Read, Slot, TopicId, Value, ValueType};
use rondel_spec::{Expr, ExprId, Spec, TimeModel, VariableId};

use crate::exec::report::Report;
use crate::lower::quantifier::Evaluation;
use crate::monitor::Monitor;
use crate::monitor::program::Program;
use crate::relation::witness::WantedAnswer;

/// Quantified formula whose failure violates its property.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// Evaluated by a relation: the formula.
    Relation(ExprId),
    /// Evaluated by obligations of relation tuples, because it has future operators: section and position of each
    /// relation.
    Obligations(Vec<(usize, usize)>),
    /// Evaluated by value: for each variable, its column in the messages of each topic.
    ByValue(Vec<(VariableId, Vec<WitnessColumn>)>),
}

/// Column and type of a value in the messages of a topic.
type WitnessColumn = (TopicId, Slot, ValueType);

/// Values of a violation that a relation found, with its time and formula.
#[derive(Clone, Debug)]
pub(crate) struct Violating {
    node: ExprId,
    steps: bool,
    /// Step in discrete time, otherwise a time in nanoseconds.
    at: i64,
    is_span: bool,
    /// Row of the event in its block, at an event.
    row: Option<u8>,
    values: Vec<(VariableId, Value)>,
}

/// Quantified formulas each of which violates the property alone: its conjuncts, and its disjuncts and `exists` under
/// `not`.
pub(crate) fn parts(spec: &Spec, formula: ExprId) -> Vec<(ExprId, bool)> {
    let (mut found, mut open) = (Vec::new(), vec![(formula, true)]);
    while let Some((id, positive)) = open.pop() {
        match spec.nodes.get(id.index()) {
            Some(Expr::Not(x) | Expr::Definitely(x)) => {
                let is_not = matches!(spec.nodes[id.index()], Expr::Not(_));
                open.push((*x, positive != is_not));
            }
            Some(Expr::And(x, y)) if positive => open.extend([(*y, true), (*x, true)]),
            Some(Expr::Or(x, y)) if !positive => open.extend([(*y, false), (*x, false)]),
            Some(Expr::ForAll(..)) if positive => found.push((id, positive)),
            Some(Expr::Exists(..)) if !positive => found.push((id, positive)),
            _ => {}
        }
        // More parts occur in generated formulas only.
        if found.len() + open.len() > 1000 {
            return found;
        }
    }
    found
}

impl Program {
    /// Finds the formulas of every property whose values can be named.
    pub(crate) fn find_named(&mut self, spec: &Spec) {
        self.named = spec
            .properties
            .iter()
            .map(|property| {
                let parts = parts(spec, property.formula);
                parts.into_iter().filter_map(|(node, _)| self.named_part(node)).collect()
            })
            .collect();
    }

    fn named_part(&self, node: ExprId) -> Option<Named> {
        let Some(quantifier) = self.quantifiers().iter().find(|quantifier| quantifier.node == node) else {
            return self.obligations_of(node);
        };
        let Evaluation::ByValue(places) = &quantifier.evaluation else {
            return Some(Named::Relation(node));
        };
        let slot = |(topic, path): &(TopicId, Path)| {
            let fields = &self.projections().get(topic.index())?.fields;
            fields.iter().find_map(|field| match field.read {
                Read::Value(of) if field.path == *path => Some((*topic, field.slot, of)),
                _ => None,
            })
        };
        let places =
            places.iter().map(|(variable, places)| (*variable, places.iter().filter_map(slot).collect()));
        Some(Named::ByValue(places.collect()))
    }
}

impl Program {
    /// Relations whose tuples have obligations for a formula with future operators, at the time points of the formula
    /// itself.
    fn obligations_of(&self, node: ExprId) -> Option<Named> {
        let mut obligations = Vec::new();
        for (i, section) in self.sections.iter().enumerate() {
            let its = section.relations.iter().enumerate();
            let its = its.filter(|(_, of)| {
                of.node == node && of.plan.obligation.is_some() && !of.plan.named.is_empty()
            });
            obligations.extend(its.map(|(k, _)| (i, k)));
        }
        (!obligations.is_empty()).then_some(Named::Obligations(obligations))
    }
}

impl Monitor {
    /// Collects the witnesses that relations found in a call.
    pub(crate) fn collect_witnesses(&mut self) {
        let Monitor { program, sections, witnesses, .. } = self;
        for (section, serial) in program.sections.iter().zip(sections) {
            for (relation, state) in section.relations.iter().zip(&mut serial.state.relations) {
                if let Some(obligations) = state.obligations_mut() {
                    obligations.end_call();
                }
                let steps = relation.model == TimeModel::Steps;
                state.take_witnesses(relation.model, |(at, is_span, row), values| {
                    witnesses.push(Violating { node: relation.node, steps, at, is_span, row, values });
                });
            }
        }
    }

    /// Adds the values of the quantified variables that made a property violated according to a report of the last
    /// call, if they are known. `block` is that of the call.
    #[inline]
    pub fn write_witness(&self, report: &Report, block: Option<&Block>, out: &mut Vec<(VariableId, Value)>) {
        let named = self.program.named.get(report.property as usize);
        // Most properties have none, and change often.
        if let Some(named) = named.filter(|named| !named.is_empty() && report.changed) {
            self.write_named(named, report, block, out);
        }
    }

    fn write_named(
        &self,
        named: &[Named],
        report: &Report,
        block: Option<&Block>,
        out: &mut Vec<(VariableId, Value)>,
    ) {
        for named in named {
            match named {
                Named::Relation(node) => {
                    let is_it = |found: &&Violating| {
                        let at = if found.steps { report.step as i64 } else { report.time.as_nanos() };
                        found.node == *node && found.at == at && found.is_span == report.after
                    };
                    // Simultaneous messages have a witness each; the last one decides the interval after them.
                    let mut all = self.witnesses.iter().filter(is_it);
                    let found = match report.row {
                        Some(_) => all.find(|found| found.row == report.row),
                        None => all.next_back(),
                    };
                    if let Some(found) = found {
                        out.extend(found.values.iter().cloned());
                        return;
                    }
                }
                Named::Obligations(places) => {
                    let found = places.iter().find_map(|(section, relation)| {
                        let of = self.program.sections.get(*section)?.relations.get(*relation)?;
                        let state = self.sections.get(*section)?.state.relations.get(*relation)?;
                        let place = match of.model {
                            _ if report.after => return None,
                            TimeModel::Steps => report.step.saturating_sub(report.back) as i64,
                            _ => report.about.unwrap_or(report.time).as_nanos(),
                        };
                        let wanted = WantedAnswer {
                            model: of.model,
                            place,
                            is_own: report.at_event && report.about.is_none(),
                            at_event: report.at_event,
                            step: report.step,
                            time: report.time.as_nanos(),
                        };
                        state.answer(&of.plan, &wanted)
                    });
                    if let Some(found) = found {
                        out.extend(found);
                        return;
                    }
                }
                Named::ByValue(places) => {
                    let (Some(row), Some(block)) = (report.row, block) else { continue };
                    let Some(topic) = block.topic(row.into()) else { continue };
                    let before = out.len();
                    for (variable, places) in places {
                        let place = places.iter().find(|(of, ..)| *of == topic);
                        let value =
                            place.and_then(|(_, slot, of)| block.value(*slot, *of, row.into()).flatten());
                        out.extend(value.map(|value| (*variable, value)));
                    }
                    if out.len() > before {
                        return;
                    }
                }
            }
        }
    }
}
