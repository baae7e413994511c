//! Comparison of two types of one name: the declared one, and the one described by a publisher.

use std::collections::BTreeSet;
use std::fmt;

use super::msg::FILLER;
use super::{
    Bitmask, Case, Definition, Enum, Extensibility, Member, Primitive, Schema, Struct, Type, TypeId, Union,
};

/// The first difference between a declared type and a described one by which messages of one cannot be read as those of
/// the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the field; empty for the message itself.
    pub path: String,
    /// The declaration there; `None` if there is none.
    pub declared: Option<String>,
    /// The description there; `None` if there is none.
    pub described: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str("the message")?,
            path => write!(f, "field `{path}`")?,
        }
        match &self.declared {
            Some(declared) => write!(f, " is declared as {declared}")?,
            None => f.write_str(" is not declared")?,
        }
        match &self.described {
            Some(described) => write!(f, ", and published as {described}"),
            None => f.write_str(", and not published"),
        }
    }
}

impl Schema {
    /// Returns the first difference to the type described by a publisher: in names, order, types, bounds and keys of
    /// fields, in the values of constants, and in extensibility. The names of types are not compared.
    ///
    /// Types may have the additions that DDS-XTypes allows: appendable ones further members at the end, mutable ones
    /// other members with other ids, enumerations and bit masks further constants. Types of ROS 2 state no keys;
    /// anything that is not stated does not differ.
    pub fn difference(&self, described: &Schema) -> Option<Difference> {
        let has_keys = !self.name().contains('/');
        let mut comparison = Comparison { ours: self, theirs: described, has_keys, equal: BTreeSet::new() };
        comparison.structures(self.root(), described.root(), "").err()
    }

    /// Returns a type as text, such as `sequence<float64, 3>`.
    fn shown(&self, found: &Type) -> String {
        match found {
            Type::Primitive(primitive) => primitive.name().to_owned(),
            Type::String { bound, wide } => {
                let name = if *wide { "wstring" } else { "string" };
                bound.map_or_else(|| name.to_owned(), |bound| format!("{name}<{bound}>"))
            }
            Type::Array { .. } => {
                let (element, count) = flat(found);
                format!("{}[{count}]", self.shown(element))
            }
            Type::Sequence { element, bound } => {
                let bound = bound.map(|bound| format!(", {bound}")).unwrap_or_default();
                format!("sequence<{}{bound}>", self.shown(element))
            }
            Type::Named(id) => {
                let kind = match self.definition(*id) {
                    Definition::Struct(structure) => extensibility_name(structure.extensibility),
                    Definition::Union(_) => "union ",
                    Definition::Enum(_) => "enum ",
                    Definition::Bitmask(_) => "bitmask ",
                    Definition::Alias(_) => "",
                };
                format!("{kind}{}", self.type_name(*id))
            }
        }
    }
}

struct Comparison<'s> {
    ours: &'s Schema,
    theirs: &'s Schema,
    /// Whether keys are declared.
    has_keys: bool,
    /// Pairs of types found equal, since types may be used many times.
    equal: BTreeSet<(TypeId, TypeId)>,
}

impl Comparison<'_> {
    fn structures(&mut self, ours: &Struct, theirs: &Struct, path: &str) -> Result<(), Difference> {
        if !is_same_extensibility(ours.extensibility, theirs.extensibility) {
            let shown = |of: &Struct| Some(format!("{}structure", extensibility_name(of.extensibility)));
            return Err(Difference {
                path: path.to_owned(),
                declared: shown(ours),
                described: shown(theirs),
            });
        }
        if theirs.extensibility == Some(Extensibility::Mutable) {
            for member in &ours.members {
                if let Some(other) = theirs.members.iter().find(|other| other.id == member.id) {
                    self.members(Some(member), Some(other), path)?;
                }
            }
            return Ok(());
        }
        let (ours, theirs_all) = (without_filler(&ours.members), without_filler(&theirs.members));
        let is_open = theirs.extensibility == Some(Extensibility::Appendable);
        let count = match is_open {
            true => ours.len().min(theirs_all.len()),
            false => ours.len().max(theirs_all.len()),
        };
        (0..count).try_for_each(|i| self.members(ours.get(i), theirs_all.get(i), path))
    }

    fn members(
        &mut self,
        ours: Option<&Member>,
        theirs: Option<&Member>,
        path: &str,
    ) -> Result<(), Difference> {
        let name = ours.or(theirs).map_or("", |member| &*member.name);
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let (is_renamed, is_other) = match (ours, theirs) {
            (Some(ours), Some(theirs)) => (
                ours.name != theirs.name,
                ours.optional != theirs.optional || (self.has_keys && ours.key != theirs.key),
            ),
            _ => (false, true),
        };
        if is_renamed || is_other {
            let shown = |schema: &Schema, member: &Member| {
                let optional = if member.optional { "optional " } else { "" };
                let key = if member.key && self.has_keys { "key " } else { "" };
                let name = if is_renamed { format!("`{}`: ", member.name) } else { String::new() };
                format!("{name}{key}{optional}{}", schema.shown(&member.member_type))
            };
            return Err(Difference {
                declared: ours.map(|member| shown(self.ours, member)),
                described: theirs.map(|member| shown(self.theirs, member)),
                path,
            });
        }
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => self.types(&ours.member_type, &theirs.member_type, &path),
            _ => Ok(()),
        }
    }

    fn types(&mut self, ours: &Type, theirs: &Type, path: &str) -> Result<(), Difference> {
        let is_same = match (ours, theirs) {
            (Type::Primitive(one), Type::Primitive(other)) => {
                one == other || (is_byte(*one) && is_byte(*other))
            }
            (Type::String { .. }, Type::String { .. }) => ours == theirs,
            (Type::Array { .. }, Type::Array { .. }) => {
                let ((one, size), (other, other_size)) = (flat(ours), flat(theirs));
                if size == other_size {
                    return self.types(one, other, path);
                }
                false
            }
            (
                Type::Sequence { element: one, bound },
                Type::Sequence { element: other, bound: other_bound },
            ) => {
                if bound == other_bound {
                    return self.types(one, other, path);
                }
                false
            }
            (Type::Named(one), Type::Named(other)) => return self.named((*one, *other), path),
            _ => false,
        };
        if is_same { Ok(()) } else { Err(self.between(ours, theirs, path)) }
    }

    fn between(&self, ours: &Type, theirs: &Type, path: &str) -> Difference {
        Difference {
            path: path.to_owned(),
            declared: Some(self.ours.shown(ours)),
            described: Some(self.theirs.shown(theirs)),
        }
    }

    fn named(&mut self, (one, other): (TypeId, TypeId), path: &str) -> Result<(), Difference> {
        if self.equal.contains(&(one, other)) {
            return Ok(());
        }
        let (ours, theirs) = (self.ours, self.theirs);
        match (ours.definition(one), theirs.definition(other)) {
            (Definition::Struct(one), Definition::Struct(other)) => self.structures(one, other, path)?,
            (Definition::Union(one), Definition::Union(other)) => self.unions(one, other, path)?,
            (Definition::Enum(one), Definition::Enum(other)) => enumerations(one, other, path)?,
            (Definition::Bitmask(one), Definition::Bitmask(other)) => bitmasks(one, other, path)?,
            _ => return Err(self.between(&Type::Named(one), &Type::Named(other), path)),
        }
        self.equal.insert((one, other));
        Ok(())
    }

    fn unions(&mut self, ours: &Union, theirs: &Union, path: &str) -> Result<(), Difference> {
        let differ = |declared: String, described: String| {
            Err(Difference { path: path.to_owned(), declared: Some(declared), described: Some(described) })
        };
        if !is_same_extensibility(ours.extensibility, theirs.extensibility) {
            let shown = |of: &Union| format!("{}union", extensibility_name(of.extensibility));
            return differ(shown(ours), shown(theirs));
        }
        let discriminator = format!("{path}.{}", super::DISCRIMINATOR);
        self.types(&ours.discriminator, &theirs.discriminator, &discriminator)?;
        if ours.cases.len() != theirs.cases.len() {
            let shown = |of: &Union| format!("a union of {} cases", of.cases.len());
            return differ(shown(ours), shown(theirs));
        }
        for (one, other) in ours.cases.iter().zip(&theirs.cases) {
            let sorted = |labels: &[i64]| labels.iter().copied().collect::<BTreeSet<_>>();
            if theirs.extensibility == Some(Extensibility::Mutable) && one.id != other.id {
                let shown = |case: &Case| format!("case `{}` with the id {}", case.name, case.id);
                return differ(shown(one), shown(other));
            }
            if one.name != other.name
                || one.is_default != other.is_default
                || sorted(&one.labels) != sorted(&other.labels)
            {
                let shown = |name: &str, labels: &[i64], is_default: bool| {
                    let default = if is_default { " and default" } else { "" };
                    format!("case `{name}` of {labels:?}{default}")
                };
                return differ(
                    shown(&one.name, &one.labels, one.is_default),
                    shown(&other.name, &other.labels, other.is_default),
                );
            }
            self.types(&one.member_type, &other.member_type, &format!("{path}.{}", one.name))?;
        }
        Ok(())
    }
}

fn enumerations(ours: &Enum, theirs: &Enum, path: &str) -> Result<(), Difference> {
    let same = ours.holder() == theirs.holder();
    constants(path, (same, ours.bits, theirs.bits), &ours.constants, &theirs.constants)
}

fn bitmasks(ours: &Bitmask, theirs: &Bitmask, path: &str) -> Result<(), Difference> {
    let same = ours.holder() == theirs.holder();
    constants(path, (same, ours.bits, theirs.bits), &ours.flags, &theirs.flags)
}

/// Compares names and values of constants; the described type may have more.
fn constants<V: Copy + PartialEq + fmt::Display>(
    path: &str,
    (same_size, bits, other_bits): (bool, u8, u8),
    ours: &[(Box<str>, V)],
    theirs: &[(Box<str>, V)],
) -> Result<(), Difference> {
    let differ = |declared: String, described: Option<String>| {
        Err(Difference { path: path.to_owned(), declared: Some(declared), described })
    };
    if !same_size {
        return differ(format!("constants of {bits} bits"), Some(format!("constants of {other_bits} bits")));
    }
    for (name, value) in ours {
        let other = theirs.iter().find(|(other, _)| other == name);
        if other.is_none_or(|(_, other)| other != value) {
            let shown = |value: &V| format!("`{name}` = {value}");
            return differ(shown(value), other.map(|(_, value)| shown(value)));
        }
    }
    Ok(())
}

/// Whether two types have the same extensibility, as far as both state it. If it is not stated, the encapsulation of
/// each message decides, and mutable messages have ids.
fn is_same_extensibility(ours: Option<Extensibility>, theirs: Option<Extensibility>) -> bool {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours == theirs,
        (None, Some(stated)) | (Some(stated), None) => stated != Extensibility::Mutable,
        (None, None) => true,
    }
}

/// Returns the members without the one that ROS 2 adds to an empty structure.
fn without_filler(members: &[Member]) -> &[Member] {
    match members {
        [only] if &*only.name == FILLER => &[],
        members => members,
    }
}

/// Returns the type of the elements of an array, of several dimensions or of arrays, and their number.
fn flat(array: &Type) -> (&Type, u64) {
    let Type::Array { element, dimensions } = array else { return (array, 1) };
    let (element, inner) = flat(element);
    let count = dimensions.iter().fold(inner, |count, size| count.saturating_mul((*size).into()));
    (element, count)
}

/// Whether a type is a byte, which has several names that programs interchange: `byte` and `char` of ROS 2 are uint8
/// elsewhere.
fn is_byte(primitive: Primitive) -> bool {
    matches!(primitive, Primitive::Octet | Primitive::Uint8 | Primitive::Char)
}

fn extensibility_name(stated: Option<Extensibility>) -> &'static str {
    match stated {
        None => "",
        Some(Extensibility::Final) => "final ",
        Some(Extensibility::Appendable) => "appendable ",
        Some(Extensibility::Mutable) => "mutable ",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Library;

    fn idl(text: &str) -> super::Schema {
        let mut library = Library::new();
        library.add_idl(text, &|_| None).unwrap();
        library.schema("m::T").unwrap()
    }

    fn difference(ours: &str, theirs: &str) -> String {
        let of = |text: &str| idl(&format!("module m {{ {text} }};"));
        of(ours).difference(&of(theirs)).map(|difference| difference.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_first_difference_is_reported() {
        for (ours, theirs, expected) in [
            (
                "struct T { float a; double b; };",
                "struct T { float a; unsigned long long b; };",
                "field `b` is declared as float64, and published as uint64",
            ),
            (
                "struct T { double speed; };",
                "struct T { double velocity; };",
                "field `speed` is declared as `speed`: float64, and published as `velocity`: float64",
            ),
            (
                "struct T { long a; long b; };",
                "struct T { long b; long a; };",
                "field `a` is declared as `a`: int32, and published as `b`: int32",
            ),
            (
                "struct T { long a; };",
                "struct T { long a; long b; };",
                "field `b` is not declared, and published as int32",
            ),
            (
                "struct T { long a; long b; };",
                "struct T { long a; };",
                "field `b` is declared as int32, and not published",
            ),
            (
                "struct S { sequence<long> x; }; struct T { S s; };",
                "struct S { sequence<long, 9> x; }; struct T { S s; };",
                "field `s.x` is declared as sequence<int32>, and published as sequence<int32, 9>",
            ),
            (
                "struct T { @key long a; };",
                "struct T { long a; };",
                "field `a` is declared as key int32, and published as int32",
            ),
            (
                "@final struct T { long a; };",
                "@appendable struct T { long a; };",
                "the message is declared as final structure, and published as appendable structure",
            ),
            (
                "enum E { A, B }; struct T { E e; };",
                "enum E { B, A }; struct T { E e; };",
                "field `e` is declared as `A` = 0, and published as `A` = 1",
            ),
            (
                "struct T { string a; };",
                "struct T { wstring a; };",
                "field `a` is declared as string, and published as wstring",
            ),
            (
                "struct T { long a[2][3]; };",
                "struct T { long a[7]; };",
                "field `a` is declared as int32[6], and published as int32[7]",
            ),
            (
                "union U switch (long) { case 1: long a; }; struct T { U u; };",
                "union U switch (long) { case 2: long a; }; struct T { U u; };",
                "field `u` is declared as case `a` of [1], and published as case `a` of [2]",
            ),
            (
                "@mutable union U switch (long) { case 1: long a; }; struct T { U u; };",
                "@mutable union U switch (long) { case 1: @id(3) long a; }; struct T { U u; };",
                "field `u` is declared as case `a` with the id 1, and published as case `a` with the id 3",
            ),
            (
                "@mutable struct T { @id(3) long a; };",
                "@mutable struct T { @id(3) float a; };",
                "field `a` is declared as int32, and published as float32",
            ),
        ] {
            assert_eq!(difference(ours, theirs), expected, "{ours} / {theirs}");
            assert_eq!(difference(ours, ours), "");
            assert_eq!(difference(theirs, theirs), "");
        }
    }

    #[test]
    fn allowed_changes_are_no_difference() {
        for (ours, theirs) in [
            ("@appendable struct T { long a; };", "@appendable struct T { long a; long b; };"),
            ("@appendable struct T { long a; long b; };", "@appendable struct T { long a; };"),
            (
                "@mutable struct T { @id(3) long a; @id(4) long b; };",
                "@mutable struct T { @id(9) long c; @id(3) long a; };",
            ),
            ("struct T { long a; };", "@appendable struct T { long a; };"),
            ("struct T { octet a; };", "struct T { uint8 a; };"),
            ("enum E { A, B }; struct T { E e; };", "enum E { A, B, C }; struct T { E e; };"),
            ("struct T { long a[2][3]; };", "typedef long row[3]; struct T { row a[2]; };"),
            ("struct S { long x; }; struct T { S s; };", "struct Other { long x; }; struct T { Other s; };"),
        ] {
            assert_eq!(difference(ours, theirs), "", "{ours} / {theirs}");
        }
    }

    /// Shared types are compared only once, so that deep ones are fast.
    #[test]
    fn shared_types_are_compared_once() {
        let mut text = String::from("struct T0 { long x; };");
        for i in 1..30 {
            let inner = i - 1;
            text += &format!("struct T{i} {{ sequence<T{inner}> a; sequence<T{inner}> b; }};");
        }
        text += "struct T { T29 t; };";
        assert_eq!(difference(&text, &text), "");
    }

    #[test]
    fn types_of_ros_state_no_keys() {
        let mut library = Library::new();
        library.add_msg("m/msg/T", "int32 a\nbyte b\nstring<=5 c").unwrap();
        let ours = library.schema("m/msg/T").unwrap();
        let theirs = idl("module m { @final struct T { @key long a; uint8 b; string<5> c; }; };");
        assert_eq!(ours.difference(&theirs), None);
        library.add_msg("m/msg/Empty", "").unwrap();
        let empty = library.schema("m/msg/Empty").unwrap();
        let filled = idl("module m { struct T { uint8 structure_needs_at_least_one_member; }; };");
        assert_eq!((empty.difference(&filled), filled.difference(&empty)), (None, None));
        assert_eq!(ours.difference(&empty).map(|d| d.path), Some("a".to_owned()));
    }
}
