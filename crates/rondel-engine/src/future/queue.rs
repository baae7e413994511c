use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use rondel_event::Verdict;

use super::key::{self, Key};
use super::leaf::Piece;
use super::plan::{Plan, Range, Skeleton};

/// Places about which a skeleton is not decided yet: all with the same pasts, and about which the same
/// is known of its leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) from: Key,
    pub(crate) to: Key,
    /// The pasts of the skeleton, on both rails.
    past: [u32; 2],
    /// Which of its leaves are known, on both rails, and what they are.
    known: [u32; 2],
    value: [u32; 2],
    /// Which rails have been decided, as two bits. Both: the entry waits only to be removed.
    given: u8,
    /// Something has become known since it was last evaluated.
    touched: bool,
    /// Begins where an interval begins that came in, and is not what was left over of one.
    pub(crate) is_fresh: bool,
    /// Only repeats the moment before it.
    pub(crate) is_echo: bool,
    /// Its beginning moves on with time, unless something happened since: the number of that moment.
    moved: u32,
    /// The verdict about what lies between it and the entry before, if anything does.
    #[serde(with = "crate::ops::saved::verdict")]
    before: Option<Verdict>,
    /// The verdict about it, once it is given.
    #[serde(with = "crate::ops::saved::verdict")]
    verdict: Option<Verdict>,
    /// What the caller noted of the moment.
    pub(crate) tag: i64,
}

impl Entry {
    fn own_tag(&self) -> i64 {
        if self.is_fresh && !self.is_echo { self.tag } else { 0 }
    }

    fn is_open(&self) -> bool {
        self.given != BOTH
    }
}

pub(crate) const BOTH: u8 = 0b11;

/// What comes into a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) from: Key,
    pub(crate) to: Key,
    pub(crate) given: u8,
    pub(crate) is_fresh: bool,
    pub(crate) is_echo: bool,
    pub(crate) tag: i64,
    /// See [`Entry`].
    pub(crate) moved: u32,
}

/// The entries of a skeleton, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    /// How many of them are open.
    open: usize,
    /// The last verdict given about what lies behind all entries.
    #[serde(with = "crate::ops::saved::verdict")]
    behind: Option<Verdict>,
}

/// A rail of an entry has been decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved {
    pub(crate) rail: usize,
    pub(crate) piece: Piece,
    /// What was noted of the moment that it is about; nothing if that is not the beginning of one.
    pub(crate) tag: i64,
}

impl Queue {
    /// Begins anew, after this verdict.
    pub(crate) fn restart(&mut self, behind: Option<Verdict>) {
        self.entries.clear();
        self.entries.shrink_to(16);
        (self.open, self.behind) = (0, behind);
    }

    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// The first entry; it is open.
    #[cfg(test)]
    pub(crate) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(crate) fn push(&mut self, arrival: Arrival, past: [u32; 2], may_merge: bool) {
        let Arrival { from, to, given, is_fresh, is_echo, tag, moved } = arrival;
        if let Some(back) = self.entries.back_mut() {
            let same = back.past == past && back.known == [0, 0] && back.given == given;
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
            given,
            touched: false,
            is_fresh,
            is_echo,
            moved,
            before: self.behind.take(),
            verdict: None,
            tag,
        });
    }

    /// A leaf has been decided on a rail.
    pub(crate) fn set(&mut self, leaf: usize, rail: usize, piece: Piece, epoch: u32) {
        let bit = 1_u32 << leaf;
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
            entry.known[rail] |= bit;
            if piece.value {
                entry.value[rail] |= bit;
            }
            entry.touched = true;
            i += 1;
            if let Some(rest) = rest {
                self.open += 1;
                self.entries.insert(i, rest);
            }
        }
    }

    /// Evaluates the entries of a piece about which something has become known.
    pub(crate) fn resolve(
        &mut self,
        skeleton: &Skeleton,
        piece: Piece,
        (end, is_moving, epoch): (Key, bool, u32),
        scratch: &mut Vec<Range>,
        mut decided: impl FnMut(Resolved),
        mut verdicts: impl FnMut(Key),
    ) {
        let mut i = self.first_reaching(piece.lo);
        while i < self.entries.len() && self.entries[i].from <= piece.hi {
            i += 1;
            let next_moves = self.entries.get(i).is_some_and(|next| next.moved == epoch);
            let entry = &mut self.entries[i - 1];
            if !entry.touched || !entry.is_open() {
                continue;
            }
            entry.touched = false;
            let range = skeleton.evaluate(|p| past(entry.past, p), |l| leaf(entry, l), scratch);
            let moving = next_moves || is_moving && entry.to == end;
            let [certain, possible] = range.decided();
            for (rail, is_decided, value) in
                [(0, certain, range.certain[0]), (1, possible, range.possible[0])]
            {
                let bit = 1 << rail;
                if is_decided & 1 == 1 && entry.given & bit == 0 {
                    entry.given |= bit;
                    let piece = Piece { lo: entry.from, hi: entry.to, value: value & 1 == 1, moving };
                    decided(Resolved { rail, piece, tag: entry.own_tag() });
                }
            }
            if !entry.is_open() {
                self.open -= 1;
                entry.verdict = Some(range.verdict());
                verdicts(entry.from);
            }
        }
    }

    /// Gives up the first entry: what is not decided of it is unknown for ever.
    pub(crate) fn give_up(&mut self, mut decided: impl FnMut(Resolved)) -> Option<Key> {
        let entry = self.entries.front_mut().filter(|entry| entry.is_open())?;
        for (rail, value) in [(0, false), (1, true)] {
            if entry.given >> rail & 1 == 0 {
                let piece = Piece { lo: entry.from, hi: entry.to, value, moving: false };
                decided(Resolved { rail, piece, tag: entry.own_tag() });
            }
        }
        // A rail that has been decided leaves only what it allows; the verdict of neither is known.
        entry.given = BOTH;
        entry.verdict = Some(Verdict::Inconclusive);
        self.open -= 1;
        Some(entry.from)
    }

    /// Gives up all entries, and says where they begin.
    pub(crate) fn give_up_all(&mut self, verdicts: &mut Vec<Key>) {
        for entry in self.entries.iter_mut().filter(|entry| entry.is_open()) {
            entry.given = BOTH;
            entry.verdict = Some(Verdict::Inconclusive);
            verdicts.push(entry.from);
        }
        self.open = 0;
    }

    /// The entry that begins there, with its verdict, and whether that is another than the one about the
    /// nearest earlier place about which there is one.
    pub(crate) fn verdict_at(&self, from: Key) -> Option<(&Entry, Verdict, bool)> {
        let i = self.entries.partition_point(|entry| entry.from < from);
        let entry = self.entries.get(i)?;
        let verdict = entry.verdict?;
        let earlier = entry.before.or_else(|| self.given_before(i));
        Some((entry, verdict, earlier != Some(verdict)))
    }

    /// Notes a verdict that is given at once, about what lies behind all entries; whether it has changed.
    pub(crate) fn give(&mut self, verdict: Verdict) -> bool {
        let earlier = self.last_given();
        self.behind = Some(verdict);
        earlier != Some(verdict)
    }

    /// The verdict about the last place about which there is one.
    pub(crate) fn last_given(&self) -> Option<Verdict> {
        self.behind.or_else(|| self.given_before(self.entries.len()))
    }

    fn given_before(&self, i: usize) -> Option<Verdict> {
        self.entries.range(..i).rev().find_map(|entry| entry.verdict.or(entry.before))
    }

    /// Removes what is decided, up to the first entry that is not.
    pub(crate) fn clean(&mut self) {
        while self.entries.front().is_some_and(|entry| !entry.is_open()) {
            let gone = self.entries.pop_front().and_then(|entry| entry.verdict);
            let next = self.entries.front_mut().map_or(&mut self.behind, |next| &mut next.before);
            *next = next.or(gone);
        }
    }

    /// The first coordinate after `after` at which an entry begins or ends; not one that moves on with
    /// time, as does `end`.
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

/// Cuts an entry in two and returns the second.
fn split(entry: &mut Entry, at: Key, moved: u32) -> Entry {
    let rest = Entry { from: at, moved, before: None, is_fresh: false, ..entry.clone() };
    entry.to = at - 1;
    rest
}

fn past(past: [u32; 2], i: usize) -> Range {
    let bit = |word: u32| u64::from(word >> i & 1).wrapping_neg();
    Range::known(bit(past[0]), bit(past[1]))
}

fn leaf(entry: &Entry, i: usize) -> Range {
    let rail = |rail: usize| {
        let (known, value) = (entry.known[rail] >> i & 1, entry.value[rail] >> i & 1);
        [u64::from(value).wrapping_neg(), u64::from(value | known ^ 1).wrapping_neg()]
    };
    Range { certain: rail(0), possible: rail(1) }
}

// Leaves and pasts of an entry are bits of a word.
const _: () = assert!(Plan::WIDTH <= 32);
