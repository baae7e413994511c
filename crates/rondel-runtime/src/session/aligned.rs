//! Messages that are put in order, or into sets, before they are evaluated.

use std::sync::Arc;

use rondel_align::{Notice as OrderNotice, SetNotice};
use rondel_decode::json::JsonDecoder;
use rondel_decode::lines::{LineError, Lines};
use rondel_engine::Program;
use rondel_event::{Block, Field, Layout, Origin, Projection, Rows, Slot, TimeUnit, Timestamp, TopicId};
use rondel_spec::Spec;

use super::emitter::Evaluated;
use super::{DecodeError, SessionPlan, Shared, Stamp};
use crate::align::{AlignedMonitor, Division, Rule, Told, divide, together};
use crate::alignment::{Alignment, WaitFor};
use crate::chains::ChainStatistics;
use crate::clock::{Clock, Limits, NO_TIME, Ticks, WaitClock};
use crate::explanation::Explainer;
use crate::notice::{AlignmentStatistics, Notice, of_order, of_sets};
use crate::options::{Emit, Input, TimeSource};
use crate::progress::Progress;
use crate::saved::{Known, Saved, StartError, Waiting};
use crate::specification::{Specification, trace_topics};
use crate::statistics::{MissingFields, Summary, omissions};
use crate::text::counted;

/// Alignment groups: the properties of each wait for the same topics. A message is decoded once, for all.
pub(super) struct Aligned {
    specification: Specification,
    groups: Vec<Group>,
    /// For every topic the groups that read it.
    readers: Vec<Vec<usize>>,
    intake: Intake,
    /// The fields that any group reads.
    projections: Vec<Projection>,
    reads_arrivals: bool,
    /// The topics on which no message has come yet.
    missing: Vec<TopicId>,
    /// The number of messages since the groups were last run.
    unstepped: usize,
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
    evaluated: Evaluated,
    missing_fields: MissingFields,
    /// Whether time alone brings reports.
    is_timed: bool,
    /// Whether a message, a marker or time came since it was last run.
    is_fresh: bool,
}

/// The decoders and the clock of an alignment, also of a synchronizer.
pub(super) struct Intake {
    decoders: Vec<JsonDecoder>,
    inputs: Vec<Input>,
    pub(super) block: Block,
    pub(super) clock: WaitClock,
    limits: Limits,
    pub(super) progress: Progress,
    /// Whether the session continues from a snapshot, and no clock has shown yet how long the pause was.
    resumes: bool,
    /// The latest time of arrival in lines.
    arrived: Option<Timestamp>,
    /// Lines without a time of arrival although waiting is measured by these times.
    unclocked: u64,
    /// The latest time of a message.
    latest: Option<Timestamp>,
    /// Values of another type in lines.
    mistyped: u64,
    /// Payloads in lines that could not be decoded.
    pub(super) undecodable: u64,
}

/// A decoded message: its row in the block of the intake, its event time and the time of the clock.
pub(super) struct Taken {
    pub(super) row: usize,
    pub(super) time: Timestamp,
    pub(super) now: Timestamp,
}

/// The clock at the time at which a recorded message arrived.
struct RecordedClock {
    arrival: Option<Timestamp>,
    /// The latest time of arrival up to this message.
    latest: Option<Timestamp>,
}

impl Clock for RecordedClock {
    fn now(&self) -> Timestamp {
        self.arrival.unwrap_or(Timestamp::ZERO)
    }

    fn ticks(&self) -> Ticks {
        self.latest.unwrap_or(Timestamp::ZERO).as_nanos()
    }
}

impl Intake {
    pub(super) fn new(
        plan: &SessionPlan,
        projections: &[Projection],
        layout: Layout,
        waiting: &Waiting,
        resumes: bool,
    ) -> Intake {
        let inputs = plan.options.inputs.clone();
        let Alignment { clock, ahead, behind, .. } = plan.options.alignment;
        let decoder = |(i, (projection, input)): (usize, (&Projection, &Input))| {
            JsonDecoder::new(TopicId(i as u32), projection, input.time.field(), input.time_unit)
        };
        let names = plan.specification.spec.topics.iter().map(|topic| topic.name.clone());
        let units = inputs.iter().map(|input| input.time_unit);
        Intake {
            decoders: projections.iter().zip(&inputs).enumerate().map(decoder).collect(),
            block: Block::new(layout),
            clock: WaitClock::new(clock).after(waiting.clock),
            limits: Limits { ahead, behind },
            progress: Progress::new(names.zip(units).collect()).after(waiting),
            resumes,
            arrived: None,
            unclocked: 0,
            latest: None,
            mistyped: 0,
            undecodable: 0,
            inputs,
        }
    }

    /// Decodes a message into the block, which is emptied when it is full.
    pub(super) fn take(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        reads_arrivals: bool,
        shared: &mut Shared,
    ) -> Result<Taken, DecodeError> {
        if self.block.is_full() {
            self.block.clear();
        }
        let given = match self.inputs[topic.index()].time {
            TimeSource::Source => stamp.source.unwrap_or_else(|| stamp.arrival(&*shared.clock)),
            TimeSource::Arrival => stamp.arrival(&*shared.clock),
            TimeSource::Field(_) => NO_TIME,
        };
        if let Err(error) = self.decoders[topic.index()].decode(payload, given, &mut self.block) {
            shared.counts.undecodable += 1;
            return Err(error);
        }
        let row = self.block.len() - 1;
        if reads_arrivals {
            let is_arrival = self.inputs[topic.index()].time == TimeSource::Arrival;
            let arrival = if is_arrival { given } else { stamp.arrival(&*shared.clock) };
            self.block.set_arrival(row, arrival);
        }
        let clock = Arc::clone(&shared.clock);
        Ok(self.stamp(topic, row, stamp, (&*clock, true), shared))
    }

    /// The time of the message in a row, and what the clock shows.
    fn stamp(
        &mut self,
        topic: TopicId,
        row: usize,
        stamp: &Stamp,
        (clock, tells_arrival): (&dyn Clock, bool),
        shared: &mut Shared,
    ) -> Taken {
        let ticks = clock.ticks();
        let shown = self.clock.at(clock, ticks);
        let given = self.block.time(row);
        let (mut time, mut is_known) = (given, true);
        if self.inputs[topic.index()].time.field().is_some() {
            // A stamp of zero was never set, unless the time of the system begins at zero.
            let begins_at_zero = shown.as_nanos() <= 86_400_000_000_000;
            if given == NO_TIME || given == Timestamp::ZERO && !begins_at_zero {
                time = if shown == NO_TIME { stamp.arrival(clock) } else { shown };
                is_known = shown != NO_TIME || tells_arrival;
                self.block.set_time(row, time);
                shared.unstamped(topic, time);
            } else {
                shared.topics[topic.index()].stamped = true;
            }
        }
        // The clock is set by the first message with a time.
        let now = self.clock.shown_or(shown, time);
        if is_known && self.limits.allow(time, shown) {
            self.clock.see(time, clock, ticks);
            self.latest = self.latest.max(Some(time));
        }
        Taken { row, time, now }
    }

    /// Whether the clock shows a time for the first time since the session continues from a snapshot.
    pub(super) fn resumes(&mut self, now: Timestamp) -> bool {
        now != NO_TIME && std::mem::take(&mut self.resumes)
    }

    /// Decodes lines into the block, which is emptied first; the rows without a time of their own.
    pub(super) fn take_lines(
        &mut self,
        lines: &mut Lines,
        (text, at, end): (&[u8], usize, usize),
    ) -> (Result<usize, LineError>, Rows) {
        self.block.clear();
        let decoded = lines.decode(text, at, end, &mut self.block);
        self.mistyped = lines.mistyped();
        self.undecodable = lines.undecodable();
        let untimed = lines.take_untimed();
        let mut rows = untimed;
        while rows != 0 {
            let row = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let topic = self.block.topic(row);
            if topic.is_some_and(|topic| self.inputs[topic.index()].time.field().is_some()) {
                self.block.set_time(row, NO_TIME);
            }
        }
        (decoded, untimed)
    }

    /// The topic and the times of a decoded line.
    pub(super) fn line(&mut self, row: usize, shared: &mut Shared) -> Option<(TopicId, Taken)> {
        let topic = self.block.topic(row)?;
        let arrival = self.block.arrival(row);
        // Without times of arrival, the event times drive the clock.
        match (arrival, self.arrived) {
            (None, _) => self.unclocked += u64::from(self.clock.follow_messages()),
            (Some(first), None) => self.clock.start_ticks(first.as_nanos()),
            (Some(_), Some(_)) => {}
        }
        self.arrived = self.arrived.max(arrival);
        let clock = RecordedClock { arrival, latest: self.arrived };
        let stamp = Stamp { arrival, ..Stamp::default() };
        Some((topic, self.stamp(topic, row, &stamp, (&clock, arrival.is_some()), shared)))
    }

    /// What the recording lacks for the settings of the alignment, in a sentence.
    fn omission(&self) -> Option<String> {
        let messages = counted(self.unclocked, "message has", "messages have");
        (self.unclocked > 0).then(|| {
            format!(
                "{messages} no time of arrival, which `clock: system` needs: waiting is measured by the times of the \
                 messages instead"
            )
        })
    }

    pub(super) fn mistyped(&self) -> u64 {
        self.mistyped + self.decoders.iter().map(JsonDecoder::mistyped).sum::<u64>()
    }

    pub(super) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The state of the intake for a snapshot.
    pub(super) fn saved(&self, clock: &dyn Clock) -> Waiting {
        Waiting {
            clock: self.clock.saved(clock),
            unread: self.progress.unread,
            publishers: self.progress.saved(),
        }
    }
}

impl Aligned {
    pub(super) fn new(plan: &SessionPlan, saved: Option<&Saved>) -> Result<Aligned, StartError> {
        let SessionPlan { specification, options, .. } = plan;
        let spec = &specification.spec;
        let divisions = divisions(spec, &options.alignment);
        let first = Waiting::default();
        let waiting = match saved {
            None => &first,
            Some(saved) => saved.waiting(divisions.len(), spec.properties.len())?,
        };
        let several = divisions.len() > 1;
        let states = saved.map_or(&[][..], |saved| &saved.states).iter().map(Some);
        let mut groups: Vec<Group> = divisions
            .into_iter()
            .zip(states.chain(std::iter::repeat(None)))
            .map(|(division, state)| Group::new(plan, division, several, state, saved))
            .collect::<Result<_, _>>()?;
        let (projections, layout) = union(spec.topics.len(), &groups);
        for group in &mut groups {
            group.find_fields(&projections);
        }
        let topics = 0..spec.topics.len() as u32;
        let readers = topics.clone().map(|topic| {
            let reads = |(_, group): &(usize, &Group)| group.topics.contains(&TopicId(topic));
            groups.iter().enumerate().filter(reads).map(|(i, _)| i).collect()
        });
        let came = |topic: &TopicId| saved.is_none_or(|s| s.known.missing_topics.contains(&topic.0));
        Ok(Aligned {
            readers: readers.collect(),
            reads_arrivals: groups.iter().any(|group| group.specification.program.reads_arrivals()),
            intake: Intake::new(plan, &projections, layout, waiting, saved.is_some()),
            missing: topics.map(TopicId).filter(came).collect(),
            specification: specification.clone(),
            projections,
            groups,
            unstepped: 0,
        })
    }

    pub(super) fn push(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        shared: &mut Shared,
    ) -> Result<(), DecodeError> {
        let taken = self.intake.take(topic, stamp, payload, self.reads_arrivals, shared)?;
        if !self.missing.is_empty() {
            shared.see(&mut self.missing, &self.intake.block);
        }
        self.route(topic, &taken, stamp.origin, shared);
        // As without alignment: a block of events costs little more than one event.
        self.unstepped += 1;
        if self.unstepped >= Block::CAPACITY {
            self.step(shared);
        }
        Ok(())
    }

    /// Hands a message to the groups that read its topic.
    fn route(&mut self, topic: TopicId, taken: &Taken, origin: Option<Origin>, shared: &mut Shared) {
        shared.counts.checked += 1;
        self.resume(taken.now);
        let Aligned { groups, readers, intake, .. } = self;
        for &group in &readers[topic.index()] {
            let group = &mut groups[group];
            group.missing_fields.see(&intake.block);
            if group.is_timed {
                let Group { monitor, evaluated, .. } = group;
                let time = intake.block.time(taken.row);
                let told: Told<'_> = &mut |block, monitor| shared.emitter.take(block, monitor, evaluated);
                monitor.run_before(topic, time, taken.now, told);
            }
            let slots = &group.sources[topic.index()];
            group.monitor.push_from((&intake.block, slots), taken.row, topic, origin, taken.now);
            group.is_fresh = true;
        }
    }

    /// Ends the pause before a resumed session for all groups, once the clock shows a time.
    fn resume(&mut self, now: Timestamp) {
        if self.intake.resumes(now) {
            for group in &mut self.groups {
                group.monitor.unheard_until(now);
                group.is_fresh = true;
            }
        }
    }

    pub(super) fn lines(&self, unit: TimeUnit) -> Lines {
        let topics = trace_topics(&self.specification.spec, &self.projections, self.intake.inputs());
        Lines::new(&topics, self.specification.is_formula, unit).with_arrivals(true)
    }

    pub(super) fn push_lines(
        &mut self,
        lines: &mut Lines,
        text: (&[u8], usize, usize),
        shared: &mut Shared,
    ) -> Result<usize, LineError> {
        let (decoded, _) = self.intake.take_lines(lines, text);
        shared.counts.received += self.intake.block.len() as u64;
        if !self.missing.is_empty() {
            shared.see(&mut self.missing, &self.intake.block);
        }
        let mut now = NO_TIME;
        for row in 0..self.intake.block.len() {
            if let Some((topic, taken)) = self.intake.line(row, shared) {
                now = taken.now;
                self.route(topic, &taken, None, shared);
            }
        }
        if now == NO_TIME {
            self.step(shared);
        } else {
            // Time passes for the groups whose topics are silent, too.
            self.advance(now, shared);
        }
        decoded
    }

    pub(super) fn progress(&mut self, payload: &[u8], shared: &mut Shared) {
        let Some((topic, marker)) = self.intake.progress.read(payload) else {
            return shared.notice(Notice::unread(payload));
        };
        let shown = self.intake.clock.at(&*shared.clock, shared.clock.ticks());
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
        for group in &mut self.groups {
            if std::mem::take(&mut group.is_fresh) {
                let Group { monitor, evaluated, .. } = group;
                monitor.run(&mut |block, monitor| shared.emitter.take(block, monitor, evaluated));
            }
        }
        self.notices(shared);
    }

    pub(super) fn due(&self, clock: &dyn Clock) -> Option<Ticks> {
        self.intake.clock.ticks(self.deadline()?, clock)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.groups.iter().filter_map(|group| group.monitor.deadline()).min()
    }

    pub(super) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        let now = self.intake.clock.at(&*shared.clock, shared.clock.ticks());
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

    pub(super) fn finish(&mut self, shared: &mut Shared) {
        for group in &mut self.groups {
            let Group { monitor, evaluated, .. } = group;
            // Time passes up to the last message of the recording, whatever its topic.
            monitor.end_at(self.intake.latest, &mut |block, monitor| {
                shared.emitter.take(block, monitor, evaluated);
            });
        }
        self.notices(shared);
    }

    /// The state for a snapshot, after [`Aligned::step`].
    pub(super) fn saved(&self, clock: &dyn Clock) -> Saved {
        let mut missing_fields = MissingFields::default();
        self.groups.iter().for_each(|group| missing_fields.extend(&group.missing_fields));
        let known = Known {
            missing_fields: missing_fields.all(),
            waiting: Some(self.intake.saved(clock)),
            ..Known::default()
        };
        Saved { known, states: self.groups.iter().map(|group| group.monitor.snapshot()).collect() }
    }

    pub(super) fn summarize(&self, summary: &mut Summary) {
        summary.counts.mistyped = self.intake.mistyped();
        summary.omissions.extend(self.intake.omission());
        summary.counts.undecodable += self.intake.undecodable;
        summary.counts.received += self.intake.undecodable;
        let names: Vec<String> = summary.topics.iter().map(|topic| topic.name.clone()).collect();
        let unstamped = summary.topics.iter().map(|topic| topic.unstamped).sum();
        let mut alignment = AlignmentStatistics::new(&names, unstamped, self.intake.progress.unread);
        for group in &self.groups {
            let monitor = group.monitor.monitor();
            let steps = monitor.position();
            for (&property, waiting) in group.evaluated.properties.iter().zip(monitor.waiting()) {
                summary.properties[property as usize].end(steps, waiting);
            }
            let spec = &group.specification.spec;
            summary.omissions.extend(omissions(monitor, spec));
            let all: Vec<u32> = (0..spec.properties.len() as u32).collect();
            summary.chains.extend(ChainStatistics::all(monitor, spec, &all));
            summary.missing_fields.extend(&group.missing_fields);
            match group.monitor.rule() {
                Rule::Order(order) => alignment.order(&order.statistics(), &group.topics),
                Rule::Sets { sets, topics, .. } => alignment.sets(sets.statistics(), topics),
            }
        }
        summary.alignment = Some(alignment);
    }

    /// Collects the notices of the groups.
    fn notices(&mut self, shared: &mut Shared) {
        for (i, group) in self.groups.iter_mut().enumerate() {
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

impl Group {
    fn new(
        plan: &SessionPlan,
        division: Division,
        several: bool,
        state: Option<&Vec<u8>>,
        saved: Option<&Saved>,
    ) -> Result<Group, StartError> {
        let Division { topics, properties, keyed, spec } = division;
        let mut specification = Specification {
            program: Arc::new(Program::compile(&spec)?),
            spec,
            is_formula: plan.specification.is_formula,
        };
        let explainer = plan.options.explain.then(|| Explainer::new(&mut specification));
        let rule = plan.options.alignment.rule(&topics, keyed);
        let program = Arc::clone(&specification.program);
        let mut monitor = match state {
            None => AlignedMonitor::new(program, rule),
            Some(state) => AlignedMonitor::restore(program, rule, state)?,
        };
        let mut missing_fields = MissingFields::of(&specification, &topics);
        if let Some(saved) = saved {
            missing_fields.keep(&saved.known.missing_fields);
        }
        monitor.monitor_mut().report_every(plan.options.emit == Emit::Every);
        let names = specification.spec.properties.iter().map(|property| property.name.clone());
        Ok(Group {
            names: if several { names.collect() } else { Vec::new() },
            monitor,
            sources: Vec::new(),
            evaluated: Evaluated { properties, explainer },
            missing_fields,
            is_timed: specification.is_timed(),
            topics,
            specification,
            is_fresh: false,
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
        self.missing_fields.move_to(own, &self.sources);
    }
}

/// The fields that any group reads, each once, in a layout of their own.
fn union(topics: usize, groups: &[Group]) -> (Vec<Projection>, Layout) {
    let mut layout = Layout { topics, ..Layout::default() };
    let mut projections = vec![Projection::default(); topics];
    for group in groups {
        for (topic, own) in group.specification.program.projections().iter().enumerate() {
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
        OrderNotice::Tardy { .. }
            | OrderNotice::WaitTooShort { .. }
            | OrderNotice::Early { .. }
            | OrderNotice::MarkerUnmet { .. }
            | OrderNotice::Unsaid { .. }
    )
}

/// The topic of a notice.
fn topic_of(notice: &OrderNotice) -> Option<TopicId> {
    match notice {
        OrderNotice::Tardy { topic, .. }
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
        OrderNotice::ClockBack { .. } | OrderNotice::Unsaid { .. } => None,
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
