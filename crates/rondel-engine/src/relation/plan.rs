//! Plans: parts, each a relation over variables, with operands before the parts that use them.

use regex::bytes::Regex;
use rondel_event::{Comparison, Path, TopicId, ValueType};
use rondel_spec::{BinaryOp, ExprId, FunctionId, UnaryOp, VariableId};

use super::table::Access;
use crate::future;

/// Plan of a closed quantified formula, or of its complement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RelationPlan {
    pub(crate) parts: Vec<Part>,
    /// The formula holds if any of these does.
    pub(crate) roots: Vec<Root>,
    /// The formula holds if none does.
    pub(crate) negated: bool,
    pub(crate) atoms: Vec<Atom>,
    /// Message fields that the atoms read.
    pub(crate) fields: Vec<FieldColumn>,
    /// Truths without variables, which the caller supplies.
    pub(crate) truths: Vec<ClosedTruth>,
    /// Values without variables, likewise.
    pub(crate) values: Vec<ExprId>,
    pub(crate) texts: Vec<Box<str>>,
    /// Variables whose values are reported where the roots come to hold, with their types; empty if nothing
    /// is reported.
    pub(crate) named: Vec<(VariableId, ValueType)>,
    /// Obligation of the tuples of the last part, if the formula has future operators.
    pub(crate) obligation: Option<Box<TupleObligation>>,
}

/// Formula with future operators, evaluated for each tuple of a relation at the time points at which it is
/// present.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TupleObligation {
    /// Number that identifies the obligation.
    pub(crate) number: u32,
    /// Formula whose pasts are those of [`PartOp::Obligation`]. Steps are points at the times of their
    /// numbers.
    pub(crate) formula: future::Plan,
}

/// Index of a part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartId(pub(crate) u32);

impl PartId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Relation over some variables, its columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) op: PartOp,
    /// Columns, in order; their types determine which are texts.
    pub(crate) variables: Vec<VariableId>,
    pub(crate) is_text: Vec<bool>,
    /// Whether the relation lasts from tick to tick and outputs its changes. A momentary one is computed
    /// again at every tick.
    pub(crate) lasts: bool,
    /// Whether its tuples are stored in a table for lookups by other parts.
    pub(crate) is_kept: bool,
    pub(crate) indexes: Vec<Vec<u32>>,
    /// Approximation used after the limit has evicted tuples that the part depends on: all tuples for the
    /// upper truth, none for the lower. `None` if no limit affects it.
    pub(crate) vague: Option<TruthBound>,
}

impl Part {
    /// Whether the part evicts tuples above a limit.
    pub(crate) fn forgets(&self) -> bool {
        matches!(self.op, PartOp::Since { most: Some(_), .. })
    }
}

/// Number of values stored by an operator without an upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    /// No operator without an upper bound: it is refused.
    #[default]
    Bounded,
    /// As `Bounded`, where a limit cannot be applied.
    Strict,
    /// The latest N values. The presence of older ones is unknown.
    Latest(u64),
    All,
}

impl Keep {
    /// Reads the attributes of a property.
    pub(crate) fn of(attributes: &[(String, String)], is_divided: bool) -> Keep {
        let value = |wanted: &str| attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let latest = |limit: &String| limit.replace('_', "").parse().ok().map(Keep::Latest);
        match (value("unbounded"), is_divided, value("limit")) {
            (Some(_), ..) => Keep::All,
            // With `for each` the attribute limits instances.
            (None, true, _) => Keep::Strict,
            (None, false, Some(limit)) => latest(limit).unwrap_or_default(),
            (None, false, None) => Keep::Bounded,
        }
    }
}

/// Limit on the tuples stored by an operator without an upper bound, and the truth bound that it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    pub(crate) tuples: u64,
    pub(crate) truth_bound: TruthBound,
}

/// Operation that computes a part from others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartOp {
    /// The single tuple without columns.
    Unit,
    /// The tuple of an atom.
    Bind(u32),
    /// The tuples of a momentary part, passed through stages. If only the output columns matter, each
    /// combination of them is found once; with `is_first`, one tuple is enough.
    Chain { of: PartId, stages: Vec<Stage>, output: Vec<u32>, is_first: bool },
    /// The tuples of any of them.
    Union(Vec<PartId>),
    /// Some of the columns.
    Project(PartId, Vec<u32>),
    /// The relation at the previous tick.
    Previously(PartId),
    /// The changes of a momentary part.
    Changes(PartId),
    /// All tuples of a lasting part, at every tick.
    Scan(PartId),
    /// A lasting part, delayed.
    Delay(PartId, i64),
    /// The pairs that agree in the shared columns. Both parts last.
    Join(Side, Side, Vec<(bool, u32)>),
    /// The same pairs that also differ in one column of each. They are counted only, and one is output.
    Apart { sides: Box<[Side; 2]>, columns: [u32; 2], output: Vec<(bool, u32)> },
    /// The tuples of the first part that match none of the second, whose columns it has. Both last.
    Without(Side, Side),
    /// The tuples of a lasting part that meet the conditions.
    Select(PartId, Vec<Condition>),
    /// `left since[lower,upper] right`, or `once` without a left operand. With `most` only the latest tuples
    /// are stored.
    Since { lower: i64, upper: Option<i64>, left: Vec<Left>, right: PartId, most: Option<Most> },
    /// The tuples that have been in a lasting part without a break for the given duration.
    Lasting(PartId, Option<i64>),
    /// The tuples of a part with obligations; for each past of the obligation, the requirements of its lower
    /// and upper truth.
    Obligation { of: PartId, pasts: Vec<[Vec<Left>; 2]> },
}

/// One side of a join.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    pub(crate) part: PartId,
    /// Access to the rows of this side that match a tuple of the other.
    pub(crate) access: Access,
    /// Columns that must agree.
    pub(crate) columns: Vec<u32>,
}

/// Stage of a chain. A tuple passing through fills more and more slots.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// Continues only if this holds.
    Test(Condition),
    /// Copies a term to the next slot.
    Assign(Term),
    /// Continues with every matching tuple of a part, whose listed columns fill the next slots.
    With(Lookup, Vec<u32>),
    /// Continues only if no tuple of a part matches.
    Without(Lookup),
}

/// Search of a part by columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lookup {
    pub(crate) part: PartId,
    pub(crate) access: Access,
    /// Columns that must agree.
    pub(crate) columns: Vec<u32>,
    /// Slots, or columns of the tuple, that they must agree with.
    pub(crate) slots: Vec<u32>,
}

/// Requirement that a tuple of `since` must keep meeting, or that makes a past true.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Left {
    Test(Condition),
    /// The tuple must be in a part, or must not; `back` finds the rows of this part that a tuple of the other
    /// one affects.
    Member {
        lookup: Lookup,
        wanted: bool,
        back: Access,
    },
}

impl Left {
    fn member_mut(&mut self) -> Option<&mut PartId> {
        match self {
            Left::Member { lookup, .. } => Some(&mut lookup.part),
            Left::Test(_) => None,
        }
    }
}

/// Test of a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// Truth without variables.
    Truth(u32),
    /// Whether there was an earlier tick equals this.
    NotFirst(bool),
    Compare {
        comparison: Comparison,
        value_type: ValueType,
        left: Term,
        right: Term,
        /// Required result.
        wanted: bool,
        /// Result of the test if a term is unknown.
        unknown: bool,
    },
    StartsWith {
        left: Term,
        right: Term,
        wanted: bool,
        unknown: bool,
    },
    /// Test of a text.
    Text {
        test: TextTest,
        left: Term,
        wanted: bool,
        unknown: bool,
    },
}

/// Test of a text, with its second argument.
#[derive(Clone, Debug)]
pub(crate) enum TextTest {
    Function(fn(&[u8], &[u8]) -> bool, Term),
    Pattern(Regex),
}

impl PartialEq for TextTest {
    fn eq(&self, other: &TextTest) -> bool {
        match (self, other) {
            (TextTest::Function(f, x), TextTest::Function(g, y)) => std::ptr::fn_addr_eq(*f, *g) && x == y,
            (TextTest::Pattern(x), TextTest::Pattern(y)) => x.as_str() == y.as_str(),
            _ => false,
        }
    }
}

/// Value computed from a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    Slot(u32),
    /// Value without variables.
    Input(u32),
    /// Bits of a constant.
    Constant(u64),
    ConstantText(u32),
    ToFloat(Box<Term>),
    Unary(UnaryOp, ValueType, Box<Term>),
    Binary(BinaryOp, Arithmetic, Box<[Term; 2]>),
    Call(FunctionId, Box<[Term]>),
}

/// Number type of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arithmetic {
    Whole,
    Float,
    /// Quotient of two durations.
    Ratio,
}

impl Condition {
    /// Whether its result for a tuple never changes.
    pub(crate) fn is_fixed(&self) -> bool {
        match self {
            Condition::Truth(_) | Condition::NotFirst(_) => false,
            Condition::Compare { left, right, .. } | Condition::StartsWith { left, right, .. } => {
                left.is_fixed() && right.is_fixed()
            }
            Condition::Text { test: TextTest::Function(_, right), left, .. } => {
                left.is_fixed() && right.is_fixed()
            }
            Condition::Text { left, .. } => left.is_fixed(),
        }
    }

    /// Whether it does not depend on the tuple.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Condition::Truth(_) | Condition::NotFirst(_))
    }

    pub(crate) fn inputs(&self, out: &mut Vec<u32>) {
        match self {
            Condition::Truth(_) | Condition::NotFirst(_) => {}
            Condition::Compare { left, right, .. } | Condition::StartsWith { left, right, .. } => {
                left.inputs(out);
                right.inputs(out);
            }
            Condition::Text { test, left, .. } => {
                left.inputs(out);
                if let TextTest::Function(_, right) = test {
                    right.inputs(out);
                }
            }
        }
    }
}

impl Term {
    fn is_fixed(&self) -> bool {
        let mut inputs = Vec::new();
        self.inputs(&mut inputs);
        inputs.is_empty()
    }

    fn inputs(&self, out: &mut Vec<u32>) {
        match self {
            Term::Input(input) => out.push(*input),
            Term::Slot(_) | Term::Constant(_) | Term::ConstantText(_) => {}
            Term::ToFloat(x) | Term::Unary(_, _, x) => x.inputs(out),
            Term::Binary(_, _, both) => both.iter().for_each(|x| x.inputs(out)),
            Term::Call(_, arguments) => arguments.iter().for_each(|x| x.inputs(out)),
        }
    }
}

/// Atom: a message on the topic with these fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Atom {
    pub(crate) topic: TopicId,
    /// Fields of the plan that it reads, each with its column in the tuple.
    pub(crate) columns: Vec<(u32, u32)>,
}

/// Field of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldColumn {
    pub(crate) topic: TopicId,
    pub(crate) path: Path,
    pub(crate) value_type: ValueType,
}

/// Lower truth (must), where a formula is certainly true, or upper truth (may), where it is possibly true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TruthBound {
    Certain,
    Possible,
}

impl TruthBound {
    /// Returns the bound of the operand of a negation.
    pub(crate) fn opposite(self) -> TruthBound {
        match self {
            TruthBound::Certain => TruthBound::Possible,
            TruthBound::Possible => TruthBound::Certain,
        }
    }
}

/// Node without variables, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClosedTruth {
    pub(crate) node: ExprId,
    /// Truth bound of the node.
    pub(crate) truth_bound: TruthBound,
    pub(crate) negated: bool,
}

/// Way in which the formula can hold: all conditions, and a tuple in the part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Root {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) part: PartId,
}

impl PartOp {
    /// Calls `f` with every operand, and whether the part is monotone in it.
    pub(crate) fn for_each_operand(&self, mut f: impl FnMut(PartId, bool)) {
        let member = |left: &Left, f: &mut dyn FnMut(PartId, bool)| {
            if let Left::Member { lookup, wanted, .. } = left {
                f(lookup.part, *wanted);
            }
        };
        match self {
            PartOp::Unit | PartOp::Bind(_) => {}
            PartOp::Chain { of, stages, .. } => {
                f(*of, true);
                for stage in stages {
                    match stage {
                        Stage::With(lookup, _) => f(lookup.part, true),
                        Stage::Without(lookup) => f(lookup.part, false),
                        Stage::Test(_) | Stage::Assign(_) => {}
                    }
                }
            }
            PartOp::Union(parts) => parts.iter().for_each(|part| f(*part, true)),
            PartOp::Project(of, _)
            | PartOp::Previously(of)
            | PartOp::Changes(of)
            | PartOp::Scan(of)
            | PartOp::Delay(of, _)
            | PartOp::Select(of, _)
            | PartOp::Lasting(of, _) => f(*of, true),
            PartOp::Join(left, right, _) => [left, right].into_iter().for_each(|side| f(side.part, true)),
            PartOp::Without(left, right) => {
                f(left.part, true);
                f(right.part, false);
            }
            PartOp::Apart { sides, .. } => sides.iter().for_each(|side| f(side.part, true)),
            PartOp::Since { left, right, .. } => {
                f(*right, true);
                left.iter().for_each(|left| member(left, &mut f));
            }
            PartOp::Obligation { of, pasts } => {
                f(*of, true);
                pasts.iter().flatten().flatten().for_each(|left| member(left, &mut f));
            }
        }
    }

    /// Returns the operands.
    pub(crate) fn operands_mut(&mut self) -> Vec<&mut PartId> {
        match self {
            PartOp::Unit | PartOp::Bind(_) => Vec::new(),
            PartOp::Chain { of, stages, .. } => {
                let of_stages = stages.iter_mut().filter_map(|stage| match stage {
                    Stage::With(lookup, _) | Stage::Without(lookup) => Some(&mut lookup.part),
                    Stage::Test(_) | Stage::Assign(_) => None,
                });
                std::iter::once(of).chain(of_stages).collect()
            }
            PartOp::Union(parts) => parts.iter_mut().collect(),
            PartOp::Project(of, _)
            | PartOp::Previously(of)
            | PartOp::Changes(of)
            | PartOp::Scan(of)
            | PartOp::Delay(of, _)
            | PartOp::Select(of, _)
            | PartOp::Lasting(of, _) => vec![of],
            PartOp::Join(left, right, _) | PartOp::Without(left, right) => {
                vec![&mut left.part, &mut right.part]
            }
            PartOp::Apart { sides, .. } => sides.iter_mut().map(|side| &mut side.part).collect(),
            PartOp::Since { left, right, .. } => {
                std::iter::once(right).chain(left.iter_mut().filter_map(Left::member_mut)).collect()
            }
            PartOp::Obligation { of, pasts } => {
                let left = pasts.iter_mut().flatten().flatten();
                std::iter::once(of).chain(left.filter_map(Left::member_mut)).collect()
            }
        }
    }
}

impl RelationPlan {
    /// Whether the plan evicts values above a limit, so that truths can become unknown.
    pub(crate) fn forgets(&self) -> bool {
        self.parts.iter().any(Part::forgets)
    }

    /// Returns the minimum time in nanoseconds, in dense time, between a time point and a change caused by
    /// time alone.
    pub(crate) fn soonest(&self) -> u64 {
        let of_part = |part: &Part| match part.op {
            PartOp::Since { lower, upper, .. } => {
                if lower > 0 {
                    Some(lower)
                } else {
                    upper
                }
            }
            PartOp::Lasting(_, upper) => upper,
            PartOp::Delay(_, by) => Some(by),
            _ => None,
        };
        let places = self.parts.iter().filter_map(of_part).min();
        places.map_or(u64::MAX, |places| (places / 2).unsigned_abs())
    }

    /// Whether the presence of an earlier time point matters.
    pub(crate) fn depends_on_first(&self) -> bool {
        let tests_first = |condition: &Condition| matches!(condition, Condition::NotFirst(_));
        let of_left = |left: &Left| matches!(left, Left::Test(condition) if tests_first(condition));
        let of_part = |part: &Part| match &part.op {
            // Before the first time point everything has lasted for ever.
            PartOp::Lasting(..) => true,
            PartOp::Chain { stages, .. } => {
                stages.iter().any(|stage| matches!(stage, Stage::Test(condition) if tests_first(condition)))
            }
            PartOp::Select(_, conditions) => conditions.iter().any(tests_first),
            PartOp::Since { left, .. } => left.iter().any(of_left),
            PartOp::Obligation { pasts, .. } => pasts.iter().flatten().flatten().any(of_left),
            _ => false,
        };
        self.parts.iter().any(of_part)
            || self.roots.iter().any(|root| root.conditions.iter().any(tests_first))
    }

    /// Removes the parts that no root needs.
    pub(crate) fn pruned(mut self) -> RelationPlan {
        let mut needed = vec![false; self.parts.len()];
        for root in &self.roots {
            needed[root.part.index()] = true;
        }
        // Operands precede the parts that use them.
        for i in (0..self.parts.len()).rev() {
            if needed[i] {
                for operand in self.parts[i].op.operands_mut() {
                    needed[operand.index()] = true;
                }
            }
        }
        let mut place = Vec::with_capacity(needed.len());
        let mut count = 0;
        for &needed in &needed {
            place.push(PartId(count));
            count += u32::from(needed);
        }
        let mut keep = needed.iter();
        self.parts.retain(|_| keep.next().is_some_and(|needed| *needed));
        for part in &mut self.parts {
            for operand in part.op.operands_mut() {
                *operand = place[operand.index()];
            }
        }
        for root in &mut self.roots {
            root.part = place[root.part.index()];
        }
        self
    }
}
