//! The robustness of properties that are divided by key. Every instance has what it is made of beside its record, and
//! keeps it as long as it is there.

use rondel_event::Rows;
use serde::{Deserialize, Serialize};

use crate::exec::section::Margin;
use crate::exec::state::ValueState;
use crate::ir::instruction::Instruction;
use crate::keyed::batch::Batch;
use crate::keyed::keys::for_each;
use crate::keyed::lanes::Words;
use crate::keyed::parallel::Frame;
use crate::keyed::record::{POSITION, Places};
use crate::keyed::sides::Pool;
use crate::ops::columns::{Values, split};
use crate::ops::extreme::Greatest;
use crate::ops::since::robust::{DenseSince, Since};

/// What robustness is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Robust {
    /// Each with what it gives where there are too many values.
    pub(super) greatest: Pool<(Greatest<f64>, f64)>,
    pub(super) since: Pool<Since>,
    pub(super) dense: Pool<DenseSince>,
    /// How many samples there was no room for in those that are gone.
    pub(super) dropped: u64,
}

impl Robust {
    pub(super) fn new() -> Robust {
        Robust { greatest: Pool::new(), since: Pool::new(), dense: Pool::new(), dropped: 0 }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.greatest.is_sound() && self.since.is_sound() && self.dense.is_sound()
    }

    pub(super) fn dropped(&self) -> u64 {
        let greatest = self.greatest.all.iter().map(|(greatest, _)| greatest.dropped());
        let since = self.since.all.iter().map(Since::dropped);
        let dense = self.dense.all.iter().map(DenseSince::dropped);
        greatest.chain(since).chain(dense).fold(self.dropped, u64::saturating_add)
    }

    /// Gives back what the words of a record refer to, and remembers what it dropped.
    pub(super) fn free(&mut self, record: &mut [u64], places: &Places, initial: &ValueState) {
        let mut take = |word: &u32| std::mem::take(&mut record[*word as usize]);
        for (word, initial) in places.greatest.iter().zip(&initial.greatest) {
            let dropped = |(greatest, _): &(Greatest<f64>, f64)| greatest.dropped();
            self.dropped = self.dropped.saturating_add(self.greatest.renew(take(word), initial, dropped));
        }
        for (word, initial) in places.robust_since.iter().zip(&initial.robust_since) {
            self.dropped = self.dropped.saturating_add(self.since.renew(take(word), initial, Since::dropped));
        }
        for (word, initial) in places.robust_dense.iter().zip(&initial.robust_dense) {
            let dropped = self.dense.renew(take(word), initial, DenseSince::dropped);
            self.dropped = self.dropped.saturating_add(dropped);
        }
    }

    /// Makes copies of what the words of a record refer to, and refers to those.
    pub(super) fn copy(&mut self, record: &mut [u64], places: &Places) {
        let mut copy = |words: &[u32], copy: &mut dyn FnMut(u64) -> u64| {
            for &word in words {
                record[word as usize] = copy(record[word as usize]);
            }
        };
        copy(&places.greatest, &mut |reference| self.greatest.copy(reference));
        copy(&places.robust_since, &mut |reference| self.since.copy(reference));
        copy(&places.robust_dense, &mut |reference| self.dense.copy(reference));
    }

    pub(super) fn bytes(&self) -> usize {
        self.greatest.bytes(|(greatest, _)| greatest.bytes())
            + self.since.bytes(Since::bytes)
            + self.dense.bytes(DenseSince::bytes)
    }
}

impl Frame<'_> {
    /// Takes what robustness is made of to the next moments of the instances.
    pub(super) fn robust(&mut self, instruction: &Instruction) -> Rows {
        match *instruction {
            Instruction::Greatest { x, timed, state, out } => {
                let word = self.layout.places.greatest[state as usize] as usize;
                let initial = &self.step.section.initial.values.greatest[state as usize];
                for_each(self.rows, |row| {
                    let now = self.stamp(timed, row);
                    let pool = &mut self.sides.robust.greatest;
                    if let Some((greatest, unknown)) = pool.get_or_add(&mut self.records[word][row], initial)
                    {
                        let (before, out) = split(&mut self.columns.floats, out);
                        greatest.push(now, before[x as usize][row]);
                        out[row] = greatest.at_or(now, f64::NEG_INFINITY, *unknown);
                    }
                });
            }
            Instruction::RobustSince { p, q, timed, state, out } => {
                let word = self.layout.places.robust_since[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_since[state as usize];
                for_each(self.rows, |row| {
                    let now = self.stamp(timed, row);
                    let pool = &mut self.sides.robust.since;
                    if let Some(since) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        out[row] = since.row(now, before[p as usize][row], before[q as usize][row]);
                    }
                });
            }
            Instruction::RobustDense { operands, state, second, out } => {
                let word = self.layout.places.robust_dense[state as usize] as usize;
                let initial = &self.step.section.initial.values.robust_dense[state as usize];
                let operands = self.step.section.robust_operands[operands as usize];
                for_each(self.rows, |row| {
                    let pool = &mut self.sides.robust.dense;
                    if let Some(since) = pool.get_or_add(&mut self.records[word][row], initial) {
                        let (before, out) = split(&mut self.columns.floats, out);
                        let [p, q] = operands.map(|sides| sides.map(|x| before[x as usize][row]));
                        let time = self.step.view.moments.times[row];
                        [out[row], self.columns.seconds[second as usize][row]] = since.moment(time, p, q);
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
        if timed { self.step.view.moments.times[row] } else { position }
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
