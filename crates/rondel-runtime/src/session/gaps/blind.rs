//! Missed messages: verdicts that depend on them are inconclusive.

use std::collections::VecDeque;

use rondel_decode::DecodeError;
use rondel_decode::lines::{Lines, Unseen, UnseenCause};
use rondel_engine::{Monitor, SeenAgain};
use rondel_event::{Block, Origin, Timestamp, TopicId};
use rondel_spec::Spec;

use crate::report::notice::Notice;
use crate::session::{Route, Session, Shared, Stamp};
use crate::statistics::PropertyStatistics;
use crate::statistics::account::LineNumber;
use crate::statistics::omission::{FirstOmission, Reason};

/// Time before all others: the beginning of the missed span is unknown.
pub(in crate::session) const UNKNOWN: Timestamp = Timestamp::from_nanos(i64::MIN / 4);

/// Number of message counts kept with their times.
const COUNTS: usize = 256;

/// Outages of networks, and the messages received by the time of each.
#[derive(Debug, Default)]
pub(in crate::session) struct Outages {
    /// Numbers of messages received by some times, including those before a snapshot.
    counts: VecDeque<(Timestamp, u64)>,
    /// Time at which a network was disconnected, if it still is.
    since: Option<Timestamp>,
}

impl Outages {
    /// Records the number of messages received by a time of day.
    fn note_count(&mut self, time: Timestamp, count: u64) {
        if self.counts.len() >= COUNTS {
            self.counts.pop_front();
        }
        self.counts.push_back((time, count));
    }

    /// Number of messages received by a time of day.
    fn count_at(&self, time: Timestamp) -> u64 {
        let before = self.counts.iter().rev().find(|(noted, _)| *noted <= time);
        before.map_or(0, |(_, count)| *count)
    }

    /// Records an outage, which lasts without `until`. Returns whether it was not recorded before: an outage that lasts
    /// is recorded again when it ends.
    fn begins(&mut self, from: Timestamp, until: Option<Timestamp>) -> bool {
        let known = self.since.take();
        self.since = until.is_none().then_some(from);
        known != Some(from) || until.is_none()
    }
}

impl Session {
    /// Takes a message before which messages of its topic were lost.
    #[cold]
    pub(in crate::session) fn push_after_loss(
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

    /// Records the number of messages received by now, so that [`Session::cut_off`] knows which verdicts are older than
    /// an outage.
    pub fn note_count(&mut self) {
        self.outages.note_count(self.shared.clock.time_of_day(), self.shared.counted());
    }

    /// Records that a network was disconnected: messages of these topics were missed from a time of day on, and are
    /// received again from `until` on. Without `until` it is still disconnected; call it again when that ends. Verdicts
    /// that depend on the time between are inconclusive.
    pub fn cut_off(&mut self, topics: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        self.not_received(topics, (from, until), "cut off from the network");
    }

    /// Like [`Session::cut_off`], with the reason in words.
    pub fn not_received(
        &mut self,
        topics: &[TopicId],
        (from, until): (Timestamp, Option<Timestamp>),
        reason: &str,
    ) {
        if !self.withholds() || topics.is_empty() {
            return;
        }
        self.evaluate();
        if self.outages.begins(from, until) {
            let topic = if let [topic] = topics { Some(*topic) } else { None };
            self.shared.omit(Reason::NotReceived, topic, Some(from), || reason.to_owned());
        }
        let before = self.outages.count_at(from);
        let again = until.and_then(|until| {
            Some(match &self.route {
                Route::Direct(direct) => {
                    let (latest, shown) = direct.times(&self.shared);
                    SeenAgain::Now(shown.max(time_after(latest, from, until)))
                }
                // Earlier messages may still be waiting.
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

    /// Reports properties as inconclusive whose last verdicts are older than missed messages on which they depend: no event
    /// may follow at which that is reported.
    pub fn withhold_earlier(&mut self) {
        if !self.withholds() {
            return;
        }
        self.evaluate();
        match &mut self.route {
            Route::Direct(direct) => direct.withhold_until_event(&mut self.shared),
            Route::Aligned(aligned) => aligned.withhold_until_event(&mut self.shared),
            Route::Synchronized(_) => {}
        }
    }

    /// Records an undecodable message of a topic, whose content is unknown.
    #[cold]
    pub(in crate::session) fn unread(&mut self, topic: TopicId, origin: Option<Origin>) {
        self.unread_between(topic, origin, None);
    }

    /// Records messages of a topic whose content is unknown: the last one, or those between two times of day.
    #[cold]
    fn unread_between(
        &mut self,
        topic: TopicId,
        origin: Option<Origin>,
        span: Option<(Timestamp, Timestamp)>,
    ) {
        match &mut self.route {
            Route::Direct(_) => {}
            Route::Aligned(aligned) => aligned.unread(topic, origin),
            Route::Synchronized(synchronized) => synchronized.unread(topic, origin),
        }
        if !self.withholds() {
            return;
        }
        let last = |latest: Timestamp| span.map_or(latest, |(from, until)| time_after(latest, from, until));
        self.evaluate();
        match &mut self.route {
            Route::Direct(direct) => {
                let (latest, shown) = direct.times(&self.shared);
                direct.unseen(&[topic], last(latest).max(shown), &mut self.shared);
                if self.plan.options.live {
                    direct.withhold_until_event(&mut self.shared);
                }
            }
            Route::Aligned(aligned) => {
                let last = last(aligned.latest(&self.shared));
                aligned.miss(&[topic], SeenAgain::After(last), &mut self.shared);
                if self.plan.options.live {
                    aligned.withhold_until_event(&mut self.shared);
                }
            }
            Route::Synchronized(_) => {}
        }
    }

    /// Records an unreadable part of a recording that may have contained messages of these topics, with the reason in
    /// `detail`. Verdicts that depend on them are inconclusive.
    #[cold]
    pub fn unreadable(&mut self, topics: &[TopicId], detail: &str) {
        let topic = if let [topic] = topics { Some(*topic) } else { None };
        if let Route::Direct(direct) = &mut self.route {
            // The span ends with the last full block, which workers may not have evaluated yet.
            direct.settle(&mut self.shared);
        }
        let time = self.shared.span.map(|(_, last)| last);
        self.shared.omit(Reason::Skipped, topic, time, || detail.to_owned());
        if !self.withholds() || topics.is_empty() {
            return;
        }
        self.evaluate();
        match &mut self.route {
            Route::Direct(direct) => {
                let (latest, _) = direct.times(&self.shared);
                direct.unseen(topics, latest, &mut self.shared);
            }
            Route::Aligned(aligned) => {
                let latest = aligned.latest(&self.shared);
                aligned.miss(topics, SeenAgain::After(latest), &mut self.shared);
            }
            Route::Synchronized(_) => {}
        }
    }

    /// Records that events of topics may have been missed up to now, such as the death of a publisher while the session
    /// did not run: their last state is unknown until they come again.
    pub(in crate::session) fn forget_events(&mut self) {
        let topics = self.events.topics();
        if !self.withholds() || topics.is_empty() {
            return;
        }
        match &mut self.route {
            Route::Direct(direct) => {
                let (latest, shown) = direct.times(&self.shared);
                direct.unseen(&topics, latest.max(shown), &mut self.shared);
            }
            Route::Aligned(aligned) => {
                let latest = aligned.latest(&self.shared);
                aligned.miss(&topics, SeenAgain::After(latest), &mut self.shared);
            }
            Route::Synchronized(_) => {}
        }
    }

    /// Counts a message of a topic that cannot be decoded, as its encoding or its type is not that of the topic; `detail`
    /// says why.
    #[cold]
    pub fn push_undecodable(&mut self, topic: TopicId, stamp: Stamp, detail: &str) {
        let count = self.shared.counts.received + 1;
        self.shared.accounts.receive_at(topic, stamp.origin, count, &*self.shared.clock);
        self.shared.counts.received = count;
        self.shared.counts.undecodable += 1;
        self.shared.accounts.undecodable(topic);
        self.shared
            .omit(Reason::OtherType, Some(topic), stamp.source.or(stamp.arrival), || detail.to_owned());
        self.shared.missing.unread(topic);
        self.unread(topic, stamp.origin);
    }

    /// Counts messages or events of a topic that were dropped before they reached the session, between two times of day, and
    /// after all that were pushed; `detail` says why. Verdicts that depend on them are inconclusive.
    #[cold]
    pub fn dropped(
        &mut self,
        topic: TopicId,
        count: u64,
        (from, until): (Timestamp, Timestamp),
        detail: &str,
    ) {
        if count == 0 {
            return;
        }
        let described = || Some(FirstOmission { time: Some(from), detail: detail.to_owned() });
        self.shared.omitted.add(Reason::Dropped, Some(topic), count, described);
        self.unread_between(topic, None, Some((from, until)));
    }

    /// Records that a recording is read from this time on and has earlier messages. Verdicts that depend on these are
    /// inconclusive. Call it before the first message.
    pub fn begins_at(&mut self, time: Timestamp) {
        if !self.withholds() {
            return;
        }
        let all = self.events.declared_topics();
        // Only withheld verdicts depend on the earlier messages, which were left out by choice.
        self.shared.emitter.is_cut = true;
        match &mut self.route {
            Route::Direct(direct) => direct.unseen(&all, time, &mut self.shared),
            Route::Aligned(aligned) => aligned.miss(&all, SeenAgain::At(time), &mut self.shared),
            Route::Synchronized(_) => {}
        }
    }

    /// Counts messages of the recording outside the time span to read.
    pub fn left_out(&mut self, count: u64) {
        self.shared.omitted.add(Reason::OutsideSpan, None, count, || None);
    }

    /// Records missing messages at unknown times and on unknown topics: no verdict but a violation is certain.
    #[cold]
    pub fn missing(&mut self, reason: Reason, count: u64, detail: &str) {
        let first = || Some(FirstOmission { time: None, detail: detail.to_owned() });
        self.shared.omitted.add(reason, None, count, first);
        if self.withholds() && count > 0 {
            self.shared.emitter.broke_off = true;
            self.shared.emitter.statistics.iter_mut().for_each(PropertyStatistics::see_omission);
        }
    }

    /// Records that messages of these topics were missed up to a time; `before` is the number of messages up to the
    /// last one before the span.
    pub(in crate::session) fn miss(&mut self, topics: &[TopicId], before: u64, until: SeenAgain) {
        match &mut self.route {
            Route::Direct(direct) => direct.miss(topics, before, until, &mut self.shared),
            Route::Aligned(aligned) => aligned.miss(topics, until, &mut self.shared),
            Route::Synchronized(_) => {}
        }
    }
}

/// Messages of a recording that are missing before a row of its block.
#[derive(Debug)]
pub(in crate::session) struct Hole {
    pub(in crate::session) row: usize,
    pub(in crate::session) topics: Vec<TopicId>,
    /// Publisher and number of the unreadable message.
    pub(in crate::session) origin: Option<Origin>,
    /// Number of messages up to the last one before the gap, if the number of the message in that row shows it.
    /// Otherwise a line could not be read.
    pub(in crate::session) gap: Option<u64>,
}

impl Shared {
    /// Finds missing messages among the lines read last, whose rows begin at `start`; they are not counted yet.
    #[inline]
    pub(in crate::session) fn holes(&mut self, lines: &Lines, block: &Block, start: usize) -> Vec<Hole> {
        if lines.unseen().is_empty() && lines.origins().is_empty() {
            return Vec::new();
        }
        self.count_unseen(lines);
        if self.heartbeat.withholds { self.find_holes(lines, block, start) } else { Vec::new() }
    }

    /// Counts the messages in lines that were not read.
    fn count_unseen(&mut self, lines: &Lines) {
        for Unseen { cause, line, topic, .. } in lines.unseen() {
            let reason = match (*cause, *topic) {
                (UnseenCause::TooLarge(bytes), Some(topic)) => {
                    self.counts.received += 1;
                    self.oversized(topic, None, bytes);
                    continue;
                }
                (UnseenCause::Undecodable, _) => Reason::Undecodable,
                (UnseenCause::TooLarge(_) | UnseenCause::Skipped, _) => Reason::Skipped,
            };
            self.omit(reason, *topic, None, || match lines.why_unseen(*line) {
                why if why.is_empty() => format!("line {line}"),
                why => format!("line {line}, {why}"),
            });
        }
    }

    #[cold]
    fn find_holes(&mut self, lines: &Lines, block: &Block, start: usize) -> Vec<Hole> {
        let count = self.topics.len() as u32;
        let all = || (0..count).map(TopicId).collect();
        let mut holes = Vec::new();
        let mut unseen = lines.unseen().iter().peekable();
        let mut origins = lines.origins().iter().peekable();
        loop {
            // The unreadable message came before the one in its row.
            let row = origins.peek().map(|(row, _)| *row);
            let (row, topic, origin, is_seen) = if let Some(Unseen { row, topic, origin, .. }) =
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
            let count = self.counted() + (row + 1 - start) as u64;
            let said = self.recorded[topic.index()].line(origin, count);
            let statistics = self.topics.get_mut(topic.index());
            match (said, statistics) {
                (LineNumber::Again, Some(statistics)) => statistics.repeats += 1,
                (LineNumber::Gap { missing, .. }, Some(statistics)) => statistics.gaps += missing,
                _ => {}
            }
            if let (LineNumber::Gap { before, .. }, true) = (said, is_seen) {
                holes.push(Hole { row, topics: vec![topic], origin: None, gap: Some(before.unwrap_or(0)) });
            }
        }
    }

    /// Reports in one notice the properties of all monitors that have become inconclusive because messages were missed.
    #[cold]
    pub(in crate::session) fn blind<'a>(
        &mut self,
        monitors: impl Iterator<Item = (&'a mut Monitor, &'a Spec)>,
    ) {
        let (mut names, mut stay, mut from) = (Vec::new(), Vec::new(), None);
        for (monitor, spec) in monitors {
            for property in monitor.take_uncertain() {
                let Some(name) =
                    spec.properties.get(property as usize).map(|property| property.name.as_str())
                else {
                    continue;
                };
                names.push(name);
                if monitor.stays_uncertain(property) {
                    stay.push(name);
                }
                // Without properties that measure time, there is no time.
                let time = Some(monitor.time()).filter(|time| monitor.position() > 0 && *time > UNKNOWN);
                from = time.min(from).or(time).or(from);
            }
        }
        if !names.is_empty() {
            self.notice(Notice::blind(&names, &stay, from));
        }
    }
}

/// An estimate of the event time when the day's clock shows `until`, after messages were missed from `from` on; `latest` is
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
