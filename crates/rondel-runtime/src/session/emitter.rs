//! From the reports of a monitor to statistics and pending reports.

use rondel_engine::Monitor;
use rondel_event::Block;
use rondel_spec::Spec;

use crate::explanation::Explainer;
use crate::options::Emit;
use crate::report::Reports;
use crate::statistics::PropertyStatistics;

/// The properties that one monitor evaluates.
#[derive(Clone, Debug)]
pub(super) struct Evaluated {
    /// The position of each in the specification.
    pub(super) properties: Vec<u32>,
    /// The explainer of their violations, if explanations are requested.
    pub(super) explainer: Option<Explainer>,
}

/// Counts all verdicts, and keeps those to emit until they are taken.
pub(super) struct Emitter {
    emit: Emit,
    pub(super) statistics: Vec<PropertyStatistics>,
    pub(super) reports: Reports,
}

impl Emitter {
    pub(super) fn new(spec: &Spec, emit: Emit) -> Emitter {
        Emitter { emit, statistics: PropertyStatistics::all(spec), reports: Reports::default() }
    }

    /// Takes the reports of a monitor's last call: on a block, whose first event is the step with this
    /// number, or on time passing.
    pub(super) fn take(
        &mut self,
        block: Option<(&Block, u64)>,
        monitor: &Monitor,
        evaluated: &mut Evaluated,
    ) {
        let Evaluated { properties, explainer } = evaluated;
        let Emitter { emit, statistics, reports } = self;
        reports.make_room();
        let events = block.map(|(block, _)| block);
        match explainer {
            None => {
                for report in monitor.reports() {
                    let property = properties[report.property as usize];
                    statistics[property as usize].add(report, || monitor.key(report));
                    // A verdict that is only counted needs no parameters.
                    if emit.wants(report) {
                        reports.add(property, report, (monitor, events), None);
                    }
                }
            }
            Some(explainer) => explainer.take(block, monitor, |report, explanation| {
                let property = properties[report.property as usize];
                statistics[property as usize].add(report, || monitor.key(report));
                if emit.wants(report) {
                    reports.add(property, report, (monitor, events), explanation);
                }
            }),
        }
    }
}
