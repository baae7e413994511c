//! Rewrites a machine so that it begins in an additional state *unknown*, and leaves it once the current state is
//! certain whatever the earlier one was.
//!
//! An event makes the state certain if it leads from every possible state into the same one, or stays in that one
//! without running timers. From then on the rewritten machine agrees with one that received everything and entered that
//! state at the same time, where that matters. This requires that no two transitions are ever enabled at once:
//! otherwise the original may have halted within the span.

use rondel_event::{Comparison, TopicId, Value, ValueType};
use rondel_spec::{Below, Class, Expr, ExprId, Machine, MachineId, Spec, State, TimeModel, Transition};

use super::unknown::Rewriter;

/// Machines with more states, or with more transitions from one, are not rewritten.
const STATES: usize = 64;
/// Guards with more nodes are not analysed.
const NODES: usize = 64;

impl Rewriter<'_> {
    /// Rewritten machine; `None` if it cannot be rewritten.
    pub(super) fn machine(&mut self, id: MachineId) -> Option<MachineId> {
        if let Some(known) = self.machines.get(&id.0) {
            return *known;
        }
        let found = self.rewritten_machine(id);
        self.machines.insert(id.0, found);
        found
    }

    fn rewritten_machine(&mut self, id: MachineId) -> Option<MachineId> {
        let machine = self.spec.machines.get(id.0 as usize)?;
        if machine.slice.is_some() || !machine.variables.is_empty() || machine.time != self.model {
            return None;
        }
        if machine.states.len() > STATES || !is_deterministic(self.spec, machine) {
            return None;
        }
        let mut transitions = machine.transitions.clone();
        for transition in &mut transitions {
            if let Some(guard) = &mut transition.guard {
                *guard = self.copied(*guard)?;
            }
        }
        let known = self.fields_are_known(machine)?;
        let unknown = machine.states.len() as u32;
        let mut leaving = Vec::new();
        for to in 0..unknown {
            if let Some(guard) = self.leads_into(&transitions, unknown, to) {
                let (within, after, assignments) = (None, None, Vec::new());
                let text = String::new();
                let guard = Some(self.add(Expr::And(guard, known)));
                leaving.push(Transition { from: unknown, to, guard, within, after, assignments, text });
            }
        }
        if leaving.is_empty() {
            return None;
        }
        transitions.extend(leaving);
        let mut states = machine.states.clone();
        states.push(State { name: "unknown".into(), ..states.first()?.clone() });
        let name = format!("machine{}", id.0);
        self.out.machines.push(Machine { name, states, initial: unknown, transitions, ..machine.clone() });
        // The state is known only from an event on.
        self.operators += 1;
        Some(MachineId(self.out.machines.len() as u32 - 1))
    }

    /// Formula: all fields that the guards read are known. A field without a message so far makes the guard not true,
    /// but possibly true; once known, it has the value of the messages.
    fn fields_are_known(&mut self, machine: &Machine) -> Option<ExprId> {
        let guards = machine.transitions.iter().filter_map(|t| t.guard);
        let mut all = self.add(Expr::Literal(Value::Bool(true)));
        for (id, node) in Below::new(&self.spec.nodes, guards) {
            if node.class() != Class::Held {
                continue;
            }
            let field = self.copied(id)?;
            let known = if self.spec.value_type(id) == ValueType::Bool {
                let not = self.add(Expr::Not(field));
                self.add(Expr::Or(field, not))
            } else {
                self.add(Expr::Compare(Comparison::Equal, field, field))
            };
            all = self.add(Expr::And(all, known));
        }
        Some(all)
    }

    /// Formula: an event leads from every state into this one; `None` if no event does.
    fn leads_into(&mut self, transitions: &[Transition], states: u32, to: u32) -> Option<ExprId> {
        let mut all: Option<ExprId> = None;
        for from in 0..states {
            let own: Vec<&Transition> = transitions.iter().filter(|t| t.from == from).collect();
            let untimed = |t: &Transition| t.within.is_none() && t.after.is_none();
            // A transition without a guard is taken before any event.
            let into = own.iter().filter(|t| t.to == to && untimed(t)).filter_map(|t| t.guard);
            let into: Vec<ExprId> = into.collect();
            let mut leads = into.into_iter().reduce(|a, b| self.add(Expr::Or(a, b)));
            if from == to && own.iter().all(|t| untimed(t) && t.guard.is_some()) {
                let mut stays = self.add(Expr::Literal(Value::Bool(true)));
                for guard in own.iter().filter_map(|t| t.guard) {
                    let not = self.add(Expr::Not(guard));
                    stays = self.add(Expr::And(stays, not));
                }
                leads = Some(leads.map_or(stays, |leads| self.add(Expr::Or(leads, stays))));
            }
            let leads = leads?;
            all = Some(all.map_or(leads, |all| self.add(Expr::And(all, leads))));
        }
        let mut event = self.add(Expr::Literal(Value::Bool(false)));
        for topic in 0..self.spec.topics.len() as u32 {
            let on = self.add(Expr::On(TopicId(topic)));
            event = self.add(Expr::Or(event, on));
        }
        let all = all?;
        Some(self.add(Expr::And(all, event)))
    }
}

/// Whether no two transitions are ever enabled at once.
fn is_deterministic(spec: &Spec, machine: &Machine) -> bool {
    let guards = machine.transitions.iter().filter_map(|transition| transition.guard);
    if !guards.into_iter().all(|guard| is_simple(spec, guard)) {
        return false;
    }
    machine.transitions.iter().enumerate().all(|(i, one)| {
        let others = &machine.transitions[i + 1..];
        others.iter().filter(|other| other.from == one.from).all(|other| {
            excludes_by_time(machine.time, one, other) || excludes_by_guard(spec, one.guard, other.guard)
        })
    })
}

/// Whether a guard becomes true at events only: it reads fields and the presence of messages.
fn is_simple(spec: &Spec, root: ExprId) -> bool {
    let mut open = vec![(root, true)];
    for _ in 0..NODES {
        let Some((id, is_positive)) = open.pop() else { return true };
        let node = &spec.nodes[id.index()];
        let operands = |is_positive: bool| node.operands().map(move |operand| (operand, is_positive));
        match node {
            Expr::If(..) | Expr::Definitely(_) | Expr::Bind { .. } | Expr::Key(..) | Expr::Variable(..) => {
                return false;
            }
            Expr::And(..) | Expr::Or(..) => open.extend(operands(is_positive)),
            _ => match node.class() {
                // The absence of a message becomes true just after one, not at an event.
                Class::Event if is_positive => {}
                Class::Constant | Class::Held => {}
                Class::Connective | Class::Function => open.extend(operands(false)),
                _ => return false,
            },
        }
    }
    false
}

fn excludes_by_time(model: TimeModel, one: &Transition, other: &Transition) -> bool {
    let ends_before =
        |a: &Transition, b: &Transition| a.within.zip(b.after).is_some_and(|(within, after)| within <= after);
    if ends_before(one, other) || ends_before(other, one) {
        return true;
    }
    let after = |t: &Transition| t.after.map(|after| after.max(1));
    let differ = after(one) != after(other);
    match [one, other].map(|t| (t.guard.is_some(), t.after.is_some())) {
        // The transition with the earlier timeout is taken.
        [(false, true), (false, true)] => differ,
        // Timeouts fall between events; in discrete time, at an event.
        [(false, true), (true, _)] | [(true, _), (false, true)] => model != TimeModel::Steps && differ,
        _ => false,
    }
}

/// Whether a conjunct of one guard denies one of the other.
fn excludes_by_guard(spec: &Spec, one: Option<ExprId>, other: Option<ExprId>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let conjuncts = |root: ExprId| {
        let (mut open, mut out) = (vec![root], Vec::new());
        while let Some(id) = open.pop() {
            match spec.nodes[id.index()] {
                Expr::And(a, b) => open.extend([a, b]),
                _ => out.push(id),
            }
        }
        out
    };
    let others = conjuncts(other);
    conjuncts(one).into_iter().any(|a| others.iter().any(|b| denies(spec, a, *b)))
}

fn denies(spec: &Spec, a: ExprId, b: ExprId) -> bool {
    let node = |id: ExprId| &spec.nodes[id.index()];
    match (node(a), node(b)) {
        (Expr::Not(x), _) if *x == b => true,
        (_, Expr::Not(y)) if *y == a => true,
        (Expr::Compare(first, x, c), Expr::Compare(second, y, d)) if x == y => {
            let [(Expr::Literal(c), Expr::Literal(d))] = [(node(*c), node(*d))] else { return false };
            let equal = |c: &Value, d: &Value| c == d;
            match (first, second) {
                (Comparison::Equal, Comparison::Equal) => c.value_type() == d.value_type() && !equal(c, d),
                (Comparison::Less, Comparison::GreaterOrEqual)
                | (Comparison::GreaterOrEqual, Comparison::Less)
                | (Comparison::LessOrEqual, Comparison::Greater)
                | (Comparison::Greater, Comparison::LessOrEqual)
                | (Comparison::Equal, Comparison::NotEqual)
                | (Comparison::NotEqual, Comparison::Equal) => equal(c, d),
                _ => false,
            }
        }
        _ => false,
    }
}
