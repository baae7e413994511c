//! Definitions of message types, as the checker sees them.

use std::collections::HashMap;

use rondel_event::{Value, ValueType};

use crate::spec::{Schema, SchemaType};

/// The fields and constants of a message type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// The fields.
    pub schema: Schema,
    /// The name without its package, under which formulas name the constants: `GearReport`.
    pub short_name: String,
    /// The constants: those of the type itself, of the types it is made of, and of its enumerations.
    pub constants: Vec<TypeConstant>,
    /// The fields that are enumerations, such as `state.mode` or `modes[]` for elements, each with the owner of its
    /// constants.
    pub enumerations: HashMap<String, String>,
}

/// A constant of a message type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeConstant {
    /// The name of the type without its package.
    pub owner: String,
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

impl Definition {
    /// Adds the fields and constants of another version of the type. Of a field that has another type there, the type in
    /// this version counts, but for integers that are floats there.
    pub fn add_version(&mut self, other: Definition) {
        add_fields(&mut self.schema, other.schema);
        for constant in other.constants {
            let is_same =
                |known: &TypeConstant| (&known.owner, &known.name) == (&constant.owner, &constant.name);
            if !self.constants.iter().any(is_same) {
                self.constants.push(constant);
            }
        }
        for (field, owner) in other.enumerations {
            self.enumerations.entry(field).or_insert(owner);
        }
    }
}

fn add_fields(schema: &mut Schema, other: Schema) {
    for (name, part) in other.fields {
        match schema.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => add_part(known, part),
            None => schema.fields.push((name, part)),
        }
    }
}

fn add_part(part: &mut SchemaType, other: SchemaType) {
    match (part, other) {
        (SchemaType::Value(own @ ValueType::Int), SchemaType::Value(ValueType::Float)) => {
            *own = ValueType::Float
        }
        (SchemaType::Object(own), SchemaType::Object(other)) => add_fields(own, other),
        (SchemaType::Array(own, size), SchemaType::Array(other, other_size)) => {
            add_part(own, *other);
            // Elements that one version has may be read.
            *size = size.zip(other_size).map(|(own, other)| own.max(other));
        }
        _ => {}
    }
}

/// Why there is no definition of a message type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoDefinition {
    /// The package is known, but it has no such type.
    NotInPackage {
        /// The names of the types of the package.
        types: Vec<String>,
    },
    /// Nothing is known about the package.
    UnknownPackage {
        /// The full names of types that have this name in other packages.
        alike: Vec<String>,
    },
    /// There is a definition, but it cannot be used, for this reason.
    Invalid(String),
}

/// The definitions of message types that specifications can name.
pub trait Definitions {
    /// Returns the definition of the type of this name, such as `nav_msgs/msg/Odometry`.
    ///
    /// # Errors
    /// [`NoDefinition`] if there is none.
    fn definition(&self, name: &str) -> Result<Definition, NoDefinition>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(fields: &[(&str, SchemaType)]) -> Definition {
        let fields = fields.iter().map(|(name, part)| ((*name).to_owned(), part.clone())).collect();
        Definition { schema: Schema { fields }, ..Definition::default() }
    }

    #[test]
    fn versions_have_the_fields_of_both() {
        let value = SchemaType::Value;
        let object = |fields: &[(&str, SchemaType)]| SchemaType::Object(definition(fields).schema);
        let array = |size| SchemaType::Array(Box::new(value(ValueType::Int)), size);
        let mut first = definition(&[
            ("n", value(ValueType::Int)),
            ("s", value(ValueType::String)),
            ("o", object(&[("x", value(ValueType::Bool))])),
            ("a", array(Some(3))),
        ]);
        first.add_version(definition(&[
            ("s", value(ValueType::Float)),
            ("extra", value(ValueType::Int)),
            ("n", value(ValueType::Float)),
            ("o", object(&[("y", value(ValueType::Bool))])),
            ("a", array(Some(5))),
        ]));
        let expected = definition(&[
            ("n", value(ValueType::Float)),
            ("s", value(ValueType::String)),
            ("o", object(&[("x", value(ValueType::Bool)), ("y", value(ValueType::Bool))])),
            ("a", array(Some(5))),
            ("extra", value(ValueType::Int)),
        ]);
        assert_eq!(first, expected);
    }
}
