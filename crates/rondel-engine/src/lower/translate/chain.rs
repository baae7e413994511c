//! Measurements of chains.

use rondel_event::{Comparison, Value, ValueType};
use rondel_spec::{BinaryOp, ChainId, ChainMeasure, Expr, ExprId, TimeModel};

use super::measured::mirrored;
use super::{Column, Translator, Truth, TruthBounds, ValueColumns};
use crate::CompileError;
use crate::ir::node::ChainColumn;
use crate::ir::node::{Constant, Kind, Node};
use crate::ir::wire::{Halves, Wire};

impl Translator<'_> {
    fn chain_column(
        &mut self,
        id: ExprId,
        chain: ChainId,
        column: ChainColumn,
    ) -> Result<Column, CompileError> {
        let unsupported = |what| Err(CompileError::Unsupported { node: id, what });
        if chain.0 as usize >= self.spec.chains.len() {
            return unsupported("a chain that is not declared");
        }
        if !self.keys.is_empty() {
            return unsupported("a measurement of a chain in a property with `for each`");
        }
        let node = self.graph.add(Node::Chain(chain.0, column));
        Ok(Column { node, known: Wire::of(node) })
    }

    /// A measurement of a chain, as of the last row.
    pub(super) fn chain(
        &mut self,
        id: ExprId,
        chain: ChainId,
        measure: ChainMeasure,
    ) -> Result<ValueColumns, CompileError> {
        let of = column_of(measure);
        let column = self.chain_column(id, chain, of)?;
        if of == ChainColumn::Latency {
            return Ok(ValueColumns::lasting(column, ValueType::Duration));
        }
        let time = Column { node: self.graph.add(Node::Time), known: Wire::TRUE };
        let mut since = self.binary_column(BinaryOp::Subtract, Kind::Int, time, column);
        if measure == ChainMeasure::Reaction {
            let zero = self.graph.add(Node::Constant(Constant::Int(0)));
            let zero = Column { node: zero, known: Wire::TRUE };
            since = self.select(TruthBounds::both(column.known), since, zero, ValueType::Duration);
        }
        Ok(ValueColumns::lasting(since, ValueType::Duration))
    }

    /// The comparison of an age or a reaction time of a chain with a constant, exact at every time; none for
    /// other operands.
    pub(super) fn compare_chain(
        &mut self,
        comparison: Comparison,
        x: ExprId,
        y: ExprId,
    ) -> Result<Option<Truth>, CompileError> {
        let node = |x: ExprId| self.spec.nodes.get(x.index());
        let (comparison, chain, measure, constant) = match (node(x), node(y)) {
            (Some(Expr::Chain(chain, measure)), Some(Expr::Literal(Value::Duration(constant)))) => {
                (comparison, *chain, *measure, *constant)
            }
            (Some(Expr::Literal(Value::Duration(constant))), Some(Expr::Chain(chain, measure))) => {
                (mirrored(comparison), *chain, *measure, *constant)
            }
            _ => return Ok(None),
        };
        let of = column_of(measure);
        if of == ChainColumn::Latency {
            return Ok(None);
        }
        let column = self.chain_column(x, chain, of)?;
        let (known, is_zero) = match measure {
            // The reaction time is zero while nothing waits.
            ChainMeasure::Reaction => (Wire::TRUE, !column.known),
            _ => (column.known, Wire::FALSE),
        };
        let mut within = |open: bool| {
            let zero_is_less = if open { constant > 0 } else { constant >= 0 };
            let lasts = match u64::try_from(constant) {
                Ok(span) if span > 0 || !open => {
                    let node = Node::Lasting { from: column.node, known: column.known, span, open };
                    let node = self.graph.add(node);
                    let at = Wire::of(node);
                    let after = match self.model {
                        TimeModel::Dense => self.graph.wire(Node::After(node)),
                        TimeModel::Steps | TimeModel::Points => at,
                    };
                    Halves { at, after }
                }
                _ => Halves::FALSE,
            };
            let zero = if zero_is_less { is_zero } else { Wire::FALSE };
            Halves { at: self.graph.or(lasts.at, zero), after: self.graph.or(lasts.after, zero) }
        };
        let (less, less_or_equal) = (within(true), within(false));
        Ok(Some(self.compared(comparison, less, less_or_equal, known)))
    }
}

fn column_of(measure: ChainMeasure) -> ChainColumn {
    match measure {
        ChainMeasure::Latency => ChainColumn::Latency,
        ChainMeasure::Age => ChainColumn::Origin,
        ChainMeasure::Reaction => ChainColumn::Oldest,
    }
}
