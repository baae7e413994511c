//! Rewrites a formula so that it can be evaluated from the middle of a trace, with everything before unknown.
//!
//! The rewritten formula reads one more field, *unknown*: it has no value before the first evaluated event and is false
//! from there on. Atoms are combined with it by exclusive or, so that they are unknown before that event and themselves
//! afterwards. Kleene's logic does the rest: a known verdict from then on holds whatever came before.

use std::collections::HashMap;

use rondel_event::{Comparison, Path, TopicId, Value, ValueType};
use rondel_spec::{Aggregate, Bounds, Class, Expr, ExprId, MachineId, Property, Spec, TimeModel, Topic};

/// Larger formulas are not rewritten.
const NODES: usize = 4096;
/// Maximum number of unknown events before the first one.
const ROWS: u64 = 1024;

/// The path of the field that is unknown before the first event.
pub(super) fn unknown_path() -> Path {
    Path::keys(["unknown"])
}

/// Rewritten formula.
pub(super) struct Rewritten {
    /// Two properties: the formula, and whether it has become independent of what is unknown.
    pub(super) spec: Spec,
    /// Topic of the unknown events; the topics before it are those of the original.
    pub(super) topic: TopicId,
    /// Number of unknown events before the first one.
    pub(super) rows: u64,
    /// Time from the first unknown event to the first event, in nanoseconds.
    pub(super) back: i64,
}

/// Rewrites the formula of a property. `None` if it has operators other than past ones, instances, chains, quantifiers
/// or machines that cannot be [rewritten](super::machine), or if it has neither a past operator nor a machine.
pub(super) fn rewrite(spec: &Spec, property: &Property) -> Option<Rewritten> {
    if property.slice.is_some() || property.linear {
        return None;
    }
    let topic = TopicId(spec.topics.len() as u32);
    let own = Topic { name: "unknown".into(), address: "unknown".into(), type_name: None, schema: None };
    let mut topics = spec.topics.clone();
    topics.push(own);
    let mut rewriter = Rewriter {
        spec,
        model: property.time,
        topic,
        out: Spec { topics, ..Spec::default() },
        formulas: HashMap::new(),
        plain: HashMap::new(),
        atoms: Vec::new(),
        bounds: 0,
        operators: 0,
        unknown: ExprId(0),
        machines: HashMap::new(),
    };
    rewriter.unknown = rewriter.field(unknown_path());
    let formula = rewriter.formula(property.formula)?;
    if rewriter.operators == 0 {
        return None;
    }
    let Rewriter { bounds, operators, .. } = rewriter;
    let is_independent = rewriter.is_independent()?;
    let rows = if property.time == TimeModel::Steps { bounds.checked_add(operators)? + 2 } else { 2 };
    let back = i64::try_from(bounds).ok().filter(|back| *back < i64::MAX / 8)? + 1_000_000_000;
    if rows > ROWS {
        return None;
    }
    let mut spec = rewriter.out;
    for (name, formula) in [("formula", formula), ("settled", is_independent)] {
        spec.properties.push(Property { time: property.time, ..Property::new(name, formula) });
    }
    Some(Rewritten { spec, topic, rows, back })
}

pub(super) struct Rewriter<'a> {
    pub(super) spec: &'a Spec,
    pub(super) model: TimeModel,
    topic: TopicId,
    pub(super) out: Spec,
    /// Rewritten nodes: as formulas that may be unknown, and as plain copies.
    formulas: HashMap<ExprId, ExprId>,
    plain: HashMap<ExprId, ExprId>,
    /// Formulas that must be known for all others to be known.
    atoms: Vec<ExprId>,
    /// Sum of all bounds.
    bounds: u64,
    /// Number of past operators.
    pub(super) operators: u64,
    unknown: ExprId,
    /// Rewritten machines, by their numbers in the original.
    pub(super) machines: HashMap<u32, Option<MachineId>>,
}

impl Rewriter<'_> {
    pub(super) fn add(&mut self, node: Expr) -> ExprId {
        self.out.nodes.push(node);
        ExprId(self.out.nodes.len() as u32 - 1)
    }

    fn field(&mut self, path: Path) -> ExprId {
        self.add(Expr::Field { topic: self.topic, path, value_type: ValueType::Bool })
    }

    fn formula(&mut self, root: ExprId) -> Option<ExprId> {
        let nodes = below(self.spec, root)?;
        // Parts of formulas, as opposed to parts of atoms.
        let mut is_part = vec![false; root.index() + 1];
        is_part[root.index()] = true;
        for id in nodes.iter().rev().filter(|id| id.index() < self.spec.nodes.len()) {
            let node = &self.spec.nodes[id.index()];
            if is_part[id.index()] && is_operator(self.spec, *id) {
                node.operands().for_each(|operand| is_part[operand.index()] = true);
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
        if node.class() != Class::Past {
            return Some(self.add(node));
        }
        // In dense time `previously` also depends on simultaneous events of topics outside the formula.
        if matches!(node, Expr::Previously(_)) && self.model == TimeModel::Dense {
            return None;
        }
        let (bounds, of_all) = (node.bounds(), node.past().is_some_and(|past| past.all));
        self.operators += 1;
        let new = self.add(node);
        let Some(Bounds { lower, upper }) = bounds else {
            self.atoms.push(new);
            return Some(new);
        };
        self.bounds = self.bounds.checked_add(upper.unwrap_or(lower))?;
        match upper {
            None => self.atoms.push(new),
            // In point-based time any number of unknown events may fall within the bounds.
            Some(upper) if self.model == TimeModel::Points => {
                let pending = self.unknown_for(upper)?;
                return Some(if of_all {
                    let not = self.add(Expr::Not(pending));
                    self.add(Expr::And(new, not))
                } else {
                    self.add(Expr::Or(new, pending))
                });
            }
            Some(_) => {}
        }
        Some(new)
    }

    /// Formula that is unknown until `long` nanoseconds (or steps) after the first event, then false.
    fn unknown_for(&mut self, long: u64) -> Option<ExprId> {
        match self.model {
            TimeModel::Points => {
                let never = self.field(Path::keys(["never"]));
                let age = self.add(Expr::Age(self.topic));
                let long = self.add(Expr::Literal(Value::Duration(i64::try_from(long).ok()?)));
                let recent = self.add(Expr::Compare(Comparison::LessOrEqual, age, long));
                Some(self.add(Expr::And(never, recent)))
            }
            TimeModel::Steps | TimeModel::Dense => {
                Some(self.add(Expr::Once(Bounds { lower: 0, upper: Some(long) }, self.unknown)))
            }
        }
    }

    fn atom(&mut self, root: ExprId) -> Option<ExprId> {
        let longest = self.copy(root)?;
        let mut atom = *self.plain.get(&root)?;
        let unknowns =
            [Some(self.unknown), if longest > 0 { Some(self.unknown_for(longest)?) } else { None }];
        for unknown in unknowns.into_iter().flatten() {
            let (not_atom, not_unknown) = (self.add(Expr::Not(atom)), self.add(Expr::Not(unknown)));
            let (a, b) = (self.add(Expr::And(atom, not_unknown)), self.add(Expr::And(not_atom, unknown)));
            atom = self.add(Expr::Or(a, b));
        }
        self.atoms.push(atom);
        Some(atom)
    }

    /// Unchanged copy of a formula.
    pub(super) fn copied(&mut self, root: ExprId) -> Option<ExprId> {
        self.copy(root)?;
        self.plain.get(&root).copied()
    }

    /// Copies the nodes below `root`. Returns the longest window among them.
    fn copy(&mut self, root: ExprId) -> Option<u64> {
        let mut longest = 0;
        for id in below(self.spec, root)? {
            let mut node = self.spec.nodes[id.index()].clone();
            match &node {
                // The first is false where its operand is unknown.
                Expr::Definitely(_) | Expr::Bind { .. } | Expr::Chain(..) => return None,
                Expr::Literal(_) => {}
                Expr::Prev(operand) => {
                    // The operand keeps a value from before the first event.
                    if !is_plain(self.spec, *operand) {
                        return None;
                    }
                    self.operators += 1;
                }
                Expr::Window { aggregate, over, operand, .. } => {
                    // Unknown samples are not counted.
                    let counts = matches!(aggregate, Aggregate::Count) && operand.is_some();
                    if counts || operand.is_some_and(|operand| !is_plain(self.spec, operand)) {
                        return None;
                    }
                    self.operators += 1;
                    self.bounds = self.bounds.checked_add(*over)?;
                    longest = longest.max(*over);
                }
                Expr::InState(machine, states) => {
                    let (machine, states) = (self.machine(*machine)?, states.clone());
                    let new = self.in_state(machine, states);
                    self.plain.insert(id, new);
                }
                Expr::Ambiguous(machine) => node = Expr::Ambiguous(self.machine(*machine)?),
                _ => match node.class() {
                    Class::Held | Class::Event | Class::Function | Class::Connective | Class::Measure => {}
                    _ => return None,
                },
            }
            if self.plain.contains_key(&id) {
                continue;
            }
            for operand in node.operands_mut() {
                *operand = *self.plain.get(operand)?;
            }
            let new = self.add(node);
            self.plain.insert(id, new);
        }
        Some(longest)
    }

    /// Formula: a rewritten machine is in one of these states; unknown while its state is.
    fn in_state(&mut self, machine: MachineId, states: Vec<u32>) -> ExprId {
        let unknown = self.out.machines[machine.0 as usize].states.len() as u32 - 1;
        let is_there = self.add(Expr::InState(machine, states));
        let nowhere = self.add(Expr::InState(machine, vec![unknown]));
        let never = self.field(Path::keys(["never"]));
        let pending = self.add(Expr::And(nowhere, never));
        self.add(Expr::Or(is_there, pending))
    }

    /// Formula: all atoms have been known for longer than all bounds.
    fn is_independent(&mut self) -> Option<ExprId> {
        let mut all = self.add(Expr::Literal(Value::Bool(true)));
        for atom in std::mem::take(&mut self.atoms) {
            let not = self.add(Expr::Not(atom));
            let known = self.add(Expr::Or(atom, not));
            all = self.add(Expr::And(all, known));
        }
        let bounds = Bounds { lower: 0, upper: Some(self.bounds) };
        let independent = self.add(Expr::Historically(bounds, all));
        if self.model != TimeModel::Points {
            return Some(independent);
        }
        let pending = self.unknown_for(self.bounds)?;
        let over = self.add(Expr::Not(pending));
        Some(self.add(Expr::And(independent, over)))
    }
}

/// Nodes below `root`, operands first, in an order determined by the formula alone.
pub(super) fn below(spec: &Spec, root: ExprId) -> Option<Vec<ExprId>> {
    let (mut all, mut open) = (vec![false; root.index() + 1], vec![(root, false)]);
    let mut below = Vec::new();
    while let Some((id, is_ready)) = open.pop() {
        if is_ready {
            below.push(id);
        } else if !std::mem::replace(all.get_mut(id.index())?, true) {
            open.push((id, true));
            let operands: Vec<ExprId> = spec.nodes.get(id.index())?.operands().collect();
            open.extend(operands.into_iter().rev().map(|operand| (operand, false)));
        }
        if below.len() > NODES {
            return None;
        }
    }
    Some(below)
}

/// Whether a node has formulas as operands.
pub(super) fn is_operator(spec: &Spec, id: ExprId) -> bool {
    match &spec.nodes[id.index()] {
        Expr::Prev(_) | Expr::If(..) => spec.value_type(id) == ValueType::Bool,
        Expr::Definitely(_) => false,
        node => matches!(node.class(), Class::Connective | Class::Past),
    }
}

/// Whether a value depends on held values alone.
pub(super) fn is_plain(spec: &Spec, id: ExprId) -> bool {
    let is_plain = |id: &ExprId| match &spec.nodes[id.index()] {
        Expr::Compare(..) | Expr::StartsWith(..) | Expr::If(..) => false,
        node => matches!(node.class(), Class::Constant | Class::Held | Class::Function),
    };
    below(spec, id).is_some_and(|nodes| nodes.iter().all(is_plain))
}
