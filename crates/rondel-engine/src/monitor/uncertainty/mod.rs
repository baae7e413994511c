//! Verdicts that depend on a span in which messages were missed are inconclusive.
//!
//! The caller reports the topics and the span ([`Monitor::miss`]). From then on every verdict is checked before it is
//! reported: if its [reach](rondel_spec::Reach) meets the span, it is inconclusive. While a property is uncertain, the
//! monitor evaluates reports at every event internally, so that reported verdicts change where the uncertainty begins
//! and ends. Otherwise none of this runs.
//!
//! Held values are known again with the next messages that carry them. Bounded operators are certain again once their
//! bounds have passed. Instances of `for each` become certain one by one, through messages of their own.
//!
//! A final verdict from before the span stays ([`finals`]). After the span, a past formula is evaluated a second time
//! with everything before unknown ([`unknown`], [`fresh`]): a verdict on which both agree is certain. A machine becomes
//! certain at the event that leads from every state into the same one ([`machine`]).

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
use timed::TimedReport;

/// Maximum number of instances tracked individually per property; further ones stay inconclusive.
const KEYS: usize = 1 << 16;

/// The end of a span in which messages were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAgain {
    /// The span has not ended: see [`Monitor::see`].
    Open,
    /// The next event is received again. Messages were missed up to this time.
    Now(Timestamp),
    /// Messages of this time and later ones are received again.
    At(Timestamp),
    /// Messages after this time are received again.
    After(Timestamp),
    /// Messages from one time on are received, but others may be missing up to a later time.
    Since {
        /// Time from which messages are received.
        seen: Timestamp,
        /// Time up to which messages may be missing.
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

/// Number of inconclusive verdicts of a property that missed messages caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blind {
    /// Number of times that the property became inconclusive.
    pub times: u64,
    /// Number of withheld verdicts.
    pub verdicts: u64,
}

/// Missed messages that affect a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Position of the property.
    pub property: u32,
    /// Beginning of the span.
    pub from: UnseenFrom,
    /// Whether verdicts may depend on the messages. If not, they only count as events, where events are counted.
    pub is_read: bool,
}

/// Uncertainty of a property since messages were missed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Uncertainty {
    state: State,
    /// Hash of the reach that the parts of the state belong to; set in snapshots.
    reach: u64,
    /// Monitor with everything before unknown, once all messages are received again.
    fresh: Option<Fresh>,
    /// Monitor with missed messages unknown, if the state before the span is known.
    kleene: Option<Box<Kleene>>,
    /// Reported verdict of a property without instances.
    whole: Instance,
    /// Instances that differ from the property's state, by parameter.
    keys: BTreeMap<Vec<u64>, Instance>,
    /// Whether a verdict about a time after the span was checked.
    is_passed: bool,
}

/// Uncertainty and last verdict of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instance {
    /// `None` if the state is that of the property.
    state: Option<State>,
    /// Whether the last reported verdict was withheld.
    is_shown: bool,
    /// For the property itself: whether a verdict about an uncertain or later time was checked since messages were
    /// missed.
    has_begun: bool,
    /// Last verdict, reported or withheld.
    #[serde(with = "crate::ops::saved::verdict")]
    seen: Option<Verdict>,
}

/// Uncertainty of all properties.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Uncertainties {
    /// By property; empty while no message was ever missed.
    properties: Vec<Option<Box<Uncertainty>>>,
    blind: Vec<Blind>,
    /// Number of uncertain properties.
    active: usize,
    /// Number of events since the last sweep for ended instances.
    events: u32,
    /// Time of the last event, or later.
    last: i64,
    /// Earliest time at which a verdict may change by time alone, or an earlier one.
    due: Option<i64>,
    /// Verdicts of this call that changed by time alone.
    #[serde(skip)]
    timed_reports: Vec<TimedReport>,
    /// Properties that became uncertain since [`Monitor::take_uncertain`].
    #[serde(skip)]
    begun: Vec<u32>,
    /// Missed messages recorded by the last call.
    #[serde(skip)]
    pub(crate) missed: Vec<Missed>,
    pub(crate) finals: Finals,
}

impl Uncertainties {
    pub(crate) fn new(program: &Program) -> Uncertainties {
        Uncertainties { finals: Finals::new(&program.finality), ..Uncertainties::default() }
    }

    /// Whether no message was ever missed.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active > 0
    }

    pub(crate) fn fits(&self, program: &Program) -> bool {
        let plans = program.reaches();
        let fits = |(plan, uncertainty): (&ReachPlan, &Option<Box<Uncertainty>>)| {
            uncertainty.as_ref().is_none_or(|uncertainty| {
                uncertainty.state.fits(plan)
                    && uncertainty.keys.values().flat_map(|key| &key.state).all(|state| state.fits(plan))
            })
        };
        let is_whole = self.properties.is_empty()
            || self.properties.len() == plans.len()
                && self.blind.len() == plans.len()
                && self.active == self.properties.iter().flatten().count()
                && plans.iter().zip(&self.properties).all(fits);
        is_whole && self.finals.fits(&program.finality)
    }

    /// Whether verdicts at all events must be checked.
    fn needs_every(&self, program: &Program) -> bool {
        let is_stuck = |place: usize, plan: &ReachPlan, uncertainty: &Uncertainty| {
            uncertainty.whole.is_shown
                && uncertainty.state.is_stuck(plan)
                && (uncertainty.state.is_open() || plan.fresh(program, place).is_none())
        };
        let all = program.reaches().iter().zip(&self.properties).enumerate();
        let mut uncertainties =
            all.filter_map(|(place, (plan, uncertainty))| Some((place, plan, uncertainty.as_ref()?)));
        uncertainties
            .any(|(place, plan, uncertainty)| plan.slice.is_some() || !is_stuck(place, plan, uncertainty))
    }

    /// Serialises the nested monitors.
    pub(crate) fn save(&mut self, program: &Program) {
        for (uncertainty, plan) in self.properties.iter_mut().zip(program.reaches()) {
            uncertainty.iter_mut().for_each(|uncertainty| uncertainty.reach = plan.identity);
        }
        for uncertainty in self.properties.iter_mut().flatten() {
            uncertainty.fresh.iter_mut().for_each(Fresh::save);
            uncertainty.kleene.iter_mut().for_each(|kleene| kleene.save());
        }
    }

    /// Restores the nested monitors. Returns whether they belong to the program.
    pub(crate) fn restore(&mut self, program: &Program) -> bool {
        let mut all = true;
        for (place, (plan, uncertainty)) in program.reaches().iter().zip(&mut self.properties).enumerate() {
            if let Some(fresh) = uncertainty.as_mut().and_then(|uncertainty| uncertainty.fresh.as_mut()) {
                all &= plan.fresh(program, place).is_some_and(|plan| fresh.restore(plan));
            }
            if let Some(kleene) = uncertainty.as_mut().and_then(|uncertainty| uncertainty.kleene.as_mut()) {
                all &= plan.kleene(program, place).is_some_and(|plan| kleene.restore(plan));
            }
        }
        all
    }

    /// Transfers the uncertainty to another program. `origins` maps its properties to those of this one, `topics` the
    /// topics of this program to those of the other.
    pub(crate) fn moved(
        mut self,
        program: &Program,
        origins: &Origins,
        topics: &[Option<TopicId>],
    ) -> Uncertainties {
        let mut moved = Uncertainties { events: self.events, last: self.last, ..Uncertainties::new(program) };
        moved.finals.take(&program.finality, &self.finals, origins);
        if self.properties.is_empty() {
            return moved;
        }
        for (place, plan) in program.reaches().iter().enumerate() {
            let from = origins.get(place as u32).map(|from| from as usize);
            moved.blind.push(from.and_then(|from| self.blind.get(from).copied()).unwrap_or_default());
            let uncertainty = from.and_then(|from| self.properties.get_mut(from)?.take());
            moved.properties.push(uncertainty.map(|mut uncertainty| {
                let states = uncertainty.keys.values_mut().filter_map(|key| key.state.as_mut());
                for state in states.chain([&mut uncertainty.state]) {
                    state.rename(topics);
                }
                // Nested monitors without a counterpart begin with the next event.
                let fresh_plan = plan.fresh(program, place);
                uncertainty.fresh = uncertainty.fresh.take().and_then(|fresh| fresh.moved(fresh_plan?));
                let kleene_plan = plan.kleene(program, place);
                let kleene = uncertainty.kleene.take();
                uncertainty.kleene =
                    kleene.and_then(|kleene| kleene.moved(kleene_plan?, topics)).map(Box::new);
                uncertainty
            }));
        }
        moved.active = moved.properties.iter().flatten().count();
        moved.find_timed_change(program);
        moved
    }

    /// Takes the uncertain instances out, by property.
    pub(crate) fn take_keys(&mut self) -> Vec<(u32, BTreeMap<Vec<u64>, Instance>)> {
        let uncertainties = (0..).zip(&mut self.properties);
        uncertainties
            .filter_map(|(property, uncertainty)| {
                Some((property, std::mem::take(&mut uncertainty.as_mut()?.keys)))
            })
            .collect()
    }

    /// Puts instances back that [`Uncertainties::take_keys`] took.
    pub(crate) fn add_keys(&mut self, keys: Vec<(u32, BTreeMap<Vec<u64>, Instance>)>) {
        for (property, keys) in keys {
            if let Some(Some(uncertainty)) = self.properties.get_mut(property as usize) {
                uncertainty.keys.extend(keys);
            }
        }
    }

    /// Properties whose uncertainty differs from that of another monitor of the program, apart from instances.
    pub(crate) fn differing(&self, other: &Uncertainties) -> Vec<u32> {
        let bytes = |own: &Uncertainties, at: usize| {
            postcard::to_stdvec(&own.properties.get(at).and_then(Option::as_ref)).unwrap_or_default()
        };
        let count = self.properties.len().max(other.properties.len());
        (0..count).filter(|&at| bytes(self, at) != bytes(other, at)).map(|at| at as u32).collect()
    }

    /// Joins the state outside of properties with that of another monitor of the program.
    pub(crate) fn join(&mut self, other: &Uncertainties) {
        self.last = self.last.max(other.last);
        self.due = [self.due, other.due].into_iter().flatten().min();
        self.finals.count = self.finals.count.max(other.finals.count);
    }

    /// Makes a property certain.
    pub(crate) fn clear(&mut self, property: u32) {
        let uncertainty = self.properties.get_mut(property as usize).and_then(Option::take);
        // Parts are checked only when they are joined.
        self.active = self.active.saturating_sub(usize::from(uncertainty.is_some()));
    }

    /// Whether the uncertainty of a property has the form of the plan with this identity.
    pub(crate) fn is_as(&self, property: u32, reach: u64) -> bool {
        let uncertainty = self.properties.get(property as usize).and_then(Option::as_ref);
        uncertainty.is_none_or(|uncertainty| uncertainty.reach == reach)
    }

    /// Adds the number of instances of each property whose verdict is withheld.
    pub(crate) fn add_waiting(&self, waiting: &mut [u64]) {
        for (waiting, uncertainty) in waiting.iter_mut().zip(&self.properties) {
            let keys = uncertainty.iter().flat_map(|uncertainty| uncertainty.keys.values());
            *waiting += keys.filter(|key| key.is_shown).count() as u64;
        }
    }
}

impl Program {
    /// Reach of the verdicts of each property, computed at the first call.
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
    /// Records that messages of these topics were missed from a time on. Verdicts that depend on them are inconclusive
    /// from here on; earlier verdicts stay, and so do [final](rondel_spec::Finality) verdicts from before that time.
    /// Reports at once the properties in dense time that become inconclusive, since these have a verdict at every time.
    pub fn miss(&mut self, topics: &[TopicId], from: Timestamp, until: SeenAgain) -> &[Report] {
        self.miss_for(topics, (UnseenFrom::Time(from), until), |_| true)
    }

    /// Sets the number of messages so far, including those of the next [`Monitor::step`]. [`UnseenFrom::Count`] refers
    /// to it.
    #[inline]
    pub fn count(&mut self, messages: u64) {
        self.uncertainties.finals.count = messages;
    }

    /// Number of messages last [set](Monitor::count).
    pub fn counted(&self) -> u64 {
        self.uncertainties.finals.count
    }

    /// Like [`Monitor::miss`], for a span whose beginning may be given as a number of messages.
    pub fn miss_from(&mut self, topics: &[TopicId], from: UnseenFrom, until: SeenAgain) -> &[Report] {
        self.miss_for(topics, (from, until), |_| true)
    }

    /// Like [`Monitor::miss_from`], for the properties that `is_meant` selects by position.
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
        let uncertainties = &mut self.uncertainties;
        if uncertainties.properties.is_empty() {
            uncertainties.properties.resize(plans.len(), None);
            uncertainties.blind.resize(plans.len(), Blind::default());
        }
        uncertainties.last = uncertainties.last.max(self.time);
        let seen = BeforeSpan {
            program: &program,
            sections: &self.sections,
            time: self.time,
            position: self.position,
        };
        let all = (0..).zip(plans).zip(&mut uncertainties.properties);
        let time = match from {
            UnseenFrom::Time(time) => time.as_nanos(),
            UnseenFrom::Count(_) => state::NEVER,
        };
        for ((property, plan), uncertainty) in all.filter(|((at, _), _)| is_meant(*at)) {
            let has_begun = has_begun && plan.slice.is_none() && !unbegun.contains(&property);
            let is_read = plan.reads(topics, has_begun) && !uncertainties.finals.outlives(property, from);
            if is_read || plan.model != TimeModel::Dense {
                uncertainties.missed.push(Missed { property, from, is_read });
            }
            if !is_read {
                continue;
            }
            let is_new = uncertainty.is_none();
            if is_new {
                uncertainties.active += 1;
                uncertainties.begun.push(property);
            }
            let uncertainty = uncertainty.get_or_insert_with(|| {
                let state = State::new(plan);
                let (fresh, kleene, keys) = (None, None, BTreeMap::new());
                let whole = Instance { seen: seen.verdict(property), ..Instance::default() };
                Box::new(Uncertainty { state, reach: 0, fresh, kleene, whole, keys, is_passed: false })
            });
            uncertainty.fresh = None;
            let states = uncertainty.keys.values_mut().filter_map(|key| key.state.as_mut());
            for state in states.chain([&mut uncertainty.state]) {
                state.miss(plan, topics, time, until.end(), has_begun);
            }
            seen.miss(uncertainty, property, is_new, topics, time, until.end());
            uncertainty.is_passed = false;
            // Verdicts up to now have been withheld already, if they had to be.
            uncertainty.whole.has_begun =
                uncertainty.state.begins(plan).is_some_and(|begins| begins <= self.time);
        }
        self.withhold_now(TimePoints::Dense, self.time());
        self.uncertainties.begin_exact(&program, &mut self.reports, self.time, self.position);
        self.uncertainties.find_timed_change(&program);
        self.choose_reports();
        &self.reports
    }

    /// Ends the open spans of these topics: their messages are received again.
    pub fn see(&mut self, topics: &[TopicId], until: SeenAgain) {
        let topics = &*self.program.with_elements(topics);
        let plans = self.program.reaches();
        for (plan, uncertainty) in plans.iter().zip(&mut self.uncertainties.properties) {
            let Some(uncertainty) = uncertainty else { continue };
            let states = uncertainty.keys.values_mut().filter_map(|key| key.state.as_mut());
            for state in states.chain([&mut uncertainty.state]) {
                state.see(plan, topics, until.end());
            }
            uncertainty.kleene.iter_mut().for_each(|kleene| kleene.see(topics, until.end()));
        }
        self.uncertainties.find_timed_change(&self.program);
        self.choose_reports();
    }

    /// Properties that are uncertain now because messages were missed.
    pub fn uncertain(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.uncertainties.properties)
            .filter(|(_, uncertainty)| uncertainty.is_some())
            .map(|(property, _)| property)
    }

    /// Properties affected by the last [`Monitor::miss`]; empty after other calls.
    pub fn missed(&self) -> &[Missed] {
        &self.uncertainties.missed
    }

    /// Takes the properties that became uncertain since the last call.
    pub fn take_uncertain(&mut self) -> Vec<u32> {
        let mut begun = std::mem::take(&mut self.uncertainties.begun);
        begun.sort_unstable();
        begun.dedup();
        begun
    }

    /// Whether [`Monitor::take_uncertain`] returns any.
    #[inline]
    pub fn has_uncertain(&self) -> bool {
        !self.uncertainties.begun.is_empty()
    }

    /// Whether verdicts on a property may be withheld because messages were missed.
    #[inline]
    pub fn is_uncertain(&self, property: u32) -> bool {
        self.uncertainties.properties.get(property as usize).is_some_and(Option::is_some)
    }

    /// Number of inconclusive verdicts of a property that missed messages caused.
    pub fn blind(&self, property: u32) -> Blind {
        self.uncertainties.blind.get(property as usize).copied().unwrap_or_default()
    }

    /// Whether a property reaches back without bound and has no verdict since messages were missed: its last verdict is
    /// older.
    pub fn is_unjudged(&self, property: u32) -> bool {
        let uncertainty = self.uncertainties.properties.get(property as usize).and_then(Option::as_ref);
        let is_old = |uncertainty: &Uncertainty| {
            !uncertainty.is_passed && !uncertainty.whole.is_shown && uncertainty.keys.is_empty()
        };
        uncertainty.is_some_and(|uncertainty| is_old(uncertainty)) && self.stays_uncertain(property)
    }

    /// Whether a property stays uncertain for ever, because its reach is unbounded.
    pub fn stays_uncertain(&self, property: u32) -> bool {
        let plan = self.program.reaches().get(property as usize);
        let uncertainty = self.uncertainties.properties.get(property as usize).and_then(Option::as_ref);
        plan.zip(uncertainty).is_some_and(|(plan, _)| plan.reach.is_unbounded())
    }

    /// Reports the properties that are evaluated at events and are uncertain now: a message came that cannot be read, and no
    /// event may follow at which that is reported. `latest` is the time of the last event, unknown where nothing measures time.
    pub fn withhold_until_event(&mut self, latest: Timestamp) -> &[Report] {
        self.begin_call();
        self.withhold_now(TimePoints::Events, latest.max(self.time()));
        self.choose_reports();
        &self.reports
    }

    /// Reports the properties with these time points that are uncertain now. In dense time there is a verdict at every time.
    fn withhold_now(&mut self, time_points: TimePoints, now: Timestamp) {
        if self.position() == 0 {
            return;
        }
        let now = now.as_nanos();
        let program = std::sync::Arc::clone(&self.program);
        let plans = program.reaches();
        for (section, serial) in program.sections.iter().zip(&self.sections) {
            if section.time_points != time_points || section.linear.is_some() {
                continue;
            }
            for (formula, &property) in section.properties.iter().enumerate() {
                let (Some(plan), Some(Some(uncertainty))) =
                    (plans.get(property as usize), self.uncertainties.properties.get_mut(property as usize))
                else {
                    continue;
                };
                let is_known = serial.last_verdict(formula) != Verdict::Inconclusive;
                if uncertainty.whole.is_shown
                    || !is_known
                    || uncertainty.kleene.is_some()
                    || !uncertainty.state.is_uncertain(plan, now, 0)
                {
                    continue;
                }
                (uncertainty.whole.is_shown, uncertainty.whole.has_begun) = (true, true);
                let blind = &mut self.uncertainties.blind[property as usize];
                (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
                let step = self.position.saturating_sub(1);
                // The verdict at the time itself was reported already.
                let after = Timestamp::from_nanos(now.saturating_add(1));
                let report = Report::at_event(Verdict::Inconclusive, step, after);
                let withheld = Withheld::FromNow;
                self.reports.push(Report { property, row: None, at_event: false, withheld, ..report });
            }
        }
        // In the order of one section, however many there are.
        let is_point =
            |property: u32| plans.get(property as usize).is_some_and(|plan| plan.model == TimeModel::Points);
        self.reports.sort_unstable_by_key(|report| (is_point(report.property), report.property));
    }

    /// Records verdicts that are final from here on.
    #[cold]
    pub(crate) fn note_finals(&mut self) {
        let Monitor { uncertainties, reports, program, .. } = self;
        let is_certain = |report: &&Report| {
            !uncertainties.properties.get(report.property as usize).is_some_and(Option::is_some)
        };
        for report in reports.iter().filter(|report| report.changed).filter(is_certain) {
            uncertainties.finals.note(&program.finality, report);
        }
    }

    /// Decides whether verdicts at all events are evaluated, for the caller or for the uncertainty.
    pub(crate) fn choose_reports(&mut self) {
        self.every = self.every_requested
            || self.uncertainties.is_active() && self.uncertainties.needs_every(&self.program);
    }
}
