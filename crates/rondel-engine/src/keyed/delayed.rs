//! Properties with future operators and robustness. No verdict is emitted at once: the instance has
//! [delayed](crate::future::Delayed) state until all its time points are decided.

use crate::exec::section::TimePoints;
use crate::exec::serial::levels;
use crate::keyed::ahead::{EVENT, put, verdict};
use crate::keyed::batch::Batch;
use crate::keyed::gather::GatherBuffers;
use crate::keyed::keys::for_each;
use crate::keyed::record::POSITION;
use crate::keyed::table::{TEMPLATE, Table};

impl Batch<'_> {
    /// Advances delayed state to the time points.
    pub(super) fn step_robust_futures(&mut self, times: &[i64]) {
        let (section, rows, counts, registers) = (self.section, self.rows, self.counts, &*self.registers);
        let first = self.first_verdict_of_delayed();
        let Table { layout, heap, .. } = &mut *self.table;
        let GatherBuffers { records, bits, instances, .. } = &mut *self.gathered;
        let ahead = &mut *self.ahead;
        let dense = section.time_points == TimePoints::Dense;
        let width = if dense { 4 } else { 2 };
        let all = section.robust_futures.iter().zip(bits[first..].chunks_exact_mut(width));
        for (k, (future, last)) in all.enumerate() {
            let (plan, word) = (&future.plan, layout.places.delayed[k] as usize);
            for_each(rows, |row| {
                // The template has no delayed state: that of a copy begins with its first event.
                if instances[row] == TEMPLATE {
                    return;
                }
                let reference = &mut records[word][row];
                let delayed = heap.delayed.get_or_begin(k, reference, || verdict(last, row));
                let Some(delayed) = delayed else { return };
                for (half, all) in ahead.levels.iter_mut().enumerate().take(width / 2) {
                    all.clear();
                    all.extend(
                        future
                            .pasts
                            .iter()
                            .map(|(truth, margin)| levels(registers, truth, margin, row, half)),
                    );
                }
                let halves = ahead.levels.each_ref().map(|levels| &levels[..]);
                let (room, out) = (&mut ahead.delayed_room, &mut ahead.decisions);
                if dense {
                    let tag = if counts { EVENT } else { 0 };
                    delayed.dense_point(plan, times[row], tag, halves, room, out);
                } else {
                    delayed.event(plan, records[POSITION][row], times[row], halves[0], room, out);
                }
                let quiescent = delayed.quiescent_verdict(plan).map(|last| [last; 2]);
                ahead.emit(row, section.futures.len() + k, false);
                put(last, row, quiescent);
                if quiescent.is_some() {
                    heap.delayed.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }

    /// Advances time: in dense time beyond these times, in points up to them.
    pub(super) fn advance_robust_futures(&mut self, times: &[i64]) {
        let (section, rows) = (self.section, self.rows);
        let first = self.first_verdict_of_delayed();
        let Table { layout, heap, .. } = &mut *self.table;
        let GatherBuffers { records, bits, .. } = &mut *self.gathered;
        let ahead = &mut *self.ahead;
        let dense = section.time_points == TimePoints::Dense;
        let all =
            section.robust_futures.iter().zip(bits[first..].chunks_exact_mut(if dense { 4 } else { 2 }));
        for (k, (future, last)) in all.enumerate() {
            let word = layout.places.delayed[k] as usize;
            for_each(rows, |row| {
                let Some(delayed) = heap.delayed.get_mut(k, records[word][row]) else { return };
                let now = times[row].saturating_add(i64::from(dense));
                delayed.advance(&future.plan, now, &mut ahead.delayed_room, &mut ahead.decisions);
                let quiescent = delayed.quiescent_verdict(&future.plan).map(|last| [last; 2]);
                ahead.emit(row, section.futures.len() + k, false);
                put(last, row, quiescent);
                if quiescent.is_some() {
                    heap.delayed.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }

    /// Returns the first bit of their last verdicts, which come after all others.
    fn first_verdict_of_delayed(&self) -> usize {
        let width = if self.section.time_points == TimePoints::Dense { 4 } else { 2 };
        let before = self.section.properties.len() + self.section.futures.len();
        self.table.layout.places.verdicts as usize + width * before
    }
}
