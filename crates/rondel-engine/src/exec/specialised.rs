//! Specialised form of a section, valid while every field it reads has a value.
//!
//! Three-valued logic takes a lower and an upper truth for each formula, since fields may be unknown. Most
//! fields are unknown only before their first message. From then on both truths are computed alike, once
//! their state is equal. So a running section is *specialised*: of instructions that compute the same from
//! now on, one is kept, and instructions that have become constant are removed. This holds until a message
//! carries a field without a value, which is checked before every block. Then the state of removed
//! instructions is copied from the kept ones, and the whole section runs again. The next specialisation no
//! longer assumes that this field is known.
//!
//! Two instructions are equal if they have the same operation, equal operands and equal state, so a single
//! pass in order of evaluation finds them.

use std::collections::HashMap;

use rondel_event::{Block, Rows, Slot};

use crate::exec::section::{Section, TimePoints};
use crate::exec::state::State;
use crate::ir::instruction::Instruction;
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{NodeId, Wire};

/// The specialised form of a section.
#[derive(Debug)]
pub(crate) struct Specialised {
    /// Instructions after the constants. Columns and states have the indexes of the section.
    pub(crate) instructions: Vec<Instruction>,
    /// The formulas of the properties.
    pub(crate) formulas: Vec<Truth>,
    /// For every instruction of the section, the wire that replaces its word.
    words: Vec<Wire>,
    /// The fields that are assumed to be known.
    assumed: Vec<Slot>,
    /// The states of removed instructions.
    mirrors: Vec<Mirror>,
    /// Whether a later specialisation may remove more.
    pub(crate) is_partial: bool,
}

/// A state that equals another one of the same kind; `of` is the index of the one that is kept up to date.
#[derive(Clone, Copy, Debug)]
enum Mirror {
    Bit {
        state: u32,
        of: u32,
    },
    /// The complement of a single truth.
    NotBit {
        state: u32,
        of: u32,
    },
    Recently {
        state: u32,
        of: u32,
    },
    Delay {
        state: u32,
        of: u32,
    },
}

impl Specialised {
    /// Whether every message of a block has values for the assumed fields.
    #[inline]
    pub(crate) fn holds_in(&self, block: &Block) -> bool {
        self.assumed.iter().all(|&slot| block.invalid(slot) == 0)
    }

    /// Adds the assumed fields that a block carries without a value.
    pub(crate) fn note_refuted(&self, block: &Block, refuted: &mut Vec<Slot>) {
        refuted.extend(self.assumed.iter().filter(|&&slot| block.invalid(slot) != 0));
    }

    /// Restores the states of removed instructions.
    pub(crate) fn complete(&self, state: &mut State) {
        for &mirror in &self.mirrors {
            match mirror {
                Mirror::Bit { state: i, of } => state.bits[i as usize] = state.bits[of as usize],
                Mirror::NotBit { state: i, of } => state.bits[i as usize] = 1 - state.bits[of as usize],
                Mirror::Recently { state: i, of } => state.recently[i as usize] = state.recently[of as usize],
                Mirror::Delay { state: i, of } => {
                    state.delays[i as usize] = state.delays[of as usize].clone()
                }
            }
        }
    }

    /// The replacement of a wire of the section.
    pub(crate) fn wire(&self, wire: Wire) -> Wire {
        wire.through(&self.words)
    }

    /// The words of all instructions of the section, from those that were computed.
    pub(crate) fn words<'a>(&'a self, words: &'a [Rows]) -> impl Iterator<Item = Rows> + 'a {
        self.words.iter().map(|&wire| wire.read(words))
    }
}

/// Whether a section can be specialised: no reader of its words outside of the formulas.
pub(crate) fn can_specialise(section: &Section) -> bool {
    section.time_points == TimePoints::Events
        && !section.looks_ahead()
        && section.terms.is_empty()
        && section.instructions[section.constant..].iter().all(|instruction| {
            moved(*instruction, |wire| wire).is_some()
                || matches!(
                    instruction,
                    Instruction::HeldBool { .. }
                        | Instruction::And { .. }
                        | Instruction::Since { .. }
                        | Instruction::Shift { .. }
                        | Instruction::Recently { .. }
                        | Instruction::Delay { .. }
                )
        })
}

/// An instruction with other operands, if it is of a kind that is always kept; none for all other kinds.
fn moved(instruction: Instruction, to: impl Fn(Wire) -> Wire) -> Option<Instruction> {
    use Instruction as I;
    Some(match instruction {
        I::False
        | I::On { .. }
        | I::Carried { .. }
        | I::IntEqual { .. }
        | I::IntLess { .. }
        | I::FloatEqual { .. }
        | I::FloatLess { .. }
        | I::FloatLessOrEqual { .. }
        | I::TextEqual { .. }
        | I::TextStartsWith { .. }
        | I::CallNumber { .. }
        | I::CallNumbers { .. }
        | I::CallTest { .. }
        | I::Matches { .. }
        | I::CallSize { .. }
        | I::CallText { .. }
        | I::Time { .. }
        | I::Latency { .. }
        | I::Chain { .. }
        | I::ConstantInt { .. }
        | I::ConstantFloat { .. }
        | I::ConstantText { .. }
        | I::ToFloat { .. }
        | I::UnaryInt { .. }
        | I::UnaryFloat { .. }
        | I::BinaryInt { .. }
        | I::BinaryFloat { .. }
        | I::HeldInt { .. }
        | I::HeldFloat { .. }
        | I::HeldText { .. }
        | I::MarginInt { .. }
        | I::MarginFloat { .. }
        | I::RobustOnce { .. }
        | I::RobustSince { .. } => instruction,
        I::SelectInt { condition, a, b, out } => I::SelectInt { condition: to(condition), a, b, out },
        I::SelectFloat { condition, a, b, out } => I::SelectFloat { condition: to(condition), a, b, out },
        I::SelectText { condition, a, b, out } => I::SelectText { condition: to(condition), a, b, out },
        I::LatchInt { x, clock, state, out } => I::LatchInt { x, clock: to(clock), state, out },
        I::LatchFloat { x, clock, state, out } => I::LatchFloat { x, clock: to(clock), state, out },
        I::LatchText { x, clock, buffer, out } => I::LatchText { x, clock: to(clock), buffer, out },
        I::SampledInt { x, clock, state, out } => I::SampledInt { x, clock: to(clock), state, out },
        _ => return None,
    })
}

/// The operation of an instruction, without its state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    And(Wire, Wire),
    Since(Wire, Wire),
    Shift(Wire, u8),
    Recently(Wire, u64),
    Delay(Wire, Wire, u64),
}

/// Specialises a section in this state, between two blocks. Queues equal to others are cleared.
pub(crate) fn specialise(section: &Section, state: &mut State, refuted: &[Slot]) -> Specialised {
    let mut specialiser = Specialiser {
        first: section.constant as u32,
        kept: Specialised {
            instructions: Vec::new(),
            formulas: Vec::new(),
            words: (0..section.constant as u32).map(|place| Wire::of(NodeId(place))).collect(),
            assumed: Vec::new(),
            mirrors: Vec::new(),
            is_partial: false,
        },
        done: HashMap::new(),
        truths: HashMap::new(),
    };
    for &instruction in &section.instructions[section.constant..] {
        let wire = specialiser.instruction(instruction, state, refuted);
        specialiser.kept.words.push(wire);
    }
    let mut kept = specialiser.kept;
    let bounds = |TruthBounds { certain, possible }: TruthBounds| TruthBounds {
        certain: certain.through(&kept.words),
        possible: possible.through(&kept.words),
    };
    let formulas = section.formulas.iter();
    kept.formulas =
        formulas.map(|truth| Truth { at: bounds(truth.at), after: bounds(truth.after) }).collect();
    kept
}

struct Specialiser {
    /// The first word that is not constant.
    first: u32,
    kept: Specialised,
    /// Word and state of the first instruction of each operation.
    done: HashMap<Operation, (Wire, u32)>,
    /// The same for boolean fields, with the value that the word stands for.
    truths: HashMap<u32, (Wire, u32, bool)>,
}

impl Specialiser {
    /// The replacement of an instruction's word.
    #[expect(clippy::too_many_lines, reason = "one arm for each instruction")]
    fn instruction(&mut self, instruction: Instruction, state: &mut State, refuted: &[Slot]) -> Wire {
        let to = |wire: Wire| wire.through(&self.kept.words);
        match instruction {
            Instruction::And { a, b } => {
                Wire::both(to(a), to(b)).unwrap_or_else(|(a, b)| match self.done.get(&Operation::And(a, b)) {
                    Some((wire, _)) => *wire,
                    None => self.keep(Operation::And(a, b), 0, Instruction::And { a, b }),
                })
            }
            Instruction::Since { p, q, state: i } => {
                let (p, q, bit) = (to(p), to(q), state.bits[i as usize]);
                let goes_on = p == Wire::TRUE || q == Wire::TRUE || p == !q;
                if bit == 1 && goes_on {
                    return Wire::TRUE;
                }
                if bit == 0 && q == Wire::FALSE {
                    return Wire::FALSE;
                }
                self.kept.is_partial |= goes_on || q == Wire::FALSE;
                let operation = Operation::Since(p, q);
                let same = |of: u32| state.bits[of as usize] == bit;
                match self.same(operation, same) {
                    Some((wire, of)) => self.mirrored_by(wire, Mirror::Bit { state: i, of }),
                    None => self.keep(operation, i, Instruction::Since { p, q, state: i }),
                }
            }
            Instruction::Shift { x, by, state: i } => {
                let (x, history) = (to(x), state.bits[i as usize]);
                match (x, history) {
                    (Wire::TRUE, Rows::MAX) | (Wire::FALSE, 0) => return x,
                    (Wire::TRUE | Wire::FALSE, _) => self.kept.is_partial = true,
                    _ => {}
                }
                let operation = Operation::Shift(x, by);
                let same = |of: u32| state.bits[of as usize] == history;
                match self.same(operation, same) {
                    Some((wire, of)) => self.mirrored_by(wire, Mirror::Bit { state: i, of }),
                    None => self.keep(operation, i, Instruction::Shift { x, by, state: i }),
                }
            }
            Instruction::Recently { x, state: i } => {
                let (x, recently) = (to(x), state.recently[i as usize]);
                match x {
                    Wire::TRUE if recently.left == recently.span => return x,
                    Wire::FALSE if recently.left == 0 => return x,
                    Wire::TRUE | Wire::FALSE => self.kept.is_partial = true,
                    _ => {}
                }
                let operation = Operation::Recently(x, recently.span);
                let same = |of: u32| state.recently[of as usize].left == recently.left;
                match self.same(operation, same) {
                    Some((wire, of)) => self.mirrored_by(wire, Mirror::Recently { state: i, of }),
                    None => self.keep(operation, i, Instruction::Recently { x, state: i }),
                }
            }
            Instruction::Delay { x, forget, state: i } => {
                let (x, forget, delay) = (to(x), to(forget), &state.delays[i as usize]);
                if x == Wire::FALSE {
                    if delay.kept() == 0 {
                        return x;
                    }
                    self.kept.is_partial = true;
                }
                let operation = Operation::Delay(x, forget, delay.by());
                let same = |of: u32| state.delays[of as usize] == *delay;
                match self.same(operation, same) {
                    Some((wire, of)) => {
                        state.delays[i as usize].clear();
                        self.mirrored_by(wire, Mirror::Delay { state: i, of })
                    }
                    None => self.keep(operation, i, Instruction::Delay { x, forget, state: i }),
                }
            }
            Instruction::HeldBool { column, value, state: i } => {
                let slot = Slot::Bool(column);
                let bits = &state.bits;
                match self.truths.get(&column) {
                    // A known boolean is true or false, so one word is the complement of the other.
                    Some(&(wire, of, other)) if other != value && !refuted.contains(&slot) => {
                        if bits[i as usize] != bits[of as usize] {
                            self.kept.assumed.push(slot);
                            return self.mirrored_by(!wire, Mirror::NotBit { state: i, of });
                        }
                        self.kept.is_partial = true;
                        self.add(instruction)
                    }
                    Some(_) => self.add(instruction),
                    None => {
                        let wire = self.add(instruction);
                        self.truths.insert(column, (wire, i, value));
                        wire
                    }
                }
            }
            _ => {
                let values = &state.values;
                let known = match instruction {
                    Instruction::HeldInt { column, state, .. } => {
                        Some((Slot::Int(column), values.held_ints[state as usize].known))
                    }
                    Instruction::HeldFloat { column, state, .. } => {
                        Some((Slot::Float(column), values.held_floats[state as usize].known))
                    }
                    Instruction::HeldText { column, state, .. } => {
                        Some((Slot::String(column), values.known_texts[state as usize]))
                    }
                    _ => None,
                };
                // All other instructions are kept: `can_specialise` has excluded the rest.
                let wire = self.add(moved(instruction, to).unwrap_or(instruction));
                match known {
                    Some((slot, known)) if !refuted.contains(&slot) => {
                        if known == 1 {
                            self.kept.assumed.push(slot);
                            return Wire::TRUE;
                        }
                        self.kept.is_partial = true;
                        wire
                    }
                    _ => wire,
                }
            }
        }
    }

    fn add(&mut self, instruction: Instruction) -> Wire {
        self.kept.instructions.push(instruction);
        Wire::of(NodeId(self.first + self.kept.instructions.len() as u32 - 1))
    }

    /// Keeps an instruction as the first of its operation.
    fn keep(&mut self, operation: Operation, state: u32, instruction: Instruction) -> Wire {
        let wire = self.add(instruction);
        self.done.entry(operation).or_insert((wire, state));
        wire
    }

    /// The first instruction of an operation, if it has the same state.
    fn same(&mut self, operation: Operation, remembers: impl Fn(u32) -> bool) -> Option<(Wire, u32)> {
        let same = self.done.get(&operation).copied()?;
        let is_same = remembers(same.1);
        // The states may become equal later.
        self.kept.is_partial |= !is_same;
        is_same.then_some(same)
    }

    fn mirrored_by(&mut self, wire: Wire, mirror: Mirror) -> Wire {
        self.kept.mirrors.push(mirror);
        wire
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rondel_event::{Timestamp, TopicId};

    use super::*;
    use crate::Program;
    use crate::exec::serial::{RowInput, Serial};

    #[test]
    fn known_fields_leave_one_truth_bound() {
        let text = "topic t { b: bool, x: int }
            property p = t.b -> once[2, 100] t.x > 3
            property q = once t.b -> not previously changed(t.x)";
        let program = Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap();
        let section = &program.sections[0];
        let mut block = Block::new(program.layout());
        let mut serial = Serial::new(section, &block);
        // Arguments: rows in which the fields are true, and in which they have a value. Returns the number of
        // instructions left.
        let mut left = |b: Rows, known: Rows| {
            block.clear();
            for row in 0..Block::CAPACITY {
                block.push(TopicId(0), Timestamp::ZERO);
                for field in &program.projections()[0].fields {
                    match field.slot {
                        _ if known >> row & 1 == 0 => block.set_invalid(field.slot, row),
                        Slot::Int(column) => block.set_int(column, row, row as i64 / 3),
                        _ => block.set_bool(0, row, b >> row & 1 == 1),
                    }
                }
            }
            let input = RowInput {
                block: &block,
                start: 0,
                len: 64,
                events: block.rows(),
                times: &[],
                chains: &[],
                lines: &[],
            };
            serial.run(section, input);
            serial.specialised.as_ref().map(|specialised| specialised.instructions.len())
        };
        let all = section.instructions.len() - section.constant;
        assert_eq!(left(0, Rows::MAX), None, "before it is time");
        // A truth that never held differs between lower and upper truth at its first time point.
        assert!(left(0, Rows::MAX).unwrap() <= all / 2 + 2);
        for _ in 0..20 {
            assert!(left(1 << 7, Rows::MAX).unwrap() <= all / 2 + 2);
        }
        let specialised = left(1, Rows::MAX).unwrap();
        assert!(specialised < all / 2, "{specialised} of {all}");
        assert_eq!(left(1, !8), None, "a field without its value");
        for _ in 0..100 {
            assert!(left(1, Rows::MAX).is_none_or(|left| left > specialised), "not assumed again");
        }
    }
}
