//! Meaning of each kind of node.

use rondel_event::{Comparison, Read, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Kernel, Temporal, pattern};

use super::operands::Operands;
use super::{Meaning, Translator};
use crate::CompileError;
use crate::ir::node::{ComparisonKind, Node};
use crate::ir::truth::Truth;
use crate::ir::wire::Halves;
use crate::lower::error;

impl Translator<'_> {
    /// The meaning of a node whose operands are translated.
    #[expect(clippy::too_many_lines, reason = "one arm for each class of expressions")]
    pub(super) fn meaning(
        &mut self,
        id: ExprId,
        expr: &Expr,
        operand: &Operands<'_>,
    ) -> Result<Meaning, CompileError> {
        if let Some(topic) = expr.topic() {
            self.topic_set(id, topic)?;
        }
        Ok(match expr {
            Expr::Literal(value) => self.literal(value),
            Expr::Carried { topic, path } => {
                let field = self.field(*topic, path, Read::Presence);
                let carried = self.graph.wire(Node::Carried(field));
                Meaning::Truth(self.update(carried))
            }
            // Inside of an instance by value, every message of the topic has the values.
            Expr::Bind { topic, .. } if self.variables.is_empty() => {
                return Err(CompileError::Unsupported { node: id, what: "this operator" });
            }
            Expr::On(topic) | Expr::Bind { topic, .. } => {
                let set = self.topic_set(id, *topic)?;
                let clock = self.clock(set);
                Meaning::Truth(self.update(clock))
            }
            Expr::ToFloat(x) => {
                let values = operand.values(*x, &[ValueType::Int], "int")?;
                Meaning::Values(self.widened(values))
            }
            Expr::Unary(op, x) => Meaning::Values(self.unary(*op, operand.number(*x)?)),
            Expr::Binary(op, x, y) => {
                let (left, right) = (operand.meaning(*x)?, operand.meaning(*y)?);
                Meaning::Values(self.binary(id, *op, left, right)?)
            }
            Expr::Compare(comparison, x, y) => {
                let value_type = operand.same_type(*x, *y)?;
                let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                if !equality && matches!(value_type, ValueType::Bool | ValueType::String) {
                    let expected = "a number or time";
                    return Err(CompileError::WrongType { node: id, expected, found: value_type });
                }
                if let Some(truth) = self.compare_interpolated(id, *comparison, *x, *y)? {
                    return Ok(Meaning::Truth(truth));
                }
                let (left, right) = (operand.meaning(*x)?, operand.meaning(*y)?);
                let exact = match self.compare_age(*comparison, *x, *y)? {
                    None => self.compare_chain(*comparison, *x, *y)?,
                    exact => exact,
                };
                match exact {
                    Some(truth) => Meaning::Truth(truth),
                    None => Meaning::Truth(self.compare(*comparison, left, right)),
                }
            }
            Expr::StartsWith(x, y) => {
                let text = &[ValueType::String];
                let (x, y) = (operand.values(*x, text, "string")?, operand.values(*y, text, "string")?);
                let starts = |me: &mut Self, x, y| me.relation(ComparisonKind::TextStartsWith, false, x, y);
                Meaning::Truth(Truth { at: starts(self, x.at, y.at), after: starts(self, x.after, y.after) })
            }
            Expr::Call(function, x, y) => {
                let parameters = function.parameters();
                let mut arguments = Vec::with_capacity(2);
                for (argument, parameter) in [Some(*x), *y].into_iter().flatten().zip(parameters) {
                    arguments.push(operand.values(argument, &[*parameter], named(*parameter))?);
                }
                if arguments.len() != parameters.len() {
                    return Err(CompileError::Unsupported { node: id, what: error::ARGUMENTS });
                }
                let is_constant = |y: &ExprId| match self.spec.nodes.get(y.index()) {
                    Some(Expr::Literal(Value::String(text))) => pattern(text).is_ok(),
                    _ => false,
                };
                if matches!(function.kernel(), Kernel::Matches) && !y.as_ref().is_some_and(is_constant) {
                    return Err(CompileError::Unsupported { node: id, what: error::PATTERN });
                }
                self.function(*function, arguments[0], arguments.get(1).copied())
            }
            Expr::If(condition, x, y) => {
                let condition = operand.truth(*condition)?;
                operand.same_type(*x, *y)?;
                self.choose(condition, operand.meaning(*x)?, operand.meaning(*y)?)
            }
            Expr::Prev(x) => {
                let meaning = operand.meaning(*x)?;
                let set = operand.set(*x);
                self.prev(meaning, set)
            }
            Expr::Not(x) => Meaning::Truth(operand.truth(*x)?.not()),
            Expr::And(x, y) => {
                let (x, y) = (operand.truth(*x)?, operand.truth(*y)?);
                Meaning::Truth(self.by_bound([x, y], |graph, [a, b]| Halves {
                    at: graph.and(a.at, b.at),
                    after: graph.and(a.after, b.after),
                }))
            }
            Expr::Or(x, y) => {
                let (x, y) = (operand.truth(*x)?, operand.truth(*y)?);
                Meaning::Truth(self.by_bound([x, y], |graph, [a, b]| Halves {
                    at: graph.or(a.at, b.at),
                    after: graph.or(a.after, b.after),
                }))
            }
            Expr::Definitely(x) => {
                let truth = operand.truth(*x)?;
                Meaning::Truth(self.definitely(*x, truth))
            }
            Expr::Previously(x) => {
                let x = operand.truth(*x)?;
                Meaning::Truth(self.previously(x))
            }
            Expr::Debounce(lasting, x) => {
                let lasting = Bounds { lower: *lasting, upper: None };
                let x = operand.truth(*x)?;
                let (on, off) = (self.since(lasting, x, x), self.since(lasting, x.not(), x.not()));
                Meaning::Truth(self.since(Bounds::ALL, off.not(), on))
            }
            Expr::Window { aggregate, over, operand: x, topics } => {
                Meaning::Values(self.window(id, *aggregate, *over, *x, topics, operand)?)
            }
            Expr::Age(topic) => Meaning::Values(self.age(*topic)?),
            Expr::Latency(topic) => Meaning::Values(self.latency(*topic)?),
            Expr::Jitter(topic) => Meaning::Values(self.jitter(*topic)?),
            Expr::Chain(chain, measure) => Meaning::Values(self.chain(id, *chain, *measure)?),
            Expr::Variable(variable, value_type) if self.variables.contains(variable) => {
                let key = self.variables.iter().position(|other| other == variable);
                self.key(key.unwrap_or_default() as u32, *value_type)
            }
            Expr::Key(key, value_type) if self.keys.get(*key as usize) == Some(value_type) => {
                self.key(*key, *value_type)
            }
            _ => self.common_meaning(id, expr, operand)?,
        })
    }

    /// The meaning of a node that reads a field, or of `once`, `historically` and `since`.
    fn common_meaning(
        &mut self,
        id: ExprId,
        expr: &Expr,
        operand: &Operands<'_>,
    ) -> Result<Meaning, CompileError> {
        if let Some((topic, path, read)) = expr.field() {
            let field = self.field(topic, path, read);
            return Ok(self.held(field, self.spec.value_type(id)));
        }
        let Some(Temporal { bounds, all, guard, operand: x }) = expr.past() else {
            return Err(CompileError::Unsupported { node: id, what: "this operator" });
        };
        let guard = guard.map(|guard| operand.truth(guard)).transpose()?;
        let x = operand.truth(x)?;
        Ok(Meaning::Truth(match guard {
            Some(guard) => self.since(bounds, guard, x),
            None if all => self.once(bounds, x.not()).not(),
            None => self.once(bounds, x),
        }))
    }
}

/// The name of an argument's type in messages.
fn named(value_type: ValueType) -> &'static str {
    if value_type == ValueType::Float { "float" } else { "string" }
}
