//! Verdicts that depend on a span in which messages were not seen are inconclusive.
//!
//! The caller tells which topics were not seen, and when ([`Monitor::miss`]). From then on every verdict is looked at
//! before it is reported: if what it [reaches](rondel_spec::Reach) meets the span, it is inconclusive. While there is
//! such a property, the monitor reports the verdict at every event to itself, so that what is reported changes where
//! the uncertainty begins and ends. Without one, none of this is looked at.
//!
//! Held values are known again with the next messages that carry them; what is bounded is certain again when its
//! bounds have passed. Instances of `for each` become certain one by one, by messages of their own.
//!
//! A final verdict from before the span stays ([`finals`]). After the span, a formula of the past is evaluated a second
//! time with everything before unknown ([`unknown`], [`fresh`]): a verdict that this gives as well is certain. So is a
//! machine, from the event on that leads from every state into the same one ([`machine`]).

mod exact;
mod filter;
mod finals;
mod fresh;
mod kleene;
mod machine;
mod partial;
mod state;
mod timed;
mod unknown;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_spec::{ReachPart, TimeModel};
use serde::{Deserialize, Serialize};

use crate::exec::inventory::Origins;
use crate::exec::report::{Report, Withheld};
use crate::exec::section::TimePoints;
use crate::monitor::Monitor;
use crate::monitor::program::Program;
use exact::BeforeSpan;
pub use finals::UnseenFrom;
pub(crate) use finals::{Finals, finality};
use fresh::Fresh;
use kleene::Kleene;
pub(crate) use state::ReachPlan;
use state::{End, State};
use timed::Turned;

/// So many instances of a property are looked at one by one; further ones stay inconclusive.
const KEYS: usize = 1 << 16;

/// The end of a span in which messages were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAgain {
    /// It has not ended: see [`Monitor::see`].
    Open,
    /// The next event is seen again. Messages were missed up to this time.
    Now(Timestamp),
    /// Messages of this time and later ones are seen again.
    At(Timestamp),
    /// Messages after this time are seen again.
    After(Timestamp),
    /// The messages that come from a time on are seen, but others may be missing up to a later time.
    Since {
        /// The first of these times.
        seen: Timestamp,
        /// The second one.
        missed: Timestamp,
    },
}

impl SeenAgain {
    fn end(self) -> End {
        match self {
            SeenAgain::Open => End::Open,
            SeenAgain::Now(time) => End::Here(time.as_nanos()),
            SeenAgain::At(time) => End::Before(time.as_nanos()),
            SeenAgain::After(time) => End::Through(time.as_nanos()),
            SeenAgain::Since { seen, missed } => End::Between(seen.as_nanos(), missed.as_nanos()),
        }
    }
}

/// How often a property was inconclusive because messages were not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blind {
    /// How often it became so.
    pub times: u64,
    /// The verdicts that were withheld.
    pub verdicts: u64,
}

/// That messages were not seen which matter to a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The property, by its position.
    pub property: u32,
    /// Since when.
    pub from: UnseenFrom,
    /// Whether its verdicts may depend on them. If not, they are still events, which counts where events are counted.
    pub is_read: bool,
}

/// What is uncertain of a property.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Doubt {
    state: State,
    /// What the parts of its state are, in a snapshot.
    reach: u64,
    /// Evaluates the property without what was before, once all messages are seen again.
    fresh: Option<Fresh>,
    /// Evaluates the property with what was missed unknown, where the state before it is known.
    kleene: Option<Box<Kleene>>,
    /// What was reported of it, if it has no instances.
    whole: Instance,
    /// The instances that differ, by their keys.
    keys: BTreeMap<Vec<u64>, Instance>,
    /// Whether a verdict about a later time was looked at.
    is_passed: bool,
}

/// What is uncertain of an instance, and what was reported of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instance {
    /// None if it is that of the property.
    state: Option<State>,
    /// Whether the last verdict that was reported was withheld.
    is_shown: bool,
    /// Of the property: whether a verdict about a time at which it is uncertain, or about a later one, was looked at since
    /// messages were missed.
    has_begun: bool,
    /// The last verdict, whether it was reported or withheld.
    #[serde(with = "crate::ops::saved::verdict")]
    seen: Option<Verdict>,
}

/// What is uncertain of all properties.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Doubts {
    /// By property; empty as long as nothing was ever missed.
    properties: Vec<Option<Box<Doubt>>>,
    blind: Vec<Blind>,
    /// The number of properties that are uncertain.
    active: usize,
    /// The number of events since instances that are gone were looked for.
    events: u32,
    /// The time of the last event, or later.
    last: i64,
    /// The time at which a verdict may turn by itself, or an earlier one.
    due: Option<i64>,
    /// Verdicts of this call that turned by themselves.
    #[serde(skip)]
    turned: Vec<Turned>,
    /// The properties that became uncertain since that was last asked for.
    #[serde(skip)]
    begun: Vec<u32>,
    /// What the last call noted as missed.
    #[serde(skip)]
    pub(crate) missed: Vec<Missed>,
    pub(crate) finals: Finals,
}

impl Doubts {
    pub(crate) fn new(program: &Program) -> Doubts {
        Doubts { finals: Finals::new(&program.finality), ..Doubts::default() }
    }

    /// Whether nothing was ever missed.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active > 0
    }

    pub(crate) fn fits(&self, program: &Program) -> bool {
        let plans = program.reaches();
        let fits = |(plan, doubt): (&ReachPlan, &Option<Box<Doubt>>)| {
            doubt.as_ref().is_none_or(|doubt| {
                doubt.state.fits(plan)
                    && doubt.keys.values().flat_map(|key| &key.state).all(|state| state.fits(plan))
            })
        };
        let is_whole = self.properties.is_empty()
            || self.properties.len() == plans.len()
                && self.blind.len() == plans.len()
                && self.active == self.properties.iter().flatten().count()
                && plans.iter().zip(&self.properties).all(fits);
        is_whole && self.finals.fits(&program.finality)
    }

    /// Whether the verdicts at all events must be looked at.
    fn needs_every(&self, program: &Program) -> bool {
        let is_stuck = |place: usize, plan: &ReachPlan, doubt: &Doubt| {
            doubt.whole.is_shown
                && doubt.state.is_stuck(plan)
                && (doubt.state.is_open() || plan.fresh(program, place).is_none())
        };
        let all = program.reaches().iter().zip(&self.properties).enumerate();
        let mut doubts = all.filter_map(|(place, (plan, doubt))| Some((place, plan, doubt.as_ref()?)));
        doubts.any(|(place, plan, doubt)| plan.slice.is_some() || !is_stuck(place, plan, doubt))
    }

    /// Writes down the monitors that it has.
    pub(crate) fn save(&mut self, program: &Program) {
        for (doubt, plan) in self.properties.iter_mut().zip(program.reaches()) {
            doubt.iter_mut().for_each(|doubt| doubt.reach = plan.identity);
        }
        for doubt in self.properties.iter_mut().flatten() {
            doubt.fresh.iter_mut().for_each(Fresh::save);
            doubt.kleene.iter_mut().for_each(|kleene| kleene.save());
        }
    }

    /// Reads them back. Returns whether they belong to the program.
    pub(crate) fn restore(&mut self, program: &Program) -> bool {
        let mut all = true;
        for (place, (plan, doubt)) in program.reaches().iter().zip(&mut self.properties).enumerate() {
            if let Some(fresh) = doubt.as_mut().and_then(|doubt| doubt.fresh.as_mut()) {
                all &= plan.fresh(program, place).is_some_and(|plan| fresh.restore(plan));
            }
            if let Some(kleene) = doubt.as_mut().and_then(|doubt| doubt.kleene.as_mut()) {
                all &= plan.kleene(program, place).is_some_and(|plan| kleene.restore(plan));
            }
        }
        all
    }

    /// The same for the monitor of another program, given for each of its properties where it was, and for each topic
    /// where it is there.
    pub(crate) fn moved(
        mut self,
        program: &Program,
        origins: &Origins,
        topics: &[Option<TopicId>],
    ) -> Doubts {
        let mut moved = Doubts { events: self.events, last: self.last, ..Doubts::new(program) };
        moved.finals.take(&program.finality, &self.finals, origins);
        if self.properties.is_empty() {
            return moved;
        }
        for (place, plan) in program.reaches().iter().enumerate() {
            let from = origins.get(place as u32).map(|from| from as usize);
            moved.blind.push(from.and_then(|from| self.blind.get(from).copied()).unwrap_or_default());
            let doubt = from.and_then(|from| self.properties.get_mut(from)?.take());
            moved.properties.push(doubt.map(|mut doubt| {
                let states = doubt.keys.values_mut().filter_map(|key| key.state.as_mut());
                for state in states.chain([&mut doubt.state]) {
                    state.rename(topics);
                }
                // What cannot be taken over begins with the next event.
                let fresh_plan = plan.fresh(program, place);
                doubt.fresh = doubt.fresh.take().and_then(|fresh| fresh.moved(fresh_plan?));
                let kleene_plan = plan.kleene(program, place);
                let kleene = doubt.kleene.take();
                doubt.kleene = kleene.and_then(|kleene| kleene.moved(kleene_plan?, topics)).map(Box::new);
                doubt
            }));
        }
        moved.active = moved.properties.iter().flatten().count();
        moved.find_turn(program);
        moved
    }

    /// Takes out what is uncertain of single instances, by property.
    pub(crate) fn take_keys(&mut self) -> Vec<(u32, BTreeMap<Vec<u64>, Instance>)> {
        let doubts = (0..).zip(&mut self.properties);
        doubts
            .filter_map(|(property, doubt)| Some((property, std::mem::take(&mut doubt.as_mut()?.keys))))
            .collect()
    }

    /// Puts that back.
    pub(crate) fn add_keys(&mut self, keys: Vec<(u32, BTreeMap<Vec<u64>, Instance>)>) {
        for (property, keys) in keys {
            if let Some(Some(doubt)) = self.properties.get_mut(property as usize) {
                doubt.keys.extend(keys);
            }
        }
    }

    /// Whether a doubt about a property, by its position, has the form that this plan needs.
    pub(crate) fn is_as(&self, property: u32, reach: u64) -> bool {
        let doubt = self.properties.get(property as usize).and_then(Option::as_ref);
        doubt.is_none_or(|doubt| doubt.reach == reach)
    }

    /// How many instances of each property show a verdict that was withheld.
    pub(crate) fn add_waiting(&self, waiting: &mut [u64]) {
        for (waiting, doubt) in waiting.iter_mut().zip(&self.properties) {
            let keys = doubt.iter().flat_map(|doubt| doubt.keys.values());
            *waiting += keys.filter(|key| key.is_shown).count() as u64;
        }
    }
}

impl Program {
    /// How far the verdicts of each property reach. Found when it is first asked for.
    pub(crate) fn reaches(&self) -> &[ReachPlan] {
        self.reaches.get_or_init(|| {
            let spec = &self.spec;
            let plan = |(i, property): (u32, &rondel_spec::Property)| {
                let reach = spec.reach(property);
                let slots = reach.parts.iter().map(|part| match part {
                    ReachPart::Messages { topics, path: Some(path), .. } => {
                        let fields = topics.iter().filter_map(|topic| self.projections().get(topic.index()));
                        let fields = fields.flat_map(|projection| &projection.fields);
                        fields.filter(|field| field.path == *path).map(|field| field.slot).collect()
                    }
                    _ => Vec::new(),
                });
                let is_its =
                    |sliced: &crate::keyed::plan::Sliced| sliced.section.all_properties().any(|own| own == i);
                ReachPlan {
                    slots: slots.collect(),
                    holds: ReachPlan::held(&reach),
                    identity: ReachPlan::identity_of(&reach, spec),
                    back: reach.back(),
                    model: property.time,
                    slice: self.sliced.iter().position(is_its),
                    lags: property.linear,
                    fresh: OnceLock::new(),
                    kleene: OnceLock::new(),
                    reach,
                }
            };
            (0..).zip(&spec.properties).map(plan).collect()
        })
    }
}

impl Monitor {
    /// Notes that messages of these topics were not seen from a time on. Verdicts that depend on them are inconclusive
    /// from here on; those given before stay, and so do [final](rondel_spec::Finality) verdicts from before that time.
    /// Reports the properties whose verdict is inconclusive at once: in dense time there is a verdict at every time.
    pub fn miss(&mut self, topics: &[TopicId], from: Timestamp, until: SeenAgain) -> &[Report] {
        self.miss_for(topics, (UnseenFrom::Time(from), until), |_| true)
    }

    /// Sets the number of messages so far, those of the next [`Monitor::step`] included: with it
    /// [`UnseenFrom::Count`] says where a span begins.
    #[inline]
    pub fn count(&mut self, messages: u64) {
        self.doubts.finals.count = messages;
    }

    /// The number of messages that was [set](Monitor::count) last.
    pub fn counted(&self) -> u64 {
        self.doubts.finals.count
    }

    /// As [`Monitor::miss`], where the time at which the span begins may be unknown.
    pub fn miss_from(&mut self, topics: &[TopicId], from: UnseenFrom, until: SeenAgain) -> &[Report] {
        self.miss_for(topics, (from, until), |_| true)
    }

    /// The same for some properties, by their positions.
    pub fn miss_for(
        &mut self,
        topics: &[TopicId],
        (from, until): (UnseenFrom, SeenAgain),
        is_meant: impl Fn(u32) -> bool,
    ) -> &[Report] {
        self.begin_call();
        let has_begun = self.position() > 0;
        let program = std::sync::Arc::clone(&self.program);
        let topics = &*program.with_elements(topics);
        let unbegun: Vec<u32> = if has_begun { self.unbegun() } else { Vec::new() };
        let plans = program.reaches();
        let doubts = &mut self.doubts;
        if doubts.properties.is_empty() {
            doubts.properties.resize(plans.len(), None);
            doubts.blind.resize(plans.len(), Blind::default());
        }
        doubts.last = doubts.last.max(self.time);
        let seen = BeforeSpan {
            program: &program,
            sections: &self.sections,
            time: self.time,
            position: self.position,
        };
        let all = (0..).zip(plans).zip(&mut doubts.properties);
        let time = match from {
            UnseenFrom::Time(time) => time.as_nanos(),
            UnseenFrom::Count(_) => state::NEVER,
        };
        for ((property, plan), doubt) in all.filter(|((at, _), _)| is_meant(*at)) {
            let has_begun = has_begun && plan.slice.is_none() && !unbegun.contains(&property);
            let is_read = plan.reads(topics, has_begun) && !doubts.finals.outlives(property, from);
            if is_read || plan.model != TimeModel::Dense {
                doubts.missed.push(Missed { property, from, is_read });
            }
            if !is_read {
                continue;
            }
            let is_new = doubt.is_none();
            if is_new {
                doubts.active += 1;
                doubts.begun.push(property);
            }
            let doubt = doubt.get_or_insert_with(|| {
                let state = State::new(plan);
                let (fresh, kleene, keys) = (None, None, BTreeMap::new());
                let whole = Instance { seen: seen.verdict(property), ..Instance::default() };
                Box::new(Doubt { state, reach: 0, fresh, kleene, whole, keys, is_passed: false })
            });
            doubt.fresh = None;
            let states = doubt.keys.values_mut().filter_map(|key| key.state.as_mut());
            for state in states.chain([&mut doubt.state]) {
                state.miss(plan, topics, time, until.end(), has_begun);
            }
            seen.miss(doubt, (property, is_new), topics, (time, until.end()));
            doubt.is_passed = false;
            // By now it has been withheld, if at all.
            doubt.whole.has_begun = doubt.state.begins(plan).is_some_and(|begins| begins <= self.time);
        }
        self.withhold_now();
        self.doubts.begin_exact(&program, &mut self.reports, (self.time, self.position));
        self.doubts.find_turn(&program);
        self.choose_reports();
        &self.reports
    }

    /// Notes that messages of these topics are seen again, of which that was not known.
    pub fn see(&mut self, topics: &[TopicId], until: SeenAgain) {
        let topics = &*self.program.with_elements(topics);
        let plans = self.program.reaches();
        for (plan, doubt) in plans.iter().zip(&mut self.doubts.properties) {
            let Some(doubt) = doubt else { continue };
            let states = doubt.keys.values_mut().filter_map(|key| key.state.as_mut());
            for state in states.chain([&mut doubt.state]) {
                state.see(plan, topics, until.end());
            }
            doubt.kleene.iter_mut().for_each(|kleene| kleene.see(topics, until.end()));
        }
        self.doubts.find_turn(&self.program);
        self.choose_reports();
    }

    /// The properties that are uncertain now since messages were not seen.
    pub fn uncertain(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.doubts.properties).filter(|(_, doubt)| doubt.is_some()).map(|(property, _)| property)
    }

    /// What the last call, if it was [`Monitor::miss`], noted as missed.
    pub fn missed(&self) -> &[Missed] {
        &self.doubts.missed
    }

    /// Takes the properties that have become uncertain since the last call.
    pub fn take_uncertain(&mut self) -> Vec<u32> {
        let mut begun = std::mem::take(&mut self.doubts.begun);
        begun.sort_unstable();
        begun.dedup();
        begun
    }

    /// Whether [`Monitor::take_uncertain`] returns any.
    #[inline]
    pub fn has_uncertain(&self) -> bool {
        !self.doubts.begun.is_empty()
    }

    /// How often a property, by its position, was inconclusive because messages were not seen.
    pub fn blind(&self, property: u32) -> Blind {
        self.doubts.blind.get(property as usize).copied().unwrap_or_default()
    }

    /// Whether a property, by its position, is about all messages and was not judged since some were missed: its last
    /// verdict is older.
    pub fn is_unjudged(&self, property: u32) -> bool {
        let doubt = self.doubts.properties.get(property as usize).and_then(Option::as_ref);
        let is_old = |doubt: &Doubt| !doubt.is_passed && !doubt.whole.is_shown && doubt.keys.is_empty();
        doubt.is_some_and(|doubt| is_old(doubt)) && self.stays_uncertain(property)
    }

    /// Whether a property, by its position, stays uncertain for ever, as nothing bounds how far it looks back.
    pub fn stays_uncertain(&self, property: u32) -> bool {
        let plan = self.program.reaches().get(property as usize);
        let doubt = self.doubts.properties.get(property as usize).and_then(Option::as_ref);
        plan.zip(doubt).is_some_and(|(plan, _)| plan.reach.is_unbounded())
    }

    /// Reports the properties in dense time that are uncertain now: there is a verdict at every time.
    fn withhold_now(&mut self) {
        if self.position() == 0 {
            return;
        }
        let now = self.time().as_nanos();
        let program = std::sync::Arc::clone(&self.program);
        let plans = program.reaches();
        for (section, serial) in program.sections.iter().zip(&self.sections) {
            if section.time_points != TimePoints::Dense || section.linear.is_some() {
                continue;
            }
            for (formula, &property) in section.properties.iter().enumerate() {
                let (Some(plan), Some(Some(doubt))) =
                    (plans.get(property as usize), self.doubts.properties.get_mut(property as usize))
                else {
                    continue;
                };
                let is_known = serial.last_verdict(formula) != Verdict::Inconclusive;
                if doubt.whole.is_shown
                    || !is_known
                    || doubt.kleene.is_some()
                    || !doubt.state.is_doubtful(plan, now, 0)
                {
                    continue;
                }
                (doubt.whole.is_shown, doubt.whole.has_begun) = (true, true);
                let blind = &mut self.doubts.blind[property as usize];
                (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
                let step = self.position.saturating_sub(1);
                // Of the time itself a verdict was given already.
                let after = Timestamp::from_nanos(now.saturating_add(1));
                let report = Report::at_event(Verdict::Inconclusive, step, after);
                let withheld = Withheld::FromNow;
                self.reports.push(Report { property, row: None, at_event: false, withheld, ..report });
            }
        }
    }

    /// Takes note of verdicts that are final from here on.
    #[cold]
    pub(crate) fn note_finals(&mut self) {
        let Monitor { doubts, reports, program, .. } = self;
        let is_certain =
            |report: &&Report| !doubts.properties.get(report.property as usize).is_some_and(Option::is_some);
        for report in reports.iter().filter(|report| report.changed).filter(is_certain) {
            doubts.finals.note(&program.finality, report);
        }
    }

    /// Whether the verdicts at all events are to be reported, also to itself.
    pub(crate) fn choose_reports(&mut self) {
        self.every = self.asked || self.doubts.is_active() && self.doubts.needs_every(&self.program);
    }
}
