//! Pairs that differ in one column, counted: `exists x. exists y. once[0, 1 h] a{id: x} and once[0, 1 h] a{id: y}
//! and x != y`.
//!
//! Listing the pairs costs at every event as much as the tables hold. Whether there is a pair needs only counts: of
//! the tuples that agree in the shared columns, all pairs less those that are equal in the column.

use rondel_event::Comparison;
use rondel_spec::ExprId;
use serde::{Deserialize, Serialize};

use super::batch::Delta;
use super::literal::Refusal;
use super::plan::{Condition, PartId, PartOp, Side, Stage, Term};
use super::safe::Compiler;
use super::state::{Keyed, PartState};
use super::table::TupleTable;

/// The counts of the tuples of both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// By the shared columns: of each side a row, whose first column is the side.
    groups: TupleTable,
    /// By the column in which the sides must differ, and the shared ones.
    values: TupleTable,
}

impl Counts {
    pub(crate) fn new(shared: usize) -> Counts {
        Counts { groups: TupleTable::new(shared + 1, &[]), values: TupleTable::new(shared + 2, &[]) }
    }

    /// Adds the changes of both sides; returns by how much the number of pairs has changed.
    pub(crate) fn step(&mut self, sides: [&Side; 2], columns: [u32; 2], parts: [&PartState; 2]) -> i64 {
        let (mut change, mut key) = (0_i64, Vec::new());
        for side in 0..2 {
            for (tuple, weight) in parts[side].out.iter() {
                key.clear();
                key.extend([0, tuple[columns[side] as usize]]);
                key.extend(sides[side].columns.iter().map(|&c| tuple[c as usize]));
                // Of the group the value is left out: its place is that of the side.
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

    /// Makes the rows known that were in a snapshot; false if they cannot be those of one like `own`.
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

/// Adds the first pair that a change of this tick is part of.
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
            let key = Keyed::new(tuple, &sides[side].columns);
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
    /// The part of a root, of which nothing matters but whether it has a tuple, and one that it has.
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

    /// The part without a column; of a chain, the rest of it is not led further than that needs.
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

/// The slots that must differ, if that is the whole condition.
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
