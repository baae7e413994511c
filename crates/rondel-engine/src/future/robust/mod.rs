//! Robustness of formulas with future operators.
//!
//! A boolean verdict can often be decided early; a robustness value rarely can. With robustness a verdict is
//! therefore emitted when everything that the formula refers to is known, at a fixed delay: verdicts come in
//! the order of their time points, and each robustness is exact.
//!
//! This keeps the evaluation simple. Every node of the formula transforms [streams](stream): from the values
//! of its operands on successive intervals it computes its own, up to where they suffice. A future operator
//! is a sliding [window](until). Boolean truth goes through the same operations as robustness, as an infinite
//! number ([`Levels`]).

mod fold;
mod levels;
mod stream;
mod until;

use std::collections::{BTreeSet, VecDeque};

use rondel_event::Verdict;
use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

pub(crate) use levels::Levels;
use stream::{RobustPiece, Stream, take};
use until::RobustUntil;

use super::key::{self, Key};
use super::pending::Decision;
use super::plan::{Formula, TooLarge};
use super::until::Reach;
use crate::ops::varying::Varying;

/// Immutable evaluation plan of a property with future operators and robustness.
#[derive(Clone, Debug)]
pub(crate) struct DelayedPlan {
    pub(crate) time: TimeModel,
    /// Nodes after their operands; the last one is the formula.
    nodes: Vec<Formula>,
    /// Nodes that use each node as an operand, and the index of that operand.
    users: Vec<Vec<(usize, usize)>>,
    /// Delay between a time point and its verdict, in axis units.
    horizon: i128,
    /// Dense time: distances from a change of the input back to the places where the verdict may change.
    /// Points: distances from an event to the time at which a verdict may become certain.
    lags: Vec<i128>,
}

/// Longer than all of time.
const FOREVER: i128 = 1 << 70;

fn operands(node: &Formula) -> Vec<usize> {
    let operands = match *node {
        // External truths have no robustness; translation refuses them.
        Formula::Past(_) | Formula::External(_) => vec![],
        Formula::Not(x) | Formula::Definitely(x) | Formula::Next(x) => vec![x],
        Formula::And(x, y) | Formula::Or(x, y) | Formula::Same(x, y) => vec![x, y],
        Formula::If(condition, x, y) => vec![condition, x, y],
        // Over an empty interval the operator is false.
        Formula::Until { lower, upper, right, .. } if upper < lower => vec![right],
        Formula::Until { left, right, .. } => [right].into_iter().chain(left).collect(),
    };
    operands.into_iter().map(|node| node as usize).collect()
}

impl DelayedPlan {
    /// Maximum number of different lags.
    const LAGS: usize = 1000;

    /// Plans the last node of `nodes`.
    pub(crate) fn new(time: TimeModel, nodes: Vec<Formula>) -> Result<DelayedPlan, TooLarge> {
        let mut plan = DelayedPlan { time, nodes, users: Vec::new(), horizon: 0, lags: Vec::new() };
        plan.users.resize_with(plan.nodes.len(), Vec::new);
        let (mut horizons, mut lags): (Vec<i128>, Vec<BTreeSet<i128>>) = (Vec::new(), Vec::new());
        for (i, node) in plan.nodes.iter().enumerate() {
            let operands = operands(node);
            for (k, &operand) in operands.iter().enumerate() {
                plan.users[operand].push((i, k));
            }
            let below = operands.iter().map(|&operand| horizons[operand]).max().unwrap_or(0);
            let mut of_operands: BTreeSet<i128> =
                operands.iter().flat_map(|&operand| lags[operand].iter().copied()).collect();
            if operands.is_empty() {
                of_operands.insert(0);
            }
            let (horizon, later) = match plan.reach(node) {
                None => (0, vec![0]),
                Some(Reach { lower, upper, .. }) if upper < lower => (0, vec![0]),
                Some(Reach { lower, upper, .. }) if time == TimeModel::Dense => {
                    (upper, vec![0, lower, (lower - 1).max(0), upper])
                }
                Some(Reach { upper, .. }) => (upper, vec![upper]),
            };
            horizons.push((below + horizon).min(FOREVER));
            let sums = of_operands.iter().flat_map(|lag| later.iter().map(move |by| (lag + by).min(FOREVER)));
            let sums: BTreeSet<i128> = sums.collect();
            if sums.len() > Self::LAGS {
                return Err(TooLarge);
            }
            lags.push(sums);
        }
        plan.horizon = horizons.pop().ok_or(TooLarge)?;
        let by_position = plan.nodes.iter().any(|node| matches!(node, Formula::Next(_)));
        let lags: BTreeSet<i128> = match lags.pop() {
            Some(lags) if time == TimeModel::Dense => lags,
            // `next` evaluates its operand at the next event, whose look-ahead starts there.
            Some(last) if by_position => lags.into_iter().flatten().chain(last).collect(),
            _ => BTreeSet::from([plan.horizon]),
        };
        plan.lags = lags.into_iter().collect();
        Ok(plan)
    }

    /// Returns the bounds of a node, if they are in time or in steps.
    fn reach(&self, node: &Formula) -> Option<Reach> {
        let spans = self.time == TimeModel::Dense;
        let unit = if spans { 2 } else { 1 };
        let (lower, upper) = match *node {
            Formula::Until { lower, upper, .. } => (i128::from(lower), i128::from(upper)),
            Formula::Next(_) if self.time != TimeModel::Points => (1, 1),
            _ => return None,
        };
        Some(Reach { lower: unit * lower, upper: unit * upper, spans })
    }
}

/// Buffered operands of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RobustNode {
    operands: Vec<Stream>,
    until: RobustUntil,
    /// Last event, for `next` in points.
    last: Option<Key>,
}

impl RobustNode {
    /// Whether nothing is buffered.
    fn is_quiescent(&self) -> bool {
        self.last.is_none() && self.until.len() == 0 && self.operands.iter().all(|stream| stream.len() == 0)
    }

    /// Adds the values of the node that have become known, and returns the last place up to which it is
    /// known.
    fn decide(&mut self, node: &Formula, reach: Option<Reach>, out: &mut Vec<RobustPiece>) -> Key {
        let RobustNode { operands, until, last } = self;
        let known = operands.iter().map(|stream| stream.known).min().unwrap_or(key::START);
        let mut emit = |from, to, levels| out.push(RobustPiece { from, to, levels });
        match (node, reach) {
            (_, Some(Reach { lower, upper, .. })) if upper < lower => {
                while let Some((from, to, [_])) = take(operands) {
                    emit(from, to, Levels::FALSE);
                }
            }
            (Formula::Until { left: Some(_), .. }, Some(reach)) => {
                while let Some((from, to, [levels, left])) = take(operands) {
                    until.push(RobustPiece { from, to, levels }, left);
                }
                return window(until, reach, known, out);
            }
            (_, Some(reach)) => {
                while let Some((from, to, [levels])) = take(operands) {
                    until.push(RobustPiece { from, to, levels }, Levels::TRUE);
                }
                return window(until, reach, known, out);
            }
            (Formula::Next(_), None) => {
                while let Some((from, _, [x])) = take(operands) {
                    if let Some(before) = last.replace(from) {
                        emit(before, before, x);
                    }
                }
                return last.map_or(key::START, |last| last - 1);
            }
            (Formula::Not(_), _) => {
                while let Some((from, to, [x])) = take(operands) {
                    emit(from, to, x.not());
                }
            }
            (Formula::Definitely(_), _) => {
                while let Some((from, to, [x])) = take(operands) {
                    emit(from, to, x.definitely());
                }
            }
            (Formula::If(..), _) => {
                while let Some((from, to, [condition, x, y])) = take(operands) {
                    emit(from, to, condition.choose(x, y));
                }
            }
            (Formula::And(..), _) => {
                while let Some((from, to, [x, y])) = take(operands) {
                    emit(from, to, x.and(y));
                }
            }
            (Formula::Or(..), _) => {
                while let Some((from, to, [x, y])) = take(operands) {
                    emit(from, to, x.or(y));
                }
            }
            (Formula::Same(..), _) => {
                while let Some((from, to, [x, y])) = take(operands) {
                    emit(from, to, x.same(y));
                }
            }
            (Formula::Past(_) | Formula::External(_) | Formula::Until { .. }, _) => {}
        }
        known
    }
}

fn window(until: &mut RobustUntil, reach: Reach, known: Key, out: &mut Vec<RobustPiece>) -> Key {
    until.decide(reach, known, &mut |piece| out.push(piece));
    (key::first(key::axis(known + 1) - reach.upper) - 1).max(key::START)
}

/// Pending state of a property with future operators and robustness: plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delayed {
    nodes: Vec<RobustNode>,
    /// Last place seen.
    seen: Option<Key>,
    /// Number of time points at the time of the last one.
    number: u64,
    /// Pasts on the open interval after the last time point (dense time).
    after: Vec<Levels>,
    /// Time points that are not decided, or are followed by an undecided place, with their tags.
    points: VecDeque<(Key, i64)>,
    /// Last place with a verdict, and that verdict.
    decided: Key,
    #[serde(with = "crate::ops::saved::verdict")]
    last: Option<Verdict>,
    /// Robustness there.
    level: Option<f64>,
    /// Maximum number of places that a node may buffer.
    limit: usize,
    lost: u64,
}

/// Working memory; nothing in it outlives a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    pieces: Vec<RobustPiece>,
}

impl Delayed {
    pub(crate) fn new(plan: &DelayedPlan, limit: usize) -> Delayed {
        let node = |node: &Formula| RobustNode {
            operands: vec![Stream::new(); operands(node).len()],
            until: RobustUntil::default(),
            last: None,
        };
        Delayed {
            nodes: plan.nodes.iter().map(node).collect(),
            seen: None,
            number: 0,
            after: Vec::new(),
            points: VecDeque::new(),
            decided: key::START,
            last: None,
            level: None,
            limit: limit.max(1),
            lost: 0,
        }
    }

    /// Resets the state, with `before` as the verdict about the time before.
    pub(crate) fn restart(&mut self, before: Option<Verdict>) {
        for node in &mut self.nodes {
            node.operands.iter_mut().for_each(|stream| *stream = Stream::new());
            (node.until, node.last) = (RobustUntil::default(), None);
        }
        (self.seen, self.number, self.decided) = (None, 0, key::START);
        (self.last, self.level, self.lost) = (before, None, 0);
        self.after.clear();
        self.points.clear();
    }

    /// Returns the last verdict if every place so far has one. The state may then be freed: future operators
    /// never read earlier places, so a new state continues in the same way. In dense time the interval after
    /// the last time point is always open.
    pub(crate) fn quiescent_verdict(&self, plan: &DelayedPlan) -> Option<Verdict> {
        let is_over = plan.time != TimeModel::Dense
            && self.points.back().is_none_or(|&(place, _)| place <= self.decided)
            && self.nodes.iter().all(RobustNode::is_quiescent);
        self.last.filter(|_| is_over)
    }

    /// Whether the state belongs to the same property.
    pub(crate) fn fits(&self, other: &Delayed) -> bool {
        let same = |(a, b): (&RobustNode, &RobustNode)| a.operands.len() == b.operands.len();
        self.nodes.len() == other.nodes.len() && self.nodes.iter().zip(&other.nodes).all(same)
    }

    /// Number of places dropped because of the limit.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of stored intervals.
    pub(crate) fn kept(&self) -> usize {
        let of_node =
            |node: &RobustNode| node.until.len() + node.operands.iter().map(Stream::len).sum::<usize>();
        self.points.len() + self.nodes.iter().map(of_node).sum::<usize>()
    }

    /// Processes an event, in steps or points.
    pub(crate) fn event(
        &mut self,
        plan: &DelayedPlan,
        position: u64,
        time: i64,
        pasts: &[Levels],
        room: &mut Room,
        out: &mut Vec<Decision>,
    ) {
        let (place, known) = match plan.time {
            TimeModel::Steps => (key::first(position.into()), key::last(position.into())),
            TimeModel::Points | TimeModel::Dense => {
                let place = key::next(self.seen, &mut self.number, time.into());
                (place, place)
            }
        };
        self.begin(place);
        self.points.push_back((place, time));
        self.feed(plan, Some((place, place, pasts)), known, place, room, out);
    }

    /// Processes a time point in dense time: the pasts at the instant, and on the open interval up to the
    /// next one.
    pub(crate) fn dense_point(
        &mut self,
        plan: &DelayedPlan,
        time: i64,
        tag: i64,
        [at, after]: [&[Levels]; 2],
        room: &mut Room,
        out: &mut Vec<Decision>,
    ) {
        let place = key::next(self.seen, &mut self.number, 2 * i128::from(time));
        self.begin(place);
        self.pass(plan, key::axis(place), room, out);
        self.points.push_back((place, tag));
        self.feed(plan, Some((place, place, at)), place, place, room, out);
        self.after.clear();
        self.after.extend_from_slice(after);
    }

    /// Advances time: no further event comes before `now`.
    pub(crate) fn advance(&mut self, plan: &DelayedPlan, now: i64, room: &mut Room, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        match plan.time {
            TimeModel::Steps => {}
            TimeModel::Points => {
                let now = key::first(now.into());
                if now > seen + 1 {
                    self.feed(plan, None, now - 1, now, room, out);
                }
            }
            TimeModel::Dense => self.pass(plan, 2 * i128::from(now), room, out),
        }
    }

    /// Ends the trace: all open places become inconclusive.
    pub(crate) fn end(&mut self, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        let waiting = self.points.partition_point(|&(place, _)| place <= self.decided);
        self.points.drain(..waiting);
        let next = self.points.front().map_or(seen + 1, |&(place, _)| place);
        let (has_begun, verdict) = (self.last.is_some(), Verdict::Inconclusive);
        let mut emit = |from, to, is_fresh, tag| {
            let changed = self.last.replace(verdict) != Some(verdict);
            let moved = self.level.take().is_some();
            out.push(Decision {
                from,
                to,
                verdict,
                robustness: None,
                changed,
                moved,
                is_fresh,
                certain: seen + 1,
                tag,
            });
        };
        // Open interval before the first undecided time point, if any.
        if has_begun && self.decided + 1 < next && !self.after.is_empty() {
            emit(self.decided + 1, next - 1, false, 0);
        }
        for (place, tag) in self.points.drain(..) {
            emit(place, place, true, tag);
        }
        self.decided = seen;
    }

    /// Returns a time after which, at the first time point or [`advance`](Delayed::advance), a verdict may be
    /// due by the passing of time alone.
    pub(crate) fn deadline(&self, plan: &DelayedPlan) -> Option<i64> {
        let seen = self.seen?;
        let point = |i: usize| self.points.get(i).map(|&(place, _)| key::axis(place));
        let next = match plan.time {
            TimeModel::Steps => None,
            TimeModel::Points => {
                let open = key::axis(seen + 1);
                let waiting = self.points.partition_point(|&(place, _)| place <= self.decided);
                let due = plan.lags.iter().filter_map(|lag| {
                    let past = self.points.partition_point(|&(place, _)| key::axis(place) + lag < open);
                    Some(point(past.max(waiting))? + lag)
                });
                due.min()
            }
            TimeModel::Dense => {
                let decided = key::axis(self.decided + 1) - 1;
                let changes = plan.lags.iter().filter_map(|lag| {
                    // The input changes at a time point, and just after it.
                    let past = self.points.partition_point(|&(place, _)| key::axis(place) < decided + lag);
                    let at = point(past)?;
                    Some(if at > decided + lag { at - lag } else { at + 1 - lag })
                });
                changes.min().map(|about| (about + plan.horizon) >> 1)
            }
        };
        // A deadline beyond the range of time never comes.
        next.and_then(|time| i64::try_from(time).ok())
    }

    /// Marks the time before the first time point as decided, without a verdict.
    fn begin(&mut self, first: Key) {
        if self.seen.is_none() {
            self.decided = first - 1;
        }
    }

    /// Advances dense time to just before the instant at a coordinate.
    fn pass(&mut self, plan: &DelayedPlan, until: i128, room: &mut Room, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        // No other time point has the time of the last one.
        let from = key::first(key::ceil(seen + 1));
        let to = key::first(until) - 1;
        if from <= to {
            let after = std::mem::take(&mut self.after);
            self.feed(plan, Some((from, to, &after)), to, from, room, out);
            self.after = after;
        }
    }

    /// Evaluates all nodes for the pasts on an interval, after which the trace is known up to `seen`; `now`
    /// is the current place.
    fn feed(
        &mut self,
        plan: &DelayedPlan,
        chunk: Option<(Key, Key, &[Levels])>,
        seen: Key,
        now: Key,
        room: &mut Room,
        out: &mut Vec<Decision>,
    ) {
        self.seen = Some(seen);
        let pieces = &mut room.pieces;
        let mut decided = key::START;
        for (i, node) in plan.nodes.iter().enumerate() {
            pieces.clear();
            decided = if let Formula::Past(past) = *node {
                pieces.extend(chunk.map(|(from, to, pasts)| {
                    let levels = pasts.get(past as usize).copied().unwrap_or(Levels::UNKNOWN);
                    RobustPiece { from, to, levels }
                }));
                seen
            } else {
                let known = self.nodes[i].decide(node, plan.reach(node), pieces);
                self.give_up(i, known, pieces)
            };
            for &(user, operand) in &plan.users[i] {
                let stream = &mut self.nodes[user].operands[operand];
                pieces.iter().for_each(|piece| stream.push(*piece));
                stream.known = stream.known.max(decided);
            }
        }
        for &RobustPiece { from, to, levels } in &*pieces {
            let verdict = levels.verdict();
            let changed = self.last.replace(verdict) != Some(verdict);
            let robustness = levels.robustness();
            let moved = std::mem::replace(&mut self.level, robustness) != robustness;
            let i = self.points.partition_point(|&(place, _)| place < from);
            let point = self.points.get(i).filter(|&&(place, _)| place == from && from == to);
            let due = key::axis(from) + plan.horizon;
            let certain = match plan.time {
                TimeModel::Points => now,
                TimeModel::Steps => key::first(due).min(now),
                // A verdict about an instant is certain just after another one.
                TimeModel::Dense => key::first(due | 1).min(seen + 1),
            };
            out.push(Decision {
                from,
                to,
                verdict,
                robustness,
                changed,
                moved,
                is_fresh: point.is_some(),
                certain,
                tag: point.map_or(0, |&(_, tag)| tag),
            });
        }
        self.decided = self.decided.max(decided);
        let decided = key::axis(self.decided + 1);
        while self.points.front().is_some_and(|&(place, _)| key::axis(place) + 1 < decided) {
            self.points.pop_front();
        }
    }

    /// Drops places above the limit of a node, as unknown. Returns the last decided place.
    fn give_up(&mut self, node: usize, mut known: Key, out: &mut Vec<RobustPiece>) -> Key {
        while self.nodes[node].until.len() > self.limit
            && let Some(piece) = self.nodes[node].until.give_up()
        {
            known = known.max(piece.to);
            self.lost = self.lost.saturating_add(1);
            out.push(piece);
        }
        known
    }
}

impl Varying for Delayed {
    fn bytes(&self) -> usize {
        size_of::<Delayed>()
            + self.nodes.len() * size_of::<RobustNode>()
            + self.kept() * size_of::<RobustPiece>()
    }

    fn dropped(&self) -> u64 {
        self.lost
    }
}
