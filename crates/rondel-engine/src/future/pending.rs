mod drive;
mod external;

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use rondel_event::Verdict;
use rondel_spec::TimeModel;

use super::key::{self, Key};
use super::plan::{BoolFrame, Plan, Range};
use super::queue::{Arrival, BOTH, ChunkEnd, Entry, Queue, Resolved};
use super::until::{Piece, Until};
use crate::ops::varying::Varying;
pub(crate) use drive::{EventRows, Survey};
use external::External;

/// Decided verdict about an interval of places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decision {
    /// First place of the interval.
    pub(crate) from: Key,
    /// Last place of the interval.
    pub(crate) to: Key,
    pub(crate) verdict: Verdict,
    /// Robustness, where requested and known.
    pub(crate) robustness: Option<f64>,
    /// Whether the verdict differs from that of the nearest earlier place with a verdict.
    pub(crate) changed: bool,
    /// Whether the robustness differs likewise.
    pub(crate) moved: bool,
    /// Whether the interval begins with a time point or with the open interval after one; otherwise it
    /// continues that of the preceding verdict.
    pub(crate) is_fresh: bool,
    /// Place at which the verdict became certain.
    pub(crate) certain: Key,
    /// Tag that the caller gave the time point.
    pub(crate) tag: i64,
}

impl Decision {
    /// Returns the time of the interval's beginning.
    pub(crate) fn about_time(&self, model: TimeModel) -> i64 {
        time_of(self.from, self.tag, model)
    }

    /// Returns the time at which the verdict became certain, in points and dense time.
    pub(crate) fn certain_time(&self, model: TimeModel) -> i64 {
        time_of(self.certain, 0, model)
    }

    /// Whether it became certain on the open interval after an instant of dense time.
    pub(crate) fn is_certain_after(&self) -> bool {
        key::axis(self.certain) & 1 == 1
    }

    /// Whether it is about the open interval after an instant of dense time.
    pub(crate) fn is_after(&self, model: TimeModel) -> bool {
        model == TimeModel::Dense && !self.is_instant()
    }

    /// Returns the number of steps between the decided step and the one that decided it; 0 in other time
    /// models.
    pub(crate) fn steps_back(&self, model: TimeModel) -> u64 {
        let back = key::axis(self.certain) - key::axis(self.from);
        if model == TimeModel::Steps { u64::try_from(back).unwrap_or(0) } else { 0 }
    }

    /// Whether it is about an instant of dense time, and not the open interval after one.
    pub(crate) fn is_instant(&self) -> bool {
        key::axis(self.from) & 1 == 0
    }
}

/// Returns the time of a place. Steps have it as their tag.
fn time_of(place: Key, tag: i64, model: TimeModel) -> i64 {
    let time = match model {
        TimeModel::Steps => return tag,
        TimeModel::Points => key::axis(place),
        TimeModel::Dense => key::axis(place) >> 1,
    };
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

/// Past at a time point: bit 0 for certainly, bit 1 for possibly true.
pub(crate) type PastTruth = u8;

/// `next` in points, for one truth bound: the events, and whether the operand is decided there.
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
        // The last event is the predecessor of the one to come.
        while self.events.len() > 1 && self.events[0].1 && self.events[1].1 {
            self.events.pop_front();
        }
    }
}

/// State of one truth bound of an obligation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum ObligationState {
    Until(Until),
    Next(Next),
    External(External),
}

/// Pending state of a property with future operators: plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    queues: Vec<Queue>,
    obligations: Vec<[ObligationState; 2]>,
    /// Last place seen.
    seen: Option<Key>,
    /// Number of time points at the time of the last one.
    number: u64,
    /// Counter of time points; never 0.
    epoch: u32,
    /// Pasts at the last time point, and on the open interval after it (dense time).
    at: Vec<PastTruth>,
    after: Vec<PastTruth>,
    /// Time points are not merged.
    apart: bool,
    /// No verdict is due on the open interval after the last time point except the one already emitted.
    quiet: bool,
    /// External decisions that the next feed processes: obligation, truth bound, and places.
    #[serde(skip)]
    received: Vec<(u32, u8, Piece)>,
    /// Maximum number of entries of a queue.
    limit: usize,
    lost: u64,
}

/// Working memory; nothing in it outlives a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// Decisions about the operands of each obligation, left and right.
    operands: Vec<[Vec<Resolved>; 2]>,
    /// Decisions about the obligations of each frame: which obligation, which truth bound, which places.
    inbox: Vec<Vec<(u32, u8, Piece)>>,
    ranges: Vec<Range>,
    truths: Vec<PastTruth>,
    pieces: Vec<Piece>,
    resolved: Vec<Resolved>,
    verdicts: Vec<Key>,
    /// Decisions about each truth bound of the formula, where requested.
    pub(crate) bounds: Option<Vec<BoundDecision>>,
}

/// Decision about one truth bound of the formula at a time point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundDecision {
    /// Tag of the time point; 0 for a place that is none.
    pub(crate) tag: i64,
    pub(crate) bound: usize,
    pub(crate) value: bool,
    /// Coordinate from which on it is certain.
    pub(crate) axis: i128,
}

impl Scratch {
    fn make_room(&mut self, plan: &Plan) {
        self.inbox.resize_with(plan.frames.len().max(self.inbox.len()), Vec::new);
        self.operands.resize_with(plan.obligations.len().max(self.operands.len()), Default::default);
    }
}

/// Interval on which all pasts are constant.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    from: Key,
    to: Key,
    /// Time may go on beyond its end without a change.
    moving: bool,
    is_echo: bool,
    is_fresh: bool,
    tag: i64,
}

impl Pending {
    /// Default limit of the entries of a queue.
    pub(crate) const LIMIT: usize = 1_000_000;

    pub(crate) fn new(plan: &Plan, limit: usize) -> Pending {
        let states = |obligation: &super::plan::Obligation| {
            let state = match (obligation.external, obligation.reach) {
                (Some(_), _) => ObligationState::External(External::default()),
                (None, None) => ObligationState::Next(Next::default()),
                (None, Some(_)) => ObligationState::Until(Until::new(obligation.has_left)),
            };
            [state.clone(), state]
        };
        Pending {
            queues: vec![Queue::default(); plan.frames.len()],
            obligations: plan.obligations.iter().map(states).collect(),
            seen: None,
            number: 0,
            epoch: 1,
            at: Vec::new(),
            after: Vec::new(),
            apart: false,
            quiet: false,
            received: Vec::new(),
            limit: limit.max(1),
            lost: 0,
        }
    }

    /// Resets the state, with `before` as the verdict about the time before.
    pub(crate) fn restart(&mut self, before: Option<Verdict>) {
        self.queues.iter_mut().for_each(|queue| queue.restart(None));
        if let Some(queue) = self.queues.last_mut() {
            queue.restart(before);
        }
        for state in self.obligations.iter_mut().flatten() {
            match state {
                ObligationState::Until(until) => until.clear(),
                ObligationState::Next(next) => next.events.clear(),
                ObligationState::External(external) => *external = External::default(),
            }
        }
        (self.seen, self.number, self.epoch) = (None, 0, 1);
        self.at.clear();
        self.after.clear();
        (self.quiet, self.lost) = (false, 0);
    }

    /// Returns the last verdict and the one on the open interval after it, if no earlier place is open and,
    /// in dense time, the verdict on that interval is certain at once. The state may then be freed: future
    /// operators never read earlier places, so a new state continues in the same way.
    pub(crate) fn quiescent_verdicts(&self, plan: &Plan, scratch: &mut Scratch) -> Option<[Verdict; 2]> {
        let queue = self.queues.last().filter(|queue| queue.open() == 0)?;
        let last = queue.last_verdict()?;
        if plan.time != TimeModel::Dense {
            return Some([last; 2]);
        }
        let is_decided = self.is_decided(plan, &self.after, scratch);
        let after = scratch.ranges.last().filter(|_| is_decided)?;
        Some([last, after.verdict()])
    }

    /// Whether the state belongs to the same property.
    pub(crate) fn fits(&self, other: &Pending) -> bool {
        let same = |(a, b): (&ObligationState, &ObligationState)| match (a, b) {
            (ObligationState::Until(a), ObligationState::Until(b)) => a.fits(b),
            (ObligationState::Next(_), ObligationState::Next(_))
            | (ObligationState::External(_), ObligationState::External(_)) => true,
            _ => false,
        };
        self.queues.len() == other.queues.len()
            && self.obligations.len() == other.obligations.len()
            && self.obligations.iter().flatten().zip(other.obligations.iter().flatten()).all(same)
    }

    /// Sets the maximum number of entries of a queue.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// Number of entries dropped because of the limit.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of undecided entries.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.iter().map(Queue::open).sum()
    }

    /// Number of undecided verdicts.
    #[cfg(test)]
    pub(crate) fn verdicts_waiting(&self) -> usize {
        self.queues.last().map_or(0, Queue::open)
    }

    /// Returns the first place without a verdict, with its tag.
    #[cfg(test)]
    pub(crate) fn oldest(&self) -> Option<(Key, i64)> {
        self.queues.last().and_then(Queue::front).map(|entry| (entry.from, entry.tag))
    }

    /// Returns the first coordinate after `after` at which the passing of time may begin to decide something
    /// different, if nothing happens.
    fn next_change(&self, plan: &Plan, after: i128) -> Option<i128> {
        let end = self.seen.unwrap_or(key::START);
        let mut next: Option<i128> = None;
        let mut offer = |at: i128| {
            if at > after {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        };
        for (obligation, states) in plan.obligations.iter().zip(&self.obligations) {
            for &lag in &obligation.lags {
                for &(owner, _) in &obligation.owners {
                    if let Some(at) = self.queues[owner as usize].edge(after - lag, end, self.epoch) {
                        offer(at + lag);
                    }
                }
                let Some(reach) = obligation.reach else { continue };
                for state in states {
                    if let ObligationState::Until(until) = state {
                        until.starts(reach, after - lag, |at| offer(at + lag));
                    }
                }
            }
        }
        next
    }

    /// Whether the formula is decided everywhere so far, and is decided at once for these pasts.
    fn is_decided(&self, plan: &Plan, pasts: &[PastTruth], scratch: &mut Scratch) -> bool {
        let (Some(root), Some(queue)) = (plan.frames.last(), self.queues.last()) else { return true };
        let known = |i: usize| range(truth(root, pasts, i));
        queue.open() == 0 && {
            // External truths are false between time points.
            let obligation = |i: usize| self.between(plan, root, i);
            let [certain, possible] = root.evaluate(known, obligation, &mut scratch.ranges).decided();
            certain & possible & 1 == 1
        }
    }

    /// Ends the trace: all open places become inconclusive.
    pub(crate) fn end(&mut self, out: &mut Vec<Decision>) {
        let Some(queue) = self.queues.last_mut() else { return };
        let mut places = Vec::new();
        queue.give_up_all(&mut places);
        // The deciding place lies after the trace.
        emit(queue, &mut places, self.seen.map_or(0, |seen| seen + 1), out);
        self.queues.iter_mut().for_each(Queue::clean);
    }

    /// Evaluates a chunk in the frame with index `k`. Returns the verdict if it is decided at once; otherwise the chunk waits.
    fn take_chunk(
        &mut self,
        plan: &Plan,
        k: usize,
        chunk: Chunk,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
    ) -> Option<Verdict> {
        let frame = &plan.frames[k];
        let Chunk { from, to, is_echo, is_fresh, tag, moving, .. } = chunk;
        let truth = |i: usize| truth(frame, pasts, i);
        let known = |i: usize| range(truth(i));
        let obligation = |i: usize| if moving { self.between(plan, frame, i) } else { Range::PENDING };
        let range = frame.evaluate(known, obligation, &mut scratch.ranges);
        let mut decided = 0;
        let [certainly, possibly] = range.decided();
        for (bound, is_decided, value) in [(0, certainly, range.certain[0]), (1, possibly, range.possible[0])]
        {
            if is_decided & 1 == 1 {
                decided |= 1 << bound;
                let piece = Piece { lo: from, hi: to, value: value & 1 == 1, moving };
                let tag = if is_fresh && !is_echo { tag } else { 0 };
                scratch.resolved.push(Resolved { bound, piece, tag });
            }
        }
        if decided == BOTH {
            return Some(range.verdict());
        }
        let mut past = [0; 2];
        for i in 0..frame.pasts.len() {
            past[0] |= u32::from(truth(i) & 1) << i;
            past[1] |= u32::from(truth(i) >> 1 & 1) << i;
        }
        // An interval that continues the one before has no beginning of its own.
        let moved = if moving && !is_fresh { self.epoch } else { 0 };
        let may_merge = plan.time == TimeModel::Dense && !(self.apart && is_fresh);
        self.queues[k].push(Arrival { from, to, decided, is_fresh, is_echo, tag, moved }, past, may_merge);
        if self.queues[k].open() > self.limit {
            let resolved = &mut scratch.resolved;
            let gone = self.queues[k].give_up(|decided| resolved.push(decided));
            scratch.verdicts.extend(gone);
            self.lost = self.lost.saturating_add(1);
        }
        None
    }

    /// Passes the decisions about both operands of the obligations of a frame on. The left one goes first, as rules for the
    /// right one refer to it.
    fn decide_operands(&mut self, plan: &Plan, frame: &BoolFrame, scratch: &mut Scratch) {
        for &obligation in &frame.obligations {
            let of = &plan.obligations[obligation as usize];
            let [left, right] = &mut scratch.operands[obligation as usize];
            let both = left.drain(..).map(|x| (x, true)).chain(right.drain(..).map(|x| (x, false)));
            for (Resolved { bound, piece, .. }, is_left) in both {
                match (&mut self.obligations[obligation as usize][bound], of.reach) {
                    (ObligationState::Until(until), Some(reach)) if is_left => {
                        until.left(reach, piece, &mut scratch.pieces);
                    }
                    (ObligationState::Until(until), Some(reach)) => {
                        until.right(reach, piece, &mut scratch.pieces)
                    }
                    (ObligationState::Next(next), _) => next.decide(piece, &mut scratch.pieces),
                    _ => {}
                }
                post(&of.owners, bound, &mut scratch.pieces, &mut scratch.inbox);
            }
        }
    }

    /// Evaluates a chunk and the inbox in all frames.
    fn feed(
        &mut self,
        plan: &Plan,
        chunk: Option<(Chunk, &[PastTruth])>,
        certain: Key,
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        scratch.make_room(plan);
        let root = plan.frames.len().saturating_sub(1);
        if let Some((chunk, _)) = chunk {
            self.place_external(plan, chunk);
        }
        for (obligation, bound, piece) in self.received.drain(..) {
            for &(owner, place) in &plan.obligations[obligation as usize].owners {
                scratch.inbox[owner as usize].push((place, bound, piece));
            }
        }
        let (place, moving) = chunk.map_or((key::START, false), |(chunk, _)| (chunk.to, chunk.moving));
        let end = ChunkEnd { place, moves: moving, epoch: self.epoch };
        for (k, frame) in plan.frames.iter().enumerate() {
            let mut at_once = None;
            scratch.resolved.clear();
            scratch.verdicts.clear();
            if let Some((chunk, pasts)) = chunk {
                at_once = self.take_chunk(plan, k, chunk, pasts, scratch);
            }
            self.decide_operands(plan, frame, scratch);
            let queue = &mut self.queues[k];
            let inbox = &mut scratch.inbox[k];
            for &(obligation, bound, piece) in inbox.iter() {
                queue.set(obligation as usize, bound.into(), piece, self.epoch);
            }
            for (_, _, piece) in inbox.drain(..) {
                let (resolved, verdicts) = (&mut scratch.resolved, &mut scratch.verdicts);
                queue.resolve(
                    frame,
                    piece,
                    end,
                    &mut scratch.ranges,
                    |decided| resolved.push(decided),
                    |from| verdicts.push(from),
                );
            }
            for resolved in &scratch.resolved {
                for &(obligation, is_left) in &frame.feeds {
                    scratch.operands[obligation as usize][usize::from(!is_left)].push(*resolved);
                }
            }
            if k == root {
                let decided = |resolved: &Resolved| (resolved.tag, resolved.bound, resolved.piece.value);
                if let Some(bounds) = &mut scratch.bounds {
                    bounds.extend(scratch.resolved.iter().map(decided).map(|(tag, bound, value)| {
                        BoundDecision { tag, bound, value, axis: key::axis(certain) }
                    }));
                }
                emit(&self.queues[k], &mut scratch.verdicts, certain, out);
                if let (Some(verdict), Some((chunk, _))) = (at_once, chunk) {
                    let changed = self.queues[k].record(verdict);
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
        for (obligation, states) in plan.obligations.iter().zip(&mut self.obligations) {
            for state in states {
                if let (ObligationState::Until(until), Some(reach)) = (state, obligation.reach) {
                    until.forget(reach);
                }
            }
        }
    }

    /// Number of stored entries and intervals.
    pub(crate) fn kept(&self) -> usize {
        let kept = |state: &ObligationState| match state {
            ObligationState::Until(until) => until.kept(),
            ObligationState::Next(next) => next.events.len(),
            ObligationState::External(external) => external.kept(),
        };
        self.waiting() + self.obligations.iter().flatten().map(kept).sum::<usize>()
    }
}

impl Varying for Pending {
    fn bytes(&self) -> usize {
        size_of::<Pending>()
            + self.queues.len() * size_of::<Queue>()
            + self.obligations.len() * size_of::<[ObligationState; 2]>()
            + self.kept() * size_of::<Entry>()
    }

    fn dropped(&self) -> u64 {
        self.lost
    }
}

/// Emits the verdicts about the entries that begin at these places.
fn emit(queue: &Queue, places: &mut [Key], certain: Key, out: &mut Vec<Decision>) {
    places.sort_unstable();
    let first = out.len();
    for &from in places.iter() {
        let Some((entry, verdict, changed)) = queue.verdict_at(from) else { continue };
        if entry.is_echo {
            continue;
        }
        match out[first..].last_mut() {
            // Operands that arrive one after the other split one decision into parts.
            Some(last) if !entry.is_fresh && !changed && last.to + 1 == from => last.to = entry.to,
            _ => {
                let Entry { to, is_fresh, tag, .. } = *entry;
                let (robustness, moved) = (None, false);
                out.push(Decision { from, to, verdict, robustness, changed, moved, is_fresh, certain, tag });
            }
        }
    }
}

/// Posts decisions about an obligation to its frames.
fn post(owners: &[(u32, u32)], bound: usize, pieces: &mut Vec<Piece>, inbox: &mut [Vec<(u32, u8, Piece)>]) {
    for piece in pieces.drain(..) {
        for &(owner, obligation) in owners {
            inbox[owner as usize].push((obligation, bound as u8, piece));
        }
    }
}

/// Returns a past of a frame.
fn truth(frame: &BoolFrame, pasts: &[PastTruth], i: usize) -> PastTruth {
    let past = frame.pasts.get(i).and_then(|&i| pasts.get(i as usize));
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
