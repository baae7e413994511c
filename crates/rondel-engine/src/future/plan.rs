//! A formula with operators of the future, cut into what is pending and what is not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rondel_event::Verdict;
use rondel_spec::TimeModel;

use super::leaf::Reach;

/// A node of a formula that has operators of the future in it; operands are earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Formula {
    /// A truth that is certain, or unknown for ever, at the moment itself; by its number.
    Past(u32),
    Not(u32),
    And(u32, u32),
    Or(u32, u32),
    /// Unknown as false.
    Definitely(u32),
    /// Unknown when the first is.
    If(u32, u32, u32),
    /// Whether both are the same; unknown when one is.
    Same(u32, u32),
    Next(u32),
    /// What is decided elsewhere, about every moment in its time, and is false between moments; by its
    /// number.
    Given(u32),
    /// `lower..=upper` in steps or nanoseconds; without a first operand that is always true.
    Until {
        lower: u64,
        upper: u64,
        left: Option<u32>,
        right: u32,
    },
}

/// The place of an operation in a [`Skeleton`], or of a leaf or a skeleton in the plan.
type OpIndex = u32;

/// An operation of a skeleton; operands are earlier operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    True,
    Past(OpIndex),
    /// The leaf with this place among those of the skeleton.
    Leaf(OpIndex),
    Not(OpIndex),
    And(OpIndex, OpIndex),
    Or(OpIndex, OpIndex),
    Definitely(OpIndex),
    If(OpIndex, OpIndex, OpIndex),
    Same(OpIndex, OpIndex),
}

/// A truth of which the future may still say something, in each bit of a word: Kleene's two rails, each
/// as it is if all that is pending turns out for the worse, and for the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) certain: [u64; 2],
    pub(crate) possible: [u64; 2],
}

impl Range {
    /// Anything may come of it.
    pub(crate) const PENDING: Range = Range { certain: [0, u64::MAX], possible: [0, u64::MAX] };
    pub(crate) const TRUE: Range = Range { certain: [u64::MAX; 2], possible: [u64::MAX; 2] };

    pub(crate) const FALSE: Range = Range { certain: [0; 2], possible: [0; 2] };

    pub(crate) fn known(certain: u64, possible: u64) -> Range {
        Range { certain: [certain; 2], possible: [possible; 2] }
    }

    /// Where each rail is decided.
    pub(crate) fn decided(&self) -> [u64; 2] {
        [!(self.certain[0] ^ self.certain[1]), !(self.possible[0] ^ self.possible[1])]
    }

    /// What it says once both rails are decided, in the lowest bit.
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.certain[0] & 1, self.possible[0] & 1) {
            (1, _) => Verdict::Satisfied,
            (_, 0) => Verdict::Violated,
            _ => Verdict::Inconclusive,
        }
    }

    fn not(self) -> Range {
        let [worst, best] = self.certain;
        let [possible_worst, possible_best] = self.possible;
        Range { certain: [!possible_best, !possible_worst], possible: [!best, !worst] }
    }

    fn and(self, other: Range) -> Range {
        self.zip(other, |a, b| a & b)
    }

    fn or(self, other: Range) -> Range {
        self.zip(other, |a, b| a | b)
    }

    fn zip(self, other: Range, f: impl Fn(u64, u64) -> u64) -> Range {
        let both = |a: [u64; 2], b: [u64; 2]| [f(a[0], b[0]), f(a[1], b[1])];
        Range { certain: both(self.certain, other.certain), possible: both(self.possible, other.possible) }
    }

    /// Certainly and possibly true from certainly and possibly false likewise.
    fn of(yes: Range, no: Range) -> Range {
        Range { certain: yes.certain, possible: [!no.certain[1], !no.certain[0]] }
    }

    fn choose(self, then: Range, otherwise: Range) -> Range {
        let not = self.not();
        let yes = self.and(then).or(not.and(otherwise));
        let no = self.and(then.not()).or(not.and(otherwise.not()));
        Range::of(yes, no)
    }
}

/// A boolean combination of pasts and leaves of the future.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Skeleton {
    /// The last is the result.
    pub(crate) ops: Vec<Op>,
    /// The pasts that it reads: `Op::Past` counts among these.
    pub(crate) pasts: Vec<OpIndex>,
    /// Its leaves.
    pub(crate) leaves: Vec<OpIndex>,
    /// The leaves that it is an operand of, and whether the left one.
    pub(crate) feeds: Vec<(OpIndex, bool)>,
}

impl Skeleton {
    /// Evaluates it, given what is known of its pasts and leaves.
    pub(crate) fn evaluate(
        &self,
        past: impl Fn(usize) -> Range,
        leaf: impl Fn(usize) -> Range,
        scratch: &mut Vec<Range>,
    ) -> Range {
        scratch.clear();
        for op in &self.ops {
            let at = |i: OpIndex| scratch[i as usize];
            let value = match *op {
                Op::True => Range::TRUE,
                Op::Past(i) => past(i as usize),
                Op::Leaf(i) => leaf(i as usize),
                Op::Not(x) => at(x).not(),
                Op::And(x, y) => at(x).and(at(y)),
                Op::Or(x, y) => at(x).or(at(y)),
                Op::Definitely(x) => Range { possible: at(x).certain, ..at(x) },
                Op::If(c, x, y) => at(c).choose(at(x), at(y)),
                Op::Same(x, y) => at(x).choose(at(y), at(y).not()),
            };
            scratch.push(value);
        }
        scratch.last().copied().unwrap_or(Range::TRUE)
    }
}

/// An operator of the future, or what is decided elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    /// The number of what is decided elsewhere.
    pub(crate) given: Option<u32>,
    /// None of `next` in points, which goes by position and not by time.
    pub(crate) reach: Option<Reach>,
    pub(crate) has_left: bool,
    /// The skeletons that it is a leaf of, and its place in each.
    pub(crate) owners: Vec<(OpIndex, OpIndex)>,
    /// By how much that which it decides may lag behind what is seen.
    pub(crate) lags: Vec<i128>,
}

/// How a property with operators of the future is evaluated. Immutable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) time: TimeModel,
    /// Each after those that its leaves have as operands; the last is the formula.
    pub(crate) skeletons: Vec<Skeleton>,
    pub(crate) leaves: Vec<Leaf>,
}

/// A formula has too many parts to be kept pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Plan {
    /// So many pasts or leaves may be combined in one skeleton.
    pub(crate) const WIDTH: usize = 32;
    /// So many different lags there may be.
    const LAGS: usize = 1000;

    /// The plan of the last node of `nodes`.
    pub(crate) fn new(time: TimeModel, nodes: &[Formula]) -> Result<Plan, TooLarge> {
        let Some(root) = nodes.len().checked_sub(1) else {
            return Err(TooLarge);
        };
        // The skeletons that are needed, by their roots, from the outermost inwards.
        let mut roots = BTreeSet::from([root as OpIndex]);
        let mut parts: BTreeMap<OpIndex, SkeletonDraft> = BTreeMap::new();
        while let Some(root) = roots.pop_last() {
            let cut = SkeletonDraft::new(nodes, root)?;
            for &leaf in &cut.leaves {
                match nodes[leaf as usize] {
                    Formula::Next(x) => drop(roots.insert(x)),
                    Formula::Until { left, right, .. } => roots.extend(left.into_iter().chain([right])),
                    _ => {}
                }
            }
            parts.insert(root, cut);
        }
        let place: HashMap<OpIndex, OpIndex> = parts.keys().zip(0..).map(|(&root, i)| (root, i)).collect();
        let mut plan = Plan { time, skeletons: Vec::new(), leaves: Vec::new() };
        let mut leaf_place: HashMap<OpIndex, OpIndex> = HashMap::new();
        let mut feeds: Vec<Vec<(OpIndex, bool)>> = vec![Vec::new(); parts.len()];
        // Inner skeletons come first, so that the lags of an operand are known.
        for (i, cut) in parts.into_values().enumerate() {
            let mut leaves = Vec::with_capacity(cut.leaves.len());
            for (local, node) in cut.leaves.iter().enumerate() {
                let at = match leaf_place.get(node) {
                    Some(&at) => at,
                    None => {
                        let at = plan.leaves.len() as OpIndex;
                        if let Formula::Given(number) = nodes[*node as usize] {
                            plan.leaves.push(Leaf {
                                given: Some(number),
                                reach: None,
                                has_left: false,
                                owners: Vec::new(),
                                lags: vec![0],
                            });
                            leaf_place.insert(*node, at);
                            plan.leaves[at as usize].owners.push((i as OpIndex, local as OpIndex));
                            leaves.push(at);
                            continue;
                        }
                        let (left, right, reach) = match nodes[*node as usize] {
                            Formula::Until { lower, upper, left, right } => {
                                (left, right, Some(Reach::new(time, lower, upper)))
                            }
                            Formula::Next(x) if time == TimeModel::Points => (None, x, None),
                            Formula::Next(x) => (None, x, Some(Reach::new(time, 1, 1))),
                            _ => return Err(TooLarge),
                        };
                        let mut lags = BTreeSet::new();
                        let (lower, upper) = reach.map_or((0, 0), |reach| (reach.lower, reach.upper));
                        plan.lags_of(place[&right], [0, lower, upper], &mut lags);
                        if let Some(left) = left {
                            // A witness needs the left operand only up to just before itself.
                            plan.lags_of(place[&left], [0, lower, lower - 1], &mut lags);
                        }
                        if lags.len() > Plan::LAGS {
                            return Err(TooLarge);
                        }
                        feeds[place[&right] as usize].push((at, false));
                        if let Some(left) = left {
                            feeds[place[&left] as usize].push((at, true));
                        }
                        plan.leaves.push(Leaf {
                            given: None,
                            reach,
                            has_left: left.is_some(),
                            owners: Vec::new(),
                            lags: lags.into_iter().collect(),
                        });
                        leaf_place.insert(*node, at);
                        at
                    }
                };
                plan.leaves[at as usize].owners.push((i as OpIndex, local as OpIndex));
                leaves.push(at);
            }
            plan.skeletons.push(Skeleton { ops: cut.ops, pasts: cut.pasts, leaves, feeds: Vec::new() });
        }
        for (skeleton, feeds) in plan.skeletons.iter_mut().zip(feeds) {
            skeleton.feeds = feeds;
        }
        Ok(plan)
    }

    /// The leaf that is decided elsewhere, by its number.
    pub(crate) fn given(&self, number: u32) -> Option<usize> {
        self.leaves.iter().position(|leaf| leaf.given == Some(number))
    }

    /// Whether a moment of points with these pasts is as if it were not there: nothing is left open about it,
    /// and it is no witness of anything before it and breaks nothing.
    pub(crate) fn is_idle(&self, past: impl Fn(usize) -> Range, scratch: &mut Vec<Range>) -> bool {
        !self.leaves.iter().any(|leaf| leaf.reach.is_none())
            && self.skeletons.iter().all(|skeleton| {
                let past = |i: usize| skeleton.pasts.get(i).map_or(Range::PENDING, |&i| past(i as usize));
                let range = skeleton.evaluate(past, |_| Range::PENDING, scratch);
                let [certain, possible] = range.decided();
                let is = |value: bool| {
                    let wanted = if value { 1 } else { 0 };
                    [range.certain[0], range.possible[0]].iter().all(|rail| rail & 1 == wanted)
                };
                certain & possible & 1 == 1 && skeleton.feeds.iter().all(|&(_, is_left)| is(is_left))
            })
    }

    /// Adds the lags of a leaf that this operand causes, if it decides so much later than the operand.
    fn lags_of(&self, operand: OpIndex, later: [i128; 3], lags: &mut BTreeSet<i128>) {
        let inner = self.skeletons[operand as usize].leaves.iter();
        let inner: BTreeSet<i128> =
            inner.flat_map(|&leaf| self.leaves[leaf as usize].lags.iter().copied()).collect();
        for lag in inner.into_iter().chain([0]) {
            for later in later {
                // Bounds that are longer than all of time need not be told apart.
                lags.insert((lag + later).min(1 << 70));
            }
        }
    }
}

/// One skeleton on its way into the plan.
struct SkeletonDraft {
    ops: Vec<Op>,
    pasts: Vec<OpIndex>,
    /// By their nodes.
    leaves: Vec<OpIndex>,
}

impl SkeletonDraft {
    fn new(nodes: &[Formula], root: OpIndex) -> Result<SkeletonDraft, TooLarge> {
        // What of the formula belongs to it: operands come before, so one pass backwards finds it.
        let mut inside = BTreeSet::new();
        let mut open = BTreeSet::from([root]);
        while let Some(node) = open.pop_last() {
            inside.insert(node);
            match nodes[node as usize] {
                Formula::Past(_) | Formula::Next(_) | Formula::Given(_) | Formula::Until { .. } => {}
                Formula::Not(x) | Formula::Definitely(x) => drop(open.insert(x)),
                Formula::And(x, y) | Formula::Or(x, y) | Formula::Same(x, y) => open.extend([x, y]),
                Formula::If(x, y, z) => open.extend([x, y, z]),
            }
        }
        let mut cut = SkeletonDraft { ops: Vec::new(), pasts: Vec::new(), leaves: Vec::new() };
        let mut place: HashMap<OpIndex, OpIndex> = HashMap::new();
        for node in inside {
            let at = |x: OpIndex| place[&x];
            let op = match nodes[node as usize] {
                Formula::Past(i) => Op::Past(number(&mut cut.pasts, i)?),
                // Nothing is in an empty interval.
                Formula::Until { lower, upper, .. } if lower > upper => {
                    cut.ops.push(Op::True);
                    Op::Not(cut.ops.len() as OpIndex - 1)
                }
                Formula::Next(_) | Formula::Given(_) | Formula::Until { .. } => {
                    Op::Leaf(number(&mut cut.leaves, node)?)
                }
                Formula::Not(x) => Op::Not(at(x)),
                Formula::Definitely(x) => Op::Definitely(at(x)),
                Formula::And(x, y) => Op::And(at(x), at(y)),
                Formula::Or(x, y) => Op::Or(at(x), at(y)),
                Formula::Same(x, y) => Op::Same(at(x), at(y)),
                Formula::If(x, y, z) => Op::If(at(x), at(y), at(z)),
            };
            cut.ops.push(op);
            place.insert(node, cut.ops.len() as OpIndex - 1);
        }
        Ok(cut)
    }
}

/// The place of something in a list, where it is added if it is not there.
fn number(list: &mut Vec<OpIndex>, wanted: OpIndex) -> Result<OpIndex, TooLarge> {
    if let Some(at) = list.iter().position(|&x| x == wanted) {
        return Ok(at as OpIndex);
    }
    if list.len() == Plan::WIDTH {
        return Err(TooLarge);
    }
    list.push(wanted);
    Ok(list.len() as OpIndex - 1)
}
