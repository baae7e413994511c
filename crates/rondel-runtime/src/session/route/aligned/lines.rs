//! Messages in lines.

use rondel_decode::lines::{LineError, Lines, Source};
use rondel_engine::SeenAgain;
use rondel_event::{Layout, TimeUnit, Timestamp};

use super::Aligned;
use crate::session::Shared;
use crate::session::gaps::blind::{Hole, UNKNOWN};
use crate::specification::trace_topics;
use crate::time::clock::NO_TIME;

impl Aligned {
    pub(in crate::session) fn lines(&self, unit: TimeUnit) -> Lines {
        let topics = trace_topics(&self.specification.spec, &self.projections, self.intake.inputs());
        Lines::new(&topics, self.specification.is_formula, unit).with_arrivals(true).with_origins()
    }

    /// The columns of the blocks that are filled with lines.
    pub(in crate::session) fn layout(&self) -> Layout {
        self.intake.block.layout()
    }

    pub(in crate::session) fn push_lines(
        &mut self,
        lines: &mut Lines,
        source: Source<'_>,
        shared: &mut Shared,
    ) -> Result<usize, LineError> {
        let decoded = self.intake.take_lines(lines, source);
        shared.join(|| {
            let times = (0..self.intake.block.len()).map(|row| self.intake.block.time(row));
            times.filter(|time| *time != NO_TIME).min()
        });
        shared.counts.received += self.intake.block.len() as u64;
        let mut holes = shared.holes(lines, &self.intake.block, 0).into_iter().peekable();
        let mut now = NO_TIME;
        for row in 0..self.intake.block.len() {
            let mut gap = None;
            while let Some(hole) = holes.next_if(|hole| hole.row <= row) {
                self.step_to(now, shared);
                if hole.gap.is_some() {
                    gap = Some(hole);
                } else {
                    self.miss_lines(&hole, shared);
                }
            }
            if let Some((topic, taken)) = self.intake.line(row, lines.origin(row), shared) {
                now = taken.now;
                self.route(topic, &taken, lines.origin(row), shared);
            }
            if let Some(gap) = gap {
                self.miss(&gap.topics, SeenAgain::At(self.intake.block.time(row)), shared);
            }
        }
        for hole in holes {
            self.step_to(now, shared);
            self.miss_lines(&hole, shared);
        }
        self.step_to(now, shared);
        decoded
    }

    /// Evaluates the messages released once the clock shows this time, and advances the groups whose topics are silent.
    pub(super) fn step_to(&mut self, now: Timestamp, shared: &mut Shared) {
        if now == NO_TIME || shared.laps.is_holding() {
            self.step(shared);
        } else {
            self.advance(now, shared);
        }
    }

    /// Records unreadable lines. Their messages may have had to wait for others.
    #[cold]
    fn miss_lines(&mut self, hole: &Hole, shared: &mut Shared) {
        let latest = self.intake.latest.unwrap_or(UNKNOWN);
        if let [topic] = hole.topics[..] {
            self.unread(topic, hole.origin);
        }
        self.miss(&hole.topics, SeenAgain::After(latest), shared);
    }

    /// Goes on counting the lines that another one has read.
    pub(in crate::session) fn continue_lines(&mut self, before: &Aligned) {
        self.intake.continue_lines(&before.intake);
    }
}
