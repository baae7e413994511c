//! Heap storage of states of variable size: a pool per kind, shared by all instances. A record refers to a
//! state by one word; 0 is the empty state, which is not stored.

use serde::{Deserialize, Serialize};

use crate::exec::state::{List, State};
use crate::machine::MachineState;
use crate::ops::delay::Delay;
use crate::ops::once;
use crate::ops::since::TimedSince;
use crate::ops::since::robust::{DenseSince, SinceRows};
use crate::ops::varying::Varying;
use crate::ops::window::Window;

/// Declares the pools, each kind of state with its list in a [`State`]. From this follow the words of a
/// record, and how states are copied, freed, measured, saved, and transferred to another program.
macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $list:ident, $($path:ident).+;)*) => {
        /// States of all instances, a pool per kind.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub(crate) struct Pools {
            $($(#[$doc])* pub(crate) $name: Pool<$type>,)*
            /// Number of samples dropped by states that were freed.
            pub(super) dropped: u64,
        }

        /// Words of a record that refer to the states, one per state of a [`State`].
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub(crate) struct PoolWords {
            $(pub(crate) $name: Vec<u32>,)*
        }

        impl PoolWords {
            /// Allocates a word for each state of a section.
            pub(super) fn new(state: &State, mut word: impl FnMut() -> u32) -> PoolWords {
                PoolWords { $($name: state.$($path).+.iter().map(|_| word()).collect(),)* }
            }
        }

        impl Pools {
            pub(super) fn new() -> Pools {
                Pools { $($name: Pool::new(),)* dropped: 0 }
            }

            /// Whether each word of a record is empty or a valid reference.
            pub(super) fn is_valid(&self, record: &[u64], words: &PoolWords) -> bool {
                true $(&& words.$name.iter().all(|&word| self.$name.is_valid(record[word as usize])))*
            }

            /// Replaces the references of a record by references to copies.
            pub(super) fn copy(&mut self, record: &mut [u64], words: &PoolWords) {
                $(for &word in &words.$name {
                    record[word as usize] = self.$name.copy(record[word as usize]);
                })*
            }

            /// Replaces the references of a record, which are to other pools, by references to copies.
            pub(super) fn adopt(&mut self, other: &Pools, record: &mut [u64], words: &PoolWords) {
                $(for &word in &words.$name {
                    record[word as usize] = self.$name.adopt(&other.$name, record[word as usize]);
                })*
            }

            /// Frees the states of a record, and adds the samples they dropped.
            pub(super) fn free(&mut self, record: &mut [u64], words: &PoolWords, initial: &State) {
                $(for (&word, initial) in words.$name.iter().zip(&initial.$($path).+) {
                    let dropped = self.$name.renew(std::mem::take(&mut record[word as usize]), initial);
                    self.dropped = self.dropped.saturating_add(dropped);
                })*
            }

            /// Number of samples dropped because of limits.
            pub(super) fn dropped(&self) -> u64 {
                [self.dropped $(, self.$name.dropped())*].into_iter().fold(0, u64::saturating_add)
            }

            /// Size in bytes.
            pub(super) fn bytes(&self) -> usize {
                0 $(+ self.$name.bytes())*
            }
        }

        /// Mapping of the words of another program's record to those of this one.
        #[derive(Default)]
        pub(super) struct PoolMoves {
            $($name: Vec<Move>,)*
        }

        impl PoolMoves {
            /// Maps the states of both programs; `both` finds them in a list.
            pub(super) fn new(
                [to, of]: [&PoolWords; 2],
                both: impl Fn(List, [&[u32]; 2]) -> Vec<Move>,
            ) -> PoolMoves {
                PoolMoves { $($name: both(List::$list, [&to.$name, &of.$name]),)* }
            }
        }

        /// Saved pools, each state of which is taken once.
        pub(super) struct LoosePools {
            $($name: Loose<$type>,)*
        }

        impl LoosePools {
            pub(super) fn new(pools: Pools) -> LoosePools {
                LoosePools { $($name: Loose::new(pools.$name),)* }
            }

            /// Moves the states of a record into pools. Returns false if one was taken before or is missing.
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

/// Word of the other program's record, and word of this one's.
pub(super) type Move = [u32; 2];

/// Saved states, each to be taken once.
pub(super) struct Loose<T>(Vec<Option<T>>);

impl<T: Varying> Loose<T> {
    pub(super) fn new(pool: Pool<T>) -> Loose<T> {
        Loose(pool.all.into_iter().map(Some).collect())
    }

    /// Moves the states of these words into a pool. Returns false if one was taken before or is missing.
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

/// Reusable values; a reference is an index plus one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "SavedPool<T>")]
pub(crate) struct Pool<T> {
    pub(super) all: Vec<T>,
    free: Vec<u32>,
}

/// Saved pool, before validation.
#[derive(Deserialize)]
struct SavedPool<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> TryFrom<SavedPool<T>> for Pool<T> {
    type Error = &'static str;

    fn try_from(SavedPool { all, free }: SavedPool<T>) -> Result<Self, Self::Error> {
        let are_there = free.iter().all(|&number| (number as usize) < all.len());
        if are_there { Ok(Pool { all, free }) } else { Err("a free reference is out of range") }
    }
}

impl<T: Varying> Pool<T> {
    pub(super) fn new() -> Pool<T> {
        Pool { all: Vec::new(), free: Vec::new() }
    }

    /// Returns the value of a reference.
    pub(crate) fn get(&self, reference: u64) -> Option<&T> {
        self.all.get((reference as usize).checked_sub(1)?)
    }

    pub(crate) fn get_mut(&mut self, reference: u64) -> Option<&mut T> {
        self.all.get_mut((reference as usize).checked_sub(1)?)
    }

    /// Adds a value and returns its reference.
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

    /// Returns a reference to a freed value, in the state in which it was freed.
    pub(super) fn reuse(&mut self) -> Option<u64> {
        self.free.pop().map(|number| u64::from(number) + 1)
    }

    /// Frees a value, which must be empty.
    pub(crate) fn free(&mut self, reference: u64) {
        if reference != 0 {
            self.free.push(reference as u32 - 1);
        }
    }

    /// Returns the value of a reference, adding one if the reference is empty.
    pub(crate) fn get_or_add(&mut self, reference: &mut u64, initial: &T) -> Option<&mut T> {
        if *reference == 0 {
            *reference = self.add(initial.clone());
        }
        self.get_mut(*reference)
    }

    /// Steps the value of a reference. An empty reference stays empty unless the value `begins` with this
    /// step, and a value that has become empty is freed.
    #[inline(always)]
    pub(crate) fn step<R: Default>(
        &mut self,
        reference: &mut u64,
        initial: &T,
        begins: bool,
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

    /// Resets and frees a value. Returns the number of samples it had dropped.
    pub(super) fn renew(&mut self, reference: u64, initial: &T) -> u64 {
        let Some(value) = self.get_mut(reference) else { return 0 };
        let dropped = value.dropped();
        value.renew(initial);
        self.free(reference);
        dropped
    }

    /// Whether a reference is empty or valid.
    pub(crate) fn is_valid(&self, reference: u64) -> bool {
        reference as usize <= self.all.len()
    }

    /// Copies a value and returns the reference of the copy.
    pub(crate) fn copy(&mut self, reference: u64) -> u64 {
        match self.get(reference).cloned() {
            Some(value) => self.add(value),
            None => 0,
        }
    }

    /// Copies a value of another pool and returns the reference of the copy.
    pub(super) fn adopt(&mut self, other: &Pool<T>, reference: u64) -> u64 {
        match other.get(reference).cloned() {
            Some(value) => self.add(value),
            None => 0,
        }
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.iter().map(T::bytes).sum::<usize>()
            + self.all.capacity() * size_of::<T>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Number of samples dropped by the values in use.
    pub(super) fn dropped(&self) -> u64 {
        self.all.iter().map(T::dropped).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn saved_pool_with_dangling_free_reference_is_rejected() {
        let read = |all: &[bool], free: &[u32]| {
            postcard::from_bytes::<Pool<bool>>(&postcard::to_stdvec(&(all, free)).unwrap()).is_ok()
        };
        assert!(read(&[true, false], &[1]));
        assert!(!read(&[true, false], &[2]));
        assert!(!read(&[], &[0]));
    }
}
