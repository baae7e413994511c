//! Values of variables: comparisons and arithmetic, as tests of tuples.

use rondel_event::{Comparison, Value, ValueType};
use rondel_spec::{Expr, ExprId, Kernel, VariableId, pattern};

use super::literal::{Literal, Refusal};
use super::parts::position;
use super::plan::{Arithmetic, ClosedTruth, Condition, Term, TextTest, TruthBound};
use super::safe::Compiler;

/// Help for a value that cannot be computed.
const COMPUTE: &str = "use variables only in arithmetic and comparisons";

impl Compiler<'_> {
    /// Whether a node with variables is a test of values.
    pub(crate) fn is_test(&self, node: ExprId) -> bool {
        match &self.scope.spec.nodes[node.index()] {
            Expr::Compare(_, x, y) => !self.is_formula(*x) && !self.is_formula(*y),
            Expr::StartsWith(..) | Expr::Variable(..) => true,
            Expr::Call(function, ..) => function.result() == ValueType::Bool,
            _ => false,
        }
    }

    /// Returns a condition for a literal without variables.
    pub(crate) fn truth(&mut self, literal: Literal) -> Condition {
        let Literal { node, positive, truth_bound } = literal;
        let own = if positive { truth_bound } else { truth_bound.opposite() };
        let truth_bound = if (self.two_valued)(node) { TruthBound::Certain } else { own };
        Condition::Truth(position(
            &mut self.plan.truths,
            ClosedTruth { node, truth_bound, negated: !positive },
        ))
    }

    /// Returns a condition for a comparison of terms, whose slots are these variables.
    pub(crate) fn test(&mut self, literal: Literal, bound: &[VariableId]) -> Result<Condition, Refusal> {
        let Literal { node, positive: wanted, truth_bound } = literal;
        let unknown = truth_bound == TruthBound::Possible;
        let spec = self.scope.spec;
        Ok(match spec.nodes[node.index()] {
            Expr::Compare(comparison, x, y) => {
                let value_type = self.value_type(node, x)?;
                if self.value_type(node, y)? != value_type {
                    let why = "it is compared with a value of another type";
                    return Err(Refusal::of(node, why, "compare values of one type"));
                }
                let (left, right) = (self.term(x, bound)?, self.term(y, bound)?);
                let unknown = unknown && (self.can_fail(x) || self.can_fail(y));
                Condition::Compare { comparison, value_type, left, right, wanted, unknown }
            }
            Expr::StartsWith(x, y) => {
                let (left, right) = (self.term(x, bound)?, self.term(y, bound)?);
                let unknown = unknown && (self.can_fail(x) || self.can_fail(y));
                Condition::StartsWith { left, right, wanted, unknown }
            }
            Expr::Call(function, x, Some(y)) => {
                let unknown = unknown && (self.can_fail(x) || self.can_fail(y));
                let left = self.term(x, bound)?;
                let test = match function.kernel() {
                    Kernel::Test(test) => TextTest::Function(test, self.term(y, bound)?),
                    _ => match &spec.nodes[y.index()] {
                        Expr::Literal(Value::String(text)) => match pattern(text) {
                            Ok(pattern) => TextTest::Pattern(pattern),
                            Err(_) => {
                                return Err(Refusal::of(
                                    node,
                                    "the regular expression is not valid",
                                    COMPUTE,
                                ));
                            }
                        },
                        _ => {
                            return Err(Refusal::of(
                                node,
                                "the regular expression is not a constant",
                                COMPUTE,
                            ));
                        }
                    },
                };
                Condition::Text { test, left, wanted, unknown }
            }
            Expr::Variable(variable, ValueType::Bool) => {
                let (left, right) = (Term::Slot(place(bound, variable)), Term::Constant(1));
                let (comparison, value_type) = (Comparison::Equal, ValueType::Bool);
                Condition::Compare { comparison, value_type, left, right, wanted, unknown: false }
            }
            _ => return Err(Refusal::of(node, "this is not a comparison of values", COMPUTE)),
        })
    }

    /// Returns the type of a value. Operands must precede their node, so that no recursion is needed.
    fn value_type(&mut self, node: ExprId, of: ExprId) -> Result<ValueType, Refusal> {
        if of.index() >= node.index() {
            return Err(Refusal::of(node, "an operand does not precede it", COMPUTE));
        }
        Ok(self.scope.spec.value_type(of))
    }

    /// Whether a value can be unknown.
    fn can_fail(&self, node: ExprId) -> bool {
        if self.scope.is_closed(node) {
            return !(self.two_valued)(node);
        }
        !matches!(self.scope.spec.nodes[node.index()], Expr::Variable(..))
    }

    fn term(&mut self, node: ExprId, bound: &[VariableId]) -> Result<Term, Refusal> {
        self.enter(node)?;
        let spec = self.scope.spec;
        let refuse = |why| Err(Refusal::of(node, why, COMPUTE));
        let term = match &spec.nodes[node.index()] {
            Expr::Literal(value) => match constant(value) {
                Some(bits) => Term::Constant(bits),
                None => match value {
                    Value::String(text) => Term::ConstantText(position(&mut self.plan.texts, text.clone())),
                    // NaN equals nothing, which the comparison handles.
                    _ => Term::Constant(f64::NAN.to_bits()),
                },
            },
            _ if self.scope.is_closed(node) => Term::Input(position(&mut self.plan.values, node)),
            Expr::Variable(variable, _) => Term::Slot(place(bound, *variable)),
            Expr::ToFloat(x) => Term::ToFloat(Box::new(self.term(*x, bound)?)),
            Expr::Unary(op, x) => {
                let value_type = self.value_type(node, *x)?;
                Term::Unary(*op, value_type, Box::new(self.term(*x, bound)?))
            }
            Expr::Binary(op, x, y) => {
                let (left, right) = (self.value_type(node, *x)?, self.value_type(node, *y)?);
                let arithmetic = match rondel_spec::binary_type(*op, left, right) {
                    Some(ValueType::Float) if left != ValueType::Float => Arithmetic::Ratio,
                    Some(ValueType::Float) => Arithmetic::Float,
                    Some(_) => Arithmetic::Whole,
                    None => return refuse("this arithmetic is not defined for these types"),
                };
                Term::Binary(*op, arithmetic, Box::new([self.term(*x, bound)?, self.term(*y, bound)?]))
            }
            Expr::Call(function, x, y) if function.result() != ValueType::String => {
                let mut arguments = vec![self.term(*x, bound)?];
                if let Some(y) = y {
                    arguments.push(self.term(*y, bound)?);
                }
                Term::Call(*function, arguments.into())
            }
            _ => return refuse("this value cannot be computed from variables"),
        };
        self.depth -= 1;
        Ok(term)
    }
}

/// Returns the bits of a value, unless it is a text or NaN.
pub(crate) fn constant(value: &Value) -> Option<u64> {
    match value {
        Value::Bool(x) => Some(u64::from(*x)),
        Value::Int(x) | Value::Time(x) | Value::Duration(x) => Some(*x as u64),
        Value::Float(x) => float(*x),
        Value::String(_) => None,
    }
}

/// Returns the bits of a number, the same for both zeros; `None` for NaN.
#[inline(always)]
pub(crate) fn float(x: f64) -> Option<u64> {
    if x.is_nan() { None } else { Some((x + 0.0).to_bits()) }
}

/// Returns the index of a variable among the bound ones.
pub(crate) fn place(bound: &[VariableId], variable: VariableId) -> u32 {
    bound.iter().position(|v| *v == variable).unwrap_or(0) as u32
}
