//! What is computed: parts, each a relation over variables, in an order in which operands come first.

use regex::bytes::Regex;
use rondel_event::{Comparison, Path, TopicId, ValueType};
use rondel_spec::{BinaryOp, ExprId, FunctionId, UnaryOp, VariableId};

use super::table::Access;
use crate::future;

/// A closed quantified formula, or its complement, as a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RelationPlan {
    pub(crate) parts: Vec<Part>,
    /// It holds where one of these does.
    pub(crate) roots: Vec<Root>,
    /// Or where none does.
    pub(crate) negated: bool,
    pub(crate) atoms: Vec<Atom>,
    /// What the atoms read from messages.
    pub(crate) fields: Vec<FieldColumn>,
    /// Truths without variables, which whoever runs the plan knows.
    pub(crate) truths: Vec<ClosedTruth>,
    /// Values without variables, likewise.
    pub(crate) values: Vec<ExprId>,
    pub(crate) texts: Vec<Box<str>>,
    /// The variables whose values are named where the roots come to hold, with their types; none if nobody asks.
    pub(crate) named: Vec<(VariableId, ValueType)>,
    /// Where the formula looks ahead, what is asked of the tuples of its last part.
    pub(crate) ask: Option<Box<Ask>>,
}

/// A formula that looks ahead, asked of each tuple of a relation at the moments at which it is there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    /// Tells it from others.
    pub(crate) number: u32,
    /// The formula. Its pasts are those of [`PartOp::Ask`]; of steps it is one in points, at their numbers.
    pub(crate) formula: future::Plan,
}

/// A part of a plan, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartId(pub(crate) u32);

impl PartId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A relation over some variables, its columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) op: PartOp,
    /// In order; their types tell which columns are texts.
    pub(crate) variables: Vec<VariableId>,
    pub(crate) is_text: Vec<bool>,
    /// Whether it lasts from tick to tick, and says what changes. Another one is made anew in each.
    pub(crate) lasts: bool,
    /// Whether its tuples are kept in a table for those that look them up.
    pub(crate) is_kept: bool,
    pub(crate) indexes: Vec<Vec<u32>>,
    /// What is taken for it once something that it rests on has forgotten values: all tuples, as each of them may be in
    /// it, or none, as none is certain to be. Nothing if that cannot come to be.
    pub(crate) vague: Option<Rail>,
}

impl Part {
    /// Whether it forgets values when there are too many.
    pub(crate) fn forgets(&self) -> bool {
        matches!(self.op, PartOp::Since { most: Some(_), .. })
    }
}

/// How many values an operator keeps that has no upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    /// None: it is refused.
    #[default]
    Bounded,
    /// The same, where a limit cannot be applied.
    Strict,
    /// The latest ones, so many. Of others it is then unknown whether they were there.
    Latest(u64),
    All,
}

impl Keep {
    /// As the attributes of a property say.
    pub(crate) fn of(attributes: &[(String, String)], is_divided: bool) -> Keep {
        let value = |wanted: &str| attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let latest = |limit: &String| limit.replace('_', "").parse().ok().map(Keep::Latest);
        match (value("unbounded"), is_divided, value("limit")) {
            (Some(_), ..) => Keep::All,
            // There it limits the instances.
            (None, true, _) => Keep::Strict,
            (None, false, Some(limit)) => latest(limit).unwrap_or_default(),
            (None, false, None) => Keep::Bounded,
        }
    }
}

/// Of an operator without an upper bound, how many tuples it keeps, and which side it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    pub(crate) tuples: u64,
    pub(crate) rail: Rail,
}

/// How a part comes from others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartOp {
    /// The one tuple without columns.
    Unit,
    /// The tuple of an atom.
    Bind(u32),
    /// The tuples of a part that does not last, each led through stages.
    /// Where only the columns of the output matter, each combination of them is found once; if one tuple of all is
    /// enough, `is_first`, only the first.
    Chain { of: PartId, stages: Vec<Stage>, output: Vec<u32>, is_first: bool },
    /// The tuples of all of them.
    Union(Vec<PartId>),
    /// Some of the columns.
    Project(PartId, Vec<u32>),
    /// What it was at the tick before.
    Previously(PartId),
    /// The changes of what does not last.
    Changes(PartId),
    /// What lasts, all of it at every tick.
    Scan(PartId),
    /// What lasts, so much later.
    Delay(PartId, i64),
    /// The pairs that agree in the columns that both have. Both last.
    Join(Side, Side, Vec<(bool, u32)>),
    /// The same, of those that differ in a column of each. They are only counted, and one is named.
    Apart { sides: Box<[Side; 2]>, columns: [u32; 2], output: Vec<(bool, u32)> },
    /// The tuples of the first that agree with none of the second, whose columns it has. Both last.
    Without(Side, Side),
    /// The tuples of what lasts that pass.
    Select(PartId, Vec<Condition>),
    /// `left since[lower,upper] right`, without a left side `once`.
    /// With `most` it keeps only so many of the latest tuples.
    Since { lower: i64, upper: Option<i64>, left: Vec<Left>, right: PartId, most: Option<Most> },
    /// The tuples that have been in what lasts all the time, for so long.
    Lasting(PartId, Option<i64>),
    /// The tuples of a part of which something is asked that looks ahead; for each past of that, on both
    /// rails, what makes it true.
    Ask { of: PartId, pasts: Vec<[Vec<Left>; 2]> },
}

/// One side of a join.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    pub(crate) part: PartId,
    /// How the rows of this side are found that agree with a tuple of the other.
    pub(crate) access: Access,
    /// The columns that agree.
    pub(crate) columns: Vec<u32>,
}

/// A step of a chain. A tuple on its way has slots, of which it fills more and more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// It goes on only where this holds.
    Test(Condition),
    /// The next slot is a copy of this.
    Assign(Term),
    /// It goes on with every tuple of a part that agrees: of which these columns fill the next slots.
    With(Lookup, Vec<u32>),
    /// It goes on if no tuple of a part agrees.
    Without(Lookup),
}

/// How a part is searched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lookup {
    pub(crate) part: PartId,
    pub(crate) access: Access,
    /// The columns that must agree.
    pub(crate) columns: Vec<u32>,
    /// The slots, or columns of the tuple, that they must agree with.
    pub(crate) slots: Vec<u32>,
}

/// What keeps a tuple of `since` alive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Left {
    Test(Condition),
    /// A part that must have it, or must not; and how the rows of the `since` are found that a tuple
    /// of that part concerns.
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

/// A test of a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// A truth without variables.
    Truth(u32),
    /// There was a tick before, or there was none.
    NotFirst(bool),
    Compare {
        comparison: Comparison,
        value_type: ValueType,
        left: Term,
        right: Term,
        /// Whether it must hold, or must not.
        wanted: bool,
        /// What it is if a term is unknown.
        unknown: bool,
    },
    StartsWith {
        left: Term,
        right: Term,
        wanted: bool,
        unknown: bool,
    },
    /// A test of a text.
    Text {
        test: TextTest,
        left: Term,
        wanted: bool,
        unknown: bool,
    },
}

/// A test of a text, with its further argument.
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

/// A value of a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    Slot(u32),
    /// A value without variables.
    Input(u32),
    /// The bits of a constant.
    Constant(u64),
    ConstantText(u32),
    ToFloat(Box<Term>),
    Unary(UnaryOp, ValueType, Box<Term>),
    Binary(BinaryOp, Arithmetic, Box<[Term; 2]>),
    Call(FunctionId, Box<[Term]>),
}

/// On what numbers arithmetic works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arithmetic {
    Whole,
    Float,
    /// Of two durations.
    Ratio,
}

impl Condition {
    /// Whether it can change its mind about a tuple.
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

/// An atom: a message on the topic, with these fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Atom {
    pub(crate) topic: TopicId,
    /// For every field of the plan that it reads the column of its tuple.
    pub(crate) columns: Vec<(u32, u32)>,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldColumn {
    pub(crate) topic: TopicId,
    pub(crate) path: Path,
    pub(crate) value_type: ValueType,
}

/// Which side of Kleene's unknown is meant: where a formula is certainly true, or where it is possibly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rail {
    Certain,
    Possible,
}

impl Rail {
    /// That of the negation.
    pub(crate) fn opposite(self) -> Rail {
        match self {
            Rail::Certain => Rail::Possible,
            Rail::Possible => Rail::Certain,
        }
    }
}

/// A node without variables, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClosedTruth {
    pub(crate) node: ExprId,
    /// The rail of the node.
    pub(crate) rail: Rail,
    pub(crate) negated: bool,
}

/// A way in which the formula can hold: all of the truths, and a tuple in the part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Root {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) part: PartId,
}

impl PartOp {
    /// Calls `f` with the parts that it is made of, and whether it has more tuples if they do, or fewer.
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
            PartOp::Ask { of, pasts } => {
                f(*of, true);
                pasts.iter().flatten().flatten().for_each(|left| member(left, &mut f));
            }
        }
    }

    /// The parts that it is made of.
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
            PartOp::Ask { of, pasts } => {
                let left = pasts.iter_mut().flatten().flatten();
                std::iter::once(of).chain(left.filter_map(Left::member_mut)).collect()
            }
        }
    }
}

impl RelationPlan {
    /// Whether it may come to forget values, so that what rests on them is unknown.
    pub(crate) fn forgets(&self) -> bool {
        self.parts.iter().any(Part::forgets)
    }

    /// In dense time, in nanoseconds: nothing changes by itself sooner than so long after a moment.
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

    /// Whether it matters if there was a moment before.
    pub(crate) fn asks_whether_first(&self) -> bool {
        let asks = |condition: &Condition| matches!(condition, Condition::NotFirst(_));
        let of_left = |left: &Left| matches!(left, Left::Test(condition) if asks(condition));
        let of_part = |part: &Part| match &part.op {
            // Before the first moment everything has lasted all the time.
            PartOp::Lasting(..) => true,
            PartOp::Chain { stages, .. } => {
                stages.iter().any(|stage| matches!(stage, Stage::Test(condition) if asks(condition)))
            }
            PartOp::Select(_, conditions) => conditions.iter().any(asks),
            PartOp::Since { left, .. } => left.iter().any(of_left),
            PartOp::Ask { pasts, .. } => pasts.iter().flatten().flatten().any(of_left),
            _ => false,
        };
        self.parts.iter().any(of_part) || self.roots.iter().any(|root| root.conditions.iter().any(asks))
    }

    /// Without the parts that no root needs.
    pub(crate) fn pruned(mut self) -> RelationPlan {
        let mut needed = vec![false; self.parts.len()];
        for root in &self.roots {
            needed[root.part.index()] = true;
        }
        // Operands stand before what is made of them.
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
