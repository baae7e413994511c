//! Topics and fields that properties need. A property whose topics never carry a message is not evaluated.

use std::collections::{BTreeSet, HashSet};

use rondel_event::{Path, Read, TopicId};

use crate::spec::{Aggregate, Class, Expr, ExprId, Machine, Property, Spec};

/// The topics and fields that a property reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The topics, in order of declaration.
    pub topics: Vec<TopicId>,
    /// The fields, each once, by topic and path.
    pub fields: Vec<NeededField>,
}

/// A field that a property reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededField {
    /// The topic.
    pub topic: TopicId,
    /// The path in the message.
    pub path: Path,
    /// Whether its value is read, and not only whether a message carries it.
    pub value: bool,
}

/// A topic of which a property compares a message with earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixing {
    /// The topic.
    pub topic: TopicId,
    /// The fields that it compares so.
    pub own: Vec<Path>,
}

/// The nodes, each with what is known where it matters, that [`Spec::undivided`] looks at before it takes nothing for known.
const LOOKS: usize = 10_000;

impl Spec {
    /// Returns the topics and fields that a property reads: in its formula, through machines and chains, and for
    /// its parameters.
    ///
    /// ```
    /// let text = "topic a topic b topic c let x = a.v + b.v property p = x > 0 -> on(b)";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let needs = spec.needs(&spec.properties[0]);
    /// let fields: Vec<String> = needs.fields.iter().map(|field| field.path.to_string()).collect();
    /// assert_eq!((needs.topics.len(), fields), (2, vec!["v".to_owned(), "v".to_owned()]));
    /// ```
    pub fn needs(&self, property: &Property) -> Needs {
        let slice = property.slice.and_then(|slice| self.slices.get(slice.0 as usize));
        let roots = [Some(property.formula), slice.and_then(|slice| slice.until)];
        let mut fields = self.fields_of(roots.into_iter().flatten());
        let keys = slice.into_iter().flat_map(|slice| &slice.keys).flat_map(|key| &key.fields);
        let mut topics: BTreeSet<TopicId> =
            roots.into_iter().flatten().flat_map(|root| self.topics_of(root)).collect();
        for (topic, path) in keys {
            topics.insert(*topic);
            fields.push(NeededField { topic: *topic, path: path.clone(), value: true });
        }
        Needs { topics: topics.into_iter().collect(), fields: in_order(fields) }
    }

    /// Returns the topics of which NaN in a field matters to a property: not those whose fields it reads only in windows
    /// that leave NaN out.
    ///
    /// ```
    /// let text = "topic a topic b property p = max(a.x) over 1 s < 3.0 and b.x < 2.0";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// assert_eq!(spec.needs_numbers(&spec.properties[0]).len(), 1);
    /// ```
    pub fn needs_numbers(&self, property: &Property) -> Vec<TopicId> {
        let slice = property.slice.and_then(|slice| self.slices.get(slice.0 as usize));
        let mut topics: BTreeSet<TopicId> = BTreeSet::new();
        let roots = [Some(property.formula), slice.and_then(|slice| slice.until)];
        let mut open: Vec<(ExprId, bool)> = roots.into_iter().flatten().map(|root| (root, false)).collect();
        let mut seen = HashSet::new();
        while let Some((id, is_left_out)) = open.pop() {
            if !seen.insert((id, is_left_out)) {
                continue;
            }
            let node = &self.nodes[id.index()];
            let operands = |is_left_out: bool| node.operands().map(move |operand| (operand, is_left_out));
            match node {
                Expr::Field { .. } if is_left_out => {}
                Expr::Window { aggregate, .. } => open.extend(operands(aggregate.leaves_out_nan())),
                // It is unknown at the message after NaN.
                Expr::Prev(_) => open.extend(operands(false)),
                Expr::Field { topic, .. } | Expr::Elements { topic, .. } => {
                    topics.insert(*topic);
                }
                _ => {
                    open.extend(self.conditions_of(node).map(|condition| (condition, false)));
                    open.extend(operands(is_left_out));
                }
            }
        }
        topics.into_iter().collect()
    }

    /// Whether a property can be decided although a value that it reads is unknown: counts, machines, atoms, variables and
    /// conditions on elements take an unknown condition for one that does not hold, and a message without its key belongs to no instance.
    ///
    /// ```
    /// let text = "topic a property p = a.x < 3 property q = count(a.x > 3) over 1 s == 0";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let takes = |property: usize| spec.takes_unknown_for_false(&spec.properties[property]);
    /// assert_eq!((takes(0), takes(1)), (false, true));
    /// ```
    pub fn takes_unknown_for_false(&self, property: &Property) -> bool {
        let takes = |node: &Expr| match node {
            Expr::Window { aggregate: Aggregate::Count, operand: Some(_), .. }
            | Expr::Definitely(_)
            | Expr::Elements { .. }
            | Expr::Bind { .. }
            | Expr::Chain(..) => true,
            _ => matches!(node.class(), Class::Quantifier | Class::Machine),
        };
        property.slice.is_some() || self.below(property.formula).any(|(_, node)| takes(node))
    }

    /// Returns the topics of which a property reads the latest values, whoever published them: those that its `for each`
    /// does not name. A field that matters only where a message carries it has the value of that message, as in an atom.
    /// Another field beside it may be that of an earlier message, for a message may lack fields.
    ///
    /// ```
    /// let text = "topic pose property p = on(pose) -> pose.x < 3
    ///     property q = forall r. pose{robot: r, x > 3} -> once[0, 2 s] pose{robot: r, ready}";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let undivided = |i: usize| spec.undivided(&spec.properties[i]).len();
    /// assert_eq!((undivided(0), undivided(1)), (1, 0));
    /// ```
    pub fn undivided(&self, property: &Property) -> Vec<TopicId> {
        let mut topics = BTreeSet::new();
        let slice = property.slice.and_then(|slice| self.slices.get(slice.0 as usize));
        let keys = slice.and_then(|slice| slice.keys.first());
        let divided: Vec<TopicId> =
            keys.into_iter().flat_map(|key| &key.fields).map(|(topic, _)| *topic).collect();
        // Each node with the fields that a message carries wherever its value matters.
        let mut open = vec![(property.formula, BTreeSet::new())];
        let mut seen = HashSet::new();
        while let Some((id, mut carried)) = open.pop() {
            // There may be as many sets of fields as ways to a node.
            if seen.len() >= LOOKS {
                carried.clear();
            }
            if !seen.insert((id, carried.clone())) {
                continue;
            }
            let node = &self.nodes[id.index()];
            match node {
                Expr::And(..) => {
                    let parts = self.parts(id, |node| matches!(node, Expr::And(..)));
                    carried.extend(parts.iter().flat_map(|part| self.carried(*part)));
                    open.extend(parts.into_iter().map(|part| (part, carried.clone())));
                }
                Expr::Or(..) => {
                    let parts = self.parts(id, |node| matches!(node, Expr::Or(..)));
                    for part in &parts {
                        // It matters where the premises of an implication hold.
                        let premises = parts.iter().filter(|other| *other != part).filter_map(|other| {
                            let Expr::Not(premise) = self.nodes[other.index()] else { return None };
                            Some(self.parts(premise, |node| matches!(node, Expr::And(..))))
                        });
                        let fields = premises.flatten().flat_map(|premise| self.carried(premise));
                        open.push((*part, carried.iter().copied().chain(fields).collect()));
                    }
                }
                _ => match node.class() {
                    Class::Held => {
                        let field = held(node).filter(|field| !carried.contains(field));
                        topics.extend(field.map(|(topic, _)| topic));
                    }
                    // They look at other times.
                    Class::Machine | Class::Measure | Class::Past | Class::Future => {
                        let operands = self.conditions_of(node).chain(node.operands());
                        open.extend(operands.map(|operand| (operand, BTreeSet::new())));
                    }
                    _ => open.extend(node.operands().map(|operand| (operand, carried.clone()))),
                },
            }
        }
        topics.into_iter().filter(|topic| !divided.contains(topic)).collect()
    }

    /// Returns the operands of a chain of one operator, each once.
    fn parts(&self, id: ExprId, is_chain: impl Fn(&Expr) -> bool) -> Vec<ExprId> {
        let (mut open, mut seen, mut parts) = (vec![id], HashSet::from([id]), Vec::new());
        while let Some(id) = open.pop() {
            let node = &self.nodes[id.index()];
            match is_chain(node) {
                true => open.extend(node.operands().filter(|operand| seen.insert(*operand))),
                false => parts.push(id),
            }
        }
        parts
    }

    /// Returns the fields that a message carries wherever a node is true.
    fn carried(&self, id: ExprId) -> Vec<(TopicId, &Path)> {
        match &self.nodes[id.index()] {
            Expr::Bind { topic, fields } => fields.iter().map(|(path, ..)| (*topic, path)).collect(),
            Expr::Carried { topic, path } => vec![(*topic, path)],
            _ => Vec::new(),
        }
    }

    /// Returns the topics of which a property without `for each` compares a message with earlier ones, whoever they are
    /// about: as operands of `prev`, `changed`, `rising`, `falling`, `previously` and `since`, and in machines.
    ///
    /// ```
    /// let text = "topic pose property p = changed(pose.mode) -> pose.speed < 1";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let mixing = spec.mixing(&spec.properties[0]);
    /// assert_eq!((mixing.len(), mixing[0].own[0].to_string()), (1, "mode".to_owned()));
    /// ```
    pub fn mixing(&self, property: &Property) -> Vec<Mixing> {
        let mut all: Vec<Mixing> = Vec::new();
        if property.slice.is_some() {
            return all;
        }
        let (mut operands, mut bound) = (Vec::new(), Vec::new());
        for (_, node) in self.below_with_machines([property.formula]) {
            let by_arrival = !matches!(node, Expr::Prev(_) | Expr::Previously(_));
            match (node, node.class()) {
                // One message is enough for them.
                (Expr::Once(..) | Expr::Historically(..), _) => {}
                (Expr::Bind { topic, .. }, _) => bound.push(*topic),
                (_, Class::Past | Class::Machine) => {
                    let compared = self.conditions_of(node).chain(node.operands());
                    operands.extend(compared.map(|operand| (operand, by_arrival)));
                }
                _ => {}
            }
        }
        for (operand, by_arrival) in operands {
            for (_, node) in self.below_with_machines([operand]) {
                let (topic, own) = match (node, held(node)) {
                    (_, Some((topic, path))) => (topic, Some(path)),
                    // The arrival of a message also says something about its sender.
                    (Expr::On(topic), _) if by_arrival => (*topic, None),
                    _ => continue,
                };
                let known = all.iter().position(|mixing| mixing.topic == topic);
                let known = known.unwrap_or_else(|| {
                    all.push(Mixing { topic, own: Vec::new() });
                    all.len() - 1
                });
                all[known].own.extend(own.cloned());
            }
        }
        // A quantifier separates messages by the values of its variables.
        all.retain(|mixing| !bound.contains(&mixing.topic));
        all
    }

    /// The fields that nodes read, directly or through their operands, machines and chains.
    fn fields_of(&self, roots: impl IntoIterator<Item = ExprId>) -> Vec<NeededField> {
        let mut fields = Vec::new();
        for (_, node) in self.below_with_machines(roots) {
            let mut add = |topic: TopicId, path: &Path, value: bool| {
                fields.push(NeededField { topic, path: path.clone(), value });
            };
            if let Some((topic, path, read)) = node.field() {
                add(topic, path, read != Read::Presence);
            }
            match node {
                Expr::Bind { topic, fields } => fields.iter().for_each(|(path, ..)| add(*topic, path, true)),
                Expr::Chain(chain, _) => {
                    let links = self.chains.get(chain.0 as usize).into_iter().flat_map(|chain| &chain.links);
                    links.for_each(|(topic, path)| add(*topic, path, true));
                }
                _ => {}
            }
        }
        fields
    }

    /// Returns the conditions of the machine that a node reads.
    fn conditions_of(&self, node: &Expr) -> impl Iterator<Item = ExprId> + '_ {
        let machine = node.machine().and_then(|machine| self.machines.get(machine.0 as usize));
        machine.into_iter().flat_map(Machine::conditions)
    }
}

/// Returns the field whose value a node is or tests. Elements of an array are no single value.
fn held(node: &Expr) -> Option<(TopicId, &Path)> {
    let (topic, path, _) = node.field().filter(|_| node.class() == Class::Held)?;
    (!matches!(node, Expr::Elements { .. })).then_some((topic, path))
}

/// The fields in the order of their topics, each once; the value of a field is needed if any use needs it.
fn in_order(mut fields: Vec<NeededField>) -> Vec<NeededField> {
    let mut all: Vec<NeededField> = Vec::new();
    fields.sort_by(|a, b| (a.topic, &a.path).cmp(&(b.topic, &b.path)));
    for field in fields {
        match all.last_mut().filter(|last| (last.topic, &last.path) == (field.topic, &field.path)) {
            Some(last) => last.value |= field.value,
            None => all.push(field),
        }
    }
    all
}
