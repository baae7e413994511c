//! Transfer of instances to another program, or from several monitors into one: the same records with a
//! different layout.

use serde::{Deserialize, Serialize};

use crate::exec::inventory::{Inventory, Origins, Outline};
use crate::exec::section::{Section, TimePoints};
use crate::exec::state::List;
use crate::ir::found::Found;
use crate::ir::instruction::Instruction;
use crate::keyed::heap::InstanceHeap;
use crate::keyed::keys::{key, tag};
use crate::keyed::plan::Sliced;
use crate::keyed::pools::{Loose, LoosePools, Move, Pool, PoolMoves};
use crate::keyed::record::{BITS, FREE, KEY, Layout, POSITION, Places, Truths, UNPLANNED};
use crate::keyed::saved::SavedInstances;
use crate::keyed::shards::{self, SHARDS};
use crate::keyed::table::{SavedTable, TEMPLATE};
use crate::ops::varying::Varying;

/// Layout of the records of a section with instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SlicedOutline {
    pub(crate) outline: Outline,
    places: Places,
    /// Number of positions for which each truth is stored.
    histories: Vec<u32>,
    /// Number of words of a record.
    words: u32,
    /// Number of the first text of instances.
    texts: u32,
    /// Number of verdict bits per property.
    width: u32,
}

impl SlicedOutline {
    pub(crate) fn new(Sliced { section, plan }: &Sliced) -> SlicedOutline {
        let layout = Layout::new(section);
        SlicedOutline {
            outline: Outline::new(section),
            histories: histories(section),
            words: layout.words as u32,
            places: layout.places,
            texts: InstanceHeap::first_text(section.initial.values.buffers.len(), plan.keys.types.len()),
            width: if section.time_points == TimePoints::Dense { 4 } else { 2 },
        }
    }

    /// Returns each property with its first verdict bit.
    fn verdicts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = self.places.verdicts;
        (0..)
            .zip(self.outline.all_properties())
            .map(move |(i, property): (u32, u32)| (property, first.wrapping_add(self.width.wrapping_mul(i))))
    }
}

/// Returns the number of positions for which each truth is stored.
fn histories(section: &Section) -> Vec<u32> {
    let mut all = vec![1; section.initial.bits.len()];
    for instruction in &section.instructions {
        if let Instruction::Shift { by, state, .. } = *instruction
            && let Some(history) = all.get_mut(state as usize)
        {
            *history = by.into();
        }
    }
    all
}

/// Selection of records: whether the template and the total counts are included, and a filter of instances by
/// key.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    pub(crate) with_template: bool,
    pub(crate) is_meant: &'a dyn Fn(&[u64]) -> bool,
}

/// Mapping between the records of two sections.
#[derive(Default)]
struct Moves {
    /// First bits, and their number.
    bits: Vec<(Move, u32)>,
    words: Vec<Move>,
    /// Words that refer to texts.
    texts: Vec<Move>,
    pools: PoolMoves,
    /// Words of the states with several pools, and the indexes of the pools.
    relations: Vec<(Move, Move)>,
    pending: Vec<(Move, Move)>,
    delayed: Vec<(Move, Move)>,
}

/// Returns the elements and indexes of what both sections have in a list.
fn pairs<'a, T: Copy>(
    list: List,
    [own, other]: [&Inventory; 2],
    [to, of]: [&'a [T]; 2],
) -> impl Iterator<Item = ([T; 2], [u32; 2])> + 'a {
    let found: Vec<(usize, usize)> = Found::new(own.list(list), other.list(list)).pairs().collect();
    found
        .into_iter()
        .filter_map(move |(own, other)| Some(([*of.get(other)?, *to.get(own)?], [other as u32, own as u32])))
}

impl Moves {
    /// Copies the bits and words of a record that refer to nothing else; `None` if the record has not all of them.
    fn copy(&self, record: &[u64], out: &mut [u64]) -> Option<()> {
        for &([of, to], count) in &self.bits {
            for i in 0..count {
                let (of, to) = (of.wrapping_add(i) as usize, to.wrapping_add(i) as usize);
                let (word, put) = (record.get(BITS + of / 64)?, out.get_mut(BITS + to / 64)?);
                *put = *put & !(1 << (to % 64)) | (word >> (of % 64) & 1) << (to % 64);
            }
        }
        for &[of, to] in &self.words {
            *out.get_mut(to as usize)? = *record.get(of as usize)?;
        }
        Some(())
    }

    /// Maps the records of another section to those of this one.
    fn new(own: &SlicedOutline, other: &SlicedOutline, from: &Origins) -> Moves {
        let (to, of) = (&own.places, &other.places);
        let names = [&own.outline.inventory, &other.outline.inventory];
        let mut moves = Moves::default();
        for (truths, [_, at]) in pairs(List::Bits, names, [&to.truths, &of.truths]) {
            match truths {
                [Truths::Bits(of), Truths::Bits(to)] => {
                    moves.bits.push(([of, to], own.histories.get(at as usize).copied().unwrap_or(1)));
                }
                [Truths::Word(of), Truths::Word(to)] => moves.words.push([of, to]),
                _ => {}
            }
        }
        for ([of, to], _) in pairs(List::TimedRecently, names, [&to.timed_recently, &of.timed_recently]) {
            moves.words.push([of.until, to.until]);
            moves.bits.push(([of.open, to.open], 1));
        }
        for (list, [to, of]) in [
            (List::HeldInts, [&to.held_ints, &of.held_ints]),
            (List::HeldFloats, [&to.held_floats, &of.held_floats]),
        ] {
            for ([of, to], _) in pairs(list, names, [to, of]) {
                moves.words.push([of.word, to.word]);
                moves.bits.push(([of.known, to.known], 1));
            }
        }
        moves.bits.extend(
            pairs(List::KnownTexts, names, [&to.known_texts, &of.known_texts]).map(|(bits, _)| (bits, 1)),
        );
        for (list, [to, of]) in [
            (List::LatchedInts, [&to.latched_ints, &of.latched_ints]),
            (List::LatchedFloats, [&to.latched_floats, &of.latched_floats]),
        ] {
            let all = pairs(list, names, [to, of]);
            moves.words.extend(all.flat_map(|(pair, _)| [pair, pair.map(|word| word.wrapping_add(1))]));
        }
        let mut plain = |list, to: &[u32], of: &[u32], all: fn(&mut Moves) -> &mut Vec<Move>| {
            all(&mut moves).extend(pairs(list, names, [to, of]).map(|(pair, _)| pair));
        };
        plain(List::Recently, &to.recently, &of.recently, |moves| &mut moves.words);
        plain(List::Sampled, &to.sampled, &of.sampled, |moves| &mut moves.words);
        plain(List::Buffers, &to.buffers, &of.buffers, |moves| &mut moves.texts);
        moves.pools = PoolMoves::new([&to.pools, &of.pools], |list, words| {
            pairs(list, names, words).map(|(pair, _)| pair).collect()
        });
        moves.relations = pairs(List::Relations, names, [&to.relations, &of.relations]).collect();
        let [outline, others] = [&own.outline, &other.outline];
        let ahead = |own: &[(u32, u64)], others_: &[(u32, u64)], to: &[u32], of: &[u32]| {
            let found = Found::new(&from.of_ahead(own), &others.numbers_ahead(others_));
            let all = found.pairs().filter_map(|(own, other)| {
                Some(([*of.get(other)?, *to.get(own)?], [other as u32, own as u32]))
            });
            all.collect::<Vec<_>>()
        };
        moves.pending = ahead(&outline.futures, &others.futures, &to.pending, &of.pending);
        moves.delayed = ahead(&outline.robust_futures, &others.robust_futures, &to.delayed, &of.delayed);
        for (property, to) in own.verdicts() {
            let is_its = |(other, _): &(u32, u32)| Some(*other) == from.get(property);
            if let Some((_, of)) = other.verdicts().find(is_its) {
                moves.bits.push(([of, to], own.width.min(other.width)));
            }
        }
        let margins = Found::new(&from.of(&outline.properties), &others.numbers(&others.properties));
        for (own, other) in margins.pairs() {
            if let (Some(Some(to)), Some(Some(of))) = (to.margins.get(own), of.margins.get(other)) {
                moves.words.extend((0..4).map(|i| [of.wrapping_add(i), to.wrapping_add(i)]));
            }
        }
        let once = [(of.time, to.time), (of.past, to.past), (of.planned, to.planned)];
        moves.words.extend(once.into_iter().filter_map(|(of, to)| Some([of?, to?])));
        // Zero refers to nothing: constants, and empty texts.
        moves.texts.retain(|[of, to]| *of != 0 && *to != 0);
        moves
    }
}

/// Takes the states of several pools.
fn take_all<T: Varying>(
    loose: &mut [Loose<T>],
    record: &[u64],
    moves: &[(Move, Move)],
    out: &mut [u64],
    pools: &mut [Pool<T>],
) -> bool {
    moves.iter().all(|&(words, [of, to])| match (loose.get_mut(of as usize), pools.get_mut(to as usize)) {
        (Some(loose), Some(pool)) => loose.take(record, &[words], out, pool),
        _ => false,
    })
}

impl SavedInstances {
    /// Takes over the selected instances of another section. `self` is in the state before the first event,
    /// or has taken instances already; with the template go the state of a new instance and the total counts.
    /// Returns false if the saved state is damaged. [`SavedInstances::schedule`] must follow the last transfer.
    pub(crate) fn take(
        &mut self,
        own: &SlicedOutline,
        other: SavedInstances,
        others: &SlicedOutline,
        from: &Origins,
        selection: Selection<'_>,
    ) -> bool {
        let moves = Moves::new(own, others, from);
        let SavedInstances {
            table,
            now,
            events,
            since_full_check,
            unkeyed,
            beyond_limit,
            first,
            unexercised,
            ..
        } = other;
        if selection.with_template {
            (self.now, self.events, self.since_full_check) = (now, events, since_full_check);
            (self.unkeyed, self.beyond_limit, self.first) = (unkeyed, beyond_limit, first);
            self.unexercised =
                unexercised.moved(&from.of_premises(&own.outline.premises), &others.outline.premises);
        }
        let Selection { with_template, is_meant } = selection;
        let target = |key: &[u64]| is_meant(key).then_some(0_usize);
        let targets = std::slice::from_mut(self);
        Self::take_records(targets, own, (table, others), &moves, with_template, &target)
    }

    /// Divides instances among states before the first event; `target` returns the index of the one that takes an
    /// instance, by its key. Returns false if the saved state is damaged.
    pub(crate) fn divide(
        targets: &mut [SavedInstances],
        own: &SlicedOutline,
        all: SavedInstances,
        from: &Origins,
        target: &dyn Fn(&[u64]) -> Option<usize>,
    ) -> bool {
        let moves = Moves::new(own, own, from);
        let is_whole = Self::take_records(targets, own, (all.table, own), &moves, false, target);
        targets.iter_mut().for_each(|target| target.schedule(own));
        is_whole
    }

    /// Schedules the changes by time alone of all records.
    pub(crate) fn schedule(&mut self, own: &SlicedOutline) {
        if let Some(word) = own.places.planned {
            let len = own.words as usize;
            let planned = (0..).zip(self.table.words.chunks_exact(len)).filter_map(|(number, record)| {
                let planned = *record.get(word as usize)? as i64;
                (record[POSITION] != FREE && planned != UNPLANNED).then_some((planned, number))
            });
            self.changes = planned.collect();
        }
    }

    /// Takes over records of another table. `target` returns the index of the state that takes an instance, by its key; the
    /// first one takes the template. Returns false if the saved state is damaged.
    fn take_records(
        targets: &mut [SavedInstances],
        own: &SlicedOutline,
        (other, others): (SavedTable, &SlicedOutline),
        moves: &Moves,
        with_template: bool,
        target: &dyn Fn(&[u64]) -> Option<usize>,
    ) -> bool {
        let (len, of_other) = (own.words as usize, others.words as usize);
        let Some(first) = targets.first() else { return true };
        let Some(blank) = first.table.words.get(..len).map(<[u64]>::to_vec) else { return false };
        let SavedTable { words, begun, mut keys, heap: from, .. } = other;
        let is_odd = |to: &SavedInstances| !to.table.words.len().is_multiple_of(len);
        if of_other <= BITS || words.len() % of_other != 0 || targets.iter().any(is_odd) {
            return false;
        }
        let mut texts: Vec<Option<Vec<u8>>> = from.texts.into_iter().map(Some).collect();
        let dropped = from.pools.dropped;
        let mut pools = LoosePools::new(from.pools);
        let mut relations: Vec<_> = from.relations.pools.into_iter().map(Loose::new).collect();
        let mut pending: Vec<_> = from.pending.pools.into_iter().map(Loose::new).collect();
        let mut delayed: Vec<_> = from.delayed.pools.into_iter().map(Loose::new).collect();
        targets.iter_mut().for_each(|target| target.table.next_checks = [0; SHARDS]);
        let mut numbers: Vec<Numbers> =
            targets.iter().map(|target| Numbers::new(&target.table.words, len)).collect();
        if let Some(first) = targets.first_mut().filter(|_| with_template) {
            first.table.begun = begun;
            let heap = &mut first.table.heap;
            heap.pools.dropped = dropped;
            heap.relations.lost = from.relations.lost;
            (heap.pending.lost, heap.delayed.lost) = (from.pending.lost, from.delayed.lost);
        }
        for (number, record) in (0_u32..).zip(words.chunks_exact(of_other)) {
            let is_template = number == TEMPLATE;
            if record[POSITION] == FREE {
                continue;
            }
            let parts = keys.get(number as usize).map_or(&[][..], Vec::as_slice);
            let index =
                if is_template { with_template.then_some(0) } else { target(key(&record[KEY], parts)) };
            let Some(index) = index else { continue };
            let Some(SavedInstances { table: to, .. }) = targets.get_mut(index) else { return false };
            let heap = &mut to.heap;
            let mut out = blank.clone();
            (out[KEY], out[POSITION]) = (record[KEY], record[POSITION]);
            if moves.copy(record, &mut out).is_none() {
                return false;
            }
            for &[of, to] in &moves.texts {
                let (Some(&reference), Some(put)) = (record.get(of as usize), out.get_mut(to as usize))
                else {
                    return false;
                };
                *put = 0;
                if reference != 0 {
                    let at = reference.checked_sub(others.texts.into()).map(|at| at as usize);
                    let Some(text) = at.and_then(|at| texts.get_mut(at)?.take()) else { return false };
                    heap.texts.push(text);
                    *put = u64::from(own.texts) + heap.texts.len() as u64 - 1;
                }
            }
            let is_whole = pools.take(record, &moves.pools, &mut out, &mut heap.pools)
                && take_all(&mut relations, record, &moves.relations, &mut out, &mut heap.relations.pools)
                && take_all(&mut pending, record, &moves.pending, &mut out, &mut heap.pending.pools)
                && take_all(&mut delayed, record, &moves.delayed, &mut out, &mut heap.delayed.pools);
            if !is_whole {
                return false;
            }
            if is_template {
                to.words[..len].copy_from_slice(&out);
                continue;
            }
            let at = numbers[index].next(record[KEY]) as usize;
            let key = keys.get_mut(number as usize).map(std::mem::take);
            put(&mut to.words, &mut to.keys, at, &out, key.unwrap_or_default());
        }
        true
    }
}

/// Adds a record with its key of several words; records before it that are missing are free.
fn put(words: &mut Vec<u64>, keys: &mut Vec<Vec<u64>>, at: usize, record: &[u64], key: Vec<u64>) {
    let len = record.len();
    while words.len() <= at * len {
        let start = words.len();
        words.resize(start + len, 0);
        words[start + POSITION] = FREE;
    }
    words[at * len..][..len].copy_from_slice(record);
    if !key.is_empty() {
        keys.resize(keys.len().max(at + 1), Vec::new());
        keys[at] = key;
    }
}

/// Number of records of each shard, none of which is to be reused.
struct Numbers([u32; SHARDS]);

impl Numbers {
    /// Counts the records in these words, of which each has `len`.
    fn new(words: &[u64], len: usize) -> Numbers {
        let mut counts = [0; SHARDS];
        for (number, record) in (0_u32..).zip(words.chunks_exact(len)).skip(1) {
            if record[POSITION] != FREE {
                let (shard, position) = shards::place(number);
                counts[shard] = position + 1;
            }
        }
        Numbers(counts)
    }

    /// Returns the next number for a key with this word.
    fn next(&mut self, word: u64) -> u32 {
        let shard = shards::of_tag(tag(word));
        let count = &mut self.0[shard];
        *count += 1;
        shards::number(shard, *count - 1)
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::Block;

    use super::*;
    use crate::keyed::Instances;
    use crate::monitor::program::Program;

    fn program() -> Program {
        let text = "topic t { n: int, b: bool } property p for each n in t.n = once t.b";
        Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap()
    }

    #[test]
    fn records_in_another_shard_are_refused() {
        let program = program();
        let (sliced, block) = (&program.sliced[0], Block::new(program.layout()));
        let blank = || Instances::new(sliced, &block);
        let record = blank().saved().table.words;
        let fits = |shard: usize| {
            let mut saved = blank().saved();
            let SavedTable { words, keys, .. } = &mut saved.table;
            put(words, keys, shards::number(shard, 0) as usize, &record, Vec::new());
            blank().restore(&sliced.section, saved)
        };
        let own = shards::of_tag(tag(record[KEY]));
        assert!((0..SHARDS).all(|shard| fits(shard) == (shard == own)));
    }

    #[test]
    fn states_with_a_cut_record_are_refused() {
        let program = program();
        let (sliced, block) = (&program.sliced[0], Block::new(program.layout()));
        let outline = SlicedOutline::new(sliced);
        let blank = || Instances::new(sliced, &block).saved();
        let taken = |mut own: SavedInstances, other: SavedInstances| {
            let all = Selection { with_template: false, is_meant: &|_| true };
            own.take(&outline, other, &outline, &Origins(vec![Some(0)]), all)
        };
        let cut = || {
            let mut cut = blank();
            cut.table.words.push(0);
            cut
        };
        assert!(taken(blank(), blank()));
        assert!(!taken(cut(), blank()));
        assert!(!taken(blank(), cut()));
    }
}
