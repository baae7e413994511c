//! Extracts a type of a library, with all types that it consists of.

use std::collections::BTreeMap;

use super::library::filed_name;
use super::{
    Constant, Definition, Library, MAX_DEPTH, MAX_FIXED_SIZE, MAX_TYPES, Schema, SchemaError, Struct, Type,
    TypeId,
};

pub(super) fn schema(library: &Library, name: &str) -> Result<Schema, SchemaError> {
    let filed = filed_name(name);
    let is_defined = |name: &str| library.find(name).filter(|id| library.definition(*id).is_some());
    let with_msg = filed.split_once("::").map(|(package, own)| format!("{package}::msg::{own}"));
    let found = is_defined(&filed).or_else(|| is_defined(&with_msg?));
    let id = found.ok_or_else(|| SchemaError::new(format!("the type `{name}` is not defined")))?;
    let mut extraction = Extraction {
        library,
        ids: BTreeMap::new(),
        definitions: Vec::new(),
        sizes: Vec::new(),
        open: Vec::new(),
    };
    // The name of the message may be an alias.
    let (Type::Named(root), _) = extraction.resolve(&Type::Named(id))? else {
        return Err(SchemaError::new(format!("`{name}` is not a structure")));
    };
    let Definition::Struct(root) = extraction.definitions[root.0 as usize].1.clone() else {
        return Err(SchemaError::new(format!("`{name}` is not a structure")));
    };
    Ok(Schema { name: shown_name(library.name(id)), definitions: extraction.definitions, root })
}

/// Returns the name as written by users.
fn shown_name(filed: &str) -> Box<str> {
    match filed.split("::").collect::<Vec<_>>()[..] {
        [_, "msg" | "srv" | "action", _] => filed.replace("::", "/").into(),
        _ => filed.into(),
    }
}

struct Extraction<'l> {
    library: &'l Library,
    /// Ids among the extracted types, by ids of the library.
    ids: BTreeMap<TypeId, TypeId>,
    definitions: Vec<(Box<str>, Definition)>,
    /// Maximum size of each in bytes, without strings and sequences.
    sizes: Vec<u64>,
    /// The enclosing types of the current one.
    open: Vec<TypeId>,
}

impl Extraction<'_> {
    /// Returns the type without aliases, and its maximum size without strings and sequences.
    fn resolve(&mut self, found: &Type) -> Result<(Type, u64), SchemaError> {
        match found {
            Type::Primitive(primitive) => Ok((found.clone(), u64::from(primitive.size()))),
            Type::String { .. } => Ok((found.clone(), 4)),
            Type::Array { element, dimensions } => {
                let (element, size) = self.nested(element)?;
                // Padding at most doubles an element, and another eight bytes may precede it.
                let count =
                    dimensions.iter().fold(1, |count: u64, size| count.saturating_mul((*size).into()));
                let size = size.saturating_add(8).saturating_mul(count);
                if size > MAX_FIXED_SIZE {
                    return Err(self.refused("an array is larger than 1 GiB"));
                }
                Ok((Type::Array { element: Box::new(element), dimensions: dimensions.clone() }, size))
            }
            Type::Sequence { element, bound } => {
                let (element, _) = self.nested(element)?;
                Ok((Type::Sequence { element: Box::new(element), bound: *bound }, 8))
            }
            Type::Named(id) => self.named(*id),
        }
    }

    /// Resolves the type of elements; arrays of arrays have no names that limit their nesting.
    fn nested(&mut self, element: &Type) -> Result<(Type, u64), SchemaError> {
        let mut depth = self.open.len();
        let mut inner = element;
        while let Type::Array { element, .. } | Type::Sequence { element, .. } = inner {
            depth += 1;
            inner = element;
        }
        if depth >= MAX_DEPTH {
            return Err(self.refused("types are nested too deeply"));
        }
        self.resolve(element)
    }

    fn named(&mut self, id: TypeId) -> Result<(Type, u64), SchemaError> {
        if let Some(done) = self.ids.get(&id) {
            return Ok((Type::Named(*done), self.sizes[done.0 as usize]));
        }
        let name = self.library.name(id);
        if self.open.contains(&id) {
            return Err(self.refused(&format!("`{name}` contains itself: recursive types are not read")));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.refused("types are nested too deeply"));
        }
        if self.definitions.len() >= MAX_TYPES {
            return Err(self.refused(&format!("it is made of more than {MAX_TYPES} types")));
        }
        let Some(definition) = self.library.definition(id) else {
            return Err(self.refused(&format!("the type `{name}` is not defined")));
        };
        self.open.push(id);
        let mut definition = definition.clone();
        let mut total: u64 = 8;
        match &mut definition {
            Definition::Struct(Struct { members, constants, .. }) => {
                if members.is_empty() && !self.library.is_ros1 {
                    return Err(self.refused("it has no members"));
                }
                for member in members {
                    let (member_type, size) = self.resolve(&member.member_type)?;
                    member.member_type = member_type;
                    // Alignment, or the header of an optional member.
                    total = total.saturating_add(size).saturating_add(20);
                }
                let module = format!("{name}_Constants");
                for (name, value) in self.library.constants_in(&module) {
                    if constants.iter().all(|known| &*known.name != name) {
                        constants.push(Constant { name: name.into(), value: value.clone() });
                    }
                }
            }
            Definition::Union(union) => {
                union.discriminator = self.resolve(&union.discriminator)?.0;
                let mut largest = 0;
                for case in &mut union.cases {
                    let (member_type, size) = self.resolve(&case.member_type)?;
                    case.member_type = member_type;
                    largest = largest.max(size);
                }
                total = total.saturating_add(largest).saturating_add(20);
            }
            Definition::Enum(_) | Definition::Bitmask(_) => {}
            Definition::Alias(target) => {
                let resolved = self.resolve(target);
                self.open.pop();
                return resolved;
            }
        }
        if total > MAX_FIXED_SIZE {
            return Err(self.refused("it is larger than 1 GiB"));
        }
        self.open.pop();
        let done = TypeId(self.definitions.len() as u32);
        self.definitions.push((name.into(), definition));
        self.sizes.push(total);
        self.ids.insert(id, done);
        Ok((Type::Named(done), total))
    }

    /// Returns an error in the type that is being extracted.
    fn refused(&self, reason: &str) -> SchemaError {
        match self.open.last() {
            Some(id) => SchemaError::new(format!("`{}`: {reason}", shown_name(self.library.name(*id)))),
            None => SchemaError::new(reason),
        }
    }
}
