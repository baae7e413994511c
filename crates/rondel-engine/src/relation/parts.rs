//! Parts of a plan under construction: equal parts are added once, with the indexes that other parts use.

use rondel_event::ValueType;
use rondel_spec::{ExprId, VariableId};

use super::literal::{DIVIDE, Refusal};
use super::plan::{Left, Most, Part, PartId, PartOp, TruthBound};
use super::safe::Compiler;
use super::table::Access;

/// Maximum number of parts.
const PARTS: usize = 2_000;

impl Compiler<'_> {
    pub(crate) fn part(&self, part: PartId) -> &Part {
        &self.plan.parts[part.index()]
    }

    /// Adds a part, unless an equal one exists.
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
            PartOp::Obligation { pasts, .. } => pasts.iter_mut().flatten().flatten().collect(),
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

    /// Returns the truth bound of an operator whose operands become vague: all tuples for the upper one, none
    /// for the lower.
    fn vague(&self, node: ExprId, op: &PartOp) -> Result<Option<TruthBound>, Refusal> {
        if let PartOp::Since { most: Some(Most { truth_bound: TruthBound::Possible, .. }), .. } = op {
            return Ok(Some(TruthBound::Possible));
        }
        let mut found = [false; 2];
        op.for_each_operand(|part, is_same| match (self.part(part).vague, is_same) {
            (Some(TruthBound::Possible), true) | (Some(TruthBound::Certain), false) => found[0] = true,
            (Some(TruthBound::Certain), true) | (Some(TruthBound::Possible), false) => found[1] = true,
            (None, _) => {}
        });
        match found {
            [false, false] => Ok(None),
            [true, false] => Ok(Some(TruthBound::Possible)),
            [false, true] => Ok(Some(TruthBound::Certain)),
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

    /// Returns the part in lasting form.
    pub(crate) fn lasting(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        if self.part(part).lasts {
            return Ok(part);
        }
        let variables = self.part(part).variables.clone();
        self.add(node, PartOp::Changes(part), variables, true)
    }

    /// Returns the part in momentary form, listed again at every tick.
    pub(crate) fn scan(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        self.keep(part);
        let variables = self.part(part).variables.clone();
        self.add(node, PartOp::Scan(part), variables, false)
    }

    pub(crate) fn keep(&mut self, part: PartId) {
        self.plan.parts[part.index()].is_kept = true;
    }

    /// Returns the access to tuples of a part by some columns.
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

/// Returns the index of a value in a list, adding it if it is absent.
pub(crate) fn position<T: PartialEq>(list: &mut Vec<T>, value: T) -> u32 {
    let known = list.iter().position(|other| *other == value);
    known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    }) as u32
}
