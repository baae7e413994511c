//! States of variable size: queues and samples of windows.

/// State of variable size. Instances of a `for each` keep it in heap storage, and the reference in their
/// record.
pub(crate) trait Varying: Clone {
    /// Memory on the heap, in bytes.
    fn bytes(&self) -> usize;

    /// Number of samples or obligations dropped for lack of room.
    fn dropped(&self) -> u64 {
        0
    }

    /// Whether it equals the initial state, so that an instance need not keep it. The default keeps it as
    /// long as the instance.
    fn is_empty(&self) -> bool {
        false
    }

    /// Resets it to the initial state, and frees what it kept.
    fn renew(&mut self, initial: &Self) {
        self.clone_from(initial);
    }
}
