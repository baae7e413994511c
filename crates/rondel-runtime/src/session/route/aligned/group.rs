//! Alignment groups: the properties that wait for the same topics.

use std::sync::Arc;

use rondel_engine::Program;
use rondel_event::{Field, Layout, Projection, Slot, Timestamp, TopicId};
use rondel_spec::Spec;

use crate::explanation::Explainer;
use crate::ordering::align::{AlignedMonitor, Division, Rule, divide, together};
use crate::ordering::alignment::{Alignment, WaitFor};
use crate::session::SessionPlan;
use crate::session::options::{Blind, Emit};
use crate::session::results::emitter::Evaluated;
use crate::session::results::reached::Reached;
use crate::session::snapshot::saved::StartError;
use crate::specification::Specification;

/// An alignment and the monitor behind it.
pub(super) struct Group {
    pub(super) topics: Vec<TopicId>,
    /// The names of its properties, if there are other groups.
    pub(super) names: Vec<String>,
    pub(super) specification: Specification,
    pub(super) monitor: AlignedMonitor,
    /// For every topic the slots of its fields in the block of the intake.
    pub(super) sources: Vec<Vec<Slot>>,
    /// The limits of instances that were not reached yet.
    pub(super) reached: Reached,
    pub(super) evaluated: Evaluated,
    /// Whether time alone causes reports.
    pub(super) is_timed: bool,
    /// Whether a message, a marker or time came since it was last run.
    pub(super) is_fresh: bool,
    /// Number of machine leaps reported so far.
    pub(super) leaps: u64,
}

/// An alignment group as it will be in a session.
pub(in crate::session) struct Planned {
    /// The positions of its properties.
    pub(in crate::session) properties: Vec<u32>,
    /// The program, with the parts that explanations watch.
    pub(in crate::session) program: Arc<Program>,
    /// The alignment, before the first message, if messages wait to be put in order.
    pub(in crate::session) rule: Option<Rule>,
}

/// The alignment groups of a plan.
///
/// # Errors
/// [`StartError::Compile`] when the properties of a group cannot be monitored.
pub(in crate::session) fn planned(plan: &SessionPlan) -> Result<Vec<Planned>, StartError> {
    let plan_of = |division: Division| {
        let Division { topics, properties, keyed, spec, .. } = division;
        let (specification, _) = Group::specification(plan, spec)?;
        let rule = Some(plan.options.alignment.rule(&topics, keyed));
        Ok(Planned { properties, program: specification.program, rule })
    };
    divisions(&plan.specification.spec, &plan.options.alignment).into_iter().map(plan_of).collect()
}

impl Group {
    /// Specification of a group, and the explainer of its violations, if requested.
    fn specification(
        plan: &SessionPlan,
        spec: Spec,
    ) -> Result<(Specification, Option<Explainer>), StartError> {
        let mut specification = Specification {
            program: Arc::new(Program::compile(&spec)?),
            spec: Arc::new(spec),
            is_formula: plan.specification.is_formula,
        };
        let explainer = plan
            .options
            .explain
            .then(|| Explainer::new(&mut specification, plan.options.signals, plan.options.courses));
        Ok((specification, explainer))
    }

    pub(super) fn new(
        plan: &SessionPlan,
        division: Division,
        several: bool,
        state: Option<&Vec<u8>>,
        latest: Option<Timestamp>,
    ) -> Result<Group, StartError> {
        let Division { topics, properties, keyed, spec, .. } = division;
        let (specification, explainer) = Group::specification(plan, spec)?;
        let rule = plan.options.alignment.rule(&topics, keyed);
        let program = Arc::clone(&specification.program);
        let mut monitor = match state {
            None => AlignedMonitor::new(program, rule),
            Some(state) => AlignedMonitor::restore(program, rule, state)?,
        };
        monitor.withhold(plan.options.blind == Blind::Inconclusive);
        monitor.monitor_mut().report_every(plan.options.emit == Emit::Every);
        monitor.monitor_mut().limit_instances(plan.options.instance_bytes);
        let names = specification.spec.properties.iter().map(|property| property.name.clone());
        let leaps = monitor.monitor().leaps();
        let latest = latest.unwrap_or(Timestamp::from_nanos(i64::MIN));
        Ok(Group {
            names: if several { names.collect() } else { Vec::new() },
            reached: Reached::new(monitor.monitor()),
            monitor,
            sources: Vec::new(),
            evaluated: Evaluated { properties, explainer, latest },
            is_timed: specification.is_timed(),
            topics,
            specification,
            is_fresh: false,
            leaps,
        })
    }

    /// Finds the group's fields in the block that messages are decoded into.
    pub(super) fn find_fields(&mut self, all: &[Projection]) {
        let own = self.specification.program.projections();
        let sources = own.iter().zip(all).map(|(own, all)| {
            let slot = |field: &Field| {
                let found = all.fields.iter().find(|f| f.path == field.path && f.read == field.read);
                found.map_or(field.slot, |found| found.slot)
            };
            own.fields.iter().map(slot).collect()
        });
        self.sources = sources.collect();
    }
}

/// The fields that any group reads, each once, in a layout of their own.
pub(super) fn union(topics: usize, groups: &[Group]) -> (Vec<Projection>, Layout) {
    let mut layout = Layout { topics, ..Layout::default() };
    let mut projections = vec![Projection::default(); topics];
    for group in groups {
        // Topics of the program alone, of elements of arrays, have no messages.
        for (topic, own) in group.specification.program.projections().iter().enumerate().take(topics) {
            for field in &own.fields {
                let all = &mut projections[topic].fields;
                if all.iter().any(|f| f.path == field.path && f.read == field.read) {
                    continue;
                }
                let next = |count: &mut usize| {
                    *count += 1;
                    *count as u32 - 1
                };
                let slot = match field.slot {
                    Slot::Bool(_) => Slot::Bool(next(&mut layout.bools)),
                    Slot::Int(_) => Slot::Int(next(&mut layout.ints)),
                    Slot::Float(_) => Slot::Float(next(&mut layout.floats)),
                    Slot::String(_) => Slot::String(next(&mut layout.strings)),
                };
                all.push(Field { slot, ..field.clone() });
            }
        }
    }
    (projections, layout)
}

/// The alignment groups of a specification.
pub(super) fn divisions(spec: &Spec, alignment: &Alignment) -> Vec<Division> {
    let joined = alignment.policy.makes_sets();
    match alignment.wait_for {
        WaitFor::Property if !joined => divide(spec),
        WaitFor::Property | WaitFor::Specification => together(spec, joined),
    }
}
