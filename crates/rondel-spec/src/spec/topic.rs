//! The topics of a specification and the schemas of their messages.

use rondel_event::{AddressPattern, ValueType};

/// A topic of a specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// The name in formulas.
    pub name: String,
    /// The name on the network, by default the same as `name`.
    pub address: String,
    /// The name of the message type, if the specification declares it.
    pub type_name: Option<String>,
    /// The schema, if the specification declares it. Without a schema, the types of fields are inferred from their uses.
    pub schema: Option<Schema>,
}

impl Topic {
    /// The address, if it has parameters. They are fields of the topic: strings that the name of a message's topic
    /// gives.
    ///
    /// ```
    /// let spec = rondel_spec::parse("topic pose \"fleet/{robot}/pose\" property p = pose.robot != \"r1\"").spec.unwrap();
    /// let pattern = spec.topics[0].pattern().unwrap();
    /// assert_eq!(pattern.captures("fleet/r7/pose"), Some(vec!["r7"]));
    /// ```
    pub fn pattern(&self) -> Option<AddressPattern> {
        AddressPattern::parse(&self.address).ok().flatten()
    }
}

/// The fields of an object, in order of declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The names and types.
    pub fields: Vec<(String, SchemaType)>,
}

/// The type of a field in a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaType {
    /// A single value.
    Value(ValueType),
    /// An object with fields of its own.
    Object(Schema),
    /// An array whose elements all have one type, and their number where the type fixes it.
    Array(Box<SchemaType>, Option<u32>),
    /// A time or duration that is an object of seconds and nanoseconds: it can be read as one, or by its fields.
    Stamp(ValueType, Schema),
    /// Something whose fields are not listed: its uses decide their types.
    Open,
}
