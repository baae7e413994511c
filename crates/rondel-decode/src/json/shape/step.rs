//! A step of a shape: compares a literal text and reads the value after it, for all messages of a run.

use rondel_event::{Block, Rows, TimeUnit, Timestamp};

use super::super::time;
use super::super::words::{Words, decimal, string};
use super::messages::Messages;
use super::{Expected, Step, Target, TimeForm, TimeTarget};

/// Data shared by all steps of a run.
#[derive(Clone, Copy)]
pub(super) struct Context<'t> {
    pub(super) words: Words<'t>,
    pub(super) time_unit: TimeUnit,
    pub(super) time_scale: i64,
}

impl Step {
    /// Runs this step over the messages. Values written for messages that differ have no effect: the masks of the block
    /// exclude their rows.
    #[inline(always)]
    pub(super) fn run(&mut self, context: Context<'_>, messages: &mut impl Messages, block: &mut Block) {
        let Context { words, time_unit, time_scale } = context;
        if self.len > 8 {
            let last = (self.len - 8, self.last);
            // With a length known to the compiler: nearly all texts between two values have up to 32 bytes.
            match self.middle[..] {
                [] => messages.keep(words, [last].into_iter()),
                [a] => messages.keep(words, [last, (8, a)].into_iter()),
                [a, b] => messages.keep(words, [last, (8, a), (16, b)].into_iter()),
                _ => {
                    let middle = self.middle.iter().enumerate().map(|(i, word)| (8 + 8 * i, *word));
                    messages.keep(words, [last].into_iter().chain(middle));
                }
            }
        }
        let literal = Literal { head: self.head, mask: self.mask, len: self.len };
        match self.value {
            Expected::End => messages.each(|_, at| literal.pass(words, at)),
            Expected::Bool(_) => {
                let mut values: Rows = 0;
                messages.each(|row, at| {
                    // Without a branch on the value, so that a field that changes at random causes no misprediction.
                    let value_at = at + literal.len;
                    let value = words.at(value_at);
                    let is_true = value as u32 == u32::from_le_bytes(*b"true");
                    let not_false = (value ^ u64::from_le_bytes(*b"false\0\0\0")) << 24;
                    let wrong = literal.difference(words, at) | if is_true { 0 } else { not_false };
                    values |= Rows::from(is_true) << row;
                    (wrong == 0).then_some(value_at + 5 - usize::from(is_true))
                });
                self.bools = values;
            }
            Expected::Number(Target::Skip) => {
                messages.each(|_, at| Some(decimal(words, literal.pass(words, at)?)?.end));
            }
            Expected::Number(Target::Float(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_float(column, row, number.float(words.text));
                Some(number.end)
            }),
            Expected::Number(Target::Exact(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_float(column, row, number.exact(words.text)?);
                Some(number.end)
            }),
            Expected::Number(Target::Int(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_int(column, row, number.integer(words.text)?);
                Some(number.end)
            }),
            Expected::Number(Target::TimeField(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_int(column, row, number.nanos(words.text, time_scale, time_unit)?);
                Some(number.end)
            }),
            Expected::Number(Target::EventTime) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                let ns = number.nanos(words.text, time_scale, time_unit)?;
                block.set_time(row, Timestamp::from_nanos(ns));
                Some(number.end)
            }),
            Expected::String(column) => {
                messages.each(|row, at| string(words, literal.pass(words, at)?, column, row, block));
            }
            Expected::Time(form, target) => time_step(form, target, literal, context, messages, block),
        }
    }
}

/// Runs a step with a time that is no plain number. A separate function, so that it does not slow down the other steps.
#[inline(never)]
fn time_step(
    form: TimeForm,
    target: TimeTarget,
    literal: Literal,
    context: Context<'_>,
    messages: &mut impl Messages,
    block: &mut Block,
) {
    let Context { words, time_unit, .. } = context;
    messages.each(|row, at| {
        let start = literal.pass(words, at)?;
        let (ns, end) = match form {
            TimeForm::Part(part) => {
                let number = decimal(words, start)?;
                let before = match target {
                    TimeTarget::Event => block.time(row).as_nanos(),
                    TimeTarget::Field(column) => block.ints(column).values[row],
                };
                (part.add(number.whole(words.text)?, before)?, number.end)
            }
            TimeForm::Text(meaning) => {
                let end = string(words, start, None, row, block)?;
                let time = time::string(&words.text[start + 1..end - 1], time_unit, meaning).ok()?;
                (time.as_nanos(), end)
            }
        };
        match target {
            TimeTarget::Event => block.set_time(row, Timestamp::from_nanos(ns)),
            TimeTarget::Field(column) => block.write_int(column, row, ns),
        }
        Some(end)
    });
}

/// The text before a value, up to its first eight bytes.
#[derive(Clone, Copy)]
struct Literal {
    head: u64,
    mask: u64,
    len: usize,
}

impl Literal {
    /// Returns zero if the text is there.
    #[inline(always)]
    fn difference(self, words: Words<'_>, at: usize) -> u64 {
        (words.at(at) ^ self.head) & self.mask
    }

    #[inline(always)]
    fn pass(self, words: Words<'_>, at: usize) -> Option<usize> {
        (self.difference(words, at) == 0).then_some(at + self.len)
    }
}
