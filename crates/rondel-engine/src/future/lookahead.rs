use rondel_spec::{Bounds, TimeModel};

use super::key::{self, Key};
use super::leaf::{Piece, Reach, Until};

/// What is known of a truth: whether it is certainly true, and whether it is possibly true; none while the future still
/// decides that.
pub type Known = [Option<bool>; 2];

/// What `left until[bounds] right`, or `eventually[bounds] right`, is at one place, told from what its operands are from
/// that place on. A [`Monitor`](crate::Monitor) forgets what it has decided; who explains a verdict asks this
/// again. Both have it from one kernel, `Until`.
///
/// Coordinates are steps, nanoseconds, or in dense time twice the nanoseconds, and one more for the open interval after.
///
/// ```
/// use rondel_engine::Lookahead;
/// use rondel_spec::{Bounds, TimeModel};
///
/// let mut eventually = Lookahead::new(TimeModel::Points, Bounds { lower: 2, upper: Some(5) }, false);
/// let [no, yes] = [[Some(false); 2], [Some(true); 2]];
/// eventually.moment(10, no, no);
/// eventually.moment(14, no, no);
/// assert_eq!(eventually.known(), [None; 2]);
/// eventually.moment(15, no, yes);
/// assert_eq!(eventually.known(), yes);
/// ```
#[derive(Clone, Debug)]
pub struct Lookahead {
    time: TimeModel,
    reach: Reach,
    /// The operator on both rails.
    rails: [Until; 2],
    /// The place that is asked about, once there was a moment.
    first: Option<Key>,
    /// The last moment, with its number among those at its coordinate, and what the operands are there.
    last: Key,
    number: u64,
    left: Known,
    right: Known,
    known: Known,
    pieces: Vec<Piece>,
}

impl Lookahead {
    /// The operator with these bounds; `eventually` if it has no left operand.
    pub fn new(time: TimeModel, bounds: Bounds, has_left: bool) -> Lookahead {
        let upper = bounds.upper.unwrap_or(u64::MAX).max(bounds.lower);
        Lookahead {
            time,
            reach: Reach::new(time, bounds.lower, upper),
            rails: [Until::new(has_left), Until::new(has_left)],
            first: None,
            last: key::START,
            number: 0,
            left: [None; 2],
            right: [None; 2],
            known: [None; 2],
            pieces: Vec::new(),
        }
    }

    /// The operands at the next moment at a coordinate, which is not before that of the last; in dense time also until
    /// the next moment. The first moment is the place that is asked about. The left operand of `eventually` is not looked at.
    pub fn moment(&mut self, at: i128, left: Known, right: Known) {
        let seen = self.first.map(|_| self.last);
        let place = key::next(seen, &mut self.number, at);
        if seen.is_none() {
            self.first = Some(place);
            self.rails.iter_mut().for_each(|rail| rail.begin(place));
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

    /// Nothing is known beyond a coordinate; unless it is `whole`, further moments may come at it.
    pub fn end(&mut self, at: i128, whole: bool) {
        let Some(first) = self.first else { return };
        // What comes after the bounds does not matter.
        let far = key::axis(first) + self.reach.upper;
        let (at, whole) = (at.min(far), whole || at > far);
        let end = if whole { key::last(at) } else { key::first(at) };
        if self.time == TimeModel::Dense {
            self.go_on(end.max(self.last));
        } else {
            self.pass(if whole { end } else { end - 1 });
        }
    }

    /// What it is, as far as is known.
    pub fn known(&self) -> Known {
        self.known
    }

    /// Between the events of steps and points there is nothing: no witness, and nothing that breaks.
    fn pass(&mut self, to: Key) {
        self.feed((self.last + 1, to), [Some(true); 2], [Some(false); 2]);
    }

    /// The operands are from the last moment on to a place as they were at it.
    fn go_on(&mut self, to: Key) {
        self.feed((self.last, to), self.left, self.right);
    }

    fn feed(&mut self, (lo, hi): (Key, Key), left: Known, right: Known) {
        let Some(first) = self.first.filter(|_| lo <= hi) else { return };
        let piece = |value: bool| Piece { lo, hi, value, moving: false };
        for (i, rail) in self.rails.iter_mut().enumerate() {
            if let Some(piece) = left[i].map(piece) {
                rail.left(self.reach, piece, &mut self.pieces);
            }
            if let Some(piece) = right[i].map(piece) {
                rail.right(self.reach, piece, &mut self.pieces);
            }
            let own = self.pieces.iter().find(|piece| (piece.lo..=piece.hi).contains(&first));
            self.known[i] = self.known[i].or(own.map(|piece| piece.value));
            self.pieces.clear();
        }
    }
}
