//! Type inference of arithmetic and windows.

use super::Checker;
use super::kinds::Kind;
use rondel_event::ValueType;

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{Aggregate, BinaryOp};
use crate::syntax::ast::{NodeId, NodeKind};

impl Checker<'_> {
    /// Infers `-x` and `abs(x)` of a number or a duration.
    pub(super) fn infer_size(&mut self, node: NodeId, a: NodeId) {
        let kind = if self.kinds.kind(a) == Kind::Duration { Kind::Duration } else { Kind::Number };
        self.expect(a, kind);
        self.result(node, kind);
    }

    /// Infers arithmetic on numbers, times and durations. An operand of unknown type is assumed to fit the other one.
    pub(super) fn infer_arithmetic(&mut self, node: NodeId, op: BinaryOp, a: NodeId, b: NodeId) {
        use BinaryOp::{Add, Divide, Max, Min, Multiply, Remainder, Subtract};
        use Kind::{Duration, Number, Time};
        let (left, right) = (self.kinds.kind(a), self.kinds.kind(b));
        let (want_left, want_right, result) = match (op, left, right) {
            _ if !matches!(left, Time | Duration) && !matches!(right, Time | Duration) => {
                (Number, Number, Number)
            }
            (Add, Time, _) => (Time, Duration, Time),
            (Add, _, Time) => (Duration, Time, Time),
            (Subtract, Time, Duration) => (Time, Duration, Time),
            (Subtract, Time, _) | (Subtract, _, Time) => (Time, Time, Duration),
            (Min | Max, Time, _) | (Min | Max, _, Time) => (Time, Time, Time),
            (Multiply | Divide | Remainder, Time, _) => (Number, right, Number),
            (Multiply | Divide | Remainder, _, Time) => (left, Number, Number),
            (Multiply, Duration, _) => (Duration, Number, Duration),
            (Multiply, _, Duration) => (Number, Duration, Duration),
            (Multiply, ..) => (Number, Number, Number),
            (Divide, Duration, r) if r != Duration => (Duration, Number, Duration),
            (Divide, ..) => (Duration, Duration, Number),
            (Add | Subtract | Remainder | Min | Max, ..) => (Duration, Duration, Duration),
        };
        self.expect(a, want_left);
        self.expect(b, want_right);
        let temporal = matches!(left, Time | Duration) || matches!(right, Time | Duration);
        if temporal && (self.is_invalid(a) || self.is_invalid(b)) {
            self.kinds.give_up(node);
        } else {
            self.result(node, result);
        }
    }

    /// Infers an argument of a definition, which has the type of its parameter.
    pub(super) fn infer_argument(
        &mut self,
        node: NodeId,
        inner: NodeId,
        value_type: ValueType,
        parameter: Span,
    ) {
        let (found, wanted) = (self.kinds.kind(inner), Kind::of(value_type));
        if found.and(wanted).is_none() && !self.is_invalid(inner) {
            let name = parameter.of(self.text);
            let message =
                format!("parameter '{name}' is {}, found {}", super::article(value_type), found.article());
            let diagnostic = Diagnostic::new(Code::ArgumentType, self.span(node), message);
            let mut diagnostic = diagnostic.label(parameter, "declared here");
            if (found, wanted) == (Kind::Number, Kind::Duration) {
                diagnostic = diagnostic.help(super::kinds::UNIT);
            }
            self.kinds.give_up(node);
            return self.invalidate(node, diagnostic);
        }
        self.expect(inner, wanted);
        self.same(inner, node, node);
    }

    /// Infers `clamp(x, low, high)` of numbers, times or durations.
    pub(super) fn infer_clamp(&mut self, node: NodeId, arguments: &[NodeId]) {
        let kinds: Vec<Kind> = arguments.iter().map(|argument| self.kinds.kind(*argument)).collect();
        let kind = kinds.into_iter().find(|kind| matches!(kind, Kind::Time | Kind::Duration));
        let kind = kind.unwrap_or(Kind::Number);
        arguments.iter().for_each(|argument| self.expect(*argument, kind));
        self.result(node, kind);
    }

    pub(super) fn infer_window(&mut self, node: NodeId, aggregate: Aggregate, operand: NodeId) {
        let counts = matches!(aggregate, Aggregate::Count | Aggregate::Rate);
        let is_name = matches!(self.ast.nodes[operand].kind, NodeKind::Samples(_));
        let of_topic = self.sampled(operand).is_some() && (counts || is_name);
        self.result(node, Kind::Number);
        match (aggregate, of_topic) {
            (Aggregate::Count | Aggregate::Rate, true) => {}
            (Aggregate::Count, false) => self.expect(operand, Kind::Bool),
            (Aggregate::Rate, false) => {
                if !self.is_invalid(operand) {
                    let message = "`rate` takes a topic";
                    let span = self.span(operand);
                    self.invalidate(
                        operand,
                        Diagnostic::new(Code::WrongArguments, span, message).help(
                            "name a topic, or write `count(…) over …` to count how often a condition holds",
                        ),
                    );
                }
            }
            (_, true) => {
                let span = self.span(operand);
                let NodeKind::Samples(name) = &self.ast.nodes[operand].kind else { return };
                let message = format!("topic '{}' is not a value", name.text);
                let help = "name one of its fields; only `count` and `rate` take a topic";
                self.invalidate(operand, Diagnostic::new(Code::TopicIsNotAValue, span, message).help(help));
            }
            (_, false) => self.expect(operand, Kind::Number),
        }
    }

    pub(super) fn is_duration(&mut self, node: NodeId) -> bool {
        self.kinds.kind(node) == Kind::Duration
    }

    pub(super) fn is_truth(&mut self, node: NodeId) -> bool {
        self.kinds.kind(node) == Kind::Bool
    }
}
