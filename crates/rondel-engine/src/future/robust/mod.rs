//! Robustness of formulas that look ahead.
//!
//! What a truth is may be certain before all is known that it depends on; a robustness hardly ever is. So with it a
//! verdict is given when all has been seen that the formula looks at, always so long after what it is about: verdicts
//! come in the order of what they are about, and each robustness is exact.
//!
//! That makes it simple. Every node of the formula is a transformer of [streams](stream): of what its operands are on
//! one interval after the other it makes what it is itself, up to where it knows enough. All that there is to an
//! operator of the future is a [window](until) that slides. Whether the formula is true goes through the same
//! operations as by how much, as a number that is infinite ([`Levels`]).

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
use super::leaf::Reach;
use super::pending::Decision;
use super::plan::{Formula, TooLarge};
use crate::ops::varying::Varying;

/// How the robustness of a property with operators of the future is found. Immutable.
#[derive(Clone, Debug)]
pub(crate) struct DelayedPlan {
    pub(crate) time: TimeModel,
    /// Operands before the nodes that have them; the last is the formula.
    nodes: Vec<Formula>,
    /// For every node of which others it is an operand, and which of them.
    users: Vec<Vec<(usize, usize)>>,
    /// By how much what is said lags behind what it is about.
    horizon: i128,
    /// By how much earlier than something happens what is said may change; in points, by how much later than an event
    /// something may become certain.
    lags: Vec<i128>,
}

/// Longer than all of time.
const FOREVER: i128 = 1 << 70;

fn operands(node: &Formula) -> Vec<usize> {
    let operands = match *node {
        // What is decided elsewhere has no robustness, and is refused before.
        Formula::Past(_) | Formula::Given(_) => vec![],
        Formula::Not(x) | Formula::Definitely(x) | Formula::Next(x) => vec![x],
        Formula::And(x, y) | Formula::Or(x, y) | Formula::Same(x, y) => vec![x, y],
        Formula::If(condition, x, y) => vec![condition, x, y],
        // Where there is no time to look at, it is false.
        Formula::Until { lower, upper, right, .. } if upper < lower => vec![right],
        Formula::Until { left, right, .. } => [right].into_iter().chain(left).collect(),
    };
    operands.into_iter().map(|node| node as usize).collect()
}

impl DelayedPlan {
    /// So many different lags there may be.
    const LAGS: usize = 1000;

    /// The plan of the last node of `nodes`.
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
            // What is asked of the next event looks ahead from there.
            Some(last) if by_position => lags.into_iter().flatten().chain(last).collect(),
            _ => BTreeSet::from([plan.horizon]),
        };
        plan.lags = lags.into_iter().collect();
        Ok(plan)
    }

    /// How far a node looks ahead, if that is by time or by a number of steps.
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

/// What a node has of its operands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RobustNode {
    operands: Vec<Stream>,
    until: RobustUntil,
    /// The last event, for `next` in points.
    last: Option<Key>,
}

impl RobustNode {
    /// Whether it has nothing more.
    fn rests(&self) -> bool {
        self.last.is_none() && self.until.len() == 0 && self.operands.iter().all(|stream| stream.len() == 0)
    }

    /// Adds what the node is where that has become known, and says up to where it is.
    fn decide(&mut self, node: &Formula, reach: Option<Reach>, out: &mut Vec<RobustPiece>) -> Key {
        let RobustNode { operands, until, last } = self;
        let known = operands.iter().map(|stream| stream.known).min().unwrap_or(key::START);
        let mut say = |from, to, levels| out.push(RobustPiece { from, to, levels });
        match (node, reach) {
            (_, Some(Reach { lower, upper, .. })) if upper < lower => {
                while let Some((from, to, [_])) = take(operands) {
                    say(from, to, Levels::FALSE);
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
                        say(before, before, x);
                    }
                }
                return last.map_or(key::START, |last| last - 1);
            }
            (Formula::Not(_), _) => {
                while let Some((from, to, [x])) = take(operands) {
                    say(from, to, x.not());
                }
            }
            (Formula::Definitely(_), _) => {
                while let Some((from, to, [x])) = take(operands) {
                    say(from, to, x.definitely());
                }
            }
            (Formula::If(..), _) => {
                while let Some((from, to, [condition, x, y])) = take(operands) {
                    say(from, to, condition.choose(x, y));
                }
            }
            (Formula::And(..), _) => {
                while let Some((from, to, [x, y])) = take(operands) {
                    say(from, to, x.and(y));
                }
            }
            (Formula::Or(..), _) => {
                while let Some((from, to, [x, y])) = take(operands) {
                    say(from, to, x.or(y));
                }
            }
            (Formula::Same(..), _) => {
                while let Some((from, to, [x, y])) = take(operands) {
                    say(from, to, x.same(y));
                }
            }
            (Formula::Past(_) | Formula::Given(_) | Formula::Until { .. }, _) => {}
        }
        known
    }
}

fn window(until: &mut RobustUntil, reach: Reach, known: Key, out: &mut Vec<RobustPiece>) -> Key {
    until.decide(reach, known, &mut |piece| out.push(piece));
    (key::first(key::axis(known + 1) - reach.upper) - 1).max(key::START)
}

/// What a property with operators of the future waits for, that also says its robustness: plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delayed {
    nodes: Vec<RobustNode>,
    /// The last place that has been seen, once there is one.
    seen: Option<Key>,
    /// How many moments had the time of the last one.
    number: u64,
    /// The pasts in the time after the last moment (dense).
    after: Vec<Levels>,
    /// The moments after which something is not decided, and what was noted of them.
    moments: VecDeque<(Key, i64)>,
    /// The last place about which there is a verdict, and that verdict.
    decided: Key,
    #[serde(with = "crate::ops::saved::verdict")]
    last: Option<Verdict>,
    /// The robustness there.
    level: Option<f64>,
    /// How many places a node may have waiting.
    limit: usize,
    lost: u64,
}

/// Room to work in: nothing in it outlives a call.
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
            moments: VecDeque::new(),
            decided: key::START,
            last: None,
            level: None,
            limit: limit.max(1),
            lost: 0,
        }
    }

    /// As it was when it was new, but that this was the verdict about what came before.
    pub(crate) fn restart(&mut self, before: Option<Verdict>) {
        for node in &mut self.nodes {
            node.operands.iter_mut().for_each(|stream| *stream = Stream::new());
            (node.until, node.last) = (RobustUntil::default(), None);
        }
        (self.seen, self.number, self.decided) = (None, 0, key::START);
        (self.last, self.level, self.lost) = (before, None, 0);
        self.after.clear();
        self.moments.clear();
    }

    /// If nothing of what it has seen is asked for any more, since all verdicts about it are given, the last of them.
    /// All operators look ahead only: one that is new goes on as this one would. In dense time there is always the time
    /// after the last moment.
    pub(crate) fn rests(&self, plan: &DelayedPlan) -> Option<Verdict> {
        let is_over = plan.time != TimeModel::Dense
            && self.moments.back().is_none_or(|&(place, _)| place <= self.decided)
            && self.nodes.iter().all(RobustNode::rests);
        self.last.filter(|_| is_over)
    }

    /// Whether it is of the same property.
    pub(crate) fn fits(&self, other: &Delayed) -> bool {
        let same = |(a, b): (&RobustNode, &RobustNode)| a.operands.len() == b.operands.len();
        self.nodes.len() == other.nodes.len() && self.nodes.iter().zip(&other.nodes).all(same)
    }

    /// How many places were given up because there were too many.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// How many intervals it keeps.
    pub(crate) fn kept(&self) -> usize {
        let of_node =
            |node: &RobustNode| node.until.len() + node.operands.iter().map(Stream::len).sum::<usize>();
        self.moments.len() + self.nodes.iter().map(of_node).sum::<usize>()
    }

    /// An event, in steps or points.
    pub(crate) fn event(
        &mut self,
        plan: &DelayedPlan,
        (position, time): (u64, i64),
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
        self.moments.push_back((place, time));
        self.feed(plan, Some((place, place, pasts)), (known, place), room, out);
    }

    /// A moment in the dense model: the pasts at the instant, and after it until the next one.
    pub(crate) fn moment(
        &mut self,
        plan: &DelayedPlan,
        (time, tag): (i64, i64),
        [at, after]: [&[Levels]; 2],
        room: &mut Room,
        out: &mut Vec<Decision>,
    ) {
        let place = key::next(self.seen, &mut self.number, 2 * i128::from(time));
        self.begin(place);
        self.pass(plan, key::axis(place), room, out);
        self.moments.push_back((place, tag));
        self.feed(plan, Some((place, place, at)), (place, place), room, out);
        self.after.clear();
        self.after.extend_from_slice(after);
    }

    /// Nothing comes before `now`.
    pub(crate) fn advance(&mut self, plan: &DelayedPlan, now: i64, room: &mut Room, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        match plan.time {
            TimeModel::Steps => {}
            TimeModel::Points => {
                let now = key::first(now.into());
                if now > seen + 1 {
                    self.feed(plan, None, (now - 1, now), room, out);
                }
            }
            TimeModel::Dense => self.pass(plan, 2 * i128::from(now), room, out),
        }
    }

    /// The trace is over: of what still waits nothing will be known.
    pub(crate) fn end(&mut self, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        let waiting = self.moments.partition_point(|&(place, _)| place <= self.decided);
        self.moments.drain(..waiting);
        let next = self.moments.front().map_or(seen + 1, |&(place, _)| place);
        let (has_begun, verdict) = (self.last.is_some(), Verdict::Inconclusive);
        let mut tell = |from, to, is_fresh, tag| {
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
        // The time before the first of them, if there is any.
        if has_begun && self.decided + 1 < next && !self.after.is_empty() {
            tell(self.decided + 1, next - 1, false, 0);
        }
        for (place, tag) in self.moments.drain(..) {
            tell(place, place, true, tag);
        }
        self.decided = seen;
    }

    /// A time such that, at the first moment or [`advance`](Delayed::advance) later than it, there may be another
    /// verdict by that alone; none while there is no such time.
    pub(crate) fn deadline(&self, plan: &DelayedPlan) -> Option<i64> {
        let seen = self.seen?;
        let moment = |i: usize| self.moments.get(i).map(|&(place, _)| key::axis(place));
        let next = match plan.time {
            TimeModel::Steps => None,
            TimeModel::Points => {
                let open = key::axis(seen + 1);
                let waiting = self.moments.partition_point(|&(place, _)| place <= self.decided);
                let due = plan.lags.iter().filter_map(|lag| {
                    let past = self.moments.partition_point(|&(place, _)| key::axis(place) + lag < open);
                    Some(moment(past.max(waiting))? + lag)
                });
                due.min()
            }
            TimeModel::Dense => {
                let decided = key::axis(self.decided + 1) - 1;
                let changes = plan.lags.iter().filter_map(|lag| {
                    // Something changes at a moment, and just after it.
                    let past = self.moments.partition_point(|&(place, _)| key::axis(place) < decided + lag);
                    let at = moment(past)?;
                    Some(if at > decided + lag { at - lag } else { at + 1 - lag })
                });
                changes.min().map(|about| (about + plan.horizon) >> 1)
            }
        };
        // What is later than any time never comes.
        next.and_then(|time| i64::try_from(time).ok())
    }

    /// Of what comes before the first moment nothing is said.
    fn begin(&mut self, first: Key) {
        if self.seen.is_none() {
            self.decided = first - 1;
        }
    }

    /// Lets time pass to just before the instant at a coordinate, in the dense model.
    fn pass(&mut self, plan: &DelayedPlan, until: i128, room: &mut Room, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        // No other moment has the time of the last one.
        let from = key::first(key::ceil(seen + 1));
        let to = key::first(until) - 1;
        if from <= to {
            let after = std::mem::take(&mut self.after);
            self.feed(plan, Some((from, to, &after)), (to, from), room, out);
            self.after = after;
        }
    }

    /// Takes what the pasts are on an interval through all nodes. Then all is known up to a place; the second is
    /// now.
    fn feed(
        &mut self,
        plan: &DelayedPlan,
        chunk: Option<(Key, Key, &[Levels])>,
        (seen, now): (Key, Key),
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
            let i = self.moments.partition_point(|&(place, _)| place < from);
            let moment = self.moments.get(i).filter(|&&(place, _)| place == from && from == to);
            let due = key::axis(from) + plan.horizon;
            let certain = match plan.time {
                TimeModel::Points => now,
                TimeModel::Steps => key::first(due).min(now),
                // About an instant it is certain just after another one.
                TimeModel::Dense => key::first(due | 1).min(seen + 1),
            };
            out.push(Decision {
                from,
                to,
                verdict,
                robustness,
                changed,
                moved,
                is_fresh: moment.is_some(),
                certain,
                tag: moment.map_or(0, |&(_, tag)| tag),
            });
        }
        self.decided = self.decided.max(decided);
        let decided = key::axis(self.decided + 1);
        while self.moments.front().is_some_and(|&(place, _)| key::axis(place) + 1 < decided) {
            self.moments.pop_front();
        }
    }

    /// Gives up what a node has too much of: it is unknown. Says up to where it is then decided.
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
