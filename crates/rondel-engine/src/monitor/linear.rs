//! Sections with linear interpolation: their verdicts lag until the compared numbers are known.

use rondel_event::{Block, Timestamp};

use super::{Monitor, at, before};
use crate::exec::section::Section;
use crate::linear::{Frontier, Linear};

impl Monitor {
    /// Adds the events of a block and evaluates those that are ready.
    pub(super) fn linear_events(&mut self, i: usize, section: &Section, block: &Block) {
        let (Some(plan), Some(mut linear)) = (&section.linear, self.linear[i].take()) else { return };
        linear.frontiers.clear();
        for row in 0..block.len() {
            let time = self.times[row];
            linear.take(plan, block, row, time, self.position + row as u64);
            if linear.is_full() {
                self.evaluate(i, section, &mut linear, time);
                if linear.is_full() {
                    linear.give_up(time);
                    self.evaluate(i, section, &mut linear, time);
                }
            }
        }
        self.evaluate(i, section, &mut linear, self.time);
        self.linear[i] = Some(linear);
    }

    /// Advances time. This has an effect only while no event waits.
    pub(super) fn linear_until(&mut self, i: usize, section: &Section, now: i64) {
        let Some(mut linear) = self.linear[i].take() else { return };
        if linear.is_free() {
            linear.frontiers.clear();
            linear.frontiers.push(Frontier { until: now, time: now, row: None, was_free: true });
            self.evaluate(i, section, &mut linear, now);
        }
        self.linear[i] = Some(linear);
    }

    /// Evaluates the remaining events, whose next numbers will never come.
    pub(super) fn linear_end(&mut self, i: usize, section: &Section) {
        let Some(mut linear) = self.linear[i].take() else { return };
        linear.end();
        let time = self.time;
        linear.frontiers.clear();
        linear.frontiers.push(Frontier { until: time, time, row: None, was_free: false });
        // The last time point needs no successor.
        self.points_before(i, section, &mut linear, time.saturating_add(1));
        self.evaluate(i, section, &mut linear, time);
        self.linear[i] = Some(linear);
    }

    /// Evaluates everything that is known at a time.
    fn evaluate(&mut self, i: usize, section: &Section, linear: &mut Linear, now: i64) {
        let until = linear.until(now);
        self.points_before(i, section, linear, until);
        let first = self.reports.len();
        linear.block.clear();
        if self.sections[i].time > i64::MIN && self.sections[i].time < until {
            while let Some(due) = self.sections[i].next_change(section).filter(|&due| due < until) {
                self.alone(i, section, due, until, 0);
            }
            self.span(i, section, until, 0);
            self.future_until(i, section, until);
        }
        self.date(first, linear);
    }

    /// Evaluates events and crossings before a time.
    fn points_before(&mut self, i: usize, section: &Section, linear: &mut Linear, until: i64) {
        let Some(plan) = &section.linear else { return };
        loop {
            let first = self.reports.len();
            linear.fill(plan, until);
            if linear.block.is_empty() {
                break;
            }
            std::mem::swap(&mut self.times, &mut linear.times);
            std::mem::swap(&mut self.lines, &mut linear.lines);
            self.crossings = linear.crossings();
            self.dense(i, section, &linear.block);
            self.crossings = 0;
            std::mem::swap(&mut self.times, &mut linear.times);
            std::mem::swap(&mut self.lines, &mut linear.lines);
            self.date(first, linear);
        }
    }

    /// Sets the times of the reports from `first` on: when they became certain, and what they are about.
    fn date(&mut self, first: usize, linear: &Linear) {
        let frontiers = &linear.frontiers;
        let mut reports = std::mem::take(&mut self.reports);
        for report in &mut reports[first..] {
            let time = report.time.as_nanos();
            let known = frontiers.partition_point(|frontier| frontier.until <= time);
            let Some(frontier) = frontiers.get(known).or(frontiers.last()) else { continue };
            let certain = if frontier.was_free { time } else { frontier.time.max(time) };
            // A report that is certain at the event that it is about has the step of that event, even where only a
            // later one decides it.
            let own = report.row.and_then(|row| linear.step(row)).filter(|_| certain == time);
            report.about = report.about.or((time < certain).then_some(report.time));
            report.time = Timestamp::from_nanos(certain);
            report.row = frontier.row.filter(|_| certain >= frontier.time);
            report.at_event = own.is_some() || report.row.is_some();
            report.order = match (frontier.row, report.row) {
                (_, Some(row)) => at(row.into()),
                (Some(row), None) => before(row.into()),
                (None, None) => 0,
            };
            let step = own.or(report.row.map(|row| self.position + u64::from(row)));
            report.step = step.unwrap_or_else(|| self.step_before(report.order));
        }
        self.reports = reports;
    }
}
