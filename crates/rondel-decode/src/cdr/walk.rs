//! Walk of a plan over the bytes of a message.
//!
//! Every length is compared with the remaining bytes before it is used, and every element and member has at least one
//! byte: the work is bounded by the size of the message.

use rondel_event::Slot;

use super::compile::advance;
use super::error::CdrErrorKind;
use super::plan::{
    Element, ElementTest, Mutable, Number, Place, Run, Sequence, Step, Text, TextTarget, UnionPlan, Version,
};
use super::wide::{Seen, WideForm};
use super::write::{Scalar, Writer};
use crate::elements::{Measurand, Measured, Tested, Witness};
use crate::json::characters;

/// Fault of a message: the reason, the position in the body, the field.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: CdrErrorKind,
    pub(super) at: usize,
    pub(super) place: Place,
}

/// Reason why steps end early.
pub(super) enum Stop {
    /// An older writer does not know the members from here on.
    Ended,
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

/// State of a walk over a message.
pub(super) struct Walk<'m, 'w> {
    pub(super) bytes: &'m [u8],
    pub(super) at: usize,
    /// End of the message, or of the part of known length.
    pub(super) end: usize,
    /// Position relative to which values are aligned.
    pub(super) origin: usize,
    /// Whether the end may come before the next member, since its writer may know fewer members.
    pub(super) may_end: bool,
    /// Positions of names in arrays, in the order of the plan; `u32::MAX` without one.
    pub(super) positions: Vec<u32>,
    /// The form of wide strings.
    pub(super) wide: WideForm,
    pub(super) seen: Seen,
    pub(super) out: Writer<'w>,
}

/// Ids of special parameters in lists of members.
pub(super) const PID_EXTENDED: u16 = 0x3f01;
pub(super) const PID_LIST_END: u16 = 0x3f02;
pub(super) const PID_MASK: u16 = 0x3fff;
/// Mask of a member's id; the other bits are flags.
pub(super) const ID_MASK: u32 = 0x0fff_ffff;
/// Flag of a member that must be understood to use the others: in the second version, in a parameter, and in a
/// parameter with a long id.
pub(super) const MUST_UNDERSTAND: u32 = 0x8000_0000;
pub(super) const PID_MUST_UNDERSTAND: u16 = 0x4000;
pub(super) const EXTENDED_MUST_UNDERSTAND: u32 = 0x4000_0000;
/// Id of the discriminator of a mutable union.
pub(super) const DISCRIMINATOR_ID: u32 = 0;
/// Maximum padding after the last part of a message or a parameter, in bytes.
pub(super) const PADDING: usize = 3;

/// Header of a member of a mutable type.
#[derive(Clone, Copy)]
struct MemberHeader {
    id: u32,
    must_understand: bool,
    /// Positions of the header and of the member, and the length of the member.
    at: usize,
    start: usize,
    length: usize,
    version: Version,
}

impl MemberHeader {
    /// Returns the position relative to which values in the member are aligned, given that of the enclosing type.
    fn origin(&self, outer: usize) -> usize {
        match self.version {
            Version::One => self.start,
            Version::Two | Version::Packed => outer,
        }
    }
}

/// Forms of a message: big-endian, little-endian, and that of ROS 1: little-endian, without padding, with texts without
/// a terminating zero.
pub(super) const BIG: u8 = 0;
pub(super) const LITTLE: u8 = 1;
pub(super) const PACKED: u8 = 2;

/// Returns the alignment of a length.
#[inline(always)]
fn length_align(form: u8) -> usize {
    if form == PACKED { 1 } else { 4 }
}

/// Returns the bytes at a position that was compared with the end.
#[inline(always)]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

#[inline(always)]
fn read<const FORM: u8>(number: Number, bytes: &[u8], at: usize) -> Scalar {
    macro_rules! get {
        ($t:ty) => {
            if FORM == BIG {
                <$t>::from_be_bytes(chunk(bytes, at))
            } else {
                <$t>::from_le_bytes(chunk(bytes, at))
            }
        };
    }
    match number {
        Number::Bool => Scalar::Bool(chunk::<1>(bytes, at)[0]),
        Number::U8 => Scalar::Int(chunk::<1>(bytes, at)[0].into()),
        Number::I8 => Scalar::Int((chunk::<1>(bytes, at)[0] as i8).into()),
        Number::U16 => Scalar::Int(get!(u16).into()),
        Number::I16 => Scalar::Int(get!(i16).into()),
        Number::U32 => Scalar::Int(get!(u32).into()),
        Number::I32 => Scalar::Int(get!(i32).into()),
        Number::I64 => Scalar::Int(get!(i64)),
        Number::U64 => match get!(u64) {
            value @ 0..=0x7fff_ffff_ffff_ffff => Scalar::Int(value as i64),
            value => Scalar::Large(value),
        },
        Number::F32 => Scalar::Float(get!(f32).into()),
        Number::F64 => Scalar::Float(get!(f64)),
    }
}

impl<'m> Walk<'m, '_> {
    /// Returns to the beginning of the message.
    pub(super) fn begin(&mut self) {
        (self.at, self.end, self.origin, self.may_end) = (0, self.bytes.len(), 0, false);
        (self.seen, self.out.met) = (Seen::default(), 0);
    }

    pub(super) fn run<const FORM: u8>(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            match step {
                Step::Run(run) => self.members::<FORM>(run)?,
                Step::Text(text) => self.text::<FORM>(text)?,
                Step::Pass { reach, place } => {
                    let phase = self.at.wrapping_sub(self.origin) & 7;
                    self.need(self.at, reach[phase] as usize, *place)?;
                    self.at += reach[phase] as usize;
                }
                Step::Sequence(sequence) => self.sequence::<FORM>(sequence)?,
                Step::Delimited { steps, is_struct, place } => {
                    let (start, length) = self.length::<FORM>(*place)?;
                    self.part::<FORM>(steps, start, length, self.origin, *is_struct)?;
                }
                Step::Mutable(mutable) => match mutable.version {
                    Version::One => self.parameters::<FORM>(mutable)?,
                    Version::Two | Version::Packed => self.mutable::<FORM>(mutable)?,
                },
                Step::Optional { steps, id, version: Version::One, place } => {
                    let (header, start, length) = self.parameter::<FORM>(*place)?;
                    let found = header.map_or(PID_LIST_END.into(), |header| header.id);
                    if header.is_none() || found != *id {
                        let kind = CdrErrorKind::UnexpectedMember(found);
                        return Err(self.fault(kind, start, *place));
                    }
                    if length > 0 {
                        self.part::<FORM>(steps, start, length, start, false)?;
                    } else {
                        self.at = start;
                    }
                }
                Step::Optional { steps, version: Version::Two | Version::Packed, place, .. } => {
                    self.need(self.at, 1, *place)?;
                    match self.bytes[self.at] {
                        0 => self.at += 1,
                        1 => {
                            self.at += 1;
                            let may_end = std::mem::replace(&mut self.may_end, false);
                            self.run::<FORM>(steps)?;
                            self.may_end = may_end;
                        }
                        byte => return Err(self.fault(CdrErrorKind::NotABoolean(byte), self.at, *place)),
                    }
                }
                Step::Union(union) => match union.headers {
                    None => self.union::<FORM>(union)?,
                    Some(version) => self.mutable_union::<FORM>(union, version)?,
                },
                Step::Wide(text) => self.wide_text::<FORM>(text)?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn aligned(&self, align: usize) -> usize {
        self.at + (self.origin.wrapping_sub(self.at) & (align - 1))
    }

    #[cold]
    fn fault(&self, kind: CdrErrorKind, at: usize, place: Place) -> Stop {
        Stop::Fault(Fault { kind, at, place })
    }

    /// Checks that `size` bytes exist at a position.
    #[inline(always)]
    fn need(&self, at: usize, size: usize, place: Place) -> Result<(), Stop> {
        if at.saturating_add(size) > self.end { Err(self.missing(at, place)) } else { Ok(()) }
    }

    #[cold]
    fn missing(&self, at: usize, place: Place) -> Stop {
        if self.may_end && at >= self.end {
            return Stop::Ended;
        }
        self.fault(CdrErrorKind::Truncated, at.min(self.end), place)
    }

    #[inline(always)]
    fn u32<const FORM: u8>(&self, at: usize) -> u32 {
        let bytes = chunk(self.bytes, at);
        if FORM == BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u16<const FORM: u8>(&self, at: usize) -> u16 {
        let bytes = chunk(self.bytes, at);
        if FORM == BIG { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// Reads a length in bytes, and returns the range of the part of this length, which exists.
    #[inline(always)]
    fn length<const FORM: u8>(&mut self, place: Place) -> Result<(usize, usize), Stop> {
        let at = self.aligned(length_align(FORM));
        self.need(at, 4, place)?;
        let (start, length) = (at + 4, self.u32::<FORM>(at));
        if length as usize > self.end - start {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), at, place));
        }
        Ok((start, length as usize))
    }

    /// Runs the steps of a part whose end is known, and moves to this end.
    fn part<const FORM: u8>(
        &mut self,
        steps: &[Step],
        start: usize,
        length: usize,
        origin: usize,
        may_end: bool,
    ) -> Result<(), Stop> {
        if !steps.is_empty() {
            let outer = (self.end, self.origin, self.may_end);
            (self.at, self.end, self.origin, self.may_end) = (start, start + length, origin, may_end);
            match self.run::<FORM>(steps) {
                Ok(()) => {}
                Err(Stop::Ended) => self.seen.has_ended = true,
                fault => return fault,
            }
            self.seen.unread += self.end.saturating_sub(self.at);
            (self.end, self.origin, self.may_end) = outer;
        }
        self.at = start + length;
        Ok(())
    }

    #[inline(always)]
    fn members<const FORM: u8>(&mut self, run: &Run) -> Result<(), Stop> {
        let at = self.aligned(run.align);
        if at + run.check > self.end {
            return self.short::<FORM>(run, at);
        }
        let bytes = &self.bytes[at..at + run.check];
        for load in &run.loads {
            let scalar = read::<FORM>(load.number, bytes, load.offset as usize);
            if let Err(kind) = self.out.write(load.to, scalar) {
                return Err(self.fault(kind, at + load.offset as usize, load.place));
            }
        }
        self.at = at + run.size;
        Ok(())
    }

    /// Reads the existing members, if the others may be missing.
    #[cold]
    fn short<const FORM: u8>(&mut self, run: &Run, at: usize) -> Result<(), Stop> {
        let there = self.end.saturating_sub(at);
        let cut = run.members.iter().rev().find(|(offset, _)| (*offset as usize) < there.max(1));
        let truncated = |this: &Self| {
            let (offset, place) = cut.copied().unwrap_or_default();
            this.fault(CdrErrorKind::Truncated, (at + offset as usize).min(this.end), place)
        };
        if !self.may_end {
            return Err(truncated(self));
        }
        for load in &run.loads {
            let offset = load.offset as usize;
            if load.end() <= there {
                let scalar = read::<FORM>(load.number, self.bytes, at + offset);
                self.out.write(load.to, scalar).map_err(|kind| self.fault(kind, at + offset, load.place))?;
            } else if offset < there {
                return Err(truncated(self));
            }
        }
        Err(Stop::Ended)
    }

    fn text<const FORM: u8>(&mut self, text: &Text) -> Result<(), Stop> {
        let (start, length) = self.length::<FORM>(text.place)?;
        self.at = start + length;
        let bytes = &self.bytes[start..start + length];
        if text.targets.is_empty() && !text.is_checked {
            return Ok(());
        }
        if length.saturating_sub(1) > text.bound as usize {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(length as u32), start - 4, text.place));
        }
        let bytes = match bytes {
            _ if FORM == PACKED => bytes,
            [bytes @ .., 0] => bytes,
            // Not in the standard, but some writers write an empty string so.
            [] => bytes,
            _ => return Err(self.fault(CdrErrorKind::Unterminated, start, text.place)),
        };
        match std::str::from_utf8(bytes) {
            Ok(value) => self.write_text(&text.targets, value),
            Err(error) => {
                return Err(self.fault(CdrErrorKind::NotText, start + error.valid_up_to(), text.place));
            }
        }
        Ok(())
    }

    fn write_text(&mut self, targets: &[TextTarget], value: &str) {
        for target in targets {
            match target {
                TextTarget::Column(column) => self.out.block.set_string(*column, self.out.row, value),
                TextTarget::Decimal(to) => self.out.decimal(*to, value),
                TextTarget::Length(column) => {
                    let length = characters(value.as_bytes()) as i64;
                    self.out.block.set_int(*column, self.out.row, length);
                }
                TextTarget::Present(column) => self.out.block.set_bool(*column, self.out.row, true),
                TextTarget::Test(bit, test) => self.out.test_text(*bit, *test, value),
                TextTarget::Met(bit) => self.out.met |= 1 << bit,
            }
        }
    }

    #[inline(never)]
    fn wide_text<const FORM: u8>(&mut self, text: &Text) -> Result<(), Stop> {
        let at = self.aligned(length_align(FORM));
        self.need(at, 4, text.place)?;
        let (start, length) = (at + 4, self.u32::<FORM>(at));
        let size = self.wide.size(length);
        self.seen.has_text |= length > 0;
        if size > self.end - start {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), at, text.place));
        }
        self.at = start + size;
        if text.targets.is_empty() && !text.is_checked {
            return Ok(());
        }
        if self.wide.count(length) > text.bound {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(length), at, text.place));
        }
        let mut value = std::mem::take(&mut self.out.scratch);
        let is_text = self.wide.read(FORM == BIG, &self.bytes[start..start + size], &mut value);
        if is_text {
            self.write_text(&text.targets, &value);
        }
        self.out.scratch = value;
        if is_text { Ok(()) } else { Err(self.fault(CdrErrorKind::NotText, start, text.place)) }
    }

    fn sequence<const FORM: u8>(&mut self, sequence: &Sequence) -> Result<(), Stop> {
        let place = sequence.place;
        let count = match sequence.fixed {
            Some(count) => {
                self.need(self.at, 1, place)?;
                count
            }
            None => {
                let at = self.aligned(length_align(FORM));
                self.need(at, 4, place)?;
                let count = self.u32::<FORM>(at);
                self.at = at + 4;
                if count > sequence.bound {
                    return Err(self.fault(CdrErrorKind::LengthAboveBound(count), at, place));
                }
                // Every element has at least one byte.
                if count as usize > self.end - self.at {
                    return Err(self.fault(CdrErrorKind::LengthBeyondEnd(count), at, place));
                }
                count
            }
        };
        for target in &sequence.present {
            // Cannot fail: nothing is read.
            let _ = self.out.write(*target, Scalar::Int(0));
        }
        for column in &sequence.lengths {
            let length = sequence.outer.unwrap_or(count);
            self.out.block.set_int(*column, self.out.row, length.into());
        }
        let may_end = std::mem::replace(&mut self.may_end, false);
        let start = self.at;
        let mut next = 0;
        for (index, steps) in &sequence.picks {
            if *index >= count {
                break;
            }
            if *index < next {
                // The same element by its position from the end.
                (self.at, next) = (start, 0);
            }
            self.advance::<FORM>(&sequence.element, *index - next, place)?;
            self.run::<FORM>(steps)?;
            next = index + 1;
        }
        for (from_end, steps) in &sequence.ends {
            let Some(index) = count.checked_sub(*from_end) else { continue };
            self.at = start;
            self.advance::<FORM>(&sequence.element, index, place)?;
            self.run::<FORM>(steps)?;
            next = index + 1;
        }
        let mut left_out = 0;
        for test in &sequence.tests {
            self.at = start;
            let (is_measure, mut measured) = (test.quantifier.is_measure(), Measured::NOTHING);
            let (single, mut tested) = (test.alternatives.single(), Tested::default());
            if let Some(Slot::String(column)) = test.slot {
                self.witness::<FORM>(test, column, count)?;
                next = count;
                continue;
            }
            for _ in 0..count {
                let outer = std::mem::replace(&mut self.out.met, 0);
                self.run::<FORM>(&test.steps)?;
                let met = std::mem::replace(&mut self.out.met, outer);
                if is_measure {
                    measured.add(Measurand::Number(self.out.element));
                    continue;
                }
                let unknown = std::mem::take(&mut self.out.unknown);
                tested.add(&test.alternatives, single, (met, unknown));
            }
            next = count;
            let Some(slot) = test.slot else { continue };
            let (block, row) = (&mut *self.out.block, self.out.row);
            if is_measure {
                self.out.not_numbers += measured.write(block, row, slot, test.quantifier).not_numbers;
                left_out = left_out.max(measured.left_out(test.quantifier));
            } else {
                self.out.not_numbers += tested.write(block, row, slot, test.quantifier);
                left_out = left_out.max(tested.left_out);
            }
        }
        if sequence.searches() {
            next = self.search::<FORM>(sequence, start, (next, count))?;
        }
        self.out.left_out += left_out;
        if sequence.goes_on {
            self.advance::<FORM>(&sequence.element, count - next, place)?;
        }
        self.may_end = may_end;
        Ok(())
    }

    /// Writes the element that decides a quantifier.
    #[cold]
    fn witness<const FORM: u8>(&mut self, test: &ElementTest, column: u32, count: u32) -> Result<(), Stop> {
        let (block, row) = (&mut *self.out.block, self.out.row);
        block.set_invalid(Slot::String(column), row);
        let mut witness = Witness::new(test.quantifier);
        for _ in 0..count {
            let outer = std::mem::replace(&mut self.out.met, 0);
            self.out.seen = Some(Box::default());
            self.run::<FORM>(&test.steps)?;
            let met = std::mem::replace(&mut self.out.met, outer);
            let unknown = std::mem::take(&mut self.out.unknown);
            let seen = self.out.seen.take().unwrap_or_default();
            let text = if test.quantifier.is_measure() {
                witness.measure(Measurand::Number(self.out.element))
            } else {
                let is_met = test.alternatives.hold(met);
                let may_meet = unknown != 0 && test.alternatives.hold(met | unknown);
                witness.test((is_met || !may_meet).then_some(is_met), &test.names, &seen)
            };
            if let Some(text) = text {
                self.out.block.set_string(column, self.out.row, &text);
            }
        }
        Ok(())
    }

    /// Skips elements.
    pub(super) fn advance<const FORM: u8>(
        &mut self,
        element: &Element,
        count: u32,
        place: Place,
    ) -> Result<(), Stop> {
        if count == 0 {
            return Ok(());
        }
        match element {
            Element::Number(align, size) => {
                let at = self.aligned(*align);
                let size = size.saturating_mul(count as usize);
                self.need(at, size, place)?;
                self.at = at + size;
            }
            Element::Fixed(reach) => {
                let phase = self.at.wrapping_sub(self.origin) & 7;
                let size = usize::try_from(advance(reach, phase, count.into())).unwrap_or(usize::MAX);
                self.need(self.at, size, place)?;
                self.at += size;
            }
            Element::Variable(steps) => {
                for _ in 0..count {
                    self.run::<FORM>(steps)?;
                }
            }
        }
        Ok(())
    }

    fn union<const FORM: u8>(&mut self, union: &UnionPlan) -> Result<(), Stop> {
        let label = self.discriminator::<FORM>(union)?;
        if let Some(case) = union.case(label) {
            let may_end = std::mem::replace(&mut self.may_end, false);
            self.run::<FORM>(&case.steps)?;
            self.may_end = may_end;
        }
        Ok(())
    }

    /// Reads a discriminator; `None` if it is beyond the signed range.
    fn discriminator<const FORM: u8>(&mut self, union: &UnionPlan) -> Result<Option<i64>, Stop> {
        let at = self.aligned(union.align);
        let size = union.discriminator.size() as usize;
        self.need(at, size, union.place)?;
        let scalar = read::<FORM>(union.discriminator, self.bytes, at);
        for load in &union.loads {
            self.out.write(load.to, scalar).map_err(|kind| self.fault(kind, at, union.place))?;
        }
        self.at = at + size;
        match scalar {
            Scalar::Int(value) => Ok(Some(value)),
            Scalar::Bool(byte @ 0..=1) => Ok(Some(byte.into())),
            Scalar::Bool(byte) => Err(self.fault(CdrErrorKind::NotABoolean(byte), at, union.place)),
            Scalar::Large(_) | Scalar::Float(_) => Ok(None),
        }
    }

    /// Reads a mutable union: the discriminator, then the selected case, both with headers.
    fn mutable_union<const FORM: u8>(&mut self, union: &UnionPlan, version: Version) -> Result<(), Stop> {
        let place = union.place;
        let outer = (self.end, self.origin, self.may_end);
        let end = match version {
            Version::One => None,
            Version::Two | Version::Packed => {
                let (start, length) = self.length::<FORM>(place)?;
                (self.at, self.end) = (start, start + length);
                Some(self.end)
            }
        };
        self.may_end = false;
        let inner_end = self.end;
        let label = match self.header::<FORM>(version, place)? {
            Some(header) if header.id == DISCRIMINATOR_ID => {
                let size = union.discriminator.size() as usize;
                if header.length > size + PADDING {
                    let kind = CdrErrorKind::LengthAboveBound(header.length as u32);
                    return Err(self.fault(kind, header.at, place));
                }
                (self.at, self.end) = (header.start, header.start + header.length);
                self.origin = header.origin(outer.1);
                let label = self.discriminator::<FORM>(union)?;
                (self.at, self.end, self.origin) = (self.end, inner_end, outer.1);
                label
            }
            Some(header) => {
                return Err(self.fault(CdrErrorKind::UnexpectedMember(header.id), header.at, place));
            }
            None => return Err(self.fault(CdrErrorKind::MissingMember(DISCRIMINATOR_ID), self.at, place)),
        };
        let case = union.case(label);
        let mut is_read = false;
        while let Some(header) = self.header::<FORM>(version, place)? {
            match case {
                Some(case) if case.id == header.id => {
                    if std::mem::replace(&mut is_read, true) {
                        return Err(self.fault(CdrErrorKind::RepeatedMember(header.id), header.at, place));
                    }
                    let origin = header.origin(outer.1);
                    self.part::<FORM>(&case.steps, header.start, header.length, origin, false)?;
                }
                _ => {
                    let is_known =
                        header.id == DISCRIMINATOR_ID || union.cases.iter().any(|case| case.id == header.id);
                    let kind = match header.must_understand {
                        _ if is_known => CdrErrorKind::UnexpectedMember(header.id),
                        true => CdrErrorKind::MustUnderstand(header.id),
                        // A case that only a newer writer knows.
                        false => {
                            self.at = header.start + header.length;
                            continue;
                        }
                    };
                    return Err(self.fault(kind, header.at, place));
                }
            }
        }
        if let Some(case) = case.filter(|_| !is_read) {
            return Err(self.fault(CdrErrorKind::MissingMember(case.id), self.at.min(self.end), place));
        }
        (self.end, self.origin, self.may_end) = outer;
        self.at = end.unwrap_or(self.at);
        Ok(())
    }

    /// Reads the header of the next member of a mutable type, or `None` after the last one. The member exists.
    fn header<const FORM: u8>(
        &mut self,
        version: Version,
        place: Place,
    ) -> Result<Option<MemberHeader>, Stop> {
        match version {
            Version::One => {
                let (header, start, length) = self.parameter::<FORM>(place)?;
                if header.is_none() {
                    self.at = start + length;
                }
                Ok(header)
            }
            // At most three bytes before the end are padding.
            Version::Two | Version::Packed if self.aligned(length_align(FORM)) >= self.end => Ok(None),
            Version::Two | Version::Packed => self.member_header::<FORM>(place).map(Some),
        }
    }

    /// Reads the header of a member in the second version.
    fn member_header<const FORM: u8>(&mut self, place: Place) -> Result<MemberHeader, Stop> {
        let at = self.aligned(length_align(FORM));
        self.need(at, 4, place)?;
        let header = self.u32::<FORM>(at);
        let (start, size) = match header >> 28 & 7 {
            code @ 0..=3 => (at + 4, 1_u64 << code),
            code => {
                self.need(at, 8, place)?;
                let next = u64::from(self.u32::<FORM>(at + 4));
                // From the fifth code on, the length is also the first part of the member.
                match code {
                    4 => (at + 8, next),
                    5 => (at + 4, 4 + next),
                    6 => (at + 4, 4 + 4 * next),
                    _ => (at + 4, 4 + 8 * next),
                }
            }
        };
        if size > (self.end - start) as u64 {
            let length = u32::try_from(size).unwrap_or(u32::MAX);
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), at, place));
        }
        let (id, must_understand) = (header & ID_MASK, header & MUST_UNDERSTAND != 0);
        Ok(MemberHeader { id, must_understand, at, start, length: size as usize, version: Version::Two })
    }

    /// Reads a mutable structure of the second version: its length, then members with headers.
    fn mutable<const FORM: u8>(&mut self, mutable: &Mutable) -> Result<(), Stop> {
        let place = mutable.place;
        let (start, length) = self.length::<FORM>(place)?;
        let outer = (self.end, self.may_end);
        (self.at, self.end, self.may_end) = (start, start + length, false);
        let (mut seen, mut left) = (0, mutable.members.len());
        // At most three bytes before the end are padding.
        while self.aligned(length_align(FORM)) < self.end && left > 0 {
            let header @ MemberHeader { id, at, start, length, .. } = self.member_header::<FORM>(place)?;
            match mutable.members.iter().position(|(member, _)| *member == id) {
                Some(member) => {
                    self.first(&mut seen, member, id, at, place)?;
                    left -= usize::from(member < 64);
                    self.part::<FORM>(&mutable.members[member].1, start, length, self.origin, false)?;
                }
                None => {
                    self.pass(&header, mutable)?;
                    self.at = start + length;
                }
            }
        }
        (self.end, self.may_end) = outer;
        self.at = start + length;
        Ok(())
    }

    /// Skips a member that is not read. If the type does not have it and it is marked, the message must not be read
    /// without it (DDS-XTypes 1.3, 7.2.2.4.4.4.6).
    fn pass(&self, header: &MemberHeader, mutable: &Mutable) -> Result<(), Stop> {
        if header.must_understand && !mutable.known.contains(&header.id) {
            return Err(self.fault(CdrErrorKind::MustUnderstand(header.id), header.at, mutable.place));
        }
        Ok(())
    }

    /// Refuses a repeated member. Only the first 64 members are tracked: more are rarely read.
    fn first(&self, seen: &mut u64, member: usize, id: u32, at: usize, place: Place) -> Result<(), Stop> {
        let bit = 1_u64.checked_shl(member as u32).unwrap_or(0);
        if *seen & bit != 0 {
            return Err(self.fault(CdrErrorKind::RepeatedMember(id), at, place));
        }
        *seen |= bit;
        Ok(())
    }

    /// Reads a mutable structure of the first version: a list of parameters with an end.
    fn parameters<const FORM: u8>(&mut self, mutable: &Mutable) -> Result<(), Stop> {
        let may_end = std::mem::replace(&mut self.may_end, false);
        let mut seen = 0;
        loop {
            let (header, start, length) = self.parameter::<FORM>(mutable.place)?;
            self.at = start + length;
            let Some(header @ MemberHeader { id, .. }) = header else { break };
            match mutable.members.iter().position(|(member, _)| *member == id) {
                Some(member) => {
                    self.first(&mut seen, member, id, start, mutable.place)?;
                    self.part::<FORM>(&mutable.members[member].1, start, length, start, false)?;
                }
                None => self.pass(&header, mutable)?,
            }
        }
        self.may_end = may_end;
        Ok(())
    }

    /// Reads the header of a parameter, or `None` at the end of the list; returns also the position of its value and
    /// its length. The value exists.
    fn parameter<const FORM: u8>(
        &mut self,
        place: Place,
    ) -> Result<(Option<MemberHeader>, usize, usize), Stop> {
        let at = self.aligned(length_align(FORM));
        self.need(at, 4, place)?;
        let (id, length) = (self.u16::<FORM>(at), self.u16::<FORM>(at + 2));
        let (found, start, length) = match id & PID_MASK {
            PID_LIST_END => (None, at + 4, u32::from(length)),
            PID_EXTENDED => {
                self.need(at, 12, place)?;
                let id = self.u32::<FORM>(at + 4);
                let must_understand = id & EXTENDED_MUST_UNDERSTAND != 0;
                (Some((id & ID_MASK, must_understand)), at + 12, self.u32::<FORM>(at + 8))
            }
            own => (Some((u32::from(own), id & PID_MUST_UNDERSTAND != 0)), at + 4, u32::from(length)),
        };
        if length as usize > self.end - start {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), at, place));
        }
        let length = length as usize;
        let header = found.map(|(id, must_understand)| {
            let version = Version::One;
            MemberHeader { id, must_understand, at, start, length, version }
        });
        Ok((header, start, length))
    }
}
