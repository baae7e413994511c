//! Messages that are put in order before they are evaluated.

use std::sync::Arc;
use std::time::Instant;

use rondel_align::{Notice, SetNotice};
use rondel_decode::json::JsonDecoder;
use rondel_engine::Program;
use rondel_event::{Block, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Sample};
use rondel_runtime::align::{AlignedMonitor, Division, Rule, divide, together};
use rondel_spec::Spec;

use super::direct::decoders;
use super::notice::{AlignmentReport, Reporter};
use super::progress::Progress;
use super::time::{Limits, NO_TIME, WaitClock};
use super::{Counts, Parts, Summary};
use crate::chains::ChainReport;
use crate::deployment::{Alignment, TimeOfEvent, WaitFor};
use crate::evidence::Witness;
use crate::outlet::{Outlet, Part, Sink};
use crate::output::Emit;
use crate::resume::{self, Known, Resumed, Waits};
use crate::specification::Specification;
use crate::tally::{Tally, Unseen, left_out};

/// Alignments, each with the properties that wait for the same topics.
pub(super) struct Aligned {
    lanes: Vec<Lane>,
    /// For every topic the lanes that read it.
    readers: Vec<Vec<usize>>,
    times: Vec<TimeOfEvent>,
    clock: WaitClock,
    limits: Limits,
    progress: Progress,
    reporter: Reporter,
    /// How many messages had no time.
    unstamped: u64,
    topics: Vec<String>,
    /// How many messages came since it was last looked what can be evaluated.
    unstepped: usize,
    /// How many messages were checked in the runs before.
    events: u64,
    /// Whether nobody has listened for a while, and it is not known yet for how long.
    resumes: bool,
    /// Whether another run will go on from where this one ends.
    goes_on: bool,
    /// From where that will be, once this one has ended.
    last: Option<Vec<u8>>,
}

/// An alignment and a monitor, and what decodes messages for it.
struct Lane {
    topics: Vec<TopicId>,
    /// The names of its properties, if there are other lanes.
    names: Vec<String>,
    specification: Specification,
    decoders: Vec<JsonDecoder>,
    reads_arrivals: bool,
    /// Where messages are decoded before they wait.
    block: Block,
    monitor: AlignedMonitor,
    part: Part,
    unseen: Unseen,
    /// Whether something came since it was last run.
    is_fresh: bool,
}

/// The time of an event, and whether it is not its own.
pub(super) fn time_of(
    given: Timestamp,
    of: &TimeOfEvent,
    shown: Timestamp,
    sample: &Sample<'_>,
) -> (Timestamp, bool) {
    // A stamp of zero is one that nobody has set, unless time begins there.
    let is_unset = given == NO_TIME || given == Timestamp::ZERO && shown.as_nanos() > 86_400_000_000_000;
    match of {
        TimeOfEvent::Field(_) if is_unset => {
            let now = if shown == NO_TIME { sample.arrival() } else { shown };
            (now, true)
        }
        _ => (given, false),
    }
}

/// What the time of a message is before it is decoded.
pub(super) fn time_before(of: &TimeOfEvent, sample: &Sample<'_>) -> Timestamp {
    match of {
        TimeOfEvent::Source => sample.source_time.unwrap_or_else(|| sample.arrival()),
        TimeOfEvent::Arrival => sample.arrival(),
        TimeOfEvent::Field(_) => NO_TIME,
    }
}

impl Aligned {
    pub(super) fn new(parts: &Parts<'_>, reports: Vec<Sink>, outlet: &mut Outlet) -> Result<Aligned, String> {
        let spec = &parts.specification.spec;
        let alignment = parts.alignment;
        let divisions = divisions(spec, alignment);
        let several = divisions.len() > 1;
        let resumed = parts.resumed.as_ref();
        let waits =
            resumed.map(|resumed| resumed.waits(divisions.len(), spec.properties.len())).transpose()?;
        let states = resumed.map_or(&[][..], |resumed| &resumed.states).iter().map(Some);
        let lanes: Vec<Lane> = divisions
            .into_iter()
            .zip(states.chain(std::iter::repeat(None)))
            .map(|(division, state)| Lane::new(parts, division, several, state))
            .collect::<Result<_, _>>()?;
        if let Some(Resumed { known, .. }) = resumed {
            let tallies = outlet.tallies.iter_mut().zip(&known.tallies);
            tallies.for_each(|(tally, saved)| tally.restore(saved.clone()));
        }
        let unheard = Waits::default();
        let waits = waits.unwrap_or(&unheard);
        let topics: Vec<String> = spec.topics.iter().map(|topic| topic.name.clone()).collect();
        let units = parts.bindings.iter().map(|binding| binding.time_unit);
        let readers = (0..topics.len() as u32).map(|topic| {
            let reads = |(_, lane): &(usize, &Lane)| lane.topics.contains(&TopicId(topic));
            lanes.iter().enumerate().filter(reads).map(|(i, _)| i).collect()
        });
        Ok(Aligned {
            readers: readers.collect(),
            lanes,
            times: parts.bindings.iter().map(|b| b.time.clone()).collect(),
            clock: WaitClock::new(alignment.clock).after(waits.clock),
            limits: Limits::new(alignment),
            progress: Progress::new(topics.iter().cloned().zip(units).collect()).after(waits),
            reporter: Reporter::new(topics.clone(), reports),
            unstamped: waits.unstamped,
            topics,
            unstepped: 0,
            events: resumed.map_or(0, |resumed| resumed.known.events),
            resumes: resumed.is_some(),
            goes_on: parts.goes_on,
            last: None,
        })
    }

    pub(super) fn summary(&self, mut counts: Counts, mut tallies: Vec<Tally>) -> Summary {
        let mut alignment = AlignmentReport::new(&self.topics, self.unstamped, self.progress.unread);
        let (mut left, mut chains) = (Vec::new(), Vec::new());
        let mut unseen = Unseen::default();
        for lane in &self.lanes {
            counts.mistyped += lane.decoders.iter().map(JsonDecoder::mistyped).sum::<u64>();
            let monitor = lane.monitor.monitor();
            let steps = monitor.position();
            for (&property, waiting) in lane.part.properties.iter().zip(monitor.waiting()) {
                tallies[property as usize].end(steps, waiting);
            }
            left.extend(left_out(monitor, &lane.specification.spec));
            chains.extend(ChainReport::all(monitor, &lane.specification.spec));
            unseen.extend(&lane.unseen);
            match lane.monitor.rule() {
                Rule::Order(order) => alignment.order(&order.statistics(), &lane.topics),
                Rule::Sets { sets, topics, .. } => alignment.sets(sets.statistics(), topics),
            }
        }
        Summary { counts, tallies, backwards: 0, unseen, left_out: left, chains, alignment: Some(alignment) }
    }

    pub(super) fn end(&mut self, counts: Counts, outlet: &mut Outlet) -> Vec<Box<dyn Publisher>> {
        if self.goes_on {
            self.step(outlet);
            self.last = Some(self.known(counts, outlet));
        } else {
            for lane in &mut self.lanes {
                let Lane { monitor, part, .. } = lane;
                monitor.end(&mut |block, monitor| outlet.take(block, monitor, part));
            }
            self.report();
        }
        self.reporter.close()
    }

    /// From where another run can go on: from now, or from the end.
    pub(super) fn snapshot(&mut self, counts: Counts, outlet: &mut Outlet) -> Vec<u8> {
        match &self.last {
            Some(last) => last.clone(),
            None => {
                self.step(outlet);
                self.known(counts, outlet)
            }
        }
    }

    /// All that is known, and what waits. What can be evaluated must have been, and reported what there is to report.
    fn known(&self, counts: Counts, outlet: &Outlet) -> Vec<u8> {
        let mut unseen = Unseen::default();
        self.lanes.iter().for_each(|lane| unseen.extend(&lane.unseen));
        let known = Known {
            explain: self.lanes.iter().any(|lane| lane.part.witness.is_some()),
            events: self.events + counts.checked,
            tallies: outlet.tallies.iter().map(Tally::saved).collect(),
            unseen: unseen.all(),
            waits: Some(Waits {
                clock: self.clock.saved(Instant::now()),
                unstamped: self.unstamped,
                unread: self.progress.unread,
                publishers: self.progress.saved(),
            }),
            ..Known::default()
        };
        let states: Vec<Vec<u8>> = self.lanes.iter().map(|lane| lane.monitor.snapshot()).collect();
        resume::bytes(&known, &states)
    }

    /// The first time that the clock shows in a run that goes on from another one.
    fn resume(&mut self, now: Timestamp) {
        if self.resumes && now != NO_TIME {
            self.resumes = false;
            for lane in &mut self.lanes {
                lane.monitor.unheard_until(now);
                lane.is_fresh = true;
            }
        }
    }

    pub(super) fn release(&self) {
        self.reporter.release();
    }

    /// Takes word of how far a publisher is.
    pub(super) fn progress(&mut self, payload: &[u8]) {
        let Some((topic, marker)) = self.progress.read(payload) else { return self.reporter.unread(payload) };
        let shown = self.clock.at(Instant::now());
        self.resume(shown);
        let now = self.clock.shown_or(shown, NO_TIME);
        for &lane in &self.readers[topic.index()] {
            self.lanes[lane].monitor.mark(topic, &marker, now);
            self.lanes[lane].is_fresh = true;
        }
    }

    pub(super) fn receive(
        &mut self,
        topic: TopicId,
        samples: &[Sample<'_>],
        counts: &mut Counts,
        outlet: &mut Outlet,
    ) {
        for sample in samples {
            let at = Instant::now();
            let shown = self.clock.at(at);
            let of = &self.times[topic.index()];
            let before = time_before(of, sample);
            let mut latest = None;
            let mut failed = None;
            for &lane in &self.readers[topic.index()] {
                let lane = &mut self.lanes[lane];
                if lane.block.is_full() {
                    lane.block.clear();
                }
                if let Err(error) =
                    lane.decoders[topic.index()].decode(sample.payload, before, &mut lane.block)
                {
                    failed = Some(error);
                    break;
                }
                let row = lane.block.len() - 1;
                let (time, unstamped) = time_of(lane.block.time(row), of, shown, sample);
                lane.block.set_time(row, time);
                if lane.reads_arrivals {
                    let arrival = if *of == TimeOfEvent::Arrival { time } else { sample.arrival() };
                    lane.block.set_arrival(row, arrival);
                }
                if unstamped && latest.is_none() {
                    self.unstamped += 1;
                    self.reporter.unstamped(topic, time);
                }
                latest = Some(time);
                lane.unseen.look(&lane.block);
                // The clock is set by the first message.
                let now = self.clock.shown_or(shown, time);
                if self.resumes {
                    lane.monitor.unheard_until(now);
                }
                lane.monitor.push(&lane.block, row, topic, sample.origin, now);
                lane.is_fresh = true;
            }
            match (failed, latest) {
                (Some(error), _) => counts.undecodable(sample.payload, error.offset, &error.to_string()),
                (None, Some(time)) => {
                    self.resume(self.clock.shown_or(shown, time));
                    counts.checked += 1;
                    if self.limits.allow(time, shown) {
                        self.clock.see(time, at);
                    }
                }
                // Nobody reads the topic.
                (None, None) => counts.checked += 1,
            }
        }
        // As without alignment: many cost little more than one, and when nothing more is waiting is said.
        self.unstepped += samples.len();
        if self.unstepped >= Block::CAPACITY {
            self.step(outlet);
        }
    }

    /// Evaluates what has come and waits for nothing any more.
    pub(super) fn step(&mut self, outlet: &mut Outlet) {
        self.unstepped = 0;
        for lane in &mut self.lanes {
            if std::mem::take(&mut lane.is_fresh) {
                let Lane { monitor, part, .. } = lane;
                monitor.run(&mut |block, monitor| outlet.take(block, monitor, part));
            }
        }
        self.report();
    }

    /// When time will bring something by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = self.lanes.iter().filter_map(|lane| lane.monitor.deadline()).min()?;
        self.clock.instant(due)
    }

    /// Evaluates what time has brought until this instant; when it will bring more.
    pub(super) fn pass(&mut self, at: Instant, outlet: &mut Outlet) -> Option<Instant> {
        let now = self.clock.at(at);
        if now != NO_TIME {
            self.resume(now);
            for lane in &mut self.lanes {
                lane.monitor.advance(now);
                lane.is_fresh = true;
            }
            self.step(outlet);
        }
        self.due()
    }

    /// Reports what there is to report.
    fn report(&mut self) {
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            match lane.monitor.rule_mut() {
                Rule::Order(order) => {
                    for notice in order.notices() {
                        // What is so whoever waits is said once.
                        let is_own = is_of_waiting(&notice);
                        let is_first = || {
                            let topic = topic_of(&notice).and_then(|topic| self.readers.get(topic.index()));
                            topic.is_none_or(|readers| readers.first() == Some(&i))
                        };
                        if is_own || is_first() {
                            self.reporter.order(&notice, if is_own { &lane.names } else { &[] });
                        }
                    }
                }
                Rule::Sets { sets, topics, .. } => {
                    for notice in sets.notices() {
                        self.reporter.set(&of_specification(notice, topics));
                    }
                }
            }
        }
    }
}

impl Lane {
    /// With what was saved of it, if something was.
    fn new(
        parts: &Parts<'_>,
        division: Division,
        several: bool,
        state: Option<&Vec<u8>>,
    ) -> Result<Lane, String> {
        let (specification, witness) = of_lane(parts.specification, &division, parts.witness.is_some())?;
        let Division { topics, properties, keyed, .. } = division;
        let rule = parts.alignment.rule(&topics, keyed);
        let program = Arc::clone(&specification.program);
        let mut monitor = match state {
            None => AlignedMonitor::new(Arc::clone(&program), rule),
            Some(state) => AlignedMonitor::restore(Arc::clone(&program), rule, state)
                .map_err(|error| error.to_string())?,
        };
        let mut unseen = Unseen::of(&specification, &topics);
        if let Some(resumed) = &parts.resumed {
            unseen.keep(&resumed.known.unseen);
        }
        monitor.monitor_mut().report_every(parts.emit == Emit::Every);
        let names = specification.spec.properties.iter().map(|property| property.name.clone());
        Ok(Lane {
            names: if several { names.collect() } else { Vec::new() },
            decoders: decoders(&specification, parts.bindings),
            reads_arrivals: program.reads_arrivals(),
            block: Block::new(program.layout()),
            monitor,
            part: Part { properties, witness },
            unseen,
            topics,
            specification,
            is_fresh: false,
        })
    }
}

/// The parts of a specification that need not wait for one another.
fn divisions(spec: &Spec, alignment: &Alignment) -> Vec<Division> {
    let joined = alignment.policy.makes_sets();
    match alignment.wait_for {
        WaitFor::Property if !joined => divide(spec),
        WaitFor::Property | WaitFor::Specification => together(spec, joined),
    }
}

/// One of them as a specification of its own, and what watches why its properties are violated, if that is asked for.
fn of_lane(
    whole: &Specification,
    division: &Division,
    explain: bool,
) -> Result<(Specification, Option<Witness>), String> {
    let program = Program::compile(&division.spec).map_err(|error| error.to_string())?;
    let (spec, program) = (division.spec.clone(), Arc::new(program));
    let mut specification = Specification { spec, program, ..whole.clone() };
    let witness = explain.then(|| Witness::new(&mut specification));
    Ok((specification, witness))
}

/// Whether a run of this specification can go on from there.
pub(super) fn accepts(
    specification: &Specification,
    alignment: &Alignment,
    explain: bool,
    resumed: &Resumed,
) -> Result<(), String> {
    let divisions = divisions(&specification.spec, alignment);
    resumed.waits(divisions.len(), specification.spec.properties.len())?;
    for (division, state) in divisions.iter().zip(&resumed.states) {
        let (specification, _) = of_lane(specification, division, explain)?;
        let rule = alignment.rule(&division.topics, division.keyed);
        AlignedMonitor::restore(specification.program, rule, state).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Whether it depends on what properties wait for.
pub(super) fn is_of_waiting(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Tardy { .. }
            | Notice::WaitTooShort { .. }
            | Notice::Early { .. }
            | Notice::MarkerUnmet { .. }
            | Notice::Unsaid { .. }
    )
}

/// The topic that is spoken of.
fn topic_of(notice: &Notice) -> Option<TopicId> {
    match notice {
        Notice::Tardy { topic, .. }
        | Notice::WaitTooShort { topic, .. }
        | Notice::Refused { topic, .. }
        | Notice::UnknownTopic { topic }
        | Notice::Absent { topic, .. }
        | Notice::Returned { topic, .. }
        | Notice::SteppedBack { topic, .. }
        | Notice::StampsDisagree { topic, .. }
        | Notice::MarkerBack { topic, .. }
        | Notice::MarkerBroken { topic, .. }
        | Notice::MarkerMissed { topic, .. }
        | Notice::MarkerUnmet { topic, .. }
        | Notice::Early { topic, .. }
        | Notice::Duplicate { topic, .. }
        | Notice::Gap { topic, .. }
        | Notice::NumbersBack { topic, .. } => Some(*topic),
        Notice::ClockBack { .. } | Notice::Unsaid { .. } => None,
    }
}

/// A notice about the topics of a set, by their numbers in the specification.
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
