use crate::exec::inventory::sizes;
use crate::machine::{MachineRows, MachineState};
use crate::ops::columns::{Columns, Held, Latched};
use crate::ops::delay::Delay;
use crate::ops::extreme::Greatest;
use crate::ops::once::{Recently, TimedRecently};
use crate::ops::ranges::Ranges;
use crate::ops::since::TimedSince;
use crate::ops::since::robust::{self, DenseSince};
use crate::ops::texts;
use crate::ops::window::Window;
use crate::relation::state::RelationState;
use rondel_event::Rows;
use serde::{Deserialize, Serialize};

/// What a monitor carries from block to block: plain data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// Single truths (0 or 1), and for shifts the last 64.
    pub(crate) bits: Vec<u64>,
    pub(crate) recently: Vec<Recently>,
    pub(crate) delays: Vec<Delay>,
    pub(crate) timed_recently: Vec<TimedRecently>,
    pub(crate) timed_since: Vec<TimedSince>,
    pub(crate) ranges: Vec<Ranges>,
    /// The last places at which truths hold that last so long.
    pub(crate) lasting: Vec<i64>,
    /// The last values of columns of chains.
    pub(crate) chains: Vec<Option<i64>>,
    pub(crate) machines: Vec<MachineState>,
    pub(crate) relations: Vec<RelationState>,
    pub(crate) values: ValueState,
}

impl State {
    /// Whether it is a state of the same program as `other`, as far as sizes tell.
    pub(crate) fn fits(&self, other: &State) -> bool {
        sizes(self) == sizes(other)
    }
}

/// The part of it that instructions with columns have.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ValueState {
    pub(crate) held_ints: Vec<Held<i64>>,
    pub(crate) held_floats: Vec<Held<f64>>,
    /// For every field of text whether it is known, 0 or 1; the text is in a buffer.
    pub(crate) known_texts: Vec<u64>,
    pub(crate) latched_ints: Vec<Latched<i64>>,
    pub(crate) latched_floats: Vec<Latched<f64>>,
    /// What was sampled last.
    pub(crate) sampled: Vec<i64>,
    pub(crate) windows: Vec<Window>,
    /// Each with what it gives where there are too many values.
    pub(crate) greatest: Vec<(Greatest<f64>, f64)>,
    pub(crate) robust_since: Vec<robust::Since>,
    pub(crate) robust_dense: Vec<DenseSince>,
    /// Constants, and texts of earlier blocks.
    pub(crate) buffers: Vec<Vec<u8>>,
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
