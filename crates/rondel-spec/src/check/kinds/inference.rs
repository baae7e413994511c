//! Inference of the kinds of expressions, from their syntax and from the meanings of their names.

use rondel_event::{Comparison, ValueType};

use super::{Kind, Reason};
use crate::check::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic};
use crate::operators::{OperandKind, Operator};
use crate::spec::BinaryOp;
use crate::syntax::ast::{Body, Function, Infix, NodeId, NodeKind, Pair, Prefix};

impl Checker<'_> {
    pub(in crate::check) fn infer_kinds(&mut self) {
        let ast = self.ast;
        // Definitions come before their uses.
        for binding in self.order.clone() {
            for node in ast.bindings[binding].body.nodes() {
                self.infer(node);
            }
        }
        self.infer_machines();
        self.infer_eaches();
        for property in &ast.properties {
            self.infer_truth(property.body);
        }
        for assert in &ast.asserts {
            self.infer_truth(assert.body);
            assert.mode.into_iter().for_each(|mode| self.infer_truth(mode));
        }
        self.check_lengths();
        self.settle_parameters();
        self.settle_variables();
        // After an error, the use that determines a type may be missing.
        if !self.diagnostics.iter().any(Diagnostic::is_error) {
            self.report_guesses();
        }
    }

    /// Infers an expression that must be boolean.
    pub(in crate::check) fn infer_truth(&mut self, body: Body) {
        for node in body.nodes() {
            self.infer(node);
        }
        if let Some(root) = body.root {
            self.expect(root, Kind::Bool);
        }
    }

    /// Warns about undeclared fields whose type cannot be inferred; they are read as floats.
    fn report_guesses(&mut self) {
        let fields: Vec<_> = self.kinds.fields.values().copied().collect();
        let mut guessed: Vec<_> = fields
            .into_iter()
            .filter(|(v, _)| self.kinds.kind(*v) == Kind::Anything)
            .map(|(_, n)| n)
            .collect();
        guessed.sort();
        for node in guessed {
            let span = self.span(node);
            let field = span.of(self.text);
            let message = format!("cannot infer the type of '{field}': a float is assumed");
            let help = match self.ast.single {
                true => "a specification can declare the types of fields in a schema",
                false => {
                    "declare the field in the schema of its topic, such as `topic name { field: string }`"
                }
            };
            self.diagnostics.push(Diagnostic::new(Code::GuessedType, span, message).help(help));
        }
    }

    pub(in crate::check) fn infer(&mut self, node: NodeId) {
        match &self.meanings[node] {
            Meaning::Itself | Meaning::Topic(_) => self.infer_operation(node),
            _ => self.infer_meaning(node),
        }
    }

    /// Infers the kind of a node that names something.
    fn infer_meaning(&mut self, node: NodeId) {
        let ast = self.ast;
        let equal = match &self.meanings[node] {
            Meaning::Itself | Meaning::Topic(_) => return,
            Meaning::Formula { .. } | Meaning::InState(..) => return self.result(node, Kind::Bool),
            Meaning::Elements { .. } => {
                let value_type = match &ast.nodes[node].kind {
                    NodeKind::Elements(of) => of.quantifier.value_type(),
                    _ => ValueType::Bool,
                };
                return self.result(node, Kind::of(value_type));
            }
            Meaning::Chain(..) => return self.result(node, Kind::Duration),
            Meaning::Length { .. } | Meaning::Number { .. } => return self.result(node, Kind::Number),
            Meaning::Field { declared: Some((value_type, place)), .. } => {
                let reason = place.map(|span| Reason { span, declared: true });
                return self.kinds.set(node, Kind::of(*value_type), reason);
            }
            Meaning::Field { topic, path, declared: None } => {
                let fresh = self.kinds.parents.len();
                let (variable, _) = *self.kinds.fields.entry((*topic, path.clone())).or_insert((fresh, node));
                if variable == fresh {
                    self.kinds.parents.push(fresh);
                    self.kinds.known.push((Kind::Anything, None));
                }
                let (kind, reason) = (self.kinds.kind(variable), self.kinds.reason(variable));
                return self.kinds.unite(variable, node, kind, reason);
            }
            Meaning::Invalid => None,
            Meaning::Binding(i) => ast.bindings[*i].body.root,
            Meaning::Parameter(each, key) => ast.for_eaches[*each].parameters[*key].fields.first().copied(),
            Meaning::MachineVariable(machine, variable) => {
                ast.machines[*machine].variables[*variable].initial.root
            }
        };
        match equal {
            Some(equal) => self.same(equal, node, node),
            None => self.kinds.set(node, Kind::Invalid, None),
        }
    }

    /// Infers the kinds of a node and its operands from its syntax.
    fn infer_operation(&mut self, node: NodeId) {
        let ast = self.ast;
        match &ast.nodes[node].kind {
            NodeKind::Literal(value) => self.result(node, Kind::of(value.value_type())),
            NodeKind::Unary(Prefix::Negate, a) => self.infer_size(node, *a),
            NodeKind::Unary(_, a) => {
                self.expect(*a, Kind::Bool);
                self.result(node, Kind::Bool);
            }
            NodeKind::Binary(Infix::Arithmetic(op), a, b) => self.infer_arithmetic(node, *op, *a, *b),
            NodeKind::Binary(Infix::Compare(comparison), a, b) => {
                if !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
                    self.expect(*a, Kind::Ordered);
                    self.expect(*b, Kind::Ordered);
                }
                self.same(*a, *b, node);
                self.result(node, Kind::Bool);
            }
            NodeKind::Binary(_, a, b) => {
                self.expect(*a, Kind::Bool);
                self.expect(*b, Kind::Bool);
                self.result(node, Kind::Bool);
            }
            NodeKind::If(condition, yes, no) => self.infer_choice(node, *condition, *yes, *no),
            NodeKind::Call(function, arguments) => self.infer_call(node, *function, arguments),
            NodeKind::Same(inner) => self.same(*inner, node, node),
            NodeKind::Argument(inner, value_type, parameter) => {
                self.infer_argument(node, *inner, *value_type, *parameter);
            }
            NodeKind::Member { operand, members, interval, .. } => {
                self.infer_member(node, *operand, members, interval.is_some());
            }
            NodeKind::Event(event, _) if event.has_publisher() => self.result(node, Kind::Text),
            NodeKind::On(_) | NodeKind::Event(..) => self.result(node, Kind::Bool),
            NodeKind::Measure(..) => self.result(node, Kind::Duration),
            NodeKind::Operator { operator, operands, .. } => self.infer_operator(node, operator, operands),
            NodeKind::Window { aggregate, operand, percentage, .. } => {
                percentage.iter().for_each(|percentage| self.expect(*percentage, Kind::Number));
                self.infer_window(node, *aggregate, *operand);
            }
            NodeKind::Variable(variable) => {
                let variable = ast.nodes.len() + variable;
                let (kind, reason) = (self.kinds.kind(variable), self.kinds.reason(variable));
                self.kinds.unite(variable, node, kind, reason);
            }
            NodeKind::Atom { pairs, .. } => self.infer_atom(node, pairs),
            NodeKind::Quantified { body, .. } => {
                self.expect(*body, Kind::Bool);
                self.result(node, Kind::Bool);
            }
            NodeKind::Path(..)
            | NodeKind::Length(..)
            | NodeKind::Number(..)
            | NodeKind::Elements(_)
            | NodeKind::In(..)
            | NodeKind::Samples(_)
            | NodeKind::AtomField(..)
            | NodeKind::Rye { .. }
            | NodeKind::Invalid => {}
        }
    }

    fn infer_choice(&mut self, node: NodeId, condition: NodeId, yes: NodeId, no: NodeId) {
        self.expect(condition, Kind::Bool);
        self.same(yes, no, node);
        if self.is_invalid(node) {
            self.kinds.set(node, Kind::Invalid, None);
        } else {
            self.same(yes, node, node);
        }
    }

    /// Infers the kinds of `x in (a, b)`; those of an interval have an order.
    fn infer_member(&mut self, node: NodeId, operand: NodeId, members: &[NodeId], is_interval: bool) {
        for member in [&[operand], members].concat() {
            if is_interval {
                self.expect(member, Kind::Ordered);
            }
            if member != operand {
                self.same(operand, member, node);
            }
        }
        self.result(node, Kind::Bool);
    }

    fn infer_atom(&mut self, node: NodeId, pairs: &[Pair]) {
        for pair in pairs {
            match *pair {
                Pair::Bind { field, variable } => self.same(field, variable, node),
                Pair::Where { condition, .. } => self.expect(condition, Kind::Bool),
            }
        }
        self.result(node, Kind::Bool);
    }

    fn infer_call(&mut self, node: NodeId, function: Function, arguments: &[NodeId]) {
        let (wanted, kind) = match function {
            Function::Abs => return arguments.iter().for_each(|a| self.infer_size(node, *a)),
            Function::Min | Function::Max => {
                let op = if function == Function::Min { BinaryOp::Min } else { BinaryOp::Max };
                if let [a, b] = *arguments {
                    self.infer_arithmetic(node, op, a, b);
                }
                return;
            }
            Function::Clamp => return self.infer_clamp(node, arguments),
            Function::Value(function) => {
                for (argument, wanted) in arguments.iter().zip(function.parameters()) {
                    self.expect(*argument, Kind::of(*wanted));
                }
                return self.result(node, Kind::of(function.result()));
            }
            Function::StartsWith => (Kind::Text, Kind::Bool),
            Function::Rising | Function::Falling => (Kind::Bool, Kind::Bool),
            Function::Changed => (Kind::Anything, Kind::Bool),
            Function::Prev => {
                arguments.iter().for_each(|a| self.same(*a, node, node));
                return;
            }
        };
        arguments.iter().for_each(|a| self.expect(*a, wanted));
        self.result(node, kind);
    }

    fn infer_operator(&mut self, node: NodeId, operator: &Operator, operands: &[NodeId]) {
        let kind = match operator.operands {
            OperandKind::Truth => Kind::Bool,
            OperandKind::Ordered => Kind::Ordered,
            OperandKind::Number => Kind::Number,
            OperandKind::Any => Kind::Anything,
        };
        operands.iter().for_each(|operand| self.expect(*operand, kind));
        if let [first, others @ ..] = operands {
            for other in others {
                if !self.is_invalid(*first) {
                    let kind = self.kinds.kind(*first);
                    self.expect(*other, kind);
                }
                self.same(*first, *other, node);
            }
        }
        self.result(node, Kind::Bool);
    }
}
