//! The fields of a message type.

use rondel_event::{Value, ValueType};

use super::descriptor::{Kind, ProtobufType};
use crate::outline::{Outliner, Part, object, short};

impl ProtobufType {
    pub(crate) fn outline(&self, outliner: &mut Outliner) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        self.message(self.root, &mut Vec::new(), outliner)
    }

    /// Returns the fields of a message; `open` are the enclosing ones.
    fn message(
        &self,
        at: usize,
        open: &mut Vec<usize>,
        outliner: &mut Outliner,
    ) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        open.push(at);
        let mut fields = Vec::new();
        for field in &self.descriptors.messages[at].fields {
            outliner.count()?;
            let part = match field.kind {
                Kind::Bool => Part::Value(ValueType::Bool),
                Kind::Double | Kind::Float => Part::Value(ValueType::Float),
                Kind::String => Part::Value(ValueType::String),
                Kind::Bytes | Kind::Group => Part::Open,
                Kind::Enum(of) => {
                    let of = &self.descriptors.enums[of];
                    let constants = of.values.iter().map(|(name, value)| (&**name, Value::Int(*value)));
                    outliner.constants(&of.name, constants);
                    Part::Enumeration(short(&of.name).into())
                }
                Kind::Message(inner) => {
                    let message = &self.descriptors.messages[inner];
                    match message.is_entry || open.contains(&inner) {
                        true => Part::Open,
                        false => object(&message.name, self.message(inner, open, outliner)?),
                    }
                }
                _ => Part::Value(ValueType::Int),
            };
            let is_map = matches!(field.kind, Kind::Message(m) if self.descriptors.messages[m].is_entry);
            let part = if field.is_repeated && !is_map { Part::Array(Box::new(part), None) } else { part };
            fields.push((field.name.clone(), part));
        }
        open.pop();
        Ok(fields)
    }
}
