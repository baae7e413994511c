//! The state that all routes of a session share, and what they count in it.

use std::sync::Arc;

use rondel_align::Refusal;
use rondel_event::{Block, SnapshotError, Timestamp, TopicId};

use super::gaps::pause::Heartbeat;
use super::gaps::restart::Resumption;
use super::options::{Reset, ResetPolicy};
use super::results::emitter::Emitter;
use super::results::notices::PendingNotices;
use super::results::omitted::Omitted;
use super::snapshot::saved::{Saved, StartError};
use super::time::jumps::Jumps;
use super::time::laps::Laps;
use super::{Route, SessionPlan};
use crate::ordering::limits::Refused;
use crate::report::notice::Notice;
use crate::specification::input::Input;
use crate::statistics::account::{Accounts, RecordedNumbers};
use crate::statistics::missing::{Missing, Needed};
use crate::statistics::omission::{FirstOmission, Omissions, Reason};
use crate::statistics::{Counts, TopicStatistics, WorkerStatistics};
use crate::text::{duration, grouped, size};
use crate::time::clock::{Clock, NO_TIME};

/// The state that all routes share.
pub(super) struct Shared {
    pub(super) emitter: Emitter,
    pub(super) counts: Counts,
    /// The messages received when all were last evaluated.
    pub(super) flushed: u64,
    pub(super) earlier: EarlierCounts,
    pub(super) topics: Vec<TopicStatistics>,
    pub(super) missing: Missing,
    pub(super) omitted: Omitted,
    /// The times of the first and the last message.
    pub(super) span: Option<(Timestamp, Timestamp)>,
    pub(super) needed: Arc<Needed>,
    pub(super) accounts: Accounts,
    pub(super) notices: PendingNotices,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) largest_message: usize,
    pub(super) exactly: bool,
    pub(super) resumption: Resumption,
    pub(super) heartbeat: Heartbeat,
    /// For each topic the sequence numbers in lines.
    pub(super) recorded: Vec<RecordedNumbers>,
    /// The times of messages, where a new lap may begin.
    pub(super) laps: Laps,
    /// The number of the lap, from 1.
    pub(super) lap: u32,
    pub(super) jumps: Jumps,
    /// The statistics of workers, without the messages that wait.
    pub(super) workers: WorkerStatistics,
    /// Inputs of the topics.
    pub(super) inputs: Arc<[Input]>,
}

/// Counts before the lap, those before a snapshot included.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlierCounts {
    /// The messages that the monitor had counted.
    pub(super) received: u64,
    /// Checked events.
    pub(super) checked: u64,
}

impl Shared {
    /// The state of a session at its start; `saved` is the snapshot that it continues from.
    pub(super) fn new(
        plan: &SessionPlan,
        route: &Route,
        saved: Option<&Saved>,
    ) -> Result<Shared, StartError> {
        let SessionPlan { specification, options, needed, .. } = plan;
        let spec = &specification.spec;
        let mut emitter = Emitter::new(spec, options.emit);
        let topics: Vec<TopicStatistics> = spec
            .topics
            .iter()
            .map(|topic| TopicStatistics { name: topic.name.clone(), ..Default::default() })
            .collect();
        let mut missing = Missing::new(specification, needed, route.projections());
        let mut accounts = Accounts::new(topics.len());
        let mut omissions = Omissions::default();
        // Nothing is judged by a synchronizer.
        let ignored = Reset { policy: ResetPolicy::Ignore, ..options.reset };
        let reset = if plan.synchronizes { ignored } else { options.reset };
        let mut laps = Laps::new(reset, topics.len(), options.alignment.longest_wait());
        let lap = saved.map_or(1, |saved| saved.known.lap.max(1));
        let mut recorded = Vec::new();
        if let Some(Saved { known, .. }) = saved {
            let statistics = emitter.statistics.iter_mut().zip(&known.statistics);
            statistics.for_each(|(statistics, saved)| statistics.restore(saved.clone()));
            recorded = known.recorded.clone();
            if !recorded.iter().all(RecordedNumbers::is_plausible) {
                return Err(SnapshotError::Altered.into());
            }
            recorded.iter_mut().for_each(RecordedNumbers::join);
            missing.restore(&known.missing);
            let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
            omissions = Omissions::restored(&known.omissions, &names);
            if known.topics == names {
                laps.restore(&known.latest);
            }
            emitter.reports.begin_lap(lap);
            emitter.reports.restore_muting(known.muting.as_ref());
            accounts.restore(&known.numbers)?;
        }
        // Without properties that measure time, and without waiting messages, arrival times do not matter. Events of
        // topics do: a deadline may be missed during a pause.
        let reads_time = route.measures_time() || !spec.events.is_empty();
        Ok(Shared {
            emitter,
            counts: Counts::default(),
            flushed: 0,
            earlier: EarlierCounts {
                received: if let Route::Direct(direct) = route { direct.counted() } else { 0 },
                checked: saved.map_or(0, |saved| saved.known.events),
            },
            accounts,
            omitted: Omitted::new(omissions, topics.len()),
            topics,
            missing,
            laps,
            lap,
            jumps: Jumps::new(options.live),
            workers: WorkerStatistics::default(),
            inputs: options.inputs.clone().into(),
            span: None,
            needed: Arc::clone(needed),
            notices: PendingNotices::default(),
            clock: Arc::clone(&options.clock),
            largest_message: options.largest_message,
            exactly: options.exactly,
            heartbeat: Heartbeat::new(options, reads_time, plan.withholds()),
            recorded,
            resumption: Resumption::new(saved),
        })
    }

    /// Records the topics, fields and times of the messages of a block.
    pub(super) fn see(&mut self, block: &Block) {
        self.missing.see(block);
        if let Some(jump) = self.jumps.look(block, &self.inputs) {
            self.notice(jump);
        }
        let Some(last) = block.len().checked_sub(1) else { return };
        let (first, last) = (block.time(0), block.time(last));
        let (begin, end) = self.span.unwrap_or((first, last));
        self.span = Some((begin.min(first), end.max(last)));
    }

    /// Adds the times of all messages of a block, in which they are not in order, to the span.
    #[cold]
    pub(super) fn widen(&mut self, block: &Block) {
        for time in (0..block.len()).map(|row| block.time(row)) {
            let (begin, end) = self.span.unwrap_or((time, time));
            self.span = Some((begin.min(time), end.max(time)));
        }
    }

    /// Whether a property joins after a restart, so that it missed nothing before.
    pub(super) fn joins(&self, property: u32) -> bool {
        self.resumption.joins(property)
    }

    /// The joining ones among these properties, by their positions among them.
    pub(super) fn joining_of(&self, properties: &[u32]) -> Vec<u32> {
        (0..).zip(properties).filter(|(_, property)| self.joins(**property)).map(|(place, _)| place).collect()
    }

    /// The number of messages received, those before a snapshot included.
    #[inline]
    pub(super) fn counted(&self) -> u64 {
        self.earlier.received + self.counts.received
    }

    /// Keeps a notice until it is taken.
    pub(super) fn notice(&mut self, notice: Notice) {
        self.notices.add(notice, &self.topics);
    }

    /// Counts a message without the time that it should carry.
    pub(super) fn unstamped(&mut self, topic: TopicId, time: Timestamp) {
        if let Some(topic) = self.topics.get_mut(topic.index()) {
            topic.unstamped += 1;
        }
        self.notice(Notice::unstamped(topic, time));
    }

    /// Counts messages of a topic that were not evaluated; `time` is that of the first one or of the last message before
    /// it, `detail` says what is wrong with the first one.
    #[cold]
    pub(super) fn omit(
        &mut self,
        reason: Reason,
        topic: Option<TopicId>,
        time: Option<Timestamp>,
        detail: impl FnOnce() -> String,
    ) {
        let first = || Some(FirstOmission { time: time.filter(|time| *time > NO_TIME), detail: detail() });
        self.omitted.add(reason, topic, 1, first);
    }

    /// Counts a message that was refused because of its size.
    #[cold]
    pub(super) fn oversized(&mut self, topic: TopicId, time: Option<Timestamp>, bytes: usize) {
        self.counts.refused += 1;
        if let Some(topic) = self.topics.get_mut(topic.index()) {
            topic.oversized += 1;
        }
        let limit = self.largest_message;
        self.omit(Reason::TooLarge, Some(topic), time, || {
            format!("{} bytes, the limit is {}", grouped(bytes as u64), size(limit))
        });
        self.notice(Notice::oversized(topic, bytes, limit));
    }

    /// Counts a message that was refused because its time is too far from the clock.
    #[cold]
    pub(super) fn refuse(&mut self, topic: TopicId, time: Timestamp, refused: Refused) {
        self.counts.refused += 1;
        if let Some(topic) = self.topics.get_mut(topic.index()) {
            topic.refused += 1;
        }
        self.omit(Reason::RefusedTime, Some(topic), Some(time), || {
            let side = if refused.side == Refusal::Ahead { "after" } else { "before" };
            format!("{} {side} the clock", duration(refused.distance))
        });
        self.notice(Notice::refused(topic, time, refused.side, refused.distance));
    }
}
