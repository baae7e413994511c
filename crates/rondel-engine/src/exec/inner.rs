//! Formulas with instances of their own inside of a section.
//!
//! Instances are sections again, run by [`keyed`](crate::keyed), which is above the interpreter: hence these
//! traits.

use std::fmt::Debug;

use rondel_event::{Block, Rows};

use crate::ops::rows::RowView;

/// Plan of a formula with instances.
pub(crate) trait InnerPlan: Debug + Send + Sync {
    /// The instances before the first event; `no_event` is an empty block.
    fn start(&self, no_event: &Block) -> Box<dyn Inner>;

    /// Memory of an instance, in bytes.
    fn bytes(&self) -> usize;
}

/// The instances of a formula.
pub(crate) trait Inner: Debug + Send + Sync {
    /// The lower and the upper truth of the formula in each row, from the words of the section.
    fn step(&mut self, view: RowView<'_>, words: &[Rows]) -> [Rows; 2];

    /// Number of instances.
    fn kept(&self) -> usize;

    /// Serialized state.
    fn saved(&self) -> Vec<u8>;

    /// Restores serialized state before the first event; false if it does not fit the formula.
    fn restore(&mut self, saved: &[u8]) -> bool;

    /// A clone.
    fn copy(&self) -> Box<dyn Inner>;
}

impl Clone for Box<dyn Inner> {
    fn clone(&self) -> Box<dyn Inner> {
        self.copy()
    }
}
