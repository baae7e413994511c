//! A decoder of Avro that follows the specification word for word, and an encoder that makes data of it.

use serde_json::{Map, Value, json};

/// A type, without names.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Null,
    Boolean,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum(usize),
    Record(Vec<Type>),
    Array(Box<Type>),
    Map(Box<Type>),
    Union(Vec<Type>),
}

/// Returns a number in zigzag encoding.
pub(crate) fn long(value: i64) -> Vec<u8> {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    let mut bytes = Vec::new();
    while rest > 0x7f {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Returns bytes with their length before them.
pub(crate) fn bytes(content: &[u8]) -> Vec<u8> {
    [long(content.len() as i64), content.to_vec()].concat()
}

impl Type {
    /// Returns the schema; `names` counts the named types.
    pub(crate) fn schema(&self, names: &mut usize) -> Value {
        let mut name = || {
            *names += 1;
            format!("T{names}")
        };
        match self {
            Type::Null => json!("null"),
            Type::Boolean => json!("boolean"),
            Type::Long => json!("long"),
            Type::Float => json!("float"),
            Type::Double => json!("double"),
            Type::Bytes => json!("bytes"),
            Type::Text => json!("string"),
            Type::Fixed(size) => json!({"type": "fixed", "name": name(), "size": size}),
            Type::Enum(count) => {
                let symbols: Vec<String> = (0..*count).map(|at| format!("S{at}")).collect();
                json!({"type": "enum", "name": name(), "symbols": symbols})
            }
            Type::Record(fields) => {
                let own = name();
                let field =
                    |(at, of): (usize, &Type)| json!({"name": format!("f{at}"), "type": of.schema(names)});
                let fields: Vec<Value> = fields.iter().enumerate().map(field).collect();
                json!({"type": "record", "name": own, "fields": fields})
            }
            Type::Array(of) => json!({"type": "array", "items": of.schema(names)}),
            Type::Map(of) => json!({"type": "map", "values": of.schema(names)}),
            Type::Union(branches) => branches.iter().map(|of| of.schema(names)).collect(),
        }
    }
}

/// The rest of a datum.
pub(crate) struct Rest<'m>(pub(crate) &'m [u8]);

impl<'m> Rest<'m> {
    fn take(&mut self, count: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn long(&mut self) -> Option<i64> {
        let mut value: u128 = 0;
        for at in 0..10 {
            let byte = self.take(1)?[0];
            value |= u128::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                let value = u64::try_from(value).ok()?;
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        None
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.long()?).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.size()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    /// Calls a function for each element of the blocks of an array or a map.
    fn blocks(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Some(());
            }
            if count < 0 {
                let size = self.size()?;
                if size > self.0.len() {
                    return None;
                }
            }
            for _ in 0..count.unsigned_abs() {
                element(self)?;
            }
        }
    }

    /// Reads a value; `None` if there is none.
    pub(crate) fn value(&mut self, of: &Type) -> Option<Value> {
        Some(match of {
            Type::Null => Value::Null,
            Type::Boolean => match self.take(1)?[0] {
                0 => json!(false),
                1 => json!(true),
                _ => return None,
            },
            Type::Long => json!(self.long()?),
            Type::Float => json!(f64::from(f32::from_le_bytes(self.take(4)?.try_into().unwrap()))),
            Type::Double => json!(f64::from_le_bytes(self.take(8)?.try_into().unwrap())),
            Type::Bytes => {
                let length = self.size()?;
                json!(self.take(length)?)
            }
            Type::Text => json!(self.text()?),
            Type::Fixed(size) => json!(self.take(*size)?),
            Type::Enum(count) => {
                let at = self.size().filter(|at| at < count)?;
                json!(format!("S{at}"))
            }
            Type::Record(fields) => {
                let mut all = Map::new();
                for (at, of) in fields.iter().enumerate() {
                    all.insert(format!("f{at}"), self.value(of)?);
                }
                Value::Object(all)
            }
            Type::Array(of) => {
                let mut all = Vec::new();
                self.blocks(|rest| {
                    all.push(rest.value(of)?);
                    Some(())
                })?;
                Value::Array(all)
            }
            Type::Map(of) => {
                let mut all = Map::new();
                self.blocks(|rest| {
                    let key = rest.text()?;
                    all.insert(key, rest.value(of)?);
                    Some(())
                })?;
                Value::Object(all)
            }
            Type::Union(branches) => {
                let branch = self.size()?;
                self.value(branches.get(branch)?)?
            }
        })
    }
}
