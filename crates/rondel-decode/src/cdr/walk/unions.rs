//! Unions: the discriminator and the selected case.

use super::super::error::CdrErrorKind;
use super::super::plan::{UnionPlan, Version};
use super::super::write::Scalar;
use super::{DISCRIMINATOR_ID, PADDING, Stop, Walk, read};

impl Walk<'_, '_> {
    pub(super) fn union<const FORM: u8>(&mut self, union: &UnionPlan) -> Result<(), Stop> {
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
    pub(super) fn mutable_union<const FORM: u8>(
        &mut self,
        union: &UnionPlan,
        version: Version,
    ) -> Result<(), Stop> {
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
}
