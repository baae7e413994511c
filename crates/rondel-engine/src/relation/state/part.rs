//! Evaluation of a part at a tick.

use super::{KeyTuple, Own, PartState, Tick};
use crate::relation::apart;
use crate::relation::batch::Delta;
use crate::relation::chain;
use crate::relation::plan::{Condition, Part, PartId, PartOp, Side, TruthBound};
use crate::relation::since::Since;
use crate::relation::table::TupleTable;
use crate::relation::term::Source;

impl PartState {
    /// Returns the approximation of the part, if it is vague.
    #[inline(always)]
    pub(crate) fn vague(&self, part: &Part) -> Option<TruthBound> {
        part.vague.filter(|_| self.is_vague)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    pub(super) fn step<S: Source>(
        &mut self,
        part: &Part,
        parts: &[Part],
        earlier: &[PartState],
        tick: &Tick<'_, S>,
    ) {
        let out_of = |of: &PartId| &earlier[of.index()].out;
        if !matches!(part.op, PartOp::Bind(_)) {
            self.out.clear();
        }
        if matches!(part.op, PartOp::Obligation { .. }) {
            return;
        }
        if part.vague.is_some() {
            let mut is_vague = false;
            match &part.op {
                // A chain determines this for each tuple.
                PartOp::Chain { of, .. } => is_vague = earlier[of.index()].is_vague,
                op => op.for_each_operand(|part, _| is_vague |= earlier[part.index()].is_vague),
            }
            // A lasting part may contain results of vague operands.
            self.is_vague = is_vague || part.lasts && self.is_vague;
            if is_vague || self.is_vague && !part.forgets() {
                return;
            }
        }
        let mut is_settled = false;
        match &part.op {
            PartOp::Bind(_) | PartOp::Obligation { .. } => {}
            PartOp::Unit => self.out.push(&[], 1),
            PartOp::Chain { of, stages, output, is_first } => {
                let how = chain::TupleRoute { stages, output, is_first: *is_first };
                self.is_vague = chain::run(out_of(of), &how, earlier, parts, tick, &mut self.out);
            }
            PartOp::Union(of) if !part.lasts => {
                of.iter().for_each(|of| self.out.extend(out_of(of)));
                self.out.consolidate();
            }
            PartOp::Project(of, columns) if !part.lasts => {
                for (tuple, weight) in out_of(of).iter() {
                    self.out.push_columns(tuple, columns, weight);
                }
                self.out.consolidate();
            }
            PartOp::Union(of) => {
                is_settled = true;
                let Some(table) = &mut self.table else { return };
                for of in of {
                    out_of(of).iter().for_each(|(tuple, weight)| count(table, tuple, weight));
                }
                settle(table, &mut self.out);
            }
            PartOp::Project(of, columns) => {
                is_settled = true;
                let Some(table) = &mut self.table else { return };
                for (tuple, weight) in out_of(of).iter() {
                    count(table, KeyTuple::new(tuple, columns).key(), weight);
                }
                settle(table, &mut self.out);
            }
            PartOp::Previously(of) => self.previously(out_of(of), part.lasts, tick.is_span),
            PartOp::Changes(of) => {
                let Own::Next(before) = &mut self.own else { return };
                let now = out_of(of);
                if !before.is_empty() || !now.is_empty() {
                    self.out.extend(now);
                    before.iter().for_each(|(tuple, _)| self.out.push(tuple, -1));
                    self.out.consolidate();
                    before.clear();
                    before.extend(now);
                }
            }
            PartOp::Scan(of) => {
                let table = earlier[of.index()].table.as_ref();
                let tuples = table.into_iter().flat_map(TupleTable::present);
                tuples.for_each(|tuple| self.out.push(tuple, 1));
            }
            PartOp::Delay(of, by) => self.delay(out_of(of), *by, tick.now),
            PartOp::Join(left, right, output) => {
                let [a, b] = [left, right].map(|side| &earlier[side.part.index()]);
                let mut pair = Vec::new();
                let mut emit = |a: &[u64], b: &[u64], weight: i8| {
                    pair.clear();
                    let value = |&(of_b, c): &(bool, u32)| if of_b { b[c as usize] } else { a[c as usize] };
                    pair.extend(output.iter().map(value));
                    self.out.push(&pair, weight);
                };
                product(a, b, left, right, |a, b, weight| emit(a, b, weight));
                self.out.consolidate();
            }
            PartOp::Apart { sides, columns, output } => {
                let Own::Counts(counts) = &mut self.own else { return };
                let sides = [&sides[0], &sides[1]];
                let of_sides = sides.map(|side| &earlier[side.part.index()]);
                let before = self.size;
                self.size += counts.step(sides, *columns, of_sides);
                if before <= 0 && self.size > 0 {
                    apart::first(sides, *columns, of_sides, output, &mut self.out);
                }
                return;
            }
            PartOp::Without(left, right) => {
                let [a, b] = [left, right].map(|side| &earlier[side.part.index()]);
                a.out.iter().for_each(|(tuple, weight)| self.out.push(tuple, weight));
                product(a, b, left, right, |a, _, weight| self.out.push(a, -weight));
                self.out.consolidate();
            }
            PartOp::Select(of, conditions) => {
                is_settled = self.select(conditions, &earlier[of.index()], tick);
            }
            PartOp::Since { lower, upper, left, right, most } => {
                is_settled = true;
                let (Some(table), Own::Since(own)) = (&mut self.table, &mut self.own) else { return };
                let since = Since { lower: *lower, upper: *upper, left, right: *right, most: *most };
                since.step(own, table, earlier, parts, tick);
                settle(table, &mut self.out);
                self.is_vague |= part.vague.is_some() && own.forgotten > 0;
            }
            PartOp::Lasting(of, upper) => {
                is_settled = true;
                self.last(out_of(of), *upper, tick);
            }
        }
        self.finish(part, is_settled);
    }

    /// Keeps the tuples for which the conditions hold. Returns whether the table is up to date: it is where conditions
    /// depend on values that change.
    fn select<S: Source>(&mut self, conditions: &[Condition], of: &PartState, tick: &Tick<'_, S>) -> bool {
        let context = tick.context();
        let passes = |tuple: &[u64]| conditions.iter().all(|c| context.holds(c, tuple));
        let Own::Watch(watch) = &mut self.own else {
            for (tuple, weight) in of.out.iter().filter(|(tuple, _)| passes(tuple)) {
                self.out.push(tuple, weight);
            }
            return false;
        };
        let Some(table) = &mut self.table else { return true };
        let set = |table: &mut TupleTable, tuple: &[u64], present| {
            if present {
                let row = table.insert(tuple);
                table.touch(row);
                table.meta(row).present = true;
            } else if let Some(row) = table.find(tuple) {
                table.touch(row);
                table.meta(row).present = false;
            }
        };
        for (tuple, weight) in of.out.iter() {
            set(table, tuple, weight > 0 && passes(tuple));
        }
        if watch.has_changed(tick.source, tick.is_first) {
            let all = of.table.iter().flat_map(TupleTable::present);
            all.for_each(|tuple| set(table, tuple, passes(tuple)));
        }
        settle(table, &mut self.out);
        true
    }

    /// Keeps the tuples that have held for longer than a bound, in nanoseconds.
    fn last<S: Source>(&mut self, of: &Delta, upper: Option<i64>, tick: &Tick<'_, S>) {
        let Some(table) = &mut self.table else { return };
        for (tuple, weight) in of.iter() {
            let row = table.insert(tuple);
            table.touch(row);
            let meta = table.meta(row);
            (meta.present, meta.time, meta.count) = (false, tick.before, u32::from(weight > 0));
            table.unlink(row);
            if weight > 0 {
                table.link_last(row);
            }
        }
        // It did not hold at the tick of its time, which must lie beyond the bound.
        let beyond = upper.map_or(i64::MIN + 1, |upper| tick.now.saturating_sub(upper));
        while let Some((row, _)) = table.first().filter(|(_, meta)| meta.time < beyond) {
            table.touch(row);
            table.meta(row).present = true;
            table.unlink(row);
        }
        settle(table, &mut self.out);
    }

    /// Updates the size, and the table used for lookups.
    pub(super) fn finish(&mut self, part: &Part, is_settled: bool) {
        if !part.lasts {
            self.size = self.out.len() as i64;
            return;
        }
        if self.out.is_empty() {
            return;
        }
        self.size += self.out.balance();
        let Some(table) = self.table.as_mut().filter(|_| !is_settled) else { return };
        for (tuple, weight) in self.out.iter() {
            if weight > 0 {
                let row = table.insert(tuple);
                table.meta(row).present = true;
            } else if let Some(row) = table.find(tuple) {
                table.remove(row);
            }
        }
    }

    pub(super) fn previously(&mut self, of: &Delta, lasts: bool, is_span: bool) {
        let Own::Next(next) = &mut self.own else { return };
        // On an open interval it equals its operand.
        match (lasts, is_span) {
            (_, false) => {
                std::mem::swap(&mut self.out, next);
                next.clear();
                next.extend(of);
            }
            (false, true) => {
                next.clear();
                next.extend(of);
                self.out.extend(of);
            }
            (true, true) => {
                self.out.extend(next);
                self.out.extend(of);
                self.out.consolidate();
                next.clear();
            }
        }
    }

    pub(super) fn delay(&mut self, of: &Delta, by: i64, now: i64) {
        let Own::Delayed(waiting) = &mut self.own else { return };
        for (tuple, weight) in of.iter() {
            waiting.push_back((now, weight, tuple.into()));
        }
        while waiting.front().is_some_and(|(time, ..)| time.saturating_add(by) <= now) {
            if let Some((_, weight, tuple)) = waiting.pop_front() {
                self.out.push(&tuple, weight);
            }
        }
        self.out.consolidate();
    }

    /// Starts a speculative step.
    pub(super) fn begin_speculation(&mut self) {
        self.table.iter_mut().for_each(TupleTable::begin_speculation);
        let own = match &mut self.own {
            Own::Nothing => Own::Nothing,
            Own::Next(next) => Own::Next(next.clone()),
            Own::Watch(watch) => Own::Watch(watch.clone()),
            Own::Since(since) => Own::Since(since.begin_speculation()),
            Own::Counts(counts) => {
                counts.tables().into_iter().for_each(TupleTable::begin_speculation);
                Own::Nothing
            }
            Own::Delayed(waiting) => {
                waiting.begin_speculation();
                Own::Nothing
            }
        };
        self.before = Some(Box::new((self.size, self.is_vague, own)));
    }

    pub(super) fn confirm(&mut self) {
        self.before = None;
        self.table.iter_mut().for_each(TupleTable::confirm);
        match &mut self.own {
            Own::Since(since) => since.confirm(),
            Own::Delayed(waiting) => waiting.confirm(),
            Own::Counts(counts) => {
                counts.tables().into_iter().for_each(TupleTable::confirm);
            }
            Own::Nothing | Own::Next(_) | Own::Watch(_) => {}
        }
    }

    pub(super) fn roll_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        let (size, is_vague, own) = *before;
        (self.size, self.is_vague) = (size, is_vague);
        self.table.iter_mut().for_each(TupleTable::roll_back);
        match (&mut self.own, own) {
            (Own::Since(since), Own::Since(before)) => since.roll_back(before),
            (Own::Delayed(waiting), _) => waiting.roll_back(),
            (Own::Counts(counts), _) => {
                counts.tables().into_iter().for_each(TupleTable::roll_back);
            }
            (own, before) => *own = before,
        }
    }
}

/// Adds to the number of derivations of a tuple.
fn count(table: &mut TupleTable, tuple: &[u64], weight: i8) {
    let row = table.insert(tuple);
    table.touch(row);
    let meta = table.meta(row);
    meta.count = meta.count.saturating_add_signed(weight.into());
    meta.present = meta.count > 0;
}

fn settle(table: &mut TupleTable, out: &mut Delta) {
    table.settle(|tuple, weight| out.push(tuple, weight), |meta| meta.count > 0);
}

/// Emits the changes of a product: changes of each side joined with the current contents of the other. Pairs
/// that changed on both sides are thus counted twice, and subtracted once.
fn product(
    a: &PartState,
    b: &PartState,
    left: &Side,
    right: &Side,
    mut emit: impl FnMut(&[u64], &[u64], i8),
) {
    let (Some(table_a), Some(table_b)) = (&a.table, &b.table) else { return };
    for (tuple, weight) in a.out.iter() {
        let key = KeyTuple::new(tuple, &left.columns);
        table_b.tuples(right.access, key.key()).for_each(|other| emit(tuple, other, weight));
    }
    for (tuple, weight) in b.out.iter() {
        let key = KeyTuple::new(tuple, &right.columns);
        table_a.tuples(left.access, key.key()).for_each(|other| emit(other, tuple, weight));
    }
    if a.out.is_empty() || b.out.is_empty() {
        return;
    }
    let agree = |x: &[u64], y: &[u64]| {
        let mut columns = left.columns.iter().zip(&right.columns);
        columns.all(|(&c, &d)| x[c as usize] == y[d as usize])
    };
    for (x, weight) in a.out.iter() {
        for (y, other) in b.out.iter().filter(|(y, _)| agree(x, y)) {
            emit(x, y, -weight * other);
        }
    }
}
