//! Messages in lines.

use rondel_decode::lines::{LineError, Lines, Source};
use rondel_event::{Layout, Rows, TimeUnit, TopicId};

use super::Direct;
use crate::ordering::limits::Clocks;
use crate::session::gaps::blind::Hole;
use crate::session::time::laps::{Came, Held};
use crate::session::{Shared, Stamp};
use crate::specification::input::TimeSource;
use crate::specification::trace_topics;
use crate::time::clock::NO_TIME;

impl Direct {
    /// Lets messages of lines wait, from the first one on whose time steps back. Returns whether there is one; those before
    /// it are evaluated.
    #[cold]
    pub(super) fn hold_lines(&mut self, shared: &mut Shared) -> bool {
        let is_own = |topic: TopicId| self.reader.inputs[topic.index()].time != TimeSource::Arrival;
        let mut first = None;
        for row in 0..self.block.len() {
            let Some(topic) = self.block.topic(row).filter(|topic| is_own(*topic)) else { continue };
            if shared.laps.must_wait(topic, self.block.time(row)) {
                first = Some(row);
                break;
            }
            shared.laps.see(topic, self.block.time(row));
        }
        let Some(first) = first else { return false };
        let mut rest = self.block.clone();
        rest.keep(rows_from(first));
        self.block.keep(!rows_from(first));
        let came = Came::at(&*shared.clock);
        shared.counts.checked -= rest.len() as u64;
        self.evaluate(shared);
        for row in 0..rest.len() {
            let Some(topic) = rest.topic(row) else { continue };
            let mut block = rest.clone();
            block.keep(1 << row);
            shared.laps.hold(Held { topic, block, stamp: Stamp::default(), is_line: true, came });
        }
        true
    }

    pub(in crate::session) fn lines(&self, unit: TimeUnit) -> Lines {
        let Direct { specification, reader, .. } = self;
        let projections = specification.program.projections();
        let topics = trace_topics(&specification.spec, projections, &reader.inputs);
        Lines::new(&topics, specification.is_formula, unit)
            .with_arrivals(self.timing.reads_arrivals)
            .from_time(self.time)
    }

    /// The columns of the blocks that are filled with lines.
    pub(in crate::session) fn layout(&self) -> Layout {
        self.block.layout()
    }

    pub(in crate::session) fn push_lines(
        &mut self,
        lines: &mut Lines,
        source: Source<'_>,
        shared: &mut Shared,
    ) -> Result<usize, LineError> {
        if matches!(source, Source::Part(_)) {
            // The part replaces the block.
            self.step(shared);
        }
        let before = self.block.len();
        self.reads_lines = true;
        let decoded = lines.take(source, &mut self.block);
        self.reader.line_defaults.fill(&mut self.block, before);
        let mut holes = shared.holes(lines, &self.block, before);
        shared.join(|| (self.block.len() > before).then(|| self.block.time(before)));
        let came = (self.block.len() - before) as u64;
        shared.counts.received += came;
        let mut untimed = lines.take_untimed();
        if self.timing.line_limits.are_active() {
            untimed = self.refuse_lines(before, untimed, &mut holes, shared);
        } else {
            self.time = lines.time();
        }
        shared.counts.checked += (self.block.len() - before) as u64;
        self.line_counts.update(lines);
        if self.timing.reads_fields || self.timing.is_measured {
            self.look_for_times(before, untimed, shared);
        }
        if !holes.is_empty() {
            self.step_to(holes, shared);
        }
        if self.block.is_full() || decoded.is_err() {
            self.step(shared);
        }
        decoded
    }

    /// Records the latest time of each topic in the block, whose rows are in order.
    pub(super) fn see_times(&self, shared: &mut Shared) {
        for topic in (0..self.reader.inputs.len() as u32).map(TopicId) {
            let rows = self.block.topic_rows(topic);
            if rows != 0 && self.reader.inputs[topic.index()].time != TimeSource::Arrival {
                shared.laps.see(topic, self.block.time(rows.ilog2() as usize));
            }
        }
    }

    /// Evaluates the events before each hole, and records the missed messages there.
    #[cold]
    fn step_to(&mut self, holes: Vec<Hole>, shared: &mut Shared) {
        let mut done = 0;
        for Hole { row, topics, gap, .. } in holes {
            if row > done {
                let after = rows_from(row - done);
                let mut rest = self.block.clone();
                rest.keep(after);
                self.block.keep(!after);
                self.step(shared);
                self.block = rest;
                done = row;
            }
            // Blocks that wait precede the gap.
            self.settle(shared);
            match gap {
                Some(before) => self.gaps.add(&topics, before),
                None => self.unseen(&topics, self.monitor.time(), shared),
            }
        }
    }

    /// Removes the events from this row on whose times are too far from those before them, and adds each to the holes,
    /// whose rows are moved. Returns which of the other events have no time of their own.
    fn refuse_lines(
        &mut self,
        from: usize,
        untimed: Rows,
        holes: &mut Vec<Hole>,
        shared: &mut Shared,
    ) -> Rows {
        let (mut keep, mut kept_untimed) = (self.block.rows(), 0);
        for row in from..self.block.len() {
            let Some(topic) = self.block.topic(row) else { continue };
            let time = self.block.time(row);
            if untimed >> row & 1 == 1 {
                // The decoder took the time of a line before it, which may have been refused.
                self.block.set_time(row, self.time);
                kept_untimed |= 1 << (keep & ((1 << row) - 1)).count_ones();
                continue;
            }
            let clocks = Clocks { shown: NO_TIME, day: None, accepted: 0 };
            let is_own = self.reader.inputs[topic.index()].time != TimeSource::Arrival;
            match is_own.then(|| self.timing.line_limits.check(time, clocks)).flatten() {
                Some(refused) => {
                    keep &= !(1 << row);
                    shared.refuse(topic, time, refused);
                    if shared.heartbeat.withholds {
                        holes.push(Hole { row, topics: vec![topic], origin: None, gap: None });
                    }
                }
                None => self.time = time,
            }
        }
        if keep != self.block.rows() {
            self.block.keep(keep);
            holes.sort_by_key(|hole| hole.row);
            for hole in holes {
                hole.row = (keep & !rows_from(hole.row)).count_ones() as usize;
            }
        }
        kept_untimed
    }

    /// Counts the events from this row on that have no time of their own where they should.
    fn look_for_times(&mut self, from: usize, untimed: Rows, shared: &mut Shared) {
        if !self.timing.unstamped.is_empty() {
            let timed = rows_from(from) & !untimed;
            self.timing.unstamped.retain(|topic| {
                let stamped = self.block.topic_rows(*topic) & timed != 0;
                shared.topics[topic.index()].stamped |= stamped;
                !stamped
            });
        }
        let mut untimed = untimed & rows_from(from);
        while untimed != 0 {
            let row = untimed.trailing_zeros() as usize;
            untimed &= untimed - 1;
            let Some(topic) = self.block.topic(row) else { continue };
            if self.timing.is_measured || self.reader.has_time_field(topic) {
                shared.unstamped(topic, self.block.time(row));
            }
        }
    }
}

/// The rows from this one on.
fn rows_from(row: usize) -> Rows {
    Rows::MAX.checked_shl(row as u32).unwrap_or(0)
}
