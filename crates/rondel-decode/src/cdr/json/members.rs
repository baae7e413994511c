//! Structures as JSON objects: their members, with headers if they are optional or the structure is mutable.

use super::super::error::CdrErrorKind;
use super::super::plan::Version;
use super::super::walk::{
    EXTENDED_MUST_UNDERSTAND, ID_MASK, MUST_UNDERSTAND, PID_EXTENDED, PID_LIST_END, PID_MASK,
    PID_MUST_UNDERSTAND,
};
use super::{Stop, Walk, Walked, within};
use crate::json::write as text;
use crate::schema::{Extensibility, Member, Struct};

/// Header of a member of a mutable type.
pub(super) struct MemberHeader {
    pub(super) id: u32,
    pub(super) must_understand: bool,
    /// Position of the header.
    pub(super) start: usize,
    pub(super) length: usize,
    /// Position relative to which values in the member are aligned.
    pub(super) origin: usize,
}

impl<'m> Walk<'m, '_> {
    pub(super) fn structure(&mut self, structure: &'m Struct) -> Walked<()> {
        match structure.extensibility.unwrap_or(self.unstated) {
            Extensibility::Mutable if self.version == Version::Two => {
                let length = self.length()?;
                self.part(length, self.origin, false, |this| this.mutable(structure))
            }
            Extensibility::Mutable => self.complete(|this| this.mutable(structure)),
            Extensibility::Appendable if self.version == Version::Two => {
                let length = self.length()?;
                self.part(length, self.origin, true, |this| this.members(structure))
            }
            _ => self.members(structure),
        }
    }

    /// Writes the name of a member after the previous ones.
    pub(super) fn key(&mut self, name: &str) {
        text::key(name, self.out);
    }

    fn members(&mut self, structure: &'m Struct) -> Walked<()> {
        self.out.push(b'{');
        for member in &structure.members {
            let before = self.out.len();
            self.key(&member.name);
            match within(&member.name, self.member(member)) {
                Ok(true) if self.leaves_out(structure, member) => self.out.truncate(before),
                Ok(true) => {}
                Ok(false) => self.out.truncate(before),
                Err(Stop::Ended) => {
                    self.out.truncate(before);
                    self.out.push(b'}');
                    return Err(Stop::Ended);
                }
                Err(fault) => return Err(fault),
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Whether a member that was read is not written.
    fn leaves_out(&self, structure: &Struct, member: &Member) -> bool {
        self.only_key && !member.key && structure.has_key()
    }

    /// Reads a member; returns whether it is present.
    fn member(&mut self, member: &'m Member) -> Walked<bool> {
        if !member.optional {
            return self.value(&member.member_type).map(|()| true);
        }
        if self.version == Version::Two {
            return match self.bits(1)? {
                0 => Ok(false),
                1 => self.complete(|this| this.value(&member.member_type)).map(|()| true),
                byte => Err(self.fault(CdrErrorKind::NotABoolean(byte as u8), self.at - 1)),
            };
        }
        let (header, length) = self.parameter()?;
        let found = header.as_ref().map_or(PID_LIST_END.into(), |header| header.id);
        if header.is_none() || found != member.id {
            return Err(self.fault(CdrErrorKind::UnexpectedMember(found), self.at));
        }
        if length > 0 {
            self.part(length, self.at, false, |this| this.value(&member.member_type))?;
        }
        Ok(length > 0)
    }

    /// Reads the header of a parameter, or `None` at the end of the list, and its length; checks that these bytes
    /// exist.
    fn parameter(&mut self) -> Walked<(Option<MemberHeader>, usize)> {
        self.align(4);
        let start = self.at;
        let (id, length) = (self.u16()?, self.u16()?);
        let (found, length) = match id & PID_MASK {
            PID_LIST_END => (None, length.into()),
            PID_EXTENDED => {
                let id = self.u32()?;
                (Some((id & ID_MASK, id & EXTENDED_MUST_UNDERSTAND != 0)), self.u32()?)
            }
            own => (Some((own.into(), id & PID_MUST_UNDERSTAND != 0)), length.into()),
        };
        if length as usize > self.end - self.at {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), start));
        }
        let length = length as usize;
        let header = found.map(|(id, must_understand)| MemberHeader {
            id,
            must_understand,
            start,
            length,
            origin: self.at,
        });
        Ok((header, length))
    }

    /// Reads the header of a member in the second version.
    fn member_header(&mut self) -> Walked<MemberHeader> {
        let start = self.at;
        let header = self.u32()?;
        let size = match header >> 28 & 7 {
            code @ 0..=3 => 1_u64 << code,
            code => {
                let next = u64::from(self.u32()?);
                // From the fifth code on, the length is also the first part of the member.
                if code > 4 {
                    self.at -= 4;
                }
                match code {
                    4 => next,
                    5 => 4 + next,
                    6 => 4 + 4 * next,
                    _ => 4 + 8 * next,
                }
            }
        };
        if size > (self.end - self.at) as u64 {
            let length = u32::try_from(size).unwrap_or(u32::MAX);
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), start));
        }
        Ok(MemberHeader {
            id: header & ID_MASK,
            must_understand: header & MUST_UNDERSTAND != 0,
            start,
            length: size as usize,
            origin: self.origin,
        })
    }

    /// Reads the header of the next member of a mutable type, or `None` after the last one.
    pub(super) fn header(&mut self) -> Walked<Option<MemberHeader>> {
        if self.version != Version::Two {
            let (header, length) = self.parameter()?;
            if header.is_none() {
                self.at += length;
            }
            return Ok(header);
        }
        self.align(4);
        // At most three bytes before the end are padding.
        if self.at >= self.end { Ok(None) } else { self.member_header().map(Some) }
    }

    /// Reads the members of a mutable structure, which have headers.
    fn mutable(&mut self, structure: &'m Struct) -> Walked<()> {
        let mut seen = vec![false; structure.members.len()];
        self.out.push(b'{');
        while let Some(header) = self.header()? {
            self.known(structure, &mut seen, &header)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Reads a member of a mutable structure, or skips an unknown one.
    fn known(&mut self, structure: &'m Struct, seen: &mut [bool], header: &MemberHeader) -> Walked<()> {
        let MemberHeader { id, start, length, origin, must_understand } = *header;
        let Some(index) = structure.members.iter().position(|member| member.id == id) else {
            if must_understand {
                return Err(self.fault(CdrErrorKind::MustUnderstand(id), start));
            }
            self.at += length;
            return Ok(());
        };
        if std::mem::replace(&mut seen[index], true) {
            return Err(self.fault(CdrErrorKind::RepeatedMember(id), start));
        }
        let member = &structure.members[index];
        let before = self.out.len();
        self.key(&member.name);
        within(&member.name, self.part(length, origin, false, |this| this.value(&member.member_type)))?;
        if self.leaves_out(structure, member) {
            self.out.truncate(before);
        }
        Ok(())
    }
}
