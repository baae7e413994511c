//! Temporal reach of properties, back and ahead: decides which verdicts depend on a span without messages.

use std::collections::{BTreeSet, HashMap};

use rondel_event::{Path, TopicId, Value};

use crate::spec::{Bounds, ChainId, Class, Expr, ExprId, Machine, MachineId, Property, Spec, TimeModel};

/// Temporal reach of the verdicts of a property.
///
/// Its parts are the steps by which a verdict becomes certain again after some messages were not seen. Each part is
/// certain beyond a coordinate, a time or a step; parts refer only to earlier parts, and the last is the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The parts; none if no message matters.
    pub parts: Vec<ReachPart>,
    /// Greatest distance from a verdict to a future event that it depends on, in nanoseconds or steps.
    pub ahead: u64,
    /// Number of events ahead that verdicts depend on: the depth of nested `next`.
    pub next: u64,
    /// Whether verdicts depend on future events.
    pub looks_ahead: bool,
}

/// A part of a [`Reach`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReachPart {
    /// Certain once all messages of these topics are seen again.
    Seen(Vec<TopicId>),
    /// Certain from the last of so many messages on, counted once the messages of all these topics are seen again.
    Messages {
        /// The topics; a message on any of them counts.
        topics: Vec<TopicId>,
        /// The path that a message must carry to count, if there is one.
        path: Option<Path>,
        /// Messages count after this part is certain.
        after: Option<u32>,
        /// The number of messages.
        count: u32,
    },
    /// Certain so long after another part, in nanoseconds or steps.
    Later(u32, u64),
    /// Never certain again.
    Never(u32),
    /// In dense time: where it begins, at the first message of any of these topics. Certain if it had begun before, or
    /// else from the first message on that is seen.
    Begun(Vec<TopicId>),
    /// Certain when all these parts are.
    All(Vec<u32>),
    /// Certain when one of these parts is.
    Either(Vec<u32>),
}

impl Reach {
    /// Returns whether nothing bounds how long verdicts stay uncertain.
    pub fn is_unbounded(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, ReachPart::Never(_)))
    }

    /// Returns the greatest sum of distances that verdicts look back, in nanoseconds or steps; `None` if it has no
    /// bound. Held values come on top.
    pub fn back(&self) -> Option<u64> {
        let mut backs: Vec<Option<u64>> = Vec::new();
        for part in &self.parts {
            let of = |part: &u32| backs.get(*part as usize).copied().unwrap_or(Some(0));
            backs.push(match part {
                ReachPart::Seen(_) | ReachPart::Begun(_) => Some(0),
                ReachPart::Messages { after, .. } => after.as_ref().map_or(Some(0), of),
                ReachPart::Later(part, by) => of(part).map(|back| back.saturating_add(*by)),
                ReachPart::Never(_) => None,
                ReachPart::All(parts) | ReachPart::Either(parts) => {
                    parts.iter().map(of).try_fold(0, |most, back| Some(most.max(back?)))
                }
            });
        }
        backs.last().copied().unwrap_or(Some(0))
    }

    /// Returns the topics that matter.
    pub fn topics(&self) -> BTreeSet<TopicId> {
        let of = |part: &ReachPart| match part {
            ReachPart::Seen(topics) | ReachPart::Messages { topics, .. } => topics.clone(),
            _ => Vec::new(),
        };
        self.parts.iter().flat_map(of).collect()
    }
}

impl Spec {
    /// Returns how far the verdicts of a property look back and ahead.
    ///
    /// ```
    /// let text = "topic a topic b property p = once[0, 2 s] (a.x > 3) and on(b) -> eventually[0, 1 s] on(a)";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let reach = spec.reach(&spec.properties[0]);
    /// assert_eq!((reach.back(), reach.ahead), (Some(2_000_000_000), 1_000_000_000));
    /// ```
    pub fn reach(&self, property: &Property) -> Reach {
        let slice = property.slice.and_then(|slice| self.slices.get(slice.0 as usize));
        let events = match slice {
            Some(_) => self.needs(property).topics,
            None => (0..self.topics.len() as u32).map(TopicId).collect(),
        };
        // In steps and points every message of every topic is an event.
        let all = if property.time == TimeModel::Dense { Vec::new() } else { Vec::clone(&events) };
        let mut finder = Finder {
            spec: self,
            model: property.time,
            all,
            events,
            base: None,
            parts: Vec::new(),
            places: HashMap::new(),
            known: HashMap::new(),
        };
        if let Some(until) = slice.and_then(|slice| slice.until) {
            // Whether an instance ended is certain before anything that it remembers.
            finder.base = finder.part(until).of;
            finder.known.clear();
        }
        let whole = finder.part(property.formula);
        let last = finder.all_of([whole.of, finder.base]);
        let mut parts = finder.parts;
        match last {
            None => parts.clear(),
            Some(last) if last as usize + 1 != parts.len() => parts.push(ReachPart::All(vec![last])),
            Some(_) => {}
        }
        Reach { parts, ahead: whole.ahead, next: whole.next, looks_ahead: whole.looks_ahead }
    }
}

/// Limit of the recursion into guards of machines.
const DEEPEST: u32 = 16;

/// Dependencies of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Index of its part; none for a constant.
    of: Option<u32>,
    ahead: u64,
    next: u64,
    looks_ahead: bool,
    /// The truth at events of topics that the node does not mention, if it is always the same.
    elsewhere: Option<bool>,
}

struct Finder<'a> {
    spec: &'a Spec,
    model: TimeModel,
    /// The topics whose messages count as events in every operator of the property.
    all: Vec<TopicId>,
    /// The topics at whose messages it is evaluated, in dense time too.
    events: Vec<TopicId>,
    /// Index of the part that all parts depend on, if any.
    base: Option<u32>,
    parts: Vec<ReachPart>,
    /// Index of each part.
    places: HashMap<ReachPart, u32>,
    known: HashMap<ExprId, Found>,
}

impl Finder<'_> {
    /// Finds the dependencies of a node: operands first, without recursion.
    fn part(&mut self, root: ExprId) -> Found {
        let mut open = vec![(root, false)];
        while let Some((id, is_ready)) = open.pop() {
            if self.known.contains_key(&id) {
                continue;
            }
            let Some(node) = self.spec.nodes.get(id.index()) else { continue };
            let machine = node.machine().and_then(|machine| self.spec.machines.get(machine.0 as usize));
            let conditions = machine.into_iter().flat_map(Machine::conditions);
            let operands: Vec<ExprId> = node.operands().chain(conditions).collect();
            if is_ready {
                // The value of a variable of the machine itself depends on what the machine depends on.
                let found: Vec<Found> =
                    operands.iter().filter_map(|id| self.known.get(id).copied()).collect();
                let found = self.node(node, &found);
                self.known.insert(id, found);
            } else {
                if machine.is_some() {
                    // Conditions may read variables of the same machine.
                    self.known.insert(id, Found::default());
                    let reached = operands.iter().map(|id| self.conditions(*id)).collect::<Vec<_>>();
                    let found = self.node(node, &reached);
                    self.known.insert(id, found);
                    continue;
                }
                open.push((id, true));
                open.extend(operands.into_iter().map(|id| (id, false)));
            }
        }
        self.known.get(&root).copied().unwrap_or_default()
    }

    /// Dependencies of a condition of a machine: all messages of its topics.
    fn conditions(&mut self, id: ExprId) -> Found {
        let topics = self.spec.topics_of(id);
        Found { of: self.seen(topics), ..Found::default() }
    }

    fn node(&mut self, node: &Expr, operands: &[Found]) -> Found {
        let join = |of: Option<u32>| Found {
            of,
            ahead: operands.iter().map(|found| found.ahead).max().unwrap_or(0),
            next: operands.iter().map(|found| found.next).max().unwrap_or(0),
            looks_ahead: operands.iter().any(|found| found.looks_ahead),
            elsewhere: None,
        };
        let both = self.all_of(operands.iter().map(|found| found.of));
        let elsewhere: Vec<Option<bool>> = operands.iter().map(|found| found.elsewhere).collect();
        match node {
            Expr::Literal(Value::Bool(value)) => Found { elsewhere: Some(*value), ..Found::default() },
            Expr::Age(topic) | Expr::Latency(topic) => join(self.messages(vec![*topic], None, None, 1)),
            Expr::Jitter(topic) => join(self.messages(vec![*topic], None, None, 3)),
            Expr::Chain(chain, _) => join(self.chain(*chain)),
            Expr::Compare(_, x, y) => {
                let aged = self.aged(*x, *y).or_else(|| self.aged(*y, *x));
                join(aged.or(both))
            }
            Expr::Not(_) => {
                let operand = elsewhere.first().copied().flatten();
                Found { elsewhere: operand.map(|truth| !truth), ..join(both) }
            }
            Expr::And(..) => Found { elsewhere: decided(&elsewhere, false), ..join(both) },
            Expr::Or(..) => Found { elsewhere: decided(&elsewhere, true), ..join(both) },
            Expr::Previously(_) => join(self.previously(both)),
            Expr::Prev(operand) => {
                let topics = self.spec.topics_of(*operand);
                if topics.is_empty() {
                    return join(both);
                }
                let after = self.with_events(both, true);
                join(self.messages(topics, None, after, 2))
            }
            Expr::Next(_) => {
                let found = join(self.with_events(both, true));
                Found { next: found.next + 1, looks_ahead: true, ..found }
            }
            Expr::Window { over, topics, .. } => {
                let seen = self.seen(topics.clone());
                let of = self.all_of([both, seen]);
                let of = self.with_events(of, self.model == TimeModel::Steps);
                join(of.map(|of| self.push(ReachPart::Later(of, *over))))
            }
            _ => self.node_of_class(node, &elsewhere, both, &join),
        }
    }

    /// Dependencies of a node by its class: `both` are those of its operands, `elsewhere` their truths, and `join` adds
    /// to a part what the operands look ahead.
    fn node_of_class(
        &mut self,
        node: &Expr,
        elsewhere: &[Option<bool>],
        both: Option<u32>,
        join: &dyn Fn(Option<u32>) -> Found,
    ) -> Found {
        let others = !node.temporal().is_some_and(|temporal| temporal.ignores(elsewhere));
        match node.class() {
            Class::Constant => Found::default(),
            Class::Held => {
                let path = node.field().map(|(_, path, _)| path.clone());
                join(self.messages(node.topics().to_vec(), path, None, 1))
            }
            Class::Event => Found { elsewhere: Some(false), ..join(self.seen(node.topics().to_vec())) },
            Class::Measure => {
                let seen = self.seen(node.topics().to_vec());
                let of = self.all_of([both, seen]);
                join(of.map(|of| self.push(ReachPart::Never(of))))
            }
            Class::Machine => Found { looks_ahead: false, ..join(self.machine(node, both)) },
            Class::Function => join(both),
            Class::Connective | Class::Quantifier => {
                Found { elsewhere: elsewhere.first().copied().flatten(), ..join(both) }
            }
            Class::Past => join(self.back(&node.bounds().unwrap_or(Bounds::ALL), both, others)),
            Class::Future => {
                let found = join(self.with_events(both, self.model == TimeModel::Steps || others));
                let upper = node.bounds().and_then(|bounds| bounds.upper);
                let ahead = found.ahead.saturating_add(upper.unwrap_or(u64::MAX));
                Found { ahead, looks_ahead: true, ..found }
            }
        }
    }

    fn chain(&mut self, chain: ChainId) -> Option<u32> {
        let chain = self.spec.chains.get(chain.0 as usize);
        let topics = chain.into_iter().flat_map(|chain| &chain.links).map(|(topic, _)| *topic).collect();
        let seen = self.seen(topics)?;
        Some(self.push(ReachPart::Never(seen)))
    }

    /// Adds the part of a node that reads a machine whose conditions depend on `of`.
    fn machine(&mut self, node: &Expr, of: Option<u32>) -> Option<u32> {
        let of = self.with_events(of, true);
        let moves = node.machine().is_some_and(|machine| self.moves_elsewhere(machine));
        let of = if moves { self.at_events(of) } else { of };
        let begun = self.begun();
        let of = self.all_of([of, begun])?;
        Some(self.push(ReachPart::Never(of)))
    }

    fn previously(&mut self, of: Option<u32>) -> Option<u32> {
        let of = self.with_events(of, true);
        let begun = self.begun();
        let of = self.all_of([of, begun])?;
        Some(match self.model {
            TimeModel::Points => {
                let topics = self.all.clone();
                self.push(ReachPart::Messages { topics, path: None, after: Some(of), count: 2 })
            }
            TimeModel::Steps | TimeModel::Dense => self.push(ReachPart::Later(of, 1)),
        })
    }

    /// A comparison of an age with a constant is certain with the next message, or once the constant has passed: what was
    /// missed is older by then.
    fn aged(&mut self, x: ExprId, y: ExprId) -> Option<u32> {
        let node = |id: ExprId| self.spec.nodes.get(id.index());
        let (Expr::Age(topic), Expr::Literal(Value::Duration(bound))) = (node(x)?, node(y)?) else {
            return None;
        };
        let bound = u64::try_from(*bound).ok().filter(|_| self.model != TimeModel::Steps)?;
        let topics = vec![*topic];
        let next = self.messages(topics.clone(), None, None, 1)?;
        let seen = self.seen(topics)?;
        let passed = self.push(ReachPart::Later(seen, bound));
        Some(self.push(ReachPart::Either(vec![next, passed])))
    }

    /// Adds the part of a past operator with these bounds. `others`: events of other topics matter.
    fn back(&mut self, bounds: &Bounds, of: Option<u32>, others: bool) -> Option<u32> {
        let counts = self.model == TimeModel::Steps && *bounds != Bounds::ALL;
        let of = self.with_events(of, others || counts);
        let begun = if others { self.begun() } else { None };
        let of = self.all_of([of, begun])?;
        Some(match bounds.upper {
            Some(upper) => self.push(ReachPart::Later(of, upper)),
            None => self.push(ReachPart::Never(of)),
        })
    }

    /// Adds, if wanted, that all messages matter that are events of the property.
    fn with_events(&mut self, of: Option<u32>, wanted: bool) -> Option<u32> {
        if !wanted || self.all.is_empty() {
            return of;
        }
        let seen = self.seen(self.all.clone());
        self.all_of([of, seen])
    }

    /// Where the property begins, in dense time: in the others every message that is missed matters itself.
    fn begun(&mut self) -> Option<u32> {
        let is_dense = self.model == TimeModel::Dense && !self.events.is_empty();
        is_dense.then(|| self.push(ReachPart::Begun(self.events.clone())))
    }

    /// Adds that the messages of all topics matter.
    fn at_events(&mut self, of: Option<u32>) -> Option<u32> {
        let seen = self.seen(self.events.clone());
        self.all_of([of, seen])
    }

    /// Whether a machine may move at a message of any topic: a guard can hold there.
    fn moves_elsewhere(&self, machine: MachineId) -> bool {
        let machine = self.spec.machines.get(machine.0 as usize);
        let mut guards = machine.into_iter().flat_map(|machine| &machine.transitions).filter_map(|t| t.guard);
        guards.any(|guard| !self.is_false_elsewhere(guard, DEEPEST))
    }

    /// Whether a node is false at messages of topics that it does not mention, as far as so many levels show.
    fn is_false_elsewhere(&self, id: ExprId, levels: u32) -> bool {
        let Some(levels) = levels.checked_sub(1) else { return false };
        match self.spec.nodes.get(id.index()) {
            Some(Expr::And(a, b)) => {
                self.is_false_elsewhere(*a, levels) || self.is_false_elsewhere(*b, levels)
            }
            Some(Expr::Or(a, b)) => {
                self.is_false_elsewhere(*a, levels) && self.is_false_elsewhere(*b, levels)
            }
            Some(Expr::Definitely(a)) => self.is_false_elsewhere(*a, levels),
            node => node.is_some_and(|node| node.class() == Class::Event),
        }
    }

    fn seen(&mut self, topics: Vec<TopicId>) -> Option<u32> {
        if topics.is_empty() {
            return None;
        }
        let seen = self.push(ReachPart::Seen(topics));
        self.all_of([Some(seen), self.base])
    }

    fn messages(
        &mut self,
        topics: Vec<TopicId>,
        path: Option<Path>,
        after: Option<u32>,
        count: u32,
    ) -> Option<u32> {
        let after = self.all_of([after, self.base]);
        Some(self.push(ReachPart::Messages { topics, path, after, count }))
    }

    fn all_of(&mut self, parts: impl IntoIterator<Item = Option<u32>>) -> Option<u32> {
        let parts: BTreeSet<u32> = parts.into_iter().flatten().collect();
        let parts: Vec<u32> = parts.into_iter().collect();
        match parts[..] {
            [] => None,
            [part] => Some(part),
            [part, last] if self.includes(last, part) => Some(last),
            _ => Some(self.push(ReachPart::All(parts))),
        }
    }

    fn includes(&self, whole: u32, part: u32) -> bool {
        matches!(self.parts.get(whole as usize), Some(ReachPart::All(parts)) if parts.contains(&part))
    }

    /// Adds a part, unless there is one like it.
    fn push(&mut self, part: ReachPart) -> u32 {
        let next = self.parts.len() as u32;
        let at = *self.places.entry(part.clone()).or_insert(next);
        if at == next {
            self.parts.push(part);
        }
        at
    }
}

/// The truth of a conjunction (`decides` false) or disjunction (`decides` true) of these.
fn decided(truths: &[Option<bool>], decides: bool) -> Option<bool> {
    if truths.contains(&Some(decides)) {
        return Some(decides);
    }
    truths.iter().all(|truth| *truth == Some(!decides)).then_some(!decides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(text: &str) -> Reach {
        let outcome = crate::parse(text);
        let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
        spec.reach(&spec.properties[0])
    }

    #[test]
    fn reach_of_properties() {
        let s = 1_000_000_000;
        let cases = [
            ("a.x > 3", Some(0), 0),
            ("once[0, 2 s] on(b) -> a.x > 3", Some(2 * s), 0),
            ("historically[0, 3 s] once[0, 2 s] on(b)", Some(5 * s), 0),
            ("on(a) -> eventually[0, 4 s] always[0, 1 s] a.x > 3", Some(0), 5 * s),
            ("once[0, 3] a.x > 3", Some(3), 0),
            ("a.x > 3 since on(b)", None, 0),
            ("count(a) over 3 s < 4", Some(3 * s), 0),
        ];
        for (formula, back, ahead) in cases {
            let reach = reach(&format!("topic a topic b property p = {formula}"));
            assert_eq!((reach.back(), reach.ahead), (back, ahead), "{formula}: {reach:?}");
        }
    }

    /// In dense time only the topics that a formula mentions matter, in steps all do that are counted.
    #[test]
    fn which_topics_matter() {
        let topics =
            |formula: &str| reach(&format!("topic a topic b topic c property p = {formula}")).topics().len();
        assert_eq!(topics("a.x > 3"), 1);
        assert_eq!(topics("once[0, 2 s] a.x > 3"), 1);
        assert_eq!(topics("once[0, 2] a.x > 3"), 3);
        assert_eq!(topics("on(a) -> once on(b)"), 2);
        assert_eq!(topics("1 < 2"), 0);
    }

    #[test]
    fn a_machine_and_a_chain_are_never_certain_again() {
        let machine = "topic a topic b machine m { initial u u -> v when on(a) v -> u when on(b) error v }";
        assert!(reach(machine).is_unbounded());
        assert_eq!(reach(machine).topics().len(), 2);
        // In dense time too, a machine moves at messages of any topic, unless its guards are false there.
        let dense = |guard: &str| {
            let clauses = format!("initial u u -> v when {guard} v -> u when on(a) after 2 s error v");
            reach(&format!("topic a topic b topic c machine m {{ {clauses} }}")).topics().len()
        };
        assert_eq!(dense("a.x > 3"), 3);
        assert_eq!(dense("on(a) and a.x > b.x"), 2);
        assert_eq!(dense("rising(b.ok)"), 3);
        let chain = "topic a { id: int } topic b { id: int } chain c = a -> b by id within 1 s
            property p = latency(c) < 3 s";
        let outcome = crate::parse(chain);
        let spec = outcome.spec.unwrap_or_default();
        assert!(spec.properties.iter().any(|property| spec.reach(property).is_unbounded()));
    }
}
