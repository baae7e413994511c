//! Messages that are put in order, or into sets, before they are evaluated.

mod gaps;
mod group;
mod lines;
mod notices;
mod succession;
mod summary;

use rondel_decode::DecodeError;
use rondel_engine::{Monitor, SeenAgain};
use rondel_event::{Block, Origin, Projection, Timestamp, TopicId};

use crate::ordering::align::{EventRow, ReportCallback};
use crate::ordering::alignment::Late;
use crate::ordering::progress::Waiting;
use crate::report::notice::Notice;
use crate::session::gaps::restart::Absence;
use crate::session::reading::decoders::TopicDecoder;
use crate::session::reading::intake::{Intake, Taken};
use crate::session::snapshot::saved::{Saved, StartError};
use crate::session::time::laps::Held;
use crate::session::{SessionPlan, Shared, Stamp};
use crate::specification::Specification;
use crate::time::clock::{Clock, NO_TIME, Ticks};
use group::{Group, divisions, union};
pub(in crate::session) use group::{Planned, planned};
pub(in crate::session) use notices::of_specification;

/// Alignment groups: the properties of each wait for the same topics. A message is decoded once, for all.
pub(in crate::session) struct Aligned {
    specification: Specification,
    groups: Vec<Group>,
    /// For every property its group, if there are several.
    group_of: Vec<u32>,
    /// For every topic the groups that read it.
    readers: Vec<Vec<usize>>,
    intake: Intake,
    /// The fields that any group reads.
    projections: Vec<Projection>,
    reads_arrivals: bool,
    /// The treatment of late messages.
    late: Late,
    /// Whether asserts are judged up to the time at which the run ends: messages come live.
    ends_now: bool,
    /// The number of messages since the groups were last run.
    unstepped: usize,
    /// Messages and time missed before the first message after a restart.
    absence: Option<Box<Absence>>,
    /// The number of messages of this lap, where several groups see some of them each.
    numbered: Option<u64>,
}

impl Aligned {
    /// The decoder of each topic.
    pub(in crate::session) fn decoders(&self) -> &[TopicDecoder] {
        self.intake.decoders()
    }

    /// The decoder of each topic.
    pub(in crate::session) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        self.intake.decoders_mut()
    }

    pub(in crate::session) fn new(plan: &SessionPlan, saved: Option<&Saved>) -> Result<Aligned, StartError> {
        let SessionPlan { specification, options, .. } = plan;
        let spec = &specification.spec;
        if options.alignment.policy.makes_sets() && !spec.events.is_empty() {
            let why = "events of topics, such as `missed_deadline(topic)`, have no place in sets of messages; use \
                       `policy: event_time` or `arrival`";
            return Err(StartError::Mismatch(why.to_owned()));
        }
        let divisions = divisions(spec, &options.alignment);
        let first = Waiting::default();
        let waiting = match saved {
            None => &first,
            Some(saved) => saved.waiting(divisions.len(), spec.properties.len())?,
        };
        let several = divisions.len() > 1;
        let latest = saved.and_then(|saved| saved.known.recorded_until).map(Timestamp::from_nanos);
        let states = saved.map_or(&[][..], |saved| &saved.states).iter().map(Some);
        let mut groups: Vec<Group> = divisions
            .into_iter()
            .zip(states.chain(std::iter::repeat(None)))
            .map(|(division, state)| Group::new(plan, division, several, state, latest))
            .collect::<Result<_, _>>()?;
        let (projections, layout) = union(spec.topics.len(), &groups);
        for group in &mut groups {
            group.find_fields(&projections);
        }
        let readers = (0..spec.topics.len() as u32).map(|topic| {
            let reads = |(_, group): &(usize, &Group)| group.topics.contains(&TopicId(topic));
            groups.iter().enumerate().filter(reads).map(|(i, _)| i).collect()
        });
        let mut group_of = vec![0; if several { spec.properties.len() } else { 0 }];
        for (i, group) in (0..).zip(&groups).filter(|_| several) {
            group.evaluated.properties.iter().for_each(|&property| group_of[property as usize] = i);
        }
        let mut intake = Intake::new(plan, &projections, layout, waiting, saved.is_some())?;
        intake.latest = latest;
        Ok(Aligned {
            group_of,
            readers: readers.collect(),
            reads_arrivals: groups.iter().any(|group| group.specification.program.reads_arrivals()),
            intake,
            late: options.alignment.late,
            specification: specification.clone(),
            projections,
            groups,
            unstepped: 0,
            absence: None,
            numbered: several.then_some(waiting.numbered),
            ends_now: plan.options.live && specification.has_asserts(),
        })
    }

    pub(in crate::session) fn push(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        shared: &mut Shared,
    ) -> Result<(), DecodeError> {
        let Some(taken) = self.intake.take(topic, stamp, payload, self.reads_arrivals, shared)? else {
            return Ok(());
        };
        if self.intake.missed.is_some() {
            self.miss_paused(shared);
        }
        self.route(topic, &taken, stamp.origin, shared);
        // A block of events costs little more than one event, as without alignment.
        self.unstepped += 1;
        if self.unstepped >= Block::CAPACITY {
            self.step(shared);
        }
        Ok(())
    }

    /// Evaluates a message that has waited.
    pub(in crate::session) fn resume_held(&mut self, held: &Held, shared: &mut Shared) {
        let taken = self.intake.resume(held, shared);
        if self.intake.missed.is_some() {
            self.miss_paused(shared);
        }
        self.route(held.topic, &taken, held.stamp.origin, shared);
        if held.is_line {
            // Time passes for the groups whose topics are silent, too.
            self.advance(taken.now, shared);
        } else {
            self.step(shared);
        }
    }

    /// Hands a message to the groups that read its topic.
    fn route(&mut self, topic: TopicId, taken: &Taken, origin: Option<Origin>, shared: &mut Shared) {
        if taken.refused.is_some() {
            self.unread(topic, origin);
            self.refuse(topic, taken);
            // Earlier verdicts stay certain, however many messages were read at once.
            self.step_to(taken.now, shared);
            let latest = self.latest(shared);
            return self.miss(&[topic], SeenAgain::After(latest), shared);
        }
        shared.counts.checked += 1;
        self.resume(taken.now);
        let Aligned { groups, readers, intake, numbered, .. } = self;
        if let Some(numbered) = numbered {
            intake.block.set_number(taken.row, *numbered);
            *numbered += 1;
        }
        if self.reads_arrivals {
            intake.forget_own_arrival(taken.row);
        }
        for &group in &readers[topic.index()] {
            let group = &mut groups[group];
            if group.is_timed {
                let Group { monitor, evaluated, .. } = group;
                let time = intake.block.time(taken.row);
                let emit: ReportCallback<'_> =
                    &mut |block, monitor| shared.emitter.take(block, monitor, evaluated);
                monitor.run_before(topic, time, taken.now, emit);
            }
            let slots = &group.sources[topic.index()];
            let event = EventRow { block: &intake.block, row: taken.row, slots };
            group.monitor.push_from(event, topic, origin, taken.now, taken.then);
            group.is_fresh = true;
        }
    }

    /// The time of the last message.
    pub(in crate::session) fn last(&self) -> Option<Timestamp> {
        self.intake.block.len().checked_sub(1).map(|row| self.intake.block.time(row))
    }

    /// The latest time of a message, or what the clock shows.
    pub(in crate::session) fn latest(&self, shared: &Shared) -> Timestamp {
        let shown = self.intake.clock.at(&*shared.clock, shared.clock.ticks());
        self.intake.latest.unwrap_or(shown)
    }

    pub(in crate::session) fn monitors(&mut self) -> impl Iterator<Item = &mut Monitor> {
        self.groups.iter_mut().map(|group| group.monitor.monitor_mut())
    }

    pub(in crate::session) fn projections(&self) -> &[Projection] {
        &self.projections
    }

    pub(in crate::session) fn progress(&mut self, payload: &[u8], shared: &mut Shared) {
        let Some((topic, marker)) = self.intake.progress.read(payload) else {
            return shared.notice(Notice::unread(payload));
        };
        let shown = self.intake.shown(shared);
        self.miss_paused(shared);
        self.resume(shown);
        let now = self.intake.clock.shown_or(shown, NO_TIME);
        for &group in &self.readers[topic.index()] {
            let Group { monitor, evaluated, is_fresh, is_timed, .. } = &mut self.groups[group];
            if *is_timed {
                monitor.advance(now);
                monitor.run(&mut |block, monitor| shared.emitter.take(block, monitor, evaluated));
            }
            monitor.mark(topic, &marker, now);
            *is_fresh = true;
        }
    }

    /// Evaluates the events that no longer wait.
    pub(in crate::session) fn step(&mut self, shared: &mut Shared) {
        self.unstepped = 0;
        shared.see(&self.intake.block);
        // Messages arrive in any order.
        let block = &self.intake.block;
        if (1..block.len()).any(|row| block.time(row) < block.time(row - 1)) {
            shared.widen(block);
        }
        self.intake.renew();
        for group in &mut self.groups {
            if std::mem::take(&mut group.is_fresh) {
                let Group { monitor, evaluated, reached, specification, .. } = group;
                monitor.run(&mut |block, monitor| shared.emitter.take(block, monitor, evaluated));
                reached.look(monitor.monitor(), &specification.spec, |notice| shared.notice(notice));
            }
        }
        self.order(shared);
        self.notices(shared);
    }

    /// Several messages are released at once, to one group after the other; their verdicts are emitted by time.
    fn order(&self, shared: &mut Shared) {
        if !self.group_of.is_empty() {
            shared.emitter.reports.order(&self.group_of);
        }
    }

    pub(in crate::session) fn due(&self, clock: &dyn Clock) -> Option<Ticks> {
        self.intake.clock.ticks(self.deadline()?, clock)
    }

    pub(in crate::session) fn deadline(&self) -> Option<Timestamp> {
        self.groups.iter().filter_map(|group| group.monitor.deadline()).min()
    }

    pub(in crate::session) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        let now = self.intake.shown(shared);
        self.miss_paused(shared);
        if now != NO_TIME {
            self.advance(now, shared);
        }
        self.due(&*shared.clock)
    }

    pub(in crate::session) fn advance(&mut self, now: Timestamp, shared: &mut Shared) {
        self.resume(now);
        for group in &mut self.groups {
            group.monitor.advance(now);
            group.is_fresh = true;
        }
        self.step(shared);
    }

    pub(in crate::session) fn end_now(&mut self) {
        self.ends_now = true;
    }

    pub(in crate::session) fn finish(&mut self, shared: &mut Shared) {
        if self.ends_now && self.intake.latest.is_some() {
            let shown = self.intake.shown(shared);
            let now = self.intake.clock.shown_or(shown, NO_TIME);
            self.intake.latest = self.intake.latest.max(Some(now));
        }
        for group in &mut self.groups {
            let Group { monitor, evaluated, .. } = group;
            // Time passes up to the last message of the recording, whatever its topic.
            monitor.end_at(self.intake.latest, &mut |block, monitor| {
                shared.emitter.take(block, monitor, evaluated);
            });
        }
        self.order(shared);
        for group in &self.groups {
            shared.emitter.judge(group.monitor.monitor(), &group.evaluated, self.intake.latest);
        }
        self.notices(shared);
    }
}
