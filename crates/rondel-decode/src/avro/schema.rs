//! Types of Avro, from their schemas in JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::json::MAX_DEPTH;
use crate::schema::SchemaError;

/// Maximum number of types in a schema.
const MAX_TYPES: usize = 1 << 16;

/// Greatest scale of a decimal that is read.
const MAX_SCALE: u64 = 300;

const NS_PER_DAY: i64 = 86_400_000_000_000;

/// The schema of a file or a registry, and the records that it defines.
#[derive(Clone, Debug)]
pub struct AvroSchema {
    types: Arc<Types>,
    source: Arc<[u8]>,
}

/// A type of messages.
#[derive(Clone, Debug)]
pub struct AvroType {
    pub(super) types: Arc<Types>,
    pub(super) root: usize,
    name: Arc<str>,
    source: Arc<[u8]>,
}

/// The types of a schema, which refer to each other by their index.
#[derive(Debug, Default)]
pub(super) struct Types {
    nodes: Vec<Node>,
    /// Named types, by their full names.
    names: BTreeMap<String, usize>,
    root: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) logical: Logical,
    /// Whether its values have no bytes.
    pub(super) is_empty: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Box<[Box<str>]>),
    Record(Box<[Field]>),
    Array(usize),
    Map(usize),
    Union(Box<[usize]>),
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    pub(super) of: usize,
}

/// Meaning of the values of a type, beyond their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logical {
    None,
    /// Points in time, in units of so many nanoseconds.
    Time(i64),
    /// Times of a day, in units of so many nanoseconds.
    TimeOfDay(i64),
    /// Numbers with so many digits after the point.
    Decimal(u32),
}

impl Types {
    pub(super) fn node(&self, of: usize) -> &Node {
        &self.nodes[of]
    }

    /// Returns the full name of a named type.
    pub(super) fn name(&self, of: usize) -> &str {
        self.names.iter().find(|(_, at)| **at == of).map_or("", |(name, _)| name)
    }

    /// Returns the branches of a union, or the type itself.
    pub(super) fn branches<'t>(&'t self, of: &'t usize) -> &'t [usize] {
        match &self.node(*of).kind {
            Kind::Union(branches) => branches,
            _ => std::slice::from_ref(of),
        }
    }

    pub(super) fn is_null(&self, of: usize) -> bool {
        matches!(self.node(of).kind, Kind::Null)
    }

    fn is_record(&self, of: usize) -> bool {
        matches!(self.node(of).kind, Kind::Record(_))
    }
}

impl AvroSchema {
    /// Reads a schema in JSON.
    ///
    /// # Errors
    /// The text is not JSON, or is no schema.
    pub fn from_json(text: &[u8]) -> Result<AvroSchema, SchemaError> {
        let json: Value =
            serde_json::from_slice(text).map_err(|error| SchemaError::new(error.to_string()))?;
        let mut parser = Parser { types: Types::default() };
        let root = parser.parse(&json, "")?;
        parser.types.root = root;
        parser.mark_empty()?;
        Ok(AvroSchema { types: Arc::new(parser.types), source: text.into() })
    }

    /// Returns the full names of the records.
    pub fn record_names(&self) -> impl Iterator<Item = &str> {
        let records = self.types.names.iter().filter(|(_, at)| self.types.is_record(**at));
        records.map(|(name, _)| name.as_str())
    }

    /// Returns a record by its full name.
    ///
    /// # Errors
    /// The schema has no such record.
    pub fn record(&self, name: &str) -> Result<AvroType, SchemaError> {
        match self.types.names.get(name) {
            Some(at) if self.types.is_record(*at) => Ok(self.at(*at)),
            _ => Err(SchemaError::new(format!("the schema has no record `{name}`"))),
        }
    }

    /// Returns the type of the schema as a whole.
    pub fn root(&self) -> AvroType {
        self.at(self.types.root)
    }

    fn at(&self, root: usize) -> AvroType {
        let name = match self.types.name(root) {
            "" => kind_name(&self.types.node(root).kind),
            name => name,
        };
        AvroType { types: Arc::clone(&self.types), root, name: name.into(), source: Arc::clone(&self.source) }
    }
}

impl AvroType {
    /// Returns the full name of the record; for another type its kind.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the schema that defines it, in JSON.
    pub fn source(&self) -> &[u8] {
        &self.source
    }
}

/// Returns the name of a type in schemas.
fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Boolean => "boolean",
        Kind::Int => "int",
        Kind::Long => "long",
        Kind::Float => "float",
        Kind::Double => "double",
        Kind::Bytes => "bytes",
        Kind::String => "string",
        Kind::Fixed(_) => "fixed",
        Kind::Enum(_) => "enum",
        Kind::Record(_) => "record",
        Kind::Array(_) => "array",
        Kind::Map(_) => "map",
        Kind::Union(_) => "union",
    }
}

/// Returns the type without parts of this name.
fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

struct Parser {
    types: Types,
}

/// Returns an error of a schema.
fn error<T>(message: impl Into<Box<str>>) -> Result<T, SchemaError> {
    Err(SchemaError::new(message))
}

impl Parser {
    /// Reads a schema within a namespace. The parser of JSON bounds the depth.
    fn parse(&mut self, json: &Value, namespace: &str) -> Result<usize, SchemaError> {
        match json {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => self.union(branches, namespace),
            Value::Object(object) => match object.get("type") {
                Some(Value::String(kind)) => self.object(kind, object, namespace),
                Some(inner) => self.parse(inner, namespace),
                None => error("a schema has no `type`"),
            },
            _ => error(format!("a schema is a name, an object or a list, not {json}")),
        }
    }

    fn add(&mut self, kind: Kind, logical: Logical) -> Result<usize, SchemaError> {
        if self.types.nodes.len() >= MAX_TYPES {
            return error(format!("a schema has at most {MAX_TYPES} types"));
        }
        self.types.nodes.push(Node { kind, logical, is_empty: false });
        Ok(self.types.nodes.len() - 1)
    }

    /// Finds a type by its name.
    fn named(&mut self, name: &str, namespace: &str) -> Result<usize, SchemaError> {
        if let Some(kind) = primitive(name) {
            return self.add(kind, Logical::None);
        }
        let names = &self.types.names;
        let found = names.get(&full_name(name, namespace)).or_else(|| names.get(name));
        found
            .copied()
            .map_or_else(|| error(format!("the type `{name}` is not defined before it is used")), Ok)
    }

    fn union(&mut self, branches: &[Value], namespace: &str) -> Result<usize, SchemaError> {
        let mut all = Vec::new();
        for branch in branches {
            let of = self.parse(branch, namespace)?;
            if matches!(self.types.node(of).kind, Kind::Union(_)) {
                return error("a union contains a union");
            }
            all.push(of);
        }
        if all.is_empty() {
            return error("a union has no branch");
        }
        self.add(Kind::Union(all.into()), Logical::None)
    }

    fn object(
        &mut self,
        kind: &str,
        object: &Map<String, Value>,
        namespace: &str,
    ) -> Result<usize, SchemaError> {
        let part = |name: &str| {
            object.get(name).map_or_else(|| error(format!("a schema of type `{kind}` has no `{name}`")), Ok)
        };
        match kind {
            "array" => {
                let of = self.parse(part("items")?, namespace)?;
                self.add(Kind::Array(of), Logical::None)
            }
            "map" => {
                let of = self.parse(part("values")?, namespace)?;
                self.add(Kind::Map(of), Logical::None)
            }
            "record" | "error" => self.record(object, namespace),
            "enum" => {
                let Some(symbols) = part("symbols")?.as_array() else { return error("`symbols` is no list") };
                let text = |symbol: &Value| symbol.as_str().map(Box::from);
                let Some(symbols) = symbols.iter().map(text).collect::<Option<Box<[Box<str>]>>>() else {
                    return error("a symbol of an enum is no text");
                };
                let of = self.add(Kind::Enum(symbols), Logical::None)?;
                self.define(object, namespace, of).map(|_| of)
            }
            "fixed" => {
                let size = part("size")?.as_u64().and_then(|size| usize::try_from(size).ok());
                let Some(size) = size else { return error("`size` of a fixed is no number of bytes") };
                let kind = Kind::Fixed(size);
                let logical = logical(&kind, object)?;
                let of = self.add(kind, logical)?;
                self.define(object, namespace, of).map(|_| of)
            }
            name => match primitive(name) {
                Some(kind) => {
                    let logical = logical(&kind, object)?;
                    self.add(kind, logical)
                }
                None => self.named(name, namespace),
            },
        }
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<usize, SchemaError> {
        // Its fields may refer to it.
        let of = self.add(Kind::Record(Box::default()), Logical::None)?;
        let name = self.define(object, namespace, of)?;
        let inner = name.rsplit_once('.').map_or("", |(namespace, _)| namespace);
        let Some(fields) = object.get("fields").and_then(Value::as_array) else {
            return error(format!("the record `{name}` has no list of `fields`"));
        };
        let mut all: Vec<Field> = Vec::with_capacity(fields.len());
        for field in fields {
            let (Some(own), Some(of)) = (field.get("name").and_then(Value::as_str), field.get("type")) else {
                return error(format!("a field of the record `{name}` has no `name` or no `type`"));
            };
            if all.iter().any(|other| *other.name == *own) {
                return error(format!("the record `{name}` has the field `{own}` twice"));
            }
            all.push(Field { name: own.into(), of: self.parse(of, inner)? });
        }
        self.types.nodes[of].kind = Kind::Record(all.into());
        Ok(of)
    }

    /// Gives a type its name. Returns the full name.
    fn define(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        of: usize,
    ) -> Result<String, SchemaError> {
        let Some(name) = object.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            return error("a record, enum or fixed has no `name`");
        };
        let own = object.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
        let full = full_name(name, own);
        if primitive(&full).is_some() || self.types.names.insert(full.clone(), of).is_some() {
            return error(format!("the type `{full}` is defined twice"));
        }
        Ok(full)
    }

    /// Marks types whose values have no bytes.
    fn mark_empty(&mut self) -> Result<(), SchemaError> {
        let mut known = vec![None; self.types.nodes.len()];
        for of in 0..known.len() {
            self.types.nodes[of].is_empty = self.is_empty(of, &mut known, 0)?;
        }
        Ok(())
    }

    fn is_empty(&self, of: usize, known: &mut [Option<bool>], depth: u32) -> Result<bool, SchemaError> {
        if let Some(known) = known[of] {
            return Ok(known);
        }
        if depth >= MAX_DEPTH {
            return error(format!(
                "a record contains itself without an end, or records are nested deeper than {MAX_DEPTH} levels"
            ));
        }
        let mut is_empty = true;
        match &self.types.node(of).kind {
            Kind::Null | Kind::Fixed(0) => {}
            Kind::Record(fields) => {
                for field in fields {
                    is_empty &= self.is_empty(field.of, known, depth + 1)?;
                }
            }
            _ => is_empty = false,
        }
        known[of] = Some(is_empty);
        Ok(is_empty)
    }
}

/// Returns a name with its namespace.
fn full_name(name: &str, namespace: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        _ if name.contains('.') => name.to_owned(),
        namespace => format!("{namespace}.{name}"),
    }
}

/// Returns the logical type of a schema; unknown ones count as none, as the specification of Avro demands.
fn logical(kind: &Kind, object: &Map<String, Value>) -> Result<Logical, SchemaError> {
    let Some(name) = object.get("logicalType").and_then(Value::as_str) else { return Ok(Logical::None) };
    Ok(match (kind, name) {
        (Kind::Long, "timestamp-millis" | "local-timestamp-millis") => Logical::Time(1_000_000),
        (Kind::Long, "timestamp-micros" | "local-timestamp-micros") => Logical::Time(1_000),
        (Kind::Long, "timestamp-nanos" | "local-timestamp-nanos") => Logical::Time(1),
        (Kind::Int, "date") => Logical::Time(NS_PER_DAY),
        (Kind::Int, "time-millis") => Logical::TimeOfDay(1_000_000),
        (Kind::Long, "time-micros") => Logical::TimeOfDay(1_000),
        (Kind::Bytes | Kind::Fixed(_), "decimal") => {
            let scale = object.get("scale").map_or(Some(0), Value::as_u64);
            match scale.filter(|scale| *scale <= MAX_SCALE).and_then(|scale| u32::try_from(scale).ok()) {
                Some(scale) => Logical::Decimal(scale),
                None => return error(format!("the `scale` of a decimal is a number up to {MAX_SCALE}")),
            }
        }
        _ => Logical::None,
    })
}
