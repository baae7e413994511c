//! Definitions of types by name.

use std::collections::BTreeMap;
use std::ops::Bound;

use rondel_event::Value;

use super::{
    Definition, Extensibility, MAX_MEMBERS, Schema, SchemaError, TypeId, described, extract, idl, msg, xtypes,
};

/// Type definitions by name, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Library {
    ids: BTreeMap<Box<str>, TypeId>,
    entries: Vec<Entry>,
    constants: BTreeMap<Box<str>, Value>,
    /// Whether added definitions may be replaced later.
    adds_known: bool,
    /// Whether its types are those of ROS 1.
    pub(super) is_ros1: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    name: Box<str>,
    /// `None` until the type is defined.
    definition: Option<Definition>,
    /// Whether another definition may replace it.
    is_known: bool,
}

impl Library {
    /// Creates a library without types.
    pub fn new() -> Library {
        Library::default()
    }

    /// Adds the message type `name` (`package/msg/Type`), defined by the text of a ROS 2 `.msg` file. Further
    /// definitions may follow in the same text, as in recordings: each after a line of `=` and a line `MSG:
    /// package/Type`.
    ///
    /// # Errors
    /// [`SchemaError`], with line and column, if the text is not well formed; nothing is added then.
    pub fn add_msg(&mut self, name: &str, text: &str) -> Result<(), SchemaError> {
        self.add(|library| msg::parse(library, name, text))
    }

    /// Adds the message type `name` (`package/Type`), defined by the text in recordings of ROS 1: that of its `.msg`
    /// file, followed by those of all types that it consists of, each after a line of `=` and a line `MSG:
    /// package/Type`. A `time` and a `duration` are structures of `sec` and `nanosec`, as in ROS 2. A library has
    /// either such types or others.
    ///
    /// # Errors
    /// [`SchemaError`], with line and column, if the text is not well formed; nothing is added then.
    pub fn add_ros1_msg(&mut self, name: &str, text: &str) -> Result<(), SchemaError> {
        self.add(|library| {
            library.is_ros1 = true;
            for stamp in [msg::TIME, msg::DURATION] {
                library.add_known(stamp)?;
            }
            msg::parse(library, name, text)
        })
    }

    /// Adds all types of a text in OMG IDL 4.2. `include` returns the text of an included file; if it returns `None`,
    /// the file is skipped, since its types may already be known.
    ///
    /// # Errors
    /// [`SchemaError`], with line and column, if the text is not well formed; nothing is added then.
    pub fn add_idl(
        &mut self,
        text: &str,
        include: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), SchemaError> {
        self.add(|library| idl::parse(library, text, include))
    }

    /// Adds all types of a type mapping of DDS-XTypes, by which participants of DDS describe their types: serialised in
    /// little-endian XCDR2, without the four bytes of the encoding.
    ///
    /// # Errors
    /// [`SchemaError`], with the offset, if the types are incomplete or of an unsupported kind; nothing is added then.
    pub fn add_xtypes(&mut self, mapping: &[u8]) -> Result<(), SchemaError> {
        self.add(|library| xtypes::parse(library, mapping))
    }

    /// Adds the types described by a node of ROS 2: the answer of its service `get_type_description`, in CDR. Returns
    /// the name of the requested type.
    ///
    /// # Errors
    /// [`SchemaError`] if the node refuses, or the answer is truncated or has types of an unsupported kind; nothing is
    /// added then.
    pub fn add_description(&mut self, answer: &[u8]) -> Result<String, SchemaError> {
        let mut name = String::new();
        self.add(|library| {
            name = described::parse(library, answer)?;
            Ok(())
        })?;
        Ok(name)
    }

    /// Adds definitions, each after its name, which later ones may replace.
    pub(super) fn add_known(&mut self, text: &str) -> Result<(), SchemaError> {
        self.adds_known = true;
        let result = msg::parse_sections(self, text);
        self.adds_known = false;
        result
    }

    fn add(
        &mut self,
        parse: impl FnOnce(&mut Library) -> Result<(), SchemaError>,
    ) -> Result<(), SchemaError> {
        let mut next = self.clone();
        parse(&mut next)?;
        *self = next;
        Ok(())
    }

    /// Returns the names of all defined types, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let defined = |id: &TypeId| self.entries[id.0 as usize].definition.is_some();
        self.ids.iter().filter(move |(_, id)| defined(id)).map(|(name, _)| &**name)
    }

    /// Returns a message type with all types that it consists of. ROS 2 types have the names `package/msg/Type`,
    /// `package/Type`, and their name in DDS.
    ///
    /// # Errors
    /// [`SchemaError`] if the type or one that it consists of is not defined, is not a structure, contains itself, or
    /// exceeds a limit of this module.
    pub fn schema(&self, name: &str) -> Result<Schema, SchemaError> {
        extract::schema(self, name)
    }

    pub(super) fn find(&self, name: &str) -> Option<TypeId> {
        self.ids.get(name).copied()
    }

    /// Returns the id of a type that may be defined later.
    pub(super) fn mention(&mut self, name: &str) -> TypeId {
        self.find(name).unwrap_or_else(|| {
            let id = TypeId(self.entries.len() as u32);
            self.entries.push(Entry { name: name.into(), definition: None, is_known: false });
            self.ids.insert(name.into(), id);
            id
        })
    }

    /// Defines a type; the same definition may be repeated.
    pub(super) fn define(&mut self, name: &str, definition: Definition) -> Result<TypeId, Box<str>> {
        check_names(&definition)?;
        let id = self.mention(name);
        let entry = &mut self.entries[id.0 as usize];
        match &mut entry.definition {
            Some(known) if *known != definition && !entry.is_known => {
                Err(format!("the type `{name}` is already defined, with other contents").into())
            }
            known => {
                *known = Some(definition);
                entry.is_known = self.adds_known;
                Ok(id)
            }
        }
    }

    pub(super) fn name(&self, id: TypeId) -> &str {
        &self.entries[id.0 as usize].name
    }

    pub(super) fn definition(&self, id: TypeId) -> Option<&Definition> {
        self.entries[id.0 as usize].definition.as_ref()
    }

    pub(super) fn constant(&self, name: &str) -> Option<&Value> {
        self.constants.get(name)
    }

    pub(super) fn set_constant(&mut self, name: &str, value: Value) -> Result<(), Box<str>> {
        match self.constants.get(name) {
            Some(known) if *known != value => Err(format!("the constant `{name}` is already defined").into()),
            _ => {
                self.constants.insert(name.into(), value);
                Ok(())
            }
        }
    }

    /// Returns the constants in a module.
    pub(super) fn constants_in(&self, module: &str) -> impl Iterator<Item = (&str, &Value)> {
        let prefix = format!("{module}::");
        let from = self.constants.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
        let names = from.map(|(name, value)| (&**name, value));
        let own = prefix.clone();
        names
            .take_while(move |(name, _)| name.starts_with(&*own))
            .filter_map(move |(name, value)| Some((name.strip_prefix(&*prefix)?, value)))
            .filter(|(name, _)| !name.contains("::"))
    }
}

/// Refuses two members with the same name or id, and too many of them.
fn check_names(definition: &Definition) -> Result<(), Box<str>> {
    let mut names: Vec<&str> = Vec::new();
    match definition {
        Definition::Struct(structure) => {
            names.extend(structure.members.iter().map(|member| &*member.name));
            let mut ids: Vec<u32> = structure.members.iter().map(|member| member.id).collect();
            ids.sort_unstable();
            if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("two members have the id {}", pair[0]).into());
            }
        }
        Definition::Union(union) => {
            names.extend(union.cases.iter().map(|case| &*case.name));
            if union.extensibility == Some(Extensibility::Mutable) {
                let mut ids: Vec<u32> = union.cases.iter().map(|case| case.id).collect();
                ids.sort_unstable();
                if ids.first() == Some(&0) {
                    return Err("a case has the id 0, which is the discriminator's".into());
                }
                if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(format!("two cases have the id {}", pair[0]).into());
                }
            }
            let mut labels: Vec<i64> = union.cases.iter().flat_map(|case| &case.labels).copied().collect();
            labels.sort_unstable();
            if let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("two cases have the label {}", pair[0]).into());
            }
            if union.cases.iter().filter(|case| case.is_default).count() > 1 {
                return Err("a union has at most one default case".into());
            }
        }
        Definition::Enum(enumeration) => names.extend(enumeration.constants.iter().map(|(name, _)| &**name)),
        Definition::Bitmask(mask) => names.extend(mask.flags.iter().map(|(name, _)| &**name)),
        Definition::Alias(_) => {}
    }
    if names.len() > MAX_MEMBERS {
        return Err(format!("it has {} members; at most {MAX_MEMBERS} are read", names.len()).into());
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two members have the name `{}`", pair[0]).into()),
        None => Ok(()),
    }
}

/// Returns the canonical name of a type: `package/msg/Type`, `package/Type` and the name in DDS of a ROS 2 type are
/// equal.
pub(super) fn filed_name(name: &str) -> String {
    let name = name.replace('/', "::");
    let parts: Vec<&str> = name.split("::").collect();
    match parts[..] {
        [package, kind, "dds_", own] => {
            let own = own.strip_suffix('_').unwrap_or(own);
            format!("{package}::{kind}::{own}")
        }
        _ => name,
    }
}
