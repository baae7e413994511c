/// Which publisher sent a message, and as which of its messages.
///
/// Numbers go up by one, so that a message that is lost or comes twice can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Tells publishers apart; says nothing else.
    pub publisher: u64,
    /// The number among its messages.
    pub number: u64,
}
