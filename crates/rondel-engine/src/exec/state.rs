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

/// Declares the state of a monitor. Each kind of state appears once; fields, list names, sizes and transfer
/// between programs are derived from it.
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

        /// The lists of a [`State`], in order of declaration.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum List {
            $($list,)*
            $($value_list,)*
        }

        /// Number of lists.
        pub(crate) const LISTS: usize = [$(List::$list,)* $(List::$value_list,)*].len();

        impl $state {
            /// Number of states in each list.
            pub(crate) fn sizes(&self) -> [usize; LISTS] {
                [$(self.$name.len(),)* $(self.values.$value.len(),)*]
            }

            /// Copies the states whose identities occur in both sections.
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
    /// State of a section from block to block, as plain data.
    State {
        /// Single truths (0 or 1), and the last 64 truths of each shift.
        bits: u64 => Bits,
        recently: Recently => Recently,
        delays: Delay => Delays,
        timed_recently: TimedRecently => TimedRecently,
        timed_since: TimedSince => TimedSince,
        ranges: Ranges => Ranges,
        /// Last places up to which the truths of [`Lasting`](crate::exec::section::Lasting) hold.
        lasting: i64 => Lasting,
        /// Last values of chain columns.
        chains: Option<i64> => Chains,
        machines: MachineState => Machines,
        relations: RelationState => Relations,
    }
    /// State of the instructions with columns.
    ValueState {
        held_ints: Held<i64> => HeldInts,
        held_floats: Held<f64> => HeldFloats,
        /// 1 for each text field that is known, else 0. The text is in a buffer.
        known_texts: u64 => KnownTexts,
        latched_ints: Latched<i64> => LatchedInts,
        latched_floats: Latched<f64> => LatchedFloats,
        /// Last sampled values.
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
    /// Whether both states have the same sizes, as those of the same program have.
    pub(crate) fn fits(&self, other: &State) -> bool {
        self.sizes() == other.sizes()
    }
}

/// Working memory of a block. Only constants outlive the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) words: Vec<u64>,
    /// Halves after the row, of timed operators.
    pub(crate) seconds: Vec<u64>,
    pub(crate) machines: Vec<MachineRows>,
    pub(crate) columns: Columns,
}

/// Sizes of the registers of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegisterPlan {
    /// Number of registers of each kind.
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
