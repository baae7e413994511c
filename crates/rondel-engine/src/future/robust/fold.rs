use serde::{Deserialize, Serialize};

use super::levels::Levels;

/// Stretch of time: minimum of the left operand of `until` over it, and the value of `until` at its
/// beginning, restricted to the stretch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) left: Levels,
    pub(super) until: Levels,
}

impl Stretch {
    pub(super) const EMPTY: Stretch = Stretch { left: Levels::TRUE, until: Levels::FALSE };

    /// Concatenates two stretches.
    #[inline(always)]
    fn then(self, later: Stretch) -> Stretch {
        Stretch { left: self.left.and(later.left), until: self.until.or(self.left.and(later.until)) }
    }
}

/// Queue of stretches with their concatenation. Each element of the front half is concatenated with all later
/// ones of that half; an empty front half is refilled from the back half, so that every stretch is touched
/// twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Fold {
    /// Front half, the oldest last.
    front: Vec<Stretch>,
    back: Vec<Stretch>,
    /// Concatenation of the back half, if it is not empty.
    all_of_back: Option<Stretch>,
}

impl Fold {
    pub(super) fn push(&mut self, stretch: Stretch) {
        self.back.push(stretch);
        self.all_of_back = Some(self.all_of_back.map_or(stretch, |back| back.then(stretch)));
    }

    /// Removes the oldest stretch.
    pub(super) fn pop(&mut self) {
        if self.front.is_empty() {
            let mut whole = Stretch::EMPTY;
            while let Some(stretch) = self.back.pop() {
                whole = stretch.then(whole);
                self.front.push(whole);
            }
            self.all_of_back = None;
        }
        self.front.pop();
    }

    /// Returns the concatenation of all stretches.
    pub(super) fn get(&self) -> Stretch {
        let back = self.all_of_back.unwrap_or(Stretch::EMPTY);
        self.front.last().map_or(back, |front| front.then(back))
    }
}
