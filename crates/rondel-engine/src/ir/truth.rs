//! Three-valued truths as pairs of wires.

use crate::ir::wire::{Halves, Wire};

/// Lower and upper truth of a formula: where it must be true, and where it may be. They are equal if it is
/// never unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TruthBounds {
    pub(crate) certain: Wire,
    pub(crate) possible: Wire,
}

impl TruthBounds {
    pub(crate) fn both(wire: Wire) -> TruthBounds {
        TruthBounds { certain: wire, possible: wire }
    }

    pub(crate) fn not(self) -> TruthBounds {
        TruthBounds { certain: !self.possible, possible: !self.certain }
    }
}

/// A truth at the rows and on the intervals after them. Without dense time both halves are equal, and the
/// second is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) at: TruthBounds,
    pub(crate) after: TruthBounds,
}

impl Truth {
    pub(crate) fn lasting(bounds: TruthBounds) -> Truth {
        Truth { at: bounds, after: bounds }
    }

    pub(crate) fn not(self) -> Truth {
        Truth { at: self.at.not(), after: self.after.not() }
    }

    pub(crate) fn certain(self) -> Halves {
        Halves { at: self.at.certain, after: self.after.certain }
    }

    pub(crate) fn possible(self) -> Halves {
        Halves { at: self.at.possible, after: self.after.possible }
    }

    pub(crate) fn of(certain: Halves, possible: Halves) -> Truth {
        Truth {
            at: TruthBounds { certain: certain.at, possible: possible.at },
            after: TruthBounds { certain: certain.after, possible: possible.after },
        }
    }
}
