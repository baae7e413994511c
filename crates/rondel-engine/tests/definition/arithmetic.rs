//! Arithmetic and comparison of values.

use rondel_event::{Comparison, Value, ValueType};
use rondel_spec::{BinaryOp, UnaryOp};

pub fn unary(op: UnaryOp, x: Value) -> Option<Value> {
    match (op, x) {
        (UnaryOp::Negate, Value::Int(x)) => x.checked_neg().map(Value::Int),
        (UnaryOp::Abs, Value::Int(x)) => x.checked_abs().map(Value::Int),
        (UnaryOp::Negate, Value::Duration(x)) => x.checked_neg().map(Value::Duration),
        (UnaryOp::Abs, Value::Duration(x)) => x.checked_abs().map(Value::Duration),
        (UnaryOp::Negate, Value::Float(x)) => Some(Value::Float(-x)),
        (UnaryOp::Abs, Value::Float(x)) => Some(Value::Float(x.abs())),
        other => panic!("no arithmetic on {other:?}"),
    }
}

/// A value of an integral type; none if it does not fit.
pub fn whole(value_type: ValueType, x: i128) -> Option<Value> {
    let x = i64::try_from(x).ok()?;
    Some(match value_type {
        ValueType::Int => Value::Int(x),
        ValueType::Time => Value::Time(x),
        ValueType::Duration => Value::Duration(x),
        other => panic!("no whole numbers in {other}"),
    })
}

pub fn binary(op: BinaryOp, x: Value, y: Value) -> Option<Value> {
    use Value::{Duration, Float, Int, Time};
    let result = match (&x, &y) {
        (Float(x), Float(y)) => return Some(Float(float(op, *x, *y))),
        (Duration(x), Duration(y)) if op == BinaryOp::Divide => {
            return Some(Float(*x as f64 / *y as f64));
        }
        (Int(_), Int(_)) => ValueType::Int,
        (Time(_), Time(_)) if op == BinaryOp::Subtract => ValueType::Duration,
        (Time(_), _) | (_, Time(_)) => ValueType::Time,
        (Duration(_), _) | (_, Duration(_)) => ValueType::Duration,
        other => panic!("no arithmetic on {other:?}"),
    };
    // Nothing overflows in a wider type.
    let (x, y) = match (x, y) {
        (Int(x) | Time(x) | Duration(x), Int(y) | Time(y) | Duration(y)) => (i128::from(x), i128::from(y)),
        other => panic!("no arithmetic on {other:?}"),
    };
    whole(
        result,
        match op {
            BinaryOp::Add => x + y,
            BinaryOp::Subtract => x - y,
            BinaryOp::Multiply => x * y,
            BinaryOp::Divide | BinaryOp::Remainder if y == 0 => return None,
            BinaryOp::Divide => x / y,
            BinaryOp::Remainder => x % y,
            BinaryOp::Min => x.min(y),
            BinaryOp::Max => x.max(y),
        },
    )
}

fn float(op: BinaryOp, x: f64, y: f64) -> f64 {
    let nan = x.is_nan() || y.is_nan();
    let order = x.total_cmp(&y);
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Subtract => x - y,
        BinaryOp::Multiply => x * y,
        BinaryOp::Divide => x / y,
        BinaryOp::Remainder => x % y,
        BinaryOp::Min | BinaryOp::Max if nan => f64::NAN,
        BinaryOp::Min if order.is_lt() => x,
        BinaryOp::Max if order.is_gt() => x,
        BinaryOp::Min | BinaryOp::Max => y,
    }
}

pub fn compare(comparison: Comparison, x: Value, y: Value) -> bool {
    let order = match (x, y) {
        (Value::Int(x), Value::Int(y))
        | (Value::Time(x), Value::Time(y))
        | (Value::Duration(x), Value::Duration(y)) => Some(x.cmp(&y)),
        (Value::Float(x), Value::Float(y)) => x.partial_cmp(&y),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(&y)),
        (Value::String(x), Value::String(y)) => Some(x.cmp(&y)),
        other => panic!("no comparison of {other:?}"),
    };
    match comparison {
        Comparison::Equal => order.is_some_and(|o| o.is_eq()),
        Comparison::NotEqual => order.is_none_or(|o| o.is_ne()),
        Comparison::Less => order.is_some_and(|o| o.is_lt()),
        Comparison::LessOrEqual => order.is_some_and(|o| o.is_le()),
        Comparison::Greater => order.is_some_and(|o| o.is_gt()),
        Comparison::GreaterOrEqual => order.is_some_and(|o| o.is_ge()),
    }
}
