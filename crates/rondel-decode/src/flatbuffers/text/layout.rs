//! Resolves declarations to types: meanings of names, and layouts of fields.

use std::collections::BTreeMap;

use super::parser::{Body, Case, Declaration, Default, Field, Kind, Named, Simple, range};
use super::{LAST_ID, MAX_PARTS, Texts};
use crate::flatbuffers::schema::Number;
use crate::schema::{MAX_DEPTH, SchemaError};

/// Meanings of names. Objects and enumerations are numbered in the order of their names.
pub(super) struct Names<'d> {
    pub(super) objects: Vec<Found<'d>>,
    pub(super) enums: Vec<Found<'d>>,
    by_name: BTreeMap<&'d str, Meaning>,
    /// For each object, its size and alignment, if it is a structure whose layout is known.
    sizes: Vec<Option<(u64, u64)>>,
}

/// A declaration, and the name of its text.
#[derive(Clone, Copy)]
pub(super) struct Found<'d> {
    pub(super) declaration: &'d Declaration,
    text: Option<&'d str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Table(usize),
    Structure(usize),
    Enumeration(usize),
    Union(usize),
}

/// A type other than a vector and an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Number(Number, Option<usize>),
    Text,
    Table(usize),
    Structure(usize),
    Union(usize),
}

/// A field of a table or structure with its position.
pub(super) struct Placed<'d> {
    pub(super) field: &'d Field,
    pub(super) of: Scalar,
    pub(super) id: u16,
    pub(super) offset: u16,
    pub(super) integer: i64,
    pub(super) real: f64,
    pub(super) is_optional: bool,
}

/// Layout of an object: its fields, alignment and size. A table has no size.
pub(super) struct Object<'d> {
    pub(super) fields: Vec<Placed<'d>>,
    pub(super) align: u64,
    pub(super) size: u64,
}

impl<'d> Found<'d> {
    /// Returns an error with the name of its text.
    fn error(&self, error: SchemaError) -> SchemaError {
        match self.text {
            Some(text) => error.in_text(text),
            None => error,
        }
    }
}

impl<'d> Names<'d> {
    pub(super) fn new(texts: &'d [Texts]) -> Result<Names<'d>, SchemaError> {
        let all = || {
            let found = |texts: &'d Texts| {
                let text = texts.name.as_deref();
                texts.declarations.iter().map(move |declaration| Found { declaration, text })
            };
            texts.iter().flat_map(found)
        };
        let parts = |found: Found<'d>| match &found.declaration.body {
            Body::Table(fields) | Body::Structure(fields, _) => fields.len(),
            Body::Enumeration { values, .. } => values.len(),
            Body::Union(cases) => cases.len(),
        };
        if all().map(|found| 1 + parts(found)).sum::<usize>() > MAX_PARTS {
            return Err(SchemaError::new(format!(
                "the texts declare more than {MAX_PARTS} types and members"
            )));
        }
        let mut by_name: BTreeMap<&str, Found<'d>> = BTreeMap::new();
        for found in all() {
            let name = &*found.declaration.name;
            if let Some(first) = by_name.insert(name, found) {
                let place = found.declaration.place;
                let line = first.declaration.place.line;
                let at = first.text.map_or(format!("line {line}"), |text| format!("{text}, line {line}"));
                let message = format!("`{name}` is declared twice, first at {at}");
                return Err(found.error(SchemaError::at(place, message)));
            }
        }
        let (mut objects, mut enums) = (Vec::new(), Vec::new());
        let mut meanings = BTreeMap::new();
        for (name, found) in by_name {
            let meaning = match &found.declaration.body {
                Body::Table(_) => Meaning::Table(objects.len()),
                Body::Structure(..) => Meaning::Structure(objects.len()),
                Body::Enumeration { .. } => Meaning::Enumeration(enums.len()),
                Body::Union(_) => Meaning::Union(enums.len()),
            };
            match meaning {
                Meaning::Table(_) | Meaning::Structure(_) => objects.push(found),
                _ => enums.push(found),
            }
            meanings.insert(name, meaning);
        }
        let sizes = vec![None; objects.len()];
        let mut names = Names { objects, enums, by_name: meanings, sizes };
        for at in 0..names.objects.len() {
            names.structure_size(at, 0).map_err(|error| names.objects[at].error(error))?;
        }
        Ok(names)
    }

    /// Returns the meaning of a name, resolved from its namespace outwards.
    pub(super) fn meaning(&self, named: &Named) -> Result<Meaning, SchemaError> {
        let mut namespace = &*named.namespace;
        while !namespace.is_empty() {
            if let Some(found) = self.by_name.get(&*format!("{namespace}.{}", named.name)) {
                return Ok(*found);
            }
            namespace = namespace.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        let found = self.by_name.get(&*named.name).copied();
        found.ok_or_else(|| SchemaError::at(named.place, format!("type `{}` is not declared", named.name)))
    }

    fn scalar(&self, simple: &Simple) -> Result<Scalar, SchemaError> {
        Ok(match simple {
            Simple::Number(number) => Scalar::Number(*number, None),
            Simple::Text => Scalar::Text,
            Simple::Named(named) => match self.meaning(named)? {
                Meaning::Table(at) => Scalar::Table(at),
                Meaning::Structure(at) => Scalar::Structure(at),
                Meaning::Union(at) => Scalar::Union(at),
                Meaning::Enumeration(at) => Scalar::Number(self.number_of(at), Some(at)),
            },
        })
    }

    pub(super) fn number_of(&self, enumeration: usize) -> Number {
        match self.enums[enumeration].declaration.body {
            Body::Enumeration { number, .. } => number,
            _ => Number::U8,
        }
    }

    /// Returns the size and alignment of a member of a structure.
    fn size(&mut self, of: Scalar, depth: usize) -> Result<Option<(u64, u64)>, SchemaError> {
        Ok(match of {
            Scalar::Number(number, _) => Some((number.size() as u64, number.size() as u64)),
            Scalar::Structure(at) => self.structure_size(at, depth + 1)?,
            _ => None,
        })
    }

    /// Returns the size and alignment of an object, if it is a structure.
    fn structure_size(&mut self, at: usize, depth: usize) -> Result<Option<(u64, u64)>, SchemaError> {
        let declaration = self.objects[at].declaration;
        let Body::Structure(fields, force) = &declaration.body else { return Ok(None) };
        if self.sizes[at].is_some() {
            return Ok(self.sizes[at]);
        }
        let name = &declaration.name;
        if depth > MAX_DEPTH {
            let message =
                format!("structure `{name}` contains itself, or is nested more than {MAX_DEPTH} deep");
            return Err(SchemaError::at(declaration.place, message));
        }
        let (mut size, mut align) = (0_u64, 1);
        for field in fields {
            let ((width, own), count) = self.member(field, depth)?;
            size = size.next_multiple_of(own) + width * count;
            align = align.max(own);
        }
        if fields.is_empty() {
            return Err(SchemaError::at(declaration.place, format!("structure `{name}` has no field")));
        }
        let align = align.max(force.unwrap_or(1));
        let size = size.next_multiple_of(align);
        if size > u16::MAX.into() {
            let message = format!("structure `{name}` has {size} bytes: more than 65535");
            return Err(SchemaError::at(declaration.place, message));
        }
        self.sizes[at] = Some((size, align));
        Ok(self.sizes[at])
    }

    /// Returns the size and alignment of an element of a structure's field, and the number of elements.
    fn member(&mut self, field: &Field, depth: usize) -> Result<((u64, u64), u64), SchemaError> {
        let (of, count) = match &field.kind {
            Kind::Simple(of) => (self.scalar(of)?, 1),
            Kind::Array(of, length) => (self.scalar(of)?, u64::from(*length)),
            Kind::Vector(_) => return Err(self.not_in_structure(field)),
        };
        if field.default.is_some() || field.is_deprecated || field.id.is_some() {
            let message = "a field of a structure has no default and no id, and is not deprecated";
            return Err(SchemaError::at(field.place, message));
        }
        match self.size(of, depth)? {
            Some(size) => Ok((size, count)),
            None => Err(self.not_in_structure(field)),
        }
    }

    fn not_in_structure(&self, field: &Field) -> SchemaError {
        let message = "a structure has numbers, enumerations, structures and arrays `[type:N]` of these only";
        SchemaError::at(field.place, message)
    }

    /// Returns the layout of an object.
    pub(super) fn object(&mut self, at: usize) -> Result<Object<'d>, SchemaError> {
        let found = self.objects[at];
        let object = match &found.declaration.body {
            Body::Structure(fields, _) => self.structure(at, fields),
            Body::Table(fields) => self.table(fields),
            _ => Ok(Object { fields: Vec::new(), align: 1, size: 0 }),
        };
        let object = object.map_err(|error| found.error(error))?;
        let mut names: Vec<(&str, &Field)> =
            object.fields.iter().map(|placed| (&*placed.field.name, placed.field)).collect();
        names.sort_by_key(|(name, _)| *name);
        match names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => {
                let message = format!("field `{}` is declared twice", pair[1].0);
                Err(found.error(SchemaError::at(pair[1].1.place, message)))
            }
            None => Ok(object),
        }
    }

    fn structure(&mut self, at: usize, fields: &'d [Field]) -> Result<Object<'d>, SchemaError> {
        let (size, align) = self.structure_size(at, 0)?.unwrap_or((0, 1));
        let (mut end, mut placed) = (0_u64, Vec::new());
        for (id, field) in fields.iter().enumerate() {
            let ((width, own), count) = self.member(field, 0)?;
            let offset = end.next_multiple_of(own);
            end = offset + width * count;
            let (Kind::Simple(of) | Kind::Array(of, _) | Kind::Vector(of)) = &field.kind;
            let of = self.scalar(of)?;
            placed.push(Placed {
                field,
                of,
                // Both are below the size of the structure.
                id: id as u16,
                offset: offset as u16,
                integer: 0,
                real: 0.0,
                is_optional: false,
            });
        }
        Ok(Object { fields: placed, align, size })
    }

    fn table(&self, fields: &'d [Field]) -> Result<Object<'d>, SchemaError> {
        let has_ids = fields.iter().any(|field| field.id.is_some());
        let (mut next, mut placed, mut taken) = (0_u32, Vec::new(), Vec::new());
        for field in fields {
            let (Kind::Simple(of) | Kind::Vector(of) | Kind::Array(of, _)) = &field.kind;
            let of = self.scalar(of)?;
            if let Kind::Array(..) = field.kind {
                let message = "arrays `[type:N]` stand in structures only: write a vector, or a structure";
                return Err(SchemaError::at(field.place, message));
            }
            // The case of a union has the id before that of its value.
            let width = if matches!(of, Scalar::Union(_)) { 2 } else { 1 };
            let id = match field.id {
                Some(id) if id + 1 < width => {
                    let message = "the id before that of a union is the one of its case: 0 is too low";
                    return Err(SchemaError::at(field.place, message));
                }
                Some(id) => id,
                None if has_ids => {
                    let message = format!("field `{}` has no id, but others have", field.name);
                    return Err(SchemaError::at(field.place, message));
                }
                None => u16::try_from(next + u32::from(width) - 1).unwrap_or(u16::MAX),
            };
            if id > LAST_ID {
                let message = format!("a table has at most {} fields", LAST_ID + 1);
                return Err(SchemaError::at(field.place, message));
            }
            next = u32::from(id) + 1;
            taken.extend((0..width).map(|back| (id - back, field)));
            let (integer, real, is_optional) = self.default(field, of)?;
            placed.push(Placed { field, of, id, offset: 4 + 2 * id, integer, real, is_optional });
        }
        taken.sort_by_key(|(id, _)| *id);
        for (expected, (id, field)) in taken.iter().enumerate() {
            if usize::from(*id) != expected {
                let message =
                    format!("the ids of a table count from 0, each once: {expected} is missing or twice");
                return Err(SchemaError::at(field.place, message));
            }
        }
        Ok(Object { fields: placed, align: 4, size: 0 })
    }

    /// Returns the default of a field, and whether it is optional.
    fn default(&self, field: &Field, of: Scalar) -> Result<(i64, f64, bool), SchemaError> {
        let is_plain = matches!(field.kind, Kind::Simple(_));
        let (number, enumeration) = match of {
            Scalar::Number(number, enumeration) if is_plain => (number, enumeration),
            _ => {
                // A missing text or vector may be read as empty or as missing.
                return match &field.default {
                    None | Some((_, Default::Null)) => Ok((0, 0.0, !field.is_required)),
                    Some((_, Default::Empty | Default::Names(_))) => Ok((0, 0.0, false)),
                    Some((place, _)) => Err(SchemaError::at(*place, "only numbers have such a default")),
                };
            }
        };
        let Some((place, default)) = &field.default else { return Ok((0, 0.0, false)) };
        let value = match default {
            Default::Null => return Ok((0, 0.0, true)),
            Default::Float(value) if number.is_float() => return Ok((0, *value, false)),
            Default::Integer(value) if number.is_float() => return Ok((0, *value as f64, false)),
            Default::Integer(value) => *value,
            Default::Names(names) => match enumeration {
                Some(enumeration) => self.value(enumeration, names),
                None => names.trim().parse().ok(),
            }
            .ok_or_else(|| SchemaError::at(*place, format!("`{names}` is no value of this field")))?,
            Default::Float(_) | Default::Empty => {
                return Err(SchemaError::at(*place, "this default does not fit the type of the field"));
            }
        };
        if !range(number).contains(&value) {
            return Err(SchemaError::at(*place, format!("{value} is not in the range of this field")));
        }
        // The bits are those of an unsigned number beyond the signed range.
        Ok((value as i64, 0.0, false))
    }

    /// Returns the value of a constant of an enumeration, or of several flags separated by spaces.
    fn value(&self, enumeration: usize, names: &str) -> Option<i128> {
        let Body::Enumeration { values, is_flags, .. } = &self.enums[enumeration].declaration.body else {
            return None;
        };
        let one = |name: &str| {
            let name = name.rsplit('.').next()?;
            values.iter().find(|(found, _)| **found == *name).map(|(_, value)| *value)
        };
        let mut parts = names.split_whitespace();
        let first = one(parts.next()?)?;
        parts.try_fold(first, |all, name| is_flags.then(|| one(name)).flatten().map(|value| all | value))
    }

    /// Returns the cases of a union with their numbers.
    pub(super) fn cases(
        &self,
        union: Found<'d>,
        cases: &'d [Case],
    ) -> Result<Vec<(&'d str, u8, Scalar)>, SchemaError> {
        let (mut found, mut next) = (Vec::new(), 1);
        for case in cases {
            let refuse =
                |message: String| Err(union.error(SchemaError::at(union.declaration.place, message)));
            let of = self.scalar(&case.kind).map_err(|error| union.error(error))?;
            if let Scalar::Number(..) | Scalar::Union(_) = of {
                return refuse(format!("case `{}` is no table, structure or `string`", case.name));
            }
            let number = u8::try_from(case.number.unwrap_or(next)).ok().filter(|number| *number > 0);
            let Some(number) = number else {
                return refuse(format!("case `{}` has no number from 1 to 255", case.name));
            };
            let is_same = |(name, other, _): &(&str, u8, Scalar)| **name == *case.name || *other == number;
            if found.iter().any(is_same) || &*case.name == "NONE" {
                return refuse(format!("case `{}` or its number is there twice", case.name));
            }
            next = i128::from(number) + 1;
            found.push((&*case.name, number, of));
        }
        Ok(found)
    }

    /// Returns the values of an enumeration, in their order.
    pub(super) fn values(&self, at: usize) -> Result<Vec<(&'d str, i64)>, SchemaError> {
        let found = self.enums[at];
        let Body::Enumeration { values, .. } = &found.declaration.body else { return Ok(Vec::new()) };
        let mut names: Vec<&str> = values.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        let message = match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => format!("value `{}` is declared twice", pair[0]),
            None if names.is_empty() => "this enumeration has no value".to_owned(),
            None => {
                let mut values: Vec<&(Box<str>, i128)> = values.iter().collect();
                values.sort_by_key(|(_, value)| *value);
                // The bits are those of an unsigned number beyond the signed range.
                return Ok(values.into_iter().map(|(name, value)| (&**name, *value as i64)).collect());
            }
        };
        Err(found.error(SchemaError::at(found.declaration.place, message)))
    }
}
