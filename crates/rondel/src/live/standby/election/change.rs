//! The changes of the state of a member, and their reasons.

use super::{MemberId, Nanos};

/// Reason for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// No member was active.
    Vacant,
    /// The active member sent no sign of life for a lease.
    Silent(MemberId),
    /// The active member has ended.
    Ended(MemberId),
    /// The active member has handed over.
    HandedOver(MemberId),
    /// The active member has handed over to this one, which has not claimed for a lease.
    Untaken(MemberId),
}

/// Reason why an active member stopped to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// It did not run for this time.
    StoodStill(Nanos),
    /// It sent no sign of life for almost a lease, though it ran.
    Unsent,
    /// Another member is active with this epoch.
    Superseded(MemberId, u64),
}

/// A change of the state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is active.
    Claimed(Claim),
    /// It is the standby of this member.
    Follows(MemberId),
    /// It is no longer active.
    Fenced(Fence),
}

/// Reason why a member cannot hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not active.
    NotActive,
    /// No standby is there.
    NoStandby,
    /// The member to hand over to is no standby.
    Unknown(MemberId),
    /// Every standby is late, and this one is the best of them.
    Late(MemberId),
    /// The request is to the member that was active in an earlier epoch.
    Outdated,
}
