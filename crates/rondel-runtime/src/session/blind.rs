//! Messages that were not seen: verdicts that depend on them are inconclusive.

use rondel_engine::{Monitor, SeenAgain};
use rondel_event::{Timestamp, TopicId};
use rondel_spec::Spec;

use super::{DecodeError, Route, Session, Shared, Stamp};
use crate::notice::Notice;

/// A time before all others: it is not known since when messages were not seen.
pub(super) const UNKNOWN: Timestamp = Timestamp::from_nanos(i64::MIN / 4);

impl Session {
    /// Takes a message before which messages of its topic were lost.
    #[cold]
    pub(super) fn push_after_loss(
        &mut self,
        topic: TopicId,
        stamp: Stamp,
        payload: &[u8],
    ) -> Result<(), DecodeError> {
        self.evaluate();
        self.shared.counts.received += 1;
        let taken = self.take(topic, stamp, payload);
        let before = self.shared.accounts.before_loss(topic).unwrap_or(0);
        let until = match &self.route {
            Route::Direct(direct) => Some(SeenAgain::Now(direct.last())),
            Route::Aligned(aligned) => aligned.last().map(SeenAgain::At),
            Route::Synchronized(_) => None,
        };
        if let Some(until) = until {
            self.miss(&[topic], before, until);
        }
        taken
    }

    /// Notes that a network was cut off: messages of these topics were not seen since a time of the day, and from
    /// `until` on they are seen again. Without `until` it lasts; call it again when it has ended. Verdicts that depend
    /// on the time between are inconclusive.
    pub fn cut_off(&mut self, topics: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        if !self.blind || topics.is_empty() {
            return;
        }
        self.evaluate();
        let before = self.counts_at.iter().rev().find(|(time, _)| *time <= from);
        let before = before.map_or(0, |(_, count)| *count);
        let again = until.and_then(|until| {
            Some(match &self.route {
                Route::Direct(direct) => {
                    let (latest, shown) = direct.times(&self.shared);
                    SeenAgain::Now(shown.max(time_after(latest, from, until)))
                }
                // What was sent before may still be waiting.
                Route::Aligned(aligned) => {
                    SeenAgain::After(time_after(aligned.latest(&self.shared), from, until))
                }
                Route::Synchronized(_) => return None,
            })
        });
        self.miss(topics, before, again.unwrap_or(SeenAgain::Open));
        if let Some(again) = again {
            match &mut self.route {
                Route::Direct(direct) => direct.monitors().for_each(|monitor| monitor.see(topics, again)),
                Route::Aligned(aligned) => aligned.monitors().for_each(|monitor| monitor.see(topics, again)),
                Route::Synchronized(_) => {}
            }
        }
    }

    /// Notes that messages of these topics were not seen up to a time; `before` is the number of messages by the last
    /// one before.
    fn miss(&mut self, topics: &[TopicId], before: u64, until: SeenAgain) {
        match &mut self.route {
            Route::Direct(direct) => direct.miss(topics, before, until, &mut self.shared),
            Route::Aligned(aligned) => aligned.miss(topics, until, &mut self.shared),
            Route::Synchronized(_) => {}
        }
    }
}

impl Shared {
    /// Makes a notice of the properties of a monitor that have become inconclusive as messages were not seen.
    #[cold]
    pub(super) fn blind(&mut self, monitor: &mut Monitor, spec: &Spec) {
        let uncertain = monitor.take_uncertain();
        let name = |property: &u32| Some(spec.properties.get(*property as usize)?.name.as_str());
        let names: Vec<&str> = uncertain.iter().filter_map(name).collect();
        let stay = uncertain.iter().filter(|property| monitor.stays_uncertain(**property));
        let stay: Vec<&str> = stay.filter_map(name).collect();
        if !names.is_empty() {
            // Where nothing measures time, there is none.
            let from = (monitor.position() > 0).then(|| monitor.time()).filter(|time| *time > UNKNOWN);
            self.notice(Notice::blind(&names, &stay, from));
        }
    }
}

/// An estimate of the event time when the day's clock shows `until`, after a network was cut off at `from`; `latest` is
/// the time of the last message.
fn time_after(latest: Timestamp, from: Timestamp, until: Timestamp) -> Timestamp {
    /// A day.
    const DAY: u64 = 86_400_000_000_000;
    if latest.as_nanos().abs_diff(until.as_nanos()) < DAY {
        return latest.max(until);
    }
    // The messages have a time of their own.
    let lasted = until.as_nanos().saturating_sub(from.as_nanos()).max(0);
    Timestamp::from_nanos(latest.as_nanos().saturating_add(lasted))
}
