//! Definitions of types as text: in the language of ROS 2 messages, as in recordings, or in OMG IDL.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rondel_event::Value;

use super::{Bitmask, Definition, Enum, Extensibility, Primitive, Schema, Struct, Type, TypeId, Union};

/// Line between the definitions of two types in a text of ROS 2.
const RULE: &str = "================================================================================\n";

impl Schema {
    /// Returns the name in the form of ROS 2, such as `nav_msgs/msg/Odometry`, if it is one of ROS 2.
    pub fn ros_name(&self) -> Option<String> {
        ros_name(self.name())
    }

    /// Returns the definition with those of all types that it consists of, in the language of ROS 2 messages: the
    /// message, then each type after a line of `=` and a line `MSG: package/Type`. `None` if that language cannot
    /// express it. Keys and defaults are omitted.
    pub fn to_msg(&self) -> Option<String> {
        self.ros_name()?;
        let mut text = String::new();
        self.msg_struct(self.root(), &mut text)?;
        for (name, definition) in &self.definitions {
            let Definition::Struct(structure) = definition else { return None };
            let name = ros_name(name)?;
            if Some(&name) != self.ros_name().as_ref() {
                let _ = writeln!(text, "{RULE}MSG: {}", name.replacen("/msg/", "/", 1));
                self.msg_struct(structure, &mut text)?;
            }
        }
        Some(text)
    }

    fn msg_struct(&self, structure: &Struct, text: &mut String) -> Option<()> {
        for constant in &structure.constants {
            let name = &constant.name;
            let _ = match &constant.value {
                Value::Bool(value) => writeln!(text, "bool {name}={value}"),
                Value::Int(value) => writeln!(text, "int64 {name}={value}"),
                // Only integers beyond the signed range are stored as such large doubles.
                Value::Float(value) if *value >= 9.2e18 => writeln!(text, "uint64 {name}={value:.0}"),
                Value::Float(value) => writeln!(text, "float64 {name}={value:?}"),
                Value::String(value) if !value.contains(['"', '\\', '\n']) => {
                    writeln!(text, "string {name}=\"{value}\"")
                }
                _ => Ok(()),
            };
        }
        for member in &structure.members {
            if member.optional {
                return None;
            }
            let of = match &member.member_type {
                Type::Array { element, dimensions } => match **dimensions {
                    [size] => format!("{}[{size}]", self.msg_type(element)?),
                    _ => return None,
                },
                Type::Sequence { element, bound: None } => format!("{}[]", self.msg_type(element)?),
                Type::Sequence { element, bound: Some(most) } => {
                    format!("{}[<={most}]", self.msg_type(element)?)
                }
                other => self.msg_type(other)?,
            };
            let _ = writeln!(text, "{of} {}", member.name);
        }
        Some(())
    }

    /// Returns the name of a type other than an array or sequence.
    fn msg_type(&self, of: &Type) -> Option<String> {
        Some(match of {
            Type::Primitive(primitive) => match primitive {
                Primitive::Octet => "byte",
                Primitive::Char | Primitive::WChar => return None,
                other => other.name(),
            }
            .to_owned(),
            Type::String { bound, wide } => {
                let name = if *wide { "wstring" } else { "string" };
                bound.map_or_else(|| name.to_owned(), |most| format!("{name}<={most}"))
            }
            Type::Named(id) => ros_name(self.type_name(*id))?.replacen("/msg/", "/", 1),
            Type::Array { .. } | Type::Sequence { .. } => return None,
        })
    }

    /// Returns the definition with those of all types that it consists of, in OMG IDL: each type after those that it
    /// refers to. `None` if it has an array of arrays, which IDL can only express with an alias.
    pub fn to_idl(&self) -> Option<String> {
        let (mut text, mut seen) = (String::new(), BTreeSet::new());
        for (name, definition) in &self.definitions {
            seen.insert(name.replace('/', "::"));
            self.idl_definition(name, definition, &mut text)?;
        }
        if !seen.contains(&self.name().replace('/', "::")) {
            self.idl_struct(self.name(), self.root(), &mut text)?;
        }
        Some(text)
    }

    fn idl_definition(&self, name: &str, definition: &Definition, text: &mut String) -> Option<()> {
        match definition {
            Definition::Struct(structure) => self.idl_struct(name, structure, text),
            Definition::Union(union) => self.idl_union(name, union, text),
            Definition::Enum(of) => {
                let Enum { bits, constants } = of;
                let all = constants.iter().map(|(name, value)| format!("@value({value}) {name}"));
                let all = all.collect::<Vec<_>>().join(", ");
                within(name, text, |own| format!("@bit_bound({bits}) enum {own} {{ {all} }};"));
                Some(())
            }
            Definition::Bitmask(of) => {
                let Bitmask { bits, flags } = of;
                let all = flags.iter().map(|(name, at)| format!("@position({at}) {name}"));
                let all = all.collect::<Vec<_>>().join(", ");
                within(name, text, |own| format!("@bit_bound({bits}) bitmask {own} {{ {all} }};"));
                Some(())
            }
            Definition::Alias(_) => None,
        }
    }

    fn idl_struct(&self, name: &str, structure: &Struct, text: &mut String) -> Option<()> {
        let mut members = String::new();
        for member in &structure.members {
            let key = if member.key { "@key " } else { "" };
            let optional = if member.optional { "@optional " } else { "" };
            let (of, dimensions) = self.idl_member(&member.member_type)?;
            let _ =
                writeln!(members, "  @id({}) {key}{optional}{of} {}{dimensions};", member.id, member.name);
        }
        let extensibility = extensibility(structure.extensibility);
        within(name, text, |own| format!("{extensibility}struct {own} {{\n{members}}};"));
        Some(())
    }

    fn idl_union(&self, name: &str, union: &Union, text: &mut String) -> Option<()> {
        let (discriminator, _) = self.idl_member(&union.discriminator)?;
        let label = |value: i64| match &union.discriminator {
            Type::Named(id) => match self.definition(*id) {
                Definition::Enum(of) => {
                    let (own, _) = of.constants.iter().find(|(_, constant)| i64::from(*constant) == value)?;
                    let enumeration = self.type_name(*id).replace('/', "::");
                    // The constants of an enumeration are in its enclosing scope.
                    Some(match enumeration.rsplit_once("::") {
                        Some((scope, _)) => format!("{scope}::{own}"),
                        None => own.to_string(),
                    })
                }
                _ => None,
            },
            Type::Primitive(Primitive::Bool) => Some(if value == 0 { "FALSE" } else { "TRUE" }.to_owned()),
            Type::Primitive(Primitive::Char | Primitive::WChar) => {
                let letter = u32::try_from(value).ok().and_then(char::from_u32)?;
                letter.is_ascii_alphanumeric().then(|| format!("'{letter}'"))
            }
            _ => Some(value.to_string()),
        };
        let mut cases = String::new();
        for case in &union.cases {
            for value in &case.labels {
                let _ = write!(cases, "  case {}:", label(*value)?);
            }
            let default = if case.is_default { "  default:" } else { "" };
            let (of, dimensions) = self.idl_member(&case.member_type)?;
            let _ = writeln!(cases, "{default} @id({}) {of} {}{dimensions};", case.id, case.name);
        }
        let extensibility = extensibility(union.extensibility);
        within(name, text, |own| {
            format!("{extensibility}union {own} switch ({discriminator}) {{\n{cases}}};")
        });
        Some(())
    }

    /// Returns the text before and after the name of a member.
    fn idl_member(&self, of: &Type) -> Option<(String, String)> {
        let dimensions = match of {
            Type::Array { dimensions, .. } => dimensions.iter().map(|size| format!("[{size}]")).collect(),
            _ => String::new(),
        };
        let element = if let Type::Array { element, .. } = of { element } else { of };
        Some((self.idl_type(element)?, dimensions))
    }

    fn idl_type(&self, of: &Type) -> Option<String> {
        Some(match of {
            Type::Primitive(primitive) => match primitive {
                Primitive::Bool => "boolean",
                Primitive::Float32 => "float",
                Primitive::Float64 => "double",
                other => other.name(),
            }
            .to_owned(),
            Type::String { bound, wide } => {
                let name = if *wide { "wstring" } else { "string" };
                bound.map_or_else(|| name.to_owned(), |most| format!("{name}<{most}>"))
            }
            Type::Sequence { element, bound } => {
                let bound = bound.map_or_else(String::new, |most| format!(", {most}"));
                format!("sequence<{}{bound}>", self.idl_type(element)?)
            }
            Type::Named(id) => self.idl_name(*id),
            Type::Array { .. } => return None,
        })
    }

    fn idl_name(&self, id: TypeId) -> String {
        format!("::{}", self.type_name(id).replace('/', "::"))
    }
}

/// Writes a declaration within the modules of its name.
fn within(name: &str, text: &mut String, declaration: impl FnOnce(&str) -> String) {
    let name = name.replace('/', "::");
    let mut parts: Vec<&str> = name.split("::").collect();
    let own = parts.pop().unwrap_or_default();
    parts.iter().for_each(|module| _ = write!(text, "module {module} {{ "));
    text.push_str(&declaration(own));
    parts.iter().for_each(|_| text.push_str(" };"));
    text.push('\n');
}

fn extensibility(of: Option<Extensibility>) -> &'static str {
    match of {
        None => "",
        Some(Extensibility::Final) => "@final ",
        Some(Extensibility::Appendable) => "@appendable ",
        Some(Extensibility::Mutable) => "@mutable ",
    }
}

/// Returns the name of a type of ROS 2 as `package/msg/Type`, from any of its forms.
fn ros_name(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split("::").flat_map(|part| part.split('/')).collect();
    let (package, own) = match parts[..] {
        [package, "msg", own] => (package, own),
        [package, "msg", "dds_", own] => (package, own.strip_suffix('_')?),
        _ => return None,
    };
    Some(format!("{package}/msg/{own}"))
}

#[cfg(test)]
mod tests {
    use crate::schema::Library;

    #[test]
    fn ros_types_keep_their_hash() {
        let library = Library::ros().unwrap();
        let names: Vec<String> = library.names().map(str::to_owned).collect();
        let mut compared = 0;
        for name in names {
            let Ok(schema) = library.schema(&name) else { continue };
            let Some(text) = schema.to_msg() else { continue };
            let mut own = Library::new();
            own.add_msg(schema.name(), &text).unwrap();
            let read = own.schema(&name).unwrap();
            assert_eq!(read.rihs01(), schema.rihs01(), "{text}");
            assert_eq!(read.constants(), schema.constants(), "{text}");
            let mut own = Library::new();
            own.add_idl(&schema.to_idl().unwrap(), &|_| None).unwrap();
            let read = own.schema(&name).unwrap();
            assert_eq!(read.rihs01(), schema.rihs01(), "{}", schema.to_idl().unwrap());
            compared += 1;
        }
        assert!(compared > 100, "{compared}");
    }

    #[test]
    fn written_idl_is_read_back() {
        let text = "module a { @bit_bound(8) enum Mode { @value(1) OFF, @value(4) ON };
            @bit_bound(16) bitmask Bits { @position(0) FIRST, @position(9) LAST };
            @appendable union Choice switch (Mode) { case ON: float x; case OFF: string<5> s; };
            union Letter switch (char) { case 'a': case 'b': long x; default: octet o; };
            @mutable union Part switch (long) { case 1: @id(9) long x; case 2: @hashid string s; };
            module b { @mutable struct In { @id(7) @key long long n; @optional double d[2][3]; }; }; };
            @final struct Out { a::b::In one; sequence<a::Choice, 4> some; a::Letter letter; a::Bits bits;
              sequence<sequence<wstring> > texts; wchar w; char c; a::Part part; };";
        let mut library = Library::new();
        library.add_idl(text, &|_| None).unwrap();
        let schema = library.schema("Out").unwrap();
        assert_eq!(schema.to_msg(), None);
        let written = schema.to_idl().unwrap();
        let mut own = Library::new();
        own.add_idl(&written, &|_| None).unwrap();
        let read = own.schema("Out").unwrap();
        assert_eq!(format!("{:?}", read.root().members.len()), "8");
        assert_eq!(read.to_idl().unwrap(), written);
        assert_eq!(read, schema, "{written}");
    }
}
