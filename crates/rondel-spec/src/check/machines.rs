//! Checks and translation of machines.

use std::collections::{HashMap, HashSet};

use rondel_event::{Value, ValueType};

use super::names::Names;
use super::{Checker, Local, Meaning, time};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{
    Below, Bounds, Expr, ExprId, Machine, MachineId, SliceId, State, TimeModel, Transition, Variable,
};
use crate::suggest::{did_you_mean, nearest, unknown};
use crate::syntax::ast::{self, Body, Name, NodeId};

/// The states of a machine.
#[derive(Debug, Default)]
pub(super) struct States<'a> {
    names: Vec<&'a Name>,
    places: HashMap<&'a str, u32>,
}

impl<'a> States<'a> {
    /// Returns the states in order of declaration or first use.
    fn of(machine: &'a ast::Machine) -> States<'a> {
        let mut states = States::default();
        for name in &machine.states {
            states.add(name);
        }
        for transition in &machine.transitions {
            states.add(&transition.from);
            states.add(&transition.to);
        }
        if let Some(initial) = machine.initial.as_ref().filter(|_| states.names.is_empty()) {
            states.add(initial);
        }
        states
    }

    fn add(&mut self, name: &'a Name) {
        let place = self.names.len() as u32;
        self.places.entry(&name.text).or_insert_with(|| {
            self.names.push(name);
            place
        });
    }

    fn find(&self, name: &Name, machine: &ast::Machine) -> Result<u32, Diagnostic> {
        self.places.get(name.text.as_str()).copied().ok_or_else(|| {
            let names: Vec<_> = self.names.iter().map(|name| name.text.as_str()).collect();
            let message = format!("unknown state '{}' in machine '{}'", name.text, machine.name.text);
            let diagnostic = Diagnostic::new(Code::UnknownState, name.span, message)
                .label(machine.name.span, "transitions and `state` declare the states of this machine");
            unknown(diagnostic, &name.text, &names, &format!("states of '{}'", machine.name.text))
        })
    }
}

impl<'a> Checker<'a> {
    pub(super) fn resolve_machine(&mut self, index: usize, names: &Names<'a>) {
        let machine: &'a ast::Machine = &self.ast.machines[index];
        self.resolve_each(machine.each, names);
        for (i, variable) in machine.variables.iter().enumerate() {
            // An initial value is constant, so it cannot use other names of the machine.
            let locals = std::mem::take(&mut self.locals);
            self.resolve_body(variable.initial, names);
            self.locals = locals;
            self.local(&variable.name, Local::Variable(index, i), names);
        }
        for body in machine.bodies() {
            self.resolve_body(body, names);
        }
        for bound in machine.bounds() {
            if let Err(diagnostic) = self.resolve_bound(bound, None, names) {
                self.diagnostics.push(*diagnostic);
            }
        }
        self.locals.clear();
    }

    pub(super) fn resolve_body(&mut self, body: Body, names: &Names<'a>) {
        for node in body.nodes() {
            self.resolve(node, None, names);
        }
    }

    /// Resolves `in(machine, state, …)`.
    pub(super) fn resolve_in(&mut self, machine: &Name, states: &'a [Name]) -> Meaning {
        let machines = &self.ast.machines;
        let Some(index) = machines.iter().position(|m| m.name.text == machine.text) else {
            let names: Vec<_> = machines.iter().map(|m| m.name.text.as_str()).collect();
            let message = format!("unknown machine '{}'", machine.text);
            let diagnostic = Diagnostic::new(Code::UnknownName, machine.span, message);
            let diagnostic = unknown(diagnostic, &machine.text, &names, "declared machines");
            let diagnostic = self.with_import(diagnostic, machine);
            self.diagnostics.push(diagnostic);
            return Meaning::Invalid;
        };
        let all = States::of(&machines[index]);
        let found: Vec<_> = states.iter().map(|state| all.find(state, &machines[index])).collect();
        let mut places = Vec::new();
        let mut broken = !machines[index].complete;
        for state in found {
            match state {
                Ok(place) => places.push(place),
                // If a part of the machine could not be parsed, the state may be declared there.
                Err(_) if !machines[index].complete => {}
                Err(diagnostic) => {
                    self.diagnostics.push(diagnostic);
                    broken = true;
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        if broken { Meaning::Invalid } else { Meaning::InState(MachineId(index as u32), places) }
    }

    pub(super) fn infer_machines(&mut self) {
        let ast = self.ast;
        for machine in &ast.machines {
            for variable in &machine.variables {
                self.infer_body(variable.initial);
                if let (Some(root), Some(value_type)) = (variable.initial.root, variable.value_type) {
                    self.expect_type(root, value_type);
                }
            }
        }
        for machine in &ast.machines {
            for transition in &machine.transitions {
                if let Some(guard) = transition.guard {
                    self.infer_truth(guard);
                }
                for (name, value) in &transition.assignments {
                    self.infer_body(*value);
                    let variable = machine.variables.iter().find(|v| v.name.text == name.text);
                    if let (Some(root), Some(initial)) = (value.root, variable.and_then(|v| v.initial.root)) {
                        self.same(initial, root, root);
                    }
                }
            }
            for condition in machine.errors.iter().filter_map(|error| error.condition) {
                self.infer_truth(condition);
            }
        }
    }

    fn infer_body(&mut self, body: Body) {
        for node in body.nodes() {
            self.infer(node);
        }
    }

    fn lower_variable(&mut self, variable: &ast::MachineVariable, model: TimeModel) -> Option<Value> {
        let root = variable.initial.root?;
        let id = self.lower_root(variable.initial, model)?;
        let span = self.span(root);
        let Some(value) = self.graph.constant(id).cloned() else {
            let message = format!("the initial value of '{}' is not a constant", variable.name.text);
            self.diagnostics.push(
                Diagnostic::new(Code::NotConstant, span, message)
                    .help("assign a value from a message in a transition: `do n := topic.field`"),
            );
            return None;
        };
        match (variable.value_type, value) {
            (Some(ValueType::Float), Value::Int(value)) => Some(Value::Float(value as f64)),
            (Some(ValueType::Int), Value::Float(_)) => {
                self.report_float_in_int(&variable.name, span);
                None
            }
            (_, value) => Some(value),
        }
    }

    fn report_float_in_int(&mut self, variable: &Name, span: Span) {
        let message = format!("cannot assign a float to '{}', which is an int", variable.text);
        self.diagnostics.push(
            Diagnostic::new(Code::TypeMismatch, span, message)
                .label(variable.span, "declared here")
                .help(format!("declare it as `var {}: float`", variable.text)),
        );
    }

    pub(super) fn lower_machines(&mut self) {
        let machines: &'a [ast::Machine] = &self.ast.machines;
        let models: Vec<_> = machines
            .iter()
            .zip(self.machine_units.clone())
            .map(|(machine, units)| self.model(&machine.attributes, units))
            .collect();
        for (machine, model) in machines.iter().zip(&models) {
            let values = machine.variables.iter().map(|v| self.lower_variable(v, *model)).collect();
            self.machine_data.push(values);
        }
        for (index, model) in models.into_iter().enumerate() {
            let machine = self.lower_machine(index, model);
            self.graph.spec_mut().machines.push(machine);
        }
        self.report_cyclic_machines();
        for (index, machine) in machines.iter().enumerate() {
            let lowered = &self.graph.spec().machines[index];
            let (slice, time) = (lowered.slice, lowered.time);
            let roots: Vec<_> = lowered.conditions().collect();
            self.check_undivided(&machine.name, roots.clone(), slice);
            self.check_used_machines(&machine.name, roots.clone(), slice, time);
            if time == TimeModel::Dense {
                self.warn_of_missed_edges(&machine.name, roots, false);
            }
        }
    }

    fn lower_machine(&mut self, index: usize, model: TimeModel) -> Machine {
        let machine: &'a ast::Machine = &self.ast.machines[index];
        self.begin(&machine.name, &machine.attributes);
        let all = States::of(machine);
        let finals: HashSet<_> =
            machine.finals.iter().filter_map(|name| self.state(&all, name, machine)).collect();
        let initial = self.initial(&all, machine);
        let slice = self.lower_each(machine.each, &machine.attributes, model);
        let transitions: Vec<_> =
            machine.transitions.iter().map(|t| self.lower_transition(index, &all, t, model)).collect();
        if let Some(initial) = initial
            && machine.complete
        {
            self.warn_of_unreachable(&all, initial, &transitions, machine);
        }
        self.warn_of_unused_variables(machine);
        let variables = machine.variables.iter().zip(&self.machine_data[index]);
        Machine {
            name: machine.name.text.clone(),
            states: (0..)
                .zip(&all.names)
                .map(|(i, name)| State { name: name.text.clone(), is_final: finals.contains(&i) })
                .collect(),
            initial: initial.unwrap_or(0),
            variables: variables
                .map(|(variable, initial)| Variable {
                    name: variable.name.text.clone(),
                    initial: initial.clone().unwrap_or(Value::Int(0)),
                })
                .collect(),
            transitions,
            time: model,
            slice,
        }
    }

    fn state(&mut self, all: &States<'_>, name: &Name, machine: &ast::Machine) -> Option<u32> {
        match all.find(name, machine) {
            Ok(place) => Some(place),
            Err(diagnostic) => {
                if machine.complete {
                    self.diagnostics.push(diagnostic);
                }
                None
            }
        }
    }

    fn initial(&mut self, all: &States<'_>, machine: &ast::Machine) -> Option<u32> {
        if let Some(initial) = &machine.initial {
            return self.state(all, initial, machine);
        }
        if machine.complete {
            let message = format!("machine '{}' has no initial state", machine.name.text);
            let first = machine.transitions.first().map_or("a", |t| t.from.text.as_str());
            self.diagnostics.push(
                Diagnostic::new(Code::InitialState, machine.name.span, message)
                    .help(format!("write `initial {first}`")),
            );
        }
        None
    }

    fn lower_transition(
        &mut self,
        machine: usize,
        all: &States<'_>,
        transition: &'a ast::Transition,
        model: TimeModel,
    ) -> Transition {
        let guard = transition.guard.and_then(|guard| self.lower_root(guard, model));
        let within = transition.within.as_ref().and_then(|reach| self.lower_reach(reach, model));
        let after = transition.after.as_ref().and_then(|reach| self.lower_reach(reach, model));
        let complete = self.ast.machines[machine].complete;
        if complete && transition.guard.is_none() && transition.after.is_none() {
            let message = "this transition has neither `when` nor `after`";
            self.diagnostics.push(
                Diagnostic::new(Code::Unconditional, transition.span, message)
                    .help("add `when` with a condition, or `after` with a time"),
            );
        }
        if let (Some(within), Some(after)) = (within, after)
            && within <= after
        {
            let message = "this transition is never taken: its `within` ends no later than its `after`";
            self.diagnostics.push(
                Diagnostic::new(Code::EmptyInterval, transition.span, message)
                    .help("write `after a within b` with a < b; both count from the entry into the state"),
            );
        }
        let place = |name: &Name| all.places.get(name.text.as_str()).copied().unwrap_or(0);
        Transition {
            from: place(&transition.from),
            to: place(&transition.to),
            guard,
            within,
            after,
            assignments: self.lower_assignments(machine, &transition.assignments, model),
            text: transition.text.clone(),
        }
    }

    fn lower_assignments(
        &mut self,
        machine: usize,
        assignments: &'a [(Name, Body)],
        model: TimeModel,
    ) -> Vec<(u32, ExprId)> {
        let variables = &self.ast.machines[machine].variables;
        let mut out: Vec<(u32, ExprId)> = Vec::new();
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for (name, value) in assignments {
            let value_id = self.lower_root(*value, model);
            if let Some(first) = seen.insert(&name.text, name.span) {
                let message = format!("variable '{}' is assigned twice in one transition", name.text);
                self.diagnostics.push(
                    Diagnostic::new(Code::DuplicateName, name.span, message).label(first, "first assignment"),
                );
                continue;
            }
            let Some(place) = variables.iter().position(|variable| variable.name.text == name.text) else {
                let suggestion =
                    did_you_mean(&name.text, variables.iter().map(|variable| variable.name.text.as_str()));
                let message = format!("unknown variable '{}'{suggestion}", name.text);
                self.diagnostics.push(
                    Diagnostic::new(Code::UnknownName, name.span, message)
                        .help(format!("declare it in the machine: `var {}: int = 0`", name.text)),
                );
                continue;
            };
            let (Some(id), Some(initial)) = (value_id, &self.machine_data[machine][place]) else { continue };
            let id = match (initial.value_type(), self.graph.value_type(id)) {
                (ValueType::Float, ValueType::Int) => self.graph.widen(id),
                (ValueType::Int, ValueType::Float) => {
                    let span = value.root.map_or(name.span, |root| self.span(root));
                    self.report_float_in_int(&variables[place].name, span);
                    continue;
                }
                _ => id,
            };
            out.push((place as u32, id));
        }
        out
    }

    fn warn_of_unreachable(
        &mut self,
        all: &States<'_>,
        initial: u32,
        transitions: &[Transition],
        machine: &ast::Machine,
    ) {
        let mut next: HashMap<u32, Vec<u32>> = HashMap::new();
        for transition in transitions {
            next.entry(transition.from).or_default().push(transition.to);
        }
        let mut reached = HashSet::from([initial]);
        let mut open = vec![initial];
        while let Some(state) = open.pop() {
            let next = next.get(&state).into_iter().flatten().copied();
            open.extend(next.filter(|to| reached.insert(*to)));
        }
        for (place, name) in (0..).zip(&all.names) {
            if !reached.contains(&place) {
                let others = all.names.iter().map(|name| name.text.as_str());
                let message = format!(
                    "machine '{}' never enters state '{}'{}",
                    machine.name.text,
                    name.text,
                    did_you_mean(&name.text, others)
                );
                self.diagnostics.push(Diagnostic::new(Code::UnreachableState, name.span, message));
            }
        }
        // A misspelt state is often both: one is said.
        if reached.len() == all.names.len() {
            self.warn_of_lasting_states(all, &next, machine);
        }
    }

    /// Warns of states that are never left and are called nearly as another one.
    fn warn_of_lasting_states(
        &mut self,
        all: &States<'_>,
        next: &HashMap<u32, Vec<u32>>,
        machine: &ast::Machine,
    ) {
        // `step1` and `step2` are no misspellings of each other.
        let words = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
        for (place, name) in (0..).zip(&all.names) {
            if next.contains_key(&place) || machine.marks(&name.text) {
                continue;
            }
            let others = all.names.iter().map(|name| name.text.as_str());
            let others = others.filter(|other| words(other) != words(&name.text));
            if let Some(meant) = nearest(&name.text, others) {
                let message = format!(
                    "machine '{}' never leaves state '{}'; did you mean '{meant}'?",
                    machine.name.text, name.text
                );
                let help = "mark a state that lasts for ever with `final` or `error`";
                self.diagnostics.push(Diagnostic::new(Code::LastingState, name.span, message).help(help));
            }
        }
    }

    fn warn_of_unused_variables(&mut self, machine: &ast::Machine) {
        for variable in &machine.variables {
            let index = machine.variables.iter().position(|v| v.name.text == variable.name.text);
            let used = self.meanings.iter().any(|meaning| {
                matches!(meaning, Meaning::MachineVariable(m, v)
                    if self.ast.machines[*m].name.span == machine.name.span && Some(*v) == index)
            });
            if !used && machine.complete && !variable.name.text.starts_with('_') {
                let message = format!("'{}' is never used", variable.name.text);
                self.diagnostics.push(Diagnostic::new(Code::Unused, variable.name.span, message));
            }
        }
    }

    /// Reports machines that depend on their own state, directly or through each other.
    fn report_cyclic_machines(&mut self) {
        let spec = self.graph.spec();
        let uses: Vec<HashSet<usize>> =
            spec.machines
                .iter()
                .map(|machine| {
                    let parts = machine.transitions.iter().flat_map(|t| {
                        t.guard.into_iter().chain(t.assignments.iter().map(|(_, value)| *value))
                    });
                    self.machines_in(parts.collect()).into_iter().map(|(id, _)| id.0 as usize).collect()
                })
                .collect();
        for start in 0..uses.len() {
            let mut seen = HashSet::new();
            let mut open: Vec<usize> = uses[start].iter().copied().collect();
            while let Some(machine) = open.pop() {
                if seen.insert(machine) {
                    open.extend(&uses[machine]);
                }
            }
            if !seen.contains(&start) {
                continue;
            }
            let name = &self.ast.machines[start].name;
            let (message, help) = match uses[start].contains(&start) {
                true => (
                    format!("the transitions of '{}' depend on its own state", name.text),
                    "remove the condition on the state: a transition is taken only from its source state",
                ),
                false => (
                    format!(
                        "the transitions of '{}' depend on its own state through other machines",
                        name.text
                    ),
                    "remove the cycle: only one of two machines can use the state of the other",
                ),
            };
            self.diagnostics.push(Diagnostic::new(Code::CyclicDefinition, name.span, message).help(help));
        }
    }

    /// Returns the machines whose state the nodes use.
    pub(super) fn machines_in(&self, roots: Vec<ExprId>) -> Vec<(MachineId, ExprId)> {
        let in_state = |(id, node): (ExprId, &Expr)| match node {
            Expr::InState(machine, _) => Some((*machine, id)),
            _ => None,
        };
        let below = Below::new(&self.graph.spec().nodes, roots);
        let mut found: Vec<(MachineId, ExprId)> = below.filter_map(in_state).collect();
        found.sort_by_key(|(machine, id)| (machine.0, id.0));
        found
    }

    /// Reports the use of the state of a machine that has another `for each` or another time model.
    pub(super) fn check_used_machines(
        &mut self,
        name: &Name,
        roots: Vec<ExprId>,
        slice: Option<SliceId>,
        time: TimeModel,
    ) {
        if self.ast.machines.is_empty() {
            return;
        }
        let until = slice.and_then(|id| self.graph.spec().slices.get(id.0 as usize)?.until);
        let mut seen = HashSet::new();
        for (id, _) in self.machines_in(roots.into_iter().chain(until).collect()) {
            if !seen.insert(id.0) {
                continue;
            }
            let machine = &self.ast.machines[id.0 as usize];
            let other = &self.graph.spec().machines[id.0 as usize];
            // A machine with invalid parameters has no slice yet.
            let broken = machine.each.is_some() && other.slice.is_none();
            let (how, help) = if other.slice != slice && !broken {
                let help = match machine.each {
                    Some(_) => "give both the same `for each`, with the same `until` and `@limit`",
                    None => "give the machine the same `for each`",
                };
                (
                    if machine.each.is_some() { "has a different `for each`" } else { "has no `for each`" },
                    help,
                )
            } else if other.time != time {
                ("measures time differently", "write the same `@time(dense)` or `@time(steps)` before both")
            } else {
                continue;
            };
            let message =
                format!("'{}' uses the state of machine '{}', which {how}", name.text, machine.name.text);
            self.diagnostics.push(
                Diagnostic::new(Code::ForeignMachine, name.span, message)
                    .label(machine.name.span, "this machine")
                    .help(help),
            );
        }
    }

    /// Returns the formula of a machine's property: no two transitions were possible at once, and the machine is in no
    /// error state.
    pub(super) fn lower_errors(&mut self, index: usize) -> ExprId {
        let machine: &'a ast::Machine = &self.ast.machines[index];
        let all = States::of(machine);
        let id = MachineId(index as u32);
        let model = self.graph.spec().machines[index].time;
        let mut wrong = self.graph.add(Expr::Ambiguous(id));
        for error in &machine.errors {
            let mut places: Vec<_> =
                error.states.iter().filter_map(|name| self.state(&all, name, machine)).collect();
            places.sort_unstable();
            places.dedup();
            if places.is_empty() {
                continue;
            }
            let mut held = self.graph.add(Expr::InState(id, places));
            if let Some(condition) = error.condition {
                let Some(condition) = self.lower_root(condition, model) else { continue };
                held = self.graph.and(held, condition);
            }
            if let Some(lasting) = &error.lasting {
                let Some(lower) = self.lower_reach(lasting, model) else { continue };
                // `since` with itself: it held that long ago and has held ever since. `historically` would also be true if the
                // trace is shorter than the duration.
                held = self.graph.since(Bounds { lower, upper: None }, held, held);
            }
            wrong = self.graph.or(wrong, held);
        }
        self.graph.not(wrong)
    }

    /// Collects the units of the bounds of all machines, including those in their conditions.
    pub(super) fn collect_machine_units(&mut self) {
        for (index, machine) in self.ast.machines.iter().enumerate() {
            let mut units = time::Units::default();
            for body in machine.bodies() {
                units.add(self.units_of(body.nodes()));
            }
            for bound in machine.bounds() {
                self.add_bound(bound, &mut units);
            }
            self.machine_units[index] = units;
        }
    }

    pub(super) fn expect_type(&mut self, node: NodeId, value_type: ValueType) {
        self.expect(node, super::kinds::Kind::of(value_type));
    }
}
