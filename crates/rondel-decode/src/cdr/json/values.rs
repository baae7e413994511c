//! Values as JSON: numbers, texts, enumerations, and the elements of arrays and sequences.

use super::super::error::CdrErrorKind;
use super::super::plan::Version;
use super::{Walk, Walked, within};
use crate::json::write as text;
use crate::schema::{Definition, Primitive, Type};

impl<'m> Walk<'m, '_> {
    pub(super) fn value(&mut self, value_type: &'m Type) -> Walked<()> {
        if self.out.len() > self.full {
            if let Some(start) = self.probe {
                self.out.truncate(start);
            } else {
                // The caller knows the limit.
                return Err(self.fault(CdrErrorKind::TooLarge(0), self.at));
            }
        }
        match value_type {
            Type::Primitive(primitive) => self.number(*primitive),
            Type::String { bound, wide: false } => self.text(bound.unwrap_or(u32::MAX)),
            Type::String { bound, wide: true } => self.wide_text(bound.unwrap_or(u32::MAX)),
            Type::Array { element, dimensions } => {
                self.collection(element, |this| this.array(element, dimensions))
            }
            Type::Sequence { element, bound } => {
                self.collection(element, |this| this.sequence(element, bound.unwrap_or(u32::MAX)))
            }
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Struct(structure) => self.structure(structure),
                Definition::Union(union) => self.union(union),
                Definition::Enum(enumeration) => {
                    let start = self.at;
                    let value = self.integer(enumeration.holder())?;
                    let constants = enumeration.constants.iter();
                    match constants.into_iter().find(|(_, of)| i128::from(*of) == value) {
                        Some((name, _)) if self.form.names => text::quoted(name, self.out),
                        Some(_) => text::integer(value, self.out),
                        None => return Err(self.fault(CdrErrorKind::NotInEnumeration(value as i32), start)),
                    }
                    Ok(())
                }
                Definition::Bitmask(mask) => self.number(mask.holder()),
                // A schema contains none.
                Definition::Alias(of) => self.value(of),
            },
        }
    }

    fn number(&mut self, primitive: Primitive) -> Walked<()> {
        let size = primitive.size() as usize;
        match primitive {
            Primitive::Bool => match self.bits(1)? {
                0 => self.out.extend_from_slice(b"false"),
                1 => self.out.extend_from_slice(b"true"),
                byte => return Err(self.fault(CdrErrorKind::NotABoolean(byte as u8), self.at - 1)),
            },
            Primitive::Float32 => {
                let value = f32::from_bits(self.u32()?);
                text::float(value.into(), self.form, self.out);
            }
            Primitive::Float64 => {
                let value = f64::from_bits(self.bits(size)?);
                text::float(value, self.form, self.out);
            }
            Primitive::Char | Primitive::WChar if self.form.names => {
                match char::from_u32(self.bits(size)? as u32) {
                    Some(letter) => text::quoted(letter.encode_utf8(&mut [0; 4]), self.out),
                    None => return Err(self.fault(CdrErrorKind::NotText, self.at - size)),
                }
            }
            integer => {
                let value = self.integer(integer)?;
                text::integer(value, self.out);
            }
        }
        Ok(())
    }

    fn wide_text(&mut self, bound: u32) -> Walked<()> {
        let length = self.u32()?;
        self.seen.has_text |= length > 0;
        let (start, size) = (self.at, self.wide.size(length));
        if size > self.end - start {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(length), start - 4));
        }
        let bytes = self.take(size)?;
        if self.wide.count(length) > bound {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(length), start - 4));
        }
        let mut value = std::mem::take(&mut self.text);
        if !self.wide.read(self.is_big, bytes, &mut value) {
            return Err(self.fault(CdrErrorKind::NotText, start));
        }
        text::quoted(&value, self.out);
        self.text = value;
        Ok(())
    }

    fn text(&mut self, bound: u32) -> Walked<()> {
        let length = self.length()?;
        let start = self.at;
        let bytes = self.take(length)?;
        if length.saturating_sub(1) > bound as usize {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(length as u32), start - 4));
        }
        let bytes = match bytes {
            _ if self.version == Version::Packed => bytes,
            [bytes @ .., 0] => bytes,
            // Not in the standard, but some writers write an empty string so.
            [] => bytes,
            _ => return Err(self.fault(CdrErrorKind::Unterminated, start)),
        };
        match std::str::from_utf8(bytes) {
            Ok(value) => text::quoted(value, self.out),
            Err(error) => return Err(self.fault(CdrErrorKind::NotText, start + error.valid_up_to())),
        }
        Ok(())
    }

    /// Reads elements, which follow their length in the second version unless they are primitive.
    fn collection(&mut self, element: &Type, read: impl FnOnce(&mut Self) -> Walked<()>) -> Walked<()> {
        if self.version == Version::Two && !matches!(element, Type::Primitive(_)) {
            let length = self.length()?;
            return self.part(length, self.origin, false, read);
        }
        read(self)
    }

    fn array(&mut self, element: &'m Type, dimensions: &[u32]) -> Walked<()> {
        let (size, inner) = dimensions.split_first().map_or((1, dimensions), |(size, inner)| (*size, inner));
        // If the array exists at all, it has all elements.
        if self.at >= self.end {
            self.take(1)?;
        }
        self.complete(|this| {
            this.elements(size, |this| match inner {
                [] => this.value(element),
                inner => this.array(element, inner),
            })
        })
    }

    fn sequence(&mut self, element: &'m Type, bound: u32) -> Walked<()> {
        let count = self.u32()?;
        let start = self.at - 4;
        if count > bound {
            return Err(self.fault(CdrErrorKind::LengthAboveBound(count), start));
        }
        // Every element has at least one byte.
        if count as usize > self.end - self.at {
            return Err(self.fault(CdrErrorKind::LengthBeyondEnd(count), start));
        }
        self.complete(|this| this.elements(count, |this| this.value(element)))
    }

    fn elements(&mut self, count: u32, mut read: impl FnMut(&mut Self) -> Walked<()>) -> Walked<()> {
        self.out.push(b'[');
        for index in 0..count {
            if index > 0 {
                self.out.push(b',');
            }
            within("[]", read(self))?;
        }
        self.out.push(b']');
        Ok(())
    }
}
