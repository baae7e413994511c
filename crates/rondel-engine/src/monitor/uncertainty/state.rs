//! Uncertainty of a property or an instance since messages were missed.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rondel_event::{Slot, TopicId};
use rondel_spec::{Reach, ReachPart, Spec, TimeModel};
use serde::{Deserialize, Serialize};

use super::fresh::FreshPlan;
use super::kleene::KleenePlan;
use crate::lower::identity::{hash, of_topic};
use crate::monitor::program::Program;

/// Coordinate that is never reached: uncertain until a message is received.
pub(super) const OPEN: i64 = i64::MAX;
/// Coordinate before everything: nothing is uncertain.
pub(super) const NEVER: i64 = i64::MIN;

/// Compiled dependencies of a property.
#[derive(Clone, Debug)]
pub(crate) struct ReachPlan {
    pub(super) reach: Reach,
    /// For each part: columns of which a message must carry one to count; empty if any message counts.
    pub(super) slots: Vec<Vec<Slot>>,
    pub(super) model: TimeModel,
    /// For each part: whether a held value enters into it.
    pub(super) holds: Vec<bool>,
    /// Slice of its instances, if it has any.
    pub(super) slice: Option<usize>,
    /// Whether verdicts come later than the times that they are about, because numbers are interpolated.
    pub(super) lags: bool,
    /// Maximum distance that verdicts look back, if bounded.
    pub(super) back: Option<u64>,
    /// Hash of the dependencies that the parts of a state belong to.
    pub(crate) identity: u64,
    /// Plan of evaluation with everything before unknown, made at the first request.
    pub(super) fresh: OnceLock<Option<Arc<FreshPlan>>>,
    /// Plan of evaluation with missed messages unknown, made at the first request.
    pub(super) kleene: OnceLock<Option<Arc<KleenePlan>>>,
}

impl ReachPlan {
    /// Plan for evaluating the property with everything before unknown, if possible.
    pub(super) fn fresh(&self, program: &Program, place: usize) -> Option<&FreshPlan> {
        let plan = || {
            let property = program.spec.properties.get(place)?;
            Some(Arc::new(FreshPlan::new(program, &program.spec, property)?))
        };
        self.fresh.get_or_init(plan).as_deref()
    }

    /// Plan for evaluating the property with missed messages unknown, if possible.
    pub(super) fn kleene(&self, program: &Program, place: usize) -> Option<&KleenePlan> {
        self.kleene.get_or_init(|| KleenePlan::new(program, place).map(Arc::new)).as_deref()
    }

    /// Hash of the dependencies that the parts of a state belong to; equal in two programs where the dependencies are.
    pub(super) fn identity_of(reach: &Reach, spec: &Spec) -> u64 {
        let of_topics =
            |topics: &[TopicId]| topics.iter().map(|topic| of_topic(spec, *topic)).collect::<BTreeSet<_>>();
        let parts = reach.parts.iter().map(|part| match part {
            ReachPart::Seen(topics) => hash((0, of_topics(topics))),
            ReachPart::Messages { topics, path, after, count } => {
                hash((1, of_topics(topics), path, after, count))
            }
            ReachPart::Later(part, by) => hash((2, part, by)),
            ReachPart::Never(part) => hash((3, part)),
            ReachPart::Begun(topics) => hash((4, of_topics(topics))),
            ReachPart::All(parts) => hash((5, parts)),
            ReachPart::Either(parts) => hash((6, parts)),
        });
        hash(parts.collect::<Vec<u64>>())
    }

    /// For each part of a reach: whether a held value enters into it, which messages change.
    pub(super) fn held(reach: &Reach) -> Vec<bool> {
        let mut held: Vec<bool> = Vec::with_capacity(reach.parts.len());
        for part in &reach.parts {
            let of = |part: &u32| held.get(*part as usize).copied().unwrap_or(false);
            let is_held = match part {
                ReachPart::Seen(_) | ReachPart::Begun(_) => false,
                ReachPart::Messages { .. } => true,
                ReachPart::Later(part, _) | ReachPart::Never(part) => of(part),
                ReachPart::All(parts) | ReachPart::Either(parts) => parts.iter().any(of),
            };
            held.push(is_held);
        }
        held
    }

    /// Whether each instance becomes certain by messages of its own.
    pub(super) fn by_key(&self) -> bool {
        let counts = |part: &ReachPart| matches!(part, ReachPart::Messages { .. } | ReachPart::Begun(_));
        self.slice.is_some() && (self.model == TimeModel::Steps || self.reach.parts.iter().any(counts))
    }

    /// Whether verdicts depend on messages of these topics. `has_begun`: the property began before.
    pub(super) fn reads(&self, topics: &[TopicId], has_begun: bool) -> bool {
        topics.iter().any(|topic| self.reads_topic(topic)) || !has_begun && self.begins_with(topics)
    }

    /// Whether a message of these topics may be the first one and the first one matters.
    fn begins_with(&self, topics: &[TopicId]) -> bool {
        self.reach.parts.iter().any(|part| match part {
            ReachPart::Begun(own) => own.iter().any(|topic| topics.contains(topic)),
            _ => false,
        })
    }

    fn reads_topic(&self, topic: &TopicId) -> bool {
        self.reach.parts.iter().any(|part| match part {
            ReachPart::Seen(own) | ReachPart::Messages { topics: own, .. } => own.contains(topic),
            _ => false,
        })
    }

    /// Time from which verdicts may depend on messages missed from `from` on.
    fn start(&self, from: i64) -> i64 {
        let Reach { ahead, next, looks_ahead, .. } = self.reach;
        // Verdicts about steps have no times, and those that lag or count future events have unknown ones.
        let unknown = self.model == TimeModel::Steps || self.lags || next > 0;
        // A verdict in dense time may be about an interval.
        if unknown || looks_ahead && self.model == TimeModel::Dense {
            return NEVER;
        }
        from.saturating_sub(i64::try_from(ahead).unwrap_or(i64::MAX))
    }
}

/// Condition under which messages of a topic are received again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Gate {
    /// Not yet.
    Open,
    /// With events after this time.
    After(i64),
    /// With the next event.
    Here,
    /// Already.
    Passed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TopicGate {
    topic: u32,
    gate: Gate,
    /// Last coordinate at which messages were missed.
    end: i64,
}

/// End of a span of missed messages, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Open,
    /// With the next event. Messages were missed up to this time.
    Here(i64),
    /// With events of this time.
    Before(i64),
    /// With events after this time.
    Through(i64),
    /// With events of the first time. Messages were missed up to the second one.
    Between(i64, i64),
}

impl End {
    fn gate(self, topic: u32, steps: bool, row: i64) -> TopicGate {
        let (gate, time) = match self {
            End::Open => (Gate::Open, OPEN),
            End::Here(time) => (Gate::Here, time),
            End::Before(time) => (Gate::After(time.saturating_sub(1)), time),
            End::Through(time) => (Gate::After(time), time),
            End::Between(seen, missed) => (Gate::After(seen.saturating_sub(1)), missed),
        };
        let end = match gate {
            _ if !steps => time,
            Gate::Here => row,
            _ => OPEN,
        };
        TopicGate { topic, gate, end }
    }
}

/// State of the uncertainty. Coordinates are nanoseconds, or in discrete time the number of events since the property
/// became uncertain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    gates: Vec<TopicGate>,
    /// For each part: last uncertain coordinate.
    ends: Vec<i64>,
    /// For each part: number of messages still needed.
    counts: Vec<u32>,
    /// Number of events.
    row: i64,
    /// Time from which verdicts are uncertain.
    start: i64,
    /// Number of events since everything was certain again.
    after: u64,
}

impl State {
    pub(super) fn new(plan: &ReachPlan) -> State {
        let parts = plan.reach.parts.len();
        State { ends: vec![NEVER; parts], counts: vec![0; parts], start: OPEN, ..State::default() }
    }

    pub(super) fn fits(&self, plan: &ReachPlan) -> bool {
        let parts = plan.reach.parts.len();
        (self.ends.len(), self.counts.len()) == (parts, parts)
    }

    /// Renumbers topics for another program.
    pub(super) fn rename(&mut self, topics: &[Option<TopicId>]) {
        self.gates.retain_mut(|gate| match topics.get(gate.topic as usize).copied().flatten() {
            Some(topic) => {
                gate.topic = topic.0;
                true
            }
            None => false,
        });
    }

    /// Whether messages are still missed, with no known end.
    pub(super) fn is_open(&self) -> bool {
        self.gates.iter().any(|gate| gate.gate == Gate::Open)
    }

    /// Whether all messages are received again from the last event on, which was at this time.
    pub(super) fn is_seen(&self, plan: &ReachPlan, time: i64) -> bool {
        let is_late = |gate: &TopicGate| plan.model == TimeModel::Steps || gate.end <= time;
        self.gates.iter().all(|gate| gate.gate == Gate::Passed && is_late(gate))
    }

    /// Last uncertain coordinate.
    pub(super) fn root(&self) -> i64 {
        self.ends.last().copied().unwrap_or(NEVER)
    }

    /// Records that messages of these topics were missed from this time on.
    pub(super) fn miss(
        &mut self,
        plan: &ReachPlan,
        topics: &[TopicId],
        from: i64,
        end: End,
        has_begun: bool,
    ) {
        self.start = self.start.min(plan.start(from));
        self.after = 0;
        // An unrelated topic does not keep the property uncertain.
        for topic in topics.iter().filter(|topic| plan.reads_topic(topic)) {
            let new = end.gate(topic.0, plan.model == TimeModel::Steps, self.row);
            match self.gates.iter_mut().find(|gate| gate.topic == topic.0) {
                None => self.gates.push(new),
                Some(gate) => gate.join(new),
            }
        }
        let before = self.ends.clone();
        for (i, part) in plan.reach.parts.iter().enumerate() {
            if let ReachPart::Begun(own) = part {
                if !has_begun && own.iter().any(|topic| topics.contains(topic)) {
                    self.ends[i] = OPEN;
                }
            } else if let ReachPart::Messages { topics: own, after, count, .. } = part {
                let raised = |part: &u32| self.ends[*part as usize] > before[*part as usize];
                if own.iter().any(|topic| topics.contains(topic)) || after.as_ref().is_some_and(raised) {
                    (self.ends[i], self.counts[i]) = (OPEN, *count);
                }
            } else {
                self.ends[i] = self.end_of(plan, i);
            }
        }
    }

    /// Ends the open spans of these topics.
    pub(super) fn see(&mut self, plan: &ReachPlan, topics: &[TopicId], end: End) {
        for gate in &mut self.gates {
            if gate.gate == Gate::Open && topics.contains(&TopicId(gate.topic)) {
                *gate = end.gate(gate.topic, plan.model == TimeModel::Steps, self.row);
            }
        }
        self.renew(plan);
    }

    /// Processes an event. `is_on`: whether it is on a topic; `carries`: whether it carries the columns of a part;
    /// `begins`: whether a property that has not begun begins with it.
    pub(super) fn event(
        &mut self,
        plan: &ReachPlan,
        time: i64,
        is_on: impl Fn(TopicId) -> bool,
        carries: impl Fn(usize) -> bool,
        begins: bool,
    ) {
        self.row += 1;
        let steps = plan.model == TimeModel::Steps;
        let at = if steps { self.row } else { time };
        for gate in &mut self.gates {
            let passes = match gate.gate {
                Gate::Open | Gate::Passed => false,
                Gate::After(end) => time > end,
                Gate::Here => true,
            };
            if passes {
                gate.gate = Gate::Passed;
                if steps {
                    gate.end = self.row - 1;
                }
            }
        }
        for (i, part) in plan.reach.parts.iter().enumerate() {
            if begins && matches!(part, ReachPart::Begun(_)) && self.ends[i] == OPEN {
                self.ends[i] = at - 1;
            }
            let ReachPart::Messages { topics, after, .. } = part else {
                self.ends[i] = self.end_of(plan, i);
                continue;
            };
            let is_closed = |gate: &TopicGate| {
                gate.gate != Gate::Passed && topics.iter().any(|topic| topic.0 == gate.topic)
            };
            if self.ends[i] == OPEN
                && topics.iter().any(|topic| is_on(*topic))
                && after.is_none_or(|part| self.ends[part as usize] < at)
                && !self.gates.iter().any(is_closed)
                && carries(i)
            {
                self.counts[i] = self.counts[i].saturating_sub(1);
                if self.counts[i] == 0 {
                    // A delayed verdict about this time may precede this event.
                    self.ends[i] = if plan.reach.looks_ahead { at } else { at - 1 };
                }
            }
        }
        self.after = if self.root() < at { self.after.saturating_add(1) } else { 0 };
    }

    fn renew(&mut self, plan: &ReachPlan) {
        for (i, part) in plan.reach.parts.iter().enumerate() {
            if !matches!(part, ReachPart::Messages { .. }) {
                self.ends[i] = self.end_of(plan, i);
            }
        }
    }

    fn end_of(&self, plan: &ReachPlan, index: usize) -> i64 {
        let Some(part) = plan.reach.parts.get(index) else { return NEVER };
        let is_held = |part: &u32| plan.holds.get(*part as usize).copied().unwrap_or(true);
        let of = |part: &u32| self.ends.get(*part as usize).copied().unwrap_or(NEVER);
        match part {
            ReachPart::Seen(topics) => {
                let of = |topic: &TopicId| self.gates.iter().find(|gate| gate.topic == topic.0);
                topics.iter().filter_map(of).map(|gate| gate.end).max().unwrap_or(NEVER)
            }
            ReachPart::Messages { .. } => NEVER,
            ReachPart::Begun(_) => self.ends.get(index).copied().unwrap_or(NEVER),
            ReachPart::Later(part, by) => match of(part) {
                NEVER => NEVER,
                // In dense time a value held until just before a time counts as of that time; an occurrence at an
                // instant does not.
                end => {
                    let margin = i64::from(plan.model != TimeModel::Steps && is_held(part));
                    end.saturating_add(i64::try_from(*by).unwrap_or(i64::MAX)).saturating_add(margin)
                }
            },
            ReachPart::Never(part) => {
                if of(part) > NEVER {
                    OPEN
                } else {
                    NEVER
                }
            }
            ReachPart::All(parts) => parts.iter().map(of).max().unwrap_or(NEVER),
            ReachPart::Either(parts) => parts.iter().map(of).min().unwrap_or(NEVER),
        }
    }

    /// Whether a verdict is uncertain that is about this time, or in discrete time about the step `back` events before
    /// the last.
    pub(super) fn is_uncertain(&self, plan: &ReachPlan, time: i64, back: u64) -> bool {
        let at = match plan.model {
            TimeModel::Steps => self.row.saturating_sub(i64::try_from(back).unwrap_or(i64::MAX)),
            TimeModel::Points | TimeModel::Dense => time,
        };
        at <= self.root() && time >= self.start
    }

    /// Times about which and at which, in dense time, a verdict is certain again by time alone. `None` if unknown yet.
    pub(super) fn release(&self, plan: &ReachPlan) -> Option<(i64, i64)> {
        let root = self.root();
        if plan.model != TimeModel::Dense || plan.lags || root == OPEN {
            return None;
        }
        let ahead = i64::try_from(plan.reach.ahead).unwrap_or(i64::MAX);
        let about = root.saturating_add(1);
        let decided = about.saturating_add(ahead);
        (decided < i64::MAX / 4).then_some((about, decided))
    }

    /// Time from which verdicts are uncertain in dense time, if not from the beginning.
    pub(super) fn begins(&self, plan: &ReachPlan) -> Option<i64> {
        let is_past = plan.model == TimeModel::Dense && !plan.lags && !plan.reach.looks_ahead;
        (is_past && self.start > NEVER && self.start <= self.root()).then_some(self.start)
    }

    /// Whether no future verdict can be uncertain.
    pub(super) fn is_over(&self, plan: &ReachPlan, now: i64) -> bool {
        let (root, Reach { ahead, next, looks_ahead, .. }) = (self.root(), &plan.reach);
        let at = if plan.model == TimeModel::Steps { self.row } else { now };
        let ahead = i64::try_from(*ahead).unwrap_or(i64::MAX);
        if !looks_ahead {
            return root < at;
        }
        root.saturating_add(ahead) < at && self.after > *next
    }

    /// Whether events alone cannot make the property certain: messages are still missed, or the reach is unbounded.
    pub(super) fn is_stuck(&self, plan: &ReachPlan) -> bool {
        let parts = plan.reach.parts.iter().zip(&self.ends);
        let never = |(part, end): (&ReachPart, &i64)| matches!(part, ReachPart::Never(_)) && *end == OPEN;
        parts.into_iter().any(never) || self.gates.iter().any(|gate| gate.gate == Gate::Open)
    }

    /// Time after which a new instance is certain, if there is one.
    pub(super) fn horizon(&self, plan: &ReachPlan) -> Option<i64> {
        let is_open = |gate: &TopicGate| gate.gate == Gate::Open;
        // An instance that began within the span may appear at any time.
        let is_begun = |(part, end): (&ReachPart, &i64)| matches!(part, ReachPart::Begun(_)) && *end == OPEN;
        if plan.model == TimeModel::Steps
            || self.gates.iter().any(is_open)
            || plan.reach.parts.iter().zip(&self.ends).any(is_begun)
        {
            return None;
        }
        let back = i64::try_from(plan.back?).unwrap_or(i64::MAX);
        let end = self.gates.iter().map(|gate| gate.end).max().unwrap_or(NEVER);
        Some(end.saturating_add(back))
    }
}

impl TopicGate {
    /// Merges a further span.
    fn join(&mut self, new: TopicGate) {
        self.end = self.end.max(new.end);
        self.gate = match (self.gate, new.gate) {
            (Gate::Open, _) | (_, Gate::Open) => Gate::Open,
            (Gate::After(a), Gate::After(b)) => Gate::After(a.max(b)),
            (Gate::After(a), _) => Gate::After(a),
            (_, new) => new,
        };
    }
}
