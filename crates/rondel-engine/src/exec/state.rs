use crate::exec::inventory::Inventory;
use crate::ir::found::take;
use crate::machine::{MachineRows, MachineState};
use crate::ops::columns::Columns;
use crate::ops::delay::Delay;
use crate::ops::held::{Held, Latched};
use crate::ops::once::{self, Recently, TimedRecently};
use crate::ops::ranges::Ranges;
use crate::ops::since::TimedSince;
use crate::ops::since::robust::{self, DenseSince};
use crate::ops::texts;
use crate::ops::window::Window;
use crate::relation::state::RelationState;
use rondel_event::Rows;
use serde::{Deserialize, Serialize};

/// Writes down what a monitor carries, every kind of state once: from this list follow the lists of states, what they are
/// called, how many there are, and how one program takes them over from another.
macro_rules! states {
    (
        $(#[$state_doc:meta])*
        $state:ident { $($(#[$doc:meta])* $name:ident: $type:ty => $list:ident,)* }
        $(#[$values_doc:meta])*
        $values:ident { $($(#[$value_doc:meta])* $value:ident: $value_type:ty => $value_list:ident,)* }
    ) => {
        $(#[$state_doc])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub(crate) struct $state {
            $($(#[$doc])* pub(crate) $name: Vec<$type>,)*
            pub(crate) values: $values,
        }

        $(#[$values_doc])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub(crate) struct $values {
            $($(#[$value_doc])* pub(crate) $value: Vec<$value_type>,)*
        }

        /// The lists of a [`State`], in this order.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum List {
            $($list,)*
            $($value_list,)*
        }

        /// How many there are.
        pub(crate) const LISTS: usize = [$(List::$list,)* $(List::$value_list,)*].len();

        impl $state {
            /// How many states each list has.
            pub(crate) fn sizes(&self) -> [usize; LISTS] {
                [$(self.$name.len(),)* $(self.values.$value.len(),)*]
            }

            /// Takes over from the state of another section what both keep.
            pub(crate) fn take(&mut self, own: &Inventory, other: &State, others: &Inventory) {
                $(take(&mut self.$name, own.list(List::$list), &other.$name, others.list(List::$list));)*
                let (values, from) = (&mut self.values, &other.values);
                $(take(
                    &mut values.$value,
                    own.list(List::$value_list),
                    &from.$value,
                    others.list(List::$value_list),
                );)*
            }
        }
    };
}

states! {
    /// What a monitor carries from block to block: plain data.
    State {
        /// Single truths (0 or 1), and for shifts the last 64.
        bits: u64 => Bits,
        recently: Recently => Recently,
        delays: Delay => Delays,
        timed_recently: TimedRecently => TimedRecently,
        timed_since: TimedSince => TimedSince,
        ranges: Ranges => Ranges,
        /// The last places at which truths hold that last so long.
        lasting: i64 => Lasting,
        /// The last values of columns of chains.
        chains: Option<i64> => Chains,
        machines: MachineState => Machines,
        relations: RelationState => Relations,
    }
    /// The part of it that instructions with columns have.
    ValueState {
        held_ints: Held<i64> => HeldInts,
        held_floats: Held<f64> => HeldFloats,
        /// For every field of text whether it is known, 0 or 1; the text is in a buffer.
        known_texts: u64 => KnownTexts,
        latched_ints: Latched<i64> => LatchedInts,
        latched_floats: Latched<f64> => LatchedFloats,
        /// What was sampled last.
        sampled: i64 => Sampled,
        windows: Window => Windows,
        robust_once: once::Robust => RobustOnce,
        robust_since: robust::SinceRows => RobustSince,
        robust_dense: DenseSince => RobustDense,
        /// Constants, and texts of earlier blocks.
        buffers: Vec<u8> => Buffers,
    }
}

impl State {
    /// Whether it is a state of the same program as `other`, as far as sizes tell.
    pub(crate) fn fits(&self, other: &State) -> bool {
        self.sizes() == other.sizes()
    }
}

/// What is computed for one block. Nothing in it but the constants outlives the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) words: Vec<u64>,
    /// The other sides of timed operators.
    pub(crate) seconds: Vec<u64>,
    pub(crate) machines: Vec<MachineRows>,
    pub(crate) columns: Columns,
}

/// The registers that a section needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegisterPlan {
    /// How many of each kind.
    pub(crate) words: u32,
    pub(crate) seconds: u32,
    pub(crate) ints: u32,
    pub(crate) floats: u32,
    pub(crate) texts: u32,
    pub(crate) column_seconds: u32,
    pub(crate) machines: Vec<MachineRows>,
}

impl RegisterPlan {
    /// The registers before the first block.
    pub(crate) fn registers(&self) -> Registers {
        let [ints, floats, seconds] =
            [self.ints, self.floats, self.column_seconds].map(|count| count as usize);
        Registers {
            words: vec![0; self.words as usize],
            seconds: vec![0; self.seconds as usize],
            machines: self.machines.clone(),
            columns: Columns {
                ints: vec![[0; _]; ints],
                floats: vec![[0.0; _]; floats],
                int_steps: vec![Rows::MAX; ints],
                float_steps: vec![Rows::MAX; floats],
                texts: vec![texts::UNSET; self.texts as usize],
                seconds: vec![[0.0; _]; seconds],
            },
        }
    }
}
