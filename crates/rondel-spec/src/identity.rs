//! Identities: hashes of what properties mean, equal in two specifications where a property means the same.

use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use rondel_event::{StableHasher, TopicId};

use crate::spec::{
    Chain, ChainId, Expr, ExprId, Machine, MachineId, Property, Slice, Spec, TimeModel, VariableId,
};

/// The attributes that change what a property means, or how much is kept for it. Others go with its verdicts only, or
/// are in its [`Property`] already.
const ATTRIBUTES: [&str; 3] = ["limit", "unbounded", "plan"];

impl Spec {
    /// Returns a hash of the meaning of a property: of its formula with all that it refers to, the fields that it reads,
    /// by the names of their topics, and its settings. It is equal in two specifications where the property means the
    /// same, whatever else they contain and in whatever order. The name and the generation are not part of it.
    ///
    /// Where events are counted, they are those of all topics: then these are part of it.
    ///
    /// ```
    /// let identity = |text: &str| {
    ///     let spec = rondel_spec::parse(text).spec.unwrap();
    ///     let property = spec.properties.iter().find(|property| property.name == "p").unwrap();
    ///     spec.identity(property)
    /// };
    /// let text = "topic a topic b property p = once[0, 1 s] a.v > 0";
    /// assert_eq!(identity(text), identity("topic b topic a property q = on(b) property p = once[0, 1 s] a.v > 0"));
    /// assert_ne!(identity(text), identity("topic a topic b property p = once[0, 2 s] a.v > 0"));
    /// ```
    pub fn identity(&self, property: &Property) -> u64 {
        let mut walk = Walk::new(self);
        let mut hasher = StableHasher::default();
        walk.formula(property.formula).hash(&mut hasher);
        let slice = property.slice.and_then(|slice| self.slices.get(slice.0 as usize));
        slice.map(|slice| walk.slice(slice)).hash(&mut hasher);
        if !property.mentions.is_empty() {
            let mentions: Vec<u64> = property.mentions.iter().map(|topic| walk.topic(*topic)).collect();
            mentions.hash(&mut hasher);
        }
        for &premise in &property.premises {
            walk.formula(premise).hash(&mut hasher);
        }
        walk.referred().hash(&mut hasher);
        (property.time, property.robust, property.linear).hash(&mut hasher);
        for (name, value) in property.attributes.iter().filter(|(name, _)| ATTRIBUTES.contains(&&**name)) {
            (name, value).hash(&mut hasher);
        }
        if let Some(criterion) = &property.criterion {
            let judged = criterion.property.and_then(|of| self.properties.get(of as usize));
            judged.map(|judged| &judged.name).hash(&mut hasher);
            format!("{:?} {:?} {}", criterion.demand, criterion.span, criterion.has_mode).hash(&mut hasher);
        }
        if property.slice.is_none() && property.time != TimeModel::Dense {
            let names: BTreeSet<&str> = self.topics.iter().map(|topic| &*topic.name).collect();
            names.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns the same of a formula alone, with the machines and chains that it refers to.
    pub fn formula_identity(&self, formula: ExprId) -> u64 {
        let mut walk = Walk::new(self);
        let own = walk.formula(formula);
        hash((own, walk.referred()))
    }

    /// Returns the same of a machine, by its position.
    pub fn machine_identity(&self, machine: MachineId) -> u64 {
        let mut walk = Walk::new(self);
        let name = self.machines.get(machine.0 as usize).map(|machine| &machine.name);
        walk.machines.push(machine);
        hash((name, walk.referred()))
    }

    /// Returns the same of a chain, by its position.
    pub fn chain_identity(&self, chain: ChainId) -> u64 {
        self.chains.get(chain.0 as usize).map_or(0, |chain| Walk::new(self).chain(chain))
    }

    /// Returns the chains that the property of this position reads, directly or through its machines.
    pub fn chains_of(&self, property: &Property) -> Vec<ChainId> {
        let mut walk = Walk::new(self);
        walk.formula(property.formula);
        let until = property.slice.and_then(|slice| self.slices.get(slice.0 as usize)?.until);
        until.map(|until| walk.formula(until));
        walk.referred();
        let own = self.chains.iter().position(|chain| chain.name == property.name);
        walk.chains.extend(own.map(|own| ChainId(own as u32)));
        walk.chains.sort_unstable();
        walk.chains.dedup();
        walk.chains
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = StableHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A walk through formulas, in an order that follows from them alone.
struct Walk<'s> {
    spec: &'s Spec,
    done: HashMap<ExprId, u64>,
    /// The variables by the order in which they were met.
    variables: HashMap<VariableId, u32>,
    /// The machines and chains that were met.
    machines: Vec<MachineId>,
    chains: Vec<ChainId>,
}

impl<'s> Walk<'s> {
    fn new(spec: &'s Spec) -> Walk<'s> {
        let (done, variables) = (HashMap::new(), HashMap::new());
        Walk { spec, done, variables, machines: Vec::new(), chains: Vec::new() }
    }

    fn topic(&self, topic: TopicId) -> u64 {
        hash(self.spec.topics.get(topic.index()).map(|topic| &topic.name))
    }

    /// The hash of a formula; machines and chains in it count by their names.
    fn formula(&mut self, root: ExprId) -> u64 {
        let mut open = vec![(root, false)];
        while let Some((id, is_ready)) = open.pop() {
            let Some(expr) = self.spec.nodes.get(id.index()) else { continue };
            if self.done.contains_key(&id) {
                continue;
            }
            if is_ready {
                let own = self.expression(expr);
                self.done.insert(id, own);
                continue;
            }
            if let Expr::Exists(variable, _) | Expr::ForAll(variable, _) = expr {
                let next = self.variables.len() as u32;
                self.variables.entry(*variable).or_insert(next);
            }
            open.push((id, true));
            // One that does not stand before this one is no operand: that is reported elsewhere.
            let operands: Vec<ExprId> = expr.operands().filter(|operand| *operand < id).collect();
            open.extend(operands.into_iter().rev().map(|operand| (operand, false)));
        }
        self.done.get(&root).copied().unwrap_or(0)
    }

    /// The hash of an expression whose operands have theirs.
    fn expression(&mut self, expr: &Expr) -> u64 {
        let mut hasher = StableHasher::default();
        for operand in expr.operands() {
            self.done.get(&operand).copied().unwrap_or(0).hash(&mut hasher);
        }
        let topic = expr.topic();
        topic.map(|topic| self.topic(topic)).hash(&mut hasher);
        let mut own = expr.clone();
        own.operands_mut().for_each(|operand| *operand = ExprId(0));
        let number =
            |variable: &VariableId| VariableId(self.variables.get(variable).copied().unwrap_or(u32::MAX));
        match &mut own {
            Expr::Bind { topic, fields } => {
                *topic = TopicId(0);
                fields.iter_mut().for_each(|(_, variable, _)| *variable = number(variable));
                fields.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
            }
            Expr::Window { topics, .. } => {
                let names: BTreeSet<u64> = topics.iter().map(|topic| self.topic(*topic)).collect();
                names.hash(&mut hasher);
                topics.clear();
            }
            Expr::Exists(variable, _) | Expr::ForAll(variable, _) | Expr::Variable(variable, _) => {
                *variable = number(variable);
            }
            Expr::InState(machine, _) | Expr::Ambiguous(machine) | Expr::MachineVariable(machine, ..) => {
                self.spec.machines.get(machine.0 as usize).map(|machine| &machine.name).hash(&mut hasher);
                if !self.machines.contains(machine) {
                    self.machines.push(*machine);
                }
                *machine = MachineId(0);
            }
            Expr::Chain(chain, _) => {
                self.spec.chains.get(chain.0 as usize).map(|chain| &chain.name).hash(&mut hasher);
                if !self.chains.contains(chain) {
                    self.chains.push(*chain);
                }
                *chain = ChainId(0);
            }
            _ => own.topics_mut().iter_mut().for_each(|topic| *topic = TopicId(0)),
        }
        own.hash(&mut hasher);
        hasher.finish()
    }

    fn slice(&mut self, slice: &Slice) -> u64 {
        let mut hasher = StableHasher::default();
        for key in &slice.keys {
            (&key.name, key.value_type).hash(&mut hasher);
            let fields: BTreeSet<_> =
                key.fields.iter().map(|(topic, path)| (self.topic(*topic), path)).collect();
            fields.hash(&mut hasher);
        }
        slice.until.map(|until| self.formula(until)).hash(&mut hasher);
        slice.limit.hash(&mut hasher);
        hasher.finish()
    }

    /// The hashes of the machines and chains that were met, and of those that these refer to.
    fn referred(&mut self) -> Vec<u64> {
        let (mut all, spec) = (Vec::new(), self.spec);
        let mut next = 0;
        while let Some(machine) = self.machines.get(next) {
            next += 1;
            all.extend(spec.machines.get(machine.0 as usize).map(|machine| self.machine(machine)));
        }
        for chain in self.chains.clone() {
            all.extend(spec.chains.get(chain.0 as usize).map(|chain| self.chain(chain)));
        }
        all.sort_unstable();
        all
    }

    fn machine(&mut self, machine: &Machine) -> u64 {
        let Machine { name, states, initial, variables, transitions, time, slice } = machine;
        let mut hasher = StableHasher::default();
        (name, initial, time).hash(&mut hasher);
        states.iter().for_each(|state| (&state.name, state.is_final).hash(&mut hasher));
        variables
            .iter()
            .for_each(|variable| (&variable.name, format!("{:?}", variable.initial)).hash(&mut hasher));
        for transition in transitions {
            (transition.from, transition.to, transition.within, transition.after).hash(&mut hasher);
            transition.guard.map(|guard| self.formula(guard)).hash(&mut hasher);
            for (variable, value) in &transition.assignments {
                (variable, self.formula(*value)).hash(&mut hasher);
            }
        }
        let slice = slice.and_then(|slice| self.spec.slices.get(slice.0 as usize));
        slice.map(|slice| self.slice(slice)).hash(&mut hasher);
        hasher.finish()
    }

    fn chain(&self, chain: &Chain) -> u64 {
        let Chain { name, links, value_type, within, wait } = chain;
        let links: Vec<_> = links.iter().map(|(topic, path)| (self.topic(*topic), path)).collect();
        hash((name, links, value_type, within, wait))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    fn identity(text: &str) -> u64 {
        let spec = crate::parse(text).spec.unwrap();
        let property = spec.properties.iter().find(|property| property.name == "p").unwrap();
        spec.identity(property)
    }

    const BEFORE: &str = "
        topic a { x: float, n: int } topic b { x: float, n: int }
        let big = a.x > 3
        machine m { initial i i -> j when on(b) and big error j for 1 s }
        property q = exists v. a{n: v} and once[0, 1 s] b{n: v}";

    /// The same in another order, with other things around.
    const AFTER: &str = "
        topic c { y: float } topic b { n: int, x: float } topic a { n: int, x: float, z: bool }
        property other = exists w. exists v. c{y: w} and once[0, 2 s] b{n: v}
        let wide = on(c) and a.x > 4
        let big = a.x > 3
        machine n { initial i i -> j when wide error j for 1 s }
        machine m { initial i i -> j when on(b) and big error j for 1 s }";

    #[test]
    fn identity_ignores_other_declarations() {
        for property in [
            "@time(dense) property p = big -> once[0, 5 s] b.x > a.x",
            "@time(dense) property p = in(m, j) -> once[0, 2 s] big",
            "property p for each k in (a.n, b.n) = on(a) -> once[0, 1 s] on(b)",
            "@time(dense) property p = forall v. a{n: v} -> once[0, 3 s] exists w. b{n: v, x: w}",
            "@time(dense) property p = mean(a.x) over 3 s > 1 or count(b) over 2 s > 3",
        ] {
            let [before, after] = [BEFORE, AFTER].map(|text| identity(&format!("{text} {property}")));
            assert_eq!(before, after, "{property}");
            let other = property
                .replace("2 s", "4 s")
                .replace("5 s", "6 s")
                .replace("1 s", "7 s")
                .replace("3 s", "8 s");
            assert_ne!(before, identity(&format!("{BEFORE} {other}")), "{property}");
        }
    }

    #[test]
    fn identity_covers_referenced_declarations() {
        let property = "@time(dense) property p = in(m, j) -> once[0, 2 s] big";
        let own = identity(&format!("{BEFORE} {property}"));
        // The error condition of the machine is the formula of another property.
        for (from, to, is_same) in
            [("a.x > 3", "a.x > 4", false), ("on(b) and", "on(a) and", false), ("for 1 s", "for 2 s", true)]
        {
            let edited = BEFORE.replace(from, to);
            assert_eq!(identity(&format!("{edited} {property}")) == own, is_same, "{from}");
        }
        let steps = "@time(steps) property p = once[0, 3] big";
        let more = format!("topic further {BEFORE}");
        assert_ne!(identity(&format!("{BEFORE} {steps}")), identity(&format!("{more} {steps}")));
    }
}
