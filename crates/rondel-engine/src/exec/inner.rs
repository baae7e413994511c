//! Formulas of a section that have instances of their own.
//!
//! Such instances are sections again, driven by what stands above the interpreter; it knows them by these traits only.

use std::fmt::Debug;

use rondel_event::{Block, Rows};

use crate::ops::rows::RowView;

/// A formula with instances.
pub(crate) trait InnerPlan: Debug + Send + Sync {
    /// Its instances before the first event, given a block without any.
    fn start(&self, no_event: &Block) -> Box<dyn Inner>;

    /// What an instance takes, in bytes.
    fn bytes(&self) -> usize;
}

/// The instances of a formula.
pub(crate) trait Inner: Debug + Send + Sync {
    /// The rows at which the formula certainly holds, and those at which it possibly does, given the words of the
    /// section.
    fn step(&mut self, view: RowView<'_>, words: &[Rows]) -> [Rows; 2];

    /// How many instances there are.
    fn kept(&self) -> usize;

    /// All that they remember.
    fn saved(&self) -> Vec<u8>;

    /// Takes over what was saved, before the first event; false if it does not belong here.
    fn restore(&mut self, saved: &[u8]) -> bool;

    /// A copy.
    fn copy(&self) -> Box<dyn Inner>;
}

impl Clone for Box<dyn Inner> {
    fn clone(&self) -> Box<dyn Inner> {
        self.copy()
    }
}
