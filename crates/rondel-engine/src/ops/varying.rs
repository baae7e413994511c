//! States whose size varies: queues of what is still to come, samples of a window.

/// A state of no fixed size. In a `for each` every instance has its own in a pool, and in its record the place there.
pub(crate) trait Varying: Clone {
    /// How many bytes it takes beside itself.
    fn bytes(&self) -> usize;

    /// How much of it there was no room for: samples, obligations.
    fn dropped(&self) -> u64 {
        0
    }

    /// Whether it is as at first, so that an instance need not keep it. What cannot tell is kept as long as the instance.
    fn is_empty(&self) -> bool {
        false
    }

    /// Makes it as it was at first, and lets go of what it had kept.
    fn renew(&mut self, initial: &Self) {
        self.clone_from(initial);
    }
}
