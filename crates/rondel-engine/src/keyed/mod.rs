//! Properties with `for each`: one instance per combination of parameter values, all of one program.
//!
//! The parameter values of an instance are its *key*, its state is a record of a few words in a [`table`].
//! Events with different keys are evaluated together, each in its row of the block (see [`parallel`]), so
//! that they share the cost of the program and the latency of memory. An event without a key concerns all
//! instances, and also the *template*, record 0: the state of an instance whose key was never seen. A new
//! instance is a copy of it, and an instance with the same state may be evicted.
//!
//! Everything observable happens at the same event however events are cut into blocks. That is why records
//! are only checked for eviction, and their numbers reused, each time [`SWEEP`] events have passed, by
//! [`shards`].

pub(crate) mod ahead;
mod batch;
mod by_itself;
pub(crate) mod by_value;
mod delayed;
pub(crate) mod divided;
pub(crate) mod ending;
mod gather;
mod heap;
mod index;
pub(crate) mod key_tests;
pub(crate) mod keys;
pub(crate) mod moved;
mod parallel;
pub(crate) mod plan;
mod pools;
pub(crate) mod record;
mod relations;
mod robust;
pub(crate) mod room;
pub(crate) mod saved;
pub(crate) mod shards;
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
use crate::keyed::ahead::{Ahead, AwaitedVerdict};
use crate::keyed::batch::Batch;
use crate::keyed::by_itself::KeyedByItself;
use crate::keyed::ending::Unfinished;
use crate::keyed::gather::GatherBuffers;
use crate::keyed::heap::InstanceHeap;
use crate::keyed::keys::{Keys, for_each};
use crate::keyed::plan::{SlicePlan, Sliced};
use crate::keyed::record::UNPLANNED;
use crate::keyed::relations::Relations;
use crate::keyed::robust::Measured;
use crate::keyed::room::{MAX_LIMIT, MemoryRoom, Refusals, lowest};
use crate::keyed::shards::Shards;
use crate::keyed::table::{TEMPLATE, Table};
use crate::keyed::waiting::Waits;
use crate::ops::columns::rows_where;

/// Number of events between sweeps for instances to evict.
const SWEEP: u64 = 256;

/// All instances of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Instances {
    plan: Arc<SlicePlan>,
    table: Table,
    gathered: GatherBuffers,
    registers: Registers,
    outcomes: Vec<Outcome>,
    margins: Vec<Measured>,
    ahead: Ahead,
    /// Machines left unfinished by instances that end.
    unfinished: Vec<Unfinished>,
    keys: Keys,
    /// Event without a key, repeated once per instance of a batch.
    repeated: Block,
    /// Rows without an event, for changes caused by time alone.
    no_event: Block,
    times: [i64; Block::CAPACITY],
    /// Scheduled changes of instances by time alone; an entry is valid only if the record of the instance has
    /// the same time.
    changes: BinaryHeap<Reverse<(i64, u32)>>,
    /// Time of the latest event, or later.
    now: i64,
    /// Number of events accepted or refused.
    events: u64,
    /// Number of events since all records were checked.
    since_full_check: u64,
    refusals: Refusals,
    room: MemoryRoom,
    unexercised: Unexercised,
    /// Number of times that a machine skipped steps.
    leaps: u64,
    /// Values of terms at time points not yet emitted.
    terms: Vec<RowValue>,
    /// The shards that are here: all of them, or those of a portion.
    shards: Shards,
}

/// Origin of time points that were evaluated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointOrigin {
    /// Each row belongs to the event in that row of the block.
    Rows,
    /// All rows belong to the event in this row.
    Shared(usize),
    /// No event: time alone causes a change.
    Time,
    /// No event: open intervals after earlier time points, or passing time.
    Span,
}

/// Time points that were evaluated together, each of a different instance.
pub(crate) struct PointBatch<'a> {
    /// Rows in use.
    pub(crate) rows: Rows,
    pub(crate) origin: PointOrigin,
    /// Verdicts of every property, except those with future operators and robustness.
    pub(crate) outcomes: &'a [Outcome],
    /// Least and greatest possible robustness of every past property; empty if none has robustness.
    margins: &'a [Measured],
    /// For every property with future operators, the rows whose only verdicts are awaited ones.
    pub(crate) driven: &'a [Rows],
    /// Verdicts that earlier time points awaited.
    pub(crate) awaited: &'a [AwaitedVerdict],
    /// Machines that must not be unfinished when their instance ends.
    pub(crate) unfinished: &'a [Unfinished],
    /// Rows whose instance ends.
    pub(crate) ended: Rows,
    /// Time of every row, where time points belong to no event.
    pub(crate) times: &'a [i64],
    /// Values of terms, some of them in rows not in use.
    pub(crate) terms: &'a [RowValue],
    instances: &'a Instances,
}

impl PointBatch<'_> {
    /// Returns the robustness of a past property in a row, where requested and known.
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

    /// Returns the rows where the robustness of a past property differs from the one emitted last.
    pub(crate) fn moved(&self, property: usize) -> Rows {
        self.margins.get(property).map_or(0, |margin| margin.moved)
    }

    /// Appends the key of the instance of a row.
    pub(crate) fn write_key(&self, row: usize, words: &mut Vec<u64>) {
        let Instances { table, keys, gathered, .. } = self.instances;
        words.extend_from_slice(match self.origin {
            PointOrigin::Rows => keys.key(row),
            PointOrigin::Shared(_) | PointOrigin::Time | PointOrigin::Span => {
                table.key(gathered.instances[row])
            }
        });
    }
}

/// Callback that receives verdicts.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(&PointBatch<'_>);

/// Events of a block, with the time of each row; times never decrease.
#[derive(Clone, Copy)]
pub(crate) struct Events<'a> {
    pub(crate) block: &'a Block,
    pub(crate) times: &'a [i64],
    /// Rows to process.
    pub(crate) rows: Rows,
    /// Inputs of a formula that is evaluated by value: truths without variables, by row.
    pub(crate) inputs: &'a [Rows],
}

impl Instances {
    /// Creates the instances before the first event.
    pub(crate) fn new(Sliced { section, plan }: &Sliced, no_event: &Block) -> Instances {
        let pending =
            section.futures.iter().map(|future| Pending::new(&future.plan, Pending::LIMIT)).collect();
        let robust = &section.robust_futures;
        let delayed = robust.iter().map(|future| Delayed::new(&future.plan, Pending::LIMIT)).collect();
        let buffers = section.initial.values.buffers.clone();
        let keys = plan.keys.types.len();
        let relations = Relations::new(section);
        let heap = InstanceHeap::new(buffers, keys, Waits::new(pending), Waits::new(delayed), relations);
        let outcomes = vec![Outcome::default(); section.properties.len() + section.futures.len()];
        let table = Table::new(section, plan.keys.is_word(), heap);
        let any_levels = section.robust.iter().any(|margin| matches!(margin, Some(Margin::Levels(_))));
        let margins = if any_levels { section.properties.len() } else { 0 };
        Instances {
            gathered: GatherBuffers::new(&table.layout),
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
            since_full_check: 0,
            refusals: Refusals::default(),
            room: MemoryRoom::default(),
            unexercised: Unexercised::all(section.premises.len()),
            leaps: 0,
            terms: Vec::new(),
            shards: Shards::ALL,
            plan: Arc::clone(plan),
        }
    }

    /// Processes the events of a block and emits their verdicts; those at events are emitted in order.
    /// Returns the rows that have a key.
    pub(crate) fn step(&mut self, sliced: &Sliced, events: Events<'_>, emit: Emit<'_>) -> Rows {
        self.process::<true>(sliced, events, emit)
    }

    /// Like [`Instances::step`]. Without `WHOLE`, events with keys of other shards are only counted.
    #[inline(always)]
    fn process<const WHOLE: bool>(&mut self, sliced: &Sliced, events: Events<'_>, emit: Emit<'_>) -> Rows {
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
        let own = if WHOLE { Rows::MAX } else { self.own(keyed) };
        let mut rest = keyed | shared;
        while rest != 0 {
            let first = rest & rest.wrapping_neg();
            let row = first.trailing_zeros() as usize;
            self.advance(sliced, times[row], times, emit);
            let taken = if shared & first != 0 {
                self.share(sliced, events, row, emit);
                first
            } else {
                // Stops at the next event without a key and at the next sweep.
                let before = (shared & rest).wrapping_sub(1) & !shared;
                let until_sweep = SWEEP - self.events % SWEEP;
                let rows = lowest(rest & before, until_sweep);
                if WHOLE {
                    self.divide(sliced, events, rows, emit)
                } else {
                    self.divide_own(sliced, events, rows, own, emit)
                }
            };
            rest &= !taken;
            let count = u64::from(taken.count_ones());
            self.since_full_check += count;
            self.events = self.events.wrapping_add(count);
            if self.events.is_multiple_of(SWEEP) {
                let last = taken.checked_ilog2().map_or(row, |last| last as usize);
                self.advance(sliced, times[last], times, emit);
                self.table.sweep(&sliced.section, self.now);
            }
        }
        keyed
    }

    /// Advances time and emits the changes before `time` that time alone causes. `times` are the times of the
    /// events that reveal them.
    pub(crate) fn advance(&mut self, sliced: &Sliced, time: i64, times: &[i64], emit: Emit<'_>) {
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
                    self.gathered.instances[count] = number;
                    // In the points model the next event reveals what time has changed.
                    let shown = times.get(times.partition_point(|event| *event <= due)).copied();
                    self.times[count] = if dense { due } else { shown.unwrap_or(time) };
                    let is_span =
                        !dense || self.table.time(number) == due || !self.table.is_time_point(number, due);
                    spans |= Rows::from(is_span) << count;
                    if sliced.section.changes.repeats && !is_span && by_itself.is_too_often(number) {
                        self.request_leap(&sliced.section, number, &by_itself, due, time);
                        by_itself.requested.push(number);
                    }
                    count += 1;
                }
            }
            let rows = lowest(Rows::MAX, count as u64);
            // A change scheduled for the time of the last time point is the open interval after it. If only
            // an awaited verdict becomes certain, time passes without a time point.
            self.run(sliced, PointOrigin::Span, None, spans);
            self.emit(spans, PointOrigin::Span, 0, emit);
            let before = self.leaps_of(&by_itself.requested);
            self.run(sliced, PointOrigin::Time, None, rows & !spans);
            self.leaps += self.leaps_of(&by_itself.requested).saturating_sub(before);
            by_itself.requested.clear();
            self.conclude(sliced, rows & !spans, PointOrigin::Time, emit);
        }
    }

    /// Processes events with keys: all rows, or the first ones. Returns the processed rows.
    fn divide(&mut self, sliced: &Sliced, events: Events<'_>, rows: Rows, emit: Emit<'_>) -> Rows {
        let (rows, rounds, count) = self.assign(sliced, events.times, rows);
        for &round in &rounds[..count] {
            self.run(sliced, PointOrigin::Rows, Some(events), round);
        }
        let taken = rounds[..count].iter().fold(0, |rows, round| rows | round);
        self.conclude(sliced, taken, PointOrigin::Rows, emit);
        rows
    }

    /// Assigns every row its instance, and the rows to rounds such that an instance occurs once per round.
    /// Returns the assigned rows: all of them, or those before a row that depends on the results of earlier
    /// ones.
    fn assign(
        &mut self,
        sliced: &Sliced,
        times: &[i64],
        rows: Rows,
    ) -> (Rows, [Rows; Block::CAPACITY], usize) {
        let mut rounds = [0; Block::CAPACITY];
        let mut count = 0;
        let mut seen = Seen([0; _]);
        self.table.prefetch(rows, &self.keys);
        // As a separate short loop this is faster than within the long one.
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
            // An instance that was absent may have begun with an earlier row.
            let known = match found[row] {
                TEMPLATE => self.table.find(&self.keys, row),
                number => Some(number),
            };
            // Changes by time of the instance, or of the template, before this event come first.
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
                        self.check_all(&sliced.section);
                        // Found instances may have been evicted.
                        found.fill(TEMPLATE);
                        self.room.measure_at = 0;
                        if self.is_full(limit) {
                            self.refuse(row);
                            return (1 << row, rounds, 0);
                        }
                    }
                    let number = self.table.create(&self.keys, row);
                    if changes && self.table.planned(number) != UNPLANNED {
                        self.changes.push(Reverse((self.table.planned(number), number)));
                    }
                    number
                }
            };
            let round = if seen.insert(number) {
                // Rows outside the batch hold stale numbers.
                let same = rows_where(row as u32, |earlier| self.gathered.instances[earlier] == number);
                (same & rows).count_ones() as usize
            } else {
                0
            };
            // The instance may end with its first event, so that the next one begins a new instance; and its
            // next change by time is known only after that event is evaluated.
            if round > 0 && (changes || sliced.ends()) {
                break;
            }
            self.gathered.instances[row] = number;
            rounds[round] |= 1 << row;
            count = count.max(round + 1);
            rest &= rest - 1;
        }
        (rows & !rest, rounds, count)
    }

    fn run(&mut self, sliced: &Sliced, origin: PointOrigin, events: Option<Events<'_>>, rows: Rows) {
        let Instances {
            table,
            gathered,
            registers,
            outcomes,
            margins,
            changes,
            keys,
            ahead,
            unexercised,
            terms,
            ..
        } = self;
        let (block, times, inputs) = match events {
            Some(Events { block, times, inputs, .. }) => (block, times, inputs),
            None if matches!(origin, PointOrigin::Time | PointOrigin::Span) => {
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
            counts: matches!(origin, PointOrigin::Rows | PointOrigin::Shared(_)),
            keys: (origin == PointOrigin::Rows).then_some(keys),
            plan: &self.plan.keys,
            table,
            gathered,
            registers,
            margins,
            ahead,
            unexercised,
            terms,
        };
        let plan = |due, number| changes.push(Reverse((due, number)));
        if origin == PointOrigin::Span {
            batch.run_spans(outcomes, plan);
        } else {
            batch.run(outcomes, plan);
        }
    }

    /// Emits the verdicts in these rows except for the template's.
    fn emit(&mut self, rows: Rows, origin: PointOrigin, ended: Rows, emit: Emit<'_>) {
        let mut emitted = rows;
        // The template is never evaluated at events with a key.
        if origin != PointOrigin::Rows {
            for_each(rows, |row| emitted &= !(Rows::from(self.gathered.instances[row] == TEMPLATE) << row));
        }
        if emitted != 0 {
            let (outcomes, margins) = (&self.outcomes[..], &self.margins[..]);
            let times = &self.times[..];
            let Ahead { driven, awaited, .. } = &self.ahead;
            emit(&PointBatch {
                rows: emitted,
                origin,
                outcomes,
                margins,
                driven,
                awaited,
                unfinished: &self.unfinished,
                ended: ended & emitted,
                times,
                terms: &self.terms,
                instances: self,
            });
        }
        self.ahead.awaited.clear();
        self.unfinished.clear();
        self.terms.clear();
    }

    /// Emits the verdicts in these rows, and removes the instances that end there.
    fn conclude(&mut self, sliced: &Sliced, rows: Rows, origin: PointOrigin, emit: Emit<'_>) {
        let ended = self.ended(sliced, rows);
        let Instances { table, gathered, ahead, .. } = self;
        let section = &sliced.section;
        for_each(ended, |row| ahead.end(section, table, row, gathered.instances[row], i64::MIN));
        for_each(ended, |row| self.note_unfinished(section, row));
        self.emit(rows, origin, ended, emit);
        for_each(ended, |row| self.table.remove(section, self.gathered.instances[row]));
    }

    /// Processes an event without a key, for all instances and the template.
    fn share(&mut self, sliced: &Sliced, events: Events<'_>, row: usize, emit: Emit<'_>) {
        self.repeated.repeat(events.block, row);
        self.times.fill(events.times[row]);
        let mut next = TEMPLATE;
        while next < self.table.used() {
            let mut rows = 0;
            while rows < Block::CAPACITY && next < self.table.used() {
                if self.table.is_live(next) {
                    self.gathered.instances[rows] = next;
                    rows += 1;
                }
                next += 1;
            }
            let rows = lowest(Rows::MAX, rows as u64);
            self.run(sliced, PointOrigin::Shared(row), None, rows);
            self.conclude(sliced, rows, PointOrigin::Shared(row), emit);
        }
    }

    /// Checks all records, if enough events have passed since the last full check to make its cost per event
    /// small.
    fn check_all(&mut self, section: &Section) {
        if self.since_full_check * 8 >= self.live() {
            self.since_full_check = 0;
            let now = self.now;
            (TEMPLATE + 1..self.table.used()).for_each(|number| self.table.check(number, section, now));
        }
    }
}

/// Approximate set of up to 64 instances: one bit for each, which several may share.
struct Seen([u64; 16]);

impl Seen {
    /// Adds an instance. Returns whether it may have been in the set: false positives are rare, and cheaper
    /// than an exact set.
    #[inline(always)]
    fn insert(&mut self, number: u32) -> bool {
        let at = number.wrapping_mul(0x9E37_79B1) >> 22;
        let (word, bit) = (&mut self.0[at as usize / 64], 1 << (at % 64));
        let may = *word & bit != 0;
        *word |= bit;
        may
    }
}
