//! The state of a member of a group, for summaries, heartbeats, queries and metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rondel_event::Timestamp;
use rondel_runtime::text::counted;
use serde_json::{Value, json};

use super::election::{MemberId, Role};

/// The state that a late member has taken from an active one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The active member.
    pub from: MemberId,
    /// Number of events that it had checked.
    pub step: u64,
    /// Messages that were held until the state was there.
    pub kept: u64,
    /// Those among them that the state contains.
    pub dropped: u64,
    /// The topics with messages of which that is uncertain.
    pub uncertain: Vec<String>,
}

impl Taken {
    /// One sentence.
    pub(super) fn sentence(&self) -> String {
        let Taken { from, step, kept, dropped, .. } = self;
        let kept = counted(*kept, "message held", "messages held");
        format!("state taken from member {from} at step {step} ({kept}, {dropped} dropped as contained)")
    }

    fn json(&self) -> Value {
        let Taken { from, step, kept, dropped, uncertain } = self;
        json!({
            "from": from.to_string(),
            "step": step,
            "held": kept,
            "contained": dropped,
            "uncertain": uncertain,
        })
    }
}

/// Reason why a message of a group is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its epoch is too far from all others.
    Epoch,
    /// Its lease is none that a member can have.
    Lease,
    /// It is no message of the group.
    Unreadable,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 3] = [Reason::Epoch, Reason::Lease, Reason::Unreadable];

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Epoch => "epoch",
            Reason::Lease => "lease",
            Reason::Unreadable => "unreadable",
        }
    }
}

/// Numbers of messages of a group that a member has ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored([u64; Reason::ALL.len()]);

impl Ignored {
    /// Counts a message.
    pub(super) fn count(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }

    /// The number of those for a reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// The number of all.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The state of a member.
#[derive(Clone, Debug)]
pub struct GroupState {
    /// The name of the group.
    pub group: String,
    /// The member.
    pub member: MemberId,
    /// Its role.
    pub role: Role,
    /// The largest epoch that it knows; while active the own one.
    pub epoch: u64,
    /// The active member, as far as it is known.
    pub active: Option<MemberId>,
    /// The other members that live and are not active.
    pub standbys: Vec<MemberId>,
    /// Number of times that it became active.
    pub take_overs: u64,
    /// Number of times that it stopped to publish, other than at a handover.
    pub fenced: u64,
    /// Verdicts that are withheld now.
    pub withheld: u64,
    /// Withheld verdicts that were dropped, since there were too many.
    pub dropped: u64,
    /// Messages of the group that it has ignored, as they are forged or damaged.
    pub ignored: Ignored,
    /// Time of day since which it receives messages, in nanoseconds since 1970.
    pub since: i64,
    /// Number of times that it may have missed messages while it stood by, and was late again.
    pub missed: u64,
    /// Whether messages came before, which the active member then had received, and their effect is missing; or some may have
    /// been missed since.
    pub is_late: bool,
    /// Whether it ranks behind members that are not late, as its signs say. While no other member has these messages either,
    /// it does not.
    pub is_ranked_late: bool,
    /// The state that it has taken from the active member, if it was late.
    pub taken: Option<Taken>,
    /// Times of day between which earlier messages came, if the run ends before its session knows that.
    pub unmarked: Option<(Timestamp, Timestamp)>,
}

impl GroupState {
    /// The state of a member that has just begun.
    pub(in crate::live) fn new(group: String, member: MemberId, since: i64) -> GroupState {
        GroupState {
            group,
            member,
            role: Role::Starting,
            epoch: 0,
            active: None,
            standbys: Vec::new(),
            take_overs: 0,
            fenced: 0,
            withheld: 0,
            dropped: 0,
            ignored: Ignored::default(),
            since,
            missed: 0,
            is_late: false,
            is_ranked_late: false,
            taken: None,
            unmarked: None,
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "group": self.group,
            "member": self.member.to_string(),
            "state": self.role.as_str(),
            "epoch": self.epoch,
            "active": self.active.map(|id| id.to_string()),
            "standbys": self.standbys.iter().map(MemberId::to_string).collect::<Vec<_>>(),
            "take_overs": self.take_overs,
            "fenced": self.fenced,
            "withheld": self.withheld,
            "dropped": self.dropped,
            "ignored": self.ignored.total(),
            "since": self.since as f64 / 1e9,
            "missed": self.missed,
            "late": self.is_ranked_late,
            "taken": self.taken.as_ref().map(Taken::json),
        })
    }

    /// One sentence.
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "group '{}': {} at the end, in epoch {}; active {}",
            self.group,
            self.role.as_str(),
            self.epoch,
            counted(self.take_overs, "time", "times"),
        );
        if self.fenced > 0 {
            text += &format!(", fenced {}", counted(self.fenced, "time", "times"));
        }
        if self.dropped > 0 {
            text += &format!(", {} dropped", counted(self.dropped, "withheld verdict", "withheld verdicts"));
        }
        let ignored = self.ignored.total();
        if ignored > 0 {
            text += &format!(", {} of the group ignored", counted(ignored, "message", "messages"));
        }
        if self.missed > 0 {
            text += &format!(", late again {}", counted(self.missed, "time", "times"));
        }
        if let Some(taken) = &self.taken {
            text += &format!("; {}", taken.sentence());
            if !taken.uncertain.is_empty() {
                text += &format!(", uncertain on {}", taken.uncertain.join(", "));
            }
        }
        if self.is_late {
            text += "; earlier messages were not received";
        }
        text
    }
}

/// The state of a member, which its thread changes.
#[derive(Clone, Debug)]
pub struct GroupHandle(Arc<Mutex<GroupState>>);

impl GroupHandle {
    /// A handle of this state.
    pub fn new(state: GroupState) -> GroupHandle {
        GroupHandle(Arc::new(Mutex::new(state)))
    }

    /// A copy of the state.
    pub fn state(&self) -> GroupState {
        self.lock().clone()
    }

    /// Numbers of messages that the member has ignored.
    pub(super) fn ignored(&self) -> Ignored {
        self.lock().ignored
    }

    /// Whether the member is active.
    pub fn is_active(&self) -> bool {
        self.lock().role == Role::Active
    }

    /// Changes the state.
    pub(in crate::live) fn change(&self, change: impl FnOnce(&mut GroupState)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
