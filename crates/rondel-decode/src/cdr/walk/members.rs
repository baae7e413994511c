//! Members with headers: of mutable structures, and optional ones of the first version.

use super::super::error::CdrErrorKind;
use super::super::plan::{Mutable, Place, Version};
use super::{
    EXTENDED_MUST_UNDERSTAND, ID_MASK, MUST_UNDERSTAND, PID_EXTENDED, PID_LIST_END, PID_MASK,
    PID_MUST_UNDERSTAND, Stop, Walk, length_align,
};

/// Header of a member of a mutable type.
#[derive(Clone, Copy)]
pub(super) struct MemberHeader {
    pub(super) id: u32,
    pub(super) must_understand: bool,
    /// Positions of the header and of the member, and the length of the member.
    pub(super) at: usize,
    pub(super) start: usize,
    pub(super) length: usize,
    version: Version,
}

impl MemberHeader {
    /// Returns the position relative to which values in the member are aligned, given that of the enclosing type.
    pub(super) fn origin(&self, outer: usize) -> usize {
        match self.version {
            Version::One => self.start,
            Version::Two | Version::Packed => outer,
        }
    }
}

impl Walk<'_, '_> {
    /// Reads the header of the next member of a mutable type, or `None` after the last one. The member exists.
    pub(super) fn header<const FORM: u8>(
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
    pub(super) fn mutable<const FORM: u8>(&mut self, mutable: &Mutable) -> Result<(), Stop> {
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
    pub(super) fn parameters<const FORM: u8>(&mut self, mutable: &Mutable) -> Result<(), Stop> {
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
    pub(super) fn parameter<const FORM: u8>(
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
