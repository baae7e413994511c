//! The other members, as one member knows them from their signs.

use super::{Nanos, Rank, Role};

/// The largest distance between the numbers of two signs, unless the member was silent between them.
const LEAP: u64 = 64;
/// Number of signs in a row from which on no sign with a smaller number is a new one.
const CONFIRMED: u32 = 16;

/// Another member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    /// The numbers of its signs.
    pub numbers: Numbers,
    /// Its rank.
    pub rank: Rank,
    /// Its state.
    pub role: Role,
    /// Whether its process has ended.
    pub has_ended: bool,
    /// Time of its last sign.
    pub received: Nanos,
}

impl Other {
    /// Whether it is not late.
    pub(super) fn is_complete(&self) -> bool {
        let (is_complete, ..) = self.rank;
        is_complete
    }
}

/// The numbers of the signs of a member, by which repeated signs are known. A forged or damaged sign with a far larger number
/// does not make all further ones repeated: it is no new one while the member sends signs, and once it was accepted,
/// smaller numbers are accepted again after a silence, if they have not come before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// That of the last sign.
    last: u64,
    /// Every smaller number, and this one, is that of an old sign.
    old: u64,
    /// Signs in a row, without a leap.
    row: u32,
    /// The number from which the last one went back.
    leapt: Option<u64>,
}

impl Numbers {
    /// The number of the first sign.
    pub(super) fn new(first: u64) -> Numbers {
        Numbers { last: first, old: 0, row: 0, leapt: None }
    }

    /// Whether a sign with this number is a new one. `is_silent`: none was accepted for a lease.
    pub(super) fn is_new(&self, number: u64, is_silent: bool) -> bool {
        if self.leapt == Some(number) {
            return false;
        }
        match number.checked_sub(self.last) {
            None => is_silent && number > self.old,
            Some(0) => false,
            Some(ahead) => is_silent || ahead <= LEAP,
        }
    }

    /// Notes the number of a new sign.
    pub(super) fn note(&mut self, number: u64) {
        match number.checked_sub(self.last) {
            None => (self.leapt, self.row) = (Some(self.last), 0),
            Some(ahead) => {
                if self.row >= CONFIRMED {
                    self.old = self.last;
                }
                self.row = if ahead > LEAP { 0 } else { self.row.saturating_add(1) };
            }
        }
        self.last = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes the number if it is that of a new sign, and returns whether it is.
    fn accepts(numbers: &mut Numbers, number: u64, is_silent: bool) -> bool {
        let is_new = numbers.is_new(number, is_silent);
        if is_new {
            numbers.note(number);
        }
        is_new
    }

    /// The numbers after signs from 1 to 100.
    fn hundred() -> Numbers {
        let mut numbers = Numbers::new(1);
        assert!((2..=100).all(|number| accepts(&mut numbers, number, false)));
        numbers
    }

    #[test]
    fn repeated_and_old_signs_are_not_new() {
        let mut numbers = hundred();
        for number in 0..=100 {
            assert!(
                !accepts(&mut numbers, number, false) && !accepts(&mut numbers, number, true),
                "{number}"
            );
        }
        assert!(accepts(&mut numbers, 103, false), "two were lost");
        assert!(!accepts(&mut numbers, 102, false), "it comes out of order");
    }

    #[test]
    fn leap_is_new_only_after_a_silence() {
        let mut numbers = hundred();
        assert!(!accepts(&mut numbers, u64::MAX, false) && !accepts(&mut numbers, 101 + LEAP, false));
        assert!(accepts(&mut numbers, 101, false), "the real one");
        assert!(accepts(&mut numbers, 5_000, true), "a link was cut for long");
        assert!(accepts(&mut numbers, 5_001, false));
    }

    #[test]
    fn smaller_numbers_are_new_again_after_a_leap() {
        let mut numbers = hundred();
        assert!(accepts(&mut numbers, u64::MAX - 1, true) && accepts(&mut numbers, u64::MAX, false));
        assert!(!accepts(&mut numbers, 101, false));
        assert!(!accepts(&mut numbers, 99, true) && !accepts(&mut numbers, 100, true), "old ones");
        assert!(accepts(&mut numbers, 102, true) && accepts(&mut numbers, 103, false));
        assert!(!accepts(&mut numbers, u64::MAX, true), "the forged one is repeated");
        assert!(!accepts(&mut numbers, 102, true) || !accepts(&mut numbers, 102, true), "once at most");
    }

    #[test]
    fn forged_first_sign_is_no_last_one() {
        let mut numbers = Numbers::new(u64::MAX);
        assert!(!accepts(&mut numbers, 7, false));
        assert!(accepts(&mut numbers, 8, true) && accepts(&mut numbers, 9, false));
    }

    #[test]
    fn leap_that_is_small_delays_signs_for_one_lease() {
        let mut numbers = hundred();
        assert!(accepts(&mut numbers, 100 + LEAP, false));
        assert!(!accepts(&mut numbers, 102, false));
        assert!(accepts(&mut numbers, 103, true) && accepts(&mut numbers, 104, false));
    }
}
