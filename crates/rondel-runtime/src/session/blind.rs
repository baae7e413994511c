//! Messages that were not seen: verdicts that depend on them are inconclusive.

use rondel_align::NumberOutcome;
use rondel_decode::lines::{Lines, Unseen};
use rondel_engine::{Monitor, SeenAgain};
use rondel_event::{Block, Origin, Timestamp, TopicId};
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

    /// Notes that a message of a topic came that could not be read, so that its content is not known.
    #[cold]
    pub(super) fn unread(&mut self, topic: TopicId, origin: Option<Origin>) {
        match &mut self.route {
            Route::Direct(_) => {}
            Route::Aligned(aligned) => aligned.unread(topic, origin),
            Route::Synchronized(synchronized) => synchronized.unread(topic, origin),
        }
        if !self.blind {
            return;
        }
        self.evaluate();
        match &mut self.route {
            Route::Direct(direct) => {
                let (latest, shown) = direct.times(&self.shared);
                direct.unseen(&[topic], latest.max(shown), &mut self.shared);
            }
            Route::Aligned(aligned) => {
                let latest = aligned.latest(&self.shared);
                aligned.miss(&[topic], SeenAgain::After(latest), &mut self.shared);
            }
            Route::Synchronized(_) => {}
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

/// Messages of a recording that are missing before a row of its block.
#[derive(Debug)]
pub(super) struct Hole {
    pub(super) row: usize,
    pub(super) topics: Vec<TopicId>,
    /// Who published the message that could not be read.
    pub(super) origin: Option<Origin>,
    /// If the number of the message in that row shows it: the number of messages by the last one before it. Otherwise a
    /// line could not be read.
    pub(super) gap: Option<u64>,
}

impl Shared {
    /// What is missing among the lines that were read last, whose rows begin at `start`; they are not counted yet.
    #[inline]
    pub(super) fn holes(&mut self, lines: &Lines, block: &Block, start: usize) -> Vec<Hole> {
        if lines.unseen().is_empty() && lines.origins().is_empty() || !self.heartbeat.withholds {
            return Vec::new();
        }
        self.find_holes(lines, block, start)
    }

    #[cold]
    fn find_holes(&mut self, lines: &Lines, block: &Block, start: usize) -> Vec<Hole> {
        let count = self.topics.len() as u32;
        let all = || (0..count).map(TopicId).collect();
        let mut holes = Vec::new();
        let mut unseen = lines.unseen().iter().peekable();
        let mut origins = lines.origins().iter().peekable();
        loop {
            // What could not be read was before the message in its row.
            let row = origins.peek().map(|(row, _)| *row);
            let (row, topic, origin, is_seen) = if let Some(Unseen { row, topic, origin }) =
                unseen.next_if(|unseen| row.is_none_or(|row| unseen.row <= row)).copied()
            {
                let topics = topic.map_or_else(all, |topic| vec![topic]);
                holes.push(Hole { row, topics, origin, gap: None });
                (row, topic, origin, false)
            } else if let Some((row, origin)) = origins.next().copied() {
                (row, block.topic(row), Some(origin), true)
            } else {
                return holes;
            };
            let Some((topic, origin)) = topic.zip(origin) else { continue };
            if self.recorded.len() <= topic.index() {
                self.recorded.resize_with(topic.index() + 1, Default::default);
            }
            let (numbers, last) = &mut self.recorded[topic.index()];
            let outcome = numbers.number(origin);
            let before = std::mem::replace(last, self.counts.received + (row + 1 - start) as u64);
            if let NumberOutcome::Gap(count) = outcome {
                if let Some(statistics) = self.topics.get_mut(topic.index()) {
                    statistics.gaps += count;
                }
                if is_seen {
                    holes.push(Hole { row, topics: vec![topic], origin: None, gap: Some(before) });
                }
            }
        }
    }

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
