//! Fields and constants of a message type in any encoding.

use rondel_event::{Path, Segment, Value, ValueType};

use crate::encoding::MessageType;
use crate::schema::{
    DISCRIMINATOR, Definition, Primitive, Schema, Struct, Type, TypeId, is_nanos, is_seconds,
};

/// Maximum number of fields of a message, including those of nested types.
const MAX_FIELDS: usize = 1 << 16;

/// Parts of a message type that a specification can name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// The fields.
    pub fields: Vec<(Box<str>, Part)>,
    /// Constants: those of the type itself first, then those of the types that it consists of.
    pub constants: Vec<NamedConstant>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A single value.
    Value(ValueType),
    /// A value of an enumeration, an integer; with the enumeration's name without package.
    Enumeration(Box<str>),
    /// A structure.
    Object(Vec<(Box<str>, Part)>),
    /// Elements of one type, and their number if the type fixes it.
    Array(Box<Part>, Option<u32>),
    /// A structure of seconds and nanoseconds: a time or a duration.
    Stamp(ValueType, Vec<(Box<str>, Part)>),
    /// A value whose fields cannot be listed: a map, or a type that contains itself.
    Open,
}

/// A constant of a message type, or of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedConstant {
    /// The name of the type without its package.
    pub owner: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// The value.
    pub value: Value,
}

impl Outline {
    /// Whether the value at this path is of an enumeration.
    pub fn is_enumeration(&self, path: &Path) -> bool {
        let mut fields = &self.fields[..];
        let mut at: Option<&Part> = None;
        for segment in &path.0 {
            at = match (segment, at) {
                (
                    Segment::Index(_) | Segment::FromEnd(_) | Segment::Named(_),
                    Some(Part::Array(element, _)),
                ) => Some(&**element),
                (Segment::Key(name), _) => {
                    fields.iter().find(|(field, _)| field == name).map(|(_, part)| part)
                }
                _ => None,
            };
            fields = match at {
                Some(Part::Object(inner) | Part::Stamp(_, inner)) => &inner[..],
                _ => &[],
            };
        }
        matches!(at, Some(Part::Enumeration(_)))
    }
}

impl MessageType {
    /// Returns the fields and constants.
    ///
    /// # Errors
    /// The reason why they cannot be listed.
    pub fn outline(&self) -> Result<Outline, &'static str> {
        let mut outliner = Outliner { left: MAX_FIELDS, constants: Vec::new() };
        let fields = match self {
            MessageType::Cdr(schema) | MessageType::Ros1(schema) => outliner.schema(schema)?,
            MessageType::Protobuf(message) => message.outline(&mut outliner)?,
            MessageType::Flatbuffers(table) => table.outline(&mut outliner)?,
            MessageType::Avro(of) => of.outline(&mut outliner)?,
            MessageType::Registered(_) => return Err("its schemas come from a registry"),
        };
        Ok(Outline { fields, constants: outliner.constants })
    }

    /// Returns the name without its package, to which its own constants belong.
    pub fn short_name(&self) -> &str {
        short(self.name())
    }
}

/// Returns the name without its package or modules.
pub(crate) fn short(name: &str) -> &str {
    name.rsplit(['/', ':', '.']).next().unwrap_or(name)
}

/// Returns a structure, or a time if it has exactly two integers with such names.
pub(crate) fn object(name: &str, fields: Vec<(Box<str>, Part)>) -> Part {
    let has = |is_named: fn(&str) -> bool| {
        fields.iter().any(|(name, part)| *part == Part::Value(ValueType::Int) && is_named(name))
    };
    let is_stamp = fields.len() == 2 && has(is_seconds) && has(is_nanos);
    match is_stamp {
        true if short(name).starts_with("Duration") => Part::Stamp(ValueType::Duration, fields),
        true => Part::Stamp(ValueType::Time, fields),
        false => Part::Object(fields),
    }
}

/// State of listing fields.
pub(crate) struct Outliner {
    left: usize,
    constants: Vec<NamedConstant>,
}

impl Outliner {
    /// Counts a field.
    pub(crate) fn count(&mut self) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(1).ok_or("it has more than 65,536 fields")?;
        Ok(())
    }

    /// Adds the constants of a type, once.
    pub(crate) fn constants<'n>(&mut self, owner: &str, constants: impl Iterator<Item = (&'n str, Value)>) {
        let owner = short(owner);
        if self.constants.iter().any(|constant| &*constant.owner == owner) {
            return;
        }
        self.constants.extend(constants.map(|(name, value)| NamedConstant {
            owner: owner.into(),
            name: name.into(),
            value,
        }));
    }

    fn schema(&mut self, schema: &Schema) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        self.own_constants(schema.name(), schema.root());
        self.structure(schema, schema.root())
    }

    fn own_constants(&mut self, owner: &str, structure: &Struct) {
        self.constants(owner, structure.constants.iter().map(|c| (&*c.name, c.value.clone())));
    }

    fn structure(
        &mut self,
        schema: &Schema,
        structure: &Struct,
    ) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        let member = |member: &crate::schema::Member| {
            Ok((member.name.clone(), self.value(schema, &member.member_type)?))
        };
        structure.members.iter().map(member).collect()
    }

    fn value(&mut self, schema: &Schema, value_type: &Type) -> Result<Part, &'static str> {
        self.count()?;
        Ok(match value_type {
            Type::Primitive(Primitive::Bool) => Part::Value(ValueType::Bool),
            Type::Primitive(Primitive::Float32 | Primitive::Float64) => Part::Value(ValueType::Float),
            Type::Primitive(_) => Part::Value(ValueType::Int),
            Type::String { .. } => Part::Value(ValueType::String),
            Type::Array { element, dimensions } => {
                let element = self.value(schema, element)?;
                let array = |element, size: &u32| Part::Array(Box::new(element), Some(*size));
                dimensions.iter().rev().fold(element, array)
            }
            Type::Sequence { element, .. } => Part::Array(Box::new(self.value(schema, element)?), None),
            Type::Named(id) => self.named(schema, *id)?,
        })
    }

    fn named(&mut self, schema: &Schema, id: TypeId) -> Result<Part, &'static str> {
        let name = schema.type_name(id);
        Ok(match schema.definition(id) {
            Definition::Struct(structure) => {
                self.own_constants(name, structure);
                object(name, self.structure(schema, structure)?)
            }
            Definition::Union(union) => {
                let mut fields = vec![(DISCRIMINATOR.into(), Part::Value(ValueType::Int))];
                for case in &union.cases {
                    fields.push((case.name.clone(), self.value(schema, &case.member_type)?));
                }
                Part::Object(fields)
            }
            Definition::Enum(of) => {
                let constants = of.constants.iter();
                self.constants(name, constants.map(|(name, value)| (&**name, Value::Int((*value).into()))));
                Part::Enumeration(short(name).into())
            }
            Definition::Bitmask(_) => Part::Value(ValueType::Int),
            Definition::Alias(other) => self.value(schema, other)?,
        })
    }
}
