//! Continuing from the snapshot of an edited specification: every property that is still the same keeps its state.

use std::fmt;
use std::sync::Arc;

use rondel_event::snapshot::open_any;
use rondel_event::{SnapshotError, TopicId};
use rondel_spec::{ChainId, Spec};

use crate::CompileError;
use crate::exec::inventory::{Inventory, Origins, Outline};
use crate::keyed::moved::SlicedOutline;
use crate::monitor::contents::{Contents, SectionContent};
use crate::monitor::program::Program;
use crate::monitor::snapshot::{MONITOR, VERSION, split};
use crate::monitor::{Monitor, SavedMonitor};

/// What becomes of a property where a monitor continues from the snapshot of an edited specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It continues with its state.
    Continues,
    /// It begins with the next message, for this reason.
    Anew(Anew),
}

/// Why a property begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anew {
    /// The snapshot has no property of this name.
    New,
    /// It means something else than the property of this name in the snapshot; or it counts the messages of all topics,
    /// and these are others.
    Changed,
    /// It reads a chain that a property reads which begins anew.
    Chain,
    /// In the snapshot its state has another form: it was evaluated together with properties that are gone or changed.
    Form,
}

impl fmt::Display for Anew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Anew::New => "it is new",
            Anew::Changed => "its formula, or what that refers to, has changed",
            Anew::Chain => "a property that reads the same chain begins anew",
            Anew::Form => "its state was kept together with that of properties that have changed",
        })
    }
}

/// For each field that a program reads of a topic where another program had it, and whether it was read in the same way.
pub type FieldPlaces = Vec<Option<(usize, bool)>>;

/// A snapshot that was read.
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
    /// Reads a [snapshot](Monitor::snapshot), of whatever program of this release.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, not whole, or of another release.
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

    /// The names of the properties in the snapshot.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.contents.properties.iter().map(|property| &*property.name)
    }

    /// The names of the topics of its specification.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.contents.topics.iter().map(|name| &**name)
    }

    /// For each topic of its specification where it is in a program, and for each field that the program reads of it
    /// where that was, and whether it was read in the same way: if not, only whether something came there is known. So
    /// events are rearranged that waited for the program of the snapshot.
    pub fn rearranged(&self, program: &Program) -> Vec<Option<(TopicId, FieldPlaces)>> {
        let own = Contents::new(program);
        let topics = self.contents.topics_in(&own);
        let of = |(topic, before): (&Option<TopicId>, &Vec<[u64; 2]>)| {
            let topic = (*topic)?;
            let place = |field: &[u64; 2]| {
                let same = before.iter().position(|other| other[0] == field[0]).map(|at| (at, true));
                same.or_else(|| Some((before.iter().position(|other| other[1] == field[1])?, false)))
            };
            Some((topic, own.fields.get(topic.index())?.iter().map(place).collect()))
        };
        topics.iter().zip(&self.contents.fields).map(of).collect()
    }

    /// A generation that is later than all in the snapshot.
    pub fn next_generation(&self) -> u32 {
        let generations = self.contents.properties.iter().map(|property| property.generation);
        generations.max().map_or(0, |latest| latest.saturating_add(1))
    }

    /// Says of the properties of an edited specification which of them continue, and sets their generations so. A program
    /// of the specification may still have another form: see [`Snapshot::lost`].
    pub fn assign(&self, spec: &mut Spec) -> Vec<Fate> {
        let generation = self.next_generation();
        let mut fates = self.assign_from(spec, generation);
        Snapshot::begin_chains_anew(spec, generation, &mut fates);
        fates
    }

    /// The same, where properties that begin anew are of this generation. Chains are not heeded: see
    /// [`Snapshot::begin_chains_anew`].
    pub fn assign_from(&self, spec: &mut Spec, generation: u32) -> Vec<Fate> {
        let known = |name: &str| self.contents.properties.iter().find(|property| property.name == name);
        let mut fates = Vec::new();
        for i in 0..spec.properties.len() {
            let property = &spec.properties[i];
            let known = known(&property.name).map(|known| (known, spec.identity(property)));
            let (fate, generation) = match known {
                Some((known, identity)) if known.identity == identity => (Fate::Continues, known.generation),
                Some(_) => (Fate::Anew(Anew::Changed), generation),
                None => (Fate::Anew(Anew::New), generation),
            };
            fates.push(fate);
            spec.properties[i].generation = generation;
        }
        fates
    }

    /// Lets properties, by their positions, begin anew, as their states were found to have another form.
    pub fn begin_anew(spec: &mut Spec, properties: &[u32], generation: u32, fates: &mut [Fate]) {
        Snapshot::begin(spec, properties.iter().copied(), (Anew::Form, generation), fates);
    }

    fn begin(
        spec: &mut Spec,
        properties: impl Iterator<Item = u32>,
        (why, generation): (Anew, u32),
        fates: &mut [Fate],
    ) {
        for property in properties {
            let at = property as usize;
            if let (Some(property), Some(fate @ Fate::Continues)) =
                (spec.properties.get_mut(at), fates.get_mut(at))
            {
                property.generation = generation;
                *fate = Fate::Anew(why);
            }
        }
    }

    /// Lets all properties of a program begin anew that read a chain which a property reads that does: it is one for all.
    pub fn begin_chains_anew(spec: &mut Spec, generation: u32, fates: &mut [Fate]) {
        if spec.chains.is_empty() {
            return;
        }
        let chains: Vec<Vec<ChainId>> =
            spec.properties.iter().map(|property| spec.chains_of(property)).collect();
        loop {
            let of_new = |chain: &ChainId| {
                chains
                    .iter()
                    .zip(&*fates)
                    .any(|(chains, fate)| *fate != Fate::Continues && chains.contains(chain))
            };
            let is_drawn = |(at, fate): (usize, &Fate)| {
                (*fate == Fate::Continues && chains[at].iter().any(of_new)).then_some(at as u32)
            };
            let drawn: Vec<u32> = fates.iter().enumerate().filter_map(is_drawn).collect();
            if drawn.is_empty() {
                return;
            }
            Snapshot::begin(spec, drawn.into_iter(), (Anew::Chain, generation), fates);
        }
    }

    /// The properties of a program, by their positions, that should continue, but whose state is not in the snapshot in
    /// the form that the program needs.
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
        if !self.saved.doubts.is_empty() {
            let plans = program.reaches().iter().map(|plan| plan.identity);
            let doubts = &self.saved.doubts;
            let is_other =
                |(at, reach): &(u32, u64)| origins.get(*at).is_some_and(|of| !doubts.is_as(of, *reach));
            lost.extend((0..).zip(plans).filter(is_other).map(|(at, _)| at));
        }
        lost.sort_unstable();
        lost.dedup();
        lost
    }

    /// Whether some property of a program has no origin in it.
    pub(super) fn is_new_to(&self, program: &Program) -> bool {
        self.contents.origins(&Contents::new(program)).0.contains(&None)
    }

    /// The same of a section, given where its properties were.
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
        // Of each property alone it can be seen what it needs.
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

    /// The section in which the properties of a section were.
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

/// The properties of a section that are to continue.
fn continuing<'a>(own: &'a Outline, origins: &'a Origins) -> impl Iterator<Item = u32> + 'a {
    own.all_properties().filter(|property| origins.get(*property).is_some())
}

/// Whether another section keeps all that this one does.
fn has_all(own: &Outline, other: &Outline) -> bool {
    let has = |own: &Inventory, other: &Inventory| own.is_within(other);
    let has_eager = match (&own.eager, &other.eager) {
        (None, _) => true,
        (Some(own), Some(other)) => has(own, other),
        (Some(_), None) => false,
    };
    has_eager && has(&own.inventory, &other.inventory)
}

/// A monitor of an edited specification.
#[derive(Debug)]
pub struct Continued {
    /// The specification, with the generations of its properties.
    pub spec: Spec,
    /// The monitor, with its program.
    pub monitor: Monitor,
    /// What becomes of each property.
    pub fates: Vec<Fate>,
}

impl Monitor {
    /// A monitor of an edited specification that continues from a snapshot: the properties that mean the same as in the
    /// snapshot keep their states, and say what they would say without the edit. The others begin with the next event,
    /// as if the monitor did; while the steps of their reports go on to count all events.
    ///
    /// # Errors
    /// [`CompileError`] when a property cannot be monitored, in the outer result; [`SnapshotError`] when the bytes are no
    /// snapshot, not whole, or of another release, in the inner one.
    pub fn continue_edited(
        spec: &Spec,
        bytes: &[u8],
    ) -> Result<Result<Continued, SnapshotError>, CompileError> {
        let snapshot = match Snapshot::read(bytes) {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(Err(error)),
        };
        let mut spec = spec.clone();
        let mut fates = snapshot.assign(&mut spec);
        loop {
            let program = Arc::new(Program::compile(&spec)?);
            let lost = snapshot.lost(&program);
            if lost.is_empty() {
                return Ok(Monitor::adopt(program, snapshot).map(|monitor| Continued {
                    spec,
                    monitor,
                    fates,
                }));
            }
            let generation = snapshot.next_generation();
            Snapshot::begin_anew(&mut spec, &lost, generation, &mut fates);
            Snapshot::begin_chains_anew(&mut spec, generation, &mut fates);
        }
    }

    /// A monitor that takes over from a snapshot what its properties continue. Those without an origin there, of a
    /// [later generation](rondel_spec::Property::generation), begin with the next event. None of the others may be
    /// [lost](Snapshot::lost).
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
            if !to.instances[i].take(outline, other, names, &origins, (true, &|_| true)) {
                return Err(SnapshotError::Altered);
            }
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
        to.doubts = saved.doubts.moved(&program, &origins, &contents.topics_in(&own));
        Monitor::from_saved(program, to).ok_or(SnapshotError::Altered)
    }
}
