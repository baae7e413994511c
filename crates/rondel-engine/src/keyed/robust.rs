//! Robustness of properties with `for each`. Every instance stores its robustness state beside its record,
//! for as long as it exists.

use rondel_event::Rows;

use crate::exec::section::Margin;
use crate::ir::instruction::Instruction;
use crate::keyed::batch::Batch;
use crate::keyed::gather::Words;
use crate::keyed::keys::for_each;
use crate::keyed::parallel::ParallelFrame;
use crate::keyed::record::POSITION;
use crate::ops::columns::{Values, split};

impl ParallelFrame<'_> {
    /// Steps the robustness state of the instances.
    pub(super) fn robust(&mut self, instruction: &Instruction) -> Rows {
        match *instruction {
            Instruction::RobustOnce { x, timed, state, out } => {
                let word = self.layout.places.pools.robust_once[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_once[state as usize];
                for_each(self.rows, |row| {
                    let now = self.stamp(timed, row);
                    let pool = &mut self.heap.pools.robust_once;
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
                    let pool = &mut self.heap.pools.robust_since;
                    if let Some(since) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        out[row] = since.row(now, before[p as usize][row], before[q as usize][row]);
                    }
                });
            }
            Instruction::RobustDense { operands, state, second, out } => {
                let word = self.layout.places.pools.robust_dense[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_dense[state as usize];
                let operands = self.step.section.operands.robust[operands as usize];
                for_each(self.rows, |row| {
                    let pool = &mut self.heap.pools.robust_dense;
                    if let Some(since) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        let [p, q] = operands.map(|halves| halves.map(|x| before[x as usize][row]));
                        let time = self.step.view.row_times.times[row];
                        [out[row], self.columns.seconds[second as usize][row]] = since.step(time, p, q);
                    }
                });
            }
            // No other instructions reach here.
            _ => {}
        }
        Rows::MAX
    }

    /// Returns the stamp from which ages in a row are counted.
    fn stamp(&self, timed: bool, row: usize) -> i64 {
        let position = self.records[POSITION][row].min(i64::MAX as u64) as i64;
        if timed { self.step.view.row_times.times[row] } else { position }
    }
}

/// Robustness of a property in the rows of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Least and greatest possible robustness.
    pub(super) ends: [Values<f64>; 2],
    /// Rows where it differs from the previous time point or, in dense time, open interval.
    pub(super) moved: Rows,
}

impl Default for Measured {
    fn default() -> Measured {
        Measured { ends: [[0.0; _]; 2], moved: 0 }
    }
}

impl Batch<'_> {
    /// Writes the robustness bounds and, in dense time, stores those of the open interval that follows.
    pub(super) fn measure(&mut self) {
        let (floats, places) = (&self.registers.columns.floats, &self.table.layout.places);
        let robust = self.section.robust.iter().zip(&places.margins).zip(&mut *self.margins);
        for ((margin, span), Measured { ends, moved }) in robust {
            let Some(Margin::Levels(halves)) = *margin else { continue };
            for end in 0..2 {
                let [at, after] = halves.map(|columns| &floats[columns[end] as usize]);
                for_each(self.rows, |row| ends[end][row] = at[row]);
                if let Some(word) = *span {
                    let kept = &mut self.gathered.records[word as usize + end];
                    for_each(self.rows, |row| kept[row] = after[row].to_bits());
                }
            }
            if let Some(word) = *span {
                *moved = update_last(&mut self.gathered.records[word as usize + 2..], ends, self.rows);
            }
        }
    }

    /// Writes the robustness bounds on the open intervals after the last time points.
    pub(super) fn measure_spans(&mut self) {
        for (span, measured) in self.table.layout.places.margins.iter().zip(&mut *self.margins) {
            let Some(word) = *span else { continue };
            let Measured { ends, moved } = measured;
            for (end, kept) in ends.iter_mut().zip(&self.gathered.records[word as usize..]) {
                for_each(self.rows, |row| end[row] = f64::from_bits(kept[row]));
            }
            *moved = update_last(&mut self.gathered.records[word as usize + 2..], ends, self.rows);
        }
    }

    /// Returns the rows of instances whose robustness changes on the open interval after their last time
    /// point.
    pub(super) fn moving(&self) -> Rows {
        let records = &self.gathered.records;
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

/// Stores the robustness bounds of some rows as the last emitted ones. Returns the rows where the robustness
/// changed.
fn update_last(last: &mut [Words], ends: &[Values<f64>; 2], rows: Rows) -> Rows {
    let [least, greatest, ..] = last else { return 0 };
    let mut moved = 0;
    for_each(rows, |row| {
        let now = ends.each_ref().map(|end| end[row].to_bits());
        moved |= Rows::from(level(now[0], now[1]) != level(least[row], greatest[row])) << row;
        [least[row], greatest[row]] = now;
    });
    moved
}

/// Returns the robustness between these bounds, if it is known.
fn level(least: u64, greatest: u64) -> Option<f64> {
    let (least, greatest) = (f64::from_bits(least), f64::from_bits(greatest));
    (least == greatest).then_some(least)
}
