//! Resuming from the snapshot of an edited specification: every unchanged property keeps its state.

use std::fmt;
use std::sync::Arc;

use rondel_event::snapshot::open_any;
use rondel_event::{FieldOrigin, SnapshotError, TopicId};
use rondel_spec::{ChainId, Spec};

use crate::CompileError;
use crate::exec::inventory::{Inventory, Origins, Outline};
use crate::keyed::moved::{Selection, SlicedOutline};
use crate::monitor::contents::{Contents, FieldContent, SectionContent};
use crate::monitor::program::Program;
use crate::monitor::snapshot::{MONITOR, VERSION, split};
use crate::monitor::{Monitor, SavedMonitor};

/// Outcome of an edit for one property when a monitor resumes from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The property continues with its state.
    Continues,
    /// The property restarts with the next message.
    Restarts(RestartReason),
}

/// Reason why a property restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartReason {
    /// The snapshot has no property of this name.
    New,
    /// The meaning differs from that of the property of this name in the snapshot; or the property counts the messages
    /// of all topics, and these differ.
    Changed,
    /// It reads a chain that another restarted property reads.
    Chain,
    /// Its state has another form in the snapshot: it was evaluated together with properties that are gone or changed.
    Form,
}

impl fmt::Display for RestartReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RestartReason::New => "it is new",
            RestartReason::Changed => "its formula, or what that refers to, has changed",
            RestartReason::Chain => "a property that reads the same chain restarts",
            RestartReason::Form => "its state was kept together with that of properties that have changed",
        })
    }
}

/// For each field that a program reads of a topic: its origin in another program.
pub type FieldPlaces = Vec<Option<FieldOrigin>>;

/// Deserialised snapshot.
pub struct Snapshot {
    contents: Contents,
    saved: SavedMonitor,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("contents", &self.contents).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Reads a [snapshot](Monitor::snapshot) of any program of this release.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, truncated, or of another release.
    pub fn read(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
        let (_, state) = open_any(MONITOR, VERSION, bytes)?;
        let (saved, contents) = split(state).ok_or(SnapshotError::Altered)?;
        let contents: Contents = postcard::from_bytes(contents).map_err(|_| SnapshotError::Altered)?;
        if contents.release != env!("CARGO_PKG_VERSION") {
            return Err(SnapshotError::OtherProgram);
        }
        let saved: SavedMonitor = postcard::from_bytes(saved).map_err(|_| SnapshotError::Altered)?;
        Ok(Snapshot { contents, saved })
    }

    /// Names of the properties in the snapshot.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.contents.properties.iter().map(|property| &*property.name)
    }

    /// Names of the topics of its specification.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.contents.topics.iter().map(|name| &**name).take(self.contents.declared as usize)
    }

    /// For each topic of its specification: position of the topic in a program and, for each field that the program
    /// reads of it, the former position. Rearranges events that waited for the program of the snapshot.
    pub fn rearranged(&self, program: &Program) -> Vec<Option<(TopicId, FieldPlaces)>> {
        let own = Contents::new(program);
        let topics = self.contents.topics_in(&own);
        let of = |(topic, before): (&Option<TopicId>, &Vec<FieldContent>)| {
            let topic = (*topic)?;
            Some((topic, own.fields.get(topic.index())?.iter().map(|field| field.origin(before)).collect()))
        };
        topics.iter().zip(&self.contents.fields).take(self.contents.declared as usize).map(of).collect()
    }

    /// Generation later than all in the snapshot.
    pub fn next_generation(&self) -> u32 {
        let generations = self.contents.properties.iter().map(|property| property.generation);
        generations.max().map_or(0, |latest| latest.saturating_add(1))
    }

    /// Decides for each property of an edited specification whether it continues, and sets its generation accordingly.
    /// A program of the specification may still need another form: see [`Snapshot::lost`].
    pub fn assign(&self, spec: &mut Spec) -> Vec<EditOutcome> {
        let generation = self.next_generation();
        let mut outcomes = self.assign_from(spec, generation);
        Snapshot::restart_chains(spec, generation, &mut outcomes);
        outcomes
    }

    /// Like [`Snapshot::assign`], with a given generation for restarted properties and without regard to chains: see
    /// [`Snapshot::restart_chains`].
    pub fn assign_from(&self, spec: &mut Spec, generation: u32) -> Vec<EditOutcome> {
        let known = |name: &str| self.contents.properties.iter().find(|property| property.name == name);
        let mut outcomes = Vec::new();
        for i in 0..spec.properties.len() {
            let property = &spec.properties[i];
            let known = known(&property.name).map(|known| (known, spec.identity(property)));
            let (outcome, generation) = match known {
                Some((known, identity)) if known.identity == identity => {
                    (EditOutcome::Continues, known.generation)
                }
                Some(_) => (EditOutcome::Restarts(RestartReason::Changed), generation),
                None => (EditOutcome::Restarts(RestartReason::New), generation),
            };
            outcomes.push(outcome);
            spec.properties[i].generation = generation;
        }
        outcomes
    }

    /// Restarts properties, by their positions, whose states have another form.
    pub fn restart(spec: &mut Spec, properties: &[u32], generation: u32, outcomes: &mut [EditOutcome]) {
        Snapshot::begin(spec, properties.iter().copied(), RestartReason::Form, generation, outcomes);
    }

    fn begin(
        spec: &mut Spec,
        properties: impl Iterator<Item = u32>,
        why: RestartReason,
        generation: u32,
        outcomes: &mut [EditOutcome],
    ) {
        for property in properties {
            let at = property as usize;
            if let (Some(property), Some(outcome @ EditOutcome::Continues)) =
                (spec.properties.get_mut(at), outcomes.get_mut(at))
            {
                property.generation = generation;
                *outcome = EditOutcome::Restarts(why);
            }
        }
    }

    /// Restarts all properties that share a chain with a restarted property: a chain has one state for all its readers.
    pub fn restart_chains(spec: &mut Spec, generation: u32, outcomes: &mut [EditOutcome]) {
        if spec.chains.is_empty() {
            return;
        }
        let chains: Vec<Vec<ChainId>> =
            spec.properties.iter().map(|property| spec.chains_of(property)).collect();
        loop {
            let of_new = |chain: &ChainId| {
                chains
                    .iter()
                    .zip(&*outcomes)
                    .any(|(chains, outcome)| *outcome != EditOutcome::Continues && chains.contains(chain))
            };
            let is_drawn = |(at, outcome): (usize, &EditOutcome)| {
                (*outcome == EditOutcome::Continues && chains[at].iter().any(of_new)).then_some(at as u32)
            };
            let drawn: Vec<u32> = outcomes.iter().enumerate().filter_map(is_drawn).collect();
            if drawn.is_empty() {
                return;
            }
            Snapshot::begin(spec, drawn.into_iter(), RestartReason::Chain, generation, outcomes);
        }
    }

    /// Positions of the properties that should continue, but whose state is not in the snapshot in the form that the
    /// program needs.
    pub fn lost(&self, program: &Program) -> Vec<u32> {
        let own = Contents::new(program);
        let origins = self.contents.origins(&own);
        let mut lost: Vec<u32> = Vec::new();
        for section in &own.sections {
            let other = self.section_of(&section.outline, &origins);
            let linear = |other: &&SectionContent| match (&section.linear, &other.linear) {
                (None, None) => true,
                (Some(own), Some(other)) => {
                    own.fields.iter().all(|field| other.fields.contains(field))
                        && own.lines.iter().all(|line| other.lines.contains(line))
                }
                _ => false,
            };
            match other.filter(linear) {
                Some(other) => lost.extend(self.lost_of(program, &section.outline, &other.outline, &origins)),
                None => lost.extend(continuing(&section.outline, &origins)),
            }
        }
        for sliced in &own.sliced {
            match self.sliced_of(&sliced.outline, &origins) {
                Some((_, other)) => {
                    lost.extend(self.lost_of(program, &sliced.outline, &other.outline, &origins))
                }
                None => lost.extend(continuing(&sliced.outline, &origins)),
            }
        }
        if !self.saved.uncertainties.is_empty() {
            let plans = program.reaches().iter().map(|plan| plan.identity);
            let uncertainties = &self.saved.uncertainties;
            let is_other = |(at, reach): &(u32, u64)| {
                origins.get(*at).is_some_and(|of| !uncertainties.is_as(of, *reach))
            };
            lost.extend((0..).zip(plans).filter(is_other).map(|(at, _)| at));
        }
        lost.sort_unstable();
        lost.dedup();
        lost
    }

    /// Whether some property of a program has no origin in the snapshot.
    pub(super) fn is_new_to(&self, program: &Program) -> bool {
        self.contents.origins(&Contents::new(program)).0.contains(&None)
    }

    /// Lost properties of one section.
    fn lost_of(&self, program: &Program, own: &Outline, other: &Outline, origins: &Origins) -> Vec<u32> {
        let elsewhere = |property: &u32| {
            let of = origins.get(*property);
            let ahead = |own: &[(u32, u64)], others: &[(u32, u64)]| {
                let same = |(at, identity): &(u32, u64)| {
                    *at != *property || others.iter().any(|other| Some(other.0) == of && other.1 == *identity)
                };
                own.iter().all(same)
            };
            !other.all_properties().any(|other| Some(other) == of)
                || !ahead(&own.futures, &other.futures)
                || !ahead(&own.robust_futures, &other.robust_futures)
        };
        let all: Vec<u32> = continuing(own, origins).collect();
        let mut lost: Vec<u32> = all.iter().copied().filter(elsewhere).collect();
        if has_all(own, other) {
            return lost;
        }
        // The needs of a single property show when it is compiled alone.
        let needs_more = |property: &u32| {
            let mut alone = program.spec.clone();
            alone.properties = alone.properties.get(*property as usize).cloned().into_iter().collect();
            let Ok(alone) = Program::compile(&alone) else { return true };
            let contents = Contents::new(&alone);
            let outlines = contents.sections.iter().map(|section| &section.outline);
            let outlines = outlines.chain(contents.sliced.iter().map(|sliced| &sliced.outline));
            !outlines.into_iter().all(|own| has_all(own, other))
        };
        let before = lost.len();
        lost.extend(all.iter().copied().filter(needs_more));
        if lost.len() == before { all } else { lost }
    }

    /// Section of the snapshot that contains the properties of a section.
    fn section_of(&self, own: &Outline, origins: &Origins) -> Option<&SectionContent> {
        Some(&self.contents.sections[self.place_of(own, origins)?])
    }

    fn place_of(&self, own: &Outline, origins: &Origins) -> Option<usize> {
        let first = own.all_properties().find_map(|property| origins.get(property))?;
        self.contents
            .sections
            .iter()
            .position(|section| section.outline.all_properties().any(|own| own == first))
    }

    fn sliced_of(&self, own: &Outline, origins: &Origins) -> Option<(usize, &SlicedOutline)> {
        let first = own.all_properties().find_map(|property| origins.get(property))?;
        let mut all = self.contents.sliced.iter().enumerate();
        all.find(|(_, sliced)| sliced.outline.all_properties().any(|own| own == first))
    }
}

/// Properties of a section that are to continue.
fn continuing<'a>(own: &'a Outline, origins: &'a Origins) -> impl Iterator<Item = u32> + 'a {
    own.all_properties().filter(|property| origins.get(*property).is_some())
}

/// Whether another section keeps every state of this one.
fn has_all(own: &Outline, other: &Outline) -> bool {
    let has = |own: &Inventory, other: &Inventory| own.is_within(other);
    let has_eager = match (&own.eager, &other.eager) {
        (None, _) => true,
        (Some(own), Some(other)) => has(own, other),
        (Some(_), None) => false,
    };
    has_eager && has(&own.inventory, &other.inventory)
}

/// Monitor of an edited specification.
#[derive(Debug)]
pub struct Continued {
    /// The specification, with the generations of its properties.
    pub spec: Spec,
    /// The monitor, with its program.
    pub monitor: Monitor,
    /// Outcome of the edit for each property.
    pub outcomes: Vec<EditOutcome>,
}

impl Monitor {
    /// Resumes a monitor of an edited specification from a snapshot. Unchanged properties keep their states and report
    /// as without the edit. The others begin with the next event like a new monitor, except that the steps of their
    /// reports still count all events.
    ///
    /// # Errors
    /// [`CompileError`] when a property cannot be monitored, in the outer result; [`SnapshotError`] when the bytes are
    /// no snapshot, truncated, or of another release, in the inner one.
    pub fn continue_edited(
        spec: &Spec,
        bytes: &[u8],
    ) -> Result<Result<Continued, SnapshotError>, CompileError> {
        let snapshot = match Snapshot::read(bytes) {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(Err(error)),
        };
        let mut spec = spec.clone();
        let mut outcomes = snapshot.assign(&mut spec);
        loop {
            let program = Arc::new(Program::compile(&spec)?);
            let lost = snapshot.lost(&program);
            if lost.is_empty() {
                return Ok(Monitor::adopt(program, snapshot).map(|monitor| Continued {
                    spec,
                    monitor,
                    outcomes,
                }));
            }
            let generation = snapshot.next_generation();
            Snapshot::restart(&mut spec, &lost, generation, &mut outcomes);
            Snapshot::restart_chains(&mut spec, generation, &mut outcomes);
        }
    }

    /// Creates a monitor with the states of the snapshot that its properties continue. Properties without an origin,
    /// which have a [later generation](rondel_spec::Property::generation), begin with the next event. No other property
    /// may be [lost](Snapshot::lost).
    ///
    /// # Errors
    /// [`SnapshotError::Altered`] when the snapshot is damaged.
    pub fn adopt(program: Arc<Program>, snapshot: Snapshot) -> Result<Monitor, SnapshotError> {
        let own = Contents::new(&program);
        let origins = snapshot.contents.origins(&own);
        let mut to = Monitor::new(Arc::clone(&program)).saved();
        let mut parts: Vec<_> = Vec::new();
        let sections = own.sections.iter().map(|section| snapshot.place_of(&section.outline, &origins));
        parts.extend(sections);
        let sliced =
            own.sliced.iter().map(|sliced| snapshot.sliced_of(&sliced.outline, &origins).map(|(at, _)| at));
        let sliced: Vec<_> = sliced.collect();
        let Snapshot { contents, saved } = snapshot;
        for ((i, section), from) in own.sections.iter().enumerate().zip(parts) {
            let Some(from) = from else { continue };
            let (Some(other), Some(names)) = (saved.sections.get(from), contents.sections.get(from)) else {
                return Err(SnapshotError::Altered);
            };
            to.sections[i].take(&section.outline, other, &names.outline, &origins);
            let held = saved.linear.get(from).and_then(Option::as_ref);
            if let (Some(held), Some(other)) = (&mut to.linear[i], held)
                && let (Some(own), Some(names)) = (&section.linear, &names.linear)
            {
                held.take(own, other, names);
            }
        }
        let mut instances: Vec<_> = saved.instances.into_iter().map(Some).collect();
        for ((i, outline), from) in own.sliced.iter().enumerate().zip(sliced) {
            let Some(from) = from else { continue };
            let taken = instances.get_mut(from).and_then(Option::take);
            let (Some(other), Some(names)) = (taken, contents.sliced.get(from)) else {
                return Err(SnapshotError::Altered);
            };
            let is_same = |property: u32| origins.get(property) == Some(property);
            if outline == names && outline.outline.all_properties().all(is_same) {
                // With their numbers, which decide when instances are forgotten.
                to.instances[i] = other;
                continue;
            }
            let everything = Selection { with_template: true, is_meant: &|_| true };
            if !to.instances[i].take(outline, other, names, &origins, everything) {
                return Err(SnapshotError::Altered);
            }
            to.instances[i].schedule(outline);
        }
        for (i, identity) in own.chains.iter().enumerate() {
            let from = contents.chains.iter().position(|other| other == identity);
            let spec = &program.spec;
            let mut readers = (0..).zip(&spec.properties);
            let is_read = |(at, property): (u32, &rondel_spec::Property)| {
                origins.get(at).is_none() && spec.chains_of(property).contains(&ChainId(i as u32))
            };
            if let Some(other) =
                from.filter(|_| !readers.any(is_read)).and_then(|from| saved.chains.get(from))
            {
                to.chains[i] = other.clone();
            }
        }
        (to.position, to.time, to.beyond) = (saved.position, saved.time, saved.beyond);
        to.uncertainties = saved.uncertainties.moved(&program, &origins, &contents.topics_in(&own));
        Monitor::from_saved(program, to).ok_or(SnapshotError::Altered)
    }
}
