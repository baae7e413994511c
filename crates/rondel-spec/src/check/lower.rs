//! Translation of checked expressions into nodes of the specification.

use std::collections::{BTreeSet, HashSet};

use rondel_event::{Path, TopicId, Value, ValueType};

use super::{Checker, Meaning, attributes};
use crate::diagnostic::{Code, Diagnostic};
use crate::operators::full_window;
use crate::rye;
use crate::spec::{
    Aggregate, Bounds, Expr, ExprId, Machine, MachineId, Property, SliceId, TimeModel, UnaryOp, VariableId,
};
use crate::syntax::ast::{
    self, Attribute, Body, Bound, Infix, Measure, Name, NodeId, NodeKind, Pair, Prefix, PropertySource,
};

/// The node for each syntax node; none for invalid ones. Empty if the time model is not used.
pub(super) type Lowered = Vec<Option<ExprId>>;

impl Checker<'_> {
    pub(super) fn lower(&mut self) {
        let ast = self.ast;
        self.lower_chains();
        self.lower_machines();
        for source in &ast.property_sources {
            match *source {
                PropertySource::Property(i) => self.lower_property(&ast.properties[i]),
                PropertySource::Machine(i) => {
                    let machine = &ast.machines[i];
                    self.check_attributes(&machine.attributes, true);
                    self.refuse_steady(&machine.attributes);
                    let formula = self.lower_errors(i);
                    let divided = machine.each.is_some();
                    self.check_quantified(&machine.name, &machine.attributes, vec![formula], divided);
                    let Machine { slice, time, .. } = self.graph.spec().machines[i];
                    self.push_property(&machine.name, &machine.attributes, formula, slice, time);
                }
                PropertySource::Chain(i) => {
                    let chain = &ast.chains[i];
                    self.check_attributes(&chain.attributes, true);
                    self.refuse_steady(&chain.attributes);
                    self.check_quantified(&chain.name, &chain.attributes, Vec::new(), true);
                    if let Some((formula, slice, time)) = self.lower_chain(i) {
                        self.push_property(&chain.name, &chain.attributes, formula, slice, time);
                    }
                }
                PropertySource::ChainBound(i, bound) => {
                    self.lower_chain_bound(i, &ast.chains[i].bounds[bound])
                }
            }
        }
        self.lower_asserts();
        self.check_causes();
        self.implicit_time = None;
        // Check unused definitions too.
        for i in self.order.clone() {
            let root = ast.bindings[i].body.root;
            let models = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense];
            if root.is_none_or(|root| models.into_iter().all(|m| self.lowered_to(root, m).is_none())) {
                let model = self.model(&[], self.units[i]);
                self.lower_binding(i, model);
            }
        }
        self.lower_tests();
        self.lower_keyed_events();
        // After an error, a use may be missing.
        if !self.diagnostics.iter().any(Diagnostic::is_error) {
            self.warn_of_unused();
        }
    }

    fn lower_property(&mut self, property: &ast::Property) {
        self.check_attributes(&property.attributes, true);
        self.begin(&property.name, &property.attributes);
        let units = self.units_of(property.body.nodes());
        let model = self.model(&property.attributes, units);
        let by_option = self.linear && !attributes::chooses_time(&property.attributes);
        self.interpolated = by_option || attributes::linear_interpolation(&property.attributes).is_some();
        let lowered = self.lower_root(property.body, model);
        self.interpolated = false;
        let slice = self.lower_each(property.each, &property.attributes, model);
        let Some((root, formula)) = property.body.root.zip(lowered) else { return };
        let warning = super::constant_property(&self.graph, formula, &property.name.text, self.span(root));
        self.diagnostics.extend(warning);
        // A constant formula has been reported.
        if self.graph.constant(formula).is_none() {
            let divided = property.each.is_some();
            self.check_quantified(&property.name, &property.attributes, vec![formula], divided);
        }
        self.push_property(&property.name, &property.attributes, formula, slice, model);
    }

    pub(super) fn push_property(
        &mut self,
        name: &Name,
        attributes: &[Attribute],
        formula: ExprId,
        slice: Option<SliceId>,
        time: TimeModel,
    ) {
        let robust = self.robust(attributes, formula);
        let linear = self.linear(name, attributes, formula, slice, time);
        self.check_used_machines(name, vec![formula], slice, time);
        self.check_undivided(name, vec![formula], slice);
        self.check_events(name, formula, slice);
        if time == TimeModel::Dense {
            self.warn_of_missed_edges(name, vec![formula], linear);
        }
        if let Some(slice) = slice {
            self.warn_of_unused_parameter(slice, name, formula);
        }
        let attributes = attributes.iter().map(|a| (a.name.text.clone(), a.value.clone())).collect();
        let premises = self.graph.premises(formula);
        let mentions = self.mentions(name, formula, slice);
        let property = Property {
            mentions,
            attributes,
            slice,
            robust,
            linear,
            time,
            premises,
            ..Property::new(&name.text, formula)
        };
        let spec = self.graph.spec_mut();
        spec.properties.push(property);
        spec.places.properties.push(name.span);
    }

    /// Returns the topics that the text of a property or machine with `for each` mentions, but not what is left of it once
    /// constants are folded.
    fn mentions(&mut self, name: &Name, formula: ExprId, slice: Option<SliceId>) -> Vec<TopicId> {
        let Some(slice) = slice else { return Vec::new() };
        let ast = self.ast;
        let property = ast.properties.iter().find(|property| property.name.span == name.span);
        let machine = ast.machines.iter().position(|machine| machine.name.span == name.span);
        let each = property.and_then(|property| property.each).or_else(|| ast.machines[machine?].each);
        let mut open: Vec<Body> = property.map(|property| property.body).into_iter().collect();
        open.extend(each.and_then(|each| ast.for_eaches[each].until));
        open.extend(machine.into_iter().flat_map(|machine| ast.machines[machine].bodies()));
        let (mut seen, mut mentioned) = (HashSet::new(), BTreeSet::new());
        let models = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense];
        while let Some(body) = open.pop() {
            if !seen.insert(body.first) {
                continue;
            }
            for node in body.nodes() {
                match &self.meanings[node] {
                    Meaning::Binding(binding) => open.push(ast.bindings[*binding].body),
                    Meaning::InState(machine, _) => open.extend(ast.machines[machine.0 as usize].bodies()),
                    _ => {}
                }
                for id in models.map(|model| self.lowered_to(node, model)).into_iter().flatten() {
                    mentioned.extend(self.graph.topics_of(id));
                }
            }
        }
        let until = self.graph.spec().slices.get(slice.0 as usize).and_then(|slice| slice.until);
        for left in [Some(formula), until].into_iter().flatten() {
            let left = self.graph.topics_of(left);
            mentioned.retain(|topic| !left.contains(topic));
        }
        mentioned.into_iter().collect()
    }

    fn warn_of_unused(&mut self) {
        let ast = self.ast;
        // A file that several specifications import has definitions that only some of them use, and a leading
        // underscore marks an intentionally unused name.
        let is_meant = |name: &Name| name.span.start < ast.imported || name.text.starts_with('_');
        for definition in ast.definitions.iter().filter(|definition| !definition.used) {
            if !is_meant(&definition.name) {
                let message = format!("'{}' is never used", definition.name.text);
                self.diagnostics.push(Diagnostic::new(Code::Unused, definition.name.span, message));
            }
        }
        for (binding, used) in ast.bindings.iter().zip(&self.used) {
            if !used && !is_meant(&binding.name) {
                let message = format!("'{}' is never used", binding.name.text);
                self.diagnostics.push(Diagnostic::new(Code::Unused, binding.name.span, message));
            }
        }
    }

    /// Translates an expression in a time model, with the definitions that it uses.
    pub(super) fn lower_root(&mut self, body: Body, model: TimeModel) -> Option<ExprId> {
        let named = body.nodes().flat_map(|node| self.bindings_in(node)).collect();
        self.lower_needed(named, model);
        self.lower_body(body, model)
    }

    /// Translates a bound outside of a formula, with the definitions that it uses.
    pub(super) fn lower_reach(&mut self, bound: &Bound, model: TimeModel) -> Option<u64> {
        let named = self.bounds.get(&bound.span).copied();
        self.lower_needed(named.into_iter().collect(), model);
        self.lower_bound(bound, model)
    }

    /// Translates definitions and their dependencies.
    fn lower_needed(&mut self, mut open: Vec<usize>, model: TimeModel) {
        let mut needed = vec![false; self.references.len()];
        while let Some(binding) = open.pop() {
            if !std::mem::replace(&mut needed[binding], true) {
                open.extend(&self.references[binding]);
            }
        }
        for binding in self.order.clone() {
            if needed[binding] {
                self.lower_binding(binding, model);
            }
        }
    }

    /// Returns the definitions that a node names.
    fn bindings_in(&self, node: NodeId) -> Vec<usize> {
        let named = if let Meaning::Binding(i) = self.meanings[node] { Some(i) } else { None };
        let bounds = self.ast.nodes[node].kind.reaches().filter_map(|bound| self.bounds.get(&bound.span));
        named.into_iter().chain(bounds.copied()).collect()
    }

    fn lower_binding(&mut self, i: usize, model: TimeModel) {
        let binding = &self.ast.bindings[i];
        if binding.body.root.is_some_and(|root| self.lowered_to(root, model).is_some()) {
            return;
        }
        let lowered = self.lower_body(binding.body, model);
        if let Some((root, lowered)) = binding.body.root.zip(lowered)
            && binding.constant
            && self.graph.constant(lowered).is_none()
        {
            let message = format!("`const` '{}' is not a constant", binding.name.text);
            self.diagnostics.push(
                Diagnostic::new(Code::NotConstant, self.span(root), message)
                    .help("declare a value that changes with messages with `let` instead of `const`"),
            );
        }
    }

    fn lower_body(&mut self, body: Body, model: TimeModel) -> Option<ExprId> {
        if self.lowered[model as usize].is_empty() {
            self.lowered[model as usize] = vec![None; self.ast.nodes.len()];
        }
        for node in body.nodes() {
            if !self.is_invalid(node) {
                self.graph.at(self.span(node));
                self.lowered[model as usize][node] = self.lower_node(node, model);
            }
        }
        self.lowered_to(body.root?, model)
    }

    /// Returns the node that a syntax node became in a time model.
    pub(super) fn lowered_to(&self, node: NodeId, model: TimeModel) -> Option<ExprId> {
        self.lowered[model as usize].get(node).copied().flatten()
    }

    fn lower_node(&mut self, node: NodeId, model: TimeModel) -> Option<ExprId> {
        match self.meanings[node] {
            Meaning::Itself => self.lower_operation(node, model),
            _ => self.lower_meaning(node, model),
        }
    }

    /// Translates a node that names something.
    fn lower_meaning(&mut self, node: NodeId, model: TimeModel) -> Option<ExprId> {
        let ast = self.ast;
        match &self.meanings[node] {
            Meaning::Invalid | Meaning::Itself => None,
            Meaning::Formula { topic, .. } => self.lower_formula(*topic, &ast.nodes[node].kind, model),
            Meaning::Binding(i) => {
                let binding = &ast.bindings[*i];
                let id = self.lowered_to(binding.body.root?, model)?;
                self.graph.name(id, &binding.name.text);
                Some(id)
            }
            Meaning::Field { .. } => {
                let (topic, path, value_type) = self.field_of(node)?;
                Some(self.graph.add(Expr::Field { topic, path, value_type }))
            }
            Meaning::Length { topic, path, of } => {
                let length = Expr::Length { topic: *topic, path: path.clone(), of: *of };
                Some(self.graph.add(length))
            }
            Meaning::Number { topic, path } => {
                let number = Expr::Number { topic: *topic, path: path.clone() };
                Some(self.graph.add(number))
            }
            Meaning::Elements { .. } => self.lower_elements(node, model),
            Meaning::Parameter(each, key) => {
                let (each, key) = (*each, *key);
                let value_type = self.parameter_type(each, key)?;
                Some(self.graph.add(Expr::Key(key as u32, value_type)))
            }
            Meaning::MachineVariable(machine, variable) => {
                let (machine, variable) = (*machine, *variable);
                let value_type = self.machine_data.get(machine)?.get(variable)?.as_ref()?.value_type();
                let id = MachineId(machine as u32);
                Some(self.graph.add(Expr::MachineVariable(id, variable as u32, value_type)))
            }
            Meaning::Chain(chain, measure) => {
                let node = Expr::Chain(*chain, *measure);
                Some(self.graph.add(node))
            }
            Meaning::InState(machine, states) => {
                let node = Expr::InState(*machine, states.clone());
                Some(self.graph.add(node))
            }
            Meaning::Topic(topic) => self.lower_topic(node, *topic, model),
        }
    }

    /// Translates a node with the meaning that its syntax determines.
    fn lower_operation(&mut self, node: NodeId, model: TimeModel) -> Option<ExprId> {
        let of = |c: &Self, operand: &NodeId| c.lowered_to(*operand, model);
        let ast = self.ast;
        let id = match &ast.nodes[node].kind {
            NodeKind::Literal(value) => self.graph.literal(value.clone()),
            NodeKind::Unary(prefix, a) => return self.lower_prefix(node, prefix, *a, model),
            NodeKind::Binary(infix, a, b) => return self.lower_infix(node, infix, *a, *b, model),
            NodeKind::If(condition, yes, no) => {
                let (condition, yes, no) = (of(self, condition)?, of(self, yes)?, of(self, no)?);
                self.graph.choice(condition, yes, no)
            }
            NodeKind::Call(function, arguments) => {
                let arguments: Option<Vec<_>> = arguments.iter().map(|a| of(self, a)).collect();
                return self.lower_call(node, *function, &arguments?);
            }
            NodeKind::Operator { operator, operands, lasting } => {
                let operands: Option<Vec<_>> = operands.iter().map(|a| of(self, a)).collect();
                return self.lower_operator(node, operator, &operands?, lasting.as_deref(), model);
            }
            NodeKind::Same(inner) => of(self, inner)?,
            NodeKind::Argument(inner, value_type, parameter) => {
                let argument = of(self, inner)?;
                return self.lower_argument(node, argument, *value_type, *parameter);
            }
            NodeKind::Member { operand, members, interval, negated } => {
                let operand = of(self, operand)?;
                let members: Option<Vec<_>> = members.iter().map(|member| of(self, member)).collect();
                let found = self.lower_member(node, operand, &members?, *interval)?;
                if *negated { self.graph.not(found) } else { found }
            }
            NodeKind::Window { aggregate, operand, percentage, over, full } => {
                let aggregate = match percentage {
                    Some(percentage) => self.lower_percentage(*percentage, model)?,
                    None => *aggregate,
                };
                let window = self.lower_window(node, aggregate, *operand, over, model)?;
                return Some(if *full { full_window(&mut self.graph, window, model) } else { window });
            }
            NodeKind::Variable(variable) => {
                let value_type = *self.variable_types.get(*variable)?;
                let id = self.variable_id(*variable, model);
                self.graph.add(Expr::Variable(id, value_type))
            }
            NodeKind::Quantified { all, variables, body } => {
                let mut id = of(self, body)?;
                for variable in variables.iter().rev() {
                    let variable = self.variable_id(*variable, model);
                    id = self.graph.quantified(*all, variable, id);
                }
                id
            }
            // These have a meaning of their own, or are invalid.
            NodeKind::Path(..)
            | NodeKind::Length(..)
            | NodeKind::Number(..)
            | NodeKind::Elements(_)
            | NodeKind::AtomField(..)
            | NodeKind::Atom { .. }
            | NodeKind::On(_)
            | NodeKind::In(..)
            | NodeKind::Samples(_)
            | NodeKind::Measure(..)
            | NodeKind::Event(..)
            | NodeKind::Rye { .. }
            | NodeKind::Invalid => return None,
        };
        Some(id)
    }

    /// Translates an operator before its operand.
    fn lower_prefix(&mut self, node: NodeId, prefix: &Prefix, a: NodeId, model: TimeModel) -> Option<ExprId> {
        let bounds = self.bounds_of(node, model)?;
        let a = self.lowered_to(a, model)?;
        Some(match prefix {
            Prefix::Negate => return self.has_result(node, |g| g.unary(UnaryOp::Negate, a)),
            Prefix::Not => self.graph.not(a),
            Prefix::Previously => self.graph.previously(a),
            Prefix::Once(_) => self.graph.once(bounds, a),
            Prefix::Historically(_) => self.graph.historically(bounds, a),
            Prefix::Next => return self.lower_next(node, a, model),
            Prefix::Eventually(_) => self.graph.eventually(bounds, a),
            Prefix::Always(_) => self.graph.always(bounds, a),
        })
    }

    /// Translates an operator between its operands.
    fn lower_infix(
        &mut self,
        node: NodeId,
        infix: &Infix,
        a: NodeId,
        b: NodeId,
        model: TimeModel,
    ) -> Option<ExprId> {
        let bounds = self.bounds_of(node, model)?;
        let (a, b) = (self.lowered_to(a, model)?, self.lowered_to(b, model)?);
        Some(match infix {
            Infix::Arithmetic(op) => return self.lower_arithmetic(node, *op, a, b),
            Infix::Compare(op) => self.lower_comparison(node, *op, a, b),
            Infix::Iff => self.graph.iff(a, b),
            Infix::Implies => self.graph.implies(a, b),
            Infix::Or => self.graph.or(a, b),
            Infix::And => self.graph.and(a, b),
            Infix::Since(_) => self.graph.since(bounds, a, b),
            Infix::Until(_) => self.graph.until(bounds, a, b),
        })
    }

    /// Returns the bounds of a temporal operator; the whole past for other nodes.
    fn bounds_of(&mut self, node: NodeId, model: TimeModel) -> Option<Bounds> {
        let ast = self.ast;
        match ast.nodes[node].kind.bounds() {
            Some(bounds) => self.lower_bounds(bounds, model),
            None => Some(Bounds::ALL),
        }
    }

    /// Translates a node that names a topic.
    fn lower_topic(&mut self, node: NodeId, topic: TopicId, model: TimeModel) -> Option<ExprId> {
        let expr = match &self.ast.nodes[node].kind {
            NodeKind::On(_) => Expr::On(topic),
            NodeKind::Measure(Measure::Age, _) => Expr::Age(topic),
            NodeKind::Measure(Measure::Latency, _) => Expr::Latency(topic),
            NodeKind::Measure(Measure::Jitter, _) => Expr::Jitter(topic),
            NodeKind::Event(event, _) => self.lower_event(*event, topic),
            NodeKind::Atom { pairs, .. } => return self.lower_atom(topic, pairs, model),
            _ => return None,
        };
        Some(self.graph.add(expr))
    }

    /// Translates an atom: the current message has these values. Unlike for a field, values of earlier messages do not
    /// count.
    fn lower_atom(&mut self, topic: TopicId, pairs: &[Pair], model: TimeModel) -> Option<ExprId> {
        let mut bound: Vec<(Path, VariableId, ValueType)> = Vec::new();
        let mut conditions = Vec::new();
        for pair in pairs {
            match *pair {
                Pair::Bind { field, variable } => {
                    let NodeKind::Variable(variable) = self.ast.nodes[variable].kind else { return None };
                    let (_, path, _) = self.field_of(field)?;
                    let value_type = *self.variable_types.get(variable)?;
                    bound.push((path, self.variable_id(variable, model), value_type));
                }
                Pair::Where { field, condition } => {
                    let (_, path, _) = self.field_of(field)?;
                    let carried = self.graph.add(Expr::Carried { topic, path });
                    conditions.push(carried);
                    conditions.push(self.lowered_to(condition, model)?);
                }
            }
        }
        let first = match bound.is_empty() {
            true if conditions.is_empty() => Expr::On(topic),
            true => Expr::Literal(Value::Bool(true)),
            false => Expr::Bind { topic, fields: bound },
        };
        let first = self.graph.add(first);
        Some(conditions.into_iter().fold(first, |all, condition| self.graph.and(all, condition)))
    }

    fn lower_formula(&mut self, topic: TopicId, kind: &NodeKind, model: TimeModel) -> Option<ExprId> {
        let NodeKind::Rye { body, .. } = kind else { return None };
        let fields = self.fields(topic);
        let (model, graph) = (Some(model), &mut self.graph);
        let target = rye::Target { topic, fields, model, graph, diagnostics: self.diagnostics };
        rye::formula(self.text, *body, target)
    }

    fn lower_next(&mut self, node: NodeId, a: ExprId, model: TimeModel) -> Option<ExprId> {
        if model != TimeModel::Dense {
            return Some(self.graph.add(Expr::Next(a)));
        }
        let message = "`next` is not defined in dense time";
        let diagnostic = Diagnostic::new(Code::WrongTimeModel, self.span(node), message)
            .help("write `eventually[0, 1 s] p`, or count steps with `@time(steps)` before the property");
        let diagnostic = self.because_of_option(diagnostic);
        self.diagnostics.push(diagnostic);
        None
    }

    /// Returns the topic whose messages a window counts, whatever is in them: of `count(topic)` and `count(on(topic))`.
    pub(super) fn sampled(&self, operand: NodeId) -> Option<TopicId> {
        match (&self.meanings[operand], &self.ast.nodes[operand].kind) {
            (Meaning::Topic(topic), NodeKind::Samples(_) | NodeKind::On(_)) => Some(*topic),
            _ => None,
        }
    }

    fn lower_window(
        &mut self,
        node: NodeId,
        aggregate: Aggregate,
        operand: NodeId,
        over: &Bound,
        model: TimeModel,
    ) -> Option<ExprId> {
        let length = self.lower_bound(over, model)?;
        let (topics, operand) = match self.sampled(operand) {
            Some(topic) => (vec![topic], None),
            None => {
                let id = self.lowered_to(operand, model)?;
                (self.graph.topics_of(id), Some(id))
            }
        };
        let diagnostic = if length == 0 {
            Diagnostic::new(Code::InvalidBounds, over.span, "a window needs a length above zero")
        } else if topics.is_empty() {
            let message = "this window measures nothing, because it mentions no topic";
            Diagnostic::new(Code::NeverUpdated, self.span(node), message)
        } else if aggregate.needs_time() && model == TimeModel::Steps {
            let (what, help) = match aggregate {
                Aggregate::Rate => (
                    "messages per second",
                    "write a duration, such as `over 1 s`, or count messages in steps with `count(…) over 10`",
                ),
                Aggregate::Integral => ("units times seconds", "write a duration, such as `over 1 s`"),
                _ => ("units per second", "write a duration, such as `over 1 s`"),
            };
            let message = format!("`{}` is in {what}, but this property counts steps", aggregate.name());
            let diagnostic = Diagnostic::new(Code::WrongTimeModel, over.span, message).help(help);
            self.because_of_option(diagnostic)
        } else {
            let operand = match (operand, aggregate) {
                // Not an integer sum, which could overflow.
                (Some(id), aggregate) if aggregate.is_of_floats() => Some(self.graph.widen(id)),
                (operand, _) => operand,
            };
            return Some(self.graph.add(Expr::Window { aggregate, over: length, operand, topics }));
        };
        self.diagnostics.push(diagnostic);
        None
    }
}
