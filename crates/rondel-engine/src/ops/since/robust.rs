//! Robustness of bounded `since`, one row or time point at a time.
//!
//! Robustness is the signed distance from violation: positive only where the formula is true, negative only
//! where it is false. For `p since[a,b] q` it is the maximum, over all witnesses of `q` within the bounds, of
//! the minimum of the robustness of `q` there and of `p` from there on. Robustness is never NaN.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::ops::columns::Values;
use crate::ops::stamps::{BlindSpot, Stamps, age};
use crate::ops::varying::Varying;

#[inline(always)]
fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline(always)]
fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The best witnesses, oldest first, with their current robustness in descending order: an older witness that
/// is no better is never needed. `E` is the end of a witness.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BestWitnesses<E> {
    list: VecDeque<(E, f64)>,
}

impl<E: Copy> BestWitnesses<E> {
    fn new() -> BestWitnesses<E> {
        BestWitnesses { list: VecDeque::new() }
    }

    /// Limits the robustness of all witnesses to `p`. Of those that become equal only the latest matters.
    #[inline(always)]
    fn cap(&mut self, p: f64) {
        let mut latest = None;
        while let Some(&(end, value)) = self.list.front() {
            if value < p {
                break;
            }
            latest = Some(end);
            self.list.pop_front();
        }
        if let Some(end) = latest {
            self.list.push_front((end, p));
        }
    }

    #[inline(always)]
    fn add(&mut self, end: E, q: f64) {
        while self.list.back().is_some_and(|&(_, other)| other <= q) {
            self.list.pop_back();
        }
        self.list.push_back((end, q));
    }

    #[inline(always)]
    fn best(&self) -> f64 {
        self.list.front().map_or(f64::NEG_INFINITY, |&(_, value)| value)
    }
}

/// A queue with access to its minimum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Least {
    /// Entries without a smaller later one, in order: the first is the minimum.
    list: VecDeque<f64>,
}

impl Least {
    #[inline(always)]
    fn push(&mut self, p: f64) {
        while self.list.back().is_some_and(|&other| other > p) {
            self.list.pop_back();
        }
        self.list.push_back(p);
    }

    /// Removes the oldest entry, which was `p`.
    #[inline(always)]
    fn pop(&mut self, p: f64) {
        if self.list.front() == Some(&p) {
            self.list.pop_front();
        }
    }

    #[inline(always)]
    fn get(&self) -> f64 {
        self.list.front().copied().unwrap_or(f64::INFINITY)
    }
}

/// State in steps and points: robustness at rows only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SinceRows {
    lower: u64,
    upper: Option<u64>,
    limit: usize,
    /// Output while an entry was dropped for lack of room.
    unknown: f64,
    /// Rows younger than `lower`: stamp, `p`, `q`.
    waiting: VecDeque<(i64, f64, f64)>,
    /// Minimum of `p` over these.
    least: Least,
    witnesses: BestWitnesses<i64>,
    /// Only state of an unbounded `since`.
    running: f64,
    blind: BlindSpot,
}

impl SinceRows {
    pub(crate) fn new(lower: u64, upper: Option<u64>, unknown: f64, limit: usize) -> SinceRows {
        SinceRows {
            lower,
            upper,
            limit,
            unknown,
            waiting: VecDeque::new(),
            least: Least::default(),
            witnesses: BestWitnesses::new(),
            running: f64::NEG_INFINITY,
            blind: BlindSpot::default(),
        }
    }

    /// Evaluates the rows of a block.
    pub(crate) fn step(
        &mut self,
        out: &mut Values<f64>,
        [p, q]: [&Values<f64>; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) {
        let rows = out.iter_mut().zip(p.iter().zip(q)).take(len as usize);
        if self.is_unbounded() {
            let mut running = self.running;
            for (out, (&p, &q)) in rows {
                running = max(q, min(p, running));
                *out = running;
            }
            self.running = running;
        } else {
            for (i, (out, (&p, &q))) in rows.enumerate() {
                *out = self.row(stamps.at(i), p, q);
            }
        }
    }

    #[inline(always)]
    fn is_unbounded(&self) -> bool {
        self.lower == 0 && self.upper.is_none()
    }

    /// Evaluates a row.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, p: f64, q: f64) -> f64 {
        if self.is_unbounded() {
            self.running = max(q, min(p, self.running));
            self.running
        } else {
            self.bounded_row(now, p, q)
        }
    }

    #[inline(always)]
    fn bounded_row(&mut self, now: i64, p: f64, q: f64) -> f64 {
        if self.lower == 0 {
            self.admit(now, p, q);
        } else {
            self.waiting.push_back((now, p, q));
            self.least.push(p);
            while let Some(&(stamp, p, q)) = self.waiting.front() {
                if age(now, stamp) < self.lower {
                    break;
                }
                self.waiting.pop_front();
                self.least.pop(p);
                self.admit(stamp, p, q);
            }
            if self.waiting.len() > self.limit
                && let Some((stamp, p, _)) = self.waiting.pop_front()
            {
                self.least.pop(p);
                self.blind.drop(stamp);
            }
        }
        let clear = match self.upper {
            Some(upper) => {
                let list = &mut self.witnesses.list;
                while list.front().is_some_and(|&(stamp, _)| age(now, stamp) > upper) {
                    list.pop_front();
                }
                self.blind.is_over(now, upper.saturating_add(1))
            }
            None => self.blind.dropped == 0,
        };
        if clear { min(self.witnesses.best(), self.least.get()) } else { self.unknown }
    }

    #[inline(always)]
    fn admit(&mut self, stamp: i64, p: f64, q: f64) {
        self.witnesses.cap(p);
        // Witnesses that never leave: one is enough.
        if self.upper.is_none() && self.witnesses.best() >= q && !self.witnesses.list.is_empty() {
            return;
        }
        self.witnesses.add(stamp, q);
        if self.witnesses.list.len() > self.limit
            && let Some((stamp, _)) = self.witnesses.list.pop_front()
        {
            self.blind.drop(stamp);
        }
    }
}

impl Varying for SinceRows {
    fn bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(i64, f64, f64)>()
            + self.least.list.capacity() * size_of::<f64>()
            + self.witnesses.list.capacity() * size_of::<(i64, f64)>()
    }

    fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}

/// State in dense time: robustness at every real time, for signals that change at time points only.
///
/// Time is divided into pieces: the instants of the time points and the open intervals between them. On the
/// doubled axis, the instant `t` is the place `2t`, and the interval from `t` to `u` extends from `2t + 1` to
/// `2u - 1`. Bounds become closed at both ends, and values just after `t` are those at `2t + 1`. Places have
/// more bits than times, so that nothing overflows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DenseSince {
    lower: i128,
    upper: Option<i128>,
    limit: usize,
    unknown: f64,
    /// Last time point, and `p` and `q` after it.
    last: Option<(i64, f64, f64)>,
    /// Pieces that are entirely younger than `lower`.
    waiting: VecDeque<SincePiece>,
    least: Least,
    /// Witnesses, each with its last place.
    witnesses: BestWitnesses<i128>,
    /// Last place of the latest witness that ends with an interval, and its `q`.
    ended: Option<(i128, f64)>,
    /// Last place of the latest piece dropped for lack of room.
    blind: Option<i128>,
    dropped: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SincePiece {
    first: i128,
    last: i128,
    p: f64,
    q: f64,
}

impl SincePiece {
    /// Maximum robustness of a witness in the piece, as long as `p` persists.
    fn gives(&self) -> f64 {
        // Within an interval, part of it follows every witness.
        if self.first < self.last || self.last & 1 == 1 { min(self.p, self.q) } else { self.q }
    }
}

fn place(time: i64) -> i128 {
    2 * i128::from(time)
}

impl DenseSince {
    pub(crate) fn new(lower: u64, upper: Option<u64>, unknown: f64, limit: usize) -> DenseSince {
        DenseSince {
            lower: 2 * i128::from(lower),
            upper: upper.map(|upper| 2 * i128::from(upper)),
            limit,
            unknown,
            last: None,
            waiting: VecDeque::new(),
            least: Least::default(),
            witnesses: BestWitnesses::new(),
            ended: None,
            blind: None,
            dropped: 0,
        }
    }

    /// The robustness at a time point and just after it, from those of `p` and `q`.
    pub(crate) fn step(&mut self, now: i64, p: [f64; 2], q: [f64; 2]) -> [f64; 2] {
        let mut now = now;
        if let Some((last, p, q)) = self.last {
            now = now.max(last);
            // The interval between two time points of the same time is empty.
            if now > last {
                self.add(SincePiece { first: place(last) + 1, last: place(now) - 1, p, q });
            }
        }
        self.last = Some((now, p[1], q[1]));
        let here = place(now);
        self.add(SincePiece { first: here, last: here, p: p[0], q: q[0] });
        [self.at(here), self.after(here + 1, p[1], q[1])]
    }

    fn add(&mut self, piece: SincePiece) {
        if self.lower == 0 {
            self.admit(piece);
            return;
        }
        // A witness at an instant needs `p` only after it. Within a longer piece this makes no difference,
        // unless the instant is its end.
        let same = |back: &SincePiece| back.p == piece.p && back.q == piece.q;
        let is_span = piece.last & 1 == 1;
        match self.waiting.back_mut() {
            Some(back) if same(back) && (is_span || piece.q <= piece.p) => {
                back.last = piece.last;
                // The last piece was kept apart as the end of a piece, which it no longer is.
                let before = self.waiting.len().checked_sub(2).and_then(|i| self.waiting.get_mut(i));
                if let Some(before) = before.filter(|before| same(before)) {
                    before.last = piece.last;
                    self.waiting.pop_back();
                    self.least.list.pop_back();
                }
            }
            _ => {
                self.waiting.push_back(piece);
                self.least.push(piece.p);
            }
        }
        if self.waiting.len() > self.limit
            && let Some(piece) = self.waiting.pop_front()
        {
            self.least.pop(piece.p);
            self.drop(piece.last);
        }
    }

    fn drop(&mut self, last: i128) {
        self.blind = self.blind.max(Some(last));
        self.dropped = self.dropped.saturating_add(1);
    }

    fn admit(&mut self, piece: SincePiece) {
        let SincePiece { first, last, p, q } = piece;
        self.witnesses.cap(p);
        // A witness just before needs `p` only from here on.
        if let Some((end, before)) = self.ended.take()
            && end + 1 == first
        {
            self.witness(end, min(before, p));
        }
        if last & 1 == 1 {
            self.ended = Some((last, q));
        }
        self.witness(last, piece.gives());
    }

    fn witness(&mut self, last: i128, q: f64) {
        if self.upper.is_none() && self.witnesses.best() >= q && !self.witnesses.list.is_empty() {
            return;
        }
        self.witnesses.add(last, q);
        if self.witnesses.list.len() > self.limit
            && let Some((last, _)) = self.witnesses.list.pop_front()
        {
            self.drop(last);
        }
    }

    fn is_blind(&self, here: i128) -> bool {
        match (self.blind, self.upper) {
            (Some(last), Some(upper)) => last + upper >= here,
            (blind, _) => blind.is_some(),
        }
    }

    fn at(&mut self, here: i128) -> f64 {
        while let Some(&piece) = self.waiting.front() {
            if piece.first + self.lower > here {
                break;
            }
            self.waiting.pop_front();
            self.least.pop(piece.p);
            self.admit(piece);
        }
        if let Some(upper) = self.upper {
            let list = &mut self.witnesses.list;
            while list.front().is_some_and(|&(last, _)| last + upper < here) {
                list.pop_front();
            }
            self.blind = self.blind.filter(|&last| last + upper >= here);
        }
        if self.is_blind(here) { self.unknown } else { min(self.witnesses.best(), self.least.get()) }
    }

    /// The robustness just after a time point. Changes no state, since the next one may have the same time.
    fn after(&self, here: i128, p: f64, q: f64) -> f64 {
        if self.is_blind(here) {
            return self.unknown;
        }
        let best = self.best(here);
        if self.lower == 0 {
            return max(q, min(p, best));
        }
        // An interval that begins here, at this distance; its `p` is included in the minimum.
        let begins = self.waiting.front().filter(|piece| piece.first + self.lower == here);
        let best = begins.map_or(best, |piece| max(best, piece.q));
        min(min(best, self.least.get()), p)
    }

    /// Robustness of the best witness within the bounds at a place.
    fn best(&self, here: i128) -> f64 {
        let stays = |last: i128| self.upper.is_none_or(|upper| last + upper >= here);
        let best = self.witnesses.list.iter().find(|(last, _)| stays(*last));
        best.map_or(f64::NEG_INFINITY, |&(_, value)| value)
    }

    /// Earliest time after the last time point at which the robustness may change without a new one. Pieces
    /// that give no more than the current interval are skipped; otherwise every bound that passes would cause
    /// a change, without end.
    pub(crate) fn next_change(&self) -> Option<i64> {
        let (now, p, q) = self.last?;
        let of_span = min(p, q);
        // An even place and the odd one after it have the same time. So have the ends of a point and of the
        // interval before it.
        let enters = self.next_entry(now, p, q);
        let leaves = self.upper.and_then(|upper| {
            let leaves = |last: i128| (last + upper + 1) >> 1;
            // From there on, every piece gives as much as the interval.
            let lasting = self.waiting.iter().rev().take(DenseSince::LOOKS);
            let lasting = lasting.take_while(|piece| min(piece.gives(), p) >= of_span);
            let since = lasting.last().map_or(place(now) + 1, |piece| piece.first);
            let is_replaced =
                |last: i128, value: f64| min(value, p) <= of_span && last + 1 + upper >= since + self.lower;
            // A piece that has just entered the bounds is not among the witnesses yet.
            let begun = self.waiting.iter().take_while(|piece| piece.first + self.lower <= place(now) + 1);
            let begun = begun.map(|piece| (piece.last, piece.gives()));
            let before = self.waiting.iter().enumerate();
            let before = before.take_while(|(_, piece)| piece.first + self.lower <= place(now) + 1);
            let before = before.map(|(i, piece)| (piece.first - 1, self.gave_before(i)));
            // In the order of places, so that the first match is the earliest.
            let next = |ends: &mut dyn Iterator<Item = (i128, f64)>| {
                let ends = ends.filter(|&(last, value)| !is_replaced(last, value));
                ends.map(|(last, _)| leaves(last)).find(|&time| time > now.into())
            };
            let firsts =
                [next(&mut self.witnesses.list.iter().copied()), next(&mut { begun }), next(&mut { before })];
            [firsts.into_iter().flatten().min(), self.blind.map(leaves).filter(|&time| time > now.into())]
                .into_iter()
                .flatten()
                .min()
        });
        [enters, leaves].into_iter().flatten().min().and_then(|time| i64::try_from(time).ok())
    }

    /// Earliest place at which a piece that becomes `lower` old may raise the robustness. Pieces that give no
    /// more are skipped; otherwise every time point would cause another one after `lower`, without end.
    fn next_entry(&self, now: i64, p: f64, q: f64) -> Option<i128> {
        let here = place(now) + 1;
        if self.lower == 0 || self.is_blind(here) {
            return None;
        }
        let given = self.after(here, p, q);
        let time_of = |first: i128| (first + self.lower) >> 1;
        let waiting = self.waiting.iter().enumerate();
        let waiting = waiting.filter(|(_, piece)| time_of(piece.first) > now.into());
        for (looks, (i, piece)) in waiting.enumerate() {
            // Looking at all pieces at every time point would cost more than an additional time point.
            if looks == DenseSince::LOOKS || min(max(piece.gives(), self.gave_before(i)), p) > given {
                return Some(time_of(piece.first));
            }
        }
        // The current interval.
        (min(p, q) > given).then(|| time_of(here))
    }

    /// Robustness of `q` that ended just before a waiting piece, as long as `p` persists.
    fn gave_before(&self, i: usize) -> f64 {
        let piece = &self.waiting[i];
        let ended = match i.checked_sub(1) {
            Some(i) => Some((self.waiting[i].last, self.waiting[i].q)).filter(|(last, _)| last & 1 == 1),
            None => self.ended,
        };
        let before = ended.filter(|(end, _)| end + 1 == piece.first);
        before.map_or(f64::NEG_INFINITY, |(_, q)| min(q, piece.p))
    }

    /// Limit of pieces that are searched for the next change.
    const LOOKS: usize = 16;
}

impl Varying for DenseSince {
    fn bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<SincePiece>()
            + self.least.list.capacity() * size_of::<f64>()
            + self.witnesses.list.capacity() * size_of::<(i128, f64)>()
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests;
