//! The signs of life of members.

use std::cmp::Reverse;
use std::fmt;

/// A member: a random number of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The state of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It has just begun, and waits for signs of an active member.
    #[default]
    Starting,
    /// Another member is active, or was until now.
    Standby,
    /// It publishes its verdicts.
    Active,
    /// It was active, has stopped to publish, and knows no other active member yet.
    Fenced,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 4] = [Role::Starting, Role::Standby, Role::Active, Role::Fenced];

    /// Its name in messages, summaries and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Starting => "starting",
            Role::Standby => "standby",
            Role::Active => "active",
            Role::Fenced => "fenced",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// The sign of life of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The sender.
    pub from: MemberId,
    /// Its number among those of the sender.
    pub number: u64,
    /// The largest epoch that the sender knows; of an active member its own.
    pub epoch: u64,
    /// The preference of the sender: of two members that can claim, the larger one does.
    pub prefer: i64,
    /// Whether the sender lacks the state of earlier messages: it ranks behind every member that has it.
    pub is_late: bool,
    /// The state of the sender.
    pub role: Role,
    /// Time of event up to which all verdicts were published; `None` while that is unknown.
    pub position: Option<i64>,
    /// Whether it is the last one, as the process ends.
    pub ends: bool,
    /// The member to which an active one has handed over.
    pub successor: Option<MemberId>,
}

/// The rank of a member, the larger one of which is better: one that is not late, then the larger preference, then the
/// smaller id.
pub(super) type Rank = (bool, i64, Reverse<MemberId>);

/// The rank of a member with these properties.
pub(super) fn rank(is_late: bool, prefer: i64, id: MemberId) -> Rank {
    (!is_late, prefer, Reverse(id))
}

impl Sign {
    /// The rank of the sender.
    pub fn rank(&self) -> Rank {
        rank(self.is_late, self.prefer, self.from)
    }
}
