//! Values of terms: properties that are numbers, times or texts instead of formulas.

use rondel_event::{Block, Rows, Value, ValueType};

use crate::ir::wire::Wire;
use crate::ops::columns::Columns;

/// A term whose values are recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotedTerm {
    /// Index of the property.
    pub(crate) property: u32,
    pub(crate) value_type: ValueType,
    /// Column and known rows of each half.
    pub(crate) halves: [(u32, Wire); 2],
}

/// The value of a term at a row.
#[derive(Clone, Debug)]
pub(crate) struct RowValue {
    pub(crate) property: u32,
    pub(crate) row: u8,
    /// Whether it is the value on the interval after the row.
    pub(crate) after: bool,
    /// None while unknown.
    pub(crate) value: Option<Value>,
}

/// Evaluated rows: their registers, and the memory that the texts of the columns refer to.
#[derive(Clone, Copy)]
pub(crate) struct EvaluatedRows<'a> {
    pub(crate) words: &'a [Rows],
    pub(crate) columns: &'a Columns,
    pub(crate) block: &'a Block,
    pub(crate) buffers: &'a [Vec<u8>],
}

/// Appends the values of terms in the rows of the last evaluation, before a later block overwrites their
/// texts.
#[cold]
pub(crate) fn note(
    terms: &[NotedTerm],
    has_spans: bool,
    evaluated: EvaluatedRows<'_>,
    rows: Rows,
    out: &mut Vec<RowValue>,
) {
    let EvaluatedRows { words, columns, block, buffers } = evaluated;
    for &NotedTerm { property, value_type, halves } in terms {
        let value = |column: u32, row: usize| {
            let column = column as usize;
            match value_type {
                ValueType::Float => columns.floats.get(column).map(|x| Value::Float(x[row])),
                ValueType::Int => columns.ints.get(column).map(|x| Value::Int(x[row])),
                ValueType::Time => columns.ints.get(column).map(|x| Value::Time(x[row])),
                ValueType::Duration => columns.ints.get(column).map(|x| Value::Duration(x[row])),
                ValueType::String => columns.texts.get(column).map(|texts| {
                    let text = String::from_utf8_lossy(texts[row].bytes(block, buffers));
                    Value::String(text.into())
                }),
                ValueType::Bool => None,
            }
        };
        let known = halves.map(|(_, known)| known.read(words));
        let mut rest = rows;
        while rest != 0 {
            let row = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            for (half, (column, _)) in halves.into_iter().enumerate().take(1 + usize::from(has_spans)) {
                let value = if known[half] >> row & 1 == 1 { value(column, row) } else { None };
                out.push(RowValue { property, row: row as u8, after: half == 1, value });
            }
        }
    }
}
