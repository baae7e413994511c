//! Type objects of DDS-XTypes: definitions of types sent by participants of DDS.
//!
//! They come as a type mapping: pairs of an identifier, which is a hash, and its object, first of the minimal kind,
//! which has no names, then of the complete kind. All of it is in the second version of CDR, little-endian, without the
//! four bytes of the encoding. Types refer to each other by their hashes.

use std::collections::BTreeMap;

use super::library::filed_name;
use super::{
    Bitmask, Case, Definition, Enum, Extensibility, Library, MAX_DEPTH, MAX_MEMBERS, MAX_TYPES, Member,
    Primitive, SchemaError, Struct, Type, Union,
};

type Hash = [u8; 14];

/// Kinds of types and of identifiers, by their numbers in the standard.
mod kind {
    pub(super) const NONE: u8 = 0x00;
    pub(super) const ALIAS: u8 = 0x30;
    pub(super) const ENUM: u8 = 0x40;
    pub(super) const BITMASK: u8 = 0x41;
    pub(super) const STRUCTURE: u8 = 0x51;
    pub(super) const UNION: u8 = 0x52;
    pub(super) const SEQUENCE: u8 = 0x60;
    pub(super) const ARRAY: u8 = 0x61;
    pub(super) const COMPLETE: u8 = 0xf2;
}

/// Flags of types.
const APPENDABLE: u16 = 1 << 1;
const MUTABLE: u16 = 1 << 2;
/// Flags of members.
const OPTIONAL: u16 = 1 << 3;
const KEY: u16 = 1 << 5;
const DEFAULT: u16 = 1 << 6;

/// Adds the complete types of a type mapping.
pub(super) fn parse(library: &mut Library, mapping: &[u8]) -> Result<(), SchemaError> {
    let mut reader = Reader { bytes: mapping, at: 0 };
    // The minimal ones have no names.
    reader.skip_delimited()?;
    reader.delimited()?;
    let count = reader.count(MAX_TYPES)?;
    let mut order = Vec::new();
    let mut names = BTreeMap::new();
    let mut objects = BTreeMap::new();
    for _ in 0..count {
        if reader.u8()? != kind::COMPLETE {
            return reader.refuse("the identifier of a complete type is expected");
        }
        let hash = reader.hash()?;
        let end = reader.delimited()?;
        let mut object = Reader { bytes: &mapping[..end], at: reader.at };
        reader.at = end;
        if object.u8()? != kind::COMPLETE {
            return object.refuse("a complete type is expected");
        }
        names.insert(hash, object.clone().type_name(&hash)?);
        objects.insert(hash, object);
        order.push(hash);
    }
    let mut parser = Parser { library, names, objects };
    for hash in order {
        let (Some(name), Some(object)) = (parser.names.get(&hash), parser.objects.get(&hash)) else {
            continue;
        };
        let (name, mut object) = (name.clone(), object.clone());
        let definition = parser.definition(&mut object)?;
        if let Err(reason) = parser.library.define(&name, definition) {
            return object.refuse(&format!("`{name}`: {reason}"));
        }
    }
    Ok(())
}

struct Parser<'l, 'm> {
    library: &'l mut Library,
    names: BTreeMap<Hash, String>,
    /// Reader of each type.
    objects: BTreeMap<Hash, Reader<'m>>,
}

impl Parser<'_, '_> {
    fn definition(&mut self, from: &mut Reader<'_>) -> Result<Definition, SchemaError> {
        let kind = from.u8()?;
        if kind == kind::BITMASK || kind == kind::ARRAY {
            from.delimited()?;
        }
        let flags = from.u16()?;
        let end = from.delimited()?;
        Ok(match kind {
            kind::ALIAS => {
                from.at = end;
                from.delimited()?;
                from.u16()?;
                Definition::Alias(self.identifier(from, 0)?)
            }
            kind::STRUCTURE => {
                let mut members = self.base(from, 0)?;
                from.at = end;
                self.members(from, &mut members)?;
                let extensibility = Some(extensibility(flags));
                Definition::Struct(Struct { extensibility, members, constants: Vec::new() })
            }
            kind::UNION => {
                from.at = end;
                let end = from.delimited()?;
                from.u16()?;
                let discriminator = self.identifier(from, 0)?;
                from.at = end;
                let cases = self.cases(from)?;
                Definition::Union(Union { extensibility: Some(extensibility(flags)), discriminator, cases })
            }
            kind::ENUM => {
                let bits = from.bits(32)?;
                from.at = end;
                let constants = from.each(|literal| {
                    let end = literal.delimited()?;
                    let value = literal.u32()? as i32;
                    literal.at = end;
                    Ok((literal.string()?.into(), value))
                })?;
                Definition::Enum(Enum { bits, constants })
            }
            kind::BITMASK => {
                let bits = from.bits(64)?;
                from.at = end;
                let flags = from.each(|flag| {
                    let position = flag.u16()?;
                    flag.u16()?;
                    match u8::try_from(position) {
                        Ok(position) if position < bits => Ok((flag.string()?.into(), position)),
                        _ => flag.refuse("a flag lies beyond the bits of its type"),
                    }
                })?;
                Definition::Bitmask(Bitmask { bits, flags })
            }
            kind::SEQUENCE => {
                let bound = Some(from.u32()?).filter(|bound| *bound > 0);
                from.at = end;
                let element = Box::new(self.element(from)?);
                Definition::Alias(Type::Sequence { element, bound })
            }
            kind::ARRAY => {
                let dimensions = from.dimensions(Reader::u32)?;
                from.at = end;
                let element = Box::new(self.element(from)?);
                Definition::Alias(Type::Array { element, dimensions })
            }
            other => return from.refuse(&format!("types of kind {other:#04x} are not read")),
        })
    }

    /// Returns the members of the base type of a structure.
    fn base(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<Vec<Member>, SchemaError> {
        let at = from.at;
        if from.u8()? == kind::NONE {
            return Ok(Vec::new());
        }
        from.at = at;
        if from.u8()? != kind::COMPLETE || depth >= MAX_DEPTH {
            return from.refuse("a structure extends what is none, or itself");
        }
        let hash = from.hash()?;
        let Some(mut object) = self.objects.get(&hash).cloned() else {
            return from.refuse("the type is missing that a structure extends");
        };
        if object.u8()? != kind::STRUCTURE {
            return object.refuse("a structure extends what is none");
        }
        object.u16()?;
        let end = object.delimited()?;
        let mut members = self.base(&mut object, depth + 1)?;
        object.at = end;
        self.members(&mut object, &mut members)?;
        Ok(members)
    }

    fn members(&mut self, from: &mut Reader<'_>, members: &mut Vec<Member>) -> Result<(), SchemaError> {
        let own = from.each(|member| {
            let id = member.u32()?;
            let flags = member.u16()?;
            let member_type = self.identifier(member, 0)?;
            let name = member.string()?.into();
            Ok(Member { name, member_type, id, key: flags & KEY != 0, optional: flags & OPTIONAL != 0 })
        })?;
        members.extend(own);
        if members.len() > MAX_MEMBERS {
            return from.refuse("there are too many members");
        }
        Ok(())
    }

    fn cases(&mut self, from: &mut Reader<'_>) -> Result<Vec<Case>, SchemaError> {
        from.each(|case| {
            let id = case.u32()?;
            let flags = case.u16()?;
            let member_type = self.identifier(case, 0)?;
            let count = case.count(MAX_MEMBERS)?;
            let labels = (0..count).map(|_| Ok(i64::from(case.u32()? as i32))).collect::<Result<_, _>>()?;
            let name = case.string()?.into();
            Ok(Case { name, member_type, id, labels, is_default: flags & DEFAULT != 0 })
        })
    }

    /// Returns the type of the elements of a type with a name.
    fn element(&mut self, from: &mut Reader<'_>) -> Result<Type, SchemaError> {
        from.delimited()?;
        from.u16()?;
        self.identifier(from, 0)
    }

    /// Returns the type of an identifier.
    fn identifier(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<Type, SchemaError> {
        if depth > MAX_DEPTH {
            return from.refuse("types are nested too deeply");
        }
        let kind = from.u8()?;
        let primitive = match kind {
            0x01 => Primitive::Bool,
            0x02 => Primitive::Octet,
            0x03 => Primitive::Int16,
            0x04 => Primitive::Int32,
            0x05 => Primitive::Int64,
            0x06 => Primitive::Uint16,
            0x07 => Primitive::Uint32,
            0x08 => Primitive::Uint64,
            0x09 => Primitive::Float32,
            0x0a => Primitive::Float64,
            0x0c => Primitive::Int8,
            0x0d => Primitive::Uint8,
            0x10 => Primitive::Char,
            0x11 => Primitive::WChar,
            // Strings, with a short or a long bound.
            0x70..=0x73 => {
                let bound = if kind & 1 == 0 { from.u8()?.into() } else { from.u32()? };
                return Ok(Type::String {
                    bound: Some(bound).filter(|bound| *bound > 0),
                    wide: kind >= 0x72,
                });
            }
            // Sequences and arrays without a name, with short or long bounds.
            0x80 | 0x81 | 0x90 | 0x91 => {
                from.u8()?;
                from.u16()?;
                return match kind {
                    0x80 | 0x81 => {
                        let bound = if kind == 0x80 { from.u8()?.into() } else { from.u32()? };
                        let element = Box::new(self.identifier(from, depth + 1)?);
                        Ok(Type::Sequence { element, bound: Some(bound).filter(|bound| *bound > 0) })
                    }
                    _ => {
                        let short = |reader: &mut Reader<'_>| reader.u8().map(u32::from);
                        let dimensions = if kind == 0x90 {
                            from.dimensions(short)?
                        } else {
                            from.dimensions(Reader::u32)?
                        };
                        let element = Box::new(self.identifier(from, depth + 1)?);
                        Ok(Type::Array { element, dimensions })
                    }
                };
            }
            kind::COMPLETE => {
                let hash = from.hash()?;
                return match self.names.get(&hash) {
                    Some(name) => Ok(Type::Named(self.library.mention(name))),
                    None => from.refuse("a type is missing"),
                };
            }
            0xb0 => return from.refuse("recursive types are not read"),
            other => return from.refuse(&format!("types of kind {other:#04x} are not read")),
        };
        Ok(Type::Primitive(primitive))
    }
}

fn extensibility(flags: u16) -> Extensibility {
    match flags {
        _ if flags & MUTABLE != 0 => Extensibility::Mutable,
        _ if flags & APPENDABLE != 0 => Extensibility::Appendable,
        _ => Extensibility::Final,
    }
}

/// Reader of values in the second version of CDR, with alignment to at most four bytes.
#[derive(Clone)]
struct Reader<'m> {
    bytes: &'m [u8],
    at: usize,
}

impl Reader<'_> {
    fn refuse<T>(&self, reason: &str) -> Result<T, SchemaError> {
        Err(SchemaError::new(format!("type object, byte {}: {reason}", self.at)))
    }

    fn take<const N: usize>(&mut self, align: usize) -> Result<[u8; N], SchemaError> {
        let start = self.at.next_multiple_of(align);
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(chunk) => {
                self.at = start + N;
                Ok(*chunk)
            }
            None => self.refuse("it ends too early"),
        }
    }

    fn u8(&mut self) -> Result<u8, SchemaError> {
        Ok(u8::from_le_bytes(self.take(1)?))
    }

    fn u16(&mut self) -> Result<u16, SchemaError> {
        Ok(u16::from_le_bytes(self.take(2)?))
    }

    fn u32(&mut self) -> Result<u32, SchemaError> {
        Ok(u32::from_le_bytes(self.take(4)?))
    }

    fn hash(&mut self) -> Result<Hash, SchemaError> {
        self.take(1)
    }

    /// Reads the length of a part, and returns the position of its end.
    fn delimited(&mut self) -> Result<usize, SchemaError> {
        let length = self.u32()? as usize;
        match self.at.checked_add(length).filter(|end| *end <= self.bytes.len()) {
            Some(end) => Ok(end),
            None => self.refuse("a length lies beyond its end"),
        }
    }

    fn skip_delimited(&mut self) -> Result<(), SchemaError> {
        self.at = self.delimited()?;
        Ok(())
    }

    /// Reads a number of elements, each of at least one byte.
    fn count(&mut self, most: usize) -> Result<usize, SchemaError> {
        let count = self.u32()? as usize;
        if count > most || count > self.bytes.len() - self.at {
            return self.refuse(&format!("{count} elements are too many"));
        }
        Ok(count)
    }

    /// Reads a sequence whose elements follow their lengths.
    fn each<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<Vec<T>, SchemaError> {
        self.delimited()?;
        let count = self.count(MAX_MEMBERS)?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let end = self.delimited()?;
            all.push(read(self)?);
            if self.at > end {
                return self.refuse("an element is longer than it says");
            }
            self.at = end;
        }
        Ok(all)
    }

    fn dimensions(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<u32, SchemaError>,
    ) -> Result<Box<[u32]>, SchemaError> {
        let count = self.count(MAX_DEPTH)?;
        let all: Box<[u32]> = (0..count).map(|_| read(self)).collect::<Result<_, _>>()?;
        if all.is_empty() || all.contains(&0) {
            return self.refuse("an array has no elements");
        }
        Ok(all)
    }

    fn bits(&mut self, most: u16) -> Result<u8, SchemaError> {
        match self.u16()? {
            bits if (1..=most).contains(&bits) => Ok(bits as u8),
            bits => self.refuse(&format!("{bits} bits are not 1 to {most}")),
        }
    }

    fn string(&mut self) -> Result<String, SchemaError> {
        let count = self.count(256)?;
        let bytes = &self.bytes[self.at..self.at + count];
        self.at += count;
        match std::str::from_utf8(bytes.strip_suffix(&[0]).unwrap_or(bytes)) {
            Ok(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => self.refuse("a name is empty or not text"),
        }
    }

    /// Skips optional annotations, then reads the name of a type.
    fn detail(&mut self) -> Result<String, SchemaError> {
        for _ in 0..2 {
            if self.u8()? != 0 {
                self.skip_delimited()?;
            }
        }
        self.string()
    }

    /// Returns the name of the type of an object, after its kind.
    fn type_name(mut self, hash: &Hash) -> Result<String, SchemaError> {
        let kind = self.u8()?;
        if kind == kind::BITMASK || kind == kind::ARRAY {
            self.delimited()?;
        }
        self.u16()?;
        self.delimited()?;
        let has_name = match kind {
            kind::STRUCTURE => {
                // The base type.
                match self.u8()? {
                    kind::NONE => {}
                    kind::COMPLETE => _ = self.hash()?,
                    _ => return self.refuse("a structure extends what is none"),
                }
                true
            }
            kind::ENUM | kind::BITMASK => {
                self.u16()?;
                true
            }
            kind::SEQUENCE => {
                self.u32()?;
                self.u8()? != 0
            }
            kind::ARRAY => {
                self.dimensions(Reader::u32)?;
                true
            }
            _ => true,
        };
        // Types that others only use may have no name.
        let named = if has_name { self.detail().ok() } else { None };
        Ok(match named {
            Some(name) => filed_name(&name),
            None => format!("type_{}", hash.map(|byte| format!("{byte:02x}")).concat()),
        })
    }
}

#[cfg(test)]
#[path = "xtypes_tests.rs"]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
