//! Definitions of message types, as the checker sees them.

use std::collections::HashMap;

use rondel_event::Value;

use crate::spec::Schema;

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
