//! Walk of a plan over the bytes of a message.
//!
//! Every length is compared with the remaining bytes before it is used, and every element and member has at least one
//! byte: the work is bounded by the size of the message.

mod arrays;
mod members;
mod search;
mod unions;

use super::error::CdrErrorKind;
use super::plan::{Number, Place, Run, Step, Text, TextTarget, Version};
use super::wide::{Seen, WideForm};
use super::write::{Scalar, Writer};
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
}
