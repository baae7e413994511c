//! Messages that are put in order, or into sets, before they are evaluated.

use std::sync::Arc;

use rondel_align::{Notice as OrderNotice, SetNotice, Unused};
use rondel_decode::DecodeError;
use rondel_decode::lines::{LineError, Lines, Source};
use rondel_engine::{Monitor, Program, SeenAgain};
use rondel_event::{Block, Field, Layout, Origin, Projection, Slot, TimeUnit, Timestamp, TopicId};
use rondel_spec::{Property, Spec, TimeModel};

use super::blind::{Hole, UNKNOWN};
use super::decoders::TopicDecoder;
use super::emitter::Evaluated;
use super::intake::{Intake, Taken};
use super::laps::Held;
use super::pause::Missed;
use super::restart::Absence;
use super::{SessionPlan, Shared, Stamp};
use crate::align::{AlignedMonitor, Division, ReportCallback, Rule, divide, together};
use crate::alignment::{Alignment, Late, WaitFor};
use crate::alignment_statistics::AlignmentStatistics;
use crate::chains::ChainStatistics;
use crate::clock::{Clock, NO_TIME, Ticks};
use crate::explanation::{Explainer, Signal};
use crate::notice::{Notice, of_order, of_sets};
use crate::omission::{Omissions, Reason};
use crate::options::{Blind, Emit};
use crate::reached::Reached;
use crate::saved::{Known, Saved, StartError, Waiting};
use crate::specification::{Specification, trace_topics};
use crate::statistics::{PropertyStatistics, Summary, omissions, unchecked};

/// Alignment groups: the properties of each wait for the same topics. A message is decoded once, for all.
pub(super) struct Aligned {
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

/// An alignment and the monitor behind it.
struct Group {
    topics: Vec<TopicId>,
    /// The names of its properties, if there are other groups.
    names: Vec<String>,
    specification: Specification,
    monitor: AlignedMonitor,
    /// For every topic the slots of its fields in the block of the intake.
    sources: Vec<Vec<Slot>>,
    /// The limits of instances that were not reached yet.
    reached: Reached,
    evaluated: Evaluated,
    /// Whether time alone causes reports.
    is_timed: bool,
    /// Whether a message, a marker or time came since it was last run.
    is_fresh: bool,
    /// Number of machine leaps reported so far.
    leaps: u64,
}

impl Aligned {
    /// The values of all fields, each field once.
    pub(super) fn courses(&self) -> (Vec<Signal>, u64) {
        let (mut signals, mut left_out) = (Vec::<Signal>::new(), 0);
        for explainer in self.groups.iter().filter_map(|group| group.evaluated.explainer.as_ref()) {
            let (own, more) = explainer.courses();
            left_out += more;
            for signal in own {
                if !signals.iter().any(|known| known.name == signal.name) {
                    signals.push(signal);
                }
            }
        }
        (signals, left_out)
    }

    /// The decoder of each topic.
    pub(super) fn decoders(&self) -> &[TopicDecoder] {
        self.intake.decoders()
    }

    /// The decoder of each topic.
    pub(super) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        self.intake.decoders_mut()
    }

    pub(super) fn new(plan: &SessionPlan, saved: Option<&Saved>) -> Result<Aligned, StartError> {
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
            .map(|(division, state)| Group::new(plan, division, several, (state, latest)))
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

    pub(super) fn push(
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
    pub(super) fn resume_held(&mut self, held: &Held, shared: &mut Shared) {
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

    /// Goes on counting the lines that another one has read.
    pub(super) fn continue_lines(&mut self, before: &Aligned) {
        self.intake.continue_lines(&before.intake);
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
            let clock = (taken.now, taken.then);
            group.monitor.push_from((&intake.block, slots), taken.row, topic, origin, clock);
            group.is_fresh = true;
        }
    }

    /// Passes the number of a refused or unreadable message to the groups.
    #[cold]
    pub(super) fn unread(&mut self, topic: TopicId, origin: Option<Origin>) {
        let Some(origin) = origin else { return };
        for &group in &self.readers[topic.index()] {
            self.groups[group].monitor.unread(topic, origin);
        }
    }

    /// Informs the groups that a message was refused because of its time.
    fn refuse(&mut self, topic: TopicId, taken: &Taken) {
        // Before any message with a time, there is no time to advance from.
        if taken.now == NO_TIME {
            return;
        }
        self.resume(taken.now);
        for &group in &self.readers[topic.index()] {
            let group = &mut self.groups[group];
            group.monitor.refuse(topic, taken.time, taken.now);
            group.is_fresh = true;
        }
    }

    /// Ends the pause before a resumed session for all groups, once the clock shows a time.
    fn resume(&mut self, now: Timestamp) {
        if self.intake.resumes(now) {
            let absence = self.absence.take();
            let topics = self.topics();
            for group in &mut self.groups {
                if let Some(absence) = &absence {
                    let is_slow = self.reads_arrivals && !self.intake.is_by_arrival;
                    group.monitor.monitor_mut().see(&topics, absence.again(now, is_slow));
                }
                group.monitor.unheard_until(now);
                group.is_fresh = true;
            }
        }
    }

    /// The time of the last message.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.intake.block.len().checked_sub(1).map(|row| self.intake.block.time(row))
    }

    /// The latest time of a message, or what the clock shows.
    pub(super) fn latest(&self, shared: &Shared) -> Timestamp {
        let shown = self.intake.clock.at(&*shared.clock, shared.clock.ticks());
        self.intake.latest.unwrap_or(shown)
    }

    pub(super) fn monitors(&mut self) -> impl Iterator<Item = &mut Monitor> {
        self.groups.iter_mut().map(|group| group.monitor.monitor_mut())
    }

    /// Records a pause of the session or a step of the day's clock, before time advances after it.
    #[cold]
    pub(super) fn pause(&mut self, missed: &Missed, shared: &mut Shared) {
        self.intake.pause(missed, &*Arc::clone(&shared.clock));
        self.miss_paused(shared);
    }

    /// Withholds verdicts that depend on a time in which the session did not run, where messages that waited count later.
    #[cold]
    fn miss_paused(&mut self, shared: &mut Shared) {
        let Some(missed) = self.intake.missed.take() else { return };
        let leaps = missed.ticks.is_none() && self.intake.clock.shows_day() && missed.repeats().is_none();
        let span = if self.intake.is_by_arrival || leaps || missed.is_empty {
            (missed.from, missed.again(&self.intake.block))
        } else if missed.ticks.is_none() {
            return;
        } else if let Some(latest) = self.intake.latest.filter(|_| self.reads_arrivals) {
            // The transport delay of waiting messages is unknown.
            let lasted = missed.lasted();
            (latest, SeenAgain::After(Timestamp::from_nanos(latest.as_nanos().saturating_add(lasted))))
        } else {
            return;
        };
        self.miss_time(&self.topics(), span, shared);
    }

    /// Records that the day's clock has caught up with the time it had shown before it was set back.
    #[cold]
    pub(super) fn catch_up(&mut self, shared: &Shared) {
        let shown = self.intake.clock.at(&*shared.clock, shared.clock.ticks());
        let again = self.latest(shared).max(shown).max(shared.clock.now());
        let topics = self.topics();
        self.monitors().for_each(|monitor| monitor.see(&topics, SeenAgain::At(again)));
    }

    fn topics(&self) -> Vec<TopicId> {
        (0..self.specification.spec.topics.len() as u32).map(TopicId).collect()
    }

    /// Records the messages and time missed before the first message that follows.
    pub(super) fn absent(&mut self, absence: Absence, is_by_arrival: bool, shared: &mut Shared) {
        self.intake.is_by_arrival |= is_by_arrival;
        self.miss(&absence.lost, SeenAgain::Open, shared);
        if self.intake.is_by_arrival || self.reads_arrivals {
            self.miss_time(&absence.late, (UNKNOWN, SeenAgain::Open), shared);
        }
        // Messages that waited come before the clock runs.
        let ticks = shared.clock.ticks();
        let began = shared.clock.now().as_nanos().saturating_sub(absence.lasted);
        let ticks = (ticks.saturating_sub(absence.lasted), ticks);
        self.intake.wait(&*shared.clock, ticks, Timestamp::from_nanos(began));
        self.absence = Some(Box::new(absence));
    }

    /// Records that messages of these topics come late, which matters to properties that measure time.
    fn miss_time(&mut self, topics: &[TopicId], span: (Timestamp, SeenAgain), shared: &mut Shared) {
        let mut is_read = false;
        for group in &mut self.groups {
            let Group { monitor, evaluated, specification, .. } = group;
            let joining = shared.joining_of(&evaluated.properties);
            let emit: ReportCallback<'_> =
                &mut |block, monitor| shared.emitter.take(block, monitor, evaluated);
            let properties = &specification.spec.properties;
            let is_meant = |property: u32| {
                let measures = |property: &Property| self.reads_arrivals || property.time != TimeModel::Steps;
                let joins = joining.contains(&property);
                !joins && properties.get(property as usize).is_none_or(measures)
            };
            monitor.miss_for(topics, span, None, (&is_meant, emit));
            is_read |= monitor.monitor().missed().iter().any(|missed| missed.is_read);
        }
        if is_read {
            shared.omit_pause(Some(span.0));
        }
        self.notices(shared);
    }

    /// Records that messages of these topics were missed.
    pub(super) fn miss(&mut self, topics: &[TopicId], until: SeenAgain, shared: &mut Shared) {
        for group in &mut self.groups {
            let Group { monitor, evaluated, .. } = group;
            let joining = shared.joining_of(&evaluated.properties);
            let emit: ReportCallback<'_> =
                &mut |block, monitor| shared.emitter.take(block, monitor, evaluated);
            let has_seen = |property: u32| !joining.contains(&property);
            monitor.miss_for(topics, (UNKNOWN, until), None, (&has_seen, emit));
        }
        self.notices(shared);
    }

    /// Reports the properties that depend on a message that cannot be read, and are evaluated at events only.
    #[cold]
    pub(super) fn withhold_until_event(&mut self, shared: &mut Shared) {
        for Group { monitor, evaluated, .. } in &mut self.groups {
            let latest = evaluated.latest;
            monitor.withhold_until_event(latest, &mut |block, monitor| {
                shared.emitter.take(block, monitor, evaluated);
            });
        }
    }

    pub(super) fn projections(&self) -> &[Projection] {
        &self.projections
    }

    pub(super) fn lines(&self, unit: TimeUnit) -> Lines {
        let topics = trace_topics(&self.specification.spec, &self.projections, self.intake.inputs());
        Lines::new(&topics, self.specification.is_formula, unit).with_arrivals(true).with_origins()
    }

    /// The columns of the blocks that are filled with lines.
    pub(super) fn layout(&self) -> Layout {
        self.intake.block.layout()
    }

    pub(super) fn push_lines(
        &mut self,
        lines: &mut Lines,
        source: Source<'_>,
        shared: &mut Shared,
    ) -> Result<usize, LineError> {
        let decoded = self.intake.take_lines(lines, source);
        shared.join(|| {
            let times = (0..self.intake.block.len()).map(|row| self.intake.block.time(row));
            times.filter(|time| *time != NO_TIME).min()
        });
        shared.counts.received += self.intake.block.len() as u64;
        let mut holes = shared.holes(lines, &self.intake.block, 0).into_iter().peekable();
        let mut now = NO_TIME;
        for row in 0..self.intake.block.len() {
            let mut gap = None;
            while let Some(hole) = holes.next_if(|hole| hole.row <= row) {
                self.step_to(now, shared);
                if hole.gap.is_some() {
                    gap = Some(hole);
                } else {
                    self.miss_lines(&hole, shared);
                }
            }
            if let Some((topic, taken)) = self.intake.line(row, lines.origin(row), shared) {
                now = taken.now;
                self.route(topic, &taken, lines.origin(row), shared);
            }
            if let Some(gap) = gap {
                self.miss(&gap.topics, SeenAgain::At(self.intake.block.time(row)), shared);
            }
        }
        for hole in holes {
            self.step_to(now, shared);
            self.miss_lines(&hole, shared);
        }
        self.step_to(now, shared);
        decoded
    }

    /// Evaluates the messages released once the clock shows this time, and advances the groups whose topics are silent.
    fn step_to(&mut self, now: Timestamp, shared: &mut Shared) {
        if now == NO_TIME || shared.laps.is_holding() {
            self.step(shared);
        } else {
            self.advance(now, shared);
        }
    }

    /// Records unreadable lines. Their messages may have had to wait for others.
    #[cold]
    fn miss_lines(&mut self, hole: &Hole, shared: &mut Shared) {
        let latest = self.intake.latest.unwrap_or(UNKNOWN);
        if let [topic] = hole.topics[..] {
            self.unread(topic, hole.origin);
        }
        self.miss(&hole.topics, SeenAgain::After(latest), shared);
    }

    pub(super) fn progress(&mut self, payload: &[u8], shared: &mut Shared) {
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
    pub(super) fn step(&mut self, shared: &mut Shared) {
        self.unstepped = 0;
        shared.see(&self.intake.block);
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

    pub(super) fn due(&self, clock: &dyn Clock) -> Option<Ticks> {
        self.intake.clock.ticks(self.deadline()?, clock)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.groups.iter().filter_map(|group| group.monitor.deadline()).min()
    }

    pub(super) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        let now = self.intake.shown(shared);
        self.miss_paused(shared);
        if now != NO_TIME {
            self.advance(now, shared);
        }
        self.due(&*shared.clock)
    }

    pub(super) fn advance(&mut self, now: Timestamp, shared: &mut Shared) {
        self.resume(now);
        for group in &mut self.groups {
            group.monitor.advance(now);
            group.is_fresh = true;
        }
        self.step(shared);
    }

    pub(super) fn end_now(&mut self) {
        self.ends_now = true;
    }

    pub(super) fn finish(&mut self, shared: &mut Shared) {
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

    /// The state for a snapshot, after [`Aligned::step`].
    pub(super) fn saved(&self, clock: &dyn Clock) -> Saved {
        let is_by_arrival = self.intake.is_by_arrival;
        let recorded_until = self.intake.latest.map(Timestamp::as_nanos);
        let mut waiting = self.intake.saved(clock);
        waiting.numbered = self.numbered.unwrap_or(0);
        let waiting = Some(waiting);
        let known = Known { waiting, is_by_arrival, recorded_until, ..Known::default() };
        Saved { known, states: self.groups.iter().map(|group| group.monitor.snapshot()).collect() }
    }

    /// Adds the least robustness of each property.
    pub(super) fn see_robustness(&self, statistics: &mut [PropertyStatistics]) {
        for group in &self.groups {
            for (own, &property) in (0..).zip(&group.evaluated.properties) {
                statistics[property as usize].see_robustness(group.monitor.monitor(), own);
            }
        }
    }

    /// Ends all violations for the statistics, since nothing is received from here on.
    pub(super) fn stop_measuring(&self, shared: &mut Shared) {
        for group in &self.groups {
            shared.emitter.stop_measuring(group.monitor.monitor(), &group.evaluated);
        }
    }

    /// Adds the messages and values that were late, dropped by a full queue, or left out at a limit.
    pub(super) fn add_omissions(&self, omissions: &mut Omissions) {
        omissions.add_mistyped(self.intake.mistyped_lines());
        for group in &self.groups {
            omissions.add_limits(group.monitor.monitor(), &group.specification.spec);
            match group.monitor.rule() {
                Rule::Order(order) => {
                    for (topic, own) in (0..).map(TopicId).zip(order.statistics()) {
                        let late = if self.late == Late::Inconclusive { own.late } else { own.dropped };
                        omissions.at_least(Reason::Late, topic, late);
                    }
                }
                Rule::Sets { sets, topics, .. } => {
                    for (topic, own) in topics.iter().zip(&sets.statistics().topics) {
                        let dropped =
                            own.unused[Unused::QueueFull as usize] + own.unused[Unused::AfterLoss as usize];
                        omissions.at_least(Reason::Dropped, *topic, dropped);
                    }
                }
            }
        }
    }

    pub(super) fn summarize(&self, summary: &mut Summary) {
        summary.counts.mistyped = self.intake.mistyped();
        summary.omissions.extend(self.intake.omission());
        summary.counts.undecodable += self.intake.undecodable();
        summary.counts.received += self.intake.undecodable();
        let names: Vec<String> = summary.topics.iter().map(|topic| topic.name.clone()).collect();
        let unstamped = summary.topics.iter().map(|topic| topic.unstamped).sum();
        let mut alignment = AlignmentStatistics::new(&names, unstamped, self.intake.progress.unread);
        self.see_robustness(&mut summary.properties);
        for group in &self.groups {
            let monitor = group.monitor.monitor();
            let end = group.evaluated.end(monitor);
            for (&property, waiting) in group.evaluated.properties.iter().zip(monitor.waiting()) {
                summary.properties[property as usize].end(end, waiting, monitor);
            }
            for (own, &property) in (0..).zip(&group.evaluated.properties) {
                summary.properties[property as usize].see_blind(monitor, own);
            }
            let of_all =
                |(own, number): (u32, u32)| Some((*group.evaluated.properties.get(own as usize)?, number));
            summary.unexercised.extend(monitor.unexercised().filter_map(of_all));
            for (own, messages) in unchecked(monitor, Some(&group.specification.spec)) {
                // The parts watched for explanations are not among them.
                if let Some(property) = group.evaluated.properties.get(own as usize) {
                    summary.properties[*property as usize].unchecked += messages;
                }
            }
            let spec = &group.specification.spec;
            summary.omissions.extend(omissions(monitor, spec));
            let all: Vec<u32> = (0..spec.properties.len() as u32).collect();
            summary.chains.extend(ChainStatistics::all(monitor, spec, &all));
            match group.monitor.rule() {
                Rule::Order(order) => alignment.order(&order.statistics(), &group.topics),
                Rule::Sets { sets, topics, .. } => alignment.sets(sets.statistics(), topics),
            }
        }
        alignment.refused(&summary.topics);
        summary.alignment = Some(alignment);
    }

    /// Collects the notices of the groups.
    fn notices(&mut self, shared: &mut Shared) {
        if self.groups.iter().any(|group| group.monitor.monitor().has_uncertain()) {
            let monitors = self.groups.iter_mut();
            shared.blind(monitors.map(|group| (group.monitor.monitor_mut(), &*group.specification.spec)));
        }
        for (i, group) in self.groups.iter_mut().enumerate() {
            let monitor = group.monitor.monitor();
            let leaps = monitor.leaps();
            if leaps > group.leaps {
                shared.notice(Notice::leap(leaps - group.leaps, monitor.time()));
                group.leaps = leaps;
            }
            match group.monitor.rule_mut() {
                Rule::Order(order) => {
                    for notice in order.notices() {
                        // A notice that does not depend on the wait is reported by one group only.
                        let is_own = depends_on_waiting(&notice);
                        let is_first = || {
                            let topic = topic_of(&notice).and_then(|topic| self.readers.get(topic.index()));
                            topic.is_none_or(|readers| readers.first() == Some(&i))
                        };
                        if is_own || is_first() {
                            let mut of_all = of_order(&notice);
                            if is_own && !group.names.is_empty() {
                                of_all.members.push(("properties", serde_json::json!(group.names)));
                            }
                            shared.notice(of_all);
                        }
                    }
                }
                Rule::Sets { sets, topics, .. } => {
                    for notice in sets.notices() {
                        shared.notice(of_sets(&of_specification(notice, topics)));
                    }
                }
            }
        }
    }
}

/// An alignment group as it will be in a session.
pub(super) struct Planned {
    /// The positions of its properties.
    pub(super) properties: Vec<u32>,
    /// The program, with the parts that explanations watch.
    pub(super) program: Arc<Program>,
    /// The alignment, before the first message, if messages wait to be put in order.
    pub(super) rule: Option<Rule>,
}

/// The alignment groups of a plan.
///
/// # Errors
/// [`StartError::Compile`] when the properties of a group cannot be monitored.
pub(super) fn planned(plan: &SessionPlan) -> Result<Vec<Planned>, StartError> {
    let plan_of = |division: Division| {
        let Division { topics, properties, keyed, spec, .. } = division;
        let (specification, _) = Group::specification(plan, spec)?;
        let rule = Some(plan.options.alignment.rule(&topics, keyed));
        Ok(Planned { properties, program: specification.program, rule })
    };
    divisions(&plan.specification.spec, &plan.options.alignment).into_iter().map(plan_of).collect()
}

impl Group {
    /// Specification of a group, and the explainer of its violations, if requested.
    fn specification(
        plan: &SessionPlan,
        spec: Spec,
    ) -> Result<(Specification, Option<Explainer>), StartError> {
        let mut specification = Specification {
            program: Arc::new(Program::compile(&spec)?),
            spec: Arc::new(spec),
            is_formula: plan.specification.is_formula,
        };
        let explainer = plan
            .options
            .explain
            .then(|| Explainer::new(&mut specification, plan.options.signals, plan.options.courses));
        Ok((specification, explainer))
    }

    fn new(
        plan: &SessionPlan,
        division: Division,
        several: bool,
        (state, latest): (Option<&Vec<u8>>, Option<Timestamp>),
    ) -> Result<Group, StartError> {
        let Division { topics, properties, keyed, spec, .. } = division;
        let (specification, explainer) = Group::specification(plan, spec)?;
        let rule = plan.options.alignment.rule(&topics, keyed);
        let program = Arc::clone(&specification.program);
        let mut monitor = match state {
            None => AlignedMonitor::new(program, rule),
            Some(state) => AlignedMonitor::restore(program, rule, state)?,
        };
        monitor.withhold(plan.options.blind == Blind::Inconclusive);
        monitor.monitor_mut().report_every(plan.options.emit == Emit::Every);
        monitor.monitor_mut().limit_instances(plan.options.instance_bytes);
        let names = specification.spec.properties.iter().map(|property| property.name.clone());
        let leaps = monitor.monitor().leaps();
        let latest = latest.unwrap_or(Timestamp::from_nanos(i64::MIN));
        Ok(Group {
            names: if several { names.collect() } else { Vec::new() },
            reached: Reached::new(monitor.monitor()),
            monitor,
            sources: Vec::new(),
            evaluated: Evaluated { properties, explainer, latest },
            is_timed: specification.is_timed(),
            topics,
            specification,
            is_fresh: false,
            leaps,
        })
    }

    /// Finds the group's fields in the block that messages are decoded into.
    fn find_fields(&mut self, all: &[Projection]) {
        let own = self.specification.program.projections();
        let sources = own.iter().zip(all).map(|(own, all)| {
            let slot = |field: &Field| {
                let found = all.fields.iter().find(|f| f.path == field.path && f.read == field.read);
                found.map_or(field.slot, |found| found.slot)
            };
            own.fields.iter().map(slot).collect()
        });
        self.sources = sources.collect();
    }
}

/// The fields that any group reads, each once, in a layout of their own.
fn union(topics: usize, groups: &[Group]) -> (Vec<Projection>, Layout) {
    let mut layout = Layout { topics, ..Layout::default() };
    let mut projections = vec![Projection::default(); topics];
    for group in groups {
        // Topics of the program alone, of elements of arrays, have no messages.
        for (topic, own) in group.specification.program.projections().iter().enumerate().take(topics) {
            for field in &own.fields {
                let all = &mut projections[topic].fields;
                if all.iter().any(|f| f.path == field.path && f.read == field.read) {
                    continue;
                }
                let next = |count: &mut usize| {
                    *count += 1;
                    *count as u32 - 1
                };
                let slot = match field.slot {
                    Slot::Bool(_) => Slot::Bool(next(&mut layout.bools)),
                    Slot::Int(_) => Slot::Int(next(&mut layout.ints)),
                    Slot::Float(_) => Slot::Float(next(&mut layout.floats)),
                    Slot::String(_) => Slot::String(next(&mut layout.strings)),
                };
                all.push(Field { slot, ..field.clone() });
            }
        }
    }
    (projections, layout)
}

/// The alignment groups of a specification.
fn divisions(spec: &Spec, alignment: &Alignment) -> Vec<Division> {
    let joined = alignment.policy.makes_sets();
    match alignment.wait_for {
        WaitFor::Property if !joined => divide(spec),
        WaitFor::Property | WaitFor::Specification => together(spec, joined),
    }
}

/// Whether a notice depends on the topics that a group waits for.
fn depends_on_waiting(notice: &OrderNotice) -> bool {
    matches!(
        notice,
        OrderNotice::Late { .. }
            | OrderNotice::WaitTooShort { .. }
            | OrderNotice::Early { .. }
            | OrderNotice::MarkerUnmet { .. }
            | OrderNotice::Omitted { .. }
    )
}

/// The topic of a notice.
fn topic_of(notice: &OrderNotice) -> Option<TopicId> {
    match notice {
        OrderNotice::Late { topic, .. }
        | OrderNotice::WaitTooShort { topic, .. }
        | OrderNotice::Refused { topic, .. }
        | OrderNotice::UnknownTopic { topic }
        | OrderNotice::Absent { topic, .. }
        | OrderNotice::Returned { topic, .. }
        | OrderNotice::SteppedBack { topic, .. }
        | OrderNotice::StampsDisagree { topic, .. }
        | OrderNotice::MarkerBack { topic, .. }
        | OrderNotice::MarkerBroken { topic, .. }
        | OrderNotice::MarkerMissed { topic, .. }
        | OrderNotice::MarkerUnmet { topic, .. }
        | OrderNotice::Early { topic, .. }
        | OrderNotice::Duplicate { topic, .. }
        | OrderNotice::Gap { topic, .. }
        | OrderNotice::NumbersBack { topic, .. } => Some(*topic),
        OrderNotice::ClockBack { .. } | OrderNotice::Omitted { .. } => None,
    }
}

/// A notice of sets, with the topics by their positions in the specification.
pub(super) fn of_specification(notice: SetNotice, topics: &[TopicId]) -> SetNotice {
    let of = |topic: TopicId| topics.get(topic.index()).copied().unwrap_or(topic);
    match notice {
        SetNotice::Unused { topic, time, why } => SetNotice::Unused { topic: of(topic), time, why },
        SetNotice::Absent { topic, since, ever } => SetNotice::Absent { topic: of(topic), since, ever },
        SetNotice::Returned { topic, after } => SetNotice::Returned { topic: of(topic), after },
        SetNotice::SteppedBack { topic, time, last } => {
            SetNotice::SteppedBack { topic: of(topic), time, last }
        }
        SetNotice::TooClose { topic, time, last } => SetNotice::TooClose { topic: of(topic), time, last },
        SetNotice::UnknownTopic { topic } => SetNotice::UnknownTopic { topic: of(topic) },
        other => other,
    }
}
