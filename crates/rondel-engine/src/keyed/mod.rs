//! Properties that are divided by key: one instance for every key, all of one program.
//!
//! An instance is a record of a few words in a [`table`]. Events of different keys are evaluated
//! together, each in its row of the block, see [`parallel`]: what the program costs is shared by them,
//! and so is the waiting for memory. An event without key concerns all instances, and also the
//! *template*, record 0: what an instance would remember whose key was never seen. A new instance is
//! a copy of it, and an instance that remembers the same may be forgotten.
//!
//! Whatever can be seen from outside happens at the same event however the events are cut into
//! blocks. That is why records are looked through, and their numbers given out again, only each time
//! that [`SWEEP`] events have passed.

pub(crate) mod ahead;
mod batch;
mod by_itself;
pub(crate) mod by_value;
mod delayed;
pub(crate) mod ending;
mod index;
pub(crate) mod key_tests;
pub(crate) mod keys;
mod lanes;
pub(crate) mod moved;
mod parallel;
pub(crate) mod plan;
mod pools;
pub(crate) mod record;
mod relations;
mod robust;
pub(crate) mod room;
pub(crate) mod saved;
mod sides;
mod status;
pub(crate) mod table;
mod waiting;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rondel_event::{Block, Rows, Verdict};

use crate::exec::report::Outcome;
use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::serial::Serial;
use crate::exec::state::Registers;
use crate::exec::terms::RowValue;
use crate::future::{Delayed, Pending};
use crate::ir::premise::Unexercised;
use crate::keyed::ahead::{Ahead, Told};
use crate::keyed::batch::Batch;
use crate::keyed::by_itself::KeyedByItself;
use crate::keyed::ending::Unfinished;
use crate::keyed::keys::{Keys, for_each};
use crate::keyed::lanes::Lanes;
use crate::keyed::plan::{SlicePlan, Sliced};
use crate::keyed::record::UNPLANNED;
use crate::keyed::relations::Relations;
use crate::keyed::robust::Measured;
use crate::keyed::room::{MAX_LIMIT, MemoryRoom, Refusals, lowest};
use crate::keyed::sides::KeyedSides;
use crate::keyed::table::{TEMPLATE, Table};
use crate::keyed::waiting::Waits;
use crate::ops::columns::rows_where;

/// After so many events records are looked through.
const SWEEP: u64 = 256;

/// How many records are looked at for every instance that has begun. With two, those that may be forgotten
/// are never more than the others, however fast keys come: until all `n` have been looked at, no more
/// than `n / 2` instances begin.
const LOOKS: u32 = 2;

/// How many are looked at after [`SWEEP`] events in any case, so that what may be forgotten is, in the end.
const FEWEST_LOOKS: u32 = 64;

/// All instances of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Instances {
    plan: Arc<SlicePlan>,
    table: Table,
    lanes: Lanes,
    registers: Registers,
    outcomes: Vec<Outcome>,
    margins: Vec<Measured>,
    ahead: Ahead,
    /// What is to be told of instances that end.
    unfinished: Vec<Unfinished>,
    keys: Keys,
    /// An event without key, once for every instance of a batch.
    repeated: Block,
    /// The same without an event: for what time brings by itself.
    no_event: Block,
    times: [i64; Block::CAPACITY],
    /// When which instance changes by itself. Of an instance only the entry counts that its record says.
    changes: BinaryHeap<Reverse<(i64, u32)>>,
    /// The time of the last event or later.
    now: i64,
    /// How many events it has taken or refused.
    events: u64,
    /// The record that is looked at next.
    next_look: u32,
    /// How many events have passed since all records were looked at.
    since_full_look: u64,
    refusals: Refusals,
    room: MemoryRoom,
    untried: Unexercised,
    /// How often a machine was not followed.
    leaps: u64,
    /// The values of terms at the moments that have not been told yet.
    terms: Vec<RowValue>,
}

/// What moments that were evaluated together belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentOwner {
    /// Each row to the event in that row of the block.
    Rows,
    /// All of them to the event in this row.
    Shared(usize),
    /// To no event: something changed by itself.
    Time,
    /// To no event: they are spans after earlier moments, or time that passes.
    Span,
}

/// Moments that were evaluated together, each of another instance.
pub(crate) struct Moment<'a> {
    /// The rows in use of what follows.
    pub(crate) rows: Rows,
    pub(crate) place: MomentOwner,
    /// For every property the verdicts, but of those that look ahead and are asked for their robustness.
    pub(crate) outcomes: &'a [Outcome],
    /// For every property of the past, if any is asked for its robustness, the least and the greatest that it can be.
    margins: &'a [Measured],
    /// For every property that looks ahead the rows where its verdicts are only those that were waited for.
    pub(crate) driven: &'a [Rows],
    /// Verdicts that were waited for.
    pub(crate) told: &'a [Told],
    /// Machines with which their instance must not have ended.
    pub(crate) unfinished: &'a [Unfinished],
    /// The rows whose instance ends.
    pub(crate) ended: Rows,
    /// For every row its time, where moments belong to no event.
    pub(crate) times: &'a [i64],
    /// The values of terms, some in rows that are not in use.
    pub(crate) terms: &'a [RowValue],
    instances: &'a Instances,
}

impl Moment<'_> {
    /// The robustness of a property of the past in a row, where it is asked for, and known.
    pub(crate) fn robustness(
        &self,
        section: &Section,
        property: usize,
        row: usize,
        verdict: Verdict,
    ) -> Option<f64> {
        let margin = (*section.robust.get(property)?)?;
        let levels = || {
            self.margins
                .get(property)
                .map_or([f64::NAN; 2], |margin| margin.ends.each_ref().map(|end| end[row]))
        };
        margin.robustness(verdict, |_| levels())
    }

    /// The rows where the robustness of a property of the past, if it is asked for, is another than the one told last.
    pub(crate) fn moved(&self, property: usize) -> Rows {
        self.margins.get(property).map_or(0, |margin| margin.moved)
    }

    /// Adds the key of the instance of a row.
    pub(crate) fn write_key(&self, row: usize, words: &mut Vec<u64>) {
        let Instances { table, keys, lanes, .. } = self.instances;
        words.extend_from_slice(match self.place {
            MomentOwner::Rows => keys.key(row),
            MomentOwner::Shared(_) | MomentOwner::Time | MomentOwner::Span => table.key(lanes.instances[row]),
        });
    }
}

/// Whom the verdicts are told.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(&Moment<'_>);

/// Where verdicts come from: a block, and for each row its time, never going back.
#[derive(Clone, Copy)]
pub(crate) struct Events<'a> {
    pub(crate) block: &'a Block,
    pub(crate) times: &'a [i64],
    /// The rows that are meant.
    pub(crate) rows: Rows,
    /// What a formula that is evaluated by value is told of each row.
    pub(crate) inputs: &'a [Rows],
}

impl Instances {
    /// Before the first event.
    pub(crate) fn new(Sliced { section, plan }: &Sliced, no_event: &Block) -> Instances {
        let pending =
            section.futures.iter().map(|future| Pending::new(&future.plan, Pending::LIMIT)).collect();
        let robust = &section.robust_futures;
        let delayed = robust.iter().map(|future| Delayed::new(&future.plan, Pending::LIMIT)).collect();
        let buffers = section.initial.values.buffers.clone();
        let keys = plan.keys.types.len();
        let relations = Relations::new(section);
        let sides = KeyedSides::new(buffers, keys, Waits::new(pending), Waits::new(delayed), relations);
        let outcomes = vec![Outcome::default(); section.properties.len() + section.futures.len()];
        let table = Table::new(section, plan.keys.is_word(), sides);
        let any_levels = section.robust.iter().any(|margin| matches!(margin, Some(Margin::Levels(_))));
        let margins = if any_levels { section.properties.len() } else { 0 };
        Instances {
            lanes: Lanes::new(&table.layout),
            table,
            registers: Serial::new(section, no_event).into_registers(),
            outcomes,
            margins: vec![Measured::default(); margins],
            ahead: Ahead::new(section.futures.len()),
            unfinished: Vec::new(),
            keys: Keys::new(),
            repeated: no_event.clone(),
            no_event: no_event.clone(),
            times: [0; _],
            changes: BinaryHeap::new(),
            now: i64::MIN,
            events: 0,
            next_look: TEMPLATE + 1,
            since_full_look: 0,
            refusals: Refusals::default(),
            room: MemoryRoom::default(),
            untried: Unexercised::all(section.premises.len()),
            leaps: 0,
            terms: Vec::new(),
            plan: Arc::clone(plan),
        }
    }

    /// Takes the events of a block, and tells the verdicts. Those at events come in their order. Gives the rows
    /// that have a key.
    pub(crate) fn step(&mut self, sliced: &Sliced, events: Events<'_>, tell: Tell<'_>) -> Rows {
        let Events { block, times, rows, .. } = events;
        let whole = self.plan.whole(block);
        let keyed = self.keys.read(&self.plan.keys, block, rows & !whole);
        let without_key = self.plan.keys.rows(block) & rows & !keyed & !whole;
        if without_key != 0 {
            self.refusals.unkeyed += u64::from(without_key.count_ones());
            let of_events =
                self.plan.events.iter().fold(0, |rows, (topic, _)| rows | block.topic_rows(*topic));
            self.refusals.unnamed += u64::from((without_key & of_events).count_ones());
        }
        let keyed = if self.keys.too_long == 0 { keyed } else { self.without_long(keyed) };
        let shared = self.plan.shared_rows(block, whole) & rows;
        let mut rest = keyed | shared;
        while rest != 0 {
            let first = rest & rest.wrapping_neg();
            let row = first.trailing_zeros() as usize;
            self.advance(sliced, times[row], times, tell);
            let taken = if shared & first != 0 {
                self.share(sliced, events, row, tell);
                first
            } else {
                // Up to the next event without key, and not beyond the next sweep.
                let before = (shared & rest).wrapping_sub(1) & !shared;
                let until_sweep = SWEEP - self.events % SWEEP;
                self.divide(sliced, events, lowest(rest & before, until_sweep), tell)
            };
            rest &= !taken;
            let count = u64::from(taken.count_ones());
            self.since_full_look += count;
            self.events = self.events.wrapping_add(count);
            if self.events.is_multiple_of(SWEEP) {
                let last = taken.checked_ilog2().map_or(row, |last| last as usize);
                self.advance(sliced, times[last], times, tell);
                self.sweep(&sliced.section);
            }
        }
        keyed
    }

    /// Lets time pass, and tells what changes by itself before `time`. Of events that show so there are the
    /// times.
    pub(crate) fn advance(&mut self, sliced: &Sliced, time: i64, times: &[i64], tell: Tell<'_>) {
        let dense = sliced.section.time_points == TimePoints::Dense;
        let mut by_itself = KeyedByItself::new(self.live());
        self.now = self.now.max(time);
        while self.next_change().is_some_and(|due| due < time) {
            let (mut count, mut spans) = (0, 0);
            while count < Block::CAPACITY
                && let Some(&Reverse((due, number))) = self.changes.peek()
                && due < time
            {
                self.changes.pop();
                if self.table.is_live(number) && self.table.planned(number) == due {
                    self.table.set_planned(number, UNPLANNED);
                    self.lanes.instances[count] = number;
                    // In points it is the next event that shows what time has brought.
                    let shown = times.get(times.partition_point(|event| *event <= due)).copied();
                    self.times[count] = if dense { due } else { shown.unwrap_or(time) };
                    let is_span =
                        !dense || self.table.time(number) == due || !self.table.is_moment(number, due);
                    spans |= Rows::from(is_span) << count;
                    if sliced.section.repeats && !is_span && by_itself.is_too_often(number) {
                        self.ask_to_leap(&sliced.section, (number, &by_itself), (due, time));
                        by_itself.asked.push(number);
                    }
                    count += 1;
                }
            }
            let rows = lowest(Rows::MAX, count as u64);
            // What is planned for the time of the last moment itself is the span after it. And if only something
            // that was waited for becomes certain, time passes without a moment.
            self.run(sliced, MomentOwner::Span, None, spans);
            self.tell(spans, MomentOwner::Span, 0, tell);
            let before = self.leaps_of(&by_itself.asked);
            self.run(sliced, MomentOwner::Time, None, rows & !spans);
            self.leaps += self.leaps_of(&by_itself.asked).saturating_sub(before);
            by_itself.asked.clear();
            self.conclude(sliced, rows & !spans, MomentOwner::Time, tell);
        }
    }

    /// Takes events with keys: those of the rows, or the first of them. Says which.
    fn divide(&mut self, sliced: &Sliced, events: Events<'_>, rows: Rows, tell: Tell<'_>) -> Rows {
        let (rows, waves, count) = self.assign(sliced, events.times, rows);
        for &wave in &waves[..count] {
            self.run(sliced, MomentOwner::Rows, Some(events), wave);
        }
        let taken = waves[..count].iter().fold(0, |rows, wave| rows | wave);
        self.conclude(sliced, taken, MomentOwner::Rows, tell);
        rows
    }

    /// Gives every row its instance, and divides the rows into waves, in each of which an instance is
    /// only once. Says which rows it has taken: all, or those before one that must wait for what
    /// becomes of the others.
    fn assign(
        &mut self,
        sliced: &Sliced,
        times: &[i64],
        rows: Rows,
    ) -> (Rows, [Rows; Block::CAPACITY], usize) {
        let mut waves = [0; Block::CAPACITY];
        let mut count = 0;
        let mut seen = Seen([0; _]);
        self.table.reach(rows, &self.keys);
        // By itself a short loop, which takes less than the same within the long one.
        let mut found = [TEMPLATE; Block::CAPACITY];
        let mut rest = rows;
        while rest != 0 {
            let row = rest.trailing_zeros() as usize;
            found[row] = self.table.find(&self.keys, row).unwrap_or(TEMPLATE);
            rest &= rest - 1;
        }
        let limit = self.plan.limit.min(MAX_LIMIT);
        let changes = self.table.layout.places.planned.is_some();
        let mut rest = rows;
        while rest != 0 {
            let row = rest.trailing_zeros() as usize;
            // One that was not there may have begun with a row before.
            let known = match found[row] {
                TEMPLATE => self.table.find(&self.keys, row),
                number => Some(number),
            };
            // What the instance itself, or the template, does before this event must be done.
            if changes && count > 0 && self.table.planned(known.unwrap_or(TEMPLATE)) < times[row] {
                break;
            }
            let number = match known {
                Some(number) => number,
                None => {
                    if self.is_full(limit) {
                        if count > 0 {
                            break;
                        }
                        self.now = self.now.max(times[row]);
                        self.look_at_all(&sliced.section);
                        // Some may be forgotten.
                        found.fill(TEMPLATE);
                        self.room.measure_at = 0;
                        if self.is_full(limit) {
                            self.refuse(row);
                            return (1 << row, waves, 0);
                        }
                    }
                    let number = self.table.create(&self.keys, row);
                    if changes && self.table.planned(number) != UNPLANNED {
                        self.changes.push(Reverse((self.table.planned(number), number)));
                    }
                    number
                }
            };
            let wave = if seen.may_have(number) {
                // Those of other rows are left from before.
                let same = rows_where(row as u32, |earlier| self.lanes.instances[earlier] == number);
                (same & rows).count_ones() as usize
            } else {
                0
            };
            // An instance may end with its event, and the next begin with this one. And what it is about to do
            // by itself is not known before its event is evaluated.
            if wave > 0 && (changes || sliced.ends()) {
                break;
            }
            self.lanes.instances[row] = number;
            waves[wave] |= 1 << row;
            count = count.max(wave + 1);
            rest &= rest - 1;
        }
        (rows & !rest, waves, count)
    }

    fn run(&mut self, sliced: &Sliced, place: MomentOwner, events: Option<Events<'_>>, rows: Rows) {
        let Instances {
            table,
            lanes,
            registers,
            outcomes,
            margins,
            changes,
            keys,
            ahead,
            untried,
            terms,
            ..
        } = self;
        let (block, times, inputs) = match events {
            Some(Events { block, times, inputs, .. }) => (block, times, inputs),
            None if matches!(place, MomentOwner::Time | MomentOwner::Span) => {
                (&self.no_event, &self.times[..], &[][..])
            }
            None => (&self.repeated, &self.times[..], &[][..]),
        };
        let batch = Batch {
            section: &sliced.section,
            block,
            times: if sliced.section.reads_time { times } else { &[] },
            inputs,
            rows,
            counts: matches!(place, MomentOwner::Rows | MomentOwner::Shared(_)),
            keys: (place == MomentOwner::Rows).then_some(keys),
            plan: &self.plan.keys,
            table,
            lanes,
            registers,
            margins,
            ahead,
            untried,
            terms,
        };
        let plan = |due, number| changes.push(Reverse((due, number)));
        if place == MomentOwner::Span {
            batch.run_spans(outcomes, plan);
        } else {
            batch.run(outcomes, plan);
        }
    }

    /// Tells the verdicts in these rows, of which one may be the template's.
    fn tell(&mut self, rows: Rows, place: MomentOwner, ended: Rows, tell: Tell<'_>) {
        let mut told = rows;
        // To events with a key it is never evaluated.
        if place != MomentOwner::Rows {
            for_each(rows, |row| told &= !(Rows::from(self.lanes.instances[row] == TEMPLATE) << row));
        }
        if told != 0 {
            let (outcomes, margins) = (&self.outcomes[..], &self.margins[..]);
            let times = &self.times[..];
            let Ahead { driven, told: decided, .. } = &self.ahead;
            tell(&Moment {
                rows: told,
                place,
                outcomes,
                margins,
                driven,
                told: decided,
                unfinished: &self.unfinished,
                ended: ended & told,
                times,
                terms: &self.terms,
                instances: self,
            });
        }
        self.ahead.told.clear();
        self.unfinished.clear();
        self.terms.clear();
    }

    /// Tells the verdicts in these rows, and removes the instances that end there.
    fn conclude(&mut self, sliced: &Sliced, rows: Rows, place: MomentOwner, tell: Tell<'_>) {
        let ended = self.ended(sliced, rows);
        let Instances { table, lanes, ahead, .. } = self;
        let section = &sliced.section;
        for_each(ended, |row| ahead.end(section, table, (row, lanes.instances[row]), i64::MIN));
        for_each(ended, |row| self.note_unfinished(section, row));
        self.tell(rows, place, ended, tell);
        for_each(ended, |row| self.table.remove(section, self.lanes.instances[row]));
    }

    /// Takes an event without key: for all instances, and for the template.
    fn share(&mut self, sliced: &Sliced, events: Events<'_>, row: usize, tell: Tell<'_>) {
        self.repeated.repeat(events.block, row);
        self.times.fill(events.times[row]);
        let mut next = TEMPLATE;
        while next < self.table.used() {
            let mut rows = 0;
            while rows < Block::CAPACITY && next < self.table.used() {
                if self.table.is_live(next) {
                    self.lanes.instances[rows] = next;
                    rows += 1;
                }
                next += 1;
            }
            let rows = lowest(Rows::MAX, rows as u64);
            self.run(sliced, MomentOwner::Shared(row), None, rows);
            self.conclude(sliced, rows, MomentOwner::Shared(row), tell);
        }
    }

    /// Looks through some records, and forgets what may be forgotten.
    fn sweep(&mut self, section: &Section) {
        let begun = std::mem::take(&mut self.table.begun);
        for _ in 0..begun.saturating_mul(LOOKS).max(FEWEST_LOOKS).min(self.table.used()) {
            self.look(self.next_look, section);
            self.next_look += 1;
            if self.next_look >= self.table.used() {
                self.next_look = TEMPLATE + 1;
            }
        }
        self.table.recycle();
    }

    #[inline(always)]
    fn look(&mut self, number: u32, section: &Section) {
        if number < self.table.used()
            && self.table.is_live(number)
            && self.table.is_as_template(number, self.now, section)
        {
            self.table.remove(section, number);
        }
    }

    /// Looks through all records, but only if so many events have passed since the last time that it
    /// costs each of them little.
    fn look_at_all(&mut self, section: &Section) {
        if self.since_full_look * 8 >= self.live() {
            self.since_full_look = 0;
            (TEMPLATE + 1..self.table.used()).for_each(|number| self.look(number, section));
        }
    }
}

/// Which of up to 64 instances were seen: a bit for each, which others may share.
struct Seen([u64; 16]);

impl Seen {
    /// Whether an instance may have been seen; it has been from now on. Of those that have not, hardly any
    /// may have: that is cheaper than to know.
    #[inline(always)]
    fn may_have(&mut self, number: u32) -> bool {
        let at = number.wrapping_mul(0x9E37_79B1) >> 22;
        let (word, bit) = (&mut self.0[at as usize / 64], 1 << (at % 64));
        let may = *word & bit != 0;
        *word |= bit;
        may
    }
}
