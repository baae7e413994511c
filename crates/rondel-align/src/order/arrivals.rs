//! Effects of an arriving event or marker on its topic: presence, sequence numbers, markers, the wait and the direction of
//! its times.

use rondel_event::{Origin, Timestamp, TopicId};

use super::Order;
use super::frontier::ENDLESS;
use super::notice::{Notice, Refusal};
use super::origins::NumberOutcome;
use super::settings::MaxWait;
use super::tree::Position;

impl<T> Order<T> {
    /// Records an event or marker of a topic, which is alive at `then`. Returns the index of the topic; `None` if it is
    /// unknown.
    pub(super) fn sign_of_life(&mut self, topic: TopicId, then: i64) -> Option<usize> {
        let index = topic.index();
        if index >= self.topics.len() {
            self.notice(Notice::UnknownTopic { topic });
            return None;
        }
        if !self.started {
            self.started = true;
            for (i, topic) in self.topics.iter_mut().enumerate() {
                topic.last_seen = self.now;
                if topic.absent_after.is_some() {
                    self.absences.set(i, Position::event(topic.absent_at(), i));
                }
            }
        }
        let here = &mut self.topics[index];
        let after = self.now.saturating_sub(here.last_seen) as u64;
        (here.last_seen, here.ever) = (self.now.max(then), true);
        let was_absent = std::mem::take(&mut here.absent);
        if here.absent_after.is_some() {
            self.absences.set(index, Position::event(here.absent_at(), index));
        }
        if was_absent {
            self.absent -= usize::from(here.in_play);
            self.set_frontier(index);
            self.notice(Notice::Returned { topic, after });
        }
        Some(index)
    }

    pub(super) fn refusal(&self, topic: TopicId, time: i64) -> Option<Notice> {
        let too_far = |distance: i64, limit: Option<u64>| {
            limit.is_some_and(|limit| distance > 0 && distance as u64 > limit)
        };
        let (ahead, behind) = (time.saturating_sub(self.now), self.now.saturating_sub(time));
        let (reason, distance) = match () {
            () if too_far(ahead, self.settings.ahead) => (Refusal::Ahead, ahead as u64),
            () if too_far(behind, self.settings.behind) => (Refusal::Behind, behind as u64),
            () => return None,
        };
        Some(Notice::Refused { topic, time: Timestamp::from_nanos(time), reason, distance })
    }

    /// Adapts the wait for a topic to the delays of its events, if it is estimated.
    pub(super) fn estimate(&mut self, index: usize) {
        let Some(wait) = self.topics[index].estimate() else { return };
        let old = self.frontiers.wait(index);
        if wait != old {
            // A longer wait does not apply to times that the shorter one has passed.
            let here = &mut self.topics[index];
            here.passed = here.passed.max(Some(self.now.saturating_sub(old)));
            self.frontiers.set_wait(index, wait);
            self.set_frontier(index);
        }
    }

    /// Records the sequence number of an event that could not be decoded or was refused, so that it is not missing.
    pub fn unread(&mut self, topic: TopicId, origin: Origin) {
        if topic.index() < self.topics.len() {
            self.is_duplicate(topic.index(), origin);
        }
    }

    /// Whether the event is a duplicate. Reports missing sequence numbers.
    pub(super) fn is_duplicate(&mut self, index: usize, origin: Origin) -> bool {
        let here = &mut self.topics[index];
        let (topic, Origin { publisher, number }) = (TopicId(index as u32), origin);
        let numbered = here.origins.number(origin);
        match numbered {
            NumberOutcome::Next | NumberOutcome::Old => {}
            NumberOutcome::Found => here.counts.missing = here.counts.missing.saturating_sub(1),
            NumberOutcome::Again => {
                here.counts.duplicates += 1;
                self.notice(Notice::Duplicate { topic, publisher, number });
            }
            NumberOutcome::Gap(missing) => {
                here.counts.missing = here.counts.missing.saturating_add(missing);
                self.notice(Notice::Gap { topic, publisher, from: number - missing, missing });
            }
            NumberOutcome::Restarted(highest) => {
                self.notice(Notice::NumbersBack { topic, publisher, number, highest })
            }
        }
        numbered == NumberOutcome::Again
    }

    /// Counts an event for the markers of its topic.
    pub(super) fn receive(&mut self, index: usize, time: i64) {
        self.give_up(index);
        let here = &mut self.topics[index];
        let through = here.markers.through;
        let broken = here.markers.receive(time);
        if here.markers.through != through {
            self.set_frontier(index);
        }
        if let Some(complete) = broken {
            let here = &mut self.topics[index];
            here.counts.broken += 1;
            if here.counts.broken == 1 {
                let (time, complete) = (Timestamp::from_nanos(time), Timestamp::from_nanos(complete));
                self.notice(Notice::MarkerBroken { topic: TopicId(index as u32), time, complete });
            }
        }
    }

    /// Drops pending markers of a topic up to the time that was reached.
    pub(super) fn give_up(&mut self, index: usize) {
        if !self.topics[index].markers.waits() {
            return;
        }
        let by_clock = match self.frontiers.wait(index) {
            ENDLESS => i64::MIN,
            wait => self.now.saturating_sub(wait),
        };
        self.give_up_to(index, by_clock.max(self.reached.time.saturating_sub(1)));
        self.set_frontier(index);
    }

    pub(super) fn give_up_to(&mut self, index: usize, past: i64) {
        while let Some((complete, missing)) = self.topics[index].markers.give_up(past) {
            let (topic, complete) = (TopicId(index as u32), Timestamp::from_nanos(complete));
            self.notice(Notice::MarkerUnmet { topic, complete, missing });
        }
    }

    /// Records the time of an event, and checks that times of the topic do not step back.
    pub(super) fn see_time(&mut self, index: usize, time: i64, publisher: Option<u64>) {
        let here = &mut self.topics[index];
        let in_order = publisher.is_some_and(|publisher| here.origins.in_order(publisher, time));
        match here.latest.filter(|latest| time < *latest) {
            Some(latest) => {
                here.counts.stepped_back += 1;
                if here.fifo && !here.stepped_back {
                    here.stepped_back = true;
                    here.fifo = here.max_wait == MaxWait::None && !here.markers.any();
                    let (topic, fifo) = (TopicId(index as u32), here.fifo);
                    let (time, latest) = (Timestamp::from_nanos(time), Timestamp::from_nanos(latest));
                    let notice = match (publisher, here.origins.latest_by) {
                        (Some(this), Some(other)) if this != other && in_order => {
                            let publishers = [this, other];
                            Notice::StampsDisagree { topic, time, latest, publishers, fifo }
                        }
                        _ => Notice::SteppedBack { topic, time, latest, fifo },
                    };
                    self.set_frontier(index);
                    self.notice(notice);
                }
            }
            None => {
                here.origins.latest_by = publisher;
                if here.latest != Some(time) {
                    here.latest = Some(time);
                    if here.fifo {
                        self.set_frontier(index);
                    }
                }
            }
        }
    }
}
