mod drive;
mod given;

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use rondel_event::Verdict;
use rondel_spec::TimeModel;

use super::key::{self, Key};
use super::leaf::{Piece, Until};
use super::plan::{Plan, Range, Skeleton};
use super::queue::{Arrival, BOTH, Entry, Queue, Resolved};
use crate::ops::varying::Varying;
pub(crate) use drive::{EventRows, Survey};
use given::Given;

/// A verdict about an interval, now that it is certain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decision {
    /// What it is about: from this place
    pub(crate) from: Key,
    /// to this one.
    pub(crate) to: Key,
    pub(crate) verdict: Verdict,
    /// Where that is asked for, and known.
    pub(crate) robustness: Option<f64>,
    /// It is another than the one about the nearest earlier place about which there is one yet.
    pub(crate) changed: bool,
    /// So is its robustness.
    pub(crate) moved: bool,
    /// What it is about begins with a moment, or with the time after one; otherwise it goes on with
    /// what the verdict before was about.
    pub(crate) is_fresh: bool,
    /// From which place on it is certain.
    pub(crate) certain: Key,
    /// What was noted of the moment that it is about.
    pub(crate) tag: i64,
}

impl Decision {
    /// The time that it is about; where that is an interval, its beginning.
    pub(crate) fn about_time(&self, model: TimeModel) -> i64 {
        time_of(self.from, self.tag, model)
    }

    /// When it became certain, in points and dense time.
    pub(crate) fn certain_time(&self, model: TimeModel) -> i64 {
        time_of(self.certain, 0, model)
    }

    /// Whether it became certain on the span after an instant of dense time.
    pub(crate) fn is_certain_after(&self) -> bool {
        key::axis(self.certain) & 1 == 1
    }

    /// Whether it is about the time after an instant of dense time.
    pub(crate) fn is_after(&self, model: TimeModel) -> bool {
        model == TimeModel::Dense && !self.is_instant()
    }

    /// In steps, how many of them before the one that it became certain at it is about.
    pub(crate) fn steps_back(&self, model: TimeModel) -> u64 {
        let back = key::axis(self.certain) - key::axis(self.from);
        if model == TimeModel::Steps { u64::try_from(back).unwrap_or(0) } else { 0 }
    }

    /// Whether it is about an instant of dense time, and not the time after one.
    pub(crate) fn is_instant(&self) -> bool {
        key::axis(self.from) & 1 == 0
    }
}

/// The time of a place. Steps have it as their tag.
fn time_of(place: Key, tag: i64, model: TimeModel) -> i64 {
    let time = match model {
        TimeModel::Steps => return tag,
        TimeModel::Points => key::axis(place),
        TimeModel::Dense => key::axis(place) >> 1,
    };
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

/// A past at a moment: bit 0 for certainly, bit 1 for possibly true.
pub(crate) type PastTruth = u8;

/// `next` in points, on one rail: the events, and whether the operand is decided there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Next {
    events: VecDeque<(Key, bool)>,
}

impl Next {
    fn decide(&mut self, piece: Piece, out: &mut Vec<Piece>) {
        let mut i = self.events.partition_point(|event| event.0 < piece.lo);
        while self.events.get(i).is_some_and(|event| event.0 <= piece.hi) {
            self.events[i].1 = true;
            if let Some(before) = i.checked_sub(1) {
                let at = self.events[before].0;
                out.push(Piece { lo: at, hi: at, moving: false, ..piece });
            }
            i += 1;
        }
        // The last is the one before that which comes.
        while self.events.len() > 1 && self.events[0].1 && self.events[1].1 {
            self.events.pop_front();
        }
    }
}

/// One rail of a leaf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum LeafRail {
    Until(Until),
    Next(Next),
    Given(Given),
}

/// What a property with operators of the future has pending: plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    queues: Vec<Queue>,
    rails: Vec<[LeafRail; 2]>,
    /// The last place that has been seen, once there is one.
    seen: Option<Key>,
    /// How many moments had the time of the last one.
    number: u64,
    /// Counts moments; never 0.
    epoch: u32,
    /// The pasts at the last moment, and in the time after it (dense).
    at: Vec<PastTruth>,
    after: Vec<PastTruth>,
    /// Moments are kept apart.
    apart: bool,
    /// Nothing is said of the time after the last moment but what has been said of it.
    quiet: bool,
    /// What has been decided elsewhere, to be taken in with what comes next: the leaf, the rail, and where.
    #[serde(skip)]
    heard: Vec<(u32, u8, Piece)>,
    /// How many entries a queue may have.
    limit: usize,
    lost: u64,
}

/// Room to work in: nothing in it outlives a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// For every leaf what its operands have become, the left one and the right one.
    operands: Vec<[Vec<Resolved>; 2]>,
    /// For every skeleton what its leaves have become: which, on which rail, and where.
    inbox: Vec<Vec<(u32, u8, Piece)>>,
    ranges: Vec<Range>,
    truths: Vec<PastTruth>,
    pieces: Vec<Piece>,
    resolved: Vec<Resolved>,
    verdicts: Vec<Key>,
    /// What has been decided of the formula on each rail, where somebody wants to know.
    pub(crate) rails: Option<Vec<RailDecision>>,
}

/// A rail of the formula has been decided about a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RailDecision {
    /// What was noted of the moment; nothing if it is not about one.
    pub(crate) tag: i64,
    pub(crate) rail: usize,
    pub(crate) value: bool,
    /// The coordinate from which on it is certain.
    pub(crate) axis: i128,
}

impl Scratch {
    fn make_room(&mut self, plan: &Plan) {
        self.inbox.resize_with(plan.skeletons.len().max(self.inbox.len()), Vec::new);
        self.operands.resize_with(plan.leaves.len().max(self.operands.len()), Default::default);
    }
}

/// An interval on which all pasts are constant.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    from: Key,
    to: Key,
    /// Time may go on beyond its end with nothing changed.
    moving: bool,
    is_echo: bool,
    is_fresh: bool,
    tag: i64,
}

impl Pending {
    /// So many entries a queue may have, if nothing else is said.
    pub(crate) const LIMIT: usize = 1_000_000;

    pub(crate) fn new(plan: &Plan, limit: usize) -> Pending {
        let rail = |has_left: bool, is_next: bool| {
            if is_next { LeafRail::Next(Next::default()) } else { LeafRail::Until(Until::new(has_left)) }
        };
        let rails = |leaf: &super::plan::Leaf| {
            let rail = match leaf.given {
                Some(_) => LeafRail::Given(Given::default()),
                None => rail(leaf.has_left, leaf.reach.is_none()),
            };
            [rail.clone(), rail]
        };
        Pending {
            queues: vec![Queue::default(); plan.skeletons.len()],
            rails: plan.leaves.iter().map(rails).collect(),
            seen: None,
            number: 0,
            epoch: 1,
            at: Vec::new(),
            after: Vec::new(),
            apart: false,
            quiet: false,
            heard: Vec::new(),
            limit: limit.max(1),
            lost: 0,
        }
    }

    /// As it was when it was new, but that this was the verdict about what came before.
    pub(crate) fn restart(&mut self, before: Option<Verdict>) {
        self.queues.iter_mut().for_each(|queue| queue.restart(None));
        if let Some(queue) = self.queues.last_mut() {
            queue.restart(before);
        }
        for rail in self.rails.iter_mut().flatten() {
            match rail {
                LeafRail::Until(until) => until.clear(),
                LeafRail::Next(next) => next.events.clear(),
                LeafRail::Given(given) => *given = Given::default(),
            }
        }
        (self.seen, self.number, self.epoch) = (None, 0, 1);
        self.at.clear();
        self.after.clear();
        (self.quiet, self.lost) = (false, 0);
    }

    /// If nothing of what it has seen is asked for any more, since all verdicts about it are given, and in
    /// dense time also that about the time after it is certain at once: the last verdict, and the
    /// one about the time after it. All operators look ahead only: one that is new goes on as this one would.
    pub(crate) fn rests(&self, plan: &Plan, scratch: &mut Scratch) -> Option<[Verdict; 2]> {
        let queue = self.queues.last().filter(|queue| queue.open() == 0)?;
        let last = queue.last_given()?;
        if plan.time != TimeModel::Dense {
            return Some([last; 2]);
        }
        let settled = self.is_settled(plan, &self.after, scratch);
        let after = scratch.ranges.last().filter(|_| settled)?;
        Some([last, after.verdict()])
    }

    /// Whether it is of the same property.
    pub(crate) fn fits(&self, other: &Pending) -> bool {
        let same = |(a, b): (&LeafRail, &LeafRail)| match (a, b) {
            (LeafRail::Until(a), LeafRail::Until(b)) => a.fits(b),
            (LeafRail::Next(_), LeafRail::Next(_)) | (LeafRail::Given(_), LeafRail::Given(_)) => true,
            _ => false,
        };
        self.queues.len() == other.queues.len()
            && self.rails.len() == other.rails.len()
            && self.rails.iter().flatten().zip(other.rails.iter().flatten()).all(same)
    }

    /// How many entries a queue may have from here on.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// How many obligations were given up because there were too many.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// How many obligations wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.iter().map(Queue::open).sum()
    }

    /// How many verdicts wait.
    #[cfg(test)]
    pub(crate) fn verdicts_waiting(&self) -> usize {
        self.queues.last().map_or(0, Queue::open)
    }

    /// The first place about which there is no verdict yet, with what was noted of it.
    #[cfg(test)]
    pub(crate) fn oldest(&self) -> Option<(Key, i64)> {
        self.queues.last().and_then(Queue::front).map(|entry| (entry.from, entry.tag))
    }

    /// The first coordinate after `after` at which what is seen may begin to decide something else than
    /// before, if nothing happens.
    fn next_change(&self, plan: &Plan, after: i128) -> Option<i128> {
        let end = self.seen.unwrap_or(key::START);
        let mut next: Option<i128> = None;
        let mut offer = |at: i128| {
            if at > after {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        };
        for (leaf, rails) in plan.leaves.iter().zip(&self.rails) {
            for &lag in &leaf.lags {
                for &(owner, _) in &leaf.owners {
                    if let Some(at) = self.queues[owner as usize].edge(after - lag, end, self.epoch) {
                        offer(at + lag);
                    }
                }
                let Some(reach) = leaf.reach else { continue };
                for rail in rails {
                    if let LeafRail::Until(until) = rail {
                        until.starts(reach, after - lag, |at| offer(at + lag));
                    }
                }
            }
        }
        next
    }

    /// Whether the formula is decided at once about everything so far, and is so with these pasts.
    fn is_settled(&self, plan: &Plan, pasts: &[PastTruth], scratch: &mut Scratch) -> bool {
        let (Some(root), Some(queue)) = (plan.skeletons.last(), self.queues.last()) else { return true };
        let known = |i: usize| range(truth(root, pasts, i));
        queue.open() == 0 && {
            // What is decided elsewhere is false between moments.
            let leaf = |i: usize| self.between(plan, root, i);
            let [certain, possible] = root.evaluate(known, leaf, &mut scratch.ranges).decided();
            certain & possible & 1 == 1
        }
    }

    /// The trace is over: of what still waits nothing will be known.
    pub(crate) fn end(&mut self, out: &mut Vec<Decision>) {
        let Some(queue) = self.queues.last_mut() else { return };
        let mut places = Vec::new();
        queue.give_up_all(&mut places);
        // Nothing is about the place that this is certain at.
        tell(queue, &mut places, self.seen.map_or(0, |seen| seen + 1), out);
        self.queues.iter_mut().for_each(Queue::clean);
    }

    /// Takes a chunk, and what the inbox has, through all skeletons.
    fn feed(
        &mut self,
        plan: &Plan,
        chunk: Option<(Chunk, &[PastTruth])>,
        certain: Key,
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        scratch.make_room(plan);
        let root = plan.skeletons.len().saturating_sub(1);
        if let Some((chunk, _)) = chunk {
            self.place_given(plan, chunk);
        }
        for (leaf, rail, piece) in self.heard.drain(..) {
            for &(owner, place) in &plan.leaves[leaf as usize].owners {
                scratch.inbox[owner as usize].push((place, rail, piece));
            }
        }
        let (end, moving) = chunk.map_or((key::START, false), |(chunk, _)| (chunk.to, chunk.moving));
        for (k, skeleton) in plan.skeletons.iter().enumerate() {
            let mut at_once = None;
            scratch.resolved.clear();
            scratch.verdicts.clear();
            if let Some((Chunk { from, to, is_echo, is_fresh, tag, .. }, pasts)) = chunk {
                let truth = |i: usize| truth(skeleton, pasts, i);
                let known = |i: usize| range(truth(i));
                let leaf = |i: usize| if moving { self.between(plan, skeleton, i) } else { Range::PENDING };
                let range = skeleton.evaluate(known, leaf, &mut scratch.ranges);
                let mut given = 0;
                let [certainly, possibly] = range.decided();
                for (rail, decided, value) in
                    [(0, certainly, range.certain[0]), (1, possibly, range.possible[0])]
                {
                    if decided & 1 == 1 {
                        given |= 1 << rail;
                        let piece = Piece { lo: from, hi: to, value: value & 1 == 1, moving };
                        let tag = if is_fresh && !is_echo { tag } else { 0 };
                        scratch.resolved.push(Resolved { rail, piece, tag });
                    }
                }
                if given == BOTH {
                    at_once = Some(range.verdict());
                } else {
                    let mut past = [0; 2];
                    for i in 0..skeleton.pasts.len() {
                        past[0] |= u32::from(truth(i) & 1) << i;
                        past[1] |= u32::from(truth(i) >> 1 & 1) << i;
                    }
                    // What only goes on begins where it does for no reason.
                    let moved = if moving && !is_fresh { self.epoch } else { 0 };
                    let may_merge = plan.time == TimeModel::Dense && !(self.apart && is_fresh);
                    self.queues[k].push(
                        Arrival { from, to, given, is_fresh, is_echo, tag, moved },
                        past,
                        may_merge,
                    );
                    if self.queues[k].open() > self.limit {
                        let resolved = &mut scratch.resolved;
                        let gone = self.queues[k].give_up(|decided| resolved.push(decided));
                        scratch.verdicts.extend(gone);
                        self.lost = self.lost.saturating_add(1);
                    }
                }
            }
            // Both operands have come by now. The left one goes first: it is what the right one is held against.
            for &leaf in &skeleton.leaves {
                let of = &plan.leaves[leaf as usize];
                let [left, right] = &mut scratch.operands[leaf as usize];
                let both = left.drain(..).map(|x| (x, true)).chain(right.drain(..).map(|x| (x, false)));
                for (Resolved { rail, piece, .. }, is_left) in both {
                    match (&mut self.rails[leaf as usize][rail], of.reach) {
                        (LeafRail::Until(until), Some(reach)) if is_left => {
                            until.left(reach, piece, &mut scratch.pieces);
                        }
                        (LeafRail::Until(until), Some(reach)) => {
                            until.right(reach, piece, &mut scratch.pieces)
                        }
                        (LeafRail::Next(next), _) => next.decide(piece, &mut scratch.pieces),
                        _ => {}
                    }
                    post(&of.owners, rail, &mut scratch.pieces, &mut scratch.inbox);
                }
            }
            let queue = &mut self.queues[k];
            let inbox = &mut scratch.inbox[k];
            for &(leaf, rail, piece) in inbox.iter() {
                queue.set(leaf as usize, rail.into(), piece, self.epoch);
            }
            for (_, _, piece) in inbox.drain(..) {
                let (resolved, verdicts) = (&mut scratch.resolved, &mut scratch.verdicts);
                let now = (end, moving, self.epoch);
                queue.resolve(
                    skeleton,
                    piece,
                    now,
                    &mut scratch.ranges,
                    |decided| resolved.push(decided),
                    |from| verdicts.push(from),
                );
            }
            for resolved in &scratch.resolved {
                for &(leaf, is_left) in &skeleton.feeds {
                    scratch.operands[leaf as usize][usize::from(!is_left)].push(*resolved);
                }
            }
            if k == root {
                let decided = |resolved: &Resolved| (resolved.tag, resolved.rail, resolved.piece.value);
                if let Some(rails) = &mut scratch.rails {
                    rails.extend(scratch.resolved.iter().map(decided).map(|(tag, rail, value)| {
                        RailDecision { tag, rail, value, axis: key::axis(certain) }
                    }));
                }
                tell(&self.queues[k], &mut scratch.verdicts, certain, out);
                if let (Some(verdict), Some((chunk, _))) = (at_once, chunk) {
                    let changed = self.queues[k].give(verdict);
                    if !chunk.is_echo {
                        let Chunk { from, to, is_fresh, tag, .. } = chunk;
                        let (robustness, moved) = (None, false);
                        out.push(Decision {
                            from,
                            to,
                            verdict,
                            robustness,
                            changed,
                            moved,
                            is_fresh,
                            certain,
                            tag,
                        });
                    }
                }
            }
            self.queues[k].clean();
        }
        for (leaf, rails) in plan.leaves.iter().zip(&mut self.rails) {
            for rail in rails {
                if let (LeafRail::Until(until), Some(reach)) = (rail, leaf.reach) {
                    until.forget(reach);
                }
            }
        }
    }

    /// How many obligations and intervals it keeps.
    pub(crate) fn kept(&self) -> usize {
        let rail = |rail: &LeafRail| match rail {
            LeafRail::Until(until) => until.kept(),
            LeafRail::Next(next) => next.events.len(),
            LeafRail::Given(given) => given.kept(),
        };
        self.waiting() + self.rails.iter().flatten().map(rail).sum::<usize>()
    }
}

impl Varying for Pending {
    fn bytes(&self) -> usize {
        size_of::<Pending>()
            + self.queues.len() * size_of::<Queue>()
            + self.rails.len() * size_of::<[LeafRail; 2]>()
            + self.kept() * size_of::<Entry>()
    }

    fn dropped(&self) -> u64 {
        self.lost
    }
}

/// Gives the verdicts about the entries that begin at these places.
fn tell(queue: &Queue, places: &mut [Key], certain: Key, out: &mut Vec<Decision>) {
    places.sort_unstable();
    let first = out.len();
    for &from in places.iter() {
        let Some((entry, verdict, changed)) = queue.verdict_at(from) else { continue };
        if entry.is_echo {
            continue;
        }
        match out[first..].last_mut() {
            // Operands that come one after the other decide in parts what is decided as one.
            Some(last) if !entry.is_fresh && !changed && last.to + 1 == from => last.to = entry.to,
            _ => {
                let Entry { to, is_fresh, tag, .. } = *entry;
                let (robustness, moved) = (None, false);
                out.push(Decision { from, to, verdict, robustness, changed, moved, is_fresh, certain, tag });
            }
        }
    }
}

/// Gives what a leaf has become to the skeletons that have it.
fn post(owners: &[(u32, u32)], rail: usize, pieces: &mut Vec<Piece>, inbox: &mut [Vec<(u32, u8, Piece)>]) {
    for piece in pieces.drain(..) {
        for &(owner, leaf) in owners {
            inbox[owner as usize].push((leaf, rail as u8, piece));
        }
    }
}

/// A past of a skeleton.
fn truth(skeleton: &Skeleton, pasts: &[PastTruth], i: usize) -> PastTruth {
    let past = skeleton.pasts.get(i).and_then(|&i| pasts.get(i as usize));
    past.copied().unwrap_or(0b10)
}

fn range(truth: PastTruth) -> Range {
    let truth = u64::from(truth);
    Range::known((truth & 1).wrapping_neg(), (truth >> 1 & 1).wrapping_neg())
}

fn copy(to: &mut Vec<PastTruth>, from: &[PastTruth]) {
    to.clear();
    to.extend_from_slice(from);
}
