use rondel_event::ValueType;
use rondel_spec::ExprId;

use super::{Meaning, SetId, Truth, ValueColumns};
use crate::CompileError;

/// The operands of a node, with checks of existence and type.
pub(super) struct Operands<'a> {
    pub(super) id: ExprId,
    pub(super) done: &'a [Option<(Meaning, SetId)>],
}

impl Operands<'_> {
    pub(super) fn meaning(&self, operand: ExprId) -> Result<Meaning, CompileError> {
        match self.done.get(operand.index()) {
            Some(Some((meaning, _))) => Ok(*meaning),
            _ => Err(CompileError::ForwardReference { node: self.id, operand }),
        }
    }

    /// The topics that an operand refers to.
    pub(super) fn set(&self, operand: ExprId) -> SetId {
        self.done.get(operand.index()).copied().flatten().map_or(0, |(_, set)| set)
    }

    pub(super) fn value_type(&self, operand: ExprId) -> Result<ValueType, CompileError> {
        Ok(self.meaning(operand)?.value_type())
    }

    pub(super) fn truth(&self, operand: ExprId) -> Result<Truth, CompileError> {
        match self.meaning(operand)? {
            Meaning::Truth(truth) => Ok(truth),
            Meaning::Values(ValueColumns { value_type, .. }) => {
                Err(CompileError::WrongType { node: self.id, expected: "bool", found: value_type })
            }
        }
    }

    pub(super) fn number(&self, operand: ExprId) -> Result<ValueColumns, CompileError> {
        self.values(operand, &[ValueType::Int, ValueType::Float, ValueType::Duration], "a number")
    }

    /// The values of a window's operand.
    pub(super) fn measurable(&self, operand: ExprId) -> Result<ValueColumns, CompileError> {
        use ValueType::{Duration, Float, Int, Time};
        self.values(operand, &[Int, Float, Duration, Time], "a number")
    }

    pub(super) fn values(
        &self,
        operand: ExprId,
        types: &[ValueType],
        expected: &'static str,
    ) -> Result<ValueColumns, CompileError> {
        match self.meaning(operand)? {
            Meaning::Values(values) if types.contains(&values.value_type) => Ok(values),
            other => Err(CompileError::WrongType { node: self.id, expected, found: other.value_type() }),
        }
    }

    pub(super) fn same_type(&self, x: ExprId, y: ExprId) -> Result<ValueType, CompileError> {
        let (left, right) = (self.value_type(x)?, self.value_type(y)?);
        if left == right { Ok(left) } else { Err(CompileError::MixedTypes { node: self.id, left, right }) }
    }
}
