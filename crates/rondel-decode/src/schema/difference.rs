//! Comparison of two types of one name: the declared one, and the one described by a publisher.

#[cfg(test)]
mod tests;

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
            (Type::Named(one), Type::Named(other)) => return self.named(*one, *other, path),
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

    fn named(&mut self, one: TypeId, other: TypeId, path: &str) -> Result<(), Difference> {
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
    if ours.holder() != theirs.holder() {
        return Err(other_size(ours.bits, theirs.bits, path));
    }
    constants(path, &ours.constants, &theirs.constants)
}

fn bitmasks(ours: &Bitmask, theirs: &Bitmask, path: &str) -> Result<(), Difference> {
    if ours.holder() != theirs.holder() {
        return Err(other_size(ours.bits, theirs.bits, path));
    }
    constants(path, &ours.flags, &theirs.flags)
}

/// Returns the difference between constants of these numbers of bits.
fn other_size(ours: u8, theirs: u8, path: &str) -> Difference {
    let shown = |bits: u8| Some(format!("constants of {bits} bits"));
    Difference { path: path.to_owned(), declared: shown(ours), described: shown(theirs) }
}

/// Compares names and values of constants; the described type may have more.
fn constants<V: Copy + PartialEq + fmt::Display>(
    path: &str,
    ours: &[(Box<str>, V)],
    theirs: &[(Box<str>, V)],
) -> Result<(), Difference> {
    let differ = |declared: String, described: Option<String>| {
        Err(Difference { path: path.to_owned(), declared: Some(declared), described })
    };
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
