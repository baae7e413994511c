//! The transfers of an active member, one at a time.

use std::collections::VecDeque;

use super::{ABANDONED, Answer, Head, LARGEST, MemberId, Nanos, PART, Request, Route, WINDOW};

/// An action that a request or the time causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Begins to note the identities of messages.
    Record,
    /// Takes a snapshot, for answers on this way.
    Save(Route),
    /// Sends an answer.
    Send(Route, Answer),
    /// Ends to note identities.
    Forget,
}

/// The stage of a transfer.
#[derive(Debug)]
enum Stage {
    /// Identities are noted.
    Recording,
    /// The snapshot is being taken.
    Saving,
    /// The state is there.
    Ready { state: Vec<u8>, head: Head, parts: VecDeque<u32> },
    /// There is none, for a reason.
    Failed(String),
}

/// A transfer.
#[derive(Debug)]
struct Current {
    /// The way of answers.
    route: Route,
    stage: Stage,
    /// Time of the last request.
    requested: Nanos,
}

/// The transfers of a member.
#[derive(Debug, Default)]
pub struct Giving {
    current: Option<Current>,
    /// The transfer for which a snapshot is being taken. It may have ended.
    saving: Option<u64>,
}

impl Giving {
    /// Handles a request. `is_active`: the member is active, which matters only at the beginning.
    pub fn receive(&mut self, now: Nanos, route: Route, request: Request, is_active: bool) -> Vec<Act> {
        let back = route.back();
        let refuse = |why: &str, later| vec![Act::Send(back, Answer::Refused(why.to_owned(), later))];
        let is_current = self.current.as_ref().is_some_and(|current| current.route == back);
        if request == Request::Record && !is_current {
            // A member that begins again has given its last transfer up.
            let is_free = self.current.as_ref().is_none_or(|current| current.route.to == back.to);
            if !is_active {
                return refuse("it is not active", false);
            }
            // One snapshot at a time: each stops the evaluation.
            if !is_free || self.saving.is_some() {
                return refuse("another transfer of its state has not ended", true);
            }
            self.current = Some(Current { route: back, stage: Stage::Recording, requested: now });
            return vec![Act::Record, Act::Send(back, Answer::Recording)];
        }
        let Some(current) = self.current.as_mut().filter(|_| is_current) else {
            return if request == Request::End { Vec::new() } else { vec![Act::Send(back, Answer::Ended)] };
        };
        if request == Request::End {
            self.current = None;
            return vec![Act::Forget];
        }
        current.requested = now;
        match (&request, &mut current.stage) {
            (_, Stage::Failed(why)) => refuse(why, false),
            (Request::State, Stage::Recording) => {
                current.stage = Stage::Saving;
                self.saving = Some(back.transfer);
                vec![Act::Save(back), Act::Send(back, Answer::Recording)]
            }
            (Request::Parts(_), Stage::Recording | Stage::Saving)
            | (Request::State, Stage::Saving)
            | (Request::Record | Request::End, _) => vec![Act::Send(back, Answer::Recording)],
            (Request::State, Stage::Ready { head, .. }) => vec![Act::Send(back, Answer::State(*head))],
            (Request::Parts(wanted), Stage::Ready { parts, .. }) => {
                // The latest request replaces those before.
                parts.clear();
                parts.extend(wanted.iter().copied().take(WINDOW));
                Vec::new()
            }
        }
    }

    /// Takes the state, or the reason why there is none.
    pub fn saved(&mut self, transfer: u64, saved: Result<(Vec<u8>, u64), String>) -> Vec<Act> {
        if self.saving == Some(transfer) {
            self.saving = None;
        }
        let Some(current) = self
            .current
            .as_mut()
            .filter(|current| current.route.transfer == transfer && matches!(current.stage, Stage::Saving))
        else {
            return Vec::new();
        };
        let (stage, answer) = match saved {
            Ok((state, _)) if state.len() > LARGEST => {
                let why =
                    format!("its state has {} MiB, and the limit is {}", state.len() >> 20, LARGEST >> 20);
                (Stage::Failed(why.clone()), Answer::Refused(why, false))
            }
            Ok((state, step)) => {
                let head = Head::of(&state, step);
                (Stage::Ready { state, head, parts: VecDeque::new() }, Answer::State(head))
            }
            Err(why) => (Stage::Failed(why.clone()), Answer::Refused(why, false)),
        };
        current.stage = stage;
        vec![Act::Send(current.route, answer)]
    }

    /// The late member of the present transfer.
    pub fn taker(&self) -> Option<MemberId> {
        self.current.as_ref().map(|current| current.route.to)
    }

    /// Ends a transfer that could not begin, or whose late member is gone.
    pub fn cancel(&mut self) {
        self.current = None;
    }

    /// The next part to send.
    pub fn part(&mut self) -> Option<(Route, Answer)> {
        let Current { route, stage: Stage::Ready { state, parts, .. }, .. } = self.current.as_mut()? else {
            return None;
        };
        while let Some(part) = parts.pop_front() {
            let first = usize::try_from(part).ok()?.checked_mul(PART)?;
            // A part that does not exist is not sent.
            if let Some(rest) = state.get(first..).filter(|rest| !rest.is_empty()) {
                let content = rest.get(..PART).unwrap_or(rest);
                return Some((*route, Answer::Part(part, content.to_vec())));
            }
        }
        None
    }

    /// Whether a part waits to be sent.
    pub fn has_parts(&self) -> bool {
        matches!(&self.current, Some(Current { stage: Stage::Ready { parts, .. }, .. }) if !parts.is_empty())
    }

    /// Whether there is a transfer.
    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Ends a transfer whose late member no longer sends requests.
    pub fn look(&mut self, now: Nanos) -> Option<Act> {
        self.current.take_if(|current| now - current.requested >= ABANDONED).map(|_| Act::Forget)
    }
}
