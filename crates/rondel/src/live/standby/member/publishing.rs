//! Publishing of a member: take-overs, withheld verdicts, handovers.

use rondel_event::Timestamp;
use rondel_runtime::text::counted;

use super::{Worker, in_ms};
use crate::live::standby::election::{Claim, LARGEST_EPOCH, MemberId, Nanos, Refusal};
use crate::live::standby::surroundings::Surroundings;
use crate::output::time_text::TimeText;

/// Number of withheld verdicts that are published between two looks at the clock.
const PORTION: usize = 256;

impl<S: Surroundings> Worker<S> {
    /// Becomes the active member.
    pub(super) fn take_over(&mut self, why: Claim) {
        let epoch = self.election.epoch();
        (self.begins, self.is_releasing) = (Some(epoch), false);
        self.claimed = self.now();
        (self.reached, self.alone) = (self.election.position(), Some(self.claimed));
        self.standbys.clear();
        self.others.forget_standbys();
        self.has_named_better = false;
        self.shared.handle.change(|state| state.take_overs += 1);
        self.end_taking();
        self.await_returns();
        // The sign is also the permission to publish.
        self.sign();
        let why = match why {
            Claim::Vacant => "no other member is".to_owned(),
            Claim::Silent(id) => {
                format!("no sign of life of member {id} for {}", in_ms(self.election.lease_of(id)))
            }
            Claim::Ended(id) => format!("member {id} has ended"),
            Claim::HandedOver(id) => format!("member {id} has handed over"),
            Claim::Untaken(id) => format!("member {id} has not taken over after the handover to it"),
        };
        self.outside.say(&format!("active in epoch {epoch}: {why}"));
        if epoch == LARGEST_EPOCH {
            self.outside.warn(&format!(
                "epoch {epoch} is the largest one, and the next take-over has the same: end all members, so that epochs begin \
                 again"
            ));
        }
        self.publish_withheld();
    }

    /// Publishes a portion of the withheld verdicts.
    pub(super) fn publish_withheld(&mut self) {
        let limit = self.patience();
        if let Some(epoch) = self.begins {
            if !self.mark_late() {
                // Without the mark, verdicts would take earlier messages for absent.
                return;
            }
            let Some(count) = self.outside.begin_publishing(epoch, limit) else { return };
            // Of the time before.
            self.shared.permit.take_lapsed();
            (self.begins, self.is_releasing) = (None, true);
            if count > 0 {
                let verdicts = counted(count as u64, "withheld verdict", "withheld verdicts");
                let from = self.election.position().map_or_else(String::new, |position| {
                    format!(", from time {} on", TimeText::default().text(Timestamp::from_nanos(position)))
                });
                self.outside.say(&format!("publishes {verdicts}{from}"));
            }
            let dropped = self.shared.permit.dropped();
            if dropped > 0 {
                let verdicts = counted(dropped, "withheld verdict was", "withheld verdicts were");
                self.outside.warn(&format!("{verdicts} dropped so far, since there were too many"));
            }
        }
        if self.is_releasing
            && let Some(has_more) = self.outside.publish_withheld(PORTION, limit)
        {
            self.is_releasing = has_more;
        }
    }

    /// Lets the pipeline withhold its verdicts from now on.
    pub(super) fn stop(&mut self) {
        (self.begins, self.is_releasing, self.alone) = (None, false, None);
        let limit = self.patience();
        self.outside.stop_publishing(limit);
    }

    /// Warns that a standby has the state which this active member lacks.
    pub(super) fn name_better(&mut self, now: Nanos) {
        if self.has_named_better || !self.election.is_late() {
            return;
        }
        // One that has taken the state of this member has no more than that.
        let taken = |id: MemberId| self.others.get(id).and_then(|about| about.taken);
        let has_more = |id: MemberId| taken(id).is_none_or(|(from, _)| from != self.id);
        if let Some(id) = self.election.best_standby(now, has_more) {
            self.has_named_better = true;
            self.outside.warn(&format!(
                "this member is active without the state of earlier messages, which member {id} has: hand over to it with \
                 `rondel standby promote --member {id}`"
            ));
        }
    }

    /// Hands over, if this member is the active one in this epoch.
    pub(super) fn hand_over(&mut self, to: Option<MemberId>, epoch: u64) {
        match self.election.hand_over(self.now(), to, epoch) {
            Ok(to) => {
                // Still with the permit, so that everything received so far is published.
                self.stop();
                self.shared.permit.revoke();
                self.shared.permit.set_published(None);
                self.send(self.shared.permit.position(), false, Some(to));
                self.outside.say(&format!("handed over to member {to}; verdicts are withheld"));
                self.show();
            }
            Err(Refusal::NotActive) => {}
            Err(Refusal::Outdated) => {
                let own = self.election.epoch();
                self.outside.say(&format!(
                    "ignores a request to hand over in epoch {epoch}: this member is active in epoch {own}"
                ));
            }
            Err(Refusal::Late(id)) => self.outside.warn(&format!(
                "cannot hand over: member {id} stands by without the state of earlier messages; \
                 `rondel standby promote --member {id}` hands over to it nevertheless"
            )),
            Err(Refusal::NoStandby) => self.outside.warn("cannot hand over: there is no standby"),
            Err(Refusal::Unknown(id)) => {
                self.outside.warn(&format!("cannot hand over: member {id} is no standby"))
            }
        }
    }
}
