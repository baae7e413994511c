//! Type inference of arithmetic and windows.

use super::kinds::Kind;
use super::{Checker, Meaning};
use rondel_event::{Value, ValueType};

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{Aggregate, BinaryOp};
use crate::syntax::ast::{Binding, Infix, NodeId, NodeKind, Prefix};
use crate::type_names::article;

/// Advice for a number that is compared with a duration.
const COMPARABLE: &str = "compare it with a number";

/// Returns advice for a text or a truth of which `word` measures none, with its operands as they are written.
pub(super) fn measurable(word: &str, operands: &[&str], kind: Kind) -> String {
    match (kind, operands) {
        (Kind::Bool, [operand]) if word == "mean" => {
            format!(
                "write `mean(if {operand} then 1 else 0) over 10 s` for the share of messages at which it holds"
            )
        }
        (Kind::Bool, [operand]) => format!("write `count({operand}) over 10 s` for how often it holds"),
        (Kind::Bool, _) => {
            let operator = if word == "max" { " or " } else { " and " };
            format!("write `{}`", operands.join(operator))
        }
        (_, [operand]) => format!(
            "write `{word}(len({operand})) over 10 s` for the number of characters, `count({operand} == \"…\") over 10 s` \
             for how often it is a text"
        ),
        _ => {
            let of = operands.iter().find(|operand| !operand.starts_with(['"', '\''])).unwrap_or(&"s");
            format!(
                "write `len({of})` for the number of characters, `{of} == \"…\"` to compare it with a text"
            )
        }
    }
}

impl Checker<'_> {
    /// Infers `-x` and `abs(x)` of a number or a duration.
    pub(super) fn infer_size(&mut self, node: NodeId, a: NodeId) {
        let kind = if self.kinds.kind(a) == Kind::Duration { Kind::Duration } else { Kind::Number };
        self.expect(a, kind);
        self.result_of(node, &[a], kind);
    }

    /// Sets the kind of a result that depends on the kinds of the operands: unknown after an error in one of them.
    fn result_of(&mut self, node: NodeId, operands: &[NodeId], kind: Kind) {
        match operands
            .iter()
            .any(|operand| self.is_invalid(*operand) || self.kinds.kind(*operand) == Kind::Invalid)
        {
            true => self.kinds.give_up(node),
            false => self.result(node, kind),
        }
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
        match op {
            Min | Max => {
                self.expect_measurable(if op == Min { "min" } else { "max" }, &[a, b], want_left);
            }
            _ => {
                self.expect(a, want_left);
                self.expect(b, want_right);
            }
        }
        self.result_of(node, &[a, b], result);
    }

    /// Requires numbers, times or durations as the operands of `min` and `max`, numbers as that of a window.
    fn expect_measurable(&mut self, word: &str, operands: &[NodeId], wanted: Kind) {
        for operand in operands {
            let kind = self.kinds.kind(*operand);
            if self.is_invalid(*operand) || !matches!(kind, Kind::Text | Kind::Bool) {
                self.expect(*operand, wanted);
                continue;
            }
            let reported = self.diagnostics.len();
            self.mismatch(*operand, wanted);
            let written: Vec<&str> =
                operands.iter().map(|operand| self.span(*operand).of(self.text)).collect();
            if let Some(last) = self.diagnostics.get_mut(reported..).and_then(<[_]>::last_mut) {
                last.help = Some(measurable(word, &written, kind));
                if last.code == Code::TypeMismatch {
                    let takes = if operands.len() == 1 {
                        "numbers over a window"
                    } else {
                        "numbers, times or durations"
                    };
                    last.message = format!("`{word}` takes {takes}, found {}", kind.article());
                }
            }
            // The others are not reported, too.
            return operands.iter().for_each(|operand| self.kinds.give_up(*operand));
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
            let message = format!("parameter '{name}' is {}, found {}", article(value_type), found.article());
            let diagnostic = Diagnostic::new(Code::ArgumentType, self.span(node), message);
            let mut diagnostic = diagnostic.label(parameter, "declared here");
            if (found, wanted) == (Kind::Number, Kind::Duration) {
                diagnostic.help = self.unit_advice(inner).or(diagnostic.help);
            }
            self.kinds.give_up(node);
            return self.invalidate(node, diagnostic);
        }
        self.expect(inner, wanted);
        self.same(inner, node, node);
        // An undeclared field is declared by the parameter.
        if value_type == ValueType::Int
            && let Meaning::Field { topic, path, declared: None } = &self.meanings[self.ast.given(inner)]
        {
            self.kinds.ints.insert((*topic, path.clone()));
        }
    }

    /// Returns advice for a number where a duration is expected: only one that is written can be given a unit.
    pub(super) fn unit_advice(&self, number: NodeId) -> Option<String> {
        let ast = self.ast;
        match (&self.meanings[number], &ast.nodes[number].kind) {
            (_, NodeKind::Literal(_)) => {
                Some("add a unit to make the number a duration, such as `200 ms` or `2 s`".to_owned())
            }
            (_, NodeKind::Unary(Prefix::Negate, inner)) => self.unit_advice(*inner),
            (Meaning::Binding(i), _) => {
                let Binding { name, body, .. } = &ast.bindings[*i];
                let NodeKind::Literal(Value::Int(_) | Value::Float(_)) = ast.nodes[body.root?].kind else {
                    return Some(COMPARABLE.to_owned());
                };
                let name = name.span.of(self.text);
                Some(format!(
                    "add a unit to the number in the declaration of '{name}', such as `200 ms` or `2 s`"
                ))
            }
            (Meaning::Field { declared: Some((_, Some(_))), .. }, _) => {
                Some(format!("declare the field as `duration`, or {COMPARABLE}"))
            }
            _ => Some(COMPARABLE.to_owned()),
        }
    }

    /// Infers `clamp(x, low, high)` of numbers, times or durations.
    pub(super) fn infer_clamp(&mut self, node: NodeId, arguments: &[NodeId]) {
        let kinds: Vec<Kind> = arguments.iter().map(|argument| self.kinds.kind(*argument)).collect();
        let kind = kinds.into_iter().find(|kind| matches!(kind, Kind::Time | Kind::Duration));
        let kind = kind.unwrap_or(Kind::Number);
        arguments.iter().for_each(|argument| self.expect(*argument, kind));
        self.result_of(node, arguments, kind);
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
                    let help = match &self.ast.nodes[operand].kind {
                        NodeKind::Path(name, steps) if !steps.is_empty() => {
                            format!("write `rate({})`", name.text)
                        }
                        _ => "name a topic, or write `count(…) over …` to count how often a condition holds"
                            .to_owned(),
                    };
                    self.invalidate(operand, Diagnostic::new(Code::WrongArguments, span, message).help(help));
                }
            }
            (_, true) => {
                let span = self.span(operand);
                let NodeKind::Samples(name) = &self.ast.nodes[operand].kind else { return };
                let message = format!("topic '{}' is not a value", name.text);
                let help = "name one of its fields; only `count` and `rate` take a topic";
                self.invalidate(operand, Diagnostic::new(Code::TopicIsNotAValue, span, message).help(help));
            }
            (_, false) => self.infer_measured(node, aggregate, operand),
        }
    }

    /// Infers the operand of a window of numbers.
    fn infer_measured(&mut self, node: NodeId, aggregate: Aggregate, operand: NodeId) {
        let is_duration = self.is_duration(operand) && !self.is_invalid(operand);
        self.expect_measurable(aggregate.name(), &[operand], Kind::Number);
        if self.is_invalid(operand) || self.kinds.kind(operand) == Kind::Invalid {
            self.kinds.give_up(node);
        }
        let advice = is_duration.then(|| self.in_milliseconds(node, operand)).flatten();
        if let (Some(advice), Some(last)) = (advice, self.diagnostics.last_mut()) {
            last.help = Some(advice);
        }
    }

    /// Returns the window with its duration in milliseconds, compared as it is now.
    fn in_milliseconds(&self, node: NodeId, operand: NodeId) -> Option<String> {
        const MILLISECOND: i64 = 1_000_000;
        let (whole, part) = (self.span(node), self.span(operand));
        if part.start < whole.start || whole.end < part.end {
            return None;
        }
        let [before, after] = [Span::new(whole.start, part.start), Span::new(part.end, whole.end)];
        let [before, part, after] = [before, part, after].map(|span| span.of(self.text));
        let is_single = !matches!(self.ast.nodes[operand].kind, NodeKind::Binary(..) | NodeKind::If(..));
        let part = if is_single { part.to_owned() } else { format!("({part})") };
        let window = format!("{before}{part} / 1 ms{after}");
        let compared = self.ast.nodes.iter().skip(node).take(3).find_map(|parent| match parent.kind {
            NodeKind::Binary(Infix::Compare(_), left, right) if left == node => Some(right),
            _ => None,
        });
        let limit = compared.and_then(|right| match &self.ast.nodes[right].kind {
            NodeKind::Literal(Value::Duration(nanos)) if nanos % MILLISECOND == 0 => {
                let between = Span::new(whole.end, self.span(right).start).of(self.text);
                Some(format!("{between}{}", nanos / MILLISECOND))
            }
            _ => None,
        });
        Some(format!("write `{window}{}`, in milliseconds", limit.unwrap_or_default()))
    }

    pub(super) fn is_duration(&mut self, node: NodeId) -> bool {
        self.kinds.kind(node) == Kind::Duration
    }

    pub(super) fn is_truth(&mut self, node: NodeId) -> bool {
        self.kinds.kind(node) == Kind::Bool
    }
}
