//! Translation of calls, memberships, arithmetic and comparisons.

use rondel_event::{Comparison, Value, ValueType};

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::functions::{FunctionId, Kernel, pattern};
use crate::graph::Graph;
use crate::operators::Operator;
use crate::spec::places::Call;
use crate::spec::{BinaryOp, ExprId, TimeModel, UnaryOp};
use crate::syntax::ast::{Bound, Function, Infix, NodeId, NodeKind};

impl Checker<'_> {
    pub(super) fn lower_call(
        &mut self,
        node: NodeId,
        function: Function,
        arguments: &[ExprId],
    ) -> Option<ExprId> {
        let a = *arguments.first()?;
        let b = arguments.get(1).copied().unwrap_or(a);
        let id = match function {
            Function::Abs => return self.has_result(node, |g| g.unary(UnaryOp::Abs, a)),
            Function::Min => return self.lower_arithmetic(node, BinaryOp::Min, a, b),
            Function::Max => return self.lower_arithmetic(node, BinaryOp::Max, a, b),
            Function::Clamp => {
                self.check_limits(node, b, *arguments.get(2)?)?;
                let low = self.lower_arithmetic(node, BinaryOp::Max, a, b)?;
                return self.lower_arithmetic(node, BinaryOp::Min, low, *arguments.get(2)?);
            }
            Function::Value(function) => {
                let b = arguments.get(1).copied();
                return self.lower_function(node, function, a, b);
            }
            Function::StartsWith => self.graph.starts_with(a, b),
            Function::Prev => self.graph.prev(a),
            Function::Rising => self.graph.rising(a),
            Function::Falling => self.graph.falling(a),
            Function::Changed => {
                let topics = self.graph.topics_of(a);
                if topics.is_empty() {
                    let message = "no message changes this value, because it mentions no topic";
                    let operand = self.ast.nodes[node].kind.operands().first().copied();
                    let span = operand.map_or(self.span(node), |a| self.span(a));
                    self.diagnostics.push(Diagnostic::new(Code::NeverUpdated, span, message));
                    return None;
                }
                self.graph.changed(&topics, a)
            }
        };
        Some(id)
    }

    /// Reports a `clamp` between constants of which the lower one is above the upper one.
    fn check_limits(&mut self, node: NodeId, low: ExprId, high: ExprId) -> Option<()> {
        if self.graph.constant(low).is_none() || self.graph.constant(high).is_none() {
            return Some(());
        }
        let inverted = self.graph.compare(Comparison::Greater, low, high);
        if self.graph.constant(inverted) != Some(&Value::Bool(true)) {
            return Some(());
        }
        let message = "the lower limit of `clamp` is above the upper one";
        let diagnostic = Diagnostic::new(Code::WrongArguments, self.span(node), message);
        let operands = self.ast.nodes[node].kind.operands();
        let written = |i: usize| operands.get(i).map_or("", |operand| self.span(*operand).of(self.text));
        let help =
            format!("write the lower limit first: `clamp({}, {}, {})`", written(0), written(2), written(1));
        self.diagnostics.push(diagnostic.help(help));
        None
    }

    pub(super) fn lower_operator(
        &mut self,
        node: NodeId,
        operator: &'static Operator,
        operands: &[ExprId],
        lasting: Option<&Bound>,
        model: TimeModel,
    ) -> Option<ExprId> {
        let (name, span) = (operator.name, self.span(node));
        let is_float = |id: &ExprId| self.graph.value_type(*id) == ValueType::Float;
        let operands: Vec<ExprId> = match operands.iter().any(is_float) {
            true => operands.iter().map(|id| self.graph.widen(*id)).collect(),
            false => operands.to_vec(),
        };
        let length = match lasting {
            Some(bound) => Some(self.lower_bound(bound, model)?),
            None => None,
        };
        let diagnostic = match (lasting, length, operands.first()) {
            (Some(bound), Some(0), _) => {
                let message = format!("`{name}` needs a duration above zero");
                Diagnostic::new(Code::InvalidBounds, bound.span, message)
            }
            (.., Some(first)) if self.graph.topics_of(*first).is_empty() => {
                let message = "no message changes this value, because it mentions no topic";
                let operand = self.ast.nodes[node].kind.operands().first().copied();
                let span = operand.map_or(span, |operand| self.span(operand));
                Diagnostic::new(Code::NeverUpdated, span, message)
            }
            _ => match (operator.build)(&mut self.graph, &operands, length.unwrap_or(0)) {
                Ok(id) => {
                    let call = Call { word: name, operands, lasting: length };
                    if self.graph.constant(id).is_none() {
                        self.graph.spec_mut().places.calls.entry(id).or_insert(call);
                    }
                    return Some(id);
                }
                Err(refused) => Diagnostic::new(refused.code, span, refused.message).help(refused.help),
            },
        };
        self.diagnostics.push(diagnostic);
        None
    }

    /// Translates an argument of a definition: it has the type of its parameter, so that an integer given for a `float`
    /// is one.
    pub(super) fn lower_argument(
        &mut self,
        node: NodeId,
        argument: ExprId,
        value_type: ValueType,
        parameter: Span,
    ) -> Option<ExprId> {
        match (value_type, self.graph.value_type(argument)) {
            (ValueType::Float, _) => Some(self.graph.widen(argument)),
            (ValueType::Int, ValueType::Float) => {
                let name = parameter.of(self.text);
                let message = format!("parameter '{name}' is an int, found a float");
                let diagnostic = Diagnostic::new(Code::ArgumentType, self.span(node), message)
                    .label(parameter, "declared here")
                    .help(format!("write `{name}: float`, or declare the field as an int in its topic"));
                self.diagnostics.push(diagnostic);
                None
            }
            _ => Some(argument),
        }
    }

    /// Translates a call of the table of functions.
    fn lower_function(
        &mut self,
        node: NodeId,
        function: FunctionId,
        a: ExprId,
        b: Option<ExprId>,
    ) -> Option<ExprId> {
        if let (Kernel::Matches, Some(b)) = (function.kernel(), b) {
            let place =
                self.ast.nodes[node].kind.operands().get(1).map_or(self.span(node), |b| self.span(*b));
            let problem = match self.graph.constant(b) {
                Some(Value::String(text)) => pattern(text).err().map(|reason| {
                    Diagnostic::new(Code::InvalidPattern, place, format!("invalid regular expression: {reason}"))
                        .help("the syntax is that of https://docs.rs/regex; write `contains(s, \"…\")` for plain text")
                }),
                _ if matches!(self.graph.constant(a), Some(Value::String(_))) => Some(
                    Diagnostic::new(Code::InvalidPattern, place, "a regular expression must be a constant")
                        .help("write the text first: `matches(s, \"…\")`"),
                ),
                _ => Some(
                    Diagnostic::new(Code::InvalidPattern, place, "a regular expression must be a constant")
                        .help("write it in quotes, such as `\"^lidar_[0-9]+$\"`, or use `contains(s, t)`"),
                ),
            };
            if let Some(problem) = problem {
                self.diagnostics.push(problem);
                return None;
            }
        }
        let takes_numbers = function.parameters()[0] == ValueType::Float;
        let (a, b) = match takes_numbers {
            true => (self.graph.widen(a), b.map(|b| self.graph.widen(b))),
            false => (a, b),
        };
        let id = self.graph.call(function, a, b);
        if id.is_none() {
            let name = function.name();
            let message = format!("`{name}` has no result for these constants");
            let diagnostic = Diagnostic::new(Code::NoResult, self.span(node), message);
            let help = match name {
                "sqrt" => format!("`{name}` takes a number of at least 0"),
                "log" | "log10" => format!("`{name}` takes a number above 0"),
                "asin" | "acos" => format!("`{name}` takes a number from -1 to 1"),
                "pow" => {
                    "write a base above 0, and a smaller exponent if the result does not fit into a float"
                        .to_owned()
                }
                _ => "write a smaller number: the result does not fit into a float".to_owned(),
            };
            self.diagnostics.push(diagnostic.help(help));
        }
        id
    }

    /// Translates a membership: a disjunction of equalities, or a conjunction of two comparisons.
    pub(super) fn lower_member(
        &mut self,
        node: NodeId,
        operand: ExprId,
        members: &[ExprId],
        interval: Option<[bool; 2]>,
    ) -> Option<ExprId> {
        let (Some([has_low, has_high]), [low, high]) = (interval, members) else {
            let mut found = self.graph.bool(false);
            for member in members {
                let equal = self.lower_comparison(node, Comparison::Equal, operand, *member);
                found = self.graph.or(found, equal);
            }
            return Some(found);
        };
        let (above, below) = (
            if has_low { Comparison::GreaterOrEqual } else { Comparison::Greater },
            if has_high { Comparison::LessOrEqual } else { Comparison::Less },
        );
        let order = if has_low && has_high { Comparison::LessOrEqual } else { Comparison::Less };
        if self.graph.constant(*low).is_some() && self.graph.constant(*high).is_some() {
            let in_order = self.graph.compare(order, *low, *high);
            if self.graph.constant(in_order) == Some(&Value::Bool(false)) {
                let message = "this interval is empty, so the membership is always false";
                let diagnostic = Diagnostic::new(Code::EmptyInterval, self.span(node), message);
                self.diagnostics.push(
                    diagnostic.help("write the lower end first; `[2, 2]` has one value, `[2, 2)` none"),
                );
            }
        }
        let above = self.lower_comparison(node, above, operand, *low);
        let below = self.lower_comparison(node, below, operand, *high);
        Some(self.graph.and(above, below))
    }

    pub(super) fn lower_arithmetic(
        &mut self,
        node: NodeId,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
    ) -> Option<ExprId> {
        let (left, right) = (self.graph.value_type(a), self.graph.value_type(b));
        let scaled = matches!(
            (left, right),
            (ValueType::Duration, ValueType::Float) | (ValueType::Float, ValueType::Duration)
        );
        if scaled && (self.graph.constant(a).is_none() || self.graph.constant(b).is_none()) {
            let message = "a variable duration can be multiplied and divided only by integers";
            let span = self.span(node);
            self.diagnostics.push(
                Diagnostic::new(Code::TypeMismatch, span, message)
                    .help("write `x * 3 / 2` instead of `x * 1.5`"),
            );
            return None;
        }
        if op == BinaryOp::Divide {
            let warning = super::constant::quotient(&self.graph, a, b, self.span(node));
            self.diagnostics.extend(warning);
        }
        self.has_result(node, |g| g.binary(op, a, b))
    }

    /// Returns the result of arithmetic, or reports that there is none.
    pub(super) fn has_result(
        &mut self,
        node: NodeId,
        build: impl FnOnce(&mut Graph) -> Option<ExprId>,
    ) -> Option<ExprId> {
        let id = build(&mut self.graph);
        if id.is_none() {
            let division = matches!(
                self.ast.nodes[node].kind,
                NodeKind::Binary(Infix::Arithmetic(BinaryOp::Divide | BinaryOp::Remainder), ..)
            );
            let duration = self.is_duration(node);
            let (message, help) = match (division, duration) {
                (true, false) => ("this integer division has no result", "write a divisor other than 0"),
                (false, false) => (
                    "the result does not fit into an int (64 bits)",
                    "write one of the numbers as a float, such as `1.0e18`",
                ),
                (_, true) => (
                    "the result does not fit into a duration (64-bit nanoseconds)",
                    "write a shorter duration, and a divisor other than 0: durations are limited to 292 years",
                ),
            };
            let span = self.span(node);
            self.diagnostics.push(Diagnostic::new(Code::NoResult, span, message).help(help));
        }
        id
    }

    pub(super) fn lower_comparison(&mut self, node: NodeId, op: Comparison, a: ExprId, b: ExprId) -> ExprId {
        let id = self.graph.compare(op, a, b);
        let warning = super::constant::comparison(&self.graph, op, a, b, id, self.span(node));
        // An interpolated integer takes the values in between.
        let is_passed = |warning: &Diagnostic| self.interpolated && warning.code == Code::ImpossibleEquality;
        let warning = warning.filter(|warning| !is_passed(warning));
        self.diagnostics.extend(warning);
        id
    }
}
