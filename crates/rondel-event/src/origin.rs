//! Origins of messages.

/// Publisher and sequence number of a message.
///
/// Sequence numbers increase by one, so that lost and duplicate messages can be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Id of the publisher; only its equality has a meaning.
    pub publisher: u64,
    /// Sequence number of the message.
    pub number: u64,
}
