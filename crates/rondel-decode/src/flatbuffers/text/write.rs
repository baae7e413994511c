//! Writes types as a binary schema (`reflection.fbs` of FlatBuffers).

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, VOffsetT, WIPOffset};

use super::Texts;
use super::layout::{Found, Meaning, Names, Object, Placed, Scalar};
use super::parser::{Body, File, Kind};
use crate::flatbuffers::schema::Number;
use crate::schema::SchemaError;

type Written = WIPOffset<TableFinishedWIPOffset>;

/// Returns the offset of a field's entry.
const fn slot(id: VOffsetT) -> VOffsetT {
    4 + 2 * id
}

// Types by their numbers in binary schemas; those of numbers are in `base`.
const NONE: i8 = 0;
const CASE: i8 = 1;
const TEXT: i8 = 13;
const VECTOR: i8 = 14;
const OBJECT: i8 = 15;
const UNION: i8 = 16;
const ARRAY: i8 = 17;

/// Writes all types, and the root type of messages.
pub(super) fn write(texts: &[Texts], file: &File) -> Result<Vec<u8>, SchemaError> {
    let mut names = Names::new(texts)?;
    let root = match &file.root {
        None => None,
        Some(named) => match names.meaning(named)? {
            Meaning::Table(at) => Some(at),
            _ => return Err(SchemaError::at(named.place, format!("`{}` is no table", named.name))),
        },
    };
    let mut writer = Writer { to: FlatBufferBuilder::new() };
    let mut objects = Vec::new();
    for at in 0..names.objects.len() {
        let object = names.object(at)?;
        objects.push(writer.object(names.objects[at], &object));
    }
    let mut enums = Vec::new();
    for at in 0..names.enums.len() {
        enums.push(writer.enumeration(&names, at)?);
    }
    let to = &mut writer.to;
    let root = root.map(|at| objects[at]);
    let (objects, enums) = (to.create_vector(&objects), to.create_vector(&enums));
    let identifier = file.identifier.and_then(|letters| String::from_utf8(letters.to_vec()).ok());
    let identifier = to.create_string(identifier.as_deref().unwrap_or(""));
    let extension = to.create_string(file.extension.as_deref().unwrap_or(""));
    let start = to.start_table();
    to.push_slot_always(slot(0), objects);
    to.push_slot_always(slot(1), enums);
    to.push_slot_always(slot(2), identifier);
    to.push_slot_always(slot(3), extension);
    if let Some(root) = root {
        to.push_slot_always(slot(4), root);
    }
    let schema = to.end_table(start);
    to.finish(schema, Some("BFBS"));
    Ok(to.finished_data().to_vec())
}

struct Writer {
    to: FlatBufferBuilder<'static>,
}

/// A field of a binary schema: the case of a union is a separate one.
struct Row<'n> {
    name: &'n str,
    base: i8,
    element: i8,
    index: i32,
    length: u16,
    id: u16,
    offset: u16,
    is_optional: bool,
    is_case: bool,
}

impl Writer {
    fn object(&mut self, found: Found<'_>, object: &Object<'_>) -> Written {
        let is_struct = matches!(found.declaration.body, Body::Structure(..));
        let mut fields: Vec<(Box<str>, Written)> = Vec::new();
        for placed in &object.fields {
            if let Scalar::Union(at) = placed.of {
                let name: Box<str> = format!("{}_type", placed.field.name).into();
                let written = self.case(&name, placed, at);
                fields.push((name, written));
            }
            let written = self.field(placed);
            fields.push((placed.field.name.clone(), written));
        }
        // Readers search fields by their names.
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        let fields: Vec<Written> = fields.into_iter().map(|(_, written)| written).collect();
        let to = &mut self.to;
        let (name, fields) = (to.create_string(&found.declaration.name), to.create_vector(&fields));
        let start = to.start_table();
        to.push_slot_always(slot(0), name);
        to.push_slot_always(slot(1), fields);
        to.push_slot(slot(2), is_struct, false);
        to.push_slot(slot(3), object.align as i32, 0);
        to.push_slot(slot(4), object.size as i32, 0);
        to.end_table(start)
    }

    /// Writes the field with the case of a union.
    fn case(&mut self, name: &str, placed: &Placed<'_>, union: usize) -> Written {
        let (base, element) = match placed.field.kind {
            Kind::Vector(_) => (VECTOR, CASE),
            _ => (CASE, NONE),
        };
        let row = Row {
            name,
            base,
            element,
            index: union as i32,
            length: 0,
            id: placed.id - 1,
            offset: placed.offset - 2,
            // A missing case is none; a vector of cases may be missing.
            is_optional: base == VECTOR && !placed.field.is_required,
            is_case: true,
        };
        self.row(&row, placed)
    }

    fn field(&mut self, placed: &Placed<'_>) -> Written {
        let (own, index) = match placed.of {
            Scalar::Number(number, at) => (base(number), at),
            Scalar::Text => (TEXT, None),
            Scalar::Table(at) | Scalar::Structure(at) => (OBJECT, Some(at)),
            Scalar::Union(at) => (UNION, Some(at)),
        };
        let (base, element, length) = match placed.field.kind {
            // Offsets of 64 bits are unsupported: marked as unknown, so that a specification that reads the field is
            // refused.
            _ if placed.field.is_far => (NONE, NONE, 0),
            Kind::Simple(_) => (own, NONE, 0),
            Kind::Vector(_) => (VECTOR, own, 0),
            Kind::Array(_, length) => (ARRAY, own, length),
        };
        let row = Row {
            name: &placed.field.name,
            base,
            element,
            index: index.map_or(-1, |at| at as i32),
            length,
            id: placed.id,
            offset: placed.offset,
            is_optional: placed.is_optional,
            is_case: false,
        };
        self.row(&row, placed)
    }

    fn row(&mut self, row: &Row<'_>, placed: &Placed<'_>) -> Written {
        let field = placed.field;
        let of = self.kind(row.base, row.element, row.index, row.length);
        let name = self.to.create_string(row.name);
        let to = &mut self.to;
        let start = to.start_table();
        to.push_slot_always(slot(0), name);
        to.push_slot_always(slot(1), of);
        to.push_slot(slot(2), row.id, 0);
        to.push_slot(slot(3), row.offset, 0);
        to.push_slot(slot(4), placed.integer, 0);
        to.push_slot(slot(5), placed.real, 0.0);
        to.push_slot(slot(6), field.is_deprecated, false);
        to.push_slot(slot(7), field.is_required && !row.is_case, false);
        to.push_slot(slot(8), field.is_key, false);
        to.push_slot(slot(11), row.is_optional, false);
        to.push_slot(slot(13), field.is_far, false);
        to.end_table(start)
    }

    fn kind(&mut self, base: i8, element: i8, index: i32, length: u16) -> Written {
        let to = &mut self.to;
        let start = to.start_table();
        to.push_slot(slot(0), base, NONE);
        to.push_slot(slot(1), element, NONE);
        to.push_slot(slot(2), index, -1);
        to.push_slot(slot(3), length, 0);
        to.end_table(start)
    }

    fn enumeration(&mut self, names: &Names<'_>, at: usize) -> Result<Written, SchemaError> {
        let found = names.enums[at];
        let mut values = Vec::new();
        let is_union = match &found.declaration.body {
            Body::Union(cases) => {
                values.push(self.value("NONE", 0, NONE, -1));
                let mut cases = names.cases(found, cases)?;
                cases.sort_by_key(|(_, number, _)| *number);
                for (name, number, of) in cases {
                    let (base, index) = match of {
                        Scalar::Table(at) | Scalar::Structure(at) => (OBJECT, at as i32),
                        _ => (TEXT, -1),
                    };
                    values.push(self.value(name, number.into(), base, index));
                }
                true
            }
            _ => {
                for (name, value) in names.values(at)? {
                    values.push(self.value(name, value, NONE, -1));
                }
                false
            }
        };
        let underlying = match is_union {
            true => self.kind(CASE, NONE, at as i32, 0),
            false => self.kind(base(names.number_of(at)), NONE, at as i32, 0),
        };
        let to = &mut self.to;
        let (name, values) = (to.create_string(&found.declaration.name), to.create_vector(&values));
        let start = to.start_table();
        to.push_slot_always(slot(0), name);
        to.push_slot_always(slot(1), values);
        to.push_slot(slot(2), is_union, false);
        to.push_slot_always(slot(3), underlying);
        Ok(to.end_table(start))
    }

    fn value(&mut self, name: &str, value: i64, base: i8, index: i32) -> Written {
        let of = self.kind(base, NONE, index, 0);
        let to = &mut self.to;
        let name = to.create_string(name);
        let start = to.start_table();
        to.push_slot_always(slot(0), name);
        to.push_slot(slot(1), value, 0);
        to.push_slot_always(slot(3), of);
        to.end_table(start)
    }
}

/// Returns the number of a numeric type.
fn base(number: Number) -> i8 {
    match number {
        Number::Bool => 2,
        Number::I8 => 3,
        Number::U8 => 4,
        Number::I16 => 5,
        Number::U16 => 6,
        Number::I32 => 7,
        Number::U32 => 8,
        Number::I64 => 9,
        Number::U64 => 10,
        Number::F32 => 11,
        Number::F64 => 12,
    }
}
