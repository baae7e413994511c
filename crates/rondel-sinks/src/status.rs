//! State and counts of a sink, as others see them.

/// State of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing was written yet.
    #[default]
    Starting,
    /// The last entries were acknowledged.
    Connected,
    /// The sink does not accept entries now; the driver tries again.
    Failing {
        /// Time of day of the first failure, in nanoseconds since the Unix epoch.
        since: i64,
        /// Number of attempts since.
        attempts: u64,
    },
    /// The sink never accepts entries any more.
    Broken {
        /// Time of day, in nanoseconds since the Unix epoch.
        since: i64,
    },
    /// The sink is closed.
    Closed,
}

impl Condition {
    /// Returns the name in every output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Condition::Starting => "starting",
            Condition::Connected => "connected",
            Condition::Failing { .. } => "failing",
            Condition::Broken { .. } => "broken",
            Condition::Closed => "closed",
        }
    }
}

/// Reason why entries were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The queue had no room.
    Full,
    /// The sink rejected them, or they could not be decoded.
    Rejected,
    /// The sink is broken.
    Broken,
    /// The time limit at the end had passed.
    Ended,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 4] = [Reason::Full, Reason::Rejected, Reason::Broken, Reason::Ended];

    /// Returns the name in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Full => "queue full",
            Reason::Rejected => "rejected",
            Reason::Broken => "sink broken",
            Reason::Ended => "not written at the end",
        }
    }
}

/// Entries dropped for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of entries.
    pub count: u64,
    /// Time of day of the first, in nanoseconds since the Unix epoch.
    pub from: i64,
    /// Time of day of the last.
    pub until: i64,
}

impl Dropped {
    pub(crate) fn add(&mut self, count: u64, now: i64) {
        if self.count == 0 {
            self.from = now;
        }
        self.count += count;
        self.until = now;
    }
}

/// State and counts of a sink at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Name of the sink.
    pub name: String,
    /// State.
    pub condition: Condition,
    /// Last error, also after it has passed.
    pub last_error: Option<String>,
    /// Entries in the queue, those that are being written among them.
    pub queued: u64,
    /// Bytes in the queue.
    pub queued_bytes: u64,
    /// Time of day at which the oldest of them was accepted, in nanoseconds since the Unix epoch.
    pub queued_since: Option<i64>,
    /// Entries accepted by the queue so far.
    pub accepted: u64,
    /// Entries acknowledged by the sink so far.
    pub acknowledged: u64,
    /// Verdicts that were new to the sink.
    pub stored: u64,
    /// Verdicts that the sink already had.
    pub repeated: u64,
    /// Calls of the sink that failed.
    pub failures: u64,
    /// Entries that were dropped, in the order of [`Reason::ALL`].
    pub(crate) dropped: [Dropped; 4],
}

impl Status {
    /// Returns the entries dropped for a reason.
    pub fn dropped(&self, reason: Reason) -> Dropped {
        self.dropped[reason as usize]
    }

    /// Returns the number of all dropped entries.
    pub fn lost(&self) -> u64 {
        self.dropped.iter().map(|dropped| dropped.count).sum()
    }

    pub(crate) fn drop_entries(&mut self, reason: Reason, count: u64, now: i64) {
        if count > 0 {
            self.dropped[reason as usize].add(count, now);
        }
    }
}
