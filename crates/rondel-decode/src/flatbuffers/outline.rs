//! The fields of a table.

use rondel_event::{Value, ValueType};

use super::schema::{FlatbuffersType, Kind, Number};
use crate::outline::{Outliner, Part, object, short};

impl FlatbuffersType {
    pub(crate) fn outline(&self, outliner: &mut Outliner) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        self.object(self.root, &mut Vec::new(), outliner)
    }

    /// Returns the fields of a table or structure; `open` are the enclosing ones.
    fn object(
        &self,
        at: usize,
        open: &mut Vec<usize>,
        outliner: &mut Outliner,
    ) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        open.push(at);
        let mut fields = Vec::new();
        for field in &self.types.objects[at].fields {
            fields.push((field.name.clone(), self.value(&field.kind, open, outliner)?));
        }
        open.pop();
        Ok(fields)
    }

    fn value(
        &self,
        kind: &Kind,
        open: &mut Vec<usize>,
        outliner: &mut Outliner,
    ) -> Result<Part, &'static str> {
        outliner.count()?;
        Ok(match kind {
            Kind::Number(number, of) => {
                if let Some(of) = of.map(|of| &self.types.enums[of]) {
                    let constants = of.values.iter().map(|(name, value)| (&**name, Value::Int(*value)));
                    outliner.constants(&of.name, constants);
                    return Ok(Part::Enumeration(short(&of.name).into()));
                }
                Part::Value(match number {
                    Number::Bool => ValueType::Bool,
                    Number::F32 | Number::F64 => ValueType::Float,
                    _ => ValueType::Int,
                })
            }
            Kind::Text => Part::Value(ValueType::String),
            Kind::Object(inner) if open.contains(inner) => Part::Open,
            Kind::Object(inner) => {
                object(&self.types.objects[*inner].name, self.object(*inner, open, outliner)?)
            }
            Kind::Vector(element) => Part::Array(Box::new(self.value(element, open, outliner)?), None),
            Kind::Array(element, size) => {
                Part::Array(Box::new(self.value(element, open, outliner)?), Some(*size))
            }
            Kind::Union(_) | Kind::Other => Part::Open,
        })
    }
}
