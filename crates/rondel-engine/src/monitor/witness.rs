//! The values that violate a property with quantifiers.

use rondel_event::{Block, Path, Read, Slot, TopicId, Value, ValueType};
use rondel_spec::{Expr, ExprId, Spec, TimeModel, VariableId};

use crate::exec::report::Report;
use crate::lower::quantifier::Evaluation;
use crate::monitor::Monitor;
use crate::monitor::program::Program;
use crate::relation::witness::WantedAnswer;

/// A quantified formula that violates its property when it fails.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// By relations: the formula.
    Relation(ExprId),
    /// By relations that are asked of tuples, as it looks ahead: each with its section.
    Asked(Vec<(usize, usize)>),
    /// By value: for each variable the column in the messages of each topic.
    ByValue(Vec<(VariableId, Vec<WitnessColumn>)>),
}

/// Where the messages of a topic have a value of this type.
type WitnessColumn = (TopicId, Slot, ValueType);

/// The values of a violation by relations: when, of which formula.
#[derive(Clone, Debug)]
pub(crate) struct Violating {
    node: ExprId,
    steps: bool,
    /// A number of an event in steps, otherwise a time in nanoseconds.
    at: i64,
    is_span: bool,
    /// The row of the event in its block, at an event.
    row: Option<u8>,
    values: Vec<(VariableId, Value)>,
}

/// The quantified formulas that violate a property each by itself: what it is made of by `and`, and by `or` and
/// `exists` under `not`.
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
        // A formula of more parts is one that nobody wrote by hand.
        if found.len() + open.len() > 1000 {
            return found;
        }
    }
    found
}

impl Program {
    /// For every property the formulas whose values can be named.
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
            return self.asked_of(node);
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
    /// What is asked of tuples for a formula that looks ahead, at the time points of the formula itself.
    fn asked_of(&self, node: ExprId) -> Option<Named> {
        let mut asked = Vec::new();
        for (i, section) in self.sections.iter().enumerate() {
            let its = section.relations.iter().enumerate();
            let its =
                its.filter(|(_, of)| of.node == node && of.plan.ask.is_some() && !of.plan.named.is_empty());
            asked.extend(its.map(|(k, _)| (i, k)));
        }
        (!asked.is_empty()).then_some(Named::Asked(asked))
    }
}

impl Monitor {
    /// Takes what the relations have found in a call.
    pub(crate) fn collect_witnesses(&mut self) {
        let Monitor { program, sections, witnesses, .. } = self;
        for (section, serial) in program.sections.iter().zip(sections) {
            for (relation, state) in section.relations.iter().zip(&mut serial.state.relations) {
                if let Some(asking) = state.asking_mut() {
                    asking.end_call();
                }
                let steps = relation.model == TimeModel::Steps;
                state.take_witnesses(relation.model, |(at, is_span, row), values| {
                    witnesses.push(Violating { node: relation.node, steps, at, is_span, row, values });
                });
            }
        }
    }

    /// Adds the values of the quantified variables that made a property turn violated, as a report of the last
    /// call says, if they are known. `block` is that of the call.
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
                    // Of several messages at one time each has its own, and the last decides what follows.
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
                Named::Asked(places) => {
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
