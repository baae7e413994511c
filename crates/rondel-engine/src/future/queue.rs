use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use rondel_event::Verdict;

use super::key::{self, Key};
use super::plan::{BoolFrame, Plan, Range};
use super::until::Piece;

/// The end of the chunk that is being evaluated.
#[derive(Clone, Copy)]
pub(crate) struct ChunkEnd {
    /// Its last place.
    pub(crate) place: Key,
    /// Whether its last place moves on with time.
    pub(crate) moves: bool,
    pub(crate) epoch: u32,
}

/// Interval of places at which a frame is undecided: all have the same pasts and the same known obligations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) from: Key,
    pub(crate) to: Key,
    /// Lower and upper truth of each past of the frame, as bits.
    past: [u32; 2],
    /// Known obligations of the frame for the lower and the upper truth, as bits, and their values.
    known: [u32; 2],
    value: [u32; 2],
    /// Decided truth bounds, as two bits. With both the entry only waits to be removed.
    decided: u8,
    /// Some obligation has become known since the last evaluation.
    touched: bool,
    /// Begins where an incoming interval begins, and is not the rest of a split one.
    pub(crate) is_fresh: bool,
    /// Repeats the time point before it.
    pub(crate) is_echo: bool,
    /// Epoch in which its beginning moves on with time; 0 or an older epoch if it does not.
    moved: u32,
    /// Verdict about the places between the entry before and this one, if there are any.
    #[serde(with = "crate::ops::saved::verdict")]
    before: Option<Verdict>,
    /// Verdict about the entry, once it is decided.
    #[serde(with = "crate::ops::saved::verdict")]
    verdict: Option<Verdict>,
    /// Tag that the caller gave the time point.
    pub(crate) tag: i64,
}

impl Entry {
    fn own_tag(&self) -> i64 {
        if self.is_fresh && !self.is_echo { self.tag } else { 0 }
    }

    fn is_open(&self) -> bool {
        self.decided != BOTH
    }
}

pub(crate) const BOTH: u8 = 0b11;

/// New interval for a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) from: Key,
    pub(crate) to: Key,
    pub(crate) decided: u8,
    pub(crate) is_fresh: bool,
    pub(crate) is_echo: bool,
    pub(crate) tag: i64,
    /// See [`Entry`].
    pub(crate) moved: u32,
}

/// Entries of a frame, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    /// Number of open entries.
    open: usize,
    /// Latest verdict about the places after all entries.
    #[serde(with = "crate::ops::saved::verdict")]
    behind: Option<Verdict>,
}

/// Decision about one truth bound of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved {
    pub(crate) bound: usize,
    pub(crate) piece: Piece,
    /// Tag of the time point; 0 if the entry does not begin with one.
    pub(crate) tag: i64,
}

impl Queue {
    /// Empties the queue, with `behind` as the latest verdict.
    pub(crate) fn restart(&mut self, behind: Option<Verdict>) {
        self.entries.clear();
        self.entries.shrink_to(16);
        (self.open, self.behind) = (0, behind);
    }

    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Returns the first entry; it is open.
    #[cfg(test)]
    pub(crate) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(crate) fn push(&mut self, arrival: Arrival, past: [u32; 2], may_merge: bool) {
        let Arrival { from, to, decided, is_fresh, is_echo, tag, moved } = arrival;
        if let Some(back) = self.entries.back_mut() {
            let same = back.past == past && back.known == [0, 0] && back.decided == decided;
            if may_merge && same && back.to + 1 == from && (is_echo || !back.is_echo) {
                back.to = to;
                return;
            }
        }
        self.open += 1;
        self.entries.push_back(Entry {
            from,
            to,
            past,
            known: [0; 2],
            value: [0; 2],
            decided,
            touched: false,
            is_fresh,
            is_echo,
            moved,
            before: self.behind.take(),
            verdict: None,
            tag,
        });
    }

    /// Sets one truth bound of an obligation at the places of a piece.
    pub(crate) fn set(&mut self, obligation: usize, bound: usize, piece: Piece, epoch: u32) {
        let bit = 1_u32 << obligation;
        let mut i = self.first_reaching(piece.lo);
        while let Some(entry) = self.entries.get_mut(i) {
            if entry.from > piece.hi {
                break;
            }
            if !entry.is_open() {
                i += 1;
                continue;
            }
            if entry.from < piece.lo {
                let rest = split(entry, piece.lo, 0);
                self.open += 1;
                i += 1;
                self.entries.insert(i, rest);
                continue;
            }
            let rest = (entry.to > piece.hi)
                .then(|| split(entry, piece.hi + 1, if piece.moving { epoch } else { 0 }));
            entry.known[bound] |= bit;
            if piece.value {
                entry.value[bound] |= bit;
            }
            entry.touched = true;
            i += 1;
            if let Some(rest) = rest {
                self.open += 1;
                self.entries.insert(i, rest);
            }
        }
    }

    /// Evaluates the entries of a piece with newly known obligations.
    pub(crate) fn resolve(
        &mut self,
        frame: &BoolFrame,
        piece: Piece,
        end: ChunkEnd,
        scratch: &mut Vec<Range>,
        mut decided: impl FnMut(Resolved),
        mut verdicts: impl FnMut(Key),
    ) {
        let mut i = self.first_reaching(piece.lo);
        while i < self.entries.len() && self.entries[i].from <= piece.hi {
            i += 1;
            let next_moves = self.entries.get(i).is_some_and(|next| next.moved == end.epoch);
            let entry = &mut self.entries[i - 1];
            if !entry.touched || !entry.is_open() {
                continue;
            }
            entry.touched = false;
            let range = frame.evaluate(|p| past(entry.past, p), |l| obligation(entry, l), scratch);
            let moving = next_moves || end.moves && entry.to == end.place;
            let [certain, possible] = range.decided();
            for (bound, is_decided, value) in
                [(0, certain, range.certain[0]), (1, possible, range.possible[0])]
            {
                let bit = 1 << bound;
                if is_decided & 1 == 1 && entry.decided & bit == 0 {
                    entry.decided |= bit;
                    let piece = Piece { lo: entry.from, hi: entry.to, value: value & 1 == 1, moving };
                    decided(Resolved { bound, piece, tag: entry.own_tag() });
                }
            }
            if !entry.is_open() {
                self.open -= 1;
                entry.verdict = Some(range.verdict());
                verdicts(entry.from);
            }
        }
    }

    /// Drops the first entry: its undecided truth bounds are unknown for ever.
    pub(crate) fn give_up(&mut self, mut decided: impl FnMut(Resolved)) -> Option<Key> {
        let entry = self.entries.front_mut().filter(|entry| entry.is_open())?;
        for (bound, value) in [(0, false), (1, true)] {
            if entry.decided >> bound & 1 == 0 {
                let piece = Piece { lo: entry.from, hi: entry.to, value, moving: false };
                decided(Resolved { bound, piece, tag: entry.own_tag() });
            }
        }
        // One decided bound alone determines no verdict.
        entry.decided = BOTH;
        entry.verdict = Some(Verdict::Inconclusive);
        self.open -= 1;
        Some(entry.from)
    }

    /// Drops all open entries and adds their first places to `verdicts`.
    pub(crate) fn give_up_all(&mut self, verdicts: &mut Vec<Key>) {
        for entry in self.entries.iter_mut().filter(|entry| entry.is_open()) {
            entry.decided = BOTH;
            entry.verdict = Some(Verdict::Inconclusive);
            verdicts.push(entry.from);
        }
        self.open = 0;
    }

    /// Returns the entry that begins at a place, its verdict, and whether that differs from the verdict of
    /// the nearest earlier place with one.
    pub(crate) fn verdict_at(&self, from: Key) -> Option<(&Entry, Verdict, bool)> {
        let i = self.entries.partition_point(|entry| entry.from < from);
        let entry = self.entries.get(i)?;
        let verdict = entry.verdict?;
        let earlier = entry.before.or_else(|| self.verdict_before(i));
        Some((entry, verdict, earlier != Some(verdict)))
    }

    /// Records a verdict that is certain at once, after all entries. Returns whether it has changed.
    pub(crate) fn record(&mut self, verdict: Verdict) -> bool {
        let earlier = self.last_verdict();
        self.behind = Some(verdict);
        earlier != Some(verdict)
    }

    /// Returns the verdict about the last place with one.
    pub(crate) fn last_verdict(&self) -> Option<Verdict> {
        self.behind.or_else(|| self.verdict_before(self.entries.len()))
    }

    fn verdict_before(&self, i: usize) -> Option<Verdict> {
        self.entries.range(..i).rev().find_map(|entry| entry.verdict.or(entry.before))
    }

    /// Removes decided entries up to the first open one.
    pub(crate) fn clean(&mut self) {
        while self.entries.front().is_some_and(|entry| !entry.is_open()) {
            let gone = self.entries.pop_front().and_then(|entry| entry.verdict);
            let next = self.entries.front_mut().map_or(&mut self.behind, |next| &mut next.before);
            *next = next.or(gone);
        }
    }

    /// Returns the first coordinate after `after` at which an entry begins or ends, except for ends that move
    /// on with time, as `end` does.
    pub(crate) fn edge(&self, after: i128, end: Key, epoch: u32) -> Option<i128> {
        let from = self.entries.partition_point(|entry| key::axis(entry.to + 1) <= after);
        let mut entries = self.entries.range(from..).peekable();
        while let Some(entry) = entries.next() {
            if !entry.is_open() {
                continue;
            }
            if key::axis(entry.from) > after && entry.moved != epoch {
                return Some(key::axis(entry.from));
            }
            let moves = entry.to == end || entries.peek().is_some_and(|next| next.moved == epoch);
            if key::axis(entry.to + 1) > after && !moves {
                return Some(key::axis(entry.to + 1));
            }
        }
        None
    }

    fn first_reaching(&self, key: Key) -> usize {
        self.entries.partition_point(|entry| entry.to < key)
    }
}

/// Splits an entry and returns the second half.
fn split(entry: &mut Entry, at: Key, moved: u32) -> Entry {
    let rest = Entry { from: at, moved, before: None, is_fresh: false, ..entry.clone() };
    entry.to = at - 1;
    rest
}

fn past(past: [u32; 2], i: usize) -> Range {
    let bit = |word: u32| u64::from(word >> i & 1).wrapping_neg();
    Range::known(bit(past[0]), bit(past[1]))
}

fn obligation(entry: &Entry, i: usize) -> Range {
    let bound = |bound: usize| {
        let (known, value) = (entry.known[bound] >> i & 1, entry.value[bound] >> i & 1);
        [u64::from(value).wrapping_neg(), u64::from(value | known ^ 1).wrapping_neg()]
    };
    Range { certain: bound(0), possible: bound(1) }
}

// Obligations and pasts of an entry are bits of a word.
const _: () = assert!(Plan::WIDTH <= 32);
