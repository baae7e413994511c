//! Properties that look ahead, and whose robustness is asked for. Nothing of them is said at once: an instance has
//! something [delayed](crate::future::Delayed) until all that it has seen is decided.

use crate::exec::section::TimePoints;
use crate::exec::serial::levels;
use crate::keyed::ahead::{EVENT, put, verdict};
use crate::keyed::batch::Batch;
use crate::keyed::keys::for_each;
use crate::keyed::lanes::Lanes;
use crate::keyed::record::POSITION;
use crate::keyed::table::{TEMPLATE, Table};

impl Batch<'_> {
    /// Takes what is delayed on to the moments.
    pub(super) fn look_further(&mut self, times: &[i64]) {
        let (section, rows, counts, registers) = (self.section, self.rows, self.counts, &*self.registers);
        let first = self.first_verdict_of_delayed();
        let Table { layout, sides, .. } = &mut *self.table;
        let Lanes { records, bits, instances, .. } = &mut *self.lanes;
        let ahead = &mut *self.ahead;
        let dense = section.time_points == TimePoints::Dense;
        let width = if dense { 4 } else { 2 };
        let all = section.robust_futures.iter().zip(bits[first..].chunks_exact_mut(width));
        for (k, (future, last)) in all.enumerate() {
            let (plan, word) = (&future.plan, layout.places.delayed[k] as usize);
            for_each(rows, |row| {
                // The template waits for nothing: what it is copied to begins with what comes.
                if instances[row] == TEMPLATE {
                    return;
                }
                let reference = &mut records[word][row];
                let delayed = sides.delayed.get_or_begin(k, reference, || verdict(last, row));
                let Some(delayed) = delayed else { return };
                for (side, all) in ahead.levels.iter_mut().enumerate().take(width / 2) {
                    all.clear();
                    all.extend(future.pasts.iter().map(|past| levels(registers, past, row, side)));
                }
                let sides_of_levels = ahead.levels.each_ref().map(|levels| &levels[..]);
                let (room, out) = (&mut ahead.delayed_room, &mut ahead.decisions);
                if dense {
                    let moment = (times[row], if counts { EVENT } else { 0 });
                    delayed.moment(plan, moment, sides_of_levels, room, out);
                } else {
                    delayed.event(plan, (records[POSITION][row], times[row]), sides_of_levels[0], room, out);
                }
                let rests = delayed.rests(plan).map(|last| [last; 2]);
                ahead.tell(row, section.futures.len() + k, false);
                put(last, row, rests);
                if rests.is_some() {
                    sides.delayed.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }

    /// Lets time pass, in dense time beyond these times, in points up to them.
    pub(super) fn let_pass_further(&mut self, times: &[i64]) {
        let (section, rows) = (self.section, self.rows);
        let first = self.first_verdict_of_delayed();
        let Table { layout, sides, .. } = &mut *self.table;
        let Lanes { records, bits, .. } = &mut *self.lanes;
        let ahead = &mut *self.ahead;
        let dense = section.time_points == TimePoints::Dense;
        let all =
            section.robust_futures.iter().zip(bits[first..].chunks_exact_mut(if dense { 4 } else { 2 }));
        for (k, (future, last)) in all.enumerate() {
            let word = layout.places.delayed[k] as usize;
            for_each(rows, |row| {
                let Some(delayed) = sides.delayed.get_mut(k, records[word][row]) else { return };
                let now = times[row].saturating_add(i64::from(dense));
                delayed.advance(&future.plan, now, &mut ahead.delayed_room, &mut ahead.decisions);
                let rests = delayed.rests(&future.plan).map(|last| [last; 2]);
                ahead.tell(row, section.futures.len() + k, false);
                put(last, row, rests);
                if rests.is_some() {
                    sides.delayed.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }

    /// The first of the bits with their last verdicts, which come after all others.
    fn first_verdict_of_delayed(&self) -> usize {
        let width = if self.section.time_points == TimePoints::Dense { 4 } else { 2 };
        let before = self.section.properties.len() + self.section.futures.len();
        self.table.layout.places.verdicts as usize + width * before
    }
}
