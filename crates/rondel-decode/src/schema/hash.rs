//! The hash of a ROS 2 type (RIHS01): SHA-256 of its description as JSON (REP 2016).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{Definition, Primitive, Schema, Struct, Type};

impl Schema {
    /// Returns the hash by which ROS 2 distinguishes versions of a type, such as `RIHS01_d501…`; `None` if the type has
    /// parts that ROS 2 does not have.
    pub fn rihs01(&self) -> Option<String> {
        let mut others = BTreeMap::new();
        for (name, definition) in &self.definitions {
            if let Definition::Struct(structure) = definition {
                others.insert(slashes(name), structure);
            }
        }
        others.remove(&slashes(self.name()));
        let mut text = String::from("{\"type_description\": ");
        self.describe(self.name(), self.root(), &mut text)?;
        text.push_str(", \"referenced_type_descriptions\": [");
        for (i, (name, structure)) in others.iter().enumerate() {
            text.push_str(if i == 0 { "" } else { ", " });
            self.describe(name, structure, &mut text)?;
        }
        text.push_str("]}");
        let mut hash = String::from("RIHS01_");
        Sha256::digest(text).iter().for_each(|byte| _ = write!(hash, "{byte:02x}"));
        Some(hash)
    }

    fn describe(&self, name: &str, structure: &Struct, text: &mut String) -> Option<()> {
        let _ = write!(text, "{{\"type_name\": \"{}\", \"fields\": [", slashes(name));
        for (i, member) in structure.members.iter().enumerate() {
            let (offset, capacity, element) = match &member.member_type {
                Type::Array { element, dimensions } => match **dimensions {
                    [size] => (48, size, &**element),
                    _ => return None,
                },
                Type::Sequence { element, bound: Some(bound) } => (96, *bound, &**element),
                Type::Sequence { element, bound: None } => (144, 0, &**element),
                other => (0, 0, other),
            };
            let (id, string_capacity, nested) = self.kind(element)?;
            let _ = write!(
                text,
                "{}{{\"name\": \"{}\", \"type\": {{\"type_id\": {}, \"capacity\": {capacity}, \
                 \"string_capacity\": {string_capacity}, \"nested_type_name\": \"{nested}\"}}}}",
                if i == 0 { "" } else { ", " },
                member.name,
                id + offset,
            );
        }
        text.push_str("]}");
        Some(())
    }

    /// Returns the number of a type, the bound of a string, and the name of a structure.
    fn kind(&self, element: &Type) -> Option<(u32, u32, String)> {
        let id = match element {
            Type::Named(id) => {
                matches!(self.definition(*id), Definition::Struct(_)).then_some(())?;
                return Some((1, 0, slashes(self.type_name(*id))));
            }
            Type::String { bound: Some(bound), wide } => {
                return Some((21 + u32::from(*wide), *bound, String::new()));
            }
            Type::String { bound: None, wide } => 17 + u32::from(*wide),
            Type::Primitive(primitive) => match primitive {
                Primitive::Int8 => 2,
                Primitive::Uint8 => 3,
                Primitive::Int16 => 4,
                Primitive::Uint16 => 5,
                Primitive::Int32 => 6,
                Primitive::Uint32 => 7,
                Primitive::Int64 => 8,
                Primitive::Uint64 => 9,
                Primitive::Float32 => 10,
                Primitive::Float64 => 11,
                Primitive::Char => 13,
                Primitive::WChar => 14,
                Primitive::Bool => 15,
                Primitive::Octet => 16,
            },
            Type::Array { .. } | Type::Sequence { .. } => return None,
        };
        Some((id, 0, String::new()))
    }
}

fn slashes(name: &str) -> String {
    name.replace("::", "/")
}
