//! Rewrites a past formula in dense time so that parts of a trace can be unknown.
//!
//! The rewritten formula reads an additional topic for each topic of the original, with boolean fields that have no
//! value while something is unknown, and are false otherwise:
//!
//! - *lost*: messages of the topic may be missing now;
//! - *held*: the last value of its fields may have been missed;
//! - *counted*: fewer messages than an operator such as `prev` looks back at have come since.
//!
//! Atoms are combined with these fields, so that they are unknown where missing messages may change them. A bound that
//! missing messages can only lower or raise (`age(a) <= d`, `count(a) over d >= 3`) becomes unknown only if they may
//! reach it. Kleene's logic does the rest.

use std::collections::{BTreeMap, HashMap};

use rondel_event::{Comparison, Path, TopicId, Value, ValueType};
use rondel_spec::{Aggregate, Bounds, Class, Expr, ExprId, Property, Spec, TimeModel, Topic};

use super::unknown::{below, is_operator, is_plain};

/// Path of the field that is unknown while messages may be missing.
pub(super) fn lost_path() -> Path {
    Path::keys(["lost"])
}

/// Path of the field that is unknown until the first message may count again.
pub(super) fn held_path() -> Path {
    Path::keys(["held"])
}

/// Path of the field of a counter, by its number.
pub(super) fn counter_path(number: usize) -> Path {
    Path::keys([format!("counted{number}").as_str()])
}

/// Counts messages after a span.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counter {
    /// The topics of the messages.
    pub(super) topics: Vec<TopicId>,
    /// The number of messages until the value is known.
    pub(super) count: u32,
}

/// A rewritten formula.
pub(super) struct Partial {
    /// Two properties: the formula, and one that is true once nothing is unknown.
    pub(super) spec: Spec,
    /// First additional topic: one for each topic of the original, and one that nothing reads.
    pub(super) first: TopicId,
    pub(super) counters: Vec<Counter>,
    /// The sum of all bounds, in nanoseconds.
    pub(super) back: i64,
}

/// Rewrites the formula of a property. `None` unless it is a past formula in dense time without instances, chains,
/// machines and quantifiers.
pub(super) fn rewrite(spec: &Spec, property: &Property) -> Option<Partial> {
    if property.slice.is_some() || property.linear || property.time != TimeModel::Dense {
        return None;
    }
    let count = spec.topics.len() as u32;
    let mut topics = spec.topics.clone();
    // By the names of the topics, which stay the same where a specification is edited.
    let names = spec.topics.iter().map(|topic| format!("unseen {}", topic.name));
    topics.extend(names.chain(["unseen".to_owned()]).map(|name| Topic {
        address: name.clone(),
        name,
        type_name: None,
        schema: None,
    }));
    let mut rewriter = PartialRewriter {
        spec,
        count,
        out: Spec { topics, ..Spec::default() },
        formulas: HashMap::new(),
        plain: HashMap::new(),
        masks: HashMap::new(),
        counters: Vec::new(),
        known: Vec::new(),
        back: 0,
    };
    let formula = rewriter.formula(property.formula)?;
    let settled = rewriter.fully_known();
    let PartialRewriter { mut out, counters, back, .. } = rewriter;
    for (name, formula) in [("formula", formula), ("settled", settled)] {
        out.properties.push(Property { time: TimeModel::Dense, ..Property::new(name, formula) });
    }
    let back = i64::try_from(back).ok().filter(|back| *back < i64::MAX / 8)?;
    Some(Partial { spec: out, first: TopicId(count), counters, back })
}

/// Source of an atom's uncertainty.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Mask {
    Lost(TopicId),
    Held(TopicId),
    /// A counter, by its number, and one of its topics.
    Counted(usize, TopicId),
    /// Messages of a topic may be missing within this duration.
    Recently(TopicId, u64),
}

struct PartialRewriter<'a> {
    spec: &'a Spec,
    /// The number of topics of the original.
    count: u32,
    out: Spec,
    /// Rewritten nodes: as formulas that may be unknown, and as plain copies.
    formulas: HashMap<ExprId, ExprId>,
    plain: HashMap<ExprId, ExprId>,
    masks: HashMap<Mask, ExprId>,
    counters: Vec<Counter>,
    /// The formulas that must be known.
    known: Vec<ExprId>,
    back: u64,
}

impl PartialRewriter<'_> {
    fn add(&mut self, node: Expr) -> ExprId {
        self.out.nodes.push(node);
        ExprId(self.out.nodes.len() as u32 - 1)
    }

    fn formula(&mut self, root: ExprId) -> Option<ExprId> {
        let nodes = below(self.spec, root)?;
        // The nodes that are parts of formulas and not of atoms.
        let mut is_part = vec![false; root.index() + 1];
        is_part[root.index()] = true;
        for id in nodes.iter().rev() {
            if is_part[id.index()] && is_operator(self.spec, *id) {
                self.spec.nodes[id.index()].operands().for_each(|operand| is_part[operand.index()] = true);
            }
        }
        for id in nodes {
            if is_part[id.index()] {
                let new = self.part(id)?;
                self.formulas.insert(id, new);
            }
        }
        self.formulas.get(&root).copied()
    }

    fn part(&mut self, id: ExprId) -> Option<ExprId> {
        let mut node = self.spec.nodes[id.index()].clone();
        if matches!(node, Expr::Literal(_)) {
            return Some(self.add(node));
        }
        if !is_operator(self.spec, id) {
            return self.atom(id);
        }
        for operand in node.operands_mut() {
            *operand = *self.formulas.get(operand)?;
        }
        let remembers = match &node {
            Expr::Previously(_) => {
                // Truths at events only depend on simultaneous events of any topic.
                let operand = self.spec.nodes[id.index()].operands().next()?;
                if !below(self.spec, operand)?.iter().all(|id| lasts(&self.spec.nodes[id.index()])) {
                    return None;
                }
                true
            }
            _ => match node.bounds() {
                Some(bounds) => {
                    self.back = self.back.checked_add(bounds.upper.unwrap_or(bounds.lower))?;
                    bounds.upper.is_none()
                }
                None => node.class() == Class::Past,
            },
        };
        let mut new = self.add(node);
        if remembers {
            self.known.push(new);
        }
        if let Some(operand) = self.edge_operand(id) {
            let mut messages = None;
            // A held value changes with a message only.
            for topic in self.spec.topics_of(operand) {
                let (on, lost) = (self.add(Expr::On(topic)), self.mask(&Mask::Lost(topic))?);
                messages = Some(match messages {
                    Some(messages) => self.add(Expr::Or(messages, on)),
                    None => on,
                });
                messages = messages.map(|messages| self.add(Expr::Or(messages, lost)));
            }
            new = messages.map_or(new, |messages| self.add(Expr::And(new, messages)));
        }
        Some(new)
    }

    /// The operand of `rising` or `falling`, if a node is one.
    fn edge_operand(&self, id: ExprId) -> Option<ExprId> {
        let node = |id: ExprId| &self.spec.nodes[id.index()];
        let Expr::And(x, y) = *node(id) else { return None };
        let is_turn = |now: ExprId, before: ExprId| match (node(now), node(before)) {
            (Expr::Not(now), Expr::Previously(of)) => (now == of).then_some(*of),
            (_, Expr::Not(before)) => match node(*before) {
                Expr::Previously(of) => (now == *of).then_some(*of),
                _ => None,
            },
            _ => None,
        };
        is_turn(x, y).or_else(|| is_turn(y, x))
    }

    fn atom(&mut self, root: ExprId) -> Option<ExprId> {
        let mut masks = BTreeMap::new();
        self.copy(root, &mut masks)?;
        let atom = *self.plain.get(&root)?;
        if let Some(bounded) = self.bounded(root, atom)? {
            return Some(bounded);
        }
        if let Expr::On(topic) = self.spec.nodes[root.index()] {
            // Missing messages change nothing where one came.
            let lost = self.mask(&Mask::Lost(topic))?;
            return Some(self.add(Expr::Or(atom, lost)));
        }
        let mut unknown = atom;
        for mask in masks.into_keys() {
            let mask = self.mask(&mask)?;
            let (not_unknown, not_mask) = (self.add(Expr::Not(unknown)), self.add(Expr::Not(mask)));
            let (a, b) = (self.add(Expr::And(unknown, not_mask)), self.add(Expr::And(not_unknown, mask)));
            unknown = self.add(Expr::Or(a, b));
        }
        Some(unknown)
    }

    /// Rewrites an atom that missing messages can change in one direction only. `None` inside if the atom is not of
    /// this kind.
    fn bounded(&mut self, root: ExprId, atom: ExprId) -> Option<Option<ExprId>> {
        let Expr::Compare(comparison, x, y) = self.spec.nodes[root.index()] else { return Some(None) };
        let (lowers, masks) = match (self.measure(x, y), self.measure(y, x)) {
            (Some((lowers, masks)), _) => (lowers, masks),
            (_, Some((lowers, masks))) => (!lowers, masks),
            _ => return Some(None),
        };
        // Whether missing messages may make the atom true.
        let helps = match comparison {
            Comparison::Less | Comparison::LessOrEqual => lowers,
            Comparison::Greater | Comparison::GreaterOrEqual => !lowers,
            Comparison::Equal | Comparison::NotEqual => return Some(None),
        };
        let mut bounded = atom;
        for mask in masks {
            let mask = self.mask(&mask)?;
            bounded = if helps {
                self.add(Expr::Or(bounded, mask))
            } else {
                let not = self.add(Expr::Not(mask));
                self.add(Expr::And(bounded, not))
            };
        }
        Some(Some(bounded))
    }

    /// Whether missing messages lower a value that is compared with another, if they lower or raise it only, and which
    /// ones do.
    fn measure(&self, mut of: ExprId, with: ExprId) -> Option<(bool, Vec<Mask>)> {
        let node = |id: ExprId| &self.spec.nodes[id.index()];
        if let (Expr::Age(topic), Expr::Literal(Value::Duration(bound))) = (node(of), node(with)) {
            let bound = u64::try_from(*bound).ok()?;
            return Some((true, vec![Mask::Recently(*topic, bound)]));
        }
        if !is_plain(self.spec, with) || !self.spec.topics_of(with).is_empty() {
            return None;
        }
        if let Expr::ToFloat(x) = node(of) {
            of = *x;
        }
        match node(of) {
            Expr::Window { aggregate: Aggregate::Count | Aggregate::Rate, over, operand: None, topics } => {
                Some((false, topics.iter().map(|topic| Mask::Recently(*topic, *over)).collect()))
            }
            _ => None,
        }
    }

    /// Copies the nodes below one, and adds what they may not know.
    fn copy(&mut self, root: ExprId, masks: &mut BTreeMap<Mask, ()>) -> Option<()> {
        for id in below(self.spec, root)? {
            let mut node = self.spec.nodes[id.index()].clone();
            match &node {
                // It is false where its operand is unknown.
                Expr::Definitely(_) => return None,
                Expr::Literal(_) => {}
                Expr::On(topic) => {
                    masks.insert(Mask::Lost(*topic), ());
                }
                Expr::Carried { topic, .. } => {
                    masks.extend([(Mask::Lost(*topic), ()), (Mask::Held(*topic), ())]);
                }
                Expr::Age(topic) | Expr::Latency(topic) => self.count_messages(vec![*topic], 1, masks),
                Expr::Jitter(topic) => self.count_messages(vec![*topic], 3, masks),
                Expr::Prev(operand) => {
                    if !is_plain(self.spec, *operand) {
                        return None;
                    }
                    self.count_messages(self.spec.topics_of(*operand), 2, masks);
                }
                Expr::Window { aggregate, over, operand, topics } => {
                    // A sample whose operand is unknown is not counted.
                    let counts = matches!(aggregate, Aggregate::Count) && operand.is_some();
                    if counts || operand.is_some_and(|operand| !is_plain(self.spec, operand)) {
                        return None;
                    }
                    masks.extend(topics.iter().map(|topic| (Mask::Recently(*topic, *over), ())));
                }
                _ => match node.class() {
                    Class::Held => masks.extend(node.topics().iter().map(|topic| (Mask::Held(*topic), ()))),
                    Class::Function | Class::Connective => {}
                    _ => return None,
                },
            }
            if self.plain.contains_key(&id) {
                continue;
            }
            for operand in node.operands_mut() {
                *operand = *self.plain.get(operand)?;
            }
            let is_read = node.class() == Class::Held;
            let new = self.add(node);
            self.plain.insert(id, new);
            if is_read {
                let known = if self.spec.value_type(id) == ValueType::Bool {
                    new
                } else {
                    self.add(Expr::Compare(Comparison::Equal, new, new))
                };
                self.known.push(known);
            }
        }
        Some(())
    }

    fn count_messages(&mut self, topics: Vec<TopicId>, count: u32, masks: &mut BTreeMap<Mask, ()>) {
        let counter = Counter { topics, count };
        let known = self.counters.iter().position(|known| *known == counter);
        let number = known.unwrap_or(self.counters.len());
        masks.extend(counter.topics.iter().map(|topic| (Mask::Counted(number, *topic), ())));
        if known.is_none() {
            self.counters.push(counter);
        }
    }

    fn mask(&mut self, mask: &Mask) -> Option<ExprId> {
        if let Some(known) = self.masks.get(mask) {
            return Some(*known);
        }
        let field = |me: &mut Self, topic: &TopicId, path: Path| {
            let topic = TopicId(me.count + topic.0);
            me.add(Expr::Field { topic, path, value_type: ValueType::Bool })
        };
        let new = match mask {
            Mask::Lost(topic) => field(self, topic, lost_path()),
            Mask::Held(topic) => field(self, topic, held_path()),
            Mask::Counted(number, topic) => field(self, topic, counter_path(*number)),
            Mask::Recently(topic, over) => {
                self.back = self.back.checked_add(*over)?;
                let lost = self.mask(&Mask::Lost(*topic))?;
                self.add(Expr::Once(Bounds { lower: 0, upper: Some(*over) }, lost))
            }
        };
        self.masks.insert(mask.clone(), new);
        self.known.push(new);
        Some(new)
    }

    /// Formula: everything that can be unknown has been known for longer than all bounds.
    fn fully_known(&mut self) -> ExprId {
        let mut all = self.add(Expr::Literal(Value::Bool(true)));
        for of in std::mem::take(&mut self.known) {
            let not = self.add(Expr::Not(of));
            let known = self.add(Expr::Or(of, not));
            all = self.add(Expr::And(all, known));
        }
        let bounds = Bounds { lower: 0, upper: Some(self.back) };
        self.add(Expr::Historically(bounds, all))
    }
}

/// Whether a node depends on held values alone if its operands do.
fn lasts(node: &Expr) -> bool {
    match node.class() {
        Class::Constant | Class::Held | Class::Function => true,
        Class::Connective => !matches!(node, Expr::Definitely(_)),
        _ => false,
    }
}
