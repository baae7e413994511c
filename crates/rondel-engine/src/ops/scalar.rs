//! Expressions over the data of a machine, evaluated row by row. Subexpressions without that data have been
//! computed for all rows and are read from registers.

use regex::bytes::Regex;
use rondel_event::{Block, Comparison, Rows, Value, ValueType};
use rondel_spec::{BinaryOp, FunctionId, UnaryOp};

use crate::ir::wire::{NodeId, Wire};
use crate::ops::arithmetic;
use crate::ops::columns::Columns;

/// An expression; none as a value means unknown.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    /// A truth in registers: lower and upper truth, of both halves.
    Truth([[Wire; 2]; 2]),
    /// Type, column and known rows, of both halves.
    Column(ValueType, [(u32, Wire); 2]),
    /// A variable of the machine.
    Variable(u32),
    Unary(UnaryOp, Box<Scalar>),
    Binary(BinaryOp, Box<[Scalar; 2]>),
    ToFloat(Box<Scalar>),
    Compare(Comparison, Box<[Scalar; 2]>),
    StartsWith(Box<[Scalar; 2]>),
    /// A function of one or two values.
    Call(FunctionId, Box<[Scalar]>),
    Matches(Regex, Box<Scalar>),
    If(Box<[Scalar; 3]>),
    Not(Box<Scalar>),
    And(Box<[Scalar; 2]>),
    Or(Box<[Scalar; 2]>),
    Definitely(Box<Scalar>),
}

/// The registers that expressions read.
#[derive(Clone, Copy)]
pub(crate) struct ScalarReading<'a> {
    pub(crate) words: &'a [Rows],
    pub(crate) columns: &'a Columns,
    pub(crate) block: &'a Block,
    pub(crate) buffers: &'a [Vec<u8>],
}

impl Scalar {
    /// The truth of a boolean expression at a row (half 0) or after it (half 1).
    pub(crate) fn truth(
        &self,
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
        variables: &[Option<Value>],
    ) -> Option<bool> {
        let truth = |x: &Scalar| x.truth(reading, row, half, variables);
        match self {
            Scalar::Truth(bounds) => {
                let [certain, possible] = bounds[half].map(|wire| wire.read(reading.words) >> row & 1 == 1);
                if certain { Some(true) } else { (!possible).then_some(false) }
            }
            Scalar::Not(x) => truth(x).map(|x| !x),
            Scalar::And(both) => match (truth(&both[0]), truth(&both[1])) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (x, y) => x.and(y),
            },
            Scalar::Or(both) => match (truth(&both[0]), truth(&both[1])) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (x, y) => x.and(y),
            },
            Scalar::Definitely(x) => Some(truth(x) == Some(true)),
            _ => match self.value(reading, row, half, variables)? {
                Value::Bool(truth) => Some(truth),
                _ => None,
            },
        }
    }

    /// The value of an expression at a row (half 0) or after it (half 1).
    pub(crate) fn value(
        &self,
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
        variables: &[Option<Value>],
    ) -> Option<Value> {
        let value = |x: &Scalar| x.value(reading, row, half, variables);
        match self {
            Scalar::Column(value_type, halves) => {
                let (column, known) = halves[half];
                (known.read(reading.words) >> row & 1 == 1).then_some(())?;
                reading.column(*value_type, column as usize, row)
            }
            Scalar::Variable(variable) => variables.get(*variable as usize).cloned().flatten(),
            Scalar::Unary(op, x) => unary(*op, value(x)?),
            Scalar::Binary(op, both) => binary(*op, &value(&both[0])?, &value(&both[1])?),
            Scalar::ToFloat(x) => whole(&value(x)?).map(|x| Value::Float(x as f64)),
            Scalar::Compare(comparison, both) => {
                compare(*comparison, &value(&both[0])?, &value(&both[1])?).map(Value::Bool)
            }
            Scalar::StartsWith(both) => match (value(&both[0])?, value(&both[1])?) {
                (Value::String(x), Value::String(y)) => Some(Value::Bool(x.starts_with(&*y))),
                _ => None,
            },
            Scalar::Call(function, arguments) => {
                let x = value(arguments.first()?)?;
                let y = match arguments.get(1) {
                    Some(y) => Some(value(y)?),
                    None => None,
                };
                function.apply(&x, y.as_ref())
            }
            Scalar::Matches(pattern, x) => match value(x)? {
                Value::String(x) => Some(Value::Bool(pattern.is_match(x.as_bytes()))),
                _ => None,
            },
            Scalar::If(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if condition.truth(reading, row, half, variables)? { yes } else { no };
                value(chosen)
            }
            Scalar::Truth(_) | Scalar::Not(_) | Scalar::And(_) | Scalar::Or(_) | Scalar::Definitely(_) => {
                self.truth(reading, row, half, variables).map(Value::Bool)
            }
        }
    }
}

impl Scalar {
    fn parts(&self) -> &[Scalar] {
        match self {
            Scalar::Truth(_) | Scalar::Column(..) | Scalar::Variable(_) => &[],
            Scalar::Unary(_, x)
            | Scalar::ToFloat(x)
            | Scalar::Matches(_, x)
            | Scalar::Not(x)
            | Scalar::Definitely(x) => std::slice::from_ref(x),
            Scalar::Binary(_, both)
            | Scalar::Compare(_, both)
            | Scalar::StartsWith(both)
            | Scalar::And(both)
            | Scalar::Or(both) => &both[..],
            Scalar::If(parts) => &parts[..],
            Scalar::Call(_, arguments) => arguments,
        }
    }

    fn parts_mut(&mut self) -> &mut [Scalar] {
        match self {
            Scalar::Truth(_) | Scalar::Column(..) | Scalar::Variable(_) => &mut [],
            Scalar::Unary(_, x)
            | Scalar::ToFloat(x)
            | Scalar::Matches(_, x)
            | Scalar::Not(x)
            | Scalar::Definitely(x) => std::slice::from_mut(x),
            Scalar::Binary(_, both)
            | Scalar::Compare(_, both)
            | Scalar::StartsWith(both)
            | Scalar::And(both)
            | Scalar::Or(both) => &mut both[..],
            Scalar::If(parts) => &mut parts[..],
            Scalar::Call(_, arguments) => arguments,
        }
    }

    /// Calls `f` with every node whose register it reads.
    pub(crate) fn for_each_register(&self, f: &mut impl FnMut(NodeId)) {
        match self {
            Scalar::Truth(bounds) => bounds.iter().flatten().for_each(|wire| f(wire.node())),
            Scalar::Column(_, halves) => {
                for (node, known) in halves {
                    f(NodeId(*node));
                    f(known.node());
                }
            }
            _ => self.parts().iter().for_each(|part| part.for_each_register(f)),
        }
    }

    /// Replaces the registers that it reads by variables numbered from `first` on, and appends their
    /// expressions to `kept`.
    pub(crate) fn keep(&mut self, first: u32, kept: &mut Vec<Scalar>) {
        match self {
            Scalar::Truth(_) | Scalar::Column(..) => {
                let variable = first + kept.len() as u32;
                kept.push(std::mem::replace(self, Scalar::Variable(variable)));
            }
            _ => self.parts_mut().iter_mut().for_each(|part| part.keep(first, kept)),
        }
    }

    /// Replaces wires and nodes of the graph by registers.
    pub(crate) fn place(&mut self, wire: &impl Fn(Wire) -> Wire, column: &impl Fn(NodeId) -> u32) {
        match self {
            Scalar::Truth(bounds) => bounds.iter_mut().flatten().for_each(|x| *x = wire(*x)),
            Scalar::Column(_, halves) => {
                for (node, known) in halves {
                    (*node, *known) = (column(NodeId(*node)), wire(*known));
                }
            }
            _ => self.parts_mut().iter_mut().for_each(|part| part.place(wire, column)),
        }
    }
}

impl ScalarReading<'_> {
    fn column(&self, value_type: ValueType, column: usize, row: usize) -> Option<Value> {
        Some(match value_type {
            ValueType::Int => Value::Int(self.columns.ints[column][row]),
            ValueType::Time => Value::Time(self.columns.ints[column][row]),
            ValueType::Duration => Value::Duration(self.columns.ints[column][row]),
            ValueType::Float => Value::Float(self.columns.floats[column][row]),
            ValueType::String => {
                let text = self.columns.texts[column][row].bytes(self.block, self.buffers);
                Value::String(String::from_utf8_lossy(text).into())
            }
            // Booleans are words, not columns.
            ValueType::Bool => return None,
        })
    }
}

fn compare(comparison: Comparison, x: &Value, y: &Value) -> Option<bool> {
    Some(match (x, y) {
        (Value::Bool(x), Value::Bool(y)) => comparison.holds(x, y),
        (Value::Float(x), Value::Float(y)) => comparison.holds(x, y),
        (Value::String(x), Value::String(y)) => comparison.holds(x, y),
        _ => comparison.holds(whole(x)?, whole(y)?),
    })
}

/// Arithmetic on one value.
fn unary(op: UnaryOp, x: Value) -> Option<Value> {
    Some(match x {
        Value::Int(x) => Value::Int(arithmetic::int(op, x)?),
        Value::Duration(x) => Value::Duration(arithmetic::int(op, x)?),
        Value::Float(x) => Value::Float(arithmetic::float(op, x)),
        _ => return None,
    })
}

/// Arithmetic on two values, with the type that [`rondel_spec::binary_type`] returns.
fn binary(op: BinaryOp, x: &Value, y: &Value) -> Option<Value> {
    use rondel_event::ValueType::{Duration, Float, Int, Time};
    let result = rondel_spec::binary_type(op, x.value_type(), y.value_type())?;
    if let (Value::Float(x), Value::Float(y)) = (x, y) {
        return Some(Value::Float(arithmetic::floats(op, *x, *y)));
    }
    let (x, y) = (whole(x)?, whole(y)?);
    if result == Float {
        return Some(Value::Float(arithmetic::floats(op, x as f64, y as f64)));
    }
    let number = arithmetic::ints(op, x, y)?;
    Some(match result {
        Int => Value::Int(number),
        Time => Value::Time(number),
        Duration => Value::Duration(number),
        _ => return None,
    })
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(x) | Value::Time(x) | Value::Duration(x) => Some(*x),
        _ => None,
    }
}
