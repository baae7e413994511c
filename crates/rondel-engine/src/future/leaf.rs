use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

use super::key::{self, Key};
use super::runs::Runs;

/// The bounds of an operator, in units of the axis; `lower <= upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) lower: i128,
    pub(crate) upper: i128,
    /// Odd coordinates are spans of time. A witness in a span has a part of it before it, where the left operand must be
    /// true too, unless the span is what the operator is asked about.
    pub(crate) spans: bool,
}

impl Reach {
    /// Bounds in steps or nanoseconds.
    pub(crate) fn new(time: TimeModel, lower: u64, upper: u64) -> Reach {
        let spans = time == TimeModel::Dense;
        let unit = if spans { 2 } else { 1 };
        Reach { lower: unit * i128::from(lower), upper: unit * i128::from(upper), spans }
    }

    fn is_span(self, place: Key) -> bool {
        self.spans && key::axis(place) & 1 == 1
    }

    /// The last place that can have a witness if the left operand is true up to `end` and not after it.
    fn last_witness(self, end: Key) -> Key {
        if self.is_span(end + 1) { end } else { end + 1 }
    }

    /// The first place that can have a witness only because the left operand is true at `begin`.
    fn first_witness(self, begin: Key) -> Key {
        if self.is_span(begin) { begin } else { begin + 1 }
    }
}

/// Something that has become certain about an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) lo: Key,
    pub(crate) hi: Key,
    pub(crate) value: bool,
    /// The end moves on as time does, if nothing else happens.
    pub(crate) moving: bool,
}

/// What is known of an operand: where it is true, where it is false, and where either. What can play
/// no role any more is forgotten.
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

    /// The first place at which it is not known.
    fn first_unknown(&self) -> Key {
        self.known.front_end().map_or(key::START, |end| end + 1)
    }
}

/// `p until[lower, upper] q` on one rail, where truths are two: decided about one place after the
/// other as its operands are, which may be out of order where they look ahead themselves.
///
/// About `t` it is *true* once there is a true `q` within the bounds and `p` is true from `t` up to it;
/// it is *false* once no `q` can do that any more: within the bounds, up to the first false `p`, all
/// are false. Every rule below finds the places about which a new truth of an operand decides
/// this, and they are always an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Until {
    q: Signal,
    /// Without it `p` is always true: `eventually`.
    p: Option<Signal>,
    decided: Runs,
}

impl Until {
    pub(crate) fn new(has_left: bool) -> Until {
        Until { q: Signal::default(), p: has_left.then(Signal::default), decided: Runs::default() }
    }

    /// Whether it is of the same operator.
    pub(crate) fn fits(&self, other: &Until) -> bool {
        self.p.is_some() == other.p.is_some()
    }

    /// As it was when it was new.
    pub(crate) fn clear(&mut self) {
        self.q.clear();
        if let Some(p) = &mut self.p {
            p.clear();
        }
        self.decided.clear();
    }

    /// There is nothing before `first`.
    pub(crate) fn begin(&mut self, first: Key) {
        self.decided.add(key::START, first - 1);
        self.q.known.add(key::START, first - 1);
        if let Some(p) = &mut self.p {
            p.known.add(key::START, first - 1);
        }
    }

    /// The right operand has become certain.
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
                // What is not true in a span keeps witnesses from all of it.
                if reach.first_witness(run.0) > end + 1 {
                    break;
                }
                let moving = moving && run.1 >= end;
                emit(&mut self.decided, out, Piece { lo: from, hi: run.1.min(end), value, moving });
            }
        }
    }

    /// The left operand has become certain.
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

    /// Forgets a false run of the right operand that ends before `end`, where it is true, if no window
    /// fits into it.
    fn drop_short(&mut self, reach: Reach, end: Key) {
        let Some(run) = self.q.zeros.back() else { return };
        let is_closed = run.1 + 1 == end && self.q.known.at(run.0 - 1).is_some();
        let is_passed =
            self.p.as_ref().is_none_or(|p| p.first_unknown() > run.1 + i128::from(reach.is_span(run.1 + 1)));
        if is_closed && is_passed && windows_to(reach, run.1) < windows_from(reach, run.0) {
            self.q.zeros.pop_back();
        }
    }

    /// Forgets what can play no role any more.
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
            // The last run before what is not known may still become longer.
            p.ones.forget_before(unknown_q.min(unknown_p) - 1);
            p.zeros.forget_before(unknown_q);
        }
        self.q.zeros.forget_before(needed);
    }

    /// Calls `f` with the coordinates, of those after `after`, at which a rule may begin to decide though
    /// nothing that is waiting begins there: where windows begin to fit into a run, where the last
    /// place before what is known already becomes known, or where what is becoming known of one operand
    /// comes to something in the other.
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
            // A false left operand in a span also decides about the instant before it.
            offer(&p.zeros, &|begin| key::axis(begin - i128::from(reach.is_span(begin))));
        }
    }

    /// How many intervals it keeps.
    pub(crate) fn kept(&self) -> usize {
        let signal = |s: &Signal| s.ones.len() + s.zeros.len() + s.known.len();
        signal(&self.q) + self.p.as_ref().map_or(0, signal) + self.decided.len()
    }
}

/// The places about which something in an interval is within the bounds.
fn witnessed(reach: Reach, lo: Key, hi: Key) -> (Key, Key) {
    // What happened earlier at the same time is not ahead.
    (key::first(key::axis(lo) - reach.upper), key::last(key::axis(hi) - reach.lower).min(hi))
}

/// The first place all of whose window is at or after `begin`.
fn windows_from(reach: Reach, begin: Key) -> Key {
    if reach.lower == 0 { begin } else { key::first(key::ceil(begin) - reach.lower) }
}

/// The last place all of whose window is at or before `end`.
fn windows_to(reach: Reach, end: Key) -> Key {
    key::last(key::floor(end) - reach.upper)
}

/// Adds what is not yet decided to the decided, and to `out`.
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
