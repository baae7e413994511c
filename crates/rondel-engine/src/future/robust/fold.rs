use serde::{Deserialize, Serialize};

use super::levels::Levels;

/// A stretch of time: the least that the left operand of `until` is in it, and what `until` is at its beginning as far
/// as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) left: Levels,
    pub(super) until: Levels,
}

impl Stretch {
    pub(super) const EMPTY: Stretch = Stretch { left: Levels::TRUE, until: Levels::FALSE };

    /// This one and what follows it, as one.
    #[inline(always)]
    fn then(self, later: Stretch) -> Stretch {
        Stretch { left: self.left.and(later.left), until: self.until.or(self.left.and(later.until)) }
    }
}

/// A queue of stretches that knows what they are as one. The front half has for each what it is with all of the half
/// that follow it; when it is used up the back half becomes it: every stretch is so touched twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Fold {
    /// The oldest last.
    front: Vec<Stretch>,
    back: Vec<Stretch>,
    /// The back half as one, if there is any of it.
    all_of_back: Option<Stretch>,
}

impl Fold {
    pub(super) fn push(&mut self, stretch: Stretch) {
        self.back.push(stretch);
        self.all_of_back = Some(self.all_of_back.map_or(stretch, |back| back.then(stretch)));
    }

    /// Removes the oldest.
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

    /// All as one.
    pub(super) fn get(&self) -> Stretch {
        let back = self.all_of_back.unwrap_or(Stretch::EMPTY);
        self.front.last().map_or(back, |front| front.then(back))
    }
}
