//! Truths of three values as pairs of wires.

use crate::ir::wire::{Sides, Wire};

/// A three-valued truth: where it is certainly true, and where possibly. The two are equal if it is
/// never unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rails {
    pub(crate) certain: Wire,
    pub(crate) possible: Wire,
}

impl Rails {
    pub(crate) fn both(wire: Wire) -> Rails {
        Rails { certain: wire, possible: wire }
    }

    pub(crate) fn not(self) -> Rails {
        Rails { certain: !self.possible, possible: !self.certain }
    }
}

/// A truth at the rows, and on the spans that follow them. In the models without truth between events
/// the two are the same, and the second is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) at: Rails,
    pub(crate) after: Rails,
}

impl Truth {
    pub(crate) fn lasting(rails: Rails) -> Truth {
        Truth { at: rails, after: rails }
    }

    pub(crate) fn not(self) -> Truth {
        Truth { at: self.at.not(), after: self.after.not() }
    }

    pub(crate) fn certain(self) -> Sides {
        Sides { at: self.at.certain, after: self.after.certain }
    }

    pub(crate) fn possible(self) -> Sides {
        Sides { at: self.at.possible, after: self.after.possible }
    }

    pub(crate) fn of(certain: Sides, possible: Sides) -> Truth {
        Truth {
            at: Rails { certain: certain.at, possible: possible.at },
            after: Rails { certain: certain.after, possible: possible.after },
        }
    }
}
