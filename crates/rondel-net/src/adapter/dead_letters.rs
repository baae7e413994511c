//! Account of dead letters: messages that cannot be decoded, and are written to a topic of their own.

/// Numbers of dead letters so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterCounts {
    /// The topic on Kafka.
    pub topic: String,
    /// Messages that the brokers have acknowledged.
    pub written: u64,
    /// Messages that wait for the acknowledgement.
    pub waiting: u64,
    /// Messages that the client or the brokers have refused.
    pub refused: u64,
}
