//! Nodes of arithmetic, comparisons and functions, folded where the operands are constants.

use rondel_event::{Comparison, Value, ValueType};

use super::Graph;
use crate::functions::FunctionId;
use crate::spec::{BinaryOp, Expr, ExprId, UnaryOp};

impl Graph {
    /// Returns the operand as a `Float`.
    pub(crate) fn widen(&mut self, id: ExprId) -> ExprId {
        match self.constant(id) {
            Some(Value::Int(i)) => {
                let value = *i as f64;
                self.float(value)
            }
            _ if self.value_type(id) == ValueType::Int => self.add(Expr::ToFloat(id)),
            _ => id,
        }
    }

    /// Returns both operands with the same type, where one is `Int` and the other `Float`.
    pub(crate) fn same_type(&mut self, a: ExprId, b: ExprId) -> (ExprId, ExprId) {
        let (of_a, of_b) = (self.value_type(a), self.value_type(b));
        if of_a == of_b || !(of_a.is_number() && of_b.is_number()) {
            return (a, b);
        }
        (self.widen(a), self.widen(b))
    }

    /// Returns none if the operand is a constant without a result.
    pub(crate) fn unary(&mut self, op: UnaryOp, a: ExprId) -> Option<ExprId> {
        let folded = match (self.constant(a), op) {
            (Some(Value::Int(i)), UnaryOp::Negate) => Value::Int(i.checked_neg()?),
            (Some(Value::Int(i)), UnaryOp::Abs) => Value::Int(i.checked_abs()?),
            (Some(Value::Float(x)), UnaryOp::Negate) => Value::Float(-x),
            (Some(Value::Float(x)), UnaryOp::Abs) => Value::Float(x.abs()),
            (Some(Value::Duration(d)), UnaryOp::Negate) => Value::Duration(d.checked_neg()?),
            (Some(Value::Duration(d)), UnaryOp::Abs) => Value::Duration(d.checked_abs()?),
            (None, _) if self.value_type(a) == ValueType::Duration => {
                let zero = self.literal(Value::Duration(0));
                let negated = self.add(Expr::Binary(BinaryOp::Subtract, zero, a));
                return Some(match op {
                    UnaryOp::Negate => negated,
                    UnaryOp::Abs => self.add(Expr::Binary(BinaryOp::Max, a, negated)),
                });
            }
            _ => return Some(self.add(Expr::Unary(op, a))),
        };
        Some(self.literal(folded))
    }

    /// Returns none if the result is undefined for constants, or for every left operand.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let (a, b) = self.same_type(a, b);
        let folded = match (self.constant(a), self.constant(b)) {
            (Some(Value::Int(a)), Some(Value::Int(b))) => int_arithmetic(op, *a, *b)?,
            (Some(Value::Float(a)), Some(Value::Float(b))) => Value::Float(float_arithmetic(op, *a, *b)),
            (Some(a), Some(b)) if time_arithmetic(op, a, b).is_some() => time_arithmetic(op, a, b)??,
            (_, Some(Value::Int(0) | Value::Duration(0))) if op == BinaryOp::Remainder => return None,
            (_, Some(Value::Int(0))) if matches!(op, BinaryOp::Divide | BinaryOp::Remainder) => return None,
            _ => return Some(self.add(Expr::Binary(op, a, b))),
        };
        Some(self.literal(folded))
    }

    pub(crate) fn compare(&mut self, op: Comparison, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.same_type(a, b);
        let holds = match (self.constant(a), self.constant(b)) {
            (Some(Value::Bool(a)), Some(Value::Bool(b))) => op.holds(a, b),
            (Some(Value::Int(a)), Some(Value::Int(b))) => op.holds(a, b),
            (Some(Value::Float(a)), Some(Value::Float(b))) => op.holds(a, b),
            (Some(Value::String(a)), Some(Value::String(b))) => op.holds(a, b),
            (Some(Value::Duration(a)), Some(Value::Duration(b))) => op.holds(a, b),
            _ => return self.add(Expr::Compare(op, a, b)),
        };
        self.bool(holds)
    }

    pub(crate) fn starts_with(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.constant(a), self.constant(b)) {
            (Some(Value::String(a)), Some(Value::String(b))) => {
                let holds = a.starts_with(&**b);
                self.bool(holds)
            }
            _ => self.add(Expr::StartsWith(a, b)),
        }
    }

    /// Returns none if the function has no result for these constants.
    pub(crate) fn call(&mut self, function: FunctionId, a: ExprId, b: Option<ExprId>) -> Option<ExprId> {
        let second = b.map(|b| self.constant(b).cloned());
        if let Some(x) = self.constant(a)
            && second != Some(None)
        {
            let folded = function.apply(x, second.flatten().as_ref())?;
            return Some(self.literal(folded));
        }
        Some(self.add(Expr::Call(function, a, b)))
    }
}

fn int_arithmetic(op: BinaryOp, a: i64, b: i64) -> Option<Value> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Subtract => a.checked_sub(b),
        BinaryOp::Multiply => a.checked_mul(b),
        // As of the integers in messages: towards zero.
        BinaryOp::Divide => a.checked_div(b),
        BinaryOp::Remainder => a.checked_rem(b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
    };
    result.map(Value::Int)
}

/// Returns arithmetic with durations: none if it is not defined for these types, `Some(None)` if it has no result.
fn time_arithmetic(op: BinaryOp, a: &Value, b: &Value) -> Option<Option<Value>> {
    use Value::{Duration, Float, Int};
    let nanos = match (op, a, b) {
        (BinaryOp::Divide, Duration(a), Duration(b)) => return Some(Some(Float(*a as f64 / *b as f64))),
        (BinaryOp::Add, Duration(a), Duration(b)) => a.checked_add(*b),
        (BinaryOp::Subtract, Duration(a), Duration(b)) => a.checked_sub(*b),
        (BinaryOp::Remainder, Duration(a), Duration(b)) => a.checked_rem(*b),
        (BinaryOp::Min, Duration(a), Duration(b)) => Some(*a.min(b)),
        (BinaryOp::Max, Duration(a), Duration(b)) => Some(*a.max(b)),
        (BinaryOp::Multiply, Duration(a), Int(b)) | (BinaryOp::Multiply, Int(a), Duration(b)) => {
            a.checked_mul(*b)
        }
        (BinaryOp::Divide, Duration(a), Int(b)) => a.checked_div(*b),
        (BinaryOp::Multiply, Duration(d), Float(x)) | (BinaryOp::Multiply, Float(x), Duration(d)) => {
            rounded(*d as f64 * x)
        }
        (BinaryOp::Divide, Duration(d), Float(x)) => rounded(*d as f64 / x),
        _ => return None,
    };
    Some(nanos.map(Duration))
}

/// Returns the nearest integer, if it fits.
fn rounded(nanos: f64) -> Option<i64> {
    let limit = -(i64::MIN as f64);
    (nanos >= -limit && nanos < limit).then(|| nanos.round() as i64)
}

fn float_arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder => a % b,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
    }
}
