//! Evaluation of the instructions with columns.

use rondel_event::Rows;

use crate::exec::section::Section;
use crate::exec::state::ValueState;
use crate::ir::instruction::Instruction;
use crate::ir::node::Kind;
use crate::ops::arithmetic;
use crate::ops::columns::{self, Columns, split};
use crate::ops::functions;
use crate::ops::held;
use crate::ops::rows::RowView;
use crate::ops::since;
use crate::ops::texts::{self, TextRef};
use crate::ops::window::WindowOperands;
use crate::ops::words;

/// Evaluates an instruction with columns: returns its word, and writes its column if it has one.
#[inline(never)]
#[expect(clippy::too_many_lines, reason = "one arm for each instruction")]
pub(crate) fn evaluate(
    instruction: &Instruction,
    section: &Section,
    view: RowView<'_>,
    words: &[Rows],
    columns: &mut Columns,
    values: &mut ValueState,
) -> Rows {
    let RowView { block, len, .. } = view;
    let rows = words::low(len.into());
    let Columns { ints, floats, int_steps, float_steps, texts, seconds } = columns;
    match *instruction {
        Instruction::IntEqual { a, b } => columns::compare(ints, int_steps, [a, b], rows, |a, b| a == b),
        Instruction::IntLess { a, b } => columns::compare(ints, int_steps, [a, b], rows, |a, b| a < b),
        Instruction::FloatEqual { a, b } => {
            columns::compare(floats, float_steps, [a, b], rows, |a, b| a == b)
        }
        Instruction::FloatLess { a, b } => columns::compare(floats, float_steps, [a, b], rows, |a, b| a < b),
        Instruction::FloatLessOrEqual { a, b } => {
            columns::compare(floats, float_steps, [a, b], rows, |a, b| a <= b)
        }
        Instruction::TextEqual { a, b } => {
            let operands = [&texts[a as usize], &texts[b as usize]];
            texts::compare(operands, block, &values.buffers, len, |a, b| a == b)
        }
        Instruction::TextStartsWith { a, b } => {
            let operands = [&texts[a as usize], &texts[b as usize]];
            texts::compare(operands, block, &values.buffers, len, |a, b| a.starts_with(b))
        }
        Instruction::CallNumber { function, x, out } => {
            let (before, out_column) = split(floats, out);
            let steps = float_steps[x as usize];
            float_steps[out as usize] = steps;
            functions::number(function, out_column, &before[x as usize], steps, len)
        }
        Instruction::CallNumbers { function, a, b, out } => {
            let (before, out_column) = split(floats, out);
            let steps = float_steps[a as usize] | float_steps[b as usize];
            float_steps[out as usize] = steps;
            functions::numbers(function, out_column, [&before[a as usize], &before[b as usize]], steps, len)
        }
        Instruction::CallTest { function, a, b } => {
            let operands = [&texts[a as usize], &texts[b as usize]];
            functions::test(function, operands, block, &values.buffers, len)
        }
        Instruction::Matches { x, pattern } => {
            let operands = [&texts[x as usize]; 2];
            let pattern = &section.constants.patterns[pattern as usize];
            texts::compare(operands, block, &values.buffers, len, |x, _| pattern.is_match(x))
        }
        Instruction::CallSize { function, x, out } => {
            functions::size(
                function,
                &mut ints[out as usize],
                &texts[x as usize],
                block,
                &values.buffers,
                len,
            );
            int_steps[out as usize] = Rows::MAX;
            Rows::MAX
        }
        Instruction::CallText { function, x, buffer, out } => {
            let (before, out) = split(texts, out);
            functions::text(function, out, &before[x as usize], block, &mut values.buffers, buffer, len);
            Rows::MAX
        }

        Instruction::Time { out } => {
            for (out, &time) in ints[out as usize].iter_mut().zip(view.row_times.times) {
                *out = time;
            }
            Rows::MAX
        }
        Instruction::Latency { out } => {
            let mut known = 0;
            for (i, out) in ints[out as usize].iter_mut().enumerate().take(len as usize) {
                if view.events >> i & 1 == 0 {
                    continue;
                }
                let row = view.event_row(i);
                let latency = block
                    .arrival(row)
                    .and_then(|arrival| arrival.as_nanos().checked_sub(block.time(row).as_nanos()));
                if let Some(latency) = latency {
                    *out = latency;
                    known |= 1 << i;
                }
            }
            known
        }
        Instruction::ConstantInt { constant, out } => {
            ints[out as usize].fill(section.constants.ints[constant as usize]);
            int_steps[out as usize] = 1;
            Rows::MAX
        }
        Instruction::ConstantFloat { constant, out } => {
            floats[out as usize].fill(section.constants.floats[constant as usize]);
            float_steps[out as usize] = 1;
            Rows::MAX
        }
        Instruction::ConstantText { buffer, out } => {
            texts[out as usize].fill(TextRef::Kept { buffer });
            Rows::MAX
        }
        Instruction::ToFloat { x, out } => {
            columns::to_float(&mut floats[out as usize], &ints[x as usize], len);
            float_steps[out as usize] = int_steps[x as usize];
            Rows::MAX
        }
        Instruction::UnaryInt { op, x, out } => {
            int_steps[out as usize] = int_steps[x as usize];
            let (before, out) = split(ints, out);
            arithmetic::unary_int(op, out, &before[x as usize], len)
        }
        Instruction::UnaryFloat { op, x, out } => {
            float_steps[out as usize] = float_steps[x as usize];
            let (before, out) = split(floats, out);
            arithmetic::unary_float(op, out, &before[x as usize], len);
            Rows::MAX
        }
        Instruction::BinaryInt { op, a, b, out } => {
            int_steps[out as usize] = int_steps[a as usize] | int_steps[b as usize];
            let (before, out) = split(ints, out);
            arithmetic::binary_int(op, out, [a, b].map(|x| &before[x as usize]), len)
        }
        Instruction::BinaryFloat { op, a, b, out } => {
            float_steps[out as usize] = float_steps[a as usize] | float_steps[b as usize];
            let (before, out) = split(floats, out);
            arithmetic::binary_float(op, out, [a, b].map(|x| &before[x as usize]), len);
            Rows::MAX
        }

        Instruction::HeldInt { column, state, out } => {
            let held = &mut values.held_ints[state as usize];
            let out = out as usize;
            held::hold(&mut ints[out], &mut int_steps[out], block.ints(column), held, &view)
        }
        Instruction::HeldFloat { column, state, out } => {
            let held = &mut values.held_floats[state as usize];
            let out = out as usize;
            held::hold(&mut floats[out], &mut float_steps[out], block.floats(column), held, &view)
        }
        Instruction::HeldText { column, state, buffer, out } => {
            let (present, valid) = texts::masks(block.strings(column), &view);
            texts::hold(&mut texts[out as usize], column, valid, buffer, &view);
            let bit = &mut values.known_texts[state as usize];
            let known = since::since(!present, valid, *bit);
            *bit = words::last(known, len);
            known
        }
        Instruction::SelectInt { condition, a, b, out } => {
            let (before, out) = split(ints, out);
            columns::select(out, condition.read(words), &before[a as usize], &before[b as usize], len);
            Rows::MAX
        }
        Instruction::SelectFloat { condition, a, b, out } => {
            let (before, out) = split(floats, out);
            columns::select(out, condition.read(words), &before[a as usize], &before[b as usize], len);
            Rows::MAX
        }
        Instruction::SelectText { condition, a, b, out } => {
            let (before, out) = split(texts, out);
            columns::select(out, condition.read(words), &before[a as usize], &before[b as usize], len);
            Rows::MAX
        }
        Instruction::LatchInt { x, clock, state, out } => {
            let latched = &mut values.latched_ints[state as usize];
            let (before, column) = split(ints, out);
            let steps = &mut int_steps[out as usize];
            held::latch(column, steps, &before[x as usize], clock.read(words), latched, len);
            Rows::MAX
        }
        Instruction::LatchFloat { x, clock, state, out } => {
            let latched = &mut values.latched_floats[state as usize];
            let (before, column) = split(floats, out);
            let steps = &mut float_steps[out as usize];
            held::latch(column, steps, &before[x as usize], clock.read(words), latched, len);
            Rows::MAX
        }
        Instruction::LatchText { x, clock, buffer, out } => {
            let (before, out) = split(texts, out);
            texts::latch(out, &before[x as usize], clock.read(words), buffer, len);
            Rows::MAX
        }
        Instruction::SampledInt { x, clock, state, out } => {
            let (before, out) = split(ints, out);
            let sampled = &mut values.sampled[state as usize];
            held::sample(out, &before[x as usize], clock.read(words), sampled, len);
            Rows::MAX
        }
        Instruction::Window { window, out } => {
            let WindowOperands { x, samples, known, timed } = section.operands.windows[window as usize];
            let rows = [samples.read(words), known.read(words)];
            let stamps = view.stamps(timed);
            let window = &mut values.windows[window as usize];
            match window.kind() {
                _ if window.counts_floats() => {
                    window.step_counts(&mut ints[out as usize], floats.get(x as usize), rows, stamps, len)
                }
                Kind::Float => {
                    let (before, out) = split(floats, out);
                    window.step_floats(out, before.get(x as usize), rows, stamps, len)
                }
                _ => {
                    let (before, out) = split(ints, out);
                    window.step_ints(out, before.get(x as usize), rows, stamps, len)
                }
            }
        }
        Instruction::MarginInt { a, b, out } => {
            let out = &mut floats[out as usize];
            columns::margin_int(out, &ints[a as usize], &ints[b as usize], len);
            Rows::MAX
        }
        Instruction::MarginFloat { a, b, out } => {
            let (before, out) = split(floats, out);
            columns::margin_float(out, &before[a as usize], &before[b as usize], len);
            Rows::MAX
        }
        Instruction::RobustOnce { x, timed, state, out } => {
            let (before, out) = split(floats, out);
            values.robust_once[state as usize].step(out, &before[x as usize], view.stamps(timed), len);
            Rows::MAX
        }
        Instruction::RobustSince { p, q, timed, state, out } => {
            let (before, out) = split(floats, out);
            let operands = [&before[p as usize], &before[q as usize]];
            values.robust_since[state as usize].step(out, operands, view.stamps(timed), len);
            Rows::MAX
        }
        Instruction::RobustDense { operands, state, second, out } => {
            let (before, out) = split(floats, out);
            let [p, q] =
                section.operands.robust[operands as usize].map(|halves| halves.map(|x| &before[x as usize]));
            let second = &mut seconds[second as usize];
            let since = &mut values.robust_dense[state as usize];
            for (i, &time) in view.row_times.times.iter().enumerate() {
                [out[i], second[i]] = since.step(time, p.map(|p| p[i]), q.map(|q| q[i]));
            }
            Rows::MAX
        }
        Instruction::AfterFloat { second, out } => {
            floats[out as usize] = seconds[second as usize];
            Rows::MAX
        }

        // All other instructions are evaluated by the loop.
        _ => 0,
    }
}

/// Copies the text that a later block may read.
pub(crate) fn keep_text(
    instruction: Instruction,
    view: RowView<'_>,
    columns: &Columns,
    values: &mut ValueState,
) {
    let last = |column: u32| columns.texts[column as usize][view.len as usize - 1];
    match instruction {
        Instruction::HeldText { buffer, out, .. } => {
            texts::keep(last(out), buffer, view.block, &mut values.buffers);
        }
        Instruction::LatchText { x, buffer, out, .. } => {
            // The current output may be the next one of this latch: copy it first.
            texts::keep(last(out), buffer, view.block, &mut values.buffers);
            texts::keep(last(x), buffer + 1, view.block, &mut values.buffers);
        }
        _ => {}
    }
}
