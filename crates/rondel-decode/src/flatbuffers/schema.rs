//! Message types from a binary schema (`.bfbs`), which is itself a FlatBuffers message.

use std::cell::Cell;
use std::sync::Arc;

use super::buffer::{Buffer, Table};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::schema::SchemaError;

/// The message types of a binary schema.
#[derive(Clone, Debug)]
pub struct BinarySchema {
    types: Arc<Types>,
}

/// Type of the messages of a topic, with all types that it consists of.
#[derive(Clone, Debug)]
pub struct FlatbuffersType {
    pub(super) types: Arc<Types>,
    pub(super) root: usize,
}

#[derive(Debug, Default)]
pub(super) struct Types {
    /// The binary schema itself.
    source: Vec<u8>,
    pub(super) objects: Vec<Object>,
    pub(super) enums: Vec<Enum>,
    /// The four letters that identify messages, and their type.
    pub(super) identifier: Option<[u8; 4]>,
    pub(super) root: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) name: Box<str>,
    pub(super) is_struct: bool,
    /// Size of a structure.
    pub(super) size: usize,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    /// Offset of the entry in a table, or of the field in a structure.
    pub(super) offset: u16,
    pub(super) default_int: i64,
    pub(super) default_float: f64,
    pub(super) is_optional: bool,
}

/// Type of a field or element. Objects and enumerations are indices in their lists.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A number, and its enumeration if it has one.
    Number(Number, Option<usize>),
    Text,
    Object(usize),
    Vector(Box<Kind>),
    /// A fixed number of elements.
    Array(Box<Kind>, u32),
    Union(usize),
    /// Unknown to this version.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

#[derive(Debug, Default)]
pub(super) struct Enum {
    pub(super) name: Box<str>,
    /// Names by value in ascending order, one for each value.
    pub(super) labels: Vec<(i64, Box<str>)>,
    /// All names, including further ones of a value.
    pub(super) values: Vec<(Box<str>, i64)>,
    /// For a union, its cases by number.
    pub(super) cases: Vec<(Box<str>, u8, Kind)>,
}

impl Number {
    pub(super) fn size(self) -> usize {
        match self {
            Number::Bool | Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 => 8,
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Number::F32 | Number::F64)
    }

    pub(super) fn is_integer(self) -> bool {
        !self.is_float() && self != Number::Bool
    }
}

/// Returns the offset of the entry of the field with this id.
const fn entry(id: u16) -> u16 {
    4 + 2 * id
}

impl BinarySchema {
    /// Reads a binary schema, as `flatc --binary --schema` writes it.
    ///
    /// # Errors
    /// The bytes are no binary schema.
    pub fn from_bytes(bytes: &[u8]) -> Result<BinarySchema, SchemaError> {
        if bytes.get(4..8) != Some(b"BFBS") {
            return Err(SchemaError::new("not a binary schema of FlatBuffers (`flatc --binary --schema`)"));
        }
        let left = Cell::new(bytes.len().saturating_mul(16));
        let mut types = Reader { buffer: Buffer(bytes), left }.types().map_err(|fault| {
            let error = fault.into_error();
            let place = format!("byte {}: {}", error.offset, error.kind);
            SchemaError::new(format!("not a binary schema of FlatBuffers: {place}"))
        })?;
        types.check().map_err(SchemaError::new)?;
        types.source = bytes.to_owned();
        Ok(BinarySchema { types: Arc::new(types) })
    }

    /// Returns everything that affects messages, for comparisons.
    #[cfg(test)]
    pub(super) fn content(&self) -> String {
        let Types { source: _, objects, enums, identifier, root } = &*self.types;
        let mut text = format!("{enums:#?}\n{identifier:?} {root:?}\n");
        for object in objects {
            text += &format!("{} {} {}\n", object.name, object.is_struct, object.size);
            for field in &object.fields {
                let Field { name, kind, offset, default_int, default_float, is_optional } = field;
                // A member of a structure is always present.
                let is_optional = *is_optional && !object.is_struct;
                text += &format!("  {name} {kind:?} {offset} {default_int} {default_float} {is_optional}\n");
            }
        }
        text
    }

    /// Reads a schema as text (`.fbs`), at most 16 MiB with its includes. `include` returns the text of a file by its
    /// name relative to the folder of this one.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn from_text(
        text: &str,
        include: &dyn Fn(&str) -> Option<String>,
    ) -> Result<BinarySchema, SchemaError> {
        BinarySchema::from_bytes(&super::text::compile(text, include)?)
    }

    /// Returns the full names of all tables, in order.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        self.types.objects.iter().filter(|object| !object.is_struct).map(|object| &*object.name)
    }

    /// Returns the type of messages that the schema declares as its root.
    pub fn root(&self) -> Option<FlatbuffersType> {
        let root = self.types.root?;
        Some(FlatbuffersType { types: Arc::clone(&self.types), root })
    }

    /// Returns the table with this full name, such as `vehicle.State`.
    ///
    /// # Errors
    /// There is no such table.
    pub fn table(&self, name: &str) -> Result<FlatbuffersType, SchemaError> {
        let is = |object: &Object| !object.is_struct && *object.name == *name;
        match self.types.objects.iter().position(is) {
            Some(root) => Ok(FlatbuffersType { types: Arc::clone(&self.types), root }),
            None => {
                let known: Vec<&str> = self.table_names().take(12).collect();
                Err(SchemaError::new(format!("no table `{name}`; there are {}", known.join(", "))))
            }
        }
    }
}

impl FlatbuffersType {
    /// Returns the full name.
    pub fn name(&self) -> &str {
        &self.types.objects[self.root].name
    }

    /// Returns its binary schema.
    pub fn source(&self) -> &[u8] {
        &self.types.source
    }

    /// Returns the four letters that identify its messages: only the root of a schema has any.
    pub(super) fn identifier(&self) -> Option<[u8; 4]> {
        self.types.identifier.filter(|_| self.types.root == Some(self.root))
    }
}

impl Types {
    /// Checks that all indices of objects and enumerations, and all sizes, are valid.
    fn check(&self) -> Result<(), String> {
        if let Some(empty) = self.objects.iter().find(|object| object.is_struct && object.size == 0) {
            return Err(format!("structure `{}` has no size", empty.name));
        }
        let fields = self.objects.iter().flat_map(|object| &object.fields).map(|field| &field.kind);
        let cases = self.enums.iter().flat_map(|found| &found.cases).map(|(_, _, kind)| kind);
        for kind in fields.chain(cases) {
            let mut at = kind;
            while let Kind::Vector(element) | Kind::Array(element, _) = at {
                at = element;
            }
            let is_there = match at {
                Kind::Number(_, Some(found)) | Kind::Union(found) => *found < self.enums.len(),
                Kind::Object(found) => *found < self.objects.len(),
                _ => true,
            };
            if !is_there {
                return Err("not a binary schema of FlatBuffers: a type is missing in it".to_owned());
            }
        }
        self.no_cycles()
    }

    /// Checks that no structure contains itself.
    fn no_cycles(&self) -> Result<(), String> {
        // Each round removes the structures that consist of removed ones: a few rounds suffice for real types.
        let mut is_plain: Vec<bool> = self.objects.iter().map(|object| !object.is_struct).collect();
        for _ in 0..64 {
            let mut is_done = true;
            for (at, object) in self.objects.iter().enumerate() {
                let plain = |field: &Field| {
                    let mut kind = &field.kind;
                    while let Kind::Array(element, _) = kind {
                        kind = element;
                    }
                    !matches!(kind, Kind::Object(inner) if !is_plain[*inner])
                };
                if !is_plain[at] && object.fields.iter().all(plain) {
                    is_plain[at] = true;
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        match is_plain.iter().position(|is_plain| !is_plain) {
            Some(at) => Err(format!("structure `{}` contains itself", self.objects[at].name)),
            None => Ok(()),
        }
    }
}

/// Reads the tables of a binary schema, by the ids of their fields.
struct Reader<'m> {
    buffer: Buffer<'m>,
    /// Remaining number of reads: a schema could lead to the same tables again and again.
    left: Cell<usize>,
}

impl<'m> Reader<'m> {
    fn table(&self, table: Table, id: u16) -> Parsed<Option<Table>> {
        let Some(at) = self.buffer.field(table, entry(id))? else { return Ok(None) };
        self.buffer.table(self.buffer.follow(at)?).map(Some)
    }

    fn tables(&self, table: Table, id: u16) -> Parsed<Vec<Table>> {
        let Some(at) = self.buffer.field(table, entry(id))? else { return Ok(Vec::new()) };
        let (count, start) = self.buffer.vector(self.buffer.follow(at)?, 4)?;
        self.spend(count, at)?;
        (0..count).map(|index| self.buffer.table(self.buffer.follow(start + 4 * index)?)).collect()
    }

    fn text(&self, table: Table, id: u16) -> Parsed<Box<str>> {
        let Some(at) = self.buffer.field(table, entry(id))? else { return Ok("".into()) };
        let text = self.buffer.text(self.buffer.follow(at)?)?;
        self.spend(text.len(), at)?;
        Ok(String::from_utf8_lossy(text).into())
    }

    fn spend(&self, count: usize, at: usize) -> Parsed<()> {
        match self.left.get().checked_sub(count) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Fault::new(at, MessageErrorKind::LengthBeyondEnd(count as u64))),
        }
    }

    fn number<const N: usize>(&self, table: Table, id: u16) -> Parsed<Option<[u8; N]>> {
        let Some(at) = self.buffer.field(table, entry(id))? else { return Ok(None) };
        self.buffer.array(at).map(Some)
    }

    fn flag(&self, table: Table, id: u16) -> Parsed<bool> {
        Ok(self.number::<1>(table, id)?.is_some_and(|[byte]| byte != 0))
    }

    fn types(&self) -> Parsed<Types> {
        let schema = self.buffer.table(self.buffer.follow(0)?)?;
        let objects = self.tables(schema, 0)?;
        let enums = self.tables(schema, 1)?;
        let identifier = self.text(schema, 2)?;
        let root = match self.table(schema, 4)? {
            Some(root) => objects.iter().position(|object| object.at == root.at),
            None => None,
        };
        Ok(Types {
            source: Vec::new(),
            objects: objects.iter().map(|object| self.object(*object)).collect::<Parsed<_>>()?,
            enums: enums.iter().map(|found| self.enumeration(*found)).collect::<Parsed<_>>()?,
            identifier: identifier.as_bytes().try_into().ok(),
            root,
        })
    }

    fn object(&self, object: Table) -> Parsed<Object> {
        let mut fields = Vec::new();
        for field in self.tables(object, 1)? {
            let is_deprecated = self.flag(field, 6)?;
            let Some(found) = self.table(field, 1)?.filter(|_| !is_deprecated) else { continue };
            fields.push(Field {
                name: self.text(field, 0)?,
                kind: self.kind(found)?,
                offset: self.number(field, 3)?.map_or(0, u16::from_le_bytes),
                default_int: self.number(field, 4)?.map_or(0, i64::from_le_bytes),
                default_float: self.number(field, 5)?.map_or(0.0, f64::from_le_bytes),
                is_optional: self.flag(field, 11)?,
            });
        }
        Ok(Object {
            name: self.text(object, 0)?,
            is_struct: self.flag(object, 2)?,
            size: self.number(object, 4)?.map_or(0, i32::from_le_bytes).unsigned_abs() as usize,
            fields,
        })
    }

    fn enumeration(&self, found: Table) -> Parsed<Enum> {
        let mut enumeration = Enum { name: self.text(found, 0)?, ..Enum::default() };
        for value in self.tables(found, 1)? {
            let name = self.text(value, 0)?;
            let number = self.number(value, 1)?.map_or(0, i64::from_le_bytes);
            if let (Some(of), Ok(number)) = (self.table(value, 3)?, u8::try_from(number)) {
                enumeration.cases.push((name.clone(), number, self.kind(of)?));
            }
            enumeration.values.push((name, number));
        }
        let labels = enumeration.values.iter().map(|(name, number)| (*number, name.clone()));
        enumeration.labels = labels.collect();
        enumeration.labels.sort_by_key(|(number, _)| *number);
        enumeration.labels.dedup_by_key(|(number, _)| *number);
        Ok(enumeration)
    }

    fn kind(&self, found: Table) -> Parsed<Kind> {
        let [base] = self.number(found, 0)?.unwrap_or([0]);
        let [element] = self.number(found, 1)?.unwrap_or([0]);
        let index = self.number(found, 2)?.map_or(-1, i32::from_le_bytes);
        let index = usize::try_from(index).ok();
        let length = self.number(found, 3)?.map_or(0, u16::from_le_bytes);
        Ok(match base {
            14 => Kind::Vector(Box::new(simple(element, index))),
            17 => Kind::Array(Box::new(simple(element, index)), length.into()),
            base => simple(base, index),
        })
    }
}

/// Returns a type other than a vector, by its number in binary schemas.
fn simple(base: u8, index: Option<usize>) -> Kind {
    let number = match base {
        2 => Number::Bool,
        3 => Number::I8,
        // The case of a union is a byte.
        1 | 4 => Number::U8,
        5 => Number::I16,
        6 => Number::U16,
        7 => Number::I32,
        8 => Number::U32,
        9 => Number::I64,
        10 => Number::U64,
        11 => Number::F32,
        12 => Number::F64,
        13 => return Kind::Text,
        15 => return index.map_or(Kind::Other, Kind::Object),
        16 => return index.map_or(Kind::Other, Kind::Union),
        _ => return Kind::Other,
    };
    Kind::Number(number, index)
}
