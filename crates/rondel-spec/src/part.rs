//! One property of a specification as a specification of its own.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use crate::spec::places::Places;
use crate::spec::{ChainId, Expr, ExprId, Machine, MachineId, Property, SliceId, Spec, VariableId};

impl Spec {
    /// Returns a specification with one property only, and with the nodes, machines, chains and variables that it
    /// needs; and for each of its nodes the node of this specification. Topics keep their positions. Tests are left
    /// out. It costs as much as the part is large, and a little for every topic.
    ///
    /// ```
    /// let text = "topic a topic b property p = a.v > 0 property q = once[0, 2] on(b)";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let (part, nodes) = spec.part(&spec.properties[1]);
    /// assert_eq!((part.properties.len(), part.nodes.len(), nodes.len()), (1, 2, 2));
    /// assert_eq!(spec.nodes[nodes[0].index()], part.nodes[0]);
    /// ```
    pub fn part(&self, property: &Property) -> (Spec, Vec<ExprId>) {
        let mut needed = Needed::default();
        let own_chain = self.chains.iter().position(|chain| chain.name == property.name);
        needed.chains.extend(own_chain.map(|at| ChainId(at as u32)));
        let own_machine = self.machines.iter().position(|machine| machine.name == property.name);
        needed.machine(self, own_machine.map(|at| MachineId(at as u32)));
        needed.slice(self, property.slice);
        needed.open.push(property.formula);
        needed.open.extend(&property.premises);
        while let Some(id) = needed.open.pop() {
            let Some(node) = self.nodes.get(id.index()) else { continue };
            if !needed.nodes.insert(id) {
                continue;
            }
            needed.open.extend(node.operands());
            needed.open.extend(self.places.call(id).into_iter().flat_map(|call| &call.operands));
            match node {
                Expr::InState(machine, _) | Expr::Ambiguous(machine) | Expr::MachineVariable(machine, ..) => {
                    needed.machine(self, Some(*machine));
                }
                Expr::Chain(chain, _) => {
                    needed.chains.insert(*chain);
                }
                Expr::Variable(variable, _) | Expr::Exists(variable, _) | Expr::ForAll(variable, _) => {
                    needed.variables.insert(*variable);
                }
                Expr::Bind { fields, .. } => {
                    needed.variables.extend(fields.iter().map(|(_, variable, _)| *variable))
                }
                _ => {}
            }
        }
        (needed.spec(self, property), needed.nodes.into_iter().collect())
    }
}

/// Nodes and declarations that a property needs.
#[derive(Default)]
struct Needed {
    nodes: Set<ExprId>,
    slices: Set<SliceId>,
    machines: Set<MachineId>,
    chains: Set<ChainId>,
    variables: Set<VariableId>,
    /// Nodes that have not been looked at.
    open: Vec<ExprId>,
}

type Set<T> = BTreeSet<T>;

/// The position of an item of a set, from 0 in order.
fn places<T: Ord + Copy + Hash>(set: &Set<T>) -> HashMap<T, u32> {
    set.iter().copied().zip(0..).collect()
}

impl Needed {
    fn slice(&mut self, spec: &Spec, slice: Option<SliceId>) {
        if let Some(id) = slice
            && let Some(slice) = spec.slices.get(id.0 as usize)
            && self.slices.insert(id)
        {
            self.open.extend(slice.until);
        }
    }

    fn machine(&mut self, spec: &Spec, machine: Option<MachineId>) {
        if let Some(id) = machine
            && let Some(machine) = spec.machines.get(id.0 as usize)
            && self.machines.insert(id)
        {
            self.open.extend(Machine::conditions(machine));
            self.slice(spec, machine.slice);
        }
    }

    /// The part, with new numbers.
    fn spec(&self, whole: &Spec, property: &Property) -> Spec {
        let nodes = places(&self.nodes);
        let (slices, machines) = (places(&self.slices), places(&self.machines));
        let (chains, variables) = (places(&self.chains), places(&self.variables));
        let node = |id: &mut ExprId| id.0 = nodes.get(id).copied().unwrap_or(id.0);
        let slice = |id: &mut SliceId| id.0 = slices.get(id).copied().unwrap_or(id.0);
        let machine = |id: &mut MachineId| id.0 = machines.get(id).copied().unwrap_or(id.0);
        let variable = |id: &mut VariableId| id.0 = variables.get(id).copied().unwrap_or(id.0);
        let renumbered = |id: &ExprId| {
            let mut expr = whole.nodes.get(id.index())?.clone();
            expr.operands_mut().for_each(node);
            match &mut expr {
                Expr::InState(id, _) | Expr::Ambiguous(id) | Expr::MachineVariable(id, ..) => machine(id),
                Expr::Chain(id, _) => id.0 = chains.get(id).copied().unwrap_or(id.0),
                Expr::Variable(id, _) | Expr::Exists(id, _) | Expr::ForAll(id, _) => variable(id),
                Expr::Bind { fields, .. } => fields.iter_mut().for_each(|(_, id, _)| variable(id)),
                _ => {}
            }
            Some(expr)
        };
        let mut property = property.clone();
        node(&mut property.formula);
        property.premises.iter_mut().for_each(node);
        property.slice.iter_mut().for_each(slice);
        let placed = |id: ExprId| nodes.get(&id).copied().map(ExprId);
        let mut part = Spec {
            topics: whole.topics.clone(),
            events: whole.events.clone(),
            elements: whole.elements.clone(),
            properties: vec![property],
            nodes: self.nodes.iter().filter_map(renumbered).collect(),
            slices: self.slices.iter().filter_map(|id| whole.slices.get(id.0 as usize)).cloned().collect(),
            machines: self
                .machines
                .iter()
                .filter_map(|id| whole.machines.get(id.0 as usize))
                .cloned()
                .collect(),
            chains: self.chains.iter().filter_map(|id| whole.chains.get(id.0 as usize)).cloned().collect(),
            tests: Vec::new(),
            places: Places {
                nodes: self.nodes.iter().filter_map(|id| whole.places.node(*id)).collect(),
                variables: self
                    .variables
                    .iter()
                    .map(|id| whole.places.variable(*id).unwrap_or_default().to_owned())
                    .collect(),
                properties: Vec::new(),
                calls: whole.places.calls_with(placed),
                definitions: Places::moved(&whole.places.definitions, placed),
                elements: Places::moved(&whole.places.elements, placed),
            },
        };
        part.slices.iter_mut().filter_map(|slice| slice.until.as_mut()).for_each(node);
        for machine in &mut part.machines {
            machine.slice.iter_mut().for_each(slice);
            for transition in &mut machine.transitions {
                transition.guard.iter_mut().for_each(node);
                transition.assignments.iter_mut().for_each(|(_, value)| node(value));
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    /// Each part prints as the property does in the whole, with what it needs and no more.
    #[test]
    fn a_part_has_the_same_meaning() {
        let text = "topic a { id: int, x: float } topic b { id: int }
            let high = a.x > 3.0
            property p = high -> once[0, 4] on(b)
            property q = forall i. b{id: i} -> once[0, 2 s] a{id: i}
            property r for each id in (a.id, b.id) = on(a) -> high
            machine m { initial u var n: int = 0 u -> v when high do n := n + 1 v -> u after 1 s error v }
            property uses = in(m, v) -> high
            chain c = a -> b by id within 1 s
            property w = exists j. a{id: j} and once[0, 3] b{id: j}";
        let outcome = crate::parse(text);
        let whole = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
        for property in &whole.properties {
            let (part, nodes) = whole.part(property);
            assert_eq!(part.nodes.len(), nodes.len());
            assert!(part.nodes.len() < whole.nodes.len(), "{}", property.name);
            let variables = |text: String| text.split(|c: char| c.is_ascii_digit()).collect::<String>();
            let printed = |spec: &crate::Spec, id| variables(spec.print(id).to_string());
            assert_eq!(printed(&part, part.properties[0].formula), printed(&whole, property.formula));
            for (node, id) in part.nodes.iter().zip(0..) {
                assert!(node.operands().all(|operand| operand.0 < id));
            }
        }
        let machines: Vec<usize> =
            whole.properties.iter().map(|property| whole.part(property).0.machines.len()).collect();
        assert_eq!(machines.iter().sum::<usize>(), 2);
    }
}
