use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

use super::key::{self, Key};
use super::runs::Runs;

/// Bounds of an operator in units of the axis; `lower <= upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) lower: i128,
    pub(crate) upper: i128,
    /// Odd coordinates are open intervals. A witness in one has a part of it before itself, where the left
    /// operand must be true too, unless the interval is the place being evaluated.
    pub(crate) spans: bool,
}

impl Reach {
    /// Returns bounds given in steps or nanoseconds.
    pub(crate) fn new(time: TimeModel, lower: u64, upper: u64) -> Reach {
        let spans = time == TimeModel::Dense;
        let unit = if spans { 2 } else { 1 };
        Reach { lower: unit * i128::from(lower), upper: unit * i128::from(upper), spans }
    }

    fn is_span(self, place: Key) -> bool {
        self.spans && key::axis(place) & 1 == 1
    }

    /// Returns the last place that can have a witness if the left operand is true up to `end` and not after
    /// it.
    fn last_witness(self, end: Key) -> Key {
        if self.is_span(end + 1) { end } else { end + 1 }
    }

    /// Returns the first place that can have a witness only because the left operand is true at `begin`.
    fn first_witness(self, begin: Key) -> Key {
        if self.is_span(begin) { begin } else { begin + 1 }
    }
}

/// Decision about an interval of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) lo: Key,
    pub(crate) hi: Key,
    pub(crate) value: bool,
    /// The end moves on as time does, if nothing else happens.
    pub(crate) moving: bool,
}

/// Knowledge about an operand: where it is true, where it is false, and where either is known. Runs that can
/// no longer matter are dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Signal {
    ones: Runs,
    zeros: Runs,
    known: Runs,
}

impl Signal {
    fn clear(&mut self) {
        let Signal { ones, zeros, known } = self;
        [ones, zeros, known].into_iter().for_each(Runs::clear);
    }

    /// First place at which the operand is unknown.
    fn first_unknown(&self) -> Key {
        self.known.front_end().map_or(key::START, |end| end + 1)
    }
}

/// `p until[lower, upper] q` for one truth bound, hence two-valued. Places are decided as the operands are,
/// which may be out of order if these contain future operators themselves.
///
/// `until` is *true* at `t` once there is a true `q` within the bounds and `p` is true from `t` up to it; it
/// is *false* once no `q` can be such a witness any more: within the bounds, up to the first false `p`, all
/// are false. Every rule below finds the places that a new truth of an operand decides; they always form an
/// interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Until {
    q: Signal,
    /// Left operand; none for `eventually`, where it is always true.
    p: Option<Signal>,
    decided: Runs,
}

impl Until {
    pub(crate) fn new(has_left: bool) -> Until {
        Until { q: Signal::default(), p: has_left.then(Signal::default), decided: Runs::default() }
    }

    /// Whether the state belongs to the same operator.
    pub(crate) fn fits(&self, other: &Until) -> bool {
        self.p.is_some() == other.p.is_some()
    }

    /// Resets the state.
    pub(crate) fn clear(&mut self) {
        self.q.clear();
        if let Some(p) = &mut self.p {
            p.clear();
        }
        self.decided.clear();
    }

    /// Marks everything before `first` as absent.
    pub(crate) fn begin(&mut self, first: Key) {
        self.decided.add(key::START, first - 1);
        self.q.known.add(key::START, first - 1);
        if let Some(p) = &mut self.p {
            p.known.add(key::START, first - 1);
        }
    }

    /// Takes a decision about the right operand.
    pub(crate) fn right(&mut self, reach: Reach, piece: Piece, out: &mut Vec<Piece>) {
        let Piece { lo, hi, value, moving } = piece;
        self.q.known.add(lo, hi);
        if value {
            self.drop_short(reach, lo);
            let Some(p) = &self.p else {
                let (from, to) = witnessed(reach, lo, hi);
                emit(&mut self.decided, out, Piece { lo: from, hi: to, value, moving });
                return;
            };
            self.q.ones.add(lo, hi);
            if reach.lower == 0 {
                emit(&mut self.decided, out, piece);
            }
            for run in p.ones.reaching(lo - 1) {
                if run.0 > hi {
                    break;
                }
                let (begin, to) = (lo.max(run.0), hi.min(reach.last_witness(run.1)));
                if to < begin {
                    continue;
                }
                let moving = moving && to == hi;
                let (from, to) = witnessed(reach, begin, to);
                emit(&mut self.decided, out, Piece { lo: from.max(run.0), hi: to, value, moving });
            }
            return;
        }
        let (begin, end) = self.q.zeros.add(lo, hi);
        let from = windows_from(reach, begin);
        let moving = moving && end == hi;
        emit(&mut self.decided, out, Piece { lo: from, hi: windows_to(reach, end), value, moving });
        if let Some(p) = &self.p {
            for run in p.zeros.reaching(lo) {
                // A false operand in an open interval excludes witnesses from all of it.
                if reach.first_witness(run.0) > end + 1 {
                    break;
                }
                let moving = moving && run.1 >= end;
                emit(&mut self.decided, out, Piece { lo: from, hi: run.1.min(end), value, moving });
            }
        }
    }

    /// Takes a decision about the left operand.
    pub(crate) fn left(&mut self, reach: Reach, piece: Piece, out: &mut Vec<Piece>) {
        let Piece { lo, hi, value, moving } = piece;
        let Some(p) = &mut self.p else { return };
        p.known.add(lo, hi);
        if value {
            let run = p.ones.add(lo, hi);
            let (first, last) = (reach.first_witness(lo), reach.last_witness(run.1));
            for ones in self.q.ones.reaching(first) {
                if ones.0 > last {
                    break;
                }
                let (from, to) = witnessed(reach, ones.0.max(first), ones.1.min(last));
                let moving = moving && ones.1 >= run.1 && run.1 == hi;
                emit(&mut self.decided, out, Piece { lo: from.max(run.0), hi: to, value, moving });
            }
            return;
        }
        p.zeros.add(lo, hi);
        if reach.lower > 0 {
            let from = key::first(key::axis(lo) - reach.lower + i128::from(!reach.is_span(lo)));
            emit(&mut self.decided, out, Piece { lo: from, hi, value, moving });
        }
        for run in self.q.zeros.reaching(reach.first_witness(lo) - 1) {
            if run.0 > hi {
                break;
            }
            let moving = moving && run.1 >= hi;
            let from = windows_from(reach, run.0);
            emit(&mut self.decided, out, Piece { lo: from, hi: hi.min(run.1), value, moving });
        }
    }

    /// Drops a false run of the right operand that ends before `end`, where it is true, if no window fits
    /// into the run.
    fn drop_short(&mut self, reach: Reach, end: Key) {
        let Some(run) = self.q.zeros.back() else { return };
        let is_closed = run.1 + 1 == end && self.q.known.at(run.0 - 1).is_some();
        let is_passed =
            self.p.as_ref().is_none_or(|p| p.first_unknown() > run.1 + i128::from(reach.is_span(run.1 + 1)));
        if is_closed && is_passed && windows_to(reach, run.1) < windows_from(reach, run.0) {
            self.q.zeros.pop_back();
        }
    }

    /// Drops runs that can no longer matter.
    pub(crate) fn forget(&mut self, reach: Reach) {
        let undecided = self.decided.front_end().map_or(key::START, |end| end + 1);
        let mut needed = match reach.lower {
            0 => undecided,
            lower => key::first(key::axis(undecided) + lower),
        };
        if let Some(p) = &mut self.p {
            let (unknown_q, unknown_p) = (self.q.first_unknown(), p.first_unknown());
            needed = needed.min(reach.first_witness(unknown_p) - 1);
            self.q.ones.forget_before(reach.first_witness(unknown_p));
            // The last run before the unknown part may still grow.
            p.ones.forget_before(unknown_q.min(unknown_p) - 1);
            p.zeros.forget_before(unknown_q);
        }
        self.q.zeros.forget_before(needed);
    }

    /// Calls `f` with the coordinates after `after` at which a rule may begin to decide although no waiting
    /// entry begins there: where windows begin to fit into a run, where the place just before a known one
    /// becomes known, or where new knowledge of one operand meets the other.
    pub(crate) fn starts(&self, reach: Reach, after: i128, mut f: impl FnMut(i128)) {
        let mut offer = |runs: &Runs, at: &dyn Fn(Key) -> i128| {
            runs.backwards().map(|run| at(run.0)).take_while(|&at| at > after).for_each(&mut f);
        };
        offer(&self.q.zeros, &|begin| key::axis(windows_from(reach, begin)));
        offer(&self.q.known, &|begin| key::axis(begin - 1));
        if let Some(p) = &self.p {
            offer(&self.q.ones, &|begin| key::axis(begin) - reach.lower);
            offer(&p.known, &|begin| key::axis(begin - 1));
            offer(&p.ones, &key::axis);
            offer(&p.zeros, &key::axis);
            // A false left operand in an open interval also decides the instant before it.
            offer(&p.zeros, &|begin| key::axis(begin - i128::from(reach.is_span(begin))));
        }
    }

    /// Number of stored intervals.
    pub(crate) fn kept(&self) -> usize {
        let signal = |s: &Signal| s.ones.len() + s.zeros.len() + s.known.len();
        signal(&self.q) + self.p.as_ref().map_or(0, signal) + self.decided.len()
    }
}

/// Returns the places that have some of an interval within the bounds.
fn witnessed(reach: Reach, lo: Key, hi: Key) -> (Key, Key) {
    // An earlier event at the same time is not in the future.
    (key::first(key::axis(lo) - reach.upper), key::last(key::axis(hi) - reach.lower).min(hi))
}

/// Returns the first place whose whole window is at or after `begin`.
fn windows_from(reach: Reach, begin: Key) -> Key {
    if reach.lower == 0 { begin } else { key::first(key::ceil(begin) - reach.lower) }
}

/// Returns the last place whose whole window is at or before `end`.
fn windows_to(reach: Reach, end: Key) -> Key {
    key::last(key::floor(end) - reach.upper)
}

/// Adds the undecided part of a piece to the decided places and to `out`.
fn emit(decided: &mut Runs, out: &mut Vec<Piece>, piece: Piece) {
    if piece.lo > piece.hi {
        return;
    }
    let before = out.len();
    decided.gaps(piece.lo, piece.hi, |lo, hi| {
        out.push(Piece { lo, hi, moving: piece.moving && hi == piece.hi, ..piece });
    });
    if out.len() > before {
        decided.add(piece.lo, piece.hi);
    }
}
