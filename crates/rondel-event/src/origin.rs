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

/// Position of the type of a message among the types of its topic.
///
/// Publishers of one topic may have different versions of a type, or different types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeIndex(pub u16);

impl TypeIndex {
    /// The index of messages that cannot be decoded, since their type is not known or not read.
    pub const UNREAD: TypeIndex = TypeIndex(u16::MAX);
}
