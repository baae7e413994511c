//! From the reports of a monitor to statistics and pending reports.

use rondel_engine::{EndedInstance, Monitor, Report, UnseenFrom};
use rondel_event::{Block, Timestamp};
use rondel_spec::Spec;

use crate::explanation::Explainer;
use crate::report::{ReportSource, Reports};
use crate::session::options::Emit;
use crate::session::results::standing::Standings;
use crate::statistics::{EndOf, PropertyStatistics};

/// The properties that one monitor evaluates.
#[derive(Clone, Debug)]
pub(in crate::session) struct Evaluated {
    /// The position of each in the specification.
    pub(in crate::session) properties: Vec<u32>,
    /// The explainer of their violations, if explanations are requested.
    pub(in crate::session) explainer: Option<Explainer>,
    /// The time of the last event.
    pub(in crate::session) latest: Timestamp,
}

impl Evaluated {
    /// End of the evaluated time span.
    pub(in crate::session) fn end(&self, monitor: &Monitor) -> EndOf {
        EndOf { event: self.latest, time: monitor.time(), steps: monitor.position() }
    }
}

/// Counts all verdicts, and keeps those to emit until they are taken.
pub(in crate::session) struct Emitter {
    emit: Emit,
    pub(in crate::session) statistics: Vec<PropertyStatistics>,
    pub(in crate::session) reports: Reports,
    /// Whether the recording was not read to its end.
    pub(in crate::session) broke_off: bool,
    /// Whether the missing messages were left out by choice.
    pub(in crate::session) is_cut: bool,
    /// The present state of properties that the caller watches, if it watches any.
    pub(in crate::session) standings: Option<Box<Standings>>,
}

impl Emitter {
    pub(in crate::session) fn new(spec: &Spec, emit: Emit) -> Emitter {
        let statistics = PropertyStatistics::all(spec);
        let mut reports = Reports::default();
        reports.mute(spec, emit == Emit::Every);
        Emitter { emit, statistics, reports, broke_off: false, is_cut: false, standings: None }
    }

    /// Takes the reports of a monitor's last call: about a block, whose first event is the step with this number, or
    /// about the passing of time.
    pub(in crate::session) fn take(
        &mut self,
        block: Option<(&Block, u64)>,
        monitor: &Monitor,
        evaluated: &mut Evaluated,
    ) {
        if let Some((block, _)) = block
            && let Some(last) = block.len().checked_sub(1)
        {
            evaluated.latest = block.time(last);
        }
        let end = evaluated.end(monitor);
        let Evaluated { properties, explainer, .. } = evaluated;
        let Emitter { emit, statistics, reports, is_cut, standings, .. } = self;
        if let Some(standings) = standings {
            standings.take(block.is_some(), monitor, properties);
        }
        reports.make_room();
        let from = ReportSource { monitor, block: block.map(|(block, _)| block) };
        // Before the verdicts that are inconclusive for that reason.
        for missed in monitor.missed().iter().filter(|missed| missed.is_read) {
            if let Some(&property) = properties.get(missed.property as usize) {
                if !*is_cut {
                    statistics[property as usize].see_omission();
                }
                statistics[property as usize].gap(missed.from, end, monitor);
            }
        }
        let mut ended = monitor.ended().peekable();
        let any_ended = ended.peek().is_some();
        let mut count = |statistics: &mut [PropertyStatistics], reports: &mut Reports, report: &Report| {
            while any_ended && let Some(ended) = ended.next_if(|ended| ended.is_before(report)) {
                end_instance(statistics, reports, properties, &ended, monitor);
            }
            let property = properties[report.property as usize];
            statistics[property as usize].add(report, Some(from));
            reports.note(property, report, monitor)
        };
        match explainer {
            None => {
                for report in monitor.reports() {
                    let property = properties[report.property as usize];
                    let change = count(statistics, reports, report);
                    // A verdict that is only counted needs no parameters; an assert has one at the end.
                    if emit.wants(report) && !statistics[property as usize].is_assert() {
                        reports.add(property, report, from, None, change);
                    }
                }
            }
            Some(explainer) => explainer.take(block, monitor, |report, explanation| {
                let property = properties[report.property as usize];
                let change = count(statistics, reports, report);
                if emit.wants(report) && !statistics[property as usize].is_assert() {
                    reports.add(property, report, from, explanation, change);
                }
            }),
        }
        ended.for_each(|ended| end_instance(statistics, reports, properties, &ended, monitor));
        for missed in monitor.missed() {
            // The parts that only explanations need follow the properties.
            if let Some(&property) = properties.get(missed.property as usize)
                && !*is_cut
            {
                statistics[property as usize].miss(monitor, missed.is_read);
            }
        }
        // The part of a recording that was left out ends before its first message.
        *is_cut &= block.is_none();
    }

    /// Begins a lap with the empty statistics of a fresh emitter.
    pub(in crate::session) fn begin_lap(&mut self, fresh: Emitter, lap: u32) {
        self.statistics = fresh.statistics;
        self.broke_off = false;
        if let Some(standings) = &mut self.standings {
            standings.begin_lap();
        }
        self.reports.begin_lap(lap);
    }

    /// Ends all violations for the statistics at the end of the evaluated time span.
    pub(in crate::session) fn stop_measuring(&mut self, monitor: &Monitor, evaluated: &Evaluated) {
        let end = evaluated.end(monitor);
        for &property in &evaluated.properties {
            self.statistics[property as usize].gap(UnseenFrom::Count(monitor.counted()), end, monitor);
        }
    }

    /// Judges the asserts of a monitor that has ended; its last event, if there is one, was at `latest`.
    pub(in crate::session) fn judge(
        &mut self,
        monitor: &Monitor,
        evaluated: &Evaluated,
        latest: Option<Timestamp>,
    ) {
        // A monitor that counts steps alone keeps no time.
        let time = latest.map_or(Timestamp::ZERO, |latest| latest.max(monitor.time()));
        for (own, &property) in (0..).zip(&evaluated.properties) {
            let Some(verdict) = self.statistics[property as usize].judge(monitor, own, time, self.broke_off)
            else {
                continue;
            };
            let mut report = Report::at_event(verdict, monitor.position(), time);
            (report.at_event, report.row) = (false, None);
            if self.emit.wants(&report) {
                self.reports.make_room();
                self.reports.add_judged(property, &report);
            }
        }
    }
}

/// Counts an instance that ended while a property was violated in it.
fn end_instance(
    statistics: &mut [PropertyStatistics],
    reports: &mut Reports,
    properties: &[u32],
    ended: &EndedInstance<'_>,
    monitor: &Monitor,
) {
    // The parts that only explanations need follow the properties.
    if let Some(&property) = properties.get(ended.property as usize) {
        statistics[property as usize].ended(ended, monitor);
        reports.note_end(property, ended, monitor);
    }
}
