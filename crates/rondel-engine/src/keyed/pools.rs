//! States whose size varies, of all instances. A record refers to one by a word, 0 for an empty one, which is not kept.

use serde::{Deserialize, Serialize};

use crate::exec::state::{List, State};
use crate::machine::MachineState;
use crate::ops::delay::Delay;
use crate::ops::once;
use crate::ops::since::TimedSince;
use crate::ops::since::robust::{DenseSince, SinceRows};
use crate::ops::varying::Varying;
use crate::ops::window::Window;

/// Writes down the pools, every kind of state once, with its list in a [`State`]: from this follow the words of a record,
/// and how they are copied, given back, measured, saved, and moved into another program.
macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $list:ident, $($path:ident).+;)*) => {
        /// The states of all instances, those of each kind in a pool.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub(crate) struct Pools {
            $($(#[$doc])* pub(crate) $name: Pool<$type>,)*
            /// How many samples there was no room for in states that are gone.
            pub(super) dropped: u64,
        }

        /// The words of a record that refer to them, for every state of a [`State`] one.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub(crate) struct PoolWords {
            $(pub(crate) $name: Vec<u32>,)*
        }

        impl PoolWords {
            /// For the states of a section, with words that `word` gives.
            pub(super) fn new(state: &State, mut word: impl FnMut() -> u32) -> PoolWords {
                PoolWords { $($name: state.$($path).+.iter().map(|_| word()).collect(),)* }
            }
        }

        impl Pools {
            pub(super) fn new() -> Pools {
                Pools { $($name: Pool::new(),)* dropped: 0 }
            }

            /// Whether the words of a record refer to something, or are empty.
            pub(super) fn may_be(&self, record: &[u64], words: &PoolWords) -> bool {
                true $(&& words.$name.iter().all(|&word| self.$name.may_be(record[word as usize])))*
            }

            /// Makes copies of what the words of a record refer to, and refers to those.
            pub(super) fn copy(&mut self, record: &mut [u64], words: &PoolWords) {
                $(for &word in &words.$name {
                    record[word as usize] = self.$name.copy(record[word as usize]);
                })*
            }

            /// Gives back what the words of a record refer to, and remembers what it dropped.
            pub(super) fn free(&mut self, record: &mut [u64], words: &PoolWords, initial: &State) {
                $(for (&word, initial) in words.$name.iter().zip(&initial.$($path).+) {
                    let dropped = self.$name.renew(std::mem::take(&mut record[word as usize]), initial);
                    self.dropped = self.dropped.saturating_add(dropped);
                })*
            }

            /// How many samples there was no room for.
            pub(super) fn dropped(&self) -> u64 {
                [self.dropped $(, self.$name.dropped())*].into_iter().fold(0, u64::saturating_add)
            }

            /// How many bytes they take.
            pub(super) fn bytes(&self) -> usize {
                0 $(+ self.$name.bytes())*
            }
        }

        /// Which words of a record of another program become which of this one.
        #[derive(Default)]
        pub(super) struct PoolMoves {
            $($name: Vec<Move>,)*
        }

        impl PoolMoves {
            /// Of what both programs keep, as `both` finds it in a list.
            pub(super) fn new(
                [to, of]: [&PoolWords; 2],
                both: impl Fn(List, [&[u32]; 2]) -> Vec<Move>,
            ) -> PoolMoves {
                PoolMoves { $($name: both(List::$list, [&to.$name, &of.$name]),)* }
            }
        }

        /// What was saved of pools, each state to be taken once.
        pub(super) struct LoosePools {
            $($name: Loose<$type>,)*
        }

        impl LoosePools {
            pub(super) fn new(pools: Pools) -> LoosePools {
                LoosePools { $($name: Loose::new(pools.$name),)* }
            }

            /// Takes what a record refers to into pools. Returns false if it was taken before, or is not there.
            pub(super) fn take(
                &mut self,
                record: &[u64],
                moves: &PoolMoves,
                out: &mut [u64],
                pools: &mut Pools,
            ) -> bool {
                true $(&& self.$name.take(record, &moves.$name, out, &mut pools.$name))*
            }
        }
    };
}

pools! {
    delays: Delay => Delays, delays;
    timed_since: TimedSince => TimedSince, timed_since;
    machines: MachineState => Machines, machines;
    windows: Window => Windows, values.windows;
    robust_once: once::Robust => RobustOnce, values.robust_once;
    robust_since: SinceRows => RobustSince, values.robust_since;
    robust_dense: DenseSince => RobustDense, values.robust_dense;
}

/// A word of a record of the other program, and one of this one.
pub(super) type Move = [u32; 2];

/// What the words of records refer to, each to be taken once.
pub(super) struct Loose<T>(Vec<Option<T>>);

impl<T: Varying> Loose<T> {
    pub(super) fn new(pool: Pool<T>) -> Loose<T> {
        Loose(pool.all.into_iter().map(Some).collect())
    }

    /// Takes what a word refers to into a pool. Returns false if it was taken before, or is not there.
    pub(super) fn take(
        &mut self,
        record: &[u64],
        words: &[Move],
        out: &mut [u64],
        pool: &mut Pool<T>,
    ) -> bool {
        words.iter().all(|[of, to]| {
            let (Some(&reference), Some(to)) = (record.get(*of as usize), out.get_mut(*to as usize)) else {
                return false;
            };
            *to = 0;
            if reference == 0 {
                return true;
            }
            let taken = usize::try_from(reference).ok().and_then(|at| self.0.get_mut(at - 1)?.take());
            taken.is_some_and(|value| {
                *to = pool.add(value);
                true
            })
        })
    }
}

/// Values that are used again; a reference is the number of one, plus one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "SavedPool<T>")]
pub(crate) struct Pool<T> {
    pub(super) all: Vec<T>,
    free: Vec<u32>,
}

/// A pool as it was saved, before anything is known of it.
#[derive(Deserialize)]
struct SavedPool<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> TryFrom<SavedPool<T>> for Pool<T> {
    type Error = &'static str;

    fn try_from(SavedPool { all, free }: SavedPool<T>) -> Result<Self, Self::Error> {
        let are_there = free.iter().all(|&number| (number as usize) < all.len());
        if are_there { Ok(Pool { all, free }) } else { Err("what is to be used again is not there") }
    }
}

impl<T: Varying> Pool<T> {
    pub(super) fn new() -> Pool<T> {
        Pool { all: Vec::new(), free: Vec::new() }
    }

    /// What a reference refers to.
    pub(crate) fn get(&self, reference: u64) -> Option<&T> {
        self.all.get((reference as usize).checked_sub(1)?)
    }

    pub(crate) fn get_mut(&mut self, reference: u64) -> Option<&mut T> {
        self.all.get_mut((reference as usize).checked_sub(1)?)
    }

    /// Takes a value in.
    pub(crate) fn add(&mut self, value: T) -> u64 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = value;
                u64::from(number) + 1
            }
            None => {
                self.all.push(value);
                self.all.len() as u64
            }
        }
    }

    /// One that was given back, as it is.
    pub(super) fn again(&mut self) -> Option<u64> {
        self.free.pop().map(|number| u64::from(number) + 1)
    }

    /// Gives one back, with nothing in it.
    pub(crate) fn free(&mut self, reference: u64) {
        if reference != 0 {
            self.free.push(reference as u32 - 1);
        }
    }

    /// What a reference refers to; what is not there yet is added.
    pub(crate) fn get_or_add(&mut self, reference: &mut u64, initial: &T) -> Option<&mut T> {
        if *reference == 0 {
            *reference = self.add(initial.clone());
        }
        self.get_mut(*reference)
    }

    /// Takes what a reference refers to on by a step. What is not there remains so unless it `begins` with this step, and
    /// what is again as at first is given back.
    #[inline(always)]
    pub(crate) fn step<R: Default>(
        &mut self,
        reference: &mut u64,
        (initial, begins): (&T, bool),
        step: impl FnOnce(&mut T) -> R,
    ) -> R {
        if *reference == 0 && !begins {
            return R::default();
        }
        let Some(state) = self.get_or_add(reference, initial) else { return R::default() };
        let out = step(state);
        if state.is_empty() {
            self.free(std::mem::take(reference));
        }
        out
    }

    /// Gives one back as it was at first, so that nothing of what it had kept is, and says what it had dropped.
    pub(super) fn renew(&mut self, reference: u64, initial: &T) -> u64 {
        let Some(value) = self.get_mut(reference) else { return 0 };
        let dropped = value.dropped();
        value.renew(initial);
        self.free(reference);
        dropped
    }

    /// Whether a reference refers to something, or is empty.
    pub(crate) fn may_be(&self, reference: u64) -> bool {
        reference as usize <= self.all.len()
    }

    /// A copy.
    pub(crate) fn copy(&mut self, reference: u64) -> u64 {
        match self.get(reference).cloned() {
            Some(value) => self.add(value),
            None => 0,
        }
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.all.iter().map(T::bytes).sum::<usize>()
            + self.all.capacity() * size_of::<T>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// How much there was no room for in those that are there.
    pub(super) fn dropped(&self) -> u64 {
        self.all.iter().map(T::dropped).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn a_saved_pool_uses_again_only_what_is_there() {
        let read = |all: &[bool], free: &[u32]| {
            postcard::from_bytes::<Pool<bool>>(&postcard::to_stdvec(&(all, free)).unwrap()).is_ok()
        };
        assert!(read(&[true, false], &[1]));
        assert!(!read(&[true, false], &[2]));
        assert!(!read(&[], &[0]));
    }
}
