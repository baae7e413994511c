//! Formulas with future operators, cut into boolean frames and obligations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rondel_event::Verdict;
use rondel_spec::TimeModel;

use super::until::Reach;

/// Node of a formula with future operators; operands are earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Formula {
    /// Truth that is certain, or unknown for ever, at the time point itself; by its number.
    Past(u32),
    Not(u32),
    And(u32, u32),
    Or(u32, u32),
    /// True where the operand is certainly true, otherwise false.
    Definitely(u32),
    /// `if`: unknown when the condition is.
    If(u32, u32, u32),
    /// Equality of two truths; unknown when one is.
    Same(u32, u32),
    Next(u32),
    /// Truth decided by another part of the monitor, for every time point eventually; false between time
    /// points. By its number.
    External(u32),
    /// `lower..=upper` in steps or nanoseconds; without `left` that operand is always true.
    Until {
        lower: u64,
        upper: u64,
        left: Option<u32>,
        right: u32,
    },
}

/// Index of an operation in a [`BoolFrame`], or of an obligation or a frame in the plan.
type OpIndex = u32;

/// Operation of a frame; operands are earlier operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    True,
    Past(OpIndex),
    /// Obligation with this index in the frame.
    Obligation(OpIndex),
    Not(OpIndex),
    And(OpIndex, OpIndex),
    Or(OpIndex, OpIndex),
    Definitely(OpIndex),
    If(OpIndex, OpIndex, OpIndex),
    Same(OpIndex, OpIndex),
}

/// Range of truths that the future may still decide, per bit of a word: the lower truth (`certain`) and the
/// upper truth (`possible`), each in the worst and in the best case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) certain: [u64; 2],
    pub(crate) possible: [u64; 2],
}

impl Range {
    /// Undecided.
    pub(crate) const PENDING: Range = Range { certain: [0, u64::MAX], possible: [0, u64::MAX] };
    pub(crate) const TRUE: Range = Range { certain: [u64::MAX; 2], possible: [u64::MAX; 2] };

    pub(crate) const FALSE: Range = Range { certain: [0; 2], possible: [0; 2] };

    pub(crate) fn known(certain: u64, possible: u64) -> Range {
        Range { certain: [certain; 2], possible: [possible; 2] }
    }

    /// Returns the bits where the lower and where the upper truth is decided.
    pub(crate) fn decided(&self) -> [u64; 2] {
        [!(self.certain[0] ^ self.certain[1]), !(self.possible[0] ^ self.possible[1])]
    }

    /// Returns the verdict of the lowest bit once both truths are decided.
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

    /// Combines a range that is true with one that is false: certainly and possibly true from certainly and
    /// possibly false.
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

/// Boolean combination of pasts and obligations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BoolFrame {
    /// Operations; the last one is the result.
    pub(crate) ops: Vec<Op>,
    /// Pasts that the frame reads; `Op::Past` indexes these.
    pub(crate) pasts: Vec<OpIndex>,
    /// Obligations of the frame; `Op::Obligation` indexes these.
    pub(crate) obligations: Vec<OpIndex>,
    /// Obligations that the frame is an operand of, and whether the left one.
    pub(crate) feeds: Vec<(OpIndex, bool)>,
}

impl BoolFrame {
    /// Evaluates the frame for these pasts and obligations.
    pub(crate) fn evaluate(
        &self,
        past: impl Fn(usize) -> Range,
        obligation: impl Fn(usize) -> Range,
        scratch: &mut Vec<Range>,
    ) -> Range {
        scratch.clear();
        for op in &self.ops {
            let at = |i: OpIndex| scratch[i as usize];
            let value = match *op {
                Op::True => Range::TRUE,
                Op::Past(i) => past(i as usize),
                Op::Obligation(i) => obligation(i as usize),
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

/// Future operator, or external truth, that later events decide.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Obligation {
    /// Number of the external truth.
    pub(crate) external: Option<u32>,
    /// Bounds; none for `next` in points, which counts events and not time.
    pub(crate) reach: Option<Reach>,
    pub(crate) has_left: bool,
    /// Frames that contain the obligation, and its index in each.
    pub(crate) owners: Vec<(OpIndex, OpIndex)>,
    /// Possible delays between an input and the decisions that it causes, in units of the axis.
    pub(crate) lags: Vec<i128>,
}

/// Immutable evaluation plan of a property with future operators.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) time: TimeModel,
    /// Frames, each after the operands of its obligations; the last one is the formula.
    pub(crate) frames: Vec<BoolFrame>,
    pub(crate) obligations: Vec<Obligation>,
}

/// Error: a formula has too many parts to be kept pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Plan {
    /// Maximum number of pasts, and of obligations, in one frame.
    pub(crate) const WIDTH: usize = 32;
    /// Maximum number of different lags.
    const LAGS: usize = 1000;

    /// Plans the last node of `nodes`.
    pub(crate) fn new(time: TimeModel, nodes: &[Formula]) -> Result<Plan, TooLarge> {
        let Some(root) = nodes.len().checked_sub(1) else {
            return Err(TooLarge);
        };
        let parts = needed_frames(nodes, root as OpIndex)?;
        let place: HashMap<OpIndex, OpIndex> = parts.keys().zip(0..).map(|(&root, i)| (root, i)).collect();
        let mut plan = Plan { time, frames: Vec::new(), obligations: Vec::new() };
        let mut obligation_index: HashMap<OpIndex, OpIndex> = HashMap::new();
        let mut feeds: Vec<Vec<(OpIndex, bool)>> = vec![Vec::new(); parts.len()];
        // Inner frames come first, so that the lags of an operand are known.
        for (i, cut) in parts.into_values().enumerate() {
            let mut obligations = Vec::with_capacity(cut.obligations.len());
            for (local, node) in cut.obligations.iter().enumerate() {
                let at = match obligation_index.get(node) {
                    Some(&at) => at,
                    None => {
                        let at = plan.obligations.len() as OpIndex;
                        let obligation = plan.obligation(nodes[*node as usize], at, &place, &mut feeds)?;
                        plan.obligations.push(obligation);
                        obligation_index.insert(*node, at);
                        at
                    }
                };
                plan.obligations[at as usize].owners.push((i as OpIndex, local as OpIndex));
                obligations.push(at);
            }
            plan.frames.push(BoolFrame { ops: cut.ops, pasts: cut.pasts, obligations, feeds: Vec::new() });
        }
        for (frame, feeds) in plan.frames.iter_mut().zip(feeds) {
            frame.feeds = feeds;
        }
        Ok(plan)
    }

    /// Plans the obligation of a node, which gets the index `at`, and adds it to the feeds of its operands' frames.
    fn obligation(
        &self,
        node: Formula,
        at: OpIndex,
        place: &HashMap<OpIndex, OpIndex>,
        feeds: &mut [Vec<(OpIndex, bool)>],
    ) -> Result<Obligation, TooLarge> {
        let (left, right, reach) = match node {
            Formula::External(number) => {
                return Ok(Obligation {
                    external: Some(number),
                    reach: None,
                    has_left: false,
                    owners: Vec::new(),
                    lags: vec![0],
                });
            }
            Formula::Until { lower, upper, left, right } => {
                (left, right, Some(Reach::new(self.time, lower, upper)))
            }
            Formula::Next(x) if self.time == TimeModel::Points => (None, x, None),
            Formula::Next(x) => (None, x, Some(Reach::new(self.time, 1, 1))),
            _ => return Err(TooLarge),
        };
        let mut lags = BTreeSet::new();
        let (lower, upper) = reach.map_or((0, 0), |reach| (reach.lower, reach.upper));
        self.lags_of(place[&right], [0, lower, upper], &mut lags);
        if let Some(left) = left {
            // A witness needs the left operand only up to just before itself.
            self.lags_of(place[&left], [0, lower, lower - 1], &mut lags);
        }
        if lags.len() > Plan::LAGS {
            return Err(TooLarge);
        }
        feeds[place[&right] as usize].push((at, false));
        if let Some(left) = left {
            feeds[place[&left] as usize].push((at, true));
        }
        Ok(Obligation {
            external: None,
            reach,
            has_left: left.is_some(),
            owners: Vec::new(),
            lags: lags.into_iter().collect(),
        })
    }

    /// Returns the index of the external obligation with this number.
    pub(crate) fn external(&self, number: u32) -> Option<usize> {
        self.obligations.iter().position(|obligation| obligation.external == Some(number))
    }

    /// Whether a time point of the points model with these pasts is as good as absent: nothing is left open
    /// about it, and it neither is a witness of an earlier one nor breaks one.
    pub(crate) fn is_idle(&self, past: impl Fn(usize) -> Range, scratch: &mut Vec<Range>) -> bool {
        !self.obligations.iter().any(|obligation| obligation.reach.is_none())
            && self.frames.iter().all(|frame| {
                let past = |i: usize| frame.pasts.get(i).map_or(Range::PENDING, |&i| past(i as usize));
                let range = frame.evaluate(past, |_| Range::PENDING, scratch);
                let [certain, possible] = range.decided();
                let is = |value: bool| {
                    let wanted = if value { 1 } else { 0 };
                    [range.certain[0], range.possible[0]].iter().all(|bound| bound & 1 == wanted)
                };
                certain & possible & 1 == 1 && frame.feeds.iter().all(|&(_, is_left)| is(is_left))
            })
    }

    /// Adds the lags that this operand causes in an obligation deciding later than the operand by each of
    /// `later`.
    fn lags_of(&self, operand: OpIndex, later: [i128; 3], lags: &mut BTreeSet<i128>) {
        let inner = self.frames[operand as usize].obligations.iter();
        let inner: BTreeSet<i128> = inner
            .flat_map(|&obligation| self.obligations[obligation as usize].lags.iter().copied())
            .collect();
        for lag in inner.into_iter().chain([0]) {
            for later in later {
                // Bounds longer than all of time need not be distinguished.
                lags.insert((lag + later).min(1 << 70));
            }
        }
    }
}

/// Cuts the nodes into frames. Returns the frames that the outermost one needs, by their roots.
fn needed_frames(nodes: &[Formula], root: OpIndex) -> Result<BTreeMap<OpIndex, FrameDraft>, TooLarge> {
    // Roots of the needed frames, from the outermost inwards.
    let mut roots = BTreeSet::from([root]);
    let mut parts: BTreeMap<OpIndex, FrameDraft> = BTreeMap::new();
    while let Some(root) = roots.pop_last() {
        let cut = FrameDraft::new(nodes, root)?;
        for &obligation in &cut.obligations {
            match nodes[obligation as usize] {
                Formula::Next(x) => drop(roots.insert(x)),
                Formula::Until { left, right, .. } => roots.extend(left.into_iter().chain([right])),
                _ => {}
            }
        }
        parts.insert(root, cut);
    }
    Ok(parts)
}

/// Frame under construction.
struct FrameDraft {
    ops: Vec<Op>,
    pasts: Vec<OpIndex>,
    /// Obligations, by their nodes.
    obligations: Vec<OpIndex>,
}

impl FrameDraft {
    fn new(nodes: &[Formula], root: OpIndex) -> Result<FrameDraft, TooLarge> {
        // Operands come before their node, so one backward pass finds the nodes of the frame.
        let mut inside = BTreeSet::new();
        let mut open = BTreeSet::from([root]);
        while let Some(node) = open.pop_last() {
            inside.insert(node);
            match nodes[node as usize] {
                Formula::Past(_) | Formula::Next(_) | Formula::External(_) | Formula::Until { .. } => {}
                Formula::Not(x) | Formula::Definitely(x) => drop(open.insert(x)),
                Formula::And(x, y) | Formula::Or(x, y) | Formula::Same(x, y) => open.extend([x, y]),
                Formula::If(x, y, z) => open.extend([x, y, z]),
            }
        }
        let mut cut = FrameDraft { ops: Vec::new(), pasts: Vec::new(), obligations: Vec::new() };
        let mut place: HashMap<OpIndex, OpIndex> = HashMap::new();
        for node in inside {
            let at = |x: OpIndex| place[&x];
            let op = match nodes[node as usize] {
                Formula::Past(i) => Op::Past(number(&mut cut.pasts, i)?),
                // An empty interval has no witness.
                Formula::Until { lower, upper, .. } if lower > upper => {
                    cut.ops.push(Op::True);
                    Op::Not(cut.ops.len() as OpIndex - 1)
                }
                Formula::Next(_) | Formula::External(_) | Formula::Until { .. } => {
                    Op::Obligation(number(&mut cut.obligations, node)?)
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

/// Returns the index of an element of a list, adding it if it is absent.
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
