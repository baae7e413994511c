//! The parts of a plan as they are added: equal ones once, with what others look them up by.

use rondel_event::ValueType;
use rondel_spec::{ExprId, VariableId};

use super::literal::{DIVIDE, Refusal};
use super::plan::{Left, Most, Part, PartId, PartOp, Rail};
use super::safe::Compiler;
use super::table::Access;

/// How many parts there may be.
const PARTS: usize = 2_000;

impl Compiler<'_> {
    pub(crate) fn part(&self, part: PartId) -> &Part {
        &self.plan.parts[part.index()]
    }

    /// Adds a part, unless there is one like it.
    pub(crate) fn add(
        &mut self,
        node: ExprId,
        op: PartOp,
        variables: Vec<VariableId>,
        lasts: bool,
    ) -> Result<PartId, Refusal> {
        let known = self.plan.parts.iter().position(|p| p.op == op && p.variables == variables);
        if let Some(known) = known {
            return Ok(PartId(known as u32));
        }
        if self.plan.parts.len() >= PARTS {
            return Err(Refusal::of(node, "the formula has too many parts", DIVIDE));
        }
        let is_text = variables.iter().map(|v| self.scope.type_of(*v) == Some(ValueType::String)).collect();
        let mut op = op;
        let mut indexes = Vec::new();
        let lefts: Vec<&mut Left> = match &mut op {
            PartOp::Since { left, .. } => left.iter_mut().collect(),
            PartOp::Ask { pasts, .. } => pasts.iter_mut().flatten().flatten().collect(),
            _ => Vec::new(),
        };
        for left in lefts {
            if let Left::Member { lookup, back, .. } = left {
                // Sorted, as the columns of the part are.
                *back = access(&mut indexes, variables.len(), &lookup.slots);
            }
        }
        let vague = self.vague(node, &op)?;
        self.plan.parts.push(Part { op, variables, is_text, lasts, is_kept: false, indexes, vague });
        Ok(PartId(self.plan.parts.len() as u32 - 1))
    }

    /// What an operator is taken for where what it rests on is not known any more.
    fn vague(&self, node: ExprId, op: &PartOp) -> Result<Option<Rail>, Refusal> {
        if let PartOp::Since { most: Some(Most { rail: Rail::Possible, .. }), .. } = op {
            return Ok(Some(Rail::Possible));
        }
        let mut found = [false; 2];
        op.for_each_operand(|part, is_same| match (self.part(part).vague, is_same) {
            (Some(Rail::Possible), true) | (Some(Rail::Certain), false) => found[0] = true,
            (Some(Rail::Certain), true) | (Some(Rail::Possible), false) => found[1] = true,
            (None, _) => {}
        });
        match found {
            [false, false] => Ok(None),
            [true, false] => Ok(Some(Rail::Possible)),
            [false, true] => Ok(Some(Rail::Certain)),
            [true, true] => {
                let why = "it would keep every value ever received, and a limit cannot be applied here";
                Err(Refusal::of(
                    node,
                    why,
                    "add upper bounds to the operators of the past, or split the formula",
                ))
            }
        }
    }

    /// The part as one that lasts.
    pub(crate) fn lasting(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        if self.part(part).lasts {
            return Ok(part);
        }
        let variables = self.part(part).variables.clone();
        self.add(node, PartOp::Changes(part), variables, true)
    }

    /// The part as one that is made anew at every tick.
    pub(crate) fn scan(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        self.keep(part);
        let variables = self.part(part).variables.clone();
        self.add(node, PartOp::Scan(part), variables, false)
    }

    pub(crate) fn keep(&mut self, part: PartId) {
        self.plan.parts[part.index()].is_kept = true;
    }

    /// How tuples of a part are found by some columns.
    pub(crate) fn access(&mut self, part: PartId, columns: &[u32]) -> Access {
        let part = &mut self.plan.parts[part.index()];
        if !part.lasts {
            return Access::All;
        }
        part.is_kept = true;
        access(&mut part.indexes, part.variables.len(), columns)
    }
}

fn access(indexes: &mut Vec<Vec<u32>>, arity: usize, columns: &[u32]) -> Access {
    match columns.len() {
        0 => Access::All,
        n if n == arity => Access::Whole,
        _ => Access::Index(position(indexes, columns.to_vec())),
    }
}

/// The position in a list, to which it is added if it is not there.
pub(crate) fn position<T: PartialEq>(list: &mut Vec<T>, value: T) -> u32 {
    let known = list.iter().position(|other| *other == value);
    known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    }) as u32
}
