//! Walk of a plan over the bytes of a message.
//!
//! Every length is compared with the remaining bytes before it is used. Only messages that lead to a field are entered;
//! the recursion is as deep as the paths of the plan.

use rondel_event::{Quantifier, Slot};

use super::descriptor::Kind;
use super::plan::{
    Action, Entry, FieldPlan, MapPlan, MessagePlan, Repeated, RepeatedTest, TimeForm, TimePlan, ValuePlan,
};
use super::wire::{LENGTH, Reader};
use crate::elements::{Measured, Tested, Witness};
use crate::error::{Fault, Parsed};
use crate::sink::{Scalar, Sink, Target, span, sum};

const NS_PER_S: i128 = 1_000_000_000;

/// State of a walk over a message.
pub(super) struct Walk<'w> {
    pub(super) sink: Sink<'w>,
    /// State of the message and its inner messages, see [`MessagePlan`].
    pub(super) words: &'w mut [u64],
}

impl Walk<'_> {
    /// Reads a message that does not continue an earlier part.
    pub(super) fn whole(&mut self, plan: &MessagePlan, reader: Reader<'_>) -> Parsed<()> {
        self.begin(plan, reader.at)?;
        self.message(plan, reader)
    }

    /// Begins a message: its fields have their defaults until they occur.
    #[inline(always)]
    fn begin(&mut self, plan: &MessagePlan, at: usize) -> Parsed<()> {
        if plan.words > 0
            && let Some(words) = self.words.get_mut(plan.first_word..plan.first_word + plan.words)
        {
            words.fill(0);
        }
        for target in &plan.present {
            self.write(target, Scalar::Other, at)?;
        }
        for (target, value) in &plan.defaults {
            self.write(target, *value, at)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn write(&mut self, target: &Target, value: Scalar<'_>, at: usize) -> Parsed<()> {
        self.sink.write(target, value).map_err(|kind| Fault::new(at, kind))
    }

    /// Reads a message, or a further part of it.
    fn message(&mut self, plan: &MessagePlan, mut reader: Reader<'_>) -> Parsed<()> {
        let begin = reader.at;
        while !reader.is_at_end() {
            let start = reader.at;
            let (number, wire) = reader.tag()?;
            match plan.field(number) {
                None => reader.skip(wire, number, start)?,
                Some(field) => self
                    .field(plan, field, wire, start, &mut reader)
                    .map_err(|fault| fault.in_member(&field.name))?,
            }
        }
        match &plan.time {
            None => Ok(()),
            Some(time) => self.time(time, Reader { at: begin, ..reader }),
        }
    }

    #[inline(always)]
    fn field(
        &mut self,
        plan: &MessagePlan,
        field: &FieldPlan,
        wire: u8,
        start: usize,
        reader: &mut Reader<'_>,
    ) -> Parsed<()> {
        if let Action::Repeated(repeated) = &field.action
            && wire == LENGTH
            && field.kind.is_packable()
        {
            return self.packed(field, repeated, reader.part()?);
        }
        if wire != field.wire {
            // A field of another type counts as unknown.
            return reader.skip(wire, field.number, start);
        }
        if let Some(oneof) = field.oneof {
            self.replace(plan, field, oneof);
        }
        match &field.action {
            Action::One(ValuePlan::Scalar(targets)) => {
                let value = scalar(field.kind, reader)?;
                for target in targets {
                    self.write(target, value, start)?;
                }
                Ok(())
            }
            Action::One(ValuePlan::Message(message)) => {
                let part = reader.part()?;
                if std::mem::replace(&mut self.words[field.word], 1) == 0 {
                    self.begin(message, part.at)?;
                }
                self.message(message, part)
            }
            Action::Repeated(repeated) => {
                let index = self.words[field.word];
                self.words[field.word] += 1;
                self.element(repeated, field, index, reader)?;
                self.lengths(&repeated.lengths, index + 1);
                Ok(())
            }
            Action::Map(map) => {
                self.words[field.word] += 1;
                let count = self.words[field.word];
                self.lengths(&map.lengths, count);
                self.entry(map, reader.part()?)
            }
            Action::Replace => reader.skip(wire, field.number, start),
        }
    }

    fn lengths(&mut self, lengths: &[Target], count: u64) {
        for target in lengths {
            self.sink.length(target, count);
        }
    }

    /// Clears the values written by an earlier field of the same oneof.
    fn replace(&mut self, plan: &MessagePlan, field: &FieldPlan, oneof: usize) {
        let before = std::mem::replace(&mut self.words[oneof], field.number.into());
        if before == 0 || before == u64::from(field.number) {
            return;
        }
        let earlier = u32::try_from(before).ok().and_then(|before| plan.field(before));
        if let Some(FieldPlan { action: Action::One(value), word, .. }) = earlier {
            if let ValuePlan::Message(_) = value {
                self.words[*word] = 0;
            }
            self.clear(value);
        }
    }

    /// Clears the written values of a field.
    fn clear(&mut self, value: &ValuePlan) {
        match value {
            ValuePlan::Scalar(targets) => targets.iter().for_each(|target| self.sink.clear(target)),
            ValuePlan::Message(message) => {
                message.present.iter().for_each(|target| self.sink.clear(target));
                message.defaults.iter().for_each(|(target, _)| self.sink.clear(target));
                if let Some(time) = &message.time {
                    time.targets.iter().for_each(|target| self.sink.clear(target));
                }
                for field in &message.fields {
                    match &field.action {
                        Action::One(value) => self.clear(value),
                        // Targets for the presence without elements are among the defaults.
                        Action::Repeated(repeated) => {
                            repeated.picks.iter().for_each(|(_, value)| self.clear(value));
                            repeated.last.iter().for_each(|value| self.clear(value));
                            repeated.named.iter().for_each(|named| self.clear(&named.value));
                        }
                        Action::Map(map) => map.entries.iter().for_each(|entry| self.clear(&entry.value)),
                        Action::Replace => {}
                    }
                }
            }
        }
    }

    /// Reads an element by the plans for its index and for all elements.
    fn element(
        &mut self,
        plan: &Repeated,
        field: &FieldPlan,
        index: u64,
        reader: &mut Reader<'_>,
    ) -> Parsed<()> {
        let FieldPlan { kind, number, .. } = *field;
        let start = reader.at;
        // Every plan reads the element from its beginning; at least one skips it.
        let pick = plan.picks.binary_search_by_key(&index, |(index, _)| *index).ok();
        if let Some(pick) = pick {
            let mut again = *reader;
            self.value(&plan.picks[pick].1, kind, &mut again).map_err(|fault| fault.in_element(index))?;
        }
        if let Some(last) = &plan.last {
            self.clear(last);
            let mut again = Reader { at: start, ..*reader };
            self.value(last, kind, &mut again).map_err(|fault| fault.in_element(index))?;
        }
        for named in &plan.named {
            let mut again = Reader { at: start, ..*reader };
            let outer = (std::mem::take(&mut self.sink.met), self.sink.unknown);
            self.value(&named.name, kind, &mut again).map_err(|fault| fault.in_element(index))?;
            let met = std::mem::replace(&mut self.sink.met, outer.0);
            self.sink.unknown = outer.1;
            if named.alternatives.hold(met) {
                self.clear(&named.value);
                let mut again = Reader { at: start, ..*reader };
                self.value(&named.value, kind, &mut again).map_err(|fault| fault.in_element(index))?;
            }
        }
        let mut is_left_out = false;
        for test in &plan.tests {
            let mut again = Reader { at: start, ..*reader };
            self.sink.begin_element();
            self.sink.seen = matches!(test.of.slot, Slot::String(_)).then(Box::default);
            self.value(&test.of.element, kind, &mut again).map_err(|fault| fault.in_element(index))?;
            is_left_out |= self.test(test);
            self.sink.seen = None;
        }
        self.sink.left_out += u64::from(is_left_out);
        reader.skip(kind.wire(), number, start)
    }

    /// Adds the current element to a test, and writes the result so far, since any element may be the last one. Returns
    /// whether the element is omitted.
    fn test(&mut self, RepeatedTest { of: test, word }: &RepeatedTest) -> bool {
        let Walk { sink, words } = self;
        let words = words.get_mut(*word..).and_then(<[u64]>::split_first_chunk_mut);
        let Some((words, _)) = words else { return false };
        let quantifier = test.quantifier;
        if let Slot::String(_) = test.slot {
            let mut witness = Witness::from_words(quantifier, *words);
            sink.witness(&mut witness, test);
            *words = witness.words();
            return false;
        }
        let Sink { block, row, .. } = sink;
        if quantifier.is_measure() {
            let mut measured = Measured::from_words(*words);
            let before = (measured.lacking(quantifier).not_numbers, measured.left_out(quantifier));
            measured.add(sink.element);
            *words = measured.words();
            let lacking = measured.write(block, *row, test.slot, quantifier);
            let added = lacking.not_numbers.wrapping_sub(before.0);
            sink.not_numbers = sink.not_numbers.wrapping_add(added);
            return measured.left_out(quantifier) > before.1;
        }
        let mut tested = Tested::from_words(*words);
        let (lacked, left_out) = (u64::from(tested.lacks()), tested.left_out);
        let is_met = tested.add(&test.alternatives, test.alternatives.single(), sink.met, sink.unknown);
        *words = tested.words();
        // The value before the first element is that of an empty list.
        let changes = is_met != (quantifier == Quantifier::All);
        if changes || tested.left_out > 0 {
            let lacks = tested.write(block, *row, test.slot, quantifier);
            sink.not_numbers = sink.not_numbers.wrapping_add(lacks.wrapping_sub(lacked));
        }
        tested.left_out > left_out
    }

    fn value(&mut self, plan: &ValuePlan, kind: Kind, reader: &mut Reader<'_>) -> Parsed<()> {
        let start = reader.at;
        match plan {
            ValuePlan::Scalar(targets) => {
                let value = scalar(kind, reader)?;
                targets.iter().try_for_each(|target| self.write(target, value, start))
            }
            ValuePlan::Message(message) => {
                let part = reader.part()?;
                self.whole(message, part)
            }
        }
    }

    /// Reads packed numbers, which may be a part of all elements.
    fn packed(&mut self, field: &FieldPlan, plan: &Repeated, mut part: Reader<'_>) -> Parsed<()> {
        let before = self.words[field.word];
        let size = match field.kind {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => 8,
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => 4,
            _ => 0,
        };
        let bytes = &part.bytes[part.at..];
        let count = if size > 0 {
            if !bytes.len().is_multiple_of(size) {
                return Err(part.truncated());
            }
            bytes.len() / size
        } else {
            if bytes.last().is_some_and(|byte| *byte >= 0x80) {
                return Err(part.truncated());
            }
            bytes.iter().filter(|byte| **byte < 0x80).count()
        } as u64;
        if !plan.tests.is_empty()
            || !plan.named.is_empty()
            || size == 0 && (!plan.picks.is_empty() || plan.last.is_some())
        {
            let mut index = before;
            while !part.is_at_end() {
                self.element(plan, field, index, &mut part)?;
                index += 1;
            }
        } else {
            let first = plan.picks.partition_point(|(index, _)| *index < before);
            for (index, value) in &plan.picks[first..] {
                if *index >= before + count {
                    break;
                }
                let at = part.at + (index - before) as usize * size;
                self.value(value, field.kind, &mut Reader { at, ..part })
                    .map_err(|fault| fault.in_element(*index))?;
            }
            if let Some(last) = plan.last.as_ref().filter(|_| count > 0) {
                let at = part.at + (count - 1) as usize * size;
                self.value(last, field.kind, &mut Reader { at, ..part })
                    .map_err(|fault| fault.in_element(before + count - 1))?;
            }
        }
        self.words[field.word] = before + count;
        self.lengths(&plan.lengths, before + count);
        Ok(())
    }

    fn entry(&mut self, map: &MapPlan, part: Reader<'_>) -> Parsed<()> {
        if map.entries.is_empty() {
            return Ok(());
        }
        let (mut text, mut number) = (&[][..], 0);
        let mut reader = part;
        while !reader.is_at_end() {
            let start = reader.at;
            match reader.tag()? {
                (1, wire) if wire == map.key.wire() => match scalar(map.key, &mut reader)? {
                    Scalar::Text(key) => text = key,
                    Scalar::Int(key) => number = key,
                    Scalar::Bool(key) => number = key.into(),
                    Scalar::Large(_) => {
                        // The bits are those of an unsigned number.
                        let mut again = Reader { at: start, ..reader };
                        again.tag()?;
                        number = match map.key {
                            Kind::Fixed64 => i64::from_le_bytes(again.array()?),
                            _ => again.varint()? as i64,
                        };
                    }
                    _ => {}
                },
                (other, wire) => reader.skip(wire, other, start)?,
            }
        }
        let is = |entry: &&Entry| match map.key {
            Kind::String => entry.name.as_bytes() == text,
            _ => entry.number == Some(number),
        };
        let Some(entry) = map.entries.iter().find(is) else { return Ok(()) };
        self.entry_value(map, entry, part).map_err(|fault| fault.in_member(&entry.name))
    }

    /// Reads the value of an entry. The last entry with a key counts, as a whole.
    fn entry_value(&mut self, map: &MapPlan, entry: &Entry, mut part: Reader<'_>) -> Parsed<()> {
        self.clear(&entry.value);
        match &entry.value {
            ValuePlan::Scalar(targets) => {
                for target in targets {
                    self.write(target, entry.default, part.at)?;
                }
            }
            ValuePlan::Message(message) => self.begin(message, part.at)?,
        }
        while !part.is_at_end() {
            let start = part.at;
            match (part.tag()?, &entry.value) {
                ((2, wire), ValuePlan::Scalar(targets)) if wire == map.value.wire() => {
                    let value = scalar(map.value, &mut part)?;
                    for target in targets {
                        self.write(target, value, start)?;
                    }
                }
                ((2, LENGTH), ValuePlan::Message(message)) => {
                    let inner = part.part()?;
                    self.message(message, inner)?;
                }
                ((number, wire), _) => part.skip(wire, number, start)?,
            }
        }
        Ok(())
    }

    /// Writes the time of seconds and nanoseconds, which may be in this part of the message or in an earlier one.
    fn time(&mut self, plan: &TimePlan, mut reader: Reader<'_>) -> Parsed<()> {
        let begin = reader.at;
        while !reader.is_at_end() {
            let start = reader.at;
            let (number, wire) = reader.tag()?;
            let part = [plan.seconds, plan.nanos];
            let found = part.iter().position(|(of, kind)| *of == number && kind.wire() == wire);
            let Some(found) = found else {
                reader.skip(wire, number, start)?;
                continue;
            };
            self.words[plan.word + found] = match scalar(part[found].1, &mut reader)? {
                Scalar::Int(value) => value as u64,
                _ => i64::MAX as u64,
            };
        }
        let (seconds, nanos) = (self.words[plan.word] as i64, self.words[plan.word + 1] as i64);
        let value = match plan.form {
            TimeForm::Duration => {
                let total = i128::from(seconds) * NS_PER_S + i128::from(nanos);
                let is_one = i128::from(nanos).abs() < NS_PER_S && seconds.signum() * nanos.signum() >= 0;
                match i64::try_from(total) {
                    Ok(total) if is_one => Scalar::Span(total),
                    Err(_) if is_one => Scalar::Beyond,
                    _ => Scalar::Other,
                }
            }
            TimeForm::Timestamp | TimeForm::Either => span(sum(seconds, nanos)),
        };
        plan.targets.iter().try_for_each(|target| self.write(target, value, begin))
    }
}

/// Reads a value without parts.
#[inline(always)]
pub(super) fn scalar<'m>(kind: Kind, reader: &mut Reader<'m>) -> Parsed<Scalar<'m>> {
    let unsigned = |value: u64| match i64::try_from(value) {
        Ok(value) => Scalar::Int(value),
        Err(_) => Scalar::Large(value as f64),
    };
    Ok(match kind {
        Kind::Double => Scalar::Float(f64::from_le_bytes(reader.array()?)),
        Kind::Float => Scalar::Float(f32::from_le_bytes(reader.array()?).into()),
        // A negative number has ten bytes; of longer ones, the lower bits count.
        Kind::Int32 | Kind::Enum(_) => Scalar::Int((reader.varint()? as i32).into()),
        Kind::Int64 => Scalar::Int(reader.varint()? as i64),
        Kind::Uint32 => Scalar::Int((reader.varint()? as u32).into()),
        Kind::Uint64 => unsigned(reader.varint()?),
        Kind::Sint32 => {
            let value = reader.varint()? as u32;
            Scalar::Int(((value >> 1) as i32 ^ -((value & 1) as i32)).into())
        }
        Kind::Sint64 => {
            let value = reader.varint()?;
            Scalar::Int((value >> 1) as i64 ^ -((value & 1) as i64))
        }
        Kind::Fixed32 => Scalar::Int(u32::from_le_bytes(reader.array()?).into()),
        Kind::Fixed64 => unsigned(u64::from_le_bytes(reader.array()?)),
        Kind::Sfixed32 => Scalar::Int(i32::from_le_bytes(reader.array()?).into()),
        Kind::Sfixed64 => Scalar::Int(i64::from_le_bytes(reader.array()?)),
        Kind::Bool => Scalar::Bool(reader.varint()? != 0),
        Kind::String => {
            let part = reader.part()?;
            Scalar::Text(&part.bytes[part.at..])
        }
        Kind::Bytes => {
            let part = reader.part()?;
            Scalar::Bytes((part.bytes.len() - part.at) as u64)
        }
        Kind::Group | Kind::Message(_) => {
            reader.part()?;
            Scalar::Other
        }
    })
}
