//! The robustness of properties that are divided by key. Every instance has what it is made of beside its record, and
//! keeps it as long as it is there.

use rondel_event::Rows;

use crate::exec::section::Margin;
use crate::ir::instruction::Instruction;
use crate::keyed::batch::Batch;
use crate::keyed::keys::for_each;
use crate::keyed::lanes::Words;
use crate::keyed::parallel::ParallelFrame;
use crate::keyed::record::POSITION;
use crate::ops::columns::{Values, split};

impl ParallelFrame<'_> {
    /// Takes what robustness is made of to the next moments of the instances.
    pub(super) fn robust(&mut self, instruction: &Instruction) -> Rows {
        match *instruction {
            Instruction::RobustOnce { x, timed, state, out } => {
                let word = self.layout.places.pools.robust_once[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_once[state as usize];
                for_each(self.rows, |row| {
                    let now = self.stamp(timed, row);
                    let pool = &mut self.sides.pools.robust_once;
                    if let Some(once) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        out[row] = once.row(now, before[x as usize][row]);
                    }
                });
            }
            Instruction::RobustSince { p, q, timed, state, out } => {
                let word = self.layout.places.pools.robust_since[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_since[state as usize];
                for_each(self.rows, |row| {
                    let now = self.stamp(timed, row);
                    let pool = &mut self.sides.pools.robust_since;
                    if let Some(since) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        out[row] = since.row(now, before[p as usize][row], before[q as usize][row]);
                    }
                });
            }
            Instruction::RobustDense { operands, state, second, out } => {
                let word = self.layout.places.pools.robust_dense[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_dense[state as usize];
                let operands = self.step.section.robust_operands[operands as usize];
                for_each(self.rows, |row| {
                    let pool = &mut self.sides.pools.robust_dense;
                    if let Some(since) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        let [p, q] = operands.map(|sides| sides.map(|x| before[x as usize][row]));
                        let time = self.step.view.row_times.times[row];
                        [out[row], self.columns.seconds[second as usize][row]] = since.step(time, p, q);
                    }
                });
            }
            // There are no others.
            _ => {}
        }
        Rows::MAX
    }

    /// What ages are counted from in a row.
    fn stamp(&self, timed: bool, row: usize) -> i64 {
        let position = self.records[POSITION][row].min(i64::MAX as u64) as i64;
        if timed { self.step.view.row_times.times[row] } else { position }
    }
}

/// The robustness of a property in the rows of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The least and the greatest that it can be.
    pub(super) ends: [Values<f64>; 2],
    /// Where it is another than at the moment or on the span before, in dense time.
    pub(super) moved: Rows,
}

impl Default for Measured {
    fn default() -> Measured {
        Measured { ends: [[0.0; _]; 2], moved: 0 }
    }
}

impl Batch<'_> {
    /// Writes the ends of what is asked for its robustness, and in dense time notes those on the span that follows.
    pub(super) fn measure(&mut self) {
        let (floats, places) = (&self.registers.columns.floats, &self.table.layout.places);
        let robust = self.section.robust.iter().zip(&places.margins).zip(&mut *self.margins);
        for ((margin, span), Measured { ends, moved }) in robust {
            let Some(Margin::Levels(sides)) = *margin else { continue };
            for end in 0..2 {
                let [at, after] = sides.map(|columns| &floats[columns[end] as usize]);
                for_each(self.rows, |row| ends[end][row] = at[row]);
                if let Some(word) = *span {
                    let kept = &mut self.lanes.records[word as usize + end];
                    for_each(self.rows, |row| kept[row] = after[row].to_bits());
                }
            }
            if let Some(word) = *span {
                *moved = tell(&mut self.lanes.records[word as usize + 2..], ends, self.rows);
            }
        }
    }

    /// The same on the spans after the last moments, now that it is asked for.
    pub(super) fn measure_spans(&mut self) {
        for (span, measured) in self.table.layout.places.margins.iter().zip(&mut *self.margins) {
            let Some(word) = *span else { continue };
            let Measured { ends, moved } = measured;
            for (end, kept) in ends.iter_mut().zip(&self.lanes.records[word as usize..]) {
                for_each(self.rows, |row| end[row] = f64::from_bits(kept[row]));
            }
            *moved = tell(&mut self.lanes.records[word as usize + 2..], ends, self.rows);
        }
    }

    /// The rows of instances of which some robustness is another on the span after their last moment.
    pub(super) fn moving(&self) -> Rows {
        let records = &self.lanes.records;
        let mut moving = 0;
        for word in self.table.layout.places.margins.iter().flatten() {
            let [least, greatest, last_least, last_greatest] =
                [0, 1, 2, 3].map(|i| &records[*word as usize + i]);
            for_each(self.rows, |row| {
                let is_other = level(least[row], greatest[row]) != level(last_least[row], last_greatest[row]);
                moving |= Rows::from(is_other) << row;
            });
        }
        moving
    }
}

/// Notes the ends as those told last, in some rows. Says where the robustness is another than before.
fn tell(last: &mut [Words], ends: &[Values<f64>; 2], rows: Rows) -> Rows {
    let [least, greatest, ..] = last else { return 0 };
    let mut moved = 0;
    for_each(rows, |row| {
        let now = ends.each_ref().map(|end| end[row].to_bits());
        moved |= Rows::from(level(now[0], now[1]) != level(least[row], greatest[row])) << row;
        [least[row], greatest[row]] = now;
    });
    moved
}

/// The robustness between these ends, if it is known.
fn level(least: u64, greatest: u64) -> Option<f64> {
    let (least, greatest) = (f64::from_bits(least), f64::from_bits(greatest));
    (least == greatest).then_some(least)
}
