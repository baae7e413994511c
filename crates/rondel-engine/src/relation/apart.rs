//! Counts pairs that differ in one column: `exists x. exists y. once[0, 1 h] a{id: x} and once[0, 1 h] a{id:
//! y} and x != y`.
//!
//! Listing the pairs would cost as much as the tables hold at every event. Whether there is a pair needs
//! counts only: of the tuples that agree in the shared columns, all pairs minus those that are equal in the
//! column.

use rondel_event::Comparison;
use rondel_spec::ExprId;
use serde::{Deserialize, Serialize};

use super::batch::Delta;
use super::literal::Refusal;
use super::plan::{Condition, PartId, PartOp, Side, Stage, Term};
use super::safe::Compiler;
use super::state::{KeyTuple, PartState};
use super::table::TupleTable;

/// Counts of the tuples of both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Rows by the shared columns, preceded by the side.
    groups: TupleTable,
    /// Rows by side, the column in which the sides must differ, and the shared columns.
    values: TupleTable,
}

impl Counts {
    pub(crate) fn new(shared: usize) -> Counts {
        Counts { groups: TupleTable::new(shared + 1, &[]), values: TupleTable::new(shared + 2, &[]) }
    }

    /// Adds the changes of both sides. Returns the change of the number of pairs.
    pub(crate) fn step(&mut self, sides: [&Side; 2], columns: [u32; 2], parts: [&PartState; 2]) -> i64 {
        let (mut change, mut key) = (0_i64, Vec::new());
        for side in 0..2 {
            for (tuple, weight) in parts[side].out.iter() {
                key.clear();
                key.extend([0, tuple[columns[side] as usize]]);
                key.extend(sides[side].columns.iter().map(|&c| tuple[c as usize]));
                // A group key has no value: the side takes its place.
                let mut count = |with_value: bool, side: usize, weight: i8| {
                    let (table, from) =
                        if with_value { (&mut self.values, 0) } else { (&mut self.groups, 1) };
                    let value = std::mem::replace(&mut key[from], side as u64);
                    let of_key = add(table, &key[from..], weight);
                    key[from] = value;
                    of_key
                };
                let others = count(false, 1 - side, 0) - count(true, 1 - side, 0);
                change += i64::from(weight) * others;
                count(false, side, weight);
                count(true, side, weight);
            }
        }
        change
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len() + self.values.len()
    }

    pub(crate) fn tables(&mut self) -> [&mut TupleTable; 2] {
        [&mut self.groups, &mut self.values]
    }

    /// Rebuilds the indexes after a snapshot was read. Returns false if the rows do not fit those of `own`.
    pub(crate) fn complete(&mut self, own: &Counts) -> bool {
        self.groups.complete(&own.groups) && self.values.complete(&own.values)
    }
}

/// Adds to the count of a key, and returns it.
fn add(table: &mut TupleTable, key: &[u64], weight: i8) -> i64 {
    let Some(row) = (if weight > 0 { Some(table.insert(key)) } else { table.find(key) }) else { return 0 };
    if weight == 0 {
        return table.count(row).into();
    }
    let meta = table.meta(row);
    meta.count = meta.count.saturating_add_signed(weight.into());
    let count = meta.count;
    if count == 0 {
        table.remove(row);
    }
    count.into()
}

/// Adds the first pair that contains a change of this tick.
pub(crate) fn first(
    sides: [&Side; 2],
    columns: [u32; 2],
    parts: [&PartState; 2],
    output: &[(bool, u32)],
    out: &mut Delta,
) {
    for side in 0..2 {
        let Some(other) = &parts[1 - side].table else { return };
        for (tuple, _) in parts[side].out.iter().filter(|(_, weight)| *weight > 0) {
            let key = KeyTuple::new(tuple, &sides[side].columns);
            let value = tuple[columns[side] as usize];
            let mut differing = other.tuples(sides[1 - side].access, key.key());
            let Some(found) = differing.find(|other| other[columns[1 - side] as usize] != value) else {
                continue;
            };
            let pair = if side == 0 { [tuple, found] } else { [found, tuple] };
            let blank = out.push_blank();
            for (value, &(of_right, column)) in blank.iter_mut().zip(output) {
                *value = pair[usize::from(of_right)][column as usize];
            }
            return;
        }
    }
}

impl Compiler<'_> {
    /// Reduces the part of a root, of which only one tuple is needed, if there is any.
    pub(crate) fn some_of(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        let variables = self.part(part).variables.clone();
        let (op, lasts) = match &self.part(part).op {
            PartOp::Chain { of, stages, output, .. }
                if stages.iter().any(|stage| matches!(stage, Stage::With(..))) =>
            {
                let (stages, output) = (stages.clone(), output.clone());
                (PartOp::Chain { of: *of, stages, output, is_first: true }, false)
            }
            PartOp::Select(of, conditions) => {
                let PartOp::Join(left, right, output) = &self.part(*of).op else { return Ok(part) };
                let Some(slots) = unequal(conditions) else { return Ok(part) };
                let columns = match slots.map(|slot| output[slot as usize]) {
                    [(false, x), (true, y)] | [(true, y), (false, x)] => [x, y],
                    _ => return Ok(part),
                };
                if left.columns.contains(&columns[0]) || right.columns.contains(&columns[1]) {
                    return Ok(part);
                }
                let sides = Box::new([left.clone(), right.clone()]);
                (PartOp::Apart { sides, columns, output: output.clone() }, true)
            }
            _ => return Ok(part),
        };
        self.add(node, op, variables, lasts)
    }

    /// Returns the part without a column. A chain then stops at the first match of each remaining
    /// combination.
    pub(crate) fn without_column(
        &mut self,
        node: ExprId,
        of: PartId,
        column: u32,
    ) -> Result<PartId, Refusal> {
        let part = self.part(of);
        let keep: Vec<u32> = (0..part.variables.len() as u32).filter(|c| *c != column).collect();
        let variables = keep.iter().map(|&c| part.variables[c as usize]).collect();
        let lasts = part.lasts;
        let op = match &part.op {
            PartOp::Chain { of, stages, output, is_first } => {
                let output = keep.iter().map(|&c| output[c as usize]).collect();
                PartOp::Chain { of: *of, stages: stages.clone(), output, is_first: *is_first }
            }
            _ => PartOp::Project(of, keep),
        };
        self.add(node, op, variables, lasts)
    }
}

/// Returns the slots that must differ, if that is the whole condition.
fn unequal(conditions: &[Condition]) -> Option<[u32; 2]> {
    let [Condition::Compare { comparison, left: Term::Slot(x), right: Term::Slot(y), wanted, .. }] =
        conditions
    else {
        return None;
    };
    let differ = match comparison {
        Comparison::NotEqual => *wanted,
        Comparison::Equal => !*wanted,
        _ => false,
    };
    differ.then_some([*x, *y])
}
