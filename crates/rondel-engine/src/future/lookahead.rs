use rondel_spec::{Bounds, TimeModel};

use super::key::{self, Key};
use super::until::{Piece, Reach, Until};

/// Lower and upper truth (must and may); `None` while the future still decides that one.
pub type Known = [Option<bool>; 2];

/// Value of `left until[bounds] right`, or `eventually[bounds] right`, at one place, computed from its
/// operands from that place on. A [`Monitor`](crate::Monitor) drops what it has decided; explanations of
/// verdicts recompute it. Both use the same kernel, `Until`.
///
/// Coordinates are steps, nanoseconds, or in dense time twice the nanoseconds, plus one for the open interval
/// after.
///
/// ```
/// use rondel_engine::Lookahead;
/// use rondel_spec::{Bounds, TimeModel};
///
/// let mut eventually = Lookahead::new(TimeModel::Points, Bounds { lower: 2, upper: Some(5) }, false);
/// let [no, yes] = [[Some(false); 2], [Some(true); 2]];
/// eventually.time_point(10, no, no);
/// eventually.time_point(14, no, no);
/// assert_eq!(eventually.known(), [None; 2]);
/// eventually.time_point(15, no, yes);
/// assert_eq!(eventually.known(), yes);
/// ```
#[derive(Clone, Debug)]
pub struct Lookahead {
    time: TimeModel,
    reach: Reach,
    /// The operator for the lower and for the upper truth.
    operators: [Until; 2],
    /// The evaluated place, once there was a time point.
    first: Option<Key>,
    /// Last time point, its number among those at its coordinate, and the operands there.
    last: Key,
    number: u64,
    left: Known,
    right: Known,
    known: Known,
    pieces: Vec<Piece>,
}

impl Lookahead {
    /// Creates the operator with these bounds; `eventually` if it has no left operand.
    pub fn new(time: TimeModel, bounds: Bounds, has_left: bool) -> Lookahead {
        let upper = bounds.upper.unwrap_or(u64::MAX).max(bounds.lower);
        Lookahead {
            time,
            reach: Reach::new(time, bounds.lower, upper),
            operators: [Until::new(has_left), Until::new(has_left)],
            first: None,
            last: key::START,
            number: 0,
            left: [None; 2],
            right: [None; 2],
            known: [None; 2],
            pieces: Vec::new(),
        }
    }

    /// Adds the operands at the next time point, at a coordinate that is not before the last one; in dense
    /// time they hold until the next time point. The first time point is the evaluated place. The left
    /// operand of `eventually` is ignored.
    pub fn time_point(&mut self, at: i128, left: Known, right: Known) {
        let seen = self.first.map(|_| self.last);
        let place = key::next(seen, &mut self.number, at);
        if seen.is_none() {
            self.first = Some(place);
            self.operators.iter_mut().for_each(|operator| operator.begin(place));
        } else if self.time == TimeModel::Dense {
            self.go_on(place - 1);
        } else {
            self.pass(place - 1);
        }
        (self.last, self.left, self.right) = (place, left, right);
        if self.time != TimeModel::Dense {
            self.go_on(place);
        }
    }

    /// Ends the known trace at a coordinate; unless it is `whole`, further time points may come at it.
    pub fn end(&mut self, at: i128, whole: bool) {
        let Some(first) = self.first else { return };
        // The trace beyond the bounds does not matter.
        let far = key::axis(first) + self.reach.upper;
        let (at, whole) = (at.min(far), whole || at > far);
        let end = if whole { key::last(at) } else { key::first(at) };
        if self.time == TimeModel::Dense {
            self.go_on(end.max(self.last));
        } else {
            self.pass(if whole { end } else { end - 1 });
        }
    }

    /// Returns the value as far as it is known.
    pub fn known(&self) -> Known {
        self.known
    }

    /// Adds the gap between events of steps and points: no witness, and nothing that breaks the left operand.
    fn pass(&mut self, to: Key) {
        self.feed(self.last + 1, to, [Some(true); 2], [Some(false); 2]);
    }

    /// Extends the operands at the last time point up to a place.
    fn go_on(&mut self, to: Key) {
        self.feed(self.last, to, self.left, self.right);
    }

    fn feed(&mut self, lo: Key, hi: Key, left: Known, right: Known) {
        let Some(first) = self.first.filter(|_| lo <= hi) else { return };
        let piece = |value: bool| Piece { lo, hi, value, moving: false };
        for (i, operator) in self.operators.iter_mut().enumerate() {
            if let Some(piece) = left[i].map(piece) {
                operator.left(self.reach, piece, &mut self.pieces);
            }
            if let Some(piece) = right[i].map(piece) {
                operator.right(self.reach, piece, &mut self.pieces);
            }
            let own = self.pieces.iter().find(|piece| (piece.lo..=piece.hi).contains(&first));
            self.known[i] = self.known[i].or(own.map(|piece| piece.value));
            self.pieces.clear();
        }
    }
}
