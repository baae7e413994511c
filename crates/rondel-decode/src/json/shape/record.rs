//! Recording of a shape from a message that was decoded by the slow path.

use rondel_event::{Slot, TimeUnit, Timestamp, TopicId, ValueType};

use super::super::plan::{Action, Node};
use super::super::scan::{JsonError, Kind, Scanner, integer, is_rounded};
use super::super::time::{self, Meaning, Parts};
use super::super::walk::{Visitor, walk};
use super::super::writer::is_number;
use super::{Constant, Expected, Shape, Step, Target, TimeForm, TimeTarget};
use crate::sink::Target as SinkTarget;

impl Shape {
    /// Records the shape of a message that was decoded before. `None` if it cannot have one: it has tests of array
    /// elements, reads elements by their positions from the end or by name, or writes a slot twice.
    ///
    /// `text` includes the separator after the message (a line break, or nothing).
    pub(crate) fn record(
        text: &[u8],
        root: &Node,
        topic: Option<TopicId>,
        time_unit: TimeUnit,
    ) -> Option<Shape> {
        if root.searches_elements() {
            return None;
        }
        let mut recorder = ShapeRecorder {
            shape: Shape {
                topic,
                topic_at: None,
                timed: false,
                steps: Vec::new(),
                constants: Vec::new(),
                mistyped_per_row: 0,
                time_unit,
                time_scale: 10i64.pow(u32::from(time_unit.nanos_exponent())),
                successor: usize::MAX,
            },
            literal_from: 0,
            value_starts: Vec::new(),
            slots: Vec::new(),
            possible: true,
        };
        let mut scanner = Scanner::new(text);
        scanner.skip_space();
        walk(&mut scanner, Some(root), 0, &mut recorder).ok()?;
        recorder.step(text, text.len(), text.len(), Expected::End);
        recorder.possible.then_some(recorder.shape)
    }
}

/// Visitor that records the shape of a message.
struct ShapeRecorder {
    shape: Shape,
    literal_from: usize,
    /// Position of the value of each step.
    value_starts: Vec<usize>,
    slots: Vec<Slot>,
    possible: bool,
}

impl ShapeRecorder {
    /// Adds a step: the text from the last value to `start`, then the value, which ends at `end`.
    fn step(&mut self, text: &[u8], start: usize, end: usize, value: Expected) {
        let literal = &text[self.literal_from..start];
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for (i, &byte) in literal.iter().take(8).enumerate() {
            (head[i], mask[i]) = (byte, 0xff);
        }
        self.shape.steps.push(Step {
            head: u64::from_le_bytes(head),
            mask: u64::from_le_bytes(mask),
            last: literal
                .last_chunk()
                .filter(|_| literal.len() > 8)
                .map_or(0, |last| u64::from_le_bytes(*last)),
            len: literal.len(),
            middle: (8..literal.len().saturating_sub(8))
                .step_by(8)
                .filter_map(|at| literal[at..].first_chunk())
                .map(|word| u64::from_le_bytes(*word))
                .collect(),
            value,
            bools: 0,
        });
        self.value_starts.push(start);
        self.literal_from = end;
    }

    /// Converts the steps of an object `{sec, nanosec}`, recorded as plain numbers, to those of a time; returns whether
    /// that is possible.
    fn object(&mut self, text: &[u8], start: usize, target: TimeTarget) -> bool {
        let first = self.value_starts.partition_point(|at| *at < start);
        let (Some(parts), [one, two]) = (Parts::find(text), &mut self.shape.steps[first..]) else {
            return false;
        };
        if parts.is_signed {
            // Times and durations allow different values.
            return false;
        }
        let mut sum = Some(0);
        for (step, (part, number)) in [one, two].into_iter().zip(parts.in_order()) {
            let is_free = matches!(step.value, Expected::Number(Target::Skip));
            sum = sum.and_then(|sum| part.add(time::whole(number)?, sum)).filter(|_| is_free);
            step.value = Expected::Time(TimeForm::Part(part), target);
        }
        sum.is_some()
    }

    /// Records that a slot is written; no shape is possible if it is written twice.
    fn claim(&mut self, slot: Slot) {
        self.possible &= !self.slots.contains(&slot);
        self.slots.push(slot);
    }

    /// Records that a slot is invalid in every message, because of a value of this kind.
    fn invalid(&mut self, slot: Slot, kind: Kind) {
        self.shape.constants.push(Constant::Invalid(slot));
        self.shape.mistyped_per_row += u64::from(kind != Kind::Null);
    }

    /// Records a read of the value of this kind that begins at `start`.
    fn action(
        &mut self,
        action: &Action,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
        targets: &mut Targets,
    ) {
        match action {
            Action::Plain(_) | Action::Table(_) => self.possible = false,
            Action::Value(value_type, slot) => self.typed(*value_type, *slot, kind, targets),
            Action::Exact(slot) => {
                self.possible &= targets.plain.is_none();
                self.claim(*slot);
                match (kind, *slot) {
                    (Kind::Number, Slot::Float(column)) => targets.plain = Some(Target::Exact(column)),
                    _ => self.invalid(*slot, kind),
                }
            }
            Action::Decimal(number) => self.decimal(number, kind, &scanner.text[start..scanner.at], targets),
            Action::Presence(slot) => {
                self.claim(*slot);
                self.shape.constants.push(Constant::Present(*slot));
            }
            Action::IsNan(slot) => {
                self.claim(*slot);
                self.shape.constants.push(match kind {
                    Kind::Number => Constant::False(*slot),
                    _ => Constant::Invalid(*slot),
                });
            }
            Action::Elements(..) | Action::Witness(..) | Action::Length(..) => self.possible = false,
            Action::Recorded(_) | Action::Arrival(_) if kind == Kind::Null => {}
            Action::Time(unit) | Action::Recorded(unit) => {
                self.possible &=
                    targets.plain.is_none() && targets.time.is_none() && *unit == self.shape.time_unit;
                // Of several times the last one counts, which is written last.
                self.shape.timed = true;
                if is_written_out(kind) {
                    targets.time = Some((TimeTarget::Event, Meaning::Time));
                } else {
                    targets.plain = Some(Target::EventTime);
                }
            }
            Action::Arrival(_) | Action::Publisher | Action::Number => self.possible = false,
            Action::Topic => {
                targets.is_literal = true;
                self.shape.topic_at = Some(start);
            }
        }
    }

    /// Records the read of a value of a type.
    fn typed(&mut self, value_type: ValueType, slot: Slot, kind: Kind, targets: &mut Targets) {
        self.claim(slot);
        let fits = match value_type {
            ValueType::Bool => matches!(kind, Kind::True | Kind::False),
            ValueType::String => kind == Kind::String,
            ValueType::Int | ValueType::Float | ValueType::Time | ValueType::Duration => kind == Kind::Number,
        };
        let meaning = match value_type {
            ValueType::Time => Some(Meaning::Time),
            ValueType::Duration => Some(Meaning::Duration),
            _ => None,
        };
        if let (Some(meaning), Slot::Int(column), true) = (meaning, slot, is_written_out(kind)) {
            self.possible &= targets.time.is_none();
            targets.time = Some((TimeTarget::Field(column), meaning));
        } else if fits {
            self.possible &= targets.plain.is_none();
            targets.plain = Some(match (value_type, slot) {
                (ValueType::Time | ValueType::Duration, Slot::Int(column)) => Target::TimeField(column),
                (_, Slot::Float(column)) => Target::Float(column),
                // The kind of the column follows from the kind of the value.
                (_, Slot::Bool(column) | Slot::Int(column) | Slot::String(column)) => Target::Int(column),
            });
        } else {
            self.invalid(slot, kind);
        }
    }

    /// Records the read of a number, which may be a text.
    fn decimal(&mut self, number: &SinkTarget, kind: Kind, text: &[u8], targets: &mut Targets) {
        let slot = number.slot().filter(|slot| match (kind, slot) {
            (Kind::Number, _) => true,
            // The quotation marks belong to the text around the number.
            (Kind::String, Slot::Float(_)) => is_number(&text[1..text.len() - 1]),
            _ => false,
        });
        targets.is_number_text = kind == Kind::String;
        self.possible &= targets.plain.is_none() && slot.is_some_and(|slot| !self.slots.contains(&slot));
        self.slots.extend(slot);
        targets.plain = match (slot, number) {
            (Some(Slot::Float(column)), SinkTarget::Decimal(of)) if matches!(**of, SinkTarget::Exact(_)) => {
                Some(Target::Exact(column))
            }
            (Some(Slot::Float(column)), _) => Some(Target::Float(column)),
            (Some(Slot::Int(column)), _) => Some(Target::Int(column)),
            _ => None,
        };
    }

    /// Whether a run accepts the value. One that it would refuse would cause the shape to be recorded again with every
    /// message.
    fn is_accepted(&self, kind: Kind, text: &[u8], target: Option<Target>) -> bool {
        match (kind, target) {
            (Kind::String, _) => !text.contains(&b'\\'),
            (Kind::Number, Some(Target::Int(_))) => integer(text).is_some(),
            (Kind::Number, Some(Target::Exact(_))) => !is_rounded(text),
            (Kind::Number, Some(Target::TimeField(_) | Target::EventTime)) => {
                Timestamp::parse(text, self.shape.time_unit).is_ok()
            }
            _ => true,
        }
    }

    /// Adds the step of the value of this kind that begins at `start`, if it has one.
    fn value_step(&mut self, kind: Kind, start: usize, scanner: &Scanner<'_>, targets: &Targets) {
        let target = targets.plain;
        if targets.is_number_text {
            let (start, end) = (start + 1, scanner.at - 1);
            let is_rounded =
                matches!(target, Some(Target::Exact(_))) && is_rounded(&scanner.text[start..end]);
            self.possible &= !is_rounded && targets.time.is_none();
            self.step(scanner.text, start, end, Expected::Number(target.unwrap_or(Target::Skip)));
            return;
        }
        let text = &scanner.text[start..scanner.at];
        self.possible &= self.is_accepted(kind, text, target);
        if let Some((time_target, meaning)) = targets.time {
            // The layout of another text or object does not show whether it is a time.
            self.possible &= target.is_none();
            if kind == Kind::Object {
                self.possible &= self.object(text, start, time_target);
            } else {
                self.possible &=
                    !targets.is_literal && time::read(kind, text, self.shape.time_unit, meaning).is_ok();
                let expected = Expected::Time(TimeForm::Text(meaning), time_target);
                self.step(scanner.text, start, scanner.at, expected);
                return;
            }
        }
        let column = target.and_then(|t| if let Target::Int(column) = t { Some(column) } else { None });
        let expected = match kind {
            // A key may come and go in a container that is only checked for presence; its text is then different. Rows
            // with NaN have no shape.
            Kind::Object | Kind::Array | Kind::Null | Kind::Nan => return,
            Kind::True | Kind::False => Expected::Bool(column),
            Kind::String => Expected::String(column),
            Kind::Number => Expected::Number(target.unwrap_or(Target::Skip)),
        };
        if !targets.is_literal {
            self.step(scanner.text, start, scanner.at, expected);
        }
    }
}

/// Targets of a value, by the reads of it.
#[derive(Default)]
struct Targets {
    /// Target of a number, boolean or text.
    plain: Option<Target>,
    /// Target of a time that is no plain number.
    time: Option<(TimeTarget, Meaning)>,
    /// Whether the value belongs to the literal text.
    is_literal: bool,
    /// Whether the value is read as a number in a string.
    is_number_text: bool,
}

/// Whether a time that is a value of this kind is no plain number.
fn is_written_out(kind: Kind) -> bool {
    matches!(kind, Kind::Object | Kind::String)
}

impl Visitor for ShapeRecorder {
    const EVERYTHING: bool = true;

    fn value(
        &mut self,
        node: Option<&Node>,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
    ) -> Result<(), JsonError> {
        let mut targets = Targets::default();
        for action in node.map_or(&[][..], |n| &n.reads) {
            self.action(action, kind, start, scanner, &mut targets);
        }
        self.value_step(kind, start, scanner, &targets);
        Ok(())
    }

    /// A shape repeats the kinds of all values, so parts missing in this message are missing in all of the shape.
    fn unreachable(&mut self, action: &Action, kind: Kind, _: usize) -> Result<(), JsonError> {
        match action {
            Action::Value(_, slot)
            | Action::Exact(slot)
            | Action::Elements(_, _, slot)
            | Action::Length(slot, _) => {
                self.claim(*slot);
                self.invalid(*slot, kind);
            }
            Action::Time(_)
            | Action::Plain(_)
            | Action::Decimal(_)
            | Action::Witness(..)
            | Action::Table(_) => {
                self.possible = false;
            }
            Action::IsNan(slot) => {
                self.claim(*slot);
                self.shape.constants.push(Constant::Invalid(*slot));
            }
            Action::Presence(_) | Action::Topic | Action::Publisher | Action::Number => {}
            Action::Recorded(_) | Action::Arrival(_) => {}
        }
        Ok(())
    }
}
