//! Unions as JSON objects: the discriminator and the selected member.

use super::super::error::CdrErrorKind;
use super::super::plan::Version;
use super::super::walk::{DISCRIMINATOR_ID, PADDING};
use super::members::MemberHeader;
use super::{Walk, Walked, within};
use crate::schema::{Case, DISCRIMINATOR, Definition, Extensibility, Type, Union};

impl<'m> Walk<'m, '_> {
    pub(super) fn union(&mut self, union: &'m Union) -> Walked<()> {
        match union.extensibility.unwrap_or(self.unstated) {
            Extensibility::Mutable if self.version == Version::Two => {
                let length = self.length()?;
                self.part(length, self.origin, false, |this| this.mutable_union(union))
            }
            Extensibility::Mutable => self.complete(|this| this.mutable_union(union)),
            Extensibility::Appendable if self.version == Version::Two => {
                let length = self.length()?;
                self.part(length, self.origin, false, |this| this.cases(union))
            }
            _ => self.cases(union),
        }
    }

    fn cases(&mut self, union: &'m Union) -> Walked<()> {
        self.out.push(b'{');
        if let Some(case) = self.case(union)? {
            self.key(&case.name);
            within(&case.name, self.complete(|this| this.value(&case.member_type)))?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Writes the discriminator; returns the selected case.
    fn case(&mut self, union: &'m Union) -> Walked<Option<&'m Case>> {
        self.key(DISCRIMINATOR);
        let start = self.at;
        within(DISCRIMINATOR, self.value(&union.discriminator))?;
        let past = std::mem::replace(&mut self.at, start);
        let label = self.label(&union.discriminator)?;
        self.at = past;
        let case = union.cases.iter().find(|case| case.labels.iter().any(|of| i128::from(*of) == label));
        Ok(case.or_else(|| union.cases.iter().find(|case| case.is_default)))
    }

    /// Reads a mutable union: the discriminator, then the selected case, both with headers.
    fn mutable_union(&mut self, union: &'m Union) -> Walked<()> {
        self.out.push(b'{');
        let mut case = None;
        match self.header()? {
            Some(MemberHeader { id: DISCRIMINATOR_ID, start, length, origin, .. }) => {
                let before = self.at;
                self.part(length, origin, false, |this| {
                    case = this.case(union)?;
                    if this.end - this.at > PADDING {
                        let kind = CdrErrorKind::LengthAboveBound((this.end - before) as u32);
                        return Err(this.fault(kind, start));
                    }
                    Ok(())
                })?;
            }
            Some(header) => {
                return Err(self.fault(CdrErrorKind::UnexpectedMember(header.id), header.start));
            }
            None => return Err(self.fault(CdrErrorKind::MissingMember(DISCRIMINATOR_ID), self.at)),
        }
        let mut is_read = false;
        while let Some(header) = self.header()? {
            let MemberHeader { id, start, length, origin, .. } = header;
            match case {
                Some(case) if case.id == id => {
                    if std::mem::replace(&mut is_read, true) {
                        return Err(self.fault(CdrErrorKind::RepeatedMember(id), start));
                    }
                    self.key(&case.name);
                    let read = |this: &mut Self| this.value(&case.member_type);
                    within(&case.name, self.part(length, origin, false, read))?;
                }
                _ if id == DISCRIMINATOR_ID || union.cases.iter().any(|case| case.id == id) => {
                    return Err(self.fault(CdrErrorKind::UnexpectedMember(id), start));
                }
                _ if header.must_understand => {
                    return Err(self.fault(CdrErrorKind::MustUnderstand(id), start));
                }
                // A case that only a newer writer knows.
                _ => self.at += length,
            }
        }
        if let Some(case) = case.filter(|_| !is_read) {
            return Err(self.fault(CdrErrorKind::MissingMember(case.id), self.at.min(self.end)));
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Reads the value of a discriminator.
    fn label(&mut self, discriminator: &Type) -> Walked<i128> {
        match discriminator {
            Type::Primitive(primitive) => self.integer(*primitive),
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Enum(enumeration) => self.integer(enumeration.holder()),
                _ => Ok(0),
            },
            _ => Ok(0),
        }
    }
}
