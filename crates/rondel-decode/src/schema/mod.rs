//! Message types: one model for all languages that define them.
//!
//! A [`Library`] collects definitions, from ROS 2 `.msg` files ([`Library::add_msg`]), OMG IDL ([`Library::add_idl`]),
//! type objects of DDS ([`Library::add_xtypes`]) and descriptions of ROS 2 ([`Library::add_description`]);
//! [`Library::ros`] has common interfaces. [`Library::schema`] extracts a type with all types that it consists of: a
//! [`Schema`], checked, without aliases, names or recursion. Decoders compile their plans from a schema, independently
//! of the languages.
//!
//! ```
//! use rondel_decode::schema::Library;
//!
//! let mut library = Library::new();
//! library.add_msg("demo_msgs/msg/Speed", "float32 value  # m/s\nuint8 FORWARD=1\nuint8 gear")?;
//! let schema = library.schema("demo_msgs/msg/Speed")?;
//! assert_eq!(schema.root().members.len(), 2);
//! assert_eq!(schema.constants()[0].name.as_ref(), "FORWARD");
//! # Ok::<(), rondel_decode::schema::SchemaError>(())
//! ```

mod described;
mod difference;
mod error;
mod extract;
mod hash;
pub mod idl;
mod library;
pub mod msg;
mod ros;
pub(crate) mod scan;
mod text;
mod xtypes;

use rondel_event::Value;

pub use difference::Difference;
pub use error::{Place, SchemaError};
pub use library::Library;

/// Maximum nesting of types: deeper ones are a mistake, and plans are walked recursively.
pub const MAX_DEPTH: usize = 32;
/// Name of the field with the discriminator of a union.
pub const DISCRIMINATOR: &str = "discriminator";
/// Maximum number of types that a message consists of.
pub const MAX_TYPES: usize = 2048;
/// Maximum number of members of a structure or union, and of constants of an enumeration.
pub const MAX_MEMBERS: usize = 4096;
/// Maximum size of a message without its strings and sequences, in bytes.
pub const MAX_FIXED_SIZE: u64 = 1 << 30;

/// A number, boolean or character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// True or false, in one byte.
    Bool,
    /// An uninterpreted byte.
    Octet,
    /// A character of one byte.
    Char,
    /// A character of two bytes (UTF-16).
    WChar,
    /// A signed 8-bit integer.
    Int8,
    /// An unsigned 8-bit integer.
    Uint8,
    /// A signed 16-bit integer.
    Int16,
    /// An unsigned 16-bit integer.
    Uint16,
    /// A signed 32-bit integer.
    Int32,
    /// An unsigned 32-bit integer.
    Uint32,
    /// A signed 64-bit integer.
    Int64,
    /// An unsigned 64-bit integer.
    Uint64,
    /// A single-precision number.
    Float32,
    /// A double-precision number.
    Float64,
}

impl Primitive {
    /// Returns its name in ROS 2, or in IDL if ROS 2 has none.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Primitive::Bool => "bool",
            Primitive::Octet => "octet",
            Primitive::Char => "char",
            Primitive::WChar => "wchar",
            Primitive::Int8 => "int8",
            Primitive::Uint8 => "uint8",
            Primitive::Int16 => "int16",
            Primitive::Uint16 => "uint16",
            Primitive::Int32 => "int32",
            Primitive::Uint32 => "uint32",
            Primitive::Int64 => "int64",
            Primitive::Uint64 => "uint64",
            Primitive::Float32 => "float32",
            Primitive::Float64 => "float64",
        }
    }

    /// Returns the size in bytes.
    pub fn size(self) -> u32 {
        match self {
            Primitive::Bool | Primitive::Octet | Primitive::Char | Primitive::Int8 | Primitive::Uint8 => 1,
            Primitive::WChar | Primitive::Int16 | Primitive::Uint16 => 2,
            Primitive::Int32 | Primitive::Uint32 | Primitive::Float32 => 4,
            Primitive::Int64 | Primitive::Uint64 | Primitive::Float64 => 8,
        }
    }

    /// Returns the minimum and maximum of an integer type.
    pub fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Primitive::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
            Primitive::Octet | Primitive::Uint8 => (0, i128::from(u8::MAX)),
            Primitive::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
            Primitive::Uint16 => (0, i128::from(u16::MAX)),
            Primitive::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
            Primitive::Uint32 => (0, i128::from(u32::MAX)),
            Primitive::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Primitive::Uint64 => (0, i128::from(u64::MAX)),
            _ => return None,
        })
    }
}

/// The type of a member or an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number, boolean or character.
    Primitive(Primitive),
    /// Text: UTF-8, or UTF-16 if `wide`.
    String {
        /// Maximum length, if there is one.
        bound: Option<u32>,
        /// Whether it is a `wstring`.
        wide: bool,
    },
    /// A fixed number of elements, in one or several dimensions.
    Array {
        /// The type of the elements.
        element: Box<Type>,
        /// The sizes, none of them zero; the last one varies fastest.
        dimensions: Box<[u32]>,
    },
    /// A number of elements stated in each message.
    Sequence {
        /// The type of the elements.
        element: Box<Type>,
        /// Maximum number of elements, if there is one.
        bound: Option<u32>,
    },
    /// A structure, union, enumeration or bit mask.
    Named(TypeId),
}

/// Index of a definition in its [`Schema`] or [`Library`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// A type with a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// Members, all present.
    Struct(Struct),
    /// Cases, one present.
    Union(Union),
    /// One of several named values.
    Enum(Enum),
    /// A set of named bits.
    Bitmask(Bitmask),
    /// Another name for a type. A [`Schema`] contains none.
    Alias(Type),
}

/// Allowed changes of a type between versions, which determine its encoding in DDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// No changes.
    Final,
    /// Members may be added at the end.
    Appendable,
    /// Members may be added, removed and reordered: each carries its id.
    Mutable,
}

/// A structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    /// Extensibility of the type; `None` if its definition does not state it.
    pub extensibility: Option<Extensibility>,
    /// The members, in order, those of base types first.
    pub members: Vec<Member>,
    /// Constants that belong to the type (ROS 2).
    pub constants: Vec<Constant>,
}

/// Whether a member with this name is the seconds of a time.
pub(crate) fn is_seconds(name: &str) -> bool {
    matches!(name, "sec" | "secs" | "seconds")
}

/// Whether a member with this name is the nanoseconds of a time.
pub(crate) fn is_nanos(name: &str) -> bool {
    matches!(name, "nanosec" | "nanosecs" | "nsec" | "nsecs" | "nanos" | "nanoseconds")
}

impl Struct {
    /// Whether some members are its key.
    pub(crate) fn has_key(&self) -> bool {
        self.members.iter().any(|member| member.key)
    }

    /// Returns the positions of the seconds and the nanoseconds, if the structure is a time: two integers with such
    /// names.
    pub fn stamp(&self) -> Option<(usize, usize)> {
        let position = |is_named: fn(&str) -> bool| {
            let is = |member: &Member| {
                let is_integer = matches!(member.member_type, Type::Primitive(p) if p.range().is_some());
                !member.optional && is_integer && is_named(&member.name)
            };
            self.members.iter().position(is)
        };
        let (seconds, nanos) = (position(is_seconds)?, position(is_nanos)?);
        (self.members.len() == 2).then_some((seconds, nanos))
    }
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name.
    pub name: Box<str>,
    /// The type.
    pub member_type: Type,
    /// Id of the member in mutable types.
    pub id: u32,
    /// Whether it is part of the key.
    pub key: bool,
    /// Whether a message may omit it.
    pub optional: bool,
}

/// A constant of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The name.
    pub name: Box<str>,
    /// The value. An unsigned 64-bit integer beyond the signed range is a `Float`.
    pub value: Value,
}

/// A union.
#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    /// Extensibility of the type; `None` if its definition does not state it.
    pub extensibility: Option<Extensibility>,
    /// The type of the discriminator: an integer, boolean, character or enumeration.
    pub discriminator: Type,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A case of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name of the member.
    pub name: Box<str>,
    /// The type of the member.
    pub member_type: Type,
    /// Id of the member in mutable unions; 0 is the discriminator's.
    pub id: u32,
    /// The values of the discriminator that select it.
    pub labels: Vec<i64>,
    /// Whether all other values select it.
    pub is_default: bool,
}

/// An enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Number of bits of a value, serialised in 8, 16 or 32.
    pub bits: u8,
    /// The names and values, in order.
    pub constants: Vec<(Box<str>, i32)>,
}

/// A bit mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmask {
    /// Number of bits of a value, serialised in 8, 16, 32 or 64.
    pub bits: u8,
    /// The names and positions of the bits.
    pub flags: Vec<(Box<str>, u8)>,
}

impl Enum {
    /// Returns the integer type that is serialised.
    pub fn holder(&self) -> Primitive {
        match self.bits {
            ..=8 => Primitive::Int8,
            9..=16 => Primitive::Int16,
            _ => Primitive::Int32,
        }
    }
}

impl Bitmask {
    /// Returns the integer type that is serialised.
    pub fn holder(&self) -> Primitive {
        match self.bits {
            ..=8 => Primitive::Uint8,
            9..=16 => Primitive::Uint16,
            17..=32 => Primitive::Uint32,
            _ => Primitive::Uint64,
        }
    }
}

/// A message type with all types that it consists of: checked, and without aliases and recursion.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    name: Box<str>,
    /// Each definition after the types that it consists of.
    definitions: Vec<(Box<str>, Definition)>,
    root: Struct,
}

impl Schema {
    /// Returns the name, as `package/msg/Type` or `module::Type`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the structure of a message.
    pub fn root(&self) -> &Struct {
        &self.root
    }

    /// Returns the type of the keys of its messages: the key members, recursively in key structures. A structure
    /// without key members belongs to the key as a whole. `None` if the message type has no key.
    pub fn key(&self) -> Option<Schema> {
        if !self.root.has_key() {
            return None;
        }
        let mut key = self.clone();
        let of_key = |structure: &mut Struct| {
            if structure.has_key() {
                structure.members.retain(|member| member.key);
            }
        };
        for (_, definition) in &mut key.definitions {
            if let Definition::Struct(structure) = definition {
                of_key(structure);
            }
        }
        of_key(&mut key.root);
        Some(key)
    }

    /// Returns the constants of the message type.
    pub fn constants(&self) -> &[Constant] {
        &self.root.constants
    }

    /// Returns a type that occurs in this schema.
    pub fn definition(&self, id: TypeId) -> &Definition {
        &self.definitions[id.0 as usize].1
    }

    /// Returns the full name of a type that occurs in this schema.
    pub fn type_name(&self, id: TypeId) -> &str {
        &self.definitions[id.0 as usize].0
    }
}
